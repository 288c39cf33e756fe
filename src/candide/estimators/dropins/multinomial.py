"""MultinomialNB and ComplementNB: scikit-learn's, from word sums that add."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from candide.estimators.dropins.discrete import DiscreteNB
from candide.estimators.dropins.fitted import Counts, Fitted, SureFitted, shown
from candide.events import Complement, Multinomial
from candide.model.model import Model
from candide.priors import Dirichlet
from candide.rows.blocks import Block, Floats
from candide.tally import Spec


class _WordsNB(DiscreteNB):
    """Sums of counts per class and word."""

    def _spec(self, block: Block) -> Spec:
        return Spec("sums", block.shape[1], nonnegative=True)

    @property
    def feature_count_(self) -> Floats:
        """(classes, features) weighted sum of each word's counts."""
        return shown(self._now.counts.tally.total)

    @property
    def feature_log_prob_(self) -> Floats:
        """(classes, features) what one occurrence of a word adds to the score of a class."""
        return shown(self._now.distribution.weights.T)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class MultinomialNB(_WordsNB):
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

    def __init__(self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _read_as(self, counts: Counts, n_features: int) -> Fitted:
        prior = Dirichlet(self._check_alpha(n_features))
        return SureFitted(counts, Multinomial(), prior, "mean", self._class_log_prior(counts))


class ComplementNB(_WordsNB):
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

    _parameter_constraints: ClassVar[dict] = {**DiscreteNB._parameter_constraints, "norm": ["boolean"]}

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.norm = norm

    def _read_as(self, counts: Counts, n_features: int) -> Fitted:
        prior = Dirichlet(self._check_alpha(n_features))
        return _ComplementFitted(counts, Complement(norm=bool(self.norm)), prior, "mean", self._class_log_prior(counts))

    @property
    def feature_all_(self) -> Floats:
        """(features,) each word's count over all classes."""
        return self._now.counts.tally.total.sum(axis=0)


class _ComplementFitted(Fitted):
    """The class prior plays no part, unless there is nothing else."""

    @cached_property
    def model(self) -> Model:
        single = len(self.class_log_prior) == 1
        start = self.class_log_prior if single else np.zeros_like(self.class_log_prior)
        return Model(start, (self.distribution,), absent_allowed=False)
