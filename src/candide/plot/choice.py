"""Choice: which columns to draw where none is named. Those that tell most of the class come first.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> strongest(Drawable.of(Fitted(garden())))[:3]
['leaf_mm', 'height_cm', 'flowers']
"""

from collections.abc import Callable
from typing import Any

from candide.errors import InputError
from candide.explain.voices import voices
from candide.model.select import strengths
from candide.plot.drawable import Drawable
from candide.rows.table import Name


def strongest(drawable: Drawable) -> list[Name]:
    """The columns of which a value was counted, by their evidence; in their own order where it is not known."""
    names = dict.fromkeys([*(name for name, _ in _evidence(drawable)), *drawable.columns])
    return [name for name in names if name in drawable.seen]


def two_strongest(
    drawable: Drawable, is_usable: Callable[[Drawable, Name], bool], kind: str
) -> tuple[tuple[Name, Name], str]:
    """The two columns of numbers of some ``kind`` that tell most of the class, and a note that says so."""
    numbers = set(drawable.numbers)
    usable = [n for n in strongest(drawable) if n in numbers and is_usable(drawable, n)]
    if len(usable) < 2:
        found = f"one, {usable[0]!r}" if usable else "none"
        raise InputError(f"this picture is of two {kind}, and the model has {found}; draw its densities")
    a, b = usable[:2]
    why = "which tell most of the class" if _evidence(drawable) else "the first"
    note = f"drawn over {a!r} and {b!r}, {why} of {len(usable)} {kind}; name others: --feature A --feature B"
    return (a, b), note


def _evidence(drawable: Drawable) -> Any:
    """Columns with their evidence, the strongest first; nothing where neither counts nor a file tell it.

    Of a weighted model they come by the strength of their voices.
    """
    if drawable.fitted.voices is not None:
        return [(one.columns[0], one.strength) for one in voices(drawable.fitted) if len(one.columns) == 1]
    if drawable.counted is not None:
        return strengths(drawable.counted)
    return getattr(drawable.fitted, "strengths", None) or ()
