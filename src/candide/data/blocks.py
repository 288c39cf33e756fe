"""Blocks: the columns of one event model as one array; sparse if most values are zero."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.errors import InputError, SumTooLargeError

if TYPE_CHECKING:
    from candide.data.documents import Documents

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Transform = Callable[[NDArray], NDArray]

_SEARCH_ROWS = 1 << 16  # rows searched at a time for the value an error is about


class Csr(NamedTuple):
    """Sparse rows: stored values, their columns, and where each row starts. Slices share the storage."""

    data: NDArray
    indices: NDArray
    indptr: NDArray
    n_features: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.indptr) - 1, self.n_features

    def slice_rows(self, part: slice) -> "Csr":
        return Csr(self.data, self.indices, self.indptr[part.start : part.stop + 1], self.n_features)


class ArrayValue:
    """An array that cannot change: equal to others by contents, so that it can be a setting.

    >>> ArrayValue(np.arange(3)) == ArrayValue([0, 1, 2]), ArrayValue(np.arange(3)) == ArrayValue([0, 1])
    (True, False)
    """

    def __init__(self, array: Any):
        self.array = np.array(array)
        self.array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayValue) and np.array_equal(self.array, other.array)

    @cached_property
    def _hash(self) -> int:
        return hash((self.array.shape, self.array.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<{self.array.dtype} array of shape {self.array.shape}>"


Block = NDArray | Csr  # or Documents, whose rows are cut and scored in the same way


def to_dense(block: Block) -> NDArray:
    if not isinstance(block, Csr):
        return block
    x = np.zeros(block.shape)
    stored = slice(block.indptr[0], block.indptr[-1])
    # add, not set: a column stored twice in a row means its sum
    np.add.at(x, (row_numbers(block), block.indices[stored]), block.data[stored])
    return x


def row_numbers(block: Csr) -> Codes:
    return np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))


def slice_rows(block: Block, part: slice) -> Block:
    return block.slice_rows(part) if isinstance(block, Csr) else block[part]


def row_width(block: "Block | Documents") -> int:
    """How many values a row of a block has, on average: what its cost grows with."""
    n_rows, n_features = block.shape
    if isinstance(block, Csr):
        return max(1, len(block.data) // max(1, n_rows))
    return n_features if isinstance(block, np.ndarray) else max(1, block.width)


def not_finite_error(
    columns: tuple[Any, ...], block: Block, transform: Transform = lambda x: x, feature: int | None = None
) -> InputError:
    """The error for an infinite (in sparse rows: non-finite) value, or for sums of column ``feature`` that overflow."""
    if first := find_first(block, (lambda x: ~np.isfinite(x)) if isinstance(block, Csr) else np.isinf):
        row, j, value = first
        what = f"infinity or NaN is not a usable value ({value})"
        remedy = "make it missing (NaN in a dense table), or drop the row"
        return InputError(what, column=columns[j], row=row, value=value, remedy=remedy)
    if not isinstance(block, Csr) and (first := find_first(block, lambda x: np.isinf(transform(x)))):
        row, j, value = first
        what, remedy = f"{value} has no finite transform", "choose another event model"
        return InputError(what, column=columns[j], row=row, value=value, remedy=remedy)
    what = "values too large to be added or squared"
    remedy = "divide the column by a constant, or make the largest values missing"
    if feature is None:
        return SumTooLargeError(f"among the columns {formatting.format_list(columns, 5)} are {what}", remedy=remedy)
    row, value = find_largest(block, feature)
    return SumTooLargeError(f"{what}, such as {value:g}", column=columns[feature], row=row, value=value, remedy=remedy)


def find_largest(block: Block, j: int) -> tuple[int, float]:
    """Row and value of the number farthest from zero in a column."""
    values = to_dense(select_columns(block, (j,)))[:, 0] if isinstance(block, Csr) else block[:, j]
    row = int(np.argmax(np.nan_to_num(np.abs(values.astype(np.float64)))))
    return row, float(values[row])


def check_finite(x: NDArray) -> NDArray:
    """A column of numbers, if none of them is infinite; else an error with the row."""
    if x.dtype.kind == "f" and np.isinf(x).any():
        raise not_finite_error((None,), x[:, None])
    return x


def find_first(block: Block, is_bad: Transform, chunk_rows: int = _SEARCH_ROWS) -> tuple[int, int, Any] | None:
    """Row, column and value of the first value that is bad, searched ``chunk_rows`` at a time."""
    if isinstance(block, Csr):
        start = int(block.indptr[0])
        for i in np.flatnonzero(is_bad(block.data[start : block.indptr[-1]]))[:1] + start:
            return int(np.searchsorted(block.indptr, i, "right")) - 1, int(block.indices[i]), block.data[i]
        return None
    for start in range(0, len(block), chunk_rows):
        for r, j in np.argwhere(is_bad(block[start : start + chunk_rows]))[:1]:
            return start + int(r), int(j), block[start + r, j]
    return None


def select_columns(rows: Csr, names: tuple[str | int, ...]) -> Csr:
    """Sparse rows of columns by their positions, in this order."""
    place = np.full(rows.n_features, -1, np.int64)
    place[np.array(names, np.intp)] = np.arange(len(names))
    stored = slice(int(rows.indptr[0]), rows.indptr[-1])
    at = place[rows.indices[stored]]
    n_before = np.concatenate([[0], np.cumsum(at >= 0)])
    indices = at[at >= 0].astype(rows.indices.dtype)
    return Csr(rows.data[stored][at >= 0], indices, n_before[rows.indptr - stored.start], len(names))
