"""Typical values: of each column the most frequent level, or the median of its numbers.

>>> from candide.demo import garden
>>> find_typical_values(FittedModel(garden()))["soil"]
'chalk'
"""

from typing import Any

import numpy as np

from candide.data.table import Name
from candide.errors import InputError
from candide.explain.axes import expected_rows, value_in_cell
from candide.model.fitted import FittedModel


def find_typical_values(fitted: FittedModel) -> dict[Name, Any]:
    """Return a value for each column of which one is known; text has none, nor have levels without counts."""
    out: dict[Name, Any] = {}
    for i, part in enumerate(fitted.plan.parts):
        if part.event.has_density and part.block_kind != "documents":
            for j, name in enumerate(part.columns):
                value = _typical_value(fitted, i, j)
                if value is not None:
                    out.setdefault(name, value)
    return out


def _typical_value(fitted: FittedModel, i: int, j: int) -> Any:
    part, law = fitted.plan.parts[i], fitted.model.distributions[i]
    known, encoding = law.level_scores(), part.encodings[j]
    if known is None:
        return _median(fitted, i, j) if part.block_kind == "numbers" else None
    if not fitted.has_counts:
        return None
    tally: Any = fitted.selected_counts.tallies[i]
    counts = tally.counts[:, slice(*known.offsets[j : j + 2])].sum(axis=0)
    if not counts.any():
        return None
    if encoding.is_read_as_text:
        values = encoding.labels.values  # type: ignore[attr-defined]
        return values[int(counts[: len(values)].argmax())]
    cell = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    return value_in_cell(fitted, part.columns[j], encoding, min(cell, len(counts) - 1))  # type: ignore[arg-type]


def _median(fitted: FittedModel, i: int, j: int) -> float | None:
    """Return the median of the numbers that a distribution expects."""
    try:
        drawn = expected_rows(fitted.model.distributions[i], tuple(fitted.class_proportions.tolist()))[:, j]
    except (InputError, ValueError):  # a distribution that cannot draw, or no rows left
        return None
    drawn = drawn[np.isfinite(drawn)]
    return float(np.median(drawn)) if len(drawn) else None
