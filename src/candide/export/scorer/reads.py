"""How values are read: a number, a code (-1 absent, the number of levels for a new one), scores or a text.

>>> READS["grid"]({"edges": [27, 41]}, {"name": "age", "kind": "number"})("30")
[1]
"""

import math
from collections.abc import Callable
from typing import Any

from candide.export.scorer.numbers import below, cholesky, interpolate, numbers, rows, solve
from candide.export.scorer.texts import terms_of
from candide.export.scorer.values import ABSENT, number_of, place_of, text_of


def grid(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    edges = numbers(read["edges"])

    def code(value: Any) -> list[Any]:
        x = number_of(column, value)
        return [-1 if x != x else below(edges, x)]

    return code


def levels(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    code, new = {place: i for i, place in enumerate(read["levels"])}, len(read["levels"])

    def place(value: Any) -> list[Any]:
        at = place_of(column, value)
        return [-1 if at == ABSENT else code.get(at, new)]

    return place


def score(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    knots, scores = numbers(read["values"]), shared[read["scores"]]

    def of(value: Any) -> list[Any]:
        x = number_of(column, value)
        return [0.0 if x != x else interpolate(x, knots, scores)]

    return of


def indicators(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    each = list(zip(read["levels"], numbers(read["yes"]), numbers(read["no"]), strict=True))

    def of(value: Any) -> list[Any]:
        at = place_of(column, value)
        return [0.0 if at == ABSENT else yes if level == at else no for level, yes, no in each]

    return of


def terms(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    def of(value: Any) -> list[Any]:
        text = text_of(column, value)
        return [None if text is None else terms_of(read, text)]

    return of


READS: dict[str, Callable] = {
    "number": lambda read, column, shared: lambda value: [number_of(column, value)],
    "grid": grid,
    "levels": levels,
    "score": score,
    "indicators": indicators,
    "terms": terms,
}


def likeness(read: dict[str, Any]) -> Callable[[list[float]], list[float]]:
    """Likeness to typical rows, made unrelated: of scores that were read."""
    held = numbers(read["rows"])
    typical, factor, scale = rows(held, len(held) // read["n"]), -0.5 / read["reach"] ** 2, math.sqrt(read["n"])

    def like(a: list[float], b: list[float]) -> float:
        return math.exp(factor * sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))

    root = cholesky([[*(like(a, b) for b in typical[:i]), 1.0 + read["blur"]] for i, a in enumerate(typical)])
    return lambda scores: [one * scale for one in solve(root, [like(one, scores) for one in typical])]
