"""Folds that keep copies of a row together, so that no row is scored by a model that was trained on a copy of it.

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

_MIN_COPIED = 0.05  # proportion of copies below which rows are divided one by one
_MOSTLY_COPIED = 0.5  # proportion of copies among equal rows above which all equal rows of a large table stay together
_MAX_ROWS = 50_000_000  # a number of each is held in memory


def keep_copies_together(
    rows: LabelledSource, prepared: PreparedSource, folds: Folds, ignored: Sequence[str] = ()
) -> tuple[Folds, list[Note]]:
    """The folds of a source of which some rows are copies; a note where copies cannot be kept together.

    Rows are equal that agree in the label and in all columns of the model but those ``ignored``.
    """
    plan = _without_columns(prepared.plan, ignored)
    if folds.key_column is not None or not plan.parts:
        return folds, []
    try:
        sample = draw_sample(replace(rows, folds=None), replace(prepared, plan=plan))
        distinct = sample.distinct()
    except InputError:  # raised again where rows are counted
        return folds, []
    copied, total = float(distinct.frequency[distinct.weight_per_draw > 1.0].sum()), float(distinct.frequency.sum())
    if copied < _MIN_COPIED * total:
        return folds, []
    repeated = float(distinct.frequency[distinct.frequency > 1.0].sum())
    is_whole = sample.n_pooled is None and not sample.is_part
    if not rows.source.takes_folds or not (is_whole or copied >= _MOSTLY_COPIED * repeated):
        return folds, [_divided_note(copied / total)]
    identities = rows.source.engine.gather(
        replace(rows, folds=None), plan, _Identities(DistinctDrawing.from_plan(plan))
    )
    if len(identities) > _MAX_ROWS:
        return folds, [_divided_note(copied / total)]
    if is_whole:
        fold = np.zeros(len(identities), np.intp)
        fold[sample.row_number] = _assign_draws(distinct, sample.weight, folds.n)
    else:
        fold = _assign_groups(identities, folds)
    return folds._replace(rows=FoldsOfRows(fold)), []


def _without_columns(plan: Plan, ignored: Sequence[str]) -> Plan:
    """A plan that reads all columns but some."""
    parts = list[PlanPart]()
    for part in plan.parts:
        places = [j for j, name in enumerate(part.columns) if str(name) not in ignored]
        if places:
            columns, encodings = [part.columns[j] for j in places], [part.encodings[j] for j in places]
            parts.append(replace(part, columns=tuple(columns), encodings=tuple(encodings)))
    return Plan(tuple(name for part in parts for name in part.columns), tuple(parts))


def _divided_note(proportion: float) -> Note:
    text = (
        f"{proportion:.1%} of the rows are copies of another row, and are divided among the folds: scores are too good"
    )
    return Note("repeated-rows", text, remedy="remove the copies, or name a column that copies share: --fold-by")


def _assign_draws(rows: DistinctRows, weight: Floats | None, n: int) -> Codes:
    """(row,) its fold: independent draws of equal rows are divided, copies are not."""
    weight = np.ones(len(rows.group)) if weight is None else weight
    _, fold, entry_weight = rows.assign_folds(n)
    ends = np.cumsum(entry_weight)
    order = np.argsort(rows.group, kind="stable")
    middle = np.cumsum(weight[order]) - weight[order] / 2  # entries and rows are both in the order of distinct rows
    out = np.empty(len(order), np.intp)
    out[order] = fold[np.minimum(np.searchsorted(ends, middle), len(fold) - 1)]
    return out


def _assign_groups(identities: NDArray, folds: Folds) -> Codes:
    """(row,) its fold, the same for all equal rows: those of a class are divided in an order drawn by contents."""
    _, first, group = np.unique(identities[:, 0], return_index=True, return_inverse=True)
    _, label = np.unique(identities[first, 1], return_inverse=True)
    return assign_folds(label, folds.n, mix(identities[first, 0], folds.seed))[group]


class _Identities:
    """(row, 2) a number that equal rows share, and the hash of the label."""

    def __init__(self, drawing: DistinctDrawing):
        self.drawing = drawing

    def __call__(self, batches: Iterable[Any], first: int) -> NDArray:
        parts = [np.column_stack([self.drawing.hashes(batch)[1], hash_column(batch.column("k0"))]) for batch in batches]
        return self.combine(parts)

    def combine(self, parts: Sequence[NDArray]) -> NDArray:
        return np.concatenate(parts) if parts else np.empty((0, 2), np.uint64)
