"""Comparisons: several settings beside each other, and which differences are more than chance.

>>> from candide.demo import garden_rows
>>> from candide.operations import compare_settings
>>> plants, herb = garden_rows(300, seed=0)
>>> settings = {"naive": {"model": "naive"}, "again": {"model": "naive"}}
>>> summarize_settings(compare_settings({**plants, "herb": herb}, "herb", settings, folds=3)).conclusions
('again cannot be told from naive: no difference in accuracy, log loss or auc is more than chance',)
"""

from collections.abc import Mapping
from dataclasses import dataclass

from candide import formatting
from candide.metrics.formulas import headline_titles, metric_title
from candide.report.records import Summary
from candide.report.summary.scores import HEADLINE_METRICS
from candide.validation.comparison import MetricDifference, SettingsComparison


@dataclass(frozen=True)
class DifferenceSummary:
    """A metric of a setting against that of the first: mean over folds, interval, whether it is more than chance."""

    name: str
    metric: str
    mean: float
    low: float
    high: float
    is_significant: bool
    is_better: bool


@dataclass(frozen=True, repr=False)
class CompareSummary(Summary):
    """Settings beside each other, on the same folds."""

    rows: float
    folds: int
    names: tuple[str, ...]
    metrics: Mapping[str, Mapping[str, float]]  # by setting, of all rows
    differences: tuple[DifferenceSummary, ...]  # of all but the first, against it
    conclusions: tuple[str, ...]  # one for each but the first
    metric_classes: Mapping[str, str]  # the class that a metric is of, or "macro"

    def metric_title(self, metric: str) -> str:
        """The name of a metric as it is printed."""
        return metric_title(metric, self.metric_classes)


def summarize_settings(comparison: SettingsComparison) -> CompareSummary:
    """The summary of a comparison."""
    first, *others = comparison.names
    each = tuple(
        DifferenceSummary(d.name, d.metric, d.mean, d.low, d.high, d.is_significant, d.is_better)
        for d in comparison.differences
    )
    verdicts = tuple(_conclude(first, name, [d for d in comparison.differences if d.name == name]) for name in others)
    totals = {name: one.metrics() for name, one in comparison.totals.items()}
    one = comparison.validations[first]
    of = headline_titles(one.fit_result.fitted.labels.values)
    return CompareSummary(one.total.n, len(one.folds), tuple(comparison.names), totals, each, verdicts, of)


def _conclude(first: str, name: str, differences: list[MetricDifference]) -> str:
    """Which of two settings is the better one, in words, by the metrics by which a fit is judged."""
    judged = [d for d in differences if d.metric in HEADLINE_METRICS]
    better, worse = (
        [_metric_name(d) for d in judged if d.is_significant and d.is_better == sign] for sign in (True, False)
    )
    if better and worse:
        return f"{name} is better than {first} in {formatting.format_list(better)}, worse in {formatting.format_list(worse)}"
    if better or worse:
        return f"{name} is {'better' if better else 'worse'} than {first} in {formatting.format_list(better or worse)}"
    names = [_metric_name(d) for d in judged]
    told = f"{', '.join(names[:-1])} or {names[-1]}"
    return f"{name} cannot be told from {first}: no difference in {told} is more than chance"


def _metric_name(one: MetricDifference) -> str:
    return one.metric.replace("_", " ")
