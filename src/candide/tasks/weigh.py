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

from candide.engines import arrays
from candide.engines.base import Counted, Prepared, Rows, Watch, silent
from candide.errors import InputError
from candide.model import voices
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.more_rows import More
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.model.voices import Voices
from candide.rows.blocks import Codes, Floats
from candide.rows.labels import Labels
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
    codes = labels.encode(y)
    more = Look.of(table, codes, labels, weight)
    seen, found = more.bounded(rows, seed).met(), None
    encodings = None if like is not None else Encodings.of(seen.table, events, is_part=seen.is_part)
    plan = like if encodings is None else encodings.plan
    assert plan is not None
    if has_words(plan):
        more = more.for_words(plan, documents, seed)
        seen = more.bounded(rows, seed).met()  # of long documents, fewer
    if encodings is not None:
        plan, found = compose(seen.table, seen.y, seen.weight, settings=settings, sets=sets, encodings=encodings)
    census = arrays.count(table, y, weight, plan=plan.with_levels(table), labels=labels)
    dates = table.dates & set(census.plan.columns)
    found = weigh_by(seen, census, settings, found, more if has_words(plan) else None)
    fitted = Fitted(census, settings, dates=dates, voices=found)
    if not calibration:
        return fitted
    given = {"events": events, "sets": sets, "plan": like, "seed": seed}
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
    encodings = Encodings.of(seen.table, events, prepared.columns, is_part=seen.is_part)
    plan, found = compose(seen.table, seen.y, seen.weight, settings=settings, encodings=encodings)
    with watch(rows.source, "counting"):
        counted = count(rows, replace(prepared, plan=plan))
    return counted, weigh_by(seen, counted.censuses[0], settings, found, more), seen


def weigh_by(
    seen: Look, census: Census, settings: Settings, start: Voices | None = None, more: Look | None = None
) -> Voices:
    """The weights of the voices of a census by a look at its rows; ``start`` was learned from the look alone.

    Where the look has all of the rows it was learned from the same counts, and stays. ``more`` has further rows, from
    which words learn; all voices do where they are words.
    """
    if start is not None and len(seen) == census.n_rows and seen.labels == census.labels:
        return start
    start = start and start.among(seen.labels, census.labels)
    if more is not None and len(more) > len(seen) and all(part.event.hears_words for part in census.plan.parts):
        seen, more = more, None
    further = None
    if more is not None and len(more) > len(seen):
        more = more.among(census.labels)
        further = More(census.plan.blocks(more.table), more.y, more.weight, np.searchsorted(more.row, seen.row))
    seen = seen.among(census.labels)
    return weigh(census, settings, seen.table, seen.y, seen.weight, start, further)


def weigh(
    census: Census,
    settings: Settings,
    table: Table,
    y: Codes,
    weight: Floats | None = None,
    start: Voices | None = None,
    more: More | None = None,
) -> Voices:
    """The weights of the voices of a census, by some of the rows that were counted; words also by ``more``."""
    blocks = census.plan.blocks(table)
    return voices.learn(census, settings, blocks, y, weight, start=start, patient=start is None, more=more)


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
