"""Validation: scores on held-out rows, and several settings side by side with the differences beyond chance.

>>> from candide.demo import garden_rows
>>> from candide.validation.comparison import compare_settings
>>> plants, herb = garden_rows(300, seed=0)
>>> settings = {"naive": {"model": "naive"}, "again": {"model": "naive"}}
>>> summarize_settings(compare_settings({**plants, "herb": herb}, "herb", settings, folds=3)).conclusions
('again and naive do not differ beyond chance in accuracy, log loss or auc',)
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from candide import formatting
from candide.explain.terms import count_term_kinds, describe_term_counts, list_terms
from candide.metrics.formulas import headline_titles, metric_title
from candide.report.records import Column, Paragraph, Section, Summary, TableSection, section
from candide.report.summary.scores import HEADLINE_METRICS
from candide.store.models import ModelLike, load_fitted
from candide.validation.comparison import MetricDifference, SettingsComparison
from candide.validation.held_out import HeldOutScores


def _format_metric_name(name: str) -> str:
    return name.replace("_", " ").replace("auc", "AUC")


def _held_out_section(held_out: "HeldOutSummary", metrics: Mapping[str, float]) -> Iterator[Section]:
    models = {
        "this model": metrics,
        "naive Bayes": held_out.naive_bayes_metrics,
        "class prior": held_out.baseline_metrics,
    }
    rows = formatting.format_count(max(held_out.rows, held_out.total_rows))
    rows = f"a sample of {held_out.rows:,} of {rows}" if held_out.rows < held_out.total_rows else rows
    cells = [[name, *(f"{value:.3f}" for value in values.values())] for name, values in models.items()]
    hint = f"{held_out.folds}-fold cross-validation on {rows}"
    yield TableSection.from_cells("Held-out scores", ["", *map(_format_metric_name, metrics)], cells, hint=hint)


@dataclass(frozen=True, repr=False)
class HeldOutSummary(Summary):
    """The terms of a weighted model, and its scores on held-out rows."""

    rows: int  # of the sample that is divided into folds
    folds: int
    term_counts: Mapping[str, int]  # how many terms of each kind
    model_metrics: Mapping[str, float] = field(metadata=section(_held_out_section))
    naive_bayes_metrics: Mapping[str, float]
    baseline_metrics: Mapping[str, float]  # of the class prior
    total_rows: int = 0  # of which the rows are a sample; 0: all of them

    @property
    def headline(self) -> str:
        terms = describe_term_counts(self.term_counts) or "no terms, the class prior alone"
        accuracy = formatting.format_percent(self.model_metrics["accuracy"])
        return f"Model: {terms}. Held-out accuracy {accuracy}. {self._conclusion()}"

    def _conclusion(self) -> str:
        model, naive, baseline = (
            m["log_loss"] for m in (self.model_metrics, self.naive_bayes_metrics, self.baseline_metrics)
        )
        if model >= baseline:
            return "Its log loss is no better than that of the class prior."
        if model >= naive:
            return "Naive Bayes does as well and is simpler: --model naive."
        return "Its log loss is lower than that of naive Bayes and of the class prior."


def summarize_held_out(model: ModelLike, held_out: HeldOutScores) -> HeldOutSummary:
    """Return the summary of the scores on held-out rows of a fit."""
    scores = (held_out.scores, held_out.naive_scores, held_out.class_prior_scores)
    own, naive, prior = ({name: one.metrics()[name] for name in HEADLINE_METRICS} for one in scores)
    terms, rows = count_term_kinds(list_terms(load_fitted(model))), held_out.sample.n_rows
    return HeldOutSummary(rows, held_out.n_folds, terms, own, naive, prior, held_out.n_source_rows)


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
        yield TableSection.from_records(title, [metrics, *values], list(self.metrics[first]))
        columns = (
            metrics._replace(value=lambda one: metric_title(one.metric, self.metric_classes)),
            Column("difference", "mean", "+.4f"),
            Column("95%", lambda one: f"{one.low:+.4f} to {one.high:+.4f}"),
            Column("", "conclusion", is_text=True, style=lambda one: _STYLES[one.conclusion]),
        )
        for name, conclusion in zip(others, self.conclusions, strict=True):
            differences = [one for one in self.differences if one.name == name]
            yield TableSection.from_records(f"{name} minus {first}", columns, differences, hint="mean over folds")
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
