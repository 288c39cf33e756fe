"""Checking: what may be wrong with a table, before anything is learned from it. One pass to count, one to look at rows.

>>> rows = {"age": [20.0 + i % 41 for i in range(200)], "cured": [i % 5 % 2 for i in range(200)]}
>>> rows["discharged_as"] = ["well" if cured else "ill" for cured in rows["cured"]]
>>> [(one.code, one.column) for one in check_data(rows, "cured").findings]
[('leak', 'discharged_as')]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from candide.data.column_types import ColumnSchema
from candide.data.limits import LIMITS
from candide.data.notes import Note
from candide.engines.base import CountResult, LabelledSource, PreparedSource, Source, Watch, no_progress, open_source
from candide.engines.counting import check_classes, unlabelled_notes
from candide.engines.reading import ReadOptions
from candide.model.counts import ModelCounts


@dataclass(frozen=True)
class CheckResult:
    """A table that was checked: its counts, what was made of each column, what was found, and what a fit remarks on."""

    counts: ModelCounts
    columns: list[ColumnSchema]
    findings: list[Note]  # gravest first
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
    """Look for what may be wrong with a table: leaks, copies, codes for "missing", ids, constants, rare classes.

    Each finding has a ``code``, the ``column`` it is about, and a ``remedy``. The arguments are those of ``learn``.
    """
    from candide.engines.counting import count_source
    from candide.engines.draw_sample import learn_grids
    from candide.engines.planning import prepare_source
    from candide.monitoring.count_checks import find_contradictions, find_problems
    from candide.monitoring.row_checks import RowSample

    with open_source(data, reading) as source:
        labelled = LabelledSource(source, target, weight)
        prepared = learn_grids(labelled, prepare_source(source, target, events, drop, weight))
        with watch(source, "counting"):
            counted = count_source(labelled, prepared)
        [census] = counted.fold_counts
        check_classes(census, target)
        with watch(source, "looking"):
            rows = _spread_rows(source, target, prepared, census.n_rows + counted.n_unlabelled)
    dates = {one.name for one in prepared.columns if one.kind == "date"}
    found = find_problems(census, RowSample.from_table(rows, target, census, dates), prepared.head)
    early = find_contradictions(census, prepared.head, prepared.declared_columns)
    told = [*prepared.notes, *unlabelled_notes(target, counted), *early]
    found = [note for note in told if note.code == "repeated-header"] + found  # rows that were left out
    return CheckResult(census, prepared.columns, found, [note for note in told if note.code != "repeated-header"])


def _spread_rows(source: Source, target: str, prepared: PreparedSource, n_rows: int) -> Any:
    """Rows from all over a source, those that were read already where these are all."""
    import numpy as np
    import pyarrow as pa

    if prepared.head.num_rows >= n_rows:
        return prepared.head
    step, start, taken = max(1, -(-n_rows // LIMITS.audited_rows)), 0, []
    for batch in source.batches([target, *map(str, prepared.plan.columns)], 1 << 16):
        taken.append(batch.take(pa.array(np.arange(-start % step, batch.num_rows, step))))
        start += batch.num_rows
    return pa.Table.from_batches(taken)


def collect_notes(counts: ModelCounts, target: str, prepared: PreparedSource, counted: CountResult) -> list[Note]:
    """What a person should see of a source that was counted: what was made of it, and what may be wrong with it."""
    from candide.monitoring.count_checks import find_contradictions, find_problems, shorten_notes
    from candide.monitoring.row_checks import RowSample

    if prepared.head is None:  # the plan was known, and nothing was looked at
        return [*prepared.notes, *unlabelled_notes(target, counted)]
    counts = counts.select_density_parts()
    dates = {one.name for one in prepared.columns if one.kind == "date"}
    found = find_problems(
        counts, RowSample.from_table(prepared.head, target, counts, dates, LIMITS.checked_rows), prepared.head
    )
    early = find_contradictions(counts, prepared.head, prepared.declared_columns)
    return [*prepared.notes, *unlabelled_notes(target, counted), *early, *shorten_notes(found)]
