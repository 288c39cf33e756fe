"""Wording: how names, values and numbers are put into a sentence, the same in every error, remark and report.

>>> listing(["a", "b"]), listing(range(5), 3), plural(1, "row"), plural(2000, "row")
("'a', 'b'", '0, 1, 2 and 2 more', '1 row', '2,000 rows')
"""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

_LONG = 40  # letters of a value in print
_FIGURES = 10  # and those of a number
_TINY = 1e-7  # shares below it are written with an exponent
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")  # letters by which a line goes on from the right
_WHOLE = 1e15  # numbers from here on are written with an exponent


def listing(names: Sequence[object], most: int = 8) -> str:
    """The first of some names or values, quoted, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def column(name: Any, most: int = 3) -> str:
    """A column's name for a person; of a group of columns the first few.

    >>> column("age"), column(("x", "y")), column(tuple(range(784)))
    ('age', '(x, y)', '(0, 1, 2, and 781 more)')
    """
    if not isinstance(name, tuple):
        return str(name)
    more = [f"and {len(name) - most} more"] if len(name) > most else []
    return f"({', '.join([*map(str, name[:most]), *more])})"


def columns(names: Sequence[object], most: int = 3) -> str:
    """Some columns, as a sentence about them begins.

    >>> columns(["a"]), columns(["a", "b", "c", "d"])
    ("column 'a'", "columns 'a', 'b', 'c' and 1 more")
    """
    return f"column{'' if len(names) == 1 else 's'} {listing(names, most)}"


def value(one: Any, most: int = _LONG) -> str:
    """A value for a person, on one line and cut where it is long; None is missing, a tuple several values.

    >>> value(None), value("a  cook"), value((1.5, None)), value(51.0), value(1.5623976772929593), value("no ")
    ('missing', 'a cook', '1.5, missing', '51', '1.5624', "'no '")
    """
    if one is None:
        return "missing"
    if isinstance(one, str) and one != one.strip() and "\n" not in one:  # a blank at an end would not be seen
        return shortened(repr(one), most)
    text = ", ".join(map(_one, one)) if isinstance(one, tuple) else _one(one)
    return shortened(" ".join(text.split()), most)


def label(one: Any) -> str:
    """A class or level for a person; in quotes where it has blanks that are not seen, as at an end.

    >>> label("no"), label("no "), label("a  b"), label(""), label(3)
    ('no', "'no '", "'a  b'", "''", '3')
    """
    text = str(one)
    return text if not isinstance(one, str) or (text and text == " ".join(text.split())) else repr(text)


def _one(value: Any) -> str:
    """A value; a whole number without a point, one with very many figures in six."""
    if value is None:
        return "missing"
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    text = str(value)
    return f"{value:.6g}" if isinstance(value, float) and len(text) > _FIGURES else text


def printable(text: str) -> str:
    """Text that moves no cursor, changes no colour and turns no line round: what would is a space, ends of lines stay.

    >>> printable("red\\x1b[31m\\tsoil"), printable("a\\u202eb")
    ('red [31m soil', 'a b')
    """
    return text if text.isprintable() else "".join(" " if _moves(letter) else letter for letter in text)


def straight(text: str) -> str:
    """Text that turns no line round, as letters for languages that are written from the right can.

    >>> straight("a\\u202eb\\tc")
    'a b\\tc'
    """
    return _TURNS.sub(" ", text)


def _moves(letter: str) -> bool:
    return bool(_TURNS.match(letter)) or (letter != "\n" and unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp"))


def shortened(text: str, most: int = _LONG) -> str:
    """A text cut to so many letters.

    >>> shortened("a very long name", 9)
    'a very...'
    """
    return text if len(text) <= most else text[: most - 3] + "..."


def plural(n: float, what: str = "row", many: str = "") -> str:
    """A number of things in words.

    >>> plural(1712.747252), plural(2, "class", "classes")
    ('rows of weight 1,712.7', '2 classes')
    """
    if what == "row" and n != round(n):
        return f"rows of weight {weight(n)}"
    return f"{n:,.10g} {what if n == 1 else many or what + 's'}"


def weight(n: float) -> str:
    """The weight of rows, which is their number where each counts once.

    >>> weight(1712.747252), weight(1712.0), weight(0.0123)
    ('1,712.7', '1,712', '0.0123')
    """
    return f"{n:,.10g}" if n == round(n) else f"{n:,.1f}" if abs(n) >= 10 else f"{n:.3g}"


def date(days: float) -> Any:
    """Days since 1970 as a date, with a time where it is no whole day; the number, where there is no such date.

    >>> str(date(19782.0)), str(date(0.5)), date(1e12)
    ('2024-02-29', '1970-01-01 12:00:00', 1000000000000.0)
    """
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(days=days)
    except (OverflowError, ValueError):
        return days
    return moment.date() if days == int(days) else moment.replace(microsecond=0)


def figure(name: str, one: float, is_date: bool = False) -> str:
    """A figure of a column: of a column of dates a place among them is a date, and a distance so many days.

    >>> figure("mean", 19782.4, True), figure("sd", 30.25, True), figure("mean", 19782.4)
    ('2024-02-29', '30.25 days', '19,782')
    """
    if is_date and name in ("mean", "loc"):
        return str(date(float(math.floor(one)))) if math.isfinite(one) else number(one)
    return f"{number(one)} days" if is_date and name in ("sd", "scale") else number(one)


def number(one: float) -> str:
    """A number of four figures, or of as many as it has before the point.

    >>> number(0.00123456), number(24716.2), number(4006.21)
    ('0.001235', '24,716', '4006')
    """
    return f"{one:,.0f}" if 1e4 <= abs(one) < 1e9 else f"{one:.4g}"


def aligned(rows: Sequence[Sequence[str]], words: int = 1) -> list[str]:
    """Rows of cells as lines; the first columns are words, the others numbers.

    >>> aligned([["herb", "n"], ["sage", "12"], ["thyme", "3"]])
    ['herb    n', 'sage   12', 'thyme   3']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = "<" * words + ">" * (len(widths) - words)
    each = ((f"{cell:{side}{w}}" for cell, side, w in zip(row, sides, widths, strict=True)) for row in rows)
    return ["  ".join(cells).rstrip() for cells in each]


def nats(one: float, digits: int = 3) -> str:
    """What speaks for or against, with its sign; what rounds to nothing speaks for neither.

    >>> nats(0.1234), nats(-2.0, 2), nats(-0.0004), nats(-0.004, 2)
    ('+0.123', '-2.00', '+0.000', '+0.00')
    """
    return f"{round(one, digits) + 0.0:+.{digits}f}"


def percent(share: float) -> str:
    """A share as a percentage; how far it is from none or all is told to two figures, or to a tenth.

    >>> percent(0.5), percent(0.12345), percent(0.00331), percent(0.9996), percent(0.0), percent(2e-210)
    ('50%', '12.3%', '0.33%', '99.96%', '0%', '2e-208%')
    """
    rest = 100 * min(share, 1 - share)
    if 0 < share < _TINY:
        return f"{100 * share:.2g}%"
    digits = max(1, 1 - math.floor(math.log10(rest))) if rest > 0 else 1
    return f"{f'{100 * share:.{digits}f}'.rstrip('0').rstrip('.')}%"


def probability(p: float, digits: int = 4) -> str:
    """A probability after its sign: one that rounds to 0 or to 1 is not said to be that.

    >>> probability(0.87654), probability(1 - 1e-9), probability(1e-9, 2)
    ('= 0.8765', '> 0.9999', '< 0.01')
    """
    least = 10.0**-digits
    if p < least / 2:
        return f"< {least:.{digits}f}"
    return f"> {1 - least:.{digits}f}" if 1 - p < least / 2 else f"= {p:.{digits}f}"


def threshold(p: float) -> str:
    """A probability from which on something is done: with as many digits as tell it from 1.

    >>> threshold(0.23456), threshold(1 - 1.23e-7), threshold(1.0)
    ('0.2346', '0.99999988', '1')
    """
    from math import ceil, log10

    if p < 0.999 or p == 1:
        return f"{p:.4g}"
    return f"{p:.{ceil(-log10(1 - p)) + 1}f}".rstrip("0")


_FRAME = "display:inline-block;max-width:100%;overflow-x:auto;border:1px solid rgba(128,128,128,.4);border-radius:6px"
_CELL = "padding:.15em .7em;border:0;background:none;text-align:{};vertical-align:top;font-weight:{}"
_BAR = "display:inline-block;height:.7em;min-width:1px;border-radius:2px;width:{:.1f}em;background:{}"
_FOR, _AGAINST, _LONGEST = "#14897b", "#8d8178", 7.0  # colours seen on light and on dark, and the longest bar in em


def framed(
    title: str, rows: Sequence[Sequence[str]], words: int = 1, bars: Sequence[float] = (), note: str = ""
) -> str:
    """Rows of cells as a small table for a notebook: heads first, then words, then numbers, and a bar each if wanted.

    Its styles are its own and touch nothing else, and whatever the cells hold is shown as text.

    >>> shown = framed("Herbs & more", [["herb", "nats"], ["<sage>", "1.5"]], bars=[1.5])
    >>> "Herbs &amp; more" in shown, "&lt;sage&gt;" in shown, shown.count("<tr>")
    (True, True, 2)
    """
    from html import escape

    most = max(map(abs, bars), default=0.0) or 1.0
    lengths = [_BAR.format(_LONGEST * abs(b) / most, _FOR if b >= 0 else _AGAINST) for b in bars]
    lines = []
    for i, row in enumerate(rows):
        tag, weight = ("th", 600) if i == 0 else ("td", 400)
        sides = ["left"] * words + ["right"] * (len(row) - words)
        cells = [
            f'<{tag} style="{_CELL.format(side, weight)}">{escape(cell)}</{tag}>'
            for cell, side in zip(row, sides, strict=True)
        ]
        if bars:
            inside = "" if i == 0 or i > len(lengths) else f'<span style="{lengths[i - 1]}"></span>'
            cells.append(f'<td style="{_CELL.format("left", 400)}">{inside}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    head = f'<div style="padding:.4em .7em;font-weight:600">{escape(title)}</div>'
    tail = f'<div style="padding:.2em .7em .5em;opacity:.75">{escape(note)}</div>' if note else ""
    table = f'<table style="border-collapse:collapse;margin:0;font-size:.92em">{"".join(lines)}</table>'
    return f'<div style="{_FRAME}">{head}{table}{tail}</div>'
