"""MySQL: no NaN, no grouping sets."""

from sqlglot import exp

from candide.engines.sql.dialect import LIKE_A_NUMBER, Dialect, Expr, call, days_of_micros


class MySQLDialect(Dialect):
    name = "mysql"
    read = f"CASE WHEN {{}} REGEXP {LIKE_A_NUMBER} THEN CAST({{}} AS DOUBLE) END"

    def is_nan(self, x: Expr) -> None:
        return None

    def days(self, x: Expr, kind: str) -> Expr:
        start = exp.Literal.string("1970-01-01 00:00:00")
        return days_of_micros(self.double(call("timestampdiff", exp.var("MICROSECOND"), start, x)))
