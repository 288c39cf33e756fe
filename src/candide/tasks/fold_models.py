"""The models of folds, for rows that are encoded once for all of them: a fold may know fewer levels and columns.

>>> from candide.engines import arrays
>>> from candide.model.plan import make_plan
>>> from candide.rows.table import Table
>>> def counted(jobs, y):
...     table = Table.of({"job": jobs})
...     return arrays.count(table, y, plan=make_plan(table, "categorical").with_levels(table))
>>> half, other = counted(["cook", "smith"], ["a", "b"]), counted(["baker", "smith"], ["c", "b"])
>>> whole = half + other
>>> fold = FoldModel.plain(whole, Fitted(half))
>>> np.exp(fold.log_posterior(whole.plan.blocks(Table.of({"job": ["cook", "baker"]})))).round(2).tolist()
[[0.38, 0.28, 0.33], [0.33, 0.33, 0.33]]
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.encode import Move
from candide.engines.batch import blocks
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.plan import Part, Plan
from candide.rows.arrow import arrow_numbers
from candide.rows.blocks import Block, Floats, rows_of
from candide.tasks.scoring import scored_blocks

Places = Sequence[tuple[int, Part]]  # of each part of a fold's model: which part of the plan of all it is read from


def by_fold(plan: Plan, models: Sequence["FoldModel"], batch: Any) -> Iterator[tuple[int, NDArray, Floats]]:
    """Fold by fold its rows and their log p(class | x) under its model; the rows are encoded once for all of them."""
    fold = arrow_numbers(batch.column("fold"))
    order = np.argsort(fold, kind="stable")  # by counting, where integers are narrow
    bounds = np.searchsorted(fold[order], np.arange(len(models) + 1))
    encoded = blocks(plan, batch.take(order))
    for f, (a, b) in enumerate(pairwise(bounds.tolist())):
        if a < b:
            yield f, order[a:b], models[f].log_posterior([rows_of(block, slice(a, b)) for block in encoded])


class FoldModel:
    """The model of a fold for rows encoded by the plan of all: it may know fewer levels, classes and columns."""

    def __init__(self, whole: Census, fitted: Fitted, places: Places):
        self.fitted, self.n_classes = fitted, len(whole.labels)
        self.classes = np.array([whole.labels.index[label] for label in fitted.labels.values], np.intp)
        own = zip(places, fitted.plan.parts, strict=True)
        self.parts = [(i, _place(part, mine), _reader(part, mine)) for (i, part), mine in own]

    @classmethod
    def plain(cls, whole: Census, fitted: Fitted) -> "FoldModel":
        """Of columns each of which is in one part."""
        return cls(whole, fitted, list(_within(whole.plan, fitted.plan)))

    @classmethod
    def weighted(cls, whole: Census, fitted: Fitted, at: Sequence[int]) -> "FoldModel":
        """Of parts whose places in the plan of all are known."""
        return cls(whole, fitted, [(i, whole.plan.parts[i]) for i in at])

    def log_posterior(self, encoded: Sequence[Block]) -> Floats:
        """(row, class) log p(class | x), of the classes of all rows."""
        own = [read(_narrow(encoded[i], at)) for i, at, read in self.parts]
        found, _ = scored_blocks(self.fitted.plan, self.fitted.model, own)
        return among_all(found, self.fitted.census, self.classes, self.n_classes)


def among_all(found: Floats, census: Census, classes: NDArray[np.intp], n_classes: int) -> Floats:
    """(row, class) log p(class | x) of all classes, where a model of such counts has met those with these codes.

    A class that it has not met has the share of one row more, whatever x is: a row of it is a surprise, not an
    impossibility.
    """
    if len(classes) == n_classes:
        return found
    n, unmet = float(census.class_weight.sum()), n_classes - len(classes)
    out = np.full((len(found), n_classes), -np.log(n + unmet))
    out[:, classes] = found - np.log1p(unmet / n)
    return out


def _within(plan: Plan, own: Plan) -> Iterator[tuple[int, Part]]:
    """For every part of a fold's model that of all rows which has its columns: the counts may have divided one."""
    rest, used = iter(own.parts), set(own.columns)
    for i, part in enumerate(plan.parts):
        left = used & set(part.columns)
        while left:
            left -= set(next(rest).columns)
            yield i, part


def _reader(part: Part, own: Part) -> Callable[[Block], Block]:
    """How a part reads the block of the part that has its columns: codes as its own codes, or as the numbers meant."""
    if part.holds == own.holds:
        return partial(_recoded, moves=_moves(part, own))
    wide = dict(zip(part.columns, part.levels, strict=True))
    values = [np.array([*wide[name].values, np.nan], np.float64) for name in own.columns]  # absent: the last, -1

    def read(codes: Any) -> Block:
        return np.column_stack([found[codes[:, j]] for j, found in enumerate(values)])

    return read


def _place(part: Part, own: Part) -> NDArray[np.intp] | None:
    """Where the columns of a part with some of them lie; None where it has all."""
    at = {name: j for j, name in enumerate(part.columns)}
    return None if part.columns == own.columns else np.array([at[name] for name in own.columns], np.intp)


def _moves(part: Part, own: Part) -> list[tuple[int, Move]]:
    """The columns of which some levels are unknown, and where their codes go."""
    wide = dict(zip(part.columns, part.encodings, strict=True))
    pairs = [(wide[name], mine) for name, mine in zip(own.columns, own.encodings, strict=True)]
    return [
        (j, Move(mine.read(every.decode(np.arange(every.n_levels or 0))), mine.n_levels))
        for j, (every, mine) in enumerate(pairs)
        if every.n_levels != mine.n_levels
    ]


def _narrow(block: Any, columns: NDArray[np.intp] | None) -> Block:
    return block if columns is None else np.asfortranarray(block[:, columns])


def _recoded(block: Any, moves: Sequence[tuple[int, Move]]) -> Block:
    out = block.copy(order="F") if moves else block
    for j, move in moves:
        out[:, j] = move.apply(out[:, j])
    return out
