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
from functools import reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, InputTypeError, MergeError, NotWithinError
from candide.kernels import threads
from candide.rows.blocks import Codes, Csr, Floats
from candide.tally.base import Spec, Tally, difference, ratio, same_shape
from candide.tally.moments import Moments

_CHUNK = 1 << 22  # values centred at a time: enough rows for BLAS to be quick, and small beside the input
_FEWEST = 256  # rows of a chunk, however wide


@dataclass(frozen=True, eq=False)
class CoMoments(Tally):
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

        def part(rows: slice) -> Any:
            out = cls.empty(n_classes, spec)
            w = None if weight is None else weight[rows]
            with np.errstate(invalid="ignore", over="ignore"):  # what is not finite stays so, for the engine to say
                for c, x, wx in _by_class(block[rows], y[rows], w, n_classes):
                    x, wx = _complete(spec.tallied(x), wx)
                    if len(x):
                        out._take(c, cls._centred(x, wx, "fourth" in spec.keep))
            return out

        # The work of a row grows with the square of its width.
        return reduce(add, threads.over_rows(part, len(block), cost=block.shape[1] ** 2, by_blas=True))

    @classmethod
    def _centred(cls, rows: NDArray, w: Floats | None, fourth: bool) -> Self:
        """The tally of rows of one class. Columns that are the same in all of them have no scatter to work out."""
        varying = np.flatnonzero((rows != rows[0]).any(axis=0))
        x = rows[:, varying].astype(np.float64) if len(varying) < rows.shape[1] else rows.astype(np.float64)
        n = float(len(x)) if w is None else float(w.sum())
        mean = rows[0].astype(np.float64)
        mean[varying] = 0.0
        for _ in range(2):  # the first mean is not quite exact
            step = (x.sum(axis=0) if w is None else w @ x) / n
            x -= step
            mean[varying] += step
        root = x if w is None else x * np.sqrt(w)[:, None]
        products = [root.T @ root]  # BLAS works out one triangle
        if fourth:
            square = x * root  # with the root of the weight in it
            products += [square.T @ root, square.T @ square]
        return cls(np.array([[n]]), mean[None], *(_spread_out(product, varying, len(mean)) for product in products))

    def _take(self, c: int, more: Self) -> None:
        """Add the tally of rows of one class in place, while this one is still being made."""
        mine = self.some_classes(np.array([c])) + more if self.weight[c, 0] else more
        for name in self.state:
            if (state := getattr(mine, name)) is not None:
                getattr(self, name)[c] = state[0]

    @classmethod
    def empty(cls, n_classes: int, spec: Spec) -> Self:
        p = spec.n_features
        more = [np.zeros((n_classes, p, p)) for _ in range(3 if "fourth" in spec.keep else 1)]
        return cls(np.zeros((n_classes, 1)), np.zeros((n_classes, p)), *more)

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
        return Moments(self.n.copy(), self.mean, self.m2.copy())

    def __add__(self, other: Self) -> Self:
        """Chan, Golub and LeVeque (1979), for a matrix; the empty tally is the identity."""
        self._check(other)
        weight = self.weight + other.weight
        with np.errstate(invalid="ignore", over="ignore"):
            both = (self.weight > 0) & (other.weight > 0)
            gap, share = np.where(both, other.mean - self.mean, 0.0), ratio(other.weight, weight)
            mean = np.where(self.weight > 0, self.mean + gap * share, other.mean)
            scatter = self.scatter + other.scatter
            if gap.any():
                scatter += _outer(gap, gap, share * self.weight)
            if self.third is None or other.third is None or self.fourth is None or other.fourth is None:
                return type(self)(weight, mean, scatter)
            here, there = (np.where(t.weight > 0, t.mean - mean, 0.0) for t in (self, other))
            third = self.third + _third(self, here) + other.third + _third(other, there)
            fourth = self.fourth + _fourth(self, here) + other.fourth + _fourth(other, there)
        return type(self)(weight, mean, scatter, third, fourth)

    def __sub__(self, part: Self) -> Self:
        """Remove rows counted earlier. A partial inverse: ``part`` must lie within ``self``."""
        self._check(part)
        whole, gone = self.moments(), part.moments()
        left = whole - gone  # and the error, where it does not
        weight = left.n[:, :1]
        gap = np.where(part.weight > 0, self.mean - part.mean, 0.0)
        lift = _outer(gap, gap, part.weight * ratio(self.weight, weight))
        sd = np.sqrt(left.m2)
        bound = _outer(sd, sd) * (1 + 1e-15)  # no covariance is larger: Cauchy and Schwarz
        scatter = difference(self.scatter, part.scatter) - lift
        _check_left(scatter, weight, part.weight, whole.slack(gone, left.n))
        scatter = np.clip(scatter, -bound, bound)
        np.einsum("cjj->cj", scatter)[:] = left.m2
        rest = type(self)(weight.copy(), left.mean, scatter)
        if self.third is None or part.third is None or self.fourth is None or part.fourth is None:
            return rest
        there = np.where(part.weight > 0, part.mean - self.mean, 0.0)
        here = np.where(weight > 0, left.mean - self.mean, 0.0)
        some = (weight > 0)[:, :, None]
        third = np.where(some, self.third - (part.third + _third(part, there)) - _third(rest, here), 0.0)
        rest = type(self)(weight.copy(), left.mean, scatter, third, third)
        fourth = self.fourth - (part.fourth + _fourth(part, there)) - _fourth(rest, here)
        return type(self)(weight.copy(), left.mean, scatter, third, np.where(some, np.maximum(fourth, 0.0), 0.0))

    def scale(self, factor: float) -> Self:
        """Let every row count ``factor`` times: forgetting."""
        weight = self.weight * factor
        mean = np.where(weight > 0, self.mean, 0.0)
        rest = (None if a is None else a * factor for a in (self.scatter, self.third, self.fourth))
        return type(self)(weight, mean, *rest)  # type: ignore[arg-type]

    def pool(self) -> Self:
        """The tally of all rows as if they were of one class."""
        nothing = self._each(lambda a: np.zeros((1, *a.shape[1:])))
        return reduce(add, (self.some_classes(np.array([c])) for c in range(len(self.weight))), nothing)

    def only(self, features: Codes) -> Self:
        """The tally of some of the features, over the same rows."""
        square = self._each(lambda a: a[:, features[:, None], features] if a.ndim == 3 else a)
        return replace(square, mean=self.mean[:, features])

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

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: Spec) -> Self:
        mean = arrays["mean"]
        p = mean.shape[1]
        state = {"weight": arrays["weight"], "mean": mean, "scatter": _symmetric(arrays["scatter"], p)}
        if "fourth" in arrays:
            third = np.array(arrays["third"]).reshape(len(mean), p, p)
            state |= {"third": third, "fourth": _symmetric(arrays["fourth"], p)}
        return cls(**state)

    def _check(self, other: Self) -> None:
        same_shape(self.mean, other.mean)
        if (self.third is None) != (other.third is None):
            raise MergeError(
                "one of these tallies keeps the fourth moments of shrinkage='ledoit-wolf' and the other does not",
                remedy="count both with the same shrinkage",
            )


def _check_left(scatter: Floats, weight: Floats, gone: Floats, slack: Floats) -> None:
    """Whether the scatter left of a class can be that of rows: it has no negative direction, up to ``slack``."""
    p = scatter.shape[1]
    for c in np.flatnonzero(gone[:, 0] > 0).tolist():
        room = np.maximum(np.diagonal(scatter[c]), 0.0) + slack[c]
        unit = ratio(scatter[c], np.outer(np.sqrt(room), np.sqrt(room)))
        np.fill_diagonal(unit, 0.0)
        beyond = np.abs(unit) > 1 + 1e-9
        if not beyond.any() and weight[c, 0] > 0:
            np.fill_diagonal(unit, 1.0 + p * ratio(slack[c], room) + 1e-9)
            try:
                np.linalg.cholesky(unit)
            except np.linalg.LinAlgError:
                beyond[0] = True
        if beyond.any():
            raise NotWithinError(
                "the values removed were never counted together", (c, int(beyond.any(axis=1).argmax()))
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


def _spread_out(product: Floats, varying: Codes, p: int) -> Floats:
    """(1, features, features) a matrix of some columns among all of them."""
    if len(varying) == p:
        return product[None]
    out = np.zeros((1, p, p))
    out[0, varying[:, None], varying] = product
    return out


def _outer(a: Floats, b: Floats, times: Floats | None = None) -> Floats:
    """(classes, features, features) the outer product of two vectors a class, ``times`` (classes, 1) a number.

    Symmetric to the last bit where both are the same.
    """
    out = a[:, :, None] * b[:, None, :]
    return out if times is None else np.multiply(out, times[:, :, None], out=out)


def _third(part: CoMoments, d: Floats) -> Floats:
    """What the third moments gain where residuals, whose sum is zero, grow by ``d``."""
    return _outer(part.m2, d) + 2.0 * d[:, :, None] * part.scatter + _outer(d * d, d, part.weight)


def _fourth(part: CoMoments, d: Floats) -> Floats:
    """What the fourth moments gain where residuals grow by ``d``."""
    assert part.third is not None
    mixed = 2.0 * part.third * d[:, None, :] + _outer(part.m2, d * d)
    return mixed + np.swapaxes(mixed, 1, 2) + 4.0 * _outer(d, d) * part.scatter + _outer(d * d, d * d, part.weight)


def _symmetric(lower: NDArray, p: int) -> Floats:
    """A matrix a class from its lower triangle."""
    if lower.shape[1] != p * (p + 1) // 2:
        raise InputError(f"a triangle of {p} columns has {p * (p + 1) // 2} values, not {lower.shape[1]}")
    out = np.empty((len(lower), p, p))
    i, j = np.tril_indices(p)
    out[:, i, j] = lower
    out[:, j, i] = lower
    return out
