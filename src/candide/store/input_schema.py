"""Wanted: the columns that a model reads and how it reads them, without the model: for rows that are scored elsewhere.

A server tells it, and whoever sends it a table then reads the table as for a model of its own.

>>> from candide.demo import garden
>>> wanted = InputSchema.from_model(FittedModel(garden(), target="herb"))
>>> wanted.column_types["soil"], wanted.number_columns
('level', ['height_cm', 'leaf_mm', 'flowers'])
>>> InputSchema.from_dict(wanted.to_dict()) == wanted
True
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from candide.data.temporal import in_time
from candide.data.text_formats import TextFormat
from candide.data.value_identity import format_plain_value
from candide.engines.batches import iterate_columns
from candide.errors import ModelFileError
from candide.events import resolve_event
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.store.values import unpack_text_formats

_EVENT_BY_TYPE = {"number": "gaussian", "level": "categorical", "text": "text"}  # whose columns are read in this way


@dataclass(frozen=True)
class InputSchema:
    """What must be known of a model to read rows for it."""

    column_types: Mapping[str, str]  # of each column in order: number, level or text
    target: str | None = None
    na: tuple[str, ...] = ()
    text_formats: Mapping[str, TextFormat] = field(default_factory=dict)
    temporal: Mapping[str, str] = field(default_factory=dict)  # the columns of dates ("date") and of times ("time")

    @classmethod
    def from_model(cls, fitted: FittedModel) -> "InputSchema":
        kinds = dict.fromkeys(map(str, fitted.plan.columns), "number")
        for part, j in iterate_columns(fitted.plan):
            if part.encodings[j].is_read_as_text:
                kinds[str(part.columns[j])] = "text" if part.block_kind == "documents" else "level"
        target = None if fitted.target is None else str(fitted.target)
        hows = {str(name): how for name, how in fitted.text_formats.items()}
        temporal = {str(name): kind for name, kind in fitted.temporal.items() if str(name) in kinds}
        return cls(kinds, target, tuple(fitted.na), hows, temporal)

    @property
    def number_columns(self) -> list[str]:
        return [name for name, kind in self.column_types.items() if kind == "number"]

    @property
    def plan(self) -> Plan:
        """A plan that reads the columns as that of the model does, and knows none of their levels."""
        names = {kind: tuple(n for n, one in self.column_types.items() if one == kind) for kind in _EVENT_BY_TYPE}
        parts = [
            PlanPart(resolve_event(_EVENT_BY_TYPE[kind]), names[kind]) for kind in ("number", "level") if names[kind]
        ]
        parts += [PlanPart(resolve_event(_EVENT_BY_TYPE["text"]), (name,)) for name in names["text"]]
        return Plan(tuple(self.column_types), tuple(parts))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        hows = {name: how.settings() for name, how in self.text_formats.items()}
        columns = [{"name": name, "kind": kind} for name, kind in self.column_types.items()]
        told = {"columns": columns, "target": self.target, "missing": list(self.na), "text_formats": hows}
        return told | ({"temporal": dict(self.temporal)} if self.temporal else {})

    @classmethod
    def from_dict(cls, facts: Any) -> "InputSchema":
        """From what another program says, which may be anything: an error where it is not this."""
        try:
            kinds = {str(one["name"]): one["kind"] for one in facts["columns"]}
            if not set(kinds.values()) <= _EVENT_BY_TYPE.keys():
                raise ValueError
            target = None if facts["target"] is None else str(facts["target"])
            temporal = {str(name): kind for name, kind in facts.get("temporal", {}).items()}
            if not set(temporal.values()) <= {"date", "time"}:
                raise ValueError
            return cls(
                kinds, target, tuple(map(str, facts["missing"])), unpack_text_formats(facts["text_formats"]), temporal
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ModelFileError("this is no description of the columns of a model") from None


def example_row(fitted: FittedModel) -> dict[str, Any]:
    """A row of a model's columns: of each a value that it knows.

    >>> from candide.demo import garden
    >>> example_row(FittedModel(garden()))["soil"]
    'chalk'
    """
    found: dict[str, Any] = {}
    for part, j in iterate_columns(fitted.plan):
        name, encoding = str(part.columns[j]), part.encodings[j]
        if encoding.value_kind == "text":
            found.setdefault(name, "some text")
        elif encoding.value_kind == "level":
            found.setdefault(name, next(iter(encoding.labels.values), None))  # type: ignore[attr-defined]
        else:
            found.setdefault(
                name, _shown((encoding.value_range() or (0.0, 0.0))[0], fitted.temporal.get(part.columns[j]))
            )
    return {str(name): found.get(str(name)) for name in fitted.plan.columns}


def _shown(value: float, kind: str | None) -> Any:
    """A number, or the date or the duration that it stands for."""
    if kind is None:
        return value
    means = in_time(np.array([np.floor(value) if kind == "date" else value]), kind).item(0)
    return str(means.date()) if kind == "date" else format_plain_value(means)
