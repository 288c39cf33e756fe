"""Words of a text column: those that raise the log-odds of a class most, and those of a document, highlighted in it.

The contribution of a token is divided equally among its occurrences, and at each among its words or characters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from candide import formatting
from candide.data.documents import Documents
from candide.data.table import Name
from candide.encoding.tokens import Tokens, format_key, locate_tokens
from candide.errors import InputError, unknown_name_error
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_EXCERPT_MARGIN = 60  # characters on both sides of a strong piece


@dataclass(frozen=True)
class TopWord:
    """A word that raises the log-odds of a class against all others, and how often it occurs in both.

    The log-odds include the weights of words; with sublinear counts, documents are counted instead of occurrences.
    """

    word: str
    log_odds: float
    count: float
    other_count: float


def top_words(fitted: FittedModel, column: Name | None, label: Any, limit: int = 10) -> list[TopWord]:
    """Return the words that raise the log-odds of a class most; ties by frequency, then by name."""
    i, part = find_text_part(fitted, column)
    if label not in fitted.labels.values:
        raise unknown_name_error("class", label, fitted.labels.values)
    event: Any = part.event
    c, tokens = fitted.labels.values.index(label), event.tokens
    odds, tally = event.log_odds(fitted.selected_counts.tallies[i], c)
    distribution: Any = fitted.model.distributions[i].base_and_weights[0]
    odds = odds * distribution.token_weights(tally.letters, tally.starts)
    is_class, names = tally.class_of_cell == c, tally.keys()
    frequency = tally.documents if tokens.sublinear else tally.total
    cells = is_class, ~is_class
    count, other_count = (np.bincount(tally.word[at], frequency[at], tally.n_tokens) for at in cells)
    best = np.flatnonzero(odds >= np.sort(odds)[-limit:][0]) if 0 < limit < len(odds) else np.arange(len(odds))
    order = sorted(best.tolist(), key=lambda i: (-odds[i], -count[i], names[i]))[: max(limit, 0)]
    words = [format_key(names[i], tokens) for i in order]
    return list(map(TopWord, words, odds[order].tolist(), count[order].tolist(), other_count[order].tolist()))


@dataclass(frozen=True)
class DocumentWord:
    """A word of a document, how often it occurs, and its log-odds for the predicted class against the runner-up."""

    word: str
    count: float
    log_odds: float


def document_words(fitted: FittedModel, text: str, limit: int = 10) -> list[DocumentWord]:
    """Return the words that decided between the two most probable classes, the strongest first."""
    i, _ = find_text_part(fitted)
    if fitted.model.n_classes < 2:
        return []
    first, second = find_top_two_classes(fitted, text)
    words = score_document_words(fitted.model.distributions[i], Documents.from_column([text]), first, second)
    return list(words[:limit])


def find_top_two_classes(fitted: FittedModel, text: str) -> tuple[int, int]:
    i, _ = find_text_part(fitted)
    distribution: Any = fitted.model.distributions[i]
    score = distribution.log_prob(Documents.from_column([text]))[0] + fitted.model.log_prior
    first, second = np.argsort(-score, kind="stable")[:2].tolist()
    return first, second


def score_document_words(
    distribution: Any, document: Documents, first_class: int, second_class: int
) -> tuple[DocumentWord, ...]:
    """Return the known words of one document and their log-odds for one class against another, the strongest first.

    The rest of a document's contribution is due to its length, or to words that it does not have.
    """
    distribution, [weight] = distribution.base_and_weights
    counts, places, _ = distribution.token_rows(document)
    contributions = weight * distribution.document_contributions(places, counts)
    log_odds = contributions[:, first_class] - contributions[:, second_class]
    order = np.argsort(-np.abs(log_odds), kind="stable")
    words = [format_key(distribution.cells.key(i), distribution.tokens) for i in places[order].tolist()]
    return tuple(map(DocumentWord, words, counts[order].tolist(), log_odds[order].tolist()))


def find_text_part(fitted: FittedModel, column: Name | None = None) -> tuple[int, PlanPart]:
    """Return the position and the part of a text column; without a name, of the only one."""
    parts: dict[Name, tuple[int, PlanPart]] = {}
    for i, part in enumerate(fitted.plan.parts):
        if part.block_kind == "documents":
            parts.setdefault(part.columns[0], (i, part))  # of a column with several terms, the first
    if column is None and len(parts) == 1:
        return next(iter(parts.values()))
    if column in parts:
        return parts[column]
    if parts:
        raise unknown_name_error("column of text", column, parts)
    words = {  # for each level of columns that may be text
        name: sum(len(str(level).split()) for level in labels.values) / len(labels)
        for part in fitted.plan.parts
        for name, encoding, labels in zip(part.columns, part.encodings, part.levels, strict=False)
        if encoding.is_read_as_text and len(labels) and all(isinstance(level, str) for level in labels.values)
    }
    problem = f"this model has no column of text; it was fitted on {formatting.format_list(fitted.plan.columns)}"
    if not words:
        raise InputError(problem)
    name = max(words, key=words.__getitem__)
    remedy = f"fit it with --event {name}=text (events={{...}}) if that is its text"
    raise InputError(f"{problem}, of which {name!r} is counted as categories", value=name, remedy=remedy)


@dataclass(frozen=True)
class HighlightedText:
    """A piece of a document, and its log-odds for the predicted class against the runner-up."""

    text: str
    log_odds: float


def highlight_document(text: str, words: Iterable[DocumentWord], tokens: Tokens) -> tuple[HighlightedText, ...]:
    """Divide a document into pieces with log-odds; hashed tokens have no places, so that all of it is one piece."""
    log_odds = {} if tokens.bits else {word.word: word.log_odds for word in words}
    places: dict[str, list[tuple[tuple[int, int], ...]]] = {}
    for token, spans in locate_tokens(text, tokens):
        if token in log_odds:
            places.setdefault(token, []).append(spans)
    values, piece = np.zeros(len(text) + 1), np.zeros(len(text), np.int64)  # of each character; its piece
    for token, occurrences in places.items():
        for spans in occurrences:
            for start, end in spans:
                values[start] += log_odds[token] / len(occurrences) / len(spans)
                piece[start:end] = start + 1
    runs = [(i, [i, *rest][-1] + 1) for _, (i, *rest) in groupby(range(len(text)), key=lambda i: piece[i])]
    return tuple(HighlightedText(text[start:end], float(values[start:end].sum())) for start, end in runs)


def shorten_highlights(highlights: Sequence[HighlightedText], max_characters: int) -> list[HighlightedText]:
    """Return the pieces of a short document; of a long one those around the strongest, with dots between."""
    size = np.array([len(piece.text) for piece in highlights], np.int64)
    if size.sum() <= max_characters:
        return list(highlights)
    middle, is_near = np.cumsum(size) - size / 2, np.zeros(len(highlights), bool)
    for i in np.argsort([-abs(piece.log_odds) for piece in highlights], kind="stable"):
        wider = is_near | (np.abs(middle - middle[i]) <= _EXCERPT_MARGIN)
        if is_near.any() and size[wider].sum() > max_characters:
            break
        is_near = wider
    dots, shown = HighlightedText(" ... ", 0.0), list[HighlightedText]()
    for i in np.flatnonzero(is_near).tolist():
        shown += [highlights[i]] if not i or is_near[i - 1] else [dots, highlights[i]]
    return shown if is_near[-1] else [*shown, dots]
