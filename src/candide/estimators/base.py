"""The verbs every classifier here shares, from two hooks: the model, and the blocks of some rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from candide.errors import InputError
from candide.explain import linear as forms
from candide.explain.linear import Linear, Quadratic
from candide.model.model import Model, ask
from candide.model.plan import Part
from candide.rows.blocks import Block, not_finite
from candide.rows.labels import Labels


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
        check_is_fitted(self)
        if any(not part.event.has_density for part in self._parts()):
            who = type(self).__name__
            raise InputError(
                f"{who} has no density: the scores of complement are no log-probabilities; use multinomial"
            )
        return self._apply(Model.log_density, X)

    def linear(self) -> Linear:
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
        check_is_fitted(self)
        return forms.linear(self._estimated(), self._parts(), self._labels(), self._rows)

    def quadratic(self) -> Quadratic:
        """The classifier as squares, weights and a bias: Gaussian columns may have a variance in each class.

        >>> import candide as cd
        >>> model = cd.NaiveBayes("gaussian", estimate="mle").fit([[0.0], [2.0], [3.0], [7.0]], ["a", "a", "b", "b"])
        >>> model.quadratic().square.round(6).tolist()  # (1/1 - 1/4) / 2, of variances 1 and 4
        [[0.375]]
        """
        check_is_fitted(self)
        return forms.quadratic(self._estimated(), self._parts(), self._labels(), self._rows)

    def _parts(self) -> Sequence[Part]:
        """Columns, levels and event model of each of the model's distributions."""
        raise NotImplementedError

    def _labels(self) -> Labels:
        raise NotImplementedError

    def _rows(self, X: Any) -> list[Block]:
        return self._blocks(X)[0]

    def _apply(self, verb: Any, X: Any) -> NDArray:
        check_is_fitted(self)
        blocks, columns = self._blocks(X)
        if not blocks or blocks[0].shape[0] == 0:
            return verb(self._estimated(), [np.empty((0, 0))] * len(blocks))
        return ask(verb, self._estimated(), columns, blocks, self._unusable)

    def _unusable(self, columns: Any, block: Block) -> InputError:
        """The error that says where a block holds a value that this classifier does not take."""
        return not_finite(columns, block)
