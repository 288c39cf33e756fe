"""Event models: class-conditional families, one file each, with the same sections in the same order.

>>> (
...     resolve_event("gaussian").covariance,
...     resolve_event("gaussian-full").covariance,
...     resolve_event(EVENTS["poisson"]).name,
... )
('diagonal', 'full', 'poisson')
"""

from typing import TYPE_CHECKING

from candide.events.base import ESTIMATES, EVENTS, EventModel, Support, resolve_event
from candide.events.base import get_class as __getattr__  # noqa: F401  (a family, imported at its first use)

if TYPE_CHECKING:
    from candide.events.bernoulli import Bernoulli
    from candide.events.binned import Binned
    from candide.events.categorical import Categorical
    from candide.events.complement import Complement
    from candide.events.exponential import Exponential
    from candide.events.gaussian import Gaussian
    from candide.events.lognormal import LogNormal
    from candide.events.multinomial import Multinomial
    from candide.events.negativebinomial import NegativeBinomial
    from candide.events.poisson import Poisson
    from candide.events.text import Text
    from candide.events.whole import Whole

__all__ = [
    "ESTIMATES",
    "EVENTS",
    "Bernoulli",
    "Binned",
    "Categorical",
    "Complement",
    "EventModel",
    "Exponential",
    "Gaussian",
    "LogNormal",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "Support",
    "Text",
    "Whole",
    "resolve_event",
]
