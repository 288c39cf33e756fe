"""Columns of dates and times in a source: whether they have such a type, and the error where they do not.

A model counts dates as days since 1970. A column of numbers in the place of dates would be read as such days without a
word, so its type is checked before any row is read.

>>> temporal_kind_of("TIMESTAMP WITH TIME ZONE"), temporal_kind_of("interval day to second"), temporal_kind_of("BIGINT")
('date', 'time', '')
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from candide.data.temporal import is_temporal_type, not_temporal
from candide.data.text_formats import PLAIN_FORMAT, TextFormat

if TYPE_CHECKING:
    from candide.engines.base import Source

_BATCH = 1 << 16  # rows that are looked at together for a value


def temporal_kind_of(type_name: str) -> str:
    """ "date" for a type of dates, "time" for one of times of day or durations, by its name in any engine; else ""."""
    lower = type_name.lower()
    if lower.startswith(("date", "timestamp")) or is_temporal_type(lower, "date"):
        return "date"
    return "time" if lower.startswith(("time", "interval")) or is_temporal_type(lower, "time") else ""


def check_temporal(source: "Source", temporal: Mapping[Any, str], spelled: Mapping[str, TextFormat]) -> None:
    """Refuse a column of another type that holds a value, where the model has dates, or times and durations."""
    for name, kind in temporal.items():
        if str(name) not in source.columns or source.temporal_kind(str(name)) == kind:
            continue
        if (found := _first_value(source, str(name))) is not None:
            row, value = found
            raise not_temporal(value, kind, spelled.get(str(name), PLAIN_FORMAT), name, row)


def _first_value(source: "Source", name: str) -> tuple[int, Any] | None:
    """The first value that is not missing, and its row; None where all are missing."""
    from candide.data.labels import is_absent

    start = 0
    for batch in source.batches([name], _BATCH):
        column = batch.column(0)
        if column.null_count < len(column):
            for row, value in enumerate(column.to_pylist()):
                if not is_absent(value) and value != "":
                    return start + row, value
        start += len(column)
    return None
