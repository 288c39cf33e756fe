"""Numerical functions: special functions in log space, quantiles, and sums as expansions of three doubles.

Special functions are exact where the textbook form cancels; scipy is loaded at first use.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # Abramowitz and Stegun 6.1.41
_TINY = 1e-300  # below it Gamma(a) = 1 / a, to the last digit
_MAX_STDLIB_VALUES = 1000  # values up to which the standard library serves, and scipy need not be imported
_TOLERANCE = 1e-12  # proportions that differ by less are equal
EXPANSION_PARTS = 3  # a number as the sum of three doubles, largest first, on the last axis: 159 bits instead of 53
_STIRLING_START = 16.0  # from here on those six terms are exact to rounding


def gammaln(x: ArrayLike) -> Floats:
    from scipy.special import gammaln as loggamma  # here, because importing it costs more than loading a small model

    return loggamma(x)


def log_or_minus_inf(x: ArrayLike) -> Floats:
    """log x, with log 0 = -inf and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def xlogy(x: ArrayLike, y: ArrayLike) -> Floats:
    """x log y, with 0 log 0 = 0. The log is taken before y is broadcast: parameters are few, values many."""
    x = np.asarray(x, float)
    with np.errstate(invalid="ignore"):
        return np.where(x == 0, 0.0, x * log_or_minus_inf(y))


def mask_negative(x: NDArray, log_prob: NDArray) -> Floats:
    """``log_prob`` where x >= 0 (or is NaN), -inf below."""
    return np.where(x < 0, -np.inf, log_prob)


def log_proportion(part: ArrayLike, total: ArrayLike) -> Floats:
    """log(part / total) for 0 <= part <= total, computed from the rest near one, so that it keeps its digits."""
    part, total = np.broadcast_arrays(np.asarray(part, float), np.asarray(total, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        proportion = np.divide(part, total)
        near = proportion > 0.5
        out = np.atleast_1d(np.log(proportion))
        out[near] = np.log1p((part[near] - total[near]) / total[near])
    return out.reshape(part.shape)


def log_rising_factorial(a: ArrayLike, x: ArrayLike) -> Floats:
    """log Gamma(a + x) / Gamma(a) for a, x >= 0: the rising factorial, and 0 at x = 0 even where a = 0."""
    a, x = np.asarray(a, float), np.asarray(x, float)
    large = a >= _STIRLING_START
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if large.all():
            out = _rising_large(a, x)
        elif a.size * x.size <= _MAX_STDLIB_VALUES and (a >= _TINY).all():
            steps = a[..., None] + np.arange(_STIRLING_START)  # up to where Stirling's series is exact
            out = _rising_large(a + _STIRLING_START, x) - np.log1p(x[..., None] / steps).sum(axis=-1)
        else:
            tiny = a < _TINY  # where Gamma may be infinite: there from a step above
            out = gammaln(a + tiny + x) - gammaln(a + tiny)
            if tiny.any():
                out += np.where(tiny, log_or_minus_inf(a) - log_or_minus_inf(a + x), 0.0)
            if large.any():
                out = np.where(large, _rising_large(a, x), out)
    return np.where(x == 0, 0.0, out)


def _rising_large(a: Floats, x: Floats) -> Floats:
    """Stirling's series at both ends, subtracted term by term: the large parts cancel on paper, not in floats."""
    end = a + x
    return (a - 0.5) * np.log1p(x / a) + x * (np.log(end) - 1.0) + _stirling(end) - _stirling(a)


def _stirling(a: Floats) -> Floats:
    inverse = 1.0 / a
    return inverse * np.polynomial.polynomial.polyval(inverse * inverse, _STIRLING)


def is_right_skewed(values: Floats, n: Floats) -> bool:
    """Whether weighted values have their longer tail above: true of a column or of its negation."""
    if not len(values):
        return True
    away = values / max(float(np.abs(values).max()), _TINY)
    away = away - float(n @ away) / float(n.sum())
    return bool(n @ away**3 >= 0)


def nearest_indices(proportions: NDArray, targets: NDArray, *, prefer_low: bool) -> NDArray[np.intp]:
    """The index of the ascending proportion nearest each target; for ties, the one nearer to a half.

    ``prefer_low`` decides where both are as near to a half, so that a column and its negation have the same quantiles.
    """
    above = np.clip(np.searchsorted(proportions, targets), 1, max(1, len(proportions) - 1))
    below = above - 1
    up, down = proportions[above] - targets, targets - proportions[below]
    tie = np.abs(up - down) <= _TOLERANCE
    middle = np.abs(targets - 0.5) <= _TOLERANCE
    return np.where(np.where(tie, np.where(middle, not prefer_low, targets < 0.5), up < down), above, below)


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a + b, and what rounding took from it (Knuth, 1969)."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a b, and what rounding took from it (Dekker, 1971); nothing where the factors are too large to be split."""
    p = a * b
    (a, a_low), (b, b_low) = _split(a), _split(b)
    error = ((a * b - p) + a * b_low + a_low * b) + a_low * b_low
    return p, np.where(np.isfinite(error), error, 0.0)


def _split(x: Floats) -> tuple[Floats, Floats]:
    """A number as two of 26 bits."""
    c = 134217729.0 * x
    high = c - (c - x)
    return high, x - high


def sum_to_expansion(*values: ArrayLike) -> Floats:
    """(..., 3) the sum of numbers, as an expansion."""
    terms: list[Floats] = list(np.broadcast_arrays(*(np.asarray(term, float) for term in values)))
    terms += [np.zeros_like(terms[0])] * (EXPANSION_PARTS - len(terms))
    for top in range(EXPANSION_PARTS):
        for i in range(len(terms) - 1, top, -1):
            terms[i - 1], terms[i] = two_sum(terms[i - 1], terms[i])
    high, middle, low = terms[0], terms[1], sum(terms[3:], terms[2])
    for _ in range(2):  # a sum has one expansion, whatever the order
        middle, low = two_sum(middle, low)
        high, middle = two_sum(high, middle)
    return np.stack([high, *two_sum(middle, low)], axis=-1)


def split_expansion(x: Floats) -> list[Floats]:
    return [x[..., i] for i in range(EXPANSION_PARTS)]


def mean_class_difference(contributions: NDArray, class_proportions: NDArray) -> NDArray:
    """(row,) Return the mean difference between the contributions to two classes drawn by their proportions."""
    order = np.argsort(contributions, axis=1)
    ascending, below = np.take_along_axis(contributions, order, 1), np.cumsum(class_proportions[order], axis=1)[:, :-1]
    low, high = ascending[:, :-1], ascending[:, 1:]
    with np.errstate(invalid="ignore"):
        gaps = np.where(low == high, 0.0, high - low)
    is_different = max(1.0 - float(class_proportions @ class_proportions), 1e-300)
    return 2 * (gaps * below * (1 - below)).sum(axis=1) / is_different
