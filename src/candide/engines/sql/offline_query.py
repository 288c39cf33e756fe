"""One counting query that a user runs where the rows are; its result is a table of a fixed shape.

A line of the result has its kind (``what``) and column (``place``), then class, level, and numbers under the names of
the statistics. The first lines repeat the plan. No label or level is null, so that nothing is lost in a CSV: what is
missing has its own kind of line. All numbers come from one pass; levels take one pass for thirty columns, or for each
column in a database without grouping sets.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from candide.data.text_formats import parse_plain_numbers
from candide.engines.base import LabelledSource, PreparedSource
from candide.engines.sql.dialect import ANY_NUMBER, Dialect, Expr, SourceColumn, call_function, is_null, string_literal
from candide.engines.sql.source import (
    MAX_GROUPING_SETS,
    PartColumns,
    group_by_each,
    grouping_masks,
    project_rows,
    query_columns,
    weight_totals,
)
from candide.engines.sql.statistics import get_statistic
from candide.errors import InputError

PLAN, CLASS, UNLABELLED, NUMBERS, LEVEL, MISSING = "plan", "class", "unlabelled", "numbers", "level", "missing"
# The weight of a line; the rows of a class and of the table; the answers of the statistic of a numeric column.
FIGURES = ("n", "rows", "table_rows", "gap", "square", "middle", "total", "low", "log_factorial", "above", "absent")
HEADER = ("what", "place", "label", "level", *FIGURES)
_QUERY = re.compile(r"[\s(]*(SELECT|WITH)\s", re.IGNORECASE)
_NUMBER = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|REAL|DECIMAL|NUMERIC")  # types, ANY_NUMBER too
NO_COLUMN = -1  # place of lines without a column


class OfflineTable:
    """A table that is not opened, as queries need it: its name, its dialect, and the types of its columns.

    ``table`` may be a query. The markers ``missing`` are missing values: in numeric columns as numbers, and in columns
    of unknown type, ``text_levels``, also as a database writes these numbers.
    """

    tick = None
    needs_middle = True  # loses no digits, whatever the database's variance does

    def __init__(
        self,
        dialect: Dialect,
        table: str,
        columns: Mapping[str, str],
        missing: Sequence[str] = (),
        text_levels: Collection[str] = (),
    ):
        self.name, self.dialect, self.columns = table, dialect, columns
        self.view: Any = self._parse_query(table) if _QUERY.match(table) else self._parse_table(table)
        if missing:
            # Databases write the numbers that mean a missing value in several ways: -999 is -999.0 among doubles.
            numbers = parse_plain_numbers(missing)
            whole = [str(int(number)) for number in numbers if number.is_integer()]
            texts = list(dict.fromkeys([*missing, *whole, *map(repr, numbers)]))
            markers = {name: texts if name in text_levels else missing for name in columns}
            chosen = [exp.alias_(self._mask_missing(name, each), name, quoted=True) for name, each in markers.items()]
            self.view = exp.Select(expressions=chosen).from_(self.view, copy=False).subquery("v")

    def _parse_table(self, name: str) -> Expr:
        try:
            view = exp.to_table(name, dialect=self.dialect.name)
        except SqlglotError:
            view = None
        if not isinstance(view, exp.Table) or not view.name:
            remedy = "pass the name as it stands after FROM, such as shop.orders"
            raise InputError(f"{name!r} is not a valid table name in {self.dialect.name}", value=name, remedy=remedy)
        return view

    def _parse_query(self, text: str) -> Expr:
        text = text.strip().rstrip(";")
        try:
            trees = sqlglot.parse(text, dialect=self.dialect.name)
        except SqlglotError:
            trees = []
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            remedy = "pass one SELECT, or the name of a table or view"
            raise InputError(f"{text!r} is not a valid query in {self.dialect.name}", value=text, remedy=remedy)
        return exp.var(f"({text}\n) AS q")  # as it was written

    def _mask_missing(self, name: str, missing: Sequence[str]) -> Expr:
        x, kind, dialect = exp.column(name, quoted=True), self.columns[name].upper(), self.dialect
        if dialect.is_time(kind) or kind == "BOOLEAN":
            return x
        if _NUMBER.match(kind):
            value, markers = dialect.parse_number(x, ANY_NUMBER), [*map(dialect.literal, parse_plain_numbers(missing))]
        else:
            texts = [[*map(string_literal, dialect.split_literal(text))] for text in missing]
            value, markers = dialect.text(x), [t[0] if len(t) == 1 else call_function("CONCAT", *t) for t in texts]
        if not markers:
            return x
        is_missing = exp.In(this=value, expressions=markers)
        return exp.Case(ifs=[exp.If(this=is_missing, true=exp.Null())], default=x)


def make_query(rows: LabelledSource, prepared: PreparedSource, plan_lines: Sequence[str]) -> str:
    """The counts of a plan of moments, sums and levels as one table, after lines of text that describe the plan."""
    source: Any = rows.source
    dialect, part_columns = source.dialect, list(query_columns(source, prepared, rows.weight))
    lines = [
        _result_line(dialect, string_literal(PLAN), _whole(i), level=string_literal(text))
        for i, text in enumerate(plan_lines)
    ]
    levels = [column for _, columns in part_columns for column in columns if column.is_counted_by_level]
    lines += [_class_lines(rows, part_columns), *_level_lines(rows, levels)]
    return "\nUNION ALL\n".join(select.sql(dialect.name) for select in lines)


def _class_lines(rows: LabelledSource, part_columns: Sequence[PartColumns]) -> exp.Select:
    """A line for each class, and one for each class and numeric column: one row of aggregates, spread over lines."""
    source: Any = rows.source
    dialect = source.dialect
    answers: dict[str, Expr] = {"rows": exp.Count(this=exp.Star(), big_int=True)}
    answers |= {_FIGURE_BY_ANSWER[name]: value for name, value in weight_totals(rows.weight, dialect).items()}
    figures, numbers = {NO_COLUMN: [*answers, "table_rows"]}, list[SourceColumn]()
    for part, columns in part_columns:
        for column in (column for column in columns if not column.is_counted_by_level):
            expressions = get_statistic(part).select_expressions(part, [column], dialect)
            figures[column.place] = [key.removeprefix(f"{column.alias}_") for key in expressions]
            answers |= expressions
            numbers.append(column)
    grouped = exp.Select(expressions=[exp.column("y"), *(exp.alias_(e, f"c_{key}") for key, e in answers.items())])
    grouped = grouped.from_(_read_columns(rows, numbers), copy=False).group_by("y", copy=False)
    table_rows = exp.Window(this=exp.Sum(this=dialect.double(exp.column("c_rows"))))
    whole = exp.select("*", exp.alias_(table_rows, "c_table_rows")).from_(grouped.subquery("g", copy=False), copy=False)
    k, y = exp.column("k"), exp.column("y")
    is_class = exp.EQ(this=k, expression=_whole(NO_COLUMN))
    cases = [
        exp.If(this=is_null(y), true=string_literal(UNLABELLED)),
        exp.If(this=is_class, true=string_literal(CLASS)),
    ]
    what = exp.Case(ifs=cases, default=string_literal(NUMBERS))
    cells = {figure: _figure_by_place(dialect, figures, figure) for figure in FIGURES}
    line = _result_line(dialect, what, k.copy(), label=y.copy(), **cells)
    line = line.from_(whole.subquery("c", copy=False), copy=False)
    places = [exp.select(exp.alias_(_whole(place), "k")) for place in figures]
    place_table: Expr = exp.union(*places, distinct=False) if len(places) > 1 else places[0]
    line = line.join(place_table.subquery("p"), join_type="cross", copy=False)
    return line.where(exp.Or(this=exp.Not(this=is_null(y.copy())), expression=is_class.copy()), copy=False)


_FIGURE_BY_ANSWER = {"weight": "n", "least weight": "low", "weights missing": "absent"}


def _figure_by_place(dialect: Dialect, figures: Mapping[int, Sequence[str]], figure: str) -> Expr | None:
    """A figure of the column that a line is of; a weight is never null, as a lost cell would be."""
    cases = []
    for place in (place for place, names in figures.items() if figure in names):
        answer = dialect.double(exp.column(f"c_{figure}" if place == NO_COLUMN else f"c_f{place}_{figure}"))
        if figure in ("n", "above"):
            answer = exp.Coalesce(this=answer, expressions=[dialect.literal(0.0)])
        cases.append(exp.If(this=_whole(place), true=answer))
    return exp.Case(this=exp.column("k"), ifs=cases) if cases else None


def _level_lines(rows: LabelledSource, columns: Sequence[SourceColumn]) -> Iterator[exp.Select]:
    """A line for each class and level; several columns in one pass where the database has grouping sets."""
    source: Any = rows.source
    dialect = source.dialect
    count = exp.Count(this=exp.Star(), big_int=True) if rows.weight is None else dialect.exact_sum(exp.column("w"))
    step = MAX_GROUPING_SETS if dialect.has_grouping_sets else 1
    for start in range(0, len(columns), step):
        group = columns[start : start + step]
        names = [exp.column(column.alias) for column in group]
        place: Expr = _whole(group[0].place)
        level: Expr = names[0].copy()
        if len(group) > 1:
            masks = zip(grouping_masks(len(group)), group, strict=True)
            cases = [exp.If(this=_whole(mask), true=_whole(column.place)) for mask, column in masks]
            place = exp.Case(this=dialect.grouping(*names), ifs=cases)
            level = exp.Coalesce(this=level, expressions=[name.copy() for name in names[1:]])
        y, v = exp.column("y"), exp.column("v")
        chosen = [y, exp.alias_(place, "k"), exp.alias_(level, "v"), exp.alias_(count.copy(), "c_n")]
        grouped = exp.Select(expressions=chosen).from_(_read_columns(rows, group), copy=False)
        grouped = group_by_each(grouped.where(exp.Not(this=is_null(y.copy())), copy=False), [y.copy()], names)
        what = exp.Case(ifs=[exp.If(this=is_null(v), true=string_literal(MISSING))], default=string_literal(LEVEL))
        n = dialect.double(exp.column("c_n"))
        line = _result_line(dialect, what, exp.column("k"), label=y.copy(), level=v.copy(), n=n)
        yield line.from_(grouped.subquery("g", copy=False), copy=False)


def _read_columns(rows: LabelledSource, columns: Sequence[SourceColumn]) -> Expr:
    """The columns as the model needs them, labels and levels as text."""
    source: Any = rows.source
    text = source.dialect.text
    chosen = [exp.alias_(text(exp.column("y")), "y"), *([exp.column("w")] if rows.weight else [])]
    chosen += [exp.alias_(text(c.x), c.alias) if c.is_counted_by_level else c.x for c in columns]
    return exp.Select(expressions=chosen).from_(project_rows(rows, columns).subquery("t"), copy=False).subquery("t")


def _result_line(dialect: Dialect, what: Expr, place: Expr, **cells: Expr | None) -> exp.Select:
    """A line of the result; cells without a value are nulls of their type."""
    values = {"what": what, "place": place, **cells}
    out = []
    for name in HEADER:
        null = dialect.double if name in FIGURES else dialect.text
        out.append(exp.alias_(values.get(name) or null(exp.Null()), name, quoted=True))
    return exp.Select(expressions=out)


def _whole(value: int) -> Expr:
    return exp.Literal.number(value)
