"""Cells: the weight of each combination of levels of some columns, for several sets of columns.

A set is a tuple of column positions; all sets have the same length. Its cells are numbered row by row, the last column
fastest; the cells of all sets follow one another.

>>> from candide import encoding as encode
>>> codes, y = np.array([[0, 1, 0], [1, 1, 2], [1, 0, -1]]), np.array([0, 0, 1])
>>> spec = TallySpec("cells", tuple(map(encode.LevelEncoding.from_size, (2, 2, 3))), sets=((0, 1), (1, 2)))
>>> tally = CellTally.from_rows(codes, y, n_classes=2, spec=spec)
>>> tally.counts.tolist()  # of 2 x 2 cells, then of 2 x 3; an absent value leaves its row out
[[0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Csr, Floats, slice_rows
from candide.encoding import CodeMapping
from candide.tally.base import TallySpec, move_classes, tally_by_parts
from candide.tally.levels import CountTally, LevelTally, offsets_from_sizes


@dataclass(frozen=True)
class CellLayout:
    """Sets of columns, and how many levels each column has: where every cell lies."""

    sets: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]  # of all columns

    @classmethod
    def from_spec(cls, spec: TallySpec) -> "CellLayout":
        return cls(spec.sets, spec.sizes)

    @property
    def order(self) -> int:
        """How many columns a set has."""
        return len(self.sets[0]) if self.sets else 0

    @cached_property
    def arrays(self) -> tuple[Codes, Codes]:
        """(set, position) the columns of each set, and (column,) their levels: what the kernels take."""
        columns = np.array(self.sets, np.intp).reshape(len(self.sets), max(1, self.order))
        return columns, np.array(self.sizes, np.intp)

    @cached_property
    def shape(self) -> Codes:
        """(set, position) the levels of each column of each set."""
        columns, sizes = self.arrays
        return sizes[columns]

    @cached_property
    def offsets(self) -> Codes:
        """(sets + 1) set s owns the cells from offsets[s] to offsets[s + 1]."""
        return offsets_from_sizes(self.shape.prod(axis=1))

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    def select_sets(self, sets: slice | Codes) -> "CellLayout":
        """The layout of some of the sets."""
        chosen = self.sets[sets] if isinstance(sets, slice) else tuple(self.sets[s] for s in sets)
        return CellLayout(chosen, self.sizes)

    def locate_rows(self, codes: NDArray) -> NDArray[np.int32]:
        """(row, set) the cell of each row in each set: -1 where a value is absent, past the last where one is new."""
        absent: NDArray[np.bool_] = np.less(codes, 0)
        new: NDArray[np.bool_] = np.greater_equal(codes, np.array(self.sizes))
        odd: NDArray[np.bool_] = np.any(absent | new, axis=0)
        out = np.empty((len(codes), len(self.sets)), np.int32, order="F")
        for s, columns in enumerate(self.sets):
            cell = codes[:, columns[0]].astype(np.int32)
            for j in columns[1:]:
                cell *= np.int32(self.sizes[j])
                cell += codes[:, j]
            for j in columns:
                if odd[j]:
                    cell[new[:, j]] = self.offsets[s + 1] - self.offsets[s]
            for j in columns:
                if odd[j]:
                    cell[absent[:, j]] = -1
            out[:, s] = cell
        return out

    @cached_property
    def levels(self) -> Codes:
        """(position, cell) the level that each cell has of each column of its set."""
        left = np.arange(self.n_cells) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        of_cell = np.repeat(self.shape, np.diff(self.offsets), axis=0)
        out = np.empty((self.order, self.n_cells), np.intp)
        for j in reversed(range(self.order)):
            out[j], left = left % of_cell[:, j], left // of_cell[:, j]
        return out


@dataclass(frozen=True, eq=False)
class CellTally(CountTally):
    layout: CellLayout

    @classmethod
    def from_rows(
        cls, block: Block, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: TallySpec
    ) -> Self:
        layout = CellLayout.from_spec(spec)

        def part(rows: slice) -> CellTally:
            codes, w = slice_rows(block, rows), None if weight is None else weight[rows]
            assert not isinstance(codes, Csr)
            return cls(kernels.cell_counts(codes, y[rows], w, n_classes, *layout.arrays), layout)

        return tally_by_parts(part, block, spec)

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        layout = CellLayout.from_spec(spec)
        return cls(np.zeros((n_classes, layout.n_cells)), layout)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec) -> Self:
        return cls(arrays["counts"], CellLayout.from_spec(spec))

    @property
    def to_level_tally(self) -> LevelTally:
        """The same counts, each set a feature and its cells the levels."""
        return LevelTally(self.counts, self.layout.offsets)

    @property
    def n(self) -> Floats:
        """(classes, sets) weight of the rows in which no value of the set is absent."""
        return self.to_level_tally.n

    def select_features(self, features: Codes) -> Self:
        """The tally of some of the sets."""
        return type(self)(self.to_level_tally.select_features(features).counts, self.layout.select_sets(features))

    def locate_cell(self, cell: int) -> tuple[int, int | None]:
        return self.to_level_tally.locate_cell(cell)

    def summarize_feature(self, j: int) -> dict[str, float]:
        return {"cell": int(np.diff(self.layout.offsets)[j])}

    def seen_levels(self) -> list[NDArray[np.bool_]]:
        """For each column which of its levels have any weight in a set."""
        found = [np.zeros(n, bool) for n in self.layout.sizes]
        there: NDArray[np.bool_] = np.any(self.counts, axis=0)
        for s, columns in enumerate(self.layout.sets):
            own = slice(*self.layout.offsets[s : s + 2])
            for i, j in enumerate(columns):
                found[j][self.layout.levels[i, own][there[own]]] = True
        return found

    def select_levels(self, levels: Sequence[NDArray[np.bool_]]) -> Self:
        keep = np.ones(self.layout.n_cells, bool)
        for s, columns in enumerate(self.layout.sets):
            own = slice(*self.layout.offsets[s : s + 2])
            for i, j in enumerate(columns):
                keep[own] &= levels[j][self.layout.levels[i, own]]
        sizes = tuple(int(mask.sum()) for mask in levels)
        return type(self)(self.counts[:, keep], CellLayout(self.layout.sets, sizes))

    def remap(self, classes: Codes, n_classes: int, moves: Sequence[CodeMapping] = ()) -> Self:
        counts = move_classes(self.counts, classes, n_classes)
        if not moves:
            return type(self)(counts, self.layout)
        to = [np.asarray(move.new_codes, np.intp) for move in moves]
        wider = CellLayout(self.layout.sets, tuple(move.n_levels or 0 for move in moves))
        out = np.zeros((n_classes, wider.n_cells))
        for s, columns in enumerate(self.layout.sets):
            old = slice(*self.layout.offsets[s : s + 2])
            levels = tuple(to[j][self.layout.levels[i, old]] for i, j in enumerate(columns))
            cell = np.ravel_multi_index(levels, wider.shape[s])
            out[:, wider.offsets[s] + cell] = counts[:, old]
        return type(self)(out, wider)
