"""Select: the columns that tell of the class, by their evidence, from the counts alone.

>>> from candide.demo import garden
>>> choose_columns(garden(), 2), check_select("evidence")
(('height_cm', 'leaf_mm'), 'evidence')
"""

from numbers import Integral
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.data.table import Name
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.model import prior_for
from candide.model.plan import PlanPart

EVIDENCE = "evidence"  # select: the columns whose evidence is positive


def rank_columns_by_evidence(counts: ModelCounts, priors: Any = None) -> list[tuple[Name, float]]:
    """The columns that have evidence, with it in nats per row, strongest first: the quick part of :func:`scores`.

    Columns modelled together have that of their group. No column can tell more than the entropy of the classes, and
    none is said to.
    """
    most = class_entropy(counts)
    return [(name, min(nats, most)) for name, nats in _evidence_per_row(counts, priors)]


def overstated_columns(counts: ModelCounts, priors: Any = None) -> list[Name]:
    """The columns whose evidence is above the entropy of the classes, more than can be told of these.

    What is above it says how ill one distribution describes the rows of all classes, and where probabilities turn out
    bad, that the event model may not be that of the rows of one class either.

    >>> from candide.demo import garden
    >>> (
    ...     overstated_columns(garden()),
    ...     round(class_entropy(garden()), 3),
    ...     round(rank_columns_by_evidence(garden())[0][1], 3),
    ... )
    (['leaf_mm'], 1.099, 1.099)
    """
    most = class_entropy(counts)
    return [name for name, nats in _evidence_per_row(counts, priors) if nats > most]


def class_entropy(counts: ModelCounts) -> float:
    """What there is to tell of the class of a row, in nats."""
    share = counts.class_weight / total_weight(counts)
    return max(0.0, float(-(share * np.log(np.where(share > 0, share, 1.0))).sum()))


def _evidence_per_row(counts: ModelCounts, priors: Any) -> list[tuple[Name, float]]:
    rows, found = total_weight(counts), list[tuple[Name, float]]()
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        nats = None if part.is_joint_term else evidence_gain(part, tally, priors)
        if nats is not None:
            each = np.broadcast_to(nats / rows, len(part.columns)).tolist()
            found += zip(part.columns, each, strict=True)
    return sorted(found, key=lambda pair: -pair[1])


def check_select(select: Any) -> int | str | None:
    """A number of columns, "evidence" or None; anything else is an error."""
    if select is None or (isinstance(select, str) and select == EVIDENCE):
        return select
    if isinstance(select, Integral) and not isinstance(select, bool) and int(select) >= 1:
        return int(select)
    raise InputError(f"select: {select!r}; pass a number of columns >= 1, 'evidence' for those that tell, or None")


def choose_columns(counts: ModelCounts, select: int | str | None, priors: Any = None) -> tuple[Name, ...]:
    """The chosen columns, in their order: the ``select`` strongest, or all whose evidence is positive.

    More than there are is all of them; where no column has positive evidence the strongest alone is chosen. Of equals
    the first comes first. Columns modelled together are chosen together, and count as one.
    """
    select, plan = check_select(select), counts.plan
    if select is None:
        return plan.columns
    found, nats = list[Any](), list[Floats]()
    for part, tally in zip(plan.parts, counts.tallies, strict=True):
        saved = evidence_gain(part, tally, priors)
        if saved is None:
            named = ", ".join(repr(name) for name in part.columns[:5]) + (", ..." if len(part.columns) > 5 else "")
            raise InputError(
                f"select: the columns {named} have no evidence under {part.event}, so they cannot be compared with "
                "others; give them another event model or a proper prior, drop them, or leave select out"
            )
        found += scoring_units(part)
        nats.append(saved)
    evidence = np.concatenate(nats)
    first = np.arange(len(found))
    if len(plan.parts) > 1:  # else the units are in the order of the columns
        place = {name: i for i, name in enumerate(plan.columns)}
        first = np.array([place[unit[0] if isinstance(unit, tuple) else unit] for unit in found])
    order = np.lexsort((first, -evidence))
    most = max(1, int((evidence > 0).sum())) if select == EVIDENCE else int(select)
    best = [found[i] for i in order[:most].tolist()]
    used = {name for unit in best for name in (unit if isinstance(unit, tuple) else (unit,))}
    return tuple(name for name in plan.columns if name in used)


def evidence_gain(part: PlanPart, tally: Any, priors: Any) -> Floats | None:
    """(unit,) evidence of a distribution for each class over one for all; None where there is no marginal likelihood.

    Under the prior that the settings give, else, where that is improper, under the event model's own.
    """
    for prior in dict.fromkeys([prior_for(part.event, priors), None]):
        try:
            saved = part.event.evidence(tally, prior).sum(axis=0) - part.event.evidence(tally.pool(), prior)[0]
            return saved.sum(keepdims=True) if part.event.is_joint else saved
        except InputError:
            continue
    return None


def scoring_units(part: PlanPart) -> list[Any]:
    """What is scored as one: each column, or all columns of a part that models them together."""
    return [part.columns] if part.event.is_joint else list(part.columns)


def total_weight(counts: ModelCounts) -> float:
    return max(float(counts.class_weight.sum()), 1e-300)
