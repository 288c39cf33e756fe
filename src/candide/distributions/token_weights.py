"""Token weights: how much each token of a text column counts, and how the tokens of a document are combined.

Weights are looked up by token, so that they outlive a change of the counts: a token that was first seen since they were
learned counts as much as rare ones do.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.distributions.arrays import ArraySource, check_rising, read_array, read_list, read_number
from candide.encoding.tokens import COUNT_MODES
from candide.errors import InputError
from candide.kernels import text as kernel
from candide.kernels.text import join_keys, split_keys
from candide.tally import sorted_keys

_COUNT_MODE_TEXT = {-1: "", **{value: f"{name} counts" for name, value in COUNT_MODES.items()}}
_POWER_TEXT = {0.0: "whatever the length", 0.5: "length to the power 1/2", 1.0: "by the length"}


@dataclass(frozen=True)
class TextWeighting:
    """How the tokens of a document are combined; chosen after counting, for one text column.

    >>> print(TextWeighting())
    words and pairs of words, length to the power 1/2, weights held by 10
    >>> print(replace(TextWeighting(max_words=1, power=0.0, strength=np.inf), loss=0.044, unweighted_loss=0.116))
    words, whatever the length, a weight for each kind of word: held-out log-loss 0.044 (words that count once: 0.116)
    """

    # A sum of n words that share a few topics grows as a random walk does, by its square root.
    power: float = 0.5
    max_words: int = 0  # words in a token, at most; 0: any number
    count_mode: int = -1  # how repeated tokens count; -1: as in the tally
    # Weights deviate from their group mean by about .3, which is about as large as the means are. With thousands of
    # documents, strengths between 3 and 100 change the log-loss by a few percent.
    strength: float = 10.0  # precision of weights around the mean of their group; inf: one weight a group
    has_weights: bool = True  # else every token counts once
    loss: float = np.nan  # mean log-loss of held-out documents when this was chosen; NaN: not chosen
    unweighted_loss: float = np.nan  # the same with every weight 1

    _N_FIELDS: ClassVar[int] = 7

    @property
    def key(self) -> tuple[float, ...]:
        """What scores depend on: weights of the same key can be averaged."""
        return self.power, self.max_words, self.count_mode, self.has_weights

    def select_tokens(self, blank_counts: NDArray) -> NDArray[np.bool_]:
        """(token,) which tokens are used, by the blanks in them."""
        return blank_counts < self.max_words if self.max_words else np.ones(len(blank_counts), bool)

    def __str__(self) -> str:
        return self.describe("words and pairs of words")

    def describe(self, token_description: str) -> str:
        """A phrase for a person; ``token_description`` is what tokens there are."""
        parts = [{0: token_description, 1: "words"}.get(self.max_words, f"up to {self.max_words} words")]
        parts += filter(None, [_COUNT_MODE_TEXT[self.count_mode]])
        if self.has_weights:
            parts.append(_POWER_TEXT.get(self.power, f"length to the power {self.power:g}"))
            one_per_kind = "a weight for each kind of word"
            parts.append(f"weights held by {self.strength:g}" if np.isfinite(self.strength) else one_per_kind)
        else:
            parts.append("each counts once")
        text = ", ".join(parts)
        if np.isnan(self.loss):
            return text
        return f"{text}: held-out log-loss {self.loss:.3g} (words that count once: {self.unweighted_loss:.3g})"

    def to_array(self) -> Floats:
        return np.array(astuple(self), np.float64)

    @classmethod
    def from_array(cls, array: NDArray) -> "TextWeighting":
        """The weighting that an array of a file holds, checked."""
        if array.shape != (cls._N_FIELDS,) or array.dtype != np.float64:
            raise InputError(f"array 'weighting': expected {cls._N_FIELDS} numbers")
        power, max_words, count_mode, strength, has_weights, loss, unweighted = array.tolist()
        is_valid = 0 <= power <= 1 and max_words in range(1001) and count_mode in _COUNT_MODE_TEXT
        if not (is_valid and strength > 0 and has_weights in (0, 1)):
            raise InputError(f"array 'weighting': {array.tolist()} is not a valid text weighting", value=array.tolist())
        return cls(power, int(max_words), int(count_mode), strength, bool(has_weights), loss, unweighted)


DEFAULT_WEIGHTING = TextWeighting()


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """Tokens in ascending order, each with its weight."""

    letters: NDArray[np.uint8]
    starts: NDArray[np.int64]  # (tokens + 1)
    weight: Floats  # (token,)
    default_weight: float  # of any other token
    weighting: TextWeighting = DEFAULT_WEIGHTING

    @classmethod
    def from_tokens(cls, tokens: Sequence[bytes], weight: Sequence[float], *rest: Any, **settings: Any) -> Self:
        """Tokens in any order; the other arguments are the fields."""
        return cls.from_unsorted(*join_keys(tokens), np.asarray(weight, np.float64), *rest, **settings)

    @classmethod
    def from_unsorted(cls, letters: NDArray, starts: NDArray, weight: Floats, *rest: Any, **settings: Any) -> Self:
        order = sorted_keys.sort_order(letters, starts)
        return cls(*sorted_keys.take_keys(letters, starts, order), weight[order], *rest, **settings)

    def keys(self) -> list[bytes]:
        return split_keys(self.letters, self.starts)

    def lookup(self, letters: NDArray, starts: NDArray) -> Floats:
        """(token,) the weights of any tokens."""
        place = kernel.Words(self.letters, self.starts).positions(letters, starts)
        weight = np.full(len(place), self.default_weight)
        weight[place >= 0] = self.weight[place[place >= 0]]
        if self.weighting.max_words:
            weight[~self.weighting.select_tokens(sorted_keys.count_blanks(letters, starts))] = 0.0
        return weight

    def average(self, other: Self, share: float) -> Self:
        """The means of both, where ``share`` is that of the other.

        Weights under different text weightings have no mean: those with the larger share stay.
        """
        if self.weighting.key != other.weighting.key:
            return self if (share, self.weighting.key) < (1 - share, other.weighting.key) else other
        place, new = kernel.unite(self.letters, self.starts, other.letters, other.starts)
        added, at = sorted_keys.take_keys(other.letters, other.starts, new)
        letters, starts = np.concatenate([self.letters, added]), np.concatenate([self.starts, self.starts[-1] + at[1:]])
        a, b = np.full((2, len(starts) - 1), [[self.default_weight], [other.default_weight]])
        a[: len(self.weight)], b[place] = self.weight, other.weight
        default = (1 - share) * self.default_weight + share * other.default_weight
        weighting = replace(self.weighting, loss=np.nan, unweighted_loss=np.nan)  # not measured of both together
        return self.from_unsorted(letters, starts, (1 - share) * a + share * b, default, weighting)

    def restrict(self, letters: NDArray, starts: NDArray) -> Self:
        """The weights of those of its tokens that are among others."""
        is_kept = kernel.Words(letters, starts).positions(self.letters, self.starts) >= 0
        if is_kept.all():
            return self
        letters, starts = sorted_keys.take_keys(self.letters, self.starts, np.flatnonzero(is_kept))
        return replace(self, letters=letters, starts=starts, weight=self.weight[is_kept])

    def arrays(self) -> dict[str, NDArray]:
        numbers = {"weight": self.weight, "default_weight": np.array([self.default_weight], np.float64)}
        return {"letters": self.letters, "starts": self.starts, **numbers, "weighting": self.weighting.to_array()}

    @classmethod
    def from_arrays(cls, arrays: ArraySource) -> Self:
        """The weights whose ``arrays`` these are, checked."""
        letters, starts = read_list(arrays, "letters", "u1"), read_list(arrays, "starts", "i8")
        check_rising(starts, "starts", len(letters))
        if not sorted_keys.is_ascending(letters, starts):
            raise InputError("tokens are not in ascending order, each once")
        weighting = TextWeighting.from_array(read_list(arrays, "weighting", "f8"))
        weight = read_array(arrays, "weight", (len(starts) - 1,))
        return cls(letters, starts, weight, read_number(arrays, "default_weight"), weighting)
