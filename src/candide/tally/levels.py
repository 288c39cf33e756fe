"""Levels: the weight of each level, ragged over features: one flat array and offsets.

Bernoulli columns, categories, bins and the class prior itself are counted this way.

>>> codes, y = np.array([[0, 2], [1, -1], [1, 0]]), np.array([0, 0, 1])
>>> spec = TallySpec("levels", tuple(map(encode.LevelEncoding.from_size, (2, 3))))
>>> tally = LevelTally.from_rows(codes, y, n_classes=2, spec=spec)
>>> tally.counts.tolist()
[[1.0, 1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0, 0.0]]
>>> tally.n.tolist()  # -1 is an absent value: class 0 has two rows, and one value of feature 1
[[2.0, 1.0], [1.0, 1.0]]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import encoding as encode
from candide import kernels
from candide.data.blocks import Block, Codes, Csr, Floats, slice_rows
from candide.encoding import CodeMapping, Encoding
from candide.errors import InputTypeError, MergeError
from candide.tally.base import (
    Tally,
    TallySpec,
    broadcast_by_class,
    check_same_shape,
    move_classes,
    subtract_weights,
    sum_class_weights,
    tally_by_parts,
)


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
        return replace(self, counts=subtract_weights(self.counts, part.counts))

    def _check_compatible(self, other: Self) -> None:
        check_same_shape(self.counts, other.counts)

    def scale(self, factor: float | Floats) -> Self:
        return replace(self, counts=self.counts * broadcast_by_class(factor, 2))

    def pool(self) -> Self:
        return replace(self, counts=self.counts.sum(axis=0, keepdims=True))


@dataclass(frozen=True, eq=False)
class LevelTally(CountTally):
    offsets: Codes  # (features + 1) feature j owns columns offsets[j]:offsets[j+1]

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
                n = sum_class_weights(y[rows], w, n_classes)[:, None]
            else:
                n, above, low = kernels.dense_sums(x, y[rows], w, n_classes, threshold)
            if np.isnan(low):
                above[...] = np.inf  # shows as a non-finite count, as an infinity does in every tally
            counts = np.stack([np.maximum(n - above, 0.0), above], axis=2)
            return cls(counts.reshape(n_classes, 2 * spec.n_features), offsets)

        return tally_by_parts(part, block, spec)

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
        counts = move_classes(self.counts, classes, n_classes)
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
