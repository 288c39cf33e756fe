"""Drift: what has moved in new rows since a model was fitted.

>>> from candide.demo import garden_rows
>>> from candide.operations import detect_drift, fit_model
>>> plants, herb = garden_rows(600, seed=0)
>>> later, _ = garden_rows(400, seed=1)
>>> model = fit_model({**plants, "herb": herb}, "herb", model="naive").fitted
>>> summarize_drift(detect_drift(model, later)).conclusion
'No column has moved by more than chance.'
"""

from collections.abc import Iterator
from dataclasses import dataclass

from candide import formatting
from candide.data.table import Name
from candide.monitoring.drift import DENSITY_QUANTILES, ColumnDrift, Drift, PredictionSummary
from candide.report.records import Summary

__all__ = ["ColumnDrift", "DriftSummary", "PredictionSummary", "describe_change", "summarize_drift"]


@dataclass(frozen=True, repr=False)
class DriftSummary(Summary):
    """Columns by how surely they moved, and what the model says of the rows before and after."""

    rows: tuple[int | None, int]
    columns: tuple[ColumnDrift, ...]
    drifted_columns: tuple[Name, ...]  # by more than chance
    before: PredictionSummary | None
    after: PredictionSummary
    is_sampled: bool  # whether the rows before were drawn from the model
    quantiles: tuple[float, ...]  # of log p(x), in before and after
    conclusion: str
    skipped_columns: tuple[Name, ...]
    notes: tuple[str, ...] = ()  # what the comparison does not say


def summarize_drift(drift: Drift) -> DriftSummary:
    """The summary of what has moved."""
    moved = tuple(one.column for one in drift.drifted_columns)
    return DriftSummary(
        drift.n_rows,
        tuple(drift.columns),
        moved,
        drift.summary_before,
        drift.summary_after,
        drift.is_before_drawn,
        DENSITY_QUANTILES,
        _conclude(drift),
        tuple(drift.skipped_columns),
        tuple(_notes(drift)),
    )


def describe_change(column: ColumnDrift) -> str:
    """What tells how a column moved, in words: the share of a level, the mean, how much is missing."""
    values = dict(column.values)
    gone = values.pop("missing", (0.0, 0.0))
    if column.most_changed_level is not None:
        before, after = map(formatting.format_percent, values["share"])
        return f"{column.most_changed_level}: {before} -> {after}"
    found = [
        f"{name} {formatting.format_number(a)} -> {formatting.format_number(b)}" for name, (a, b) in values.items()
    ]
    if abs(gone[0] - gone[1]) > 0.001:
        found.append(f"missing {formatting.format_percent(gone[0])} -> {formatting.format_percent(gone[1])}")
    return "; ".join(found)


def _conclude(found: Drift) -> str:
    """What moved, in a sentence: columns that moved far first."""
    moved = sorted(found.drifted_columns, key=lambda one: -one.stability_index)
    if not moved:
        return "No column has moved by more than chance."
    names, have = formatting.format_list([one.column for one in moved], 4), "has" if len(moved) == 1 else "have"
    far = moved[0].stability_index
    how = "far" if far >= 0.25 else "somewhat" if far >= 0.1 else "a little"  # the usual marks of a stability index
    return f"{names} {have} moved, {how}."


def _notes(found: Drift) -> Iterator[str]:
    if found.is_before_drawn and found.summary_before is not None and found.summary_after.density_quantiles:
        yield (
            "no rows before were given (candide drift --before), so log p(x) is compared with rows drawn from the "
            "model: real rows are less likely than those where columns depend on each other, even if nothing has moved"
        )
    elif found.is_before_drawn:
        yield (
            "no rows before were given (candide drift --before), and the model cannot draw any: "
            "log p(x) is not compared"
        )
    if found.skipped_columns:
        yield f"{formatting.format_list(found.skipped_columns)} {_are(found.skipped_columns)} not compared: text may have moved unseen"


def _are(names: list[Name]) -> str:
    return "is" if len(names) == 1 else "are"
