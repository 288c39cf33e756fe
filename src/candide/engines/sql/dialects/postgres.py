"""PostgreSQL: variance by the updating sums of Youngs and Cramer (1971); NaN equals itself, and 1.5 is a decimal."""

import sys
from collections.abc import Mapping

from sqlglot import exp

from candide.data.text_formats import NUMBER_BLANKS
from candide.engines.sql.dialect import (
    ACCURATE_LOG1P,
    DATE_PATTERN,
    DURATION_PATTERN,
    NUMBER_PATTERN,
    TIME_ZONE_PATTERN,
    Dialect,
    Expr,
    as_double,
    call_function,
    number_literal,
)


def type_names(*names: str) -> str:
    """Types, as ``PG_TYPEOF`` names those of columns."""
    return ", ".join(f"CAST({name!r} AS REGTYPE)" for name in names)


IS_TEXT = f"PG_TYPEOF({{}}) IN ({type_names('text', 'varchar', 'bpchar')})"
SPAN_TYPES, DAY_TYPES = ("time", "interval"), ("date", "timestamp", "timestamptz")
_EPOCH = "CAST(EXTRACT(EPOCH FROM CAST(CAST({{}} AS TEXT) AS {})) AS DOUBLE PRECISION) / 86400e0"  # by way of text
_TIMES = [
    (type_names(*kinds), _EPOCH.format(of))
    for kinds, of in ((SPAN_TYPES, "INTERVAL"), (DAY_TYPES[:2], "TIMESTAMP"), (DAY_TYPES[2:], "TIMESTAMPTZ"))
]
# Text without blanks around it and underscores within. The wide blank exists in UTF-8 only; a stable function keeps
# PostgreSQL from evaluating it while it plans.
_TEXT_SQL = 'CAST({} AS TEXT) COLLATE "C"'
_BLANKS = ", ".join(f"CHR({ord(blank)})" for blank in NUMBER_BLANKS if ord(blank) < 256)
_WIDE = f"CHR(CASE WHEN GETDATABASEENCODING() = 'UTF8' THEN {ord(NUMBER_BLANKS[-1])} ELSE 32 END)"
_TRIMMED_SQL = f"REGEXP_REPLACE(BTRIM({_TEXT_SQL}, CONCAT({_BLANKS}, {_WIDE})), '([0-9])_(?=[0-9])', '\\1', 'g')"
_ABSOLUTE_SQL = f"ABS(CAST({_TRIMMED_SQL} AS NUMERIC))"  # which a double may be too small for
_DAYS = "CAST(EXTRACT(EPOCH FROM {}) AS DOUBLE PRECISION) / 86400e0"
_INTERVAL_DAYS = _DAYS.replace("{}", "CAST({} AS INTERVAL)")
_HAS_TYPE = "PG_TYPEOF({{}}) = CAST('{}' AS REGTYPE)"
_EMPTY_TEXT = "SUBSTR(CAST({} AS TEXT), 1, 0)"  # without it PostgreSQL would fail before it reads a row


class PostgresDialect(Dialect):
    name = "postgres"
    folds_columns = False
    max_name_length = 63
    double_type = "DOUBLE PRECISION"
    text_template = "CAST({} AS TEXT)"
    exact_text_template = '({} COLLATE "C")'
    utc_template = (
        f"CASE WHEN {_HAS_TYPE.format('timestamptz')} "
        f'OR ({IS_TEXT} AND CAST({{}} AS TEXT) COLLATE "C" ~ {TIME_ZONE_PATTERN}) '
        "THEN CAST({} AS TIMESTAMPTZ) AT TIME ZONE 'UTC' ELSE CAST({} AS TIMESTAMP) END"
    )
    days_template = _DAYS
    clock_template = f'CASE WHEN {{}} COLLATE "C" ~ {DURATION_PATTERN} THEN {_INTERVAL_DAYS} END'
    log1p_template = ACCURATE_LOG1P
    fence = "OFFSET 0"
    item_template = "(CAST('{{{values}}}' AS DOUBLE PRECISION[]))[{place} + 1]"
    nested_test = "CAST(PG_TYPEOF({}) AS TEXT) LIKE '%[]'"
    error_template = f"CAST(CAST(CAST({{what}} || {_EMPTY_TEXT} AS INT) AS TEXT) AS {{type}})"
    time_test = f"PG_TYPEOF({{}}) IN ({type_names(*SPAN_TYPES, *DAY_TYPES)})"
    day_test = f"PG_TYPEOF({{}}) IN ({type_names(*DAY_TYPES)})"
    float32_test = _HAS_TYPE.format("real")
    boolean_test = _HAS_TYPE.format("boolean")
    text_test = IS_TEXT
    date_text_test = f'{{}} COLLATE "C" ~ {DATE_PATTERN}'
    match_template = '({} COLLATE "C" ~ {pattern})'
    number_template = (  # by way of text, as which alone a truth can be cast
        "CASE WHEN PG_TYPEOF({}) = CAST('boolean' AS REGTYPE) THEN CASE CAST({} AS TEXT) WHEN 'true' THEN 1e0 "
        "WHEN 'false' THEN 0e0 END WHEN PG_TYPEOF({}) = CAST('money' AS REGTYPE) THEN "
        "CAST(CAST(CAST(CAST({} AS TEXT) AS MONEY) AS NUMERIC) AS DOUBLE PRECISION) "
        "WHEN PG_TYPEOF({}) = CAST('real' AS REGTYPE) THEN "
        "CAST(CAST(CAST({} AS TEXT) AS REAL) AS DOUBLE PRECISION) "  # all its bits, not what its decimals represent
        f"WHEN NOT {IS_TEXT} THEN CAST(CAST({{}} AS TEXT) AS DOUBLE PRECISION) "
        f"WHEN {_TRIMMED_SQL} ~ {NUMBER_PATTERN} "
        # others end the query
        f"THEN CASE WHEN {_ABSOLUTE_SQL} < 3e-324 THEN 0e0 WHEN {_ABSOLUTE_SQL} <= {sys.float_info.max!r} "
        f"THEN CAST({_TRIMMED_SQL} AS DOUBLE PRECISION) END END"
    )
    typed_number_template = (
        "CASE "
        + "".join(f"WHEN PG_TYPEOF({{}}) IN ({types}) THEN {epoch} " for types, epoch in _TIMES)
        + f"ELSE {number_template} END"
    )
    has_grouping_sets = True
    mean_function = "AVG"
    variance_function = "VAR_POP"
    counted_days: Mapping[str, str] = {"": "CAST(DATE_PART('epoch', {}) AS DOUBLE PRECISION) / 86400e0"}

    def literal(self, value: float) -> Expr:
        return as_double(exp.Literal.string(repr(float(value))))

    def is_nan(self, x: Expr) -> Expr:
        return exp.EQ(this=x, expression=self.literal(float("nan")))

    def md5(self, x: Expr) -> Expr:
        """Of UTF-8, whatever the encoding of the database."""
        return exp.MD5(this=call_function("convert_to", x, exp.Literal.string("UTF8")))

    def hex_value(self, x: Expr, digits: int) -> Expr:
        """By a cast to bits."""
        bits = exp.DataType.build(f"BIT({4 * digits})", dialect="postgres")
        marked = exp.DPipe(this=exp.Literal.string("x"), expression=call_function("left", x, number_literal(digits)))
        return exp.cast(exp.Cast(this=exp.Paren(this=marked), to=bits), "INT")

    def level(self, x: Expr, kind: str) -> Expr:
        """A time with its zone as one in UTC, a float by its shortest decimal."""
        if kind == "TIMESTAMP WITH TIME ZONE":
            return exp.AtTimeZone(this=x, zone=exp.Literal.string("UTC"))
        return self.double(self.text(x)) if kind == "REAL" else super().level(x, kind)

    def exp(self, x: Expr) -> Expr:
        """A result too small for a double would be an error."""
        small = exp.If(this=exp.LT(this=x, expression=number_literal(-700)), true=self.literal(0.0))
        return exp.Case(ifs=[small], default=super().exp(x.copy()))
