"""The verbs every classifier here shares, from two hooks: the model, and the blocks of some rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from candide.engines.arrays import not_finite
from candide.errors import InputError
from candide.model import Model, UnusableValueError
from candide.tally import Block


class GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that knows p(class) and p(x | class): posteriors, densities, decisions."""

    classes_: NDArray

    def _estimated(self) -> Model:
        """The model: estimated from the tallies at first use, kept until the next merge."""
        raise NotImplementedError

    def _blocks(self, X: Any) -> tuple[list[Block], list[Any]]:
        """The rows as the model's blocks, and the names of each block's columns."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray:
        """The most probable class of each row."""
        codes = self._ask(Model.classify, X)
        return self.classes_[codes]

    def predict_proba(self, X: Any) -> NDArray:
        """p(class | x), (rows, classes), in the order of ``classes_``."""
        return self._ask(Model.posterior, X)

    def predict_log_proba(self, X: Any) -> NDArray:
        """log p(class | x), (rows, classes)."""
        return self._ask(Model.log_posterior, X)

    def predict_joint_log_proba(self, X: Any) -> NDArray:
        """log p(x, class), (rows, classes): the score before it is normalised."""
        return self._ask(Model.joint_log_likelihood, X)

    def log_density(self, X: Any) -> NDArray:
        """log p(x), (rows,): low where the model has seen nothing like the row."""
        return self._ask(Model.log_density, X)

    def _ask(self, verb: Any, X: Any) -> NDArray:
        check_is_fitted(self)
        blocks, columns = self._blocks(X)
        if not blocks or blocks[0].shape[0] == 0:
            return verb(self._estimated(), [np.empty((0, 0))] * len(blocks))
        try:
            return verb(self._estimated(), blocks)
        except UnusableValueError as error:
            raise self._unusable(columns[error.block], blocks[error.block]) from None

    def _unusable(self, columns: Any, block: Block) -> InputError:
        """The error that says where a block holds a value that this classifier does not take."""
        return not_finite(columns, block)
