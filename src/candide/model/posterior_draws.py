"""Posterior draws: models whose parameters are drawn from their posterior, for intervals of probabilities.

An interval such as "81%, 76 to 86" is the uncertainty of P(class | x) given the counts: large for few rows. It assumes
that the model is true, above all that columns are independent given the class, and does not include the error of these
assumptions. Parameters are drawn under the priors of the prediction, so that the interval is about its probability.
Where there is no prior (MLE, empirical class proportions), or one of alpha = 0, Jeffreys' prior is used. A weighted
model has no posterior of its weights, and so no intervals.
"""

from collections.abc import Callable, Sequence

import numpy as np

from candide.data.blocks import Block, Floats
from candide.errors import CellError, InputError
from candide.events import Categorical
from candide.events.base import PosteriorSampler
from candide.model.fitted import FittedModel
from candide.model.model import Model, estimate_for, estimation_error, prior_for
from candide.model.policy import parse_class_proportions
from candide.priors import Jeffreys

N_DRAWS = 200


def draw_models(fitted: FittedModel, n: int = N_DRAWS, seed: int = 0) -> list[Model]:
    """Draw models from the posterior, the same each time."""
    if fitted.term_weights is not None:
        remedy = "fit it with model='naive' (--model naive), or check its calibration with candide evaluate"
        raise InputError("a weighted model has no intervals: its weights have no posterior", remedy=remedy)
    fitted.counts  # noqa: B018  raises an error if there are none
    counts, settings, samplers = fitted.selected_counts, fitted.settings, list[PosteriorSampler]()
    for part, tally in counts.parts:
        prior, how = prior_for(part.event, settings.param_priors), estimate_for(part.event, settings.estimate)
        try:
            samplers.append(part.event.posterior_sampler(tally, prior, how))
        except CellError as error:
            raise estimation_error(error, counts.labels, part) from None
        except InputError as error:
            remedy = error.remedy or ""
            raise InputError(error.problem, column=part.columns[0], value=error.value, remedy=remedy) from None
    rng, draw_prior = np.random.default_rng(seed), _class_prior_sampler(fitted)
    return [Model(draw_prior(rng), tuple(draw(rng) for draw in samplers)) for _ in range(n)]


def _class_prior_sampler(fitted: FittedModel) -> "Callable[[np.random.Generator], Floats]":
    """Return given proportions as they are; draw counted ones, under Jeffreys' prior if they have none of their own."""
    policy, given, counts = fitted.policy, fitted.settings.class_prior, fitted.selected_counts
    if policy is not None and policy.class_prior is not None and policy.has_shifted_prior:
        with np.errstate(divide="ignore"):
            log_prior = np.log(parse_class_proportions(policy.class_prior, fitted.labels))
        return lambda rng: log_prior
    if fitted.settings.has_class_proportions or given is None or given == "uniform":
        return lambda rng: fitted.unadjusted_model.log_prior
    prior = Jeffreys() if given == "empirical" else given
    draw = Categorical().posterior_sampler(counts.class_tally, prior)
    return lambda rng: draw(rng).log_prob(np.arange(len(counts.labels))[:, None])[:, 0]


def probability_intervals(model: Model, models: Sequence[Model], blocks: Sequence[Block], level: float) -> Floats:
    """(row, class, 2) the interval that contains P(class | x) in a fraction ``level`` of the ``models`` drawn.

    It is extended to the prediction of ``model``, which averages over the parameters. Far from the training rows this
    is less extreme than nearly all draws: Student's t has wider tails than any normal drawn.
    """
    each = np.stack([model.posterior(blocks) for model in models])
    # The i-th smallest of m draws has i / (m + 1) below it on average: other quantiles make intervals too narrow.
    ends = np.quantile(each, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    p = model.posterior(blocks)
    return np.stack([np.minimum(ends[0], p), np.maximum(ends[1], p)], axis=-1)


def check_level(level: float) -> None:
    if not (isinstance(level, int | float | np.number) and 0 < level < 1):
        what = f"level: {level!r} is not between 0 and 1"
        raise InputError(what, value=level, remedy="pass a number such as 0.95")
