"""Changes: updated, merged, reweighted and adapted models, differences between two models, and written files."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from candide import formatting
from candide.data.table import Name
from candide.decisions.prior_shift import AdaptedModel
from candide.formatting import Column
from candide.model.fitted import FittedModel
from candide.monitoring.model_diff import ClassChange, ColumnChange, LevelChange, ModelComparison
from candide.report.records import FLAT, INTERNAL, Paragraph, Summary, TableSection, notes, paragraph, section, table
from candide.store.update import NewClass, UpdateResult
from candide.weighted.fit import stale_notes

_MIN_SURPRISE = 0.05  # below it the surprise is 0.0 in print
_NAIVE_BAYES_NOTE = (
    "naive Bayes is overconfident where columns are redundant, and then these proportions are less certain than the "
    "intervals show; a weighted model is not (candide fit --model bayes)"
)
_CHANGE_COLUMNS = Column("divergence", "divergence", ".4f", is_optional=True), Column("surprise", "surprise", ",.1f")


def _changes(title: str, name: Any, change: Any) -> dict[str, Any]:
    """Return metadata of a table of changes: ``name`` of a change, and ``change`` of the summary and a change."""

    def build(diff: "DiffSummary", changes: Sequence[Any]) -> list[Any]:
        shown = [c for c in changes if c.surprise >= _MIN_SURPRISE]
        if not shown:
            return [Paragraph(f"{title}: no change beyond chance", "dim")]
        columns = Column(title.lower(), name), Column("change", lambda c: change(diff, c), is_text=True)
        return [TableSection.from_records(f"{title} by surprise", [*columns, *_CHANGE_COLUMNS], shown)]

    return {**section(build), "when_empty": True}


def _format_change(diff: "DiffSummary", change: Any) -> str:
    before, after = formatting.format_percent(change.before), formatting.format_percent(change.after)
    return f"{before} -> {after}" + (f" ({change.status})" if change.status else "")


def _format_changes(diff: "DiffSummary", change: ColumnChange) -> str:
    texts = []
    for name, pair in change.values.items():
        before, after = (formatting.format_parameter(name, v, change.column in diff.dates) for v in pair)
        texts.append(f"{name} {before} -> {after}")
    return "; ".join(texts)


@dataclass(frozen=True, repr=False)
class DiffSummary(Summary):
    """The differences between two models, the most surprising first."""

    rows: tuple[int, int]
    classes: Sequence[ClassChange] = field(
        metadata=_changes("Classes", lambda c: formatting.format_label(c.label), _format_change)
    )
    columns: Sequence[ColumnChange] = field(
        metadata=_changes("Columns", lambda c: f"{formatting.format_column(c.column)}, {c.label}", _format_changes)
    )
    levels: Sequence[LevelChange] = field(
        metadata=_changes("Levels", lambda c: f"{c.column} = {c.level}, {c.label}", _format_change)
    )
    skipped_columns: Sequence[Name] = field(
        metadata=paragraph(lambda names: f"not compared: {', '.join(map(str, names))}", "dim")
    )
    caption: str = field(
        default=(
            "divergence: symmetric Kullback-Leibler divergence; surprise: log-likelihood ratio of a change to chance\n"
            "The counts are compared. Class priors, weights and policies may differ: see candide show."
        ),
        metadata=INTERNAL | paragraph(style="dim"),
    )
    dates: frozenset[str] = field(default=frozenset(), metadata=INTERNAL)  # columns whose numbers are days since 1970

    frame = "candide diff"

    @property
    def headline(self) -> str:
        return f"{formatting.format_count(self.rows[0])} before, {self.rows[1]:,} after"


def summarize_diff(comparison: ModelComparison) -> DiffSummary:
    return DiffSummary(**vars(comparison))


@dataclass(frozen=True, repr=False)
class UpdateSummary(Summary):
    """Rows that were counted into a model, or forgotten."""

    model: str
    action: str  # "counted into", "taken out of"
    rows: int
    rows_in_model: int
    classes: Mapping[Any, float]  # weights
    new_classes: tuple[NewClass, ...]
    notes: tuple[str, ...] = field(metadata=notes())
    output: str | None = None  # None: the file of the model itself

    @property
    def headline(self) -> str:
        text = f"{formatting.format_count(self.rows)} {self.action} {self.model}"
        if self.output is None:
            return f"{text}, which now has {self.rows_in_model:,}"
        return f"{text}; the model of {formatting.format_count(self.rows_in_model)} is saved in {self.output}"


def summarize_update(model: str, action: str, change: UpdateResult, output: str | None = None) -> UpdateSummary:
    after = change.fitted.counts
    weights = dict(zip(after.labels.values, after.class_weight.tolist(), strict=True))
    new, texts = tuple(change.new_classes), tuple(change.note_texts)
    return UpdateSummary(model, action, change.n_rows, after.n_rows, weights, new, texts, output)


@dataclass(frozen=True, repr=False)
class MergeSummary(Summary):
    models: int
    rows: int
    output: str
    detail: str
    notes: tuple[str, ...] = field(default=(), metadata=notes())

    @property
    def headline(self) -> str:
        models, rows = formatting.format_count(self.models, "model"), formatting.format_count(self.rows)
        return f"{models}, {rows}, merged into {self.output}"


def summarize_merge(models: Collection[Any], merged: FittedModel, output: str, detail: str) -> MergeSummary:
    return MergeSummary(len(models), merged.counts.n_rows, output, detail, tuple(map(str, stale_notes(merged))))


@dataclass(frozen=True, repr=False)
class ReweightSummary(Summary):
    model: str
    rows: int  # that the weights were learned from
    rows_in_model: int
    weights: str  # the same in words
    output: str | None = None  # None: the file of the model itself

    @property
    def headline(self) -> str:
        return f"{self.model}: {self.weights}" + ("" if self.output is None else f", saved in {self.output}")


def summarize_reweight(model: str, change: UpdateResult, output: str | None = None) -> ReweightSummary:
    n_rows, weights = change.fitted.counts.n_rows, change.fitted.term_weights
    return ReweightSummary(model, change.n_rows, n_rows, weights.training_summary(n_rows) if weights else "", output)


@dataclass(frozen=True)
class ClassProportionSummary:
    """The proportion of a class before and after adaptation, with a 95% interval."""

    label: Any
    before: float
    after: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class AdaptSummary(Summary):
    """The class proportions that were estimated from unlabelled rows."""

    model: str
    rows: int
    class_proportions: tuple[ClassProportionSummary, ...] = field(
        metadata=table(
            lambda adapted: f"Class proportions estimated from {formatting.format_count(adapted.rows)}",
            Column("class", "label", formatting.format_label),
            Column("training", "before", formatting.format_percent),
            Column("new rows", "after", formatting.format_percent),
            Column("95%", lambda p: f"{formatting.format_percent(p.low)} to {formatting.format_percent(p.high)}"),
        )
    )
    output: str | None = field(
        metadata=section(lambda adapted, path: [Paragraph(f"{adapted.model} with this class prior is saved in {path}")])
    )
    notes: tuple[str, ...] = field(default=(), metadata=notes())


def summarize_adaptation(model: str, adaptation: AdaptedModel, output: str | None = None) -> AdaptSummary:
    classes = []
    for label, after in adaptation.proportions_after.items():
        half = 1.959964 * adaptation.standard_error[label]  # 95% of a normal lie within so many standard deviations
        low, high = max(after - half, 0.0), min(after + half, 1.0)
        classes.append(ClassProportionSummary(label, adaptation.proportions_before[label], after, low, high))
    fitted = adaptation.fitted
    several = len(fitted.plan.columns) > 1 or any(part.block_kind == "documents" for part in fitted.plan.parts)
    is_naive = fitted.term_weights is None and fitted.unadjusted_model.calibrator is None and several
    return AdaptSummary(model, adaptation.n_rows, tuple(classes), output, (_NAIVE_BAYES_NOTE,) if is_naive else ())


@dataclass(frozen=True, repr=False)
class ScoredFileSummary(Summary):
    rows: int
    output: str

    @property
    def headline(self) -> str:
        return f"{formatting.format_count(self.rows)} scored into {self.output}"


@dataclass(frozen=True, repr=False)
class ServerStateSummary(Summary):
    """The model that a server has learned, in a file."""

    state: str  # the journal
    rows: int  # that the model has counted
    output: str

    @property
    def headline(self) -> str:
        return f"{self.state}: a model of {formatting.format_count(self.rows)}, saved in {self.output}"


@dataclass(frozen=True, repr=False)
class PlotSummary(Summary):
    """A plot of a model in a file."""

    model: str
    plot_name: str
    output: str
    notes: tuple[str, ...] = field(metadata=notes())
    plot_facts: Mapping[str, Any] = field(metadata=FLAT)  # what it shows: features, rows, ...

    @property
    def headline(self) -> str:
        return f"{self.plot_name} of {self.model} drawn into {self.output}"


def summarize_plot(model: str, drawn: Mapping[str, Any], output: str, image_format: str) -> PlotSummary:
    facts = {**drawn, "format": image_format}
    name, note = facts.pop("what"), facts.pop("note", None)
    return PlotSummary(model, name, output, () if note is None else (note,), facts)


@dataclass(frozen=True, repr=False)
class ExportSummary(Summary):
    model: str
    target: str  # the name of the target
    description: str
    output: str
    size_bytes: int

    @property
    def headline(self) -> str:
        size = f"{self.size_bytes / 1000:,.0f} kB"
        return f"{self.model} exported into {self.output}, {self.description} of {size}"
