"""Sample rows by a hash of what they hold: each distinct row with all of its copies, or occurrence by occurrence.

Copies of a row must come into a sample together, with their true frequency: else nobody can tell that they are copies.
Rows that repeat by chance are better drawn one by one: a sample of distinct rows would miss a row that half of the
table has, or give it too much weight.

>>> rng = np.random.default_rng(0)
>>> sizes = np.repeat(rng.normal(size=(300, 2)), 67, axis=0)
>>> some = draw_rows(Table.from_data(sizes), np.zeros(len(sizes), np.intp), Labels(("a",)), None, 20_000)
>>> len(some.row), set(some.frequency.tolist()), some.share
(300, {67.0}, 1.0)
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.data.documents import Documents
from candide.data.labels import Labels
from candide.data.repeated_rows import DistinctRows
from candide.data.row_hash import Hashes, hash_column, hash_rows, mix
from candide.data.table import Table

BIN_FOLDS = 5  # among which the independent draws of equal rows are divided
_TIES = np.uint64(0xFFFF)  # bits by which rows are told apart that differ in the label alone
_COPIED = 0.05  # share of the rows that are copies, from which on distinct rows are sampled
_EVEN = 0.9  # of as many distinct rows, what they are worth if their frequencies differ (Kish)
_MISSED = 0.1  # share of the rows by which those of a sample of distinct rows may be off, extrapolated,
_DEVIATIONS = 4.0  # or what chance explains


class SampledRows(NamedTuple):
    """Rows of a sample, by their places."""

    row: Codes  # in ascending order
    frequency: Floats | None  # the weight of all rows equal to it; None where rows were drawn one by one
    n_rows: int  # that they stand for
    share: float  # of the distinct rows, or of the rows, that were drawn


def share_below(bound: Any) -> float:
    """The share of hashes up to a bound."""
    return (int(bound) + 1) / (1 << 64)


def draw_rows(
    table: Table,
    y: Codes,
    labels: Labels,
    weight: Floats | None,
    most: int,
    seed: int = 0,
    *,
    fold: Codes | None = None,
    whole: bool = True,
) -> SampledRows:
    """At most so many rows of a table in memory; ``whole``: it is not itself a sample, so frequencies are true."""
    columns = {name: _column(table, name) for name in table.names}
    hashes = hash_rows(columns, len(y))
    identity = identities(hashes, hash_column(labels.array)[y], fold)
    ordered = np.sort(identity)
    if (ordered[1:] != ordered[:-1]).all():
        return _smallest(orders(hashes, identity, seed), most)
    by_weight = () if weight is None else (weight,)
    rank = np.lexsort((*by_weight, identity))  # equal rows one after another
    starts = np.flatnonzero(np.concatenate([[True], np.diff(identity[rank]) != 0]))
    count = np.diff(np.append(starts, len(y)))
    if whole:
        first, frequency = rank[starts], count if weight is None else np.add.reduceat(weight[rank], starts)
        order = orders(hashes[first], identity[first], seed)
        some = _smallest(order, most).row if len(first) > most else np.arange(len(first))
        bound = order[some].max() if len(some) < len(first) else np.uint64(2**64 - 1)

        def distinct() -> DistinctRows:
            at = first[some]
            taken = [column.take(at) if hasattr(column, "take") else column[at] for column in columns.values()]
            return DistinctRows.from_columns(taken, y[at], frequency[some].astype(float), share=share_below(bound))

        chosen = choose_distinct(order[some], count[some], distinct, share_below(bound), len(y), most)
        if chosen is not None:
            some, place = some[chosen[0]], np.argsort(first[some[chosen[0]]])
            some = some[place]
            return SampledRows(first[some], frequency[some].astype(float), int(count[some].sum()), chosen[1])
    occurrence = np.empty(len(y), np.uint64)
    occurrence[rank] = np.arange(len(y)) - np.repeat(starts, count)
    with np.errstate(over="ignore"):
        return _smallest(orders(hashes + mix(occurrence), identity, seed), most)


def identities(hashes: Hashes, labels: Hashes, fold: Codes | None = None) -> Hashes:
    """(row,) a number of its columns and label, and of its fold."""
    with np.errstate(over="ignore"):
        out = hashes + mix(labels, 1)
        return mix(out if fold is None else out + mix(fold.astype(np.uint64), 2))


def orders(hashes: Hashes, identity: Hashes, seed: int) -> Hashes:
    """(row,) a random number by its columns alone, so that names of labels do not matter, but for ties."""
    return (mix(hashes, seed) & ~_TIES) | (identity & _TIES)


def choose_distinct(
    order: Hashes, count: Codes, distinct: Callable[[], DistinctRows], share: float, n_rows: int, most: int
) -> tuple[Codes, float] | None:
    """Which distinct rows of a sample to learn from, and the share of all that these are; None: draw rows one by one.

    The sample has those with the smallest hashes (``order``), each of them ``count`` times among ``n_rows``.
    """
    n, everything = count.astype(float), share == 1.0
    bound = n_rows * max(_MISSED, _DEVIATIONS / np.sqrt(len(n)))
    is_typical = everything or bool(abs(n.sum() / share - n_rows) <= bound)
    if is_typical and (count == 1).all():
        return _first_of(order, n, share, most)
    rows = distinct()
    draws = rows.draws[rows.group]
    entries = np.minimum(np.ceil(draws), np.minimum(n, BIN_FOLDS))
    copied = rows.frequency[rows.weight_per_draw > 1.0].sum() >= _COPIED * rows.frequency.sum()
    if copied or (everything and entries.sum() <= most):
        return _first_of(order, entries, share, most)
    is_even = n.sum() ** 2 >= _EVEN * len(n) * (n**2).sum()
    return _first_of(order, entries, share, most) if is_even and is_typical else None


def _first_of(order: Hashes, entries: Floats, share: float, most: int) -> tuple[Codes, float]:
    rank = np.argsort(order, kind="stable")
    n = max(1, int(np.searchsorted(np.cumsum(entries[rank]), most, side="right")))
    return rank[:n], share if n == len(order) else share_below(order[rank[n - 1]])


def _smallest(order: Hashes, most: int) -> SampledRows:
    if len(order) <= most:
        return SampledRows(np.arange(len(order)), None, len(order), 1.0)
    rows = np.sort(np.argpartition(order, most)[:most])
    return SampledRows(rows, None, most, most / len(order))


def _column(table: Table, name: Any) -> Any:
    own = table.source[name] if isinstance(table.source, dict) else None
    return own if isinstance(own, Documents) else table.column(name)
