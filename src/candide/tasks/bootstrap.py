"""Bootstrap: how far a metric would be off on as many other rows, by drawing from those scored (Efron, 1979).

Some rows are kept with all that a metric needs of them: all while they are few, else as many as there is room for,
drawn by lot, so that samples of parts add as sums do. Drawings of a sample vary more than all rows would; what a metric
moves by is scaled by the root of the share of rows that it holds.

>>> log_posterior, y = np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])
>>> winner, odds = log_posterior.argmax(axis=1), log_posterior[:, 1:] - log_posterior[:, :1]
>>> sample = Sample.of(y, winner, -log_posterior[np.arange(4), y], np.zeros(4), None, odds)
>>> {name: np.quantile(values, [0.1, 0.9]).tolist() for name, values in sample.drawn(200).items()}["accuracy"]
[0.5, 1.0]
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from candide.tasks import metrics
from candide.tasks.metrics import Counts, Floats

ROWS = 1 << 13  # kept: the standard error of a share of a hundredth of them is known to some 8 %
CURVES = 64  # of more classes the log-odds of rows are not kept, and areas have no interval
DRAWS = 400
_AT_ONCE = 1 << 21  # rows drawn in one step

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Rows by lot: their class, the one they were given (below 0: none), what they cost, and their log-odds."""

    n: int  # rows that they stand for
    lot: Floats  # (row,)
    y: Codes
    winner: Codes
    loss: Floats
    square: Floats
    weight: Floats
    odds: Floats  # (row, curve); no curve where they are too many

    @classmethod
    def of(cls, y: Codes, winner: Codes, loss: Floats, square: Floats, weight: Floats | None, odds: Floats) -> Self:
        n = len(y)
        seed = zlib.crc32(y.astype(np.int64).tobytes(), zlib.crc32(winner.astype(np.int64).tobytes()))
        kept = odds if odds.shape[1] <= CURVES else odds[:, :0]
        lot = np.random.default_rng(seed).random(n)  # by the rows themselves, whatever was scored before them
        return cls(n, lot, y, winner, loss, square, np.ones(n) if weight is None else weight, kept)._bounded()

    def __add__(self, other: Self) -> Self:
        rows = [np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)[1:]]
        return type(self)(self.n + other.n, *rows)._bounded(ROWS * 2)  # cut now and then, not each time

    def _bounded(self, most: int = ROWS) -> Self:
        return self if len(self.lot) <= most else self._at(np.argpartition(self.lot, ROWS)[:ROWS])

    def _at(self, rows: Codes) -> Self:
        return type(self)(self.n, *(getattr(self, f.name)[rows] for f in fields(self)[1:]))

    def drawn(self, draws: int = DRAWS, seed: int = 0) -> dict[str, Floats]:
        """(drawing,) each metric of so many drawings of the rows."""
        rows = self._bounded()
        rows = rows._at(np.argsort(rows.lot))  # in whatever order parts were added
        m, rng, found = len(rows.y), np.random.default_rng(seed), list[Mapping[str, Floats]]()
        step = max(1, _AT_ONCE // m)
        for start in range(0, draws, step):
            some = min(step, draws - start)
            at = rng.integers(m, size=(some, m)) + m * np.arange(some)[:, None]
            found.append(rows._measured(np.bincount(at.ravel(), minlength=some * m).reshape(some, m) * rows.weight))
        return {name: np.concatenate([one[name] for one in found]) for name in found[0]}

    def spread(self, draws: int = DRAWS, seed: int = 0) -> dict[str, Floats]:
        """(drawing,) by how much each metric of so many drawings of all rows differs from that of all rows."""
        rows = self._bounded()
        own = rows._measured(rows.weight[None, :])
        shrunk = np.sqrt(len(rows.y) / self.n)
        return {name: (values - own[name]) * shrunk for name, values in self.drawn(draws, seed).items()}

    def _measured(self, w: Floats) -> dict[str, Floats]:
        """(drawing,) each metric under weights (drawing, row)."""
        loss, square = w @ self.loss, w @ self.square
        return figures(self._counts(w), w.sum(axis=1), loss, square, *self._curves(w))

    def _counts(self, w: Floats) -> Counts:
        """(drawing, class) of the classes that any row has or is given."""
        decided = np.flatnonzero(self.winner >= 0)
        binary = np.arange(2 if self.odds.shape[1] == 1 else 0)  # of two classes the second has its place
        met, codes = np.unique(np.concatenate([binary, self.y[decided], self.winner[decided]]), return_inverse=True)
        codes = codes[len(binary) :]
        y, winner = codes[: len(decided)], codes[len(decided) :]
        right = y == winner
        of = (y[right], decided[right]), (y, decided), (winner, decided)
        return Counts(*(_sums(w, code, rows, len(met)) for code, rows in of))

    def _curves(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """(curve, drawing) areas, average precisions, and the weight of the class."""
        found = [
            (metrics.area(other, own), metrics.average_precision(other, own), own.sum(axis=-1))
            for other, own in self._ordered(w)
        ]
        areas, precisions, own = np.array(found).reshape(-1, 3, len(w)).transpose(1, 0, 2)
        return areas, precisions, own

    def _ordered(self, w: Floats) -> Iterator[tuple[Floats, Floats]]:
        """(drawing, value) weights of others and of the class, in ascending order of log-odds, curve by curve."""
        for c in range(self.odds.shape[1]):
            order = np.argsort(self.odds[:, c], kind="stable")
            x, own = self.odds[order, c], self.y[order] == (c if self.odds.shape[1] > 1 else 1)
            first = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
            mine, every = w[:, order] * own, w[:, order]
            if len(first) < len(x):
                mine, every = np.add.reduceat(mine, first, axis=1), np.add.reduceat(every, first, axis=1)
            yield every - mine, mine


def figures(
    counts: Counts, n: Floats, loss: Floats, square: Floats, areas: Floats, precisions: Floats, own: Floats
) -> dict[str, Floats]:
    """(drawing,) each metric, of sums and of curves, (curve, drawing), with the weight of their class."""
    two = 2 if len(areas) == 1 else 1
    by_rows = own / own.sum(axis=0) if own.size else own
    return {
        "accuracy": metrics.accuracy(counts),
        "balanced_accuracy": metrics.balanced_accuracy(counts),
        "precision": metrics.headline(metrics.precision(counts), counts, two == 2),
        "f1": metrics.headline(metrics.f1(counts), counts, two == 2),
        "matthews": metrics.matthews(counts),
        "log_loss": metrics.share(loss, n, np.nan),
        "brier": metrics.share(square, n * two, np.nan),
        "auc": _mean(areas, np.ones_like(areas)),
        "weighted_auc": _mean(areas, by_rows),
        "average_precision": _mean(precisions, np.ones_like(precisions)),
    }


def _sums(w: Floats, code: Codes, rows: Codes, k: int) -> Floats:
    """(drawing, class) weights of some rows by class."""
    from scipy.sparse import csr_array

    return (csr_array((np.ones(len(rows)), (code, rows)), shape=(k, w.shape[1])) @ w.T).T


def _mean(values: Floats, weight: Floats) -> Floats:
    """Over curves, those that are defined."""
    there = ~np.isnan(values)
    return metrics.share((np.where(there, values, 0.0) * weight).sum(axis=0), (there * weight).sum(axis=0), np.nan)
