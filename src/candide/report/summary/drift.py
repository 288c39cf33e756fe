"""Drift: what has moved in new rows since a model was fitted.

>>> from candide.demo import rows
>>> from candide.tasks import drift, learn
>>> plants, herb = rows(600, seed=0)
>>> later, _ = rows(400, seed=1)
>>> model = learn({**plants, "herb": herb}, "herb", model="naive").fitted
>>> of_drift(drift(model, later)).verdict
'No column has moved by more than chance.'
"""

from collections.abc import Iterator
from dataclasses import dataclass

from candide import wording
from candide.report.record import Summary
from candide.rows.table import Name
from candide.tasks.drift import QUANTILES, ColumnDrift, Drift, Said

__all__ = ["ColumnDrift", "DriftSummary", "Said", "how", "of_drift"]


@dataclass(frozen=True, repr=False)
class DriftSummary(Summary):
    """Columns by how surely they moved, and what the model says of the rows before and after."""

    rows: tuple[int | None, int]
    columns: tuple[ColumnDrift, ...]
    moved: tuple[Name, ...]  # by more than chance
    before: Said | None
    after: Said
    drawn: bool  # whether the rows before were drawn from the model
    quantiles: tuple[float, ...]  # of log p(x), in before and after
    verdict: str
    left_out: tuple[Name, ...]
    notes: tuple[str, ...] = ()  # what the comparison does not say


def of_drift(found: Drift) -> DriftSummary:
    """The summary of what has moved."""
    moved = tuple(one.column for one in found.moved)
    return DriftSummary(
        found.rows,
        tuple(found.columns),
        moved,
        found.before,
        found.after,
        found.drawn,
        QUANTILES,
        _verdict(found),
        tuple(found.left_out),
        tuple(_notes(found)),
    )


def how(one: ColumnDrift) -> str:
    """What tells how a column moved, in words: the share of a level, the mean, how much is missing."""
    values = dict(one.values)
    gone = values.pop("missing", (0.0, 0.0))
    if one.level is not None:
        before, after = map(wording.percent, values["share"])
        return f"{one.level}: {before} -> {after}"
    found = [f"{name} {wording.number(a)} -> {wording.number(b)}" for name, (a, b) in values.items()]
    if abs(gone[0] - gone[1]) > 0.001:
        found.append(f"missing {wording.percent(gone[0])} -> {wording.percent(gone[1])}")
    return "; ".join(found)


def _verdict(found: Drift) -> str:
    """What moved, in a sentence: columns that moved far first."""
    moved = sorted(found.moved, key=lambda one: -one.moved)
    if not moved:
        return "No column has moved by more than chance."
    names, have = wording.listing([one.column for one in moved], 4), "has" if len(moved) == 1 else "have"
    far = moved[0].moved
    how = "far" if far >= 0.25 else "somewhat" if far >= 0.1 else "a little"  # the usual marks of a stability index
    return f"{names} {have} moved, {how}."


def _notes(found: Drift) -> Iterator[str]:
    if found.drawn and found.before is not None and found.after.density:
        yield (
            "no rows before were given (candide drift --before), so log p(x) is compared with rows drawn from the "
            "model: real rows are less likely than those where columns depend on each other, even if nothing has moved"
        )
    elif found.drawn:
        yield (
            "no rows before were given (candide drift --before), and the model cannot draw any: "
            "log p(x) is not compared"
        )
    if found.left_out:
        yield f"{wording.listing(found.left_out)} {_are(found.left_out)} not compared: text may have moved unseen"


def _are(names: list[Name]) -> str:
    return "is" if len(names) == 1 else "are"
