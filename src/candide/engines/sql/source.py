"""What a source in a database is: a view that answers queries, in a dialect."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from sqlglot import exp

from candide.engines.base import Folds, Source
from candide.engines.sql.dialect import Dialect, Expr, number

ROW = "candide_row"


class SqlSource(Source, Protocol):
    """An own one gives ``rows`` and ``arrow``; the queries are made here."""

    dialect: Dialect
    view: str  # what to select from

    def rows(self, sql: str) -> list[tuple]:
        """Run a query and fetch its rows."""
        ...

    def stream(self, sql: str) -> Iterable[tuple]:
        """The rows of a query that may be many."""
        return self.rows(sql)

    def arrow_batches(self, sql: str, size: int) -> Any:
        """Run a query and read its result in Arrow record batches."""

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Any:
        chosen = [exp.column(name, quoted=True) for name in columns]
        return self.arrow_batches(select(self, [*chosen, *fold_of(self, folds)], folds), size)


def select(source: SqlSource, chosen: Sequence[Expr], folds: Folds | None = None) -> str:
    """A query for some expressions of every row."""
    return project(source, chosen, folds).sql(source.dialect.name, copy=False)


def project(source: SqlSource, chosen: Sequence[Expr], folds: Folds | None = None) -> exp.Select:
    """Some expressions of every row; the builder would copy thousands of columns."""
    base = numbered(source) if folds else exp.to_table(source.view)
    return exp.Select(expressions=list(chosen)).from_(base, copy=False)


def numbered(source: SqlSource) -> Expr:
    """The source with the number of each row, counted in its own order."""
    number_of = exp.Window(this=exp.RowNumber())
    return exp.select("*", exp.alias_(number_of, ROW)).from_(source.view).subquery("numbered")


def fold_of(source: SqlSource, folds: Folds | None, alias: str = "fold") -> list[Expr]:
    """The fold of a row: every run of so many rows holds each fold once, in a rotation drawn by the seed."""
    if folds is None:
        return []
    row, n = exp.column(ROW), exp.Literal.number(str(folds.n))
    salted = exp.Add(this=exp.IntDiv(this=row, expression=n), expression=number(folds.seed * 1_000_003))
    turn = exp.Mod(this=source.dialect.hash(salted), expression=n.copy())
    signed = exp.cast(turn, "BIGINT")  # unsigned and signed would meet in 128 bits, whose division is slow
    turned = exp.Paren(this=exp.Add(this=row.copy(), expression=signed))
    return [exp.alias_(exp.cast(exp.Mod(this=turned, expression=n.copy()), "INTEGER"), alias)]
