"""The OpenAPI 3.1 description of a server, with JSON schemas for the columns and classes of its model."""

from collections.abc import Sequence
from typing import Any

from candide import __version__
from candide.explain.decisions import EXPLANATION_UNITS
from candide.serve.endpoints import MODEL_PLACEHOLDER, Endpoint
from candide.serve.formats import ARROW, CSV, JSON, JSON_LINES
from candide.serve.scorer import Scorer
from candide.store.input_schema import example_row

Schema = dict[str, Any]
_ERROR_STATUSES = {  # of any request, of one with a body, and of one that changes the model
    "any": ("401", "405", "421", "500", "503"),
    "body": ("400", "406", "408", "413", "415", "422"),
    "change": ("403", "404", "409"),
}
_TEXT, _COUNT, _BOOLEAN, _NUMBER = ({"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"},
                                    {"type": "number"})  # fmt: skip
_VALUE: Schema = {"type": ["number", "string", "boolean", "null"]}
_QUERY_PARAMETERS: dict[str, Schema] = {
    "by": {
        "schema": {"enum": list(EXPLANATION_UNITS)},
        "description": "contributions of terms, or shared among columns",
    },
    "key": {"schema": _TEXT, "description": "identifies the request, like the header Idempotency-Key"},
    "unless": {"schema": _TEXT, "description": "a version that the client has: its body is not sent again"},
    "of": {"schema": _TEXT, "description": "the key of the rows to forget, without a body"},
}
_NOTES_HEADER = {"Candide-Notes": {"schema": _TEXT, "description": "JSON: the warnings that candide predict prints"}}
_VALUE_SCHEMAS: dict[str, Schema] = {
    "number": _VALUE | {"description": "a number, also as text"},
    "level": _VALUE,
    "text": {"type": ["string", "null"]},
}
_DATATYPES = ["BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "FP16", "FP32", "FP64",
              "BYTES"]  # fmt: skip
_PROBLEM_REF = {"$ref": "#/components/responses/Problem"}
_MAX_REQUIRED_COLUMNS = 100  # of a model with more, the schema does not require any


def build_openapi(
    endpoints: Sequence[Endpoint], scorer: Scorer, name: str, private: bool | None, target: str | None = None
) -> Schema:
    """Return the description. ``private``: whether all requests need the token; None if there is no token.

    ``target`` is the column of labels if the model learns.
    """
    paths: dict[str, Schema] = {}
    for endpoint in endpoints:
        path = endpoint.path.replace(MODEL_PLACEHOLDER, name)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, private)
    problem = {
        "description": "What is wrong with the request (RFC 9457)",
        "content": {"application/problem+json": {"schema": _ref("Problem")}},
    }
    components = {
        "schemas": build_schemas(scorer, target),
        "responses": {"Problem": problem},
        "securitySchemes": {} if private is None else {"token": {"type": "http", "scheme": "bearer"}},
    }
    info = {"title": f"candide: {name}", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}


def _operation(endpoint: Endpoint, private: bool | None) -> Schema:
    errors = [
        *_ERROR_STATUSES["any"],
        *(_ERROR_STATUSES["body"] if endpoint.request_schema else ()),
        *(_ERROR_STATUSES["change"] if endpoint.changes_model else ()),
    ]
    response: Schema = {"description": "the response", "content": _response_content(endpoint)}
    if endpoint.request_schema and not endpoint.changes_model:
        response["headers"] = _NOTES_HEADER
    operation: Schema = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{endpoint.path.replace('/', '_')}",
        "responses": {"200": response, **dict.fromkeys(sorted(errors), _PROBLEM_REF)},
    }
    if private is not None and (endpoint.changes_model or (private and not endpoint.is_probe)):
        operation["security"] = [{"token": []}]
    if names := endpoint.query_parameters:
        operation["parameters"] = [{"name": name, "in": "query", **_QUERY_PARAMETERS[name]} for name in names]
    if endpoint.request_schema:
        tables: Schema = {kind: {} for kind in (JSON_LINES, CSV, ARROW)} if endpoint.accepts_tables else {}
        operation["requestBody"] = {
            "required": "of" not in endpoint.query_parameters,
            "content": {JSON: {"schema": _ref(endpoint.request_schema)}, **tables},
        }
    return operation


def _response_content(endpoint: Endpoint) -> Schema:
    if "/" in endpoint.response_schema:
        return {endpoint.response_schema: {"schema": _TEXT}}
    is_table = endpoint.response_schema == "Predictions"
    tables: Schema = {kind: {} for kind in (JSON_LINES, CSV, ARROW)} if is_table else {}
    return {JSON: {"schema": _ref(endpoint.response_schema)}, **tables}


def build_schemas(scorer: Scorer, target: str | None) -> dict[str, Schema]:
    """Return every schema by name. ``target`` is the column of labels if the model learns."""
    types, row = scorer.input_schema.column_types, example_row(scorer.fitted)
    columns = {name: _VALUE_SCHEMAS[kind] for name, kind in types.items()}
    known: Schema = {"anyOf": [{"required": [name]} for name in types]}
    single = {"allOf": [_ref("Row"), known]} if 0 < len(types) <= _MAX_REQUIRED_COLUMNS else _ref("Row")
    label = _VALUE | {"description": "null if the model abstains"}
    scored = {"prediction": label, **{name: {"type": "number", "minimum": 0, "maximum": 1} for name in scorer.classes}}
    scored |= {"log_density": {"type": ["number", "null"]}}
    warnings = {"warnings": _list(_ref("Warning"), description="on the columns of all rows; in a list, on its first")}
    decision = {"prediction": label, "log_odds": {"type": ["number", "null"]}}
    schemas = {
        "Row": _object(columns, [], additionalProperties=_VALUE, example=row),
        "Rows": {"oneOf": [single, _list(_ref("Row"))]},
        "Prediction": _object(scored | warnings, list(scored)),
        "Predictions": _one_or_many("Prediction"),
        "Warning": _record(
            code=_TEXT, text=_TEXT, column={"type": ["string", "integer", "null"]}, columns=_list(_TEXT)
        ),
        "Decision": _object(decision | warnings, list(decision)),
        "Decisions": _one_or_many("Decision"),
        "Columns": _record(
            columns=_list(_record(name=_TEXT, kind={"enum": list(_VALUE_SCHEMAS)})),
            target={"type": ["string", "null"]},
            missing=_list(_TEXT),
            text_formats={"type": "object"},
        ),
        "Live": _record(live=_BOOLEAN),
        "Ready": _record(ready=_BOOLEAN),
        "Server": _object({"name": _TEXT, "version": _TEXT, "extensions": _list(_TEXT)}, ["name", "version"]),
        "Object": {"type": "object"},
        "Peers": _list(_object({"peer": _TEXT, "rows": _NUMBER, "self": _BOOLEAN}, ["peer", "rows"])),
        "Problem": _problem_schema(),
        **_mlflow_schemas(row),
        **_inference_schemas(row),
    }
    if target is not None:
        labelled = {**columns, target: {"type": ["string", "number", "boolean"], "examples": scorer.labels[:20]}}
        example = {**row, target: scorer.labels[0]}
        outcome = {"key": _TEXT, "rows": _COUNT, "repeated": _BOOLEAN, "model_rows": _NUMBER}
        schemas["LabelledRow"] = _object(labelled, list(labelled), additionalProperties=_VALUE, example=example)
        schemas["LabelledRows"] = _one_or_many("LabelledRow")
        schemas["Outcome"] = _object(outcome | warnings, ["key", "rows", "repeated"])
    return schemas


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: Schema, required: list[str], **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": required, **more}


def _record(**properties: Schema) -> Schema:
    return _object(properties, list(properties))


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _one_or_many(name: str) -> Schema:
    return {"oneOf": [_ref(name), _list(_ref(name))]}


def _problem_schema() -> Schema:
    required = {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT}
    optional = {"column": {}, "row": {}, "value": {}, "remedy": _TEXT, "key": _TEXT, "error": _TEXT}
    return _object(required | optional, list(required))


def _mlflow_schemas(row: dict[str, Any]) -> dict[str, Schema]:
    split = {"columns": _list(_TEXT, uniqueItems=True), "data": _list(_list(_VALUE))}
    rows = {"oneOf": [_list(_ref("Row")), {"type": "object", "additionalProperties": _list(_VALUE)}]}
    ways = {
        "dataframe_split": _object({**split, "index": {}}, list(split), additionalProperties=False),
        "dataframe_records": _list(_ref("Row")),
        "inputs": rows,
        "instances": rows,
    }
    fields: Schema = {name: {"anyOf": [way, {"type": "null"}]} for name, way in ways.items()}
    fields |= {"params": {}, "signature_name": {}}
    example = {"dataframe_split": {"columns": list(row), "data": [list(row.values())]}}
    about = {"description": "rows in one of four ways", "additionalProperties": False, "example": example}
    labels = _object({"predictions": _list(_VALUE), "warnings": _list(_ref("Warning"))}, ["predictions"])
    return {"Invocation": _object(fields, [], minProperties=1, **about), "Labels": labels}


def _inference_schemas(row: dict[str, Any]) -> dict[str, Schema]:
    parameters = {"type": "object", "additionalProperties": _VALUE}
    tensor = {
        "name": _TEXT,
        "shape": _list(_COUNT, minItems=1),
        "datatype": {"enum": _DATATYPES},
        "data": {"type": ["array", "null"], "description": "one value per row; absent if bytes follow the JSON"},
        "parameters": parameters,
    }
    output = _object({"name": _TEXT, "parameters": parameters}, ["name"], additionalProperties=False)
    inference = {
        "id": {"type": ["string", "null"]},
        "inputs": _list(_ref("Tensor")),
        "outputs": {"anyOf": [_list(output), {"type": "null"}]},
        "parameters": {"type": "object"},
    }
    example = [
        {"name": name, "shape": [1], "datatype": "BYTES" if isinstance(value, str) else "FP64", "data": [value]}
        for name, value in row.items()
    ]
    response = {"model_name": _TEXT, "id": _TEXT, "outputs": _list(_ref("Tensor"))}
    response |= {"parameters": _object({"warnings": {"type": "string", "description": "one per line"}}, [])}
    sides = _list(_record(name=_TEXT, datatype={"enum": _DATATYPES}, shape=_list({"type": "integer"})))
    return {
        "Tensor": _object(tensor, ["name", "shape", "datatype"], additionalProperties=False),
        "Inference": _object(inference, ["inputs"], additionalProperties=False, example={"inputs": example}),
        "Inferred": _object(response, ["model_name", "outputs"]),
        "Metadata": _record(name=_TEXT, versions=_list(_TEXT), platform=_TEXT, inputs=sides, outputs=sides),
    }
