"""Scoring: the rows of an open source under a model, and against their labels where these are known.

>>> from candide.demo import garden, rows
>>> from candide.engines.base import open_source
>>> plants, herbs = rows(9, seed=0)
>>> with open_source({**plants, "herb": herbs}) as source:
...     [(log_posterior, y, _)] = labelled(source, Fitted(garden()), "herb", lambda *scored: scored).results
>>> log_posterior.shape, y.tolist()
((9, 3), [1, 0, 0, 0, 2, 2, 1, 2, 1])
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.engines.base import Rows, Source, has_columns
from candide.engines.batch import blocks, number_columns, pieces
from candide.engines.count import weights
from candide.engines.temporal import check_temporal
from candide.errors import UnlabelledError
from candide.kernels import threads
from candide.model.fitted import Fitted
from candide.model.input_columns import compare_columns
from candide.model.model import Model, ask
from candide.model.plan import Plan
from candide.model.strangers import Strangers
from candide.rows import matching, remarks
from candide.rows.arrow import arrow_numbers
from candide.rows.blocks import Floats
from candide.rows.labels import Labels
from candide.rows.remarks import Remark, left_out
from candide.rows.spelling import Spelling
from candide.rows.targets import has_label

T = TypeVar("T")
Work = Callable[[Floats, NDArray[np.intp], Floats | None], T]  # log p(class | x), class codes, weights


class InputFormat(Protocol):
    """How a model reads rows: how text writes numbers and dates, and which columns hold dates or times."""

    @property
    def spelled(self) -> Mapping[str, Spelling]: ...
    @property
    def temporal(self) -> Mapping[Any, str]: ...
    @property
    def target(self) -> str | None: ...


def prepare_to_score(
    source: Source, plan: Plan, model: InputFormat, target: str | None = None, stacklevel: int = 3
) -> list[Remark]:
    """Have a source's numbers read, and see that it has the plan's columns: an error if none, a warning if not all.

    A column of other values in the place of dates or times is an error. ``target`` is that of the model if not given.

    What was warned of is given back, for those who show it elsewhere.
    """
    spelled, used = model.spelled, set(plan.columns)
    temporal = {name: kind for name, kind in model.temporal.items() if name in used}
    notes = [
        *source.remarks,
        *source.read_numbers(number_columns(plan, spelled), spelled, temporal),
        *compare_columns(source.name, source.columns, plan.columns, [target or model.target]),
    ]
    check_temporal(source, temporal, spelled)
    remarks.warn(notes, stacklevel)
    return notes


def scored(fitted: Fitted, batch: Any, strangers: Strangers) -> tuple[Floats, Floats]:
    """log p(class | x) and log p(x) of the rows of a batch; ``strangers`` takes note of values never met."""
    rows = blocks(fitted.plan, batch)
    strangers.look(rows)
    return scored_blocks(fitted.plan, fitted.model, rows)


def scored_blocks(plan: Plan, model: Model, rows: list[Any]) -> tuple[Floats, Floats]:
    """The same of rows in blocks; an infinite value is an error that names its column."""
    return ask(Model.scored, model, [part.columns for part in plan.parts], rows)


@dataclass
class LeftOut:
    """Rows that were left out, for they have no label or one that the model does not know: one rule for all sources."""

    labels: Labels  # that the model knows
    missing: int = 0
    unknown: int = 0
    strange: set[Any] = field(default_factory=set)  # some labels that it does not know
    strangers: Strangers | None = None  # values that it does not know
    rows: int = 0  # that were looked at
    kept: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))  # of the last batch, from 0 in all

    def add(self, truth: "Truth") -> None:
        self.kept = self.rows + np.flatnonzero(truth.known)
        self.rows += len(truth.codes)
        self.missing += truth.n_missing
        self.unknown += truth.n_unknown
        self.strange.update(truth.strange)

    def join(self, other: "LeftOut") -> None:
        """Add what another has left out of rows that follow."""
        self.rows += other.rows
        self.missing += other.missing
        self.unknown += other.unknown
        self.strange |= other.strange
        if self.strangers and other.strangers:
            self.strangers.add(other.strangers)

    def tell(self, target: str, stacklevel: int = 2) -> None:
        """Warn of them, and of columns of values that the model does not know, once all rows have been read."""
        remarks.warn(self.remarks(target), stacklevel + 1)

    def remarks(self, target: str) -> list[Remark]:
        """What there is to say of them."""
        met = sorted(map(str, self.strange))
        near = [(name, close) for name in met[:3] for close in get_close_matches(name, map(str, self.labels.values), 1)]
        hint = "did you mean " + ", ".join(f"{close!r} for {name!r}" for name, close in near) + "?" if near else ""
        notes = left_out(self.missing, f"no value of {target!r}", target)
        strange = f"a label the model does not know ({wording.listing(met, 3)})"
        notes += [replace(one, code="label-unknown", remedy=hint) for one in left_out(self.unknown, strange, target)]
        return notes + (self.strangers.remarks() if self.strangers else [])


@dataclass
class Labelled(Generic[T]):
    """What came of each batch of rows that have a label, and which rows were left out."""

    results: Iterator[T]
    left_out: LeftOut
    told: list[Remark]  # of the source, before its rows were read


class Tallied(NamedTuple, Generic[T]):
    """What all rows that have a label give together, None where there is none, and which rows were left out."""

    total: T | None
    left_out: LeftOut


def labelled(source: Source, fitted: Fitted, target: str, work: Work[T], weight: str | None = None) -> Labelled[T]:
    """Score the rows of a source against their labels: ``work`` on each batch, on threads, results in order.

    Rows without a label, and with one that the model does not know, are left out, and counted; an error if all are.
    """
    has_columns(source, target=target, weight=weight)
    told = prepare_to_score(source, fitted.plan, fitted, target, stacklevel=4)
    scan = source.engine.score(source, fitted.plan, [target, *([weight] if weight else [])])
    tallying = Tallying(fitted, work, weight)

    def results() -> Iterator[T]:
        some = False
        for result in tallying.each(scan.batches, out.left_out):
            some = True
            yield result
        if not some:
            raise no_label(source, fitted, target)

    out = Labelled(results(), tallying.left_out(), told)
    return out


def tallied(source: Source, fitted: Fitted, target: str, work: Work[T], weight: str | None = None) -> Tallied[T]:
    """The same where the rows lie, and the sum of what ``work`` makes of them."""
    has_columns(source, target=target, weight=weight)
    prepare_to_score(source, fitted.plan, fitted, target, stacklevel=4)
    rows, tallying = Rows(source, target, weight), Tallying(fitted, work, weight)
    found = source.engine.gather(rows, fitted.plan, tallying, codes=True)
    if found.total is None:
        raise no_label(source, fitted, target)
    return found


def no_label(source: Source, fitted: Fitted, target: str) -> UnlabelledError:
    """The error where no row can be judged."""
    what = f"no row of {source.name} has a label the model knows, {wording.listing(fitted.labels.values)}"
    return UnlabelledError(what, column=target, remedy=f"pass rows whose {target!r} is known")


@dataclass(frozen=True)
class Tallying(Generic[T]):
    """Batches scored against their labels on threads; what some rows give adds to what others give."""

    fitted: Fitted
    work: Work[T]
    weight: str | None = None

    def __call__(self, batches: Iterable[Any], first: int = 0) -> Tallied[T]:
        left_out = self.left_out()
        return Tallied(_sum(self.each(batches, left_out)), left_out)

    def add(self, parts: Sequence[Tallied[T]]) -> Tallied[T]:
        left_out = self.left_out()
        for part in parts:
            left_out.join(part.left_out)
        return Tallied(_sum(part.total for part in parts if part.total is not None), left_out)

    def left_out(self) -> LeftOut:
        return LeftOut(self.fitted.labels, strangers=Strangers(self.fitted.plan))

    def each(self, batches: Iterable[Any], left_out: LeftOut) -> Iterator[T]:
        """What comes of each batch, in order; ``left_out`` takes note of the rows passed over."""
        assert left_out.strangers is not None
        one = partial(self._batch, strangers=left_out.strangers)
        for truth, result in threads.ahead(one, pieces(batches, len(self.fitted.labels))):
            left_out.add(truth)
            if result is not None:
                yield result

    def _batch(self, batch: Any, strangers: Strangers) -> tuple["Truth", T | None]:
        truth = Truth.of(self.fitted.labels, batch, self.weight)
        known = truth.known
        log_posterior, _ = scored(self.fitted, batch, strangers)
        if known.all():
            return truth, self.work(log_posterior, truth.codes, truth.weight) if len(known) else None
        w = None if truth.weight is None else truth.weight[known]
        return truth, self.work(log_posterior[known], truth.codes[known], w) if known.any() else None


def _sum(results: Iterable[T]) -> T | None:
    total: Any = None
    for result in results:
        total = result if total is None else total + result
    return total


@dataclass(frozen=True)
class Truth:
    """The labels of a batch as class codes, however they are spelled, and the weights of its rows."""

    codes: NDArray[np.intp]
    n_classes: int
    weight: Floats | None
    strange: tuple[Any, ...] = ()  # some labels that the model does not know

    @classmethod
    def of(cls, labels: Labels, batch: Any, weight: str | None = None) -> "Truth":
        """Of a batch that keeps the label first, and then the weight."""
        return cls.of_column(
            labels, batch.column("k0"), None if weight is None else weights(weight, batch.column("k1"))
        )

    @classmethod
    def of_column(cls, labels: Labels, column: Any, w: Floats | None = None) -> "Truth":
        """Of a column of labels."""
        codes = matching.codes(labels, column)
        unknown = codes == len(labels)
        if unknown.any():  # a model fitted on arrays may know empty text as a class
            codes = np.where(unknown & ~arrow_numbers(has_label(column)), -1, codes)
        strange = np.flatnonzero(codes == len(labels))[:3]
        return cls(codes, len(labels), w, tuple(column.take(strange).to_pylist()))

    @property
    def known(self) -> NDArray[np.bool_]:
        return (self.codes >= 0) & (self.codes < self.n_classes)

    @property
    def n_missing(self) -> int:
        return int((self.codes < 0).sum())

    @property
    def n_unknown(self) -> int:
        return int((self.codes == self.n_classes).sum())
