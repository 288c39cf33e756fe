"""What the drop-ins on counts and categories share: the smoothing alpha and the class prior."""

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from candide.errors import InputError
from candide.estimators.dropins.base import DropIn
from candide.estimators.dropins.fitted import Counts, log_shares, shown
from candide.rows.blocks import Floats

_LEAST = 1e-10  # what alpha is raised to unless force_alpha


class DiscreteNB(DropIn):
    """Counts under alpha imaginary ones: the posterior mean under Dirichlet(alpha)."""

    _sparse = True
    _parameter_constraints: ClassVar[dict] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
        "force_alpha": ["boolean"],
    }
    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

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
        if least < _LEAST and not self.force_alpha:
            warnings.warn(
                f"alpha too small will result in numeric errors, setting alpha = {_LEAST:.1e}. "
                "Use `force_alpha=True` to keep alpha unchanged.",
                stacklevel=4,
            )
            return np.maximum(alpha, _LEAST)
        return alpha

    def _class_log_prior(self, counts: Counts) -> Floats:
        n_classes = len(counts.labels)
        if self.class_prior is not None:
            shares = np.asarray(self.class_prior, np.float64)
            if shares.shape != (n_classes,):
                raise InputError(
                    f"Number of priors must match number of classes. {shares.size} in class_prior, {n_classes} classes"
                )
            if not (shares >= 0).all():
                raise InputError(f"class_prior must be non-negative. Got {shares.tolist()}")
            with np.errstate(divide="ignore"):
                return np.log(shares)
        return log_shares(counts.class_weight) if self.fit_prior else np.full(n_classes, -np.log(n_classes))

    @property
    def class_log_prior_(self) -> Floats:
        """(classes,) log of the class prior."""
        return shown(self._now.class_log_prior)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        tags.classifier_tags.poor_score = True
        return tags
