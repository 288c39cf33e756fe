"""Keys in order: byte strings that lie one after another, sorted and compared many at once.

Eight bytes of a key are one number, and numbers are sorted quickly; only keys that agree in all of them are compared
again, eight bytes further on.

>>> letters, starts = np.frombuffer(b"teataatea-time", np.uint8), np.array([0, 3, 4, 6, 14])  # tea, t, aa, tea-time
>>> sort_order(letters, starts).tolist()
[2, 1, 0, 3]
>>> is_ascending(*take_keys(letters, starts, sort_order(letters, starts))), is_ascending(letters, starts)
(True, False)
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Letters = NDArray[np.uint8]
Integers = NDArray[np.int64]

_COMPARE_BYTES = 8  # bytes compared together
_MAX_ROUNDS = 8  # after so many times eight bytes, keys that still agree are compared one by one
_COPY_KEYS = 1 << 15  # keys copied at a time


def count_blanks(letters: Letters, starts: Integers) -> Integers:
    """(key,) how many blanks each has: one less than it has words.

    >>> count_blanks(np.frombuffer(b"teaat tea", np.uint8), np.array([0, 3, 9])).tolist()
    [0, 1]
    """
    return np.diff(np.searchsorted(np.flatnonzero(letters == ord(" ")), starts))


def sort_order(letters: Letters, starts: Integers) -> Integers:
    """The permutation that puts keys in ascending order; equal keys follow one another."""
    heads = _Heads(letters, starts)
    out = np.argsort(heads.bytes_at(np.arange(heads.n), 0)).astype(np.int64, copy=False)
    same = _same_as_next(heads.bytes_at(out, 0))
    for depth in range(1, _MAX_ROUNDS + 1):
        places = _runs(same)  # where keys are that agree so far, and which of them agree with each other
        if not len(places):
            return out
        group = np.cumsum(~np.concatenate([[False], same])[places])
        some = out[places]
        head = heads.bytes_at(some, depth)
        more = np.lexsort((heads.bytes_left(some, depth), head, group))
        out[places] = some[more]
        head, group, left = head[more], group[more], heads.bytes_left(some, depth)[more]
        same = np.zeros(len(out) - 1, bool)
        agree = (group[1:] == group[:-1]) & (head[1:] == head[:-1]) & ((left[1:] > 0) | (left[:-1] > 0))
        same[places[:-1][agree]] = True
    for run in _each_run(same):
        out[run] = sorted(out[run].tolist(), key=heads.key)
    return out


def is_ascending(letters: Letters, starts: Integers) -> bool:
    """Whether every key is greater than the one before it."""
    heads = _Heads(letters, starts)
    pairs = np.arange(max(heads.n - 1, 0))
    for depth in range(_MAX_ROUNDS):
        first, second = heads.bytes_at(pairs, depth), heads.bytes_at(pairs + 1, depth)
        if (first > second).any():
            return False
        pairs = pairs[first == second]
        left, after = heads.bytes_left(pairs, depth), heads.bytes_left(pairs + 1, depth)
        if ((after <= 0) & (after <= left)).any():  # the second ended, and is the first or begins it
            return False
        pairs = pairs[left > 0]
        if not len(pairs):
            return True
    return all(heads.key(i) < heads.key(i + 1) for i in pairs.tolist())


def take_keys(letters: Letters, starts: Integers, indices: Integers) -> tuple[Letters, Integers]:
    """Some keys, in the given order."""
    sizes = np.diff(starts)[indices]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    out, first = np.empty(ends[-1], np.uint8), starts[:-1][indices]
    for i in range(0, len(indices), _COPY_KEYS):  # the place of every byte takes eight
        mine = slice(i, min(i + _COPY_KEYS, len(indices)))
        start, end = ends[mine.start], ends[mine.stop]
        out[start:end] = letters[np.arange(start, end) + np.repeat(first[mine] - ends[mine], sizes[mine])]
    return out, ends


class _Heads:
    """Eight bytes of each key as a number; what lies behind a key counts as zeros."""

    def __init__(self, letters: Letters, starts: Integers):
        self.n = len(starts) - 1
        self._starts = starts
        self._letters = np.concatenate([letters, np.zeros(_COMPARE_BYTES * (_MAX_ROUNDS + 2), np.uint8)])
        self._words = np.ndarray(
            (len(letters) + _COMPARE_BYTES * (_MAX_ROUNDS + 1),), ">u8", self._letters.data, strides=(1,)
        )

    def bytes_left(self, keys: Integers, depth: int) -> Integers:
        """How many bytes of each key lie behind those compared, negative where it ended before."""
        return self._starts[keys + 1] - self._starts[keys] - _COMPARE_BYTES * (depth + 1)

    def bytes_at(self, keys: Integers, depth: int) -> NDArray[np.uint64]:
        """The eight bytes at a depth."""
        short = np.minimum(np.maximum(-self.bytes_left(keys, depth), 0), _COMPARE_BYTES).astype(np.uint64) * np.uint64(
            8
        )
        words = self._words[np.minimum(self._starts[keys] + _COMPARE_BYTES * depth, len(self._words) - 1)].astype(
            np.uint64
        )
        gone = short == 64
        short[gone] = 0
        words = (words >> short) << short
        words[gone] = 0
        return words

    def key(self, i: int) -> bytes:
        return self._letters[self._starts[i] : self._starts[i + 1]].tobytes()


def _same_as_next(head: NDArray) -> NDArray[np.bool_]:
    return head[1:] == head[:-1]


def _runs(same: NDArray[np.bool_]) -> Integers:
    """The places that agree with a neighbour."""
    return np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))


def _each_run(same: NDArray[np.bool_]) -> Iterator[slice]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        yield slice(start, stop + 1)
