"""Bernoulli: a number lies above a threshold, or it does not. The absent word counts."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from candide import distributions, formatting
from candide.conjugate.dirichlet import draw_log_prob, held_out_levels, level_evidence, pair_log_prob, proper_alpha
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.base import to_dense
from candide.encoding import Encoding, Grid, Identity
from candide.errors import InputError
from candide.events.base import EventModel, PosteriorSampler, Support
from candide.priors import Beta, Jeffreys, Prior, Uniform, refuse_improper
from candide.tally import LevelTally, Sums
from candide.tally.base import refuse_cells


@dataclass(frozen=True)
class Bernoulli(EventModel):
    """P(x > threshold) of its own in each class and column, under a Beta prior.

    ``threshold=None`` takes values from 0 to 1 as fractional counts: x of a yes and 1 - x of a no.

    >>> import candide as cd
    >>> model = cd.NaiveBayes(Bernoulli(threshold=0.5)).fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> model.predict([[1, 0]]).tolist()
    ['a']
    >>> fractions = cd.NaiveBayes(Bernoulli(threshold=None)).fit([[0.9], [0.7], [0.2], [0.1]], ["a", "a", "b", "b"])
    >>> fractions.predict([[0.8], [0.1]]).tolist(), Bernoulli(threshold=None).kind
    (['a', 'b'], 'sums')
    """

    name: ClassVar[str] = "bernoulli"
    accepts_sparse: ClassVar[bool] = True
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Beta, Jeffreys, Uniform)
    outcome: ClassVar[str] = "yes"

    threshold: float | None = 0.0
    prior: Prior | str | None = field(default=Beta(1.0, 1.0))

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "sums" if self.threshold is None else "levels"

    @property
    def support(self) -> Support:  # type: ignore[override]
        """All numbers; fractions only from 0 to 1."""
        return Support(0.0, 1.0) if self.threshold is None else Support()

    @property
    def encoding(self) -> Encoding:
        """A grid of one edge whose block keeps the numbers; fractions as they are."""
        return Identity(least=0.0) if self.threshold is None else Grid((self.threshold,), raw=True)

    def _estimate(self, tally: LevelTally | Sums, prior: Prior | None, how: str) -> distributions.Bernoulli:
        """The posterior predictive of one value is the posterior mean."""
        no, yes = _counts(tally)
        alpha = _level_alpha(prior, no.shape[-1])
        log_no, log_yes = pair_log_prob(no, yes, alpha[0::2], alpha[1::2], how)
        return distributions.Bernoulli(log_no, log_yes, self.threshold)

    def _posterior_sampler(self, tally: LevelTally | Sums, prior: Prior | None) -> PosteriorSampler:
        pairs = _to_level_tally(tally)
        shape = pairs.counts + proper_alpha(_level_alpha(prior, pairs.n.shape[1]))

        def draw(rng: "np.random.Generator") -> distributions.Bernoulli:
            log_p = draw_log_prob(shape, pairs.offsets, rng)
            return distributions.Bernoulli(log_p[:, 0::2], log_p[:, 1::2], self.threshold)

        return draw

    def _evidence(self, tally: LevelTally | Sums, prior: Prior | None) -> Floats:
        """Of the sequence of yes and no; of fractions as if they were counts."""
        pairs = _to_level_tally(tally)
        alpha = _level_alpha(prior, pairs.n.shape[1])
        refuse_improper(alpha <= 0, prior)
        return pairs.per_feature(level_evidence(pairs, alpha))

    def _tally_to_test(self, tally: LevelTally | Sums) -> LevelTally:
        return _to_level_tally(tally)

    @property
    def _has_leading_axes(self) -> bool:  # type: ignore[override]
        return self.threshold is None

    def _held_out_contributions(
        self, tally: Any, prior: Any, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        if self.threshold is None:
            return super()._held_out_contributions(tally, prior, how, block, y, weight)
        x, alpha = to_dense(block), _level_alpha(prior, tally.n.shape[1])
        codes = np.where(np.isnan(x), -1, x > self.threshold)
        return held_out_levels(tally, alpha, how, codes, y, weight)


def _counts(tally: LevelTally | Sums) -> tuple[Floats, Floats]:
    """(class, feature) the weight of no and of yes."""
    if isinstance(tally, LevelTally):
        return tally.counts[:, 0::2], tally.counts[:, 1::2]
    above = tally.total > tally.n * (1 + 1e-9)
    refuse_cells(above, "fractions of a yes must lie between 0 and 1; scale the values, or pass a threshold")
    return np.maximum(tally.n - tally.total, 0.0), tally.total


def _to_level_tally(tally: LevelTally | Sums) -> LevelTally:
    if isinstance(tally, LevelTally):
        return tally
    pairs = np.stack(_counts(tally), axis=2).reshape(len(tally.n), -1)
    return LevelTally(pairs, np.arange(0, pairs.shape[1] + 1, 2))


def _level_alpha(prior: Prior | None, n_features: int) -> Floats:
    """(no and yes of each feature) imaginary counts."""
    beta = prior if isinstance(prior, Beta) else Beta(0.5, 0.5) if isinstance(prior, Jeffreys) else Beta()
    for value in (beta.b, beta.a):
        if np.ndim(value) and len(np.atleast_1d(value)) != n_features:
            values = formatting.format_count(len(np.atleast_1d(value)), "value")
            raise InputError(f"{values} in the Beta prior for {formatting.format_count(n_features, 'column')}")
    return np.stack([np.broadcast_to(value, n_features) for value in (beta.b, beta.a)], axis=1).ravel()
