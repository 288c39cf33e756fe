"""Preparing: a look at a source's head, and the plan and hints for counting it whole."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from candide import wording
from candide.engines import arrays
from candide.engines.base import Prepared, Source, has_columns
from candide.engines.batch import is_text, number_columns
from candide.engines.temporal import check_temporal
from candide.errors import InputError
from candide.events import event_of
from candide.model.input_columns import similar_names, suggestion
from candide.model.plan import Part, Plan, for_each, is_one, named_events, plan_of
from candide.rows.arrow import check_not_nested
from candide.rows.kinds import Column, look, look_without_copies, rows_of_look
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.spelling import Spelling
from candide.rows.table import Table
from candide.rows.targets import MOST_CLASSES, check_number_of_classes, has_label

_FEWEST = 1 << 11  # rows by which the middle of a number is known
_WORDY = ("category", "identifier")
_FEW_FRACTIONS = 20  # classes that are fractions
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$|\s*(nan|[+-]?inf(inity)?)\s*$", re.A | re.I)
MANY_LEVELS = 1000  # a histogram of more levels than this is slower than a query of its own


def prepare(
    source: Source,
    target: str,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    plan_of: Callable[[Sequence[Column], Any], Plan] = plan_of,
) -> Prepared:
    """Look at the head of a source: give untyped columns their types, and every column its kind and event model."""
    has_columns(source, target=target, weight=weight, drop=drop)
    events = for_each(events, [name for name in source.columns if name not in {target, weight, *drop}])
    asked = named_events(events) if isinstance(events, Mapping) else {}
    as_text = [str(n) for n, event in asked.items() if is_text(Part(event, (n,)))]
    as_numbers = [str(n) for n in asked if str(n) not in as_text]
    if is_one(events):
        is_level = is_text(Part(event_of(events), (target,)))
        as_numbers = [] if is_level else list(source.columns)
        as_text = list(source.columns) if is_level and not source.untyped else []
    head, remarks = source.look(rows_of_look(len(source.columns)), target, as_text, as_numbers)
    if head.num_rows == 0:
        raise InputError(f"{source.name} has no rows")
    values = dict(zip(head.column_names, head.columns, strict=True))
    remarks = [*source.remarks, *remarks]
    remarks += check_target(target, values[target])
    wanted = {n: column for n, column in values.items() if n not in {target, weight, *drop}}
    told = {name: Column(name, "category") for name in source.categories}
    told |= {name: Column(name, "text") for name in source.documents}
    looked = {n: look(n, column) for n, column in wanted.items() if n not in told and n not in source.spread}
    looked = look_without_copies(looked, {n: values[n] for n in wanted})
    looked |= told | {n: look(n, column) for n, column in source.spread.items() if n not in told}
    columns = [looked[n] for n in wanted]
    wordy = [str(c.name) for c in columns if c.kind in _WORDY]
    remarks += [note for n in wordy for note in _stray_note(n, values[n], source.untyped)]
    remarks += [c.remark for c in columns if (c.event is None or c.perhaps) and c.name not in asked]
    plan = plan_of(columns, events)
    for name in (name for part in plan.parts if part.holds != "documents" for name in part.columns):
        check_not_nested(values[str(name)], name)
    remarks += _fractions(head, plan)
    levels = [str(n) for part in plan.parts if part.holds == "codes" for n in part.columns] if source.untyped else []
    spelled = [name for name in levels if pa.types.is_string(values[name].type)]
    nan = any(pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py() for column in head.columns)
    many, near = hints(plan, head, weight is not None or source.needs_middle)
    declared = frozenset(map(str, values if is_one(events) else asked))
    return Prepared(plan, list(columns), many, near, spelled, remarks, nan, head, declared)


def prepare_like(
    source: Source,
    plan: Plan,
    target: str,
    weight: str | None = None,
    spelled: Mapping[str, Spelling] | None = None,
    temporal: Mapping[Any, str] = MappingProxyType({}),
) -> Prepared:
    """A known plan, for a source that must have its columns; untyped columns get the types they need.

    ``temporal`` are the columns of dates and of times: numbers in these are an error.
    """
    has_columns(source, target=target, weight=weight)
    missing = [str(name) for name in plan.columns if str(name) not in source.columns]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        what = f"{source.name} has no column {missing[0]!r}{more}, which the model counts"
        others = [name for name in source.columns if name not in (*plan.columns, target)]
        raise InputError(what, value=missing, remedy=suggestion(similar_names(missing, others)))
    levels = [(str(n), s) for part in plan.parts for n, s in zip(part.columns, part.levels, strict=False)]
    numbers = number_columns(plan, spelled or ())
    told = source.read_numbers([*numbers, *([weight] if weight else [])], spelled, temporal)
    check_temporal(source, temporal, spelled or {})
    many = [name for name, known_levels in levels if len(known_levels) > MANY_LEVELS // 2]
    around = weight is not None or source.needs_middle
    near = hints(plan, source.head(_FEWEST), around)[1] if around else {}
    return Prepared(plan, many=many, near=near, remarks=[*source.remarks, *told])


def check_target(name: str, column: Any) -> list[Remark]:
    """Refuse a target that cannot be a class; a remark on one that looks like a measurement."""
    if pa.types.is_nested(column.type):
        raise InputError("it holds lists or structures; a class is one value", column=name)
    present = column.filter(has_label(column))
    distinct = present.unique().to_pylist()
    numbers = pa.types.is_floating(column.type) or (
        pa.types.is_string(column.type) and all(map(_NUMBER.match, distinct))
    )
    broken = [v for v in distinct if numbers and math.isfinite(float(v)) and float(v) % 1]
    check_number_of_classes(len(distinct), len(column), name, most=_FEW_FRACTIONS if broken else MOST_CLASSES)
    if not broken:
        return []
    text = f"column {name!r}: labels such as {wording.listing(sorted(broken), 3)} look like a measurement"
    return [Remark("label-measurement", text, name, "each value is taken for a class of its own")]


def _fractions(head: pa.Table, plan: Plan) -> list[Remark]:
    try:
        return arrays.fractions(Table.of(head), plan)
    except InputError:  # no numbers at all, as will be said when they are counted
        return []


def _stray_note(name: str, column: Any, untyped: bool) -> list[Remark]:
    """A note where a column is text though most of its values are numbers or dates."""
    if not pa.types.is_string(column.type):
        return []
    from candide.engines.duckdb.stray_values import stray_note

    return stray_note(name, column, untyped)


def hints(plan: Plan, head: pa.Table, needs_middle: bool) -> tuple[list[str], dict[str, float]]:
    """Columns with very many levels, and where it is needed a value near the middle of each number."""
    many, near = [], {}
    table = Table.of(head)
    for part in plan.parts:
        for name in part.columns:
            if part.holds == "codes":
                if len(Labels.of(table.column(name))) > MANY_LEVELS:
                    many.append(str(name))
            elif needs_middle and part.holds == "numbers":
                values = part.spec.tallied(np.asarray(table.numbers((name,)), float))
                finite = values[np.isfinite(values)]
                near[str(name)] = float(finite.mean()) if finite.size else 0.0
    return many, near
