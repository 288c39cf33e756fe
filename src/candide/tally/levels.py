"""Weights of codes: of the levels of single columns, and of the cells of sets of columns, one after another.

Bernoulli columns, categories, bins and the class prior itself are counted by levels.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import encoding as encode
from candide import kernels
from candide.data.blocks import Block, Codes, Csr, Floats, slice_rows
from candide.encoding import CodeMapping, Encoding
from candide.errors import InputTypeError, MergeError
from candide.tally import base
from candide.tally.base import Tally, TallySpec


@dataclass(frozen=True, eq=False)
class CountTally(Tally):
    """A tally whose state is weights of codes, which add number by number."""

    encoding: ClassVar[Encoding] = encode.LevelEncoding()
    state: ClassVar[tuple[str, ...]] = ("counts",)

    counts: Floats  # (classes, levels of all features, or cells of all sets, one after another)

    def __add__(self, other: Self) -> Self:
        self._check_compatible(other)
        return replace(self, counts=self.counts + other.counts)

    def __sub__(self, part: Self) -> Self:
        self._check_compatible(part)
        return replace(self, counts=base.subtract_weights(self.counts, part.counts))

    def _check_compatible(self, other: Self) -> None:
        base.check_same_shape(self.counts, other.counts)

    def scale(self, factor: float | Floats) -> Self:
        return replace(self, counts=self.counts * base.broadcast_by_class(factor, 2))

    def pool(self) -> Self:
        return replace(self, counts=self.counts.sum(axis=0, keepdims=True))


@dataclass(frozen=True, eq=False)
class LevelTally(CountTally):
    """The weight of each level, ragged over features."""

    offsets: Codes  # (features + 1) feature j has the columns offsets[j]:offsets[j+1]

    @classmethod
    def from_rows(
        cls, block: Block, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: TallySpec
    ) -> Self:
        """Tally level codes (negative: absent), or with ``spec.threshold`` numbers as "not above" and "above"."""
        offsets, threshold = offsets_from_sizes(spec.sizes), spec.threshold
        if threshold is not None and threshold < 0 and isinstance(block, Csr):
            what = f"threshold {threshold:g} puts every zero of a sparse matrix above it"
            raise InputTypeError(what, value=threshold, remedy="pass a threshold >= 0 or a dense array")

        def part(rows: slice) -> LevelTally:
            x, w = slice_rows(block, rows), None if weight is None else weight[rows]
            if threshold is None:
                assert not isinstance(x, Csr)
                return cls(kernels.level_counts(spec.tally_values(x), y[rows], w, n_classes, offsets), offsets)
            if isinstance(x, Csr):
                sparse = x.data, x.indices, x.indptr
                above, low = kernels.csr_sums(*sparse, y[rows], w, n_classes, x.n_features, threshold)
                n = base.sum_class_weights(y[rows], w, n_classes)[:, None]
            else:
                n, above, low = kernels.dense_sums(x, y[rows], w, n_classes, threshold)
            if np.isnan(low):
                above[...] = np.inf  # shows as a non-finite count, as an infinity does in every tally
            counts = np.stack([np.maximum(n - above, 0.0), above], axis=2)
            return cls(counts.reshape(n_classes, 2 * spec.n_features), offsets)

        return base.tally_by_parts(part, block, spec)

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        offsets = offsets_from_sizes(spec.sizes)
        return cls(np.zeros((n_classes, offsets[-1])), offsets)

    @property
    def n(self) -> Floats:
        """(classes, features) weight of the values present."""
        return self.per_feature(self.counts)

    def per_feature(self, values: Floats) -> Floats:
        """Sum (classes, levels) values over the levels of each feature."""
        has_levels = np.diff(self.offsets) > 0  # reduceat gives a feature without levels its neighbour's first
        out = np.zeros((len(values), len(has_levels)))
        if has_levels.any():
            out[:, has_levels] = np.add.reduceat(values, self.offsets[:-1][has_levels], axis=1)
        return out

    def _check_compatible(self, other: Self) -> None:
        super()._check_compatible(other)
        if not np.array_equal(self.offsets, other.offsets):
            what = "these tallies have different numbers of levels per feature"
            raise MergeError(what, remedy="unite their levels first")

    def remap(self, classes: Codes, n_classes: int, moves: Sequence[CodeMapping] = ()) -> Self:
        counts = base.move_classes(self.counts, classes, n_classes)
        if not moves:
            return type(self)(counts, self.offsets)
        offsets = offsets_from_sizes([move.n_levels or 0 for move in moves])
        out = np.zeros((n_classes, offsets[-1]))
        out[:, np.concatenate([start + move.new_codes for start, move in zip(offsets, moves, strict=False)])] = counts
        return type(self)(out, offsets)

    def coarsen(self, groups: Sequence[Codes]) -> Self:
        """The tally in which levels of the same group are one: for each feature the group of each of its levels."""
        offsets = offsets_from_sizes([int(max(group, default=-1)) + 1 for group in groups])
        place = np.concatenate([start + np.asarray(group) for start, group in zip(offsets, groups, strict=False)])
        counts = np.zeros((len(self.counts), offsets[-1]))
        np.add.at(counts.T, place.astype(np.intp), self.counts.T)
        return type(self)(counts, offsets)

    def select_features(self, features: Codes) -> Self:
        sizes = np.diff(self.offsets)[features]
        offsets = offsets_from_sizes(sizes)
        place = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][features] - offsets[:-1], sizes)
        return type(self)(self.counts[:, place], offsets)

    def seen_levels(self) -> list[NDArray[np.bool_]]:
        return np.split(self.counts.any(axis=0), self.offsets[1:-1])

    def select_levels(self, levels: Sequence[NDArray[np.bool_]]) -> Self:
        offsets = offsets_from_sizes([int(mask.sum()) for mask in levels])
        return type(self)(self.counts[:, np.concatenate(levels)], offsets)

    def locate_cell(self, cell: int) -> tuple[int, int | None]:
        feature = int(np.searchsorted(self.offsets, cell, "right")) - 1
        return feature, cell - int(self.offsets[feature])

    def summarize_feature(self, j: int) -> dict[str, float]:
        return {"level": int(self.offsets[j + 1] - self.offsets[j])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec) -> Self:
        return cls(arrays["counts"], offsets_from_sizes(spec.sizes))


def offsets_from_sizes(sizes: Sequence[int] | Codes) -> Codes:
    """Where the levels of each feature start, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)]).astype(np.intp)


@dataclass(frozen=True)
class CellLayout:
    """Sets of columns, and how many levels each column has: where every cell lies.

    A set is a tuple of column positions; all sets have the same length. Its cells are numbered row by row, the last
    column fastest; the cells of all sets follow one another.
    """

    sets: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]  # of all columns

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
        """(sets + 1) set s has the cells from offsets[s] to offsets[s + 1]."""
        return offsets_from_sizes(self.shape.prod(axis=1))

    @property
    def n_cells(self) -> int:
        return int(self.offsets[-1])

    def locate_rows(self, codes: NDArray) -> NDArray[np.int32]:
        """(row, set) the cell of each row in each set: -1 where a value is absent, past the last where one is new."""
        absent: NDArray[np.bool_] = np.less(codes, 0)
        new: NDArray[np.bool_] = np.greater_equal(codes, np.array(self.sizes))
        has_odd: NDArray[np.bool_] = np.any(absent | new, axis=0)
        out = np.empty((len(codes), len(self.sets)), np.int32, order="F")
        for s, columns in enumerate(self.sets):
            cell = codes[:, columns[0]].astype(np.int32)
            for j in columns[1:]:
                cell *= np.int32(self.sizes[j])
                cell += codes[:, j]
            odd_columns = [j for j in columns if has_odd[j]]
            for j in odd_columns:
                cell[new[:, j]] = self.offsets[s + 1] - self.offsets[s]
            for j in odd_columns:
                cell[absent[:, j]] = -1
            out[:, s] = cell
        return out

    @cached_property
    def levels(self) -> Codes:
        """(position, cell) the level that each cell has of each column of its set."""
        rest = np.arange(self.n_cells) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        sizes = np.repeat(self.shape, np.diff(self.offsets), axis=0)
        out = np.empty((self.order, self.n_cells), np.intp)
        for j in reversed(range(self.order)):
            out[j], rest = rest % sizes[:, j], rest // sizes[:, j]
        return out

    def columns_of_sets(self) -> Iterator[tuple[int, slice, list[tuple[int, Codes]]]]:
        """For each set its number, its cells, and of each of its columns the position and the level of each cell."""
        for s, columns in enumerate(self.sets):
            cells = slice(*self.offsets[s : s + 2])
            yield s, cells, [(j, self.levels[i, cells]) for i, j in enumerate(columns)]


@dataclass(frozen=True, eq=False)
class CellTally(CountTally):
    """The weight of each combination of levels, for several sets of columns; an absent value leaves its row out."""

    layout: CellLayout

    @classmethod
    def from_rows(
        cls, block: Block, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: TallySpec
    ) -> Self:
        layout = CellLayout(spec.sets, spec.sizes)

        def part(rows: slice) -> CellTally:
            codes, w = slice_rows(block, rows), None if weight is None else weight[rows]
            assert not isinstance(codes, Csr)
            return cls(kernels.cell_counts(codes, y[rows], w, n_classes, *layout.arrays), layout)

        return base.tally_by_parts(part, block, spec)

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        layout = CellLayout(spec.sets, spec.sizes)
        return cls(np.zeros((n_classes, layout.n_cells)), layout)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec) -> Self:
        return cls(arrays["counts"], CellLayout(spec.sets, spec.sizes))

    @property
    def to_level_tally(self) -> LevelTally:
        """The same counts, each set a feature and its cells the levels."""
        return LevelTally(self.counts, self.layout.offsets)

    @property
    def n(self) -> Floats:
        """(classes, sets) weight of the rows in which no value of the set is absent."""
        return self.to_level_tally.n

    def select_features(self, features: Codes) -> Self:
        layout = CellLayout(tuple(self.layout.sets[s] for s in features), self.layout.sizes)
        return type(self)(self.to_level_tally.select_features(features).counts, layout)

    def locate_cell(self, cell: int) -> tuple[int, int | None]:
        return self.to_level_tally.locate_cell(cell)

    def summarize_feature(self, j: int) -> dict[str, float]:
        return {"cell": int(np.diff(self.layout.offsets)[j])}

    def seen_levels(self) -> list[NDArray[np.bool_]]:
        """For each column which of its levels have any weight in a set."""
        seen = [np.zeros(n, bool) for n in self.layout.sizes]
        has_rows: NDArray[np.bool_] = np.any(self.counts, axis=0)
        for _, cells, columns in self.layout.columns_of_sets():
            for j, levels in columns:
                seen[j][levels[has_rows[cells]]] = True
        return seen

    def select_levels(self, levels: Sequence[NDArray[np.bool_]]) -> Self:
        keep = np.ones(self.layout.n_cells, bool)
        for _, cells, columns in self.layout.columns_of_sets():
            for j, cell_levels in columns:
                keep[cells] &= levels[j][cell_levels]
        sizes = tuple(int(mask.sum()) for mask in levels)
        return type(self)(self.counts[:, keep], CellLayout(self.layout.sets, sizes))

    def remap(self, classes: Codes, n_classes: int, moves: Sequence[CodeMapping] = ()) -> Self:
        counts = base.move_classes(self.counts, classes, n_classes)
        if not moves:
            return type(self)(counts, self.layout)
        wider = CellLayout(self.layout.sets, tuple(move.n_levels or 0 for move in moves))
        out = np.zeros((n_classes, wider.n_cells))
        for s, cells, columns in self.layout.columns_of_sets():
            new_levels = tuple(np.asarray(moves[j].new_codes, np.intp)[levels] for j, levels in columns)
            out[:, wider.offsets[s] + np.ravel_multi_index(new_levels, wider.shape[s])] = counts[:, cells]
        return type(self)(out, wider)
