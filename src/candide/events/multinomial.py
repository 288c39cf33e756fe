"""Multinomial: a document is a bag of words; each occurrence counts.

>>> tally = Sums(n=np.ones((1, 2)), total=np.array([[3.0, 1.0]]), log_factorial=np.zeros((1, 2)))
>>> np.exp(Multinomial().estimate(tally, how="mean").weights).ravel().round(4).tolist()  # (count + 1) / (total + d)
[0.6667, 0.3333]
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from candide import distributions, formatting
from candide.conjugate.checks import refuse_improper
from candide.conjugate.dirichlet import draw_log_prob, level_evidence, level_log_prob
from candide.data.blocks import Floats
from candide.encoding import Identity
from candide.errors import InputError
from candide.events.base import EventModel, Support
from candide.events.categorical import dirichlet_alpha
from candide.priors import Dirichlet, Jeffreys, Prior, Uniform
from candide.tally import LevelTally, Sums


@dataclass(frozen=True)
class Multinomial(EventModel):
    """The probability of each word in each class, under a Dirichlet prior; the columns of the block are the words.

    >>> import candide as cd
    >>> cd.NaiveBayes(Multinomial()).fit([[3, 0], [2, 1], [0, 4]], ["a", "a", "b"]).predict([[0, 2]]).tolist()
    ['b']
    """

    name: ClassVar[str] = "multinomial"
    kind: ClassVar[str] = "sums"
    accepts_sparse: ClassVar[bool] = True
    accepts_groups: ClassVar[bool] = True
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = Support(low=0.0)
    encoding = Identity(least=0.0)
    outcome: ClassVar[str] = "the word"
    _information: ClassVar[str] = "word_information"
    _association_test: ClassVar[str] = "total_test"

    prior: Prior | str | None = field(default=Dirichlet(1.0))

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Distribution:
        """The predictive is that of a whole document's sequence of words: Dirichlet-multinomial."""
        words, alpha = to_level_tally(tally), word_alpha(prior, tally)
        if how != "predictive":
            return distributions.Multinomial(level_log_prob(words, alpha, how).T, mean_length(tally))
        posterior = alpha + tally.total
        if not posterior.sum(axis=1).all():
            raise InputError(f"a class without words has no predictive under {prior!r}; use alpha > 0")
        return distributions.DirichletMultinomial(posterior, mean_length(tally))

    def _draw_posterior(self, tally: Sums, rng: "np.random.Generator") -> distributions.Distribution:
        """Shares of words under Dirichlet(1/2)."""
        words = to_level_tally(tally)
        return distributions.Multinomial(draw_log_prob(words.counts + 0.5, words.offsets, rng).T, mean_length(tally))

    def _evidence(self, tally: Sums, prior: Prior | None) -> Floats:
        """Of the sequence of words of all documents of a class; the normaliser is shared out by the words' counts."""
        alpha = word_alpha(prior, tally)
        refuse_improper(alpha <= 0, prior)
        return level_evidence(to_level_tally(tally), alpha)


def to_level_tally(tally: Sums) -> LevelTally:
    """A bag of words is one feature whose levels are the words."""
    return LevelTally(tally.total, np.array([0, tally.total.shape[1]], np.intp))


def word_alpha(prior: Prior | None, tally: Sums) -> Floats:
    """Imaginary occurrences of every word."""
    n_words, alpha = tally.total.shape[1], dirichlet_alpha(prior)
    if alpha.ndim and len(alpha) != n_words:
        raise InputError(
            f"{formatting.format_count(n_words, 'column')}, and "
            f"{formatting.format_count(len(alpha), 'value')} of alpha in the Dirichlet prior"
        )
    return np.broadcast_to(alpha, n_words)


def mean_length(tally: Sums) -> int:
    """Words in a document, averaged over all classes: for sampling, as the model has no distribution of lengths."""
    n_rows = tally.n.max(axis=1, initial=0.0).sum()
    with np.errstate(over="ignore"):
        mean = float(tally.total.sum() / n_rows) if n_rows > 0 else 1.0
    return max(1, round(min(mean, 1e9)))  # no document is longer; tiny weights can make the ratio larger
