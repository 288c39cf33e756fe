"""CoMoments: weight, mean and scatter matrix of a group of columns, per class.

A row counts whole or not at all: one with an absent value in the group is left out of the group's tally (the complete
cases), because a scatter matrix put together from different rows need not be one. Where ``TallySpec.extra_sums`` has
``fourth`` the sums of x_j^2 x_k and x_j^2 x_k^2 about the mean are kept as well; with them Ledoit and Wolf's shrinkage
needs no second pass over the data.
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
from candide.tally import base, precision
from candide.tally.base import TalliedRows, Tally, TallySpec
from candide.tally.moments import ROUNDING_SHARE, Moments
from candide.tally.precision import IMPRECISE_RATIO, ExactSums, outer_product

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
        tallied = TalliedRows(block, spec)
        scale = precision.estimate_scale(tallied, len(block)) if len(block) else np.zeros(block.shape[1])

        def part(rows: slice) -> Any:
            tallies: dict[int, Any] = {}
            w = None if weight is None else weight[rows]
            with np.errstate(invalid="ignore", over="ignore"):  # the engine reports where values are not finite
                for c, x, wx in _chunks_by_class(block[rows], y[rows], w, n_classes):
                    x = spec.tally_values(x)
                    if x.dtype.kind == "f" and (absent := np.isnan(x).any(axis=1)).any():
                        x, wx = x[~absent], None if wx is None else wx[~absent]
                    if len(x):
                        chunk = cls._tally_with_outliers(x, wx, "fourth" in spec.extra_sums, scale)
                        tallies[c] = tallies[c].add_approximately(chunk) if c in tallies else chunk
            out = cls.empty(n_classes, spec)
            for c, tally in tallies.items():
                for name, array in Tally.arrays(tally).items():
                    getattr(out, name)[c] = array[0]
            for c, tally in tallies.items():
                if tally._has_residuals:
                    out.sums[c] = tally.sums[0]
            return out

        # The work of a row grows with the square of its width.
        parts = threads.map_rows(part, len(block), cost=block.shape[1] ** 2, is_blas_bound=True)
        return reduce(cls.add_approximately, parts)

    @classmethod
    def _tally_with_outliers(cls, x: NDArray, w: Floats | None, fourth: bool, scale: Floats) -> Self:
        """The tally of rows of one class; those far from the others are counted separately, and added exactly."""
        whole = cls._tally_centred(x, w, fourth, scale)
        wide = np.flatnonzero((scale > 0) & (whole.m2[0] > whole.weight[0, 0] * (IMPRECISE_RATIO * scale) ** 2))
        if not len(wide) or not np.isfinite(whole.mean).all():
            return whole
        is_far = (np.abs(x[:, wide] - np.median(x[:, wide], axis=0)) > IMPRECISE_RATIO * scale[wide]).any(axis=1)
        near, far = np.flatnonzero(~is_far), np.flatnonzero(is_far)
        groups = [near, *(far[:, None].tolist() if len(far) <= _MAX_SINGLE_ROWS else [far])]
        weights = (None if w is None else w[rows] for rows in groups)
        parts = zip(groups, weights, strict=True)
        return reduce(add, [cls._tally_centred(x[rows], wx, fourth, scale) for rows, wx in parts if len(rows)])

    @classmethod
    def _tally_centred(cls, rows: NDArray, w: Floats | None, fourth: bool, scale: Floats) -> Self:
        """The tally of rows of one class. Columns that are the same in all of them have no scatter to work out."""
        varying = np.flatnonzero((rows != rows[0]).any(axis=0))
        x = (rows[:, varying] if len(varying) < rows.shape[1] else rows).astype(np.float64)
        n = float(len(x)) if w is None else float(w.sum())
        mean = rows[0].astype(np.float64)
        mean[varying] = 0.0
        lost = np.zeros(len(mean))  # by rounding, from the mean
        for _ in range(2):  # the first mean is not quite exact
            step = (x.sum(axis=0) if w is None else w @ x) / n
            x -= step
            mean[varying], lost[varying] = two_sum(mean[varying], step)
        root = x if w is None else x * np.sqrt(w)[:, None]
        products = [root.T @ root]  # BLAS works out one triangle
        if fourth:
            square = x * root  # with the root of the weight in it
            products += [square.T @ root, square.T @ square]
        matrices = (precision.embed_matrix(product, varying, len(mean)) for product in products)
        out = cls(np.array([[n]]), mean[None], *matrices)
        if precision.is_mean_imprecise(mean, scale).any():  # the rounding of the mean shows: keep what it took
            drift = n * lost
            drift[varying] += x.sum(axis=0) if w is None else w @ x
            out.__dict__["_rest"] = precision.drift_residuals(mean, drift)[None]
            return cls._from_sums(out.sums, out.third, out.fourth)
        return out

    @classmethod
    def _from_sums(cls, sums: Floats, third: Floats | None = None, fourth: Floats | None = None) -> Self:
        weight, mean, scatter = precision.comoments_from_sums(sums)
        root = np.sqrt(np.maximum(np.einsum("cjj->cj", sums[:, 1:, 1:, 0]), 0.0))
        scatter[np.abs(scatter) <= ROUNDING_SHARE * outer_product(root, root)] = 0.0
        np.einsum("cjj->cj", scatter)[:] = np.maximum(np.einsum("cjj->cj", scatter), 0.0)
        out = cls(weight, mean, scatter, third, fourth)
        out.__dict__["sums"] = sums
        return out

    @cached_property
    def sums(self) -> Floats:
        """(classes, 1 + features, 1 + features, part) the sums of w z z' with z = (1, x): what adds."""
        sums = precision.sums_from_comoments(self.weight, self.mean, self.scatter, self.__dict__.get("_rest"))
        last = self.__dict__.get("_last")
        return sums if last is None else powers.add_last_residuals(sums, last)

    def _needs_exact_sum(self, other: Self) -> bool:
        """Whether a sum or a difference needs exact arithmetic: where doubles lose digits of one of the two."""
        if self._has_residuals or other._has_residuals:
            return True
        gap = np.where((self.weight > 0) & (other.weight > 0), other.mean - self.mean, 0.0)
        lift = gap * gap * base.divide_or_zero(self.weight * other.weight, self.weight + other.weight)
        small = np.minimum(np.where(self.m2 > 0, self.m2, np.inf), np.where(other.m2 > 0, other.m2, np.inf))
        return bool((lift + self.m2 + other.m2 > IMPRECISE_RATIO**2 * small).any())

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        p = spec.n_features
        matrices = (np.zeros((n_classes, p, p)) for _ in range(3 if "fourth" in spec.extra_sums else 1))
        return cls(np.zeros((n_classes, 1)), np.zeros((n_classes, p)), *matrices)

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
        """Self + other in doubles, unless one holds residuals: for slices of one block, which have similar spread."""
        return self + other if self._has_residuals or other._has_residuals else self._chan(other)

    def _chan(self, other: Self) -> Self:
        """Chan, Golub and LeVeque (1979), for a matrix; the empty tally is the identity."""
        weight = self.weight + other.weight
        with np.errstate(invalid="ignore", over="ignore"):
            both = (self.weight > 0) & (other.weight > 0)
            gap, share = np.where(both, other.mean - self.mean, 0.0), base.divide_or_zero(other.weight, weight)
            mean = np.where(self.weight > 0, self.mean + gap * share, other.mean)
            scatter = self.scatter + other.scatter
            if gap.any():
                scatter += outer_product(gap, gap, share * self.weight)
            if self.third is None or other.third is None or self.fourth is None or other.fourth is None:
                return type(self)(weight, mean, scatter)
            a, b = (np.where(t.weight > 0, t.mean - mean, 0.0) for t in (self, other))
            third = self.third + self._third_moment_gain(a) + other.third + other._third_moment_gain(b)
            fourth = self.fourth + self._fourth_moment_gain(a) + other.fourth + other._fourth_moment_gain(b)
        return type(self)(weight, mean, scatter, third, fourth)

    def __sub__(self, part: Self) -> Self:
        self._check_compatible(part)
        if not self._needs_exact_sum(part):
            return self.subtract_approximately(part)
        weight = base.subtract_weights(self.weight, part.weight)
        sums = powers.subtract_sums(self.sums, part.sums)
        sums[weight[:, 0] == 0] = 0.0
        _, mean, scatter = precision.comoments_from_sums(sums)
        whole, removed, n = self.to_moments(), part.to_moments(), np.broadcast_to(weight, mean.shape)
        spread = np.einsum("cjj->cj", scatter).copy()
        settled, m2 = whole.remaining_moments(removed, n, mean, spread)
        gross = np.where(weight[:, :, None] > 0, scatter, base.subtract_sums(self.scatter, part.scatter))
        precision.check_remaining_scatter(gross, weight, part.weight, whole.rounding_slack(removed, n))
        if (settled != mean).any() or (m2 != spread).any():
            sums = precision.sums_from_comoments(weight, settled, precision.bound_covariances(scatter, m2))
        noise = whole.remaining_noise(removed, n, np.einsum("cjj->cj", sums[:, 1:, 1:, 0]))
        return self._restore_higher_moments(part, self._from_sums(sums)).with_noise(noise)

    def subtract_approximately(self, part: Self) -> Self:
        whole, removed = self.to_moments(), part.to_moments()
        left = whole.subtract_approximately(removed)  # and the error, where it does not
        weight = left.n[:, :1]
        gap = np.where(part.weight > 0, self.mean - part.mean, 0.0)
        lift = outer_product(gap, gap, part.weight * base.divide_or_zero(self.weight, weight))
        scatter = base.subtract_sums(self.scatter, part.scatter) - lift
        precision.check_remaining_scatter(scatter, weight, part.weight, whole.rounding_slack(removed, left.n))
        rest = type(self)(weight.copy(), left.mean, precision.bound_covariances(scatter, left.m2))
        return self._restore_higher_moments(part, rest)

    def _restore_higher_moments(self, part: Self, left: Self) -> Self:
        """What is left without ``part``, with its third and fourth moments where they are kept."""
        if self.third is None or part.third is None or self.fourth is None or part.fourth is None:
            return left
        part_shift = np.where(part.weight > 0, part.mean - self.mean, 0.0)
        left_shift = np.where(left.weight > 0, left.mean - self.mean, 0.0)
        has_rows = (left.weight > 0)[:, :, None]
        third = self.third - (part.third + part._third_moment_gain(part_shift)) - left._third_moment_gain(left_shift)
        third = np.where(has_rows, third, 0.0)
        fourth = self.fourth - (part.fourth + part._fourth_moment_gain(part_shift))
        fourth = fourth - replace(left, third=third)._fourth_moment_gain(left_shift)
        pooled = left.to_moments().pool()
        usual = left.weight * base.divide_or_zero(pooled.m2, pooled.n) ** 2  # no rows of this spread have less
        few = (part.weight > 0) & (30 * part.weight < left.weight)  # of few rows that are left nothing much was known
        # The fourth moments are kept in doubles: those of the rest may be lost beside the rows removed.
        lost = (1e-13 * np.einsum("cjj->cj", self.fourth) > 1e-3 * usual) & (usual > 0) & few
        what = "the values removed are so large that the fourth moments of what is left were lost beside them, which"
        base.refuse_removal(lost, f"{what} shrinkage='ledoit-wolf' needs; fit again without them")
        out = replace(left, third=third, fourth=np.where(has_rows, np.maximum(fourth, 0.0), 0.0))
        out.__dict__.update({"sums": left.sums} if left._has_residuals else {})
        return out

    def _third_moment_gain(self, d: Floats) -> Floats:
        """What the third moments gain where residuals, whose sum is zero, grow by ``d``."""
        return outer_product(self.m2, d) + 2.0 * d[:, :, None] * self.scatter + outer_product(d * d, d, self.weight)

    def _fourth_moment_gain(self, d: Floats) -> Floats:
        """What the fourth moments gain where residuals grow by ``d``."""
        assert self.third is not None
        mixed = 2.0 * self.third * d[:, None, :] + outer_product(self.m2, d * d)
        mixed = mixed + np.swapaxes(mixed, 1, 2)
        return mixed + 4.0 * outer_product(d, d) * self.scatter + outer_product(d * d, d * d, self.weight)

    def scale(self, factor: float | Floats) -> Self:
        weight = self.weight * base.broadcast_by_class(factor, 2)
        matrices: Any = (a if a is None else a * base.broadcast_by_class(factor, 3) for a in self._matrices)
        out = type(self)(weight, np.where(weight > 0, self.mean, 0.0), *matrices)
        if self._has_residuals:
            out.__dict__["sums"] = powers.scale_sums(self.sums, base.broadcast_by_class(factor, self.sums.ndim - 1))
        return out._with_scaled_noise(self.noise, factor)

    @property
    def _matrices(self) -> tuple[Any, Any, Any]:
        return self.scatter, self.third, self.fourth

    def pool(self) -> Self:
        nothing = self._map_arrays(lambda a: np.zeros((1, *a.shape[1:])))
        return reduce(add, (self.select_classes(np.array([c])) for c in range(len(self.weight))), nothing)

    def select_features(self, features: Codes) -> Self:
        matrices: Any = (a if a is None else a[:, features[:, None], features] for a in self._matrices)
        out = type(self)(self.weight, self.mean[:, features], *matrices)
        if self._has_residuals:
            at = np.concatenate([[0], features + 1])
            out.__dict__["sums"] = self.sums[:, at[:, None], at]
        return out.with_noise(self.noise[:, features] if "_noise" in self.__dict__ else 0.0)

    def locate_cell(self, cell: int) -> tuple[int, int | None]:
        return cell % max(1, self.mean.shape[1]), None

    def summarize_feature(self, j: int) -> dict[str, float]:
        return self.to_moments().summarize_feature(j)

    def arrays(self) -> dict[str, NDArray]:
        """The whole state; of a symmetric matrix the lower triangle."""
        lower = np.tril_indices(self.mean.shape[1])
        state = {"weight": self.weight, "mean": self.mean, "scatter": self.scatter[:, *lower]}
        if self.third is None or self.fourth is None:
            return state
        flat = self.third.reshape(len(self.third), self.mean.shape[1] ** 2)
        return state | {"third": flat, "fourth": self.fourth[:, *lower]}

    def rounding_residuals(self) -> dict[str, NDArray]:
        if not self._has_residuals:
            return {}
        lower = np.tril_indices(self.mean.shape[1] + 1)
        state = self.weight, self.mean, self.scatter
        rest = powers.subtract_sums(self.sums, precision.sums_from_comoments(*state))[..., : precision.N_RESIDUALS]
        last = powers.last_residuals(self.sums, precision.sums_from_comoments(*state, rest))
        return self._residual_arrays(rest=rest[:, *lower], last=last[:, *lower])

    @classmethod
    def residual_shapes(cls, n_classes: int, spec: TallySpec) -> dict[str, tuple[int, int]]:
        n_cells = (spec.n_features + 1) * (spec.n_features + 2) // 2
        sizes = {"rest": precision.N_RESIDUALS * n_cells, "last": n_cells, "noise": spec.n_features}
        return {name: (n_classes, size) for name, size in sizes.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec) -> Self:
        mean = arrays["mean"]
        p = mean.shape[1]
        matrices = [precision.symmetric_from_lower(arrays["scatter"], p)]
        if "fourth" in arrays:
            third = np.array(arrays["third"]).reshape(len(mean), p, p)
            matrices += [third, precision.symmetric_from_lower(arrays["fourth"], p)]
        out = cls(arrays["weight"], mean, *matrices)
        if "rest" in arrays:
            rest = arrays["rest"].reshape(len(mean), -1, precision.N_RESIDUALS)
            parts = [precision.symmetric_from_lower(rest[..., i], p + 1) for i in range(precision.N_RESIDUALS)]
            out.__dict__["_rest"] = np.stack(parts, axis=-1)
        if "last" in arrays:
            out.__dict__["_last"] = precision.symmetric_from_lower(arrays["last"], p + 1)
        return out.with_noise(arrays.get("noise", 0.0))

    def _check_compatible(self, other: Self) -> None:
        base.check_same_shape(self.mean, other.mean)
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
