"""Weighted: what classifiers share whose voices have weights, which are learned from rows held out of the counts."""

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from candide.data import notes
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.table import Table
from candide.errors import InputError
from candide.estimators.locking import lock_of
from candide.estimators.naive_bayes import NaiveBayes
from candide.model.fitted import EstimatorRecord, FittedModel
from candide.model.plan import Plan

if TYPE_CHECKING:
    from candide.explain.terms import TermList


class WeightedClassifier(NaiveBayes):
    """A naive Bayes classifier whose columns, words, or whatever else speaks, count more or less than once."""

    _infers_column_types = False
    sample_rows: int
    random_state: int

    def reweight(self, X: Any, y: Any, sample_weight: Any = None, *, rows_are_new: bool = False) -> Self:
        """Learn the weights again, from rows that were counted: after a sum, after rows were taken out.

        Each row is left out of the counts while it teaches. ``new`` says that none of the rows was ever counted, and
        so none is left out.

        >>> import candide as cd
        >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 9, ["low", "low", "top", "top"] * 9
        >>> model = cd.BayesClassifier().fit(X, y).forget(X[:4], y[:4])
        >>> model.fitted_.term_weights.training_summary(32)
        'weights learned on 36 rows, before 4 rows were forgotten; the counts now hold 32 rows'
        >>> model.reweight(X[4:], y[4:]).fitted_.term_weights.training_summary(32)
        'weights learned on 32 of 32 rows'
        """
        from candide.weighted.reweight import reweight_model

        with lock_of(self):
            table = self._read_again(X, self.counts_.plan)
            y, weight = self._check_labels_and_weights(table, y, sample_weight)
            return self._replace_counts(
                reweight_model(self.fitted_, self._draw_sample(table, y, weight), new=rows_are_new)
            )

    def terms_(self) -> "TermList":
        """Who speaks, strongest first: columns, pairs, triples, discriminants, resemblance, with their weights.

        ``strength`` is how far a voice moves the log-odds of two classes, in the mean of the rows counted.

        >>> import numpy as np
        >>> import candide as cd
        >>> rng = np.random.default_rng(0)
        >>> X = {"a": rng.integers(0, 2, 400), "b": rng.integers(0, 2, 400)}
        >>> voices = cd.BayesClassifier().fit(X, X["a"] == X["b"]).terms_()
        >>> voices[0].title, voices[0].kind
        ('a x b', 'pair')
        """
        from candide.explain.terms import list_terms

        self._check_fitted()
        return list_terms(self.fitted_)

    def _fit_weighted(
        self, table: Table, y: NDArray, weight: Floats | None, labels: Labels, like: Plan | None, **given: Any
    ) -> FittedModel:
        """What is fitted to the first rows: counts, and weights that some of the rows teach."""
        from candide.weighted.fit import fit_weighted, small_weight_notes

        self._check_sampling_params()
        settings = self._settings(labels, len(table.names))
        given |= {"sample_rows": self.sample_rows, "documents": self._max_documents, "seed": self.random_state}
        fitted = fit_weighted(table, y, weight, labels=labels, settings=settings, like=like, **given)
        plan = fitted.counts.plan
        record = EstimatorRecord(self._record_name, self._record_params(plan), len(table.names))
        fitted = replace(fitted, estimator=record)
        if fitted.counts.class_weight.all():
            self._check_estimate(fitted)
        notes.issue_warnings([*small_weight_notes(weight), *self._notes(table, plan)], stacklevel=4)
        return fitted

    def _relearn_if_due(self, fitted: FittedModel, table: Table, y: NDArray, weight: Floats | None) -> FittedModel:
        from candide.weighted.reweight import reweight_model

        if fitted.term_weights is None or not fitted.term_weights.is_relearning_due(fitted.counts.n_rows, len(y)):
            return fitted
        return reweight_model(fitted, self._draw_sample(table, y, weight), is_counted=True)

    def _draw_sample(self, table: Table, y: NDArray, weight: Floats | None) -> Any:
        """The rows that weights are learned from."""
        from candide.data.sample import Sample

        self._check_sampling_params()
        labels = Labels.from_values(y)
        whole, plan = Sample.from_table(table, labels.encode(y), labels, weight), self.counts_.plan
        if all(part.event.weights_tokens for part in plan.parts):
            return whole.limit_text(plan.token_columns, self._max_documents, self.random_state)
        return whole.limit_rows(self.sample_rows, self.random_state)

    @property
    def _max_documents(self) -> int:
        """How many rows weights of words are learned from, at most."""
        return self.sample_rows

    def _check_sampling_params(self) -> None:
        for name, least in (("sample_rows", 1), ("random_state", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise InputError(f"{name}: {value!r}", value=value, remedy=f"pass a whole number of at least {least}")
