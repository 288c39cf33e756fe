"""Folds: copies of a row stay in one fold, and each fold has a model of the other folds.

Each fold selects its terms without its own rows. The plans of all folds are united into one, which is counted fold by
fold in one pass; the counts of a fold's training rows are the sum of the others, restricted to its own terms. Rows are
encoded once for all folds, although a fold may lack levels, classes and columns that others have.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_numbers
from candide.data.blocks import Block, Codes, Floats, slice_rows
from candide.data.equal_rows import DistinctRows, hash_column, mix
from candide.data.notes import Note
from candide.data.sample import assign_folds
from candide.encoding import CodeMapping
from candide.engines.base import Folds, FoldsOfRows, LabelledSource, PreparedSource
from candide.engines.batches import make_blocks
from candide.engines.draw_sample import DistinctDrawing, draw_sample
from candide.engines.scoring import score_blocks
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.validation.held_out import expand_classes
from candide.weighted.terms.base import JointTerm

_MIN_COPIED = 0.05  # proportion of copies below which rows are divided one by one
_MOSTLY_COPIED = 0.5  # proportion of copies among equal rows above which all equal rows of a large table stay together
_MAX_ROWS = 50_000_000  # a number of each is held in memory


def keep_copies_together(
    rows: LabelledSource, prepared: PreparedSource, folds: Folds, ignored: Sequence[str] = ()
) -> tuple[Folds, list[Note]]:
    """The folds of a source of which some rows are copies; a note where copies cannot be kept together.

    Rows are equal if they agree in the label and in all columns of the model but those ``ignored``. Equal rows that
    chance explains are independent: they are divided among folds like other rows.
    """
    plan = _without_columns(prepared.plan, ignored)
    if folds.key_column is not None or not plan.parts:
        return folds, []
    rows = replace(rows, folds=None)
    try:
        sample = draw_sample(rows, replace(prepared, plan=plan))
        distinct = sample.distinct()
    except InputError:  # raised again where rows are counted
        return folds, []
    n = distinct.frequency
    copied, total = float(n[distinct.weight_per_draw > 1.0].sum()), float(n.sum())
    if copied < _MIN_COPIED * total:
        return folds, []
    is_whole = sample.n_pooled is None and not sample.is_part
    if rows.source.takes_folds and (is_whole or copied >= _MOSTLY_COPIED * float(n[n > 1.0].sum())):
        identities = rows.source.engine.gather(rows, plan, _Identities(DistinctDrawing.from_plan(plan)))
        if len(identities) <= _MAX_ROWS:
            fold = np.zeros(len(identities), np.intp)
            if is_whole:
                fold[sample.row_number] = _assign_draws(distinct, sample.weight, folds.n)
            else:  # all equal rows in one fold; those of a class are divided in an order drawn by contents
                _, first, group = np.unique(identities[:, 0], return_index=True, return_inverse=True)
                _, label = np.unique(identities[first, 1], return_inverse=True)
                fold = assign_folds(label, folds.n, mix(identities[first, 0], folds.seed))[group]
            return folds._replace(rows=FoldsOfRows(fold)), []
    text = (
        f"{copied / total:.1%} of the rows are copies of another row, and are divided among the folds: "
        "scores are too good"
    )
    remedy = "remove the copies, or name a column that copies share: --fold-by"
    return folds, [Note("repeated-rows", text, remedy=remedy)]


def _without_columns(plan: Plan, ignored: Sequence[str]) -> Plan:
    """A plan that reads all columns but some."""
    parts = list[PlanPart]()
    for part in plan.parts:
        pairs = [p for p in zip(part.columns, part.encodings, strict=True) if str(p[0]) not in ignored]
        if pairs:
            columns, encodings = zip(*pairs, strict=True)
            parts.append(replace(part, columns=columns, encodings=encodings))
    return Plan(tuple(name for part in parts for name in part.columns), tuple(parts))


def _assign_draws(rows: DistinctRows, weight: Floats | None, n: int) -> Codes:
    """(row,) its fold: independent draws of equal rows are divided, copies are not."""
    weight = np.ones(len(rows.group)) if weight is None else weight
    _, fold, entry_weight = rows.assign_folds(n)
    ends = np.cumsum(entry_weight)
    order = np.argsort(rows.group, kind="stable")
    middle = np.cumsum(weight[order]) - weight[order] / 2  # entries and rows are both in the order of distinct rows
    out = np.empty(len(order), np.intp)
    out[order] = fold[np.minimum(np.searchsorted(ends, middle), len(fold) - 1)]
    return out


class _Identities:
    """(row, 2) a number that equal rows share, and the hash of the label."""

    def __init__(self, drawing: DistinctDrawing):
        self.drawing = drawing

    def __call__(self, batches: Iterable[Any], first: int) -> NDArray:
        parts = [np.column_stack([self.drawing.hashes(batch)[1], hash_column(batch.column("k0"))]) for batch in batches]
        return self.combine(parts)

    def combine(self, parts: Sequence[NDArray]) -> NDArray:
        return np.concatenate(parts) if parts else np.empty((0, 2), np.uint64)


def unite_plans(plans: Sequence[Plan]) -> Plan:
    """The plan of all parts of several plans, each once."""
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
    parts = [counts.parts[i] for i in part_places(counts.plan, plan)]
    for i, part in enumerate(plan.parts):
        if isinstance(part.event, JointTerm):
            parts[i] = part.event.select_part(part, *parts[i])
    return counts.with_parts(parts, plan.columns).prune()


def _part_key(part: PlanPart) -> Any:
    """What distinguishes parts that are counted separately."""
    event = part.event
    return event.union_key(part.columns) if isinstance(event, JointTerm) else (event, part.columns)


def _unite_parts(a: PlanPart, b: PlanPart) -> PlanPart:
    return a.event.unite_parts(a, b) if isinstance(a.event, JointTerm) else a.union(b)[0]


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
        self.places = places
        parts = zip(places, fitted.plan.parts, strict=True)
        self.readers = [_block_reader(whole.plan.parts[i], own) for i, own in parts]

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
        own = [read(blocks[i]) for i, read in zip(self.places, self.readers, strict=True)]
        log_posterior, _ = score_blocks(self.fitted.plan, self.fitted.model, own)
        return expand_classes(log_posterior, self.fitted.counts, self.classes, self.n_classes)


def _block_reader(part: PlanPart, own: PlanPart) -> Callable[[Any], Block]:
    """How a part reads the block of the part that has its columns: as its own codes, or as the numbers meant."""
    place = {name: j for j, name in enumerate(part.columns)}
    columns = None if part.columns == own.columns else np.array([place[name] for name in own.columns], np.intp)
    recode = part.block_kind == own.block_kind
    encodings = dict(zip(part.columns, part.encodings, strict=True))
    pairs = [(encodings[name], encoding) for name, encoding in zip(own.columns, own.encodings, strict=True)]
    mappings = [
        (j, CodeMapping(encoding.read(every.decode(np.arange(every.n_levels or 0))), encoding.n_levels))
        for j, (every, encoding) in enumerate(pairs)
        if recode and every.n_levels != encoding.n_levels
    ]
    levels = {} if recode else dict(zip(part.columns, part.levels, strict=True))
    values = [np.array([*levels[name].values, np.nan], np.float64) for name in own.columns if levels]  # missing: last

    def read(block: Any) -> Block:
        block = block if columns is None else np.asfortranarray(block[:, columns])
        if not recode:
            return np.column_stack([numbers[block[:, j]] for j, numbers in enumerate(values)])
        out = block.copy(order="F") if mappings else block
        for j, mapping in mappings:
            out[:, j] = mapping.apply(out[:, j])
        return out

    return read
