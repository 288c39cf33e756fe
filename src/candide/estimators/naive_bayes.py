"""NaiveBayes: a table of mixed columns, each with its own event model, in one classifier."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from candide.engines import arrays
from candide.errors import InputError
from candide.estimators.base import GenerativeClassifier
from candide.estimators.validation import checked_classes, checked_labels, checked_weights
from candide.events import EventModel
from candide.explain.terms import TopTerm, top_terms
from candide.model.census import Census
from candide.model.fitted import Fitted, missing_column
from candide.model.model import Model
from candide.model.plan import Part, Plan, is_one, make_plan, named_events
from candide.model.settings import Settings
from candide.rows import remarks
from candide.rows.blocks import Block
from candide.rows.kinds import inspect
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.table import Table

if TYPE_CHECKING:
    from candide.explain.features import FeatureScores
    from candide.explain.rows import Decision


class NaiveBayes(GenerativeClassifier):
    """Naive Bayes for any table: numbers, categories, counts, missing values, several event models at once.

    Parameters
    ----------
    events : "auto", an event model or its name, or a mapping from columns to event models
        What each column is given the class. Columns not named are inferred: numbers are Gaussian, text,
        booleans and 0/1 columns are categories, sparse columns are counts. A tuple of columns is a group that is
        modelled together: ``{("length", "width"): Gaussian(covariance="full")}`` lifts the independence there.
    class_prior : "empirical", "uniform", a prior, shares in class order, or a mapping from class to share
    estimate : "predictive", "mean", "map" or "mle", or a mapping from event names to these
        How a tally becomes a distribution; "predictive" averages over all parameters, so a class seen
        only a few times is modest about what it knows.
    priors : a prior, or a mapping from event names to priors; None for each event model's own
    select : how many columns to use, the strongest; or "evidence", all that tell of the class; None for all columns
        Chosen from the counts after the counting, so that it may be chosen again (``with_prior``); inside
        cross-validation each fold chooses for itself.

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
    >>> both.scale(0.5).census_.class_weight.tolist()
    [1.0, 2.5]
    >>> rows, labels = both.sample(3, random_state=0)
    >>> sorted(rows), len(labels)
    (['age', 'job'], 3)
    """

    fitted_: Fitted

    def __init__(
        self,
        events: Any = "auto",
        class_prior: Any = "empirical",
        estimate: Any = "predictive",
        priors: Any = None,
        select: int | str | None = None,
    ):
        self.events = events
        self.class_prior = class_prior
        self.estimate = estimate
        self.priors = priors
        self.select = select

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of ``X`` under their labels, forgetting what was counted before."""
        table, y, weight = self._checked(X, y, sample_weight)
        labels = checked_classes(Labels.of(y))
        plan = self._plan(table).with_levels(table)
        census = arrays.count(table, y, weight, plan=plan, labels=labels)
        remarks.warn(arrays.fractions(table, plan))
        return self._keep(X, table, census, reset=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows. New classes and new levels may come at any time; ``classes`` may announce them."""
        table, y, weight = self._checked(X, y, sample_weight)
        first = not hasattr(self, "fitted_")
        plan = self._plan(table) if first else self._same_columns(X, table, self.census_.plan)
        labels = Labels.of(y)
        if classes is not None:
            labels = labels.union(Labels.of(np.asarray(classes)))[0]
        census = arrays.count(table, y, weight, plan=plan.with_levels(table), labels=labels)
        remarks.warn(arrays.fractions(table, plan))
        return self._keep(X, table, census if first else self.census_ + census, reset=first)

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take away rows counted earlier, as if they had never been seen. Classes and levels stay known.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> model = cd.NaiveBayes().fit(X, y).unlearn({"age": [51], "job": [None]}, ["yes"])
        >>> model.census_.class_weight.tolist()
        [2.0, 1.0]
        """
        check_is_fitted(self)
        table, y, weight = self._checked(X, y, sample_weight)
        plan = self._same_columns(X, table, self.census_.plan)
        part = arrays.count(table, y, weight, plan=plan.with_levels(table), labels=Labels.of(y))
        return self._keep(X, table, self.census_ - part, reset=False)

    @property
    def census_(self) -> Census:
        """What was counted: labels, class weights and one tally a block of columns."""
        check_is_fitted(self)
        return self.fitted_.census

    def with_prior(
        self, priors: Any = None, *, class_prior: Any = None, estimate: Any = None, select: int | str | None = None
    ) -> Self:
        """The same counts under other priors or with another choice of columns: a new classifier, no second look.

        What is not given stays; ``select`` of as many columns as there are takes them all.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> model = cd.NaiveBayes().fit(X, y)
        >>> sure = model.with_prior(class_prior={"no": 0.99, "yes": 0.01})
        >>> asked = {"age": [40], "job": [None]}
        >>> model.predict(asked).tolist(), sure.predict(asked).tolist()
        (['yes'], ['no'])
        """
        changes = {"priors": priors, "class_prior": class_prior, "estimate": estimate, "select": select}
        other = clone(self).set_params(**{name: value for name, value in changes.items() if value is not None})
        return other._copy_fit(self, self.census_)

    def __add__(self, other: "NaiveBayes") -> Self:
        """The classifier of the rows of both; labels and levels are united."""
        if not isinstance(other, NaiveBayes):
            return NotImplemented
        return clone(self)._copy_fit(self, self.census_ + other.census_)

    def __radd__(self, other: Any) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts with 0

    def __sub__(self, part: "NaiveBayes") -> Self:
        """The classifier without the rows of ``part``, which must have been counted in it."""
        if not isinstance(part, NaiveBayes):
            return NotImplemented
        return clone(self)._copy_fit(self, self.census_ - part.census_)

    def scale(self, factor: float) -> Self:
        """The classifier in which every row so far counts ``factor`` times: forgetting, at 0.99 a day, say."""
        return clone(self)._copy_fit(self, self.census_.scale(factor))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Rows and labels drawn from the model: an array where it was fitted on one, else a mapping of columns."""
        check_is_fitted(self)
        plan, columns = self.fitted_.plan, {}
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        blocks, y = self._estimated().sample(n_samples, rng)
        for part, block in zip(plan.parts, blocks, strict=True):
            for j, name in enumerate(part.columns):
                columns[name] = _drawn(part.levels[j], block[:, j]) if part.has_levels else block[:, j]
        if all(isinstance(name, int) for name in plan.columns):
            absent = np.full(n_samples, np.nan)  # columns that were not chosen
            return np.column_stack([columns.get(j, absent) for j in range(self.n_features_in_)]), self.classes_[y]
        return {name: columns[name] for name in plan.columns}, self.classes_[y]

    def feature_scores(self) -> "FeatureScores":
        """How much each column tells of the class, strongest first, from the counts: evidence, information, a test.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit({"a": [1, 2, 8, 9.5], "b": ["x", "y", "x", "y"]}, [0, 0, 1, 1])
        >>> [score.column for score in model.feature_scores()]
        ['a', 'b']
        """
        from candide.explain.features import feature_scores

        check_is_fitted(self)
        return feature_scores(self.fitted_)

    def explain(self, X: Any) -> "list[Decision]":
        """Why each row is given its class: what every column says for it against the runner-up, strongest first.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> [decision] = cd.NaiveBayes().fit(X, y).explain({"age": [49], "job": ["cook"]})
        >>> print(decision)
        yes, p = 0.928, against no, p = 0.072
        column       value   nats
        age             49  +3.37
        job           cook  -0.81
        class prior         +0.00
        """
        from candide.explain.rows import explain

        check_is_fitted(self)
        table = self._table(X)
        self._same_columns(X, table, self.fitted_.plan)
        return explain(self.fitted_, table)

    @staticmethod
    def _table(X: Any) -> Table:
        return Table.of(X)

    def top_terms(self, label: Any, n: int = 10, *, column: Any = None) -> list[TopTerm]:
        """The terms of a column of text that speak most for a class: by log-odds against all others, with counts.

        ``column`` may be left out where there is one column of text only.

        >>> import candide as cd
        >>> mail = {"body": ["free prize inside for you", "see you at five then", "a free prize for all"]}
        >>> model = cd.NaiveBayes({"body": "text"}).fit(mail, ["spam", "ham", "spam"])
        >>> [t.term for t in model.top_terms("spam", 3)]
        ['for', 'free', 'prize']
        """
        check_is_fitted(self)
        return top_terms(self.fitted_, column, label, n)

    def predict_table(
        self, source: Any, out: str | os.PathLike | None = None, *, keep: Sequence[str] = (), **reading: Any
    ) -> Any:
        """Score any source in a stream: into a file (the number of rows comes back), or into an Arrow table.

        The columns are those of ``keep``, then ``prediction``, ``p_<class>`` for every class, and ``log_density``.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> cd.NaiveBayes().fit(X, y).predict_table({"age": [30], "job": ["cook"]}).column_names
        ['prediction', 'p_no', 'p_yes', 'log_density']
        """
        from candide.engines.reading import Reading  # here and below: arrays need no database
        from candide.tasks.predict import predict

        check_is_fitted(self)
        return predict(self.fitted_, source, out=out, keep=keep, reading=Reading(**reading))

    def save(
        self, path: str | os.PathLike, *, detail: str | None = None, provenance: Mapping[str, str] | None = None
    ) -> None:
        """Keep the model in a file; ``candide.load`` reads it.

        ``detail`` is "tally" (default: the counts, so that the file can be merged, updated and estimated again),
        "score" (parameters alone: it predicts) or "explain" (and how much each column tells); ``provenance`` is text
        by name that is kept with it, such as a date.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "jobs.candide")
        >>> cd.NaiveBayes().fit(X, y).save(path, provenance={"source": "the manual"})
        >>> cd.load(path).predict(X).tolist()
        ['no', 'no', 'yes', 'yes']
        """
        from candide import store
        from candide.estimators.factory import name_in_file  # here, because it is built on this module

        check_is_fitted(self)
        fitted = replace(self.fitted_, estimator=name_in_file(self))
        store.save(fitted, path, detail=detail, provenance=provenance)

    @classmethod
    def of(cls, fitted: Fitted) -> Self:
        """The classifier of counts made elsewhere: by ``candide.fit``, or read from a file.

        >>> import candide as cd
        >>> from candide.demo import garden
        >>> cd.NaiveBayes.of(Fitted(garden())).classes_.tolist()
        ['lavender', 'sage', 'thyme']
        """
        plan, settings = fitted.census.plan if fitted.has_counts else fitted.plan, fitted.settings
        self = cls(_events(plan), settings.class_prior, settings.estimate, settings.priors, settings.select)
        self.fitted_, self.classes_, self.n_features_in_ = fitted, fitted.labels.array, len(plan.columns)
        if all(isinstance(name, int) for name in plan.columns):
            self.n_features_in_ = int(max(plan.columns)) + 1
        if all(isinstance(name, str) for name in plan.columns):
            self.feature_names_in_ = np.array(plan.columns, dtype=object)
        return self

    def _plan(self, table: Table) -> Plan:
        if is_one(self.events):
            return make_plan(table, self.events)
        columns = inspect(table)
        plan = make_plan(table, self.events, columns)
        used, asked = set(plan.columns), named_events(self.events) if isinstance(self.events, Mapping) else {}
        for column in (column for column in columns if column.why and column.name not in asked):
            code, what = ("odd-category", "taken for categories") if column.name in used else ("left-out", "left out")
            text = f"column {column.name!r} is {what}: {column.why}"
            remarks.warn([Remark(code, text, column.name, "name its event to use it")], stacklevel=3)
        return plan

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, NDArray, NDArray | None]:
        table = Table.of(X)
        if table.n_rows == 0:
            raise InputError("Found array with 0 sample(s); X has no rows")
        if not table.names:
            shape = f"(shape=({table.n_rows}, 0))"
            raise InputError(f"Found array with 0 feature(s) {shape} while a minimum of 1 is required.")
        return table, checked_labels(y, table.n_rows), checked_weights(sample_weight, table.n_rows)

    def _fitted(self, census: Census, before: Fitted | None) -> Fitted:
        """Counts under the settings of this estimator, with what was told of those before."""
        settings = Settings(self.class_prior, self.estimate, self.priors, self.select)
        return Fitted(census, settings) if before is None else replace(before.with_census(census), settings=settings)

    def _keep(self, X: Any, table: Table, census: Census, *, reset: bool) -> Self:
        fitted = self._fitted(census, None if reset else self.fitted_)
        if reset:
            if census.class_weight.all():  # a class that is announced may get its rows later
                fitted.model  # noqa: B018  estimated before anything is changed, so that an error changes nothing
            _check_feature_names(self, X, reset=True)
            self.n_features_in_ = len(table.names)
        self.fitted_, self.classes_ = fitted, census.labels.array
        return self

    def _copy_fit(self, other: "NaiveBayes", census: Census) -> Self:
        fitted = self._fitted(census, other.fitted_)
        fitted.model  # noqa: B018  an estimate that cannot be had is an error now
        self.fitted_, self.classes_, self.n_features_in_ = fitted, census.labels.array, other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_: NDArray = other.feature_names_in_
        return self

    def _estimated(self) -> Model:
        return self.fitted_.model

    def _parts(self) -> Sequence[Part]:
        return self.fitted_.plan.parts

    def _labels(self) -> Labels:
        return self.fitted_.labels

    def _same_columns(self, X: Any, table: Table, plan: Plan) -> Plan:
        """The plan, if the rows have its columns: by name, or by place in rows as wide as those counted."""
        if {*map(type, table.names), *map(type, plan.columns)} == {int}:
            wider = not self.fitted_.has_counts and len(table.names) > self.n_features_in_ > len(plan.columns)
            if len(table.names) != self.n_features_in_ and not wider:  # chosen columns do not say how many there were
                raise InputError(
                    f"X has {len(table.names)} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input"
                )
        elif missing := _missing(plan, table):
            _check_feature_names(self, X, reset=False)
            raise missing_column(missing[0], plan)
        return plan

    def _blocks(self, X: Any) -> tuple[list[Block], list[tuple]]:
        table = Table.of(X)
        plan = self._same_columns(X, table, self.fitted_.plan)
        return plan.blocks(table), [part.columns for part in plan.parts]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _events(plan: Plan) -> dict[Any, EventModel]:
    """What gives this plan again: columns by name, or as a group where blocks of one event model must stay apart."""
    every = [part.event for part in plan.parts]
    groups = [part.is_group or (part.event.groups and every.count(part.event) > 1) for part in plan.parts]
    keys = zip(plan.parts, groups, strict=True)
    return {key: part.event for part, group in keys for key in ([part.columns] if group else part.columns)}


def _drawn(levels: Labels, codes: NDArray) -> NDArray:
    """The levels of some codes; a column that never held a value has none to draw."""
    return levels.array[codes] if len(levels) else np.full(len(codes), np.nan)


def _missing(plan: Plan, table: Table) -> list[Any]:
    there = set(table.names)
    return [name for name in plan.columns if name not in there]
