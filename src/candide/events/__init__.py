"""Event models: class-conditional families, each imported at its first use.

>>> resolve_event("gaussian").covariance, resolve_event("gaussian-full").covariance
('diagonal', 'full')
"""

from typing import TYPE_CHECKING

from candide.events.base import ESTIMATES, EVENTS, EventModel, Support, resolve_event
from candide.events.base import get_class as __getattr__  # noqa: F401  (a family, imported at its first use)

if TYPE_CHECKING:
    from candide.events.bernoulli import Bernoulli
    from candide.events.categorical import Binned, Categorical, Whole
    from candide.events.multinomial import Complement, Multinomial
    from candide.events.non_negative import Exponential, NegativeBinomial, Poisson
    from candide.events.normal import Gaussian, LogNormal
    from candide.events.text import Text

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
