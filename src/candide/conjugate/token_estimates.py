"""Text models estimated from token counts. Time and memory are those of the nonempty cells (token, class).

Tokens that were not seen in a class have the same score there: one number a class.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.distributions.documents import PolyaDocuments, TokenCells
from candide.distributions.token_scores import TokenScores
from candide.encoding.tokens import BINARY, Tokens, token_rows
from candide.kernels.text import occurrence_weights
from candide.tally import TokenCounts
from candide.tally.token_counts import sum_by_index

_MIN_CONCENTRATION, _MAX_CONCENTRATION = 1e-6, 1e9  # of a class, in the Polya model


@dataclass(frozen=True, eq=False)
class WeightedTokenCounts:
    """Token counts, with a factor on the counts of each token."""

    tally: TokenCounts
    tokens: Tokens
    factor: Floats | None = None  # (token,)

    @property
    def n_tokens(self) -> int:
        """The number of tokens, or of hash buckets that occur."""
        return self.tally.n_tokens

    @property
    def total(self) -> Floats:
        """(cells) weighted occurrences."""
        return self.tally.total if self.factor is None else self.tally.total * self.factor[self.tally.word]

    def sum_by_token(self, values: Floats) -> Floats:
        """(token,) sums over the cells of each token."""
        return sum_by_index(self.tally.word, values, self.tally.n_tokens)

    def to_cells(self, values: Floats) -> TokenCells:
        """The values of cells, by token."""
        from scipy.sparse import csr_array  # here, because importing it costs more than loading a small model

        tally = self.tally
        shape = tally.n_classes, max(1, tally.n_tokens)
        by_token = csr_array((values, tally.word, tally.classes.astype(np.int32)), shape).tocsc()
        ends, column = by_token.indptr.astype(np.int64), by_token.indices.astype(np.int32, copy=False)
        return TokenCells(tally.letters, tally.starts, ends[: tally.n_tokens + 1], column, by_token.data)

    @property
    def mean_length(self) -> int:
        """Tokens in a document, averaged over all classes."""
        mean = float(self.tally.length.sum() / max(self.tally.n.sum(), 1e-300))
        return max(1, round(min(mean, 1e9)))  # tiny row weights make documents seem longer


def split_by_sign(tally: TokenCounts) -> TokenCounts:
    """Each hash bucket as two tokens, one a sign: the count of a token is that of its bucket, if the signs agree."""
    v, keys = tally.n_tokens, tally.letters.reshape(-1, 4)
    signs = np.repeat(np.array([[0], [1]], np.uint8), v, axis=1)
    letters = np.concatenate([np.column_stack([keys, sign]) for sign in signs]).ravel()
    word = (tally.word + np.where(tally.total < 0, v, 0)).astype(np.int32)
    starts = np.arange(0, 10 * v + 1, 5, dtype=np.int64)
    cells = tally.classes, word, np.abs(tally.total), tally.documents
    signed = TokenCounts(tally.n, tally.length, letters, starts, *cells)
    return signed.select_tokens(np.bincount(word, minlength=2 * v) > 0)


def multinomial_scores(counts: WeightedTokenCounts, alpha: float) -> TokenScores:
    """log (n + alpha) / (N + alpha V); without alpha a token that is unseen in a class is impossible there."""
    n = counts.total
    norm = numerics.log_or_minus_inf(counts.tally.sum_by_class(n) + alpha * max(counts.n_tokens, 1))
    common: dict[str, Any] = {"count_mode": counts.tokens.count_mode, "unit": counts.factor}
    common["mean_length"] = counts.mean_length if counts.factor is None else 0
    factor = 1.0 if counts.factor is None else counts.factor[counts.tally.word]
    if alpha > 0:
        cells = counts.to_cells(factor * np.log1p(n / alpha))
        return TokenScores(counts.tokens, cells, np.log(alpha) - norm, **common)
    nothing = np.isneginf(norm)  # in a class without tokens all are equally probable
    shared = np.where(nothing, -numerics.log_or_minus_inf(max(counts.n_tokens, 1)), -np.where(nothing, 0.0, norm))
    cells = counts.to_cells(factor * numerics.log_or_minus_inf(n))
    return TokenScores(counts.tokens, cells, shared, only_known=~nothing, **common)


def held_out_multinomial_scores(
    counts: WeightedTokenCounts, alpha: float, documents: Documents, y: Codes, weight: Floats | None
) -> Floats:
    """(document, class) the score of each counted document, left out; tokens of no other document contribute 0."""
    n, k = counts.to_cells(counts.total), counts.tally.n_classes
    times, token, starts = token_rows(n.hash_table, documents, counts.tokens)
    row, w = np.repeat(np.arange(len(documents)), np.diff(starts)), np.ones(len(y)) if weight is None else weight
    x = occurrence_weights(counts.tokens.count_mode, times)
    others = counts.sum_by_token(counts.tally.documents)[token] - w[row]
    known = others > 1e-9 * np.maximum(w[row], 1.0)
    removed, length = w * sum_by_index(row, x, len(y)), sum_by_index(row, x * known, len(y))
    size = alpha * np.maximum(counts.n_tokens - sum_by_index(row, ~known * 1.0, len(y)), 1.0)
    totals = np.tile(counts.tally.sum_by_class(counts.total), (len(y), 1))
    totals[np.arange(len(y)), y] -= removed
    out = length[:, None] * (np.log(alpha) - np.log(np.maximum(totals, 0.0) + size[:, None]))
    at, owner = n.find_cells(token)
    is_own_class = n.column[at] == y[row[owner]]
    cell = np.maximum(n.value[at] - np.where(is_own_class, (w[row] * x)[owner], 0.0), 0.0)
    scores = (x * known)[owner] * np.log1p(cell / alpha)
    return out + sum_by_index(row[owner] * k + n.column[at], scores, len(y) * k).reshape(-1, k)


def complement_scores(counts: WeightedTokenCounts, alpha: float, norm: bool) -> TokenScores:
    """Minus the log-probability of a token outside the class (Rennie et al., 2003)."""
    n = counts.total
    everywhere = counts.sum_by_token(n)
    outside = np.sort(everywhere).sum() - counts.tally.sum_by_class(n) + alpha * max(counts.n_tokens, 1)
    base = -np.log(everywhere + alpha)
    around = everywhere[counts.tally.word]
    delta = np.log(around + alpha) - np.log(np.maximum(around - n, 0.0) + alpha)
    shared, scale = np.log(outside), np.ones(counts.tally.n_classes)
    if norm:
        spread = np.sort(base).sum() + counts.n_tokens * shared + counts.tally.sum_by_class(delta)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread != 0)
        shared, delta = shared * scale, delta * scale[counts.tally.class_of_cell]
    unit = counts.factor
    if unit is not None:
        base, delta = base * unit, delta * unit[counts.tally.word]
    common: dict[str, Any] = {"count_mode": counts.tokens.count_mode, "unit": unit, "common": base, "scale": scale}
    return TokenScores(counts.tokens, counts.to_cells(delta), shared, **common)


def bernoulli_scores(counts: WeightedTokenCounts, alpha: float) -> TokenScores:
    """log p of the tokens present and log 1 - p of the absent ones; p = (documents + alpha) / (n + 2 alpha)."""
    n, have = counts.tally.n[:, 0], counts.tally.documents
    mine = counts.tally.class_of_cell
    no = np.log(np.maximum(n[mine] - have, 0.0) + alpha) - np.log(n + 2 * alpha)[mine]
    never = np.log(n + alpha) - np.log(n + 2 * alpha)
    shared = np.log(alpha) - np.log(n + alpha)  # log-odds of a token unseen in the class
    odds = np.log(have + alpha) - np.log(np.maximum(n[mine] - have, 0.0) + alpha)
    constant = counts.n_tokens * never + counts.tally.sum_by_class(no - never[mine])
    return TokenScores(counts.tokens, counts.to_cells(odds - shared[mine]), shared, BINARY, constant=constant)


def polya_distribution(counts: WeightedTokenCounts, alpha: float) -> PolyaDocuments:
    """Tokens share a concentration by their document counts; a class whose tokens repeat much has a small one."""
    tally, have = counts.tally, counts.tally.documents
    distinct = counts.tally.sum_by_class(have)
    s = np.array([fit_concentration(*sizes) for sizes in zip(distinct, tally.n[:, 0], tally.length[:, 0], strict=True)])
    each = s / (distinct + alpha * max(counts.n_tokens, 1))
    cells = counts.to_cells(each[tally.class_of_cell] * (have + alpha))
    return PolyaDocuments(counts.tokens, cells, each * alpha, s)


def fit_concentration(n_distinct: float, n: float, length: float) -> float:
    """The s at which n documents of ``length`` tokens in all are expected to have so many distinct tokens, each counted
    once a document: n_distinct = n s (digamma(s + length / n) - digamma(s)) (Elkan, 2006).

    >>> round(fit_concentration(150.0, 10.0, 200.0), 1)  # of 20 tokens in a document 15 are distinct
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
    """(class, 1) log marginal likelihood of the tokens of all documents of a class, one after another."""
    n = counts.total
    each = counts.tally.sum_by_class(numerics.log_rising_factorial(np.full_like(n, alpha), n))
    return (each - numerics.log_rising_factorial(alpha * counts.n_tokens, counts.tally.sum_by_class(n)))[:, None]


def bernoulli_evidence(counts: WeightedTokenCounts, alpha: float) -> Floats:
    """(class, 1) log marginal likelihood of which documents of a class have each token."""
    n, have, mine = counts.tally.n[:, 0], counts.tally.documents, counts.tally.class_of_cell
    rest = np.maximum(n[mine] - have, 0.0)
    present = numerics.log_rising_factorial(np.full_like(have, alpha), have)
    cells = present + numerics.log_rising_factorial(np.full_like(rest, alpha), rest)
    never = numerics.log_rising_factorial(np.full_like(n, alpha), n)
    both = counts.n_tokens * numerics.log_rising_factorial(np.full_like(n, 2 * alpha), n)
    return (counts.n_tokens * never + counts.tally.sum_by_class(cells - never[mine]) - both)[:, None]
