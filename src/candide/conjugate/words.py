"""Words of documents that were counted: what each says of every class, had its document not been counted.

>>> from candide.encode.tokens import Tokens
>>> from candide.tally.base import Spec
>>> documents, y = Documents.of(["free prize", "see you", "free call", "call you"]), np.array([0, 1, 0, 1])
>>> tally = Terms.of(documents, y, n_classes=2, spec=Spec("terms", (Tokens(),)))
>>> said = words_of(terms.Weighed(tally, Tokens()), 1.0, documents, y, power=0.0)
>>> said.keys(), np.diff(said.scores(np.ones(3))[0]).round(3).item()  # of "free" alone: no other document has "prize"
([b'free', b'call', b'you'], -0.944)
>>> round(float(np.log(1 / 9) - np.log(2 / 7)), 3)
-0.944
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.conjugate import terms
from candide.distributions.hearing import Hearing
from candide.encode.tokens import rows
from candide.kernels import text as kernel
from candide.kernels import threads
from candide.kernels.text_twin import keys_of, weights_of
from candide.rows.blocks import Codes, Floats
from candide.rows.documents import Documents
from candide.tally import Terms, keys
from candide.tally.terms import summed

__all__ = ["Documents", "Terms", "Words", "beside", "words_of"]

T = TypeVar("T")
RARE = 10  # groups of terms by how many documents have them, each of twice as many as the one before
ALIKE = 80  # documents: fewer cannot tell kinds of terms apart, and all terms are of one
# Documents that a class has beside one: of fewer, that class without it is no longer what it is. Where that is so for
# most, what words say of documents left out is no guide to what they say of new ones, and none of them teaches.
OTHERS = 5
_LOT = 8  # classes, in which the loops read the tables
_LETTERS = 1 << 18  # of documents that are read together: what is worked out of their words takes 5 MB
_LARGEST = 1e30  # counts, and as small ones: of single precision
_ROUNDING = 1e-6  # of a count in single precision, and more
_CACHE = 1 << 20  # bytes of what the words of some documents say, which stay near while these are worked on


@dataclass(frozen=True, eq=False)
class Words:
    """The words of documents in CSR, and what each says of every class; of the document's own class ``own`` more."""

    letters: NDArray[np.uint8]  # the terms that are heard, one after another
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]  # (document + 1)
    term: NDArray[np.int32]  # (word)
    x: NDArray[np.float32]  # (word) how much it counts, by its occurrences and the length of the document
    own: NDArray[np.float32]  # (word)
    table: NDArray[np.float32]  # (term, class) in lots of eight classes
    y: Codes  # (document)
    n_classes: int
    group: Codes  # (term,) terms alike: of as many words, and about as rare
    n_groups: int
    scale: float  # what the length of a document leaves of each word, in the mean: ``x`` is in units of it
    teaches: NDArray[np.bool_]  # (document) whether its class is known without it
    how: Hearing = Hearing()

    def keys(self) -> list[bytes]:
        return keys_of(self.letters, self.starts)

    def __len__(self) -> int:
        return len(self.y)

    def of(self, some: slice) -> tuple[Any, ...]:
        """What the loops read of some documents."""
        return self.ends[some.start : some.stop + 1], self.term, self.x, self.own, self.table, self.y[some]

    def pieces(self, rows: slice) -> list[slice]:
        """Documents, as many at a time as stay in cache."""
        step = max(1, _CACHE // (4 * self.cost))
        return [slice(a, min(a + step, rows.stop)) for a in range(rows.start, rows.stop, step)]

    @property
    def cost(self) -> int:
        return max(1, len(self.term) // max(1, len(self)) * self.table.shape[1])

    def scores(self, weight: Floats) -> Floats:
        """(document, class) what weighted words come to."""
        out = np.zeros((len(self), self.n_classes))
        threads.over_rows(lambda r: kernels.word_scores(*self.of(r), weight, out[r]), len(self), cost=self.cost)
        return out

    def by_group(self, out: NDArray) -> NDArray:
        """(document, class, group) what the words of each group come to, in ``out``."""

        def work(rows: slice) -> None:
            for some in self.pieces(rows):
                sums = np.zeros((some.stop - some.start, self.n_groups, self.table.shape[1]))
                kernels.word_groups(*self.of(some), self.group, sums)
                out[some] = sums[:, :, : self.n_classes].transpose(0, 2, 1)

        threads.over_rows(work, len(self), cost=self.cost)
        return out

    def spread(self, p: Floats, often: Floats) -> Floats:
        """(term,) the sum over documents of the variance of what the term says, under p(class)."""
        share = self.padded(p)

        def work(some: slice) -> Floats:
            out = np.zeros(len(self.group))
            kernels.word_spreads(*self.of(some), often[some], share[some], out)
            return out

        return np.sum(threads.over_rows(work, len(self), cost=self.cost), axis=0)

    def padded(self, by_class: Floats) -> NDArray[np.float32]:
        """(document, class) as the loops read it."""
        out = np.zeros((len(by_class), self.table.shape[1]), np.float32)
        out[:, : self.n_classes] = by_class
        return out


def beside(parts: Sequence[Words]) -> Words:
    """The words of several parts of the same documents, as those of one: each has its terms and its groups."""
    first = parts[0]
    if len(parts) == 1:
        return first
    sizes = np.array([np.diff(one.ends) for one in parts])  # (part, document)
    ends = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))]).astype(np.int64)
    begin = ends[:-1] + np.cumsum(sizes, axis=0) - sizes
    term, x, own = (np.empty(ends[-1], kind) for kind in (np.int32, np.float32, np.float32))
    terms, groups = (np.cumsum([0, *n]) for n in zip(*((len(one.group), one.n_groups) for one in parts), strict=True))
    for i, one in enumerate(parts):
        at = np.arange(len(one.term)) + np.repeat(begin[i] - one.ends[:-1], sizes[i])
        term[at], x[at], own[at] = one.term + terms[i], one.x, one.own
    letters = np.concatenate([one.letters for one in parts])
    shift = np.cumsum([0, *(len(one.letters) for one in parts)])
    starts = np.concatenate([[0], *(one.starts[1:] + shift[i] for i, one in enumerate(parts))])
    table = np.concatenate([one.table for one in parts])
    group = np.concatenate([one.group + groups[i] for i, one in enumerate(parts)])
    arrays = letters, starts, ends, term, x, own, table, first.y
    return Words(*arrays, first.n_classes, group, int(groups[-1]), 1.0, first.teaches)


def words_of(
    counted: terms.Weighed,
    alpha: float,
    documents: Documents,
    y: Codes,
    weight: Floats | None = None,
    *,
    power: float,
    is_counted: bool = True,
) -> Words:
    """The words of ``documents`` whose terms others have too; ``weight`` is that with which each was counted.

    Terms stay those that all documents chose.
    """
    gone = np.zeros(len(y)) if not is_counted else np.ones(len(y)) if weight is None else weight
    used, (term, x, sizes, length, whole) = _listed(counted, documents, gone)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    teaches = _teaching(counted.tally.n[y, 0] - gone, gone)
    totals = counted.by_class(counted.total)
    unit = max(1.0, float(totals.max(initial=alpha)) / _LARGEST)  # of all counts, where these would be no numbers
    gone, totals, alpha = gone / unit, totals / unit, max(alpha / unit, 1.0 / _LARGEST)
    k, table, own = counted.tally.n_classes, _dense(counted, used, unit), np.empty_like(x)
    size = alpha * max(counted.size, 1)
    # Terms of no other document are taken out of the total too: the classes are as if this document had not been.
    rest = np.log(totals[y] + size) - np.log(np.maximum(totals[y] - gone * whole, 0.0) + size)
    each = np.where(length > 0, np.maximum(length, 1e-300) ** -power, 1.0)
    scale = float(each.mean()) if len(y) else 1.0

    def leave_out(some: slice) -> None:
        row = np.repeat(np.arange(some.start, some.stop), sizes[some])
        mine = slice(ends[some.start], ends[some.stop])
        n = table[term[mine], y[row]].astype(np.float64)
        left = n - gone[row] * x[mine]
        left[left < _ROUNDING * n] = 0.0
        own[mine] = np.log(left + alpha) - np.log(n + alpha) + rest[row]
        x[mine] *= each[row] / scale

    _in_pieces(leave_out, documents)
    table += np.float32(alpha)
    np.log(table, out=table)
    table[:, :k] -= np.log(totals + size).astype(np.float32)
    table[:, :k] -= table[:, :k].mean(axis=1, keepdims=True)  # what all classes share says nothing
    table[:, k:] = 0.0
    letters, starts = keys.taken(counted.tally.letters, counted.tally.starts, used)
    group, n_groups = _groups(counted, used, letters, starts, kinds=len(y) >= ALIKE)
    y = np.ascontiguousarray(y, np.int64)
    return Words(letters, starts, ends, term, x, own, table, y, k, group, n_groups, scale, teaches)


def _in_pieces(work: Callable[[slice], T], documents: Documents) -> list[T]:
    """What ``work`` makes of a few documents at a time, on threads: for each word it takes many times its room."""
    width = max(1, documents.width)
    step = max(1, _LETTERS // width)

    def some(rows: slice) -> list[T]:
        starts = range(rows.start, max(rows.stop, rows.start + 1), step)  # of no documents, one piece
        return [work(slice(a, min(a + step, rows.stop))) for a in starts]

    return [one for each in threads.over_rows(some, len(documents), cost=width) for one in each]


def _listed(counted: terms.Weighed, documents: Documents, gone: Floats) -> tuple[Codes, list[NDArray]]:
    """The terms of documents that others have too, and their words.

    (word) the place of its term among these and how much it counts, (document) how many words it has, how much they
    count in all, and how much with those that no other document has.
    """
    known = kernel.Words(counted.tally.letters, counted.tally.starts)
    have, there = counted.by_term(counted.tally.documents), np.zeros(counted.size, bool)

    def read(some: slice) -> tuple[NDArray, ...]:
        times, term, ends = rows(known, documents[some], counted.tokens)
        n, row = len(ends) - 1, np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        mine = gone[some][row]
        whole = summed(row, weights_of(counted.tokens.manner, times), n)
        heard = have[term] - mine > 1e-9 * np.maximum(mine, 1.0)
        row, term, x = row[heard], term[heard], weights_of(counted.tokens.manner, times[heard])
        there[term] = True
        return term, x.astype(np.float32), np.bincount(row, minlength=n), summed(row, x, n), whole

    columns = [list(column) for column in zip(*_in_pieces(read, documents), strict=True)]
    place = (np.cumsum(there) - 1).astype(np.int32)
    for term in columns[0]:
        term[:] = place[term]
    return np.flatnonzero(there), [np.concatenate(columns.pop(0)) for _ in range(5)]


def _dense(counted: terms.Weighed, used: Codes, unit: float) -> NDArray[np.float32]:
    """(term, class) counts of some terms, in lots of eight classes."""
    tally, total = counted.tally, counted.total
    out = np.zeros((len(used), -(-tally.n_classes // _LOT) * _LOT), np.float32)
    place = np.full(counted.size, -1, np.int32)
    place[used] = np.arange(len(used))
    for c, (start, stop) in enumerate(pairwise(tally.classes.tolist())):
        at = place[tally.word[start:stop]]
        out[at[at >= 0], c] = total[start:stop][at >= 0] / unit
    return out


def _teaching(others: Floats, gone: Floats) -> NDArray[np.bool_]:
    """(document) whether it teaches, by the documents that its class has beside it; all in weights.

    >>> _teaching(np.array([9.0, 9.0, 0.0]), np.ones(3)).tolist(), _teaching(np.full(3, 2.0), np.ones(3)).tolist()
    ([True, True, False], [False, False, False])
    """
    most = np.mean(others >= OTHERS * gone) >= 0.5 if len(others) else False
    return (others >= 0.5 * gone) & most  # half a document: whatever the rounding


def _groups(counted: terms.Weighed, used: Codes, letters: NDArray, starts: Codes, *, kinds: bool) -> tuple[Codes, int]:
    """(term,) the group of each term: by its words, and by how many other documents have it. Rarest first."""
    if not kinds:
        return np.zeros(len(used), np.int64), min(1, len(used))
    others = np.maximum(counted.by_term(counted.tally.documents)[used] - 1.0, 1.0)
    rarity = np.minimum(np.log2(others).astype(np.int64), RARE - 1)
    longer = keys.blanks(letters, starts) if counted.tokens.has_words else np.zeros(len(used), np.int64)
    known, group = np.unique(longer * RARE + rarity, return_inverse=True)
    return group.astype(np.int64), len(known)
