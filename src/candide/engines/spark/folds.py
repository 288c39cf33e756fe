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

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from candide.data.labels import Labels
from candide.data.row_hash import hash_row_numbers
from candide.data.sampling import assign_folds_by_key

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
        n_before = Counter(self.counts_before[part] if part < len(self.counts_before) else {})

        def folds(labels: Any) -> Any:
            known = Labels.from_values(labels)
            codes = known.encode(labels)
            fold = np.zeros(len(codes), np.int16)
            for code, name in enumerate([*map(repr, known.values), _MISSING_CLASS]):
                mine = np.flatnonzero(codes == (code if code < len(known) else -1))
                fold[mine] = _fold_of_places(n_before[name] + np.arange(len(mine)), self.n, self.seed, name)
                n_before[name] += len(mine)
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


_SHUFFLE_NODES = re.compile(r"(?<!Broadcast)Exchange|JDBC")  # in a plan whose rows may come in another order each time
_NODE = re.compile(r"(?m)^(?P<above>[ :|+\-]*)(?:\*\(\d+\) )?(?P<node>(?:(?:File|Batch)Scan )?\w+)(?P<rest>.*)")
_CACHED_SCAN = "InMemoryTableScan"  # of rows that were cached, however they were made
_READ_NODES = {"AdaptiveSparkPlan", "Project", "Filter", "ColumnarToRow", "Union", "Coalesce", "Range"}
_READ_NODES |= {"LocalTableScan", _CACHED_SCAN}
_READ_NODES |= {f"{scan}Scan {form}" for scan in ("File", "Batch") for form in ("parquet", "orc")}
# Where Spark itself cannot be asked; of what is encrypted by a chance of its own it does not tell
_NONDETERMINISTIC = re.compile(r"(?i)\b(rand\w*|uuid|shuffle|reflect|java_method|input_file_\w+|\w+_id|aesEncrypt)\(")
_CLOCK_FUNCTIONS = re.compile(r"\b(now|current_date|(current_|local)time(stamp)?)\(")


def find_shuffle(plan: str) -> str | None:
    """What in a plan has rows come in another order each time."""
    found = _SHUFFLE_NODES.search(plan)
    return found[0] if found else None


def is_only_read(plan: str) -> bool:
    """Whether rows are read from where they are stored, and at most chosen and changed one by one."""
    nodes = list(_nodes(plan))
    return bool(nodes) and all(node in _READ_NODES and not _NONDETERMINISTIC.search(rest) for node, rest in nodes)


def has_clock(analyzed: str) -> bool:
    """Whether a plan, as it is before each query puts its own time there, reads the clock.

    >>> [has_clock(f"Filter (t#1 < {what})") for what in ("now()", "2024-01-01")]
    [True, False]
    """
    return _CLOCK_FUNCTIONS.search(analyzed) is not None


def _nodes(plan: str) -> Iterator[tuple[str, str]]:
    """The nodes of a plan, without those by which rows were made that are stored."""
    stored = None
    for found in _NODE.finditer(plan):
        depth = len(found["above"])
        if stored is not None and depth > stored:
            continue
        stored = depth if found["node"] == _CACHED_SCAN else None
        yield found["node"], found["rest"]
