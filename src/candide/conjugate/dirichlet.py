"""Counts of levels under a Dirichlet, and under a prior centred on the pooled proportions of all classes.

A Bernoulli column is two levels, a category is K, and a bag of words is one feature whose levels are the words:
all three are level counts under a Dirichlet.

The pooled prior shrinks the proportions of the classes towards those of all classes together. The pooled proportions q
have ``alpha`` pseudo-rows of each level. Those of a class are drawn from Dirichlet(s q), so that with s pseudo-rows

    p(level given class) = (n + s q) / (n_class + s)

The concentration s is unknown and averaged over a grid of values. The point s = infinity, where all classes have the
same proportions, has half of the prior mass. So a level seen a few times has its pooled proportion in every class.

The probability of the counts (``log_odds``) is a Dirichlet-multinomial. Where all classes have the same proportions,
the mean of its odds against that model is 1, so their log is at most 0 on average (Jensen): a column without
association to the class shows none, however many levels it has. The weight of each s in the estimate is its
leave-one-out likelihood, class by class: the counts determine q too, and a large class most of it.

The grid is over s / (rows + pseudo-rows), so that leaving a row out changes the prior of its own level alone, and is
exact.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.distributions.categorical import zero_if_impossible
from candide.tally import LevelTally
from candide.tally.base import divide_or_zero, subtract_sums

_CONCENTRATIONS = 4.0 * np.exp(-np.arange(20.0))  # pseudo-rows of the pooled proportions for each row
_MAX_DIRECT_CELLS = 4096  # up to which it is quicker to compute each cell than to look for equal ones
_CHUNK_CELLS = 1 << 18  # (concentration, case, class) numbers worked on at once


def pseudo_counts(alpha: Floats, how: str) -> Floats:
    """What an estimate adds to the counts: alpha - 1 for the mode of the posterior, alpha for its mean."""
    return {"mle": np.zeros_like(alpha), "map": alpha - 1.0}.get(how, alpha)


def level_log_prob(tally: LevelTally, alpha: Floats, how: str) -> Floats:
    """(class, levels) log-probabilities under Dirichlet(alpha); uniform where a class shows nothing at all.

    Where alpha < 1 the density has its mode on the border: a negative numerator of the MAP is the border, 0.
    """
    weight = tally.counts + pseudo_counts(alpha, how)
    np.maximum(weight, 0.0, out=weight)
    total = _repeat_by_level(tally.per_feature(weight), tally)
    log_prob = numerics.log_proportion(weight, total)
    if total.all():
        return log_prob
    sizes = np.diff(tally.offsets)[None, :]
    return np.where(total > 0, log_prob, -numerics.log_or_minus_inf(_repeat_by_level(sizes, tally)))


def pair_log_prob(no: Floats, yes: Floats, b: Floats, a: Floats, how: str) -> tuple[Floats, Floats]:
    """The same of two levels, counted separately: log-probabilities of no and of yes under Beta(a, b)."""
    counts = [np.maximum(n + pseudo_counts(prior, how), 0.0) for n, prior in ((no, b), (yes, a))]
    total = counts[0] + counts[1]
    log_no, log_yes = (np.where(total > 0, numerics.log_proportion(n, total), -np.log(2.0)) for n in counts)
    return log_no, log_yes


def _repeat_by_level(values: Floats, tally: LevelTally) -> Floats:
    """(class, feature) values once for each level; a single feature's broadcast as they are."""
    return values if values.shape[-1] == 1 else np.repeat(values, np.diff(tally.offsets), axis=-1)


def unseen_log_prob(tally: LevelTally, alpha: Floats, how: str) -> Floats:
    """(feature, class) log-probability of a level never seen: the prior's for one level, -inf where it has none.

    A column without any level contributes 0.
    """
    extra, sizes = pseudo_counts(alpha, how), np.diff(tally.offsets)
    total = tally.per_feature(np.maximum(tally.counts + extra, 0.0))
    mean = np.maximum(divide_or_zero(tally.per_feature(extra[None, :])[0], sizes), 0.0)  # over the levels
    log_prob = numerics.log_or_minus_inf(divide_or_zero(np.broadcast_to(mean, total.shape), total))
    return np.where(sizes > 0, log_prob, 0.0).T


def held_out_levels(
    tally: LevelTally, alpha: Floats, how: str, codes: NDArray, y: Codes, weight: Floats | None
) -> Floats:
    """(row, class, feature) log-probability of each row's levels where the row itself is left out of the counts.

    Only its own cell changes, so no table is made anew. A missing value (a code below 0) contributes 0.
    """
    sizes, row = np.diff(tally.offsets), np.arange(len(codes))
    is_level = (codes >= 0) & (codes < sizes)
    place = np.where(is_level, tally.offsets[:-1] + codes, -1)  # -1: a cell that counts nothing, after the last
    counts, extra = (np.pad(a, [*[(0, 0)] * (a.ndim - 1), (0, 1)]) for a in (tally.counts, pseudo_counts(alpha, how)))
    smoothed = np.maximum(counts + extra, 0.0)
    cell = smoothed[:, place].transpose(1, 0, 2)
    total = np.repeat(tally.per_feature(smoothed[:, :-1])[None], len(codes), axis=0)
    removed = np.where(is_level, 1.0 if weight is None else weight[:, None], 0.0)
    left = np.maximum(subtract_sums(counts[y[:, None], place], removed) + extra[place], 0.0)
    total[row, y] = subtract_sums(total[row, y], cell[row, y] - left)
    cell[row, y] = left
    log_prob = np.where(total > 0, numerics.log_proportion(cell, total), -numerics.log_or_minus_inf(sizes))
    unseen = zero_if_impossible(unseen_log_prob(tally, alpha, how)).T
    return np.where(is_level[:, None, :], log_prob, np.where(codes[:, None, :] < 0, 0.0, unseen))


def level_evidence(tally: LevelTally, alpha: Floats) -> Floats:
    """(class, levels) log marginal likelihood of the sequence of levels, whose sums over a feature's levels are exact.

    log_rising(alpha_k, n_k) belongs to level k; the normaliser log_rising(A, n) is divided by the counts n_k / n.
    """
    n, concentration = tally.n, tally.per_feature(alpha[None, :])
    norm = divide_or_zero(numerics.log_rising_factorial(concentration, n), n)
    return numerics.log_rising_factorial(alpha, tally.counts) - tally.counts * _repeat_by_level(norm, tally)


def draw_log_prob(shape: Floats, offsets: Codes, rng: "np.random.Generator") -> Floats:
    """(class, levels) log-probabilities drawn from Dirichlet distributions, one a class and column."""
    # A gamma variate of shape a is one of shape a + 1 times u**(1 / a): in logs small shapes do not fall to 0.
    logs = np.log(rng.standard_gamma(shape + 1.0)) + np.log(rng.random(shape.shape)) / shape
    sizes = np.diff(offsets)
    starts, sizes = offsets[:-1][sizes > 0], sizes[sizes > 0]
    top = np.repeat(np.maximum.reduceat(logs, starts, axis=1), sizes, axis=1)
    total = np.add.reduceat(np.exp(logs - top), starts, axis=1)
    return logs - top - np.log(np.repeat(total, sizes, axis=1))


def proper_alpha(alpha: Floats) -> Floats:
    """Jeffreys' 1/2 in place of an alpha of 0, under which nothing can be drawn."""
    return np.where(alpha > 0, alpha, 0.5)


# The prior centred on the pooled proportions


def pooled_log_prob(tally: LevelTally, alpha: float) -> tuple[Floats, Floats]:
    """(class, levels) log-probabilities, and (feature, class) that of an unseen level."""
    rows = tally.n.sum(axis=0) + alpha * np.diff(tally.offsets)
    of_counts, of_pooled = _mixture_weights(_held_out_evidence(tally, alpha), rows, tally.n)
    share, sizes = divide_or_zero(np.ones_like(rows), rows), np.diff(tally.offsets)
    q = _pooled_proportions(tally, alpha)
    p = np.repeat(of_counts, sizes, axis=-1) * tally.counts + np.repeat(of_pooled, sizes, axis=-1) * q
    return np.log(np.minimum(p, 1.0)), np.where(rows > 0, numerics.log_or_minus_inf(of_pooled * share * alpha), 0.0).T


def _pooled_proportions(tally: LevelTally, alpha: float) -> Floats:
    """(levels,) proportions of the levels in all classes, with ``alpha`` pseudo-counts of each."""
    sizes = np.diff(tally.offsets)
    rows = tally.n.sum(axis=0) + alpha * sizes
    share = divide_or_zero(np.ones_like(rows), rows)
    return np.repeat(share, sizes, axis=-1) * (tally.counts.sum(axis=0) + alpha)


def pooled_sampler(tally: LevelTally, alpha: float) -> Callable[["np.random.Generator"], Floats]:
    """A function that draws (class, levels) log-probabilities, whose mean probabilities are those of the estimate."""
    sizes, q = np.diff(tally.offsets), _pooled_proportions(tally, alpha)
    rows = tally.n.sum(axis=0) + alpha * sizes
    several, mass = _concentration_masses(_held_out_evidence(tally, alpha), rows)
    below = np.cumsum(mass / mass.sum(axis=0), axis=0)[:-1]

    def draw(rng: "np.random.Generator") -> Floats:
        s = rows * _CONCENTRATIONS[(rng.random(tally.n.shape) > below).sum(axis=0)]
        log_p = draw_log_prob(tally.counts + np.repeat(s, sizes, axis=-1) * q, tally.offsets, rng)
        return np.where(np.repeat(rng.random(len(sizes)) < several, sizes), log_p, np.log(q))

    return draw


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
    _, feature, counts, pooled = _nonempty_cells(tally)
    times = np.ones(len(counts))
    if len(counts) > _MAX_DIRECT_CELLS:  # of many levels few differ in more than their class: each is taken once
        order = np.lexsort((counts, pooled, feature))
        feature, counts, pooled = feature[order], counts[order], pooled[order]
        first = np.flatnonzero(np.r_[True, np.any([np.diff(key) != 0 for key in (feature, counts, pooled)], axis=0)])
        times = np.diff(np.append(first, len(counts))).astype(np.float64)
        feature, counts, pooled = feature[first], counts[first], pooled[first]
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
    of_counts, of_pooled = _mixture_weights(evidence, rows, left)
    return np.log(np.minimum(of_counts * after + of_pooled * (after.sum(axis=0) + alpha) / rows, 1.0)).T


def _mixture_weights(evidence: Floats, rows: Floats, n: Floats) -> tuple[Floats, Floats]:
    """(class, feature) the factors of the counts of a class and of the pooled proportions, over concentrations."""
    several, mass = _concentration_masses(evidence, rows)
    mass *= several / mass.sum(axis=0)
    pseudo = np.multiply.outer(_CONCENTRATIONS, rows)[:, None, :]
    factor = divide_or_zero(mass, pseudo + n)
    return factor.sum(axis=0), 1.0 - several + (factor * pseudo).sum(axis=0)  # not 1 - factor * n: rows may be many


def _concentration_masses(evidence: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """(feature,) the mass of more than one table; (concentration, class, feature) in proportion to that of each."""
    joint = evidence + _log_mass(rows)[:, None, :]
    several = 1.0 / (1.0 + np.exp(np.clip(-_log_sum(joint).sum(axis=0), -700.0, 700.0)))
    return several, np.exp(joint - joint.max(axis=0))


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
