"""Words of a text column: those that raise the log-odds of a class most, and those of a document, highlighted in it.

The contribution of a token is divided equally among its occurrences, and at each among its words or characters.

>>> from candide.encoding.tokens import Tokens
>>> words = [DocumentWord("free", 2, 3.0), DocumentWord("free prize", 1, 1.0)]
>>> [(piece.text, piece.log_odds) for piece in highlight_document("Free prize, FREE!", words, Tokens(ngrams=(1, 2)))]
[('Free', 2.0), (' ', 0.0), ('prize', 0.5), (', ', 0.0), ('FREE', 1.5), ('!', 0.0)]
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


@dataclass(frozen=True)
class TopWord:
    """A term that speaks for a class: log-odds against all other classes, and how often it occurs in both.

    Where words have weights these are in the log-odds; where repeats count less, it is the documents that are counted.
    """

    word: str
    log_odds: float
    count: float
    other_count: float


def top_words(fitted: FittedModel, column: Name | None, label: Any, limit: int = 10) -> list[TopWord]:
    """The terms of a column of text that speak most for a class; of equals the more frequent, then by name."""
    i, part = find_text_part(fitted, column)
    if label not in fitted.labels.values:
        raise unknown_name_error("class", label, fitted.labels.values)
    event, c = part.event, fitted.labels.values.index(label)
    odds, tally = event.log_odds(fitted.selected_counts.tallies[i], c)  # type: ignore[attr-defined]
    law: Any = fitted.model.distributions[i].base_and_weights[0]
    odds = odds * law.token_weights(tally.letters, tally.starts)
    mine = tally.class_of_cell == c
    names, tokens = tally.keys(), event.tokens  # type: ignore[attr-defined]
    often = tally.documents if tokens.sublinear else tally.total
    count = np.bincount(tally.word[mine], often[mine], tally.n_tokens)
    others = np.bincount(tally.word[~mine], often[~mine], tally.n_tokens)
    best = np.flatnonzero(odds >= np.sort(odds)[-limit:][0]) if 0 < limit < len(odds) else np.arange(len(odds))
    order = sorted(best.tolist(), key=lambda i: (-odds[i], -count[i], names[i]))[: max(limit, 0)]
    terms = [format_key(names[i], tokens) for i in order]
    rows = zip(terms, odds[order].tolist(), count[order].tolist(), others[order].tolist(), strict=True)
    return [TopWord(*row) for row in rows]


@dataclass(frozen=True)
class DocumentWord:
    """A term of a document: how often it occurs, and its log-odds for the class predicted over the next likely one."""

    word: str
    count: float
    log_odds: float


def document_words(fitted: FittedModel, text: str, column: Name | None = None, limit: int = 10) -> list[DocumentWord]:
    """The terms of a document that decided, strongest first, whichever of the two classes they speak for."""
    i, _ = find_text_part(fitted, column)
    if fitted.model.n_classes < 2:
        return []  # where there is one class only, nothing was decided
    return list(
        score_document_words(
            fitted.model.distributions[i], Documents.from_column([text]), *find_top_two_classes(fitted, text, column)
        )[:limit]
    )


def find_top_two_classes(fitted: FittedModel, text: str, column: Name | None = None) -> tuple[int, int]:
    """The codes of the two classes between which a document decides: the likeliest, and the next."""
    i, _ = find_text_part(fitted, column)
    law: Any = fitted.model.distributions[i]
    score = law.log_prob(Documents.from_column([text]))[0] + fitted.model.log_prior
    first, second = np.argsort(-score, kind="stable")[:2].tolist()
    return first, second


def score_document_words(
    distribution: Any, document: Documents, first_class: int, second_class: int
) -> tuple[DocumentWord, ...]:
    """The terms of one document that a law knows, and what each says for one class against another, strongest first.

    What else the law says of a document is of its length, or of terms that it does not have.
    """
    distribution, [counts] = distribution.base_and_weights
    times, place, _ = distribution.token_rows(document)
    weight = counts * distribution.document_contributions(place, times)
    gain = weight[:, first_class] - weight[:, second_class]
    order = np.argsort(-np.abs(gain), kind="stable")
    keys = [format_key(distribution.cells.key(i), distribution.tokens) for i in place[order].tolist()]
    return tuple(DocumentWord(*row) for row in zip(keys, times[order].tolist(), gain[order].tolist(), strict=True))


def find_text_part(fitted: FittedModel, column: Name | None = None) -> tuple[int, PlanPart]:
    """The part of a column of text; of the only one where none is named."""
    found: dict[Name, tuple[int, PlanPart]] = {}
    for i, part in enumerate(fitted.plan.parts):
        if part.block_kind == "documents":
            found.setdefault(part.columns[0], (i, part))  # of a column with several voices, the first
    if column is None and len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise _no_text_error(fitted)
    if column not in found:
        raise unknown_name_error("column of text", column, found)
    return found[column]


def _no_text_error(fitted: FittedModel) -> InputError:
    """The error of a model that counts no text, with the column whose levels have most words where there are any."""
    words = {
        name: sum(len(str(one).split()) for one in labels.values) / len(labels)
        for part in fitted.plan.parts
        for name, labels in zip(part.columns, part.levels, strict=False)
        if len(labels) and all(isinstance(one, str) for one in labels.values)
    }
    what = f"this model has no column of text; it was fitted on {formatting.format_list(fitted.plan.columns)}"
    if not words:
        return InputError(what)
    name = max(words, key=words.__getitem__)
    remedy = f"fit it with --event {name}=text (events={{...}}) if that is its text"
    return InputError(f"{what}, of which {name!r} is counted as categories", value=name, remedy=remedy)


_EXCERPT_MARGIN = 60  # letters to both sides of a strong piece


@dataclass(frozen=True)
class HighlightedText:
    """A piece of a document, and what it says for the class predicted against the next likely one."""

    text: str
    log_odds: float


def highlight_document(text: str, words: Iterable[DocumentWord], tokens: Tokens) -> tuple[HighlightedText, ...]:
    """The pieces of a document; hashed terms have no places, so that all of it is one piece that says nothing."""
    said = {} if tokens.bits else {word.word: word.log_odds for word in words}
    places: dict[str, list[tuple[tuple[int, int], ...]]] = {}
    for term, spans in locate_tokens(text, tokens):
        if term in said:
            places.setdefault(term, []).append(spans)
    nats, unit = np.zeros(len(text) + 1), np.zeros(len(text), np.int64)  # of each letter; which piece it belongs to
    for term, each in places.items():
        for spans in each:
            share = said[term] / len(each) / len(spans)
            for start, end in spans:
                nats[start] += share
                unit[start:end] = start + 1
    pieces = groupby(range(len(text)), key=lambda i: unit[i])
    runs = [(i, [i, *rest][-1] + 1) for _, (i, *rest) in pieces]
    return tuple(HighlightedText(text[start:end], float(nats[start:end].sum())) for start, end in runs)


def shorten_highlights(highlights: Sequence[HighlightedText], max_characters: int) -> list[HighlightedText]:
    """The pieces of a short document; of one of more than some letters those around the strongest, with dots between.

    >>> said = [HighlightedText("so ", 0.0)] * 99 + [HighlightedText("free", 2.0)] + [HighlightedText(" so", 0.0)] * 99
    >>> len(shorten_highlights(said, 1000)), "".join(mark.text for mark in shorten_highlights(said, 160))[:12]
    (199, ' ... so so s')
    """
    size = np.array([len(mark.text) for mark in highlights], np.int64)
    ends = np.cumsum(size)
    if size.sum() <= max_characters:
        return list(highlights)
    middle, near = ends - size / 2, np.zeros(len(highlights), bool)
    for i in np.argsort([-abs(mark.log_odds) for mark in highlights], kind="stable"):
        wider = near | (np.abs(middle - middle[i]) <= _EXCERPT_MARGIN)
        if near.any() and size[wider].sum() > max_characters:
            break
        near = wider
    dots, shown = HighlightedText(" ... ", 0.0), list[HighlightedText]()
    for i in np.flatnonzero(near).tolist():
        shown += [dots] if i and not near[i - 1] else []
        shown.append(highlights[i])
    return shown if near[-1] else [*shown, dots]
