"""Curves over thresholds on the probability of a class, from the rows in order of their log-odds.

Each is a record of plain arrays with the names of its axes. Points go from the highest threshold, at which no row is
selected, to the lowest, at which all are. They are exact while rows are kept one by one, and those of bins beyond.

>>> from candide.metrics.auc import Ranks
>>> bins = Ranks.from_log_odds(np.array([[0.3], [2.0], [-1.0], [0.5]]), np.array([1, 1, 0, 0])).curve(0)
>>> curve = roc_curve(bins, "yes")
>>> curve.x.tolist(), curve.y.tolist(), curve.threshold.round(2).tolist()
([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0], [inf, 0.88, 0.62, 0.57, 0.27])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide.metrics.auc import Floats, LogOddsBins, log_odds_from_keys
from candide.metrics.calibration import Calibration
from candide.metrics.formulas import ratio

MAX_POINTS = 201  # of a curve that is drawn
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_TOP_FRACTION = 0.1  # of the rows, the most probable ones, whose lift is reported


@dataclass(frozen=True, eq=False)
class Curve:
    """A line of points for one class.

    >>> ramp = np.linspace(0, 1, 1001)
    >>> curve = Curve("gain", "yes", ("fraction of rows", "fraction of the class"), ramp, ramp, 1 - ramp)
    >>> len(curve.thin(11).x), curve.thin(11).x.max().item()
    (11, 1.0)
    """

    name: str  # "roc", "precision_recall", "gain", "lift", "calibration", "coverage"
    label: Any  # the class; None for all
    axes: tuple[str, str]
    x: Floats
    y: Floats
    threshold: Floats  # p(class | x) from which rows are selected
    weight: Floats | None = None  # rows of each point, where points have rows of their own

    def thin(self, max_points: int = MAX_POINTS) -> "Curve":
        """The same curve with at most ``max_points``, evenly along it; both ends stay."""
        n = len(self.x)
        if n <= max_points:
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
    """The metrics of selecting the rows whose probability of a class is at least a threshold.

    >>> make_threshold("yes", 0.5, class_weight=8, other_weight=2, total_class_weight=10, total_other_weight=90)
    Threshold(label='yes', threshold=0.5, flagged=0.1, precision=0.8, recall=0.8, f1=0.8, \
false_positive_rate=0.022222222222222223)
    """

    label: Any
    threshold: float
    flagged: float  # fraction of all rows
    precision: float  # NaN where none is selected
    recall: float
    f1: float
    false_positive_rate: float


def predicted_probability(bins: LogOddsBins) -> Floats:
    """p(class | x) of each bin."""
    from scipy.special import expit

    return expit(log_odds_from_keys(bins.start))


def cumulative_weights(bins: LogOddsBins) -> tuple[Floats, Floats, Floats]:
    """From none to all rows, the highest log-odds first: weight of the class, of others, and the threshold."""
    own, other = (np.concatenate([[0.0], np.cumsum(v[::-1])]) for v in (bins.class_weight, bins.other_weight))
    return own, other, np.concatenate([[np.inf], predicted_probability(bins)[::-1]])


def roc_curve(bins: LogOddsBins, label: Any = None) -> Curve:
    """True positive rate against false positive rate (Swets, 1988)."""
    own, other, at = cumulative_weights(bins)
    axes = "false positive rate", "true positive rate"
    return Curve("roc", label, axes, ratio(other, other[-1:], np.nan), ratio(own, own[-1:], np.nan), at)


def precision_recall_curve(bins: LogOddsBins, label: Any = None) -> Curve:
    """Precision against recall; the precision is 1 where no row is selected."""
    own, other, at = cumulative_weights(bins)
    precision = ratio(own, own + other, 1.0)
    return Curve("precision_recall", label, ("recall", "precision"), ratio(own, own[-1:], np.nan), precision, at)


def gain_curve(bins: LogOddsBins, label: Any = None) -> Curve:
    """The fraction of the rows of the class that are among the most probable rows."""
    own, other, at = cumulative_weights(bins)
    rows = ratio(own + other, (own + other)[-1:], np.nan)
    return Curve("gain", label, ("fraction of rows", "fraction of the class"), rows, ratio(own, own[-1:], np.nan), at)


def lift_curve(bins: LogOddsBins, label: Any = None) -> Curve:
    """The proportion of the class among the most probable rows, relative to that among all rows."""
    gain = gain_curve(bins, label)
    lift = ratio(gain.y, gain.x, np.nan)
    if len(lift) > 1:
        lift[0] = lift[1]  # of the first rows
    return replace(gain, name="lift", axes=("fraction of rows", "lift"), y=lift)


def calibration_curve(ranked: LogOddsBins, label: Any = None, bins: int = 10) -> Curve:
    """Observed frequency against predicted probability, in bins of equal width."""
    weight = ranked.class_weight + ranked.other_weight
    proportion = ratio(ranked.class_weight, weight)
    found = Calibration.from_probabilities(predicted_probability(ranked), proportion, bins, weight)
    x, y, lower_edges = found.mean_predicted, found.observed_frequency, found.edges[found.bin_index]
    return Curve("calibration", label, ("predicted", "observed"), x, y, lower_edges, found.n)


def coverage_curve(bins: LogOddsBins) -> Curve:
    """Accuracy among the rows that are decided against their fraction, the most confident first."""
    own, other, at = (values[1:] for values in cumulative_weights(bins))
    rows = own + other
    axes = "fraction of rows decided", "accuracy"
    return Curve("coverage", None, axes, ratio(rows, rows[-1:], np.nan), ratio(own, rows, np.nan), at)


def find_threshold(bins: LogOddsBins, *, precision: float | None = None, recall: float | None = None) -> float:
    """The log-odds threshold: the lowest with this precision, or the highest with this recall; NaN if there is none.

    It lies half way to the next row that is not selected.
    """
    own, other, _ = cumulative_weights(bins)
    if precision is not None:
        good = np.flatnonzero(ratio(own, own + other, -1.0) >= precision)
        i = int(good[-1]) if len(good) else 0
    else:
        good = np.flatnonzero(ratio(own, own[-1:], -1.0) >= (recall or 0.0))
        i = int(good[0]) if len(good) else 0
    if not len(good):
        return float("nan")
    known = log_odds_from_keys(bins.start)[::-1]  # from the highest
    if i == 0:
        return float("inf")
    below = known[i] if i < len(known) else -np.inf
    last = known[i - 1]
    return float(last - 1.0 if np.isneginf(below) and np.isfinite(last) else below + (last - below) / 2)


def all_curves(bins: LogOddsBins, label: Any = None, max_points: int | None = MAX_POINTS) -> list[Curve]:
    """The curves of a class."""
    makers = roc_curve, precision_recall_curve, gain_curve, lift_curve, calibration_curve
    curves = [make(bins, label) for make in makers]
    return curves if max_points is None else [curve.thin(max_points) for curve in curves]


def lift_at_fraction(bins: LogOddsBins, rows: float = _TOP_FRACTION) -> float:
    """The lift of a fraction of the rows, interpolated between tied rows."""
    gain = gain_curve(bins)
    return float(np.interp(rows, gain.x, gain.y) / rows)


def threshold_table(bins: LogOddsBins, label: Any = None, levels: Sequence[float] = THRESHOLDS) -> list[Threshold]:
    """The metrics at each threshold. A row is selected where its log-odds reach those of the threshold."""
    from scipy.special import logit

    own, other, _ = cumulative_weights(bins)
    known = log_odds_from_keys(bins.start)
    found = len(known) - np.searchsorted(known, logit(np.asarray(levels, float)))
    return [
        make_threshold(label, p, own[i], other[i], own[-1], other[-1])
        for p, i in zip(levels, found.tolist(), strict=True)
    ]


def make_threshold(
    label: Any,
    threshold: float,
    class_weight: float,
    other_weight: float,
    total_class_weight: float,
    total_other_weight: float,
) -> Threshold:
    """The metrics of a threshold, from the selected and the total weights."""

    def part(a: float, b: float) -> float:
        return float(a / b) if b > 0 else float("nan")

    return Threshold(
        label,
        float(threshold),
        part(class_weight + other_weight, total_class_weight + total_other_weight),
        part(class_weight, class_weight + other_weight),
        part(class_weight, total_class_weight),
        part(2 * class_weight, class_weight + other_weight + total_class_weight),
        part(other_weight, total_other_weight),
    )
