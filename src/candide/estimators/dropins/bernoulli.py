"""BernoulliNB: scikit-learn's, from counts of yes and no that add."""

from typing import Any, ClassVar

from candide.data.blocks import Floats
from candide.errors import InputError
from candide.estimators.dropins.base import read_only_view
from candide.estimators.dropins.discrete import DiscreteNB
from candide.events import Bernoulli, EventModel
from candide.model.fitted import FittedModel
from candide.model.plan import Plan
from candide.priors import Beta, Prior


class BernoulliNB(DiscreteNB):
    """Bernoulli naive Bayes: what matters is whether a value lies above a threshold. The absent word counts.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,), default=1.0
        Imaginary yes, and as many imaginary no, in every class.
    force_alpha : bool, default=True
        If False, an alpha below 1e-10 is raised to that.
    binarize : float or None, default=0.0
        The threshold. None takes values from 0 to 1 as they are: each is how much of a yes it is.
    fit_prior : bool, default=True
        Take the class prior from the data; if False it is uniform.
    class_prior : array-like of shape (n_classes,), default=None
        The class prior, if it is known.

    Attributes
    ----------
    classes_, class_count_, class_log_prior_ : ndarrays of shape (n_classes,)
    feature_count_, feature_log_prob_ : ndarrays of shape (n_classes, n_features)
        Weight of yes; log-probability of yes.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X has column names

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

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ):
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.binarize = binarize

    def _event(self) -> EventModel:
        return Bernoulli(threshold=None if self.binarize is None else float(self.binarize))

    def _prior(self, alpha: Any) -> Prior:
        return Beta(alpha, alpha)

    def _plan_for_more_rows(self) -> Plan:
        if self._event() != self.counts_.plan.parts[0].event:
            raise InputError(
                "binarize was changed after rows were counted under another",
                value=self.binarize,
                remedy="fit anew, or set it back",
            )
        return super()._plan_for_more_rows()

    def _check_estimate(self, fitted: FittedModel) -> None:
        if self.binarize is None:
            fitted.model  # noqa: B018  values above one are found out here

    @property
    def feature_count_(self) -> Floats:
        """(classes, features) weight of the values that say yes."""
        return read_only_view(
            self._tally_of_block.total
            if self._param_when_counted("binarize") is None
            else self._tally_of_block.counts[:, 1::2]
        )

    @property
    def feature_log_prob_(self) -> Floats:
        """(classes, features) log-probability of yes."""
        return read_only_view(self._distribution.log_yes)
