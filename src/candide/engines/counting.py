"""Prepare and count a source: the parts of its plan that its engine can count by itself, and the others from batches.

The others are documents, joint terms, transforms of the user, and all columns of a table so wide that a query of them
would be slow to plan; the array engine counts these.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candide import formatting
from candide.data.arrow_columns import check_not_nested
from candide.data.column_types import ColumnSchema, infer_column, infer_without_copies
from candide.data.labels import MAX_CLASSES, Labels, check_number_of_classes, has_label, parse_levels
from candide.data.notes import Note, left_out_notes
from candide.data.table import LIMITS, Table
from candide.data.text_formats import PLAIN_FORMAT, TextFormat
from candide.encoding import CodeMapping, LevelEncoding
from candide.engines import arrays
from candide.engines.base import CountResult, Folds, LabelledSource, PreparedSource, Source, check_columns
from candide.engines.batches import check_temporal, iterate_columns, number_columns, parse_row_weights
from candide.engines.duckdb.type_inference import stray_note
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.events import resolve_event
from candide.kernels import threads
from candide.model.counts import ModelCounts, join_counts
from candide.model.input_columns import format_suggestion, similar_names
from candide.model.plan import Plan, PlanPart, expand_wildcard, is_single_event, named_events, plan_columns
from candide.tally.precision import estimate_scale

_MAX_FRACTION_CLASSES = 20  # classes, where labels are fractions
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$|\s*(nan|[+-]?inf(inity)?)\s*$", re.A | re.I)
_MANY_LEVELS = 1000  # a histogram of more levels than this is slower than a query of its own


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
    as_text = [str(n) for n, event in named.items() if event.encoding.is_read_as_text]
    as_numbers = [str(n) for n in named if str(n) not in as_text]
    if is_single_event(events):
        is_level = resolve_event(events).encoding.is_read_as_text
        as_numbers = [] if is_level else list(source.columns)
        as_text = list(source.columns) if is_level and not source.is_untyped else []
    head, notes = source.read_head(LIMITS.head_rows(len(source.columns)), target, as_text, as_numbers)
    if head.num_rows == 0:
        raise InputError(f"{source.name} has no rows")
    values = dict(zip(head.column_names, head.columns, strict=True))
    notes = [*source.notes, *notes, *check_target(target, values[target])]
    columns = _infer_columns(source, {n: column for n, column in values.items() if n not in {target, weight, *drop}})
    text_names = [str(c.name) for c in columns if c.kind in ("category", "identifier")]
    text_names = [name for name in text_names if pa.types.is_string(values[name].type)]
    notes += [note for n in text_names for note in stray_note(n, values[n], source.is_untyped)]
    notes += [c.note for c in columns if (c.is_left_out or c.alternative) and c.name not in named]
    plan = plan_columns(columns, events)
    for name in (name for part in plan.parts if part.block_kind != "documents" for name in part.columns):
        check_not_nested(values[str(name)], name)
    with suppress(InputError):  # not numbers: an error when they are counted
        notes += arrays.fraction_notes(Table.from_data(head), plan)
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
    temporal: Mapping[Any, str] = {},
) -> PreparedSource:
    """Prepare a source for a known plan, whose columns it must have; untyped columns get the types they need.

    ``temporal`` are the columns of dates and of times: numbers in these are an error.
    """
    check_columns(source, target=target, weight=weight)
    missing = [str(name) for name in plan.columns if str(name) not in source.columns]
    if missing:
        rest = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        what = f"{source.name} has no column {missing[0]!r}{rest}, which the model counts"
        others = [name for name in source.columns if name not in (*plan.columns, target)]
        raise InputError(what, value=missing, remedy=format_suggestion(similar_names(missing, others)))
    levels = [(str(n), s) for part in plan.parts for n, s in zip(part.columns, part.levels, strict=False)]
    numbers = number_columns(plan, text_formats or ())
    notes = source.read_numbers([*numbers, *([weight] if weight else [])], text_formats, temporal)
    check_temporal(source, temporal, text_formats or {})
    many = [name for name, known_levels in levels if len(known_levels) > _MANY_LEVELS // 2]
    needs_middle = weight is not None or source.needs_middle
    middle = counting_hints(plan, source.head(LIMITS.wide_rows), needs_middle)[1] if needs_middle else {}
    return PreparedSource(plan, many_level_columns=many, middle_values=middle, notes=[*source.notes, *notes])


def check_target(name: str, column: Any) -> list[Note]:
    """Refuse a target that cannot be a class; a note on one that looks like a measurement."""
    if pa.types.is_nested(column.type):
        raise InputError("it holds lists or structures; a class is one value", column=name)
    present = column.filter(has_label(column))
    distinct = present.unique().to_pylist()
    is_numeric = pa.types.is_floating(column.type)
    is_numeric = is_numeric or (pa.types.is_string(column.type) and all(map(_NUMBER.match, distinct)))
    fractions = [v for v in distinct if is_numeric and math.isfinite(float(v)) and float(v) % 1]
    limit = _MAX_FRACTION_CLASSES if fractions else MAX_CLASSES
    check_number_of_classes(len(distinct), len(column), name, max_classes=limit)
    if not fractions:
        return []
    text = f"column {name!r}: labels such as {formatting.format_list(sorted(fractions), 3)} look like a measurement"
    return [Note("label-measurement", text, name, "each value is taken for a class of its own")]


def counting_hints(plan: Plan, head: pa.Table, needs_middle: bool) -> tuple[list[str], dict[str, float]]:
    """Columns with very many levels, and, where needed, a value near the middle of each numeric column."""
    table, middle = Table.from_data(head), dict[str, float]()
    codes = [name for part in plan.parts if part.block_kind == "codes" for name in part.columns]
    many = [str(name) for name in codes if len(Labels.from_values(table.column(name))) > _MANY_LEVELS]
    for part in (part for part in plan.parts if needs_middle and part.block_kind == "numbers"):
        for name in part.columns:
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


def count_source(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    source, plan = rows.source, prepared.plan
    parts = source.engine.countable_parts(plan, rows)
    queried, rest = select_parts(plan, parts), select_parts(plan, [part for part in plan.parts if part not in parts])
    if set(queried.columns) <= set(rest.columns):  # all of them are read anyway
        queried, rest = select_parts(plan, []), plan
    if not rest.parts:
        result = _count_by_query(rows, prepared)
    else:
        source.passes = 2 if queried.parts else 1
        result = _count_batches(rows, replace(prepared, plan=rest))
        if queried.parts:
            from_query = _count_by_query(rows, replace(prepared, plan=queried))
            pairs = zip(from_query.fold_counts, result.fold_counts, strict=True)
            result = CountResult([join_counts(a, b, plan) for a, b in pairs], result.n_unlabelled)
    if not source.is_untyped:
        return result
    labels = Labels.from_values([label for counts in result.fold_counts for label in counts.labels.values])
    parsed = parse_levels(list(labels.values))
    return replace(result, fold_counts=[counts.relabel(parsed) for counts in result.fold_counts])


def _count_by_query(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    """The counts of the engine, which sums in doubles; columns that spread too far for that are summed again."""
    counted, plan = rows.source.engine.count(rows, prepared), prepared.plan
    head, far = None, list[tuple[int, list[int]]]()
    for i, part in enumerate(plan.parts):
        tallies = [counts.tallies[i] for counts in counted.fold_counts]
        if tallies[0].can_be_imprecise:
            if head is None:
                head = rows.source.head(LIMITS.wide_rows) if prepared.head is None else prepared.head
                head = Table.from_data(head.select([str(name) for name in plan.columns]))
            scale = _value_scale(part, head)
            columns = sorted({int(j) for tally in tallies for j in tally.imprecise_features(scale)})
            far += [(i, columns)] if columns else []
    if not far:
        return counted
    far_plan = select_parts(plan, [plan.parts[i].select_features(columns) for i, columns in far])
    rows.source.passes += 1
    exact = _count_batches(rows, replace(prepared, plan=far_plan))
    pairs = zip(counted.fold_counts, exact.fold_counts, strict=True)
    return replace(counted, fold_counts=[_replace_columns(*pair, far) for pair in pairs])


def _value_scale(part: PlanPart, head: Table) -> NDArray[np.float64]:
    """How fine the values of each column are; infinite where the first rows are not numbers, so that none is far."""
    try:
        block = part.spec.tally_values(np.asarray(part.block(head), np.float64))
    except InputError:
        return np.full(len(part.columns), np.inf)
    return estimate_scale(block, len(block))


def _replace_columns(counts: ModelCounts, exact: ModelCounts, places: list[tuple[int, list[int]]]) -> ModelCounts:
    classes = np.array([counts.labels.index[label] for label in exact.labels.values], np.intp)
    tallies: list[Any] = list(counts.tallies)
    for (i, columns), tally in zip(places, exact.tallies, strict=True):
        moved = tally.remap(classes, len(counts.labels))
        for at, j in enumerate(columns):
            tallies[i] = tallies[i].replace_feature(j, moved, at)
    return replace(counts, tallies=tuple(tallies))


def select_parts(plan: Plan, parts: list[PlanPart]) -> Plan:
    used = {name for part in parts for name in part.columns}
    return Plan(tuple(name for name in plan.columns if name in used), tuple(parts))


def _count_batches(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    """All parts of a plan by the array engine; every column is read once, though it may serve several parts."""
    parts, seen = list[PlanPart](), set[Any]()
    for part in prepared.plan.parts:
        new = [(name, e) for name, e in zip(part.columns, part.encodings, strict=True) if name not in seen]
        seen |= set(part.columns)
        if new:
            columns, encodings = zip(*new, strict=True)
            parts.append(replace(part, columns=columns, encodings=encodings))
    once = Plan(prepared.plan.columns, tuple(parts))
    names = [part.columns[j] for part, j in iterate_columns(once)]
    counter = BatchCounter(prepared.plan, names, rows.weight, rows.folds)
    fold_counts, n_unlabelled = rows.source.engine.gather(rows, once, counter)
    first = next((counts for counts in fold_counts if counts), None)
    if first is None:
        raise InputError(f"no row of {rows.source.name} has a label", column=rows.target)
    no_weight, no_tallies = np.zeros(len(first.labels)), tuple(tally.scale(0.0) for tally in first.tallies)
    empty = replace(first, class_weight=no_weight, tallies=no_tallies, n_rows=0)  # folds by a key may be empty
    complete = [counts or empty for counts in fold_counts]
    return CountResult(_parse_text_levels(complete, prepared.text_level_columns), n_unlabelled)


# The counts of each fold, None where it has no row, and the number of rows without a label
FoldCounts = tuple[list[ModelCounts | None], int]


@dataclass(frozen=True)
class BatchCounter:
    """Count batches on threads, and add their counts in order."""

    plan: Plan
    names: list[Any]  # of the columns of a batch
    weight: str | None = None
    folds: Folds | None = None

    def __call__(self, batches: Iterable[Any], first: int = 0) -> FoldCounts:
        return self.combine(threads.map_ahead(self._count_batch, batches))

    def combine(self, parts: Iterable[FoldCounts]) -> FoldCounts:
        totals, unlabelled = [_CountsSum() for _ in range(self.folds.n if self.folds else 1)], 0
        for fold_counts, missing in parts:
            unlabelled += missing
            for total, counts in zip(totals, fold_counts, strict=True):
                if counts is not None:
                    total.add(counts)
        return [total.total() if total.runs else None for total in totals], unlabelled

    def _count_batch(self, batch: Any) -> FoldCounts:
        out: list[ModelCounts | None] = []
        is_labelled = has_label(batch.column("k0"))
        labelled = batch.filter(is_labelled) if pc.any(pc.invert(is_labelled)).as_py() else batch
        for f in range(self.folds.n if self.folds else 1):
            rows = labelled.filter(pc.equal(labelled.column("fold"), f)) if self.folds else labelled
            if not rows.num_rows:
                out.append(None)
                continue
            table = Table.from_data(dict(zip(self.names, rows.columns, strict=False)))
            w = parse_row_weights(self.weight, rows.column("k1")) if self.weight else None
            y = pa.chunked_array([rows.column("k0")])
            out.append(arrays.count_table(table, y, w, plan=self.plan.with_levels(table)))
        return out, batch.num_rows - labelled.num_rows


class _CountsSum:
    """A sum of many counts, each added to a sum of about as many: very many levels are united only a few times."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, ModelCounts]] = []  # of how many each is the sum

    def add(self, counts: ModelCounts) -> None:
        n = 1
        while self.runs and self.runs[-1][0] == n:
            counts, n = self.runs.pop()[1] + counts, 2 * n
        self.runs.append((n, counts))

    def total(self) -> ModelCounts:
        return reduce(lambda later, run: run[1] + later, self.runs[-2::-1], self.runs[-1][1])


def _parse_text_levels(fold_counts: list[ModelCounts], text_columns: list[str]) -> list[ModelCounts]:
    plan = reduce(lambda a, b: a.union(b)[0], (counts.plan for counts in fold_counts))
    parsed = [
        [parse_levels(list(e.labels.values)) if isinstance(e, LevelEncoding) else {} for e in part.encodings]
        if part.block_kind == "codes" and not set(map(str, part.columns)).isdisjoint(text_columns)
        else []
        for part in plan.parts
    ]
    out = []
    for counts in fold_counts:
        parts, tallies, classes = list(counts.plan.parts), list(counts.tallies), np.arange(len(counts.labels))
        for i in (i for i, values in enumerate(parsed) if values):
            pairs = [_parse_encoding(e, v) for e, v in zip(parts[i].encodings, parsed[i], strict=True)]
            parts[i] = replace(parts[i], encodings=tuple(encoding for encoding, _ in pairs))
            tallies[i] = tallies[i].remap(classes, len(classes), [mapping for _, mapping in pairs])
        out.append(replace(counts, plan=Plan(counts.plan.columns, tuple(parts)), tallies=tuple(tallies)))
    return out


def _parse_encoding(encoding: Any, parsed: dict[Any, Any]) -> tuple[Any, CodeMapping]:
    if not parsed:
        return encoding, CodeMapping(np.arange(encoding.n_levels), encoding.n_levels)
    values = [parsed[level] for level in encoding.labels.values]
    labels = Labels.from_values(values)
    return replace(encoding, labels=labels), CodeMapping(labels.encode(values), len(labels))


def check_classes(counts: ModelCounts, target: str) -> ModelCounts:
    """Refuse counts of one class; rows of weight 0 do not count."""
    weights = zip(counts.labels.values, counts.class_weight.tolist(), strict=True)
    present = [label for label, weight in weights if weight > 0]
    if len(present) < 2:
        only = (present or list(counts.labels.values))[0]
        others = ", with a weight above 0" if len(counts.labels) > 1 else ""
        what = f"one class only, {only!r}{others}; a classifier needs at least two"
        raise InputError(what, column=target, value=only)
    return counts


def unlabelled_notes(target: str, counted: CountResult) -> list[Note]:
    return left_out_notes(counted.n_unlabelled, f"no value of {target!r}", target)
