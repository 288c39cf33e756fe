"""Weighing again: the weights of a model's voices learned from rows at hand, against the counts that it has now.

Rows that were counted are left out one by one, so that no voice is trusted because it has seen the answer. Rows that
were never counted have nothing to be left out of: that is said with ``new``. A model keeps counts, not rows, so it
refuses only what cannot have been counted.

>>> import numpy as np
>>> from candide.rows.labels import Labels
>>> from candide.rows.table import Table
>>> from candide.tasks.weigh import learn
>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> table = Table.of({"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b]})
>>> fitted = learn(table, a ^ b)
>>> twice, seen = fitted + fitted, Look.of(table, a ^ b, Labels((0, 1)))
>>> twice.voices.said(800), weighed(twice, seen).voices.said(800)
('weights learned on 800 of 800 rows', 'weights learned on 400 of 800 rows')
>>> weighed(fitted, Look.of(Table.of({"a": ["maybe"], "b": ["low"]}), np.array([0]), Labels((0,))))
Traceback (most recent call last):
    ...
candide.errors.NotWithinError: column 'a': class 0, level 'maybe': more is removed than was counted, 1 of 0; weigh by \
rows that the model has counted, with the same weights, or pass new=True (--new) where it has counted none of them
"""

from dataclasses import replace

from candide.engines import arrays
from candide.errors import InputError, NotWithinError
from candide.model import voices
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.rows import matching
from candide.rows.remarks import Remark
from candide.tasks.look import Look
from candide.tasks.weigh import weigh


def weighed(fitted: Fitted, seen: Look, *, new: bool = False, sure: bool = False) -> Fitted:
    """The model with weights learned again from some rows; ``sure`` where they are known to have been counted."""
    check_weighted(fitted)
    seen, census, settings = _among(fitted, seen), fitted.census, fitted.settings
    if new:
        effective = census if fitted.voices is None else fitted.voices.effective(census)
        rows = seen.met().pooled().among(fitted.labels)
        found = voices.learn(effective, settings, rows.training_rows(census.plan), is_counted=False, patient=True)
        n = min(found.rows, 1) * rows.n_rows
        found = replace(found, rows=n, fresh=n, copies=None if fitted.voices is None else fitted.voices.copies)
    else:
        if not sure:
            _check_within(census, seen)
        found = weigh(census, settings, seen.met().pooled().among(fitted.labels))
    return replace(fitted, voices=found)


def stale(fitted: Fitted) -> list[Remark]:
    """A remark where weights were learned before rows were taken out, or before they doubled."""
    if fitted.voices is None or not fitted.has_counts or not fitted.voices.stale(fitted.census.n_rows):
        return []
    remedy = "learn them again from rows that it has counted: candide weigh MODEL DATA (weigh)"
    return [Remark("weights", f"the model has {fitted.voices.said(fitted.census.n_rows)}", remedy=remedy)]


def check_weighted(fitted: Fitted) -> None:
    """Refuse a model that has no weights."""
    if fitted.voices is None and fitted.has_counts:
        raise InputError("this model has no weights: each of its columns counts once", remedy="fit a BayesClassifier")
    fitted.census  # noqa: B018  which says where there are no counts


def _among(fitted: Fitted, seen: Look) -> Look:
    """The rows with their classes as the model has them."""
    for label in seen.labels.values:
        if matching.place(label, fitted.labels) is None:
            what, remedy = f"class {label!r} was never counted", "count its rows first, by update or partial_fit"
            raise NotWithinError(what, value=label, remedy=remedy)
    return seen.among(fitted.labels)


def _check_within(census: Census, seen: Look) -> None:
    """Refuse rows that cannot all have been counted."""
    plan = census.plan.with_levels(seen.table)
    part = arrays.count(seen.table, seen.labels.array[seen.y], seen.weight, plan=plan)
    try:
        _ = census - part.like(census)
    except NotWithinError as error:
        error.remedy = (
            "weigh by rows that the model has counted, with the same weights, "
            "or pass new=True (--new) where it has counted none of them"
        )
        raise
