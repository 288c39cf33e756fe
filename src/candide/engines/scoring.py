"""Score the rows of an open source, and compare them with their labels where these are known."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import reduce
from operator import add
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_numbers
from candide.data.blocks import Floats
from candide.data.labels import Labels, has_label
from candide.data.notes import Note, issue_warnings, left_out_notes
from candide.engines.base import LabelledSource, Source, check_columns
from candide.engines.batches import check_temporal, make_blocks, number_columns, parse_row_weights, split_batches
from candide.errors import UnlabelledError
from candide.formatting import format_list
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.model.input_columns import UnseenValues, compare_columns
from candide.model.model import Model, apply_model
from candide.model.plan import Plan

T = TypeVar("T")
BatchFunction = Callable[[Floats, NDArray[np.intp], Floats | None], T]  # log p(class | x), class codes, weights


def prepare_to_score(
    source: Source, plan: Plan, fitted: FittedModel, target: str | None = None, stacklevel: int = 3
) -> list[Note]:
    """Set how a source's numbers are read, and check that it has the plan's columns; return the notes warned of.

    It is an error if it has none of the columns, or other values in the place of dates or times.
    """
    formats, used = fitted.text_formats, set(plan.columns)
    temporal = {name: kind for name, kind in fitted.temporal.items() if name in used}
    notes = [
        *source.notes,
        *source.read_numbers(number_columns(plan, formats), formats, temporal),
        *compare_columns(source.name, source.columns, plan.columns, [target or fitted.target]),
    ]
    check_temporal(source, temporal, formats)
    issue_warnings(notes, stacklevel)
    return notes


def score_batch(fitted: FittedModel, batch: Any, unseen_values: UnseenValues) -> tuple[Floats, Floats]:
    """log p(class | x) and log p(x) of the rows of a batch; ``unseen_values`` records values new to the model."""
    rows = make_blocks(fitted.plan, batch)
    unseen_values.observe(rows)
    return score_blocks(fitted.plan, fitted.model, rows)


def score_blocks(plan: Plan, model: Model, rows: list[Any]) -> tuple[Floats, Floats]:
    """The same for rows in blocks; an infinite value is an error that names its column."""
    return apply_model(Model.score_blocks, model, [part.columns for part in plan.parts], rows)


@dataclass(frozen=True)
class TrueClasses:
    """The labels of a batch as class codes, however they are written, and the weights of its rows."""

    codes: NDArray[np.intp]  # -1 where missing, the number of classes where unknown to the model
    n_classes: int
    weight: Floats | None
    unknown_labels: tuple[Any, ...] = ()  # examples

    @classmethod
    def from_batch(cls, labels: Labels, batch: Any, weight: str | None = None) -> "TrueClasses":
        """The classes of a batch that keeps the label first, and then the weight."""
        w = None if weight is None else parse_row_weights(weight, batch.column("k1"))
        return cls.from_column(labels, batch.column("k0"), w)

    @classmethod
    def from_column(cls, labels: Labels, column: Any, w: Floats | None = None) -> "TrueClasses":
        codes = labels.match_codes(column)
        unknown = codes == len(labels)
        if unknown.any():  # a model fitted on arrays may know empty text as a class
            codes = np.where(unknown & ~arrow_numbers(has_label(column)), -1, codes)
        examples = np.flatnonzero(codes == len(labels))[:3]
        return cls(codes, len(labels), w, tuple(column.take(examples).to_pylist()))

    @property
    def is_known(self) -> NDArray[np.bool_]:
        return (self.codes >= 0) & (self.codes < self.n_classes)


@dataclass
class SkippedRows:
    """Rows that were left out because they have no label, or one that is not a class of the model."""

    labels: Labels  # classes of the model
    n_missing: int = 0
    n_unknown: int = 0
    unknown_labels: set[Any] = field(default_factory=set)  # examples
    unseen_values: UnseenValues | None = None  # in columns
    n_rows: int = 0  # that were read
    kept_rows: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))  # of the last batch

    def add(self, truth: TrueClasses) -> None:
        self.kept_rows = self.n_rows + np.flatnonzero(truth.is_known)
        self.n_rows += len(truth.codes)
        self.n_missing += int((truth.codes < 0).sum())
        self.n_unknown += int((truth.codes == truth.n_classes).sum())
        self.unknown_labels.update(truth.unknown_labels)

    def merge(self, other: "SkippedRows") -> None:
        self.n_rows += other.n_rows
        self.n_missing += other.n_missing
        self.n_unknown += other.n_unknown
        self.unknown_labels |= other.unknown_labels
        if self.unseen_values and other.unseen_values:
            self.unseen_values.add(other.unseen_values)

    def warn(self, target: str, stacklevel: int = 2) -> None:
        """Warn of them, and of unseen values, once all rows have been read."""
        issue_warnings(self.notes(target), stacklevel + 1)

    def notes(self, target: str) -> list[Note]:
        labels, classes = sorted(map(str, self.unknown_labels)), list(map(str, self.labels.values))
        near = [f"{close!r} for {name!r}" for name in labels[:3] for close in get_close_matches(name, classes, 1)]
        hint = f"did you mean {', '.join(near)}?" if near else ""
        what = f"a label the model does not know ({format_list(labels, 3)})"
        unknown = left_out_notes(self.n_unknown, what, target)
        notes = left_out_notes(self.n_missing, f"no value of {target!r}", target)
        notes += [replace(note, code="label-unknown", remedy=hint) for note in unknown]
        return notes + (self.unseen_values.notes() if self.unseen_values else [])


class LabelledResults(NamedTuple, Generic[T]):
    """The result of each batch of labelled rows, and the rows that were left out."""

    results: Iterator[T]
    skipped_rows: SkippedRows
    source_notes: list[Note]  # before its rows were read


class LabelledTotal(NamedTuple, Generic[T]):
    """The total of all labelled rows, None where there are none, and the rows that were left out."""

    total: T | None
    skipped_rows: SkippedRows


def score_labelled(
    source: Source, fitted: FittedModel, target: str, work: BatchFunction[T], weight: str | None = None
) -> LabelledResults[T]:
    """Score the rows of a source against their labels: ``work`` on each batch, on threads, results in order.

    Rows without a label, or with an unknown one, are left out and counted; it is an error if all are.
    """
    check_columns(source, target=target, weight=weight)
    notes = prepare_to_score(source, fitted.plan, fitted, target, stacklevel=4)
    rows, scorer = LabelledSource(source, target, weight), LabelledScorer(fitted, work, weight)
    scan, skipped_rows = source.engine.score(source, fitted.plan, rows.extra_columns), scorer.make_skipped_rows()

    def results() -> Iterator[T]:
        has_rows = False
        for result in scorer.score_batches(scan.batches, skipped_rows):
            has_rows = True
            yield result
        if not has_rows:
            raise _no_label_error(rows, fitted)

    return LabelledResults(results(), skipped_rows, notes)


def sum_labelled(
    source: Source, fitted: FittedModel, target: str, work: BatchFunction[T], weight: str | None = None
) -> LabelledTotal[T]:
    """Score the rows where they are, and sum the results of ``work``."""
    check_columns(source, target=target, weight=weight)
    prepare_to_score(source, fitted.plan, fitted, target, stacklevel=4)
    rows, scorer = LabelledSource(source, target, weight), LabelledScorer(fitted, work, weight)
    result = source.engine.gather(rows, fitted.plan, scorer, codes=True)
    if result.total is None:
        raise _no_label_error(rows, fitted)
    return result


def _no_label_error(rows: LabelledSource, fitted: FittedModel) -> UnlabelledError:
    what = f"no row of {rows.source.name} has a label the model knows, {format_list(fitted.labels.values)}"
    return UnlabelledError(what, column=rows.target, remedy=f"pass rows whose {rows.target!r} is known")


@dataclass(frozen=True)
class LabelledScorer(Generic[T]):
    """Scores labelled batches on threads; results add."""

    fitted: FittedModel
    work: BatchFunction[T]
    weight: str | None = None

    def __call__(self, batches: Iterable[Any], first: int = 0) -> LabelledTotal[T]:
        skipped_rows = self.make_skipped_rows()
        return LabelledTotal(_sum_results(self.score_batches(batches, skipped_rows)), skipped_rows)

    def combine(self, parts: Sequence[LabelledTotal[T]]) -> LabelledTotal[T]:
        skipped_rows = self.make_skipped_rows()
        for part in parts:
            skipped_rows.merge(part.skipped_rows)
        return LabelledTotal(_sum_results(part.total for part in parts if part.total is not None), skipped_rows)

    def make_skipped_rows(self) -> SkippedRows:
        return SkippedRows(self.fitted.labels, unseen_values=UnseenValues(self.fitted.plan))

    def score_batches(self, batches: Iterable[Any], skipped_rows: SkippedRows) -> Iterator[T]:
        """The result of each batch, in order; rows that are left out are added to ``skipped_rows``."""
        unseen_values: Any = skipped_rows.unseen_values

        def score(batch: Any) -> tuple[TrueClasses, T | None]:
            truth = TrueClasses.from_batch(self.fitted.labels, batch, self.weight)
            log_posterior, _ = score_batch(self.fitted, batch, unseen_values)
            rows: Any = truth.is_known
            if not rows.any():
                return truth, None
            rows = slice(None) if rows.all() else rows
            w = None if truth.weight is None else truth.weight[rows]
            return truth, self.work(log_posterior[rows], truth.codes[rows], w)

        for truth, result in threads.map_ahead(score, split_batches(batches, len(self.fitted.labels))):
            skipped_rows.add(truth)
            if result is not None:
                yield result


def _sum_results(results: Iterable[Any]) -> Any:
    results = iter(results)
    return reduce(add, results, next(results, None))
