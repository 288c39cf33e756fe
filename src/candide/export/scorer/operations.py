"""Operations: the steps of a score expression, which give (feature, class) contributions of a row.

Values are lists of numbers, feature by feature and within it class by class; a value by class has one number a class.

>>> part = {"score": [["less_equal", "x", 10], ["where", "#0", "no", "yes"]], "no": [-1, -2], "yes": [-3, -4]}
>>> compile_score(part, 2)([12.0])
[[-3.0, -4.0]]
"""

import base64
import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from candide.export.scorer.numbers import (
    cholesky,
    decode_numbers,
    log_rising,
    lower_triangles,
    multiply_lower,
    solve_lower,
    split_rows,
)
from candide.export.scorer.texts import COUNT_TRANSFORMS

LOG_2PI = math.log(2 * math.pi)
Contributions = list[list[float]]  # (feature, class)
JointOperation = Callable[..., Contributions]  # of what was read, and of arguments


def square(x: float, factor: float) -> float:
    z = x * factor
    return z * z  # a power that overflows would be an error


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "clip": lambda x, low, high: min(max(x, low), high),
    "square": square,
    "log": math.log,
    "log1p": lambda factor, x: factor * math.log1p(x),
    "exp": math.exp,
    "log_rising": log_rising,
    "less": operator.lt,
    "less_equal": operator.le,
    "equal": operator.eq,
    "is_missing": math.isnan,
    "where": lambda condition, yes, no: yes if condition else no,
}


def compile_score(part: dict[str, Any], k: int) -> Callable[[list[Any]], Contributions]:
    """A function from the values of a row to (feature, class) contributions."""
    start: list[Any] = [None]  # the values of a row: first x, then constants, then those of the steps
    steps, places = [], {"x": 0}
    for i, (operation, *names) in enumerate(part["score"]):
        if operation in JOINT:
            own = [name for name in names if name in places]
            compute = JOINT[operation](part, k, *(name for name in names if name not in places))
        else:
            own, compute = names, compile_operation(operation, k)
            for name in [name for name in names if name not in places]:
                places[name] = len(start)
                start.append(read_constant(part, k, name))
        steps.append((compute, operation in JOINT, [places[name] for name in own], len(start)))
        places[f"#{i}"] = len(start)
        start.append(None)
    takes_numbers = any(0 in own for _, _, own, _ in steps)

    def contributions(x: list[Any]) -> Contributions:
        values: list[Any] = start.copy()
        values[0] = [one for one in x for _ in range(k)] if takes_numbers else None
        for compute, is_joint, own, out in steps:
            given = [values[place] for place in own]
            values[out] = flatten(compute(x, *given)) if is_joint else compute(*given)
        return split_rows(values[-1], k)

    [(first, is_joint, own, _), *others] = steps
    return first if is_joint and not own and not others else contributions


def read_constant(part: dict[str, Any], k: int, name: Any) -> list[float]:
    """The values of a parameter, or a number for every class."""
    return decode_numbers(part[name]) if name in part else [float(name)] * k


def compile_operation(operation: str, k: int) -> Callable[..., list[Any]]:
    """An operation on lists; of one on each value, values by class are repeated for every feature."""
    if operation in REDUCTIONS:
        return partial(REDUCTIONS[operation], k)
    function = ELEMENTWISE[operation]

    def compute(*values: list[Any]) -> list[Any]:
        if len(set(map(len, values))) > 1:
            n = max(map(len, values))
            values = tuple(value * (n // len(value)) for value in values)
        return list(map(function, *values))

    return compute


def flatten(rows: Contributions) -> list[float]:
    return rows[0] if len(rows) == 1 else [one for row in rows for one in row]


def over_classes(reduce: Callable[[list[float]], float], k: int, x: list[float]) -> list[float]:
    return [reduce(x)] * k if len(x) == k else [one for own in split_rows(x, k) for one in [reduce(own)] * k]


REDUCTIONS: dict[str, Callable[..., list[float]]] = {
    "sum": lambda k, x: [sum(x[c::k]) for c in range(k)],
    "class_sum": lambda k, x: over_classes(sum, k, x),
    "class_max": lambda k, x: over_classes(max, k, x),
    "stack": lambda k, *values: flatten(list(values)),
}


def lookup(part: dict[str, Any], k: int) -> JointOperation:
    table, starts = split_rows(decode_numbers(part["table"]), k), [0]
    for size in part["sizes"]:
        starts.append(starts[-1] + size + 1)
    none = [0.0] * k
    return lambda x: [none if code < 0 else table[start + code] for start, code in zip(starts, x, strict=False)]


def read_cells(part: dict[str, Any], k: int) -> list[tuple[list[int], list[float], Contributions]]:
    """The columns of each set, the scores of most of its cells, and the scores of every cell."""
    order, odd, values = part["order"], base64.b64decode(part["odd"]), iter(decode_numbers(part["table"]))
    out, start = [], 0
    for s, usual in enumerate(split_rows(decode_numbers(part["usual"]), k)):
        columns = part["sets"][s * order : (s + 1) * order]
        stop = start + k * math.prod(part["sizes"][j] for j in columns)
        bits = (odd[i >> 3] >> (i & 7) & 1 for i in range(start, stop))
        out.append(
            (columns, usual, [[next(values) if next(bits) else one for one in usual] for _ in range(start, stop, k)])
        )
        start = stop
    return out


def cells(part: dict[str, Any], k: int) -> JointOperation:
    sizes, none = part["sizes"], [0.0] * k

    def find(x: list[int], columns: list[int], table: Contributions) -> list[float]:
        place = 0
        for j in columns:
            if not 0 <= x[j] < sizes[j]:
                return none
            place = place * sizes[j] + x[j]
        return table[place]

    sets = [(columns, table) for columns, _, table in read_cells(part, k)]
    return lambda x: [find(x, columns, table) for columns, table in sets]


def distance(part: dict[str, Any], k: int, name: str) -> JointOperation:
    """|R x - mean|^2 of each class."""
    means = decode_numbers(part[f"{name}_means"])
    p = len(means) // k
    centres, roots = split_rows(means, p), lower_triangles(decode_numbers(part[f"{name}_roots"]), p)

    def compute(x: list[float]) -> Contributions:
        products = [multiply_lower(root, x) for root in roots]
        return [[square(math.dist(products[min(c, len(roots) - 1)], mean), 1.0) for c, mean in enumerate(centres)]]

    return compute


def conditional(part: dict[str, Any], k: int) -> JointOperation:
    """Columns of one normal or t: each given those before it that are present."""
    held = decode_numbers(part["loc"])
    p = len(held) // k
    loc, factor = split_rows(held, p), decode_numbers(part["factor"])
    matrices = lower_triangles(decode_numbers(part["matrix"]), p)
    df, rising = decode_numbers(part.get("df", [])), split_rows(decode_numbers(part.get("rising", [])), p)
    roots: dict[tuple[int, ...], list[tuple[list[float], Contributions]]] = {}  # by the columns that are present

    def root_of(matrix: Contributions, some: tuple[int, ...]) -> tuple[list[float], Contributions]:
        unit = [1 / math.sqrt(matrix[i][i]) for i in some]
        pairs = [[matrix[i][j] * unit[a] * unit[b] for b, j in enumerate(some[: a + 1])] for a, i in enumerate(some)]
        return unit, cholesky(pairs)

    def make(row: list[float], numbers: list[float]) -> Contributions:
        x = numbers[::k]
        some = tuple(j for j in range(p) if x[j] == x[j] and not part["constant"][j])
        if some not in roots:
            roots[some] = [root_of(matrix, some) for matrix in matrices]
        out = [[0.0] * k for _ in x]
        for c in range(k):
            unit, root = roots[some][min(c, len(matrices) - 1)]
            z = solve_lower(root, [(x[j] - loc[c][j]) * one for j, one in zip(some, unit, strict=True)])
            before = df[c] if df else 0.0
            for a, j in enumerate(some):
                square = z[a] * z[a] / factor[c]
                density = -0.5 * (LOG_2PI + square)
                if before == math.inf:  # impossible by the columns before
                    density = -math.inf
                elif df:
                    density = rising[c][a] - 0.5 * math.log(math.pi * before)
                    density -= 0.5 * (df[c] + a + 1) * math.log1p(square / before)
                out[j][c] = density - math.log(root[a][a] / unit[a]) - 0.5 * math.log(factor[c])
                before += square
        return out

    return make


def read_vocabulary(part: dict[str, Any]) -> dict[str, tuple[int, list[tuple[int, float]]]]:
    """The known tokens of texts, with the cells (class, value) of each."""
    cells, at, known = list(zip(part["classes"], decode_numbers(part["value"]), strict=True)), 0, {}
    for i, (term, size) in enumerate(zip(part["tokens"], part["cells"], strict=True)):
        known[term] = i, cells[at : at + size]
        at += size
    return known


def tokens(part: dict[str, Any], k: int) -> JointOperation:
    """A weighted sum over the tokens of a text; with token weights it is divided by a power of the length."""
    known, weigh = read_vocabulary(part), COUNT_TRANSFORMS[part["count_mode"]]
    names = ("shared", "unit", "common", "scale", "constant", "token_weights", "unknown_scores")
    shared, unit, common, scale, constant, weights, unknown = (decode_numbers(part.get(name, [])) for name in names)

    def make(x: list[Any]) -> Contributions:
        if x[0] is None:
            return [list(unknown) or [0.0] * k]
        own, met, units, commons, length, n = [0.0] * k, [0] * k, 0.0, 0.0, 0.0, 0
        for term, times in x[0].items():
            if term not in known:
                continue
            (i, cells), counts = known[term], weigh(times)
            w = counts * weights[i] if weights else counts
            for c, value in cells:
                own[c] += w * value
                met[c] += 1
            units += w * unit[i] if unit else w
            commons += counts * common[i] if common else 0.0
            length, n = length + counts, n + 1
        less = length ** -part["power"] if weights and length > 0 else 1.0
        out = [(a + b * units) * less for a, b in zip(own, shared, strict=True)]
        out = [a + b * commons for a, b in zip(out, scale or out, strict=True)] if common else out
        out = [a + b for a, b in zip(out, constant, strict=True)] if constant else out
        out = [a + b for a, b in zip(out, unknown, strict=True)] if unknown and not n else out
        only = part.get("only_known", [False] * k)
        return [
            [-math.inf if known_only and there < n else a for a, known_only, there in zip(out, only, met, strict=True)]
        ]

    return make


def polya(part: dict[str, Any], k: int) -> JointOperation:
    """A token that occurred is likelier to occur again."""
    known, alpha = read_vocabulary(part), decode_numbers(part["alpha"])
    concentration = decode_numbers(part["concentration"])

    def make(x: list[Any]) -> Contributions:
        if x[0] is None:
            return [[0.0] * k]
        counts = {term: times for term, times in x[0].items() if term in known}
        length = sum(counts.values())
        out = [-log_rising(one, length) for one in concentration]
        for term, times in counts.items():
            own = {**dict(enumerate(alpha)), **dict(known[term][1])}
            out = [a + log_rising(own[c], times) for c, a in enumerate(out)]
        return [out]

    return make


JOINT: dict[str, Callable[..., JointOperation]] = {
    "lookup": lookup,
    "cells": cells,
    "distance": distance,
    "conditional": conditional,
    "tokens": tokens,
    "polya": polya,
}
