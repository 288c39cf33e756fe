"""Posterior draws: models whose parameters are drawn from their posterior, for intervals of probabilities.

An interval such as "81%, 76 to 86" is the uncertainty of P(class | x) given the counts: large for few rows. It assumes
that the model is true, above all that columns are independent given the class, and does not include the error of these
assumptions. Parameters are drawn under Jeffreys' priors, whatever the prior of the estimates, so that intervals have
their nominal coverage; an estimate that its prior moves far from the data may lie outside. A weighted model has no
posterior of its weights, and so no intervals.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> from candide.data.table import Table
>>> rows = Table.from_data(
...     {"height_cm": [21.0], "leaf_mm": [40.0], "flowers": [14], "soil": ["sand"], "scented": ["yes"]}
... )
>>> herbs = FittedModel(garden())
>>> low, high = probability_intervals(draw_models(herbs), herbs.plan.blocks(rows))[0, 0]
>>> bool(low < herbs.posterior(rows)[0, 0] < high)
True
"""

from collections.abc import Sequence

import numpy as np

from candide.data.blocks import Block, Floats
from candide.errors import CellError, InputError
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.model.policy import parse_class_proportions

N_DRAWS = 200


def draw_model(fitted: FittedModel, rng: "np.random.Generator") -> Model:
    """Draw a model from the posterior."""
    refuse_weighted(fitted)
    counts = fitted.selected_counts
    distributions = []
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        try:
            distributions.append(part.event.draw_posterior(tally, rng))
        except CellError as error:
            label, column = counts.labels.values[error.class_code], part.columns[error.feature]
            raise InputError(f"class {label!r}: {error.reason}", column=column) from None
        except InputError as error:
            remedy = error.remedy or ""
            raise InputError(error.problem, column=part.columns[0], value=error.value, remedy=remedy) from None
    return Model(_log_prior(fitted, rng), tuple(distributions))


def refuse_weighted(fitted: FittedModel) -> None:
    """Raise an error if there is no posterior to draw from."""
    if fitted.term_weights is not None:
        remedy = "fit it with model='naive' (--model naive), or check its calibration with candide evaluate"
        raise InputError("a weighted model has no intervals: its weights have no posterior", remedy=remedy)
    fitted.counts  # noqa: B018  raises an error if there are none


def _log_prior(fitted: FittedModel, rng: "np.random.Generator") -> Floats:
    """Return given proportions as they are; draw counted ones under Jeffreys' prior."""
    policy, given = fitted.policy, fitted.settings.class_prior
    with np.errstate(divide="ignore"):
        if policy is not None and policy.class_prior is not None and policy.has_shifted_prior:
            return np.log(parse_class_proportions(policy.class_prior, fitted.labels))
        if fitted.settings.has_class_proportions or given is None or (isinstance(given, str) and given == "uniform"):
            return fitted.unadjusted_model.log_prior
        return np.log(rng.dirichlet(fitted.selected_counts.class_weight + 0.5))


def draw_models(fitted: FittedModel, n: int = N_DRAWS, seed: int = 0) -> list[Model]:
    """Draw models from the posterior, the same each time."""
    rng = np.random.default_rng(seed)
    return [draw_model(fitted, rng) for _ in range(n)]


def probability_intervals(models: Sequence[Model], blocks: Sequence[Block], level: float = 0.95) -> Floats:
    """(row, class, 2) the interval that contains P(class | x) in a fraction ``level`` of the models."""
    each = np.stack([model.posterior(blocks) for model in models])
    # The i-th smallest of m draws has i / (m + 1) below it on average: other quantiles make intervals too narrow.
    ends = np.quantile(each, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return np.moveaxis(ends, 0, -1)


def check_level(level: float) -> None:
    """Raise an error if a level is not between 0 and 1."""
    if not (isinstance(level, int | float | np.number) and 0 < level < 1):
        what = f"level: {level!r} is not between 0 and 1"
        raise InputError(what, value=level, remedy="pass a number such as 0.95")
