"""Choice: which columns to draw where none is named. Those that tell most of the class come first.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> strongest_columns(Drawable.from_model(FittedModel(garden())))[:3]
['leaf_mm', 'height_cm', 'flowers']
"""

from collections.abc import Callable
from typing import Any

from candide.data.table import Name
from candide.errors import InputError
from candide.explain.terms import list_terms
from candide.model.feature_selection import rank_columns_by_evidence
from candide.plot.drawable import Drawable


def strongest_columns(drawable: Drawable) -> list[Name]:
    """The columns of which a value was counted, by their evidence; in their own order where it is not known."""
    names = dict.fromkeys([*(name for name, _ in _columns_by_evidence(drawable)), *drawable.columns])
    return [name for name in names if name in drawable.seen_columns]


def two_strongest_columns(
    drawable: Drawable, is_usable: Callable[[Drawable, Name], bool], kind: str
) -> tuple[tuple[Name, Name], str]:
    """The two columns of numbers of some ``kind`` that tell most of the class, and a note that says so."""
    numbers = set(drawable.number_columns)
    usable = [n for n in strongest_columns(drawable) if n in numbers and is_usable(drawable, n)]
    if len(usable) < 2:
        found = f"one, {usable[0]!r}" if usable else "none"
        raise InputError(f"this picture is of two {kind}, and the model has {found}; draw its densities")
    a, b = usable[:2]
    why = "which tell most of the class" if _columns_by_evidence(drawable) else "the first"
    note = f"drawn over {a!r} and {b!r}, {why} of {len(usable)} {kind}; name others: --feature A --feature B"
    return (a, b), note


def _columns_by_evidence(drawable: Drawable) -> Any:
    """Columns with their evidence, the strongest first; nothing where neither counts nor a file tell it.

    Of a weighted model they come by the strength of their voices.
    """
    if drawable.fitted.term_weights is not None:
        return [(one.columns[0], one.importance) for one in list_terms(drawable.fitted) if len(one.columns) == 1]
    if drawable.counts is not None:
        return rank_columns_by_evidence(drawable.counts)
    return getattr(drawable.fitted, "strengths", None) or ()
