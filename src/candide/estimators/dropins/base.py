"""The base of the five drop-ins: rows of finite numbers, counted as one block under one event model.

Each translates its parameters into an event model and settings, and adds scikit-learn's attributes. These follow the
parameters of the last ``fit`` or ``partial_fit``, as in scikit-learn, where a later ``set_params`` changes nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats
from candide.data.labels import Labels
from candide.data.notes import Note, issue_warnings
from candide.data.table import Table, positional_names
from candide.errors import InputError
from candide.estimators.base import Classifier
from candide.estimators.dropins import rows
from candide.estimators.validation import check_width, checked_labels, feature_names_error, warn_by_position
from candide.events import EventModel
from candide.model.counts import ModelCounts
from candide.model.model import Model
from candide.model.plan import Plan, PlanPart
from candide.tally import TALLIES
from candide.tally.base import sum_class_weights


class DropIn(Classifier):
    """A classifier with the name, parameters, attributes and results of one in scikit-learn."""

    _accepts_sparse: ClassVar[bool] = False  # whether it accepts sparse rows
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {}  # of its parameters
    _counting_params: ClassVar[tuple[str, ...]] = ()  # parameters that change what is counted

    def with_prior(self, **params: Any) -> Self:
        """A new classifier of the same counts under other parameters.

        >>> import numpy as np
        >>> from candide import BernoulliNB
        >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
        >>> np.exp(model.with_prior(alpha=0.5).feature_log_prob_).round(3).tolist()
        [[0.833, 0.5], [0.25, 0.75]]
        """
        for name in self._counting_params:
            if name in params and params[name] != getattr(self, name):
                raise InputError(f"{name}: this changes what is counted", value=params[name], remedy="fit again")
        return self._copy_with(self._checked_fitted, **params)

    def explain(self, X: Any, by: str = "term") -> list:
        """Why each row has its class: contributions to its log-odds against the runner-up, strongest first.

        >>> from candide import GaussianNB
        >>> [decision] = GaussianNB().fit([[1.0], [2.0], [8.0], [9.0]], ["a", "a", "b", "b"]).explain([[3.0]])
        >>> decision.prediction, decision.contributions[0].column
        ('a', 0)
        """
        self._apply(Model.classify, X)  # no value may be missing
        return super().explain(X, by)

    def _event(self) -> EventModel:
        raise NotImplementedError

    def _read(self, X: Any) -> Table:
        block = rows.read_block(X, type(self).__name__, sparse=self._accepts_sparse)
        names = rows.frame_names(X)
        return Table(positional_names(block.shape[1]) if names is None else names, block.shape[0], block)

    def _match_columns(self, table: Table, plan: Plan) -> Table:
        """By position; names that are there must be those of ``fit``, in the same order."""
        mine = getattr(self, "feature_names_in_", None)
        named = any(isinstance(name, str) for name in table.names[:1])
        if mine is not None and named:
            if tuple(mine) != table.names:
                raise feature_names_error(self, table.names)
        elif mine is not None or named:
            warn_by_position(self, mine is not None)
        check_width(self, len(table.names))
        return table

    def _check_number_of_classes(self, y: NDArray, labels: Labels) -> None:
        """Warn where other estimators refuse: scikit-learn's classes accept any number of labels."""
        try:
            super()._check_number_of_classes(y, labels)
        except InputError as error:
            issue_warnings([Note("many-classes", str(error))], stacklevel=3)

    def _plan(self, table: Table) -> Plan:
        columns = table.names if isinstance(table.names[0], str) else positional_names(len(table.names))
        return Plan(columns, (PlanPart(self._event(), columns),))

    def _plan_for_more_rows(self) -> Plan:
        [part] = self.counts_.plan.parts
        return Plan(self.counts_.plan.columns, (replace(part, event=self._event()),))

    def _count(self, table: Table, y: NDArray, weight: Floats | None, plan: Plan, labels: Labels) -> ModelCounts:
        codes, [part] = labels.encode(y), plan.parts
        if codes.max() == len(labels):
            new = Labels.from_values(y[codes == len(labels)])
            what = f"The target label(s) {new.array} in y do not exist in the initial classes {labels.array}"
            remedy = "pass every class in `classes` at the first partial_fit"
            raise InputError(what, value=new.values[0], remedy=remedy)
        class_weight = sum_class_weights(codes, weight, len(labels))
        part, tally = self._tally(table, part, codes, weight, class_weight)
        return ModelCounts(Plan(plan.columns, (part,)), labels, class_weight, (tally,), table.n_rows)

    def _tally(
        self, table: Table, part: PlanPart, codes: Codes, weight: Floats | None, class_weight: Floats
    ) -> tuple[PlanPart, Any]:
        block, spec, who = table.source, part.spec, type(self).__name__
        try:
            tally: Any = TALLIES[spec.kind].from_rows(block, codes, weight, n_classes=len(class_weight), spec=spec)
        except InputError:  # a tally itself refuses only negative values
            raise rows.negative_error(block, table.names, who) from None
        cell = tally.find_too_large()
        if cell is not None or rows.has_missing(block, tally.n, class_weight, weight):
            column = None if cell is None else tally.locate_cell(cell[1])[0]
            raise rows.not_finite_error(block, table.names, who, column)
        return part, tally

    def _declared_classes(self, classes: Any) -> Labels:
        """The classes of a stream, declared in its first call and never changed."""
        first = not hasattr(self, "fitted_")
        if classes is None:
            if first:
                raise InputError("classes must be passed on the first call to partial_fit.")
            return self.fitted_.labels
        given = checked_labels(classes, len(classes))
        labels = Labels.from_values(given)
        if not first and (len(labels) < len(given) or labels.values != self.fitted_.labels.values):
            what = f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
            raise InputError(what)
        if len(labels) < len(given):
            raise InputError(f"`classes={classes!r}` names a class twice; name each once")
        return labels.declare()

    def _stream_labels(self, y: NDArray, declared: Labels | None) -> Labels:
        assert declared is not None
        return declared

    def _model(self) -> Model:
        return self.fitted_.model.strict_model

    def _blocks(self, X: Any) -> list[Block]:
        return [self._match_columns(self._read(X), self.fitted_.plan).source]

    def _value_error_factory(self, X: Any) -> Callable[[Any, Block], InputError]:
        names = rows.frame_names(X)
        return lambda columns, block: self._value_error(block, names or columns)

    def _value_error(self, block: Block, names: Any) -> InputError:
        return rows.not_finite_error(block, names, type(self).__name__)

    @property
    def _tally_of_block(self) -> Any:
        """The tally of the only block."""
        return self.counts_.tallies[0]

    @property
    def _distribution(self) -> Any:
        """The distribution of the only block."""
        self._check_fitted()
        return self.fitted_.model.distributions[0]

    def _param_when_counted(self, name: str) -> Any:
        """A parameter as it was when rows were last counted."""
        self._check_fitted()
        record = self.fitted_.estimator
        return getattr(self, name) if record is None else record.params[name]

    @property
    def class_count_(self) -> Floats:
        """(classes,) weight of the rows of each class."""
        return read_only_view(self.counts_.class_weight)


def read_only_view(array: Floats) -> Floats:
    """A read-only view of the state, since a tally is immutable."""
    view = array.view()
    view.flags.writeable = False
    return view
