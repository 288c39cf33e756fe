"""ONNX: a model as a graph of standard operations in double precision, with one input for each column.

A number, a boolean or a date (in days since 1970) is a double, NaN where it is missing; a level of text is a string, ""
where it is missing. ``label`` is the result of ``predict``, ``probabilities`` has a column for each class. Classes and
columns are described in the properties of the model.
"""

import json
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.text_formats import NUMBER, format_plain_value
from candide.errors import InputError
from candide.export.onnx.graph import ROWS_DIMENSION, Graph, Tensor
from candide.export.onnx.operations import add_score
from candide.export.parameters import EXPORT_MARKER, export_parameters
from candide.export.python_js.numbers import decode_numbers
from candide.model.fitted import FittedModel

OPSETS = (("", 18), ("ai.onnx.ml", 4))
IR_VERSION = 8
ABSTAIN_LABEL = ""  # the label where the model abstains
OUTPUT_NAMES = ("label", "probabilities")


def to_onnx_bytes(fitted: FittedModel) -> bytes:
    """A model as the bytes of an ONNX file; needs ``candide[onnx]``."""
    return build_onnx_model(fitted).SerializeToString()


def build_onnx_model(fitted: FittedModel) -> Any:
    """A model as an ``onnx.ModelProto``."""
    parameters = export_parameters(fitted)
    schemas, classes, na = parameters["columns"], parameters["classes"], parameters.get("na", [])
    graph = Graph([*(str(column["name"]) for column in schemas), *OUTPUT_NAMES])
    columns = [OnnxColumn(graph, column, i, na) for i, column in enumerate(schemas)]
    code, logs = _decide(graph, parameters, _scores(graph, parameters, columns))
    labels = _labels(parameters)
    if _can_abstain(parameters):
        code = graph.where(code < 0, len(labels) - 1, code)
    helper, tensors = graph.onnx.helper, (graph.constant(labels).take(code), logs.exp())
    types = helper.np_dtype_to_tensor_dtype(labels.dtype), graph.types.DOUBLE
    shapes = [ROWS_DIMENSION], [ROWS_DIMENSION, len(classes)]
    outputs = list(map(helper.make_tensor_value_info, OUTPUT_NAMES, types, shapes))
    nodes = [helper.make_node("Identity", [x.name], [name]) for x, name in zip(tensors, OUTPUT_NAMES, strict=True)]
    constants = list(graph.constants.values())
    model = helper.make_model(
        helper.make_graph([*graph.nodes, *nodes], "model", graph.inputs, outputs, constants),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPSETS],
        ir_version=IR_VERSION,
        producer_name="candide",
        doc_string=EXPORT_MARKER,
    )
    facts = {"classes": classes, "columns": [column.metadata() for column in columns]}
    helper.set_model_props(model, {name: json.dumps(value, ensure_ascii=False) for name, value in facts.items()})
    return model


def _scores(graph: Graph, parameters: dict[str, Any], columns: list["OnnxColumn"]) -> Tensor:
    """(row, class) the prior and the contributions of all parts."""
    k, shared = len(parameters["classes"]), [np.array(decode_numbers(values)) for values in parameters["scores"]]
    reads = [columns[read["column"]].read_values(read, shared) for read in parameters["reads"]]
    total: Any = np.array(decode_numbers(parameters["log_prior"]))[None, :]
    for part in parameters["parts"]:
        x = graph.concat([reads[i] for i in part["reads"]])
        x = prototype_similarity(graph, part["prototypes"], x) if "prototypes" in part else x
        terms = add_score(graph, part, x, k)  # (row, feature, class)
        if (weight := np.array(decode_numbers(part.get("weight", [])))).size:
            terms = graph.where((weight != 0)[:, None], terms * weight[:, None], 0.0)
        total = terms.sum(1) + total
    if isinstance(total, np.ndarray):
        raise InputError("a model without columns cannot be exported to ONNX", remedy="fit it with some")
    return total


def _decide(graph: Graph, parameters: dict[str, Any], scores: Tensor) -> tuple[Tensor, Tensor]:
    """(row,) the index of the predicted class, -1 where the model abstains; and (row, class) log-probabilities."""
    prior = np.array(decode_numbers(parameters["log_prior"]))[None, :]
    impossible = scores.max(1).equals(-np.inf)  # under every class
    possible = graph.where(impossible, prior, scores)
    logs = graph.where(impossible, prior, graph.log_softmax(possible))
    if "calibrator" in parameters:
        logs = possible = _calibrate(graph, parameters["calibrator"], logs)
    if "policy" not in parameters:
        return possible.argmax(), logs
    policy, k = parameters["policy"], len(parameters["classes"])
    if "costs" in policy:
        gain = -1.0 * (logs.exp() @ np.array(decode_numbers(policy["costs"])).reshape(k, k))
        label = gain.argmax()
        if "abstain_cost" in policy:
            label = graph.where((gain.max(1) < -float(policy["abstain_cost"])).squeeze(1), -1, label)
    elif "positive" in policy:
        c = policy["positive"]
        rest = graph.where(np.arange(k) == c, -np.inf, logs)
        top = rest.max(1)
        top = graph.where(top.equals(-np.inf), 0.0, top)
        others = top + (rest - top).exp().sum(1, keep=True).log()
        is_positive = logs.column(c) - others >= float(policy["log_odds"])
        label = graph.where(is_positive.squeeze(1), c, rest.argmax())
    else:
        label = logs.argmax()
    least = float(policy.get("log_abstain", -np.inf))
    return label if least == -np.inf else graph.where((logs.max(1) < least).squeeze(1), -1, label), logs


def _calibrate(graph: Graph, calibrator: dict[str, Any], logs: Tensor) -> Tensor:
    stated, true = ([np.array(decode_numbers(x)) for x in calibrator[name]] for name in ("stated", "true"))
    shift = np.array(decode_numbers(calibrator.get("shift", [])))
    if len(stated) == 1:
        odds = graph.interpolate(logs.column(1) - logs.column(0), stated[0], true[0])
        joint = -1.0 * _softplus(graph, graph.concat([odds, -1.0 * odds]))
        return graph.log_softmax(joint + shift) if shift.size else joint
    rest = graph.one_minus_exp(graph.op("Min", logs, 0.0))
    odds = graph.op("Max", graph.op("Min", logs - rest.log(), 700.0), -700.0)
    curves = enumerate(zip(stated, true, strict=True))
    odds = graph.concat([graph.interpolate(odds.column(c), *curve) for c, curve in curves])
    joint = -1.0 * _softplus(graph, -1.0 * odds)
    return graph.log_softmax(joint + shift if shift.size else joint)


def _softplus(graph: Graph, x: Tensor) -> Tensor:
    """log(1 + exp(x))"""
    return graph.op("Max", x, 0.0) + graph.log1p((-1.0 * graph.op("Abs", x)).exp())


def _can_abstain(parameters: dict[str, Any]) -> bool:
    return bool({"abstain_cost", "log_abstain"} & set(parameters.get("policy", {})))


def _labels(parameters: dict[str, Any]) -> NDArray:
    """The classes as an array of one type, with one more text where the model may abstain."""
    classes = parameters["classes"]
    if _can_abstain(parameters):
        return np.array([*map(str, classes), ABSTAIN_LABEL], object)
    if all(isinstance(label, int | float) for label in classes):
        array = np.array(classes)
        if array.dtype.kind in "bif":  # integers of more than 64 bits are objects
            return array
    return np.array(list(map(str, classes)), object)


class OnnxColumn:
    """A column as an input: text where its levels are text, else a number.

    A missing number is NaN; a missing text is empty, or where that is a level, another text that is not a level.
    """

    def __init__(self, graph: Graph, column: dict[str, Any], index: int, na: list[str]):
        self.graph, self.kind, self.levels = graph, column["kind"], column.get("levels", [])
        self.name = str(column["name"])
        self.input = self.name if self.name and self.name not in OUTPUT_NAMES else f"column {index}"
        if self.kind == "text":
            what = "cannot be exported to ONNX: it holds text, and ONNX has no operations that split it into words"
            remedy = "export it to python or js, or fit it without this column"
            raise InputError(what, column=column["name"], remedy=remedy)
        self.type = "string" if any(isinstance(level, str | dict) for level in self.levels) else "double"
        self._na = na
        texts = set(map(_level_text, self.levels))
        names = ("", *(f"missing{' ' * n}" for n in range(len(texts) + 1)))
        self.missing = next(name for name in names if name not in texts)
        self.value = graph.input(self.input, self.type)
        if self.type == "double":
            for marker in (float(text) for text in na if NUMBER.fullmatch(text)):
                self.value = graph.where(self.value.equals(marker), np.nan, self.value)

    def numbers(self) -> Tensor:
        """(row, 1) numbers, NaN where missing."""
        if self.type == "string":
            what = "cannot be exported to ONNX: it is read as levels that are text, and as numbers"
            raise InputError(what, column=self.name, remedy="export it to python or js")
        return self.value

    @cached_property
    def level_indices(self) -> Tensor:
        """(row, 1) the index of the level; the number of levels where it is unseen, one more where it is missing."""
        n, tensor = len(self.levels), self.graph.onnx.numpy_helper.from_array
        if self.type == "string":
            places = {self.missing: n + 1, **{_level_text(level): place for place, level in enumerate(self.levels)}}
            places |= dict.fromkeys(self._na, n + 1)
            try:
                keys = [text.encode() for text in places]
            except UnicodeEncodeError as error:
                what, remedy = "a level that is not valid UTF-8", "replace half of a pair of surrogates in it"
                raise InputError(what, column=self.name, value=error.object, remedy=remedy) from None
            return self._encode(keys_strings=keys, values_int64s=list(places.values()), default_int64=n)
        if not n:
            return self.graph.where(self.value.is_nan, n + 1, n)
        numbers = np.array(self.levels, np.float64)
        if len(np.unique(numbers)) < n:
            what = "cannot be exported to ONNX: levels that are the same as numbers of 64 bits"
            raise InputError(what, column=self.name, remedy="export it to python or js")
        tables = {"keys": numbers, "values": np.arange(n), "default": np.array([n])}
        indices = self._encode(**{f"{name}_tensor": tensor(table) for name, table in tables.items()})
        return self.graph.where(self.value.is_nan, n + 1, indices)

    def _encode(self, **tables: Any) -> Tensor:
        return self.graph.op("LabelEncoder", self.value, domain="ai.onnx.ml", **tables)

    def lookup_levels(self, levels: list[int], values: NDArray, unseen: Any, missing: Any) -> Tensor:
        """Values for levels, by their indices, for unseen levels and for missing values."""
        table = np.stack([np.asarray(unseen)] * (len(self.levels) + 1) + [np.asarray(missing)])
        table[levels] = values
        indices = self.level_indices
        return self.graph.constant(table).take(indices)

    def read_values(self, read: dict[str, Any], shared: list[NDArray]) -> Tensor:
        """(row, 1 or indicator) the column as a distribution reads it; ``shared`` has the normal scores."""
        if read["read"] == "levels":
            n = len(read["levels"])
            return self.lookup_levels(read["levels"], np.arange(n), n, -1)
        if read["read"] == "indicators":
            yes, no = np.array(decode_numbers(read["yes"])), np.array(decode_numbers(read["no"]))
            values = np.where(np.eye(len(yes), dtype=bool), yes, no)
            return self.lookup_levels(read["levels"], values, no, np.zeros(len(no))).squeeze(1)  # of (row, 1, level)
        x, where = self.numbers(), self.graph.where
        if read["read"] == "grid":
            return where(x.is_nan, -1, self.graph.count_below(np.array(decode_numbers(read["edges"])), x))
        if read["read"] == "score":
            score = self.graph.interpolate(x, np.array(decode_numbers(read["values"])), shared[read["scores"]])
            return where(x.is_nan, 0.0, score)
        assert read["read"] == "number", read["read"]
        return x

    def metadata(self) -> dict[str, Any]:
        is_text = self.type == "string"
        missing = self.missing if is_text else "NaN"
        out = {"name": self.name, "input": self.input, "type": self.type, "missing": missing, "kind": self.kind}
        levels = [_level_text(level) if is_text else level for level in self.levels]
        return {**out, "levels": levels} if levels else out


def _level_text(level: Any) -> str:
    return level["text"] if isinstance(level, dict) else format_plain_value(level)


def prototype_similarity(graph: Graph, read: dict[str, Any], scores: Tensor) -> Tensor:
    """(row, prototype) decorrelated similarities to the prototypes."""
    prototypes = np.array(decode_numbers(read["rows"])).reshape(read["n"], -1)
    factor = -0.5 / read["length_scale"] ** 2
    between = ((prototypes[:, None] - prototypes[None]) ** 2).sum(axis=2)
    root = np.linalg.cholesky(np.exp(factor * between) + read["ridge"] * np.eye(read["n"]))
    squares = (scores * scores).sum(1, keep=True) + (prototypes**2).sum(axis=1)
    distances = squares - 2.0 * (scores @ np.ascontiguousarray(prototypes.T))
    similarity = (factor * graph.op("Max", distances, 0.0)).exp()
    return similarity @ np.ascontiguousarray(np.linalg.inv(root).T * np.sqrt(read["n"]))
