"""In detail: what scores say beyond one figure each, by class, by threshold, as lines to draw, and how sure it is.

>>> from candide.metrics.scores import Scores
>>> scores = Scores.from_log_posterior(np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1]))
>>> [(one.label, one.recall) for one in scores.class_scores(["no", "yes"])][:1], scores.top_k_accuracy(2)
([('no', 1.0)], 1.0)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.errors import InputError
from candide.metrics import curves as drawing
from candide.metrics import formulas as measures
from candide.metrics.auc import Ranks
from candide.metrics.bootstrap import N_DRAWS, BootstrapSample
from candide.metrics.calibration import Calibration
from candide.metrics.formulas import ClassCounts, Floats

CONFIDENCE_BINS = 15  # Naeini, Cooper and Hauskrecht (2015)


@dataclass(frozen=True)
class ClassScore:
    """One class against the others: of what is given it how much is right, how much of it is found, how it ranks.

    >>> from candide.metrics.scores import Scores
    >>> scores = Scores.from_log_posterior(
    ...     np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])
    ... )
    >>> [(one.label, one.precision, round(one.recall, 2), one.f1) for one in scores.class_scores(["no", "yes"])]
    [('no', 0.5, 1.0, 0.6666666666666666), ('yes', 1.0, 0.67, 0.8)]
    """

    label: Any
    weight: float  # weight of its rows
    predicted_weight: float  # weight of the rows that are given it
    precision: float
    recall: float
    f1: float
    auc: float
    average_precision: float
    lift: float  # of the tenth of the rows that are its most probable ones


class ScoreDetails:
    """What is read off the sums, ranks and rows that scores keep."""

    confusion: Floats
    confidence_bins: Floats
    ranks: Ranks
    true_class_rank: Floats
    sample: BootstrapSample
    correctness_ranks: Ranks

    @property
    def class_counts(self) -> ClassCounts:
        """Weight of rows by class: right, met and given.

        >>> from candide.metrics.scores import Scores
        >>> Scores.from_log_posterior(
        ...     np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]), np.array([0, 1, 1])
        ... ).class_counts.correct.tolist()
        [1.0, 1.0]
        """
        return ClassCounts.from_confusion(self.confusion)

    def class_scores(self, labels: Sequence[Any] | None = None) -> list[ClassScore]:
        """Each class against the others: precision, recall, F1, AUC, average precision, lift.

        >>> from candide.metrics.scores import Scores
        >>> scores = Scores.from_log_posterior(np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]), np.array([0, 1, 1]))
        >>> scores.class_scores(["no", "yes"])[1].precision
        1.0
        """
        names = range(len(self.confusion)) if labels is None else labels
        counts, found = self.class_counts, []
        each = np.stack(
            [counts.true, counts.predicted, *(of(counts) for of in measures.CLASS_METRICS.values())], axis=1
        )
        for c, label in enumerate(names):
            cells = self.ranks.class_curve(c)
            area, precision = (
                float(of(cells.other_weight, cells.class_weight))
                for of in (measures.roc_area, measures.average_precision)
            )
            figures = dict(zip(("weight", "predicted_weight", *measures.CLASS_METRICS), each[c].tolist(), strict=True))
            ranked = {"auc": area, "average_precision": precision, "lift": drawing.lift_at_fraction(cells)}
            found.append(ClassScore(label, **figures, **ranked))
        return found

    def top_k_accuracy(self, k: int) -> float:
        """Share of rows whose true class is among the ``k`` most probable; of equals the first class stands first.

        >>> from candide.metrics.scores import Scores
        >>> Scores.from_log_posterior(np.log([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), np.array([1, 2])).top_k_accuracy(2)
        0.5
        """
        if not (isinstance(k, int | np.integer) and k >= 1):
            raise InputError(f"top: {k!r} is no number of classes", value=k, remedy="pass a whole number, at least 1")
        return float(self.true_class_rank[:k].sum() / self.true_class_rank.sum())

    def curves(
        self,
        labels: Sequence[Any] | None = None,
        *,
        classes: Iterable[int] | None = None,
        max_points: int | None = None,
    ) -> list[drawing.Curve]:
        """ROC, precision-recall, gain, lift and calibration of each class (of two the second); ``most`` points each.

        >>> from candide.metrics.scores import Scores
        >>> scores = Scores.from_log_posterior(np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]), np.array([0, 1, 1]))
        >>> [(one.name, one.axes) for one in scores.curves(["no", "yes"])][:1]
        [('roc', ('false positive rate', 'true positive rate'))]
        """
        names = range(len(self.confusion)) if labels is None else labels
        each = self._curve_classes if classes is None else classes
        return [one for c in each for one in drawing.all_curves(self.ranks.class_curve(c), names[c], max_points)]

    def thresholds(
        self, labels: Sequence[Any] | None = None, levels: Sequence[float] = drawing.THRESHOLDS, *, c: int = -1
    ) -> list[drawing.Threshold]:
        """What comes of taking all rows whose probability of a class, the last if none is said, is at least so high.

        >>> from candide.metrics.scores import Scores
        >>> scores = Scores.from_log_posterior(
        ...     np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])
        ... )
        >>> [(one.threshold, one.precision, round(one.recall, 2)) for one in scores.thresholds(levels=[0.15, 0.65])]
        [(0.15, 1.0, 1.0), (0.65, 1.0, 0.33)]
        """
        names = range(len(self.confusion)) if labels is None else labels
        return drawing.threshold_table(self.ranks.class_curve(c % len(names)), names[c], levels)

    def intervals(self, level: float = 0.95, *, draws: int = N_DRAWS, seed: int = 0) -> dict[str, tuple[float, float]]:
        """Between which values each metric would lie on other rows, by drawing from those scored.

        Of a model they are what it would do on as many other rows, not what it would do fitted to others. The
        calibration error has none: drawings are always worse calibrated than what they are drawn from. A metric that
        is off by more than it varies, as the average precision of many classes with few rows, has none either: nan.

        >>> from candide.metrics.scores import Scores
        >>> log_posterior, y = np.log(np.tile([0.2, 0.8], (100, 1))), (np.arange(100) < 80).astype(int)
        >>> low, high = Scores.from_log_posterior(log_posterior, y).intervals()["accuracy"]
        >>> round(low, 1), round(high, 1)
        (0.7, 0.9)
        """
        with np.errstate(invalid="ignore"):
            return metric_intervals(self, self.sample.draw_deviations(draws, seed), level)

    @property
    def _curve_classes(self) -> Iterable[int]:
        """Classes whose curves tell all there is to tell."""
        return (1,) if len(self.confusion) == 2 else range(len(self.confusion))

    def coverage_curve(self, max_points: int | None = None) -> drawing.Curve:
        """How many of the rows that are decided are right, if only the surest ones are: none to all of them.

        >>> from candide.metrics.scores import Scores
        >>> scores = Scores.from_log_posterior(
        ...     np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])
        ... )
        >>> line = scores.coverage_curve()
        >>> line.x.tolist(), line.y.round(2).tolist(), line.threshold.round(2).tolist()
        ([0.25, 0.5, 0.75, 1.0], [1.0, 0.5, 0.67, 0.75], [0.9, 0.8, 0.7, 0.6])
        """
        line = drawing.coverage_curve(self.correctness_ranks.curve(0))
        return line if max_points is None else line.thin(max_points)

    def calibration(self) -> Calibration:
        """What was stated of the most probable class, in bins, against how often it was right.

        >>> from candide.metrics.scores import Scores
        >>> found = Scores.from_log_posterior(
        ...     np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]), np.array([0, 1, 1])
        ... ).calibration()
        >>> found.mean_predicted.round(2).tolist(), found.observed_frequency.tolist()
        ([0.6, 0.8, 0.9], [1.0, 0.0, 1.0])
        """
        weight, stated, right = self.confidence_bins.T
        seen = np.flatnonzero(weight)
        n, edges = weight[seen], np.linspace(0.0, 1.0, CONFIDENCE_BINS + 1)
        return Calibration(stated[seen] / n, right[seen] / n, n, edges, seen)


def metric_intervals(
    scores: ScoreDetails, deviations: Mapping[str, Floats], level: float
) -> dict[str, tuple[float, float]]:
    """Each metric with the quantiles of what drawings of it are off by, within what it can be.

    Where every row is right, or every one wrong, no drawing is off: the accuracy then has the exact bound of a share
    (Clopper and Pearson, 1934), and what else does not vary has none.
    """
    found = dict[str, tuple[float, float]]()
    for name, each in deviations.items():
        value = getattr(scores, name)
        low, high = _bias_corrected_interval(value, each[~np.isnan(each)], level)
        if name == "accuracy" and low != low and value in (0.0, 1.0):
            far = ((1 - level) / 2) ** (1 / scores.sample.n)
            low, high = (far, 1.0) if value else (0.0, 1 - far)
        most = np.inf if name == "log_loss" else 1.0 if name != "brier" else 2.0
        found[name] = float(max(low, -1.0 if name == "matthews" else 0.0)), float(min(high, most))
    return found


def _bias_corrected_interval(value: float, off: Floats, level: float) -> tuple[float, float]:
    """A metric with the quantiles of what drawings are off by, less what they are off by on average, twice.

    Once because drawings are, and once because the metric itself is off as much from that of all rows there could be:
    few rows of a class have too high an average precision, and drawings of them a higher one. Below a quarter of what
    they differ by it can be left alone (Efron and Tibshirani, 1993); where it is more than all of that, or
    drawings do not differ, there is no saying where the metric lies.
    """
    bias, sd = (off.mean(), off.std()) if len(off) else (np.nan, np.nan)
    if not (sd > 1e-12 and abs(bias) <= sd):
        return np.nan, np.nan
    shift = 2 * bias if abs(bias) > sd / 4 else 0.0
    low, high = value - shift + np.quantile(off, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
