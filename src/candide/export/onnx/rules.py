"""The rules as graphs: each makes (row, feature, class) terms of what was read, as :mod:`candide.export.scorer.rules`.

A rule of each column by itself works on all at once: numbers (row, feature, 1) meet parameters (feature, class).

>>> graph = Graph()
>>> x = graph.input("x", "double")
>>> _ = RULES["switch"](graph, {"threshold": 10.0, "no": [-1.0, -2.0], "yes": [-3.0, -4.0]}, x, 2)
>>> [node.op_type for node in graph.nodes]
['Unsqueeze', 'IsNaN', 'Greater', 'Where', 'Where']
"""

import base64
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions.base import MAX_SCORED_VALUE
from candide.export.onnx.graph import Graph, Tensor
from candide.export.onnx.together import joint_rule
from candide.export.scorer.numbers import STIRLING, decode_numbers, lower_triangles

Part = dict[str, Any]
Rule = Callable[[Graph, Part, Tensor, int], Tensor]

_STIRLING_FROM = 16  # where Stirling's series begins to be exact enough


def feature_parameters(part: Part, k: int, *names: str) -> list[NDArray]:
    """(feature, class) parameters by their names."""
    return [np.array(decode_numbers(part[name])).reshape(-1, k) for name in names]


def per_column_rule(of: Callable[..., Tensor], *names: str) -> Rule:
    """A rule for each column by itself, which says nothing of what is missing."""

    def rule(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
        x = x.unsqueeze(2)
        return graph.where(x.is_nan, 0.0, of(graph, part, x, *feature_parameters(part, k, *names)))

    return rule


def normal(graph: Graph, part: Part, x: Tensor, loc: NDArray, inverse: NDArray, constant: NDArray) -> Tensor:
    z = (x - loc) * inverse
    return constant - 0.5 * (z * z)


def student(graph: Graph, part: Part, x: Tensor, *of: NDArray) -> Tensor:
    loc, scale, df, constant, exponent = of
    z = (x - loc) / scale
    return constant - exponent * graph.log1p(z * z / df)


def lomax(graph: Graph, part: Part, x: Tensor, constant: NDArray, exponent: NDArray, rate: NDArray) -> Tensor:
    return graph.where(x < 0.0, -np.inf, constant - exponent * graph.log1p(x / rate))


def negative_binomial(graph: Graph, part: Part, x: Tensor, shape: NDArray, constant: NDArray, slope: NDArray) -> Tensor:
    x = clip_amounts(graph, x)
    return graph.where(x < 0.0, -np.inf, log_rising(graph, shape, x) + constant - x * slope)


def threshold_rule(graph: Graph, part: Part, x: Tensor, no: NDArray, yes: NDArray) -> Tensor:
    return graph.where(x > float(part["threshold"]), yes, no)


def proportion_rule(graph: Graph, part: Part, x: Tensor, no: NDArray, yes: NDArray) -> Tensor:
    return multiply_finite(graph, x, yes) + multiply_finite(graph, 1.0 - x, no)


def clip_amounts(graph: Graph, x: Tensor) -> Tensor:
    """Amounts that are small enough to be scored, as the model itself takes them; an infinity stays one."""
    return graph.where((x > MAX_SCORED_VALUE) & (x < np.inf), MAX_SCORED_VALUE, x)


def multiply_finite(graph: Graph, x: Tensor, slope: NDArray) -> Tensor:
    """Their product, in which nothing times infinity is nothing."""
    return x * slope if np.isfinite(slope).all() else graph.where(x.equals(0.0), 0.0, x * slope)


def quadratic(graph: Graph, part: Part, x: Tensor, constant: NDArray, slope: NDArray, square: NDArray) -> Tensor:
    out = constant + multiply_finite(graph, x, slope)
    out = out + x * (x * square) if square.any() else out
    low = float(part.get("low", -math.inf))
    if low == -math.inf:
        return out
    return graph.where((x <= low) if part.get("open") else (x < low), -np.inf, out)


def polynomial(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    part = {**part, "square": part.get("square", [0.0] * len(decode_numbers(part["slope"])))}
    x = graph.where(x.is_nan, 0.0, x) if part.get("zero") else x
    x = clip_amounts(graph, x) if part.get("zero") or part.get("low") is not None else x
    return per_column_rule(quadratic, "constant", "slope", "square")(graph, part, x, k)


def log_rule(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    terms = RULES[part["of"]["rule"]](graph, part["of"], graph.where(x > 0.0, x, np.nan).log(), k)
    return graph.where((x <= 0.0).unsqueeze(2), -np.inf, terms)


def level_rule(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    table = np.array(decode_numbers(part["table"])).reshape(-1, k)
    starts = np.cumsum([0, *(size + 1 for size in part["sizes"])])[:-1]
    at = graph.where(x < 0, len(table), x + starts)
    return graph.constant(np.vstack([table, np.zeros(k)])).take(at)


def cell_rule(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
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


def dirichlet_multinomial(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    counts = clip_amounts(graph, graph.where(x.is_nan, 0.0, x))
    length = counts.sum(1, keep=True)
    none = length.equals(0.0)
    norm = log_rising(graph, np.array(decode_numbers(part["total"])), length) / graph.where(
        none, 1.0, length
    )  # (row, class)
    norm = graph.where(none, 0.0, norm).unsqueeze(1)
    counts = counts.unsqueeze(2)
    return log_rising(graph, feature_parameters(part, k, "alpha")[0], counts) - counts * norm


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


def discriminants(graph: Graph, part: Part, x: Tensor, k: int) -> Tensor:
    """Scores under normal laws of one covariance, and of one a class."""
    n = np.array(decode_numbers(part["rows"]))
    means = np.array(decode_numbers(part["means"])).reshape(k, -1)
    p, factor = means.shape[1], n / (n + 1)
    [root] = expand_lower_triangles(decode_numbers(part["root"]), p)
    away = (x @ np.ascontiguousarray(root.T)).unsqueeze(1) - means
    linear = p * np.log(factor) - factor * (away * away).sum(2)
    out = [guard_contributions(linear * (0.5 / math.sqrt(p)), n)]
    if decode_numbers(part.get("roots", [])):
        roots = expand_lower_triangles(decode_numbers(part["roots"]), p).transpose(0, 2, 1)
        centres, peak, exponent = (np.array(decode_numbers(part[name])) for name in ("centres", "peak", "exponent"))
        moved = x.unsqueeze(0) - centres.reshape(k, 1, p)  # (class, row, score)
        own = moved @ np.ascontiguousarray(roots)
        sizes = (own * own).sum(2).transpose(1, 0)
        out.append(guard_contributions(peak - exponent * graph.log1p(factor * sizes) / math.sqrt(p), n))
    return graph.concat([one.unsqueeze(1) for one in out])


def guard_contributions(contributions: Tensor, n: NDArray) -> Tensor:
    """Terms where the next row may be unlike all rows before: once in n + 1, and then it is as a row of any class."""
    top = contributions.max(1)
    shares = (contributions - top).exp() * n
    return ((shares + shares.sum(1, keep=True) / n.sum()) / (n + 1)).log() + top


def expand_lower_triangles(values: Sequence[float], p: int) -> NDArray:
    """(matrix, row, column) lower triangles that lie one after another."""
    rows = lower_triangles(list(values), p)
    return np.array([[[*row, *[0.0] * (p - len(row))] for row in one] for one in rows])


RULES: dict[str, Rule] = {
    "normal": per_column_rule(normal, "loc", "inverse", "constant"),
    "student": per_column_rule(student, "loc", "scale", "df", "constant", "exponent"),
    "lomax": per_column_rule(lomax, "constant", "exponent", "rate"),
    "negative_binomial": per_column_rule(negative_binomial, "shape", "constant", "slope"),
    "switch": per_column_rule(threshold_rule, "no", "yes"),
    "share": per_column_rule(proportion_rule, "no", "yes"),
    "polynomial": polynomial,
    "log": log_rule,
    "levels": level_rule,
    "cells": cell_rule,
    "dirichlet_multinomial": dirichlet_multinomial,
    "together": joint_rule,
    "discriminants": discriminants,
}
