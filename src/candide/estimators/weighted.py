"""What classifiers with learned term weights share: reweighting, and the list of terms."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from candide.data import notes
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.table import Table
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.sklearn_contract import lock_of
from candide.model.fitted import EstimatorRecord, FittedModel
from candide.model.settings import WeightedSettings

if TYPE_CHECKING:
    from candide.explain.terms import TermList


class WeightedClassifier(NaiveBayes):
    """A naive Bayes classifier whose terms (columns, words, interactions) have learned weights."""

    _infers_column_types = False
    sample_rows: int
    random_state: int

    def reweight(self, X: Any, y: Any, sample_weight: Any = None, *, rows_are_new: bool = False) -> Self:
        """Learn the weights again from rows that were counted, such as after models were added or rows forgotten.

        Each row is left out of the counts while weights are learned from it. With ``rows_are_new`` none of the rows was
        ever counted, and none is left out.

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
            sample = self._draw_sample(table, y, weight)
            return self._replace_counts(reweight_model(self.fitted_, sample, new=rows_are_new))

    @property
    def terms_(self) -> "TermList":
        """The terms with their weights, most important first: columns, interactions, discriminants, prototypes.

        ``importance`` is the mean absolute change of the log-odds of two classes, over the rows counted.

        >>> import numpy as np
        >>> import candide as cd
        >>> rng = np.random.default_rng(0)
        >>> X = {"a": rng.integers(0, 2, 400), "b": rng.integers(0, 2, 400)}
        >>> terms = cd.BayesClassifier().fit(X, X["a"] == X["b"]).terms_
        >>> terms[0].title, terms[0].kind
        ('a x b', 'pair')
        """
        from candide.explain.terms import list_terms

        self._check_fitted()
        return list_terms(self.fitted_)

    def _add_record(self, fitted: FittedModel, table: Table, weight: Floats | None) -> FittedModel:
        """Add the parameters and the types of columns to a model of the rows of a table, and issue its notes."""
        from candide.weighted.fit import small_weight_notes

        plan = fitted.counts.plan
        columns, params = set(plan.columns), self._record_params(plan)
        record = EstimatorRecord(self._record_name, params, len(table.names))
        fitted = replace(fitted, estimator=record, dates=table.dates & columns, times=table.times & columns)
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

        settings = WeightedSettings(sample_rows=self.sample_rows, random_state=self.random_state)
        labels = Labels.from_values(y)
        sample, plan = Sample.from_table(table, labels.encode(y), labels, weight), self.counts_.plan
        if all(part.event.weights_tokens for part in plan.parts):
            return sample.limit_text(plan.token_columns, self._max_documents, settings.random_state)
        return sample.limit_rows(settings.sample_rows, settings.random_state)

    @property
    def _max_documents(self) -> int:
        """Rows that token weights are learned from, at most."""
        return self.sample_rows

    def _weighted_settings(self, labels: Labels, n_features: int) -> WeightedSettings:
        """How the model is fitted: parameters of the estimator that are settings."""
        names = {field.name for field in fields(WeightedSettings)[1:]} & set(self.get_params(deep=False))
        model = self._settings(labels, n_features)
        return WeightedSettings(model, **{name: getattr(self, name) for name in names})
