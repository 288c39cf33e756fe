"""Folds where no row has a number: rows are dealt out as they come, class by class, on every executor.

Of each class the rows in turn make rounds, one row for every fold, and which of a round goes to which fold is drawn.
The first round of a partition begins where the one before it ends, so that a class has as many rows in each fold as in
any other, or one more or less. That takes a pass over the labels before, and rows that come in the same order again.
With a key neither is needed.

>>> parts = [pa.array(labels) for labels in (["a", "b", "a"], ["b"], ["a", "a", "a", "a"])]
>>> dealt = make_stratified_folds("y", 3, 0, [count_classes(labels) for labels in parts])
>>> folds = [dealt.fold_function(part)(labels).to_pylist() for part, labels in enumerate(parts)]
>>> sorted([folds[0][0], folds[0][2], *folds[2]])
[0, 0, 1, 1, 2, 2]
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from candide.data.labels import Labels
from candide.data.sampling import assign_folds_by_key, hash_row_numbers

ClassRowCounts = Mapping[str, int]  # how many rows of each class


class FoldAssignment(Protocol):
    """How rows get their folds, by a column."""

    column: str

    def fold_function(self, part: int) -> Callable[[Any], Any]:
        """What gives the values of a partition in that column, batch by batch in order, their folds."""
        ...


@dataclass(frozen=True)
class KeyFolds(FoldAssignment):
    """By a key."""

    column: str
    n: int
    seed: int

    def fold_function(self, part: int) -> Callable[[Any], Any]:
        return lambda keys: pa.array(assign_folds_by_key(keys, self.n, self.seed, self.column))


@dataclass(frozen=True)
class StratifiedFolds(FoldAssignment):
    """By the class, and by how many rows of it come before those of a partition."""

    column: str
    n: int
    seed: int
    counts_before: Sequence[ClassRowCounts]  # of each partition

    def fold_function(self, part: int) -> Callable[[Any], Any]:
        met = Counter(self.counts_before[part] if part < len(self.counts_before) else {})

        def folds(labels: Any) -> Any:
            known = Labels.from_values(labels)
            codes = known.encode(labels)
            fold = np.zeros(len(codes), np.int16)
            for code, name in enumerate([*map(repr, known.values), _MISSING_CLASS]):
                mine = np.flatnonzero(codes == (code if code < len(known) else -1))
                fold[mine] = _fold_of_places(met[name] + np.arange(len(mine)), self.n, self.seed, name)
                met[name] += len(mine)
            return pa.array(fold)

        return folds


_MISSING_CLASS = ""  # no value is written like this


def count_classes(labels: Any) -> ClassRowCounts:
    """How many rows of each class there are, by what tells classes apart."""
    known = Labels.from_values(labels)
    codes = known.encode(labels)
    n = np.bincount(codes[codes >= 0], minlength=len(known))
    return {**dict(zip(map(repr, known.values), n.tolist(), strict=True)), _MISSING_CLASS: int((codes < 0).sum())}


def make_stratified_folds(column: str, n: int, seed: int, class_counts: Sequence[ClassRowCounts]) -> StratifiedFolds:
    """Rows dealt out in turn, by how many of each class every partition holds."""
    before, sofar = [], Counter[str]()
    for one in class_counts:
        before.append(dict(sofar))
        sofar.update(one)
    return StratifiedFolds(column, n, seed, before)


def _fold_of_places(place: NDArray, n: int, seed: int, name: str) -> NDArray:
    """The fold of the rows at some places among those of their class."""
    if not len(place):
        return place
    salt = int.from_bytes(name.encode()[:6], "big")  # so that small classes do not all begin alike
    each = hash_row_numbers(((place // n)[:, None] * n + np.arange(n) + (salt << 16)).ravel(), seed).reshape(-1, n)
    return (each < np.take_along_axis(each, (place % n)[:, None], axis=1)).sum(axis=1)
