"""NumPy reference implementations of the loops over cells: combinations of levels of sets of columns.

``sets`` is (set, position) of columns, ``sizes`` says how many levels each column has. The cells of a set are numbered
row by row, the last column fastest; those of all sets follow one another. A set is
left out of a row in which a value is absent (below 0).
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
SubsetCounts = dict[tuple[int, ...], Floats]


class Sets(NamedTuple):
    """Sets of columns and the sizes of all columns: made once for rows that come one by one."""

    columns: Codes
    sizes: Codes


def cell_counts(codes: NDArray, y: Codes, w: Floats | None, n_classes: int, sets: Codes, sizes: Codes) -> Floats:
    """(class, cell) the weight of each combination of levels."""
    _check_classes(y, n_classes)
    out = np.empty((n_classes, _offsets(sets, sizes)[-1]))
    for own, _, cell in _iterate_sets(codes, sets, sizes):
        n, seen = own.stop - own.start, cell >= 0
        if (cell >= n).any():
            raise IndexError("a level code lies outside its feature's levels")
        weight = None if w is None else w[seen]
        out[:, own] = np.bincount(y[seen] * n + cell[seen], weight, n_classes * n).reshape(n_classes, n)
    return out


def cell_terms(counts: Floats, sets: Codes, sizes: Codes, towards: float, spread: float) -> Floats:
    """(class, cell) log ratio of the proportion of a cell to that expected from its smaller sets, shrunk towards these.

    ``towards`` is the weight in rows of the smaller sets, ``spread`` that of equal proportions in a single column.
    """
    out = np.empty_like(counts)
    for own, shape, n in _margins(counts, sets, sizes):
        out[:, own] = _log_ratio(n, shape, towards, spread).reshape(len(counts), -1)
    return out


def held_out_cells(
    counts: Floats, codes: NDArray, y: Codes, w: Floats | None, sets: Codes, sizes: Codes, towards: float, spread: float
) -> Floats:
    """(row, set) the term of a row's cell in its own class, where the row is taken out of the counts.

    No more is taken out than the cell has. 0 for missing and unseen values.
    """
    out = np.zeros((len(codes), len(sets)))
    _check_classes(y, len(counts))
    both = zip(_iterate_sets(codes, sets, sizes), _margins(counts, sets, sizes), strict=True)
    for s, ((own, shape, cell), (_, _, n)) in enumerate(both):
        known = np.flatnonzero((cell >= 0) & (cell < own.stop - own.start))
        at = (y[known], *np.unravel_index(cell[known], shape))
        gone = np.minimum(1.0 if w is None else w[known], n[tuple(range(len(shape)))][at])
        left = {some: np.broadcast_to(m, (len(counts), *shape))[at] - gone for some, m in n.items()}
        out[known, s] = _log_ratio(left, shape, towards, spread)
    return out


def score_cells(
    codes: NDArray,
    y: Codes,
    w: Floats | None,
    left_out: Floats | None,
    posterior: Floats,
    sets: Codes,
    sizes: Codes,
    towards: float,
    spread: float,
) -> tuple[Floats, Floats]:
    """(set,) the slope and the information of the likelihood where each set's terms join those of a posterior.

    The sums over rows of f(y) - sum_c p_c f(c), and of the variance of f under p; each row left out of its own terms,
    from whose counts ``left_out`` is taken.
    """
    k, row = posterior.shape[1], np.arange(len(codes))
    counts = cell_counts(codes, y, w, k, sets, sizes)
    table = cell_terms(counts, sets, sizes, towards, spread)
    own_terms = held_out_cells(counts, codes, y, left_out, sets, sizes, towards, spread)
    slope, information = np.zeros((2, len(sets)))
    weight = np.ones(len(y)) if w is None else w
    for s, (own, _, cell) in enumerate(_iterate_sets(codes, sets, sizes)):
        f = np.where(cell[:, None] < 0, 0.0, table[:, own].T[np.maximum(cell, 0)])
        f[row, y] = own_terms[:, s]
        mean = (posterior * f).sum(axis=1)
        slope[s] = weight @ (f[row, y] - mean)
        information[s] = weight @ ((posterior * f * f).sum(axis=1) - mean * mean)
    return slope, information


def add_cells(codes: NDArray, sets: Sets, table: Floats, out: Floats) -> int:
    """out[r, c] += table[cell, c] of the cell of every set; nothing where a value is absent or past the levels.

    Columns of the table past the classes of ``out`` are padding. Returns how many values are absent.
    """
    for own, _, cell in _iterate_sets(codes, *sets):
        known = (cell >= 0) & (cell < own.stop - own.start)
        out += np.where(known[:, None], table[np.where(known, own.start + cell, 0), : out.shape[1]], 0.0)
    return int((codes < 0).sum())


def take_cells(
    codes: NDArray, sets: Codes, sizes: Codes, table: Floats, unseen: Floats, y: Codes, own_terms: Floats, out: NDArray
) -> None:
    """out[r, c, s] = table[cell, c] of the cell of set s, but ``own_terms[r, s]`` in the row's own class.

    ``unseen[s, c]`` where a value is past the levels, 0 where one is absent.
    """
    _check_classes(y, out.shape[1])
    row = np.arange(len(codes))
    for s, (own, _, cell) in enumerate(_iterate_sets(codes, sets, sizes)):
        n = own.stop - own.start
        lut = np.vstack([table[own, : out.shape[1]], unseen[s : s + 1, : out.shape[1]], np.zeros((1, out.shape[1]))])
        out[:, :, s] = lut[np.where(cell < 0, n + 1, cell)]
        out[row, y, s] = own_terms[:, s]


def _check_classes(y: Codes, n_classes: int) -> None:
    if len(y) and (y.min() < 0 or y.max() >= n_classes):
        raise IndexError("a class code lies outside the classes")


def _offsets(sets: Codes, sizes: Codes) -> Codes:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.intp)[sets].prod(axis=1))]).astype(np.intp)


def _iterate_sets(codes: NDArray, sets: Codes, sizes: Codes) -> Iterator[tuple[slice, tuple[int, ...], Codes]]:
    """Of each set which cells are its own, their shape, and that of each row: -1 absent, past the last if new."""
    offsets = _offsets(sets, sizes)
    for s, columns in enumerate(sets):
        own, shape = slice(int(offsets[s]), int(offsets[s + 1])), tuple(int(sizes[j]) for j in columns)
        x, strides = codes[:, columns], np.cumprod((1, *shape[:0:-1]))[::-1]
        past = x >= np.array(shape, np.int64)
        cell = np.where(past, 0, x).astype(np.int64) @ strides
        cell[past.any(axis=1)] = own.stop - own.start
        cell[(x < 0).any(axis=1)] = -1
        yield own, shape, cell


def _margins(counts: Floats, sets: Codes, sizes: Codes) -> Iterator[tuple[slice, tuple[int, ...], SubsetCounts]]:
    """Of each set its cells, their shape, and (class, levels ...) the counts of every set of positions within it."""
    offsets = _offsets(sets, sizes)
    for s, columns in enumerate(sets):
        own, shape = slice(int(offsets[s]), int(offsets[s + 1])), tuple(int(sizes[j]) for j in columns)
        table = counts[:, own].reshape(len(counts), *shape)
        others = {some: tuple(i + 1 for i in range(len(shape)) if i not in some) for some in _subsets(len(shape))}
        yield own, shape, {some: table.sum(axis=axes, keepdims=True) for some, axes in others.items()}


def _subsets(order: int) -> Iterator[tuple[int, ...]]:
    """All sets of positions, the empty one first and all of them last."""
    return (some for r in range(order + 1) for some in combinations(range(order), r))


def _log_ratio(n: SubsetCounts, shape: tuple[int, ...], towards: float, spread: float) -> Floats:
    """The term from the counts of every set of positions."""
    share: SubsetCounts = {}
    for some in _subsets(len(shape)):
        if len(some) == 1:
            share[some] = (n[some] + spread / max(1, shape[some[0]])) / (n[()] + spread)
        elif some:
            share[some] = (n[some] + towards * _expected_proportions(share, some)) / (n[()] + towards)
    whole = tuple(range(len(shape)))
    return np.log(share[whole] / _expected_proportions(share, whole))


def _expected_proportions(share: SubsetCounts, some: tuple[int, ...]) -> Floats:
    """Proportions expected from the smaller sets: their product, with the inner ones divided out (inclusion-exclusion).

    For three or more columns the product need not be a probability: it is capped at the smallest proportion among the
    sets with one column less.
    """
    out: Floats = np.ones(())
    for r in range(1, len(some)):
        for inner in combinations(some, r):
            out = out * share[inner] if (len(some) - r) % 2 else out / share[inner]
    if len(some) > 2:
        for inner in combinations(some, len(some) - 1):
            out = np.minimum(out, share[inner])
    return out
