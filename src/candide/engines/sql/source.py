"""What a source in a database is: a view that answers queries in a dialect, and its columns."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from candide.data.sampling import HASH_DIGITS, invalid_key_error
from candide.encoding import Encoding
from candide.engines.base import Folds, Source
from candide.engines.sql.dialect import Dialect, Expr, number_literal

_ROW, FOLD = "candide_row", "candide_fold"


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
        ...

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
        return (assign_folds(self, folds, "*") if folds.key_column is None else fold_sql_by_key(self, folds)).subquery(
            "folds"
        )


def select_sql(source: SqlSource, expressions: Sequence[Expr], folds: Folds | None = None) -> str:
    """A query for some expressions of every row."""
    return project_expressions(source, expressions, folds).sql(source.dialect.name, copy=False)


def project_expressions(source: SqlSource, expressions: Sequence[Expr], folds: Folds | None = None) -> exp.Select:
    """Some expressions of every row; the builder would copy thousands of columns."""
    base = source.with_folds(folds) if folds else exp.to_table(source.view)
    return exp.Select(expressions=list(expressions)).from_(base, copy=False)


def assign_folds(source: SqlSource, folds: Folds, *columns: str) -> exp.Select:
    """A query for some columns and the fold of each row: shuffled, sorted by class, and assigned in turn.

    The rows are numbered in their own order, which is kept, and the numbers hashed with the seed.
    """
    row = exp.column(_ROW)
    salted = exp.Add(this=row, expression=number_literal(folds.seed * 1_000_003))
    keys = [
        *([exp.column(folds.label_column, quoted=True)] if folds.label_column is not None else []),
        source.dialect.hash(salted),
        row,
    ]
    order = exp.Order(expressions=[exp.Ordered(this=key.copy()) for key in keys])
    turn = exp.Mod(this=exp.Window(this=exp.RowNumber(), order=order), expression=number_literal(folds.n))
    narrow = "SMALLINT" if folds.n < 1 << 15 else "INTEGER"
    numbered = exp.select("*", exp.alias_(exp.Window(this=exp.RowNumber()), _ROW)).from_(source.view)
    fold = exp.alias_(exp.cast(turn, narrow), FOLD)
    return exp.select(*columns, fold).from_(numbered.subquery("numbered")).order_by(row)


def fold_sql_by_key(source: SqlSource, folds: Folds) -> exp.Select:
    """Select all columns and the fold of each row by its key, as :func:`candide.data.sampling.assign_folds_by_key`."""
    name, dialect = str(folds.key_column), source.dialect
    kind = source.columns[name].upper()
    if not dialect.is_key(kind):
        raise invalid_key_error(name, source.columns[name])
    text = exp.Coalesce(this=dialect.text(exp.column(name, quoted=True)), expressions=[exp.Literal.string("")])
    salted = exp.Concat(expressions=[exp.Literal.string(f"{folds.seed}:"), text], safe=True)
    fold = exp.Mod(
        this=exp.Paren(this=dialect.hex_value(dialect.md5(salted), HASH_DIGITS)), expression=number_literal(folds.n)
    )
    return exp.select("*", exp.alias_(fold, FOLD)).from_(source.view)


def fold_column(folds: Folds | None) -> list[Expr]:
    """The fold of a row, where rows are divided."""
    return [exp.alias_(exp.column(FOLD), "fold")] if folds else []


@dataclass(frozen=True)
class SourceColumn:
    """A column to be counted or scored.

    ``read`` is projected once, in a subquery; every aggregate then works on the plain name ``alias``.
    """

    name: str
    type: str
    dialect: Dialect
    alias: str = ""
    is_level: bool = False
    weight: str | None = None  # the alias of the weight
    has_nan: bool = True  # whether a number may be NaN
    middle_value: float | Mapping[Any, float] = (
        0.0  # a value near the middle, or one for each label, for sums around it
    )
    has_centered_sums: bool = False  # whether moments come from sums around it, though the database has a variance
    grid: Encoding | None = None  # of numbers that are counted by the cell in which they lie

    @property
    def x(self) -> Expr:
        return exp.column(self.alias)

    @property
    def raw(self) -> Expr:
        return exp.column(self.name, quoted=True)

    @property
    def middle(self) -> Expr:
        if not isinstance(self.middle_value, Mapping):
            return self.dialect.literal(self.middle_value)
        cases = [
            exp.If(this=exp.convert(label), true=self.dialect.literal(v)) for label, v in self.middle_value.items()
        ]
        return exp.Case(this=exp.column("y"), ifs=cases, default=self.dialect.literal(0.0))

    @property
    def aggregate_value(self) -> Expr:
        """The value for aggregates: NaN, which they would count, is missing."""
        may_be = self.is_float and (self.has_nan or self.is_counted_by_level)
        nan = self.dialect.is_nan(self.dialect.parse_number(self.raw, self.type.upper())) if may_be else None
        return self.value if nan is None else exp.Case(ifs=[exp.If(this=exp.Not(this=nan), true=self.value)])

    @property
    def value(self) -> Expr:
        """The value for the model: a level, or a double; times and dates are days."""
        kind = self.type.upper()
        if self.is_level:
            return self.dialect.level(self.raw, kind)
        is_time = self.dialect.is_time(kind)
        return self.dialect.days(self.raw, kind) if is_time else self.dialect.parse_number(self.raw, kind)

    @property
    def code(self) -> Expr:
        """Of what was read the code of its cell, where cells are counted; the value itself elsewhere."""
        if self.grid is None:
            return self.x
        return exp.alias_(
            exp.Nullif(this=self.grid.sql(self.x, self.dialect), expression=number_literal(-1)), self.alias
        )

    @property
    def is_counted_by_level(self) -> bool:
        """Whether the weight of each level, or cell, is counted."""
        return self.is_level or self.grid is not None

    @property
    def is_float(self) -> bool:
        return self.dialect.is_float(self.type.upper())

    def weighted_sum(self, value: Expr) -> Expr:
        """The (weighted) sum of a value."""
        if self.weight is None:
            return self.dialect.exact_sum(value)
        return self.dialect.exact_sum(exp.Mul(this=exp.column(self.weight), expression=exp.Paren(this=value)))

    def present_weight(self, value: Expr) -> Expr:
        """The weight of the rows where a value is present."""
        if self.weight is None:
            return exp.Count(this=value, big_int=True)
        there = exp.Not(this=exp.Is(this=value, expression=exp.Null()))
        return self.dialect.exact_sum(exp.Case(ifs=[exp.If(this=there, true=exp.column(self.weight))]))
