"""The operations of score expressions as nodes of a graph: values are (row, feature, class) tensors."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.export.onnx.graph import Graph, Tensor
from candide.export.python_js.numbers import STIRLING, decode_numbers, lower_triangles
from candide.export.python_js.operations import read_cells, read_tables

_LOG_2PI = math.log(2 * math.pi)
_STIRLING_FROM = 16  # from here on Stirling's series is accurate
Part = dict[str, Any]


def add_score(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    """(row, feature, class) contributions of the (row, column) values that were read."""
    values: dict[Any, Any] = {}
    if any("x" in arguments for _, *arguments in part["score"]):
        values["x"] = x.unsqueeze(2)

    def read(name: Any) -> Any:
        if name not in values:
            values[name] = np.array(decode_numbers(part[name])).reshape(-1, k) if name in part else float(name)
        return values[name]

    for i, (operation, *names) in enumerate(part["score"]):
        if operation in JOINT:
            values[f"#{i}"] = JOINT[operation](graph, part, x, k, *(values.get(name, name) for name in names))
        else:
            values[f"#{i}"] = OPERATIONS[operation](graph, *map(read, names))
    return values[f"#{i}"]


def clip(graph: Graph, x: Tensor, low: float, high: float) -> Tensor:
    """``x`` from ``low`` to ``high``; infinities and missing values stay."""
    if low > -1e200:
        x = graph.where(x < low, low, x)
    return graph.where((x > high) & (x < np.inf), high, x)


def square(graph: Graph, x: Tensor, factor: Any) -> Tensor:
    z = x * factor
    return z * z


def log_rising(graph: Graph, a: NDArray, x: Tensor) -> Tensor:
    """log Gamma(a + x) / Gamma(a), by Stirling's series, with the large parts cancelled analytically."""
    first = np.where(a > 0, a, 1.0)
    steps = first[..., None] + np.arange(_STIRLING_FROM)
    steps = np.where(steps < _STIRLING_FROM, steps, np.inf)  # infinite steps add 0
    shift = (1.0 + x.unsqueeze(-1) / steps).log().sum(-1)
    start = first + np.isfinite(steps).sum(axis=-1)
    end = x + start
    out = (start - 0.5) * graph.log1p(x / start) + x * (end.log() - 1.0) + stirling(end) - stirling(start) - shift
    return out if (a > 0).all() else graph.where(a > 0, out, graph.where(x.equals(0.0), 0.0, -np.inf))


def stirling(a: Any) -> Any:
    square = (1.0 / a) * (1.0 / a) if isinstance(a, np.ndarray) else a.graph.op("Reciprocal", a * a)
    total: Any = STIRLING[-1]
    for term in STIRLING[-2::-1]:
        total = square * total + term
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
    starts, table = np.cumsum([0, *map(len, tables[:-1])]), np.concatenate(tables)
    place: Any = np.zeros(len(sets), np.int64)
    is_known: Any = None
    for columns in sets.T:
        code, size = x.take(graph.constant(columns), axis=1), sizes[columns]  # (row, set)
        in_range = (code >= 0) & (code < size)
        is_known = in_range if is_known is None else is_known & in_range
        place = code + place * size
    at = graph.where(is_known, place + starts, len(table))
    return graph.constant(np.vstack([table, np.zeros(k)])).take(at)


def tables(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    """(row, segment, class): each code of a column sets bits of the cell in every table."""
    bits, by_class = read_tables(part, k)
    cells: Any = None
    for j, column in enumerate(bits):
        code, table_bits = x.column(j).squeeze(1), np.array([np.frombuffer(row, np.uint8) for row in column])
        code = graph.where((code >= 0) & (code < len(column) - 1), code + 1, 0)
        found = graph.constant(table_bits).take(code)  # (row, table)
        cells = found if cells is None else graph.op("BitwiseOr", cells, found)
    scores = np.concatenate([np.array(cells_of_class) for cells_of_class in zip(*by_class, strict=True)], axis=1).T
    starts = np.cumsum([0, *map(len, by_class[0][:-1])])
    found = graph.constant(scores).take(cells.to_int64() + starts)  # (row, table, class)
    bounds = pairwise([0, *part["stops"]])
    return graph.concat([found.slice_axis(1, start, stop).sum(1, keep=True) for start, stop in bounds])


def distance(graph: Graph, part: Part, x: Tensor, k: int, name: str) -> Tensor:
    """(row, 1, class) |R x - mean|^2 of each class."""
    means = np.array(decode_numbers(part[f"{name}_means"])).reshape(k, -1)
    p = means.shape[1]
    triangles = lower_triangles(decode_numbers(part[f"{name}_roots"]), p)
    roots = np.array([[[*row, *[0.0] * (p - len(row))] for row in rows] for rows in triangles])
    if len(roots) == 1:
        away = (x @ np.ascontiguousarray(roots[0].T)).unsqueeze(1) - means  # (row, class, column)
        return (away * away).sum(2).unsqueeze(1)
    away = x.unsqueeze(0) @ np.ascontiguousarray(roots.transpose(0, 2, 1)) - means[:, None, :]  # (class, row, column)
    return (away * away).sum(2).transpose(1, 0).unsqueeze(1)


def conditional(graph: Graph, part: Part, rows: Tensor, k: int, numbers: Tensor) -> Tensor:
    """(row, column, class) contributions of numbers (row, column, 1)."""
    x = numbers.squeeze(2)
    loc, factor = np.array(decode_numbers(part["loc"])).reshape(k, -1), np.array(decode_numbers(part["factor"]))
    varies = ~np.array(part["constant"], bool)
    unit, matrix = _standardize(lower_triangles(decode_numbers(part["matrix"]), len(varies)), varies)
    gone = x.is_nan | graph.constant(~varies)  # (row, column)
    y = graph.where(gone.unsqueeze(1), 0.0, (x.unsqueeze(1) - loc) * unit)  # (row, class, column)
    incomplete = (x.is_nan & graph.constant(varies)).to_int64().sum(1).sum(0) > 0
    squares, spread = graph.branch(
        incomplete, lambda: _by_elimination(graph, y, gone, matrix), lambda: _by_root(graph, y, matrix)
    )
    square = squares / factor[:, None]
    if "df" not in part:
        density = -0.5 * (_LOG_2PI + square)
    else:  # of a t: its degrees of freedom grow with the columns before, and its scale with their squares
        df = np.array(decode_numbers(part["df"]))[:, None]
        table = graph.constant(np.ascontiguousarray(np.array(decode_numbers(part["rising"])).reshape(k, -1).T))
        rank = graph.op("CumSum", 1.0 - gone.to_double(), np.array(1), exclusive=1)  # (row, column) present before
        rising = table.take(rank.to_int64()).transpose(0, 2, 1)
        before = graph.op("CumSum", square, np.array(2), exclusive=1) + df  # (row, class, column)
        density = rising - 0.5 * (before * math.pi).log()
        density = density - 0.5 * (rank.unsqueeze(1) + (df + 1.0)) * graph.log1p(square / before)
        density = graph.where(graph.op("IsInf", before), -np.inf, density)  # impossible by the columns before
    terms = density - spread - (0.5 * np.log(factor)[:, None] - np.log(unit))
    return graph.where(gone.unsqueeze(1), 0.0, terms).transpose(0, 2, 1)


def _by_root(graph: Graph, y: Tensor, matrix: NDArray) -> list[Tensor]:
    """(row, class, column) squared deviations, and (class, column) logarithms of their scale, for complete rows."""
    root = np.linalg.cholesky(matrix)
    inverse = np.ascontiguousarray(np.linalg.inv(root).transpose(0, 2, 1))
    z = (y.transpose(1, 0, 2) @ inverse).transpose(1, 0, 2)
    return [z * z, graph.op("Identity", np.log(root.diagonal(axis1=1, axis2=2)))]


def _by_elimination(graph: Graph, y: Tensor, gone: Tensor, matrix: NDArray) -> list[Tensor]:
    """The same for rows in which values are missing."""
    present = 1.0 - gone.to_double()
    both = present.unsqueeze(1, 3) * present.unsqueeze(1, 2)
    p = matrix.shape[1]
    s = both * matrix + (1.0 - present).unsqueeze(1, 3) * np.eye(p)  # (row, class or 1, column, column)
    squares, spread = [], []
    for j in range(p):
        first, variance = _first_along(y, 2), _first_along(_first_along(s, 3), 2)  # (row, class, 1), (row, class, 1, 1)
        flat = variance.squeeze(3)
        squares.append(first * first / flat)
        spread.append(0.5 * flat.log())
        if j + 1 < p:
            column = _first_along(_rest_along(s, 2), 3)  # (row, class, column, 1)
            slope = column / variance
            y = _rest_along(y, 2) - first * slope.squeeze(3)
            s = _rest_along(_rest_along(s, 2), 3) - slope * column.transpose(0, 1, 3, 2)
    return [graph.concat(squares, 2), graph.concat(spread, 2)]


def _standardize(lower: list[list[list[float]]], varies: NDArray) -> tuple[NDArray, NDArray]:
    """(matrix, column) one over the deviations, and the correlations; constant columns have none."""
    p = len(varies)
    matrix = np.zeros((len(lower), p, p))
    for square, rows in zip(matrix, lower, strict=True):
        for i, row in enumerate(rows):
            square[i, : i + 1] = square[: i + 1, i] = row
    unit = 1.0 / np.sqrt(np.where(varies, matrix.diagonal(axis1=1, axis2=2), 1.0))
    both = varies[:, None] & varies[None, :]
    return unit, np.where(both, matrix * unit[:, :, None] * unit[:, None, :], np.eye(p))


def _first_along(x: Tensor, axis: int) -> Tensor:
    return x.slice_axis(axis, 0, 1)


def _rest_along(x: Tensor, axis: int) -> Tensor:
    return x.slice_axis(axis, 1, np.iinfo(np.int64).max)


JOINT: dict[str, Callable[..., Tensor]] = {
    "lookup": lookup,
    "cells": cells,
    "tables": tables,
    "distance": distance,
    "conditional": conditional,
}
