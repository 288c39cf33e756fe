"""Every public name has a docstring with an example; ``test_doctests`` runs them all.

A method may be shown in an example of its own, or in one of its class or of a class it is inherited from.
"""

import doctest
import inspect
import re

import pytest

import candide as cd
from candide import events, plot, priors, testing

SURFACES = {"candide": cd, "events": events, "plot": plot, "testing": testing}
VALUES = {"ESTIMATES", "EVENTS", "METRICS"}  # tables and tuples, described by their modules
NAMES = {f"{s}.{n}": getattr(module, n) for s, module in SURFACES.items() for n in module.__all__ if n not in VALUES}
NAMES |= {f"priors.{prior.__name__}": prior for prior in (priors.Prior, *priors.PRIORS.values())}
NAMES |= {"priors.resolve_prior": priors.resolve_prior}
CLASSES = {name: thing for name, thing in NAMES.items() if inspect.isclass(thing)}


def shown(thing) -> str:
    """The code of all examples in a docstring of its own."""
    return "".join(e.source for e in doctest.DocTestParser().get_examples(inspect.cleandoc(thing.__doc__ or "")))


def methods():
    """Public methods and properties that Candide defines, by class."""
    for title, cls in CLASSES.items():
        for name in dir(cls):
            home = next(base for base in cls.__mro__ if name in vars(base))
            member = vars(home)[name]
            is_method = isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member)
            if not name.startswith("_") and is_method and home.__module__.startswith("candide"):
                yield f"{title}.{name}", (cls, name)


METHODS = dict(methods())


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name):
    assert shown(NAMES[name]), f"{name} has no example in its docstring"


@pytest.mark.parametrize("name", METHODS)
def test_a_public_method_is_described_and_shown(name):
    cls, method = METHODS[name]
    assert inspect.getdoc(getattr(cls, method)), f"{name} has no docstring"
    members = [vars(base)[method] for base in cls.__mro__ if method in vars(base)]  # an override has the base's example
    own = any(shown(getattr(inherited, "__func__", inherited)) for inherited in members)
    of_classes = "".join(shown(base) for base in cls.__mro__)
    assert own or re.search(rf"\b{method}\b", of_classes), f"{name} is in no example"


def test_the_surface_is_seen():
    assert {"candide.NaiveBayes", "events.Gaussian", "priors.Beta", "plot.regions"} <= NAMES.keys()
    assert {"candide.NaiveBayes.forget", "candide.GaussianNB.theta_", "events.Poisson.evidence"} <= METHODS.keys()
