"""Wanted: the columns that a model reads and how it reads them, without the model: for rows that are scored elsewhere.

A server tells it, and whoever sends it a table then reads the table as for a model of its own.

>>> from candide.demo import garden
>>> wanted = Wanted.of(Fitted(garden(), target="herb"))
>>> wanted.kinds["soil"], wanted.numbers
('level', ['height_cm', 'leaf_mm', 'flowers'])
>>> Wanted.from_facts(wanted.facts()) == wanted
True
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from candide.engines.batch import places
from candide.errors import ModelFileError
from candide.events import event_of
from candide.model.fitted import Fitted
from candide.model.plan import Part, Plan
from candide.rows.identity import spelled
from candide.rows.spelling import Spelling
from candide.rows.temporal import in_time
from candide.store.values import unpack_spelled

_EVENTS = {"number": "gaussian", "level": "categorical", "text": "text"}  # whose columns are read in this way


@dataclass(frozen=True)
class Wanted:
    """What must be known of a model to read rows for it."""

    kinds: Mapping[str, str]  # of each column in order: number, level or text
    target: str | None = None
    na: tuple[str, ...] = ()
    spelled: Mapping[str, Spelling] = field(default_factory=dict)
    temporal: Mapping[str, str] = field(default_factory=dict)  # the columns of dates ("date") and of times ("time")

    @classmethod
    def of(cls, fitted: Fitted) -> "Wanted":
        kinds = dict.fromkeys(map(str, fitted.plan.columns), "number")
        for part, j in places(fitted.plan):
            if part.encodings[j].as_written:
                kinds[str(part.columns[j])] = "text" if part.holds == "documents" else "level"
        target = None if fitted.target is None else str(fitted.target)
        hows = {str(name): how for name, how in fitted.spelled.items()}
        temporal = {str(name): kind for name, kind in fitted.temporal.items() if str(name) in kinds}
        return cls(kinds, target, tuple(fitted.na), hows, temporal)

    @property
    def numbers(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind == "number"]

    @property
    def plan(self) -> Plan:
        """A plan that reads the columns as that of the model does, and knows none of their levels."""
        names = {kind: tuple(n for n, one in self.kinds.items() if one == kind) for kind in _EVENTS}
        parts = [Part(event_of(_EVENTS[kind]), names[kind]) for kind in ("number", "level") if names[kind]]
        parts += [Part(event_of(_EVENTS["text"]), (name,)) for name in names["text"]]
        return Plan(tuple(self.kinds), tuple(parts))

    def facts(self) -> dict[str, Any]:
        """All of it as plain values."""
        hows = {name: how.settings() for name, how in self.spelled.items()}
        columns = [{"name": name, "kind": kind} for name, kind in self.kinds.items()]
        told = {"columns": columns, "target": self.target, "missing": list(self.na), "spelled": hows}
        return told | ({"temporal": dict(self.temporal)} if self.temporal else {})

    @classmethod
    def from_facts(cls, facts: Any) -> "Wanted":
        """From what another program says, which may be anything: an error where it is not this."""
        try:
            kinds = {str(one["name"]): one["kind"] for one in facts["columns"]}
            if not set(kinds.values()) <= _EVENTS.keys():
                raise ValueError
            target = None if facts["target"] is None else str(facts["target"])
            temporal = {str(name): kind for name, kind in facts.get("temporal", {}).items()}
            if not set(temporal.values()) <= {"date", "time"}:
                raise ValueError
            return cls(kinds, target, tuple(map(str, facts["missing"])), unpack_spelled(facts["spelled"]), temporal)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise ModelFileError("this is no description of the columns of a model") from None


def example(fitted: Fitted) -> dict[str, Any]:
    """A row of a model's columns: of each a value that it knows.

    >>> from candide.demo import garden
    >>> example(Fitted(garden()))["soil"]
    'chalk'
    """
    found: dict[str, Any] = {}
    for part, j in places(fitted.plan):
        name, encoding = str(part.columns[j]), part.encodings[j]
        if encoding.kind == "text":
            found.setdefault(name, "some text")
        elif encoding.kind == "level":
            found.setdefault(name, next(iter(encoding.labels.values), None))  # type: ignore[attr-defined]
        else:
            found.setdefault(name, _shown((encoding.extent() or (0.0, 0.0))[0], fitted.temporal.get(part.columns[j])))
    return {str(name): found.get(str(name)) for name in fitted.plan.columns}


def _shown(value: float, kind: str | None) -> Any:
    """A number, or the date or the duration that it stands for."""
    if kind is None:
        return value
    means = in_time(np.array([np.floor(value) if kind == "date" else value]), kind).item(0)
    return str(means.date()) if kind == "date" else spelled(means)
