"""Rows as the drop-ins read them: a table of numbers, dense or sparse, without missing values.

An array of numbers is used without a copy and without a pass over it. Whether every value is finite shows in the tally
(a NaN lowers the weight present, an infinity makes a sum infinite); only then is the value located.

>>> read_block([[1, 2], [3, 4]], "GaussianNB").shape
(2, 2)
>>> read_block([["1", "b"]], "GaussianNB")
Traceback (most recent call last):
    ...
candide.errors.InputError: column 1 (row 0): could not convert string to float: 'b'; GaussianNB takes numbers only
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Csr, Floats, find_largest
from candide.errors import InputError, InputTypeError

_ROWS_PER_CHUNK = 65536  # searched together for a bad value
_NATIVE_DTYPES = (np.float64, np.float32, np.int64, np.int32)  # what the sparse kernels read


def read_block(X: Any, estimator_name: str, *, sparse: bool = False) -> Block:
    """The rows of anything array-like; ``estimator_name`` is for errors."""
    block: Block
    if type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub":
        block = X
    elif sparse and is_sparse(X):
        block = _csr(X, estimator_name)
    else:
        block = _array(X, estimator_name)
    n_rows, n_features = block.shape
    if n_rows == 0 or n_features == 0:
        what = "sample" if n_rows == 0 else "feature"
        raise InputError(
            f"Found array with 0 {what}(s) (shape={block.shape}) while a minimum of 1 is required by {estimator_name}."
        )
    return block


def is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")


def frame_names(X: Any) -> tuple[Any, ...] | None:
    """The names of a data frame's columns; None of an array."""
    if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "__array_interface__") or is_sparse(X):
        return None
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    return None if names is None else tuple(names)


def _csr(X: Any, who: str) -> Csr:
    rows = X.tocsr()
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        check_array_with_own_errors(rows, who, accept_sparse="csr")
        raise InputTypeError(f"cannot use a sparse array of {rows.ndim} dimensions and type {rows.dtype}")
    data = rows.data if rows.dtype in _NATIVE_DTYPES else rows.data.astype(np.float64)
    return Csr(data, rows.indices, rows.indptr, rows.shape[1])


def _array(X: Any, who: str) -> NDArray:
    array = X
    if not (is_sparse(X) or hasattr(X, "dtype") or hasattr(X, "columns") or hasattr(X, "__array__")):
        array = _untyped(X)  # so that text is named, rather than numpy's view of it
        if type(array) is np.ndarray and array.ndim == 2 and array.dtype.kind in "fiub":
            return array
    try:
        found = check_array_with_own_errors(array, who)
        return found if found.dtype.kind != "O" else check_array_with_own_errors(found, who)  # objects as numbers
    except InputError as error:
        where = _find_non_number(array)
        if where is None:
            raise
        kind, (row, column, value) = InputTypeError if isinstance(error, TypeError) else InputError, where
        what, remedy = str(error).rstrip("."), f"{who} takes numbers only"
        raise kind(what, column=column, row=row, value=value, remedy=remedy) from None


def _untyped(X: Any) -> Any:
    try:
        array = np.asarray(X)
        return np.array(X, dtype=object) if array.dtype.kind in "US" else array
    except ValueError:  # ragged: scikit-learn has the message for it
        return X


def check_array_with_own_errors(X: Any, who: str, **settings: Any) -> Any:
    """scikit-learn's ``check_array`` with its messages and this package's error types."""
    from sklearn.utils.validation import check_array

    settings |= {"ensure_all_finite": False, "ensure_min_samples": 0, "ensure_min_features": 0}
    try:
        return check_array(X, estimator=who, input_name="X", **settings)
    except (TypeError, NotImplementedError) as error:
        raise InputTypeError(str(error)) from None
    except (ValueError, OverflowError) as error:
        raise InputError(str(error)) from None


def _find_non_number(X: Any) -> tuple[int, Any, Any] | None:
    """Row, column and value of the first value that is not a number."""
    values = np.asarray(X, dtype=object) if not is_sparse(X) else np.empty(())
    if values.ndim != 2:
        return None
    names = frame_names(X) or range(values.shape[1])
    for row, column in np.ndindex(values.shape):
        try:
            float(values[row, column])
        except (TypeError, ValueError, OverflowError):
            return row, names[column], values[row, column]
    return None


def not_finite_error(block: Block, names: Sequence[Any], who: str, at: int | None = None) -> InputError:
    """The error that locates a value that is NaN or infinite, or too large in the column ``at``."""
    where = next(_find_bad_values(block, lambda x: ~np.isfinite(x)), None)
    if where is None:
        what = f"Input X contains infinity or a value too large to square and add up in float64; {who} needs smaller"
        row, value = (None, None) if at is None else find_largest(block, at)
        column = None if at is None else names[at]
        return InputError(f"{what} numbers", column=column, row=row, value=value, remedy="rescale the columns")
    row, column, value = where
    kind = "NaN" if np.isnan(value) else "infinity or a value too large"
    return InputError(
        f"Input X contains {kind}: {value}. {who} takes finite numbers only",
        column=names[column],
        row=row,
        value=value.item(),
        remedy="drop the row, or use candide.NaiveBayes, in which NaN is a missing value",
    )


def negative_error(block: Block, names: Sequence[Any], who: str) -> InputError:
    """The error that locates a negative value."""
    row, column, value = next(_find_bad_values(block, lambda x: x < 0))
    what = f"Negative values in data passed to {who} (input X): {value}"
    return InputError(what, column=names[column], row=row, value=value.item(), remedy="pass values >= 0")


def _find_bad_values(block: Block, bad: Any) -> Iterator[tuple[int, int, Any]]:
    """Row, column and value of the bad values, in order."""
    if isinstance(block, Csr):
        stored = np.arange(block.indptr[0], block.indptr[-1])
        for i in stored[bad(block.data[stored])]:
            yield int(np.searchsorted(block.indptr, i, "right")) - 1, int(block.indices[i]), block.data[i]
        return
    for start in range(0, len(block), _ROWS_PER_CHUNK):
        for row, column in np.argwhere(bad(block[start : start + _ROWS_PER_CHUNK])):
            yield start + int(row), int(column), block[start + row, column]


def has_missing(block: Block, n: Floats, class_weight: Floats, weight: Floats | None) -> bool:
    """Whether a value is missing, from the weight present ``n`` (class, feature) against the weight of the rows.

    Rows of weight 0, or too little to exceed rounding, are searched themselves. What sparse rows store is summed with its
    NaN, so only rows of weight 0 are left to search there.
    """
    rounding = 1e-10 * class_weight.max()
    if not isinstance(block, Csr) and (class_weight - n.min(axis=1)).max() > rounding:
        return True
    if weight is None:
        return False
    light = weight <= 2 * rounding
    if not light.any():
        return False
    if isinstance(block, Csr):
        stored = block.data[block.indptr[0] : block.indptr[-1]]
        return not np.isfinite(stored[np.repeat(light, np.diff(block.indptr))]).all()
    rows = np.flatnonzero(light)
    return not all(
        np.isfinite(block[rows[a : a + _ROWS_PER_CHUNK]]).all() for a in range(0, len(rows), _ROWS_PER_CHUNK)
    )
