"""Trino, and Amazon Athena, which is made of it."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, call_function, days_from_seconds


class TrinoDialect(Dialect):
    name = "trino"
    days_template = "TO_UNIXTIME(WITH_TIMEZONE(CAST({} AS TIMESTAMP(6)), 'UTC')) / 86400e0"
    match_template = "REGEXP_LIKE({}, {pattern})"
    number_template = "TRY_CAST({} AS DOUBLE)"
    has_grouping_sets = True

    def is_nan(self, x: Expr) -> Expr:
        return call_function("is_nan", x)

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "DATE":
            start = exp.Cast(this=exp.Literal.string("1970-01-01"), to=exp.DataType.build("DATE"))
            return self.double(call_function("date_diff", exp.Literal.string("day"), start, x))
        if "ZONE" not in kind:  # not in that of the session
            x = call_function("with_timezone", x, exp.Literal.string("UTC"))
        return days_from_seconds(call_function("to_unixtime", x))
