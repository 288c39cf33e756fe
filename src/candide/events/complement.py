"""Complement: each class scored by how little a document resembles all the others (Rennie et al., 2003).

Not a generative model: its weights are not log-probabilities, so it neither samples nor has evidence, and its
predictive is its posterior mean.

>>> tally = Sums(n=np.ones((2, 2)), total=np.array([[3.0, 1.0], [0.0, 2.0]]), log_factorial=np.zeros((2, 2)))
>>> np.exp(-Complement().estimate(tally).weights.T).round(4).tolist()  # P(word | not this class)
[[0.25, 0.75], [0.6667, 0.3333]]
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from candide import distributions
from candide.conjugate.checks import refuse_cells
from candide.conjugate.dirichlet import level_log_prob, pseudo_counts
from candide.encoding import Identity
from candide.events.base import EventModel, Support
from candide.events.multinomial import Multinomial, to_level_tally, word_alpha
from candide.priors import Dirichlet, Jeffreys, Prior, Uniform
from candide.tally import Sums


@dataclass(frozen=True)
class Complement(EventModel):
    """Minus the log-probability of each word outside the class; ``norm`` divides by a class's sum of weights.

    >>> import candide as cd
    >>> cd.NaiveBayes(Complement()).fit([[3, 0], [2, 1], [0, 4]], ["a", "a", "b"]).predict([[1, 0]]).tolist()
    ['a']
    """

    name: ClassVar[str] = "complement"
    kind: ClassVar[str] = "sums"
    accepts_sparse: ClassVar[bool] = True
    has_density: ClassVar[bool] = False
    accepts_groups: ClassVar[bool] = True
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = Support(low=0.0)
    encoding = Identity(least=0.0)
    outcome: ClassVar[str] = "the word"
    _information: ClassVar[str] = "word_information"
    _association_test: ClassVar[str] = "total_test"

    norm: bool = False
    prior: Prior | str | None = field(default=Dirichlet(1.0))

    @property
    def comparison_family(self) -> EventModel:
        return Multinomial(prior=self.prior)

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Multinomial:
        """A word that occurs nowhere and has no pseudo-count has weight 0."""
        alpha = word_alpha(prior, tally)
        everywhere = tally.total.sum(axis=0)
        others = Sums(tally.n, np.maximum(everywhere - tally.total, 0.0), tally.log_factorial)
        logs = level_log_prob(to_level_tally(others), alpha, how)
        is_absent = (everywhere == 0) & (pseudo_counts(alpha, how) <= 0)
        logs = np.where(is_absent, 0.0, logs)
        refuse_cells(
            np.isneginf(logs), "the word occurs in no other class, so its weight is infinite; use estimate='mean'"
        )
        if not self.norm:
            return distributions.Multinomial(-logs.T)
        total = logs.sum(axis=1, keepdims=True)
        return distributions.Multinomial(np.divide(logs, total, out=np.zeros_like(logs), where=total != 0).T)
