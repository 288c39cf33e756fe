"""Dialect: how a database spells what is asked of it. A few words each; the queries around them are the same for all.

What a database cannot say is None, and is then done in another way: without ``variance`` and ``mean`` the moments come
from sums around a value near the middle, without ``histogram`` levels take a query of their own. The dialects stand in
:mod:`candide.engines.sql.dialects`; what they share is here, in words that every one of them has.

>>> x = exp.column("x")
>>> Dialect().exact_sum(x).sql(), Dialect().mean(x), Dialect().log(x).sql(), Dialect().literal(-1.5).sql()
('SUM(x)', None, 'LN(x)', '-1.5e0')
"""

import re
from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from candide.data.labels import Labels

Expr = Any  # a sqlglot expression
_DOUBLE = exp.DataType.build("DOUBLE")  # one for all: to parse the word for each column of a wide table takes long
_TEXT = exp.DataType.build("TEXT")
ANY_NUMBER = "DOUBLE OR TEXT"  # the type of numbers in a column that nobody has looked at
# No double has an exponent of four digits
NUMBER_PATTERN = "'^ *[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?0*[0-9]{1,3})? *$'"
_FLOATS = ("DOUBLE", "FLOAT", "REAL")
_KEYS = re.compile(
    r"U?(TINY|SMALL|MEDIUM|BIG|HUGE)?INT(EGER|\d+)?\b|(DECIMAL|NUMERIC)\(\d+, ?0\)"
    r"|(VAR|BP)?CHAR|CHARACTER|TEXT|STRING|ENUM|UUID"
)
_TIMES = ("DATE", "TIME", "INTERVAL")
_LEVELS = ("VARCHAR", "TEXT", "BOOLEAN", "DATE", "TIMESTAMP", "TIME", "DOUBLE", "FLOAT", "REAL")
# Of log Gamma(z) above (z - 1/2) log z - z + log(2 pi) / 2 the terms in 1/z, 1/z^3, ... (Stirling's series): at
# z >= _FAR the next of them is below 1e-14.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_HALF_LOG_2_PI = 0.9189385332046728
_STIRLING_FROM = 11


def call_function(name: str, *arguments: Expr) -> Expr:
    """A function that sqlglot passes through as it is written."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def number_literal(value: object) -> Expr:
    """A number in a query, of the type that its database gives it: whole, or a decimal."""
    return exp.Literal.number(repr(value))


def as_double(x: Expr) -> Expr:
    """A value as a double, by the cast of all databases."""
    return exp.Cast(this=x, to=_DOUBLE)


def days_from_seconds(x: Expr) -> Expr:
    return exp.Div(this=x, expression=exp.Literal.number("86400e0"))


def days_from_micros(x: Expr) -> Expr:
    return exp.Div(this=x, expression=exp.Literal.number("86400e6"))


class Dialect:
    """What most databases share; ``name`` is sqlglot's word for this one."""

    name = ""
    has_grouping_sets = False  # whether one query may well group rows in several ways
    number_template = ""  # the number of any value ``{}``, null where it is none; without it such text ends the query
    typed_number_template = (
        ""  # the same by type: dates, times and durations as days, an error for types that have no number
    )
    can_stack = False  # or makes of each row several, to be grouped in one way

    # Types and values

    def split_literal(self, text: str) -> list[str]:
        """A text in pieces, none of which the database would read as other than itself."""
        return [text]

    def check_name(self, name: str) -> None:
        """Refuse the name of a column that the database would read as another, even in quotes."""

    def is_float(self, kind: str) -> bool:
        """Whether a type, in capitals, is of numbers that may be NaN."""
        return kind.startswith(_FLOATS)

    def is_time(self, kind: str) -> bool:
        """Whether a type, in capitals, is of dates, times or durations, which are counted in days."""
        return kind.startswith(_TIMES)

    def is_key(self, kind: str) -> bool:
        """Whether a type, in capitals, is of whole numbers or text, which every database spells alike."""
        return _KEYS.match(kind) is not None and not kind.endswith("]")  # a list of them is none

    def double(self, x: Expr) -> Expr:
        """The value as a double."""
        return as_double(x)

    def parse_number(self, x: Expr, kind: str) -> Expr:
        """The value as a double; where it may be text, null for one that spells no number."""
        if kind != ANY_NUMBER or not self.number_template:
            return self.double(x)
        return exp.var(self.typed_number(x.sql(self.name), x.name))  # as it is written: sqlglot would change types

    def typed_number(self, x: str, name: str) -> str:
        """The SQL of a value of the column ``name`` as a double, whatever its type is."""
        of = {"": x, "name": exp.Literal.string(name).sql(self.name)}
        return re.sub(
            r"\{(name)?\}", lambda found: of[found[1] or ""], self.typed_number_template or self.number_template
        )

    def text(self, x: Expr) -> Expr:
        """The value as text."""
        return exp.Cast(this=x, to=_TEXT)

    def literal(self, value: float) -> Expr:
        """A double, all its digits: without an exponent most databases take it for a decimal."""
        digits = repr(abs(float(value)))  # with a sign sqlglot would read the number, and write it without an exponent
        size = exp.Literal.number(digits if "e" in digits else f"{digits}e0")
        return exp.Neg(this=size) if value < 0 else size

    def level(self, x: Expr, kind: str) -> Expr:
        """A value of some type as Python reads it without loss, to be a level or a class; as text where it cannot."""
        known = kind in _LEVELS or "INT" in kind or kind.startswith("DECIMAL")
        return x if known else self.text(x)

    def days(self, x: Expr, kind: str) -> Expr:
        """A date or time as days since 1970, a time of day or a duration as days; ``kind`` is its type."""
        raise NotImplementedError(f"{self.name or 'this dialect'} does not say the days of {kind}")

    # Functions

    def is_nan(self, x: Expr) -> Expr | None:
        """Whether a double is NaN; None where there is no NaN."""
        return call_function("isnan", x)

    def log(self, x: Expr) -> Expr:
        """The natural logarithm of a number > 0."""
        return exp.Ln(this=x)

    def exp(self, x: Expr) -> Expr:
        """e to the power of a double, 0 where that is too small for one."""
        return exp.Exp(this=x)

    def greatest(self, x: Expr, low: float) -> Expr:
        """The larger of a value and a number, null where the value is: databases differ in that."""
        below = exp.If(this=exp.LT(this=x, expression=number_literal(low)), true=number_literal(low))
        return exp.Case(ifs=[below], default=x.copy())

    def log_gamma(self, x: Expr) -> Expr:
        """log Gamma(x) of a double > 0: by Stirling's series, at a larger number where that is right to rounding."""
        x = exp.Paren(this=x)
        steps = [exp.Paren(this=exp.Add(this=x.copy(), expression=self.literal(i))) for i in range(_STIRLING_FROM)]
        z = exp.Paren(this=exp.Add(this=x.copy(), expression=self.literal(_STIRLING_FROM)))
        series: Expr = self.literal(0.0)
        for term in reversed(_STIRLING):  # by Horner, in 1/z^2
            square = exp.Mul(this=z.copy(), expression=z.copy())
            lower = exp.Div(this=exp.Paren(this=series), expression=exp.Paren(this=square))
            series = exp.Add(this=self.literal(term), expression=lower)
        line = exp.Mul(
            this=exp.Paren(this=exp.Sub(this=z.copy(), expression=self.literal(0.5))), expression=self.log(z)
        )
        out: Expr = exp.Sub(this=line, expression=z.copy())
        out = exp.Add(this=out, expression=self.literal(_HALF_LOG_2_PI))
        out = exp.Add(this=out, expression=exp.Div(this=exp.Paren(this=series), expression=z.copy()))
        for step in steps:
            out = exp.Sub(this=out, expression=self.log(step))
        return exp.Paren(this=out)

    def hash(self, x: Expr) -> Expr:
        """A whole number >= 0 that looks drawn at random, from a whole number >= 0."""
        left = exp.Paren(this=exp.Mod(this=exp.Paren(this=x), expression=number_literal(46337)))  # a prime: squares fit
        square = exp.Mul(this=exp.Mul(this=left, expression=left.copy()), expression=number_literal(69069))
        line = exp.Mul(
            this=exp.Paren(this=x.copy()), expression=number_literal(1103515245)
        )  # as of a congruential generator
        return exp.Mod(this=exp.Paren(this=exp.Add(this=square, expression=line)), expression=number_literal(2**31))

    def md5(self, x: Expr) -> Expr:
        """The hash of a text in UTF-8, in hexadecimal digits and small letters."""
        return exp.MD5(this=x)

    def hex_value(self, x: Expr, digits: int) -> Expr:
        """The number that the first hexadecimal digits of a text are, read one by one."""
        one, known = exp.Literal.number(1), exp.Literal.string("0123456789abcdef")
        out: Expr = exp.Literal.number(0)
        for i in range(1, digits + 1):
            digit = exp.Substring(this=x.copy(), start=exp.Literal.number(i), length=one.copy())
            place = exp.Sub(this=exp.StrPosition(this=known.copy(), substr=digit), expression=one.copy())
            out = exp.Add(this=exp.Mul(this=exp.Paren(this=out), expression=exp.Literal.number(16)), expression=place)
        return out

    def level_code(self, x: Expr, levels: Labels) -> Expr | None:
        """The place of a text among levels, their number where it is none of them, -1 where it is null."""
        return None

    # Aggregates

    def exact_sum(self, x: Expr) -> Expr:
        """The sum of the values present, as exact as the database can."""
        return exp.Sum(this=x)

    def mean(self, x: Expr) -> Expr | None:
        """The mean, if it is accurate far from zero."""
        return None

    def variance(self, x: Expr) -> Expr | None:
        """The variance with divisor n, if it is accurate far from zero."""
        return None

    def histogram(self, x: Expr) -> Expr | None:
        """A mapping from value to count."""
        return None

    def stack(self, values: Sequence[Expr]) -> Expr:
        """What makes of a row one for each of some values of one type: ``which`` it is, and the value as ``level``."""
        raise NotImplementedError(f"{self.name or 'this dialect'} does not stack values")

    def grouping(self, *names: Expr) -> Expr:
        """Of a row of grouping sets which columns it is not grouped by: a bit for each, the first the highest."""
        return call_function("GROUPING", *names)
