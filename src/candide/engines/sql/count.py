"""Counting by SQL: the counts of a whole table by one aggregate query, whatever its size.

Rows are grouped by class (and fold); every statistic of every column comes back in one row a group. Columns
with very many levels, and weighted levels, take a query of their own.

>>> import pyarrow as pa
>>> from candide.engines.base import open_source
>>> from candide.engines.planning import prepare_source
>>> with open_source(pa.table({"age": [30, 40, 8], "job": ["cook", "smith", None], "y": ["a", "a", "b"]})) as source:
...     [counts] = count_by_query(LabelledSource(source, "y"), prepare_source(source, "y")).fold_counts
>>> counts.labels.values, counts.tallies[0].mean.tolist(), counts.plan.parts[1].levels[0].values
(('a', 'b'), [[35.0], [8.0]], ('cook', 'smith'))
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sqlglot import exp

from candide.data.labels import Labels, is_absent, is_missing_label
from candide.data.value_matching import parse_levels
from candide.encoding import LevelEncoding
from candide.engines.base import CountResult, LabelledSource, PreparedSource
from candide.engines.sql.dialect import Dialect, Expr, number_literal
from candide.engines.sql.source import SourceColumn, SqlSource, fold_column, project_expressions
from candide.engines.sql.statistics import get_statistic, levels_key, seen_levels
from candide.errors import InputError, SumTooLargeError
from candide.model.counts import ModelCounts
from candide.model.plan import Plan, PlanPart
from candide.tally import Tally
from candide.tally.base import MAX_SUM

MAX_GROUPING_SETS = 30  # grouping sets in one query: the mask of their columns must fit into 32 bits

GroupKeys = dict[tuple[Any, int], int]  # (label, fold) -> position of its group
GroupAnswers = dict[str, list[Any]]  # key of an expression -> its value in each group
PartColumns = tuple[PlanPart, list[SourceColumn]]  # a part, and all or some of its columns
LevelRow = tuple[Any, int, int, Any, float]  # label, fold, which column, its level, and the weight of these rows


def count_by_query(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    """The counts of each fold (one without folds), from one pass over the source.

    Where none was seen in its head no NaN is expected, which saves a test of every number; one that comes later makes
    sums that are not finite, and a second pass. So does a middle far from the values, around which digits were lost.
    """
    try:
        counted = _run_count_query(rows, prepared)
    except InputError:  # other faults raise again
        if prepared.has_nan:
            raise
        prepared = replace(prepared, has_nan=True)
        counted = _run_count_query(rows, prepared)
    around = rows.weight is not None or rows.source.needs_middle
    near = _find_better_middles(counted, prepared) if around else {}
    return _run_count_query(rows, replace(prepared, middle_values=near)) if near else counted


def _run_count_query(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    source: Any = rows.source
    dialect, plan = source.dialect, prepared.plan
    asked = list(query_columns(source, prepared, rows.weight))
    apart = [c for _, columns in asked for c in columns if _is_counted_separately(c, prepared, dialect)]
    aliases = {column.alias for column in apart}
    together = [(part, [c for c in columns if c.alias not in aliases]) for part, columns in asked]
    at_once = list(_group_level_columns(apart, dialect))
    source.passes += len(at_once)
    keys, answers, unlabelled = _query_groups(rows, together)
    answers |= {levels_key(column): [{} for _ in keys] for column in apart}
    for some in at_once:
        _count_levels(rows, some, keys, answers)
    for column in (c for _, columns in asked for c in columns if c.name in prepared.text_level_columns and c.is_level):
        found = answers[levels_key(column)]
        meant = parse_levels(list({level for levels_seen in found for level in (levels_seen or ())}))
        answers[levels_key(column)] = [
            {meant[level]: n for level, n in (levels_seen or {}).items()} for levels_seen in found
        ]
    check_weights(answers, rows.weight)
    return CountResult(make_fold_counts(plan, asked, keys, answers, rows.n_folds), unlabelled)


def query_columns(source: SqlSource, prepared: PreparedSource, weight: str | None) -> Iterator[PartColumns]:
    """The columns of every part, as SQL sees them; each place has an alias of its own."""
    i, w, around = 0, None if weight is None else "w", source.needs_middle
    for part in prepared.plan.parts:
        nan = prepared.has_nan or part.spec.threshold is not None  # a threshold would take NaN for the largest number
        columns = []
        for name, encoding in zip(map(str, part.columns), part.encodings, strict=True):
            near, kind, is_level = prepared.middle_values.get(name, 0.0), source.columns[name], encoding.is_read_as_text
            cells = encoding if part.block_kind == "codes" and not is_level else None
            columns.append(SourceColumn(name, kind, source.dialect, f"f{i}", is_level, w, nan, near, around, cells))
            i += 1
        yield part, columns


def _is_counted_separately(column: SourceColumn, prepared: PreparedSource, dialect: Dialect) -> bool:
    if not column.is_counted_by_level:
        return False
    return (
        column.weight is not None or column.name in prepared.many_level_columns or dialect.histogram(column.x) is None
    )


def _query_groups(rows: LabelledSource, asked: Sequence[PartColumns]) -> tuple[GroupKeys, GroupAnswers, int]:
    """The groups, the answers of some columns in each, and how many rows have no label."""
    source: Any = rows.source
    wanted: dict[str, Expr] = {"rows": exp.Count(this=exp.Star()), **weight_totals(rows.weight, source.dialect)}
    for part, columns in asked:
        if columns:
            wanted |= get_statistic(part).select_expressions(part, columns, source.dialect)
    fold = exp.column("fold") if rows.folds else number_literal(0)  # not a key where it is the same in all rows
    select = exp.Select(expressions=[exp.column("y"), fold, *wanted.values()])
    inner = project_rows(rows, [c for _, columns in asked for c in columns]).subquery("t", copy=False)
    select = select.from_(inner, copy=False).group_by("y", *(["fold"] if rows.folds else []), copy=False)
    groups = source.fetch_rows(select.sql(source.dialect.name, copy=False))
    found = [row for row in groups if not is_missing_label(row[0])]
    if not found:
        raise InputError(f"no row of {source.name} has a label", column=rows.target)
    answers = {key: [row[at] for row in found] for at, key in enumerate(wanted, 2)}
    unlabelled = sum(row[2] for row in groups) - sum(row[2] for row in found)
    return {(row[0], int(row[1])): g for g, row in enumerate(found)}, answers, unlabelled


def project_rows(rows: LabelledSource, columns: Sequence[SourceColumn]) -> exp.Select:
    """Label ``y``, ``fold``, weight ``w``, and the columns as the model wants them, by their aliases."""
    source: Any = rows.source
    fold = fold_column(rows.folds) or [exp.alias_(number_literal(0), "fold")]
    y = SourceColumn(rows.target, source.columns[rows.target], source.dialect, is_level=True)
    chosen = [exp.alias_(y.aggregate_value, "y"), *fold]
    if rows.weight is not None:
        w = source.dialect.parse_number(exp.column(rows.weight, quoted=True), source.columns[rows.weight])
        chosen.append(exp.alias_(w, "w"))
    names = [one.alias for one in chosen]
    chosen += [exp.alias_(column.aggregate_value, column.alias, copy=False) for column in columns]
    read = project_expressions(source, chosen, rows.folds).where(source.tick, copy=False)
    if all(column.grid is None for column in columns):
        return read
    coded = [*map(exp.column, names), *(column.code for column in columns)]
    return exp.Select(expressions=coded).from_(read.subquery("r", copy=False), copy=False)


def weight_totals(weight: str | None, dialect: Dialect) -> dict[str, Expr]:
    """What is asked of the weights of a group."""
    if weight is None:
        return {"weight": exp.Count(this=exp.Star())}
    w = exp.column("w")
    missing = exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Count(this=w))
    return {"weight": dialect.exact_sum(w.copy()), "least weight": exp.Min(this=w.copy()), "weights missing": missing}


def _group_level_columns(columns: Sequence[SourceColumn], dialect: Dialect) -> Iterator[list[SourceColumn]]:
    """Columns whose levels one query counts: those that can be stacked are of one type."""
    most, kinds = (
        MAX_GROUPING_SETS if dialect.has_grouping_sets or dialect.can_stack else 1,
        dict[str, list[SourceColumn]](),
    )
    for column in columns:
        kinds.setdefault(column.type if dialect.can_stack and column.is_level else "", []).append(column)
    for some in kinds.values():
        yield from (some[start : start + most] for start in range(0, len(some), most))


def _count_levels(
    rows: LabelledSource, columns: Sequence[SourceColumn], keys: GroupKeys, answers: GroupAnswers
) -> None:
    """Count levels by grouping by them: the way that bears a million levels, and weights."""
    source: Any = rows.source
    by_level = _count_by_stack if source.dialect.can_stack else _count_by_grouping_sets
    levels_seen = [answers[levels_key(column)] for column in columns]
    for label, fold, j, value, weight in by_level(rows, columns):
        group = keys.get((label, fold))  # of a row without a label there is none
        if group is not None and not is_absent(value):
            levels_seen[j][group][value] = weight


def _count_by_grouping_sets(rows: LabelledSource, columns: Sequence[SourceColumn]) -> Iterator[LevelRow]:
    """One grouping set a column."""
    source: Any = rows.source
    names = [exp.column(column.alias) for column in columns]
    by = [exp.column("y"), exp.column("fold")]
    which = source.dialect.grouping(*names) if len(columns) > 1 else number_literal(0)
    total = exp.alias_(_row_weight(rows), "total")
    select = exp.select("y", "fold", exp.alias_(which, "which"), total, *names)
    select = select.from_(project_rows(rows, columns).subquery("t"))
    if len(columns) > 1:
        sets = [exp.Tuple(expressions=[*by, name]) for name in names]
        select.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
    else:
        select = select.group_by(*by, *names)
    bit = {(1 << len(columns)) - 1 - (1 << (len(columns) - 1 - j)): j for j in range(len(columns))}
    for label, fold, mask, weight, *values in source.stream_rows(select.sql(source.dialect.name)):
        yield label, fold, (j := bit[mask]), values[j], weight


def _count_by_stack(rows: LabelledSource, columns: Sequence[SourceColumn]) -> Iterator[LevelRow]:
    """One row a column, and rows grouped by column and level."""
    source: Any = rows.source
    kept = ["y", "fold", *(["w"] if rows.weight else [])]
    stack = source.dialect.stack([exp.column(column.alias) for column in columns])
    each = exp.select(*kept, stack).from_(project_rows(rows, columns).subquery("t")).subquery("s")
    by = ["y", "fold", "which", "level"]
    select = exp.select(*by, exp.alias_(_row_weight(rows), "total")).from_(each).group_by(*by)
    yield from source.stream_rows(select.sql(source.dialect.name))


def _row_weight(rows: LabelledSource) -> Expr:
    """The weight of the rows of a group."""
    source: Any = rows.source
    return exp.Count(this=exp.Star()) if rows.weight is None else source.dialect.exact_sum(exp.column("w"))


def _find_better_middles(counted: CountResult, prepared: PreparedSource) -> dict[str, Any]:
    """A middle for each label of a column, where the one used lies so far out that digits were lost."""
    whole = reduce(add, counted.fold_counts)
    out: dict[str, Any] = dict(prepared.middle_values)
    for part, tally in zip(whole.plan.parts, whole.tallies, strict=True):
        for j, name in enumerate(map(str, part.columns)):
            means = get_statistic(part).distant_means(tally, j, prepared.middle_values.get(name, 0.0))
            if means is not None:
                out[name] = dict(zip(whole.labels.values, means.tolist(), strict=True))
    return out if out != prepared.middle_values else {}


def make_fold_counts(
    plan: Plan, part_columns: Sequence[PartColumns], keys: GroupKeys, answers: GroupAnswers, folds: int
) -> list[ModelCounts]:
    """The counts of each fold, from the answers of every column in every group."""
    labels = Labels.from_values([label for label, _ in keys])
    code = np.array([labels.encode([label])[0] for label, _ in keys], np.intp)
    fold_of_group = np.array([fold for _, fold in keys])
    counted = [_make_tally(part, columns, answers) for part, columns in part_columns]
    plan, tallies = Plan(plan.columns, tuple(part for part, _ in counted)), [tally for _, tally in counted]
    out = []
    for fold in range(folds):
        mine = np.flatnonzero(fold_of_group == fold)
        moved = tuple(tally.select_classes(mine).remap(code[mine], len(labels)) for tally in tallies)
        weight = np.zeros(len(labels))
        weight[code[mine]] = [answers["weight"][g] for g in mine]
        out.append(ModelCounts(plan, labels, weight, moved, sum(int(answers["rows"][g]) for g in mine)))
    return out


def _make_tally(
    part: PlanPart, columns: list[SourceColumn], answers: Mapping[str, Sequence[Any]]
) -> tuple[PlanPart, Tally]:
    """A part with the levels that occur, and its tally, a row for each group."""
    if any(column.is_level for column in columns):
        levels_seen = zip(part.encodings, columns, strict=True)
        part = replace(
            part, encodings=tuple(LevelEncoding(seen_levels(c, answers)) if c.is_level else e for e, c in levels_seen)
        )
    tally = get_statistic(part).build_tally(part, columns, answers)
    if (cell := tally.find_too_large()) is not None:
        name, remedy = columns[tally.locate_cell(cell[1])[0]].name, "make the value missing, or drop the row"
        raise SumTooLargeError(f"a value is infinite, or sums of values exceed {MAX_SUM:g}", column=name, remedy=remedy)
    return part, tally


def check_weights(answers: GroupAnswers, weight: str | None) -> None:
    """Refuse weights that are missing, negative or not finite."""
    for total in answers.get("weight", ()) if weight is not None else ():
        if total is not None and not np.isfinite(total):
            raise InputError(f"a weight is {total:g}; weights must be numbers >= 0", column=weight, value=total)
    for low, missing in zip(answers.get("least weight", ()), answers.get("weights missing", ()), strict=True):
        if missing or (low is not None and not low >= 0):
            what = "missing" if missing else f"{low:g}"
            text = f"a weight is {what}; weights must be numbers >= 0"
            raise InputError(text, column=weight, value=None if missing else low)
