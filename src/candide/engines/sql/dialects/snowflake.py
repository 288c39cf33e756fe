"""Snowflake: NaN equals itself, and 1.5 is a decimal."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, as_double, call_function, days_from_micros


class SnowflakeDialect(Dialect):
    name = "snowflake"
    has_grouping_sets = True

    def is_nan(self, x: Expr) -> Expr:
        return exp.EQ(this=x, expression=as_double(exp.Literal.string("NaN")))

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "TIME":
            start = exp.Cast(this=exp.Literal.string("00:00:00"), to=exp.DataType.build("TIME"))
            return days_from_micros(self.double(call_function("datediff", exp.var("microsecond"), start, x)))
        return days_from_micros(self.double(call_function("date_part", exp.var("epoch_microsecond"), x)))
