"""NumPy reference implementations of the loops over cells: combinations of levels of sets of columns.

``sets`` is (set, position) of columns, ``sizes`` has the number of levels of each column. The cells of a set are
numbered with the last column fastest; those of all sets follow one another. A row is left out of a set in which one of
its values is absent (below 0).
"""

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
SubsetCounts = dict[tuple[int, ...], Floats]


class Sets(NamedTuple):
    """Sets of columns and the sizes of all columns: made once for rows scored one by one."""

    columns: Codes
    sizes: Codes


def check_classes(y: Codes, n_classes: int) -> None:
    if len(y) and (y.min() < 0 or y.max() >= n_classes):
        raise IndexError("a class code lies outside the classes")


def cell_counts(codes: NDArray, y: Codes, w: Floats | None, n_classes: int, sets: Codes, sizes: Codes) -> Floats:
    """(class, cell) the weight of each combination of levels."""
    check_classes(y, n_classes)
    out = np.empty((n_classes, int(np.asarray(sizes, np.intp)[sets].prod(axis=1).sum())))
    for cells, _, cell in _iterate_sets(codes, sets, sizes):
        n, seen = cells.stop - cells.start, cell >= 0
        if (cell >= n).any():
            raise IndexError("a level code lies outside its feature's levels")
        weight = None if w is None else w[seen]
        out[:, cells] = np.bincount(y[seen] * n + cell[seen], weight, n_classes * n).reshape(n_classes, n)
    return out


def cell_terms(counts: Floats, sets: Codes, sizes: Codes, towards: float, spread: float) -> Floats:
    """(class, cell) log ratio of the proportion of a cell to that expected from its smaller sets, shrunk towards these.

    ``towards`` is the weight in rows of the smaller sets, ``spread`` that of equal proportions in a single column.
    """
    out = np.empty_like(counts)
    for cells, shape, n in _margins(counts, sets, sizes):
        out[:, cells] = _log_ratio(n, shape, towards, spread).reshape(len(counts), -1)
    return out


def held_out_cells(
    counts: Floats, codes: NDArray, y: Codes, w: Floats | None, sets: Codes, sizes: Codes, towards: float, spread: float
) -> Floats:
    """(row, set) the term of a row's cell in its own class, where the row is taken out of the counts.

    No more is taken out than the cell has. 0 for missing and unseen values.
    """
    out = np.zeros((len(codes), len(sets)))
    check_classes(y, len(counts))
    both = zip(_iterate_sets(codes, sets, sizes), _margins(counts, sets, sizes), strict=True)
    for s, ((cells, shape, cell), (_, _, n)) in enumerate(both):
        known = np.flatnonzero((cell >= 0) & (cell < cells.stop - cells.start))
        at = (y[known], *np.unravel_index(cell[known], shape))
        gone = np.minimum(1.0 if w is None else w[known], n[tuple(range(len(shape)))][at])
        left = {subset: np.broadcast_to(m, (len(counts), *shape))[at] - gone for subset, m in n.items()}
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
    for s, (cells, _, cell) in enumerate(_iterate_sets(codes, sets, sizes)):
        f = np.where(cell[:, None] < 0, 0.0, table[:, cells].T[np.maximum(cell, 0)])
        f[row, y] = own_terms[:, s]
        mean = (posterior * f).sum(axis=1)
        slope[s] = weight @ (f[row, y] - mean)
        information[s] = weight @ ((posterior * f * f).sum(axis=1) - mean * mean)
    return slope, information


def add_cells(codes: NDArray, sets: Sets, table: Floats, out: Floats) -> int:
    """out[r, c] += table[cell, c] of the cell of every set; nothing where a value is absent or past the levels.

    Columns of the table past the classes of ``out`` are padding. Returns how many values are absent.
    """
    for cells, _, cell in _iterate_sets(codes, *sets):
        known = (cell >= 0) & (cell < cells.stop - cells.start)
        out += np.where(known[:, None], table[np.where(known, cells.start + cell, 0), : out.shape[1]], 0.0)
    return int((codes < 0).sum())


def take_cells(
    codes: NDArray, sets: Codes, sizes: Codes, table: Floats, unseen: Floats, y: Codes, own_terms: Floats, out: NDArray
) -> None:
    """out[r, c, s] = table[cell, c] of the cell of set s, but ``own_terms[r, s]`` in the row's own class.

    ``unseen[s, c]`` where a value is past the levels, 0 where one is absent.
    """
    check_classes(y, out.shape[1])
    row, k = np.arange(len(codes)), out.shape[1]
    for s, (cells, _, cell) in enumerate(_iterate_sets(codes, sets, sizes)):
        lookup = np.vstack([table[cells, :k], unseen[s : s + 1, :k], np.zeros((1, k))])
        out[:, :, s] = lookup[np.where(cell < 0, len(lookup) - 1, cell)]
        out[row, y, s] = own_terms[:, s]


def _shapes(sets: Codes, sizes: Codes) -> Iterator[tuple[Codes, slice, tuple[int, ...]]]:
    """The columns, cells and shape of each set."""
    ends = np.cumsum(np.asarray(sizes, np.intp)[sets].prod(axis=1)).tolist()
    for columns, (start, end) in zip(sets, pairwise([0, *ends]), strict=True):
        yield columns, slice(start, end), tuple(int(sizes[j]) for j in columns)


def _iterate_sets(codes: NDArray, sets: Codes, sizes: Codes) -> Iterator[tuple[slice, tuple[int, ...], Codes]]:
    """The cells of each set, their shape, and the cell of each row: -1 if absent, past the last if unseen."""
    for columns, cells, shape in _shapes(sets, sizes):
        x, strides = codes[:, columns], np.cumprod((1, *shape[:0:-1]))[::-1]
        past = x >= np.array(shape, np.int64)
        cell = np.where(past, 0, x).astype(np.int64) @ strides
        cell[past.any(axis=1)] = cells.stop - cells.start
        cell[(x < 0).any(axis=1)] = -1
        yield cells, shape, cell


def _margins(counts: Floats, sets: Codes, sizes: Codes) -> Iterator[tuple[slice, tuple[int, ...], SubsetCounts]]:
    """The cells of each set, their shape, and (class, level, ...) the counts of every subset of its positions."""
    for _, cells, shape in _shapes(sets, sizes):
        table, n = counts[:, cells].reshape(len(counts), *shape), SubsetCounts()
        for subset in _subsets(len(shape)):
            others = tuple(i + 1 for i in range(len(shape)) if i not in subset)
            n[subset] = table.sum(axis=others, keepdims=True)
        yield cells, shape, n


def _subsets(order: int) -> Iterator[tuple[int, ...]]:
    """All subsets of positions, the empty one first and the whole last."""
    return (subset for r in range(order + 1) for subset in combinations(range(order), r))


def _log_ratio(n: SubsetCounts, shape: tuple[int, ...], towards: float, spread: float) -> Floats:
    """The contribution of a cell from the counts of every subset of positions."""
    p: SubsetCounts = {}
    for subset in _subsets(len(shape)):
        if len(subset) == 1:
            p[subset] = (n[subset] + spread / max(1, shape[subset[0]])) / (n[()] + spread)
        elif subset:
            p[subset] = (n[subset] + towards * _expected_proportions(p, subset)) / (n[()] + towards)
    whole = tuple(range(len(shape)))
    return np.log(p[whole] / _expected_proportions(p, whole))


def _expected_proportions(p: SubsetCounts, subset: tuple[int, ...]) -> Floats:
    """Proportions expected from the smaller sets: their product, with the inner ones divided out (inclusion-exclusion).

    For three or more columns the product need not be a probability: it is capped at the smallest proportion among the
    sets with one column less.
    """
    out: Floats = np.ones(())
    for r in range(1, len(subset)):
        for inner in combinations(subset, r):
            out = out * p[inner] if (len(subset) - r) % 2 else out / p[inner]
    if len(subset) > 2:
        for inner in combinations(subset, len(subset) - 1):
            out = np.minimum(out, p[inner])
    return out
