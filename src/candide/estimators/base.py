"""Classifier: what every estimator here is. Rows are read and counted; all else is asked of what was counted.

A concrete one says how it reads rows (``_read``, ``_alike``), what it counts (``_plan``, ``_event``) and how counts
become a model (``_settings``); its verbs are these.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.engines.text_formats import NO_FORMATS, TextFormats, read_as_fitted
from candide.errors import InputError
from candide.estimators.turns import turn
from candide.estimators.validation import (
    as_classes,
    checked_labels,
    checked_settings,
    checked_weights,
    feature_names,
    frozen,
)
from candide.estimators.verbs import Generative
from candide.events import EventModel
from candide.model.census import Census
from candide.model.fitted import EstimatorRecord, Fitted
from candide.model.plan import Part, Plan
from candide.model.settings import Settings
from candide.rows import remarks
from candide.rows.blocks import Floats
from candide.rows.labels import Labels
from candide.rows.remarks import Remark
from candide.rows.table import Name, Table
from candide.rows.targets import MOST_CLASSES, check_number_of_classes

if TYPE_CHECKING:
    from candide.rows.first_rows import FirstRows


class Classifier(Generative):
    """A classifier that knows p(class) and p(x | class), from counts that add."""

    feature_names_in_: NDArray
    _columns: tuple[Name, ...] | None  # of the rows it was fitted on; None: a file does not say
    _in_file: str = ""  # the name of its class in files
    _first_rows: "FirstRows | None" = None  # of a stream, while they may be read in another way
    _before: Mapping[str, Any] = MappingProxyType({})  # what a file means that does not name a parameter

    # What a kind of classifier gives.

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

        return arrays.count(table, y, weight, plan=plan.with_levels(table), labels=labels).bounded()

    def _classes(self, y: NDArray) -> Labels:
        """The classes of rows to fit on."""
        return Labels.of(y)

    def _announced(self, classes: Any) -> Labels | None:
        """The classes that ``partial_fit`` is told of beforehand."""
        raise NotImplementedError

    def _stream(self, y: NDArray, announced: Labels | None) -> Labels:
        """The classes of more rows."""
        raise NotImplementedError

    def _formats(self, table: Table) -> TextFormats:
        """How text columns of the first rows write numbers and dates."""
        return NO_FORMATS

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
        with turn(self):
            checked_settings(self)
            table = self._read(X)
            names = feature_names(table.names)
            y, weight = self._labelled(table, y, sample_weight)
            labels = self._classes(y)
            if weight is not None and not weight.all():
                self._classes(y[weight > 0])  # a row of weight 0 is left out, and its class may be with it
            self._check_number_of_classes(y, labels)
            fitted = self._learned(table, y, weight, labels)
            return self._keep(fitted, as_classes(fitted.labels, y.dtype), table.names, names)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows; however rows are divided among calls, the result is that of one ``fit``.

        The event "binned" is the exception: its grid is that of the first call, and all counts decide the bins.
        Up to 20,480 rows are kept in memory while later rows may change the kind of a column that ``events`` does not
        declare. They are not saved or pickled.

        Classes and levels may come at any time, and ``classes`` may announce them; scikit-learn's five want every class
        announced at the first call.

        >>> import candide as cd
        >>> model = cd.NaiveBayes().partial_fit([[1.0], [2.0]], ["a", "a"]).partial_fit([[8.0]], ["b"])
        >>> model.census_.class_weight.tolist()
        [2.0, 1.0]
        """
        with turn(self):
            checked_settings(self)
            announced = self._announced(classes)
            first = not hasattr(self, "fitted_")
            table = self._read(X) if first else self._alike(self._read(X), self.census_.plan)
            y, weight = self._labelled(table, y, sample_weight)
            labels = self._stream(y, announced)
            if first:
                names = feature_names(table.names)
                if announced is None:
                    self._check_number_of_classes(y, labels)
                fitted = self._learned(table, y, weight, labels)
                dtype = y.dtype if classes is None else np.asarray(classes).dtype
                self._keep(fitted, as_classes(fitted.labels, dtype), table.names, names)
                self._first_rows = self._begin(table, y, weight)
                return self
            return self._count_more(table, y, weight, labels)

    def _count_more(self, table: Table, y: NDArray, weight: Floats | None, labels: Labels) -> Self:
        """Count rows after the first chunk; all rows again if these change the kind of a column."""
        before = self._first_rows
        rows = before.plus(table, y, weight, self._formats) if before is not None and before.has_rows else before
        if before is not None and rows is not None and before.is_other(rows):
            labels = self.fitted_.labels.union(labels)[0]
            fitted = self._learned(rows.table, rows.y, rows.weight, labels)
        else:
            plan, table = self._plan_again(), read_as_fitted(self.fitted_, table)
            census = self._count(table, y, weight, plan, labels)
            remarks.warn(self._remarks(table, plan), stacklevel=3)
            fitted = self._with_rows(self.fitted_.plus(census), table, y, weight)
        remarks.warn(() if rows is None else rows.remarks(), stacklevel=3)
        self._change(fitted)
        self._first_rows = rows if rows is not None and rows.undecided and rows.has_rows else None
        return self

    def _begin(self, table: Table, y: NDArray, weight: Floats | None) -> "FirstRows | None":
        """The first rows, where they alone cannot say what every column is; else None."""
        return None

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take away rows counted earlier, as if they had never been seen.

        Classes and levels of which nothing is left are forgotten, unless ``classes`` or ``class_prior`` named them.
        Rows that the counts rule out are an error; counts cannot prove that a row was counted.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> model = cd.NaiveBayes().fit(X, y).unlearn({"age": [51], "job": [None]}, ["yes"])
        >>> model.census_.class_weight.tolist()
        [2.0, 1.0]
        """
        with turn(self):
            table = self._read_again(X, self.census_.plan)
            y, weight = self._labelled(table, y, sample_weight)
            part = self._count(table, y, weight, self._plan_again(), Labels.of(y))
            self._change(self.fitted_.minus(part))
            self._first_rows = self._first_rows and self._first_rows.without_rows()
            return self

    def _learned(self, table: Table, y: NDArray, weight: Floats | None, labels: Labels) -> Fitted:
        """What is fitted to the first rows. An estimate that cannot be had is an error, before anything is changed."""
        formats = self._formats(table)
        table = formats.read(table)
        plan = self._plan(table)
        census = self._count(table, y, weight, plan, labels)
        known = formats.of_model(census.plan.columns, table.dates, table.times)
        fitted = replace(self._fitted(census, len(table.names)), **known)
        if census.class_weight.all():  # a class whose rows weigh nothing, or that is announced, may get rows later
            self._settle(fitted)
        remarks.warn([*formats.remarks, *self._remarks(table, plan)], stacklevel=3)
        return fitted

    def _with_rows(self, fitted: Fitted, table: Table, y: NDArray, weight: Floats | None) -> Fitted:
        """What is fitted once more rows are counted, which are at hand."""
        return fitted

    def _labelled(self, table: Table, y: Any, sample_weight: Any) -> tuple[NDArray, Floats | None]:
        """Labels and weights of rows to count."""
        if table.n_rows == 0:
            raise InputError("Found array with 0 sample(s)", remedy="pass rows to count")
        return checked_labels(y, table.n_rows), checked_weights(sample_weight, table.n_rows)

    def _check_number_of_classes(self, y: NDArray, labels: Labels) -> None:
        """Refuse labels that are a quantity or an identifier, by the rule of ``candide.fit``."""
        if len(labels) > MOST_CLASSES:
            from candide.rows.kinds import LOOK

            n_rows = min(len(y), LOOK)
            remedy = "bin it, or declare the classes: partial_fit(X, y, classes=...)"
            check_number_of_classes(len(Labels.of(y[:n_rows])), n_rows, remedy=remedy)

    def _plan_again(self) -> Plan:
        """The plan under which more rows are counted."""
        return self.census_.plan

    def _fitted(self, census: Census, n_features: int, before: Fitted | None = None) -> Fitted:
        """Counts under the parameters of this estimator, with what is known beside those before."""
        parts = tuple(replace(part, event=self._event_of(part) or part.event) for part in census.plan.parts)
        if any(part.event != other.event for part, other in zip(parts, census.plan.parts, strict=True)):
            census = replace(census, plan=Plan(census.plan.columns, parts))
        settings = self._settings(census.labels, n_features)
        record = EstimatorRecord(self._in_file, self._kept_params(census.plan), n_features)
        if before is None:
            return Fitted(census, settings, estimator=record)
        return replace(before.with_census(census), settings=settings, estimator=record)

    def _event_of(self, part: Part) -> EventModel | None:
        """The event model that the parameters mean for a part; None: that of the part."""
        return self._event()

    def _kept_params(self, plan: Plan) -> dict[str, Any]:
        """The parameters for the record of the estimator: of an own class, those of the class it inherits from."""
        ours = next(cls for cls in type(self).__mro__ if "_in_file" in vars(cls))
        return {name: frozen(getattr(self, name)) for name in ours._get_param_names()}  # type: ignore[attr-defined]

    def _settle(self, fitted: Fitted) -> None:
        """An estimate that cannot be had is an error now."""
        fitted.model  # noqa: B018

    def _keep(self, fitted: Fitted, classes: NDArray, columns: tuple[Name, ...] | None, names: NDArray | None) -> Self:
        self.fitted_, self.classes_, self._columns, self._first_rows = fitted, classes, columns, None
        record = fitted.estimator
        self.n_features_in_ = len(columns or ()) if record is None else record.n_features
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _change(self, fitted: Fitted) -> Self:
        """Other counts of the same columns."""
        self.fitted_ = self._fitted(fitted.census, self.n_features_in_, fitted)
        self.classes_ = as_classes(fitted.labels, self.classes_.dtype)
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
        return self._with(self._own + other._own) if self._adds_to(other) else NotImplemented

    def __radd__(self, other: Any) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts with 0

    def __sub__(self, part: "Classifier") -> Self:
        """The classifier without the rows of ``part``, which must have been counted in it."""
        return self._with(self._own - part._own) if self._adds_to(part) else NotImplemented

    def scale(self, factor: float) -> Self:
        """The classifier in which every row so far counts ``factor`` times: forgetting, at 0.99 a day, say.

        >>> import candide as cd
        >>> cd.GaussianNB().fit([[1.0], [2.0], [8.0]], ["a", "a", "b"]).scale(0.5).class_count_.tolist()
        [1.0, 0.5]
        """
        return self._with(self._own.scale(factor))

    @property
    def _own(self) -> Fitted:
        """What is fitted, with its counts."""
        self._check_fitted()
        return self.fitted_

    def _with(self, changed: Fitted, **params: Any) -> Self:
        """A classifier of other counts of the same columns, or with other parameters."""
        other = self._unfitted().set_params(**params)
        checked_settings(other)
        fitted = other._fitted(changed.census, self.n_features_in_, changed)
        if len(fitted.labels):  # where nothing is left, something may be added
            fitted.model  # noqa: B018  an estimate that cannot be had is an error now
        names = getattr(self, "feature_names_in_", None)
        return other._keep(fitted, as_classes(fitted.labels, self.classes_.dtype), self._columns, names)

    # Files.

    def save(
        self,
        path: str | os.PathLike,
        *,
        detail: str | None = None,
        provenance: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> None:
        """Keep the model in a file; ``candide.load`` makes the same estimator of it.

        ``detail`` is "tally" (default: the counts, so that the file can be merged, updated and estimated again),
        "score" (parameters alone: it predicts) or "explain" (and how much each column tells); ``provenance`` is text
        by name that is kept with it, such as a date. A file that is there is replaced if it is a model; another one by
        ``force`` only.

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
        store.save(fitted, path, detail=detail, provenance=provenance, force=force)

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
        return cls(**{**cls._before, **record.params})._adopt(fitted)

    def _adopt(self, fitted: Fitted) -> Self:
        """This estimator of counts that were made under its parameters; an error where they were not."""
        plan, record = fitted.census.plan if fitted.has_counts else fitted.plan, fitted.estimator
        n_features = len(plan.columns) if record is None else record.n_features
        settings = self._settings(fitted.labels, n_features)
        if any(self._event_of(part) not in (None, part.event) for part in plan.parts) or (
            frozen(vars(settings)) != frozen(vars(fitted.settings))
        ):
            raise InputError(f"these counts were not made by {self!r}", remedy="use NaiveBayes.of for them")
        columns: tuple[Name, ...] | None = plan.columns
        if len(plan.columns) != n_features:  # of columns left out a file keeps no names
            columns = tuple(range(n_features)) if all(isinstance(name, int) for name in plan.columns) else None
        return self._keep(fitted, fitted.labels.array, columns, feature_names(plan.columns))
