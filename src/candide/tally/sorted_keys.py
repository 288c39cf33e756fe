"""Keys in order: byte strings that lie one after another, sorted and compared many at once.

Eight bytes of a key are one number, and numbers are sorted quickly; only keys that agree in all of them are compared
again, eight bytes further on.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from candide.kernels.text import split_keys

Letters = NDArray[np.uint8]
Integers = NDArray[np.int64]

_COMPARE_BYTES = 8  # bytes compared together
_MAX_ROUNDS = 8  # after so many times eight bytes, keys that still agree are compared one by one
_COPY_KEYS = 1 << 15  # keys copied at a time


def count_blanks(letters: Letters, starts: Integers) -> Integers:
    """(key,) how many blanks each has: one less than it has words."""
    return np.diff(np.searchsorted(np.flatnonzero(letters == ord(" ")), starts))


def sort_order(letters: Letters, starts: Integers) -> Integers:
    """The permutation that puts keys in ascending order; equal keys follow one another."""
    heads = _Heads(letters, starts)
    out = np.argsort(heads.bytes_at(np.arange(heads.n), 0)).astype(np.int64, copy=False)
    head = heads.bytes_at(out, 0)
    same = head[1:] == head[:-1]
    for depth in range(1, _MAX_ROUNDS + 1):
        places = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
        if not len(places):  # where keys are that agree with a neighbour so far; a group of them agree with each other
            return out
        group, keys = np.cumsum(~np.concatenate([[False], same])[places]), out[places]
        head, left = heads.bytes_at(keys, depth), heads.bytes_left(keys, depth)
        order = np.lexsort((left, head, group))
        out[places] = keys[order]
        head, group, left = head[order], group[order], left[order]
        same = np.zeros(len(out) - 1, bool)
        agree = (group[1:] == group[:-1]) & (head[1:] == head[:-1]) & ((left[1:] > 0) | (left[:-1] > 0))
        same[places[:-1][agree]] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    for start, end in edges.reshape(-1, 2).tolist():
        run = slice(start, end + 1)
        out[run] = sorted(out[run].tolist(), key=heads.key)
    return out


def is_ascending(letters: Letters, starts: Integers) -> bool:
    """Whether every key is greater than the one before it."""
    return all(first < second for first, second in pairwise(split_keys(letters, starts)))


def take_keys(letters: Letters, starts: Integers, indices: Integers) -> tuple[Letters, Integers]:
    """These keys, in the given order."""
    sizes = np.diff(starts)[indices]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    out, first = np.empty(ends[-1], np.uint8), starts[:-1][indices]
    for i in range(0, len(indices), _COPY_KEYS):  # the place of every byte takes eight
        keys = slice(i, min(i + _COPY_KEYS, len(indices)))
        start, end = ends[keys.start], ends[keys.stop]
        out[start:end] = letters[np.arange(start, end) + np.repeat(first[keys] - ends[keys], sizes[keys])]
    return out, ends


class _Heads:
    """Eight bytes of each key as a number; what lies behind a key counts as zeros."""

    def __init__(self, letters: Letters, starts: Integers):
        self.n = len(starts) - 1
        self._starts = starts
        self._letters = np.concatenate([letters, np.zeros(_COMPARE_BYTES * (_MAX_ROUNDS + 2), np.uint8)])
        size = len(letters) + _COMPARE_BYTES * (_MAX_ROUNDS + 1)
        self._words = np.ndarray((size,), ">u8", self._letters.data, strides=(1,))

    def bytes_left(self, keys: Integers, depth: int) -> Integers:
        """How many bytes of each key lie behind those compared, negative where it ended before."""
        return self._starts[keys + 1] - self._starts[keys] - _COMPARE_BYTES * (depth + 1)

    def bytes_at(self, keys: Integers, depth: int) -> NDArray[np.uint64]:
        """The eight bytes at a depth."""
        n_behind = np.clip(-self.bytes_left(keys, depth), 0, _COMPARE_BYTES)  # bytes behind the key
        place = np.minimum(self._starts[keys] + _COMPARE_BYTES * depth, len(self._words) - 1)
        shift = (8 * np.minimum(n_behind, _COMPARE_BYTES - 1)).astype(np.uint64)
        words = (self._words[place].astype(np.uint64) >> shift) << shift
        words[n_behind == _COMPARE_BYTES] = 0
        return words

    def key(self, i: int) -> bytes:
        return self._letters[self._starts[i] : self._starts[i + 1]].tobytes()
