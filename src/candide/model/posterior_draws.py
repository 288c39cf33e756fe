"""Draws: models whose parameters are drawn from the posterior of their laws; how sure a probability itself is.

"81 %, 76 to 86" says that the counts leave P(class | x) open by so much: of few rows by a lot. It takes the model's
assumptions for true, that columns are independent given the class above all; what these cost it does not say. The
parameters are drawn under Jeffreys' priors, whatever prior the estimates have, so that intervals hold as often as they
say; an estimate that its prior draws far from the rows may lie outside. A model
whose voices are weighted is no product of laws, and its weights have no posterior that is kept: there is no interval.

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
    """A model as probable as the counts make it."""
    refuse_weighted(fitted)
    census = fitted.selected_counts
    laws = []
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        try:
            laws.append(part.event.draw_posterior(tally, rng))
        except CellError as error:
            label, column = census.labels.values[error.class_code], part.columns[error.feature]
            raise InputError(f"class {label!r}: {error.reason}", column=column) from None
        except InputError as error:
            remedy = error.remedy or ""
            raise InputError(error.problem, column=part.columns[0], value=error.value, remedy=remedy) from None
    return Model(_log_prior(fitted, rng), tuple(laws))


def refuse_weighted(fitted: FittedModel) -> None:
    """An error where there is no posterior of laws to draw from."""
    if fitted.term_weights is not None:
        raise InputError(
            "a weighted model has no interval of its probabilities: its weights are learned, and have no posterior",
            remedy="fit it with model='naive' (--model naive), or look how often such probabilities come true: "
            "candide evaluate",
        )
    fitted.counts  # noqa: B018  without counts there is no posterior: an error says so


def _log_prior(fitted: FittedModel, rng: "np.random.Generator") -> Floats:
    """Shares that are given stay; those that were counted are drawn under Jeffreys' prior."""
    policy, given = fitted.policy, fitted.settings.class_prior
    with np.errstate(divide="ignore"):
        if policy is not None and policy.class_prior is not None and policy.has_shifted_prior:
            return np.log(parse_class_proportions(policy.class_prior, fitted.labels))
        if fitted.settings.has_class_proportions or given is None or (isinstance(given, str) and given == "uniform"):
            return fitted.unadjusted_model.log_prior
        return np.log(rng.dirichlet(fitted.selected_counts.class_weight + 0.5))


def draw_models(fitted: FittedModel, n: int = N_DRAWS, seed: int = 0) -> list[Model]:
    """So many models drawn from the posterior, the same each time."""
    rng = np.random.default_rng(seed)
    return [draw_model(fitted, rng) for _ in range(n)]


def probability_intervals(models: Sequence[Model], blocks: Sequence[Block], level: float = 0.95) -> Floats:
    """(row, class, 2) between which values P(class | x) lies in such a share of the models."""
    each = np.stack([model.posterior(blocks) for model in models])
    # Of m draws the i-th smallest has i / (m + 1) below it on average: others would make intervals too narrow.
    ends = np.quantile(each, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return np.moveaxis(ends, 0, -1)


def check_level(level: float) -> None:
    """An error where a level is none."""
    if not (isinstance(level, int | float | np.number) and 0 < level < 1):
        raise InputError(
            f"level: {level!r} is no level of an interval", value=level, remedy="pass a number such as 0.95"
        )
