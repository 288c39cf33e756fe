"""Rows: why a row was given its class, the words that decided a document, and tables of predictions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from candide import formatting
from candide.explain import words as text_words
from candide.explain.decisions import Contribution, Decision
from candide.explain.words import DocumentWord, HighlightedText, highlight_document
from candide.report.records import INTERNAL, Column, Document, Paragraph, Section, Summary, TableSection, section, table
from candide.store.models import ModelLike, load_fitted

_MAX_ROWS, _MAX_WORDS = 20, 10  # predictions, and words of a document, on a terminal
_MAX_CONTRIBUTIONS, _MAX_DOCUMENT_WORDS = 36, 12  # contributions, and words of a text column, listed one by one
_WORD_TABLE = (
    Column("word", "word"),
    Column("count", "count", "g"),
    Column("log-odds", "log_odds", formatting.format_log_odds),
)


@dataclass(frozen=True, repr=False)
class DecisionSummary(Summary):
    """A row by its number, its label where that is known, and what decided its class."""

    row: int
    label: Any
    decision: Decision

    def to_dict(self) -> dict[str, Any]:
        from candide.report.json import to_plain

        return to_plain({"row": self.row, "label": self.label, **self.decision.to_dict()})

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the class, the contributions to its log-odds against the runner-up, and the words of documents."""
        decision = self.decision
        first, second = str(decision.prediction), str(decision.runner_up)
        p, q = map(formatting.format_probability, (decision.probability, decision.runner_up_probability))
        lines = [decision.decision_note, f"{first}, p {p}; then {second}, p {q}"]
        lines += [] if self.label is None else [f"labelled {formatting.format_label(self.label)}"]
        yield Paragraph("\n".join(filter(None, lines)), frame=f"candide explain, row {self.row}")
        rows = [[name, value, formatting.format_log_odds(v)] for name, value, v in decision.rows(_MAX_CONTRIBUTIONS)]
        n_listed = min(len(decision.contributions), _MAX_CONTRIBUTIONS)
        totals = [*rows[n_listed:], ["total", "", formatting.format_log_odds(decision.log_odds)]]
        columns = [Column(decision.row_heading, ""), Column("value", "", is_text=True), Column("log-odds", "")]
        yield TableSection(
            f"Contributions to {first}", columns, rows[:n_listed], hint=f"against {second}", totals=totals
        )
        for contribution in decision.contributions:
            if contribution.words:
                yield from _document_sections(contribution, first)


def _document_sections(contribution: Contribution, label: str) -> Iterator[Section]:
    """Yield the words of a document, which add up to its contribution, and the document with these highlighted."""
    rest, totals = contribution.words[_MAX_DOCUMENT_WORDS:], list[tuple[str, float]]()
    if rest:
        totals.append((f"and {len(rest):,} more", sum(word.log_odds for word in rest)))
    if abs(contribution.remainder) > 5e-4:
        totals.append(("length, and words it lacks", contribution.remainder))
    totals.append(("total", contribution.log_odds))
    cells = [[name, "", formatting.format_log_odds(value)] for name, value in totals]
    title = f"Words of {formatting.format_column(contribution.column)}"
    yield TableSection.from_records(title, _WORD_TABLE, contribution.words[:_MAX_DOCUMENT_WORDS], totals=cells)
    if any(piece.log_odds for piece in contribution.highlights):
        yield Document(contribution.highlights, label)


def _words_title(text: "TextSummary") -> str:
    title = f"Words that decided for {text.prediction}"
    return f"{title} over {text.runner_up}" if len(text.probabilities) > 2 else title


@dataclass(frozen=True, repr=False)
class TextSummary(Summary):
    """The class of one document, the probability of each class, and the words that decided."""

    prediction: Any
    probabilities: Mapping[Any, float] = field(
        metadata=table(
            "Probabilities",
            Column("class", lambda pair: formatting.format_label(pair[0])),
            Column("probability", lambda pair: pair[1], ".4f"),
            rows=lambda p: sorted(p.items(), key=lambda pair: -pair[1]),
        )
    )
    words: tuple[DocumentWord, ...] = field(metadata=table(_words_title, *_WORD_TABLE))
    highlights: tuple[HighlightedText, ...] = field(  # the document in pieces
        default=(),
        metadata={
            **INTERNAL,
            **section(
                lambda one, pieces: (
                    [Document(pieces, str(one.prediction))] if any(piece.log_odds for piece in pieces) else []
                )
            ),
        },
    )
    runner_up: Any = None  # the next most probable class; None where there is only one

    frame = "candide predict"

    @property
    def headline(self) -> str:
        return str(self.prediction)


@dataclass(frozen=True, repr=False)
class RowsSummary(Summary):
    """The first of some predictions."""

    rows: int
    columns: tuple[str, ...]
    result_columns: tuple[str, ...]  # those that the model added
    first_rows: tuple[tuple[Any, ...], ...]

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the rows as a table; columns of text are aligned to the left."""
        is_text = [any(isinstance(v, str) for v in cells) for cells in zip(*self.first_rows, strict=True)]
        is_text = is_text or [False] * len(self.columns)
        columns = [
            Column(name, "", is_text=text, is_required=name in self.result_columns)
            for name, text in zip(self.columns, is_text, strict=True)
        ]
        more = f", the first {len(self.first_rows)}" if self.rows > len(self.first_rows) else ""
        yield TableSection(
            formatting.format_count(self.rows) + more,
            columns,
            [list(map(_format_cell, row)) for row in self.first_rows],
        )


def _format_cell(value: Any) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def summarize_decision(row: int, label: Any, decision: Decision) -> DecisionSummary:
    """Return the summary of one row that was explained."""
    return DecisionSummary(row, label, decision)


def summarize_text(model: ModelLike, text: str) -> TextSummary:
    """Return the class that a model predicts for one document; its other columns are missing."""
    fitted = load_fitted(model)
    _, part = text_words.find_text_part(fitted)
    [column] = part.columns
    p = fitted.posterior({name: [text if name == column else None] for name in fitted.plan.columns})[0]
    labels = fitted.labels.values
    words = tuple(text_words.document_words(fitted, text, limit=len(text)))
    pieces = highlight_document(text, words, part.event.tokens)  # type: ignore[attr-defined]
    runner_up = labels[text_words.find_top_two_classes(fitted, text)[1]] if len(labels) > 1 else None
    probabilities = dict(zip(labels, p.tolist(), strict=True))
    return TextSummary(labels[int(p.argmax())], probabilities, words[:_MAX_WORDS], pieces, runner_up)


def summarize_rows(predictions: Any) -> RowsSummary:
    """Return the summary of an Arrow table of predictions."""
    names = tuple(predictions.column_names)
    first = tuple(tuple(row.values()) for row in predictions.slice(0, _MAX_ROWS).to_pylist())
    return RowsSummary(predictions.num_rows, names, names[names.index("prediction") :], first)
