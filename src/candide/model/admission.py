"""Admission: which interactions improve on the terms that the model has so far.

Each set of columns gets the score test of adding its term f, evaluated on rows that it has not counted,

    z = U / sqrt(I)        U = sum over rows of f(y) - sum_c p_c f(c)        I = sum over rows of Var_p f

under the probabilities p of the terms so far. z is normal only where f is known well. A term learned from noise follows
that noise: with d degrees of freedom U is then Q - d and I is Q, with a chi-square Q, and its tail is much longer,

    P(z) = P(Q > q)        (q - d) / sqrt(q) = z        Q ~ chi-square with d degrees of freedom

That is the tail used here. A table without interactions passes with a probability of ``NO_INTERACTION``. Where there
are interactions, Benjamini and Hochberg's rule finds them: a share of ``FALSE`` of those admitted may be due to chance.

>>> rng = np.random.default_rng(0)
>>> x, p = rng.integers(0, 2, (400, 4)), np.full((400, 2), 0.5)
>>> select_interactions(((0, 1), (0, 2), (1, 2)), x, (2, 2, 2, 2), x[:, 1] ^ x[:, 2], p, max_sets=9)
((1, 2),)
"""

from collections.abc import Sequence

import numpy as np

from candide import kernels
from candide.conjugate.interaction import held_out_contributions, log_ratio, score_sets
from candide.data.blocks import Codes, Floats
from candide.numerics import chi_square_tail
from candide.tally.cells import CellLayout, CellTally

FAMILYWISE_ERROR_RATE = 0.01  # probability of admitting any set where no columns interact
SINGLE_TERM_ERROR_RATE = 0.01  # probability of adding a single term that contributes nothing
FALSE_DISCOVERY_RATE = 0.1  # the share of the sets admitted that may be due to chance, where some columns interact
MAX_CELLS = 200_000  # cells of a set, over all classes
_DEGREES_FACTOR = (
    4.0  # degrees of freedom that count for one: logarithms of small counts spread wider than a chi-square
)
_MAX_CONTRIBUTIONS_AT_ONCE = 1 << 22  # of rows, classes and sets that are evaluated together

ColumnSets = tuple[tuple[int, ...], ...]


def select_interactions(
    sets: Sequence[tuple[int, ...]],
    codes: Codes,
    sizes: tuple[int, ...],
    y: Codes,
    posterior: Floats,
    weight: Floats | None = None,
    left_out_weight: Floats | None = None,
    *,
    max_sets: int,
    interactions_known: bool = False,
) -> ColumnSets:
    """The sets that are admitted, strongest first; ``codes`` (row, column), ``posterior`` (row, class) so far.

    ``weight`` is the frequency of each row, ``left_out`` what leaving it out takes from the counts, where that is not
    its weight; ``established``: it is known that columns interact.
    """
    k, n_rows = posterior.shape[1], float(len(y) if weight is None else weight.sum())
    shapes = np.array([[sizes[j] for j in columns] for columns in sets], float)
    # Of more cells than rows most are empty; all that such a set says of a row left out is that its class has one less.
    tested = np.flatnonzero(shapes.prod(axis=1) <= min(MAX_CELLS / k, n_rows))
    if not len(tested):
        return ()
    candidates, degrees = np.array(sets)[tested], _DEGREES_FACTOR * (shapes[tested] - 1.0).prod(axis=1) * (k - 1)
    z = score_sets(candidates, codes, np.array(sizes), y, posterior, weight, left_out_weight)
    order = np.argsort(-z, kind="stable")
    order = order[
        score_test_p_value(z, degrees)[order]
        <= _benjamini_hochberg_threshold(score_test_p_value(z, degrees), FALSE_DISCOVERY_RATE, len(sets))
    ][: 2 * max_sets]
    z = _z_scores(candidates[order], codes, sizes, y, posterior, weight, left_out_weight)
    probability = score_test_p_value(z, degrees[order])
    if not interactions_known and _benjamini_hochberg_threshold(probability, FAMILYWISE_ERROR_RATE, len(sets)) < 0:
        return ()
    passed = order[probability <= _benjamini_hochberg_threshold(probability, FALSE_DISCOVERY_RATE, len(sets))]
    return tuple(tuple(map(int, columns)) for columns in candidates[passed][:max_sets])


def score_test_p_value(z: Floats, degrees: Floats) -> Floats:
    """The probability of a score test of at least z for a term with so many degrees of freedom learned from noise.

    >>> score_test_p_value(np.array([0.0, 4.0, 4.0, 4.0]), np.array([49.0, 1.0, 49.0, 1e6])).round(5).tolist()
    [0.47313, 2e-05, 0.00083, 0.00232]
    """
    return chi_square_tail(((z + np.sqrt(z**2 + 4.0 * degrees)) / 2.0) ** 2, degrees)


def _benjamini_hochberg_threshold(probability: Floats, share: float, n_tests: int) -> float:
    """The largest probability that passes the rule of Benjamini and Hochberg among so many tests; -1: none does."""
    ascending = np.sort(probability)
    passed = np.flatnonzero(ascending <= share * np.arange(1, len(ascending) + 1) / n_tests)
    return float(ascending[passed[-1]]) if len(passed) else -1.0


def _z_scores(
    sets: Codes,
    codes: Codes,
    sizes: tuple[int, ...],
    y: Codes,
    posterior: Floats,
    weight: Floats | None,
    left_out: Floats | None,
) -> Floats:
    """(set,) z of each set, by the larger variance."""
    k, found = posterior.shape[1], [np.zeros(0)]
    step = max(1, _MAX_CONTRIBUTIONS_AT_ONCE // max(1, posterior.size))
    for start in range(0, len(sets), step):
        some = sets[start : start + step]
        counts = kernels.cell_counts(codes, y, weight, k, some, np.array(sizes))
        tally = CellTally(counts, CellLayout(tuple(map(tuple, some.tolist())), sizes))
        terms = held_out_contributions(tally, log_ratio(tally), codes, y, weight if left_out is None else left_out)
        found.append(_z_score(*_score_moments(terms, y, posterior, weight)))
    return np.concatenate(found)


def is_term_needed(
    contributions: Floats, degrees: float, y: Codes, posterior: Floats, weight: Floats | None = None
) -> bool:
    """Whether one term (row, class, 1) with so many degrees of freedom improves on a model with this posterior."""
    z = _z_score(*_score_moments(contributions, y, posterior, weight))
    return bool(score_test_p_value(z, np.array(degrees))[0] <= SINGLE_TERM_ERROR_RATE)


def score_test(contributions: Floats, y: Codes, posterior: Floats, weight: Floats | None = None) -> Floats:
    """(voice,) z of adding each voice, whose terms are (row, class, voice), to a model with this posterior."""
    gain, expected, _ = _score_moments(contributions, y, posterior, weight)
    return gain / np.sqrt(np.maximum(expected, 1e-9))


def _z_score(gain: Floats, expected: Floats, observed: Floats) -> Floats:
    """z by the observed or the expected variance, whichever is larger: a few rows of a rare class prove nothing."""
    return gain / np.sqrt(np.maximum(np.maximum(expected, observed), 1e-9))


def _score_moments(terms: Floats, y: Codes, posterior: Floats, weight: Floats | None) -> tuple[Floats, Floats, Floats]:
    """(term,) the slope of the likelihood where a term is added, and its expected and observed variance."""
    w = np.ones(len(y)) if weight is None else weight
    mean = np.einsum("nc,ncv->nv", posterior, terms)
    square = np.einsum("nc,ncv->nv", posterior, terms**2)
    gain = terms[np.arange(len(y)), y] - mean
    return w @ gain, w @ (square - mean**2), w @ gain**2
