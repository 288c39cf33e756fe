"""SQL of scoring queries: named values in layers, and the arithmetic that all databases can compute.

A value is in the first layer in which all that it needs is available. A value that is used twice is computed once,
where a database would copy the expression; values that no later layer needs are not passed on.

Nothing is infinite in a query: some databases have no infinity, and others raise an error for it. An impossible value
has the score ``MIN_SCORE``, and exponentials too small to matter are 0.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from candide.engines.sql.dialect import Dialect
from candide.errors import InputError
from candide.export.python_js.numbers import STIRLING, stirling

MIN_SCORE = -1e300  # the score of what is impossible; a few of them can be added without an overflow
_MAX_JOINS = 40  # tables in one layer: SQLite joins 64, MySQL 61
_MAX_JOINED_COLUMNS = 500  # and approximate columns of them: with those of other layers within the limits of databases
_MAX_COMPARED = 200  # values compared one by one, in a microsecond, instead of planning one more join
_NAME = re.compile(r"\bq\d+\b")
IMPOSSIBLE_SCORE = "-1e280"  # scores below it are impossible, even multiplied by a small weight
_MAX_SQUARABLE, _MIN_SQUARABLE = 1e138, 1e-150  # beyond the first it is impossible; below the second its square is 0
MAX_FINITE_SQUARE = 1.34e154  # larger numbers have an infinite square
_MAX_FACTOR, MIN_POSITIVE = 1e260, 1e-290  # numbers between them can be multiplied
_MAX_PRODUCT = 1e30  # up to here eight numbers can be multiplied; beyond it 1 + x = x
_MIN_EXPONENT = -600.0  # exponentials of less are 0: exp(-600) is 1e-261, and can still be multiplied
_MAX_SUMMANDS = 40  # of a sum without brackets: databases limit the depth of expressions
_MAX_ARGUMENTS = 50  # of one function
_ITEM_DECIMALS = 13  # of a number in a long list: thousands of them are added up
_MAX_DIRECT = 1e4  # up to this factor the error of log(1 + q), 1e-16, stays below 1e-12
_STIRLING_FROM = 16  # from here on Stirling's series is accurate


def format_number(value: float) -> str:
    """A number as a double: without an exponent it would be a decimal. No number in a query is infinite."""
    if math.isinf(value):
        value = math.copysign(MIN_SCORE, value)
    text = repr(float(value))
    return text if "e" in text else f"{text.removesuffix('.0')}e0"


@dataclass
class ConstantTable:
    """A table of constants with columns of codes (integers or NULL) and of numbers; each has a name in the query."""

    layers: "Layers"
    key: str  # an expression of the query

    def codes(self, values: Sequence[int | None]) -> str:
        """Add a column; it is NULL where the key of a row is not in the table."""
        return self._column(["NULL" if value is None else str(value) for value in values], "INT")

    def numbers(self, values: Sequence[float]) -> str:
        return self._column(list(map(format_number, values)), self.layers.dialect.double_type)

    def _column(self, values: Sequence[str], kind: str) -> str:
        raise NotImplementedError


@dataclass
class Join(ConstantTable):
    """A joined table: every row of the query matches at most one of its rows."""

    name: str
    key_column: str
    keys: Sequence[str]
    width: int  # approximate number of columns
    columns: dict[tuple[str, ...], str] = field(default_factory=dict)  # values -> name

    def _column(self, values: Sequence[str], kind: str) -> str:
        known = tuple(values)
        if kind != "INT":
            known = (self.layers.dialect.cast_double(known[0]), *known[1:])  # a column has the type of its first value
        if known not in self.columns:
            self.columns[known] = self.layers.new_name(self.layers.depths[self.key_column])
        return self.columns[known]

    def sql(self, needed: Collection[str]) -> str:
        columns = {name: values for values, name in self.columns.items() if name in needed}
        rows = list(zip(self.keys, *columns.values(), strict=True))
        table = self.layers.dialect.values_table(self.name, [self.key_column, *columns], rows)
        return f"\n  LEFT JOIN {table} ON {self.key_column} = {self.key}"


@dataclass
class ConstantList(ConstantTable):
    """A table by integers whose columns are lists, for a database that is slow to plan many joins."""

    keys: Sequence[int]

    def _column(self, values: Sequence[str], kind: str) -> str:
        first, by_key = min(self.keys), dict(zip(self.keys, values, strict=True))
        items = [by_key.get(place, "NULL") for place in range(first, max(self.keys) + 1)]
        return self.layers.add_value(self.layers.dialect.list_item(f"{self.key} - {first}", items, kind))


@dataclass
class _Layer:
    values: dict[str, str] = field(default_factory=dict)  # name -> expression
    joins: list[Join] = field(default_factory=list)

    def is_full(self, width: int) -> bool:
        """Whether one more table would exceed the limits."""
        joined = sum(join.width for join in self.joins)
        return bool(self.joins) and (len(self.joins) >= _MAX_JOINS or joined + width > _MAX_JOINED_COLUMNS)


class Layers:
    """The values of a query, each in its layer.

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

    def __init__(self, dialect: Dialect, table: str):
        self.dialect, self.table = dialect, table
        self.depths: dict[str, int] = {}  # name -> its layer
        self._layers = [_Layer()]
        self._names: dict[str, str] = {}  # expression -> name

    def column(self, name: str) -> str:
        """A column, qualified by the table: SQLite takes an unknown quoted name for text."""
        return f"t0.{self.dialect.quote(name)}"

    def add_read(self, expression: str) -> str:
        """The name of an expression of the columns of the table."""
        return self._add(expression, 0)

    def add_value(self, expression: str) -> str:
        """The name of an expression of names."""
        return expression if _NAME.fullmatch(expression) else self._add(expression, self.depth(expression))

    def _add(self, expression: str, depth: int) -> str:
        if expression not in self._names:
            self._names[expression] = name = self.new_name(depth)
            self._layers[depth].values[name] = expression
        return self._names[expression]

    def join_by_key(self, key: str, keys: Sequence[str]) -> ConstantTable:
        """A table of constants by a named value; ``keys`` are SQL."""
        if self.dialect.position_template and len(keys) <= _MAX_COMPARED:
            place = self.add_value(self.dialect.position_template.format(", ".join(keys), key))
            return ConstantList(self, place, range(1, len(keys) + 1))
        return self.join(key, keys)

    def join_by_code(self, code: str, codes: Sequence[int], width: int = 1) -> ConstantTable:
        """A table of constants by a named integer."""
        if self.dialect.list_template:
            return ConstantList(self, code, codes)
        return self.join(code, list(map(str, codes)), width)

    def join(self, key: str, keys: Sequence[str], width: int = 1) -> Join:
        """A table of constants by a key, an expression of names; columns are added later."""
        depth = self.depth(key)
        while depth < len(self._layers) and self._layers[depth].is_full(width):
            depth += 1
        name = self.new_name(depth)
        out = Join(self, key, f"j{name[1:]}", name, keys, width)
        self._layers[depth].joins.append(out)
        return out

    def new_name(self, depth: int) -> str:
        name = f"q{len(self.depths) + 1}"
        self.depths[name] = depth
        if depth == len(self._layers):
            self._layers.append(_Layer())
        return name

    def depth(self, expression: str) -> int:
        """The first layer that has all names of an expression."""
        return 1 + max(map(self.depths.__getitem__, self._names_in(expression)), default=-1)

    def _names_in(self, *expressions: str) -> set[str]:
        """The names in expressions; a text literal may be like one."""
        return {name for text in expressions for name in _NAME.findall(text) if name in self.depths}

    def sql(self, chosen: Sequence[tuple[str, str]]) -> str:
        """The query for expressions, each by a name."""
        needed = self._names_in(*(expression for expression, _ in chosen))
        texts: list[str] = []
        fence = f" {self.dialect.fence}" if self.dialect.fence else ""
        for i, layer in reversed(list(enumerate(self._layers))):
            values = {name: text for name, text in layer.values.items() if name in needed}
            passed = sorted((name for name in needed if self.depths[name] < i), key=lambda name: int(name[1:]))
            joins = [join for join in layer.joins if not needed.isdisjoint(join.columns.values())]
            columns = [*passed, *(name for join in joins for name in join.columns.values() if name in needed)]
            columns += [f"{text} AS {name}" for name, text in values.items()]
            if len(columns) > self.dialect.max_columns:
                what = f"cannot be exported: it takes {len(columns)} columns at once, more than {self.dialect.name} has"
                raise InputError(what, value=len(columns), remedy="export it to python or js")
            source = (f"{self.table} AS t0" if i == 0 else f"l{i - 1}") + "".join(join.sql(needed) for join in joins)
            line = "\n  " if joins else " "
            texts.insert(0, f"l{i} AS (SELECT {', '.join(columns) or '1 AS q0'}{line}FROM {source}{fence})")
            needed = {*passed, *self._names_in(*values.values(), *(join.key for join in joins))}  # of the layer below
        last = f"SELECT {', '.join(f'{expression} AS {name}' for expression, name in chosen)}"
        return "WITH " + ",\n".join(texts) + f"\n{last} FROM l{len(self._layers) - 1}"


def sum_of(summands: Sequence[str]) -> str:
    """A sum, with nested brackets where it is long."""
    if len(summands) <= _MAX_SUMMANDS:
        return " + ".join(summands) or "0e0"
    size = max(_MAX_SUMMANDS, math.ceil(len(summands) / _MAX_SUMMANDS))
    return sum_of([f"({sum_of(summands[at : at + size])})" for at in range(0, len(summands), size)])


def summands_of_items(dialect: Dialect, items: Sequence[tuple[str, Sequence[float]]]) -> list[str]:
    """Summands of the sum of one number of each list, at places from 0 on.

    A database that is slow with long lists of constants has them as a text, in which each number has the same length.
    """
    if not items:
        return []
    texts, template = [list(map(_format_item, values)) for _, values in items], dialect.item_template
    if "{places}" in template:
        starts = accumulate(map(len, texts), initial=1)
        places = [f"{place} + {start}" for (place, _), start in zip(items, starts, strict=False)]
        return [template.format(values=",".join(text for some in texts for text in some), places=", ".join(places))]
    if template:
        pairs = zip(items, texts, strict=True)
        return [template.format(values=",".join(some), place=place) for (place, _), some in pairs]
    out = []
    for (place, _), some in zip(items, texts, strict=True):
        width = max(map(len, some))
        text = "".join(item.zfill(width) for item in some)
        out.append(dialect.cast_double(f"SUBSTRING('{text}', {width} * ({place}) + 1, {width})"))
    return out


def _format_item(value: float) -> str:
    text = f"{value:.{_ITEM_DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


class Square(str):
    """SQL for (difference factor)^2 / divisor, which a logarithm prints differently."""

    difference: str
    factor: float
    divisor: float

    def __new__(cls, text: str, difference: str, factor: float, divisor: float) -> "Square":
        out = super().__new__(cls, text)
        out.difference, out.factor, out.divisor = difference, factor, divisor
        return out


def square_of(layers: Layers, x: str, factor: float, farthest: float = _MAX_SQUARABLE) -> str:
    """The name of (x factor)^2: twice -MIN_SCORE where it is too large, and 0 where it is too small."""
    name, size = layers.add_value(x), max(abs(factor), 1e-150)
    far, near = (format_number(min(limit / size, 1e300)) for limit in (farthest, _MIN_SQUARABLE))
    z = f"({name} * {format_number(factor)})"
    cases = f"WHEN ABS({name}) > {far} THEN {format_number(-2 * MIN_SCORE)} WHEN ABS({name}) > {near} THEN {z} * {z}"
    return layers.add_value(f"CASE {cases} WHEN {name} IS NOT NULL THEN 0e0 END")


def clip(layers: Layers, x: str, low: float, high: float) -> str:
    """The name of a number from ``low`` to ``high`` that can be multiplied; a larger one would not change the score."""
    name, least = layers.add_value(x), format_number(MIN_POSITIVE)
    top, bottom = format_number(min(high, _MAX_FACTOR)), format_number(max(low, -_MAX_FACTOR))
    cases = f"WHEN {name} > {top} THEN {top} WHEN {name} < {bottom} THEN {bottom} WHEN ABS({name}) < {least} THEN 0e0"
    return layers.add_value(f"CASE {cases} ELSE {name} END")


def largest_of(layers: Layers, names: Sequence[str], smallest: bool = False) -> str:
    """The name of the largest number, or of the smallest."""
    of = layers.dialect.least_of if smallest else layers.dialect.greatest_of
    while len(names) > 1:
        groups = [names[at : at + _MAX_ARGUMENTS] for at in range(0, len(names), _MAX_ARGUMENTS)]
        names = [layers.add_value(of(*group) if len(group) > 1 else group[0]) for group in groups]
    return names[0]


def guarded_exp(x: str, least: float = _MIN_EXPONENT) -> str:
    """The exponential of a name, 0 where it is too small to matter."""
    return f"CASE WHEN {x} < {format_number(least)} THEN 0e0 ELSE EXP({x}) END"


def log1p(layers: Layers, q: str, times: float) -> str:
    """log(1 + q) of q >= 0, accurate enough to be multiplied by a factor."""
    dialect = layers.dialect
    if abs(times) <= _MAX_DIRECT:
        return f"{dialect.log_function}(1e0 + {q})"
    name = layers.add_value(q)
    if dialect.log1p_template:
        return dialect.log1p_template.replace("{}", name)
    total = layers.add_value(f"1e0 + {name}")  # a factor restores what the sum lost (Kahan)
    return f"CASE WHEN {total} = 1e0 THEN {name} ELSE {dialect.log_function}({total}) * {name} / ({total} - 1e0) END"


def log_rising(layers: Layers, a: float, x: str) -> str:
    """log Gamma(a + x) / Gamma(a) of x >= 0, as in the scorers; the shift to large numbers by two logarithms."""
    if a == 0:
        return f"CASE WHEN {x} = 0e0 THEN 0e0 ELSE {format_number(-math.inf)} END"
    steps, starts = [], []
    while a < _STIRLING_FROM:
        steps.append(f"(1e0 + {x} / {format_number(a)})")
        starts.append(a)
        a += 1
    log, half = layers.dialect.log_function, (len(steps) + 1) // 2
    shift = "".join(f" - {log}({' * '.join(group)})" for group in (steps[:half], steps[half:]) if group)
    if steps:
        far = f"{format_number(sum(map(math.log, starts)))} - {format_number(len(steps))} * {log}({x})"
        shift = f" + CASE WHEN {x} < {format_number(_MAX_PRODUCT)} THEN 0e0{shift} ELSE {far} END"
    end = layers.add_value(f"{x} + {format_number(a)}")
    inverse = f"CASE WHEN {end} < {format_number(_MAX_PRODUCT)} THEN 1e0 / ({end} * {end}) ELSE 0e0 END"
    square, series = layers.add_value(inverse), format_number(STIRLING[-1])
    for term in reversed(STIRLING[:-1]):
        series = f"({series} * {square} + {format_number(term)})"
    ratio = log1p(layers, f"{x} / {format_number(a)}", a)
    large = f"{format_number(a - 0.5)} * ({ratio}) + {x} * ({log}({end}) - 1e0)"
    return f"({large} + {series} / {end} - {format_number(stirling(a))}{shift})"
