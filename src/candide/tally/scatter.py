"""Scatter matrices: what they must satisfy, what they gain where the mean moves, and their exact sums.

The exact sums of w z z' with z = (1, x) are expansions of three doubles: weight, totals and products in one matrix.
They add and subtract as sums of powers do (:mod:`candide.kernels.powers`): a row far from the others that is counted
and removed again leaves their covariances unchanged. Their shape is (class, 1 + feature, 1 + feature, part).

>>> from candide.kernels.powers import add_sums
>>> state = np.array([[4.0]]), np.array([[2.0, 1.0]]), np.array([[[6.0, 3.0], [3.0, 5.0]]])
>>> outlier = sums_from_comoments(np.array([[1.0]]), np.array([[1e9, -1e9]]), np.zeros((1, 2, 2)))
>>> sums = subtract_sums(add_sums(sums_from_comoments(*state), outlier), outlier)
>>> [a.tolist() for a in comoments_from_sums(sums)]
[[[4.0]], [[2.0, 1.0]], [[[6.0, 3.0], [3.0, 5.0]]]]
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.errors import InputError, NotCountedError
from candide.kernels.powers import subtract_sums
from candide.numerics import EXPANSION_PARTS, split_expansion, sum_to_expansion, two_product
from candide.tally.base import divide_or_zero

N_RESIDUALS = EXPANSION_PARTS - 1


def sums_from_comoments(weight: Floats, mean: Floats, scatter: Floats, residuals: Floats | None = None) -> Floats:
    """The sums that weight (class, 1), mean and scatter stand for, with what rounding took from these."""
    z = np.concatenate([np.ones_like(weight), mean], axis=1)
    row, column = np.tril_indices(z.shape[1])  # one triangle suffices
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
        row, column = np.tril_indices(mean.shape[1])  # one triangle suffices
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
    """(class, 1 + feature, 1 + feature, N_RESIDUALS) what the sums hold beyond weight, mean and scatter."""
    return subtract_sums(sums, sums_from_comoments(weight, mean, scatter))[..., :N_RESIDUALS]


def drift_residuals(mean: Floats, drift: Floats) -> Floats:
    """(1 + feature, 1 + feature, N_RESIDUALS) residuals of the sums if deviations from ``mean`` add up to ``drift``."""
    out = np.zeros((len(mean) + 1, len(mean) + 1, N_RESIDUALS))
    out[0, 1:, 0] = out[1:, 0, 0] = drift
    product, error = two_product(mean[:, None], drift[None, :])
    out[1:, 1:] = sum_to_expansion(product, product.T, error, error.T)[..., :N_RESIDUALS]
    return out


def _sum_deviations(sums: Floats, mean: Floats) -> Floats:
    """(class, feature, part) the sum of w (x - mean)."""
    products = [-t for part in range(EXPANSION_PARTS) for t in two_product(sums[:, :1, 0, part], mean)]
    return sum_to_expansion(*split_expansion(sums[:, 0, 1:]), *products)


def check_remaining_scatter(scatter: Floats, weight: Floats, gone: Floats, slack: Floats) -> None:
    """Whether the scatter left of a class can be that of rows: it has no negative direction, up to ``slack``."""
    p = scatter.shape[1]
    for c in np.flatnonzero(gone[:, 0] > 0).tolist():
        bound = np.maximum(np.diagonal(scatter[c]), 0.0) + slack[c]
        unit = divide_or_zero(scatter[c], np.outer(np.sqrt(bound), np.sqrt(bound)))
        np.fill_diagonal(unit, 0.0)
        beyond = np.abs(unit) > 1 + 1e-9
        if not beyond.any() and weight[c, 0] > 0:
            np.fill_diagonal(unit, 1.0 + p * divide_or_zero(slack[c], bound) + 1e-9)
            try:
                np.linalg.cholesky(unit)
            except np.linalg.LinAlgError:
                beyond[0] = True
        if beyond.any():
            j = int(beyond.any(axis=1).argmax())
            raise NotCountedError("the values removed were never counted together", (c, j))


def check_fourth_moments(whole: Floats, left: Any, gone: Floats) -> None:
    """Refuse to remove rows beside which the fourth moments of the rest were lost: these are kept in doubles."""
    pooled = left.to_moments().pool()
    usual = left.weight * divide_or_zero(pooled.m2, pooled.n) ** 2  # no rows of this spread have less
    few = (gone > 0) & (30 * gone < left.weight)  # of few rows that are left nothing much was known
    lost = (1e-13 * np.einsum("cjj->cj", whole) > 1e-3 * usual) & (usual > 0) & few
    if lost.any():
        c, j = np.argwhere(lost)[0].tolist()
        what = "the values removed are so large that the fourth moments of what is left were lost beside them, which"
        raise NotCountedError(f"{what} shrinkage='ledoit-wolf' needs; fit again without them", (c, j))


def bound_covariances(scatter: Floats, m2: Floats) -> Floats:
    """A scatter with these spreads; no covariance is larger than they allow: Cauchy and Schwarz."""
    sd = np.sqrt(m2)
    bound = outer_product(sd, sd) * (1 + 1e-15)
    out = np.clip(scatter, -bound, bound)
    np.einsum("cjj->cj", out)[:] = m2
    return out


def embed_matrix(product: Floats, varying: Codes, p: int) -> Floats:
    """(1, features, features) a matrix of some columns among all of them."""
    if len(varying) == p:
        return product[None]
    out = np.zeros((1, p, p))
    out[0, varying[:, None], varying] = product
    return out


def outer_product(a: Floats, b: Floats, times: Floats | None = None) -> Floats:
    """(classes, features, features) the outer product of two vectors a class, ``times`` (classes, 1) a number.

    Symmetric to the last bit where both are the same.
    """
    out = a[:, :, None] * b[:, None, :]
    return out if times is None else np.multiply(out, times[:, :, None], out=out)


def symmetric_from_lower(lower: NDArray, p: int) -> Floats:
    """A matrix a class from its lower triangle."""
    if lower.shape[1] != p * (p + 1) // 2:
        raise InputError(f"a triangle of {p} columns has {p * (p + 1) // 2} values, not {lower.shape[1]}")
    out = np.empty((len(lower), p, p))
    i, j = np.tril_indices(p)
    out[:, i, j] = lower
    out[:, j, i] = lower
    return out


def third_moment_gain(part: Any, d: Floats) -> Floats:
    """What the third moments gain where residuals, whose sum is zero, grow by ``d``."""
    return outer_product(part.m2, d) + 2.0 * d[:, :, None] * part.scatter + outer_product(d * d, d, part.weight)


def fourth_moment_gain(part: Any, d: Floats) -> Floats:
    """What the fourth moments gain where residuals grow by ``d``."""
    assert part.third is not None
    mixed = 2.0 * part.third * d[:, None, :] + outer_product(part.m2, d * d)
    mixed = mixed + np.swapaxes(mixed, 1, 2)
    return mixed + 4.0 * outer_product(d, d) * part.scatter + outer_product(d * d, d * d, part.weight)
