"""Learn the weights of a model again, from rows at hand, against the counts that it has now.

Rows that were counted are left out one by one, so that no term gains weight because it has seen the answer. Rows that
were never counted (``new``) have nothing to be left out of. A model keeps counts, not rows, so only rows that cannot
have been counted are refused.
"""

from dataclasses import replace

from candide.data import value_matching
from candide.data.notes import Note
from candide.data.sample import Sample
from candide.errors import InputError, NotCountedError
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.settings import WeightedSettings
from candide.model.term_weights import TermWeights
from candide.weighted.fit import count_sample, fit_weighted
from candide.weighted.learning import learn_term_weights
from candide.weighted.training_rows import TrainingRows


def reweight_model(fitted: FittedModel, sample: Sample, *, new: bool = False, is_counted: bool = False) -> FittedModel:
    """The model with weights learned again from a sample; ``is_counted``: its rows are known to be in the counts."""
    check_weighted(fitted)
    sample, counts = _with_model_labels(fitted, sample), fitted.counts
    if new:
        return replace(fitted, term_weights=_learn_from_new_rows(fitted, sample))
    if not is_counted:
        _check_counted(counts, sample)
    settings = WeightedSettings(fitted.settings, sample_rows=max(1, len(sample)))
    again = fit_weighted(sample.with_seen_labels(), lambda _: counts, plan=counts.plan, settings=settings)
    return replace(fitted, term_weights=again.term_weights)


def _learn_from_new_rows(fitted: FittedModel, sample: Sample) -> TermWeights:
    """Weights learned from rows that were never counted."""
    assert fitted.term_weights is not None
    rows = sample.with_seen_labels().pool_rows().with_labels(fitted.labels)
    counts = fitted.term_weights.effective_counts(fitted.counts)
    training_rows = TrainingRows.from_sample(rows, counts.plan)
    weights = learn_term_weights(counts, fitted.settings, training_rows, is_counted=False, until_converged=True)
    n = min(weights.n_learned_rows, 1) * rows.n_rows
    return replace(weights, n_learned_rows=n, n_uncounted_rows=n, copies=fitted.term_weights.copies)


def stale_notes(fitted: FittedModel) -> list[Note]:
    """A note where rows were forgotten, or have doubled, since the weights were learned."""
    if fitted.term_weights is None or not fitted.has_counts or not fitted.term_weights.is_stale(fitted.counts.n_rows):
        return []
    text = f"the model has {fitted.term_weights.training_summary(fitted.counts.n_rows)}"
    return [Note("weights", text, remedy="learn them again from rows that it has counted: candide reweight MODEL DATA")]


def check_weighted(fitted: FittedModel) -> None:
    """Raise an error for a model without weights or without counts."""
    if fitted.term_weights is None and fitted.has_counts:
        raise InputError("this model has no weights: each of its columns counts once", remedy="fit a BayesClassifier")
    fitted.counts  # noqa: B018  raises where there are no counts


def _with_model_labels(fitted: FittedModel, sample: Sample) -> Sample:
    """The rows with the labels of the model."""
    for label in sample.labels.values:
        if value_matching.find_code(label, fitted.labels) is None:
            remedy = "count its rows first, by update or partial_fit"
            raise NotCountedError(f"class {label!r} was never counted", value=label, remedy=remedy)
    return sample.with_labels(fitted.labels)


def _check_counted(counts: ModelCounts, sample: Sample) -> None:
    """Raise an error for rows that cannot all have been counted."""
    part = count_sample(sample.with_seen_labels(), counts.plan)
    try:
        _ = counts - part.match_labels(counts)
    except NotCountedError as error:
        error.remedy = (
            "pass rows that the model has counted, with the same weights, "
            "or pass rows_are_new=True (--rows-are-new) where it has counted none of them"
        )
        raise
