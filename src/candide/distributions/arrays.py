"""Arrays of distributions: each array of a file is checked by its type, shape and range before it is used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes
from candide.errors import InputError


class ArraySource(Protocol):
    """Arrays by name: a dictionary, or those of a file."""

    def get(self, name: str, /) -> NDArray | None: ...


@dataclass(frozen=True)
class DistributionShape:
    """What the plan and the labels determine of a distribution before its arrays are read."""

    n_classes: int
    n_features: int
    block_kind: str = "numbers"  # what the rows are of: "numbers", "codes" of levels, or "documents"
    sizes: tuple[int, ...] = ()  # how many levels each feature has
    tokens: Any = None  # how documents become tokens
    sets: tuple[tuple[int, ...], ...] = ()  # columns that are counted together
    event: Any = None  # the event model, where it has learned more than counts

    @property
    def offsets(self) -> Codes:
        """(features + 1) where the levels of each feature begin."""
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.intp)]).astype(np.intp)


class ArrayRule(NamedTuple):
    """What every number of an array must be."""

    description: str
    is_valid: Callable[[NDArray], NDArray]


FINITE = ArrayRule("finite numbers", np.isfinite)
BOUNDED = ArrayRule("numbers up to 1e70", lambda a: np.abs(a) <= 1e70)  # squares of their products are finite
POSITIVE = ArrayRule("finite numbers > 0", lambda a: np.isfinite(a) & (a > 0))
# Weights of rows: their squares are finite.
BOUNDED_POSITIVE = ArrayRule("numbers > 0 and up to 1e150", lambda a: (a > 0) & (a <= 1e150))
NON_NEGATIVE = ArrayRule("finite numbers >= 0", lambda a: np.isfinite(a) & (a >= 0))
LOG_VALUES = ArrayRule("numbers < inf", lambda a: a < np.inf)  # -inf is the log of 0; NaN is not less than anything
LOG_PROBABILITIES = ArrayRule("logs of probabilities", lambda a: a <= 1e-9)
FLAGS = ArrayRule("0 and 1", lambda a: a <= 1)
_DOCUMENT_LENGTH = ArrayRule("a whole number from 0 to 2**31", lambda a: (a >= 0) & (a < 1 << 31))


def read_array(
    arrays: ArraySource, name: str, shape: tuple[int, ...], rule: ArrayRule = FINITE, dtype: Any = np.float64
) -> NDArray[Any]:
    """The array of a name, of exactly this shape and type, in which every number is as the rule has it."""
    array = read_optional_array(arrays, name, shape, rule, dtype)
    if array is None:
        raise InputError(f"array {name!r} is missing; expected {_format_shape(shape, dtype)}")
    return array


def read_optional_array(
    arrays: ArraySource, name: str, shape: tuple[int, ...], rule: ArrayRule = FINITE, dtype: Any = np.float64
) -> NDArray[Any] | None:
    """As :func:`read_array`; None where the array is missing."""
    array = arrays.get(name)
    if array is None:
        return None
    if array.shape != shape or array.dtype != dtype:
        actual = _format_shape(array.shape, array.dtype)
        raise InputError(f"array {name!r} is {actual}; expected {_format_shape(shape, dtype)}", value=actual)
    is_valid = rule.is_valid(array)
    if not is_valid.all():
        value = array[~is_valid].ravel()[0].item()
        raise InputError(f"array {name!r} holds {value}; expected {rule.description}", value=value)
    return array


def read_list(arrays: ArraySource, name: str, dtype: Any) -> NDArray[Any]:
    """The array of a name, with one axis of any length."""
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype != np.dtype(dtype):
        raise InputError(f"array {name!r} is missing, or not a list of {np.dtype(dtype).name}")
    return array


def check_rising(ends: NDArray, name: str, last: int) -> None:
    """Raise unless offsets rise from 0 to ``last``."""
    if not len(ends) or ends[0] != 0 or ends[-1] != last or (ends[1:] < ends[:-1]).any():
        raise InputError(f"array {name!r} does not rise from 0 to {last}")


def read_number(arrays: ArraySource, name: str, rule: ArrayRule = FINITE) -> float:
    return read_array(arrays, name, (1,), rule).item()


def read_document_length(arrays: ArraySource, name: str = "length") -> int | None:
    """How many words a sampled document has; None where that is not saved."""
    array = read_optional_array(arrays, name, (1,), _DOCUMENT_LENGTH, np.int64)
    return None if array is None else int(array[0])


def number_as_array(value: float | int | None, name: str) -> dict[str, NDArray]:
    """One number as an array under its name; nothing of None."""
    dtype = np.int64 if isinstance(value, int | np.integer) else np.float64
    return {} if value is None else {name: np.array([value], dtype)}


def _format_shape(shape: tuple[int, ...], dtype: Any) -> str:
    return f"{np.dtype(dtype).name} of shape {tuple(shape)}"
