"""Event models: class-conditional families, one file each, with the same sections in the same order.

A family is imported when it is first asked for: a program that loads a model pays for those in the model.

>>> event_of("gaussian").covariance, event_of("gaussian-full").covariance, event_of(EVENTS["poisson"]).name
('diagonal', 'full', 'poisson')
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from candide.errors import unknown
from candide.events.base import HOWS, EventModel

if TYPE_CHECKING:
    from candide.events.bernoulli import Bernoulli
    from candide.events.categorical import Categorical
    from candide.events.complement import Complement
    from candide.events.exponential import Exponential
    from candide.events.gaussian import Gaussian
    from candide.events.lognormal import LogNormal
    from candide.events.multinomial import Multinomial
    from candide.events.poisson import Poisson
    from candide.events.text import Text

__all__ = [
    "EVENTS",
    "HOWS",
    "Bernoulli",
    "Categorical",
    "Complement",
    "EventModel",
    "Exponential",
    "Gaussian",
    "LogNormal",
    "Multinomial",
    "Poisson",
    "Text",
    "event_of",
]
_COVARIANT = ("gaussian", "lognormal")  # families whose name may be followed by a covariance
_FAMILIES = {name.lower(): name for name in __all__ if name.istitle() or name == "LogNormal"}


class _Families(Mapping[str, type[EventModel]]):
    """The families by name: a closed table."""

    def __getitem__(self, name: str) -> type[EventModel]:
        return getattr(import_module(f"candide.events.{name}"), _FAMILIES[name])

    def __contains__(self, name: object) -> bool:
        return name in _FAMILIES

    def __iter__(self) -> Iterator[str]:
        return iter(_FAMILIES)

    def __len__(self) -> int:
        return len(_FAMILIES)


EVENTS: Mapping[str, type[EventModel]] = _Families()


def __getattr__(name: str) -> Any:
    if _FAMILIES.get(name.lower()) != name:
        raise AttributeError(f"module 'candide.events' has no attribute {name!r}")
    return EVENTS[name.lower()]


def event_of(x: EventModel | type[EventModel] | str) -> EventModel:
    """The event model meant by an instance, a class or a name; ``gaussian-full`` is Gaussian(covariance="full").

    >>> event_of("poisson").name, event_of(EVENTS["gaussian"]).name
    ('poisson', 'gaussian')
    """
    if isinstance(x, EventModel):
        return x
    if isinstance(x, type) and issubclass(x, EventModel):
        return x()
    if isinstance(x, str) and x.partition("-")[0] in _COVARIANT and "-" in x:
        family, _, covariance = x.partition("-")
        return EVENTS[family](covariance=covariance)  # type: ignore[call-arg]
    if not isinstance(x, str) or x not in EVENTS:
        raise unknown("event", x, EVENTS)
    return EVENTS[x]()
