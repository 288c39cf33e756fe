"""The DuckDB engine: the census of a whole table as one aggregate query, whatever its size.

Rows are grouped by class (and fold); every statistic of every column comes back in one row a group. Columns
with very many levels, and weighted levels, take a second query of their own.

>>> import pyarrow as pa
>>> from candide.plan import Part, Plan
>>> from candide.events import Gaussian, Categorical
>>> plan = Plan(("age", "job"), (Part(Gaussian(), ("age",)), Part(Categorical(), ("job",))))
>>> with Source.open(pa.table({"age": [30, 40, 8], "job": ["cook", "smith", None], "y": ["a", "a", "b"]})) as source:
...     [census] = count(source, "y", plan=plan)
>>> census.labels.values, census.tallies[0].mean.tolist(), census.plan.parts[1].levels[0].values
(('a', 'b'), [[35.0], [8.0]], ('cook', 'smith'))
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlglot import exp

from candide.census import Census
from candide.engines.aggregates import Column, OfLevels, asker, level
from candide.engines.looks import read_levels
from candide.engines.scoring import query
from candide.engines.sources import VIEW, Source
from candide.errors import InputError
from candide.labels import Labels, is_absent
from candide.plan import Part, Plan
from candide.tally import Tally
from candide.tally.base import Floats

MANY_LEVELS = 1000  # a histogram of more levels than this is slower than a query of its own
_SETS = 40  # grouping sets in one query


def count(
    source: Source,
    target: str,
    *,
    plan: Plan,
    weight: str | None = None,
    folds: int = 0,
    seed: int = 0,
    many: Sequence[str] = (),
    near: Mapping[str, float] | None = None,
    spelled: Sequence[str] = (),
) -> list[Census]:
    """One census a fold (one in all without folds), from one pass over the source.

    ``many`` names the columns with very many levels, ``spelled`` those whose levels come as text whatever they are;
    ``near`` gives a value near the middle of weighted columns.
    """
    columns = {
        str(name): Column(str(name), source.columns[str(name)], weight, float((near or {}).get(str(name), 0.0)))
        for part in plan.parts
        for name in part.columns
    }
    apart = [str(n) for part in plan.parts if part.has_levels for n in part.columns if weight is not None or n in many]
    keys, cells = _grouped(source, target, plan, columns, set(apart), weight, folds, seed)
    for start in range(0, len(apart), _SETS):
        _levels_apart(
            source, target, [columns[n] for n in apart[start : start + _SETS]], keys, cells, weight, folds, seed
        )
    for name in spelled:
        meant = read_levels(list({key for row in cells[name] for key in (row[0] or ())}))
        cells[name] = [[{meant[key]: n for key, n in (row[0] or {}).items()}] for row in cells[name]]
    return _censuses(plan, columns, keys, cells, max(1, folds))


Keys = dict[tuple[Any, int], int]  # (label, fold) -> position of its group
Cells = dict[str | None, list[list[Any]]]  # column -> its cells, one list a group; None -> rows and weight


def _grouped(
    source: Source,
    target: str,
    plan: Plan,
    columns: Mapping[str, Column],
    apart: set[str],
    weight: str | None,
    folds: int,
    seed: int,
) -> tuple[Keys, Cells]:
    asked: list[tuple[str | None, list[exp.Expression]]] = [(None, _totals(weight))]
    for part in plan.parts:
        ask = asker(part).ask
        asked += [(str(n), ask(columns[str(n)], part.spec)) for n in part.columns if str(n) not in apart]
    query = _select(target, source, folds, seed, [e for _, many in asked for e in many])
    rows = [row for row in source.rows(query) if not is_absent(row[0])]
    if not rows:
        raise InputError(f"column {target!r}: no row of {source.name} has a label")
    keys = {(row[0], int(row[1])): g for g, row in enumerate(rows)}
    cells: Cells = {}
    at = 2
    for name, many in asked:
        cells[name] = [list(row[at : at + len(many)]) for row in rows]
        at += len(many)
    cells |= {name: [[{}] for _ in rows] for name in apart}
    return keys, cells


def _totals(weight: str | None) -> list[exp.Expression]:
    rows = exp.Count(this=exp.Star())
    if weight is None:
        return [rows, rows.copy()]
    w = exp.cast(exp.column(weight, quoted=True), "DOUBLE")
    return [
        rows,
        exp.Anonymous(this="fsum", expressions=[w]),
        exp.Min(this=w),
        exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Count(this=w)),
    ]


def _levels_apart(
    source: Source,
    target: str,
    columns: Sequence[Column],
    keys: Keys,
    cells: Cells,
    weight: str | None,
    folds: int,
    seed: int,
) -> None:
    """Count levels with one grouping set a column: the way that bears a million levels, and weights."""
    sets = [
        exp.Tuple(expressions=[exp.column("y"), exp.column("fold"), exp.column(f"c{j}")]) for j in range(len(columns))
    ]
    which = exp.Anonymous(this="grouping_id", expressions=[exp.column(f"c{j}") for j in range(len(columns))])
    total: exp.Expression = (
        exp.Count(this=exp.Star()) if weight is None else exp.Anonymous(this="fsum", expressions=[exp.column("w")])
    )
    inner = exp.select(*_keys(target, folds, seed), *(exp.alias_(level(c), f"c{j}") for j, c in enumerate(columns)))
    if weight is not None:
        inner = inner.select(exp.alias_(exp.cast(exp.column(weight, quoted=True), "DOUBLE"), "w"))
    inner = inner.from_(_from(folds))
    query = exp.select(
        "y", "fold", exp.alias_(which, "which"), exp.alias_(total, "total"), *(f"c{j}" for j in range(len(columns)))
    )
    query = query.from_(inner.subquery("t"))
    query.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
    bit = {(1 << len(columns)) - 1 - (1 << (len(columns) - 1 - j)): j for j in range(len(columns))}
    for batch in source.batches(query.sql("duckdb"), 100_000):
        got = [column.to_pylist() for column in batch.columns]
        for i, (label, fold, mask, weight_of) in enumerate(zip(*got[:4], strict=True)):
            j = bit[mask]
            value = got[4 + j][i]
            if not is_absent(label) and not is_absent(value):
                cells[columns[j].name][keys[label, int(fold)]][0][value] = weight_of


def _select(target: str, source: Source, folds: int, seed: int, asked: list[exp.Expression]) -> str:
    query = exp.select(*_keys(target, folds, seed), *asked).from_(_from(folds)).group_by("1", "2")
    return query.sql("duckdb")


def _keys(target: str, folds: int, seed: int) -> list[Any]:
    fold = fold_of(folds, seed) if folds else exp.Literal.number("0")
    return [exp.alias_(exp.column(target, quoted=True), "y"), exp.alias_(fold, "fold")]


def _from(folds: int) -> exp.Expression:
    return numbered() if folds else exp.to_table(VIEW)


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
    turned = exp.Paren(this=exp.Add(this=row, expression=turn))
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


def rows_query(target: str, plan: Plan, weight: str | None, folds: int, seed: int) -> str:
    """Select the plan's columns as they are, with label, weight and fold, for counting outside SQL."""
    label, fold = _keys(target, folds, seed)
    chosen = [exp.column(str(name), quoted=True) for name in plan.columns]
    more: list[Any] = [exp.alias_(label.this, "candide_label"), exp.alias_(fold.this, "candide_fold")]
    if weight is not None:
        more.append(exp.alias_(exp.cast(exp.column(weight, quoted=True), "DOUBLE"), "candide_weight"))
    return exp.select(*chosen, *more).from_(_from(folds)).sql("duckdb")


def score_query(source: Source, plan: Plan, target: str, weight: str | None, folds: int, seed: int) -> str:
    """Select what scoring wants, with the fold of each row."""
    keep = [target, *([weight] if weight else [])]
    extra: list[Any] = [exp.alias_(fold_of(folds, seed), "candide_fold")]
    return query(source, plan, keep=keep, extra=extra, base=numbered())
