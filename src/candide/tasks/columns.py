"""Some columns of a source as a model reads them, with the class of each row: what pictures are drawn from.

>>> from candide.demo import garden
>>> from candide.engines.base import open_source
>>> with open_source({"height_cm": [20.0, 50.0], "herb": ["thyme", None]}) as source:
...     columns, codes = columns_of(source, Fitted(garden()), ["height_cm"], "herb")
>>> columns["height_cm"].tolist(), codes.tolist()
([20.0, 50.0], [2, -1])
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.engines.base import Source
from candide.engines.batch import places
from candide.errors import unknown
from candide.model.fitted import Fitted
from candide.model.plan import Plan
from candide.rows.table import Name
from candide.rows.temporal import in_time
from candide.tasks.scoring import LeftOut, Truth, prepare_to_score


def columns_of(
    source: Source, fitted: Fitted, features: Sequence[Name], target: str | None = None
) -> tuple[dict[Name, Any], NDArray | None]:
    """Columns of all rows, and class codes, -1 where there is none; None where no target is given.

    A warning says how many rows have no class, or one that the model does not know.
    """
    import pyarrow as pa

    plan = _only(fitted.plan, features)
    for name in features:
        if str(name) not in source.columns:
            raise unknown(f"column in {source.name}:", str(name), source.columns)
    prepare_to_score(source, plan, fitted, target)
    scan = source.engine.score(source, plan, [target] if target else [], codes=False)
    table = pa.Table.from_batches(scan.batches, scan.schema).combine_chunks()
    read: dict[Name, Any] = {}
    for i, (part, j) in enumerate(places(plan)):
        name, column = part.columns[j], table.column(i).combine_chunks()
        if part.holds == "codes" and part.encodings[j].as_written:
            read[name] = column
            continue
        read[name] = column.to_numpy(zero_copy_only=False)
        if kind := source.temporal_kind(str(name)):
            read[name] = in_time(read[name], kind)
    if target is None:
        return read, None
    truth, left_out = Truth.of_column(fitted.labels, table.column("k0")), LeftOut(fitted.labels)
    left_out.add(truth)
    left_out.tell(target, stacklevel=3)
    return read, np.where(truth.known, truth.codes, -1)


def _only(plan: Plan, features: Sequence[Name]) -> Plan:
    parts = []
    for part in plan.parts:
        mine = [j for j, name in enumerate(() if part.beside else part.columns) if name in features]
        if mine:
            some = part.only(mine)
            parts.append(replace(part, columns=some.columns, encodings=some.encodings))
    return Plan(tuple(features), tuple(parts))
