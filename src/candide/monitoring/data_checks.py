"""Data checks: what may be wrong with a table, found in its counts and in a sample of its rows."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from candide.data.blocks import Floats
from candide.data.column_types import ColumnSchema, early_decision_note
from candide.data.equal_rows import find_distinct_rows, repeated_row_notes
from candide.data.labels import Labels, has_label
from candide.data.notes import Note
from candide.data.table import LIMITS, Name, Table
from candide.data.text_formats import MISSING_MARKERS, parse_plain_number
from candide.engines.base import CountResult, LabelledSource, PreparedSource, Watch, no_progress, open_source
from candide.engines.counting import check_classes, count_source, prepare_source, unlabelled_notes
from candide.engines.draw_sample import learn_grids
from candide.engines.reading import ReadOptions
from candide.errors import InputError
from candide.formatting import format_count, format_list, format_percent
from candide.model.counts import ModelCounts
from candide.monitoring.row_checks import (
    LEAK_FRACTION,
    MIN_ROWS,
    RowSample,
    check_rows,
    drop_remedy,
    find_mixed_dates,
    group_equal_labels,
    leak_note,
    normalise_label,
    sentinel_note,
)

_LEVEL_SENTINELS = frozenset(("", "?", "na", "n/a", "nan", "null", "nil", "#n/a", "-", "."))
_LABEL_SENTINELS = _LEVEL_SENTINELS - {"-", ".", ""}  # "-" may be a class beside "+"; an empty label is missing anyway
_CONSTANT_TOLERANCE = 2 * np.finfo(float).eps  # of the sd of one value, which merging parts may leave above 0
_MAX_COMPARED_LEVELS = 100_000  # more are not compared with each other
_MANY_LEVELS, _FEW_ROWS_PER_LEVEL = 50, 5
_RARE_CLASS_ROWS = 10
_DOMINANT_PROPORTION = 0.9  # of a class, beside which accuracy is not informative
_MAX_CHANCE = 1e-6  # probability below which a pattern is not a coincidence, in any of the columns
_MAX_SHOWN = 3  # findings of one code in the notes of a fit
_SEVERITY_ORDER = (
    *("repeated-header", "label-spelling", "leak", "missing-by-class", "few-rows", "imbalance"),
    *("mixed-dates", "repeated-rows"),
    *("identifier", "missing-words", "sentinel", "level-spelling", "copy", "constant", "many-levels"),
)


@dataclass(frozen=True)
class CheckResult:
    """A checked table: its counts, the type of each column, the findings, and notes on how it was read."""

    counts: ModelCounts
    columns: list[ColumnSchema]
    findings: list[Note]  # most severe first
    notes: list[Note]


def check_data(
    data: Any,
    target: str,
    *,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> CheckResult:
    """Check a table in one pass to count it and one to sample rows; the arguments are those of ``candide.fit``."""
    with open_source(data, reading) as source:
        labelled = LabelledSource(source, target, weight)
        prepared = learn_grids(labelled, prepare_source(source, target, events, drop, weight))
        with watch(source, "counting"):
            counted = count_source(labelled, prepared)
        [counts] = counted.fold_counts
        check_classes(counts, target)
        rows, n_rows = prepared.head, counts.n_rows + counted.n_unlabelled
        with watch(source, "sampling"):
            if rows.num_rows < n_rows:  # else all have been read already
                step, start, taken = max(1, -(-n_rows // LIMITS.audited_rows)), 0, []
                for batch in source.batches([target, *map(str, prepared.plan.columns)], 1 << 16):
                    taken.append(batch.take(pa.array(np.arange(-start % step, batch.num_rows, step))))
                    start += batch.num_rows
                rows = pa.Table.from_batches(taken)
    problems, early = _find_problems(counts, target, prepared, rows)
    notes = [*prepared.notes, *unlabelled_notes(target, counted), *early]
    header = [note for note in notes if note.code == "repeated-header"]  # rows that were left out
    others = [note for note in notes if note.code != "repeated-header"]
    return CheckResult(counts, prepared.columns, header + problems, others)


def collect_notes(counts: ModelCounts, target: str, prepared: PreparedSource, counted: CountResult) -> list[Note]:
    """The notes of a fit: how the source was read, and the first findings of each code."""
    notes = [*prepared.notes, *unlabelled_notes(target, counted)]
    if prepared.head is None:  # the plan was given, and no rows were sampled
        return notes
    counts = counts.select_density_parts()
    problems, early = _find_problems(counts, target, prepared, prepared.head, LIMITS.checked_rows)
    return [*notes, *early, *shorten_notes(problems)]


def _find_problems(
    counts: ModelCounts, target: str, prepared: PreparedSource, rows: Any, max_rows: int = 1 << 62
) -> tuple[list[Note], list[Note]]:
    """Findings, most severe first, and notes on columns whose type the first rows decided too early."""
    dates, head = {column.name for column in prepared.columns if column.kind == "date"}, prepared.head
    sample = RowSample.from_table(rows, target, counts, dates, max_rows)
    distinct, copies = None, 1.0
    labelled = head.filter(has_label(head.column(target)))
    if head.num_rows >= MIN_ROWS and labelled.num_rows:
        column = labelled.column(target)
        y = Labels.from_values(column).encode(column)
        with suppress(InputError):  # an infinity, which is an error where rows are counted
            distinct = find_distinct_rows(Table.from_data(labelled.drop_columns([target])), y)
    if distinct is not None:
        copies = float(distinct.weight_per_draw_by_class(int(distinct.y.max(initial=0)) + 1).max())
    notes = list(check_counts(counts, target, copies))
    reported = {(note.code, note.column) for note in notes}
    notes += [note for note in check_rows(sample) if (note.code, note.column) not in reported]
    notes += find_mixed_dates(head, target)
    notes += [] if distinct is None else repeated_row_notes(distinct)
    early = _find_contradictions(counts, head, prepared.declared_columns)
    return sorted(notes, key=lambda note: _SEVERITY_ORDER.index(note.code)), early


def _find_contradictions(counts: ModelCounts, head: Any, declared: Collection[str]) -> list[Note]:
    """Notes on columns that are categories because the first rows hold only 0 and 1, though later rows do not."""
    table, notes = Table.from_data(head), list[Note]()
    for part in counts.plan.parts:
        if part.block_kind != "codes" or part.event.is_joint or part.event.max_levels is not None:
            continue
        for name, encoding in zip(part.columns, part.encodings, strict=True):
            values = getattr(encoding, "labels", Labels(())).values
            others = [value for value in values if _parse_number(value) not in (None, 0.0, 1.0)]
            if not others or str(name) in declared or str(name) not in map(str, table.names):
                continue
            column = table.column(name if name in table.names else str(name))
            if {_parse_number(value) for value in Labels.from_values(column).values} <= {0.0, 1.0}:
                notes.append(early_decision_note(name, table.n_rows, others))
    return notes


def _parse_number(value: Any) -> float | None:
    try:
        return parse_plain_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def check_counts(counts: ModelCounts, target: str | None = None, copies: float = 1.0) -> Iterator[Note]:
    """Yield the findings in counts of rows of which each occurs ``copies`` times."""
    yield from _repeated_header_notes(counts, target)
    yield from _near_duplicate_notes(counts.labels, "label", None)
    yield from _class_notes(counts)
    tally: Any
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        if part.event.is_joint or part.block_kind == "documents":
            continue
        pooled = tally.pool()
        for j, name in enumerate(part.columns):
            if pooled.n[0, j] > 0:
                yield from _missing_by_class_notes(name, tally.n[:, j], counts)
                summary = pooled.summarize_feature(j)
                is_flat = "sd" in summary and summary["sd"] <= _CONSTANT_TOLERANCE * abs(summary["mean"])
                if counts.n_rows >= MIN_ROWS and (summary.get("level") == 1 or is_flat):
                    text = f"column {name!r} has one value only, and is not informative"
                    yield Note("constant", text, name, drop_remedy(name))
            if part.block_kind == "codes" and part.encodings[j].is_read_as_text:  # numbers are checked in the rows
                yield from _level_notes(name, part.encodings[j], _level_counts(tally, j), counts, copies)


def _level_counts(tally: Any, j: int) -> Floats:
    return tally.select_features(np.array([j])).counts


def _level_notes(name: Name, encoding: Any, counts: Floats, model: ModelCounts, copies: float) -> Iterator[Note]:
    labels, total = encoding.labels, float(model.class_weight.sum())
    row_weight = copies * total / max(model.n_rows, 1)  # of a row with its copies
    weight = _merge_equal_labels(model.labels, model.class_weight)
    merged, leaked, others = _merge_equal_labels(model.labels, counts), 0.0, weight.sum() - weight.max()
    if len(merged) > 1 and merged.shape[1]:  # rows whose class is that of most other rows of their level
        second, first = np.partition(merged, -2, axis=0)[-2:]
        leaked = float(first[first - row_weight > second].sum())
    if others >= row_weight * MIN_ROWS / 2 and total - leaked <= (1 - LEAK_FRACTION) * others:
        yield leak_note(name, leaked / total)
    yield from _near_duplicate_notes(labels, "level", name)
    markers = [value for value in labels.values if _is_marker(value, (*_LEVEL_SENTINELS, *MISSING_MARKERS))]
    if len(markers) > 1 and any(_is_marker(marker, _LEVEL_SENTINELS) for marker in markers):
        text = f"column {name!r}: levels {format_list(markers, 4)} may all stand for a missing value"
        na = " ".join(f"--na {marker!r}" for marker in markers[:4])
        yield Note("missing-words", text, name, f"if so, make them missing: {na} (na=[...])")
    if odd := [value for value in labels.values if _is_marker(value, _LEVEL_SENTINELS)]:
        n = float(counts[:, labels.encode(np.array(odd[:1], object))].sum())
        yield sentinel_note(name, repr(odd[0]), n / total)
    n_levels = int((counts.sum(axis=0) > 0).sum())
    if n_levels >= _MANY_LEVELS and counts.sum() < _FEW_ROWS_PER_LEVEL * row_weight * n_levels:
        rows = format_count(float(counts.sum()))
        text = f"column {name!r} has {n_levels:,} levels in {rows}: too few rows per level to learn from"
        yield Note("many-levels", text, name, f"group its levels, or {drop_remedy(name)}")


def _is_marker(value: Any, markers: Collection[str]) -> bool:
    return isinstance(value, str) and value.strip().lower() in markers


def _merge_equal_labels(labels: Labels, counts: Floats) -> Floats:
    """Counts by class; classes that differ only in case or spaces are one, since such labels do not hide a leak."""
    group = group_equal_labels(labels)
    if len(group) == group.max(initial=-1) + 1:
        return counts
    merged = np.zeros((group.max() + 1, *counts.shape[1:]))
    np.add.at(merged, group, counts)
    return merged


def _repeated_header_notes(counts: ModelCounts, target: str | None) -> Iterator[Note]:
    """Columns that have their name as a value: files with headers were concatenated."""
    weight_by_name = dict[str, float]()
    if target is not None and target in counts.labels.index:
        weight_by_name[target] = float(counts.class_weight[counts.labels.index[target]])
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        if part.block_kind != "codes" or part.event.is_joint:
            continue
        for j, name in enumerate(part.columns):
            encoding: Any = part.encodings[j]
            if name != target and encoding.is_read_as_text and isinstance(name, str) and name in encoding.labels.index:
                weight_by_name[name] = float(_level_counts(tally, j)[:, encoding.labels.index[name]].sum())
    if len(weight_by_name) > 1:
        names = tuple(weight_by_name)
        rows, values = format_count(min(weight_by_name.values())), format_list(names, 4)
        text = f"the header is repeated among the rows: {rows} with the names {values} for values"
        yield Note("repeated-header", text, None, "delete these lines", names)


def _missing_by_class_notes(name: Name, n: Floats, counts: ModelCounts) -> Iterator[Note]:
    """Values that are missing in rows of one class only, or in all rows except those of one class."""
    n, weight = _merge_equal_labels(counts.labels, n), _merge_equal_labels(counts.labels, counts.class_weight)
    missing, total = np.maximum(weight - n, 0.0), float(weight.sum())
    for rows, rest, text in ((missing, n, "is missing"), (n, missing, "has a value")):
        c = int(rows.argmax())
        is_one_class = rows[c] > 0 and rows[c] >= rows.sum() * (1 - 1e-12) and rest.sum() > 0
        chance = (weight[c] / total) ** (rows[c] * counts.n_rows / total) * len(counts.plan.columns)
        if is_one_class and chance < _MAX_CHANCE:
            same = np.flatnonzero(group_equal_labels(counts.labels) == c)
            label = counts.labels.values[same[counts.class_weight[same].argmax()]]
            what = f"column {name!r} {text} in rows of class {label!r} only ({format_count(float(rows[c]))})"
            remedy = f"find out why; if new rows may differ, {drop_remedy(name)}"
            yield Note("missing-by-class", what, name, remedy)
            return


def _near_duplicate_notes(labels: Labels, what: str, column: Name | None) -> Iterator[Note]:
    """Labels or levels that differ only in case or spaces, unless there are very many."""
    if len(labels) > _MAX_COMPARED_LEVELS:
        return
    groups: dict[str, list[str]] = {}
    for value in labels.values:
        if isinstance(value, str):
            groups.setdefault(normalise_label(value), []).append(value)
    where = "labels" if column is None else f"column {column!r}: levels"
    for same in groups.values():
        if len(same) > 1:
            text = f"{where} {format_list(same, 4)} differ in case or spaces only, and count as different"
            yield Note(f"{what}-spelling", text, column, "if they mean the same, write them the same way")


def _class_notes(counts: ModelCounts) -> Iterator[Note]:
    """Classes whose name may stand for a missing label, those with very few rows, and one that outweighs all others."""
    total, weight = float(counts.class_weight.sum()), counts.class_weight
    for label, w in zip(counts.labels.values, weight.tolist(), strict=True):
        if w > 0 and _is_marker(label, _LABEL_SENTINELS):
            percent = format_percent(w / total)
            text = f"class {label!r}, of {percent} of the rows, may stand for a missing label"
            yield Note("sentinel", text, None, f"if so, make it missing: --na {label!r} (na=[...])")
    if counts.n_rows < MIN_ROWS or total <= 0:
        return
    for label, w in zip(counts.labels.values, weight.tolist(), strict=True):
        if 0 < w < _RARE_CLASS_ROWS * total / counts.n_rows:
            text = f"class {label!r} has {format_count(w)}: too few to learn from and to evaluate on"
            yield Note("few-rows", text, None, "gather more, unite it with another class, or leave its rows out")
    c = int(weight.argmax())
    if weight[c] > _DOMINANT_PROPORTION * total:
        label, percent = counts.labels.values[c], format_percent(weight[c] / total)
        text = f"class {label!r} has {percent} of the rows: always predicting it has that accuracy"
        remedy = "evaluate by AUC and log loss, not by accuracy; the rows need no rebalancing"
        yield Note("imbalance", text, None, remedy)


def shorten_notes(notes: Sequence[Note]) -> list[Note]:
    """The first findings of each code; the last of them notes how many more there are."""
    shown: list[Note] = []
    for code in dict.fromkeys(note.code for note in notes):
        same = [note for note in notes if note.code == code]
        shown += same[:_MAX_SHOWN]
        if len(same) > _MAX_SHOWN:
            rest = f"{len(same) - _MAX_SHOWN:,} more like this: candide check lists them all"
            shown[-1] = replace(shown[-1], remedy=f"{shown[-1].remedy}; {rest}")
    return shown
