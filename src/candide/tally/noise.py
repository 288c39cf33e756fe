"""Noise: how exactly sums are known after enormous values were removed from them.

Sums hold 159 bits. A value of 1e35 that is removed takes the digits with it that were beyond these beside it; where
another, of 1e18, still hides that, the tally keeps how large the error may be, so that removing the second is refused.

>>> import numpy as np
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

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.errors import NotCountedError

LOST_SHARE = 2.0**-140  # of sums: less than this share of what was there is rounding
_MIN_NOISE_RATIO = 2.0**10  # times the rounding of the sums themselves: less than that is not worth keeping


class NoisyTally:
    """A tally that may know a bound on the error of its sums, (classes, features)."""

    @property
    def noise(self) -> Any:
        """The bound; 0.0 where nothing enormous was removed."""
        return self.__dict__.get("_noise", 0.0)

    def with_noise(self, noise: Any) -> Self:
        """Return this tally, new and of nobody else, with a bound on the error of its sums."""
        if np.any(noise):
            self.__dict__["_noise"] = np.asarray(noise)
        return self

    def noise_arrays(self) -> dict[str, NDArray]:
        """The array that a file keeps, where there is any."""
        return {"noise": self.noise} if "_noise" in self.__dict__ else {}


def significant_noise(rounding: Floats, left: Floats) -> Floats:
    """The errors of what is left of sums that are worth keeping: far larger than its own rounding."""
    return np.where(rounding > _MIN_NOISE_RATIO * LOST_SHARE * np.abs(left), rounding, 0.0)


def check_not_lost(lost: NDArray[np.bool_]) -> None:
    """Raise an error where a removal leaves nothing but rounding errors."""
    if lost.any():
        c, j = np.argwhere(lost)[0].tolist()
        raise NotCountedError(
            "the values removed are so large that what is left was lost beside them; fit again without them", (c, j)
        )
