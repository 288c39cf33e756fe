"""Screening: bounds on squared distances, in single precision and so in less than half the time of the distances.

The error of a product is bounded whatever the order of its sums: that of p terms is at most about p units of the last
place of the sum of their sizes. Of most rows the bounds tell which class is nearest; only the others need more digits.

>>> root = CholeskyRoot.from_matrix(np.array([[4.0, 2.0], [2.0, 2.0]]), np.arange(2))
>>> screen = DistanceScreen.from_roots(np.zeros((1, 2)), [root], np.ones(2))
>>> low, high = screen.bounds(np.array([[2.0], [1.0]]))
>>> bool(low[0, 0] < 1.0 < high[0, 0]), bool(high[0, 0] - low[0, 0] < 1e-5)
(True, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.distributions.whitening import CholeskyRoot

_UNIT = 2.0**-24  # the largest relative error of rounding to single precision
_MIN_SQUARED = 1.1e-19  # what is smaller may vanish when it is squared
_SLACK = 1.01  # for products of errors, and for the rounding of double precision


@dataclass(frozen=True, eq=False)
class DistanceScreen:
    """For every class what single precision needs of its root: all columns are in units of ``spread``."""

    middle: Floats  # (feature) what is subtracted before digits are dropped
    spread: Floats  # (feature) positive
    classes: tuple["_ClassScreen", ...]

    @classmethod
    def from_roots(cls, centres: Floats, roots: Sequence[CholeskyRoot], spread: Floats) -> "DistanceScreen":
        """A root for each centre; ``spread`` is of about the size of the columns' deviations."""
        middle = centres.mean(axis=0)
        classes = (
            _ClassScreen.from_root((c - middle) / spread, r, spread) for c, r in zip(centres, roots, strict=True)
        )
        return cls(middle, spread, tuple(classes))

    def bounds(self, x: Floats) -> tuple[Floats, Floats]:
        """(row, class) between which |L^-1 (x - centre)|^2 lies, of (feature, row). NaN where it is too large."""
        with np.errstate(over="ignore", invalid="ignore"):
            units = ((x - self.middle[:, None]) / self.spread[:, None]).astype(np.float32)
            length = np.sqrt(np.einsum("jr,jr->r", units, units)) + _MIN_SQUARED * np.sqrt(len(units))
            low, high = np.empty((2, len(self.classes), x.shape[1]))
            for c, of_class in enumerate(self.classes):
                of_class.bounds(units, length, low[c], high[c])
        return low.T, high.T


@dataclass(frozen=True, eq=False)
class _ClassScreen:
    centre: NDArray[np.float32]  # (feature)
    tied: Codes  # columns of the product, and of the rest
    free: Codes
    inverse: NDArray[np.float32]  # (tied, tied)
    per_deviation: NDArray[np.float32]  # (free)
    reach: float  # an error in units of this length ...
    error: float  # ... which is at least that of the whitened row

    @classmethod
    def from_root(cls, centre: Floats, root: CholeskyRoot, spread: Floats) -> "_ClassScreen":
        tied, free = root.columns[root.tied], root.columns[root.free]
        inverse, per_deviation = root.inverse * spread[tied], spread[free] / root.deviation
        size = np.sqrt((inverse**2).sum() + (per_deviation**2).sum())
        return cls(
            centre.astype(np.float32),
            tied,
            free,
            np.asfortranarray(inverse, np.float32),
            per_deviation.astype(np.float32),
            float(np.linalg.norm(centre)),
            _rounding(len(tied)) * float(size),
        )

    def bounds(self, x: NDArray[np.float32], length: Floats, low: Floats, high: Floats) -> None:
        from scipy.linalg.blas import strmm

        size = np.zeros(x.shape[1], np.float32)
        if len(self.tied):
            rows = x[self.tied]
            rows -= self.centre[self.tied, None]
            z = strmm(1.0, self.inverse, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1)
            size += np.einsum("rj,rj->r", z, z)
        if len(self.free):
            flat = (x[self.free] - self.centre[self.free, None]) * self.per_deviation[:, None]
            size += np.einsum("jr,jr->r", flat, flat)
        terms = len(self.tied) + len(self.free)
        off = self.error * (length + self.reach) + _MIN_SQUARED * np.sqrt(
            terms
        )  # |z| is not further from what it should be
        distance, share = np.sqrt(size.astype(np.float64)), _rounding(terms)
        distance[np.isinf(distance)] = np.nan  # too large for single precision, and no bound
        np.square(np.maximum(distance * (1.0 - share) - off, 0.0), out=low)
        np.square(distance * (1.0 + share) + off, out=high)


def _rounding(n_terms: int) -> float:
    """The relative error of a sum of products of numbers that were themselves rounded."""
    return (n_terms + 6) * _UNIT * _SLACK
