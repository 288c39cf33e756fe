"""Whitening: the Cholesky root of a matrix, and its inverse, for many rows at a time.

A triangular matrix is multiplied in half the time of a full one. Columns that no covariance ties to another, such as
the pixels that a class never uses, are divided by their deviations and left out of the product.

>>> root = CholeskyRoot.from_matrix(np.array([[4.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 9.0]]), np.arange(3))
>>> root.tied.tolist(), root.whiten(np.array([[2.0], [1.0], [3.0]])).ravel().tolist()
([0, 1], [1.0, 0.0, 1.0])
>>> round(float(np.exp(root.log_det)), 9)
6.0
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from candide.data.blocks import Codes, Floats


class SingularError(Exception):
    """A matrix that has no root: which of several, and what column is to blame."""

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
        """The root of the submatrix of some columns; a SingularError where it has none."""
        sub = matrix if len(columns) == len(matrix) else matrix[np.ix_(columns, columns)]
        variance = np.einsum("jj->j", sub)
        bad = np.flatnonzero(~(variance > 0) | ~np.isfinite(variance))
        if len(bad):
            raise SingularError(int(columns[bad[0]]))
        tied = np.count_nonzero(sub, axis=1) > 1
        free, tied = np.flatnonzero(~tied), np.flatnonzero(tied)
        inverse = _inverse_root(sub if not len(free) else sub[np.ix_(tied, tied)], columns[tied])
        return cls(columns, tied, free, inverse, np.sqrt(variance[free]))

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
        middle = centres.mean(axis=0)
        z = self._product(x, middle)
        size = np.einsum("jr,jr->r", z, z)
        free = self.columns[self.free]
        flat = (x[free] - middle[free, None]) / self.deviation[:, None] if len(free) else np.empty((0, x.shape[1]))
        size += np.einsum("jr,jr->r", flat, flat)
        out += size[:, None]
        if len(centres) > 1:
            away = self.whiten((centres - middle).T)
            out += np.einsum("jc,jc->c", away, away) - 2.0 * (z.T @ away[self.tied] + flat.T @ away[self.free])
            np.maximum(out, 0.0, out=out)

    def _product(self, x: Floats, centre: Floats) -> Floats:
        """(tied, row) L^-1 (x - centre), by a triangular product."""
        if not len(self.tied):
            return np.empty((0, x.shape[1]))
        from scipy.linalg.blas import dtrmm

        at = self.columns[self.tied]
        rows = x[at]
        rows -= centre[at, None]
        # Rows that lie one after another are columns to Fortran: so the product is written where they are.
        return dtrmm(1.0, self.inverse, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1).T


def _inverse_root(matrix: Floats, columns: Codes) -> Floats:
    """L^-1. Taken in standard units, so that a column's unit decides nothing."""
    from scipy.linalg.lapack import dpotrf, dtrtri

    p = len(matrix)
    if p == 0:
        return np.empty((0, 0), order="F")
    unit = 1.0 / np.sqrt(np.einsum("jj->j", matrix))
    root, failed = dpotrf(matrix * unit[:, None] * unit, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise SingularError(int(columns[failed - 1]))
    pivots = np.einsum("jj->j", root)
    if not (pivots**2 > 10 * p * np.finfo(np.float64).eps).all():
        raise SingularError(int(columns[np.argmin(pivots)]))
    inverse = dtrtri(root, lower=1, overwrite_c=1)[0]
    return np.asfortranarray(inverse * unit)
