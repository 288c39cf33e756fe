"""Hearing: how the words of documents are heard, which comes after the counting and may be chosen.

>>> print(TextWeighting())
words and pairs of words, length to the power 1/2, weights held by 10
>>> print(replace(TextWeighting(max_words=1, power=0.0, strength=np.inf), loss=0.044, unweighted_loss=0.116))
words, whatever the length, a weight for each kind of word: held-out log-loss 0.044 (words that count once: 0.116)
"""

from dataclasses import astuple, dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.encoding.tokens import COUNT_MODES
from candide.errors import InputError

__all__ = ["DEFAULT_WEIGHTING", "TextWeighting", "replace"]

_COUNT_MODE_TEXT = {-1: "", **{value: f"{name} counts" for name, value in COUNT_MODES.items()}}
_POWER_TEXT = {0.0: "whatever the length", 0.5: "length to the power 1/2", 1.0: "by the length"}


@dataclass(frozen=True)
class TextWeighting:
    """What decides how much the words of a document say."""

    # A sum of n words that all lean on the same few topics grows as chance does, not as n: by its square root.
    power: float = 0.5
    max_words: int = 0  # words of a term that is heard, at most; 0: of any
    count_mode: int = -1  # what several occurrences count; -1: what they count in the tally
    # The weight of a term strays from the mean of its kind by about .3, which is about as large as these means are.
    # Between 3 and 100 the answers differ by a few parts in a hundred, where documents are thousands.
    strength: float = 10.0  # with which weights are held to the mean of their kind; inf: they do not stray
    has_weights: bool = True  # whether words have weights; else each counts once
    loss: float = np.nan  # the mean log-loss of documents held out when this was chosen; not chosen: none
    unweighted_loss: float = np.nan  # the same, had each word counted once

    _N_FIELDS: ClassVar[int] = 7

    @property
    def key(self) -> tuple[float, ...]:
        """What scores depend on: weights of the same key can be averaged."""
        return self.power, self.max_words, self.count_mode, self.has_weights

    def select_tokens(self, blank_counts: NDArray) -> NDArray[np.bool_]:
        """(term,) which terms are heard, by the blanks in them."""
        return blank_counts < self.max_words if self.max_words else np.ones(len(blank_counts), bool)

    def __str__(self) -> str:
        return self.describe("words and pairs of words")

    def describe(self, token_description: str) -> str:
        """The same in words; ``terms`` are those that there are."""
        token_description = {0: token_description, 1: "words"}.get(self.max_words, f"up to {self.max_words} words")
        held = f"weights held by {self.strength:g}" if np.isfinite(self.strength) else "a weight for each kind of word"
        length = _POWER_TEXT.get(self.power, f"length to the power {self.power:g}")
        parts = [
            token_description,
            _COUNT_MODE_TEXT[self.count_mode],
            *([length, held] if self.has_weights else ["each counts once"]),
        ]
        parts = [part for part in parts if part]
        known = (
            f": held-out log-loss {self.loss:.3g} (words that count once: {self.unweighted_loss:.3g})"
            if self.loss == self.loss
            else ""
        )
        return ", ".join(parts) + known

    def to_array(self) -> Floats:
        return np.array(astuple(self), np.float64)

    @classmethod
    def from_array(cls, array: NDArray) -> "TextWeighting":
        """What an array of a file says; an InputError where that is no way to hear words."""
        if array.shape != (cls._N_FIELDS,) or array.dtype != np.float64:
            raise InputError(f"array 'how' is no list of {cls._N_FIELDS} numbers")
        power, longest, manner, strength, weighs, loss, naive = array.tolist()
        sound = (
            0 <= power <= 1
            and longest in range(1001)
            and manner in _COUNT_MODE_TEXT
            and strength > 0
            and weighs in (0, 1)
        )
        if not sound:
            raise InputError(f"array 'how' holds {array.tolist()}, which is no way to hear words", value=array.tolist())
        return cls(power, int(longest), int(manner), strength, bool(weighs), loss, naive)


DEFAULT_WEIGHTING = TextWeighting()
