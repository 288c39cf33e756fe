"""Pages of a server: a form to try the model and correct it, the list of its endpoints, and their OpenAPI description.

The description follows OpenAPI 3.1, with JSON schemas for the columns and classes of the model.
"""

import json
import shlex
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from math import floor
from typing import Any

from candide import __version__, formatting
from candide.explain.decisions import EXPLANATION_UNITS
from candide.serve.endpoints import HTML, MODEL_PLACEHOLDER, Endpoint
from candide.serve.formats import ARROW, CSV, JSON, JSON_LINES, encode
from candide.serve.http import Response
from candide.serve.scorer import Scorer
from candide.store.input_schema import example_row

_MAX_LEVELS = 1000  # of a column, offered in the form
# Nothing is loaded from elsewhere or sent there, whatever the names of columns and classes contain.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'"
)


def form_fields(scorer: Scorer) -> list[dict[str, Any]]:
    """Return the fields of the form: each column with its kind, its levels or range, and a typical value."""
    fields: dict[Any, dict[str, Any]] = {}
    for part in scorer.reader.plan.parts:
        for name, encoding in zip(part.columns, part.encodings, strict=False):
            kind = "date" if name in scorer.fitted.dates else encoding.value_kind
            field = fields.setdefault(name, {"name": str(name), "kind": kind})
            if encoding.value_kind == "level" and "levels" not in field:
                field["levels"] = [_plain(level) for level in encoding.labels.values[:_MAX_LEVELS]]  # type: ignore[attr-defined]
            elif (bounds := encoding.value_range()) is not None and "low" not in field:
                field["low"], field["high"] = map(float, bounds)
    for name, value in scorer.typical_values.items():
        kind = fields[name]["kind"]
        if kind == "date":
            fields[name]["value"] = str(formatting.date_from_days(float(floor(value))))
        else:
            fields[name]["value"] = float(f"{value:.5g}") if kind == "number" else _plain(value)
    return [fields[name] for name in scorer.reader.plan.columns]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else str(value)


@cache
def _template(name: str) -> str:
    return (files("candide.serve") / name).read_text("utf-8")


def render_form(scorer: Scorer, name: str, target: str | None) -> Response:
    settings: dict[str, Any] = {"fields": form_fields(scorer), "target": target}
    settings["classes"] = [_plain(label) for label in scorer.labels]
    settings["names"] = list(map(str, scorer.labels))  # as in the names of probabilities
    style = (files("candide.report") / "html" / "page.css").read_text("utf-8")
    page = _template("page.html").replace("{{style}}", style).replace("{{script}}", _template("page.js"))
    text = json.dumps(settings).replace("<", "\\u003c")  # so that no name ends the script
    page = page.replace("{{name}}", escape(name)).replace("{{settings}}", text)
    return Response(page.encode(), HTML, headers=(("content-security-policy", _CONTENT_SECURITY_POLICY),))


def render_docs(endpoints: Sequence[Endpoint], scorer: Scorer, name: str, host: str) -> Response:
    """Return the list of endpoints, with an example request to ``host``."""
    lines = []
    for endpoint in endpoints:
        path = escape(endpoint.path.replace(MODEL_PLACEHOLDER, name)[1:]).replace("/", "/<wbr>")  # wraps after a slash
        lines.append(f"<tr><td>{endpoint.method}</td><td><code>/{path}</code></td>")
        lines.append(f"<td>{escape(endpoint.summary)}</td></tr>")
    row = encode(example_row(scorer.fitted)).decode()
    call = f"curl -H 'content-type: application/json' -d {shlex.quote(row)} http://{host or 'localhost:8000'}/predict"
    page = _template("docs.html").replace("{{version}}", __version__).replace("{{endpoints}}", "".join(lines))
    return Response(page.replace("{{name}}", escape(name)).replace("{{example}}", escape(call)).encode(), HTML)


Schema = dict[str, Any]
_ERROR_STATUSES = {  # of any request, of one with a body, and of one that changes the model
    "any": ("401", "405", "421", "500", "503"),
    "body": ("400", "406", "408", "413", "415", "422"),
    "change": ("403", "404", "409"),
}
_TEXT: Schema = {"type": "string"}
_VALUE: Schema = {"type": ["number", "string", "boolean", "null"]}
_VALUE_SCHEMAS: dict[str, Schema] = {
    "number": _VALUE | {"description": "a number, also as text"},
    "level": _VALUE,
    "text": {"type": ["string", "null"]},
}
_QUERY_PARAMETERS: dict[str, Schema] = {
    "by": {"schema": {"enum": list(EXPLANATION_UNITS)}, "description": "contributions of terms or of columns"},
    "key": {"schema": _TEXT, "description": "identifies the request, like the header Idempotency-Key"},
    "unless": {"schema": _TEXT, "description": "a version that the client has: its body is not sent again"},
    "of": {"schema": _TEXT, "description": "the key of the rows to forget, without a body"},
}
_NOTES_HEADER = {"Candide-Notes": {"schema": _TEXT, "description": "JSON: the warnings that candide predict prints"}}
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
    problem = {"application/problem+json": {"schema": _ref("Problem")}}
    components = {
        "schemas": build_schemas(scorer, target),
        "responses": {"Problem": {"description": "What is wrong with the request (RFC 9457)", "content": problem}},
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
    tables: Schema = {kind: {} for kind in (JSON_LINES, CSV, ARROW)}
    if "/" in endpoint.response_schema:
        content: Schema = {endpoint.response_schema: {"schema": _TEXT}}
    else:
        is_table = endpoint.response_schema == "Predictions"
        content = {JSON: {"schema": _ref(endpoint.response_schema)}, **(tables if is_table else {})}
    response: Schema = {"description": "the response", "content": content}
    if endpoint.request_schema and not endpoint.changes_model:
        response["headers"] = _NOTES_HEADER
    problems = {key: {"$ref": "#/components/responses/Problem"} for key in sorted(errors)}
    operation: Schema = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{endpoint.path.replace('/', '_')}",
        "responses": {"200": response, **problems},
    }
    if private is not None and (endpoint.changes_model or (private and not endpoint.is_probe)):
        operation["security"] = [{"token": []}]
    if names := endpoint.query_parameters:
        operation["parameters"] = [{"name": name, "in": "query", **_QUERY_PARAMETERS[name]} for name in names]
    if endpoint.request_schema:
        bodies = {JSON: {"schema": _ref(endpoint.request_schema)}, **(tables if endpoint.accepts_tables else {})}
        operation["requestBody"] = {"required": "of" not in endpoint.query_parameters, "content": bodies}
    return operation


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def build_schemas(scorer: Scorer, target: str | None) -> dict[str, Schema]:
    """Return every schema by name: those of ``schemas.json``, and those with the columns and classes of the model."""
    schemas = json.loads(_template("schemas.json"))
    types, row = scorer.input_schema.column_types, example_row(scorer.fitted)
    columns = {name: _VALUE_SCHEMAS[kind] for name, kind in types.items()}
    row_schema: Schema = {"type": "object", "properties": columns, "required": [], "additionalProperties": _VALUE}
    schemas["Row"] = row_schema | {"example": row}
    known: Schema = {"anyOf": [{"required": [name]} for name in types]}
    single = {"allOf": [_ref("Row"), known]} if 0 < len(types) <= _MAX_REQUIRED_COLUMNS else _ref("Row")
    schemas["Rows"] = {"oneOf": [single, {"type": "array", "items": _ref("Row")}]}
    decision = schemas["Decision"]["properties"]
    scored = {"prediction": decision["prediction"]}
    scored |= {key: {"type": "number", "minimum": 0, "maximum": 1} for key in scorer.classes}
    scored |= {"log_density": {"type": ["number", "null"]}}
    properties = scored | {"warnings": decision["warnings"]}
    schemas["Prediction"] = {"type": "object", "properties": properties, "required": list(scored)}
    schemas["Invocation"]["example"] = {"dataframe_split": {"columns": list(row), "data": [list(row.values())]}}
    tensors = [
        {"name": name, "shape": [1], "datatype": "BYTES" if isinstance(value, str) else "FP64", "data": [value]}
        for name, value in row.items()
    ]
    schemas["Inference"]["example"] = {"inputs": tensors}
    if target is None:
        del schemas["LabelledRows"], schemas["Outcome"]
    else:
        labelled = {**columns, target: {"type": ["string", "number", "boolean"], "examples": scorer.labels[:20]}}
        example = {**row, target: scorer.labels[0]}
        labels = {"properties": labelled, "required": list(labelled), "example": example}
        schemas["LabelledRow"] = row_schema | labels
    return schemas
