"""Weighing: how much each voice of a model counts, learned from rows that it has counted.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> table = Table.of({"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b], "c": rng.normal(size=400)})
>>> fitted = learn(table, a ^ b)
>>> bool((fitted.classify(table) == a ^ b).all()), fitted.voices.rows
(True, 400)
"""

from dataclasses import replace
from typing import Any

import numpy as np

from candide import wording
from candide.engines import arrays
from candide.engines.base import Counted, Prepared, Rows, Watch, silent
from candide.errors import InputError
from candide.model import voices
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.model.training_rows import FurtherRows
from candide.model.voices import Voices
from candide.rows.blocks import Codes, Floats
from candide.rows.kinds import inspect
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.table import Table
from candide.tasks.compose import Encodings, compose
from candide.tasks.look import DOCUMENTS, ROWS, Look, has_words, look, look_for_words


def learn(
    table: Table,
    y: Any,
    weight: Floats | None = None,
    *,
    labels: Labels | None = None,
    events: Any = "auto",
    settings: Settings | None = None,
    sets: bool = True,
    rows: int = ROWS,
    documents: int = DOCUMENTS,
    seed: int = 0,
    like: Plan | None = None,
    calibration: str | None = None,
) -> Fitted:
    """A model of all voices, with their weights, of rows in memory; ``like``: with the voices of that plan."""
    from candide.tasks.held_out import calibrated, check_calibration, held_out

    settings = settings or Settings(class_prior="jeffreys")
    if calibration:
        check_calibration(calibration, "bayes", settings)
    labels = Labels.of(y) if labels is None else labels
    more = Look.of(table, labels.encode(y), labels, weight)
    table, y, weight = more.table, labels.array[more.y], more.weight  # without rows that weigh nothing
    seen, found = more.bounded(rows, seed).met(), None
    pooled = seen.pooled(seed)
    encodings = None if like is not None else Encodings.of(pooled, events, inspect(seen.table))
    plan = like if encodings is None else encodings.plan
    assert plan is not None
    if has_words(plan):
        more = more.for_words(plan, documents, seed)
        seen = more.bounded(rows, seed).met()  # of long documents, fewer
        pooled = seen.pooled(seed)
    if encodings is not None:
        plan, found = compose(pooled, settings=settings, sets=sets, encodings=encodings)
    census = arrays.count(table, y, weight, plan=plan.with_levels(table), labels=labels)
    columns = set(census.plan.columns)
    found = weigh_by(pooled, census, settings, found, more if has_words(plan) else None)
    fitted = Fitted(census, settings, dates=table.dates & columns, times=table.times & columns, voices=found)
    if not calibration:
        return fitted
    given = {"events": events, "sets": sets, "plan": like, "census": census, "seed": seed}
    return calibrated(fitted, held_out(seen.among(labels), settings, **given), calibration)


def learn_from(
    rows: Rows,
    prepared: Prepared,
    *,
    events: Any = "auto",
    settings: Settings,
    most: int = ROWS,
    watch: Watch = silent,
) -> tuple[Counted, Voices, Look]:
    """The counts of a source for a model of all voices, their weights, and the rows looked at.

    A look, a pass, and the look again.
    """
    from candide.engines.count import count

    with watch(rows.source, "looking"):
        more = look_for_words(rows, prepared) if has_words(prepared.plan) else look(rows, prepared, rows=most)
    seen = more.bounded(most).met()
    pooled = seen.pooled()
    plan, found = compose(pooled, settings=settings, encodings=Encodings.of(pooled, events, prepared.columns))
    with watch(rows.source, "counting"):
        counted = count(rows, replace(prepared, plan=plan))
    return counted, weigh_by(pooled, counted.censuses[0], settings, found, more), seen


def weigh_by(
    seen: Look, census: Census, settings: Settings, start: Voices | None = None, more: Look | None = None
) -> Voices:
    """The weights of the voices of a census by a look at its rows; ``start`` was learned from the look alone.

    Where the look has all of the rows it was learned from the same counts, and stays. ``more`` has further rows, from
    which words learn; all voices do where they are words. Equal rows of the look are pooled, where they are not yet.
    """
    if start is not None and not seen.is_part and seen.labels == census.labels:
        return start
    start = start and start.among(seen.labels, census.labels)
    if more is not None and more.n_rows > seen.n_rows and all(part.event.hears_words for part in census.plan.parts):
        seen, more = more, None
    seen = (seen if seen.copies is not None else seen.met().pooled()).among(census.labels)
    further = None
    if more is not None and more.n_rows > seen.n_rows:
        further = _further(more.among(census.labels), seen.row, census.plan)
    return weigh(census, settings, seen, start, further)


def _further(more: Look, seen: Codes, plan: Plan) -> FurtherRows:
    """Rows that words are learned from, pooled, and which of them are those with the numbers ``seen``."""
    rows = more.distinct()
    pooled = more.pool(rows)
    number = more.row[rows.first[rows.group[np.searchsorted(more.row, seen)]]]
    order = np.argsort(pooled.row, kind="stable")
    return FurtherRows(pooled.training_rows(plan), order[np.searchsorted(pooled.row, number, sorter=order)])


def weigh(
    census: Census,
    settings: Settings,
    seen: Look,
    start: Voices | None = None,
    more: FurtherRows | None = None,
) -> Voices:
    """The weights of the voices of a census, by some of the rows that were counted, pooled; words also by ``more``."""
    assert seen.copies is not None
    copies = seen.class_copies
    effective, rows = census if copies is None else census.scale(1.0 / copies), seen.training_rows(census.plan)
    found = voices.learn(effective, settings, rows, start=start, patient=start is None, more=more)
    return replace(found, copies=copies, rows=min(found.rows, 1) * seen.n_rows)


def small_weights(weight: Floats | None) -> list[Remark]:
    """A note where row weights are below 1 in the mean: the model then has fewer rows than the table.

    >>> small_weights(np.array([0.5, 0.1]))[0].text
    'row weights have a mean of 0.3, and each is the number of rows that a row stands for: 2 rows count as 0.6'
    """
    some = None if weight is None else weight[weight > 0]
    if some is None or not len(some) or some.mean() >= 1.0:
        return []
    text = (
        f"row weights have a mean of {some.mean():.3g}, and each is the number of rows that a row stands for: "
        f"{wording.plural(len(some))} count as {some.sum():.3g}"
    )
    return [Remark("small-weights", text, remedy="divide the weights by their mean to count each row about once")]


def refuse_others(settings: Settings) -> None:
    """Refuse settings that a model of weighted voices has no use for."""
    for name in ("estimate", "select"):
        if getattr(settings, name) != getattr(Settings(), name):
            what = f"{name}: {getattr(settings, name)!r} is for naive Bayes; here every voice has a weight"
            raise InputError(
                what,
                value=getattr(settings, name),
                remedy=f"leave {name} out, or ask for the model naive (--model naive)",
            )
