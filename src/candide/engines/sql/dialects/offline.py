"""Dialects of databases without an engine: their queries are written here and run by the user.

BigQuery, ClickHouse, MySQL, Snowflake, SQLite, Trino (and Amazon Athena, which is built on it) and SQL Server.
"""

from collections.abc import Mapping

from sqlglot import exp

from candide.engines.sql.dialect import (
    ACCURATE_LOG1P,
    NUMBER_PATTERN,
    Dialect,
    Expr,
    as_double,
    call_function,
    number_literal,
    string_literal,
)


class BigQueryDialect(Dialect):
    name = "bigquery"
    double_type = "FLOAT64"
    text_template = "CAST({} AS STRING)"
    days_template = "UNIX_MICROS(CAST({} AS TIMESTAMP)) / 864e8"
    match_template = "REGEXP_CONTAINS({}, {pattern})"
    log1p_template = ACCURATE_LOG1P
    table_template = "(SELECT * FROM UNNEST([STRUCT({first}){rest}])) AS {name}"
    number_template = "SAFE_CAST({} AS FLOAT64)"
    nan_function = "is_nan"
    counted_days: Mapping[str, str] = {
        "DATE": "CAST(unix_date({}) AS FLOAT64)",
        "TIME": "CAST(time_diff({}, CAST('00:00:00' AS TIME), microsecond) AS FLOAT64) / 86400e6",
        "": "CAST(unix_micros(CAST({} AS TIMESTAMP)) AS FLOAT64) / 86400e6",
    }


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
    sum_function = "sumKahan"
    nan_function = "isNaN"
    log_gamma_function = "lgamma"
    counted_days: Mapping[str, str] = {
        "DATE": "CAST(toInt32(toDate32({})) AS Nullable(Float64))",
        "": "CAST(toUnixTimestamp64Micro(toDateTime64({}, 6)) AS Nullable(Float64)) / 86400e6",
    }


class MySQLDialect(Dialect):
    name = "mysql"
    text_template = "CAST({} AS CHAR) COLLATE utf8mb4_0900_bin"
    days_template = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {}) / 864e8"
    moment_template = "CAST({} AS DATETIME(6))"
    fence = "LIMIT 18446744073709551615"
    row_template = "ROW({})"
    concat_template = "CONCAT({}, {})"
    integer_template = "CAST({} AS SIGNED)"
    match_template = "REGEXP_LIKE({}, {pattern})"
    number_template = f"CASE WHEN {{}} REGEXP {NUMBER_PATTERN} THEN CAST({{}} AS DOUBLE) END"
    nan_function = ""
    counted_days: Mapping[str, str] = {
        "": "CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', {}) AS DOUBLE) / 86400e6"
    }


class SnowflakeDialect(Dialect):
    name = "snowflake"
    folds_columns = False
    folds_table = True
    days_template = "DATE_PART(EPOCH_MICROSECOND, {}) / 864e8"
    match_template = "REGEXP_LIKE({}, {pattern})"
    log1p_template = ACCURATE_LOG1P
    has_grouping_sets = True
    counted_days: Mapping[str, str] = {
        "TIME": "CAST(DATEDIFF(microsecond, CAST('00:00:00' AS TIME), {}) AS DOUBLE) / 86400e6",
        "": "CAST(DATE_PART(epoch_microsecond, {}) AS DOUBLE) / 86400e6",
    }

    def is_nan(self, x: Expr) -> Expr:
        """NaN equals itself here."""
        return exp.EQ(this=x, expression=as_double(string_literal("NaN")))


# What follows the days in "1 day, 02:30:05.25": hours, minutes and seconds with their sign
_CLOCK = "LTRIM(SUBSTR({}, INSTR({}, 'day') + CASE WHEN INSTR({}, 'day') THEN 3 ELSE 0 END), 's, ')"
_SECONDS = (
    "(36e2 * CAST(SUBSTR(x, 1, INSTR(x, ':') - 1) AS REAL) + 6e1 * CAST(SUBSTR(x, INSTR(x, ':') + 1, 2) AS REAL) "
    "+ CAST(SUBSTR(x, INSTR(x, ':') + 4) AS REAL))"
).replace("x", f"LTRIM({_CLOCK}, '-+')")


class SQLiteDialect(Dialect):
    """SQLite has no variance, no histogram and no NaN (null instead), and its times are text."""

    name = "sqlite"
    double_type = "REAL"
    text_template = "CAST({} AS TEXT)"
    # JULIANDAY has fewer digits
    days_template = "(STRFTIME('%s', {}) + (STRFTIME('%f', {}) - STRFTIME('%S', {}))) / 86400e0"
    day_template = "DATE({})"
    moment_template = "STRFTIME('%Y-%m-%d %H:%M:%f000', {})"
    reads_dates_by_type = True
    parses_dates = False
    log1p_template = ACCURATE_LOG1P
    clock_template = (
        "CASE WHEN {} GLOB '*[0-9]:[0-9][0-9]*' OR {} GLOB '*[0-9] day*' THEN "
        "CASE WHEN {} LIKE '%day%' THEN CAST({} AS REAL) ELSE 0e0 END "
        f"+ CASE WHEN {_CLOCK} LIKE '-%' THEN -1e0 ELSE 1e0 END * {_SECONDS} / 86400e0 END"
    )
    extremes = ("MAX", "MIN")
    fence = "LIMIT -1"
    table_template = "(SELECT {numbered} FROM (VALUES {rows})) AS {name}"
    text_test = "TYPEOF({}) = 'text'"
    date_text_test = (
        "{} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' "
        "AND DATE(SUBSTR({}, 1, 10), '+0 days') = SUBSTR({}, 1, 10)"  # else February may have 31 days
    )
    booleans = ("0", "1")
    like_template = "{} GLOB {pattern}"
    number_template = "CASE WHEN CAST({} AS NUMERIC) = {} THEN CAST({} AS REAL) END"  # a text is a number as a whole
    nan_function = ""
    counted_days: Mapping[str, str] = {"": "JULIANDAY({}) - 2440587.5e0"}


class TrinoDialect(Dialect):
    name = "trino"
    days_template = "TO_UNIXTIME(WITH_TIMEZONE(CAST({} AS TIMESTAMP(6)), 'UTC')) / 86400e0"
    match_template = "REGEXP_LIKE({}, {pattern})"
    number_template = "TRY_CAST({} AS DOUBLE)"
    has_grouping_sets = True
    nan_function = "is_nan"
    counted_days: Mapping[str, str] = {
        "DATE": "CAST(DATE_DIFF('day', CAST('1970-01-01' AS DATE), {}) AS DOUBLE)",
        "ZONE": "CAST(TO_UNIXTIME({}) AS DOUBLE) / 86400e0",
        "": "CAST(TO_UNIXTIME(WITH_TIMEZONE({}, 'UTC')) AS DOUBLE) / 86400e0",  # not the time zone of the session
    }

    def days(self, x: Expr, kind: str) -> Expr:
        return super().days(x, "ZONE" if "ZONE" in kind else kind)


class TSQLDialect(Dialect):
    """SQL Server has no NaN, and text of any script is NVARCHAR."""

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
    nan_function = ""
    grouping_function = "GROUPING_ID"
    counted_days: Mapping[str, str] = {
        "TIME": "CAST(DATEDIFF_BIG(MICROSECOND, '00:00:00', {}) AS FLOAT) / 86400e6",
        "": "CAST(DATEDIFF_BIG(MICROSECOND, '1970-01-01', {}) AS FLOAT) / 86400e6",
    }

    def text(self, x: Expr) -> Expr:
        return exp.cast(x, "NVARCHAR(MAX)", dialect="tsql")

    def md5(self, x: Expr) -> Expr:
        """The hash of UTF-8, which text has in a collation of that name (from 2019 on)."""
        collated = exp.Collate(this=exp.Paren(this=x), expression=exp.var("Latin1_General_100_BIN2_UTF8"))
        md5 = exp.MD5(this=exp.cast(collated, "VARCHAR(8000)", dialect="tsql"))
        return exp.Lower(this=call_function("CONVERT", exp.var("VARCHAR(32)"), md5, number_literal(2)))
