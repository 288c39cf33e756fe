"""MySQL: no NaN, no grouping sets."""

from sqlglot import exp

from candide.engines.sql.dialect import NUMBER_PATTERN, Dialect, Expr, call_function, days_from_micros


class MySQLDialect(Dialect):
    name = "mysql"
    number_template = f"CASE WHEN {{}} REGEXP {NUMBER_PATTERN} THEN CAST({{}} AS DOUBLE) END"

    def is_nan(self, x: Expr) -> None:
        return None

    def days(self, x: Expr, kind: str) -> Expr:
        start = exp.Literal.string("1970-01-01 00:00:00")
        return days_from_micros(self.double(call_function("timestampdiff", exp.var("MICROSECOND"), start, x)))
