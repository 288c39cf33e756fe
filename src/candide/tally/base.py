"""Tally: a value that merges with ``+`` and holds no hyper-parameter, and the registry of tally kinds.

A :class:`TallySpec` defines how a block of columns is counted. It is *encoding*: change it and the data must be
read again. Two tallies merge only when their specs agree.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats, row_width
from candide.encoding.base import CodeMapping, Encoding, Identity
from candide.errors import CellError, InputError, MergeError, NotCountedError
from candide.kernels import threads
from candide.registry import Registry

MAX_SUM = 1e300  # of every number in a tally, and of the sums it stands for: a few of them still add up
_CHUNK_VALUES = 1 << 21  # values transformed at a time: small compared with any large input


@dataclass(frozen=True)
class TallySpec:
    """Tally kind, encoding of each column, and extra sums: all that an engine needs to count a block."""

    kind: str  # a key of TALLIES
    encodings: tuple[Encoding, ...]  # one a column, of one kind of block
    extra_sums: frozenset[str] = frozenset()  # beyond the kind's sums: "log_factorial" (Sums), "fourth" (CoMoments)
    sets: tuple[tuple[int, ...], ...] = ()  # columns that are counted together, by their positions (Cells)

    @classmethod
    def from_encoding(cls, kind: str, encoding: Encoding, n_features: int, keep: Collection[str] = ()) -> "TallySpec":
        """Columns that are all encoded in one way."""
        return cls(kind, (encoding,) * n_features, frozenset(keep))

    @cached_property
    def n_features(self) -> int:
        """How many numbers or codes a row has."""
        return sum(encoding.width for encoding in self.encodings)

    @cached_property
    def encoding(self) -> Encoding | None:
        """The encoding of all columns, where they have the same."""
        first = self.encodings[0] if self.encodings else Identity()
        return first if self.encodings.count(first) == len(self.encodings) else None

    @property
    def threshold(self) -> float | None:
        """The threshold of every column, where only whether a number lies above it is tallied."""
        return None if self.encoding is None else self.encoding.threshold

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many levels each column has."""
        if self.encoding is not None:
            return (self.encoding.n_levels or 0,) * self.n_features
        return tuple(encoding.n_levels or 0 for encoding in self.encodings)

    @property
    def is_non_negative(self) -> bool:
        """Whether no value is negative."""
        return all(encoding.least is not None and encoding.least >= 0 for encoding in self._distinct_encodings)

    @property
    def has_transforms(self) -> bool:
        """Whether a function of the values is tallied, which needs a copy of them."""
        return "log_factorial" in self.extra_sums or any(e.has_transform for e in self._distinct_encodings)

    @property
    def _distinct_encodings(self) -> tuple[Encoding, ...]:
        return self.encodings if self.encoding is None else (self.encoding,)

    def tally_values(self, x: NDArray) -> NDArray:
        """The numbers of a dense block to tally: the block itself, where nothing is transformed."""
        if self.encoding is not None:
            return self.encoding.tally_values(x)
        if self.encodings[0].block_kind in ("codes", "scores"):
            return x
        return np.column_stack([encoding.tally_values(x[:, j]) for j, encoding in enumerate(self.encodings)])


class Tally:
    """Sufficient statistics of one block, per class: a commutative monoid; ``-`` is a partial inverse.

    A kind is a frozen dataclass with ``from_rows``, ``empty``, ``__add__``, ``__sub__``, ``scale`` and ``pool``. The
    other methods work for any kind whose state is arrays with an axis of classes before one of features.
    """

    encoding: ClassVar[Encoding] = Identity()  # of its columns, unless the event model has another
    state: ClassVar[tuple[str, ...]]  # the names of its arrays (classes, ...)
    can_be_imprecise: ClassVar[bool] = False  # whether it has sums in which doubles may lose what is small
    has_open_vocabulary: ClassVar[bool] = False  # whether the length of its arrays depends on the rows

    @classmethod
    def from_rows(cls, block: Any, y: Codes, weight: Floats | None = None, *, n_classes: int, spec: TallySpec) -> Self:
        raise NotImplementedError

    @classmethod
    def empty(cls, n_classes: int, spec: TallySpec) -> Self:
        raise NotImplementedError

    def __add__(self, other: Self) -> Self:
        raise NotImplementedError

    def __sub__(self, part: Self) -> Self:
        """Remove rows counted earlier. A partial inverse: ``part`` must lie within ``self``."""
        raise NotImplementedError

    def subtract_approximately(self, part: Self) -> Self:
        """Self - part, to the rounding of doubles: fast for many parts at once."""
        return self - part

    def scale(self, factor: float | Floats) -> Self:
        """Let every row count ``factor`` times; an array (class,) has a factor for each class."""
        raise NotImplementedError

    def pool(self) -> Self:
        """The tally of all rows as if they were of one class."""
        raise NotImplementedError

    def remap(self, classes: Codes, n_classes: int, moves: Sequence[CodeMapping] = ()) -> Self:
        """Move each class (and each feature's levels, where there are any) to its code in a larger set."""
        return self._map_arrays(lambda a: move_classes(a, classes, n_classes))

    def select_classes(self, classes: Codes) -> Self:
        """The tally of the rows of these classes, in the given order."""
        return self._map_arrays(lambda a: a[classes])

    def select_features(self, features: Codes) -> Self:
        return self._map_arrays(lambda a: a[:, features])

    def seen_levels(self) -> list[NDArray[np.bool_]]:
        """For each feature which of its levels have any weight; () where there are no levels."""
        return []

    def select_levels(self, levels: Sequence[NDArray[np.bool_]]) -> Self:
        """The tally of the masked levels of each feature."""
        return self

    def own_class_without(self, rows: Self, y: Codes) -> Self:
        """The tally of each row's class without the row; ``rows`` is the tally of each row as a class of its own."""
        try:
            return self.select_classes(y).subtract_approximately(rows)
        except NotCountedError as error:
            raise NotCountedError(error.reason, row=error.cell and error.cell[0]) from None

    def without_each(self, rows: Self, y: Codes) -> Self:
        """The tally of all classes without each row, (row, class, ...); only the row's own class changes."""
        left = self.own_class_without(rows, y)
        changed = {name: replace_own_class(a, getattr(left, name), y) for name, a in Tally.arrays(self).items()}
        return replace(self, **changed)  # type: ignore[type-var]

    def find_too_large(self) -> tuple[int, int] | None:
        """Return class and position of a number that is not finite or exceeds MAX_SUM; None if none does.

        Counting, merging, writing and reading files all use this bound, so whatever is counted can be saved and loaded.
        """
        for array in self._bounded_arrays():
            if is_too_large(array):
                c, j = np.argwhere(~(np.abs(array) <= MAX_SUM))[0].tolist()
                return c, j
        return None

    def _bounded_arrays(self) -> Iterator[NDArray]:
        """Yield the (classes, positions) arrays that the bound applies to."""
        yield from Tally.arrays(self).values()

    def imprecise_features(self, scale: Floats) -> Codes:
        """The features whose spread exceeds the (features,) scale of their values so far that doubles lose digits."""
        return np.empty(0, np.intp)

    def replace_feature(self, j: int, other: Self, other_feature: int) -> Self:
        """This tally with a feature of another tally of the same rows."""
        raise NotImplementedError

    def locate_cell(self, cell: int) -> tuple[int, int | None]:
        """The feature, and the level where there are any, at a position of the second axis."""
        return cell, None

    def summarize_feature(self, j: int) -> dict[str, float]:
        """Figures of a feature of a pooled tally for display, by name; an integer is a number of things."""
        raise NotImplementedError

    def arrays(self) -> dict[str, NDArray]:
        """The whole state, without what follows from the spec."""
        return {name: a for name in self.state if (a := getattr(self, name)) is not None}

    def rounding_residuals(self) -> dict[str, NDArray]:
        """What rounding to doubles took from the state: stored in files so that sums stay exact."""
        return {}

    @classmethod
    def residual_shapes(cls, n_classes: int, spec: TallySpec) -> dict[str, tuple[int, int]]:
        return {}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray], spec: TallySpec) -> Self:
        """The tally with these ``arrays`` and, where given, rounding residuals."""
        return cls(**arrays)

    def _map_arrays(self, change: Callable[[NDArray], NDArray]) -> Self:
        changed: Any = {name: change(a) for name, a in Tally.arrays(self).items()}
        return replace(self, **changed)  # type: ignore[type-var]


TALLIES: Registry[Tally] = Registry(
    "candide.tally",
    {
        "cells": "levels.CellTally",
        "comoments": "CoMoments",
        "levels": "LevelTally",
        "moments": "Moments",
        "sums": "Sums",
        "token_counts": "TokenCounts",
    },
)
get_class = TALLIES.get_class


@dataclass(frozen=True)
class TalliedRows:
    """The rows of a dense block as they are tallied."""

    block: NDArray
    spec: TallySpec | None

    def __getitem__(self, rows: Any) -> NDArray:
        return self.block[rows] if self.spec is None else self.spec.tally_values(self.block[rows])


def tally_by_parts(
    tally: Callable[[slice], Any], block: Block, spec: TallySpec | None, *, join: Callable[[Any, Any], Any] = add
) -> Any:
    """The sum, in order, of the tallies of slices of a block's rows: one a thread, shorter where values are copied."""
    is_copied = spec is not None and spec.has_transforms
    step = max(1, _CHUNK_VALUES // max(1, row_width(block)) if is_copied else block.shape[0])

    def work(rows: slice) -> Any:
        starts = range(rows.start, max(rows.stop, rows.start + 1), step)
        return reduce(join, (tally(slice(a, min(a + step, rows.stop))) for a in starts))

    return reduce(join, threads.map_rows(work, block.shape[0], cost=row_width(block)))


@contextmanager
def name_rows_in_errors(numbers: "Sequence[int] | Codes") -> Iterator[None]:
    """Give errors about a row of a selection the number of that row."""
    try:
        yield
    except (CellError, NotCountedError) as error:
        row = int(numbers[error.row or 0])
        if isinstance(error, CellError):
            raise CellError(error.class_code, error.feature, error.reason, row=row) from None
        raise NotCountedError(error.reason, row=row) from None


def refuse_cells(mask: NDArray, reason: str) -> None:
    """Raise if any (class, feature) cell is marked, naming the first, and the row where there is an axis of rows."""
    if mask.any():
        *row, c, j = np.argwhere(mask)[0].tolist()
        raise CellError(c, j, reason, row=row[0] if row else None)


def replace_own_class(classes: Floats, own_values: Floats, y: Codes) -> Floats:
    """(row, class, ...) values of all classes, with that of each row's class replaced by its own."""
    out = np.repeat(classes[None], len(y), axis=0)
    out[np.arange(len(y)), y] = own_values
    return out


def is_too_large(array: NDArray) -> bool:
    return bool(array.size) and not (array.min() >= -MAX_SUM and array.max() <= MAX_SUM)  # NaN fails both


def broadcast_by_class(factor: "float | Floats", ndim: int) -> "float | Floats":
    """A factor, or one for each class (class,), to multiply an array whose first axis is the classes."""
    return factor if np.ndim(factor) == 0 else np.reshape(factor, (-1, *(1,) * (ndim - 1)))


def sum_class_weights(y: Codes, weight: Floats | None, n_classes: int) -> Floats:
    """(classes,) weight of the rows of each class."""
    return np.bincount(y, weight, n_classes).astype(np.float64, copy=False)


def negative_value_error(value: float, *, is_sparse: bool = False) -> InputError:
    where = "a sparse matrix, whose columns are counts" if is_sparse else "data that are counts or amounts"
    remedy = "pass values >= 0, or X.toarray() for columns of measurements" if is_sparse else "pass values >= 0"
    return InputError(f"negative value {value:g} in {where}", value=value, remedy=remedy)


def divide_or_zero(a: NDArray, b: NDArray) -> Floats:
    """a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0)


def move_classes(array: NDArray, classes: Codes, n_classes: int) -> NDArray:
    """Move rows to their new class codes; new classes are zero."""
    out = np.zeros((n_classes, *array.shape[1:]), array.dtype)
    out[classes] = array
    return out


def check_same_shape(a: NDArray, b: NDArray) -> None:
    if a.shape != b.shape:
        what = f"these tallies differ in shape, {a.shape} and {b.shape} (classes, features)"
        raise MergeError(what, remedy="unite their labels and levels first")


def subtract_weights(whole: Floats, part: Floats) -> Floats:
    """whole - part for weights, where part must lie within whole, up to rounding."""
    check_same_shape(whole, part)
    left = subtract_sums(whole, part)
    refuse_removal(left < -1e-9 * np.maximum(whole, 1.0), "more is removed than was counted", part, whole)
    return np.maximum(left, 0.0)


def refuse_removal(
    mask: NDArray, reason: str, part: Floats | None = None, whole: Floats | None = None, *, of_sums: bool = False
) -> None:
    """Raise if any (class, feature) cell is marked, naming the first, and how much is removed of what was counted."""
    if mask.any():
        c, j = np.argwhere(mask)[0].tolist()
        amounts = "" if part is None or whole is None else f", {part[c, j]:g} of {whole[c, j]:g}"
        raise NotCountedError(reason + amounts + " in all" * of_sums, (c, j))


def subtract_sums(whole: Floats, part: Floats) -> Floats:
    """whole - part, and 0 where no more is left than the rounding error of earlier sums."""
    left = whole - part
    return np.where(np.abs(left) <= 1e-12 * np.abs(whole), 0.0, left)
