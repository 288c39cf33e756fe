"""Layers: a query of named values, each in the first layer in which all that it needs is available.

A value that is used twice is computed once, where a database would copy the expression; values that no later layer
needs are not passed on.

>>> from candide.engines.sql.dialects.registry import get_dialect
>>> layers = Layers(get_dialect("duckdb"), "t")
>>> x = layers.add_read(layers.column("x"))
>>> y = layers.join(x, ["1", "2"]).numbers([10, 20])
>>> print(layers.sql([(f"{y} + {x}", '"z"')]))
WITH l0 AS (SELECT t0."x" AS q1 FROM t AS t0),
l1 AS (SELECT q1, q3
  FROM l0
  LEFT JOIN (VALUES (1, CAST(10e0 AS DOUBLE)), (2, 20e0)) AS j2(q2, q3) ON q2 = q1)
SELECT q3 + q1 AS "z" FROM l1
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from candide.engines.sql.dialect import Dialect
from candide.errors import InputError

MIN_SCORE = -1e300  # the score of what is impossible; a few of them can be added without an overflow
_MAX_JOINS = 40  # tables in one layer: SQLite joins 64, MySQL 61
_MAX_JOINED_COLUMNS = 500  # and approximate columns of them: with those of other layers within the limits of databases
_MAX_COMPARED = 200  # values compared one by one, in a microsecond, instead of planning one more join
_NAME = re.compile(r"\bq\d+\b")


def format_number(value: float) -> str:
    """A number as a double: without an exponent it would be a decimal. No number in a query is infinite."""
    if math.isinf(value):
        value = math.copysign(MIN_SCORE, value)
    text = repr(float(value))
    return text if "e" in text else f"{text.removesuffix('.0')}e0"


@dataclass
class _Constants:
    """A table of constants with columns of codes (integers or NULL) and of numbers."""

    layers: "Layers"
    key: str  # an expression of the query

    def codes(self, values: Sequence[int | None]) -> str:
        """The name of one more column of the table: NULL where the key of a row is not in it."""
        return self._column(["NULL" if value is None else str(value) for value in values], "INT")

    def numbers(self, values: Sequence[float]) -> str:
        """The name of one more column of numbers."""
        return self._column(list(map(format_number, values)), self.layers.dialect.double_type)

    def _column(self, values: Sequence[str], kind: str) -> str:
        raise NotImplementedError


@dataclass
class Join(_Constants):
    """A joined table: every row of the query matches at most one of its rows."""

    name: str
    key_column: str  # name of its key
    keys: Sequence[str]
    width: int  # approximate number of columns
    columns: dict[str, Sequence[str]] = field(default_factory=dict)
    _column_names: dict[tuple[str, ...], str] = field(default_factory=dict)

    def _column(self, values: Sequence[str], kind: str) -> str:
        known = tuple(values)
        if kind != "INT":
            known = (self.layers.dialect.cast_double(known[0]), *known[1:])  # a column has the type of its first value
        if known not in self._column_names:
            self._column_names[known] = name = self.layers.new_name_beside(self.key_column)
            self.columns[name] = known
        return self._column_names[known]

    def sql(self, chosen: Sequence[str]) -> str:
        held = [self.columns[name] for name in chosen]
        rows = list(zip(self.keys, *held, strict=True))
        table = self.layers.dialect.values_table(self.name, [self.key_column, *chosen], rows)
        return f"\n  LEFT JOIN {table} ON {self.key_column} = {self.key}"


@dataclass
class ConstantList(_Constants):
    """A table by integers whose columns are lists, for a database that is slow to plan many joins."""

    keys: Sequence[int]

    def _column(self, values: Sequence[str], kind: str) -> str:
        first, held = min(self.keys), dict(zip(self.keys, values, strict=True))
        every = [held.get(place, "NULL") for place in range(first, max(self.keys) + 1)]
        return self.layers.add_value(self.layers.dialect.list_item(f"{self.key} - {first}", every, kind))


@dataclass
class _Layer:
    values: dict[str, str] = field(default_factory=dict)  # name -> expression
    joins: list[Join] = field(default_factory=list)

    def is_full(self, width: int) -> bool:
        """Whether one more table would exceed the limits."""
        joined = sum(join.width for join in self.joins)
        return bool(self.joins) and (len(self.joins) >= _MAX_JOINS or joined + width > _MAX_JOINED_COLUMNS)


class Layers:
    """The values of a query, each in its layer."""

    def __init__(self, dialect: Dialect, table: str):
        self.dialect, self.table = dialect, table
        self._layers = [_Layer()]
        self._depth: dict[str, int] = {}
        self._expression_names: dict[str, str] = {}
        self._count = 0

    def column(self, name: str) -> str:
        """A column, qualified by the table: SQLite takes an unknown quoted name for text."""
        return f"t0.{self.dialect.quote(name)}"

    def add_read(self, expression: str) -> str:
        """The name of an expression of the table's own columns."""
        if expression not in self._expression_names:
            self._expression_names[expression] = name = self._name()
            self._depth[name] = 0
            self._layers[0].values[name] = expression
        return self._expression_names[expression]

    def add_value(self, expression: str) -> str:
        """The name of an expression of names."""
        if _NAME.fullmatch(expression):
            return expression
        if expression not in self._expression_names:
            self._expression_names[expression] = name = self.new_name_for(expression)
            self._layers[self._depth[name]].values[name] = expression
        return self._expression_names[expression]

    def join_by_key(self, key: str, keys: Sequence[str]) -> Join | ConstantList:
        """A table of constants by a named value; ``keys`` are SQL."""
        if self.dialect.position_template and len(keys) <= _MAX_COMPARED:
            place = self.add_value(self.dialect.position_template.format(", ".join(keys), key))
            return ConstantList(self, place, range(1, len(keys) + 1))
        return self.join(key, keys)

    def join(self, key: str, keys: Sequence[str], width: int = 1) -> Join:
        """A table of constants by a key, an expression of names; columns are added later."""
        own = self.new_name_for(key)
        while self._layer(self._depth[own]).is_full(width):
            self._depth[own] += 1
        found = Join(self, key, f"j{own[1:]}", own, keys, width)
        self._layers[self._depth[own]].joins.append(found)
        return found

    def join_by_code(self, code: str, codes: Sequence[int], width: int = 1) -> Join | ConstantList:
        """A table of constants by a named integer."""
        if self.dialect.list_template:
            return ConstantList(self, code, codes)
        return self.join(code, list(map(str, codes)), width)

    def new_name_for(self, expression: str) -> str:
        """A new name in the first layer that has all names of an expression."""
        name = self._name()
        self._depth[name] = self.depth(expression)
        self._layer(self._depth[name])
        return name

    def depth(self, expression: str) -> int:
        """The first layer that has all names of an expression."""
        return 1 + max(map(self._depth.__getitem__, self._names_in(expression)), default=-1)

    def new_name_beside(self, other: str) -> str:
        """A new name, in the layer of another."""
        name = self._name()
        self._depth[name] = self._depth[other]
        return name

    def _layer(self, depth: int) -> _Layer:
        while len(self._layers) <= depth:
            self._layers.append(_Layer())
        return self._layers[depth]

    def _name(self) -> str:
        self._count += 1
        return f"q{self._count}"

    def _names_in(self, *expressions: str) -> set[str]:
        """The names in expressions; a text literal may look like one."""
        return {name for text in expressions for name in _NAME.findall(text) if name in self._depth}

    def sql(self, chosen: Sequence[tuple[str, str]]) -> str:
        """The query for some expressions, each by a name."""
        needed = self._names_in(*(expression for expression, _ in chosen))
        found: list[str] = []
        for i in range(len(self._layers) - 1, -1, -1):
            text, needed = self._layer_sql(i, needed)
            found.append(text)
        last = f"SELECT {', '.join(f'{expression} AS {name}' for expression, name in chosen)}"
        return "WITH " + ",\n".join(reversed(found)) + f"\n{last} FROM l{len(self._layers) - 1}"

    def _layer_sql(self, i: int, needed: set[str]) -> tuple[str, set[str]]:
        """The SQL of a layer, and the names that it needs of the one below."""
        layer = self._layers[i]
        own = {name: text for name, text in layer.values.items() if name in needed}
        passed = sorted((name for name in needed if self._depth[name] < i), key=lambda name: int(name[1:]))
        joins = [(join, some) for join in layer.joins if (some := [name for name in join.columns if name in needed])]
        chosen = [*passed, *(name for _, some in joins for name in some)]
        chosen += [f"{text} AS {name}" for name, text in own.items()]
        if len(chosen) > self.dialect.max_columns:
            what = f"cannot be exported: it takes {len(chosen)} columns at once, more than {self.dialect.name} has"
            raise InputError(what, value=len(chosen), remedy="export it to python or js")
        source = (f"{self.table} AS t0" if i == 0 else f"l{i - 1}") + "".join(join.sql(some) for join, some in joins)
        line, fence = "\n  " if joins else " ", f" {self.dialect.fence}" if self.dialect.fence else ""
        text = f"l{i} AS (SELECT {', '.join(chosen) or '1 AS q0'}{line}FROM {source}{fence})"
        under = {*passed, *self._names_in(*own.values(), *(join.key for join, _ in joins))} if i else set()
        return text, under
