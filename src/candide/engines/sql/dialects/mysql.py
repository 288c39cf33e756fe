"""MySQL: no NaN, no grouping sets."""

from sqlglot import exp

from candide.engines.sql.dialect import NUMBER_PATTERN, Dialect, Expr, call_function, days_from_micros


class MySQLDialect(Dialect):
    name = "mysql"
    text_template = "CAST({} AS CHAR) COLLATE utf8mb4_0900_bin"
    days_template = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {}) / 864e8"
    moment_template = "CAST({} AS DATETIME(6))"
    fence = "LIMIT 18446744073709551615"
    row_template = "ROW({})"
    concat_template = "CONCAT({}, {})"
    match_template = "REGEXP_LIKE({}, {pattern})"
    number_template = f"CASE WHEN {{}} REGEXP {NUMBER_PATTERN} THEN CAST({{}} AS DOUBLE) END"

    def is_nan(self, x: Expr) -> None:
        return None

    def days(self, x: Expr, kind: str) -> Expr:
        start = exp.Literal.string("1970-01-01 00:00:00")
        return days_from_micros(self.double(call_function("timestampdiff", exp.var("MICROSECOND"), start, x)))
