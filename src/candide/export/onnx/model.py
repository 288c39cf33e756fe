"""ONNX: a model as a graph of standard operations in double precision, with one input for each column.

A number, a boolean or a date (in days since 1970) is a double, NaN where it is missing; a level of text is a string, ""
where it is missing. ``label`` is the result of ``predict``, ``probabilities`` has a column for each class. Classes and
columns are described in the properties of the model.

>>> from candide.demo import garden
>>> model = build_onnx_model(FittedModel(garden()))
>>> [one.name for one in model.graph.input], [one.name for one in model.graph.output]
(['height_cm', 'leaf_mm', 'flowers', 'soil', 'scented'], ['label', 'probabilities'])
>>> [one.value for one in model.metadata_props if one.key == "classes"]
['["lavender", "sage", "thyme"]']
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.export.modules import EXPORT_MARKER
from candide.export.onnx.graph import ROWS_DIMENSION, Graph, Tensor
from candide.export.onnx.operations import add_score
from candide.export.onnx.reads import OUTPUT_NAMES, READERS, OnnxColumn, prototype_similarity
from candide.export.parameters import export_parameters
from candide.export.scorer.numbers import decode_numbers
from candide.model.fitted import FittedModel

ABSTAIN_LABEL = ""  # the label where the model abstains


def to_onnx_bytes(fitted: FittedModel) -> bytes:
    """A model as the bytes of an ONNX file; needs ``candide[onnx]``."""
    return build_onnx_model(fitted).SerializeToString()


def build_onnx_model(fitted: FittedModel) -> Any:
    """A model as an ``onnx.ModelProto``."""
    found = export_parameters(fitted)
    graph = Graph([*(str(column["name"]) for column in found["columns"]), *OUTPUT_NAMES])
    columns = _columns(graph, found)
    scores = _scores(graph, found, columns)
    code, logs = _decide(graph, found, scores)
    labels = _labels(found)
    if can_abstain(found):
        code = graph.where(code < 0, len(labels) - 1, code)
    of = graph.onnx.helper.np_dtype_to_tensor_dtype(labels.dtype)
    outputs: list[tuple[Tensor, str, Any, list[Any]]] = [
        (graph.constant(labels).take(code), "label", of, [ROWS_DIMENSION]),
        (logs.exp(), "probabilities", graph.types.DOUBLE, [ROWS_DIMENSION, len(found["classes"])]),
    ]
    described = [column.metadata() for column in columns]
    facts = {
        name: json.dumps(value, ensure_ascii=False)
        for name, value in (("classes", found["classes"]), ("columns", described))
    }
    return graph.build_model(outputs, EXPORT_MARKER, facts)


def _columns(graph: Graph, found: dict[str, Any]) -> list[OnnxColumn]:
    na = found.get("na", [])
    return [OnnxColumn(graph, column, i, na, set(OUTPUT_NAMES)) for i, column in enumerate(found["columns"])]


def _scores(graph: Graph, found: dict[str, Any], columns: list[OnnxColumn]) -> Tensor:
    """(row, class) the prior and the contributions of all parts."""
    k, shared = len(found["classes"]), [np.array(decode_numbers(one)) for one in found["scores"]]
    reads = [READERS[read["read"]](columns[read["column"]], read, shared) for read in found["reads"]]
    total: Any = np.array(decode_numbers(found["log_prior"]))[None, :]
    for part in found["parts"]:
        x = graph.concat([reads[i] for i in part["reads"]])
        x = prototype_similarity(graph, part["prototypes"], x) if "prototypes" in part else x
        terms = add_score(graph, part, x, k)  # (row, feature, class)
        if (weight := np.array(decode_numbers(part.get("weight", [])))).size:
            terms = graph.where((weight != 0)[:, None], terms * weight[:, None], 0.0)
        total = terms.sum(1) + total
    if isinstance(total, np.ndarray):
        raise InputError("a model without columns cannot be exported to ONNX", remedy="fit it with some")
    return total


def _decide(graph: Graph, found: dict[str, Any], scores: Tensor) -> tuple[Tensor, Tensor]:
    """(row,) the index of the predicted class, -1 where the model abstains; and (row, class) log-probabilities."""
    prior = np.array(decode_numbers(found["log_prior"]))[None, :]
    impossible = scores.max(1).equals(-np.inf)  # under every class
    possible = graph.where(impossible, prior, scores)
    logs = graph.where(impossible, prior, graph.log_softmax(possible))
    if "calibrator" in found:
        logs = possible = _calibrate(graph, found["calibrator"], logs)
    if "policy" not in found:
        return possible.argmax(), logs
    return _apply_policy(graph, found["policy"], logs, len(found["classes"])), logs


def _calibrate(graph: Graph, calibrator: dict[str, Any], logs: Tensor) -> Tensor:
    """Calibrated log-probabilities."""
    curves = [
        (np.array(decode_numbers(a)), np.array(decode_numbers(b)))
        for a, b in zip(calibrator["stated"], calibrator["true"], strict=True)
    ]
    shift = np.array(decode_numbers(calibrator.get("shift", [])))
    if len(curves) == 1:
        true = graph.interpolate(logs.columns(1, 2) - logs.columns(0, 1), *curves[0])
        joint = -1.0 * _softplus(graph, graph.concat([true, -1.0 * true]))
        return graph.log_softmax(joint + shift) if shift.size else joint
    rest = graph.one_minus_exp(graph.op("Min", logs, 0.0))
    odds = graph.op("Max", graph.op("Min", logs - rest.log(), 700.0), -700.0)
    true = graph.concat([graph.interpolate(odds.columns(c, c + 1), *own) for c, own in enumerate(curves)])
    joint = -1.0 * _softplus(graph, -1.0 * true)
    return graph.log_softmax(joint + shift if shift.size else joint)


def _softplus(graph: Graph, x: Tensor) -> Tensor:
    """log(1 + exp(x))"""
    return graph.op("Max", x, 0.0) + graph.log1p((-1.0 * graph.op("Abs", x)).exp())


def _apply_policy(graph: Graph, policy: dict[str, Any], logs: Tensor, k: int) -> Tensor:
    """(row,) the predicted class, -1 where the model abstains."""
    if "costs" in policy:
        expected = logs.exp() @ np.array(decode_numbers(policy["costs"])).reshape(k, k)
        spared = -1.0 * expected
        given = spared.argmax()
        if "referral" in policy:
            given = graph.where(_squeeze_column(graph, spared.max(1) < -float(policy["referral"])), -1, given)
    elif "positive" in policy:
        c = policy["positive"]
        rest = graph.where(np.arange(k) == c, -np.inf, logs)
        top = rest.max(1)
        away = graph.where(top.equals(-np.inf), 0.0, top)
        others = away + (rest - away).exp().sum(1, keep=True).log()
        taken = logs.columns(c, c + 1) - others >= float(policy["log_odds"])
        given = graph.where(_squeeze_column(graph, taken), c, rest.argmax())
    else:
        given = logs.argmax()
    least = float(policy.get("log_abstain", -np.inf))
    return given if least == -np.inf else graph.where(_squeeze_column(graph, logs.max(1) < least), -1, given)


def _squeeze_column(graph: Graph, x: Tensor) -> Tensor:
    return graph.op("Squeeze", x, np.array([1]))


def can_abstain(parameters: dict[str, Any]) -> bool:
    return bool({"referral", "log_abstain"} & set(parameters.get("policy", {})))


def _labels(found: dict[str, Any]) -> NDArray:
    """The classes as an array of one type, with one more text where the model may abstain."""
    classes = found["classes"]
    if can_abstain(found):
        return np.array([*map(str, classes), ABSTAIN_LABEL], object)
    if all(isinstance(one, int | float) for one in classes):
        array = np.array(classes)
        if array.dtype.kind in "bif":  # integers of more than 64 bits are objects
            return array
    return np.array([str(one) for one in classes], object)
