"""Count a source: the parts that its engine can count by itself, and the others from batches by the array engine.

The others are documents, joint terms, transforms of the user, and all columns of a table so wide that a query of them
would be slow to plan.

>>> from candide.engines.base import open_source
>>> from candide.engines.planning import prepare_source
>>> rows = {"note": ["free prize for you now", "see you at five then"] * 12, "age": [8.0, 30.5] * 12, "y": [1, 0] * 12}
>>> with open_source(rows) as source:
...     [counts] = count_source(LabelledSource(source, "y"), prepare_source(source, "y", {"note": "text"})).fold_counts
>>> [type(tally).__name__ for tally in counts.tallies]
['TokenCounts', 'Moments']
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_numbers
from candide.data.labels import Labels, has_label
from candide.data.limits import LIMITS
from candide.data.notes import Note, left_out_notes
from candide.data.table import Table
from candide.data.value_matching import parse_levels
from candide.encoding import CodeMapping, LevelEncoding
from candide.engines import arrays
from candide.engines.base import CountResult, Folds, LabelledSource, PreparedSource
from candide.engines.batches import iterate_columns
from candide.errors import InputError
from candide.kernels import threads
from candide.model.counts import ModelCounts, join_counts
from candide.model.plan import Plan, PlanPart
from candide.tally.precision import estimate_scale


def count_source(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    """The counts of each fold (of all rows without folds)."""
    result = _count_once(rows, prepared)
    if not rows.source.is_untyped:
        return result
    labels = Labels.from_values([label for counts in result.fold_counts for label in counts.labels.values])
    parsed = parse_levels(list(labels.values))
    return replace(result, fold_counts=[counts.relabel(parsed) for counts in result.fold_counts])


def _count_once(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    engine, plan = rows.source.engine, prepared.plan
    parts = engine.countable_parts(plan, rows)
    queried, rest = _select_parts(plan, parts), _select_parts(plan, [part for part in plan.parts if part not in parts])
    if set(queried.columns) <= set(rest.columns):  # all of them are read anyway
        queried, rest = _select_parts(plan, []), plan
    if not rest.parts:
        return _recount_exactly(rows, prepared, engine.count(rows, prepared))
    rows.source.passes = 2 if queried.parts else 1
    from_batches = _count_batches(rows, replace(prepared, plan=rest))
    if not queried.parts:
        return from_batches
    prepared = replace(prepared, plan=queried)
    from_query = _recount_exactly(rows, prepared, engine.count(rows, prepared))
    pairs = zip(from_query.fold_counts, from_batches.fold_counts, strict=True)
    return CountResult([join_counts(a, b, plan) for a, b in pairs], from_batches.n_unlabelled)


def _recount_exactly(rows: LabelledSource, prepared: PreparedSource, counted: CountResult) -> CountResult:
    """The result of an engine that sums in doubles; columns that spread too far for that are summed again, exactly."""
    head, far = None, list[tuple[int, list[int]]]()
    for i, part in enumerate(prepared.plan.parts):
        tallies = [counts.tallies[i] for counts in counted.fold_counts]
        if tallies[0].can_be_imprecise:
            head = _read_sample(rows, prepared) if head is None else head
            scale = _value_scale(part, head)
            columns = sorted({int(j) for tally in tallies for j in tally.imprecise_features(scale)})
            far += [(i, columns)] if columns else []
    if not far:
        return counted
    plan = _select_parts(prepared.plan, [prepared.plan.parts[i].select_features(columns) for i, columns in far])
    rows.source.passes += 1
    again = _count_batches(rows, replace(prepared, plan=plan))
    pairs = zip(counted.fold_counts, again.fold_counts, strict=True)
    return replace(counted, fold_counts=[_replace_columns(counts, exact, far) for counts, exact in pairs])


def _read_sample(rows: LabelledSource, prepared: PreparedSource) -> Table:
    """First rows of the plan's columns."""
    head = rows.source.head(LIMITS.wide_rows) if prepared.head is None else prepared.head
    return Table.from_data(head.select([str(name) for name in prepared.plan.columns]))


def _value_scale(part: PlanPart, head: Table) -> NDArray[np.float64]:
    """How fine the values of each column are; infinite where the first rows are not numbers, so that none is far."""
    try:
        block = part.spec.tally_values(np.asarray(part.block(head), np.float64))
    except InputError:
        return np.full(len(part.columns), np.inf)
    return estimate_scale(block, len(block))


def _replace_columns(counts: ModelCounts, exact: ModelCounts, places: list[tuple[int, list[int]]]) -> ModelCounts:
    """Counts with columns of parts replaced by exact ones."""
    classes = np.array([counts.labels.index[label] for label in exact.labels.values], np.intp)
    tallies: list[Any] = list(counts.tallies)
    for (i, columns), tally in zip(places, exact.tallies, strict=True):
        moved = tally.remap(classes, len(counts.labels))
        for at, j in enumerate(columns):
            tallies[i] = tallies[i].replace_feature(j, moved, at)
    return replace(counts, tallies=tuple(tallies))


def _select_parts(plan: Plan, parts: list[PlanPart]) -> Plan:
    """The plan of these parts."""
    used = {name for part in parts for name in part.columns}
    return Plan(tuple(name for name in plan.columns if name in used), tuple(parts))


def _deduplicate_columns(plan: Plan) -> Plan:
    """A plan that reads every column once, though it may serve several parts."""
    parts, seen = list[PlanPart](), set[Any]()
    for part in plan.parts:
        new = [j for j, name in enumerate(part.columns) if name not in seen]
        seen |= set(part.columns)
        if new:
            columns = tuple(part.columns[j] for j in new)
            parts.append(replace(part, columns=columns, encodings=tuple(part.encodings[j] for j in new)))
    return Plan(plan.columns, tuple(parts))


def _count_batches(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    """All parts of a plan by the array engine."""
    once = _deduplicate_columns(prepared.plan)
    names = [part.columns[j] for part, j in iterate_columns(once)]
    counter = BatchCounter(prepared.plan, names, rows.weight, rows.folds)
    fold_counts, n_unlabelled = rows.source.engine.gather(rows, once, counter)
    first = next((counts for counts in fold_counts if counts), None)
    if first is None:
        raise InputError(f"no row of {rows.source.name} has a label", column=rows.target)
    complete = [counts or _empty_counts(first) for counts in fold_counts]
    return CountResult(_parse_text_levels(complete, prepared.text_level_columns), n_unlabelled)


def _empty_counts(counts: ModelCounts) -> ModelCounts:
    """The counts of no rows: folds by a key may be empty."""
    tallies = tuple(tally.scale(0.0) for tally in counts.tallies)
    return replace(counts, class_weight=np.zeros(len(counts.labels)), tallies=tallies, n_rows=0)


class FoldCounts(NamedTuple):
    """The counts of each fold, None where it has no row, and the number of rows without a label."""

    fold_counts: list[ModelCounts | None]
    n_unlabelled: int


@dataclass(frozen=True)
class BatchCounter:
    """Count batches on threads, and add their counts in order."""

    plan: Plan
    names: list[Any]  # of the columns of a batch
    weight: str | None = None
    folds: Folds | None = None

    def __call__(self, batches: Iterable[Any], first: int = 0) -> FoldCounts:
        return self._sum_parts(threads.map_ahead(self._count_batch, batches))

    def combine(self, parts: Sequence[FoldCounts]) -> FoldCounts:
        return self._sum_parts(parts)

    def _sum_parts(self, parts: Iterable[FoldCounts]) -> FoldCounts:
        totals, unlabelled = [_CountsSum() for _ in range(self.folds.n if self.folds else 1)], 0
        for fold_counts, missing in parts:
            unlabelled += missing
            for total, counts in zip(totals, fold_counts, strict=True):
                if counts is not None:
                    total.add(counts)
        return FoldCounts([total.total() if total.runs else None for total in totals], unlabelled)

    def _count_batch(self, batch: Any) -> FoldCounts:
        import pyarrow as pa
        import pyarrow.compute as pc

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
        return FoldCounts(out, batch.num_rows - labelled.num_rows)


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
    """Parse levels that were counted as text, in all folds in the same way."""
    plan = reduce(lambda a, b: a.union(b)[0], (counts.plan for counts in fold_counts))
    parsed = [
        [parse_levels(list(e.labels.values)) if isinstance(e, LevelEncoding) else {} for e in part.encodings]
        if part.block_kind == "codes" and not set(map(str, part.columns)).isdisjoint(text_columns)
        else []
        for part in plan.parts
    ]
    return [_with_parsed_levels(counts, parsed) for counts in fold_counts] if any(parsed) else fold_counts


def _with_parsed_levels(counts: ModelCounts, parsed: list[list[dict]]) -> ModelCounts:
    counted = []
    for part, tally, values in zip(counts.plan.parts, counts.tallies, parsed, strict=True):
        if values:
            read = [_parse_encoding(e, v) for e, v in zip(part.encodings, values, strict=True)]
            part = replace(part, encodings=tuple(encoding for encoding, _ in read))
            classes = np.arange(len(counts.labels))
            tally = tally.remap(classes, len(classes), [move for _, move in read])
        counted.append((part, tally))
    parts, tallies = zip(*counted, strict=True)
    return replace(counts, plan=Plan(counts.plan.columns, parts), tallies=tallies)


def _parse_encoding(encoding: Any, parsed: dict[Any, Any]) -> tuple[Any, CodeMapping]:
    """An encoding with its levels parsed, and their new codes."""
    if not parsed:
        return encoding, CodeMapping(np.arange(encoding.n_levels), encoding.n_levels)
    values = [parsed[level] for level in encoding.labels.values]
    labels = Labels.from_values(values)
    return replace(encoding, labels=labels), CodeMapping(labels.encode(values), len(labels))


def parse_row_weights(name: str, column: Any) -> NDArray[np.float64]:
    """Row weights of an Arrow column: numbers >= 0."""
    import pyarrow as pa

    try:
        w = arrow_numbers(column.cast(pa.float64()))
    except pa.ArrowInvalid as error:
        raise InputError(f"weights must be numbers >= 0; {error}", column=name) from None
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        value = None if np.isnan(w[bad[0]]) else float(w[bad[0]])
        text = "a weight is missing, infinite or negative; weights must be numbers >= 0"
        raise InputError(text, column=name, value=value)
    return w


def check_classes(counts: ModelCounts, target: str) -> ModelCounts:
    """Refuse counts of one class; rows of weight 0 do not count."""
    each = zip(counts.labels.values, counts.class_weight.tolist(), strict=True)
    present = [label for label, weight in each if weight > 0]
    if len(present) < 2:
        only = (present or list(counts.labels.values))[0]
        others = ", with a weight above 0" if len(counts.labels) > 1 else ""
        what = f"one class only, {only!r}{others}; a classifier needs at least two"
        raise InputError(what, column=target, value=only)
    return counts


def unlabelled_notes(target: str, counted: CountResult) -> list[Note]:
    """A note on rows without a label."""
    return left_out_notes(counted.n_unlabelled, f"no value of {target!r}", target)
