"""Weighing: how much each voice of a model counts, learned from rows that it has counted.

>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> table = Table.of({"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b], "c": rng.normal(size=400)})
>>> fitted = learn(table, a ^ b)
>>> bool((fitted.classify(table) == a ^ b).all()), fitted.voices.rows
(True, 400)
"""

from typing import Any

import numpy as np

from candide.engines import arrays
from candide.model import voices
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.settings import Settings
from candide.model.voices import Voices
from candide.rows.blocks import Codes, Floats
from candide.rows.labels import Labels, is_arrow
from candide.rows.table import Table
from candide.tasks.compose import compose

ROWS = 20_000  # that weights are learned from, at most
_TERMS = 60_000_000  # of all voices in all classes, at most: fewer rows where these are many
_FEWEST = 2_000


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
    seed: int = 0,
) -> Fitted:
    """A model of all voices, with their weights, of rows in memory."""
    settings = settings or Settings(class_prior="jeffreys")
    labels = Labels.of(y) if labels is None else labels
    codes = labels.encode(y)
    some = chosen_rows(codes, weight, len(labels), len(table.names), rows, seed)
    sample, of_sample = (
        (table, weight) if some is None else (_some(table, some), None if weight is None else weight[some])
    )
    of_class = codes if some is None else codes[some]
    plan, found = compose(sample, of_class, of_sample, events=events, settings=settings, sets=sets)
    census = arrays.count(table, y, weight, plan=plan.with_levels(table), labels=labels)
    return Fitted(census, settings, voices=weigh(census, settings, sample, of_class, of_sample, found))


def weigh(
    census: Census,
    settings: Settings,
    table: Table,
    y: Codes,
    weight: Floats | None = None,
    start: Voices | None = None,
) -> Voices:
    """The weights of the voices of a census, by some of the rows that were counted."""
    return voices.learn(census, settings, census.plan.blocks(table), y, weight, start=start)


def _some(table: Table, rows: Codes) -> Table:
    """The table of some of the rows."""
    if isinstance(table.source, np.ndarray):
        return Table.of(table.source[rows])
    columns = {name: table.column(name) for name in table.names}
    return Table.of({name: c.take(rows) if is_arrow(c) else c[rows] for name, c in columns.items()})


def chosen_rows(y: Codes, weight: Floats | None, n_classes: int, n_columns: int, most: int, seed: int) -> Codes | None:
    """Which rows weights are learned from; None for all. Rows that weigh nothing are none of them."""
    there = np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0)
    most = min(most, max(_FEWEST, _TERMS // (n_classes * (n_columns + 200))))
    if len(there) <= most:
        return None if len(there) == len(y) else there
    return np.sort(np.random.default_rng(seed).choice(there, most, replace=False))
