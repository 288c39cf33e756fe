"""Estimate how many independent draws the frequencies of distinct rows stand for: no more than chance explains.

Chance explains how often a row would occur again if, within its class, its columns depended on each other along a tree
at most. A copy keeps its class, so values that rows of another class have too are drawn independently. The weight of a
single draw is estimated first, because all rows may be copied, or have weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide.data.arrow_columns import is_arrow
from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.data.labels import Labels, as_column
from candide.data.table import is_temporal, to_numbers
from candide.data.text_formats import is_prose
from candide.numerics import is_right_skewed

_CHANCE, _NO_CHANCE = 1e-3, 1e-4  # a row that chance repeats as often with a probability below the first is a copy in
# part, below the second entirely
_TOLERANCE = 10.0  # times as many as independent columns would give: columns of real tables depend on each other
_MIN_TOLERANCE = 2.0  # where a draw has a weight of 2 or more
_MAX_VALUES_PER_DRAW = 1 / 3  # a column with more values, and
_MIN_VALUES = 20  # at least this many, is not expected to repeat a value that only one row has;
_MIN_VALUES_PER_ROW = 0.8  # nor is one of numbers or texts with as many values per distinct row
_MIN_SHARED, _MIN_SHARED_PROPORTION = 5, 0.05  # patterns of several classes, and their proportion of those that repeat
_USUAL_EXCESS, _MAX_EXCESS = 1.5, 3.0  # repeated rows in real tables, in multiples of what chance explains
_MAX_COLUMNS, _MAX_COMPARED_ROWS = 16, 5_000  # in the search for columns that determine others
_MIN_PAIRS, _DETERMINED = 5, 0.9  # pairs of rows equal in a column, and the proportion equal in the other; all of fewer
_DEVIATIONS = 6.0  # of a chi-square by which the dependence of two columns must exceed its mean
_MIN_ROWS = 50  # distinct rows that show the weight of a draw: fewer may be the cells of a balanced design
_MAX_SPARSE_DRAWS = 1.5  # expected of a row that shows the weight of a draw
_MAX_LOW_QUANTILE = 1.25  # the weight of a draw in multiples of the 20 % quantile of the frequencies of such rows
_SLACK = 1.2  # for errors of what is expected of unseen rows
_NEGLIGIBLE_VARIANCE = 0.05  # in squared draws, which no rate excludes
_STEPS = 8  # per power of 2 in the search for the weight of a draw
_NEIGHBOURS = 5  # values on either side of a number that show how often it is expected
_MIN_GAPS = 3.0  # possible values per value of a column of numbers that is not one of few values
_OFF_LATTICE = 1e-3  # steps by which a distance of two numbers may differ from a whole number of them
_ROUNDS = 8  # of estimating draws, and from them what chance explains


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A code for each distinct value of a column, 0 where it is missing: in order, towards the longer tail."""

    code: Codes  # (row,)
    numbers: Floats | None = None  # (code - 1,) the values, where they are numbers
    is_text: bool = False  # whether the values have several words
    is_shared: bool = False  # whether equal rows have different classes

    @classmethod
    def from_column(cls, column: Any) -> "CodedColumn":
        if isinstance(column, Documents):
            texts = (column.text(row, "surrogateescape") for row in range(len(column)))
            column = as_column([t if t is None or isinstance(t, str) else str(t) for t in texts])
            return cls(Labels.from_values(column).encode(column) + 1, is_text=True)
        if hasattr(column, "codes"):  # encoded by an engine
            return cls(column.codes.astype(np.intp) + 1)
        if not (is_temporal(column) if is_arrow(column) else column.dtype.kind in "fiubmM"):
            labels = Labels.from_values(column)
            return cls(labels.encode(column) + 1, is_text=is_prose(labels.values))
        values = np.asarray(to_numbers(column), np.float64)
        distinct, code = np.unique(values + 0.0, return_inverse=True)
        finite, rank = distinct[np.isfinite(distinct)], np.arange(len(distinct)) + 1
        if not is_right_skewed(finite, np.ones(len(finite))):  # the same codes for the negated column
            rank[: len(finite)], finite = rank[: len(finite)][::-1], finite[::-1]
        return cls(np.where(np.isnan(values), 0, rank[code]), finite)

    def has_unique_values(self, draws: float) -> bool:
        """Whether distinct rows hardly share values in this column: such a value may be unique to its row.

        Texts and numbers with gaps between them are compared among distinct rows, however frequent each row is.
        Categories must be many for the number of draws, and not shared by rows of different classes: one may determine
        all other columns and the class.
        """
        n_values = len(np.unique(self.code))
        if n_values <= _MIN_VALUES:
            return False
        is_open = self.is_text or (self.numbers is not None and self._n_steps > _MIN_GAPS * n_values)
        is_category = self.numbers is None and not self.is_text
        is_rare = n_values > _MAX_VALUES_PER_DRAW * draws and not (is_category and self.is_shared)
        return is_rare or (is_open and n_values >= _MIN_VALUES_PER_ROW * len(self.code))

    @property
    def _n_steps(self) -> float:
        """How many values there could be from the least number to the largest; infinitely many off a lattice.

        The step of a lattice is the least distance of two numbers. Measurements with many digits are not on one.
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
        """(code,) the draws of a value expected from those of its neighbours on a lattice; 0 off a lattice."""
        n = np.bincount(self.code, draws, 1 if self.numbers is None else len(self.numbers) + 1)
        out, x = np.zeros(len(n)), self.numbers
        if x is None or len(x) <= 2 * _NEIGHBOURS or np.isinf(self._n_steps):
            return out
        step = float(np.abs(np.diff(x)).min())
        total = np.concatenate([[0.0], np.cumsum(n[1:])])
        at = np.arange(len(x))
        low, high = np.maximum(at - _NEIGHBOURS, 0), np.minimum(at + _NEIGHBOURS, len(x) - 1)
        out[1:] = (total[high + 1] - total[low] - n[1:]) / np.maximum(np.abs(x[high] - x[low]) / step, 1.0)
        return out


def estimate_draws(
    columns: Sequence[CodedColumn], pattern: Codes, y: Codes, frequency: Floats, fraction: float = 1.0
) -> Floats:
    """(distinct row,) how many independent draws its frequency stands for: no more than chance explains.

    ``pattern`` is the same for rows whose values are equal, whatever their classes. If these are a ``fraction`` of the
    distinct rows, the draws in which a row may occur again are more by as much.
    """
    from scipy.special import gammainc  # here, because importing it costs more than loading a small model

    if not (frequency > 1.0).any():
        return frequency.copy()
    n_repeated, n_shared = int((np.bincount(pattern, frequency) > 1.0).sum()), int((np.bincount(pattern) > 1).sum())
    is_shared = n_shared >= max(_MIN_SHARED, _MIN_SHARED_PROPORTION * n_repeated)
    columns = [replace(column, is_shared=is_shared) for column in _determining_columns(columns)]
    parents = _find_parents(columns, y, frequency)
    every = np.arange(len(y))
    unit = draw_weights(frequency, _expected_draws(columns, parents, y, frequency, every) / fraction, y)
    n = np.maximum(frequency / unit, np.minimum(frequency, 1.0))
    draws, repeated = n.copy(), np.flatnonzero(n > 1.0)
    is_copied = np.clip(np.log2(unit[repeated]), 0.0, 1.0)  # if all rows are, chance explains no more than it must
    tolerance = _TOLERANCE * (_MIN_TOLERANCE / _TOLERANCE) ** is_copied / fraction

    def expect(rows: Codes) -> Floats:
        in_class, elsewhere = np.bincount(y, draws)[y[rows]], np.bincount(pattern, draws)[pattern[rows]] - draws[rows]
        as_in_others = in_class * np.maximum(elsewhere, 0.0) / np.maximum(draws.sum() - in_class, 1.0)
        return np.maximum(_expected_draws(columns, parents, y, draws, rows), as_in_others)

    for _ in range(_ROUNDS if len(repeated) else 0):
        expected = tolerance * expect(repeated)
        by_chance = gammainc(n[repeated] - 1.0, np.maximum(expected, 1e-300))  # P(Poisson >= n - 1)
        copied = np.clip(np.log(_CHANCE / np.maximum(by_chance, 1e-300)) / np.log(_CHANCE / _NO_CHANCE), 0.0, 1.0)
        better = n[repeated] - np.maximum(copied, is_copied) * np.maximum(n[repeated] - 1.0 - expected, 0.0)
        has_converged = np.allclose(better, draws[repeated], rtol=1e-3)
        draws[repeated] = better
        if has_converged:
            break
    return np.minimum(draws, _limit_total_excess(n, expect(every) / fraction))


def _limit_total_excess(n: Floats, rate: Floats) -> Floats:
    """(distinct row,) its draws, where repeated rows are together many more than chance explains.

    One more copy of a row is never beyond chance by itself, as in a bootstrap sample, but hundreds of them are. Rows
    that chance draws at ``rate`` repeat by a known mean once they are seen; in real tables up to twice as often,
    because columns depend on each other in more ways than along a tree.
    """
    repeats = float((n - 1.0).clip(0.0).sum())
    by_chance, most = (float((_mean_of_seen(times * rate) - 1.0).sum()) for times in (_USUAL_EXCESS, _MAX_EXCESS))
    if len(n) < _MIN_ROWS or repeats <= most + _DEVIATIONS * np.sqrt(most + 1.0):
        return n
    return np.minimum(n, np.maximum(1.0 + by_chance / repeats * (n - 1.0), 1.0 + _USUAL_EXCESS * rate))


def draw_weights(frequency: Floats, expected: Floats, y: Codes) -> Floats:
    """(distinct row,) the weight of a single draw in the row's class: at least 1, and 1 where nothing shows more.

    Copied rows, and rows with weights, occur in steps of more than 1. Sparse rows show it: if a draw has a weight of
    10, even rows that chance hardly explains occur 10 times. Dense tables do not, and their frequencies count as they
    are: they may be counts of cells. The result is proportional to the frequencies; whole numbers are not special.
    """
    out, overall = np.ones(len(y)), _draw_weight(frequency, expected)
    for c in np.unique(y).tolist():
        rows = y == c
        weight = _draw_weight(frequency[rows], expected[rows])
        if weight == 1.0 and np.median(expected[rows]) <= _MAX_SPARSE_DRAWS * overall:  # its rows do not decide
            weight = max(1.0, min(overall, float(np.median(frequency[rows]))))
        out[rows] = weight
    return out


def _draw_weight(n: Floats, expected: Floats) -> float:
    """The largest weight of a draw that fits the frequencies ``n`` of rows and those that chance explains.

    Only rows of few expected draws are used. Draws of seen rows are Poisson without 0, so these rows are more frequent
    than expected, by what is expected of unseen rows; few of them are far below the weight of one draw; and they vary
    as numbers of draws do. Cells of a dense table are all seen, and vary much less.
    """
    if len(n) < _MIN_ROWS:
        return 1.0
    usual = float(np.median(n))
    for step in range(int(np.ceil(_STEPS * np.log2(max(usual, 1.0))))):
        weight = usual * 2.0 ** (-step / _STEPS)
        sparse = expected <= _MAX_SPARSE_DRAWS * weight
        if sparse.sum() < max(_MIN_ROWS, len(n) / 2):
            return 1.0
        n_sparse, rate = n[sparse], expected[sparse] / weight
        most = min(float(np.median(n_sparse)), _MAX_LOW_QUANTILE * float(np.quantile(n_sparse, 0.2)))
        unseen = weight * _mean_of_seen(rate).sum() - expected[sparse].sum()
        is_frequent = unseen <= _SLACK * (n_sparse.sum() - expected[sparse].sum())
        if weight <= most and is_frequent and _varies_enough(n_sparse / weight, rate):
            return weight
    return 1.0


def _varies_enough(n: Floats, rate: Floats) -> bool:
    """Whether numbers of draws have half the variance that these rates give, scaled to their mean, or more."""
    scale = 1.0
    for _ in range(_ROUNDS):  # towards the scale at which the means agree
        scale *= max(0.0, n.mean() - 1.0) / max(1e-300, float(_mean_of_seen(scale * rate).mean()) - 1.0)
    mean = _mean_of_seen(scale * rate)
    variance = mean * (1.0 + scale * rate - mean)
    return bool(((n - mean) ** 2).mean() >= 0.5 * variance.mean() - _NEGLIGIBLE_VARIANCE)


def _mean_of_seen(rate: Floats) -> Floats:
    """The mean of a Poisson distribution without 0."""
    rate = np.maximum(rate, 1e-9)
    return -rate / np.expm1(-rate)


def _determining_columns(columns: Sequence[CodedColumn]) -> list[CodedColumn]:
    """The columns of most values, without those that others determine, as a city determines its country.

    Distinct rows that agree in a column then agree in the other too; where no two agree in it, nothing is known.
    """
    kept = list[CodedColumn]()
    sizes = [len(np.unique(column.code)) for column in columns]
    for j in np.argsort(sizes, kind="stable")[::-1][:_MAX_COLUMNS].tolist():
        code = columns[j].code[:_MAX_COMPARED_ROWS]
        width = int(code.max(initial=0)) + 1
        codes = [column.code[:_MAX_COMPARED_ROWS] for column in kept]
        pairs = ((_count_pairs(other), _count_pairs(other * width + code)) for other in codes)
        if not any(both >= (_DETERMINED if n >= _MIN_PAIRS else 1.0) * n > 0.0 for n, both in pairs):
            kept.append(columns[j])
    return kept


def _count_pairs(code: Codes) -> float:
    n = np.unique(code, return_counts=True)[1].astype(np.float64)
    return float((n * (n - 1.0)).sum()) / 2.0


def _find_parents(columns: Sequence[CodedColumn], y: Codes, n: Floats) -> list[int]:
    """The column that each column of few values depends on, -1 for none: a maximum spanning forest (Chow and Liu).

    Dependence is measured on all rows, but must be significant for the number of distinct rows: copies do not show
    dependence.
    """
    out, reached = [-1] * len(columns), set[int]()
    few = [j for j, column in enumerate(columns) if int(column.code.max(initial=0)) < _MIN_VALUES]
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
    """By how much the log-likelihood of two columns given the class gains from their dependence, beyond chance."""
    shape = int(y.max()) + 1, int(a.max()) + 1, int(b.max()) + 1
    joint = np.bincount((y * shape[1] + a) * shape[2] + b, n, int(np.prod(shape))).reshape(shape)
    total, by_a, by_b = joint.sum((1, 2), keepdims=True), joint.sum(2, keepdims=True), joint.sum(1, keepdims=True)
    lift = np.where(joint > 0.0, joint * total / np.where(joint > 0.0, by_b * by_a, 1.0), 1.0)
    information = (joint * np.log(lift)).sum((1, 2)) / np.maximum(total.ravel(), 1e-300)
    rows = np.bincount(y, minlength=shape[0])
    degrees = [((margin > 0).sum((1, 2)) - 1).clip(0) for margin in (by_a, by_b)]
    free = float((degrees[0] * degrees[1]).sum())
    return float((information * rows).sum()) - (free + _DEVIATIONS * np.sqrt(2.0 * free)) / 2.0


def _expected_draws(columns: Sequence[CodedColumn], parents: list[int], y: Codes, draws: Floats, rows: Codes) -> Floats:
    """(row,) how many equal rows chance would draw if columns were independent given parent and class.

    A value of a column of unique values is expected again only where other rows have it, or neighbouring values are
    frequent.
    """
    in_class: Floats = np.bincount(y, draws).astype(np.float64)
    total, log_p = draws.sum(), np.zeros(len(rows))
    with np.errstate(divide="ignore"):
        for column, parent in zip(columns, parents, strict=True):
            code = column.code
            if parent < 0 and column.has_unique_values(total):
                others = np.bincount(code, draws)[code[rows]] - draws[rows]
                others = np.maximum(others, column.expected_nearby(draws)[code[rows]])
                log_p += np.log(np.maximum(others, 0.0) / total)
                continue
            given = y if parent < 0 else y * (columns[parent].code.max() + 1) + columns[parent].code
            both = given * (code.max() + 1) + code
            log_p += np.log(np.bincount(both, draws)[both[rows]] / np.bincount(given, draws)[given[rows]])
    return in_class[y[rows]] * np.exp(log_p)
