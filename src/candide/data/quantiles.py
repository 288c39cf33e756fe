"""Quantiles of weighted numbers, the same for a column and its negation: reversed, and nothing else.

>>> values, n = distinct_numbers(np.array([3.0, 1.0, 1.0, np.nan]))
>>> values.tolist(), n.tolist()
([1.0, 3.0], [2.0, 1.0])
>>> nearest_indices(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.25, 0.5, 0.7]), prefer_low=True).tolist()
[0, 1, 2]
>>> nearest_indices(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.3, 0.5, 0.75]), prefer_low=False).tolist()
[1, 2, 3]
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.data.labels import as_column
from candide.data.table import to_numbers

_MIN_WEIGHT = 1e-100  # weights below have few digits left
_TOLERANCE = 1e-12  # shares that differ by less are equal


def distinct_numbers(column: Any, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """The finite numbers of a column, ascending, and the weight of each."""
    x = np.asarray(to_numbers(as_column(column)), np.float64)
    there = np.isfinite(x)
    if weight is not None and not _MIN_WEIGHT < weight.max(initial=0.0) < 1 / _MIN_WEIGHT:
        weight = weight / weight.max()  # only shares count, and these have no digits next to nothing
    values, place = np.unique(x[there] + 0.0, return_inverse=True)
    n = np.bincount(place, None if weight is None else weight[there], len(values)).astype(np.float64)
    return values[n > 0], n[n > 0]


def is_right_skewed(values: Floats, n: Floats) -> bool:
    """Whether a column has its longer tail above: of a column and its negation one does."""
    if not len(values):
        return True
    away = values / max(float(np.abs(values).max()), 1e-300)
    away = away - float(n @ away) / float(n.sum())
    return bool(n @ away**3 >= 0)


def nearest_indices(proportions: NDArray, targets: NDArray, *, prefer_low: bool) -> Codes:
    """Which of the ascending shares is nearest each target; of two that are as near, the one nearer to a half.

    ``low`` says which of two is taken that are as near to a half.
    """
    above = np.clip(np.searchsorted(proportions, targets), 1, max(1, len(proportions) - 1))
    below = above - 1
    up, down = proportions[above] - targets, targets - proportions[below]
    tie = np.abs(up - down) <= _TOLERANCE
    middle = np.abs(targets - 0.5) <= _TOLERANCE
    return np.where(np.where(tie, np.where(middle, not prefer_low, targets < 0.5), up < down), above, below)
