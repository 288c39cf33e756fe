"""What every tally is: a value that merges with ``+``, and has no hyper-parameter in it.

A :class:`Spec` says how a block of columns is counted. It is *encoding*: change it and the data must be
read again. Two tallies merge only when their specs agree.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, MergeError, NotWithinError
from candide.kernels import threads
from candide.rows.blocks import Block, Codes, Floats, width

if TYPE_CHECKING:
    from candide.rows.documents import Tokens

_TEMPORARY = 1 << 21  # values transformed at a time: small beside any input worth the care


def _log(x: NDArray) -> NDArray:
    if (x <= 0).any():
        raise InputError(
            f"value {x[x <= 0][0]:g} in data whose logarithm is modelled; pass values > 0, or another event model"
        )
    return np.log(x)


TRANSFORMS: dict[str, Callable[[NDArray], NDArray]] = {"log": _log}


@dataclass(frozen=True)
class Spec:
    """Tally kind and encoding of one block: all that must be known to count it, on any engine."""

    kind: str  # a key of tally.KINDS
    n_features: int
    sizes: tuple[int, ...] = ()  # Levels: how many levels each feature has
    threshold: float | None = None  # Levels: numbers in, the two levels "not above" and "above" out
    transform: str | Callable[[NDArray], NDArray] | None = None  # Moments, Sums: what is tallied is transform(x)
    nonnegative: bool = False  # Sums: a value below zero is an error
    log_factorial: bool = False  # Sums: also keep the sum of log x!, the base measure of counts
    tokens: "Tokens | None" = None  # Terms: how a document becomes terms
    fourth: bool = False  # CoMoments: also keep third and fourth moments

    def transformed(self, x: NDArray) -> NDArray:
        """What is tallied: x, or its transform in float64, -inf (which no engine lets pass) where it has no value."""
        if self.transform is None:
            return x
        function = TRANSFORMS[self.transform] if isinstance(self.transform, str) else self.transform
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            out = function(x.astype(np.float64))
        return np.where(np.isnan(out) & ~np.isnan(x), -np.inf, out)


class Tally(Protocol):
    """Sufficient statistics of one block, per class: a commutative monoid; ``-`` is a partial inverse."""

    @classmethod
    def of(cls, block: Any, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: Spec) -> Self: ...
    @classmethod
    def empty(cls, n_classes: int, spec: Spec) -> Self: ...
    def __add__(self, other: Self) -> Self: ...
    def __sub__(self, part: Self) -> Self: ...
    def scale(self, factor: float) -> Self: ...
    def remap(
        self, classes: Codes, n_classes: int, levels: tuple[Codes, ...] = (), sizes: tuple[int, ...] = ()
    ) -> Self: ...
    def pool(self) -> Self: ...
    def seen(self, j: int) -> dict[str, float]: ...  # of a pooled tally, for a person; a whole number: how many
    def arrays(self) -> dict[str, NDArray]: ...
    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray]) -> Self: ...


def by_parts(tally: Callable[[slice], Any], block: Block, spec: Spec | None) -> Any:
    """The sum, in order, of the tallies of slices of a block's rows: one a thread, shorter where values are copied."""
    copied = spec is not None and (spec.transform is not None or spec.log_factorial)
    step = max(1, _TEMPORARY // max(1, width(block))) if copied else max(1, block.shape[0])

    def work(rows: slice) -> Any:
        starts = range(rows.start, max(rows.stop, rows.start + 1), step)
        return reduce(add, (tally(slice(a, min(a + step, rows.stop))) for a in starts))

    return reduce(add, threads.over_rows(work, block.shape[0], cost=width(block)))


def class_weights(y: Codes, weight: Floats | None, n_classes: int) -> Floats:
    """(classes,) weight of the rows of each class."""
    return np.bincount(y, weight, n_classes).astype(np.float64, copy=False)


def ratio(a: NDArray, b: NDArray) -> Floats:
    """a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)


def spread(array: NDArray, classes: Codes, n_classes: int) -> NDArray:
    """Move rows to their new class codes; classes that were not there are zero."""
    out = np.zeros((n_classes, *array.shape[1:]), array.dtype)
    out[classes] = array
    return out


def same_shape(a: NDArray, b: NDArray) -> None:
    if a.shape != b.shape:
        raise MergeError(
            f"these tallies differ in shape, {a.shape} and {b.shape} (classes, features); "
            "unite their labels and levels first"
        )


def minus(whole: Floats, part: Floats) -> Floats:
    """whole - part for weights, where part must lie within whole, up to rounding."""
    same_shape(whole, part)
    left = difference(whole, part)
    outside = left < -1e-9 * np.maximum(whole, 1.0)
    if outside.any():
        c, j = np.argwhere(outside)[0].tolist()
        raise NotWithinError(f"more is removed than was counted, {part[c, j]:g} of {whole[c, j]:g}", (c, j))
    return np.maximum(left, 0.0)


def difference(whole: Floats, part: Floats) -> Floats:
    """whole - part, and 0 where no more is left than the rounding error of earlier sums."""
    left = whole - part
    return np.where(np.abs(left) <= 1e-12 * np.abs(whole), 0.0, left)
