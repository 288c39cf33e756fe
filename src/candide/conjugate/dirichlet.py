"""Counts under a Dirichlet, once for all families.

A Bernoulli column is two levels, a category is K, and a bag of words is one feature whose levels are the words:
all three are level counts under a Dirichlet.

>>> coin = LevelTally(np.array([[2.0, 3.0]]), np.array([0, 2]))  # two tails, three heads
>>> [np.exp(level_log_prob(coin, np.array([10.0, 10.0]), how))[0, 1].round(6).item() for how in ("mle", "map", "mean")]
[0.6, 0.521739, 0.52]
"""

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Codes, Floats
from candide.distributions.categorical import zero_if_impossible
from candide.tally import LevelTally
from candide.tally.base import divide_or_zero, subtract_sums


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
    """The same of two levels, counted apart: log-probabilities of no and of yes under Beta(a, b).

    >>> two, three, one = np.array([2.0]), np.array([3.0]), np.array([1.0])
    >>> [np.exp(p).round(3).item() for p in pair_log_prob(two, three, one, one, "mean")]  # (2 + 1) / 7, (3 + 1) / 7
    [0.429, 0.571]
    """
    counts = [np.maximum(n + pseudo_counts(prior, how), 0.0) for n, prior in ((no, b), (yes, a))]
    total = counts[0] + counts[1]
    log_no, log_yes = (np.where(total > 0, numerics.log_proportion(n, total), -np.log(2.0)) for n in counts)
    return log_no, log_yes


def _repeat_by_level(values: Floats, tally: LevelTally) -> Floats:
    """(class, feature) values once for each level; a single feature's broadcast as they are."""
    return values if values.shape[1] == 1 else np.repeat(values, np.diff(tally.offsets), axis=1)


def unseen_log_prob(tally: LevelTally, alpha: Floats, how: str) -> Floats:
    """(feature, class) log-probability of a level never seen: the prior's share for one level, -inf where it has none.

    A column without any level contributes 0.
    """
    extra = pseudo_counts(alpha, how)
    total = tally.per_feature(np.maximum(tally.counts + extra, 0.0))
    share = np.maximum(
        divide_or_zero(tally.per_feature(extra[None, :])[0], np.diff(tally.offsets)), 0.0
    )  # mean over the levels
    known = np.diff(tally.offsets) > 0
    return np.where(known, numerics.log_or_minus_inf(divide_or_zero(np.broadcast_to(share, total.shape), total)), 0.0).T


def held_out_levels(
    tally: LevelTally, alpha: Floats, how: str, codes: NDArray, y: Codes, weight: Floats | None
) -> Floats:
    """(row, class, feature) log-probability of each row's levels where the row itself is left out of the counts.

    Only its own cell changes, so no table is made anew. A missing value (a code below 0) contributes 0.
    """
    sizes, row = np.diff(tally.offsets), np.arange(len(codes))
    known = (codes >= 0) & (codes < sizes)
    place = np.where(known, tally.offsets[:-1] + codes, -1)  # -1: a cell that counts nothing, after the last
    counts, extra = (np.pad(a, [*[(0, 0)] * (a.ndim - 1), (0, 1)]) for a in (tally.counts, pseudo_counts(alpha, how)))
    smoothed = np.maximum(counts + extra, 0.0)
    held = smoothed[:, place].transpose(1, 0, 2)
    total = np.repeat(tally.per_feature(smoothed[:, :-1])[None], len(codes), axis=0)
    gone = np.where(known, 1.0 if weight is None else weight[:, None], 0.0)
    left = np.maximum(subtract_sums(counts[y[:, None], place], gone) + extra[place], 0.0)
    total[row, y] = subtract_sums(total[row, y], held[row, y] - left)
    held[row, y] = left
    log_prob = np.where(total > 0, numerics.log_proportion(held, total), -numerics.log_or_minus_inf(sizes))
    unseen = zero_if_impossible(unseen_log_prob(tally, alpha, how)).T
    return np.where(known[:, None, :], log_prob, np.where(codes[:, None, :] < 0, 0.0, unseen))


def level_evidence(tally: LevelTally, alpha: Floats) -> Floats:
    """(class, levels) log marginal likelihood of the sequence of levels, whose sums over a feature's levels are exact.

    log_rising(alpha_k, n_k) belongs to level k; the normaliser log_rising(A, n) is shared out by the counts n_k / n.
    """
    n, concentration = tally.n, tally.per_feature(alpha[None, :])
    norm = divide_or_zero(numerics.log_rising_factorial(concentration, n), n)
    return numerics.log_rising_factorial(alpha, tally.counts) - tally.counts * _repeat_by_level(norm, tally)


def draw_log_prob(shape: Floats, offsets: Codes, rng: "np.random.Generator") -> Floats:
    """(class, levels) log-probabilities drawn from Dirichlet distributions, one a class and column.

    >>> p = np.exp(draw_log_prob(np.array([[3e6, 1e6, 2e6, 2e6]]), np.array([0, 2, 4]), np.random.default_rng(0)))
    >>> p.round(2).tolist()
    [[0.75, 0.25, 0.5, 0.5]]
    """
    # A gamma variate of shape a is one of shape a + 1 times u**(1 / a): in logs small shapes do not fall to 0.
    logs = np.log(rng.standard_gamma(shape + 1.0)) + np.log(rng.random(shape.shape)) / shape
    starts, sizes = offsets[:-1], np.diff(offsets)
    some = sizes > 0
    top = np.repeat(np.maximum.reduceat(logs, starts[some], axis=1), sizes[some], axis=1)
    total = np.add.reduceat(np.exp(logs - top), starts[some], axis=1)
    return logs - top - np.log(np.repeat(total, sizes[some], axis=1))
