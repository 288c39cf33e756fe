"""The page of a model: a template, a style and a script, in one file that asks for nothing from elsewhere.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> from candide.report.summary import of_page
>>> text = render(of_page(Fitted(garden())))
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

from candide import __version__, wording
from candide.export.javascript import scorer
from candide.files import check_output, write_whole
from candide.report.html import curves, data, svg
from candide.report.summary.drift import how
from candide.report.summary.page import PageSummary, VoiceSummary

MARK = b'<meta name="generator" content="Candide'
# Voices that are listed at first, the others by a script: as many as leave half of the room to all else.
_ROWS = (100, 60, 30, 15)
# What a page may weigh: a mail takes it, and a phone draws it. Of few columns 200 kB, of a thousand a megabyte.
_LEAST, MOST, _FEW, _MANY = 200_000, 1_000_000, 100, 1000
_MATRIX = 30  # classes whose confusions can be read in a matrix; of more they are a list
_AREAS = ("auc", "weighted_auc", "average_precision")
_HEIGHT = 800  # of a page in a notebook
_CLASSES = 100  # that are listed with their shares


class PageText(str):
    """The text of a page, which a notebook shows as a page, and not as its source."""

    __slots__ = ()

    def __repr__(self) -> str:
        size = f"{len(self.encode()) / 1e3:.0f} kB"
        return f"<report of {size} in HTML: report(..., out='report.html') writes it to a file>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(str(self))}" style="width: 100%; height: {_HEIGHT}px; border: 0"></iframe>'


def render(page: PageSummary, *, whole: bool = False) -> str:
    """The page as text. ``whole``: with all that could be drawn, however large it grows."""
    labels = [wording.value(one.label) for one in page.model.classes]
    most = max((one.strength or 0.0 for one in page.voices), default=0.0) or 1.0
    known: dict[str, Any] = {"classes": labels, "towards": page.towards, "most": most, "curves": []}
    known |= data.case(page) if page.parameters else {}
    case = "" if page.parameters is None else data.packed(_scorer(), page.parameters)
    space = 1 << 60 if whole else room(page)
    for rows in _ROWS:
        known |= {"more": data.listed(page.voices[rows:]), "voices": [None] * len(page.voices)}
        bare = len(_rendered(page, known, rows, case).encode())
        if bare - len(case) < space / 2:
            break
    left = max(space - bare, 0)
    if len(labels) > _MATRIX:
        known["confusions"], known["rarer"] = data.confusions(page, left // 8)
    known["curves"] = curves.known(page, left // 2)  # the rest is for voices
    left -= sum(len(data.script_json(known.get(name))) for name in ("confusions", "curves"))
    known["voices"], undrawn = data.voices(page, left)
    return _rendered(page, known, rows, case, undrawn)


def write(text: str, path: str | os.PathLike, *, force: bool = False) -> int:
    """Write a page whole or not at all, and give its size; over a file that is no page of Candide's only by force."""
    check_output(path, ours=is_page, force=force)
    raw = text.encode()
    write_whole(path, [raw])
    return len(raw)


def is_page(path: str) -> bool:
    """Whether a file is a page that Candide made, by the name of its maker in it."""
    with open(path, "rb") as file:
        return MARK in file.read(4096)


def room(page: PageSummary) -> int:
    """Bytes that a page of so many columns may have; the words of a text, by which a case is scored, are columns."""
    words = sum(len(part.get("terms", ())) for part in (page.parameters or {}).get("parts", ()))
    some = (min(max(len(page.model.columns) + words, _FEW), _MANY) - _FEW) / (_MANY - _FEW)
    return round(_LEAST + some * (MOST - _LEAST))


def _rendered(page: PageSummary, known: dict[str, Any], rows: int, case: str, undrawn: int = 0) -> str:
    return _template().render(
        page=page,
        version=__version__,
        style=Markup(_slim(_read("page.css"))),
        script=Markup(_slim(_read("page.js"))),
        case=Markup(case),
        trial=Markup(_slim(_read("whatif.js"))),
        data=Markup(data.script_json(known)),
        left=undrawn,
        listed=page.voices[:rows],
        pictures=[small(page, one) for one in page.voices[:rows]],
        most=known["most"],
        curves=curves.figures(page),
        curved=len(list(filter(None, known["curves"]))),
        more_curves=_other_curves(page, known),
        unknown=_without_range(page),
        matrix=len(known["classes"]) <= _MATRIX,
        most_classes=_CLASSES,
        counts=all(one.weight is not None for one in page.model.classes),
    )


def _other_curves(page: PageSummary, known: dict[str, Any]) -> int:
    """Of how many classes there are curves, where the page has fewer."""
    every = {one.label for one in page.verdict.scores.curves if one.label is not None} if page.verdict else set()
    return len(every) if len(every) > len(list(filter(None, known["curves"]))) else 0


def _without_range(page: PageSummary) -> str:
    """The metrics whose range is not known, where that of the accuracy is."""
    every = [] if page.verdict is None else page.verdict.scores.metrics
    there = {one.name: one.low == one.low for one in every}
    some = [name.replace("_", " ") for name in _AREAS if there.get("accuracy") and not there[name]]
    return ", ".join(some)


def _shown(value: Any) -> Any:
    """What a person has written, without letters that turn a line round."""
    return wording.straight(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _template() -> Any:
    from jinja2 import BaseLoader, Environment

    made = Environment(loader=BaseLoader(), autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown)
    made.filters |= {"percent": wording.percent, "value": wording.value, "plural": wording.plural, "nats": wording.nats}
    made.filters |= {"how": how}
    return made.from_string(_read("page.html"))


@cache
def _read(name: str) -> str:
    return files("candide.report.html").joinpath(name).read_text("utf-8")


@cache
def _scorer() -> str:
    """The scorer of exported models, as a script that leaves what it is asked by, and nothing else, behind."""
    alone = _slim(scorer()).replace("export function load", "function load")
    return f"globalThis.candide = {{ load: (() => {{\n{alone}\nreturn load;\n}})() }};"


def _slim(text: str) -> str:
    """A script or style without what is for its readers: indents, empty lines, comments on lines of their own."""
    text = re.sub(r"^\s*/\*\*.*?\*/\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def small(page: PageSummary, one: VoiceSummary) -> Markup:
    """A small picture of a voice, or its strongest words."""
    if one.terms:
        words = Markup(", ").join(term for term, _ in one.terms[page.towards][:6])
        return Markup('<span class="words">{}</span>').format(words)
    if not one.said:
        return Markup("")
    said, (edges, bars) = np.array(one.said[page.towards]), one.bars
    counts = np.array(bars) if len(bars) > 1 else None
    if one.shape == "levels":
        return svg.bars(said, one.sentence)
    if one.shape == "steps" and edges:
        return svg.steps(np.array(one.at), said, edges[0], edges[-1], counts, one.sentence)
    if one.shape == "curve":
        return svg.curve(np.array(one.at), said, counts, one.sentence)
    if len(one.names) != 2:
        return Markup("")
    shape = tuple(map(len, one.names))
    met = np.array(one.often).reshape(shape) > 0 if one.often else None
    return svg.heat(said.reshape(shape), met, one.sentence)
