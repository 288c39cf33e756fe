"""Word weights: how much each term of a column of text counts, by its letters.

Terms are looked up by what they are, so that weights outlive a change of the counts: a term that was met since they
were learned counts as much as rare ones do.

>>> weights = TokenWeights.from_tokens([b"free", b"you"], [0.9, 0.1], default_weight=0.4)
>>> more = TokenWeights.from_tokens([b"call", b"you"], [0.5, 0.3], default_weight=0.2)
>>> weights.lookup(more.letters, more.starts).tolist()
[0.4, 0.1]
>>> both = weights.average(more, 0.5)
>>> both.keys(), both.weight.round(2).tolist()
([b'call', b'free', b'you'], [0.45, 0.55, 0.2])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.distributions.arrays import ArraySource, read_array
from candide.distributions.text_weighting import DEFAULT_WEIGHTING, TextWeighting
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.kernels.text_twin import join_keys, split_keys
from candide.tally import sorted_keys


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """Terms in ascending order, each with its weight."""

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]  # (terms + 1)
    weight: Floats  # (term,)
    default_weight: float  # of a term that has none of its own
    weighting: TextWeighting = DEFAULT_WEIGHTING

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes],
        weight: Sequence[float],
        default_weight: float,
        weighting: TextWeighting = DEFAULT_WEIGHTING,
    ) -> Self:
        return cls.from_unsorted(*join_keys(tokens), np.asarray(weight, np.float64), default_weight, weighting)

    @classmethod
    def from_unsorted(
        cls,
        letters: NDArray,
        starts: NDArray,
        weight: Floats,
        default_weight: float,
        weighting: TextWeighting = DEFAULT_WEIGHTING,
    ) -> Self:
        """Of terms in any order."""
        order = sorted_keys.sort_order(letters, starts)
        return cls(*sorted_keys.take_keys(letters, starts, order), weight[order], default_weight, weighting)

    def keys(self) -> list[bytes]:
        return split_keys(self.letters, self.starts)

    def lookup(self, letters: NDArray, starts: NDArray) -> Floats:
        """(term,) the weights of other terms."""
        place = kernel.Words(self.letters, self.starts).positions(letters, starts)
        each = np.where(place >= 0, self.weight[np.maximum(place, 0)] if len(self.weight) else 0.0, self.default_weight)
        return (
            each
            if not self.weighting.max_words
            else np.where(self.weighting.select_tokens(sorted_keys.count_blanks(letters, starts)), each, 0.0)
        )

    def average(self, other: Self, share: float) -> Self:
        """The means of both, the other's share being ``part``.

        Weights of words that are heard otherwise have no mean: those of the larger share stay.
        """
        if self.weighting.key != other.weighting.key:
            return self if (share, self.weighting.key) < (1 - share, other.weighting.key) else other
        place, new = kernel.unite(self.letters, self.starts, other.letters, other.starts)
        more, at = sorted_keys.take_keys(other.letters, other.starts, new)
        letters, starts = np.concatenate([self.letters, more]), np.concatenate([self.starts, self.starts[-1] + at[1:]])
        mine, theirs = np.full((2, len(starts) - 1), [[self.default_weight], [other.default_weight]])
        mine[: len(self.weight)], theirs[place] = self.weight, other.weight
        rest = (1 - share) * self.default_weight + share * other.default_weight
        how = replace(self.weighting, loss=np.nan, unweighted_loss=np.nan)  # of both together nothing was held out
        return self.from_unsorted(letters, starts, (1 - share) * mine + share * theirs, rest, how)

    def restrict(self, letters: NDArray, starts: NDArray) -> Self:
        """The weights of those of its terms that are among others: what is forgotten has no weight."""
        there = kernel.Words(letters, starts).positions(self.letters, self.starts) >= 0
        if there.all():
            return self
        letters, starts = sorted_keys.take_keys(self.letters, self.starts, np.flatnonzero(there))
        return replace(self, letters=letters, starts=starts, weight=self.weight[there])

    def arrays(self) -> dict[str, NDArray]:
        """The whole state."""
        rest, how = np.array([self.default_weight, self.weighting.power]), self.weighting.to_array()
        return {"letters": self.letters, "starts": self.starts, "weight": self.weight, "rest": rest, "how": how}

    @classmethod
    def from_arrays(cls, arrays: ArraySource) -> Self:
        """The weights that ``arrays`` came from; an InputError says which of them is wrong."""
        letters, starts = (_read_list(arrays, name, kind) for name, kind in (("letters", "u1"), ("starts", "i8")))
        n = len(starts) - 1
        if n < 0 or starts[0] != 0 or starts[-1] != len(letters) or (starts[1:] < starts[:-1]).any():
            raise InputError(f"array 'starts' does not rise from 0 to {len(letters)}")
        if not sorted_keys.is_ascending(letters, starts):
            raise InputError("its terms are not in ascending order, each once")
        rest, power = read_array(arrays, "rest", (2,)).tolist()
        if not 0 <= power <= 1:
            raise InputError(f"array 'rest' holds {power}; expected a number from 0 to 1", value=power)
        told = arrays.get("how")  # files that were written before there was a choice have none
        how = TextWeighting(power) if told is None else TextWeighting.from_array(told)
        return cls(letters, starts, read_array(arrays, "weight", (n,)), rest, how)


def _read_list(arrays: ArraySource, name: str, kind: str) -> NDArray:
    """The list of a name, of whatever length."""
    found = arrays.get(name)
    if found is None or found.ndim != 1 or found.dtype != np.dtype(kind):
        raise InputError(f"array {name!r} is missing, or not a list of {np.dtype(kind).name}")
    return found
