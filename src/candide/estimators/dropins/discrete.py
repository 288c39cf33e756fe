"""What the drop-ins on counts and categories share: the smoothing alpha and the class prior."""

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.errors import InputError
from candide.estimators.dropins.base import DropIn, read_only_view
from candide.model.fitted import FittedModel
from candide.model.model import class_log_prior
from candide.model.settings import Settings
from candide.priors import Dirichlet, Prior

_MIN_ALPHA = 1e-10  # what alpha is raised to unless force_alpha


class DiscreteNB(DropIn):
    """Counts under alpha imaginary ones: the posterior mean under Dirichlet(alpha)."""

    _accepts_sparse = True
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {
        "alpha": ("amount", "array"),
        "fit_prior": ("boolean",),
        "class_prior": ("array", "none"),
        "force_alpha": ("boolean",),
    }

    def __init__(self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        return Settings(self._class_prior(labels), "mean", self._prior(self._check_alpha(n_features)))

    def _prior(self, alpha: Any) -> Prior:
        return Dirichlet(alpha)

    def _check_estimate(self, fitted: FittedModel) -> None:
        """The estimate of counts under a Dirichlet cannot fail, so it waits for its first use."""

    def _check_alpha(self, n_features: int | None = None) -> Any:
        """The alpha to use: one number, or one a feature."""
        alpha: Any = self.alpha if isinstance(self.alpha, Real) else np.asarray(self.alpha, np.float64)
        least = np.min(alpha)
        if isinstance(alpha, np.ndarray):
            n_features = self.n_features_in_ if n_features is None else n_features
            if alpha.shape != (n_features,):
                raise InputError(
                    "When alpha is an array, it should contains `n_features`. "
                    f"Got {alpha.size} elements instead of {n_features}."
                )
            if not least >= 0:
                raise InputError(f"All values in alpha must be greater than 0. Got {least}")
        if least < _MIN_ALPHA and not self.force_alpha:
            warnings.warn(
                f"alpha too small will result in numeric errors, setting alpha = {_MIN_ALPHA:.1e}. "
                "Use `force_alpha=True` to keep alpha unchanged.",
                stacklevel=6,
            )
            return np.maximum(alpha, _MIN_ALPHA)
        return alpha

    def _class_prior(self, labels: Labels) -> Any:
        """What the class prior is; shares that do not sum to one, which scikit-learn takes, are made to."""
        if self.class_prior is None:
            return "empirical" if self.fit_prior else "uniform"
        shares = np.asarray(self.class_prior, np.float64)
        if shares.shape != (len(labels),):
            raise InputError(
                f"Number of priors must match number of classes. {shares.size} in class_prior, {len(labels)} classes"
            )
        if not (shares >= 0).all() or not shares.any():
            raise InputError(f"class_prior must be non-negative, and not all zero. Got {shares.tolist()}")
        return tuple((shares / shares.sum()).tolist())

    def predict_joint_log_proba(self, X: Any) -> NDArray:
        """log p(x, class), (rows, classes): the score before it is normalised.

        >>> from candide import BernoulliNB
        >>> model = BernoulliNB(class_prior=[2, 2]).fit([[1], [0]], ["a", "b"])  # as scikit-learn takes them
        >>> np.exp(model.predict_joint_log_proba([[1]])).round(3).tolist()
        [[1.333, 0.667]]
        """
        joint = super().predict_joint_log_proba(X)
        return joint + self._log_total() if self._param_when_counted("class_prior") is not None else joint

    def _log_total(self) -> float:
        """log of what the shares given sum to."""
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
        tags.input_tags.sparse = self._accepts_sparse
        tags.classifier_tags.poor_score = True
        return tags
