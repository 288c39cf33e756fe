"""The scores of discriminants: normal distributions of all columns together, with one covariance or one for each class.

The covariance of a class has an inverse Wishart prior centred at the covariance within all classes, which is itself
shrunk a little towards the unit matrix. The weight of that centre, in rows, maximises the evidence.

In leave-one-out contributions, the values that depend on all rows together (the divisor and weight of the centre, the
overall mean) stay fixed; the row is removed from its class and from the centre exactly, by downdates of rank one and
two.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.distributions import arrays as stored
from candide.distributions import score_expression as expression
from candide.distributions.base import Distribution
from candide.errors import InputError
from candide.numerics import gammaln
from candide.tally import CoMoments
from candide.tally.base import divide_or_zero

_MEAN_PRIOR_ROWS = 0.1  # rows that the overall mean counts for in the mean of a class
_MIN_DETERMINANT_RATIO = 1e-3  # of determinants without and with a row: below this the other rows determine nothing
_CENTRE_WEIGHTS = (0.0, 0.5, 2.0, 8.0, 32.0, 128.0)  # of the centre, in rows a column; the first is one row


@dataclass(frozen=True, eq=False)
class ClassCovariances:
    """A scale matrix for each class, by the inverse of its root, and its degrees of freedom."""

    root: Floats  # (class, p, p) lower triangular
    log_det: Floats  # (class) of the scale matrix
    df: Floats  # (class)


@dataclass(frozen=True, eq=False)
class DiscriminantScores(Distribution):
    """The linear discriminant and, where classes have covariances of their own, the quadratic one as a second term."""

    means: Floats  # (class, p)
    rows: Floats  # (class) behind the mean
    root: Floats  # (p, p) lower triangular: it whitens the common covariance
    class_covariances: ClassCovariances | None = None  # None: the linear discriminant alone

    name: ClassVar[str] = "discriminant"
    block_kind = "scores"
    has_density = False
    nonlinear_reason: ClassVar[str] = "it is a discriminant of several columns; use NaiveBayes"
    is_blas_bound: ClassVar[bool] = kernels.NAME == "numpy"
    min_batch_rows: ClassVar[int] = 1024

    @property
    def n_classes(self) -> int:
        return len(self.means)

    @property
    def n_features(self) -> int:
        return 1 if self.class_covariances is None else 2

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return self.add_weighted(block, np.ones(self.n_features), out)

    def add_weighted(self, block: Block, weight: Floats, out: Floats) -> int:
        z = to_dense(block)
        for arrays, own in zip(self._kernel_arrays, weight.tolist(), strict=True):
            if own:
                kernels.add_discriminant(z, *arrays, own, out)
        return 0

    def _contributions(self, x: NDArray) -> Floats:
        out = np.zeros((len(x), self.n_classes, self.n_features))
        for j, arrays in enumerate(self._kernel_arrays):
            kernels.add_discriminant(x, *arrays, 1.0, out[:, :, j])
        return out

    @cached_property
    def _kernel_arrays(self) -> list[tuple[Floats, Floats, Floats, bool]]:
        """Of each term: centres, roots, (4, class) what a squared distance contributes, and whether that is a log t."""
        p, zero, factor = self.means.shape[1], np.zeros(self.n_classes), self.rows / (self.rows + 1.0)
        normal = np.array([self.rows, linear_contribution(zero, self.rows, p), 0.5 * factor / np.sqrt(p), factor])
        arrays = [(self.means @ self.root.T, np.ascontiguousarray(self.root[None]), normal, False)]
        if (own := self.class_covariances) is not None:
            peak = quadratic_contribution(zero, self.rows, own.log_det, own.df, p)
            t = np.array([self.rows, peak, 0.5 * (own.df + 1.0) / np.sqrt(p), factor])
            arrays.append((np.einsum("cij,cj->ci", own.root, self.means), np.ascontiguousarray(own.root), t, True))
        return arrays

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        self._refuse("has scores of columns, and no rows, to sample", "sample from the distributions of the columns")

    def sample_block(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """Scores from the quadratic discriminant where there is one, else from the linear one."""
        u, rows = rng.standard_normal((len(y), self.means.shape[1])), self.rows[y]
        if self.class_covariances is None:
            return self.means[y] + np.sqrt((rows + 1) / rows)[:, None] * u @ np.linalg.inv(self.root).T
        df = self.class_covariances.df[y] - self.means.shape[1] + 1.0
        u *= np.sqrt((rows + 1) / rows / rng.chisquare(df))[:, None]
        for c, root in enumerate(self.class_covariances.root):
            u[y == c] = self.means[c] + u[y == c] @ np.linalg.inv(root).T
        return u

    def parameters(self) -> dict[str, NDArray]:
        return {"mean": self.means}

    def score_expression(self, x: expression.Expression) -> expression.Expression:
        parameter, distance = expression.parameter, expression.distance
        k, p = self.means.shape
        factor, unit = self.rows / (self.rows + 1.0), 2 * np.sqrt(p)
        shared = distance("shared", self.root, self.means @ self.root.T)
        scores = [parameter("linear", p * np.log(factor) / unit) - parameter("linear_slope", factor / unit) * shared]
        if (spread := self.class_covariances) is not None:
            peak = quadratic_contribution(np.zeros(k), self.rows, spread.log_det, spread.df, p)
            own = distance("own", spread.root, np.einsum("cij,cj->ci", spread.root, self.means))
            slope = parameter("quadratic_slope", -0.5 * (spread.df + 1.0) / np.sqrt(p))
            scores.append(parameter("quadratic", peak) + expression.log1p(slope, parameter("factor", factor) * own))
        return expression.stack(*map(self._guarded, scores))

    def _guarded(self, score: expression.Expression) -> expression.Expression:
        """As ``guard_outliers``."""
        largest = expression.class_max(score)
        p = expression.parameter("rows", self.rows) * expression.exp(score - largest)
        any_class = expression.class_sum(p) / float(self.rows.sum())
        log_rows = expression.parameter("log_rows", np.log(self.rows + 1.0))
        return expression.log(p + any_class) - log_rows + largest

    def arrays(self) -> dict[str, NDArray]:
        out = {"means": self.means, "rows": self.rows, "root": self.root}
        if (own := self.class_covariances) is not None:
            out |= {"roots": own.root.reshape(-1, self.means.shape[1]), "log_det": own.log_det, "df": own.df}
        return out

    @classmethod
    def from_arrays(
        cls, arrays: stored.ArraySource, shape: stored.DistributionShape, base: Distribution | None = None
    ) -> Self:
        (k, p), read, bounded = (shape.n_classes, shape.n_features), stored.read_array, stored.BOUNDED
        means, rows = read(arrays, "means", (k, p), bounded), read(arrays, "rows", (k,), stored.BOUNDED_POSITIVE)
        root, roots = read(arrays, "root", (p, p), bounded), None
        if (flat := stored.read_optional_array(arrays, "roots", (k * p, p), bounded)) is not None:
            roots = flat.reshape(k, p, p)
        every = root[None] if roots is None else np.concatenate([root[None], roots])
        if not np.isfinite(np.linalg.slogdet(every)[1]).all():
            raise InputError("arrays 'root' and 'roots' are not roots of covariances: one is singular")
        if roots is None:
            return cls(means, rows, root)
        rule = stored.ArrayRule(f"numbers > {p - 1} and up to 1e160", lambda a: (a > p - 1) & (a <= 1e160))
        log_det, df = read(arrays, "log_det", (k,), bounded), read(arrays, "df", (k,), rule)
        return cls(means, rows, root, ClassCovariances(roots, log_det, df))


def linear_contribution(q: Floats, rows: Any, p: int) -> Floats:
    """The log-density of a normal distribution at squared distance q, whose mean is known from so many rows."""
    factor = rows / (rows + 1.0)
    return (0.5 * p * np.log(factor) - 0.5 * factor * q) / np.sqrt(p)


def quadratic_contribution(q: Floats, rows: Any, log_det: Any, df: Any, p: int) -> Floats:
    """The log-density of a t distribution at squared distance q under its scale matrix."""
    v, factor = df - p + 1.0, rows / (rows + 1.0)
    shape = gammaln((v + p) / 2) - gammaln(v / 2) + 0.5 * p * np.log(factor) - 0.5 * log_det
    return (shape - 0.5 * (v + p) * np.log1p(factor * q)) / np.sqrt(p)


def guard_outliers(contributions: Floats, rows: Floats) -> Floats:
    """Contributions (row, class) of distributions known from so many rows, when a new row may be unlike all of these.

    By the rule of succession that happens once in rows + 1 times, and then the row is like one of any class. So an
    outlier never excludes a class with more certainty than the rows of the class support.
    """
    largest = contributions.max(axis=1, keepdims=True)
    p = np.exp(contributions - largest)
    any_class = (rows * p).sum(axis=1, keepdims=True) / rows.sum(axis=-1, keepdims=True)
    return np.log((rows * p + any_class) / (rows + 1.0)) + largest


@dataclass(frozen=True, eq=False)
class CovarianceCentre:
    """The covariance within classes, shrunk to the unit matrix; and what else is held when a row is left out."""

    matrix: Floats  # (p, p)
    mean: Floats  # (p) of all rows
    row_weight: float  # what the squared distance of a row from its class mean counts for in the matrix

    @classmethod
    def from_tally(cls, tally: CoMoments, towards_diagonal: float) -> Self:
        n, p = float(tally.weight.sum()), tally.mean.shape[1]
        rows = max(n - int((tally.weight > 0).sum()), 1.0)
        within = tally.scatter.sum(axis=0) / rows
        shrinkage = float(np.clip(towards_diagonal * p / max(n, 1.0), 1e-3, 1.0))
        # Scores have a standard deviation of one: a column that is constant within classes is not certain.
        matrix = (1.0 - shrinkage) * within + shrinkage * np.eye(p)
        return cls(matrix, (tally.weight * tally.mean).sum(axis=0) / max(n, 1e-300), (1.0 - shrinkage) / rows)


def estimate(
    tally: CoMoments, quadratic: bool, towards_diagonal: float, centre: CovarianceCentre | None = None
) -> DiscriminantScores:
    """The distribution of a tally; ``centre`` is the tally's own by default."""
    centre = centre or CovarianceCentre.from_tally(tally, towards_diagonal)
    means = _ClassMeans.from_tally(tally, centre)
    root = np.linalg.inv(np.linalg.cholesky(centre.matrix))
    own = _covariances(tally, centre, means, _choose_centre_weight(tally, centre, means)) if quadratic else None
    return DiscriminantScores(means.shrunk, means.rows, root, own)


def held_out_contributions(
    tally: CoMoments, z: Floats, y: Codes, weight: Floats | None, quadratic: bool, towards_diagonal: float
) -> Floats:
    """(row, class, term) contributions of rows, each under the distribution without it."""
    centre = CovarianceCentre.from_tally(tally, towards_diagonal)
    means = _ClassMeans.from_tally(tally, centre)
    removed = np.minimum(1.0 if weight is None else weight, means.n[y])  # no more than was counted
    root = np.linalg.inv(np.linalg.cholesky(centre.matrix))
    terms = [_linear_held_out(means, root, centre.row_weight, z, y, removed)]
    if quadratic:
        centre_weight = _choose_centre_weight(tally, centre, means)
        own = _covariances(tally, centre, means, centre_weight)
        terms.append(_quadratic_held_out(means, own, centre_weight * centre.row_weight, z, y, removed))
    return np.stack(terms, axis=2)


@dataclass(frozen=True, eq=False)
class _ClassMeans:
    """The mean of each class: as counted, and shrunk to that of all rows."""

    n: Floats  # (class)
    raw: Floats  # (class, p)
    shrunk: Floats  # (class, p)
    rows: Floats  # (class) behind the shrunk mean

    @classmethod
    def from_tally(cls, tally: CoMoments, centre: CovarianceCentre) -> Self:
        n, rows = tally.weight[:, 0], _MEAN_PRIOR_ROWS + tally.weight[:, 0]
        raw = np.where(tally.weight > 0, tally.mean, centre.mean)
        return cls(n, raw, (_MEAN_PRIOR_ROWS * centre.mean + n[:, None] * raw) / rows[:, None], rows)

    def rows_without_each(self, y: Codes, removed: Floats) -> Floats:
        """(row, class) the rows behind the means without each row."""
        rows = np.repeat(self.rows[None], len(y), axis=0)
        rows[np.arange(len(y)), y] -= removed
        return rows


def _scale(tally: CoMoments, centre: CovarianceCentre, means: _ClassMeans, centre_weight: float) -> Floats:
    """(class, p, p) the scale matrix of the posterior."""
    gap = means.raw - centre.mean
    pulled = (_MEAN_PRIOR_ROWS * means.n / means.rows)[:, None, None] * gap[:, :, None] * gap[:, None, :]
    return centre_weight * centre.matrix + tally.scatter + pulled


def _covariances(tally: CoMoments, centre: CovarianceCentre, means: _ClassMeans, weight: float) -> ClassCovariances:
    lower = np.linalg.cholesky(_scale(tally, centre, means, weight))
    log_det = 2 * np.log(np.einsum("cjj->cj", lower)).sum(axis=1)
    return ClassCovariances(np.linalg.inv(lower), log_det, len(centre.mean) + 1 + weight + means.n)


def _choose_centre_weight(tally: CoMoments, centre: CovarianceCentre, means: _ClassMeans) -> float:
    """The weight of the centre, in rows, under which the rows are most probable."""
    p, down = len(centre.mean), np.arange(len(centre.mean))
    centre_log_det = np.linalg.slogdet(centre.matrix)[1]

    def evidence(weight: float) -> float:
        before = p + 1 + weight
        after = before + means.n
        log_det = np.linalg.slogdet(_scale(tally, centre, means, weight))[1]
        gain = (gammaln((after[:, None] - down) / 2) - gammaln((before - down) / 2)).sum(axis=1)
        return float((gain + before / 2 * (centre_log_det + p * np.log(weight)) - after / 2 * log_det).sum())

    return max((weight * (p + 1.0) + (weight == 0) for weight in _CENTRE_WEIGHTS), key=evidence)


def _linear_held_out(
    means: _ClassMeans, root: Floats, row_weight: float, z: Floats, y: Codes, removed: Floats
) -> Floats:
    row, x = np.arange(len(y)), z @ root.T
    shrunk, raw = means.shrunk @ root.T, means.raw @ root.T
    square, inner, own = (x * x).sum(axis=1)[:, None], x @ shrunk.T, (x * raw[y]).sum(axis=1)[:, None]
    q = np.maximum(square - 2 * inner + (shrunk * shrunk).sum(axis=1), 0.0)
    cross = square - inner - own + raw[y] @ shrunk.T  # (x - mean of each class) . (x - mean of its own class)
    length = np.maximum(square - 2 * own + (raw * raw).sum(axis=1)[y][:, None], 0.0)
    less = row_weight * _scatter_weight(means.n[y], removed)[:, None]
    q += less * cross**2 / np.maximum(1.0 - less * length, _MIN_DETERMINANT_RATIO)
    rows = means.rows_without_each(y, removed)
    q[row, y] *= (means.rows[y] / rows[row, y]) ** 2
    return guard_outliers(linear_contribution(q, rows, z.shape[1]), rows)


def _quadratic_held_out(
    means: _ClassMeans, covariances: ClassCovariances, row_weight: float, z: Floats, y: Codes, removed: Floats
) -> Floats:
    out, less = np.empty((len(z), len(means.n))), row_weight * _scatter_weight(means.n[y], removed)
    for c, root in enumerate(covariances.root):
        u, r = (z - means.shrunk[c]) @ root.T, (z - means.raw[y]) @ root.T
        q, far, cross = (u * u).sum(axis=1), (r * r).sum(axis=1), (u * r).sum(axis=1)
        own, rows = y == c, means.rows[c]
        left = np.where(own, rows - removed, rows)
        pulled = np.where(own, removed * rows / left, 0.0)
        # The scale matrix loses pulled u u' + less r r': a determinant and an inverse of two by two.
        ratio = np.maximum((1.0 - pulled * q) * (1.0 - less * far) - pulled * less * cross**2, _MIN_DETERMINANT_RATIO)
        q = (q * (1.0 - less * far) + less * cross**2) / ratio * np.where(own, (rows / left) ** 2, 1.0)
        df = covariances.df[c] - np.where(own, removed, 0.0)
        out[:, c] = quadratic_contribution(q, left, covariances.log_det[c] + np.log(ratio), df, z.shape[1])
    return guard_outliers(out, means.rows_without_each(y, removed))


def _scatter_weight(n: Floats, removed: Floats) -> Floats:
    """What a row's squared distance from its class mean counts for in the scatter; 0 for a row alone in its class."""
    left = n - removed
    return np.where(left > 1e-9 * n, divide_or_zero(n * removed, np.where(left > 0, left, 1.0)), 0.0)
