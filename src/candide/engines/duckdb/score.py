"""Scoring a source in a stream: Arrow batches in, Arrow batches out, never the whole table.

A scored table has the input columns asked for, then ``prediction``, ``p_<class>`` for every class, and ``log_density``.
A column the model knows and the source lacks is missing in every row; other columns are passed by.
"""

import datetime as dt
import warnings
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from candide import wording
from candide.engines.duckdb.prepare import number_columns, read_numbers
from candide.engines.duckdb.source import VIEW, Source
from candide.engines.sql.statistics import Column
from candide.errors import InputError, unknown
from candide.kernels import threads
from candide.model.model import Model, ask
from candide.model.plan import Part, Plan
from candide.rows.blocks import Block, rows_of
from candide.rows.documents import Documents
from candide.rows.labels import Labels

BATCH = 1 << 17  # rows in a batch
_VALUES = 1 << 23  # values in a batch, where rows are wide
_LEVELS_EACH = 1 << 8  # levels of a column that a query spells: to read one costs as much as to look up a thousand rows
_LEVELS = 1 << 11  # and of all columns
_DOCUMENTS = 1 << 12  # and of rows with documents, which are long


def batch_size(plan: Plan) -> int:
    """How many rows of a plan's columns are read at a time."""
    if any(part.has_documents for part in plan.parts):
        return _DOCUMENTS
    return min(BATCH, max(_VALUES // len(plan.columns), 1 << 11))


def scored(
    source: Source, plan: Plan, labels: Labels, model: Model, keep: Sequence[str] = ()
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema and the batches of the scored table."""
    for name in keep:
        if name not in source.columns:
            raise unknown("column to keep", name, source.columns)
    names = [*keep, "prediction", *(f"p_{v}" for v in labels.values), "log_density"]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise InputError(f"the scored table would have two columns {twice!r}; keep other columns, or rename it")
    reader = source.batches(query(source, plan, keep=keep), batch_size(plan))
    kinds = [reader.schema.field(f"k{i}").type for i in range(len(keep))]
    values = pa.array(labels.array.tolist())
    kinds += [values.type, *[pa.float64()] * (len(labels) + 1)]
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    has_density = all(part.event.has_density for part in plan.parts)

    def work(batch: pa.RecordBatch) -> pa.RecordBatch:
        log_posterior, density = posterior(plan, model, batch)
        winner = values.take(pa.array(log_posterior.argmax(axis=1)))
        p = np.exp(log_posterior)
        kept = [batch.column(f"k{i}") for i in range(len(keep))]
        last = pa.array(density) if has_density else pa.nulls(len(density), pa.float64())
        return pa.RecordBatch.from_arrays(
            [*kept, winner, *(pa.array(p[:, c]) for c in range(len(labels))), last], schema=schema
        )

    return schema, threads.ahead(work, reader)


def prepare_to_score(source: Source, plan: Plan) -> None:
    """Have a source's numbers read, and see that it has the plan's columns: an error if none, a warning if not all."""
    read_numbers(source, number_columns(plan))
    absent = [str(name) for name in plan.columns if str(name) not in source.columns]
    if not absent:
        return
    others = {name.lower(): name for name in source.columns if name not in plan.columns}
    pairs = [(name, close) for name in absent[:3] for close in get_close_matches(name.lower(), others, 1)]
    near = ", ".join(f"{others[close]!r} for {name!r}" for name, close in pairs)
    hint = f"; did you mean {near}?" if near else ""
    if len(absent) == len(plan.columns):
        raise InputError(
            f"{source.name} has none of the model's columns {wording.listing(absent)}; it has "
            f"{wording.listing(list(source.columns))}{hint}"
        )
    warnings.warn(f"{source.name} lacks {wording.listing(absent)}: taken as missing in every row{hint}", stacklevel=3)


def query(
    source: Source,
    plan: Plan,
    *,
    keep: Sequence[str] = (),
    extra: Sequence[exp.Expression] = (),
    base: Any = VIEW,
    codes: bool = True,
) -> str:
    """Select the plan's columns as the model wants them, those to keep (``k0``, ``k1``, ...), and more.

    The model's are ``f0``, ``f1``, ..., or ``code0``, ... where the database looks up the ``codes`` of levels.
    """
    wanted, room = [], _LEVELS if codes else 0
    for i, (part, j) in enumerate(_columns(plan)):
        value = _value(source, part, j)
        spelt = part.has_levels and part.columns[j] in source.columns and _can_spell(part.levels[j], room)
        room -= len(part.levels[j]) if spelt else 0
        wanted.append(exp.alias_(_code(value, part.levels[j]), f"code{i}") if spelt else exp.alias_(value, f"f{i}"))
    kept = [exp.alias_(exp.column(name, quoted=True), f"k{i}") for i, name in enumerate(keep)]
    return exp.Select(expressions=[*wanted, *kept, *extra]).from_(base, copy=False).sql("duckdb", copy=False)


def posterior(plan: Plan, model: Model, batch: pa.RecordBatch) -> tuple[NDArray, NDArray]:
    """log p(class | x) and log p(x) of the rows of a batch."""
    return _scored(plan, model, _blocks(plan, batch))


def _scored(plan: Plan, model: Model, blocks: list[Any]) -> tuple[NDArray, NDArray]:
    return ask(Model.scored, model, [part.columns for part in plan.parts], blocks)


Places = list[tuple[int, NDArray[np.intp] | None]]  # for each part of a plan: which part of a wider one, which columns


def places(plan: Plan, chosen: Plan) -> Places:
    """Where the blocks of a plan of some of the columns lie in those of the plan; None for all columns of a block."""
    at = {name: (i, j) for i, part in enumerate(plan.parts) for j, name in enumerate(part.columns)}
    out: Places = []
    for part in chosen.parts:
        i = at[part.columns[0]][0]
        whole = part.columns == plan.parts[i].columns
        out.append((i, None if whole else np.array([at[name][1] for name in part.columns], np.intp)))
    return out


def posterior_by_fold(
    plan: Plan, models: Sequence[Model], chosen: Sequence[Plan], fold: NDArray, batch: pa.RecordBatch
) -> Iterator[tuple[int, NDArray, NDArray]]:
    """Fold by fold its rows and their log p(class | x) under its model; the rows are encoded once for all of them.

    The model of a fold may use only some of the plan's columns: those of its own plan.
    """
    order = np.argsort(fold.astype(np.uint16), kind="stable")  # by counting, where integers are this narrow
    bounds = np.searchsorted(fold[order], np.arange(len(models) + 1))
    blocks = _blocks(plan, batch.take(pa.array(order)))
    for f, (a, b) in enumerate(pairwise(bounds.tolist())):
        if a < b:
            some = [_narrow(rows_of(blocks[i], slice(a, b)), at) for i, at in places(plan, chosen[f])]
            yield f, order[a:b], _scored(chosen[f], models[f], some)[0]


def _narrow(block: Any, columns: NDArray[np.intp] | None) -> Block:
    return block if columns is None else np.asfortranarray(block[:, columns])


def _columns(plan: Plan) -> Iterator[tuple[Part, int]]:
    return ((part, j) for part in plan.parts for j in range(len(part.columns)))


def _can_spell(levels: Labels, room: int) -> bool:
    """Whether all levels are text, and few and plain enough for a query."""
    if not 0 < len(levels) <= min(room, _LEVELS_EACH):
        return False
    if not all(isinstance(v, str) and "\0" not in v for v in levels.values):
        return False
    try:
        "".join(levels.values).encode()
    except UnicodeEncodeError:  # half of a character
        return False
    return True


def _code(value: exp.Expression, levels: Labels) -> exp.Expression:
    """What ``levels.encode`` gives. In a column that its file holds as a dictionary each word is looked up once."""
    words = exp.DataType(this=exp.DataType.Type.ENUM, expressions=[exp.Literal.string(v) for v in levels.values])
    known = exp.Anonymous(this="enum_code", expressions=[exp.TryCast(this=value, to=words)])
    code = exp.Coalesce(this=exp.cast(known, "INT"), expressions=[exp.Literal.number(len(levels))])
    absent = exp.If(this=exp.Is(this=value.copy(), expression=exp.Null()), true=exp.Literal.number(-1))
    return exp.Case(ifs=[absent], default=code)


def _value(source: Source, part: Part, j: int) -> exp.Expression:
    name = str(part.columns[j])
    kind = source.columns.get(name)
    if kind is None:
        return exp.cast(exp.Null(), "TEXT" if part.has_levels or part.has_documents else "DOUBLE")
    if part.has_documents:
        raw = exp.column(name, quoted=True)
        return raw if kind.upper() in ("VARCHAR", "BLOB") else exp.cast(raw, "TEXT")
    column = Column(name, kind, is_level=part.has_levels)
    return _level_as(column, part.levels[j]) if part.has_levels else column.value


def _level_as(column: Column, levels: Labels) -> exp.Expression:
    """A level in the type of the levels that were counted: text that spells a number is that number."""
    text, raw = column.type.upper() == "VARCHAR", exp.column(column.name, quoted=True)
    if text and levels.values and all(isinstance(v, bool) for v in levels.values):
        return exp.TryCast(this=raw, to=exp.DataType.build("BOOLEAN"))
    if text and levels.values and all(isinstance(v, int | float) for v in levels.values):
        return exp.TryCast(this=raw, to=exp.DataType.build("DOUBLE"))
    if not text and levels.values and all(isinstance(v, str) for v in levels.values):
        return exp.cast(raw, "TEXT")
    if levels.values and all(isinstance(v, dt.date) for v in levels.values):  # a time is a date, too
        times = any(isinstance(v, dt.datetime) for v in levels.values)
        return exp.TryCast(this=raw, to=exp.DataType.build("TIMESTAMP" if times else "DATE"))
    return column.read


def _blocks(plan: Plan, batch: pa.RecordBatch) -> list[Block]:
    at, blocks, names = 0, list[Block](), batch.schema.names
    for part in plan.parts:
        width = len(part.columns)
        if part.has_documents:
            documents: Any = Documents.of(batch.column(at))
            blocks.append(documents)
            at += width
            continue
        block: NDArray = np.empty((batch.num_rows, width), np.int32 if part.has_levels else np.float64, order="F")
        for j in range(width):
            column, ready = batch.column(at + j), not part.has_levels or names[at + j].startswith("code")
            block[:, j] = column.to_numpy(zero_copy_only=False) if ready else part.levels[j].encode(column)
        at += width
        blocks.append(block)
    return blocks
