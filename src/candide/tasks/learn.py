"""Learning: a source and the column to learn in, a model out; one pass, memory that does not grow.

>>> data = {"age": [25, 32, 47, 51, 8, 62], "job": ["cook", "cook", "smith", None, "smith", "smith"],
...         "buys": ["no", "no", "yes", "yes", "yes", "yes"]}
>>> learned = learn(data, "buys")
>>> learned.fitted.census.labels.values, [(c.name, c.event) for c in learned.columns]
(('no', 'yes'), [('age', 'gaussian'), ('job', 'categorical')])
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from candide.engines.base import Counted, Prepared, Rows, Source, Watch, open_source, silent
from candide.engines.batch import number_columns
from candide.engines.reading import Reading
from candide.errors import InputError
from candide.model.census import Census
from candide.model.fitted import EstimatorRecord, Fitted
from candide.model.plan import Plan
from candide.model.settings import DEFAULT_MODEL, Settings, usual
from candide.rows.kinds import Column
from candide.rows.remarks import Remark, left_out
from candide.rows.spelling import PLAIN

if TYPE_CHECKING:
    from candide.tasks.held_out import HeldOut
    from candide.tasks.look import Look

_LOOKED_AT = 4096  # rows, of those read first, in which a fit looks for what is wrong with them


@dataclass(frozen=True)
class Learned:
    """A fitted model, what was made of each column, and remarks a person should see."""

    fitted: Fitted
    columns: list[Column]
    remarks: list[Remark] = field(default_factory=list)
    held_out: "HeldOut | None" = None  # of a weighted model, where it was asked for

    @property
    def notes(self) -> list[str]:
        """The remarks as sentences."""
        return [str(remark) for remark in self.remarks]


def learn(
    data: Any,
    target: str,
    *,
    model: str = DEFAULT_MODEL,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    settings: Settings | None = None,
    calibration: str | None = None,
    trust: bool = False,
    like: Any = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Learned:
    """Fit a model to any source: "naive" Bayes in one pass, or "bayes", whose voices are weighed, in two.

    ``drop`` leaves columns out, ``weight`` names a column of row weights. A row without a label is left out, with a
    remark; labels that look like a measurement are classes, with a remark. ``calibration`` bends the probabilities of a
    weighted model to what came true of rows held out, "logistic" or "isotonic"; ``trust`` keeps what it says of these
    rows. Both cross-validate within the rows looked at, without a further pass. ``like`` is a model, or a plan: the
    rows are counted as it counts, so that both add, and the new one is of its kind; it may have one class only.

    >>> learned = learn({"x": [1.0, 2.0, 8.0, 9.0, 5.0], "y": ["a", "a", "b", "b", None]}, "y")
    >>> learned.fitted.census.class_weight.tolist(), learned.notes
    ([2.0, 2.0], ["1 row has no value of 'y' and was left out"])
    """
    from candide.engines.count import count
    from candide.engines.prepare import prepare
    from candide.tasks.held_out import check_calibration
    from candide.tasks.look import with_grids
    from candide.tasks.weigh import small_weights

    if like is not None:
        from candide.tasks.alike import counted_like, model_like, refuse_plans
        from candide.tasks.models import plan_like, reading_of

        refuse_plans(events, drop)
        model, known = model_like(like, model), plan_like(like)[1]
        reading = reading if known is None else reading_of(known, reading)
    settings = settings or usual(model)
    if calibration:
        check_calibration(calibration, model, settings)
    with open_source(data, reading) as source:
        if like is not None:
            prepared, counted, kept, seen = counted_like(
                source, target, like, weight, settings, model != "naive", watch
            )
        elif model == "naive":
            rows = Rows(source, target, weight)
            prepared = with_grids(rows, prepare(source, target, events, drop, weight))
            with watch(source, "counting"):
                counted = count(rows, prepared)
            kept, seen = {}, None
        else:
            prepared, counted, kept, seen = voiced(source, target, events, drop, weight, settings, watch)
        if seen is not None and (calibration or trust):
            seen = _with_rare(Rows(source, target, weight), prepared, counted.censuses[0], seen, settings)
        kept |= as_read(source, prepared, reading)
    census = counted.censuses[0].bounded()
    fitted = Fitted(census if like is not None else checked(census, target), settings, target, **kept)
    fitted.model  # noqa: B018  an estimate that cannot be had is an error now, not at the first prediction
    found = Learned(fitted, prepared.columns, remarks_on(census, target, prepared, counted))
    if seen is None:
        return found
    found = replace(found, remarks=[*small_weights(seen.weight), *found.remarks])
    plan = None if like is None else prepared.plan
    return _held_out(found, seen, events, calibration, trust, plan)


def _with_rare(rows: Rows, prepared: Prepared, census: Census, seen: "Look", settings: Settings) -> "Look":
    """The rows to judge a model by: more of rare classes, where the look is a sample that has few of them."""
    from candide.tasks.look import look_at_each_class
    from candide.tasks.sampled_folds import has_rare, is_sample

    if not (is_sample(seen, seen.distinct(), census, settings) and has_rare(seen, census)):
        return seen
    return look_at_each_class(rows, prepared, len(census.labels))


def _held_out(
    learned: Learned, seen: "Look", events: Any, calibration: str | None, trust: bool, plan: Plan | None
) -> Learned:
    """What was learned with what it says of rows held out, and calibrated by these."""
    from candide.tasks.held_out import FOLDS, calibrated, enough, held_out

    if trust and not enough(seen):
        text = f"no held-out figures: they need at least {FOLDS} rows of each of two classes"
        learned = replace(learned, remarks=[*learned.remarks, Remark("no-held-out", text)])
    if not calibration and not (trust and enough(seen)):
        return learned
    seen = seen.among(learned.fitted.labels)
    census, columns = learned.fitted.census, learned.columns or None
    found = held_out(seen, learned.fitted.settings, events=events, columns=columns, plan=plan, census=census)
    if trust and plan is not None:
        text = "the terms are those of the other model; held-out figures are too good if that was fitted to these rows"
        learned = replace(learned, remarks=[*learned.remarks, Remark("held-out-like", text)])
    if not calibration:
        return replace(learned, held_out=found)
    fitted = calibrated(learned.fitted, found, calibration)
    return replace(learned, fitted=fitted, held_out=found.calibrated(calibration))


def voiced(
    source: Source,
    target: str,
    events: Any,
    drop: Sequence[str],
    weight: str | None,
    settings: Settings,
    watch: Watch,
) -> tuple[Prepared, Counted, dict[str, Any], "Look"]:
    """What is counted for a model of all voices; their weights, and what estimator it is; the rows looked at."""
    from candide.engines.prepare import prepare
    from candide.tasks.compose import columns_plan
    from candide.tasks.weigh import learn_from, refuse_others

    refuse_others(settings)
    source.materialise()  # the rows looked at are among those counted
    prepared = prepare(source, target, events, drop, weight, columns_plan)
    rows = Rows(source, target, weight)
    counted, voices, seen = learn_from(rows, prepared, events=events, settings=settings, watch=watch)
    return prepared, counted, {"voices": voices, "estimator": recorded(settings, events, prepared)}, seen


def recorded(settings: Settings, events: Any, prepared: Prepared) -> EstimatorRecord:
    """The estimator that a model of all voices is."""
    params = {"class_prior": settings.class_prior, "priors": settings.priors}
    if events == "auto":
        params["events"] = events
    return EstimatorRecord("BayesClassifier", params, len(prepared.plan.columns))


def remarks_on(census: Census, target: str, prepared: Prepared, counted: Counted) -> list[Remark]:
    """What a person should see of a source that was counted: what was made of it, and what may be wrong with it."""
    from candide.tasks.findings import contradictions, findings, shortened
    from candide.tasks.looks import Sample

    if prepared.head is None:  # the plan was known, and nothing was looked at
        return [*prepared.remarks, *unlabelled(target, counted)]
    census = census.of_columns()
    dates = {one.name for one in prepared.columns if one.kind == "date"}
    found = findings(census, Sample.of(prepared.head, target, census, dates, _LOOKED_AT), prepared.head)
    early = contradictions(census, prepared.head, prepared.declared)
    return [*prepared.remarks, *unlabelled(target, counted), *early, *shortened(found)]


def as_read(source: Source, prepared: Prepared, reading: Reading | None) -> dict[str, Any]:
    """What a model remembers of how rows were read: how text spells numbers, what meant missing, what is a date."""
    perhaps = (str(name) for part in prepared.plan.parts if part.event.most is not None for name in part.columns)
    counted = {*number_columns(prepared.plan), *perhaps}  # whole numbers are numbers or codes, as the counts decide
    spelled = {name: how for name, how in source.spelled.items() if name in counted and how != PLAIN}
    kinds = {name: source.temporal_kind(name) for name in counted}
    dates, times = (frozenset(name for name, one in kinds.items() if one == kind) for kind in ("date", "time"))
    return {"spelled": spelled, "na": reading.missing if reading else (), "dates": dates, "times": times}


def checked(census: Census, target: str) -> Census:
    """Refuse a census of one class: rows of weight 0 are left out."""
    each = zip(census.labels.values, census.class_weight.tolist(), strict=True)
    present = [label for label, weight in each if weight > 0]
    if len(present) < 2:
        only = (present or list(census.labels.values))[0]
        others = ", with a weight above 0" if len(census.labels) > 1 else ""
        what = f"one class only, {only!r}{others}; a classifier needs at least two"
        raise InputError(what, column=target, value=only)
    return census


def unlabelled(target: str, counted: Counted) -> list[Remark]:
    """A remark on rows without a label."""
    return left_out(counted.unlabelled, f"no value of {target!r}", target)
