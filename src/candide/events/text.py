"""Text: a document is its tokens. Multinomial, Bernoulli, complement or Polya, from one tally of token counts.

The model, the prior, ``idf`` and the pruning of rare or common tokens are chosen after counting, without a second pass.
How a document is split into tokens, and ``sublinear``, is encoding: a change needs the documents again.

========================  ============================================================================================
exact, from one pass      token counts and document counts, so all four models; ``sublinear`` counts; pruning; ``idf``,
                          as a factor on the counts of a token
approximate               Polya assumes that every document of a class has the mean length when it estimates how bursty
                          tokens are, and takes the proportions of tokens from their document counts (Elkan, 2006)
not available             documents scaled to the same length after ``idf`` (scikit-learn's
                          ``TfidfTransformer(norm="l2")``), which needs the document counts before the first document
========================  ============================================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from candide.conjugate import token_estimates
from candide.conjugate.dirichlet import pseudo_counts
from candide.data.blocks import Codes, Floats
from candide.data.table import Name
from candide.distributions import Distribution
from candide.encoding import Encoding
from candide.encoding.tokens import Tokens, tokens_from_settings
from candide.errors import InputError, unknown_name_error
from candide.events.base import EventModel, Support
from candide.events.categorical import dirichlet_alpha
from candide.priors import Dirichlet, Jeffreys, Prior, Uniform, refuse_improper
from candide.tally import TokenCounts, sorted_keys

MODELS = ("multinomial", "bernoulli", "complement", "polya")
_FEW_DOCUMENTS = 50  # up to which tokens of a single document are kept: some documents have no others


@dataclass(frozen=True)
class Text(EventModel):
    """The tokens of a document, under a Dirichlet prior; a token that was never seen contributes 0.

    ``model`` is "multinomial" (each occurrence counts), "bernoulli" (present or absent, and absent tokens count),
    "complement" (how little it resembles the other classes; not a density) or "polya" (a repeated token counts less
    than a new one). The predictive distribution is that of one token: the posterior mean.

    >>> import candide as cd
    >>> event = Text(ngrams=(1, 2), min_count=1)
    >>> model = cd.NaiveBayes({"body": event}).fit({"body": ["free prize", "see you", "free call"]}, ["s", "h", "s"])
    >>> model.predict({"body": ["free"]}).tolist()
    ['s']
    >>> event.tokens.ngrams, event.has_density, event.weights_tokens, event.pseudo_count(), event.min_pseudo_count
    ((1, 2), True, True, 1.0, 1.0)
    >>> tally = model.counts_.tallies[0]
    >>> event.weighted_counts(tally).n_tokens, event.log_odds(tally, 1)[0].shape
    (8, (8,))
    """

    name: ClassVar[str] = "text"
    kind: ClassVar[str] = "token_counts"
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (Dirichlet, Jeffreys, Uniform)
    support: ClassVar[Support | None] = None

    model: str = "multinomial"
    analyzer: str = "word"
    lowercase: bool = True
    ngrams: tuple[int, int] = None  # type: ignore[assignment]  # (1, 1); of "char_wb" (3, 5)
    stop_words: tuple[str, ...] = ()
    max_token_length: int | None = None
    pattern: str | None = None
    errors: str = "strict"
    bits: int = 0
    signed: bool = False
    sublinear: bool = False
    idf: bool = False
    norm: bool = False  # complement: divide by a class's sum of weights
    min_count: float = 0.0  # tokens that occur less often are left out
    min_share: float = 0.0  # tokens in a smaller share of the documents are left out
    max_share: float = 1.0
    min_documents: float | None = 0.0  # tokens in fewer documents are left out; None: pairs in one
    prior: Prior | str | None = field(default=Dirichlet(1.0))
    is_auxiliary: bool = False  # a further term of a column that has a density already
    choose_weighting: bool | None = False  # search text options on held-out documents; None: for few documents

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise unknown_name_error("model of text", self.model, MODELS)
        tokens = tokens_from_settings(self)
        object.__setattr__(self, "ngrams", tokens.ngrams)
        object.__setattr__(self, "stop_words", tokens.stop_words)
        if self.min_documents is not None and not self.min_documents >= 0:
            what = f"min_documents: {self.min_documents}"
            raise InputError(what, value=self.min_documents, remedy="pass how many documents must have a token")
        for name in ("min_share", "max_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name}: {getattr(self, name)}; pass a share of the documents, from 0 to 1")
        by_documents = self.min_documents != 0 or self.min_share or self.max_share < 1
        if self.signed and (self.idf or self.model in ("bernoulli", "polya") or by_documents):
            raise InputError("signed counts do not give document frequencies; pass signed=False for this")
        if self.norm and self.model != "complement":
            raise InputError("norm is for model='complement'")

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        """Whether its scores are log-probabilities: not those of "complement", nor of an auxiliary term."""
        return self.model != "complement" and not self.is_auxiliary

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        """By its column; an auxiliary term also names its tokens."""
        tokens = ", words" if self.analyzer == "word" else ", characters"
        return tuple(f"{name}{tokens if self.is_auxiliary else ''}" for name in columns)

    @property
    def tokens(self) -> Tokens:
        """How a document becomes tokens."""
        return tokens_from_settings(self)

    @property
    def token_description(self) -> str:
        """What the tokens are, for a person.

        >>> Text(ngrams=(1, 2)).token_description, Text(analyzer="char_wb", ngrams=(3, 5)).token_description
        ('words and pairs of words', 'runs of 3 to 5 characters')
        """
        low, high = self.ngrams
        if self.analyzer != "word":
            return f"runs of {low} to {high} characters"
        return {(1, 1): "words", (1, 2): "words and pairs of words"}.get((low, high), f"runs of {low} to {high} words")

    @property
    def encoding(self) -> Tokens:
        return self.tokens

    def _estimate(self, tally: TokenCounts, prior: Prior | None, how: str) -> Distribution:
        counted, alpha = self.weighted_counts(tally), self._alpha(prior)
        extra = float(pseudo_counts(alpha, how))
        if self.model == "multinomial":
            return token_estimates.multinomial_scores(counted, extra)
        if extra <= 0:
            what = f"Text(model={self.model!r}) gives a token that is unseen in a class no chance with estimate={how!r}"
            raise InputError(f"{what} and {prior!r}; use estimate='mean', or a larger alpha")
        if self.model == "complement":
            return token_estimates.complement_scores(counted, extra, self.norm)
        if self.model == "bernoulli":
            return token_estimates.bernoulli_scores(counted, extra)
        return token_estimates.polya_distribution(counted, extra)

    def _held_out_contributions(
        self, tally: Any, prior: Any, how: str, block: Any, y: Codes, weight: Floats | None
    ) -> Floats:
        """In closed form for the plain multinomial; else document by document, which is slow."""
        extra = float(pseudo_counts(self._alpha(prior), how))
        whole = self.model == "multinomial" and not (self.signed or self.idf or self._has_pruning)
        if not whole or extra <= 0:
            return super()._held_out_contributions(tally, prior, how, block, y, weight)
        counts = self.weighted_counts(tally)
        return token_estimates.held_out_multinomial_scores(counts, extra, block, y, weight)[:, :, None]

    @property
    def _has_pruning(self) -> bool:
        return self.min_count > 0 or self.min_share > 0 or self.max_share < 1 or self.min_documents != 0

    @property
    def weights_tokens(self) -> bool:  # type: ignore[override]
        """Whether every token may have a weight: where the score is a sum over the tokens of a document."""
        adds_up = self.model == "multinomial" and not (self.signed or self.idf)
        return adds_up and float(self._alpha(self._resolve(None))) > 0

    def _cells(self, tally: Any) -> int:
        return int(tally.n_classes * max(1.0, tally.length.sum() / max(tally.n.sum(), 1e-300)))

    def _evidence(self, tally: TokenCounts, prior: Prior | None) -> Floats:
        """Of the tokens of all documents of a class; for Bernoulli, of presence and absence."""
        alpha = self._alpha(prior)
        refuse_improper(alpha <= 0, prior)
        if self.model not in ("multinomial", "bernoulli") or self.signed:
            return super()._evidence(tally, prior)
        counted = self.weighted_counts(tally)
        if self.model == "bernoulli":
            return token_estimates.bernoulli_evidence(counted, float(alpha))
        return token_estimates.multinomial_evidence(counted, float(alpha))

    @property
    def comparison_family(self) -> "Text":
        """By the proportions of tokens, or of documents that have them."""
        return replace(self, model="bernoulli" if self.model == "bernoulli" else "multinomial", idf=False, norm=False)

    def sample_size(self, tally: TokenCounts) -> Floats:
        """(class, 1) of documents, or of tokens."""
        if self.model == "bernoulli":
            return tally.n
        counted = self.weighted_counts(tally).tally
        return np.bincount(counted.class_of_cell, counted.total, counted.n_classes).astype(np.float64)[:, None]

    def log_odds(self, tally: TokenCounts, c: int) -> tuple[Floats, TokenCounts]:
        """(token,) log-odds of each retained token for a class against all others, and the tally of these."""
        counted, alpha = self.weighted_counts(tally), self.min_pseudo_count
        n, is_own, size = counted.total, counted.tally.class_of_cell == c, alpha * counted.n_tokens
        inside = np.bincount(counted.tally.word[is_own], n[is_own], counted.n_tokens)
        outside = np.maximum(counted.sum_by_token(n) - inside, 0.0)
        log_inside = np.log(inside + alpha) - np.log(inside.sum() + size)
        return log_inside - np.log(outside + alpha) + np.log(outside.sum() + size), counted.tally

    def pseudo_count(self, prior: Prior | str | None = None) -> float:
        """What the prior adds to the count of every token in the posterior mean."""
        return float(pseudo_counts(self._alpha(self._resolve(prior)), "mean"))

    @property
    def min_pseudo_count(self) -> float:
        """What the prior adds to every count; at least a tiny number."""
        return float(self._alpha(self._resolve(None))) or 1e-300

    def _alpha(self, prior: Prior | None) -> Any:
        alpha = dirichlet_alpha(prior)
        if alpha.ndim:
            raise InputError("the vocabulary is open: pass one alpha for all tokens in the Dirichlet prior")
        return alpha

    def weighted_counts(self, tally: TokenCounts) -> token_estimates.WeightedTokenCounts:
        """The tally as this model uses it: pruned, without signs, with ``idf``."""
        if self.signed:
            tally = token_estimates.split_by_sign(tally)
        if self._has_pruning:
            least: float | Floats = self.min_documents or 0.0
            if self.min_documents is None and tally.n.sum() > _FEW_DOCUMENTS:
                least = 2.0  # for runs of characters, and for tokens of several words; one for words
                if self.tokens.is_word_based:
                    longer = sorted_keys.count_blanks(tally.letters, tally.starts) >= self.ngrams[0]
                    least = np.where(longer, 2.0, 0.0)
            pooled, rounding = tally.pool(), 1e-9  # a share that equals the limit is within it
            share = pooled.documents / max(float(tally.n.sum()), 1e-300)
            is_frequent = (pooled.total >= self.min_count) & (pooled.documents >= least * (1 - rounding))
            is_in_range = (share >= self.min_share - rounding) & (share <= self.max_share + rounding)
            tally = tally.select_tokens(is_frequent & is_in_range)
        factor = None
        if self.idf:  # 1 + log((1 + documents) / (1 + documents with the token)), as in scikit-learn
            factor = 1.0 + np.log1p(tally.n.sum()) - np.log1p(tally.pool().documents)
        return token_estimates.WeightedTokenCounts(tally, self.tokens, factor)


# With token weights: pairs of words can be informative beyond their words; repeats count less than first occurrences.
# Pairs in one document only are dropped: they are very many and do not generalise. Such words are counted together with
# other rare words. Jeffreys' prior (alpha 0.5) shrinks counts towards uniform.
DEFAULT_TEXT = Text(ngrams=(1, 2), sublinear=True, min_documents=None, prior=Dirichlet(0.5), choose_weighting=None)
# Runs of characters besides words: for names, languages without spaces, and misspellings. Up to four, as long as words
# of Chinese or Japanese; longer runs are mostly whole words. Those in one document are dropped: they are very many.
CHARACTER_TEXT = Text(
    analyzer="char_wb", ngrams=(1, 4), sublinear=True, min_documents=None, prior=Dirichlet(0.5), is_auxiliary=True
)
