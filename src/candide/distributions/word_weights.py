"""Word weights: how much each term of a column of text counts, by its letters.

Terms are looked up by what they are, so that weights outlive a change of the counts: a term that was met since they
were learned counts as much as rare ones do.

>>> weights = WordWeights.of([b"free", b"you"], [0.9, 0.1], rest=0.4)
>>> more = WordWeights.of([b"call", b"you"], [0.5, 0.3], rest=0.2)
>>> weights.among(more.letters, more.starts).tolist()
[0.4, 0.1]
>>> both = weights.mixed(more, 0.5)
>>> both.keys(), both.weight.round(2).tolist()
([b'call', b'free', b'you'], [0.45, 0.55, 0.2])
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from candide.distributions.arrays import Found, take
from candide.distributions.hearing import USUAL, Hearing
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.kernels.text_twin import joined, keys_of
from candide.rows.blocks import Floats
from candide.tally import keys


@dataclass(frozen=True, eq=False)
class WordWeights:
    """Terms in ascending order, each with its weight."""

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]  # (terms + 1)
    weight: Floats  # (term,)
    rest: float  # of a term that has none of its own
    how: Hearing = USUAL

    @classmethod
    def of(cls, terms: Sequence[bytes], weight: Sequence[float], rest: float, how: Hearing = USUAL) -> Self:
        return cls.sorted(*joined(terms), np.asarray(weight, np.float64), rest, how)

    @classmethod
    def sorted(cls, letters: NDArray, starts: NDArray, weight: Floats, rest: float, how: Hearing = USUAL) -> Self:
        """Of terms in any order."""
        order = keys.order(letters, starts)
        return cls(*keys.taken(letters, starts, order), weight[order], rest, how)

    def keys(self) -> list[bytes]:
        return keys_of(self.letters, self.starts)

    def among(self, letters: NDArray, starts: NDArray) -> Floats:
        """(term,) the weights of other terms."""
        place = kernel.Words(self.letters, self.starts).positions(letters, starts)
        each = np.where(place >= 0, self.weight[np.maximum(place, 0)] if len(self.weight) else 0.0, self.rest)
        return each if not self.how.longest else np.where(self.how.among(keys.blanks(letters, starts)), each, 0.0)

    def mixed(self, other: Self, part: float) -> Self:
        """The means of both, the other's share being ``part``.

        Weights of words that are heard otherwise have no mean: those of the larger share stay.
        """
        if self.how.key != other.how.key:
            return self if (part, self.how.key) < (1 - part, other.how.key) else other
        place, new = kernel.unite(self.letters, self.starts, other.letters, other.starts)
        more, at = keys.taken(other.letters, other.starts, new)
        letters, starts = np.concatenate([self.letters, more]), np.concatenate([self.starts, self.starts[-1] + at[1:]])
        mine, theirs = np.full((2, len(starts) - 1), [[self.rest], [other.rest]])
        mine[: len(self.weight)], theirs[place] = self.weight, other.weight
        rest = (1 - part) * self.rest + part * other.rest
        how = replace(self.how, loss=np.nan, naive=np.nan)  # of both together nothing was held out
        return self.sorted(letters, starts, (1 - part) * mine + part * theirs, rest, how)

    def only(self, letters: NDArray, starts: NDArray) -> Self:
        """The weights of those of its terms that are among others: what is forgotten has no weight."""
        there = kernel.Words(letters, starts).positions(self.letters, self.starts) >= 0
        if there.all():
            return self
        letters, starts = keys.taken(self.letters, self.starts, np.flatnonzero(there))
        return replace(self, letters=letters, starts=starts, weight=self.weight[there])

    def arrays(self) -> dict[str, NDArray]:
        """The whole state."""
        rest, how = np.array([self.rest, self.how.power]), self.how.array()
        return {"letters": self.letters, "starts": self.starts, "weight": self.weight, "rest": rest, "how": how}

    @classmethod
    def from_arrays(cls, arrays: Found) -> Self:
        """The weights that ``arrays`` came from; an InputError says which of them is wrong."""
        letters, starts = (_list(arrays, name, kind) for name, kind in (("letters", "u1"), ("starts", "i8")))
        n = len(starts) - 1
        if n < 0 or starts[0] != 0 or starts[-1] != len(letters) or (starts[1:] < starts[:-1]).any():
            raise InputError(f"array 'starts' does not rise from 0 to {len(letters)}")
        if not keys.ascending(letters, starts):
            raise InputError("its terms are not in ascending order, each once")
        rest, power = take(arrays, "rest", (2,)).tolist()
        if not 0 <= power <= 1:
            raise InputError(f"array 'rest' holds {power}; expected a number from 0 to 1", value=power)
        told = arrays.get("how")  # files that were written before there was a choice have none
        how = Hearing(power) if told is None else Hearing.of(told)
        return cls(letters, starts, take(arrays, "weight", (n,)), rest, how)


def _list(arrays: Found, name: str, kind: str) -> NDArray:
    """The list of a name, of whatever length."""
    found = arrays.get(name)
    if found is None or found.ndim != 1 or found.dtype != np.dtype(kind):
        raise InputError(f"array {name!r} is missing, or not a list of {np.dtype(kind).name}")
    return found
