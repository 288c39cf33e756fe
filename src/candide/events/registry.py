"""The families by name: one line each.

>>> sorted(EVENTS)[:3], EVENTS["gaussian"].__name__
(['bernoulli', 'binned', 'categorical'], 'Gaussian')
"""

from candide.errors import InputTypeError, unknown_name_error
from candide.events.base import EventModel
from candide.registry import Registry

EVENTS: Registry[EventModel] = Registry(
    "candide.events",
    {
        "bernoulli": "Bernoulli",
        "binned": "Binned",
        "categorical": "Categorical",
        "complement": "Complement",
        "exponential": "Exponential",
        "gaussian": "Gaussian",
        "lognormal": "LogNormal",
        "multinomial": "Multinomial",
        "negativebinomial": "NegativeBinomial",
        "poisson": "Poisson",
        "text": "Text",
        "whole": "Whole",
    },
)
get_class = EVENTS.get_class


def resolve_event(x: EventModel | type[EventModel] | str) -> EventModel:
    """The event model meant by an instance, a class or a name; what follows a hyphen is for the family to read.

    >>> resolve_event("poisson").name, resolve_event(EVENTS["gaussian"]).name
    ('poisson', 'gaussian')
    """
    if isinstance(x, EventModel):
        return x
    if isinstance(x, type) and issubclass(x, EventModel):
        return x()
    if x is None:
        remedy = "leave it out, or pass 'auto', to choose event models by the data"
        raise InputTypeError("expected an event model or its name, got None", remedy=remedy)
    name, hyphen, variant = x.partition("-") if isinstance(x, str) else ("", "", "")
    if name not in EVENTS:
        raise unknown_name_error("event", x, EVENTS)
    return EVENTS[name].from_variant(variant) if hyphen else EVENTS[name]()
