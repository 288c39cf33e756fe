"""Gaussian: a mean in each class and column, and variances, or covariances of columns that are modelled together.

==================  ================================================================  ====================
covariance          what is learned                                                   also known as
==================  ================================================================  ====================
``diagonal``        a variance for each class and column                              Gaussian naive Bayes
``tied-diagonal``   a variance for each column, shared by the classes                 diagonal LDA
``spherical``       a variance for each class, shared by the columns
``fixed``           nothing: the variance is ``fixed``                                nearest mean
``full``            a covariance matrix for each class                                QDA
``tied``            one covariance matrix, shared by the classes                      LDA
==================  ================================================================  ====================

The predictive is Student's t: with few rows it has wide tails, with many it is the normal. LogNormal is the Gaussian of
the logarithms.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import conjugate, distributions, priors
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.encoding import Log
from candide.errors import InputError, unknown_name_error
from candide.events.base import EventModel, PosteriorSampler, Support
from candide.priors import Prior
from candide.tally import Moments
from candide.tally.base import divide_or_zero, name_rows_in_errors, refuse_cells

if TYPE_CHECKING:
    from candide.conjugate.normal import NormalPosterior, NormalPrior, VarianceGroups

COVARIANCES = ("diagonal", "tied-diagonal", "spherical", "fixed", "full", "tied")
_REMEDY = "use estimate='predictive' or a proper prior such as NormalInverseGamma()"


@dataclass(frozen=True)
class Gaussian(EventModel):
    """Normal values. A constant column carries no information: it has the same distribution in all classes.

    >>> import candide as cd
    >>> X = {"size": [1.0, 2.0, 8.0, 9.0]}
    >>> model = cd.NaiveBayes({"size": Gaussian(covariance="tied-diagonal")}).fit(X, ["a", "a", "b", "b"])
    >>> model.predict({"size": [2.5, 7.0]}).tolist()
    ['a', 'b']
    >>> event = Gaussian(covariance="full")
    >>> event.kind, event.has_covariance_matrix, event.is_joint
    ('comoments', True, True)
    """

    name: ClassVar[str] = "gaussian"
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (
        priors.NormalInverseGamma,
        priors.NormalInverseWishart,
        priors.Jeffreys,
        priors.Uniform,
        priors.AddedVariance,
        priors.Unbiased,
    )
    accepts_groups: ClassVar[bool] = True

    covariance: str = "diagonal"
    fixed: float = 1.0  # the variance when "fixed"
    shrinkage: float | str | None = None  # of "full" and "tied": a share in 0..1, "ledoit-wolf" or "oas"
    prior: Prior | str | None = field(default=priors.NormalInverseGamma())

    def __post_init__(self) -> None:
        if self.covariance not in COVARIANCES:
            raise unknown_name_error("covariance", self.covariance, COVARIANCES)
        if not (np.isfinite(self.fixed) and self.fixed > 0):
            what = f"{type(self).__name__}: fixed is {self.fixed}, not a valid variance"
            raise InputError(what, value=self.fixed, remedy="pass a finite number > 0")
        if self.shrinkage is not None:
            from candide.conjugate.covariance import check_shrinkage  # here and below: most models do not need it

            check_shrinkage(self.shrinkage)
            if not self.has_covariance_matrix:
                what = f"shrinkage is of a covariance matrix, and {self.covariance!r} has none"
                raise InputError(what, value=self.shrinkage, remedy="pass covariance='full' or 'tied'")

    @classmethod
    def from_variant(cls, name: str) -> Self:
        """``gaussian-full`` is Gaussian(covariance="full")."""
        return cls(covariance=name)

    @property
    def has_covariance_matrix(self) -> bool:
        """Whether the columns of a block are modelled together, by a covariance matrix."""
        return self.covariance in ("full", "tied")

    @property
    def is_joint(self) -> bool:  # type: ignore[override]
        """Whether the columns of a group depend on each other, or share a variance."""
        return self.has_covariance_matrix or self.covariance == "spherical"

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The tally kind that suffices."""
        return "comoments" if self.has_covariance_matrix else "moments"

    @property
    def extra_sums(self) -> frozenset[str]:  # type: ignore[override]
        """Fourth moments, for Ledoit and Wolf's shrinkage."""
        return frozenset({"fourth"} if self.shrinkage == "ledoit-wolf" else ())

    @property
    def _joint_settings(self) -> dict[str, Any]:
        return {"tied": self.covariance == "tied", "shrinkage": self.shrinkage}

    def _groups(self, tally: Moments, prior: Prior | None) -> "tuple[Moments, VarianceGroups, NormalPrior]":
        """The tally without spread in constant columns, the cells that share a variance, and the prior in numbers."""
        evened, flat = conjugate.normal.even_out(tally, prior)
        groups = conjugate.normal.VarianceGroups(self.covariance, flat)
        return evened, groups, conjugate.normal.normal_prior(prior, evened, groups)

    def _posterior(self, tally: Moments, prior: Prior | None) -> "tuple[NormalPosterior, VarianceGroups]":
        evened, groups, values = self._groups(tally, prior)
        return conjugate.normal.posterior(evened, values, groups), groups

    def _estimate(self, tally: Any, prior: Prior | None, how: str) -> "distributions.Distribution":
        """A zero variance is a point mass of infinite density: an error under MLE, where no prior widens it."""
        if self.has_covariance_matrix:
            from candide.conjugate.covariance import estimate

            return estimate(tally, prior, how, **self._joint_settings)
        if how == "mle":
            return self._most_likely(tally, prior)
        _refuse_other_priors(prior, "pass estimate='mle'")
        after, groups = self._posterior(tally, prior)
        refuse_cells(after.kappa <= 0, f"no value to take a mean of, and {prior!r} is improper; {_REMEDY}")
        wider = 1.0 + 1.0 / after.kappa if how == "predictive" else np.ones_like(after.kappa)
        if self.covariance == "fixed":
            return distributions.Normal(after.mean, self.fixed * wider)
        # The joint mode: each of the group's means takes half a count, as does the variance's own exponent.
        below = {"map": after.a + 1 + groups.total(np.ones_like(after.a)) / 2, "mean": after.a - 1}.get(how, after.a)
        refuse_cells((below <= 0) | (after.b <= 0), f"too few or no different values for {prior!r}; {_REMEDY}")
        if how == "predictive":
            return distributions.StudentT(2 * after.a, after.mean, np.sqrt(after.b / after.a * wider))
        return distributions.Normal(after.mean, after.b / below)

    def _posterior_sampler(self, tally: Any, prior: Prior | None) -> PosteriorSampler:
        """Variances by gamma variates, and means given these; of a column that does not vary one for all classes."""
        if self.has_covariance_matrix or self.covariance == "fixed" or conjugate.normal.is_mle_only(prior):
            return super()._posterior_sampler(tally, prior)
        after, groups = self._posterior(tally, prior)
        refuse_cells((after.kappa <= 0) | (after.a <= 0) | (after.b <= 0), f"too few values for {prior!r}; {_REMEDY}")
        flat = groups.flat

        def draw(rng: "np.random.Generator") -> "distributions.Distribution":
            variance = groups.first(after.b / rng.standard_gamma(after.a))
            mean = after.mean + np.sqrt(variance / after.kappa) * rng.standard_normal(variance.shape)
            return distributions.Normal(np.where(flat, mean[:1], mean), np.where(flat, variance[:1], variance))

        return draw

    def _most_likely(self, tally: Moments, prior: Prior | None) -> "distributions.Normal":
        pooled = tally.pool()
        fraction = prior.fraction if isinstance(prior, priors.AddedVariance) else 0.0
        spread = np.where(conjugate.normal.is_flat(pooled), 0.0, pooled.m2)
        added = fraction * divide_or_zero(spread, pooled.n).max(axis=-1, initial=0.0, keepdims=True)
        flat: NDArray[np.bool_] = np.zeros(tally.n.shape[-1], bool)
        if not (added > 0).all():  # else no variance is zero, and there is nothing to refuse
            tally, flat = conjugate.normal.even_out(tally, None, wide=added > 0)
        groups = conjugate.normal.VarianceGroups(self.covariance, flat)
        refuse_cells((tally.n <= 0) & (added == 0), f"no value to take a mean of; {_REMEDY}")
        if self.covariance == "fixed":
            return distributions.Normal(tally.mean, np.zeros_like(tally.mean) + self.fixed + added)
        is_point = conjugate.normal.is_flat(tally, groups) & (added == 0)
        refuse_cells(is_point, f"all values are the same, so the MLE is a point mass; {_REMEDY}")
        rows = groups.total(tally.n)
        if isinstance(prior, priors.Unbiased):
            rows = rows - groups.total((tally.n > 0).astype(np.float64))
            refuse_cells(rows <= 0, f"too few values for an unbiased variance; {_REMEDY}")
        return distributions.Normal(tally.mean, divide_or_zero(groups.total(tally.m2), rows) + added)

    def _evidence(self, tally: Any, prior: Prior | None) -> Floats:
        """Where groups share a variance its part is divided by weight: the sum over the group is exact.

        Of columns modelled together each is given those before it, in the rows that have them all.
        """
        if self.has_covariance_matrix:
            from candide.conjugate.covariance import evidence

            column_evidence = tally.mean
            if not conjugate.normal.is_mle_only(
                prior
            ):  # under NormalInverseWishart no column stands alone, or the usual prior serves
                column_prior = None if isinstance(prior, priors.NormalInverseWishart) else prior
                column_evidence = Gaussian()._evidence(tally.to_moments(), column_prior)
            return evidence(tally, prior, column_evidence, tied=self.covariance == "tied")
        _refuse_other_priors(prior, "there is no marginal likelihood; use NormalInverseGamma()")
        _, groups, values = self._groups(tally, prior)
        priors.refuse_improper((values.a <= 0) | (values.b <= 0) | (values.kappa <= 0), prior)
        variance = self.fixed if self.covariance == "fixed" else None
        return conjugate.normal.normal_evidence(tally, values, groups, variance)

    # Rows held out

    @property
    def _has_leading_axes(self) -> bool:  # type: ignore[override]
        return not self.has_covariance_matrix

    def _cells(self, tally: Any) -> int:
        return tally.n.size * tally.n.shape[1] if self.has_covariance_matrix else tally.n.size

    def _held_out_contributions(
        self, tally: Any, prior: Any, how: str, block: Block, y: Codes, weight: Floats | None
    ) -> Floats:
        """Columns modelled together count rows without an absent value only: to leave out another changes nothing."""
        if not self.has_covariance_matrix:
            return super()._held_out_contributions(tally, prior, how, block, y, weight)
        from candide.conjugate.covariance import held_out_contributions

        block = to_dense(block)
        floats = distributions.base.to_dense_floats(block)
        x = self.spec(block.shape[1]).tally_values(floats).astype(np.float64, copy=False)
        out, whole = np.empty((len(x), *tally.n.shape)), ~np.isnan(x).any(axis=1)
        if not whole.all():
            out[~whole] = self._estimate(tally, prior, how).contributions(block[~whole])
        at, w = np.flatnonzero(whole), None if weight is None else weight[whole]
        with name_rows_in_errors(at):
            rows = self._row_tallies(tally, block[whole], w)
            settings = self._joint_settings
            out[whole], good = held_out_contributions(tally, rows, x[whole], y[whole], prior, how, **settings)
        out[whole] += self._log_derivative(x[whole])[:, None, :]
        left = at[~good]
        with name_rows_in_errors(left):
            w = None if weight is None else weight[left]
            out[left] = self._held_out_one_by_one(tally, prior, how, block[left], y[left], w)
        return out

    def _log_derivative(self, x: Floats) -> Floats:
        """log of the derivative of what is tallied, at what is tallied: what a density gains by the change of scale."""
        return np.zeros_like(x)


@dataclass(frozen=True)
class LogNormal(Gaussian):
    """Positive values whose logarithm is Gaussian. Prior and settings are those of the Gaussian of ln x.

    A value <= 0 is an error when counted, and has density 0 when scored.

    >>> import candide as cd
    >>> pay = {"pay": [900.0, 1100.0, 1500.0, 8000.0, 20000.0, 5000.0]}
    >>> cd.NaiveBayes({"pay": LogNormal()}).fit(pay, ["a"] * 3 + ["b"] * 3).predict({"pay": [1200.0, 9000.0]}).tolist()
    ['a', 'b']
    """

    name: ClassVar[str] = "lognormal"
    support: ClassVar[Support | None] = Support(low=0.0, is_open=True)
    encoding = Log()

    def _estimate(self, tally: Any, prior: Prior | None, how: str) -> "distributions.Distribution":
        return distributions.LogScale(super()._estimate(tally, prior, how))

    def _posterior_sampler(self, tally: Any, prior: Prior | None) -> PosteriorSampler:
        draw = super()._posterior_sampler(tally, prior)
        return lambda rng: distributions.LogScale(draw(rng))

    def _evidence(self, tally: Any, prior: Prior | None) -> Floats:
        """Of x itself: each value's density gains 1/x, and the tally holds the sum of ln x."""
        return super()._evidence(tally, prior) - tally.n * tally.mean

    def _log_derivative(self, x: Floats) -> Floats:
        return -x


def _refuse_other_priors(prior: Prior | None, remedy: str) -> None:
    conjugate.normal.refuse_mle_only(prior, remedy)
    if isinstance(prior, priors.NormalInverseWishart):
        what = f"{prior!r} is of columns modelled together (covariance='full' or 'tied')"
        raise InputError(what, value=prior, remedy="pass NormalInverseGamma() for columns with variances of their own")
