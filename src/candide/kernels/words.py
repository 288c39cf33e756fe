"""The kernels of words that have weights of their own, in NumPy: what `_words.pxi` computes, readable.

A word says ``table[word, c]`` of a class; of a document's own class it says ``own`` more, for that document was left
out of its counts. Documents are rows in CSR, ``x`` how much each of their words counts. Tables have zeros behind the
classes, up to whole lots of eight.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


def word_scores(starts, term, x, own, table, y, weight: Floats, out: Floats) -> None:
    """out[d, c] += the sum over the words of a document of weight * x * what they say of a class."""
    row, term, said = _token_scores(starts, term, own, table, y)
    each = (weight[term] * x[_stored_slice(starts)])[:, None] * said
    for c in range(out.shape[1]):
        out[:, c] += np.bincount(row, each[:, c], len(out))


def word_slopes(starts, term, x, own, table, y, error: NDArray, out: Floats) -> None:
    """out[v] += the sum over documents of x * what the word says of each class, times the error of that class."""
    row, term, said = _token_scores(starts, term, own, table, y)
    out += np.bincount(term, x[_stored_slice(starts)] * (error[row] * said).sum(axis=1), len(out))


def word_spreads(starts, term, x, own, table, y, often: Floats, share: NDArray, out: Floats) -> None:
    """out[v] += the sum over documents of often * x**2 * the variance, over the classes, of what the word says."""
    row, term, said = _token_scores(starts, term, own, table, y)
    mean = (share[row] * said).sum(axis=1)
    variance = np.maximum((share[row] * said**2).sum(axis=1) - mean**2, 0.0)
    out += np.bincount(term, often[row] * x[_stored_slice(starts)].astype(np.float64) ** 2 * variance, len(out))


def word_groups(starts, term, x, own, table, y, group: Codes, out: Floats) -> None:
    """out[d, g, c] += the sum over the words of a document that are of group g of x * what they say of a class."""
    row, term, said = _token_scores(starts, term, own, table, y)
    np.add.at(out, (row, group[term]), x[_stored_slice(starts)].astype(np.float64)[:, None] * said)


def _stored_slice(starts: Codes) -> slice:
    return slice(starts[0], starts[-1])


def _token_scores(starts: Codes, term: NDArray, own: NDArray, table: NDArray, y: Codes) -> tuple[Codes, Codes, Floats]:
    """The row and the term of every word, and what it says of each class."""
    if len(starts) != len(y) + 1 or starts[0] < 0 or (np.diff(starts) < 0).any() or starts[-1] > len(term):
        raise ValueError("a word, a class or a document lies outside the tables")
    row, term = np.repeat(np.arange(len(y)), np.diff(starts)), term[_stored_slice(starts)]
    for codes, size in ((term, table.shape[0]), (y, table.shape[1])):
        if len(codes) and not (codes.min() >= 0 and codes.max() < size):
            raise ValueError("a word, a class or a document lies outside the tables")
    said = table[term].astype(np.float64)
    said[np.arange(len(row)), y[row]] += own[_stored_slice(starts)]
    return row, term, said
