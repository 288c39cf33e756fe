"""Products: sums of w z z' with z = (1, x), as expansions of three doubles: weight, totals and products in one matrix.

They add and subtract as sums of powers do (:mod:`candide.kernels.powers`): one row that is far from the others, counted
and removed again, leaves their covariances as they were. An array of them is (class, 1 + feature, 1 + feature, part).

>>> state = np.array([[4.0]]), np.array([[2.0, 1.0]]), np.array([[[6.0, 3.0], [3.0, 5.0]]])
>>> far = np.array([[1.0]]), np.array([[1e9, -1e9]]), np.zeros((1, 2, 2))
>>> sums = subtract_sums(add_sums(sums_from_comoments(*state), sums_from_comoments(*far)), sums_from_comoments(*far))
>>> [a.tolist() for a in comoments_from_sums(sums)]
[[[4.0]], [[2.0, 1.0]], [[[6.0, 3.0], [3.0, 5.0]]]]
"""

import numpy as np

from candide.data.blocks import Floats
from candide.kernels.powers import add_last_residuals, add_sums, last_residuals, scale_sums, subtract_sums
from candide.numerics import EXPANSION_PARTS, split_expansion, sum_to_expansion, two_product
from candide.tally.scatter import symmetric_from_lower

__all__ = [
    "N_RESIDUALS",
    "add_last_residuals",
    "add_sums",
    "comoments_from_sums",
    "drift_residuals",
    "last_residuals",
    "residuals_of_sums",
    "scale_sums",
    "subtract_sums",
    "sums_from_comoments",
]

N_RESIDUALS = EXPANSION_PARTS - 1


def sums_from_comoments(weight: Floats, mean: Floats, scatter: Floats, residuals: Floats | None = None) -> Floats:
    """The sums that weight (class, 1), mean and scatter stand for, with what rounding took from these."""
    z = np.concatenate([np.ones_like(weight), mean], axis=1)
    row, column = np.tril_indices(z.shape[1])  # one triangle says it all
    spread = np.zeros((len(z), z.shape[1], z.shape[1]))
    spread[:, 1:, 1:] = scatter
    with np.errstate(invalid="ignore", over="ignore"):
        product, error = two_product(z[:, row], z[:, column])
        more = [] if residuals is None else [residuals[:, row, column, i] for i in range(N_RESIDUALS)]
        terms = [*two_product(weight, product), *two_product(weight, error), spread[:, row, column], *more]
        lower = sum_to_expansion(*terms)
    out = np.empty((*spread.shape, EXPANSION_PARTS))
    out[:, row, column] = out[:, column, row] = lower
    return out


def comoments_from_sums(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and scatter, each rounded once; a spread may be negative by rounding."""
    weight = sums[:, :1, 0, 0]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        safe = np.where(weight > 0, weight, 1.0)
        mean = sums[:, 0, 1:, 0] / safe
        mean = np.where(weight > 0, mean + _sum_deviations(sums, mean)[..., 0] / safe, 0.0)
        gap = _sum_deviations(sums, mean)[..., 0]  # sum of w (x - mean): the mean's own rounding
        row, column = np.tril_indices(mean.shape[1])  # one triangle says it all
        a, b = mean[:, row], mean[:, column]
        product, error = two_product(a, b)
        w, low = sums[:, :1, 0, 0], sums[:, :1, 0, 1]
        terms = [*two_product(w, product), *two_product(w, error), low * product]
        terms += [*two_product(a, gap[:, column]), *two_product(b, gap[:, row])]
        own = [sums[:, 1 + row, 1 + column, part] for part in range(EXPANSION_PARTS)]
        lower = sum_to_expansion(*own, *(-term for term in terms))[..., 0]
        lower -= gap[:, row] * gap[:, column] / safe
    return weight, mean, symmetric_from_lower(np.where(weight > 0, lower, 0.0), mean.shape[1])


def residuals_of_sums(sums: Floats, weight: Floats, mean: Floats, scatter: Floats) -> Floats:
    """(class, 1 + feature, 1 + feature, REST) what the sums hold beyond weight, mean and scatter."""
    return subtract_sums(sums, sums_from_comoments(weight, mean, scatter))[..., :N_RESIDUALS]


def drift_residuals(mean: Floats, drift: Floats) -> Floats:
    """(1 + feature, 1 + feature, REST) what the sums hold beyond a mean from which the rows drift by so much in all."""
    out = np.zeros((len(mean) + 1, len(mean) + 1, N_RESIDUALS))
    out[0, 1:, 0] = out[1:, 0, 0] = drift
    product, error = two_product(mean[:, None], drift[None, :])
    out[1:, 1:] = sum_to_expansion(product, product.T, error, error.T)[..., :N_RESIDUALS]
    return out


def _sum_deviations(sums: Floats, mean: Floats) -> Floats:
    """(class, feature, part) the sum of w (x - mean)."""
    products = [-t for part in range(EXPANSION_PARTS) for t in two_product(sums[:, :1, 0, part], mean)]
    return sum_to_expansion(*split_expansion(sums[:, 0, 1:]), *products)
