"""Marks: a document in pieces, each with what it says. Joined they are the document, added up what its terms say.

What a term says is shared equally by the places where it occurs, and at each by its words or characters.

>>> from candide.encoding.tokens import Tokens
>>> words = [DocumentWord("free", 2, 3.0), DocumentWord("free prize", 1, 1.0)]
>>> [(mark.text, mark.log_odds) for mark in highlight_document("Free prize, FREE!", words, Tokens(ngrams=(1, 2)))]
[('Free', 2.0), (' ', 0.0), ('prize', 0.5), (', ', 0.0), ('FREE', 1.5), ('!', 0.0)]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from candide.encoding.tokens import Tokens, locate_tokens
from candide.explain.words import DocumentWord

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
