"""Diff: what moved between two models, most surprising first.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> diff_models(FittedModel(garden()), FittedModel(garden())).columns
[]
"""

from typing import TYPE_CHECKING

from candide.errors import InputError
from candide.store.models import ModelLike, load_fitted

if TYPE_CHECKING:
    from candide.explain.compare import ModelComparison


def diff_models(before: ModelLike, after: ModelLike, limit: int = 12) -> "ModelComparison":
    """What moved between two models: classes, columns and levels, ``most`` of each."""
    from candide.explain import compare as comparing  # here: other tasks need none of it

    known = load_fitted(before), load_fitted(after)
    try:
        return comparing.compare_models(*known, limit)
    except InputError as error:
        if not (isinstance(before, str) and isinstance(after, str)):
            raise
        raise InputError(f"{before} and {after}: {error.problem}", remedy=error.remedy or "") from None
