"""Rows: why a row was given its class, the words that decided a document, and tables of predictions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from candide import formatting
from candide.explain import words as text_words
from candide.explain.decisions import Decision
from candide.explain.words import DocumentWord, HighlightedText
from candide.formatting import Column
from candide.report.records import FLAT, INTERNAL, Document, Paragraph, Section, Summary, TableSection, section, table
from candide.store.file import ModelLike, load_fitted

_MAX_ROWS, _MAX_WORDS = 20, 10  # predictions, and words of a document, on a terminal
_MAX_CONTRIBUTIONS, _MAX_DOCUMENT_WORDS = 36, 12  # contributions, and words of a text column, listed one by one
_LOG_ODDS = Column("log-odds", "log_odds", formatting.format_log_odds)
_WORD_TABLE = Column("word", "word"), Column("count", "count", "g"), _LOG_ODDS


@dataclass(frozen=True, repr=False)
class DecisionSummary(Summary):
    """A row by its number, its label where that is known, and what decided its class."""

    row: int
    label: Any
    decision: Decision = field(metadata=FLAT)

    def sections(self, *names: str) -> Iterator[Section]:
        """Yield the class, the contributions to its log-odds against the runner-up, and the words of documents."""
        decision = self.decision
        first, second = str(decision.prediction), str(decision.runner_up)
        p, q = map(formatting.format_probability, (decision.probability, decision.runner_up_probability))
        label = "" if self.label is None else f"labelled {formatting.format_label(self.label)}"
        lines = filter(None, [decision.decision_note, f"{first}, p {p}; then {second}, p {q}", label])
        yield Paragraph("\n".join(lines), frame=f"candide explain, row {self.row}")
        rows = [*decision.rows(_MAX_CONTRIBUTIONS), ("total", "", decision.log_odds)]
        cells = [[name, value, formatting.format_log_odds(log_odds)] for name, value, log_odds in rows]
        n = min(len(decision.contributions), _MAX_CONTRIBUTIONS)
        columns = [Column(decision.row_heading, ""), Column("value", "", is_text=True), Column("log-odds", "")]
        yield TableSection(f"Contributions to {first}", columns, cells[:n], f"against {second}", cells[n:])
        for contribution in decision.contributions:
            if contribution.words:  # these add up to the contribution of the document
                rest, totals = contribution.words[_MAX_DOCUMENT_WORDS:], list[tuple[str, float]]()
                if rest:
                    totals.append((f"and {len(rest):,} more", sum(word.log_odds for word in rest)))
                if abs(contribution.remainder) > 5e-4:
                    totals.append(("length, and words it lacks", contribution.remainder))
                totals.append(("total", contribution.log_odds))
                cells = [[name, "", formatting.format_log_odds(value)] for name, value in totals]
                title, words = f"Words of {formatting.format_column(contribution.column)}", contribution.words
                yield TableSection.from_records(title, _WORD_TABLE, words[:_MAX_DOCUMENT_WORDS], totals=cells)
                yield from _documents(contribution.highlights, first)


def _documents(highlights: Sequence[HighlightedText], label: str) -> list[Document]:
    return [Document(highlights, label)] if any(piece.log_odds for piece in highlights) else []


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
        default=(), metadata=INTERNAL | section(lambda text, pieces: _documents(pieces, str(text.prediction)))
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
        columns = []
        for j, name in enumerate(self.columns):
            is_text = any(isinstance(row[j], str) for row in self.first_rows)
            columns.append(Column(name, "", is_text=is_text, is_required=name in self.result_columns))
        more = f", the first {len(self.first_rows)}" if self.rows > len(self.first_rows) else ""
        cells = [list(map(_format_cell, row)) for row in self.first_rows]
        yield TableSection(formatting.format_count(self.rows) + more, columns, cells)


def _format_cell(value: Any) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def summarize_text(model: ModelLike, text: str) -> TextSummary:
    """Return the class that a model predicts for one document; its other columns are missing."""
    fitted = load_fitted(model)
    _, part = text_words.find_text_part(fitted)
    [column] = part.columns
    p = fitted.posterior({name: [text if name == column else None] for name in fitted.plan.columns})[0]
    labels = fitted.labels.values
    words = tuple(text_words.document_words(fitted, text, limit=len(text)))
    pieces = text_words.highlight_document(text, words, part.event.tokens)  # type: ignore[attr-defined]
    runner_up = labels[text_words.find_top_two_classes(fitted, text)[1]] if len(labels) > 1 else None
    probabilities = dict(zip(labels, p.tolist(), strict=True))
    return TextSummary(labels[int(p.argmax())], probabilities, words[:_MAX_WORDS], pieces, runner_up)


def summarize_rows(predictions: Any) -> RowsSummary:
    names = tuple(predictions.column_names)
    first = tuple(tuple(row.values()) for row in predictions.slice(0, _MAX_ROWS).to_pylist())
    return RowsSummary(predictions.num_rows, names, names[names.index("prediction") :], first)
