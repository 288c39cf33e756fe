"""Count rows into a model, take them out, move a window over them, learn its weights again, and add models.

A model given as a path is changed in its file, under a lock: rows are counted first, which may take long, and the lock
is held only while the counts are added or removed. The weights of terms are learned again from the new rows if the rows
have doubled since they were learned, or some were taken out, and the new rows are as many as they were learned from;
otherwise a note recommends ``reweight``.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, NamedTuple

from candide import formatting
from candide.data.labels import Labels
from candide.data.notes import Note, issue_warnings
from candide.data.sample import Sample
from candide.engines.base import LabelledSource, PreparedSource, Watch, no_progress, open_source
from candide.engines.reading import ReadOptions, make_read_options
from candide.errors import InputError, MergeError
from candide.files import check_output
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.store.container import is_model_file
from candide.store.file import ModelLike, load_fitted, resolve_target, save, update_file
from candide.weighted.fit import check_weighted, reweight_model, stale_notes

_UNVERIFIED_NOTE = Note(
    "not-proved",
    "the counts allow these rows, but cannot prove that these very rows were counted",
    remedy="pass rows as they were when they were counted, each once",
)


class RowsToCount(NamedTuple):
    """Labelled rows of a source, and how they are read."""

    data: Any
    target: str | None = None
    weight: str | None = None
    reading: ReadOptions | None = None
    watch: Watch = no_progress


@dataclass(frozen=True)
class NewClass:
    """A class that a model did not have, the weight of its rows, and the known class that may be meant."""

    label: Any
    weight: float
    did_you_mean: Any = None

    def __str__(self) -> str:
        hint = "" if self.did_you_mean is None else f"; did you mean {self.did_you_mean!r}?"
        return f"new class {self.label!r} ({formatting.format_count(self.weight)}){hint}"


@dataclass(frozen=True)
class UpdateResult:
    """A changed model, the number of rows that went in or out, the new classes, and notes."""

    fitted: FittedModel
    n_rows: int
    new_classes: list[NewClass] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def note_texts(self) -> list[str]:
        return [str(note) for note in self.notes]


@dataclass(frozen=True)
class Destination:
    """The model to change, and the file to write: ``out``, or its own file if the model is a path."""

    model: ModelLike
    out: str | os.PathLike | None = None
    force: bool = False
    wait: float = 30.0  # seconds to wait for the lock of the file

    def load(self, *data: Any) -> FittedModel:
        """Return the model; reject an output path that is one of the inputs before any work is done."""
        check_output(self.out, *data, self.model, is_own_file=is_model_file, force=self.force)
        return load_fitted(self.model)

    def apply(
        self,
        change: Callable[[FittedModel], FittedModel],
        n_rows: int,
        counts: ModelCounts | None = None,
        notes: Sequence[Note] = (),
    ) -> UpdateResult:
        """Change the model and write it; ``counts`` are those of the rows, which may have new classes."""
        new_classes: list[NewClass] = []

        def apply(before: FittedModel) -> FittedModel:
            new_classes[:] = [] if counts is None else _new_classes(counts, before.labels)
            return change(before)

        if isinstance(self.model, str | os.PathLike) and self.out is None:
            new = update_file(self.model, apply, wait=self.wait)
        else:
            new = apply(load_fitted(self.model))
        if self.out is not None:
            save(new, self.out, force=self.force)
        notes = [*notes, *(Note("new-class", str(new_class)) for new_class in new_classes)]
        if new.counts.class_weight.any():
            notes += stale_notes(new)
        else:
            text = f"{_model_name(self.model if self.out is None else self.out)} has no rows left: it cannot predict"
            notes.append(Note("no-rows", text, remedy="count rows into it, or remove it"))
        return UpdateResult(new, n_rows, new_classes, notes)


def add_rows(destination: Destination, rows: RowsToCount, scale: float = 1.0) -> UpdateResult:
    """Count rows into a model, whose earlier counts are multiplied by ``scale``."""
    counts, sample, notes = _count_for_model(destination.load(rows.data), rows, has_new_rows=True)

    def change(fitted: FittedModel) -> FittedModel:
        return _reweight_if_due(fitted.scale(scale).add_counts(counts), sample, counts)

    return destination.apply(change, counts.n_rows, counts, notes)


def remove_rows(destination: Destination, rows: RowsToCount) -> UpdateResult:
    """Take rows out of a model; rows that the counts rule out are an error, and the model stays as it is."""
    counts, _, notes = _count_for_model(destination.load(rows.data), rows)
    result = destination.apply(lambda fitted: fitted.subtract_counts(counts), counts.n_rows, counts, notes)
    if result.fitted.counts.class_weight.any():  # otherwise everything that was counted has gone
        result.notes.append(_UNVERIFIED_NOTE)
    return result


def replace_rows(destination: Destination, rows: RowsToCount, old_data: Any) -> UpdateResult:
    """Count new rows in and old rows out, in one change of the model."""
    fitted = destination.load(rows.data, old_data)
    new, sample, notes = _count_for_model(fitted, rows, has_new_rows=True)
    old, _, old_notes = _count_for_model(fitted, rows._replace(data=old_data))

    def change(before: FittedModel) -> FittedModel:
        return _reweight_if_due(before.add_counts(new).subtract_counts(old), sample, new)

    return destination.apply(change, new.n_rows + old.n_rows, new, [*notes, *old_notes])


def relearn_weights(
    destination: Destination, rows: RowsToCount, *, are_new: bool, max_rows: int, seed: int
) -> UpdateResult:
    """Learn the weights of terms again from rows against the current counts; each row is left out while it is used."""
    from candide.engines.draw_sample import draw_sample

    fitted = destination.load(rows.data)
    check_weighted(fitted)
    with _open_for_model(fitted, rows) as (source, prepared), rows.watch(source.source, "reading"):
        sample = draw_sample(source, prepared, rows=max_rows, seed=seed)
    return destination.apply(partial(reweight_model, sample=sample, new=are_new), len(sample))


def add_models(
    models: Sequence[ModelLike], out: str | os.PathLike | None, detail: str | None, force: bool
) -> FittedModel:
    """Return the model of all rows of several models; classes and levels are united."""
    if isinstance(models, str | os.PathLike) or not models:
        raise InputError("expected at least one model to merge", value=models, remedy="pass a list of models")
    check_output(out, *models, is_own_file=is_model_file, force=force)

    def plus(total: FittedModel, model: ModelLike) -> FittedModel:
        added = load_fitted(model)
        try:
            return total + added
        except MergeError as error:
            error.problem = f"{_model_name(models[0])} and {_model_name(model)}: {error.problem}"
            error.remedy = _fit_like_command(models[0], model, added) or error.remedy
            raise

    total = reduce(plus, models[1:], load_fitted(models[0]))
    if out is not None:
        save(total, out, detail=detail, force=force)
    return total


def _fit_like_command(first: ModelLike, second: ModelLike, fitted: FittedModel) -> str | None:
    """Return the command that makes two files of weighted models mergeable; these choose their own bins and terms."""
    if fitted.term_weights is None or not all(isinstance(model, str | os.PathLike) for model in (first, second)):
        return None
    like, out = (shlex.quote(os.fspath(path)) for path in (first, second))
    command = f"candide fit DATA --target {shlex.quote(fitted.target or 'COLUMN')} --like {like} -o {out}"
    reason = "only models with the same bins and terms add"
    return f"{reason}: fit {out} again with those of the other: {command} (like=...)"


def _model_name(model: ModelLike) -> str:
    return os.fspath(model) if isinstance(model, str | os.PathLike) else "a model"


def count_like(model: ModelLike, data: Any, **options: Any) -> ModelCounts:
    """Count rows as a model was counted, so that the counts can be added to the model's, or subtracted."""
    return _count_for_model(load_fitted(model), RowsToCount(data, **options))[0]


@contextmanager
def _open_for_model(fitted: FittedModel, rows: RowsToCount) -> Iterator[tuple[LabelledSource, PreparedSource]]:
    """Open a source, prepared to be counted as a model was: with its plan and its number formats."""
    from candide.engines.counting import prepare_like

    name = resolve_target(fitted, rows.target)
    with open_source(rows.data, make_read_options(fitted, rows.reading)) as source:
        if fitted.term_weights is not None:
            source.materialise()  # the rows of the sample are among those counted
        prepared = prepare_like(source, fitted.counts.plan, name, rows.weight, fitted.text_formats, fitted.temporal)
        issue_warnings(prepared.notes)
        yield LabelledSource(source, name, rows.weight), prepared


def _count_for_model(
    fitted: FittedModel, rows: RowsToCount, has_new_rows: bool = False
) -> tuple[ModelCounts, Sample | None, list[Note]]:
    """Return the counts of rows, a sample of new rows if weights are due to be learned from them, and notes."""
    from candide.engines.counting import count_source, unlabelled_notes
    from candide.engines.draw_sample import draw_sample

    with _open_for_model(fitted, rows) as (source, prepared):
        with rows.watch(source.source, "counting"):
            counted = count_source(source, prepared)
        [counts] = counted.fold_counts
        weights, n = fitted.term_weights, counts.n_rows
        is_due = has_new_rows and weights is not None and weights.is_relearning_due(fitted.counts.n_rows + n, n)
        sample = draw_sample(source, prepared) if is_due else None
    return counts.match_labels(fitted.counts), sample, unlabelled_notes(source.target, counted)


def _reweight_if_due(fitted: FittedModel, sample: Sample | None, counts: ModelCounts) -> FittedModel:
    """Return a model after rows were counted in, with weights learned again from them where that is due."""
    weights = fitted.term_weights
    is_due = weights is not None and weights.is_relearning_due(fitted.counts.n_rows, counts.n_rows)
    return reweight_model(fitted, sample, is_counted=True) if is_due and sample is not None else fitted


def _new_classes(counts: ModelCounts, known: Labels) -> list[NewClass]:
    from difflib import get_close_matches

    by_name: dict[str, Any] = {str(label).strip().casefold(): label for label in known.values}
    pairs = zip(counts.labels.values, counts.class_weight.tolist(), strict=True)
    new = [(label, weight) for label, weight in pairs if weight and label not in known.index]
    close = [get_close_matches(str(label).strip().casefold(), by_name, 1, 0.7) for label, _ in new]
    return [NewClass(*pair, *map(by_name.get, names)) for pair, names in zip(new, close, strict=True)]
