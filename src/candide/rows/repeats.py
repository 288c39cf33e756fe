"""Equal rows: pooled into one row with a frequency, and how many independent draws that frequency stands for.

Rows of small discrete tables are equal by chance: they are drawn independently, and each is one more observation. Rows
of an oversampled table, of a bootstrap sample or of a join that fans out are copies: two of them tell no more than one.
Both are only frequencies, as row weights are, so what tells them apart is whether chance explains them: how often a row
would come again if, within its class, its columns depended on each other along a tree at most. Beyond that, copies make
one draw.

>>> rng = np.random.default_rng(0)
>>> bits, y = rng.integers(0, 2, (400, 2)), np.zeros(400, np.intp)
>>> rows = DistinctRows.of([bits[:, 0], bits[:, 1]], y)
>>> len(rows), bool((rows.draws == rows.frequency).all())  # four combinations, each of them often: by chance
(4, True)
>>> sizes = rng.normal(size=(50, 3))
>>> copies = np.repeat(sizes, 3, axis=0)
>>> DistinctRows.of(list(copies.T), np.zeros(150, np.intp)).draws.tolist() == [1.0] * 50
True
>>> weighted = DistinctRows.of(list(sizes.T), np.zeros(50, np.intp), np.full(50, 3.0))  # a weight of 3 is three copies
>>> weighted.frequency.tolist() == [3.0] * 50, weighted.draws.tolist() == [1.0] * 50
(True, True)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.numerics import gammainc
from candide.rows.blocks import Codes, Floats, finite
from candide.rows.documents import Documents
from candide.rows.labels import Labels, as_column, is_arrow
from candide.rows.lots import lots
from candide.rows.quantiles import leans_right
from candide.rows.remarks import Remark
from candide.rows.table import Name, Table, is_temporal, numbers_of

_CHANCE = 1e-3  # a row that chance would repeat as often with less than this probability was copied
_TOLERANCE = 10.0  # times as many as independent columns would give: columns of real tables depend on each other
_SHARE_OF_DRAWS = 1 / 3  # a column with more values than this share of the draws, and at least
_SOME_VALUES = 20  # of them, is not expected to repeat a value that no other row has
_COLUMNS, _COMPARED = 16, 5_000  # that are compared to find those that determine others, and distinct rows
_SUPPORT, _DETERMINED = 5, 0.9  # pairs of rows that agree in a column, and the share that agrees in the other;
# all must agree where the pairs are fewer
_DEVIATIONS = 6.0  # of a chi-square, by which the dependence of two columns must exceed its mean
_FEWEST_ROWS = 50  # distinct rows whose frequencies have a common factor: fewer may be the cells of a balanced design
_AROUND = 5  # values on either side of a number that tell how often it is expected
_OFF_LATTICE = 1e-3  # steps by which a distance of two numbers may differ from a whole number of them
_MOST_COPIES = 1e8  # of a row
_HEAVY = 3.0  # times the mean of the draws
_ROUNDS = 8  # of estimating draws, and from them what chance explains
_WORTH_A_NOTE = 0.05  # the share of rows that are copies, below which nothing is said
_NEGLIGIBLE = 1e-9  # the share of a row's frequency that is not worth an entry of its own


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Rows without their repetitions, in the order in which they first appear."""

    first: Codes  # (distinct row,) a row that it stands for
    group: Codes  # (row,) the distinct row that it is
    y: Codes  # (distinct row,) its class
    frequency: Floats  # (distinct row,) the weight of all rows equal to it
    draws: Floats  # (distinct row,) the independent draws that they stand for
    order: Codes  # (distinct row,) its place in an order that is random, and that only contents and the seed decide
    start: Codes  # (class,) a random number of each class, likewise

    @classmethod
    def of(
        cls, columns: Sequence[Any], y: Codes, weight: Floats | None = None, seed: int = 0, *, share: float = 1.0
    ) -> "DistinctRows":
        """The distinct rows of some columns and a class; a ``share`` of all distinct rows, where these are a sample."""
        coded = [_Column.of(column) for column in columns]
        coded = [one for one in coded if len(one.code) and one.code.max() > one.code.min()]
        codes = [one.code for one in coded]
        identity = _mixed([lots(one, j) for j, one in enumerate([*codes, y])], len(y))
        _, first, group = np.unique(identity, return_index=True, return_inverse=True)
        place = np.argsort(np.argsort(first))  # in the order of appearance
        first, group = np.sort(first), place[group]
        frequency = np.bincount(group, weight, len(first)).astype(np.float64)
        coded, own, identity = [one.take(first) for one in coded], y[first], identity[first]
        lot = _lots_of([one.code for one in coded], len(first), seed)
        order = np.empty(len(first), np.intp)
        order[np.lexsort([identity, lot])] = np.arange(len(first))
        start = np.full(int(y.max(initial=-1)) + 1, np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(start, own, lot)
        draws = _draws(coded, own, frequency, weight, share)
        return cls(first, group, own, frequency, draws, order, start.astype(np.intp))

    def __len__(self) -> int:
        return len(self.first)

    @property
    def copies(self) -> Floats:
        """(distinct row,) the weight of one independent draw."""
        return self.frequency / np.where(self.draws > 0, self.draws, 1.0)

    @property
    def share_copied(self) -> float:
        """The share of the weight of rows that are copies of each other."""
        return float(self.frequency[self.copies > 1.0].sum()) / max(1e-300, float(self.frequency.sum()))

    def copies_by_class(self, n_classes: int) -> Floats:
        """(class,) by how much its weights exceed what its rows can teach, at least 1: weights below 1 are fewer rows.

        The weight of a draw in the mean of the rows (Kish), in which no draw counts for more than some times the mean
        of the draws: a few heavy rows do not make all others next to nothing.

        >>> DistinctRows.of([np.array([0.1, 0.7, 0.7, 0.7, 0.7]), np.arange(5) > 0], np.array([0, 1, 1, 1, 1]),
        ...     np.array([0.5, 1.0, 1.0, 1.0, 1.0])).copies_by_class(3).tolist()
        [1.0, 1.0, 1.0]
        """
        n, draws = (np.bincount(self.y, one, n_classes) for one in (self.frequency, self.draws))
        usual = np.where(draws > 0, n / np.where(draws > 0, draws, 1.0), 1.0)
        bounded = np.minimum(self.copies, _HEAVY * usual[self.y])
        mean = np.bincount(self.y, self.frequency * bounded, n_classes) / np.where(n > 0, n, 1.0)
        return np.maximum(mean, 1.0)

    def folds(self, n: int) -> tuple[Codes, Codes, Floats]:
        """The distinct row, the fold and the weight of entries that divide the rows into ``n`` folds, class by class.

        Copies stay together; independent draws of equal rows are assigned to folds one by one.

        >>> rows = DistinctRows.of([np.zeros(6), np.array([0, 0, 0, 0, 0, 1])], np.zeros(6, np.intp))
        >>> [entry.tolist() for entry in rows.folds(3)]
        [[0, 0, 0, 1], [2, 0, 1, 1], [2.0, 2.0, 1.0, 1.0]]
        """
        by_class = np.lexsort([self.order, self.y])
        units = np.ceil(self.draws[by_class])
        before = np.cumsum(units) - units
        first = np.searchsorted(self.y[by_class], np.arange(len(self.start)))
        before -= before[np.minimum(first, len(before) - 1)][self.y[by_class]] if len(before) else 0
        start = np.empty(len(self), np.intp)
        start[by_class] = (before % n).astype(np.intp) + self.start[self.y[by_class]] % n
        turn = np.arange(n)
        share = np.floor(self.draws / n)[:, None] + np.clip((self.draws % n)[:, None] - turn, 0.0, 1.0)
        share /= np.where(self.draws > 0, self.draws, 1.0)[:, None]
        row, at = np.nonzero(share > _NEGLIGIBLE)
        return row, (start[row] + at) % n, self.frequency[row] * share[row, at]


def distinct_rows(
    table: Table, y: Codes, weight: Floats | None = None, seed: int = 0, *, share: float = 1.0
) -> DistinctRows:
    """The distinct rows of a table and the codes of their classes; ``share`` as in :meth:`DistinctRows.of`."""
    if isinstance(table.source, dict):
        columns = {name: c if isinstance(c, Documents) else table.column(name) for name, c in table.source.items()}
    else:
        columns = {name: table.column(name) for name in table.names}
    for name, column in columns.items():
        _refuse_infinity(column, name)
    return DistinctRows.of(list(columns.values()), y, weight, seed, share=share)


def repeated_rows(rows: DistinctRows) -> list[Remark]:
    """A note where rows of a table are copied, with their share: equal ones that chance does not explain.

    >>> sizes = np.repeat(np.random.default_rng(0).normal(size=(40, 3)), 2, axis=0)
    >>> print(repeated_rows(distinct_rows(Table.of(sizes), np.zeros(80, np.intp)))[0].text)
    100.0% of the rows equal another row more often than chance explains
    """
    if rows.share_copied < _WORTH_A_NOTE:
        return []
    text = f"{rows.share_copied:.1%} of the rows equal another row more often than chance explains"
    remedy = (
        "remove the copies if they are a mistake; naive Bayes counts every copy, "
        "the default model learns from each row once"
    )
    return [Remark("repeated-rows", text, remedy=remedy)]


def _refuse_infinity(column: Any, name: Name) -> None:
    """Refuse an infinite number while the number of its row is known."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        try:
            finite(column)
        except InputError as error:
            error.column = name
            raise


@dataclass(frozen=True, eq=False)
class _Column:
    """A code for each distinct value of a column, 0 where it is missing: in their order, towards the longer tail."""

    code: Codes  # (row,)
    numbers: Floats | None = None  # (code - 1,) the values, where they are numbers

    @classmethod
    def of(cls, column: Any) -> "_Column":
        if isinstance(column, Documents):
            column = as_column([_text(column.text(row, "surrogateescape")) for row in range(len(column))])
        if hasattr(column, "codes"):  # encoded by an engine
            return cls(column.codes.astype(np.intp) + 1)
        if not (is_temporal(column) if is_arrow(column) else column.dtype.kind in "fiubmM"):
            return cls(Labels.of(column).encode(column) + 1)
        values = np.asarray(numbers_of(column), np.float64)
        distinct, code = np.unique(values + 0.0, return_inverse=True)
        there = distinct[np.isfinite(distinct)]
        rank = np.arange(len(distinct)) + 1
        if not leans_right(there, np.ones(len(there))):  # the same codes for the negated column
            rank[: len(there)], there = rank[: len(there)][::-1], there[::-1]
        return cls(np.where(np.isnan(values), 0, rank[code]), there)

    def take(self, rows: Codes) -> "_Column":
        return _Column(self.code[rows], self.numbers)

    def others(self, draws: Floats) -> Floats:
        """(code,) how many draws of a value are expected by those of the values around it, were it not there.

        Numbers may lie on a lattice whose step is the least distance of two: of whole numbers every step may have
        draws. Measurements with many digits lie on none.
        """
        n = np.bincount(self.code, draws, 1 if self.numbers is None else len(self.numbers) + 1)
        out = np.zeros(len(n))
        if self.numbers is None or len(self.numbers) <= 2 * _AROUND:
            return out
        x, own = self.numbers, n[1:]
        gap, total = np.abs(np.diff(x)), np.concatenate([[0.0], np.cumsum(own)])
        step = float(gap.min())
        rounding = 4.0 * np.finfo(float).eps * np.abs(x).max() / step
        if (np.abs(gap / step - np.round(gap / step)) > _OFF_LATTICE + rounding).any():
            return out
        at = np.arange(len(x))
        low, high = np.maximum(at - _AROUND, 0), np.minimum(at + _AROUND, len(x) - 1)
        out[1:] = (total[high + 1] - total[low] - own) / np.maximum(np.abs(x[high] - x[low]) / step, 1.0)
        return out


def _text(document: Any) -> Any:
    return str(document) if isinstance(document, list | tuple | np.ndarray) else document


def _mixed(columns: Sequence[NDArray[np.uint64]], n_rows: int) -> NDArray[np.uint64]:
    """One number of all columns, whatever their order."""
    with np.errstate(over="ignore"):
        total: NDArray[Any] = np.zeros(n_rows, np.uint64)
        for column in columns:
            total += column
        return lots(total)


def _lots_of(codes: Sequence[Codes], n_rows: int, seed: int) -> NDArray[np.uint64]:
    """A random number for each distinct row, by what it holds.

    The order of rows and columns, the direction in which numbers ascend and their units do not matter: a column is
    known by how many rows have each of its values.
    """
    columns = []
    for code in codes:
        size = np.bincount(code)
        there = np.flatnonzero(size[1:]) + 1  # the first is that of missing values
        rank = np.zeros(len(size), np.intp)
        rank[there] = 1 + np.arange(len(there))
        if size[there][::-1].tolist() < size[there].tolist():  # where both tails are as long
            rank[there] = rank[there][::-1]
        with np.errstate(over="ignore"):
            name = int((lots(rank) * size.astype(np.uint64)).sum() % np.uint64(1 << 31))
        columns.append(lots(rank[code], name))
    mixed: NDArray[Any] = _mixed(columns, n_rows)
    return lots(mixed, seed)


def _draws(columns: Sequence[_Column], y: Codes, frequency: Floats, weight: Floats | None, share: float) -> Floats:
    """(distinct row,) how many independent draws its frequency stands for: no more than chance explains.

    Of a ``share`` of the distinct rows, all rows are so many times as many draws in which a row may come again.
    """
    n = frequency / (_common_factor(frequency, y) if _may_be_copies(weight) else _mean_weight(weight))
    draws, repeated = n.copy(), np.flatnonzero(n > 1.0)
    if not len(repeated):
        return draws
    columns = _determining(columns)
    parents = _parents(columns, y, n)
    for _ in range(_ROUNDS):
        expected = _TOLERANCE / share * _expected(columns, parents, y, draws, repeated)
        beyond = gammainc(n[repeated] - 1.0, np.maximum(expected, 1e-300)) < _CHANCE  # P(Poisson >= n - 1)
        better = np.where(beyond, np.minimum(1.0 + expected, n[repeated]), n[repeated])
        settled = np.allclose(better, draws[repeated], rtol=1e-3)
        draws[repeated] = better
        if settled:
            break
    return draws


def _determining(columns: Sequence[_Column]) -> list[_Column]:
    """The columns of most values, without those that others determine, as a city determines its country.

    Distinct rows that agree in a column then agree in the other too; where no two agree in it, nothing is known.
    """
    kept = list[_Column]()
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


def _parents(columns: Sequence[_Column], y: Codes, n: Floats) -> list[int]:
    """The column that each column of few values depends on, -1 for none: a maximum spanning forest (Chow and Liu).

    Dependence is measured on all rows, but must be significant for as few rows as there are distinct ones, because
    copies do not show dependence.
    """
    out, reached = [-1] * len(columns), set[int]()
    few = [j for j, one in enumerate(columns) if int(one.code.max(initial=0)) < _SOME_VALUES]
    excess = {(i, j): _dependence(columns[i].code, columns[j].code, y, n) for i in few for j in few if i < j}
    excess |= {(j, i): nats for (i, j), nats in excess.items()}
    while len(reached) < len(few):
        edges = [(nats, i, j) for (i, j), nats in excess.items() if i in reached and j not in reached]
        nats, parent, child = max(edges, default=(0.0, -1, -1))
        if nats > 0.0:
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


def _expected(columns: Sequence[_Column], parents: list[int], y: Codes, draws: Floats, repeated: Codes) -> Floats:
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
            elif len(np.unique(code)) > max(_SOME_VALUES, _SHARE_OF_DRAWS * draws.sum()):
                others = np.bincount(code, draws)[code[repeated]] - draws[repeated]
                others = np.maximum(others, column.others(draws)[code[repeated]])
                log_share += np.log(np.maximum(others, 0.0) / draws.sum())
            else:
                wide = code.max() + 1
                both = np.bincount(y * wide + code, draws, len(in_class) * wide)
                log_share += np.log(both[mine * wide + code[repeated]] / in_class[mine])
    return in_class[mine] * np.exp(log_share)


def _may_be_copies(weight: Floats | None) -> bool:
    """Whether row weights may stand for so many copies: whole numbers that are not enormous."""
    return weight is None or bool((weight == np.round(weight)).all() and weight.max(initial=0.0) <= _MOST_COPIES)


def _mean_weight(weight: Floats | None) -> float:
    """What a row weighs in the mean of the rows, at least 1."""
    if weight is None:
        return 1.0
    share = weight / weight.max()  # whose squares are numbers, however large weights are
    return max(1.0, float((share**2).sum() / share.sum() * weight.max()))


def _common_factor(frequency: Floats, y: Codes) -> Floats:
    """(distinct row,) by which all frequencies of its class, or of all classes, are multiples: each row was copied so.

    >>> _common_factor(3.0 * np.arange(1, 61), np.zeros(60, np.intp)).tolist()[:2]
    [3.0, 3.0]
    """
    out = np.ones(len(frequency))
    whole = np.round(frequency)
    if not (np.abs(frequency - whole) <= 1e-9 * frequency).all() or (whole >= 1 << 53).any():
        return out
    counts = whole.astype(np.int64)
    if len(counts) >= _FEWEST_ROWS:
        out[:] = max(1, np.gcd.reduce(counts))
    for c in np.flatnonzero(np.bincount(y) >= _FEWEST_ROWS):
        out[y == c] = max(1, np.gcd.reduce(counts[y == c]))
    return out
