"""Match values across sources: one has a value as 1, another as "1". Later rows mean the same as the rows fitted.

A value is the level that equals it. Where there is none, text is the number, truth, date, time of day or duration that
it spells, if that is a level; and such a value is the text that spells it, if one does. Text and text are the same only
letter by letter. Booleans are the levels ``yes`` and ``no``, and other pairs of such words. What is no level keeps its
place outside. This holds for levels and classes, through every door.

>>> match_codes(Labels((0, 1)), ["1", "0", "1.0", None, "x"]).tolist()
[1, 0, 1, -1, 2]
>>> (
...     match_codes(Labels(("1", "1.5", "true")), [1.0, 1.5, 2]).tolist(),
...     match_codes(Labels(("1", "true")), [True]).tolist(),
... )
([0, 1, 3], [1])
>>> (
...     match_codes(Labels(("no", "yes")), [True, False]).tolist(),
...     match_codes(Labels((False, True)), ["yes", "No"]).tolist(),
... )
([1, 0], [1, 0])
>>> match_values(["1", "7", "x"], Labels((0, 1))), match_values([7, True], Labels(("a", "true")))
([1, 7, 'x'], ['7', 'true'])
"""

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import Labels, as_column, is_arrow
from candide.data.value_identity import format_plain_value, parse_boolean, parse_value, to_plain_value, to_timestamp

_WHOLE = re.compile(r"(0|-?[1-9]\d{0,17})(\.0)?$", re.ASCII)  # with .0 where a writer had no whole numbers with gaps
_NUMBERS = {bool, int, float}


def match_codes(labels: Labels, column: Any) -> NDArray[np.intp]:
    """Codes of a column's values, however they are written: -1 where absent, ``len(labels)`` where there is none."""
    column = as_column(column)
    found = labels.encode(column)
    if not len(labels) or _has_same_types(labels, column):
        return found
    strange = np.flatnonzero(found == len(labels))
    if not len(strange):
        return found
    odd = Labels.from_values(column.take(strange) if is_arrow(column) else column[strange])
    if all(isinstance(value, str) for value in odd.values) and labels.value_types == {str}:
        return found
    meant = [find_code(value, labels) for value in odd.values]
    if all(code is None for code in meant):
        return found
    to = np.array([len(labels) if code is None else code for code in meant], np.intp)
    found = found.copy()
    found[strange] = to[odd.encode(column.take(strange) if is_arrow(column) else column[strange])]
    return found


def find_code(value: Any, known_labels: Labels) -> int | None:
    """The code of the label that a value is; None where it is none of them."""
    value = to_plain_value(value)
    if value in known_labels.index:
        return known_labels.index[value]
    if isinstance(value, str):
        means = parse_value(value)
        if means is None and bool in known_labels.value_types:
            means = parse_boolean(value)
        return None if means is None else _find_typed_code(means, known_labels)
    text = known_labels.index.get(format_plain_value(value))
    code = _find_typed_code(value, known_labels) if text is None else text
    is_truth = isinstance(value, bool)
    for first in (is_truth, not is_truth):  # a truth is 1 or 0 where no text is its own
        code = known_labels.text_codes.get((first, to_timestamp(value))) if code is None else code
    return code


def match_values(values: Iterable[Any], known_labels: Labels) -> list[Any]:
    """Values as known labels or levels are written."""
    found = ((value, find_code(value, known_labels)) for value in values)
    return [
        _convert_to_known_type(value, known_labels) if code is None else known_labels.values[code]
        for value, code in found
    ]


def rewrite_as_known(column: Any, known_labels: Labels) -> NDArray:
    """The values of a column as known labels are written, None where absent: an array of objects."""
    column = as_column(column)
    labels = Labels.from_values(column)
    return _objects([*match_values(labels.values, known_labels), None])[labels.encode(column)]


def match_labels(labels: Labels, known_labels: Labels) -> tuple[Labels, NDArray[np.intp]]:
    """Labels as known ones are written, and where each goes; if two would become one, all stay as they are.

    >>> match_labels(Labels((1.5, 2, "a")), Labels(("1.5", "b")))[0].values
    ('1.5', '2', 'a')
    """
    same = labels, np.arange(len(labels))
    if labels.value_types == known_labels.value_types == {str} or _has_only_numbers(labels, known_labels):
        return same
    values = match_values(labels.values, known_labels)
    declared = frozenset(new for new, old in zip(values, labels.values, strict=True) if old in labels.declared)
    new = replace(Labels.from_values(_objects(values)), declared=declared)
    return same if len(new) < len(labels) else (new, np.array([new.index[value] for value in values], np.intp))


def parse_levels(levels: list[Any]) -> dict[Any, Any]:
    """What levels counted as text stand for, where all of them do: whole numbers, truths, dates or times.

    Other numbers stay as they are written: 01 may be a code, and 1.10 not 1.1.

    >>> parse_levels(["10", "9"]), parse_levels(["01", "2"])
    ({'10': 10, '9': 9}, {'01': '01', '2': '2'})
    >>> parse_levels(["10.0", "9.0"]), parse_levels(["1", "1.0"])
    ({'10.0': 10, '9.0': 9}, {'1': '1', '1.0': '1.0'})
    >>> parse_levels(["True", "False"])
    {'True': True, 'False': False}
    """
    asis = dict(zip(levels, levels, strict=True))
    if not all(isinstance(level, str) for level in levels):
        return asis
    if whole := all(map(_WHOLE.match, levels)):
        meant: dict[Any, Any] = {level: int(level.removesuffix(".0")) for level in levels}
    else:
        meant = {level: parse_value(level) for level in levels}
    kinds = {type(to_timestamp(value)) for value in meant.values()}
    typed = whole or (len(kinds) == 1 and not kinds & {int, float, type(None)})
    return meant if typed and len(set(meant.values())) == len(levels) else asis


def _find_typed_code(value: Any, known: Labels) -> int | None:
    """The code of a label that is no text and means this."""
    code = known.typed_codes.get(to_timestamp(value))
    if (
        code is None and isinstance(value, dt.datetime) and dt.datetime not in known.value_types
    ):  # a time of a known day
        code = known.typed_codes.get(to_timestamp(value.date()))
    return code


def _convert_to_known_type(value: Any, known: Labels) -> Any:
    """A value that is none of the labels, as one of them would be written."""
    value = to_plain_value(value)
    if known.value_types == {str}:
        return format_plain_value(value)
    read = parse_value(value) if isinstance(value, str) and str not in known.value_types else value
    if dt.datetime in known.value_types:
        read = to_timestamp(read)
    elif dt.date in known.value_types and isinstance(read, dt.datetime):
        read = read.date()
    numbers = type(read) in _NUMBERS and known.value_types & _NUMBERS
    return read if numbers or type(read) in known.value_types else value


def _has_only_numbers(*known_labels: Labels) -> bool:
    return all(labels.value_types <= _NUMBERS for labels in known_labels)


def _has_same_types(labels: Labels, column: Any) -> bool:
    """Whether both are numbers, or both text, so that what is not found is not there."""
    if is_arrow(column):
        kind = getattr(column.type, "value_type", column.type)  # behind a dictionary
        return labels.value_types == {str} and str(kind).removeprefix("large_") in ("string", "string_view")
    return (
        _has_only_numbers(labels)
        if column.dtype.kind in "fiub"
        else column.dtype.kind == "U" and labels.value_types == {str}
    )


def _objects(values: list[Any]) -> NDArray:
    return np.fromiter(values, object, len(values))
