"""Weighing again: the weights of a model's voices learned from rows at hand, against the counts that it has now.

Rows that were counted are left out one by one, so that no voice is trusted because it has seen the answer. Rows that
were never counted have nothing to be left out of: that is said with ``new``. A model keeps counts, not rows, so it
refuses only what cannot have been counted.

>>> import numpy as np
>>> from candide.data.labels import Labels
>>> from candide.data.table import Table
>>> from candide.weighted.fit import fit_weighted
>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> table = Table.from_data({"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b]})
>>> fitted = fit_weighted(table, a ^ b)
>>> twice, seen = fitted + fitted, Sample.from_table(table, a ^ b, Labels((0, 1)))
>>> twice.term_weights.training_summary(800), reweight_model(twice, seen).term_weights.training_summary(800)
('weights learned on 800 of 800 rows', 'weights learned on 400 of 800 rows')
>>> reweight_model(
...     fitted, Sample.from_table(Table.from_data({"a": ["maybe"], "b": ["low"]}), np.array([0]), Labels((0,)))
... )
Traceback (most recent call last):
    ...
candide.errors.NotCountedError: column 'a': class 0, level 'maybe': more is removed than was counted, 1 of 0; weigh by \
rows that the model has counted, with the same weights, or pass new=True (--new) where it has counted none of them
"""

from dataclasses import replace

from candide.data import value_matching
from candide.data.notes import Note
from candide.data.sample import Sample
from candide.engines import arrays
from candide.errors import InputError, NotCountedError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.weighted import learning
from candide.weighted.fit import learn_pooled_weights
from candide.weighted.training_rows import TrainingRows


def reweight_model(fitted: FittedModel, sample: Sample, *, new: bool = False, is_counted: bool = False) -> FittedModel:
    """The model with weights learned again from some rows; ``sure`` where they are known to have been counted."""
    check_weighted(fitted)
    sample, census, settings = _with_model_labels(fitted, sample), fitted.counts, fitted.settings
    if new:
        effective = census if fitted.term_weights is None else fitted.term_weights.effective_counts(census)
        rows = sample.with_seen_labels().pool_rows().with_labels(fitted.labels)
        found = learning.learn_term_weights(
            effective, settings, TrainingRows.from_sample(rows, census.plan), is_counted=False, until_converged=True
        )
        n = min(found.n_learned_rows, 1) * rows.n_rows
        found = replace(
            found,
            n_learned_rows=n,
            n_uncounted_rows=n,
            copies=None if fitted.term_weights is None else fitted.term_weights.copies,
        )
    else:
        if not is_counted:
            _check_counted(census, sample)
        found = learn_pooled_weights(census, settings, sample.with_seen_labels().pool_rows().with_labels(fitted.labels))
    return replace(fitted, term_weights=found)


def stale_notes(fitted: FittedModel) -> list[Note]:
    """A remark where weights were learned before rows were taken out, or before they doubled."""
    if fitted.term_weights is None or not fitted.has_counts or not fitted.term_weights.is_stale(fitted.counts.n_rows):
        return []
    remedy = "learn them again from rows that it has counted: candide weigh MODEL DATA (weigh)"
    return [
        Note("weights", f"the model has {fitted.term_weights.training_summary(fitted.counts.n_rows)}", remedy=remedy)
    ]


def check_weighted(fitted: FittedModel) -> None:
    """Refuse a model that has no weights."""
    if fitted.term_weights is None and fitted.has_counts:
        raise InputError("this model has no weights: each of its columns counts once", remedy="fit a BayesClassifier")
    fitted.counts  # noqa: B018  which says where there are no counts


def _with_model_labels(fitted: FittedModel, sample: Sample) -> Sample:
    """The rows with their classes as the model has them."""
    for label in sample.labels.values:
        if value_matching.find_code(label, fitted.labels) is None:
            what, remedy = f"class {label!r} was never counted", "count its rows first, by update or partial_fit"
            raise NotCountedError(what, value=label, remedy=remedy)
    return sample.with_labels(fitted.labels)


def _check_counted(counts: ModelCounts, sample: Sample) -> None:
    """Refuse rows that cannot all have been counted."""
    plan = counts.plan.with_levels(sample.table)
    part = arrays.count_table(sample.table, sample.labels.array[sample.y], sample.weight, plan=plan)
    try:
        _ = counts - part.match_labels(counts)
    except NotCountedError as error:
        error.remedy = (
            "weigh by rows that the model has counted, with the same weights, "
            "or pass new=True (--new) where it has counted none of them"
        )
        raise
