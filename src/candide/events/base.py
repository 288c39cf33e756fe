"""What every event model is: a family for all columns of a block, that turns a tally and a prior into a distribution.

``how`` picks the estimate: ``mle`` (the data most likely), ``map`` (the parameters most probable), ``mean`` (the
parameters expected), ``predictive`` (the parameters integrated out: Student's t for a Gaussian).
The tally stays as it is, so prior and estimate may be chosen again without the data.

An own family names a tally kind and gives ``parameters`` and ``log_density``; the rest is optional.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide.distributions import Density, Distribution
from candide.errors import InputError, unknown
from candide.priors import Prior, prior_of
from candide.rows.blocks import Floats
from candide.tally import KINDS, Spec

HOWS = ("mle", "map", "mean", "predictive")


class EventModel:
    """A class-conditional family. Public verbs check here, once; families fill in ``_estimate`` and ``_evidence``.

    >>> from candide.events import Poisson
    >>> from candide.tally import Sums
    >>> event = Poisson()
    >>> visits, y = np.array([[1.0], [3.0], [8.0]]), np.array([0, 0, 1])
    >>> tally = Sums.of(visits, y, n_classes=2, spec=event.spec(1))
    >>> event.estimate(tally, how="mle").parameters()["rate"].ravel().tolist()
    [2.0, 8.0]
    >>> event.evidence(tally).shape  # log p(values | prior), (class, feature)
    (2, 1)

    An own family gives ``parameters`` and ``log_density``, and comes with the rest.

    >>> class Rare(EventModel):
    ...     name, kind = "rare", "sums"
    ...
    ...     def parameters(self, tally, prior, how):
    ...         return {"rate": tally.total / tally.n}
    ...
    ...     def log_density(self, x, rate):
    ...         return x * np.log(rate) - rate
    >>> Rare().estimate(tally).log_prob(np.array([[2.0]])).round(3).tolist()
    [[-0.614, -3.841]]
    """

    name: ClassVar[str] = ""
    kind: ClassVar[str] = ""  # the tally kind that suffices
    sparse: ClassVar[bool] = False  # whether it takes sparse rows
    has_density: ClassVar[bool] = True  # whether its scores are log-probabilities, so that there is a log p(x)
    groups: ClassVar[bool] = False  # whether it takes a group of columns, ``events={("a", "b"): ...}``
    joint: ClassVar[bool] = False  # whether the columns of a group depend on each other: then each group is a block
    accepts: ClassVar[tuple[type[Prior], ...]] = (Prior,)  # the priors it knows
    prior: Prior | str | None = None
    transform: Callable[[NDArray], NDArray] | None = None  # what is tallied, if it is not x itself

    def spec(self, n_features: int, sizes: tuple[int, ...] = ()) -> Spec:
        """How a block of ``n_features`` columns is tallied: encoding, with no prior in it."""
        if self.kind not in KINDS:
            raise unknown(f"tally kind of event model {self._title}:", self.kind, KINDS)
        transform = None if self.transform is None else Transform(self)
        return Spec(self.kind, n_features, sizes=sizes, transform=transform)

    def estimate(self, tally: Any, prior: Prior | str | None = None, how: str = "predictive") -> Distribution:
        """The distribution that the tally gives under the prior; ``prior=None`` means the event model's own."""
        if how not in HOWS:
            raise unknown("estimate", how, HOWS)
        return self._estimate(tally, self._resolve(prior), how)

    def evidence(self, tally: Any, prior: Prior | str | None = None) -> Floats:
        """(class, feature) log marginal likelihood of the tallied values; its sum is that of the block."""
        return self._evidence(tally, self._resolve(prior))

    def _resolve(self, prior: Prior | str | None) -> Any:
        chosen = prior_of(self.prior if prior is None else prior)
        if chosen is not None and not isinstance(chosen, self.accepts):
            names = ", ".join(p.__name__ for p in self.accepts)
            raise InputError(f"the {self._title} event model takes the priors {names}; got {chosen!r}")
        return chosen

    @property
    def _title(self) -> str:
        return self.name or type(self).__name__

    # What a family of the package overrides.

    def _estimate(self, tally: Any, prior: Any, how: str) -> Distribution:
        params = {key: np.asarray(p, float) for key, p in self.parameters(tally, prior, how).items()}
        return Density(self.log_density, params, self.draw, self.natural)

    def _evidence(self, tally: Any, prior: Any) -> Floats:
        raise InputError(f"the {self._title} event model has no marginal likelihood")

    # What an own event model gives.

    def parameters(self, tally: Any, prior: Any, how: str) -> dict[str, Floats]:
        """(class, feature) parameters by name."""
        raise NotImplementedError(f"event model {self._title}: give parameters(tally, prior, how)")

    def log_density(self, x: NDArray, **params: Floats) -> NDArray:
        """Elementwise log-density, broadcasting x (row, 1, feature) against parameters (class, feature)."""
        raise NotImplementedError(f"event model {self._title}: give log_density(x, **params)")

    draw: Callable[..., NDArray] | None = None  # draw(rng, **params) -> values of the parameters' shape
    # natural(**params) -> weight, base: where log_density is weight * x + base, but for what all classes share
    natural: Callable[..., tuple[Floats, Floats]] | None = None


@dataclass(frozen=True)
class Transform:
    """An own event model's transform, as encoding: equal where the family and its settings are, whatever the prior."""

    event: EventModel = field(compare=False)
    family: type = field(init=False)
    settings: tuple[tuple[str, Any], ...] = field(init=False)

    def __post_init__(self) -> None:
        settings = sorted((key, value) for key, value in vars(self.event).items() if key != "prior")
        object.__setattr__(self, "family", type(self.event))
        object.__setattr__(self, "settings", tuple(settings))

    def __call__(self, x: NDArray) -> NDArray:
        assert self.event.transform is not None
        return self.event.transform(x)
