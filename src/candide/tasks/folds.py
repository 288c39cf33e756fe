"""Folds of a weighted model: each chooses its voices and weights without its own rows, and all are counted in one pass.

Grids and scores of columns are learned once, from all rows of a look and no label. What each fold composes of the rows
of the others is united into one plan, which is counted fold by fold; the counts of a fold's training rows are the sum
of the others, of its own parts and sets of columns.

>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> columns = {"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b], "c": rng.normal(size=400)}
>>> seen = Look(Table.of(columns), np.arange(400), a ^ b, Labels((0, 1)), fold=np.arange(400) % 2)
>>> first, second, whole = compose_apart(seen, 2, Settings())
>>> [part.event.voices(part.columns) for part in united([first.plan, second.plan]).parts if part.spec.sets]
[(('a', 'b'),)]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.plan import Part, Plan
from candide.model.settings import Settings
from candide.model.voices import Voices
from candide.rows.labels import Labels
from candide.rows.table import Table
from candide.tasks.compose import Encodings, compose
from candide.tasks.look import Look
from candide.tasks.weigh import weigh_by

__all__ = ["Composed", "Labels", "Table", "compose_apart", "trained", "united"]


@dataclass(frozen=True, eq=False)
class Composed:
    """The voices that some rows choose, and their weights by these rows alone."""

    seen: Look
    plan: Plan
    found: Voices


def compose_apart(
    seen: Look, folds: int, settings: Settings, *, events: Any = "auto", columns: Any = None, sets: bool = True
) -> list[Composed]:
    """For each fold what the rows of the others compose; last, what all rows do."""
    encodings = Encodings.of(seen.pooled(), events, columns)
    out = []
    for fold in range(folds + 1):
        some = seen if fold == folds else seen.take(np.flatnonzero(seen.fold != fold))
        some = some.met().pooled()
        plan, found = compose(some, settings=settings, sets=sets, encodings=encodings)
        out.append(Composed(some, plan, found))
    return out


def united(plans: Sequence[Plan]) -> Plan:
    """The plan of all parts of some plans, each once; parts of as many columns a set are one, with the sets of all."""
    groups: dict[Any, list[Part]] = {}
    for part in (part for plan in plans for part in plan.parts):
        groups.setdefault(_key(part), []).append(part)
    columns = dict.fromkeys(name for plan in plans for name in plan.columns)
    return Plan(tuple(columns), tuple(reduce(_both, group) for group in groups.values()))


def trained(census: Census, composed: Composed, settings: Settings) -> tuple[Fitted, list[int]]:
    """The model of counts whose plan is a united one, and which of its parts each part of the model is of."""
    at, parts, tallies = list[int](), list[Part](), list[Any]()
    places = {_key(part): i for i, part in enumerate(census.plan.parts)}
    for part in composed.plan.parts:
        i = places[_key(part)]
        whole, tally = census.plan.parts[i], census.tallies[i]
        if part.spec.sets:
            place = {one: s for s, one in enumerate(whole.event.voices(whole.columns))}
            some = [place[one] for one in part.event.voices(part.columns)]
            whole, tally = _with_sets(whole, [whole.spec.sets[s] for s in some]), tally.only(np.array(some, np.intp))
        at.append(i)
        parts.append(whole)
        tallies.append(tally)
    own = replace(census, plan=Plan(composed.plan.columns, tuple(parts)), tallies=tuple(tallies)).pruned()
    return Fitted(own, settings, voices=weigh_by(composed.seen, own, settings, composed.found)), at


def _key(part: Part) -> Any:
    """What tells parts apart that are counted each for itself."""
    return len(part.spec.sets[0]) if part.spec.sets else (part.event, part.columns)


def _both(a: Part, b: Part) -> Part:
    if not a.spec.sets:
        return a.union(b)[0]
    known = dict(zip(a.columns, a.encodings, strict=True))
    for name, encoding in zip(b.columns, b.encodings, strict=True):
        known[name] = known[name].union(encoding)[0] if name in known else encoding
    at = {name: j for j, name in enumerate(known)}
    sets = dict.fromkeys(tuple(at[name] for name in one) for p in (a, b) for one in p.event.voices(p.columns))
    return _with_sets(Part(a.event, tuple(known), tuple(known.values())), list(sets))


def _with_sets(part: Part, sets: Sequence[tuple[int, ...]]) -> Part:
    event: Any = part.event
    return Part(replace(event, sets=tuple(sets)), part.columns, part.encodings)
