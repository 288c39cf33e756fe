"""The page at the root of a server: a form of the model's columns, what it makes of them, and where it may be taught.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> [field["kind"] for field in form_fields(Scorer(FittedModel(garden())))]
['number', 'number', 'number', 'level', 'level']
"""

import json
from functools import cache
from html import escape
from importlib.resources import files
from math import floor
from typing import Any

from candide import formatting
from candide.serve.http import Response
from candide.serve.scorer import Scorer

_MAX_LEVELS = 1000  # of a column that are offered
# Nothing is loaded from elsewhere, and nothing is sent there, whatever the names of columns and classes hold.
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'"
)


def form_fields(scorer: Scorer) -> list[dict[str, Any]]:
    """Return what the form asks for: each column with its kind, its levels or its range, and a typical value."""
    found: dict[Any, dict[str, Any]] = {}
    dates = scorer.fitted.dates
    for part in scorer.reader.plan.parts:
        for name, encoding in zip(part.columns, part.encodings, strict=False):
            told = found.setdefault(name, {"name": str(name), "kind": encoding.value_kind})
            told["kind"] = "date" if name in dates else told["kind"]
            if encoding.value_kind == "level" and "levels" not in told:
                told["levels"] = [_plain(level) for level in encoding.labels.values[:_MAX_LEVELS]]  # type: ignore[attr-defined]
            elif (extent := encoding.value_range()) is not None and "low" not in told:
                told["low"], told["high"] = map(float, extent)
    for name, value in scorer.typical_values.items():
        found[name]["value"] = _field_value(value, found[name]["kind"])
    return [found[name] for name in scorer.reader.plan.columns]


def _field_value(value: Any, kind: str) -> Any:
    """Return a typical value as a field of the form shows it."""
    if kind == "date":
        return str(formatting.date_from_days(float(floor(value))))
    return float(f"{value:.5g}") if kind == "number" else _plain(value)


def render_form(scorer: Scorer, name: str, target: str | None) -> Response:
    """The page; ``target`` is the column of the labels where the model learns."""
    known: dict[str, Any] = {"fields": form_fields(scorer), "target": target}
    known["classes"] = [_plain(label) for label in scorer.labels]
    known["names"] = list(map(str, scorer.labels))  # as answers name their probabilities
    told = json.dumps(known).replace("<", "\\u003c")  # so that no name ends the script
    text = _template().replace("{{name}}", escape(name)).replace("{{known}}", told)
    return Response(
        text.encode(), "text/html; charset=utf-8", headers=(("content-security-policy", _CONTENT_SECURITY_POLICY),)
    )


@cache
def _template() -> str:
    style = (files("candide.report") / "html" / "page.css").read_text("utf-8")
    own = files("candide.serve")
    text = (own / "page.html").read_text("utf-8")
    return text.replace("{{style}}", style).replace("{{script}}", (own / "page.js").read_text("utf-8"))


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else str(value)
