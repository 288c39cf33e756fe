"""Categorical: one of K levels, counted. An unseen level gets the prior's probability of one level: finite.

By default the table of each class is pulled towards the level proportions of all classes, as far as the counts suggest
(see :mod:`candide.conjugate.pooled`); with ``Dirichlet(1)`` each has an imaginary row of every level, Laplace's rule.

>>> tally = LevelTally(np.array([[3.0, 1.0, 0.0]]), np.array([0, 3]))
>>> distribution = Categorical().estimate(tally, Dirichlet(1))  # (count + 1) / (n + K)
>>> np.exp(distribution.log_prob(np.array([[0], [1], [2], [99]]))).ravel().round(6).tolist()
[0.571429, 0.285714, 0.142857, 0.142857]
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from candide import conjugate, distributions, formatting
from candide.conjugate.checks import refuse_improper
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.errors import InputError
from candide.events.base import EventModel, Support
from candide.priors import Dirichlet, Jeffreys, PooledDirichlet, Prior, Uniform
from candide.tally import LevelTally


@dataclass(frozen=True)
class Categorical(EventModel):
    """The probability of each level in each class, under a prior centred on the pooled proportions or a Dirichlet.

    >>> import candide as cd
    >>> code, y = {"code": [7, 7, 9, 9]}, ["a", "a", "b", "b"]
    >>> model = cd.NaiveBayes({"code": Categorical(prior="dirichlet")}).fit(code, y)
    >>> model.predict_proba({"code": [7, 8]}).round(3).tolist()  # (2 + 1) / (2 + 2) against 1/4; 8 was never seen
    [[0.75, 0.25], [0.5, 0.5]]
    >>> cd.NaiveBayes({"code": Categorical()}).fit(code, y).predict_proba({"code": [7, 8]}).round(3).tolist()
    [[0.716, 0.284], [0.5, 0.5]]
    """

    name: ClassVar[str] = "categorical"
    kind: ClassVar[str] = "levels"
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (PooledDirichlet, Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = None

    prior: Prior | str | None = field(default=PooledDirichlet())

    def _estimate(self, tally: LevelTally, prior: Prior | None, how: str) -> "distributions.Categorical":
        """The posterior predictive of one value is the posterior mean.

        An unseen level has probability 0 where the prior has no mass for it (MLE; MAP with alpha <= 1): it contributes
        nothing then, and the density of its row is 0.
        """
        if isinstance(prior, PooledDirichlet) and how != "mle":
            table, unseen = conjugate.pooled.pooled_log_prob(tally, prior.alpha)
            return distributions.Categorical(table.T, tally.offsets, unseen)
        alpha = _alpha(prior, tally)
        log_prob = conjugate.dirichlet.level_log_prob(tally, alpha, how)
        return distributions.Categorical(
            log_prob.T, tally.offsets, conjugate.dirichlet.unseen_log_prob(tally, alpha, how)
        )

    def _draw_posterior(self, tally: LevelTally, rng: "np.random.Generator") -> "distributions.Categorical":
        """Probabilities of levels under Dirichlet(1/2); an unseen level has that of the posterior mean."""
        log_p = conjugate.dirichlet.draw_log_prob(tally.counts + 0.5, tally.offsets, rng)
        unseen = conjugate.dirichlet.unseen_log_prob(tally, np.full(tally.offsets[-1], 0.5), "mean")
        return distributions.Categorical(log_p.T, tally.offsets, unseen)

    def _evidence(self, tally: LevelTally, prior: Prior | None) -> Floats:
        if isinstance(prior, PooledDirichlet):
            return conjugate.pooled.pooled_evidence(tally, prior.alpha)
        alpha = _alpha(prior, tally)
        refuse_improper(alpha <= 0, prior)
        return tally.per_feature(conjugate.dirichlet.level_evidence(tally, alpha))

    def _held_out_contributions(
        self, tally: Any, prior: Any, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        if isinstance(prior, PooledDirichlet) and how != "mle":
            return conjugate.pooled.held_out_pooled(tally, prior.alpha, to_dense(block), y, weight)
        return conjugate.dirichlet.held_out_levels(tally, _alpha(prior, tally), how, to_dense(block), y, weight)


def _alpha(prior: Prior | None, tally: LevelTally) -> Floats:
    """Imaginary counts of every level of every column; a sequence must fit each column's levels."""
    sizes = np.diff(tally.offsets)
    alpha = dirichlet_alpha(prior)
    if alpha.ndim == 0:
        return np.full(tally.offsets[-1], float(alpha))
    if (sizes != len(alpha)).any():
        j = int(np.flatnonzero(sizes != len(alpha))[0])
        raise InputError(
            f"column {j} has {formatting.format_count(sizes[j], 'level')}, "
            f"and the Dirichlet prior {formatting.format_count(len(alpha), 'value')} of alpha"
        )
    return np.tile(alpha, len(sizes))


def dirichlet_alpha(prior: Prior | None) -> Floats:
    """The alpha, one or a sequence, that a prior on level probabilities means."""
    if isinstance(prior, Dirichlet):
        return np.asarray(prior.alpha, float)
    return np.asarray(0.5 if isinstance(prior, Jeffreys) else 1.0)
