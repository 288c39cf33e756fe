"""Diff: what moved between two models, most surprising first.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> diff(Fitted(garden()), Fitted(garden())).columns
[]
"""

from typing import TYPE_CHECKING

from candide.errors import InputError
from candide.tasks.models import Model, fitted_of

if TYPE_CHECKING:
    from candide.explain.compare import Comparison


def diff(before: Model, after: Model, most: int = 12) -> "Comparison":
    """What moved between two models: classes, columns and levels, ``most`` of each."""
    from candide.explain import compare as comparing  # here: other tasks need none of it

    known = fitted_of(before), fitted_of(after)
    try:
        return comparing.compare(*known, most)
    except InputError as error:
        if not (isinstance(before, str) and isinstance(after, str)):
            raise
        raise InputError(f"{before} and {after}: {error.what}", remedy=error.remedy or "") from None
