"""Expressions: numbers, sums and functions as SQL has them.

Nothing is infinite in a query: some databases know no infinity, and others give an error where one would come about.
What is impossible has the score ``NEVER``, and exponentials too small to matter are 0.

>>> number(1.5), number(-math.inf), added(["a", "b"])
('1.5e0', '-1e+300', 'a + b')
>>> guarded_exp("x")
'CASE WHEN x < -600e0 THEN 0e0 ELSE EXP(x) END'
"""

import math
from collections.abc import Sequence

from candide.export.scorer.numbers import STIRLING, stirling
from candide.export.sql.layers import Layers
from candide.export.sql.words import NEVER, number

IMPOSSIBLE = "-1e280"  # below it is what cannot be, even in a small share
_FAR, _NEAR = 1e138, 1e-150  # what is farther cannot be, for its square is as large; the square of what is nearer is 0
_LARGE, SMALL = 1e260, 1e-290  # between them a number can be multiplied and be possible
_PRODUCT = 1e30  # up to here eight numbers can be multiplied; beyond it 1 + x is x
_SMALLEST = -600.0  # below it an exponential is 0: exp(-600) is 1e-261, and can still be multiplied with small numbers
_TERMS = 40  # of a sum in one row of brackets: databases limit how deep an expression may be
_PLAIN = 1e4  # up to this factor the error of log(1 + q), 1e-16, stays below 1e-12
_LEAST = 16  # from here on Stirling's series is accurate


def added(terms: Sequence[str]) -> str:
    """A sum, in brackets within brackets where it is long."""
    if len(terms) <= _TERMS:
        return " + ".join(terms) or "0e0"
    size = max(_TERMS, math.ceil(len(terms) / _TERMS))
    return added([f"({added(terms[at : at + size])})" for at in range(0, len(terms), size)])


def squared(layers: Layers, x: str, factor: float, farthest: float = _FAR) -> str:
    """The name of (f x)^2: of what is too far the negative of what cannot be, and 0 of what is too near."""
    name, size = layers.let(x), max(abs(factor), 1e-150)
    far, near = (number(min(one / size, 1e300)) for one in (farthest, _NEAR))
    z = f"({name} * {number(factor)})"
    cases = f"WHEN ABS({name}) > {far} THEN {number(-2 * NEVER)} WHEN ABS({name}) > {near} THEN {z} * {z}"
    return layers.let(f"CASE {cases} WHEN {name} IS NOT NULL THEN 0e0 END")


def clamped(layers: Layers, x: str) -> str:
    """The name of a number that can be multiplied; between classes a larger one would say no more."""
    most, least = number(_LARGE), number(SMALL)
    cases = f"WHEN {x} > {most} THEN {most} WHEN {x} < -{most} THEN -{most} WHEN ABS({x}) < {least} THEN 0e0"
    return layers.let(f"CASE {cases} ELSE {x} END")


def guarded_exp(x: str, least: float = _SMALLEST) -> str:
    """The exponential of a name, 0 where it is too small to matter."""
    return f"CASE WHEN {x} < {number(least)} THEN 0e0 ELSE EXP({x}) END"


def log1p(layers: Layers, q: str, times: float) -> str:
    """log(1 + q) of q >= 0, accurate enough to be multiplied by a factor."""
    words = layers.words
    if abs(times) <= _PLAIN:
        return f"{words.log}(1e0 + {q})"
    name = layers.let(q)
    if words.log1p:
        return words.log1p.replace("{}", name)
    more = layers.let(f"1e0 + {name}")  # what was lost in the sum is put right by a factor (Kahan)
    return f"CASE WHEN {more} = 1e0 THEN {name} ELSE {words.log}({more}) * {name} / ({more} - 1e0) END"


def log_rising(layers: Layers, a: float, x: str) -> str:
    """log Gamma(a + x) / Gamma(a) of x >= 0, as the scorers have it; the steps to large numbers in two logarithms."""
    if a == 0:
        return f"CASE WHEN {x} = 0e0 THEN 0e0 ELSE {number(-math.inf)} END"
    steps, starts = [], []
    while a < _LEAST:
        steps.append(f"(1e0 + {x} / {number(a)})")
        starts.append(a)
        a += 1
    log, half = layers.words.log, (len(steps) + 1) // 2
    shift = "".join(f" - {log}({' * '.join(some)})" for some in (steps[:half], steps[half:]) if some)
    if steps:
        far = f"{number(sum(map(math.log, starts)))} - {number(len(steps))} * {log}({x})"
        shift = f" + CASE WHEN {x} < {number(_PRODUCT)} THEN 0e0{shift} ELSE {far} END"
    end = layers.let(f"{x} + {number(a)}")
    square = layers.let(f"CASE WHEN {end} < {number(_PRODUCT)} THEN 1e0 / ({end} * {end}) ELSE 0e0 END")
    series = number(STIRLING[-1])
    for one in reversed(STIRLING[:-1]):
        series = f"({series} * {square} + {number(one)})"
    ratio = log1p(layers, f"{x} / {number(a)}", a)
    large = f"{number(a - 0.5)} * ({ratio}) + {x} * ({log}({end}) - 1e0)"
    return f"({large} + {series} / {end} - {number(stirling(a))}{shift})"
