"""Strangers: columns of which some rows hold only values that a model never met. Likely they are written otherwise.

>>> from candide.demo import garden
>>> from candide.data.table import Table
>>> census = garden()
>>> rows = {"height_cm": [21.0], "leaf_mm": [8.0], "flowers": [14], "soil": ["mud"], "scented": ["yes"]}
>>> strangers = UnseenValues(census.plan)
>>> strangers.observe(census.plan.blocks(Table.from_data(rows)))
>>> [str(remark) for remark in strangers.notes()]
["column 'soil': no value is one that the model knows ('chalk', 'clay', 'sand'); write it as in the rows fitted"]
"""

from collections.abc import Sequence

import numpy as np

from candide import formatting
from candide.data.blocks import Block
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.table import Name
from candide.model.plan import Plan

_N_FIRST_ROWS = 64  # rows that tell of most columns that they are known


class UnseenValues:
    """What was met of each column of levels, in all blocks looked at. Blocks may be looked at on several threads."""

    def __init__(self, plan: Plan):
        self._parts = [(i, part) for i, part in enumerate(plan.parts) if part.block_kind == "codes"]
        self._unmatched = {(i, j) for i, part in self._parts for j, e in enumerate(part.encodings) if e.is_read_as_text}
        self._unseen: set[tuple[int, int]] = set()  # columns of which a value was met that is no level

    def observe(self, blocks: Sequence[Block]) -> None:
        """Take note of the values of some rows."""
        for i, part in self._parts:
            for j in range(len(part.columns)):
                if (i, j) in self._unmatched:
                    self._observe_column(i, j, np.asarray(blocks[i])[:, j], len(part.levels[j]))

    def _observe_column(self, i: int, j: int, codes: np.ndarray, n: int) -> None:
        for some in (codes[:_N_FIRST_ROWS], codes[_N_FIRST_ROWS:]):
            if ((some >= 0) & (some < n)).any():
                self._unmatched.discard((i, j))
                return
            if (some == n).any():
                self._unseen.add((i, j))

    def add(self, other: "UnseenValues") -> None:
        """Take note of what another has looked at, of the same columns."""
        self._unmatched &= other._unmatched
        self._unseen |= other._unseen

    def notes(self) -> list[Note]:
        """One remark on all columns of which every value is strange."""
        strange = self._unmatched & self._unseen
        found = dict[Name, Labels]()  # a column of joint terms is in several parts
        for i, part in self._parts:
            for j, name in enumerate(part.columns):
                if (i, j) in strange:
                    found.setdefault(name, part.levels[j])
        if not found:
            return []
        [levels, *others] = found.values()
        knows = formatting.format_list(levels.values, 5) if not others and len(levels) else ""
        return [unseen_note(list(found), knows)]


def unseen_note(names: Sequence[Name], known_levels: str = "") -> Note:
    """The remark on columns of which every value is strange, and what the model knows of one."""
    text = f"{formatting.format_columns(names)}: no value is one that the model knows{f' ({known_levels})' if known_levels else ''}"
    return Note("unseen", text, names[0], "write it as in the rows fitted", tuple(names))
