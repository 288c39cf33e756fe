"""Input schema: the columns that a model reads, how it reads them, and an example row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from candide.data.text_columns import days_to_temporal
from candide.data.text_formats import TextFormat, format_plain_value
from candide.engines.batches import iterate_columns
from candide.model.fitted import FittedModel


@dataclass(frozen=True)
class InputSchema:
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

    def to_dict(self) -> dict[str, Any]:
        columns = [{"name": name, "kind": kind} for name, kind in self.column_types.items()]
        formats = {name: text_format.settings() for name, text_format in self.text_formats.items()}
        known = {"columns": columns, "target": self.target, "missing": list(self.na), "text_formats": formats}
        return known | ({"temporal": dict(self.temporal)} if self.temporal else {})


def example_row(fitted: FittedModel) -> dict[str, Any]:
    """Return a row with a valid value of each column."""
    row: dict[str, Any] = {str(name): None for name in fitted.plan.columns}
    for part, j in iterate_columns(fitted.plan):
        name, encoding = str(part.columns[j]), part.encodings[j]
        if row[name] is not None:
            continue
        if encoding.value_kind == "text":
            row[name] = "some text"
        elif encoding.value_kind == "level":
            row[name] = next(iter(encoding.labels.values), None)  # type: ignore[attr-defined]
        else:
            row[name] = (encoding.value_range() or (0.0, 0.0))[0]
            if (kind := fitted.temporal.get(part.columns[j])) is not None:
                time = days_to_temporal(np.array([np.floor(row[name]) if kind == "date" else row[name]]), kind).item(0)
                row[name] = str(time.date()) if kind == "date" else format_plain_value(time)
    return row
