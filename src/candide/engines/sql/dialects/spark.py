"""Spark SQL: its variance is by central moments, which merge; grouping sets copy every row, once for each set."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, call, number

_ZONED = "CASE WHEN TYPEOF({}) = 'timestamp' THEN"  # in the zone of the session, which is to make no difference
_MICROS = "UNIX_MICROS(CAST({} AS TIMESTAMP_LTZ))"
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
# Of a time with or without a zone: in UTC without one, and as days since 1970
UTC = f"{_ZONED} TIMESTAMPADD(MICROSECOND, {_MICROS}, {_EPOCH}) ELSE CAST({{}} AS TIMESTAMP_NTZ) END"
DAYS = f"{_ZONED} {_MICROS} ELSE TIMESTAMPDIFF(MICROSECOND, {_EPOCH}, CAST({{}} AS TIMESTAMP_NTZ)) END / 864e8"


class SparkDialect(Dialect):
    name = "spark"
    read = "TRY_CAST({} AS DOUBLE)"

    def mean(self, x: Expr) -> Expr:
        return exp.Avg(this=x)

    def variance(self, x: Expr) -> Expr:
        return exp.VariancePop(this=x)

    def hex(self, x: Expr, digits: int) -> Expr:
        return exp.cast(call("conv", call("left", x, number(digits)), number(16), number(10)), "INT")

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "DATE":
            return self.double(call("unix_date", x))
        return exp.var(DAYS.replace("{}", x.sql("spark")))
