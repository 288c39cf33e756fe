"""How values are read: a number, a code (-1 missing, the number of levels if unseen), scores or a text.

>>> READERS["grid"]({"edges": [27, 41]}, {"name": "age", "kind": "number"})("30")
[1]
"""

import math
from collections.abc import Callable
from typing import Any

from candide.export.scorer.numbers import cholesky, count_below, decode_numbers, interpolate, solve_lower, split_rows
from candide.export.scorer.texts import count_tokens
from candide.export.scorer.values import MISSING_LEVEL, find_level, read_number_value, read_text_value


def read_grid(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    edges = decode_numbers(read["edges"])

    def code(value: Any) -> list[Any]:
        x = read_number_value(column, value)
        return [-1 if x != x else count_below(edges, x)]

    return code


def read_levels(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    code, new = {place: i for i, place in enumerate(read["levels"])}, len(read["levels"])

    def place(value: Any) -> list[Any]:
        at = find_level(column, value)
        return [-1 if at == MISSING_LEVEL else code.get(at, new)]

    return place


def read_score(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    knots, scores = decode_numbers(read["values"]), shared[read["scores"]]

    def of(value: Any) -> list[Any]:
        x = read_number_value(column, value)
        return [0.0 if x != x else interpolate(x, knots, scores)]

    return of


def read_indicators(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    each = list(zip(read["levels"], decode_numbers(read["yes"]), decode_numbers(read["no"]), strict=True))

    def of(value: Any) -> list[Any]:
        at = find_level(column, value)
        return [0.0 if at == MISSING_LEVEL else yes if level == at else no for level, yes, no in each]

    return of


def read_tokens(read: dict[str, Any], column: dict[str, Any], shared: Any = ()) -> Callable[[Any], list[Any]]:
    def of(value: Any) -> list[Any]:
        text = read_text_value(column, value)
        return [None if text is None else count_tokens(read, text)]

    return of


READERS: dict[str, Callable] = {
    "number": lambda read, column, shared: lambda value: [read_number_value(column, value)],
    "grid": read_grid,
    "levels": read_levels,
    "score": read_score,
    "indicators": read_indicators,
    "tokens": read_tokens,
}


def prototype_similarity(read: dict[str, Any]) -> Callable[[list[float]], list[float]]:
    """Similarity to prototypes, decorrelated, of scores that were read."""
    held = decode_numbers(read["rows"])
    typical, scale = split_rows(held, len(held) // read["n"]), math.sqrt(read["n"])
    factor = -0.5 / read["length_scale"] ** 2

    def like(a: list[float], b: list[float]) -> float:
        return math.exp(factor * math.dist(a, b) ** 2)

    root = cholesky([[*(like(a, b) for b in typical[:i]), 1.0 + read["ridge"]] for i, a in enumerate(typical)])
    return lambda scores: [one * scale for one in solve_lower(root, [like(one, scores) for one in typical])]
