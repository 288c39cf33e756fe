"""Fitted: a census with the settings that turn it into a model. What a file keeps, and every face works with.

A :class:`Scorer` is what is left when the counts are taken away: it predicts the same, and nothing else.

>>> from candide.demo import garden
>>> fitted = Fitted(garden())
>>> table = Table.of({"height_cm": [21.0], "leaf_mm": [8.0], "flowers": [14], "soil": ["sand"], "scented": ["yes"]})
>>> fitted.classify(table).tolist(), fitted.posterior(table).round(3).tolist()
(['thyme'], [[0.0, 0.0, 1.0]])
>>> fitted.changed(class_prior="uniform").settings.class_prior
'uniform'
>>> (fitted + fitted.scale(0.5)).census.class_weight.tolist()
[150.0, 150.0, 150.0]
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

from numpy.typing import NDArray

from candide.errors import InputError
from candide.model.census import Census
from candide.model.model import Model, UnusableValueError, estimate
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.rows.blocks import Block
from candide.rows.labels import Labels
from candide.rows.table import Name, Table


class Predictor:
    """Whatever can be asked about rows: it has a plan, labels and a model."""

    plan: Plan
    labels: Labels
    model: Model

    def classify(self, table: Table) -> NDArray:
        """The most probable class of each row."""
        return self.labels.array[self.apply(Model.classify, table)]

    def posterior(self, table: Table) -> NDArray:
        """p(class | x), (row, class)."""
        return self.apply(Model.posterior, table)

    def apply(self, verb: Any, table: Table) -> NDArray:
        """Ask the model about rows; an infinite value is an error that names its column and row."""
        blocks = self._blocks(table)
        try:
            return verb(self.model, blocks)
        except UnusableValueError as error:
            from candide.rows.blocks import not_finite

            raise not_finite(self.plan.parts[error.block].columns, blocks[error.block]) from None

    def _blocks(self, rows: Any) -> list[Block]:
        table, plan = Table.of(rows), self.plan
        there = set(table.names)
        for name in plan.columns:
            if name not in there:
                raise InputError(f"column {name!r} is missing; the model was fitted on {list(plan.columns)}")
        return plan.blocks(table)


@dataclass(frozen=True, eq=False)
class Fitted(Predictor):
    """Counts, settings, the name of the column that was learned, and where the rows came from if that is told.

    ``census`` holds every column that was counted, so that merges go on and the choice of columns can be made again;
    ``plan`` and ``model`` are of the columns that the settings choose.
    """

    census: Census
    settings: Settings = field(default_factory=Settings)
    target: str | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    estimator: str | None = None  # the class to make of it, where a file names one

    @cached_property
    def chosen(self) -> Census:
        """The census of the columns that the settings choose."""
        if self.settings.select is None:
            return self.census
        from candide.model.select import choose

        return self.census.select(choose(self.census, self.settings.select, self.settings.priors))

    @property
    def plan(self) -> Plan:  # type: ignore[override]
        return self.chosen.plan

    @property
    def labels(self) -> Labels:  # type: ignore[override]
        return self.census.labels

    @cached_property
    def model(self) -> Model:  # type: ignore[override]
        """Estimated at first use; a merge makes a new Fitted, so it is never stale."""
        return estimate(self.chosen, self.settings.class_prior, self.settings.estimate, self.settings.priors)

    def changed(self, **settings: Any) -> "Fitted":
        """The same counts under other settings."""
        return replace(self, settings=replace(self.settings, **settings))

    def __add__(self, other: "Fitted") -> "Fitted":
        return replace(self, census=self.census + other.census)

    def __sub__(self, part: "Fitted") -> "Fitted":
        return replace(self, census=self.census - part.census)

    def scale(self, factor: float) -> "Fitted":
        """Let every row count ``factor`` times: forgetting."""
        return replace(self, census=self.census.scale(factor))


@dataclass(frozen=True, eq=False)
class Scorer(Predictor):
    """The parameters of a fitted model without its counts: it predicts, and cannot be merged or estimated again."""

    plan: Plan
    labels: Labels
    model: Model
    settings: Settings = field(default_factory=Settings)
    target: str | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None  # how many were counted, and
    strengths: tuple[tuple[Name, float], ...] | None = None  # how much each column tells: where a file keeps that
    estimator: str | None = None  # the class to make of it, where a file names one

    @property
    def census(self) -> Any:
        return self._refuse()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InputError(
            "this model keeps no counts: it predicts, but cannot be merged, updated, scaled or estimated again; "
            "save it with detail='tally' for that"
        )

    changed = __add__ = __sub__ = scale = _refuse
