"""Moments: weight, mean and centred sum of squares, per class and per feature.

The tallies of two disjoint sets of rows add up to the tally of their union, so chunks, files and machines are one case.
They add as sums of powers, of 159 bits each, so that what is removed leaves no trace, even if it was far larger.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Codes, Floats
from candide.kernels import powers
from candide.tally import base, precision
from candide.tally.base import TalliedRows, TallySpec
from candide.tally.precision import ExactSums

_EPS = 4 * np.finfo(np.float64).eps
_MAX_EXACT_VALUES = 1 << 14  # values that are summed exactly, whatever they are: that takes hardly any time
_NOISE = 1e-14  # and so much where the sums of a large block were rounded to doubles
ROUNDING_SHARE = 2.0**-130  # of the sum of squares: what rounding leaves; values an ulp apart have 2^-107 of it


@dataclass(frozen=True, eq=False)
class Moments(ExactSums):
    state: ClassVar[tuple[str, ...]] = ("n", "mean", "m2")
    can_be_imprecise: ClassVar[bool] = True

    n: Floats  # (classes, features) weight of the values present
    mean: Floats  # (classes, features) zero where n is zero
    m2: Floats  # (classes, features) sum of w * (x - mean)**2, never negative

    @classmethod
    def from_rows(
        cls, block: NDArray, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: TallySpec | None = None
    ) -> Self:
        """Tally one batch; ``y`` holds class codes, NaN is an absent value, an infinity shows as a non-finite mean."""
        tallied = TalliedRows(block, spec)
        scale = None if block.size <= _MAX_EXACT_VALUES else precision.estimate_scale(tallied, len(block))

        def part(rows: slice) -> Moments:
            x = tallied[rows]
            if spec is not None and spec.is_non_negative and (x < 0).any():
                raise base.negative_value_error(float(x[x < 0][0]))
            return cls._count_rows(x, y[rows], None if weight is None else weight[rows], n_classes, scale)

        return base.tally_by_parts(part, block, spec, join=Moments.add_approximately)

    @classmethod
    def _count_rows(cls, x: NDArray, y: Codes, w: Floats | None, n_classes: int, scale: Floats | None) -> Self:
        """The tally of rows, summed exactly where there are few, and in columns that spread far beyond their scale."""
        if scale is None:
            return cls._from_sums(kernels.power_sums(x, y, w, n_classes))
        plain = cls(*kernels.moments(x, y, w, n_classes))
        far = plain.imprecise_features(scale)
        if not len(far):
            return plain
        sums = plain.sums.copy()
        sums[:, far] = kernels.power_sums(x[:, far], y, w, n_classes)
        return cls._from_sums(sums)

    @classmethod
    def _from_sums(cls, sums: Floats) -> Self:
        """The tally of sums of powers (classes, features, power, part)."""
        n, mean, m2 = kernels.moments_of(sums)
        nothing = np.isfinite(m2) & (m2 <= ROUNDING_SHARE * sums[..., 2, 0])
        out = cls(n, mean, np.where(nothing, 0.0, m2))
        out.__dict__["sums"] = sums
        return out

    def _bounded_arrays(self) -> Iterator[NDArray]:
        """Yield weights, means, and sums of squares about 0, which merging works with."""
        yield from (self.n, self.mean)
        with np.errstate(over="ignore", invalid="ignore"):
            yield self.m2 + self.n * self.mean**2

    def imprecise_features(self, scale: Floats) -> Codes:
        with np.errstate(invalid="ignore", over="ignore"):
            far = base.divide_or_zero(self.m2, self.n) > (precision.IMPRECISE_RATIO * scale) ** 2
            return np.flatnonzero((far | precision.is_mean_imprecise(self.mean, scale)).any(axis=0))

    def replace_feature(self, j: int, other: Self, other_feature: int) -> Self:
        sums = self.sums.copy()
        sums[:, j] = other.sums[:, other_feature]
        return self._from_sums(sums)

    @cached_property
    def sums(self) -> Floats:
        """(classes, features, power, part) the sums of w, w x and w x^2: what adds."""
        sums = powers.sums_from_moments(self.n, self.mean, self.m2, self.__dict__.get("_rest"))
        last = self.__dict__.get("_last")
        return sums if last is None else powers.add_last_residuals(sums, last)

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        zero = np.zeros((n_classes, spec.n_features))
        return cls(zero, zero, zero)

    def __add__(self, other: Self) -> Self:
        base.check_same_shape(self.n, other.n)
        return self._from_sums(powers.add_sums(self.sums, other.sums)).with_noise(self.noise + other.noise)

    def add_approximately(self, other: Self) -> Self:
        """Self + other in doubles, unless one holds residuals: for slices of one block, which have similar spread."""
        if self._has_residuals or other._has_residuals:
            return self + other
        base.check_same_shape(self.n, other.n)
        return type(self)(*_chan((self.n, self.mean, self.m2), (other.n, other.mean, other.m2)))

    def __sub__(self, part: Self) -> Self:
        n = base.subtract_weights(self.n, part.n)
        sums = powers.subtract_sums(self.sums, part.sums)
        sums[n == 0] = 0.0
        _, mean, m2 = kernels.moments_of(sums)
        rounded = self.remaining_moments(part, n, mean, m2)
        change = (n > 0) & ((rounded[0] != mean) | (rounded[1] != m2))
        if change.any():
            sums[change] = powers.sums_from_moments(n, *rounded)[change]
        return self._from_sums(sums).with_noise(self.remaining_noise(part, n, sums[..., 2, 0]))

    def remaining_noise(self, part: Self, n: Floats, squares: Floats) -> Floats:
        """(classes, features) the noise of the sums of squares that are left without ``part``, of the weight ``n``."""
        return np.where(n > 0, precision.significant_noise(self._rounding(part), squares), 0.0)

    def _rounding(self, part: Self) -> Floats:
        """How far off the sums of squares may be that are left without ``part``."""
        squares = np.abs(self.sums[..., 2, 0]) + np.abs(part.sums[..., 2, 0])
        return precision.LOST_SHARE * squares + self.noise + part.noise

    def remaining_moments(self, part: Self, n: Floats, mean: Floats, m2: Floats) -> tuple[Floats, Floats]:
        """Mean and spread of what is left without ``part``: an error if that cannot be, 0 where only rounding is."""
        gap = np.where(part.n > 0, self.mean - part.mean, 0.0)
        pooled_n, _, pooled_m2 = _pool_state(n, mean, np.maximum(m2, 0.0))
        natural = base.divide_or_zero(pooled_m2, pooled_n)  # (1, features) the variance of all classes together
        if "_noise" in self.__dict__:  # else the check below names values that were never counted
            self._check_lost(part, n, mean, natural)
        self._check_remaining(part, n, gap, m2)
        self._check_lost(part, n, mean, natural)
        # Sums of a large block were rounded to doubles: what is smaller than that, and than any spread left, is none.
        noise = _NOISE * self.m2 + _EPS * (np.abs(self.mean) + np.abs(part.mean)) * np.abs(gap) * part.n
        none = (m2 <= noise) & (m2 <= 1e-12 * natural * n) | (m2 <= precision.LOST_SHARE * np.abs(self.sums[..., 2, 0]))
        zero = (np.abs(mean) <= self._mean_blur(part, n)) & (mean**2 <= 1e-12 * natural)
        return np.where(zero, 0.0, mean), np.where(none, 0.0, np.maximum(m2, 0.0))

    def _mean_blur(self, part: Self, n: Floats) -> Floats:
        """The rounding error of the mean that is left without ``part``."""
        return _EPS * base.divide_or_zero(np.abs(self.mean) * self.n + np.abs(part.mean) * part.n, n)

    def subtract_approximately(self, part: Self) -> Self:
        """Self - part in doubles, as many at once as there are leading axes."""
        n = base.subtract_weights(self.n, part.n)
        gap = np.where(part.n > 0, self.mean - part.mean, 0.0)
        mean = np.where(n > 0, self.mean + gap * base.divide_or_zero(part.n, n), 0.0)
        mean = np.where(np.abs(mean) <= self._mean_blur(part, n), 0.0, mean)
        m2 = self.m2 - part.m2 - gap * gap * part.n * base.divide_or_zero(self.n, n)
        self._check_remaining(part, n, gap, m2)
        # A spread smaller than the rounding error of the one, and of the means, that it was taken from is none.
        error = _EPS * (np.abs(self.mean) + np.abs(part.mean)) * np.abs(gap) * part.n * base.divide_or_zero(self.n, n)
        return type(self)(n, mean, np.where((n > 0) & (m2 > _NOISE * self.m2 + error), m2, 0.0))

    def _check_remaining(self, part: Self, n: Floats, gap: Floats, m2: Floats) -> None:
        """No rows have a negative spread: if what is left has one beyond rounding, ``part`` was never counted."""
        outside = m2 < -self.rounding_slack(part, n) - self.n * (_EPS * self.mean) ** 2
        sd = np.sqrt(base.divide_or_zero(self.m2, self.n))
        outside |= (n == 0) & (np.abs(gap) > 1e-6 * sd + self._mean_error(part))  # every row goes: both are the same
        base.refuse_removal(outside, "the values removed were never counted")

    def _check_lost(self, part: Self, n: Floats, mean: Floats, natural: Floats) -> None:
        """Refuse to remove values so large that beside them the spread of the rest was lost."""
        lost = (part.n > 0) & (n > 0) & (self._rounding(part) > 1e-6 * n * np.maximum(natural, mean**2))
        precision.check_not_lost(lost & ((natural > 0) | (mean != 0)))

    def _mean_error(self, part: Self) -> Floats:
        """How well a mean is known after many rows have been merged, and many taken away again."""
        return 1e-9 * np.maximum(np.abs(self.mean), np.abs(part.mean))

    def rounding_slack(self, part: Self, n: Floats) -> Floats:
        """How far below zero rounding may put the spread of what is left, of the weight ``n``, without ``part``."""
        blur = self._mean_error(part)
        stretch = np.where(n > 0, base.divide_or_zero(self.n, n), 1.0)
        return 1e-6 * self.m2 + stretch * (2 * blur * np.sqrt(part.n * self.m2) + blur * blur * part.n)

    def scale(self, factor: float | Floats) -> Self:
        sums = powers.scale_sums(self.sums, base.broadcast_by_class(factor, self.sums.ndim - 1))
        return self._from_sums(sums)._with_scaled_noise(self.noise, factor)

    def pool(self) -> Self:
        return type(self)(*_pool_state(self.n, self.mean, self.m2))

    def summarize_feature(self, j: int) -> dict[str, float]:
        return {"mean": float(self.mean[0, j]), "sd": float(np.sqrt(self.m2[0, j] / self.n[0, j]))}

    def rounding_residuals(self) -> dict[str, NDArray]:
        if not self._has_residuals:
            return {}
        state = self.n, self.mean, self.m2
        rest = powers.residuals_of_sums(self.sums, *state)
        last = powers.last_residuals(self.sums, powers.sums_from_moments(*state, rest))
        return self._residual_arrays(rest=rest, last=last)

    @classmethod
    def residual_shapes(cls, n_classes: int, spec: TallySpec) -> dict[str, tuple[int, int]]:
        numbers = {"rest": powers.N_RESIDUALS, "last": powers.POWERS, "noise": 1}  # of a feature
        return {name: (n_classes, n * spec.n_features) for name, n in numbers.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec) -> Self:
        out = cls(*(arrays[name] for name in cls.state))
        shapes = {"rest": (*out.n.shape, powers.N_RESIDUALS), "last": (*out.n.shape, powers.POWERS)}
        return out._with_residuals(arrays, **shapes)


State = tuple[Floats, Floats, Floats]  # weight, mean, centred sum of squares


def _chan(a: State, b: State) -> State:
    """Chan, Golub and LeVeque (1979); the empty tally is the identity."""
    n = a[0] + b[0]
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite stays so, and the engine reports where
        gap, share = np.where((a[0] > 0) & (b[0] > 0), b[1] - a[1], 0.0), base.divide_or_zero(b[0], n)
        return n, np.where(a[0] > 0, a[1] + gap * share, b[1]), a[2] + b[2] + gap * gap * share * a[0]


def _pool_state(*state: Floats) -> State:
    """The state of all classes as one, (..., 1, features)."""
    pooled: Any = state
    while (n := pooled[0].shape[-2]) > 1:  # one half is added to the other: there may be very many classes
        parts = slice(n // 2), slice(n // 2, n // 2 * 2), slice(n // 2 * 2, n)
        first, second, odd = (tuple(a[..., part, :] for a in pooled) for part in parts)
        pooled = tuple(np.concatenate(pair, axis=-2) for pair in zip(_chan(first, second), odd, strict=True))
    zero = np.zeros((*state[0].shape[:-2], 1, state[0].shape[-1]))
    return pooled if n else (zero, zero, zero)
