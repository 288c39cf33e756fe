"""Discriminants: normal scores of numbers, and indicators of categories, as normal distributions of all of them together.

The linear discriminant has one covariance for all classes; the quadratic one has a covariance for each class, and is a
multivariate t whose tails show how little is known of a class. Columns are read as normal scores
(:mod:`candide.encoding.normal_score`), so units and increasing transformations of a column make no difference.
Contributions are divided by the root of the width: the scale of a single column.

The covariance of a class has an inverse Wishart prior centred at the covariance within all classes, which is itself
shrunk a little towards the unit matrix. The weight of that centre, in rows, maximises the evidence.

In leave-one-out contributions, what only all rows together determine (the centre's divisor and weight, the overall mean)
is held; the row is taken out of its class and of the centre exactly, by downdates of rank one and two.

>>> z, y = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.5], [2.0, -1.0], [1.5, 0.0]]), np.array([0, 0, 1, 1, 1])
>>> event = Discriminant()
>>> tally = CoMoments.from_rows(z, y, n_classes=2, spec=event.spec(2))
>>> event.estimate(tally).log_prob(z).argmax(axis=1).tolist(), event.term_names(("a", "b"))
([0, 0, 1, 1, 1], (('a', 'b'), ('a', 'b')))
>>> event.held_out_contributions(tally, None, "predictive", z, y).shape  # (row, class, linear and quadratic)
(5, 2, 2)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.data.table import Name
from candide.distributions.base import Distribution
from candide.encoding.base import Encoding
from candide.encoding.normal_score import NormalScore
from candide.errors import InputError
from candide.model.plan import PlanPart
from candide.numerics import gammaln
from candide.tally import CoMoments
from candide.tally.base import divide_or_zero
from candide.weighted.limits import LIMITS
from candide.weighted.terms.base import JointTerm, make_part
from candide.weighted.terms.discriminant_scores import (
    ClassCovariances,
    DiscriminantScores,
    guard_outliers,
    linear_contribution,
    quadratic_contribution,
)

if TYPE_CHECKING:
    from candide.weighted.selection import TermSelector

_MEAN_PRIOR_ROWS = 0.1  # rows that the overall mean counts for in the mean of a class
_MIN_DETERMINANT_SHARE = 1e-3  # of a determinant left without a row: below this the other rows determine nothing
_CENTRE_WEIGHTS = (0.0, 0.5, 2.0, 8.0, 32.0, 128.0)  # of the centre, in rows a column; the first is one row


@dataclass(frozen=True)
class Discriminant(JointTerm):
    """One covariance for all classes and, if ``quadratic``, also one for each class."""

    name: ClassVar[str] = "discriminant"
    kind: ClassVar[str] = "comoments"
    is_joint: ClassVar[bool] = True
    accepts_groups: ClassVar[bool] = True
    distribution: ClassVar[type[Distribution]] = DiscriminantScores

    quadratic: bool = True
    towards_diagonal: float = 0.1  # how far the common covariance is shrunk to the unit matrix, in columns a row

    @property
    def encoding(self) -> Encoding:
        return NormalScore()

    def term_names(self, columns: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
        return (tuple(columns),) * (1 + self.quadratic)

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        """By the number of its numeric and categorical columns.

        >>> Discriminant(quadratic=False).term_titles(("age", "height"), (NormalScore(), NormalScore()))
        ('linear discriminant of 2 numbers',)
        """
        n_text = sum(encoding.is_read_as_text for encoding in encodings)
        counts = (len(columns) - n_text, "number", "numbers"), (n_text, "category", "categories")
        of = " and ".join(formatting.format_count(n, *names) for n, *names in counts if n)
        return tuple(f"{kind} discriminant of {of}" for kind in ("linear", "quadratic")[: 1 + self.quadratic])

    @classmethod
    def initial_parts(cls, selector: "TermSelector") -> Sequence[PlanPart]:
        """Both discriminants of the numbers: fewer rows than numbers determine no covariance."""
        scores = selector.normal_scores
        return [make_part(cls(), scores)] if selector.can_join_numbers else []

    @classmethod
    def add_tested(cls, selector: "TermSelector") -> None:
        """Add a linear discriminant of numbers and categories, if it improves on the terms so far."""
        scores, categories = selector.normal_scores, selector.indicators
        width = sum(encoding.width for _, encoding in scores + categories)
        if categories and 2 <= width <= min(LIMITS.max_indicators, selector.table.n_rows - 1):
            selector.add_if_needed(make_part(cls(quadratic=False, towards_diagonal=1.0), scores + categories))

    def _estimate(self, tally: CoMoments, prior: Any, how: str) -> DiscriminantScores:
        try:
            return estimate(tally, quadratic=self.quadratic, towards_diagonal=self.towards_diagonal)
        except np.linalg.LinAlgError:
            raise InputError("the products counted of joint columns are those of no rows") from None

    def held_out_contributions(
        self,
        tally: CoMoments,
        prior: Any,
        how: str,
        block: Block,
        y: Codes,
        weight: Floats | None = None,
        out: NDArray | None = None,
    ) -> NDArray:
        z, settings = np.asarray(to_dense(block), np.float64), (self.quadratic, self.towards_diagonal)
        found = held_out_contributions(tally, z, y, weight, quadratic=settings[0], towards_diagonal=settings[1])
        if out is None:
            return found
        out[:] = found
        return out


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
        share = float(np.clip(towards_diagonal * p / max(n, 1.0), 1e-3, 1.0))
        # Scores have a standard deviation of one: a column that is constant within classes is not certain.
        matrix = (1.0 - share) * within + share * np.eye(p)
        return cls(matrix, (tally.weight * tally.mean).sum(axis=0) / max(n, 1e-300), (1.0 - share) / rows)


def estimate(
    tally: CoMoments, *, quadratic: bool, towards_diagonal: float, centre: CovarianceCentre | None = None
) -> DiscriminantScores:
    """The distribution of a tally; ``centre`` is the tally's own by default."""
    centre = centre or CovarianceCentre.from_tally(tally, towards_diagonal)
    means = _ClassMeans.from_tally(tally, centre)
    root = np.linalg.inv(np.linalg.cholesky(centre.matrix))
    own = _covariances(tally, centre, means, _choose_centre_weight(tally, centre, means)) if quadratic else None
    return DiscriminantScores(means.shrunk, means.rows, root, own)


def held_out_contributions(
    tally: CoMoments, z: Floats, y: Codes, weight: Floats | None, *, quadratic: bool, towards_diagonal: float
) -> Floats:
    """(row, class, term) contributions of rows, each under the distribution without it."""
    centre = CovarianceCentre.from_tally(tally, towards_diagonal)
    means = _ClassMeans.from_tally(tally, centre)
    removed = np.minimum(1.0 if weight is None else weight, means.n[y])  # no more than was counted
    root = np.linalg.inv(np.linalg.cholesky(centre.matrix))
    found = [_linear_held_out(means, root, centre.row_weight, z, y, removed)]
    if quadratic:
        centre_weight = _choose_centre_weight(tally, centre, means)
        own = _covariances(tally, centre, means, centre_weight)
        found.append(_quadratic_held_out(means, own, centre_weight * centre.row_weight, z, y, removed))
    return np.stack(found, axis=2)


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

    return max((share * (p + 1.0) + (share == 0) for share in _CENTRE_WEIGHTS), key=evidence)


def _linear_held_out(
    means: _ClassMeans, root: Floats, row_weight: float, z: Floats, y: Codes, removed: Floats
) -> Floats:
    row, x = np.arange(len(y)), z @ root.T
    shrunk, raw = means.shrunk @ root.T, means.raw @ root.T
    square, inner, own = (x * x).sum(axis=1)[:, None], x @ shrunk.T, (x * raw[y]).sum(axis=1)[:, None]
    q = np.maximum(square - 2 * inner + (shrunk * shrunk).sum(axis=1), 0.0)
    cross = square - inner - own + raw[y] @ shrunk.T  # (x - mean of each class) . (x - mean of its own class)
    length = np.maximum(square - 2 * own + (raw * raw).sum(axis=1)[y][:, None], 0.0)
    less = row_weight * _scatter_share(means.n[y], removed)[:, None]
    q += less * cross**2 / np.maximum(1.0 - less * length, _MIN_DETERMINANT_SHARE)
    rows = means.rows_without_each(y, removed)
    q[row, y] *= (means.rows[y] / rows[row, y]) ** 2
    return guard_outliers(linear_contribution(q, rows, z.shape[1]), rows)


def _quadratic_held_out(
    means: _ClassMeans, covariances: ClassCovariances, row_weight: float, z: Floats, y: Codes, removed: Floats
) -> Floats:
    out, less = np.empty((len(z), len(means.n))), row_weight * _scatter_share(means.n[y], removed)
    for c, root in enumerate(covariances.root):
        u, r = (z - means.shrunk[c]) @ root.T, (z - means.raw[y]) @ root.T
        q, far, cross = (u * u).sum(axis=1), (r * r).sum(axis=1), (u * r).sum(axis=1)
        own, rows = y == c, means.rows[c]
        left = np.where(own, rows - removed, rows)
        pulled = np.where(own, removed * rows / left, 0.0)
        # The scale matrix loses pulled u u' + less r r': a determinant and an inverse of two by two.
        share = np.maximum((1.0 - pulled * q) * (1.0 - less * far) - pulled * less * cross**2, _MIN_DETERMINANT_SHARE)
        q = (q * (1.0 - less * far) + less * cross**2) / share * np.where(own, (rows / left) ** 2, 1.0)
        df = covariances.df[c] - np.where(own, removed, 0.0)
        out[:, c] = quadratic_contribution(q, left, covariances.log_det[c] + np.log(share), df, z.shape[1])
    return guard_outliers(out, means.rows_without_each(y, removed))


def _scatter_share(n: Floats, removed: Floats) -> Floats:
    """What a row's squared distance from its class mean counts for in the scatter; 0 for a row alone in its class."""
    left = n - removed
    return np.where(left > 1e-9 * n, divide_or_zero(n * removed, np.where(left > 0, left, 1.0)), 0.0)
