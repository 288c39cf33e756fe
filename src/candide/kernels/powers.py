"""Powers: sums of w, w x and w x^2 as expansions of three doubles each, in arrays (..., power, part).

Such sums add and subtract without visible rounding errors: one value of 1e9 among values near 1, counted and removed
again, leaves their variance as it was.
"""

import numpy as np
from numpy.typing import NDArray

from candide.kernels.cells import check_classes
from candide.numerics import EXPANSION_PARTS, split_expansion, sum_to_expansion, two_product

Floats = NDArray[np.float64]

POWERS = 3
_CHUNK_VALUES = 8192  # values that the reference sums at a time
N_RESIDUALS = POWERS * (EXPANSION_PARTS - 1)  # numbers that rounding weight, mean and spread to doubles loses


def sums_from_moments(n: Floats, mean: Floats, m2: Floats, residuals: Floats | None = None) -> Floats:
    """The sums for a weight, mean and centred sum of squares, with the residuals of their rounding."""
    with np.errstate(invalid="ignore", over="ignore"):
        first, square = two_product(n, mean), _square_terms(n, mean)
        parts = [n], [*first], [*square, m2]
        if residuals is not None:
            for k, part in enumerate(parts):
                part += [residuals[..., 2 * k], residuals[..., 2 * k + 1]]
        return np.stack([sum_to_expansion(*part) for part in parts], axis=-2)


def moments_of(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and centred sum of squares, each rounded once; the last may be negative by rounding."""
    n = sums[..., 0, 0]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        safe = np.where(n > 0, n, 1.0)
        mean = sums[..., 1, 0] / safe
        weight, total = sums[..., 0, :], sums[..., 1, :]
        mean = np.where(n > 0, mean + sum_deviations(weight, total, mean)[..., 0] / safe, 0.0)
        gap = sum_deviations(weight, total, mean)  # sum of w (x - mean): the mean's own rounding
        cross = [-2.0 * t for part in range(2) for t in two_product(mean, gap[..., part])]
        square = [-t for part in range(EXPANSION_PARTS) for t in _square_terms(sums[..., 0, part], mean)]
        m2 = sum_to_expansion(*split_expansion(sums[..., 2, :]), *square, *cross, -(gap[..., 0] ** 2) / safe)[..., 0]
    return n, mean, np.where(n > 0, m2, 0.0)


def residuals_of_sums(sums: Floats, n: Floats, mean: Floats, m2: Floats) -> Floats:
    """(..., N_RESIDUALS) what the sums hold beyond weight, mean and centred sum of squares."""
    plain = sums_from_moments(n, mean, m2)
    return subtract_sums(sums, plain)[..., : EXPANSION_PARTS - 1].reshape(*n.shape, N_RESIDUALS)


def last_residuals(sums: Floats, recovered: Floats) -> Floats:
    """The difference of sums from those recovered from moments and residuals: one number each."""
    return subtract_sums(sums, recovered)[..., 0]


def add_last_residuals(recovered: Floats, last: Floats) -> Floats:
    """The sums whose ``last_residuals`` are given."""
    with np.errstate(invalid="ignore", over="ignore"):
        return sum_to_expansion(*split_expansion(recovered), last)


def add_sums(a: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore", over="ignore"):
        pairs = zip(split_expansion(a), split_expansion(b), strict=True)
        return sum_to_expansion(*(term for pair in pairs for term in pair))


def subtract_sums(a: Floats, b: Floats) -> Floats:
    return add_sums(a, -b)


def scale_sums(sums: Floats, factor: float | Floats) -> Floats:
    """The sums of rows that count ``factor`` times."""
    with np.errstate(invalid="ignore", over="ignore"):
        products = (two_product(part, np.asarray(factor, float)) for part in split_expansion(sums))
        return sum_to_expansion(*(term for product in products for term in product))


def sum_deviations(weight: Floats, total: Floats, mean: Floats) -> Floats:
    """The sum of w (x - mean), as an expansion, from those of the weight and of w x."""
    products = [-t for part in split_expansion(weight) for t in two_product(part, mean)]
    return sum_to_expansion(*split_expansion(total), *products)


def _square_terms(n: Floats, mean: Floats) -> list[Floats]:
    """n mean^2 as four terms."""
    square, error = two_product(mean, mean)
    return [*two_product(n, square), *two_product(n, error)]


def power_sums(X: Floats, y: NDArray[np.intp], w: Floats | None, n_classes: int) -> Floats:
    """(class, feature, power, part) the sums of rows; NaN is a missing value. The reference of the compiled loop."""
    out = np.zeros((n_classes, X.shape[1], POWERS, EXPANSION_PARTS))
    check_classes(y, n_classes)
    step = max(1, _CHUNK_VALUES // max(1, X.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        for c in range(n_classes):
            rows = np.flatnonzero((y == c) & ((w if w is not None else np.ones(len(y))) != 0))
            for start in range(0, len(rows), step):  # an exact sum takes thirty times the memory of its value
                at = rows[start : start + step]
                total = _total_sums(np.asarray(X[at], float), None if w is None else w[at, None])
                out[c] = add_sums(out[c], total)
    return out


def _total_sums(x: Floats, w: Floats | None) -> Floats:
    """(feature, power, part) the sums of rows of values with their weights, added by halves."""
    weight = np.where(np.isnan(x), 0.0, 1.0 if w is None else w)
    x = np.where(np.isnan(x), 0.0, x)
    parts = [weight], two_product(weight, x), _square_terms(weight, x)
    sums = np.stack([sum_to_expansion(*part) for part in parts], axis=-2)
    while len(sums) > 1:
        half = len(sums) // 2
        sums = np.concatenate([add_sums(sums[:half], sums[half : 2 * half]), sums[2 * half :]])
    return sums[0]
