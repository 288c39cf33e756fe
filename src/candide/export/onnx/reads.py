"""How a graph reads columns: numbers, codes (-1 absent, the number of levels for a new one) and scores.

>>> graph = Graph()
>>> job = Column(graph, {"name": "job", "kind": "level", "levels": ["cook", ""]}, 0, [], set())
>>> job.type, job.missing, [node.op_type for node in graph.nodes]
('string', 'missing', [])
>>> codes = levels(job, {"read": "levels", "levels": [0, 1]}, [])
>>> [node.op_type for node in graph.nodes]
['LabelEncoder', 'Gather']
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.export.onnx.graph import Graph, Tensor
from candide.export.scorer.numbers import numbers
from candide.export.scorer.values import NUMBER, spelled

OUTPUTS = ("label", "probabilities")


class Column:
    """A column of rows as an input: text where its levels are that, else a number; and what is known of its values.

    A number that is missing is NaN; a text that is missing is empty, or where that is a level another that is none.
    """

    def __init__(self, graph: Graph, column: dict[str, Any], place: int, na: list[str], taken: set[str]):
        self.graph, self.kind, self.levels = graph, column["kind"], column.get("levels", [])
        self.name = str(column["name"])
        self.input = self.name if self.name and self.name not in taken else f"column {place}"
        if self.kind == "text":
            raise InputError(
                "cannot be exported to ONNX: it holds text, and ONNX has no operations that find its words",
                column=column["name"],
                remedy="export it to python or js, or fit it without this column",
            )
        as_text = any(isinstance(level, str | dict) for level in self.levels)
        self.type = "string" if as_text else "double"
        self._na: list[str] = na
        self._placed: Tensor | None = None
        known = set(map(_text, self.levels))
        self.missing = next(
            text for text in ("", *(f"missing{' ' * n}" for n in range(len(known) + 1))) if text not in known
        )
        given = graph.input(self.input, self.type)
        self.value = given if as_text else self._without(given, [float(text) for text in na if NUMBER.fullmatch(text)])

    def _without(self, x: Tensor, never: list[float]) -> Tensor:
        """Numbers, NaN for those that mean a missing value."""
        for one in never:
            x = self.graph.where(x.equals(one), np.nan, x)
        return x

    def numbers(self) -> Tensor:
        """(row, 1) numbers, NaN where missing."""
        if self.type == "string":
            what = "cannot be exported to ONNX: it is read as levels that are text, and as numbers"
            raise InputError(what, column=self.name, remedy="export it to python or js")
        return self.value

    def places(self) -> Tensor:
        """(row, 1) the place among the levels; their number where it is none of them, one more where it is missing."""
        if self._placed is None:
            self._placed = self._by_text() if self.type == "string" else self._by_number()
        return self._placed

    def _by_text(self) -> Tensor:
        n = len(self.levels)
        known = {self.missing: n + 1, **{_text(level): place for place, level in enumerate(self.levels)}}
        known.update((text, n + 1) for text in self._na)
        try:
            keys = [text.encode() for text in known]
        except UnicodeEncodeError as error:
            remedy = "replace half of a pair of surrogates in it"
            raise InputError(
                "a level that is no text in UTF-8", column=self.name, value=error.object, remedy=remedy
            ) from None
        how = {"keys_strings": keys, "values_int64s": list(known.values()), "default_int64": n}
        return self.graph.op("LabelEncoder", self.value, domain="ai.onnx.ml", **how)

    def _by_number(self) -> Tensor:
        n, tensor = len(self.levels), self.graph.onnx.numpy_helper.from_array
        if not n:
            return self.graph.where(self.value.is_nan, n + 1, n)
        keys = np.array(self.levels, np.float64)
        if len(np.unique(keys)) < n:
            what = "cannot be exported to ONNX: levels that are the same as numbers of 64 bits"
            raise InputError(what, column=self.name, remedy="export it to python or js")
        held = {
            "keys_tensor": tensor(keys),
            "values_tensor": tensor(np.arange(n)),
            "default_tensor": tensor(np.array([n])),
        }
        found = self.graph.op("LabelEncoder", self.value, domain="ai.onnx.ml", **held)
        return self.graph.where(self.value.is_nan, n + 1, found)

    def among(self, levels: list[int], of: NDArray, new: Any, absent: Any) -> Tensor:
        """What some of the levels, by their places, have in ``of``; and what others have, and what is missing."""
        table = np.stack([np.asarray(new)] * len(self.levels) + [np.asarray(new), np.asarray(absent)])
        table[levels] = of
        places = self.places()
        return self.graph.constant(table).rows_at(places)

    def facts(self) -> dict[str, Any]:
        """What is told of the column in the file."""
        text = self.type == "string"
        held = {"levels": [_text(level) if text else level for level in self.levels]} if self.levels else {}
        missing = self.missing if text else "NaN"
        return {
            "name": self.name,
            "input": self.input,
            "type": self.type,
            "missing": missing,
            "kind": self.kind,
            **held,
        }


def _text(level: Any) -> str:
    return level["text"] if isinstance(level, dict) else spelled(level)


def number(column: Column, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    return column.numbers()


def grid(column: Column, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    x = column.numbers()
    return column.graph.where(x.is_nan, -1, column.graph.below(np.array(numbers(read["edges"])), x))


def levels(column: Column, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    n = len(read["levels"])
    return column.among(read["levels"], np.arange(n), n, -1)


def score(column: Column, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    x = column.numbers()
    found = column.graph.interpolated(x, np.array(numbers(read["values"])), shared[read["scores"]])
    return column.graph.where(x.is_nan, 0.0, found)


def indicators(column: Column, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    yes, no = np.array(numbers(read["yes"])), np.array(numbers(read["no"]))
    each = np.where(np.eye(len(yes), dtype=bool), yes, no)
    rows = column.among(read["levels"], each, no, np.zeros(len(no)))  # (row, 1, level)
    return column.graph.op("Squeeze", rows, np.array([1]))


READS: dict[str, Callable[[Column, dict[str, Any], list[NDArray]], Tensor]] = {
    "number": number,
    "grid": grid,
    "levels": levels,
    "score": score,
    "indicators": indicators,
}


def likeness(graph: Graph, read: dict[str, Any], scores: Tensor) -> Tensor:
    """(row, typical row) likeness to typical rows, made unrelated."""
    held = np.array(numbers(read["rows"]))
    typical, factor = held.reshape(read["n"], -1), -0.5 / read["reach"] ** 2
    apart = ((typical[:, None] - typical[None]) ** 2).sum(axis=2)
    root = np.linalg.cholesky(np.exp(factor * apart) + read["blur"] * np.eye(read["n"]))
    squares = (scores * scores).sum(1, keep=True) + (typical**2).sum(axis=1)
    away = squares - 2.0 * (scores @ np.ascontiguousarray(typical.T))
    like = (factor * graph.op("Max", away, 0.0)).exp()
    return like @ np.ascontiguousarray(np.linalg.inv(root).T * np.sqrt(read["n"]))
