"""Checks of a tally: a commutative monoid with a partial inverse, independent of how rows are divided and weighted."""

import pickle
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.documents import Documents
from candide.encoding import Encoding
from candide.errors import InputError, MergeError, NotCountedError
from candide.kernels import threads
from candide.tally import TALLIES, Tally, TallySpec
from candide.testing.checks import (
    CategoryColumns,
    CustomColumns,
    DocumentColumns,
    Example,
    NumberColumns,
    check_same_state,
    examples,
    run_checks,
)


def check_tally(
    kind: type[Tally] | str,
    encoding: Encoding | None = None,
    keep: Collection[str] = (),
    draw: Any = None,
    *,
    seed: int = 0,
) -> None:
    """Check the properties of a tally; the first violation is an AssertionError that names the rows.

    ``encoding`` is that of its columns, if it is not the kind's own, and ``keep`` what it keeps beyond its sums.
    ``draw(rng, y)`` gives a column with one value for each class code, where others than the usual are needed.

    >>> check_tally("sums", keep={"log_factorial"}, draw=lambda rng, y: rng.poisson(1.0 + y))

    A tally of your own, with a mistake in it:

    >>> from candide.tally import Sums
    >>> class Careless(Sums):
    ...     def scale(self, factor):
    ...         return self
    >>> check_tally(Careless)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: Careless: scaling a tally is scaling its weights: fails on plain rows: n: 14.0 instead of 7.0 ...
    """
    title, kind = (kind, TALLIES[kind]) if isinstance(kind, str) else (kind.__name__, kind)
    encoding = kind.encoding if encoding is None else encoding
    values = example_columns(encoding) if draw is None else CustomColumns(draw)
    width = 1 if encoding.block_kind == "documents" else 3
    found = examples(values, seed, width)
    trials = {name: TallyTrial(kind, encoding, frozenset(keep), rows) for name, rows in found.items()}
    run_checks(TALLY_CHECKS, trials, title)


def example_columns(encoding: Encoding) -> Any:
    """What a column may hold that is encoded so."""
    if encoding.block_kind == "documents":
        return DocumentColumns()
    words = np.array(["ant"], object)
    try:
        encoding.learn(words).read(words)
        return CategoryColumns()
    except InputError:
        pass
    return NumberColumns(low=0.0) if encoding.invalid_mask(np.array([-1.0])).any() else NumberColumns()


@dataclass(frozen=True, eq=False)
class TallyTrial:
    """A kind of tally on some rows."""

    kind: Any
    encoding: Encoding
    keep: frozenset[str]
    rows: Example

    @property
    def spec(self) -> TallySpec:
        name = next((name for name in TALLIES if TALLIES[name] is self.kind), self.kind.__name__.lower())
        return TallySpec(name, tuple(self.encoding.learn(column) for column in self.rows.columns), self.keep)

    def count(self, rows: Example | None = None, spec: TallySpec | None = None) -> Any:
        """The tally of some rows, under the encoding that all of them gave."""
        rows, spec = self.rows if rows is None else rows, self.spec if spec is None else spec
        block = make_block(rows.columns, spec.encodings)
        return self.kind.from_rows(block, rows.y, rows.weight, n_classes=rows.n_classes, spec=spec)

    def empty(self) -> Any:
        return self.kind.empty(self.rows.n_classes, self.spec)

    def check_same(self, got: Any, want: Any, whole: Any = None) -> None:
        check_same_state(got, want, self.rows.rel, whole)


def make_block(columns: Sequence[NDArray], encodings: Sequence[Encoding]) -> Any:
    """Columns as one block."""
    if encodings[0].block_kind == "documents":
        return encodings[0].read(Documents.from_column(columns[0].tolist()))
    return np.column_stack([encoding.read(column) for column, encoding in zip(columns, encodings, strict=True)])


def check_identity(trial: TallyTrial) -> None:
    """The empty tally is the identity."""
    tally, empty = trial.count(), trial.empty()
    for same in (tally + empty, empty + tally, tally - empty):
        trial.check_same(same, tally)
    trial.check_same(trial.count(trial.rows.take(slice(0, 0))), empty)


def check_addition(trial: TallyTrial) -> None:
    """Addition commutes and associates, and chunks in any order add up to the whole."""
    edges = [0, len(trial.rows) // 4, len(trial.rows) // 4, len(trial.rows) // 2, len(trial.rows)]
    parts = [trial.count(trial.rows.take(slice(a, b))) for a, b in pairwise(edges)]
    a, b, c, d = parts
    trial.check_same(c + d, d + c)
    trial.check_same((a + c) + d, a + (c + d))
    for order in (parts, parts[::-1], [c, a, d, b]):
        trial.check_same(reduce(add, order), trial.count())


def check_subtraction(trial: TallyTrial) -> None:
    """Subtraction undoes addition, and all without all is nothing."""
    a, b = (trial.count(part) for part in trial.rows.split())
    trial.check_same((a + b) - b, a, whole=a + b)
    trial.check_same((a + b) - (a + b), trial.empty())
    left = a + b
    for i in np.random.default_rng(0).permutation(len(trial.rows)).tolist():
        left = left - trial.count(trial.rows.take(slice(i, i + 1)))
    trial.check_same(left, trial.empty(), whole=a + b)


def check_removal_error(trial: TallyTrial) -> None:
    """Removing what was never counted is an error."""
    tally = trial.count()
    if not _has_weight(tally):
        return
    try:
        left = tally - (tally + tally)
    except NotCountedError:
        return
    raise AssertionError(f"more was removed than was counted, and {left} is left")


def check_weights(trial: TallyTrial) -> None:
    """A weight of k is k copies, and a row without weight is absent."""
    times = np.random.default_rng(1).integers(0, 4, len(trial.rows))
    copies = trial.rows.take(np.repeat(np.arange(len(times)), times)).with_weight(None)
    weighted = trial.rows.with_weight(times.astype(float))
    trial.check_same(trial.count(weighted), trial.count(copies))
    trial.check_same(trial.count(weighted), trial.count(weighted.take(times > 0)))


def check_scaling(trial: TallyTrial) -> None:
    """Scaling a tally is scaling its weights."""
    ones = np.ones(len(trial.rows)) if trial.rows.weight is None else trial.rows.weight
    for factor in (0.5, 3.0):
        trial.check_same(trial.count().scale(factor), trial.count(trial.rows.with_weight(ones * factor)))
    trial.check_same(trial.count().scale(0.0), trial.empty())


def check_pooling(trial: TallyTrial) -> None:
    """Pooling is counting all rows as one class."""
    one = replace(trial.rows, y=np.zeros_like(trial.rows.y), n_classes=1)
    trial.check_same(trial.count().pool(), trial.count(one))


def check_label_union(trial: TallyTrial) -> None:
    """Moving classes follows a union of labels."""
    k = trial.rows.n_classes + 2
    place = np.arange(trial.rows.n_classes, dtype=np.intp)[::-1].copy() + 1
    moved = replace(trial.rows, y=place[trial.rows.y], n_classes=k)
    trial.check_same(trial.count().remap(place, k), trial.count(moved))


def check_level_union(trial: TallyTrial) -> None:
    """Moving levels follows a union of encodings."""
    one, other = trial.rows.split()
    mine, theirs = (tuple(trial.encoding.learn(c) for c in rows.columns) for rows in (one, other))
    try:
        united = [a.union(b) for a, b in zip(mine, theirs, strict=True)]
    except MergeError:
        return  # these do not unite
    spec = replace(trial.spec, encodings=mine)
    both = replace(trial.spec, encodings=tuple(u[0] for u in united))
    same_classes = np.arange(trial.rows.n_classes, dtype=np.intp)
    moved = trial.count(one, spec).remap(same_classes, trial.rows.n_classes, [u[1] for u in united])
    trial.check_same(moved, trial.count(one, both))


def check_column_subset(trial: TallyTrial) -> None:
    """Some of the columns are counted as they are by themselves."""
    complete = ~np.any([_is_missing(column) for column in trial.rows.columns], axis=0)  # some kinds count no others
    rows, some = trial.rows.take(complete), np.array([2, 0])[: len(trial.rows.columns)] % len(trial.rows.columns)
    spec = replace(trial.spec, encodings=tuple(trial.spec.encodings[j] for j in some))
    chosen = replace(rows, columns=tuple(rows.columns[j] for j in some))
    trial.check_same(trial.count(rows).select_features(some), trial.count(chosen, spec))


def check_state(trial: TallyTrial) -> None:
    """Arrays hold the whole state, and it can be pickled."""
    tally = trial.count()
    again = type(tally).from_arrays({name: a.copy() for name, a in tally.arrays().items()}, trial.spec)
    trial.check_same(again, tally)
    trial.check_same(again + tally, tally + tally)
    trial.check_same(pickle.loads(pickle.dumps(tally.arrays())) and again, tally)


def check_immutability(trial: TallyTrial) -> None:
    """No operation changes its operands."""
    a, b = (trial.count(part) for part in trial.rows.split())
    before = [{name: s.copy() for name, s in t.arrays().items()} for t in (a, b)]
    _ = (a + b) - b, a.scale(0.5), a.pool()
    for tally, kept in zip((a, b), before, strict=True):
        for name, s in tally.arrays().items():
            assert np.array_equal(s, kept[name]), f"{name} was changed"


def check_threads(trial: TallyTrial) -> None:
    """The number of threads does not matter."""
    alone = trial.count()
    with threads.force_parts(3):
        trial.check_same(trial.count(), alone)


def check_shape_error(trial: TallyTrial) -> None:
    """Tallies of other numbers of classes do not add."""
    other = trial.kind.empty(trial.rows.n_classes + 1, trial.spec)
    try:
        trial.count() + other
    except MergeError:
        return
    raise AssertionError(f"{trial.rows.n_classes} and {trial.rows.n_classes + 1} classes were added")


TALLY_CHECKS = [
    check_identity,
    check_addition,
    check_subtraction,
    check_removal_error,
    check_weights,
    check_scaling,
    check_pooling,
    check_label_union,
    check_level_union,
    check_column_subset,
    check_state,
    check_immutability,
    check_threads,
    check_shape_error,
]


def _is_missing(column: NDArray) -> NDArray:
    return np.array([x is None for x in column], bool) if column.dtype == object else np.isnan(column)


def _has_weight(tally: Any) -> bool:
    return any(s.dtype.kind == "f" and s.any() for s in tally.arrays().values())
