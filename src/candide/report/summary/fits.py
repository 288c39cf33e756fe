"""The result of a fit, its held-out scores, the demo, and settings compared by cross-validation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from candide import formatting
from candide.data.table import Name
from candide.decisions.thresholds import ThresholdChoice
from candide.explain.effects import Effects
from candide.explain.terms import count_kinds, describe_kinds, list_terms
from candide.metrics.scores import headline_titles, metric_title
from candide.model.fitted import FittedModel
from candide.report.records import INTERNAL, Column, Commands, Paragraph, Section, Summary, TableSection, notes, section
from candide.report.summary import columns as of_columns
from candide.report.summary.columns import ClassSummary, ColumnSummary
from candide.report.summary.scores import HEADLINE_METRICS, ScoreSummary, summarize_scores
from candide.store.file import ModelLike, load_fitted
from candide.validation.cross_validation import MetricDifference, SettingsComparison
from candide.validation.held_out import HeldOutScores


def _held_out_section(held_out: "HeldOutSummary", metrics: Mapping[str, float]) -> Iterator[Section]:
    by_model = {"this model": metrics, "naive Bayes": held_out.naive_bayes_metrics}
    by_model["class prior"] = held_out.baseline_metrics
    rows = formatting.format_count(max(held_out.rows, held_out.total_rows))
    rows = f"a sample of {held_out.rows:,} of {rows}" if held_out.rows < held_out.total_rows else rows
    cells = [[name, *(f"{value:.3f}" for value in values.values())] for name, values in by_model.items()]
    titles = [name.replace("_", " ").replace("auc", "AUC") for name in metrics]
    hint = f"{held_out.folds}-fold cross-validation on {rows}"
    yield TableSection.from_cells("Held-out scores", ["", *titles], cells, hint)


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
        metrics = self.model_metrics, self.naive_bayes_metrics, self.baseline_metrics
        model, naive, baseline = (m["log_loss"] for m in metrics)
        if model >= baseline:
            conclusion = "Its log loss is no better than that of the class prior."
        elif model >= naive:
            conclusion = "Naive Bayes does as well and is simpler: --model naive."
        else:
            conclusion = "Its log loss is lower than that of naive Bayes and of the class prior."
        terms = describe_kinds(self.term_counts) or "no terms, the class prior alone"
        accuracy = formatting.format_percent(self.model_metrics["accuracy"])
        return f"Model: {terms}. Held-out accuracy {accuracy}. {conclusion}"


def summarize_held_out(model: ModelLike, held_out: HeldOutScores) -> HeldOutSummary:
    scores = (held_out.scores, held_out.naive_scores, held_out.class_prior_scores)
    weighted, naive, prior = ({name: s.metrics()[name] for name in HEADLINE_METRICS} for s in scores)
    terms, rows = count_kinds(list_terms(load_fitted(model))), held_out.sample.n_rows
    return HeldOutSummary(rows, held_out.n_folds, terms, weighted, naive, prior, held_out.n_source_rows)


@dataclass(frozen=True, repr=False, kw_only=True)
class FitSummary(Summary):
    rows: int
    target: str | None
    n_selected: int | None  # how many columns the model uses; None: all
    classes: tuple[ClassSummary, ...] = field(metadata=of_columns.CLASSES)
    columns: tuple[ColumnSummary, ...] = field(
        metadata=section(lambda fit, columns: of_columns.COLUMNS["sections"](fit, (*columns, *fit.skipped_columns)))
    )
    skipped_columns: tuple[ColumnSummary, ...]
    importances: Mapping[Name, float]
    notes: tuple[str, ...] = field(metadata=notes())
    held_out: HeldOutSummary | None = field(default=None, metadata=section(lambda fit, held_out: held_out.sections()))
    validation: ScoreSummary | None = field(
        default=None, metadata=section(lambda fit, scores: scores.sections("metrics", "notes", "confusion"))
    )
    output: str | None = None  # the model file
    next_commands: tuple[str, ...] = field(
        default=(), metadata=INTERNAL | section(lambda fit, commands: [Commands("Next", commands)])
    )

    frame = "candide fit"

    @property
    def headline(self) -> str:
        selected = "" if self.n_selected is None else f", {self.n_selected} of them selected"
        classes = formatting.format_count(len(self.classes), "class", "classes")
        columns = formatting.format_count(len(self.columns), "column")
        return f"{formatting.format_count(self.rows)}, {classes} of {self.target!r}, {columns}{selected}"


@dataclass(frozen=True, repr=False)
class DemoSummary(Summary):
    """The demo: a table is drawn, a model fitted and evaluated."""

    rows: int  # that were drawn
    training_rows: int
    classes: tuple[ClassSummary, ...] = field(metadata=of_columns.CLASSES)
    columns: tuple[ColumnSummary, ...] = field(metadata=of_columns.COLUMNS)
    scores: ScoreSummary = field(metadata=section(lambda demo, scores: scores.sections("metrics", "confusion")))

    frame = "candide demo"

    @property
    def headline(self) -> str:
        return (
            f"A model was fitted on {self.training_rows:,} plants drawn from a simulated garden, with one value in "
            f"twenty missing.\nIt was then evaluated on {self.scores.rows:,.0f} new plants."
        )


def _fitted_columns(fitted: FittedModel, kinds: Mapping[Name, str] | None = None) -> tuple[ColumnSummary, ...]:
    effects = None if fitted.term_weights is None else Effects(fitted)
    return of_columns.sort_columns(of_columns.summarize_counted_columns(fitted, kinds), effects)


def summarize_fit(
    fit_result: Any,
    validation: Any = None,
    output: str | None = None,
    commands: Sequence[str] = (),
    threshold: ThresholdChoice | None = None,
) -> FitSummary:
    """Return the summary of a fit, with the scores of its folds if it was cross-validated."""
    fitted: FittedModel = fit_result.fitted
    kinds = {column.name: column.kind for column in fit_result.columns}
    columns = _fitted_columns(fitted, kinds)
    names = {column.column for column in columns}
    scores = summarize_scores(validation.fit_result.fitted, validation.folds, (), threshold) if validation else None
    return FitSummary(
        rows=fitted.counts.n_rows,
        target=fitted.target,
        classes=of_columns.summarize_classes(fitted),
        columns=columns,
        skipped_columns=tuple(ColumnSummary(name, None, kind) for name, kind in kinds.items() if name not in names),
        n_selected=len(fitted.plan.columns) if fitted.settings.select else None,
        importances=of_columns.importances(columns),
        notes=(*fit_result.note_texts, *of_columns.column_notes(columns)),
        validation=scores,
        output=output,
        next_commands=tuple(commands),
        held_out=None if fit_result.held_out is None else summarize_held_out(fitted, fit_result.held_out),
    )


def summarize_demo(run: Any) -> DemoSummary:
    fitted: FittedModel = run.fit_result.fitted
    scores, rows = summarize_scores(fitted, run.scores), fitted.counts.n_rows
    classes, columns = of_columns.summarize_classes(fitted), _fitted_columns(fitted)
    return DemoSummary(rows + round(scores.rows), rows, classes, columns, scores)


_STYLES = {"better": "green", "worse": "red", "not significant": "dim"}


@dataclass(frozen=True, repr=False)
class CompareSummary(Summary):
    """Settings side by side, on the same folds."""

    rows: float
    folds: int
    names: tuple[str, ...]
    metrics: Mapping[str, Mapping[str, float]]  # by setting, over all rows
    differences: tuple[MetricDifference, ...]  # of all but the first, against it
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
            metrics._replace(value=lambda d: metric_title(d.metric, self.metric_classes)),
            Column("difference", "mean", "+.4f"),
            Column("95%", lambda d: f"{d.low:+.4f} to {d.high:+.4f}"),
            Column("", "conclusion", is_text=True, style=lambda d: _STYLES[d.conclusion]),
        )
        for name, conclusion in zip(others, self.conclusions, strict=True):
            differences = [d for d in self.differences if d.name == name]
            yield TableSection.from_records(f"{name} minus {first}", columns, differences, hint="mean over folds")
            yield Paragraph(f"{conclusion}.")


def summarize_settings(comparison: SettingsComparison) -> CompareSummary:
    first, *others = comparison.names
    validation, deltas = comparison.validations[first], comparison.differences
    return CompareSummary(
        validation.total.n,
        len(validation.folds),
        tuple(comparison.names),
        {name: scores.metrics() for name, scores in comparison.totals.items()},
        tuple(deltas),
        tuple(_conclude(first, name, [d for d in deltas if d.name == name]) for name in others),
        headline_titles(validation.fit_result.fitted.labels.values),
    )


def _conclude(first: str, name: str, differences: Sequence[MetricDifference]) -> str:
    headline = [d for d in differences if d.metric in HEADLINE_METRICS]
    title = {d: d.metric.replace("_", " ") for d in headline}
    better = [title[d] for d in headline if d.is_significant and d.is_better]
    worse = [title[d] for d in headline if d.is_significant and not d.is_better]
    if better and worse:
        return f"{name} is better than {first} in {', '.join(better)}, worse in {', '.join(worse)}"
    if better or worse:
        return f"{name} is {'better' if better else 'worse'} than {first} in {', '.join(better or worse)}"
    *metrics, last = title.values()
    return f"{name} and {first} do not differ beyond chance in {', '.join(metrics)} or {last}"
