"""NumPy reference implementations of the loops over decision tables.

A table asks up to eight yes/no questions; the answers number a cell, the last question fastest. A question is of one
column, whose codes are bytes: ``sides`` has the answer of each code. Sums are of whole numbers, so that they do not
depend on the order of rows.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
N_CODES = 256
NUMBERS, INCOMPLETE_NUMBERS, LEVELS = 0, 1, 2  # kinds of columns: code 0 of the second may also be last
_MIN_GAIN = 1e-6


class Tables(NamedTuple):
    """Columns (table, question), -1 after the last; sides (table, question, 256); values (table, cell, class)."""

    columns: NDArray[np.int32]
    sides: Bytes
    values: NDArray[np.float32]


def grow_table(
    codes: Bytes,
    sizes: NDArray[np.intp],
    kinds: Bytes,
    slopes: NDArray[np.int32],
    curvature: NDArray[np.int32],
    scale: float,
    luck: NDArray[np.float32],
    ridge: float,
    level_ridge: float,
) -> tuple[NDArray[np.int32], Bytes, Bytes]:
    """The columns and sides of the questions of a new table, and the cell of each row.

    ``codes`` (column, row); ``slopes`` (row, slope) and ``curvature`` (row,) in units of ``scale``. Each question is
    that with the largest root of the gain plus ``luck`` (question, column), over the cells of the questions before.
    """
    if codes.shape[1] == 0 or (codes.max(axis=1) >= sizes).any():
        raise ValueError("a code lies outside its column's")
    cells, columns, sides = np.zeros(codes.shape[1], np.uint8), [], []
    values = np.column_stack([slopes, curvature]).astype(np.int64)
    first = [np.arange(n) for n in sizes]
    for column in np.flatnonzero(kinds == LEVELS).tolist():
        sums = np.zeros((sizes[column], values.shape[1]), np.int64)
        np.add.at(sums, codes[column], values)
        first[column] = np.argsort(sums[:, 0] / (sums[:, -1] + level_ridge / scale), kind="stable")
    for level in range(len(luck)):
        best: tuple[Any, int, NDArray] | None = None
        for j, n in enumerate(sizes.tolist()):
            ways = 1 + (kinds[j] == INCOMPLETE_NUMBERS) if n > 1 else 0
            for way, order in enumerate([first[j], np.roll(first[j], -1)][:ways]):
                gain = _gains(_bin_sums(codes[j], cells, values, n), order, np.float32(ridge / scale))
                gain = gain[: n - 1 - way]  # the last cut with code 0 last is the first cut with code 0 first
                if not len(gain):
                    continue
                at = int(gain.argmax())
                largest = gain[at] * np.float32(scale)
                if largest <= _MIN_GAIN:
                    continue
                z = np.sqrt(largest) + luck[level, j]
                if best is None or z > best[0]:
                    best = z, j, order[at + 1 :]
        if best is None:
            break
        side = np.zeros(N_CODES, np.uint8)
        side[best[2]] = 1
        cells = 2 * cells + side[codes[best[1]]]
        columns.append(best[1])
        sides.append(side)
    return np.array(columns, np.int32), np.array(sides, np.uint8).reshape(-1, N_CODES), cells


def _bin_sums(code: Bytes, cells: Bytes, values: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """(cell, code, number) the sums over the rows of each cell and code, of cells of two rows or more."""
    out = np.zeros((N_CODES, size, values.shape[1]), np.int64)
    np.add.at(out, (cells, code), values)
    return out[np.bincount(cells, minlength=N_CODES) > 1]


def _gains(sums: NDArray[np.int64], order: NDArray, ridge: np.float32) -> NDArray[np.float32]:
    """(cut,) what it gains to cut all cells after a code in the order."""
    left = np.cumsum(sums[:, order], axis=1)[:, :-1].astype(np.float32)
    total = sums.sum(axis=1).astype(np.float32)[:, None]
    right = total - left

    def gain(part: NDArray[np.float32]) -> NDArray[np.float32]:
        return (part[..., :-1] ** 2).sum(axis=-1) / (part[..., -1] + ridge)

    return (gain(left) + gain(right) - gain(total)).sum(axis=0, dtype=np.float32)


def table_cells(codes: Bytes, tables: Tables) -> Bytes:
    """(table, row) the cell of each row of codes (column, row) in each table."""
    out = np.zeros((len(tables.columns), codes.shape[1]), np.uint8)
    for cells, columns, sides in zip(out, tables.columns, tables.sides, strict=True):
        for column, side in zip(columns[columns >= 0], sides, strict=False):
            cells[:] = 2 * cells + side[codes[column]]
    return out


def add_tables(codes: NDArray, sizes: NDArray[np.intp], tables: Tables, weight: Floats, out: Floats) -> int:
    """out[r, c] += weight[t] times the value of the cell of row r in each table; codes (row, column), -1 if absent.

    A code that is absent or not below its column's size counts as 0, any other as its number plus 1. Returns how many
    values are absent.
    """
    small = np.where((codes >= 0) & (codes < np.asarray(sizes)), codes + 1, 0).astype(np.uint8).T
    for cells, values, w in zip(table_cells(small, tables), tables.values, weight, strict=True):
        out += w * values[cells, : out.shape[1]].astype(np.float64)
    return int((codes < 0).sum())


def cell_sums(cells: Bytes, values: Floats) -> Floats:
    """(256, column) the sums of the values (row, column) of the rows of each cell."""
    out = np.zeros((N_CODES, values.shape[1]))
    np.add.at(out, cells, values)
    return out
