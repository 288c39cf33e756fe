"""More rows: those from which words learn, which are very many, beside the rows from which all voices do.

What the other voices say of them is where words begin; it is worked out some rows at a time, and only its sum is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from candide.model import weights
from candide.model.census import Census
from candide.model.model import prior_for
from candide.model.settings import Settings
from candide.rows.blocks import Block, Codes, Floats

_AT_ONCE = 1 << 12  # rows of which voices speak together


@dataclass(eq=False)
class More:
    """The blocks of the rows, and where the rows from which all voices learn are among them."""

    blocks: Sequence[Block]
    y: Codes
    weight: Floats | None
    at: Codes
    beside: Floats | float = 0.0  # (row, class) what voices that are no words say

    def listen(
        self, census: Census, settings: Settings, weight: Sequence[Floats], held_out: Callable[..., Floats]
    ) -> None:
        """Hear what the other voices say with these weights, each row without itself."""
        self.beside = np.zeros((len(self.y), len(census.labels)))
        for part, tally, block, each in zip(census.plan.parts, census.tallies, self.blocks, weight, strict=True):
            if part.event.hears_words or not each.any():
                continue
            prior = prior_for(part.event, settings.priors)
            for start in range(0, len(self.y), _AT_ONCE):
                some = slice(start, start + _AT_ONCE)
                y, often = self.y[some], None if self.weight is None else self.weight[some]
                room = weights.room(len(y), len(census.labels), len(each))
                terms = held_out(part, tally, prior, block[some], y, often, room)
                self.beside[some] += weights.kept(terms) @ each
