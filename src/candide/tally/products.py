"""Products: sums of w z z' with z = (1, x), as expansions of three doubles: weight, totals and products in one matrix.

They add and subtract as sums of powers do (:mod:`candide.kernels.powers`): one row that is far from the others, counted
and removed again, leaves their covariances as they were. An array of them is (class, 1 + feature, 1 + feature, part).

>>> state = np.array([[4.0]]), np.array([[2.0, 1.0]]), np.array([[[6.0, 3.0], [3.0, 5.0]]])
>>> far = np.array([[1.0]]), np.array([[1e9, -1e9]]), np.zeros((1, 2, 2))
>>> sums = minus(plus(of_comoments(*state), of_comoments(*far)), of_comoments(*far))
>>> [a.tolist() for a in comoments_of(sums)]
[[[4.0]], [[2.0, 1.0]], [[[6.0, 3.0], [3.0, 5.0]]]]
"""

import numpy as np

from candide.kernels.powers import last_of, minus, plus, scaled, with_last
from candide.numerics import PARTS, expansion, parts_of, two_product
from candide.rows.blocks import Floats
from candide.tally.scatter import symmetric

__all__ = [
    "REST",
    "comoments_of",
    "drifted",
    "last_of",
    "minus",
    "of_comoments",
    "plus",
    "rest_of",
    "scaled",
    "with_last",
]

REST = PARTS - 1


def of_comoments(weight: Floats, mean: Floats, scatter: Floats, rest: Floats | None = None) -> Floats:
    """The sums that weight (class, 1), mean and scatter stand for, with what rounding took from these."""
    z = np.concatenate([np.ones_like(weight), mean], axis=1)
    row, column = np.tril_indices(z.shape[1])  # one triangle says it all
    spread = np.zeros((len(z), z.shape[1], z.shape[1]))
    spread[:, 1:, 1:] = scatter
    with np.errstate(invalid="ignore", over="ignore"):
        product, error = two_product(z[:, row], z[:, column])
        more = [] if rest is None else [rest[:, row, column, i] for i in range(REST)]
        terms = [*two_product(weight, product), *two_product(weight, error), spread[:, row, column], *more]
        lower = expansion(*terms)
    out = np.empty((*spread.shape, PARTS))
    out[:, row, column] = out[:, column, row] = lower
    return out


def comoments_of(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and scatter, each rounded once; a spread may be negative by rounding."""
    weight = sums[:, :1, 0, 0]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        safe = np.where(weight > 0, weight, 1.0)
        mean = sums[:, 0, 1:, 0] / safe
        mean = np.where(weight > 0, mean + _left(sums, mean)[..., 0] / safe, 0.0)
        gap = _left(sums, mean)[..., 0]  # sum of w (x - mean): the mean's own rounding
        row, column = np.tril_indices(mean.shape[1])  # one triangle says it all
        a, b = mean[:, row], mean[:, column]
        product, error = two_product(a, b)
        w, low = sums[:, :1, 0, 0], sums[:, :1, 0, 1]
        terms = [*two_product(w, product), *two_product(w, error), low * product]
        terms += [*two_product(a, gap[:, column]), *two_product(b, gap[:, row])]
        own = [sums[:, 1 + row, 1 + column, part] for part in range(PARTS)]
        lower = expansion(*own, *(-term for term in terms))[..., 0]
        lower -= gap[:, row] * gap[:, column] / safe
    return weight, mean, symmetric(np.where(weight > 0, lower, 0.0), mean.shape[1])


def rest_of(sums: Floats, weight: Floats, mean: Floats, scatter: Floats) -> Floats:
    """(class, 1 + feature, 1 + feature, REST) what the sums hold beyond weight, mean and scatter."""
    return minus(sums, of_comoments(weight, mean, scatter))[..., :REST]


def drifted(mean: Floats, drift: Floats) -> Floats:
    """(1 + feature, 1 + feature, REST) what the sums hold beyond a mean from which the rows drift by so much in all."""
    out = np.zeros((len(mean) + 1, len(mean) + 1, REST))
    out[0, 1:, 0] = out[1:, 0, 0] = drift
    product, error = two_product(mean[:, None], drift[None, :])
    out[1:, 1:] = expansion(product, product.T, error, error.T)[..., :REST]
    return out


def _left(sums: Floats, mean: Floats) -> Floats:
    """(class, feature, part) the sum of w (x - mean)."""
    products = [-t for part in range(PARTS) for t in two_product(sums[:, :1, 0, part], mean)]
    return expansion(*parts_of(sums[:, 0, 1:]), *products)
