"""Interaction: what some columns say together of the class, beyond what they say apart. Shrunk to nothing.

Of two columns, log p(i, j | c) - log p(i | c) - log p(j | c), where

    p(i, j | c) = (n_cij + m p_i p_j) / (n_c + m)

so that a cell that was never met says 0, and one that was met often says what was counted. Of three columns, what they
say beyond their pairs, shrunk to what the pairs say. A row that is left out is taken from its cell and all its margins.

>>> agree, apart = [[8.0, 1.0], [1.0, 8.0]], [[4.0, 5.0], [5.0, 4.0]]  # in class 0 the two columns agree
>>> tally = Cells(np.array([agree, apart]).reshape(2, 4), Layout(((0, 1),), (2, 2)))
>>> log_ratio(tally).round(2).tolist()
[[0.41, -0.69, -0.69, 0.41], [-0.07, 0.07, 0.07, -0.07]]
"""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from candide.rows.blocks import Codes, Floats
from candide.tally.cells import Cells, Layout, Subset

__all__ = ["Layout", "held_out", "log_ratio"]

TOWARDS = 10.0  # rows that the margins weigh in a cell
_SPREAD = 1.0  # rows that even shares weigh in a margin
_VALUES = 1 << 20  # worked at once

Shares = dict[Subset, Floats]


def log_ratio(tally: Cells) -> Floats:
    """(class, cell) the term of every cell."""
    out = np.empty_like(tally.counts)
    for sets, part in _pieces(tally):
        out[:, sets] = _term({some: n[:, number] for some, (n, number) in _margins(part).items()}, part.layout)
    return out


def held_out(tally: Cells, table: Floats, codes: NDArray, y: Codes, weight: Floats | None = None) -> Floats:
    """(row, class, set) terms of rows, each without itself; ``table`` is the tally's own.

    Only a row's own class changes. What is absent, and what was never met, says 0.
    """
    layout, row = tally.layout, np.arange(len(codes))
    place = layout.place(codes)
    known = (place >= 0) & (place < np.diff(layout.offsets))
    cell = np.where(known, layout.offsets[:-1] + place, 0)
    gone = np.where(known, 1.0 if weight is None else weight[:, None], 0.0)
    out = table[:, cell].transpose(1, 0, 2)
    margins = {some: n[y[:, None], number[cell]] - gone for some, (n, number) in _margins(tally).items()}
    out[row, y] = _term(margins, layout, layout.shape.T)
    out *= known[:, None, :]
    return out


def _pieces(tally: Cells) -> list[tuple[slice, Cells]]:
    """The cells of some sets at a time, so that what is worked on stays small."""
    layout, k = tally.layout, len(tally.counts)
    most, pieces, start = max(1, _VALUES // max(1, k)), [], 0
    while start < len(layout.sets):
        stop = max(start + 1, int(np.searchsorted(layout.offsets, layout.offsets[start] + most, side="right")) - 1)
        cells = slice(int(layout.offsets[start]), int(layout.offsets[stop]))
        pieces.append((cells, Cells(tally.counts[:, cells], layout.some(slice(start, stop)))))
        start = stop
    return pieces


def _margins(tally: Cells) -> dict[Subset, tuple[Floats, Codes]]:
    """For every set of positions the counts (class, margin), and the margin of each cell."""
    out = {}
    for some in tally.layout.subsets():
        number, n = tally.layout.margin(some)
        counts = np.stack([np.bincount(number, one, n) for one in tally.counts]).astype(np.float64, copy=False)
        out[some] = counts, number
    return out


def _term(n: Shares, layout: Layout, sizes: Codes | None = None) -> Floats:
    """The log-ratio from the counts of every set of positions; ``sizes`` (position, ...) the levels of each."""
    if sizes is None:
        sizes = np.repeat(layout.shape, np.diff(layout.offsets), axis=0).T
    total = n[()]
    share: Shares = {}
    for some in layout.subsets():
        if len(some) == 1:
            share[some] = (n[some] + _SPREAD / sizes[some[0]]) / (total + _SPREAD)
        elif some:
            share[some] = (n[some] + TOWARDS * _expected(share, some)) / (total + TOWARDS)
    whole = tuple(range(layout.order))
    return np.log(share[whole] / _expected(share, whole))


def _expected(share: Shares, some: Subset) -> Floats:
    """What the smaller sets within one say of it: their product, with the inner ones divided out again and again.

    Of three or more columns that product need be no probability: it is held at the least of those one smaller.
    """
    out: Floats = np.ones(())
    for r in range(1, len(some)):
        for inner in combinations(some, r):
            out = out * share[inner] if (len(some) - r) % 2 else out / share[inner]
    if len(some) > 2:
        for inner in combinations(some, len(some) - 1):
            out = np.minimum(out, share[inner])
    return out
