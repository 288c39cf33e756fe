"""ClickHouse: sums that are compensated, and its own names for functions."""

from candide.engines.sql.dialect import Dialect, Expr, call_function, days_from_micros, number_literal


class ClickHouseDialect(Dialect):
    name = "clickhouse"
    folds_columns = False
    double_type = "Nullable(Float64)"
    text_template = "CAST({} AS Nullable(String))"
    days_template = "toUnixTimestamp64Micro(toDateTime64({}, 6, 'UTC')) / 864e8"
    day_template = "toDate32({})"
    moment_template = "toDateTime64({}, 6, 'UTC')"
    match_template = "match({}, {pattern})"
    log1p_template = "log1p({})"
    has_grouping_sets = True

    def exact_sum(self, x: Expr) -> Expr:
        return call_function("sumKahan", x)

    def is_nan(self, x: Expr) -> Expr:
        return call_function("isNaN", x)

    def log_gamma(self, x: Expr) -> Expr:
        return call_function("lgamma", x)

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "DATE":
            return self.double(call_function("toInt32", call_function("toDate32", x)))
        return days_from_micros(
            self.double(call_function("toUnixTimestamp64Micro", call_function("toDateTime64", x, number_literal(6))))
        )
