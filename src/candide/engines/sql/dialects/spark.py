"""Spark SQL, whose grouping sets copy every whole row for each set; stacking the levels costs two thirds of that."""

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from candide.data.text_formats import NUMBER_BLANKS
from candide.engines.sql.dialect import Dialect, Expr, call_function, number_literal
from candide.errors import InputError

_SETTING = re.compile(r"\$\{\S+?\}")
_ZONED = "CASE WHEN TYPEOF({}) = 'timestamp' THEN"  # whose zone is that of the session
_MICROS = "UNIX_MICROS(CAST({} AS TIMESTAMP_LTZ))"
_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
# A time with or without a zone in UTC without one, and as days since 1970
UTC_SQL = f"{_ZONED} TIMESTAMPADD(MICROSECOND, {_MICROS}, {_EPOCH}) ELSE CAST({{}} AS TIMESTAMP_NTZ) END"
# By the clock: a difference of times would be taken in the zone of the session, which may skip an hour
_SECONDS_OF_DAY = "3600 * HOUR({0}) + 60 * MINUTE({0}) + CAST(DATE_PART('SECOND', {0}) AS DOUBLE)"
_LOCAL_DAYS = f"UNIX_DATE(CAST({{0}} AS DATE)) + ({_SECONDS_OF_DAY}) / 864e2".format("CAST({} AS TIMESTAMP_NTZ)")
DAYS_SQL = f"{_ZONED} {_MICROS} / 864e8 ELSE {_LOCAL_DAYS} END"
_LIST = "FROM_JSON('[{}]', 'ARRAY<{}>')"  # one token to the parser of Spark, which is slow


class SparkDialect(Dialect):
    name = "spark"
    text_template = "CAST({} AS STRING)"
    utc_template = UTC_SQL
    days_template = DAYS_SQL
    moment_template = "CAST({} AS TIMESTAMP_NTZ)"
    log1p_template = "LOG1P({})"
    array_template = "ARRAY({})"
    dot_template = f"AGGREGATE(ZIP_WITH({{}}, {_LIST.format('{}', 'DOUBLE')}, (a, b) -> a * b), 0e0, (a, b) -> a + b)"
    position_template = "ARRAY_POSITION(ARRAY({}), {})"
    list_template = "GET(FROM_JSON('[{values}]', 'ARRAY<{type}>'), {place})"
    item_template = f"AGGREGATE(ARRAY({{places}}), 0e0, (a, i) -> a + GET({_LIST.format('{values}', 'DOUBLE')}, i - 1))"
    float32_test = "TYPEOF({}) = 'float'"
    boolean_test = "TYPEOF({}) = 'boolean'"
    text_test = "TYPEOF({}) LIKE 'string%'"  # with a collation or without
    match_template = "({} RLIKE {pattern})"
    number_template = (  # of text without blanks around it and underscores within, too
        "COALESCE(TRY_CAST({} AS DOUBLE), TRY_CAST(REGEXP_REPLACE(REGEXP_REPLACE(CAST({} AS STRING), "
        f"'^[{NUMBER_BLANKS}]+|[{NUMBER_BLANKS}]+$', ''), '(?<=[0-9])_(?=[0-9])', '') AS DOUBLE))"
    )
    can_stack = True
    mean_function = "AVG"
    variance_function = "VAR_POP"
    counted_days: Mapping[str, str] = {"DATE": "CAST(UNIX_DATE({}) AS DOUBLE)"}

    def split_literal(self, text: str) -> list[str]:
        """Spark replaces ``${name}`` by a setting, wherever it stands."""
        return re.split(r"(?<=\$)(?=\{)", text)

    def check_name(self, name: str) -> None:
        if _SETTING.search(name):
            what = "its name holds ${...}, which Spark replaces by a setting"
            raise InputError(what, column=name, value=name, remedy="rename it, for example in a view")

    def level(self, x: Expr, kind: str) -> Expr:
        """A time in UTC, not in the zone of the session."""
        is_timestamp = kind.startswith("TIMESTAMP")
        return exp.var(UTC_SQL.replace("{}", x.sql("spark"))) if is_timestamp else super().level(x, kind)

    def hex_value(self, x: Expr, digits: int) -> Expr:
        text = call_function("left", x, number_literal(digits))
        return exp.cast(call_function("conv", text, number_literal(16), number_literal(10)), "INT")

    def stack(self, values: Sequence[Expr]) -> Expr:
        each = [cell for i, value in enumerate(values) for cell in (number_literal(i), value)]
        return exp.Aliases(
            this=call_function("stack", number_literal(len(values)), *each),
            expressions=[exp.to_identifier("which"), exp.to_identifier("level")],
        )
