"""SQL Server: no NaN; text of any script is NVARCHAR."""

from sqlglot import exp

from candide.engines.sql.dialect import Dialect, Expr, call_function, days_from_micros, number_literal

_TEXT = exp.DataType.build("NVARCHAR(MAX)", dialect="tsql")


class TSQLDialect(Dialect):
    name = "tsql"
    double_type = "FLOAT(53)"
    text_template = "CAST({} AS NVARCHAR(MAX)) COLLATE Latin1_General_BIN2"
    exact_text_template = "({} + N'.')"
    exact_text_end = "."
    has_national_text = True
    days_template = "DATEDIFF_BIG(MICROSECOND, '1970-01-01', {}) / 864e8"
    moment_template = "CAST({} AS DATETIME2(6))"
    log_function = "LOG"
    fence = "ORDER BY (SELECT NULL) OFFSET 0 ROWS"
    max_columns = 4000
    concat_template = "({} + {})"
    booleans = ("0", "1")
    like_template = "{} LIKE {pattern}"
    number_template = "TRY_CAST({} AS FLOAT(53))"
    has_grouping_sets = True

    def is_nan(self, x: Expr) -> None:
        return None

    def text(self, x: Expr) -> Expr:
        return exp.Cast(this=x, to=_TEXT)

    def md5(self, x: Expr) -> Expr:
        """Of UTF-8, which text has in a collation of that name (from 2019 on)."""
        collated = exp.Collate(this=exp.Paren(this=x), expression=exp.var("Latin1_General_100_BIN2_UTF8"))
        bytes_ = exp.Cast(this=collated, to=exp.DataType.build("VARCHAR(8000)", dialect="tsql"))
        return exp.Lower(this=call_function("CONVERT", exp.var("VARCHAR(32)"), exp.MD5(this=bytes_), number_literal(2)))

    def grouping(self, *names: Expr) -> Expr:
        return call_function("GROUPING_ID", *names)

    def days(self, x: Expr, kind: str) -> Expr:
        start = exp.Literal.string("00:00:00" if kind == "TIME" else "1970-01-01")
        return days_from_micros(self.double(call_function("DATEDIFF_BIG", exp.var("MICROSECOND"), start, x)))
