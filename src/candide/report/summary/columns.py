"""Columns: what was counted of each, how much it tells, and how it is distributed given the class.

>>> from candide.demo import garden
>>> fitted = FittedModel(garden())
>>> [(c.column, c.missing, {k: round(v, 1) for k, v in c.statistics.items()}) for c in summarize_counted_columns(fitted)][:1]
[('height_cm', 0.0, {'mean': 41.7, 'sd': 16.2})]
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.table import Name
from candide.explain import columns as explained
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_LOCATION = ("loc", "scale")  # parameters of Student's t that the mean and the deviation stand for


@dataclass(frozen=True)
class ColumnSummary:
    """One column. Where a thing is not known, no counts being kept, it is None or empty."""

    column: Name
    event: str | None  # None: the column was left out
    kind: str | None = None  # as the source has it: number, category, text, ...
    importance: float | None = None  # nats per row
    weight: float | None = None  # of the rows that have a value
    missing: float | None = None  # the share of the others
    statistics: Mapping[str, float] = field(
        default_factory=dict
    )  # over all classes; a whole number is how many there are
    levels: tuple[str, ...] = ()
    conditionals: Mapping[str, tuple[float, ...]] | None = (
        None  # a value for each class; None: the model does not use it
    )
    hidden_conditionals: tuple[str, ...] = ()  # names in ``given`` that others stand for
    is_date: bool = False  # whether its numbers are days since 1970
    conditional_title: str = "given the class"  # what ``given`` has
    group: tuple[Name, ...] = ()  # the columns it is modelled together with, itself among them: one strength for all


def summarize_counted_columns(
    fitted: FittedModel, column_types: Mapping[Name, str] | None = None
) -> list[ColumnSummary]:
    """Every column that was counted, in the order of the counts; no column where these are not kept."""
    if not fitted.has_counts:
        return []
    census, strength = fitted.resolved_counts, fitted.column_evidence or {}
    total, found = max(float(census.class_weight.sum()), 1e-300), []
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        if part.is_joint_term:
            continue
        pooled: Any = tally.pool()
        for j, name in enumerate(part.columns):
            weight = float(pooled.n[0, j])
            found.append(
                ColumnSummary(
                    name,
                    part.event.name,
                    (column_types or {}).get(name),
                    strength.get(name),
                    weight,
                    max(1.0 - weight / total, 0.0),
                    _pooled_statistics(part, pooled, j) if weight else {},
                    _level_names(part, j),
                    is_date=name in fitted.dates,
                    group=part.columns if part.event.is_joint else (),
                )
            )
    return found


def summarize_conditionals(fitted: FittedModel, max_levels: int) -> list[ColumnSummary]:
    """Every column that the model uses, given the class, with what was counted of it; strongest first."""
    known, strength = {one.column: one for one in summarize_counted_columns(fitted)}, fitted.column_evidence or {}
    found = []
    for one in explained.iterate_conditionals(fitted, max_levels):
        before = known.get(one.column) or ColumnSummary(
            one.column, one.event, importance=strength.get(one.column), is_date=one.column in fitted.dates
        )
        rows = dict(zip(one.row_names, one.values, strict=True))
        rows, less = _with_moments(rows)
        given = {name: tuple(values.tolist()) for name, values in rows.items()}
        found.append(replace(before, conditionals=given, hidden_conditionals=less))
    return sort_by_importance(found)


def sort_by_importance(columns: Iterable[ColumnSummary]) -> list[ColumnSummary]:
    """Columns by how much they tell; those of which that is not known come last."""
    return sorted(columns, key=lambda one: np.inf if one.importance is None else -one.importance)


def column_notes(columns: Sequence[ColumnSummary]) -> list[str]:
    """A word on every column in which no row has a value, and on few whole numbers that were taken for codes."""
    empty = [one.column for one in columns if one.weight == 0]
    notes = [f"column {name!r} is empty: no row has a value, so it tells nothing" for name in empty]
    codes = [one.column for one in columns if one.kind == "whole" and one.levels]
    if codes:
        few = len(codes) == 1
        head = f"column{'' if few else 's'} {formatting.format_list(codes, 5)} {'has' if few else 'have'} few different whole"
        why = "numbers, which tell more of the class as categories than as amounts"
        notes.append(f"{head} {why}; to decide it, name an event model: --event {codes[0]}=gaussian (events={{...}})")
    return notes


def _level_names(part: PlanPart, j: int) -> tuple[str, ...]:
    """The levels of a column; the cells of a grid are none."""
    return part.encodings[j].level_names() if part.block_kind == "codes" and part.encodings[j].is_read_as_text else ()


def _pooled_statistics(part: PlanPart, pooled: Any, j: int) -> dict[str, float]:
    if part.block_kind == "codes" and not part.encodings[j].is_read_as_text:
        return {"cell": int(part.encodings[j].n_levels or 0)}
    return pooled.summarize_feature(j)


def _with_moments(rows: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Before the parameters of Student's t its mean and deviation, what an analyst looks for: of the law, not the rows.

    So what is shown is what scores a row, beside the degrees of freedom that go with it.
    """
    log = "log_" if "log_df" in rows else ""
    if f"{log}loc" not in rows:
        return rows, ()
    df, mean, scale = (rows[f"{log}{name}"] for name in ("df", "loc", "scale"))
    deviation = scale * np.sqrt(np.where(df > 2, df / np.where(df > 2, df - 2, 1), np.inf))
    return {f"{log}mean": mean, f"{log}sd": deviation, **rows}, tuple(log + name for name in _LOCATION)
