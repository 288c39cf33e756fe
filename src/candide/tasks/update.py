"""Updating: rows counted into a model, taken out of it, or a window moved over them; models added up.

What is counted later is counted as the model was, and spelled as it spells, so that tallies add. A model that is named
by the path of its file is changed there, under its lock: counting, which may take long, comes first, and the file is
held only while the counts go in or out. With ``out`` the changed model is kept in that file, and the one that was given
stays as it is. Any other model is left as it is, and the changed one comes back.

Weights of voices are learned again from the rows that go in, where rows have doubled since they were learned or some
were taken out, and those at hand are as many as taught them; else a remark says so, and ``weigh`` learns them.

>>> from candide.tasks.learn import learn
>>> june = {"size": [1.0, 1.2, 3.1, 3.3], "fruit": ["plum", "plum", "pear", "pear"]}
>>> july = {"size": [1.1, 3.0], "fruit": ["plum", "fig"]}
>>> model = learn(june, "fruit").fitted
>>> change = update(model, july)
>>> change.fitted.census.class_weight.tolist(), change.rows, [one.label for one in change.new_classes]
([1.0, 2.0, 3.0], 2, ['fig'])
>>> forget(change.fitted, july).fitted.census.class_weight.tolist()  # of the fig its name goes too
[2.0, 2.0]
>>> slide(change.fitted, {"size": [3.2], "fruit": ["pear"]}, june).fitted.census.class_weight.tolist()
[1.0, 1.0, 1.0]
>>> merge([model, change.fitted]).census.n_rows
10
"""

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

from candide import wording
from candide.engines.base import Prepared, Rows, Watch, open_source, silent
from candide.engines.reading import Reading
from candide.errors import InputError, MergeError
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.rows.labels import Labels
from candide.rows.remarks import Remark, warn
from candide.tasks import outputs
from candide.tasks.look import ROWS, Look, look
from candide.tasks.models import Model, fitted_of, reading_of, target_of
from candide.tasks.weighing import check_weighted, stale, weighed

_UNPROVED = Remark(
    "not-proved",
    "the counts allow these rows, but cannot prove that these very rows were counted",
    remedy="pass rows as they were when they were counted, each once",
)


@dataclass(frozen=True)
class NewClass:
    """A class that a model did not have, the weight of its rows, and the known class that may be meant."""

    label: Any
    rows: float
    did_you_mean: Any = None

    def __str__(self) -> str:
        hint = "" if self.did_you_mean is None else f"; did you mean {self.did_you_mean!r}?"
        return f"new class {self.label!r} ({wording.plural(self.rows)}){hint}"


@dataclass(frozen=True)
class Change:
    """A model after a change, how many rows went in or out, the classes that came with them, and remarks."""

    fitted: Fitted
    rows: int
    new_classes: list[NewClass] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """The remarks as sentences."""
        return [str(remark) for remark in self.remarks]


def update(
    model: Model,
    data: Any,
    out: str | os.PathLike | None = None,
    *,
    scale: float = 1.0,
    target: str | None = None,
    weight: str | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
    wait: float = 30.0,
    force: bool = False,
) -> Change:
    """Count more rows into a model. New classes and new levels may come at any time.

    ``scale`` lets what was counted before count so many times: 0.99 forgets a hundredth.
    """
    _check_output(out, model, data, force)
    more, seen, notes = _counted(fitted_of(model), data, target, weight, reading, watch, at_hand=True)

    def change(fitted: Fitted) -> Fitted:
        return _weighed(fitted.scale(scale).plus(more), seen, more)

    return _with_notes(_changed(model, change, more.n_rows, more, wait, out, force), notes)


def forget(
    model: Model,
    data: Any,
    out: str | os.PathLike | None = None,
    *,
    target: str | None = None,
    weight: str | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
    wait: float = 30.0,
    force: bool = False,
) -> Change:
    """Take rows that were counted earlier out of a model, as if they had never been seen.

    Classes, levels and words that nothing else holds are forgotten, unless they were declared. Rows that the counts
    rule out are an error, and the model stays as it is: those by which a class, a level, a word, the missing values of
    a column or the spread of a number would fall below zero. Counts cannot prove that a row was counted: one that could
    have been is taken out.
    """
    _check_output(out, model, data, force)
    part, _, notes = _counted(fitted_of(model), data, target, weight, reading, watch)
    change = _changed(model, lambda fitted: fitted.minus(part), part.n_rows, part, wait, out, force)
    change = _with_notes(change, notes)
    is_left = change.fitted.census.class_weight.any()  # else all that was counted has gone
    return replace(change, remarks=[*change.remarks, _UNPROVED]) if is_left else change


def slide(
    model: Model,
    add: Any,
    remove: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
    wait: float = 30.0,
) -> Change:
    """Move a window: count new rows in and old ones out, in one change of the model."""
    known, how = fitted_of(model), (target, weight, reading, watch)
    (new, seen, notes), (old, _, more) = _counted(known, add, *how, at_hand=True), _counted(known, remove, *how)
    rows = new.n_rows + old.n_rows
    change = _changed(model, lambda before: _weighed(before.plus(new).minus(old), seen, new), rows, new, wait)
    return _with_notes(change, [*notes, *more])


def _with_notes(change: Change, notes: list[Remark]) -> Change:
    return replace(change, remarks=[*notes, *change.remarks])


def weigh(
    model: Model,
    data: Any,
    out: str | os.PathLike | None = None,
    *,
    new: bool = False,
    rows: int = ROWS,
    seed: int = 0,
    target: str | None = None,
    weight: str | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
    wait: float = 30.0,
    force: bool = False,
) -> Change:
    """Learn the weights of a model's voices again, from rows that it has counted, against the counts that it has now.

    From ``rows`` of them, at most, chosen by ``seed``; each is left out of the counts while it teaches. Rows that
    cannot have been counted are an error; ``new`` says that none of them was, and none is left out. With ``out`` the
    model is kept there, and the one that was given stays as it is.
    """
    _check_output(out, model, data, force)
    fitted = fitted_of(model)
    check_weighted(fitted)
    with _opened(fitted, data, target, weight, reading) as (of, prepared), watch(of.source, "reading"):
        seen = look(of, prepared, rows=rows, seed=seed)
    return _changed(model, partial(weighed, seen=seen, new=new), len(seen), None, wait, out, force)


def merge(
    models: Sequence[Model], out: str | os.PathLike | None = None, *, detail: str | None = None, force: bool = False
) -> Fitted:
    """Add models: the sum is the model of all their rows. Classes and levels are united; ``out`` keeps it in a file.

    That file may not be one of the models, nor one that is no model, but by ``force``.
    """
    if isinstance(models, str | os.PathLike) or not models:
        raise InputError("a merge is of one model or more", value=models, remedy="pass a list of models")
    outputs.check(out, *models, force=force)

    def plus(whole: Fitted, other: Model) -> Fitted:
        added = fitted_of(other)
        try:
            return whole + added
        except MergeError as error:
            error.what = f"{_named(models[0])} and {_named(other)}: {error.what}"
            error.remedy = _fit_alike(models[0], other, added) or error.remedy
            raise

    whole = reduce(plus, models[1:], fitted_of(models[0]))
    if out is not None:
        from candide import store

        store.save(whole, out, detail=detail, force=force)
    return whole


def _fit_alike(first: Model, other: Model, fitted: Fitted) -> str | None:
    """What to type so that two models add, where both are files of weighted models, which choose what they count."""
    if fitted.voices is None or not all(isinstance(one, str | os.PathLike) for one in (first, other)):
        return None
    one, two = (shlex.quote(os.fspath(path)) for path in (first, other))
    target = shlex.quote(fitted.target or "COLUMN")
    typed = f"candide fit DATA --target {target} --like {one} -o {two}"
    return f"models add if they count alike: fit {two} again with the bins and pairs of the other: {typed} (like=...)"


def _named(model: Model) -> str:
    return os.fspath(model) if isinstance(model, str | os.PathLike) else "a model"


def count_like(
    model: Model,
    data: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Census:
    """Count a source as a model was counted, so that the census can be added to the model's, or taken from it."""
    return _counted(fitted_of(model), data, target, weight, reading, watch)[0]


@contextmanager
def _opened(
    fitted: Fitted, data: Any, target: str | None, weight: str | None, reading: Reading | None
) -> Iterator[tuple[Rows, Prepared]]:
    """A source as it is read for a model, prepared to be counted as that was."""
    from candide.engines.prepare import prepare_like

    name = target_of(fitted, target)
    with open_source(data, reading_of(fitted, reading)) as source:
        if fitted.voices is not None:
            source.materialise()  # rows that are looked at are among those counted
        prepared = prepare_like(source, fitted.census.plan, name, weight, fitted.spelled, fitted.temporal)
        warn(prepared.remarks)
        yield Rows(source, name, weight), prepared


def _counted(
    fitted: Fitted,
    data: Any,
    target: str | None,
    weight: str | None,
    reading: Reading | None,
    watch: Watch,
    at_hand: bool = False,
) -> tuple[Census, Look | None, list[Remark]]:
    """A source counted as a model was; some of its rows, where the model's weights will be due then; and notes."""
    from candide.engines.count import count
    from candide.tasks.learn import unlabelled

    with _opened(fitted, data, target, weight, reading) as (rows, prepared):
        with watch(rows.source, "counting"):
            counted = count(rows, prepared)
        [census] = counted.censuses
        voices, n = fitted.voices, census.n_rows
        due = at_hand and voices is not None and voices.due(fitted.census.n_rows + n, n)
        seen = look(rows, prepared) if due else None
    return census.like(fitted.census), seen, unlabelled(rows.target, counted)


def _weighed(fitted: Fitted, seen: Look | None, more: Census) -> Fitted:
    """A model into which more rows were counted, with weights learned from them where that is due."""
    due = fitted.voices is not None and fitted.voices.due(fitted.census.n_rows, more.n_rows)
    return weighed(fitted, seen, sure=True) if due and seen is not None else fitted


def _check_output(out: str | os.PathLike | None, model: Model, data: Any, force: bool) -> None:
    outputs.check(out, *(data, model) if out is not None else (), force=force)


def _changed(
    model: Model,
    change: Callable[[Fitted], Fitted],
    rows: int,
    met: Census | None,
    wait: float,
    out: str | os.PathLike | None = None,
    force: bool = False,
) -> Change:
    from candide import store

    known: list[Labels] = []

    def changed(before: Fitted) -> Fitted:
        known.append(before.labels)
        return change(before)

    if isinstance(model, str | os.PathLike) and out is None:
        new = store.update(model, changed, wait=wait)
    else:
        new = changed(fitted_of(model))
    if out is not None:
        store.save(new, out, force=force)
    classes = [] if met is None else list(_new_classes(met, known[-1]))
    remarks = [Remark("new-class", str(one)) for one in classes]
    if not new.census.class_weight.any():
        text = f"{_named(model if out is None else out)} has no rows left, and so it cannot predict"
        remarks.append(Remark("no-rows", text, remedy="count rows into it, or remove it"))
    else:
        remarks += stale(new)
    return Change(new, rows, classes, remarks)


def _new_classes(census: Census, known: Labels) -> list[NewClass]:
    from difflib import get_close_matches

    spelled = {str(label).casefold(): label for label in known.values}
    found = []
    for label, weight in zip(census.labels.values, census.class_weight.tolist(), strict=True):
        if weight and label not in known.index:
            near = get_close_matches(str(label).casefold(), spelled, 1, 0.7)
            found.append(NewClass(label, weight, spelled[near[0]] if near else None))
    return found
