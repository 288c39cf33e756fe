"""Metrics as functions of figures: class counts, sums of losses, and areas under curves.

Every function takes arrays whose last axis is the class, or the rank by score, and returns an array over the axes
before it: the scored rows and a thousand bootstrap draws of them are handled alike. By class, a ratio with denominator
0 is 0; averages are over the classes that occur, as in scikit-learn. A new metric is a function of :class:`Figures` and
a line in ``METRICS``.

>>> counts = ClassCounts(correct=np.array([8.0, 3.0]), true=np.array([10.0, 5.0]), predicted=np.array([10.0, 5.0]))
>>> precision(counts).tolist(), round(float(average(f1(counts), counts, "macro")), 3)
([0.8, 0.6], 0.7)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.errors import unknown_name_error

Floats = NDArray[np.float64]

AVERAGES = ("macro", "micro", "weighted")  # equal weight of classes, equal weight of rows, classes by their rows


class ClassCounts(NamedTuple):
    """Weight of rows by class: of the class and predicted as it, of the class, predicted as it."""

    correct: Floats
    true: Floats
    predicted: Floats

    @classmethod
    def from_confusion(cls, confusion: Floats) -> "ClassCounts":
        """From a matrix (true class, predicted class)."""
        return cls(np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0))

    @property
    def present_classes(self) -> NDArray[np.bool_]:
        """Which classes have rows, or are predicted."""
        return (self.true > 0) | (self.predicted > 0)


class Figures(Protocol):
    """What metrics are computed from: of scored rows, or of bootstrap draws of them in further axes."""

    @property
    def class_counts(self) -> ClassCounts: ...  # (..., class), of the rows that were decided
    @property
    def n(self) -> Any: ...  # (...) weight of all rows
    @property
    def sum_neg_log(self) -> Floats: ...  # (...) sum of -log p(true class)
    @property
    def sum_squared_error(self) -> Floats: ...  # (...) sum over classes of (p - truth)**2
    @property
    def areas(self) -> Floats: ...  # (curve, ...) under the ROC curve of each class, or of the second of two
    @property
    def average_precisions(self) -> Floats: ...  # (curve, ...)
    @property
    def curve_weights(self) -> Floats: ...  # (curve, ...) weight of the rows of the class
    @property
    def confidence_bins(self) -> Floats: ...  # (bins, 3) weight, sum of the top probability, weight where it is right
    @property
    def is_binary(self) -> bool: ...


def ratio(part: Floats, whole: Floats, default: float = 0.0) -> Floats:
    """A part of a whole; ``default`` where there is nothing."""
    return np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, default), where=whole > 0)


# By class


def precision(counts: ClassCounts) -> Floats:
    """Of the rows predicted as a class, the proportion that is of it."""
    return ratio(counts.correct, counts.predicted)


def recall(counts: ClassCounts) -> Floats:
    """Of the rows of a class, the proportion that is predicted as it."""
    return ratio(counts.correct, counts.true)


def f1(counts: ClassCounts) -> Floats:
    """The harmonic mean of precision and recall."""
    return ratio(2 * counts.correct, counts.true + counts.predicted)


CLASS_METRICS = {"precision": precision, "recall": recall, "f1": f1}


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


def _headline(metric: Callable[[ClassCounts], Floats], figures: Figures) -> Floats:
    """The value of the second of two classes, else the macro average."""
    values = metric(figures.class_counts)
    return values[..., 1] if figures.is_binary else average(values, figures.class_counts, "macro")


# Curves


def roc_area(other_weight: Floats, class_weight: Floats) -> Floats:
    """The area under the ROC curve, from the weights of a class and of others in ascending order of score."""
    below = np.cumsum(other_weight, axis=-1) - other_weight
    pairs = other_weight.sum(axis=-1) * class_weight.sum(axis=-1)
    return ratio((class_weight * (below + 0.5 * other_weight)).sum(axis=-1), pairs, np.nan)


def average_precision(other_weight: Floats, class_weight: Floats) -> Floats:
    """The area under the precision-recall curve by steps: the mean precision at each row of the class.

    >>> float(average_precision(np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 1.0])))  # 1/1 and 2/3
    0.8333333333333334
    """
    correct, rows = (np.cumsum(v[..., ::-1], axis=-1)[..., ::-1] for v in (class_weight, class_weight + other_weight))
    return ratio((class_weight * ratio(correct, rows)).sum(axis=-1), class_weight.sum(axis=-1), np.nan)


def _mean_over_curves(values: Floats, weight: Floats | float = 1.0) -> Floats:
    """The mean over the curves that are defined."""
    weights = np.where(np.isnan(values), 0.0, weight)
    return ratio((np.nan_to_num(values) * weights).sum(axis=0), weights.sum(axis=0), np.nan)


# Metrics of all rows


def accuracy(figures: Figures) -> Floats:
    """The proportion of rows whose predicted class is the true one; NaN without rows."""
    return _proportion_correct(figures.class_counts)


def balanced_accuracy(figures: Figures) -> Floats:
    """The mean recall of the classes that have rows."""
    return ratio(recall(figures.class_counts).sum(axis=-1), (figures.class_counts.true > 0).sum(axis=-1), np.nan)


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


def weighted_auc(figures: Figures) -> Floats:
    """The same with classes weighted by their rows; two classes have one area."""
    return _mean_over_curves(figures.areas, figures.curve_weights)


def mean_average_precision(figures: Figures) -> Floats:
    """The area under the precision-recall curve, by steps (scikit-learn's ``average_precision_score``).

    For two classes that of the second, for more the mean over those that occur.
    """
    return _mean_over_curves(figures.average_precisions)


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
    has_interval: bool = True  # whether bootstrap draws say how sure it is


METRICS = {
    "accuracy": Metric(accuracy, "predicted class is right"),
    "balanced_accuracy": Metric(balanced_accuracy, "mean recall of the classes"),
    "precision": Metric(lambda f: _headline(precision, f), "right among those predicted", averages="class"),
    "f1": Metric(lambda f: _headline(f1, f), "mean of precision and recall", averages="class"),
    "matthews": Metric(matthews, "correlation of true, predicted", range=(-1.0, 1.0)),
    "log_loss": Metric(log_loss, "-log p(true); lower is better", lower_is_better=True, range=(0.0, np.inf)),
    "brier": Metric(brier, "squared error; lower is better", lower_is_better=True, range=(0.0, 2.0)),
    "auc": Metric(auc, "a class ranks above the others", averages="macro"),
    "weighted_auc": Metric(weighted_auc, "the same, weighted by rows"),
    "average_precision": Metric(mean_average_precision, "PR-AUC: mean precision", averages="class"),
    # Draws are always worse calibrated than the rows that they are drawn from.
    "calibration_error": Metric(
        calibration_error, "confidence minus accuracy", lower_is_better=True, has_interval=False
    ),
}


def headline_titles(labels: Sequence[object]) -> dict[str, str]:
    """What metrics are of: the second of two classes, or the macro average of several.

    >>> headline_titles(["no", "yes"])["f1"], headline_titles(["a", "b", "c"])["auc"]
    ('yes', 'macro')
    """
    if len(labels) < 2:
        return {}
    title = formatting.format_label(labels[1]) if len(labels) == 2 else "macro"
    return {n: title for n, m in METRICS.items() if m.averages == "class" or (m.averages and len(labels) > 2)}


def metric_title(name: str, subject: Mapping[str, str], space: str = " ") -> str:
    """The name of a metric as printed, with what it is of; in Python's records with ``_`` for a space.

    >>> metric_title("f1", headline_titles(["no", "yes"])), metric_title("log_loss", {})
    ('f1 (yes)', 'log loss')
    """
    title = name.replace("_", space)
    if name not in subject:
        return title
    return f"{'PR-AUC' if title == 'average precision' else title} ({subject[name]})"  # a table has 80 columns
