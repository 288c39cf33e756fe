"""Tests of whether a column has the same distribution in two samples, from two tallies of one class.

Levels, "missing" included, are compared by :mod:`candide.monitoring.level_tests`.

Numbers: their means, by the t-tests of Welch (1947) and Student. On skewed numbers each alone rejects too often if one
sample is small, in opposite directions, so both must reject. Their variances by the logarithm (Layard, 1973), from
eight values on. Sums: by their rates, from sixteen values on. How far these stray depends on tails that tallies do not
have; sampled rows do.

P-values are adjusted for the number of columns (Holm, 1979). The size of a change is the population stability index,
which is the symmetric Kullback-Leibler divergence: with enough rows every change is significant.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np

from candide.data.blocks import Block, Floats, to_dense
from candide.monitoring.level_tests import LevelCounts, pooled_levels_test, stability_index
from candide.tally import CoMoments, LevelTally, Moments, Sums, TallySpec

Pair = tuple[float, float]  # before, after
MISSING, UNSEEN = -1, -2  # instead of the index of a level
_NORMAL_SQUARES_KURTOSIS = 15.0  # of the squares of normal values
_MIN_VARIANCE_VALUES = 8  # of each sample
_MIN_RATE_VALUES = 16  # the same for rates, whose values may be far more skewed
_MEAN_UNCERTAINTY = 12.0  # over the number of values: the least that estimating the mean adds to the spread of squares
_ASSUMED_OTHER_FRACTION = 0.01  # of other values in a column of which only mean and variance are known


@dataclass(frozen=True, eq=False)
class UnseenLevels:
    """Rows of each new level of a column, as far as these were counted, and the rows of all others."""

    counts: Floats
    other_rows: float = 0.0

    @property
    def n_rows(self) -> float:
        return float(self.counts.sum()) + self.other_rows


@dataclass(frozen=True)
class DriftTest:
    """How far the distribution of a column moved, how likely that is by chance, and its summaries."""

    p_value: float
    stability_index: float
    test_name: str
    values: dict[str, Pair]
    level_index: int | None = None  # of the level whose proportion changed most; or MISSING, UNSEEN


@singledispatch
def collect_tail_values(tally: Any, block: Block, spec: TallySpec) -> Floats:
    """(row, column) the tallied values, if a test uses their tails; else no column."""
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
    before: Any, after: Any, rows: Pair, unseen: Sequence[UnseenLevels] = (), sampled: Sequence[Floats] = ()
) -> list[DriftTest] | None:
    """Test each column of two tallies of one class, of so many rows; None for a tally that has no test.

    ``unseen`` has the new levels of each column; ``sampled`` the tail values of rows after, or before and after.
    """
    return None


@compare_columns.register
def _(before: LevelTally, after: LevelTally, rows: Pair, unseen: Any = (), sampled: Any = ()) -> list[DriftTest]:
    tests = []
    for j, (start, stop) in enumerate(pairwise(before.offsets.tolist())):
        table = np.array([tally.counts[0, start:stop] for tally in (before, after)])
        new = unseen[j] if len(unseen) else UnseenLevels(np.empty(0))
        missing = np.maximum(np.array(rows) - table.sum(axis=1) - [0.0, new.n_rows], 0.0)
        k, others = table.shape[1], np.stack([np.zeros_like(new.counts), new.counts])
        counts = LevelCounts(np.column_stack([table, missing, others]), new.other_rows)
        p, test = counts.p_value_and_test()
        sizes = np.maximum(counts.sizes, 1e-300)[:, None]
        proportions = np.column_stack([table, missing, [0.0, new.n_rows]]) / sizes
        change = np.abs(proportions[1] - proportions[0])
        change[-1] = abs(change[-1] - counts.expected_unseen() / sizes[1, 0])  # a long tail always has new levels
        at = int(change.argmax())
        values = {name: _pair(proportions[:, i]) for name, i in (("share", at), ("missing", k))}
        index = counts.stability_index(np.arange(counts.table.shape[1]) > k)
        tests.append(DriftTest(p, index, test, values, {k: MISSING, k + 1: UNSEEN}.get(at, at)))
    return tests


@compare_columns.register(Moments)
@compare_columns.register(CoMoments)
def _(before: Any, after: Any, rows: Pair, unseen: Any = (), sampled: Any = ()) -> list[DriftTest]:
    return [
        _test_numbers(n, mean, m2, rows, [side[:, j] for side in sampled])
        for j, (n, mean, m2) in enumerate(_pair_up(before, after, "n", "mean", "m2"))
    ]


@compare_columns.register
def _(before: Sums, after: Sums, rows: Pair, unseen: Any = (), sampled: Any = ()) -> list[DriftTest]:
    return [
        _test_rates(n, total, rows, [side[:, j] for side in sampled])
        for j, (n, total) in enumerate(_pair_up(before, after, "n", "total"))
    ]


def _pair_up(before: Any, after: Any, *names: str) -> Iterator[Any]:
    """Statistics of two tallies for each column: of each name a pair, before and after."""
    pairs = [np.stack([getattr(tally, name)[0] for tally in (before, after)]).T for name in names]
    return zip(*pairs, strict=True)


def _test_numbers(count: Pair, mean: Pair, m2: Pair, rows: Pair, sampled: Sequence[Floats]) -> DriftTest:
    """Test two columns of numbers by their moments: the least of up to three p-values, times their number."""
    (n, m), (x, y), present = count, mean, _presence_table(count, rows)
    p_values = [pooled_levels_test(present)[0]]
    index, values = 0.0, {} if not (n and m) else {"mean": (float(x), float(y))}
    if n > 1 and m > 1:
        u, v = (_variance(*side) for side in zip(count, mean, m2, strict=True))
        values["sd"] = float(np.sqrt(u)), float(np.sqrt(v))
        if u > 0 and v > 0:
            p_values.append(_means_p_value(count, mean, (u, v)))
            if min(n, m) >= _MIN_VARIANCE_VALUES:
                p_values.append(_variances_p_value(count, (u, v), sampled))
            index = float(0.5 * (u / v + v / u - 2) + 0.5 * (x - y) ** 2 * (1 / u + 1 / v))
        elif x != y or u != v:
            p_values.append(_means_p_value(count, mean, (u, v)) if u + v > 0 else 1.0)
            p_values.append(_constant_p_value(count, mean, (u, v), sampled))
            index = float("inf")
    values["missing"] = _missing_proportions(count, rows)
    index += stability_index(present)
    return DriftTest(min(1.0, len(p_values) * min(p_values)), index, "Welch and Layard", values)


def _presence_table(count: Pair, rows: Pair) -> Floats:
    return np.array([[n, max(of - n, 0.0)] for n, of in zip(count, rows, strict=True)])


def _missing_proportions(count: Pair, rows: Pair) -> Pair:
    return _pair([1 - n / of if of else np.nan for n, of in zip(count, rows, strict=True)])


def _variance(n: float, mean: float, m2: float) -> float:
    """The variance; 0 if it is no more than rounding."""
    variance = m2 / (n - 1)
    return float(variance) if variance > 1e-30 * mean**2 else 0.0


def _means_p_value(count: Pair, mean: Pair, variance: Pair) -> float:
    """The larger p-value of the t-tests with separate variances (Welch) and with a pooled one."""
    from scipy.special import stdtr

    (n, m), (u, v) = count, variance
    a, b, distance = u / n, v / m, abs(mean[0] - mean[1])
    free = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
    pooled = ((n - 1) * u + (m - 1) * v) / (n + m - 2)
    welch = stdtr(free, -distance / np.sqrt(a + b))
    return float(2 * max(welch, stdtr(n + m - 2, -distance / np.sqrt(pooled * (1 / n + 1 / m)))))


def _variances_p_value(count: Pair, variance: Pair, sampled: Sequence[Floats]) -> float:
    """The p-value of two variances (Layard, 1973), by the squared deviations of sampled values.

    The logarithm of a variance of few values varies as that of a chi-squared, and at least by the uncertainty of the
    mean, also if all squares are equal.
    """
    from scipy.special import polygamma

    sides = [side[~np.isnan(side)] for side in sampled]
    squares = _relative_values([(side - side.mean()) ** 2 for side in sides if len(side)])
    n, m = (float(2 / polygamma(1, (n - 1) / 2)) for n in count)
    return mean_difference_p_value((n, m), variance, squares, min_variance=_MEAN_UNCERTAINTY / min(count))


def _constant_p_value(count: Pair, mean: Pair, variance: Pair, sampled: Sequence[Floats]) -> float:
    """The p-value of one sample, or each, having a single value.

    The rows of the other sample with another value are counted where sampled; else they are the least fraction that
    its mean and variance allow (Cauchy-Schwarz), and not none.
    """
    constant = 0 if variance[0] <= 0 else 1
    value, other = mean[constant], 1 - constant
    rows = sampled[0] if other == 0 and len(sampled) > 1 else sampled[-1] if other == 1 and sampled else np.empty(0)
    rows = rows[~np.isnan(rows)]
    distance = (mean[other] - value) ** 2
    fraction = max(distance / (distance + variance[other]), _ASSUMED_OTHER_FRACTION)
    if len(rows):
        fraction = float((~np.isclose(rows, value, rtol=1e-12, atol=0.0)).mean())
    elif fraction < 1:
        return float((1 - fraction) ** count[constant])
    different = fraction * count[other]
    return pooled_levels_test(np.array([[count[constant], 0.0], [count[other] - different, different]]))[0]


def _test_rates(count: Pair, total: Pair, rows: Pair, sampled: Sequence[Floats]) -> DriftTest:
    """Test two sums. Single events are binomial given their number; other sums vary as those of the sampled rows."""
    from scipy.stats import binomtest

    if not all(count):  # without values there is no rate
        present, missing = _presence_table(count, rows), {"missing": _missing_proportions(count, rows)}
        p, test = pooled_levels_test(present)
        return DriftTest(p, stability_index(present), test, missing)
    a, b = (max(sum_ / n, 0.0) for sum_, n in zip(total, count, strict=True))
    are_events = all(not np.any(np.nan_to_num(side) % 1) for side in sampled)
    events, have_both = (round(total[0]), round(total[1])), a > 0 and b > 0
    p, test = 1.0, "binomial"
    if sum(events) and (are_events or not have_both):
        p = float(binomtest(events[1], sum(events), count[1] / sum(count)).pvalue)
    if min(count) < _MIN_RATE_VALUES:
        p, test = 1.0, "rates"
    elif have_both:
        by_rates = mean_difference_p_value(count, (a, b), _relative_values(sampled))
        p, test = max((by_rates, "rates"), (p, test) if are_events else (0.0, test))
    index = float((b - a) * np.log(b / a)) if have_both else 0.0 if a == b else float("inf")
    return DriftTest(p, index, test, {"mean": (float(a), float(b))})


def mean_difference_p_value(n: Pair, mean: Pair, values: Floats, min_variance: float = 0.0) -> float:
    """The p-value of means of so many draws from one distribution, of which ``values`` >= 0 are draws.

    Their variance, in units of the squared mean, is at least ``min_variance``. The logarithm of the ratio varies as the
    values do, and the longer their tail, the less is known of how much (Satterthwaite, 1946). A single unseen draw from
    a long tail may make the difference (Nagaev, 1979): its probability is that of a Pareto tail, whose exponent is
    estimated from the largest values, with an uncertainty that depends on their number (Hill, 1975).
    """
    from scipy.special import stdtr

    if len(values) < 2:
        return 1.0
    relative = values / values.mean()
    variance = float(relative.var(ddof=1))
    spread = max(variance, min_variance)
    if not spread > 0:
        return float(np.isclose(mean[0], mean[1]))
    kurtosis = float(((relative - 1.0) ** 4).mean()) / float(relative.var()) ** 2 if variance > 0 else 0.0
    distance = float(abs(np.log(mean[0] / mean[1]))) / np.sqrt(spread * (1 / n[0] + 1 / n[1]))
    p = 2 * float(stdtr(2 * len(relative) / (max(kurtosis, _NORMAL_SQUARES_KURTOSIS) - 1), -distance))
    draws = n[0] if mean[0] > mean[1] else n[1]
    return min(1.0, p + draws * _tail_probability(relative, draws * (max(mean) / min(mean) - 1)))


def _tail_probability(values: Floats, limit: float) -> float:
    """The probability of a draw above a limit: the mean over the exponents that the largest values allow."""
    k = int(np.ceil(np.sqrt(len(values)))) if len(values) > 1 else 0  # as many, and as small a fraction, as possible
    if len(values) <= k:
        return 1.0
    top = np.partition(values, -k - 1)[-k - 1 :]
    least = float(top.min())
    if limit <= least or least <= 0:
        return 1.0
    logs = float(np.log(top / least).sum())
    return k / len(values) * (1 + float(np.log(limit / least)) / logs) ** -k if logs > 0 else 0.0


def _relative_values(sides: Sequence[Floats]) -> Floats:
    """The values of each side, relative to its mean."""
    sides = [side[~np.isnan(side)] for side in sides]
    return np.concatenate([np.empty(0), *(side / side.mean() for side in sides if side.sum() > 0)])


def adjust_p_values(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number (Holm, 1979).

    >>> adjust_p_values([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, float)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty(len(values))
    adjusted[order] = np.maximum.accumulate(np.minimum(values[order] * np.arange(len(values), 0, -1), 1.0))
    return adjusted.tolist()


def _pair(values: Sequence[float] | Floats) -> Pair:
    return float(values[0]), float(values[1])
