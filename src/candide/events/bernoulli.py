"""Bernoulli: a number lies above a threshold, or it does not. The absent word counts.

>>> tally = Levels(np.array([[1.0, 2.0]]), np.array([0, 2]))  # one no, two yes
>>> [Bernoulli().estimate(tally, Beta(10, 10), how).parameters()["probability"].item() for how in ("map", "mean")]
[0.5238095238095238, 0.5217391304347826]
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from candide import distributions as laws
from candide.conjugate.checks import refuse_improper
from candide.conjugate.dirichlet import held_out_levels, level_evidence, level_log_prob
from candide.distributions.base import dense
from candide.encode import Grid
from candide.errors import InputError
from candide.events.base import EventModel
from candide.priors import Beta, Jeffreys, Prior, Uniform
from candide.rows.blocks import Block, Codes, Floats
from candide.tally import Levels


@dataclass(frozen=True)
class Bernoulli(EventModel):
    """P(x > threshold) of its own in each class and column, under a Beta prior.

    >>> import candide as cd
    >>> model = cd.NaiveBayes(Bernoulli(threshold=0.5)).fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> model.predict([[1, 0]]).tolist()
    ['a']
    """

    name: ClassVar[str] = "bernoulli"
    kind: ClassVar[str] = "levels"
    sparse: ClassVar[bool] = True
    accepts: ClassVar[tuple[type[Prior], ...]] = (Beta, Jeffreys, Uniform)

    threshold: float = 0.0
    prior: Prior | str | None = field(default=Beta(1.0, 1.0))

    @property
    def encoding(self) -> Grid:
        """One edge; the block keeps the numbers."""
        return Grid((self.threshold,), raw=True)

    def _estimate(self, tally: Levels, prior: Prior | None, how: str) -> laws.Distribution:
        """The posterior predictive of one value is the posterior mean."""
        log_prob = level_log_prob(tally, _alpha(prior, tally), how)
        return laws.Bernoulli(log_prob[:, 0::2], log_prob[:, 1::2], self.threshold)

    def _evidence(self, tally: Levels, prior: Prior | None) -> Floats:
        alpha = _alpha(prior, tally)
        refuse_improper(alpha <= 0, prior)
        return tally.per_feature(level_evidence(tally, alpha))

    def _held_out(self, tally: Any, prior: Any, how: str, block: Block, y: Codes, weight: Floats | None) -> Floats:
        x = dense(block)
        codes = np.where(np.isnan(x), -1, x > self.threshold)
        return held_out_levels(tally, _alpha(prior, tally), how, codes, y, weight)


def _alpha(prior: Prior | None, tally: Levels) -> Floats:
    """Imaginary counts of (no, yes) for each column, one after another."""
    n_features = len(tally.offsets) - 1
    beta = prior if isinstance(prior, Beta) else Beta(0.5, 0.5) if isinstance(prior, Jeffreys) else Beta()
    pairs = np.empty((n_features, 2))
    for side, value in enumerate((beta.b, beta.a)):
        if np.ndim(value) and len(np.atleast_1d(value)) != n_features:
            raise InputError(f"{len(np.atleast_1d(value))} values in the Beta prior for {n_features} columns")
        pairs[:, side] = value
    return pairs.ravel()
