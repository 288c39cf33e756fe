"""The laws of a tally: a commutative monoid with a partial inverse, that does not care how rows are cut or weighed."""

import pickle
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.encode import Encoding
from candide.errors import InputError, MergeError, NotWithinError
from candide.kernels import threads
from candide.rows.documents import Documents
from candide.tally import KINDS, Spec, Tally
from candide.testing.examples import Drawn, Example, Numbers, Texts, Words, examples
from candide.testing.laws import hold, same_state


def check_tally(
    kind: type[Tally] | str,
    encoding: Encoding | None = None,
    keep: Collection[str] = (),
    draw: Any = None,
    *,
    seed: int = 0,
) -> None:
    """Check that a tally keeps the laws; the first that it breaks is an AssertionError that says on which rows.

    ``encoding`` is that of its columns, if it is not the kind's own, and ``keep`` what it keeps beyond its sums.
    ``draw(rng, y)`` gives a column with one value for each class code, where others than the usual are needed.

    >>> check_tally("sums", keep={"log_factorial"}, draw=lambda rng, y: rng.poisson(1.0 + y))

    An own tally, with a mistake in it:

    >>> from candide.tally import Sums
    >>> class Careless(Sums):
    ...     def scale(self, factor):
    ...         return self
    >>> check_tally(Careless)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: Careless: scaling a tally is scaling its weights: fails on plain rows: n: 14.0 instead of 7.0 ...
    """
    title, kind = (kind, KINDS[kind]) if isinstance(kind, str) else (kind.__name__, kind)
    encoding = kind.encoding if encoding is None else encoding
    values = values_of(encoding) if draw is None else Drawn(draw)
    width = 1 if encoding.holds == "documents" else 3
    found = examples(values, seed, width)
    hold(TALLY_LAWS, {name: Trial(kind, encoding, frozenset(keep), rows) for name, rows in found.items()}, title)


def values_of(encoding: Encoding) -> Any:
    """What a column may hold that is encoded so."""
    if encoding.holds == "documents":
        return Texts()
    words = np.array(["ant"], object)
    try:
        encoding.learn(words).read(words)
        return Words()
    except InputError:
        pass
    return Numbers(low=0.0) if encoding.outside(np.array([-1.0])).any() else Numbers()


@dataclass(frozen=True, eq=False)
class Trial:
    """A kind of tally on some rows."""

    kind: Any
    encoding: Encoding
    keep: frozenset[str]
    rows: Example

    @property
    def spec(self) -> Spec:
        name = next((name for name in KINDS if KINDS[name] is self.kind), self.kind.__name__.lower())
        return Spec(name, tuple(self.encoding.learn(column) for column in self.rows.columns), self.keep)

    def count(self, rows: Example | None = None, spec: Spec | None = None) -> Any:
        """The tally of some rows, under the encoding that all of them gave."""
        rows, spec = self.rows if rows is None else rows, self.spec if spec is None else spec
        block = block_of(rows.columns, spec.encodings)
        return self.kind.of(block, rows.y, rows.weight, n_classes=rows.n_classes, spec=spec)

    def empty(self) -> Any:
        return self.kind.empty(self.rows.n_classes, self.spec)

    def same(self, got: Any, want: Any, whole: Any = None) -> None:
        same_state(got, want, self.rows.rel, whole)


def block_of(columns: Sequence[NDArray], encodings: Sequence[Encoding]) -> Any:
    """Columns as one block."""
    if encodings[0].holds == "documents":
        return encodings[0].read(Documents.of(columns[0].tolist()))
    return np.column_stack([encoding.read(column) for column, encoding in zip(columns, encodings, strict=True)])


def identity(trial: Trial) -> None:
    """The empty tally is the identity."""
    tally, empty = trial.count(), trial.empty()
    for same in (tally + empty, empty + tally, tally - empty):
        trial.same(same, tally)
    trial.same(trial.count(trial.rows.at(slice(0, 0))), empty)


def addition(trial: Trial) -> None:
    """Addition commutes and associates, and chunks in any order add up to the whole."""
    edges = [0, len(trial.rows) // 4, len(trial.rows) // 4, len(trial.rows) // 2, len(trial.rows)]
    parts = [trial.count(trial.rows.at(slice(a, b))) for a, b in pairwise(edges)]
    a, b, c, d = parts
    trial.same(c + d, d + c)
    trial.same((a + c) + d, a + (c + d))
    for order in (parts, parts[::-1], [c, a, d, b]):
        trial.same(reduce(add, order), trial.count())


def subtraction(trial: Trial) -> None:
    """Subtraction undoes addition, and all without all is nothing."""
    a, b = (trial.count(part) for part in trial.rows.parts())
    trial.same((a + b) - b, a, whole=a + b)
    trial.same((a + b) - (a + b), trial.empty())
    left = a + b
    for i in np.random.default_rng(0).permutation(len(trial.rows)).tolist():
        left = left - trial.count(trial.rows.at(slice(i, i + 1)))
    trial.same(left, trial.empty(), whole=a + b)


def within(trial: Trial) -> None:
    """Removing what was never counted is an error."""
    tally = trial.count()
    if not _weight(tally):
        return
    try:
        left = tally - (tally + tally)
    except NotWithinError:
        return
    raise AssertionError(f"more was removed than was counted, and {left} is left")


def weights(trial: Trial) -> None:
    """A weight of k is k copies, and a row without weight is absent."""
    times = np.random.default_rng(1).integers(0, 4, len(trial.rows))
    copies = trial.rows.at(np.repeat(np.arange(len(times)), times)).weighing(None)
    weighed = trial.rows.weighing(times.astype(float))
    trial.same(trial.count(weighed), trial.count(copies))
    trial.same(trial.count(weighed), trial.count(weighed.at(times > 0)))


def scaling(trial: Trial) -> None:
    """Scaling a tally is scaling its weights."""
    ones = np.ones(len(trial.rows)) if trial.rows.weight is None else trial.rows.weight
    for factor in (0.5, 3.0):
        trial.same(trial.count().scale(factor), trial.count(trial.rows.weighing(ones * factor)))
    trial.same(trial.count().scale(0.0), trial.empty())


def pooling(trial: Trial) -> None:
    """Pooling is counting all rows as one class."""
    one = replace(trial.rows, y=np.zeros_like(trial.rows.y), n_classes=1)
    trial.same(trial.count().pool(), trial.count(one))


def labels(trial: Trial) -> None:
    """Moving classes follows a union of labels."""
    k = trial.rows.n_classes + 2
    place = np.arange(trial.rows.n_classes, dtype=np.intp)[::-1].copy() + 1
    trial.same(trial.count().remap(place, k), trial.count(replace(trial.rows, y=place[trial.rows.y], n_classes=k)))


def levels(trial: Trial) -> None:
    """Moving levels follows a union of encodings."""
    one, other = trial.rows.parts()
    mine, theirs = (tuple(trial.encoding.learn(c) for c in rows.columns) for rows in (one, other))
    try:
        united = [a.union(b) for a, b in zip(mine, theirs, strict=True)]
    except MergeError:
        return  # it says that these do not unite
    spec = replace(trial.spec, encodings=mine)
    both = replace(trial.spec, encodings=tuple(u[0] for u in united))
    same_classes = np.arange(trial.rows.n_classes, dtype=np.intp)
    moved = trial.count(one, spec).remap(same_classes, trial.rows.n_classes, [u[1] for u in united])
    trial.same(moved, trial.count(one, both))


def columns(trial: Trial) -> None:
    """Some of the columns are counted as they are by themselves."""
    complete = ~np.any([_absent(column) for column in trial.rows.columns], axis=0)  # some kinds count no others
    rows, some = trial.rows.at(complete), np.array([2, 0])[: len(trial.rows.columns)] % len(trial.rows.columns)
    spec = replace(trial.spec, encodings=tuple(trial.spec.encodings[j] for j in some))
    chosen = replace(rows, columns=tuple(rows.columns[j] for j in some))
    trial.same(trial.count(rows).only(some), trial.count(chosen, spec))


def state(trial: Trial) -> None:
    """Arrays hold the whole state, and it can be pickled."""
    tally = trial.count()
    again = type(tally).from_arrays({name: a.copy() for name, a in tally.arrays().items()}, trial.spec)
    trial.same(again, tally)
    trial.same(again + tally, tally + tally)
    trial.same(pickle.loads(pickle.dumps(tally.arrays())) and again, tally)


def values(trial: Trial) -> None:
    """No operation changes its operands."""
    a, b = (trial.count(part) for part in trial.rows.parts())
    before = [{name: s.copy() for name, s in t.arrays().items()} for t in (a, b)]
    _ = (a + b) - b, a.scale(0.5), a.pool()
    for tally, kept in zip((a, b), before, strict=True):
        for name, s in tally.arrays().items():
            assert np.array_equal(s, kept[name]), f"{name} was changed"


def division(trial: Trial) -> None:
    """The number of threads does not matter."""
    alone = trial.count()
    with threads.divided(3):
        trial.same(trial.count(), alone)


def shapes(trial: Trial) -> None:
    """Tallies of other numbers of classes do not add."""
    other = trial.kind.empty(trial.rows.n_classes + 1, trial.spec)
    try:
        trial.count() + other
    except MergeError:
        return
    raise AssertionError(f"{trial.rows.n_classes} and {trial.rows.n_classes + 1} classes were added")


TALLY_LAWS = [
    identity,
    addition,
    subtraction,
    within,
    weights,
    scaling,
    pooling,
    labels,
    levels,
    columns,
    state,
    values,
    division,
    shapes,
]


def _absent(column: NDArray) -> NDArray:
    return np.array([x is None for x in column], bool) if column.dtype == object else np.isnan(column)


def _weight(tally: Any) -> bool:
    return any(s.dtype.kind == "f" and s.any() for s in tally.arrays().values())
