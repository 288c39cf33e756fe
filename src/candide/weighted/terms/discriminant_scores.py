"""The scores of discriminants: normal distributions of all columns together, with one covariance or one for each class.

>>> means, one = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.eye(2)
>>> linear = DiscriminantScores(means, np.array([90.0, 90.0]), one)
>>> linear.log_prob(np.array([[-0.5, 3.0], [2.0, 3.0]])).argmax(axis=1).tolist()
[0, 1]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.distributions.arrays import (
    BOUNDED,
    BOUNDED_POSITIVE,
    ArrayRule,
    ArraySource,
    DistributionShape,
    read_array,
    read_optional_array,
)
from candide.distributions.base import Distribution
from candide.errors import InputError
from candide.numerics import gammaln

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm


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
        found = [(self.means @ self.root.T, np.ascontiguousarray(self.root[None]), normal, False)]
        if (own := self.class_covariances) is not None:
            peak = quadratic_contribution(zero, self.rows, own.log_det, own.df, p)
            t = np.array([self.rows, peak, 0.5 * (own.df + 1.0) / np.sqrt(p), factor])
            found.append((np.einsum("cij,cj->ci", own.root, self.means), np.ascontiguousarray(own.root), t, True))
        return found

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
        """The mean score of each column in each class."""
        return {"mean": self.means}

    def form(self) -> "ScoreForm":
        from candide.distributions.score_form import UnavailableForm

        return UnavailableForm("columns speak together, by their normal scores; use NaiveBayes or GaussianBayes")

    def to_export_dict(self) -> dict[str, Any]:
        """Means whitened by the common root; the lower halves of the triangular roots."""
        p, lower = self.means.shape[1], np.tril_indices(self.means.shape[1])
        out = {"rule": "discriminants", "means": self.means @ self.root.T, "rows": self.rows, "root": self.root[lower]}
        if (own := self.class_covariances) is not None:
            out |= {"centres": self.means, "roots": own.root[:, *lower], "exponent": 0.5 * (own.df + 1.0)}
            out["peak"] = quadratic_contribution(np.zeros(self.n_classes), self.rows, own.log_det, own.df, p)
        return out

    def arrays(self) -> dict[str, NDArray]:
        out = {"means": self.means, "rows": self.rows, "root": self.root}
        if (own := self.class_covariances) is not None:
            out |= {"roots": own.root.reshape(-1, self.means.shape[1]), "log_det": own.log_det, "df": own.df}
        return out

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        k, p = shape.n_classes, shape.n_features
        means, rows = read_array(arrays, "means", (k, p), BOUNDED), read_array(arrays, "rows", (k,), BOUNDED_POSITIVE)
        root = read_array(arrays, "root", (p, p), BOUNDED)
        roots = read_optional_array(arrays, "roots", (k * p, p), BOUNDED)
        every = root[None] if roots is None else np.concatenate([root[None], roots.reshape(k, p, p)])
        if not np.isfinite(np.linalg.slogdet(every)[1]).all():
            raise InputError("arrays 'root' and 'roots' are not roots of covariances: one is singular")
        if roots is None:
            return cls(means, rows, root)
        rule = ArrayRule(f"numbers > {p - 1} and up to 1e160", lambda a: (a > p - 1) & (a <= 1e160))
        log_det, df = read_array(arrays, "log_det", (k,), BOUNDED), read_array(arrays, "df", (k,), rule)
        return cls(means, rows, root, ClassCovariances(roots.reshape(k, p, p), log_det, df))


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

    >>> guard_outliers(np.array([[0.0, -900.0]]), np.array([99.0, 99.0])).round(2).tolist()  # log(1 / 100), any class
    [[-0.01, -5.3]]
    """
    largest = contributions.max(axis=1, keepdims=True)
    p = np.exp(contributions - largest)
    any_class = (rows * p).sum(axis=1, keepdims=True) / rows.sum(axis=-1, keepdims=True)
    return np.log((rows * p + any_class) / (rows + 1.0)) + largest
