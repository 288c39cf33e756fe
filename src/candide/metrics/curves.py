"""Curves: what a threshold on the probability of a class would do, from the rows in order of their log-odds.

Each is a record of plain arrays with the names of its axes, for a page or a picture to draw. Points go from the highest
threshold, at which no row is taken, to the lowest, at which all are. They are exact while rows are kept one by one, and
those of cells of neighbouring log-odds beyond.

>>> cells = Ranks.from_log_odds(np.array([[0.3], [2.0], [-1.0], [0.5]]), np.array([1, 1, 0, 0])).curve(0)
>>> one = roc_curve(cells, "yes")
>>> one.x.tolist(), one.y.tolist(), one.threshold.round(2).tolist()
([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0], [inf, 0.88, 0.62, 0.57, 0.27])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide.metrics.auc import Floats, LogOddsBins, Ranks, log_odds_from_keys
from candide.metrics.calibration import Calibration
from candide.metrics.formulas import ratio

MAX_POINTS = 201  # of a curve for the eye
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_TOP_FRACTION = 0.1  # the share of rows, the most probable ones, whose lift is told

__all__ = [
    "MAX_POINTS",
    "THRESHOLDS",
    "Curve",
    "Ranks",
    "Threshold",
    "all_curves",
    "lift_at_fraction",
    "threshold_table",
]


@dataclass(frozen=True, eq=False)
class Curve:
    """A line of points for one class.

    >>> ramp = np.linspace(0, 1, 1001)
    >>> line = Curve("gain", "yes", ("share of rows", "share of the class"), ramp, ramp, 1 - ramp)
    >>> len(line.thin(11).x), line.thin(11).x.max().item()
    (11, 1.0)
    """

    name: str  # "roc", "precision_recall", "gain", "lift", "calibration", "coverage"
    label: Any  # the class; None of all
    axes: tuple[str, str]
    x: Floats
    y: Floats
    threshold: Floats  # p(class | x) at and above which rows are taken
    weight: Floats | None = None  # rows of each point, where they are apart

    def thin(self, max_points: int = MAX_POINTS) -> "Curve":
        """The same line with at most so many points, evenly along it; both ends stay."""
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
    """What comes of taking the rows whose probability of a class is at least so high.

    >>> make_threshold("yes", 0.5, class_weight=8, other_weight=2, total_class_weight=10, total_other_weight=90)
    Threshold(label='yes', threshold=0.5, flagged=0.1, precision=0.8, recall=0.8, f1=0.8, \
false_positive_rate=0.022222222222222223)
    """

    label: Any
    threshold: float
    flagged: float  # share of all rows
    precision: float  # NaN where none is taken
    recall: float
    f1: float
    false_positive_rate: float


def predicted_probability(cells: LogOddsBins) -> Floats:
    """p(class | x) of each cell."""
    from scipy.special import expit

    return expit(log_odds_from_keys(cells.start))


def cumulative_weights(cells: LogOddsBins) -> tuple[Floats, Floats, Floats]:
    """From none to all, the highest log-odds first: weight of rows of the class, of others, and the threshold."""
    own, other = (np.concatenate([[0.0], np.cumsum(v[::-1])]) for v in (cells.class_weight, cells.other_weight))
    return own, other, np.concatenate([[np.inf], predicted_probability(cells)[::-1]])


def roc_curve(cells: LogOddsBins, label: Any = None) -> Curve:
    """The rows of the class that are taken against those of others (Swets, 1988)."""
    own, other, at = cumulative_weights(cells)
    axes = "false positive rate", "true positive rate"
    return Curve("roc", label, axes, ratio(other, other[-1:], np.nan), ratio(own, own[-1:], np.nan), at)


def precision_recall_curve(cells: LogOddsBins, label: Any = None) -> Curve:
    """What is found against how much of it is right; from 1 where none is taken."""
    own, other, at = cumulative_weights(cells)
    right = ratio(own, own + other, 1.0)
    return Curve("precision_recall", label, ("recall", "precision"), ratio(own, own[-1:], np.nan), right, at)


def gain_curve(cells: LogOddsBins, label: Any = None) -> Curve:
    """Of the rows of the class, the share found among the most probable rows."""
    own, other, at = cumulative_weights(cells)
    rows = ratio(own + other, (own + other)[-1:], np.nan)
    return Curve("gain", label, ("share of rows", "share of the class"), rows, ratio(own, own[-1:], np.nan), at)


def lift_curve(cells: LogOddsBins, label: Any = None) -> Curve:
    """How many times as many rows of the class there are among the most probable rows as among all."""
    line = gain_curve(cells, label)
    times = ratio(line.y, line.x, np.nan)
    if len(times) > 1:
        times[0] = times[1]  # of the first rows
    return replace(line, name="lift", axes=("share of rows", "lift"), y=times)


def calibration_curve(cells: LogOddsBins, label: Any = None, bins: int = 10) -> Curve:
    """What came true against what was stated, in bins of as much probability."""
    weight = cells.class_weight + cells.other_weight
    found = Calibration.from_probabilities(
        predicted_probability(cells), ratio(cells.class_weight, weight), bins, weight
    )
    axes = "stated", "came true"
    return Curve(
        "calibration",
        label,
        axes,
        found.mean_predicted,
        found.observed_frequency,
        found.edges[found.bin_index],
        found.n,
    )


def coverage_curve(cells: LogOddsBins) -> Curve:
    """How many rows are decided against how many of these are right, of rows by their surest class."""
    own, other, at = (values[1:] for values in cumulative_weights(cells))
    rows = own + other
    axes = "share of rows decided", "accuracy"
    return Curve("coverage", None, axes, ratio(rows, rows[-1:], np.nan), ratio(own, rows, np.nan), at)


def find_threshold(cells: LogOddsBins, *, precision: float | None = None, recall: float | None = None) -> float:
    """The log-odds from which on rows are taken: the lowest of so high a precision, or the highest of such a recall.

    It lies half way to the next row that is left. NaN where no row can be taken so.
    """
    own, other, _ = cumulative_weights(cells)
    if precision is not None:
        good = np.flatnonzero(ratio(own, own + other, -1.0) >= precision)
        i = int(good[-1]) if len(good) else 0
    else:
        good = np.flatnonzero(ratio(own, own[-1:], -1.0) >= (recall or 0.0))
        i = int(good[0]) if len(good) else 0
    if not len(good):
        return float("nan")
    known = log_odds_from_keys(cells.start)[::-1]  # from the highest
    if i == 0:
        return float("inf")
    below = known[i] if i < len(known) else -np.inf
    last = known[i - 1]
    return float(last - 1.0 if np.isneginf(below) and np.isfinite(last) else below + (last - below) / 2)


def all_curves(cells: LogOddsBins, label: Any = None, max_points: int | None = MAX_POINTS) -> list[Curve]:
    """All that a threshold can be seen by."""
    found = [
        draw(cells, label) for draw in (roc_curve, precision_recall_curve, gain_curve, lift_curve, calibration_curve)
    ]
    return found if max_points is None else [one.thin(max_points) for one in found]


def lift_at_fraction(cells: LogOddsBins, rows: float = _TOP_FRACTION) -> float:
    """The lift of so large a share of the rows; rows that are tied share it."""
    line = gain_curve(cells)
    return float(np.interp(rows, line.x, line.y) / rows)


def threshold_table(cells: LogOddsBins, label: Any = None, levels: Sequence[float] = THRESHOLDS) -> list[Threshold]:
    """What rows are taken at each threshold, and what they are. A row is taken where its log-odds reach that of it."""
    from scipy.special import logit

    own, other, _ = cumulative_weights(cells)
    known = log_odds_from_keys(cells.start)
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
    """One line of the table, of the weights that are taken and of all."""

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
