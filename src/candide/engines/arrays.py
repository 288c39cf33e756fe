"""The array engine: counts rows that are in memory, with the kernels, on threads.

>>> from candide.model.plan import make_plan
>>> from candide.rows.table import Table
>>> table = Table.of([[1.0, 5.0], [3.0, 7.0]])
>>> census = count(table, ["a", "b"], plan=make_plan(table))
>>> census.tallies[0].mean.tolist()
[[1.0, 5.0], [3.0, 7.0]]
"""

from typing import Any

import numpy as np

from candide import wording
from candide.errors import InputError, TooLargeError
from candide.model.census import Census
from candide.model.plan import Part, Plan
from candide.rows.blocks import Block, Codes, Floats, first_where, not_finite
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.table import Table
from candide.tally import KINDS, Tally
from candide.tally.base import class_weights


def count(table: Table, y: Any, weight: Floats | None = None, *, plan: Plan, labels: Labels | None = None) -> Census:
    """The census of some rows. ``labels`` gives the classes where they are known beforehand."""
    labels = Labels.of(y) if labels is None else labels
    codes = labels.encode(y)
    _check_codes(codes, y, labels, table.n_rows)
    tallies = tuple(tally(part, part.block(table), codes, weight, len(labels)) for part in plan.parts)
    return Census(plan, labels, class_weights(codes, weight, len(labels)), tallies, table.n_rows)


def tally(part: Part, block: Block, y: Codes, weight: Floats | None, n_classes: int) -> Tally:
    """The tally of one block; a value that cannot be counted is an error that names its column and row."""
    spec = part.spec
    try:
        out = KINDS[spec.kind].of(block, y, weight, n_classes=n_classes, spec=spec)
    except InputError as error:
        _name_place(error, part, block)
        raise
    if (cell := out.too_large()) is not None:
        if part.holds == "documents":
            raise TooLargeError("the documents weigh too much", column=part.columns[0], remedy="divide the weights")
        at = out.place(cell[1])[0] if block.shape[1] == len(part.columns) else None
        raise not_finite(part.columns, block, spec.tallied, at)
    return out


def _name_place(error: InputError, part: Part, block: Block) -> None:
    """Let an error say which column and row it is about, where a value of a block is to blame."""
    if part.holds == "documents":
        error.column = part.columns[0]
    elif part.holds == "numbers" and (found := first_where(block, part.encodings[0].outside)):
        error.row, error.column = found[0], part.columns[found[1]]


def fractions(table: Table, plan: Plan) -> list[Remark]:
    """What a person should see of columns that were named as counts, and hold fractions: likely they are none."""
    remarks = []
    for part in plan.parts:
        whole = part.event.support is not None and part.event.support.whole
        block = part.block(table) if whole else np.empty((0, 0))
        if found := first_where(block, lambda x: np.isfinite(x) & (x != np.floor(x))):
            name, event = part.columns[found[1]], part.event.name
            text = f"column {name!r}: {found[2]:g} is no whole number, and {event} is for counts"
            remedy = "for measurements name another event model, such as gaussian or exponential"
            remarks.append(Remark("count-fraction", text, name, remedy))
    return remarks


def _check_codes(codes: Codes, y: Any, labels: Labels, n_rows: int) -> None:
    if len(codes) != n_rows:
        raise InputError(
            f"{wording.plural(n_rows)} but {wording.plural(len(codes), 'label')}", remedy="pass one label a row"
        )
    outside = np.flatnonzero((codes < 0) | (codes >= len(labels)))
    if len(outside):
        row = int(outside[0])
        if codes[row] < 0:
            raise InputError("the label is missing", row=row, remedy="drop the row or give it a label")
        label = Labels.of(y[row : row + 1]).values[0]
        raise InputError(f"the label {label!r} is not among the classes {list(labels.values)}", row=row, value=label)
