"""The rules of the scorers as SQL: each adds the terms of a part, weighted, to the classes."""

import base64
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from candide.distributions.base import MAX_SCORED_VALUE
from candide.errors import InputError
from candide.export.scorer.numbers import decode_numbers, split_rows
from candide.export.sql.blocks import add_discriminants
from candide.export.sql.expressions import MIN_POSITIVE, clamp, log1p, log_rising, square_of, sum_of
from candide.export.sql.groups import add_joint_rule
from candide.export.sql.layers import format_number
from candide.export.sql.scoring import ScoringQuery

Part = dict[str, Any]
TermFunction = Callable[..., str]
_MAX_SQUARABLE = 1.34e154  # the square of a larger number is none


def feature_weights(part: Part) -> list[float]:
    return decode_numbers(part.get("weight", [])) or [1.0] * part["features"]


def per_column_rule(*names: str, missing: float | None = None) -> Callable[[TermFunction], Callable]:
    """A rule for each column by itself: of a function of a number and of the parameters of these names."""

    def of(term: TermFunction) -> Callable[[ScoringQuery, Part], None]:
        def add(scoring: ScoringQuery, part: Part, of_number: Callable[[str], str] = lambda x: x) -> None:
            held = [split_rows(decode_numbers(part[name]), scoring.n_classes) for name in names]
            for j, (read, weight) in enumerate(zip(part["reads"], feature_weights(part), strict=True)):
                if weight:
                    x, own = of_number(scoring.number(read)), [list(one[j]) for one in held]
                    said = [term(scoring, part, x, *some) for some in zip(*own, strict=True)]
                    scoring.add_terms([zero_if_missing(x, weight_term(one, weight)) for one in said])

        return add

    return of


def weight_term(term: str, weight: float) -> str:
    return term if weight == 1 else f"{format_number(weight)} * ({term})"


def zero_if_missing(x: str, term: str) -> str:
    return f"COALESCE({term}, 0e0)"


def bound_below(scoring: ScoringQuery, x: str, low: float, term: str, sign: str = "<") -> str:
    """A term where it can be, of numbers from a lowest one on."""
    scoring.has_impossible = True
    return f"CASE WHEN {x} {sign} {format_number(low)} THEN {format_number(-math.inf)} ELSE {term} END"


@per_column_rule("loc", "inverse", "constant")
def normal(scoring: ScoringQuery, part: Part, x: str, loc: float, inverse: float, constant: float) -> str:
    scoring.has_impossible = True  # too far
    return f"{format_number(constant)} - 5e-1 * {square_of(scoring.layers, f'{x} - {format_number(loc)}', inverse)}"


@per_column_rule("loc", "scale", "df", "constant", "exponent")
def student(
    scoring: ScoringQuery, part: Part, x: str, loc: float, scale: float, df: float, constant: float, exponent: float
) -> str:
    away, far = scoring.layers.add_value(f"{x} - {format_number(loc)}"), _MAX_SQUARABLE * math.sqrt(min(df, 1.0))
    size = square_of(scoring.layers, away, 1 / scale, far)
    term = f"{format_number(constant)} - {format_number(exponent)} * {log1p(scoring.layers, f'{size} / {format_number(df)}', exponent)}"
    scoring.has_impossible = True
    return f"CASE WHEN ABS({away}) > {format_number(min(far * scale, 1e300))} THEN {format_number(-math.inf)} ELSE {term} END"


@per_column_rule("constant", "exponent", "rate")
def lomax(scoring: ScoringQuery, part: Part, x: str, constant: float, exponent: float, rate: float) -> str:
    least = format_number(
        MIN_POSITIVE
    )  # of a negative number there may be no logarithm, and the part of a smaller one is none
    start = scoring.layers.add_value(f"CASE WHEN {x} >= {least} THEN {x} WHEN {x} >= 0e0 THEN 0e0 END")
    term = f"{format_number(constant)} - {format_number(exponent)} * {log1p(scoring.layers, f'{start} / {format_number(rate)}', exponent)}"
    return bound_below(scoring, x, 0.0, term)


@per_column_rule("shape", "constant", "slope")
def negative_binomial(scoring: ScoringQuery, part: Part, x: str, shape: float, constant: float, slope: float) -> str:
    start = scoring.layers.add_value(f"CASE WHEN {x} >= 0e0 THEN {x} END")
    start = clamp(scoring.layers, start)
    term = f"{log_rising(scoring.layers, shape, start)} + {format_number(constant)} - {start} * {format_number(slope)}"
    return bound_below(scoring, x, 0.0, term)


@per_column_rule("no", "yes")
def threshold_rule(scoring: ScoringQuery, part: Part, x: str, no: float, yes: float) -> str:
    scoring.has_impossible |= math.isinf(no) or math.isinf(yes)
    above = f"{x} > {format_number(part['threshold'])}"
    return f"CASE WHEN {above} THEN {format_number(yes)} WHEN {x} IS NOT NULL THEN {format_number(no)} END"


@per_column_rule("no", "yes")
def proportion_rule(scoring: ScoringQuery, part: Part, x: str, no: float, yes: float) -> str:
    scoring.has_impossible |= math.isinf(no) or math.isinf(yes)
    return f"{x} * {format_number(yes)} + (1e0 - {x}) * {format_number(no)}"


@per_column_rule("constant", "slope", "square")
def quadratic(scoring: ScoringQuery, part: Part, x: str, constant: float, slope: float, square: float) -> str:
    terms = [format_number(constant)] if constant else []
    if math.isinf(slope):
        terms.append(f"CASE WHEN {x} = 0e0 THEN 0e0 ELSE {format_number(slope)} END")
    elif slope or not square:
        terms.append(f"{clamp(scoring.layers, x)} * {format_number(slope)}")
    if square:
        size = square_of(scoring.layers, x, math.sqrt(abs(square)))
        terms.append(size if square > 0 else f"-{size}")
        scoring.has_impossible = True  # too far
    scoring.has_impossible |= math.isinf(slope) or math.isinf(constant)
    if part.get("low") is None:
        return sum_of(terms)
    low = float(part["low"])
    return bound_below(scoring, x, low, sum_of(terms), "<=" if part.get("open") else "<")


def polynomial(scoring: ScoringQuery, part: Part, of_number: Callable[[str], str] = lambda x: x) -> None:
    whole = {**part, "square": part.get("square", [0.0] * len(decode_numbers(part["slope"])))}
    zero = part.get("zero")
    quadratic(
        scoring, whole, lambda x: scoring.layers.add_value(f"COALESCE({of_number(x)}, 0e0)") if zero else of_number(x)
    )


def log_rule(scoring: ScoringQuery, part: Part) -> None:
    """What another rule says of the logarithm; what has none cannot be."""
    inner = {**part["of"], "reads": part["reads"], "features": part["features"]}
    if "weight" in part:
        inner["weight"] = part["weight"]
    layers = scoring.layers
    RULES[inner["rule"]](
        scoring, inner, lambda x: layers.add_value(f"CASE WHEN {x} > 0e0 THEN {layers.dialect.log_function}({x}) END")
    )
    scoring.has_impossible = True
    for read, weight in zip(part["reads"], feature_weights(part), strict=True):
        if weight:
            x = scoring.number(read)
            scoring.add_terms(
                [f"CASE WHEN {x} <= 0e0 THEN {format_number(-math.inf)} ELSE 0e0 END"] * scoring.n_classes
            )


def level_rule(scoring: ScoringQuery, part: Part) -> None:
    table, start = split_rows(decode_numbers(part["table"]), scoring.n_classes), 0
    scoring.has_impossible |= any(math.isinf(one) for row in table for one in row)
    for read, size, weight in zip(part["reads"], part["sizes"], feature_weights(part), strict=True):
        own, start = table[start : start + size + 1], start + size + 1
        if weight:
            lookup = scoring.find_lookup(read)
            codes = lookup.codes(scoring.reads[read])
            by_class = zip(*([0.0] * scoring.n_classes if code < 0 else own[code] for code in codes), strict=True)
            scoring.add_terms(
                [lookup.column_of([weight * one if one else 0.0 for one in values]) for values in by_class]
            )


def cell_rule(scoring: ScoringQuery, part: Part) -> None:
    """Pairs and triples: a table of constants by the codes of their columns."""
    sizes, order, k = part["sizes"], part["order"], scoring.n_classes
    sets = [part["sets"][at : at + order] for at in range(0, len(part["sets"]), order)]
    starts = [0]
    for columns in sets:
        starts.append(starts[-1] + math.prod(sizes[j] for j in columns))
    odd, usual, values = (
        base64.b64decode(part["odd"]),
        split_rows(decode_numbers(part["usual"]), k),
        iter(decode_numbers(part["table"])),
    )
    bits = (odd[i >> 3] >> (i & 7) & 1 for i in range(k * starts[-1]))
    for columns, own, weight, (a, b) in zip(sets, usual, feature_weights(part), pairwise(starts), strict=True):
        table = {at: [(next(bits), one) for one in own] for at in range(b - a)}
        held = {
            at: [weight * (next(values) if is_odd else one) for is_odd, one in row]
            for at, row in table.items()
            if any(is_odd for is_odd, _ in row)
        }
        if weight:
            place = _cell_index(scoring, [part["reads"][j] for j in columns], [sizes[j] for j in columns])
            _add_cells(scoring, place, held, [weight * one for one in own])


def _cell_index(scoring: ScoringQuery, reads: list[int], sizes: list[int]) -> str:
    """The place of a cell, NULL where one of its codes is none."""
    place = ""
    for read, size in zip(reads, sizes, strict=True):
        lookup = scoring.find_lookup(read)
        code = lookup.codes_of(lookup.codes(scoring.reads[read]), size)
        place = f"({place}) * {size} + {code}" if place else code
    return scoring.layers.add_value(place)


def _add_cells(scoring: ScoringQuery, place: str, contributions: dict[int, list[float]], default: list[float]) -> None:
    scoring.has_impossible |= any(math.isinf(one) for row in [*contributions.values(), default] for one in row)
    elsewhere = [f"CASE WHEN {place} IS NULL THEN 0e0 ELSE {format_number(one)} END" for one in default]
    if not contributions:
        return scoring.add_terms(elsewhere)
    table = scoring.layers.join_by_code(place, list(contributions), scoring.n_classes)
    names = [table.numbers(values) for values in zip(*contributions.values(), strict=True)]
    return scoring.add_terms([f"COALESCE({name}, {other})" for name, other in zip(names, elsewhere, strict=True)])


def dirichlet_multinomial(scoring: ScoringQuery, part: Part) -> None:
    """Of counts; what the length says is shared out among them, so that weights have their part of it."""
    layers, alpha, total = (
        scoring.layers,
        split_rows(decode_numbers(part["alpha"]), scoring.n_classes),
        decode_numbers(part["total"]),
    )
    read_counts = [layers.add_value(f"COALESCE({scoring.number(read)}, 0e0)") for read in part["reads"]]
    most = format_number(MAX_SCORED_VALUE)
    counts = [layers.add_value(f"CASE WHEN {n} > {most} THEN {most} ELSE {n} END") for n in read_counts]
    length, own = layers.add_value(sum_of(counts)), feature_weights(part)
    heard = layers.add_value(sum_of([f"{format_number(w)} * {n}" for w, n in zip(own, counts, strict=True)]))
    for c in range(scoring.n_classes):
        for n, a, w in zip(counts, alpha, own, strict=True):
            if w:
                scoring.class_terms[c].append(weight_term(log_rising(layers, a[c], n), w))
        rising = log_rising(layers, total[c], length)
        rest = f" - {rising}" if set(own) == {1.0} else f" - {rising} * {heard} / {length}"
        scoring.class_terms[c].append(f"CASE WHEN {length} > 0e0 THEN 0e0{rest} ELSE 0e0 END")


def _refuse_text(scoring: ScoringQuery, part: Part) -> None:
    column = scoring.columns[scoring.reads[part["reads"][0]]["column"]].name
    remedy = "export it to python or js, or fit it without this column"
    raise InputError("cannot be exported to SQL: it is a text, heard word by word", column=column, remedy=remedy)


RULES: dict[str, Callable] = {
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
    "together": add_joint_rule,
    "discriminants": add_discriminants,
    "terms": _refuse_text,
    "polya": _refuse_text,
}
