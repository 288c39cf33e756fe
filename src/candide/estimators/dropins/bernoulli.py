"""BernoulliNB: scikit-learn's, from counts of yes and no that add."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide import distributions as laws
from candide.encode import Identity
from candide.errors import InputError
from candide.estimators.dropins.base import shown
from candide.estimators.dropins.discrete import DiscreteNB
from candide.events import Bernoulli, EventModel
from candide.model.fitted import Fitted
from candide.model.plan import Plan
from candide.priors import Beta, Prior
from candide.rows.blocks import Block, Floats
from candide.tally import Levels, Sums

if TYPE_CHECKING:
    from candide.distributions.form import Polynomial


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

    _in_file = "BernoulliNB"
    _counted = ("binarize",)
    _kinds: ClassVar[dict[str, tuple[str, ...]]] = {**DiscreteNB._kinds, "binarize": ("amount", "none")}

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

    def _event(self) -> EventModel:
        return _Shares() if self.binarize is None else Bernoulli(threshold=float(self.binarize))

    def _prior(self, alpha: Any) -> Prior:
        return Beta(alpha, alpha)

    def _plan_again(self) -> Plan:
        if self._event() != self.census_.plan.parts[0].event:
            raise InputError(
                "binarize was changed after rows were counted under another",
                value=self.binarize,
                remedy="fit anew, or set it back",
            )
        return super()._plan_again()

    def _settle(self, fitted: Fitted) -> None:
        if self.binarize is None:
            fitted.model  # noqa: B018  values above one are found out here

    @property
    def feature_count_(self) -> Floats:
        """(classes, features) weight of the values that say yes."""
        return shown(self._counts.total if self._used("binarize") is None else self._counts.counts[:, 1::2])

    @property
    def feature_log_prob_(self) -> Floats:
        """(classes, features) log-probability of yes."""
        return shown(self._law.log_yes)


@dataclass(frozen=True)
class _Shares(Bernoulli):
    """Values x from 0 to 1 as they are: x of a yes and 1 - x of a no, so that the score is linear in x."""

    kind: ClassVar[str] = "sums"
    encoding = Identity(least=0.0)  # type: ignore[assignment]

    def _estimate(self, tally: Any, prior: Prior | None, how: str) -> laws.Distribution:
        law: Any = super()._estimate(_pairs(tally), prior, how)
        if not np.isfinite(law.log_no).all() or not np.isfinite(law.log_yes).all():
            raise InputError("binarize=None needs alpha > 0 where a feature is the same in all rows of a class")
        return _ShareWeights((law.log_yes - law.log_no).T, None, law.log_no, law.log_yes)

    def _evidence(self, tally: Any, prior: Prior | None) -> Floats:
        return super()._evidence(_pairs(tally), prior)


@dataclass(frozen=True, eq=False)
class _ShareWeights(laws.Multinomial):
    """The weight of each share, and what there is without any."""

    log_no: Floats = None  # type: ignore[assignment]  # (class, feature)
    log_yes: Floats = None  # type: ignore[assignment]

    def add_log_prob(self, block: Block, out: Floats) -> int:
        out += self.log_no.sum(axis=1)
        return super().add_log_prob(block, out)

    def _terms(self, x: NDArray) -> Floats:
        return super()._terms(x) + self.log_no

    def form(self) -> "Polynomial":
        return replace(super().form(), constant=self.log_no)

    def mean(self) -> Floats:
        return np.exp(self.log_yes)

    def parameters(self) -> dict[str, NDArray]:
        return {"probability": np.exp(self.log_yes)}


def _pairs(tally: Sums) -> Levels:
    """Shares as weights of no and yes."""
    yes, n = tally.total, tally.n
    if (yes > n * (1 + 1e-9)).any():
        raise InputError(
            "binarize=None takes values from 0 to 1, and some are larger", remedy="pass binarize=0.0 or scale X"
        )
    pairs = np.stack([np.maximum(n - yes, 0.0), yes], axis=2).reshape(len(n), -1)
    return Levels(pairs, np.arange(0, pairs.shape[1] + 1, 2))
