"""Discriminants: normal laws of numbers together, whose covariances are drawn to that within all classes.

The covariance of a class has an inverse Wishart prior whose centre is the covariance within classes, itself drawn a
little to that of unrelated scores. How many rows that centre weighs is chosen by the evidence. With endless weight the
classes have one covariance.

What the rows determine only as a whole (the centre's divisor, its weight, the mean of all rows) is held
when a row is left out. The row is taken from its class and from the centre, exactly: downdates of rank one and two.

>>> z, y = np.array([[-1.0, 0.0], [-2.0, 1.0], [1.0, 0.5], [2.0, -1.0], [1.5, 0.0]]), np.array([0, 0, 1, 1, 1])
>>> tally = CoMoments.from_rows(z, y, n_classes=2, spec=TallySpec.from_encoding("comoments", Identity(), 2))
>>> estimate(tally, quadratic=True, towards_diagonal=0.1).log_prob(z).argmax(axis=1).tolist()
[0, 0, 1, 1, 1]
>>> held_out_contributions(tally, z, y, None, quadratic=True, towards_diagonal=0.1).shape  # (row, class, linear and quadratic)
(5, 2, 2)
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.distributions.discriminants import (
    ClassCovariances,
    Discriminants,
    guard_outliers,
    linear_contribution,
    quadratic_contribution,
)
from candide.encoding import Identity
from candide.numerics import gammaln
from candide.tally import CoMoments, TallySpec
from candide.tally.base import divide_or_zero

__all__ = ["CovarianceCentre", "Identity", "TallySpec", "estimate", "held_out_contributions"]

_MEAN_PRIOR_ROWS = 0.1  # rows that the mean of all rows weighs in that of a class
_MIN_DETERMINANT_SHARE = (
    1e-3  # the share of a determinant that is left at least without a row: of less the rows say nothing
)
_CENTRE_WEIGHTS = (0.0, 0.5, 2.0, 8.0, 32.0, 128.0)  # of the centre, in rows a column; and one row more of the first


@dataclass(frozen=True, eq=False)
class CovarianceCentre:
    """The covariance within classes, drawn to the unit matrix; and what else is held when a row is left out."""

    matrix: Floats  # (p, p)
    mean: Floats  # (p) of all rows
    row_weight: float  # what the square of a row's distance from its class weighs in the matrix

    @classmethod
    def from_tally(cls, tally: CoMoments, towards_diagonal: float) -> Self:
        n, p = float(tally.weight.sum()), tally.mean.shape[1]
        rows = max(n - int((tally.weight > 0).sum()), 1.0)
        within = tally.scatter.sum(axis=0) / rows
        share = float(np.clip(towards_diagonal * p / max(n, 1.0), 1e-3, 1.0))
        # Scores have a deviation of one: what does not vary within the classes is no certainty.
        matrix = (1.0 - share) * within + share * np.eye(p)
        return cls(matrix, (tally.weight * tally.mean).sum(axis=0) / max(n, 1e-300), (1.0 - share) / rows)


def estimate(
    tally: CoMoments, *, quadratic: bool, towards_diagonal: float, centre: CovarianceCentre | None = None
) -> Discriminants:
    """The law of a tally; ``centre`` is the tally's own, or one that is held."""
    centre = centre or CovarianceCentre.from_tally(tally, towards_diagonal)
    means = _ClassMeans.from_tally(tally, centre)
    root = np.linalg.inv(np.linalg.cholesky(centre.matrix))
    spreads = _spreads(tally, centre, means, _choose_centre_weight(tally, centre, means)) if quadratic else None
    return Discriminants(means.shrunk, means.rows, root, spreads)


def held_out_contributions(
    tally: CoMoments, z: Floats, y: Codes, weight: Floats | None, *, quadratic: bool, towards_diagonal: float
) -> Floats:
    """(row, class, feature) terms of rows, each under the law without it."""
    centre = CovarianceCentre.from_tally(tally, towards_diagonal)
    means = _ClassMeans.from_tally(tally, centre)
    gone = np.minimum(1.0 if weight is None else weight, means.n[y])  # no more than was counted
    root = np.linalg.inv(np.linalg.cholesky(centre.matrix))
    terms = [_linear_held_out(means, root, centre.row_weight, z, y, gone)]
    if quadratic:
        of_centre = _choose_centre_weight(tally, centre, means)
        spreads = _spreads(tally, centre, means, of_centre)
        terms.append(_quadratic_held_out(means, spreads, of_centre * centre.row_weight, z, y, gone))
    return np.stack(terms, axis=2)


@dataclass(frozen=True, eq=False)
class _ClassMeans:
    """The mean of each class: as counted, and drawn to that of all rows."""

    n: Floats  # (class)
    raw: Floats  # (class, p)
    shrunk: Floats  # (class, p)
    rows: Floats  # (class) behind the drawn mean

    @classmethod
    def from_tally(cls, tally: CoMoments, centre: CovarianceCentre) -> Self:
        n, rows = tally.weight[:, 0], _MEAN_PRIOR_ROWS + tally.weight[:, 0]
        counted = np.where(tally.weight > 0, tally.mean, centre.mean)
        return cls(n, counted, (_MEAN_PRIOR_ROWS * centre.mean + n[:, None] * counted) / rows[:, None], rows)

    def rows_without_each(self, y: Codes, gone: Floats) -> Floats:
        """(row, class) the rows behind the means without each row."""
        rows = np.repeat(self.rows[None], len(y), axis=0)
        rows[np.arange(len(y)), y] -= gone
        return rows


def _scale(tally: CoMoments, centre: CovarianceCentre, means: _ClassMeans, of_centre: float) -> Floats:
    """(class, p, p) the scale matrix after the rows."""
    gap = means.raw - centre.mean
    pulled = (_MEAN_PRIOR_ROWS * means.n / means.rows)[:, None, None] * gap[:, :, None] * gap[:, None, :]
    return of_centre * centre.matrix + tally.scatter + pulled


def _spreads(tally: CoMoments, centre: CovarianceCentre, means: _ClassMeans, of_centre: float) -> ClassCovariances:
    lower = np.linalg.cholesky(_scale(tally, centre, means, of_centre))
    log_det = 2 * np.log(np.einsum("cjj->cj", lower)).sum(axis=1)
    return ClassCovariances(np.linalg.inv(lower), log_det, len(centre.mean) + 1 + of_centre + means.n)


def _choose_centre_weight(tally: CoMoments, centre: CovarianceCentre, means: _ClassMeans) -> float:
    """How many rows the centre weighs: that under which the rows are most probable."""
    p = len(centre.mean)
    of_centre = np.linalg.slogdet(centre.matrix)[1]

    def evidence(weight: float) -> float:
        before = p + 1 + weight
        after = before + means.n
        log_det = np.linalg.slogdet(_scale(tally, centre, means, weight))[1]
        down = np.arange(p)
        gain = (gammaln((after[:, None] - down) / 2) - gammaln((before - down) / 2)).sum(axis=1)
        return float((gain + before / 2 * (of_centre + p * np.log(weight)) - after / 2 * log_det).sum())

    return max((share * (p + 1.0) + (share == 0) for share in _CENTRE_WEIGHTS), key=evidence)


def _linear_held_out(means: _ClassMeans, root: Floats, own: float, z: Floats, y: Codes, gone: Floats) -> Floats:
    row, x = np.arange(len(y)), z @ root.T
    drawn, counted = means.shrunk @ root.T, means.raw @ root.T
    square, inner, mine = (x * x).sum(axis=1)[:, None], x @ drawn.T, (x * counted[y]).sum(axis=1)[:, None]
    q = np.maximum(square - 2 * inner + (drawn * drawn).sum(axis=1), 0.0)
    cross = square - inner - mine + counted[y] @ drawn.T  # of the ways from each class's mean, and from its own
    length = np.maximum(square - 2 * mine + (counted * counted).sum(axis=1)[y][:, None], 0.0)
    less = own * _leave_one_out_weight(means.n[y], gone)[:, None]
    q += less * cross**2 / np.maximum(1.0 - less * length, _MIN_DETERMINANT_SHARE)
    rows = means.rows_without_each(y, gone)
    q[row, y] *= (means.rows[y] / rows[row, y]) ** 2
    return guard_outliers(linear_contribution(q, rows, z.shape[1]), rows)


def _quadratic_held_out(
    means: _ClassMeans, spreads: ClassCovariances, own: float, z: Floats, y: Codes, gone: Floats
) -> Floats:
    out, less = np.empty((len(z), len(means.n))), own * _leave_one_out_weight(means.n[y], gone)
    for c, root in enumerate(spreads.root):
        u, r = (z - means.shrunk[c]) @ root.T, (z - means.raw[y]) @ root.T
        q, far, cross = (u * u).sum(axis=1), (r * r).sum(axis=1), (u * r).sum(axis=1)
        mine, rows = y == c, means.rows[c]
        left = np.where(mine, rows - gone, rows)
        pulled = np.where(mine, gone * rows / left, 0.0)
        # The scale matrix loses pulled u u' + less r r': a determinant and an inverse of two by two.
        share = np.maximum((1.0 - pulled * q) * (1.0 - less * far) - pulled * less * cross**2, _MIN_DETERMINANT_SHARE)
        q = (q * (1.0 - less * far) + less * cross**2) / share * np.where(mine, (rows / left) ** 2, 1.0)
        df = spreads.df[c] - np.where(mine, gone, 0.0)
        out[:, c] = quadratic_contribution(q, left, spreads.log_det[c] + np.log(share), df, z.shape[1])
    return guard_outliers(out, means.rows_without_each(y, gone))


def _leave_one_out_weight(n: Floats, weight: Floats) -> Floats:
    """What the square of a row's distance from its class's mean weighs in the scatter; 0 of a row that is alone."""
    left = n - weight
    return np.where(left > 1e-9 * n, divide_or_zero(n * weight, np.where(left > 0, left, 1.0)), 0.0)
