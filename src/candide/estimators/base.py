"""Classifier: what every estimator here is. Rows are read and counted; all else is asked of what was counted.

A concrete one says how it reads rows (``_read``, ``_alike``), what it counts (``_plan``, ``_event``) and how counts
become a model (``_settings``); its verbs are these.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.estimators.contract import Estimator
from candide.estimators.validation import (
    as_classes,
    checked_labels,
    checked_settings,
    checked_weights,
    feature_names,
    frozen,
    generator,
)
from candide.events import EventModel
from candide.model.census import Census
from candide.model.fitted import EstimatorRecord, Fitted
from candide.model.model import Model, ask
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.rows import remarks
from candide.rows.blocks import Block, Floats, not_finite
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.table import Name, Table

if TYPE_CHECKING:
    from candide.explain.features import FeatureScores
    from candide.explain.linear import Linear, Quadratic
    from candide.explain.rows import Decision


class Classifier(Estimator):
    """A classifier that knows p(class) and p(x | class), from counts that add."""

    fitted_: Fitted
    classes_: NDArray
    n_features_in_: int
    feature_names_in_: NDArray
    _columns: tuple[Name, ...] | None  # of the rows it was fitted on; None: a file does not say
    _in_file: str = ""  # the name of its class in files

    # What a kind of classifier gives.

    def _read(self, X: Any) -> Table:
        """The rows as a table."""
        raise NotImplementedError

    def _alike(self, table: Table, plan: Plan) -> Table:
        """The rows, which must have the columns of a plan, with these columns' names."""
        raise NotImplementedError

    def _plan(self, table: Table) -> Plan:
        """Which columns are counted as what."""
        raise NotImplementedError

    def _event(self) -> EventModel | None:
        """The event model of all columns, where there is one for all whatever they hold."""
        return None

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        """How counts become a model. Parameters that do not suit the counts are an error here."""
        raise NotImplementedError

    def _count(self, table: Table, y: NDArray, weight: Floats | None, plan: Plan, labels: Labels) -> Census:
        from candide.engines import arrays

        return arrays.count(table, y, weight, plan=plan.with_levels(table), labels=labels)

    def _classes(self, y: NDArray) -> Labels:
        """The classes of rows to fit on."""
        return Labels.of(y)

    def _announced(self, classes: Any) -> Labels | None:
        """The classes that ``partial_fit`` is told of beforehand."""
        raise NotImplementedError

    def _stream(self, y: NDArray, announced: Labels | None) -> Labels:
        """The classes of more rows."""
        raise NotImplementedError

    def _remarks(self, table: Table, plan: Plan) -> list[Remark]:
        """What a person should see of the rows."""
        return []

    # Counting.

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of ``X`` under their labels, forgetting what was counted before.

        ``sample_weight`` says how often each row counts; 0 leaves it out.

        >>> import candide as cd
        >>> cd.NaiveBayes().fit([[1.0], [2.0], [8.0]], ["a", "a", "b"]).classes_.tolist()
        ['a', 'b']
        """
        checked_settings(self)
        table = self._read(X)
        names = feature_names(table.names)
        y, weight = self._labelled(table, y, sample_weight)
        plan = self._plan(table)
        census = self._count(table, y, weight, plan, self._classes(y))
        fitted = self._fitted(census, len(table.names))
        self._settle(fitted)  # before anything is changed, so that an error changes nothing
        remarks.warn(self._remarks(table, plan))
        return self._keep(fitted, as_classes(census.labels, y.dtype), table.names, names)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows; however rows are divided among calls, the result is that of one ``fit``.

        Classes and levels may come at any time, and ``classes`` may announce them; scikit-learn's five want every class
        announced at the first call.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().partial_fit([[1.0], [2.0]], ["a", "a"]).partial_fit([[8.0]], ["b"])
        >>> model.census_.class_weight.tolist()
        [2.0, 1.0]
        """
        checked_settings(self)
        announced = self._announced(classes)
        first = not hasattr(self, "fitted_")
        table = self._read(X) if first else self._alike(self._read(X), self.census_.plan)
        names = feature_names(table.names) if first else None
        y, weight = self._labelled(table, y, sample_weight)
        plan = self._plan(table) if first else self._plan_again()
        census = self._count(table, y, weight, plan, self._stream(y, announced))
        remarks.warn(self._remarks(table, plan))
        if first:
            fitted = self._fitted(census, len(table.names))
            if census.class_weight.all():  # a class that is announced may get its rows later
                self._settle(fitted)
            dtype = y.dtype if classes is None else np.asarray(classes).dtype
            return self._keep(fitted, as_classes(census.labels, dtype), table.names, names)
        return self._change(self.census_ + census)

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take away rows counted earlier, as if they had never been seen. Classes and levels stay known.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> model = cd.NaiveBayes().fit(X, y).unlearn({"age": [51], "job": [None]}, ["yes"])
        >>> model.census_.class_weight.tolist()
        [2.0, 1.0]
        """
        table = self._alike(self._read(X), self.census_.plan)
        y, weight = self._labelled(table, y, sample_weight)
        return self._change(self.census_ - self._count(table, y, weight, self._plan_again(), Labels.of(y)))

    def _labelled(self, table: Table, y: Any, sample_weight: Any) -> tuple[NDArray, Floats | None]:
        """Labels and weights of rows to count."""
        if table.n_rows == 0:
            raise InputError("Found array with 0 sample(s)", remedy="pass rows to count")
        return checked_labels(y, table.n_rows), checked_weights(sample_weight, table.n_rows)

    def _plan_again(self) -> Plan:
        """The plan under which more rows are counted."""
        return self.census_.plan

    def _fitted(self, census: Census, n_features: int, before: Fitted | None = None) -> Fitted:
        """Counts under the parameters of this estimator, with what is known beside those before."""
        event = self._event()
        if event is not None and census.plan.parts[0].event != event:
            parts = tuple(replace(part, event=event) for part in census.plan.parts)
            census = replace(census, plan=Plan(census.plan.columns, parts))
        settings = self._settings(census.labels, n_features)
        record = EstimatorRecord(self._in_file, self._kept_params(census.plan), n_features)
        if before is None:
            return Fitted(census, settings, estimator=record)
        return replace(before.with_census(census), settings=settings, estimator=record)

    def _kept_params(self, plan: Plan) -> dict[str, Any]:
        """The parameters for the record of the estimator: of an own class, those of the class it inherits from."""
        ours = next(cls for cls in type(self).__mro__ if "_in_file" in vars(cls))
        return {name: frozen(getattr(self, name)) for name in ours._get_param_names()}  # type: ignore[attr-defined]

    def _settle(self, fitted: Fitted) -> None:
        """An estimate that cannot be had is an error now."""
        fitted.model  # noqa: B018

    def _keep(self, fitted: Fitted, classes: NDArray, columns: tuple[Name, ...] | None, names: NDArray | None) -> Self:
        self.fitted_, self.classes_, self._columns = fitted, classes, columns
        record = fitted.estimator
        self.n_features_in_ = len(columns or ()) if record is None else record.n_features
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _change(self, census: Census) -> Self:
        """Other counts of the same columns."""
        self.fitted_ = self._fitted(census, self.n_features_in_, self.fitted_)
        self.classes_ = as_classes(census.labels, self.classes_.dtype)
        return self

    # Algebra.

    @property
    def census_(self) -> Census:
        """What was counted: labels, class weights and one tally a block of columns.

        >>> import candide as cd
        >>> cd.GaussianNB().fit([[1.0], [2.0], [8.0]], ["a", "a", "b"]).census_.class_weight.tolist()
        [2.0, 1.0]
        """
        self._check_fitted()
        return self.fitted_.census

    def _adds_to(self, other: Any) -> bool:
        return isinstance(other, type(self)) or (isinstance(other, Classifier) and isinstance(self, type(other)))

    def __add__(self, other: "Classifier") -> Self:
        """The classifier of the rows of both; labels and levels are united."""
        return self._with(self.census_ + other.census_) if self._adds_to(other) else NotImplemented

    def __radd__(self, other: Any) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts with 0

    def __sub__(self, part: "Classifier") -> Self:
        """The classifier without the rows of ``part``, which must have been counted in it."""
        return self._with(self.census_ - part.census_) if self._adds_to(part) else NotImplemented

    def scale(self, factor: float) -> Self:
        """The classifier in which every row so far counts ``factor`` times: forgetting, at 0.99 a day, say.

        >>> import candide as cd
        >>> cd.GaussianNB().fit([[1.0], [2.0], [8.0]], ["a", "a", "b"]).scale(0.5).class_count_.tolist()
        [1.0, 0.5]
        """
        return self._with(self.census_.scale(factor))

    def _with(self, census: Census, **params: Any) -> Self:
        """A classifier of other counts of the same columns, or with other parameters."""
        other = self._unfitted().set_params(**params)
        fitted = other._fitted(census, self.n_features_in_, self.fitted_)
        fitted.model  # noqa: B018  an estimate that cannot be had is an error now
        names = getattr(self, "feature_names_in_", None)
        return other._keep(fitted, as_classes(census.labels, self.classes_.dtype), self._columns, names)

    # Scoring.

    def _model(self) -> Model:
        return self.fitted_.model

    def _blocks(self, X: Any) -> list[Block]:
        """Rows as the model's blocks."""
        return self.fitted_.plan.blocks(self._alike(self._read(X), self.fitted_.plan))

    def _apply(self, verb: Callable, X: Any) -> NDArray:
        self._check_fitted()
        blocks = self._blocks(X)
        if blocks[0].shape[0] == 0:
            return verb(self._model(), [np.empty((0, 0))] * len(blocks))
        return ask(verb, self._model(), [part.columns for part in self.fitted_.plan.parts], blocks, self._unusable(X))

    def _unusable(self, X: Any) -> Callable[[Any, Block], InputError]:
        """What says where a block holds a value that this classifier does not take."""
        return not_finite

    def predict(self, X: Any) -> NDArray:
        """The most probable class of each row.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [8.0], [9.0]], ["low", "low", "top", "top"])
        >>> model.predict([[1.5], [8.5]]).tolist()
        ['low', 'top']
        """
        codes = self._apply(Model.classify, X)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> NDArray:
        """p(class | x), (rows, classes), in the order of ``classes_``.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [8.0], [9.0]], ["low", "low", "top", "top"])
        >>> model.predict_proba([[5.0], [1.5]]).round(2).tolist()
        [[0.5, 0.5], [0.98, 0.02]]
        """
        return self._apply(Model.posterior, X)

    def predict_log_proba(self, X: Any) -> NDArray:
        """log p(class | x), (rows, classes).

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [8.0], [9.0]], ["low", "low", "top", "top"])
        >>> np.exp(model.predict_log_proba([[5.0]])).round(2).tolist()
        [[0.5, 0.5]]
        """
        return self._apply(Model.log_posterior, X)

    def predict_joint_log_proba(self, X: Any) -> NDArray:
        """log p(x, class), (rows, classes): the score before it is normalised.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [8.0], [9.0]], ["low", "low", "top", "top"])
        >>> joint = model.predict_joint_log_proba([[5.0]])  # summed over the classes it is log p(x)
        >>> bool(np.isclose(np.logaddexp.reduce(joint, axis=1), model.log_density([[5.0]])))
        True
        """
        return self._apply(Model.joint_log_likelihood, X)

    def log_density(self, X: Any) -> NDArray:
        """log p(x), (rows,): low where the model has seen nothing like the row. Complement has none: an error.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [8.0], [9.0]], ["low", "low", "top", "top"])
        >>> near, far = model.log_density([[1.5], [400.0]])
        >>> bool(near > far)
        True
        """
        self._check_fitted()
        if any(not part.event.has_density for part in self.fitted_.plan.parts):
            what = f"{type(self).__name__} has no density: the scores of complement are no log-probabilities"
            raise InputError(what, remedy="use multinomial")
        return self._apply(Model.log_density, X)

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
        from candide.engines.reading import Reading  # here, because arrays need no database
        from candide.tasks.predict import predict

        self._check_fitted()
        return predict(self.fitted_, source, out=out, keep=keep, reading=Reading(**reading))

    # Explaining.

    def linear(self) -> "Linear":
        """The classifier as weights and a bias, where its score is linear: ``w . x + b > 0`` says what it predicts.

        Gaussian columns need a variance that the classes share; other columns any estimate but "predictive" (for
        categories that too). Where the score is not linear an error says why, and what to change.

        >>> import candide as cd
        >>> shared = cd.events.Gaussian(covariance="tied-diagonal")  # means 1 and 5, variance 1
        >>> model = cd.NaiveBayes(shared, estimate="mle").fit([[0.0], [2.0], [4.0], [6.0]], ["a", "a", "b", "b"])
        >>> form = model.linear()
        >>> form.coef.round(6).tolist(), form.intercept.round(6).tolist()
        ([[4.0]], [-12.0])
        """
        from candide.explain.linear import linear

        self._check_fitted()
        return linear(self._model(), self.fitted_.plan.parts, self.fitted_.labels, self._blocks)

    def quadratic(self) -> "Quadratic":
        """The classifier as squares, weights and a bias: Gaussian columns may have a variance in each class.

        >>> import candide as cd
        >>> model = cd.NaiveBayes("gaussian", estimate="mle").fit([[0.0], [2.0], [3.0], [7.0]], ["a", "a", "b", "b"])
        >>> model.quadratic().square.round(6).tolist()  # (1/1 - 1/4) / 2, of variances 1 and 4
        [[0.375]]
        """
        from candide.explain.linear import quadratic

        self._check_fitted()
        return quadratic(self._model(), self.fitted_.plan.parts, self.fitted_.labels, self._blocks)

    def feature_scores(self) -> "FeatureScores":
        """How much each column tells of the class, strongest first, from the counts: evidence, information, a test.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().fit({"a": [1, 2, 8, 9.5], "b": ["x", "y", "x", "y"]}, [0, 0, 1, 1])
        >>> [score.column for score in model.feature_scores()]
        ['a', 'b']
        """
        from candide.explain.features import feature_scores

        self._check_fitted()
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

        self._check_fitted()
        return explain(self.fitted_, self._alike(self._read(X), self.fitted_.plan))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray]:
        """Rows and labels drawn from the model: an array where it was fitted on one, else a mapping of columns.

        >>> import candide as cd
        >>> rows, labels = cd.NaiveBayes().fit({"a": [1, 2, 8, 9.5]}, [0, 0, 1, 1]).sample(3, random_state=0)
        >>> list(rows), len(labels)
        (['a'], 3)
        """
        self._check_fitted()
        plan, columns = self.fitted_.plan, {}
        blocks, y = self._model().sample(n_samples, generator(random_state))
        for part, block in zip(plan.parts, blocks, strict=True):
            for j, name in enumerate(part.columns):
                columns[name] = _drawn(part.levels[j], block[:, j]) if part.has_levels else block[:, j]
        if all(isinstance(name, int) for name in plan.columns):
            absent = np.full(n_samples, np.nan)  # columns that were not chosen
            return np.column_stack([columns.get(j, absent) for j in range(self.n_features_in_)]), self.classes_[y]
        return {name: columns[name] for name in plan.columns}, self.classes_[y]

    # Files.

    def save(
        self, path: str | os.PathLike, *, detail: str | None = None, provenance: Mapping[str, str] | None = None
    ) -> None:
        """Keep the model in a file; ``candide.load`` makes the same estimator of it.

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

        self._check_fitted()
        fitted = self.fitted_
        if fitted.estimator is None or fitted.estimator.name != self._in_file:  # made of counts from elsewhere
            plan = fitted.census.plan if fitted.has_counts else fitted.plan
            record = EstimatorRecord(self._in_file, self._kept_params(plan), self.n_features_in_)
            fitted = replace(fitted, estimator=record)
        store.save(fitted, path, detail=detail, provenance=provenance)

    @classmethod
    def of(cls, fitted: Fitted) -> Self:
        """The estimator of counts that one of this class made: read from a file, say.

        >>> import candide as cd
        >>> model = cd.GaussianBayes("tied").fit([[1.0, 2.0], [2.0, 1.0], [8.0, 9.0], [9.0, 7.0]], ["a", "a", "b", "b"])
        >>> cd.GaussianBayes.of(model.fitted_).predict([[8.0, 8.0]]).tolist()
        ['b']
        """
        record = fitted.estimator
        if record is None or record.name != cls._in_file:
            raise InputError(f"these counts were not made by {cls.__name__}", remedy="use NaiveBayes.of for them")
        return cls(**record.params)._adopt(fitted)

    def _adopt(self, fitted: Fitted) -> Self:
        """This estimator of counts that were made under its parameters; an error where they were not."""
        plan, record = fitted.census.plan if fitted.has_counts else fitted.plan, fitted.estimator
        n_features = len(plan.columns) if record is None else record.n_features
        event, settings = self._event(), self._settings(fitted.labels, n_features)
        if (event is not None and any(part.event != event for part in plan.parts)) or (
            frozen(vars(settings)) != frozen(vars(fitted.settings))
        ):
            raise InputError(f"these counts were not made by {self!r}", remedy="use NaiveBayes.of for them")
        columns: tuple[Name, ...] | None = plan.columns
        if len(plan.columns) != n_features:  # of columns left out a file keeps no names
            columns = tuple(range(n_features)) if all(isinstance(name, int) for name in plan.columns) else None
        return self._keep(fitted, fitted.labels.array, columns, feature_names(plan.columns))


def _drawn(levels: Labels, codes: NDArray) -> NDArray:
    """The levels of some codes; a column that never held a value has none to draw."""
    return levels.array[codes] if len(levels) else np.full(len(codes), np.nan)
