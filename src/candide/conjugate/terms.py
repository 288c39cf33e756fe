"""Weights of terms: what the models of text make of a tally of terms. Only cells that were met are ever touched.

A cell is a term in a class. What a model says of terms not met in a class is one number a class, so the work and the
room are those of the cells, whatever the size of the vocabulary.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.distributions.documents import Cells
from candide.distributions.polya_documents import PolyaDocuments
from candide.distributions.term_scores import TermScores
from candide.encode.tokens import BINARY, Tokens, rows
from candide.kernels.text_twin import weights_of
from candide.rows.blocks import Codes, Floats
from candide.rows.documents import Documents
from candide.tally import Terms
from candide.tally.terms import summed

_BURSTY, _FLAT = 1e-6, 1e9  # concentrations between which that of a class is sought


@dataclass(frozen=True, eq=False)
class Weighed:
    """A tally of terms with the factor on each term's counts."""

    tally: Terms
    tokens: Tokens
    factor: Floats | None = None  # (term,)

    @property
    def size(self) -> int:
        """How many terms there are: of hashed ones, the buckets that were met."""
        return self.tally.n_terms

    @property
    def total(self) -> Floats:
        """(cells) weighted occurrences."""
        return self.tally.total if self.factor is None else self.tally.total * self.factor[self.tally.word]

    def by_class(self, values: Floats) -> Floats:
        """(class,) sums over the cells of each class."""
        return self.tally.by_class(values)

    def by_term(self, values: Floats) -> Floats:
        """(term,) sums over the cells of each term."""
        return summed(self.tally.word, values, self.tally.n_terms)

    def cells(self, values: Floats) -> Cells:
        """The values of cells, by term."""
        from scipy.sparse import csr_array  # here, because importing it costs more than loading a small model

        tally = self.tally
        by_class = csr_array(
            (values, tally.word, tally.classes.astype(np.int32)), (tally.n_classes, max(1, tally.n_terms))
        )
        turned = by_class.tocsc()
        ends, column = turned.indptr.astype(np.int64), turned.indices.astype(np.int32, copy=False)
        return Cells(tally.letters, tally.starts, ends[: tally.n_terms + 1], column, turned.data)

    @property
    def mean_length(self) -> int:
        """Terms in a document, averaged over all classes."""
        mean = float(self.tally.length.sum() / max(self.tally.n.sum(), 1e-300))
        return max(1, round(min(mean, 1e9)))  # no document is longer; a weight next to nothing makes it look so


def frequent(
    tally: Terms, min_count: float, min_share: float, max_share: float, min_documents: float | Floats
) -> NDArray[np.bool_]:
    """(term,) which terms occur often enough in all, in neither too few nor too many of the documents.

    ``min_documents`` may be one number, or one for each term.
    """
    pooled, n = tally.pool(), max(float(tally.n.sum()), 1e-300)
    share = pooled.documents / n
    near = 1e-9  # a share that is exactly the limit is within it, whatever the rounding
    often = (pooled.total >= min_count) & (pooled.documents >= min_documents * (1 - near))
    return often & (share >= min_share - near) & (share <= max_share + near)


def inverse_shares(tally: Terms) -> Floats:
    """(term,) 1 + log((1 + documents) / (1 + documents with the term)), as scikit-learn has it."""
    return 1.0 + np.log1p(tally.n.sum()) - np.log1p(tally.pool().documents)


def without_signs(tally: Terms) -> Terms:
    """Each bucket as two terms, one a sign: a term's count is estimated by its bucket's, if that has its sign."""
    v, keys = tally.n_terms, tally.letters.reshape(-1, 4)
    signs = np.repeat(np.array([[0], [1]], np.uint8), v, axis=1)
    letters = np.concatenate([np.column_stack([keys, sign]) for sign in signs]).ravel()
    word = (tally.word + np.where(tally.total < 0, v, 0)).astype(np.int32)
    starts = np.arange(0, 10 * v + 1, 5, dtype=np.int64)
    cells = tally.classes, word, np.abs(tally.total), tally.documents
    both = Terms(tally.n, tally.length, letters, starts, *cells)
    return both.kept(np.bincount(word, minlength=2 * v) > 0)


def multinomial(counted: Weighed, alpha: float) -> TermScores:
    """log (n + alpha) / (N + alpha V); without alpha a term never met in a class is impossible there."""
    n = counted.total
    norm = numerics.log(counted.by_class(n) + alpha * max(counted.size, 1))  # of no terms at all nothing is said
    common: dict[str, Any] = {"manner": counted.tokens.manner, "unit": counted.factor}
    common["mean_length"] = counted.mean_length if counted.factor is None else 0
    factor = 1.0 if counted.factor is None else counted.factor[counted.tally.word]
    if alpha > 0:
        cells = counted.cells(factor * np.log1p(n / alpha))
        return TermScores(counted.tokens, cells, np.log(alpha) - norm, **common)
    nothing = np.isneginf(norm)  # a class that shows no term at all takes every term for as likely
    shared = np.where(nothing, -numerics.log(max(counted.size, 1)), -np.where(nothing, 0.0, norm))
    return TermScores(counted.tokens, counted.cells(factor * numerics.log(n)), shared, only_known=~nothing, **common)


def multinomial_held_out(
    counted: Weighed, alpha: float, documents: Documents, y: Codes, weight: Floats | None
) -> Floats:
    """(document, class) the score of each document that was counted, without itself.

    Its own counts are taken from its class; a term that no other document has is unknown, and says nothing.
    """
    n, k = counted.cells(counted.total), counted.tally.n_classes
    times, term, starts = rows(n.words, documents, counted.tokens)
    row, w = np.repeat(np.arange(len(documents)), np.diff(starts)), np.ones(len(y)) if weight is None else weight
    often = weights_of(counted.tokens.manner, times)
    others = counted.by_term(counted.tally.documents)[term] - w[row]
    known = others > 1e-9 * np.maximum(w[row], 1.0)
    gone, length = w * summed(row, often, len(y)), summed(row, often * known, len(y))
    size = alpha * np.maximum(counted.size - summed(row, ~known * 1.0, len(y)), 1.0)
    totals = np.tile(counted.by_class(counted.total), (len(y), 1))
    totals[np.arange(len(y)), y] -= gone
    out = length[:, None] * (np.log(alpha) - np.log(np.maximum(totals, 0.0) + size[:, None]))
    at, owner = n.at(term)
    cell, own = n.value[at], n.column[at] == y[row[owner]]
    cell = np.maximum(cell - np.where(own, (w[row] * often)[owner], 0.0), 0.0)
    said = (often * known)[owner] * np.log1p(cell / alpha)
    return out + summed(row[owner] * k + n.column[at], said, len(y) * k).reshape(-1, k)


def complement(counted: Weighed, alpha: float, norm: bool) -> TermScores:
    """Minus the log-share of a term outside the class (Rennie et al., 2003)."""
    n = counted.total
    everywhere = counted.by_term(n)
    outside = np.sort(everywhere).sum() - counted.by_class(n) + alpha * max(counted.size, 1)
    base = -np.log(everywhere + alpha)
    around = everywhere[counted.tally.word]
    delta = np.log(around + alpha) - np.log(np.maximum(around - n, 0.0) + alpha)
    shared, scale = np.log(outside), np.ones(counted.tally.n_classes)
    if norm:
        spread = np.sort(base).sum() + counted.size * shared + counted.by_class(delta)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread != 0)
        shared, delta = shared * scale, delta * scale[counted.tally.class_of_cell]
    unit = counted.factor
    if unit is not None:
        base, delta = base * unit, delta * unit[counted.tally.word]
    common: dict[str, Any] = {"manner": counted.tokens.manner, "unit": unit, "common": base, "scale": scale}
    return TermScores(counted.tokens, counted.cells(delta), shared, **common)


def bernoulli(counted: Weighed, alpha: float) -> TermScores:
    """log p of the terms present and log 1 - p of the absent ones; p = (documents + alpha) / (n + 2 alpha)."""
    n, have = counted.tally.n[:, 0], counted.tally.documents
    mine = counted.tally.class_of_cell
    no = np.log(np.maximum(n[mine] - have, 0.0) + alpha) - np.log(n + 2 * alpha)[mine]
    never = np.log(n + alpha) - np.log(n + 2 * alpha)
    shared = np.log(alpha) - np.log(n + alpha)  # log odds of a term not met in the class
    odds = np.log(have + alpha) - np.log(np.maximum(n[mine] - have, 0.0) + alpha)
    constant = counted.size * never + counted.by_class(no - never[mine])
    return TermScores(counted.tokens, counted.cells(odds - shared[mine]), shared, BINARY, constant=constant)


def polya(counted: Weighed, alpha: float) -> PolyaDocuments:
    """Terms share a concentration by their document counts; a class whose terms repeat much has a small one."""
    tally, have = counted.tally, counted.tally.documents
    met = counted.by_class(have)
    s = np.array([concentration(*known) for known in zip(met, tally.n[:, 0], tally.length[:, 0], strict=True)])
    each = s / (met + alpha * max(counted.size, 1))
    cells = counted.cells(each[tally.class_of_cell] * (have + alpha))
    return PolyaDocuments(counted.tokens, cells, each * alpha, s)


def concentration(met: float, n: float, length: float) -> float:
    """The s at which n documents of ``length`` terms in all are expected to show ``met`` different terms, each counted
    once a document: met = n s (digamma(s + length / n) - digamma(s)) (Elkan, 2006).

    >>> round(concentration(150.0, 10.0, 200.0), 1)  # of 20 terms in a document 15 are different
    25.6
    """
    from scipy.optimize import brentq
    from scipy.special import digamma

    if n <= 0 or met <= n or met >= length:
        return _BURSTY if 0 < met <= n < length else _FLAT

    def excess(log_s: float) -> float:
        s = np.exp(log_s)
        return n * s * (digamma(s + length / n) - digamma(s)) - met

    low, high = np.log(_BURSTY), np.log(_FLAT)
    if excess(low) >= 0 or excess(high) <= 0:
        return _BURSTY if excess(low) >= 0 else _FLAT
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)))


def multinomial_evidence(counted: Weighed, alpha: float) -> Floats:
    """(class, 1) log marginal likelihood of the terms of all documents of a class, one after another."""
    n = counted.total
    each = counted.by_class(numerics.log_rising(np.full_like(n, alpha), n))
    return (each - numerics.log_rising(alpha * counted.size, counted.by_class(n)))[:, None]


def bernoulli_evidence(counted: Weighed, alpha: float) -> Floats:
    """(class, 1) log marginal likelihood of which documents of a class have each term."""
    n, have, mine = counted.tally.n[:, 0], counted.tally.documents, counted.tally.class_of_cell
    rest = np.maximum(n[mine] - have, 0.0)
    cells = numerics.log_rising(np.full_like(have, alpha), have) + numerics.log_rising(np.full_like(rest, alpha), rest)
    never = numerics.log_rising(np.full_like(n, alpha), n)
    both = counted.size * numerics.log_rising(np.full_like(n, 2 * alpha), n)
    return (counted.size * never + counted.by_class(cells - never[mine]) - both)[:, None]


def log_odds(counted: Weighed, c: int, alpha: float) -> Floats:
    """(term,) log share of a term in a class over its share in all others, ``alpha`` added to every count."""
    n, mine = counted.total, counted.tally.class_of_cell == c
    inside = np.bincount(counted.tally.word[mine], n[mine], counted.tally.n_terms)
    outside = np.maximum(counted.by_term(n) - inside, 0.0)
    size = alpha * counted.size
    return np.log(inside + alpha) - np.log(inside.sum() + size) - np.log(outside + alpha) + np.log(outside.sum() + size)
