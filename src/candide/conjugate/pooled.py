"""Level probabilities of the classes shrunk towards those of all classes together, by a mixture of concentrations.

The pooled proportions q have ``alpha`` pseudo-rows of each level. Those of a class are drawn from Dirichlet(s q), so
that with s pseudo-rows of the pooled proportions

    p(level given class) = (n + s q) / (n_class + s)

The concentration s is unknown and averaged over a grid of values. The point s = infinity, where all classes have the
same proportions, has half of the prior mass. So a level seen a few times has its pooled proportion in every class.

The probability of the counts (``log_odds``) is a Dirichlet-multinomial. Where all classes have the same proportions,
the mean of its odds against that model is 1, so their log is at most 0 on average (Jensen): a column without
association to the class shows none, however many levels it has. The weight of each s in the estimate is its
leave-one-out likelihood, class by class: the counts determine q too, and a large class most of it.

The grid is over s / (rows + pseudo-rows), so that leaving a row out changes the prior of its own level alone, and is
exact.

>>> same = LevelTally(np.array([[30.0, 60.0], [10.0, 20.0]]), np.array([0, 2]))
>>> different = LevelTally(np.array([[30.0, 60.0], [20.0, 10.0]]), np.array([0, 2]))
>>> [log_odds(tally, 1.0).round(2).item() for tally in (same, different)]
[-0.36, 0.96]
>>> [np.exp(pooled_log_prob(tally, 1.0)[0]).round(2).tolist() for tally in (same, different)]
[[[0.34, 0.66], [0.34, 0.66]], [[0.36, 0.64], [0.6, 0.4]]]
"""

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.conjugate.dirichlet import level_evidence
from candide.data.blocks import Codes, Floats
from candide.tally import LevelTally
from candide.tally.base import divide_or_zero, subtract_sums

_CONCENTRATIONS = 4.0 * np.exp(-np.arange(20.0))  # pseudo-rows of the pooled proportions for each row
_MAX_DIRECT_CELLS = 4096  # up to which it is quicker to compute each cell than to look for equal ones
_CHUNK_CELLS = 1 << 18  # (concentration, case, class) numbers worked on at once


def pooled_log_prob(tally: LevelTally, alpha: float) -> tuple[Floats, Floats]:
    """(class, levels) log-probabilities, and (feature, class) that of an unseen level: its share of the prior."""
    rows = tally.n.sum(axis=0) + alpha * np.diff(tally.offsets)
    own, usual = _mixture_weights(_held_out_evidence(tally, alpha), rows, tally.n)
    share = divide_or_zero(np.ones_like(rows), rows)
    q = _repeat_by_level(tally, share) * (tally.counts.sum(axis=0) + alpha)
    p = _repeat_by_level(tally, own) * tally.counts + _repeat_by_level(tally, usual) * q
    return np.log(np.minimum(p, 1.0)), np.where(rows > 0, numerics.log_or_minus_inf(usual * share * alpha), 0.0).T


def held_out_pooled(tally: LevelTally, alpha: float, codes: NDArray, y: Codes, weight: Floats | None) -> Floats:
    """(row, class, feature) log-probability of each row's levels, with the row left out of the counts."""
    out, sizes, k = np.zeros((len(codes), *tally.n.shape)), np.diff(tally.offsets), len(tally.counts)
    unseen = np.nonzero(codes >= sizes)
    if len(unseen[0]):
        out[unseen[0], :, unseen[1]] = pooled_log_prob(tally, alpha)[1][unseen[1]]
    row, feature = np.nonzero((codes >= 0) & (codes < sizes))
    cell = (tally.offsets[feature] + codes[row, feature]) * k + y[row]
    removed = np.ones(len(row)) if weight is None else weight[row]
    keys, axis = (cell, None) if weight is None else (np.stack([cell, removed]), 1)
    _, first, back = np.unique(keys, axis=axis, return_index=True, return_inverse=True)  # equal rows are left out once
    evidence, step = _held_out_evidence(tally, alpha), max(1, _CHUNK_CELLS // max(1, len(_CONCENTRATIONS) * k))
    distinct = np.empty((len(first), k))
    for start in range(0, len(first), step):
        at = first[start : start + step]
        distinct[start : start + step] = _log_prob_without(tally, alpha, evidence, cell[at], feature[at], removed[at])
    out[row, :, feature] = distinct[back.ravel()]
    return out


def pooled_evidence(tally: LevelTally, alpha: float) -> Floats:
    """(class, feature) log marginal likelihood of all classes together, divided among them by their weights."""
    pooled = tally.pool()
    whole = pooled.per_feature(level_evidence(pooled, np.full(tally.offsets[-1], alpha)))[0]
    return divide_or_zero(tally.n, tally.n.sum(axis=0)) * (whole + log_odds(tally, alpha))


def log_odds(tally: LevelTally, alpha: float) -> Floats:
    """(feature,) log-odds of this mixture against one table of proportions for all classes; 0 for one class."""
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
    """The class, feature, count, and count over all classes of every nonempty cell."""
    sizes = np.diff(tally.offsets)
    c, cell = np.nonzero(tally.counts)
    feature = np.repeat(np.arange(len(sizes)), sizes)[cell]
    return c, feature, tally.counts[c, cell], tally.counts.sum(axis=0)[cell]


def _unique_cells(c: Codes, feature: Codes, n: Floats, pooled: Floats) -> tuple[tuple, Floats]:
    """The cells that differ in more than their class, and the multiplicity of each: few, of many levels."""
    if len(n) <= _MAX_DIRECT_CELLS:
        return (c, feature, n, pooled), np.ones(len(n))
    order = np.lexsort((n, pooled, feature))
    keys = [key[order] for key in (c, feature, n, pooled)]
    first = np.flatnonzero(np.r_[True, np.any([np.diff(key) != 0 for key in keys[1:]], axis=0)])
    return tuple(key[first] for key in keys), np.diff(np.append(first, len(n))).astype(np.float64)


def _held_out_evidence(tally: LevelTally, alpha: float) -> Floats:
    """(concentration, class, feature) leave-one-out log-likelihood, less that of one table for all classes."""
    n, sizes = tally.n, np.diff(tally.offsets)
    c, feature, counts, pooled = _nonempty_cells(tally)
    place, less = c * len(sizes) + feature, _minus_one_row(pooled) + alpha
    fewer = _minus_one_row(n.sum(axis=0)) + alpha * sizes

    def total(values: Floats) -> Floats:
        return np.bincount(place, counts * values, n.size).astype(np.float64, copy=False).reshape(n.shape)

    one_table = total(np.log(less)) - numerics.xlogy(n, fewer)
    out = np.empty((len(_CONCENTRATIONS), *n.shape))
    for i, t in enumerate(_CONCENTRATIONS):
        levels = total(np.log(_minus_one_row(counts) + t * less))
        out[i] = levels - numerics.xlogy(n, _minus_one_row(n) + t * fewer) - one_table
    return out


def _log_prob_without(
    tally: LevelTally, alpha: float, evidence: Floats, cell: Codes, feature: Codes, removed: Floats
) -> Floats:
    """(case, class) log-probability of a level without some of its weight in a class.

    The contribution of the level to the ``evidence`` of its column is replaced by that without the weight.
    """
    level, y = np.divmod(cell, len(tally.counts))
    pseudo, of_row = alpha * np.diff(tally.offsets)[feature], (y, np.arange(len(y)))
    before, n = tally.counts[:, level], tally.n[:, feature]  # (class, case)
    after, left = before.copy(), n.copy()
    for counts in (after, left):
        counts[of_row] = np.maximum(subtract_sums(counts[of_row], removed), 0.0)

    def contribution(level: Floats, n: Floats) -> Floats:
        """(concentration, class, case) of a level, and of the sum over the column's levels."""
        less, fewer = _minus_one_row(level.sum(axis=0)) + alpha, _minus_one_row(n.sum(axis=0)) + pseudo
        one_table, t = numerics.xlogy(level, less) - numerics.xlogy(n, fewer), _CONCENTRATIONS[:, None, None]
        levels = numerics.xlogy(level, _minus_one_row(level) + t * less)
        return levels - numerics.xlogy(n, _minus_one_row(n) + t * fewer) - one_table

    rows = left.sum(axis=0) + pseudo
    evidence = evidence[..., feature] + contribution(after, left) - contribution(before, n)
    own, usual = _mixture_weights(evidence, rows, left)
    return np.log(np.minimum(own * after + usual * (after.sum(axis=0) + alpha) / rows, 1.0)).T


def _mixture_weights(evidence: Floats, rows: Floats, n: Floats) -> tuple[Floats, Floats]:
    """(class, feature) the factors of the counts of a class and of the pooled proportions, over concentrations."""
    joint = evidence + _log_mass(rows)[:, None, :]
    several = 1.0 / (1.0 + np.exp(np.clip(-_log_sum(joint).sum(axis=0), -700.0, 700.0)))  # mass of more than one table
    mass = np.exp(joint - joint.max(axis=0))
    mass *= several / mass.sum(axis=0)
    pseudo = np.multiply.outer(_CONCENTRATIONS, rows)[:, None, :]
    own = divide_or_zero(mass, pseudo + n)
    return own.sum(axis=0), 1.0 - several + (own * pseudo).sum(axis=0)  # not 1 - own * n: rows may be very many


def _log_mass(rows: Floats) -> Floats:
    """(concentration, ...) log prior mass: uniform on the log scale, but for less than one row."""
    s = np.multiply.outer(_CONCENTRATIONS, np.maximum(rows, 1e-100))
    mass = s / (1.0 + s)
    return np.log(mass / mass.sum(axis=0))


def _log_sum(joint: Floats) -> Floats:
    """The log of the sum over concentrations."""
    top = joint.max(axis=0)
    return top + np.log(np.exp(joint - top).sum(axis=0))


def _minus_one_row(n: Floats) -> Floats:
    return np.maximum(n - 1.0, 0.0)


def _repeat_by_level(tally: LevelTally, values: Floats) -> Floats:
    """Values of each feature, once for each of its levels."""
    return np.repeat(values, np.diff(tally.offsets), axis=-1)
