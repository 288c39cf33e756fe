"""Select: the columns that tell of the class, by their evidence, from the counts alone.

>>> from candide.demo import garden
>>> choose(garden(), 2), checked_select("evidence")
(('height_cm', 'leaf_mm'), 'evidence')
"""

from numbers import Integral
from typing import Any

import numpy as np

from candide.errors import InputError
from candide.model.census import Census
from candide.model.model import prior_for
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.table import Name

EVIDENCE = "evidence"  # select: the columns whose evidence is positive


def strengths(census: Census, priors: Any = None) -> list[tuple[Name, float]]:
    """The columns that have evidence, with it in nats per row, strongest first: the quick part of :func:`scores`.

    Columns modelled together have that of their group. No column can tell more than the entropy of the classes, and
    none is said to.
    """
    most = class_entropy(census)
    return [(name, min(nats, most)) for name, nats in _per_row(census, priors)]


def overstated(census: Census, priors: Any = None) -> list[Name]:
    """The columns whose evidence is above the entropy of the classes, more than can be told of these.

    What is above it says how ill one distribution describes the rows of all classes, and where probabilities turn out
    bad, that the event model may not be that of the rows of one class either.

    >>> from candide.demo import garden
    >>> overstated(garden()), round(class_entropy(garden()), 3), round(strengths(garden())[0][1], 3)
    (['leaf_mm'], 1.099, 1.099)
    """
    most = class_entropy(census)
    return [name for name, nats in _per_row(census, priors) if nats > most]


def class_entropy(census: Census) -> float:
    """What there is to tell of the class of a row, in nats."""
    share = census.class_weight / total_weight(census)
    return max(0.0, float(-(share * np.log(np.where(share > 0, share, 1.0))).sum()))


def _per_row(census: Census, priors: Any) -> list[tuple[Name, float]]:
    rows, found = total_weight(census), list[tuple[Name, float]]()
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        nats = None if part.beside else gain(part, tally, priors)
        if nats is not None:
            each = np.broadcast_to(nats / rows, len(part.columns)).tolist()
            found += zip(part.columns, each, strict=True)
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
    found, nats = list[Any](), list[Floats]()
    for part, tally in zip(plan.parts, census.tallies, strict=True):
        saved = gain(part, tally, priors)
        if saved is None:
            named = ", ".join(repr(name) for name in part.columns[:5]) + (", ..." if len(part.columns) > 5 else "")
            raise InputError(
                f"select: the columns {named} have no evidence under {part.event}, so they cannot be compared with "
                "others; give them another event model or a proper prior, drop them, or leave select out"
            )
        found += units(part)
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


def gain(part: Part, tally: Any, priors: Any) -> Floats | None:
    """(unit,) evidence of a distribution for each class over one for all; None where there is no marginal likelihood.

    Under the prior that the settings give, else, where that is improper, under the event model's own.
    """
    for prior in dict.fromkeys([prior_for(part.event, priors), None]):
        try:
            saved = part.event.evidence(tally, prior).sum(axis=0) - part.event.evidence(tally.pool(), prior)[0]
            return saved.sum(keepdims=True) if part.event.joint else saved
        except InputError:
            continue
    return None


def units(part: Part) -> list[Any]:
    """What is scored as one: each column, or all columns of a part that models them together."""
    return [part.columns] if part.event.joint else list(part.columns)


def total_weight(census: Census) -> float:
    return max(float(census.class_weight.sum()), 1e-300)
