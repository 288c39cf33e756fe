"""Whatever stands for a model: a fitted one, an estimator, or the path of a model file.

>>> from candide.demo import garden
>>> fitted = FittedModel(garden())
>>> load_fitted(fitted) is fitted
True
"""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from candide.engines.reading import ReadOptions
from candide.errors import InputError, InputTypeError
from candide.model.fitted import FittedModel
from candide.model.plan import Plan

if TYPE_CHECKING:
    from candide.store.input_schema import InputSchema

ModelLike = Any  # a Fitted, an estimator of Candide, or the path of a model file


def load_fitted(model: ModelLike) -> FittedModel:
    """What was fitted: of an estimator its own, of a path that of the file."""
    if isinstance(model, str | os.PathLike):
        from candide import store

        return store.load(model)
    held = getattr(model, "fitted_", model)
    if isinstance(held, FittedModel):
        return held
    if hasattr(model, "fit"):
        raise InputError(f"this {type(model).__name__} is not fitted yet", remedy="call fit(X, y)")
    raise InputTypeError(
        f"{type(model).__name__} is no model", remedy="pass a fitted estimator, or the path of a model file"
    )


def resolve_plan(like: Any) -> tuple[Plan, FittedModel | None]:
    """The plan that ``like`` is or has, and the model where it is one: what counts as it does can be added to it."""
    if isinstance(like, Plan):
        return like, None
    fitted = load_fitted(like)
    return fitted.counts.plan, fitted


def make_read_options(fitted: "FittedModel | InputSchema", reading: ReadOptions | None) -> ReadOptions:
    """How a source is read for a model: as is said, and what meant a missing value before does so again."""
    reading = reading or ReadOptions()
    return reading if reading.na_values or not fitted.na else replace(reading, na=fitted.na)


def resolve_target(fitted: FittedModel, target: str | None) -> str:
    """The column of the labels: the one that is named, or else the model's own."""
    name = target or fitted.target
    if name is None:
        raise InputError("the model does not say which column it learned", remedy="name it with --target (target=...)")
    return name
