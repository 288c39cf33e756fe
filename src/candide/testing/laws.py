"""A law is a function that raises AssertionError where it does not hold; a broken one is named, with the example.

>>> def small(rows):
...     '''Every value is below three.'''
...     assert max(rows) < 3, f"{max(rows)} was met"
>>> run_checks([small], {"few": [1, 2]}, "my family")
>>> run_checks([small], {"few": [1, 2], "more": [1, 5]}, "my family")
Traceback (most recent call last):
AssertionError: my family: every value is below three: fails on more: 5 was met
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def run_checks(checks: Iterable[Callable[[Any], None]], examples: Mapping[str, Any], title: str) -> None:
    """Try every law on every example; the first that fails is an AssertionError with its name and the example's."""
    for law in checks:
        for name, example in examples.items():
            try:
                law(example)
            except Exception as error:
                said = (law.__doc__ or law.__name__).splitlines()[0].rstrip(".")
                what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
                text = f"{title}: {said[:1].lower()}{said[1:]}: fails on {name}: {what.strip()}"
                raise AssertionError(text) from error


def check_close(got: Any, want: Any, what: str, rel: float = 1e-9, size: float = 0.0) -> None:
    """Equal but for rounding: a share of each value, and of the largest; infinities and NaN must agree."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape} instead of {want.shape}"
    if want.dtype.kind != "f":
        assert (got == want).all(), f"{what}: {got} instead of {want}"
        return
    finite = np.isfinite(want)
    largest = max(size, float(np.abs(want[finite]).max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        close = np.where(finite, np.abs(got - want) <= rel * (np.abs(want) + 1e-3 * largest), got == want)
    close |= np.isnan(got) & np.isnan(want)
    assert close.all(), f"{what}: {_first(got, ~close)} instead of {_first(want, ~close)} at {_place(~close)}"


def check_same_state(got: Any, want: Any, rel: float = 1e-9, larger: Any = None) -> None:
    """Two tallies hold the same; where rows were taken from a whole its size counts for the rounding."""
    mine, theirs = got.arrays(), want.arrays()
    assert mine.keys() == theirs.keys(), f"{sorted(mine)} instead of {sorted(theirs)}"
    for name, state in theirs.items():
        large = 0.0 if larger is None else float(np.abs(larger.arrays()[name].astype(float)).max(initial=0.0))
        check_close(mine[name], state, name, rel, 1e3 * large)


def _first(values: NDArray, where: NDArray) -> Any:
    return values[where].ravel()[0]


def _place(where: NDArray) -> tuple[int, ...]:
    return tuple(np.argwhere(where)[0].tolist())
