"""The rules: each takes its numbers and the number of classes, and gives what makes (feature, class) terms of a row.

>>> RULES["switch"]({"threshold": 10, "no": [-1, -2], "yes": [-3, -4]}, 2)([12.0])
[[-3.0, -4.0]]
"""

import base64
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from candide.export.scorer.numbers import (
    cholesky,
    decode_numbers,
    log_rising,
    lower_triangles,
    multiply_lower,
    solve_lower,
    split_rows,
)
from candide.export.scorer.texts import COUNT_TRANSFORMS

LOG_2PI = math.log(2 * math.pi)
MAX_AMOUNT = 1e290  # of amounts: larger ones count as this, for log x! of them is not finite
RuleContributions = list[list[float]]
Rule = Callable[[list[Any]], RuleContributions]


def per_column_rule(*names: str) -> Callable:
    """A rule for each column by itself: of a function of one number and the parameters of these names."""

    def of(term: Callable[..., float]) -> Callable[[dict[str, Any], int], Rule]:
        def make(part: dict[str, Any], k: int) -> Rule:
            held = [split_rows(decode_numbers(part[name]), k) for name in names]
            parameters = [list(zip(*one, strict=True)) for one in zip(*held, strict=True)]  # (feature, class)
            return lambda x: [
                [0.0] * k if value != value else [term(part, value, *some) for some in own]
                for value, own in zip(x, parameters, strict=True)
            ]

        return make

    return of


@per_column_rule("loc", "inverse", "constant")
def normal(part: Any, x: float, loc: float, inverse: float, constant: float) -> float:
    z = (x - loc) * inverse
    return constant - 0.5 * z * z  # a power that overflows would be an error


@per_column_rule("loc", "scale", "df", "constant", "exponent")
def student(part: Any, x: float, loc: float, scale: float, df: float, constant: float, exponent: float) -> float:
    z = (x - loc) / scale
    return constant - exponent * math.log1p(z * z / df)


@per_column_rule("constant", "exponent", "rate")
def lomax(part: Any, x: float, constant: float, exponent: float, rate: float) -> float:
    return -math.inf if x < 0 else constant - exponent * math.log1p(x / rate)


@per_column_rule("shape", "constant", "slope")
def negative_binomial(part: Any, x: float, shape: float, constant: float, slope: float) -> float:
    x = min(x, MAX_AMOUNT)
    return -math.inf if x < 0 else log_rising(shape, x) + constant - x * slope


@per_column_rule("no", "yes")
def threshold_rule(part: Any, x: float, no: float, yes: float) -> float:
    return yes if x > part["threshold"] else no


@per_column_rule("no", "yes")
def proportion_rule(part: Any, x: float, no: float, yes: float) -> float:
    return (x * yes if x else 0.0) + ((1 - x) * no if x != 1 else 0.0)


@per_column_rule("constant", "slope", "square")
def quadratic(part: Any, x: float, constant: float, slope: float, square: float) -> float:
    low = part.get("low", -math.inf)
    if x < low or (x == low and part.get("open")):
        return -math.inf
    return constant + (x * slope if x else 0.0) + (x * x * square if square else 0.0)


def polynomial(part: dict[str, Any], k: int) -> Rule:
    whole = {**part, "square": part.get("square", [0.0] * len(decode_numbers(part["slope"])))}
    of = quadratic(whole, k)
    if part.get("zero"):
        return lambda x: of([0.0 if one != one else min(one, MAX_AMOUNT) for one in x])
    return of if "low" not in part else lambda x: of([min(one, MAX_AMOUNT) for one in x])


def log_rule(part: dict[str, Any], k: int) -> Rule:
    of = RULES[part["of"]["rule"]](part["of"], k)

    def make(x: list[float]) -> RuleContributions:
        terms = of([math.log(one) if one > 0 else math.nan for one in x])
        return [[-math.inf] * k if one <= 0 else own for one, own in zip(x, terms, strict=True)]

    return make


def level_rule(part: dict[str, Any], k: int) -> Rule:
    table, starts = split_rows(decode_numbers(part["table"]), k), [0]
    for size in part["sizes"]:
        starts.append(starts[-1] + size + 1)
    none = [0.0] * k
    return lambda x: [none if code < 0 else table[start + code] for start, code in zip(starts, x, strict=False)]


def cell_rule(part: dict[str, Any], k: int) -> Rule:
    sizes, order = part["sizes"], part["order"]
    sets = [part["sets"][at : at + order] for at in range(0, len(part["sets"]), order)]
    starts = [0]
    for columns in sets:
        starts.append(starts[-1] + math.prod(sizes[j] for j in columns))
    odd, usual, values = (
        base64.b64decode(part["odd"]),
        split_rows(decode_numbers(part["usual"]), k),
        iter(decode_numbers(part["table"])),
    )
    of_set = [s for s, (a, b) in enumerate(pairwise(starts)) for _ in range(a, b)]
    bits = (odd[i >> 3] >> (i & 7) & 1 for i in range(k * starts[-1]))
    table = [[next(values) if next(bits) else one for one in usual[s]] for s in of_set]

    def term(x: list[int], columns: list[int], cell: int) -> list[float]:
        if any(not 0 <= x[j] < sizes[j] for j in columns):
            return [0.0] * k
        place = 0
        for j in columns:
            place = place * sizes[j] + x[j]
        return table[cell + place]

    return lambda x: [term(x, columns, start) for columns, start in zip(sets, starts, strict=False)]


def dirichlet_multinomial(part: dict[str, Any], k: int) -> Rule:
    alpha, total = split_rows(decode_numbers(part["alpha"]), k), decode_numbers(part["total"])

    def make(x: list[float]) -> RuleContributions:
        counts = [0.0 if one != one else min(one, MAX_AMOUNT) for one in x]
        length = sum(counts)
        norm = [log_rising(one, length) / length if length else 0.0 for one in total]
        return [
            [log_rising(a, n) - n * one for a, one in zip(own, norm, strict=True)]
            for own, n in zip(alpha, counts, strict=True)
        ]

    return make


def joint_rule(part: dict[str, Any], k: int) -> Rule:
    """Columns of one normal or t: what each says given those before it that are present."""
    held = decode_numbers(part["loc"])
    p = len(held) // k
    loc, factor, matrices = (
        split_rows(held, p),
        decode_numbers(part["factor"]),
        lower_triangles(decode_numbers(part["matrix"]), p),
    )
    df, rising = decode_numbers(part.get("df", [])), split_rows(decode_numbers(part.get("rising", [])), p)
    roots: dict[tuple[int, ...], list[tuple[list[float], RuleContributions]]] = {}  # by the columns that are present

    def root_of(matrix: RuleContributions, some: tuple[int, ...]) -> tuple[list[float], RuleContributions]:
        unit = [1 / math.sqrt(matrix[i][i]) for i in some]
        pairs = [[matrix[i][j] * unit[a] * unit[b] for b, j in enumerate(some[: a + 1])] for a, i in enumerate(some)]
        return unit, cholesky(pairs)

    def make(x: list[float]) -> RuleContributions:
        some = tuple(j for j in range(p) if x[j] == x[j] and not part["constant"][j])
        if some not in roots:
            roots[some] = [root_of(matrix, some) for matrix in matrices]
        out = [[0.0] * k for _ in x]
        for c in range(k):
            unit, root = roots[some][min(c, len(matrices) - 1)]
            z = solve_lower(root, [(x[j] - loc[c][j]) * one for j, one in zip(some, unit, strict=True)])
            before = df[c] if df else 0.0
            for a, j in enumerate(some):
                square = z[a] * z[a] / factor[c]
                density = -0.5 * (LOG_2PI + square)
                if before == math.inf:  # the columns before say that the row cannot be
                    density = -math.inf
                elif df:
                    density = rising[c][a] - 0.5 * math.log(math.pi * before)
                    density -= 0.5 * (df[c] + a + 1) * math.log1p(square / before)
                out[j][c] = density - math.log(root[a][a] / unit[a]) - 0.5 * math.log(factor[c])
                before += square
        return out

    return make


def discriminants(part: dict[str, Any], k: int) -> Rule:
    """Scores under normal laws of one covariance, and of one a class."""
    held, n = decode_numbers(part["means"]), decode_numbers(part["rows"])
    p = len(held) // k
    means, [root], factor = (
        split_rows(held, p),
        lower_triangles(decode_numbers(part["root"]), p),
        [one / (one + 1) for one in n],
    )
    centres, roots = (
        split_rows(decode_numbers(part.get("centres", [])), p),
        lower_triangles(decode_numbers(part.get("roots", [])), p),
    )
    peak, exponent = decode_numbers(part.get("peak", [])), decode_numbers(part.get("exponent", []))

    def make(x: list[float]) -> RuleContributions:
        z = multiply_lower(root, x)
        away = [sum((a - b) * (a - b) for a, b in zip(z, mean, strict=True)) for mean in means]
        linear = [(p * math.log(f) - f * q) / 2 / math.sqrt(p) for f, q in zip(factor, away, strict=True)]
        out = [guard_contributions(linear, n)]
        if roots:
            moved = ([a - b for a, b in zip(x, centre, strict=True)] for centre in centres)
            sizes = [sum(one * one for one in multiply_lower(own, y)) for own, y in zip(roots, moved, strict=True)]
            each_class = zip(peak, exponent, factor, sizes, strict=True)
            out.append(guard_contributions([a - e * math.log1p(f * q) / math.sqrt(p) for a, e, f, q in each_class], n))
        return out

    return make


def guard_contributions(contributions: list[float], n: list[float]) -> list[float]:
    """Terms where the next row may be unlike all rows before: once in n + 1, and then it is as a row of any class."""
    top = max(contributions)
    shares = [rows * math.exp(term - top) for term, rows in zip(contributions, n, strict=True)]
    any_class = sum(shares) / sum(n)
    return [math.log((one + any_class) / (rows + 1)) + top for one, rows in zip(shares, n, strict=True)]


def build_vocabulary(part: dict[str, Any]) -> dict[str, tuple[int, list[tuple[int, float]]]]:
    """The known terms of texts, with the cells (class, value) of each."""
    cells, at, known = list(zip(part["classes"], decode_numbers(part["value"]), strict=True)), 0, {}
    for i, (term, size) in enumerate(zip(part["terms"], part["cells"], strict=True)):
        known[term] = i, cells[at : at + size]
        at += size
    return known


def token_rule(part: dict[str, Any], k: int) -> Rule:
    """A sum over the terms of a text; each with its own weight, and less in a longer text, where terms are heard."""
    known, weigh = build_vocabulary(part), COUNT_TRANSFORMS[part["manner"]]
    names = ("shared", "unit", "common", "scale", "constant", "heard", "silent")
    shared, unit, common, scale, constant, heard, silent = (decode_numbers(part.get(name, [])) for name in names)

    def make(x: list[Any]) -> RuleContributions:
        if x[0] is None:
            return [list(silent) or [0.0] * k]
        own, met, units, commons, length, n = [0.0] * k, [0] * k, 0.0, 0.0, 0.0, 0
        for term, times in x[0].items():
            if term not in known:
                continue
            (i, cells), counts = known[term], weigh(times)
            w = counts * heard[i] if heard else counts
            for c, value in cells:
                own[c] += w * value
                met[c] += 1
            units += w * unit[i] if unit else w
            commons += counts * common[i] if common else 0.0
            length, n = length + counts, n + 1
        less = length ** -part["power"] if heard and length > 0 else 1.0
        out = [(a + b * units) * less for a, b in zip(own, shared, strict=True)]
        out = [a + b * commons for a, b in zip(out, scale or out, strict=True)] if common else out
        out = [a + b for a, b in zip(out, constant, strict=True)] if constant else out
        out = [a + b for a, b in zip(out, silent, strict=True)] if silent and not n else out
        only = part.get("only_known", [False] * k)
        return [
            [-math.inf if known_only and there < n else a for a, known_only, there in zip(out, only, met, strict=True)]
        ]

    return make


def polya_rule(part: dict[str, Any], k: int) -> Rule:
    """A term that occurred is likelier to occur again."""
    known, alpha, concentration = (
        build_vocabulary(part),
        decode_numbers(part["alpha"]),
        decode_numbers(part["concentration"]),
    )

    def make(x: list[Any]) -> RuleContributions:
        if x[0] is None:
            return [[0.0] * k]
        counts = {term: times for term, times in x[0].items() if term in known}
        length = sum(counts.values())
        out = [-log_rising(one, length) for one in concentration]
        for term, times in counts.items():
            own = {**dict(enumerate(alpha)), **dict(known[term][1])}
            out = [a + log_rising(own[c], times) for c, a in enumerate(out)]
        return [out]

    return make


RULES: dict[str, Callable[[dict[str, Any], int], Rule]] = {
    "normal": normal,
    "student": student,
    "lomax": lomax,
    "negative_binomial": negative_binomial,
    "switch": threshold_rule,
    "share": proportion_rule,
    "polynomial": polynomial,
    "log": log_rule,
    "levels": level_rule,
    "cells": cell_rule,
    "dirichlet_multinomial": dirichlet_multinomial,
    "together": joint_rule,
    "discriminants": discriminants,
    "terms": token_rule,
    "polya": polya_rule,
}
