"""Matching: one source spells a label 1, another "1". What is read later means the same as what was counted before.

Text that spells a number, a truth or a date is that value, where the known ones are such values; and a number, a truth
or a date is its text, where all known are text. What spells nothing known keeps its place outside.

>>> match(["1", "2", "x"], Labels((0, 1)))
[1, 2, 'x']
>>> match([1, 1.0, True], Labels(("1", "true")))
['1', '1', 'true']
>>> match(["2024-02-29", "leap day"], Labels((dt.date(2024, 2, 28),)))
[datetime.date(2024, 2, 29), 'leap day']
>>> codes(Labels((0, 1)), ["1", "0", None, "x"]).tolist()
[1, 0, -1, 2]
"""

import datetime as dt
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.rows.labels import Labels, as_column, is_absent, is_arrow

_WHOLE = re.compile(r"(0|-?[1-9]\d{0,17})$")


def match(values: Iterable[Any], known: Labels) -> list[Any]:
    """Values in the spelling of known labels or levels."""
    spell, there = _speller(known), known.index
    return [value if value in there else spell(value, there) for value in values]


def read_levels(levels: list[Any]) -> dict[Any, Any]:
    """What levels counted as text stand for: whole numbers where all of them are plainly that.

    >>> read_levels(["10", "9"]), read_levels(["01", "2"])
    ({'10': 10, '9': 9}, {'01': '01', '2': '2'})
    """
    plain = all(isinstance(level, str) and _WHOLE.match(level) for level in levels)
    return {level: int(level) if plain else level for level in levels}


def codes(labels: Labels, column: Any) -> NDArray[np.intp]:
    """Codes of a column's values, however they are spelled: -1 where absent, ``len(labels)`` where there is none."""
    column = as_column(column)
    found = labels.encode(column)
    strange = np.flatnonzero(found == len(labels))
    if not len(strange) or not len(labels):
        return found
    there = column.take(strange) if is_arrow(column) else column[strange]
    odd = Labels.of(there)
    found = found.copy()
    found[strange] = labels.encode(_objects(match(odd.values, labels)))[odd.encode(there)]
    return found


def respelled(column: Any, known: Labels) -> NDArray:
    """The values of a column in the spelling of known ones, None where absent: an array of objects."""
    column = as_column(column)
    met = Labels.of(column)
    return _objects([*match(met.values, known), None])[met.encode(column)]


def _objects(values: list[Any]) -> NDArray:
    return np.fromiter(values, object, len(values))


def _speller(known: Labels) -> Callable[[Any, Any], Any]:
    kinds = set(map(type, known.values))
    if kinds == {str}:
        return _text
    if not kinds or str in kinds:
        spelled = {str(value): value for value in known.values}
        return lambda value, _: spelled.get(str(value), value)
    if kinds <= {dt.date, dt.datetime}:
        return _time if dt.datetime in kinds else _date
    return lambda value, there: _number(value, there, kinds) if isinstance(value, str) else value


def _text(value: Any, there: Any) -> Any:
    """The text of a value: the one that is known, if any is."""
    if isinstance(value, str) or is_absent(value):
        return value
    spellings = [str(value)]
    if isinstance(value, bool):
        spellings = [str(value).lower(), *spellings]
    elif isinstance(value, float) and value.is_integer():
        spellings.append(str(int(value)))
    return next((text for text in spellings if text in there), spellings[0])


def _date(value: Any, there: Any) -> Any:
    moment = _moment(value)
    return value if moment is None else moment.date()


def _time(value: Any, there: Any) -> Any:
    return _moment(value) or value


def _moment(value: Any) -> dt.datetime | None:
    if isinstance(value, dt.date):
        return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    try:
        return dt.datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _number(text: str, there: Any, kinds: set[type]) -> Any:
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _WHOLE.match(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return text
    return number if float in kinds or number in there else text
