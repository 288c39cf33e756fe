"""Rates under a Gamma: counts in rows and waiting times are both "events in an exposure".

>>> gamma_rate(np.array(10.0), np.array(4.0), np.array(3.0), np.array(1.0), "mean").item()  # (3 + 10) / (1 + 4)
2.6
"""

import numpy as np

from candide import numerics
from candide.data.blocks import Floats
from candide.priors import Gamma, Prior

_ROUNDING = 1e-12  # of events: a part of one that rounding leaves


def gamma_parameters(prior: Prior | None, default: Gamma, events: Floats, exposure: Floats, default_rate: float):
    """Shape and rate of a Gamma prior; what it leaves open is such that it expects the pooled rate of events.

    ``default`` is used if it leaves both open, ``default_rate`` is the rate where the data show none.
    """
    known = prior if isinstance(prior, Gamma) and prior != Gamma() else default
    seen = (events > 0) & (exposure > 0)
    pooled = np.where(seen, events / np.where(seen, exposure, 1.0), default_rate)
    if known.rate is None:
        return np.full_like(pooled, known.shape), known.shape / pooled
    shape = known.rate * pooled if known.shape is None else np.full_like(pooled, known.shape)
    return shape, np.full_like(pooled, known.rate)


def gamma_rate(events: Floats, exposure: Floats, shape: Floats, rate: Floats, how: str) -> Floats:
    """The rate of events per exposure under Gamma(shape, rate); not finite where nothing determines it."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if how == "mle":
            return events / exposure
        return (mode_events(shape + events) if how == "map" else shape + events) / (rate + exposure)


def mode_events(events: Floats) -> Floats:
    """Events less one, of which the mode of a Gamma consists; 0 where no more than rounding is left of them.

    A rate of 0 differs from one of 1e-17: it makes all counts but 0 impossible.
    """
    return np.where(events > 1.0 + _ROUNDING, events - 1.0, 0.0)


def gamma_evidence(events: Floats, exposure: Floats, shape: Floats, rate: Floats) -> Floats:
    """log of the integral of rate**events * exp(-rate * exposure) under Gamma(shape, rate)."""
    return (
        numerics.log_rising_factorial(shape, events)
        - shape * np.log1p(exposure / rate)
        - events * np.log(rate + exposure)
    )
