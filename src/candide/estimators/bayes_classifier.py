"""BayesClassifier: any table, counted, and every column, pair and block of columns heard as much as it deserves."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from candide.errors import InputTypeError
from candide.estimators.naive_bayes import NaiveBayes
from candide.estimators.validation import as_classes, checked_settings, feature_names
from candide.model.fitted import EstimatorRecord
from candide.model.settings import Settings
from candide.rows import remarks
from candide.rows.labels import Labels

if TYPE_CHECKING:
    from candide.explain.voices import Voices


class BayesClassifier(NaiveBayes):
    """A Bayes classifier for any table, whose columns may depend on each other. Its score is a sum that can be read.

    Parameters
    ----------
    events : "auto", or a mapping from columns to event models
        Columns not named are inferred: numbers are binned, text, booleans and 0/1 columns are categories.
    class_prior : "jeffreys", "empirical", "uniform", a prior, shares in class order, or a mapping from class to share
    priors : a prior, or a mapping from event names to priors; None for each event model's own
    sets : whether pairs and triples of columns may speak together
    rows : how many rows the weights are learned from, at most; the counts are of all rows
    random_state : which rows these are, where there are more

    Examples
    --------
    >>> import numpy as np
    >>> import candide as cd
    >>> rng = np.random.default_rng(0)
    >>> X = {"a": rng.integers(0, 2, 400), "b": rng.integers(0, 2, 400)}
    >>> y = np.where(X["a"] == X["b"], "same", "other")  # neither column alone tells anything
    >>> cd.BayesClassifier().fit(X, y).predict({"a": [0, 0], "b": [0, 1]}).tolist()
    ['same', 'other']
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
    ):
        self.events = events
        self.class_prior = class_prior
        self.priors = priors
        self.sets = sets
        self.rows = rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of ``X`` under their labels, and learn how much each voice counts.

        >>> import candide as cd
        >>> cd.BayesClassifier().fit([[1.0], [2.0], [8.0], [9.0]], ["a", "a", "b", "b"]).classes_.tolist()
        ['a', 'b']
        """
        from candide.tasks.weigh import learn

        checked_settings(self)
        table = self._read(X)
        if table.is_sparse:
            what, remedy = "BayesClassifier takes no sparse matrix", "pass a dense array or a frame, or use TextNB"
            raise InputTypeError(what, remedy=remedy)
        names = feature_names(table.names)
        y, weight = self._labelled(table, y, sample_weight)
        labels = self._classes(y)
        settings = self._settings(labels, len(table.names))
        given = {"labels": labels, "events": self.events, "settings": settings, "sets": self.sets}
        fitted = learn(table, y, weight, **given, rows=self.rows, seed=self.random_state)
        record = EstimatorRecord(self._in_file, self._kept_params(fitted.census.plan), len(table.names))
        fitted = replace(fitted, estimator=record, dates=table.dates & set(fitted.census.plan.columns))
        fitted.model  # noqa: B018  an estimate that cannot be had is an error now
        remarks.warn(self._remarks(table, fitted.census.plan))
        return self._keep(fitted, as_classes(labels, y.dtype), table.names, names)

    def voices(self) -> "Voices":
        """Who speaks, strongest first: columns, pairs, triples and discriminants, with their weights.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        return Settings(class_prior=self.class_prior, priors=self.priors)
