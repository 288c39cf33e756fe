"""The rows that weights are learned from: their blocks, classes, weights, and what leaving a row out takes away.

Token weights are very many, so that they are learned from further rows. The contributions of the other terms to these
are computed a few rows at a time, and only their sum is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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

_CHUNK_ROWS = 1 << 12  # rows that are scored together


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows as blocks of a plan. Equal rows may be pooled: then a weight is not what leaving the row out takes away."""

    blocks: Sequence[Block]
    y: Codes
    weight: Floats | None = None  # (row,) its frequency
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
        """(row,) its frequency while weights are learned: 0 where most rows are the only one of their class.

        Such a row, left out, is of a class of which nothing is known: it could only teach to avoid its own class.
        """
        removed = np.ones(len(self)) if self.removed_weight is None else self.removed_weight
        alone = class_weight[self.y] < 1.5 * removed
        if alone.mean() < 0.5:
            return self.weight
        return np.where(alone, 0.0, 1.0 if self.weight is None else self.weight)

    def take(self, rows: slice) -> "TrainingRows":
        """Some of the rows."""
        weight, left_out = (None if a is None else a[rows] for a in (self.weight, self.left_out_weight))
        blocks, fold = (
            [slice_rows(block, rows) for block in self.blocks],
            None if self.fold is None else self.fold[rows],
        )
        return TrainingRows(blocks, self.y[rows], weight, left_out, fold)


@dataclass(eq=False)
class FurtherRows:
    """Rows that token weights are learned from, and which of them all other weights are learned from."""

    rows: TrainingRows
    term_rows: Codes
    offset: Floats | float = 0.0  # (row, class) the contributions of terms other than tokens

    def score_terms(
        self, counts: ModelCounts, settings: Settings, weight: Sequence[Floats], held_out: Callable[..., Floats]
    ) -> None:
        """Sum the contributions of the other terms with these weights, each row left out."""
        self.offset, k = np.zeros((len(self.rows), len(counts.labels))), len(counts.labels)
        for i, (part, tally, own) in enumerate(zip(counts.plan.parts, counts.tallies, weight, strict=True)):
            if part.event.weights_tokens or not own.any():
                continue
            prior, rows = prior_for(part.event, settings.param_priors), replace(self.rows, blocks=[self.rows.blocks[i]])
            for start in range(0, len(rows), _CHUNK_ROWS):
                chunk = rows.take(slice(start, min(start + _CHUNK_ROWS, len(rows))))
                buffer = optimizer.allocate_contributions(len(chunk), k, len(own))
                terms = held_out(part, tally, prior, chunk.blocks[0], chunk, buffer)
                self.offset[start : start + len(chunk)] += optimizer.center_contributions(terms) @ own
