"""Rows: why one was given its class, what decided of a document, and tables of scored rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from candide.explain import terms
from candide.explain.marks import Mark, marks
from candide.explain.rows import Decision
from candide.explain.terms import DocumentTerm
from candide.report.record import Summary
from candide.tasks.models import Model, fitted_of

_HEAD, _WORDS = 20, 10  # scored rows, and words of a document, for the eye


@dataclass(frozen=True, repr=False)
class DecisionSummary(Summary):
    """A row by its number, its label where that is known, and what decided its class."""

    row: int
    label: Any
    decision: Decision

    def nats_after(self, n: int) -> float:
        """What all contributions but the ``n`` strongest come to."""
        return sum(one.nats for one in self.decision.contributions[n:])


@dataclass(frozen=True, repr=False)
class TextSummary(Summary):
    """The class of one document, the probability of each, and the terms that decided."""

    prediction: Any
    probabilities: Mapping[Any, float]
    words: tuple[DocumentTerm, ...]
    marks: tuple[Mark, ...] = ()  # the document in pieces
    against: Any = None  # the class next likely, over which the terms decided; None where there is no other


@dataclass(frozen=True, repr=False)
class RowsSummary(Summary):
    """The first of some scored rows."""

    rows: int
    columns: tuple[str, ...]
    results: tuple[str, ...]  # those of the columns that the model added
    head: tuple[tuple[Any, ...], ...]


def of_decision(row: int, label: Any, decision: Decision) -> DecisionSummary:
    """The summary of one row that was explained."""
    return DecisionSummary(row, label, decision)


def of_text(model: Model, text: str) -> TextSummary:
    """What a model makes of one document; its other columns are missing."""
    fitted = fitted_of(model)
    _, part = terms.text_part(fitted)
    [column] = part.columns
    p = fitted.posterior({name: [text if name == column else None] for name in fitted.plan.columns})[0]
    shares = dict(zip(fitted.labels.values, p.tolist(), strict=True))
    words = tuple(terms.document_terms(fitted, text, n=len(text)))
    pieces = marks(text, words, part.event.tokens)  # type: ignore[attr-defined]
    values = fitted.labels.values
    against = values[terms.rivals(fitted, text)[1]] if len(values) > 1 else None
    return TextSummary(values[int(p.argmax())], shares, words[:_WORDS], pieces, against)


def of_rows(table: Any) -> RowsSummary:
    """The summary of an Arrow table of scored rows."""
    names = tuple(table.column_names)
    head = tuple(tuple(row.values()) for row in table.slice(0, _HEAD).to_pylist())
    return RowsSummary(table.num_rows, names, names[names.index("prediction") :], head)
