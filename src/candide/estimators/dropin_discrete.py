"""BernoulliNB, MultinomialNB and ComplementNB: scikit-learn's, from counts that add."""

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.errors import InputError
from candide.estimators.dropin import DropIn, read_only_view
from candide.estimators.sklearn_contract import takes_settings
from candide.events import Bernoulli, Complement, EventModel, Multinomial
from candide.model.fitted import FittedModel
from candide.model.model import class_log_prior
from candide.model.plan import Plan
from candide.model.settings import Settings
from candide.priors import Beta, Dirichlet, Prior

_MIN_ALPHA = 1e-10  # to which alpha is raised unless force_alpha


class DiscreteNB(DropIn):
    """Counts under alpha imaginary ones: the posterior mean under Dirichlet(alpha)."""

    _input_tags: ClassVar[dict[str, bool]] = {"sparse": True}
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {
        "alpha": ("amount", "array"),
        "fit_prior": ("boolean",),
        "class_prior": ("array", "none"),
        "force_alpha": ("boolean",),
    }

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    @takes_settings()
    def __init__(
        self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None
    ): ...

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        return Settings(self._class_prior(labels), "mean", self._prior(self._check_alpha(n_features)))

    def _prior(self, alpha: Any) -> Prior:
        return Dirichlet(alpha)

    def _check_estimate(self, fitted: FittedModel) -> None:
        """The estimate of counts under a Dirichlet cannot fail, so it waits for its first use."""

    def _check_alpha(self, n_features: int | None = None) -> Any:
        """The alpha to use: one number, or one a feature; scikit-learn's tests call it without ``n_features``."""
        alpha: Any = self.alpha if isinstance(self.alpha, Real) else np.asarray(self.alpha, np.float64)
        least = np.min(alpha)
        if isinstance(alpha, np.ndarray):
            n_features = self.n_features_in_ if n_features is None else n_features
            if alpha.shape != (n_features,):
                what = "When alpha is an array, it should contains `n_features`. "
                raise InputError(f"{what}Got {alpha.size} elements instead of {n_features}.")
            if not least >= 0:
                raise InputError(f"All values in alpha must be greater than 0. Got {least}")
        if least < _MIN_ALPHA and not self.force_alpha:
            what = f"alpha too small will result in numeric errors, setting alpha = {_MIN_ALPHA:.1e}. "
            warnings.warn(f"{what}Use `force_alpha=True` to keep alpha unchanged.", stacklevel=6)
            return np.maximum(alpha, _MIN_ALPHA)
        return alpha

    def _class_prior(self, labels: Labels) -> Any:
        """The class prior; probabilities that do not sum to one, which scikit-learn accepts, are normalised."""
        if self.class_prior is None:
            return "empirical" if self.fit_prior else "uniform"
        prior = np.asarray(self.class_prior, np.float64)
        if prior.shape != (len(labels),):
            what = f"Number of priors must match number of classes. {prior.size} in class_prior, {len(labels)} classes"
            raise InputError(what)
        if not (prior >= 0).all() or not prior.any():
            raise InputError(f"class_prior must be non-negative, and not all zero. Got {prior.tolist()}")
        return tuple((prior / prior.sum()).tolist())

    def predict_joint_log_proba(self, X: Any) -> NDArray:
        """log p(x, class), (rows, classes): the score before it is normalised.

        >>> from candide import BernoulliNB
        >>> model = BernoulliNB(class_prior=[2, 2]).fit([[1], [0]], ["a", "b"])  # not normalised, as in scikit-learn
        >>> np.exp(model.predict_joint_log_proba([[1]])).round(3).tolist()
        [[1.333, 0.667]]
        """
        joint = super().predict_joint_log_proba(X)
        return joint + self._log_total() if self._param_when_counted("class_prior") is not None else joint

    def _log_total(self) -> float:
        """log of the sum of the class prior as given."""
        return float(np.log(np.sum(self._param_when_counted("class_prior"))))

    @property
    def class_log_prior_(self) -> Floats:
        """(classes,) log of the class prior."""
        given = self._param_when_counted("class_prior")
        if given is not None:
            with np.errstate(divide="ignore"):
                return read_only_view(np.log(np.asarray(given, np.float64)))
        how = "empirical" if self._param_when_counted("fit_prior") else "uniform"
        return read_only_view(class_log_prior(self.counts_, how, "mle"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class BernoulliNB(DiscreteNB):
    """Bernoulli naive Bayes: whether a value lies above a threshold. An absent word counts, too.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Imaginary yes, and as many imaginary no, in every class.
    binarize : float or None, default=0.0
        The threshold. None takes values from 0 to 1 as fractional counts of a yes.
    force_alpha, fit_prior, class_prior : as in MultinomialNB

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, n_features_in_, feature_names_in_ : as in scikit-learn
    feature_count_, feature_log_prob_ : ndarrays of shape (n_classes, n_features)
        Weight of yes; log-probability of yes.

    Examples
    --------
    >>> import numpy as np
    >>> from candide import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> np.exp(model.feature_log_prob_).round(3).tolist()  # (count + 1) / (n + 2)
    [[0.75, 0.5], [0.333, 0.667]]
    >>> model.class_count_.tolist(), model.feature_count_.tolist(), np.exp(model.class_log_prior_).round(3).tolist()
    ([2.0, 1.0], [[2.0, 1.0], [0.0, 1.0]], [0.667, 0.333])
    """

    _record_name = "BernoulliNB"
    _counting_params = ("binarize",)
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {**DiscreteNB._param_kinds, "binarize": ("amount", "none")}

    binarize: float | None

    @takes_settings()
    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ): ...

    def _event(self) -> EventModel:
        return Bernoulli(threshold=None if self.binarize is None else float(self.binarize))

    def _prior(self, alpha: Any) -> Prior:
        return Beta(alpha, alpha)

    def _plan_for_more_rows(self) -> Plan:
        if self._event() != self.counts_.plan.parts[0].event:
            what = "binarize was changed after rows were counted under another"
            raise InputError(what, value=self.binarize, remedy="fit anew, or set it back")
        return super()._plan_for_more_rows()

    def _check_estimate(self, fitted: FittedModel) -> None:
        if self.binarize is None:
            fitted.model  # noqa: B018  refuses values above one

    @property
    def feature_count_(self) -> Floats:
        """(classes, features) weight of yes."""
        tally = self._tally_of_block
        return read_only_view(tally.total if self._param_when_counted("binarize") is None else tally.counts[:, 1::2])

    @property
    def feature_log_prob_(self) -> Floats:
        """(classes, features) log-probability of yes."""
        return read_only_view(self._distribution.log_yes)


class _WordCountNB(DiscreteNB):
    """Sums of counts per class and word."""

    _input_tags: ClassVar[dict[str, bool]] = {"sparse": True, "positive_only": True}

    @property
    def feature_count_(self) -> Floats:
        """(classes, features) weighted sum of each word's counts."""
        return read_only_view(self._tally_of_block.total)

    @property
    def feature_log_prob_(self) -> Floats:
        """(classes, features) the contribution of one occurrence of a word to the score of a class."""
        return read_only_view(self._distribution.weights.T)


class MultinomialNB(_WordCountNB):
    """Multinomial naive Bayes: word counts, or anything that adds up like them.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Imaginary occurrences of every word in every class.
    force_alpha : bool, default=True
        If False, an alpha below 1e-10 is raised to it.
    fit_prior : bool, default=True
        Estimate the class prior from the data; if False it is uniform.
    class_prior : array-like of shape (n_classes,), default=None
        The class prior, if known.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, n_features_in_, feature_names_in_ : as in scikit-learn
    feature_count_, feature_log_prob_ : ndarrays of shape (n_classes, n_features)

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

    def _event(self) -> EventModel:
        return Multinomial()


class ComplementNB(_WordCountNB):
    """Complement naive Bayes (Rennie et al., 2003): each class scored by how little a text resembles all others.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Imaginary occurrences of every word outside every class.
    norm : bool, default=False
        Divide the weights of a class by their sum.
    force_alpha, fit_prior, class_prior : as in MultinomialNB
        The class prior is used only where there is a single class.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_, n_features_in_, feature_names_in_ : as in scikit-learn
    feature_count_, feature_log_prob_ : ndarrays of shape (n_classes, n_features)
        Counts; weights, which are not log-probabilities.
    feature_all_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> from candide import ComplementNB
    >>> words = [[2, 0, 1], [3, 1, 0], [0, 4, 1]]
    >>> model = ComplementNB().fit(words, ["a", "a", "b"])
    >>> model.predict([[1, 0, 0], [0, 1, 0]]).tolist(), model.feature_all_.tolist()
    (['a', 'b'], [5.0, 5.0, 2.0])
    >>> model.feature_log_prob_.round(2).tolist()  # -log P(word outside)
    [[2.08, 0.47, 1.39], [0.51, 1.61, 1.61]]
    >>> model.class_count_.tolist(), model.class_log_prior_.round(2).tolist(), model.feature_count_[0].tolist()
    ([2.0, 1.0], [-0.41, -1.1], [5.0, 1.0, 1.0])
    """

    _record_name = "ComplementNB"
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {**DiscreteNB._param_kinds, "norm": ("boolean",)}

    norm: bool

    @takes_settings()
    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ): ...

    def _event(self) -> EventModel:
        return Complement(norm=bool(self.norm))

    def _class_prior(self, labels: Labels) -> None:
        """The class prior has no effect; it is only checked."""
        super()._class_prior(labels)

    def _log_total(self) -> float:
        return super()._log_total() if len(self.classes_) == 1 else 0.0

    @property
    def feature_all_(self) -> Floats:
        """(features,) each word's count over all classes."""
        return self._tally_of_block.total.sum(axis=0)
