"""Priors of parameters. Values only; an event model combines one with a tally.

A Beta(a, b) prior on P(yes), after n1 yes among n:

====================  ==============================
most probable (MAP)   (a - 1 + n1) / (a + b - 2 + n)
posterior mean        (a + n1) / (a + b + n)
====================  ==============================

So Beta(10, 10) adds nine imaginary rows of each kind to a MAP estimate, and scikit-learn's ``alpha`` is the posterior
mean under Dirichlet(alpha), which is the MAP estimate under Dirichlet(alpha + 1). ``Uniform`` is flat in the
parameter, so its MAP is the MLE; ``Jeffreys`` is the prior that does not depend on how the parameter is written.

>>> resolve_prior("beta")
Beta(a=1.0, b=1.0)
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from candide.errors import InputError, InputTypeError, unknown_name_error


class Prior:
    """A prior with a name. Its parameters are checked, and made floats, on construction.

    >>> Dirichlet(-1)
    Traceback (most recent call last):
        ...
    candide.errors.InputError: Dirichlet: alpha is -1; pass a finite number >= 0
    """

    positive: ClassVar[tuple[str, ...]] = ()  # parameters that must be > 0; the others only >= 0
    signed: ClassVar[tuple[str, ...]] = ()  # parameters that may be negative

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if value is not None:
                object.__setattr__(self, field.name, self._check_parameter(field.name, value))

    def _check_parameter(self, name: str, value: object) -> float | tuple[float, ...]:
        who = f"{type(self).__name__}: {name}"
        try:
            array = np.asarray(value, float)
        except (TypeError, ValueError, OverflowError):
            raise InputTypeError(f"{who} is {value!r}", value=value, remedy="pass a number") from None
        if array.ndim > 1:
            what = f"{who} has {array.ndim} dimensions"
            raise InputError(what, value=value, remedy="pass a number or a flat sequence of numbers")
        good = np.isfinite(array)
        if name not in self.signed:
            good &= array > 0 if name in self.positive else array >= 0
        if not good.all():
            wish = "" if name in self.signed else " > 0" if name in self.positive else " >= 0"
            bad = float(array[~good].flat[0])
            raise InputError(f"{who} is {bad:g}", value=bad, remedy=f"pass a finite number{wish}")
        return tuple(array.tolist()) if array.ndim else float(array)


@dataclass(frozen=True)
class Beta(Prior):
    """On P(yes): ``a`` imaginary yes and ``b`` imaginary no, one number or one per feature.

    >>> from candide.events import Bernoulli
    >>> from candide.tally import LevelTally
    >>> flips = LevelTally(np.array([[1.0, 3.0]]), np.array([0, 2]))  # one no, three yes
    >>> Bernoulli().estimate(flips, Beta(10, 10), "map").parameters()["probability"].round(4).tolist()  # 12 / 22
    [[0.5455]]
    """

    a: float | Sequence[float] = 1.0
    b: float | Sequence[float] = 1.0


@dataclass(frozen=True)
class Dirichlet(Prior):
    """On the probabilities of levels or words: ``alpha`` imaginary cases of each, one number or one per level.

    >>> from candide.events import Categorical
    >>> from candide.tally import LevelTally
    >>> flips = LevelTally(np.array([[1.0, 3.0]]), np.array([0, 2]))  # one no, three yes
    >>> fit = Categorical().estimate(flips, Dirichlet(2), "mean")
    >>> fit.parameters()["probability"].round(3).tolist()  # (1 + 2) / (4 + 4), (3 + 2) / (4 + 4)
    [[0.375, 0.625]]
    """

    alpha: float | Sequence[float] = 1.0


@dataclass(frozen=True)
class PooledDirichlet(Prior):
    """On the probabilities of levels: each class's table is centred on the pooled proportions of all classes.

    The pooled proportions have ``alpha`` pseudo-counts of each level. The counts decide how close the tables lie to
    them: where classes differ little, or levels are rare, a class has the pooled proportions. So a column of very many
    levels without association with the class contributes nothing, and its evidence is at most 0 on average. The mode is
    taken in the log-probabilities, where it is the mean: no level gets probability 0.

    >>> from candide.events import Categorical
    >>> from candide.tally import LevelTally
    >>> soil = LevelTally(np.array([[1.0, 3.0], [40.0, 20.0]]), np.array([0, 2]))  # of a class of 4 rows, and one of 60
    >>> Categorical().estimate(soil, PooledDirichlet()).parameters()["probability"].round(3).tolist()
    [[0.576, 0.424], [0.647, 0.353]]
    """

    positive: ClassVar[tuple[str, ...]] = ("alpha",)
    alpha: float = 1.0


@dataclass(frozen=True)
class Gamma(Prior):
    """On a rate: mean shape / rate. What is None is taken from the pooled tally, so that the prior expects its rate.

    >>> from candide.events import Poisson
    >>> from candide.tally import Sums
    >>> calls = Sums(n=np.array([[4.0]]), total=np.array([[10.0]]), log_factorial=np.array([[8.0]]))
    >>> Poisson().estimate(calls, Gamma(3, 1), "mean").rate.round(6).tolist()  # (3 + 10) / (1 + 4)
    [[2.6]]
    """

    shape: float | None = None
    rate: float | None = None


@dataclass(frozen=True)
class NormalInverseGamma(Prior):
    """On (mean, variance): variance ~ InverseGamma(a, b), mean given variance ~ Normal(mean, variance / kappa).

    ``mean=None`` is the pooled mean and ``b=None`` is (a - 1) times the variance within classes, so the prior expects
    the spread that a class shows on average, with the weight of about one row. (To that variance all rows together add
    one more row, so that it is not 0 where each class has a single value.) That is unit-invariant: to rescale or shift
    a column changes no prediction.

    >>> from candide.events import Gaussian
    >>> from candide.tally import Moments
    >>> tally = Moments(np.array([[10.0]]), np.array([[3.0]]), np.array([[40.0]]))  # n, mean, sum of squares round it
    >>> fit = Gaussian().estimate(tally, NormalInverseGamma(mean=0, kappa=10, a=2, b=2), "mean")
    >>> fit.loc.tolist(), round(fit.variance.item(), 3)  # halfway between 0 and 3
    ([[1.5]], 7.417)
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
            what = f"NormalInverseGamma: a is {self.a:g} and b is None, so that no variance is expected"
            raise InputError(what, value=self.a, remedy="pass a > 1, or b")


@dataclass(frozen=True)
class NormalInverseWishart(Prior):
    """On (mean vector, covariance) of p columns modelled together: covariance ~ InverseWishart(df, scale), the mean
    given it ~ Normal(mean, covariance / kappa).

    ``scale`` is the diagonal of the scale matrix, ``mean`` the mean: one number, or one a column. ``mean=None`` is the
    pooled mean, ``df=None`` is p + 2 and ``scale=None`` is (df - p - 1) times the variances within classes: the prior
    expects what a class shows on average, uncorrelated, with the weight of about one row; in any units. That is what
    NormalInverseGamma() means for columns modelled together, too.

    >>> import candide as cd
    >>> X, y = [[1.0, 2.0], [2.0, 1.0], [8.0, 9.0], [9.0, 7.0]], ["a", "a", "b", "b"]
    >>> cd.GaussianBayes(param_priors=NormalInverseWishart()).fit(X, y).predict([[8.0, 8.0]]).tolist()
    ['b']
    """

    positive: ClassVar[tuple[str, ...]] = ("df", "scale")
    signed: ClassVar[tuple[str, ...]] = ("mean",)
    mean: float | Sequence[float] | None = None
    kappa: float = 0.01
    df: float | None = None
    scale: float | Sequence[float] | None = None


@dataclass(frozen=True)
class Jeffreys(Prior):
    """The invariant prior: Beta(1/2, 1/2), Dirichlet(1/2); 1/variance; 1/sqrt(rate) of a count, 1/rate of a time.

    >>> from candide.events import Bernoulli
    >>> from candide.tally import LevelTally
    >>> flips = LevelTally(np.array([[1.0, 3.0]]), np.array([0, 2]))  # one no, three yes
    >>> Bernoulli().estimate(flips, Jeffreys(), "mean").parameters()["probability"].round(4).tolist()  # 3.5 / 5
    [[0.7]]
    """


@dataclass(frozen=True)
class Uniform(Prior):
    """Flat in the parameters as they are written (probability; mean and variance; rate): its MAP is the MLE.

    >>> from candide.events import Bernoulli
    >>> from candide.tally import LevelTally
    >>> flips = LevelTally(np.array([[1.0, 3.0]]), np.array([0, 2]))  # one no, three yes
    >>> Bernoulli().estimate(flips, Uniform(), "map").parameters()["probability"].round(4).tolist()
    [[0.75]]
    """


@dataclass(frozen=True)
class AddedVariance(Prior):
    """scikit-learn's ``var_smoothing``: adds ``fraction`` of the largest pooled variance to every variance.

    For MLE only. It mixes the units of the columns: kept for the drop-in, not advised.

    >>> from candide.events import Gaussian
    >>> from candide.tally import Moments
    >>> tally = Moments(np.array([[10.0]]), np.array([[3.0]]), np.array([[40.0]]))  # n, mean, sum of squares round it
    >>> Gaussian().estimate(tally, AddedVariance(0.5), "mle").variance.tolist()  # 4, and half of the pooled 4
    [[6.0]]
    """

    fraction: float = 1e-9


@dataclass(frozen=True)
class Unbiased(Prior):
    """Flat in the mean, which is integrated out: the most likely variance of what is left divides by n - 1.

    For MLE only, of a Gaussian. k classes that share a variance or a covariance divide by n - k. So do textbooks of
    discriminant analysis, and R's lda and qda (package MASS).

    >>> from candide.events import Gaussian
    >>> from candide.tally import Moments
    >>> tally = Moments(np.array([[10.0]]), np.array([[3.0]]), np.array([[40.0]]))  # n, mean, sum of squares round it
    >>> round(Gaussian().estimate(tally, Unbiased(), "mle").variance.item(), 3)  # 40 / 9
    4.444
    """


PRIORS: dict[str, type[Prior]] = {
    "beta": Beta,
    "dirichlet": Dirichlet,
    "pooled_dirichlet": PooledDirichlet,
    "gamma": Gamma,
    "normal_inverse_gamma": NormalInverseGamma,
    "normal_inverse_wishart": NormalInverseWishart,
    "jeffreys": Jeffreys,
    "uniform": Uniform,
    "added_variance": AddedVariance,
    "unbiased": Unbiased,
}


def refuse_improper(is_improper: object, prior: Prior | None) -> None:
    """Raise if a prior has no finite integral: nothing is marginal under it."""
    if np.any(is_improper):  # type: ignore[call-overload]
        what = f"{prior!r} is improper here, so there is no marginal likelihood"
        raise InputError(what, value=prior, remedy="use a proper prior")


def resolve_prior(x: Prior | str | None) -> Prior | None:
    """The prior meant by an instance or a name; None stays None, which leaves the choice to the event model.

    >>> resolve_prior("jeffreys"), resolve_prior(None)
    (Jeffreys(), None)
    """
    if x is None or isinstance(x, Prior):
        return x
    if x not in PRIORS:
        raise unknown_name_error("prior", x, PRIORS)
    return PRIORS[x]()
