"""Sources in a database: a view that answers queries in a dialect, and the counts of a whole table by one of these.

Rows are grouped by class (and fold), and every statistic of every column comes back in one row for each group. Columns
with very many levels, and weighted levels, take separate queries.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from sqlglot import exp

from candide.data.labels import Labels, is_absent, is_missing_label, parse_levels
from candide.data.sample import HASH_DIGITS, invalid_key_error
from candide.encoding import LevelEncoding
from candide.engines.base import CountResult, Engine, Folds, LabelledSource, PreparedSource, Source
from candide.engines.sql.dialect import Dialect, Expr, SourceColumn, number_literal, string_literal
from candide.engines.sql.statistics import SQL_TALLY_KINDS, get_statistic, levels_key, seen_levels
from candide.errors import InputError, SumTooLargeError
from candide.model.counts import ModelCounts
from candide.model.plan import Plan, PlanPart
from candide.tally import Tally
from candide.tally.base import MAX_SUM

_ROW, FOLD = "candide_row", "candide_fold"
_KEYS = re.compile(  # types of integers and text, whose text form is the same in every database
    r"U?(TINY|SMALL|MEDIUM|BIG|HUGE)?INT(EGER|\d+)?\b|(DECIMAL|NUMERIC)\(\d+, ?0\)"
    r"|(VAR|BP)?CHAR|CHARACTER|TEXT|STRING|ENUM|UUID"
)
MAX_GROUPING_SETS = 30  # in one query: the mask of their columns must fit into 32 bits

GroupKeys = dict[tuple[Any, int], int]  # (label, fold) -> position of its group
GroupAnswers = dict[str, list[Any]]  # key of an expression -> its value in each group
PartColumns = tuple[PlanPart, list[SourceColumn]]  # a part, and all or a subset of its columns
LevelRow = tuple[Any, int, int, Any, float]  # label, fold, index of the column, level, weight of these rows


class SqlSource(Source, Protocol):
    """A subclass gives ``fetch_rows`` and ``arrow_batches``; the queries are built here."""

    dialect: Dialect
    view: str  # what to select from

    @property
    def tick(self) -> Expr | None:
        """A condition that is true of every row and counts it, for a progress bar."""
        return None

    def fetch_rows(self, sql: str) -> list[tuple]:
        """Run a query and fetch its rows."""

    def stream_rows(self, sql: str) -> Iterable[tuple]:
        """The rows of a query that may be many."""
        return self.fetch_rows(sql)

    def arrow_batches(self, sql: str, size: int) -> Any:
        """Run a query and read its result in Arrow record batches."""

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Any:
        chosen = [exp.column(name, quoted=True) for name in columns]
        return self.arrow_batches(select_sql(self, [*chosen, *fold_column(folds)], folds), size)

    def with_folds(self, folds: Folds) -> Expr:
        """What to select from for the columns and the fold of each row."""
        select = assign_folds(self, folds, "*") if folds.key_column is None else fold_sql_by_key(self, folds)
        return select.subquery("folds")


def select_sql(source: SqlSource, expressions: Sequence[Expr], folds: Folds | None = None) -> str:
    return project_expressions(source, expressions, folds).sql(source.dialect.name, copy=False)


def project_expressions(source: SqlSource, expressions: Sequence[Expr], folds: Folds | None = None) -> exp.Select:
    """Expressions of every row, without the copies of thousands of columns that the builder would make."""
    base = source.with_folds(folds) if folds else exp.to_table(source.view)
    return exp.Select(expressions=list(expressions)).from_(base, copy=False)


def assign_folds(source: SqlSource, folds: Folds, *columns: str) -> exp.Select:
    """A query for columns and the fold of each row: shuffled, sorted by class, and assigned in turn.

    The rows are numbered in their order, which is kept, and the numbers hashed with the seed.
    """
    row = exp.column(_ROW)
    keys = [source.dialect.hash(exp.Add(this=row, expression=number_literal(folds.seed * 1_000_003))), row]
    if folds.label_column is not None:
        keys.insert(0, exp.column(folds.label_column, quoted=True))
    order = exp.Order(expressions=[exp.Ordered(this=key.copy()) for key in keys])
    turn = exp.Mod(this=exp.Window(this=exp.RowNumber(), order=order), expression=number_literal(folds.n))
    fold = exp.alias_(exp.cast(turn, "SMALLINT" if folds.n < 1 << 15 else "INTEGER"), FOLD)
    numbered = exp.select("*", exp.alias_(exp.Window(this=exp.RowNumber()), _ROW)).from_(source.view)
    return exp.select(*columns, fold).from_(numbered.subquery("numbered")).order_by(row)


def fold_sql_by_key(source: SqlSource, folds: Folds) -> exp.Select:
    """Select all columns and the fold of each row by its key, as :func:`candide.data.sample.assign_folds_by_key`."""
    name, dialect = str(folds.key_column), source.dialect
    kind = source.columns[name]
    if not _KEYS.match(kind.upper()) or kind.endswith("]"):  # a list of them
        raise invalid_key_error(name, kind)
    text = exp.Coalesce(this=dialect.text(exp.column(name, quoted=True)), expressions=[string_literal("")])
    salted = exp.Concat(expressions=[string_literal(f"{folds.seed}:"), text], safe=True)
    number = exp.Paren(this=dialect.hex_value(dialect.md5(salted), HASH_DIGITS))
    return exp.select("*", exp.alias_(number % number_literal(folds.n), FOLD)).from_(source.view)


def fold_column(folds: Folds | None) -> list[Expr]:
    return [exp.alias_(exp.column(FOLD), "fold")] if folds else []


# Counting


class SqlEngine(Engine, Protocol):
    """Counts moments, sums and levels by queries."""

    tally_kinds: frozenset[str] = SQL_TALLY_KINDS

    def count(self, rows: LabelledSource, prepared: PreparedSource) -> CountResult:
        """The counts of each fold (one without folds), from one pass over the source.

        If the sample has no NaN, none is expected, which saves a test of every number. A later NaN makes sums that are
        not finite, and a second pass. So does a middle so far from the values that digits were lost.
        """
        try:
            counted = _run_count_query(rows, prepared)
        except InputError:  # other faults raise again
            if prepared.has_nan:
                raise
            prepared = replace(prepared, has_nan=True)
            counted = _run_count_query(rows, prepared)
        if rows.weight is None and not rows.source.needs_middle:
            return counted
        middles = _find_better_middles(counted, prepared)
        return _run_count_query(rows, replace(prepared, middle_values=middles)) if middles else counted


def _run_count_query(rows: LabelledSource, prepared: PreparedSource) -> CountResult:
    source: Any = rows.source
    dialect = source.dialect
    part_columns = list(query_columns(source, prepared, rows.weight))
    columns = [column for _, group in part_columns for column in group]
    many = prepared.many_level_columns
    levels = [column for column in columns if column.is_counted_by_level]
    separate = [c for c in levels if rows.weight is not None or c.name in many or not dialect.histogram_function]
    aliases = {column.alias for column in separate}
    level_queries = list(_group_level_columns(separate, dialect))
    source.passes += len(level_queries)
    together = [(part, [c for c in mixed if c.alias not in aliases]) for part, mixed in part_columns]
    keys, answers, unlabelled = _query_groups(rows, together)
    answers |= {levels_key(column): [{} for _ in keys] for column in separate}
    for level_columns in level_queries:
        _count_levels(rows, level_columns, keys, answers)
    for column in columns:
        if column.name in prepared.text_level_columns and column.is_level:
            weights = [counts or {} for counts in answers[levels_key(column)]]
            parsed = parse_levels(list({level for counts in weights for level in counts}))
            answers[levels_key(column)] = [{parsed[level]: n for level, n in counts.items()} for counts in weights]
    check_weights(answers, rows.weight)
    return CountResult(make_fold_counts(prepared.plan, part_columns, keys, answers, rows.n_folds), unlabelled)


def query_columns(source: SqlSource, prepared: PreparedSource, weight: str | None) -> Iterator[PartColumns]:
    """The columns of every part as SQL sees them, each with its alias."""
    i, w = 0, None if weight is None else "w"
    for part in prepared.plan.parts:
        nan = prepared.has_nan or part.spec.threshold is not None  # a threshold would take NaN for the largest number
        columns = []
        for name, encoding in zip(map(str, part.columns), part.encodings, strict=True):
            middle, is_level = prepared.middle_values.get(name, 0.0), encoding.is_read_as_text
            grid = encoding if part.block_kind == "codes" and not is_level else None
            kind, centered = source.columns[name], source.needs_middle
            columns.append(SourceColumn(name, kind, source.dialect, f"f{i}", is_level, w, nan, middle, centered, grid))
            i += 1
        yield part, columns


def _query_groups(rows: LabelledSource, part_columns: Sequence[PartColumns]) -> tuple[GroupKeys, GroupAnswers, int]:
    """The groups, the answers of columns in each, and how many rows have no label."""
    source: Any = rows.source
    answers: dict[str, Expr] = {"rows": exp.Count(this=exp.Star()), **weight_totals(rows.weight, source.dialect)}
    for part, columns in part_columns:
        if columns:
            answers |= get_statistic(part).select_expressions(part, columns, source.dialect)
    fold = exp.column("fold") if rows.folds else number_literal(0)  # not a key where it is the same in all rows
    select = exp.Select(expressions=[exp.column("y"), fold, *answers.values()])
    inner = project_rows(rows, [c for _, columns in part_columns for c in columns]).subquery("t", copy=False)
    select = select.from_(inner, copy=False).group_by("y", *(["fold"] if rows.folds else []), copy=False)
    groups = source.fetch_rows(select.sql(source.dialect.name, copy=False))
    labelled = [row for row in groups if not is_missing_label(row[0])]
    if not labelled:
        raise InputError(f"no row of {source.name} has a label", column=rows.target)
    unlabelled = sum(row[2] for row in groups) - sum(row[2] for row in labelled)
    keys = {(row[0], int(row[1])): group for group, row in enumerate(labelled)}
    return keys, {key: [row[at] for row in labelled] for at, key in enumerate(answers, 2)}, unlabelled


def project_rows(rows: LabelledSource, columns: Sequence[SourceColumn]) -> exp.Select:
    """Label ``y``, ``fold``, weight ``w``, and the columns as the model needs them, by their aliases."""
    source: Any = rows.source
    y = SourceColumn(rows.target, source.columns[rows.target], source.dialect, is_level=True)
    fold = fold_column(rows.folds) or [exp.alias_(number_literal(0), "fold")]
    chosen = [exp.alias_(y.aggregate_value, "y"), *fold]
    if rows.weight is not None:
        w = source.dialect.parse_number(exp.column(rows.weight, quoted=True), source.columns[rows.weight])
        chosen.append(exp.alias_(w, "w"))
    names = [expression.alias for expression in chosen]
    chosen += [exp.alias_(column.aggregate_value, column.alias, copy=False) for column in columns]
    values = project_expressions(source, chosen, rows.folds).where(source.tick, copy=False)
    if all(column.grid is None for column in columns):
        return values
    coded = [*map(exp.column, names), *(column.code for column in columns)]
    return exp.Select(expressions=coded).from_(values.subquery("r", copy=False), copy=False)


def weight_totals(weight: str | None, dialect: Dialect) -> dict[str, Expr]:
    if weight is None:
        return {"weight": exp.Count(this=exp.Star())}
    w = exp.column("w")
    missing = exp.Sub(this=exp.Count(this=exp.Star()), expression=exp.Count(this=w))
    return {"weight": dialect.exact_sum(w.copy()), "least weight": exp.Min(this=w.copy()), "weights missing": missing}


def _group_level_columns(columns: Sequence[SourceColumn], dialect: Dialect) -> Iterator[list[SourceColumn]]:
    """Columns whose levels one query counts: those that can be stacked have one type."""
    size = MAX_GROUPING_SETS if dialect.has_grouping_sets or dialect.can_stack else 1
    by_type: dict[str, list[SourceColumn]] = {}
    for column in columns:
        by_type.setdefault(column.type if dialect.can_stack and column.is_level else "", []).append(column)
    for group in by_type.values():
        yield from (group[start : start + size] for start in range(0, len(group), size))


def _count_levels(
    rows: LabelledSource, columns: Sequence[SourceColumn], keys: GroupKeys, answers: GroupAnswers
) -> None:
    """Count levels by grouping by them, which works for a million levels, and for weights."""
    source: Any = rows.source
    count = _count_by_stack if source.dialect.can_stack else _count_by_grouping_sets
    levels_seen = [answers[levels_key(column)] for column in columns]
    weight = exp.Count(this=exp.Star()) if rows.weight is None else source.dialect.exact_sum(exp.column("w"))
    for label, fold, j, value, n in count(rows, columns, exp.alias_(weight, "total")):
        group = keys.get((label, fold))  # None for a row without a label
        if group is not None and not is_absent(value):
            levels_seen[j][group][value] = n


def _count_by_grouping_sets(rows: LabelledSource, columns: Sequence[SourceColumn], weight: Expr) -> Iterator[LevelRow]:
    source: Any = rows.source
    names = [exp.column(column.alias) for column in columns]
    which = source.dialect.grouping(*names) if len(columns) > 1 else number_literal(0)
    select = exp.select("y", "fold", exp.alias_(which, "which"), weight, *names)
    select = select.from_(project_rows(rows, columns).subquery("t"))
    select = group_by_each(select, [exp.column("y"), exp.column("fold")], names)
    column_of_mask = {mask: j for j, mask in enumerate(grouping_masks(len(columns)))}
    for label, fold, mask, n, *values in source.stream_rows(select.sql(source.dialect.name)):
        yield label, fold, (j := column_of_mask[mask]), values[j], n


def group_by_each(select: exp.Select, keys: Sequence[Expr], names: Sequence[Expr]) -> exp.Select:
    if len(names) == 1:
        return select.group_by(*keys, *names)
    sets = [exp.Tuple(expressions=[*(key.copy() for key in keys), name.copy()]) for name in names]
    select.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
    return select


def grouping_masks(n: int) -> list[int]:
    """What GROUPING gives for the sets of :func:`group_by_each`: a bit for each name that a row is not grouped by."""
    return [(1 << n) - 1 - (1 << (n - 1 - j)) for j in range(n)] if n > 1 else [0]


def _count_by_stack(rows: LabelledSource, columns: Sequence[SourceColumn], weight: Expr) -> Iterator[LevelRow]:
    source: Any = rows.source
    stack = source.dialect.stack([exp.column(column.alias) for column in columns])
    values = exp.select("y", "fold", *(["w"] if rows.weight else []), stack)
    values = values.from_(project_rows(rows, columns).subquery("t"))
    keys = ["y", "fold", "which", "level"]
    select = exp.select(*keys, weight).from_(values.subquery("s")).group_by(*keys)
    yield from source.stream_rows(select.sql(source.dialect.name))


def _find_better_middles(counted: CountResult, prepared: PreparedSource) -> dict[str, Any]:
    """A middle for each label of a column, where the one used lies so far out that digits were lost."""
    counts = reduce(add, counted.fold_counts)
    out: dict[str, Any] = dict(prepared.middle_values)
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        for j, name in enumerate(map(str, part.columns)):
            means = get_statistic(part).distant_means(tally, j, prepared.middle_values.get(name, 0.0))
            if means is not None:
                out[name] = dict(zip(counts.labels.values, means.tolist(), strict=True))
    return out if out != prepared.middle_values else {}


def make_fold_counts(
    plan: Plan, part_columns: Sequence[PartColumns], keys: GroupKeys, answers: GroupAnswers, folds: int
) -> list[ModelCounts]:
    labels = Labels.from_values([label for label, _ in keys])
    code = np.array([labels.encode([label])[0] for label, _ in keys], np.intp)
    fold_of_group = np.array([fold for _, fold in keys])
    parts, tallies = list[PlanPart](), list[Tally]()  # with the levels that occur, and a row for each group
    for part, columns in part_columns:
        if any(column.is_level for column in columns):
            pairs = zip(part.encodings, columns, strict=True)
            encodings = tuple(LevelEncoding(seen_levels(c, answers)) if c.is_level else e for e, c in pairs)
            part = replace(part, encodings=encodings)
        tally = get_statistic(part).build_tally(part, columns, answers)
        if (cell := tally.find_too_large()) is not None:
            what, at = f"a value is infinite, or sums of values exceed {MAX_SUM:g}", tally.locate_cell(cell[1])[0]
            raise SumTooLargeError(what, column=columns[at].name, remedy="make the value missing, or drop the row")
        parts.append(part)
        tallies.append(tally)
    plan, out = Plan(plan.columns, tuple(parts)), []
    for fold in range(folds):
        groups = np.flatnonzero(fold_of_group == fold)
        remapped = tuple(tally.select_classes(groups).remap(code[groups], len(labels)) for tally in tallies)
        weight = np.zeros(len(labels))
        weight[code[groups]] = [answers["weight"][g] for g in groups]
        out.append(ModelCounts(plan, labels, weight, remapped, sum(int(answers["rows"][g]) for g in groups)))
    return out


def check_weights(answers: GroupAnswers, weight: str | None) -> None:
    if weight is None:
        return
    invalid = [total for total in answers.get("weight", ()) if total is not None and not np.isfinite(total)]
    for low, missing in zip(answers["least weight"], answers["weights missing"], strict=True):
        invalid += [None] if missing else [low] if low is not None and not low >= 0 else []
    for value in invalid[:1]:
        what = "missing" if value is None else f"{value:g}"
        raise InputError(f"a weight is {what}; weights must be numbers >= 0", column=weight, value=value)
