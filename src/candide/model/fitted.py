"""Fitted: what was counted, with the settings that turn it into a model. What a file keeps, and every face works with.

The model is estimated from the counts at first use. A Fitted may also be without counts, by its parameters alone: it
predicts the same, and whatever needs counts says that there are none.

>>> from candide.demo import garden
>>> fitted = Fitted(garden())
>>> table = Table.of({"height_cm": [21.0], "leaf_mm": [8.0], "flowers": [14], "soil": ["sand"], "scented": ["yes"]})
>>> fitted.classify(table).tolist(), fitted.posterior(table).round(3).tolist()
(['thyme'], [[0.0, 0.0, 1.0]])
>>> fitted.changed(class_prior="uniform").settings.class_prior
'uniform'
>>> (fitted + fitted.scale(0.5)).census.class_weight.tolist()
[150.0, 150.0, 150.0]
>>> alone = fitted.without_counts()
>>> alone.posterior(table).tolist() == fitted.posterior(table).tolist(), alone.has_counts, alone.rows
(True, False, None)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.errors import InputError
from candide.model.census import Census
from candide.model.input_columns import similar_names, suggestion
from candide.model.model import Model, ask, class_log_prior, estimate
from candide.model.plan import Plan
from candide.model.policy import Policy, PolicyLike, Rule, policy_of, shares_of
from candide.model.settings import Settings
from candide.rows.blocks import Codes, Floats
from candide.rows.labels import Labels
from candide.rows.spelling import Spelling
from candide.rows.table import Name, Table
from candide.rows.temporal import in_time
from candide.rows.written import as_spelled, without

if TYPE_CHECKING:
    from candide.model.voices import Voices


@dataclass(frozen=True, eq=False)
class Parameters:
    """What is left without counts; how many rows they were of, and how much each column tells, where that is kept."""

    plan: Plan
    labels: Labels
    model: Model
    rows: int | None = None
    strengths: tuple[tuple[Name, float], ...] | None = None


@dataclass(frozen=True)
class EstimatorRecord:
    """The estimator to make of a model: its class and parameters by name, and how many columns its rows have."""

    name: str
    params: Mapping[str, Any]
    n_features: int


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """Counts, or parameters where there are none; settings; the column that was learned, and where the rows came from.

    The counts are of every column, so that merges go on and the choice of columns can be made again; ``plan`` and
    ``model`` are of the columns that the settings choose.
    """

    counts: Census | None
    settings: Settings = field(default_factory=Settings)
    target: str | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    estimator: EstimatorRecord | None = None  # None: a NaiveBayes
    parameters: Parameters | None = None
    spelled: Mapping[str, Spelling] = field(default_factory=dict)  # numbers and dates of text, where not plainly
    na: tuple[str, ...] = ()  # text that was said to mean a missing value
    dates: frozenset[str] = frozenset()  # columns of numbers that are days since 1970
    times: frozenset[str] = frozenset()  # columns of numbers that are times of day or durations, in days
    voices: "Voices | None" = None  # weights that were learned; None: every voice counts once
    policy: Policy | None = None  # how its probabilities become decisions; None: the most probable class

    def __repr__(self) -> str:
        what = "without counts" if self.counts is None else repr(self.counts)[1:-1]
        weights = "" if self.voices is None or self.counts is None else f", {self.voices.said(self.counts.n_rows)}"
        return f"<Fitted to {self.target!r}, {what}{weights}>"

    def __post_init__(self) -> None:
        if self.counts is not None and self.settings.names_classes:
            object.__setattr__(self, "counts", self.counts.declare_classes())

    @property
    def has_counts(self) -> bool:
        return self.counts is not None

    @property
    def census(self) -> Census:
        """What was counted; an error where no counts are kept."""
        if self.counts is None:
            raise InputError(
                "this model keeps no counts: it predicts, but cannot be merged, updated, scaled or estimated again",
                remedy="save it with detail='tally' for that",
            )
        return self.counts

    @cached_property
    def settled(self) -> Census:
        """The census under the event models for which the counts decide: what a model is estimated from."""
        return self.census.settled()

    @cached_property
    def chosen(self) -> Census:
        """The census of the columns that the settings choose."""
        if self.settings.select is None:
            return self.settled
        from candide.model.select import choose

        return self.settled.select(choose(self.settled, self.settings.select, self.settings.priors))

    @property
    def plan(self) -> Plan:
        return self.chosen.plan if self.parameters is None else self.parameters.plan

    @property
    def labels(self) -> Labels:
        return self.census.labels if self.parameters is None else self.parameters.labels

    @cached_property
    def model(self) -> Model:
        """What answers: the model as it was learned, or where the classes have the shares that its policy says."""
        if self.policy is None or not self.policy.moves:
            return self.learned
        assert self.policy.class_prior is not None
        there = shares_of(self.policy.class_prior, self.labels)
        with np.errstate(divide="ignore"):
            return self.learned.shifted(np.where(self.base > 0, np.log(there) - np.log(self.base), 0.0))

    @cached_property
    def learned(self) -> Model:
        """Estimated at first use; a merge makes a new Fitted, so it is never stale."""
        if self.parameters is not None:
            return self.parameters.model
        if self.voices is None:
            return estimate(self.chosen, self.settings)
        prior = class_log_prior(self.chosen, self.settings.class_prior, self.settings.estimate)
        return self.voices.weigh(replace(estimate(self.voices.effective(self.chosen), self.settings), log_prior=prior))

    @property
    def base(self) -> Floats:
        """(classes,) the shares that its probabilities are right for."""
        log_prior = self.learned.log_prior - (0.0 if self.voices is None else self.voices.bias)
        return np.exp(log_prior - np.logaddexp.reduce(log_prior))

    def with_policy(self, policy: PolicyLike) -> "Fitted":
        """The same model, which decides as it is told; what is not said stays."""
        found = policy_of(policy)
        if found is None:
            return self
        found = found.over(self.policy)
        found.rule(self.labels)
        if found.class_prior is not None and found.moves:
            shares_of(found.class_prior, self.labels)
        return replace(self, policy=found)

    @property
    def rule(self) -> Rule | None:
        """What decides; None where it is the most probable class."""
        return self.policy.rule(self.labels) if self.policy is not None and self.policy.decides else None

    @cached_property
    def story(self) -> "Fitted":
        """The generative story: the laws of the columns themselves, none weighted; what has no density has no part."""
        if self.voices is None:
            return self
        if self.parameters is not None:
            plan, at = self.plan.of_columns()
            laws = tuple(self.model.distributions[i].story for i in at)
            alone = replace(self.parameters, plan=plan, model=Model(np.log(self.shares), laws))
            return replace(self, parameters=alone, voices=None)
        return replace(self, counts=self.census.of_columns(), voices=None)

    @property
    def rows(self) -> int | None:
        """How many rows were counted, if that is known."""
        return self.census.n_rows if self.parameters is None else self.parameters.rows

    @cached_property
    def strengths(self) -> dict[Name, float] | None:
        """How much each column tells, in nats per row, strongest first; None where that is not kept."""
        if self.parameters is not None:
            return None if self.parameters.strengths is None else dict(self.parameters.strengths)
        from candide.model.select import strengths

        return dict(strengths(self.settled, self.settings.priors))

    @property
    def shares(self) -> Floats:
        """(classes,) shares of the rows counted; where no counts are kept, of the class prior."""
        if self.parameters is not None:
            return self.base
        weight = self.census.class_weight
        if weight.any():
            weight = weight / weight.max()  # what is next to nothing has few digits
        return weight / max(weight.sum(), 1.0)

    def classify(self, rows: Any) -> NDArray:
        """The class that each row is given, by its policy or as the most probable one; None where it is left open."""
        return decided(self.labels.array, self.apply(self.verb, rows))

    @property
    def verb(self) -> Callable[[Model, Any], Codes]:
        """What of a model and blocks of rows makes the codes of their classes; -1 where a row is left open."""
        rule = self.rule
        return Model.classify if rule is None else lambda model, blocks: rule(model.log_posterior(blocks))

    def posterior(self, rows: Any) -> NDArray:
        """p(class | x), (row, class)."""
        return self.apply(Model.posterior, rows)

    def apply(self, verb: Any, rows: Any) -> NDArray:
        """Ask the model about rows that have the plan's columns by name."""
        table, plan = self.read(Table.of(rows)), self.plan
        there = set(table.names)
        for name in plan.columns:
            if name not in there:
                raise missing_column(name, plan)
        return ask(verb, self.model, [part.columns for part in plan.parts], plan.blocks(table))

    def read(self, table: Table) -> Table:
        """Rows in memory, read as the model's own rows were: what spells a number or a date, what means missing."""
        columns, kinds = (self.plan if self.counts is None else self.counts.plan).columns, self.temporal
        dates, times = ([name for name, one in kinds.items() if one == kind] for kind in ("date", "time"))
        return as_spelled(without(table, columns, self.na), self.spelled, dates, times)

    def in_types(self, name: Name, values: NDArray) -> NDArray:
        """Values of a column of days as dates, or as durations; those of another as they are."""
        kind = self.temporal.get(name)
        return values if kind is None else in_time(np.asarray(values, np.float64), kind)

    @cached_property
    def temporal(self) -> dict[Name, str]:
        """The columns that are counted as days: "date", or "time" for times of day and durations."""
        plan = self.plan if self.counts is None else self.counts.plan
        each = ((part.columns, part.encodings) for part in plan.parts)
        days = {name for columns, how in each for name, one in zip(columns, how, strict=True) if not one.as_written}
        kinds = {**dict.fromkeys(self.times, "time"), **dict.fromkeys(self.dates, "date")}
        return {name: kind for name, kind in kinds.items() if name in days}

    def changed(self, **settings: Any) -> "Fitted":
        """The same counts under other settings: no longer those of the estimator that was fitted."""
        return replace(self.with_census(self.census), settings=self.settings.changed(**settings), estimator=None)

    def with_census(self, census: Census) -> "Fitted":
        """The same settings, and what is known beside the counts, with other counts."""
        voices = self.voices and self.voices.among(self.labels, census.labels)
        return replace(self, counts=census, parameters=None, voices=voices)

    def without_counts(self) -> "Fitted":
        """The parameters alone."""
        return replace(self, counts=None, parameters=Parameters(self.plan, self.labels, self.learned))

    def plus(self, more: Census) -> "Fitted":
        """This model with rows that were counted like its own."""
        mine, more = _in_common(self, more)
        return mine.with_census(mine.census + more.like(mine.census))

    def minus(self, part: Census) -> "Fitted":
        """This model without rows that were counted in it. Weights that they taught stay, and say so."""
        mine, part = _in_common(self, part)
        left = mine.with_census(mine.census - part.like(mine.census))
        if left.voices is None:
            return left
        return replace(left, voices=left.voices.without(part.n_rows, left.census.tallies))

    def __add__(self, other: "Fitted") -> "Fitted":
        both = self.plus(other.census)
        if both.voices is not None and other.voices is not None:
            theirs = other.voices.first(len(both.plan.parts)).among(other.labels, both.labels)
            both = replace(both, voices=both.voices + theirs)
        na = tuple(dict.fromkeys(self.na + other.na))
        dates, times = self.dates | other.dates, self.times | other.times
        return replace(both, spelled={**other.spelled, **self.spelled}, na=na, dates=dates, times=times)

    def __sub__(self, part: "Fitted") -> "Fitted":
        return self.minus(part.census)

    def scale(self, factor: float) -> "Fitted":
        """Let every row count ``factor`` times: forgetting."""
        return self.with_census(self.census.scale(factor))


def _in_common(fitted: Fitted, other: Census) -> tuple[Fitted, Census]:
    """Both without the runs of characters that one of them hears beside its words, and the other does not."""
    mine, theirs = fitted.census.plan.parts, other.plan.parts
    n = min(len(mine), len(theirs))
    words = {part.columns for part in mine[:n] if part.event.hears_words}
    if not all(part.event.hears_words and part.columns in words for part in (*mine[n:], *theirs[n:])):
        return fitted, other
    if len(mine) > n:
        voices = fitted.voices and fitted.voices.first(n)
        fitted = replace(fitted.with_census(fitted.census.first(n)), voices=voices)
    return fitted, other.first(n) if len(theirs) > n else other


def decided(classes: NDArray, codes: Codes) -> NDArray:
    """Classes by their codes, None for those below 0."""
    if not len(codes) or codes.min() >= 0:
        return classes[codes]
    found = classes.astype(object)[codes]
    found[codes < 0] = None
    return found


def missing_column(name: Name, plan: Plan, given: Sequence[Name] = ()) -> InputError:
    """The error for rows without a column that the model needs, and have ``given`` ones."""
    near = similar_names([str(name)], [str(one) for one in given if one not in plan.columns])
    remedy = suggestion(near) or f"the model was fitted on {wording.listing(plan.columns)}"
    return InputError("missing", column=name, remedy=remedy)
