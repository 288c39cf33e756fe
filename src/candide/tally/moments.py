"""Moments: weight, mean and centred sum of squares, per class and per feature.

The tallies of two disjoint sets of rows add up to the tally of their union, so chunks, files and
machines are one case.

>>> X, y = np.array([[1.0], [3.0], [np.nan], [10.0]]), np.array([0, 0, 0, 1])
>>> count = lambda rows: Moments.of(X[rows], y[rows], n_classes=2)
>>> parts = count(slice(0, 1)) + count(slice(1, 4))
>>> parts.mean.ravel().tolist(), parts.m2.ravel().tolist(), parts.n.ravel().tolist()
([2.0, 10.0], [2.0, 0.0], [2.0, 1.0])
"""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.errors import NotWithinError
from candide.rows.blocks import Codes, Floats
from candide.tally.base import Spec, Tally, by_parts, minus, negative, ratio, same_shape

_EPS = 4 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Moments(Tally):
    state: ClassVar[tuple[str, ...]] = ("n", "mean", "m2")

    n: Floats  # (classes, features) weight of the values present
    mean: Floats  # (classes, features) zero where n is zero
    m2: Floats  # (classes, features) sum of w * (x - mean)**2, never negative

    @classmethod
    def of(
        cls, block: NDArray, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: Spec | None = None
    ) -> Self:
        """Tally one batch; ``y`` holds class codes, NaN is an absent value, an infinity shows as a non-finite mean."""

        def part(rows: slice) -> Moments:
            x = block[rows] if spec is None else spec.tallied(block[rows])
            if spec is not None and spec.amounts and (x < 0).any():
                raise negative(float(x[x < 0][0]))
            return cls(*kernels.moments(x, y[rows], None if weight is None else weight[rows], n_classes))

        return by_parts(part, block, spec)

    @classmethod
    def empty(cls, n_classes: int, spec: Spec) -> Self:
        zero = np.zeros((n_classes, spec.n_features))
        return cls(zero, zero, zero)

    def __add__(self, other: Self) -> Self:
        """Chan, Golub and LeVeque (1979); the empty tally is the identity."""
        same_shape(self.n, other.n)
        n = self.n + other.n
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite stays so, for the engine to say where
            gap, share = np.where((self.n > 0) & (other.n > 0), other.mean - self.mean, 0.0), ratio(other.n, n)
            mean = np.where(self.n > 0, self.mean + gap * share, other.mean)
            return type(self)(n, mean, self.m2 + other.m2 + gap * gap * share * self.n)

    def __sub__(self, part: Self) -> Self:
        """Remove rows counted earlier. A partial inverse: ``part`` must lie within ``self``."""
        n = minus(self.n, part.n)
        gap = np.where(part.n > 0, self.mean - part.mean, 0.0)
        mean = np.where(n > 0, self.mean + gap * ratio(part.n, n), 0.0)
        # A mean smaller than the rounding error of the sums it was taken from is 0.
        blur = _EPS * ratio(np.abs(self.mean) * self.n + np.abs(part.mean) * part.n, n)
        mean = np.where(np.abs(mean) <= blur, 0.0, mean)
        m2 = self.m2 - part.m2 - gap * gap * part.n * ratio(self.n, n)
        self._check_left(part, n, gap, m2)
        # A spread smaller than the rounding error of the one, and of the means, that it was taken from is none.
        error = _EPS * (np.abs(self.mean) + np.abs(part.mean)) * np.abs(gap) * part.n * ratio(self.n, n)
        return type(self)(n, mean, np.where((n > 0) & (m2 > 1e-14 * self.m2 + error), m2, 0.0))

    def _check_left(self, part: Self, n: Floats, gap: Floats, m2: Floats) -> None:
        """No rows have a negative spread: if what is left has one beyond rounding, ``part`` was never counted."""
        outside = m2 < -self.slack(part, n)
        # Where every row goes, the two must be the same.
        outside |= (n == 0) & (np.abs(gap) > 1e-6 * np.sqrt(ratio(self.m2, self.n)) + self._blur(part))
        if outside.any():
            c, j = np.argwhere(outside)[0].tolist()
            raise NotWithinError("the values removed were never counted", (c, j))

    def _blur(self, part: Self) -> Floats:
        """How well a mean is known after many rows have been merged, and many taken away again."""
        return 1e-9 * np.maximum(np.abs(self.mean), np.abs(part.mean))

    def slack(self, part: Self, n: Floats) -> Floats:
        """How far below zero rounding may put the spread of what is left, of the weight ``n``, without ``part``."""
        blur = self._blur(part)
        stretch = np.where(n > 0, ratio(self.n, n), 1.0)
        return 1e-6 * self.m2 + stretch * (2 * blur * np.sqrt(part.n * self.m2) + blur * blur * part.n)

    def scale(self, factor: float) -> Self:
        """Let every row count ``factor`` times: forgetting."""
        n = self.n * factor
        return type(self)(n, np.where(n > 0, self.mean, 0.0), np.where(n > 0, self.m2 * factor, 0.0))

    def pool(self) -> Self:
        """The tally of all rows as if they were of one class."""
        left = self
        while (n := left.n.shape[-2]) > 1:  # one half is added to the other: there may be very many classes
            first, second, odd = (
                left._each(lambda a, part=part: a[..., part, :])  # type: ignore[misc]
                for part in (slice(n // 2), slice(n // 2, n // 2 * 2), slice(n // 2 * 2, n))
            )
            both = (first + second).arrays()
            left = type(self)(**{name: np.concatenate([a, odd.arrays()[name]], axis=-2) for name, a in both.items()})
        return left

    def seen(self, j: int) -> dict[str, float]:
        """What a person sees of a feature of a pooled tally."""
        return {"mean": float(self.mean[0, j]), "sd": float(np.sqrt(self.m2[0, j] / self.n[0, j]))}
