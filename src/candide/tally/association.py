"""Association: the classical tests that a column depends on the class, from tallies alone.

Numbers: Welch's t of two classes (the second's mean against the first's), the F of the one-way analysis of variance
of more. Levels: Pearson's chi-squared of the table. Counts: the chi-squared of the totals against the shares of the
classes. Amounts: the likelihood ratio G of exponentials. Weights count as numbers of rows.

>>> tally = Moments(np.array([[4.0], [4.0]]), np.array([[0.0], [3.0]]), np.array([[6.0], [6.0]]))
>>> [test.name, *(round(float(v[0]), 4) for v in (test.statistic, test.p_value))] if (
...     test := mean_test(tally)
... ) else None
['t', 3.0, 0.024]
"""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.tally import LevelTally, Moments, Sums
from candide.tally.base import divide_or_zero


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
    """Whether the classes have one mean."""
    return _welch(tally) if len(tally.n) == 2 else _one_way(tally)


def _welch(tally: Moments) -> AssociationTest:
    from scipy.special import stdtr

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
        return AssociationTest(
            "F", np.where(enough, f, np.nan), np.where(enough, fdtrc(groups - 1.0, n - groups, f), np.nan)
        )


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
    """Whether each class has the share of a column's total that it has of the rows."""
    share, total = divide_or_zero(tally.n, tally.n.sum(axis=0)), tally.total.sum(axis=0)
    expected = share * total
    return _chi_squared(
        "chi2", divide_or_zero((tally.total - expected) ** 2, expected).sum(axis=0), (share > 0).sum(axis=0) - 1
    )


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
