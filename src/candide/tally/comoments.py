"""CoMoments: weight, mean and scatter matrix of a group of columns, per class.

A row counts whole or not at all: one with an absent value in the group is left out of the group's tally (the complete
cases), because a scatter matrix put together from different rows need not be one. Where ``TallySpec.extra_sums`` has
``fourth`` the sums of x_j^2 x_k and x_j^2 x_k^2 about the mean are kept as well; with them Ledoit and Wolf's shrinkage
needs no second pass over the data.

>>> X, y = np.array([[1.0, 2.0], [3.0, 6.0], [np.nan, 1.0], [4.0, 4.0]]), np.array([0, 0, 0, 1])
>>> count = lambda rows: CoMoments.from_rows(X[rows], y[rows], n_classes=2)
>>> whole = count(slice(0, 1)) + count(slice(1, 4))
>>> whole.weight.ravel().tolist(), whole.mean.tolist(), whole.scatter[0].tolist()
([2.0, 1.0], [[2.0, 4.0], [4.0, 4.0]], [[2.0, 4.0], [4.0, 8.0]])
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Csr, Floats
from candide.errors import InputTypeError, MergeError
from candide.kernels import powers, threads
from candide.numerics import two_sum
from candide.tally.base import (
    TalliedRows,
    Tally,
    TallySpec,
    broadcast_by_class,
    check_same_shape,
    divide_or_zero,
    subtract_sums,
    subtract_weights,
)
from candide.tally.moments import ROUNDING_SHARE, Moments
from candide.tally.precision import IMPRECISE_RATIO, ExactSums, estimate_scale, is_mean_imprecise
from candide.tally.scatter import (
    N_RESIDUALS,
    bound_covariances,
    check_fourth_moments,
    check_remaining_scatter,
    comoments_from_sums,
    drift_residuals,
    embed_matrix,
    fourth_moment_gain,
    outer_product,
    residuals_of_sums,
    sums_from_comoments,
    symmetric_from_lower,
    third_moment_gain,
)

_CHUNK_VALUES = 1 << 22  # values centred at a time: enough rows for BLAS to be quick, and small beside the input
_MIN_CHUNK_ROWS = 256  # rows of a chunk, however wide
_MAX_SINGLE_ROWS = 64  # rows far from the others that are counted one by one; more are counted together


@dataclass(frozen=True, eq=False)
class CoMoments(ExactSums):
    state: ClassVar[tuple[str, ...]] = ("weight", "mean", "scatter", "third", "fourth")

    weight: Floats  # (classes, 1) of the rows without an absent value
    mean: Floats  # (classes, features) zero where the weight is zero
    scatter: Floats  # (classes, features, features) sum of w * (x_j - mean_j) * (x_k - mean_k)
    third: Floats | None = None  # (classes, features, features) sum of w * (x_j - mean_j)**2 * (x_k - mean_k)
    fourth: Floats | None = None  # (classes, features, features) sum of w * (x_j - mean_j)**2 * (x_k - mean_k)**2

    @classmethod
    def from_rows(
        cls, block: NDArray, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: TallySpec | None = None
    ) -> Self:
        """Tally one batch; ``y`` holds class codes, NaN is an absent value, an infinity shows as a non-finite mean."""
        if isinstance(block, Csr):
            what = "sparse rows where dense ones are needed: zeros are values here"
            raise InputTypeError(what, remedy="pass X.toarray()")
        spec = TallySpec.from_encoding("comoments", cls.encoding, block.shape[1]) if spec is None else spec
        scale = estimate_scale(TalliedRows(block, spec), len(block)) if len(block) else np.zeros(block.shape[1])

        def part(rows: slice) -> Any:
            found: dict[int, Any] = {}
            w = None if weight is None else weight[rows]
            with np.errstate(
                invalid="ignore", over="ignore"
            ):  # what is not finite stays so, and the engine reports where
                for c, x, wx in _chunks_by_class(block[rows], y[rows], w, n_classes):
                    x, wx = _complete_rows(spec.tally_values(x), wx)
                    if len(x):
                        more = cls._tally_with_outliers(x, wx, "fourth" in spec.extra_sums, scale)
                        found[c] = found[c].add_approximately(more) if c in found else more
            return cls._from_classes(found, cls.empty(n_classes, spec))

        # The work of a row grows with the square of its width.
        parts = threads.map_rows(part, len(block), cost=block.shape[1] ** 2, is_blas_bound=True)
        return reduce(cls.add_approximately, parts)

    @classmethod
    def _tally_with_outliers(cls, x: NDArray, w: Floats | None, fourth: bool, scale: Floats) -> Self:
        """The tally of rows of one class; those far from the others are counted apart, and added exactly."""
        whole = cls._tally_centred(x, w, fourth, scale)
        some = np.flatnonzero((scale > 0) & (whole.m2[0] > whole.weight[0, 0] * (IMPRECISE_RATIO * scale) ** 2))
        if not len(some) or not np.isfinite(whole.mean).all():
            return whole
        far = (np.abs(x[:, some] - np.median(x[:, some], axis=0)) > IMPRECISE_RATIO * scale[some]).any(axis=1)
        apart = [np.flatnonzero(~far)]
        apart += np.flatnonzero(far)[:, None].tolist() if far.sum() <= _MAX_SINGLE_ROWS else [np.flatnonzero(far)]
        each = ((x[rows], None if w is None else w[rows]) for rows in apart if len(rows))
        parts = [cls._tally_centred(*some_rows, fourth, scale) for some_rows in each]
        return reduce(add, parts)

    @classmethod
    def _tally_centred(cls, rows: NDArray, w: Floats | None, fourth: bool, scale: Floats) -> Self:
        """The tally of rows of one class. Columns that are the same in all of them have no scatter to work out."""
        varying = np.flatnonzero((rows != rows[0]).any(axis=0))
        x = rows[:, varying].astype(np.float64) if len(varying) < rows.shape[1] else rows.astype(np.float64)
        n = float(len(x)) if w is None else float(w.sum())
        mean = rows[0].astype(np.float64)
        mean[varying] = 0.0
        took = np.zeros(len(mean))  # by rounding, from the mean
        for _ in range(2):  # the first mean is not quite exact
            step = (x.sum(axis=0) if w is None else w @ x) / n
            x -= step
            mean[varying], took[varying] = two_sum(mean[varying], step)
        root = x if w is None else x * np.sqrt(w)[:, None]
        products = [root.T @ root]  # BLAS works out one triangle
        if fourth:
            square = x * root  # with the root of the weight in it
            products += [square.T @ root, square.T @ square]
        out = cls(np.array([[n]]), mean[None], *(embed_matrix(product, varying, len(mean)) for product in products))
        if is_mean_imprecise(mean, scale).any():  # the rounding of the mean shows: keep what it took
            drift = n * took
            drift[varying] += x.sum(axis=0) if w is None else w @ x
            out.__dict__["_rest"] = drift_residuals(mean, drift)[None]
            return cls._from_sums(out.sums, out.third, out.fourth)
        return out

    @classmethod
    def _from_classes(cls, found: dict[int, Self], out: Self) -> Self:
        """The tallies of single classes in one, which was empty."""
        for c, mine in found.items():
            for name in cls.state:
                if (state := getattr(mine, name)) is not None:
                    getattr(out, name)[c] = state[0]
        for c, mine in found.items():
            if mine._has_residuals:
                out.sums[c] = mine.sums[0]
        return out

    @classmethod
    def _from_sums(cls, sums: Floats, third: Floats | None = None, fourth: Floats | None = None) -> Self:
        weight, mean, scatter = comoments_from_sums(sums)
        root = np.sqrt(np.maximum(np.einsum("cjj->cj", sums[:, 1:, 1:, 0]), 0.0))
        scatter[np.abs(scatter) <= ROUNDING_SHARE * outer_product(root, root)] = 0.0
        np.einsum("cjj->cj", scatter)[:] = np.maximum(np.einsum("cjj->cj", scatter), 0.0)
        out = cls(weight, mean, scatter, third, fourth)
        out.__dict__["sums"] = sums
        return out

    @cached_property
    def sums(self) -> Floats:
        """(classes, 1 + features, 1 + features, part) the sums of w z z' with z = (1, x): what adds."""
        sums = sums_from_comoments(self.weight, self.mean, self.scatter, self.__dict__.get("_rest"))
        last = self.__dict__.get("_last")
        return sums if last is None else powers.add_last_residuals(sums, last)

    def _needs_exact_sum(self, other: Self) -> bool:
        """Whether a sum or a difference needs exact arithmetic: where doubles lose digits of one of the two."""
        if self._has_residuals or other._has_residuals:
            return True
        gap = np.where((self.weight > 0) & (other.weight > 0), other.mean - self.mean, 0.0)
        lift = gap * gap * divide_or_zero(self.weight * other.weight, self.weight + other.weight)
        small = np.minimum(np.where(self.m2 > 0, self.m2, np.inf), np.where(other.m2 > 0, other.m2, np.inf))
        return bool((lift + self.m2 + other.m2 > IMPRECISE_RATIO**2 * small).any())

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        p = spec.n_features
        more = [np.zeros((n_classes, p, p)) for _ in range(3 if "fourth" in spec.extra_sums else 1)]
        return cls(np.zeros((n_classes, 1)), np.zeros((n_classes, p)), *more)

    def _bounded_arrays(self) -> Iterator[NDArray]:
        """Yield sums of squares about 0 and the highest moments of single features; these bound all products."""
        with np.errstate(over="ignore", invalid="ignore"):
            yield self.m2 + self.weight * self.mean**2
        if self.fourth is not None:
            yield np.diagonal(self.fourth, axis1=1, axis2=2)
        arrays = (self.weight, self.mean, self.scatter, self.third)
        yield from (a.reshape(len(a), math.prod(a.shape[1:])) for a in arrays if a is not None)

    @property
    def n(self) -> Floats:
        """(classes, features) weight of the rows counted, the same for all features."""
        return np.broadcast_to(self.weight, self.mean.shape)

    @property
    def m2(self) -> Floats:
        """(classes, features) the diagonal of the scatter."""
        return np.diagonal(self.scatter, axis1=1, axis2=2)

    def to_moments(self) -> Moments:
        """The same rows, column by column."""
        return Moments(self.n.copy(), self.mean, self.m2.copy()).with_noise(self.noise)

    def __add__(self, other: Self) -> Self:
        self._check_compatible(other)
        if not self._needs_exact_sum(other):
            return self._chan(other)
        sums, noise = powers.add_sums(self.sums, other.sums), self.noise + other.noise
        if self.third is None:
            return self._from_sums(sums).with_noise(noise)
        rough = self._chan(other)
        return self._from_sums(sums, rough.third, rough.fourth).with_noise(noise)

    def add_approximately(self, other: Self) -> Self:
        """Return self + other for slices of one block, which have similar spread.

        The sum is in doubles, unless one of the two holds residuals.
        """
        return self + other if self._has_residuals or other._has_residuals else self._chan(other)

    def _chan(self, other: Self) -> Self:
        """Chan, Golub and LeVeque (1979), for a matrix; the empty tally is the identity."""
        weight = self.weight + other.weight
        with np.errstate(invalid="ignore", over="ignore"):
            both = (self.weight > 0) & (other.weight > 0)
            gap, share = np.where(both, other.mean - self.mean, 0.0), divide_or_zero(other.weight, weight)
            mean = np.where(self.weight > 0, self.mean + gap * share, other.mean)
            scatter = self.scatter + other.scatter
            if gap.any():
                scatter += outer_product(gap, gap, share * self.weight)
            if self.third is None or other.third is None or self.fourth is None or other.fourth is None:
                return type(self)(weight, mean, scatter)
            a, b = (np.where(t.weight > 0, t.mean - mean, 0.0) for t in (self, other))
            third = self.third + third_moment_gain(self, a) + other.third + third_moment_gain(other, b)
            fourth = self.fourth + fourth_moment_gain(self, a) + other.fourth + fourth_moment_gain(other, b)
        return type(self)(weight, mean, scatter, third, fourth)

    def __sub__(self, part: Self) -> Self:
        self._check_compatible(part)
        if not self._needs_exact_sum(part):
            return self.subtract_approximately(part)
        weight = subtract_weights(self.weight, part.weight)
        sums = powers.subtract_sums(self.sums, part.sums)
        sums[weight[:, 0] == 0] = 0.0
        _, mean, scatter = comoments_from_sums(sums)
        whole, gone, n = self.to_moments(), part.to_moments(), np.broadcast_to(weight, mean.shape)
        spread = np.einsum("cjj->cj", scatter).copy()
        settled, m2 = whole.remaining_moments(gone, n, mean, spread)
        gross = np.where(weight[:, :, None] > 0, scatter, subtract_sums(self.scatter, part.scatter))
        check_remaining_scatter(gross, weight, part.weight, whole.rounding_slack(gone, n))
        if (settled != mean).any() or (m2 != spread).any():
            sums = sums_from_comoments(weight, settled, bound_covariances(scatter, m2))
        noise = whole.remaining_noise(gone, n, np.einsum("cjj->cj", sums[:, 1:, 1:, 0]))
        return self._restore_higher_moments(part, self._from_sums(sums)).with_noise(noise)

    def subtract_approximately(self, part: Self) -> Self:
        """Self - part in doubles."""
        whole, gone = self.to_moments(), part.to_moments()
        left = whole.subtract_approximately(gone)  # and the error, where it does not
        weight = left.n[:, :1]
        gap = np.where(part.weight > 0, self.mean - part.mean, 0.0)
        lift = outer_product(gap, gap, part.weight * divide_or_zero(self.weight, weight))
        scatter = subtract_sums(self.scatter, part.scatter) - lift
        check_remaining_scatter(scatter, weight, part.weight, whole.rounding_slack(gone, left.n))
        rest = type(self)(weight.copy(), left.mean, bound_covariances(scatter, left.m2))
        return self._restore_higher_moments(part, rest)

    def _restore_higher_moments(self, part: Self, left: Self) -> Self:
        """What is left without ``part``, with its third and fourth moments where they are kept."""
        if self.third is None or part.third is None or self.fourth is None or part.fourth is None:
            return left
        part_shift = np.where(part.weight > 0, part.mean - self.mean, 0.0)
        left_shift = np.where(left.weight > 0, left.mean - self.mean, 0.0)
        has_rows = (left.weight > 0)[:, :, None]
        third = self.third - (part.third + third_moment_gain(part, part_shift)) - third_moment_gain(left, left_shift)
        third = np.where(has_rows, third, 0.0)
        fourth = self.fourth - (part.fourth + fourth_moment_gain(part, part_shift))
        fourth = fourth - fourth_moment_gain(replace(left, third=third), left_shift)
        check_fourth_moments(self.fourth, left, part.weight)
        out = replace(left, third=third, fourth=np.where(has_rows, np.maximum(fourth, 0.0), 0.0))
        out.__dict__.update({"sums": left.sums} if left._has_residuals else {})
        return out

    def scale(self, factor: float | Floats) -> Self:
        weight = self.weight * broadcast_by_class(factor, 2)
        mean = np.where(weight > 0, self.mean, 0.0)
        matrices = {"scatter": self.scatter, "third": self.third, "fourth": self.fourth}
        scaled = {name: a * broadcast_by_class(factor, 3) for name, a in matrices.items() if a is not None}
        out = type(self)(weight, mean, **scaled)
        if self._has_residuals:
            out.__dict__["sums"] = powers.scale_sums(self.sums, broadcast_by_class(factor, self.sums.ndim - 1))
        return out._with_scaled_noise(self.noise, factor)

    def pool(self) -> Self:
        nothing = self._map_arrays(lambda a: np.zeros((1, *a.shape[1:])))
        return reduce(add, (self.select_classes(np.array([c])) for c in range(len(self.weight))), nothing)

    def select_features(self, features: Codes) -> Self:
        """The tally of some of the features, over the same rows."""
        square = Tally._map_arrays(self, lambda a: a[:, features[:, None], features] if a.ndim == 3 else a)
        out = replace(square, mean=self.mean[:, features])
        if self._has_residuals:
            at = np.concatenate([[0], features + 1])
            out.__dict__["sums"] = self.sums[:, at[:, None], at]
        return out.with_noise(self.noise[:, features] if "_noise" in self.__dict__ else 0.0)

    def locate_cell(self, cell: int) -> tuple[int, int | None]:
        return cell % max(1, self.mean.shape[1]), None

    def summarize_feature(self, j: int) -> dict[str, float]:
        return {"mean": float(self.mean[0, j]), "sd": float(np.sqrt(self.m2[0, j] / self.n[0, j]))}

    def arrays(self) -> dict[str, NDArray]:
        """The whole state; of a symmetric matrix the lower triangle."""
        lower = np.tril_indices(self.mean.shape[1])
        state = {"weight": self.weight, "mean": self.mean, "scatter": self.scatter[:, *lower]}
        if self.third is None or self.fourth is None:
            return state
        flat = self.third.reshape(len(self.third), self.mean.shape[1] ** 2)
        return state | {"third": flat, "fourth": self.fourth[:, *lower]}

    def rounding_residuals(self) -> dict[str, NDArray]:
        """What rounding took, of the lower triangle."""
        if not self._has_residuals:
            return {}
        lower = np.tril_indices(self.mean.shape[1] + 1)
        state = self.weight, self.mean, self.scatter
        rest = residuals_of_sums(self.sums, *state)
        last = powers.last_residuals(self.sums, sums_from_comoments(*state, rest))
        return self._residual_arrays(rest=rest[:, *lower], last=last[:, *lower])

    @classmethod
    def residual_shapes(cls, n_classes: int, spec: TallySpec) -> dict[str, tuple[int, int]]:
        q = spec.n_features + 1
        cells = q * (q + 1) // 2
        noise = (n_classes, spec.n_features)
        return {"rest": (n_classes, N_RESIDUALS * cells), "last": (n_classes, cells), "noise": noise}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec) -> Self:
        mean = arrays["mean"]
        p = mean.shape[1]
        state = {"weight": arrays["weight"], "mean": mean, "scatter": symmetric_from_lower(arrays["scatter"], p)}
        if "fourth" in arrays:
            third = np.array(arrays["third"]).reshape(len(mean), p, p)
            state |= {"third": third, "fourth": symmetric_from_lower(arrays["fourth"], p)}
        out = cls(**state)
        if "rest" in arrays:
            rest = arrays["rest"].reshape(len(mean), -1, N_RESIDUALS)
            matrices = [symmetric_from_lower(rest[..., i], p + 1) for i in range(N_RESIDUALS)]
            out.__dict__["_rest"] = np.stack(matrices, axis=-1)
        if "last" in arrays:
            out.__dict__["_last"] = symmetric_from_lower(arrays["last"], p + 1)
        return out.with_noise(arrays.get("noise", 0.0))

    def _check_compatible(self, other: Self) -> None:
        check_same_shape(self.mean, other.mean)
        if (self.third is None) != (other.third is None):
            what = "one of these tallies keeps the fourth moments of shrinkage='ledoit-wolf' and the other does not"
            raise MergeError(what, remedy="count both with the same shrinkage")


def _chunks_by_class(
    block: NDArray, y: Codes, weight: Floats | None, n_classes: int
) -> Iterator[tuple[int, NDArray, Floats | None]]:
    """Rows of one class after another, copied a chunk at a time, with their weights; rows without weight left out."""
    order = np.argsort(y, kind="stable") if n_classes > 1 else np.arange(len(y))
    if weight is not None:
        order = order[weight[order] > 0]
    edges = np.searchsorted(y[order], np.arange(n_classes + 1))
    step = max(_MIN_CHUNK_ROWS, _CHUNK_VALUES // max(1, block.shape[1]))
    for c in range(n_classes):
        for start in range(edges[c], edges[c + 1], step):
            rows = order[start : min(start + step, edges[c + 1])]
            yield c, block[rows], None if weight is None else weight[rows]


def _complete_rows(x: NDArray, w: Floats | None) -> tuple[NDArray, Floats | None]:
    """The rows without an absent value."""
    if x.dtype.kind == "f" and (absent := np.isnan(x).any(axis=1)).any():
        x, w = x[~absent], None if w is None else w[~absent]
    return x, w
