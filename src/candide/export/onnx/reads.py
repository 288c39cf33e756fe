"""How a graph reads columns: numbers, codes (-1 missing, the number of levels for an unseen one) and scores.

>>> graph = Graph()
>>> job = OnnxColumn(graph, {"name": "job", "kind": "level", "levels": ["cook", ""]}, 0, [], set())
>>> job.type, job.missing, [node.op_type for node in graph.nodes]
('string', 'missing', [])
>>> codes = read_levels(job, {"read": "levels", "levels": [0, 1]}, [])
>>> [node.op_type for node in graph.nodes]
['LabelEncoder', 'Gather']
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.export.onnx.graph import Graph, Tensor
from candide.export.scorer.numbers import decode_numbers
from candide.export.scorer.values import NUMBER, format_value

OUTPUT_NAMES = ("label", "probabilities")


class OnnxColumn:
    """A column as an input: text where its levels are text, else a number.

    A missing number is NaN; a missing text is empty, or where that is a level, another text that is not a level.
    """

    def __init__(self, graph: Graph, column: dict[str, Any], index: int, na: list[str], reserved_names: set[str]):
        self.graph, self.kind, self.levels = graph, column["kind"], column.get("levels", [])
        self.name = str(column["name"])
        self.input = self.name if self.name and self.name not in reserved_names else f"column {index}"
        if self.kind == "text":
            raise InputError(
                "cannot be exported to ONNX: it holds text, and ONNX has no operations that split it into words",
                column=column["name"],
                remedy="export it to python or js, or fit it without this column",
            )
        as_text = any(isinstance(level, str | dict) for level in self.levels)
        self.type = "string" if as_text else "double"
        self._na: list[str] = na
        self._level_index: Tensor | None = None
        known = set(map(_level_text, self.levels))
        self.missing = next(
            text for text in ("", *(f"missing{' ' * n}" for n in range(len(known) + 1))) if text not in known
        )
        given = graph.input(self.input, self.type)
        self.value = (
            given if as_text else self._mask_missing(given, [float(text) for text in na if NUMBER.fullmatch(text)])
        )

    def _mask_missing(self, x: Tensor, never: list[float]) -> Tensor:
        """Numbers, with NaN for those that mean a missing value."""
        for one in never:
            x = self.graph.where(x.equals(one), np.nan, x)
        return x

    def numbers(self) -> Tensor:
        """(row, 1) numbers, NaN where missing."""
        if self.type == "string":
            what = "cannot be exported to ONNX: it is read as levels that are text, and as numbers"
            raise InputError(what, column=self.name, remedy="export it to python or js")
        return self.value

    def level_indices(self) -> Tensor:
        """(row, 1) the index of the level; the number of levels where it is unseen, one more where it is missing."""
        if self._level_index is None:
            self._level_index = self._index_by_text() if self.type == "string" else self._index_by_number()
        return self._level_index

    def _index_by_text(self) -> Tensor:
        n = len(self.levels)
        known = {self.missing: n + 1, **{_level_text(level): place for place, level in enumerate(self.levels)}}
        known.update((text, n + 1) for text in self._na)
        try:
            keys = [text.encode() for text in known]
        except UnicodeEncodeError as error:
            remedy = "replace half of a pair of surrogates in it"
            raise InputError(
                "a level that is not valid UTF-8", column=self.name, value=error.object, remedy=remedy
            ) from None
        how = {"keys_strings": keys, "values_int64s": list(known.values()), "default_int64": n}
        return self.graph.op("LabelEncoder", self.value, domain="ai.onnx.ml", **how)

    def _index_by_number(self) -> Tensor:
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

    def lookup_levels(self, levels: list[int], values: NDArray, unseen: Any, missing: Any) -> Tensor:
        """Values for levels, by their indices, for unseen levels and for missing values."""
        table = np.stack([np.asarray(unseen)] * len(self.levels) + [np.asarray(unseen), np.asarray(missing)])
        table[levels] = values
        places = self.level_indices()
        return self.graph.constant(table).take(places)

    def metadata(self) -> dict[str, Any]:
        """The description of the column in the file."""
        text = self.type == "string"
        held = {"levels": [_level_text(level) if text else level for level in self.levels]} if self.levels else {}
        missing = self.missing if text else "NaN"
        return {
            "name": self.name,
            "input": self.input,
            "type": self.type,
            "missing": missing,
            "kind": self.kind,
            **held,
        }


def _level_text(level: Any) -> str:
    return level["text"] if isinstance(level, dict) else format_value(level)


def read_number(column: OnnxColumn, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    return column.numbers()


def read_grid(column: OnnxColumn, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    x = column.numbers()
    return column.graph.where(x.is_nan, -1, column.graph.count_below(np.array(decode_numbers(read["edges"])), x))


def read_levels(column: OnnxColumn, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    n = len(read["levels"])
    return column.lookup_levels(read["levels"], np.arange(n), n, -1)


def read_score(column: OnnxColumn, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    x = column.numbers()
    found = column.graph.interpolate(x, np.array(decode_numbers(read["values"])), shared[read["scores"]])
    return column.graph.where(x.is_nan, 0.0, found)


def read_indicators(column: OnnxColumn, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
    yes, no = np.array(decode_numbers(read["yes"])), np.array(decode_numbers(read["no"]))
    each = np.where(np.eye(len(yes), dtype=bool), yes, no)
    rows = column.lookup_levels(read["levels"], each, no, np.zeros(len(no)))  # (row, 1, level)
    return column.graph.op("Squeeze", rows, np.array([1]))


READERS: dict[str, Callable[[OnnxColumn, dict[str, Any], list[NDArray]], Tensor]] = {
    "number": read_number,
    "grid": read_grid,
    "levels": read_levels,
    "score": read_score,
    "indicators": read_indicators,
}


def prototype_similarity(graph: Graph, read: dict[str, Any], scores: Tensor) -> Tensor:
    """(row, prototype) decorrelated similarities to the prototypes."""
    held = np.array(decode_numbers(read["rows"]))
    typical, factor = held.reshape(read["n"], -1), -0.5 / read["length_scale"] ** 2
    apart = ((typical[:, None] - typical[None]) ** 2).sum(axis=2)
    root = np.linalg.cholesky(np.exp(factor * apart) + read["ridge"] * np.eye(read["n"]))
    squares = (scores * scores).sum(1, keep=True) + (typical**2).sum(axis=1)
    away = squares - 2.0 * (scores @ np.ascontiguousarray(typical.T))
    like = (factor * graph.op("Max", away, 0.0)).exp()
    return like @ np.ascontiguousarray(np.linalg.inv(root).T * np.sqrt(read["n"]))
