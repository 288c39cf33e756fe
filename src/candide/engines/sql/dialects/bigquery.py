"""BigQuery: one function for the days of each type of time."""

from sqlglot import exp

from candide.engines.sql.dialect import ACCURATE_LOG1P, Dialect, Expr, call_function, days_from_micros


class BigQueryDialect(Dialect):
    name = "bigquery"
    double_type = "FLOAT64"
    text_template = "CAST({} AS STRING)"
    days_template = "UNIX_MICROS(CAST({} AS TIMESTAMP)) / 864e8"
    match_template = "REGEXP_CONTAINS({}, {pattern})"
    log1p_template = ACCURATE_LOG1P
    table_template = "(SELECT * FROM UNNEST([STRUCT({first}){rest}])) AS {name}"
    number_template = "SAFE_CAST({} AS FLOAT64)"

    def is_nan(self, x: Expr) -> Expr:
        return call_function("is_nan", x)

    def days(self, x: Expr, kind: str) -> Expr:
        if kind == "DATE":
            return self.double(call_function("unix_date", x))
        if kind == "TIME":
            start = exp.Cast(this=exp.Literal.string("00:00:00"), to=exp.DataType.build("TIME"))
            return days_from_micros(self.double(call_function("time_diff", x, start, exp.var("microsecond"))))
        return days_from_micros(
            self.double(call_function("unix_micros", exp.Cast(this=x, to=exp.DataType.build("TIMESTAMPTZ"))))
        )
