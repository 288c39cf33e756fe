"""Comparisons: several settings side by side, and which differences are beyond chance.

>>> from candide.demo import garden_rows
>>> from candide.operations import compare_settings
>>> plants, herb = garden_rows(300, seed=0)
>>> settings = {"naive": {"model": "naive"}, "again": {"model": "naive"}}
>>> summarize_settings(compare_settings({**plants, "herb": herb}, "herb", settings, folds=3)).conclusions
('again and naive do not differ beyond chance in accuracy, log loss or auc',)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from candide import formatting
from candide.metrics.formulas import headline_titles, metric_title
from candide.report.records import Column, Paragraph, Section, Summary, Table
from candide.report.summary.scores import HEADLINE_METRICS
from candide.validation.comparison import MetricDifference, SettingsComparison


@dataclass(frozen=True)
class DifferenceSummary:
    """A metric of a setting minus that of the first: mean over folds, 95% interval, whether it is beyond chance."""

    name: str
    metric: str
    mean: float
    low: float
    high: float
    is_significant: bool
    is_better: bool

    @property
    def conclusion(self) -> str:
        return "not significant" if not self.is_significant else "better" if self.is_better else "worse"


_STYLES = {"better": "green", "worse": "red", "not significant": "dim"}


@dataclass(frozen=True, repr=False)
class CompareSummary(Summary):
    """Settings side by side, on the same folds."""

    rows: float
    folds: int
    names: tuple[str, ...]
    metrics: Mapping[str, Mapping[str, float]]  # by setting, over all rows
    differences: tuple[DifferenceSummary, ...]  # of all but the first, against it
    conclusions: tuple[str, ...]  # one for each but the first
    metric_classes: Mapping[str, str]  # the class that a metric is of, or "macro"

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the metrics of all settings, then the differences of each from the first."""
        first, *others = self.names
        title = f"Cross-validated on the same {self.folds} folds of {formatting.format_count(self.rows)}"
        metrics = Column("metric", lambda name: metric_title(name, self.metric_classes))
        values = [Column(name, self.metrics[name].__getitem__, ".4f") for name in self.names]
        yield Table.from_records(title, [metrics, *values], list(self.metrics[first]))
        columns = (
            metrics._replace(value=lambda one: metric_title(one.metric, self.metric_classes)),
            Column("difference", "mean", "+.4f"),
            Column("95%", lambda one: f"{one.low:+.4f} to {one.high:+.4f}"),
            Column("", "conclusion", is_text=True, style=lambda one: _STYLES[one.conclusion]),
        )
        for name, conclusion in zip(others, self.conclusions, strict=True):
            differences = [one for one in self.differences if one.name == name]
            yield Table.from_records(f"{name} minus {first}", columns, differences, hint="mean over folds")
            yield Paragraph(f"{conclusion}.")


def summarize_settings(comparison: SettingsComparison) -> CompareSummary:
    """Return the summary of a comparison of settings."""
    first, *others = comparison.names
    differences = tuple(
        DifferenceSummary(d.name, d.metric, d.mean, d.low, d.high, d.is_significant, d.is_better)
        for d in comparison.differences
    )
    conclusions = tuple(
        _conclude(first, name, [d for d in comparison.differences if d.name == name]) for name in others
    )
    totals = {name: scores.metrics() for name, scores in comparison.totals.items()}
    validation = comparison.validations[first]
    classes = headline_titles(validation.fit_result.fitted.labels.values)
    names, n_folds = tuple(comparison.names), len(validation.folds)
    return CompareSummary(validation.total.n, n_folds, names, totals, differences, conclusions, classes)


def _conclude(first: str, name: str, differences: Sequence[MetricDifference]) -> str:
    """Return which of two settings is better in the headline metrics."""
    judged = [d for d in differences if d.metric in HEADLINE_METRICS]
    better, worse = (
        [d.metric.replace("_", " ") for d in judged if d.is_significant and d.is_better == sign]
        for sign in (True, False)
    )
    if better and worse:
        return f"{name} is better than {first} in {', '.join(better)}, worse in {', '.join(worse)}"
    if better or worse:
        return f"{name} is {'better' if better else 'worse'} than {first} in {', '.join(better or worse)}"
    *metrics, last = (d.metric.replace("_", " ") for d in judged)
    return f"{name} and {first} do not differ beyond chance in {', '.join(metrics)} or {last}"
