"""Checks and examples: a check raises AssertionError where a property does not hold, naming it and the example.

>>> def is_small(rows):
...     '''Every value is below three.'''
...     assert max(rows) < 3, f"got {max(rows)}"
>>> run_checks([is_small], {"few": [1, 2], "many": [1, 5]}, "my family")
Traceback (most recent call last):
AssertionError: my family: every value is below three: fails on many: got 5

Example rows are drawn from a seed and are hard cases: missing values, no weight, one class, far from zero, float32.

>>> found = examples(NumberColumns(), seed=0)
>>> list(found)[:4]
['plain rows', 'weighted rows', 'gaps', 'a column without values']
>>> found["a class without rows"].n_classes, found["one row"].columns[0].shape
(3, (1,))
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Csr, Floats

_WORDS = ("ant", "bee", "cat", "dog", "été", "naïve", "ox")


def run_checks(checks: Iterable[Callable[[Any], None]], examples: Mapping[str, Any], title: str) -> None:
    """Run every check on every example; the first failure is an AssertionError with both names."""
    for check in checks:
        for name, example in examples.items():
            try:
                check(example)
            except Exception as error:
                summary = (check.__doc__ or check.__name__).splitlines()[0].rstrip(".")
                what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
                text = f"{title}: {summary[:1].lower()}{summary[1:]}: fails on {name}: {what.strip()}"
                raise AssertionError(text) from error


def check_close(got: Any, want: Any, what: str, rel: float = 1e-9, size: float = 0.0) -> None:
    """Equal up to rounding, relative to each value and to the largest; infinities and NaN must agree."""
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
    """Two tallies hold the same state; ``larger`` is what rows were subtracted from, which bounds the rounding."""
    mine, theirs = got.arrays(), want.arrays()
    assert mine.keys() == theirs.keys(), f"{sorted(mine)} instead of {sorted(theirs)}"
    for name, state in theirs.items():
        large = 0.0 if larger is None else float(np.abs(larger.arrays()[name].astype(float)).max(initial=0.0))
        check_close(mine[name], state, name, rel, 1e3 * large)


def _first(values: NDArray, where: NDArray) -> Any:
    return values[where].ravel()[0]


def _place(where: NDArray) -> tuple[int, ...]:
    return tuple(np.argwhere(where)[0].tolist())


@dataclass(frozen=True, eq=False)
class Example:
    """Labelled, weighted rows."""

    columns: tuple[NDArray, ...]  # numbers, NaN where absent, or objects, None where absent
    y: Codes
    weight: Floats | None
    n_classes: int
    rel: float = 1e-9  # how near results must be
    is_full: bool = False  # whether every class has values of every column, so that all estimates exist

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: Any) -> "Example":
        """Some of the rows, in some order, perhaps more than once."""
        weight = None if self.weight is None else self.weight[index]
        return replace(self, columns=tuple(c[index] for c in self.columns), y=self.y[index], weight=weight)

    def split(self) -> tuple["Example", "Example"]:
        """A third of the rows, and the others."""
        return self.take(slice(0, len(self) // 3)), self.take(slice(len(self) // 3, None))

    def with_weight(self, weight: Floats | None) -> "Example":
        return replace(self, weight=weight)


@dataclass(frozen=True)
class NumberColumns:
    """Columns of numbers from ``low`` to ``high``, whole or not; an end that is finite may be no value itself."""

    low: float = -np.inf
    high: float = np.inf
    is_integer: bool = False

    @property
    def is_unbounded(self) -> bool:
        return np.isinf(self.low) and np.isinf(self.high) and not self.is_integer

    def draw(self, rng: np.random.Generator, y: Codes) -> NDArray:
        if self.is_integer:
            x = rng.poisson(1.0 + y).astype(float)
            return np.clip(x + (self.low if np.isfinite(self.low) else 0.0), self.low, self.high)
        if np.isfinite(self.low) and np.isfinite(self.high):
            return self.low + (self.high - self.low) * rng.beta(2.0, 2.0 + y)
        if np.isfinite(self.low):
            return self.low + rng.gamma(2.0, 1.0 + y)
        if np.isfinite(self.high):
            return self.high - rng.gamma(2.0, 1.0 + y)
        return rng.normal(y, 1.0 + y)


@dataclass(frozen=True)
class CategoryColumns:
    """Columns of words: categories."""

    def draw(self, rng: np.random.Generator, y: Codes) -> NDArray:
        return np.array(_WORDS[:4], object)[(rng.integers(0, 3, len(y)) + (y > 0)) % 4]


@dataclass(frozen=True)
class DocumentColumns:
    """Columns of documents."""

    def draw(self, rng: np.random.Generator, y: Codes) -> NDArray:
        return np.array([" ".join(rng.choice(_WORDS[c:], rng.integers(0, 6))) for c in y % 3] + [None], object)[:-1]


@dataclass(frozen=True)
class CustomColumns:
    """Columns that an own function draws: ``draw(rng, y)``, one value for each class code."""

    function: Callable[[np.random.Generator, Codes], NDArray]

    def draw(self, rng: np.random.Generator, y: Codes) -> NDArray:
        x = np.asarray(self.function(rng, y))
        assert x.shape == y.shape, f"draw(rng, y) gave the shape {x.shape} for {len(y)} class codes"
        return x.astype(float) if x.dtype.kind in "iub" else x


def examples(values: Any, seed: int = 0, n_columns: int = 3) -> dict[str, Example]:
    """The examples by name; ``values`` draws a column."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(3), 14)

    def of(y: Codes, n_classes: int = 3, **more: Any) -> Example:
        return Example(tuple(values.draw(rng, y) for _ in range(n_columns)), y, None, n_classes, **more)

    plain = of(y, is_full=True)
    weight = rng.choice([0.0, 0.1, 1.0, 2.5], len(y))
    holes = [rng.random(len(y)) < share for share in (0.3, 0.0, 0.8)]
    found = {
        "plain rows": plain,
        "weighted rows": plain.with_weight(weight),
        "gaps": replace(plain, columns=tuple(map(_with_missing, plain.columns, holes)), is_full=False),
        "a column without values": replace(
            plain, columns=(_with_missing(plain.columns[0], np.ones(len(y), bool)), *plain.columns[1:]), is_full=False
        ),
        "a class without rows": of(np.tile([0, 2], 9)),
        "one class": of(np.zeros(12, np.intp), 1),
        "one row": of(np.array([1])),
        "no rows": of(np.zeros(0, np.intp)),
        "no weight at all": replace(plain, weight=np.zeros(len(y)), is_full=False),
    }
    if plain.columns[0].dtype == np.float64:
        single = tuple(c.astype(np.float32) for c in plain.columns)
        found["float32"] = replace(plain, columns=single)
    if getattr(values, "is_unbounded", False):
        found["far from zero"] = replace(plain, columns=tuple(c + 1e8 for c in plain.columns), rel=1e-5)
    return found


def _with_missing(column: NDArray, present: NDArray) -> NDArray:
    """A column with some of its values absent."""
    out = column.copy()
    out[present] = None if out.dtype == object else np.nan
    return out


def to_sparse(x: NDArray) -> Csr:
    """A block of numbers in CSR form, its zeros left out."""
    row, column = np.nonzero(x)
    return Csr(x[row, column], column.astype(np.int32), np.searchsorted(row, np.arange(len(x) + 1)), x.shape[1])
