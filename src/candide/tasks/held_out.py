"""Held out: the rows of a look, each under a model that has not met it. What a fit may be trusted for.

The look is divided into folds, and everything but the grids of columns is made again without each: bins, pairs, weights
and counts. Terms that leave one row out are at hand for nothing, but the pairs and weights that they are added up with
have seen the row, and on wide tables of few rows they promise half the log-loss that there is. Where the look is a
sample of many rows, bins and pairs are those of the sample: see ``sampled_folds``.

>>> from candide.demo import rows
>>> plants, herbs = rows(300, seed=0)
>>> labels = Labels.of(herbs)
>>> found = held_out(Look.of(Table.of(plants), labels.encode(herbs), labels))
>>> found.scores.n, found.scores.accuracy > 0.9, found.shares.accuracy < 0.5
(300.0, True, True)
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from candide import wording
from candide.engines import arrays
from candide.errors import InputError, unknown
from candide.model.calibration import BY_NAME
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.model import Model, class_log_prior
from candide.model.plan import Plan, plan_of
from candide.model.settings import CALIBRATIONS, Settings, usual
from candide.rows.blocks import Codes, Floats
from candide.rows.kinds import inspect
from candide.rows.labels import Labels
from candide.rows.table import Table
from candide.tasks.compose import Encodings, compose
from candide.tasks.fold_models import among_all
from candide.tasks.look import Look
from candide.tasks.sampled_folds import cross_validate_sample, is_sample
from candide.tasks.scores import Scores, by_shares
from candide.tasks.weigh import weigh_by

__all__ = ["HeldOut", "Labels", "Table", "held_out"]

FOLDS = 3  # more of them cost more, and say nearly the same


@dataclass(frozen=True, eq=False)
class HeldOut:
    """log p(class | x) of the rows of a look, by models of the other folds."""

    seen: Look  # with the fold of each row
    log_posterior: Floats  # (row, class)
    plain: Floats  # (row, class) the same by naive Bayes
    n_all: int  # rows of which those of the look are a sample, or all

    @property
    def folds(self) -> int:
        return int(self._fold.max()) + 1

    @cached_property
    def scores(self) -> Scores:
        return Scores.of(self.log_posterior, self.seen.y, self.seen.weight)

    @cached_property
    def of_plain(self) -> Scores:
        """What naive Bayes scores on the same rows."""
        return Scores.of(self.plain, self.seen.y, self.seen.weight)

    @cached_property
    def shares(self) -> Scores:
        """What the class shares alone do."""
        weight = self.scores.confusion.sum(axis=1)
        return by_shares(self.scores, weight / weight.sum())

    def calibrated(self, how: str) -> "HeldOut":
        """The same rows calibrated, those of each fold by what came true in the others."""
        calibrate = BY_NAME[how]
        out = np.empty_like(self.log_posterior)
        for fold in range(self.folds):
            rest, mine = self._fold != fold, self._fold == fold
            weight = None if self.seen.weight is None else self.seen.weight[rest]
            out[mine] = calibrate(self.log_posterior[rest], self.seen.y[rest], weight)(self.log_posterior[mine])
        return replace(self, log_posterior=out)

    @property
    def _fold(self) -> Codes:
        assert self.seen.fold is not None
        return self.seen.fold


def held_out(
    seen: Look,
    settings: Settings | None = None,
    *,
    events: Any = "auto",
    columns: Any = None,
    sets: bool = True,
    plan: Plan | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    census: Census | None = None,
) -> HeldOut:
    """Cross-validate within a look: ``columns`` are those of the look, where their kinds are known.

    ``plan`` is that of all voices, where it was not chosen by these rows; ``census`` the counts of all rows, where the
    look is a sample of them.
    """
    settings = settings or usual("bayes")
    if not enough(seen):
        raise InputError(f"{wording.plural(len(seen))} are too few to hold some of them out", value=len(seen))
    columns = inspect(seen.table) if columns is None else columns
    n_seen, n_all = seen.n_rows, seen.n_rows if census is None else census.n_rows
    rows = seen.distinct(seed)
    if census is not None and is_sample(seen, rows, census, settings):
        plain = plan_of(columns, events)
        return HeldOut(*cross_validate_sample(seen, rows, census, settings, plain, folds), n_all)
    encodings, plain = Encodings.of(seen.pool(rows), events, columns), plan_of(columns, events)
    at, fold, weight = rows.folds(folds)  # copies of a row stay together
    often = None if (weight == 1.0).all() else weight
    seen = replace(seen.take(rows.first[at]), fold=fold, weight=often)
    out = np.empty((2, len(seen), len(seen.labels)))
    for f in range(folds):
        train, rest = (seen.take(np.flatnonzero(some)) for some in (fold != f, fold == f))
        train = train.met()
        codes = np.array([seen.labels.index[label] for label in train.labels.values], np.intp)
        own, found, pooled = plan, None, train.pooled(seed)
        if own is None:
            own, found = compose(pooled, settings=settings, sets=sets, encodings=encodings)
        counts = _counted(train, own)
        weighted = Fitted(counts, settings, voices=weigh_by(pooled, counts, settings, found))
        for i, fitted in enumerate((weighted, Fitted(_counted(train, plain), usual("naive")))):
            said = fitted.apply(Model.log_posterior, rest.table)
            out[i, fold == f] = among_all(said, fitted.census, codes, len(seen.labels))
    return HeldOut(replace(seen, n_pooled=n_seen), out[0], out[1], n_all)


def enough(seen: Look) -> bool:
    """Whether every fold leaves rows of two classes."""
    n = np.sort(np.bincount(seen.y, minlength=2))
    return bool(n[-2] >= FOLDS)


def calibrated(fitted: Fitted, found: HeldOut, how: str) -> Fitted:
    """A weighted model whose probabilities are bent to what came true of rows held out, which know its classes."""
    assert fitted.voices is not None
    bent = BY_NAME[how](found.log_posterior, found.seen.y, found.seen.weight)
    starts = class_log_prior(fitted.census, fitted.settings.class_prior, "mean")
    voices, record = fitted.voices.calibrated(bent, starts), fitted.estimator
    record = record and replace(record, params={**record.params, "calibration": how})
    return replace(fitted, voices=voices, estimator=record)


def check_calibration(how: str, model: str, settings: Settings) -> None:
    """Refuse a calibration that is none, and one that would take back what the class prior says."""
    if how not in CALIBRATIONS:
        raise unknown("calibration", how, CALIBRATIONS)
    if model == "naive":
        what, remedy = "calibration is for weighted models", "pass model='bayes' (--model bayes), or leave it out"
        raise InputError(what, value=how, remedy=remedy)
    if settings.class_prior not in ("jeffreys", "empirical"):
        what = "calibration has the shares of the rows come true, whatever the class prior says"
        raise InputError(what, value=settings.class_prior, remedy="leave class_prior out, or calibration")


def _counted(seen: Look, plan: Plan) -> Census:
    plan = plan.with_levels(seen.table)
    return arrays.count(seen.table, seen.labels.array[seen.y], seen.weight, plan=plan)
