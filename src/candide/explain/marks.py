"""Marks: a document in pieces, each with what it says. Joined they are the document, added up what its terms say.

What a term says is shared equally by the places where it occurs, and at each by its words or characters.

>>> from candide.encode.tokens import Tokens
>>> words = [DocumentTerm("free", 2, 3.0), DocumentTerm("free prize", 1, 1.0)]
>>> [(mark.text, mark.nats) for mark in marks("Free prize, FREE!", words, Tokens(ngrams=(1, 2)))]
[('Free', 2.0), (' ', 0.0), ('prize', 0.5), (', ', 0.0), ('FREE', 1.5), ('!', 0.0)]
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from candide.encode.places import located
from candide.encode.tokens import Tokens
from candide.explain.terms import DocumentTerm

_AROUND = 60  # letters to both sides of a strong piece


@dataclass(frozen=True)
class Mark:
    """A piece of a document, and what it says for the class predicted against the next likely one."""

    text: str
    nats: float


def marks(text: str, words: Iterable[DocumentTerm], tokens: Tokens) -> tuple[Mark, ...]:
    """The pieces of a document; hashed terms have no places, so that all of it is one piece that says nothing."""
    said = {} if tokens.bits else {word.term: word.weight for word in words}
    places: dict[str, list[tuple[tuple[int, int], ...]]] = {}
    for term, spans in located(text, tokens):
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
    return tuple(Mark(text[start:end], float(nats[start:end].sum())) for start, end in runs)


def excerpt(marks: Sequence[Mark], letters: int) -> list[Mark]:
    """The pieces of a short document; of one of more than some letters those around the strongest, with dots between.

    >>> said = [Mark("so ", 0.0)] * 99 + [Mark("free", 2.0)] + [Mark(" so", 0.0)] * 99
    >>> len(excerpt(said, 1000)), "".join(mark.text for mark in excerpt(said, 160))[:12]
    (199, ' ... so so s')
    """
    size = np.array([len(mark.text) for mark in marks], np.int64)
    ends = np.cumsum(size)
    if size.sum() <= letters:
        return list(marks)
    middle, near = ends - size / 2, np.zeros(len(marks), bool)
    for i in np.argsort([-abs(mark.nats) for mark in marks], kind="stable"):
        wider = near | (np.abs(middle - middle[i]) <= _AROUND)
        if near.any() and size[wider].sum() > letters:
            break
        near = wider
    dots, shown = Mark(" ... ", 0.0), list[Mark]()
    for i in np.flatnonzero(near).tolist():
        shown += [dots] if i and not near[i - 1] else []
        shown.append(marks[i])
    return shown if near[-1] else [*shown, dots]
