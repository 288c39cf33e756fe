"""Words: what a scoring query spells in a way of its own in each database. Few, and text: a query has 100,000 numbers.

>>> syntax_of("postgres").cast_double("x"), syntax_of("mysql").quote("a `b"), syntax_of("sqlite").greatest("a", "b")
('CAST(x AS DOUBLE PRECISION)', '`a ``b`', 'MAX(a, b)')
>>> print(syntax_of("bigquery").values_table("j", ["a", "b"], [("1", "2"), ("3", "4")]))
(SELECT * FROM UNNEST([STRUCT(1 AS a, 2 AS b), (3, 4)])) AS j
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from candide.engines.sql.dialects import duckdb, spark
from candide.engines.sql.dialects.postgres import DAY_TYPES, IS_TEXT, SPAN_TYPES, type_names
from candide.engines.sql.dialects.registry import get_dialect
from candide.errors import InputError, unknown_name_error

_POSTGRES_DAYS = "CAST(EXTRACT(EPOCH FROM {}) AS DOUBLE PRECISION) / 86400e0"
_PG_TYPE = "PG_TYPEOF({{}}) = CAST('{}' AS REGTYPE)"
_TIME_ZONE_PATTERN = "':[0-9.]+ ?(Z|UTC|[-+][0-9:]+)$'"  # a text that ends with a time in a zone
_DASHED = "'^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T].*)?$'"  # a date, perhaps with a time
_EMPTY_TEXT = "SUBSTR(CAST({} AS TEXT), 1, 0)"  # without which PostgreSQL would fail before it reads a row
_SPAN = "'^(-?[0-9]+ days?,? ?)?([-+]?[0-9]+:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?)?$'"  # a time of day or a duration
MIN_SCORE = -1e300  # the score of what cannot be; some of them add up without leaving the range of numbers


def format_number(value: float) -> str:
    """A number as a double: without an exponent it would be a decimal; nothing is infinite in a query."""
    if math.isinf(value):
        value = math.copysign(MIN_SCORE, value)
    text = repr(float(value))
    return text if "e" in text else f"{text.removesuffix('.0')}e0"


@dataclass(frozen=True)
class SqlSyntax:
    """The words of a dialect; ``name`` is sqlglot's for it. In a template ``{}`` is what it is said of."""

    name: str
    number: str = "DOUBLE"  # the type
    text: str = "CAST({} AS VARCHAR)"
    exact_text: str = "{}"  # a text, to be compared letter by letter whatever the collation of its column
    exact_text_end: str = ""  # of such a text, where blanks at the end make no difference
    utc: str = "{}"  # a time, where it may have a zone
    days: str = ""  # of a date or a time, since 1970
    clock: str = ""  # days of a text that is a time of day or a duration, NULL of another
    day: str = "CAST({} AS DATE)"
    moment: str = "CAST({} AS TIMESTAMP)"
    log: str = "LN"
    log1p: str = ""  # accurate near zero; without it by the logarithm alone
    extremes: tuple[str, str] = ("GREATEST", "LEAST")
    fence: str = ""  # ends a subquery that is not to be merged with the one around it
    table: str = "(VALUES {rows}) AS {name}({columns})"  # of constants
    row: str = "({})"
    position: str = ""  # of a value in a list of a few, from 1 on, where that is quicker than such a table
    list: str = ""  # what is at a place, from 0 on, of a list of constants, where that is quicker than such a table
    is_short: str = ""  # whether a column holds numbers of 32 bits, which are what their decimals spell
    is_nested: str = ""  # whether a column holds lists or structures
    raise_error: str = ""  # what ends the query with a message {what} in the place of a value {} of some {type}
    is_time: str = ""  # whether a column holds times of day or durations, or dates where ``is_day`` says which
    is_day: str = "FALSE"
    integer_text: str = "CAST(CAST(ROUND({}) AS BIGINT) AS VARCHAR)"  # a number as the text of a whole one
    is_boolean: str = ""  # whether a column holds truths
    is_text: str = ""  # whether a column holds text; without it the columns that the model read from text do
    folds_columns: bool = True  # whether names that differ by case only are the same, even in quotes
    national: bool = False  # whether text of any script has a mark of its own
    folds_table: bool = False  # whether a table made without quotes is not found by its name in quotes
    max_name_length: int = 1000  # bytes of a name that are heeded
    max_columns: int = 1600  # columns in one SELECT
    booleans: tuple[str, str] = ("FALSE", "TRUE")
    concat: str = "({} || {})"  # two texts; NULL if one is
    dates_of_text: bool = True
    fits: str = ""  # whether a text {} matches a regular {pattern}
    like: str = ""  # in its place, whether it matches one with classes of characters, where * is any text
    is_date_text: str = ""  # whether a text is a date with dashes; without it the database says what a date is
    array: str = "[{}]"  # a list of values
    dot: str = ""  # of such a list and of constants, where that is quicker than a long sum

    def quote(self, name: str) -> str:
        """A name, whatever is in it."""
        get_dialect(self.name).check_name(name)
        return exp.to_identifier(name, quoted=True).sql(self.name)

    def fold_case(self, name: str) -> str:
        """What is the same for names that are the same to the database."""
        held = name.encode("utf-8", "surrogatepass")[: self.max_name_length].decode("utf-8", "ignore")
        return held.casefold() if self.folds_columns else held

    def quote_string(self, text: str) -> str:
        """A text in a query."""
        if "\0" in text:
            raise InputError("SQL has no text with a NUL in it", value=text, remedy="export it to python or js")
        if self.national:
            return exp.National(this=text).sql(self.name)
        parts = [exp.Literal.string(part).sql(self.name) for part in get_dialect(self.name).split_literal(text)]
        return parts[0] if len(parts) == 1 else f"CONCAT({', '.join(parts)})"

    @property
    def read_number(self) -> str:
        """The number of any value, NULL where it is none; without it the database has an error of its own."""
        return get_dialect(self.name).number_template

    def cast_double(self, x: str) -> str:
        return f"CAST({x} AS {self.number})"

    def parse_number(self, x: str) -> str:
        """A value of the table as a number."""
        return self.read_number.replace("{}", x) or self.cast_double(x)

    def typed_number(self, x: str, name: str) -> str:
        """A value of the column ``name`` as a number, or as days where it is a date, a time or a duration."""
        return get_dialect(self.name).typed_number(x, name) or self.cast_double(x)

    def greatest(self, *values: str) -> str:
        return f"{self.extremes[0]}({', '.join(values)})"

    def least_of(self, *values: str) -> str:
        return f"{self.extremes[1]}({', '.join(values)})"

    def values_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """A table of constants, of rows whose values are spelled."""
        spelled = [", ".join(row) for row in rows]
        held = {
            "rows": ", ".join(map(self.row.format, spelled)),
            "columns": ", ".join(columns),
            "numbered": ", ".join(f"column{i} AS {column}" for i, column in enumerate(columns, 1)),
            "first": ", ".join(f"{value} AS {column}" for value, column in zip(rows[0], columns, strict=True)),
            "rest": "".join(f", ({row})" for row in spelled[1:]),
        }
        return self.table.format(name=name, **held)

    def list_item(self, place: str, values: Sequence[str], kind: str) -> str:
        """What is at a place of a list of constants of a type."""
        held = ",".join(values).replace("NULL", "null")
        return self.list.format(values=held, type=kind, place=place)


_LIST = "FROM_JSON('[{}]', 'ARRAY<{}>')"  # one word to the parser of Spark, which is slow
_HALVED = "CASE WHEN {} < 5e-1 THEN 2e0 * ATANH({} / (2e0 + {})) ELSE LN(1e0 + {}) END"
# Of "1 day, 02:30:05.25" the days, and hours, minutes and seconds after them, with a sign of their own
_REST = "LTRIM(SUBSTR({}, INSTR({}, 'day') + CASE WHEN INSTR({}, 'day') THEN 3 ELSE 0 END), 's, ')"
_PARTS = "LTRIM(rest, '-+')".replace("rest", _REST)
_CLOCK = (
    "(36e2 * CAST(SUBSTR(x, 1, INSTR(x, ':') - 1) AS REAL) + 6e1 * CAST(SUBSTR(x, INSTR(x, ':') + 1, 2) AS REAL) "
    "+ CAST(SUBSTR(x, INSTR(x, ':') + 4) AS REAL))"
).replace("x", _PARTS)
_SQLITE_CLOCK = (
    "CASE WHEN {} GLOB '*[0-9]:[0-9][0-9]*' OR {} GLOB '*[0-9] day*' THEN "
    "CASE WHEN {} LIKE '%day%' THEN CAST({} AS REAL) ELSE 0e0 END "
    f"+ CASE WHEN {_REST} LIKE '-%' THEN -1e0 ELSE 1e0 END * {_CLOCK} / 86400e0 END"
)
_SYNTAXES = (
    SqlSyntax(
        "bigquery",
        number="FLOAT64",
        text="CAST({} AS STRING)",
        days="UNIX_MICROS(CAST({} AS TIMESTAMP)) / 864e8",
        fits="REGEXP_CONTAINS({}, {pattern})",
        log1p=_HALVED,
        table="(SELECT * FROM UNNEST([STRUCT({first}){rest}])) AS {name}",
    ),
    SqlSyntax(
        "clickhouse",
        folds_columns=False,
        number="Nullable(Float64)",
        text="CAST({} AS Nullable(String))",
        days="toUnixTimestamp64Micro(toDateTime64({}, 6, 'UTC')) / 864e8",
        day="toDate32({})",
        moment="toDateTime64({}, 6, 'UTC')",
        fits="match({}, {pattern})",
        log1p="log1p({})",
    ),
    SqlSyntax(
        "duckdb",
        exact_text="({} COLLATE C)",
        utc=f"CASE WHEN {duckdb.IS_ZONED} "
        f"OR (TYPEOF({{}}) = 'VARCHAR' AND REGEXP_MATCHES(CAST({{}} AS VARCHAR), {_TIME_ZONE_PATTERN})) "
        "THEN MAKE_TIMESTAMP(EPOCH_US(TRY_CAST({} AS TIMESTAMPTZ))) ELSE TRY_CAST({} AS TIMESTAMP) END",
        days="EPOCH({}) / 86400e0",
        log1p=_HALVED,
        clock=f"CASE WHEN REGEXP_MATCHES({{}}, {_SPAN}) THEN EPOCH(TRY_CAST({{}} AS INTERVAL)) / 86400e0 END",
        is_nested=r"REGEXP_MATCHES(TYPEOF({}), '\]$|^(STRUCT|MAP|UNION)')",
        raise_error="ERROR({what})",
        is_time="REGEXP_MATCHES(TYPEOF({}), '^(DATE|TIME|INTERVAL)')",
        is_day="REGEXP_MATCHES(TYPEOF({}), '^(DATE|TIMESTAMP)')",
        is_short="TYPEOF({}) = 'FLOAT'",
        is_boolean="TYPEOF({}) = 'BOOLEAN'",
        is_text="REGEXP_MATCHES(TYPEOF({}), '^(VARCHAR$|JSON$|ENUM)')",
        is_date_text=f"REGEXP_MATCHES({{}}, {_DASHED})",
        dot="LIST_DOT_PRODUCT({}, [{}])",
        fits="REGEXP_MATCHES({}, {pattern})",
    ),
    SqlSyntax(
        "mysql",
        text="CAST({} AS CHAR) COLLATE utf8mb4_0900_bin",
        days="TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {}) / 864e8",
        moment="CAST({} AS DATETIME(6))",
        fence="LIMIT 18446744073709551615",
        row="ROW({})",
        concat="CONCAT({}, {})",
        fits="REGEXP_LIKE({}, {pattern})",
    ),
    SqlSyntax(
        "postgres",
        folds_columns=False,
        max_name_length=63,
        number="DOUBLE PRECISION",
        exact_text='({} COLLATE "C")',
        utc=f"CASE WHEN {_PG_TYPE.format('timestamptz')} "
        f'OR ({IS_TEXT} AND CAST({{}} AS TEXT) COLLATE "C" ~ {_TIME_ZONE_PATTERN}) '
        "THEN CAST({} AS TIMESTAMPTZ) AT TIME ZONE 'UTC' ELSE CAST({} AS TIMESTAMP) END",
        text="CAST({} AS TEXT)",
        days=_POSTGRES_DAYS,
        log1p=_HALVED,
        fence="OFFSET 0",
        clock=f'CASE WHEN {{}} COLLATE "C" ~ {_SPAN} THEN {_POSTGRES_DAYS.replace("{}", "CAST({} AS INTERVAL)")} END',
        is_nested="CAST(PG_TYPEOF({}) AS TEXT) LIKE '%[]'",
        raise_error=f"CAST(CAST(CAST({{what}} || {_EMPTY_TEXT} AS INT) AS TEXT) AS {{type}})",
        is_time=f"PG_TYPEOF({{}}) IN ({type_names(*SPAN_TYPES, *DAY_TYPES)})",
        is_day=f"PG_TYPEOF({{}}) IN ({type_names(*DAY_TYPES)})",
        is_short=_PG_TYPE.format("real"),
        is_boolean=_PG_TYPE.format("boolean"),
        is_text=IS_TEXT,
        fits='({} COLLATE "C" ~ {pattern})',
        is_date_text=f'{{}} COLLATE "C" ~ {_DASHED}',
    ),
    SqlSyntax(
        "snowflake",
        folds_columns=False,
        folds_table=True,
        days="DATE_PART(EPOCH_MICROSECOND, {}) / 864e8",
        fits="REGEXP_LIKE({}, {pattern})",
        log1p=_HALVED,
    ),
    SqlSyntax(
        "spark",
        text="CAST({} AS STRING)",
        utc=spark.UTC_SQL,
        days=spark.DAYS_SQL,
        moment="CAST({} AS TIMESTAMP_NTZ)",
        log1p="LOG1P({})",
        array="ARRAY({})",
        dot=f"AGGREGATE(ZIP_WITH({{}}, {_LIST.format('{}', 'DOUBLE')}, (a, b) -> a * b), 0e0, (a, b) -> a + b)",
        position="ARRAY_POSITION(ARRAY({}), {})",
        list="GET(FROM_JSON('[{values}]', 'ARRAY<{type}>'), {place})",
        is_short="TYPEOF({}) = 'float'",
        is_boolean="TYPEOF({}) = 'boolean'",
        is_text="TYPEOF({}) LIKE 'string%'",  # with a collation or without
        fits="({} RLIKE {pattern})",
    ),
    SqlSyntax(
        "sqlite",
        number="REAL",
        text="CAST({} AS TEXT)",
        days="(STRFTIME('%s', {}) + (STRFTIME('%f', {}) - STRFTIME('%S', {}))) / 86400e0",  # JULIANDAY has fewer digits
        day="DATE({})",
        moment="STRFTIME('%Y-%m-%d %H:%M:%f000', {})",
        log1p=_HALVED,
        clock=_SQLITE_CLOCK,
        extremes=("MAX", "MIN"),
        fence="LIMIT -1",
        table="(SELECT {numbered} FROM (VALUES {rows})) AS {name}",
        is_text="TYPEOF({}) = 'text'",
        is_date_text="{} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' "
        "AND DATE(SUBSTR({}, 1, 10), '+0 days') = SUBSTR({}, 1, 10)",  # else February may have 31 days
        booleans=("0", "1"),
        dates_of_text=False,
        like="{} GLOB {pattern}",
    ),
    SqlSyntax(
        "trino",
        days="TO_UNIXTIME(WITH_TIMEZONE(CAST({} AS TIMESTAMP(6)), 'UTC')) / 86400e0",
        fits="REGEXP_LIKE({}, {pattern})",
    ),
    SqlSyntax(
        "tsql",
        number="FLOAT(53)",
        text="CAST({} AS NVARCHAR(MAX)) COLLATE Latin1_General_BIN2",
        exact_text="({} + N'.')",
        exact_text_end=".",
        national=True,
        days="DATEDIFF_BIG(MICROSECOND, '1970-01-01', {}) / 864e8",
        moment="CAST({} AS DATETIME2(6))",
        log="LOG",
        fence="ORDER BY (SELECT NULL) OFFSET 0 ROWS",
        max_columns=4000,
        concat="({} + {})",
        booleans=("0", "1"),
        like="{} LIKE {pattern}",
    ),
)
SYNTAX_BY_DIALECT = {one.name: one for one in _SYNTAXES}


def syntax_of(name: str) -> SqlSyntax:
    """The words of a dialect by its name."""
    if not name:
        remedy = f"pass --dialect (dialect=...), one of {', '.join(SYNTAX_BY_DIALECT)}"
        raise InputError("a query is in a dialect of SQL, and none is named", remedy=remedy)
    if name not in SYNTAX_BY_DIALECT:
        raise unknown_name_error("dialect", name, SYNTAX_BY_DIALECT)
    return SYNTAX_BY_DIALECT[name]
