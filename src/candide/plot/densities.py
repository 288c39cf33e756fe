"""Densities of a probability under a Beta or Dirichlet prior, before and after counts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.numerics import gammaln
from candide.plot import style
from candide.priors import Beta, Dirichlet, Jeffreys, Prior, Uniform, resolve_prior

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
_STEPS = 120  # along a side of the triangle


def posterior_curve(prior: Any = "beta", counts: Sequence[float] | None = None, *, ax: Any = None) -> Any:
    """Draw the density of a probability under a Beta prior, and after ``counts`` of (yes, no), with its mean and mode.

    ``prior`` is a Beta, its two numbers, or the name of a prior.

    >>> ax = posterior_curve((5, 5), counts=(3, 2))  # a thumbtack: three heads, two tails
    >>> bool(ax.lines)
    True
    """
    a, b = parse_beta(prior)
    curves = [(a, b, f"prior: Beta({a:g}, {b:g})", "--")]
    if counts is not None:
        yes, no = _check_counts(counts, 2)
        a, b = a + yes, b + no
        curves.append((a, b, f"posterior: Beta({a:g}, {b:g})\nafter {yes:g} yes, {no:g} no", "-"))
    ax, top = style.get_axes(ax), 0.0
    points = [np.linspace(0.0, 1.0, 1001)]
    for a, b, *_ in curves:
        if a + b > 0:  # more points around the mean
            mean = a / (a + b)
            points.append(np.clip(mean + np.sqrt(mean * (1 - mean) / (a + b + 1)) * np.linspace(-8, 8, 401), 0.0, 1.0))
    theta = np.unique(np.concatenate(points))
    for i, (a, b, label, line) in enumerate(curves):
        density = beta_density(theta, a, b)
        ax.plot(theta, density, label=label, linewidth=1.8, zorder=3, color=style.colour(i), linestyle=line)
        inside = (theta > 0.005) & (theta < 0.995) if min(a, b) < 1 else slice(None)  # it may be infinite at an end
        top = max(top, float(density[inside].max()))
    if a + b > 0:
        ax.axvline(a / (a + b), color=style.DARK, linewidth=1.0, linestyle=":", label=f"mean {a / (a + b):.4g}")
    if a > 1 and b > 1:
        mode = (a - 1) / (a + b - 2)
        ax.axvline(mode, color=style.DARK, linewidth=1.0, linestyle="-", label=f"mode (MAP) {mode:.4g}")
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * top))
    return style.add_legend(style.format_axes(ax, "probability of yes", "density"))


def beta_density(theta: NDArray, a: float, b: float) -> NDArray:
    from scipy.special import betaln, xlog1py, xlogy

    if a <= 0 or b <= 0:
        raise InputError(f"Beta({a:g}, {b:g}) is improper: it has no density; give both more than 0")
    return np.exp(xlogy(a - 1, theta) + xlog1py(b - 1, -theta) - betaln(a, b))


def dirichlet(
    prior: Any = "dirichlet", counts: Sequence[float] | None = None, ax: Any = None, *, names: Sequence[Any] = ()
) -> Any:
    """Draw the density of three probabilities on the triangle, under a Dirichlet prior and after counts.

    ``prior`` is a Dirichlet, its number or three numbers, or the name of a prior; ``names`` are those of the corners.

    >>> ax = dirichlet(1.0, counts=(3, 2, 1), names=("sun", "rain", "snow"))
    >>> ax.get_title()
    'posterior: Dirichlet(4, 3, 2)'
    """
    alpha = parse_dirichlet(prior, 3)
    if counts is not None:
        alpha = alpha + np.array(_check_counts(counts, 3))
    title = f"Dirichlet({', '.join(f'{v:g}' for v in alpha)})"
    if (alpha <= 0).any():
        raise InputError(f"{title} is improper: it has no density")
    if names and len(names) != 3:
        raise InputError(f"the triangle has three corners, and {len(names)} names were given")
    ax = style.get_axes(ax, size=(5.6, 4.8))
    p = simplex_points()
    density, at = dirichlet_density(p, alpha), p @ _CORNERS
    top = float(np.quantile(density, 0.999))
    if np.ptp(density) > 1e-9:
        ax.tricontourf(*at.T, density, levels=np.linspace(0.0, max(top, 1e-12), 13), cmap="Blues", extend="max")
    else:  # flat
        ax.tripcolor(*at.T, density, cmap="Blues", vmin=0.0, vmax=4 * top)
    ax.plot(*_CORNERS[[0, 1, 2, 0]].T, color=style.DARK, linewidth=1.2)
    how = {"color": style.PALETTE[1], "linestyle": "none"}
    mean = alpha / alpha.sum() @ _CORNERS
    ax.plot(*mean, marker="+", markersize=11, markeredgewidth=1.8, label="mean", **how)
    if (alpha > 1).all():
        mode = (alpha - 1) / (alpha.sum() - 3) @ _CORNERS
        ax.plot(*mode, marker="o", markersize=6, label="mode (MAP)", **how)
    corners = zip(_CORNERS, style.shorten_names(names, 16) or ["1", "2", "3"], ("top", "top", "bottom"), strict=True)
    for corner, name, va in corners:
        ax.annotate(name, corner, (0, -5 if va == "top" else 5), textcoords="offset points", ha="center", va=va)
    ax.set(aspect="equal", xlim=(-0.1, 1.1), ylim=(-0.1, 0.97))
    ax.set_axis_off()
    ax.set_title(title if counts is None else f"posterior: {title}", fontsize="medium")
    return style.add_legend(ax)


def simplex_points(steps: int = _STEPS) -> NDArray:
    """Return evenly spaced points (point, 3) inside the triangle, away from its edges, where a density may diverge."""
    i, j = (v.ravel() for v in np.mgrid[0:steps, 0:steps])
    i, j = i[i + j < steps], j[i + j < steps]
    return np.column_stack([i + 1 / 3, j + 1 / 3, steps - i - j - 2 / 3]) / steps


def dirichlet_density(p: NDArray, alpha: NDArray) -> NDArray:
    """Return the density of Dirichlet(alpha) at points (point, 3), per unit of (p1, p2)."""
    return np.exp(np.log(p) @ (alpha - 1) + gammaln(alpha.sum()) - gammaln(alpha).sum())


def parse_beta(prior: Any) -> tuple[float, float]:
    """Return the two numbers of a Beta prior, however it is given."""
    prior = resolve_prior(prior) if isinstance(prior, str | Prior) else prior
    if not isinstance(prior, Beta):
        a, b = parse_dirichlet(prior, 2).tolist()
        return float(a), float(b)
    a, b = np.ravel(prior.a), np.ravel(prior.b)
    if len(a) == len(b) == 1:
        return a.item(), b.item()
    raise InputError("this Beta has a pair of numbers for each feature; pass one pair")


def parse_dirichlet(prior: Any, n: int) -> NDArray:
    """Return the ``n`` numbers of a Dirichlet prior, however it is given."""
    prior = resolve_prior(prior) if isinstance(prior, str | Prior) else Dirichlet(prior)
    if isinstance(prior, Jeffreys | Uniform):
        return np.full(n, 0.5 if isinstance(prior, Jeffreys) else 1.0)
    if not isinstance(prior, Dirichlet):
        raise InputError(f"{prior!r} is not a prior of probabilities; pass a Beta, a Dirichlet, or their numbers")
    alpha = np.ravel(prior.alpha)
    if len(alpha) not in (1, n):
        raise InputError(f"{prior!r} is of {len(alpha)} probabilities, and this picture of {n}")
    return np.full(n, alpha[0]) if len(alpha) == 1 else alpha.astype(float)


def _check_counts(counts: Any, n: int) -> list[float]:
    values = np.asarray(counts, float)
    if values.shape != (n,) or not (values >= 0).all() or not np.isfinite(values).all():
        raise InputError(f"counts: {counts!r}; pass {n} numbers that are not negative")
    return values.tolist()
