"""Features: how much each column tells of the class, from the tallies alone, and the choice of the best ones.

Three measures stand side by side. *Evidence*: the log marginal likelihood of the column with a distribution for each
class, over that with one for all: what knowing the class saves in describing the column after the extra parameters
are paid for. Below zero the column is better described without the class. *Information*: how much the column lowers
the uncertainty about the class, as the counts have it, which is never negative. And the classical *test*.

>>> from candide.demo import garden
>>> print(scores(garden())[:3])
column     event     evidence  per row  information           test          p
leaf_mm    gaussian    346.46    1.155        0.815     F = 985.22  8.08e-132
height_cm  gaussian    216.31    0.721        0.615     F = 496.09    2.1e-95
flowers    poisson     146.12    0.487        0.346  chi2 = 288.24   2.57e-63
"""

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, overload

import numpy as np

from candide.census import Census
from candide.errors import InputError
from candide.features import association, information
from candide.frozen import dataclass
from candide.model import prior_for
from candide.plan import Part
from candide.table import Name, spoken
from candide.tally.base import Floats

EVIDENCE = "evidence"  # select: the columns whose evidence is positive
_SHOWN = 20  # scores printed before "and more"

_MEASURES: dict[str, tuple[Any, Any]] = {  # by event model, else by tally kind: information, test
    "multinomial": (information.of_words, association.of_totals),
    "complement": (information.of_words, association.of_totals),
    "poisson": (information.of_poissons, association.of_totals),
    "exponential": (information.of_exponentials, association.of_rates),
    "moments": (information.of_normals, association.of_means),
    "levels": (information.of_levels, association.of_levels),
}


@dataclass(frozen=True)
class FeatureScore:
    """What one column, or a group of columns modelled together, tells of the class. None where there is no measure."""

    column: Name | tuple[Name, ...]
    event: str
    evidence: float | None  # nats: the log of the Bayes factor for "depends on the class"
    per_row: float | None  # the same divided by the weight of the rows
    information: float | None  # nats
    test: str  # "t" | "F" | "chi2" | "G" | ""
    statistic: float | None
    p_value: float | None
    chosen: bool = True  # whether the model uses it


@dataclass(frozen=True)
class FeatureScores(Sequence[FeatureScore]):
    """The scores of all columns, strongest first. Prints as a table; ``to_dict`` makes any data frame."""

    scores: tuple[FeatureScore, ...]

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[FeatureScore]:
        return iter(self.scores)

    @overload
    def __getitem__(self, at: int) -> FeatureScore: ...
    @overload
    def __getitem__(self, at: slice) -> "FeatureScores": ...
    def __getitem__(self, at: int | slice) -> "FeatureScore | FeatureScores":
        return FeatureScores(self.scores[at]) if isinstance(at, slice) else self.scores[at]

    def of(self, column: Name | tuple[Name, ...]) -> FeatureScore:
        """The score of one column."""
        for score in self.scores:
            if score.column == column:
                return score
        raise InputError(f"there is no column {column!r} among {[score.column for score in self.scores[:10]]} ...")

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of values: ``pandas.DataFrame(scores.to_dict())``, or the same of polars or pyarrow."""
        names = list(FeatureScore.__dataclass_fields__)
        return {name: [getattr(score, name) for score in self.scores] for name in names}

    def __str__(self) -> str:
        some = not all(score.chosen for score in self.scores)
        heads = ["column", "event", "evidence", "per row", "information", "test", "p", *(["chosen"] if some else [])]
        rows = [heads, *([*_cells(s), *(["yes" if s.chosen else ""] if some else [])] for s in self.scores[:_SHOWN])]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(v.ljust(w) if i < 2 else v.rjust(w) for i, (v, w) in enumerate(zip(row, widths, strict=True)))
            for row in rows
        ]
        if len(self.scores) > _SHOWN:
            lines.append(f"... and {len(self.scores) - _SHOWN:,} more")
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__


def _cells(score: FeatureScore) -> list[str]:
    test = f"{score.test} = {score.statistic:.2f}" if score.statistic is not None else ""
    p = "" if score.p_value is None else f"{score.p_value:.3g}"
    told = [(score.evidence, ".2f"), (score.per_row, ".3f"), (score.information, ".3f")]
    return [spoken(score.column), score.event, *("" if v is None else f"{v:{form}}" for v, form in told), test, p]


def scores(census: Census, priors: Any = None, select: int | str | None = None) -> FeatureScores:
    """Every column's score, strongest first; ``select`` marks those that it chooses."""
    used = set(choose(census, select, priors))
    rows, found = _rows(census), list[FeatureScore]()
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        gain = _gain(part, tally, priors)
        units = _units(part)
        evidence = [None] * len(units) if gain is None else gain.tolist()
        for unit, nats, measures in zip(units, evidence, _measures(part, tally, len(units)), strict=True):
            is_used = (unit[0] if isinstance(unit, tuple) else unit) in used
            per_row = None if nats is None else nats / rows
            found.append(FeatureScore(unit, part.event.name, nats, per_row, *measures, is_used))
    return FeatureScores(tuple(sorted(found, key=lambda s: -np.inf if s.evidence is None else -s.evidence)))


def strengths(census: Census, priors: Any = None) -> list[tuple[Name, float]]:
    """The columns that have evidence, with it in nats per row, strongest first: the quick part of :func:`scores`.

    Columns modelled together have that of their group.
    """
    rows, found = _rows(census), list[tuple[Name, float]]()
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        gain = _gain(part, tally, priors)
        if gain is not None:
            nats = np.broadcast_to(gain / rows, len(part.columns)).tolist()
            found += zip(part.columns, nats, strict=True)
    return sorted(found, key=lambda pair: -pair[1])


def checked_select(select: Any) -> int | str | None:
    """A number of columns, "evidence" or None; anything else is an error."""
    if select is None or (isinstance(select, str) and select == EVIDENCE):
        return select
    if isinstance(select, Integral) and not isinstance(select, bool) and int(select) >= 1:
        return int(select)
    raise InputError(f"select: {select!r}; pass a number of columns >= 1, 'evidence' for those that tell, or None")


def choose(census: Census, select: int | str | None, priors: Any = None) -> tuple[Name, ...]:
    """The chosen columns, in their order: the ``select`` strongest, or all whose evidence is positive.

    More than there are is all of them; where no column has positive evidence the strongest alone is chosen. Of equals
    the first comes first. Columns modelled together are chosen together, and count as one.
    """
    select, plan = checked_select(select), census.plan
    if select is None:
        return plan.columns
    units, nats = list[Any](), list[Floats]()
    for part, tally in zip(plan.parts, census.tallies, strict=True):
        gain = _gain(part, tally, priors)
        if gain is None:
            named = ", ".join(repr(name) for name in part.columns[:5]) + (", ..." if len(part.columns) > 5 else "")
            raise InputError(
                f"select: the columns {named} have no evidence under {part.event}, so they cannot be compared with "
                "others; give them another event model or a proper prior, drop them, or leave select out"
            )
        units += _units(part)
        nats.append(gain)
    evidence = np.concatenate(nats)
    first = np.arange(len(units))
    if len(plan.parts) > 1:  # else the units are in the order of the columns
        place = {name: i for i, name in enumerate(plan.columns)}
        first = np.array([place[unit[0] if isinstance(unit, tuple) else unit] for unit in units])
    order = np.lexsort((first, -evidence))
    most = max(1, int((evidence > 0).sum())) if select == EVIDENCE else int(select)
    best = [units[i] for i in order[:most].tolist()]
    used = {name for unit in best for name in (unit if isinstance(unit, tuple) else (unit,))}
    return tuple(name for name in plan.columns if name in used)


def _gain(part: Part, tally: Any, priors: Any) -> Floats | None:
    """(unit,) evidence of a distribution for each class over one for all; None where there is no marginal likelihood.

    Under the prior that the settings give, else, where that is improper, under the event model's own.
    """
    for prior in dict.fromkeys([prior_for(part.event, priors), None]):
        try:
            gain = part.event.evidence(tally, prior).sum(axis=0) - part.event.evidence(tally.pool(), prior)[0]
            return gain.sum(keepdims=True) if part.is_group else gain
        except InputError:
            continue
    return None


def _units(part: Part) -> list[Any]:
    """What is scored as one: each column, or all columns of a part that models them together."""
    return [part.columns] if part.is_group else list(part.columns)


def _measures(part: Part, tally: Any, n_units: int) -> list[tuple[float | None, str, float | None, float | None]]:
    """Information, name of the test, statistic and p-value of each unit."""
    known = _MEASURES.get(part.event.name) or _MEASURES.get(part.event.kind)
    if known is None or n_units < len(part.columns):
        return [(None, "", None, None)] * n_units
    told, test = known[0](tally), known[1](tally)
    nats = [None] * n_units if told is None else told.tolist()
    pairs = zip(nats, test.statistic.tolist(), test.p_value.tolist(), strict=True)
    return [(i, test.name, *((None, None) if t != t else (t, p))) for i, t, p in pairs]


def _rows(census: Census) -> float:
    return max(float(census.class_weight.sum()), 1e-300)
