"""Likeness: how much a row is like each of some typical rows. The columns are looked at together, by their scores.

Typical rows are means of rows that lie close together (k-means), found without labels. Likeness is 1 at a typical row
and falls with the distance as a bell does, to exp(-1) where two rows lie that are taken at random. Typical rows that
are close together say nearly the same, so what is read is likeness to each beyond what likeness to those before tells:
the Nystroem map of a Gaussian kernel, which gives numbers of one size that are unrelated.

>>> scores = np.array([[-1.0, -1.0], [-1.2, -0.8], [0.8, 0.8], [0.9, 0.7]])
>>> like = Prototypes.from_scores(scores, max_prototypes=64)
>>> like.prototypes.round(2).tolist(), like.nearest_prototype(like.read(scores)).tolist()
([[0.85, 0.75], [-1.1, -0.9]], [1, 1, 0, 0])
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.encoding.base import Encoding
from candide.errors import InputError
from candide.kernels import threads

_MIN_ROWS_PER_PROTOTYPE = 2  # that a typical row is the mean of, in the mean, at least
_MAX_ROWS_PER_PROTOTYPE = 50  # rows for each typical one, at most: more of them move it little
_KMEANS_ROUNDS = 5  # of k-means: that typical rows are spread as the rows are matters more than where they come to rest
_DIGITS = 6  # of scores and distances: what differs by rounding is equal, on every machine
_RIDGE = 1e-3  # of the likeness of a typical row to itself: so far apart are any two that say the same
_MIN_VARIANCE = 1e-6  # of the variance of scores
_BLAS_SPEEDUP = 8  # products that BLAS works out in the time of one that reads a table
_CHUNK_VALUES = 1 << 16  # numbers worked at once: they stay in cache


@dataclass(frozen=True)
class Prototypes(Encoding):
    """Typical rows of scores, one after the other, how many there are, and how far likeness reaches."""

    values: tuple[float, ...] = ()
    n_prototypes: int = 0
    length_scale: float = 1.0

    block_kind = "scores"

    def __post_init__(self) -> None:
        if self.n_prototypes < 1 or not self.values or len(self.values) % self.n_prototypes:
            raise InputError("no typical rows of as many scores each", remedy="let it learn them from rows")
        if not np.isfinite(np.array([*self.values, self.length_scale])).all() or self.length_scale <= 0:
            raise InputError("typical rows that are no numbers, or a likeness that does not reach them")

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.n_prototypes

    @cached_property
    def prototypes(self) -> Floats:
        """(typical row, score)"""
        return np.array(self.values).reshape(self.n_prototypes, -1)

    @classmethod
    def from_scores(cls, scores: Floats, max_prototypes: int) -> Self:
        """As many typical rows as there are rows for, at most so many, from those that come first."""
        some = np.round(scores[: _MAX_ROWS_PER_PROTOTYPE * max_prototypes], _DIGITS) + 0.0  # of which 0 and -0 are one
        typical = _find_prototypes(some, max(1, min(max_prototypes, len(scores) // _MIN_ROWS_PER_PROTOTYPE)))
        # The squared distance of two rows taken at random is twice the variance, in the mean.
        reach = float(np.sqrt(max(some.var(axis=0).sum(), _MIN_VARIANCE)))
        return cls(tuple(typical.ravel().tolist()), len(typical), reach)

    def read(self, scores: Floats) -> Floats:
        """(row, typical row)"""
        out, step = np.empty((len(scores), self.n_prototypes), order="F"), max(1, _CHUNK_VALUES // self.n_prototypes)

        def work(rows: slice) -> None:
            for start in range(rows.start, rows.stop, step):
                some = slice(start, min(start + step, rows.stop))
                np.matmul(self._similarity(scores[some]), self._whitening, out=out[some])

        cost = self.n_prototypes * (self.n_prototypes + self.prototypes.shape[1]) // _BLAS_SPEEDUP
        threads.map_rows(work, len(scores), cost=max(1, cost), is_blas_bound=True)
        return out

    def to_export_dict(self) -> dict[str, Any]:
        return {"rows": self.values, "n": self.n_prototypes, "length_scale": self.length_scale, "ridge": _RIDGE}

    def nearest_prototype(self, block: Floats) -> Codes:
        """(row,) which typical row each is most like, of what was read."""
        return (block @ self._factor.T).argmax(axis=1)

    def _similarity(self, scores: Floats) -> Floats:
        """(row, typical row) from 0 to 1"""
        out = _distances(scores, self.prototypes, self._squared_norms)
        out *= -0.5 / self.length_scale**2
        return np.exp(out, out=out)

    @cached_property
    def _squared_norms(self) -> Floats:
        return np.einsum("mp,mp->m", self.prototypes, self.prototypes)

    @cached_property
    def _factor(self) -> Floats:
        """(typical row, read) the root of the likeness of typical rows to each other."""
        return np.linalg.cholesky(self._similarity(self.prototypes) + _RIDGE * np.eye(self.n_prototypes)) / np.sqrt(
            self.n_prototypes
        )

    @cached_property
    def _whitening(self) -> Floats:
        """(typical row, read) what makes unrelated numbers of likeness."""
        return np.ascontiguousarray(np.linalg.inv(self._factor).T)


def _distances(z: Floats, prototypes: Floats, squared_norms: Floats) -> Floats:
    """(row, typical row) squared; ``sizes`` are the squares of the typical rows."""
    out = z @ prototypes.T
    out *= -2.0
    out += np.einsum("np,np->n", z, z)[:, None]
    out += squared_norms
    return np.maximum(out, 0.0, out=out)


def _find_prototypes(z: Floats, n: int) -> Floats:
    """(typical row, score) by k-means, from the first rows that differ; fewer where fewer differ."""
    typical = z[np.sort(np.unique(z, axis=0, return_index=True)[1])[:n]]
    for _ in range(_KMEANS_ROUNDS):
        sizes = np.einsum("mp,mp->m", typical, typical)
        nearest = np.round(_distances(z, typical, sizes), _DIGITS).argmin(axis=1)
        size = np.bincount(nearest, minlength=len(typical))
        total = np.column_stack([np.bincount(nearest, column, len(typical)) for column in z.T])
        typical = total[size > 0] / size[size > 0, None]
    return typical
