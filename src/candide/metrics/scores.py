"""Scores: how good posteriors are, as a tally of its own. Scores of parts add, so batches and folds are one case."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.errors import InputError, unknown_name_error
from candide.metrics import curves as curve_points
from candide.metrics.auc import Floats, Ranks, average_precision, log_odds, roc_area, true_class_ranks
from candide.metrics.curves import Calibration, Curve, Threshold
from candide.metrics.formulas import (
    CLASS_METRICS,
    METRICS,
    N_DRAWS,
    BootstrapSample,
    ClassCounts,
    Intervals,
    average,
    metric_intervals,
)
from candide.model.policy import DecisionRule

LOWER_IS_BETTER = frozenset(name for name, metric in METRICS.items() if metric.lower_is_better)
CONFIDENCE_BINS = 15  # Naeini, Cooper and Hauskrecht (2015)


@dataclass(frozen=True)
class ClassScore:
    """One class against the others."""

    label: Any
    weight: float  # of its rows
    predicted_weight: float  # of the rows that are predicted as it
    precision: float
    recall: float
    f1: float
    auc: float
    average_precision: float
    lift: float  # among the tenth of the rows where it is most probable


class MetricAttributes:
    """The metrics, for type checkers: ``Scores`` computes an attribute when it is read."""

    accuracy: float
    balanced_accuracy: float
    precision: float
    f1: float
    matthews: float
    log_loss: float
    brier: float
    auc: float
    weighted_auc: float
    average_precision: float
    calibration_error: float


@dataclass(frozen=True, eq=False, repr=False)
class Scores(MetricAttributes):
    """What every metric needs of posteriors and true classes: counts, sums and ranks, which add.

    Every metric of ``METRICS`` is an attribute.

    >>> scores = Scores.from_log_posterior(np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]), np.array([0, 1, 1]))
    >>> scores
    Scores of 3 rows
    accuracy                          0.6667
    balanced_accuracy                 0.7500
    precision (second class)          1.0000
    f1 (second class)                 0.6667
    matthews                          0.5000
    log_loss                          0.7419
    brier                             0.2700
    auc                               1.0000
    weighted_auc                      1.0000
    average_precision (second class)  1.0000
    calibration_error                 0.4333
    >>> scores.n, scores.auc_error, scores.class_weights.tolist(), scores.coverage, round(scores.mean_cost, 3)
    (3.0, 0.0, [1.0, 2.0], 1.0, 0.333)
    >>> [(c.label, c.precision, c.recall, round(c.f1, 2)) for c in scores.class_scores(["no", "yes"])]
    [('no', 0.5, 1.0, 0.67), ('yes', 1.0, 0.5, 0.67)]
    >>> [scores.average("precision", method) for method in ("macro", "micro", "weighted")], scores.top_k_accuracy(2)
    ([0.75, 0.6666666666666666, 0.8333333333333334], 1.0)
    >>> [(t.threshold, t.precision, t.recall) for t in scores.thresholds(levels=[0.15, 0.65])]
    [(0.15, 1.0, 1.0), (0.65, nan, 0.0)]
    """

    confusion: Floats  # (true class, predicted class) weight
    sum_neg_log: Floats  # () sum of -log p(true class)
    sum_squared_error: Floats  # () sum over classes of (p - truth)**2
    confidence_bins: Floats  # (bins, 3) weight, sum of the top probability, weight where it is right
    ranks: Ranks  # rows by log-odds of the class
    true_class_rank: Floats  # (classes,) weight of the rows with so many classes above the true one
    sample: BootstrapSample  # some of the rows, to draw from
    correctness_ranks: Ranks  # rows by log-odds of their most probable class, and whether it is right
    abstained: Floats  # (classes,) weight of the rows without a decision, by their class
    sum_cost: float  # sum of the costs of decisions; by default 1 where one is wrong

    @classmethod
    def from_log_posterior(
        cls, log_posterior: Floats, y: NDArray[np.intp], weight: Floats | None = None, rule: DecisionRule | None = None
    ) -> Self:
        """Score log p(class | x), (row, class), against class codes; ``rule`` decides, or else the most probable class.

        Metrics of decisions, from accuracy to Matthews, are of the rows with a decision; the others of all rows.
        """
        n, k = log_posterior.shape
        if np.isnan(log_posterior).any():
            row = int(np.isnan(log_posterior).any(axis=1).argmax())
            raise InputError("a probability is NaN", row=row, value=float("nan"), remedy="pass log p(class | x)")
        w = np.ones(n) if weight is None else weight
        p = np.exp(log_posterior)
        first = np.arange(0, n * k, k)  # where each row starts in the flat arrays, which are quicker to take from
        winner = log_posterior.argmax(axis=1)
        top, true = p.ravel()[first + winner], p.ravel()[first + y]
        bins = np.minimum((top * CONFIDENCE_BINS).astype(np.intp), CONFIDENCE_BINS - 1)
        is_correct = winner == y
        loss = -log_posterior.ravel()[first + y]
        squared_error = np.maximum(np.einsum("ij,ij->i", p, p) - 2 * true + 1, 0.0)
        odds = log_odds(log_posterior, p, first + winner)
        predicted = winner if rule is None else rule(log_posterior)
        decided = slice(None) if rule is None else predicted >= 0
        top_odds = np.abs(odds[:, 0]) if k == 2 else odds.ravel()[first + winner]
        binned = [np.bincount(bins, values, CONFIDENCE_BINS) for values in (w, w * top, w * is_correct)]
        return cls(
            confusion=np.bincount((y * k + predicted)[decided], w[decided], k * k).reshape(k, k).astype(float),
            sum_neg_log=np.asarray((w * loss).sum()),
            sum_squared_error=np.asarray((w * squared_error).sum()),
            confidence_bins=np.stack(binned, axis=1),
            ranks=Ranks.from_log_odds(odds, y, weight),
            true_class_rank=np.bincount(true_class_ranks(log_posterior, y, -loss), w, k).astype(float),
            sample=BootstrapSample.from_rows(y, predicted, loss, squared_error, weight, odds),
            correctness_ranks=Ranks.from_log_odds(top_odds[:, None], is_correct.astype(np.intp), weight),
            abstained=np.bincount(y[predicted < 0], w[predicted < 0], k).astype(float),
            sum_cost=float((w * (predicted != y if rule is None else rule.cost(y, predicted))).sum()),
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> float:
            if name not in METRICS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return float(METRICS[name].compute(self))

    def metrics(self) -> dict[str, float]:
        """Every metric by its name."""
        return {name: float(metric.compute(self)) for name, metric in METRICS.items()}

    @property
    def areas(self) -> Floats:
        return self.ranks.areas

    @property
    def average_precisions(self) -> Floats:
        return self.ranks.average_precisions

    @property
    def curve_weights(self) -> Floats:
        """(curve,) weight of the rows of the class of each curve."""
        return self.class_weights[-self.ranks.n_curves :]

    @property
    def is_binary(self) -> bool:
        return len(self.confusion) == 2

    def __str__(self) -> str:
        return "\n".join(
            [f"Scores of {formatting.format_count(self.n)}", *formatting.align_columns(self._metric_rows("_"))]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f"Scores of {formatting.format_count(self.n)}"
        return formatting.render_html_table(title, [["metric", "value"], *self._metric_rows()])

    def _metric_rows(self, space: str = " ") -> list[list[str]]:
        """Every metric as printed; scores do not know the names of classes."""
        k = len(self.confusion)
        titles = headline_titles(["first class", "second class"] if k == 2 else range(k))
        return [[metric_title(name, titles, space), f"{value:.4f}"] for name, value in self.metrics().items()]

    @property
    def n(self) -> float:
        """Weight of the rows scored."""
        return float(self.confusion.sum() + self.abstained.sum())

    @property
    def coverage(self) -> float:
        """Proportion of the rows with a decision."""
        return float(self.confusion.sum() / self.n)

    @property
    def mean_cost(self) -> float:
        """Mean cost of a row; without costs the proportion of wrong decisions."""
        return float(self.sum_cost / self.n)

    @property
    def class_weights(self) -> Floats:
        """(classes,) weight of the rows of each class."""
        return self.confusion.sum(axis=1) + self.abstained

    @property
    def class_counts(self) -> ClassCounts:
        """Weight of rows by class: correct, true and predicted."""
        return ClassCounts.from_confusion(self.confusion)

    @property
    def auc_error(self) -> float:
        """Bound on the difference of ``auc`` from that of all rows ranked one by one: 0 up to a million rows.

        Beyond, it is below 1e-6 for two classes, and below 5e-7 times the number of classes for more. The difference
        itself is some thousand times smaller.
        """
        return float(self.ranks.area_errors.mean())

    def average(self, name: str, method: str = "macro") -> float:
        """Precision, recall or F1 averaged over classes: "macro" (equally), "weighted" (by their rows) or "micro".

        As in scikit-learn the precision of a class that is never predicted is 0, and a class that neither occurs nor is
        predicted does not count.
        """
        if name not in CLASS_METRICS:
            raise unknown_name_error("metric", name, CLASS_METRICS)
        return float(average(CLASS_METRICS[name](self.class_counts), self.class_counts, method))

    def class_scores(self, labels: Sequence[Any] | None = None) -> list[ClassScore]:
        """Each class against the others: precision, recall, F1, AUC, average precision, lift."""
        counts, class_scores = self.class_counts, []
        columns = [counts.true, counts.predicted, *(metric(counts) for metric in CLASS_METRICS.values())]
        for c, label in enumerate(self._labels(labels)):
            bins = self.ranks.class_curve(c)
            areas = [float(area(bins.other_weight, bins.class_weight)) for area in (roc_area, average_precision)]
            lift, values = curve_points.lift_at_fraction(bins), [float(column[c]) for column in columns]
            class_scores.append(ClassScore(label, *values, *areas, lift))  # type: ignore[call-arg]
        return class_scores

    def top_k_accuracy(self, k: int) -> float:
        """Proportion of rows whose true class is among the ``k`` most probable; of equals the first comes first."""
        if not (isinstance(k, int | np.integer) and k >= 1):
            what = f"top: {k!r} is not a valid number of classes"
            raise InputError(what, value=k, remedy="pass a whole number, at least 1")
        return float(self.true_class_rank[:k].sum() / self.true_class_rank.sum())

    def curves(
        self,
        labels: Sequence[Any] | None = None,
        *,
        classes: Iterable[int] | None = None,
        max_points: int | None = None,
    ) -> list[Curve]:
        """ROC, precision-recall, gain, lift and calibration curves of each class, or of the second of two."""
        names, k = self._labels(labels), len(self.confusion)
        codes = ((1,) if k == 2 else range(k)) if classes is None else classes
        each = [curve_points.class_curves(self.ranks.class_curve(c), names[c]).values() for c in codes]
        return [curve.thin(max_points) for group in each for curve in group]

    def thresholds(
        self, labels: Sequence[Any] | None = None, levels: Sequence[float] = curve_points.THRESHOLDS, *, c: int = -1
    ) -> list[Threshold]:
        """Precision, recall and more at thresholds on the probability of a class, by default the last."""
        names = self._labels(labels)
        return curve_points.threshold_table(self.ranks.class_curve(c % len(names)), names[c], levels)

    def intervals(self, level: float = 0.95, *, draws: int = N_DRAWS, seed: int = 0) -> Intervals:
        """Bootstrap intervals of the metrics, by drawing from the scored rows.

        They cover the variation over other samples of as many rows, not over models fitted to other rows. The
        calibration error has no interval: draws are always worse calibrated than the rows they are drawn from. A metric
        whose bias exceeds its variation, such as the average precision of many classes with few rows, has none either:
        nan.
        """
        with np.errstate(invalid="ignore"):
            return metric_intervals(self, self.sample.draw_deviations(draws, seed), level)

    def coverage_curve(self, max_points: int | None = None) -> Curve:
        """Accuracy among the rows with the most confident predictions, from none to all of them."""
        return curve_points.coverage_curve(self.correctness_ranks.curve(0)).thin(max_points)

    def calibration(self) -> Calibration:
        """The probability of the most probable class, in bins, against how often it is right."""
        weight, confidence, correct = self.confidence_bins.T
        used = np.flatnonzero(weight)
        n, edges = weight[used], np.linspace(0.0, 1.0, CONFIDENCE_BINS + 1)
        return Calibration(confidence[used] / n, correct[used] / n, n, edges, used)

    def _labels(self, labels: Sequence[Any] | None) -> Sequence[Any]:
        return range(len(self.confusion)) if labels is None else labels


def fold_statistics(folds: list[Scores]) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each metric over the folds in which it is defined."""
    each, statistics = [fold.metrics() for fold in folds], dict[str, tuple[float, float]]()
    for name in METRICS:
        values = np.array([metrics[name] for metrics in each])
        values = values[~np.isnan(values)]
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        statistics[name] = (float(values.mean()), deviation) if len(values) else (float("nan"), float("nan"))
    return statistics


def score_class_prior(scores: Scores, proportions: Floats, rule: DecisionRule | None = None) -> Scores:
    """The scores of the class prior on the same rows: the baseline."""
    weight = scores.class_weights
    used = np.flatnonzero(weight)
    with np.errstate(divide="ignore"):  # a class that was counted, and forgotten
        return Scores.from_log_posterior(np.tile(np.log(proportions), (len(used), 1)), used, weight[used], rule)


def headline_titles(labels: Sequence[object]) -> dict[str, str]:
    """What metrics are of: the second of two classes, or the macro average of several."""
    if len(labels) < 2:
        return {}
    title = formatting.format_label(labels[1]) if len(labels) == 2 else "macro"
    return {n: title for n, m in METRICS.items() if m.averages == "class" or (m.averages and len(labels) > 2)}


def metric_title(name: str, subject: Mapping[str, str], space: str = " ") -> str:
    """The name of a metric as printed, with what it is of; in Python's records with ``_`` for a space."""
    title = name.replace("_", space)
    if name not in subject:
        return title
    return f"{'PR-AUC' if title == 'average precision' else title} ({subject[name]})"  # a table has 80 columns
