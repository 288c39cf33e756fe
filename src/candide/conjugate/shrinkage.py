"""Shrinkage of a covariance towards its mean variance times the identity, (1 - s) S + s m I.

The share s is a number, or estimated: Ledoit and Wolf (2004) minimise the expected loss, from the fourth moments; Chen,
Wiesel, Eldar and Hero (2010, "oas") do so for normal data, from S alone. A number and "oas" apply in the units of the
columns, which should be the same; "ledoit-wolf" applies to standardised columns. All three are as in scikit-learn's
discriminant analysis.

>>> one = CoMoments(np.array([[4.0]]), np.zeros((1, 2)), np.array([[[8.0, 4.0], [4.0, 4.0]]]))
>>> shrink_scatter(one, 0.5)[0].tolist()  # of the scatter: the mean of 8 and 4 is 6
[[7.0, 2.0], [2.0, 5.0]]
"""

from numbers import Real
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.errors import InputError, unknown_name_error
from candide.tally import CoMoments
from candide.tally.base import divide_or_zero

SHRINKAGE_METHODS = ("ledoit-wolf", "oas")


def check_shrinkage(shrinkage: Any) -> None:
    """Refuse what is neither a share nor a method."""
    if isinstance(shrinkage, str):
        if shrinkage not in SHRINKAGE_METHODS:
            raise unknown_name_error("shrinkage", shrinkage, SHRINKAGE_METHODS)
        return
    is_number = isinstance(shrinkage, Real) and not isinstance(shrinkage, bool)
    if shrinkage is not None and not (is_number and 0 <= shrinkage <= 1):
        remedy = "pass a number in 0..1, 'ledoit-wolf', 'oas' or None"
        raise InputError(f"shrinkage: {shrinkage!r}", value=shrinkage, remedy=remedy)


def shrink_scatter(tally: CoMoments, shrinkage: float | str | None) -> Floats:
    """(class, feature, feature) the scatter of each class, shrunk."""
    if shrinkage is None or tally.mean.shape[1] == 0:
        return tally.scatter
    scatter, unit = tally.scatter, None
    if shrinkage == "ledoit-wolf":
        deviation = np.sqrt(divide_or_zero(tally.m2, tally.n))
        deviation[deviation == 0] = 1.0
        unit = deviation[:, :, None] * deviation[:, None, :]
        scatter = scatter / unit
        share = _ledoit_wolf(tally, scatter, unit)
    elif shrinkage == "oas":
        share = _oas(tally, scatter)
    else:
        share = np.full(len(scatter), shrinkage, np.float64)
    mixed = scatter * (1.0 - share)[:, None, None]
    np.einsum("cjj->cj", mixed)[:] += (share * _mean_variance(scatter))[:, None]
    return mixed if unit is None else mixed * unit


def _mean_variance(scatter: Floats) -> Floats:
    return np.einsum("cjj->c", scatter) / scatter.shape[1]


def _sizes(tally: CoMoments, scatter: Floats) -> tuple[Floats, Floats, Floats, int]:
    """(class,) weight, squared norm of the covariance, square of its mean variance; and the number of columns."""
    n = tally.weight[:, 0]
    size = divide_or_zero(np.einsum("cjk,cjk->c", scatter, scatter), n * n)
    return n, size, divide_or_zero(_mean_variance(scatter) ** 2, n * n), scatter.shape[1]


def _ledoit_wolf(tally: CoMoments, scatter: Floats, unit: Floats) -> Floats:
    """(class,) the share of least expected loss, for standardised columns."""
    if tally.fourth is None:
        raise InputError(
            "shrinkage='ledoit-wolf' needs fourth moments, which this tally does not keep",
            value="ledoit-wolf",
            remedy="count the rows with that shrinkage, or use 'oas' or a number",
        )
    n, size, square, p = _sizes(tally, scatter)
    rows = (tally.fourth / (unit * unit)).sum(axis=(1, 2))  # sum over rows of |x|^4
    noise = divide_or_zero(divide_or_zero(rows, n) - size, n)  # variance of the covariance
    away = size - p * square  # its squared distance from the target
    return np.where((p > 1) & (noise > 0), divide_or_zero(np.minimum(noise, away), away), 0.0)


def _oas(tally: CoMoments, scatter: Floats) -> Floats:
    """(class,) the oracle-approximating share, for normal data."""
    n, size, square, p = _sizes(tally, scatter)
    if p == 1:
        return np.zeros(len(n))
    away = (n + 1.0) * (size - p * square)  # p^2 times the means of the paper
    return np.where(away > 0, np.minimum(divide_or_zero(size + p * p * square, away), 1.0), 1.0)
