"""Grow decision tables: chains of tables by boosting, each blind to a quarter of the rows.

A table puts each row into a cell by up to eight yes/no questions. With N rows of class c observed in the cell, and E
expected by the tables before it, the cell adds

    v(c) = log((N + a) / (E + a))        centred over the classes, a = 1

to the score: the log posterior mean of observed / expected under a Gamma(a, a) prior, and a step of iterative scaling.
Only a share of it is added before the next table is grown.

The gain of a question is the sum over the cells of |sum of r|^2 / (sum of h + 1), with the residuals r = [y = c] - p(c)
and the curvatures h = sum of p(c) (1 - p(c)). Its root is comparable to a z-score. To the best root of each column a
standard normal number is added before the best column is taken, so that the tables of small samples differ.

All chains grow in step, until the rows that they are blind to gain no more. Rows with the same codes are in the same
quarter, so that no chain has seen a copy of a row that it is scored on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Codes, Floats
from candide.data.equal_rows import hash_column, mix
from candide.data.table import Name
from candide.kernels import threads
from candide.kernels.decision_tables import INCOMPLETE_NUMBERS, LEVELS, N_CODES, NUMBERS

N_QUARTERS = 4
MAX_QUESTIONS = 8
N_CELLS = 1 << MAX_QUESTIONS
STEP = 0.3  # share of a table's values that is added before the next is grown
_PRIOR_ROWS = 1.0  # a
_RIDGE, _LEVEL_RIDGE = 1.0, 5.0  # added to curvatures: of gains, and where levels are put in order
_MAX_SLOPES = 6  # more classes are projected onto this many random directions
_FEW_ROWS = 1000  # up to which two chains are blind to each quarter
_PATIENCE = 12  # tables without a gain for the rows left out
_MIN_GAIN = 1e-5  # of the mean log-likelihood
_FIRST_SEGMENT = 8  # tables; each next segment has twice as many
_MAX_SUM = 2**31 - 2**20  # of whole slopes and curvatures


@dataclass(frozen=True, eq=False)
class ByteRows:
    """Rows as codes of one byte, 0 for a missing or unseen value, with a random number for each column."""

    codes: NDArray[np.uint8]  # (column, row)
    sizes: Codes  # (column,) codes of each
    kinds: NDArray[np.uint8]  # (column,)
    keys: Codes  # (column,)

    @classmethod
    def from_block(cls, block: NDArray, n_levels: Sequence[int], is_level: Sequence[bool], keys: Codes) -> "ByteRows":
        """Rows of a block (row, column) of codes, -1 where a value is absent."""
        codes = byte_codes(block, n_levels)
        incomplete = (codes == 0).any(axis=1)
        kinds = np.where(is_level, LEVELS, np.where(incomplete, INCOMPLETE_NUMBERS, NUMBERS)).astype(np.uint8)
        return cls(codes, np.asarray(n_levels, np.intp) + 1, kinds, keys)

    def __len__(self) -> int:
        return self.codes.shape[1]

    def take(self, rows: Codes) -> "ByteRows":
        return ByteRows(np.ascontiguousarray(self.codes[:, rows]), self.sizes, self.kinds, self.keys)

    @cached_property
    def quarters(self) -> Codes:
        return assign_quarters(self.codes, self.keys)


def byte_codes(block: NDArray, n_levels: Sequence[int]) -> NDArray[np.uint8]:
    """(column, row) the codes of a block (row, column) plus one; 0 for absent and unseen values."""
    out = np.empty(block.shape[::-1], np.uint8)
    for j, n in enumerate(n_levels):
        code = block[:, j]
        out[j] = np.where((code >= 0) & (code < n), code + 1, 0)
    return out


def column_keys(names: Sequence[Name]) -> Codes:
    """(column,) a random number for each name."""
    return (mix(hash_column(np.array([str(name) for name in names], object))) >> np.uint64(2)).astype(np.int64)


def assign_quarters(codes: NDArray[np.uint8], keys: Codes) -> Codes:
    """(row,) the quarter of rows of codes (column, row), whatever the order of rows and columns."""
    total = np.zeros(codes.shape[1], np.uint64)
    with np.errstate(over="ignore"):
        for code, key in zip(codes, keys.astype(np.uint64), strict=True):
            total += mix(mix(np.arange(N_CODES, dtype=np.uint64), 1) + key)[code]
        return (mix(total) >> np.uint64(62)).astype(np.intp)


@dataclass(frozen=True, eq=False)
class DecisionTable:
    columns: NDArray[np.int32]  # (question,) the column that it asks of
    sides: NDArray[np.uint8]  # (question, 256) the answer of each code
    observed: Floats  # (cell, class) rows
    expected: Floats  # (cell, class) rows

    @cached_property
    def values(self) -> Floats:
        """(cell, class) what it adds to the score."""
        values = np.log((self.observed + _PRIOR_ROWS) / (self.expected + _PRIOR_ROWS))
        return STEP * (values - values.mean(axis=1, keepdims=True))


class Chain:
    """Tables grown one after another from the rows outside a quarter."""

    def __init__(
        self, rows: ByteRows, y: Codes, weight: Floats | None, log_prior: Floats, blind: int, seed: Sequence[int]
    ):
        seen, self.unseen = np.flatnonzero(rows.quarters != blind), np.flatnonzero(rows.quarters == blind)
        self.rows, self.unseen_codes = rows.take(seen), rows.take(self.unseen).codes
        self.y, self.weight = y[seen], None if weight is None else weight[seen]
        self.log_prior, self.k, self.seed = log_prior, len(log_prior), tuple(seed)
        self.depth = int(np.clip(np.log2(max(1, len(seen))) - 1, 2, MAX_QUESTIONS))
        self.scores = np.repeat(log_prior[None], len(seen), axis=0)
        self.tables: list[DecisionTable] = []

    def grow(self) -> Floats:
        """Add a table, and return what it adds to the scores of the unseen rows (row, class)."""
        p = self.scores.copy()
        kernels.posterior(p, np.exp(self.log_prior))
        rng = np.random.default_rng([*self.seed, len(self.tables)])
        slopes, curvature, scale = self._whole_slopes(p, self._directions(rng))
        rows, order = self.rows, np.argsort(self.rows.keys)
        luck = np.empty((self.depth, len(order)), np.float32)
        luck[:, order] = rng.standard_normal(luck.shape, np.float32)
        columns, sides, cells = kernels.grow_table(
            rows.codes, rows.sizes, rows.kinds, slopes, curvature, scale, luck, _RIDGE, _LEVEL_RIDGE
        )
        expected = kernels.cell_sums(cells, p if self.weight is None else p * self.weight[:, None])
        observed = np.bincount(cells.astype(np.intp) * self.k + self.y, self.weight, N_CELLS * self.k).astype(float)
        table = DecisionTable(columns, sides, observed.reshape(N_CELLS, self.k), expected)
        self.tables.append(table)
        self.scores += table.values[cells]
        return table.values[self._unseen_cells(table)]

    def _whole_slopes(self, p: Floats, directions: Floats) -> tuple[NDArray[np.int32], NDArray[np.int32], float]:
        """(row, slope) residuals and (row,) curvatures in units of a scale, such that no sum of them overflows."""
        curvature = 1.0 - np.einsum("rc,rc->r", p, p)
        slopes = directions[self.y] - p @ directions
        if self.weight is not None:
            slopes *= self.weight[:, None]
            curvature *= self.weight
        scale = max(float(np.abs(slopes).sum(axis=0).max()), float(curvature.sum()), 1e-300) / _MAX_SUM
        return np.rint(slopes / scale).astype(np.int32), np.rint(curvature / scale).astype(np.int32), scale

    def _directions(self, rng: np.random.Generator) -> Floats:
        """(class, slope) of the residuals that questions are chosen by."""
        if self.k == 2:
            return np.array([[-1.0], [1.0]]) / np.sqrt(2.0)
        if self.k <= _MAX_SLOPES:
            return np.eye(self.k)[:, rng.permutation(self.k)]
        return rng.choice([-1.0, 1.0], (self.k, _MAX_SLOPES)) / np.sqrt(_MAX_SLOPES)

    def _unseen_cells(self, table: DecisionTable) -> NDArray[np.uint8]:
        n = len(table.columns)
        values = np.zeros((1, 1 << n, 1), np.float32)
        return kernels.table_cells(self.unseen_codes, kernels.Tables(table.columns[None], table.sides[None], values))[0]


@dataclass(frozen=True, eq=False)
class GrownTables:
    """The tables of all chains, chain by chain; chain i is blind to quarter i modulo 4."""

    tables: Sequence[DecisionTable]
    n_tables: int  # of each chain
    held_out_loss: float  # mean negative log-likelihood of the rows that chains are blind to


def grow_tables(
    rows: ByteRows, y: Codes, weight: Floats | None, log_prior: Floats, max_tables: int, seed: int = 0
) -> GrownTables:
    """Grow chains in step, until the rows that each is blind to gain no more; fewer tables may be best, or none."""
    n, w = len(rows), np.ones(len(rows)) if weight is None else weight
    per_quarter = 2 if n <= _FEW_ROWS else 1
    chains = [
        Chain(rows, y, weight, log_prior, quarter, (seed, turn, quarter))
        for turn in range(per_quarter)
        for quarter in range(N_QUARTERS)
    ]
    scores, at, total = np.repeat(log_prior[None], n, axis=0), np.arange(n), float(w.sum())
    best = _held_out_loss(scores, at, y, w) - _MIN_GAIN * total
    n_best = 0
    for n_tables in range(1, max_tables + 1):
        added = threads.map_rows(
            lambda some: [chain.grow() for chain in chains[some]], len(chains), cost=n * len(rows.sizes) * MAX_QUESTIONS
        )
        for chain, part in zip(chains, (part for group in added for part in group), strict=True):
            scores[chain.unseen] += part / per_quarter
        loss = _held_out_loss(scores, at, y, w)
        if loss < best - _MIN_GAIN * total:
            best, n_best = loss, n_tables
        if n_tables - n_best >= _PATIENCE:
            break
    return GrownTables(
        [table for chain in chains for table in chain.tables[:n_best]], n_best, best / max(total, 1e-300)
    )


def _held_out_loss(scores: Floats, at: Codes, y: Codes, weight: Floats) -> float:
    top = scores.max(axis=1)
    log_total = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
    return float(weight @ (log_total - scores[at, y]))


def segment_bounds(n_tables: int) -> list[tuple[int, int]]:
    """The tables of each segment of a chain: 8, 16, 32, ... of them."""
    bounds, start, width = list[tuple[int, int]](), 0, _FIRST_SEGMENT
    while start < n_tables:
        bounds.append((start, min(n_tables, start + width)))
        start, width = start + width, 2 * width
    return bounds
