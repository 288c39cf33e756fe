"""Select columns by their evidence for a dependence on the class, from the counts alone."""

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
    return [(name, min(evidence, entropy)) for name, evidence in _evidence_per_row(counts, priors)]


def overstated_columns(counts: ModelCounts, priors: Any = None) -> list[Name]:
    """Return the columns whose evidence exceeds the entropy of the classes.

    The excess shows how badly one distribution describes the rows of all classes; if probabilities are poor, the event
    model may not fit the rows of one class either.
    """
    entropy = class_entropy(counts)
    return [name for name, evidence in _evidence_per_row(counts, priors) if evidence > entropy]


def class_entropy(counts: ModelCounts) -> float:
    """Return the entropy of the class of a row, in nats."""
    p = counts.class_weight / total_weight(counts)
    return max(0.0, float(-(p * np.log(np.where(p > 0, p, 1.0))).sum()))


def _evidence_per_row(counts: ModelCounts, priors: Any) -> list[tuple[Name, float]]:
    rows, evidence = total_weight(counts), list[tuple[Name, float]]()
    for part, tally in counts.parts:
        gain = None if part.is_joint_term else evidence_gain(part, tally, priors)
        if gain is not None:
            each = np.broadcast_to(gain / rows, len(part.columns)).tolist()
            evidence += zip(part.columns, each, strict=True)
    return sorted(evidence, key=lambda pair: -pair[1])


def choose_columns(counts: ModelCounts, select: int | str | None, priors: Any = None) -> tuple[Name, ...]:
    """Return the selected columns, in their order: those with most evidence, or all with positive evidence.

    If no column has positive evidence, the first in rank is selected. Ties go to the first column. Columns that are
    modelled jointly are selected together and count as one.
    """
    plan = counts.plan
    if select is None:
        return plan.columns
    by_evidence = isinstance(select, str) and select == EVIDENCE
    is_whole = isinstance(select, Integral) and not isinstance(select, bool)
    if not by_evidence and not (is_whole and int(select) >= 1):
        remedy = "pass a number of columns >= 1, 'evidence' for those with positive evidence, or None"
        raise InputError(f"select: not a valid value: {select!r}", value=select, remedy=remedy)
    units, gains = list[tuple[Name, ...]](), list[Floats]()
    for part, tally in counts.parts:
        gain = evidence_gain(part, tally, priors)
        if gain is None:
            names = ", ".join(repr(name) for name in part.columns[:5]) + (", ..." if len(part.columns) > 5 else "")
            what = f"select: the columns {names} have no evidence under {part.event}, and cannot be ranked"
            remedy = "give them another event model or a proper prior, drop them, or leave select out"
            raise InputError(what, column=part.columns, remedy=remedy)
        units += [part.columns] if part.event.is_joint else [(name,) for name in part.columns]
        gains.append(gain)
    evidence, index = np.concatenate(gains), {name: i for i, name in enumerate(plan.columns)}
    order = np.lexsort((np.array([index[unit[0]] for unit in units]), -evidence))
    n = max(1, int((evidence > 0).sum())) if by_evidence else int(select)
    used = {name for i in order[:n].tolist() for name in units[i]}
    return tuple(name for name in plan.columns if name in used)


def evidence_gain(part: PlanPart, tally: Any, priors: Any) -> Floats | None:
    """(unit,) log evidence of one distribution per class over one for all; None without a marginal likelihood.

    It is under the prior of the settings, or the event model's own if that is improper.
    """
    for prior in dict.fromkeys([prior_for(part.event, priors), None]):
        try:
            gain = part.event.evidence(tally, prior).sum(axis=0) - part.event.evidence(tally.pool(), prior)[0]
            return gain.sum(keepdims=True) if part.event.is_joint else gain
        except InputError:
            continue
    return None


def scoring_units(part: PlanPart) -> list[Any]:
    """Return what is ranked as one: each column, or all columns of a part that models them jointly."""
    return [part.columns] if part.event.is_joint else list(part.columns)


def total_weight(counts: ModelCounts) -> float:
    return max(float(counts.class_weight.sum()), 1e-300)
