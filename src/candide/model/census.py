"""Census: labels, class weights and one tally per block. The unit that is saved, shipped and merged.

Censuses add: label sets and levels are united first, so parts that met different classes or
categories still make one whole. What is removed leaves no trace: of a class or a level of which nothing is left the
name goes too, unless it was declared.

>>> from candide.engines import arrays
>>> from candide.model.plan import make_plan
>>> from candide.rows.table import Table
>>> def count(rows, y):
...     table = Table.of(rows)
...     return arrays.count(table, y, plan=make_plan(table).with_levels(table))
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

from candide import events, wording
from candide.encode import Move
from candide.errors import InputError, NotWithinError, TooLargeError
from candide.model.plan import Moves, Part, Plan
from candide.rows import matching
from candide.rows.blocks import Codes, Floats
from candide.rows.labels import Labels
from candide.rows.table import Name
from candide.tally import Levels, Moments, Tally
from candide.tally.base import LARGEST

_HEAVIEST = 1e150  # weight of all rows: its square is a number


@dataclass(frozen=True, eq=False, repr=False)
class Census:
    """What was counted, and how it was encoded. No prior is in it."""

    plan: Plan
    labels: Labels
    class_weight: Floats  # (classes,)
    tallies: tuple[Tally, ...]  # one a part of the plan
    n_rows: int

    def __post_init__(self) -> None:
        weight = float(self.class_weight.sum())
        if not weight <= _HEAVIEST:
            raise TooLargeError(
                f"the rows weigh {weight:g} in all, and at most {_HEAVIEST:g} can be reckoned with",
                value=weight,
                remedy="divide the weights",
            )

    def __repr__(self) -> str:
        counted = wording.plural(self.n_rows), wording.plural(len(self.plan.columns), "column")
        return f"<Census of {', '.join(counted)} and {wording.plural(len(self.labels), 'class', 'classes')}>"

    @property
    def classes(self) -> Levels:
        """The class weights as a tally: the class prior is the Categorical event model on ``y``."""
        return Levels(self.class_weight[None, :], np.array([0, len(self.labels)], np.intp))

    def __add__(self, other: "Census") -> "Census":
        mine, theirs = align(self, other)
        tallies = tuple(a + b for a, b in zip(mine.tallies, theirs.tallies, strict=True))
        weight, n_rows = mine.class_weight + theirs.class_weight, mine.n_rows + theirs.n_rows
        return replace(mine, class_weight=weight, tallies=tallies, n_rows=n_rows).bounded().check_range()

    def check_range(self) -> "Census":
        """Return these counts; raise an InputError where a sum is too large to be merged or written to a file."""
        for part, tally in zip(self.plan.parts, self.tallies, strict=True):
            if (cell := tally.too_large()) is not None:
                column, _ = _column_of(tally, cell[1], part)
                raise TooLargeError(
                    f"class {self.labels.values[cell[0]]!r}: sums of its values exceed {LARGEST:g}",
                    column=column,
                    remedy="divide the column by a constant, or leave the largest values out",
                )
        return self

    def bounded(self) -> "Census":
        """The same counts, with whole numbers of which there are too many to be codes as numbers: levels cost room."""
        sized = [(part.event.most, part, j) for part in self.plan.parts for j in range(len(part.columns))]
        many = [part.columns[j] for most, part, j in sized if most and (part.encodings[j].n_levels or 0) > most]
        return _as_numbers(self, many) if many else self

    def __sub__(self, part: "Census") -> "Census":
        """Remove rows counted earlier: ``part`` must lie within ``self``. What falls to nothing is forgotten."""
        for label, w in zip(part.labels.values, part.class_weight, strict=True):
            if w > 0 and matching.place(label, self.labels) is None:
                raise NotWithinError(f"class {label!r} was never counted, so no row of it can be removed", value=label)
        mine, theirs = align(self, part)
        if theirs.n_rows > mine.n_rows:
            raise NotWithinError(f"cannot remove {theirs.n_rows} rows from {mine.n_rows}")
        tallies = tuple(
            _minus(a, b, mine.labels, place)
            for a, b, place in zip(mine.tallies, theirs.tallies, mine.plan.parts, strict=True)
        )
        weight = _minus(mine.classes, theirs.classes, mine.labels, None).counts[0]
        _check_missing(mine, weight, tallies)
        return replace(mine, class_weight=weight, tallies=tallies, n_rows=mine.n_rows - theirs.n_rows).pruned()

    def pruned(self) -> "Census":
        """The same counts without classes and levels of which nothing was counted, unless they were declared.

        A level that was counted in one part stays in all: a pair of columns need not have met all that each has met.
        """
        counted = list(zip(self.plan.parts, self.tallies, strict=True))
        levels: dict[Any, Any] = {}  # of each column as it is encoded, which were met
        for part, tally in counted:
            for one, some in zip(part.coded, tally.met() if part.coded else (), strict=True):
                levels[one] = some | levels.get(one, False)
        found = [part.pruned(tally, [levels[one] for one in part.coded]) for part, tally in counted]
        plan, tallies = Plan(self.plan.columns, tuple(part for part, _ in found)), tuple(tally for _, tally in found)
        met = self.class_weight > 0
        labels, stays = self.labels.left(met), np.flatnonzero(self.labels.stays(met))
        if len(stays) < len(met):
            tallies = tuple(tally.some_classes(stays) for tally in tallies)
        return Census(plan, labels, self.class_weight[stays], tallies, self.n_rows)

    def declare_classes(self) -> "Census":
        """The same counts, all classes of which stay known whatever is removed."""
        return replace(self, labels=self.labels.declare())

    def scale(self, factor: float | Floats) -> "Census":
        """Let every row count ``factor`` times; an array (class,) has a factor for each class."""
        if not (np.greater_equal(factor, 0) & np.less(factor, np.inf)).all():
            what, remedy = f"factor: {factor} is not a weight", "pass a number >= 0, such as 0.9 to forget a tenth"
            raise InputError(what, value=factor, remedy=remedy)
        tallies = tuple(t.scale(factor) for t in self.tallies)
        scaled = replace(self, class_weight=self.class_weight * factor, tallies=tallies)
        return scaled.check_range() if np.all(factor) else scaled.pruned()

    def select(self, names: Collection[Name]) -> "Census":
        """The census of some of the columns; columns modelled together stay together."""
        wanted, parts, tallies = set(names), [], []
        for part, tally in zip(self.plan.parts, self.tallies, strict=True):
            at = [j for j, name in enumerate(part.columns) if name in wanted]
            if at:
                whole = len(at) == len(part.columns)
                parts.append(part if whole else part.only(at))
                tallies.append(tally if whole else tally.only(np.array(at, np.intp)))
        plan = Plan(tuple(name for name in self.plan.columns if name in wanted), tuple(parts))
        return replace(self, plan=plan, tallies=tuple(tallies))

    def first(self, n: int) -> "Census":
        """The counts of the first parts of the plan, which has all of its columns in them."""
        return replace(self, plan=Plan(self.plan.columns, self.plan.parts[:n]), tallies=self.tallies[:n])

    def of_columns(self) -> "Census":
        """The counts of the columns' own laws: what has no density stands beside these, and has no part."""
        plan, at = self.plan.of_columns()
        return replace(self, plan=plan, tallies=tuple(self.tallies[i] for i in at))

    def settled(self) -> "Census":
        """The same counts under the event models for which they decide, where an event model leaves that to them."""
        parts, tallies = list[Part](), list[Tally]()
        for part, tally in zip(self.plan.parts, self.tallies, strict=True):
            try:
                found = part.event.settled(tally, part.encodings)
            except InputError as error:  # of a column, which an event model knows by its place
                error.column = None if error.column is None else part.columns[error.column]
                raise
            for event, at, encodings, own in [] if found is None else found:
                parts.append(Part(event, tuple(part.columns[j] for j in at), encodings))
                tallies.append(own)
            if found is None:
                parts.append(part)
                tallies.append(tally)
        settled = tuple(parts) != self.plan.parts
        return replace(self, plan=Plan(self.plan.columns, tuple(parts)), tallies=tuple(tallies)) if settled else self

    def like(self, other: "Census") -> "Census":
        """The same counts with labels and levels written as those of another census, where they mean the same."""
        if self.plan.columns != other.plan.columns or len(self.plan.parts) != len(other.plan.parts):
            return self  # they do not add, as will be said
        parts, moves = list[Part](), list[Moves]()
        for part, known in zip(self.plan.parts, other.plan.parts, strict=True):
            if len(part.levels) != len(known.levels):
                return self
            found = [matching.moved(*pair) for pair in zip(part.levels, known.levels, strict=True)]
            new = any(levels is not mine for (levels, _), mine in zip(found, part.levels, strict=False))
            moves.append(tuple(Move(to, len(levels)) for levels, to in found) if new else ())
            parts.append(part.with_labels(levels for levels, _ in found) if new else part)
        labels, to = matching.moved(self.labels, other.labels)
        if labels is self.labels and not any(moves):
            return self
        return self._moved(Plan(self.plan.columns, tuple(parts)), labels, to, moves)

    def relabelled(self, names: Mapping[Any, Any]) -> "Census":
        """The same counts with other names of the classes, each its own."""
        values = [names[label] for label in self.labels.values]
        if all(new is old for new, old in zip(values, self.labels.values, strict=True)):
            return self
        labels = Labels.of(np.fromiter(values, object, len(values)))
        to = np.array([labels.index[value] for value in values], np.intp)
        return self._moved(self.plan, labels, to, [()] * len(self.tallies))

    def _moved(self, plan: Plan, labels: Labels, classes: Codes, moves: list[Moves]) -> "Census":
        weight = np.zeros(len(labels))
        weight[classes] = self.class_weight
        tallies = tuple(t.remap(classes, len(labels), m) for t, m in zip(self.tallies, moves, strict=True))
        return Census(plan, labels, weight, tallies, self.n_rows)


def _minus(whole: Any, gone: Any, labels: Labels, part: Part | None) -> Any:
    """One tally without another, of a part or (None) of the classes; what does not lie within is named."""
    try:
        return whole - gone
    except NotWithinError as error:
        if error.cell is None:
            raise
        c, cell = error.cell
        if part is None:
            raise NotWithinError(f"class {labels.values[cell]!r}: {error.why}", value=labels.values[cell]) from None
        column, of = _column_of(whole, cell, part)
        raise NotWithinError(f"class {labels.values[c]!r}{of}: {error.why}", column=column) from None


def _column_of(tally: Tally, cell: int, part: Part) -> tuple[Any, str]:
    """The column, or columns modelled together, at a position of a tally, and the level as text for a message."""
    j, level = tally.place(cell)
    terms = part.event.voices(part.columns)
    names = terms[min(j, len(terms) - 1)]
    of = "" if level is None or len(names) > 1 else f", level {part.encodings[j].names()[level]!r}"
    return names if len(names) > 1 else names[0], of


def _check_missing(whole: Census, weight: Floats, tallies: Sequence[Tally]) -> None:
    """Refuse to remove more missing values of a column than were counted: more values than rows would be left."""
    room = 1e-9 * whole.class_weight
    for part, tally in zip(whole.plan.parts, tallies, strict=True):
        n: Floats = getattr(tally, "n", np.empty(0))  # (class, column), where columns are counted apart
        if part.event.joint or part.holds == "documents" or n.shape != (len(weight), len(part.columns)):
            continue
        over = n > (weight + room)[:, None]
        if over.any():
            c, j = np.argwhere(over)[0]
            what = f"class {whole.labels.values[c]!r}: more missing values are removed than were counted"
            raise NotWithinError(what, column=part.columns[j])


def align(a: Census, b: Census) -> tuple[Census, Census]:
    """Both censuses on the united labels and levels."""
    if a.labels == b.labels and a.plan == b.plan:
        return a, b
    a, b = _in_one_way(a, b)
    labels, a_classes, b_classes = a.labels.union(b.labels)
    plan, a_growth, b_growth = a.plan.union(b.plan)
    return a._moved(plan, labels, a_classes, a_growth), b._moved(plan, labels, b_classes, b_growth)


def _in_one_way(a: Census, b: Census) -> tuple[Census, Census]:
    """Both censuses, with the columns as numbers that one of them counts so and the other as whole numbers."""
    mine, theirs = ({name: part.event for part in one.plan.parts for name in part.columns} for one in (a, b))
    names = {name for name, event in mine.items() if {event, theirs.get(name)} == {events.Gaussian(), events.Whole()}}
    return (_as_numbers(a, names), _as_numbers(b, names)) if names else (a, b)


def _as_numbers(census: Census, names: Collection[Name]) -> Census:
    """The census in which some columns of whole numbers are among those that are numbers each by itself."""
    numbers, found = events.Gaussian(), dict[Name, Tally]()
    parts, tallies = list[Part](), list[Tally]()
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        moved = {j for j, name in enumerate(part.columns) if part.event == numbers or name in names}
        for j in moved:
            one = part.event.as_numbers(tally, part.encodings, [j])
            found[part.columns[j]] = tally.only(np.array([j])) if one is None else one
        rest = [j for j in range(len(part.columns)) if j not in moved]
        if rest:
            parts.append(part.only(rest) if moved else part)
            tallies.append(tally.only(np.array(rest)) if moved else tally)
    columns = tuple(name for name in census.plan.columns if name in found)
    state = {key: [found[name].arrays()[key] for name in columns] for key in found[columns[0]].arrays()}
    parts.append(Part(numbers, columns))
    whole = {key: np.concatenate(arrays, axis=1) for key, arrays in state.items()}
    tallies.append(Moments.from_arrays(whole, parts[-1].spec))
    order = sorted(range(len(parts)), key=lambda i: census.plan.columns.index(parts[i].columns[0]))  # as plans have it
    plan = Plan(census.plan.columns, tuple(parts[i] for i in order))
    return replace(census, plan=plan, tallies=tuple(tallies[i] for i in order))


def join(a: Census, b: Census, plan: Plan) -> Census:
    """One census of the same rows from two, each of some of the plan's parts."""
    labels, a_classes, b_classes = a.labels.union(b.labels)
    a = a._moved(a.plan, labels, a_classes, [()] * len(a.tallies))
    b = b._moved(b.plan, labels, b_classes, [()] * len(b.tallies))
    found = [*zip(a.plan.parts, a.tallies, strict=True), *zip(b.plan.parts, b.tallies, strict=True)]
    place = {(part.columns, part.event): i for i, part in enumerate(plan.parts)}  # columns may serve several parts
    found.sort(key=lambda pair: place[pair[0].columns, pair[0].event])
    parts, tallies = zip(*found, strict=True)
    return Census(Plan(plan.columns, parts), labels, a.class_weight, tallies, a.n_rows)
