"""Snowflake: NaN equals itself, and 1.5 is a decimal."""

from sqlglot import exp

from candide.engines.sql.dialect import ACCURATE_LOG1P, Dialect, Expr, as_double, call_function, days_from_micros


class SnowflakeDialect(Dialect):
    name = "snowflake"
    folds_columns = False
    folds_table = True
    days_template = "DATE_PART(EPOCH_MICROSECOND, {}) / 864e8"
    match_template = "REGEXP_LIKE({}, {pattern})"
    log1p_template = ACCURATE_LOG1P
    has_grouping_sets = True

    def is_nan(self, x: Expr) -> Expr:
        return exp.EQ(this=x, expression=as_double(exp.Literal.string("NaN")))

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "TIME":
            start = exp.Cast(this=exp.Literal.string("00:00:00"), to=exp.DataType.build("TIME"))
            return days_from_micros(self.double(call_function("datediff", exp.var("microsecond"), start, x)))
        return days_from_micros(self.double(call_function("date_part", exp.var("epoch_microsecond"), x)))
