"""Folds of a weighted model: each chooses its voices and weights without its own rows, and all are counted in one pass.

Grids and scores of columns are learned once, from all rows of a look and no label. What each fold composes of the rows
of the others is united into one plan, which is counted fold by fold; the counts of a fold's training rows are the sum
of the others, of its own parts and sets of columns.

>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> columns = {"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b], "c": rng.normal(size=400)}
>>> seen = Sample(Table.from_data(columns), np.arange(400), a ^ b, Labels((0, 1)), fold=np.arange(400) % 2)
>>> first, second, whole = select_terms_by_fold(seen, 2, Settings())
>>> [part.event.term_names(part.columns) for part in unite_plans([first.plan, second.plan]).parts if part.spec.sets]
[(('a', 'b'),)]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings
from candide.model.term_weights import TermWeights
from candide.weighted.fit import learn_weights_from_sample
from candide.weighted.selection import LearnedEncodings, select_terms

__all__ = ["Labels", "SelectedTerms", "Table", "build_fold_model", "select_terms_by_fold", "unite_plans"]


@dataclass(frozen=True, eq=False)
class SelectedTerms:
    """The voices that some rows choose, and their weights by these rows alone."""

    sample: Sample
    plan: Plan
    term_weights: TermWeights


def select_terms_by_fold(
    sample: Sample,
    folds: int,
    settings: Settings,
    *,
    events: Any = "auto",
    columns: Any = None,
    interactions: bool = True,
) -> list[SelectedTerms]:
    """For each fold what the rows of the others compose; last, what all rows do."""
    encodings = LearnedEncodings.from_sample(sample.pool_rows(), events, columns)
    out = []
    for fold in range(folds + 1):
        some = sample if fold == folds else sample.take(np.flatnonzero(sample.fold != fold))
        some = some.with_seen_labels().pool_rows()
        plan, found = select_terms(some, settings=settings, interactions=interactions, encodings=encodings)
        out.append(SelectedTerms(some, plan, found))
    return out


def unite_plans(plans: Sequence[Plan]) -> Plan:
    """The plan of all parts of some plans, each once; parts of as many columns a set are one, with the sets of all."""
    groups: dict[Any, list[PlanPart]] = {}
    for part in (part for plan in plans for part in plan.parts):
        groups.setdefault(_part_key(part), []).append(part)
    columns = dict.fromkeys(name for plan in plans for name in plan.columns)
    return Plan(tuple(columns), tuple(reduce(_unite_parts, group) for group in groups.values()))


def build_fold_model(
    counts: ModelCounts, selected_terms: SelectedTerms, settings: Settings
) -> tuple[FittedModel, list[int]]:
    """The model of counts whose plan is a united one, and which of its parts each part of the model is of."""
    at, parts, tallies = list[int](), list[PlanPart](), list[Any]()
    places = {_part_key(part): i for i, part in enumerate(counts.plan.parts)}
    for part in selected_terms.plan.parts:
        i = places[_part_key(part)]
        whole, tally = counts.plan.parts[i], counts.tallies[i]
        if part.spec.sets:
            place = {one: s for s, one in enumerate(whole.event.term_names(whole.columns))}
            some = [place[one] for one in part.event.term_names(part.columns)]
            whole, tally = (
                _with_sets(whole, [whole.spec.sets[s] for s in some]),
                tally.select_features(np.array(some, np.intp)),
            )
        at.append(i)
        parts.append(whole)
        tallies.append(tally)
    own = replace(counts, plan=Plan(selected_terms.plan.columns, tuple(parts)), tallies=tuple(tallies)).prune()
    return FittedModel(
        own,
        settings,
        term_weights=learn_weights_from_sample(selected_terms.sample, own, settings, selected_terms.term_weights),
    ), at


def _part_key(part: PlanPart) -> Any:
    """What tells parts apart that are counted each for itself."""
    return len(part.spec.sets[0]) if part.spec.sets else (part.event, part.columns)


def _unite_parts(a: PlanPart, b: PlanPart) -> PlanPart:
    if not a.spec.sets:
        return a.union(b)[0]
    known = dict(zip(a.columns, a.encodings, strict=True))
    for name, encoding in zip(b.columns, b.encodings, strict=True):
        known[name] = known[name].union(encoding)[0] if name in known else encoding
    at = {name: j for j, name in enumerate(known)}
    sets = dict.fromkeys(tuple(at[name] for name in one) for p in (a, b) for one in p.event.term_names(p.columns))
    return _with_sets(PlanPart(a.event, tuple(known), tuple(known.values())), list(sets))


def _with_sets(part: PlanPart, sets: Sequence[tuple[int, ...]]) -> PlanPart:
    event: Any = part.event
    return PlanPart(replace(event, sets=tuple(sets)), part.columns, part.encodings)
