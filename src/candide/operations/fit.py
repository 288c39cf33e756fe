"""Learning: a source and the column to learn in, a model out; one pass, memory that does not grow.

>>> data = {"age": [25, 32, 47, 51, 8, 62], "job": ["cook", "cook", "smith", None, "smith", "smith"],
...         "buys": ["no", "no", "yes", "yes", "yes", "yes"]}
>>> learned = fit_model(data, "buys")
>>> learned.fitted.counts.labels.values, [(c.name, c.default_event) for c in learned.columns]
(('no', 'yes'), [('age', 'gaussian'), ('job', 'categorical')])
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from candide.data.notes import Note
from candide.engines.base import CountResult, LabelledSource, PreparedSource, Source, Watch, no_progress, open_source
from candide.engines.counting import check_classes
from candide.engines.planning import reading_record
from candide.engines.reading import ReadOptions
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan
from candide.model.settings import DEFAULT_MODEL, Settings, default_settings
from candide.monitoring.data_checks import collect_notes
from candide.validation.fit_result import FitResult
from candide.weighted.fit import make_estimator_record

if TYPE_CHECKING:
    from candide.data.sample import Sample as Look


def fit_model(
    data: Any,
    target: str,
    *,
    model: str = DEFAULT_MODEL,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    settings: Settings | None = None,
    calibration: str | None = None,
    keep_held_out: bool = False,
    like: Any = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> FitResult:
    """Fit a model to any source: "naive" Bayes in one pass, or "bayes", whose voices are weighed, in two.

    ``drop`` leaves columns out, ``weight`` names a column of row weights. A row without a label is left out, with a
    remark; labels that look like a measurement are classes, with a remark. ``calibration`` bends the probabilities of a
    weighted model to what came true of rows held out, "logistic" or "isotonic"; ``trust`` keeps what it says of these
    rows. Both cross-validate within the rows looked at, without a further pass. ``like`` is a model, or a plan: the
    rows are counted as it counts, so that both add, and the new one is of its kind; it may have one class only.

    >>> learned = fit_model({"x": [1.0, 2.0, 8.0, 9.0, 5.0], "y": ["a", "a", "b", "b", None]}, "y")
    >>> learned.fitted.counts.class_weight.tolist(), learned.note_texts
    ([2.0, 2.0], ["1 row has no value of 'y' and was left out"])
    """
    from candide.engines.counting import count_source
    from candide.engines.draw_sample import learn_grids
    from candide.engines.planning import prepare_source
    from candide.validation.held_out import check_calibration
    from candide.weighted.fit import small_weight_notes

    if like is not None:
        from candide.operations.fit_like import count_source_like, refuse_plan_options, resolve_model_kind
        from candide.store.models import make_read_options, resolve_plan

        refuse_plan_options(events, drop)
        model, known = resolve_model_kind(like, model), resolve_plan(like)[1]
        reading = reading if known is None else make_read_options(known, reading)
    settings = settings or default_settings(model)
    if calibration:
        check_calibration(calibration, model, settings)
    with open_source(data, reading) as source:
        if like is not None:
            prepared, counted, kept, seen = count_source_like(
                source, target, like, weight, settings, model != "naive", watch
            )
        elif model == "naive":
            rows = LabelledSource(source, target, weight)
            prepared = learn_grids(rows, prepare_source(source, target, events, drop, weight))
            with watch(source, "counting"):
                counted = count_source(rows, prepared)
            kept, seen = {}, None
        else:
            prepared, counted, kept, seen = count_weighted(source, target, events, drop, weight, settings, watch)
        if seen is not None and (calibration or keep_held_out):
            seen = _add_rare_classes(
                LabelledSource(source, target, weight), prepared, counted.fold_counts[0], seen, settings
            )
        kept |= reading_record(source, prepared, reading)
    census = counted.fold_counts[0].limit_levels()
    fitted = FittedModel(census if like is not None else check_classes(census, target), settings, target, **kept)
    fitted.model  # noqa: B018  an estimate that cannot be had is an error now, not at the first prediction
    found = FitResult(fitted, prepared.columns, collect_notes(census, target, prepared, counted))
    if seen is None:
        return found
    found = replace(found, notes=[*small_weight_notes(seen.weight), *found.notes])
    plan = None if like is None else prepared.plan
    return _add_held_out_scores(found, seen, events, calibration, keep_held_out, plan)


def _add_rare_classes(
    rows: LabelledSource, prepared: PreparedSource, counts: ModelCounts, sample: "Look", settings: Settings
) -> "Look":
    """The rows to judge a model by: more of rare classes, where the look is a sample that has few of them."""
    from candide.engines.draw_sample import draw_class_sample
    from candide.validation.sampled_folds import can_subtract_folds, has_rare_class

    if not (can_subtract_folds(sample, sample.distinct(), counts, settings) and has_rare_class(sample, counts)):
        return sample
    return draw_class_sample(rows, prepared, len(counts.labels))


def _add_held_out_scores(
    learned: FitResult, sample: "Look", events: Any, calibration: str | None, trust: bool, plan: Plan | None
) -> FitResult:
    """What was learned with what it says of rows held out, and calibrated by these."""
    from candide.validation.held_out import N_FOLDS, calibrate_model, has_enough_classes, score_held_out

    if trust and not has_enough_classes(sample):
        text = f"no held-out figures: they need at least {N_FOLDS} rows of each of two classes"
        learned = replace(learned, notes=[*learned.notes, Note("no-held-out", text)])
    if not calibration and not (trust and has_enough_classes(sample)):
        return learned
    sample = sample.with_labels(learned.fitted.labels)
    census, columns = learned.fitted.counts, learned.columns or None
    found = score_held_out(
        sample, learned.fitted.settings, events=events, columns=columns, plan=plan, model_counts=census
    )
    if trust and plan is not None:
        text = "the terms are those of the other model; held-out figures are too good if that was fitted to these rows"
        learned = replace(learned, notes=[*learned.notes, Note("held-out-like", text)])
    if not calibration:
        return replace(learned, held_out=found)
    fitted = calibrate_model(learned.fitted, found, calibration)
    return replace(learned, fitted=fitted, held_out=found.calibrate(calibration))


def count_weighted(
    source: Source,
    target: str,
    events: Any,
    drop: Sequence[str],
    weight: str | None,
    settings: Settings,
    watch: Watch,
) -> tuple[PreparedSource, CountResult, dict[str, Any], "Look"]:
    """What is counted for a model of all voices; their weights, and what estimator it is; the rows looked at."""
    from candide.engines.planning import prepare_source
    from candide.weighted.fit import fit_weighted_source, refuse_naive_settings
    from candide.weighted.selection import plan_column_terms

    refuse_naive_settings(settings)
    source.materialise()  # the rows looked at are among those counted
    prepared = prepare_source(source, target, events, drop, weight, plan_column_terms)
    rows = LabelledSource(source, target, weight)
    counted, voices, seen = fit_weighted_source(rows, prepared, events=events, settings=settings, watch=watch)
    return (
        prepared,
        counted,
        {"term_weights": voices, "estimator": make_estimator_record(settings, events, prepared)},
        seen,
    )
