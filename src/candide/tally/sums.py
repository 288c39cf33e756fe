"""Sums: the weight present and the weighted sum, per class and per feature.

Word counts, event counts and waiting times need no more than this. Where doubles would round, totals add as expansions
of three of them, so that what is removed leaves no trace, even if it was far larger.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Csr, Floats, slice_rows
from candide.kernels import powers
from candide.numerics import EXPANSION_PARTS, gammaln, split_expansion, sum_to_expansion, two_sum
from candide.tally import base, precision
from candide.tally.base import TalliedRows, TallySpec
from candide.tally.precision import ExactSums

_MIN_LOG_FACTORIAL = -0.1214862905358496  # of log x!, near x = 0.46: it is below zero between the whole numbers 0 and 1
_MAX_EXACT_INTEGER = 1 << 53  # whole numbers up to here are exact as floats
_EPS = 2.0**-52
_MAX_EXACT_VALUES = 1 << 14  # values that are summed exactly, whatever they are: that takes hardly any time
_CHUNK_ROWS = 1 << 14  # rows summed exactly at a time
_MAX_EXACT_TOTALS = 1 << 18  # totals that are added exactly; more, as of the words of many documents, in doubles


@dataclass(frozen=True, eq=False)
class Sums(ExactSums):
    state: ClassVar[tuple[str, ...]] = ("n", "total", "log_factorial")
    can_be_imprecise: ClassVar[bool] = True

    n: Floats  # (classes, features) weight of the values present
    total: Floats  # (classes, features) sum of w * x
    log_factorial: Floats  # (classes, features) sum of w * log x!; zero unless the spec keeps it
    is_non_negative: bool = False  # whether no value is negative: then no total of some of the rows is, either

    @classmethod
    def from_rows(
        cls, block: Block, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: TallySpec
    ) -> Self:
        """Tally one batch. In sparse rows what is not stored is zero; an infinity shows as a non-finite total."""
        amounts, keep = spec.is_non_negative, "log_factorial" in spec.extra_sums
        scale = None
        if not isinstance(block, Csr) and block.size > _MAX_EXACT_VALUES:
            scale = precision.estimate_scale(TalliedRows(block, spec), len(block))

        def part(rows: slice) -> Sums:
            x, w = slice_rows(block, rows), None if weight is None else weight[rows]
            if isinstance(x, Csr):
                total, low = kernels.csr_sums(x.data, x.indices, x.indptr, y[rows], w, n_classes, x.n_features)
                n = np.broadcast_to(base.sum_class_weights(y[rows], w, n_classes)[:, None], total.shape)
            else:
                x = spec.tally_values(x)
                n, total, low = kernels.dense_sums(x, y[rows], w, n_classes)
            if amounts and low < 0:
                raise base.negative_value_error(float(low), is_sparse=isinstance(x, Csr))
            log_factorial = _log_factorial(x, y[rows], w, n_classes) if keep else _broadcast_zeros(total.shape)
            tally = cls(n, total, log_factorial, amounts)
            if isinstance(x, Csr):  # summed in doubles, which do not hold every whole number beyond these
                return tally.with_noise(np.where(np.abs(total) > _MAX_EXACT_INTEGER, _EPS * np.abs(total), 0.0))
            at = np.arange(x.shape[1]) if scale is None else tally.imprecise_features(scale)
            return tally._sum_exactly(x, y[rows], w, at, keep) if len(at) else tally

        return base.tally_by_parts(part, block, spec, join=cls.add_approximately)

    def _sum_exactly(self, x: NDArray, y: Codes, w: Floats | None, at: Codes, keep: bool) -> Self:
        """This tally with the totals of some features summed exactly."""
        sums, k = self.sums.copy(), len(self.n)
        sums[:, at] = 0.0
        for start in range(0, len(y), _CHUNK_ROWS):  # so that no more than a tile of the rows is copied
            rows = slice(start, start + _CHUNK_ROWS)
            tile, weight = x[rows, at], None if w is None else w[rows]
            for i, values in enumerate((tile, _log_factorials(tile)) if keep else (tile,)):
                added = kernels.power_sums(values, y[rows], weight, k)[:, :, 1]
                sums[:, at, i] = sum_to_expansion(*split_expansion(sums[:, at, i]), *split_expansion(added))
        return self._from_sums(self.n, sums, self.is_non_negative)

    @classmethod
    def _from_sums(cls, n: Floats, sums: Floats, amounts: bool) -> Self:
        out = cls(n, sums[..., 0, 0].copy(), sums[..., 1, 0].copy(), amounts)
        if sums[..., 1:].any():  # else the totals are exact as they are
            out.__dict__["sums"] = sums
        return out

    @cached_property
    def sums(self) -> Floats:
        """(classes, features, which total, part) the totals as expansions."""
        sums = np.zeros((*self.total.shape, 2, EXPANSION_PARTS))
        sums[..., 0, 0], sums[..., 1, 0] = self.total, self.log_factorial
        sums[..., 1:] = self.__dict__.get("_rest", 0.0)
        return sums

    @property
    def _has_residuals(self) -> bool:
        has_lower_parts = "sums" in self.__dict__ and bool(self.sums[..., 1:].any())
        return has_lower_parts or not self.__dict__.keys().isdisjoint(("_rest", "_noise"))

    def imprecise_features(self, scale: Floats) -> Codes:
        with np.errstate(invalid="ignore", over="ignore"):
            mean = np.abs(base.divide_or_zero(self.total, self.n))
            return np.flatnonzero((mean > precision.IMPRECISE_RATIO**2 * scale).any(axis=0))

    def replace_feature(self, j: int, other: Self, other_feature: int) -> Self:
        sums = self.sums.copy()
        sums[:, j] = other.sums[:, other_feature]
        return self._from_sums(self.n, sums, self.is_non_negative)

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        zero = _broadcast_zeros((n_classes, spec.n_features))
        return cls(zero, zero, zero, spec.is_non_negative)

    def __add__(self, other: Self) -> Self:
        base.check_same_shape(self.total, other.total)
        is_inexact = self._has_residuals or other._has_residuals
        with np.errstate(invalid="ignore"):
            pairs = ((self.total, other.total), (self.log_factorial, other.log_factorial))
            is_inexact = is_inexact or any(two_sum(*pair)[1].any() for pair in pairs)
        if self.total.size > _MAX_EXACT_TOTALS or not is_inexact:
            return self.add_approximately(other)
        n, amounts = _add_broadcast(self.n, other.n), self.is_non_negative and other.is_non_negative
        return self._from_sums(n, powers.add_sums(self.sums, other.sums), amounts).with_noise(self.noise + other.noise)

    def add_approximately(self, other: Self) -> Self:
        """Self + other, in doubles where neither holds more: of slices of one block."""
        if (self._has_residuals or other._has_residuals) and self.total.size <= _MAX_EXACT_TOTALS:
            return self + other
        base.check_same_shape(self.total, other.total)
        n, total, log_factorial = (_add_broadcast(getattr(self, name), getattr(other, name)) for name in self.state)
        return type(self)(n, total, log_factorial, self.is_non_negative and other.is_non_negative)

    def __sub__(self, part: Self) -> Self:
        """Remove rows counted earlier; that they were not is detected for amounts, else only from the weights."""
        n = self._remaining_weight(part)
        if self.total.size > _MAX_EXACT_TOTALS:
            return self.subtract_approximately(part)
        sums = powers.subtract_sums(self.sums, part.sums)
        # What is smaller than the rounding of doubles, and than anything else that is left, is nothing.
        whole, rest = np.abs(self.sums[..., 0]), np.abs(sums[..., 0])
        usual = base.divide_or_zero(rest.sum(axis=0), n.sum(axis=0)[:, None])
        nothing = (rest <= 1e-12 * whole) & (rest <= 1e-12 * usual * n[..., None])
        rounding = precision.LOST_SHARE * whole[..., 0] + self.noise + part.noise
        precision.check_not_lost((n > 0) & (part.n > 0) & (rounding > 1e-6 * usual[:, 0] * n) & (usual[:, 0] > 0))
        sums[nothing | (n == 0)[..., None]] = 0.0
        if self.is_non_negative:
            sums[..., 0, :][sums[..., 0, 0] < 0] = 0.0
        noise = np.where(n > 0, precision.significant_noise(rounding, sums[..., 0, 0]), 0.0)
        return self._from_sums(n, sums, self.is_non_negative).with_noise(noise)

    def _remaining_weight(self, part: Self) -> Floats:
        """The weight left without ``part``; an error where its values cannot have been counted."""
        n = base.subtract_weights(self.n, part.n)
        if self.is_non_negative:
            _check_remaining(self.total, part.total, n, least=0.0)
            _check_remaining(self.log_factorial, part.log_factorial, n, _MIN_LOG_FACTORIAL, 1e-9 * self.n)
        return n

    def scale(self, factor: float | Floats) -> Self:
        if not self._has_residuals:
            return self._map_arrays(lambda a: a * base.broadcast_by_class(factor, a.ndim))
        n = self.n * base.broadcast_by_class(factor, 2)
        sums = powers.scale_sums(self.sums, base.broadcast_by_class(factor, self.sums.ndim - 1))
        return self._from_sums(n, sums, self.is_non_negative)._with_scaled_noise(self.noise, factor)

    def pool(self) -> Self:
        n, total, log_factorial = (a.sum(axis=-2, keepdims=True) for a in (self.n, self.total, self.log_factorial))
        return type(self)(n, total, log_factorial, self.is_non_negative)

    def subtract_approximately(self, part: Self) -> Self:
        """Self - part in doubles, as many at once as there are leading axes."""
        n = self._remaining_weight(part)
        left = (base.subtract_sums(self.total, part.total), base.subtract_sums(self.log_factorial, part.log_factorial))
        total, log_factorial = (np.where(n > 0, a, 0.0) for a in left)
        total = np.maximum(total, 0.0) if self.is_non_negative else total
        return type(self)(n, total, log_factorial, self.is_non_negative)

    def rounding_residuals(self) -> dict[str, NDArray]:
        return self._residual_arrays(rest=self.sums[..., 1:]) if self._has_residuals else {}

    @classmethod
    def residual_shapes(cls, n_classes: int, spec: TallySpec) -> dict[str, tuple[int, int]]:
        return {"rest": (n_classes, 2 * (EXPANSION_PARTS - 1) * spec.n_features), "noise": (n_classes, spec.n_features)}

    def summarize_feature(self, j: int) -> dict[str, float]:
        return {"mean": float(self.total[0, j] / self.n[0, j])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec) -> Self:
        out = cls(arrays["n"], arrays["total"], arrays["log_factorial"], spec.is_non_negative)
        return out._with_residuals(arrays, rest=(*out.total.shape, 2, EXPANSION_PARTS - 1))


def _check_remaining(whole: Floats, part: Floats, n: Floats, least: float, rounding: Floats | float = 0.0) -> None:
    """Check that ``whole`` contains ``part``: at least ``least`` is left per unit of the remaining weight ``n``."""
    gap, slack = whole - part, 1e-6 * np.maximum(np.abs(whole), np.abs(part)) + rounding
    outside = gap < least * n - slack
    # If every row is removed, nothing may remain. Only with whole numbers does a remainder differ from rounding error.
    outside |= (n == 0) & (gap > 0) & (whole == np.rint(whole)) & (part == np.rint(part)) & (whole < _MAX_EXACT_INTEGER)
    base.refuse_removal(outside, "the values removed were never counted", part, whole, of_sums=True)


def _broadcast_zeros(shape: tuple[int, ...]) -> Floats:
    """Zeros that take no memory."""
    return np.broadcast_to(np.zeros(()), shape)


def _add_broadcast(a: Floats, b: Floats) -> Floats:
    """a + b, where what is one number broadcast along an axis in both stays one number."""
    distinct = tuple(slice(1) if i == j == 0 else slice(None) for i, j in zip(a.strides, b.strides, strict=True))
    return a + b if a[distinct].shape == a.shape else np.broadcast_to(a[distinct] + b[distinct], a.shape)


def _log_factorial(x: Block, y: Codes, w: Floats | None, n_classes: int) -> Floats:
    if isinstance(x, Csr):
        stored = slice(x.indptr[0], x.indptr[-1])
        values = _log_factorials(x.data[stored])
        return kernels.csr_sums(values, x.indices[stored], x.indptr - x.indptr[0], y, w, n_classes, x.n_features)[0]
    return kernels.dense_sums(_log_factorials(x), y, w, n_classes)[1]


def _log_factorials(x: NDArray) -> Floats:
    return gammaln(np.asarray(x, np.float64) + 1.0)
