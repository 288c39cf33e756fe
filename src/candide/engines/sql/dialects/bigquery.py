"""BigQuery: one function for the days of each type of time."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, call, days_of_micros


class BigQueryDialect(Dialect):
    name = "bigquery"
    read = "SAFE_CAST({} AS FLOAT64)"

    def is_nan(self, x: Expr) -> Expr:
        return call("is_nan", x)

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "DATE":
            return self.double(call("unix_date", x))
        if kind == "TIME":
            start = exp.Cast(this=exp.Literal.string("00:00:00"), to=exp.DataType.build("TIME"))
            return days_of_micros(self.double(call("time_diff", x, start, exp.var("microsecond"))))
        return days_of_micros(self.double(call("unix_micros", exp.Cast(this=x, to=exp.DataType.build("TIMESTAMPTZ")))))
