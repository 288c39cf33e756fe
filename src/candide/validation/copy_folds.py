"""Folds that keep copies of a row together, so that no fold is scored by a model that was trained on the same row.

Equal rows that chance explains are independent: they are divided among folds like other rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.data.notes import Note
from candide.data.repeated_rows import DistinctRows
from candide.data.row_hash import hash_column, mix
from candide.data.sampling import assign_folds
from candide.engines.base import Folds, FoldsOfRows, LabelledSource, PreparedSource
from candide.engines.distinct_sample import DistinctDrawing
from candide.engines.draw_sample import draw_sample
from candide.errors import InputError
from candide.model.plan import Plan, PlanPart

_COPIED = 0.05  # share of the rows that are copies, below which rows are divided one by one
_MOSTLY = 0.5  # share of the equal rows that are copies, from which on all equal rows of a large table stay together
_MOST_ROWS = 50_000_000  # of which a number each is held in memory


def keep_copies_together(
    rows: LabelledSource, prepared: PreparedSource, folds: Folds, ignored: Sequence[str] = ()
) -> tuple[Folds, list[Note]]:
    """The folds of a source that has not been divided yet, where some rows are copies; a note where that cannot be.

    Rows are equal that agree in the label and in all columns of the model but those ``ignored``.
    """
    plan = _without(prepared.plan, ignored)
    if folds.key_column is not None or not plan.parts:
        return folds, []
    try:
        seen = draw_sample(replace(rows, folds=None), replace(prepared, plan=plan))
        distinct = seen.distinct()
    except InputError:  # which is told where rows are counted
        return folds, []
    copied, total = float(distinct.frequency[distinct.weight_per_draw > 1.0].sum()), float(distinct.frequency.sum())
    if copied < _COPIED * total:
        return folds, []
    repeated = float(distinct.frequency[distinct.frequency > 1.0].sum())
    is_whole = seen.n_pooled is None and not seen.is_part
    if not rows.source.takes_folds or not (is_whole or copied >= _MOSTLY * repeated):
        return folds, [_divided(copied / total)]
    found = rows.source.engine.gather(replace(rows, folds=None), plan, _Identities(DistinctDrawing.of(plan)))
    if len(found) > _MOST_ROWS:
        return folds, [_divided(copied / total)]
    if is_whole:
        fold = np.zeros(len(found), np.intp)
        fold[seen.row_number] = _by_draws(distinct, seen.weight, folds.n)
    else:
        fold = _by_groups(found, folds)
    return folds._replace(rows=FoldsOfRows(fold)), []


def _without(plan: Plan, ignored: Sequence[str]) -> Plan:
    """A plan that reads all columns but some."""
    parts = list[PlanPart]()
    for part in plan.parts:
        kept = [j for j, name in enumerate(part.columns) if str(name) not in ignored]
        if kept:
            columns, encodings = [part.columns[j] for j in kept], [part.encodings[j] for j in kept]
            parts.append(replace(part, columns=tuple(columns), encodings=tuple(encodings)))
    return Plan(tuple(name for part in parts for name in part.columns), tuple(parts))


def _divided(share: float) -> Note:
    text = f"{share:.1%} of the rows are copies of another row, and are divided among the folds: scores are too good"
    return Note("repeated-rows", text, remedy="remove the copies, or name a column that copies share: --fold-by")


def _by_draws(rows: DistinctRows, weight: Floats | None, n: int) -> Codes:
    """(row,) its fold: independent draws of equal rows are divided, copies are not."""
    own = np.ones(len(rows.group)) if weight is None else weight
    _, fold, share = rows.assign_folds(n)
    ends = np.cumsum(share)
    order = np.argsort(rows.group, kind="stable")
    middle = np.cumsum(own[order]) - own[order] / 2  # entries and rows are both in the order of distinct rows
    out = np.empty(len(order), np.intp)
    out[order] = fold[np.minimum(np.searchsorted(ends, middle), len(fold) - 1)]
    return out


def _by_groups(found: NDArray, folds: Folds) -> Codes:
    """(row,) its fold, the same for all equal rows: those of a class are divided in an order drawn by contents."""
    _, first, group = np.unique(found[:, 0], return_index=True, return_inverse=True)
    _, label = np.unique(found[first, 1], return_inverse=True)
    return assign_folds(label, folds.n, mix(found[first, 0], folds.seed))[group]


class _Identities:
    """(row, 2) a number that equal rows share, and the hash of the label."""

    def __init__(self, drawing: DistinctDrawing):
        self.drawing = drawing

    def __call__(self, batches: Iterable[Any], first: int) -> NDArray:
        parts = [np.column_stack([self.drawing.hashes(batch)[1], hash_column(batch.column("k0"))]) for batch in batches]
        return self.combine(parts)

    def combine(self, parts: Sequence[NDArray]) -> NDArray:
        return np.concatenate(parts) if parts else np.empty((0, 2), np.uint64)
