"""What the estimators ask of labels and weights, said once: each error names what is wrong and the remedy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import column_or_1d

from candide.errors import InputError, InputTypeError
from candide.rows.labels import Labels, is_absent


class SettingError(InputTypeError, InvalidParameterError):
    """A parameter of an estimator that is not usable as given."""


def checked_settings(estimator: BaseEstimator) -> None:
    """Hold an estimator's parameters against its ``_parameter_constraints``."""
    try:
        estimator._validate_params()
    except InvalidParameterError as error:
        raise SettingError(str(error)) from None


def checked_labels(y: Any, n_rows: int) -> NDArray:
    """``y`` as a 1-D array of class labels, one a row."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    if not hasattr(y, "__len__") and not hasattr(y, "__array__"):
        raise InputError(f"y must hold one label a row, not a single {type(y).__name__}")
    array = y if isinstance(y, np.ndarray) else np.asarray(y, object if _mixes_text(y) else None)
    if array.ndim != 1:
        array = _column(array)
    if len(array) != n_rows:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: {n_rows} rows in X, {len(array)} labels in y"
        )
    if array.dtype.kind == "f":
        _check_whole(array)
    elif array.dtype.kind == "O":
        _check_none_absent(array)
    return array


def _column(y: NDArray) -> NDArray:
    try:
        return column_or_1d(y, warn=True)
    except ValueError as error:
        raise InputError(str(error)) from None


def _mixes_text(y: Any) -> bool:
    # numpy would turn [1, "a", None] into text or fail; objects keep their types
    return isinstance(y, list | tuple) and any(isinstance(v, str) or v is None for v in y)


def _check_whole(y: NDArray) -> None:
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise InputError(
            f"Input y contains NaN or infinity: the label of row {row} is {y[row]}; drop the row or give it a label"
        )
    if (y != np.floor(y)).any():
        value = y[np.flatnonzero(y != np.floor(y))[0]]
        raise InputError(
            f"Unknown label type: continuous. {value} is not a class label; pass whole numbers or text, or bin it"
        )


def _check_none_absent(y: NDArray) -> None:
    values = y.tolist()
    try:
        distinct: Any = set(values)  # labels are few: not every row need be asked
    except TypeError:  # no label can be this, as will be said
        distinct = values
    if any(map(is_absent, distinct)):
        absent = np.fromiter(map(is_absent, values), bool, len(y))
        row = int(np.flatnonzero(absent)[0])
        raise InputError(
            f"Input y contains NaN: {int(absent.sum())} labels are missing, the first at row {row}; "
            "drop these rows or give them a label"
        )


def checked_weights(weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Row weights as a float64 array, or None where every row counts once."""
    if weight is None:
        return None
    try:
        array = np.asarray(weight, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight must hold numbers, one a row: {error}") from None
    if array.ndim == 0:
        array = np.full(n_rows, array)
    if array.ndim != 1:
        raise InputError(f"Sample weights must be 1D array or scalar, got {array.ndim}D array")
    if len(array) != n_rows:
        raise InputError(f"sample_weight.shape == {array.shape}, expected {(n_rows,)}: one weight a row")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InputError(f"sample_weight: {array[row]} at row {row}; weights must be finite, 0 to leave a row out")
    if (array < 0).any():
        row = int(np.flatnonzero(array < 0)[0])
        raise InputError(f"sample_weight: {array[row]:g} at row {row}; weights must be >= 0, 0 to leave a row out")
    if not array.any():
        raise InputError("Sample weights must contain at least one non-zero number: here every weight is zero")
    return array


def checked_classes(labels: Labels) -> Labels:
    """At least two classes: with one there is nothing to tell apart."""
    if len(labels) < 2:
        raise InputError(f"y has one class only, {labels.values[0]!r}; a classifier needs rows of at least two classes")
    return labels


def class_array(labels: Labels, dtype: np.dtype) -> NDArray:
    """The classes in order, in the type that the labels were given in: what ``classes_`` holds."""
    return labels.array.astype(dtype, copy=False) if dtype.kind in "iufb" else labels.array
