"""How many independent draws the frequencies of distinct rows stand for: no more than chance explains.

What chance explains is how often a row would come again if, within its class, its columns depended on each other along
a tree at most. A copy keeps its class, so values that rows of another class have too are drawn independently. What a
single draw weighs is estimated first, because all rows may be copied, or have weights.

>>> levels, y = np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4)
>>> columns = [CodedColumn(levels), CodedColumn(y)]
>>> estimate_draws(columns, np.zeros(12, np.intp), np.full(12, 40.0)).tolist() == [40.0] * 12  # cells of a table
True
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.data.column_types import is_prose
from candide.data.documents import Documents
from candide.data.labels import Labels, as_column, is_arrow
from candide.data.quantiles import is_right_skewed
from candide.data.row_hash import hash_row_numbers
from candide.data.table import is_temporal, to_numbers
from candide.numerics import gammainc

_CHANCE, _NO_CHANCE = 1e-3, 1e-4  # a row that chance would repeat as often with less than this probability was copied:
# in part between the two
_TOLERANCE = 10.0  # times as many as independent columns would give: columns of real tables depend on each other
_LEAST_TOLERANCE = 2.0  # where a draw weighs more than 1, for certain from a weight of 2 on
_SHARE_OF_DRAWS = 1 / 3  # a column with more values than this share of the draws, and at least
_SOME_VALUES = 20  # of them, is not expected to repeat a value that no other row has; nor is one of numbers or texts
_UNSHARED = 0.8  # with as many values as this share of the distinct rows
_SOME_SHARED, _SHARE_SHARED = 5, 0.05  # patterns of several classes, and their share of those that come again, show
# that values are shared
_USUAL_EXCESS, _MOST_EXCESS = 1.5, 3.0  # times as many rows as chance explains come again in real tables
_COLUMNS, _COMPARED = 16, 5_000  # that are compared to find those that determine others, and distinct rows
_SUPPORT, _DETERMINED = 5, 0.9  # pairs of rows that agree in a column, and the share that agrees in the other;
# all must agree where the pairs are fewer
_DEVIATIONS = 6.0  # of a chi-square, by which the dependence of two columns must exceed its mean
_FEWEST_ROWS = 50  # distinct rows that show what a draw weighs: fewer may be the cells of a balanced design
_SPARSE = 1.5  # draws that are expected of a row, at most, which shows what a draw weighs
_LOW_LEVEL = 1.25  # times the frequency that a fifth of such rows are below, a draw may weigh, at most
_SLACK = 1.2  # for errors of what is expected of rows that are not seen
_LITTLE_VARIANCE = 0.05  # in squared draws, which no rate excludes
_STEPS = 8  # for each power of 2 in which the weight of a draw is searched
_AROUND = 5  # values on either side of a number that tell how often it is expected
_GAPS = 3.0  # times as many values as a column of numbers has could be there, if it is not one of few values
_OFF_LATTICE = 1e-3  # steps by which a distance of two numbers may differ from a whole number of them
_ROUNDS = 8  # of estimating draws, and from them what chance explains


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A code for each distinct value of a column, 0 where it is missing: in their order, towards the longer tail."""

    code: Codes  # (row,)
    numbers: Floats | None = None  # (code - 1,) the values, where they are numbers
    is_text: bool = False  # whether the values have several words
    is_shared: bool = False  # whether equal rows have different classes, so that no category stands for one row

    @classmethod
    def of(cls, column: Any) -> "CodedColumn":
        if isinstance(column, Documents):
            column = as_column([_text(column.text(row, "surrogateescape")) for row in range(len(column))])
            return cls(Labels.from_values(column).encode(column) + 1, is_text=True)
        if hasattr(column, "codes"):  # encoded by an engine
            return cls(column.codes.astype(np.intp) + 1)
        if not (is_temporal(column) if is_arrow(column) else column.dtype.kind in "fiubmM"):
            labels = Labels.from_values(column)
            return cls(labels.encode(column) + 1, is_text=is_prose(labels.values))
        values = np.asarray(to_numbers(column), np.float64)
        distinct, code = np.unique(values + 0.0, return_inverse=True)
        there = distinct[np.isfinite(distinct)]
        rank = np.arange(len(distinct)) + 1
        if not is_right_skewed(there, np.ones(len(there))):  # the same codes for the negated column
            rank[: len(there)], there = rank[: len(there)][::-1], there[::-1]
        return cls(np.where(np.isnan(values), 0, rank[code]), there)

    def take(self, rows: Codes) -> "CodedColumn":
        return replace(self, code=self.code[rows])

    def has_own_values(self, draws: float) -> bool:
        """Whether rows hardly share values in this column, one that has distinct rows: such a value may be unique.

        Texts and numbers with gaps between them are compared among distinct rows, however often each row is there.
        Categories must be more than a share of the draws, and not shared by rows of different classes: one may
        determine all other columns and the class.
        """
        n_values = len(np.unique(self.code))
        if n_values <= _SOME_VALUES:
            return False
        is_open = self.is_text or (self.numbers is not None and self._n_steps > _GAPS * n_values)
        is_category = self.numbers is None and not self.is_text
        is_rare = n_values > _SHARE_OF_DRAWS * draws and not (is_category and self.is_shared)
        return is_rare or (is_open and n_values >= _UNSHARED * len(self.code))

    @property
    def _n_steps(self) -> float:
        """How many values the numbers could have between the least and the largest: infinitely many off a lattice.

        Numbers may lie on a lattice whose step is the least distance of two. Measurements with many digits do not.
        """
        x = self.numbers
        if x is None or len(x) < 2:
            return 0.0
        gap = np.abs(np.diff(x))
        step = float(gap.min())
        rounding = 4.0 * np.finfo(float).eps * np.abs(x).max() / step
        is_off = (np.abs(gap / step - np.round(gap / step)) > _OFF_LATTICE + rounding).any()
        return np.inf if is_off else float(gap.sum() / step) + 1.0

    def expected_nearby(self, draws: Floats) -> Floats:
        """(code,) how many draws of a value are expected by those of the values around it, were it not there.

        On a lattice, such as that of whole numbers, every step may have draws; off a lattice none has.
        """
        n = np.bincount(self.code, draws, 1 if self.numbers is None else len(self.numbers) + 1)
        out, x = np.zeros(len(n)), self.numbers
        if x is None or len(x) <= 2 * _AROUND or np.isinf(self._n_steps):
            return out
        own, step = n[1:], float(np.abs(np.diff(x)).min())
        total = np.concatenate([[0.0], np.cumsum(own)])
        at = np.arange(len(x))
        low, high = np.maximum(at - _AROUND, 0), np.minimum(at + _AROUND, len(x) - 1)
        out[1:] = (total[high + 1] - total[low] - own) / np.maximum(np.abs(x[high] - x[low]) / step, 1.0)
        return out


def _text(document: Any) -> Any:
    return str(document) if isinstance(document, list | tuple | np.ndarray) else document


def estimate_draws(columns: Sequence[CodedColumn], y: Codes, frequency: Floats, share: float = 1.0) -> Floats:
    """(distinct row,) how many independent draws its frequency stands for: no more than chance explains.

    Of a ``share`` of the distinct rows, all rows are so many times as many draws in which a row may come again.
    """
    if not (frequency > 1.0).any():
        return frequency.copy()
    pattern = _patterns(columns, len(y))
    shared = _is_shared(pattern, frequency)
    columns = [replace(column, is_shared=shared) for column in _determining(columns)]
    parents = _parents(columns, y, frequency)
    every = np.arange(len(y))
    unit = draw_weights(frequency, _expected(columns, parents, y, frequency, every) / share, y)
    n = np.maximum(frequency / unit, np.minimum(frequency, 1.0))
    draws, repeated = n.copy(), np.flatnonzero(n > 1.0)
    is_copied = np.clip(np.log2(unit[repeated]), 0.0, 1.0)  # all rows are, then chance explains no more than it must
    tolerance = _TOLERANCE * (_LEAST_TOLERANCE / _TOLERANCE) ** is_copied / share
    for _ in range(_ROUNDS if len(repeated) else 0):
        expected = _expected(columns, parents, y, draws, repeated)
        expected = tolerance * np.maximum(expected, _expected_by_other_classes(pattern, y, draws, repeated))
        by_chance = gammainc(n[repeated] - 1.0, np.maximum(expected, 1e-300))  # P(Poisson >= n - 1)
        copied = np.clip(np.log(_CHANCE / np.maximum(by_chance, 1e-300)) / np.log(_CHANCE / _NO_CHANCE), 0.0, 1.0)
        better = n[repeated] - np.maximum(copied, is_copied) * np.maximum(n[repeated] - 1.0 - expected, 0.0)
        settled = np.allclose(better, draws[repeated], rtol=1e-3)
        draws[repeated] = better
        if settled:
            break
    rate = (
        np.maximum(_expected(columns, parents, y, draws, every), _expected_by_other_classes(pattern, y, draws, every))
        / share
    )
    return np.minimum(draws, _natural_draws(n, rate))


def _natural_draws(n: Floats, rate: Floats) -> Floats:
    """(distinct row,) its draws, where the rows that come again are together many more than chance explains.

    One more copy of a row is never beyond chance by itself, as in a bootstrap sample, but hundreds of them are. At the
    ``rate`` at which chance draws each row, rows that are seen come again by so much in the mean; real tables up to
    twice as much, because their columns depend on each other in more ways than along a tree.
    """
    again = float((n - 1.0).clip(0.0).sum())
    by_chance, most = (float((_mean_of_seen(times * rate) - 1.0).sum()) for times in (_USUAL_EXCESS, _MOST_EXCESS))
    if len(n) < _FEWEST_ROWS or again <= most + _DEVIATIONS * np.sqrt(most + 1.0):
        return n
    share = by_chance / again
    return np.minimum(n, np.maximum(1.0 + share * (n - 1.0), 1.0 + _USUAL_EXCESS * rate))


def _patterns(columns: Sequence[CodedColumn], n_rows: int) -> Codes:
    """(distinct row,) a number that rows share whose values are equal, whatever their classes."""
    mixed = np.zeros(n_rows, np.uint64)
    with np.errstate(over="ignore"):
        for j, column in enumerate(columns):
            mixed += hash_row_numbers(column.code, j)
    return np.unique(mixed, return_inverse=True)[1]


def _is_shared(pattern: Codes, frequency: Floats) -> bool:
    """Whether some of the values that come again do so in several classes."""
    n, in_classes = np.bincount(pattern, frequency), np.bincount(pattern)
    several = int((in_classes > 1).sum())
    return several >= max(_SOME_SHARED, _SHARE_SHARED * int((n > 1.0).sum()))


def _expected_by_other_classes(pattern: Codes, y: Codes, draws: Floats, repeated: Codes) -> Floats:
    """(repeated row,) how many rows equal to it there would be, were its values as frequent as in other classes."""
    in_class = np.bincount(y, draws)[y[repeated]]
    elsewhere = np.bincount(pattern, draws)[pattern[repeated]] - draws[repeated]
    return in_class * np.maximum(elsewhere, 0.0) / np.maximum(draws.sum() - in_class, 1.0)


def draw_weights(frequency: Floats, expected: Floats, y: Codes) -> Floats:
    """(distinct row,) the weight of a single draw in the row's class: at least 1, and 1 where nothing shows more.

    Copied rows, and rows with weights, come in steps of more than 1. That shows where rows are sparse: if a draw
    weighs 10, even rows that chance hardly explains come 10 times. In dense tables it does not show, and the
    frequencies count as they are: they may be counts of cells. The result is in proportion to the frequencies, and
    whole numbers have no special role.

    >>> rng = np.random.default_rng(0)
    >>> sparse, y = np.full(1000, 0.5), np.zeros(1000, np.intp)
    >>> n = rng.poisson(sparse)
    >>> seen = n > 0
    >>> [float(draw_weights(k * n[seen], k * sparse[seen], y[seen])[0]) for k in (1.0, 6.0, 6.5)]
    [1.0, 6.0, 6.5]
    >>> dense = np.full(1000, 80.0)
    >>> set(draw_weights(6.5 * rng.poisson(dense), 6.5 * dense, y).tolist())
    {1.0}
    """
    out, of_all = np.ones(len(y)), _draw_weight(frequency, expected)
    for c in np.unique(y).tolist():
        own = y == c
        weight = _draw_weight(frequency[own], expected[own])
        if weight == 1.0 and np.median(expected[own]) <= _SPARSE * of_all:  # it has few rows, or they do not decide
            weight = max(1.0, min(of_all, float(np.median(frequency[own]))))
        out[own] = weight
    return out


def _draw_weight(n: Floats, expected: Floats) -> float:
    """The largest weight of a draw that fits the frequencies ``n`` of rows and those that chance explains.

    It is judged by rows of few expected draws. The draws of rows that are seen are Poisson without 0, so these rows
    come more often than expected, by what is expected of rows that are not seen; few of them come far less often than
    one draw weighs; and they vary as numbers of draws do. Cells of a dense table are all seen, and vary much less.
    """
    if len(n) < _FEWEST_ROWS:
        return 1.0
    usual = float(np.median(n))
    for step in range(int(np.ceil(_STEPS * np.log2(max(usual, 1.0))))):
        weight = usual * 2.0 ** (-step / _STEPS)
        sparse = expected <= _SPARSE * weight
        if sparse.sum() < max(_FEWEST_ROWS, len(n) / 2):
            return 1.0
        own, rate = n[sparse], expected[sparse] / weight
        most = min(float(np.median(own)), _LOW_LEVEL * float(np.quantile(own, 0.2)))
        unseen = weight * _mean_of_seen(rate).sum() - expected[sparse].sum()
        is_often = unseen <= _SLACK * (own.sum() - expected[sparse].sum())
        if weight <= most and is_often and _varies_enough(own / weight, rate):
            return weight
    return 1.0


def _varies_enough(n: Floats, rate: Floats) -> bool:
    """Whether numbers of draws vary by half of what they would at these rates, scaled to their mean, or more."""
    scale = 1.0
    for _ in range(_ROUNDS):  # towards the scale at which the means agree
        scale *= max(0.0, n.mean() - 1.0) / max(1e-300, float(_mean_of_seen(scale * rate).mean()) - 1.0)
    mean = _mean_of_seen(scale * rate)
    variance = mean * (1.0 + scale * rate - mean)
    return bool(((n - mean) ** 2).mean() >= 0.5 * variance.mean() - _LITTLE_VARIANCE)


def _mean_of_seen(rate: Floats) -> Floats:
    """The mean of a Poisson distribution without 0."""
    rate = np.maximum(rate, 1e-9)
    return -rate / np.expm1(-rate)


def _determining(columns: Sequence[CodedColumn]) -> list[CodedColumn]:
    """The columns of most values, without those that others determine, as a city determines its country.

    Distinct rows that agree in a column then agree in the other too; where no two agree in it, nothing is known.
    """
    kept = list[CodedColumn]()
    sizes = [len(np.unique(column.code)) for column in columns]
    for at in np.argsort(sizes, kind="stable")[::-1][:_COLUMNS].tolist():
        code = columns[at].code[:_COMPARED]
        wide = int(code.max(initial=0)) + 1
        pairs = ((_pairs(one.code[:_COMPARED]), _pairs(one.code[:_COMPARED] * wide + code)) for one in kept)
        if not any(both >= (_DETERMINED if one >= _SUPPORT else 1.0) * one > 0.0 for one, both in pairs):
            kept.append(columns[at])
    return kept


def _pairs(code: Codes) -> float:
    """How many pairs of rows have the same code."""
    n = np.unique(code, return_counts=True)[1].astype(np.float64)
    return float((n * (n - 1.0)).sum()) / 2.0


def _parents(columns: Sequence[CodedColumn], y: Codes, n: Floats) -> list[int]:
    """The column that each column of few values depends on, -1 for none: a maximum spanning forest (Chow and Liu).

    Dependence is measured on all rows, but must be significant for as few rows as there are distinct ones, because
    copies do not show dependence.
    """
    out, reached = [-1] * len(columns), set[int]()
    few = [j for j, one in enumerate(columns) if int(one.code.max(initial=0)) < _SOME_VALUES]
    excess = {(i, j): _dependence(columns[i].code, columns[j].code, y, n) for i in few for j in few if i < j}
    excess |= {(j, i): gain for (i, j), gain in excess.items()}
    while len(reached) < len(few):
        edges = [(gain, i, j) for (i, j), gain in excess.items() if i in reached and j not in reached]
        gain, parent, child = max(edges, default=(0.0, -1, -1))
        if gain > 0.0:
            out[child] = parent
        else:  # the root of another tree
            child = next(j for j in few if j not in reached)
        reached.add(child)
    return out


def _dependence(a: Codes, b: Codes, y: Codes, n: Floats) -> float:
    """By how much the mutual information of two columns given the class exceeds what chance explains, in nats."""
    shape = int(y.max()) + 1, int(a.max()) + 1, int(b.max()) + 1
    joint = np.bincount((y * shape[1] + a) * shape[2] + b, n, int(np.prod(shape))).reshape(shape)
    total = joint.sum((1, 2), keepdims=True)
    there = joint > 0.0
    lift = joint * total / np.where(there, joint.sum(1, keepdims=True) * joint.sum(2, keepdims=True), 1.0)
    each = (joint * np.log(np.where(there, lift, 1.0))).sum((1, 2)) / np.maximum(total.ravel(), 1e-300)
    rows = np.bincount(y, minlength=shape[0])
    free = float((((joint.sum(2) > 0).sum(1) - 1).clip(0) * ((joint.sum(1) > 0).sum(1) - 1).clip(0)).sum())
    return float((each * rows).sum()) - (free + _DEVIATIONS * np.sqrt(2.0 * free)) / 2.0


def _expected(columns: Sequence[CodedColumn], parents: list[int], y: Codes, draws: Floats, repeated: Codes) -> Floats:
    """(repeated row,) how many rows equal to it chance would draw, were columns independent given parent and class.

    A value of a column that has a value of its own for most draws is expected again only where other rows have it, or
    the values around it often come: by itself it may be unique.
    """
    mine = y[repeated]
    in_class: Floats = np.bincount(y, draws).astype(np.float64)
    log_share = np.zeros(len(repeated))
    with np.errstate(divide="ignore"):
        for column, parent in zip(columns, parents, strict=True):
            code = column.code
            if parent >= 0:
                given = y * (columns[parent].code.max() + 1) + columns[parent].code
                both = given * (code.max() + 1) + code
                n_both, n_given = np.bincount(both, draws)[both[repeated]], np.bincount(given, draws)[given[repeated]]
                log_share += np.log(n_both / n_given)
            elif column.has_own_values(draws.sum()):
                others = np.bincount(code, draws)[code[repeated]] - draws[repeated]
                others = np.maximum(others, column.expected_nearby(draws)[code[repeated]])
                log_share += np.log(np.maximum(others, 0.0) / draws.sum())
            else:
                wide = code.max() + 1
                both = np.bincount(y * wide + code, draws, len(in_class) * wide)
                log_share += np.log(both[mine * wide + code[repeated]] / in_class[mine])
    return in_class[mine] * np.exp(log_share)
