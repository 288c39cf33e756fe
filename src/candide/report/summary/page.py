"""The report page: all that is shown of a model, and what is missing, with how to add it.

>>> from candide.demo import garden
>>> page = summarize_page(FittedModel(garden()))
>>> page.title, [term.title for term in page.terms][:2], [one.section for one in page.missing_sections]
('Model report: class', ['leaf_mm', 'height_cm'], ['Performance'])
>>> page.terms[0].sentence
'Raises the log-odds of lavender most at 71.35 (+40.35), lowers them most at 4.429 (-4.37).'
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.explain.axes import build_axis
from candide.explain.effects import ColumnEffect, Effects
from candide.explain.terms import Term, list_terms
from candide.model.fitted import FittedModel
from candide.report.records import INTERNAL, LabelledParagraphs, Paragraph, Section, Summary, section
from candide.report.summary.assessment import Assessment, assess_model
from candide.report.summary.columns import default_class, describe_extremes
from candide.report.summary.models import ModelSummary, summarize_model
from candide.report.summary.monitoring import CheckSummary, DriftSummary
from candide.report.summary.rows import DecisionSummary
from candide.store.models import ModelLike, load_fitted
from candide.validation.row_errors import RowEvaluation

_MAX_LEVELS = 12  # levels of a category given the class
PERFORMANCE, WHAT_IF, TERMS, DATA_WARNINGS = "Performance", "What if", "Terms", "Data warnings"  # sections of the page


@dataclass(frozen=True)
class TermSummary:
    """A term along its values. What is not known, or cannot be drawn, is empty."""

    title: str
    columns: tuple[Name, ...]
    kind: str
    weight: float
    importance: float | None
    sentence: str  # where it contributes most
    shape: str = ""  # "levels" | "steps" | "curve" | "table" | "words" | ""
    names: tuple[tuple[str, ...], ...] = ()  # the levels, bins or cells of each column
    contributions: tuple[tuple[float, ...], ...] = ()  # of each class, against the mean of the others, at each cell
    frequencies: tuple[float, ...] = ()  # the proportion of the rows in each cell
    positions: tuple[float, ...] = ()  # the points of a curve, or the edges between steps
    histogram: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())  # edges, and the proportion of rows in each bar
    top_words: tuple[tuple[tuple[str, float], ...], ...] = ()  # of each class its words, and their log-odds
    typical_value: str | float | None = None  # a frequent level, or the median of numbers
    n_terms: int = 1  # that a column is in; its total effect over all of them is shown

    @property
    def label(self) -> str:
        """What stands beside the title: the weight of a term, or how many terms a column is in."""
        return f"{self.kind}, in {self.n_terms} terms" if self.n_terms > 1 else f"{self.kind}, weight {self.weight:.2f}"


@dataclass(frozen=True)
class RowErrorSummary:
    """A row whose own label had a low probability, and why another class was predicted."""

    row: int
    label: Any
    probability: float
    decision: DecisionSummary | None


@dataclass(frozen=True)
class MissingSection:
    """A section of the page that could not be made, why, and how to add it."""

    section: str
    reason: str
    remedy: str


def _missing_sections(record: Any, missing: Sequence[Any]) -> Iterator[Section]:
    yield LabelledParagraphs(
        [("note", one if isinstance(one, str) else f"{one.section}: {one.reason}", "") for one in missing]
    )


@dataclass(frozen=True, repr=False)
class PageSummary(Summary):
    """What a page shows of a model."""

    title: str
    model: ModelSummary
    class_proportions: tuple[float, ...]
    default_class: int  # the class whose charts are shown first
    terms: tuple[TermSummary, ...]  # the most important first
    assessment: Assessment | None = field(
        metadata=section(lambda page, assessment: [Paragraph(text) for text in assessment.sentences])
    )
    largest_errors: tuple[RowErrorSummary, ...]
    check: CheckSummary | None
    missing_sections: tuple[MissingSection, ...] = field(metadata=section(_missing_sections))
    data: str | None = None  # what the model was evaluated on
    parameters: Mapping[str, Any] | None = field(default=None, metadata=INTERNAL)  # to score a row in the browser
    policy: str | None = None  # what decides, where that is not the most probable class
    drift: DriftSummary | None = None  # of the data from the training rows

    @property
    def headline(self) -> str:
        return self.title


@dataclass(frozen=True, repr=False)
class ReportSummary(Summary):
    """A page in a file: its size, and what is missing."""

    model: str
    output: str
    size_bytes: int
    missing_sections: tuple[str, ...] = field(metadata=section(_missing_sections))

    @property
    def headline(self) -> str:
        return f"report of {self.model} written to {self.output} ({self.size_bytes / 1000:,.0f} kB)"


def summarize_page(
    model: ModelLike,
    evaluation: RowEvaluation | None = None,
    check: CheckSummary | None = None,
    *,
    data: str | None = None,
    drift: DriftSummary | None = None,
    missing_sections: Sequence[MissingSection] = (),
) -> PageSummary:
    """Return the page of a model, with its evaluation and data check where there are any."""
    fitted = load_fitted(model)
    summary, proportions = summarize_model(fitted, _MAX_LEVELS), fitted.class_proportions
    c = default_class(proportions)
    return PageSummary(
        f"Model report: {'class' if fitted.target is None else fitted.target}",
        summary,
        tuple(proportions.tolist()),
        c,
        tuple(_summarize_terms(fitted, c)) if len(proportions) > 1 else (),
        None if evaluation is None else assess_model(fitted, evaluation, data),
        () if evaluation is None else tuple(_summarize_errors(evaluation)),
        check,
        (*missing_sections, *_find_missing_sections(fitted, evaluation, bool(missing_sections))),
        data,
        drift=drift,
        policy=summary.policy if fitted.decision_rule is not None else None,
    )


def _find_missing_sections(
    fitted: FittedModel, evaluation: RowEvaluation | None, is_reported: bool
) -> list[MissingSection]:
    missing = []
    if evaluation is None and not is_reported:
        how = "name a table with known classes: candide report MODEL DATA -o report.html (model.report(data))"
        missing.append(MissingSection(PERFORMANCE, "the model was not evaluated on any rows", how))
    if not fitted.has_counts:
        why = "the model file has no counts, so the frequencies of values and the strongest words are not known"
        missing.append(MissingSection("Counts", why, "save it with its counts: model.save(path), detail='tally'"))
    if len(fitted.labels) < 2:
        why = f"the model has {formatting.format_count(len(fitted.labels), 'class', 'classes')}"
        missing.append(MissingSection(TERMS, why, "fit it on rows of two classes or more"))
    return missing


def _summarize_errors(evaluation: RowEvaluation) -> list[RowErrorSummary]:
    decisions = {one.row: DecisionSummary(*one) for one in evaluation.explanations}
    return [
        RowErrorSummary(one.row, one.label, float(np.exp(-one.log_loss)), decisions.get(one.row))
        for one in evaluation.largest_errors
    ]


def _summarize_terms(fitted: FittedModel, c: int) -> list[TermSummary]:
    """Return every term, the most important first; a column with its total effect over all terms that it is in."""
    terms = list_terms(fitted)
    effects = {one.column: one for one in Effects(fitted, terms).column_effects if one.n_terms > 1}
    found = [_summarize_term(fitted, t, c, effects.get(t.columns[0]) if t.kind == "column" else None) for t in terms]
    return sorted(found, key=lambda term: np.inf if term.importance is None else -term.importance)


def _summarize_term(fitted: FittedModel, term: Term, c: int, total: ColumnEffect | None = None) -> TermSummary:
    axis, proportions = build_axis(fitted, term) if total is None else total.axis, fitted.class_proportions
    classes = () if axis.contributions is None else range(len(fitted.labels))
    return TermSummary(
        term.title,
        term.columns,
        term.kind,
        term.weight,
        term.importance if total is None else total.importance,
        describe_extremes(fitted, axis, c),
        axis.shape,
        axis.names,
        tuple(_to_floats(axis.contrast(proportions, k)) for k in classes),
        _to_floats(axis.frequencies),
        _to_floats(axis.positions),
        ((), ()) if axis.histogram is None else (_to_floats(axis.histogram[0]), _to_floats(axis.histogram[1])),
        tuple(tuple((word.word, word.log_odds) for word in words) for words in axis.top_words),
        axis.typical_value,
        1 if total is None else total.n_terms,
    )


def _to_floats(values: Floats | None) -> tuple[float, ...]:
    return () if values is None else tuple(values.ravel().tolist())
