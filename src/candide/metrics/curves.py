"""Curves over thresholds on the probability of a class, tables of thresholds, and calibration in bins.

A curve is a record of plain arrays with the names of its axes. Points go from the highest threshold, at which no row is
selected, to the lowest, at which all are. They are exact while rows are kept one by one, and those of bins beyond.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.metrics.auc import Floats, LogOddsBins, log_odds_from_keys, ratio

MAX_POINTS = 201  # of a curve that is drawn
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_TOP_FRACTION = 0.1  # of the rows, the most probable ones, whose lift is reported
_Z_95 = 1.959964  # standard normal quantile of two-sided 95 %


@dataclass(frozen=True, eq=False)
class Curve:
    """A line of points for one class."""

    name: str  # "roc", "precision_recall", "gain", "lift", "calibration", "coverage"
    label: Any  # the class; None for all
    axes: tuple[str, str]
    x: Floats
    y: Floats
    threshold: Floats  # p(class | x) from which rows are selected
    weight: Floats | None = None  # rows of each point, where points have rows of their own

    def thin(self, max_points: int | None = MAX_POINTS) -> "Curve":
        """The same curve with at most ``max_points``, evenly along it; both ends stay. None: with all its points."""
        n = len(self.x)
        if max_points is None or n <= max_points:
            return self
        steps = np.hypot(np.diff(self.x, prepend=self.x[0]), np.diff(self.y, prepend=self.y[0]))
        way = np.cumsum(np.nan_to_num(steps))
        at = np.searchsorted(way, np.linspace(0, way[-1], max_points))
        at[-1] = n - 1
        at = np.unique(np.minimum(at, n - 1))
        weight = None if self.weight is None else self.weight[at]
        return replace(self, x=self.x[at], y=self.y[at], threshold=self.threshold[at], weight=weight)


@dataclass(frozen=True)
class Threshold:
    """The metrics of selecting the rows whose probability of a class is at least a threshold."""

    label: Any
    threshold: float
    flagged: float  # fraction of all rows
    precision: float  # NaN where none is selected
    recall: float
    f1: float
    false_positive_rate: float


def predicted_probability(bins: LogOddsBins) -> Floats:
    from scipy.special import expit

    return expit(log_odds_from_keys(bins.start))


def cumulative_weights(bins: LogOddsBins) -> tuple[Floats, Floats, Floats]:
    """From none to all rows, the highest log-odds first: weight of the class, of others, and the threshold."""
    own, other = (np.concatenate([[0.0], np.cumsum(v[::-1])]) for v in (bins.class_weight, bins.other_weight))
    return own, other, np.concatenate([[np.inf], predicted_probability(bins)[::-1]])


def class_curves(bins: LogOddsBins, label: Any = None) -> dict[str, Curve]:
    """The curves of a class: ROC (Swets, 1988), precision against recall, gain, lift, and calibration.

    Gain is the fraction of the class that is among the most probable rows; lift is the proportion of the class among
    these, relative to that among all rows; calibration is the observed frequency in ten bins of predicted probability.
    """
    own, other, at = cumulative_weights(bins)
    recall, false_positive_rate = ratio(own, own[-1:], np.nan), ratio(other, other[-1:], np.nan)
    rows = ratio(own + other, (own + other)[-1:], np.nan)
    lift = ratio(recall, rows, np.nan)
    if len(lift) > 1:
        lift[0] = lift[1]  # of the first rows
    weight = bins.class_weight + bins.other_weight
    proportion = ratio(bins.class_weight, weight)
    binned = Calibration.from_probabilities(predicted_probability(bins), proportion, weight=weight)
    x, y, lower_edges = binned.mean_predicted, binned.observed_frequency, binned.edges[binned.bin_index]
    curves = (
        Curve("roc", label, ("false positive rate", "true positive rate"), false_positive_rate, recall, at),
        Curve("precision_recall", label, ("recall", "precision"), recall, ratio(own, own + other, 1.0), at),
        Curve("gain", label, ("fraction of rows", "fraction of the class"), rows, recall, at),
        Curve("lift", label, ("fraction of rows", "lift"), rows, lift, at),
        Curve("calibration", label, ("predicted", "observed"), x, y, lower_edges, binned.n),
    )
    return {curve.name: curve for curve in curves}


def coverage_curve(bins: LogOddsBins) -> Curve:
    """Accuracy among the rows that are decided against their fraction, the most confident first."""
    own, other, at = (values[1:] for values in cumulative_weights(bins))
    rows = own + other
    axes = "fraction of rows decided", "accuracy"
    return Curve("coverage", None, axes, ratio(rows, rows[-1:], np.nan), ratio(own, rows, np.nan), at)


def lift_at_fraction(bins: LogOddsBins) -> float:
    """The lift of the most probable tenth of the rows, interpolated between tied rows."""
    own, other, _ = cumulative_weights(bins)
    x = ratio(own + other, (own + other)[-1:], np.nan)
    return float(np.interp(_TOP_FRACTION, x, ratio(own, own[-1:], np.nan)) / _TOP_FRACTION)


# Thresholds


def find_threshold(bins: LogOddsBins, *, precision: float | None = None, recall: float | None = None) -> float:
    """The log-odds threshold: the lowest with this precision, or the highest with this recall; NaN if there is none.

    It lies half way to the next row that is not selected.
    """
    own, other, _ = cumulative_weights(bins)
    if precision is not None:
        good = np.flatnonzero(ratio(own, own + other, -1.0) >= precision)[::-1]
    else:
        good = np.flatnonzero(ratio(own, own[-1:], -1.0) >= (recall or 0.0))
    if not len(good) or not good[0]:
        return float("inf" if len(good) else "nan")
    i, known = int(good[0]), log_odds_from_keys(bins.start)[::-1]  # from the highest
    below = known[i] if i < len(known) else -np.inf
    last = known[i - 1]
    return float(last - 1.0 if np.isneginf(below) and np.isfinite(last) else below + (last - below) / 2)


def threshold_table(bins: LogOddsBins, label: Any = None, levels: Sequence[float] = THRESHOLDS) -> list[Threshold]:
    """The metrics at each threshold. A row is selected where its log-odds reach those of the threshold."""
    from scipy.special import logit

    own, other, _ = cumulative_weights(bins)
    known = log_odds_from_keys(bins.start)
    selected = (len(known) - np.searchsorted(known, logit(np.asarray(levels, float)))).tolist()
    pairs = zip(levels, selected, strict=True)
    return [make_threshold(label, p, own[i], other[i], own[-1], other[-1]) for p, i in pairs]


def make_threshold(
    label: Any, threshold: float, own: float, other: float, total_own: float, total_other: float
) -> Threshold:
    """The metrics of a threshold, from the selected and the total weights of the class and of others."""

    def part(a: float, b: float) -> float:
        return float(a / b) if b > 0 else float("nan")

    selected, total = own + other, total_own + total_other
    f1, false_positive_rate = part(2 * own, selected + total_own), part(other, total_other)
    precision, recall = part(own, selected), part(own, total_own)
    return Threshold(label, float(threshold), part(selected, total), precision, recall, f1, false_positive_rate)


# Predicted against observed


@dataclass(frozen=True, eq=False)
class Calibration:
    """Mean prediction, observed frequency and rows of the bins of predicted probability that are not empty."""

    mean_predicted: NDArray
    observed_frequency: NDArray
    n: NDArray
    edges: NDArray  # of all bins
    bin_index: NDArray  # which of them each entry is

    @classmethod
    def from_probabilities(
        cls, p: NDArray, truth: NDArray, bins: int = 10, weight: NDArray | None = None
    ) -> "Calibration":
        """From probabilities and outcomes, or proportions of outcomes; ``n`` is in weights where given."""
        edges = np.linspace(0.0, 1.0, bins + 1)
        at = np.searchsorted(edges[1:-1], p)
        n = np.bincount(at, weight, minlength=bins)
        w = 1.0 if weight is None else weight
        used = np.flatnonzero(n)
        predicted, observed = (np.bincount(at, w * v, bins)[used] / n[used] for v in (p, truth.astype(float)))
        return cls(predicted, observed, n[used], edges, used)

    @property
    def row_fraction(self) -> NDArray:
        return self.n / self.n.sum()

    def confidence_limits(self) -> tuple[NDArray, NDArray]:
        """95 % limits of the observed frequency (Wilson, 1927)."""
        z2, n, p = _Z_95**2, self.n, self.observed_frequency
        centre = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = np.sqrt(z2 * p * (1 - p) / n + z2**2 / (4 * n**2)) / (1 + z2 / n)
        return np.minimum(centre - half, p), np.maximum(centre + half, p)


def predicted_and_observed(posterior: NDArray, codes: NDArray, c: int | None = None) -> tuple[NDArray, NDArray]:
    """(row,) the probability of class ``c`` and whether it is the true one, without rows whose code is below 0.

    The default is the second of two classes, or the most probable of several.
    """
    posterior, codes = posterior[codes >= 0], codes[codes >= 0]
    c = assessed_class(posterior.shape[1], c)
    if c is None:
        return posterior.max(axis=1), posterior.argmax(axis=1) == codes
    return posterior[:, c], codes == c


def assessed_class(n_classes: int, c: int | None = None) -> int | None:
    """The class whose probability is assessed; None for the most probable of each row."""
    return 1 if c is None and n_classes == 2 else c


def log_odds_of_class(joint: NDArray, c: int) -> NDArray:
    """(row,) log p(c | x) / p(not c | x), of log p(x, class) (row, class); 0 where no class is possible."""
    with np.errstate(invalid="ignore"):
        odds = joint[:, c] - np.logaddexp.reduce(np.delete(joint, c, axis=1), axis=1)
    return np.where(np.isnan(odds), 0.0, odds)


def confusion_matrix(true: NDArray, predicted: NDArray, n_classes: int) -> NDArray[np.intp]:
    """(true class, predicted class) numbers of rows; those without a class are left out."""
    known = true >= 0
    cells = np.bincount(true[known] * n_classes + predicted[known], minlength=n_classes * n_classes)
    return cells.reshape(n_classes, n_classes)
