"""Priors: what MAP and Bayes add to the counts. Values only; an event model turns one into a posterior.

A Beta(a, b) prior on P(yes), after n1 yes among n:

====================  ==============================
most probable (MAP)   (a - 1 + n1) / (a + b - 2 + n)
posterior mean        (a + n1) / (a + b + n)
====================  ==============================

So Beta(10, 10) adds nine imaginary rows of each kind to a MAP estimate, and scikit-learn's ``alpha`` is the posterior
mean under Dirichlet(alpha), which is the MAP estimate under Dirichlet(alpha + 1). ``Uniform`` is flat in the
parameter, so its MAP is the MLE; ``Jeffreys`` is the prior that does not depend on how the parameter is written.

>>> prior_of("beta"), prior_of(Jeffreys())
(Beta(a=1.0, b=1.0), Jeffreys())
>>> Dirichlet(-1)
Traceback (most recent call last):
    ...
candide.errors.InputError: Dirichlet: alpha must be >= 0 and finite, got -1.0
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from candide.errors import InputError, InputTypeError, unknown

Value = float | tuple[float, ...]


class Prior:
    """A prior with a name. Its parameters are checked, and made floats, on construction."""

    positive: ClassVar[tuple[str, ...]] = ()  # parameters that must be > 0; the others only >= 0
    signed: ClassVar[tuple[str, ...]] = ()  # parameters that may be negative

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is not None:
                object.__setattr__(self, field.name, self._checked(field.name, value))

    def _checked(self, name: str, value: object) -> Value:
        who = f"{type(self).__name__}: {name}"
        try:
            array = np.asarray(value, float)
        except (TypeError, ValueError):
            raise InputTypeError(f"{who} must be a number, got {value!r}") from None
        if array.ndim > 1:
            raise InputError(f"{who} must be a number or a flat sequence of numbers, got {array.ndim} dimensions")
        good = np.isfinite(array)
        if name not in self.signed:
            good &= array > 0 if name in self.positive else array >= 0
        if not good.all():
            wish = "finite" if name in self.signed else f"{'>' if name in self.positive else '>='} 0 and finite"
            raise InputError(f"{who} must be {wish}, got {array[~good].flat[0]}")
        return tuple(array.tolist()) if array.ndim else float(array)


@dataclass(frozen=True, slots=True)
class Beta(Prior):
    """On P(yes): ``a`` imaginary yes and ``b`` imaginary no, one number or one per feature."""

    a: float | Sequence[float] = 1.0
    b: float | Sequence[float] = 1.0


@dataclass(frozen=True, slots=True)
class Dirichlet(Prior):
    """On the probabilities of levels or words: ``alpha`` imaginary cases of each, one number or one per level."""

    alpha: float | Sequence[float] = 1.0


@dataclass(frozen=True, slots=True)
class Gamma(Prior):
    """On a rate: mean shape / rate. What is None is taken from the pooled tally, so that the prior expects its rate."""

    shape: float | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class NormalInverseGamma(Prior):
    """On (mean, variance): variance ~ InverseGamma(a, b), mean given variance ~ Normal(mean, variance / kappa).

    ``mean=None`` is the pooled mean and ``b=None`` is (a - 1) times the pooled variance, so the prior expects what the
    column shows as a whole, with the weight of about one row. That is unit-invariant: to rescale or shift a column
    changes no prediction.
    """

    positive: ClassVar[tuple[str, ...]] = ("a", "b")
    signed: ClassVar[tuple[str, ...]] = ("mean",)
    mean: float | None = None
    kappa: float = 0.01
    a: float = 1.5
    b: float | None = None

    def __post_init__(self) -> None:
        Prior.__post_init__(self)
        if self.b is None and self.a <= 1:
            raise InputError(
                f"NormalInverseGamma: a must be > 1 where b is None (no variance is expected), got {self.a}"
            )


@dataclass(frozen=True, slots=True)
class Jeffreys(Prior):
    """The invariant prior: Beta(1/2, 1/2), Dirichlet(1/2); 1/variance; 1/sqrt(rate) of a count, 1/rate of a time."""


@dataclass(frozen=True, slots=True)
class Uniform(Prior):
    """Flat in the parameters as they are written (probability; mean and variance; rate): its MAP is the MLE."""


@dataclass(frozen=True, slots=True)
class AddedVariance(Prior):
    """scikit-learn's ``var_smoothing``: adds ``fraction`` of the largest pooled variance to every variance.

    For MLE only. It mixes the units of the columns: kept for the drop-in, not advised.
    """

    fraction: float = 1e-9


PRIORS: dict[str, type[Prior]] = {
    "beta": Beta,
    "dirichlet": Dirichlet,
    "gamma": Gamma,
    "normal_inverse_gamma": NormalInverseGamma,
    "jeffreys": Jeffreys,
    "uniform": Uniform,
    "added_variance": AddedVariance,
}


def prior_of(x: Prior | str | None) -> Prior | None:
    """The prior meant by an instance or a name; None stays None, which leaves the choice to the event model."""
    if x is None or isinstance(x, Prior):
        return x
    if x not in PRIORS:
        raise unknown("prior", x, PRIORS)
    return PRIORS[x]()
