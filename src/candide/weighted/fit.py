"""Weighing: how much each voice of a model counts, learned from rows that it has counted.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> table = Table.from_data(
...     {"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b], "c": rng.normal(size=400)}
... )
>>> fitted = fit_weighted(table, a ^ b)
>>> bool((fitted.classify(table) == a ^ b).all()), fitted.term_weights.n_learned_rows
(True, 400)
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.column_types import infer_columns
from candide.data.labels import Labels
from candide.data.limits import LIMITS
from candide.data.notes import Note
from candide.data.sample import Sample
from candide.data.table import Table
from candide.engines import arrays
from candide.engines.base import CountResult, LabelledSource, PreparedSource, Watch, no_progress
from candide.engines.draw_sample import draw_sample, draw_text_sample
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.fitted import EstimatorRecord, FittedModel
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.model.term_weights import TermWeights
from candide.weighted import learning
from candide.weighted.selection import LearnedEncodings, select_terms
from candide.weighted.training_rows import FurtherRows, TrainingRows

Calibrator = Callable[
    [FittedModel, Sample, Plan | None], FittedModel
]  # of a model, its sample and the plan given to it


def fit_weighted(
    table: Table,
    y: Any,
    weight: Floats | None = None,
    *,
    labels: Labels | None = None,
    events: Any = "auto",
    settings: Settings | None = None,
    interactions: bool = True,
    sample_rows: int = LIMITS.rows,
    documents: int = LIMITS.documents,
    seed: int = 0,
    like: Plan | None = None,
    calibrate: Calibrator | None = None,
) -> FittedModel:
    """Fit the weighted model to rows in memory; ``like``: with the terms of that plan."""
    settings = settings or Settings(class_prior="jeffreys")
    labels = Labels.from_values(y) if labels is None else labels
    more = Sample.from_table(table, labels.encode(y), labels, weight)
    table, y, weight = more.table, labels.array[more.y], more.weight  # without rows that weigh nothing
    seen, found = more.limit_rows(sample_rows, seed).with_seen_labels(), None
    pooled = seen.pool_rows(seed)
    encodings = None if like is not None else LearnedEncodings.from_sample(pooled, events, infer_columns(seen.table))
    plan = like if encodings is None else encodings.plan
    assert plan is not None
    if plan.token_columns:
        more = more.limit_text(plan.token_columns, documents, seed)
        seen = more.limit_rows(sample_rows, seed).with_seen_labels()  # of long documents, fewer
        pooled = seen.pool_rows(seed)
    if encodings is not None:
        plan, found = select_terms(pooled, settings=settings, interactions=interactions, encodings=encodings)
    census = arrays.count_table(table, y, weight, plan=plan.with_levels(table), labels=labels)
    columns = set(census.plan.columns)
    found = learn_weights_from_sample(pooled, census, settings, found, more if plan.token_columns else None)
    fitted = FittedModel(census, settings, dates=table.dates & columns, times=table.times & columns, term_weights=found)
    return fitted if calibrate is None else calibrate(fitted, seen.with_labels(labels), like)


def fit_weighted_source(
    rows: LabelledSource,
    prepared: PreparedSource,
    *,
    events: Any = "auto",
    settings: Settings,
    sample_rows: int = LIMITS.rows,
    watch: Watch = no_progress,
) -> tuple[CountResult, TermWeights, Sample]:
    """The counts of a source for a model of all voices, their weights, and the rows looked at.

    A look, a pass, and the look again.
    """
    from candide.engines.counting import count_source

    with watch(rows.source, "looking"):
        more = (
            draw_text_sample(rows, prepared)
            if prepared.plan.token_columns
            else draw_sample(rows, prepared, rows=sample_rows)
        )
    seen = more.limit_rows(sample_rows).with_seen_labels()
    pooled = seen.pool_rows()
    plan, found = select_terms(
        pooled, settings=settings, encodings=LearnedEncodings.from_sample(pooled, events, prepared.columns)
    )
    with watch(rows.source, "counting"):
        counted = count_source(rows, replace(prepared, plan=plan))
    return counted, learn_weights_from_sample(pooled, counted.fold_counts[0], settings, found, more), seen


def learn_weights_from_sample(
    sample: Sample,
    counts: ModelCounts,
    settings: Settings,
    start: TermWeights | None = None,
    further_sample: Sample | None = None,
) -> TermWeights:
    """The weights of the voices of a census by a look at its rows; ``start`` was learned from the look alone.

    Where the look has all of the rows it was learned from the same counts, and stays. ``more`` has further rows, from
    which words learn; all voices do where they are words. Equal rows of the look are pooled, where they are not yet.
    """
    if start is not None and not sample.is_part and sample.labels == counts.labels:
        return start
    start = start and start.with_labels(sample.labels, counts.labels)
    if (
        further_sample is not None
        and further_sample.n_rows > sample.n_rows
        and all(part.event.weights_tokens for part in counts.plan.parts)
    ):
        sample, further_sample = further_sample, None
    sample = (sample if sample.copies is not None else sample.with_seen_labels().pool_rows()).with_labels(counts.labels)
    further = None
    if further_sample is not None and further_sample.n_rows > sample.n_rows:
        further = _find_further_rows(further_sample.with_labels(counts.labels), sample.row_number, counts.plan)
    return learn_pooled_weights(counts, settings, sample, start, further)


def _find_further_rows(more: Sample, seen: Codes, plan: Plan) -> FurtherRows:
    """Rows that words are learned from, pooled, and which of them are those with the numbers ``seen``."""
    rows = more.distinct()
    pooled = more.pool_distinct(rows)
    number = more.row_number[rows.first[rows.group[np.searchsorted(more.row_number, seen)]]]
    order = np.argsort(pooled.row_number, kind="stable")
    return FurtherRows(
        TrainingRows.from_sample(pooled, plan), order[np.searchsorted(pooled.row_number, number, sorter=order)]
    )


def learn_pooled_weights(
    counts: ModelCounts,
    settings: Settings,
    sample: Sample,
    start: TermWeights | None = None,
    further_rows: FurtherRows | None = None,
) -> TermWeights:
    """The weights of the voices of a census, by some of the rows that were counted, pooled; words also by ``more``."""
    assert sample.copies is not None
    copies = sample.class_copies
    effective, rows = (
        counts if copies is None else counts.scale(1.0 / copies),
        TrainingRows.from_sample(sample, counts.plan),
    )
    found = learning.learn_term_weights(
        effective, settings, rows, start=start, until_converged=start is None, further_rows=further_rows
    )
    return replace(found, copies=copies, n_learned_rows=min(found.n_learned_rows, 1) * sample.n_rows)


def small_weight_notes(weight: Floats | None) -> list[Note]:
    """A note where row weights are below 1 in the mean: the model then has fewer rows than the table.

    >>> small_weight_notes(np.array([0.5, 0.1]))[0].text
    'row weights have a mean of 0.3, and each is the number of rows that a row stands for: 2 rows count as 0.6'
    """
    some = None if weight is None else weight[weight > 0]
    if some is None or not len(some) or some.mean() >= 1.0:
        return []
    text = (
        f"row weights have a mean of {some.mean():.3g}, and each is the number of rows that a row stands for: "
        f"{formatting.format_count(len(some))} count as {some.sum():.3g}"
    )
    return [Note("small-weights", text, remedy="divide the weights by their mean to count each row about once")]


def refuse_naive_settings(settings: Settings) -> None:
    """Refuse settings that a model of weighted voices has no use for."""
    for name in ("estimate", "select"):
        if getattr(settings, name) != getattr(Settings(), name):
            what = f"{name}: {getattr(settings, name)!r} is for naive Bayes; here every voice has a weight"
            raise InputError(
                what,
                value=getattr(settings, name),
                remedy=f"leave {name} out, or ask for the model naive (--model naive)",
            )


def make_estimator_record(settings: Settings, events: Any, prepared: PreparedSource) -> EstimatorRecord:
    """The estimator that a model of all voices is."""
    params = {"class_prior": settings.class_prior, "param_priors": settings.param_priors}
    if events == "auto":
        params["events"] = events
    return EstimatorRecord("BayesClassifier", params, len(prepared.plan.columns))
