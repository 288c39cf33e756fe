"""The families by name: one line each. A family is imported when it is first asked for.

A program that loads a model pays for the families in the model, and for no other.

>>> sorted(EVENTS)[:3], EVENTS["gaussian"].__name__
(['bernoulli', 'categorical', 'complement'], 'Gaussian')
"""

from collections.abc import Iterator, Mapping
from importlib import import_module

from candide.errors import unknown
from candide.events.base import EventModel

FAMILIES = {  # class name: its module
    "Bernoulli": "bernoulli",
    "Categorical": "categorical",
    "Complement": "complement",
    "Exponential": "exponential",
    "Gaussian": "gaussian",
    "LogNormal": "lognormal",
    "Multinomial": "multinomial",
    "Poisson": "poisson",
    "Text": "text",
}
_TITLES = {title.lower(): title for title in FAMILIES}  # by the names that users write


def family(title: str) -> type[EventModel]:
    """A family by the name of its class."""
    if title not in FAMILIES:
        raise AttributeError(f"module 'candide.events' has no attribute {title!r}")
    return getattr(import_module(f"candide.events.{FAMILIES[title]}"), title)


class _Families(Mapping[str, type[EventModel]]):
    """A closed table."""

    def __getitem__(self, name: str) -> type[EventModel]:
        return family(_TITLES[name])

    def __contains__(self, name: object) -> bool:
        return name in _TITLES

    def __iter__(self) -> Iterator[str]:
        return iter(_TITLES)

    def __len__(self) -> int:
        return len(_TITLES)


EVENTS: Mapping[str, type[EventModel]] = _Families()


def event_of(x: EventModel | type[EventModel] | str) -> EventModel:
    """The event model meant by an instance, a class or a name; what follows a hyphen is for the family to read.

    >>> event_of("poisson").name, event_of(EVENTS["gaussian"]).name
    ('poisson', 'gaussian')
    """
    if isinstance(x, EventModel):
        return x
    if isinstance(x, type) and issubclass(x, EventModel):
        return x()
    name, hyphen, variant = x.partition("-") if isinstance(x, str) else ("", "", "")
    if name not in EVENTS:
        raise unknown("event", x, EVENTS)
    return EVENTS[name].variant(variant) if hyphen else EVENTS[name]()
