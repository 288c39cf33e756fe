"""BayesClassifier, the weighted model and the default, as a scikit-learn classifier; its base serves TextNB too."""

from copy import copy, deepcopy
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from numpy.typing import NDArray

from candide import formatting
from candide.data import notes
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.table import Table
from candide.engines.table_formats import NO_FORMATS, read_as_fitted
from candide.errors import InputError, InputTypeError
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.sklearn_contract import lock_of, takes_settings
from candide.model.fitted import EstimatorRecord, FittedModel, missing_column_error
from candide.model.plan import Plan, is_single_event
from candide.model.settings import Settings, WeightedSettings

if TYPE_CHECKING:
    from candide.data.sample import Sample
    from candide.explain.terms import TermList

_FEW_FIRST_ROWS = 1_000  # partial_fit warns if it chooses encodings and terms from fewer


class WeightedClassifier(NaiveBayes):
    """A naive Bayes classifier whose terms (columns, words, interactions) have learned weights."""

    _infers_column_types = False
    sample_rows: int
    random_state: int

    def reweight(self, X: Any, y: Any, sample_weight: Any = None, *, rows_are_new: bool = False) -> Self:
        """Learn the weights again from rows that were counted, such as after models were added or rows forgotten.

        Each row is left out of the counts while it is used, unless ``rows_are_new``.

        >>> import candide as cd
        >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 9, ["low", "low", "top", "top"] * 9
        >>> model = cd.BayesClassifier().fit(X, y).forget(X[:4], y[:4])
        >>> model.reweight(X[4:], y[4:]).fitted_.term_weights.training_summary(32)
        'weights learned on 32 of 32 rows'
        """
        from candide.weighted.fit import reweight_model

        with lock_of(self):
            table = self._read_again(X, self.counts_.plan)
            y, weight = self._check_labels_and_weights(table, y, sample_weight)
            sample = self._draw_sample(table, y, weight)
            return self._replace_counts(reweight_model(self.fitted_, sample, new=rows_are_new))

    def log_density(self, X: Any) -> NDArray:
        """log p(x), (rows,), by the unweighted distributions of the columns: a weighted score is not a density."""
        return NaiveBayes.log_density(self._generative_model, X)

    @property
    def _generative_model(self) -> NaiveBayes:
        return NaiveBayes.from_fitted(self._checked_fitted.generative_model)

    @property
    def terms_(self) -> "TermList":
        """The terms with their weights, most important first: columns, interactions, discriminants, prototypes.

        ``importance`` is the mean absolute change of the log-odds of two classes, over the rows counted.

        >>> import candide as cd
        >>> terms = cd.BayesClassifier().fit([[1.0], [2.0], [8.0], [9.0]] * 9, ["low", "low", "top", "top"] * 9).terms_
        >>> terms[0].title, terms[0].kind
        ('0', 'column')
        """
        from candide.explain.terms import list_terms

        return list_terms(self._checked_fitted)

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
        from candide.weighted.fit import reweight_model

        if fitted.term_weights is None or not fitted.term_weights.is_relearning_due(fitted.counts.n_rows, len(y)):
            return fitted
        return reweight_model(fitted, self._draw_sample(table, y, weight), is_counted=True)

    def _draw_sample(self, table: Table, y: NDArray, weight: Floats | None) -> "Sample":
        """The rows that weights are learned from."""
        from candide.data.sample import Sample

        WeightedSettings(sample_rows=self.sample_rows, random_state=self.random_state)  # checks them
        labels, plan = Labels.from_values(y), self.counts_.plan
        sample = Sample.from_table(table, labels.encode(y), labels, weight, columns=plan.columns)
        if all(part.event.weights_tokens for part in plan.parts):
            return sample.limit_text(plan.token_columns, self._max_documents, self.random_state)
        return sample.limit_rows(self.sample_rows, self.random_state)

    @property
    def _max_documents(self) -> int:
        return self.sample_rows

    def _weighted_settings(self, labels: Labels, n_features: int) -> WeightedSettings:
        names = {field.name for field in fields(WeightedSettings)[1:]} & set(self.get_params(deep=False))
        model = self._settings(labels, n_features)
        return WeightedSettings(model, **{name: getattr(self, name) for name in names})


class BayesClassifier(WeightedClassifier):
    """A weighted Bayes classifier for any table, whose columns may depend on each other.

    Its score is a sum of terms: every column, selected pairs and triples of columns, and numeric columns together. The
    weight of each term is learned from rows that are left out of the counts.

    Parameters
    ----------
    events : "auto", or a mapping from columns to event models
        Columns not named are inferred: numbers are binned, text, booleans and 0/1 columns are categories.
    class_prior : "jeffreys", "empirical", "uniform", a prior, proportions in class order, or a mapping from class to
        proportion
    param_priors : a prior, or a mapping from event names to priors; None for each event model's own
    terms : "columns", "interactions", "all" or "tables"
        "columns": one term per column. "interactions": also pairs and triples of columns. "all": also discriminants of
        the numeric columns and the prototype term. "tables": also decision tables, which follow rules of many columns.
        Terms are used where they predict the class beyond the others.
    sample_rows : number of rows that weights are learned from, at most
        Word weights are learned from five times as many. The counts are of all rows.
    random_state : seed for drawing these rows
    like : a fitted model, the path of one, or its plan
        Encodings and terms are then those of ``like``, so that both models can be added; bins, distributions and
        weights are those of the rows.
    calibration : None, "logistic" or "isotonic"
        Calibrate the probabilities on held-out rows. It is rarely needed, and takes as long as two more fits. Weights
        that are learned again, and those of a sum, are not calibrated.

    Examples
    --------
    >>> import numpy as np
    >>> import candide as cd
    >>> rng = np.random.default_rng(0)
    >>> X = {"a": rng.integers(0, 2, 400), "b": rng.integers(0, 2, 400)}
    >>> y = np.where(X["a"] == X["b"], "same", "other")  # neither column predicts it alone
    >>> cd.BayesClassifier().fit(X, y).predict({"a": [0, 0], "b": [0, 1]}).tolist()
    ['same', 'other']

    Models with the same encodings add; the weights of a sum are means, until ``reweight`` learns them again.

    >>> start, rest = {"a": X["a"][:300], "b": X["b"][:300]}, {"a": X["a"][300:], "b": X["b"][300:]}
    >>> first = cd.BayesClassifier().fit(start, y[:300])
    >>> both = first + cd.BayesClassifier(like=first).fit(rest, y[300:])
    >>> both.counts_.n_rows, both.reweight(X, y).fitted_
    (400, <FittedModel, 400 rows, 2 columns and 2 classes, weights learned on 400 of 400 rows>)
    """

    _record_name = "BayesClassifier"
    _input_tags: ClassVar[dict[str, bool]] = {**NaiveBayes._input_tags, "sparse": False}

    class_prior: Any
    param_priors: Any
    like: Any

    @takes_settings(WeightedSettings, without=["model", "events"])
    def __init__(
        self,
        events: Any = WeightedSettings.events,
        class_prior: Any = WeightedSettings.model.class_prior,
        param_priors: Any = None,
        *,
        like: Any = None,
        **settings: Any,
    ): ...

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows. Encodings and terms are chosen from the rows of the first call, or are those of ``like``.

        Start with some thousands of rows: below 1,000 there is a warning. The weights are learned again from the rows
        of a call when the rows counted have doubled since, and these are at least as many as the weights were learned
        from; else they stay, and ``reweight`` learns them.

        >>> import candide as cd
        >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 9, ["low", "low", "top", "top"] * 9
        >>> cd.BayesClassifier().partial_fit(X, y).partial_fit(X[:4], y[:4]).fitted_.term_weights.training_summary(40)
        'weights learned on 36 of 40 rows'
        """
        first = not hasattr(self, "fitted_")
        super().partial_fit(X, y, classes, sample_weight)
        if first and self.like is None and (n := self.counts_.n_rows) < _FEW_FIRST_ROWS:
            n_rows = formatting.format_count(n)
            text = f"column types, encodings and terms were chosen from the first {n_rows} and stay so"
            remedy = f"start with {_FEW_FIRST_ROWS:,} rows or more, or pass like= a model fitted to more rows"
            notes.issue_warnings([Note("few-first-rows", text, remedy=remedy)])
        return self

    def prototypes(self) -> dict[Any, list[Any]]:
        """The prototypes of the prototype term, in the units of the columns; ``pandas.DataFrame`` makes a table.

        ``predicted_class`` is the class to which the term contributes most for a row like it, ``log_odds`` its margin
        over the next. Empty without a prototype term, as where there are fewer than two columns of numbers.

        >>> import numpy as np
        >>> import candide as cd
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> rows = cd.BayesClassifier().fit({"a": X[:, 0], "b": X[:, 1]}, (X**2).sum(axis=1) < 1).prototypes()
        >>> list(rows), len(rows["log_odds"])
        (['prototype', 'a', 'b', 'predicted_class', 'log_odds'], 64)
        """
        from candide.explain.columns import prototype_rows

        return prototype_rows(self._checked_fitted)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Rows and labels drawn from the unweighted distributions of the columns; for a bin its middle."""
        return self._generative_model.sample(n_samples, random_state)

    def _read(self, X: Any) -> Table:
        table = super()._read(X)
        if table.is_sparse:
            remedy = "pass a dense array or a frame, or use TextNB"
            raise InputTypeError("BayesClassifier does not take sparse matrices", remedy=remedy)
        return table

    def _fit_rows(self, table: Table, y: NDArray, weight: Floats | None, labels: Labels) -> FittedModel:
        from candide.data.column_types import infer_columns
        from candide.data.sample import Sample
        from candide.weighted.fit import count_sample, fit_weighted
        from candide.weighted.selection import plan_column_terms

        settings = self._weighted_settings(labels, len(table.names))
        plan, like = self._resolve_like(table)
        if like is not None:
            table = read_as_fitted(like, table)
        formats = self._formats(table) if plan is None else NO_FORMATS
        table = formats.parse_table(table)
        columns = [] if plan is not None or is_single_event(self.events) else infer_columns(table)
        used = plan_column_terms(columns, self.events) if columns else plan
        names = None if used is None else used.columns
        sample = Sample.from_table(table, labels.encode(y), labels, weight, columns=names)
        fitted = fit_weighted(sample, partial(count_sample, sample), plan=plan, settings=settings)
        if settings.calibration:
            fitted = self._calibrate(fitted, sample, settings, plan)
        fitted = self._add_record(fitted, table, weight)
        if like is not None:
            fitted = replace(fitted, text_formats=like.text_formats, na=like.na)
        if plan is None:
            fitted = replace(fitted, **formats.model_record(fitted.counts.plan.columns, fitted.dates, fitted.times))
            notes.issue_warnings([*formats.notes, *self._column_notes(columns, table)], stacklevel=3)
        return fitted

    @staticmethod
    def _calibrate(fitted: FittedModel, sample: "Sample", settings: WeightedSettings, plan: Plan | None) -> FittedModel:
        """Calibrate by cross-validation within the rows that weights were learned from."""
        from candide.validation.held_out import calibrate_model, score_held_out

        assert settings.calibration is not None
        if columns := fitted.plan.token_columns:
            sample = sample.limit_text(columns, settings.max_documents, settings.random_state)
        rows = sample.limit_rows(settings.sample_rows, settings.random_state).with_labels(fitted.labels)
        scores = score_held_out(rows, settings, plan=plan, counts=fitted.counts)
        return calibrate_model(fitted, scores, settings.calibration)

    @property
    def _max_documents(self) -> int:
        return WeightedSettings(sample_rows=self.sample_rows).max_documents

    def _resolve_like(self, table: Table) -> tuple[Plan | None, FittedModel | None]:
        """The plan that ``like`` has or is, and the model; the table must have its columns."""
        if self.like is None:
            return None, None
        from candide.store.file import resolve_plan

        plan, fitted = resolve_plan(self.like)
        if self.events != "auto":
            raise InputError("events and like both determine how columns are counted", remedy="pass one of them")
        for name in plan.columns:
            if name not in set(table.names):
                raise missing_column_error(name, plan)
        if fitted is not None and fitted.term_weights is None:
            remedy = "fit a NaiveBayes with the same events, or use candide.fit(..., like=)"
            raise InputError("like is a model without weights", value=self.like, remedy=remedy)
        return plan, fitted

    def _record_params(self, plan: Plan) -> dict[str, Any]:
        """Without ``like``, which may be a model of any size: the plan has its encodings and terms."""
        return {name: value for name, value in super()._record_params(plan).items() if name != "like"}

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy with the same parameters; ``like`` is not cloned, as a clone of it would be unfitted."""
        from sklearn.base import _clone_parametrized

        other = copy(self)
        other.like = None
        return _clone_parametrized(other).set_params(like=getattr(self, "like", None))

    def _unfitted(self) -> Self:
        params = self.get_params(deep=False)
        shared = {"like": params.pop("like")} if "like" in params else {}
        return type(self)(**deepcopy(params), **shared)

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        return Settings(class_prior=self.class_prior, param_priors=self.param_priors)
