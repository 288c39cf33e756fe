"""The models of folds, for rows that are encoded once for all of them: a fold may know fewer levels and columns.

>>> from candide.engines import arrays
>>> from candide.model.plan import make_plan
>>> from candide.data.table import Table
>>> def counted(jobs, y):
...     table = Table.from_data({"job": jobs})
...     return arrays.count_table(table, y, plan=make_plan(table, "categorical").with_levels(table))
>>> half, other = counted(["cook", "smith"], ["a", "b"]), counted(["baker", "smith"], ["c", "b"])
>>> whole = half + other
>>> fold = FoldModel.from_naive(whole, FittedModel(half))
>>> np.exp(fold.log_posterior(whole.plan.blocks(Table.from_data({"job": ["cook", "baker"]})))).round(2).tolist()
[[0.38, 0.28, 0.33], [0.33, 0.33, 0.33]]
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_numbers
from candide.data.blocks import Block, Floats, slice_rows
from candide.encoding import CodeMapping
from candide.engines.batches import make_blocks
from candide.engines.scoring import score_blocks
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart

PartPlaces = Sequence[
    tuple[int, PlanPart]
]  # of each part of a fold's model: which part of the plan of all it is read from


def score_by_fold(plan: Plan, models: Sequence["FoldModel"], batch: Any) -> Iterator[tuple[int, NDArray, Floats]]:
    """Fold by fold its rows and their log p(class | x) under its model; the rows are encoded once for all of them."""
    fold = arrow_numbers(batch.column("fold"))
    order = np.argsort(fold, kind="stable")  # by counting, where integers are narrow
    bounds = np.searchsorted(fold[order], np.arange(len(models) + 1))
    encoded = make_blocks(plan, batch.take(order))
    for f, (a, b) in enumerate(pairwise(bounds.tolist())):
        if a < b:
            yield f, order[a:b], models[f].log_posterior([slice_rows(block, slice(a, b)) for block in encoded])


class FoldModel:
    """The model of a fold for rows encoded by the plan of all: it may know fewer levels, classes and columns."""

    def __init__(self, whole: ModelCounts, fitted: FittedModel, places: PartPlaces):
        self.fitted, self.n_classes = fitted, len(whole.labels)
        self.classes = np.array([whole.labels.index[label] for label in fitted.labels.values], np.intp)
        own = zip(places, fitted.plan.parts, strict=True)
        self.parts = [(i, _column_positions(part, mine), _block_reader(part, mine)) for (i, part), mine in own]

    @classmethod
    def from_naive(cls, whole: ModelCounts, fitted: FittedModel) -> "FoldModel":
        """Of columns each of which is in one part."""
        return cls(whole, fitted, list(_matching_parts(whole.plan, fitted.plan)))

    @classmethod
    def from_weighted(cls, whole: ModelCounts, fitted: FittedModel, part_indices: Sequence[int]) -> "FoldModel":
        """Of parts whose places in the plan of all are known."""
        return cls(whole, fitted, [(i, whole.plan.parts[i]) for i in part_indices])

    def log_posterior(self, encoded: Sequence[Block]) -> Floats:
        """(row, class) log p(class | x), of the classes of all rows."""
        own = [read(_select_columns(encoded[i], at)) for i, at, read in self.parts]
        found, _ = score_blocks(self.fitted.plan, self.fitted.model, own)
        return expand_classes(found, self.fitted.counts, self.classes, self.n_classes)


def expand_classes(log_posterior: Floats, counts: ModelCounts, classes: NDArray[np.intp], n_classes: int) -> Floats:
    """(row, class) log p(class | x) of all classes, where a model of such counts has met those with these codes.

    A class that it has not met has the share of one row more, whatever x is: a row of it is a surprise, not an
    impossibility.
    """
    if len(classes) == n_classes:
        return log_posterior
    n, unmet = float(counts.class_weight.sum()), n_classes - len(classes)
    out = np.full((len(log_posterior), n_classes), -np.log(n + unmet))
    out[:, classes] = log_posterior - np.log1p(unmet / n)
    return out


def _matching_parts(plan: Plan, own: Plan) -> Iterator[tuple[int, PlanPart]]:
    """For every part of a fold's model that of all rows which has its columns: the counts may have divided one."""
    rest, used = iter(own.parts), set(own.columns)
    for i, part in enumerate(plan.parts):
        left = used & set(part.columns)
        while left:
            left -= set(next(rest).columns)
            yield i, part


def _block_reader(part: PlanPart, own: PlanPart) -> Callable[[Block], Block]:
    """How a part reads the block of the part that has its columns: codes as its own codes, or as the numbers meant."""
    if part.block_kind == own.block_kind:
        return partial(_recode, moves=_code_moves(part, own))
    wide = dict(zip(part.columns, part.levels, strict=True))
    values = [np.array([*wide[name].values, np.nan], np.float64) for name in own.columns]  # absent: the last, -1

    def read(codes: Any) -> Block:
        return np.column_stack([found[codes[:, j]] for j, found in enumerate(values)])

    return read


def _column_positions(part: PlanPart, own: PlanPart) -> NDArray[np.intp] | None:
    """Where the columns of a part with some of them lie; None where it has all."""
    at = {name: j for j, name in enumerate(part.columns)}
    return None if part.columns == own.columns else np.array([at[name] for name in own.columns], np.intp)


def _code_moves(part: PlanPart, own: PlanPart) -> list[tuple[int, CodeMapping]]:
    """The columns of which some levels are unknown, and where their codes go."""
    wide = dict(zip(part.columns, part.encodings, strict=True))
    pairs = [(wide[name], mine) for name, mine in zip(own.columns, own.encodings, strict=True)]
    return [
        (j, CodeMapping(mine.read(every.decode(np.arange(every.n_levels or 0))), mine.n_levels))
        for j, (every, mine) in enumerate(pairs)
        if every.n_levels != mine.n_levels
    ]


def _select_columns(block: Any, columns: NDArray[np.intp] | None) -> Block:
    return block if columns is None else np.asfortranarray(block[:, columns])


def _recode(block: Any, moves: Sequence[tuple[int, CodeMapping]]) -> Block:
    out = block.copy(order="F") if moves else block
    for j, move in moves:
        out[:, j] = move.apply(out[:, j])
    return out
