"""Spread: how fine the values of a column are, from a few rows, to tell where plain sums would lose them.

A sum of squares in doubles knows its sixteenth digit. Where a column spreads a thousand times wider than its values lie
apart (one of 1e9 among values near 1, or two heaps of them) that is too coarse once the far ones are removed, and the
column is summed exactly.

>>> x = np.random.default_rng(0).normal(size=(5000, 2))
>>> x[17, 1] = 1e9
>>> estimate_scale(x, len(x)).round(1).tolist(), (x.std(axis=0) > IMPRECISE_RATIO * estimate_scale(x, len(x))).tolist()
([0.2, 0.2], [False, True])
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

IMPRECISE_RATIO = 1024.0
_SAMPLE_ROWS = (64, 1024)  # rows looked at; more where a column is the same in all of these
_NEIGHBOUR_DISTANCE = 8  # values, in order, between which a distance is taken


def estimate_scale(block: Any, n_rows: int) -> NDArray[np.float64]:
    """(features,) the smallest distance above 0 of values some places apart; 0 where those looked at are the same.

    ``block[rows]`` gives rows of numbers.
    """
    scale = np.zeros(0)
    for look in _SAMPLE_ROWS:
        rows = np.unique(np.linspace(0, n_rows - 1, min(look, n_rows)).astype(np.intp))
        x = np.asarray(block[rows], np.float64)
        same = np.arange(x.shape[1]) if not len(scale) else np.flatnonzero(scale == 0)
        if not len(same):
            break
        scale = np.zeros(x.shape[1]) if not len(scale) else scale
        scale[same] = _smallest_distance(x[:, same])
    return scale


def is_mean_imprecise(mean: NDArray[np.float64], scale: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where a mean lies so far from zero that its rounding shows beside the scale of the values."""
    return (np.abs(mean) > IMPRECISE_RATIO**2 * scale) & (scale > 0)


def _smallest_distance(x: NDArray[np.float64]) -> NDArray[np.float64]:
    apart = min(_NEIGHBOUR_DISTANCE, max(1, len(x) // _NEIGHBOUR_DISTANCE))
    ordered = np.sort(x, axis=0)
    with np.errstate(invalid="ignore"):
        gaps = ordered[apart:] - ordered[:-apart]
    least = np.where((gaps > 0) & np.isfinite(gaps), gaps, np.inf).min(axis=0, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)
