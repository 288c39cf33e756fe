"""BayesClassifier: the weighted model, the default, as a scikit-learn classifier."""

from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

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
from candide.estimators.sklearn_contract import takes_settings
from candide.estimators.weighted import WeightedClassifier
from candide.model.fitted import FittedModel, missing_column_error
from candide.model.plan import Plan, is_single_event
from candide.model.settings import Settings, WeightedSettings

if TYPE_CHECKING:
    from candide.data.sample import Sample

_FEW_FIRST_ROWS = 1_000  # from which partial_fit chooses kinds, bins and interactions with a warning


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
    terms : "columns", "interactions" or "all"
        "columns": one term per column. "interactions": also pairs and triples of columns. "all": also discriminants of
        the numeric columns and the prototype term. Terms are used where they predict the class beyond the others.
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

    >>> first, rest = {"a": X["a"][:300], "b": X["b"][:300]}, {"a": X["a"][300:], "b": X["b"][300:]}
    >>> one = cd.BayesClassifier().fit(first, y[:300])
    >>> both = one + cd.BayesClassifier(like=one).fit(rest, y[300:])
    >>> both.counts_.n_rows, both.reweight(X, y).fitted_
    (400, <FittedModel of None, 400 rows, 2 columns and 2 classes, weights learned on 400 of 400 rows>)
    """

    _record_name = "BayesClassifier"

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
        >>> model = cd.BayesClassifier().partial_fit(X, y)
        >>> model.partial_fit(X[:4], y[:4]).fitted_.term_weights.training_summary(40)
        'weights learned on 36 of 40 rows'
        >>> model.partial_fit(X, y).fitted_.term_weights.training_summary(76)
        'weights learned on 36 of 76 rows'
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

        ``speaks_for`` is the class for which a row just like it speaks most, ``nats`` by how much more than for the
        next. Empty where nothing is compared, as where there are fewer than two columns of numbers.

        >>> import numpy as np
        >>> import candide as cd
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> rows = cd.BayesClassifier().fit({"a": X[:, 0], "b": X[:, 1]}, (X**2).sum(axis=1) < 1).prototypes()
        >>> list(rows), len(rows["nats"])
        (['typical_row', 'a', 'b', 'speaks_for', 'nats'], 64)
        """
        from candide.explain.terms import prototype_rows

        self._check_fitted()
        return prototype_rows(self.fitted_)

    def log_density(self, X: Any) -> NDArray:
        """log p(x), (rows,), by the unweighted distributions of the columns: a weighted score is not a density.

        >>> import candide as cd
        >>> model = cd.BayesClassifier().fit([[1.0], [2.0], [8.0], [9.0]] * 9, ["low", "low", "top", "top"] * 9)
        >>> model.log_density([[1.5], [8.5]]).shape
        (2,)
        """
        return self._generative_model.log_density(X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Rows and labels drawn from the unweighted distributions of the columns; for a bin its middle.

        >>> import candide as cd
        >>> model = cd.BayesClassifier().fit({"a": [1.0, 2.0, 8.0, 9.0] * 9}, ["low", "low", "top", "top"] * 9)
        >>> rows, labels = model.sample(3, random_state=0)
        >>> list(rows), len(labels)
        (['a'], 3)
        """
        return self._generative_model.sample(n_samples, random_state)

    @property
    def _generative_model(self) -> NaiveBayes:
        """Naive Bayes of the same columns."""
        self._check_fitted()
        return NaiveBayes.from_fitted(self.fitted_.generative_model)

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

        settings = self._weighted_settings(labels, len(table.names))
        plan, like = self._resolve_like(table)
        if like is not None:
            table = read_as_fitted(like, table)
        formats = self._formats(table) if plan is None else NO_FORMATS
        table = formats.parse_table(table)
        sample = Sample.from_table(table, labels.encode(y), labels, weight)
        fitted = fit_weighted(sample, partial(count_sample, sample), plan=plan, settings=settings)
        if settings.calibration:
            fitted = self._calibrate(fitted, sample, settings, plan)
        fitted = self._add_record(fitted, table, weight)
        if like is not None:
            fitted = replace(fitted, text_formats=like.text_formats, na=like.na)
        if plan is None:
            fitted = replace(fitted, **formats.model_record(fitted.counts.plan.columns, fitted.dates, fitted.times))
            columns = [] if is_single_event(self.events) else infer_columns(table)
            notes.issue_warnings([*formats.notes, *self._column_notes(columns, table)], stacklevel=3)
        return fitted

    def _calibrate(
        self, fitted: FittedModel, sample: "Sample", settings: WeightedSettings, plan: Plan | None
    ) -> FittedModel:
        """Calibrate on held-out rows, by cross-validation within the rows that weights were learned from."""
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
        from candide.store.models import resolve_plan

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

        if getattr(self, "like", None) is None:
            return _clone_parametrized(self)
        alone = copy(self)
        alone.like = None
        return _clone_parametrized(alone).set_params(like=self.like)

    def _unfitted(self) -> Self:
        given = self.get_params(deep=False)
        like = given.pop("like", None)
        other = type(self)(**deepcopy(given))
        return other if like is None else other.set_params(like=like)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        return Settings(class_prior=self.class_prior, param_priors=self.param_priors)
