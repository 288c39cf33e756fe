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

The predictive is Student's t: with few rows it has wide tails, with many it is the normal.

>>> tally = Moments(np.array([[10.0]]), np.array([[0.0]]), np.array([[40.0]]))
>>> [Gaussian().estimate(tally, "uniform", how).variance.item() for how in ("mle", "map")]  # flat prior: MAP is MLE
[4.0, 4.0]
>>> type(Gaussian().estimate(tally)).__name__, Gaussian(covariance="full").kind
('StudentT', 'comoments')
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from candide import conjugate, distributions
from candide.conjugate.checks import refuse_cells, refuse_improper
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.errors import InputError, unknown_name_error
from candide.events.base import EventModel
from candide.priors import AddedVariance, Jeffreys, NormalInverseGamma, NormalInverseWishart, Prior, Unbiased, Uniform
from candide.tally import Moments
from candide.tally.base import divide_or_zero

if TYPE_CHECKING:
    from candide.tally import CoMoments

COVARIANCES = ("diagonal", "tied-diagonal", "spherical", "fixed", "full", "tied")
_JOINT_COVARIANCES = ("full", "tied")
_REMEDY = "use estimate='predictive' or a proper prior such as NormalInverseGamma()"


@dataclass(frozen=True)
class Gaussian(EventModel):
    """Normal values. A constant column carries no information: it has the same distribution in all classes.

    >>> import candide as cd
    >>> X = {"size": [1.0, 2.0, 8.0, 9.0]}
    >>> model = cd.NaiveBayes({"size": Gaussian(covariance="tied-diagonal")}).fit(X, ["a", "a", "b", "b"])
    >>> model.predict({"size": [2.5, 7.0]}).tolist()
    ['a', 'b']
    >>> [
    ...     (event.kind, event.has_covariance_matrix, event.is_joint)
    ...     for event in (Gaussian(), Gaussian(covariance="full"))
    ... ]
    [('moments', False, False), ('comoments', True, True)]
    """

    name: ClassVar[str] = "gaussian"
    accepted_priors: ClassVar[tuple[type[Prior], ...]] = (
        NormalInverseGamma,
        NormalInverseWishart,
        Jeffreys,
        Uniform,
        AddedVariance,
        Unbiased,
    )
    accepts_groups: ClassVar[bool] = True

    covariance: str = "diagonal"
    fixed: float = 1.0  # the variance when "fixed"
    shrinkage: float | str | None = None  # of "full" and "tied": a share in 0..1, "ledoit-wolf" or "oas"
    prior: Prior | str | None = field(default=NormalInverseGamma())

    def __post_init__(self) -> None:
        if self.covariance not in COVARIANCES:
            raise unknown_name_error("covariance", self.covariance, COVARIANCES)
        if not (np.isfinite(self.fixed) and self.fixed > 0):
            what = f"{type(self).__name__}: fixed is {self.fixed}, and no variance"
            raise InputError(what, value=self.fixed, remedy="pass a finite number > 0")
        if self.shrinkage is not None:
            conjugate.shrinkage.check_shrinkage(self.shrinkage)
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
        return self.covariance in _JOINT_COVARIANCES

    @property
    def is_joint(self) -> bool:  # type: ignore[override]
        return self.has_covariance_matrix or self.covariance == "spherical"

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "comoments" if self.has_covariance_matrix else "moments"

    @property
    def extra_sums(self) -> frozenset[str]:  # type: ignore[override]
        """Fourth moments, for Ledoit and Wolf's shrinkage."""
        return frozenset({"fourth"} if self.shrinkage == "ledoit-wolf" else ())

    def _estimate(self, tally: Any, prior: Prior | None, how: str) -> "distributions.Distribution":
        """A zero variance is a point mass of infinite density: an error under MLE, where no prior widens it."""
        if self.has_covariance_matrix:
            from candide.conjugate.covariance import estimate  # here and below: most models have no use for it

            return estimate(tally, prior, how, tied=self.covariance == "tied", shrinkage=self.shrinkage)
        if how == "mle":
            return self._most_likely(tally, prior)
        _refuse_mle_only(prior, "pass estimate='mle'")
        evened, flat = conjugate.normal.even_out(tally, prior)
        groups = conjugate.normal.VarianceGroups(self.covariance, flat)
        after = conjugate.normal.posterior(evened, conjugate.normal.normal_prior(prior, evened, groups), groups)
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

    def _draw_posterior(self, tally: Any, rng: "np.random.Generator") -> "distributions.Distribution":
        """Variances by gamma variates, and means given these; of a column that does not vary one for all classes."""
        prior = self._resolve(None)
        if self.has_covariance_matrix or self.covariance == "fixed" or isinstance(prior, AddedVariance | Unbiased):
            return super()._draw_posterior(tally, rng)
        evened, flat = conjugate.normal.even_out(tally, prior)
        groups = conjugate.normal.VarianceGroups(self.covariance, flat)
        own = conjugate.normal.posterior(evened, conjugate.normal.normal_prior(prior, evened, groups), groups)
        # As many degrees of freedom as values beyond one for each mean.
        free, scatter = groups.total(tally.n) - groups.total((tally.n > 0) * 1.0), groups.total(tally.m2)
        enough = (free >= 1) & (scatter > 0)
        a, b = np.where(enough, free / 2, own.a), np.where(enough, scatter / 2, own.b)
        seen = enough & (tally.n > 0)
        centre, kappa = np.where(seen, tally.mean, own.mean), np.where(seen, tally.n, own.kappa)
        refuse_cells((kappa <= 0) | (a <= 0) | (b <= 0), f"too few values for {prior!r}; {_REMEDY}")
        variance = groups.first(b / rng.standard_gamma(a))
        mean = centre + np.sqrt(variance / kappa) * rng.standard_normal(centre.shape)
        return distributions.Normal(np.where(flat, mean[:1], mean), np.where(flat, variance[:1], variance))

    def _most_likely(self, tally: Moments, prior: Prior | None) -> "distributions.Normal":
        pooled = tally.pool()
        fraction = prior.fraction if isinstance(prior, AddedVariance) else 0.0
        spread = np.where(conjugate.normal.is_flat(pooled), 0.0, pooled.m2)
        added = fraction * divide_or_zero(spread, pooled.n).max(axis=-1, initial=0.0, keepdims=True)
        if (added > 0).all():  # then no variance is zero, and there is nothing to refuse
            evened, groups = tally, conjugate.normal.VarianceGroups(self.covariance, np.zeros(tally.n.shape[-1], bool))
        else:
            evened, flat = conjugate.normal.even_out(tally, None, wide=added > 0)
            groups = conjugate.normal.VarianceGroups(self.covariance, flat)
            refuse_cells((evened.n <= 0) & (added == 0), f"no value to take a mean of; {_REMEDY}")
            point = conjugate.normal.is_flat(evened, groups) & (added == 0) & (self.covariance != "fixed")
            refuse_cells(point, f"all values are the same, so the MLE is a point mass; {_REMEDY}")
        if self.covariance == "fixed":
            return distributions.Normal(evened.mean, np.zeros_like(evened.mean) + self.fixed + added)
        rows = groups.total(evened.n)
        if isinstance(prior, Unbiased):
            rows = rows - groups.total((evened.n > 0).astype(np.float64))
            refuse_cells(rows <= 0, f"too few values for an unbiased variance; {_REMEDY}")
        return distributions.Normal(evened.mean, divide_or_zero(groups.total(evened.m2), rows) + added)

    def _evidence(self, tally: Any, prior: Prior | None) -> Floats:
        """Where groups share a variance its part is shared out by weight: the sum over the group is exact.

        Of columns modelled together each is given those before it, in the rows that have them all.
        """
        if self.has_covariance_matrix:
            return self._joint_evidence(tally, prior)
        _refuse_mle_only(prior, "there is no marginal likelihood; use NormalInverseGamma()")
        evened, flat = conjugate.normal.even_out(tally, prior)
        groups = conjugate.normal.VarianceGroups(self.covariance, flat)
        values = conjugate.normal.normal_prior(prior, evened, groups)
        refuse_improper(values.improper, prior)
        if self.covariance == "fixed":
            return conjugate.normal.known_variance_evidence(tally, values, groups, self.fixed)
        return conjugate.normal.normal_evidence(tally, values, groups)

    def _joint_evidence(self, tally: "CoMoments", prior: Prior | None) -> Floats:
        from candide.conjugate.covariance import evidence

        whole = isinstance(prior, NormalInverseWishart)  # then no column stands alone, or the usual prior serves
        apart = (
            Gaussian()._evidence(tally.to_moments(), None if whole else prior)
            if not _is_mle_only(prior)
            else tally.mean
        )
        return evidence(tally, prior, apart, tied=self.covariance == "tied")

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
        x = (
            self.spec(block.shape[1])
            .tally_values(distributions.base.to_dense_floats(block))
            .astype(np.float64, copy=False)
        )
        out, whole = np.empty((len(x), *tally.n.shape)), ~np.isnan(x).any(axis=1)
        if not whole.all():
            out[~whole] = self._estimate(tally, prior, how).contributions(block[~whole])
        at, w = np.flatnonzero(whole), None if weight is None else weight[whole]
        shape: dict[str, Any] = {"tied": self.covariance == "tied", "shrinkage": self.shrinkage}
        with conjugate.leave_one_out.name_rows_in_errors(at):
            rows = self._row_tallies(tally, block[whole], w)
            out[whole], good = held_out_contributions(tally, rows, x[whole], y[whole], prior, how, **shape)
        out[whole] += self._log_derivative(x[whole])[:, None, :]
        left = at[~good]
        with conjugate.leave_one_out.name_rows_in_errors(left):
            w = None if weight is None else weight[left]
            out[left] = self._held_out_one_by_one(tally, prior, how, block[left], y[left], w)
        return out

    def _log_derivative(self, x: Floats) -> Floats:
        """log of the derivative of what is tallied, at what is tallied: what a density gains by the change of scale."""
        return np.zeros_like(x)


def _is_mle_only(prior: Prior | None) -> bool:
    return isinstance(prior, AddedVariance | Unbiased)


def _refuse_mle_only(prior: Prior | None, remedy: str) -> None:
    if _is_mle_only(prior):
        what = f"{prior!r} belongs to the MLE: it has no posterior and no marginal likelihood"
        raise InputError(what, value=prior, remedy=remedy)
    if isinstance(prior, NormalInverseWishart):
        raise InputError(
            f"{prior!r} is of columns modelled together (covariance='full' or 'tied')",
            value=prior,
            remedy="pass NormalInverseGamma() for columns with variances of their own",
        )
