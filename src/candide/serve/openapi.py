"""The server described: for programs as OpenAPI 3.1, for people as a page that needs nothing from elsewhere."""

from collections.abc import Sequence
from html import escape
from typing import Any

from candide import __version__
from candide.serve.endpoints import NAME, Endpoint
from candide.serve.formats import ARROW, CSV, JSON, LINES, encode
from candide.serve.scorer import Scorer
from candide.tasks.wanted import example

_PROBLEM = {
    "description": "What is wrong with the request (RFC 9457)",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_WRONG = ("400", "401", "404", "405", "406", "408", "413", "415", "422", "503")


def openapi(endpoints: Sequence[Endpoint], scorer: Scorer, name: str, private: bool | None) -> dict[str, Any]:
    """The description for programs. ``private``: whether all requests need the token; None where there is none."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(one.path.replace(NAME, name), {})[one.method.lower()] = _operation(one, private)
    schemes = {} if private is None else {"token": {"type": "http", "scheme": "bearer"}}
    place = {"detail": {"type": "string"}, "column": {}, "row": {}, "value": {}, "remedy": {"type": "string"}}
    known = {"type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"}, **place}
    problem = {"type": "object", "required": ["type", "title", "status", "detail"], "properties": known}
    value = {"type": ["number", "string", "boolean", "null"]}
    row = {"type": "object", "additionalProperties": value, "example": example(scorer.fitted)}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"candide: {name}", "version": __version__},
        "paths": paths,
        "components": {"schemas": {"Problem": problem, "Row": row}, "securitySchemes": schemes},
    }


def _operation(one: Endpoint, private: bool | None) -> dict[str, Any]:
    told: dict[str, Any] = {"summary": one.about, "operationId": f"{one.method.lower()}{one.path.replace('/', '_')}"}
    wrong = _WRONG if one.takes is not None else ("401", "404", "405", "503")
    told["responses"] = {"200": {"description": "the answer"}, **dict.fromkeys(wrong, _PROBLEM)}
    if private is not None and (one.changes or (private and not one.probe)):
        told["security"] = [{"token": []}]
    if one.takes is not None:
        content: dict[str, Any] = {JSON: {"example": one.takes}}
        if one.rows and "column" in one.takes:
            row = {"$ref": "#/components/schemas/Row"}
            content = {JSON: {"schema": {"oneOf": [row, {"type": "array", "items": row}]}}}
        content |= {kind: {} for kind in (LINES, CSV, ARROW)} if one.rows else {}
        told["requestBody"] = {"required": True, "content": content}
    return told


def docs(endpoints: Sequence[Endpoint], scorer: Scorer, name: str) -> bytes:
    """The description for people."""
    lines = [
        f"<tr><td>{one.method}</td><td><code>{escape(one.path.replace(NAME, name))}</code></td>"
        f"<td>{escape(one.about)}</td></tr>"
        for one in endpoints
    ]
    call = f"curl -H 'content-type: application/json' -d '{encode(example(scorer.fitted)).decode()}' http://localhost:8000/predict"
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>candide: {escape(name)}</title><style>body{{font:16px/1.5 system-ui;max-width:60em;margin:2em auto;"
        "padding:0 1em}td{padding:.2em 1em .2em 0;vertical-align:top}pre{white-space:pre-wrap}</style>"
        f"<h1>{escape(name)}</h1><p>A model served by Candide {__version__}. Rows are sent as JSON (an object is a "
        "row, a list of objects are rows), JSON lines, CSV or an Arrow stream, by their content type; answers come in "
        "the same format, or in that of the Accept header. What is wrong with a request is told in JSON (RFC 9457).</p>"
        f"<table>{''.join(lines)}</table><h2>A row</h2><pre>{escape(call)}</pre>"
        "<p>For programs: <a href=openapi.json>openapi.json</a></p></html>"
    ).encode()
