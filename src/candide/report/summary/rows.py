"""Rows: why one was given its class, what decided of a document, and tables of scored rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from candide.explain import words as terms
from candide.explain.decisions import Decision
from candide.explain.highlight import HighlightedText, highlight_document
from candide.explain.words import DocumentWord
from candide.report.records import Summary
from candide.store.models import ModelLike, load_fitted

_MAX_ROWS, _MAX_WORDS = 20, 10  # scored rows, and words of a document, for the eye


@dataclass(frozen=True, repr=False)
class DecisionSummary(Summary):
    """A row by its number, its label where that is known, and what decided its class."""

    row: int
    label: Any
    decision: Decision

    def log_odds_after(self, n: int) -> float:
        """What all contributions but the ``n`` strongest come to."""
        return sum(one.log_odds for one in self.decision.contributions[n:])


@dataclass(frozen=True, repr=False)
class TextSummary(Summary):
    """The class of one document, the probability of each, and the terms that decided."""

    prediction: Any
    probabilities: Mapping[Any, float]
    words: tuple[DocumentWord, ...]
    highlights: tuple[HighlightedText, ...] = ()  # the document in pieces
    runner_up: Any = None  # the class next likely, over which the terms decided; None where there is no other


@dataclass(frozen=True, repr=False)
class RowsSummary(Summary):
    """The first of some scored rows."""

    rows: int
    columns: tuple[str, ...]
    result_columns: tuple[str, ...]  # those of the columns that the model added
    first_rows: tuple[tuple[Any, ...], ...]


def summarize_decision(row: int, label: Any, decision: Decision) -> DecisionSummary:
    """The summary of one row that was explained."""
    return DecisionSummary(row, label, decision)


def summarize_text(model: ModelLike, text: str) -> TextSummary:
    """What a model makes of one document; its other columns are missing."""
    fitted = load_fitted(model)
    _, part = terms.find_text_part(fitted)
    [column] = part.columns
    p = fitted.posterior({name: [text if name == column else None] for name in fitted.plan.columns})[0]
    shares = dict(zip(fitted.labels.values, p.tolist(), strict=True))
    words = tuple(terms.document_words(fitted, text, limit=len(text)))
    pieces = highlight_document(text, words, part.event.tokens)  # type: ignore[attr-defined]
    values = fitted.labels.values
    against = values[terms.find_top_two_classes(fitted, text)[1]] if len(values) > 1 else None
    return TextSummary(values[int(p.argmax())], shares, words[:_MAX_WORDS], pieces, against)


def summarize_rows(table: Any) -> RowsSummary:
    """The summary of an Arrow table of scored rows."""
    names = tuple(table.column_names)
    head = tuple(tuple(row.values()) for row in table.slice(0, _MAX_ROWS).to_pylist())
    return RowsSummary(table.num_rows, names, names[names.index("prediction") :], head)
