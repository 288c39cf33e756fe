"""Cross-validation on a sample of a source whose rows are all counted: models without a fold, by subtraction.

A model that is counted from the sample alone has fewer rows than the one it stands for, and rare classes have nearly
none of them. So the counts of all rows are taken, less those of the fold, and only the weights are learned from the
sample. More rows of rare classes are drawn into it than their share; the weights of the rows make up for that.
"""

from dataclasses import replace

import numpy as np

from candide.engines import arrays
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.model.model import Model
from candide.model.plan import Plan
from candide.model.settings import Settings, usual
from candide.rows.blocks import Codes, Floats
from candide.rows.lots import dealt
from candide.rows.repeats import DistinctRows
from candide.tasks.fold_models import among_all
from candide.tasks.look import RARE, Look
from candide.tasks.weigh import weigh_by

_REPEATED = 0.05  # share of the rows of a sample that are copies, from which on others would be left in the counts


def is_sample(seen: Look, rows: DistinctRows, census: Census, settings: Settings) -> bool:
    """Whether models without a fold can be had by subtraction.

    Not where rows are repeated: copies would stay in the counts, and equal rows that are pooled would all be in one
    fold. Nor under a class prior that is given: by that the class proportions of a sample cannot be made up for.
    """
    sampled = seen.n_rows < census.n_rows and settings.class_prior in ("jeffreys", "empirical")
    copied = rows.frequency[rows.copies > 1.0].sum()
    pooled = 0.0 if seen.n_pooled is None else rows.frequency[rows.frequency > 1.0].sum()
    return sampled and bool(max(copied, pooled) < _REPEATED * rows.frequency.sum())


def has_rare(seen: Look, census: Census) -> bool:
    """Whether a class has few rows in a sample."""
    return len(seen.labels) < len(census.labels) or bool((np.bincount(seen.y) < RARE).any())


def cross_validate_sample(
    seen: Look, rows: DistinctRows, census: Census, settings: Settings, plain: Plan, folds: int
) -> tuple[Look, Floats, Floats]:
    """The sample with folds and weights; (row, class) log p(class | x) by the weighted model, and by naive Bayes.

    ``plain`` is the plan of naive Bayes, which is counted from the sample.
    """
    shares = census.class_weight / census.class_weight.sum()
    seen = replace(seen, fold=dealt(seen.y, folds, rows.order[rows.group]))
    out = np.empty((2, len(seen), len(seen.labels)))
    for fold in range(folds):
        train, rest = (seen.take(np.flatnonzero(some)) for some in (seen.fold != fold, seen.fold == fold))
        less = census - _counted(rest, census.plan).like(census)
        weighted = Fitted(less, settings, voices=weigh_by(_in_shares(train, shares).met(), less, settings))
        naive = _counted(train.met(), plain)
        weight = shares[_codes(naive, seen)] * len(train)
        for i, fitted in enumerate((weighted, Fitted(replace(naive, class_weight=weight), usual("naive")))):
            posterior, codes = fitted.apply(Model.log_posterior, rest.table), _codes(fitted.census, seen)
            out[i, seen.fold == fold] = among_all(posterior, fitted.census, codes, len(seen.labels))
    return replace(seen, weight=_weights(seen, shares)), out[0], out[1]


def _counted(seen: Look, plan: Plan) -> Census:
    return arrays.count(seen.table, seen.labels.array[seen.y], seen.weight, plan=plan.with_levels(seen.table))


def _codes(census: Census, seen: Look) -> Codes:
    """The codes, in a sample, of the classes of some counts: one of few rows may be gone."""
    return np.array([seen.labels.index[label] for label in census.labels.values], np.intp)


def _in_shares(seen: Look, shares: Floats) -> Look:
    """Some of the rows, among which classes have their shares among all rows."""
    n = np.bincount(seen.y, minlength=len(shares))
    there = (n > 0) & (shares > 0)
    kept = np.minimum(np.ceil(shares * (n[there] / shares[there]).min()), n)
    order = np.argsort(seen.y, kind="stable")
    place = np.arange(len(order)) - np.searchsorted(seen.y[order], seen.y[order])
    return seen.take(np.sort(order[place < kept[seen.y[order]]]))


def _weights(seen: Look, shares: Floats) -> Floats:
    """The weight of each row, by which classes have their shares among all rows; in the mean as before."""
    own = np.ones(len(seen)) if seen.weight is None else seen.weight
    of_class = np.bincount(seen.y, own, minlength=len(shares))
    return own * (shares * of_class.sum() / np.where(of_class > 0, of_class, 1.0))[seen.y]
