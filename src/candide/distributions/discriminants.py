"""Discriminants: what numbers say together, under normal laws of one covariance, and of one for each class.

The first is a linear discriminant. The second, a t whose tails say how little is known of a class, is a quadratic one.
Both are features of one law. Terms are divided by the root of how many numbers there are: the scale of one of them.

>>> means, one = np.array([[-1.0, 0.0], [1.0, 0.0]]), np.eye(2)
>>> law = Discriminants(means, np.array([90.0, 90.0]), one)
>>> law.log_prob(np.array([[-0.5, 3.0], [2.0, 3.0]])).argmax(axis=1).tolist()
[0, 1]
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import (
    BOUNDED,
    BOUNDED_POSITIVE,
    ArrayRule,
    ArraySource,
    DistributionShape,
    read_array,
    read_optional_array,
)
from candide.distributions.base import Distribution, to_dense
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
class Discriminants(Distribution):
    means: Floats  # (class, p)
    rows: Floats  # (class) behind the mean
    root: Floats  # (p, p) lower triangular: it makes the covariance of all classes one
    class_covariances: ClassCovariances | None = None  # None: the linear discriminant alone

    name: ClassVar[str] = "discriminants"
    block_kind = "scores"
    has_density = False
    nonlinear_reason: ClassVar[str] = "it says what columns say together; use NaiveBayes"
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
        for law, own in zip(self._kernel_arrays, weight.tolist(), strict=True):
            if own:
                kernels.add_discriminant(z, *law, own, out)
        return 0

    def _contributions(self, x: NDArray) -> Floats:
        out = np.zeros((len(x), self.n_classes, self.n_features))
        for j, law in enumerate(self._kernel_arrays):
            kernels.add_discriminant(x, *law, 1.0, out[:, :, j])
        return out

    @cached_property
    def _kernel_arrays(self) -> list[tuple[Floats, Floats, Floats, bool]]:
        """What the kernel takes: centres and roots, what a distance says, and whether that is the log of a t."""
        p, none, factor = self.means.shape[1], np.zeros(self.n_classes), self.rows / (self.rows + 1.0)
        normal = np.array([self.rows, linear_contribution(none, self.rows, p), 0.5 * factor / np.sqrt(p), factor])
        laws = [(self.means @ self.root.T, np.ascontiguousarray(self.root[None]), normal, False)]
        if self.class_covariances is not None:
            peak = quadratic_contribution(none, self.rows, self.class_covariances.log_det, self.class_covariances.df, p)
            t = np.array([self.rows, peak, 0.5 * (self.class_covariances.df + 1.0) / np.sqrt(p), factor])
            centres = np.einsum("cij,cj->ci", self.class_covariances.root, self.means)
            laws.append((centres, np.ascontiguousarray(self.class_covariances.root), t, True))
        return laws

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        self._refuse("has no rows to draw: it is of scores of its columns", "draw from the laws of the columns")

    def sample_block(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """Scores by the quadratic law where there is one, else by the linear one."""
        u, rows = rng.standard_normal((len(y), self.means.shape[1])), self.rows[y]
        if self.class_covariances is None:
            return self.means[y] + np.sqrt((rows + 1) / rows)[:, None] * u @ np.linalg.inv(self.root).T
        freedom = self.class_covariances.df[y] - self.means.shape[1] + 1.0
        u *= np.sqrt((rows + 1) / rows / rng.chisquare(freedom))[:, None]
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
        """Means as the root of all classes has them; of each triangular root its lower half."""
        p, lower = self.means.shape[1], np.tril_indices(self.means.shape[1])
        held = {"means": self.means @ self.root.T, "rows": self.rows, "root": self.root[lower]}
        if self.class_covariances is None:
            return {"rule": "discriminants", **held}
        none = quadratic_contribution(
            np.zeros(self.n_classes), self.rows, self.class_covariances.log_det, self.class_covariances.df, p
        )
        roots = {"centres": self.means, "roots": self.class_covariances.root[:, *lower]}
        return {
            "rule": "discriminants",
            **held,
            **roots,
            "peak": none,
            "exponent": 0.5 * (self.class_covariances.df + 1.0),
        }

    def arrays(self) -> dict[str, NDArray]:
        kept = {"means": self.means, "rows": self.rows, "root": self.root}
        if self.class_covariances is None:
            return kept
        flat = self.class_covariances.root.reshape(-1, self.means.shape[1])
        return kept | {"roots": flat, "log_det": self.class_covariances.log_det, "df": self.class_covariances.df}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        k, p = shape.n_classes, shape.n_features
        means, rows = read_array(arrays, "means", (k, p), BOUNDED), read_array(arrays, "rows", (k,), BOUNDED_POSITIVE)
        roots, root = (
            read_optional_array(arrays, "roots", (k * p, p), BOUNDED),
            read_array(arrays, "root", (p, p), BOUNDED),
        )
        every = root[None] if roots is None else np.concatenate([root[None], roots.reshape(k, p, p)])
        if not np.isfinite(np.linalg.slogdet(every)[1]).all():
            raise InputError("arrays 'root' and 'roots' are no roots of covariances: one is singular")
        spreads = None
        if roots is not None:
            df = read_array(
                arrays,
                "df",
                (k,),
                ArrayRule(f"numbers > {p - 1} and up to 1e160", lambda a: (a > p - 1) & (a <= 1e160)),
            )
            spreads = ClassCovariances(roots.reshape(k, p, p), read_array(arrays, "log_det", (k,), BOUNDED), df)
        return cls(means, rows, root, spreads)


def linear_contribution(q: Floats, rows: Any, p: int) -> Floats:
    """The log of a normal law at squared distance q, where its mean is known from so many rows."""
    factor = rows / (rows + 1.0)
    return (0.5 * p * np.log(factor) - 0.5 * factor * q) / np.sqrt(p)


def quadratic_contribution(q: Floats, rows: Any, log_det: Any, df: Any, p: int) -> Floats:
    """The log of a t at squared distance q under its scale matrix."""
    v, factor = df - p + 1.0, rows / (rows + 1.0)
    shape = gammaln((v + p) / 2) - gammaln(v / 2) + 0.5 * p * np.log(factor) - 0.5 * log_det
    return (shape - 0.5 * (v + p) * np.log1p(factor * q)) / np.sqrt(p)


def guard_outliers(contributions: Floats, rows: Floats) -> Floats:
    """Terms (row, class) of laws that so many rows tell of, where the next row may be unlike all of these.

    By the rule of succession that happens once in rows + 1; then it is as a row of any class. So no row that lies far
    out is denied to a class with more certainty than the rows of the class can give.

    >>> guard_outliers(np.array([[0.0, -900.0]]), np.array([99.0, 99.0])).round(2).tolist()  # log(1 / 100) from any class
    [[-0.01, -5.3]]
    """
    largest = contributions.max(axis=1, keepdims=True)
    p = np.exp(contributions - largest)
    any_class = (rows * p).sum(axis=1, keepdims=True) / rows.sum(axis=-1, keepdims=True)
    return np.log((rows * p + any_class) / (rows + 1.0)) + largest
