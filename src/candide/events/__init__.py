"""Event models: class-conditional families, one file each, with the same sections in the same order.

>>> event_of("gaussian"), event_of(Poisson).name
(Gaussian(variance='class', fixed=1.0, prior=NormalInverseGamma(mean=None, kappa=0.01, a=1.5, b=None)), 'poisson')
"""

from candide.errors import unknown
from candide.events.base import HOWS, EventModel
from candide.events.bernoulli import Bernoulli
from candide.events.categorical import Categorical
from candide.events.complement import Complement
from candide.events.exponential import Exponential
from candide.events.gaussian import Gaussian
from candide.events.lognormal import LogNormal
from candide.events.multinomial import Multinomial
from candide.events.poisson import Poisson

EVENTS: dict[str, type[EventModel]] = {
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "complement": Complement,
    "exponential": Exponential,
    "gaussian": Gaussian,
    "lognormal": LogNormal,
    "multinomial": Multinomial,
    "poisson": Poisson,
}

__all__ = ["EVENTS", "HOWS", "EventModel", "event_of", *sorted(e.__name__ for e in EVENTS.values())]


def event_of(x: EventModel | type[EventModel] | str) -> EventModel:
    """The event model meant by an instance, a class or a name."""
    if isinstance(x, EventModel):
        return x
    if isinstance(x, type) and issubclass(x, EventModel):
        return x()
    if not isinstance(x, str) or x not in EVENTS:
        raise unknown("event", x, EVENTS)
    return EVENTS[x]()
