"""NaiveBayes: a table of mixed columns, each with its own event model, in one classifier."""

from collections.abc import Mapping, Sequence
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
from candide.estimators.base import Classifier
from candide.estimators.validation import check_width, checked_classes, feature_names, warn_by_position
from candide.events import EventModel
from candide.model.fitted import FittedModel, missing_column_error
from candide.model.input_columns import compare_columns
from candide.model.plan import Plan, PlanPart, expand_wildcard, is_single_event, make_plan, named_events
from candide.model.settings import Settings

if TYPE_CHECKING:
    from candide.data.column_types import ColumnSchema
    from candide.data.first_rows import FirstRows
    from candide.explain.words import TopWord

_MAX_RECORDED_EVENTS = 64  # entries of ``events``, from which on a file has them in its plan alone


class NaiveBayes(Classifier):
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
    >>> both.counts_.class_weight.tolist()
    [2.0, 5.0]
    >>> both.scale(0.5).counts_.class_weight.tolist()
    [1.0, 2.5]
    >>> rows, labels = both.sample(3, random_state=0)
    >>> sorted(rows), len(labels)
    (['age', 'job'], 3)
    """

    _record_name = "NaiveBayes"
    _infers_column_types: ClassVar[bool] = True  # of its columns, by the rows: a subclass may have a rule of its own

    def __init__(
        self,
        events: Any = "auto",
        class_prior: Any = "empirical",
        estimate: Any = "predictive",
        param_priors: Any = None,
        select: int | str | None = None,
    ):
        self.events = events
        self.class_prior = class_prior
        self.estimate = estimate
        self.param_priors = param_priors
        self.select = select

    def with_prior(self, param_priors: Any = None, **settings: Any) -> Self:
        """The same counts under other priors, or other settings, such as ``class_prior``: a new classifier.

        What is not given stays; ``select`` of as many columns as there are takes them all.

        >>> import candide as cd
        >>> X, y = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None]}, ["no", "no", "yes", "yes"]
        >>> model = cd.NaiveBayes().fit(X, y)
        >>> sure = model.with_prior(class_prior={"no": 0.99, "yes": 0.01})
        >>> asked = {"age": [40], "job": [None]}
        >>> model.predict(asked).tolist(), sure.predict(asked).tolist()
        (['yes'], ['no'])
        """
        for name in settings:
            if name not in self.get_params(deep=False):
                raise unknown_name_error("setting", name, [one.name for one in fields(Settings)])
        changes = {"param_priors": param_priors, **settings}
        return self._copy_with(
            self._checked_fitted, **{name: value for name, value in changes.items() if value is not None}
        )

    def top_words(self, label: Any, limit: int = 10, *, column: Any = None) -> "list[TopWord]":
        """The terms of a column of text that speak most for a class: by log-odds against all others, with counts.

        ``column`` may be left out where there is one column of text only.

        >>> import candide as cd
        >>> mail = {"body": ["free prize inside for you", "see you at five then", "a free prize for all"]}
        >>> model = cd.NaiveBayes({"body": "text"}).fit(mail, ["spam", "ham", "spam"])
        >>> [t.word for t in model.top_words("spam", 3)]
        ['for', 'free', 'prize']
        """
        from candide.explain.words import top_words

        self._check_fitted()
        return top_words(self.fitted_, column, label, limit)

    @classmethod
    def from_fitted(cls, fitted: FittedModel) -> Self:
        """The classifier of counts made elsewhere: by ``candide.fit``, or read from a file.

        >>> import candide as cd
        >>> from candide.demo import garden
        >>> cd.NaiveBayes.from_fitted(FittedModel(garden())).classes_.tolist()
        ['lavender', 'sage', 'thyme']
        """
        if cls._record_name != NaiveBayes._record_name:
            return super().from_fitted(fitted)
        plan, settings = fitted.counts.plan if fitted.has_counts else fitted.plan, fitted.settings
        self = cls(_events(plan), **vars(settings))
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
        """Rows to be scored; a column that they lack is missing in every row, with a warning."""
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
        named, names = _has_names(plan.columns), _has_names(theirs)
        there = set(theirs)
        missing = [name for name in plan.columns if name not in there]
        if named and names:
            if missing:
                raise missing_column_error(missing[0], plan, theirs)
            return table
        if not named and not names and not missing:
            if self.fitted_.has_counts or len(plan.columns) == self.n_features_in_:
                check_width(self, len(theirs))
            return table  # parameters of chosen columns: rows wide enough to have these
        if mine is None:
            raise missing_column_error(missing[0], plan)
        if named != names:
            warn_by_position(self, named)
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
        """Remarks on columns that are left out, or strange, or open to doubt, where nobody asked for that."""
        asked = expand_wildcard(self.events, table.names)
        asked = named_events(asked) if isinstance(asked, Mapping) else {}
        columns = [column for column in columns if column.name not in asked]
        stray = stray_notes(table, [column.name for column in columns if column.kind in ("category", "identifier")])
        named = {note.column for note in stray}
        odd = [c for c in columns if c.reason and not (c.kind == "category" and c.name in named)]
        told = [*stray, *(column.note for column in odd)]
        return [one if one.remedy else replace(one, remedy="name its event to use it") for one in told]

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        given: dict[str, Any] = {one.name: getattr(self, one.name, one.default) for one in fields(Settings)}
        return Settings(**given)

    def _classes(self, y: NDArray) -> Labels:
        return checked_classes(super()._classes(y))

    def _declared_classes(self, classes: Any) -> Labels | None:
        return None if classes is None else Labels.from_values(np.asarray(classes)).declare()

    def _stream_labels(self, y: NDArray, announced: Labels | None) -> Labels:
        labels = Labels.from_values(y)
        return labels if announced is None else labels.union(announced)[0]

    def _notes(self, table: Table, plan: Plan) -> list[Note]:
        from candide.data.column_types import later_number_notes
        from candide.engines.arrays import fraction_notes

        parts = [part for part in plan.parts if part.block_kind == "codes" and part.event.encoding.is_read_as_text]
        levels = [name for part in parts if part.event.max_levels is None for name in part.columns]
        if not levels:
            return fraction_notes(table, plan)
        asked = expand_wildcard(self.events, table.names)
        asked = table.names if is_single_event(asked) else named_events(asked) if isinstance(asked, Mapping) else ()
        return [
            *fraction_notes(table, plan),
            *later_number_notes(table, [name for name in levels if name not in asked]),
        ]

    def _can_add(self, other: Any) -> bool:
        return isinstance(other, NaiveBayes)

    def _record_params(self, plan: Plan) -> dict[str, Any]:
        params = super()._record_params(plan)
        events = params.get("events")
        if isinstance(events, Mapping) and (len(events) > _MAX_RECORDED_EVENTS or events == _events(plan)):
            del params["events"]  # the plan says as much
        return params

    def _adopt_fitted(self, fitted: FittedModel) -> Self:
        self = super()._adopt_fitted(fitted)
        if "events" in self.get_params() and fitted.estimator and "events" not in fitted.estimator.params:
            self.events = _events(fitted.counts.plan if fitted.has_counts else fitted.plan)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _has_names(columns: Sequence[Name]) -> bool:
    return any(isinstance(name, str) for name in columns)


def _events(plan: Plan) -> dict[Any, EventModel]:
    """What gives this plan again: columns by name, or as a group where blocks of one event model must stay apart."""
    met, parts = set[Name](), list[PlanPart]()
    for part in plan.parts:  # what stands beside the laws of the same columns is composed anew
        parts += [] if met.issuperset(part.columns) else [part]
        met |= set(part.columns)
    every = [part.event for part in parts]
    groups = [part.event.is_joint or (part.event.accepts_groups and every.count(part.event) > 1) for part in parts]
    keys = zip(parts, groups, strict=True)
    return {key: part.event for part, group in keys for key in ([part.columns] if group else part.columns)}
