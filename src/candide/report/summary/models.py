"""A fitted model, the result of a fit, and the demo: classes, columns, terms and scores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.table import Name
from candide.decisions.thresholds import ThresholdChoice
from candide.errors import unknown_name_error
from candide.explain.axes import build_term_cells
from candide.explain.effects import Effects
from candide.explain.features import FEATURE_TABLE, FeatureScore, score_model_features
from candide.explain.terms import (
    TERM_TABLE,
    InactiveTerm,
    Term,
    TermList,
    count_term_kinds,
    describe_term_counts,
    list_terms,
)
from candide.model.fitted import FittedModel
from candide.report.records import (
    INTERNAL,
    MAX_TABLE_ROWS,
    Commands,
    LabelledParagraphs,
    Paragraph,
    Section,
    Summary,
    notes,
    section,
    table,
)
from candide.report.summary.columns import (
    CLASS_TABLE,
    COLUMN_TABLE,
    EFFECT_TABLE,
    ClassSummary,
    ColumnSummary,
    EffectSummary,
    column_notes,
    column_rows,
    conditional_table,
    default_class,
    sort_by_importance,
    summarize_classes,
    summarize_conditionals,
    summarize_counted_columns,
    summarize_effects,
)
from candide.report.summary.scores import ScoreSummary, summarize_scores
from candide.report.summary.validation import HeldOutSummary, summarize_held_out
from candide.store.models import ModelLike, load_fitted
from candide.weighted.reweight import stale_notes

_MAX_NOTEBOOK_TERMS = 8  # terms in the frame of a notebook
_PROVENANCE_FIELDS = "source fitted_rows date version options"  # in the order in which they are shown
_TERM_CAPTION = "weight: 1 is the weight of a column in naive Bayes; importance: mean absolute change of the log-odds"
_OWN_TERM_CAPTION = (
    "own term: what a column contributes beside its joint terms; a negative weight corrects these. "
    "The total effect of the column is listed above."
)


def _default_label(classes: Sequence[ClassSummary]) -> str:
    at = default_class(np.array([one.proportion for one in classes]))
    return formatting.format_label(classes[at].label)


def _importance_caption(record: Any) -> str:
    if any(one.intercept is not None for one in record.classes):
        return (
            "importance: mean absolute change of the log-odds, over all terms of a column; "
            "intercept: added to the log prior of each class"
        )
    return "importance: log evidence per row that the column depends on the class; 0 or less means no association"


def _inactive_section(record: Any, inactive: Sequence[InactiveTerm]) -> Iterator[Section]:
    rows = [(str(one.column), str(one), "") for one in inactive[:MAX_TABLE_ROWS]]
    more = len(inactive) - len(rows)
    rows += [("", f"and {formatting.format_count(more, 'more column')}", "")] if more else []
    yield LabelledParagraphs(rows, "Not used on their own", label_style="")


_COLUMNS = table("Columns by importance", *COLUMN_TABLE, rows=column_rows, caption=_importance_caption)


@dataclass(frozen=True, repr=False, kw_only=True)
class ModelSummary(Summary):
    """A fitted model."""

    rows: int | None  # None: no counts are kept
    target: str | None
    estimate: str
    class_prior: str
    select: int | str | None
    provenance: Mapping[str, str]
    policy: str = ""  # how it decides, where that is not by the most probable class
    weights_note: str | None = None  # on which rows the weights of terms were learned; None: every column counts once
    training_rows: int | None = None  # how many these were
    classes: tuple[ClassSummary, ...] = field(metadata=table("Classes", *CLASS_TABLE))
    effects: tuple[EffectSummary, ...] = field(
        default=(),
        metadata=table(
            "Total effects of columns",
            *EFFECT_TABLE,
            hint=lambda model: f"on the log-odds of {_default_label(model.classes)}, over all terms of a column",
            when=lambda effects: any(one.n_terms > 1 for one in effects),
        ),
    )
    terms: tuple[Term, ...] | None = field(
        default=None,
        metadata=table(
            "Terms by importance",
            *TERM_TABLE,
            hint=lambda model: describe_term_counts(count_term_kinds(model.terms)),
            caption=lambda model: ". ".join(
                [_TERM_CAPTION, *([_OWN_TERM_CAPTION] if any(one.is_own_term for one in model.terms) else [])]
            ),
        ),
    )
    inactive_terms: tuple[InactiveTerm, ...] = field(default=(), metadata=section(_inactive_section))
    columns: tuple[ColumnSummary, ...] = field(metadata=_COLUMNS)  # those counted; those used have conditionals
    importances: Mapping[Name, float] | None
    notes: tuple[str, ...] = field(default=(), metadata=notes())
    scores: tuple[FeatureScore, ...] | None = field(
        default=None,
        metadata=table(
            "Association with the class",
            *FEATURE_TABLE,
            hint="evidence: log Bayes factor; information: mutual information, in nats",
        ),
    )
    is_filtered: bool = field(default=False, metadata=INTERNAL)  # whether only some columns or classes were asked for

    frame = "candide show"

    @property
    def headline(self) -> str:
        counted = "no counts kept" if self.rows is None else formatting.format_count(self.rows)
        target = "" if self.target is None else f"predicts {self.target!r}; "
        lines = [f"{counted}; {target}estimate: {self.estimate}; class prior: {self.class_prior}"]
        lines += [f"decides: {self.policy}"] if self.policy else []
        lines += [self.weights_note] if self.weights_note is not None else []
        if self.provenance:
            order = sorted(self.provenance.items(), key=lambda pair: _PROVENANCE_FIELDS.find(pair[0]))
            known = [f"{name.replace('_', ' ')}: {formatting.truncate(value, 60)}" for name, value in order if value]
            is_changed = self.rows is not None and self.provenance.get("fitted_rows") not in (None, str(self.rows))
            lines.append("; ".join([*known, *(["changed since"] if is_changed else [])]))
        return "\n".join(lines)

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the model, then each column given the class; where columns or classes were asked for, these first."""
        labels = [one.label for one in self.classes]
        given = [conditional_table(column, labels) for column in self.columns if column.conditionals is not None]
        if names or not self.is_filtered:
            yield from super().sections(*names)
        if self.is_filtered and not names:
            yield Paragraph(self.headline, frame=self.frame)
            yield from super().sections("classes")
            yield from given
            yield from super().sections("effects", "terms", "inactive_terms")
        elif not names:
            yield from given[:MAX_TABLE_ROWS]
            if more := len(given[MAX_TABLE_ROWS:]):
                yield Paragraph(f"and {formatting.format_count(more, 'more column')}; --json lists all", "dim")


@dataclass(frozen=True, repr=False, kw_only=True)
class FitSummary(Summary):
    """The result of a fit."""

    rows: int
    target: str | None
    n_selected: int | None  # how many columns the model uses; None: all
    classes: tuple[ClassSummary, ...] = field(metadata=table("Classes", *CLASS_TABLE))
    columns: tuple[ColumnSummary, ...] = field(
        metadata=section(lambda fit, columns: _COLUMNS["sections"](fit, (*columns, *fit.skipped_columns)))
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
        default=(), metadata={"internal": True, **section(lambda fit, commands: [Commands("Next", commands)])}
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
    classes: tuple[ClassSummary, ...] = field(metadata=table("Classes", *CLASS_TABLE))
    columns: tuple[ColumnSummary, ...] = field(metadata=_COLUMNS)
    scores: ScoreSummary = field(metadata=section(lambda demo, scores: scores.sections("metrics", "confusion")))

    frame = "candide demo"

    @property
    def headline(self) -> str:
        return (
            f"A model was fitted on {self.training_rows:,} plants drawn from a simulated garden, with one value in "
            f"twenty missing.\nIt was then evaluated on {self.scores.rows:,.0f} new plants."
        )


def summarize_model(
    model: ModelLike, max_levels: int = 12, *, classes: Sequence[Any] = (), columns: Sequence[Any] = ()
) -> ModelSummary:
    """Return the summary of a model or model file, with at most ``max_levels`` levels or words of a column.

    ``classes`` and ``columns`` select what is shown; by default all.
    """
    fitted = load_fitted(model)
    whole, terms = _summarize_fitted(fitted, max_levels)
    if not classes and not columns:
        return whole
    at = [_find_position("class", name, [one.label for one in whole.classes]) for name in classes]
    at = at or list(range(len(whole.classes)))
    shown = [one for one in whole.columns if one.conditionals is not None]
    shown += _summarize_interactions(fitted, terms, columns, max_levels)
    positions = [_find_position("column", name, [one.column for one in shown]) for name in columns]
    selected = [shown[j] for j in positions] if columns else shown
    names = [one.column for one in selected]
    if terms is not None and columns:
        terms = terms.select(names)
    return replace(
        whole,
        classes=tuple(whole.classes[c] for c in at),
        columns=tuple(_select_classes(column, at) for column in selected),
        terms=None if terms is None else terms.terms,
        inactive_terms=() if terms is None else terms.inactive,
        effects=tuple(one for one in whole.effects if not columns or one.column in names),
        is_filtered=True,
    )


def _summarize_interactions(
    fitted: FittedModel, terms: TermList | None, names: Sequence[Any], max_levels: int
) -> Iterator[ColumnSummary]:
    """Yield the cells of the interactions among ``names``."""
    for term in terms or ():
        if term.title in names and len(term.columns) > 1:
            cells = build_term_cells(fitted, term).strongest(max_levels)
            values = {name: tuple(log_odds.tolist()) for name, log_odds in cells}
            title = "contribution to the log-odds of each class"
            yield ColumnSummary(term.title, term.kind, conditionals=values, conditional_title=title)


def _find_position(what: str, name: Any, names: Sequence[Any]) -> int:
    """Return where a class or a column is, by its name or by its name as text."""
    either = [*names, *map(str, names)]
    if name not in either:
        raise unknown_name_error(what, name, names)
    return either.index(name) % len(names)


def _select_classes(column: ColumnSummary, at: Sequence[int]) -> ColumnSummary:
    values = column.conditionals and {name: tuple(v[c] for c in at) for name, v in column.conditionals.items()}
    return replace(column, conditionals=values)


def _summarize_fitted(fitted: FittedModel, max_levels: int) -> tuple[ModelSummary, TermList | None]:
    settings, has_classes = fitted.settings, len(fitted.labels) > 0  # none are left where every row was forgotten
    scores = tuple(score_model_features(fitted)) if fitted.has_counts and has_classes else None
    effects = _build_effects(fitted) if has_classes else None
    counted = summarize_conditionals(fitted, max_levels) if has_classes else summarize_counted_columns(fitted)
    columns = tuple(_column_order(effects)(counted))
    terms = None if effects is None else effects.terms
    summary = ModelSummary(
        rows=fitted.n_rows,
        target=fitted.target,
        estimate=settings.estimate,
        class_prior=str(settings.class_prior),
        select=settings.select,
        provenance=dict(fitted.provenance),
        classes=summarize_classes(fitted),
        columns=columns,
        importances=_importances(columns) if fitted.has_counts else fitted.column_evidence,
        scores=scores,
        notes=(*column_notes(columns), *map(str, stale_notes(fitted))),
        terms=None if terms is None else terms.terms,
        inactive_terms=() if terms is None else terms.inactive,
        effects=summarize_effects(effects) if effects else (),
        weights_note=_weights_note(fitted),
        training_rows=None if terms is None else terms.training_rows,
        policy=_policy_note(fitted),
    )
    return summary, terms


def _policy_note(fitted: FittedModel) -> str:
    return fitted.policy.describe(fitted.labels) if fitted.policy is not None and fitted.policy else ""


def _weights_note(fitted: FittedModel) -> str | None:
    """Return on which rows weights were learned, and how the words of text columns are weighted."""
    weights = fitted.term_weights
    if weights is None:
        return None
    words = zip(fitted.plan.parts, weights.token_weights, strict=True) if weights.token_weights else ()
    lines = [
        f"{part.columns[0]}: {tokens.weighting.describe(part.event.token_description)}"  # type: ignore[attr-defined]
        for part, tokens in words
        if tokens is not None
    ]
    return "\n".join([weights.training_summary(fitted.n_rows or weights.n_counted_rows), *lines])


def _build_effects(fitted: FittedModel) -> Effects | None:
    return None if fitted.term_weights is None else Effects(fitted)


def _column_order(effects: Effects | None) -> Callable[[Sequence[ColumnSummary]], list[ColumnSummary]]:
    """Return what sorts columns: by their evidence, or in a weighted model by their total effect."""
    if effects is None:
        return sort_by_importance
    importances = {one.column: one.importance for one in effects.column_effects}
    missing = [one.column for one in effects.terms.inactive if one.column not in importances]
    importances |= {name: effects.without_axis(name) or 0.0 for name in missing}
    return lambda columns: sort_by_importance(replace(c, importance=importances.get(c.column)) for c in columns)


def _importances(columns: Sequence[ColumnSummary]) -> dict[Name, float]:
    return {one.column: one.importance for one in columns if one.importance is not None}


def summarize_fit(
    fit_result: Any,
    validation: Any = None,
    output: str | None = None,
    commands: Sequence[str] = (),
    threshold: ThresholdChoice | None = None,
) -> FitSummary:
    """Return the summary of a fit, with the scores of its folds if it was cross-validated."""
    fitted: FittedModel = fit_result.fitted
    counted = summarize_counted_columns(fitted, {one.name: one.kind for one in fit_result.columns})
    names = {one.column for one in counted}
    columns = tuple(_column_order(_build_effects(fitted))(counted))
    return FitSummary(
        rows=fitted.counts.n_rows,
        target=fitted.target,
        classes=summarize_classes(fitted),
        columns=columns,
        skipped_columns=tuple(
            ColumnSummary(one.name, None, one.kind) for one in fit_result.columns if one.name not in names
        ),
        n_selected=len(fitted.plan.columns) if fitted.settings.select else None,
        importances=_importances(columns),
        notes=(*fit_result.note_texts, *column_notes(columns)),
        validation=summarize_scores(validation.fit_result.fitted, validation.folds, (), threshold)
        if validation
        else None,
        output=output,
        next_commands=tuple(commands),
        held_out=None if fit_result.held_out is None else summarize_held_out(fitted, fit_result.held_out),
    )


def summarize_demo(run: Any) -> DemoSummary:
    """Return the summary of a run of the demo."""
    fitted: FittedModel = run.fit_result.fitted
    scores, rows = summarize_scores(fitted, run.scores), fitted.counts.n_rows
    columns = tuple(_column_order(_build_effects(fitted))(summarize_counted_columns(fitted)))
    return DemoSummary(rows + round(scores.rows), rows, summarize_classes(fitted), columns, scores)


def render_model_html(title: str, fitted: FittedModel) -> str:
    """Return a model for a notebook: what it was fitted on, and its most important terms."""
    labels = formatting.format_list([str(label) for label in fitted.labels.values], 5)
    rows = "" if fitted.n_rows is None else f"{formatting.format_count(fitted.n_rows)}, "
    note = f"{rows}{formatting.format_count(len(fitted.labels), 'class', 'classes')}: {labels}; report() shows more"
    note = f"decides: {_policy_note(fitted)}; {note}" if _policy_note(fitted) else note
    terms = list_terms(fitted) if len(fitted.labels) > 1 else TermList(())
    return terms.to_html(title, _MAX_NOTEBOOK_TERMS, note)
