"""Tests of whether two samples of levels have the same distribution.

Common levels are compared by Pearson's chi-squared test with the rare levels pooled, or by Fisher's exact test where
two are left. Which levels are pooled depends only on the totals of both samples, so a level that only the second has
counts like one that only the first has: with a long tail, many new levels are no sign of drift. A second test compares
the rare levels by Pearson's statistic without pooling, with its exact mean and variance given the totals (Dawson,
1954), because with few rows per level it is far from chi-squared.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats

_MIN_EXPECTED = 5.0  # expected rows of a level, below which chi-squared is not reliable (Cochran, 1954)


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """Counts of levels in two samples, (sample, level)."""

    table: Floats
    single_rows: float = 0.0  # rows of the second sample beyond those in the table, each with a level of its own

    @cached_property
    def totals(self) -> Floats:
        """(level,) rows of both samples."""
        return self.table.sum(axis=0)

    @cached_property
    def sizes(self) -> Floats:
        """(sample,) rows."""
        return self._sum(np.ones(len(self.totals), bool))

    def _sum(self, chosen: NDArray[np.bool_]) -> Floats:
        return self.table[:, chosen].sum(axis=1) + np.array([0.0, self.single_rows])

    @cached_property
    def is_rare(self) -> NDArray[np.bool_]:
        """(level,) whether a level is pooled; levels with equal totals are treated equally."""
        none, used = np.zeros(len(self.totals), bool), self.totals > 0
        if not self.sizes.all():
            return none
        least = _MIN_EXPECTED * self.sizes.sum() / self.sizes.min()
        rare = used & (self.totals < least)
        pooled, common = self.totals[rare].sum() + self.single_rows, used & ~rare
        if pooled and pooled < least and common.any():
            rare = used & (self.totals <= self.totals[common].min())
        if rare.sum() + self.single_rows < 2 or (rare.sum() == used.sum() == 2 and not self.single_rows):
            return none
        return rare

    @cached_property
    def pooled(self) -> Floats:
        """(sample, level) the counts with rare levels pooled, in the last place."""
        common, rare = (self.totals > 0) & ~self.is_rare, self.is_rare
        if not rare.any() and not self.single_rows:
            return self.table[:, common]
        if not common.any() and len(set(self.totals[rare])) > 1:  # all are rare: the most frequent against the others
            frequent = rare & (self.totals == self.totals.max())
            return np.column_stack([self.table[:, frequent].sum(axis=1), self._sum(rare & ~frequent)])
        return np.column_stack([self.table[:, common], self._sum(rare)])

    def p_value_and_test(self) -> tuple[float, str]:
        """The p-value of both samples having one distribution, and the name of the test."""
        p, name = _pooled_test(self.pooled)
        rare = self._rare_p_value()
        if rare is None:
            return p, name
        return (rare, "chi-squared") if name == "none" else (min(1.0, 2 * min(p, rare)), name)

    def _rare_p_value(self) -> float | None:
        """The p-value of the rare levels having one distribution; None if no rare level occurs twice."""
        from scipy.special import chdtrc

        a, b = self.table[:, self.is_rare]
        t, (n, m) = a + b, self._sum(self.is_rare)
        rows, k = n + m, len(a) + self.single_rows
        if k < 2 or rows <= max(k, 3.0):
            return None
        if not (n and m):
            return 1.0  # the pooled test has the difference
        statistic = rows**2 / (n * m) * (n - (a * b / t).sum() - n**2 / rows)
        mean, variance = _pearson_moments(np.array([n, m]), t, self.single_rows)
        if not variance > 0:
            return 1.0
        return float(chdtrc(2 * mean**2 / variance, 2 * mean / variance * max(statistic, 0.0)))

    def expected_unseen(self) -> float:
        """Expected rows of the second sample at rare levels that the first lacks, given the totals."""
        t, (n, m) = self.totals[self.is_rare], self._sum(self.is_rare)
        if not n + m:
            return 0.0
        return float((t * (m / (n + m)) ** t).sum() + self.single_rows * m / (n + m))

    def stability_index(self, unseen: NDArray[np.bool_]) -> float:
        """The population stability index; ``unseen`` are the levels that the first sample could not have had.

        Rare levels count in two classes: those in the first sample, and the others, of which the first sample is
        given as many rows as a second one like it would have.
        """
        table = self.pooled
        if self.is_rare.any() or self.single_rows:
            n, m = self._sum(self.is_rare)
            new = self._sum(self.is_rare & unseen)[1]
            part = min(self.expected_unseen() / m, 1.0) if m else 0.0
            split = np.array([[n * (1 - part), n * part], [m - new, new]])
            table = np.column_stack([self.table[:, (self.totals > 0) & ~self.is_rare], split])
        return stability_index(table)


def stability_index(table: Floats) -> float:
    """The population stability index of counts (before and after, level)."""
    smooth = (table + 0.5) / (table.sum(axis=1, keepdims=True) + 0.5 * table.shape[1])  # no proportion is 0
    each = (smooth[1] - smooth[0]) * np.log(smooth[1] / smooth[0])
    return float(np.where(table.sum(axis=0) > 0, each, 0.0).sum())


def pooled_levels_test(table: Floats) -> tuple[float, str]:
    """The p-value of common levels having one distribution, the rare ones pooled, and the name of the test."""
    return _pooled_test(LevelCounts(table).pooled)


def _pooled_test(table: Floats) -> tuple[float, str]:
    from scipy.special import chdtrc  # scipy.stats takes half a second to import

    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] < 2 or (table.sum(axis=1) == 0).any():
        return 1.0, "none"
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    if table.shape[1] == 2 and expected.min() < _MIN_EXPECTED:
        from scipy.stats import fisher_exact

        return float(fisher_exact(np.round(table).astype(int)).pvalue), "Fisher"
    return float(chdtrc(table.shape[1] - 1, ((table - expected) ** 2 / expected).sum())), "chi-squared"


def _pearson_moments(sizes: Floats, totals: Floats, singles: float) -> tuple[float, float]:
    """The mean and the variance of Pearson's statistic, given the rows of each sample and of each level (Dawson, 1954).

    >>> mean, variance = _pearson_moments(np.array([3e6, 2e6]), np.array([1e6, 4e6]), 0.0)
    >>> round(mean, 4), round(variance, 4)  # with many rows, those of chi-squared with one degree of freedom
    (1.0, 2.0)
    """
    rows, r, k = float(sizes.sum()), len(sizes), len(totals) + singles

    def parts(number: float, inverse: float) -> tuple[float, float]:
        return (number - 1) * (rows - number) / (rows - 1), (rows * inverse - number**2) / (rows - 2)

    (v, w), (x, y) = parts(r, float((1 / sizes).sum())), parts(k, float((1 / totals).sum()) + singles)
    variance = 2 * rows / (rows - 3) * (v - w) * (x - y) + rows**2 / (rows - 1) * w * y
    return rows / (rows - 1) * (r - 1) * (k - 1), variance
