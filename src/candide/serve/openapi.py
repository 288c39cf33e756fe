"""The server described: for programs as OpenAPI 3.1, for people as a page that needs nothing from elsewhere."""

import shlex
from collections.abc import Sequence
from html import escape
from typing import Any

from candide import __version__
from candide.serve.endpoints import MODEL_PLACEHOLDER, Endpoint
from candide.serve.formats import ARROW, CSV, JSON, JSON_LINES, encode
from candide.serve.schemas import build_schemas, schema_ref
from candide.serve.scorer import Scorer
from candide.store.input_schema import example_row

_ERROR_STATUSES = {  # what may be wrong with any request, with one that has a body, and with one that changes the model
    "any": ("401", "405", "421", "500", "503"),
    "body": ("400", "406", "408", "413", "415", "422"),
    "change": ("403", "404", "409"),
}
_QUERY_PARAMETERS: dict[str, dict[str, Any]] = {
    "by": {"schema": {"enum": ["voice", "column"]}, "description": "what columns say together, or shared out to them"},
    "key": {"schema": {"type": "string"}, "description": "which request it is, as the header Idempotency-Key"},
    "unless": {"schema": {"type": "string"}, "description": "the version that is known: nothing is sent again"},
    "of": {"schema": {"type": "string"}, "description": "the key of what is to be forgotten, without a body"},
}
_NOTES_HEADER = {
    "Candide-Notes": {"schema": {"type": "string"}, "description": "JSON: what candide predict would warn of"}
}


def build_openapi(
    endpoints: Sequence[Endpoint], scorer: Scorer, name: str, private: bool | None, target: str | None = None
) -> dict[str, Any]:
    """The description for programs. ``private``: whether all requests need the token; None where there is none.

    ``target`` is the column of labels, where the model learns.
    """
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path.replace(MODEL_PLACEHOLDER, name), {})[one.method.lower()] = _operation(one, private)
    schemes = {} if private is None else {"token": {"type": "http", "scheme": "bearer"}}
    problem = {
        "description": "What is wrong with the request (RFC 9457)",
        "content": {"application/problem+json": {"schema": schema_ref("Problem")}},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": f"candide: {name}", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": build_schemas(scorer, target),
            "responses": {"Problem": problem},
            "securitySchemes": schemes,
        },
    }


def _operation(one: Endpoint, private: bool | None) -> dict[str, Any]:
    told: dict[str, Any] = {"summary": one.summary, "operationId": f"{one.method.lower()}{one.path.replace('/', '_')}"}
    wrong = [
        *_ERROR_STATUSES["any"],
        *(_ERROR_STATUSES["body"] if one.request_schema else ()),
        *(_ERROR_STATUSES["change"] if one.changes_model else ()),
    ]
    problem = {"$ref": "#/components/responses/Problem"}
    answer: dict[str, Any] = {"description": "the answer", "content": _answers(one)}
    if one.request_schema and not one.changes_model:
        answer["headers"] = _NOTES_HEADER
    told["responses"] = {"200": answer, **dict.fromkeys(sorted(wrong), problem)}
    if private is not None and (one.changes_model or (private and not one.is_probe)):
        told["security"] = [{"token": []}]
    if one.query_parameters:
        told["parameters"] = [{"name": name, "in": "query", **_QUERY_PARAMETERS[name]} for name in one.query_parameters]
    if one.request_schema:
        rows: dict[str, Any] = {kind: {} for kind in (JSON_LINES, CSV, ARROW)} if one.accepts_tables else {}
        told["requestBody"] = {
            "required": "of" not in one.query_parameters,
            "content": {JSON: {"schema": schema_ref(one.request_schema)}, **rows},
        }
    return told


def _answers(one: Endpoint) -> dict[str, Any]:
    """The formats of an answer: its media type, or JSON of a schema; where any is written, the others as well."""
    if "/" in one.response_schema:
        return {one.response_schema: {"schema": {"type": "string"}}}
    others: dict[str, Any] = (
        {kind: {} for kind in (JSON_LINES, CSV, ARROW)} if one.response_schema == "Predictions" else {}
    )
    return {JSON: {"schema": schema_ref(one.response_schema)}, **others}


def render_docs(endpoints: Sequence[Endpoint], scorer: Scorer, name: str, host: str) -> bytes:
    """The description for people; ``host`` is by what name they ask."""
    lines = [
        f"<tr><td>{one.method}</td><td><code>{_breakable_path(one.path.replace(MODEL_PLACEHOLDER, name))}</code></td>"
        f"<td>{escape(one.summary)}</td></tr>"
        for one in endpoints
    ]
    row = encode(example_row(scorer.fitted)).decode()
    call = f"curl -H 'content-type: application/json' -d {shlex.quote(row)} http://{host or 'localhost:8000'}/predict"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>candide: {escape(name)}</title><style>:root{{color-scheme:light dark}}"
        "body{font:16px/1.5 system-ui;max-width:60em;margin:2em auto;"
        "padding:0 1em;overflow-wrap:break-word}div{overflow-x:auto}td{padding:.2em 1em .2em 0;vertical-align:top}"
        "pre{white-space:pre-wrap}@media(max-width:40em){td{display:inline}tr,td:last-child{display:block}"
        "td:last-child{padding-bottom:.8em}}</style>"
        f"<h1>{escape(name)}</h1><p>A model served by Candide {__version__}. Rows are sent as JSON (an object is a "
        "row, a list of objects are rows), JSON lines, CSV or an Arrow stream, by their content type; answers come in "
        "the same format, or in that of the Accept header. What is wrong with a request is told in JSON (RFC 9457).</p>"
        f"<div><table>{''.join(lines)}</table></div><h2>A row</h2><pre>{escape(call)}</pre>"
        "<p>For programs: <a href=openapi.json>openapi.json</a></p></html>"
    ).encode()


def _breakable_path(path: str) -> str:
    """A path that a narrow page breaks after a slash, and nowhere else.

    >>> _breakable_path("/v2/models/<m>")
    '/v2/<wbr>models/<wbr>&lt;m&gt;'
    """
    return "/" + escape(path[1:]).replace("/", "/<wbr>")
