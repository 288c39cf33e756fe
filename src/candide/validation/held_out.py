"""Held-out estimates: the rows of a sample, each scored by a model that was fitted without it.

The sample is divided into folds, and for each fold bins, terms, weights and counts are made again without its rows;
only the encodings of columns are shared. Leave-one-out contributions would cost nothing, but terms and weights were
chosen with the row: on wide tables of few rows they promise half the true log-loss.

Where the sample is a part of many rows that are all counted, a model of the sample alone would have fewer rows than
the one it stands for, and rare classes next to none. Then the counts of a fold are those of all rows less those of the
fold; terms and bins are those of all rows, and only weights are learned again. Such a sample may hold more rows of rare
classes than their proportion; row weights correct for that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.column_types import ColumnSchema, infer_columns
from candide.data.equal_rows import DistinctRows
from candide.data.notes import Note
from candide.data.sample import Sample, assign_folds
from candide.data.table import LIMITS
from candide.errors import InputError
from candide.metrics.scores import Scores, score_class_prior
from candide.model.calibration import CALIBRATION_METHODS
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.model import Model, class_log_prior
from candide.model.plan import Plan, plan_columns
from candide.model.settings import Settings, WeightedSettings, default_settings
from candide.weighted.fit import count_sample, fit_weighted
from candide.weighted.selection import LearnedEncodings

N_FOLDS = 3  # more folds cost more, and give nearly the same figures
_MAX_COPIED = 0.05  # proportion of copies in a sample from which on folds cannot be subtracted


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """log p(class | x) of the rows of a sample, by models of the other folds."""

    sample: Sample  # with the fold of each row
    log_posterior: Floats  # (row, class)
    naive_log_posterior: Floats  # (row, class) the same by naive Bayes
    n_source_rows: int  # rows that the sample was drawn from

    @property
    def n_folds(self) -> int:
        return int(self._fold.max()) + 1

    @cached_property
    def scores(self) -> Scores:
        return Scores.from_log_posterior(self.log_posterior, self.sample.y, self.sample.weight)

    @cached_property
    def naive_scores(self) -> Scores:
        return Scores.from_log_posterior(self.naive_log_posterior, self.sample.y, self.sample.weight)

    @cached_property
    def class_prior_scores(self) -> Scores:
        weight = self.scores.confusion.sum(axis=1)
        return score_class_prior(self.scores, weight / weight.sum())

    def calibrate(self, method: str) -> "HeldOutScores":
        """The same rows calibrated, those of each fold by the other folds."""
        out = np.empty_like(self.log_posterior)
        for fold in range(self.n_folds):
            rest, own = self._fold != fold, self._fold == fold
            weight = None if self.sample.weight is None else self.sample.weight[rest]
            calibrator = CALIBRATION_METHODS[method](self.log_posterior[rest], self.sample.y[rest], weight)
            out[own] = calibrator(self.log_posterior[own])
        return replace(self, log_posterior=out)

    @property
    def _fold(self) -> Codes:
        assert self.sample.fold is not None
        return self.sample.fold


@dataclass(frozen=True)
class FitResult:
    """What a fit returns: the model, the schema of its columns, notes, and scores of held-out rows."""

    fitted: FittedModel
    columns: list[ColumnSchema]
    notes: list[Note] = field(default_factory=list)
    held_out: HeldOutScores | None = None  # of a weighted model, where they were computed

    @property
    def note_texts(self) -> list[str]:
        return [str(note) for note in self.notes]


def score_held_out(
    sample: Sample,
    settings: WeightedSettings | None = None,
    *,
    columns: Sequence[ColumnSchema] | None = None,
    plan: Plan | None = None,
    counts: ModelCounts | None = None,
) -> HeldOutScores:
    """Cross-validate within a sample.

    ``plan``: the terms, where they were not selected on these rows. ``counts``: those of all rows, where the sample is
    a part of them.
    """
    settings = settings or WeightedSettings()
    if not has_enough_classes(sample):
        raise InputError(f"too few rows to hold some out: {formatting.format_count(len(sample))}", value=len(sample))
    columns = infer_columns(sample.table) if columns is None else columns
    naive_plan = plan_columns(columns, settings.events)
    n_rows, distinct = sample.n_rows, sample.distinct(settings.random_state)
    if counts is not None and can_subtract_folds(sample, distinct, counts, settings.model):
        sample = replace(sample, fold=assign_folds(sample.y, N_FOLDS, distinct.order[distinct.group]))
        proportions = counts.class_weight / counts.class_weight.sum()
        fit = partial(_fit_by_subtraction, counts=counts, settings=settings, proportions=proportions)
        fit_naive = partial(_fit_naive, plan=naive_plan, proportions=proportions)
        posteriors = _score_folds(sample, fit, fit_naive)
        sample = replace(sample, weight=_proportion_weights(sample, proportions))
    else:
        pooled = sample.pool_distinct(distinct)
        encodings = LearnedEncodings.from_sample(pooled, settings.events, columns)
        place, fold, weight = distinct.assign_folds(N_FOLDS)  # copies of a row stay together
        is_plain = bool((weight == 1.0).all())
        sample = replace(sample.take(distinct.first[place]), fold=fold, weight=None if is_plain else weight)
        fit = partial(_fit_again, plan=plan, encodings=encodings, settings=settings)
        posteriors = _score_folds(sample, fit, partial(_fit_naive, plan=naive_plan))
        sample = replace(sample, n_pooled=n_rows)
    return HeldOutScores(sample, posteriors[0], posteriors[1], n_rows if counts is None else counts.n_rows)


def _score_folds(sample: Sample, fit: Callable[..., FittedModel], fit_naive: Callable[..., FittedModel]) -> Floats:
    """(model, row, class) log p(class | x) by models that are fitted without the fold of the row."""
    out = np.empty((2, len(sample), len(sample.labels)))
    for fold in range(N_FOLDS):
        train, test = (sample.take(np.flatnonzero(rows)) for rows in (sample.fold != fold, sample.fold == fold))
        for i, fitted in enumerate((fit(train, test), fit_naive(train))):
            posterior, codes = fitted.apply(Model.log_posterior, test.table), _class_codes(fitted.counts, sample)
            out[i, sample.fold == fold] = expand_classes(posterior, fitted.counts, codes, len(sample.labels))
    return out


def expand_classes(log_posterior: Floats, counts: ModelCounts, classes: Codes, n_classes: int) -> Floats:
    """(row, class) log p(class | x) of all classes, by a model of those with these codes.

    A class that the model has not seen gets the proportion of one row, whatever x is, so that no row is impossible.
    """
    if len(classes) == n_classes:
        return log_posterior
    n, n_unseen = float(counts.class_weight.sum()), n_classes - len(classes)
    out = np.full((len(log_posterior), n_classes), -np.log(n + n_unseen))
    out[:, classes] = log_posterior - np.log1p(n_unseen / n)
    return out


def _fit_again(
    train: Sample, test: Sample, *, plan: Plan | None, encodings: LearnedEncodings, settings: WeightedSettings
) -> FittedModel:
    train = train.with_seen_labels()
    return fit_weighted(train, partial(count_sample, train), plan=plan, encodings=encodings, settings=settings)


def _fit_by_subtraction(
    train: Sample, test: Sample, *, counts: ModelCounts, settings: WeightedSettings, proportions: Floats
) -> FittedModel:

    def count(plan: Plan) -> ModelCounts:
        return counts - count_sample(test.with_seen_labels(), plan).match_labels(counts)

    return fit_weighted(_match_proportions(train, proportions), count, plan=counts.plan, settings=settings)


def _fit_naive(train: Sample, *, plan: Plan, proportions: Floats | None = None) -> FittedModel:
    """Naive Bayes of the other folds, with these class proportions."""
    counts = count_sample(train.with_seen_labels(), plan)
    if proportions is not None:
        counts = replace(counts, class_weight=proportions[_class_codes(counts, train)] * len(train))
    return FittedModel(counts, default_settings("naive"))


def has_enough_classes(sample: Sample) -> bool:
    """Whether every fold leaves rows of two classes."""
    n = np.sort(np.bincount(sample.y, minlength=2))
    return bool(n[-2] >= N_FOLDS)


def can_subtract_folds(sample: Sample, distinct: DistinctRows, counts: ModelCounts, settings: Settings) -> bool:
    """Whether the model without a fold can be had by subtraction from the counts of all rows.

    Not where rows are repeated: copies would stay in the counts, and equal rows that are pooled would all be in one
    fold. Nor under a given class prior, which cannot correct for the class proportions of the sample.
    """
    is_sampled = sample.n_rows < counts.n_rows and settings.has_counted_prior
    copied = distinct.frequency[distinct.weight_per_draw > 1.0].sum()
    pooled = 0.0 if sample.n_pooled is None else distinct.frequency[distinct.frequency > 1.0].sum()
    return is_sampled and bool(max(copied, pooled) < _MAX_COPIED * distinct.frequency.sum())


def has_rare_class(sample: Sample, counts: ModelCounts) -> bool:
    """Whether a class has few rows in a sample."""
    return len(sample.labels) < len(counts.labels) or bool((np.bincount(sample.y) < LIMITS.wide_rows).any())


def calibrate_model(fitted: FittedModel, held_out: HeldOutScores, method: str) -> FittedModel:
    """A weighted model that is calibrated on held-out rows, which have its labels."""
    assert fitted.term_weights is not None
    calibrator = CALIBRATION_METHODS[method](held_out.log_posterior, held_out.sample.y, held_out.sample.weight)
    log_prior = class_log_prior(fitted.counts, fitted.settings.class_prior, "mean")
    record = fitted.estimator
    record = record and replace(record, params={**record.params, "calibration": method})
    return replace(fitted, term_weights=fitted.term_weights.calibrate(calibrator, log_prior), estimator=record)


def _class_codes(counts: ModelCounts, sample: Sample) -> Codes:
    """The codes, in a sample, of the classes that were counted: one of few rows may be missing."""
    return np.array([sample.labels.index[label] for label in counts.labels.values], np.intp)


def _match_proportions(sample: Sample, proportions: Floats) -> Sample:
    """As many of the rows as have the class proportions of all rows."""
    n = np.bincount(sample.y, minlength=len(proportions))
    present = (n > 0) & (proportions > 0)
    limit = np.minimum(np.ceil(proportions * (n[present] / proportions[present]).min()), n)
    order = np.argsort(sample.y, kind="stable")
    place = np.arange(len(order)) - np.searchsorted(sample.y[order], sample.y[order])
    return sample.take(np.sort(order[place < limit[sample.y[order]]]))


def _proportion_weights(sample: Sample, proportions: Floats) -> Floats:
    """(row,) weights by which classes have the proportions of all rows, with the same mean."""
    weight = np.ones(len(sample)) if sample.weight is None else sample.weight
    class_weight = np.bincount(sample.y, weight, minlength=len(proportions))
    return weight * (proportions * class_weight.sum() / np.where(class_weight > 0, class_weight, 1.0))[sample.y]
