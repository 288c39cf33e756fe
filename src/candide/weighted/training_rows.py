"""Rows that weights are learned from: their blocks, classes, weights, and what leaving one of them out takes away.

Words are learned from further rows, because they are very many. What the other terms contribute to these is where words
begin; it is worked out some rows at a time, and only its sum is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from candide.data.blocks import Block, Codes, Floats, slice_rows
from candide.model.counts import ModelCounts
from candide.model.model import prior_for
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.weighted import optimizer

if TYPE_CHECKING:
    from candide.data.sample import Sample

_ROWS_AT_ONCE = 1 << 12  # rows that are scored together


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows as blocks of a plan. Equal rows may be pooled: then a weight is not what leaving the row out takes away."""

    blocks: Sequence[Block]
    y: Codes
    weight: Floats | None = None  # (row,) how often it counts
    left_out_weight: Floats | None = None  # (row,) what leaving it out takes from the counts; None: its weight
    fold: Codes | None = None  # (row,) the fold whose rows do not choose the bins that it is scored by

    @classmethod
    def from_sample(cls, sample: "Sample", plan: Plan) -> "TrainingRows":
        """The rows of a sample as blocks of a plan."""
        blocks = plan.blocks(sample.table)
        return cls(blocks, sample.y, sample.weight, sample.left_out_weight, sample.bin_fold)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def removed_weight(self) -> Floats | None:
        """(row,) what leaving it out takes from the counts; None where that is 1."""
        return self.weight if self.left_out_weight is None else self.left_out_weight

    def learning_weight(self, class_weight: Floats) -> Floats | None:
        """(row,) how often each counts while weights are learned: never, where most have a class of their own.

        Left out, such a row is of a class that nothing is known of: all that it could teach is to avoid its own class.
        """
        removed = np.ones(len(self)) if self.removed_weight is None else self.removed_weight
        alone = class_weight[self.y] < 1.5 * removed
        if alone.mean() < 0.5:
            return self.weight
        return np.where(alone, 0.0, 1.0 if self.weight is None else self.weight)

    def take(self, rows: slice) -> "TrainingRows":
        """Some of the rows."""
        parts = (self.y, self.weight, self.left_out_weight, self.fold)
        own = (None if part is None else part[rows] for part in parts)
        return TrainingRows([slice_rows(block, rows) for block in self.blocks], *own)  # type: ignore[arg-type]


@dataclass(eq=False)
class FurtherRows:
    """Rows that words are learned from, and which of them every other term is learned from."""

    rows: TrainingRows
    term_rows: Codes
    offset: Floats | float = 0.0  # (row, class) what terms other than words contribute

    def score_terms(
        self, counts: ModelCounts, settings: Settings, weight: Sequence[Floats], held_out: Callable[..., Floats]
    ) -> None:
        """Add up what the other terms contribute with these weights, each row left out of its own."""
        self.offset = np.zeros((len(self.rows), len(counts.labels)))
        for i, (part, tally, each) in enumerate(zip(counts.plan.parts, counts.tallies, weight, strict=True)):
            if part.event.weights_tokens or not each.any():
                continue
            prior, own = prior_for(part.event, settings.param_priors), self.rows.blocks[i : i + 1]
            alone = TrainingRows(own, self.rows.y, self.rows.weight, self.rows.left_out_weight, self.rows.fold)
            for start in range(0, len(self.rows), _ROWS_AT_ONCE):
                some = alone.take(slice(start, min(start + _ROWS_AT_ONCE, len(self.rows))))
                room = optimizer.allocate_contributions(len(some), len(counts.labels), len(each))
                terms = held_out(part, tally, prior, some.blocks[0], some, room)
                self.offset[start : start + len(some)] += optimizer.center_contributions(terms) @ each
