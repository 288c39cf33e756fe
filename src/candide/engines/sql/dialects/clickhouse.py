"""ClickHouse: sums that are compensated, and its own names for functions."""

from candide.engines.sql.dialect import Dialect, Expr, call, days_of_micros, number


class ClickHouseDialect(Dialect):
    name = "clickhouse"
    grouping_sets = True

    def total(self, x: Expr) -> Expr:
        return call("sumKahan", x)

    def is_nan(self, x: Expr) -> Expr:
        return call("isNaN", x)

    def log_gamma(self, x: Expr) -> Expr:
        return call("lgamma", x)

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "DATE":
            return self.double(call("toInt32", call("toDate32", x)))
        return days_of_micros(self.double(call("toUnixTimestamp64Micro", call("toDateTime64", x, number(6)))))
