"""What a database writes in its own way, for counting and for scoring; the queries are the same for all.

Counting queries are sqlglot expressions, built by the methods. Scoring queries hold up to 100,000 numbers and are
written as text by the templates, in which ``{}`` is the value. A feature that a database lacks is None or ``""`` and is
replaced: without ``variance`` and ``mean`` by sums around a value near the middle, without ``histogram`` by a query of
its own for levels. The dialects are in :mod:`candide.engines.sql.dialects`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from candide.data.labels import Labels
from candide.encoding import Encoding
from candide.errors import InputError

Expr = Any  # a sqlglot expression
_DOUBLE = exp.DataType.build("DOUBLE")  # one for all: parsing the name for each column of a wide table is slow
_TEXT = exp.DataType.build("TEXT")
ANY_NUMBER = "DOUBLE OR TEXT"  # the type of numbers in a column of unknown type
# No double has an exponent of four digits
NUMBER_PATTERN = "'^ *[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?0*[0-9]{1,3})? *$'"
_FLOATS = ("DOUBLE", "FLOAT", "REAL")
_TIMES = ("DATE", "TIME", "INTERVAL")
_LEVELS = ("VARCHAR", "TEXT", "BOOLEAN", "DATE", "TIMESTAMP", "TIME", "DOUBLE", "FLOAT", "REAL")
# Of log Gamma(z) above (z - 1/2) log z - z + log(2 pi) / 2 the terms in 1/z, 1/z^3, ... (Stirling's series): at
# z >= _STIRLING_FROM the next of them is below 1e-14.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_HALF_LOG_2_PI = 0.9189385332046728
_STIRLING_FROM = 11
ACCURATE_LOG1P = "CASE WHEN {} < 5e-1 THEN 2e0 * ATANH({} / (2e0 + {})) ELSE LN(1e0 + {}) END"
TIME_ZONE_PATTERN = "':[0-9.]+ ?(Z|UTC|[-+][0-9:]+)$'"  # a text that ends with a time in a zone
DATE_PATTERN = "'^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T].*)?$'"  # a date with dashes, perhaps with a time
DURATION_PATTERN = "'^(-?[0-9]+ days?,? ?)?([-+]?[0-9]+:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?)?$'"  # or a time of day


def quote_identifier(name: str) -> str:
    """A quoted column or table name: nothing that a user wrote reaches SQL without quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def quote_texts(values: Iterable[str]) -> str:
    return f"[{', '.join(map(quote_text, values))}]"


def quote_tuple(values: Iterable[str]) -> str:
    return f"({', '.join(map(quote_text, values))})"


def call_function(name: str, *arguments: Expr) -> Expr:
    """A function that sqlglot passes through as it is written."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def number_literal(value: object) -> Expr:
    return exp.Literal.number(repr(value))


def string_literal(text: str) -> Expr:
    return exp.Literal.string(text)


def is_null(x: Expr) -> Expr:
    return exp.Is(this=x, expression=exp.Null())


def as_double(x: Expr) -> Expr:
    return exp.Cast(this=x, to=_DOUBLE)


class Dialect:
    """What most databases share; ``name`` is the one sqlglot uses."""

    name = ""

    # Counting
    has_grouping_sets = False  # whether grouping rows in several ways by one query is fast
    can_stack = False  # whether a row can be split into several, which are then grouped in one way
    sum_function = "SUM"  # of the values present, as exact as the database can
    mean_function = ""  # if it is accurate far from zero
    variance_function = ""  # with divisor n, if it is accurate far from zero
    histogram_function = ""  # a mapping from value to count
    nan_function = "isnan"  # empty where there is no NaN
    log_gamma_function = ""  # without it Stirling's series
    hash_function = ""  # of integers; without it a quadratic congruential generator
    grouping_function = "GROUPING"  # which columns a row of grouping sets is not grouped by, the highest bit first

    # Types and values
    double_type = "DOUBLE"
    number_template = ""  # any value as a number, NULL where it is not one; without it such text ends the query
    typed_number_template = ""  # the same by type: dates, times and durations as days, an error for other types
    text_template = "CAST({} AS VARCHAR)"
    exact_text_template = "{}"  # a text that is compared letter by letter, whatever the collation of its column
    exact_text_end = ""  # appended to such a text where trailing blanks would be ignored
    integer_text_template = "CAST(CAST(ROUND({}) AS BIGINT) AS VARCHAR)"  # a number as the text of an integer
    concat_template = "({} || {})"  # two texts; NULL if one is
    booleans = ("FALSE", "TRUE")
    has_national_text = False  # whether text of any script needs the prefix N
    folds_columns = True  # whether quoted names that differ by case only are the same
    folds_table = False  # whether a table created without quotes is not found by its quoted name
    max_name_length = 1000  # significant bytes of a name
    max_columns = 1600  # columns in one SELECT

    # Dates and times
    utc_template = "{}"  # a time that may have a zone
    days_template = ""  # of a date or a time, since 1970
    counted_days: Mapping[str, str] = {}  # the same by type, "" for any other, where counting differs
    clock_template = ""  # days of a text that is a time of day or a duration, NULL of another
    day_template = "CAST({} AS DATE)"
    moment_template = "CAST({} AS TIMESTAMP)"
    reads_dates_by_type = False  # whether a value of a date column is read by its type: text is not cast to a date
    parses_dates = True  # whether text can be parsed by a date format

    # Tests, each a condition on a column or a text
    float32_test = ""
    nested_test = ""  # lists and structures
    time_test = ""  # times of day and durations, and dates where ``day_test`` distinguishes them
    day_test = "FALSE"
    boolean_test = ""
    text_test = ""  # without it the columns that the model read from text are taken to hold text
    date_text_test = ""  # a text that is a date with dashes; without it the database decides what a date is
    match_template = ""  # a text {} matches a regular expression {pattern}
    like_template = ""  # in its place: a text matches a pattern with classes of characters, where * is any text
    error_template = ""  # ends the query with the message {what} in place of a value {} of {type}

    # Functions and constants
    log_function = "LN"
    log1p_template = ""  # accurate near zero; without it computed from the logarithm
    extremes = ("GREATEST", "LEAST")
    fence = ""  # ends a subquery that must not be merged with the one around it
    table_template = "(VALUES {rows}) AS {name}({columns})"  # of constants
    row_template = "({})"
    position_template = ""  # of a value in a short list, from 1 on, where that is faster than joining a table
    list_template = ""  # the element of a list of constants, from 0 on, where that is faster than joining a table
    item_template = ""  # element {place} of a long list of numbers from 0 on, or the sum of those at {places} from 1 on
    integer_template = "CAST({} AS INT)"
    array_template = "[{}]"
    dot_template = ""  # product of an array and constants, where that is faster than a long sum

    # Text of scoring queries

    def quote(self, name: str) -> str:
        self.check_name(name)
        return exp.to_identifier(name, quoted=True).sql(self.name)

    def fold_case(self, name: str) -> str:
        """A key that is equal for names that the database does not distinguish."""
        significant = name.encode("utf-8", "surrogatepass")[: self.max_name_length].decode("utf-8", "ignore")
        return significant.casefold() if self.folds_columns else significant

    def quote_string(self, text: str) -> str:
        if "\0" in text:
            raise InputError("SQL has no text with a NUL in it", value=text, remedy="export it to python or js")
        if self.has_national_text:
            return exp.National(this=text).sql(self.name)
        parts = [exp.Literal.string(part).sql(self.name) for part in self.split_literal(text)]
        return parts[0] if len(parts) == 1 else f"CONCAT({', '.join(parts)})"

    def cast_double(self, x: str) -> str:
        return f"CAST({x} AS {self.double_type})"

    def read_double(self, x: str) -> str:
        """A value of the table as a number."""
        return self.number_template.replace("{}", x) or self.cast_double(x)

    def typed_number(self, x: str, name: str) -> str:
        """A value of the column ``name`` as a number, or as days where it is a date, a time or a duration."""
        values = {"": x, "name": exp.Literal.string(name).sql(self.name)}
        template = self.typed_number_template or self.number_template or self.cast_double("{}")
        return re.sub(r"\{(name)?\}", lambda match: values[match[1] or ""], template)

    def greatest_of(self, *values: str) -> str:
        return f"{self.extremes[0]}({', '.join(values)})"

    def least_of(self, *values: str) -> str:
        return f"{self.extremes[1]}({', '.join(values)})"

    def values_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """A table of constants; the values of its rows are SQL."""
        lines = [", ".join(row) for row in rows]
        return self.table_template.format(
            name=name,
            rows=", ".join(map(self.row_template.format, lines)),
            columns=", ".join(columns),
            numbered=", ".join(f"column{i} AS {column}" for i, column in enumerate(columns, 1)),
            first=", ".join(f"{value} AS {column}" for value, column in zip(rows[0], columns, strict=True)),
            rest="".join(f", ({line})" for line in lines[1:]),
        )

    def list_item(self, place: str, values: Sequence[str], kind: str) -> str:
        return self.list_template.format(values=",".join(values).replace("NULL", "null"), type=kind, place=place)

    # Values of counting queries

    double = staticmethod(as_double)

    def split_literal(self, text: str) -> list[str]:
        """Split a text into pieces in which the database replaces nothing."""
        return [text]

    def check_name(self, name: str) -> None:
        """Reject a column name that the database would change even in quotes."""

    def is_float(self, kind: str) -> bool:
        """Whether numbers of a type, in capitals, may be NaN."""
        return kind.startswith(_FLOATS)

    def is_time(self, kind: str) -> bool:
        """Whether a type, in capitals, is a date, time or duration, which is counted in days."""
        return kind.startswith(_TIMES)

    def parse_number(self, x: Expr, kind: str) -> Expr:
        """The value as a double; where it may be text, null for text that is not a number."""
        if kind != ANY_NUMBER or not self.number_template:
            return self.double(x)
        return exp.var(self.typed_number(x.sql(self.name), x.name))  # as it is written: sqlglot would change types

    def text(self, x: Expr) -> Expr:
        return exp.Cast(this=x, to=_TEXT)

    def literal(self, value: float) -> Expr:
        """A double, all its digits: without an exponent most databases take it for a decimal."""
        digits = repr(abs(float(value)))  # sqlglot would write a negative number without an exponent
        size = exp.Literal.number(digits if "e" in digits else f"{digits}e0")
        return exp.Neg(this=size) if value < 0 else size

    def level(self, x: Expr, kind: str) -> Expr:
        """A value as a level or a class: as it is where Python reads the type without loss, else as text."""
        return x if kind in _LEVELS or "INT" in kind or kind.startswith("DECIMAL") else self.text(x)

    def days(self, x: Expr, kind: str) -> Expr:
        """A date or time of type ``kind`` as days since 1970, a time of day or a duration as days."""
        template = self.counted_days.get(kind) or self.counted_days.get("") or self.days_template
        if not template:
            raise NotImplementedError(f"{self.name or 'this dialect'} has no days of {kind}")
        return exp.var(template.replace("{}", x.sql(self.name)))

    # Functions

    def call_if_present(self, function: str, x: Expr) -> Expr | None:
        """A function of a value; None where the database lacks it."""
        return call_function(function, x) if function else None

    def is_nan(self, x: Expr) -> Expr | None:
        """Whether a double is NaN; None where there is no NaN."""
        return self.call_if_present(self.nan_function, x)

    def log(self, x: Expr) -> Expr:
        return exp.Ln(this=x)

    def exp(self, x: Expr) -> Expr:
        """e to the power of a double; 0 where that is too small."""
        return exp.Exp(this=x)

    def greatest(self, x: Expr, low: float) -> Expr:
        """The larger of a value and a number, null where the value is: databases differ in that."""
        return exp.Case(ifs=[exp.If(this=x < number_literal(low), true=number_literal(low))], default=x.copy())

    def log_gamma(self, x: Expr) -> Expr:
        """log Gamma(x) of a double > 0: Stirling's series at x + 11, less the logarithms of x, ..., x + 10."""
        if self.log_gamma_function:
            return call_function(self.log_gamma_function, x)
        x = exp.Paren(this=x)
        z = exp.Paren(this=x + self.literal(_STIRLING_FROM))
        series: Expr = self.literal(0.0)
        for term in reversed(_STIRLING):  # Horner's rule in 1/z^2
            series = self.literal(term) + exp.Paren(this=series) / (z * z)
        out = (z - self.literal(0.5)) * self.log(z) - z + self.literal(_HALF_LOG_2_PI) + exp.Paren(this=series) / z
        for i in range(_STIRLING_FROM):
            out = out - self.log(exp.Paren(this=x + self.literal(i)))
        return exp.Paren(this=out)

    def hash(self, x: Expr) -> Expr:
        """A pseudo-random integer >= 0 from an integer >= 0."""
        if self.hash_function:
            return call_function(self.hash_function, x)
        x = exp.Paren(this=x)
        left = exp.Paren(this=x % number_literal(46337))  # a prime whose square fits into 32 bits
        return (left * left * number_literal(69069) + x * number_literal(1103515245)) % number_literal(2**31)

    def md5(self, x: Expr) -> Expr:
        """The hash of a text in UTF-8, in lower-case hexadecimal digits."""
        return exp.MD5(this=x)

    def hex_value(self, x: Expr, digits: int) -> Expr:
        """The number that the first hexadecimal digits of a text are, read one by one."""
        out: Expr = number_literal(0)
        for i in range(1, digits + 1):
            digit = exp.Substring(this=x.copy(), start=number_literal(i), length=number_literal(1))
            position = exp.StrPosition(this=string_literal("0123456789abcdef"), substr=digit)
            out = exp.Paren(this=out) * number_literal(16) + position - number_literal(1)
        return out

    def level_code(self, x: Expr, levels: Labels) -> Expr | None:
        """The index of a text in ``levels``, their number for an unseen level, -1 for null."""
        return None

    def exact_sum(self, x: Expr) -> Expr:
        return call_function(self.sum_function, x)

    def stack(self, values: Sequence[Expr]) -> Expr:
        """Split a row into one for each of several values of one type, with its index ``which`` and value ``level``."""
        raise NotImplementedError(f"{self.name or 'this dialect'} cannot stack values")

    def grouping(self, *names: Expr) -> Expr:
        return call_function(self.grouping_function, *names)


@dataclass(frozen=True)
class SourceColumn:
    """A column to be counted: read once in a subquery, and known to aggregates as ``alias``."""

    name: str
    type: str
    dialect: Dialect
    alias: str = ""
    is_level: bool = False
    weight: str | None = None  # the alias of the weight
    has_nan: bool = True  # whether a number may be NaN
    middle_value: float | Mapping[Any, float] = 0.0  # near the middle, for all rows or for each label
    has_centered_sums: bool = False  # whether moments come from sums around it, though the database has a variance
    grid: Encoding | None = None  # of numbers that are counted by the cell in which they lie

    @property
    def x(self) -> Expr:
        return exp.column(self.alias)

    @property
    def raw(self) -> Expr:
        return exp.column(self.name, quoted=True)

    @property
    def place(self) -> int:
        return int(self.alias.removeprefix("f"))

    @property
    def middle(self) -> Expr:
        literal = self.dialect.literal
        if not isinstance(self.middle_value, Mapping):
            return literal(self.middle_value)
        cases = [exp.If(this=exp.convert(label), true=literal(value)) for label, value in self.middle_value.items()]
        return exp.Case(this=exp.column("y"), ifs=cases, default=literal(0.0))

    @property
    def value(self) -> Expr:
        """The value for the model: a level, or a double; times and dates are days."""
        dialect, kind, raw = self.dialect, self.type.upper(), self.raw
        if self.is_level:
            return dialect.level(raw, kind)
        return dialect.days(raw, kind) if dialect.is_time(kind) else dialect.parse_number(raw, kind)

    @property
    def aggregate_value(self) -> Expr:
        """The value for aggregates: NaN, which they would count, is missing."""
        kind, nan = self.type.upper(), None
        if self.dialect.is_float(kind) and (self.has_nan or self.is_counted_by_level):
            nan = self.dialect.is_nan(self.dialect.parse_number(self.raw, kind))
        return self.value if nan is None else exp.Case(ifs=[exp.If(this=exp.Not(this=nan), true=self.value)])

    @property
    def code(self) -> Expr:
        """The code of the value's cell where cells are counted, else the value."""
        if self.grid is None:
            return self.x
        code = exp.Nullif(this=self.grid.sql(self.x, self.dialect), expression=number_literal(-1))
        return exp.alias_(code, self.alias)

    @property
    def is_counted_by_level(self) -> bool:
        return self.is_level or self.grid is not None

    def weighted_sum(self, value: Expr) -> Expr:
        if self.weight is not None:
            value = exp.Mul(this=exp.column(self.weight), expression=exp.Paren(this=value))
        return self.dialect.exact_sum(value)

    def present_weight(self, value: Expr) -> Expr:
        if self.weight is None:
            return exp.Count(this=value, big_int=True)
        present = exp.If(this=exp.Not(this=is_null(value)), true=exp.column(self.weight))
        return self.dialect.exact_sum(exp.Case(ifs=[present]))
