"""A column as SQL sees it: its name and type in the source, and what it is called once it has been read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from candide.encoding import Encoding
from candide.engines.sql.dialect import Dialect, Expr, number_literal


@dataclass(frozen=True)
class SourceColumn:
    """A column to be counted or scored.

    ``read`` is projected once, in a subquery; every aggregate then works on the plain name ``alias``.
    """

    name: str
    type: str
    dialect: Dialect
    alias: str = ""
    is_level: bool = False
    weight: str | None = None  # the alias of the weight
    has_nan: bool = True  # whether a number may be NaN
    middle_value: float | Mapping[Any, float] = (
        0.0  # a value near the middle, or one for each label, for sums around it
    )
    has_centered_sums: bool = False  # whether moments come from sums around it, though the database has a variance
    grid: Encoding | None = None  # of numbers that are counted by the cell in which they lie

    @property
    def x(self) -> Expr:
        return exp.column(self.alias)

    @property
    def raw(self) -> Expr:
        return exp.column(self.name, quoted=True)

    @property
    def middle(self) -> Expr:
        if not isinstance(self.middle_value, Mapping):
            return self.dialect.literal(self.middle_value)
        cases = [
            exp.If(this=exp.convert(label), true=self.dialect.literal(v)) for label, v in self.middle_value.items()
        ]
        return exp.Case(this=exp.column("y"), ifs=cases, default=self.dialect.literal(0.0))

    @property
    def aggregate_value(self) -> Expr:
        """The value as aggregates want it: NaN, which they would count, is missing."""
        may_be = self.is_float and (self.has_nan or self.is_counted_by_level)
        nan = self.dialect.is_nan(self.dialect.parse_number(self.raw, self.type.upper())) if may_be else None
        return self.value if nan is None else exp.Case(ifs=[exp.If(this=exp.Not(this=nan), true=self.value)])

    @property
    def value(self) -> Expr:
        """The value as the model wants it: a level, or a double; times and dates are days."""
        kind = self.type.upper()
        if self.is_level:
            return self.dialect.level(self.raw, kind)
        is_time = self.dialect.is_time(kind)
        return self.dialect.days(self.raw, kind) if is_time else self.dialect.parse_number(self.raw, kind)

    @property
    def code(self) -> Expr:
        """Of what was read the code of its cell, where cells are counted; the value itself elsewhere."""
        if self.grid is None:
            return self.x
        return exp.alias_(
            exp.Nullif(this=self.grid.sql(self.x, self.dialect), expression=number_literal(-1)), self.alias
        )

    @property
    def is_counted_by_level(self) -> bool:
        """Whether the weight of each level, or cell, is counted."""
        return self.is_level or self.grid is not None

    @property
    def is_float(self) -> bool:
        return self.dialect.is_float(self.type.upper())

    def weighted_sum(self, value: Expr) -> Expr:
        """The (weighted) sum of a value."""
        if self.weight is None:
            return self.dialect.exact_sum(value)
        return self.dialect.exact_sum(exp.Mul(this=exp.column(self.weight), expression=exp.Paren(this=value)))

    def present_weight(self, value: Expr) -> Expr:
        """The weight of the rows where a value is present."""
        if self.weight is None:
            return exp.Count(this=value, big_int=True)
        there = exp.Not(this=exp.Is(this=value, expression=exp.Null()))
        return self.dialect.exact_sum(exp.Case(ifs=[exp.If(this=there, true=exp.column(self.weight))]))
