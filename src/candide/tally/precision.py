"""Precision: sums that keep more digits than doubles where single digits would be lost.

A sum of squares in doubles has sixteen digits. Where a column spreads a thousand times wider than its values lie
apart (one of 1e9 among values near 1, or two clusters of them) that is too coarse once the far ones are removed, and
the column is summed exactly, as an expansion of three doubles (159 bits).

>>> x = np.random.default_rng(0).normal(size=(5000, 2))
>>> x[17, 1] = 1e9
>>> estimate_scale(x, len(x)).round(1).tolist(), (x.std(axis=0) > IMPRECISE_RATIO * estimate_scale(x, len(x))).tolist()
([0.2, 0.2], [False, True])

A value of 1e35 that is removed takes the digits beyond these with it. Where another, of 1e18, still hides that, the
tally keeps a bound on the error, its noise, so that removing the second is refused.

>>> from candide.tally.moments import Moments
>>> def count(*values):
...     return Moments.from_rows(np.array([values]).T, np.zeros(len(values), int), n_classes=1)
>>> left = count(1.0, 2.0, 1e35, 1e18) - count(1e35)
>>> left - count(1e18)
Traceback (most recent call last):
    ...
candide.errors.NotCountedError: the values removed are so large that what is left was lost beside them; fit again \
without them (class 0, position 0)
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.errors import NotCountedError
from candide.tally.base import Tally, broadcast_by_class

IMPRECISE_RATIO = 1024.0
LOST_SHARE = 2.0**-140  # of sums: less than this share of what was there is rounding
_MIN_NOISE_RATIO = 2.0**10  # times the rounding of the sums themselves: less than that is not worth keeping
_SAMPLE_ROWS = (64, 1024)  # rows examined; more where a column is the same in all of these
_NEIGHBOUR_DISTANCE = 8  # values, in order, between which a distance is taken


class ExactSums(Tally):
    """A tally whose ``sums``, a cached property, may hold more than its arrays, with a bound on their error.

    The expansions, the residuals that a file keeps of them and the noise are in ``__dict__``, not fields of the state.
    """

    sums: Any

    @property
    def noise(self) -> Any:
        """(classes, features) the bound on the error of the sums; 0.0 where nothing enormous was removed."""
        return self.__dict__.get("_noise", 0.0)

    def with_noise(self, noise: Any) -> Self:
        """This tally, which must be new, with a bound on the error of its sums."""
        if np.any(noise):
            self.__dict__["_noise"] = np.asarray(noise)
        return self

    def _with_scaled_noise(self, noise: Any, factor: "float | Floats") -> Self:
        return self.with_noise(noise * broadcast_by_class(factor, np.ndim(noise)))

    def _with_residuals(self, arrays: dict[str, NDArray], **shapes: tuple[int, ...]) -> Self:
        """This tally, which must be new, with the residuals and the noise of a file."""
        self.__dict__.update({f"_{name}": arrays[name].reshape(s) for name, s in shapes.items() if name in arrays})
        return self.with_noise(arrays.get("noise", 0.0))

    def _residual_arrays(self, **residuals: NDArray) -> dict[str, NDArray]:
        """What a file keeps: residuals other than zero as (classes, numbers), and the noise."""
        found = {name: a.reshape(len(a), -1) for name, a in residuals.items() if a.any()}
        return found | ({"noise": self.noise} if "_noise" in self.__dict__ else {})

    @property
    def _has_residuals(self) -> bool:
        """Whether the sums hold more than the state."""
        return not self.__dict__.keys().isdisjoint(("sums", "_rest", "_last", "_noise"))

    def _map_arrays(self, change: Callable[[NDArray], NDArray]) -> Self:
        out = super()._map_arrays(change)
        if self._has_residuals:
            out.__dict__["sums"] = change(self.sums)
        return out.with_noise(change(self.noise) if "_noise" in self.__dict__ else 0.0)


def significant_noise(rounding: Floats, left: Floats) -> Floats:
    """The errors of what is left of sums that are worth keeping: far larger than its own rounding."""
    return np.where(rounding > _MIN_NOISE_RATIO * LOST_SHARE * np.abs(left), rounding, 0.0)


def check_not_lost(lost: NDArray[np.bool_]) -> None:
    """Raise an error where a removal leaves nothing but rounding errors."""
    if lost.any():
        c, j = np.argwhere(lost)[0].tolist()
        what = "the values removed are so large that what is left was lost beside them; fit again without them"
        raise NotCountedError(what, (c, j))


def estimate_scale(block: Any, n_rows: int) -> Floats:
    """(features,) the smallest distance above 0 of values some places apart; 0 where those examined are the same.

    ``block[rows]`` gives rows of numbers.
    """
    scale = np.zeros(0)
    for n in _SAMPLE_ROWS:
        rows = np.unique(np.linspace(0, n_rows - 1, min(n, n_rows)).astype(np.intp))
        x = np.asarray(block[rows], np.float64)
        same = np.arange(x.shape[1]) if not len(scale) else np.flatnonzero(scale == 0)
        if not len(same):
            break
        scale = np.zeros(x.shape[1]) if not len(scale) else scale
        scale[same] = _smallest_distance(x[:, same])
    return scale


def is_mean_imprecise(mean: Floats, scale: Floats) -> NDArray[np.bool_]:
    """Where a mean lies so far from zero that its rounding shows beside the scale of the values."""
    return (np.abs(mean) > IMPRECISE_RATIO**2 * scale) & (scale > 0)


def _smallest_distance(x: Floats) -> Floats:
    step = min(_NEIGHBOUR_DISTANCE, max(1, len(x) // _NEIGHBOUR_DISTANCE))
    ordered = np.sort(x, axis=0)
    with np.errstate(invalid="ignore"):
        gaps = ordered[step:] - ordered[:-step]
    least = np.where((gaps > 0) & np.isfinite(gaps), gaps, np.inf).min(axis=0, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)
