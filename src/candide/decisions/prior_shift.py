"""Re-estimate the class prior of a model from unlabelled rows.

The class proportions under which new rows are most probable are found by EM from the model's probabilities alone
(Saerens, Latinne and Decaestecker, 2002). This assumes that p(x | class) has not changed and that the probabilities are
calibrated on rows like the training rows: those of a weighted model are, those of naive Bayes are often too confident.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.data.notes import issue_warnings
from candide.data.sample import RowSampler
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.batches import split_batches
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import prepare_to_score, score_batch
from candide.errors import InputError
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.model.input_columns import UnseenValues
from candide.model.policy import Policy

_MAX_PROBABILITIES = 1 << 22  # probabilities kept, of a random sample of the rows
_MAX_STEPS, _TOLERANCE = 20_000, 1e-10
_UNKNOWN_DEVIATION = 0.25  # standard error of a proportion that is unknown: nearly that of a uniform number
_MIN_LIKELIHOOD_DIFFERENCE = 1e-6  # between rows, below which they do not determine proportions


@dataclass(frozen=True)
class AdaptedModel:
    """A model with a new class prior, the proportions before and after, and the standard errors of the latter."""

    fitted: FittedModel
    proportions_before: dict[Any, float]
    proportions_after: dict[Any, float]
    standard_error: dict[Any, float]
    n_rows: int


def adapt_prior(
    fitted: FittedModel, data: Any, *, reading: ReadOptions | None = None, watch: Watch = no_progress
) -> AdaptedModel:
    """The model with the class prior of new, unlabelled rows."""
    if len(fitted.labels) < 2:
        [label] = fitted.labels.values
        raise InputError(f"the model has only one class, {label!r}", value=label, remedy="fit one with two classes")
    labels, policy = fitted.labels.values, fitted.policy
    base = fitted if policy is None else replace(fitted, policy=replace(policy, class_prior=None))
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        prepare_to_score(source, base.plan, base)
        unseen_values, sampler = UnseenValues(base.plan), RowSampler(_MAX_PROBABILITIES // len(labels))
        scan = source.engine.score(source, base.plan, [])
        score = partial(score_batch, base, unseen_values=unseen_values)
        for log_posterior, _ in threads.map_ahead(score, split_batches(scan.batches, len(labels))):
            sampler.add(log_posterior)
        if not sampler.n:
            raise InputError(f"{source.name} has no rows", value=0, remedy="pass rows to adapt to")
    issue_warnings(unseen_values.notes())
    with np.errstate(divide="ignore"):
        ratio = sampler.rows - np.log(base.base_proportions)
    ratio -= ratio.max(axis=1, keepdims=True)
    proportions, errors = fit_class_proportions(np.exp(ratio), base.base_proportions)
    if not (errors < _UNKNOWN_DEVIATION).any():
        what, remedy = "these rows do not determine the class proportions", "pass more rows, or rows with more columns"
        raise InputError(what, value=sampler.n, remedy=remedy)
    before, after, error = (
        dict(zip(labels, values.tolist(), strict=True)) for values in (base.base_proportions, proportions, errors)
    )
    return AdaptedModel(fitted.with_policy(Policy(class_prior=after)), before, after, error, sampler.n)


def fit_class_proportions(likelihood: Floats, start: Floats) -> tuple[Floats, Floats]:
    """(classes,) maximum-likelihood proportions and their standard errors, of p(x | class) up to a factor by row."""
    proportions, n = np.where(start > 0, start, 0.0), len(likelihood)
    for _ in range(_MAX_STEPS):
        new = proportions * (likelihood / (likelihood @ proportions)[:, None]).mean(axis=0)
        new /= new.sum()
        change, proportions = float(np.abs(new - proportions).max()), new
        if change < _TOLERANCE:
            break
    scaled = likelihood / (likelihood @ proportions)[:, None]
    k = len(proportions)
    free = np.eye(k)[:, :-1] - np.eye(k)[:, [-1]]  # directions in which proportions still sum to one
    spread = free @ np.linalg.pinv(free.T @ (scaled.T @ scaled) @ free) @ free.T
    error = np.sqrt(np.maximum(np.diag(spread), 0.0)) if n else np.full(k, np.nan)
    ranges = np.ptp(likelihood / likelihood.sum(axis=1, keepdims=True), axis=0)
    is_constant = ranges.max(initial=0.0) < _MIN_LIKELIHOOD_DIFFERENCE
    return (start, np.full(k, np.inf)) if is_constant else (proportions, error)
