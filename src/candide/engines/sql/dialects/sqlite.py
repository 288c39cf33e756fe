"""SQLite: no variance, no histogram, no NaN (what would be one is null), and times are text."""

from sqlglot import exp

from candide.engines.sql.dialect import ACCURATE_LOG1P, Dialect, Expr, call_function

# Of "1 day, 02:30:05.25" what follows the days: hours, minutes and seconds with a sign of their own
_REST = "LTRIM(SUBSTR({}, INSTR({}, 'day') + CASE WHEN INSTR({}, 'day') THEN 3 ELSE 0 END), 's, ')"
_SECONDS = (
    "(36e2 * CAST(SUBSTR(x, 1, INSTR(x, ':') - 1) AS REAL) + 6e1 * CAST(SUBSTR(x, INSTR(x, ':') + 1, 2) AS REAL) "
    "+ CAST(SUBSTR(x, INSTR(x, ':') + 4) AS REAL))"
).replace("x", f"LTRIM({_REST}, '-+')")


class SQLiteDialect(Dialect):
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
        f"+ CASE WHEN {_REST} LIKE '-%' THEN -1e0 ELSE 1e0 END * {_SECONDS} / 86400e0 END"
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

    def is_nan(self, x: Expr) -> None:
        return None

    def days(self, x: Expr, kind: str) -> Expr:
        return exp.Sub(this=call_function("julianday", x), expression=self.literal(2440587.5))
