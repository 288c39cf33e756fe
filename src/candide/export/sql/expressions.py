"""Expressions: numbers, sums and functions as SQL has them.

Nothing is infinite in a query: some databases have no infinity, and others raise an error for it. An impossible value
has the score ``MIN_SCORE``, and exponentials too small to matter are 0.

>>> format_number(1.5), format_number(-math.inf), sum_of(["a", "b"])
('1.5e0', '-1e+300', 'a + b')
>>> guarded_exp("x")
'CASE WHEN x < -600e0 THEN 0e0 ELSE EXP(x) END'
"""

import math
from collections.abc import Sequence

from candide.export.scorer.numbers import STIRLING, stirling
from candide.export.sql.layers import MIN_SCORE, Layers, format_number

IMPOSSIBLE_SCORE = "-1e280"  # scores below it are impossible, even multiplied by a small weight
_MAX_SQUARABLE, _MIN_SQUARABLE = 1e138, 1e-150  # beyond the first it is impossible; below the second its square is 0
MAX_FINITE_SQUARE = 1.34e154  # larger numbers have an infinite square
_MAX_FACTOR, MIN_POSITIVE = 1e260, 1e-290  # numbers between them can be multiplied
_MAX_PRODUCT = 1e30  # up to here eight numbers can be multiplied; beyond it 1 + x = x
_MIN_EXPONENT = -600.0  # exponentials of less are 0: exp(-600) is 1e-261, and can still be multiplied
_MAX_SUMMANDS = 40  # of a sum without brackets: databases limit the depth of expressions
_MAX_ARGUMENTS = 50  # of one function
_MAX_DIRECT = 1e4  # up to this factor the error of log(1 + q), 1e-16, stays below 1e-12
_STIRLING_FROM = 16  # from here on Stirling's series is accurate


def sum_of(summands: Sequence[str]) -> str:
    """A sum, with nested brackets where it is long."""
    if len(summands) <= _MAX_SUMMANDS:
        return " + ".join(summands) or "0e0"
    size = max(_MAX_SUMMANDS, math.ceil(len(summands) / _MAX_SUMMANDS))
    return sum_of([f"({sum_of(summands[at : at + size])})" for at in range(0, len(summands), size)])


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
    far, near = (format_number(min(one / size, 1e300)) for one in (farthest, _MIN_SQUARABLE))
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
    """The name of the largest of some numbers, or of the least."""
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
    more = layers.add_value(f"1e0 + {name}")  # a factor restores what the sum lost (Kahan)
    return f"CASE WHEN {more} = 1e0 THEN {name} ELSE {dialect.log_function}({more}) * {name} / ({more} - 1e0) END"


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
    shift = "".join(f" - {log}({' * '.join(some)})" for some in (steps[:half], steps[half:]) if some)
    if steps:
        far = f"{format_number(sum(map(math.log, starts)))} - {format_number(len(steps))} * {log}({x})"
        shift = f" + CASE WHEN {x} < {format_number(_MAX_PRODUCT)} THEN 0e0{shift} ELSE {far} END"
    end = layers.add_value(f"{x} + {format_number(a)}")
    square = layers.add_value(
        f"CASE WHEN {end} < {format_number(_MAX_PRODUCT)} THEN 1e0 / ({end} * {end}) ELSE 0e0 END"
    )
    series = format_number(STIRLING[-1])
    for one in reversed(STIRLING[:-1]):
        series = f"({series} * {square} + {format_number(one)})"
    ratio = log1p(layers, f"{x} / {format_number(a)}", a)
    large = f"{format_number(a - 0.5)} * ({ratio}) + {x} * ({log}({end}) - 1e0)"
    return f"({large} + {series} / {end} - {format_number(stirling(a))}{shift})"
