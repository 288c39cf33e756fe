"""NaiveBayes: mixed columns, each with its own event model; GaussianBayes: all columns as one normal distribution."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data import notes
from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.notes import Note
from candide.data.table import Name, Table
from candide.engines.table_formats import (
    ColumnTextFormats,
    declared_columns,
    infer_text_formats,
    read_as_fitted,
    stray_notes,
)
from candide.errors import InputError, unknown_name_error
from candide.estimators.argument_checks import check_width, feature_names, warn_by_position
from candide.estimators.base import Classifier, counted_plan
from candide.estimators.sklearn_contract import takes_settings
from candide.events import EventModel, Gaussian
from candide.model.fitted import FittedModel, missing_column_error
from candide.model.input_columns import compare_columns
from candide.model.plan import Plan, PlanPart, expand_wildcard, is_single_event, make_plan, named_events
from candide.model.settings import Settings

if TYPE_CHECKING:
    from candide.data.column_types import ColumnSchema
    from candide.data.first_rows import FirstRows
    from candide.explain.words import TopWord

_MAX_RECORDED_EVENTS = 64  # entries of ``events``; of more a file has them in its plan alone


class NaiveBayes(Classifier):
    """Naive Bayes for any table: numbers, categories, counts, missing values, several event models at once.

    Parameters
    ----------
    events : "auto", an event model or its name, or a mapping from columns to event models
        The distribution of each column given the class. Columns not named are inferred: numbers are Gaussian, text,
        booleans and 0/1 columns are categories, sparse columns are counts. A tuple of columns is a group that is
        modelled together, without the independence assumption: ``{("length", "width"): Gaussian(covariance="full")}``.
    class_prior : "empirical", "uniform", a prior, probabilities in class order, or a mapping from class to probability
    estimate : "predictive", "mean", "map" or "mle", or a mapping from event names to these
        How a tally becomes a distribution; "predictive" averages over all parameters, so that a class with few rows
        gets wide distributions.
    param_priors : a prior, or a mapping from event names to priors; None for each event model's own
    select : number of columns to use, the strongest; or "evidence", all with positive evidence; None for all columns
        Selected from the counts, so that ``with_prior`` can select again; inside cross-validation each fold selects for
        itself.

    Examples
    --------
    >>> import candide as cd
    >>> X = {"age": [25, 32, 47, 51, None, 62], "job": ["cook", "cook", "smith", None, "smith", "smith"]}
    >>> model = cd.NaiveBayes().fit(X, ["no", "no", "yes", "yes", "yes", "yes"])
    >>> model.predict({"age": [30, None], "job": ["cook", "baker"]}).tolist()
    ['no', 'yes']

    Models add: the sum of models fitted to parts is the model of the whole.

    >>> older = {"age": [70], "job": ["smith"]}
    >>> both = model + cd.NaiveBayes().partial_fit(older, ["yes"])
    >>> both.counts_.class_weight.tolist()
    [2.0, 5.0]
    >>> both.scale(0.5).counts_.class_weight.tolist()
    [1.0, 2.5]
    >>> rows, labels = both.sample(3, random_state=0)
    >>> sorted(rows), len(labels)
    (['age', 'job'], 3)
    """

    _record_name = "NaiveBayes"
    _input_tags: ClassVar[dict[str, bool]] = dict.fromkeys(("allow_nan", "sparse", "categorical", "string"), True)
    _infers_column_types: ClassVar[bool] = True  # from the rows; a subclass may have its own rule

    events: Any

    @takes_settings(Settings)
    def __init__(self, events: Any = "auto", **settings: Any): ...

    def with_prior(self, param_priors: Any = None, **settings: Any) -> Self:
        """A new classifier of the same counts under other priors or settings, such as ``class_prior``.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> model = cd.NaiveBayes().fit(X, y)
        >>> rare = model.with_prior(class_prior={"no": 0.99, "yes": 0.01})
        >>> row = {"age": [40], "job": [None]}
        >>> model.predict(row).tolist(), rare.predict(row).tolist()
        (['yes'], ['no'])
        """
        params, names = self.get_params(deep=False), [field.name for field in fields(Settings)]
        for name, value in settings.items():
            if name in names and name not in params:
                remedy = f"leave {name} out, or fit a NaiveBayes"
                raise InputError(f"{name}={value!r} applies to naive Bayes only", value=value, remedy=remedy)
            if name not in params:
                raise unknown_name_error("setting", name, [name for name in names if name in params])
        changes = {"param_priors": param_priors, **settings}
        given = {name: value for name, value in changes.items() if value is not None}
        return self._copy_with(self._checked_fitted, **given)

    def top_words(self, label: Any, limit: int = 10, *, column: Any = None) -> "list[TopWord]":
        """The words of a text column with the largest log-odds of a class against all others, with counts.

        ``column`` may be left out where there is only one text column.

        >>> import candide as cd
        >>> mail = {"body": ["free prize inside for you", "see you at five then", "a free prize for all"]}
        >>> model = cd.NaiveBayes({"body": "text"}).fit(mail, ["spam", "ham", "spam"])
        >>> [top.word for top in model.top_words("spam", 3)]
        ['for', 'free', 'prize']
        """
        from candide.explain.words import top_words

        return top_words(self._checked_fitted, column, label, limit)

    @classmethod
    def from_fitted(cls, fitted: FittedModel) -> Self:
        """The classifier of a fitted model: from ``candide.fit``, or read from a file.

        >>> import candide as cd
        >>> fitted = cd.fit_model({"size": [1.0, 8.0], "kind": ["a", "b"]}, "kind", model="naive").fit_result.fitted
        >>> cd.NaiveBayes.from_fitted(fitted).classes_.tolist()
        ['a', 'b']
        """
        if cls._record_name != NaiveBayes._record_name:
            return super().from_fitted(fitted)
        plan = counted_plan(fitted)
        self = cls(_events(plan), **vars(fitted.settings))
        all_ints = all(isinstance(name, int) for name in plan.columns)
        columns = tuple(range(int(max(plan.columns)) + 1)) if all_ints else plan.columns
        self._set_fitted(fitted, fitted.labels.array, columns, feature_names(columns))
        self.n_features_in_ = len(columns)
        return self

    def _read(self, X: Any) -> Table:
        table = Table.from_data(X)
        if not table.names:
            shape = f"(shape=({table.n_rows}, 0))"
            raise InputError(f"Found array with 0 feature(s) {shape} while a minimum of 1 is required.")
        return table

    def _read_to_score(self, X: Any, stacklevel: int) -> Table:
        """Rows to score; a column that they lack is missing in every row, with a warning."""
        table, plan = self._read(X), self.fitted_.plan
        if table.names != self._columns and _has_names(plan.columns) and _has_names(table.names):
            ignored = [*(self._columns or ()), self.fitted_.target]
            notes.issue_warnings(compare_columns("X", table.names, plan.columns, ignored), stacklevel)
            absent = set(plan.columns) - set(table.names)
            columns = {name: table.column(name) for name in table.names if absent}
            gaps = {name: np.full(table.n_rows, None, object) for name in plan.columns if name in absent}
            table = Table.from_data(columns | gaps) if absent else table
        return read_as_fitted(self.fitted_, self._match_columns(table, plan))

    def _match_columns(self, table: Table, plan: Plan) -> Table:
        """By name where both have names; else by position in rows as wide as those counted."""
        mine, theirs = self._columns, table.names
        if mine is theirs or mine == theirs:
            return table
        was_named, is_named = _has_names(plan.columns), _has_names(theirs)
        present = set(theirs)
        missing = [name for name in plan.columns if name not in present]
        if was_named and is_named:
            if missing:
                raise missing_column_error(missing[0], plan, theirs)
            return table
        if not was_named and not is_named and not missing:
            if self.fitted_.has_counts or len(plan.columns) == self.n_features_in_:
                check_width(self, len(theirs))
            return table  # parameters of selected columns: the rows are wide enough
        if mine is None:
            raise missing_column_error(missing[0], plan)
        if was_named != is_named:
            warn_by_position(self, was_named)
        check_width(self, len(theirs))
        return table.rename_columns(mine)

    def _plan(self, table: Table) -> Plan:
        if is_single_event(self.events):
            return make_plan(table, self.events)
        from candide.data.column_types import infer_columns

        columns = infer_columns(table)
        plan = make_plan(table, self.events, columns)
        notes.issue_warnings(self._column_notes(columns, table), stacklevel=4)
        return plan

    def _formats(self, table: Table) -> ColumnTextFormats:
        return infer_text_formats(table, self.events)

    def _start_first_rows(self, table: Table, y: NDArray, weight: Floats | None) -> "FirstRows | None":
        if not self._infers_column_types or table.is_sparse:  # TextNB has no events
            return None
        from candide.data.first_rows import FirstRows

        as_text, as_numbers = declared_columns(self.events, table.names)
        names = [name for name in table.names if name not in as_text and name not in as_numbers]
        rows = FirstRows.from_chunk(table, y, weight, names, self._formats, as_numbers)
        return rows if rows.undecided else None

    def _column_notes(self, columns: "Sequence[ColumnSchema]", table: Table) -> list[Note]:
        """Notes on columns that are left out, unusual or ambiguous, unless ``events`` names them."""
        declared = self._declared_columns(table)
        columns = [column for column in columns if column.name not in declared]
        stray = stray_notes(table, [column.name for column in columns if column.kind in ("category", "identifier")])
        noted = {note.column for note in stray}
        odd = [c.note for c in columns if c.reason and not (c.kind == "category" and c.name in noted)]
        return [note if note.remedy else replace(note, remedy="name its event to use it") for note in [*stray, *odd]]

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        given: dict[str, Any] = {field.name: getattr(self, field.name, field.default) for field in fields(Settings)}
        return Settings(**given)

    def _classes(self, y: NDArray) -> Labels:
        labels = super()._classes(y)
        if len(labels) < 2:
            only = labels.values[0]
            remedy = "a classifier needs rows of at least two classes, of a weight above 0"
            raise InputError(f"y has one class only, {only!r}", value=only, remedy=remedy)
        return labels

    def _notes(self, table: Table, plan: Plan) -> list[Note]:
        from candide.data.column_types import later_number_notes
        from candide.engines.arrays import fraction_notes

        levels = [
            name
            for part in plan.parts
            if part.block_kind == "codes" and part.event.encoding.is_read_as_text and part.event.max_levels is None
            for name in part.columns
        ]
        if not levels:  # always of TextNB, which has no events
            return fraction_notes(table, plan)
        declared = self._declared_columns(table)
        undeclared = [name for name in levels if name not in declared]
        return [*fraction_notes(table, plan), *later_number_notes(table, undeclared)]

    def _declared_columns(self, table: Table) -> Collection[Name]:
        """The columns whose event model ``events`` names."""
        events = expand_wildcard(self.events, table.names)
        if is_single_event(events):
            return table.names
        return named_events(events) if isinstance(events, Mapping) else ()

    def _can_add(self, other: Any) -> bool:
        return isinstance(other, NaiveBayes)

    def _record_params(self, plan: Plan) -> dict[str, Any]:
        params = super()._record_params(plan)
        events = params.get("events")
        if isinstance(events, Mapping) and (len(events) > _MAX_RECORDED_EVENTS or events == _events(plan)):
            del params["events"]  # the plan has them
        return params

    def _adopt_fitted(self, fitted: FittedModel) -> Self:
        self = super()._adopt_fitted(fitted)
        if "events" in self.get_params() and fitted.estimator and "events" not in fitted.estimator.params:
            self.events = _events(counted_plan(fitted))
        return self


class GaussianBayes(NaiveBayes):
    """Gaussian classes with a full, tied, diagonal, spherical or fixed covariance: QDA, LDA, naive Bayes, nearest mean.

    Parameters
    ----------
    covariance : "full", "tied", "diagonal", "tied-diagonal", "spherical" or "fixed"
        Of each class its own ("full": quadratic discriminant analysis), one for all classes ("tied": linear
        discriminant analysis), without covariances ("diagonal": Gaussian naive Bayes; "tied-diagonal" the same with
        variances that classes share), one variance for all columns of a class ("spherical"), or the variance ``fixed``
        everywhere.
    shrinkage : None, a number in 0..1, "ledoit-wolf" or "oas"
        How far a "full" or "tied" covariance is pulled towards its mean variance times the identity. Columns should
        have the same units for a number and "oas". Fourth moments are counted for "ledoit-wolf" only.
    fixed : the variance when "fixed"
    class_prior, estimate, param_priors : as in NaiveBayes
        With ``estimate="predictive"`` classes are multivariate t. The default prior expects the variances within
        classes, with the weight of about one row, in any units: a singular covariance, a constant column or fewer rows
        than columns are allowed. ``estimate="mle"`` equals scikit-learn's QuadraticDiscriminantAnalysis ("full") and
        LinearDiscriminantAnalysis ("tied"); with ``param_priors="unbiased"`` it divides by n - 1, or n - k, not by n.

    Notes
    -----
    A row with a missing value is left out of the counts where columns are modelled together; when it is scored, what
    is missing is integrated out exactly.

    Examples
    --------
    >>> import numpy as np
    >>> import candide as cd
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["down", "up"], 100)  # two classes that differ only in the correlation of their columns
    >>> a = rng.normal(size=200)
    >>> X = np.column_stack([a, np.where(y == "up", a, -a) + 0.3 * rng.normal(size=200)])
    >>> float(cd.GaussianBayes("full").fit(X, y).score(X, y)), float(cd.GaussianBayes("diagonal").fit(X, y).score(X, y))
    (0.905, 0.535)

    These models add, too.

    >>> halves = [cd.GaussianBayes().fit(X[i::2], y[i::2]) for i in (0, 1)]
    >>> bool(np.allclose(sum(halves).predict_proba(X), cd.GaussianBayes().fit(X, y).predict_proba(X)))
    True
    """

    _record_name = "GaussianBayes"
    _input_tags: ClassVar[dict[str, bool]] = {**NaiveBayes._input_tags, "sparse": False, "categorical": False}
    select = None  # all columns, or it is another model

    covariance: str
    shrinkage: float | str | None
    fixed: float

    @takes_settings(Settings, without=["select"])
    def __init__(
        self, covariance: str = "full", shrinkage: float | str | None = None, *, fixed: float = 1.0, **settings: Any
    ): ...

    @property
    def events(self) -> Gaussian:
        """The one event model of all columns.

        >>> GaussianBayes("tied").events.covariance
        'tied'
        """
        return Gaussian(covariance=self.covariance, fixed=self.fixed, shrinkage=self.shrinkage)

    def _event(self) -> Gaussian:
        return self.events


def _has_names(columns: Sequence[Name]) -> bool:
    return any(isinstance(name, str) for name in columns)


def _events(plan: Plan) -> dict[Any, EventModel]:
    """The ``events`` of a plan: columns by name, or as a group where blocks of one event model must stay separate."""
    seen, parts = set[Name](), list[PlanPart]()
    for part in plan.parts:  # joint terms of columns that have terms of their own are selected again
        parts += [] if seen.issuperset(part.columns) else [part]
        seen |= set(part.columns)
    models, events = [part.event for part in parts], dict[Any, EventModel]()
    for part in parts:
        is_group = part.event.is_joint or (part.event.accepts_groups and models.count(part.event) > 1)
        events |= dict.fromkeys([part.columns] if is_group else part.columns, part.event)
    return events
