"""Settings: what comes after the counting, and may be chosen again without the data.

One record. Estimators, functions, options of the command line and the store go through its fields, so a new setting is
a field here and a use of it. Each field carries its help.

>>> from dataclasses import fields
>>> [one.name for one in fields(Settings)]
['class_prior', 'estimate', 'priors', 'select']
>>> Settings(class_prior="uniform").changed(estimate="map")
Settings(class_prior='uniform', estimate='map', priors=None, select=None)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any


def setting(default: Any, text: str, *, choices: Sequence[str] = (), metavar: str = "", typed: bool = True) -> Any:
    """A field with its help; ``choices`` and ``metavar`` are what the command line takes, unless it cannot (typed)."""
    return field(default=default, metadata={"help": text, "choices": choices, "metavar": metavar, "typed": typed})


@dataclass(frozen=True)
class Settings:
    """What turns counts into a model."""

    class_prior: Any = setting("empirical", "The shares of the classes.", choices=("empirical", "uniform"))
    estimate: Any = setting(
        "predictive", "How counts become probabilities.", choices=("predictive", "mean", "map", "mle")
    )
    priors: Any = setting(None, "A prior, or priors by event model.", typed=False)
    select: int | str | None = setting(
        None,
        "Use the K columns that tell most of the class, or all that tell; each fold chooses for itself.",
        metavar="K|evidence",
    )

    def changed(self, **settings: Any) -> "Settings":
        """The same settings but for some."""
        return replace(self, **settings)
