"""Tables of the classes drawn round the shares of all classes together, once for all families of levels.

The shares q of all rows have ``alpha`` imaginary rows of each level. The table of a class is drawn from Dirichlet(s q),
so that with s imaginary rows of the usual shares

    p(level given class) = (n + s q) / (n_class + s)

The concentration s is not known: a grid of them is averaged over, and the point s = infinity, where all classes have
one table, has half of the prior mass. So a level met a few times has the usual share in every class.

How probable the counts are (``log_odds``) is what a Dirichlet-multinomial says. Where one table holds, the mean of its
odds against that table is 1, so that their log is at most 0 on average (Jensen): a column that tells nothing of the
class has no evidence that it does, however many levels it has. How much each s weighs in the estimate is what it says
of each row without that row, class by class: the counts made the shares too, and a large class most of them.

The grid is of s / (rows + imaginary rows), so that without a row only the level of that row has another prior, and
what is left out of the counts is left out exactly.

>>> same = LevelTally(np.array([[30.0, 60.0], [10.0, 20.0]]), np.array([0, 2]))
>>> told = LevelTally(np.array([[30.0, 60.0], [20.0, 10.0]]), np.array([0, 2]))
>>> [log_odds(tally, 1.0).round(2).item() for tally in (same, told)]
[-0.36, 0.96]
>>> [np.exp(pooled_log_prob(tally, 1.0)[0]).round(2).tolist() for tally in (same, told)]
[[[0.34, 0.66], [0.34, 0.66]], [[0.36, 0.64], [0.6, 0.4]]]
"""

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.conjugate.dirichlet import level_evidence
from candide.data.blocks import Codes, Floats
from candide.tally import LevelTally
from candide.tally.base import divide_or_zero, subtract_sums

_CONCENTRATIONS = 4.0 * np.exp(-np.arange(20.0))  # imaginary rows of the usual shares for each row there is
_MAX_DIRECT_CELLS = 4096  # cells up to which it is quicker to take each than to look for equal ones
_CHUNK_CELLS = 1 << 18  # (step, case, class) worked at once


def pooled_log_prob(tally: LevelTally, alpha: float) -> tuple[Floats, Floats]:
    """(class, levels) log-probabilities, and (feature, class) that of a level never seen: its share of the prior."""
    rows = tally.n.sum(axis=0) + alpha * np.diff(tally.offsets)
    own, usual = _mixture_weights(_held_out_evidence(tally, alpha), rows, tally.n)
    share = divide_or_zero(np.ones_like(rows), rows)
    q = _repeat_by_level(tally, share) * (tally.counts.sum(axis=0) + alpha)
    p = _repeat_by_level(tally, own) * tally.counts + _repeat_by_level(tally, usual) * q
    return np.log(np.minimum(p, 1.0)), np.where(rows > 0, numerics.log_or_minus_inf(usual * share * alpha), 0.0).T


def held_out_pooled(tally: LevelTally, alpha: float, codes: NDArray, y: Codes, weight: Floats | None) -> Floats:
    """(row, class, feature) log-probability of each row's levels where the row itself is left out of the counts."""
    out, sizes = np.zeros((len(codes), *tally.n.shape)), np.diff(tally.offsets)
    unseen = np.nonzero(codes >= sizes)
    if len(unseen[0]):
        out[unseen[0], :, unseen[1]] = pooled_log_prob(tally, alpha)[1][unseen[1]]
    row, feature = np.nonzero((codes >= 0) & (codes < sizes))
    cell = (tally.offsets[feature] + codes[row, feature]) * len(tally.counts) + y[row]
    gone = np.ones(len(row)) if weight is None else weight[row]
    if weight is None:
        _, first, back = np.unique(cell, return_index=True, return_inverse=True)  # rows alike are left out alike
    else:
        _, first, back = np.unique(np.stack([cell, gone]), axis=1, return_index=True, return_inverse=True)
    ratios, step = (
        _held_out_evidence(tally, alpha),
        max(1, _CHUNK_CELLS // max(1, len(_CONCENTRATIONS) * len(tally.counts))),
    )
    found = np.empty((len(first), len(tally.counts)))
    for start in range(0, len(first), step):
        at = first[start : start + step]
        found[start : start + step] = _log_prob_without(tally, alpha, ratios, cell[at], feature[at], gone[at])
    out[row, :, feature] = found[back.ravel()]
    return out


def pooled_evidence(tally: LevelTally, alpha: float) -> Floats:
    """(class, feature) log marginal likelihood: that of one table for all, and the odds on one for each class.

    It is of all classes together, and shared out by their weights.
    """
    pooled = tally.pool()
    whole = pooled.per_feature(level_evidence(pooled, np.full(tally.offsets[-1], alpha)))[0]
    return divide_or_zero(tally.n, tally.n.sum(axis=0)) * (whole + log_odds(tally, alpha))


def log_odds(tally: LevelTally, alpha: float) -> Floats:
    """(feature,) the log of how much more probable tables drawn round the shares make the counts than one table does.

    One class has one table.
    """
    n, sizes = tally.n.sum(axis=0), np.diff(tally.offsets)
    if len(tally.counts) == 1:
        return np.zeros(len(sizes))
    (_, feature, counts, pooled), times = _unique_cells(*_nonempty_cells(tally))
    rows, prior, joint = n + alpha * sizes, pooled + alpha, np.empty((len(_CONCENTRATIONS), len(sizes)))
    one_table = np.bincount(feature, times * counts * np.log(prior), len(sizes)) - numerics.xlogy(n, rows)
    for i, t in enumerate(_CONCENTRATIONS):
        levels = np.bincount(feature, times * numerics.log_rising_factorial(t * prior, counts), len(sizes))
        norm = numerics.log_rising_factorial(np.broadcast_to(t * rows, tally.n.shape), tally.n).sum(axis=0)
        joint[i] = levels - norm - one_table
    return np.logaddexp(0.0, _log_sum(joint + _log_mass(rows))) - np.log(2.0)


def _nonempty_cells(tally: LevelTally) -> tuple[Codes, Codes, Floats, Floats]:
    """Of every cell that counts something: its class, its feature, its count, and that of all classes."""
    sizes = np.diff(tally.offsets)
    c, cell = np.nonzero(tally.counts)
    feature = np.repeat(np.arange(len(sizes)), sizes)[cell]
    return c, feature, tally.counts[c, cell], tally.counts.sum(axis=0)[cell]


def _unique_cells(c: Codes, feature: Codes, n: Floats, pooled: Floats) -> tuple[tuple, Floats]:
    """The cells but for those that only their class tells apart, and how many there are of each: of many levels few."""
    if len(n) <= _MAX_DIRECT_CELLS:
        return (c, feature, n, pooled), np.ones(len(n))
    order = np.lexsort((n, pooled, feature))
    keys = [key[order] for key in (c, feature, n, pooled)]
    first = np.flatnonzero(np.r_[True, np.any([np.diff(key) != 0 for key in keys[1:]], axis=0)])
    return tuple(key[first] for key in keys), np.diff(np.append(first, len(n))).astype(np.float64)


def _held_out_evidence(tally: LevelTally, alpha: float) -> Floats:
    """(step, class, feature) what a concentration says of every row without that row, less what one table says."""
    n, sizes = tally.n, np.diff(tally.offsets)
    c, feature, counts, pooled = _nonempty_cells(tally)
    place, less = c * len(sizes) + feature, _minus_one_row(pooled) + alpha
    fewer = _minus_one_row(n.sum(axis=0)) + alpha * sizes

    def total(values: Floats) -> Floats:
        return np.bincount(place, counts * values, n.size).astype(np.float64, copy=False).reshape(n.shape)

    one_table = total(np.log(less)) - numerics.xlogy(n, fewer)
    out = np.empty((len(_CONCENTRATIONS), *n.shape))
    for i, t in enumerate(_CONCENTRATIONS):
        out[i] = (
            total(np.log(_minus_one_row(counts) + t * less))
            - numerics.xlogy(n, _minus_one_row(n) + t * fewer)
            - one_table
        )
    return out


def _log_prob_without(
    tally: LevelTally, alpha: float, ratios: Floats, cell: Codes, feature: Codes, gone: Floats
) -> Floats:
    """(case, class) log-probability of a level without some weight of it in a class: a cell of the table.

    What the level adds to the ``ratios`` of its column is taken out, and put in again as it is without that weight.
    """
    level, y = np.divmod(cell, len(tally.counts))
    more, of_row = alpha * np.diff(tally.offsets)[feature], (y, np.arange(len(y)))
    before, n = tally.counts[:, level], tally.n[:, feature]  # (class, case)
    after, left = before.copy(), n.copy()
    for whole in (after, left):
        whole[of_row] = np.maximum(subtract_sums(whole[of_row], gone), 0.0)

    def added(level: Floats, n: Floats) -> Floats:
        """(step, class, case) what a level adds, and what the sum over the column's levels does."""
        less, fewer, t = (
            _minus_one_row(level.sum(axis=0)) + alpha,
            _minus_one_row(n.sum(axis=0)) + more,
            _CONCENTRATIONS[:, None, None],
        )
        one_table = numerics.xlogy(level, less) - numerics.xlogy(n, fewer)
        return (
            numerics.xlogy(level, _minus_one_row(level) + t * less)
            - numerics.xlogy(n, _minus_one_row(n) + t * fewer)
            - one_table
        )

    rows = left.sum(axis=0) + more
    own, usual = _mixture_weights(ratios[..., feature] + added(after, left) - added(before, n), rows, left)
    return np.log(np.minimum(own * after + usual * (after.sum(axis=0) + alpha) / rows, 1.0)).T


def _mixture_weights(ratios: Floats, rows: Floats, n: Floats) -> tuple[Floats, Floats]:
    """(class, feature) what multiplies the counts of a class, and what the usual shares: means over concentrations."""
    joint = ratios + _log_mass(rows)[:, None, :]
    several = 1.0 / (1.0 + np.exp(np.clip(-_log_sum(joint).sum(axis=0), -700.0, 700.0)))  # mass of more than one table
    mass = np.exp(joint - joint.max(axis=0))
    mass *= several / mass.sum(axis=0)
    imaginary = np.multiply.outer(_CONCENTRATIONS, rows)[:, None, :]
    own = divide_or_zero(mass, imaginary + n)
    return own.sum(axis=0), 1.0 - several + (own * imaginary).sum(axis=0)  # not 1 - own * n, where rows are very many


def _log_mass(rows: Floats) -> Floats:
    """(step, ...) the log of the prior mass of each concentration: even on the log scale, but for less than one row."""
    s = np.multiply.outer(_CONCENTRATIONS, np.maximum(rows, 1e-100))
    mass = s / (1.0 + s)
    return np.log(mass / mass.sum(axis=0))


def _log_sum(joint: Floats) -> Floats:
    """The log of the sum over steps."""
    top = joint.max(axis=0)
    return top + np.log(np.exp(joint - top).sum(axis=0))


def _minus_one_row(n: Floats) -> Floats:
    """What is left without one row."""
    return np.maximum(n - 1.0, 0.0)


def _repeat_by_level(tally: LevelTally, values: Floats) -> Floats:
    """Values of each feature, once for each of its levels."""
    return np.repeat(values, np.diff(tally.offsets), axis=-1)
