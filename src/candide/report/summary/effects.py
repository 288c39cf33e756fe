"""Total effects of columns, in figures and in a sentence.

>>> from candide.demo import garden
>>> fitted = Fitted(garden())
>>> found = effects_of(Effects(fitted))[0]
>>> found.column, found.terms, found.sentence
('leaf_mm', 1, 'Says most for lavender at 71.35 (+40.35 nats), and most against it at 4.429 (-4.37).')
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import wording
from candide.explain.axes import Axis
from candide.explain.effects import Effects
from candide.model.fitted import Fitted
from candide.rows.blocks import Floats
from candide.rows.table import Name


@dataclass(frozen=True)
class EffectSummary:
    """What a column contributes over all terms that it is in."""

    column: Name
    terms: int
    importance: float | None  # mean over the rows, in nats
    sentence: str
    values: tuple[str | float, ...] = ()  # levels, bins or points of a curve
    effects: Mapping[str, tuple[float, ...]] | None = None  # by class, against the mean of the others, of each value


def effects_of(found: Effects) -> tuple[EffectSummary, ...]:
    """The summary of every column, the most important first."""
    fitted, out = found.fitted, list[EffectSummary]()
    c = class_shown(fitted.shares)
    for one in found.all:
        line = sentence(fitted, one.axis, c)
        if one.axis.nats is None:
            out.append(EffectSummary(one.column, one.terms, one.importance, line))
            continue
        labels = enumerate(map(str, fitted.labels.values))
        effects = {label: tuple(one.axis.against(fitted.shares, k).ravel().tolist()) for k, label in labels}
        at = one.axis.names[0] if one.axis.names else tuple(np.asarray(one.axis.at).tolist())
        out.append(EffectSummary(one.column, one.terms, one.importance, line, at, effects))
    return tuple(out)


def class_shown(shares: Floats) -> int:
    """The class that effects are of at first: the second of two, else the most frequent."""
    return 1 if len(shares) == 2 else int(np.argmax(shares)) if len(shares) else 0


def sentence(fitted: Fitted, one: Axis, c: int) -> str:
    """Where a term or a column contributes most for a class, and where most against it."""
    label = wording.value(fitted.labels.values[c])
    if one.terms:
        words = ", ".join(term.term for term in one.terms[c][:8])
        return f"Speaks most for {label} by {words}."
    if one.nats is None:
        columns = wording.listing([str(name) for name in one.voice.columns], 6)
        return f"Weighs {columns} together; it has no cells that could be drawn." if len(one.voice.columns) > 1 else ""
    said = one.against(fitted.shares, c)
    met = np.ones(said.shape, bool) if one.often is None else one.often > 0
    seen = np.where(met & np.isfinite(said), said, 0.0)
    high, low = (np.unravel_index(int(at), said.shape) for at in (seen.argmax(), seen.argmin()))
    parts = []
    if seen[high] > 0:
        parts.append(f"most for {label} at {_place(one, high)} ({seen[high]:+.2f} nats)")
    if seen[low] < 0:
        parts.append(f"most against it at {_place(one, low)} ({seen[low]:+.2f})")
    return f"Says {', and '.join(parts)}." if parts else ""


def _place(one: Axis, at: tuple[Any, ...]) -> str:
    if one.names:
        return " and ".join(wording.value(names[i]) for names, i in zip(one.names, at, strict=True))
    assert one.at is not None
    return wording.number(float(one.at[at[0]]))
