"""Words of documents that were counted: what each says of every class, had its document not been counted.

>>> from candide.encode.tokens import Tokens
>>> from candide.tally.base import Spec
>>> documents, y = Documents.of(["free prize", "see you", "free call", "call you"]), np.array([0, 1, 0, 1])
>>> tally = Terms.of(documents, y, n_classes=2, spec=Spec("terms", (Tokens(),)))
>>> said = words_of(terms.Weighed(tally, Tokens()), 1.0, documents, y, power=0.0)
>>> said.keys(), np.diff(said.scores(np.ones(3))[0]).round(3).item()  # of "free" alone: no other document has "prize"
([b'free', b'call', b'you'], -0.811)
>>> round(float(np.log(1 / 9) - np.log(2 / 8)), 3)
-0.811
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.conjugate import terms
from candide.encode.tokens import rows
from candide.kernels import threads
from candide.kernels.text_twin import keys_of, weights_of
from candide.rows.blocks import Codes, Floats
from candide.rows.documents import Documents
from candide.tally import Terms, keys
from candide.tally.terms import summed

__all__ = ["Documents", "Terms", "Words", "words_of"]

RARE = 10  # groups of terms by how many documents have them, each of twice as many as the one before
_LOT = 8  # classes, in which the loops read the tables
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

    def by_group(self) -> Floats:
        """(document, class, group) what the words of each group come to."""
        out = np.zeros((len(self), self.n_groups, self.table.shape[1]))
        threads.over_rows(lambda r: kernels.word_groups(*self.of(r), self.group, out[r]), len(self), cost=self.cost)
        return np.ascontiguousarray(out[:, :, : self.n_classes].transpose(0, 2, 1))

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
    n, k = counted.cells(counted.total), counted.tally.n_classes
    w = np.ones(len(y)) if weight is None else weight
    times, term, ends = _listed(n.words, documents, counted)
    row, x = np.repeat(np.arange(len(y)), np.diff(ends)), weights_of(counted.tokens.manner, times)
    gone = w if is_counted else np.zeros(len(y))
    known = counted.by_term(counted.tally.documents)[term] - gone[row] > 1e-9 * np.maximum(gone[row], 1.0)
    row, term, x = row[known], term[known], x[known]
    used, term = np.unique(term, return_inverse=True)
    counts = _dense(n, used, k)
    totals, size = counted.by_class(counted.total), alpha * max(counted.size, 1)
    mine = counts[term, y[row]].astype(np.float64)
    left = np.maximum(mine - gone[row] * x, 0.0) + alpha
    length = summed(row, x, len(y))
    # Terms of no other document stay in the total: without them a class would be known by what it lacks.
    rest = np.log(totals[y] + size) - np.log(np.maximum(totals[y] - gone * length, 0.0) + size)
    own = np.log(left) - np.log(mine + alpha) + rest[row]
    counts += np.float32(alpha)
    np.log(counts, out=counts)
    counts[:, :k] -= np.log(totals + size).astype(np.float32)
    counts[:, :k] -= counts[:, :k].mean(axis=1, keepdims=True)  # what all classes share says nothing
    counts[:, k:] = 0.0
    each = np.where(length > 0, np.maximum(length, 1e-300) ** -power, 1.0)
    scale = float(each.mean()) if len(y) else 1.0
    letters, starts = keys.taken(counted.tally.letters, counted.tally.starts, used)
    group, n_groups = _groups(counted, used, letters, starts)
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(y)))]).astype(np.int64)
    arrays = term.astype(np.int32), (x * each[row] / scale).astype(np.float32), own.astype(np.float32), counts
    return Words(letters, starts, ends, *arrays, np.ascontiguousarray(y, np.int64), k, group, n_groups, scale)


def _listed(known: Any, documents: Documents, counted: terms.Weighed) -> tuple[Floats, Codes, Codes]:
    """The known terms of documents, read on threads."""

    def work(some: slice) -> tuple[NDArray, NDArray, NDArray]:
        return rows(known, documents[some], counted.tokens)

    parts = threads.over_rows(work, len(documents), cost=max(1, documents.width))
    sizes = np.concatenate([np.diff(ends) for _, _, ends in parts])
    times, term = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return times, term.astype(np.int64), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _dense(n: Any, used: Codes, k: int) -> NDArray[np.float32]:
    """(term, class) counts of some terms, in lots of eight classes."""
    out = np.zeros((len(used), -(-k // _LOT) * _LOT), np.float32)
    at, owner = n.at(used)
    out[owner, n.column[at]] = n.value[at]
    return out


def _groups(counted: terms.Weighed, used: Codes, letters: NDArray, starts: Codes) -> tuple[Codes, int]:
    """(term,) the group of each term: by its words, and by how many other documents have it. Rarest first."""
    others = np.maximum(counted.by_term(counted.tally.documents)[used] - 1.0, 1.0)
    rarity = np.minimum(np.log2(others).astype(np.int64), RARE - 1)
    spaces = np.concatenate([[0], np.cumsum(letters == ord(" "))])
    longer = spaces[starts[1:]] - spaces[starts[:-1]] if counted.tokens.has_words else np.zeros(len(used), np.int64)
    known, group = np.unique(longer * RARE + rarity, return_inverse=True)
    return group.astype(np.int64), len(known)
