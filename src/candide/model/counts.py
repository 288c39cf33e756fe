"""Counts of a model: labels, class weights and one tally per block. They are saved, shipped and merged.

Counts add: label sets and levels are united first, so that parts with different classes or categories add up to the
whole. Removed rows leave no trace: a class or level of which nothing is left is dropped, unless it was declared.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide import events, formatting
from candide.data.blocks import Codes, Floats
from candide.data.labels import Labels
from candide.data.table import Name
from candide.encoding import CodeMapping
from candide.errors import InputError, NotCountedError, SumTooLargeError
from candide.model.plan import CodeMoves, Plan, PlanPart
from candide.tally import LevelTally, Moments, Tally
from candide.tally.base import MAX_SUM

_MAX_TOTAL_WEIGHT = 1e150  # of all rows: its square is finite


@dataclass(frozen=True, eq=False, repr=False)
class ModelCounts:
    """What was counted, and how it was encoded. No prior is included."""

    plan: Plan
    labels: Labels
    class_weight: Floats  # (classes,)
    tallies: tuple[Tally, ...]  # one per part of the plan
    n_rows: int

    def __post_init__(self) -> None:
        weight = float(self.class_weight.sum())
        if not weight <= _MAX_TOTAL_WEIGHT:
            what = f"the weights of the rows sum to {weight:g}; the largest sum allowed is {_MAX_TOTAL_WEIGHT:g}"
            raise SumTooLargeError(what, value=weight, remedy="divide the weights")

    def __repr__(self) -> str:
        rows, columns = formatting.format_count(self.n_rows), formatting.format_count(len(self.plan.columns), "column")
        return f"<ModelCounts of {rows}, {columns} and {formatting.format_count(len(self.labels), 'class', 'classes')}>"

    @property
    def parts(self) -> list[tuple[PlanPart, Any]]:
        return list(zip(self.plan.parts, self.tallies, strict=True))

    def with_parts(
        self, parts: Sequence[tuple[PlanPart, Tally]], columns: tuple[Name, ...] | None = None
    ) -> "ModelCounts":
        plan = Plan(self.plan.columns if columns is None else columns, tuple(part for part, _ in parts))
        return replace(self, plan=plan, tallies=tuple(tally for _, tally in parts))

    @property
    def class_tally(self) -> LevelTally:
        """The class weights as a tally: the class prior is a Categorical event model of ``y``."""
        return LevelTally(self.class_weight[None, :], np.array([0, len(self.labels)], np.intp))

    def __add__(self, other: "ModelCounts") -> "ModelCounts":
        mine, theirs = align_counts(self, other)
        tallies = tuple(a + b for a, b in zip(mine.tallies, theirs.tallies, strict=True))
        weight, n_rows = mine.class_weight + theirs.class_weight, mine.n_rows + theirs.n_rows
        return replace(mine, class_weight=weight, tallies=tallies, n_rows=n_rows).limit_levels().check_range()

    def check_range(self) -> "ModelCounts":
        """Return these counts; raise an InputError where a sum is too large to be merged or written to a file."""
        for part, tally in self.parts:
            if (cell := tally.find_too_large()) is not None:
                column, _ = _describe_cell(tally, cell[1], part)
                what = f"class {self.labels.values[cell[0]]!r}: sums of its values exceed {MAX_SUM:g}"
                remedy = "divide the column by a constant, or leave the largest values out"
                raise SumTooLargeError(what, column=column, remedy=remedy)
        return self

    def limit_levels(self) -> "ModelCounts":
        """Return the counts with columns of too many distinct whole numbers as numbers instead of levels."""
        sized = [(part.event.max_levels, part, j) for part in self.plan.parts for j in range(len(part.columns))]
        many = [part.columns[j] for limit, part, j in sized if limit and (part.encodings[j].n_levels or 0) > limit]
        return _convert_to_numbers(self, many) if many else self

    def __sub__(self, other: "ModelCounts") -> "ModelCounts":
        """Remove rows counted earlier, which must be included; drop classes and levels of which nothing is left."""
        for label, w in zip(other.labels.values, other.class_weight, strict=True):
            if w > 0 and self.labels.find_code(label) is None:
                raise NotCountedError(f"class {label!r} was never counted, so no row of it can be removed", value=label)
        mine, theirs = align_counts(self, other)
        if theirs.n_rows > mine.n_rows:
            raise NotCountedError(f"cannot remove {theirs.n_rows} rows from {mine.n_rows}")
        pairs = zip(mine.parts, theirs.tallies, strict=True)
        tallies = tuple(_subtract_tally(a, b, mine.labels, of) for (of, a), b in pairs)
        weight = _subtract_tally(mine.class_tally, theirs.class_tally, mine.labels, None).counts[0]
        for part, tally in zip(mine.plan.parts, tallies, strict=True):
            n: Floats = getattr(tally, "n", np.empty(0))  # (class, column), if columns are counted separately
            if part.event.is_joint or part.block_kind == "documents" or n.shape != (len(weight), len(part.columns)):
                continue
            over = n > (weight + 1e-9 * mine.class_weight)[:, None]
            if over.any():  # else more values than rows would remain
                c, j = np.argwhere(over)[0]
                what = f"class {mine.labels.values[c]!r}: more missing values are removed than were counted"
                raise NotCountedError(what, column=part.columns[j])
        return replace(mine, class_weight=weight, tallies=tallies, n_rows=mine.n_rows - theirs.n_rows).prune()

    def prune(self) -> "ModelCounts":
        """Return the counts without unseen classes and levels, unless they were declared.

        A level that was counted in one part stays in all: a pair of columns need not contain all levels of each.
        """
        seen: dict[Any, Any] = {}  # of each encoded column, which levels were seen
        for part, tally in self.parts:
            levels = tally.seen_levels() if part.coded_columns else ()
            for column, mask in zip(part.coded_columns, levels, strict=True):
                seen[column] = mask | seen.get(column, False)
        parts = [part.prune(tally, [seen[column] for column in part.coded_columns]) for part, tally in self.parts]
        is_seen = self.class_weight > 0
        labels, stays = self.labels.retain(is_seen), np.flatnonzero(self.labels.retained_mask(is_seen))
        if len(stays) < len(is_seen):
            parts = [(part, tally.select_classes(stays)) for part, tally in parts]
        return replace(self.with_parts(parts), labels=labels, class_weight=self.class_weight[stays])

    def declare_classes(self) -> "ModelCounts":
        """Return the counts with classes that stay whatever is removed."""
        return replace(self, labels=self.labels.declare())

    def scale(self, factor: float | Floats) -> "ModelCounts":
        """Let every row count ``factor`` times; an array (class,) has a factor for each class."""
        if not (np.greater_equal(factor, 0) & np.less(factor, np.inf)).all():
            remedy = "pass a number >= 0, such as 0.9 to forget a tenth"
            raise InputError(f"factor: {factor} is not a weight", value=factor, remedy=remedy)
        tallies = tuple(t.scale(factor) for t in self.tallies)
        scaled = replace(self, class_weight=self.class_weight * factor, tallies=tallies)
        return scaled.check_range() if np.all(factor) else scaled.prune()

    def select_columns(self, names: Collection[Name]) -> "ModelCounts":
        """Return the counts of some columns; columns that are modelled jointly stay together."""
        selected, parts = set(names), []
        for part, tally in self.parts:
            at = [j for j, name in enumerate(part.columns) if name in selected]
            if len(at) == len(part.columns):
                parts.append((part, tally))
            elif at:
                parts.append((part.select_features(at), tally.select_features(np.array(at, np.intp))))
        return self.with_parts(parts, tuple(name for name in self.plan.columns if name in selected))

    def select_density_parts(self) -> "ModelCounts":
        plan, at = self.plan.select_density_parts()
        return replace(self, plan=plan, tallies=tuple(self.tallies[i] for i in at))

    def resolve_events(self) -> "ModelCounts":
        """Return the counts under the event models that they determine, for event models that depend on the counts."""
        parts = list[tuple[PlanPart, Tally]]()
        for part, tally in self.parts:
            try:
                resolved = part.event.settle_columns(tally, part.encodings)
            except InputError as error:  # an event model names a column by its index
                error.column = None if error.column is None else part.columns[error.column]
                raise
            if resolved is None:
                parts.append((part, tally))
            for event, at, encodings, part_tally in resolved or ():
                parts.append((PlanPart(event, tuple(part.columns[j] for j in at), encodings), part_tally))
        return self if tuple(part for part, _ in parts) == self.plan.parts else self.with_parts(parts)

    def match_labels(self, other: "ModelCounts") -> "ModelCounts":
        """Return the counts with labels and levels written as in other counts, where they mean the same."""
        if self.plan.columns != other.plan.columns or len(self.plan.parts) != len(other.plan.parts):
            return self  # they do not add, which is reported then
        parts, moves = list[PlanPart](), list[CodeMoves]()
        for part, known in zip(self.plan.parts, other.plan.parts, strict=True):
            if len(part.levels) != len(known.levels):
                return self
            matched = [own.match_labels(levels) for levels, own in zip(part.levels, known.levels, strict=True)]
            is_new = any(levels is not mine for (levels, _), mine in zip(matched, part.levels, strict=False))
            moves.append(tuple(CodeMapping(to, len(levels)) for levels, to in matched) if is_new else ())
            parts.append(part.with_labels(levels for levels, _ in matched) if is_new else part)
        labels, to = other.labels.match_labels(self.labels)
        if labels is self.labels and not any(moves):
            return self
        return self._remap(Plan(self.plan.columns, tuple(parts)), labels, to, moves)

    def relabel(self, names: Mapping[Any, Any]) -> "ModelCounts":
        """Return the counts with other, distinct names of the classes."""
        values = [names[label] for label in self.labels.values]
        if all(new is old for new, old in zip(values, self.labels.values, strict=True)):
            return self
        labels = Labels.from_values(np.fromiter(values, object, len(values)))
        to = np.array([labels.index[value] for value in values], np.intp)
        return self._remap(self.plan, labels, to, [()] * len(self.tallies))

    def _remap(self, plan: Plan, labels: Labels, classes: Codes, moves: list[CodeMoves]) -> "ModelCounts":
        weight = np.zeros(len(labels))
        weight[classes] = self.class_weight
        names = {old: labels.values[c] for old, c in zip(self.labels.values, classes.tolist(), strict=True)}
        parts = (replace(part, event=part.event.rename_classes(names)) for part in plan.parts)
        plan = Plan(plan.columns, tuple(parts))
        tallies = tuple(t.remap(classes, len(labels), m) for t, m in zip(self.tallies, moves, strict=True))
        return ModelCounts(plan, labels, weight, tallies, self.n_rows)


def _subtract_tally(whole: Any, removed: Any, labels: Labels, part: PlanPart | None) -> Any:
    """Subtract a tally of a part, or (None) of the classes; the error names what was not counted."""
    try:
        return whole - removed
    except NotCountedError as error:
        if error.cell is None:
            raise
        c, cell = error.cell
        if part is None:
            raise NotCountedError(f"class {labels.values[cell]!r}: {error.reason}", value=labels.values[cell]) from None
        column, of = _describe_cell(whole, cell, part)
        raise NotCountedError(f"class {labels.values[c]!r}{of}: {error.reason}", column=column) from None


def _describe_cell(tally: Tally, cell: int, part: PlanPart) -> tuple[Any, str]:
    """Return the column, or columns of a joint term, at a position of a tally, and the level as text for a message."""
    j, level = tally.locate_cell(cell)
    terms = part.event.term_names(part.columns)
    names = terms[min(j, len(terms) - 1)]
    of = "" if level is None or len(names) > 1 else f", level {part.encodings[j].level_names()[level]!r}"
    return names if len(names) > 1 else names[0], of


def align_counts(a: ModelCounts, b: ModelCounts) -> tuple[ModelCounts, ModelCounts]:
    """Return both counts on the united labels and levels."""
    if a.labels == b.labels and a.plan == b.plan:
        return a, b
    events_of = [{name: part.event for part in x.plan.parts for name in part.columns} for x in (a, b)]
    both = {events.Gaussian(), events.Whole()}  # numbers in one, whole numbers in the other: numbers in both
    if numbers := {name for name, event in events_of[0].items() if {event, events_of[1].get(name)} == both}:
        a, b = _convert_to_numbers(a, numbers), _convert_to_numbers(b, numbers)
    labels, a_classes, b_classes = a.labels.union(b.labels)
    plan, a_growth, b_growth = a.plan.union(b.plan)
    return a._remap(plan, labels, a_classes, a_growth), b._remap(plan, labels, b_classes, b_growth)


def _convert_to_numbers(counts: ModelCounts, names: Collection[Name]) -> ModelCounts:
    """Return the counts with some columns of whole numbers among the Gaussian ones."""
    numbers, converted, parts = events.Gaussian(), dict[Name, Tally](), list[tuple[PlanPart, Tally]]()
    for part, tally in counts.parts:
        moved = {j for j, name in enumerate(part.columns) if part.event == numbers or name in names}
        for j in moved:
            moments = part.event.moments_from_levels(tally, part.encodings, [j])
            converted[part.columns[j]] = tally.select_features(np.array([j])) if moments is None else moments
        rest = [j for j in range(len(part.columns)) if j not in moved]
        if not moved:
            parts.append((part, tally))
        elif rest:
            parts.append((part.select_features(rest), tally.select_features(np.array(rest))))
    columns = tuple(name for name in counts.plan.columns if name in converted)
    state = {key: [converted[name].arrays()[key] for name in columns] for key in converted[columns[0]].arrays()}
    part, whole = PlanPart(numbers, columns), {key: np.concatenate(a, axis=1) for key, a in state.items()}
    parts.append((part, Moments.from_arrays(whole, part.spec)))
    return counts.with_parts(sorted(parts, key=lambda pair: counts.plan.columns.index(pair[0].columns[0])))


def join_counts(a: ModelCounts, b: ModelCounts, plan: Plan) -> ModelCounts:
    """Join counts of the same rows, each of some parts of the plan."""
    labels, a_classes, b_classes = a.labels.union(b.labels)
    a = a._remap(a.plan, labels, a_classes, [()] * len(a.tallies))
    b = b._remap(b.plan, labels, b_classes, [()] * len(b.tallies))
    index = {(part.columns, part.event): i for i, part in enumerate(plan.parts)}  # a column may be in several parts
    return a.with_parts(sorted(a.parts + b.parts, key=lambda p: index[p[0].columns, p[0].event]), plan.columns)
