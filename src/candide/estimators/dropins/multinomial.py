"""MultinomialNB and ComplementNB: scikit-learn's, from word sums that add."""

from typing import Any, ClassVar

from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.estimators.dropins.base import read_only_view
from candide.estimators.dropins.discrete import DiscreteNB
from candide.events import Complement, Multinomial


class _WordCountNB(DiscreteNB):
    """Sums of counts per class and word."""

    @property
    def feature_count_(self) -> Floats:
        """(classes, features) weighted sum of each word's counts."""
        return read_only_view(self._tally_of_block.total)

    @property
    def feature_log_prob_(self) -> Floats:
        """(classes, features) what one occurrence of a word adds to the score of a class."""
        return read_only_view(self._distribution.weights.T)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class MultinomialNB(_WordCountNB):
    """Multinomial naive Bayes: word counts, or anything that adds up like them.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Imaginary occurrences of every word in every class.
    force_alpha : bool, default=True
        If False, an alpha below 1e-10 is raised to that.
    fit_prior : bool, default=True
        Take the class prior from the data; if False it is uniform.
    class_prior : array-like of shape (n_classes,), default=None
        The class prior, if it is known.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : ndarrays of shape (n_classes,)
    feature_count_, feature_log_prob_ : ndarrays of shape (n_classes, n_features)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X has column names

    Examples
    --------
    >>> import numpy as np
    >>> from candide import MultinomialNB
    >>> words = [[2, 0, 1], [3, 1, 0], [0, 4, 1]]
    >>> model = MultinomialNB().fit(words, ["a", "a", "b"])
    >>> model.predict([[1, 0, 0], [0, 1, 0]]).tolist()
    ['a', 'b']

    >>> model.feature_count_.tolist(), np.exp(model.feature_log_prob_).round(3).tolist()
    ([[5.0, 1.0, 1.0], [0.0, 4.0, 1.0]], [[0.6, 0.2, 0.2], [0.125, 0.625, 0.25]])
    >>> model.class_count_.tolist(), np.exp(model.class_log_prior_).round(2).tolist()
    ([2.0, 1.0], [0.67, 0.33])
    """

    _record_name = "MultinomialNB"

    def _event(self) -> Multinomial:
        return Multinomial()


class ComplementNB(_WordCountNB):
    """Complement naive Bayes (Rennie et al., 2003): each class scored by how little a text resembles all others.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Imaginary occurrences of every word outside every class.
    force_alpha : bool, default=True
        If False, an alpha below 1e-10 is raised to that.
    fit_prior, class_prior : as in MultinomialNB
        Used only where there is a single class.
    norm : bool, default=False
        Divide the weights of a class by their sum.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : ndarrays of shape (n_classes,)
    feature_count_, feature_log_prob_ : ndarrays of shape (n_classes, n_features)
        Counts; weights, which are no log-probabilities.
    feature_all_ : ndarray of shape (n_features,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X has column names

    Examples
    --------
    >>> from candide import ComplementNB
    >>> words = [[2, 0, 1], [3, 1, 0], [0, 4, 1]]
    >>> ComplementNB().fit(words, ["a", "a", "b"]).predict([[1, 0, 0], [0, 1, 0]]).tolist()
    ['a', 'b']

    >>> model = ComplementNB().fit(words, ["a", "a", "b"])
    >>> model.feature_all_.tolist(), model.feature_count_.tolist(), model.class_count_.tolist()
    ([5.0, 5.0, 2.0], [[5.0, 1.0, 1.0], [0.0, 4.0, 1.0]], [2.0, 1.0])
    >>> model.feature_log_prob_.round(2).tolist(), model.class_log_prior_.round(2).tolist()  # -log P(word outside)
    ([[2.08, 0.47, 1.39], [0.51, 1.61, 1.61]], [-0.41, -1.1])
    >>> model.log_density(words)
    Traceback (most recent call last):
        ...
    candide.errors.InputError: ComplementNB has no density: the scores of complement are no log-probabilities; use \
multinomial
    """

    _record_name = "ComplementNB"
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {**DiscreteNB._param_kinds, "norm": ("boolean",)}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ):
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.norm = norm

    def _event(self) -> Complement:
        return Complement(norm=bool(self.norm))

    def _class_prior(self, labels: Labels) -> None:
        """The class prior plays no part; what is given is checked."""
        super()._class_prior(labels)

    def _log_total(self) -> float:
        return super()._log_total() if len(self.classes_) == 1 else 0.0  # unless there is nothing else

    @property
    def feature_all_(self) -> Floats:
        """(features,) each word's count over all classes."""
        return self._tally_of_block.total.sum(axis=0)
