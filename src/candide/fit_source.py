"""Fit a model to a source: naive Bayes in one pass, the weighted model in two; memory does not grow with the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from candide.data.notes import Note
from candide.data.sample import Sample
from candide.engines.base import CountResult, LabelledSource, PreparedSource, Watch, no_progress, open_source
from candide.engines.counting import check_classes, count_source, prepare_like, prepare_source, reading_record
from candide.engines.draw_sample import draw_class_sample, draw_sample, draw_text_sample, learn_grids
from candide.engines.reading import ReadOptions, make_read_options
from candide.errors import InputError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, plan_columns
from candide.model.settings import DEFAULT_MODEL, LIMITS, Settings, WeightedSettings, default_settings
from candide.monitoring.data_checks import collect_notes
from candide.store.file import refuse_plan_options, resolve_plan
from candide.validation.held_out import (
    N_FOLDS,
    FitResult,
    calibrate_model,
    can_subtract_folds,
    has_enough_classes,
    has_rare_class,
    score_held_out,
)
from candide.weighted.fit import estimator_record, fit_weighted, refuse_naive_settings, small_weight_notes
from candide.weighted.selection import plan_column_terms


def fit_model(
    data: Any,
    target: str,
    *,
    model: str = DEFAULT_MODEL,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    settings: Settings | None = None,
    weighted: WeightedSettings | None = None,
    calibration: str | None = None,
    keep_held_out: bool = False,
    like: Any = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> FitResult:
    """Fit a model to any source: "naive" Bayes, or "bayes", the weighted model.

    ``weighted`` are settings of the weighted model besides ``settings``, ``events`` and ``calibration``. To calibrate,
    or to return the scores of held-out rows (``keep_held_out``), it cross-validates within the sample, without a
    further pass. ``like`` is a model, or a plan: the rows are counted as it counts, so that both add, and the new model
    is of its kind; it may have one class only.
    """
    plan, like_model = (None, None) if like is None else resolve_plan(like)
    if like is not None:
        refuse_plan_options(events, drop)
        model = resolve_model_kind(like, model)
        reading = reading if like_model is None else make_read_options(like_model, reading)
    settings = settings or default_settings(model)
    options = replace(weighted or WeightedSettings(), model=settings, events=events, calibration=calibration)
    if model != "naive":
        refuse_naive_settings(settings)
    elif calibration:
        remedy = "pass model='bayes' (--model bayes), or leave it out"
        raise InputError("calibration applies to weighted models only", value=calibration, remedy=remedy)
    with open_source(data, reading) as source:
        rows = LabelledSource(source, target, weight)
        if model != "naive":
            source.materialise()  # the rows of the sample are among those counted
        if plan is None:
            planning = plan_columns if model == "naive" else plan_column_terms
            prepared = prepare_source(source, target, events, drop, weight, planning)
        else:
            formats = () if like_model is None else (like_model.text_formats, like_model.temporal)
            prepared = prepare_like(source, plan, target, weight, *formats)
        count = _SourceCounter(rows, prepared, watch, like_model)
        if model == "naive":
            prepared = prepared if plan is not None else learn_grids(rows, prepared)
            fitted, sample = FittedModel(count(prepared.plan), settings), None
        else:
            sample = _draw_sample(rows, prepared, options, watch)
            fitted = fit_weighted(sample, count, plan=plan, columns=prepared.columns or None, settings=options)
            fitted = replace(fitted, estimator=estimator_record(options, prepared.plan))
            sample = sample.limit_rows(options.sample_rows, options.random_state).with_seen_labels()
            if calibration or keep_held_out:
                sample = _add_rare_classes(sample, rows, prepared, fitted, options)
        record = reading_record(source, prepared, reading)
    counts = fitted.counts.limit_levels()
    fitted = replace(fitted, stored_counts=counts if plan else check_classes(counts, target), target=target, **record)
    fitted.model  # noqa: B018  an estimate that is not possible is an error now, not at the first prediction
    assert count.result is not None
    result = FitResult(fitted, prepared.columns, collect_notes(counts, target, prepared, count.result))
    if sample is None:
        return result
    result = replace(result, notes=[*small_weight_notes(sample.weight), *result.notes])
    return _add_held_out_scores(result, sample, options, keep_held_out, plan)


def _draw_sample(rows: LabelledSource, prepared: PreparedSource, settings: WeightedSettings, watch: Watch) -> Sample:
    """The rows that terms are learned from: more where there are decision tables or token weights."""
    is_text = bool(prepared.plan.token_columns)
    n_rows = max(settings.sample_rows, LIMITS.table_rows) if settings.terms == "tables" else settings.sample_rows
    draw, n_rows = (draw_text_sample, settings.max_documents) if is_text else (draw_sample, n_rows)
    with watch(rows.source, "sampling"):
        return draw(rows, prepared, rows=n_rows, seed=settings.random_state)


@dataclass
class _SourceCounter:
    """Count the terms of a plan in all rows of a source, and keep what was counted."""

    rows: LabelledSource
    prepared: PreparedSource
    watch: Watch
    like: FittedModel | None  # whose labels those of the rows are matched with
    result: CountResult | None = None

    def __call__(self, plan: Plan) -> ModelCounts:
        with self.watch(self.rows.source, "counting"):
            self.result = count_source(self.rows, replace(self.prepared, plan=plan))
        [counts] = self.result.fold_counts
        return counts if self.like is None else counts.match_labels(self.like.counts)


def _add_rare_classes(
    sample: Sample, rows: LabelledSource, prepared: PreparedSource, fitted: FittedModel, settings: WeightedSettings
) -> Sample:
    """The rows to hold out: with more of rare classes, where a sample of many rows has few of them."""
    can_subtract = can_subtract_folds(sample, sample.distinct(), fitted.counts, fitted.settings)
    if not can_subtract or not has_rare_class(sample, fitted.counts):
        return sample
    size = {"rows": settings.sample_rows, "seed": settings.random_state}
    return draw_class_sample(rows, prepared, len(fitted.labels), **size)


def _add_held_out_scores(
    result: FitResult, sample: Sample, settings: WeightedSettings, keep_held_out: bool, plan: Plan | None
) -> FitResult:
    if keep_held_out and not has_enough_classes(sample):
        text = f"no held-out figures: they need at least {N_FOLDS} rows of each of two classes"
        result = replace(result, notes=[*result.notes, Note("no-held-out", text)])
        keep_held_out = False
    if not settings.calibration and not keep_held_out:
        return result
    sample, counts = sample.with_labels(result.fitted.labels), result.fitted.counts
    scores = score_held_out(sample, settings, columns=result.columns or None, plan=plan, counts=counts)
    if keep_held_out and plan is not None:
        text = "the terms are those of the other model; held-out figures are too good if that was fitted to these rows"
        result = replace(result, notes=[*result.notes, Note("held-out-like", text)])
    if not settings.calibration:
        return replace(result, held_out=scores)
    fitted = calibrate_model(result.fitted, scores, settings.calibration)
    return replace(result, fitted=fitted, held_out=scores.calibrate(settings.calibration))


def resolve_model_kind(like: Any, model: str) -> str:
    """The kind of a model fitted like another: that of the other; ``model`` where ``like`` is a plan, or None."""
    like_model = None if like is None else resolve_plan(like)[1]
    if like_model is None:
        return model
    if like_model.term_weights is None:
        return "naive"
    if model == "naive":
        remedy = "leave the model out, or pass one like it that is naive"
        raise InputError("naive Bayes cannot be like a weighted model", value=model, remedy=remedy)
    return "bayes"
