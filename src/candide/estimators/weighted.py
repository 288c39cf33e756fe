"""Weighted: what classifiers share whose voices have weights, which are learned from rows held out of the counts."""

from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from candide.errors import InputError
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.turns import turn
from candide.model.fitted import EstimatorRecord, Fitted
from candide.model.plan import Plan
from candide.rows import remarks
from candide.rows.blocks import Floats
from candide.rows.labels import Labels
from candide.rows.table import Table

if TYPE_CHECKING:
    from candide.explain.voices import Voices


class Weighted(NaiveBayes):
    """A naive Bayes classifier whose columns, words, or whatever else speaks, count more or less than once."""

    _decides_kinds = False
    rows: int
    random_state: int

    def weigh(self, X: Any, y: Any, sample_weight: Any = None, *, new: bool = False) -> Self:
        """Learn the weights again, from rows that were counted: after a sum, after rows were taken out.

        Each row is left out of the counts while it teaches. ``new`` says that none of the rows was ever counted, and
        so none is left out.

        >>> import candide as cd
        >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 9, ["low", "low", "top", "top"] * 9
        >>> model = cd.BayesClassifier().fit(X, y).unlearn(X[:4], y[:4])
        >>> model.fitted_.voices.said(32)
        'weights learned on 36 rows, before 4 rows were forgotten; the counts now hold 32 rows'
        >>> model.weigh(X[4:], y[4:]).fitted_.voices.said(32)
        'weights learned on 32 of 32 rows'
        """
        from candide.tasks.weighing import weighed

        with turn(self):
            table = self._read_again(X, self.census_.plan)
            y, weight = self._labelled(table, y, sample_weight)
            return self._change(weighed(self.fitted_, self._look(table, y, weight), new=new))

    def voices(self) -> "Voices":
        """Who speaks, strongest first: columns, pairs, triples, discriminants, resemblance, with their weights.

        ``strength`` is how far a voice moves the log-odds of two classes, in the mean of the rows counted.

        >>> import numpy as np
        >>> import candide as cd
        >>> rng = np.random.default_rng(0)
        >>> X = {"a": rng.integers(0, 2, 400), "b": rng.integers(0, 2, 400)}
        >>> voices = cd.BayesClassifier().fit(X, X["a"] == X["b"]).voices()
        >>> voices[0].title, voices[0].kind
        ('a x b', 'pair')
        """
        from candide.explain.voices import voices

        self._check_fitted()
        return voices(self.fitted_)

    def _weighed(
        self, table: Table, y: NDArray, weight: Floats | None, labels: Labels, like: Plan | None, **given: Any
    ) -> Fitted:
        """What is fitted to the first rows: counts, and weights that some of the rows teach."""
        from candide.tasks.weigh import learn, small_weights

        self._check_numbers()
        settings = self._settings(labels, len(table.names))
        given |= {"rows": self.rows, "documents": self._documents, "seed": self.random_state}
        fitted = learn(table, y, weight, labels=labels, settings=settings, like=like, **given)
        plan = fitted.census.plan
        record = EstimatorRecord(self._in_file, self._kept_params(plan), len(table.names))
        fitted = replace(fitted, estimator=record)
        if fitted.census.class_weight.all():
            self._settle(fitted)
        remarks.warn([*small_weights(weight), *self._remarks(table, plan)], stacklevel=4)
        return fitted

    def _with_rows(self, fitted: Fitted, table: Table, y: NDArray, weight: Floats | None) -> Fitted:
        from candide.tasks.weighing import weighed

        if fitted.voices is None or not fitted.voices.due(fitted.census.n_rows, len(y)):
            return fitted
        return weighed(fitted, self._look(table, y, weight), sure=True)

    def _look(self, table: Table, y: NDArray, weight: Floats | None) -> Any:
        """The rows that weights are learned from."""
        from candide.tasks.look import Look

        self._check_numbers()
        labels = Labels.of(y)
        whole, plan = Look.of(table, labels.encode(y), labels, weight), self.census_.plan
        if all(part.event.hears_words for part in plan.parts):
            return whole.for_words(plan, self._documents, self.random_state)
        return whole.bounded(self.rows, self.random_state)

    @property
    def _documents(self) -> int:
        """How many rows weights of words are learned from, at most."""
        return self.rows

    def _check_numbers(self) -> None:
        for name, least in (("rows", 1), ("random_state", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise InputError(f"{name}: {value!r}", value=value, remedy=f"pass a whole number of at least {least}")
