"""Whitening: the Cholesky root of a matrix, and its inverse, for many rows at a time.

A triangular matrix is multiplied in half the time of a full one. Columns that no covariance ties to another, such as
the pixels that a class never uses, are divided by their deviations and left out of the product.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats

_UNIT = 2.0**-24  # the largest relative error of rounding to single precision
_MIN_SQUARED = 1.1e-19  # what is smaller may vanish when it is squared
_SLACK = 1.01  # for products of errors, and for the rounding of double precision


class SingularError(Exception):
    """A matrix that has no root: which of several, and the column that causes it."""

    def __init__(self, feature: int, group: int = 0):
        super().__init__(feature, group)
        self.feature, self.group = feature, group


@dataclass(frozen=True, eq=False)
class CholeskyRoot:
    """L of a matrix = L L', for the columns ``columns``; ``tied`` and ``free`` are places among these."""

    columns: Codes
    tied: Codes  # whose covariances with others are not all zero
    free: Codes
    inverse: Floats  # (tied, tied) of L, lower triangular, in the order of Fortran
    deviation: Floats  # (free)

    @classmethod
    def from_matrix(cls, matrix: Floats, columns: Codes) -> "CholeskyRoot":
        """The root of the submatrix of these columns; raise a SingularError where it has none."""
        from scipy.linalg.lapack import dpotrf, dtrtri

        sub = matrix if len(columns) == len(matrix) else matrix[np.ix_(columns, columns)]
        variance = np.einsum("jj->j", sub)
        bad = np.flatnonzero(~(variance > 0) | ~np.isfinite(variance))
        if len(bad):
            raise SingularError(int(columns[bad[0]]))
        tied = np.count_nonzero(sub, axis=1) > 1
        free, tied = np.flatnonzero(~tied), np.flatnonzero(tied)
        deviation, p = np.sqrt(variance[free]), len(tied)
        if p == 0:
            return cls(columns, tied, free, np.empty((0, 0), order="F"), deviation)
        sub = sub if not len(free) else sub[np.ix_(tied, tied)]
        unit = 1.0 / np.sqrt(np.einsum("jj->j", sub))  # so that a column's unit decides nothing
        root, failed = dpotrf(sub * unit[:, None] * unit, lower=1, clean=1, overwrite_a=1)
        if failed:
            raise SingularError(int(columns[tied[failed - 1]]))
        pivots = np.einsum("jj->j", root)
        if not (pivots**2 > 10 * p * np.finfo(np.float64).eps).all():
            raise SingularError(int(columns[tied[np.argmin(pivots)]]))
        inverse = dtrtri(root, lower=1, overwrite_c=1)[0]
        return cls(columns, tied, free, np.asfortranarray(inverse * unit), deviation)

    @cached_property
    def log_diagonal(self) -> Floats:
        """(column) the log of the diagonal of L."""
        out = np.empty(len(self.columns))
        out[self.tied], out[self.free] = -np.log(np.einsum("jj->j", self.inverse)), np.log(self.deviation)
        return out

    @property
    def log_det(self) -> float:
        return float(self.log_diagonal.sum())

    def whiten(self, x: Floats) -> Floats:
        """(column, row) L^-1 x of all columns of the matrix, (feature, row)."""
        out = np.empty((len(self.columns), x.shape[1]))
        out[self.tied] = self.inverse @ x[self.columns[self.tied]]
        out[self.free] = x[self.columns[self.free]] / self.deviation[:, None]
        return out

    def unwhiten(self, z: Floats) -> Floats:
        """(column) L^-T z."""
        out = np.empty(len(self.columns))
        out[self.tied], out[self.free] = self.inverse.T @ z[self.tied], z[self.free] / self.deviation
        return out

    def precision(self) -> Floats:
        """(column, column) the inverse of the matrix."""
        out = np.zeros((len(self.columns), len(self.columns)))
        out[np.ix_(self.tied, self.tied)] = self.inverse.T @ self.inverse
        out[self.free, self.free] = self.deviation**-2
        return out

    def color(self, z: Floats) -> Floats:
        """(row, column) L z of (row, column) independent parts."""
        from scipy.linalg.lapack import dtrtri

        out = np.empty_like(z)
        if len(self.tied):
            out[:, self.tied] = z[:, self.tied] @ dtrtri(self.inverse, lower=1)[0].T
        out[:, self.free] = z[:, self.free] * self.deviation
        return out

    def distances(self, x: Floats, centres: Floats, out: Floats) -> None:
        """Add |L^-1 (x - centre)|^2 of the rows of (feature, row) about one or more centres to ``out`` (row, centre).

        About several centres rows are whitened once: what is then subtracted is the same in all classes, so that
        their differences keep their digits.
        """
        from scipy.linalg.blas import dtrmm

        middle, tied = centres.mean(axis=0), self.columns[self.tied]
        z = x[tied]
        z -= middle[tied, None]
        if len(tied):  # rows that lie one after another are columns to Fortran: the product is written where they are
            z = dtrmm(1.0, self.inverse, z.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        size = np.einsum("jr,jr->r", z, z)
        free = self.columns[self.free]
        flat = (x[free] - middle[free, None]) / self.deviation[:, None]
        size += np.einsum("jr,jr->r", flat, flat)
        out += size[:, None]
        if len(centres) > 1:
            away = self.whiten((centres - middle).T)
            out += np.einsum("jc,jc->c", away, away) - 2.0 * (z.T @ away[self.tied] + flat.T @ away[self.free])
            np.maximum(out, 0.0, out=out)


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
        pairs = zip((centres - middle) / spread, roots, strict=True)
        return cls(middle, spread, tuple(_ClassScreen.from_root(centre, root, spread) for centre, root in pairs))

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
        error = _rounding(len(tied)) * float(np.sqrt((inverse**2).sum() + (per_deviation**2).sum()))
        single = np.asfortranarray(inverse, np.float32), per_deviation.astype(np.float32)
        return cls(centre.astype(np.float32), tied, free, *single, float(np.linalg.norm(centre)), error)

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
        n_terms = len(self.tied) + len(self.free)
        error = self.error * (length + self.reach) + _MIN_SQUARED * np.sqrt(n_terms)  # of |z|, at most
        distance, relative = np.sqrt(size.astype(np.float64)), _rounding(n_terms)
        distance[np.isinf(distance)] = np.nan  # too large for single precision, and no bound
        np.square(np.maximum(distance * (1.0 - relative) - error, 0.0), out=low)
        np.square(distance * (1.0 + relative) + error, out=high)


def _rounding(n_terms: int) -> float:
    """The relative error of a sum of products of numbers that were themselves rounded."""
    return (n_terms + 6) * _UNIT * _SLACK
