"""Cross-validation that equals refitting, without refitting; and the comparison of settings on the same folds.

Rows are assigned to folds class by class, counted fold by fold in one pass, and scored in another. The training counts
of a fold are the sum of the others, without the classes and levels that only the fold itself has: its model is the one
fitted to its training rows, up to rounding. Column types and encodings are learned once, without labels.

Differences of settings are paired by fold. Folds share most of their training rows, so the variance of the mean
difference is corrected to (1 / folds + 1 / (folds - 1)) times that of the folds (Nadeau and Bengio, 2003). Intervals
are Student's, corrected for the number of settings that are compared with the first (Bonferroni).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial, reduce
from itertools import chain
from operator import add
from typing import Any, NamedTuple

import numpy as np

from candide import formatting
from candide.data.notes import Note
from candide.decisions.thresholds import ThresholdChoice
from candide.engines.base import (
    CountResult,
    Folds,
    LabelledSource,
    PreparedSource,
    Source,
    Watch,
    no_progress,
    open_source,
)
from candide.engines.batches import split_batches
from candide.engines.counting import check_classes, count_source, prepare_source, reading_record
from candide.engines.draw_sample import draw_sample, learn_grids
from candide.engines.reading import ReadOptions
from candide.engines.scoring import TrueClasses
from candide.errors import InputError, unknown_name_error
from candide.kernels import threads
from candide.metrics.formulas import METRICS, N_DRAWS, Floats, resampled_intervals
from candide.metrics.scores import LOWER_IS_BETTER, Scores, fold_statistics, headline_titles, metric_title
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import plan_columns
from candide.model.policy import DecisionRule, PolicyLike, make_policy
from candide.model.settings import DEFAULT_MODEL, Settings, WeightedSettings, default_settings
from candide.monitoring.data_checks import collect_notes
from candide.validation.folds import (
    FoldModel,
    keep_copies_together,
    part_places,
    score_by_fold,
    select_counts,
    unite_plans,
)
from candide.validation.held_out import FitResult
from candide.weighted.fit import estimator_record, fit_weighted, refuse_naive_settings
from candide.weighted.selection import LearnedEncodings, plan_column_terms, select_terms

CONFIDENCE_LEVEL = 0.95  # of all intervals of a metric together


@dataclass(frozen=True)
class Validation:
    """Cross-validation: the scores of each fold on rows it was not trained on, and the model of all rows."""

    folds: list[Scores]
    fit_result: FitResult
    threshold: ThresholdChoice | None = None  # selected on the folds

    @cached_property
    def total(self) -> Scores:
        """All rows, each scored by the model that had not seen it."""
        return reduce(add, self.folds)

    def intervals(
        self, level: float = 0.95, *, by: str = "rows", draws: int = N_DRAWS, seed: int = 0
    ) -> dict[str, tuple[float, float]]:
        """Confidence intervals of each metric, by resampling rows or whole folds (``by="folds"``).

        Folds keep dependent rows together, such as those of a patient with ``fold_by``; with fewer than five folds the
        intervals are coarse.
        """
        return resampled_intervals(self.folds, level, by=by, draws=draws, seed=seed)

    def __str__(self) -> str:
        title = f"{len(self.folds)} folds of {self.fit_result.fitted.counts.n_rows:,} rows"
        rows = self._metric_rows("_")
        width = max(len(title), *(len(name) for name, _, _ in rows))
        lines = [f"{name:{width}} {value}   {sd}" for name, value, sd in rows]
        return "\n".join([f"{title:{width}}  value  fold sd", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f"{len(self.folds)} folds of {formatting.format_count(self.fit_result.fitted.counts.n_rows)}"
        return formatting.render_html_table(title, [["metric", "value", "fold sd"], *self._metric_rows()])

    def _metric_rows(self, space: str = " ") -> list[list[str]]:
        """Every metric as printed: name, value, standard deviation over folds."""
        values, titles = self.total.metrics(), headline_titles(self.fit_result.fitted.labels.values)
        return [
            [metric_title(name, titles, space), f"{values[name]:.4f}", f"{sd:.4f}"]
            for name, (_, sd) in fold_statistics(self.folds).items()
        ]


def cross_validate(
    data: Any,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    fold_by: str | None = None,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    settings: Settings | None = None,
    weighted: WeightedSettings | None = None,
    model: str = DEFAULT_MODEL,
    policy: PolicyLike = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
    ignored: Sequence[str] = (),
) -> Validation:
    """Cross-validate on a source, as :func:`candide.cross_validate` documents.

    Without ``fold_by``, copies of a row stay together: rows that agree in the label and in all columns of the model but
    those ``ignored``, more often than chance explains.
    """
    decision_policy = make_policy(policy)
    if decision_policy is not None and decision_policy.class_prior is not None:
        problem = "class_prior: cross-validation has the class proportions of its own rows"
        remedy = "evaluate a model on other rows, or pass the class prior as a setting of the model"
        raise InputError(problem, value=decision_policy.class_prior, remedy=remedy)
    if folds < 2:
        raise InputError(f"folds: {folds}; cross-validation needs at least 2", value=folds)
    settings = settings or default_settings(model)
    is_weighted = model != "naive"
    if is_weighted:
        refuse_naive_settings(settings)
    with open_source(data, reading) as source:
        division = _make_folds(source, target, fold_by, folds, seed)
        drop = [*drop, fold_by] if fold_by is not None and fold_by not in drop else drop
        source.materialise()  # a row is counted in the fold in which it is scored
        planning = plan_column_terms if is_weighted else plan_columns
        prepared = prepare_source(source, target, events, drop, weight, planning)
        division, divided = keep_copies_together(LabelledSource(source, target, weight), prepared, division, ignored)
        rows = LabelledSource(source, target, weight, division)
        if is_weighted:
            options = replace(weighted or WeightedSettings(), model=settings, events=events)
            fits = _fit_weighted_folds(rows, prepared, options, watch)
        else:
            fits = _fit_naive_folds(rows, prepared, settings, watch)
        fitted = fits.fitted.with_policy(decision_policy)
        with watch(source, "scoring"):
            scores = _score_folds(rows, fits.scored, fits.models, fitted.decision_rule)
        record = reading_record(source, prepared, reading)
    rare = _rare_class_notes(target, fits.counted.fold_counts)
    known = {note.code for note in divided} | ({"few-rows"} if rare else set())
    notes = [note for note in collect_notes(fits.whole, target, prepared, fits.counted) if note.code not in known]
    fitted = replace(fitted, target=target, **record)
    return Validation(scores, FitResult(fitted, prepared.columns, notes + rare + divided))


class _FoldFits(NamedTuple):
    counted: CountResult
    whole: ModelCounts  # of all rows
    fitted: FittedModel  # of all rows
    scored: ModelCounts  # of all rows, with the columns that any fold uses
    models: list[FoldModel]


def _count_folds(
    rows: LabelledSource, prepared: PreparedSource, settings: Settings, watch: Watch
) -> tuple[CountResult, ModelCounts]:
    """The counts of each fold, and of all rows."""
    with watch(rows.source, "counting"):
        counted = count_source(rows, prepared)
    whole = check_classes(reduce(add, counted.fold_counts), rows.target)
    assert rows.folds is not None
    if sum(counts.n_rows > 0 for counts in counted.fold_counts) < 2:
        problem = "all rows are in one fold: they have the same value, or nearly all of them"
        raise InputError(problem, column=rows.folds.key_column, remedy="name another column as fold_by (--fold-by)")
    if whole.n_rows < (n := rows.folds.n):
        raise InputError(f"{formatting.format_count(whole.n_rows)} cannot be divided into {n} folds", value=n)
    if settings.has_class_proportions:
        counted = replace(counted, fold_counts=[counts.declare_classes() for counts in counted.fold_counts])
    return counted, whole


def _fit_weighted_folds(
    rows: LabelledSource, prepared: PreparedSource, settings: WeightedSettings, watch: Watch
) -> _FoldFits:
    """Models of all folds but one, counted in one pass: each has the terms and weights that its own rows select."""
    with watch(rows.source, "sampling"):
        sample = draw_sample(rows, prepared, rows=settings.sample_rows, seed=settings.random_state)
    encodings = LearnedEncodings.from_sample(sample.pool_rows(), settings.events, prepared.columns)
    samples = [sample.take(np.flatnonzero(sample.fold != fold)) for fold in range(rows.n_folds)] + [sample]
    samples = [train.with_seen_labels().pool_rows() for train in samples]
    select = partial(select_terms, settings=settings.model, terms=settings.terms, encodings=encodings)
    selected = [select(train) for train in samples]
    united = unite_plans([plan for plan, _ in selected])
    counted, whole = _count_folds(rows, replace(prepared, plan=united), settings.model, watch)
    each = zip(chain(_sums_without_fold(counted.fold_counts), [whole]), samples, selected, strict=True)
    fitted = [
        fit_weighted(train, partial(select_counts, counts), plan=plan, start=start, settings=settings)
        for counts, train, (plan, start) in each
    ]
    places = [part_places(whole.plan, plan) for plan, _ in selected]
    models = [FoldModel(whole, *pair) for pair in zip(fitted[:-1], places[:-1], strict=True)]
    last = replace(fitted[-1], estimator=estimator_record(settings, prepared.plan))
    return _FoldFits(counted, whole, last, whole, models)


def _fit_naive_folds(rows: LabelledSource, prepared: PreparedSource, settings: Settings, watch: Watch) -> _FoldFits:
    """Models of all folds but one, and the counts of all rows with the columns that any of them has selected."""
    counted, whole = _count_folds(rows, learn_grids(rows, prepared), settings, watch)
    fitted = [FittedModel(counts.prune(), settings) for counts in _sums_without_fold(counted.fold_counts)]
    used = {name for model in fitted for name in model.plan.columns}
    counts = whole if len(used) == len(whole.plan.columns) else whole.select_columns(used)
    models = [FoldModel.from_naive(counts, model) for model in fitted]
    return _FoldFits(counted, whole, FittedModel(whole, settings), counts, models)


def _make_folds(source: Source, target: str, fold_by: str | None, n: int, seed: int) -> Folds:
    """How rows are divided: by class in their order, or by a key."""
    if fold_by is not None:
        if fold_by not in source.columns:
            raise unknown_name_error("column to fold by", fold_by, [name for name in source.columns if name != target])
        if fold_by == target:
            raise InputError("the target cannot be the column to fold by", column=target, value=fold_by)
    elif not source.has_order:
        problem = f"the rows of {source.name} have no order by which to assign them to folds"
        raise InputError(problem, remedy="name a column that determines the fold of a row: fold_by=... (--fold-by)")
    return Folds(n, seed, target, fold_by)


def _sums_without_fold(parts: list[ModelCounts]) -> Iterator[ModelCounts]:
    return (reduce(add, parts[:fold] + parts[fold + 1 :]) for fold in range(len(parts)))


def _rare_class_notes(target: str, folds: Sequence[ModelCounts]) -> list[Note]:
    """A note on classes that occur in some folds only."""
    seen = (label for fold in folds for label, w in zip(fold.labels.values, fold.class_weight, strict=True) if w)
    n_folds = Counter(seen)
    rare = sorted((label for label, n in n_folds.items() if n < len(folds)), key=lambda label: n_folds[label])
    if not rare:
        return []
    if len(rare) == 1:
        problem = f"class {rare[0]!r} has {formatting.format_count(n_folds[rare[0]])}, fewer than the"
    else:
        problem = f"classes {formatting.format_list(rare, 3)} have fewer rows than the"
    text = f"{problem} {len(folds)} folds: scores of so few rows are due to chance"
    return [Note("class-rare", text, target, "leave such rows out, or merge the class with another")]


def _score_folds(
    rows: LabelledSource, whole: ModelCounts, models: Sequence[FoldModel], rule: DecisionRule | None = None
) -> list[Scores]:
    keep = [rows.target, *([rows.weight] if rows.weight else [])]
    scan = rows.source.engine.score(rows.source, whole.plan, keep, folds=rows.folds)

    def score(batch: Any) -> list[tuple[int, Scores]]:
        truth, out = TrueClasses.from_batch(whole.labels, batch, rows.weight), []
        for f, places, log_posterior in score_by_fold(whole.plan, models, batch):
            is_known = truth.is_known[places]
            if not is_known.all():
                places, log_posterior = places[is_known], log_posterior[is_known]
            if len(places):
                weight = None if truth.weight is None else truth.weight[places]
                out.append((f, Scores.from_log_posterior(log_posterior, truth.codes[places], weight, rule)))
        return out

    scores = dict[int, Scores]()
    for parts in threads.map_ahead(score, split_batches(scan.batches, len(whole.labels))):
        for f, part in parts:
            scores[f] = scores[f] + part if f in scores else part
    return [scores[f] for f in sorted(scores)]


# Comparison of settings


@dataclass(frozen=True)
class MetricDifference:
    """By how much a metric of one setting lies above that of the first, on the same rows."""

    name: str
    metric: str
    mean: float  # over folds
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    @property
    def is_better(self) -> bool:
        return self.mean < 0 if self.metric in LOWER_IS_BETTER else self.mean > 0

    @property
    def conclusion(self) -> str:
        """How the setting compares with the first: better, worse or not significant."""
        return "not significant" if not self.is_significant else "better" if self.is_better else "worse"

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as values for a program."""
        return {**asdict(self), "is_significant": self.is_significant, "is_better": self.is_better}


@dataclass(frozen=True)
class SettingsComparison:
    """The cross-validations of settings by name, on the same folds."""

    validations: Mapping[str, Validation]

    @property
    def names(self) -> list[str]:
        return list(self.validations)

    @cached_property
    def totals(self) -> dict[str, Scores]:
        """The scores of each on all rows."""
        return {name: validation.total for name, validation in self.validations.items()}

    @cached_property
    def differences(self) -> list[MetricDifference]:
        """Every metric of every setting against the first."""
        first, *others = self.names
        level = 1 - (1 - CONFIDENCE_LEVEL) / max(len(others), 1)

        def fold_values(name: str, metric: str) -> Floats:
            return np.array([getattr(fold, metric) for fold in self.validations[name].folds])

        pairs = [(name, metric) for name in others for metric in METRICS]
        values = [fold_values(name, metric) - fold_values(first, metric) for name, metric in pairs]
        return [MetricDifference(*pair, *paired_interval(v, level)) for pair, v in zip(pairs, values, strict=True)]


def paired_interval(differences: Floats, level: float = CONFIDENCE_LEVEL) -> tuple[float, float, float]:
    """The mean of the differences of folds, and its interval; NaN for fewer than two folds."""
    from scipy.stats import t

    finite = differences[~np.isnan(differences)]
    n, mean = len(finite), float(finite.mean()) if len(finite) else float("nan")
    if n < 2:
        return mean, float("nan"), float("nan")
    error = float(np.sqrt((1 / n + 1 / (n - 1)) * finite.var(ddof=1)))
    half_width = float(t.ppf((1 + level) / 2, n - 1)) * error
    return mean, mean - half_width, mean + half_width


def compare_settings(
    data: Any, target: str, variants: Mapping[str, Mapping[str, Any]], **shared: Any
) -> SettingsComparison:
    """Cross-validate settings, keywords of ``cross_validate`` by name, on the same folds; ``shared`` are for all."""
    if len(variants) < 2:
        remedy = "pass at least two, such as --model naive --model bayes"
        raise InputError(f"{len(variants)} setting to compare", value=list(variants), remedy=remedy)
    if isinstance(data, str) and data == "-":
        raise InputError("standard input can be read once only", value=data, remedy="write it to a file first")
    ignored = sorted({name for variant in variants.values() for name in variant.get("drop", ())})
    each = {name: cross_validate(data, target, ignored=ignored, **shared, **own) for name, own in variants.items()}
    return SettingsComparison(each)
