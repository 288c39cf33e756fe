"""The page of a model: a template, a style and a script, in one file that asks for nothing from elsewhere.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> from candide.report.summary import summarize_page
>>> text = render_page(summarize_page(FittedModel(garden())))
>>> text[:15], "What tells the class" in text, "http://" in text.replace("http://www.w3.org/2000/svg", "")
('<!doctype html>', True, False)
"""

import os
import re
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from candide import __version__, formatting
from candide.export.javascript import scorer_source
from candide.files import check_output, write_atomically
from candide.report.html import curves, data, svg
from candide.report.summary.drift import describe_change
from candide.report.summary.page import PageSummary, TermSummary

PAGE_MARKER = b'<meta name="generator" content="Candide'
# Voices that are listed at first, the others by a script: as many as leave half of the room to all else.
_LISTED_TERMS = (100, 60, 30, 15)
# What a page may weigh: a mail takes it, and a phone draws it. Of few columns 200 kB, of a thousand a megabyte.
_MIN_PAGE_BYTES, MAX_PAGE_BYTES, _FEW_COLUMNS, _MANY_COLUMNS = 200_000, 1_000_000, 100, 1000
_MAX_MATRIX_CLASSES = 30  # classes whose confusions can be read in a matrix; of more they are a list
_AREA_METRICS = ("auc", "weighted_auc", "average_precision")
_HEIGHT = 800  # of a page in a notebook
_MAX_LISTED_CLASSES = 100  # that are listed with their shares


class PageText(str):
    """The text of a page, which a notebook shows as a page, and not as its source."""

    __slots__ = ()

    def __repr__(self) -> str:
        size = f"{len(self.encode()) / 1e3:.0f} kB"
        return f"<report of {size} in HTML: report(..., out='report.html') writes it to a file>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(str(self))}" style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'


def render_page(page: PageSummary, *, full: bool = False) -> str:
    """The page as text. ``whole``: with all that could be drawn, however large it grows."""
    labels = [formatting.format_value(one.label) for one in page.model.classes]
    most = max((one.importance or 0.0 for one in page.terms), default=0.0) or 1.0
    known: dict[str, Any] = {"classes": labels, "towards": page.default_class, "most": most, "curves": []}
    known |= data.case_data(page) if page.parameters else {}
    case = "" if page.parameters is None else data.pack_script(_scorer(), page.parameters)
    space = 1 << 60 if full else page_size_limit(page)
    for rows in _LISTED_TERMS:
        known |= {"more": data.term_rows(page.terms[rows:]), "voices": [None] * len(page.terms)}
        bare = len(_fill_template(page, known, rows, case).encode())
        if bare - len(case) < space / 2:
            break
    left = max(space - bare, 0)
    if len(labels) > _MAX_MATRIX_CLASSES:
        known["confusions"], known["rarer"] = data.confusion_data(page, left // 8)
    known["curves"] = curves.curve_points(page, left // 2)  # the rest is for voices
    left -= sum(len(data.script_json(known.get(name))) for name in ("confusions", "curves"))
    known["voices"], undrawn = data.term_data(page, left)
    return _fill_template(page, known, rows, case, undrawn)


def write_page(text: str, path: str | os.PathLike, *, force: bool = False) -> int:
    """Write a page whole or not at all, and give its size; over a file that is no page of Candide's only by force."""
    check_output(path, is_own_file=is_page, force=force)
    raw = text.encode()
    write_atomically(path, [raw])
    return len(raw)


def is_page(path: str) -> bool:
    """Whether a file is a page that Candide made, by the name of its maker in it."""
    with open(path, "rb") as file:
        return PAGE_MARKER in file.read(4096)


def page_size_limit(page: PageSummary) -> int:
    """Bytes that a page of so many columns may have; the words of a text, by which a case is scored, are columns."""
    words = sum(len(part.get("terms", ())) for part in (page.parameters or {}).get("parts", ()))
    some = (min(max(len(page.model.columns) + words, _FEW_COLUMNS), _MANY_COLUMNS) - _FEW_COLUMNS) / (
        _MANY_COLUMNS - _FEW_COLUMNS
    )
    return round(_MIN_PAGE_BYTES + some * (MAX_PAGE_BYTES - _MIN_PAGE_BYTES))


def _fill_template(page: PageSummary, known: dict[str, Any], rows: int, case: str, undrawn: int = 0) -> str:
    return _template().render(
        page=page,
        version=__version__,
        style=Markup(_minify(_read("page.css"))),
        script=Markup(_minify(_read("page.js"))),
        case=Markup(case),
        trial=Markup(_minify(_read("whatif.js"))),
        data=Markup(data.script_json(known)),
        left=undrawn,
        listed=page.terms[:rows],
        pictures=[draw_thumbnail(page, one) for one in page.terms[:rows]],
        most=known["most"],
        curves=curves.curve_figures(page),
        curved=len(list(filter(None, known["curves"]))),
        more_curves=_count_missing_curves(page, known),
        unknown=_metrics_without_interval(page),
        matrix=len(known["classes"]) <= _MAX_MATRIX_CLASSES,
        most_classes=_MAX_LISTED_CLASSES,
        counts=all(one.weight is not None for one in page.model.classes),
    )


def _count_missing_curves(page: PageSummary, known: dict[str, Any]) -> int:
    """Of how many classes there are curves, where the page has fewer."""
    every = {one.label for one in page.assessment.scores.curves if one.label is not None} if page.assessment else set()
    return len(every) if len(every) > len(list(filter(None, known["curves"]))) else 0


def _metrics_without_interval(page: PageSummary) -> str:
    """The metrics whose range is not known, where that of the accuracy is."""
    every = [] if page.assessment is None else page.assessment.scores.metrics
    there = {one.name: one.low == one.low for one in every}
    some = [name.replace("_", " ") for name in _AREA_METRICS if there.get("accuracy") and not there[name]]
    return ", ".join(some)


def _without_bidi_controls(value: Any) -> Any:
    """What a person has written, without letters that turn a line round."""
    return formatting.strip_bidi_controls(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _template() -> Any:
    from jinja2 import BaseLoader, Environment

    made = Environment(
        loader=BaseLoader(), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_without_bidi_controls
    )
    made.filters |= {
        "percent": formatting.format_percent,
        "value": formatting.format_value,
        "plural": formatting.format_count,
        "nats": formatting.format_log_odds,
    }
    made.filters |= {"how": describe_change}
    return made.from_string(_read("page.html"))


@cache
def _read(name: str) -> str:
    return files("candide.report.html").joinpath(name).read_text("utf-8")


@cache
def _scorer() -> str:
    """The scorer of exported models, as a script that leaves what it is asked by, and nothing else, behind."""
    alone = _minify(scorer_source()).replace("export function load", "function load")
    return f"globalThis.candide = {{ load: (() => {{\n{alone}\nreturn load;\n}})() }};"


def _minify(text: str) -> str:
    """A script or style without what is for its readers: indents, empty lines, comments on lines of their own."""
    text = re.sub(r"^\s*/\*\*.*?\*/\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def draw_thumbnail(page: PageSummary, term_summary: TermSummary) -> Markup:
    """A small picture of a voice, or its strongest words."""
    if term_summary.top_words:
        words = Markup(", ").join(term for term, _ in term_summary.top_words[page.default_class][:6])
        return Markup('<span class="words">{}</span>').format(words)
    if not term_summary.contributions:
        return Markup("")
    said, (edges, bars) = np.array(term_summary.contributions[page.default_class]), term_summary.histogram
    counts = np.array(bars) if len(bars) > 1 else None
    if term_summary.shape == "levels":
        return svg.draw_bars(said, term_summary.sentence)
    if term_summary.shape == "steps" and edges:
        return svg.draw_steps(
            np.array(term_summary.positions), said, edges[0], edges[-1], counts, term_summary.sentence
        )
    if term_summary.shape == "curve":
        return svg.draw_curve(np.array(term_summary.positions), said, counts, term_summary.sentence)
    if len(term_summary.names) != 2:
        return Markup("")
    shape = tuple(map(len, term_summary.names))
    met = np.array(term_summary.frequencies).reshape(shape) > 0 if term_summary.frequencies else None
    return svg.draw_heatmap(said.reshape(shape), met, term_summary.sentence)
