"""Select columns by their evidence for a dependence on the class, from the counts alone.

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
    """Return columns with their evidence in nats per row, largest first, at most the entropy of the classes.

    Columns that are modelled jointly have that of their group.
    """
    entropy = class_entropy(counts)
    return [(name, min(nats, entropy)) for name, nats in _evidence_per_row(counts, priors)]


def overstated_columns(counts: ModelCounts, priors: Any = None) -> list[Name]:
    """Return the columns whose evidence exceeds the entropy of the classes.

    The excess shows how badly one distribution describes the rows of all classes; if probabilities are poor, the event
    model may not fit the rows of one class either.

    >>> from candide.demo import garden
    >>> overstated_columns(garden()), round(class_entropy(garden()), 3)
    (['leaf_mm'], 1.099)
    """
    entropy = class_entropy(counts)
    return [name for name, nats in _evidence_per_row(counts, priors) if nats > entropy]


def class_entropy(counts: ModelCounts) -> float:
    """Return the entropy of the class of a row, in nats."""
    p = counts.class_weight / total_weight(counts)
    return max(0.0, float(-(p * np.log(np.where(p > 0, p, 1.0))).sum()))


def _evidence_per_row(counts: ModelCounts, priors: Any) -> list[tuple[Name, float]]:
    rows, evidence = total_weight(counts), list[tuple[Name, float]]()
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        nats = None if part.is_joint_term else evidence_gain(part, tally, priors)
        if nats is not None:
            each = np.broadcast_to(nats / rows, len(part.columns)).tolist()
            evidence += zip(part.columns, each, strict=True)
    return sorted(evidence, key=lambda pair: -pair[1])


def check_select(select: Any) -> int | str | None:
    """Return a number of columns, "evidence" or None; raise an error for anything else."""
    if select is None or (isinstance(select, str) and select == EVIDENCE):
        return select
    if isinstance(select, Integral) and not isinstance(select, bool) and int(select) >= 1:
        return int(select)
    remedy = "pass a number of columns >= 1, 'evidence' for those with positive evidence, or None"
    raise InputError(f"select: not a valid value: {select!r}", value=select, remedy=remedy)


def choose_columns(counts: ModelCounts, select: int | str | None, priors: Any = None) -> tuple[Name, ...]:
    """Return the selected columns, in their order: those with most evidence, or all with positive evidence.

    If no column has positive evidence, the first in rank is selected. Ties go to the first column. Columns that are
    modelled jointly are selected together and count as one.
    """
    select, plan = check_select(select), counts.plan
    if select is None:
        return plan.columns
    units, nats = list[Any](), list[Floats]()
    for part, tally in zip(plan.parts, counts.tallies, strict=True):
        saved = evidence_gain(part, tally, priors)
        if saved is None:
            names = ", ".join(repr(name) for name in part.columns[:5]) + (", ..." if len(part.columns) > 5 else "")
            what = f"select: the columns {names} have no evidence under {part.event}, and cannot be ranked"
            remedy = "give them another event model or a proper prior, drop them, or leave select out"
            raise InputError(what, column=part.columns, remedy=remedy)
        units += scoring_units(part)
        nats.append(saved)
    evidence = np.concatenate(nats)
    first = np.arange(len(units))
    if len(plan.parts) > 1:  # else the units are in the order of the columns
        index = {name: i for i, name in enumerate(plan.columns)}
        first = np.array([index[unit[0] if isinstance(unit, tuple) else unit] for unit in units])
    order = np.lexsort((first, -evidence))
    n = max(1, int((evidence > 0).sum())) if select == EVIDENCE else int(select)
    best = [units[i] for i in order[:n].tolist()]
    used = {name for unit in best for name in (unit if isinstance(unit, tuple) else (unit,))}
    return tuple(name for name in plan.columns if name in used)


def evidence_gain(part: PlanPart, tally: Any, priors: Any) -> Floats | None:
    """(unit,) log evidence of one distribution per class over one for all; None without a marginal likelihood.

    It is under the prior of the settings, or the event model's own if that is improper.
    """
    for prior in dict.fromkeys([prior_for(part.event, priors), None]):
        try:
            saved = part.event.evidence(tally, prior).sum(axis=0) - part.event.evidence(tally.pool(), prior)[0]
            return saved.sum(keepdims=True) if part.event.is_joint else saved
        except InputError:
            continue
    return None


def scoring_units(part: PlanPart) -> list[Any]:
    """Return what is ranked as one: each column, or all columns of a part that models them jointly."""
    return [part.columns] if part.event.is_joint else list(part.columns)


def total_weight(counts: ModelCounts) -> float:
    return max(float(counts.class_weight.sum()), 1e-300)
