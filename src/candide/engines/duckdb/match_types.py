"""Recoding: counting a source the way a model was counted, and spelling its labels and levels as the model does.

One source spells a level 1, another "1": what is counted later must mean the same as what was counted before.

>>> match_types(["1", "2", "x"], Labels((0, 1)))
[1, 2, 'x']
>>> match_types([1, True], Labels(("1", "true")))
['1', 'true']
>>> match_types(["2024-02-29", "leap day"], Labels((dt.date(2024, 2, 28),)))
[datetime.date(2024, 2, 29), 'leap day']
"""

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from candide.engines.duckdb.prepare import MANY_LEVELS, Prepared, number_columns, read_numbers
from candide.engines.duckdb.source import Source
from candide.errors import InputError, unknown
from candide.model.census import Census
from candide.model.plan import Plan
from candide.rows.labels import Labels
from candide.tally.base import ratio

_WHOLE = re.compile(r"(0|-?[1-9]\d{0,17})$")


def prepare_like(source: Source, known: Census, target: str | None, weight: str | None = None) -> Prepared:
    """The plan of a census, for a source that must have its columns; a CSV gets the types they need."""
    plan = known.plan
    for what, name in [("target", target), ("weight", weight)]:
        if name not in source.columns and (what == "target" or name is not None):
            raise unknown(what, name, source.columns)
    missing = [str(name) for name in plan.columns if str(name) not in source.columns]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(f"{source.name} has no column {missing[0]!r}{more}, which the model counts")
    levels = [(str(n), s) for part in plan.parts for n, s in zip(part.columns, part.levels, strict=False)]
    read_numbers(source, [*number_columns(plan), *([weight] if weight else [])])
    many = [name for name, known_levels in levels if len(known_levels) > MANY_LEVELS // 2]
    return Prepared(plan, [], many, _middles(known), [], [])


def _middles(known: Census) -> dict[str, float]:
    """The mean so far of every number: a value near the middle."""
    found: dict[str, float] = {}
    for part, tally in zip(known.plan.parts, known.tallies, strict=True):
        if part.spec.kind == "moments":
            pooled: Any = tally.pool()
            found |= {str(n): float(m) for n, m in zip(part.columns, pooled.mean[0], strict=True)}
        elif part.spec.kind == "sums":
            pooled = tally.pool()
            mean = ratio(pooled.total, pooled.n)[0]
            found |= {str(n): float(m) for n, m in zip(part.columns, mean, strict=True)}
    return found


def recoded(census: Census, plan: Plan, labels: Labels) -> Census:
    """A census with its labels and levels spelled as these are, where they mean the same."""
    parts, tallies = [], []
    for part, like, tally in zip(census.plan.parts, plan.parts, census.tallies, strict=True):
        united = [_moved(mine, theirs) for mine, theirs in zip(part.levels, like.levels, strict=True)]
        if united:
            sizes = tuple(len(levels) for levels, _ in united)
            everyone = np.arange(len(census.labels))
            tally = tally.remap(everyone, len(everyone), tuple(to for _, to in united), sizes)
        parts.append(replace(part, levels=tuple(levels for levels, _ in united)))
        tallies.append(tally)
    classes, to = _moved(census.labels, labels)
    weight = np.zeros(len(classes))
    weight[to] = census.class_weight
    moved = tuple(tally.remap(to, len(classes)) for tally in tallies)
    return Census(Plan(plan.columns, tuple(parts)), classes, weight, moved, census.n_rows)


def _moved(mine: Labels, like: Labels) -> tuple[Labels, np.ndarray]:
    """Labels in another spelling, and where each goes; what would fall together stays apart as it was."""
    values = match_types(mine.values, like)
    new = Labels.of(np.fromiter(values, object, len(values)))
    if len(new) < len(mine):
        return mine, np.arange(len(mine))
    return new, new.encode(np.fromiter(values, object, len(values)))


def match_types(values: Sequence[Any], known: Labels) -> list[Any]:
    """Values in the type of known ones: text that spells a number or a date, where all known are that; the reverse."""
    kinds = set(map(type, known.values))
    if not kinds or (str in kinds and kinds != {str}):
        return list(values)
    if kinds == {str}:
        return [_text(value) for value in values]
    read = _moment if kinds <= {dt.date, dt.datetime} else _number
    return [read(value, kinds) if isinstance(value, str) else value for value in values]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def _moment(text: str, kinds: set[type]) -> Any:
    try:
        return (dt.datetime if dt.datetime in kinds else dt.date).fromisoformat(text)
    except ValueError:
        return text


def _number(text: str, kinds: set[type]) -> Any:
    if kinds == {bool} and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _WHOLE.match(text):
        return int(text)
    try:
        return float(text) if float in kinds else text
    except ValueError:
        return text
