"""Spark SQL: its variance is by central moments, which merge; grouping sets copy every row, once for each set."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, call, days_of_micros, number


class SparkDialect(Dialect):
    name = "spark"

    def mean(self, x: Expr) -> Expr:
        return exp.Avg(this=x)

    def variance(self, x: Expr) -> Expr:
        return exp.VariancePop(this=x)

    def hex(self, x: Expr, digits: int) -> Expr:
        return exp.cast(call("conv", call("left", x, number(digits)), number(16), number(10)), "INT")

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "DATE":
            return self.double(call("unix_date", x))
        return days_of_micros(self.double(call("unix_micros", x)))
