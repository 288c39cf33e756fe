"""Updating: rows counted into a model, taken out of it, or a window moved over them; models added up.

What is counted later is counted as the model was, and spelled as it spells, so that tallies add. A model that is named
by the path of its file is changed there, under its lock: counting, which may take long, comes first, and the file is
held only while the counts go in or out. With ``out`` the changed model is kept in that file, and the one that was given
stays as it is. Any other model is left as it is, and the changed one comes back.

Weights of voices are learned again from the rows that go in, where rows have doubled since they were learned or some
were taken out, and those at hand are as many as taught them; else a remark says so, and ``weigh`` learns them.

>>> from candide.operations.fit import fit_model
>>> june = {"size": [1.0, 1.2, 3.1, 3.3], "fruit": ["plum", "plum", "pear", "pear"]}
>>> july = {"size": [1.1, 3.0], "fruit": ["plum", "fig"]}
>>> model = fit_model(june, "fruit").fitted
>>> change = update(model, july)
>>> change.fitted.counts.class_weight.tolist(), change.n_rows, [one.label for one in change.new_classes]
([1.0, 2.0, 3.0], 2, ['fig'])
>>> forget(change.fitted, july).fitted.counts.class_weight.tolist()  # of the fig its name goes too
[2.0, 2.0]
>>> slide_window(change.fitted, {"size": [3.2], "fruit": ["pear"]}, june).fitted.counts.class_weight.tolist()
[1.0, 1.0, 1.0]
>>> merge([model, change.fitted]).counts.n_rows
10
"""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

from candide import formatting
from candide.data.labels import Labels
from candide.data.limits import LIMITS
from candide.data.notes import Note, issue_warnings
from candide.data.sample import Sample
from candide.engines.base import LabelledSource, PreparedSource, Watch, no_progress, open_source
from candide.engines.draw_sample import draw_sample
from candide.engines.reading import ReadOptions
from candide.errors import InputError, MergeError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.store import outputs
from candide.store.models import ModelLike, load_fitted, make_read_options, resolve_target
from candide.weighted.reweight import check_weighted, reweight_model, stale_notes

_UNVERIFIED_NOTE = Note(
    "not-proved",
    "the counts allow these rows, but cannot prove that these very rows were counted",
    remedy="pass rows as they were when they were counted, each once",
)


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
    """A model after a change, how many rows went in or out, the classes that came with them, and remarks."""

    fitted: FittedModel
    n_rows: int
    new_classes: list[NewClass] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    @property
    def note_texts(self) -> list[str]:
        """The remarks as sentences."""
        return [str(remark) for remark in self.notes]


def update(
    model: ModelLike,
    data: Any,
    out: str | os.PathLike | None = None,
    *,
    scale: float = 1.0,
    target: str | None = None,
    weight: str | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
    wait: float = 30.0,
    force: bool = False,
) -> UpdateResult:
    """Count more rows into a model. New classes and new levels may come at any time.

    ``scale`` lets what was counted before count so many times: 0.99 forgets a hundredth.
    """
    _check_output(out, model, data, force)
    more, seen, notes = _count_for_model(load_fitted(model), data, target, weight, reading, watch, at_hand=True)

    def change(fitted: FittedModel) -> FittedModel:
        return _reweight_if_due(fitted.scale(scale).add_counts(more), seen, more)

    return _with_notes(_apply_change(model, change, more.n_rows, more, wait, out, force), notes)


def forget(
    model: ModelLike,
    data: Any,
    out: str | os.PathLike | None = None,
    *,
    target: str | None = None,
    weight: str | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
    wait: float = 30.0,
    force: bool = False,
) -> UpdateResult:
    """Take rows that were counted earlier out of a model, as if they had never been seen.

    Classes, levels and words that nothing else holds are forgotten, unless they were declared. Rows that the counts
    rule out are an error, and the model stays as it is: those by which a class, a level, a word, the missing values of
    a column or the spread of a number would fall below zero. Counts cannot prove that a row was counted: one that could
    have been is taken out.
    """
    _check_output(out, model, data, force)
    part, _, notes = _count_for_model(load_fitted(model), data, target, weight, reading, watch)
    change = _apply_change(model, lambda fitted: fitted.subtract_counts(part), part.n_rows, part, wait, out, force)
    change = _with_notes(change, notes)
    is_left = change.fitted.counts.class_weight.any()  # else all that was counted has gone
    return replace(change, notes=[*change.notes, _UNVERIFIED_NOTE]) if is_left else change


def slide_window(
    model: ModelLike,
    add: Any,
    remove: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
    wait: float = 30.0,
) -> UpdateResult:
    """Move a window: count new rows in and old ones out, in one change of the model."""
    known, how = load_fitted(model), (target, weight, reading, watch)
    (new, seen, notes), (old, _, more) = (
        _count_for_model(known, add, *how, at_hand=True),
        _count_for_model(known, remove, *how),
    )
    rows = new.n_rows + old.n_rows
    change = _apply_change(
        model, lambda before: _reweight_if_due(before.add_counts(new).subtract_counts(old), seen, new), rows, new, wait
    )
    return _with_notes(change, [*notes, *more])


def _with_notes(change: UpdateResult, notes: list[Note]) -> UpdateResult:
    return replace(change, notes=[*notes, *change.notes])


def reweight(
    model: ModelLike,
    data: Any,
    out: str | os.PathLike | None = None,
    *,
    new: bool = False,
    rows: int = LIMITS.rows,
    seed: int = 0,
    target: str | None = None,
    weight: str | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
    wait: float = 30.0,
    force: bool = False,
) -> UpdateResult:
    """Learn the weights of a model's voices again, from rows that it has counted, against the counts that it has now.

    From ``rows`` of them, at most, chosen by ``seed``; each is left out of the counts while it teaches. Rows that
    cannot have been counted are an error; ``new`` says that none of them was, and none is left out. With ``out`` the
    model is kept there, and the one that was given stays as it is.
    """
    _check_output(out, model, data, force)
    fitted = load_fitted(model)
    check_weighted(fitted)
    with _open_for_model(fitted, data, target, weight, reading) as (of, prepared), watch(of.source, "reading"):
        seen = draw_sample(of, prepared, rows=rows, seed=seed)
    return _apply_change(model, partial(reweight_model, sample=seen, new=new), len(seen), None, wait, out, force)


def merge(
    models: Sequence[ModelLike], out: str | os.PathLike | None = None, *, detail: str | None = None, force: bool = False
) -> FittedModel:
    """Add models: the sum is the model of all their rows. Classes and levels are united; ``out`` keeps it in a file.

    That file may not be one of the models, nor one that is no model, but by ``force``.
    """
    if isinstance(models, str | os.PathLike) or not models:
        raise InputError("a merge is of one model or more", value=models, remedy="pass a list of models")
    outputs.check_destination(out, *models, force=force)

    def plus(whole: FittedModel, other: ModelLike) -> FittedModel:
        added = load_fitted(other)
        try:
            return whole + added
        except MergeError as error:
            error.problem = f"{_model_name(models[0])} and {_model_name(other)}: {error.problem}"
            error.remedy = _fit_like_command(models[0], other, added) or error.remedy
            raise

    whole = reduce(plus, models[1:], load_fitted(models[0]))
    if out is not None:
        from candide import store

        store.save(whole, out, detail=detail, force=force)
    return whole


def _fit_like_command(first: ModelLike, other: ModelLike, fitted: FittedModel) -> str | None:
    """What to type so that two models add, where both are files of weighted models, which choose what they count."""
    if fitted.term_weights is None or not all(isinstance(one, str | os.PathLike) for one in (first, other)):
        return None
    one, two = (shlex.quote(os.fspath(path)) for path in (first, other))
    target = shlex.quote(fitted.target or "COLUMN")
    typed = f"candide fit DATA --target {target} --like {one} -o {two}"
    return f"models add if they count alike: fit {two} again with the bins and pairs of the other: {typed} (like=...)"


def _model_name(model: ModelLike) -> str:
    return os.fspath(model) if isinstance(model, str | os.PathLike) else "a model"


def count_like(
    model: ModelLike,
    data: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> ModelCounts:
    """Count a source as a model was counted, so that the census can be added to the model's, or taken from it."""
    return _count_for_model(load_fitted(model), data, target, weight, reading, watch)[0]


@contextmanager
def _open_for_model(
    fitted: FittedModel, data: Any, target: str | None, weight: str | None, reading: ReadOptions | None
) -> Iterator[tuple[LabelledSource, PreparedSource]]:
    """A source as it is read for a model, prepared to be counted as that was."""
    from candide.engines.planning import prepare_like

    name = resolve_target(fitted, target)
    with open_source(data, make_read_options(fitted, reading)) as source:
        if fitted.term_weights is not None:
            source.materialise()  # rows that are looked at are among those counted
        prepared = prepare_like(source, fitted.counts.plan, name, weight, fitted.text_formats, fitted.temporal)
        issue_warnings(prepared.notes)
        yield LabelledSource(source, name, weight), prepared


def _count_for_model(
    fitted: FittedModel,
    data: Any,
    target: str | None,
    weight: str | None,
    reading: ReadOptions | None,
    watch: Watch,
    at_hand: bool = False,
) -> tuple[ModelCounts, Sample | None, list[Note]]:
    """A source counted as a model was; some of its rows, where the model's weights will be due then; and notes."""
    from candide.engines.counting import count_source, unlabelled_notes

    with _open_for_model(fitted, data, target, weight, reading) as (rows, prepared):
        with watch(rows.source, "counting"):
            counted = count_source(rows, prepared)
        [census] = counted.fold_counts
        voices, n = fitted.term_weights, census.n_rows
        due = at_hand and voices is not None and voices.is_relearning_due(fitted.counts.n_rows + n, n)
        seen = draw_sample(rows, prepared) if due else None
    return census.match_labels(fitted.counts), seen, unlabelled_notes(rows.target, counted)


def _reweight_if_due(fitted: FittedModel, sample: Sample | None, more: ModelCounts) -> FittedModel:
    """A model into which more rows were counted, with weights learned from them where that is due."""
    due = fitted.term_weights is not None and fitted.term_weights.is_relearning_due(fitted.counts.n_rows, more.n_rows)
    return reweight_model(fitted, sample, is_counted=True) if due and sample is not None else fitted


def _check_output(out: str | os.PathLike | None, model: ModelLike, data: Any, force: bool) -> None:
    outputs.check_destination(out, *(data, model) if out is not None else (), force=force)


def _apply_change(
    model: ModelLike,
    change: Callable[[FittedModel], FittedModel],
    rows: int,
    met: ModelCounts | None,
    wait: float,
    out: str | os.PathLike | None = None,
    force: bool = False,
) -> UpdateResult:
    from candide import store

    known: list[Labels] = []

    def changed(before: FittedModel) -> FittedModel:
        known.append(before.labels)
        return change(before)

    if isinstance(model, str | os.PathLike) and out is None:
        new = store.update_file(model, changed, wait=wait)
    else:
        new = changed(load_fitted(model))
    if out is not None:
        store.save(new, out, force=force)
    classes = [] if met is None else list(_new_classes(met, known[-1]))
    remarks = [Note("new-class", str(one)) for one in classes]
    if not new.counts.class_weight.any():
        text = f"{_model_name(model if out is None else out)} has no rows left, and so it cannot predict"
        remarks.append(Note("no-rows", text, remedy="count rows into it, or remove it"))
    else:
        remarks += stale_notes(new)
    return UpdateResult(new, rows, classes, remarks)


def _new_classes(counts: ModelCounts, known: Labels) -> list[NewClass]:
    from difflib import get_close_matches

    spelled = {str(label).casefold(): label for label in known.values}
    found = []
    for label, weight in zip(counts.labels.values, counts.class_weight.tolist(), strict=True):
        if weight and label not in known.index:
            near = get_close_matches(str(label).casefold(), spelled, 1, 0.7)
            found.append(NewClass(label, weight, spelled[near[0]] if near else None))
    return found
