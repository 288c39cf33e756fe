"""Prepare a source for counting: column types from its first rows, the plan, and hints for the engine."""

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
_MAX_FRACTION_CLASSES = 20  # classes, where labels are fractions
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
    """Infer types from the first rows of a source, and plan the event model of every column."""
    check_columns(source, target=target, weight=weight, drop=drop)
    events = expand_wildcard(events, [name for name in source.columns if name not in {target, weight, *drop}])
    named = named_events(events) if isinstance(events, Mapping) else {}
    as_text = [str(n) for n, event in named.items() if is_read_as_text(PlanPart(event, (n,)))]
    as_numbers = [str(n) for n in named if str(n) not in as_text]
    if is_single_event(events):
        is_level = is_read_as_text(PlanPart(resolve_event(events), (target,)))
        as_numbers = [] if is_level else list(source.columns)
        as_text = list(source.columns) if is_level and not source.is_untyped else []
    head, notes = source.read_head(LIMITS.head_rows(len(source.columns)), target, as_text, as_numbers)
    if head.num_rows == 0:
        raise InputError(f"{source.name} has no rows")
    values = dict(zip(head.column_names, head.columns, strict=True))
    notes = [*source.notes, *notes, *check_target(target, values[target])]
    columns = _infer_columns(source, {n: column for n, column in values.items() if n not in {target, weight, *drop}})
    text_names = [str(c.name) for c in columns if c.kind in _TEXT_KINDS]
    notes += [note for n in text_names for note in _stray_note(n, values[n], source.is_untyped)]
    notes += [c.note for c in columns if (c.is_left_out or c.alternative) and c.name not in named]
    plan = plan_columns(columns, events)
    for name in (name for part in plan.parts if part.block_kind != "documents" for name in part.columns):
        check_not_nested(values[str(name)], name)
    notes += _fraction_notes(head, plan)
    levels = [str(n) for part in plan.parts if part.block_kind == "codes" for n in part.columns]
    text_levels = [n for n in levels if source.is_untyped and pa.types.is_string(values[n].type)]
    has_nan = any(pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py() for column in head.columns)
    many, middle = counting_hints(plan, head, weight is not None or source.needs_middle)
    declared = frozenset(map(str, values if is_single_event(events) else named))
    return PreparedSource(plan, columns, many, middle, text_levels, notes, has_nan, head, declared)


def _infer_columns(source: Source, values: Mapping[str, Any]) -> list[ColumnSchema]:
    """The types of columns: as declared by the source, else from values from all over it, or from its first rows."""
    declared = {name: ColumnSchema(name, "category") for name in source.categories}
    declared |= {name: ColumnSchema(name, "text") for name in source.documents}
    spread = {n: infer_column(n, column) for n, column in source.spread_values.items()}
    first = {n: infer_column(n, column) for n, column in values.items() if n not in declared and n not in spread}
    inferred = infer_without_copies(first, values) | spread | declared
    return [inferred[name] for name in values]


def prepare_like(
    source: Source,
    plan: Plan,
    target: str,
    weight: str | None = None,
    text_formats: Mapping[str, TextFormat] | None = None,
    temporal: Mapping[Any, str] = MappingProxyType({}),
) -> PreparedSource:
    """Prepare a source for a known plan, whose columns it must have; untyped columns get the types they need.

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
    notes = source.read_numbers([*numbers, *([weight] if weight else [])], text_formats, temporal)
    check_temporal(source, temporal, text_formats or {})
    many = [name for name, known_levels in levels if len(known_levels) > MANY_LEVELS // 2]
    needs_middle = weight is not None or source.needs_middle
    middle = counting_hints(plan, source.head(LIMITS.wide_rows), needs_middle)[1] if needs_middle else {}
    return PreparedSource(plan, many_level_columns=many, middle_values=middle, notes=[*source.notes, *notes])


def check_target(name: str, column: Any) -> list[Note]:
    """Refuse a target that cannot be a class; a note on one that looks like a measurement."""
    if pa.types.is_nested(column.type):
        raise InputError("it holds lists or structures; a class is one value", column=name)
    present = column.filter(has_label(column))
    distinct = present.unique().to_pylist()
    is_numeric = pa.types.is_string(column.type) and all(map(_NUMBER.match, distinct))
    is_numeric = is_numeric or pa.types.is_floating(column.type)
    fractions = [v for v in distinct if is_numeric and math.isfinite(float(v)) and float(v) % 1]
    limit = _MAX_FRACTION_CLASSES if fractions else MAX_CLASSES
    check_number_of_classes(len(distinct), len(column), name, max_classes=limit)
    if not fractions:
        return []
    text = f"column {name!r}: labels such as {formatting.format_list(sorted(fractions), 3)} look like a measurement"
    return [Note("label-measurement", text, name, "each value is taken for a class of its own")]


def _fraction_notes(head: pa.Table, plan: Plan) -> list[Note]:
    try:
        return arrays.fraction_notes(Table.from_data(head), plan)
    except InputError:  # not numbers: an error when they are counted
        return []


def _stray_note(name: str, column: Any, untyped: bool) -> list[Note]:
    """A note where a column is text though most of its values are numbers or dates."""
    if not pa.types.is_string(column.type):
        return []
    from candide.engines.duckdb.type_inference import stray_note

    return stray_note(name, column, untyped)


def counting_hints(plan: Plan, head: pa.Table, needs_middle: bool) -> tuple[list[str], dict[str, float]]:
    """Columns with very many levels, and, where needed, a value near the middle of each numeric column."""
    many, middle = [], {}
    table = Table.from_data(head)
    for part in plan.parts:
        for name in part.columns:
            if part.block_kind == "codes":
                if len(Labels.from_values(table.column(name))) > MANY_LEVELS:
                    many.append(str(name))
            elif needs_middle and part.block_kind == "numbers":
                values = part.spec.tally_values(np.asarray(table.numbers((name,)), float))
                finite = values[np.isfinite(values)]
                middle[str(name)] = float(finite.mean()) if finite.size else 0.0
    return many, middle


def reading_record(source: Source, prepared: PreparedSource, reading: ReadOptions | None) -> dict[str, Any]:
    """What a model remembers of how rows were read: text formats, missing-value markers, dates and times."""
    whole = (str(name) for part in prepared.plan.parts if part.event.max_levels is not None for name in part.columns)
    counted = {*number_columns(prepared.plan), *whole}  # whole numbers are numbers or codes, as the counts decide
    formats = {name: fmt for name, fmt in source.text_formats.items() if name in counted and fmt != PLAIN_FORMAT}
    temporal = {name: source.temporal_kind(name) for name in counted}
    dates, times = (frozenset(name for name, kind in temporal.items() if kind == k) for k in ("date", "time"))
    return {"text_formats": formats, "na": reading.na_values if reading else (), "dates": dates, "times": times}
