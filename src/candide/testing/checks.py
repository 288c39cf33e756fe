"""Checks and examples: a check raises AssertionError where a property does not hold, naming it and the example.

Example rows are drawn from a seed and are hard cases: missing values, no weight, one class, far from zero, float32.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.events import Support

Draw = Callable[[np.random.Generator, Codes], NDArray]
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


def check_close(got: Any, expected: Any, what: str, rel: float = 1e-9, size: float = 0.0) -> None:
    """Equal up to rounding, relative to each value and to the largest; infinities and NaN must agree."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: shape {got.shape} instead of {expected.shape}"
    if expected.dtype.kind != "f":
        assert (got == expected).all(), f"{what}: {got} instead of {expected}"
        return
    finite = np.isfinite(expected)
    largest = max(size, float(np.abs(expected[finite]).max(initial=0.0)))
    with np.errstate(invalid="ignore"):
        within = np.abs(got - expected) <= rel * (np.abs(expected) + 1e-3 * largest)
    wrong = ~np.where(finite, within, got == expected) & ~(np.isnan(got) & np.isnan(expected))
    if wrong.any():
        where = tuple(np.argwhere(wrong)[0].tolist())
        raise AssertionError(f"{what}: {got[where]} instead of {expected[where]} at {where}")


def check_same_state(got: Any, expected: Any, rel: float = 1e-9, larger: Any = None) -> None:
    """Two tallies hold the same state; ``larger`` is what rows were subtracted from, which bounds the rounding."""
    states, others = got.arrays(), expected.arrays()
    assert states.keys() == others.keys(), f"{sorted(states)} instead of {sorted(others)}"
    for name, state in others.items():
        large = 0.0 if larger is None else float(np.abs(larger.arrays()[name].astype(float)).max(initial=0.0))
        check_close(states[name], state, name, rel, 1e3 * large)


@dataclass(frozen=True, eq=False)
class Example:
    columns: tuple[NDArray, ...]  # numbers, NaN where missing, or objects, None where missing
    y: Codes
    weight: Floats | None
    n_classes: int
    rel: float = 1e-9  # how near results must be
    is_full: bool = False  # whether every class has values of every column, so that all estimates exist

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: Any) -> "Example":
        weight = None if self.weight is None else self.weight[index]
        return replace(self, columns=tuple(c[index] for c in self.columns), y=self.y[index], weight=weight)

    def split(self) -> tuple["Example", "Example"]:
        return self.take(slice(0, len(self) // 3)), self.take(slice(len(self) // 3, None))

    def each_row(self) -> "list[Example]":
        return [self.take(slice(i, i + 1)) for i in range(len(self))]

    def with_weight(self, weight: Floats | None) -> "Example":
        return replace(self, weight=weight)


@dataclass(frozen=True)
class NumberColumns:
    """Columns of numbers of a support; a finite end is not always a valid value."""

    support: Support

    @property
    def is_unbounded(self) -> bool:
        return replace(self.support, is_open=False) == Support()

    def __call__(self, rng: np.random.Generator, y: Codes) -> NDArray:
        low, high = self.support.low, self.support.high
        if self.support.is_integer:
            x = rng.poisson(1.0 + y).astype(float)
            return np.clip(x + (low if np.isfinite(low) else 0.0), low, high)
        if np.isfinite(low) and np.isfinite(high):
            return low + (high - low) * rng.beta(2.0, 2.0 + y)
        if np.isfinite(low):
            return low + rng.gamma(2.0, 1.0 + y)
        return high - rng.gamma(2.0, 1.0 + y) if np.isfinite(high) else rng.normal(y, 1.0 + y)


def draw_categories(rng: np.random.Generator, y: Codes) -> NDArray:
    return np.array(_WORDS[:4], object)[(rng.integers(0, 3, len(y)) + (y > 0)) % 4]


def draw_documents(rng: np.random.Generator, y: Codes) -> NDArray:
    return np.array([" ".join(rng.choice(_WORDS[c:], rng.integers(0, 6))) for c in y % 3] + [None], object)[:-1]


def make_examples(draw: Draw, seed: int = 0, n_columns: int = 3) -> dict[str, Example]:
    """Return the examples by name; ``draw(rng, y)`` returns a column with one value for each class code."""
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(3), 14)

    def draw_example(y: Codes, n_classes: int = 3, **fields: Any) -> Example:
        columns = [np.asarray(draw(rng, y)) for _ in range(n_columns)]
        for x in columns:
            assert x.shape == y.shape, f"draw(rng, y) gave the shape {x.shape} for {len(y)} class codes"
        columns = [x.astype(float) if x.dtype.kind in "iub" else x for x in columns]
        return Example(tuple(columns), y, None, n_classes, **fields)

    plain = draw_example(y, is_full=True)
    weight = rng.choice([0.0, 0.1, 1.0, 2.5], len(y))
    holes = [rng.random(len(y)) < rate for rate in (0.3, 0.0, 0.8)]
    first, *rest = plain.columns
    empty = with_missing(first, np.ones(len(y), bool))
    examples = {
        "plain rows": plain,
        "weighted rows": plain.with_weight(weight),
        "gaps": replace(plain, columns=tuple(map(with_missing, plain.columns, holes)), is_full=False),
        "a column without values": replace(plain, columns=(empty, *rest), is_full=False),
        "a class without rows": draw_example(np.tile([0, 2], 9)),
        "one class": draw_example(np.zeros(12, np.intp), 1),
        "one row": draw_example(np.array([1])),
        "no rows": draw_example(np.zeros(0, np.intp)),
        "no weight at all": replace(plain, weight=np.zeros(len(y)), is_full=False),
    }
    if first.dtype == np.float64:
        examples["float32"] = replace(plain, columns=tuple(c.astype(np.float32) for c in plain.columns))
    if getattr(draw, "is_unbounded", False):
        examples["far from zero"] = replace(plain, columns=tuple(c + 1e8 for c in plain.columns), rel=1e-5)
    return examples


def with_missing(column: NDArray, holes: NDArray) -> NDArray:
    out = column.copy()
    out[holes] = None if out.dtype == object else np.nan
    return out
