"""Operations: the steps of a score expression, which give (feature, class) contributions of a row.

Values are lists of numbers, feature by feature and within it class by class; a value by class has one number a class.

>>> part = {"score": [["less_equal", "x", 10], ["where", "#0", "no", "yes"]], "no": [-1, -2], "yes": [-3, -4]}
>>> compile_score(part, 2)([12.0])
[[-3.0, -4.0]]
"""

import base64
import itertools
import math
import operator
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from candide.export.python_js.numbers import (
    cholesky,
    decode_numbers,
    log_rising,
    lower_triangles,
    multiply_lower,
    solve_lower,
    split_rows,
)
from candide.kernels.text import occurrence_weight

LOG_2PI = math.log(2 * math.pi)
MAX_QUESTIONS = 8  # of a decision table: its cells are bytes
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
        is_joint = operation in JOINT
        for name in [name for name in names if name not in places and not is_joint]:
            places[name] = len(start)
            start.append(decode_numbers(part[name]) if name in part else [float(name)] * k)
        inputs = [places[name] for name in names if name in places]
        if is_joint:
            compute = JOINT[operation](part, k, *(name for name in names if name not in places))
        else:
            compute = compile_operation(operation, k)
        steps.append((compute, is_joint, inputs, len(start)))
        places[f"#{i}"] = len(start)
        start.append(None)
    takes_numbers = any(0 in inputs for _, _, inputs, _ in steps)

    def contributions(x: list[Any]) -> Contributions:
        values: list[Any] = start.copy()
        values[0] = [number for number in x for _ in range(k)] if takes_numbers else None
        for compute, is_joint, inputs, out in steps:
            arguments = [values[place] for place in inputs]
            values[out] = flatten(compute(x, *arguments)) if is_joint else compute(*arguments)
        return split_rows(values[-1], k)

    [(first, is_joint, inputs, _), *others] = steps
    return first if is_joint and not inputs and not others else contributions


def compile_operation(operation: str, k: int) -> Callable[..., list[Any]]:
    """An operation on lists; values by class are repeated for every feature."""
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
    return rows[0] if len(rows) == 1 else [value for row in rows for value in row]


def over_classes(reduce: Callable[[list[float]], float], k: int, x: list[float]) -> list[float]:
    return [reduced for row in split_rows(x, k) for reduced in [reduce(row)] * k]


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
        table = [[next(values) if next(bits) else value for value in usual] for _ in range(start, stop, k)]
        out.append((columns, usual, table))
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


def read_tables(part: dict[str, Any], k: int) -> tuple[list[list[bytes]], list[Contributions]]:
    """For each column and code the bits of its cell in every table, and for each class and table the scores of cells.

    The first code is for what is missing or unseen.
    """
    sides, filled = base64.b64decode(part["sides"]), base64.b64decode(part["filled"])
    values = (x / part["chains"] for (x,) in struct.iter_unpack("<f", base64.b64decode(part["values"])))
    questions = [[int(j) for j in columns if j >= 0] for columns in split_rows(part["questions"], MAX_QUESTIONS)]
    bits = [[bytearray(len(questions)) for _ in range(size + 1)] for size in part["sizes"]]
    scores: list[Contributions] = [[] for _ in range(k)]
    at = cell = 0
    for t, columns in enumerate(questions):
        for i, j in enumerate(columns, 1):
            for table_bits in bits[j]:
                table_bits[t] |= (sides[at >> 3] >> (at & 7) & 1) << (len(columns) - i)
                at += 1
        rows = []
        for _ in range(1 << len(columns)):
            is_filled = filled[cell >> 3] >> (cell & 7) & 1
            rows.append([next(values) for _ in range(k)] if is_filled else [0.0] * k)
            cell += 1
        for of_class, column in zip(scores, zip(*rows, strict=True), strict=True):
            of_class.append(list(column))
    return [list(map(bytes, column)) for column in bits], scores


def tables(part: dict[str, Any], k: int) -> JointOperation:
    """The cells of all tables are the bytes of one integer."""
    bits, scores = read_tables(part, k)
    columns = [[int.from_bytes(table_bits, "little") for table_bits in column] for column in bits]
    n, bounds = len(scores[0]), list(itertools.pairwise([0, *part["stops"]]))
    segments = [(a, b, [of_class[a:b] for of_class in scores]) for a, b in bounds]

    def score(x: list[int]) -> Contributions:
        total = 0
        for code, column in zip(x, columns, strict=True):
            total |= column[code + 1 if code + 1 < len(column) else 0]
        cells = total.to_bytes(n, "little")
        return [
            [sum(map(operator.getitem, of_class, cells[a:b])) for of_class in by_class] for a, b, by_class in segments
        ]

    return score


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

    def root_of(matrix: Contributions, present: tuple[int, ...]) -> tuple[list[float], Contributions]:
        unit = [1 / math.sqrt(matrix[i][i]) for i in present]
        lower = [
            [matrix[i][j] * unit[a] * unit[b] for b, j in enumerate(present[: a + 1])] for a, i in enumerate(present)
        ]
        return unit, cholesky(lower)

    def make(row: list[float], numbers: list[float]) -> Contributions:
        x = numbers[::k]
        present = tuple(j for j in range(p) if x[j] == x[j] and not part["constant"][j])
        if present not in roots:
            roots[present] = [root_of(matrix, present) for matrix in matrices]
        out = [[0.0] * k for _ in x]
        for c in range(k):
            unit, root = roots[present][min(c, len(matrices) - 1)]
            z = solve_lower(root, [(x[j] - loc[c][j]) * scale for j, scale in zip(present, unit, strict=True)])
            before = df[c] if df else 0.0
            for a, j in enumerate(present):
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
    """The known tokens, with the cells (class, value) of each."""
    cells, at, known = list(zip(part["classes"], decode_numbers(part["value"]), strict=True)), 0, {}
    for i, (token, size) in enumerate(zip(part["tokens"], part["cells"], strict=True)):
        known[token] = i, cells[at : at + size]
        at += size
    return known


def tokens(part: dict[str, Any], k: int) -> JointOperation:
    """A weighted sum over the tokens of a text; with token weights it is divided by a power of the length."""
    known, count_mode = read_vocabulary(part), part["count_mode"]
    names = ("shared", "unit", "common", "scale", "constant", "token_weights", "unknown_scores")
    shared, unit, common, scale, constant, weights, unknown = (decode_numbers(part.get(name, [])) for name in names)
    only_known = part.get("only_known", [False] * k)

    def score(x: list[Any]) -> Contributions:
        if x[0] is None:
            return [list(unknown) or [0.0] * k]
        sums, seen, units, commons, length, n = [0.0] * k, [0] * k, 0.0, 0.0, 0.0, 0
        for token, times in x[0].items():
            if token not in known:
                continue
            (i, cells), count = known[token], occurrence_weight(count_mode, times)
            w = count * weights[i] if weights else count
            for c, value in cells:
                sums[c] += w * value
                seen[c] += 1
            units += w * unit[i] if unit else w
            commons += count * common[i] if common else 0.0
            length, n = length + count, n + 1
        factor = length ** -part["power"] if weights and length > 0 else 1.0
        out = [(a + b * units) * factor for a, b in zip(sums, shared, strict=True)]
        out = [a + b * commons for a, b in zip(out, scale or out, strict=True)] if common else out
        for added in (constant, unknown if not n else []):
            out = [a + b for a, b in zip(out, added, strict=True)] if added else out
        return [[-math.inf if only and m < n else a for a, only, m in zip(out, only_known, seen, strict=True)]]

    return score


def polya(part: dict[str, Any], k: int) -> JointOperation:
    """A token that occurred is likelier to occur again."""
    known, alpha = read_vocabulary(part), decode_numbers(part["alpha"])
    concentration = decode_numbers(part["concentration"])

    def score(x: list[Any]) -> Contributions:
        if x[0] is None:
            return [[0.0] * k]
        counts = {token: times for token, times in x[0].items() if token in known}
        length = sum(counts.values())
        out = [-log_rising(a, length) for a in concentration]
        for token, times in counts.items():
            cells = {**dict(enumerate(alpha)), **dict(known[token][1])}
            out = [a + log_rising(cells[c], times) for c, a in enumerate(out)]
        return [out]

    return score


JOINT: dict[str, Callable[..., JointOperation]] = {
    "lookup": lookup,
    "cells": cells,
    "tables": tables,
    "distance": distance,
    "conditional": conditional,
    "tokens": tokens,
    "polya": polya,
}
