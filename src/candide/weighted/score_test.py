"""The score test: does a term improve on the terms and weights that the model has so far?

For a term f, evaluated on rows that are left out of its counts, and the model's probabilities p so far,

    z = U / sqrt(I)        U = sum over rows of f(y) - sum_c p_c f(c)        I = sum over rows of Var_p f

z is normal only where f is known well. A term learned from noise follows that noise: with d degrees of freedom, U is
Q - d and I is Q for a chi-square Q, whose tail is much longer. That is the tail used here:

    P(z) = P(Q > q)        (q - d) / sqrt(q) = z        Q ~ chi-square with d degrees of freedom
"""

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.numerics import chi_square_tail

SINGLE_TERM_ERROR_RATE = 0.01  # probability of adding a single term that contributes nothing


def score_test(contributions: Floats, y: Codes, posterior: Floats, weight: Floats | None = None) -> Floats:
    """(term,) z of adding each term (row, class, term) to a model with this posterior."""
    gain, expected, _ = score_moments(contributions, y, posterior, weight)
    return gain / np.sqrt(np.maximum(expected, 1e-9))


def is_term_needed(
    contributions: Floats, degrees: float, y: Codes, posterior: Floats, weight: Floats | None = None
) -> bool:
    """Whether one term (row, class, 1) with so many degrees of freedom improves on a model with this posterior."""
    z = z_score(*score_moments(contributions, y, posterior, weight))
    return bool(score_test_p_value(z, np.array(degrees))[0] <= SINGLE_TERM_ERROR_RATE)


def score_test_p_value(z: Floats, degrees: Floats) -> Floats:
    """The probability of a score test of at least z for a term with so many degrees of freedom learned from noise.

    >>> score_test_p_value(np.array([0.0, 4.0, 4.0, 4.0]), np.array([49.0, 1.0, 49.0, 1e6])).round(5).tolist()
    [0.47313, 2e-05, 0.00083, 0.00232]
    """
    return chi_square_tail(((z + np.sqrt(z**2 + 4.0 * degrees)) / 2.0) ** 2, degrees)


def benjamini_hochberg(p_values: Floats, false_discovery_rate: float, n_tests: int) -> float:
    """The largest p-value that passes the rule of Benjamini and Hochberg among so many tests; -1: none does."""
    ascending = np.sort(p_values)
    passed = np.flatnonzero(ascending <= false_discovery_rate * np.arange(1, len(ascending) + 1) / n_tests)
    return float(ascending[passed[-1]]) if len(passed) else -1.0


def z_score(gain: Floats, expected: Floats, observed: Floats) -> Floats:
    """z by the observed or the expected variance, whichever is larger: a few rows of a rare class prove nothing."""
    return gain / np.sqrt(np.maximum(np.maximum(expected, observed), 1e-9))


def score_moments(
    contributions: Floats, y: Codes, posterior: Floats, weight: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """(term,) the slope of the likelihood where a term is added, and its expected and observed variance."""
    w = np.ones(len(y)) if weight is None else weight
    mean = np.einsum("nc,ncv->nv", posterior, contributions)
    square = np.einsum("nc,ncv->nv", posterior, contributions**2)
    gain = contributions[np.arange(len(y)), y] - mean
    return w @ gain, w @ (square - mean**2), w @ gain**2
