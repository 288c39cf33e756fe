"""Census: labels, class weights and one tally per block. The unit that is saved, shipped and merged.

Censuses add: label sets and levels are united first, so parts that met different classes or
categories still make one whole. What is removed leaves no trace: of a class or a level of which nothing is left the
name goes too, unless it was declared.

>>> from candide.engines import arrays
>>> from candide.model.plan import make_plan
>>> from candide.data.table import Table
>>> def count(rows, y):
...     table = Table.from_data(rows)
...     return arrays.count_table(table, y, plan=make_plan(table).with_levels(table))
>>> a = count({"shape": ["square", "round"]}, ["+", "+"])
>>> b = count({"shape": ["star", "square"]}, ["-", "+"])
>>> whole = a + b
>>> whole.labels.values, whole.class_weight.tolist(), whole.plan.parts[0].levels[0].values
(('+', '-'), [3.0, 1.0], ('round', 'square', 'star'))
>>> rest = whole - b
>>> rest.labels.values, rest.class_weight.tolist(), rest.plan.parts[0].levels[0].values
(('+',), [2.0], ('round', 'square'))
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide import events, formatting
from candide.data import value_matching
from candide.data.blocks import Codes, Floats
from candide.data.labels import Labels
from candide.data.table import Name
from candide.encoding import CodeMapping
from candide.errors import InputError, NotCountedError, SumTooLargeError
from candide.model.plan import CodeMoves, Plan, PlanPart
from candide.tally import LevelTally, Moments, Tally
from candide.tally.base import MAX_SUM

_MAX_TOTAL_WEIGHT = 1e150  # weight of all rows: its square is a number


@dataclass(frozen=True, eq=False, repr=False)
class ModelCounts:
    """What was counted, and how it was encoded. No prior is in it."""

    plan: Plan
    labels: Labels
    class_weight: Floats  # (classes,)
    tallies: tuple[Tally, ...]  # one a part of the plan
    n_rows: int

    def __post_init__(self) -> None:
        weight = float(self.class_weight.sum())
        if not weight <= _MAX_TOTAL_WEIGHT:
            raise SumTooLargeError(
                f"the rows weigh {weight:g} in all, and at most {_MAX_TOTAL_WEIGHT:g} can be reckoned with",
                value=weight,
                remedy="divide the weights",
            )

    def __repr__(self) -> str:
        counted = formatting.format_count(self.n_rows), formatting.format_count(len(self.plan.columns), "column")
        return f"<Census of {', '.join(counted)} and {formatting.format_count(len(self.labels), 'class', 'classes')}>"

    @property
    def class_tally(self) -> LevelTally:
        """The class weights as a tally: the class prior is the Categorical event model on ``y``."""
        return LevelTally(self.class_weight[None, :], np.array([0, len(self.labels)], np.intp))

    def __add__(self, other: "ModelCounts") -> "ModelCounts":
        mine, theirs = align_counts(self, other)
        tallies = tuple(a + b for a, b in zip(mine.tallies, theirs.tallies, strict=True))
        weight, n_rows = mine.class_weight + theirs.class_weight, mine.n_rows + theirs.n_rows
        return replace(mine, class_weight=weight, tallies=tallies, n_rows=n_rows).limit_levels().check_range()

    def check_range(self) -> "ModelCounts":
        """Return these counts; raise an InputError where a sum is too large to be merged or written to a file."""
        for part, tally in zip(self.plan.parts, self.tallies, strict=True):
            if (cell := tally.find_too_large()) is not None:
                column, _ = _describe_cell(tally, cell[1], part)
                raise SumTooLargeError(
                    f"class {self.labels.values[cell[0]]!r}: sums of its values exceed {MAX_SUM:g}",
                    column=column,
                    remedy="divide the column by a constant, or leave the largest values out",
                )
        return self

    def limit_levels(self) -> "ModelCounts":
        """The same counts, with whole numbers of which there are too many to be codes as numbers: levels cost room."""
        sized = [(part.event.max_levels, part, j) for part in self.plan.parts for j in range(len(part.columns))]
        many = [part.columns[j] for most, part, j in sized if most and (part.encodings[j].n_levels or 0) > most]
        return _convert_to_numbers(self, many) if many else self

    def __sub__(self, part: "ModelCounts") -> "ModelCounts":
        """Remove rows counted earlier: ``part`` must lie within ``self``. What falls to nothing is forgotten."""
        for label, w in zip(part.labels.values, part.class_weight, strict=True):
            if w > 0 and value_matching.find_code(label, self.labels) is None:
                raise NotCountedError(f"class {label!r} was never counted, so no row of it can be removed", value=label)
        mine, theirs = align_counts(self, part)
        if theirs.n_rows > mine.n_rows:
            raise NotCountedError(f"cannot remove {theirs.n_rows} rows from {mine.n_rows}")
        tallies = tuple(
            _subtract_tally(a, b, mine.labels, place)
            for a, b, place in zip(mine.tallies, theirs.tallies, mine.plan.parts, strict=True)
        )
        weight = _subtract_tally(mine.class_tally, theirs.class_tally, mine.labels, None).counts[0]
        _check_missing_values(mine, weight, tallies)
        return replace(mine, class_weight=weight, tallies=tallies, n_rows=mine.n_rows - theirs.n_rows).prune()

    def prune(self) -> "ModelCounts":
        """The same counts without classes and levels of which nothing was counted, unless they were declared.

        A level that was counted in one part stays in all: a pair of columns need not have met all that each has met.
        """
        counted = list(zip(self.plan.parts, self.tallies, strict=True))
        levels: dict[Any, Any] = {}  # of each column as it is encoded, which were met
        for part, tally in counted:
            for one, some in zip(part.coded_columns, tally.seen_levels() if part.coded_columns else (), strict=True):
                levels[one] = some | levels.get(one, False)
        found = [part.prune(tally, [levels[one] for one in part.coded_columns]) for part, tally in counted]
        plan, tallies = Plan(self.plan.columns, tuple(part for part, _ in found)), tuple(tally for _, tally in found)
        met = self.class_weight > 0
        labels, stays = self.labels.retain(met), np.flatnonzero(self.labels.retained_mask(met))
        if len(stays) < len(met):
            tallies = tuple(tally.select_classes(stays) for tally in tallies)
        return ModelCounts(plan, labels, self.class_weight[stays], tallies, self.n_rows)

    def declare_classes(self) -> "ModelCounts":
        """The same counts, all classes of which stay known whatever is removed."""
        return replace(self, labels=self.labels.declare())

    def scale(self, factor: float | Floats) -> "ModelCounts":
        """Let every row count ``factor`` times; an array (class,) has a factor for each class."""
        if not (np.greater_equal(factor, 0) & np.less(factor, np.inf)).all():
            what, remedy = f"factor: {factor} is not a weight", "pass a number >= 0, such as 0.9 to forget a tenth"
            raise InputError(what, value=factor, remedy=remedy)
        tallies = tuple(t.scale(factor) for t in self.tallies)
        scaled = replace(self, class_weight=self.class_weight * factor, tallies=tallies)
        return scaled.check_range() if np.all(factor) else scaled.prune()

    def select_columns(self, names: Collection[Name]) -> "ModelCounts":
        """The census of some of the columns; columns modelled together stay together."""
        wanted, parts, tallies = set(names), [], []
        for part, tally in zip(self.plan.parts, self.tallies, strict=True):
            at = [j for j, name in enumerate(part.columns) if name in wanted]
            if at:
                whole = len(at) == len(part.columns)
                parts.append(part if whole else part.select_features(at))
                tallies.append(tally if whole else tally.select_features(np.array(at, np.intp)))
        plan = Plan(tuple(name for name in self.plan.columns if name in wanted), tuple(parts))
        return replace(self, plan=plan, tallies=tuple(tallies))

    def first_parts(self, n: int) -> "ModelCounts":
        """The counts of the first parts of the plan, which has all of its columns in them."""
        return replace(self, plan=Plan(self.plan.columns, self.plan.parts[:n]), tallies=self.tallies[:n])

    def select_density_parts(self) -> "ModelCounts":
        """The counts of the columns' own laws: what has no density stands beside these, and has no part."""
        plan, at = self.plan.select_density_parts()
        return replace(self, plan=plan, tallies=tuple(self.tallies[i] for i in at))

    def resolve_events(self) -> "ModelCounts":
        """The same counts under the event models for which they decide, where an event model leaves that to them."""
        parts, tallies = list[PlanPart](), list[Tally]()
        for part, tally in zip(self.plan.parts, self.tallies, strict=True):
            try:
                found = part.event.settle_columns(tally, part.encodings)
            except InputError as error:  # of a column, which an event model knows by its place
                error.column = None if error.column is None else part.columns[error.column]
                raise
            for event, at, encodings, own in [] if found is None else found:
                parts.append(PlanPart(event, tuple(part.columns[j] for j in at), encodings))
                tallies.append(own)
            if found is None:
                parts.append(part)
                tallies.append(tally)
        settled = tuple(parts) != self.plan.parts
        return replace(self, plan=Plan(self.plan.columns, tuple(parts)), tallies=tuple(tallies)) if settled else self

    def match_labels(self, other: "ModelCounts") -> "ModelCounts":
        """The same counts with labels and levels written as those of another census, where they mean the same."""
        if self.plan.columns != other.plan.columns or len(self.plan.parts) != len(other.plan.parts):
            return self  # they do not add, as will be said
        parts, moves = list[PlanPart](), list[CodeMoves]()
        for part, known in zip(self.plan.parts, other.plan.parts, strict=True):
            if len(part.levels) != len(known.levels):
                return self
            found = [value_matching.match_labels(*pair) for pair in zip(part.levels, known.levels, strict=True)]
            new = any(levels is not mine for (levels, _), mine in zip(found, part.levels, strict=False))
            moves.append(tuple(CodeMapping(to, len(levels)) for levels, to in found) if new else ())
            parts.append(part.with_labels(levels for levels, _ in found) if new else part)
        labels, to = value_matching.match_labels(self.labels, other.labels)
        if labels is self.labels and not any(moves):
            return self
        return self._remap(Plan(self.plan.columns, tuple(parts)), labels, to, moves)

    def relabel(self, names: Mapping[Any, Any]) -> "ModelCounts":
        """The same counts with other names of the classes, each its own."""
        values = [names[label] for label in self.labels.values]
        if all(new is old for new, old in zip(values, self.labels.values, strict=True)):
            return self
        labels = Labels.from_values(np.fromiter(values, object, len(values)))
        to = np.array([labels.index[value] for value in values], np.intp)
        return self._remap(self.plan, labels, to, [()] * len(self.tallies))

    def _remap(self, plan: Plan, labels: Labels, classes: Codes, moves: list[CodeMoves]) -> "ModelCounts":
        weight = np.zeros(len(labels))
        weight[classes] = self.class_weight
        tallies = tuple(t.remap(classes, len(labels), m) for t, m in zip(self.tallies, moves, strict=True))
        return ModelCounts(plan, labels, weight, tallies, self.n_rows)


def _subtract_tally(whole: Any, gone: Any, labels: Labels, part: PlanPart | None) -> Any:
    """One tally without another, of a part or (None) of the classes; what does not lie within is named."""
    try:
        return whole - gone
    except NotCountedError as error:
        if error.cell is None:
            raise
        c, cell = error.cell
        if part is None:
            raise NotCountedError(f"class {labels.values[cell]!r}: {error.reason}", value=labels.values[cell]) from None
        column, of = _describe_cell(whole, cell, part)
        raise NotCountedError(f"class {labels.values[c]!r}{of}: {error.reason}", column=column) from None


def _describe_cell(tally: Tally, cell: int, part: PlanPart) -> tuple[Any, str]:
    """The column, or columns modelled together, at a position of a tally, and the level as text for a message."""
    j, level = tally.locate_cell(cell)
    terms = part.event.term_names(part.columns)
    names = terms[min(j, len(terms) - 1)]
    of = "" if level is None or len(names) > 1 else f", level {part.encodings[j].level_names()[level]!r}"
    return names if len(names) > 1 else names[0], of


def _check_missing_values(whole: ModelCounts, weight: Floats, tallies: Sequence[Tally]) -> None:
    """Refuse to remove more missing values of a column than were counted: more values than rows would be left."""
    room = 1e-9 * whole.class_weight
    for part, tally in zip(whole.plan.parts, tallies, strict=True):
        n: Floats = getattr(tally, "n", np.empty(0))  # (class, column), where columns are counted apart
        if part.event.is_joint or part.block_kind == "documents" or n.shape != (len(weight), len(part.columns)):
            continue
        over = n > (weight + room)[:, None]
        if over.any():
            c, j = np.argwhere(over)[0]
            what = f"class {whole.labels.values[c]!r}: more missing values are removed than were counted"
            raise NotCountedError(what, column=part.columns[j])


def align_counts(a: ModelCounts, b: ModelCounts) -> tuple[ModelCounts, ModelCounts]:
    """Both censuses on the united labels and levels."""
    if a.labels == b.labels and a.plan == b.plan:
        return a, b
    a, b = _unify_number_columns(a, b)
    labels, a_classes, b_classes = a.labels.union(b.labels)
    plan, a_growth, b_growth = a.plan.union(b.plan)
    return a._remap(plan, labels, a_classes, a_growth), b._remap(plan, labels, b_classes, b_growth)


def _unify_number_columns(a: ModelCounts, b: ModelCounts) -> tuple[ModelCounts, ModelCounts]:
    """Both censuses, with the columns as numbers that one of them counts so and the other as whole numbers."""
    mine, theirs = ({name: part.event for part in one.plan.parts for name in part.columns} for one in (a, b))
    names = {name for name, event in mine.items() if {event, theirs.get(name)} == {events.Gaussian(), events.Whole()}}
    return (_convert_to_numbers(a, names), _convert_to_numbers(b, names)) if names else (a, b)


def _convert_to_numbers(counts: ModelCounts, names: Collection[Name]) -> ModelCounts:
    """The census in which some columns of whole numbers are among those that are numbers each by itself."""
    numbers, found = events.Gaussian(), dict[Name, Tally]()
    parts, tallies = list[PlanPart](), list[Tally]()
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        moved = {j for j, name in enumerate(part.columns) if part.event == numbers or name in names}
        for j in moved:
            one = part.event.moments_from_levels(tally, part.encodings, [j])
            found[part.columns[j]] = tally.select_features(np.array([j])) if one is None else one
        rest = [j for j in range(len(part.columns)) if j not in moved]
        if rest:
            parts.append(part.select_features(rest) if moved else part)
            tallies.append(tally.select_features(np.array(rest)) if moved else tally)
    columns = tuple(name for name in counts.plan.columns if name in found)
    state = {key: [found[name].arrays()[key] for name in columns] for key in found[columns[0]].arrays()}
    parts.append(PlanPart(numbers, columns))
    whole = {key: np.concatenate(arrays, axis=1) for key, arrays in state.items()}
    tallies.append(Moments.from_arrays(whole, parts[-1].spec))
    order = sorted(range(len(parts)), key=lambda i: counts.plan.columns.index(parts[i].columns[0]))  # as plans have it
    plan = Plan(counts.plan.columns, tuple(parts[i] for i in order))
    return replace(counts, plan=plan, tallies=tuple(tallies[i] for i in order))


def join_counts(a: ModelCounts, b: ModelCounts, plan: Plan) -> ModelCounts:
    """One census of the same rows from two, each of some of the plan's parts."""
    labels, a_classes, b_classes = a.labels.union(b.labels)
    a = a._remap(a.plan, labels, a_classes, [()] * len(a.tallies))
    b = b._remap(b.plan, labels, b_classes, [()] * len(b.tallies))
    found = [*zip(a.plan.parts, a.tallies, strict=True), *zip(b.plan.parts, b.tallies, strict=True)]
    place = {(part.columns, part.event): i for i, part in enumerate(plan.parts)}  # columns may serve several parts
    found.sort(key=lambda pair: place[pair[0].columns, pair[0].event])
    parts, tallies = zip(*found, strict=True)
    return ModelCounts(Plan(plan.columns, parts), labels, a.class_weight, tallies, a.n_rows)
