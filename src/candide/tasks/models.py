"""Whatever stands for a model: a fitted one, an estimator, or the path of a model file.

>>> from candide.demo import garden
>>> fitted = Fitted(garden())
>>> fitted_of(fitted) is fitted
True
"""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from candide.engines.reading import Reading
from candide.errors import InputError, InputTypeError
from candide.model.fitted import Fitted
from candide.model.plan import Plan

if TYPE_CHECKING:
    from candide.tasks.wanted import Wanted

Model = Any  # a Fitted, an estimator of Candide, or the path of a model file


def fitted_of(model: Model) -> Fitted:
    """What was fitted: of an estimator its own, of a path that of the file."""
    if isinstance(model, str | os.PathLike):
        from candide import store

        return store.load(model)
    held = getattr(model, "fitted_", model)
    if isinstance(held, Fitted):
        return held
    if hasattr(model, "fit"):
        raise InputError(f"this {type(model).__name__} is not fitted yet", remedy="call fit(X, y)")
    raise InputTypeError(
        f"{type(model).__name__} is no model", remedy="pass a fitted estimator, or the path of a model file"
    )


def plan_like(like: Any) -> tuple[Plan, Fitted | None]:
    """The plan that ``like`` is or has, and the model where it is one: what counts as it does can be added to it."""
    if isinstance(like, Plan):
        return like, None
    fitted = fitted_of(like)
    return fitted.census.plan, fitted


def reading_of(fitted: "Fitted | Wanted", reading: Reading | None) -> Reading:
    """How a source is read for a model: as is said, and what meant a missing value before does so again."""
    reading = reading or Reading()
    return reading if reading.missing or not fitted.na else replace(reading, na=fitted.na)


def target_of(fitted: Fitted, target: str | None) -> str:
    """The column of the labels: the one that is named, or else the model's own."""
    name = target or fitted.target
    if name is None:
        raise InputError("the model does not say which column it learned", remedy="name it with --target (target=...)")
    return name
