"""Weights of terms: what the models of text make of a tally of terms. Only cells that were met are ever touched.

A cell is a term in a class. What a model says of terms not met in a class is one number a class, so the work and the
room are those of the cells, whatever the size of the vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.distributions.documents import TokenCells
from candide.distributions.polya_documents import PolyaDocuments
from candide.distributions.token_scores import TokenScores
from candide.encoding.tokens import BINARY, Tokens, token_rows
from candide.kernels.text_reference import occurrence_weights
from candide.tally import TokenCounts
from candide.tally.token_counts import sum_by_index

_MIN_CONCENTRATION, _MAX_CONCENTRATION = 1e-6, 1e9  # concentrations between which that of a class is sought


@dataclass(frozen=True, eq=False)
class WeightedTokenCounts:
    """A tally of terms with the factor on each term's counts."""

    tally: TokenCounts
    tokens: Tokens
    factor: Floats | None = None  # (term,)

    @property
    def n_tokens(self) -> int:
        """How many terms there are: of hashed ones, the buckets that were met."""
        return self.tally.n_tokens

    @property
    def total(self) -> Floats:
        """(cells) weighted occurrences."""
        return self.tally.total if self.factor is None else self.tally.total * self.factor[self.tally.word]

    def sum_by_class(self, values: Floats) -> Floats:
        """(class,) sums over the cells of each class."""
        return self.tally.sum_by_class(values)

    def sum_by_token(self, values: Floats) -> Floats:
        """(term,) sums over the cells of each term."""
        return sum_by_index(self.tally.word, values, self.tally.n_tokens)

    def to_cells(self, values: Floats) -> TokenCells:
        """The values of cells, by term."""
        from scipy.sparse import csr_array  # here, because importing it costs more than loading a small model

        tally = self.tally
        by_class = csr_array(
            (values, tally.word, tally.classes.astype(np.int32)), (tally.n_classes, max(1, tally.n_tokens))
        )
        turned = by_class.tocsc()
        ends, column = turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False)
        return TokenCells(tally.letters, tally.starts, ends[: tally.n_tokens + 1], column, turned.data)

    @property
    def mean_length(self) -> int:
        """Terms in a document, averaged over all classes."""
        mean = float(self.tally.length.sum() / max(self.tally.n.sum(), 1e-300))
        return max(1, round(min(mean, 1e9)))  # no document is longer; a weight next to nothing makes it look so


def frequent_mask(
    tally: TokenCounts, min_count: float, min_share: float, max_share: float, min_documents: float | Floats
) -> NDArray[np.bool_]:
    """(term,) which terms occur often enough in all, in neither too few nor too many of the documents.

    ``min_documents`` may be one number, or one for each term.
    """
    pooled, n = tally.pool(), max(float(tally.n.sum()), 1e-300)
    share = pooled.documents / n
    near = 1e-9  # a share that is exactly the limit is within it, whatever the rounding
    often = (pooled.total >= min_count) & (pooled.documents >= min_documents * (1 - near))
    return often & (share >= min_share - near) & (share <= max_share + near)


def inverse_document_frequency(tally: TokenCounts) -> Floats:
    """(term,) 1 + log((1 + documents) / (1 + documents with the term)), as scikit-learn has it."""
    return 1.0 + np.log1p(tally.n.sum()) - np.log1p(tally.pool().documents)


def split_by_sign(tally: TokenCounts) -> TokenCounts:
    """Each bucket as two terms, one a sign: a term's count is estimated by its bucket's, if that has its sign."""
    v, keys = tally.n_tokens, tally.letters.reshape(-1, 4)
    signs = np.repeat(np.array([[0], [1]], np.uint8), v, axis=1)
    letters = np.concatenate([np.column_stack([keys, sign]) for sign in signs]).ravel()
    word = (tally.word + np.where(tally.total < 0, v, 0)).astype(np.int32)
    starts = np.arange(0, 10 * v + 1, 5, dtype=np.int64)
    cells = tally.classes, word, np.abs(tally.total), tally.documents
    both = TokenCounts(tally.n, tally.length, letters, starts, *cells)
    return both.select_tokens(np.bincount(word, minlength=2 * v) > 0)


def multinomial_scores(counts: WeightedTokenCounts, alpha: float) -> TokenScores:
    """log (n + alpha) / (N + alpha V); without alpha a term never met in a class is impossible there."""
    n = counts.total
    norm = numerics.log_or_minus_inf(
        counts.sum_by_class(n) + alpha * max(counts.n_tokens, 1)
    )  # of no terms at all nothing is said
    common: dict[str, Any] = {"count_mode": counts.tokens.count_mode, "unit": counts.factor}
    common["mean_length"] = counts.mean_length if counts.factor is None else 0
    factor = 1.0 if counts.factor is None else counts.factor[counts.tally.word]
    if alpha > 0:
        cells = counts.to_cells(factor * np.log1p(n / alpha))
        return TokenScores(counts.tokens, cells, np.log(alpha) - norm, **common)
    nothing = np.isneginf(norm)  # a class that shows no term at all takes every term for as likely
    shared = np.where(nothing, -numerics.log_or_minus_inf(max(counts.n_tokens, 1)), -np.where(nothing, 0.0, norm))
    return TokenScores(
        counts.tokens, counts.to_cells(factor * numerics.log_or_minus_inf(n)), shared, only_known=~nothing, **common
    )


def held_out_multinomial_scores(
    counts: WeightedTokenCounts, alpha: float, documents: Documents, y: Codes, weight: Floats | None
) -> Floats:
    """(document, class) the score of each document that was counted, without itself.

    Its own counts are taken from its class; a term that no other document has is unknown, and says nothing.
    """
    n, k = counts.to_cells(counts.total), counts.tally.n_classes
    times, term, starts = token_rows(n.hash_table, documents, counts.tokens)
    row, w = np.repeat(np.arange(len(documents)), np.diff(starts)), np.ones(len(y)) if weight is None else weight
    often = occurrence_weights(counts.tokens.count_mode, times)
    others = counts.sum_by_token(counts.tally.documents)[term] - w[row]
    known = others > 1e-9 * np.maximum(w[row], 1.0)
    gone, length = w * sum_by_index(row, often, len(y)), sum_by_index(row, often * known, len(y))
    size = alpha * np.maximum(counts.n_tokens - sum_by_index(row, ~known * 1.0, len(y)), 1.0)
    totals = np.tile(counts.sum_by_class(counts.total), (len(y), 1))
    totals[np.arange(len(y)), y] -= gone
    out = length[:, None] * (np.log(alpha) - np.log(np.maximum(totals, 0.0) + size[:, None]))
    at, owner = n.find_cells(term)
    cell, own = n.value[at], n.column[at] == y[row[owner]]
    cell = np.maximum(cell - np.where(own, (w[row] * often)[owner], 0.0), 0.0)
    said = (often * known)[owner] * np.log1p(cell / alpha)
    return out + sum_by_index(row[owner] * k + n.column[at], said, len(y) * k).reshape(-1, k)


def complement_scores(counts: WeightedTokenCounts, alpha: float, norm: bool) -> TokenScores:
    """Minus the log-share of a term outside the class (Rennie et al., 2003)."""
    n = counts.total
    everywhere = counts.sum_by_token(n)
    outside = np.sort(everywhere).sum() - counts.sum_by_class(n) + alpha * max(counts.n_tokens, 1)
    base = -np.log(everywhere + alpha)
    around = everywhere[counts.tally.word]
    delta = np.log(around + alpha) - np.log(np.maximum(around - n, 0.0) + alpha)
    shared, scale = np.log(outside), np.ones(counts.tally.n_classes)
    if norm:
        spread = np.sort(base).sum() + counts.n_tokens * shared + counts.sum_by_class(delta)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread != 0)
        shared, delta = shared * scale, delta * scale[counts.tally.class_of_cell]
    unit = counts.factor
    if unit is not None:
        base, delta = base * unit, delta * unit[counts.tally.word]
    common: dict[str, Any] = {"count_mode": counts.tokens.count_mode, "unit": unit, "common": base, "scale": scale}
    return TokenScores(counts.tokens, counts.to_cells(delta), shared, **common)


def bernoulli_scores(counts: WeightedTokenCounts, alpha: float) -> TokenScores:
    """log p of the terms present and log 1 - p of the absent ones; p = (documents + alpha) / (n + 2 alpha)."""
    n, have = counts.tally.n[:, 0], counts.tally.documents
    mine = counts.tally.class_of_cell
    no = np.log(np.maximum(n[mine] - have, 0.0) + alpha) - np.log(n + 2 * alpha)[mine]
    never = np.log(n + alpha) - np.log(n + 2 * alpha)
    shared = np.log(alpha) - np.log(n + alpha)  # log odds of a term not met in the class
    odds = np.log(have + alpha) - np.log(np.maximum(n[mine] - have, 0.0) + alpha)
    constant = counts.n_tokens * never + counts.sum_by_class(no - never[mine])
    return TokenScores(counts.tokens, counts.to_cells(odds - shared[mine]), shared, BINARY, constant=constant)


def polya_distribution(counts: WeightedTokenCounts, alpha: float) -> PolyaDocuments:
    """Terms share a concentration by their document counts; a class whose terms repeat much has a small one."""
    tally, have = counts.tally, counts.tally.documents
    met = counts.sum_by_class(have)
    s = np.array([fit_concentration(*known) for known in zip(met, tally.n[:, 0], tally.length[:, 0], strict=True)])
    each = s / (met + alpha * max(counts.n_tokens, 1))
    cells = counts.to_cells(each[tally.class_of_cell] * (have + alpha))
    return PolyaDocuments(counts.tokens, cells, each * alpha, s)


def fit_concentration(n_distinct: float, n: float, length: float) -> float:
    """The s at which n documents of ``length`` terms in all are expected to show ``met`` different terms, each counted
    once a document: met = n s (digamma(s + length / n) - digamma(s)) (Elkan, 2006).

    >>> round(fit_concentration(150.0, 10.0, 200.0), 1)  # of 20 terms in a document 15 are different
    25.6
    """
    from scipy.optimize import brentq
    from scipy.special import digamma

    if n <= 0 or n_distinct <= n or n_distinct >= length:
        return _MIN_CONCENTRATION if 0 < n_distinct <= n < length else _MAX_CONCENTRATION

    def excess(log_s: float) -> float:
        s = np.exp(log_s)
        return n * s * (digamma(s + length / n) - digamma(s)) - n_distinct

    low, high = np.log(_MIN_CONCENTRATION), np.log(_MAX_CONCENTRATION)
    if excess(low) >= 0 or excess(high) <= 0:
        return _MIN_CONCENTRATION if excess(low) >= 0 else _MAX_CONCENTRATION
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)))


def multinomial_evidence(counts: WeightedTokenCounts, alpha: float) -> Floats:
    """(class, 1) log marginal likelihood of the terms of all documents of a class, one after another."""
    n = counts.total
    each = counts.sum_by_class(numerics.log_rising_factorial(np.full_like(n, alpha), n))
    return (each - numerics.log_rising_factorial(alpha * counts.n_tokens, counts.sum_by_class(n)))[:, None]


def bernoulli_evidence(counts: WeightedTokenCounts, alpha: float) -> Floats:
    """(class, 1) log marginal likelihood of which documents of a class have each term."""
    n, have, mine = counts.tally.n[:, 0], counts.tally.documents, counts.tally.class_of_cell
    rest = np.maximum(n[mine] - have, 0.0)
    cells = numerics.log_rising_factorial(np.full_like(have, alpha), have) + numerics.log_rising_factorial(
        np.full_like(rest, alpha), rest
    )
    never = numerics.log_rising_factorial(np.full_like(n, alpha), n)
    both = counts.n_tokens * numerics.log_rising_factorial(np.full_like(n, 2 * alpha), n)
    return (counts.n_tokens * never + counts.sum_by_class(cells - never[mine]) - both)[:, None]


def token_log_odds(counts: WeightedTokenCounts, c: int, alpha: float) -> Floats:
    """(term,) log share of a term in a class over its share in all others, ``alpha`` added to every count."""
    n, mine = counts.total, counts.tally.class_of_cell == c
    inside = np.bincount(counts.tally.word[mine], n[mine], counts.tally.n_tokens)
    outside = np.maximum(counts.sum_by_token(n) - inside, 0.0)
    size = alpha * counts.n_tokens
    return np.log(inside + alpha) - np.log(inside.sum() + size) - np.log(outside + alpha) + np.log(outside.sum() + size)
