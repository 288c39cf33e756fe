"""SQLite: no variance, no histogram, no NaN (what would be one is null), and times are text."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, call_function


class SQLiteDialect(Dialect):
    name = "sqlite"
    number_template = "CASE WHEN CAST({} AS NUMERIC) = {} THEN CAST({} AS REAL) END"  # a text is a number as a whole

    def is_nan(self, x: Expr) -> None:
        return None

    def days(self, x: Expr, kind: str) -> Expr:
        return exp.Sub(this=call_function("julianday", x), expression=self.literal(2440587.5))
