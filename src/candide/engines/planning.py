"""Preparing: a look at a source's head, and the plan and hints for counting it whole."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from candide import formatting
from candide.data.arrow_columns import check_not_nested
from candide.data.column_types import ColumnSchema, infer_column, infer_without_copies
from candide.data.labels import MAX_CLASSES, Labels, check_number_of_classes, has_label
from candide.data.limits import LIMITS
from candide.data.notes import Note
from candide.data.table import Table
from candide.data.text_formats import PLAIN_FORMAT, TextFormat
from candide.engines import arrays
from candide.engines.base import PreparedSource, Source, check_columns
from candide.engines.batches import check_temporal, is_read_as_text, number_columns
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.events import resolve_event
from candide.model.input_columns import format_suggestion, similar_names
from candide.model.plan import Plan, PlanPart, expand_wildcard, is_single_event, named_events, plan_columns

_TEXT_KINDS = ("category", "identifier")
_MAX_FRACTION_CLASSES = 20  # classes that are fractions
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$|\s*(nan|[+-]?inf(inity)?)\s*$", re.A | re.I)
MANY_LEVELS = 1000  # a histogram of more levels than this is slower than a query of its own


def prepare_source(
    source: Source,
    target: str,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    plan_columns: Callable[[Sequence[ColumnSchema], Any], Plan] = plan_columns,
) -> PreparedSource:
    """Look at the head of a source: give untyped columns their types, and every column its kind and event model."""
    check_columns(source, target=target, weight=weight, drop=drop)
    events = expand_wildcard(events, [name for name in source.columns if name not in {target, weight, *drop}])
    asked = named_events(events) if isinstance(events, Mapping) else {}
    as_text = [str(n) for n, event in asked.items() if is_read_as_text(PlanPart(event, (n,)))]
    as_numbers = [str(n) for n in asked if str(n) not in as_text]
    if is_single_event(events):
        is_level = is_read_as_text(PlanPart(resolve_event(events), (target,)))
        as_numbers = [] if is_level else list(source.columns)
        as_text = list(source.columns) if is_level and not source.is_untyped else []
    head, remarks = source.read_head(LIMITS.head_rows(len(source.columns)), target, as_text, as_numbers)
    if head.num_rows == 0:
        raise InputError(f"{source.name} has no rows")
    values = dict(zip(head.column_names, head.columns, strict=True))
    remarks = [*source.notes, *remarks]
    remarks += check_target(target, values[target])
    wanted = {n: column for n, column in values.items() if n not in {target, weight, *drop}}
    told = {name: ColumnSchema(name, "category") for name in source.categories}
    told |= {name: ColumnSchema(name, "text") for name in source.documents}
    looked = {
        n: infer_column(n, column) for n, column in wanted.items() if n not in told and n not in source.spread_values
    }
    looked = infer_without_copies(looked, {n: values[n] for n in wanted})
    looked |= told | {n: infer_column(n, column) for n, column in source.spread_values.items() if n not in told}
    columns = [looked[n] for n in wanted]
    wordy = [str(c.name) for c in columns if c.kind in _TEXT_KINDS]
    remarks += [note for n in wordy for note in _stray_note(n, values[n], source.is_untyped)]
    remarks += [c.note for c in columns if (c.is_left_out or c.alternative) and c.name not in asked]
    plan = plan_columns(columns, events)
    for name in (name for part in plan.parts if part.block_kind != "documents" for name in part.columns):
        check_not_nested(values[str(name)], name)
    remarks += _fraction_notes(head, plan)
    levels = (
        [str(n) for part in plan.parts if part.block_kind == "codes" for n in part.columns] if source.is_untyped else []
    )
    spelled = [name for name in levels if pa.types.is_string(values[name].type)]
    nan = any(pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py() for column in head.columns)
    many, near = counting_hints(plan, head, weight is not None or source.needs_middle)
    declared = frozenset(map(str, values if is_single_event(events) else asked))
    return PreparedSource(plan, list(columns), many, near, spelled, remarks, nan, head, declared)


def prepare_like(
    source: Source,
    plan: Plan,
    target: str,
    weight: str | None = None,
    text_formats: Mapping[str, TextFormat] | None = None,
    temporal: Mapping[Any, str] = MappingProxyType({}),
) -> PreparedSource:
    """A known plan, for a source that must have its columns; untyped columns get the types they need.

    ``temporal`` are the columns of dates and of times: numbers in these are an error.
    """
    check_columns(source, target=target, weight=weight)
    missing = [str(name) for name in plan.columns if str(name) not in source.columns]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        what = f"{source.name} has no column {missing[0]!r}{more}, which the model counts"
        others = [name for name in source.columns if name not in (*plan.columns, target)]
        raise InputError(what, value=missing, remedy=format_suggestion(similar_names(missing, others)))
    levels = [(str(n), s) for part in plan.parts for n, s in zip(part.columns, part.levels, strict=False)]
    numbers = number_columns(plan, text_formats or ())
    told = source.read_numbers([*numbers, *([weight] if weight else [])], text_formats, temporal)
    check_temporal(source, temporal, text_formats or {})
    many = [name for name, known_levels in levels if len(known_levels) > MANY_LEVELS // 2]
    around = weight is not None or source.needs_middle
    near = counting_hints(plan, source.head(LIMITS.wide_rows), around)[1] if around else {}
    return PreparedSource(plan, many_level_columns=many, middle_values=near, notes=[*source.notes, *told])


def check_target(name: str, column: Any) -> list[Note]:
    """Refuse a target that cannot be a class; a remark on one that looks like a measurement."""
    if pa.types.is_nested(column.type):
        raise InputError("it holds lists or structures; a class is one value", column=name)
    present = column.filter(has_label(column))
    distinct = present.unique().to_pylist()
    numbers = pa.types.is_floating(column.type) or (
        pa.types.is_string(column.type) and all(map(_NUMBER.match, distinct))
    )
    broken = [v for v in distinct if numbers and math.isfinite(float(v)) and float(v) % 1]
    check_number_of_classes(
        len(distinct), len(column), name, max_classes=_MAX_FRACTION_CLASSES if broken else MAX_CLASSES
    )
    if not broken:
        return []
    text = f"column {name!r}: labels such as {formatting.format_list(sorted(broken), 3)} look like a measurement"
    return [Note("label-measurement", text, name, "each value is taken for a class of its own")]


def _fraction_notes(head: pa.Table, plan: Plan) -> list[Note]:
    try:
        return arrays.fraction_notes(Table.from_data(head), plan)
    except InputError:  # no numbers at all, as will be said when they are counted
        return []


def _stray_note(name: str, column: Any, untyped: bool) -> list[Note]:
    """A note where a column is text though most of its values are numbers or dates."""
    if not pa.types.is_string(column.type):
        return []
    from candide.engines.duckdb.type_inference import stray_note

    return stray_note(name, column, untyped)


def counting_hints(plan: Plan, head: pa.Table, needs_middle: bool) -> tuple[list[str], dict[str, float]]:
    """Columns with very many levels, and where it is needed a value near the middle of each number."""
    many, near = [], {}
    table = Table.from_data(head)
    for part in plan.parts:
        for name in part.columns:
            if part.block_kind == "codes":
                if len(Labels.from_values(table.column(name))) > MANY_LEVELS:
                    many.append(str(name))
            elif needs_middle and part.block_kind == "numbers":
                values = part.spec.tally_values(np.asarray(table.numbers((name,)), float))
                finite = values[np.isfinite(values)]
                near[str(name)] = float(finite.mean()) if finite.size else 0.0
    return many, near


def reading_record(source: Source, prepared: PreparedSource, reading: ReadOptions | None) -> dict[str, Any]:
    """What a model remembers of how rows were read: how text spells numbers, what meant missing, what is a date."""
    perhaps = (str(name) for part in prepared.plan.parts if part.event.max_levels is not None for name in part.columns)
    counted = {*number_columns(prepared.plan), *perhaps}  # whole numbers are numbers or codes, as the counts decide
    spelled = {name: how for name, how in source.text_formats.items() if name in counted and how != PLAIN_FORMAT}
    kinds = {name: source.temporal_kind(name) for name in counted}
    dates, times = (frozenset(name for name, one in kinds.items() if one == kind) for kind in ("date", "time"))
    return {"text_formats": spelled, "na": reading.na_values if reading else (), "dates": dates, "times": times}
