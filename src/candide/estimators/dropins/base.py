"""What the five drop-ins share: read, count, merge. Each adds its settings, its event model and its attributes."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from candide.errors import InputError
from candide.estimators.base import GenerativeClassifier
from candide.estimators.dropins import rows
from candide.estimators.dropins.fitted import Counts, Fitted, shown
from candide.estimators.validation import checked_labels, checked_settings, checked_weights, class_array
from candide.explain import features
from candide.explain.features import FeatureScores
from candide.model.census import Census
from candide.model.model import Model
from candide.model.plan import Part, Plan
from candide.rows.blocks import Block, Codes, Floats
from candide.rows.labels import Labels
from candide.tally import KINDS, Spec


class DropIn(GenerativeClassifier):
    """A classifier of scikit-learn's by name, parameters, attributes and results; its state is a tally."""

    _sparse = False  # whether it takes sparse rows
    n_features_in_: int
    _fitted: Fitted

    def _spec(self, block: Block) -> Spec:
        """How the rows are tallied under the present settings."""
        raise NotImplementedError

    def _read_as(self, counts: Counts, n_features: int) -> Fitted:
        """The counts under the present settings, which are checked here."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of X under their labels, forgetting what was counted before.

        Parameters
        ----------
        X : array-like (GaussianNB, CategoricalNB) or also sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts; 0 leaves it out.
        """
        checked_settings(self)
        block = self._read(X)
        y = checked_labels(y, block.shape[0])
        labels = Labels.of(y)
        fitted = self._read_as(self._count(X, block, labels, labels.encode(y), sample_weight), block.shape[1])
        fitted.settle()  # before anything is changed
        return self._keep(X, fitted, class_array(labels, y.dtype), block.shape[1])

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count more rows. However the rows are divided among calls, the result is that of one ``fit``.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
        classes : array-like of shape (n_classes,), default=None
            Every class that may appear; needed at the first call only.

        Examples
        --------
        >>> from candide import BernoulliNB
        >>> X, y = [[1, 0], [1, 1], [0, 1]], ["a", "a", "b"]
        >>> parts = BernoulliNB().partial_fit(X[:2], y[:2], classes=["a", "b"]).partial_fit(X[2:], y[2:])
        >>> bool((parts.feature_count_ == BernoulliNB().fit(X, y).feature_count_).all())
        True
        """
        checked_settings(self)
        first = not hasattr(self, "_fitted")
        labels, array = self._announced(classes, first)
        if not first:
            self._check_names(X)
        block = self._read(X)
        if not first:
            self._check_width(block)
        codes = _encoded(labels, checked_labels(y, block.shape[0]), array)
        counts = self._count(X, block, labels, codes, sample_weight)
        whole = counts if first else self._merged(self._fitted.counts, counts)
        fitted = self._read_as(whole, block.shape[1])
        if not first:
            self._fitted = fitted
            return self
        return self._keep(X, fitted, array, block.shape[1])

    def _announced(self, classes: Any, first: bool) -> tuple[Labels, NDArray]:
        """The classes a stream may hold, said at its first call and never changed."""
        if classes is None:
            if first:
                raise InputError("classes must be passed on the first call to partial_fit.")
            return self._fitted.counts.labels, self.classes_
        given = checked_labels(classes, len(classes))
        labels = Labels.of(given)
        if not first and (len(labels) < len(given) or labels != self._fitted.counts.labels):
            raise InputError(
                f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {self.classes_!r}"
            )
        if len(labels) < len(given):
            raise InputError(f"`classes={classes!r}` names a class twice; name each once")
        return labels, class_array(labels, given.dtype) if first else self.classes_

    def _read(self, X: Any) -> Block:
        return rows.read(X, type(self).__name__, sparse=self._sparse)

    def _count(self, X: Any, block: Block, labels: Labels, codes: Codes, sample_weight: Any) -> Counts:
        weight = checked_weights(sample_weight, block.shape[0])
        class_weight = np.bincount(codes, weight, len(labels)).astype(np.float64, copy=False)
        return Counts(labels, class_weight, self._tally(X, block, codes, weight, class_weight))

    def _tally(self, X: Any, block: Block, codes: Codes, weight: Floats | None, class_weight: Floats) -> Any:
        spec, who = self._spec(block), type(self).__name__
        try:
            tally: Any = KINDS[spec.kind].of(block, codes, weight, n_classes=len(class_weight), spec=spec)
        except InputError:  # what a tally refuses itself is a value below zero
            raise rows.negative(block, column_names(X, block), who) from None
        finite = all(np.isfinite(state).all() for state in tally.arrays().values())
        if not finite or rows.has_absent(block, tally.n, class_weight, weight):
            raise rows.not_finite(block, column_names(X, block), who)
        return tally

    def _merged(self, before: Counts, more: Counts) -> Counts:
        return before + more

    def _keep(self, X: Any, fitted: Fitted, classes: NDArray, n_features: int) -> Self:
        if type(X) is not np.ndarray or hasattr(self, "feature_names_in_"):
            _check_feature_names(self, X, reset=True)
        self.n_features_in_, self.classes_, self._fitted = n_features, classes, fitted
        return self

    def _check_names(self, X: Any) -> None:
        if type(X) is not np.ndarray or hasattr(self, "feature_names_in_"):
            try:
                _check_feature_names(self, X, reset=False)
            except ValueError as error:
                raise InputError(str(error)) from None

    def _check_width(self, block: Block) -> None:
        if block.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {block.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )

    def _estimated(self) -> Model:
        return self._fitted.model

    def _parts(self) -> Sequence[Part]:
        names = getattr(self, "feature_names_in_", None)
        columns = tuple(range(self.n_features_in_)) if names is None else tuple(names.tolist())
        return [Part(self._fitted.event, columns, self._levels())]

    def feature_scores(self) -> FeatureScores:
        """How much each column tells of the class, strongest first, from the counts: evidence, information, a test.

        >>> from candide import BernoulliNB
        >>> X, y = [[1, 0], [1, 1], [0, 1]], ["a", "a", "b"]
        >>> [score.column for score in BernoulliNB().fit(X, y).feature_scores()]  # the strongest first
        [0, 1]
        """
        now = self._now
        [part] = self._parts()
        counts = now.counts
        census = Census(Plan(part.columns, (part,)), counts.labels, counts.class_weight, (now.tally,), n_rows=0)
        return features.scores(census, now.prior)

    def _levels(self) -> tuple[Labels, ...]:
        return ()

    def _labels(self) -> Labels:
        return self._fitted.counts.labels

    def _blocks(self, X: Any) -> tuple[list[Block], list[Any]]:
        self._check_names(X)
        block = self._read(X)
        self._check_width(block)
        return [block], [column_names(X, block)]

    def _unusable(self, columns: Any, block: Block) -> InputError:
        return rows.not_finite(block, columns, type(self).__name__)

    @property
    def _now(self) -> Fitted:
        check_is_fitted(self)
        return self._fitted

    @property
    def class_count_(self) -> Floats:
        """(classes,) weight of the rows of each class."""
        return shown(self._now.counts.class_weight)


def _encoded(labels: Labels, y: NDArray, classes: NDArray) -> Codes:
    codes = labels.encode(y)
    if len(codes) and codes.max() == len(labels):
        new = Labels.of(y[codes == len(labels)]).array
        raise InputError(
            f"The target label(s) {new} in y do not exist in the initial classes {classes}: "
            "pass every class in `classes` at the first partial_fit"
        )
    return codes


def column_names(X: Any, block: Block) -> Any:
    return list(X.columns) if hasattr(X, "columns") else range(block.shape[1])
