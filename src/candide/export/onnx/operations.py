"""The operations of score expressions as nodes of a graph: values are (row, feature, class) tensors.

>>> graph = Graph()
>>> x = graph.input("x", "double")
>>> part = {"score": [["less_equal", "x", 10.0], ["where", "#0", "no", "yes"]], "no": [-1.0, -2.0], "yes": [-3.0, -4.0]}
>>> _ = add_score(graph, part, x, 2)
>>> [node.op_type for node in graph.nodes]
['Unsqueeze', 'LessOrEqual', 'Where']
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.export.onnx.graph import Graph, Tensor
from candide.export.scorer.numbers import STIRLING, decode_numbers, lower_triangles
from candide.export.scorer.operations import read_cells

_LOG_2PI = math.log(2 * math.pi)

Part = dict[str, Any]

_STIRLING_FROM = 16  # where Stirling's series begins to be exact enough


def add_score(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    """(row, feature, class) contributions of what was read, (row, column)."""
    values: dict[Any, Any] = {}
    if any("x" in arguments for _, *arguments in part["score"]):
        values["x"] = x.unsqueeze(2)

    def read(name: Any) -> Any:
        if name not in values:
            values[name] = np.array(decode_numbers(part[name])).reshape(-1, k) if name in part else float(name)
        return values[name]

    for i, (operation, *names) in enumerate(part["score"]):
        if operation in JOINT:
            given = [values.get(name, name) for name in names]
            values[f"#{i}"] = JOINT[operation](graph, part, x, k, *given)
        else:
            values[f"#{i}"] = OPERATIONS[operation](graph, *map(read, names))
    return values[f"#{i}"]


def clip(graph: Graph, x: Tensor, low: float, high: float) -> Tensor:
    """An infinity stays one, and so does a missing value."""
    if low > -1e200:
        x = graph.where(x < low, low, x)
    return graph.where((x > high) & (x < np.inf), high, x)


def square(graph: Graph, x: Tensor, factor: Any) -> Tensor:
    z = x * factor
    return z * z


def log_rising(graph: Graph, a: NDArray, x: Tensor) -> Tensor:
    """log Gamma(a + x) / Gamma(a), by Stirling's series, whose large parts are subtracted on paper."""
    first = np.where(a > 0, a, 1.0)
    steps = first[..., None] + np.arange(_STIRLING_FROM)
    steps = np.where(
        steps < _STIRLING_FROM, steps, np.inf
    )  # of these each is one more than the one before; the others add 0
    shift = (1.0 + x.unsqueeze(-1) / steps).log().sum(-1)
    a_ = first + np.isfinite(steps).sum(axis=-1)
    end = x + a_
    found = (a_ - 0.5) * graph.log1p(x / a_) + x * (end.log() - 1.0) + stirling(end) - stirling(a_) - shift
    if (a > 0).all():
        return found
    return graph.where(a > 0, found, graph.where(x.equals(0.0), 0.0, -np.inf))


def stirling(a: Any) -> Any:
    square = (1.0 / a) * (1.0 / a) if isinstance(a, np.ndarray) else a.graph.op("Reciprocal", a * a)
    total: Any = STIRLING[-1]
    for one in STIRLING[-2::-1]:
        total = square * total + one
    return total / a


OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": lambda graph, a, b: a + b,
    "subtract": lambda graph, a, b: a - b,
    "multiply": lambda graph, a, b: a * b,
    "divide": lambda graph, a, b: a / b,
    "clip": clip,
    "square": square,
    "log": lambda graph, x: x.log(),
    "log1p": lambda graph, factor, x: factor * graph.log1p(x),
    "exp": lambda graph, x: x.exp(),
    "log_rising": log_rising,
    "less": lambda graph, a, b: a < b,
    "less_equal": lambda graph, a, b: a <= b,
    "equal": lambda graph, a, b: a.equals(b),
    "is_missing": lambda graph, x: x.is_nan,
    "where": lambda graph, condition, yes, no: graph.where(condition, yes, no),
    "sum": lambda graph, x: x.sum(1, keep=True),
    "class_sum": lambda graph, x: x.sum(2, keep=True),
    "class_max": lambda graph, x: x.max(2),
    "stack": lambda graph, *values: graph.concat(values),
}


def lookup(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    table = np.array(decode_numbers(part["table"])).reshape(-1, k)
    starts = np.cumsum([0, *(size + 1 for size in part["sizes"])])[:-1]
    at = graph.where(x < 0, len(table), x + starts)
    return graph.constant(np.vstack([table, np.zeros(k)])).take(at)


def cells(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    sizes, sets = np.array(part["sizes"]), np.array(part["sets"]).reshape(-1, part["order"])
    tables = [table for _, _, table in read_cells(part, k)]
    n, table = [len(own) for own in tables], np.concatenate(tables)
    place: Any = np.zeros(len(sets), np.int64)
    known: Tensor | None = None
    for columns in sets.T:
        code, size = x.take(graph.constant(columns), axis=1), sizes[columns]  # (row, set)
        there = (code >= 0) & (code < size)
        known = there if known is None else known & there
        place = code + place * size
    assert known is not None
    at = graph.where(known, place + np.cumsum([0, *n[:-1]]), len(table))
    return graph.constant(np.vstack([table, np.zeros(k)])).take(at)


def distance(graph: Graph, part: Part, x: Tensor, k: int, name: str) -> Tensor:
    """(row, 1, class) |R x - mean|^2 of each class."""
    means = np.array(decode_numbers(part[f"{name}_means"])).reshape(k, -1)
    roots = expand_lower_triangles(decode_numbers(part[f"{name}_roots"]), means.shape[1])
    if len(roots) == 1:
        away = (x @ np.ascontiguousarray(roots[0].T)).unsqueeze(1) - means  # (row, class, column)
        return (away * away).sum(2).unsqueeze(1)
    own = x.unsqueeze(0) @ np.ascontiguousarray(roots.transpose(0, 2, 1)) - means[:, None, :]  # (class, row, column)
    return (own * own).sum(2).transpose(1, 0).unsqueeze(1)


def expand_lower_triangles(values: Sequence[float], p: int) -> NDArray:
    """(matrix, row, column) lower triangles that lie one after another."""
    rows = lower_triangles(list(values), p)
    return np.array([[[*row, *[0.0] * (p - len(row))] for row in one] for one in rows])


def conditional(graph: Graph, part: dict[str, Any], rows: Tensor, k: int, numbers: Tensor) -> Tensor:
    """(row, column, class) contributions of numbers (row, column, 1)."""
    x = graph.op("Squeeze", numbers, np.array([2]))
    loc, factor = np.array(decode_numbers(part["loc"])).reshape(k, -1), np.array(decode_numbers(part["factor"]))
    varies = ~np.array(part["constant"], bool)
    unit, matrix = _standardize(_symmetric(lower_triangles(decode_numbers(part["matrix"]), len(varies))), varies)
    gone = x.is_nan | graph.constant(~varies)  # (row, column)
    y = graph.where(gone.unsqueeze(1), 0.0, (x.unsqueeze(1) - loc) * unit)  # (row, class, column)
    incomplete = (x.is_nan & graph.constant(varies)).to_int64().sum(1).sum(0) > 0
    squares, spread = graph.branch(
        incomplete, lambda: _by_elimination(graph, y, gone, matrix), lambda: _by_root(graph, y, matrix)
    )
    square = squares / factor[:, None]
    density = _student(graph, part, square, gone, k) if "df" in part else -0.5 * (_LOG_2PI + square)
    terms = density - spread - (0.5 * np.log(factor)[:, None] - np.log(unit))
    return graph.where(gone.unsqueeze(1), 0.0, terms).transpose(0, 2, 1)


def _by_root(graph: Graph, y: Tensor, matrix: NDArray) -> list[Tensor]:
    """(row, class, column) squared deviations, and (class, column) logarithms of their scale: of complete rows."""
    root = np.linalg.cholesky(matrix)
    apart = np.ascontiguousarray(np.linalg.inv(root).transpose(0, 2, 1))
    z = (y.transpose(1, 0, 2) @ apart).transpose(1, 0, 2)
    return [z * z, graph.op("Identity", np.log(root.diagonal(axis1=1, axis2=2)))]


def _by_elimination(graph: Graph, y: Tensor, gone: Tensor, matrix: NDArray) -> list[Tensor]:
    """The same of rows in which values are missing."""
    there = 1.0 - gone.to_double()
    both = there.unsqueeze(1, 3) * there.unsqueeze(1, 2)
    p = matrix.shape[1]
    s = both * matrix + (1.0 - there).unsqueeze(1, 3) * np.eye(p)  # (row, class or 1, column, column)
    squares, spread = [], []
    for j in range(p):
        first, variance = _first_along(y, 2), _first_along(_first_along(s, 3), 2)  # (row, class, 1), (row, class, 1, 1)
        flat = graph.op("Squeeze", variance, np.array([3]))
        squares.append(first * first / flat)
        spread.append(0.5 * flat.log())
        if j + 1 < p:
            column = _first_along(_rest_along(s, 2), 3)  # (row, class, column, 1)
            told = column / variance
            y = _rest_along(y, 2) - first * graph.op("Squeeze", told, np.array([3]))
            s = _rest_along(_rest_along(s, 2), 3) - told * column.transpose(0, 1, 3, 2)
    return [graph.concat(squares, 2), graph.concat(spread, 2)]


def _student(graph: Graph, part: dict[str, Any], square: Tensor, gone: Tensor, k: int) -> Tensor:
    """Densities under a t: its degrees of freedom grow with the columns before, and its scale with their squares."""
    df = np.array(decode_numbers(part["df"]))[:, None]
    table = graph.constant(np.ascontiguousarray(np.array(decode_numbers(part["rising"])).reshape(k, -1).T))
    rank = graph.op("CumSum", 1.0 - gone.to_double(), np.array(1), exclusive=1)  # (row, column) of those before present
    rising = table.take(rank.to_int64()).transpose(0, 2, 1)
    before = graph.op("CumSum", square, np.array(2), exclusive=1) + df  # (row, class, column)
    density = rising - 0.5 * (before * math.pi).log()
    density = density - 0.5 * (rank.unsqueeze(1) + (df + 1.0)) * graph.log1p(square / before)
    return graph.where(graph.op("IsInf", before), -np.inf, density)  # impossible by the columns before


def _symmetric(lower: list[list[list[float]]]) -> NDArray:
    """(matrix, column, column) symmetric ones, of their lower triangles."""
    p = len(lower[0])
    out = np.zeros((len(lower), p, p))
    for matrix, rows in zip(out, lower, strict=True):
        for i, row in enumerate(rows):
            matrix[i, : i + 1] = matrix[: i + 1, i] = row
    return out


def _standardize(matrix: NDArray, varies: NDArray) -> tuple[NDArray, NDArray]:
    """(matrix, column) one over the deviations, and the matrices that are left; of a constant column nothing."""
    variance = np.where(varies, matrix.diagonal(axis1=1, axis2=2), 1.0)
    unit = 1.0 / np.sqrt(variance)
    both = varies[:, None] & varies[None, :]
    return unit, np.where(both, matrix * unit[:, :, None] * unit[:, None, :], np.eye(len(varies)))


def _first_along(x: Tensor, axis: int) -> Tensor:
    return x.slice_axis(axis, 0, 1)


def _rest_along(x: Tensor, axis: int) -> Tensor:
    return x.slice_axis(axis, 1, np.iinfo(np.int64).max)


JOINT: dict[str, Callable[..., Tensor]] = {
    "lookup": lookup,
    "cells": cells,
    "distance": distance,
    "conditional": conditional,
}
