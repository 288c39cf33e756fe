"""Association of a column and the class, from tallies alone: classical tests, and mutual information in nats.

Tests. Numbers: Welch's t of two classes (the second's mean against the first's), the F of the one-way analysis of
variance of more. Levels: Pearson's chi-squared of the table. Counts: the chi-squared of the totals against the class
proportions. Amounts: the likelihood ratio G of exponentials. Weights count as numbers of rows.

Information. Levels and words: the plug-in value of the counted table, exact. Numbers: the information of the mixture
that the tally describes (normals with the mean and variance of each class; Poissons; exponentials), by numerical
integration of the divergence of p(class | x) from p(class), which is bounded, so that a class with very little spread
does no harm.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import numerics
from candide.data.blocks import Floats
from candide.tally import LevelTally, Moments, Sums
from candide.tally.base import divide_or_zero

_CHUNK_CELLS = 1 << 15  # (node, class, feature) cells worked at once: they stay in cache
_MAX_CLASSES = 256  # the work grows with their square
_MAX_EVENTS = 4096  # counts up to which a sum over all of them is worth its while
_Z = np.linspace(-8.5, 8.5, 341)  # of a standard normal: the trapezoid rule converges faster than any power
_Z_WEIGHT = np.exp(-0.5 * _Z**2) / np.sqrt(2 * np.pi) * (_Z[1] - _Z[0])
_U = np.linspace(-36.0, 4.5, 406)  # log of a standard exponential: a ratio of rates is a shift here
_U_WEIGHT = np.exp(_U - np.exp(_U)) * (_U[1] - _U[0])


@dataclass(frozen=True, eq=False)
class AssociationTest:
    """A statistic of each feature and its p-value; NaN where there are too few values."""

    name: str
    statistic: Floats  # (feature,)
    p_value: Floats  # (feature,)


@singledispatch
def association_test(tally: Any) -> AssociationTest | None:
    """The usual test of a kind of tally; None where there is none that holds for all its event models."""
    return None


@association_test.register
def mean_test(tally: Moments) -> AssociationTest:
    """Whether the classes have one mean: Welch's test of two classes, an analysis of variance of more."""
    from scipy.special import stdtr

    if len(tally.n) != 2:
        return _one_way(tally)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = np.where(tally.n > 1, tally.m2 / (tally.n - 1) / tally.n, np.nan)  # of the means' errors
        gap, error = tally.mean[1] - tally.mean[0], square.sum(axis=0)
        t = np.where((gap == 0) & (error == 0), 0.0, gap / np.sqrt(error))
        df = 1.0 / ((square / error) ** 2 / (tally.n - 1)).sum(axis=0)  # whatever the units
        p = 2 * stdtr(df, -np.abs(t))
    p = np.where(error == 0, np.where(gap == 0, 1.0, 0.0), p)  # no spread in either class: certain either way
    return AssociationTest("t", t, p)


def _one_way(tally: Moments) -> AssociationTest:
    from scipy.special import fdtrc

    pooled = tally.pool()
    between = (tally.n * (tally.mean - pooled.mean) ** 2).sum(axis=0)
    within, groups, n = tally.m2.sum(axis=0), (tally.n > 0).sum(axis=0), tally.n.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        f = (between / (groups - 1)) / (within / (n - groups))
        f = np.where((between == 0) & (within == 0), 0.0, f)
        enough = (groups > 1) & (n > groups)
        p = np.where(enough, fdtrc(groups - 1.0, n - groups, f), np.nan)
        return AssociationTest("F", np.where(enough, f, np.nan), p)


@association_test.register
def level_test(tally: LevelTally) -> AssociationTest:
    """Pearson's chi-squared; classes and levels that never occur leave the table."""
    n_class = np.repeat(tally.n, np.diff(tally.offsets), axis=1)
    n_level = tally.counts.sum(axis=0)
    expected = divide_or_zero(n_class * n_level, n_class.sum(axis=0))
    cells = divide_or_zero((tally.counts - expected) ** 2, expected).sum(axis=0, keepdims=True)
    levels = tally.per_feature((n_level > 0).astype(np.float64)[None, :])[0]
    return _chi_squared("chi2", tally.per_feature(cells)[0], ((tally.n > 0).sum(axis=0) - 1) * (levels - 1))


def total_test(tally: Sums) -> AssociationTest:
    """Whether each class has the same proportion of a column's total as of the rows."""
    proportion = divide_or_zero(tally.n, tally.n.sum(axis=0))
    expected = proportion * tally.total.sum(axis=0)
    statistic = divide_or_zero((tally.total - expected) ** 2, expected).sum(axis=0)
    return _chi_squared("chi2", statistic, (proportion > 0).sum(axis=0) - 1)


def rate_test(tally: Sums) -> AssociationTest:
    """Twice the log-likelihood that a rate for each class gains over one for all."""
    mean, pooled = divide_or_zero(tally.total, tally.n), divide_or_zero(tally.total.sum(axis=0), tally.n.sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(tally.n > 0, 2 * tally.n * (np.log(pooled) - np.log(mean)), 0.0).sum(axis=0)
    return _chi_squared("G", np.where(pooled > 0, np.maximum(gain, 0.0), np.nan), (tally.n > 0).sum(axis=0) - 1)


def _chi_squared(name: str, statistic: Floats, df: Floats) -> AssociationTest:
    from scipy.special import chdtrc

    p = np.where(df > 0, chdtrc(np.maximum(df, 1), statistic), np.nan)
    return AssociationTest(name, np.where(df > 0, statistic, np.nan), p)


@singledispatch
def mutual_information(tally: Any) -> Floats | None:
    """(feature,) information by the kind of tally; None where it depends on the event model."""
    return None


@mutual_information.register
def level_information(tally: LevelTally) -> Floats:
    """(feature,) of the table of classes and levels."""
    n_class = np.repeat(tally.n, np.diff(tally.offsets), axis=1)
    n_level, n = tally.counts.sum(axis=0), n_class.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # p / (p_class p_level) taken as one ratio: its log is small where the two are nearly independent
        logs = np.log(tally.counts * n / (n_class * n_level))
        cells = np.where(tally.counts > 0, tally.counts / n * logs, 0.0)
    return np.maximum(tally.per_feature(cells.sum(axis=0, keepdims=True))[0], 0.0)


def word_information(tally: Sums) -> Floats:
    """(feature,) of the class and whether the next word is this one."""
    others = np.maximum(tally.total.sum(axis=1, keepdims=True) - tally.total, 0.0)
    pairs = np.stack([tally.total, others], axis=2).reshape(len(others), -1)
    return level_information(LevelTally(pairs, np.arange(0, pairs.shape[1] + 1, 2)))


@mutual_information.register
def normal_information(tally: Moments) -> Floats | None:
    """(feature,) of the mixture of normals; a class without any spread is a point that only it and its equals hold."""
    sd = np.sqrt(divide_or_zero(tally.m2, tally.n))
    return _mixture_information(
        divide_or_zero(tally.n, tally.n.sum(axis=0)),
        lambda c, j: (tally.mean[c, j] + sd[c, j] * _Z[:, None], _Z_WEIGHT[:, None]),
        lambda x, c, j: _log_normal(x, tally.mean[:, None, j], sd[:, None, j], sd[c, j] == 0),
        len(_Z),
    )


def exponential_information(tally: Sums) -> Floats | None:
    """(feature,) of the mixture of exponentials."""
    rate = divide_or_zero(tally.n, tally.total)
    if not (rate[tally.n > 0] > 0).all():
        return None
    safe = np.where(rate > 0, rate, 1.0)
    return _mixture_information(
        divide_or_zero(tally.n, tally.n.sum(axis=0)),
        lambda c, j: (np.exp(_U)[:, None] / safe[c, j], _U_WEIGHT[:, None]),
        lambda x, c, j: np.log(safe[:, None, j]) - safe[:, None, j] * x,
        len(_U),
    )


def poisson_information(tally: Sums) -> Floats | None:
    """(feature,) of the mixture of Poissons; None where counts are too large to sum over."""
    rate = divide_or_zero(tally.total, tally.n)
    highest = float(rate.max(initial=0.0))

    def log_density(x: Floats, j: slice) -> Floats:
        return numerics.xlogy(x, rate[:, None, j]) - rate[:, None, j] - numerics.gammaln(x + 1.0)

    return count_information(tally.n, log_density, highest + 12 * np.sqrt(highest) + 40)


def count_information(n: Floats, log_density: Callable[[Floats, slice], Floats], last: float) -> Floats | None:
    """(feature,) of a mixture of count distributions up to ``last``, beyond which there is next to nothing.

    ``log_density`` gives (class, node, feature) log-probabilities at nodes (node, 1) of some of the features.
    """
    if not last <= _MAX_EVENTS:
        return None
    x = np.arange(int(last) + 1.0)[:, None]
    return _mixture_information(
        divide_or_zero(n, n.sum(axis=0)),
        lambda c, j: (x, np.exp(log_density(x, j)[c])),
        lambda x, c, j: log_density(x, j),
        len(x),
    )


def _log_normal(x: Floats, mean: Floats, sd: Floats, at_point: NDArray[np.bool_]) -> Floats:
    """(class, node, feature). Without spread a density is infinite at its point, which has no width elsewhere."""
    if sd.all():
        z = (x - mean) / sd
        return -0.5 * z * z - np.log(sd)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (x - mean) / sd
        return np.where(sd > 0, -0.5 * z * z - np.log(sd), np.where((x == mean) & at_point, np.inf, -np.inf))


def _mixture_information(
    proportion: Floats,
    nodes: Callable[[int, slice], tuple[Floats, Floats]],
    log_density: Callable[[Floats, int, slice], Floats],
    n_nodes: int,
) -> Floats | None:
    """Sum over classes c of proportion_c times the mean, under c, of KL(p(class | x) || proportion)."""
    n_classes, n_features = proportion.shape
    if n_classes > _MAX_CLASSES:
        return None
    out = np.zeros(n_features)
    step = max(1, _CHUNK_CELLS // (n_classes * n_nodes))
    for start in range(0, n_features, step):
        j = slice(start, min(start + step, n_features))
        for c in range(n_classes):
            x, weight = nodes(c, j)
            divergence = _divergence(log_density(x, c, j), proportion[:, None, j])
            out[j] += proportion[c, j] * (weight * divergence).sum(axis=0)
    return np.maximum(out, 0.0)


def _divergence(log_density: Floats, proportion: Floats) -> Floats:
    """(node, feature) KL(p(class | x) || proportion) from (class, node, feature) log-densities."""
    point = np.isposinf(log_density)
    if point.any():  # infinitely high: the classes that have the point share it, all others have none of it
        log_density = np.where(point, 0.0, np.where(point.any(axis=0), -np.inf, log_density))
    if not proportion.all():
        log_density = np.where(proportion > 0, log_density, -np.inf)
    top = log_density.max(axis=0)
    nowhere = np.isneginf(top)
    # exp() of the lowest is nought, as of -inf, and may be multiplied by it
    below = np.maximum(log_density - np.where(nowhere, 0.0, top), -800.0)
    joint = proportion * np.exp(below)
    total = joint.sum(axis=0) + nowhere
    joint *= below
    return joint.sum(axis=0) / total - np.log(total)
