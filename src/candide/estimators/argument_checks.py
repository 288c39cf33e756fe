"""Checks of parameters, labels, weights and columns. scikit-learn is imported only for the message of an error."""

import warnings
from collections.abc import Callable, Mapping, Set
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import Labels, is_absent
from candide.data.table import Name, positional_names
from candide.errors import InputError, InputTypeError
from candide.formatting import format_count

_LABEL_REMEDY = "drop the row or give it a label"

# Kinds of parameters of scikit-learn's classes, with a fast check of a value.
_KIND_CHECKS: dict[str, Callable[[Any], bool]] = {
    "amount": lambda v: isinstance(v, Real) and bool(float(v) >= 0),
    "count": lambda v: isinstance(v, Integral) and int(v) >= 1,
    "array": lambda v: isinstance(v, list | tuple | np.ndarray),
    "boolean": lambda v: isinstance(v, bool),
    "none": lambda v: v is None,
}


def check_params(estimator: Any) -> None:
    """Check an estimator's parameters against their kinds; scikit-learn's message names the one that is wrong."""
    kinds: Mapping[str, tuple[str, ...]] = getattr(estimator, "_param_kinds", {})
    given = estimator.get_params(deep=False)
    if all(any(_KIND_CHECKS[kind](given[name]) for kind in kinds[name]) for name in kinds):
        return
    from sklearn.utils._param_validation import Interval, InvalidParameterError, validate_parameter_constraints

    known: dict[str, Any] = {"array": "array-like", "boolean": "boolean", "none": None}
    known |= {"amount": Interval(Real, 0, None, closed="left"), "count": Interval(Integral, 1, None, closed="left")}
    constraints = {name: [known[kind] for kind in of_name] for name, of_name in kinds.items()}
    try:
        validate_parameter_constraints(constraints, given, caller_name=type(estimator).__name__)
    except InvalidParameterError as error:
        raise __getattr__("SettingError")(str(error)) from None


@cache
def __getattr__(name: str) -> type[InputTypeError]:
    """``SettingError``, which is also scikit-learn's InvalidParameterError, is made at first use."""
    if name != "SettingError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sklearn.utils._param_validation import InvalidParameterError

    members = {"__module__": __name__, "__doc__": "A parameter of an estimator that is not usable as given."}
    return type(name, (InputTypeError, InvalidParameterError), members)


def freeze(value: Any) -> Any:
    """A parameter as an immutable value: sequences as tuples, sets in order."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: freeze(item) for key, item in value.items()}
    if isinstance(value, Set):
        return tuple(sorted(value))
    return tuple(map(freeze, value)) if isinstance(value, list | tuple) else value


def make_generator(random_state: Any) -> "np.random.Generator":
    """The generator of scikit-learn's ``random_state``: None, a seed, a RandomState; or a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or random_state is np.random:
        return np.random.default_rng(np.random.randint(2**31 - 1))  # noqa: NPY002  what np.random.seed decides
    if isinstance(random_state, Integral):
        random_state = np.random.RandomState(int(random_state))
    if not isinstance(random_state, np.random.RandomState):
        raise InputError(f"{random_state!r} cannot seed random numbers", value=random_state, remedy="pass a number")
    return np.random.default_rng(random_state.randint(2**31 - 1))


def checked_count(name: str, value: Any) -> int:
    """A parameter that is a whole number, 0 or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
        raise InputError(f"{name} is {value!r}", value=value, remedy="pass a whole number, 0 or more")
    return int(value)


def feature_names(columns: tuple[Name, ...]) -> NDArray | None:
    """The columns as scikit-learn's ``feature_names_in_``: None where they have no names."""
    if columns is positional_names(len(columns)):
        return None
    kinds = set(map(type, columns))
    if str not in kinds:
        return None
    if len(kinds) > 1:
        what = "Feature names are only supported if all input features have string names, but your input has "
        what += f"{sorted(kind.__qualname__ for kind in kinds)} as feature name / column name types"
        raise InputTypeError(what, remedy="convert them all to text, by X.columns = X.columns.astype(str) for example")
    return np.array(columns, dtype=object)


def feature_names_error(estimator: Any, columns: tuple[Name, ...]) -> InputError:
    """scikit-learn's error for rows whose columns have other names, or the same in another order."""
    mine, theirs = set(estimator.feature_names_in_), set(columns)
    text = "The feature names should match those that were passed during fit.\n"
    for title, names in (("unseen at fit time", theirs - mine), ("seen at fit time, yet now missing", mine - theirs)):
        if names:
            listed = [f"- {name}\n" for name in sorted(names)]
            text += f"Feature names {title}:\n" + "".join(listed[:5]) + ("- ...\n" if len(listed) > 5 else "")
    if mine == theirs:
        text += "Feature names must be in the same order as they were in fit.\n"
    return InputError(text)


def warn_by_position(estimator: Any, is_named: bool) -> None:
    """Warn, as scikit-learn does, that rows are read by position: named at fit and not now, or the reverse."""
    now, before = ("does not have valid", "with") if is_named else ("has", "without")
    text = f"X {now} feature names, but {type(estimator).__name__} was fitted {before} feature names"
    warnings.warn(text, stacklevel=7)


def check_width(estimator: Any, n_columns: int) -> None:
    if n_columns != estimator.n_features_in_:
        expected = f"{type(estimator).__name__} is expecting {estimator.n_features_in_} features as input."
        raise InputError(f"X has {n_columns} features, but {expected}", value=n_columns)


def checked_labels(y: Any, n_rows: int) -> NDArray:
    """``y`` as a 1-D array of class labels, one a row."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    if not hasattr(y, "__len__") and not hasattr(y, "__array__"):
        raise InputError(f"y must hold one label a row, not a single {type(y).__name__}")
    # numpy would turn [1, "a", None] into text or fail; objects keep their types
    is_mixed = isinstance(y, list | tuple) and any(isinstance(v, str) or v is None for v in y)
    array = y if isinstance(y, np.ndarray) else np.asarray(y, object if is_mixed else None)
    if array.ndim != 1:
        from sklearn.utils.validation import column_or_1d

        try:
            array = column_or_1d(array, warn=True)
        except ValueError as error:
            raise InputError(str(error)) from None
    if len(array) != n_rows:
        sizes = f"{format_count(n_rows)} in X, {format_count(len(array), 'label')} in y"
        raise InputError(f"Found input variables with inconsistent numbers of samples: {sizes}")
    if array.dtype.kind == "O":
        _check_no_missing(array)
    elif array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        what = f"Input y contains NaN or infinity: the label is {array[row]}"
        raise InputError(what, row=row, value=array[row].item(), remedy=_LABEL_REMEDY)
    elif array.dtype.kind == "f" and (array != np.floor(array)).any():
        value, remedy = array[array != np.floor(array)][0], "pass whole numbers or text, or bin it"
        what = f"Unknown label type: continuous. {value} is not a class label"
        raise InputError(what, value=value.item(), remedy=remedy)
    return array


def _check_no_missing(y: NDArray) -> None:
    values = y.tolist()
    try:
        distinct: Any = set(values)  # labels are few: not every row need be checked
    except TypeError:  # not hashable: not a label, as another check reports
        distinct = values
    if any(map(is_absent, distinct)):
        rows = [row for row, value in enumerate(values) if is_absent(value)]
        n_missing = "a label is missing" if len(rows) == 1 else f"{len(rows):,} labels are missing, this is the first"
        what = f"Input y contains NaN: {n_missing}"
        raise InputError(what, row=rows[0], value=values[rows[0]], remedy=_LABEL_REMEDY)


def checked_weights(weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Row weights as a float64 array, or None where every row counts once."""
    if weight is None:
        return None
    try:
        array = np.asarray(weight, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"sample_weight must hold numbers, one a row: {error}") from None
    if array.ndim == 0:
        array = np.full(n_rows, array)
    if array.ndim != 1:
        raise InputError(f"Sample weights must be 1D array or scalar, got {array.ndim}D array")
    if len(array) != n_rows:
        raise InputError(f"sample_weight.shape == {array.shape}, expected {(n_rows,)}: one weight a row")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        kind = ">= 0" if np.isfinite(array[row]) else "finite"
        what = f"sample_weight: {array[row]:g}; weights must be {kind}"
        raise InputError(what, row=row, value=array[row].item(), remedy="pass 0 to leave a row out")
    if not array.any():
        raise InputError("Sample weights must contain at least one non-zero number: here every weight is zero")
    return array


def classes_array(labels: Labels, dtype: np.dtype) -> NDArray:
    """The classes in order, in the type that the labels were given in: what ``classes_`` holds."""
    array = labels.array
    if dtype.kind not in "iufb" or array.dtype.kind not in "iufb":
        return array
    converted = array.astype(dtype)
    return converted if np.array_equal(converted, array) else array
