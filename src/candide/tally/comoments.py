"""CoMoments: weight, mean and scatter matrix of a group of columns, per class.

A row counts whole or not at all: one with an absent value in the group is left out of the group's tally (the complete
cases), because a scatter matrix put together from different rows need not be one. Where ``Spec.keep`` names the
``fourth`` the sums of x_j^2 x_k and x_j^2 x_k^2 about the mean are kept as well; with them Ledoit and Wolf's shrinkage
needs no second look at the data.

>>> X, y = np.array([[1.0, 2.0], [3.0, 6.0], [np.nan, 1.0], [4.0, 4.0]]), np.array([0, 0, 0, 1])
>>> count = lambda rows: CoMoments.of(X[rows], y[rows], n_classes=2)
>>> whole = count(slice(0, 1)) + count(slice(1, 4))
>>> whole.weight.ravel().tolist(), whole.mean.tolist(), whole.scatter[0].tolist()
([2.0, 1.0], [[2.0, 4.0], [4.0, 4.0]], [[2.0, 4.0], [4.0, 8.0]])
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputTypeError, MergeError
from candide.kernels import threads
from candide.numerics import two_sum
from candide.rows.blocks import Codes, Csr, Floats
from candide.tally import products as products_of
from candide.tally.base import Spec, Tallied, Tally, by_class, difference, minus, ratio, same_shape
from candide.tally.moments import NOTHING, Moments
from candide.tally.noise import Noisy
from candide.tally.scatter import (
    bounded,
    check_fourth,
    check_left,
    fourth_gained,
    outer,
    spread_out,
    symmetric,
    third_gained,
)
from candide.tally.spread import FAR, far_off, scale_of

_CHUNK = 1 << 22  # values centred at a time: enough rows for BLAS to be quick, and small beside the input
_FEWEST = 256  # rows of a chunk, however wide
_SINGLY = 64  # rows far from the others that are counted one by one; more are counted together


@dataclass(frozen=True, eq=False)
class CoMoments(Noisy, Tally):
    state: ClassVar[tuple[str, ...]] = ("weight", "mean", "scatter", "third", "fourth")

    weight: Floats  # (classes, 1) of the rows without an absent value
    mean: Floats  # (classes, features) zero where the weight is zero
    scatter: Floats  # (classes, features, features) sum of w * (x_j - mean_j) * (x_k - mean_k)
    third: Floats | None = None  # (classes, features, features) sum of w * (x_j - mean_j)**2 * (x_k - mean_k)
    fourth: Floats | None = None  # (classes, features, features) sum of w * (x_j - mean_j)**2 * (x_k - mean_k)**2

    @classmethod
    def of(
        cls, block: NDArray, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: Spec | None = None
    ) -> Self:
        """Tally one batch; ``y`` holds class codes, NaN is an absent value, an infinity shows as a non-finite mean."""
        if isinstance(block, Csr):
            what = "sparse rows where dense ones are needed: zeros are values here"
            raise InputTypeError(what, remedy="pass X.toarray()")
        spec = Spec.alike("comoments", cls.encoding, block.shape[1]) if spec is None else spec
        scale = scale_of(Tallied(block, spec), len(block)) if len(block) else np.zeros(block.shape[1])

        def part(rows: slice) -> Any:
            found: dict[int, Any] = {}
            w = None if weight is None else weight[rows]
            with np.errstate(invalid="ignore", over="ignore"):  # what is not finite stays so, for the engine to say
                for c, x, wx in _by_class(block[rows], y[rows], w, n_classes):
                    x, wx = _complete(spec.tallied(x), wx)
                    if len(x):
                        more = cls._near_and_far(x, wx, "fourth" in spec.keep, scale)
                        found[c] = found[c].beside(more) if c in found else more
            return cls._of_classes(found, cls.empty(n_classes, spec))

        # The work of a row grows with the square of its width.
        parts = threads.over_rows(part, len(block), cost=block.shape[1] ** 2, by_blas=True)
        return reduce(cls.beside, parts)

    @classmethod
    def _near_and_far(cls, x: NDArray, w: Floats | None, fourth: bool, scale: Floats) -> Self:
        """The tally of rows of one class; those far from the others are counted apart, and added exactly."""
        whole = cls._centred(x, w, fourth, scale)
        some = np.flatnonzero((scale > 0) & (whole.m2[0] > whole.weight[0, 0] * (FAR * scale) ** 2))
        if not len(some) or not np.isfinite(whole.mean).all():
            return whole
        far = (np.abs(x[:, some] - np.median(x[:, some], axis=0)) > FAR * scale[some]).any(axis=1)
        apart = [np.flatnonzero(~far)]
        apart += np.flatnonzero(far)[:, None].tolist() if far.sum() <= _SINGLY else [np.flatnonzero(far)]
        each = ((x[rows], None if w is None else w[rows]) for rows in apart if len(rows))
        parts = [cls._centred(*some_rows, fourth, scale) for some_rows in each]
        return reduce(add, parts)

    @classmethod
    def _centred(cls, rows: NDArray, w: Floats | None, fourth: bool, scale: Floats) -> Self:
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
        out = cls(np.array([[n]]), mean[None], *(spread_out(product, varying, len(mean)) for product in products))
        if far_off(mean, scale).any():  # the rounding of the mean shows: keep what it took
            drift = n * took
            drift[varying] += x.sum(axis=0) if w is None else w @ x
            out.__dict__["_rest"] = products_of.drifted(mean, drift)[None]
            return cls._of_sums(out.sums, out.third, out.fourth)
        return out

    @classmethod
    def _of_classes(cls, found: dict[int, Self], out: Self) -> Self:
        """The tallies of single classes in one, which was empty."""
        for c, mine in found.items():
            for name in cls.state:
                if (state := getattr(mine, name)) is not None:
                    getattr(out, name)[c] = state[0]
        for c, mine in found.items():
            if mine._exact:
                out.sums[c] = mine.sums[0]
        return out

    @classmethod
    def _of_sums(cls, sums: Floats, third: Floats | None = None, fourth: Floats | None = None) -> Self:
        weight, mean, scatter = products_of.comoments_of(sums)
        root = np.sqrt(np.maximum(np.einsum("cjj->cj", sums[:, 1:, 1:, 0]), 0.0))
        scatter[np.abs(scatter) <= NOTHING * outer(root, root)] = 0.0
        np.einsum("cjj->cj", scatter)[:] = np.maximum(np.einsum("cjj->cj", scatter), 0.0)
        out = cls(weight, mean, scatter, third, fourth)
        out.__dict__["sums"] = sums
        return out

    @cached_property
    def sums(self) -> Floats:
        """(classes, 1 + features, 1 + features, part) the sums of w z z' with z = (1, x): what adds."""
        sums = products_of.of_comoments(self.weight, self.mean, self.scatter, self.__dict__.get("_rest"))
        last = self.__dict__.get("_last")
        return sums if last is None else products_of.with_last(sums, last)

    @property
    def _exact(self) -> bool:
        """Whether the sums hold more than weight, mean and scatter."""
        return not self.__dict__.keys().isdisjoint(("sums", "_rest", "_last", "_noise"))

    def _exactly(self, other: Self) -> bool:
        """Whether a sum or a difference needs exact arithmetic: where doubles lose digits of one of the two."""
        if self._exact or other._exact:
            return True
        gap = np.where((self.weight > 0) & (other.weight > 0), other.mean - self.mean, 0.0)
        lift = gap * gap * ratio(self.weight * other.weight, self.weight + other.weight)
        small = np.minimum(np.where(self.m2 > 0, self.m2, np.inf), np.where(other.m2 > 0, other.m2, np.inf))
        return bool((lift + self.m2 + other.m2 > FAR**2 * small).any())

    @classmethod
    def empty(cls, n_classes: int, spec: Spec) -> Self:
        p = spec.n_features
        more = [np.zeros((n_classes, p, p)) for _ in range(3 if "fourth" in spec.keep else 1)]
        return cls(np.zeros((n_classes, 1)), np.zeros((n_classes, p)), *more)

    def _bounded(self) -> Iterator[NDArray]:
        """Yield sums of squares about 0 and the highest moments of single features; these bound all products."""
        with np.errstate(over="ignore", invalid="ignore"):
            yield self.m2 + self.weight * self.mean**2
        if self.fourth is not None:
            yield np.diagonal(self.fourth, axis1=1, axis2=2)
        yield from (a.reshape(len(a), -1) for a in (self.weight, self.mean, self.scatter, self.third) if a is not None)

    @property
    def n(self) -> Floats:
        """(classes, features) weight of the rows counted, alike for all features."""
        return np.broadcast_to(self.weight, self.mean.shape)

    @property
    def m2(self) -> Floats:
        """(classes, features) the diagonal of the scatter."""
        return np.diagonal(self.scatter, axis1=1, axis2=2)

    def moments(self) -> Moments:
        """The same rows, column by column."""
        return Moments(self.n.copy(), self.mean, self.m2.copy()).with_noise(self.noise)

    def __add__(self, other: Self) -> Self:
        self._check(other)
        if not self._exactly(other):
            return self._chan(other)
        sums, noise = products_of.plus(self.sums, other.sums), self.noise + other.noise
        if self.third is None:
            return self._of_sums(sums).with_noise(noise)
        rough = self._chan(other)
        return self._of_sums(sums, rough.third, rough.fourth).with_noise(noise)

    def beside(self, other: Self) -> Self:
        """Self + other, in doubles where neither holds more: of slices of one block, which spread alike."""
        return self + other if self._exact or other._exact else self._chan(other)

    def _chan(self, other: Self) -> Self:
        """Chan, Golub and LeVeque (1979), for a matrix; the empty tally is the identity."""
        weight = self.weight + other.weight
        with np.errstate(invalid="ignore", over="ignore"):
            both = (self.weight > 0) & (other.weight > 0)
            gap, share = np.where(both, other.mean - self.mean, 0.0), ratio(other.weight, weight)
            mean = np.where(self.weight > 0, self.mean + gap * share, other.mean)
            scatter = self.scatter + other.scatter
            if gap.any():
                scatter += outer(gap, gap, share * self.weight)
            if self.third is None or other.third is None or self.fourth is None or other.fourth is None:
                return type(self)(weight, mean, scatter)
            here, there = (np.where(t.weight > 0, t.mean - mean, 0.0) for t in (self, other))
            third = self.third + third_gained(self, here) + other.third + third_gained(other, there)
            fourth = self.fourth + fourth_gained(self, here) + other.fourth + fourth_gained(other, there)
        return type(self)(weight, mean, scatter, third, fourth)

    def __sub__(self, part: Self) -> Self:
        """Remove rows counted earlier. A partial inverse: ``part`` must lie within ``self``."""
        self._check(part)
        if not self._exactly(part):
            return self.less(part)
        weight = minus(self.weight, part.weight)
        sums = products_of.minus(self.sums, part.sums)
        sums[weight[:, 0] == 0] = 0.0
        _, mean, scatter = products_of.comoments_of(sums)
        whole, gone, n = self.moments(), part.moments(), np.broadcast_to(weight, mean.shape)
        spread = np.einsum("cjj->cj", scatter).copy()
        settled, m2 = whole.settled(gone, n, mean, spread)
        gross = np.where(weight[:, :, None] > 0, scatter, difference(self.scatter, part.scatter))
        check_left(gross, weight, part.weight, whole.slack(gone, n))
        if (settled != mean).any() or (m2 != spread).any():
            sums = products_of.of_comoments(weight, settled, bounded(scatter, m2))
        noise = whole.noise_left(gone, n, np.einsum("cjj->cj", sums[:, 1:, 1:, 0]))
        return self._with_higher(part, self._of_sums(sums)).with_noise(noise)

    def less(self, part: Self) -> Self:
        """Self - part in doubles."""
        whole, gone = self.moments(), part.moments()
        left = whole.less(gone)  # and the error, where it does not
        weight = left.n[:, :1]
        gap = np.where(part.weight > 0, self.mean - part.mean, 0.0)
        lift = outer(gap, gap, part.weight * ratio(self.weight, weight))
        scatter = difference(self.scatter, part.scatter) - lift
        check_left(scatter, weight, part.weight, whole.slack(gone, left.n))
        return self._with_higher(part, type(self)(weight.copy(), left.mean, bounded(scatter, left.m2)))

    def _with_higher(self, part: Self, left: Self) -> Self:
        """What is left without ``part``, with its third and fourth moments where they are kept."""
        if self.third is None or part.third is None or self.fourth is None or part.fourth is None:
            return left
        there = np.where(part.weight > 0, part.mean - self.mean, 0.0)
        here = np.where(left.weight > 0, left.mean - self.mean, 0.0)
        some = (left.weight > 0)[:, :, None]
        third = np.where(some, self.third - (part.third + third_gained(part, there)) - third_gained(left, here), 0.0)
        fourth = (
            self.fourth - (part.fourth + fourth_gained(part, there)) - fourth_gained(replace(left, third=third), here)
        )
        check_fourth(self.fourth, left, part.weight)
        out = replace(left, third=third, fourth=np.where(some, np.maximum(fourth, 0.0), 0.0))
        out.__dict__.update({"sums": left.sums} if left._exact else {})
        return out

    def scale(self, factor: float | Floats) -> Self:
        """Let every row count ``factor`` times: forgetting."""
        weight = self.weight * by_class(factor, 2)
        mean = np.where(weight > 0, self.mean, 0.0)
        rest = (None if a is None else a * by_class(factor, a.ndim) for a in (self.scatter, self.third, self.fourth))
        out = type(self)(weight, mean, *rest)  # type: ignore[arg-type]
        if self._exact:
            out.__dict__["sums"] = products_of.scaled(self.sums, by_class(factor, self.sums.ndim - 1))
        return out.with_noise(self.noise * by_class(factor, np.ndim(self.noise)))

    def _each(self, change: Any) -> Self:
        out = super()._each(change)
        if self._exact:
            out.__dict__["sums"] = change(self.sums)
        return out.with_noise(change(self.noise) if "_noise" in self.__dict__ else 0.0)

    def pool(self) -> Self:
        """The tally of all rows as if they were of one class."""
        nothing = self._each(lambda a: np.zeros((1, *a.shape[1:])))
        return reduce(add, (self.some_classes(np.array([c])) for c in range(len(self.weight))), nothing)

    def only(self, features: Codes) -> Self:
        """The tally of some of the features, over the same rows."""
        square = Tally._each(self, lambda a: a[:, features[:, None], features] if a.ndim == 3 else a)
        out = replace(square, mean=self.mean[:, features])
        if self._exact:
            at = np.concatenate([[0], features + 1])
            out.__dict__["sums"] = self.sums[:, at[:, None], at]
        return out.with_noise(self.noise[:, features] if "_noise" in self.__dict__ else 0.0)

    def place(self, cell: int) -> tuple[int, int | None]:
        return cell % max(1, self.mean.shape[1]), None

    def seen(self, j: int) -> dict[str, float]:
        """What a person sees of a feature of a pooled tally."""
        return {"mean": float(self.mean[0, j]), "sd": float(np.sqrt(self.m2[0, j] / self.n[0, j]))}

    def arrays(self) -> dict[str, NDArray]:
        """The whole state; of a symmetric matrix the lower triangle."""
        lower = np.tril_indices(self.mean.shape[1])
        state = {"weight": self.weight, "mean": self.mean, "scatter": self.scatter[:, *lower]}
        if self.third is None or self.fourth is None:
            return state
        flat = self.third.reshape(len(self.third), self.mean.shape[1] ** 2)
        return state | {"third": flat, "fourth": self.fourth[:, *lower]}

    def rest(self) -> dict[str, NDArray]:
        """What rounding took, of the lower triangle."""
        if not self._exact:
            return {}
        lower = np.tril_indices(self.mean.shape[1] + 1)
        state = self.weight, self.mean, self.scatter
        rest = products_of.rest_of(self.sums, *state)
        last = products_of.last_of(self.sums, products_of.of_comoments(*state, rest))[:, *lower]
        rest = rest[:, *lower]
        found = {"rest": rest.reshape(len(rest), products_of.REST * len(lower[0])), "last": last}
        return {name: a for name, a in found.items() if a.any()} | self.kept_noise()

    @classmethod
    def rest_shapes(cls, n_classes: int, spec: Spec) -> dict[str, tuple[int, int]]:
        q = spec.n_features + 1
        cells = q * (q + 1) // 2
        noise = (n_classes, spec.n_features)
        return {"rest": (n_classes, products_of.REST * cells), "last": (n_classes, cells), "noise": noise}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: Spec) -> Self:
        mean = arrays["mean"]
        p = mean.shape[1]
        state = {"weight": arrays["weight"], "mean": mean, "scatter": symmetric(arrays["scatter"], p)}
        if "fourth" in arrays:
            third = np.array(arrays["third"]).reshape(len(mean), p, p)
            state |= {"third": third, "fourth": symmetric(arrays["fourth"], p)}
        out = cls(**state)
        if "rest" in arrays:
            each = arrays["rest"].reshape(len(mean), -1, products_of.REST)
            out.__dict__["_rest"] = np.stack([symmetric(each[..., i], p + 1) for i in range(products_of.REST)], axis=-1)
        if "last" in arrays:
            out.__dict__["_last"] = symmetric(arrays["last"], p + 1)
        return out.with_noise(arrays.get("noise", 0.0))

    def _check(self, other: Self) -> None:
        same_shape(self.mean, other.mean)
        if (self.third is None) != (other.third is None):
            raise MergeError(
                "one of these tallies keeps the fourth moments of shrinkage='ledoit-wolf' and the other does not",
                remedy="count both with the same shrinkage",
            )


def _by_class(
    block: NDArray, y: Codes, weight: Floats | None, n_classes: int
) -> Iterator[tuple[int, NDArray, Floats | None]]:
    """Rows of one class after another, copied a chunk at a time, with their weights; rows without weight left out."""
    order = np.argsort(y, kind="stable") if n_classes > 1 else np.arange(len(y))
    if weight is not None:
        order = order[weight[order] > 0]
    edges = np.searchsorted(y[order], np.arange(n_classes + 1))
    step = max(_FEWEST, _CHUNK // max(1, block.shape[1]))
    for c in range(n_classes):
        for start in range(edges[c], edges[c + 1], step):
            rows = order[start : min(start + step, edges[c + 1])]
            yield c, block[rows], None if weight is None else weight[rows]


def _complete(x: NDArray, w: Floats | None) -> tuple[NDArray, Floats | None]:
    """The rows without an absent value."""
    if x.dtype.kind == "f" and (absent := np.isnan(x).any(axis=1)).any():
        x, w = x[~absent], None if w is None else w[~absent]
    return x, w
