"""Plan: which column goes to which block and event model, and the levels each category column has.

A plan is encoding. Two censuses merge only if their plans agree on columns and events; levels are united.

>>> from candide.rows.table import Table
>>> table = Table.of({"age": [30.0, 41.0, 8.0], "job": ["cook", "smith", None]})
>>> plan = make_plan(table, "auto").with_levels(table)
>>> [(part.event.name, part.columns, [len(s) for s in part.levels]) for part in plan.parts]
[('gaussian', ('age',), []), ('categorical', ('job',), [2])]
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, InputTypeError, MergeError, unknown
from candide.events import EventModel, event_of
from candide.rows.blocks import Block
from candide.rows.kinds import Column, inspect
from candide.rows.labels import Labels
from candide.rows.table import Name, Table
from candide.tally import Spec

Key = Name | tuple[Name, ...] | None  # what tells blocks of one event model apart


@dataclass(frozen=True)
class Part:
    """The columns of one block, their event model, and their levels where they are categories."""

    event: EventModel
    columns: tuple[Name, ...]
    levels: tuple[Labels, ...] = ()

    @property
    def has_levels(self) -> bool:
        return self.event.kind == "levels" and self.event.spec(1).threshold is None

    @property
    def has_documents(self) -> bool:
        return self.event.kind == "terms"

    @property
    def is_group(self) -> bool:
        """Whether its columns are modelled together, as one group."""
        return self.event.joint

    @property
    def in_batches(self) -> bool:
        """Whether it is counted from rows, because an aggregate query cannot say it."""
        return self.has_documents or self.event.kind == "comoments"

    @property
    def spec(self) -> Spec:
        return self.event.spec(len(self.columns), tuple(len(levels) for levels in self.levels))

    def with_levels(self, table: Table) -> "Part":
        """This part with exactly the levels that ``table`` holds."""
        if not self.has_levels:
            return self
        return replace(self, levels=tuple(_levels(table.column(name), name) for name in self.columns))

    def only(self, features: Sequence[int]) -> "Part":
        """The part of some of these columns, with their levels and their share of a prior that has a value a column."""
        levels = tuple(self.levels[j] for j in features) if self.levels else ()
        event = _of_features(self.event, features, len(self.columns), self.has_levels)
        return Part(event, tuple(self.columns[j] for j in features), levels)

    def counts_like(self, other: "Part") -> bool:
        """Whether both are tallied in the same way, whatever their priors and levels."""
        return self.columns == other.columns and (
            self.event == other.event or self.event.spec(1) == other.event.spec(1)
        )

    def block(self, table: Table) -> Block:
        """The rows of this part's columns, encoded."""
        if self.has_documents:
            documents: Any = table.documents(self.columns[0])
            return documents
        if not self.has_levels:
            return self._numbers(table)
        codes = np.empty((table.n_rows, len(self.columns)), np.int32, order="F")
        for j, (name, levels) in enumerate(zip(self.columns, self.levels, strict=True)):
            codes[:, j] = levels.encode(table.column(name))
        return codes

    def _numbers(self, table: Table) -> Block:
        try:
            return table.numbers(self.columns)
        except InputError as error:
            if not self.is_group:
                raise
            together = ", ".join(map(repr, self.columns[:5])) + (", ..." if len(self.columns) > 5 else "")
            raise type(error)(f"{error}; columns modelled together ({together}) must be numbers") from None


@dataclass(frozen=True)
class Plan:
    """Every input column, in order, and the parts that use them."""

    columns: tuple[Name, ...]
    parts: tuple[Part, ...]

    def with_levels(self, table: Table) -> "Plan":
        """This plan with exactly the levels that ``table`` holds."""
        return Plan(self.columns, tuple(part.with_levels(table) for part in self.parts))

    def blocks(self, table: Table) -> list[Block]:
        return [part.block(table) for part in self.parts]

    def union(self, other: "Plan") -> tuple["Plan", list["Growth"], list["Growth"]]:
        """The plan with the levels of both, and how each one's levels move."""
        if self.columns != other.columns:
            raise MergeError(f"these models have different columns: {_difference(self.columns, other.columns)}")
        parts, mine, theirs = [], [], []
        for a, b in zip(self.parts, other.parts, strict=False):
            if not a.counts_like(b):
                raise MergeError(
                    f"columns {_named(a.columns)} are counted as {a.event} in one model "
                    f"and {_named(b.columns)} as {b.event} in the other; fit both with the same events"
                )
            united = [x.union(y) for x, y in zip(a.levels, b.levels, strict=True)]
            parts.append(replace(a, levels=tuple(u[0] for u in united)))
            sizes = tuple(len(u[0]) for u in united)
            mine.append(Growth(tuple(u[1] for u in united), sizes))
            theirs.append(Growth(tuple(u[2] for u in united), sizes))
        if len(self.parts) != len(other.parts):
            raise MergeError("these models divide their columns differently; fit both with the same events")
        return Plan(self.columns, tuple(parts)), mine, theirs


@dataclass(frozen=True)
class Growth:
    """Where the levels of each feature of a block go in a larger set."""

    levels: tuple[NDArray[np.intp], ...]
    sizes: tuple[int, ...]


def make_plan(table: Table, events: Any = "auto", columns: Sequence[Column] | None = None) -> Plan:
    """The plan for a table in memory; ``columns`` where it has been looked at already."""
    if is_one(events):
        plan = _plan_of_one(table.names, event_of(events))
    else:
        plan = plan_of(inspect(table) if columns is None else columns, events)
    if table.is_sparse:
        _check_sparse([part.event for part in plan.parts])
    return plan


def plan_of(columns: Sequence[Column], events: Any = "auto") -> Plan:
    """Assign an event model to every column: ``"auto"``, one for all, or a mapping for some, the rest by their kind.

    Columns that hold nothing to model are left out, unless an event model is asked for them.
    """
    names = dict.fromkeys(column.name for column in columns)
    if is_one(events):
        return _plan_of_one(tuple(names), event_of(events))
    asked = _asked(events, names) if isinstance(events, Mapping) else {}
    usual = {name: event_of(name) for name in {column.event for column in columns} if name}
    groups: dict[tuple[EventModel, Key], list[Name]] = {}
    known: dict[tuple[int, Key], list[Name]] = {}
    for column in columns:
        event, key = asked.get(column.name) or (usual.get(column.event or ""), None)
        if event is not None:  # a column of documents is a block of its own
            key = column.name if event.kind == "terms" else key
            if (id(event), key) not in known:  # to hash an event model takes longer than all else here
                known[id(event), key] = groups.setdefault((event, key), [])
            known[id(event), key].append(column.name)
    used = {name for group in groups.values() for name in group}
    if not used:
        raise InputError(
            f"none of the columns {list(names)} can be modelled; name an event model for one of them in events"
        )
    return Plan(
        tuple(n for n in names if n in used), tuple(Part(event, tuple(group)) for (event, _), group in groups.items())
    )


def _plan_of_one(names: tuple[Name, ...], event: EventModel) -> Plan:
    """One event model for all columns; a column of documents is a block of its own."""
    groups = [(name,) for name in names] if event.kind == "terms" else [names]
    return Plan(names, tuple(Part(event, group) for group in groups))


def _of_features(event: EventModel, features: Sequence[int], n_features: int, by_level: bool) -> EventModel:
    """An event model whose prior has one value a column, for some of the columns."""
    prior = event.prior
    if by_level or not is_dataclass(prior) or not is_dataclass(event):
        return event
    held = {f.name: getattr(prior, f.name) for f in fields(prior)}
    long = {name: v for name, v in held.items() if isinstance(v, tuple) and len(v) == n_features}
    if not long:
        return event
    return replace(event, prior=replace(prior, **{name: tuple(v[j] for j in features) for name, v in long.items()}))


def named_events(events: Mapping[Any, Any]) -> dict[Name, EventModel]:
    """The event model asked for each column, whether by itself or in a group."""
    return {name: event_of(event) for key, event in events.items() for name in _members(key)}


def _members(key: Any) -> tuple[Name, ...]:
    return key if isinstance(key, tuple) else (key,)


def _asked(events: Mapping[Any, Any], names: Collection[Name]) -> dict[Name, tuple[EventModel, Key]]:
    """The event model of every column named, and what tells its block from others of that model.

    A group of columns is a block where the model ties them to each other; so is a column named alone.
    """
    found: dict[Name, tuple[EventModel, Key]] = {}
    for key, given in events.items():
        event, members = event_of(given), _members(key)
        if isinstance(key, tuple) and not event.groups:
            raise InputError(
                f"columns {list(key)}: {event.name} models each column by itself; name the columns apart, "
                "or model numbers together with Gaussian(covariance='full')"
            )
        if not members:
            raise InputError(f"events: a group without columns, of {event.name}; name its columns")
        for name in members:
            if _known(name, names) in found:
                raise InputError(f"column {name!r} is in two entries of events; leave it in one of them")
            found[name] = event, (key if event.joint or isinstance(key, tuple) else None)
    return found


def is_one(events: Any) -> bool:
    """Whether one event model is asked for all columns, whatever they hold."""
    return not isinstance(events, Mapping) and events != "auto"


def _check_sparse(events: Collection[EventModel]) -> None:
    if len(events) > 1:
        raise InputTypeError(
            "a sparse matrix takes one event model for all its columns; pass events='multinomial', say"
        )
    for event in events:
        if not event.sparse:
            raise InputTypeError(f"{event} does not take a sparse matrix; pass a dense array (X.toarray())")


def _known(name: Name, names: Collection[Name]) -> Name:
    if name not in names:
        raise unknown("column in events", name, names)
    return name


def _levels(column: Any, name: Name) -> Labels:
    labels = Labels.of(column)
    if any(isinstance(v, float) and np.isinf(v) for v in labels.values):
        raise InputError(f"column {name!r}: infinity is not a usable level; make it missing (NaN), or drop the row")
    return labels


def _named(columns: tuple[Name, ...], most: int = 10) -> str:
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return f"{list(columns[:most])}{more}"


def _difference(a: tuple[Name, ...], b: tuple[Name, ...]) -> str:
    only_a, only_b = [n for n in a if n not in b], [n for n in b if n not in a]
    return f"only left {only_a}, only right {only_b}" if only_a or only_b else "the same names in another order"
