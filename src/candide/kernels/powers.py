"""Powers: sums of w, w x and w x^2 as expansions of three doubles each; those of rows are counted by compiled loops.

Such sums add and subtract without visible rounding errors: one value of 1e9 among values near 1, counted
and removed again, leaves their variance as it was. An array of them is (..., power, part).

>>> one, other = (sums_from_moments(*(np.array([v]) for v in state)) for state in ((4.0, 2.0, 6.0), (1.0, 1e9, 0.0)))
>>> [v.item() for v in moments_of(subtract_sums(add_sums(one, other), other))]
[4.0, 2.0, 6.0]
"""

import numpy as np
from numpy.typing import NDArray

from candide.numerics import EXPANSION_PARTS, split_expansion, sum_to_expansion, two_product

Floats = NDArray[np.float64]

POWERS = 3
_CHUNK_VALUES = 8192  # values that the reference sums at a time
N_RESIDUALS = POWERS * (EXPANSION_PARTS - 1)  # numbers that rounding weight, mean and spread to doubles loses


def sums_from_moments(n: Floats, mean: Floats, m2: Floats, residuals: Floats | None = None) -> Floats:
    """The sums that weight, mean and centred sum of squares stand for, with what rounding took from these."""
    with np.errstate(invalid="ignore", over="ignore"):
        first, square = two_product(n, mean), _square_terms(n, mean)
        more: list[list[Floats]] = [[]] * POWERS
        if residuals is not None:
            more = [[residuals[..., 2 * k], residuals[..., 2 * k + 1]] for k in range(POWERS)]
        parts = [n, *more[0]], [*first, *more[1]], [*square, m2, *more[2]]
        return np.stack([sum_to_expansion(*part) for part in parts], axis=-2)


def moments_of(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and centred sum of squares, each rounded once; the last may be negative by rounding."""
    n = sums[..., 0, 0]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        safe = np.where(n > 0, n, 1.0)
        mean = sums[..., 1, 0] / safe
        mean = np.where(n > 0, mean + _sum_deviations(sums, mean)[..., 0] / safe, 0.0)
        gap = _sum_deviations(sums, mean)  # sum of w (x - mean): the mean's own rounding
        cross = [-2.0 * t for part in range(2) for t in two_product(mean, gap[..., part])]
        square = [-t for part in range(EXPANSION_PARTS) for t in _square_terms(sums[..., 0, part], mean)]
        m2 = sum_to_expansion(*split_expansion(sums[..., 2, :]), *square, *cross, -(gap[..., 0] ** 2) / safe)[..., 0]
    return n, mean, np.where(n > 0, m2, 0.0)


def residuals_of_sums(sums: Floats, n: Floats, mean: Floats, m2: Floats) -> Floats:
    """(..., N_RESIDUALS) what the sums hold beyond weight, mean and centred sum of squares."""
    plain = sums_from_moments(n, mean, m2)
    return subtract_sums(sums, plain)[..., : EXPANSION_PARTS - 1].reshape(*n.shape, N_RESIDUALS)


def last_residuals(sums: Floats, recovered: Floats) -> Floats:
    """What sums differ by from those found of their rest, whose last digits were rounded: one number each."""
    return subtract_sums(sums, recovered)[..., 0]


def add_last_residuals(recovered: Floats, last: Floats) -> Floats:
    """The sums whose ``last_residuals`` are given."""
    with np.errstate(invalid="ignore", over="ignore"):
        return sum_to_expansion(*split_expansion(recovered), last)


def add_sums(a: Floats, b: Floats) -> Floats:
    """a + b."""
    with np.errstate(invalid="ignore", over="ignore"):
        return sum_to_expansion(
            *(term for pair in zip(split_expansion(a), split_expansion(b), strict=True) for term in pair)
        )


def subtract_sums(a: Floats, b: Floats) -> Floats:
    """a - b."""
    return add_sums(a, -b)


def scale_sums(sums: Floats, factor: float | Floats) -> Floats:
    """The sums of rows that count ``factor`` times."""
    with np.errstate(invalid="ignore", over="ignore"):
        return sum_to_expansion(
            *(t for part in split_expansion(sums) for t in two_product(part, np.asarray(factor, float)))
        )


def _sum_deviations(sums: Floats, mean: Floats) -> Floats:
    """The sum of w (x - mean), as an expansion."""
    products = [-t for part in range(EXPANSION_PARTS) for t in two_product(sums[..., 0, part], mean)]
    return sum_to_expansion(*split_expansion(sums[..., 1, :]), *products)


def _square_terms(n: Floats, mean: Floats) -> list[Floats]:
    """n mean^2 as four terms."""
    square, error = two_product(mean, mean)
    return [*two_product(n, square), *two_product(n, error)]


def power_sums(X: Floats, y: NDArray[np.intp], w: Floats | None, n_classes: int) -> Floats:
    """(class, feature, power, part) the sums of rows; NaN is a missing value. The reference of the compiled loop."""
    out = np.zeros((n_classes, X.shape[1], POWERS, EXPANSION_PARTS))
    if len(y) and (y.min() < 0 or y.max() >= n_classes):
        raise IndexError("a class code lies outside the classes")
    step = max(1, _CHUNK_VALUES // max(1, X.shape[1]))
    with np.errstate(invalid="ignore", over="ignore"):
        for c in range(n_classes):
            mine = np.flatnonzero((y == c) & ((w if w is not None else np.ones(len(y))) != 0))
            for start in range(0, len(mine), step):  # an exact sum takes thirty times the memory of its value
                at = mine[start : start + step]
                values = _value_sums(np.asarray(X[at], float), None if w is None else w[at, None])
                out[c] = add_sums(out[c], _pairwise_total(values))
    return out


def _value_sums(x: Floats, w: Floats | None) -> Floats:
    """(..., power, part) the sums of single values with their weights."""
    weight = np.where(np.isnan(x), 0.0, 1.0 if w is None else w)
    x = np.where(np.isnan(x), 0.0, x)
    square, error = two_product(x, x)
    first, second = two_product(weight, x), [*two_product(weight, square), *two_product(weight, error)]
    return np.stack([sum_to_expansion(weight), sum_to_expansion(*first), sum_to_expansion(*second)], axis=-2)


def _pairwise_total(sums: Floats) -> Floats:
    """The total over the first axis, by halves."""
    while len(sums) > 1:
        half = len(sums) // 2
        sums = np.concatenate([add_sums(sums[:half], sums[half : 2 * half]), sums[2 * half :]])
    return sums[0] if len(sums) else np.zeros(sums.shape[1:])
