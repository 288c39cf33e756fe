"""Metrics as functions of figures (class counts, sums of losses, areas under curves), and their bootstrap intervals.

Every function takes arrays whose last axis is the class, or the rank by score, and returns an array over the axes
before it, so that bootstrap draws take the same code as the scored rows. By class, a ratio with denominator 0 is 0;
averages are over the classes that occur, as in scikit-learn. A new metric is a function of :class:`Figures` and a line
in ``METRICS``.

Intervals come from draws of the scored rows (Efron, 1979), or of whole folds. A random sample of the rows is kept with
everything that metrics need: all rows while they are few, else as many as fit, so that samples of parts can be added as
sums can. Draws of a sample vary more than draws of all rows; deviations are scaled by the root of the fraction of rows
that it holds. Rows of a fold share their model and, with ``fold_by``, for example a patient, so they are not
independent: a fold that is drawn twice counts twice, with all of its rows.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, unknown_name_error
from candide.metrics.auc import Floats, Ranks, average_precision, ratio, roc_area

if TYPE_CHECKING:
    from candide.metrics.scores import Scores

Codes = NDArray[np.intp]
Intervals = dict[str, tuple[float, float]]

AVERAGES = ("macro", "micro", "weighted")  # equal weight of classes, equal weight of rows, classes by their rows
MAX_ROWS = 1 << 13  # kept: the standard error of a proportion of 1 % of them is known to some 8 %
MAX_CURVES = 64  # with more classes the log-odds of rows are not kept, and areas have no interval
N_DRAWS = 400
RESAMPLING_UNITS = ("rows", "folds")
MIN_FOLDS = 5  # fewer folds have fewer than 100 different draws (4 have 35), so that an end of 95 % is the last of them
_ROWS_AT_ONCE = 1 << 21  # rows drawn in one step


class ClassCounts(NamedTuple):
    """Weight of rows by class: of the class and predicted as it, of the class, predicted as it."""

    correct: Floats
    true: Floats
    predicted: Floats

    @classmethod
    def from_confusion(cls, confusion: Floats) -> "ClassCounts":
        return cls(np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0))

    @property
    def present_classes(self) -> NDArray[np.bool_]:
        """Which classes have rows, or are predicted."""
        return (self.true > 0) | (self.predicted > 0)


# What metrics are computed from: scored rows, or bootstrap draws of them with a further axis.
Figures: TypeAlias = "Scores | DrawnFigures"


# A ratio by class: of the rows predicted as it, the proportion that is of it; of its rows, the proportion that is
# predicted as it; and the harmonic mean of both.
CLASS_METRICS: dict[str, Callable[[ClassCounts], Floats]] = {
    "precision": lambda counts: ratio(counts.correct, counts.predicted),
    "recall": lambda counts: ratio(counts.correct, counts.true),
    "f1": lambda counts: ratio(2 * counts.correct, counts.true + counts.predicted),
}


def average(values: Floats, counts: ClassCounts, method: str) -> Floats:
    """Average the values of the classes; the micro average of precision, recall and F1 is the accuracy."""
    if method == "macro":
        return ratio((values * counts.present_classes).sum(axis=-1), counts.present_classes.sum(axis=-1), np.nan)
    if method == "weighted":
        return ratio((values * counts.true).sum(axis=-1), counts.true.sum(axis=-1), np.nan)
    if method == "micro":
        return _proportion_correct(counts)
    raise unknown_name_error("average", method, AVERAGES)


def _proportion_correct(counts: ClassCounts) -> Floats:
    return ratio(counts.correct.sum(axis=-1), counts.true.sum(axis=-1), np.nan)


def _headline(name: str) -> Callable[[Figures], Floats]:
    """The value of the second of two classes, else the macro average."""

    def compute(figures: Figures) -> Floats:
        values = CLASS_METRICS[name](figures.class_counts)
        return values[..., 1] if figures.is_binary else average(values, figures.class_counts, "macro")

    return compute


def _mean_over_curves(values: Floats, weight: Floats | float = 1.0) -> Floats:
    weights = np.where(np.isnan(values), 0.0, weight)
    return ratio((np.nan_to_num(values) * weights).sum(axis=0), weights.sum(axis=0), np.nan)


# Metrics of all rows


def balanced_accuracy(figures: Figures) -> Floats:
    """The mean recall of the classes that have rows."""
    recall, has_rows = CLASS_METRICS["recall"](figures.class_counts), figures.class_counts.true > 0
    return ratio(recall.sum(axis=-1), has_rows.sum(axis=-1), np.nan)


def matthews(figures: Figures) -> Floats:
    """The correlation of true and predicted classes (Matthews, 1975; Gorodkin, 2004); 0 if either is constant."""
    counts = figures.class_counts
    n, correct = counts.true.sum(axis=-1), counts.correct.sum(axis=-1)
    t, p = ratio(counts.true, n[..., None]), ratio(counts.predicted, n[..., None])
    variance = (t * (1 - t)).sum(axis=-1) * (p * (1 - p)).sum(axis=-1)
    variance = np.where(((t > 0).sum(axis=-1) > 1) & ((p > 0).sum(axis=-1) > 1), variance, 0.0)  # but for rounding
    return ratio(ratio(correct, n) - (t * p).sum(axis=-1), np.sqrt(variance))


def log_loss(figures: Figures) -> Floats:
    """Mean of -log p(true class), from log p, which does not round to 0 or 1.

    scikit-learn's ``log_loss`` clips p to within 2.2e-16 of 0 and 1, so that no row costs more than 36.04; if a model
    is far too confident, scikit-learn's value is lower.
    """
    return ratio(figures.sum_neg_log, figures.n, np.nan)


def brier(figures: Figures) -> Floats:
    """Mean squared error of the probabilities; of the second class alone where there are two."""
    return ratio(figures.sum_squared_error, figures.n * (2 if figures.is_binary else 1), np.nan)


def auc(figures: Figures) -> Floats:
    """P(a row of the class ranks above a row of another); for several classes, the mean over those that occur.

    Rows are ranked by log-odds, so that probabilities that round to 0 or 1 are not ties; ties count half, and rows
    count by their weights. Otherwise it equals scikit-learn's ``roc_auc_score``. It is exact up to a million rows (with
    more than 16 classes, up to 16 million rows times classes); beyond, ``Scores.auc_error`` bounds the error. NaN if
    all rows are of one class.
    """
    return _mean_over_curves(figures.areas)


def calibration_error(figures: Figures) -> Floats:
    """Expected calibration error: mean absolute difference of confidence and accuracy, over 15 bins."""
    weight, confidence, correct = figures.confidence_bins.T
    return np.abs(confidence - correct).sum() / weight.sum()


@dataclass(frozen=True)
class Metric:
    """A metric of all rows: how it is computed, what it means, and its range."""

    compute: Callable[[Figures], Floats]
    meaning: str
    lower_is_better: bool = False
    range: tuple[float, float] = (0.0, 1.0)
    averages: str = ""  # "class": of the second of two classes, else the macro average; "macro": that of several
    has_interval: bool = True  # whether bootstrap draws give an interval


METRICS = {
    "accuracy": Metric(lambda f: _proportion_correct(f.class_counts), "predicted class is right"),
    "balanced_accuracy": Metric(balanced_accuracy, "mean recall of the classes"),
    "precision": Metric(_headline("precision"), "right among those predicted", averages="class"),
    "f1": Metric(_headline("f1"), "mean of precision and recall", averages="class"),
    "matthews": Metric(matthews, "correlation of true, predicted", range=(-1.0, 1.0)),
    "log_loss": Metric(log_loss, "-log p(true); lower is better", lower_is_better=True, range=(0.0, np.inf)),
    "brier": Metric(brier, "squared error; lower is better", lower_is_better=True, range=(0.0, 2.0)),
    "auc": Metric(auc, "a class ranks above the others", averages="macro"),
    "weighted_auc": Metric(lambda f: _mean_over_curves(f.areas, f.curve_weights), "the same, weighted by rows"),
    # By steps, as scikit-learn's average_precision_score.
    "average_precision": Metric(
        lambda f: _mean_over_curves(f.average_precisions), "area under the PR curve", averages="class"
    ),
    # Draws are always worse calibrated than the rows that they are drawn from.
    "calibration_error": Metric(
        calibration_error, "confidence minus accuracy", lower_is_better=True, has_interval=False
    ),
}


# Bootstrap draws and intervals


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
        few = len(self.random_key) <= limit
        return self if few else self._take(np.argpartition(self.random_key, MAX_ROWS)[:MAX_ROWS])

    def _take(self, rows: Codes) -> Self:
        return type(self)(self.n, *(getattr(self, f.name)[rows] for f in fields(self)[1:]))

    def draw_deviations(self, draws: int = N_DRAWS, seed: int = 0) -> dict[str, Floats]:
        """(draw,) the deviation of each metric of bootstrap draws of all rows from that of all rows."""
        rows = self._limit_rows()
        own, scale = rows._metrics(rows.weight[None, :]), np.sqrt(len(rows.y) / self.n)
        rows = rows._take(np.argsort(rows.random_key))  # in whatever order parts were added
        m, rng, parts = len(rows.y), np.random.default_rng(seed), list[Mapping[str, Floats]]()
        step = max(1, _ROWS_AT_ONCE // m)
        for start in range(0, draws, step):
            n = min(step, draws - start)
            at = rng.integers(m, size=(n, m)) + m * np.arange(n)[:, None]
            parts.append(rows._metrics(np.bincount(at.ravel(), minlength=n * m).reshape(n, m) * rows.weight))
        return {name: (np.concatenate([part[name] for part in parts]) - own[name]) * scale for name in own}

    def _metrics(self, w: Floats) -> dict[str, Floats]:
        """(draw,) each metric under weights (draw, row)."""
        curves, is_binary = _stack_curves(self._sorted_weights(w), len(w)), self.log_odds.shape[1] == 1
        sums = w.sum(axis=1), w @ self.loss, w @ self.squared_error
        return DrawnFigures(self._counts(w), *sums, *curves, is_binary).metrics()

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
    """What metrics are computed from, of bootstrap draws; names as in ``Scores``."""

    class_counts: ClassCounts  # (draw, class), of the rows that were decided
    n: Any  # (draw,) weight of all rows
    sum_neg_log: Floats
    sum_squared_error: Floats
    areas: Floats  # (curve, draw)
    average_precisions: Floats
    curve_weights: Floats
    is_binary: bool
    confidence_bins: Any = None

    def metrics(self) -> dict[str, Floats]:
        """(draw,) each metric that has intervals."""
        return {name: metric.compute(self) for name, metric in METRICS.items() if metric.has_interval}


def _sum_by_class(w: Floats, code: Codes, rows: Codes, n_classes: int) -> Floats:
    from scipy.sparse import csr_array

    return (csr_array((np.ones(len(rows)), (code, rows)), shape=(n_classes, w.shape[1])) @ w.T).T


def _stack_curves(weights: Iterator[tuple[Floats, Floats]], draws: int) -> tuple[Floats, Floats, Floats]:
    """(curve, draw) areas, average precisions, and the weight of the class."""
    each = [(roc_area(other, own), average_precision(other, own), own.sum(axis=-1)) for other, own in weights]
    areas, precisions, own = np.array(each).reshape(-1, 3, draws).transpose(1, 0, 2)
    return areas, precisions, own


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
    """(draw,) each metric where folds have the weights (draw, fold)."""
    counts = ClassCounts(*(w @ np.stack(each) for each in zip(*(fold.class_counts for fold in folds), strict=True)))
    sums = zip(*((fold.n, fold.sum_neg_log, fold.sum_squared_error) for fold in folds), strict=True)
    n, loss, squared_error = (w @ np.array(each) for each in sums)
    curves = _stack_curves(_fold_weights([fold.ranks for fold in folds], w), len(w))
    return DrawnFigures(counts, n, loss, squared_error, *curves, len(curves[0]) == 1).metrics()


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
