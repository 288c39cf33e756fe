"""Checking: what may be wrong with a table, before anything is learned from it. One pass to count, one to look at rows.

>>> rows = {"age": [20.0 + i % 41 for i in range(200)], "cured": [i % 5 % 2 for i in range(200)]}
>>> rows["discharged_as"] = ["well" if cured else "ill" for cured in rows["cured"]]
>>> [(one.code, one.column) for one in check(rows, "cured").findings]
[('leak', 'discharged_as')]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from candide.engines.base import Prepared, Rows, Source, Watch, open_source, silent
from candide.engines.reading import Reading
from candide.model.census import Census
from candide.rows.kinds import Column
from candide.rows.remarks import Remark
from candide.tasks.learn import checked, unlabelled

_LOOKED_AT = 50_000  # rows, spread over the source


@dataclass(frozen=True)
class Checked:
    """A table that was checked: its counts, what was made of each column, what was found, and what a fit remarks on."""

    census: Census
    columns: list[Column]
    findings: list[Remark]  # gravest first
    remarks: list[Remark]


def check(
    data: Any,
    target: str,
    *,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Checked:
    """Look for what may be wrong with a table: leaks, copies, codes for "missing", ids, constants, rare classes.

    Each finding has a ``code``, the ``column`` it is about, and a ``remedy``. The arguments are those of ``learn``.
    """
    from candide.engines.count import count
    from candide.engines.prepare import prepare
    from candide.tasks.findings import contradictions, findings
    from candide.tasks.look import with_grids
    from candide.tasks.looks import Sample

    with open_source(data, reading) as source:
        labelled = Rows(source, target, weight)
        prepared = with_grids(labelled, prepare(source, target, events, drop, weight))
        with watch(source, "counting"):
            counted = count(labelled, prepared)
        [census] = counted.censuses
        checked(census, target)
        with watch(source, "looking"):
            rows = _spread(source, target, prepared, census.n_rows + counted.unlabelled)
    dates = {one.name for one in prepared.columns if one.kind == "date"}
    found = findings(census, Sample.of(rows, target, census, dates), prepared.head)
    early = contradictions(census, prepared.head, prepared.declared)
    told = [*prepared.remarks, *unlabelled(target, counted), *early]
    found = [note for note in told if note.code == "repeated-header"] + found  # rows that were left out
    return Checked(census, prepared.columns, found, [note for note in told if note.code != "repeated-header"])


def _spread(source: Source, target: str, prepared: Prepared, n_rows: int) -> Any:
    """Rows from all over a source, those that were read already where these are all."""
    import numpy as np
    import pyarrow as pa

    if prepared.head.num_rows >= n_rows:
        return prepared.head
    step, start, taken = max(1, -(-n_rows // _LOOKED_AT)), 0, []
    for batch in source.batches([target, *map(str, prepared.plan.columns)], 1 << 16):
        taken.append(batch.take(pa.array(np.arange(-start % step, batch.num_rows, step))))
        start += batch.num_rows
    return pa.Table.from_batches(taken)
