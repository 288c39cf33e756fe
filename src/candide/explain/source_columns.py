"""Some columns of a source as a model reads them, with the class of each row: what pictures are drawn from.

>>> from candide.demo import garden
>>> from candide.engines.base import open_source
>>> with open_source({"height_cm": [20.0, 50.0], "herb": ["thyme", None]}) as source:
...     columns, codes = read_columns(source, FittedModel(garden()), ["height_cm"], "herb")
>>> columns["height_cm"].tolist(), codes.tolist()
([20.0, 50.0], [2, -1])
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.table import Name
from candide.data.temporal import in_time
from candide.engines.base import Source
from candide.engines.batches import iterate_columns
from candide.engines.scoring import SkippedRows, TrueClasses, prepare_to_score
from candide.errors import unknown_name_error
from candide.model.fitted import FittedModel
from candide.model.plan import Plan


def read_columns(
    source: Source, fitted: FittedModel, features: Sequence[Name], target: str | None = None
) -> tuple[dict[Name, Any], NDArray | None]:
    """Columns of all rows, and class codes, -1 where there is none; None where no target is given.

    A warning says how many rows have no class, or one that the model does not know.
    """
    import pyarrow as pa

    plan = _select_features(fitted.plan, features)
    for name in features:
        if str(name) not in source.columns:
            raise unknown_name_error(f"column in {source.name}:", str(name), source.columns)
    prepare_to_score(source, plan, fitted, target)
    scan = source.engine.score(source, plan, [target] if target else [], codes=False)
    table = pa.Table.from_batches(scan.batches, scan.schema).combine_chunks()
    read: dict[Name, Any] = {}
    for i, (part, j) in enumerate(iterate_columns(plan)):
        name, column = part.columns[j], table.column(i).combine_chunks()
        if part.block_kind == "codes" and part.encodings[j].is_read_as_text:
            read[name] = column
            continue
        read[name] = column.to_numpy(zero_copy_only=False)
        if kind := source.temporal_kind(str(name)):
            read[name] = in_time(read[name], kind)
    if target is None:
        return read, None
    truth, left_out = TrueClasses.from_column(fitted.labels, table.column("k0")), SkippedRows(fitted.labels)
    left_out.add(truth)
    left_out.warn(target, stacklevel=3)
    return read, np.where(truth.is_known, truth.codes, -1)


def _select_features(plan: Plan, features: Sequence[Name]) -> Plan:
    parts = []
    for part in plan.parts:
        mine = [j for j, name in enumerate(() if part.is_joint_term else part.columns) if name in features]
        if mine:
            some = part.select_features(mine)
            parts.append(replace(part, columns=some.columns, encodings=some.encodings))
    return Plan(tuple(features), tuple(parts))
