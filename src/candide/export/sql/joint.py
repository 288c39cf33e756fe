"""Joint operations: distances and joint distributions of several columns, as sums of squares of sums.

A distance is z'z, z = R x, and terms linear in x. R may be any root of the same matrix: it is made triangular in an
order in which columns with many levels come first, so that later columns occur in fewer sums; what depends on one
column alone is looked up as one number.

In a joint normal or t distribution the constants depend on which columns are present. A few columns have a row of
constants for each case; a row in which one of more columns is missing has no prediction.
"""

import math
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from candide.errors import InputError
from candide.export.python_js.numbers import cholesky, decode_numbers, lower_triangles, split_rows
from candide.export.sql.layers import Layers, format_number, guarded_exp, log1p, sum_of
from candide.export.sql.lookups import KnownLevels, ScoringQuery

_CLAMP = (  # a number whose square does not overflow in a sum
    "CASE WHEN ABS({}) < 1e-140 THEN 0e0 WHEN {} > 1e120 THEN 1e120 WHEN {} < -1e120 THEN -1e120 ELSE {} END"
)
MAX_OPTIONAL_COLUMNS = 6  # columns whose values may be missing: 2**6 patterns
_MIN_DOT_LENGTH = 16  # from this many numbers on a sum of products is a product of lists, in multiples of it
_MIN_LOG_SIMILARITY = -300.0  # a smaller similarity is 0: the square of this one does not underflow

Part = dict[str, Any]
Matrix = np.ndarray


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
        return [self.lookup.column_of((self.values @ factor).tolist())] if factor.any() else []


Features = list[_Number | _Levels]


def distance(scoring: ScoringQuery, part: Part, name: str) -> list[list[str]]:
    """|R x - mean|^2 of each class."""
    means = np.array(decode_numbers(part[f"{name}_means"])).reshape(scoring.n_classes, -1)
    triangles = lower_triangles(decode_numbers(part[f"{name}_roots"]), means.shape[1])
    before, features = np.eye(means.shape[1]), list[_Number | _Levels]()
    for at in part["reads"]:
        read = scoring.reads[at]
        if read["read"] == "score":
            features.append(_Number(scoring.score(at), max(map(abs, scoring.scores[read["scores"]]))))
            continue
        lookup = scoring.find_lookup(at)
        assert isinstance(lookup, KnownLevels)
        yes, no = np.array(decode_numbers(read["yes"])), np.array(decode_numbers(read["no"]))
        values = np.tile(no, (lookup.n + 1, 1))
        values[0] = 0.0  # missing
        values[np.array(read["levels"], np.intp) + 1, np.arange(len(yes))] = yes
        features.append(_Levels(lookup, values))
    if "prototypes" in part:
        features, before = _prototype_similarity(scoring, part["prototypes"], features)
    roots = [_lower_triangle(triangle) @ before for triangle in triangles]
    if len(roots) == 1:
        return [_distances(scoring, features, roots[0], means)]
    pairs = zip(roots, means, strict=True)
    return [[scoring.layers.add_value(_squares(scoring.layers, features, root, -mean)) for root, mean in pairs]]


def _prototype_similarity(scoring: ScoringQuery, read: dict[str, Any], features: Features) -> tuple[Features, Matrix]:
    """The similarity of a row to each prototype, and the matrix that decorrelates similarities."""
    layers, factor = scoring.layers, -0.5 / read["length_scale"] ** 2
    prototypes = np.array(decode_numbers(read["rows"])).reshape(read["n"], -1)
    numbers = [feature for feature in features if isinstance(feature, _Number)]
    square = layers.add_value(sum_of([f"{x.name} * {x.name}" for x in numbers]))
    max_values = np.array([x.max_value for x in numbers])
    out: Features = []
    for row in prototypes:
        pairs = zip(features, row, strict=True)
        products = [term for feature, y in pairs for term in feature.scaled(np.array([-2 * factor * y]))]
        constants = [f"{format_number(factor)} * {square}", format_number(factor * float(row @ row))]
        power = layers.add_value(sum_of([*constants, *products]))
        least = factor * float(((np.abs(row) + max_values) ** 2).sum())
        similarity = f"EXP({power})" if least > _MIN_LOG_SIMILARITY else guarded_exp(power, _MIN_LOG_SIMILARITY)
        out.append(_Number(layers.add_value(similarity), 1.0))
    between = np.exp(factor * ((prototypes[:, None] - prototypes[None]) ** 2).sum(axis=2))
    lower = [[*between[i, :i].tolist(), 1.0 + read["ridge"]] for i in range(len(prototypes))]
    return out, np.linalg.inv(_lower_triangle(cholesky(lower))) * math.sqrt(read["n"])


def _distances(scoring: ScoringQuery, features: Features, root: Matrix, means: Matrix) -> list[str]:
    """|R x - mean|^2 of every class: the squares once, and the part linear in x for each class."""
    order = sorted(range(len(features)), key=lambda i: (isinstance(features[i], _Number), -features[i].size))
    starts = np.concatenate([[0], np.cumsum([feature.size for feature in features])])
    at = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in order])
    features, layers = [features[i] for i in order], scoring.layers
    lower: Matrix = np.linalg.qr(root[:, at[::-1]]).R[::-1, ::-1]  # R x = Q L x, which has the length of L x
    squares = layers.add_value(_squares(layers, features, lower, np.zeros(len(at))))
    out = []
    for factors, mean in zip(-2 * means @ root[:, at], means, strict=True):
        terms = [squares, format_number(float(mean @ mean)), *_linear(layers, features, factors)]
        out.append(layers.add_value(sum_of(terms)))
    return out


def _linear(layers: Layers, features: Features, factors: Matrix) -> list[str]:
    names = [feature.name for feature in features if isinstance(feature, _Number)]
    if layers.dialect.dot_template and len(names) == len(features) >= _MIN_DOT_LENGTH:
        last = np.flatnonzero(factors).max(initial=0) + 1
        n = math.ceil(last / _MIN_DOT_LENGTH) * _MIN_DOT_LENGTH  # few different lists
        array = layers.add_value(layers.dialect.array_template.format(", ".join(names[:n])))
        return [layers.dialect.dot_template.format(array, ", ".join(map(format_number, factors[:n].tolist())))]
    stops = np.cumsum([feature.size for feature in features])
    pairs = zip(features, stops, strict=True)
    return [term for feature, stop in pairs for term in feature.scaled(factors[stop - feature.size : stop])]


def _squares(layers: Layers, features: Features, root: Matrix, constant: Matrix) -> str:
    """The sum of the squares of R x + a; what depends on the first column alone, if it has levels, is looked up."""
    terms, first, start = [], features[0], 0
    if isinstance(first, _Levels) and not constant.any():
        rest = root[:, first.size :]
        start = int(rest.any(axis=1).argmax()) if rest.any() else len(root)
        sums = ((first.values @ root[:start, : first.size].T) ** 2).sum(axis=1)
        terms.append(first.lookup.column_of(sums.tolist()))
    for row, shift in zip(root[start:], constant[start:], strict=True):
        z = layers.add_value(sum_of([format_number(shift)] * bool(shift) + _linear(layers, features, row)))
        terms.append(f"{z} * {z}")
    return sum_of(terms)


def _lower_triangle(triangle: Sequence[Sequence[float]]) -> Matrix:
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
    k, varies = scoring.n_classes, [j for j, is_constant in enumerate(part["constant"]) if not is_constant]
    x = {j: scoring.layers.add_value(numbers[j][0]) for j in varies}
    if len(x) > MAX_OPTIONAL_COLUMNS:
        scoring.complete_groups.append([columns[j] for j in x])
    group = _ColumnGroup(scoring.layers, part, k, x)
    return [[group.term(c) for c in range(k)]] + [["0e0"] * k for _ in columns[1:]]


class _ColumnGroup:
    """A joint normal or t distribution, for any subset of its columns, and their names in a query."""

    def __init__(self, layers: Layers, part: Part, k: int, x: dict[int, str]):
        loc = decode_numbers(part["loc"])
        self.p = len(loc) // k
        self.loc, self.factor = split_rows(loc, self.p), decode_numbers(part["factor"])
        self.matrices = lower_triangles(decode_numbers(part["matrix"]), self.p)
        self.df = decode_numbers(part.get("df", []))
        self.log_rising = split_rows(decode_numbers(part.get("rising", [])), self.p)
        self.layers, self.x, self.allows_missing = layers, x, len(x) <= MAX_OPTIONAL_COLUMNS
        self.patterns = [list(x)]  # the columns present
        if self.allows_missing:
            self.patterns = [list(compress(x, [code >> a & 1 for a in range(len(x))])) for code in range(1 << len(x))]
            code = sum_of([f"CASE WHEN {name} IS NULL THEN 0 ELSE {1 << a} END" for a, name in enumerate(x.values())])
            self._table = layers.join_by_code(layers.add_value(code), range(len(self.patterns)))

    def root(self, c: int, present: Sequence[int]) -> tuple[dict[tuple[int, int], float], float]:
        """The matrix that decorrelates the columns present, by pairs of columns, and its log determinant."""
        if not present:
            return {}, 0.0
        lower = self.matrices[min(c, len(self.matrices) - 1)]
        matrix = np.array([[lower[max(i, j)][min(i, j)] for j in present] for i in present])
        unit = 1 / np.sqrt(np.diag(matrix))
        root = np.linalg.cholesky(matrix * np.outer(unit, unit))
        inverse = np.linalg.inv(root) * unit
        pairs = {(i, j): float(inverse[a, b]) for a, i in enumerate(present) for b, j in enumerate(present[: a + 1])}
        return pairs, float(np.log(unit).sum() - np.log(np.diag(root)).sum())

    def peak(self, c: int, n: int, log_root: float) -> float:
        """The log of the density of n columns at their centre."""
        whole = log_root - n / 2 * math.log(self.factor[c])
        if not self.df:
            return whole - n / 2 * math.log(2 * math.pi)
        return whole + sum(self.log_rising[c][:n]) - n / 2 * math.log(math.pi * self.df[c])

    def _constant(self, values: Sequence[float]) -> str:
        """A constant that depends on which columns are present."""
        return self._table.numbers(values) if self.allows_missing else format_number(values[0])

    def term(self, c: int) -> str:
        add, roots = self.layers.add_value, [self.root(c, pattern) for pattern in self.patterns]
        deviations = {j: f"{name} - {format_number(self.loc[c][j])}" for j, name in self.x.items()}
        deviations = {j: add(f"COALESCE({d}, 0e0)" if self.allows_missing else d) for j, d in deviations.items()}
        deviations = {j: add(_CLAMP.replace("{}", name)) for j, name in deviations.items()}
        squares = []
        for i in self.x:
            factors = {j: self._constant([root.get((i, j), 0.0) for root, _ in roots]) for j in self.x if j <= i}
            z = add(sum_of([f"{factor} * {deviations[j]}" for j, factor in factors.items()]))
            squares.append(f"{z} * {z}")
        size = add(f"({sum_of(squares)}) / {format_number(self.factor[c])}")
        pairs = zip(self.patterns, roots, strict=True)
        peak = self._constant([self.peak(c, len(pattern), log) for pattern, (_, log) in pairs])
        if not self.df:
            return f"{peak} - 5e-1 * {size}"
        df = self.df[c]
        exponent = self._constant([(df + len(pattern)) / 2 for pattern in self.patterns])
        return f"{peak} - {exponent} * {log1p(self.layers, f'{size} / {format_number(df)}', df + self.p)}"
