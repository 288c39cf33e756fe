"""Input schema: the columns that a model reads and how it reads them.

>>> from candide.demo import garden
>>> schema = InputSchema.from_model(FittedModel(garden(), target="herb"))
>>> schema.column_types["soil"], schema.number_columns
('level', ['height_cm', 'leaf_mm', 'flowers'])
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from candide.data.temporal import in_time
from candide.data.text_formats import TextFormat
from candide.data.value_identity import format_plain_value
from candide.engines.batches import iterate_columns
from candide.model.fitted import FittedModel


@dataclass(frozen=True)
class InputSchema:
    """The columns of a model, and how they are read."""

    column_types: Mapping[str, str]  # of each column in order: number, level or text
    target: str | None = None
    na: tuple[str, ...] = ()
    text_formats: Mapping[str, TextFormat] = field(default_factory=dict)
    temporal: Mapping[str, str] = field(default_factory=dict)  # columns of dates ("date") and of times ("time")

    @classmethod
    def from_model(cls, fitted: FittedModel) -> "InputSchema":
        types = dict.fromkeys(map(str, fitted.plan.columns), "number")
        for part, j in iterate_columns(fitted.plan):
            if part.encodings[j].is_read_as_text:
                types[str(part.columns[j])] = "text" if part.block_kind == "documents" else "level"
        target = None if fitted.target is None else str(fitted.target)
        formats = {str(name): text_format for name, text_format in fitted.text_formats.items()}
        temporal = {str(name): kind for name, kind in fitted.temporal.items() if str(name) in types}
        return cls(types, target, tuple(fitted.na), formats, temporal)

    @property
    def number_columns(self) -> list[str]:
        return [name for name, kind in self.column_types.items() if kind == "number"]

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain values."""
        columns = [{"name": name, "kind": kind} for name, kind in self.column_types.items()]
        formats = {name: text_format.settings() for name, text_format in self.text_formats.items()}
        known = {"columns": columns, "target": self.target, "missing": list(self.na), "text_formats": formats}
        return known | ({"temporal": dict(self.temporal)} if self.temporal else {})


def example_row(fitted: FittedModel) -> dict[str, Any]:
    """Return a row with a valid value of each column.

    >>> from candide.demo import garden
    >>> example_row(FittedModel(garden()))["soil"]
    'chalk'
    """
    row: dict[str, Any] = {}
    for part, j in iterate_columns(fitted.plan):
        name, encoding = str(part.columns[j]), part.encodings[j]
        if encoding.value_kind == "text":
            row.setdefault(name, "some text")
        elif encoding.value_kind == "level":
            row.setdefault(name, next(iter(encoding.labels.values), None))  # type: ignore[attr-defined]
        else:
            low = (encoding.value_range() or (0.0, 0.0))[0]
            row.setdefault(name, _format_number(low, fitted.temporal.get(part.columns[j])))
    return {str(name): row.get(str(name)) for name in fitted.plan.columns}


def _format_number(value: float, kind: str | None) -> Any:
    """Return a number, or the date or duration that it stands for."""
    if kind is None:
        return value
    time = in_time(np.array([np.floor(value) if kind == "date" else value]), kind).item(0)
    return str(time.date()) if kind == "date" else format_plain_value(time)
