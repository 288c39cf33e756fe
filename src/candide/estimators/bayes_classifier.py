"""BayesClassifier: any table, counted, and every column, pair and block of columns heard as much as it deserves."""

from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Self

from numpy.typing import NDArray

from candide import wording
from candide.engines.text_formats import NO_FORMATS, read_as_fitted
from candide.errors import InputError, InputTypeError
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.weighted import Weighted
from candide.model.fitted import Fitted, missing_column
from candide.model.plan import Plan, is_one
from candide.model.settings import Settings
from candide.rows import remarks
from candide.rows.blocks import Floats
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.table import Table

_DOCUMENTS = 5  # times as many rows as other voices, that words, which are very many, are learned from
_FEW_FIRST_ROWS = 1_000  # from which partial_fit chooses kinds, bins and interactions with a warning


class BayesClassifier(Weighted):
    """A Bayes classifier for any table, whose columns may depend on each other. Its score is a sum that can be read.

    Parameters
    ----------
    events : "auto", or a mapping from columns to event models
        Columns not named are inferred: numbers are binned, text, booleans and 0/1 columns are categories.
    class_prior : "jeffreys", "empirical", "uniform", a prior, shares in class order, or a mapping from class to share
    priors : a prior, or a mapping from event names to priors; None for each event model's own
    sets : whether pairs and triples of columns may speak together
    rows : how many rows the weights are learned from, at most, and those of words from five times as many; the counts
        are of all rows
    random_state : which rows these are, where there are more
    like : a fitted model, the path of one, or its plan: what is counted as that counts can be added to it
        Grids, pairs and triples are then those of ``like``; bins, laws and weights are of the rows alone.
    calibration : None, "logistic" or "isotonic"
        Bend the probabilities to what came true of rows held out, when the model is fitted. It is rarely needed, and
        takes as long as two more fits. Weights that are learned again, and those of a sum, are not calibrated.

    Examples
    --------
    >>> import numpy as np
    >>> import candide as cd
    >>> rng = np.random.default_rng(0)
    >>> X = {"a": rng.integers(0, 2, 400), "b": rng.integers(0, 2, 400)}
    >>> y = np.where(X["a"] == X["b"], "same", "other")  # neither column alone tells anything
    >>> cd.BayesClassifier().fit(X, y).predict({"a": [0, 0], "b": [0, 1]}).tolist()
    ['same', 'other']

    Models that count alike add; of a sum the weights are means, until ``weigh`` learns them again.

    >>> first, rest = {"a": X["a"][:300], "b": X["b"][:300]}, {"a": X["a"][300:], "b": X["b"][300:]}
    >>> one = cd.BayesClassifier().fit(first, y[:300])
    >>> both = one + cd.BayesClassifier(like=one).fit(rest, y[300:])
    >>> both.census_.n_rows, both.weigh(X, y).fitted_
    (400, <Fitted to None, Census of 400 rows, 2 columns and 2 classes, weights learned on 400 of 400 rows>)
    """

    _in_file = "BayesClassifier"

    def __init__(
        self,
        events: Any = "auto",
        class_prior: Any = "jeffreys",
        priors: Any = None,
        sets: bool = True,
        rows: int = 20_000,
        random_state: int = 0,
        like: Any = None,
        calibration: str | None = None,
    ):
        self.events = events
        self.class_prior = class_prior
        self.priors = priors
        self.sets = sets
        self.rows = rows
        self.random_state = random_state
        self.like = like
        self.calibration = calibration

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows. The first of them say how: grids and pairs are theirs, or those of ``like``.

        Start with some thousands of rows: below 1,000 there is a warning. The weights are learned again from the rows
        at hand where the rows have doubled since, and these are at least as many as the weights were learned from; else
        they stay, and ``weigh`` learns them.

        >>> import candide as cd
        >>> X, y = [[1.0], [2.0], [8.0], [9.0]] * 9, ["low", "low", "top", "top"] * 9
        >>> model = cd.BayesClassifier().partial_fit(X, y)
        >>> model.partial_fit(X[:4], y[:4]).fitted_.voices.said(40)
        'weights learned on 36 of 40 rows'
        >>> model.partial_fit(X, y).fitted_.voices.said(76)
        'weights learned on 36 of 76 rows'
        """
        first = not hasattr(self, "fitted_")
        super().partial_fit(X, y, classes, sample_weight)
        if first and self.like is None and (n := self.census_.n_rows) < _FEW_FIRST_ROWS:
            text = f"column kinds, bins and interactions were chosen from the first {wording.plural(n)} and stay so"
            remedy = f"start with {_FEW_FIRST_ROWS:,} rows or more, or pass like= a model fitted to more rows"
            remarks.warn([Remark("few-first-rows", text, remedy=remedy)])
        return self

    def typical_rows(self) -> dict[Any, list[Any]]:
        """The rows with which others are compared, in the units of the columns: ``pandas.DataFrame`` makes a table.

        ``speaks_for`` is the class for which a row just like it speaks most, ``nats`` by how much more than for the
        next. Empty where nothing is compared, as where there are fewer than two columns of numbers.

        >>> import numpy as np
        >>> import candide as cd
        >>> X = np.random.default_rng(0).normal(size=(400, 2))
        >>> rows = cd.BayesClassifier().fit({"a": X[:, 0], "b": X[:, 1]}, (X**2).sum(axis=1) < 1).typical_rows()
        >>> list(rows), len(rows["nats"])
        (['typical_row', 'a', 'b', 'speaks_for', 'nats'], 64)
        """
        from candide.explain.typical import typical_rows

        self._check_fitted()
        return typical_rows(self.fitted_)

    def log_density(self, X: Any) -> NDArray:
        """log p(x), (rows,), of the columns' own laws: a weighted score is no density.

        >>> import candide as cd
        >>> model = cd.BayesClassifier().fit([[1.0], [2.0], [8.0], [9.0]] * 9, ["low", "low", "top", "top"] * 9)
        >>> model.log_density([[1.5], [8.5]]).shape
        (2,)
        """
        return self._story.log_density(X)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Rows and labels drawn from the columns' own laws; of a bin its middle.

        >>> import candide as cd
        >>> model = cd.BayesClassifier().fit({"a": [1.0, 2.0, 8.0, 9.0] * 9}, ["low", "low", "top", "top"] * 9)
        >>> rows, labels = model.sample(3, random_state=0)
        >>> list(rows), len(labels)
        (['a'], 3)
        """
        return self._story.sample(n_samples, random_state)

    @property
    def _story(self) -> NaiveBayes:
        """Naive Bayes of the same columns."""
        self._check_fitted()
        return NaiveBayes.of(self.fitted_.story)

    def _read(self, X: Any) -> Table:
        table = super()._read(X)
        if table.is_sparse:
            what, remedy = "BayesClassifier takes no sparse matrix", "pass a dense array or a frame, or use TextNB"
            raise InputTypeError(what, remedy=remedy)
        return table

    def _learned(self, table: Table, y: NDArray, weight: Floats | None, labels: Labels) -> Fitted:
        from candide.rows.kinds import inspect
        from candide.tasks.models import plan_like

        like, known = (None, None) if self.like is None else plan_like(self.like)
        if like is not None:
            self._check_alike(table, like)
            if known is not None and known.voices is None:
                remedy = "fit a NaiveBayes with the same events, or use candide.fit(..., like=)"
                raise InputError("like is a model without weights", value=self.like, remedy=remedy)
            table = table if known is None else read_as_fitted(known, table)
        formats = self._formats(table) if like is None else NO_FORMATS
        table = formats.read(table)
        given = {"events": self.events, "sets": self.sets, "calibration": self.calibration}
        fitted = self._weighed(table, y, weight, labels, like, **given)
        if known is not None:
            fitted = replace(fitted, spelled=known.spelled, na=known.na)
        if like is None:
            fitted = replace(fitted, **formats.of_model(fitted.census.plan.columns, fitted.dates, fitted.times))
            columns = [] if is_one(self.events) else inspect(table)
            remarks.warn([*formats.remarks, *self._of_columns(columns, table)], stacklevel=3)
        return fitted

    @property
    def _documents(self) -> int:
        return _DOCUMENTS * self.rows

    def _check_alike(self, table: Table, plan: Plan) -> None:
        if self.events != "auto":
            raise InputError("events and like both say how columns are counted", remedy="pass one of them")
        there = set(table.names)
        for name in plan.columns:
            if name not in there:
                raise missing_column(name, plan)

    def _kept_params(self, plan: Plan) -> dict[str, Any]:
        """The plan says what ``like`` said, which may be a model of any size."""
        return {name: value for name, value in super()._kept_params(plan).items() if name != "like"}

    def __sklearn_clone__(self) -> Self:
        """An unfitted one with the same parameters, and with ``like`` as it is: a clone of that would know nothing."""
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
        return Settings(class_prior=self.class_prior, priors=self.priors)
