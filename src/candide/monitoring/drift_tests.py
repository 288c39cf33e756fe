"""Drift: whether new rows still have the laws of those that were counted, column by column, from two tallies alone.

Levels are compared by :mod:`candide.monitoring.level_tests`; "missing" is a level too. Numbers that were not put in
bins are compared by their mean (the t-tests of Welch, 1947, and of Student: of skewed numbers each alone finds a
difference
too often where one sample is small, in opposite directions, and so both must find one), and by the logarithm of their
variance (Layard, 1973), sums by their rate. Variances are compared from eight values on, and rates from sixteen:
fewer do not tell how far they stray. That depends on tails that two tallies do not tell of: the rows at hand do, those
after and, if given, those before.
With many columns some seem to have moved by chance: p-values are adjusted so that all of them together are wrong as
seldom as one would be (Holm, 1979). How far a law moved is the symmetric Kullback-Leibler divergence, in nats, known as
the population stability index: of as many rows as one likes every move is significant, and this says whether it is
large.

>>> before = LevelTally(np.array([[500.0, 500.0]]), np.array([0, 2]))
>>> after = LevelTally(np.array([[300.0, 700.0]]), np.array([0, 2]))
>>> [one] = compare_columns(before, after, rows=(1000.0, 1000.0))
>>> one.p_value < 1e-9, round(one.stability_index, 3), one.test_name, one.level_index
(True, 0.169, 'chi-squared', 0)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np

from candide.data.blocks import Block, Floats, to_dense
from candide.monitoring.level_tests import LevelCounts, pooled_levels_test, stability_contributions
from candide.tally import CoMoments, LevelTally, Moments, Sums, TallySpec

Pair = tuple[float, float]  # before, after
MISSING, UNSEEN = -1, -2  # in the place of a level
_NORMAL_SQUARES_KURTOSIS = 15.0  # the kurtosis of the squares of normal values
_FEWEST = 8  # values of each sample, below which nothing is said of variances
_FEWEST_OF_RATES = 16  # the same of rates, whose values may be far more skewed
_OF_MEAN = 12.0  # over the number of values: what the doubt of a mean adds to the spread of squares, at the least
_ASSUMED_OTHER_SHARE = (
    0.01  # share of other values assumed in a column of numbers, where only its mean and variance are known
)


@dataclass(frozen=True, eq=False)
class UnseenLevels:
    """Rows of each new level of a column, one by one as far as these were counted, and the rows of all the others."""

    counts: Floats
    other_rows: float = 0.0

    @property
    def n_rows(self) -> float:
        """The rows."""
        return float(self.counts.sum()) + self.other_rows


@dataclass(frozen=True)
class DriftTest:
    """How far the law of one column moved, how unlikely that is by chance, and what tells how."""

    p_value: float
    stability_index: float
    test_name: str
    values: dict[str, Pair]
    level_index: int | None = None  # the level whose share moved most; below 0 missing, or never met


@singledispatch
def collect_tail_values(tally: Any, block: Block, spec: TallySpec) -> Floats:
    """(row, column) what was tallied of rows, where its tails have a part in a test; else no column."""
    return np.empty((block.shape[0], 0))


@collect_tail_values.register(Moments)
@collect_tail_values.register(Sums)
def _(tally: Any, block: Block, spec: TallySpec) -> Floats:
    return np.asarray(spec.tally_values(to_dense(block)), np.float64)


@collect_tail_values.register
def _(tally: CoMoments, block: Block, spec: TallySpec) -> Floats:
    x = np.array(spec.tally_values(to_dense(block)), np.float64)
    x[np.isnan(x).any(axis=1)] = np.nan  # such rows are not counted
    return x


@singledispatch
def compare_columns(
    before: Any, after: Any, rows: Pair, unseen: Sequence[UnseenLevels] = (), seen: Sequence[Floats] = ()
) -> list[DriftTest] | None:
    """The moves of each column of two tallies of one class, of so many rows; None of a kind that cannot tell.

    ``unseen`` has the levels of each column that were not there before; ``seen`` the rows ``at_hand``, of one side or
    of both, the new ones last.
    """
    return None


@compare_columns.register
def _(
    before: LevelTally, after: LevelTally, rows: Pair, unseen: Sequence[UnseenLevels] = (), seen: Sequence[Floats] = ()
) -> list[DriftTest]:
    found, ends = [], before.offsets.tolist()
    for j, (start, stop) in enumerate(pairwise(ends)):
        a, b = (tally.counts[0, start:stop] for tally in (before, after))
        new = unseen[j] if len(unseen) else UnseenLevels(np.empty(0))
        missing = np.maximum([rows[0] - a.sum(), rows[1] - b.sum() - new.n_rows], 0.0)
        found.append(_test_levels(np.array([a, b]), missing, new))
    return found


@compare_columns.register(Moments)
@compare_columns.register(CoMoments)
def _(
    before: Any, after: Any, rows: Pair, unseen: Sequence[UnseenLevels] = (), seen: Sequence[Floats] = ()
) -> list[DriftTest]:
    each = zip(*(tally.n[0] for tally in (before, after)), *(tally.mean[0] for tally in (before, after)),
               *(tally.m2[0] for tally in (before, after)), strict=True)  # fmt: skip
    return [
        _test_numbers((n, m), (x, y), (s, t), rows, [side[:, j] for side in seen])
        for j, (n, m, x, y, s, t) in enumerate(each)
    ]


@compare_columns.register
def _(
    before: Sums, after: Sums, rows: Pair, unseen: Sequence[UnseenLevels] = (), seen: Sequence[Floats] = ()
) -> list[DriftTest]:
    each = zip(before.n[0], after.n[0], before.total[0], after.total[0], strict=True)
    alone = [all(not np.any(np.nan_to_num(side[:, j]) % 1) for side in seen) for j in range(before.n.shape[1])]
    return [
        _test_rates((n, m), (x, y), rows, _relative_values(seen, j), alone[j]) for j, (n, m, x, y) in enumerate(each)
    ]


def _test_levels(table: Floats, missing: Floats, new: UnseenLevels) -> DriftTest:
    """Of counts (before and after, level), of rows without a value, and of new levels."""
    k = table.shape[1]
    others = np.stack([np.zeros_like(new.counts), new.counts])
    counts = LevelCounts(np.column_stack([table, missing, others]), new.other_rows)
    p, test = counts.p_value_and_test()
    sizes = np.maximum(counts.sizes, 1e-300)[:, None]
    shares = np.column_stack([table, missing, [0.0, new.n_rows]]) / sizes
    far = np.abs(shares[1] - shares[0])
    far[-1] = abs(far[-1] - counts.expected_unseen() / sizes[1, 0])  # of a long tail some levels are always new
    at = int(far.argmax())
    values = {"share": _pair(shares[:, at]), "missing": _pair(shares[:, k])}
    moved = counts.stability_index(np.arange(counts.table.shape[1]) > k)
    return DriftTest(p, moved, test, values, at if at < k else MISSING if at == k else UNSEEN)


def _test_numbers(count: Pair, mean: Pair, m2: Pair, rows: Pair, seen: Sequence[Floats]) -> DriftTest:
    """Of two columns of numbers by their moments; three tests, of which the least p-value counts three times."""
    (n, m), (x, y) = count, mean
    there = np.array([[n, max(rows[0] - n, 0.0)], [m, max(rows[1] - m, 0.0)]])
    tests = [pooled_levels_test(there)[0]]
    moved, values = 0.0, {} if not (n and m) else {"mean": (float(x), float(y))}
    if n > 1 and m > 1:
        u, v = (_variance(*side) for side in zip(count, mean, m2, strict=True))
        values["sd"] = float(np.sqrt(u)), float(np.sqrt(v))
        if u > 0 and v > 0:
            tests.append(_means_test(count, mean, (u, v)))
            if min(n, m) >= _FEWEST:
                tests.append(_variances_test((n, m), (u, v), _squared_deviations(seen)))
            moved = float(0.5 * (u / v + v / u - 2) + 0.5 * (x - y) ** 2 * (1 / u + 1 / v))
        elif x != y or u != v:
            tests += [_means_test(count, mean, (u, v)) if u + v > 0 else 1.0, _constant_test(count, mean, (u, v), seen)]
            moved = float("inf")
    values["missing"] = _missing_shares(count, rows)
    moved += float(stability_contributions(there).sum())
    return DriftTest(min(1.0, len(tests) * min(tests)), moved, "Welch and Layard", values)


def _variance(n: float, mean: float, m2: float) -> float:
    """The variance; 0 where it is no more than rounding."""
    variance = m2 / (n - 1)
    return float(variance) if variance > 1e-30 * mean**2 else 0.0


def _means_test(count: Pair, mean: Pair, variance: Pair) -> float:
    """The larger p-value of the t-tests with variances of their own (Welch) and with a pooled one."""
    from scipy.special import stdtr

    (n, m), (u, v) = count, variance
    a, b, far = u / n, v / m, abs(mean[0] - mean[1])
    free = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
    pooled = ((n - 1) * u + (m - 1) * v) / (n + m - 2)
    welch = stdtr(free, -far / np.sqrt(a + b))
    return float(2 * max(welch, stdtr(n + m - 2, -far / np.sqrt(pooled * (1 / n + 1 / m)))))


def _variances_test(count: Pair, variance: Pair, squares: Floats) -> float:
    """The p-value of two variances (Layard, 1973), by the squares at hand.

    The logarithm of a variance of few values strays as that of a chi-squared does, more than its square root law says,
    and by the doubt of the mean at least, also where the squares are all alike.
    """
    from scipy.special import polygamma

    draws = tuple(float(2 / polygamma(1, (n - 1) / 2)) for n in count)
    return mean_difference_p_value((draws[0], draws[1]), variance, squares, least=_OF_MEAN / min(count))


def _constant_test(count: Pair, mean: Pair, variance: Pair, seen: Sequence[Floats]) -> float:
    """The p-value of one sample, or each, having a single value.

    How many rows of the other have another value is counted where they are at hand. Else it is the least share that
    its mean and variance allow (Cauchy-Schwarz), and some at least.
    """
    one = 0 if variance[0] <= 0 else 1  # the sample with a single value
    value, other = mean[one], 1 - one
    at_hand = seen[0] if other == 0 and len(seen) > 1 else seen[-1] if other == 1 and len(seen) else np.empty(0)
    at_hand = at_hand[~np.isnan(at_hand)]
    far = (mean[other] - value) ** 2
    share = max(far / (far + variance[other]), _ASSUMED_OTHER_SHARE)
    if len(at_hand):
        share = float((~np.isclose(at_hand, value, rtol=1e-12, atol=0.0)).mean())
    elif share < 1:
        return float((1 - share) ** count[one])
    different = share * count[other]
    return pooled_levels_test(np.array([[count[one], 0.0], [count[other] - different, different]]))[0]


def _missing_shares(count: Pair, rows: Pair) -> Pair:
    """The share of rows without a value."""
    a, b = (float(1 - have / of) if of else float("nan") for have, of in zip(count, rows, strict=True))
    return a, b


def _test_rates(n: Pair, total: Pair, rows: Pair, values: Floats, alone: bool) -> DriftTest:
    """Of two sums, of events or of amounts: events of which each comes ``alone`` are binomial, given how many; others,
    and amounts, stray as those of the rows at hand do."""
    from scipy.stats import binomtest

    if not all(n):  # of no value there is no rate
        there = np.array([[have, max(of - have, 0.0)] for have, of in zip(n, rows, strict=True)])
        p, test = pooled_levels_test(there)
        return DriftTest(p, float(stability_contributions(there).sum()), test, {"missing": _missing_shares(n, rows)})
    a, b = (max(sum_ / of, 0.0) for sum_, of in zip(total, n, strict=True))
    whole = round(total[0]), round(total[1])
    p, test = 1.0, "binomial"
    if sum(whole) and (alone or not (a > 0 and b > 0)):
        p = float(binomtest(whole[1], sum(whole), n[1] / (n[0] + n[1])).pvalue)
    if min(n) < _FEWEST_OF_RATES:
        p, test = 1.0, "rates"
    elif a > 0 and b > 0:
        p, test = max((mean_difference_p_value(n, (a, b), values), "rates"), (p, test) if alone else (0.0, test))
    moved = float((b - a) * np.log(b / a)) if a > 0 and b > 0 else 0.0 if a == b else float("inf")
    return DriftTest(p, moved, test, {"mean": (float(a), float(b))})


def mean_difference_p_value(n: Pair, mean: Pair, values: Floats, least: float = 0.0) -> float:
    """How likely means of so many draws of one law lie so far apart by chance; ``values`` >= 0 are draws of that law.

    Their variance, in units of the squared mean, is taken to be ``least`` or more.

    The logarithm of the ratio strays as the values do, and how much these do is known the less the longer their tail
    (Satterthwaite, 1946). Of a long tail one draw may do it that nobody has seen (Nagaev, 1979): its chance is that of
    a Pareto tail, whose exponent the largest values tell with so much doubt as they are few (Hill, 1975).

    >>> normal = np.random.default_rng(0).normal(size=1000) ** 2
    >>> (
    ...     round(mean_difference_p_value((1000, 1000), (1.0, 1.2), normal), 3),
    ...     round(mean_difference_p_value((1000, 1000), (1.0, 1.2), normal**3), 3),
    ... )
    (0.014, 1.0)
    """
    from scipy.special import stdtr

    if len(values) < 2:
        return 1.0  # nothing tells how far they stray
    some = values / values.mean()
    own, n_some = float(some.var(ddof=1)), len(some)
    spread = max(own, least)
    if not spread > 0:
        return float(np.isclose(mean[0], mean[1]))
    kurtosis = max(
        float(((some - 1.0) ** 4).mean()) / float(some.var()) ** 2 if own > 0 else 0.0, _NORMAL_SQUARES_KURTOSIS
    )
    far = float(abs(np.log(mean[0] / mean[1]))) / np.sqrt(spread * (1 / n[0] + 1 / n[1]))
    p = 2 * float(stdtr(2 * n_some / (kurtosis - 1), -far))
    draws = n[0] if mean[0] > mean[1] else n[1]
    return min(1.0, p + draws * _tail_probability(some, draws * (max(mean) / min(mean) - 1)))


def _tail_probability(values: Floats, far: float) -> float:
    """The chance that a draw lies beyond all that was seen: the mean over exponents that the largest values leave."""
    k = int(np.ceil(np.sqrt(len(values)))) if len(values) > 1 else 0  # as many, and as small a share, as may be
    if len(values) <= k:
        return 1.0
    top = np.partition(values, -k - 1)[-k - 1 :]
    least = float(top.min())
    if far <= least or least <= 0:
        return 1.0
    logs = float(np.log(top / least).sum())
    return k / len(values) * (1 + float(np.log(far / least)) / logs) ** -k if logs > 0 else 0.0


def _relative_values(seen: Sequence[Floats], j: int) -> Floats:
    """What was seen of a column, each side relative to its mean."""
    sides = [side[:, j][~np.isnan(side[:, j])] for side in seen]
    return np.concatenate([np.empty(0), *(side / side.mean() for side in sides if side.sum() > 0)])


def _squared_deviations(seen: Sequence[Floats]) -> Floats:
    """The squares of what was seen of a column about the mean of its side."""
    sides = [side[~np.isnan(side)][:, None] for side in seen]
    return _relative_values([(side - side.mean()) ** 2 for side in sides if len(side)], 0)


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """P-values of which all together are wrong as seldom as one would be (Holm, 1979).

    >>> adjust_p_values([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values, kind="stable")
    found = np.empty(len(values))
    found[order] = np.maximum.accumulate(np.minimum(values[order] * np.arange(len(values), 0, -1), 1.0))
    return found.tolist()


def _pair(values: Floats) -> Pair:
    return float(values[0]), float(values[1])
