"""The fitted model: counts, with the settings that turn them into a model. All interfaces and model files use it.

The model is estimated from the counts at first use. A fitted model may also hold its parameters alone: it predicts the
same, and what needs counts raises an error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.labels import Labels
from candide.data.table import Name, Table
from candide.data.text_columns import days_to_temporal, parse_text_columns, replace_missing_markers
from candide.data.text_formats import TextFormat
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.input_columns import format_suggestion, similar_names
from candide.model.model import Model, TermWeights, apply_model, class_log_prior, estimate_model
from candide.model.plan import Plan
from candide.model.policy import DecisionRule, Policy, PolicyLike, make_policy, parse_class_proportions
from candide.model.settings import Settings


@dataclass(frozen=True, eq=False)
class Parameters:
    """What remains without counts; the number of rows and the evidence of each column, if known."""

    plan: Plan
    labels: Labels
    model: Model
    n_rows: int | None = None
    column_evidence: tuple[tuple[Name, float], ...] | None = None


@dataclass(frozen=True)
class EstimatorRecord:
    """The estimator that a model was fitted by: its class, its parameters, and the number of columns of its rows."""

    name: str
    params: Mapping[str, Any]
    n_features: int


@dataclass(frozen=True, eq=False, repr=False)
class FittedModel:
    """Counts, or parameters if there are none, settings, target column and provenance.

    The counts are of every column, so that models can be merged and columns selected again; ``plan`` and ``model`` are
    of the columns that the settings select.
    """

    stored_counts: ModelCounts | None
    settings: Settings = field(default_factory=Settings)
    target: str | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    estimator: EstimatorRecord | None = None  # None: a NaiveBayes
    parameters: Parameters | None = None
    text_formats: Mapping[str, TextFormat] = field(default_factory=dict)  # of text columns of numbers and dates
    na: tuple[str, ...] = ()  # markers of missing values
    dates: frozenset[str] = frozenset()  # numeric columns that hold days since 1970
    times: frozenset[str] = frozenset()  # numeric columns that hold times of day or durations, in days
    term_weights: TermWeights | None = None  # None: every term has weight 1
    policy: Policy | None = None  # None: predict the most probable class

    def __repr__(self) -> str:
        name = "FittedModel" if self.target is None else f"FittedModel of {self.target!r}"
        if self.stored_counts is None:
            return f"<{name}, without counts>"
        weights = self.term_weights and self.term_weights.training_summary(self.stored_counts.n_rows)
        counts = repr(self.stored_counts).removeprefix("<ModelCounts of ").removesuffix(">")
        return f"<{name}, {counts}{f', {weights}' if weights else ''}>"

    def __post_init__(self) -> None:
        if self.stored_counts is not None and self.settings.has_class_proportions:
            object.__setattr__(self, "stored_counts", self.stored_counts.declare_classes())

    @property
    def has_counts(self) -> bool:
        return self.stored_counts is not None

    @property
    def _counted_plan(self) -> Plan:
        """The plan of every column, if there are counts."""
        return self.plan if self.stored_counts is None else self.stored_counts.plan

    @property
    def counts(self) -> ModelCounts:
        """The counts; an error if the model has none."""
        if self.stored_counts is None:
            what = "this model has no counts: it predicts, but cannot be merged, updated, scaled or estimated again"
            raise InputError(what, remedy="save it with detail='tally' for that")
        return self.stored_counts

    @cached_property
    def resolved_counts(self) -> ModelCounts:
        """The counts under the event models that they determine: what a model is estimated from."""
        return self.counts.resolve_events()

    @cached_property
    def selected_counts(self) -> ModelCounts:
        if self.settings.select is None:
            return self.resolved_counts
        from candide.model.feature_selection import choose_columns

        counts, settings = self.resolved_counts, self.settings
        return counts.select_columns(choose_columns(counts, settings.select, settings.param_priors))

    @property
    def plan(self) -> Plan:
        return self.selected_counts.plan if self.parameters is None else self.parameters.plan

    @property
    def labels(self) -> Labels:
        return self.counts.labels if self.parameters is None else self.parameters.labels

    @cached_property
    def model(self) -> Model:
        """The model that predicts: with the class prior of the policy, if it has one."""
        if self.policy is None or self.policy.class_prior is None or not self.policy.has_shifted_prior:
            return self.unadjusted_model
        new, old = parse_class_proportions(self.policy.class_prior, self.labels), self.base_proportions
        with np.errstate(divide="ignore"):
            return self.unadjusted_model.shift_prior(np.where(old > 0, np.log(new) - np.log(old), 0.0))

    @cached_property
    def unadjusted_model(self) -> Model:
        """Estimated at first use; a merge makes a new fitted model, so it is never stale."""
        if self.parameters is not None:
            return self.parameters.model
        if self.term_weights is None:
            return estimate_model(self.selected_counts, self.settings)
        prior = class_log_prior(self.selected_counts, self.settings.class_prior, self.settings.estimate)
        model = estimate_model(self.term_weights.effective_counts(self.selected_counts), self.settings)
        return self.term_weights.apply_to(replace(model, log_prior=prior))

    @property
    def base_proportions(self) -> Floats:
        """(classes,) the class proportions that the probabilities are calibrated for."""
        log_prior = self.unadjusted_model.log_prior - (0.0 if self.term_weights is None else self.term_weights.bias)
        return np.exp(log_prior - np.logaddexp.reduce(log_prior))

    def with_policy(self, policy: PolicyLike) -> "FittedModel":
        """Return the same model with a policy; what it does not set stays."""
        new = make_policy(policy)
        if new is None:
            return self
        new = new.with_defaults(self.policy)
        new.make_rule(self.labels)  # raises an error if it does not fit the classes
        if new.class_prior is not None and new.has_shifted_prior:
            parse_class_proportions(new.class_prior, self.labels)
        return replace(self, policy=new)

    @property
    def decision_rule(self) -> DecisionRule | None:
        """The decision rule; None for the most probable class."""
        return self.policy.make_rule(self.labels) if self.policy is not None and self.policy.can_change_class else None

    @cached_property
    def generative_model(self) -> "FittedModel":
        """The unweighted naive Bayes model of the columns, without the terms that have no density."""
        if self.term_weights is None:
            return self
        if self.parameters is not None:
            plan, at = self.plan.select_density_parts()
            distributions = tuple(self.model.distributions[i].generative_distribution for i in at)
            model = Model(np.log(self.class_proportions), distributions)
            return replace(self, parameters=replace(self.parameters, plan=plan, model=model), term_weights=None)
        return replace(self, stored_counts=self.counts.select_density_parts(), term_weights=None)

    @property
    def n_rows(self) -> int | None:
        return self.counts.n_rows if self.parameters is None else self.parameters.n_rows

    @cached_property
    def column_evidence(self) -> dict[Name, float] | None:
        """The evidence of each column, in nats per row, largest first; None if it is not known."""
        if self.parameters is not None:
            return None if self.parameters.column_evidence is None else dict(self.parameters.column_evidence)
        from candide.model.feature_selection import rank_columns_by_evidence

        return dict(rank_columns_by_evidence(self.resolved_counts, self.settings.param_priors))

    @property
    def class_proportions(self) -> Floats:
        """(classes,) proportions of the rows counted; without counts, of the class prior."""
        if self.parameters is not None:
            return self.base_proportions
        weight = self.counts.class_weight
        if weight.any():
            weight = weight / weight.max()  # subnormal numbers have few digits
        return weight / max(weight.sum(), 1.0)

    def classify(self, rows: Any) -> NDArray:
        """Return the predicted class of each row, by the policy or the most probable one; None for an abstention."""
        return labels_from_codes(self.labels.array, self.apply(self.classify_function, rows))

    @property
    def classify_function(self) -> Callable[[Model, Any], Codes]:
        """A function of a model and blocks that returns class codes; -1 for an abstention."""
        rule = self.decision_rule
        return Model.classify if rule is None else lambda model, blocks: rule(model.log_posterior(blocks))

    def posterior(self, rows: Any) -> NDArray:
        return self.apply(Model.posterior, rows)

    def apply(self, method: Any, rows: Any) -> NDArray:
        """Apply a method of the model to rows that have the columns of the plan."""
        table, plan = self.parse_table(Table.from_data(rows)), self.plan
        names = set(table.names)
        if absent := [name for name in plan.columns if name not in names]:
            raise missing_column_error(absent[0], plan)
        return apply_model(method, self.model, [part.columns for part in plan.parts], plan.blocks(table))

    def parse_table(self, table: Table) -> Table:
        """Return a table with text parsed as in the training rows: numbers, dates and missing values."""
        table = replace_missing_markers(table, self._counted_plan.columns, self.na)
        dates, times = ([name for name, kind in self.temporal.items() if kind == each] for each in ("date", "time"))
        return parse_text_columns(table, self.text_formats, dates, times)

    def in_types(self, name: Name, values: NDArray) -> NDArray:
        """Return the values of a date or time column as such; other values as they are."""
        kind = self.temporal.get(name)
        return values if kind is None else days_to_temporal(np.asarray(values, np.float64), kind)

    @cached_property
    def temporal(self) -> dict[Name, str]:
        """Columns that are counted as days: "date", or "time" for times of day and durations."""
        parts = self._counted_plan.parts
        pairs = (pair for part in parts for pair in zip(part.columns, part.encodings, strict=True))
        numeric = {name for name, encoding in pairs if not encoding.is_read_as_text}
        kinds = {**dict.fromkeys(self.times, "time"), **dict.fromkeys(self.dates, "date")}
        return {name: kind for name, kind in kinds.items() if name in numeric}

    def with_settings(self, **settings: Any) -> "FittedModel":
        """Return the same counts under other settings; they are no longer those of the estimator."""
        return replace(self.with_counts(self.counts), settings=self.settings.with_settings(**settings), estimator=None)

    def with_counts(self, counts: ModelCounts) -> "FittedModel":
        weights = self.term_weights and self.term_weights.with_labels(self.labels, counts.labels)
        return replace(self, stored_counts=counts, parameters=None, term_weights=weights)

    def without_counts(self) -> "FittedModel":
        return replace(self, stored_counts=None, parameters=Parameters(self.plan, self.labels, self.unadjusted_model))

    def add_counts(self, other: ModelCounts) -> "FittedModel":
        mine, other = _drop_unshared_character_parts(self, other)
        return mine.with_counts(mine.counts + other.match_labels(mine.counts))

    def subtract_counts(self, other: ModelCounts) -> "FittedModel":
        """Remove rows that were counted. Weights that were learned from them stay, and record their number."""
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
        return self.with_counts(self.counts.scale(factor))


def _drop_unshared_character_parts(fitted: FittedModel, other: ModelCounts) -> tuple[FittedModel, ModelCounts]:
    """Return both without the character terms that only one of them has beside its words."""
    mine, theirs = fitted.counts.plan.parts, other.plan.parts
    n = min(len(mine), len(theirs))
    words = {part.columns for part in mine[:n] if part.event.weights_tokens}
    if not all(part.event.weights_tokens and part.columns in words for part in (*mine[n:], *theirs[n:])):
        return fitted, other
    if len(mine) > n:
        weights = fitted.term_weights and fitted.term_weights.first_parts(n)
        fitted = replace(fitted.with_counts(fitted.counts.with_parts(fitted.counts.parts[:n])), term_weights=weights)
    return fitted, other.with_parts(other.parts[:n]) if len(theirs) > n else other


def labels_from_codes(classes: NDArray, codes: Codes) -> NDArray:
    if not len(codes) or codes.min() >= 0:
        return classes[codes]
    labels = classes.astype(object)[codes]
    labels[codes < 0] = None
    return labels


def missing_column_error(name: Name, plan: Plan, given_columns: Sequence[Name] = ()) -> InputError:
    similar = similar_names([str(name)], [str(given) for given in given_columns if given not in plan.columns])
    remedy = format_suggestion(similar) or f"the model was fitted on {formatting.format_list(plan.columns)}"
    return InputError("missing", column=name, remedy=remedy)
