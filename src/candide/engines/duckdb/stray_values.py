"""Values that keep a column of text from being read as numbers or dates, though most of its values are.

>>> stray_values(pa.array(["$53.20", "$41.75", "about 50"]))
StrayValues(values=['about 50'], kind='numbers', mixed=False)
>>> stray_values(pa.array(["13/10/2024", "14/10/2024", "tbd"]))
StrayValues(values=['tbd'], kind='dates', mixed=False)
>>> stray_values(pa.array(["cook", "smith", "judge"])) is None
True
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from candide import formatting
from candide.data.notes import Note
from candide.data.text_formats import parse_plain_numbers
from candide.engines.duckdb.text_formats import (
    DATE_PATTERNS,
    PLAIN_DATES,
    date_examples,
    number_patterns,
    without_missing,
)

_SHOWN = 3
_GLANCE = 64  # values that decide which formats are tried
_FEW = 0.1  # of distinct values are named one by one, where all are numbers in several formats


@dataclass(frozen=True)
class StrayValues:
    """The values that do not fit, and what the other values of the column are."""

    values: list[str]
    kind: str  # "numbers" or "dates"
    mixed: bool = False  # all are numbers, but in several units or formats, of which ``values`` has one each


def stray_values(column: Any) -> StrayValues | None:
    """The values of a text column that do not fit the number or date format that most of its distinct values have."""
    distinct = _strings(column).drop_null().unique()
    candidates, _ = without_missing(distinct)
    if 2 * _count(pc.match_substring_regex(candidates, r"\d")) <= len(candidates):
        return None
    masks = [(kind, pc.match_substring_regex(candidates, pattern)) for kind, pattern in _formats(candidates)]
    if not masks:
        return None
    kind, fits = max(masks, key=lambda each: _count(each[1]))
    others = candidates.filter(pc.invert(fits)).to_pylist()
    if kind == "numbers" and len(others) > _FEW * len(candidates):
        numeric = [mask for each, mask in masks if each == "numbers"]
        if _count(reduce(pc.or_, numeric)) == len(candidates):
            return StrayValues([candidates.filter(fits)[0].as_py(), others[0]], kind, mixed=True)
    if not others:  # only words for a missing value, among whole numbers that are codes
        others = sorted(set(distinct.to_pylist()) - set(candidates.to_pylist()))
    if not 0 < len(others) < _count(fits):
        return None
    if kind == "dates" and date_examples(column):  # dates in several formats have a note of their own
        return None
    return StrayValues(others, kind)


def stray_note(name: Any, column: Any, untyped: bool) -> list[Note]:
    """The note that names the values because of which a column is read as text; ``untyped``: ``na=`` can mend it."""
    found = stray_values(column)
    if found is None:
        return []
    values = formatting.format_list(found.values, _SHOWN)
    if found.mixed:
        text = f"column {name!r} is read as text because its numbers have different units or formats, such as {values}"
        return [Note("numbers-as-text", text, name, "to read it as numbers, write all of them in one unit and format")]
    na = " ".join(f"--na {shlex.quote(word)}" for word in found.values[:_SHOWN])
    way = f"mend these or pass {na} (na=[...])" if untyped else f"mend these and store it as {found.kind}"
    if untyped and any(map(parse_plain_numbers, [[word] for word in found.values])):  # --na is for every column
        way = "mend these"
    text = f"column {name!r} is read as text because of {values}"
    return [Note("numbers-as-text", text, name, f"to read it as {found.kind}, {way}")]


def _strings(column: Any) -> Any:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _count(mask: Any) -> int:
    return pc.sum(mask).as_py() or 0


def _formats(values: Any) -> Iterator[tuple[str, str]]:
    """The formats that one of the first values has: what it holds, and a pattern."""
    first = values.slice(0, _GLANCE)
    dates = [("dates", pattern) for pattern in (*PLAIN_DATES, *DATE_PATTERNS)]
    for kind, pattern in [*(("numbers", pattern) for pattern in number_patterns(values)), *dates]:
        if pc.any(pc.match_substring_regex(first, pattern)).as_py():
            yield kind, pattern
