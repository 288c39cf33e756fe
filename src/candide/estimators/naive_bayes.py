"""NaiveBayes: a table of mixed columns, each with its own event model, in one classifier."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from candide.census import Census
from candide.engines import arrays
from candide.errors import InputError
from candide.estimators.base import GenerativeClassifier
from candide.estimators.validation import checked_classes, checked_labels, checked_weights
from candide.labels import Labels
from candide.model import Model, estimate
from candide.plan import Plan, make_plan
from candide.table import Table
from candide.tally import Block


class NaiveBayes(GenerativeClassifier):
    """Naive Bayes for any table: numbers, categories, counts, missing values, several event models at once.

    Parameters
    ----------
    events : "auto", an event model or its name, or a mapping from columns to event models
        What each column is given the class. Columns not named are inferred: numbers are Gaussian, text,
        booleans and 0/1 columns are categories, sparse columns are counts.
    class_prior : "empirical", "uniform", a prior, shares in class order, or a mapping from class to share
    estimate : "predictive", "mean", "map" or "mle"
        How a tally becomes a distribution; "predictive" averages over all parameters, so a class seen
        only a few times is modest about what it knows.
    priors : a prior, or a mapping from event names to priors; None for each event model's own

    Examples
    --------
    >>> import candide as cd
    >>> X = {"age": [25, 32, 47, 51, None, 62], "job": ["cook", "cook", "smith", None, "smith", "smith"]}
    >>> model = cd.NaiveBayes().fit(X, ["no", "no", "yes", "yes", "yes", "yes"])
    >>> model.predict({"age": [30, None], "job": ["cook", "baker"]}).tolist()
    ['no', 'yes']

    Models add: fit the parts apart, and the sum is the whole.

    >>> older = {"age": [70], "job": ["smith"]}
    >>> both = model + cd.NaiveBayes().partial_fit(older, ["yes"])
    >>> both.census_.class_weight.tolist()
    [2.0, 5.0]
    """

    def __init__(
        self, events: Any = "auto", class_prior: Any = "empirical", estimate: str = "predictive", priors: Any = None
    ):
        self.events = events
        self.class_prior = class_prior
        self.estimate = estimate
        self.priors = priors

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of ``X`` under their labels, forgetting what was counted before."""
        table, y, weight = self._checked(X, y, sample_weight)
        labels = checked_classes(Labels.of(y))
        plan = make_plan(table, self.events).grown(table)
        return self._keep(X, arrays.count(table, y, weight, plan=plan, labels=labels), reset=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows. New classes and new levels may come at any time; ``classes`` may announce them."""
        table, y, weight = self._checked(X, y, sample_weight)
        first = not hasattr(self, "census_")
        plan = make_plan(table, self.events) if first else self._same_columns(X, table)
        labels = Labels.of(y)
        if classes is not None:
            labels = labels.union(Labels.of(np.asarray(classes)))[0]
        census = arrays.count(table, y, weight, plan=plan.grown(table), labels=labels)
        return self._keep(X, census if first else self.census_ + census, reset=first)

    def with_prior(self, priors: Any = None, *, class_prior: Any = None, estimate: str | None = None) -> Self:
        """The same counts under other priors: a new classifier, with no second look at the data."""
        check_is_fitted(self)
        other = clone(self)
        changes = {"priors": priors, "class_prior": class_prior, "estimate": estimate}
        other.set_params(**{name: value for name, value in changes.items() if value is not None})
        return other._copy_fit(self, self.census_)

    def __add__(self, other: "NaiveBayes") -> Self:
        """The classifier of the rows of both; labels and levels are united."""
        check_is_fitted(self)
        check_is_fitted(other)
        return clone(self)._copy_fit(self, self.census_ + other.census_)

    def __radd__(self, other: Any) -> Self:
        if other == 0:  # sum() starts with 0
            return self
        return NotImplemented

    def __sub__(self, part: "NaiveBayes") -> Self:
        """The classifier without the rows of ``part``, which must have been counted in it."""
        check_is_fitted(self)
        check_is_fitted(part)
        return clone(self)._copy_fit(self, self.census_ - part.census_)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Rows and labels drawn from the model: an array where it was fitted on one, else a mapping of columns."""
        check_is_fitted(self)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        blocks, y = self._estimated().sample(n_samples, rng)
        plan, columns = self.census_.plan, {}
        for part, block in zip(plan.parts, blocks, strict=True):
            for j, name in enumerate(part.columns):
                columns[name] = part.levels[j].array[block[:, j]] if part.has_levels else block[:, j]
        if all(isinstance(name, int) for name in plan.columns):
            return np.column_stack([columns[name] for name in plan.columns]), self.classes_[y]
        return {name: columns[name] for name in plan.columns}, self.classes_[y]

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, NDArray, NDArray | None]:
        table = Table.of(X)
        if table.n_rows == 0:
            raise InputError("Found array with 0 sample(s); X has no rows")
        if not table.names:
            raise InputError(
                f"Found array with 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required."
            )
        return table, checked_labels(y, table.n_rows), checked_weights(sample_weight, table.n_rows)

    def _keep(self, X: Any, census: Census, *, reset: bool) -> Self:
        model = (
            self._estimate(census) if reset else None
        )  # before anything is changed, so that an error changes nothing
        if reset:
            _check_feature_names(self, X, reset=True)
            self.n_features_in_ = len(census.plan.columns)
        self.census_, self._model = census, model
        self.classes_ = census.labels.array
        return self

    def _copy_fit(self, fitted: "NaiveBayes", census: Census) -> Self:
        self._model = self._estimate(census)
        self.census_, self.classes_, self.n_features_in_ = census, census.labels.array, fitted.n_features_in_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        return self

    def _estimate(self, census: Census) -> Model:
        return estimate(census, self.class_prior, self.estimate, self.priors)

    def _estimated(self) -> Model:
        if self._model is None:
            self._model = self._estimate(self.census_)
        return self._model

    def _same_columns(self, X: Any, table: Table) -> Plan:
        plan = self.census_.plan
        if table.names != plan.columns:
            missing = [name for name in plan.columns if name not in table.names]
            if all(isinstance(name, int) for name in table.names + plan.columns):
                raise InputError(
                    f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                    f"{len(plan.columns)} features as input"
                )
            if missing:
                _check_feature_names(self, X, reset=False)
                raise InputError(f"column {missing[0]!r} is missing; the model was fitted on {list(plan.columns)}")
        return plan

    def _blocks(self, X: Any) -> tuple[list[Block], list[tuple]]:
        table = Table.of(X)
        plan = self._same_columns(X, table)
        return plan.blocks(table), [part.columns for part in plan.parts]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
