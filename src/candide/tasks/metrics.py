"""Metrics: what is made of how many rows of each class were met, predicted and right, and of rows in order of score.

Every function takes arrays whose last axis is the class, or the place in the order, and gives one figure for each of
the axes before it: the rows as they are and a thousand drawings of them are one case. Where a share is one of nothing
it is 0 by class, and the averages are over the classes that occur, as scikit-learn has it.

>>> counts = Counts(right=np.array([8.0, 3.0]), true=np.array([10.0, 5.0]), predicted=np.array([10.0, 5.0]))
>>> precision(counts).tolist(), round(float(average(f1(counts), counts, "macro")), 3), round(float(matthews(counts)), 3)
([0.8, 0.6], 0.7, 0.4)
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.errors import unknown

Floats = NDArray[np.float64]

AVERAGES = ("macro", "micro", "weighted")  # classes counting alike, rows counting alike, classes by their rows


class Counts(NamedTuple):
    """Weight of rows by class: given the class and right, of the class, given the class."""

    right: Floats
    true: Floats
    predicted: Floats

    @classmethod
    def of(cls, confusion: Floats) -> "Counts":
        """Of a matrix, true classes down."""
        return cls(np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0))

    @property
    def occur(self) -> NDArray[np.bool_]:
        """Which classes have rows, or are given some."""
        return (self.true > 0) | (self.predicted > 0)


def share(part: Floats, whole: Floats, none: float = 0.0) -> Floats:
    """A part of a whole; ``none`` where there is nothing."""
    return np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, none), where=whole > 0)


def precision(counts: Counts) -> Floats:
    """Of the rows given a class, the share that is of it."""
    return share(counts.right, counts.predicted)


def recall(counts: Counts) -> Floats:
    """Of the rows of a class, the share that is given it."""
    return share(counts.right, counts.true)


def f1(counts: Counts) -> Floats:
    """The harmonic mean of both."""
    return share(2 * counts.right, counts.true + counts.predicted)


BY_CLASS = {"precision": precision, "recall": recall, "f1": f1}


def average(values: Floats, counts: Counts, how: str) -> Floats:
    """One figure of those of the classes. Of one label a row, all three are the accuracy on "micro" average."""
    if how == "macro":
        return share((values * counts.occur).sum(axis=-1), counts.occur.sum(axis=-1), np.nan)
    if how == "weighted":
        return share((values * counts.true).sum(axis=-1), counts.true.sum(axis=-1), np.nan)
    if how == "micro":
        return accuracy(counts)
    raise unknown("average", how, AVERAGES)


def headline(values: Floats, counts: Counts, binary: bool) -> Floats:
    """The figure printed for precision and F1: that of the second of two classes, else the macro average."""
    return values[..., 1] if binary else average(values, counts, "macro")


def headline_of(labels: Sequence[object]) -> dict[str, str]:
    """What the printed figures are of, by metric: the second of two classes, or the macro average of several.

    >>> headline_of(["no", "yes"])["f1"], headline_of(["a", "b", "c"])["f1"], headline_of(["no", "yes"]).get("auc")
    ('yes', 'macro', None)
    """
    if len(labels) == 2:
        return dict.fromkeys(("precision", "f1", "average_precision"), wording.label(labels[1]))
    return dict.fromkeys(("precision", "f1", "auc", "average_precision"), "macro") if len(labels) > 2 else {}


def titled(name: str, of: Mapping[str, str], space: str = " ") -> str:
    """The name of a metric as it is printed, with what it is of; in Python's records with ``_`` for a space.

    >>> titled("f1", headline_of(["no", "yes"])), titled("log_loss", {})
    ('f1 (yes)', 'log loss')
    """
    title = name.replace("_", space)
    if name not in of:
        return title
    return f"{'PR-AUC' if title == 'average precision' else title} ({of[name]})"  # a table has 80 letters


def accuracy(counts: Counts) -> Floats:
    """The share of rows that are right; NaN of none."""
    return share(counts.right.sum(axis=-1), counts.true.sum(axis=-1), np.nan)


def balanced_accuracy(counts: Counts) -> Floats:
    """The recall of the classes that have rows, averaged."""
    return share(recall(counts).sum(axis=-1), (counts.true > 0).sum(axis=-1), np.nan)


def matthews(counts: Counts) -> Floats:
    """The correlation of classes met and given (Matthews, 1975; Gorodkin, 2004); 0 where one of them does not vary."""
    n, right = counts.true.sum(axis=-1), counts.right.sum(axis=-1)
    t, p = share(counts.true, n[..., None]), share(counts.predicted, n[..., None])
    spread = (t * (1 - t)).sum(axis=-1) * (p * (1 - p)).sum(axis=-1)
    spread = np.where(((t > 0).sum(axis=-1) > 1) & ((p > 0).sum(axis=-1) > 1), spread, 0.0)  # but for rounding
    return share(share(right, n) - (t * p).sum(axis=-1), np.sqrt(spread))


def area(other: Floats, own: Floats) -> Floats:
    """The area under the ROC curve of weights in ascending order of score, those of the class and those of others."""
    below = np.cumsum(other, axis=-1) - other
    pairs = other.sum(axis=-1) * own.sum(axis=-1)
    return share((own * (below + 0.5 * other)).sum(axis=-1), pairs, np.nan)


def average_precision(other: Floats, own: Floats) -> Floats:
    """The area under the precision-recall curve, by steps: the precision at each row of the class, on average.

    >>> float(average_precision(np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 1.0])))  # 1/1 and 2/3
    0.8333333333333334
    """
    met, rows = (np.cumsum(v[..., ::-1], axis=-1)[..., ::-1] for v in (own, own + other))
    return share((own * share(met, rows)).sum(axis=-1), own.sum(axis=-1), np.nan)
