"""Census: labels, class weights and one tally per block. The unit that is saved, shipped and merged.

Censuses add: label sets and levels are united first, so parts that met different classes or
categories still make one whole.

>>> from candide.engines import arrays
>>> from candide.plan import make_plan
>>> from candide.table import Table
>>> def count(rows, y):
...     table = Table.of(rows)
...     return arrays.count(table, y, plan=make_plan(table).grown(table))
>>> a = count({"shape": ["square", "round"]}, ["+", "+"])
>>> b = count({"shape": ["star", "square"]}, ["-", "+"])
>>> whole = a + b
>>> whole.labels.values, whole.class_weight.tolist(), whole.plan.parts[0].levels[0].values
(('+', '-'), [3.0, 1.0], ('round', 'square', 'star'))
>>> (whole - b).class_weight.tolist()
[2.0, 0.0]
"""

from dataclasses import dataclass, replace

import numpy as np

from candide.errors import InputError, NotWithinError
from candide.labels import Labels
from candide.plan import Growth, Plan
from candide.tally import Levels, Tally
from candide.tally.base import Codes, Floats


@dataclass(frozen=True, eq=False)
class Census:
    """What was counted, and how it was encoded. No prior is in it."""

    plan: Plan
    labels: Labels
    class_weight: Floats  # (classes,)
    tallies: tuple[Tally, ...]  # one a part of the plan
    n_rows: int

    @property
    def classes(self) -> Levels:
        """The class weights as a tally: the class prior is the Categorical event model on ``y``."""
        return Levels(self.class_weight[None, :], np.array([0, len(self.labels)], np.intp))

    def __add__(self, other: "Census") -> "Census":
        mine, theirs = align(self, other)
        tallies = tuple(a + b for a, b in zip(mine.tallies, theirs.tallies, strict=True))
        weight, n_rows = mine.class_weight + theirs.class_weight, mine.n_rows + theirs.n_rows
        return replace(mine, class_weight=weight, tallies=tallies, n_rows=n_rows)

    def __sub__(self, part: "Census") -> "Census":
        """Remove rows counted earlier: ``part`` must lie within ``self``. Labels and levels stay known."""
        mine, theirs = align(self, part)
        if theirs.n_rows > mine.n_rows:
            raise NotWithinError(f"cannot remove {theirs.n_rows} rows from {mine.n_rows}")
        tallies = tuple(a - b for a, b in zip(mine.tallies, theirs.tallies, strict=True))
        weight = (mine.classes - theirs.classes).counts[0]
        return replace(mine, class_weight=weight, tallies=tallies, n_rows=mine.n_rows - theirs.n_rows)

    def scale(self, factor: float) -> "Census":
        """Let every row count ``factor`` times: forgetting."""
        if not 0 <= factor < np.inf:
            raise InputError(f"factor: {factor} is not a weight; pass a number >= 0, such as 0.9 to forget a tenth")
        tallies = tuple(t.scale(factor) for t in self.tallies)
        return replace(self, class_weight=self.class_weight * factor, tallies=tallies)

    def _moved(self, plan: Plan, labels: Labels, classes: Codes, growth: list[Growth]) -> "Census":
        weight = np.zeros(len(labels))
        weight[classes] = self.class_weight
        moves = zip(self.tallies, growth, strict=True)
        tallies = tuple(t.remap(classes, len(labels), g.levels, g.sizes) for t, g in moves)
        return Census(plan, labels, weight, tallies, self.n_rows)


def align(a: Census, b: Census) -> tuple[Census, Census]:
    """Both censuses on the united labels and levels."""
    labels, a_classes, b_classes = a.labels.union(b.labels)
    plan, a_growth, b_growth = a.plan.union(b.plan)
    return a._moved(plan, labels, a_classes, a_growth), b._moved(plan, labels, b_classes, b_growth)
