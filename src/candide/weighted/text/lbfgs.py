"""Descent: where a smooth function of very many numbers is least, by L-BFGS (Nocedal, 1980).

The last steps, and how the slope changed in them, only say where to go: they are kept in single precision. Values and
slopes are those of the function. A step is taken where it fulfils the conditions of Wolfe.

>>> def bowl(x):
...     return float(((x - 3.0) ** 4).sum()), 4.0 * (x - 3.0) ** 3
>>> minimize(bowl, np.zeros(2), max_steps=100, tolerance=1e-12).round(1).tolist()
[3.0, 3.0]
"""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats

_HISTORY_LENGTH = 10  # steps that tell of the curvature
_SUFFICIENT_DECREASE = 1e-4  # of what the slope promises, that a step must gain at least
_CURVATURE_CONDITION = 0.9  # of the slope, that may be left at its end
_MAX_LINE_SEARCH_STEPS = 20  # of the length of a step

Objective = Callable[[Floats], tuple[float, Floats]]
_Step = tuple[NDArray[np.float32], NDArray[np.float32], float]  # how far, how the slope changed, their product


def minimize(objective: Objective, start: Floats, *, max_steps: int, tolerance: float) -> Floats:
    """Where ``value``, which is a number and its slope, is least: until a step gains less than the share ``close``."""
    x, (here, slope), kept = start, objective(start), deque[_Step](maxlen=_HISTORY_LENGTH)
    for _ in range(max_steps):
        way = _search_direction(slope, kept)
        if not way @ slope < 0:
            break
        found = _line_search(objective, x, here, slope, way)
        if found is None:
            break
        before, (there, here, after) = here, found
        move, turn = (there - x).astype(np.float32), (after - slope).astype(np.float32)
        x, slope = there, after
        if before - here <= tolerance * max(abs(before), abs(here), 1.0):
            break
        if (product := float(move @ turn)) > 0:
            kept.append((move, turn, product))
    return x


def _search_direction(slope: Floats, kept: deque[_Step]) -> Floats:
    """The direction in which to go: down the slope, as far as the last steps tell of the curvature."""
    way, shares = -slope.astype(np.float32), []
    for move, turn, product in reversed(kept):
        shares.append(float(move @ way) / product)
        way -= np.float32(shares[-1]) * turn
    if kept:
        _, turn, product = kept[-1]
        way *= np.float32(product / float(turn @ turn))
    for (move, turn, product), share in zip(kept, reversed(shares), strict=True):
        way += np.float32(share - float(turn @ way) / product) * move
    return way.astype(np.float64)


def _line_search(
    value: Objective, x: Floats, here: float, slope: Floats, way: Floats
) -> tuple[Floats, float, Floats] | None:
    """A point on the way that is lower and less steep, with its value and slope; None where there seems to be none."""
    low, high, size, fall = 0.0, np.inf, 1.0, float(slope @ way)
    for _ in range(_MAX_LINE_SEARCH_STEPS):
        there = x + size * way
        value_there, after = value(there)
        if not value_there <= here + _SUFFICIENT_DECREASE * size * fall:
            high = size
            bend = (value_there - here - size * fall) / size**2  # of the parabola through both points
            best = -fall / (2 * bend) if np.isfinite(bend) and bend > 0 else 0.0
            size = min(max(best, low + 0.1 * (high - low)), low + 0.5 * (high - low))
        elif float(after @ way) < _CURVATURE_CONDITION * fall:
            low = size
            size = 4 * size if high == np.inf else (low + high) / 2
        else:
            return there, value_there, after
    return None
