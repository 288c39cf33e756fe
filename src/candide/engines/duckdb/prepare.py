"""Preparing: a look at a source's head, and the plan and hints for counting it whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from candide.engines import arrays
from candide.engines.duckdb.csv_form import PLAIN, NumberFormat
from candide.engines.duckdb.infer import check_target, csv_type, number_format_remarks, number_type, spelled_numbers
from candide.engines.duckdb.source import Source
from candide.engines.sql.text import identifier
from candide.errors import InputError, unknown
from candide.model.plan import Part, Plan, named_events, plan_of
from candide.rows.kinds import LOOK, Column, look
from candide.rows.labels import Labels
from candide.rows.table import Table

_VALUES, _FEWEST = 1 << 23, 1 << 11  # values of the look, and its rows, where there are very many columns
_WORDY = ("category", "identifier")
MANY_LEVELS = 1000  # a histogram of more levels than this is slower than a query of its own


@dataclass(frozen=True)
class Prepared:
    """A source that has been looked at: the plan, and what the engine should know before it counts."""

    plan: Plan
    columns: list[Column]
    many: list[str]
    near: dict[str, Any]  # a value near the middle of each weighted number
    spelled: list[str]
    notes: list[str]
    nan: bool = True  # whether numbers are likely to be NaN


def prepare(
    source: Source, target: str, events: Any = "auto", drop: Sequence[str] = (), weight: str | None = None
) -> Prepared:
    """Look at the head of a source: give a CSV its types, and every column its kind and event model."""
    for what, name in [
        ("target", target),
        *(("column to drop", d) for d in drop),
        *([("weight", weight)] if weight else []),
    ]:
        if name not in source.columns:
            raise unknown(what, name, source.columns)
    head = source.arrow(f"SELECT * FROM source LIMIT {max(_FEWEST, min(LOOK, _VALUES // len(source.columns)))}")
    if head.num_rows == 0:
        raise InputError(f"{source.name} has no rows")
    asked = named_events(events) if isinstance(events, Mapping) else {}
    notes: list[str] = []
    if source.csv:
        text = [str(n) for n, event in asked.items() if _is_text(Part(event, (n,)))]
        head, notes = _typed(source, head, target, text)
    values = dict(zip(head.column_names, head.columns, strict=True))
    check_target(target, values[target])
    wanted = {n: column for n, column in values.items() if n not in {target, weight, *drop}}
    columns = [Column(n, "text") if n in source.documents else look(n, column) for n, column in wanted.items()]
    notes += [note for c in columns if c.kind in _WORDY for note in spelled_numbers(str(c.name), values[c.name])]
    notes += [f"column {c.name!r} is left out: {c.why}" for c in columns if c.event is None and c.name not in asked]
    plan = plan_of(columns, events)
    notes += _fractions(head, plan)
    spelled = [str(n) for part in plan.parts if part.has_levels for n in part.columns] if source.csv else []
    nan = any(pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py() for column in head.columns)
    return Prepared(plan, list(columns), *_hints(plan, head, weight), spelled, notes, nan)


def _fractions(head: pa.Table, plan: Plan) -> list[str]:
    try:
        return arrays.fractions(Table.of(head), plan)
    except InputError:  # no numbers at all, as will be said when they are counted
        return []


def _is_text(part: Part) -> bool:
    return part.has_levels or part.has_documents


def _typed(source: Source, head: pa.Table, target: str, categories: Sequence[str]) -> tuple[pa.Table, list[str]]:
    """Give the columns of a CSV their types, and look again; what is to be said of them."""
    types, formats = dict[str, str](), dict[str, NumberFormat]()
    for name, column in zip(head.column_names, head.columns, strict=True):
        types[name] = csv_type(column, is_label=name == target, is_category=name in categories)
        if types[name] == "VARCHAR" and name != target and name not in categories:
            kind, how = number_type(column, comma=source.csv is not None and source.csv.delimiter != ",")
            if how != PLAIN:
                types[name], formats[name] = kind, how
    source.typed(types, formats)
    return source.read_as(head, types, formats), number_format_remarks(formats, head)


def read_numbers(source: Source, names: Sequence[str]) -> None:
    """Have columns of a CSV read as numbers, in the way in which they are written in its head."""
    names = [name for name in names if source.columns.get(name) == "VARCHAR"]
    if source.csv is None or not names:
        return
    head = source.arrow(f"SELECT {', '.join(map(identifier, names))} FROM source LIMIT {_FEWEST}")
    found = {n: number_type(c, comma=source.csv.delimiter != ",") for n, c in zip(names, head.columns, strict=True)}
    types = {name: kind if kind in ("DATE", "TIMESTAMP") else "DOUBLE" for name, (kind, _) in found.items()}
    source.typed(types, {name: how for name, (_, how) in found.items()})


def number_columns(plan: Plan) -> list[str]:
    """The columns that a plan reads as numbers."""
    return [str(n) for part in plan.parts if not _is_text(part) for n in part.columns]


def _hints(plan: Plan, head: pa.Table, weight: str | None) -> tuple[list[str], dict[str, float]]:
    """Columns with very many levels, and a value near the middle of each weighted number."""
    many, near = [], {}
    table = Table.of(head)
    for part in plan.parts:
        for name in part.columns:
            if part.has_levels:
                if len(Labels.of(table.column(name))) > MANY_LEVELS:
                    many.append(str(name))
            elif weight is not None and part.spec.kind == "moments":
                values = part.spec.transformed(np.asarray(table.numbers((name,)), float))
                near[str(name)] = float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
    return many, near
