"""Columns of one normal or t as a graph: what each says given those before it that are present.

In rows that are complete, deviations are made unrelated by one matrix. Where any value is missing, each row has a
matrix of its own: the columns are taken one after another, and what each tells of those after it is subtracted from
their deviations and covariances (Gauss' elimination). What is missing is related to nothing.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.export.onnx.graph import Graph, Tensor
from candide.export.scorer.numbers import decode_numbers, lower_triangles

_LOG_2PI = math.log(2 * math.pi)


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
    return graph.where(graph.op("IsInf", before), -np.inf, density)  # those before say that the row cannot be


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
