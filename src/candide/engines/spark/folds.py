"""Folds where no row has a number: rows are dealt out as they come, class by class, on every executor.

Of each class the rows in turn make rounds, one row for every fold, and which of a round goes to which fold is drawn.
The first round of a partition begins where the one before it ends, so that a class has as many rows in each fold as in
any other, or one more or less. That takes a pass over the labels before, and rows that come in the same order again.
With a key neither is needed.

>>> parts = [pa.array(labels) for labels in (["a", "b", "a"], ["b"], ["a", "a", "a", "a"])]
>>> dealt = dealt_from("y", 3, 0, [met_in(labels) for labels in parts])
>>> folds = [dealt.of(part)(labels).to_pylist() for part, labels in enumerate(parts)]
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

from candide.rows.labels import Labels
from candide.rows.lots import by_key, lots

Met = Mapping[str, int]  # how many rows of each class


class Dealing(Protocol):
    """How rows get their folds, by a column."""

    column: str

    def of(self, part: int) -> Callable[[Any], Any]:
        """What gives the values of a partition in that column, batch by batch in order, their folds."""
        ...


@dataclass(frozen=True)
class Keyed(Dealing):
    """By a key."""

    column: str
    n: int
    seed: int

    def of(self, part: int) -> Callable[[Any], Any]:
        return lambda keys: pa.array(by_key(keys, self.n, self.seed, self.column))


@dataclass(frozen=True)
class Dealt(Dealing):
    """By the class, and by how many rows of it come before those of a partition."""

    column: str
    n: int
    seed: int
    before: Sequence[Met]  # of each partition

    def of(self, part: int) -> Callable[[Any], Any]:
        met = Counter(self.before[part] if part < len(self.before) else {})

        def folds(labels: Any) -> Any:
            known = Labels.of(labels)
            codes = known.encode(labels)
            fold = np.zeros(len(codes), np.int16)
            for code, name in enumerate([*map(repr, known.values), _ABSENT]):
                mine = np.flatnonzero(codes == (code if code < len(known) else -1))
                fold[mine] = _fold(met[name] + np.arange(len(mine)), self.n, self.seed, name)
                met[name] += len(mine)
            return pa.array(fold)

        return folds


_ABSENT = ""  # no value is written like this


def met_in(labels: Any) -> Met:
    """How many rows of each class there are, by what tells classes apart."""
    known = Labels.of(labels)
    codes = known.encode(labels)
    n = np.bincount(codes[codes >= 0], minlength=len(known))
    return {**dict(zip(map(repr, known.values), n.tolist(), strict=True)), _ABSENT: int((codes < 0).sum())}


def dealt_from(column: str, n: int, seed: int, met: Sequence[Met]) -> Dealt:
    """Rows dealt out in turn, by how many of each class every partition holds."""
    before, sofar = [], Counter[str]()
    for one in met:
        before.append(dict(sofar))
        sofar.update(one)
    return Dealt(column, n, seed, before)


def _fold(place: NDArray, n: int, seed: int, name: str) -> NDArray:
    """The fold of the rows at some places among those of their class."""
    if not len(place):
        return place
    salt = int.from_bytes(name.encode()[:6], "big")  # so that small classes do not all begin alike
    each = lots(((place // n)[:, None] * n + np.arange(n) + (salt << 16)).ravel(), seed).reshape(-1, n)
    return (each < np.take_along_axis(each, (place % n)[:, None], axis=1)).sum(axis=1)
