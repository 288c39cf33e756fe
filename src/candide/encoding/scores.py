"""Encodings to scores: standardised numbers for discriminants and prototypes, made of numbers, levels or scores."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from candide import kernels
from candide.data.blocks import Codes, Floats, check_finite
from candide.data.labels import Labels, as_column
from candide.data.table import to_numbers
from candide.encoding.base import Encoding, distinct_numbers
from candide.errors import InputError
from candide.kernels import threads
from candide.numerics import nearest_indices

_MAX_KNOTS = 200  # of normal scores
_MAX_SCORE = 40.0  # beyond, a normal quantile has no probability in a float
_SEARCH_COST = 8  # of finding a number's place, in products
_MIN_INDICATOR_VARIANCE = 1e-3
_MIN_ROWS_PER_PROTOTYPE = 2  # on average
_MAX_ROWS_PER_PROTOTYPE = 50  # more rows move a prototype little
_KMEANS_ROUNDS = 5  # it matters more that prototypes are spread as the rows are than where they converge
_DIGITS = 6  # of scores and distances: what differs by rounding is equal, on every machine
_RIDGE = 1e-3  # added to the similarity of a prototype to itself
_MIN_SCORE_VARIANCE = 1e-6
_BLAS_SPEEDUP = 8  # of products in BLAS over products that read a table
_CHUNK_VALUES = 1 << 16  # numbers computed at once: they stay in cache


@dataclass(frozen=True)
class NormalScore(Encoding):
    """A number by its rank in the training column: the normal quantile of the rank, interpolated between knots.

    Increasing transformations of the column make no difference. An absent value has the score of the middle, 0.
    """

    values: tuple[float, ...] = ()  # ascending
    scores: tuple[float, ...] = ()

    block_kind = "scores"

    def __post_init__(self) -> None:
        known = np.array([self.values, self.scores], float) if len(self.values) == len(self.scores) else None
        if (
            known is None
            or not np.isfinite(known).all()
            or (known[0, 1:] <= known[0, :-1]).any()
            or (known[1, 1:] < known[1, :-1]).any()
            or (np.abs(known[1]) > _MAX_SCORE).any()
        ):
            remedy = "let it learn them from a column"
            raise InputError("expected ascending numbers with a score each", remedy=remedy)
        object.__setattr__(self, "values", tuple(known[0].tolist()))
        object.__setattr__(self, "scores", tuple(known[1].tolist()))

    def learn(self, column: Any, weight: Floats | None = None) -> Self:
        """Ranks of a column, at all its distinct values or at ``_MAX_KNOTS`` spread evenly over the ranks."""
        from scipy.special import ndtri  # here, because importing it costs more than loading a small model

        if self.values:
            return self
        values, n = distinct_numbers(column, weight)
        if not n.any():
            return type(self)((0.0,), (0.0,))
        total, last = float(n.sum()), float(min(n[0], n[-1])) / 2  # scores are bounded by those of the outermost values
        rank = (np.cumsum(n) - n / 2) / total
        if len(values) > _MAX_KNOTS:
            at = np.unique(nearest_indices(rank, (np.arange(_MAX_KNOTS) + 0.5) / _MAX_KNOTS, prefer_low=True))
            values, rank = values[at], rank[at]
        scores = ndtri(np.clip(rank, last / total, 1 - last / total))
        return type(self)(tuple(values.tolist()), tuple(scores.tolist()))

    def seen_values(self) -> tuple[float, ...]:
        return self.values

    def decode(self, x: Floats) -> Floats:
        return np.interp(x, self.scores, self.values)

    def _read(self, column: Any) -> Floats:
        x, (knots, scores) = check_finite(to_numbers(as_column(column))), self._knots
        out = np.empty(len(x))
        threads.map_rows(lambda rows: kernels.interpolate(x[rows], knots, scores, out[rows]), len(x), cost=_SEARCH_COST)
        return out

    @cached_property
    def _knots(self) -> tuple[Floats, Floats]:
        return np.array(self.values), np.array(self.scores)

    def value_range(self) -> tuple[float, float] | None:
        return (self.values[0], self.values[-1]) if len(self.values) > 1 else None

    def to_export_dict(self) -> dict[str, Any]:
        return {"read": "score", "values": self.values, "scores": self.scores}


@dataclass(frozen=True)
class Indicators(Encoding):
    """One number for each level: whether a value is that level, standardised in the training column.

    A missing value is 0 for all levels.
    """

    levels: tuple[Any, ...] = ()
    level_proportions: tuple[float, ...] = ()

    block_kind = "scores"
    is_read_as_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        proportions = self.level_proportions
        if len(self.levels) != len(proportions) or not all(0 <= p <= 1 for p in proportions):
            raise InputError("expected a proportion in 0..1 for each level", value=proportions)

    @cached_property
    def labels(self) -> Labels:
        return Labels(self.levels)

    @property
    def width(self) -> int:  # type: ignore[override]
        return len(self.levels)

    @classmethod
    def from_column(cls, column: Any, max_levels: int, weight: Floats | None = None) -> "Indicators":
        """Indicators of the most frequent levels of a column, without the first, which the others imply."""
        known = Labels.from_values(column)
        code = known.encode(column)
        n = np.bincount(code[code >= 0], None if weight is None else weight[code >= 0], len(known))
        chosen = np.sort(np.argsort(-n, kind="stable")[1:max_levels])
        total = len(code) if weight is None else float(weight.sum())
        proportions = np.minimum(n[chosen] / max(1e-300, total), 1.0)
        return cls(tuple(known.values[i] for i in chosen), tuple(proportions.tolist()))

    def read(self, column: Any) -> Floats:
        """(row, level)"""
        code = self.labels.match_codes(column)
        yes, no = self._scores
        out = np.empty((len(code), len(no)), order="F")
        out[:] = no
        seen = np.flatnonzero((code >= 0) & (code < len(no)))
        out[seen, code[seen]] = yes[code[seen]]
        out[np.flatnonzero(code < 0)] = 0.0
        return out

    @cached_property
    def _scores(self) -> tuple[Floats, Floats]:
        """(level,) the score of a value that is the level, and of one that is not."""
        p = np.array(self.level_proportions)
        scale = np.sqrt(np.maximum(p * (1 - p), _MIN_INDICATOR_VARIANCE))
        return (1 - p) / scale, -p / scale

    def to_export_dict(self) -> dict[str, Any]:
        yes, no = self._scores
        return {"read": "indicators", "levels": self.levels, "yes": yes, "no": no}


@dataclass(frozen=True)
class Prototypes(Encoding):
    """The similarity of a row of scores to each prototype, as uncorrelated numbers of one scale.

    Prototypes are the centres of k-means, found without labels. Similarity is a Gaussian kernel: 1 at the prototype,
    and exp(-1) at the distance of two random rows. Similar prototypes would give nearly the same numbers, so what is
    read is the Nystroem map of the kernel.
    """

    values: tuple[float, ...] = ()  # the scores of the prototypes, one after the other
    n_prototypes: int = 0
    length_scale: float = 1.0

    block_kind = "scores"

    def __post_init__(self) -> None:
        if self.n_prototypes < 1 or not self.values or len(self.values) % self.n_prototypes:
            raise InputError("expected prototypes of as many scores each", remedy="let it learn them from rows")
        if not np.isfinite(np.array([*self.values, self.length_scale])).all() or self.length_scale <= 0:
            raise InputError("expected finite prototypes and a positive length scale")

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.n_prototypes

    @cached_property
    def prototypes(self) -> Floats:
        """(prototype, score)"""
        return np.array(self.values).reshape(self.n_prototypes, -1)

    @classmethod
    def from_scores(cls, scores: Floats, max_prototypes: int) -> Self:
        """By k-means of the first rows: as many prototypes as there are rows for, at most ``max_prototypes``."""
        first = np.round(scores[: _MAX_ROWS_PER_PROTOTYPE * max_prototypes], _DIGITS) + 0.0  # 0 and -0 are equal
        n = max(1, min(max_prototypes, len(scores) // _MIN_ROWS_PER_PROTOTYPE))
        prototypes = first[np.sort(np.unique(first, axis=0, return_index=True)[1])[:n]]  # rows that differ
        for _ in range(_KMEANS_ROUNDS):
            nearest = np.round(_squared_distances(first, prototypes), _DIGITS).argmin(axis=1)
            size = np.bincount(nearest, minlength=len(prototypes))
            total = np.column_stack([np.bincount(nearest, column, len(prototypes)) for column in first.T])
            prototypes = total[size > 0] / size[size > 0, None]
        # The mean squared distance of two random rows is twice the variance.
        length_scale = float(np.sqrt(max(first.var(axis=0).sum(), _MIN_SCORE_VARIANCE)))
        return cls(tuple(prototypes.ravel().tolist()), len(prototypes), length_scale)

    def read(self, scores: Floats) -> Floats:
        """(row, prototype)"""
        out, step = np.empty((len(scores), self.n_prototypes), order="F"), max(1, _CHUNK_VALUES // self.n_prototypes)

        def work(rows: slice) -> None:
            for start in range(rows.start, rows.stop, step):
                chunk = slice(start, min(start + step, rows.stop))
                np.matmul(self._similarity(scores[chunk]), self._whitening, out=out[chunk])

        cost = self.n_prototypes * (self.n_prototypes + self.prototypes.shape[1]) // _BLAS_SPEEDUP
        threads.map_rows(work, len(scores), cost=max(1, cost), is_blas_bound=True)
        return out

    def to_export_dict(self) -> dict[str, Any]:
        return {"rows": self.values, "n": self.n_prototypes, "length_scale": self.length_scale, "ridge": _RIDGE}

    def nearest_prototype(self, block: Floats) -> Codes:
        """(row,) the prototype that each row of a block is most similar to."""
        return (block @ self._factor.T).argmax(axis=1)

    def _similarity(self, scores: Floats) -> Floats:
        """(row, prototype) from 0 to 1"""
        out = _squared_distances(scores, self.prototypes)
        out *= -0.5 / self.length_scale**2
        return np.exp(out, out=out)

    @cached_property
    def _factor(self) -> Floats:
        """(prototype, read) the root of the kernel matrix of the prototypes."""
        kernel = self._similarity(self.prototypes) + _RIDGE * np.eye(self.n_prototypes)
        return np.linalg.cholesky(kernel) / np.sqrt(self.n_prototypes)

    @cached_property
    def _whitening(self) -> Floats:
        """(prototype, read) what turns similarities into uncorrelated numbers."""
        return np.ascontiguousarray(np.linalg.inv(self._factor).T)


def _squared_distances(z: Floats, prototypes: Floats) -> Floats:
    """(row, prototype)"""
    out = z @ prototypes.T
    out *= -2.0
    out += np.einsum("np,np->n", z, z)[:, None]
    out += np.einsum("mp,mp->m", prototypes, prototypes)
    return np.maximum(out, 0.0, out=out)
