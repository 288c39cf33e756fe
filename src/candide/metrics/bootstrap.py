"""Bootstrap: how far a metric would be off on as many other rows, by drawing from those scored (Efron, 1979).

Some rows are kept with all that a metric needs of them: all while they are few, else as many as there is room for,
drawn by lot, so that samples of parts add as sums do. Drawings of a sample vary more than all rows would; what a metric
moves by is scaled by the root of the share of rows that it holds.

>>> log_posterior, y = np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])
>>> winner, odds = log_posterior.argmax(axis=1), log_posterior[:, 1:] - log_posterior[:, :1]
>>> sample = BootstrapSample.from_rows(y, winner, -log_posterior[np.arange(4), y], np.zeros(4), None, odds)
>>> {name: np.quantile(values, [0.1, 0.9]).tolist() for name, values in sample.draw_metrics(200).items()}["accuracy"]
[0.5, 1.0]
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from candide.metrics import formulas
from candide.metrics.formulas import ClassCounts, Floats

MAX_ROWS = 1 << 13  # kept: the standard error of a share of a hundredth of them is known to some 8 %
MAX_CURVES = 64  # of more classes the log-odds of rows are not kept, and areas have no interval
N_DRAWS = 400
_ROWS_AT_ONCE = 1 << 21  # rows drawn in one step

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapSample:
    """Rows by lot: their class, the one they were given (below 0: none), what they cost, and their log-odds."""

    n: int  # rows that they stand for
    random_key: Floats  # (row,)
    y: Codes
    predicted: Codes
    loss: Floats
    squared_error: Floats
    weight: Floats
    log_odds: Floats  # (row, curve); no curve where they are too many

    @classmethod
    def from_rows(
        cls, y: Codes, winner: Codes, loss: Floats, square: Floats, weight: Floats | None, odds: Floats
    ) -> Self:
        n = len(y)
        seed = zlib.crc32(y.astype(np.int64).tobytes(), zlib.crc32(winner.astype(np.int64).tobytes()))
        kept = odds if odds.shape[1] <= MAX_CURVES else odds[:, :0]
        lot = np.random.default_rng(seed).random(n)  # by the rows themselves, whatever was scored before them
        return cls(n, lot, y, winner, loss, square, np.ones(n) if weight is None else weight, kept)._limit_rows()

    def __add__(self, other: Self) -> Self:
        rows = [np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)[1:]]
        return type(self)(self.n + other.n, *rows)._limit_rows(MAX_ROWS * 2)  # cut now and then, not each time

    def _limit_rows(self, most: int = MAX_ROWS) -> Self:
        return (
            self if len(self.random_key) <= most else self._take(np.argpartition(self.random_key, MAX_ROWS)[:MAX_ROWS])
        )

    def _take(self, rows: Codes) -> Self:
        return type(self)(self.n, *(getattr(self, f.name)[rows] for f in fields(self)[1:]))

    def draw_metrics(self, draws: int = N_DRAWS, seed: int = 0) -> dict[str, Floats]:
        """(drawing,) each metric of so many drawings of the rows."""
        rows = self._limit_rows()
        rows = rows._take(np.argsort(rows.random_key))  # in whatever order parts were added
        m, rng, found = len(rows.y), np.random.default_rng(seed), list[Mapping[str, Floats]]()
        step = max(1, _ROWS_AT_ONCE // m)
        for start in range(0, draws, step):
            some = min(step, draws - start)
            at = rng.integers(m, size=(some, m)) + m * np.arange(some)[:, None]
            found.append(rows._metrics(np.bincount(at.ravel(), minlength=some * m).reshape(some, m) * rows.weight))
        return {name: np.concatenate([one[name] for one in found]) for name in found[0]}

    def draw_deviations(self, draws: int = N_DRAWS, seed: int = 0) -> dict[str, Floats]:
        """(drawing,) by how much each metric of so many drawings of all rows differs from that of all rows."""
        rows = self._limit_rows()
        own = rows._metrics(rows.weight[None, :])
        shrunk = np.sqrt(len(rows.y) / self.n)
        return {name: (values - own[name]) * shrunk for name, values in self.draw_metrics(draws, seed).items()}

    def _metrics(self, w: Floats) -> dict[str, Floats]:
        """(drawing,) each metric under weights (drawing, row)."""
        loss, square = w @ self.loss, w @ self.squared_error
        return compute_metrics(self._counts(w), w.sum(axis=1), loss, square, *self._curves(w))

    def _counts(self, w: Floats) -> ClassCounts:
        """(drawing, class) of the classes that any row has or is given."""
        decided = np.flatnonzero(self.predicted >= 0)
        binary = np.arange(2 if self.log_odds.shape[1] == 1 else 0)  # of two classes the second has its place
        met, codes = np.unique(np.concatenate([binary, self.y[decided], self.predicted[decided]]), return_inverse=True)
        codes = codes[len(binary) :]
        y, winner = codes[: len(decided)], codes[len(decided) :]
        right = y == winner
        of = (y[right], decided[right]), (y, decided), (winner, decided)
        return ClassCounts(*(_sum_by_class(w, code, rows, len(met)) for code, rows in of))

    def _curves(self, w: Floats) -> tuple[Floats, Floats, Floats]:
        """(curve, drawing) areas, average precisions, and the weight of the class."""
        found = [
            (formulas.roc_area(other, own), formulas.average_precision(other, own), own.sum(axis=-1))
            for other, own in self._sorted_weights(w)
        ]
        areas, precisions, own = np.array(found).reshape(-1, 3, len(w)).transpose(1, 0, 2)
        return areas, precisions, own

    def _sorted_weights(self, w: Floats) -> Iterator[tuple[Floats, Floats]]:
        """(drawing, value) weights of others and of the class, in ascending order of log-odds, curve by curve."""
        for c in range(self.log_odds.shape[1]):
            order = np.argsort(self.log_odds[:, c], kind="stable")
            x, own = self.log_odds[order, c], self.y[order] == (c if self.log_odds.shape[1] > 1 else 1)
            first = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
            mine, every = w[:, order] * own, w[:, order]
            if len(first) < len(x):
                mine, every = np.add.reduceat(mine, first, axis=1), np.add.reduceat(every, first, axis=1)
            yield every - mine, mine


def compute_metrics(
    counts: ClassCounts,
    n: Floats,
    loss: Floats,
    square: Floats,
    areas: Floats,
    precisions: Floats,
    class_weights: Floats,
) -> dict[str, Floats]:
    """(drawing,) each metric, of sums and of curves, (curve, drawing), with the weight of their class."""
    two = 2 if len(areas) == 1 else 1
    by_rows = class_weights / class_weights.sum(axis=0) if class_weights.size else class_weights
    return {
        "accuracy": formulas.accuracy(counts),
        "balanced_accuracy": formulas.balanced_accuracy(counts),
        "precision": formulas.headline(formulas.precision(counts), counts, two == 2),
        "f1": formulas.headline(formulas.f1(counts), counts, two == 2),
        "matthews": formulas.matthews(counts),
        "log_loss": formulas.ratio(loss, n, np.nan),
        "brier": formulas.ratio(square, n * two, np.nan),
        "auc": _mean_over_curves(areas, np.ones_like(areas)),
        "weighted_auc": _mean_over_curves(areas, by_rows),
        "average_precision": _mean_over_curves(precisions, np.ones_like(precisions)),
    }


def _sum_by_class(w: Floats, code: Codes, rows: Codes, k: int) -> Floats:
    """(drawing, class) weights of some rows by class."""
    from scipy.sparse import csr_array

    return (csr_array((np.ones(len(rows)), (code, rows)), shape=(k, w.shape[1])) @ w.T).T


def _mean_over_curves(values: Floats, weight: Floats) -> Floats:
    """Over curves, those that are defined."""
    there = ~np.isnan(values)
    return formulas.ratio((np.where(there, values, 0.0) * weight).sum(axis=0), (there * weight).sum(axis=0), np.nan)
