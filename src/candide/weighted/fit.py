"""Fit the weighted model: one path behind ``candide.fit``, ``BayesClassifier.fit``, folds, held-out rows and ``like``.

They differ in the rows that weights are learned from (``sample``) and in how terms are counted (``count``). From the
public function to the optimiser there are five calls::

    candide.fit -> fit_model -> fit_weighted -> learn_term_weights -> learn_non_text_weights -> optimizer.learn_weights
    candide.fit -> fit_model -> fit_weighted -> select_terms -> learn_non_text_weights -> optimizer.learn_weights

The weights of a model can be learned again without counting again (``reweight_model``).
"""

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.column_types import ColumnSchema, infer_columns
from candide.data.notes import Note
from candide.data.sample import Sample
from candide.engines import arrays
from candide.errors import InputError, NotCountedError
from candide.model.counts import ModelCounts
from candide.model.fitted import EstimatorRecord, FittedModel
from candide.model.model import TermWeights
from candide.model.plan import Plan
from candide.model.settings import LIMITS, Settings, WeightedSettings
from candide.weighted.learning import FurtherRows, TrainingRows, learn_term_weights
from candide.weighted.selection import LearnedEncodings, select_terms


def fit_weighted(
    sample: Sample,
    count: Callable[[Plan], ModelCounts],
    *,
    settings: WeightedSettings | None = None,
    plan: Plan | None = None,
    start: TermWeights | None = None,
    encodings: LearnedEncodings | None = None,
    columns: Sequence[ColumnSchema] | None = None,
) -> FittedModel:
    """Select terms on a sample, or take those of ``plan``, count them, and learn their weights on the sample.

    ``start``: the weights that came with ``plan`` when it was selected on this sample. ``encodings`` and ``columns``
    are learned from the sample where they are not given. Token weights are learned from all rows of the sample, other
    weights from at most ``settings.sample_rows`` of them.
    """
    settings = settings or WeightedSettings()
    rows = sample.limit_rows(settings.sample_rows, settings.random_state)
    pooled = _pool_rows(rows, settings)
    if plan is None and encodings is None:
        columns = infer_columns(rows.table) if columns is None else columns
        encodings = LearnedEncodings.from_sample(pooled, settings.events, columns)
    token_columns = (plan if encodings is None or plan is not None else encodings.plan).token_columns  # type: ignore[union-attr]
    if token_columns and not sample.is_part:
        whole, sample = sample, sample.limit_text(token_columns, settings.max_documents, settings.random_state)
        if sample is not whole:
            pooled = _pool_rows(sample.limit_rows(settings.sample_rows, settings.random_state), settings)
    if plan is None:
        options: dict[str, Any] = {"settings": settings.model, "terms": settings.terms, "seed": settings.random_state}
        growth_rows = _draw_growth_rows(sample, pooled, settings)
        plan, start = select_terms(pooled, encodings=encodings, growth_rows=growth_rows, **options)
    counts = count(plan)
    if start is not None and not pooled.is_part and pooled.labels == counts.labels:
        return FittedModel(counts, settings.model, term_weights=start)  # learned from the same counts
    start, further = start and start.with_labels(pooled.labels, counts.labels), None
    if token_columns and sample.n_rows > pooled.n_rows:
        if all(part.event.weights_tokens for part in plan.parts):
            pooled = _pool_rows(sample, settings)
        else:
            further = _find_further_rows(sample.with_labels(counts.labels), pooled.row_number, counts.plan)
    pooled = pooled.with_labels(counts.labels)
    copies = pooled.class_copies
    weights = learn_term_weights(
        counts if copies is None else counts.scale(1.0 / copies),
        settings.model,
        TrainingRows.from_sample(pooled, counts.plan),
        start=start,
        until_converged=start is None,
        further_rows=further,
    )
    weights = replace(weights, copies=copies, n_learned_rows=min(weights.n_learned_rows, 1) * pooled.n_rows)
    return FittedModel(counts, settings.model, term_weights=weights)


def _draw_growth_rows(sample: Sample, pooled: Sample, settings: WeightedSettings) -> Sample | None:
    """More rows than those that weights are learned from, to grow decision tables on; None where there are none."""
    rows = sample.limit_rows(LIMITS.table_rows, settings.random_state, n_extra_terms=0)
    if settings.terms != "tables" or len(rows) <= len(pooled):
        return None
    is_known = np.array([pooled.labels.find_code(label) is not None for label in rows.labels.values])
    rows = rows if is_known.all() else rows.take(np.flatnonzero(is_known[rows.y])).with_seen_labels()
    return rows.pool_rows(settings.random_state).with_labels(pooled.labels)


def _pool_rows(rows: Sample, settings: WeightedSettings) -> Sample:
    """The rows with equal ones pooled, and the labels that occur in them."""
    return rows if rows.copies is not None else rows.with_seen_labels().pool_rows(settings.random_state)


def _find_further_rows(sample: Sample, row_numbers: Codes, plan: Plan) -> FurtherRows:
    """All rows of a sample, pooled, to learn token weights from, and which of them have these numbers."""
    distinct = sample.distinct()
    pooled = sample.pool_distinct(distinct)
    first = distinct.first[distinct.group[np.searchsorted(sample.row_number, row_numbers)]]
    order = np.argsort(pooled.row_number, kind="stable")
    places = order[np.searchsorted(pooled.row_number, sample.row_number[first], sorter=order)]
    return FurtherRows(TrainingRows.from_sample(pooled, plan), places)


def count_sample(sample: Sample, plan: Plan) -> ModelCounts:
    """Count the rows of a sample; levels that the plan does not know are added to it."""
    y = sample.labels.array[sample.y]
    plan = plan.with_levels(sample.table)
    return arrays.count_table(sample.table, y, sample.weight, plan=plan, labels=sample.labels)


def small_weight_notes(weight: Floats | None) -> list[Note]:
    """A note where row weights are below 1 on average: the model then counts fewer rows than the table has."""
    positive = None if weight is None else weight[weight > 0]
    if positive is None or not len(positive) or positive.mean() >= 1.0:
        return []
    text = (
        f"row weights have a mean of {positive.mean():.3g}, and each is the number of rows that a row stands for: "
        f"{formatting.format_count(len(positive))} count as {positive.sum():.3g}"
    )
    return [Note("small-weights", text, remedy="divide the weights by their mean to count each row about once")]


def refuse_naive_settings(settings: Settings) -> None:
    """Raise an error for settings that the weighted model does not use."""
    for name in ("estimate", "select"):
        value = getattr(settings, name)
        if value != getattr(Settings(), name):
            remedy = f"leave {name} out, or fit naive Bayes: model='naive' (--model naive)"
            raise InputError(f"{name}={value!r} applies to naive Bayes only", value=value, remedy=remedy)


def estimator_record(settings: WeightedSettings, plan: Plan) -> EstimatorRecord:
    """The parameters of the BayesClassifier that has this model."""
    params = {"class_prior": settings.model.class_prior, "param_priors": settings.model.param_priors}
    if settings.events == "auto":
        params["events"] = "auto"
    own = [field for field in fields(settings) if field.name not in ("model", "events")]
    params |= {f.name: getattr(settings, f.name) for f in own if getattr(settings, f.name) != f.default}
    return EstimatorRecord("BayesClassifier", params, len(plan.columns))


# Learning weights again


def reweight_model(fitted: FittedModel, sample: Sample, *, new: bool = False, is_counted: bool = False) -> FittedModel:
    """The model with weights learned again from a sample, against the counts that it has now.

    A model keeps counts, not rows: unless its rows ``is_counted``, those that cannot have been counted are refused.
    """
    check_weighted(fitted)
    for label in sample.labels.values:
        if fitted.labels.find_code(label) is None:
            remedy = "count its rows first, by update or partial_fit"
            raise NotCountedError(f"class {label!r} was never counted", value=label, remedy=remedy)
    sample, counts = sample.with_labels(fitted.labels), fitted.counts
    if new:  # nothing to leave the rows out of
        assert fitted.term_weights is not None
        rows, counts = sample.with_seen_labels().pool_rows(), fitted.term_weights.effective_counts(counts)
        training_rows = TrainingRows.from_sample(rows.with_labels(fitted.labels), counts.plan)
        weights = learn_term_weights(counts, fitted.settings, training_rows, is_counted=False, until_converged=True)
        n = min(weights.n_learned_rows, 1) * rows.n_rows
        weights = replace(weights, n_learned_rows=n, n_uncounted_rows=n, copies=fitted.term_weights.copies)
        return replace(fitted, term_weights=weights)
    if not is_counted:
        part = count_sample(sample.with_seen_labels(), counts.plan)
        try:
            _ = counts - part.match_labels(counts)
        except NotCountedError as error:
            error.remedy = (
                "pass rows that the model has counted, with the same weights, "
                "or pass rows_are_new=True (--rows-are-new) where it has counted none of them"
            )
            raise
    settings = WeightedSettings(fitted.settings, sample_rows=max(1, len(sample)))
    again = fit_weighted(sample.with_seen_labels(), lambda _: counts, plan=counts.plan, settings=settings)
    return replace(fitted, term_weights=again.term_weights)


def stale_notes(fitted: FittedModel) -> list[Note]:
    """A note where rows were forgotten, or have doubled, since the weights were learned."""
    if fitted.term_weights is None or not fitted.has_counts or not fitted.term_weights.is_stale(fitted.counts.n_rows):
        return []
    text = f"the model has {fitted.term_weights.training_summary(fitted.counts.n_rows)}"
    return [Note("weights", text, remedy="learn them again from rows that it has counted: candide reweight MODEL DATA")]


def check_weighted(fitted: FittedModel) -> None:
    if fitted.term_weights is None and fitted.has_counts:
        raise InputError("this model has no weights: each of its columns counts once", remedy="fit a BayesClassifier")
    fitted.counts  # noqa: B018  raises where there are no counts
