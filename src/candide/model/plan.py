"""Plan: the block and event model of each column, and the encodings, such as the levels of categories.

Counts merge only if their plans agree on columns and events; levels are united.

>>> from candide.data.table import Table
>>> table = Table.from_data({"age": [30.0, 41.0, 8.0], "job": ["cook", "smith", None]})
>>> plan = make_plan(table, "auto").with_levels(table)
>>> [(part.event.name, part.columns, [len(s) for s in part.levels]) for part in plan.parts]
[('gaussian', ('age',), []), ('categorical', ('job',), [2])]
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Block, Floats
from candide.data.labels import Labels
from candide.data.table import Name, Table
from candide.encoding import CodeMapping, Encoding, LevelEncoding
from candide.encoding.prototypes import Prototypes
from candide.errors import MERGE_REMEDY, InputError, InputTypeError, MergeError, unknown_name_error
from candide.events import EventModel, resolve_event
from candide.tally import TallySpec

if TYPE_CHECKING:
    from candide.data.column_types import ColumnSchema

_MAX_EVENT_LENGTH = 150  # characters of an event model in a message
ALL_COLUMNS = "*"  # in events: all columns that are not named
DEFAULT_EVENTS = {  # of naive Bayes, by the kind of a column; the weighted model bins numbers and dates
    "number": "gaussian",
    "date": "gaussian",
    "whole": "whole",
    "category": "categorical",
    "count": "multinomial",
    "text": "text",
}
CodeMoves = tuple[CodeMapping, ...]  # of the codes of each column of a block
BlockKey = Name | tuple[Name, ...] | None  # distinguishes blocks of one event model


@dataclass(frozen=True)
class PlanPart:
    """The columns of one block, their event model, and their encodings, at first the event model's own.

    The encoded columns of a row may be compared with ``prototypes``.
    """

    event: EventModel
    columns: tuple[Name, ...]
    encodings: tuple[Encoding, ...] = ()
    prototypes: Prototypes | None = None

    def __post_init__(self) -> None:
        if not self.encodings:
            object.__setattr__(self, "encodings", (self.event.encoding,) * len(self.columns))

    @cached_property
    def block_kind(self) -> str:
        """What its block holds: "numbers", "codes", "scores" or "documents"."""
        return (self.encodings[0] if self.encodings else self.event.encoding).block_kind

    @cached_property
    def levels(self) -> tuple[Labels, ...]:
        """The levels of each column, if they are categories."""
        return tuple(encoding.labels for encoding in self.encodings) if self.block_kind == "codes" else ()  # type: ignore[attr-defined]

    @cached_property
    def spec(self) -> TallySpec:
        encodings = self.encodings if self.prototypes is None else (self.prototypes,)
        return self.event.spec(len(self.columns), encodings)

    @cached_property
    def is_joint_term(self) -> bool:
        """Whether it is a term of several columns, besides their own terms."""
        return any(len(names) > 1 for names in self.event.term_names(self.columns))

    def with_levels(self, table: Table, weight: Floats | None = None) -> "PlanPart":
        """Return the part with encodings learned from ``table``, such as exactly the levels that it holds."""
        if self.block_kind not in ("codes", "scores"):
            return self
        pairs = zip(self.columns, self.encodings, strict=True)
        options = {} if weight is None else {"weight": weight}
        learned = tuple(_call_for_column(partial(e.learn, **options), table, name) for name, e in pairs)
        return replace(self, encodings=learned)

    def with_labels(self, levels: Iterable[Labels]) -> "PlanPart":
        """Return the part with these levels of its columns."""
        pairs = zip(self.encodings, levels, strict=True)
        encodings = tuple(replace(e, labels=labels) if isinstance(e, LevelEncoding) else e for e, labels in pairs)
        return replace(self, encodings=encodings)

    @property
    def coded_columns(self) -> list[tuple[Name, Encoding]]:
        """Its columns with their encodings, if these are codes."""
        return list(zip(self.columns, self.encodings, strict=True)) if self.block_kind == "codes" else []

    def prune(self, tally: Any, seen_levels: Sequence[NDArray[np.bool_]]) -> tuple["PlanPart", Any]:
        """Return the part and its tally without unseen levels, unless they were declared."""
        masks = [encoding.retained_mask(seen) for encoding, seen in zip(self.encodings, seen_levels, strict=False)]
        if all(mask.all() for mask in masks):
            return self, tally
        encodings = tuple(encoding.retain_levels(mask) for encoding, mask in zip(self.encodings, masks, strict=True))
        return replace(self, encodings=encodings), tally.select_levels(masks)

    def select_features(self, features: Sequence[int]) -> "PlanPart":
        """Return the part of some columns, with their values of a prior that has one per column."""
        event = _select_prior_features(self.event, features, len(self.columns), self.block_kind == "codes")
        columns = tuple(self.columns[j] for j in features)
        encodings = tuple(self.encodings[j] for j in features)
        return replace(self, event=event, columns=columns, encodings=encodings)

    def is_tallied_like(self, other: "PlanPart") -> bool:
        """Whether both are tallied in the same way, whatever their priors and learned encodings."""
        return self.columns == other.columns and (
            self.event == other.event or self.event.spec(1) == other.event.spec(1)
        )

    def union(self, other: "PlanPart") -> tuple["PlanPart", tuple[CodeMapping, ...], tuple[CodeMapping, ...]]:
        """Return the part with the encodings of both, and how the codes of each column move; () if none does."""
        if self.prototypes != other.prototypes:
            what = f"columns {formatting.format_list(self.columns)} have different prototypes in the two models"
            raise MergeError(what, column=self.columns, remedy=MERGE_REMEDY)
        is_same = self.spec.encoding is not None and self.spec.encoding == other.spec.encoding  # one, for many columns
        if is_same or self.encodings == other.encodings:
            return self, (), ()
        united = []
        for name, mine, theirs in zip(self.columns, self.encodings, other.encodings, strict=True):
            with add_column_to_errors(name):
                united.append(mine.union(theirs))
        both, a, b = zip(*united, strict=True)
        return replace(self, encodings=both), a, b

    def block(self, table: Table) -> Block:
        """Return the rows of this part's columns: with :meth:`join_columns` the one place where rows become blocks."""
        if self.block_kind == "documents":
            [name] = self.columns
            return self.encodings[0].read(table.documents(name))
        if self.block_kind == "numbers":
            block: Any = self._numbers(table)
            return block if self.prototypes is None else self.prototypes.read(block)
        columns = zip(self.columns, self.encodings, strict=True)
        return self.join_columns((_call_for_column(e.read, table, name) for name, e in columns), table.n_rows)

    def join_columns(self, columns: Iterable[NDArray], n_rows: int) -> Block:
        """Put encoded columns side by side: int32 codes, numbers, or scores with several columns each."""
        dtype = np.int32 if self.block_kind == "codes" else np.float64
        if n_rows == 1 and self.columns:
            block: Any = np.concatenate(list(columns), axis=None).astype(dtype, copy=False)[None]
        else:
            ends = self._column_ends
            block = np.empty((n_rows, ends[-1]), dtype, order="F")
            for column, start, stop in zip(columns, ends[:-1], ends[1:], strict=True):
                block[:, start:stop] = np.reshape(column, (n_rows, stop - start))
        return block if self.prototypes is None else self.prototypes.read(block)

    @cached_property
    def _column_ends(self) -> list[int]:
        """Where each column begins and ends in a block."""
        widths = [encoding.width if self.block_kind == "scores" else 1 for encoding in self.encodings]
        return [0, *accumulate(widths)]

    def _numbers(self, table: Table) -> Block:
        try:
            return table.numbers(self.columns)
        except InputError as error:
            if self.event.is_joint:
                remedy = f"columns modelled jointly ({formatting.format_list(self.columns, 5)}) must be numbers"
                error.remedy = remedy if error.remedy is None else f"{error.remedy}; {remedy}"
            raise


@dataclass(frozen=True)
class Plan:
    """The input columns, in order, and the parts that use them; a column may be in several parts."""

    columns: tuple[Name, ...]
    parts: tuple[PlanPart, ...]

    @property
    def token_columns(self) -> list[Name]:
        """The columns of text whose tokens have weights of their own."""
        return [part.columns[0] for part in self.parts if part.event.weights_tokens]

    def with_levels(self, table: Table, weight: Floats | None = None) -> "Plan":
        """Return the plan with encodings learned from ``table``."""
        return Plan(self.columns, tuple(part.with_levels(table, weight) for part in self.parts))

    def select_density_parts(self) -> tuple["Plan", list[int]]:
        """Return the plan of the parts that have a density, and their indices."""
        at = [i for i, part in enumerate(self.parts) if part.event.has_density]
        used = {name for i in at for name in self.parts[i].columns}
        return Plan(tuple(name for name in self.columns if name in used), tuple(self.parts[i] for i in at)), at

    def blocks(self, table: Table) -> list[Block]:
        return [part.block(table) for part in self.parts]

    def union(self, other: "Plan") -> tuple["Plan", list[CodeMoves], list[CodeMoves]]:
        """Return the plan with the encodings of both, and how the codes of the parts of each move."""
        if self.columns != other.columns:
            what = _describe_difference(self.columns, other.columns)
            raise MergeError(f"these models have different columns: {what}")
        remedy = f"{MERGE_REMEDY}, or both with the same events"
        for a, b in zip(self.parts, other.parts, strict=False):
            if not a.is_tallied_like(b):
                what = f"{_describe_counts(a)} in one model and {_describe_counts(b)} in the other"
                raise MergeError(what, remedy=remedy)
        if len(self.parts) != len(other.parts):
            raise MergeError("these models divide their columns differently", remedy=remedy)
        united = [a.union(b) for a, b in zip(self.parts, other.parts, strict=True)]
        return Plan(self.columns, tuple(u[0] for u in united)), [u[1] for u in united], [u[2] for u in united]


def _describe_counts(part: PlanPart) -> str:
    """Describe what a part counts, for a message."""
    if part.is_joint_term:
        titles = part.event.term_titles(part.columns, part.encodings)
        return f"{formatting.format_list(titles, 3)} {_columns_are(titles)} counted jointly"
    event = formatting.truncate(str(part.event), _MAX_EVENT_LENGTH)
    return f"{formatting.format_columns(part.columns, 8)} {_columns_are(part.columns)} counted as {event}"


def _columns_are(names: Sequence[Any]) -> str:
    return "is" if len(names) == 1 else "are"


def make_plan(table: Table, events: Any = "auto", columns: "Sequence[ColumnSchema] | None" = None) -> Plan:
    """Return the plan of a table in memory; ``columns`` if their types are known already."""
    if is_single_event(events):
        plan = _plan_single_event(table.names, resolve_event(events))
    else:
        from candide.data.column_types import infer_columns  # here: a loaded model has its plan

        plan = plan_columns(infer_columns(table) if columns is None else columns, events)
    if table.is_sparse:
        _check_sparse([part.event for part in plan.parts])
    return plan


def plan_columns(columns: "Sequence[ColumnSchema]", events: Any = "auto") -> Plan:
    """Assign an event model to every column: "auto", one for all, or a mapping for some and the rest by their type.

    Columns with nothing to model are left out, unless an event model is named for them.
    """
    names = dict.fromkeys(column.name for column in columns)
    if is_single_event(events):
        return _plan_single_event(tuple(names), resolve_event(events))
    asked = _requested_events(expand_wildcard(events, names), names) if isinstance(events, Mapping) else {}
    kinds = {column.kind for column in columns if not column.is_left_out}
    default = {kind: resolve_event(DEFAULT_EVENTS[kind]) for kind in kinds}
    groups: dict[tuple[EventModel, BlockKey], list[Name]] = {}
    known: dict[tuple[int, BlockKey], list[Name]] = {}
    alone: dict[int, bool] = {}
    for column in columns:
        event, key = asked.get(column.name) or (default.get(column.kind), None)
        if event is not None:
            if id(event) not in alone:
                alone[id(event)] = _has_own_block(event)
            key = column.name if alone[id(event)] else key
            if (id(event), key) not in known:  # to hash an event model takes longer than all else here
                known[id(event), key] = groups.setdefault((event, key), [])
            known[id(event), key].append(column.name)
    used = {name for group in groups.values() for name in group}
    if not used:
        raise _no_columns_error(columns)
    return Plan(
        tuple(n for n in names if n in used),
        tuple(PlanPart(event, tuple(group)) for (event, _), group in groups.items()),
    )


def _no_columns_error(columns: "Sequence[ColumnSchema]") -> InputError:
    """Return the error if no column can be modelled: why not, and what to do."""
    why = ", ".join(dict.fromkeys(column.reason for column in columns if column.reason))
    names = [column.name for column in columns]
    what = f"none of the columns {formatting.format_list(names)} can be modelled"
    remedy = next(
        (column.remedy for column in columns if column.remedy), "name an event model for one of them in events"
    )
    return InputError(f"{what}: {why}" if why else what, value=names, remedy=remedy)


def _plan_single_event(names: tuple[Name, ...], event: EventModel) -> Plan:
    """One event model for all columns."""
    groups = [(name,) for name in names] if _has_own_block(event) else [names]
    return Plan(names, tuple(PlanPart(event, group) for group in groups))


def _has_own_block(event: EventModel) -> bool:
    """Whether each column is a block of its own, as documents are."""
    return event.encoding.block_kind == "documents"


def _select_prior_features(event: EventModel, features: Sequence[int], n_features: int, by_level: bool) -> EventModel:
    """Return an event model with the values of its prior for some columns, if it has one per column."""
    prior = event.prior
    if by_level or not is_dataclass(prior) or not is_dataclass(event):
        return event
    held = {f.name: getattr(prior, f.name) for f in fields(prior)}
    long = {name: v for name, v in held.items() if isinstance(v, tuple) and len(v) == n_features}
    if not long:
        return event
    return replace(event, prior=replace(prior, **{name: tuple(v[j] for j in features) for name, v in long.items()}))


def expand_wildcard(events: Any, names: Collection[Name]) -> Any:
    """Return the events with an entry for every column that ``"*"`` stands for.

    >>> expand_wildcard({"*": "categorical", "age": "gaussian"}, ["age", "job", "town"])
    {'age': 'gaussian', 'job': 'categorical', 'town': 'categorical'}
    """
    if not isinstance(events, Mapping) or ALL_COLUMNS not in events or ALL_COLUMNS in names:
        return events
    named = {name for key in events for name in _members(key)}
    own = {key: event for key, event in events.items() if key != ALL_COLUMNS}
    return own | {name: events[ALL_COLUMNS] for name in names if name not in named}


def named_events(events: Mapping[Any, Any]) -> dict[Name, EventModel]:
    """Return the event model of each named column, also in groups."""
    return {name: resolve_event(event) for key, event in events.items() for name in _members(key)}


def _members(key: Any) -> tuple[Name, ...]:
    return key if isinstance(key, tuple) else (key,)


def _requested_events(events: Mapping[Any, Any], names: Collection[Name]) -> dict[Name, tuple[EventModel, BlockKey]]:
    """Return the event model of every named column, and the key of its block.

    A group of columns is a block of its own if the event model is joint; so is a single column then.
    """
    found: dict[Name, tuple[EventModel, BlockKey]] = {}
    for key, given in events.items():
        event, members = resolve_event(given), _members(key)
        if isinstance(key, tuple) and not event.accepts_groups:
            remedy = "name the columns separately, or model numbers jointly with Gaussian(covariance='full')"
            raise InputError(f"{event.name} models each column by itself", column=key, remedy=remedy)
        if not members:
            raise InputError(f"events: a group of {event.name} has no columns", remedy="name its columns")
        for name in members:
            if _check_known(name, names) in found:
                raise InputError("in two entries of events", column=name, remedy="leave it in one of them")
            found[name] = event, (key if event.is_joint or isinstance(key, tuple) else None)
    return found


def is_single_event(events: Any) -> bool:
    """Whether one event model is named for all columns."""
    return not isinstance(events, Mapping) and events != "auto"


def _check_sparse(events: Collection[EventModel]) -> None:
    if len(events) > 1:
        what = "a sparse matrix takes one event model for all its columns"
        raise InputTypeError(what, remedy="pass events='multinomial', say")
    for event in events:
        if not event.accepts_sparse:
            what = f"{event} does not take a sparse matrix"
            raise InputTypeError(what, value=event, remedy="pass a dense array (X.toarray())")


def _check_known(name: Name, names: Collection[Name]) -> Name:
    if name not in names:
        raise unknown_name_error("column in events", name, names)
    return name


def _call_for_column(what: Callable[[Any], Any], table: Table, name: Name) -> Any:
    """Call a function of one column of a table; an error names the column."""
    with add_column_to_errors(name):
        return what(table.column(name))


@contextmanager
def add_column_to_errors(column: Name) -> Iterator[None]:
    """Add the column to an error that has none."""
    try:
        yield
    except InputError as error:
        error.column = column if error.column is None else error.column
        raise


def _describe_difference(a: tuple[Name, ...], b: tuple[Name, ...]) -> str:
    only_a, only_b = [n for n in a if n not in b], [n for n in b if n not in a]
    return f"only left {only_a}, only right {only_b}" if only_a or only_b else "the same names in another order"
