"""Protocols of other servers: MLflow scoring, and the Open Inference Protocol (v2)."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from candide import formatting
from candide.model.input_columns import nearest_name
from candide.serve.formats import RequestRows, Value, decode_json, encode, rows_from_records
from candide.serve.http import Limits, RequestProblem
from candide.serve.scorer import ScoredColumns, Scorer

Record = dict[str, Value]


class DataframeSplit(msgspec.Struct, forbid_unknown_fields=True):
    columns: list[str]
    data: list[list[Value]]
    index: Any = None  # pandas writes it; rows are scored in their order


class MlflowRequest(msgspec.Struct, forbid_unknown_fields=True):
    dataframe_split: DataframeSplit | None = None
    dataframe_records: list[Record] | None = None
    inputs: list[Record] | dict[str, list[Value]] | None = None
    instances: list[Record] | dict[str, list[Value]] | None = None
    params: Any = None  # of the protocol, ignored here
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

    def check_outputs(self, names: list[str]) -> None:
        for output in self.outputs or ():
            if output.name not in names:
                remedy = f"request one of {formatting.format_list(names)}"
                raise RequestProblem(422, f"unknown output {output.name!r}", value=output.name, remedy=remedy)


_mlflow_decoder, _inference_decoder = msgspec.json.Decoder(MlflowRequest), msgspec.json.Decoder(InferenceRequest)
# A string, which stays, or NaN outside of one. An unclosed string is matched whole: the time is linear.
_NAN = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)|NaN', re.DOTALL)
_MLFLOW_FIELDS = ("dataframe_split", "dataframe_records", "inputs", "instances")
_MAX_SEARCHED_LENGTH = 100  # characters of a field for which a similar one is suggested
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_TYPES_BY_PATH: dict[type, dict[str, type]] = {  # the type at each path of a request
    MlflowRequest: {"$": MlflowRequest, "$.dataframe_split": DataframeSplit},
    InferenceRequest: {"$": InferenceRequest, "$.inputs[]": InferenceTensor, "$.outputs[]": RequestedOutput},
}
_NUMPY_TYPES = {f"{kind}{bits}": f"{letter}{bits // 8}" for kind, letter in (("INT", "i"), ("UINT", "u"), ("FP", "f"))
          for bits in (8, 16, 32, 64) if kind != "FP" or bits > 8} | {"BOOL": "u1"}  # fmt: skip


def _decode(decoder: msgspec.json.Decoder, body: bytes) -> Any:
    """Return JSON of an expected shape; the problem of an unknown field names a similar one.

    These clients write NaN for missing values, and their servers read it.
    """
    if b"NaN" in body:
        body = _NAN.sub(lambda match: match[1] or b"null", body)
    try:
        return decode_json(decoder, body)
    except RequestProblem as problem:
        match = _UNKNOWN_FIELD.search(problem.detail)
        path = (match and match["path"]) or "$"
        struct = _TYPES_BY_PATH[decoder.type].get(re.sub(r"\[\d+\]", "[]", path))
        if not match or not struct:
            raise
        name, fields = match["name"], struct.__struct_fields__  # type: ignore[attr-defined]
        similar = nearest_name(name, fields) if len(name) < _MAX_SEARCHED_LENGTH else ""
        where = "" if path == "$" else f" in {path.removeprefix('$.')}"
        remedy = f"did you mean {similar!r}?" if similar else f"send only {', '.join(fields)}"
        raise RequestProblem(422, f"unknown field {name!r}{where}", value=name, remedy=remedy) from None


def rows_from_mlflow(body: bytes, limits: Limits) -> RequestRows:
    request = _decode(_mlflow_decoder, body)
    sent = [rows for name in _MLFLOW_FIELDS if (rows := getattr(request, name)) is not None]
    if len(sent) != 1:
        names = formatting.format_list(_MLFLOW_FIELDS)
        raise RequestProblem(422, f"expected rows in one of {names}", remedy=f"send one of {names}")
    [rows] = sent
    if isinstance(rows, DataframeSplit):
        return _rows_from_split(rows, limits)
    return rows_from_records(rows, limits) if isinstance(rows, list) else _rows_from_columns(rows, limits)


def _rows_from_split(split: DataframeSplit, limits: Limits) -> RequestRows:
    n = len(split.columns)
    limits.check(len(split.data), n)
    for i, row in enumerate(split.data):
        if len(row) != n:
            what = f"{formatting.format_count(len(row), 'value')} for {formatting.format_count(n, 'column')}"
            raise RequestProblem(422, what, row=i, value=len(row), remedy="send one value for each column")
    if len(set(split.columns)) < n:
        raise RequestProblem(422, "two columns have the same name", value=split.columns, remedy="rename one of them")
    columns = zip(*split.data, strict=True) if split.data else ([] for _ in split.columns)
    return RequestRows(len(split.data), dict(zip(split.columns, map(list, columns), strict=True)))


def _rows_from_columns(columns: dict[str, Any], limits: Limits) -> RequestRows:
    lengths = {name: len(column) for name, column in columns.items()}
    limits.check(max(lengths.values(), default=0), len(columns))
    if len(set(lengths.values())) > 1:
        first = dict(islice(lengths.items(), 10))
        raise RequestProblem(422, f"columns differ in length: {first}", remedy="send as many values in each")
    return RequestRows(next(iter(lengths.values()), 0), columns)


def rows_from_tensors(body: bytes, length: bytes, limits: Limits) -> tuple[RequestRows, InferenceRequest]:
    """Return the rows of a v2 request, which has one tensor per column, and the request.

    ``length`` is the number of bytes of JSON if tensors follow it as bytes.
    """
    at = int(length) if length.isdigit() and len(length) < 20 else len(body) if not length else -1
    if not 0 <= at <= len(body):
        size = formatting.format_count(len(body), "byte")
        what = f"Inference-Header-Content-Length is {length!r}, and the body has {size}"
        raise RequestProblem(400, what, value=length, remedy="send the length of the JSON")
    request = _decode(_inference_decoder, body[:at])
    columns: dict[str, Any] = {}
    for tensor in request.inputs:
        if tensor.name in columns:
            what = f"two tensors are named {tensor.name!r}"
            raise RequestProblem(422, what, column=tensor.name, remedy="send one for each column")
        size = tensor.parameters.get("binary_data_size")
        raw = None
        if type(size) is int:
            raw, at = body[at : at + max(0, size)], at + max(0, size)
        columns[tensor.name] = _tensor_values(tensor, raw)
    return _rows_from_columns(columns, limits), request


def _tensor_values(tensor: InferenceTensor, raw: bytes | None) -> Any:
    n = int(np.prod(tensor.shape, dtype=object)) if tensor.shape else 0
    if min(tensor.shape, default=0) < 0 or any(size != 1 for size in tensor.shape[1:]):
        what, remedy = f"a tensor of shape {tensor.shape}", "send one value per row: [n] or [n, 1]"
        raise RequestProblem(422, what, column=tensor.name, value=tensor.shape, remedy=remedy)
    if raw is not None:
        return _values_from_bytes(tensor, raw, n)
    data: list[Any] = tensor.data or []
    if any(isinstance(row, list) and len(row) != 1 for row in data):
        what = "a row of a tensor is a list of several values, or of none"
        raise RequestProblem(422, what, column=tensor.name, remedy="send one value per row")
    values = [value for row in data for value in (row if isinstance(row, list) else [row])]
    if len(values) != n:
        what = f"{formatting.format_count(len(values), 'value')} in a tensor of shape {tensor.shape}"
        raise RequestProblem(422, what, column=tensor.name, value=len(values), remedy=f"send {n}")
    return values


def _values_from_bytes(tensor: InferenceTensor, raw: bytes, n: int) -> Any:
    if tensor.datatype == "BYTES":
        values: Any = _read_strings(raw)
        is_complete = len(values) == n
    elif tensor.datatype in _NUMPY_TYPES:
        dtype = np.dtype(f"<{_NUMPY_TYPES[tensor.datatype]}")
        native = np.dtype(bool) if tensor.datatype == "BOOL" else dtype.newbyteorder("=")
        is_complete = len(raw) == n * dtype.itemsize
        values = np.frombuffer(raw, dtype).astype(native) if is_complete else []
    else:
        what, remedy = f"unknown datatype {tensor.datatype!r}", f"send one of {[*_NUMPY_TYPES, 'BYTES']}"
        raise RequestProblem(422, what, column=tensor.name, remedy=remedy)
    if not is_complete:
        size = formatting.format_count(len(raw), "byte")
        what = f"expected {formatting.format_count(n, 'value')}, got {size} of {tensor.datatype}"
        raise RequestProblem(422, what, column=tensor.name, value=len(raw), remedy="send as many as the shape holds")
    return values


def _read_strings(raw: bytes) -> list[str]:
    """Return texts that each follow their length in four bytes."""
    texts, at = [], 0
    while at + 4 <= len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4], "little")
        if end > len(raw):
            return []
        texts.append(raw[at + 4 : end].decode("utf-8", "replace"))
        at = end
    return texts


def write_tensors(scored: ScoredColumns, name: str, request: InferenceRequest, warnings: Sequence[str]) -> bytes:
    """Return the response to a v2 request: predictions and probabilities, one tensor per column.

    Warnings are one text among the parameters, which the protocol limits to text, numbers and booleans.
    """
    label, *numbers = scored.columns
    datatype = "BYTES" if None in label else _label_datatype(scored.labels)  # an abstention is the empty text
    values = ["" if value is None else str(value) for value in label] if datatype == "BYTES" else label
    outputs = [_output("prediction", datatype, values)]
    outputs += [_output(n, "FP64", column) for n, column in zip(scored.names[1:-1], numbers[:-1], strict=True)]
    id_ = {} if request.id is None else {"id": request.id}
    parameters = {"parameters": {"warnings": "\n".join(warnings)}} if warnings else {}
    names = [output.name for output in request.outputs or ()] or scored.names  # all if none is named
    requested = [output for output in outputs if output["name"] in names]
    return encode({"model_name": name, **id_, **parameters, "outputs": requested})


def _label_datatype(labels: list[Any]) -> str:
    types = set(map(type, labels))
    return "BOOL" if types == {bool} else "INT64" if types == {int} else "FP64" if types == {float} else "BYTES"


def _output(name: str, datatype: str, data: list[Any]) -> dict[str, Any]:
    return {"name": name, "shape": [len(data)], "datatype": datatype, "data": data}


def model_metadata(scorer: Scorer, name: str) -> bytes:
    plan = scorer.reader.plan
    encodings = {n: e for part in plan.parts for n, e in zip(part.columns, part.encodings, strict=False)}
    inputs = [(str(n), "FP64" if encodings[n].value_kind == "number" else "BYTES") for n in plan.columns]
    outputs = [("prediction", _label_datatype(scorer.labels)), *((n, "FP64") for n in scorer.classes)]
    sides = [[{"name": n, "datatype": kind, "shape": [-1]} for n, kind in side] for side in (inputs, outputs)]
    server = {"name": name, "versions": [], "platform": "candide"}
    return encode({**server, "inputs": sides[0], "outputs": sides[1]})
