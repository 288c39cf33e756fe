"""Held out: the rows of a look, each under a model that has not met it. What a fit may be trusted for.

The look is divided into folds, and everything but the grids of columns is made again without each: bins, pairs, weights
and counts. Terms that leave one row out are at hand for nothing, but the pairs and weights that they are added up with
have seen the row, and on wide tables of few rows they promise half the log-loss that there is. Where the look is a
sample of many rows, bins and pairs are those of the sample: see ``sampled_folds``.

>>> from candide.demo import garden_rows
>>> plants, herbs = garden_rows(300, seed=0)
>>> labels = Labels.from_values(herbs)
>>> found = score_held_out(Sample.from_table(Table.from_data(plants), labels.encode(herbs), labels))
>>> found.scores.n, found.scores.accuracy > 0.9, found.class_prior_scores.accuracy < 0.5
(300.0, True, True)
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.column_types import infer_columns
from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Table
from candide.engines import arrays
from candide.errors import InputError, unknown_name_error
from candide.metrics.scores import Scores, score_class_prior
from candide.model.calibration import CALIBRATION_METHODS
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.model import Model, class_log_prior
from candide.model.plan import Plan, plan_columns
from candide.model.settings import CALIBRATIONS, Settings, default_settings
from candide.validation.fold_models import expand_classes
from candide.validation.sampled_folds import can_subtract_folds, cross_validate_sample
from candide.weighted.fit import Calibrator, learn_weights_from_sample
from candide.weighted.selection import LearnedEncodings, select_terms

__all__ = ["HeldOutScores", "Labels", "Table", "score_held_out"]

N_FOLDS = 3  # more of them cost more, and say nearly the same


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """log p(class | x) of the rows of a look, by models of the other folds."""

    sample: Sample  # with the fold of each row
    log_posterior: Floats  # (row, class)
    naive_log_posterior: Floats  # (row, class) the same by naive Bayes
    n_source_rows: int  # rows of which those of the look are a sample, or all

    @property
    def n_folds(self) -> int:
        return int(self._fold.max()) + 1

    @cached_property
    def scores(self) -> Scores:
        return Scores.from_log_posterior(self.log_posterior, self.sample.y, self.sample.weight)

    @cached_property
    def naive_scores(self) -> Scores:
        """What naive Bayes scores on the same rows."""
        return Scores.from_log_posterior(self.naive_log_posterior, self.sample.y, self.sample.weight)

    @cached_property
    def class_prior_scores(self) -> Scores:
        """What the class shares alone do."""
        weight = self.scores.confusion.sum(axis=1)
        return score_class_prior(self.scores, weight / weight.sum())

    def calibrate(self, method: str) -> "HeldOutScores":
        """The same rows calibrated, those of each fold by what came true in the others."""
        calibrate = CALIBRATION_METHODS[method]
        out = np.empty_like(self.log_posterior)
        for fold in range(self.n_folds):
            rest, mine = self._fold != fold, self._fold == fold
            weight = None if self.sample.weight is None else self.sample.weight[rest]
            out[mine] = calibrate(self.log_posterior[rest], self.sample.y[rest], weight)(self.log_posterior[mine])
        return replace(self, log_posterior=out)

    @property
    def _fold(self) -> Codes:
        assert self.sample.fold is not None
        return self.sample.fold


def score_held_out(
    sample: Sample,
    settings: Settings | None = None,
    *,
    events: Any = "auto",
    columns: Any = None,
    interactions: bool = True,
    plan: Plan | None = None,
    folds: int = N_FOLDS,
    seed: int = 0,
    model_counts: ModelCounts | None = None,
) -> HeldOutScores:
    """Cross-validate within a look: ``columns`` are those of the look, where their kinds are known.

    ``plan`` is that of all voices, where it was not chosen by these rows; ``census`` the counts of all rows, where the
    look is a sample of them.
    """
    settings = settings or default_settings("bayes")
    if not has_enough_classes(sample):
        raise InputError(
            f"{formatting.format_count(len(sample))} are too few to hold some of them out", value=len(sample)
        )
    columns = infer_columns(sample.table) if columns is None else columns
    n_seen, n_all = sample.n_rows, sample.n_rows if model_counts is None else model_counts.n_rows
    rows = sample.distinct(seed)
    if model_counts is not None and can_subtract_folds(sample, rows, model_counts, settings):
        plain = plan_columns(columns, events)
        return HeldOutScores(*cross_validate_sample(sample, rows, model_counts, settings, plain, folds), n_all)
    encodings, plain = (
        LearnedEncodings.from_sample(sample.pool_distinct(rows), events, columns),
        plan_columns(columns, events),
    )
    at, fold, weight = rows.assign_folds(folds)  # copies of a row stay together
    often = None if (weight == 1.0).all() else weight
    sample = replace(sample.take(rows.first[at]), fold=fold, weight=often)
    out = np.empty((2, len(sample), len(sample.labels)))
    for f in range(folds):
        train, rest = (sample.take(np.flatnonzero(some)) for some in (fold != f, fold == f))
        train = train.with_seen_labels()
        codes = np.array([sample.labels.index[label] for label in train.labels.values], np.intp)
        own, found, pooled = plan, None, train.pool_rows(seed)
        if own is None:
            own, found = select_terms(pooled, settings=settings, interactions=interactions, encodings=encodings)
        counts = _count_sample(train, own)
        weighted = FittedModel(
            counts, settings, term_weights=learn_weights_from_sample(pooled, counts, settings, found)
        )
        for i, fitted in enumerate((weighted, FittedModel(_count_sample(train, plain), default_settings("naive")))):
            said = fitted.apply(Model.log_posterior, rest.table)
            out[i, fold == f] = expand_classes(said, fitted.counts, codes, len(sample.labels))
    return HeldOutScores(replace(sample, n_pooled=n_seen), out[0], out[1], n_all)


def has_enough_classes(sample: Sample) -> bool:
    """Whether every fold leaves rows of two classes."""
    n = np.sort(np.bincount(sample.y, minlength=2))
    return bool(n[-2] >= N_FOLDS)


def calibrate_model(fitted: FittedModel, held_out_scores: HeldOutScores, method: str) -> FittedModel:
    """A weighted model whose probabilities are bent to what came true of rows held out, which know its classes."""
    assert fitted.term_weights is not None
    bent = CALIBRATION_METHODS[method](
        held_out_scores.log_posterior, held_out_scores.sample.y, held_out_scores.sample.weight
    )
    starts = class_log_prior(fitted.counts, fitted.settings.class_prior, "mean")
    voices, record = fitted.term_weights.calibrate(bent, starts), fitted.estimator
    record = record and replace(record, params={**record.params, "calibration": method})
    return replace(fitted, term_weights=voices, estimator=record)


def held_out_calibrator(method: str, events: Any, interactions: bool, seed: int) -> Calibrator:
    """Return a function that calibrates a fitted model by cross-validation within its sample."""

    def calibrate(fitted: FittedModel, sample: Sample, plan: Plan | None) -> FittedModel:
        scores = score_held_out(
            sample,
            fitted.settings,
            events=events,
            interactions=interactions,
            plan=plan,
            seed=seed,
            model_counts=fitted.counts,
        )
        return calibrate_model(fitted, scores, method)

    return calibrate


def check_calibration(method: str, model: str, settings: Settings) -> None:
    """Refuse a calibration that is none, and one that would take back what the class prior says."""
    if method not in CALIBRATIONS:
        raise unknown_name_error("calibration", method, CALIBRATIONS)
    if model == "naive":
        what, remedy = "calibration is for weighted models", "pass model='bayes' (--model bayes), or leave it out"
        raise InputError(what, value=method, remedy=remedy)
    if settings.class_prior not in ("jeffreys", "empirical"):
        what = "calibration has the shares of the rows come true, whatever the class prior says"
        raise InputError(what, value=settings.class_prior, remedy="leave class_prior out, or calibration")


def _count_sample(sample: Sample, plan: Plan) -> ModelCounts:
    plan = plan.with_levels(sample.table)
    return arrays.count_table(sample.table, sample.labels.array[sample.y], sample.weight, plan=plan)
