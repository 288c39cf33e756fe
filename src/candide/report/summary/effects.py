"""Total effects of columns, in figures and in a sentence.

>>> from candide.demo import garden
>>> fitted = FittedModel(garden())
>>> found = summarize_effects(Effects(fitted))[0]
>>> found.column, found.n_terms, found.sentence
('leaf_mm', 1, 'Says most for lavender at 71.35 (+40.35 nats), and most against it at 4.429 (-4.37).')
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.explain.axes import TermAxis
from candide.explain.effects import Effects
from candide.model.fitted import FittedModel


@dataclass(frozen=True)
class EffectSummary:
    """What a column contributes over all terms that it is in."""

    column: Name
    n_terms: int
    importance: float | None  # mean over the rows, in nats
    sentence: str
    values: tuple[str | float, ...] = ()  # levels, bins or points of a curve
    effects: Mapping[str, tuple[float, ...]] | None = None  # by class, against the mean of the others, of each value


def summarize_effects(column_effects: Effects) -> tuple[EffectSummary, ...]:
    """The summary of every column, the most important first."""
    fitted, out = column_effects.fitted, list[EffectSummary]()
    c = default_class(fitted.class_proportions)
    for one in column_effects.column_effects:
        line = describe_extremes(fitted, one.axis, c)
        if one.axis.contributions is None:
            out.append(EffectSummary(one.column, one.n_terms, one.importance, line))
            continue
        labels = enumerate(map(str, fitted.labels.values))
        effects = {label: tuple(one.axis.contrast(fitted.class_proportions, k).ravel().tolist()) for k, label in labels}
        at = one.axis.names[0] if one.axis.names else tuple(np.asarray(one.axis.positions).tolist())
        out.append(EffectSummary(one.column, one.n_terms, one.importance, line, at, effects))
    return tuple(out)


def default_class(class_proportions: Floats) -> int:
    """The class that effects are of at first: the second of two, else the most frequent."""
    return 1 if len(class_proportions) == 2 else int(np.argmax(class_proportions)) if len(class_proportions) else 0


def describe_extremes(fitted: FittedModel, one: TermAxis, class_index: int) -> str:
    """Where a term or a column contributes most for a class, and where most against it."""
    label = formatting.format_value(fitted.labels.values[class_index])
    if one.top_words:
        words = ", ".join(term.word for term in one.top_words[class_index][:8])
        return f"Speaks most for {label} by {words}."
    if one.contributions is None:
        columns = formatting.format_list([str(name) for name in one.term.columns], 6)
        return f"Weighs {columns} together; it has no cells that could be drawn." if len(one.term.columns) > 1 else ""
    said = one.contrast(fitted.class_proportions, class_index)
    met = np.ones(said.shape, bool) if one.frequencies is None else one.frequencies > 0
    seen = np.where(met & np.isfinite(said), said, 0.0)
    high, low = (np.unravel_index(int(at), said.shape) for at in (seen.argmax(), seen.argmin()))
    parts = []
    if seen[high] > 0:
        parts.append(f"most for {label} at {_describe_position(one, high)} ({seen[high]:+.2f} nats)")
    if seen[low] < 0:
        parts.append(f"most against it at {_describe_position(one, low)} ({seen[low]:+.2f})")
    return f"Says {', and '.join(parts)}." if parts else ""


def _describe_position(one: TermAxis, at: tuple[Any, ...]) -> str:
    if one.names:
        return " and ".join(formatting.format_value(names[i]) for names, i in zip(one.names, at, strict=True))
    assert one.positions is not None
    return formatting.format_number(float(one.positions[at[0]]))
