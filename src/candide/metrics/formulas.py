"""Metrics: what is made of how many rows of each class were met, predicted and right, and of rows in order of score.

Every function takes arrays whose last axis is the class, or the place in the order, and gives one figure for each of
the axes before it: the rows as they are and a thousand drawings of them are one case. Where a share is one of nothing
it is 0 by class, and the averages are over the classes that occur, as scikit-learn has it.

>>> counts = ClassCounts(correct=np.array([8.0, 3.0]), true=np.array([10.0, 5.0]), predicted=np.array([10.0, 5.0]))
>>> precision(counts).tolist(), round(float(average(f1(counts), counts, "macro")), 3), round(float(matthews(counts)), 3)
([0.8, 0.6], 0.7, 0.4)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.errors import unknown_name_error

Floats = NDArray[np.float64]

AVERAGES = ("macro", "micro", "weighted")  # classes counting alike, rows counting alike, classes by their rows


class ClassCounts(NamedTuple):
    """Weight of rows by class: given the class and right, of the class, given the class."""

    correct: Floats
    true: Floats
    predicted: Floats

    @classmethod
    def from_confusion(cls, confusion: Floats) -> "ClassCounts":
        """Of a matrix, true classes down."""
        return cls(np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0))

    @property
    def present_classes(self) -> NDArray[np.bool_]:
        """Which classes have rows, or are given some."""
        return (self.true > 0) | (self.predicted > 0)


def ratio(part: Floats, whole: Floats, default: float = 0.0) -> Floats:
    """A part of a whole; ``none`` where there is nothing."""
    return np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, default), where=whole > 0)


def precision(counts: ClassCounts) -> Floats:
    """Of the rows given a class, the share that is of it."""
    return ratio(counts.correct, counts.predicted)


def recall(counts: ClassCounts) -> Floats:
    """Of the rows of a class, the share that is given it."""
    return ratio(counts.correct, counts.true)


def f1(counts: ClassCounts) -> Floats:
    """The harmonic mean of both."""
    return ratio(2 * counts.correct, counts.true + counts.predicted)


CLASS_METRICS = {"precision": precision, "recall": recall, "f1": f1}


def average(values: Floats, counts: ClassCounts, method: str) -> Floats:
    """One figure of those of the classes. Of one label a row, all three are the accuracy on "micro" average."""
    if method == "macro":
        return ratio((values * counts.present_classes).sum(axis=-1), counts.present_classes.sum(axis=-1), np.nan)
    if method == "weighted":
        return ratio((values * counts.true).sum(axis=-1), counts.true.sum(axis=-1), np.nan)
    if method == "micro":
        return accuracy(counts)
    raise unknown_name_error("average", method, AVERAGES)


def headline(values: Floats, counts: ClassCounts, binary: bool) -> Floats:
    """The figure printed for precision and F1: that of the second of two classes, else the macro average."""
    return values[..., 1] if binary else average(values, counts, "macro")


def headline_titles(labels: Sequence[object]) -> dict[str, str]:
    """What the printed figures are of, by metric: the second of two classes, or the macro average of several.

    >>> (
    ...     headline_titles(["no", "yes"])["f1"],
    ...     headline_titles(["a", "b", "c"])["f1"],
    ...     headline_titles(["no", "yes"]).get("auc"),
    ... )
    ('yes', 'macro', None)
    """
    if len(labels) == 2:
        return dict.fromkeys(("precision", "f1", "average_precision"), formatting.format_label(labels[1]))
    return dict.fromkeys(("precision", "f1", "auc", "average_precision"), "macro") if len(labels) > 2 else {}


def metric_title(name: str, subject: Mapping[str, str], space: str = " ") -> str:
    """The name of a metric as it is printed, with what it is of; in Python's records with ``_`` for a space.

    >>> metric_title("f1", headline_titles(["no", "yes"])), metric_title("log_loss", {})
    ('f1 (yes)', 'log loss')
    """
    title = name.replace("_", space)
    if name not in subject:
        return title
    return f"{'PR-AUC' if title == 'average precision' else title} ({subject[name]})"  # a table has 80 letters


def accuracy(counts: ClassCounts) -> Floats:
    """The share of rows that are right; NaN of none."""
    return ratio(counts.correct.sum(axis=-1), counts.true.sum(axis=-1), np.nan)


def balanced_accuracy(counts: ClassCounts) -> Floats:
    """The recall of the classes that have rows, averaged."""
    return ratio(recall(counts).sum(axis=-1), (counts.true > 0).sum(axis=-1), np.nan)


def matthews(counts: ClassCounts) -> Floats:
    """The correlation of classes met and given (Matthews, 1975; Gorodkin, 2004); 0 where one of them does not vary."""
    n, right = counts.true.sum(axis=-1), counts.correct.sum(axis=-1)
    t, p = ratio(counts.true, n[..., None]), ratio(counts.predicted, n[..., None])
    spread = (t * (1 - t)).sum(axis=-1) * (p * (1 - p)).sum(axis=-1)
    spread = np.where(((t > 0).sum(axis=-1) > 1) & ((p > 0).sum(axis=-1) > 1), spread, 0.0)  # but for rounding
    return ratio(ratio(right, n) - (t * p).sum(axis=-1), np.sqrt(spread))


def roc_area(other_weight: Floats, class_weight: Floats) -> Floats:
    """The area under the ROC curve of weights in ascending order of score, those of the class and those of others."""
    below = np.cumsum(other_weight, axis=-1) - other_weight
    pairs = other_weight.sum(axis=-1) * class_weight.sum(axis=-1)
    return ratio((class_weight * (below + 0.5 * other_weight)).sum(axis=-1), pairs, np.nan)


def average_precision(other_weight: Floats, class_weight: Floats) -> Floats:
    """The area under the precision-recall curve, by steps: the precision at each row of the class, on average.

    >>> float(average_precision(np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 1.0])))  # 1/1 and 2/3
    0.8333333333333334
    """
    met, rows = (np.cumsum(v[..., ::-1], axis=-1)[..., ::-1] for v in (class_weight, class_weight + other_weight))
    return ratio((class_weight * ratio(met, rows)).sum(axis=-1), class_weight.sum(axis=-1), np.nan)
