"""Whatever stands for a model: a fitted one, an estimator, or the path of a model file.

>>> from candide.demo import garden
>>> fitted = FittedModel(garden())
>>> load_fitted(fitted) is fitted
True
"""

import os
from collections.abc import Sequence
from typing import Any

from candide.errors import InputError, InputTypeError
from candide.model.fitted import FittedModel
from candide.model.plan import Plan

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


def refuse_plan_options(events: Any, drop: Sequence[str]) -> None:
    """Refuse options on how columns are counted together with ``like``, which decides it."""
    if events != "auto" or drop:
        what = "like determines the columns and how they are counted"
        raise InputError(what, value=list(drop) or events, remedy="leave events and drop out, or like")


def resolve_target(fitted: FittedModel, target: str | None) -> str:
    """The column of the labels: the one that is named, or else the model's own."""
    name = target or fitted.target
    if name is None:
        raise InputError("the model does not say which column it learned", remedy="name it with --target (target=...)")
    return name
