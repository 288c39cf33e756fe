"""Counting by hand: one query that a person runs where the rows are, whose result is a table of a fixed shape.

A line of the result has its kind (``what``) and column (``place``), then class, level, and numbers under the names of
the statistics. The first lines repeat the plan, so that a result records how it was counted.
No line has a null for a label or a level: what is missing has a name of its own, so that nothing is lost in a CSV. All
numbers of a class come from one pass; levels take one pass for thirty columns, or for each where a database does not
group in several ways.

>>> from candide.engines.base import PreparedSource, LabelledSource
>>> from candide.engines.sql.dialects.registry import get_dialect
>>> from candide.events import Categorical
>>> from candide.model.plan import PlanPart, Plan
>>> jobs = PreparedSource(Plan(("job",), (PlanPart(Categorical(), ("job",)),)))
>>> away = OfflineTable(get_dialect("mysql"), "shop.people", {"job": "VARCHAR", "buys": "VARCHAR"})
>>> print(make_query(LabelledSource(away, "buys"), jobs, ["the plan"]).splitlines()[-1][-70:])
 FROM shop.people) AS t) AS t WHERE NOT y IS NULL GROUP BY y, f0) AS g
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from candide.data.text_formats import parse_plain_numbers
from candide.engines.base import LabelledSource, PreparedSource
from candide.engines.sql.count import MAX_GROUPING_SETS, PartColumns, project_rows, query_columns, weight_totals
from candide.engines.sql.dialect import ANY_NUMBER, Dialect, Expr, call_function
from candide.engines.sql.source import SourceColumn
from candide.engines.sql.statistics import get_statistic
from candide.errors import InputError

PLAN, CLASS, UNLABELLED, NUMBERS, LEVEL, MISSING = "plan", "class", "unlabelled", "numbers", "level", "missing"
# Of a line the weight; of a class its rows and those of the table; of numbers the answers of their statistic.
FIGURE_COLUMNS = (
    "n", "rows", "table_rows", "gap", "square", "middle", "total", "low", "log_factorial", "above",
    "absent",
)  # fmt: skip
HEADER = ("what", "place", "label", "level", *FIGURE_COLUMNS)
_QUERY = re.compile(r"[\s(]*(SELECT|WITH)\s", re.IGNORECASE)
_NUMBER = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT|DOUBLE|FLOAT|REAL|DECIMAL|NUMERIC")  # types, ANY_NUMBER too
NO_COLUMN = -1  # the place of lines without a column


class OfflineTable:
    """A table that nobody has opened, as queries need it: its name, its dialect, and the types of its columns.

    ``table`` may be a query. What ``missing`` names is missing, in columns of numbers as a number, and in those whose
    unknown type, ``text_levels``, also as a database writes the number.
    """

    tick = None
    needs_middle = True  # which loses no digits, whatever its own variance does

    def __init__(
        self,
        dialect: Dialect,
        table: str,
        columns: Mapping[str, str],
        missing: Sequence[str] = (),
        text_levels: Collection[str] = (),
    ):
        self.name, self.dialect, self.columns = table, dialect, columns
        self.view: Any = self._query(table) if _QUERY.match(table) else self._table(table)
        if missing:
            known = [*missing, *_missing_texts(missing)]
            each = {name: known if name in text_levels else missing for name in columns}
            chosen = [exp.alias_(self._mask_missing(name, some), name, quoted=True) for name, some in each.items()]
            self.view = exp.Select(expressions=chosen).from_(self.view, copy=False).subquery("v")

    def _table(self, name: str) -> Expr:
        try:
            view = exp.to_table(name, dialect=self.dialect.name)
        except SqlglotError:
            view = None
        if not isinstance(view, exp.Table) or not view.name:
            remedy = "pass the name as it stands after FROM, such as shop.orders"
            raise InputError(f"{name!r} is not a valid table name in {self.dialect.name}", value=name, remedy=remedy)
        return view

    def _query(self, text: str) -> Expr:
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
        x, kind = exp.column(name, quoted=True), self.columns[name].upper()
        if self.dialect.is_time(kind) or kind == "BOOLEAN":
            return x
        if _NUMBER.match(kind):
            value, never = (
                self.dialect.parse_number(x, ANY_NUMBER),
                [*map(self.dialect.literal, parse_plain_numbers(missing))],
            )
        else:
            value, never = self.dialect.text(x), [self._literal_text(text) for text in missing]
        if not never:
            return x
        is_missing = exp.In(this=value, expressions=never)
        return exp.Case(ifs=[exp.If(this=is_missing, true=exp.Null())], default=x)

    def _literal_text(self, text: str) -> Expr:
        """A text in which the database puts nothing in the place of another."""
        parts = [*map(_text, self.dialect.split_literal(text))]
        return parts[0] if len(parts) == 1 else call_function("CONCAT", *parts)


def _missing_texts(missing: Sequence[str]) -> list[str]:
    """How databases write the numbers that mean a missing value: -999 is -999.0 in a column of doubles."""
    numbers = parse_plain_numbers(missing)
    whole = [str(int(number)) for number in numbers if number.is_integer()]
    return [text for text in dict.fromkeys([*whole, *map(repr, numbers)]) if text not in missing]


def make_query(rows: LabelledSource, prepared: PreparedSource, plan_lines: Sequence[str]) -> str:
    """The counts of a plan of moments, sums and levels as one table; before them some lines of text, as they are."""
    dialect = rows.source.dialect  # type: ignore[attr-defined]
    asked = list(query_columns(rows.source, prepared, rows.weight))  # type: ignore[arg-type]
    lines = [_result_line(dialect, _text(PLAN), _whole(i), level=_text(text)) for i, text in enumerate(plan_lines)]
    found = [
        *lines,
        _class_lines(rows, asked),
        *_level_lines(rows, [c for _, columns in asked for c in columns if c.is_counted_by_level]),
    ]
    return "\nUNION ALL\n".join(select.sql(dialect.name) for select in found)


def _class_lines(rows: LabelledSource, asked: Sequence[PartColumns]) -> exp.Select:
    """A line a class, and one a class and column of numbers: aggregates in one row a class, spread over lines."""
    source: Any = rows.source
    dialect = source.dialect
    wanted: dict[str, Expr] = {"rows": exp.Count(this=exp.Star(), big_int=True)}
    wanted |= {_FIGURE_BY_ANSWER[name]: value for name, value in weight_totals(rows.weight, dialect).items()}
    each, numbers = {NO_COLUMN: list(wanted)}, list[SourceColumn]()
    for part, columns in asked:
        some = [column for column in columns if not column.is_counted_by_level]
        for column in some:
            answers = get_statistic(part).select_expressions(part, [column], dialect)
            each[_column_place(column)] = [key.removeprefix(f"{column.alias}_") for key in answers]
            wanted |= answers
        numbers += some
    grouped = exp.Select(expressions=[exp.column("y"), *(exp.alias_(e, f"c_{key}") for key, e in wanted.items())])
    grouped = grouped.from_(_read_columns(rows, numbers), copy=False).group_by("y", copy=False)
    table_rows = exp.Window(this=exp.Sum(this=dialect.double(exp.column("c_rows"))))
    whole = exp.select("*", exp.alias_(table_rows, "c_table_rows")).from_(grouped.subquery("g", copy=False), copy=False)
    each[NO_COLUMN].append("table_rows")
    k, y = exp.column("k"), exp.column("y")
    spread = {figure: _figure_by_place(dialect, each, figure) for figure in FIGURE_COLUMNS}
    of_class = exp.If(this=exp.EQ(this=k, expression=_whole(NO_COLUMN)), true=_text(CLASS))
    what = exp.Case(ifs=[exp.If(this=_is_null(y), true=_text(UNLABELLED)), of_class], default=_text(NUMBERS))
    line = _result_line(dialect, what, k.copy(), label=y.copy(), **spread)
    line = line.from_(whole.subquery("c", copy=False), copy=False)
    line = line.join(_number_table(list(each)).subquery("p"), join_type="cross", copy=False)
    unlabelled = exp.Or(
        this=exp.Not(this=_is_null(y.copy())), expression=exp.EQ(this=k.copy(), expression=_whole(NO_COLUMN))
    )
    return line.where(unlabelled, copy=False)


_FIGURE_BY_ANSWER = {"weight": "n", "least weight": "low", "weights missing": "absent"}


def _figure_by_place(dialect: Dialect, each: Mapping[int, Sequence[str]], figure: str) -> Expr | None:
    """Of a figure the answer of the column that a line is of; a weight is never null, which a lost cell would be."""
    ifs = []
    for at in (at for at, figures in each.items() if figure in figures):
        answer = dialect.double(exp.column(f"c_{figure}" if at == NO_COLUMN else f"c_f{at}_{figure}"))
        if figure in ("n", "above"):
            answer = exp.Coalesce(this=answer, expressions=[dialect.literal(0.0)])
        ifs.append(exp.If(this=_whole(at), true=answer))
    return exp.Case(this=exp.column("k"), ifs=ifs) if ifs else None


def _level_lines(rows: LabelledSource, columns: Sequence[SourceColumn]) -> Iterator[exp.Select]:
    """A line a class and level, some columns in one pass where the database groups in several ways."""
    source: Any = rows.source
    dialect = source.dialect
    step = MAX_GROUPING_SETS if dialect.has_grouping_sets else 1
    for start in range(0, len(columns), step):
        some = columns[start : start + step]
        names = [exp.column(column.alias) for column in some]
        total = exp.Count(this=exp.Star(), big_int=True) if rows.weight is None else dialect.exact_sum(exp.column("w"))
        place: Expr
        level: Expr
        place, level = _whole(_column_place(some[0])), names[0].copy()
        if len(some) > 1:
            bits = [(1 << len(some)) - 1 - (1 << (len(some) - 1 - j)) for j in range(len(some))]
            ifs = [exp.If(this=_whole(bit), true=_whole(_column_place(c))) for bit, c in zip(bits, some, strict=True)]
            place = exp.Case(this=dialect.grouping(*names), ifs=ifs)
            level = exp.Coalesce(this=level, expressions=[name.copy() for name in names[1:]])
        chosen = [exp.column("y"), exp.alias_(place, "k"), exp.alias_(level, "v"), exp.alias_(total, "c_n")]
        grouped = exp.Select(expressions=chosen).from_(_read_columns(rows, some), copy=False)
        grouped = grouped.where(exp.Not(this=_is_null(exp.column("y"))), copy=False)
        if len(some) > 1:
            sets = [exp.Tuple(expressions=[exp.column("y"), name.copy()]) for name in names]
            grouped.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
        else:
            grouped = grouped.group_by("y", *(name.copy() for name in names), copy=False)
        v, n = exp.column("v"), dialect.double(exp.column("c_n"))
        what = exp.Case(ifs=[exp.If(this=_is_null(v), true=_text(MISSING))], default=_text(LEVEL))
        line = _result_line(dialect, what, exp.column("k"), label=exp.column("y"), level=v.copy(), n=n)
        yield line.from_(grouped.subquery("g", copy=False), copy=False)


def _read_columns(rows: LabelledSource, columns: Sequence[SourceColumn]) -> Expr:
    """The columns as the model wants them, labels and levels as text."""
    dialect = rows.source.dialect  # type: ignore[attr-defined]
    kept = [exp.alias_(dialect.text(exp.column("y")), "y"), *([exp.column("w")] if rows.weight else [])]
    for column in columns:
        kept.append(exp.alias_(dialect.text(column.x), column.alias) if column.is_counted_by_level else column.x)
    return exp.Select(expressions=kept).from_(project_rows(rows, columns).subquery("t"), copy=False).subquery("t")


def _result_line(dialect: Dialect, what: Expr, place: Expr, **known: Expr | None) -> exp.Select:
    """A line of the result: of what is not known a null of its type."""
    cells = {"what": what, "place": place, **known}
    out = []
    for name in HEADER:
        cell = cells.get(name)
        if cell is None:
            null = exp.Null()
            cell = dialect.double(null) if name in FIGURE_COLUMNS else dialect.text(null)
        out.append(exp.alias_(cell, name, quoted=True))
    return exp.Select(expressions=out)


def _number_table(numbers: Sequence[int]) -> Expr:
    """A table of some whole numbers."""
    selects = [exp.select(exp.alias_(_whole(number), "k")) for number in numbers]
    return exp.union(*selects, distinct=False) if len(selects) > 1 else selects[0]


def _column_place(column: SourceColumn) -> int:
    return int(column.alias.removeprefix("f"))


def _is_null(x: Expr) -> Expr:
    return exp.Is(this=x, expression=exp.Null())


def _text(value: str) -> Expr:
    return exp.Literal.string(value)


def _whole(value: int) -> Expr:
    return exp.Literal.number(value)
