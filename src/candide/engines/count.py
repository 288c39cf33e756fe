"""Counting a source: what its engine says itself, and the rest from its batches by the array engine.

Documents, columns modelled together, a user's own transform, and very many numbers are such a rest. Both are one census
a fold.

>>> from candide.engines.base import open_source
>>> from candide.engines.prepare import prepare
>>> rows = {"note": ["free prize for you now", "see you at five then"] * 12, "age": [8.0, 30.5] * 12, "y": [1, 0] * 12}
>>> with open_source(rows) as source:
...     [census] = count(Rows(source, "y"), prepare(source, "y", {"note": "text"})).censuses
>>> [type(tally).__name__ for tally in census.tallies]
['Terms', 'Moments']
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.engines import arrays
from candide.engines.base import Counted, Prepared, Rows
from candide.engines.batch import batch_size
from candide.errors import InputError
from candide.model.census import Census, join
from candide.model.plan import Plan
from candide.rows.table import Table


def count(rows: Rows, prepared: Prepared) -> Counted:
    """One census a fold (one in all without folds)."""
    engine = rows.source.engine
    itself, rest = (_parts(prepared.plan, engine.says, wanted) for wanted in (True, False))
    if not rest.parts:
        return engine.count(rows, prepared)
    read = _from_batches(rows, rest)
    if not itself.parts:
        return read
    asked = engine.count(rows, replace(prepared, plan=itself))
    joined = [join(a, b, prepared.plan) for a, b in zip(asked.censuses, read.censuses, strict=True)]
    return Counted(joined, read.unlabelled)


def _parts(plan: Plan, says: Any, wanted: bool) -> Plan:
    """The plan of the parts that the engine says, or of the others."""
    parts = tuple(part for part in plan.parts if says(part) is wanted)
    used = {name for part in parts for name in part.columns}
    return Plan(tuple(name for name in plan.columns if name in used), parts)


def _from_batches(rows: Rows, plan: Plan) -> Counted:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [rows.target, *([rows.weight] if rows.weight else []), *map(str, plan.columns)]
    first = len(names) - len(plan.columns)
    censuses: list[Census | None] = [None] * rows.n_folds
    unlabelled = 0
    for batch in rows.source.batches(names, batch_size(plan), rows.folds):
        fold = [pc.equal(batch.columns[-1], f) for f in range(rows.n_folds)] if rows.folds else [None]
        for f, mine in enumerate(fold):
            some = batch if mine is None else batch.filter(mine)
            labelled = some.filter(pc.is_valid(some.column(0)))
            unlabelled += some.num_rows - labelled.num_rows
            if labelled.num_rows:
                table = Table.of(dict(zip(plan.columns, labelled.columns[first : len(names)], strict=True)))
                w = weights(rows.weight, labelled.column(1)) if rows.weight else None
                y = pa.chunked_array([labelled.column(0)])
                census = arrays.count(table, y, w, plan=plan.with_levels(table))
                before = censuses[f]
                censuses[f] = census if before is None else before + census
    found = [c for c in censuses if c is not None]
    if len(found) < rows.n_folds:
        raise InputError(f"too few rows of {rows.source.name} have a label", column=rows.target)
    return Counted(found, unlabelled)


def weights(name: str, column: Any) -> NDArray[np.float64]:
    """Row weights of an Arrow column: numbers >= 0."""
    import pyarrow as pa

    try:
        w = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise InputError(f"weights must be numbers >= 0; {error}", column=name) from None
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        met = None if np.isnan(w[bad[0]]) else float(w[bad[0]])
        text = "a weight is missing, infinite or negative; weights must be numbers >= 0"
        raise InputError(text, column=name, value=met)
    return w
