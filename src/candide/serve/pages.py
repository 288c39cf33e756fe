"""The pages of a server: a form to try the model and correct it, and the list of its endpoints.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> [field["kind"] for field in form_fields(Scorer(FittedModel(garden())))]
['number', 'number', 'number', 'level', 'level']
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
from candide.serve.endpoints import HTML, MODEL_PLACEHOLDER, Endpoint
from candide.serve.formats import encode
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
    dates = scorer.fitted.dates
    for part in scorer.reader.plan.parts:
        for name, encoding in zip(part.columns, part.encodings, strict=False):
            kind = "date" if name in dates else encoding.value_kind
            field = fields.setdefault(name, {"name": str(name), "kind": kind})
            if encoding.value_kind == "level" and "levels" not in field:
                field["levels"] = [_plain(level) for level in encoding.labels.values[:_MAX_LEVELS]]  # type: ignore[attr-defined]
            elif (bounds := encoding.value_range()) is not None and "low" not in field:
                field["low"], field["high"] = map(float, bounds)
    for name, value in scorer.typical_values.items():
        fields[name]["value"] = _field_value(value, fields[name]["kind"])
    return [fields[name] for name in scorer.reader.plan.columns]


def _field_value(value: Any, kind: str) -> Any:
    if kind == "date":
        return str(formatting.date_from_days(float(floor(value))))
    return float(f"{value:.5g}") if kind == "number" else _plain(value)


def render_form(scorer: Scorer, name: str, target: str | None) -> Response:
    """Return the form; ``target`` is the column of labels if the model learns."""
    settings: dict[str, Any] = {"fields": form_fields(scorer), "target": target}
    settings["classes"] = [_plain(label) for label in scorer.labels]
    settings["names"] = list(map(str, scorer.labels))  # as in the names of probabilities
    text = json.dumps(settings).replace("<", "\\u003c")  # so that no name ends the script
    page = _template().replace("{{name}}", escape(name)).replace("{{settings}}", text)
    return Response(page.encode(), HTML, headers=(("content-security-policy", _CONTENT_SECURITY_POLICY),))


@cache
def _template() -> str:
    style = (files("candide.report") / "html" / "page.css").read_text("utf-8")
    folder = files("candide.serve")
    text = (folder / "page.html").read_text("utf-8")
    return text.replace("{{style}}", style).replace("{{script}}", (folder / "page.js").read_text("utf-8"))


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else str(value)


def render_docs(endpoints: Sequence[Endpoint], scorer: Scorer, name: str, host: str) -> Response:
    """Return the list of endpoints, with an example request to ``host``."""
    lines = [
        f"<tr><td>{endpoint.method}</td>"
        f"<td><code>{_breakable_path(endpoint.path.replace(MODEL_PLACEHOLDER, name))}</code></td>"
        f"<td>{escape(endpoint.summary)}</td></tr>"
        for endpoint in endpoints
    ]
    row = encode(example_row(scorer.fitted)).decode()
    call = f"curl -H 'content-type: application/json' -d {shlex.quote(row)} http://{host or 'localhost:8000'}/predict"
    page = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>candide: {escape(name)}</title><style>:root{{color-scheme:light dark}}"
        "body{font:16px/1.5 system-ui;max-width:60em;margin:2em auto;"
        "padding:0 1em;overflow-wrap:break-word}div{overflow-x:auto}td{padding:.2em 1em .2em 0;vertical-align:top}"
        "pre{white-space:pre-wrap}@media(max-width:40em){td{display:inline}tr,td:last-child{display:block}"
        "td:last-child{padding-bottom:.8em}}</style>"
        f"<h1>{escape(name)}</h1><p>A model served by Candide {__version__}. Send rows as JSON (an object for one row, "
        "or a list of objects), JSON lines, CSV or an Arrow stream, with the matching content type. The response has "
        "the same format, or that of the Accept header. Problems are reported as JSON (RFC 9457).</p>"
        f"<div><table>{''.join(lines)}</table></div><h2>Example</h2><pre>{escape(call)}</pre>"
        "<p>For programs: <a href=openapi.json>openapi.json</a></p></html>"
    )
    return Response(page.encode(), HTML)


def _breakable_path(path: str) -> str:
    """Return a path that wraps only after a slash.

    >>> _breakable_path("/v2/models/<m>")
    '/v2/<wbr>models/<wbr>&lt;m&gt;'
    """
    return "/" + escape(path[1:]).replace("/", "/<wbr>")
