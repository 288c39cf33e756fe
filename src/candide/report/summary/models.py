"""A model, and what a fit made of a source: classes, columns, scores, remarks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from candide import wording
from candide.errors import unknown
from candide.explain.cells import cells
from candide.explain.effects import Effects
from candide.explain.features import FeatureScore, feature_scores
from candide.explain.voices import Voices, said, voices
from candide.model.fitted import Fitted
from candide.report.record import Summary
from candide.report.summary.columns import ColumnSummary, counted, given_the_class, remarks, strongest_first
from candide.report.summary.effects import EffectSummary, effects_of
from candide.report.summary.scores import ScoreSummary, TrustSummary, of_scores, of_trust
from candide.rows.table import Name
from candide.tasks.decide import Chosen
from candide.tasks.models import Model, fitted_of
from candide.tasks.weighing import stale

_STRONGEST = 8  # voices in a frame


@dataclass(frozen=True)
class ClassSummary:
    """A class, its share of the rows and, where counts are kept, their weight."""

    label: Any
    share: float
    weight: float | None = None
    bias: float | None = None  # nats that weights learned of the voices came with


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
    counted: tuple[ColumnSummary, ...] | None  # strongest first; None where no counts are kept
    columns: tuple[ColumnSummary, ...]  # those that the model uses, given the class; strongest first
    strengths: Mapping[Name, float] | None  # nats per row, strongest first
    scores: tuple[FeatureScore, ...] | None
    chosen: int | None  # how many of those scored the model uses; None: all
    notes: tuple[str, ...]
    narrowed: bool = False  # whether only some of the columns or classes are in it
    voices: Voices | None = None  # of a weighted model, strongest first; None: every column counts once
    weights: str | None = None  # from which rows they were learned, in words
    policy: str = ""  # how it decides, where that is not by the most probable class
    effects: tuple[EffectSummary, ...] = ()  # of a weighted model: the total effect of each column, largest first


@dataclass(frozen=True, repr=False)
class FitSummary(Summary):
    """What a fit made of a source."""

    rows: int
    target: str | None
    classes: tuple[ClassSummary, ...]
    columns: tuple[ColumnSummary, ...]  # as they were counted
    strongest: tuple[ColumnSummary, ...]  # the same by how much they tell
    left_out: tuple[ColumnSummary, ...]
    chosen: int | None  # how many columns the model uses; None: all
    strengths: Mapping[Name, float]
    notes: tuple[str, ...]
    validation: ScoreSummary | None = None
    output: str | None = None  # the file of the model
    commands: tuple[str, ...] = ()  # to go on with
    trust: TrustSummary | None = None  # of a weighted model


@dataclass(frozen=True, repr=False)
class DemoSummary(Summary):
    """The demo's story, from table to verdict."""

    rows: int  # that were made
    trained_on: int
    classes: tuple[ClassSummary, ...]
    strongest: tuple[ColumnSummary, ...]
    scores: ScoreSummary  # on the rows held out


def of_model(
    model: Model, levels: int = 12, *, classes: Sequence[Any] = (), columns: Sequence[Any] = ()
) -> ModelSummary:
    """The summary of a model, which may be the path of its file; with at most so many levels or terms of a column.

    ``classes`` and ``columns`` are those to look at; all if none is named.
    """
    whole = _of_model(fitted_of(model), levels)
    if not classes and not columns:
        return whole
    at = [_place("class", name, [one.label for one in whole.classes]) for name in classes]
    at = at or list(range(len(whole.classes)))
    shown = [*whole.columns, *_sets(fitted_of(model), whole.voices, columns, levels)]
    some = [_place("column", name, [one.column for one in shown]) for name in columns]
    return replace(
        whole,
        classes=tuple(whole.classes[c] for c in at),
        columns=tuple(_of_classes(shown[j], at) for j in some or range(len(whole.columns))),
        voices=whole.voices and (whole.voices.of([shown[j].column for j in some]) if some else whole.voices),
        effects=tuple(one for one in whole.effects if not some or one.column in [shown[j].column for j in some]),
        narrowed=True,
    )


def _sets(fitted: Fitted, known: Voices | None, names: Sequence[Any], most: int) -> Iterator[ColumnSummary]:
    """Of the sets of columns that are named what their cells say."""
    for voice in known or ():
        if voice.title in names and len(voice.columns) > 1:
            given = {name: tuple(nats.tolist()) for name, nats in cells(fitted, voice).strongest(most)}
            yield ColumnSummary(voice.title, voice.kind, given=given, what="what it says for each class, in nats")


def _place(what: str, name: Any, known: Sequence[Any]) -> int:
    """Where a class or a column is, by its name or by how that is written."""
    written = [*known, *map(str, known)]
    if name not in written:
        raise unknown(what, name, known)
    return written.index(name) % len(known)


def _of_classes(one: ColumnSummary, at: Sequence[int]) -> ColumnSummary:
    given = one.given and {name: tuple(values[c] for c in at) for name, values in one.given.items()}
    return replace(one, given=given)


def _of_model(fitted: Fitted, levels: int) -> ModelSummary:
    settings, known = fitted.settings, counted(fitted)
    some = len(fitted.labels) > 0  # where every row was forgotten there are no classes to tell apart
    scores = tuple(feature_scores(fitted)) if fitted.has_counts and some else None
    effects = _effects(fitted) if some else None
    in_order = _in_order(effects)
    strongest = tuple(in_order(known)) if fitted.has_counts else None
    return ModelSummary(
        fitted.rows,
        fitted.target,
        settings.estimate,
        str(settings.class_prior),
        settings.select,
        dict(fitted.provenance),
        classes_of(fitted),
        strongest,
        tuple(in_order(given_the_class(fitted, levels))) if some else (),
        fitted.strengths if strongest is None else _strengths(strongest),
        scores,
        sum(one.chosen for one in scores) if scores and settings.select else None,
        (*remarks(known), *map(str, stale(fitted))),
        voices=None if effects is None else effects.voices,
        effects=effects_of(effects) if effects else (),
        weights=_weights(fitted),
        policy=_policy(fitted),
    )


def _policy(fitted: Fitted) -> str:
    return fitted.policy.said(fitted.labels) if fitted.policy is not None and fitted.policy else ""


def _weights(fitted: Fitted) -> str | None:
    """On which rows weights were learned, and how words are heard."""
    voices = fitted.voices
    if voices is None:
        return None
    heard = zip(fitted.plan.parts, voices.words, strict=True) if voices.words else ()
    said = ((part.columns[0], part.event, words.how) for part, words in heard if words is not None)
    lines = [f"{column}: {how.said(event.terms_are)}" for column, event, how in said]  # type: ignore[attr-defined]
    return "\n".join([voices.said(fitted.rows or voices.counted), *lines])


def _effects(fitted: Fitted) -> Effects | None:
    return None if fitted.voices is None else Effects(fitted)


def _in_order(effects: Effects | None) -> Callable[[Sequence[ColumnSummary]], list[ColumnSummary]]:
    """What puts columns in order: how much each tells, or where they are weighted how large its total effect is."""
    if effects is None:
        return strongest_first
    known = {one.column: one.importance for one in effects.all}
    known |= {c: effects.without_axis(c) or 0.0 for one in effects.voices.silent if (c := one.column) not in known}
    return lambda columns: strongest_first(replace(c, strength=known.get(c.column)) for c in columns)


def _strengths(strongest: Sequence[ColumnSummary]) -> dict[Name, float]:
    return {one.column: one.strength for one in strongest if one.strength is not None}


def of_fit(
    learned: Any,
    validation: Any = None,
    output: str | None = None,
    commands: Sequence[str] = (),
    chosen: Chosen | None = None,
) -> FitSummary:
    """The summary of what was learned of a source, with the folds if it was cross-validated."""
    fitted: Fitted = learned.fitted
    columns = counted(fitted, {one.name: one.kind for one in learned.columns})
    used = {one.column for one in columns}
    strongest = tuple(_in_order(_effects(fitted))(columns))
    return FitSummary(
        fitted.census.n_rows,
        fitted.target,
        classes_of(fitted),
        tuple(columns),
        strongest,
        tuple(ColumnSummary(one.name, None, one.kind) for one in learned.columns if one.name not in used),
        len(fitted.plan.columns) if fitted.settings.select else None,
        _strengths(strongest),
        (*learned.notes, *remarks(columns)),
        of_scores(validation.learned.fitted, validation.folds, (), chosen) if validation else None,
        output,
        tuple(commands),
        of_trust(fitted, learned.held_out) if learned.held_out is not None else None,
    )


def of_demo(run: Any) -> DemoSummary:
    """The summary of a run of the demo."""
    fitted: Fitted = run.learned.fitted
    scores = of_scores(fitted, run.scores)
    rows, strongest = fitted.census.n_rows, _in_order(_effects(fitted))(counted(fitted))
    return DemoSummary(rows + round(scores.rows), rows, classes_of(fitted), tuple(strongest), scores)


def classes_of(fitted: Fitted) -> tuple[ClassSummary, ...]:
    """The classes with their shares; their weights too where counts are kept."""
    labels, shares = fitted.labels.values, fitted.shares.tolist()
    weights = fitted.census.class_weight.tolist() if fitted.has_counts else [None] * len(labels)
    biases = [None] * len(labels) if fitted.voices is None else fitted.voices.bias.tolist()
    return tuple(map(ClassSummary, labels, shares, weights, biases))


def in_short(title: str, fitted: Fitted) -> str:
    """A model in a frame for a notebook: what it was fitted to, and its strongest voices."""
    classes = wording.listing([str(one) for one in fitted.labels.values], 5)
    counted = "" if fitted.rows is None else f"{wording.plural(fitted.rows)}, "
    note = f"{counted}{wording.plural(len(fitted.labels), 'class', 'classes')}: {classes}; report() makes a page of it"
    note = f"decides: {_policy(fitted)}; {note}" if _policy(fitted) else note
    every = voices(fitted) if len(fitted.labels) > 1 else Voices(())
    found = every[:_STRONGEST]
    rows = [["voice", "kind", "weight", "nats"]]
    rows += [[one.title, every.printed_kind(one), f"{one.weight:.2f}", said(one.strength)] for one in found]
    return wording.framed(title, rows, 2, [one.strength or 0.0 for one in found], note)
