"""Cross-validation on a sample of a source whose rows are all counted: models without a fold, by subtraction.

A model that is counted from the sample alone has fewer rows than the one it stands for, and rare classes have nearly
none of them. So the counts of all rows are taken, less those of the fold, and only the weights are learned from the
sample. More rows of rare classes are drawn into it than their share; the weights of the rows make up for that.
"""

from dataclasses import replace

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.data.limits import LIMITS
from candide.data.repeated_rows import DistinctRows
from candide.data.sample import Sample
from candide.data.sampling import assign_folds
from candide.engines import arrays
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.model.plan import Plan
from candide.model.settings import Settings, default_settings
from candide.validation.fold_models import expand_classes
from candide.weighted.fit import learn_weights_from_sample

_MAX_COPY_SHARE = (
    0.05  # share of the rows of a sample that are copies, from which on others would be left in the counts
)


def can_subtract_folds(sample: Sample, rows: DistinctRows, counts: ModelCounts, settings: Settings) -> bool:
    """Whether models without a fold can be had by subtraction.

    Not where rows are repeated: copies would stay in the counts, and equal rows that are pooled would all be in one
    fold. Nor under a class prior that is given: by that the class proportions of a sample cannot be made up for.
    """
    sampled = sample.n_rows < counts.n_rows and settings.class_prior in ("jeffreys", "empirical")
    copied = rows.frequency[rows.weight_per_draw > 1.0].sum()
    pooled = 0.0 if sample.n_pooled is None else rows.frequency[rows.frequency > 1.0].sum()
    return sampled and bool(max(copied, pooled) < _MAX_COPY_SHARE * rows.frequency.sum())


def has_rare_class(sample: Sample, counts: ModelCounts) -> bool:
    """Whether a class has few rows in a sample."""
    return len(sample.labels) < len(counts.labels) or bool((np.bincount(sample.y) < LIMITS.wide_rows).any())


def cross_validate_sample(
    sample: Sample, rows: DistinctRows, counts: ModelCounts, settings: Settings, naive_plan: Plan, folds: int
) -> tuple[Sample, Floats, Floats]:
    """The sample with folds and weights; (row, class) log p(class | x) by the weighted model, and by naive Bayes.

    ``plain`` is the plan of naive Bayes, which is counted from the sample.
    """
    shares = counts.class_weight / counts.class_weight.sum()
    sample = replace(sample, fold=assign_folds(sample.y, folds, rows.order[rows.group]))
    out = np.empty((2, len(sample), len(sample.labels)))
    for fold in range(folds):
        train, rest = (sample.take(np.flatnonzero(some)) for some in (sample.fold != fold, sample.fold == fold))
        less = counts - _count_sample(rest, counts.plan).match_labels(counts)
        weighted = FittedModel(
            less,
            settings,
            term_weights=learn_weights_from_sample(
                _match_proportions(train, shares).with_seen_labels(), less, settings
            ),
        )
        naive = _count_sample(train.with_seen_labels(), naive_plan)
        weight = shares[_class_codes(naive, sample)] * len(train)
        for i, fitted in enumerate(
            (weighted, FittedModel(replace(naive, class_weight=weight), default_settings("naive")))
        ):
            posterior, codes = fitted.apply(Model.log_posterior, rest.table), _class_codes(fitted.counts, sample)
            out[i, sample.fold == fold] = expand_classes(posterior, fitted.counts, codes, len(sample.labels))
    return replace(sample, weight=_proportion_weights(sample, shares)), out[0], out[1]


def _count_sample(sample: Sample, plan: Plan) -> ModelCounts:
    return arrays.count_table(
        sample.table, sample.labels.array[sample.y], sample.weight, plan=plan.with_levels(sample.table)
    )


def _class_codes(counts: ModelCounts, sample: Sample) -> Codes:
    """The codes, in a sample, of the classes of some counts: one of few rows may be gone."""
    return np.array([sample.labels.index[label] for label in counts.labels.values], np.intp)


def _match_proportions(sample: Sample, shares: Floats) -> Sample:
    """Some of the rows, among which classes have their shares among all rows."""
    n = np.bincount(sample.y, minlength=len(shares))
    there = (n > 0) & (shares > 0)
    kept = np.minimum(np.ceil(shares * (n[there] / shares[there]).min()), n)
    order = np.argsort(sample.y, kind="stable")
    place = np.arange(len(order)) - np.searchsorted(sample.y[order], sample.y[order])
    return sample.take(np.sort(order[place < kept[sample.y[order]]]))


def _proportion_weights(sample: Sample, shares: Floats) -> Floats:
    """The weight of each row, by which classes have their shares among all rows; in the mean as before."""
    own = np.ones(len(sample)) if sample.weight is None else sample.weight
    of_class = np.bincount(sample.y, own, minlength=len(shares))
    return own * (shares * of_class.sum() / np.where(of_class > 0, of_class, 1.0))[sample.y]
