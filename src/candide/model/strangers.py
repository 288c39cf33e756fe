"""Strangers: columns of which some rows hold only values that a model never met. Likely they are written otherwise.

>>> from candide.demo import garden
>>> from candide.rows.table import Table
>>> census = garden()
>>> rows = {"height_cm": [21.0], "leaf_mm": [8.0], "flowers": [14], "soil": ["mud"], "scented": ["yes"]}
>>> strangers = Strangers(census.plan)
>>> strangers.look(census.plan.blocks(Table.of(rows)))
>>> [str(remark) for remark in strangers.remarks()]
["column 'soil': no value is one that the model knows ('chalk', 'clay', 'sand'); write it as in the rows fitted"]
"""

from collections.abc import Sequence

import numpy as np

from candide import wording
from candide.model.plan import Plan
from candide.rows.blocks import Block
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.table import Name

_FEW = 64  # rows that tell of most columns that they are known


class Strangers:
    """What was met of each column of levels, in all blocks looked at. Blocks may be looked at on several threads."""

    def __init__(self, plan: Plan):
        self._parts = [(i, part) for i, part in enumerate(plan.parts) if part.holds == "codes"]
        self._open = {(i, j) for i, part in self._parts for j, e in enumerate(part.encodings) if e.as_written}
        self._met: set[tuple[int, int]] = set()  # columns of which a value was met that is no level

    def look(self, blocks: Sequence[Block]) -> None:
        """Take note of the values of some rows."""
        for i, part in self._parts:
            for j in range(len(part.columns)):
                if (i, j) in self._open:
                    self._look(i, j, np.asarray(blocks[i])[:, j], len(part.levels[j]))

    def _look(self, i: int, j: int, codes: np.ndarray, n: int) -> None:
        for some in (codes[:_FEW], codes[_FEW:]):
            if ((some >= 0) & (some < n)).any():
                self._open.discard((i, j))
                return
            if (some == n).any():
                self._met.add((i, j))

    def add(self, other: "Strangers") -> None:
        """Take note of what another has looked at, of the same columns."""
        self._open &= other._open
        self._met |= other._met

    def remarks(self) -> list[Remark]:
        """One remark on all columns of which every value is strange."""
        strange = self._open & self._met
        found = dict[Name, Labels]()  # a column of joint terms is in several parts
        for i, part in self._parts:
            for j, name in enumerate(part.columns):
                if (i, j) in strange:
                    found.setdefault(name, part.levels[j])
        if not found:
            return []
        [levels, *others] = found.values()
        knows = wording.listing(levels.values, 5) if not others and len(levels) else ""
        return [unseen(list(found), knows)]


def unseen(names: Sequence[Name], knows: str = "") -> Remark:
    """The remark on columns of which every value is strange, and what the model knows of one."""
    text = f"{wording.columns(names)}: no value is one that the model knows{f' ({knows})' if knows else ''}"
    return Remark("unseen", text, names[0], "write it as in the rows fitted", tuple(names))
