"""A model, and what a fit made of a source: classes, columns, scores, remarks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from candide import formatting
from candide.data.table import Name
from candide.decisions.thresholds import ThresholdChoice
from candide.errors import unknown_name_error
from candide.explain.cells import build_term_cells
from candide.explain.effects import Effects
from candide.explain.features import FeatureScore, score_model_features
from candide.explain.terms import TermList, format_importance, list_terms
from candide.model.fitted import FittedModel
from candide.report.records import Summary
from candide.report.summary.columns import (
    ColumnSummary,
    column_notes,
    sort_by_importance,
    summarize_conditionals,
    summarize_counted_columns,
)
from candide.report.summary.effects import EffectSummary, summarize_effects
from candide.report.summary.scores import HeldOutSummary, ScoreSummary, summarize_held_out, summarize_scores
from candide.store.models import ModelLike, load_fitted
from candide.weighted.reweight import stale_notes

_MAX_STRONGEST = 8  # voices in a frame


@dataclass(frozen=True)
class ClassSummary:
    """A class, its share of the rows and, where counts are kept, their weight."""

    label: Any
    proportion: float
    weight: float | None = None
    intercept: float | None = None  # nats that weights learned of the voices came with


@dataclass(frozen=True, repr=False)
class ModelSummary(Summary):
    """What a model is and knows."""

    rows: int | None  # None: not kept
    target: str | None
    estimate: str
    class_prior: str
    select: int | str | None
    provenance: Mapping[str, str]
    classes: tuple[ClassSummary, ...]
    counted_columns: tuple[ColumnSummary, ...] | None  # strongest first; None where no counts are kept
    columns: tuple[ColumnSummary, ...]  # those that the model uses, given the class; strongest first
    importances: Mapping[Name, float] | None  # nats per row, strongest first
    scores: tuple[FeatureScore, ...] | None
    n_selected: int | None  # how many of those scored the model uses; None: all
    notes: tuple[str, ...]
    is_filtered: bool = False  # whether only some of the columns or classes are in it
    terms: TermList | None = None  # of a weighted model, strongest first; None: every column counts once
    weights_note: str | None = None  # from which rows they were learned, in words
    policy: str = ""  # how it decides, where that is not by the most probable class
    effects: tuple[EffectSummary, ...] = ()  # of a weighted model: the total effect of each column, largest first


@dataclass(frozen=True, repr=False)
class FitSummary(Summary):
    """What a fit made of a source."""

    rows: int
    target: str | None
    classes: tuple[ClassSummary, ...]
    columns: tuple[ColumnSummary, ...]  # as they were counted
    strongest_columns: tuple[ColumnSummary, ...]  # the same by how much they tell
    skipped_columns: tuple[ColumnSummary, ...]
    n_selected: int | None  # how many columns the model uses; None: all
    importances: Mapping[Name, float]
    notes: tuple[str, ...]
    validation: ScoreSummary | None = None
    output: str | None = None  # the file of the model
    next_commands: tuple[str, ...] = ()  # to go on with
    held_out: HeldOutSummary | None = None  # of a weighted model


@dataclass(frozen=True, repr=False)
class DemoSummary(Summary):
    """The demo's story, from table to verdict."""

    rows: int  # that were made
    training_rows: int
    classes: tuple[ClassSummary, ...]
    strongest_columns: tuple[ColumnSummary, ...]
    scores: ScoreSummary  # on the rows held out


def summarize_model(
    model: ModelLike, max_levels: int = 12, *, classes: Sequence[Any] = (), columns: Sequence[Any] = ()
) -> ModelSummary:
    """The summary of a model, which may be the path of its file; with at most so many levels or terms of a column.

    ``classes`` and ``columns`` are those to look at; all if none is named.
    """
    whole = _summarize_fitted(load_fitted(model), max_levels)
    if not classes and not columns:
        return whole
    at = [_find_position("class", name, [one.label for one in whole.classes]) for name in classes]
    at = at or list(range(len(whole.classes)))
    shown = [*whole.columns, *_summarize_interactions(load_fitted(model), whole.terms, columns, max_levels)]
    some = [_find_position("column", name, [one.column for one in shown]) for name in columns]
    return replace(
        whole,
        classes=tuple(whole.classes[c] for c in at),
        columns=tuple(_select_classes(shown[j], at) for j in some or range(len(whole.columns))),
        terms=whole.terms and (whole.terms.select([shown[j].column for j in some]) if some else whole.terms),
        effects=tuple(one for one in whole.effects if not some or one.column in [shown[j].column for j in some]),
        is_filtered=True,
    )


def _summarize_interactions(
    fitted: FittedModel, known: TermList | None, names: Sequence[Any], max_levels: int
) -> Iterator[ColumnSummary]:
    """Of the sets of columns that are named what their cells say."""
    for voice in known or ():
        if voice.title in names and len(voice.columns) > 1:
            given = {name: tuple(nats.tolist()) for name, nats in build_term_cells(fitted, voice).strongest(max_levels)}
            yield ColumnSummary(
                voice.title, voice.kind, conditionals=given, conditional_title="what it says for each class, in nats"
            )


def _find_position(what: str, name: Any, known: Sequence[Any]) -> int:
    """Where a class or a column is, by its name or by how that is written."""
    written = [*known, *map(str, known)]
    if name not in written:
        raise unknown_name_error(what, name, known)
    return written.index(name) % len(known)


def _select_classes(one: ColumnSummary, at: Sequence[int]) -> ColumnSummary:
    given = one.conditionals and {name: tuple(values[c] for c in at) for name, values in one.conditionals.items()}
    return replace(one, conditionals=given)


def _summarize_fitted(fitted: FittedModel, levels: int) -> ModelSummary:
    settings, known = fitted.settings, summarize_counted_columns(fitted)
    some = len(fitted.labels) > 0  # where every row was forgotten there are no classes to tell apart
    scores = tuple(score_model_features(fitted)) if fitted.has_counts and some else None
    effects = _build_effects(fitted) if some else None
    in_order = _column_order(effects)
    strongest = tuple(in_order(known)) if fitted.has_counts else None
    return ModelSummary(
        fitted.n_rows,
        fitted.target,
        settings.estimate,
        str(settings.class_prior),
        settings.select,
        dict(fitted.provenance),
        summarize_classes(fitted),
        strongest,
        tuple(in_order(summarize_conditionals(fitted, levels))) if some else (),
        fitted.column_evidence if strongest is None else _importances(strongest),
        scores,
        sum(one.is_selected for one in scores) if scores and settings.select else None,
        (*column_notes(known), *map(str, stale_notes(fitted))),
        terms=None if effects is None else effects.terms,
        effects=summarize_effects(effects) if effects else (),
        weights_note=_weights_note(fitted),
        policy=_policy_note(fitted),
    )


def _policy_note(fitted: FittedModel) -> str:
    return fitted.policy.describe(fitted.labels) if fitted.policy is not None and fitted.policy else ""


def _weights_note(fitted: FittedModel) -> str | None:
    """On which rows weights were learned, and how words are heard."""
    voices = fitted.term_weights
    if voices is None:
        return None
    heard = zip(fitted.plan.parts, voices.token_weights, strict=True) if voices.token_weights else ()
    said = ((part.columns[0], part.event, words.weighting) for part, words in heard if words is not None)
    lines = [f"{column}: {how.describe(event.token_description)}" for column, event, how in said]  # type: ignore[attr-defined]
    return "\n".join([voices.training_summary(fitted.n_rows or voices.n_counted_rows), *lines])


def _build_effects(fitted: FittedModel) -> Effects | None:
    return None if fitted.term_weights is None else Effects(fitted)


def _column_order(effects: Effects | None) -> Callable[[Sequence[ColumnSummary]], list[ColumnSummary]]:
    """What puts columns in order: how much each tells, or where they are weighted how large its total effect is."""
    if effects is None:
        return sort_by_importance
    known = {one.column: one.importance for one in effects.column_effects}
    known |= {c: effects.without_axis(c) or 0.0 for one in effects.terms.inactive if (c := one.column) not in known}
    return lambda columns: sort_by_importance(replace(c, importance=known.get(c.column)) for c in columns)


def _importances(strongest: Sequence[ColumnSummary]) -> dict[Name, float]:
    return {one.column: one.importance for one in strongest if one.importance is not None}


def summarize_fit(
    fit_result: Any,
    validation: Any = None,
    output: str | None = None,
    commands: Sequence[str] = (),
    n_selected: ThresholdChoice | None = None,
) -> FitSummary:
    """The summary of what was learned of a source, with the folds if it was cross-validated."""
    fitted: FittedModel = fit_result.fitted
    columns = summarize_counted_columns(fitted, {one.name: one.kind for one in fit_result.columns})
    used = {one.column for one in columns}
    strongest = tuple(_column_order(_build_effects(fitted))(columns))
    return FitSummary(
        fitted.counts.n_rows,
        fitted.target,
        summarize_classes(fitted),
        tuple(columns),
        strongest,
        tuple(ColumnSummary(one.name, None, one.kind) for one in fit_result.columns if one.name not in used),
        len(fitted.plan.columns) if fitted.settings.select else None,
        _importances(strongest),
        (*fit_result.note_texts, *column_notes(columns)),
        summarize_scores(validation.fit_result.fitted, validation.folds, (), n_selected) if validation else None,
        output,
        tuple(commands),
        summarize_held_out(fitted, fit_result.held_out) if fit_result.held_out is not None else None,
    )


def summarize_demo(run: Any) -> DemoSummary:
    """The summary of a run of the demo."""
    fitted: FittedModel = run.fit_result.fitted
    scores = summarize_scores(fitted, run.scores)
    rows, strongest = fitted.counts.n_rows, _column_order(_build_effects(fitted))(summarize_counted_columns(fitted))
    return DemoSummary(rows + round(scores.rows), rows, summarize_classes(fitted), tuple(strongest), scores)


def summarize_classes(fitted: FittedModel) -> tuple[ClassSummary, ...]:
    """The classes with their shares; their weights too where counts are kept."""
    labels, shares = fitted.labels.values, fitted.class_proportions.tolist()
    weights = fitted.counts.class_weight.tolist() if fitted.has_counts else [None] * len(labels)
    biases = [None] * len(labels) if fitted.term_weights is None else fitted.term_weights.bias.tolist()
    return tuple(map(ClassSummary, labels, shares, weights, biases))


def render_model_html(title: str, fitted: FittedModel) -> str:
    """A model in a frame for a notebook: what it was fitted to, and its strongest voices."""
    classes = formatting.format_list([str(one) for one in fitted.labels.values], 5)
    counted = "" if fitted.n_rows is None else f"{formatting.format_count(fitted.n_rows)}, "
    note = f"{counted}{formatting.format_count(len(fitted.labels), 'class', 'classes')}: {classes}; report() makes a page of it"
    note = f"decides: {_policy_note(fitted)}; {note}" if _policy_note(fitted) else note
    every = list_terms(fitted) if len(fitted.labels) > 1 else TermList(())
    found = every[:_MAX_STRONGEST]
    rows = [["voice", "kind", "weight", "nats"]]
    rows += [
        [one.title, every.display_kind(one), f"{one.weight:.2f}", format_importance(one.importance)] for one in found
    ]
    return formatting.render_html_table(title, rows, 2, [one.importance or 0.0 for one in found], note)
