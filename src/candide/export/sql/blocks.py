"""Blocks: laws of several columns at once as sums of squares of sums.

A discriminant is a sum of squares z'z, z = T x, and terms linear in x. T may be any root of the same matrix: it is made
triangular in an order in which columns with many levels come first, so that the later a column the fewer the sums it
stands in; what depends on one column alone is looked up as one number.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from candide.export.scorer.numbers import cholesky, decode_numbers, lower_triangles, split_rows
from candide.export.sql.expressions import guarded_exp, sum_of
from candide.export.sql.layers import Layers, format_number
from candide.export.sql.lookups import KnownLevels
from candide.export.sql.scoring import ScoringQuery

Part = dict[str, Any]
Matrix = np.ndarray
_MIN_DOT_LENGTH = 16  # numbers from which on a sum of products is a product of lists, in steps of as many
_MIN_LOG_SIMILARITY = -300.0  # what is as unlike as that is not like at all: its square is still a number


class _Number:
    """A feature that is a number of the query, and how large it can be."""

    size = 1

    def __init__(self, name: str, max_value: float):
        self.name, self.max_value = name, max_value

    def scaled(self, factor: Matrix) -> list[str]:
        return [f"{format_number(factor[0])} * {self.name}"] if factor[0] else []


class _Levels:
    """Features that a level has: numbers for each row of a lookup."""

    def __init__(self, lookup: KnownLevels, values: Matrix):
        self.lookup, self.values, self.size = lookup, values, values.shape[1]  # (row, feature)

    def scaled(self, factor: Matrix) -> list[str]:
        return [self.column_of(self.values @ factor)] if factor.any() else []

    def column_of(self, values: Matrix) -> str:
        return self.lookup.column_of(values.tolist())


Features = list[_Number | _Levels]


def distance(scoring: ScoringQuery, part: Part, name: str) -> list[list[str]]:
    """|R x - mean|^2 of each class."""
    means = np.array(decode_numbers(part[f"{name}_means"])).reshape(scoring.n_classes, -1)
    triangles = lower_triangles(decode_numbers(part[f"{name}_roots"]), means.shape[1])
    features, before = _features(scoring, part), np.eye(means.shape[1])
    if "together" in part:
        features, before = _prototype_similarity(scoring, part["together"], features)
    roots = [_lower_triangle(triangle) @ before for triangle in triangles]
    if len(roots) == 1:
        return [_distances(scoring, features, roots[0], means)]
    each = zip(roots, means, strict=True)
    return [[scoring.layers.add_value(_squares(scoring, features, root, -mean)) for root, mean in each]]


def _features(scoring: ScoringQuery, part: Part) -> Features:
    out: Features = []
    for read in part["reads"]:
        about = scoring.reads[read]
        if about["read"] == "score":
            most = max(map(abs, scoring.scores[about["scores"]]))
            out.append(_Number(scoring.score(read), most))
            continue
        lookup = scoring.find_lookup(read)
        assert isinstance(lookup, KnownLevels)
        yes, no = np.array(decode_numbers(about["yes"])), np.array(decode_numbers(about["no"]))
        values = np.tile(no, (lookup.n + 1, 1))
        values[0] = 0.0  # of no value
        values[np.array(about["levels"], np.intp) + 1, np.arange(len(yes))] = yes
        out.append(_Levels(lookup, values))
    return out


def _prototype_similarity(scoring: ScoringQuery, read: dict[str, Any], features: Features) -> tuple[Features, Matrix]:
    """How like a row is to each of some typical ones, and what makes that unrelated."""
    held, layers = decode_numbers(read["rows"]), scoring.layers
    typical, factor = np.array(split_rows(held, len(held) // read["n"])), -0.5 / read["reach"] ** 2
    square = layers.add_value(sum_of([f"{one.name} * {one.name}" for one in features if isinstance(one, _Number)]))
    most = np.array([one.max_value for one in features if isinstance(one, _Number)])
    out: Features = []
    for row in typical:
        near = [term for one, y in zip(features, row, strict=True) for term in one.scaled(np.array([-2 * factor * y]))]
        power = layers.add_value(
            sum_of([f"{format_number(factor)} * {square}", format_number(factor * float(row @ row)), *near])
        )
        least = factor * float(((np.abs(row) + most) ** 2).sum())
        spelled = f"EXP({power})" if least > _MIN_LOG_SIMILARITY else guarded_exp(power, _MIN_LOG_SIMILARITY)
        out.append(_Number(layers.add_value(spelled), 1.0))
    between = np.exp(factor * ((typical[:, None] - typical[None]) ** 2).sum(axis=2))
    lower = [[*between[i, :i].tolist(), 1.0 + read["blur"]] for i in range(len(typical))]
    return out, np.linalg.inv(_lower_triangle(cholesky(lower))) * math.sqrt(read["n"])


def _distances(scoring: ScoringQuery, features: Features, root: Matrix, means: Matrix) -> list[str]:
    """|T x - m|^2 of the mean of every class: the squares once, and for each class what is linear in x."""
    order = sorted(range(len(features)), key=lambda i: (isinstance(features[i], _Number), -features[i].size))
    starts = np.concatenate([[0], np.cumsum([one.size for one in features])])
    at = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in order])
    sorted_features = [features[i] for i in order]
    p = len(at)
    lower: Matrix = np.linalg.qr(root[:, at[::-1]]).R[::-1, ::-1]  # R x = Q L x, which has the length of L x
    squares = scoring.layers.add_value(_squares(scoring, sorted_features, lower, np.zeros(p)))
    linear = -2 * means @ root[:, at]
    out = []
    for own, mean in zip(linear, means, strict=True):
        terms = _linear(scoring.layers, sorted_features, own)
        out.append(scoring.layers.add_value(sum_of([squares, format_number(float(mean @ mean)), *terms])))
    return out


def _linear(layers: Layers, features: Features, factors: Matrix) -> list[str]:
    names = [one.name for one in features if isinstance(one, _Number)]
    if layers.dialect.dot_template and len(names) == len(features) >= _MIN_DOT_LENGTH:
        held = (
            math.ceil((np.flatnonzero(factors).max(initial=0) + 1) / _MIN_DOT_LENGTH) * _MIN_DOT_LENGTH
        )  # few lists for all rows
        some = layers.add_value(layers.dialect.array_template.format(", ".join(names[:held])))
        return [layers.dialect.dot_template.format(some, ", ".join(map(format_number, factors[:held].tolist())))]
    terms, start = [], 0
    for one in features:
        terms += one.scaled(factors[start : start + one.size])
        start += one.size
    return terms


def _squares(scoring: ScoringQuery, features: Features, root: Matrix, constant: Matrix) -> str:
    """The sum of the squares of T x + a; what depends on the first column, one of levels, alone is looked up."""
    terms, first, rest = [], features[0], root[:, features[0].size :]
    start = 0
    if isinstance(first, _Levels) and not constant.any():
        start = int(rest.any(axis=1).argmax()) if rest.any() else len(root)
        terms.append(first.column_of(((first.values @ root[:start, : first.size].T) ** 2).sum(axis=1)))
    for row, shift in zip(root[start:], constant[start:], strict=True):
        z = scoring.layers.add_value(
            sum_of([format_number(shift)] * bool(shift) + _linear(scoring.layers, features, row))
        )
        terms.append(f"{z} * {z}")
    return sum_of(terms)


def _lower_triangle(triangle: Sequence[Sequence[float]]) -> Matrix:
    """A lower triangle as a matrix."""
    out = np.zeros((len(triangle), len(triangle)))
    for i, row in enumerate(triangle):
        out[i, : len(row)] = row
    return out
