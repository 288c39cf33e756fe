"""GaussianNB: scikit-learn's, from moments that add."""

from typing import Any, ClassVar

import numpy as np

from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.errors import InputError
from candide.estimators.dropin import DropIn, read_only_view
from candide.estimators.sklearn_contract import takes_settings
from candide.events import Gaussian
from candide.model.settings import Settings
from candide.priors import AddedVariance
from candide.tally.base import divide_or_zero


class GaussianNB(DropIn):
    """Gaussian naive Bayes: a mean and a variance for every class and column.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), default=None
        Probabilities of the classes; None: their proportions in the data.
    var_smoothing : float, default=1e-9
        This fraction of the largest variance of any column, all rows pooled, is added to every variance.

    Attributes
    ----------
    classes_, class_count_, class_prior_, n_features_in_, feature_names_in_ : as in scikit-learn
    theta_, var_ : ndarrays of shape (n_classes, n_features)
        Means; variances, with ``epsilon_`` added.
    epsilon_ : float

    Examples
    --------
    >>> from candide import GaussianNB
    >>> X, y = [[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]], [1, 1, 1, 2, 2, 2]
    >>> model = GaussianNB().fit(X, y)
    >>> model.predict([[-0.8, -1]]).tolist(), model.class_count_.tolist(), model.class_prior_.round(3).tolist()
    ([1], [3.0, 3.0], [0.5, 0.5])
    >>> model.theta_.round(2).tolist(), model.var_.round(2).tolist()
    ([[-2.0, -1.33], [2.0, 1.33]], [[0.67, 0.22], [0.67, 0.22]])

    Chunks do not change the result, not even ``epsilon_``, which comes from the pooled tally:

    >>> parts = GaussianNB().partial_fit(X[:4], y[:4], classes=[1, 2]).partial_fit(X[4:], y[4:])
    >>> bool(np.isclose(parts.epsilon_, model.epsilon_, rtol=1e-12))
    True
    """

    _record_name = "GaussianNB"
    _param_kinds: ClassVar[dict[str, tuple[str, ...]]] = {"priors": ("array", "none"), "var_smoothing": ("amount",)}

    priors: Any
    var_smoothing: float

    @takes_settings()
    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9): ...

    def _event(self) -> Gaussian:
        return Gaussian()

    def _settings(self, labels: Labels, n_features: int) -> Settings:
        prior: Any = "empirical" if self.priors is None else np.asarray(self.priors, np.float64)
        if isinstance(prior, np.ndarray):
            if prior.shape != (len(labels),):
                what = f"Number of priors must match number of classes. {prior.size} priors, {len(labels)} classes"
                raise InputError(what)
            if not np.isclose(prior.sum(), 1.0):
                raise InputError(f"The sum of the priors should be 1. It is {prior.sum():g}")
            if (prior < 0).any():
                raise InputError(f"Priors must be non-negative. Got {prior.min():g}")
            prior = tuple(prior.tolist())
        return Settings(prior, "mle", AddedVariance(self.var_smoothing))

    @property
    def class_prior_(self) -> Floats:
        """(classes,) probabilities of the classes."""
        return np.exp(self._checked_fitted.model.log_prior)

    @property
    def theta_(self) -> Floats:
        """(classes, features) means."""
        return read_only_view(self._tally_of_block.mean)

    @property
    def epsilon_(self) -> float:
        """The smoothing added to every variance."""
        pooled, prior = self._tally_of_block.pool(), self.fitted_.settings.param_priors
        return float(prior.fraction * divide_or_zero(pooled.m2, pooled.n).max())

    @property
    def var_(self) -> Floats:
        """(classes, features) variances, with ``epsilon_`` added."""
        return divide_or_zero(self._tally_of_block.m2, self._tally_of_block.n) + self.epsilon_
