"""Words of documents that were counted: what each says of every class, had its document not been counted.

>>> from candide.encoding.tokens import Tokens
>>> from candide.tally.base import TallySpec
>>> documents, y = Documents.from_column(["free prize", "see you", "free call", "call you"]), np.array([0, 1, 0, 1])
>>> tally = TokenCounts.from_rows(documents, y, n_classes=2, spec=TallySpec("token_counts", (Tokens(),)))
>>> said = leave_out_tokens(token_estimates.WeightedTokenCounts(tally, Tokens()), 1.0, documents, y, power=0.0)
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
from candide.conjugate import token_estimates
from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.distributions.text_weighting import TextWeighting
from candide.encoding.tokens import token_rows
from candide.kernels import text as kernel
from candide.kernels import threads
from candide.kernels.text_twin import occurrence_weights, split_keys
from candide.tally import TokenCounts, sorted_keys
from candide.tally.token_counts import sum_by_index

__all__ = ["Documents", "HeldOutTokens", "TokenCounts", "concatenate_tokens", "leave_out_tokens"]

T = TypeVar("T")
N_RARITY_GROUPS = 10  # groups of terms by how many documents have them, each of twice as many as the one before
MIN_GROUPED_DOCUMENTS = 80  # documents: fewer cannot tell kinds of terms apart, and all terms are of one
# Documents that a class has beside one: of fewer, that class without it is no longer what it is. Where that is so for
# most, what words say of documents left out is no guide to what they say of new ones, and none of them teaches.
MIN_OTHER_DOCUMENTS = 5
_CLASS_BLOCK = 8  # classes, in which the loops read the tables
_CHUNK_BYTES = 1 << 18  # of documents that are read together: what is worked out of their words takes 5 MB
_MAX_COUNT = 1e30  # counts, and as small ones: of single precision
_ROUNDING = 1e-6  # of a count in single precision, and more
_CACHE_BYTES = 1 << 20  # bytes of what the words of some documents say, which stay near while these are worked on


@dataclass(frozen=True, eq=False)
class HeldOutTokens:
    """The words of documents in CSR, and what each says of every class; of the document's own class ``own`` more."""

    letters: NDArray[np.uint8]  # the terms that are heard, one after another
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]  # (document + 1)
    token: NDArray[np.int32]  # (word)
    x: NDArray[np.float32]  # (word) how much it counts, by its occurrences and the length of the document
    own_class_correction: NDArray[np.float32]  # (word)
    table: NDArray[np.float32]  # (term, class) in lots of eight classes
    y: Codes  # (document)
    n_classes: int
    group: Codes  # (term,) terms alike: of as many words, and about as rare
    n_groups: int
    scale: float  # what the length of a document leaves of each word, in the mean: ``x`` is in units of it
    is_informative: NDArray[np.bool_]  # (document) whether its class is known without it
    weighting: TextWeighting = TextWeighting()

    def keys(self) -> list[bytes]:
        return split_keys(self.letters, self.starts)

    def __len__(self) -> int:
        return len(self.y)

    def kernel_arrays(self, rows: slice) -> tuple[Any, ...]:
        """What the loops read of some documents."""
        return (
            self.ends[rows.start : rows.stop + 1],
            self.token,
            self.x,
            self.own_class_correction,
            self.table,
            self.y[rows],
        )

    def cached_slices(self, rows: slice) -> list[slice]:
        """Documents, as many at a time as stay in cache."""
        step = max(1, _CACHE_BYTES // (4 * self.cost))
        return [slice(a, min(a + step, rows.stop)) for a in range(rows.start, rows.stop, step)]

    @property
    def cost(self) -> int:
        return max(1, len(self.token) // max(1, len(self)) * self.table.shape[1])

    def scores(self, weight: Floats) -> Floats:
        """(document, class) what weighted words come to."""
        out = np.zeros((len(self), self.n_classes))
        threads.map_rows(
            lambda r: kernels.word_scores(*self.kernel_arrays(r), weight, out[r]), len(self), cost=self.cost
        )
        return out

    def sum_by_group(self, out: NDArray) -> NDArray:
        """(document, class, group) what the words of each group come to, in ``out``."""

        def work(rows: slice) -> None:
            for some in self.cached_slices(rows):
                sums = np.zeros((some.stop - some.start, self.n_groups, self.table.shape[1]))
                kernels.word_groups(*self.kernel_arrays(some), self.group, sums)
                out[some] = sums[:, :, : self.n_classes].transpose(0, 2, 1)

        threads.map_rows(work, len(self), cost=self.cost)
        return out

    def score_variance(self, p: Floats, row_weights: Floats) -> Floats:
        """(term,) the sum over documents of the variance of what the term says, under p(class)."""
        share = self.pad_classes(p)

        def work(some: slice) -> Floats:
            out = np.zeros(len(self.group))
            kernels.word_spreads(*self.kernel_arrays(some), row_weights[some], share[some], out)
            return out

        return np.sum(threads.map_rows(work, len(self), cost=self.cost), axis=0)

    def pad_classes(self, by_class: Floats) -> NDArray[np.float32]:
        """(document, class) as the loops read it."""
        out = np.zeros((len(by_class), self.table.shape[1]), np.float32)
        out[:, : self.n_classes] = by_class
        return out


def concatenate_tokens(parts: Sequence[HeldOutTokens]) -> HeldOutTokens:
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
        at = np.arange(len(one.token)) + np.repeat(begin[i] - one.ends[:-1], sizes[i])
        term[at], x[at], own[at] = one.token + terms[i], one.x, one.own_class_correction
    letters = np.concatenate([one.letters for one in parts])
    shift = np.cumsum([0, *(len(one.letters) for one in parts)])
    starts = np.concatenate([[0], *(one.starts[1:] + shift[i] for i, one in enumerate(parts))])
    table = np.concatenate([one.table for one in parts])
    group = np.concatenate([one.group + groups[i] for i, one in enumerate(parts)])
    arrays = letters, starts, ends, term, x, own, table, first.y
    return HeldOutTokens(*arrays, first.n_classes, group, int(groups[-1]), 1.0, first.is_informative)


def held_out_tokens(
    event: Any,
    tally: TokenCounts,
    prior: Any,
    documents: Documents,
    y: Codes,
    weight: Floats | None = None,
    *,
    power: float,
    is_counted: bool = True,
) -> HeldOutTokens:
    """The tokens of documents under a text event model; ``is_counted``: the documents are in the tally."""
    counts, alpha = event.weighted_counts(tally), event.pseudo_count(prior)
    return leave_out_tokens(counts, alpha, documents, y, weight, power=power, is_counted=is_counted)


def leave_out_tokens(
    counts: token_estimates.WeightedTokenCounts,
    alpha: float,
    documents: Documents,
    y: Codes,
    weight: Floats | None = None,
    *,
    power: float,
    is_counted: bool = True,
) -> HeldOutTokens:
    """The words of ``documents`` whose terms others have too; ``weight`` is that with which each was counted.

    Terms stay those that all documents chose.
    """
    gone = np.zeros(len(y)) if not is_counted else np.ones(len(y)) if weight is None else weight
    used, (term, x, sizes, length, whole) = _read_tokens(counts, documents, gone)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    teaches = _find_informative(counts.tally.n[y, 0] - gone, gone)
    totals = counts.sum_by_class(counts.total)
    unit = max(1.0, float(totals.max(initial=alpha)) / _MAX_COUNT)  # of all counts, where these would be no numbers
    gone, totals, alpha = gone / unit, totals / unit, max(alpha / unit, 1.0 / _MAX_COUNT)
    k, table, own = counts.tally.n_classes, _dense_counts(counts, used, unit), np.empty_like(x)
    size = alpha * max(counts.n_tokens, 1)
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

    _map_chunks(leave_out, documents)
    table += np.float32(alpha)
    np.log(table, out=table)
    table[:, :k] -= np.log(totals + size).astype(np.float32)
    table[:, :k] -= table[:, :k].mean(axis=1, keepdims=True)  # what all classes share says nothing
    table[:, k:] = 0.0
    letters, starts = sorted_keys.take_keys(counts.tally.letters, counts.tally.starts, used)
    group, n_groups = _group_tokens(counts, used, letters, starts, by_rarity=len(y) >= MIN_GROUPED_DOCUMENTS)
    y = np.ascontiguousarray(y, np.int64)
    return HeldOutTokens(letters, starts, ends, term, x, own, table, y, k, group, n_groups, scale, teaches)


def _map_chunks(work: Callable[[slice], T], documents: Documents) -> list[T]:
    """What ``work`` makes of a few documents at a time, on threads: for each word it takes many times its room."""
    width = max(1, documents.width)
    step = max(1, _CHUNK_BYTES // width)

    def some(rows: slice) -> list[T]:
        starts = range(rows.start, max(rows.stop, rows.start + 1), step)  # of no documents, one piece
        return [work(slice(a, min(a + step, rows.stop))) for a in starts]

    return [one for each in threads.map_rows(some, len(documents), cost=width) for one in each]


def _read_tokens(
    counted: token_estimates.WeightedTokenCounts, documents: Documents, gone: Floats
) -> tuple[Codes, list[NDArray]]:
    """The terms of documents that others have too, and their words.

    (word) the place of its term among these and how much it counts, (document) how many words it has, how much they
    count in all, and how much with those that no other document has.
    """
    known = kernel.Words(counted.tally.letters, counted.tally.starts)
    have, there = counted.sum_by_token(counted.tally.documents), np.zeros(counted.n_tokens, bool)

    def read(some: slice) -> tuple[NDArray, ...]:
        times, term, ends = token_rows(known, documents[some], counted.tokens)
        n, row = len(ends) - 1, np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        mine = gone[some][row]
        whole = sum_by_index(row, occurrence_weights(counted.tokens.count_mode, times), n)
        heard = have[term] - mine > 1e-9 * np.maximum(mine, 1.0)
        row, term, x = row[heard], term[heard], occurrence_weights(counted.tokens.count_mode, times[heard])
        there[term] = True
        return term, x.astype(np.float32), np.bincount(row, minlength=n), sum_by_index(row, x, n), whole

    columns = [list(column) for column in zip(*_map_chunks(read, documents), strict=True)]
    place = (np.cumsum(there) - 1).astype(np.int32)
    for term in columns[0]:
        term[:] = place[term]
    return np.flatnonzero(there), [np.concatenate(columns.pop(0)) for _ in range(5)]


def _dense_counts(counted: token_estimates.WeightedTokenCounts, used: Codes, unit: float) -> NDArray[np.float32]:
    """(term, class) counts of some terms, in lots of eight classes."""
    tally, total = counted.tally, counted.total
    out = np.zeros((len(used), -(-tally.n_classes // _CLASS_BLOCK) * _CLASS_BLOCK), np.float32)
    place = np.full(counted.n_tokens, -1, np.int32)
    place[used] = np.arange(len(used))
    for c, (start, stop) in enumerate(pairwise(tally.classes.tolist())):
        at = place[tally.word[start:stop]]
        out[at[at >= 0], c] = total[start:stop][at >= 0] / unit
    return out


def _find_informative(others: Floats, gone: Floats) -> NDArray[np.bool_]:
    """(document) whether it teaches, by the documents that its class has beside it; all in weights.

    >>> (
    ...     _find_informative(np.array([9.0, 9.0, 0.0]), np.ones(3)).tolist(),
    ...     _find_informative(np.full(3, 2.0), np.ones(3)).tolist(),
    ... )
    ([True, True, False], [False, False, False])
    """
    most = np.mean(others >= MIN_OTHER_DOCUMENTS * gone) >= 0.5 if len(others) else False
    return (others >= 0.5 * gone) & most  # half a document: whatever the rounding


def _group_tokens(
    counted: token_estimates.WeightedTokenCounts, used: Codes, letters: NDArray, starts: Codes, *, by_rarity: bool
) -> tuple[Codes, int]:
    """(term,) the group of each term: by its words, and by how many other documents have it. Rarest first."""
    if not by_rarity:
        return np.zeros(len(used), np.int64), min(1, len(used))
    others = np.maximum(counted.sum_by_token(counted.tally.documents)[used] - 1.0, 1.0)
    rarity = np.minimum(np.log2(others).astype(np.int64), N_RARITY_GROUPS - 1)
    longer = (
        sorted_keys.count_blanks(letters, starts) if counted.tokens.is_word_based else np.zeros(len(used), np.int64)
    )
    known, group = np.unique(longer * N_RARITY_GROUPS + rarity, return_inverse=True)
    return group.astype(np.int64), len(known)
