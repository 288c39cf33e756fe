"""Interaction: what some columns say together of the class, beyond what they say apart. Shrunk to nothing.

Of two columns, log p(i, j | c) - log p(i | c) - log p(j | c), where

    p(i, j | c) = (n_cij + m p_i p_j) / (n_c + m)

so that one that was met often says what was counted, and in a class of few rows all say nearly 0. A cell that a class
of many rows has never shown speaks against it: log(m / (n_c + m)). Of three columns, what they say beyond their pairs,
shrunk to what the pairs say. A row that is left out is taken from its cell and all its margins.

>>> agree, apart = [[8.0, 1.0], [1.0, 8.0]], [[4.0, 5.0], [5.0, 4.0]]  # in class 0 the two columns agree
>>> tally = CellTally(np.array([agree, apart]).reshape(2, 4), CellLayout(((0, 1),), (2, 2)))
>>> log_ratio(tally).round(2).tolist()
[[0.41, -0.69, -0.69, 0.41], [-0.07, 0.07, 0.07, -0.07]]
"""

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Codes, Floats
from candide.kernels import threads
from candide.tally.cells import CellLayout, CellTally

__all__ = ["CellLayout", "held_out_contributions", "log_ratio", "score_sets"]

MARGIN_ROWS = 10.0  # rows that the margins weigh in a cell
_UNIFORM_ROWS = 1.0  # rows that even shares weigh in a margin
_LOG_COST = 8  # what a logarithm costs, in products


def log_ratio(tally: CellTally) -> Floats:
    """(class, cell) the term of every cell."""
    layout, out = tally.layout, np.empty_like(tally.counts)

    def work(sets: slice) -> None:
        columns, sizes = layout.arrays
        cells = slice(layout.offsets[sets.start], layout.offsets[sets.stop])
        out[:, cells] = kernels.cell_terms(tally.counts[:, cells], columns[sets], sizes, MARGIN_ROWS, _UNIFORM_ROWS)

    threads.map_rows(work, len(layout.sets), cost=_LOG_COST * tally.counts.size // max(1, len(layout.sets)))
    return out


def held_out_contributions(
    tally: CellTally,
    table: Floats,
    codes: NDArray,
    y: Codes,
    weight: Floats | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """(row, class, set) terms of rows, each without itself; ``table`` is the tally's own, ``out`` where they go.

    Only a row's own class changes. What is absent, and what is new, says 0.
    """
    layout, (columns, sizes) = tally.layout, tally.layout.arrays
    n, k = len(codes), len(tally.counts)
    out = np.empty((n, k, len(columns))) if out is None else out
    own, said, new = np.empty((len(columns), n)), np.ascontiguousarray(table.T), np.zeros((len(columns), k))

    def leave(sets: slice) -> None:
        counts = tally.counts[:, layout.offsets[sets.start] : layout.offsets[sets.stop]]
        own[sets] = kernels.held_out_cells(counts, codes, y, weight, columns[sets], sizes, MARGIN_ROWS, _UNIFORM_ROWS).T

    def take(rows: slice) -> None:
        kernels.take_cells(codes[rows], columns, sizes, said, new, y[rows], own.T[rows], out[rows])

    threads.map_rows(leave, len(columns), cost=_LOG_COST * n)
    threads.map_rows(take, n, cost=k * len(columns))
    return out


def score_sets(
    sets: Codes,
    codes: NDArray,
    sizes: Codes,
    y: Codes,
    posterior: Floats,
    weight: Floats | None = None,
    held_out_mask: Floats | None = None,
) -> Floats:
    """(set,) z of the score test of adding what each of some ``sets`` (set, position) says to a posterior.

    ``left_out`` is what leaving a row out takes from the counts, where that is not its weight.
    """
    given = y, weight, weight if held_out_mask is None else held_out_mask, posterior

    def work(some: slice) -> tuple[Floats, Floats]:
        return kernels.score_cells(codes, *given, sets[some], sizes, MARGIN_ROWS, _UNIFORM_ROWS)

    found = threads.map_rows(work, len(sets), cost=len(y) * (_LOG_COST + posterior.shape[1]))
    slope, information = np.concatenate(found, axis=1)
    return slope / np.sqrt(np.maximum(information, 1e-9))
