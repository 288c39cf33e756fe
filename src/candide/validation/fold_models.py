"""Models of folds: a plan that counts the terms of all of them, and models that score rows encoded once for all folds.

Each fold selects its terms without its own rows. The plans of all folds are united into one, which is counted fold by
fold in one pass; the counts of a fold's training rows are the sum of the others, restricted to its own terms. A fold
may lack levels, classes and columns that others have.

>>> from candide.engines import arrays
>>> from candide.model.plan import make_plan
>>> from candide.data.table import Table
>>> def count(jobs, y):
...     table = Table.from_data({"job": jobs})
...     return arrays.count_table(table, y, plan=make_plan(table, "categorical").with_levels(table))
>>> half, other = count(["cook", "smith"], ["a", "b"]), count(["baker", "smith"], ["c", "b"])
>>> whole = half + other
>>> fold = FoldModel.from_naive(whole, FittedModel(half))
>>> np.exp(fold.log_posterior(whole.plan.blocks(Table.from_data({"job": ["cook", "baker"]})))).round(2).tolist()
[[0.38, 0.28, 0.33], [0.33, 0.33, 0.33]]
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
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
from candide.validation.held_out import expand_classes


def unite_plans(plans: Sequence[Plan]) -> Plan:
    """The plan of all parts of several plans, each once; interactions of as many columns become one part."""
    groups: dict[Any, list[PlanPart]] = {}
    for part in (part for plan in plans for part in plan.parts):
        groups.setdefault(_part_key(part), []).append(part)
    columns = dict.fromkeys(name for plan in plans for name in plan.columns)
    return Plan(tuple(columns), tuple(reduce(_unite_parts, group) for group in groups.values()))


def part_places(united: Plan, plan: Plan) -> list[int]:
    """For each part of a plan, the part of the united plan that counts it."""
    places = {_part_key(part): i for i, part in enumerate(united.parts)}
    return [places[_part_key(part)] for part in plan.parts]


def select_counts(counts: ModelCounts, plan: Plan) -> ModelCounts:
    """The counts of one of the plans that the plan of the counts unites, without levels and classes of no rows."""
    parts, tallies = list[PlanPart](), list[Any]()
    for part, i in zip(plan.parts, part_places(counts.plan, plan), strict=True):
        united, tally = counts.plan.parts[i], counts.tallies[i]
        if part.spec.sets:
            place = {names: s for s, names in enumerate(united.event.term_names(united.columns))}
            chosen = [place[names] for names in part.event.term_names(part.columns)]
            united = _with_sets(united, [united.spec.sets[s] for s in chosen])
            tally = tally.select_features(np.array(chosen, np.intp))
        parts.append(united)
        tallies.append(tally)
    return replace(counts, plan=Plan(plan.columns, tuple(parts)), tallies=tuple(tallies)).prune()


def _part_key(part: PlanPart) -> Any:
    """What distinguishes parts that are counted separately."""
    return len(part.spec.sets[0]) if part.spec.sets else (part.event, part.columns)


def _unite_parts(a: PlanPart, b: PlanPart) -> PlanPart:
    if not a.spec.sets:
        return a.union(b)[0]
    encodings = dict(zip(a.columns, a.encodings, strict=True))
    for name, encoding in zip(b.columns, b.encodings, strict=True):
        encodings[name] = encodings[name].union(encoding)[0] if name in encodings else encoding
    place = {name: j for j, name in enumerate(encodings)}
    sets = dict.fromkeys(
        tuple(place[name] for name in names) for part in (a, b) for names in part.event.term_names(part.columns)
    )
    return _with_sets(PlanPart(a.event, tuple(encodings), tuple(encodings.values())), list(sets))


def _with_sets(part: PlanPart, sets: Sequence[tuple[int, ...]]) -> PlanPart:
    event: Any = part.event
    return PlanPart(replace(event, sets=tuple(sets)), part.columns, part.encodings)


def score_by_fold(plan: Plan, models: Sequence["FoldModel"], batch: Any) -> Iterator[tuple[int, NDArray, Floats]]:
    """For each fold its rows and their log p(class | x) under its model; the rows are encoded once."""
    fold = arrow_numbers(batch.column("fold"))
    order = np.argsort(fold, kind="stable")  # by counting, where integers are narrow
    bounds = np.searchsorted(fold[order], np.arange(len(models) + 1))
    blocks = make_blocks(plan, batch.take(order))
    for f, (a, b) in enumerate(pairwise(bounds.tolist())):
        if a < b:
            yield f, order[a:b], models[f].log_posterior([slice_rows(block, slice(a, b)) for block in blocks])


class FoldModel:
    """The model of a fold for rows encoded by the plan of all: it may lack levels, classes and columns."""

    def __init__(self, whole: ModelCounts, fitted: FittedModel, places: Sequence[int]):
        """``places``: for each part of the fold's model the part of the whole plan that it is read from."""
        self.fitted, self.n_classes = fitted, len(whole.labels)
        self.classes = np.array([whole.labels.index[label] for label in fitted.labels.values], np.intp)
        pairs = [(whole.plan.parts[i], own) for i, own in zip(places, fitted.plan.parts, strict=True)]
        self.places = places
        self.columns = [_column_positions(part, own) for part, own in pairs]
        self.readers = [_block_reader(part, own) for part, own in pairs]

    @classmethod
    def from_naive(cls, whole: ModelCounts, fitted: FittedModel) -> "FoldModel":
        """Of a model in which every column is in one part: the counts may have divided a part of the plan."""
        rest, used, places = iter(fitted.plan.parts), set(fitted.plan.columns), list[int]()
        for i, part in enumerate(whole.plan.parts):
            left = used & set(part.columns)
            while left:
                left -= set(next(rest).columns)
                places.append(i)
        return cls(whole, fitted, places)

    def log_posterior(self, blocks: Sequence[Block]) -> Floats:
        """(row, class) log p(class | x), of the classes of all rows."""
        each = zip(self.places, self.columns, self.readers, strict=True)
        own = [read(_select_columns(blocks[i], columns)) for i, columns, read in each]
        log_posterior, _ = score_blocks(self.fitted.plan, self.fitted.model, own)
        return expand_classes(log_posterior, self.fitted.counts, self.classes, self.n_classes)


def _block_reader(part: PlanPart, own: PlanPart) -> Callable[[Block], Block]:
    """How a part reads the block of the part that has its columns: as its own codes, or as the numbers meant."""
    if part.block_kind == own.block_kind:
        return partial(_recode, mappings=_code_mappings(part, own))
    levels = dict(zip(part.columns, part.levels, strict=True))
    values = [np.array([*levels[name].values, np.nan], np.float64) for name in own.columns]  # missing: the last, -1

    def read(codes: Any) -> Block:
        return np.column_stack([numbers[codes[:, j]] for j, numbers in enumerate(values)])

    return read


def _column_positions(part: PlanPart, own: PlanPart) -> NDArray[np.intp] | None:
    """Where the columns of a part with some of them lie; None where it has all."""
    place = {name: j for j, name in enumerate(part.columns)}
    return None if part.columns == own.columns else np.array([place[name] for name in own.columns], np.intp)


def _code_mappings(part: PlanPart, own: PlanPart) -> list[tuple[int, CodeMapping]]:
    """The columns that lack some levels, and what their codes become."""
    encodings = dict(zip(part.columns, part.encodings, strict=True))
    pairs = [(encodings[name], encoding) for name, encoding in zip(own.columns, own.encodings, strict=True)]
    return [
        (j, CodeMapping(encoding.read(every.decode(np.arange(every.n_levels or 0))), encoding.n_levels))
        for j, (every, encoding) in enumerate(pairs)
        if every.n_levels != encoding.n_levels
    ]


def _select_columns(block: Any, columns: NDArray[np.intp] | None) -> Block:
    return block if columns is None else np.asfortranarray(block[:, columns])


def _recode(block: Any, mappings: Sequence[tuple[int, CodeMapping]]) -> Block:
    out = block.copy(order="F") if mappings else block
    for j, mapping in mappings:
        out[:, j] = mapping.apply(out[:, j])
    return out
