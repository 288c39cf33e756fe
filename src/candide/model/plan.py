"""Plan: the block and event model of each column, and the encodings, such as the levels of categories.

Counts merge only if their plans agree on columns and events; levels are united.
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
from candide.encoding.scores import Prototypes
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
    """The columns of one block, their event model, and their encodings, at first the event model's own."""

    event: EventModel
    columns: tuple[Name, ...]
    encodings: tuple[Encoding, ...] = ()
    prototypes: Prototypes | None = None  # with which the encoded columns of a row are compared

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
        options = {} if weight is None else {"weight": weight}
        return replace(self, encodings=tuple(self._encode(table, lambda encoding: partial(encoding.learn, **options))))

    def _encode(self, table: Table, method: Callable[[Encoding], Callable[[Any], Any]]) -> Iterator[Any]:
        """Call a method of each encoding with its column of a table; an error names the column."""
        for name, encoding in zip(self.columns, self.encodings, strict=True):
            with add_column_to_errors(name):
                yield method(encoding)(table.column(name))

    def with_labels(self, levels: Iterable[Labels]) -> "PlanPart":
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
        event, prior, n = self.event, self.event.prior, len(self.columns)
        if self.block_kind != "codes" and is_dataclass(prior) and is_dataclass(event):
            values = {f.name: getattr(prior, f.name) for f in fields(prior)}
            long = {name: v for name, v in values.items() if isinstance(v, tuple) and len(v) == n}
            prior = replace(prior, **{name: tuple(v[j] for j in features) for name, v in long.items()})
            event = replace(event, prior=prior) if long else event
        columns, encodings = zip(*((self.columns[j], self.encodings[j]) for j in features), strict=True)
        return replace(self, event=event, columns=columns, encodings=encodings)

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
            try:
                block: Any = table.numbers(self.columns)
            except InputError as error:
                if self.event.is_joint:
                    remedy = f"columns modelled jointly ({formatting.format_list(self.columns, 5)}) must be numbers"
                    error.remedy = remedy if error.remedy is None else f"{error.remedy}; {remedy}"
                raise
            return block if self.prototypes is None else self.prototypes.read(block)
        return self.join_columns(self._encode(table, lambda encoding: encoding.read), table.n_rows)

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
            a, b = ([n for n in x.columns if n not in y.columns] for x, y in ((self, other), (other, self)))
            what = f"only left {a}, only right {b}" if a or b else "the same names in another order"
            raise MergeError(f"these models have different columns: {what}")
        remedy = f"{MERGE_REMEDY}, or both with the same events"
        for mine, theirs in zip(self.parts, other.parts, strict=False):
            is_same_event = mine.event == theirs.event or mine.event.spec(1) == theirs.event.spec(1)
            if mine.columns != theirs.columns or not is_same_event:  # priors and learned encodings may differ
                what = f"{_describe_counts(mine)} in one model and {_describe_counts(theirs)} in the other"
                raise MergeError(what, remedy=remedy)
        if len(self.parts) != len(other.parts):
            raise MergeError("these models divide their columns differently", remedy=remedy)
        united = [mine.union(theirs) for mine, theirs in zip(self.parts, other.parts, strict=True)]
        return Plan(self.columns, tuple(u[0] for u in united)), [u[1] for u in united], [u[2] for u in united]


def term_groups(plan: Plan) -> list[int]:
    """The group of each term, whose weights have a common prior: 0 for all columns.

    Every other part is a group; where the event model is of joint columns, each of its terms is.
    """
    groups, last = [], 0
    for part in plan.parts:
        n = len(part.event.term_names(part.columns))
        if part.event.has_density and part.block_kind != "documents":
            groups += [0] * n
        elif part.event.is_joint:
            groups += range(last + 1, last + 1 + n)
            last += n
        else:
            groups += [last + 1] * n
            last += 1
    return groups


def _describe_counts(part: PlanPart) -> str:
    """Describe what a part counts, for a message."""
    if part.is_joint_term:
        titles = part.event.term_titles(part.columns, part.encodings)
        return f"{formatting.format_list(titles, 3)} {'is' if len(titles) == 1 else 'are'} counted jointly"
    event = formatting.truncate(str(part.event), _MAX_EVENT_LENGTH)
    verb = "is" if len(part.columns) == 1 else "are"
    return f"{formatting.format_columns(part.columns, 8)} {verb} counted as {event}"


def make_plan(table: Table, events: Any = "auto", columns: "Sequence[ColumnSchema] | None" = None) -> Plan:
    """Return the plan of a table in memory, whose ``columns`` may be known already."""
    if is_single_event(events):
        plan = _plan_single_event(table.names, resolve_event(events))
    else:
        from candide.data.column_types import infer_columns  # here: a loaded model has its plan

        plan = plan_columns(infer_columns(table) if columns is None else columns, events)
    for part in plan.parts if table.is_sparse else ():
        if len(plan.parts) > 1:
            what = "a sparse matrix takes one event model for all its columns"
            raise InputTypeError(what, remedy="pass an event model such as events='multinomial'")
        if not part.event.accepts_sparse:
            remedy = "pass a dense array (X.toarray())"
            raise InputTypeError(f"{part.event} does not take a sparse matrix", value=part.event, remedy=remedy)
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
                alone[id(event)] = event.encoding.block_kind == "documents"
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
    remedies = (column.remedy for column in columns if column.remedy)
    remedy = next(remedies, "name an event model for one of them in events")
    return InputError(f"{what}: {why}" if why else what, value=names, remedy=remedy)


def _plan_single_event(names: tuple[Name, ...], event: EventModel) -> Plan:
    groups = [(name,) for name in names] if event.encoding.block_kind == "documents" else [names]
    return Plan(names, tuple(PlanPart(event, group) for group in groups))


def expand_wildcard(events: Any, names: Collection[Name]) -> Any:
    """Return the events with an entry for every column that ``"*"`` stands for."""
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
    requested: dict[Name, tuple[EventModel, BlockKey]] = {}
    for key, given in events.items():
        event, members = resolve_event(given), _members(key)
        if isinstance(key, tuple) and not event.accepts_groups:
            remedy = "name the columns separately, or model numbers jointly with Gaussian(covariance='full')"
            raise InputError(f"{event.name} models each column by itself", column=key, remedy=remedy)
        if not members:
            raise InputError(f"events: a group of {event.name} has no columns", remedy="name its columns")
        for name in members:
            if name not in names:
                raise unknown_name_error("column in events", name, names)
            if name in requested:
                raise InputError("in two entries of events", column=name, remedy="leave it in one of them")
            requested[name] = event, (key if event.is_joint or isinstance(key, tuple) else None)
    return requested


def is_single_event(events: Any) -> bool:
    """Whether one event model is named for all columns."""
    return not isinstance(events, Mapping) and events != "auto"


@contextmanager
def add_column_to_errors(column: Name) -> Iterator[None]:
    """Add the column to an error that has none."""
    try:
        yield
    except InputError as error:
        error.column = column if error.column is None else error.column
        raise
