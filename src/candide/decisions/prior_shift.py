"""Adapting: a model where its classes have other shares, told by rows without labels.

What a model says of new rows holds the answer: the shares under which the rows are most probable are found by EM from
its probabilities alone (Saerens, Latinne and Decaestecker, 2002). It asks that p(x | class) is as it was, and that the
probabilities are right on rows like those learned from: a weighted model's are, those of naive Bayes often too sure.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> def rows(n, share):
...     y = rng.random(n) < share
...     return {"x": rng.normal(np.where(y, 1.5, 0.0), 1.0), "y": np.where(y, "yes", "no")}
>>> from candide.operations.fit import fit_model
>>> model = fit_model(rows(4000, 0.5), "y", model="naive").fitted
>>> found = adapt_prior(model, {"x": rows(8000, 0.1)["x"]})
>>> {label: round(share, 2) for label, share in found.proportions_after.items()}
{'no': 0.9, 'yes': 0.1}
"""

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.data.notes import issue_warnings
from candide.data.sampling import RowSampler
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.batches import split_batches
from candide.engines.reading import ReadOptions
from candide.engines.scoring import prepare_to_score, score_batch
from candide.errors import InputError
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.model.input_columns import UnseenValues
from candide.model.policy import Policy
from candide.store.models import ModelLike, load_fitted, make_read_options

_MAX_PROBABILITIES = 1 << 22  # probabilities kept: of more rows, as many as there is room for, by lot
_MAX_STEPS, _TOLERANCE = 20_000, 1e-10
_UNKNOWN_DEVIATION = 0.25  # a deviation of a share of which nothing is known: nearly that of a number from 0 to 1
_MIN_LIKELIHOOD_DIFFERENCE = 1e-6  # by which what rows say of classes must differ among them, to tell shares


@dataclass(frozen=True)
class AdaptedModel:
    """A model for other shares of its classes: before, after, and by how much the latter may be off (a deviation)."""

    fitted: FittedModel
    proportions_before: dict[Any, float]
    proportions_after: dict[Any, float]
    standard_error: dict[Any, float]
    n_rows: int


def adapt_prior(
    model: ModelLike,
    data: Any,
    out: str | os.PathLike | None = None,
    *,
    force: bool = False,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> AdaptedModel:
    """The model where its classes have the shares of new rows, whose labels nobody knows; kept in ``out``, if given."""
    from candide import store
    from candide.store import outputs

    if out is not None:
        outputs.check_destination(out, model, data, force=force)
    fitted = load_fitted(model)
    if len(fitted.labels) < 2:
        [label] = fitted.labels.values
        raise InputError(f"the model knows one class only, {label!r}", value=label, remedy="fit one with two classes")
    plain = without_prior_shift(fitted)
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        prepare_to_score(source, plain.plan, plain)
        strangers = UnseenValues(plain.plan)
        scan = source.engine.score(source, plain.plan, [])
        each = threads.map_ahead(partial(_posterior, plain, strangers), split_batches(scan.batches, len(plain.labels)))
        some = RowSampler(_MAX_PROBABILITIES // len(plain.labels))
        for log_posterior in each:
            some.add(log_posterior)
        if not some.n:
            raise InputError(f"{source.name} has no rows", value=0, remedy="pass rows to adapt to")
    issue_warnings(strangers.notes())
    found = estimate_class_prior(plain, some.rows)
    if not (found[1] < _UNKNOWN_DEVIATION).any():
        what, remedy = "these rows do not tell the shares of their classes", "pass more rows, or rows with more columns"
        raise InputError(what, value=some.n, remedy=remedy)
    after = dict(zip(plain.labels.values, found[0].tolist(), strict=True))
    new = fitted.with_policy(Policy(class_prior=after))
    if out is not None:
        store.save(new, out, force=force)
    labels = plain.labels.values
    before, error = (dict(zip(labels, values.tolist(), strict=True)) for values in (plain.base_proportions, found[1]))
    return AdaptedModel(new, before, after, error, some.n)


def without_prior_shift(fitted: FittedModel) -> FittedModel:
    """The model for the shares that it learned."""
    policy = fitted.policy
    return fitted if policy is None else replace(fitted, policy=replace(policy, class_prior=None))


def estimate_class_prior(fitted: FittedModel, log_posterior: Floats) -> tuple[Floats, Floats]:
    """(classes,) the shares of rows under a model as it was learned, and their deviations."""
    with np.errstate(divide="ignore"):
        ratio = log_posterior - np.log(fitted.base_proportions)
    ratio -= ratio.max(axis=1, keepdims=True)
    return fit_class_proportions(np.exp(ratio), fitted.base_proportions)


def fit_class_proportions(likelihood: Floats, start: Floats) -> tuple[Floats, Floats]:
    """(classes,) the shares under which rows are most probable, of p(x | class) up to a factor, and their deviations.

    >>> a, b = fit_class_proportions(np.repeat(np.eye(2), [30, 70], axis=0), np.array([0.5, 0.5]))
    >>> a.round(3).tolist(), b.round(3).tolist()
    ([0.3, 0.7], [0.046, 0.046])
    """
    found, n = np.where(start > 0, start, 0.0), len(likelihood)
    for _ in range(_MAX_STEPS):
        new = found * (likelihood / (likelihood @ found)[:, None]).mean(axis=0)
        new /= new.sum()
        moved, found = float(np.abs(new - found).max()), new
        if moved < _TOLERANCE:
            break
    scaled = likelihood / (likelihood @ found)[:, None]
    k = len(found)
    free = np.eye(k)[:, :-1] - np.eye(k)[:, [-1]]  # directions in which shares still sum to one
    spread = free @ np.linalg.pinv(free.T @ (scaled.T @ scaled) @ free) @ free.T
    error = np.sqrt(np.maximum(np.diag(spread), 0.0)) if n else np.full(k, np.nan)
    same = (
        np.ptp(likelihood / likelihood.sum(axis=1, keepdims=True), axis=0).max(initial=0.0) < _MIN_LIKELIHOOD_DIFFERENCE
    )
    return (start, np.full(k, np.inf)) if same else (found, error)


def _posterior(fitted: FittedModel, unseen_values: UnseenValues, batch: Any) -> Floats:
    return score_batch(fitted, batch, unseen_values)[0]
