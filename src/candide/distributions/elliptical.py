"""Columns modelled together: what the multivariate normal and its posterior predictive, the t, share.

A row is whitened by the inverse of the Cholesky root of the matrix: z = L^-1 (x - mean) has independent parts, so that
log p(x) is a sum over them, and part j is what column j adds given the columns before it. Of a row with absent values
the marginal distribution of those present is taken, exactly; rows are gathered by which values they have.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels, numerics
from candide.data.blocks import Block, Codes, Floats
from candide.distributions.arrays import FLAGS, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, Names, Rows, to_dense_floats
from candide.distributions.mahalanobis import CholeskyRoot, DistanceScreen, SingularError
from candide.distributions.score_expression import Expression, joint
from candide.errors import InputError

LOG_2PI = float(np.log(2 * np.pi))
_CHUNK_VALUES = 1 << 21  # values whitened at a time
_MIN_SCREENED_COLUMNS = 64  # columns from which on bounds cost less than distances
_MIN_CONSTANT_LOG_PROB = -1e9  # log p of what does not vary, at least
_MIN_LEAD = 1e-9  # by which the largest must lead, of its own size: more than double precision loses
_MAX_CORRELATED_COLUMNS = 8  # columns whose correlations are described
LINEAR_REMEDY = "use Gaussian(covariance='tied') with estimate='mean', 'map' or 'mle' for a linear score"


class Elliptical(Distribution):
    """Shared by both: a centre and a matrix a class, or one matrix for all of them.

    A ``constant`` column does not vary: it has one normal distribution, the same in all classes, beside the others.
    """

    min_batch_rows: ClassVar[int] = 512
    is_on_real_line: ClassVar[bool] = True
    is_blas_bound: ClassVar[bool] = True
    loc: Floats  # (class, feature)
    _matrix: Floats  # (class or 1, feature, feature)
    _factor: Floats  # (class) by which the matrix is multiplied
    constant: NDArray[np.bool_]  # (feature)

    @property
    def n_classes(self) -> int:
        return self.loc.shape[0]

    @property
    def n_features(self) -> int:
        return self.loc.shape[1]

    @cached_property
    def _roots(self) -> list[CholeskyRoot]:
        """One for every matrix, of the columns that vary."""
        joint, roots = np.flatnonzero(~self.constant), list[CholeskyRoot]()
        for matrix in self._matrix:
            try:
                roots.append(CholeskyRoot.from_matrix(matrix, joint))
            except SingularError as error:
                raise SingularError(error.feature, len(roots)) from None
        return roots

    def compute_roots(self) -> None:
        """Find the roots of the matrices now; a SingularError where one has none."""
        self._roots  # noqa: B018

    def _root(self, c: int) -> CholeskyRoot:
        return self._roots[min(c, len(self._roots) - 1)]

    @property
    def can_screen_classes(self) -> bool:  # type: ignore[override]
        return len(self._matrix) > 1 and self.n_features >= _MIN_SCREENED_COLUMNS

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return self._score_chunks(block, out, self._add_complete)

    def add_for_argmax(self, block: Block, out: Floats) -> int:
        few = block.shape[0] < self.min_batch_rows  # so few that to round the roots costs more than it saves
        return self._score_chunks(
            block, out, self._add_complete if few or not self.can_screen_classes else self._add_largest
        )

    def _score_chunks(self, block: Block, out: Floats, add: Callable[[Floats, Floats], None]) -> int:
        """Score rows a piece of the block at a time, with ``add`` for those that have all values."""
        x = to_dense_floats(block)
        step = max(self.min_batch_rows, _CHUNK_VALUES // max(1, self.n_features))
        absent = 0
        step = -(-len(x) // max(1, round(len(x) / step)))  # pieces of a size: a product of few rows is slow
        for start in range(0, len(x), max(1, step)):
            piece = np.ascontiguousarray(x[start : start + step].T, np.float64)
            got = self._add_chunk(piece, out[start : start + step], add)
            if got == kernels.INFINITE:
                return kernels.INFINITE
            absent += got
        return absent

    def _add_chunk(self, x: Floats, out: Floats, add: Callable[[Floats, Floats], None]) -> int:
        """Score columns (feature, row) of a piece of a block."""
        total = x.sum()  # one check for infinite and missing values; a sum of large numbers may overflow as well
        if np.isfinite(total):
            add(x, out)
            return 0
        if np.isinf(x).any():
            return kernels.INFINITE
        gone = np.isnan(x)
        for present, rows in _missing_patterns(gone):
            part = out[rows]
            if present.any():
                self._marginal(present)._add_complete(np.ascontiguousarray(x[np.ix_(present, rows)]), part)
            out[rows] = part
        return int(gone.sum())

    def _add_largest(self, x: Floats, out: Floats) -> None:
        """Screen the classes, and score those that may yet be the largest of a row."""
        nearest, farthest = self._screen.bounds(x)
        before, out[...] = out.copy(), out + self._log_prob_complete(farthest, x)
        first = out.argmax(axis=1)[:, None]
        least = np.take_along_axis(out, first, axis=1)
        least -= np.abs(least) * _MIN_LEAD
        rival = ~(before + self._log_prob_complete(nearest, x) < least)  # NaN is not below it
        np.put_along_axis(rival, first, True, axis=1)
        open_ = np.flatnonzero(rival.sum(axis=1) > 1)
        size, x = np.full((len(open_), self.n_classes), np.inf), x[:, open_]
        for c, root in enumerate(self._roots):
            rows = np.flatnonzero(rival[open_, c])
            part = np.zeros((len(rows), 1))
            root.distances(x[:, rows], self.loc[c : c + 1], part)
            size[rows, c] = part[:, 0]
        out[open_] = before[open_] + self._log_prob_complete(size, x)

    @cached_property
    def _screen(self) -> "DistanceScreen":
        spread = np.sqrt(np.einsum("cjj->cj", self._matrix).mean(axis=0))
        return DistanceScreen.from_roots(self.loc, self._roots, spread)

    def _add_complete(self, x: Floats, out: Floats) -> None:
        size = np.zeros(out.shape, order="F")  # |z|^2 in each class
        if len(self._roots) == 1:
            self._roots[0].distances(x, self.loc, size)
        else:
            for c, root in enumerate(self._roots):
                root.distances(x, self.loc[c : c + 1], size[:, c : c + 1])
        out += self._log_prob_complete(size, x)

    def _log_prob_complete(self, size: Floats, x: Floats) -> Floats:
        """(row, class) log p of whole rows at a squared distance from each class."""
        got = self._log_density(size / self._factor, self._log_norm, self.n_features - int(self.constant.sum()))
        if self.constant.any():
            # The same in all classes: however unlikely, it must not swallow the digits in which they differ.
            got += np.maximum(
                _normal_contributions(x[self.constant].T, *self._constant_moments).sum(axis=1, keepdims=True),
                _MIN_CONSTANT_LOG_PROB,
            )
        return got

    @cached_property
    def _log_norm(self) -> Floats:
        """(class) the log of the determinant of the root."""
        joint = self.n_features - int(self.constant.sum())
        return np.array([self._root(c).log_det for c in range(self.n_classes)]) + 0.5 * joint * np.log(self._factor)

    @cached_property
    def _constant_moments(self) -> tuple[Floats, Floats]:
        """Mean and variance of the columns that do not vary."""
        return self.loc[0, self.constant], np.einsum("jj->j", self._matrix[0])[self.constant]

    def _contributions(self, x: NDArray) -> Floats:
        """What a column adds given those before it that are present."""
        x = to_dense_floats(x).astype(np.float64, copy=False)
        out = np.zeros((len(x), self.n_classes, self.n_features))
        for present, rows in _missing_patterns(np.isnan(x).T):
            if present.any():
                place = np.ix_(rows, np.arange(self.n_classes), present)
                out[place] = self._marginal(present)._complete_contributions(x[np.ix_(rows, present)])
        return out

    def _complete_contributions(self, x: Floats) -> Floats:
        out = np.empty((len(x), self.n_classes, self.n_features))
        joint = ~self.constant
        out[:, :, self.constant] = _normal_contributions(x[:, self.constant], *self._constant_moments)[:, None, :]
        for c in range(self.n_classes):
            root = self._root(c)
            z = root.whiten((x - self.loc[c]).T).T / np.sqrt(self._factor[c])
            out[:, c, joint] = self._conditional_log_prob(z, c) - root.log_diagonal - 0.5 * np.log(self._factor[c])
        return out

    def sample(self, y: Codes, rng: "np.random.Generator") -> Floats:
        z = rng.standard_normal((len(y), self.n_features))
        out = np.empty_like(z)
        joint, heavy = ~self.constant, self._draw_scale_factors(y, rng)
        mean, variance = self._constant_moments
        out[:, self.constant] = mean + z[:, self.constant] * np.sqrt(variance)
        for c in np.unique(y):
            rows = y == c
            moved = self._root(c).color(z[np.ix_(rows, joint)]) * heavy[rows, None] * np.sqrt(self._factor[c])
            out[np.ix_(rows, joint)] = self.loc[c, joint] + moved
        return out

    def _covariances(self) -> Floats:
        """(class, feature, feature) the matrix of each class."""
        return self._matrix * self._factor[:, None, None]

    def _covariance_parameters(self) -> dict[str, NDArray]:
        matrix = self._covariances()
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
        arrays = {"loc": self.loc, "matrix": self._matrix[:, *lower], "factor": self._factor, "constant": self.constant}
        return joint("conditional", x, **arrays, **parameters)

    def arrays(self) -> dict[str, NDArray]:
        """A symmetric matrix is kept by its lower triangle, one row a matrix; one row where all classes share it."""
        lower = np.tril_indices(self.n_features)
        return {"loc": self.loc, "matrix": self._matrix[:, *lower], "constant": self.constant.astype(np.uint8)}

    @staticmethod
    def _from_arrays(arrays: ArraySource, shape: DistributionShape) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Centres, matrices, and which columns do not vary."""
        p, lower = shape.n_features, np.tril_indices(shape.n_features)
        found = arrays.get("matrix")
        n_matrices = 1 if found is not None and len(found) == 1 else shape.n_classes
        triangle = read_array(arrays, "matrix", (n_matrices, len(lower[0])))
        matrix = np.empty((n_matrices, p, p))
        matrix[:, lower[0], lower[1]] = matrix[:, lower[1], lower[0]] = triangle
        constant = read_array(arrays, "constant", (p,), FLAGS, np.uint8) != 0
        variances = np.diagonal(matrix[0])[constant]
        if not (variances > 0).all():
            value = variances[~(variances > 0)][0].item()
            raise InputError(f"array 'matrix' holds the variance {value}; expected a number > 0", value=value)
        return read_array(arrays, "loc", (shape.n_classes, p)), matrix, constant

    def _check_matrices(self) -> Self:
        """Itself, if its matrices are those of covariances."""
        try:
            self.compute_roots()
        except SingularError as error:
            raise InputError(
                f"array 'matrix' holds no covariance (column {error.feature}); expected a positive definite matrix"
            ) from None
        return self

    # What differs between the normal and the t.

    def _marginal(self, present: NDArray[np.bool_]) -> Self:
        """The marginal distribution of some columns."""
        raise NotImplementedError

    def _log_density(self, size: Floats, log_norm: Floats, p: int) -> Floats:
        """log p of rows at a squared distance."""
        raise NotImplementedError

    def _conditional_log_prob(self, z: Floats, c: int) -> Floats:
        """(row, feature) log p of each whitened part given those before it."""
        raise NotImplementedError

    def _draw_scale_factors(self, y: Codes, rng: "np.random.Generator") -> Floats:
        """(row) by which a normal vector is lengthened."""
        return np.ones(len(y))


def set_default(value: Any, name: str, make: Callable[[], NDArray]) -> None:
    if getattr(value, name) is None:
        value.__dict__[name] = make()


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


def _missing_patterns(gone: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], Codes]]:
    """Which (feature) values are present, and the rows of which that is so: of (feature, row) absent values."""
    if not gone.any():
        yield np.ones(len(gone), bool), np.arange(gone.shape[1])
        return
    keys, which = np.unique(np.packbits(gone, axis=0), axis=1, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(which.ravel(), minlength=keys.shape[1]))[:-1]):
        yield ~gone[:, rows[0]], rows
