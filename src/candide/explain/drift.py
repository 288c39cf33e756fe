"""Drift: whether new rows still have the laws of those that were counted, column by column, from two tallies alone.

Levels are compared by Pearson's chi-squared test, those of too few rows joined, or by Fisher's exact test where two
are left; "missing" and "never met" are levels too. Numbers that were not put in bins are compared by their mean
(Welch, 1947) and by the logarithm of their variance (Layard, 1973), sums by their rate. How far variances and rates
stray depends on tails that two tallies do not tell of: the rows at hand do, those after and, if given, those before.
With many columns some seem to have moved by chance: p-values are adjusted so that all of them together are wrong as
seldom as one would be (Holm, 1979). How far a law moved is the symmetric Kullback-Leibler divergence, in nats, known as
the population stability index: of as many rows as one likes every move is significant, and this says whether it is
large.

>>> before = Levels(np.array([[500.0, 500.0]]), np.array([0, 2]))
>>> after = Levels(np.array([[300.0, 700.0]]), np.array([0, 2]))
>>> [one] = moves(before, after, rows=(1000.0, 1000.0))
>>> one.p < 1e-9, round(one.moved, 3), one.test, one.at
(True, 0.169, 'chi-squared', 0)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np

from candide.rows.blocks import Block, Floats, dense
from candide.tally import CoMoments, Levels, Moments, Spec, Sums

Pair = tuple[float, float]  # before, after
MISSING, STRANGE = -1, -2  # in the place of a level
_FEW = 5.0  # rows expected of a level, below which chi-squared is not to be relied on (Cochran, 1954)
_NORMAL = 15.0  # the kurtosis of the squares of normal values


@dataclass(frozen=True)
class Move:
    """How far the law of one column moved, how unlikely that is by chance, and what tells how."""

    p: float
    moved: float
    test: str
    values: dict[str, Pair]
    at: int | None = None  # the level whose share moved most; below 0 missing, or never met


@singledispatch
def at_hand(tally: Any, block: Block, spec: Spec) -> Floats:
    """(row, column) what was tallied of rows, where its tails have a part in a test; else no column."""
    return np.empty((block.shape[0], 0))


@at_hand.register(Moments)
@at_hand.register(Sums)
def _(tally: Any, block: Block, spec: Spec) -> Floats:
    return np.asarray(spec.tallied(dense(block)), np.float64)


@at_hand.register
def _(tally: CoMoments, block: Block, spec: Spec) -> Floats:
    x = np.array(spec.tallied(dense(block)), np.float64)
    x[np.isnan(x).any(axis=1)] = np.nan  # such rows are not counted
    return x


@singledispatch
def moves(
    before: Any, after: Any, rows: Pair, strange: Sequence[float] = (), seen: Sequence[Floats] = ()
) -> list[Move] | None:
    """The moves of each column of two tallies of one class, of so many rows; None of a kind that cannot tell.

    ``strange`` has of each column how many new values were never met before; ``seen`` the rows ``at_hand``, of one
    side or of both.
    """
    return None


@moves.register
def _(
    before: Levels, after: Levels, rows: Pair, strange: Sequence[float] = (), seen: Sequence[Floats] = ()
) -> list[Move]:
    found, ends = [], before.offsets.tolist()
    for j, (start, stop) in enumerate(pairwise(ends)):
        a, b = (tally.counts[0, start:stop] for tally in (before, after))
        new = strange[j] if len(strange) else 0.0
        gone = rows[0] - a.sum(), rows[1] - b.sum() - new
        table = np.array([[*a, max(gone[0], 0.0), 0.0], [*b, max(gone[1], 0.0), new]])
        found.append(_of_table(table, stop - start))
    return found


@moves.register(Moments)
@moves.register(CoMoments)
def _(before: Any, after: Any, rows: Pair, strange: Sequence[float] = (), seen: Sequence[Floats] = ()) -> list[Move]:
    each = zip(*(tally.n[0] for tally in (before, after)), *(tally.mean[0] for tally in (before, after)),
               *(tally.m2[0] for tally in (before, after)), strict=True)  # fmt: skip
    return [_of_numbers((n, m), (x, y), (s, t), rows, _squares(seen, j)) for j, (n, m, x, y, s, t) in enumerate(each)]


@moves.register
def _(before: Sums, after: Sums, rows: Pair, strange: Sequence[float] = (), seen: Sequence[Floats] = ()) -> list[Move]:
    each = zip(before.n[0], after.n[0], before.total[0], after.total[0], strict=True)
    alone = [all(not np.any(np.nan_to_num(side[:, j]) % 1) for side in seen) for j in range(before.n.shape[1])]
    return [_of_rates((n, m), (x, y), rows, _values(seen, j), alone[j]) for j, (n, m, x, y) in enumerate(each)]


def _of_table(table: Floats, n_levels: int) -> Move:
    """Of counts (before and after, level): levels, then missing, then never met."""
    p, test = table_test(table)
    sizes = table.sum(axis=1, keepdims=True)
    shares = np.divide(table, sizes, out=np.zeros_like(table), where=sizes > 0)
    at = int(np.abs(shares[1] - shares[0]).argmax())
    named = at if at < n_levels else MISSING if at == n_levels else STRANGE
    values = {"share": (float(shares[0, at]), float(shares[1, at])), "missing": _pair(shares[:, n_levels])}
    return Move(p, float(stability(table).sum()), test, values, named)


def stability(table: Floats) -> Floats:
    """(level,) what each adds to the stability index, of counts (before and after, level)."""
    smooth = (table + 0.5) / (table.sum(axis=1, keepdims=True) + 0.5 * table.shape[1])  # none has a share of 0
    each = (smooth[1] - smooth[0]) * np.log(smooth[1] / smooth[0])
    return np.where(table.sum(axis=0) > 0, each, 0.0)


def table_test(table: Floats) -> tuple[float, str]:
    """The p-value of two rows of counts being of one law, and by which test."""
    from scipy.special import chdtrc  # scipy.stats, for what is rare below, takes half a second to import

    table = table[:, table.sum(axis=0) > 0]
    total = table.sum()
    if table.shape[1] < 2 or (table.sum(axis=1) == 0).any():
        return 1.0, "none"
    table = _joined(table, _FEW * total / table.sum(axis=1).min())
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / total
    if table.shape[1] == 2 and expected.min() < _FEW:
        from scipy.stats import fisher_exact

        return float(fisher_exact(np.round(table).astype(int)).pvalue), "Fisher"
    statistic = ((table - expected) ** 2 / expected).sum()
    return float(chdtrc(table.shape[1] - 1, statistic)), "chi-squared"


def _joined(table: Floats, least: float) -> Floats:
    """The same counts with levels of less than so many rows joined, the rarest first; two levels stay apart."""
    order = np.argsort(table.sum(axis=0), kind="stable")
    sizes = np.cumsum(table.sum(axis=0)[order])
    few = int((table.sum(axis=0) < least).sum())
    if few and sizes[few - 1] < least:
        few += 1
    few = min(few, table.shape[1] - 1)
    if few < 2:
        return table
    return np.column_stack([table[:, order[:few]].sum(axis=1), table[:, order[few:]]])


def _of_numbers(count: Pair, mean: Pair, m2: Pair, rows: Pair, squares: Floats) -> Move:
    """Of two columns of numbers by their moments; three tests, of which the least p-value counts three times."""
    from scipy.special import stdtr

    (n, m), (x, y), (s, z) = count, mean, m2
    there = np.array([[n, max(rows[0] - n, 0.0)], [m, max(rows[1] - m, 0.0)]])
    tests = [table_test(there)[0]]
    moved, values = 0.0, {} if not (n and m) else {"mean": (float(x), float(y))}
    if n > 1 and m > 1:
        u, v = s / (n - 1), z / (m - 1)
        values["sd"] = float(np.sqrt(u)), float(np.sqrt(v))
        if u > 0 and v > 0:
            a, b = u / n, v / m
            free = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
            tests.append(float(2 * stdtr(free, -abs(x - y) / np.sqrt(a + b))))
            tests.append(apart((n, m), (u, v), squares))
            moved = float(0.5 * (u / v + v / u - 2) + 0.5 * (x - y) ** 2 * (1 / u + 1 / v))
        elif x != y or u != v:
            tests.append(0.0)
            moved = float("inf")
    values["missing"] = _absent(count, rows)
    moved += float(stability(there).sum())
    return Move(min(1.0, len(tests) * min(tests)), moved, "Welch and Layard", values)


def _absent(count: Pair, rows: Pair) -> Pair:
    """The share of rows without a value."""
    a, b = (float(1 - have / of) if of else float("nan") for have, of in zip(count, rows, strict=True))
    return a, b


def _of_rates(n: Pair, total: Pair, rows: Pair, values: Floats, alone: bool) -> Move:
    """Of two sums, of events or of amounts: events of which each comes ``alone`` are binomial, given how many; others,
    and amounts, stray as those of the rows at hand do."""
    from scipy.stats import binomtest

    if not all(n):  # of no value there is no rate
        there = np.array([[have, max(of - have, 0.0)] for have, of in zip(n, rows, strict=True)])
        p, test = table_test(there)
        return Move(p, float(stability(there).sum()), test, {"missing": _absent(n, rows)})
    a, b = (max(sum_ / of, 0.0) for sum_, of in zip(total, n, strict=True))
    whole = round(total[0]), round(total[1])
    p, test = 1.0, "binomial"
    if sum(whole) and (alone or not (a > 0 and b > 0)):
        p = float(binomtest(whole[1], sum(whole), n[1] / (n[0] + n[1])).pvalue)
    if a > 0 and b > 0:
        p, test = max((apart(n, (a, b), values), "rates"), (p, test) if alone else (0.0, test))
    moved = float((b - a) * np.log(b / a)) if a > 0 and b > 0 else 0.0 if a == b else float("inf")
    return Move(p, moved, test, {"mean": (float(a), float(b))})


def apart(n: Pair, mean: Pair, values: Floats) -> float:
    """How likely means of so many draws of one law lie so far apart by chance; ``values`` >= 0 are draws of that law.

    The logarithm of the ratio strays as the values do, and how much these do is known the less the longer their tail
    (Satterthwaite, 1946). Of a long tail one draw may do it that nobody has seen (Nagaev, 1979): its chance is that of
    a Pareto tail, whose exponent the largest values tell with so much doubt as they are few (Hill, 1975).

    >>> normal = np.random.default_rng(0).normal(size=1000) ** 2
    >>> round(apart((1000, 1000), (1.0, 1.2), normal), 3), round(apart((1000, 1000), (1.0, 1.2), normal**3), 3)
    (0.014, 1.0)
    """
    from scipy.special import stdtr

    if len(values) < 2:
        return 1.0  # nothing tells how far they stray
    some = values / values.mean()
    spread, n_some = float(some.var(ddof=1)), len(some)
    if not spread > 0:
        return float(np.isclose(mean[0], mean[1]))
    kurtosis = max(float(((some - 1.0) ** 4).mean()) / float(some.var()) ** 2, _NORMAL)
    far = float(abs(np.log(mean[0] / mean[1]))) / np.sqrt(spread * (1 / n[0] + 1 / n[1]))
    p = 2 * float(stdtr(2 * n_some / (kurtosis - 1), -far))
    draws = n[0] if mean[0] > mean[1] else n[1]
    return min(1.0, p + draws * _beyond(some, draws * (max(mean) / min(mean) - 1)))


def _beyond(values: Floats, far: float) -> float:
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


def _values(seen: Sequence[Floats], j: int) -> Floats:
    """What was seen of a column, each side relative to its mean."""
    sides = [side[:, j][~np.isnan(side[:, j])] for side in seen]
    return np.concatenate([np.empty(0), *(side / side.mean() for side in sides if side.sum() > 0)])


def _squares(seen: Sequence[Floats], j: int) -> Floats:
    """The squares of what was seen of a column about the mean of its side."""
    return _values([(side - np.nanmean(side)) ** 2 for side in (one[:, [j]] for one in seen) if _any(side)], 0)


def _any(side: Floats) -> bool:
    return bool((~np.isnan(side)).any())


def holm(p: Sequence[float]) -> list[float]:
    """P-values of which all together are wrong as seldom as one would be (Holm, 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, float)
    order = np.argsort(values, kind="stable")
    found = np.empty(len(values))
    found[order] = np.maximum.accumulate(np.minimum(values[order] * np.arange(len(values), 0, -1), 1.0))
    return found.tolist()


def _pair(values: Floats) -> Pair:
    return float(values[0]), float(values[1])
