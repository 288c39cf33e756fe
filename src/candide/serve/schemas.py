"""Schemas: what bodies and answers look like, in the words of JSON Schema, for the columns and classes of one model."""

from typing import Any

from candide.serve.scorer import Scorer
from candide.store.input_schema import example_row

Schema = dict[str, Any]
_TEXT, _COUNT, _BOOLEAN = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
_VALUE = {"type": ["number", "string", "boolean", "null"]}
_VALUE_SCHEMAS: dict[str, Schema] = {
    "number": {"type": ["number", "string", "boolean", "null"], "description": "a number, or text that spells one"},
    "level": _VALUE,
    "text": {"type": ["string", "null"]},
}
_DATATYPES = ["BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP16", "FP32", "FP64",
              "BYTES"]  # fmt: skip
_MAX_REQUIRED_COLUMNS = 100  # columns of which a row that is alone must have one; of more this is not said


def build_schemas(scorer: Scorer, target: str | None) -> dict[str, Schema]:
    """Every schema by its name. ``target`` is the column of labels, where the model learns."""
    kinds, row = scorer.input_schema.column_types, example_row(scorer.fitted)
    columns = {name: _VALUE_SCHEMAS[kind] for name, kind in kinds.items()}
    some = {"anyOf": [{"required": [name]} for name in kinds]} if 0 < len(kinds) <= _MAX_REQUIRED_COLUMNS else {}
    label = {"type": ["string", "number", "boolean", "null"], "description": "null where the row is left open"}
    scored = {"prediction": label, **{name: {"type": "number", "minimum": 0, "maximum": 1} for name in scorer.classes}}
    scored |= {"log_density": {"type": ["number", "null"]}}
    warned = {
        "warnings": _list(schema_ref("Warning"), description="on the columns of all rows; in a list, of its first row")
    }
    known = {
        "Row": _object(columns, [], additionalProperties=_VALUE, example=row),
        "Rows": {
            "oneOf": [{"allOf": [schema_ref("Row"), some]} if some else schema_ref("Row"), _list(schema_ref("Row"))]
        },
        "Prediction": _object(scored | warned, list(scored)),
        "Warning": _warning(),
        "Predictions": _one_or_many("Prediction"),
        "Decisions": _one_or_many("Decision"),
        "Decision": _object(
            {"prediction": label, "log_odds": {"type": ["number", "null"]}, **warned}, ["prediction", "log_odds"]
        ),
        "Columns": _columns(),
        "Live": _object({"live": _BOOLEAN}, ["live"]),
        "Ready": _object({"ready": _BOOLEAN}, ["ready"]),
        "Server": _object({"name": _TEXT, "version": _TEXT, "extensions": _list(_TEXT)}, ["name", "version"]),
        "Object": {"type": "object"},
        "Peers": _list(_object({"peer": _TEXT, "rows": {"type": "number"}, "self": _BOOLEAN}, ["peer", "rows"])),
        "Problem": _problem(),
        **_mlflow(row),
        **_open_inference(row),
    }
    if target is not None:
        labelled = {**columns, target: {"type": ["string", "number", "boolean"], "examples": scorer.labels[:20]}}
        lesson = {**row, target: scorer.labels[0]}
        told = {"key": _TEXT, "rows": _COUNT, "again": _BOOLEAN, "model_rows": {"type": "number"}}
        known["Labelled"] = _object(labelled, list(labelled), additionalProperties=_VALUE, example=lesson)
        known["Lessons"] = _one_or_many("Labelled")
        known["Outcome"] = _object(told | warned, ["key", "rows", "again"])
    return known


def schema_ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Schema, required: list[str], **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": required, **more}


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _one_or_many(name: str) -> Schema:
    return {"oneOf": [schema_ref(name), _list(schema_ref(name))]}


def _problem() -> Schema:
    places = {"detail": _TEXT, "column": {}, "row": {}, "value": {}, "remedy": _TEXT, "key": _TEXT, "error": _TEXT}
    known = {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, **places}
    return _object(known, ["type", "title", "status", "detail"])


def _warning() -> Schema:
    column = {"type": ["string", "integer", "null"]}
    known = {"code": _TEXT, "text": _TEXT, "column": column, "columns": _list(_TEXT)}
    return _object(known, list(known))


def _columns() -> Schema:
    one = _object({"name": _TEXT, "kind": {"enum": list(_VALUE_SCHEMAS)}}, ["name", "kind"])
    said = {"target": {"type": ["string", "null"]}, "missing": _list(_TEXT), "text_formats": {"type": "object"}}
    return _object({"columns": _list(one), **said}, ["columns", *said])


def _mlflow(row: dict[str, Any]) -> dict[str, Schema]:
    split = {"columns": _list(_TEXT, uniqueItems=True), "data": _list(_list(_VALUE))}
    rows = {"oneOf": [_list(schema_ref("Row")), {"type": "object", "additionalProperties": _list(_VALUE)}]}
    whole = _object({**split, "index": {}}, list(split), additionalProperties=False)
    ways = {"dataframe_split": whole, "dataframe_records": _list(schema_ref("Row"))}
    ways = {
        name: {"anyOf": [way, {"type": "null"}]} for name, way in {**ways, "inputs": rows, "instances": rows}.items()
    }
    ways |= {"params": {}, "signature_name": {}}
    told = {"description": "rows in one of four ways", "additionalProperties": False}
    asked = {"dataframe_split": {"columns": list(row), "data": [list(row.values())]}}
    answer = _object({"predictions": _list(_VALUE), "warnings": _list(schema_ref("Warning"))}, ["predictions"])
    return {"Invocation": _object(ways, [], minProperties=1, example=asked, **told), "Labels": answer}


def _open_inference(row: dict[str, Any]) -> dict[str, Schema]:
    shape = _list({"type": "integer", "minimum": 0}, minItems=1)
    data = {"type": ["array", "null"], "description": "one value a row; none where bytes follow the JSON"}
    tensor = {"name": _TEXT, "shape": shape, "datatype": {"enum": _DATATYPES}, "data": data}
    tensor["parameters"] = {"type": "object", "additionalProperties": _VALUE}
    described = {"name": _TEXT, "datatype": {"enum": _DATATYPES}, "shape": _list({"type": "integer"})}
    made = {"name": _TEXT, "versions": _list(_TEXT), "platform": _TEXT}
    made |= {side: _list(_object(described, list(described))) for side in ("inputs", "outputs")}
    example_of = [
        {"name": name, "shape": [1], "datatype": "BYTES" if isinstance(value, str) else "FP64", "data": [value]}
        for name, value in row.items()
    ]
    asked = _object({"name": _TEXT, "parameters": tensor["parameters"]}, ["name"], additionalProperties=False)
    outputs = {"anyOf": [_list(asked), {"type": "null"}]}
    inference = {
        "id": {"type": ["string", "null"]},
        "inputs": _list(schema_ref("Tensor")),
        "outputs": outputs,
        "parameters": {"type": "object"},
    }
    answer = {"model_name": _TEXT, "id": _TEXT, "outputs": _list(schema_ref("Tensor"))}
    answer |= {"parameters": _object({"warnings": {"type": "string", "description": "one a line"}}, [])}
    return {
        "Tensor": _object(tensor, ["name", "shape", "datatype"], additionalProperties=False),
        "Inference": _object(inference, ["inputs"], additionalProperties=False, example={"inputs": example_of}),
        "Inferred": _object(answer, ["model_name", "outputs"]),
        "Metadata": _object(made, list(made)),
    }
