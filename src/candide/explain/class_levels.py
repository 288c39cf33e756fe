"""Levels of a column given the class: what the model has, and what some rows show.

>>> soil = np.array([[0.5, 0.2], [0.1, 0.3], [0.4, 0.5]])  # (level, class)
>>> names, p = select_most_probable(["chalk", "clay", "sand"], soil, [0.5, 0.5], limit=2)
>>> names, p.round(2).tolist()
(['sand', '2 others'], [[0.4, 0.5], [0.6, 0.5]])
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from candide.data.blocks import Floats


def select_most_probable(
    names: Sequence[str], p: Floats, class_proportions: ArrayLike, limit: int
) -> tuple[list[str], Floats]:
    """The levels that are most probable over all classes, in their order, and the rest as one: names, (level, class).

    ``p`` is the probability of each level in each class, ``shares`` are those of the classes.
    """
    if len(names) <= limit:
        return list(names), p
    order = np.argsort(-(p @ np.asarray(class_proportions)), kind="stable")
    best, rest = np.sort(order[: limit - 1]), order[limit - 1 :]
    return [*(names[i] for i in best), "1 other" if len(rest) == 1 else f"{len(rest)} others"], np.vstack(
        [p[best], p[rest].sum(axis=0)]
    )


def observed_level_shares(codes: NDArray, y: NDArray, n_levels: int, n_classes: int) -> Floats:
    """(level, class) the share of each level among the values present, as counted; NaN in a class without any.

    >>> observed_level_shares(np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1]), n_levels=2, n_classes=3).tolist()
    [[0.5, 0.0, nan], [0.5, 1.0, nan]]
    """
    there = (codes >= 0) & (y >= 0)
    place = np.minimum(codes[there], n_levels) * n_classes + y[there]  # levels never met in training count as others
    table = np.bincount(place, minlength=(n_levels + 1) * n_classes).reshape(n_levels + 1, n_classes)
    with np.errstate(invalid="ignore"):
        return (table / table.sum(axis=0))[:n_levels]
