"""SQL Server: no NaN; text of any script is NVARCHAR."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, call, days_of_micros

_TEXT = exp.DataType.build("NVARCHAR(MAX)", dialect="tsql")


class TSQLDialect(Dialect):
    name = "tsql"
    grouping_sets = True

    def is_nan(self, x: Expr) -> None:
        return None

    def text(self, x: Expr) -> Expr:
        return exp.Cast(this=x, to=_TEXT)

    def grouping(self, *names: Expr) -> Expr:
        return call("GROUPING_ID", *names)

    def days(self, x: Expr, kind: str) -> Expr:
        start = exp.Literal.string("00:00:00" if kind == "TIME" else "1970-01-01")
        return days_of_micros(self.double(call("DATEDIFF_BIG", exp.var("MICROSECOND"), start, x)))
