"""The rules of the scorers as SQL: each adds the terms of a part, weighted, to the classes."""

import base64
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from candide.distributions.base import LARGEST_SCORED
from candide.errors import InputError
from candide.export.scorer.numbers import numbers, rows
from candide.export.sql.blocks import discriminants
from candide.export.sql.expressions import SMALL, added, clamped, log1p, log_rising, squared
from candide.export.sql.groups import together
from candide.export.sql.scoring import Scoring
from candide.export.sql.words import number

Part = dict[str, Any]
Term = Callable[..., str]
_ROOT = 1.34e154  # the square of a larger number is none


def weights(part: Part) -> list[float]:
    return numbers(part.get("weight", [])) or [1.0] * part["features"]


def each(*names: str, missing: float | None = None) -> Callable[[Term], Callable]:
    """A rule for each column by itself: of a function of a number and of the parameters of these names."""

    def of(term: Term) -> Callable[[Scoring, Part], None]:
        def add(scoring: Scoring, part: Part, of_number: Callable[[str], str] = lambda x: x) -> None:
            held = [rows(numbers(part[name]), scoring.k) for name in names]
            for j, (read, weight) in enumerate(zip(part["reads"], weights(part), strict=True)):
                if weight:
                    x, own = of_number(scoring.x(read)), [list(one[j]) for one in held]
                    said = [term(scoring, part, x, *some) for some in zip(*own, strict=True)]
                    scoring.add([present(x, weighted(one, weight)) for one in said])

        return add

    return of


def weighted(term: str, weight: float) -> str:
    return term if weight == 1 else f"{number(weight)} * ({term})"


def present(x: str, term: str) -> str:
    return f"COALESCE({term}, 0e0)"


def never_below(scoring: Scoring, x: str, low: float, term: str, sign: str = "<") -> str:
    """A term where it can be, of numbers from a lowest one on."""
    scoring.impossible = True
    return f"CASE WHEN {x} {sign} {number(low)} THEN {number(-math.inf)} ELSE {term} END"


@each("loc", "inverse", "constant")
def normal(scoring: Scoring, part: Part, x: str, loc: float, inverse: float, constant: float) -> str:
    scoring.impossible = True  # too far
    return f"{number(constant)} - 5e-1 * {squared(scoring.layers, f'{x} - {number(loc)}', inverse)}"


@each("loc", "scale", "df", "constant", "exponent")
def student(
    scoring: Scoring, part: Part, x: str, loc: float, scale: float, df: float, constant: float, exponent: float
) -> str:
    away, far = scoring.layers.let(f"{x} - {number(loc)}"), _ROOT * math.sqrt(min(df, 1.0))
    size = squared(scoring.layers, away, 1 / scale, far)
    term = f"{number(constant)} - {number(exponent)} * {log1p(scoring.layers, f'{size} / {number(df)}', exponent)}"
    scoring.impossible = True
    return f"CASE WHEN ABS({away}) > {number(min(far * scale, 1e300))} THEN {number(-math.inf)} ELSE {term} END"


@each("constant", "exponent", "rate")
def lomax(scoring: Scoring, part: Part, x: str, constant: float, exponent: float, rate: float) -> str:
    least = number(SMALL)  # of a negative number there may be no logarithm, and the part of a smaller one is none
    start = scoring.layers.let(f"CASE WHEN {x} >= {least} THEN {x} WHEN {x} >= 0e0 THEN 0e0 END")
    term = f"{number(constant)} - {number(exponent)} * {log1p(scoring.layers, f'{start} / {number(rate)}', exponent)}"
    return never_below(scoring, x, 0.0, term)


@each("shape", "constant", "slope")
def negative_binomial(scoring: Scoring, part: Part, x: str, shape: float, constant: float, slope: float) -> str:
    start = scoring.layers.let(f"CASE WHEN {x} >= 0e0 THEN {x} END")
    start = clamped(scoring.layers, start)
    term = f"{log_rising(scoring.layers, shape, start)} + {number(constant)} - {start} * {number(slope)}"
    return never_below(scoring, x, 0.0, term)


@each("no", "yes")
def switch(scoring: Scoring, part: Part, x: str, no: float, yes: float) -> str:
    scoring.impossible |= math.isinf(no) or math.isinf(yes)
    above = f"{x} > {number(part['threshold'])}"
    return f"CASE WHEN {above} THEN {number(yes)} WHEN {x} IS NOT NULL THEN {number(no)} END"


@each("no", "yes")
def share(scoring: Scoring, part: Part, x: str, no: float, yes: float) -> str:
    scoring.impossible |= math.isinf(no) or math.isinf(yes)
    return f"{x} * {number(yes)} + (1e0 - {x}) * {number(no)}"


@each("constant", "slope", "square")
def quadratic(scoring: Scoring, part: Part, x: str, constant: float, slope: float, square: float) -> str:
    terms = [number(constant)] if constant else []
    if math.isinf(slope):
        terms.append(f"CASE WHEN {x} = 0e0 THEN 0e0 ELSE {number(slope)} END")
    elif slope or not square:
        terms.append(f"{clamped(scoring.layers, x)} * {number(slope)}")
    if square:
        size = squared(scoring.layers, x, math.sqrt(abs(square)))
        terms.append(size if square > 0 else f"-{size}")
        scoring.impossible = True  # too far
    scoring.impossible |= math.isinf(slope) or math.isinf(constant)
    if part.get("low") is None:
        return added(terms)
    low = float(part["low"])
    return never_below(scoring, x, low, added(terms), "<=" if part.get("open") else "<")


def polynomial(scoring: Scoring, part: Part, of_number: Callable[[str], str] = lambda x: x) -> None:
    whole = {**part, "square": part.get("square", [0.0] * len(numbers(part["slope"])))}
    zero = part.get("zero")
    quadratic(scoring, whole, lambda x: scoring.layers.let(f"COALESCE({of_number(x)}, 0e0)") if zero else of_number(x))


def log(scoring: Scoring, part: Part) -> None:
    """What another rule says of the logarithm; what has none cannot be."""
    inner = {**part["of"], "reads": part["reads"], "features": part["features"]}
    if "weight" in part:
        inner["weight"] = part["weight"]
    layers = scoring.layers
    RULES[inner["rule"]](scoring, inner, lambda x: layers.let(f"CASE WHEN {x} > 0e0 THEN {layers.words.log}({x}) END"))
    scoring.impossible = True
    for read, weight in zip(part["reads"], weights(part), strict=True):
        if weight:
            x = scoring.x(read)
            scoring.add([f"CASE WHEN {x} <= 0e0 THEN {number(-math.inf)} ELSE 0e0 END"] * scoring.k)


def levels(scoring: Scoring, part: Part) -> None:
    table, start = rows(numbers(part["table"]), scoring.k), 0
    scoring.impossible |= any(math.isinf(one) for row in table for one in row)
    for read, size, weight in zip(part["reads"], part["sizes"], weights(part), strict=True):
        own, start = table[start : start + size + 1], start + size + 1
        if weight:
            lookup = scoring.lookup(read)
            codes = lookup.codes(scoring.reads[read])
            by_class = zip(*([0.0] * scoring.k if code < 0 else own[code] for code in codes), strict=True)
            scoring.add([lookup.column_of([weight * one if one else 0.0 for one in values]) for values in by_class])


def cells(scoring: Scoring, part: Part) -> None:
    """Pairs and triples: a table of constants by the codes of their columns."""
    sizes, order, k = part["sizes"], part["order"], scoring.k
    sets = [part["sets"][at : at + order] for at in range(0, len(part["sets"]), order)]
    starts = [0]
    for columns in sets:
        starts.append(starts[-1] + math.prod(sizes[j] for j in columns))
    odd, usual, values = base64.b64decode(part["odd"]), rows(numbers(part["usual"]), k), iter(numbers(part["table"]))
    bits = (odd[i >> 3] >> (i & 7) & 1 for i in range(k * starts[-1]))
    for columns, own, weight, (a, b) in zip(sets, usual, weights(part), pairwise(starts), strict=True):
        table = {at: [(next(bits), one) for one in own] for at in range(b - a)}
        held = {
            at: [weight * (next(values) if is_odd else one) for is_odd, one in row]
            for at, row in table.items()
            if any(is_odd for is_odd, _ in row)
        }
        if weight:
            place = _place(scoring, [part["reads"][j] for j in columns], [sizes[j] for j in columns])
            _add_cells(scoring, place, held, [weight * one for one in own])


def _place(scoring: Scoring, reads: list[int], sizes: list[int]) -> str:
    """The place of a cell, NULL where one of its codes is none."""
    place = ""
    for read, size in zip(reads, sizes, strict=True):
        lookup = scoring.lookup(read)
        code = lookup.codes_of(lookup.codes(scoring.reads[read]), size)
        place = f"({place}) * {size} + {code}" if place else code
    return scoring.layers.let(place)


def _add_cells(scoring: Scoring, place: str, held: dict[int, list[float]], usual: list[float]) -> None:
    scoring.impossible |= any(math.isinf(one) for row in [*held.values(), usual] for one in row)
    elsewhere = [f"CASE WHEN {place} IS NULL THEN 0e0 ELSE {number(one)} END" for one in usual]
    if not held:
        return scoring.add(elsewhere)
    table = scoring.layers.by_code(place, list(held), scoring.k)
    names = [table.numbers(values) for values in zip(*held.values(), strict=True)]
    return scoring.add([f"COALESCE({name}, {other})" for name, other in zip(names, elsewhere, strict=True)])


def dirichlet_multinomial(scoring: Scoring, part: Part) -> None:
    """Of counts; what the length says is shared out among them, so that weights have their part of it."""
    layers, alpha, total = scoring.layers, rows(numbers(part["alpha"]), scoring.k), numbers(part["total"])
    read_counts = [layers.let(f"COALESCE({scoring.x(read)}, 0e0)") for read in part["reads"]]
    most = number(LARGEST_SCORED)
    counts = [layers.let(f"CASE WHEN {n} > {most} THEN {most} ELSE {n} END") for n in read_counts]
    length, own = layers.let(added(counts)), weights(part)
    heard = layers.let(added([f"{number(w)} * {n}" for w, n in zip(own, counts, strict=True)]))
    for c in range(scoring.k):
        for n, a, w in zip(counts, alpha, own, strict=True):
            if w:
                scoring.terms[c].append(weighted(log_rising(layers, a[c], n), w))
        rising = log_rising(layers, total[c], length)
        rest = f" - {rising}" if set(own) == {1.0} else f" - {rising} * {heard} / {length}"
        scoring.terms[c].append(f"CASE WHEN {length} > 0e0 THEN 0e0{rest} ELSE 0e0 END")


def _text(scoring: Scoring, part: Part) -> None:
    column = scoring.columns[scoring.reads[part["reads"][0]]["column"]].name
    remedy = "export it to python or js, or fit it without this column"
    raise InputError("cannot be exported to SQL: it is a text, heard word by word", column=column, remedy=remedy)


RULES: dict[str, Callable] = {
    "normal": normal,
    "student": student,
    "lomax": lomax,
    "negative_binomial": negative_binomial,
    "switch": switch,
    "share": share,
    "polynomial": polynomial,
    "log": log,
    "levels": levels,
    "cells": cells,
    "dirichlet_multinomial": dirichlet_multinomial,
    "together": together,
    "discriminants": discriminants,
    "terms": _text,
    "polya": _text,
}
