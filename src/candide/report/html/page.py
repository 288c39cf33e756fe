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
from markupsafe import Markup

from candide import __version__, wording
from candide.export.javascript import scorer
from candide.files import check_output, write_whole
from candide.report.html import curves, data, svg
from candide.report.summary.page import PageSummary, VoiceSummary

MARK = b'<meta name="generator" content="Candide'
# Voices that are listed at first, the others by a script: as many as leave half of the room to all else.
_ROWS = (100, 60, 30, 15)
# What a page may weigh: a mail takes it, and a phone draws it. Of few columns 200 kB, of a thousand a megabyte.
_LEAST, _MOST, _FEW, _MANY = 200_000, 1_000_000, 100, 1000


def render(page: PageSummary, *, whole: bool = False) -> str:
    """The page as text. ``whole``: with all that could be drawn, however large it grows."""
    labels = [wording.value(one.label) for one in page.model.classes]
    most = max((one.strength or 0.0 for one in page.voices), default=0.0) or 1.0
    known = {"classes": labels, "towards": page.towards, "most": most, "curves": curves.known(page)}
    known |= data.case(page) if page.parameters else {}
    space = 1 << 60 if whole else room(page)
    for rows in _ROWS:
        known |= {"more": data.listed(page.voices[rows:]), "voices": [None] * len(page.voices)}
        bare = len(_rendered(page, known, rows, left=len(page.voices)).encode())
        if bare - len(page.parameters or "") < space / 2:
            break
    known["voices"], left = data.voices(page, space - bare)
    return _rendered(page, known, rows, left)


def fits(page: PageSummary, text: str) -> bool:
    """Whether a page is no larger than it may be."""
    return len(text.encode()) <= room(page)


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
    """Bytes that a page of so many columns may have."""
    some = (min(max(len(page.model.columns), _FEW), _MANY) - _FEW) / (_MANY - _FEW)
    return round(_LEAST + some * (_MOST - _LEAST))


def _rendered(page: PageSummary, known: dict[str, Any], rows: int, left: int) -> str:
    return _template().render(
        page=page,
        version=__version__,
        style=Markup(_slim(_read("page.css"))),
        script=Markup(_slim(_read("page.js"))),
        case=None if page.parameters is None else Markup(data.packed(_scorer(), page.parameters)),
        trial=Markup(_slim(_read("whatif.js"))),
        data=Markup(data.script_json(known)),
        left=left,
        listed=page.voices[:rows],
        pictures=[small(page, one) for one in page.voices[:rows]],
        most=known["most"],
        curves=curves.figures(page),
    )


@cache
def _template() -> Any:
    from jinja2 import BaseLoader, Environment

    made = Environment(loader=BaseLoader(), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"percent": wording.percent, "value": wording.value, "plural": wording.plural, "nats": wording.nats}
    made.filters |= {"number": wording.number}
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
