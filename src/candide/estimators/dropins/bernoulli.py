"""BernoulliNB: scikit-learn's, from counts of yes and no that add."""

from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from candide.distributions import TermWeights
from candide.errors import InputError
from candide.estimators.dropins.discrete import DiscreteNB
from candide.estimators.dropins.fitted import Counts, Fitted, SureFitted, shown
from candide.events import Bernoulli
from candide.model.model import Model
from candide.priors import Beta
from candide.rows.blocks import Block, Floats
from candide.tally import Levels, Spec, Sums


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
    >>> from candide import BernoulliNB
    >>> model = BernoulliNB().fit([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> np.exp(model.feature_log_prob_).round(3).tolist()  # (count + 1) / (n + 2)
    [[0.75, 0.5], [0.333, 0.667]]

    >>> model.class_count_.tolist(), model.feature_count_.tolist(), np.exp(model.class_log_prior_).round(3).tolist()
    ([2.0, 1.0], [[2.0, 1.0], [0.0, 1.0]], [0.667, 0.333])
    """

    _parameter_constraints: ClassVar[dict] = {
        **DiscreteNB._parameter_constraints,
        "binarize": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _spec(self, block: Block) -> Spec:
        if self.binarize is None:
            return Spec("sums", block.shape[1], nonnegative=True)
        return Spec("levels", block.shape[1], threshold=float(self.binarize))

    def _merged(self, before: Counts, more: Counts) -> Counts:
        if type(before.tally) is not type(more.tally) or self._fitted.event.threshold != (self.binarize or 0.0):
            raise InputError("binarize was changed after rows were counted under another; fit anew, or set it back")
        return before + more

    def _read_as(self, counts: Counts, n_features: int) -> Fitted:
        alpha = self._check_alpha(n_features)
        kind = _SharesFitted if self.binarize is None else SureFitted
        event = Bernoulli(threshold=float(self.binarize or 0.0))
        return kind(counts, event, Beta(alpha, alpha), "mean", self._class_log_prior(counts))

    @property
    def feature_count_(self) -> Floats:
        """(classes, features) weight of the values that say yes."""
        tally = self._now.counts.tally
        return shown(tally.total if isinstance(tally, Sums) else tally.counts[:, 1::2])

    @property
    def feature_log_prob_(self) -> Floats:
        """(classes, features) log-probability of yes."""
        return shown(self._now.distribution.log_yes)


class _SharesFitted(Fitted):
    """Values x from 0 to 1 as they are: x of a yes and 1 - x of a no, so that the score is linear in x."""

    @property
    def tally(self) -> Levels:
        yes, n = self.counts.tally.total, self.counts.tally.n
        if (yes > n * (1 + 1e-9)).any():
            raise InputError(
                "binarize=None takes values from 0 to 1, and some are larger: pass binarize=0.0 or scale X"
            )
        pairs = np.stack([np.maximum(n - yes, 0.0), yes], axis=2).reshape(len(n), -1)
        return Levels(pairs, np.arange(0, pairs.shape[1] + 1, 2))

    @cached_property
    def model(self) -> Model:
        no, yes = self.distribution.log_no, self.distribution.log_yes
        if not np.isfinite(no).all() or not np.isfinite(yes).all():
            raise InputError("binarize=None needs alpha > 0 where a feature is the same in all rows of a class")
        return Model(self.class_log_prior + no.sum(axis=1), (TermWeights((yes - no).T),), absent_allowed=False)
