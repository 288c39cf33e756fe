"""The text kernels: their reference in Python, and the choice of the compiled ones by ``CANDIDE_KERNELS``.

The reference works on documents already split into keys: tokens as UTF-8, or the numbers of their buckets. Custom
patterns and documents given as words use it, too. The tables of characters come from Python itself, so that compiled
words are those of ``re``, and compiled lower case is that of ``str.lower``.
"""

import importlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import kernels

PLAIN, BINARY, SUBLINEAR = 0, 1, 2
Keys = Sequence[bytes]
KeyLists = Sequence[Keys | None]  # the keys of documents; None: absent
_CODE, WORD, SPACE, SPECIAL = 0x1FFFFF, 1 << 24, 1 << 25, 1 << 26  # as in _text.pyx
_N_TABLED = 0x40000  # above it no character has another case, is a word character, or is white space


def __getattr__(name: str) -> Any:
    """``compiled`` (None where it is not), ``NAME``, ``Words``, ``unite``, ``sum_cells``: loaded at first use."""
    if name not in ("compiled", "NAME", "Words", "unite", "sum_cells"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    values: dict[str, Any] = {"compiled": None, "NAME": "python", "Words": ReferenceWords}
    values |= {"unite": reference_unite, "sum_cells": reference_sum_cells}
    if kernels.NAME != "numpy":
        with suppress(ImportError):
            loops = importlib.import_module("candide.kernels._text")
            values = {"compiled": loops, "NAME": "compiled", "Words": loops.Words}
            values |= {"unite": loops.unite, "sum_cells": loops.sum_cells}
    globals().update(values)
    return values[name]


class ReferenceWords:
    """A fixed set of keys: the position of a key is where it stands in ``letters``."""

    def __init__(self, letters: NDArray, starts: NDArray):
        self.letters, self.starts = letters, starts
        self._place = {key: i for i, key in enumerate(split_keys(letters, starts))}

    def __len__(self) -> int:
        return len(self._place)

    def positions(self, letters: NDArray, starts: NDArray) -> NDArray[np.int64]:
        """The positions of other keys in this set; -1 where they are not in it."""
        return np.array([self._place.get(key, -1) for key in split_keys(letters, starts)], np.int64)


def split_keys(letters: NDArray, starts: NDArray) -> list[bytes]:
    """The keys in concatenated letters."""
    whole = letters.tobytes()
    return [whole[a:b] for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]


def join_keys(keys: Sequence[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Keys concatenated, and where each starts."""
    starts = np.zeros(len(keys) + 1, np.int64)
    np.cumsum([len(key) for key in keys], out=starts[1:])
    return np.frombuffer(b"".join(keys), np.uint8), starts


def reference_unite(
    letters: NDArray, starts: NDArray, more_letters: NDArray, more_starts: NDArray
) -> tuple[NDArray, NDArray]:
    """Where the keys of a second set go: to their place in the first, or behind it. (places, which are new)"""
    places = ReferenceWords(letters, starts).positions(more_letters, more_starts)
    new = np.flatnonzero(places < 0)
    places[new] = len(starts) - 1 + np.arange(len(new))
    return places, new


def reference_sum_cells(a: tuple, b: tuple, places: NDArray, n_terms: int) -> tuple[NDArray, ...]:
    """The cells of two tallies, each (classes, word, total, documents), where the second's tokens have new places."""
    keys, values = [], []
    for (classes, _, total, documents), moved in ((a, a[1]), (b, places[b[1]])):
        keys.append(np.repeat(np.arange(len(classes) - 1), np.diff(classes)) * max(1, n_terms) + moved)
        values.append(np.stack([total, documents]))
    cells, which = np.unique(np.concatenate(keys), return_inverse=True)
    total, documents = (np.bincount(which, v, len(cells)) + 0.0 for v in np.concatenate(values, axis=1))
    classes = np.searchsorted(cells, np.arange(len(a[0])) * max(1, n_terms)).astype(np.int64)
    return classes, (cells % max(1, n_terms)).astype(np.int32), total, documents


def occurrence_weight(count_mode: int, occurrences: float) -> float:
    """What the occurrences of a token in one document count."""
    return occurrences if count_mode == PLAIN else 1.0 if count_mode == BINARY else 1.0 + math.log(occurrences)


def occurrence_weights(count_mode: int, occurrences: NDArray) -> NDArray[np.float64]:
    if count_mode == PLAIN:
        return occurrences.astype(np.float64)
    return np.ones(len(occurrences)) if count_mode == BINARY else 1.0 + np.log(occurrences)


def hash_to_bucket(key: bytes, bits: int) -> tuple[bytes, float]:
    """The bucket of a token as a key, and the sign of its hash: MurmurHash3 of 32 bits (Appleby), seed 0."""
    full, h = 0xFFFFFFFF, 0
    padded = key + bytes(-len(key) % 4)
    for i in range(0, len(padded), 4):
        k = int.from_bytes(padded[i : i + 4], "little") * 0xCC9E2D51 & full
        h ^= (k << 15 | k >> 17) * 0x1B873593 & full
        if i + 4 <= len(key):  # the last, incomplete word is not mixed
            h = ((h << 13 | h >> 19) & full) * 5 + 0xE6546B64 & full
    h ^= len(key)
    h = (h ^ h >> 16) * 0x85EBCA6B & full
    h = (h ^ h >> 13) * 0xC2B2AE35 & full
    h ^= h >> 16
    h = h - (1 << 32) if h >> 31 else h
    return (abs(h) & ((1 << bits) - 1)).to_bytes(4, "little"), -1.0 if h < 0 else 1.0


class TokenKernel:
    """Count and score documents that are lists of keys (None: absent); with ``bits`` the keys are hashed first."""

    def __init__(self, *, bits: int, signs: bool):
        self.bits, self.signs = bits, signs

    def _count_keys(self, keys: Keys) -> list[tuple[bytes, float, float]]:
        """(key, occurrences, sign) of the tokens of a document."""
        if not self.bits:
            return [(key, times, 1.0) for key, times in Counter(keys).items()]
        counter: Counter = Counter()
        for key in keys:
            place, sign = hash_to_bucket(key, self.bits)
            counter[place + bytes([sign < 0]) if self.signs else place, sign] += 1
        return [(key, times, sign) for (key, sign), times in counter.items()]

    def count(
        self, texts: KeyLists, order: NDArray, y: NDArray, weight: NDArray, *, n_classes: int, manner: int, signed: bool
    ) -> tuple[NDArray, ...]:
        """Count the documents in ``order``: the keys, and the cells of each class."""
        place: dict[bytes, int] = {}
        cells: list[dict[int, list[float]]] = [{} for _ in range(n_classes)]
        length = np.zeros(n_classes)
        for row in order.tolist():
            keys, w, c = texts[row], float(weight[row]), int(y[row])
            if keys is None or w == 0.0:
                continue
            merged: dict[bytes, list[float]] = {}
            for key, times, sign in self._count_keys(keys):  # two tokens of one bucket may differ in sign
                both = merged.setdefault(key, [0.0, 0.0])
                both[0] += times
                both[1] += sign * times
            for key, (times, net) in merged.items():
                cell = cells[c].setdefault(place.setdefault(key, len(place)), [0.0, 0.0])
                x = w * occurrence_weight(manner, times)
                length[c] += x
                cell[0] += x * net / times if signed else x
                cell[1] += w
        indptr = np.concatenate([[0], np.cumsum([len(in_class) for in_class in cells], dtype=np.int64)])
        word = np.array([key for in_class in cells for key in in_class], np.int32)
        values = np.array([pair for in_class in cells for pair in in_class.values()], np.float64).reshape(-1, 2)
        return *join_keys(list(place)), indptr, word, values[:, 0].copy(), values[:, 1].copy(), length

    def rows(self, words: Any, documents: KeyLists) -> tuple[NDArray, NDArray, NDArray]:
        """Sparse rows (counts, positions, where rows start) of the known tokens of every document."""
        data, indices, indptr = list[float](), list[int](), np.zeros(len(documents) + 1, np.int64)
        for row, keys in enumerate(documents):
            counted = self._count_keys(keys or ())
            places = words.positions(*join_keys([key for key, _, _ in counted]))
            known: dict[int, float] = {}
            for at, (_, times, _) in zip(places.tolist(), counted, strict=True):
                if at >= 0:
                    known[at] = known.get(at, 0.0) + times
            data += known.values()
            indices += known.keys()
            indptr[row + 1] = len(data)
        return np.array(data, np.float64), np.array(indices, np.int32), indptr

    def score(self, words: Any, documents: KeyLists, *arrays: Any, manner: int) -> None:
        """Add the weights of the tokens of every document to its row of ``out``, and to ``sums`` what is common."""
        cells, column, delta, unit, base, out, sums = arrays
        data, indices, indptr = self.rows(words, documents)
        for row in range(len(documents)):
            for i in range(indptr[row], indptr[row + 1]):
                at, x = indices[i], occurrence_weight(manner, data[i])
                stored = slice(cells[at], cells[at + 1])
                out[row, column[stored]] += x * delta[stored]
                sums[row, 0] += x if unit is None else x * unit[at]
                sums[row, 1] += 0.0 if base is None else x * base[at]


@cache
def character_table(lowercase: bool) -> NDArray[np.uint32]:
    """For each character: its lower case, and flags for word characters, white space and special cases."""
    codes = np.arange(_N_TABLED, dtype=np.uint32)
    text = codes.tobytes().decode("utf-32-le", "surrogatepass")
    word, info = np.zeros(len(codes), bool), codes.copy()
    for run in re.finditer(r"\w+", text):
        word[run.start() : run.end()] = True
    special = []
    if lowercase:
        cased = [(c, low) for c, low in enumerate(map(str.lower, text)) if low != text[c]]
        special = [c for c, low in cased if len(low) > 1 or f"a{text[c]}".lower() != f"a{low}"]
        for c, low in cased:
            info[c] = ord(low[0])
    info |= word[info] * np.uint32(WORD)
    for run in re.finditer(r"\s+", text):
        info[run.start() : run.end()] |= np.uint32(SPACE)
    info[special] |= np.uint32(SPECIAL)
    return info


@cache
def ascii_fold_table(lowercase: bool) -> NDArray[np.uint8]:
    """For each byte: its lower case if it is an ASCII word character, 0 if it is another, 1 if it is not ASCII."""
    info = character_table(lowercase)[:128]
    out = np.ones(256, np.uint8)
    out[:128] = np.where(info & WORD, info & _CODE, 0)
    return out
