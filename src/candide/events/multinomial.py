"""Bags of words: the multinomial, and complement naive Bayes on the same counts."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from candide import distributions, formatting
from candide.conjugate.dirichlet import draw_log_prob, level_evidence, level_log_prob, proper_alpha, pseudo_counts
from candide.data.blocks import Floats
from candide.encoding import Identity
from candide.errors import InputError
from candide.events.base import EventModel, PosteriorSampler, Support
from candide.events.categorical import dirichlet_alpha
from candide.priors import Dirichlet, Jeffreys, Prior, Uniform, refuse_improper
from candide.tally import LevelTally, Sums
from candide.tally.base import refuse_cells


class _BagOfWords(EventModel):
    kind: ClassVar[str] = "sums"
    accepts_sparse: ClassVar[bool] = True
    accepts_groups: ClassVar[bool] = True
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = Support(low=0.0)
    encoding = Identity(least=0.0)
    outcome: ClassVar[str] = "the word"
    _information: ClassVar[str] = "word_information"
    _association_test: ClassVar[str] = "total_test"


@dataclass(frozen=True)
class Multinomial(_BagOfWords):
    """The probability of each word in each class, under a Dirichlet prior; the columns of the block are the words.

    >>> import candide as cd
    >>> cd.NaiveBayes(Multinomial()).fit([[3, 0], [2, 1], [0, 4]], ["a", "a", "b"]).predict([[0, 2]]).tolist()
    ['b']
    """

    name: ClassVar[str] = "multinomial"

    prior: Prior | str | None = field(default=Dirichlet(1.0))

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Distribution:
        """The predictive is that of a whole document's sequence of words: Dirichlet-multinomial."""
        words, alpha = _to_level_tally(tally.total), _word_alpha(prior, tally)
        if how != "predictive":
            return distributions.Multinomial(level_log_prob(words, alpha, how).T, _mean_length(tally))
        posterior = alpha + tally.total
        if not posterior.sum(axis=1).all():
            raise InputError(f"a class without words has no predictive under {prior!r}; use alpha > 0")
        return distributions.DirichletMultinomial(posterior, _mean_length(tally))

    def _posterior_sampler(self, tally: Sums, prior: Prior | None) -> PosteriorSampler:
        words, length = _to_level_tally(tally.total), _mean_length(tally)
        shape = words.counts + proper_alpha(_word_alpha(prior, tally))
        return lambda rng: distributions.Multinomial(draw_log_prob(shape, words.offsets, rng).T, length)

    def _evidence(self, tally: Sums, prior: Prior | None) -> Floats:
        """Of the sequence of words of all documents of a class; the normaliser is divided by the words' counts."""
        alpha = _word_alpha(prior, tally)
        refuse_improper(alpha <= 0, prior)
        return level_evidence(_to_level_tally(tally.total), alpha)


@dataclass(frozen=True)
class Complement(_BagOfWords):
    """Each class scored by how little a document resembles all the others (Rennie et al., 2003).

    The weight of a word is minus its log-probability outside the class; ``norm`` divides by a class's sum of weights.
    Weights are not log-probabilities, so it neither samples nor has evidence, and its predictive is its posterior mean.

    >>> import candide as cd
    >>> cd.NaiveBayes(Complement()).fit([[3, 0], [2, 1], [0, 4]], ["a", "a", "b"]).predict([[1, 0]]).tolist()
    ['a']
    """

    name: ClassVar[str] = "complement"
    has_density: ClassVar[bool] = False

    norm: bool = False
    prior: Prior | str | None = field(default=Dirichlet(1.0))

    @property
    def comparison_family(self) -> EventModel:
        return Multinomial(prior=self.prior)

    def _estimate(self, tally: Sums, prior: Prior | None, how: str) -> distributions.Multinomial:
        """A word that occurs nowhere and has no pseudo-count has weight 0."""
        alpha = _word_alpha(prior, tally)
        everywhere = tally.total.sum(axis=0)
        logs = level_log_prob(_to_level_tally(np.maximum(everywhere - tally.total, 0.0)), alpha, how)
        is_absent = (everywhere == 0) & (pseudo_counts(alpha, how) <= 0)
        logs = np.where(is_absent, 0.0, logs)
        what = "the word occurs in no other class, so its weight is infinite; use estimate='mean'"
        refuse_cells(np.isneginf(logs), what)
        if not self.norm:
            return distributions.Multinomial(-logs.T)
        total = logs.sum(axis=1, keepdims=True)
        return distributions.Multinomial(np.divide(logs, total, out=np.zeros_like(logs), where=total != 0).T)


def _to_level_tally(total: Floats) -> LevelTally:
    """A bag of words is one feature whose levels are the words."""
    return LevelTally(total, np.array([0, total.shape[1]], np.intp))


def _word_alpha(prior: Prior | None, tally: Sums) -> Floats:
    """Imaginary occurrences of every word."""
    n_words, alpha = tally.total.shape[1], dirichlet_alpha(prior)
    if alpha.ndim and len(alpha) != n_words:
        columns, values = formatting.format_count(n_words, "column"), formatting.format_count(len(alpha), "value")
        raise InputError(f"{columns}, and {values} of alpha in the Dirichlet prior")
    return np.broadcast_to(alpha, n_words)


def _mean_length(tally: Sums) -> int:
    """Words in a document, averaged over all classes: for sampling, as the model has no distribution of lengths."""
    n_rows = tally.n.max(axis=1, initial=0.0).sum()
    with np.errstate(over="ignore"):
        mean = float(tally.total.sum() / n_rows) if n_rows > 0 else 1.0
    return max(1, round(min(mean, 1e9)))  # no document is longer; tiny weights can make the ratio larger
