"""Joint operations: distances and joint distributions of several columns, as sums of squares of sums.

A distance is z'z, z = R x, and terms linear in x. R may be any root of the same matrix: it is made triangular in an
order in which columns with many levels come first, so that later columns occur in fewer sums; what depends on one
column alone is looked up as one number.

In a joint normal or t distribution some columns may be missing, and which of them are present decides which constants
hold: a few columns have a row of constants for each case; of more columns none may be missing, and a row in which one
is has no prediction.
"""

import math
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from candide.errors import InputError
from candide.export.scorer.numbers import cholesky, decode_numbers, lower_triangles, split_rows
from candide.export.sql.expressions import guarded_exp, log1p, sum_of
from candide.export.sql.layers import Layers, format_number
from candide.export.sql.lookups import KnownLevels, ScoringQuery

_MIN_SQUARABLE, _MAX_SQUARABLE = "1e-140", "1e120"
MAX_OPTIONAL_COLUMNS = 6  # columns whose values may be missing: 2**6 patterns

Part = dict[str, Any]
Matrix = np.ndarray
_MIN_DOT_LENGTH = 16  # from this many numbers on a sum of products is a product of lists, in multiples of it
_MIN_LOG_SIMILARITY = -300.0  # a smaller similarity is 0: the square of this one does not underflow


class _Number:
    """A feature that is a number of the query, and its maximum."""

    size = 1

    def __init__(self, name: str, max_value: float):
        self.name, self.max_value = name, max_value

    def scaled(self, factor: Matrix) -> list[str]:
        return [f"{format_number(factor[0])} * {self.name}"] if factor[0] else []


class _Levels:
    """Features of levels: numbers for each row of a lookup."""

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
    if "prototypes" in part:
        features, before = _prototype_similarity(scoring, part["prototypes"], features)
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
        values[0] = 0.0  # missing
        values[np.array(about["levels"], np.intp) + 1, np.arange(len(yes))] = yes
        out.append(_Levels(lookup, values))
    return out


def _prototype_similarity(scoring: ScoringQuery, read: dict[str, Any], features: Features) -> tuple[Features, Matrix]:
    """The similarity of a row to each prototype, and the matrix that decorrelates similarities."""
    held, layers = decode_numbers(read["rows"]), scoring.layers
    typical, factor = np.array(split_rows(held, len(held) // read["n"])), -0.5 / read["length_scale"] ** 2
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
    lower = [[*between[i, :i].tolist(), 1.0 + read["ridge"]] for i in range(len(typical))]
    return out, np.linalg.inv(_lower_triangle(cholesky(lower))) * math.sqrt(read["n"])


def _distances(scoring: ScoringQuery, features: Features, root: Matrix, means: Matrix) -> list[str]:
    """|R x - mean|^2 of every class: the squares once, and the part linear in x for each class."""
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
        last = np.flatnonzero(factors).max(initial=0) + 1
        held = math.ceil(last / _MIN_DOT_LENGTH) * _MIN_DOT_LENGTH  # few different lists
        some = layers.add_value(layers.dialect.array_template.format(", ".join(names[:held])))
        return [layers.dialect.dot_template.format(some, ", ".join(map(format_number, factors[:held].tolist())))]
    terms, start = [], 0
    for one in features:
        terms += one.scaled(factors[start : start + one.size])
        start += one.size
    return terms


def _squares(scoring: ScoringQuery, features: Features, root: Matrix, constant: Matrix) -> str:
    """The sum of the squares of R x + a; what depends on the first column alone, if it has levels, is looked up."""
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


def conditional(scoring: ScoringQuery, part: Part, numbers: list[list[str]]) -> list[list[str]]:
    """The contributions of the columns given those before them, added up: one of the first column, 0 of the others."""
    columns = [scoring.columns[scoring.reads[read]["column"]].name for read in part["reads"]]
    if len(set(decode_numbers(part.get("weight", [])))) > 1:
        what = "cannot be exported to SQL: columns modelled together have weights that differ"
        raise InputError(what, column=columns, remedy="export it to python or js")
    distribution = _GroupDistribution(part, scoring.n_classes)
    x = {j: scoring.layers.add_value(numbers[j][0]) for j in range(distribution.p) if not part["constant"][j]}
    if len(x) > MAX_OPTIONAL_COLUMNS:
        scoring.complete_groups.append([columns[j] for j in x])
    group = _ColumnGroup(scoring, distribution, x)
    return [[group.term(c) for c in range(scoring.n_classes)]] + [["0e0"] * scoring.n_classes for _ in columns[1:]]


class _GroupDistribution:
    """The parameters of a joint normal or t distribution, for some of its columns."""

    def __init__(self, part: Part, k: int):
        held = decode_numbers(part["loc"])
        self.p = len(held) // k
        self.loc, self.factor = split_rows(held, self.p), decode_numbers(part["factor"])
        self.matrices = lower_triangles(decode_numbers(part["matrix"]), self.p)
        self.df = decode_numbers(part.get("df", []))
        self.log_rising = split_rows(decode_numbers(part.get("rising", [])), self.p)

    def root(self, c: int, present: Sequence[int]) -> tuple[dict[tuple[int, int], float], float]:
        """The matrix that decorrelates the columns present, by pairs of columns, and its log determinant."""
        if not present:
            return {}, 0.0
        lower = self.matrices[min(c, len(self.matrices) - 1)]
        matrix = np.array([[lower[max(i, j)][min(i, j)] for j in present] for i in present])
        unit = 1 / np.sqrt(np.diag(matrix))
        root = np.linalg.cholesky(matrix * np.outer(unit, unit))
        inverse = np.linalg.inv(root) * unit
        held = {(i, j): float(inverse[a, b]) for a, i in enumerate(present) for b, j in enumerate(present[: a + 1])}
        return held, float(np.log(unit).sum() - np.log(np.diag(root)).sum())

    def peak(self, c: int, n: int, log_root: float) -> float:
        """The log of the density of n columns at their centre."""
        whole = log_root - n / 2 * math.log(self.factor[c])
        if not self.df:
            return whole - n / 2 * math.log(2 * math.pi)
        return whole + sum(self.log_rising[c][:n]) - n / 2 * math.log(math.pi * self.df[c])


def _clamp(x: str) -> str:
    """A number whose square does not overflow in a sum."""
    cases = (
        f"WHEN ABS({x}) < {_MIN_SQUARABLE} THEN 0e0 WHEN {x} > {_MAX_SQUARABLE} THEN {_MAX_SQUARABLE} "
        f"WHEN {x} < -{_MAX_SQUARABLE} THEN -{_MAX_SQUARABLE}"
    )
    return f"CASE {cases} ELSE {x} END"


class _ColumnGroup:
    """A joint distribution, and the names of its columns in a query."""

    def __init__(self, scoring: ScoringQuery, distribution: _GroupDistribution, x: dict[int, str]):
        self.layers, self.distribution, self.x = scoring.layers, distribution, x
        self.allows_missing = len(x) <= MAX_OPTIONAL_COLUMNS
        self.presence_patterns = [list(x)]
        if self.allows_missing:
            self.presence_patterns = [
                list(compress(x, [way >> a & 1 for a in range(len(x))])) for way in range(1 << len(x))
            ]
            code = sum_of([f"CASE WHEN {one} IS NULL THEN 0 ELSE {1 << a} END" for a, one in enumerate(x.values())])
            self._table = self.layers.join_by_code(self.layers.add_value(code), range(len(self.presence_patterns)))

    def _constant_by_presence(self, values: Sequence[float]) -> str:
        """A constant that depends on which columns are present."""
        return self._table.numbers(values) if self.allows_missing else format_number(values[0])

    def term(self, c: int) -> str:
        law, let = self.distribution, self.layers.add_value
        roots = [law.root(c, way) for way in self.presence_patterns]
        away = {j: f"{one} - {format_number(law.loc[c][j])}" for j, one in self.x.items()}
        away = {j: let(f"COALESCE({one}, 0e0)" if self.allows_missing else one) for j, one in away.items()}
        away = {j: let(_clamp(one)) for j, one in away.items()}
        squares = []
        for i in self.x:
            factors = {
                j: self._constant_by_presence([root.get((i, j), 0.0) for root, _ in roots]) for j in self.x if j <= i
            }
            z = let(sum_of([f"{factor} * {away[j]}" for j, factor in factors.items()]))
            squares.append(f"{z} * {z}")
        size = let(f"({sum_of(squares)}) / {format_number(law.factor[c])}")
        peak = self._constant_by_presence(
            [law.peak(c, len(way), log) for way, (_, log) in zip(self.presence_patterns, roots, strict=True)]
        )
        if not law.df:
            return f"{peak} - 5e-1 * {size}"
        exponent = self._constant_by_presence([(law.df[c] + len(way)) / 2 for way in self.presence_patterns])
        return f"{peak} - {exponent} * {log1p(self.layers, f'{size} / {format_number(law.df[c])}', law.df[c] + law.p)}"
