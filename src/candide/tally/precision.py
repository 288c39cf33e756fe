"""Precision: sums with more digits than a double, for columns where doubles would lose digits.

A sum of squares in doubles has sixteen digits. Where a column spreads a thousand times wider than its values lie
apart (one of 1e9 among values near 1, or two clusters of them) that is too coarse once the far ones are removed, and
the column is summed exactly, as an expansion of three doubles (159 bits).

A value of 1e35 that is removed takes the digits beyond these with it. Where another, of 1e18, still hides that, the
tally keeps a bound on the error, its noise, so that removing the second is refused.

The exact sums of columns modelled together are those of w z z' with z = (1, x): weight, totals and products in one
matrix (class, 1 + feature, 1 + feature, part). They add and subtract as sums of powers do
(:mod:`candide.kernels.powers`): a row far from the others that is counted and removed again leaves their covariances
unchanged.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.errors import InputError, NotCountedError
from candide.kernels.powers import sum_deviations
from candide.numerics import EXPANSION_PARTS, sum_to_expansion, two_product
from candide.tally.base import Tally, broadcast_by_class, divide_or_zero, refuse_removal

IMPRECISE_RATIO = 1024.0
LOST_SHARE = 2.0**-140  # of sums: less than this share of what was there is rounding
N_RESIDUALS = EXPANSION_PARTS - 1
_MIN_NOISE_RATIO = 2.0**10  # times the rounding of the sums themselves: less than that is not worth keeping
_SAMPLE_ROWS = (64, 1024)  # rows examined; more where a column is the same in all of these
_NEIGHBOUR_DISTANCE = 8  # values, in order, between which a distance is taken


class ExactSums(Tally):
    """A tally whose ``sums``, a cached property, may hold more than its arrays, with a bound on their error.

    The expansions, the residuals that a file keeps of them and the noise are in ``__dict__``, not fields of the state.
    """

    sums: Any

    @property
    def noise(self) -> Any:
        """(classes, features) the bound on the error of the sums; 0.0 where nothing enormous was removed."""
        return self.__dict__.get("_noise", 0.0)

    def with_noise(self, noise: Any) -> Self:
        """This tally, which must be new, with a bound on the error of its sums."""
        if np.any(noise):
            self.__dict__["_noise"] = np.asarray(noise)
        return self

    def _with_scaled_noise(self, noise: Any, factor: "float | Floats") -> Self:
        return self.with_noise(noise * broadcast_by_class(factor, np.ndim(noise)))

    def _with_residuals(self, arrays: dict[str, NDArray], **shapes: tuple[int, ...]) -> Self:
        """This tally, which must be new, with the residuals and the noise of a file."""
        self.__dict__.update({f"_{name}": arrays[name].reshape(s) for name, s in shapes.items() if name in arrays})
        return self.with_noise(arrays.get("noise", 0.0))

    def _residual_arrays(self, **residuals: NDArray) -> dict[str, NDArray]:
        """What a file keeps: residuals other than zero as (classes, numbers), and the noise."""
        arrays = {name: a.reshape(len(a), -1) for name, a in residuals.items() if a.any()}
        return arrays | ({"noise": self.noise} if "_noise" in self.__dict__ else {})

    @property
    def _has_residuals(self) -> bool:
        """Whether the sums hold more than the state."""
        return not self.__dict__.keys().isdisjoint(("sums", "_rest", "_last", "_noise"))

    def _map_arrays(self, change: Callable[[NDArray], NDArray]) -> Self:
        out = super()._map_arrays(change)
        if self._has_residuals:
            out.__dict__["sums"] = change(self.sums)
        return out.with_noise(change(self.noise) if "_noise" in self.__dict__ else 0.0)


def significant_noise(rounding: Floats, left: Floats) -> Floats:
    """The errors of what is left of sums that are worth keeping: far larger than its own rounding."""
    return np.where(rounding > _MIN_NOISE_RATIO * LOST_SHARE * np.abs(left), rounding, 0.0)


def check_not_lost(lost: NDArray[np.bool_]) -> None:
    """Raise an error where a removal leaves nothing but rounding errors."""
    what = "the values removed are so large that what is left was lost beside them; fit again without them"
    refuse_removal(lost, what)


def estimate_scale(block: Any, n_rows: int) -> Floats:
    """(features,) the smallest distance above 0 of values some places apart; 0 where those examined are the same.

    ``block[rows]`` gives rows of numbers.
    """
    scale = np.zeros(0)
    for n in _SAMPLE_ROWS:
        rows = np.unique(np.linspace(0, n_rows - 1, min(n, n_rows)).astype(np.intp))
        x = np.asarray(block[rows], np.float64)
        scale = scale if len(scale) else np.zeros(x.shape[1])
        same = np.flatnonzero(scale == 0)
        if not len(same):
            break
        step = min(_NEIGHBOUR_DISTANCE, max(1, len(x) // _NEIGHBOUR_DISTANCE))
        ordered = np.sort(x[:, same], axis=0)
        with np.errstate(invalid="ignore"):
            gaps = ordered[step:] - ordered[:-step]
        least = np.where((gaps > 0) & np.isfinite(gaps), gaps, np.inf).min(axis=0, initial=np.inf)
        scale[same] = np.where(np.isfinite(least), least, 0.0)
    return scale


def is_mean_imprecise(mean: Floats, scale: Floats) -> NDArray[np.bool_]:
    """Where a mean lies so far from zero that its rounding shows beside the scale of the values."""
    return (np.abs(mean) > IMPRECISE_RATIO**2 * scale) & (scale > 0)


# Exact sums of columns modelled together


def sums_from_comoments(weight: Floats, mean: Floats, scatter: Floats, residuals: Floats | None = None) -> Floats:
    """The sums that weight (class, 1), mean and scatter stand for, with what rounding took from these."""
    z = np.concatenate([np.ones_like(weight), mean], axis=1)
    row, column = np.tril_indices(z.shape[1])  # one triangle suffices
    spread = np.zeros((len(z), z.shape[1], z.shape[1]))
    spread[:, 1:, 1:] = scatter
    with np.errstate(invalid="ignore", over="ignore"):
        product, error = two_product(z[:, row], z[:, column])
        rest = [] if residuals is None else [residuals[:, row, column, i] for i in range(N_RESIDUALS)]
        terms = [*two_product(weight, product), *two_product(weight, error), spread[:, row, column], *rest]
        lower = sum_to_expansion(*terms)
    out = np.empty((*spread.shape, EXPANSION_PARTS))
    out[:, row, column] = out[:, column, row] = lower
    return out


def comoments_from_sums(sums: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight, mean and scatter, each rounded once; a spread may be negative by rounding."""
    weight, sums_of_row = sums[:, :1, 0, 0], (sums[:, :1, 0], sums[:, 0, 1:])
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        safe = np.where(weight > 0, weight, 1.0)
        mean = sums[:, 0, 1:, 0] / safe
        mean = np.where(weight > 0, mean + sum_deviations(*sums_of_row, mean)[..., 0] / safe, 0.0)
        gap = sum_deviations(*sums_of_row, mean)[..., 0]  # sum of w (x - mean): the mean's own rounding
        row, column = np.tril_indices(mean.shape[1])  # one triangle suffices
        a, b = mean[:, row], mean[:, column]
        product, error = two_product(a, b)
        w, low = sums[:, :1, 0, 0], sums[:, :1, 0, 1]
        terms = [*two_product(w, product), *two_product(w, error), low * product]
        terms += [*two_product(a, gap[:, column]), *two_product(b, gap[:, row])]
        parts = [sums[:, 1 + row, 1 + column, part] for part in range(EXPANSION_PARTS)]
        lower = sum_to_expansion(*parts, *(-term for term in terms))[..., 0]
        lower -= gap[:, row] * gap[:, column] / safe
    return weight, mean, symmetric_from_lower(np.where(weight > 0, lower, 0.0), mean.shape[1])


def drift_residuals(mean: Floats, drift: Floats) -> Floats:
    """(1 + feature, 1 + feature, N_RESIDUALS) residuals of the sums if deviations from ``mean`` add up to ``drift``."""
    out = np.zeros((len(mean) + 1, len(mean) + 1, N_RESIDUALS))
    out[0, 1:, 0] = out[1:, 0, 0] = drift
    product, error = two_product(mean[:, None], drift[None, :])
    out[1:, 1:] = sum_to_expansion(product, product.T, error, error.T)[..., :N_RESIDUALS]
    return out


def symmetric_from_lower(lower: NDArray, p: int) -> Floats:
    """A matrix a class from its lower triangle."""
    if lower.shape[1] != p * (p + 1) // 2:
        raise InputError(f"a triangle of {p} columns has {p * (p + 1) // 2} values, not {lower.shape[1]}")
    out = np.empty((len(lower), p, p))
    i, j = np.tril_indices(p)
    out[:, i, j] = lower
    out[:, j, i] = lower
    return out


def check_remaining_scatter(scatter: Floats, weight: Floats, removed: Floats, slack: Floats) -> None:
    """Check that the scatter left of a class can be that of rows: it has no negative direction, up to ``slack``."""
    p = scatter.shape[1]
    for c in np.flatnonzero(removed[:, 0] > 0).tolist():
        bound = np.maximum(np.diagonal(scatter[c]), 0.0) + slack[c]
        unit = divide_or_zero(scatter[c], np.outer(np.sqrt(bound), np.sqrt(bound)))
        np.fill_diagonal(unit, 0.0)
        outside = np.abs(unit) > 1 + 1e-9
        if not outside.any() and weight[c, 0] > 0:
            np.fill_diagonal(unit, 1.0 + p * divide_or_zero(slack[c], bound) + 1e-9)
            try:
                np.linalg.cholesky(unit)
            except np.linalg.LinAlgError:
                outside[0] = True
        if outside.any():
            j = int(outside.any(axis=1).argmax())
            raise NotCountedError("the values removed were never counted together", (c, j))


def bound_covariances(scatter: Floats, m2: Floats) -> Floats:
    """A scatter with these spreads; no covariance is larger than they allow: Cauchy and Schwarz."""
    sd = np.sqrt(m2)
    bound = outer_product(sd, sd) * (1 + 1e-15)
    out = np.clip(scatter, -bound, bound)
    np.einsum("cjj->cj", out)[:] = m2
    return out


def outer_product(a: Floats, b: Floats, times: Floats | None = None) -> Floats:
    """(classes, features, features) the outer product of two vectors a class, ``times`` (classes, 1) a number.

    Symmetric to the last bit where both are the same.
    """
    out = a[:, :, None] * b[:, None, :]
    return out if times is None else np.multiply(out, times[:, :, None], out=out)


def embed_matrix(product: Floats, varying: Codes, p: int) -> Floats:
    """(1, features, features) a matrix of the columns that vary among all of them."""
    if len(varying) == p:
        return product[None]
    out = np.zeros((1, p, p))
    out[0, varying[:, None], varying] = product
    return out
