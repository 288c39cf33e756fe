"""Counting by SQL: the census of a whole table as one aggregate query, whatever its size.

Rows are grouped by class (and fold); every statistic of every column comes back in one row a group. Columns
with very many levels, and weighted levels, take a query of their own.

>>> import pyarrow as pa
>>> from candide.engines.base import open_source
>>> from candide.engines.prepare import prepare
>>> with open_source(pa.table({"age": [30, 40, 8], "job": ["cook", "smith", None], "y": ["a", "a", "b"]})) as source:
...     [census] = count(Rows(source, "y"), prepare(source, "y")).censuses
>>> census.labels.values, census.tallies[0].mean.tolist(), census.plan.parts[1].levels[0].values
(('a', 'b'), [[35.0], [8.0]], ('cook', 'smith'))
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sqlglot import exp

from candide.encode import Levels
from candide.engines.base import Counted, Prepared, Rows
from candide.engines.sql.column import Column
from candide.engines.sql.dialect import Dialect, Expr, number
from candide.engines.sql.source import SqlSource, fold_of, project
from candide.engines.sql.statistics import levels_key, levels_met, statistic
from candide.errors import InputError, TooLargeError
from candide.model.census import Census
from candide.model.plan import Part, Plan
from candide.rows.labels import Labels, is_absent
from candide.rows.matching import read_levels
from candide.rows.targets import is_missing_label
from candide.tally import Tally
from candide.tally.base import LARGEST

SETS = 30  # grouping sets in one query: the mask of their columns must fit into 32 bits

Keys = dict[tuple[Any, int], int]  # (label, fold) -> position of its group
Answers = dict[str, list[Any]]  # key of an expression -> its value in each group
Asked = tuple[Part, list[Column]]  # a part, and all or some of its columns
Level = tuple[Any, int, int, Any, float]  # label, fold, which column, its level, and the weight of these rows


def count(rows: Rows, prepared: Prepared) -> Counted:
    """One census a fold (one in all without folds), from one pass over the source.

    Where none was seen in its head no NaN is expected, which saves a test of every number; one that comes later makes
    sums that are not finite, and a second pass. So does a middle far from the values, around which digits were lost.
    """
    try:
        counted = _counted(rows, prepared)
    except InputError:  # what else is wrong is said again
        if prepared.nan:
            raise
        prepared = replace(prepared, nan=True)
        counted = _counted(rows, prepared)
    around = rows.weight is not None or rows.source.needs_middle
    near = _nearer(counted, prepared) if around else {}
    return _counted(rows, replace(prepared, near=near)) if near else counted


def _counted(rows: Rows, prepared: Prepared) -> Counted:
    source: Any = rows.source
    dialect, plan = source.dialect, prepared.plan
    asked = list(places(source, prepared, rows.weight))
    apart = [c for _, columns in asked for c in columns if _is_apart(c, prepared, dialect)]
    aliases = {column.alias for column in apart}
    together = [(part, [c for c in columns if c.alias not in aliases]) for part, columns in asked]
    at_once = list(_at_once(apart, dialect))
    source.passes += len(at_once)
    keys, answers, unlabelled = _grouped(rows, together)
    answers |= {levels_key(column): [{} for _ in keys] for column in apart}
    for some in at_once:
        _levels_apart(rows, some, keys, answers)
    for column in (c for _, columns in asked for c in columns if c.name in prepared.spelled and c.is_level):
        found = answers[levels_key(column)]
        meant = read_levels(list({level for met in found for level in (met or ())}))
        answers[levels_key(column)] = [{meant[level]: n for level, n in (met or {}).items()} for met in found]
    check_weights(answers, rows.weight)
    return Counted(censuses_of(plan, asked, keys, answers, rows.n_folds), unlabelled)


def places(source: SqlSource, prepared: Prepared, weight: str | None) -> Iterator[Asked]:
    """The columns of every part, as SQL sees them; each place has an alias of its own."""
    i, w, around = 0, None if weight is None else "w", source.needs_middle
    for part in prepared.plan.parts:
        nan = prepared.nan or part.spec.threshold is not None  # a threshold would take NaN for the largest number
        columns = []
        for name, encoding in zip(map(str, part.columns), part.encodings, strict=True):
            near, kind, is_level = prepared.near.get(name, 0.0), source.columns[name], encoding.as_written
            cells = encoding if part.holds == "codes" and not is_level else None
            columns.append(Column(name, kind, source.dialect, f"f{i}", is_level, w, nan, near, around, cells))
            i += 1
        yield part, columns


def _is_apart(column: Column, prepared: Prepared, dialect: Dialect) -> bool:
    if not column.by_level:
        return False
    return column.weight is not None or column.name in prepared.many or dialect.histogram(column.x) is None


def _grouped(rows: Rows, asked: Sequence[Asked]) -> tuple[Keys, Answers, int]:
    """The groups, the answers of some columns in each, and how many rows have no label."""
    source: Any = rows.source
    wanted: dict[str, Expr] = {"rows": exp.Count(this=exp.Star()), **totals(rows.weight, source.dialect)}
    for part, columns in asked:
        if columns:
            wanted |= statistic(part).ask(part, columns, source.dialect)
    fold = exp.column("fold") if rows.folds else number(0)  # not a key where it is the same in all rows
    select = exp.Select(expressions=[exp.column("y"), fold, *wanted.values()])
    inner = projected(rows, [c for _, columns in asked for c in columns]).subquery("t", copy=False)
    select = select.from_(inner, copy=False).group_by("y", *(["fold"] if rows.folds else []), copy=False)
    groups = source.rows(select.sql(source.dialect.name, copy=False))
    found = [row for row in groups if not is_missing_label(row[0])]
    if not found:
        raise InputError(f"no row of {source.name} has a label", column=rows.target)
    answers = {key: [row[at] for row in found] for at, key in enumerate(wanted, 2)}
    unlabelled = sum(row[2] for row in groups) - sum(row[2] for row in found)
    return {(row[0], int(row[1])): g for g, row in enumerate(found)}, answers, unlabelled


def projected(rows: Rows, columns: Sequence[Column]) -> exp.Select:
    """Label ``y``, ``fold``, weight ``w``, and the columns as the model wants them, by their aliases."""
    source: Any = rows.source
    fold = fold_of(rows.folds) or [exp.alias_(number(0), "fold")]
    y = Column(rows.target, source.columns[rows.target], source.dialect, is_level=True)
    chosen = [exp.alias_(y.read, "y"), *fold]
    if rows.weight is not None:
        w = source.dialect.number_of(exp.column(rows.weight, quoted=True), source.columns[rows.weight])
        chosen.append(exp.alias_(w, "w"))
    names = [one.alias for one in chosen]
    chosen += [exp.alias_(column.read, column.alias, copy=False) for column in columns]
    read = project(source, chosen, rows.folds).where(source.tick, copy=False)
    if all(column.cells is None for column in columns):
        return read
    coded = [*map(exp.column, names), *(column.coded for column in columns)]
    return exp.Select(expressions=coded).from_(read.subquery("r", copy=False), copy=False)


def totals(weight: str | None, dialect: Dialect) -> dict[str, Expr]:
    """What is asked of the weights of a group."""
    if weight is None:
        return {"weight": exp.Count(this=exp.Star())}
    w = exp.column("w")
    missing = exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Count(this=w))
    return {"weight": dialect.total(w.copy()), "least weight": exp.Min(this=w.copy()), "weights missing": missing}


def _at_once(columns: Sequence[Column], dialect: Dialect) -> Iterator[list[Column]]:
    """Columns whose levels one query counts: those that can be stacked are of one type."""
    most, kinds = SETS if dialect.grouping_sets or dialect.stacks else 1, dict[str, list[Column]]()
    for column in columns:
        kinds.setdefault(column.type if dialect.stacks and column.is_level else "", []).append(column)
    for some in kinds.values():
        yield from (some[start : start + most] for start in range(0, len(some), most))


def _levels_apart(rows: Rows, columns: Sequence[Column], keys: Keys, answers: Answers) -> None:
    """Count levels by grouping by them: the way that bears a million levels, and weights."""
    source: Any = rows.source
    by_level = _by_stack if source.dialect.stacks else _by_sets
    met = [answers[levels_key(column)] for column in columns]
    for label, fold, j, value, weight in by_level(rows, columns):
        group = keys.get((label, fold))  # of a row without a label there is none
        if group is not None and not is_absent(value):
            met[j][group][value] = weight


def _by_sets(rows: Rows, columns: Sequence[Column]) -> Iterator[Level]:
    """One grouping set a column."""
    source: Any = rows.source
    names = [exp.column(column.alias) for column in columns]
    by = [exp.column("y"), exp.column("fold")]
    which = source.dialect.grouping(*names) if len(columns) > 1 else number(0)
    total = exp.alias_(_total(rows), "total")
    select = exp.select("y", "fold", exp.alias_(which, "which"), total, *names)
    select = select.from_(projected(rows, columns).subquery("t"))
    if len(columns) > 1:
        sets = [exp.Tuple(expressions=[*by, name]) for name in names]
        select.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
    else:
        select = select.group_by(*by, *names)
    bit = {(1 << len(columns)) - 1 - (1 << (len(columns) - 1 - j)): j for j in range(len(columns))}
    for label, fold, mask, weight, *values in source.stream(select.sql(source.dialect.name)):
        yield label, fold, (j := bit[mask]), values[j], weight


def _by_stack(rows: Rows, columns: Sequence[Column]) -> Iterator[Level]:
    """One row a column, and rows grouped by column and level."""
    source: Any = rows.source
    kept = ["y", "fold", *(["w"] if rows.weight else [])]
    stack = source.dialect.stack([exp.column(column.alias) for column in columns])
    each = exp.select(*kept, stack).from_(projected(rows, columns).subquery("t")).subquery("s")
    by = ["y", "fold", "which", "level"]
    select = exp.select(*by, exp.alias_(_total(rows), "total")).from_(each).group_by(*by)
    yield from source.stream(select.sql(source.dialect.name))


def _total(rows: Rows) -> Expr:
    """The weight of the rows of a group."""
    source: Any = rows.source
    return exp.Count(this=exp.Star()) if rows.weight is None else source.dialect.total(exp.column("w"))


def _nearer(counted: Counted, prepared: Prepared) -> dict[str, Any]:
    """A middle for each label of a column, where the one used lies so far out that digits were lost."""
    whole = reduce(add, counted.censuses)
    out: dict[str, Any] = dict(prepared.near)
    for part, tally in zip(whole.plan.parts, whole.tallies, strict=True):
        for j, name in enumerate(map(str, part.columns)):
            means = statistic(part).far(tally, j, prepared.near.get(name, 0.0))
            if means is not None:
                out[name] = dict(zip(whole.labels.values, means.tolist(), strict=True))
    return out if out != prepared.near else {}


def censuses_of(plan: Plan, asked: Sequence[Asked], keys: Keys, answers: Answers, folds: int) -> list[Census]:
    """The census of each fold, from the answers of every column in every group."""
    labels = Labels.of([label for label, _ in keys])
    code = np.array([labels.encode([label])[0] for label, _ in keys], np.intp)
    fold_of_group = np.array([fold for _, fold in keys])
    counted = [_tally(part, columns, answers) for part, columns in asked]
    plan, tallies = Plan(plan.columns, tuple(part for part, _ in counted)), [tally for _, tally in counted]
    out = []
    for fold in range(folds):
        mine = np.flatnonzero(fold_of_group == fold)
        moved = tuple(tally.some_classes(mine).remap(code[mine], len(labels)) for tally in tallies)
        weight = np.zeros(len(labels))
        weight[code[mine]] = [answers["weight"][g] for g in mine]
        out.append(Census(plan, labels, weight, moved, sum(int(answers["rows"][g]) for g in mine)))
    return out


def _tally(part: Part, columns: list[Column], answers: Mapping[str, Sequence[Any]]) -> tuple[Part, Tally]:
    """A part with the levels that were met, and its tally, a row a group."""
    if any(column.is_level for column in columns):
        met = zip(part.encodings, columns, strict=True)
        part = replace(part, encodings=tuple(Levels(levels_met(c, answers)) if c.is_level else e for e, c in met))
    tally = statistic(part).build(part, columns, answers)
    if (cell := tally.too_large()) is not None:
        name, remedy = columns[tally.place(cell[1])[0]].name, "make the value missing, or drop the row"
        raise TooLargeError(f"a value is infinite, or sums of values exceed {LARGEST:g}", column=name, remedy=remedy)
    return part, tally


def check_weights(answers: Answers, weight: str | None) -> None:
    """Refuse weights that are missing, negative or not finite."""
    for total in answers.get("weight", ()) if weight is not None else ():
        if total is not None and not np.isfinite(total):
            raise InputError(f"a weight is {total:g}; weights must be numbers >= 0", column=weight, value=total)
    for low, missing in zip(answers.get("least weight", ()), answers.get("weights missing", ()), strict=True):
        if missing or (low is not None and not low >= 0):
            what = "missing" if missing else f"{low:g}"
            text = f"a weight is {what}; weights must be numbers >= 0"
            raise InputError(text, column=weight, value=None if missing else low)
