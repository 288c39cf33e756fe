"""Bootstrap intervals of metrics, by drawing from the scored rows (Efron, 1979), or from whole folds.

A random sample of the rows is kept with everything that metrics need: all rows while they are few, else as many as fit,
so that samples of parts can be added as sums can. Draws of a sample vary more than draws of all rows; deviations are
scaled by the root of the fraction of rows that it holds. Rows of a fold share their model and, with ``fold_by``, for
example a patient, so they are not independent: a fold that is drawn twice counts twice, with all of its rows.

>>> log_posterior, y = np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])
>>> winner, odds = log_posterior.argmax(axis=1), log_posterior[:, 1:] - log_posterior[:, :1]
>>> sample = BootstrapSample.from_rows(y, winner, -log_posterior[np.arange(4), y], np.zeros(4), None, odds)
>>> np.quantile(sample.draw_metrics(200)["accuracy"], [0.1, 0.9]).tolist()
[0.5, 1.0]
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, unknown_name_error
from candide.metrics.auc import Ranks
from candide.metrics.formulas import METRICS, ClassCounts, Floats, average_precision, roc_area

if TYPE_CHECKING:
    from candide.metrics.scores import Scores

MAX_ROWS = 1 << 13  # kept: the standard error of a proportion of 1 % of them is known to some 8 %
MAX_CURVES = 64  # with more classes the log-odds of rows are not kept, and areas have no interval
N_DRAWS = 400
RESAMPLING_UNITS = ("rows", "folds")
MIN_FOLDS = 5  # fewer folds have fewer than 100 different draws (4 have 35), so that an end of 95 % is the last of them
_ROWS_AT_ONCE = 1 << 21  # rows drawn in one step

Codes = NDArray[np.intp]
Intervals = dict[str, tuple[float, float]]


@dataclass(frozen=True, eq=False, repr=False)
class BootstrapSample:
    """A random sample of rows: class, predicted class (below 0: none), losses, weight and log-odds."""

    n: int  # rows that they were drawn from
    random_key: Floats  # (row,)
    y: Codes
    predicted: Codes
    loss: Floats
    squared_error: Floats
    weight: Floats
    log_odds: Floats  # (row, curve); no curve where they are too many

    @classmethod
    def from_rows(
        cls, y: Codes, predicted: Codes, loss: Floats, squared_error: Floats, weight: Floats | None, log_odds: Floats
    ) -> Self:
        n = len(y)
        seed = zlib.crc32(y.astype(np.int64).tobytes(), zlib.crc32(predicted.astype(np.int64).tobytes()))
        kept = log_odds if log_odds.shape[1] <= MAX_CURVES else log_odds[:, :0]
        key = np.random.default_rng(seed).random(n)  # by the rows themselves, whatever was scored before them
        weight = np.ones(n) if weight is None else weight
        return cls(n, key, y, predicted, loss, squared_error, weight, kept)._limit_rows()

    def __add__(self, other: Self) -> Self:
        rows = [np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)[1:]]
        return type(self)(self.n + other.n, *rows)._limit_rows(MAX_ROWS * 2)  # cut now and then, not each time

    def _limit_rows(self, limit: int = MAX_ROWS) -> Self:
        if len(self.random_key) <= limit:
            return self
        return self._take(np.argpartition(self.random_key, MAX_ROWS)[:MAX_ROWS])

    def _take(self, rows: Codes) -> Self:
        return type(self)(self.n, *(getattr(self, f.name)[rows] for f in fields(self)[1:]))

    def draw_metrics(self, draws: int = N_DRAWS, seed: int = 0) -> dict[str, Floats]:
        """(draw,) each metric of bootstrap draws of the rows."""
        rows = self._limit_rows()
        rows = rows._take(np.argsort(rows.random_key))  # in whatever order parts were added
        m, rng, parts = len(rows.y), np.random.default_rng(seed), list[Mapping[str, Floats]]()
        step = max(1, _ROWS_AT_ONCE // m)
        for start in range(0, draws, step):
            n = min(step, draws - start)
            at = rng.integers(m, size=(n, m)) + m * np.arange(n)[:, None]
            parts.append(rows._metrics(np.bincount(at.ravel(), minlength=n * m).reshape(n, m) * rows.weight))
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def draw_deviations(self, draws: int = N_DRAWS, seed: int = 0) -> dict[str, Floats]:
        """(draw,) the deviation of each metric of bootstrap draws of all rows from that of all rows."""
        rows = self._limit_rows()
        own = rows._metrics(rows.weight[None, :])
        scale = np.sqrt(len(rows.y) / self.n)
        return {name: (values - own[name]) * scale for name, values in self.draw_metrics(draws, seed).items()}

    def _metrics(self, w: Floats) -> dict[str, Floats]:
        """(draw,) each metric under weights (draw, row)."""
        curves = _stack_curves(self._sorted_weights(w), len(w))
        is_binary = self.log_odds.shape[1] == 1
        loss, squared_error = w @ self.loss, w @ self.squared_error
        return compute_metrics(DrawnFigures(self._counts(w), w.sum(axis=1), loss, squared_error, *curves, is_binary))

    def _counts(self, w: Floats) -> ClassCounts:
        """(draw, class) of the classes that any row has or is predicted as."""
        decided = np.flatnonzero(self.predicted >= 0)
        binary = np.arange(2 if self.log_odds.shape[1] == 1 else 0)  # of two classes the second has its place
        pairs = np.concatenate([binary, self.y[decided], self.predicted[decided]])
        classes, codes = np.unique(pairs, return_inverse=True)
        codes = codes[len(binary) :]
        y, predicted = codes[: len(decided)], codes[len(decided) :]
        correct = y == predicted
        groups = (y[correct], decided[correct]), (y, decided), (predicted, decided)
        return ClassCounts(*(_sum_by_class(w, code, rows, len(classes)) for code, rows in groups))

    def _sorted_weights(self, w: Floats) -> Iterator[tuple[Floats, Floats]]:
        """(draw, value) weights of others and of the class, in ascending order of log-odds, curve by curve."""
        for c in range(self.log_odds.shape[1]):
            order = np.argsort(self.log_odds[:, c], kind="stable")
            x, is_class = self.log_odds[order, c], self.y[order] == (c if self.log_odds.shape[1] > 1 else 1)
            first = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]]))
            own, all_rows = w[:, order] * is_class, w[:, order]
            if len(first) < len(x):
                own, all_rows = np.add.reduceat(own, first, axis=1), np.add.reduceat(all_rows, first, axis=1)
            yield all_rows - own, own


class DrawnFigures(NamedTuple):
    """What metrics are computed from, of draws."""

    class_counts: ClassCounts  # (draw, class)
    n: Floats  # (draw,)
    sum_neg_log: Floats
    sum_squared_error: Floats
    areas: Floats  # (curve, draw)
    average_precisions: Floats
    curve_weights: Floats
    is_binary: bool
    confidence_bins: Any = None


def compute_metrics(figures: DrawnFigures) -> dict[str, Floats]:
    """(draw,) each metric that has intervals."""
    return {name: metric.compute(figures) for name, metric in METRICS.items() if metric.has_interval}


def _sum_by_class(w: Floats, code: Codes, rows: Codes, n_classes: int) -> Floats:
    """(draw, class) weights of rows by class."""
    from scipy.sparse import csr_array

    return (csr_array((np.ones(len(rows)), (code, rows)), shape=(n_classes, w.shape[1])) @ w.T).T


def _stack_curves(weights: Iterator[tuple[Floats, Floats]], draws: int) -> tuple[Floats, Floats, Floats]:
    """(curve, draw) areas, average precisions, and the weight of the class."""
    each = [(roc_area(other, own), average_precision(other, own), own.sum(axis=-1)) for other, own in weights]
    areas, precisions, own = np.array(each).reshape(-1, 3, draws).transpose(1, 0, 2)
    return areas, precisions, own


# Intervals


def resampled_intervals(
    folds: "Sequence[Scores]", level: float = 0.95, *, by: str = "rows", draws: int = N_DRAWS, seed: int = 0
) -> Intervals:
    """Intervals of the metrics of all rows, by drawing rows, or whole folds."""
    if by not in RESAMPLING_UNITS:
        raise unknown_name_error("resampling unit", by, RESAMPLING_UNITS)
    if by == "rows":
        return reduce(add, folds).intervals(level, draws=draws, seed=seed)
    n = len(folds)
    if n < 2:
        remedy = "cross-validate, or draw rows: by='rows' (--intervals-by rows)"
        raise InputError("expected at least two folds to draw from", value=n, remedy=remedy)
    w = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), draws).astype(float)
    scale = np.sqrt(n / (n - 1))  # draws of n folds have (n - 1) / n of the variance of n other folds
    with np.errstate(invalid="ignore"):  # the loss of an impossible row is infinite
        drawn, own = fold_metrics(folds, w), fold_metrics(folds, np.ones((1, n)))
        deviations = {name: (values - own[name]) * scale for name, values in drawn.items()}
    return metric_intervals(reduce(add, folds), deviations, level)


def fold_metrics(folds: "Sequence[Scores]", w: Floats) -> dict[str, Floats]:
    """(draw,) each metric where folds have the weights (draw, fold).

    >>> from candide.metrics.scores import Scores
    >>> labels = ([0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0])
    >>> folds = [Scores.from_log_posterior(np.log([[0.8, 0.2]] * 4), np.array(y)) for y in labels]
    >>> fold_metrics(folds, np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]]))["accuracy"].round(4).tolist()
    [0.75, 0.6667]
    """
    counts = ClassCounts(*(w @ np.stack(each) for each in zip(*(fold.class_counts for fold in folds), strict=True)))
    sums = zip(*((fold.n, fold.sum_neg_log, fold.sum_squared_error) for fold in folds), strict=True)
    n, loss, squared_error = (w @ np.array(each) for each in sums)
    curves = _stack_curves(_fold_weights([fold.ranks for fold in folds], w), len(w))
    return compute_metrics(DrawnFigures(counts, n, loss, squared_error, *curves, len(curves[0]) == 1))


def _fold_weights(folds: Sequence[Ranks], w: Floats) -> Iterator[tuple[Floats, Floats]]:
    """(draw, value) weights of others and of the class, curve by curve."""
    total = reduce(add, folds)
    for c in range(total.n_curves if total.n_curves <= MAX_CURVES else 0):
        common = total.curve(c).join_bins(MAX_ROWS)
        other, own = zip(*(fold.curve(c).weights_within(common) for fold in folds), strict=True)
        yield w @ np.stack(other), w @ np.stack(own)


def metric_intervals(scores: "Scores", deviations: Mapping[str, Floats], level: float) -> Intervals:
    """Each metric plus the quantiles of its deviations in draws, within its range.

    If every row is right, or every one wrong, no draw deviates: the accuracy then has the exact bound of a proportion
    (Clopper and Pearson, 1934), and other metrics that do not vary have no interval.
    """
    intervals: Intervals = {}
    for name, each in deviations.items():
        value, (lowest, highest) = getattr(scores, name), METRICS[name].range
        low, high = _bias_corrected_interval(value, each[~np.isnan(each)], level)
        if name == "accuracy" and low != low and value in (0.0, 1.0):
            bound = ((1 - level) / 2) ** (1 / scores.sample.n)
            low, high = (bound, 1.0) if value else (0.0, 1 - bound)
        intervals[name] = float(max(low, lowest)), float(min(high, highest))
    return intervals


def _bias_corrected_interval(value: float, deviations: Floats, level: float) -> tuple[float, float]:
    """A metric plus the quantiles of its deviations, less twice their mean, the bias.

    Once because draws are biased, and once because the metric itself has the same bias against that of all possible
    rows: few rows of a class have too high an average precision, and draws of them a higher one. Below a quarter of the
    standard deviation the bias can be left alone (Efron and Tibshirani, 1993); where it exceeds the standard deviation,
    or draws do not vary, there is no interval.
    """
    bias, sd = (deviations.mean(), deviations.std()) if len(deviations) else (np.nan, np.nan)
    if not (sd > 1e-12 and abs(bias) <= sd):
        return np.nan, np.nan
    shift = 2 * bias if abs(bias) > sd / 4 else 0.0
    low, high = value - shift + np.quantile(deviations, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
