"""The operations of score expressions as nodes of a graph: values are (row, feature, class) tensors.

>>> graph = Graph()
>>> x = graph.input("x", "double")
>>> part = {"score": [["less_equal", "x", 10.0], ["where", "#0", "no", "yes"]], "no": [-1.0, -2.0], "yes": [-3.0, -4.0]}
>>> _ = add_score(graph, part, x, 2)
>>> [node.op_type for node in graph.nodes]
['Unsqueeze', 'LessOrEqual', 'Where']
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.export.onnx.graph import Graph, Tensor
from candide.export.onnx.together import conditional
from candide.export.scorer.numbers import STIRLING, decode_numbers, lower_triangles

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
    n = sizes[sets].prod(axis=1)  # cells of each set
    usual = np.array(decode_numbers(part["usual"])).reshape(-1, k)
    table = np.repeat(usual, n, axis=0)
    bits = np.frombuffer(base64.b64decode(part["odd"]), np.uint8)
    odd = np.unpackbits(bits, count=table.size, bitorder="little").astype(bool)
    table.ravel()[odd] = decode_numbers(part["table"])
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


JOINT: dict[str, Callable[..., Tensor]] = {
    "lookup": lookup,
    "cells": cells,
    "distance": distance,
    "conditional": conditional,
}
