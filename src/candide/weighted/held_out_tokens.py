"""The tokens of counted documents, and what each contributes to every class if its document had not been counted."""

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
from candide.distributions.token_weights import TextWeighting
from candide.encoding.tokens import token_rows
from candide.kernels import text as kernel
from candide.kernels import threads
from candide.kernels.text import occurrence_weights, split_keys
from candide.tally import TokenCounts, sorted_keys
from candide.tally.token_counts import sum_by_index

T = TypeVar("T")
N_RARITY_GROUPS = 10  # groups of tokens by document frequency, each of twice as many documents as the one before
MIN_GROUPED_DOCUMENTS = 80  # with fewer documents all tokens are one group
# Without one of its documents a class of fewer others is not the same. Where that holds for most documents, left-out
# contributions do not show those of new documents, and weights are not learned.
MIN_OTHER_DOCUMENTS = 5
_CLASS_BLOCK = 8  # the kernels read tables in blocks of so many classes
_CHUNK_BYTES = 1 << 18  # of documents that are read together: their tokens take 5 MB
_MAX_COUNT = 1e30  # and its inverse the smallest: the range of single precision
_ROUNDING = 1e-6  # more than the relative error of a count in single precision
_CACHE_BYTES = 1 << 20  # of the contributions of documents that are worked on together


@dataclass(frozen=True, eq=False)
class HeldOutTokens:
    """The tokens of documents in CSR form, each with a row of ``table``; and a correction for the document's class."""

    letters: NDArray[np.uint8]  # the tokens, one after another
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]  # (document + 1)
    token: NDArray[np.int32]  # (occurrence)
    x: NDArray[np.float32]  # (occurrence) how much it counts, by its frequency and the length of the document
    own_class_correction: NDArray[np.float32]  # (occurrence)
    table: NDArray[np.float32]  # (token, class), padded to blocks of eight classes
    y: Codes  # (document)
    n_classes: int
    group: Codes  # (token,) of as many words, and about as rare
    n_groups: int
    scale: float  # mean factor for the length of a document: ``x`` is in units of it
    is_informative: NDArray[np.bool_]  # (document) whether its class is known without it
    weighting: TextWeighting = TextWeighting()

    def keys(self) -> list[bytes]:
        return split_keys(self.letters, self.starts)

    def __len__(self) -> int:
        return len(self.y)

    def kernel_arrays(self, rows: slice) -> tuple[Any, ...]:
        ends = self.ends[rows.start : rows.stop + 1]
        return ends, self.token, self.x, self.own_class_correction, self.table, self.y[rows]

    def cached_slices(self, rows: slice) -> list[slice]:
        step = max(1, _CACHE_BYTES // (4 * self.cost))
        return [slice(a, min(a + step, rows.stop)) for a in range(rows.start, rows.stop, step)]

    @property
    def cost(self) -> int:
        return max(1, len(self.token) // max(1, len(self)) * self.table.shape[1])

    def scores(self, weight: Floats) -> Floats:
        """(document, class) the sum of weighted contributions."""
        out = np.zeros((len(self), self.n_classes))

        def work(rows: slice) -> None:
            kernels.word_scores(*self.kernel_arrays(rows), weight, out[rows])

        threads.map_rows(work, len(self), cost=self.cost)
        return out

    def sum_by_group(self, out: NDArray) -> NDArray:
        """(document, class, group) the contributions of each group, in ``out``."""

        def work(rows: slice) -> None:
            for chunk in self.cached_slices(rows):
                sums = np.zeros((chunk.stop - chunk.start, self.n_groups, self.table.shape[1]))
                kernels.word_groups(*self.kernel_arrays(chunk), self.group, sums)
                out[chunk] = sums[:, :, : self.n_classes].transpose(0, 2, 1)

        threads.map_rows(work, len(self), cost=self.cost)
        return out

    def score_variance(self, p: Floats, row_weights: Floats) -> Floats:
        """(token,) the sum over documents of the variance of its contributions under p(class)."""
        padded = self.pad_classes(p)

        def work(rows: slice) -> Floats:
            out = np.zeros(len(self.group))
            kernels.word_spreads(*self.kernel_arrays(rows), row_weights[rows], padded[rows], out)
            return out

        return np.sum(threads.map_rows(work, len(self), cost=self.cost), axis=0)

    def pad_classes(self, by_class: Floats) -> NDArray[np.float32]:
        out = np.zeros((len(by_class), self.table.shape[1]), np.float32)
        out[:, : self.n_classes] = by_class
        return out


def concatenate_tokens(parts: Sequence[HeldOutTokens]) -> HeldOutTokens:
    """Several parts of the same documents as one, whose tokens and groups stay distinct."""
    first = parts[0]
    if len(parts) == 1:
        return first
    sizes = np.array([np.diff(part.ends) for part in parts])  # (part, document)
    ends = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))]).astype(np.int64)
    begin = ends[:-1] + np.cumsum(sizes, axis=0) - sizes
    token, x, own = (np.empty(ends[-1], kind) for kind in (np.int32, np.float32, np.float32))
    n_tokens, n_groups = np.cumsum([(0, 0), *((len(part.group), part.n_groups) for part in parts)], axis=0).T
    for i, part in enumerate(parts):
        at = np.arange(len(part.token)) + np.repeat(begin[i] - part.ends[:-1], sizes[i])
        token[at], x[at], own[at] = part.token + n_tokens[i], part.x, part.own_class_correction
    letters = np.concatenate([part.letters for part in parts])
    shift = np.cumsum([0, *(len(part.letters) for part in parts)])
    starts = np.concatenate([[0], *(part.starts[1:] + shift[i] for i, part in enumerate(parts))])
    table = np.concatenate([part.table for part in parts])
    group = np.concatenate([part.group + n_groups[i] for i, part in enumerate(parts)])
    arrays = letters, starts, ends, token, x, own, table, first.y
    return HeldOutTokens(*arrays, first.n_classes, group, int(n_groups[-1]), 1.0, first.is_informative)


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
    """The tokens that documents share with others, under a text event model; ``power`` is that of the length.

    ``is_counted``: the documents are in the tally, each with its ``weight``.
    """
    counts, alpha = event.weighted_counts(tally), event.pseudo_count(prior)
    removed = np.zeros(len(y)) if not is_counted else np.ones(len(y)) if weight is None else weight
    used, (token, x, sizes, length, whole) = _read_tokens(counts, documents, removed)
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    others = counts.tally.n[y, 0] - removed  # (document) the weight of the other documents of its class
    is_most = len(y) > 0 and np.mean(others >= MIN_OTHER_DOCUMENTS * removed) >= 0.5
    is_informative = (others >= 0.5 * removed) & is_most  # half a document: whatever the rounding
    totals = counts.tally.sum_by_class(counts.total)
    unit = max(1.0, float(totals.max(initial=alpha)) / _MAX_COUNT)  # of all counts, where these would overflow
    removed, totals, alpha = removed / unit, totals / unit, max(alpha / unit, 1.0 / _MAX_COUNT)
    k, table, own = counts.tally.n_classes, _dense_counts(counts, used, unit), np.empty_like(x)
    size = alpha * max(counts.n_tokens, 1)
    # Tokens of no other document are taken out of the total too: classes are as if the document had not been counted.
    rest = np.log(totals[y] + size) - np.log(np.maximum(totals[y] - removed * whole, 0.0) + size)
    by_length = np.where(length > 0, np.maximum(length, 1e-300) ** -power, 1.0)
    scale = float(by_length.mean()) if len(y) else 1.0

    def leave_out(rows: slice) -> None:
        row = np.repeat(np.arange(rows.start, rows.stop), sizes[rows])
        at = slice(ends[rows.start], ends[rows.stop])
        n = table[token[at], y[row]].astype(np.float64)
        left = n - removed[row] * x[at]
        left[left < _ROUNDING * n] = 0.0
        own[at] = np.log(left + alpha) - np.log(n + alpha) + rest[row]
        x[at] *= by_length[row] / scale

    _map_chunks(leave_out, documents)
    table += np.float32(alpha)
    np.log(table, out=table)
    table[:, :k] -= np.log(totals + size).astype(np.float32)
    table[:, :k] -= table[:, :k].mean(axis=1, keepdims=True)  # only differences between classes matter
    table[:, k:] = 0.0
    letters, starts = sorted_keys.take_keys(counts.tally.letters, counts.tally.starts, used)
    group, n_groups = _group_tokens(counts, used, letters, starts, by_rarity=len(y) >= MIN_GROUPED_DOCUMENTS)
    y = np.ascontiguousarray(y, np.int64)
    return HeldOutTokens(letters, starts, ends, token, x, own, table, y, k, group, n_groups, scale, is_informative)


def _map_chunks(work: Callable[[slice], T], documents: Documents) -> list[T]:
    """The results of ``work`` for a few documents at a time, on threads: it needs much memory for each token."""
    width = max(1, documents.width)
    step = max(1, _CHUNK_BYTES // width)

    def map_slices(rows: slice) -> list[T]:
        starts = range(rows.start, max(rows.stop, rows.start + 1), step)  # no documents are one empty chunk
        return [work(slice(a, min(a + step, rows.stop))) for a in starts]

    return [result for part in threads.map_rows(map_slices, len(documents), cost=width) for result in part]


def _read_tokens(
    counts: token_estimates.WeightedTokenCounts, documents: Documents, removed: Floats
) -> tuple[Codes, list[NDArray]]:
    """The tokens that documents share with others, and their occurrences.

    (occurrence) the place of its token among these and how much it counts; (document) its number of occurrences, how
    much they count in all, and how much with the tokens that no other document has.
    """
    known = kernel.Words(counts.tally.letters, counts.tally.starts)
    n_documents, is_used = counts.sum_by_token(counts.tally.documents), np.zeros(counts.n_tokens, bool)

    def read(rows: slice) -> tuple[NDArray, ...]:
        times, token, ends = token_rows(known, documents[rows], counts.tokens)
        n, row = len(ends) - 1, np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        own = removed[rows][row]
        whole = sum_by_index(row, occurrence_weights(counts.tokens.count_mode, times), n)
        shared = n_documents[token] - own > 1e-9 * np.maximum(own, 1.0)
        row, token, x = row[shared], token[shared], occurrence_weights(counts.tokens.count_mode, times[shared])
        is_used[token] = True
        return token, x.astype(np.float32), np.bincount(row, minlength=n), sum_by_index(row, x, n), whole

    columns = [list(column) for column in zip(*_map_chunks(read, documents), strict=True)]
    place = (np.cumsum(is_used) - 1).astype(np.int32)
    for token in columns[0]:
        token[:] = place[token]
    return np.flatnonzero(is_used), [np.concatenate(columns.pop(0)) for _ in range(5)]


def _dense_counts(counts: token_estimates.WeightedTokenCounts, used: Codes, unit: float) -> NDArray[np.float32]:
    """(token, class) counts of some tokens, padded to blocks of classes."""
    tally, total = counts.tally, counts.total
    out = np.zeros((len(used), -(-tally.n_classes // _CLASS_BLOCK) * _CLASS_BLOCK), np.float32)
    place = np.full(counts.n_tokens, -1, np.int32)
    place[used] = np.arange(len(used))
    for c, (start, stop) in enumerate(pairwise(tally.classes.tolist())):
        at = place[tally.word[start:stop]]
        out[at[at >= 0], c] = total[start:stop][at >= 0] / unit
    return out


def _group_tokens(
    counts: token_estimates.WeightedTokenCounts, used: Codes, letters: NDArray, starts: Codes, *, by_rarity: bool
) -> tuple[Codes, int]:
    """(token,) the group of each token, by its words and by how many other documents have it; rarest first."""
    if not by_rarity:
        return np.zeros(len(used), np.int64), min(1, len(used))
    others = np.maximum(counts.sum_by_token(counts.tally.documents)[used] - 1.0, 1.0)
    rarity = np.minimum(np.log2(others).astype(np.int64), N_RARITY_GROUPS - 1)
    is_words = counts.tokens.is_word_based
    n_blanks = sorted_keys.count_blanks(letters, starts) if is_words else np.zeros(len(used), np.int64)
    groups, group = np.unique(n_blanks * N_RARITY_GROUPS + rarity, return_inverse=True)
    return group.astype(np.int64), len(groups)
