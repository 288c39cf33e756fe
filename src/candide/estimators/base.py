"""Classifier: the base of every estimator. It counts rows; everything else is derived from the counts."""

import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.data import notes
from candide.data.blocks import Floats
from candide.data.labels import MAX_CLASSES, Labels, check_number_of_classes
from candide.data.notes import Note
from candide.data.table import Name, Table
from candide.engines.table_formats import NO_FORMATS, ColumnTextFormats, read_as_fitted
from candide.errors import InputError
from candide.estimators import argument_checks as checks
from candide.estimators.classifier_methods import GenerativeClassifier
from candide.estimators.sklearn_contract import lock_of
from candide.events import EventModel
from candide.model.counts import ModelCounts
from candide.model.fitted import EstimatorRecord, FittedModel
from candide.model.plan import Plan, PlanPart
from candide.model.settings import Settings

if TYPE_CHECKING:
    from candide.data.first_rows import FirstRows


class Classifier(GenerativeClassifier):
    """A generative classifier, p(class) and p(x | class), from counts that add.

    >>> import candide as cd
    >>> model = cd.NaiveBayes().fit([[1.0], [2.0], [8.0]], ["a", "a", "b"]).partial_fit([[9.0]], ["c"])
    >>> model.classes_.tolist(), model.counts_.class_weight.tolist()
    (['a', 'b', 'c'], [2.0, 1.0, 1.0])
    >>> model.forget([[9.0]], ["c"]).scale(0.5).counts_.class_weight.tolist()
    [1.0, 0.5]
    """

    feature_names_in_: NDArray
    _columns: tuple[Name, ...] | None  # of the rows it was fitted to; None: not in its file
    _record_name: str = ""  # the name of its class in files
    _record_defaults: Mapping[str, Any] = MappingProxyType({})  # parameters that a file may leave out
    _first_rows: "FirstRows | None" = None  # of a stream, while later rows may change their column types

    # What a kind of classifier defines.

    def _plan(self, table: Table) -> Plan:
        """Which columns are counted as what."""
        raise NotImplementedError

    def _event(self) -> EventModel | None:
        """The event model of all columns, if the parameters fix it."""
        return None

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        """How counts become a model. Parameters that do not suit the counts are an error here."""
        raise NotImplementedError

    def _count(self, table: Table, y: NDArray, weight: Floats | None, plan: Plan, labels: Labels) -> ModelCounts:
        from candide.engines import arrays

        return arrays.count_table(table, y, weight, plan=plan.with_levels(table), labels=labels).limit_levels()

    def _classes(self, y: NDArray) -> Labels:
        """The classes of rows to fit on."""
        return Labels.from_values(y)

    def _declared_classes(self, classes: Any) -> Labels | None:
        """The classes declared to ``partial_fit``."""
        return None if classes is None else Labels.from_values(np.asarray(classes)).declare()

    def _stream_labels(self, y: NDArray, declared: Labels | None) -> Labels:
        """The classes of more rows."""
        labels = Labels.from_values(y)
        return labels if declared is None else labels.union(declared)[0]

    def _formats(self, table: Table) -> ColumnTextFormats:
        """How text columns of the first rows write numbers and dates."""
        return NO_FORMATS

    def _notes(self, table: Table, plan: Plan) -> list[Note]:
        """Notes on the rows for the user."""
        return []

    def _start_first_rows(self, table: Table, y: NDArray, weight: Floats | None) -> "FirstRows | None":
        """The first rows, if they do not settle the type of every column; else None."""
        return None

    def _plan_for_more_rows(self) -> Plan:
        return self.counts_.plan

    def _event_of(self, part: PlanPart) -> EventModel | None:
        """The event model of a part by the parameters; None: that of the plan."""
        return self._event()

    def _relearn_if_due(self, fitted: FittedModel, table: Table, y: NDArray, weight: Floats | None) -> FittedModel:
        """The model with more rows counted, from which weights may be learned again."""
        return fitted

    # Counting.

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of ``X`` under their labels, replacing earlier counts; a row of weight 0 is left out."""
        with lock_of(self):
            checks.check_params(self)
            table = self._read(X)
            names = checks.feature_names(table.names)
            y, weight = self._check_labels_and_weights(table, y, sample_weight)
            labels = self._classes(y)
            if weight is not None and not weight.all():
                self._classes(y[weight > 0])  # a row of weight 0 is left out, and its class may be with it
            self._check_number_of_classes(y, labels)
            fitted = self._fit_rows(table, y, weight, labels)
            return self._set_fitted(fitted, checks.classes_array(fitted.labels, y.dtype), table.names, names)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows; however rows are divided among calls, the result is that of one ``fit``.

        The event "binned" is the exception: its grid is that of the first call, and all counts decide the bins.
        Up to 20,000 rows are kept in memory while later rows may change the type of a column that ``events`` does not
        declare. They are not saved or pickled.

        New classes and levels may appear in any call, and ``classes`` may declare them; the scikit-learn drop-ins
        require every class to be declared in the first call.
        """
        with lock_of(self):
            checks.check_params(self)
            declared = self._declared_classes(classes)
            is_first = not hasattr(self, "fitted_")
            table = self._read(X) if is_first else self._match_columns(self._read(X), self.counts_.plan)
            y, weight = self._check_labels_and_weights(table, y, sample_weight)
            labels = self._stream_labels(y, declared)
            if not is_first:
                return self._count_more(table, y, weight, labels)
            names = checks.feature_names(table.names)
            if declared is None:
                self._check_number_of_classes(y, labels)
            fitted = self._fit_rows(table, y, weight, labels)
            dtype = y.dtype if classes is None else np.asarray(classes).dtype
            self._set_fitted(fitted, checks.classes_array(fitted.labels, dtype), table.names, names)
            self._first_rows = self._start_first_rows(table, y, weight)
            return self

    def _count_more(self, table: Table, y: NDArray, weight: Floats | None, labels: Labels) -> Self:
        """Count rows after the first chunk; all rows again if these change the type of a column."""
        before = self._first_rows
        rows = before.append(table, y, weight, self._formats) if before is not None and before.has_rows else before
        if before is not None and rows is not None and before.has_changed_schema(rows):
            labels = self.fitted_.labels.union(labels)[0]
            fitted = self._fit_rows(*rows.join(), labels)
        else:
            plan, table = self._plan_for_more_rows(), read_as_fitted(self.fitted_, table)
            counts = self._count(table, y, weight, plan, labels)
            notes.issue_warnings(self._notes(table, plan), stacklevel=3)
            fitted = self._relearn_if_due(self.fitted_.add_counts(counts), table, y, weight)
        notes.issue_warnings(() if rows is None else rows.notes(), stacklevel=3)
        self._replace_counts(fitted)
        self._first_rows = rows if rows is not None and rows.undecided and rows.has_rows else None
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Subtract rows counted earlier, as if they had never been seen.

        Classes and levels without remaining rows are dropped, unless ``classes`` or ``class_prior`` declared them. Rows
        that the counts rule out are an error; counts cannot prove that a row was counted.
        """
        with lock_of(self):
            table = self._read_again(X, self.counts_.plan)
            y, weight = self._check_labels_and_weights(table, y, sample_weight)
            part = self._count(table, y, weight, self._plan_for_more_rows(), Labels.from_values(y))
            self._replace_counts(self.fitted_.subtract_counts(part))
            self._first_rows = self._first_rows and self._first_rows.without_rows()
            return self

    def _fit_rows(self, table: Table, y: NDArray, weight: Floats | None, labels: Labels) -> FittedModel:
        """The model of the first rows; an impossible estimate is an error before anything is changed."""
        formats = self._formats(table)
        table = formats.parse_table(table)
        plan = self._plan(table)
        counts = self._count(table, y, weight, plan, labels)
        reading = formats.model_record(counts.plan.columns, table.dates, table.times)
        fitted = replace(self._build_fitted(counts, len(table.names)), **reading)
        if counts.class_weight.all():  # a class of weight 0, or a declared one, may get rows later
            self._check_estimate(fitted)
        notes.issue_warnings([*formats.notes, *self._notes(table, plan)], stacklevel=3)
        return fitted

    def _check_labels_and_weights(self, table: Table, y: Any, sample_weight: Any) -> tuple[NDArray, Floats | None]:
        if table.n_rows == 0:
            raise InputError("Found array with 0 sample(s)", remedy="pass rows to count")
        return checks.checked_labels(y, table.n_rows), checks.checked_weights(sample_weight, table.n_rows)

    def _check_number_of_classes(self, y: NDArray, labels: Labels) -> None:
        """Refuse labels that are a quantity or an identifier, as ``candide.fit`` does."""
        if len(labels) > MAX_CLASSES:
            from candide.data.table import LIMITS

            n_rows = min(len(y), LIMITS.rows)
            remedy = "bin it, or declare the classes: partial_fit(X, y, classes=...)"
            check_number_of_classes(len(Labels.from_values(y[:n_rows])), n_rows, remedy=remedy)

    def _build_fitted(self, counts: ModelCounts, n_features: int, previous: FittedModel | None = None) -> FittedModel:
        """Counts under the parameters of this estimator, with what else the previous model holds."""
        parts = tuple(replace(part, event=self._event_of(part) or part.event) for part in counts.plan.parts)
        if any(part.event != other.event for part, other in zip(parts, counts.plan.parts, strict=True)):
            counts = replace(counts, plan=Plan(counts.plan.columns, parts))
        settings = self._settings(counts.labels, n_features)
        record = EstimatorRecord(self._record_name, self._record_params(counts.plan), n_features)
        if previous is None:
            return FittedModel(counts, settings, estimator=record)
        return replace(previous.with_counts(counts), settings=settings, estimator=record)

    def _record_params(self, plan: Plan) -> dict[str, Any]:
        """The parameters to store; of a user's subclass, those of the class it inherits from."""
        ours = next(cls for cls in type(self).__mro__ if "_record_name" in vars(cls))
        return {name: checks.freeze(getattr(self, name)) for name in ours._get_param_names()}  # type: ignore[attr-defined]

    def _check_estimate(self, fitted: FittedModel) -> None:
        """Raise the error of an impossible estimate now."""
        fitted.model  # noqa: B018

    def _set_fitted(
        self, fitted: FittedModel, classes: NDArray, columns: tuple[Name, ...] | None, names: NDArray | None
    ) -> Self:
        self.fitted_, self.classes_, self._columns, self._first_rows = fitted, classes, columns, None
        record = fitted.estimator
        self.n_features_in_ = len(columns or ()) if record is None else record.n_features
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _replace_counts(self, fitted: FittedModel) -> Self:
        self.fitted_ = self._build_fitted(fitted.counts, self.n_features_in_, fitted)
        self.classes_ = checks.classes_array(fitted.labels, self.classes_.dtype)
        return self

    # Algebra.

    @property
    def counts_(self) -> ModelCounts:
        """The counts: labels, class weights and one tally a block of columns."""
        return self._checked_fitted.counts

    def _can_add(self, other: Any) -> bool:
        return isinstance(other, type(self)) or (isinstance(other, Classifier) and isinstance(self, type(other)))

    def __add__(self, other: "Classifier") -> Self:
        """The classifier of the rows of both; labels and levels are united."""
        return self._copy_with(self._checked_fitted + other._checked_fitted) if self._can_add(other) else NotImplemented

    def __radd__(self, other: Any) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # sum() starts with 0

    def __sub__(self, part: "Classifier") -> Self:
        """The classifier without the rows of ``part``, which must have been counted in it."""
        return self._copy_with(self._checked_fitted - part._checked_fitted) if self._can_add(part) else NotImplemented

    def scale(self, factor: float) -> Self:
        """The classifier in which every row so far counts ``factor`` times, for example 0.99 a day."""
        return self._copy_with(self._checked_fitted.scale(factor))

    def _copy_with(self, changed: FittedModel, **params: Any) -> Self:
        """A classifier of other counts of the same columns, or with other parameters."""
        other = self._unfitted().set_params(**params)
        checks.check_params(other)
        fitted = other._build_fitted(changed.counts, self.n_features_in_, changed)
        if len(fitted.labels):  # an empty model may be added to
            fitted.model  # noqa: B018  an impossible estimate is an error now
        names = getattr(self, "feature_names_in_", None)
        return other._set_fitted(fitted, checks.classes_array(fitted.labels, self.classes_.dtype), self._columns, names)

    # Files.

    def save(
        self,
        path: str | os.PathLike,
        *,
        detail: str | None = None,
        provenance: Mapping[str, str] | None = None,
        force: bool = False,
    ) -> None:
        """Save the model in a file; ``candide.load`` restores the same estimator.

        ``detail`` is "tally" (default: the counts, so that the file can be merged, updated and estimated again),
        "score" (parameters alone, for predictions) or "explain" (and the importance of each column); ``provenance`` is
        text by name to store with it, such as a date. An existing file that is not a model is overwritten only with
        ``force``.

        >>> import os, tempfile, candide as cd
        >>> path = os.path.join(tempfile.mkdtemp(), "sizes.candide")
        >>> cd.NaiveBayes().fit([[1.0], [2.0], [9.0]], ["a", "a", "b"]).save(path, provenance={"source": "the manual"})
        >>> cd.load(path).predict([[8.0]]).tolist()
        ['b']
        """
        from candide import store

        fitted = self._checked_fitted
        if fitted.estimator is None or fitted.estimator.name != self._record_name:  # made from counts
            params = self._record_params(counted_plan(fitted))
            fitted = replace(fitted, estimator=EstimatorRecord(self._record_name, params, self.n_features_in_))
        store.save(fitted, path, detail=detail, provenance=provenance, force=force)

    @classmethod
    def from_fitted(cls, fitted: FittedModel) -> Self:
        """The estimator of a fitted model that this class made, for example one read from a file.

        >>> import candide as cd
        >>> model = cd.GaussianBayes("tied").fit([[1.0, 2.0], [2.0, 1.0], [8.0, 9.0], [9.0, 7.0]], ["a", "a", "b", "b"])
        >>> cd.GaussianBayes.from_fitted(model.fitted_).predict([[8.0, 8.0]]).tolist()
        ['b']
        """
        record = fitted.estimator
        if record is None or record.name != cls._record_name:
            raise InputError(f"these counts were not made by {cls.__name__}", remedy="use NaiveBayes.from_fitted")
        return cls(**{**cls._record_defaults, **record.params})._adopt_fitted(fitted)

    def _adopt_fitted(self, fitted: FittedModel) -> Self:
        """This estimator with a fitted model; an error unless that was made under its parameters."""
        plan, record = counted_plan(fitted), fitted.estimator
        n_features = len(plan.columns) if record is None else record.n_features
        settings = self._settings(fitted.labels, n_features)
        has_other_event = any(self._event_of(part) not in (None, part.event) for part in plan.parts)
        if has_other_event or checks.freeze(vars(settings)) != checks.freeze(vars(fitted.settings)):
            raise InputError(f"these counts were not made by {self!r}", remedy="use NaiveBayes.from_fitted")
        columns: tuple[Name, ...] | None = plan.columns
        if len(plan.columns) != n_features:  # a file does not store the names of unused columns
            columns = tuple(range(n_features)) if all(isinstance(name, int) for name in plan.columns) else None
        return self._set_fitted(fitted, fitted.labels.array, columns, checks.feature_names(plan.columns))


def counted_plan(fitted: FittedModel) -> Plan:
    return fitted.counts.plan if fitted.has_counts else fitted.plan
