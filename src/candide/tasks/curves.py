"""Curves: what a threshold on the probability of a class would do, from the rows in order of their log-odds.

Each is a record of plain arrays with the names of its axes, for a page or a picture to draw. Points go from the highest
threshold, at which no row is taken, to the lowest, at which all are. They are exact while rows are kept one by one, and
those of cells of neighbouring log-odds beyond.

>>> cells = Ranks.of(np.array([[0.3], [2.0], [-1.0], [0.5]]), np.array([1, 1, 0, 0])).curve(0)
>>> one = roc(cells, "yes")
>>> one.x.tolist(), one.y.tolist(), one.threshold.round(2).tolist()
([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0], [inf, 0.88, 0.62, 0.57, 0.27])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide.tasks.calibration import Calibration
from candide.tasks.metrics import share
from candide.tasks.ranks import Cells, Floats, Ranks, odds_of

POINTS = 201  # of a curve for the eye
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_TOP = 0.1  # the share of rows, the most probable ones, whose lift is told

__all__ = ["POINTS", "THRESHOLDS", "Curve", "Ranks", "Threshold", "curves", "lift_at", "thresholds"]


@dataclass(frozen=True, eq=False)
class Curve:
    """A line of points for one class.

    >>> ramp = np.linspace(0, 1, 1001)
    >>> line = Curve("gain", "yes", ("share of rows", "share of the class"), ramp, ramp, 1 - ramp)
    >>> len(line.thinned(11).x), line.thinned(11).x.max().item()
    (11, 1.0)
    """

    name: str  # "roc", "precision_recall", "gain", "lift", "calibration", "coverage"
    label: Any  # the class; None of all
    axes: tuple[str, str]
    x: Floats
    y: Floats
    threshold: Floats  # p(class | x) at and above which rows are taken
    weight: Floats | None = None  # rows of each point, where they are apart

    def thinned(self, most: int = POINTS) -> "Curve":
        """The same line with at most so many points, evenly along it; both ends stay."""
        n = len(self.x)
        if n <= most:
            return self
        steps = np.hypot(np.diff(self.x, prepend=self.x[0]), np.diff(self.y, prepend=self.y[0]))
        way = np.cumsum(np.nan_to_num(steps))
        at = np.searchsorted(way, np.linspace(0, way[-1], most))
        at[-1] = n - 1
        at = np.unique(np.minimum(at, n - 1))
        weight = None if self.weight is None else self.weight[at]
        return replace(self, x=self.x[at], y=self.y[at], threshold=self.threshold[at], weight=weight)


@dataclass(frozen=True)
class Threshold:
    """What comes of taking the rows whose probability of a class is at least so high.

    >>> at_odds("yes", 0.5, own=8, other=2, of_class=10, of_rest=90)
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


def stated(cells: Cells) -> Floats:
    """p(class | x) of each cell."""
    from scipy.special import expit

    return expit(odds_of(cells.start))


def taken(cells: Cells) -> tuple[Floats, Floats, Floats]:
    """From none to all, the highest log-odds first: weight of rows of the class, of others, and the threshold."""
    own, other = (np.concatenate([[0.0], np.cumsum(v[::-1])]) for v in (cells.own, cells.other))
    return own, other, np.concatenate([[np.inf], stated(cells)[::-1]])


def roc(cells: Cells, label: Any = None) -> Curve:
    """The rows of the class that are taken against those of others (Swets, 1988)."""
    own, other, at = taken(cells)
    axes = "false positive rate", "true positive rate"
    return Curve("roc", label, axes, share(other, other[-1:], np.nan), share(own, own[-1:], np.nan), at)


def precision_recall(cells: Cells, label: Any = None) -> Curve:
    """What is found against how much of it is right; from 1 where none is taken."""
    own, other, at = taken(cells)
    right = share(own, own + other, 1.0)
    return Curve("precision_recall", label, ("recall", "precision"), share(own, own[-1:], np.nan), right, at)


def gain(cells: Cells, label: Any = None) -> Curve:
    """Of the rows of the class, the share found among the most probable rows."""
    own, other, at = taken(cells)
    rows = share(own + other, (own + other)[-1:], np.nan)
    return Curve("gain", label, ("share of rows", "share of the class"), rows, share(own, own[-1:], np.nan), at)


def lift(cells: Cells, label: Any = None) -> Curve:
    """How many times as many rows of the class there are among the most probable rows as among all."""
    line = gain(cells, label)
    times = share(line.y, line.x, np.nan)
    if len(times) > 1:
        times[0] = times[1]  # of the first rows
    return replace(line, name="lift", axes=("share of rows", "lift"), y=times)


def calibration(cells: Cells, label: Any = None, bins: int = 10) -> Curve:
    """What came true against what was stated, in bins of as much probability."""
    weight = cells.own + cells.other
    found = Calibration.of(stated(cells), share(cells.own, weight), bins, weight)
    axes = "stated", "came true"
    return Curve("calibration", label, axes, found.stated, found.observed, found.edges[found.bin], found.n)


def coverage(cells: Cells) -> Curve:
    """How many rows are decided against how many of these are right, of rows by their surest class."""
    own, other, at = (values[1:] for values in taken(cells))
    rows = own + other
    axes = "share of rows decided", "accuracy"
    return Curve("coverage", None, axes, share(rows, rows[-1:], np.nan), share(own, rows, np.nan), at)


def at_least(cells: Cells, *, precision: float | None = None, recall: float | None = None) -> float:
    """The log-odds from which on rows are taken: the lowest of so high a precision, or the highest of such a recall.

    It lies half way to the next row that is left. NaN where no row can be taken so.
    """
    own, other, _ = taken(cells)
    if precision is not None:
        good = np.flatnonzero(share(own, own + other, -1.0) >= precision)
        i = int(good[-1]) if len(good) else 0
    else:
        good = np.flatnonzero(share(own, own[-1:], -1.0) >= (recall or 0.0))
        i = int(good[0]) if len(good) else 0
    if not len(good):
        return float("nan")
    known = odds_of(cells.start)[::-1]  # from the highest
    if i == 0:
        return float("inf")
    below = known[i] if i < len(known) else -np.inf
    last = known[i - 1]
    return float(last - 1.0 if np.isneginf(below) and np.isfinite(last) else below + (last - below) / 2)


def curves(cells: Cells, label: Any = None, most: int | None = POINTS) -> list[Curve]:
    """All that a threshold can be seen by."""
    found = [draw(cells, label) for draw in (roc, precision_recall, gain, lift, calibration)]
    return found if most is None else [one.thinned(most) for one in found]


def lift_at(cells: Cells, rows: float = _TOP) -> float:
    """The lift of so large a share of the rows; rows that are tied share it."""
    line = gain(cells)
    return float(np.interp(rows, line.x, line.y) / rows)


def thresholds(cells: Cells, label: Any = None, at: Sequence[float] = THRESHOLDS) -> list[Threshold]:
    """What rows are taken at each threshold, and what they are. A row is taken where its log-odds reach that of it."""
    from scipy.special import logit

    own, other, _ = taken(cells)
    known = odds_of(cells.start)
    found = len(known) - np.searchsorted(known, logit(np.asarray(at, float)))
    return [at_odds(label, p, own[i], other[i], own[-1], other[-1]) for p, i in zip(at, found.tolist(), strict=True)]


def at_odds(label: Any, threshold: float, own: float, other: float, of_class: float, of_rest: float) -> Threshold:
    """One line of the table, of the weights that are taken and of all."""

    def part(a: float, b: float) -> float:
        return float(a / b) if b > 0 else float("nan")

    return Threshold(
        label,
        float(threshold),
        part(own + other, of_class + of_rest),
        part(own, own + other),
        part(own, of_class),
        part(2 * own, own + other + of_class),
        part(other, of_rest),
    )
