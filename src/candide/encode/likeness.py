"""Likeness: how much a row is like each of some typical rows. The columns are looked at together, by their scores.

Typical rows are means of rows that lie close together (k-means), found without labels. Likeness is 1 at a typical row
and falls with the distance as a bell does, to exp(-1) where two rows lie that are taken at random. Typical rows that
are close together say nearly the same, so what is read is likeness to each beyond what likeness to those before tells:
the Nystroem map of a Gaussian kernel, which gives numbers of one size that are unrelated.

>>> scores = np.array([[-1.0, -1.0], [-1.2, -0.8], [0.8, 0.8], [0.9, 0.7]])
>>> like = Likeness.of(scores, most=64)
>>> like.typical.round(2).tolist(), like.nearest(like.read(scores)).tolist()
([[0.85, 0.75], [-1.1, -0.9]], [1, 1, 0, 0])
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from candide.encode.base import Encoding
from candide.errors import InputError
from candide.kernels import threads
from candide.rows.blocks import Codes, Floats

_ROWS = 2  # that a typical row is the mean of, in the mean, at least
_LOOKED_AT = 50  # rows for each typical one, at most: more of them move it little
_ROUNDS = 5  # of k-means: that typical rows are spread as the rows are matters more than where they come to rest
_DIGITS = 6  # of scores and distances: what differs by rounding is equal, on every machine
_BLUR = 1e-3  # of the likeness of a typical row to itself: so far apart are any two that say the same
_LEAST = 1e-6  # of the variance of scores
_CHEAP = 8  # products that BLAS works out in the time of one that reads a table
_PIECE = 1 << 16  # numbers worked at once: they stay in cache


@dataclass(frozen=True)
class Likeness(Encoding):
    """Typical rows of scores, one after the other, how many there are, and how far likeness reaches."""

    rows: tuple[float, ...] = ()
    n_rows: int = 0
    reach: float = 1.0

    holds = "scores"

    def __post_init__(self) -> None:
        if self.n_rows < 1 or not self.rows or len(self.rows) % self.n_rows:
            raise InputError("no typical rows of as many scores each", remedy="let it learn them from rows")
        if not np.isfinite(np.array([*self.rows, self.reach])).all() or self.reach <= 0:
            raise InputError("typical rows that are no numbers, or a likeness that does not reach them")

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.n_rows

    @cached_property
    def typical(self) -> Floats:
        """(typical row, score)"""
        return np.array(self.rows).reshape(self.n_rows, -1)

    @classmethod
    def of(cls, scores: Floats, most: int) -> Self:
        """As many typical rows as there are rows for, at most so many, from those that come first."""
        some = np.round(scores[: _LOOKED_AT * most], _DIGITS) + 0.0  # of which 0 and -0 are one
        typical = _means(some, max(1, min(most, len(scores) // _ROWS)))
        # The squared distance of two rows taken at random is twice the variance, in the mean.
        reach = float(np.sqrt(max(some.var(axis=0).sum(), _LEAST)))
        return cls(tuple(typical.ravel().tolist()), len(typical), reach)

    def read(self, scores: Floats) -> Floats:
        """(row, typical row)"""
        out, step = np.empty((len(scores), self.n_rows), order="F"), max(1, _PIECE // self.n_rows)

        def work(rows: slice) -> None:
            for start in range(rows.start, rows.stop, step):
                some = slice(start, min(start + step, rows.stop))
                np.matmul(self._like(scores[some]), self._apart, out=out[some])

        cost = self.n_rows * (self.n_rows + self.typical.shape[1]) // _CHEAP
        threads.over_rows(work, len(scores), cost=max(1, cost), by_blas=True)
        return out

    def exported(self) -> dict[str, Any]:
        return {"read": "likeness", "rows": self.rows, "n": self.n_rows, "reach": self.reach, "blur": _BLUR}

    def nearest(self, block: Floats) -> Codes:
        """(row,) which typical row each is most like, of what was read."""
        return (block @ self._factor.T).argmax(axis=1)

    def _like(self, scores: Floats) -> Floats:
        """(row, typical row) from 0 to 1"""
        out = _distances(scores, self.typical, self._sizes)
        out *= -0.5 / self.reach**2
        return np.exp(out, out=out)

    @cached_property
    def _sizes(self) -> Floats:
        return np.einsum("mp,mp->m", self.typical, self.typical)

    @cached_property
    def _factor(self) -> Floats:
        """(typical row, read) the root of the likeness of typical rows to each other."""
        return np.linalg.cholesky(self._like(self.typical) + _BLUR * np.eye(self.n_rows)) / np.sqrt(self.n_rows)

    @cached_property
    def _apart(self) -> Floats:
        """(typical row, read) what makes unrelated numbers of likeness."""
        return np.ascontiguousarray(np.linalg.inv(self._factor).T)


def _distances(z: Floats, typical: Floats, sizes: Floats) -> Floats:
    """(row, typical row) squared; ``sizes`` are the squares of the typical rows."""
    out = z @ typical.T
    out *= -2.0
    out += np.einsum("np,np->n", z, z)[:, None]
    out += sizes
    return np.maximum(out, 0.0, out=out)


def _means(z: Floats, n: int) -> Floats:
    """(typical row, score) by k-means, from the first rows that differ; fewer where fewer differ."""
    typical = z[np.sort(np.unique(z, axis=0, return_index=True)[1])[:n]]
    for _ in range(_ROUNDS):
        sizes = np.einsum("mp,mp->m", typical, typical)
        nearest = np.round(_distances(z, typical, sizes), _DIGITS).argmin(axis=1)
        size = np.bincount(nearest, minlength=len(typical))
        total = np.column_stack([np.bincount(nearest, column, len(typical)) for column in z.T])
        typical = total[size > 0] / size[size > 0, None]
    return typical
