"""Checks of a tally: a commutative monoid with a partial inverse, independent of how rows are divided and weighted."""

import pickle
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from candide.data.documents import Documents
from candide.encoding import Encoding
from candide.errors import InputError, MergeError, NotCountedError
from candide.events import Support
from candide.kernels import threads
from candide.tally import TALLIES, Tally, TallySpec
from candide.testing import checks
from candide.testing.checks import Example


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
    is_text, words = encoding.block_kind == "documents", np.array(["ant"], object)
    if draw is None and is_text:
        draw = checks.draw_documents
    elif draw is None:
        try:
            encoding.learn(words).read(words)
            draw = checks.draw_categories
        except InputError:
            draw = checks.NumberColumns(Support(0.0 if encoding.invalid_mask(np.array([-1.0])).any() else -np.inf))
    examples = checks.make_examples(draw, seed, 1 if is_text else 3)
    trials = {name: TallyTrial(kind, encoding, frozenset(keep), rows) for name, rows in examples.items()}
    checks.run_checks(TALLY_CHECKS, trials, title)


@dataclass(frozen=True, eq=False)
class TallyTrial:
    kind: Any
    encoding: Encoding
    keep: frozenset[str]
    rows: Example

    @cached_property
    def spec(self) -> TallySpec:
        name = next((name for name in TALLIES if TALLIES[name] is self.kind), self.kind.__name__.lower())
        return TallySpec(name, tuple(self.encoding.learn(column) for column in self.rows.columns), self.keep)

    def count(self, rows: Example | None = None, spec: TallySpec | None = None) -> Any:
        """Return the tally of rows, by default with the encodings of all rows."""
        rows, spec = self.rows if rows is None else rows, spec or self.spec
        if spec.encodings[0].block_kind == "documents":
            block: Any = spec.encodings[0].read(Documents.from_column(rows.columns[0].tolist()))
        else:
            block = np.column_stack([e.read(column) for column, e in zip(rows.columns, spec.encodings, strict=True)])
        return self.kind.from_rows(block, rows.y, rows.weight, n_classes=rows.n_classes, spec=spec)

    def empty(self) -> Any:
        return self.kind.empty(self.rows.n_classes, self.spec)

    def check_same(self, got: Any, expected: Any, whole: Any = None) -> None:
        checks.check_same_state(got, expected, self.rows.rel, whole)


def check_identity(trial: TallyTrial) -> None:
    """The empty tally is the identity."""
    tally, empty = trial.count(), trial.empty()
    for same in (tally + empty, empty + tally, tally - empty):
        trial.check_same(same, tally)
    trial.check_same(trial.count(trial.rows.take(slice(0, 0))), empty)


def check_addition(trial: TallyTrial) -> None:
    """Addition commutes and associates, and chunks in any order add up to the whole."""
    n = len(trial.rows)
    parts = [trial.count(trial.rows.take(slice(a, b))) for a, b in pairwise([0, n // 4, n // 4, n // 2, n])]
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
    left, rows = a + b, trial.rows.each_row()
    for i in np.random.default_rng(0).permutation(len(rows)).tolist():
        left = left - trial.count(rows[i])
    trial.check_same(left, trial.empty(), whole=a + b)


def check_removal_error(trial: TallyTrial) -> None:
    """Removing what was never counted is an error."""
    tally = trial.count()
    if any(s.dtype.kind == "f" and s.any() for s in tally.arrays().values()):
        with suppress(NotCountedError):
            raise AssertionError(f"more was removed than was counted, and {tally - (tally + tally)} is left")


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
    pooled = replace(trial.rows, y=np.zeros_like(trial.rows.y), n_classes=1)
    trial.check_same(trial.count().pool(), trial.count(pooled))


def check_label_union(trial: TallyTrial) -> None:
    """Moving classes follows a union of labels."""
    k = trial.rows.n_classes + 2
    place = np.arange(trial.rows.n_classes, dtype=np.intp)[::-1].copy() + 1
    moved = replace(trial.rows, y=place[trial.rows.y], n_classes=k)
    trial.check_same(trial.count().remap(place, k), trial.count(moved))


def check_level_union(trial: TallyTrial) -> None:
    """Moving levels follows a union of encodings."""
    rows, other = trial.rows.split()
    encodings, others = (tuple(trial.encoding.learn(c) for c in part.columns) for part in (rows, other))
    try:
        united, moves = zip(*(a.union(b)[:2] for a, b in zip(encodings, others, strict=True)), strict=True)
    except MergeError:
        return  # these do not unite
    same_classes = np.arange(trial.rows.n_classes, dtype=np.intp)
    tally = trial.count(rows, replace(trial.spec, encodings=encodings))
    moved = tally.remap(same_classes, trial.rows.n_classes, list(moves))
    trial.check_same(moved, trial.count(rows, replace(trial.spec, encodings=united)))


def check_column_subset(trial: TallyTrial) -> None:
    """Some of the columns are counted as they are by themselves."""
    missing = [[x is None for x in c] if c.dtype == object else np.isnan(c) for c in trial.rows.columns]
    rows = trial.rows.take(~np.any(np.array(missing, bool), axis=0))  # some kinds count complete rows only
    chosen = np.array([2, 0])[: len(rows.columns)] % len(rows.columns)
    spec = replace(trial.spec, encodings=tuple(trial.spec.encodings[j] for j in chosen))
    subset = replace(rows, columns=tuple(rows.columns[j] for j in chosen))
    trial.check_same(trial.count(rows).select_features(chosen), trial.count(subset, spec))


def check_state(trial: TallyTrial) -> None:
    """Arrays hold the whole state, and it can be pickled."""
    tally = trial.count()
    for state in (tally.arrays(), pickle.loads(pickle.dumps(tally.arrays()))):
        again = type(tally).from_arrays({name: a.copy() for name, a in state.items()}, trial.spec)
        trial.check_same(again, tally)
        trial.check_same(again + tally, tally + tally)


def check_immutability(trial: TallyTrial) -> None:
    """No operation changes its operands."""
    a, b = (trial.count(part) for part in trial.rows.split())
    before = [{name: s.copy() for name, s in t.arrays().items()} for t in (a, b)]
    _ = (a + b) - b, a.scale(0.5), a.pool()
    for tally, copies in zip((a, b), before, strict=True):
        for name, s in tally.arrays().items():
            assert np.array_equal(s, copies[name]), f"{name} was changed"


def check_threads(trial: TallyTrial) -> None:
    """The number of threads does not matter."""
    alone = trial.count()
    with threads.force_parts(3):
        trial.check_same(trial.count(), alone)


def check_shape_error(trial: TallyTrial) -> None:
    """Tallies of other numbers of classes do not add."""
    k = trial.rows.n_classes
    with suppress(MergeError):
        trial.count() + trial.kind.empty(k + 1, trial.spec)
        raise AssertionError(f"{k} and {k + 1} classes were added")


TALLY_CHECKS = [
    check_identity, check_addition, check_subtraction, check_removal_error, check_weights, check_scaling,
    check_pooling, check_label_union, check_level_union, check_column_subset, check_state, check_immutability,
    check_threads, check_shape_error,
]  # fmt: skip
