"""Columns modelled together: the multivariate normal, and its posterior predictive, the multivariate t.

Each class has a mean and a covariance matrix, or one matrix is shared by all classes. The t has the heavier tails, the
fewer the rows.

A row is whitened by the inverse of the Cholesky root of the matrix: z = L^-1 (x - mean) has independent parts, so that
log p(x) is a sum over them, and part j is what column j adds given the columns before it. Of a row with absent values
the marginal distribution of those present is taken, exactly; rows are grouped by which values they have.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels, numerics
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import FLAGS, POSITIVE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, Names, Rows, to_dense_floats
from candide.distributions.mahalanobis import CholeskyRoot, DistanceScreen, SingularError
from candide.distributions.score_expression import Expression, joint
from candide.errors import InputError

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm

LOG_2PI = float(np.log(2 * np.pi))
_CHUNK_VALUES = 1 << 21  # values whitened at a time
_MIN_SCREENED_COLUMNS = 64  # from so many columns on bounds cost less than distances
_MIN_CONSTANT_LOG_PROB = -1e9  # log p of what does not vary, at least
_MIN_LEAD = 1e-9  # by which the largest must lead, of its own size: more than double precision loses
_MAX_CORRELATED_COLUMNS = 8  # columns whose correlations are described
_LINEAR_REMEDY = "use Gaussian(covariance='tied') with estimate='mean', 'map' or 'mle' for a linear score"


class Elliptical(Distribution):
    """Shared by both: a centre and a matrix a class, or one matrix for all of them.

    A ``constant`` column does not vary: it has one normal distribution, the same in all classes, beside the others.
    """

    min_batch_rows: ClassVar[int] = 512
    is_on_real_line: ClassVar[bool] = True
    is_blas_bound: ClassVar[bool] = True
    loc: Floats  # (class, feature)
    factor: Any  # (class) by which the matrix is multiplied; None: 1
    constant: Any  # (feature) whether a column does not vary; None: all vary
    _matrix_name: ClassVar[str]  # of the field that holds the matrices
    _class_fields: ClassVar[tuple[str, ...]] = ()  # fields with a positive number for each class
    _shaped_like: ClassVar[str] = "loc"

    def __post_init__(self) -> None:
        defaults = {"factor": np.ones(len(self.loc)), "constant": np.zeros(self.loc.shape[1], bool)}
        for name, default in defaults.items():
            if vars(self).get(name, default) is None:
                vars(self)[name] = default

    @property
    def _matrix(self) -> Floats:
        """(class or 1, feature, feature)"""
        return getattr(self, self._matrix_name)

    @property
    def _n_varying(self) -> int:
        return self.n_features - int(self.constant.sum())

    @cached_property
    def roots(self) -> list[CholeskyRoot]:
        """One for every matrix, of the columns that vary; raise a SingularError where there is none."""
        varying, roots = np.flatnonzero(~self.constant), list[CholeskyRoot]()
        for matrix in self._matrix:
            try:
                roots.append(CholeskyRoot.from_matrix(matrix, varying))
            except SingularError as error:
                raise SingularError(error.feature, len(roots)) from None
        return roots

    def _root(self, c: int) -> CholeskyRoot:
        return self.roots[min(c, len(self.roots) - 1)]

    @property
    def can_screen_classes(self) -> bool:  # type: ignore[override]
        return len(self._matrix) > 1 and self.n_features >= _MIN_SCREENED_COLUMNS

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return self._score_chunks(block, out, self._add_complete)

    def add_for_argmax(self, block: Block, out: Floats) -> int:
        few = block.shape[0] < self.min_batch_rows  # so few that to round the roots costs more than it saves
        screened = self.can_screen_classes and not few
        return self._score_chunks(block, out, self._add_largest if screened else self._add_complete)

    def _score_chunks(self, block: Block, out: Floats, add: Callable[[Floats, Floats], None]) -> int:
        """Score rows a piece of the block at a time, with ``add`` for those that have all values."""
        x = to_dense_floats(block)
        step = max(self.min_batch_rows, _CHUNK_VALUES // max(1, self.n_features))
        n_absent = 0
        step = -(-len(x) // max(1, round(len(x) / step)))  # pieces of a size: a product of few rows is slow
        for start in range(0, len(x), max(1, step)):
            piece, scores = np.ascontiguousarray(x[start : start + step].T, np.float64), out[start : start + step]
            if np.isfinite(piece.sum()):  # one check for infinite and missing values; large numbers may overflow too
                add(piece, scores)
                continue
            if np.isinf(piece).any():
                return kernels.INFINITE
            absent = np.isnan(piece)
            n_absent += int(absent.sum())
            for present, rows in _missing_patterns(absent):
                if present.any():
                    part = scores[rows]
                    self._marginal(present)._add_complete(np.ascontiguousarray(piece[np.ix_(present, rows)]), part)
                    scores[rows] = part
        return n_absent

    def _add_largest(self, x: Floats, out: Floats) -> None:
        """Screen the classes, and score those that may be the largest of a row."""
        nearest, farthest = self._screen.bounds(x)
        before, out[...] = out.copy(), out + self._log_prob_complete(farthest, x)
        first = out.argmax(axis=1)[:, None]
        least = np.take_along_axis(out, first, axis=1)
        least -= np.abs(least) * _MIN_LEAD
        is_candidate = ~(before + self._log_prob_complete(nearest, x) < least)  # NaN is not below it
        np.put_along_axis(is_candidate, first, True, axis=1)
        undecided = np.flatnonzero(is_candidate.sum(axis=1) > 1)
        size, x = np.full((len(undecided), self.n_classes), np.inf), x[:, undecided]
        for c, root in enumerate(self.roots):
            rows = np.flatnonzero(is_candidate[undecided, c])
            part = np.zeros((len(rows), 1))
            root.distances(x[:, rows], self.loc[c : c + 1], part)
            size[rows, c] = part[:, 0]
        out[undecided] = before[undecided] + self._log_prob_complete(size, x)

    @cached_property
    def _screen(self) -> DistanceScreen:
        spread = np.sqrt(np.einsum("cjj->cj", self._matrix).mean(axis=0))
        return DistanceScreen.from_roots(self.loc, self.roots, spread)

    def _add_complete(self, x: Floats, out: Floats) -> None:
        size = np.zeros(out.shape, order="F")  # |z|^2 in each class
        step = self.n_classes if len(self.roots) == 1 else 1
        for c, root in zip(range(0, self.n_classes, step), self.roots, strict=True):
            root.distances(x, self.loc[c : c + step], size[:, c : c + step])
        out += self._log_prob_complete(size, x)

    def _log_prob_complete(self, size: Floats, x: Floats) -> Floats:
        """(row, class) log p of whole rows at a squared distance from each class."""
        log_prob = self._log_density(size / self.factor, self._log_norm, self._n_varying)
        if self.constant.any():
            # The same in all classes: however unlikely, it must not swallow the digits in which they differ.
            constant = _normal_contributions(x[self.constant].T, *self._constant_moments)
            log_prob += np.maximum(constant.sum(axis=1, keepdims=True), _MIN_CONSTANT_LOG_PROB)
        return log_prob

    @cached_property
    def _log_norm(self) -> Floats:
        log_det = np.array([self._root(c).log_det for c in range(self.n_classes)])
        return log_det + 0.5 * self._n_varying * np.log(self.factor)

    @cached_property
    def _constant_moments(self) -> tuple[Floats, Floats]:
        return self.loc[0, self.constant], np.einsum("jj->j", self._matrix[0])[self.constant]

    def _contributions(self, x: NDArray) -> Floats:
        """What a column adds given those before it that are present."""
        x = to_dense_floats(x).astype(np.float64, copy=False)
        out = np.zeros((len(x), self.n_classes, self.n_features))
        for present, rows in _missing_patterns(np.isnan(x).T):
            if not present.any():
                continue
            own, values = self._marginal(present), x[np.ix_(rows, present)]
            constant, varying = np.flatnonzero(present & self.constant), np.flatnonzero(present & ~self.constant)
            of_constant = _normal_contributions(values[:, own.constant], *own._constant_moments)
            out[np.ix_(rows, np.arange(self.n_classes), constant)] = of_constant[:, None, :]
            for c in range(self.n_classes):
                root, factor = own._root(c), self.factor[c]
                z = root.whiten((values - own.loc[c]).T).T / np.sqrt(factor)
                scores = self._conditional_log_prob(z, c) - root.log_diagonal - 0.5 * np.log(factor)
                out[rows[:, None], c, varying] = scores
        return out

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        z = rng.standard_normal((len(y), self.n_features))
        out = np.empty_like(z)
        varying, lengths = ~self.constant, self._draw_scale_factors(y, rng)
        mean, variance = self._constant_moments
        out[:, self.constant] = mean + z[:, self.constant] * np.sqrt(variance)
        for c in np.unique(y):
            rows = y == c
            moved = self._root(c).color(z[np.ix_(rows, varying)]) * lengths[rows, None] * np.sqrt(self.factor[c])
            out[np.ix_(rows, varying)] = self.loc[c, varying] + moved
        return out

    def _covariance_parameters(self) -> dict[str, NDArray]:
        matrix = self._matrix * self.factor[:, None, None]
        sd = np.sqrt(np.einsum("cjj->cj", matrix))
        return {"sd": sd, "correlation": matrix / (sd[:, :, None] * sd[:, None, :])}

    def mean(self) -> Floats:
        return self.loc

    def describe(
        self, j: int, columns: Names = (), levels: Names = (), weights: Any = None, max_rows: int = 12
    ) -> Rows:
        """With the correlations, where they are few."""
        rows, values = super().describe(j, columns)
        if self.n_features > _MAX_CORRELATED_COLUMNS or len(columns) < self.n_features:
            return rows, values
        others, correlation = [i for i in range(self.n_features) if i != j], self.parameters()["correlation"]
        rows += [f"correlation with {columns[i]}" for i in others]
        return rows, np.array([*values, *(correlation[:, j, i] for i in others)])

    def score_expression(self, x: Expression, **parameters: Any) -> Expression:
        """Each column given those before it that are present, by the lower triangle of each matrix.

        The contributions of columns that do not vary are left out.
        """
        lower = np.tril_indices(self.n_features)
        arrays = {"loc": self.loc, "matrix": self._matrix[:, *lower], "factor": self.factor, "constant": self.constant}
        return joint("conditional", x, **arrays, **parameters)

    def arrays(self) -> dict[str, NDArray]:
        """A symmetric matrix is saved by its lower triangle, one row a matrix; one row where all classes share it."""
        lower, by_class = np.tril_indices(self.n_features), {name: getattr(self, name) for name in self._class_fields}
        matrix, constant = self._matrix[:, *lower], self.constant.astype(np.uint8)
        return {**by_class, "loc": self.loc, "matrix": matrix, "constant": constant}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        fields = {name: read_array(arrays, name, (shape.n_classes,), POSITIVE) for name in cls._class_fields}
        p, lower = shape.n_features, np.tril_indices(shape.n_features)
        array = arrays.get("matrix")
        n_matrices = 1 if array is not None and len(array) == 1 else shape.n_classes
        triangle = read_array(arrays, "matrix", (n_matrices, len(lower[0])))
        matrix = np.empty((n_matrices, p, p))
        matrix[:, lower[0], lower[1]] = matrix[:, lower[1], lower[0]] = triangle
        constant = read_array(arrays, "constant", (p,), FLAGS, np.uint8) != 0
        variances = np.diagonal(matrix[0])[constant]
        if not (variances > 0).all():
            value = variances[~(variances > 0)][0].item()
            raise InputError(f"array 'matrix' holds the variance {value}; expected a number > 0", value=value)
        fields |= {"loc": read_array(arrays, "loc", (shape.n_classes, p)), cls._matrix_name: matrix}
        distribution = cls(**fields, constant=constant)  # type: ignore[call-arg]
        try:
            distribution.roots  # noqa: B018
        except SingularError as error:
            raise InputError(
                f"array 'matrix' is not a covariance (column {error.feature}); expected a positive definite matrix"
            ) from None
        return distribution

    def _marginal(self, present: NDArray[np.bool_]) -> Self:
        if present.all():
            return self
        matrix: Any = {self._matrix_name: self._matrix[:, present][:, :, present]}
        return replace(self, loc=self.loc[:, present], constant=self.constant[present], **matrix)  # type: ignore[type-var]

    # What differs between the normal and the t.

    def _log_density(self, size: Floats, log_norm: Floats, p: int) -> Floats:
        """log p of rows at a squared distance."""
        raise NotImplementedError

    def _conditional_log_prob(self, z: Floats, c: int) -> Floats:
        """(row, feature) log p of each whitened part given those before it."""
        raise NotImplementedError

    def _draw_scale_factors(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """(row) by which a normal vector is lengthened."""
        return np.ones(len(y))


@dataclass(frozen=True, eq=False)
class MultivariateNormal(Elliptical):
    loc: Floats  # (class, feature)
    covariance: Floats  # (class, feature, feature), or (1, feature, feature) where all classes share it
    constant: Any = None  # (feature) columns that do not vary

    name: ClassVar[str] = "multivariate_normal"
    _matrix_name: ClassVar[str] = "covariance"
    nonlinear_reason: ClassVar[str] = f"the covariances of the classes differ; {_LINEAR_REMEDY}, or quadratic()"

    @cached_property
    def factor(self) -> Floats:
        return np.ones(len(self.loc))

    def _log_density(self, size: Floats, log_norm: Floats, p: int) -> Floats:
        return -0.5 * (p * LOG_2PI + size) - log_norm

    def _conditional_log_prob(self, z: Floats, c: int) -> Floats:
        return normal_conditionals(z)

    def divergence(self, other: Self) -> Floats:
        """(class, 1) of all columns together."""
        names, out = ("mean", "sd", "correlation"), []
        a, b = ([params[name] for name in names] for params in (self.parameters(), other.parameters()))
        for m, s, r, n, t, q in zip(*a, *b, strict=True):
            gap, ratio = (m - n) / s, t / s  # in the units of the first
            moved = q * ratio[:, None] * ratio
            pairs = (r, moved), (moved, r)
            twice = sum(np.trace(np.linalg.solve(x, y)) + gap @ np.linalg.solve(x, gap) for x, y in pairs)
            out.append([max(0.0, float(0.5 * twice - len(m)))])
        return np.array(out)

    def parameters(self) -> dict[str, NDArray]:
        return {"mean": self.loc, **self._covariance_parameters()}

    def form(self) -> "ScoreForm":
        """x' A x + w . x with A = -1/2 covariance^-1; where it is tied the square is the same in all classes."""
        from candide.distributions.score_form import NumericForm

        varying = ~self.constant
        weight, constant = np.zeros_like(self.loc), np.zeros((self.n_classes, 1))
        tied = len(self.covariance) == 1
        square = np.zeros((self.n_classes, self.n_features, self.n_features))
        middle = self.loc.mean(axis=0) if tied else np.zeros(self.n_features)
        for c in range(self.n_classes):
            root = self._root(c)
            mean, gap = root.whiten(self.loc[c][:, None])[:, 0], root.whiten((self.loc[c] - middle)[:, None])[:, 0]
            weight[c, varying] = root.unwhiten(gap)
            constant[c, 0] = -0.5 * gap @ (mean + root.whiten(middle[:, None])[:, 0])
            if not tied:
                constant[c, 0] -= root.log_det
                square[c][np.ix_(varying, varying)] = -0.5 * root.precision()
        if self.n_features == 1:  # one column needs no other: what is absent adds nothing
            square = square[:, :, 0]
        return NumericForm(constant, weight, None if tied else square)


@dataclass(frozen=True, eq=False)
class MultivariateT(Elliptical):
    df: Floats  # (class) positive
    loc: Floats  # (class, feature)
    scale: Floats  # (class, feature, feature), or (1, feature, feature) where classes differ in their factor alone
    factor: Any = None  # (class) by which the scale matrix is multiplied
    constant: Any = None  # (feature) columns that do not vary

    name: ClassVar[str] = "multivariate_t"
    _matrix_name: ClassVar[str] = "scale"
    _class_fields: ClassVar[tuple[str, ...]] = ("df", "factor")
    nonlinear_reason: ClassVar[str] = f"with estimate='predictive' it is the multivariate t; {_LINEAR_REMEDY}"

    def _log_density(self, size: Floats, log_norm: Floats, p: int) -> Floats:
        df = self.df
        norm = numerics.log_rising_factorial(df / 2, np.full_like(df, p / 2)) - 0.5 * p * np.log(np.pi * df) - log_norm
        return norm - 0.5 * (df + p) * np.log1p(size / df)

    def _conditional_log_prob(self, z: Floats, c: int) -> Floats:
        return t_conditionals(z, self.df[c])

    def _draw_scale_factors(self, y: Codes, rng: "np.random.Generator") -> Floats:
        return np.sqrt(self.df[y] / rng.chisquare(self.df[y]))

    def mean(self) -> Floats:
        return np.where(self.df[:, None] > 1, self.loc, np.nan)

    def parameters(self) -> dict[str, NDArray]:
        """With the deviations of the scale matrix, as Student's t has them."""
        shape = self._covariance_parameters()
        df = np.broadcast_to(self.df[:, None], self.loc.shape)
        return {"df": df, "loc": self.loc, "scale": shape["sd"], "correlation": shape["correlation"]}

    def score_expression(self, x: Expression, **parameters: Any) -> Expression:
        """With the constant of the t of each column, given so many others."""
        df = self.df[:, None] + np.arange(self.n_features)
        rising = numerics.log_rising_factorial(df / 2, np.full_like(df, 0.5))
        return super().score_expression(x, df=self.df, rising=rising)


def normal_conditionals(z: Floats) -> Floats:
    """(..., feature) log p of each whitened part given those before it."""
    return -0.5 * (LOG_2PI + z * z)


def t_conditionals(z: Floats, df: Floats) -> Floats:
    """The same under a t: each part is one whose spread grows with those before it."""
    before = df + np.cumsum(z * z, axis=-1) - z * z
    df = df + np.arange(z.shape[-1])
    norm = numerics.log_rising_factorial(df / 2, np.full_like(df, 0.5)) - 0.5 * np.log(np.pi * before)
    return norm - 0.5 * (df + 1) * np.log1p(z * z / before)


def _normal_contributions(x: Floats, mean: Floats, variance: Floats) -> Floats:
    return -0.5 * (LOG_2PI + np.log(variance) + (x - mean) ** 2 / variance)


def _missing_patterns(absent: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], Codes]]:
    """(feature,) each pattern of values present, and its rows; ``absent`` is (feature, row)."""
    if not absent.any():
        yield np.ones(len(absent), bool), np.arange(absent.shape[1])
        return
    keys, which = np.unique(np.packbits(absent, axis=0), axis=1, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(which.ravel(), minlength=keys.shape[1]))[:-1]):
        yield ~absent[:, rows[0]], rows
