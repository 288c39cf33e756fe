"""Scatter matrices: what they must be, and what they gain where the mean moves.

>>> bound_covariances(np.array([[[4.0, 9.0], [9.0, 1.0]]]), np.array([[4.0, 1.0]])).round(9).tolist()  # no correlation is above 1
[[[4.0, 2.0], [2.0, 1.0]]]
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.errors import InputError, NotCountedError
from candide.tally.base import divide_or_zero


def check_remaining_scatter(scatter: Floats, weight: Floats, gone: Floats, slack: Floats) -> None:
    """Whether the scatter left of a class can be that of rows: it has no negative direction, up to ``slack``."""
    p = scatter.shape[1]
    for c in np.flatnonzero(gone[:, 0] > 0).tolist():
        room = np.maximum(np.diagonal(scatter[c]), 0.0) + slack[c]
        unit = divide_or_zero(scatter[c], np.outer(np.sqrt(room), np.sqrt(room)))
        np.fill_diagonal(unit, 0.0)
        beyond = np.abs(unit) > 1 + 1e-9
        if not beyond.any() and weight[c, 0] > 0:
            np.fill_diagonal(unit, 1.0 + p * divide_or_zero(slack[c], room) + 1e-9)
            try:
                np.linalg.cholesky(unit)
            except np.linalg.LinAlgError:
                beyond[0] = True
        if beyond.any():
            raise NotCountedError(
                "the values removed were never counted together", (c, int(beyond.any(axis=1).argmax()))
            )


def check_fourth_moments(whole: Floats, left: Any, gone: Floats) -> None:
    """Refuse to remove rows beside which the fourth moments of the rest were lost: these are kept in doubles."""
    pooled = left.to_moments().pool()
    usual = left.weight * divide_or_zero(pooled.m2, pooled.n) ** 2  # no rows of this spread have less
    few = (gone > 0) & (30 * gone < left.weight)  # of few rows that are left nothing much was known
    lost = (1e-13 * np.einsum("cjj->cj", whole) > 1e-3 * usual) & (usual > 0) & few
    if lost.any():
        c, j = np.argwhere(lost)[0].tolist()
        raise NotCountedError(
            "the values removed are so large that the fourth moments of what is left were lost beside them, which "
            "shrinkage='ledoit-wolf' needs; fit again without them",
            (c, j),
        )


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
    return (
        mixed
        + np.swapaxes(mixed, 1, 2)
        + 4.0 * outer_product(d, d) * part.scatter
        + outer_product(d * d, d * d, part.weight)
    )
