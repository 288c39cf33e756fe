"""The page: everything that is shown of a model in one place, and what could not be, with how to add it.

>>> from candide.demo import garden
>>> page = summarize_page(FittedModel(garden()))
>>> page.title, [one.title for one in page.terms][:2], [one.section for one in page.missing_sections]
('What tells the class', ['leaf_mm', 'height_cm'], ['How good it is'])
>>> page.terms[0].sentence
'Says most for lavender at 71.35 (+40.35 nats), and most against it at 4.429 (-4.37).'
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.explain.axes import build_axis
from candide.explain.effects import ColumnEffect, Effects
from candide.explain.terms import Term, list_terms
from candide.model.fitted import FittedModel
from candide.operations.row_errors import RowEvaluation
from candide.report.records import Summary
from candide.report.summary.assessment import Assessment, assess_model
from candide.report.summary.check import CheckSummary
from candide.report.summary.drift import DriftSummary
from candide.report.summary.effects import default_class, describe_extremes
from candide.report.summary.models import ModelSummary, summarize_model
from candide.report.summary.rows import DecisionSummary
from candide.store.models import ModelLike, load_fitted

_MAX_LEVELS = 12  # of a category that are told in figures


@dataclass(frozen=True)
class TermSummary:
    """A voice along its values, and what it says most, in words. What is not known, or cannot be drawn, is empty."""

    title: str
    columns: tuple[Name, ...]
    kind: str
    weight: float
    importance: float | None
    sentence: str
    shape: str = ""  # "levels" | "steps" | "curve" | "table" | "terms" | ""
    names: tuple[tuple[str, ...], ...] = ()  # of each column its levels, bins or cells
    contributions: tuple[
        tuple[float, ...], ...
    ] = ()  # for each class, against the mean of the others: nats of each cell
    frequencies: tuple[float, ...] = ()  # the share of the rows in each
    positions: tuple[float, ...] = ()  # the points of a curve, or the edges between steps
    histogram: tuple[tuple[float, ...], tuple[float, ...]] = (
        (),
        (),
    )  # the edges of a histogram, and the share in each bar
    top_words: tuple[tuple[tuple[str, float], ...], ...] = ()  # for each class its words, and their log-odds
    typical_value: str | float | None = None  # a value that is often met: a level by its name, or the middle of numbers
    n_terms: int = 1  # that a column is in: what is shown of it is its total effect over all of them

    @property
    def label(self) -> str:
        """What stands beside the title: the weight of a term, or in how many terms a column is."""
        return f"{self.kind}, in {self.n_terms} terms" if self.n_terms > 1 else f"{self.kind}, weight {self.weight:.2f}"


@dataclass(frozen=True)
class RowErrorSummary:
    """A row that the model did not expect: p of its own label, and why it was given another."""

    row: int
    label: Any
    probability: float
    decision: DecisionSummary | None


@dataclass(frozen=True)
class MissingSection:
    """A part of the page that could not be made, why, and how to add it."""

    section: str
    reason: str
    remedy: str


@dataclass(frozen=True, repr=False)
class PageSummary(Summary):
    """What a page shows of a model."""

    title: str
    model: ModelSummary
    class_proportions: tuple[float, ...]
    default_class: int  # the class that pictures are of at first
    terms: tuple[TermSummary, ...]  # strongest first
    assessment: Assessment | None
    largest_errors: tuple[RowErrorSummary, ...]
    check: CheckSummary | None
    missing_sections: tuple[MissingSection, ...]
    data: str | None = None  # what the model was judged on
    parameters: Mapping[str, Any] | None = None  # all numbers of the model, to score a case by
    policy: str | None = None  # what decides, where that is not the most probable class
    drift: DriftSummary | None = None  # whether the data are like the rows that it was learned from


@dataclass(frozen=True, repr=False)
class ReportSummary(Summary):
    """A page in a file: how large it is, and what is missing in it."""

    model: str
    output: str
    size_bytes: int
    missing_sections: tuple[str, ...]


def summarize_page(
    model: ModelLike,
    evaluation: RowEvaluation | None = None,
    check: CheckSummary | None = None,
    *,
    data: str | None = None,
    drift: DriftSummary | None = None,
    missing_sections: Sequence[MissingSection] = (),
) -> PageSummary:
    """The page of a model, with what it scores on some data where it was judged, and what may be wrong with these."""
    fitted = load_fitted(model)
    found, shares = summarize_model(fitted, _MAX_LEVELS), fitted.class_proportions
    towards = default_class(shares)
    speak = _summarize_terms(fitted, towards) if len(shares) > 1 else []
    target = "the class" if fitted.target is None else fitted.target
    return PageSummary(
        f"What tells {target}",
        found,
        tuple(shares.tolist()),
        towards,
        tuple(speak),
        None if evaluation is None else assess_model(fitted, evaluation, data),
        () if evaluation is None else tuple(_summarize_errors(evaluation)),
        check,
        (*missing_sections, *_find_missing_sections(fitted, evaluation, bool(missing_sections))),
        data,
        drift=drift,
        policy=found.policy if fitted.decision_rule is not None else None,
    )


def _find_missing_sections(
    fitted: FittedModel, evaluation: RowEvaluation | None, reported: bool
) -> list[MissingSection]:
    """What a page of this model lacks."""
    out = []
    if evaluation is None and not reported:
        how = "name a table whose classes are known: candide report MODEL DATA -o report.html (model.report(data))"
        out.append(MissingSection("How good it is", "the model was not tried on any rows", how))
    if not fitted.has_counts:
        why = "the model keeps no counts, and so not how often values are met, nor which words tell most"
        out.append(MissingSection("Counts", why, "save it with its counts: model.save(path), detail='tally'"))
    if len(fitted.labels) < 2:
        how = "fit it to rows of two classes or more"
        out.append(
            MissingSection(
                "What it listens to", f"it knows {formatting.format_count(len(fitted.labels), 'class', 'classes')}", how
            )
        )
    return out


def _summarize_errors(evaluation: RowEvaluation) -> list[RowErrorSummary]:
    why = {one.row: DecisionSummary(*one) for one in evaluation.explanations}
    return [
        RowErrorSummary(one.row, one.label, float(np.exp(-one.log_loss)), why.get(one.row))
        for one in evaluation.largest_errors
    ]


def _summarize_terms(fitted: FittedModel, c: int) -> list[TermSummary]:
    """Every voice, strongest first; a column with its total effect over all terms that it is in."""
    known = list_terms(fitted)
    effects = {one.column: one for one in Effects(fitted, known).column_effects if one.n_terms > 1}
    found = [
        _summarize_term(fitted, one, c, effects.get(one.columns[0]) if one.kind == "column" else None) for one in known
    ]
    return sorted(found, key=lambda one: np.inf if one.importance is None else -one.importance)


def _summarize_term(fitted: FittedModel, model_term: Term, c: int, total: ColumnEffect | None = None) -> TermSummary:
    found = build_axis(fitted, model_term) if total is None else total.axis
    every = (
        []
        if found.contributions is None
        else [found.contrast(fitted.class_proportions, k) for k in range(len(fitted.labels))]
    )
    return TermSummary(
        model_term.title,
        model_term.columns,
        model_term.kind,
        model_term.weight,
        model_term.importance if total is None else total.importance,
        describe_extremes(fitted, found, c),
        found.shape,
        found.names,
        tuple(map(_to_floats, every)),
        _to_floats(found.frequencies),
        _to_floats(found.positions),
        ((), ()) if found.histogram is None else (_to_floats(found.histogram[0]), _to_floats(found.histogram[1])),
        tuple(tuple((term.word, term.log_odds) for term in some) for some in found.top_words),
        found.typical_value,
        1 if total is None else total.n_terms,
    )


def _to_floats(values: Floats | None) -> tuple[float, ...]:
    return () if values is None else tuple(values.ravel().tolist())
