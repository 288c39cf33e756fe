"""Numbers: packed lists, interpolation, and the linear algebra that scores need.

>>> round(log_rising(3.0, 2.0), 12), cholesky([[4.0], [2.0, 2.0]]), interpolate(1.5, [1.0, 2.0], [10.0, 20.0])
(2.484906649788, [[2.0], [1.0, 1.0]], 15.0)
"""

import base64
import math
import struct
from operator import mul
from typing import Any

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def decode_numbers(encoded: Any) -> list[float]:
    """A list of numbers as it was written: one after another, or as the base64 of doubles."""
    if isinstance(encoded, str):
        data = base64.b64decode(encoded)
        return list(struct.unpack(f"<{len(data) // 8}d", data))
    return list(map(float, encoded))


def split_rows(values: list[float], width: int) -> list[list[float]]:
    return [values[at : at + width] for at in range(0, len(values), width)]


def lower_triangles(values: list[float], n: int) -> list[list[list[float]]]:
    """The rows of consecutive lower triangles."""
    out, at = [], 0
    while at < len(values):
        out.append([values[at + i * (i + 1) // 2 : at + (i + 1) * (i + 2) // 2] for i in range(n)])
        at += n * (n + 1) // 2
    return out


def log_sum_exp(values: list[float]) -> float:
    top = max(values)
    return top if math.isinf(top) else top + math.log(sum(math.exp(value - top) for value in values))


def log_normalize(values: list[float]) -> list[float]:
    """Logarithms minus that of their sum, after subtracting the largest, beside which the sum would be lost."""
    top = max(values)
    moved = [value - top for value in values]
    total = log_sum_exp(moved)
    return [value - total for value in moved]


def count_below(ascending: list[float], x: float) -> int:
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ascending[middle] < x else (low, middle)
    return low


def interpolate(x: float, knots: list[float], values: list[float]) -> float:
    """Linear interpolation, constant beyond the ends."""
    if x <= knots[0] or x >= knots[-1]:
        return values[0] if x <= knots[0] else values[-1]
    i = count_below(knots, x)
    if knots[i] == x:
        return values[i]
    unit = 1.0 if knots[-1] / 4 - knots[0] / 4 < 2.0**1020 else 0.25  # differences of huge numbers would overflow
    part = (x * unit - knots[i - 1] * unit) / (knots[i] * unit - knots[i - 1] * unit)
    return values[i - 1] + (values[i] - values[i - 1]) * part


def stirling(a: float) -> float:
    total, square = 0.0, 1.0 / (a * a)
    for term in reversed(STIRLING):
        total = total * square + term
    return total / a


def log_rising(a: float, x: float) -> float:
    """log Gamma(a + x) / Gamma(a), by Stirling's series, with the large parts cancelled analytically."""
    if x == 0 or x <= -a:
        return 0.0 if x == 0 else math.nan
    if a == 0:
        return -math.inf
    shift = 0.0
    while a < 16:
        shift += math.log1p(x / a) if x / a < math.inf else math.log(a + x) - math.log(a)
        a += 1
    end = a + x
    return (a - 0.5) * math.log1p(x / a) + x * (math.log(end) - 1) + stirling(end) - stirling(a) - shift


def cholesky(lower: list[list[float]]) -> list[list[float]]:
    """The Cholesky root of a positive definite matrix, given by its lower triangle."""
    root: list[list[float]] = []
    for row in lower:
        new: list[float] = []
        for value, other in zip(row, root, strict=False):
            new.append((value - sum(map(mul, new, other))) / other[-1])
        root.append([*new, math.sqrt(row[-1] - sum(map(mul, new, new)))])
    return root


def solve_lower(root: list[list[float]], x: list[float]) -> list[float]:
    """The solution of L z = x for a lower triangle."""
    z: list[float] = []
    for row, value in zip(root, x, strict=True):
        z.append((value - sum(map(mul, row, z))) / row[-1])
    return z


def multiply_lower(root: list[list[float]], x: list[float]) -> list[float]:
    return [sum(map(mul, row, x)) for row in root]
