"""Formatting: how names, values and numbers are written, the same in every error, note and report."""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

_MAX_VALUE_LENGTH = 40  # characters of a value
_MAX_DIGITS = 10  # characters of a number
_MAX_PLAIN_INTEGER = 1e15  # larger numbers have an exponent
_MIN_DECIMAL_PROPORTION = 1e-7  # smaller ones have an exponent
_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")  # characters that reverse the direction of a line


def format_list(names: Sequence[object], max_items: int = 8) -> str:
    """The first names or values, quoted, and how many more there are: ``'a', 'b' and 2 more``."""
    rest = f" and {len(names) - max_items} more" if len(names) > max_items else ""
    return ", ".join(map(repr, names[:max_items])) + rest


def format_column(name: Any, max_items: int = 3) -> str:
    """A column's name, or the first columns of a group: ``(x, y)``."""
    if not isinstance(name, tuple):
        return str(name)
    rest = [f"and {len(name) - max_items} more"] if len(name) > max_items else []
    return f"({', '.join([*map(str, name[:max_items]), *rest])})"


def format_columns(names: Sequence[object], max_items: int = 3) -> str:
    """Columns, as the beginning of a sentence: ``columns 'a', 'b'``."""
    return f"column{'' if len(names) == 1 else 's'} {format_list(names, max_items)}"


def format_value(item: Any, max_length: int = _MAX_VALUE_LENGTH) -> str:
    """A value on one line, truncated; None is missing, a tuple several values."""
    if item is None:
        return "missing"
    if isinstance(item, str) and item != item.strip() and "\n" not in item:  # a space at an end would be invisible
        return truncate(repr(item), max_length)
    text = ", ".join(map(_format_scalar, item)) if isinstance(item, tuple) else _format_scalar(item)
    return truncate(" ".join(text.split()), max_length)


def format_label(item: Any) -> str:
    """A class or level; quoted if it is empty or has invisible spaces, such as at an end."""
    text = str(item)
    return text if not isinstance(item, str) or (text and text == " ".join(text.split())) else repr(text)


def _format_scalar(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_PLAIN_INTEGER:
        return str(int(value))
    text = str(value)
    return f"{value:.6g}" if isinstance(value, float) and len(text) > _MAX_DIGITS else text


def make_printable(text: str) -> str:
    """Text with a space for every control character except the ends of lines."""
    return text if text.isprintable() else "".join(" " if _is_control(letter) else letter for letter in text)


def strip_bidi_controls(text: str) -> str:
    """Text with a space for every character that reverses the direction of a line."""
    return _BIDI_CONTROLS.sub(" ", text)


def _is_control(letter: str) -> bool:
    is_bidi = bool(_BIDI_CONTROLS.match(letter))
    return is_bidi or (letter != "\n" and unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp"))


def truncate(text: str, max_length: int = _MAX_VALUE_LENGTH) -> str:
    return text if len(text) <= max_length else text[: max_length - 3] + "..."


def format_count(n: float, singular: str = "row", plural: str = "") -> str:
    """A number of things: ``2 classes``, ``rows of weight 1,712.7``."""
    if singular == "row" and n != round(n):
        return f"rows of weight {format_weight(n)}"
    return f"{n:,.10g} {singular if n == 1 else plural or singular + 's'}"


def format_weight(n: float) -> str:
    """The weight of rows, which is their number if each has weight 1."""
    return f"{n:,.10g}" if n == round(n) else f"{n:,.1f}" if abs(n) >= 10 else f"{n:.3g}"


def date_from_days(days: float) -> Any:
    """Days since 1970 as a date, with a time unless it is a whole day; the number, if there is no such date."""
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(days=days)
    except (OverflowError, ValueError):
        return days
    return moment.date() if days == int(days) else moment.replace(microsecond=0)


def format_parameter(name: str, x: float, is_date: bool = False) -> str:
    """A parameter of a column; in a column of dates a location is a date, and a scale a number of days."""
    if is_date and name in ("mean", "loc"):
        return str(date_from_days(float(math.floor(x)))) if math.isfinite(x) else format_number(x)
    return f"{format_number(x)} days" if is_date and name in ("sd", "scale") else format_number(x)


def format_number(x: float) -> str:
    """A number with four significant digits, or as many as it has before the point."""
    return f"{x:,.0f}" if 1e4 <= abs(x) < 1e9 else f"{x:.4g}"


class Column(NamedTuple):
    """A column of a table: its heading, an attribute or a function of a record, and the format of a value."""

    heading: str
    value: str | Callable[[Any], Any]
    format: str | Callable[[Any], str] = str
    is_text: bool = False  # left-aligned, and cut where space is short
    is_optional: bool = False  # left out where space is short
    is_required: bool = False  # left out last
    style: Callable[[Any], str] | None = None  # of a record: the style of its cell on a terminal

    def cell(self, record: Any) -> str:
        """The value of a record as text; None and NaN are blank."""
        value = getattr(record, self.value) if isinstance(self.value, str) else self.value(record)
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        return format(value, self.format) if isinstance(self.format, str) else self.format(value)


def table_rows(columns: Sequence[Column], records: Iterable[Any]) -> tuple[list[Column], list[list[str]]]:
    """The columns in which any record has a value, and a row of cells for each record."""
    rows = [[column.cell(record) for column in columns] for record in records]
    shown = [i for i in range(len(columns)) if i == 0 or not rows or any(row[i] for row in rows)]
    return [columns[i] for i in shown], [[row[i] for i in shown] for row in rows]


def table_lines(columns: Sequence[Column], records: Sequence[Any], limit: int) -> list[str]:
    """A table of the first records as lines of text, and how many more there are."""
    shown, rows = table_rows(columns, records[:limit])
    n_text = next((i for i, column in enumerate(shown) if i and not column.is_text), len(shown))
    rest = [f"... and {len(records) - limit:,} more"] if len(records) > limit else []
    return [*align_columns([[column.heading for column in shown], *rows], n_text), *rest]


def align_columns(rows: Sequence[Sequence[str]], n_text_columns: int = 1) -> list[str]:
    """Rows of cells as lines; the first columns are text, the others numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = "<" * n_text_columns + ">" * (len(widths) - n_text_columns)
    lines = ((f"{cell:{side}{w}}" for cell, side, w in zip(row, sides, widths, strict=True)) for row in rows)
    return ["  ".join(cells).rstrip() for cells in lines]


def format_log_odds(x: float, digits: int = 3) -> str:
    """Log-odds with their sign; what rounds to zero is positive."""
    return f"{round(x, digits) + 0.0:+.{digits}f}"


def format_percent(p: float) -> str:
    """A proportion as a percentage, with two significant digits of its distance from 0 or 100, or one decimal."""
    rest = 100 * min(p, 1 - p)
    if 0 < p < _MIN_DECIMAL_PROPORTION:
        return f"{100 * p:.2g}%"
    digits = max(1, 1 - math.floor(math.log10(rest))) if rest > 0 else 1
    return f"{f'{100 * p:.{digits}f}'.rstrip('0').rstrip('.')}%"


def format_probability(p: float, digits: int = 4) -> str:
    """A probability after "=", or after "<" or ">" where it would round to 0 or 1."""
    least = 10.0**-digits
    if p < least / 2:
        return f"< {least:.{digits}f}"
    return f"> {1 - least:.{digits}f}" if 1 - p < least / 2 else f"= {p:.{digits}f}"


def format_threshold(p: float) -> str:
    """A probability threshold, with enough digits to distinguish it from 1."""
    if p < 0.999 or p == 1:
        return f"{p:.4g}"
    return f"{p:.{math.ceil(-math.log10(1 - p)) + 1}f}".rstrip("0")


_FRAME = "display:inline-block;max-width:100%;overflow-x:auto;border:1px solid rgba(128,128,128,.4);border-radius:6px"
_CELL = "padding:.15em .7em;border:0;background:none;text-align:{};vertical-align:top;font-weight:{}"
_BAR = "display:inline-block;height:.7em;min-width:1px;border-radius:2px;width:{:.1f}em;background:{}"
_POSITIVE_COLOR, _NEGATIVE_COLOR = "#14897b", "#8d8178"  # visible on light and on dark
_MAX_BAR_EM = 7.0


def render_html_table(
    title: str, rows: Sequence[Sequence[str]], n_text_columns: int = 1, bars: Sequence[float] = (), note: str = ""
) -> str:
    """Rows of cells as a small table for a notebook: the header first, text columns, then numbers, and optional bars.

    Styles are inline and do not affect the page; cells are escaped.
    """
    from html import escape

    longest = max(map(abs, bars), default=0.0) or 1.0
    styles = [_BAR.format(_MAX_BAR_EM * abs(b) / longest, _POSITIVE_COLOR if b >= 0 else _NEGATIVE_COLOR) for b in bars]
    lines = []
    for i, row in enumerate(rows):
        tag, weight = ("th", 600) if i == 0 else ("td", 400)
        sides = ["left"] * n_text_columns + ["right"] * (len(row) - n_text_columns)
        cells = [
            f'<{tag} style="{_CELL.format(side, weight)}">{escape(cell)}</{tag}>'
            for cell, side in zip(row, sides, strict=True)
        ]
        if bars:
            bar = "" if i == 0 or i > len(styles) else f'<span style="{styles[i - 1]}"></span>'
            cells.append(f'<td style="{_CELL.format("left", 400)}">{bar}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    head = f'<div style="padding:.4em .7em;font-weight:600">{escape(title)}</div>'
    tail = f'<div style="padding:.2em .7em .5em;opacity:.75">{escape(note)}</div>' if note else ""
    table = f'<table style="border-collapse:collapse;margin:0;font-size:.92em">{"".join(lines)}</table>'
    return f'<div style="{_FRAME}">{head}{table}{tail}</div>'
