"""Scores: how good posteriors are, as a tally of its own. Scores of parts add, so batches and folds are one case.

>>> log_posterior = np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]])
>>> y = np.array([0, 1, 1, 1])
>>> whole = Scores.from_log_posterior(log_posterior, y)
>>> halves = Scores.from_log_posterior(log_posterior[:2], y[:2]) + Scores.from_log_posterior(log_posterior[2:], y[2:])
>>> whole.accuracy, round(whole.log_loss, 4), round(whole.brier, 4), whole.auc
(0.75, 0.6456, 0.225, 1.0)
>>> halves.accuracy, round(halves.log_loss, 4), round(halves.brier, 4), halves.auc
(0.75, 0.6456, 0.225, 1.0)
"""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.errors import InputError, unknown_name_error
from candide.metrics import formulas as measures
from candide.metrics.auc import Ranks, log_odds, true_class_ranks
from candide.metrics.bootstrap import BootstrapSample
from candide.metrics.details import CONFIDENCE_BINS, ClassScore, ScoreDetails
from candide.model.policy import DecisionRule

__all__ = ["LOWER_IS_BETTER", "METRICS", "ClassScore", "Floats", "Scores", "fold_statistics", "score_class_prior"]

Floats = NDArray[np.float64]

METRICS = {  # properties of Scores, and what they mean
    "accuracy": "the class given is right",
    "balanced_accuracy": "the same, classes counting alike",
    "precision": "right among rows given a class",
    "f1": "mean of precision and recall",
    "matthews": "correlation of true and given",
    "log_loss": "surprise, nats; lower is better",
    "brier": "squared error; lower is better",
    "auc": "a class ranks above the others",
    "weighted_auc": "the same, weighted by rows",
    "average_precision": "PR-AUC: precision at any recall",
    "calibration_error": "confidence off from what is true",
}
LOWER_IS_BETTER = frozenset({"log_loss", "brier", "calibration_error"})  # better the lower they are


@dataclass(frozen=True, eq=False, repr=False)
class Scores(ScoreDetails):
    """What is needed of posteriors and true classes to give every metric: counts, sums and ranks, which add.

    >>> scores = Scores.from_log_posterior(np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]), np.array([0, 1, 1]))
    >>> scores.n, round(scores.accuracy, 3), scores.balanced_accuracy, round(scores.log_loss, 3), round(scores.brier, 3)
    (3.0, 0.667, 0.75, 0.742, 0.27)
    >>> scores.auc, scores.weighted_auc, scores.auc_error, round(scores.calibration_error, 3), len(scores.metrics())
    (1.0, 1.0, 0.0, 0.433, 11)
    >>> scores.precision, round(scores.f1, 3), scores.matthews, scores.average_precision
    (1.0, 0.667, 0.5, 1.0)
    >>> scores.class_weights.tolist(), scores.coverage, round(scores.mean_cost, 3)
    ([1.0, 2.0], 1.0, 0.333)
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
    """

    confusion: Floats  # (true class, predicted class) weight
    sum_neg_log: Floats  # () sum of -log p(true class)
    sum_squared_error: Floats  # () sum over classes of (p - truth)**2
    confidence_bins: Floats  # (bins, 3) weight, sum of the winner's probability, weight where the winner is right
    ranks: Ranks  # rows by log-odds of the class
    true_class_rank: Floats  # (classes,) weight of the rows of which so many classes stand above the true one
    sample: BootstrapSample  # some of the rows, to draw from
    correctness_ranks: Ranks  # rows by log-odds of their most probable class, and whether it is right
    abstained: Floats  # (classes,) weight of the rows that were left open, by their class
    sum_cost: Floats  # () sum of what decisions cost: 1 where one is wrong, if nothing else is said

    @classmethod
    def from_log_posterior(
        cls, log_posterior: Floats, y: NDArray[np.intp], weight: Floats | None = None, rule: DecisionRule | None = None
    ) -> Self:
        """Score log p(class | x), (row, class), against class codes; ``rule`` decides, or else the most probable class.

        What is said of decisions, from accuracy to Matthews, is of the rows that are not left open; the rest of all.
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
        at = np.minimum((top * CONFIDENCE_BINS).astype(np.intp), CONFIDENCE_BINS - 1)
        right = w * (winner == y)
        loss = -log_posterior.ravel()[first + y]
        square = np.maximum(np.einsum("ij,ij->i", p, p) - 2 * true + 1, 0.0)
        odds = log_odds(log_posterior, p, first + winner)
        given = winner if rule is None else rule(log_posterior)
        some = slice(None) if rule is None else given >= 0
        sure = np.abs(odds[:, 0]) if k == 2 else odds.ravel()[first + winner]
        return cls(
            confusion=np.bincount((y * k + given)[some], w[some], k * k).reshape(k, k).astype(float),
            sum_neg_log=np.asarray((w * loss).sum()),
            sum_squared_error=np.asarray((w * square).sum()),
            confidence_bins=np.stack([np.bincount(at, v, CONFIDENCE_BINS) for v in (w, w * top, right)], axis=1),
            ranks=Ranks.from_log_odds(odds, y, weight),
            true_class_rank=np.bincount(true_class_ranks(log_posterior, y, -loss), w, k).astype(float),
            sample=BootstrapSample.from_rows(y, given, loss, square, weight, odds),
            correctness_ranks=Ranks.from_log_odds(sure[:, None], (winner == y).astype(np.intp), weight),
            abstained=np.bincount(y[given < 0], w[given < 0], k).astype(float),
            sum_cost=np.asarray((w * (given != y if rule is None else rule.cost(y, given))).sum()),
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __str__(self) -> str:
        rows = self._metric_rows("_")
        width = max(len(name) for name, _ in rows)
        return "\n".join(
            [f"Scores of {formatting.format_count(self.n)}", *(f"{name:{width}}  {v}" for name, v in rows)]
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return formatting.render_html_table(
            f"Scores of {formatting.format_count(self.n)}", [["metric", "value"], *self._metric_rows()]
        )

    def _metric_rows(self, space: str = " ") -> list[list[str]]:
        """Every metric as it is printed; the scores have no names of classes."""
        k = len(self.confusion)
        of = measures.headline_titles(["first class", "second class"] if k == 2 else range(k))
        return [[measures.metric_title(name, of, space), f"{value:.4f}"] for name, value in self.metrics().items()]

    @property
    def n(self) -> float:
        """Weight of the rows scored."""
        return float(self.confusion.sum() + self.abstained.sum())

    @property
    def coverage(self) -> float:
        """Share of the rows that are decided, and not left open.

        >>> scores = Scores.from_log_posterior(
        ...     np.log([[0.9, 0.1], [0.4, 0.6]]), np.array([0, 1]), rule=DecisionRule(abstain_below=0.8)
        ... )
        >>> scores.coverage, scores.mean_cost, scores.accuracy
        (0.5, 0.0, 1.0)
        """
        return float(self.confusion.sum() / self.n)

    @property
    def mean_cost(self) -> float:
        """What a row costs on average; without costs the share of wrong decisions."""
        return float(self.sum_cost / self.n)

    @property
    def class_weights(self) -> Floats:
        """(classes,) weight of the rows of each class."""
        return self.confusion.sum(axis=1) + self.abstained

    @property
    def accuracy(self) -> float:
        """Share of rows whose most probable class is the true one."""
        return float(measures.accuracy(self.class_counts))

    @property
    def balanced_accuracy(self) -> float:
        """Accuracy within each true class, averaged over the classes that occur."""
        return float(measures.balanced_accuracy(self.class_counts))

    @property
    def precision(self) -> float:
        """Of the rows given a class the share that is of it: of two classes the second, else the macro average.

        ``by_class`` has that of each class, ``average`` has other averages.
        """
        return self._headline("precision")

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: of two classes that of the second, else the macro average."""
        return self._headline("f1")

    def _headline(self, name: str) -> float:
        return float(
            measures.headline(
                measures.CLASS_METRICS[name](self.class_counts), self.class_counts, len(self.confusion) == 2
            )
        )

    @property
    def matthews(self) -> float:
        """Matthews' correlation of true and givenes: 1 where all are right, 0 where they tell nothing."""
        return float(measures.matthews(self.class_counts))

    def average(self, name: str, method: str = "macro") -> float:
        """Precision, recall or F1 of all classes: "macro" (alike), "weighted" (by their rows) or "micro" (by rows).

        As in scikit-learn a class that nothing is given has a precision of 0, and one that neither occurs nor is given
        has no part.

        >>> scores = Scores.from_log_posterior(
        ...     np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])
        ... )
        >>> [scores.average("precision", how) for how in ("macro", "micro", "weighted")]
        [0.75, 0.75, 0.875]
        """
        if name not in measures.CLASS_METRICS:
            raise unknown_name_error("metric", name, measures.CLASS_METRICS)
        return float(measures.average(measures.CLASS_METRICS[name](self.class_counts), self.class_counts, method))

    @property
    def log_loss(self) -> float:
        """Mean of -log p(true class): what a surprise costs, in nats.

        It is taken from log p, which does not round to 0 or 1: a row costs as much as the model is wrong, 700 nats if
        need be. scikit-learn's ``log_loss`` takes p, and clips it to within 2.2e-16 of 0 and 1, so that no row costs
        more than 36.04; where a model is far too sure its figure is the lower one.
        """
        return float(self.sum_neg_log / self.n)

    @property
    def brier(self) -> float:
        """Mean squared error of the probabilities; of the second class alone where there are two."""
        return float(self.sum_squared_error / self.n) / (2 if len(self.confusion) == 2 else 1)

    @property
    def auc(self) -> float:
        """P(a row of the class ranks above a row of another); of more than two classes the mean over those that occur.

        Rows are ranked by log-odds, so that probabilities that round to 0 or 1 are no ties; ties count half, and rows
        count by their weights. Where no probability rounds so, it equals scikit-learn's ``roc_auc_score`` of
        ``predict_proba``; else that counts such rows as ties, and can differ in the sixth decimal.

        It is exact to a million rows (of more than 16 classes to 16 million rows times classes); beyond, ``auc_error``
        says how far it can be off. NaN where all rows are of one class.
        """
        return self._mean_area(np.ones(len(self.confusion)))

    @property
    def weighted_auc(self) -> float:
        """The same, every class weighing as much as its rows; of two classes there is one area, and it is that."""
        return self._mean_area(self.class_weights)

    def _mean_area(self, weight: Floats) -> float:
        areas = self.ranks.areas()
        weight = weight[-len(areas) :]  # of two classes the curve is that of the second
        there = ~np.isnan(areas)
        return float(areas[there] @ weight[there] / weight[there].sum()) if there.any() else float("nan")

    @property
    def average_precision(self) -> float:
        """The area under the precision-recall curve, by steps (scikit-learn's ``average_precision_score``).

        Of two classes that of the second, of more the mean over those that occur.
        """
        found = self.ranks.average_precisions()
        there = ~np.isnan(found)
        return float(found[there].mean()) if there.any() else float("nan")

    @property
    def auc_error(self) -> float:
        """The most by which ``auc`` can differ from that of all rows ranked one by one: 0 to a million rows.

        Beyond it is below 1e-6 for two classes, and below 5e-7 times the number of classes for more. The difference
        itself is some thousand times smaller.
        """
        return float(self.ranks.area_errors().mean())

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: how far stated confidence is from the share that is right, over 15 bins."""
        weight, stated, right = self.confidence_bins.T
        return float(np.abs(stated - right).sum() / weight.sum())

    def metrics(self) -> dict[str, float]:
        """Every metric by its name."""
        return {name: getattr(self, name) for name in METRICS}


def fold_statistics(folds: list[Scores]) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each metric over the folds in which it is defined.

    >>> folds = [Scores.from_log_posterior(np.log([[0.9, 0.1], [0.4, 0.6]]), np.array(y)) for y in ([0, 1], [0, 0])]
    >>> mean, deviation = fold_statistics(folds)["accuracy"]
    >>> mean, round(deviation, 3)
    (0.75, 0.354)
    """
    table = {name: np.array([getattr(fold, name) for fold in folds]) for name in METRICS}
    return {name: _mean_and_deviation(v[~np.isnan(v)]) for name, v in table.items()}


def _mean_and_deviation(values: Floats) -> tuple[float, float]:
    if not len(values):
        return float("nan"), float("nan")
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0


def score_class_prior(scores: Scores, proportions: Floats, rule: DecisionRule | None = None) -> Scores:
    """What the same rows score if every one of them is given the class shares: the baseline to beat.

    >>> scores = Scores.from_log_posterior(
    ...     np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]]), np.array([0, 1, 1, 1])
    ... )
    >>> baseline = score_class_prior(scores, np.array([0.25, 0.75]))
    >>> baseline.accuracy, round(baseline.log_loss, 4), baseline.auc
    (0.75, 0.5623, 0.5)
    """
    weight = scores.class_weights
    seen = np.flatnonzero(weight)
    with np.errstate(divide="ignore"):  # a class that was counted, and forgotten
        return Scores.from_log_posterior(np.tile(np.log(proportions), (len(seen), 1)), seen, weight[seen], rule)
