"""Fitted: a census with the settings that turn it into a model. What a file keeps, and every face works with.

>>> from candide.demo import garden
>>> fitted = Fitted(garden())
>>> table = Table.of({"height_cm": [21.0], "leaf_mm": [8.0], "flowers": [14], "soil": ["sand"], "scented": ["yes"]})
>>> fitted.classify(table).tolist(), fitted.posterior(table).round(3).tolist()
(['thyme'], [[0.0, 0.0, 1.0]])
>>> fitted.changed(class_prior="uniform").settings.class_prior
'uniform'
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from candide.census import Census
from candide.engines.arrays import not_finite
from candide.errors import InputError
from candide.model import Model, UnusableValueError, estimate
from candide.table import Table


@dataclass(frozen=True)
class Settings:
    """What comes after the counting, and may be chosen again without the data."""

    class_prior: Any = "empirical"
    estimate: Any = "predictive"
    priors: Any = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """Counts, settings, and the name of the column that was learned."""

    census: Census
    settings: Settings = field(default_factory=Settings)
    target: str | None = None

    @cached_property
    def model(self) -> Model:
        """Estimated at first use; a merge makes a new Fitted, so it is never stale."""
        return estimate(self.census, self.settings.class_prior, self.settings.estimate, self.settings.priors)

    def changed(self, **settings: Any) -> "Fitted":
        """The same counts under other settings."""
        return replace(self, settings=replace(self.settings, **settings))

    def __add__(self, other: "Fitted") -> "Fitted":
        return replace(self, census=self.census + other.census)

    def __sub__(self, part: "Fitted") -> "Fitted":
        return replace(self, census=self.census - part.census)

    def classify(self, table: Table) -> NDArray:
        """The most probable class of each row."""
        return self.census.labels.array[self.ask(Model.classify, table)]

    def posterior(self, table: Table) -> NDArray:
        """p(class | x), (row, class)."""
        return self.ask(Model.posterior, table)

    def ask(self, verb: Any, table: Table) -> NDArray:
        """Ask the model about rows; an infinite value is an error that names its column and row."""
        plan = self.census.plan
        for name in plan.columns:
            if name not in table.names:
                raise InputError(f"column {name!r} is missing; the model was fitted on {list(plan.columns)}")
        blocks = plan.blocks(table)
        try:
            return verb(self.model, blocks)
        except UnusableValueError as error:
            raise not_finite(plan.parts[error.block].columns, blocks[error.block]) from None
