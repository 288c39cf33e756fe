"""Fitted: what was counted, with the settings that turn it into a model. What a file keeps, and every face works with.

The model is estimated from the counts at first use. A Fitted may also be without counts, by its parameters alone: it
predicts the same, and whatever needs counts says that there are none.

>>> from candide.demo import garden
>>> fitted = FittedModel(garden())
>>> table = Table.from_data(
...     {"height_cm": [21.0], "leaf_mm": [8.0], "flowers": [14], "soil": ["sand"], "scented": ["yes"]}
... )
>>> fitted.classify(table).tolist(), fitted.posterior(table).round(3).tolist()
(['thyme'], [[0.0, 0.0, 1.0]])
>>> fitted.with_settings(class_prior="uniform").settings.class_prior
'uniform'
>>> (fitted + fitted.scale(0.5)).counts.class_weight.tolist()
[150.0, 150.0, 150.0]
>>> alone = fitted.without_counts()
>>> alone.posterior(table).tolist() == fitted.posterior(table).tolist(), alone.has_counts, alone.n_rows
(True, False, None)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.labels import Labels
from candide.data.table import Name, Table
from candide.data.temporal import in_time
from candide.data.text_formats import TextFormat
from candide.data.text_values import parse_text_columns, replace_missing_markers
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.input_columns import format_suggestion, similar_names
from candide.model.model import Model, apply_model, class_log_prior, estimate_model
from candide.model.plan import Plan
from candide.model.policy import DecisionRule, Policy, PolicyLike, make_policy, parse_class_proportions
from candide.model.settings import Settings

if TYPE_CHECKING:
    from candide.model.term_weights import TermWeights


@dataclass(frozen=True, eq=False)
class Parameters:
    """What is left without counts; how many rows they were of, and how much each column tells, where that is kept."""

    plan: Plan
    labels: Labels
    model: Model
    n_rows: int | None = None
    column_evidence: tuple[tuple[Name, float], ...] | None = None


@dataclass(frozen=True)
class EstimatorRecord:
    """The estimator to make of a model: its class and parameters by name, and how many columns its rows have."""

    name: str
    params: Mapping[str, Any]
    n_features: int


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """Counts, or parameters where there are none; settings; the column that was learned, and where the rows came from.

    The counts are of every column, so that merges go on and the choice of columns can be made again; ``plan`` and
    ``model`` are of the columns that the settings choose.
    """

    stored_counts: ModelCounts | None
    settings: Settings = field(default_factory=Settings)
    target: str | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    estimator: EstimatorRecord | None = None  # None: a NaiveBayes
    parameters: Parameters | None = None
    text_formats: Mapping[str, TextFormat] = field(default_factory=dict)  # numbers and dates of text, where not plainly
    na: tuple[str, ...] = ()  # text that was said to mean a missing value
    dates: frozenset[str] = frozenset()  # columns of numbers that are days since 1970
    times: frozenset[str] = frozenset()  # columns of numbers that are times of day or durations, in days
    term_weights: "TermWeights | None" = None  # weights that were learned; None: every voice counts once
    policy: Policy | None = None  # how its probabilities become decisions; None: the most probable class

    def __repr__(self) -> str:
        what = "without counts" if self.stored_counts is None else repr(self.stored_counts)[1:-1]
        weights = (
            ""
            if self.term_weights is None or self.stored_counts is None
            else f", {self.term_weights.training_summary(self.stored_counts.n_rows)}"
        )
        return f"<Fitted to {self.target!r}, {what}{weights}>"

    def __post_init__(self) -> None:
        if self.stored_counts is not None and self.settings.has_class_proportions:
            object.__setattr__(self, "stored_counts", self.stored_counts.declare_classes())

    @property
    def has_counts(self) -> bool:
        return self.stored_counts is not None

    @property
    def counts(self) -> ModelCounts:
        """What was counted; an error where no counts are kept."""
        if self.stored_counts is None:
            raise InputError(
                "this model keeps no counts: it predicts, but cannot be merged, updated, scaled or estimated again",
                remedy="save it with detail='tally' for that",
            )
        return self.stored_counts

    @cached_property
    def resolved_counts(self) -> ModelCounts:
        """The census under the event models for which the counts decide: what a model is estimated from."""
        return self.counts.resolve_events()

    @cached_property
    def selected_counts(self) -> ModelCounts:
        """The census of the columns that the settings choose."""
        if self.settings.select is None:
            return self.resolved_counts
        from candide.model.feature_selection import choose_columns

        return self.resolved_counts.select_columns(
            choose_columns(self.resolved_counts, self.settings.select, self.settings.param_priors)
        )

    @property
    def plan(self) -> Plan:
        return self.selected_counts.plan if self.parameters is None else self.parameters.plan

    @property
    def labels(self) -> Labels:
        return self.counts.labels if self.parameters is None else self.parameters.labels

    @cached_property
    def model(self) -> Model:
        """What answers: the model as it was learned, or where the classes have the shares that its policy says."""
        if self.policy is None or not self.policy.has_shifted_prior:
            return self.unadjusted_model
        assert self.policy.class_prior is not None
        there = parse_class_proportions(self.policy.class_prior, self.labels)
        with np.errstate(divide="ignore"):
            return self.unadjusted_model.shift_prior(
                np.where(self.base_proportions > 0, np.log(there) - np.log(self.base_proportions), 0.0)
            )

    @cached_property
    def unadjusted_model(self) -> Model:
        """Estimated at first use; a merge makes a new Fitted, so it is never stale."""
        if self.parameters is not None:
            return self.parameters.model
        if self.term_weights is None:
            return estimate_model(self.selected_counts, self.settings)
        prior = class_log_prior(self.selected_counts, self.settings.class_prior, self.settings.estimate)
        return self.term_weights.apply_to(
            replace(
                estimate_model(self.term_weights.effective_counts(self.selected_counts), self.settings), log_prior=prior
            )
        )

    @property
    def base_proportions(self) -> Floats:
        """(classes,) the shares that its probabilities are right for."""
        log_prior = self.unadjusted_model.log_prior - (0.0 if self.term_weights is None else self.term_weights.bias)
        return np.exp(log_prior - np.logaddexp.reduce(log_prior))

    def with_policy(self, policy: PolicyLike) -> "FittedModel":
        """The same model, which decides as it is told; what is not said stays."""
        found = make_policy(policy)
        if found is None:
            return self
        found = found.with_defaults(self.policy)
        found.make_rule(self.labels)
        if found.class_prior is not None and found.has_shifted_prior:
            parse_class_proportions(found.class_prior, self.labels)
        return replace(self, policy=found)

    @property
    def decision_rule(self) -> DecisionRule | None:
        """What decides; None where it is the most probable class."""
        return self.policy.make_rule(self.labels) if self.policy is not None and self.policy.can_change_class else None

    @cached_property
    def generative_model(self) -> "FittedModel":
        """The generative story: the laws of the columns themselves, none weighted; what has no density has no part."""
        if self.term_weights is None:
            return self
        if self.parameters is not None:
            plan, at = self.plan.select_density_parts()
            laws = tuple(self.model.distributions[i].generative_distribution for i in at)
            alone = replace(self.parameters, plan=plan, model=Model(np.log(self.class_proportions), laws))
            return replace(self, parameters=alone, term_weights=None)
        return replace(self, stored_counts=self.counts.select_density_parts(), term_weights=None)

    @property
    def n_rows(self) -> int | None:
        """How many rows were counted, if that is known."""
        return self.counts.n_rows if self.parameters is None else self.parameters.n_rows

    @cached_property
    def column_evidence(self) -> dict[Name, float] | None:
        """How much each column tells, in nats per row, strongest first; None where that is not kept."""
        if self.parameters is not None:
            return None if self.parameters.column_evidence is None else dict(self.parameters.column_evidence)
        from candide.model.feature_selection import rank_columns_by_evidence

        return dict(rank_columns_by_evidence(self.resolved_counts, self.settings.param_priors))

    @property
    def class_proportions(self) -> Floats:
        """(classes,) shares of the rows counted; where no counts are kept, of the class prior."""
        if self.parameters is not None:
            return self.base_proportions
        weight = self.counts.class_weight
        if weight.any():
            weight = weight / weight.max()  # what is next to nothing has few digits
        return weight / max(weight.sum(), 1.0)

    def classify(self, rows: Any) -> NDArray:
        """The class that each row is given, by its policy or as the most probable one; None where it is left open."""
        return labels_from_codes(self.labels.array, self.apply(self.classify_function, rows))

    @property
    def classify_function(self) -> Callable[[Model, Any], Codes]:
        """What of a model and blocks of rows makes the codes of their classes; -1 where a row is left open."""
        rule = self.decision_rule
        return Model.classify if rule is None else lambda model, blocks: rule(model.log_posterior(blocks))

    def posterior(self, rows: Any) -> NDArray:
        """p(class | x), (row, class)."""
        return self.apply(Model.posterior, rows)

    def apply(self, method: Any, rows: Any) -> NDArray:
        """Ask the model about rows that have the plan's columns by name."""
        table, plan = self.parse_table(Table.from_data(rows)), self.plan
        there = set(table.names)
        for name in plan.columns:
            if name not in there:
                raise missing_column_error(name, plan)
        return apply_model(method, self.model, [part.columns for part in plan.parts], plan.blocks(table))

    def parse_table(self, table: Table) -> Table:
        """Rows in memory, read as the model's own rows were: what spells a number or a date, what means missing."""
        columns, kinds = (self.plan if self.stored_counts is None else self.stored_counts.plan).columns, self.temporal
        dates, times = ([name for name, one in kinds.items() if one == kind] for kind in ("date", "time"))
        return parse_text_columns(replace_missing_markers(table, columns, self.na), self.text_formats, dates, times)

    def in_types(self, name: Name, values: NDArray) -> NDArray:
        """Values of a column of days as dates, or as durations; those of another as they are."""
        kind = self.temporal.get(name)
        return values if kind is None else in_time(np.asarray(values, np.float64), kind)

    @cached_property
    def temporal(self) -> dict[Name, str]:
        """The columns that are counted as days: "date", or "time" for times of day and durations."""
        plan = self.plan if self.stored_counts is None else self.stored_counts.plan
        each = ((part.columns, part.encodings) for part in plan.parts)
        days = {
            name for columns, how in each for name, one in zip(columns, how, strict=True) if not one.is_read_as_text
        }
        kinds = {**dict.fromkeys(self.times, "time"), **dict.fromkeys(self.dates, "date")}
        return {name: kind for name, kind in kinds.items() if name in days}

    def with_settings(self, **settings: Any) -> "FittedModel":
        """The same counts under other settings: no longer those of the estimator that was fitted."""
        return replace(self.with_counts(self.counts), settings=self.settings.with_settings(**settings), estimator=None)

    def with_counts(self, counts: ModelCounts) -> "FittedModel":
        """The same settings, and what is known beside the counts, with other counts."""
        voices = self.term_weights and self.term_weights.with_labels(self.labels, counts.labels)
        return replace(self, stored_counts=counts, parameters=None, term_weights=voices)

    def without_counts(self) -> "FittedModel":
        """The parameters alone."""
        return replace(self, stored_counts=None, parameters=Parameters(self.plan, self.labels, self.unadjusted_model))

    def add_counts(self, other: ModelCounts) -> "FittedModel":
        """This model with rows that were counted like its own."""
        mine, other = _drop_unshared_character_parts(self, other)
        return mine.with_counts(mine.counts + other.match_labels(mine.counts))

    def subtract_counts(self, other: ModelCounts) -> "FittedModel":
        """This model without rows that were counted in it. Weights that they taught stay, and say so."""
        mine, other = _drop_unshared_character_parts(self, other)
        left = mine.with_counts(mine.counts - other.match_labels(mine.counts))
        if left.term_weights is None:
            return left
        return replace(left, term_weights=left.term_weights.with_removed_rows(other.n_rows, left.counts.tallies))

    def __add__(self, other: "FittedModel") -> "FittedModel":
        both = self.add_counts(other.counts)
        if both.term_weights is not None and other.term_weights is not None:
            theirs = other.term_weights.first_parts(len(both.plan.parts)).with_labels(other.labels, both.labels)
            both = replace(both, term_weights=both.term_weights + theirs)
        na = tuple(dict.fromkeys(self.na + other.na))
        dates, times = self.dates | other.dates, self.times | other.times
        return replace(both, text_formats={**other.text_formats, **self.text_formats}, na=na, dates=dates, times=times)

    def __sub__(self, part: "FittedModel") -> "FittedModel":
        return self.subtract_counts(part.counts)

    def scale(self, factor: float) -> "FittedModel":
        """Let every row count ``factor`` times: forgetting."""
        return self.with_counts(self.counts.scale(factor))


def _drop_unshared_character_parts(fitted: FittedModel, other: ModelCounts) -> tuple[FittedModel, ModelCounts]:
    """Both without the runs of characters that one of them hears beside its words, and the other does not."""
    mine, theirs = fitted.counts.plan.parts, other.plan.parts
    n = min(len(mine), len(theirs))
    words = {part.columns for part in mine[:n] if part.event.weights_tokens}
    if not all(part.event.weights_tokens and part.columns in words for part in (*mine[n:], *theirs[n:])):
        return fitted, other
    if len(mine) > n:
        voices = fitted.term_weights and fitted.term_weights.first_parts(n)
        fitted = replace(fitted.with_counts(fitted.counts.first_parts(n)), term_weights=voices)
    return fitted, other.first_parts(n) if len(theirs) > n else other


def labels_from_codes(classes: NDArray, codes: Codes) -> NDArray:
    """Classes by their codes, None for those below 0."""
    if not len(codes) or codes.min() >= 0:
        return classes[codes]
    found = classes.astype(object)[codes]
    found[codes < 0] = None
    return found


def missing_column_error(name: Name, plan: Plan, given_columns: Sequence[Name] = ()) -> InputError:
    """The error for rows without a column that the model needs, and have ``given`` ones."""
    near = similar_names([str(name)], [str(one) for one in given_columns if one not in plan.columns])
    remedy = format_suggestion(near) or f"the model was fitted on {formatting.format_list(plan.columns)}"
    return InputError("missing", column=name, remedy=remedy)
