"""The base of the scikit-learn drop-ins: rows of finite numbers, counted as one block under one event model.

Each translates its parameters into an event model and settings, and adds scikit-learn's attributes. These follow the
parameters of the last ``fit`` or ``partial_fit``, as in scikit-learn, where a later ``set_params`` changes nothing.

An array of numbers is the block itself, without a copy and without a pass over it. Whether every value is finite shows
in the tally (a NaN lowers the weight present, an infinity makes a sum infinite); only then is the value located.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Csr, Floats, find_first, find_largest
from candide.data.labels import Labels
from candide.data.notes import Note, issue_warnings
from candide.data.table import Table, positional_names
from candide.errors import InputError, InputTypeError
from candide.estimators.argument_checks import check_width, checked_labels, feature_names_error, warn_by_position
from candide.estimators.base import Classifier
from candide.events import EventModel
from candide.model.counts import ModelCounts
from candide.model.model import Model
from candide.model.plan import Plan, PlanPart
from candide.tally import TALLIES
from candide.tally.base import sum_class_weights

ROWS_PER_CHUNK = 65536  # searched together for a bad value
_NATIVE_DTYPES = (np.float64, np.float32, np.int64, np.int32)  # of the sparse kernels


class DropIn(Classifier):
    """A classifier with the name, parameters, attributes and results of one in scikit-learn."""

    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {}
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
        """Why each row has its class: contributions to its log-odds against the runner-up, strongest first."""
        self._apply(Model.classify, X)  # no value may be missing
        return super().explain(X, by)

    def _event(self) -> EventModel:
        raise NotImplementedError

    def _read(self, X: Any) -> Table:
        block, names = read_block(X, type(self).__name__, sparse=self._input_tags.get("sparse", False)), frame_names(X)
        return Table(positional_names(block.shape[1]) if names is None else names, block.shape[0], block)

    def _match_columns(self, table: Table, plan: Plan) -> Table:
        """By position; if there are names, they must be those of ``fit``, in the same order."""
        mine = getattr(self, "feature_names_in_", None)
        is_named = any(isinstance(name, str) for name in table.names[:1])
        if mine is not None and is_named:
            if tuple(mine) != table.names:
                raise feature_names_error(self, table.names)
        elif mine is not None or is_named:
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
        block, spec, name = table.source, part.spec, type(self).__name__
        try:
            tally: Any = TALLIES[spec.kind].from_rows(block, codes, weight, n_classes=len(class_weight), spec=spec)
        except InputError:  # a tally itself refuses only negative values
            raise negative_error(block, table.names, name) from None
        cell = tally.find_too_large()
        if cell is not None or _has_missing(block, tally.n, class_weight, weight):
            column = None if cell is None else tally.locate_cell(cell[1])[0]
            raise not_finite_error(block, table.names, name, column)
        return part, tally

    def _declared_classes(self, classes: Any) -> Labels:
        """The classes of a stream, declared in its first call and never changed."""
        is_first = not hasattr(self, "fitted_")
        if classes is None:
            if is_first:
                raise InputError("classes must be passed on the first call to partial_fit.")
            return self.fitted_.labels
        given = checked_labels(classes, len(classes))
        labels = Labels.from_values(given)
        if not is_first and (len(labels) < len(given) or labels.values != self.fitted_.labels.values):
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
        names = frame_names(X)
        return lambda columns, block: self._value_error(block, names or columns)

    def _value_error(self, block: Block, names: Any) -> InputError:
        return not_finite_error(block, names, type(self).__name__)

    @property
    def _tally_of_block(self) -> Any:
        return self.counts_.tallies[0]

    @property
    def _distribution(self) -> Any:
        return self._checked_fitted.model.distributions[0]

    def _param_when_counted(self, name: str) -> Any:
        """A parameter as it was when rows were last counted."""
        record = self._checked_fitted.estimator
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


def read_block(X: Any, estimator_name: str, *, sparse: bool) -> Block:
    """The rows of anything array-like; ``estimator_name`` is for errors."""
    block: Block = X
    if sparse and hasattr(X, "tocsr"):
        rows = X.tocsr()
        if rows.ndim != 2 or rows.dtype.kind not in "fiub":
            _check_array(rows, estimator_name, accept_sparse="csr")
            raise InputTypeError(f"cannot use a sparse array of {rows.ndim} dimensions and type {rows.dtype}")
        data = rows.data if rows.dtype in _NATIVE_DTYPES else rows.data.astype(np.float64)
        block = Csr(data, rows.indices, rows.indptr, rows.shape[1])
    elif not _is_number_array(X):
        block = _array(X, estimator_name)
    if 0 in block.shape:
        what = "sample" if block.shape[0] == 0 else "feature"
        raise InputError(
            f"Found array with 0 {what}(s) (shape={block.shape}) while a minimum of 1 is required by {estimator_name}."
        )
    return block


def _is_number_array(X: Any) -> bool:
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub"


def frame_names(X: Any) -> tuple[Any, ...] | None:
    """The names of a data frame's columns; None for an array."""
    if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "__array_interface__") or hasattr(X, "tocsr"):
        return None
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    return None if names is None else tuple(names)


def _array(X: Any, estimator_name: str) -> NDArray:
    if not (hasattr(X, "tocsr") or hasattr(X, "dtype") or hasattr(X, "columns") or hasattr(X, "__array__")):
        try:  # text as objects, so that an error quotes the text itself, not numpy's version of it
            array = np.asarray(X)
            X = np.array(X, dtype=object) if array.dtype.kind in "US" else array
        except ValueError:  # ragged: scikit-learn has the message for it
            pass
        if _is_number_array(X):
            return X
    try:
        array = _check_array(X, estimator_name)
        return array if array.dtype.kind != "O" else _check_array(array, estimator_name)  # objects as numbers
    except InputError as error:
        where = _find_non_number(X)
        if where is None:
            raise
        kind, (row, column, value) = InputTypeError if isinstance(error, TypeError) else InputError, where
        what, remedy = str(error).rstrip("."), f"{estimator_name} takes numbers only"
        raise kind(what, column=column, row=row, value=value, remedy=remedy) from None


def _check_array(X: Any, estimator_name: str, **settings: Any) -> Any:
    """scikit-learn's ``check_array`` with its messages and this package's error types."""
    from sklearn.utils.validation import check_array

    settings |= {"ensure_all_finite": False, "ensure_min_samples": 0, "ensure_min_features": 0}
    try:
        return check_array(X, estimator=estimator_name, input_name="X", **settings)
    except (TypeError, NotImplementedError) as error:
        raise InputTypeError(str(error)) from None
    except (ValueError, OverflowError) as error:
        raise InputError(str(error)) from None


def _find_non_number(X: Any) -> tuple[int, Any, Any] | None:
    """Row, column and value of the first value that is not a number."""
    values = np.asarray(X, dtype=object) if not hasattr(X, "tocsr") else np.empty(())
    if values.ndim != 2:
        return None
    names = frame_names(X) or range(values.shape[1])
    for row, column in np.ndindex(values.shape):
        try:
            float(values[row, column])
        except (TypeError, ValueError, OverflowError):
            return row, names[column], values[row, column]
    return None


def not_finite_error(block: Block, names: Sequence[Any], estimator_name: str, at: int | None = None) -> InputError:
    """The error that locates a value that is NaN or infinite, or too large in the column ``at``."""
    where = find_first(block, lambda x: ~np.isfinite(x))
    if where is None:
        what = "Input X contains infinity or a value too large to square and add up in float64; "
        row, value = (None, None) if at is None else find_largest(block, at)
        what, column = f"{what}{estimator_name} needs smaller numbers", None if at is None else names[at]
        return InputError(what, column=column, row=row, value=value, remedy="rescale the columns")
    row, column, value = where
    kind = "NaN" if np.isnan(value) else "infinity or a value too large"
    what = f"Input X contains {kind}: {value}. {estimator_name} takes finite numbers only"
    remedy = "drop the row, or use candide.NaiveBayes, in which NaN is a missing value"
    return InputError(what, column=names[column], row=row, value=value.item(), remedy=remedy)


def negative_error(block: Block, names: Sequence[Any], estimator_name: str) -> InputError:
    """The error that locates a negative value."""
    where = find_first(block, lambda x: x < 0)
    assert where is not None
    row, column, value = where
    what = f"Negative values in data passed to {estimator_name} (input X): {value}"
    return InputError(what, column=names[column], row=row, value=value.item(), remedy="pass values >= 0")


def _has_missing(block: Block, n: Floats, class_weight: Floats, weight: Floats | None) -> bool:
    """Whether a value is missing, from the weight present ``n`` (class, feature) against the weight of the rows.

    Rows of weight 0, or with too little weight to exceed rounding, are searched directly. The stored values of sparse
    rows are summed with their NaN, so only rows of weight 0 are left to search there.
    """
    rounding = 1e-10 * class_weight.max()
    if not isinstance(block, Csr) and (class_weight - n.min(axis=1)).max() > rounding:
        return True
    if weight is None or not (is_light := weight <= 2 * rounding).any():
        return False
    if isinstance(block, Csr):
        stored = block.data[block.indptr[0] : block.indptr[-1]]
        return not np.isfinite(stored[np.repeat(is_light, np.diff(block.indptr))]).all()
    rows = np.flatnonzero(is_light)
    chunks = (rows[start : start + ROWS_PER_CHUNK] for start in range(0, len(rows), ROWS_PER_CHUNK))
    return not all(np.isfinite(block[chunk]).all() for chunk in chunks)
