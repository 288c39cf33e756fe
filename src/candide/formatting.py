"""Formatting: how names, values and numbers are written, the same in every error, note and report.

>>> format_list(["a", "b"]), format_list(range(5), 3), format_count(1, "row"), format_count(2000, "row")
("'a', 'b'", '0, 1, 2 and 2 more', '1 row', '2,000 rows')
"""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

_MAX_VALUE_LENGTH = 40  # letters of a value in print
_MAX_DIGITS = 10  # and those of a number
_MIN_DECIMAL_SHARE = 1e-7  # proportions below it are written with an exponent
_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")  # letters by which a line goes on from the right
_MAX_PLAIN_INTEGER = 1e15  # numbers from here on are written with an exponent


def format_list(names: Sequence[object], max_items: int = 8) -> str:
    """The first of some names or values, quoted, and how many more there are."""
    more = f" and {len(names) - max_items} more" if len(names) > max_items else ""
    return ", ".join(map(repr, names[:max_items])) + more


def format_column(name: Any, max_items: int = 3) -> str:
    """A column's name for a person; of a group of columns the first few.

    >>> format_column("age"), format_column(("x", "y")), format_column(tuple(range(784)))
    ('age', '(x, y)', '(0, 1, 2, and 781 more)')
    """
    if not isinstance(name, tuple):
        return str(name)
    more = [f"and {len(name) - max_items} more"] if len(name) > max_items else []
    return f"({', '.join([*map(str, name[:max_items]), *more])})"


def format_columns(names: Sequence[object], max_items: int = 3) -> str:
    """Some columns, as a sentence about them begins.

    >>> format_columns(["a"]), format_columns(["a", "b", "c", "d"])
    ("column 'a'", "columns 'a', 'b', 'c' and 1 more")
    """
    return f"column{'' if len(names) == 1 else 's'} {format_list(names, max_items)}"


def format_value(item: Any, max_length: int = _MAX_VALUE_LENGTH) -> str:
    """A value for a person, on one line and cut where it is long; None is missing, a tuple several values.

    >>> (
    ...     format_value(None),
    ...     format_value("a  cook"),
    ...     format_value((1.5, None)),
    ...     format_value(51.0),
    ...     format_value(1.5623976772929593),
    ...     format_value("no "),
    ... )
    ('missing', 'a cook', '1.5, missing', '51', '1.5624', "'no '")
    """
    if item is None:
        return "missing"
    if isinstance(item, str) and item != item.strip() and "\n" not in item:  # a blank at an end would not be seen
        return truncate(repr(item), max_length)
    text = ", ".join(map(_format_scalar, item)) if isinstance(item, tuple) else _format_scalar(item)
    return truncate(" ".join(text.split()), max_length)


def format_label(item: Any) -> str:
    """A class or level for a person; in quotes where it has blanks that are not seen, as at an end.

    >>> format_label("no"), format_label("no "), format_label("a  b"), format_label(""), format_label(3)
    ('no', "'no '", "'a  b'", "''", '3')
    """
    text = str(item)
    return text if not isinstance(item, str) or (text and text == " ".join(text.split())) else repr(text)


def _format_scalar(value: Any) -> str:
    """A value; a whole number without a point, one with very many figures in six."""
    if value is None:
        return "missing"
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_PLAIN_INTEGER:
        return str(int(value))
    text = str(value)
    return f"{value:.6g}" if isinstance(value, float) and len(text) > _MAX_DIGITS else text


def make_printable(text: str) -> str:
    """Text that moves no cursor, changes no colour and turns no line round: what would is a space, ends of lines stay.

    >>> make_printable("red\\x1b[31m\\tsoil"), make_printable("a\\u202eb")
    ('red [31m soil', 'a b')
    """
    return text if text.isprintable() else "".join(" " if _is_control(letter) else letter for letter in text)


def strip_bidi_controls(text: str) -> str:
    """Text that turns no line round, as letters for languages that are written from the right can.

    >>> strip_bidi_controls("a\\u202eb\\tc")
    'a b\\tc'
    """
    return _BIDI_CONTROLS.sub(" ", text)


def _is_control(letter: str) -> bool:
    return bool(_BIDI_CONTROLS.match(letter)) or (
        letter != "\n" and unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp")
    )


def truncate(text: str, max_length: int = _MAX_VALUE_LENGTH) -> str:
    """A text cut to so many letters.

    >>> truncate("a very long name", 9)
    'a very...'
    """
    return text if len(text) <= max_length else text[: max_length - 3] + "..."


def format_count(n: float, singular: str = "row", plural: str = "") -> str:
    """A number of things in words.

    >>> format_count(1712.747252), format_count(2, "class", "classes")
    ('rows of weight 1,712.7', '2 classes')
    """
    if singular == "row" and n != round(n):
        return f"rows of weight {format_weight(n)}"
    return f"{n:,.10g} {singular if n == 1 else plural or singular + 's'}"


def format_weight(n: float) -> str:
    """The weight of rows, which is their number where each counts once.

    >>> format_weight(1712.747252), format_weight(1712.0), format_weight(0.0123)
    ('1,712.7', '1,712', '0.0123')
    """
    return f"{n:,.10g}" if n == round(n) else f"{n:,.1f}" if abs(n) >= 10 else f"{n:.3g}"


def date_from_days(days: float) -> Any:
    """Days since 1970 as a date, with a time unless it is a whole day; the number, where there is no such date.

    >>> str(date_from_days(19782.0)), str(date_from_days(0.5)), date_from_days(1e12)
    ('2024-02-29', '1970-01-01 12:00:00', 1000000000000.0)
    """
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(days=days)
    except (OverflowError, ValueError):
        return days
    return moment.date() if days == int(days) else moment.replace(microsecond=0)


def format_parameter(name: str, x: float, is_date: bool = False) -> str:
    """A figure of a column: of a column of dates a place among them is a date, and a distance so many days.

    >>> format_parameter("mean", 19782.4, True), format_parameter("sd", 30.25, True), format_parameter("mean", 19782.4)
    ('2024-02-29', '30.25 days', '19,782')
    """
    if is_date and name in ("mean", "loc"):
        return str(date_from_days(float(math.floor(x)))) if math.isfinite(x) else format_number(x)
    return f"{format_number(x)} days" if is_date and name in ("sd", "scale") else format_number(x)


def format_number(x: float) -> str:
    """A number of four figures, or of as many as it has before the point.

    >>> format_number(0.00123456), format_number(24716.2), format_number(4006.21)
    ('0.001235', '24,716', '4006')
    """
    return f"{x:,.0f}" if 1e4 <= abs(x) < 1e9 else f"{x:.4g}"


class Column(NamedTuple):
    """A column of a table for people: its heading, an attribute or a function of a record, and the format of a value.

    >>> Column("share", "imag", ".1%").cell(0.25j), Column("rows", lambda z: z.real, format_count).cell(3 + 0j)
    ('25.0%', '3 rows')
    """

    heading: str
    value: str | Callable[[Any], Any]
    format: str | Callable[[Any], str] = str
    is_text: bool = False  # aligned to the left, and cut where space is short
    is_optional: bool = False  # left out where space is short
    is_required: bool = False  # left out last
    style: Callable[[Any], str] | None = None  # of a record: the style of its cell on a terminal

    def cell(self, record: Any) -> str:
        """Return the value of a record as text; None and NaN are blank."""
        value = getattr(record, self.value) if isinstance(self.value, str) else self.value(record)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return format(value, self.format) if isinstance(self.format, str) else self.format(value)


def table_rows(columns: Sequence[Column], records: Iterable[Any]) -> tuple[list[Column], list[list[str]]]:
    """Return the columns in which some record has a value, and a row of cells for each record."""
    rows = [[column.cell(record) for column in columns] for record in records]
    shown = [i for i in range(len(columns)) if i == 0 or not rows or any(row[i] for row in rows)]
    return [columns[i] for i in shown], [[row[i] for i in shown] for row in rows]


def table_lines(columns: Sequence[Column], records: Sequence[Any], limit: int) -> list[str]:
    """Return a table of the first records as lines of text, and how many more there are."""
    shown, rows = table_rows(columns, records[:limit])
    n_text = next((i for i, column in enumerate(shown) if i and not column.is_text), len(shown))
    more = [f"... and {len(records) - limit:,} more"] if len(records) > limit else []
    return [*align_columns([[column.heading for column in shown], *rows], n_text), *more]


def align_columns(rows: Sequence[Sequence[str]], n_text_columns: int = 1) -> list[str]:
    """Rows of cells as lines; the first columns are words, the others numbers.

    >>> align_columns([["herb", "n"], ["sage", "12"], ["thyme", "3"]])
    ['herb    n', 'sage   12', 'thyme   3']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = "<" * n_text_columns + ">" * (len(widths) - n_text_columns)
    each = ((f"{cell:{side}{w}}" for cell, side, w in zip(row, sides, widths, strict=True)) for row in rows)
    return ["  ".join(cells).rstrip() for cells in each]


def format_log_odds(x: float, digits: int = 3) -> str:
    """Log-odds with their sign; what rounds to zero is positive.

    >>> format_log_odds(0.1234), format_log_odds(-2.0, 2), format_log_odds(-0.0004), format_log_odds(-0.004, 2)
    ('+0.123', '-2.00', '+0.000', '+0.00')
    """
    return f"{round(x, digits) + 0.0:+.{digits}f}"


def format_percent(share: float) -> str:
    """A proportion as a percentage, with two significant figures of its distance from 0 or 100, or one decimal.

    >>> [format_percent(p) for p in (0.5, 0.12345, 0.00331, 0.9996, 0.0, 2e-210)]
    ['50%', '12.3%', '0.33%', '99.96%', '0%', '2e-208%']
    """
    rest = 100 * min(share, 1 - share)
    if 0 < share < _MIN_DECIMAL_SHARE:
        return f"{100 * share:.2g}%"
    digits = max(1, 1 - math.floor(math.log10(rest))) if rest > 0 else 1
    return f"{f'{100 * share:.{digits}f}'.rstrip('0').rstrip('.')}%"


def format_probability(p: float, digits: int = 4) -> str:
    """A probability after "=", or after "<" or ">" where it would round to 0 or 1.

    >>> format_probability(0.87654), format_probability(1 - 1e-9), format_probability(1e-9, 2)
    ('= 0.8765', '> 0.9999', '< 0.01')
    """
    least = 10.0**-digits
    if p < least / 2:
        return f"< {least:.{digits}f}"
    return f"> {1 - least:.{digits}f}" if 1 - p < least / 2 else f"= {p:.{digits}f}"


def format_threshold(p: float) -> str:
    """A probability threshold, with as many digits as distinguish it from 1.

    >>> format_threshold(0.23456), format_threshold(1 - 1.23e-7), format_threshold(1.0)
    ('0.2346', '0.99999988', '1')
    """
    from math import ceil, log10

    if p < 0.999 or p == 1:
        return f"{p:.4g}"
    return f"{p:.{ceil(-log10(1 - p)) + 1}f}".rstrip("0")


_FRAME = "display:inline-block;max-width:100%;overflow-x:auto;border:1px solid rgba(128,128,128,.4);border-radius:6px"
_CELL = "padding:.15em .7em;border:0;background:none;text-align:{};vertical-align:top;font-weight:{}"
_BAR = "display:inline-block;height:.7em;min-width:1px;border-radius:2px;width:{:.1f}em;background:{}"
_POSITIVE_COLOR, _NEGATIVE_COLOR = "#14897b", "#8d8178"  # visible on light and on dark
_MAX_BAR_EM = 7.0


def render_html_table(
    title: str, rows: Sequence[Sequence[str]], n_text_columns: int = 1, bars: Sequence[float] = (), note: str = ""
) -> str:
    """Rows of cells as a small table for a notebook: the header first, text columns, then numbers, and optional bars.

    Its styles are its own and touch nothing else, and whatever the cells hold is shown as text.

    >>> shown = render_html_table("Herbs & more", [["herb", "nats"], ["<sage>", "1.5"]], bars=[1.5])
    >>> "Herbs &amp; more" in shown, "&lt;sage&gt;" in shown, shown.count("<tr>")
    (True, True, 2)
    """
    from html import escape

    most = max(map(abs, bars), default=0.0) or 1.0
    lengths = [_BAR.format(_MAX_BAR_EM * abs(b) / most, _POSITIVE_COLOR if b >= 0 else _NEGATIVE_COLOR) for b in bars]
    lines = []
    for i, row in enumerate(rows):
        tag, weight = ("th", 600) if i == 0 else ("td", 400)
        sides = ["left"] * n_text_columns + ["right"] * (len(row) - n_text_columns)
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
