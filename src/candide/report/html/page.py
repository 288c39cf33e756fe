"""The report page: a template, a style and a script, in one file that loads nothing else."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from candide import __version__, formatting
from candide.export.parameters import pack_json
from candide.export.targets import javascript_scorer
from candide.report.html import charts
from candide.report.summary.monitoring import describe_change
from candide.report.summary.page import PageSummary, TermSummary

PAGE_MARKER = b'<meta name="generator" content="Candide'
# How many terms are listed without the script: as many as leave half of the page to everything else.
_LISTED_TERMS = (100, 60, 30, 15)
# The size of a page that mail accepts and a phone draws: 250 kB with few columns, a megabyte with a thousand.
_MIN_PAGE_BYTES, MAX_PAGE_BYTES, _FEW_COLUMNS, _MANY_COLUMNS = 250_000, 1_000_000, 100, 1000
_MAX_MATRIX_CLASSES = 30  # classes of a confusion matrix; with more the confusions are a list
_AREA_METRICS = ("auc", "weighted_auc", "average_precision")
_HEIGHT = 800  # pixels of a page in a notebook
_MAX_LISTED_CLASSES = 100  # classes that are listed with their proportions


class PageText(str):
    """The text of a page, which a notebook shows as a page instead of its source."""

    __slots__ = ()

    def __repr__(self) -> str:
        size = f"{len(self.encode()) / 1e3:.0f} kB"
        return f"<report of {size} in HTML: report(..., out='report.html') writes it to a file>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(str(self))}" style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'


def render_page(page: PageSummary, *, full: bool = False) -> str:
    """Return the page as text; ``full`` draws every chart, however large the page grows."""
    labels = [formatting.format_value(row.label) for row in page.model.classes]
    most = max((term.importance or 0.0 for term in page.terms), default=0.0) or 1.0
    known: dict[str, Any] = {"classes": labels, "positive": page.default_class, "most": most, "curves": []}
    known |= charts.whatif_data(page) if page.parameters else {}
    parameters = "" if page.parameters is None else pack_json(page.parameters)
    max_bytes = 1 << 60 if full else page_size_limit(page)
    for n_listed in _LISTED_TERMS:
        known |= {"more": charts.term_rows(page.terms[n_listed:]), "terms": [None] * len(page.terms)}
        bare = len(_fill_template(page, known, n_listed, parameters).encode())
        if bare - len(parameters) < max_bytes / 2:
            break
    left = max(max_bytes - bare, 0)
    if len(labels) > _MAX_MATRIX_CLASSES:
        known["confusions"], known["rarer"] = charts.confusion_data(page, left // 8)
    known["curves"] = charts.curve_data(page, left // 2)  # the rest is for terms
    left -= sum(len(charts.script_json(known.get(name))) for name in ("confusions", "curves"))
    known["terms"], n_undrawn = charts.term_data(page, left)
    return _fill_template(page, known, n_listed, parameters, n_undrawn)


def is_page(path: str) -> bool:
    with open(path, "rb") as file:
        return PAGE_MARKER in file.read(4096)


def page_size_limit(page: PageSummary) -> int:
    """Return how many bytes a page with so many columns may have; the words of a text model count as columns."""
    words = sum(len(part.get("tokens", ())) for part in (page.parameters or {}).get("parts", ()))
    columns = min(max(len(page.model.columns) + words, _FEW_COLUMNS), _MANY_COLUMNS)
    part = (columns - _FEW_COLUMNS) / (_MANY_COLUMNS - _FEW_COLUMNS)
    return round(_MIN_PAGE_BYTES + part * (MAX_PAGE_BYTES - _MIN_PAGE_BYTES))


def _fill_template(page: PageSummary, known: dict[str, Any], n_listed: int, parameters: str, n_undrawn: int = 0) -> str:
    curves = page.assessment.scores.curves if page.assessment else ()
    with_curves = {curve.label for curve in curves if curve.label is not None}
    n_curves = len(list(filter(None, known["curves"])))
    metrics = {} if page.assessment is None else page.assessment.scores.metrics
    has_interval = {name: metric.low == metric.low for name, metric in metrics.items()}
    unknown = [name for name in _AREA_METRICS if has_interval.get("accuracy") and not has_interval[name]]
    return _template().render(
        page=page,
        version=__version__,
        style=Markup(_minify(_read("page.css"))),
        script=Markup(_minify(_read("page.js"))),
        parameters=Markup(parameters),
        scorer=Markup(_scorer()) if parameters else "",
        whatif=Markup(_minify(_read("whatif.js"))),
        data=Markup(charts.script_json(known)),
        left=n_undrawn,
        listed=page.terms[:n_listed],
        thumbnails=[draw_thumbnail(page, term) for term in page.terms[:n_listed]],
        most=known["most"],
        curves=charts.curve_figures(page),
        curved=n_curves,
        more_curves=len(with_curves) if len(with_curves) > n_curves else 0,
        unknown=", ".join(name.replace("_", " ") for name in unknown),  # metrics without an interval
        matrix=len(known["classes"]) <= _MAX_MATRIX_CLASSES,
        most_classes=_MAX_LISTED_CLASSES,
        counts=all(row.weight is not None for row in page.model.classes),
    )


def _finalize(value: Any) -> Any:
    """Return text from the data without characters that reverse the direction of a line."""
    return formatting.strip_bidi_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _template() -> Any:
    from jinja2 import BaseLoader, Environment

    how: Any = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True, "finalize": _finalize}
    environment = Environment(loader=BaseLoader(), **how)
    environment.filters |= {
        "percent": formatting.format_percent,
        "value": formatting.format_value,
        "plural": formatting.format_count,
        "log_odds": formatting.format_log_odds,
        "change": describe_change,
    }
    return environment.from_string(_read("page.html"))


@cache
def _read(name: str) -> str:
    return files("candide.report.html").joinpath(name).read_text("utf-8")


@cache
def _scorer() -> str:
    """Return the scorer of exported models as a script that defines only ``candide.load``."""
    source = _minify(javascript_scorer()).replace("export function load", "function load")
    return f"globalThis.candide = {{ load: (() => {{\n{source}\nreturn load;\n}})() }};"


def _minify(text: str) -> str:
    """Return a script or style without indents, empty lines and comments on lines of their own."""
    text = re.sub(r"^\s*/\*\*.*?\*/\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def draw_thumbnail(page: PageSummary, term: TermSummary) -> Markup:
    """Return a small chart of a term, or its strongest words."""
    if term.top_words:
        words = Markup(", ").join(word for word, _ in term.top_words[page.default_class][:6])
        return Markup('<span class="words">{}</span>').format(words)
    if not term.contributions:
        return Markup("")
    values, (edges, bars) = np.array(term.contributions[page.default_class]), term.histogram
    counts = np.array(bars) if len(bars) > 1 else None
    if term.shape == "levels":
        return charts.draw_bars(values, term.sentence)
    if term.shape == "steps" and edges:
        return charts.draw_steps(np.array(term.positions), values, edges[0], edges[-1], counts, term.sentence)
    if term.shape == "curve":
        return charts.draw_curve(np.array(term.positions), values, counts, term.sentence)
    if len(term.names) != 2:
        return Markup("")
    shape = tuple(map(len, term.names))
    is_seen = np.array(term.frequencies).reshape(shape) > 0 if term.frequencies else None
    return charts.draw_heatmap(values.reshape(shape), is_seen, term.sentence)
