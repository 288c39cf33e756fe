"""Dialect: how a database spells what is asked of it. A few words each; the queries around them are the same for all.

What a database cannot say is None, and is then done in another way: without ``variance`` and ``mean`` the moments come
from sums around a value near the middle, without ``histogram`` levels take a query of their own.

>>> x = exp.column("x")
>>> Dialect().total(x).sql(), Dialect().mean(x), Dialect().log(x).sql()
('SUM(x)', None, 'LN(x)')
"""

from typing import Any

from sqlglot import exp

from candide.rows.labels import Labels

Expr = Any  # a sqlglot expression
_LEVELS = ("VARCHAR", "TEXT", "BOOLEAN", "DATE", "TIMESTAMP", "TIME", "DOUBLE", "FLOAT", "REAL")


def call(name: str, *arguments: Expr) -> Expr:
    """A function that sqlglot passes through as it is written."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def number(value: object) -> Expr:
    """A number in a query."""
    return exp.Literal.number(repr(value))


class Dialect:
    """What most databases share; ``name`` is sqlglot's word for this one."""

    name = ""
    grouping_sets = False  # whether one query may group rows in several ways

    def double(self, x: Expr) -> Expr:
        """The value as a double."""
        return exp.cast(x, "DOUBLE")

    def total(self, x: Expr) -> Expr:
        """The sum of the values present, as exact as the database can."""
        return exp.Sum(this=x)

    def mean(self, x: Expr) -> Expr | None:
        """The mean, if it is accurate far from zero."""
        return None

    def variance(self, x: Expr) -> Expr | None:
        """The variance with divisor n, if it is accurate far from zero."""
        return None

    def is_nan(self, x: Expr) -> Expr | None:
        """Whether a double is NaN; None where there is no NaN."""
        return call("isnan", x)

    def level(self, x: Expr, kind: str) -> Expr:
        """A value of some type as Python reads it without loss, to be a level or a class; as text where it cannot."""
        known = kind in _LEVELS or "INT" in kind or kind.startswith("DECIMAL")
        return x if known else exp.cast(x, "TEXT")

    def days(self, x: Expr) -> Expr:
        """A date or time as days since 1970, a time of day or a duration as days."""
        return exp.Div(this=call("epoch", x), expression=number(86400.0))

    def log(self, x: Expr) -> Expr:
        """The natural logarithm."""
        return exp.Ln(this=x)

    def log_gamma(self, x: Expr) -> Expr | None:
        """log Gamma(x)."""
        return None

    def greatest(self, x: Expr, low: float) -> Expr:
        """The larger of a value and a number."""
        return exp.Greatest(this=x, expressions=[number(low)])

    def hash(self, x: Expr) -> Expr:
        """A whole number >= 0 that looks drawn at random, from a whole number >= 0."""
        left = exp.Paren(this=exp.Mod(this=exp.Paren(this=x), expression=number(46337)))  # a prime: squares fit
        square = exp.Mul(this=exp.Mul(this=left, expression=left.copy()), expression=number(69069))
        line = exp.Mul(this=exp.Paren(this=x.copy()), expression=number(1103515245))  # as of a congruential generator
        return exp.Mod(this=exp.Paren(this=exp.Add(this=square, expression=line)), expression=number(2**31))

    def histogram(self, x: Expr) -> Expr | None:
        """A mapping from value to count."""
        return None

    def code(self, x: Expr, levels: Labels) -> Expr | None:
        """The place of a text among levels, their number where it is none of them, -1 where it is null."""
        return None
