"""Protocols: how clients that exist ask for predictions: MLflow's, and the Open Inference Protocol (v2).

>>> rows_from_mlflow(b'{"dataframe_split": {"columns": ["age", "job"], "data": [[30, "cook"]]}}').columns
{'age': [30], 'job': ['cook']}
>>> tensor = {"name": "age", "shape": [2], "datatype": "INT64", "data": [30, 41]}
>>> rows_from_tensors(encode({"inputs": [tensor]}))[0].columns
{'age': [30, 41]}
"""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from candide import formatting
from candide.model.input_columns import nearest_name
from candide.serve.formats import RequestRows, Value, decode_json, encode, rows_from_records
from candide.serve.limits import DEFAULT_LIMITS, Limits
from candide.serve.problem import RequestProblem
from candide.serve.scorer import ScoredColumns, Scorer

Record = dict[str, Value]


class DataframeSplit(msgspec.Struct, forbid_unknown_fields=True):
    columns: list[str]
    data: list[list[Value]]
    index: Any = None  # pandas writes it; rows are answered in their order


class MlflowRequest(msgspec.Struct, forbid_unknown_fields=True):
    dataframe_split: DataframeSplit | None = None
    dataframe_records: list[Record] | None = None
    inputs: list[Record] | dict[str, list[Value]] | None = None
    instances: list[Record] | dict[str, list[Value]] | None = None
    params: Any = None  # of the protocol, and of no use here
    signature_name: Any = None


class InferenceTensor(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    shape: list[int]
    datatype: str
    data: list[Value | list[Value]] | None = None
    parameters: dict[str, Value] = {}


class RequestedOutput(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    parameters: dict[str, Value] = {}


class InferenceRequest(msgspec.Struct, forbid_unknown_fields=True):
    inputs: list[InferenceTensor]
    id: str | None = None
    outputs: list[RequestedOutput] | None = None
    parameters: dict[str, Any] = {}

    def has_output(self, name: str) -> bool:
        """Whether an output is asked for: all are where none is named."""
        return not self.outputs or any(one.name == name for one in self.outputs)

    def check_outputs(self, names: list[str]) -> None:
        """Refuse outputs that there are not."""
        for one in self.outputs or ():
            if one.name not in names:
                what = f"there is no output {one.name!r}"
                raise RequestProblem(
                    422, what, value=one.name, remedy=f"ask for one of {formatting.format_list(names)}"
                )


_mlflow_decoder, _inference_decoder = msgspec.json.Decoder(MlflowRequest), msgspec.json.Decoder(InferenceRequest)
# A text, which stays, or the word outside of one. A text that does not end is taken whole: the time is linear.
_NAN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)|NaN', re.DOTALL)
_MLFLOW_FIELDS = "dataframe_split, dataframe_records, inputs or instances"
_LONGEST = 100  # letters of a field that a nearest one is searched for
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_PLACES: dict[type, dict[str, type]] = {  # what stands where in a request
    MlflowRequest: {"$": MlflowRequest, "$.dataframe_split": DataframeSplit},
    InferenceRequest: {"$": InferenceRequest, "$.inputs[]": InferenceTensor, "$.outputs[]": RequestedOutput},
}
_NUMPY_TYPES = {f"{kind}{bits}": f"{letter}{bits // 8}" for kind, letter in (("INT", "i"), ("UINT", "u"), ("FP", "f"))
          for bits in (8, 16, 32, 64) if kind != "FP" or bits > 8} | {"BOOL": "u1"}  # fmt: skip


def _decoded(decoder: msgspec.json.Decoder, body: bytes) -> Any:
    """JSON of an expected shape; these clients write NaN for what is missing, which is no JSON, and their servers do
    read it.
    """
    if b"NaN" in body:
        body = _NAN.sub(lambda found: found[1] or b"null", body)
    try:
        return decode_json(decoder, body)
    except RequestProblem as problem:
        raise _unknown_field(decoder.type, problem) or problem from None


def _unknown_field(kind: type, problem: RequestProblem) -> RequestProblem | None:
    """Name a field that the protocol does not have, and the nearest that it has; None for any other problem."""
    found = _UNKNOWN.search(problem.detail)
    path = (found and found["path"]) or "$"
    place = _PLACES[kind].get(re.sub(r"\[\d+\]", "[]", path))
    if not found or not place:
        return None
    name, fields = found["name"], place.__struct_fields__  # type: ignore[attr-defined]
    near = nearest_name(name, fields) if len(name) < _LONGEST else ""
    where = "" if path == "$" else f" in {path.removeprefix('$.')}"
    remedy = f"did you mean {near!r}?" if near else f"send only {', '.join(fields)}"
    return RequestProblem(422, f"unknown field {name!r}{where}", value=name, remedy=remedy)


def rows_from_mlflow(body: bytes, limits: Limits = DEFAULT_LIMITS) -> RequestRows:
    """The rows of MLflow's scoring protocol."""
    asked = _decoded(_mlflow_decoder, body)
    given = [
        way for name in _MLFLOW_FIELDS.replace(" or", ",").split(", ") if (way := getattr(asked, name)) is not None
    ]
    if len(given) != 1:
        raise RequestProblem(422, f"rows come as one of {_MLFLOW_FIELDS}", remedy=f"name one of {_MLFLOW_FIELDS}")
    [way] = given
    if isinstance(way, DataframeSplit):
        return _rows_from_split(way, limits)
    return rows_from_records(way, limits) if isinstance(way, list) else _rows_from_columns(way, limits)


def _rows_from_split(split: DataframeSplit, limits: Limits) -> RequestRows:
    n = len(split.columns)
    limits.check(len(split.data), n)
    for i, row in enumerate(split.data):
        if len(row) != n:
            raise RequestProblem(
                422,
                f"{formatting.format_count(len(row), 'value')} for {formatting.format_count(n, 'column')}",
                row=i,
                value=len(row),
                remedy="send one for each",
            )
    if len(set(split.columns)) < n:
        raise RequestProblem(422, "two columns have the same name", value=split.columns, remedy="rename one of them")
    columns = zip(*split.data, strict=True) if split.data else ([] for _ in split.columns)
    return RequestRows(len(split.data), dict(zip(split.columns, map(list, columns), strict=True)))


def _rows_from_columns(columns: dict[str, Any], limits: Limits) -> RequestRows:
    lengths = {name: len(column) for name, column in columns.items()}
    limits.check(max(lengths.values(), default=0), len(columns))
    if len(set(lengths.values())) > 1:
        some = dict(islice(lengths.items(), 10))
        raise RequestProblem(422, f"columns differ in length: {some}", remedy="send as many values of each")
    return RequestRows(next(iter(lengths.values()), 0), columns)


def write_mlflow(scored: ScoredColumns, warnings: dict[str, Any]) -> bytes:
    """What MLflow's clients expect: the class of every row."""
    return encode({"predictions": scored.columns[0], **warnings})


def rows_from_tensors(
    body: bytes, length: bytes = b"", limits: Limits = DEFAULT_LIMITS
) -> tuple[RequestRows, InferenceRequest]:
    """The rows of a v2 request, one tensor a column, and what is asked.

    ``length`` says how many bytes of the body are JSON, where tensors follow it as bytes.
    """
    header = int(length) if length.isdigit() and len(length) < 20 else len(body) if not length else -1
    if not 0 <= header <= len(body):
        what = f"Inference-Header-Content-Length is {length!r}, and the body has {formatting.format_count(len(body), 'byte')}"
        raise RequestProblem(400, what, value=length, remedy="send the length of the JSON")
    asked, at = _decoded(_inference_decoder, body[:header]), header
    columns: dict[str, Any] = {}
    for tensor in asked.inputs:
        if tensor.name in columns:
            what = f"two tensors are called {tensor.name!r}"
            raise RequestProblem(422, what, column=tensor.name, remedy="send one for each column")
        size = tensor.parameters.get("binary_data_size")
        raw = None
        if type(size) is int:
            raw, at = body[at : at + max(0, size)], at + max(0, size)
        columns[tensor.name] = _values(tensor, raw)
    return _rows_from_columns(columns, limits), asked


def _values(tensor: InferenceTensor, raw: bytes | None) -> Any:
    """The values of a tensor, one a row."""
    n = int(np.prod(tensor.shape, dtype=object)) if tensor.shape else 0
    if min(tensor.shape, default=0) < 0 or any(size != 1 for size in tensor.shape[1:]):
        what = f"a tensor of shape {tensor.shape}"
        raise RequestProblem(
            422, what, column=tensor.name, value=tensor.shape, remedy="send one value a row, [n] or [n, 1]"
        )
    if raw is not None:
        return _from_bytes(tensor, raw, n)
    data: list[Any] = tensor.data or []
    flat = [value for row in data for value in (row if isinstance(row, list) else [row])]
    if any(isinstance(row, list) and len(row) != 1 for row in data):
        what = "a row of a tensor is a list of several values, or of none"
        raise RequestProblem(422, what, column=tensor.name, remedy="send one value a row")
    if len(flat) != n:
        what = f"{formatting.format_count(len(flat), 'value')} in a tensor of shape {tensor.shape}"
        raise RequestProblem(422, what, column=tensor.name, value=len(flat), remedy=f"send {n}")
    return flat


def _from_bytes(tensor: InferenceTensor, raw: bytes, n: int) -> Any:
    found: Any
    if tensor.datatype == "BYTES":
        found = _read_strings(raw)
        good = len(found) == n
    elif tensor.datatype in _NUMPY_TYPES:
        kind = np.dtype(f"<{_NUMPY_TYPES[tensor.datatype]}")
        own = np.dtype(bool) if tensor.datatype == "BOOL" else kind.newbyteorder("=")
        good = len(raw) == n * kind.itemsize
        found = np.frombuffer(raw, kind).astype(own) if good else []
    else:
        raise RequestProblem(
            422, f"the datatype {tensor.datatype!r}", column=tensor.name, remedy=f"one of {[*_NUMPY_TYPES, 'BYTES']}"
        )
    if not good:
        what = f"expected {formatting.format_count(n, 'value')}, got {formatting.format_count(len(raw), 'byte')} of {tensor.datatype}"
        raise RequestProblem(422, what, column=tensor.name, value=len(raw), remedy="send as many as the shape says")
    return found


def _read_strings(raw: bytes) -> list[str]:
    """Texts, each after its length in four bytes."""
    found, at = [], 0
    while at + 4 <= len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4], "little")
        if end > len(raw):
            return []
        found.append(raw[at + 4 : end].decode("utf-8", "replace"))
        at = end
    return found


def write_tensors(scored: ScoredColumns, name: str, request: InferenceRequest, warnings: Sequence[str] = ()) -> bytes:
    """The answer to a v2 request: the class and the probability of each, one tensor a column.

    Warnings are one text among the parameters, whose values the protocol restricts to text, numbers and booleans.
    """
    label, *numbers = scored.columns
    kind = "BYTES" if None in label else _kind(scored.labels)  # that of a row left open is empty
    given = ["" if one is None else str(one) for one in label] if kind == "BYTES" else label
    outputs = [_output("prediction", kind, given)]
    outputs += [_output(n, "FP64", c) for n, c in zip(scored.names[1:-1], numbers[:-1], strict=True)]
    id_ = {} if request.id is None else {"id": request.id}
    more = {"parameters": {"warnings": "\n".join(warnings)}} if warnings else {}
    return encode(
        {"model_name": name, **id_, **more, "outputs": [one for one in outputs if request.has_output(one["name"])]}
    )


def _kind(labels: list[Any]) -> str:
    """The datatype of labels: of numbers their own, else text."""
    kinds = set(map(type, labels))
    return "BOOL" if kinds == {bool} else "INT64" if kinds == {int} else "FP64" if kinds == {float} else "BYTES"


def _output(name: str, kind: str, data: list[Any]) -> dict[str, Any]:
    return {"name": name, "shape": [len(data)], "datatype": kind, "data": data}


def model_metadata(scorer: Scorer, name: str) -> bytes:
    """What a v2 client is told of the model."""
    read = {n: e for part in scorer.reader.plan.parts for n, e in zip(part.columns, part.encodings, strict=False)}
    inputs = [
        {"name": str(n), "datatype": "FP64" if read[n].value_kind == "number" else "BYTES", "shape": [-1]}
        for n in scorer.reader.plan.columns
    ]
    outputs = [{"name": "prediction", "datatype": _kind(scorer.labels), "shape": [-1]}]
    outputs += [{"name": one, "datatype": "FP64", "shape": [-1]} for one in scorer.classes]
    return encode({"name": name, "versions": [], "platform": "candide", "inputs": inputs, "outputs": outputs})
