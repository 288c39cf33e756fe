"""DuckDB, which has compensated sums, histograms and the codes of enumerations."""

from collections.abc import Mapping

from sqlglot import exp

from candide.data.labels import Labels
from candide.data.text_formats import NUMBER_BLANKS
from candide.engines.sql.dialect import (
    ACCURATE_LOG1P,
    DATE_PATTERN,
    DURATION_PATTERN,
    TIME_ZONE_PATTERN,
    Dialect,
    Expr,
    call_function,
    is_null,
    number_literal,
    string_literal,
)

_NANOSECOND_TYPE = "TIMESTAMPTZ_NS"  # which no function takes
_ZONED_TYPES = ("TIMESTAMP WITH TIME ZONE", _NANOSECOND_TYPE)
IS_ZONED = f"TYPEOF({{}}) IN {_ZONED_TYPES}"
_NUMBER_TYPES = "'^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*|BOOLEAN|VARCHAR|JSON|ENUM.*|\"NULL\")$'"
_BLANKS = ", ".join(f"CHR({ord(blank)})" for blank in NUMBER_BLANKS)


class DuckDBDialect(Dialect):
    name = "duckdb"
    exact_text_template = "({} COLLATE C)"
    utc_template = (
        f"CASE WHEN {IS_ZONED} "
        f"OR (TYPEOF({{}}) = 'VARCHAR' AND REGEXP_MATCHES(CAST({{}} AS VARCHAR), {TIME_ZONE_PATTERN})) "
        "THEN MAKE_TIMESTAMP(EPOCH_US(TRY_CAST({} AS TIMESTAMPTZ))) ELSE TRY_CAST({} AS TIMESTAMP) END"
    )
    days_template = "EPOCH({}) / 86400e0"
    reads_dates_by_type = True
    clock_template = (
        f"CASE WHEN REGEXP_MATCHES({{}}, {DURATION_PATTERN}) THEN EPOCH(TRY_CAST({{}} AS INTERVAL)) / 86400e0 END"
    )
    log1p_template = ACCURATE_LOG1P
    nested_test = r"REGEXP_MATCHES(TYPEOF({}), '\]$|^(STRUCT|MAP|UNION)')"
    error_template = "ERROR({what})"
    time_test = "REGEXP_MATCHES(TYPEOF({}), '^(DATE|TIME|INTERVAL)')"
    day_test = "REGEXP_MATCHES(TYPEOF({}), '^(DATE|TIMESTAMP)')"
    float32_test = "TYPEOF({}) = 'FLOAT'"
    boolean_test = "TYPEOF({}) = 'BOOLEAN'"
    text_test = "REGEXP_MATCHES(TYPEOF({}), '^(VARCHAR$|JSON$|ENUM)')"
    date_text_test = f"REGEXP_MATCHES({{}}, {DATE_PATTERN})"
    match_template = "REGEXP_MATCHES({}, {pattern})"
    # The list is in a subquery: the optimizer rewrites a constant list again and again
    item_template = "LIST_SUM(LIST_SELECT((SELECT CAST('[{values}]' AS DOUBLE[])), [{places}]))"
    dot_template = "LIST_DOT_PRODUCT({}, [{}])"
    number_template = (  # of text without blanks around it, too
        f"COALESCE(TRY_CAST({{}} AS DOUBLE), TRY_CAST(TRIM(CAST({{}} AS VARCHAR), CONCAT({_BLANKS})) AS DOUBLE))"
    )
    typed_number_template = (  # TYPEOF of a column is a constant, and the other branches cost nothing
        f"CASE WHEN REGEXP_MATCHES(TYPEOF({{}}), {_NUMBER_TYPES}) THEN {number_template} "
        f"WHEN {IS_ZONED} THEN EPOCH(TRY_CAST({{}} AS TIMESTAMPTZ)) / 86400e0 "
        "WHEN REGEXP_MATCHES(TYPEOF({}), '^(DATE|TIMESTAMP)') THEN EPOCH(TRY_CAST({} AS TIMESTAMP)) / 86400e0 "
        "WHEN TYPEOF({}) LIKE 'TIME%' THEN EPOCH(TRY_CAST({} AS TIME)) / 86400e0 "
        "WHEN TYPEOF({}) = 'INTERVAL' THEN EPOCH(TRY_CAST({} AS INTERVAL)) / 86400e0 "
        "WHEN {} IS NOT NULL THEN ERROR('column ' || {name} || ': cannot read ' || TYPEOF({}) || ' as a number') END"
    )
    has_grouping_sets = True
    sum_function = "fsum"  # compensated
    mean_function = "favg"  # plain avg loses digits at mean 1e8
    variance_function = "VAR_POP"
    histogram_function = "histogram"
    log_gamma_function = "lgamma"
    hash_function = "hash"
    counted_days: Mapping[str, str] = {_NANOSECOND_TYPE: "EPOCH(CAST({} AS TIMESTAMPTZ)) / 86400e0"}

    def hex_value(self, x: Expr, digits: int) -> Expr:
        prefix = exp.Concat(expressions=[string_literal("0x"), call_function("left", x, number_literal(digits))])
        return exp.cast(prefix, "INT")

    def level(self, x: Expr, kind: str) -> Expr:
        """Finer and zoned times as timestamps in UTC, a float by its shortest decimal, JSON as text."""
        if kind in _ZONED_TYPES:
            return call_function("make_timestamp", call_function("epoch_us", exp.cast(x, "TIMESTAMPTZ")))
        if kind in ("FLOAT", "TIME_NS", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S"):
            return exp.cast(exp.cast(x, "TEXT"), "DOUBLE") if kind == "FLOAT" else exp.cast(x, kind.partition("_")[0])
        if kind == "JSON":
            return call_function("json_extract_string", x, string_literal("$"))
        return x if kind == "INTERVAL" else super().level(x, kind)

    def level_code(self, x: Expr, levels: Labels) -> Expr:
        """By a cast to an enumeration, which looks up each level of a dictionary column once."""
        enum = exp.DataType(this=exp.DataType.Type.ENUM, expressions=[string_literal(v) for v in levels.values])
        index = exp.cast(call_function("enum_code", exp.TryCast(this=x, to=enum)), "INT")
        code = exp.Coalesce(this=index, expressions=[number_literal(len(levels))])
        return exp.Case(ifs=[exp.If(this=is_null(x.copy()), true=number_literal(-1))], default=code)
