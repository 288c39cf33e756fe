"""The DuckDB engine: the census of a whole table as one aggregate query, whatever its size.

Rows are grouped by class (and fold); every statistic of every column comes back in one row a group. Columns
with very many levels, and weighted levels, take a second query of their own.

>>> import pyarrow as pa
>>> from candide.engines.duckdb.prepare import prepare
>>> with Source.open(pa.table({"age": [30, 40, 8], "job": ["cook", "smith", None], "y": ["a", "a", "b"]})) as source:
...     [census] = count(Rows(source, "y"), prepare(source, "y")).censuses
>>> census.labels.values, census.tallies[0].mean.tolist(), census.plan.parts[1].levels[0].values
(('a', 'b'), [[35.0], [8.0]], ('cook', 'smith'))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sqlglot import exp

from candide.engines.duckdb.infer import read_levels
from candide.engines.duckdb.prepare import Prepared
from candide.engines.duckdb.score import query
from candide.engines.duckdb.source import VIEW, Source
from candide.engines.sql.statistics import Column, OfLevels, asker
from candide.errors import InputError
from candide.model.census import Census
from candide.model.plan import Part, Plan
from candide.rows.blocks import Floats
from candide.rows.labels import Labels, is_absent
from candide.tally import Moments, Tally

_SETS = 40  # grouping sets in one query
WIDE = 400  # columns in one query, where columns can be read apart: planning costs more than linearly

Keys = dict[tuple[Any, int], int]  # (label, fold) -> position of its group
Cells = dict[str | None, list[list[Any]]]  # column -> its cells, one list a group; None -> rows and weight


@dataclass(frozen=True)
class Counted:
    """The censuses of the folds, and how many rows had no label and were passed over."""

    censuses: list[Census]
    unlabelled: int = 0


@dataclass(frozen=True)
class Rows:
    """The rows to count: label, weight and fold of each, whatever is read of their columns."""

    source: Source
    target: str
    weight: str | None = None
    folds: int = 0
    seed: int = 0

    def project(self, columns: Sequence[Column]) -> exp.Select:
        """Label ``y``, ``fold``, weight ``w``, and the columns as the model wants them, by their aliases."""
        fold = fold_of(self.folds, self.seed) if self.folds else exp.Literal.number("0")
        chosen = [exp.alias_(exp.column(self.target, quoted=True), "y"), exp.alias_(fold, "fold")]
        if self.weight is not None:
            chosen.append(exp.alias_(exp.cast(exp.column(self.weight, quoted=True), "DOUBLE"), "w"))
        chosen += [exp.alias_(column.read, column.alias, copy=False) for column in columns]
        rows = numbered() if self.folds else exp.to_table(VIEW)
        return exp.Select(expressions=chosen).from_(rows, copy=False)  # the builder would copy thousands of columns


def count(rows: Rows, prepared: Prepared) -> Counted:
    """One census a fold (one in all without folds), from one pass over the source.

    Where none was seen in its head no NaN is expected, which saves a test of every number; one that comes later makes
    sums that are not finite, and a second pass.
    """
    if not prepared.nan:
        try:
            return _counted(rows, prepared)
        except InputError:  # what else is wrong is said again
            prepared = replace(prepared, nan=True)
    return _counted(rows, prepared)


def _counted(rows: Rows, prepared: Prepared) -> Counted:
    source, plan = rows.source, prepared.plan
    columns = {c.name: c for c in _columns(source, prepared, rows.weight)}
    apart = [n for n, c in columns.items() if c.is_level and (rows.weight is not None or n in prepared.many)]
    together = [(part, columns[str(n)]) for part in plan.parts for n in part.columns if str(n) not in apart]
    step = max(1, len(together)) if source.csv else WIDE  # the lines of a CSV are read whole, and once
    keys, cells, unlabelled = _grouped(rows, together[:step])
    for start in range(step, len(together), step):
        _, more, _ = _grouped(rows, together[start : start + step], keys)
        cells |= {name: column for name, column in more.items() if name is not None}
    cells |= {name: [[{}] for _ in keys] for name in apart}
    for start in range(0, len(apart), _SETS):
        _levels_apart(rows, [columns[n] for n in apart[start : start + _SETS]], keys, cells)
    for name in prepared.spelled:
        meant = read_levels(list({key for row in cells[name] for key in (row[0] or ())}))
        cells[name] = [[{meant[key]: n for key, n in (row[0] or {}).items()}] for row in cells[name]]
    return Counted(_censuses(plan, columns, keys, cells, max(1, rows.folds)), unlabelled)


def nearer(counted: Counted, prepared: Prepared) -> dict[str, Any]:
    """A middle for each label of a weighted column, where the one used lies so far out that digits were lost."""
    whole = reduce(add, counted.censuses)
    out: dict[str, Any] = dict(prepared.near)
    for part, tally in zip(whole.plan.parts, whole.tallies, strict=True):
        if isinstance(tally, Moments):
            for j, name in enumerate(part.columns):
                if ((tally.mean[:, j] - out[str(name)]) ** 2 * tally.n[:, j] > 1e5 * tally.m2[:, j]).any():
                    out[str(name)] = dict(zip(whole.labels.values, tally.mean[:, j].tolist(), strict=True))
    return out if out != prepared.near else {}


def _columns(source: Source, prepared: Prepared, weight: str | None) -> list[Column]:
    places = [(part, str(name)) for part in prepared.plan.parts for name in part.columns]
    alias = None if weight is None else "w"
    return [_column(source, part, name, f"f{i}", alias, prepared) for i, (part, name) in enumerate(places)]


def _column(source: Source, part: Part, name: str, alias: str, weight: str | None, prepared: Prepared) -> Column:
    nan = prepared.nan or part.spec.kind == "levels"  # a threshold would take NaN for the largest number
    return Column(name, source.columns[name], alias, part.has_levels, weight, nan, prepared.near.get(name, 0.0))


def _grouped(rows: Rows, asked: Sequence[tuple[Part, Column]], order: Keys | None = None) -> tuple[Keys, Cells, int]:
    """The cells of some columns, a row a group (in the order of the groups where it is known); rows without a label."""
    wanted: list[tuple[str | None, list[Any]]] = [(None, _totals(rows.weight))]
    wanted += [(column.name, asker(part).ask(column, part.spec)) for part, column in asked]
    fold = exp.column("fold") if rows.folds else exp.Literal.number("0")  # not a key where it is the same in all rows
    select = exp.Select(expressions=[exp.column("y"), fold, *(e for _, many in wanted for e in many)])
    inner = rows.project([column for _, column in asked]).subquery("t", copy=False)
    select = select.from_(inner, copy=False).group_by("1", *(["2"] if rows.folds else []), copy=False)
    groups = rows.source.rows(select.sql("duckdb", copy=False))
    found = [row for row in groups if not is_absent(row[0])]
    if not found:
        raise InputError(f"column {rows.target!r}: no row of {rows.source.name} has a label")
    if order is not None:
        found.sort(key=lambda row: order[row[0], int(row[1])])
    cells: Cells = {}
    at = 2
    for name, many in wanted:
        cells[name] = [list(row[at : at + len(many)]) for row in found]
        at += len(many)
    unlabelled = sum(row[2] for row in groups) - sum(row[2] for row in found)
    return {(row[0], int(row[1])): g for g, row in enumerate(found)}, cells, unlabelled


def _totals(weight: str | None) -> list[exp.Expression]:
    rows = exp.Count(this=exp.Star())
    if weight is None:
        return [rows, rows.copy()]
    w = exp.column("w")
    missing = exp.Sub(this=rows.copy(), expression=exp.Count(this=w))
    return [rows, exp.Anonymous(this="fsum", expressions=[w.copy()]), exp.Min(this=w.copy()), missing]


def _levels_apart(rows: Rows, columns: Sequence[Column], keys: Keys, cells: Cells) -> None:
    """Count levels with one grouping set a column: the way that bears a million levels, and weights."""
    names = [column.alias for column in columns]
    sets = [exp.Tuple(expressions=[exp.column("y"), exp.column("fold"), exp.column(name)]) for name in names]
    which = exp.Anonymous(this="grouping_id", expressions=[exp.column(name) for name in names])
    total = (
        exp.Count(this=exp.Star()) if rows.weight is None else exp.Anonymous(this="fsum", expressions=[exp.column("w")])
    )
    select = exp.select("y", "fold", exp.alias_(which, "which"), exp.alias_(total, "total"), *names)
    select = select.from_(rows.project(columns).subquery("t"))
    select.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
    bit = {(1 << len(columns)) - 1 - (1 << (len(columns) - 1 - j)): j for j in range(len(columns))}
    for batch in rows.source.batches(select.sql("duckdb"), 100_000):
        got = [column.to_pylist() for column in batch.columns]
        for i, (label, fold, mask, weight) in enumerate(zip(*got[:4], strict=True)):
            value = got[4 + bit[mask]][i]
            if not is_absent(label) and not is_absent(value):
                cells[columns[bit[mask]].name][keys[label, int(fold)]][0][value] = weight


def numbered() -> exp.Expression:
    """The source with the number of each row, counted in its own order."""
    number = exp.Window(this=exp.RowNumber())
    return exp.select("*", exp.alias_(number, ROW)).from_(VIEW).subquery("numbered")


ROW = "candide_row"


def fold_of(folds: int, seed: int) -> exp.Expression:
    """The fold of a row: every run of ``folds`` rows holds each fold once, in a rotation drawn by the seed."""
    row = exp.column(ROW)
    run = exp.IntDiv(this=row, expression=exp.Literal.number(str(folds)))
    salted = exp.Add(this=run, expression=exp.Literal.number(str(seed * 1_000_003)))
    turn = exp.Mod(this=exp.Anonymous(this="hash", expressions=[salted]), expression=exp.Literal.number(str(folds)))
    signed = exp.cast(turn, "BIGINT")  # unsigned and signed would meet in 128 bits, whose division is slow
    turned = exp.Paren(this=exp.Add(this=row, expression=signed))
    return exp.cast(exp.Mod(this=turned, expression=exp.Literal.number(str(folds))), "INTEGER")


def _censuses(plan: Plan, columns: Mapping[str, Column], keys: Keys, cells: Cells, folds: int) -> list[Census]:
    labels = Labels.of([label for label, _ in keys])
    plan = Plan(plan.columns, tuple(_with_levels(part, cells) for part in plan.parts))
    everywhere = (
        np.array([labels.encode([label])[0] for label, _ in keys], np.intp),
        np.array([fold for _, fold in keys]),
    )
    tallies = [
        _tally(part, [columns[str(n)] for n in part.columns], [cells[str(n)] for n in part.columns])
        for part in plan.parts
    ]
    _check_weights(cells[None])
    out = []
    for fold in range(folds):
        mine = np.flatnonzero(everywhere[1] == fold)
        moved = tuple(_some_groups(t, mine).remap(everywhere[0][mine], len(labels)) for t in tallies)
        weight = np.zeros(len(labels))
        weight[everywhere[0][mine]] = [cells[None][g][1] for g in mine]
        out.append(Census(plan, labels, weight, moved, sum(int(cells[None][g][0]) for g in mine)))
    return out


def _with_levels(part: Part, cells: Cells) -> Part:
    if not part.has_levels:
        return part
    return replace(part, levels=tuple(OfLevels.found(cells[str(n)]) for n in part.columns))


def _tally(part: Part, columns: list[Column], cells: list[list[list[Any]]]) -> Tally:
    tally = asker(part).build(part, columns, cells)
    for state in tally.arrays().values():
        if not np.isfinite(state).all():
            j = int(np.argwhere(~np.isfinite(state))[0][1])
            name = columns[j].name if state.shape[1] == len(columns) else columns[0].name
            raise InputError(
                f"column {name!r} holds an infinite value, or one too large to square; make it missing, or drop the row"
            )
    return tally


def _some_groups(tally: Tally, groups: np.ndarray) -> Tally:
    arrays: dict[str, Floats] = {k: v if k == "offsets" else v[groups] for k, v in tally.arrays().items()}
    return type(tally).from_arrays(arrays)


def _check_weights(totals: list[list[Any]]) -> None:
    for row in totals:
        if len(row) > 2 and (row[3] or (row[2] is not None and not row[2] >= 0)):
            what = "missing" if row[3] else f"{row[2]:g}"
            raise InputError(f"a weight is {what}; weights must be numbers >= 0")


def rows_query(rows: Rows, plan: Plan) -> str:
    """Select the plan's columns as they are, with label, weight and fold, for counting outside SQL."""
    chosen = [exp.column(str(name), quoted=True) for name in plan.columns]
    return rows.project([]).select(*chosen).sql("duckdb")


def score_query(rows: Rows, plan: Plan) -> str:
    """Select what scoring wants, with the fold of each row."""
    keep = [rows.target, *([rows.weight] if rows.weight else [])]
    extra: list[Any] = [exp.alias_(fold_of(rows.folds, rows.seed), "candide_fold")]
    return query(rows.source, plan, keep=keep, extra=extra, base=numbered())
