"""Interaction: what sets of columns say together of the class, beyond what they say apart.

A set of two is a correction of naive Bayes: log p(i, j | c) - log p(i | c) - log p(j | c). It says 0 of a value
that is absent or new. It is no law of the columns, and has no density: it stands beside the laws of the columns.

>>> spec = Interaction(((0, 1),)).spec(2, (LevelEncoding.from_size(2), LevelEncoding.from_size(2)))
>>> x, y = np.array([[0, 0], [1, 1], [0, 1], [1, 0]] * 9), np.array([0, 0, 1, 1] * 9)
>>> law = Interaction(((0, 1),)).estimate(CellTally.from_rows(x, y, n_classes=2, spec=spec))
>>> law.log_prob(x[:4]).argmax(axis=1).tolist()  # each column alone tells nothing
[0, 0, 1, 1]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import conjugate
from candide import distributions as laws
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.data.table import Name
from candide.encoding import Encoding, LevelEncoding
from candide.errors import InputError
from candide.events.base import EventModel, Support
from candide.tally import CellTally, TallySpec

__all__ = ["Interaction", "LevelEncoding"]

MAX_SET_CELLS = (1 << 31) - 1  # of a set: its cells are numbered in four bytes


@dataclass(frozen=True)
class Interaction(EventModel):
    """Sets of as many columns each, by their positions in the block."""

    name: ClassVar[str] = "interaction"
    kind: ClassVar[str] = "cells"
    has_density: ClassVar[bool] = False
    support: ClassVar[Support | None] = None

    sets: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        orders = {len(one) for one in self.sets}
        if len(orders) > 1 or any(n < 2 for n in orders) or any(len(set(one)) < len(one) for one in self.sets):
            what, remedy = "sets of columns of different sizes, or of fewer than two", "pass such as ((0, 1), (0, 2))"
            raise InputError(what, value=self.sets, remedy=remedy)

    def spec(self, n_features: int, encodings: Sequence[Encoding] = ()) -> TallySpec:
        if encodings:
            self._check(tuple(encoding.n_levels or 0 for encoding in encodings))
        return TallySpec(self.kind, tuple(encodings) or (self.encoding,) * n_features, self.extra_sums, self.sets)

    def _check(self, sizes: tuple[int, ...]) -> None:
        """Refuse sets of columns that there are not, and of more cells than can be numbered."""
        for one in self.sets:
            if not all(isinstance(j, int) and 0 <= j < len(sizes) for j in one):
                raise InputError(f"a set of columns of which there are {len(sizes)}", value=one)
            if prod(sizes[j] for j in one) > MAX_SET_CELLS:
                remedy = "leave out a column with very many levels"
                raise InputError(f"a set of more than {MAX_SET_CELLS:,} cells", value=one, remedy=remedy)

    def term_names(self, columns: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
        return tuple(tuple(columns[j] for j in one) for one in self.sets)

    def _estimate(self, tally: CellTally, prior: Any, how: str) -> "laws.Interactions":
        return laws.Interactions(np.ascontiguousarray(conjugate.interaction.log_ratio(tally).T), tally.layout)

    def held_out_contributions(
        self,
        tally: CellTally,
        prior: Any,
        how: str,
        block: Block,
        y: Codes,
        weight: Floats | None = None,
        out: NDArray | None = None,
    ) -> NDArray:
        terms = conjugate.interaction.log_ratio(tally)
        return conjugate.interaction.held_out_contributions(tally, terms, to_dense(block), y, weight, out)

    def information(self, tally: Any) -> None:
        return None

    def association_test(self, tally: Any) -> None:
        return None
