"""Sums: the weight present and the weighted sum, per class and per feature.

Word counts, event counts and waiting times need no more than this.

>>> X, y = np.array([[2.0, 0.0], [1.0, 3.0], [np.nan, 5.0]]), np.array([0, 0, 1])
>>> tally = Sums.of(X, y, n_classes=2, spec=Spec.alike("sums", Sums.encoding, 2))
>>> tally.n.tolist(), tally.total.tolist()
([[2.0, 2.0], [0.0, 1.0]], [[3.0, 3.0], [0.0, 5.0]])
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.errors import NotWithinError
from candide.rows.blocks import Block, Codes, Csr, Floats, rows_of
from candide.tally.base import Spec, Tally, by_parts, class_weights, difference, minus, negative, same_shape

_LEAST = -0.1214862905358496  # of log x!, near x = 0.46: it is below zero between the whole numbers 0 and 1

_EXACT = 1 << 53  # whole numbers up to here are exact as floats


@dataclass(frozen=True, eq=False)
class Sums(Tally):
    state: ClassVar[tuple[str, ...]] = ("n", "total", "log_factorial")

    n: Floats  # (classes, features) weight of the values present
    total: Floats  # (classes, features) sum of w * x
    log_factorial: Floats  # (classes, features) sum of w * log x!; zero unless the spec keeps it
    amounts: bool = False  # whether no value is negative: then no total of some of the rows is, either

    @classmethod
    def of(cls, block: Block, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: Spec) -> Self:
        """Tally one batch. In sparse rows what is not stored is zero; an infinity shows as a non-finite total."""

        amounts, keep = spec.amounts, "log_factorial" in spec.keep

        def part(rows: slice) -> Sums:
            x, w = rows_of(block, rows), None if weight is None else weight[rows]
            if isinstance(x, Csr):
                total, low = kernels.csr_sums(x.data, x.indices, x.indptr, y[rows], w, n_classes, x.n_features)
                n = np.broadcast_to(class_weights(y[rows], w, n_classes)[:, None], total.shape)
            else:
                x = spec.tallied(x)
                n, total, low = kernels.dense_sums(x, y[rows], w, n_classes)
            if amounts and low < 0:
                raise negative(float(low))
            base = _log_factorial(x, y[rows], w, n_classes) if keep else _nothing(total.shape)
            return cls(n, total, base, amounts)

        return by_parts(part, block, spec)

    @classmethod
    def empty(cls, n_classes: int, spec: Spec) -> Self:
        zero = _nothing((n_classes, spec.n_features))
        return cls(zero, zero, zero, spec.amounts)

    def __add__(self, other: Self) -> Self:
        same_shape(self.total, other.total)
        n, total, base = (_plus(getattr(self, name), getattr(other, name)) for name in self.state)
        return type(self)(n, total, base, self.amounts and other.amounts)

    def __sub__(self, part: Self) -> Self:
        """Remove rows counted earlier. A partial inverse: ``part`` must lie within ``self``.

        Of amounts it is known when it does not; of values of either sign only where weights say so.
        """
        n = minus(self.n, part.n)
        left = (difference(self.total, part.total), difference(self.log_factorial, part.log_factorial))
        total, log_factorial = (np.where(n > 0, a, 0.0) for a in left)
        if self.amounts:
            _check_left(self.total, part.total, n, least=0.0)
            _check_left(self.log_factorial, part.log_factorial, n, least=_LEAST)
            total = np.maximum(total, 0.0)
        return type(self)(n, total, log_factorial, self.amounts)

    def scale(self, factor: float) -> Self:
        """Let every row count ``factor`` times: forgetting."""
        return self._each(lambda a: a * factor)

    def pool(self) -> Self:
        """The tally of all rows as if they were of one class."""
        return self._each(lambda a: a.sum(axis=-2, keepdims=True))

    def seen(self, j: int) -> dict[str, float]:
        """What a person sees of a feature of a pooled tally."""
        return {"mean": float(self.total[0, j] / self.n[0, j])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: Spec) -> Self:
        return cls(**arrays, amounts=spec.amounts)


def _check_left(whole: Floats, part: Floats, n: Floats, least: float) -> None:
    """Whether a sum lies within another: what is left is at least ``least`` for each of the weight ``n`` left."""
    gap, slack = whole - part, 1e-6 * np.maximum(np.abs(whole), np.abs(part))
    outside = gap < least * n - slack
    # Where every row goes, nothing is left; only of whole numbers can this be told from the rounding of earlier sums.
    outside |= (n == 0) & (gap > 0) & (whole == np.rint(whole)) & (part == np.rint(part)) & (whole < _EXACT)
    if outside.any():
        c, j = np.argwhere(outside)[0].tolist()
        raise NotWithinError(f"the values removed were never counted, {part[c, j]:g} of {whole[c, j]:g} in all", (c, j))


def _nothing(shape: tuple[int, ...]) -> Floats:
    """Zeros that take no room."""
    return np.broadcast_to(np.zeros(()), shape)


def _plus(a: Floats, b: Floats) -> Floats:
    """a + b, where what is one number broadcast along an axis in both stays one number."""
    some = tuple(slice(1) if i == j == 0 else slice(None) for i, j in zip(a.strides, b.strides, strict=True))
    return a + b if a[some].shape == a.shape else np.broadcast_to(a[some] + b[some], a.shape)


def _log_factorial(x: Block, y: Codes, w: Floats | None, n_classes: int) -> Floats:
    from scipy.special import gammaln  # here, because importing it costs more than loading a small model

    if isinstance(x, Csr):
        stored = slice(x.indptr[0], x.indptr[-1])
        base = gammaln(x.data[stored].astype(np.float64) + 1.0)
        return kernels.csr_sums(base, x.indices[stored], x.indptr - x.indptr[0], y, w, n_classes, x.n_features)[0]
    return kernels.dense_sums(gammaln(np.asarray(x, np.float64) + 1.0), y, w, n_classes)[1]
