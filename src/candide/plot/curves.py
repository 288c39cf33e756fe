"""Densities of a probability under a Beta or Dirichlet prior, before and after counts.

>>> parse_beta((2, 3)), parse_beta("jeffreys"), parse_beta(Beta(10, 10))
((2.0, 3.0), (0.5, 0.5), (10.0, 10.0))
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.numerics import gammaln
from candide.plot import axis_text, style
from candide.priors import Beta, Dirichlet, Jeffreys, Prior, Uniform, resolve_prior


def posterior_curve(prior: Any = "beta", counts: Sequence[float] | None = None, *, ax: Any = None) -> Any:
    """The density of a probability under a Beta prior, and after ``counts`` of (yes, no), with its mean and mode.

    ``prior`` is a Beta, its two numbers, or the name of a prior.

    >>> ax = posterior_curve((5, 5), counts=(3, 2))  # a thumbtack: three heads, two tails
    >>> bool(ax.lines)
    True
    >>> ax.figure.clear()
    """
    a, b = parse_beta(prior)
    curves = [("prior", a, b)]
    if counts is not None:
        yes, no = _check_counts(counts, 2)
        curves.append(("posterior", a + yes, b + no))
    ax = style.get_axes(ax)
    theta = np.unique(np.concatenate([np.linspace(0.0, 1.0, 1001), *(_points_around_mean(a, b) for _, a, b in curves)]))
    top = 0.0
    for i, (name, a, b) in enumerate(curves):
        density = beta_density(theta, a, b)
        look = {"color": style.colour(i), "linestyle": "--" if name == "prior" else "-"}
        seen = f"\nafter {yes:g} yes, {no:g} no" if i else ""
        ax.plot(theta, density, label=f"{name}: Beta({a:g}, {b:g}){seen}", linewidth=1.8, zorder=3, **look)
        inside = (theta > 0.005) & (theta < 0.995) if min(a, b) < 1 else slice(None)  # it may be infinite at an end
        top = max(top, float(density[inside].max()))
    a, b = curves[-1][1:]
    _mark_mean_and_mode(ax, a, b)
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * top))
    style.format_axes(ax, "probability of yes", "density")
    style.add_legend(ax)
    return ax


def _points_around_mean(a: float, b: float) -> NDArray:
    """Points close enough to show a narrow peak."""
    if a + b <= 0:
        return np.empty(0)
    mean = a / (a + b)
    return np.clip(mean + np.sqrt(mean * (1 - mean) / (a + b + 1)) * np.linspace(-8, 8, 401), 0.0, 1.0)


def _mark_mean_and_mode(ax: Any, a: float, b: float) -> None:
    if a + b > 0:
        ax.axvline(a / (a + b), color=style.DARK, linewidth=1.0, linestyle=":", label=f"mean {a / (a + b):.4g}")
    if a > 1 and b > 1:
        mode = (a - 1) / (a + b - 2)
        ax.axvline(mode, color=style.DARK, linewidth=1.0, linestyle="-", label=f"mode (MAP) {mode:.4g}")


def beta_density(theta: NDArray, a: float, b: float) -> NDArray:
    """The density of Beta(a, b)."""
    if a <= 0 or b <= 0:
        raise InputError(f"Beta({a:g}, {b:g}) is improper: it has no density; give both more than 0")
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = _log_power(a - 1, theta) + _log_power(b - 1, 1 - theta)
    return np.exp(powers + float(gammaln(np.float64(a + b)) - gammaln(np.float64(a)) - gammaln(np.float64(b))))


def _log_power(power: float, x: NDArray) -> NDArray:
    return np.zeros_like(x) if power == 0 else power * np.log(x)


def dirichlet(
    prior: Any = "dirichlet", counts: Sequence[float] | None = None, ax: Any = None, *, names: Sequence[Any] = ()
) -> Any:
    """The density of three probabilities that sum to 1, on the triangle, under a Dirichlet prior and after counts.

    ``prior`` is a Dirichlet, its number or three numbers, or the name of a prior; ``names`` are those of the corners.

    >>> ax = dirichlet(1.0, counts=(3, 2, 1), names=("sun", "rain", "snow"))
    >>> ax is not None
    True
    >>> ax.figure.clear()
    """
    alpha = parse_dirichlet(prior, 3)
    if counts is not None:
        alpha = alpha + np.array(_check_counts(counts, 3))
    if (alpha <= 0).any():
        raise InputError(f"Dirichlet({', '.join(f'{v:g}' for v in alpha)}) is improper: it has no density")
    if names and len(names) != 3:
        raise InputError(f"the triangle has three corners, and {len(names)} names were given")
    ax = style.get_axes(ax, size=(5.6, 4.8))
    _triangle(ax, alpha, axis_text.shorten_names(names, 16) or ["1", "2", "3"])
    title = f"Dirichlet({', '.join(f'{v:g}' for v in alpha)})"
    ax.set_title(title if counts is None else f"posterior: {title}", fontsize="medium")
    return ax


_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
_SIDE = 120  # steps along a side


def simplex_points(steps: int = _SIDE) -> NDArray:
    """Evenly spaced points (point, 3) inside the triangle: a third of a step away from its edges, where densities may
    have no end."""
    i, j = (v.ravel() for v in np.mgrid[0:steps, 0:steps])
    i, j = i[i + j < steps], j[i + j < steps]
    return np.column_stack([i + 1 / 3, j + 1 / 3, steps - i - j - 2 / 3]) / steps


def dirichlet_density(p: NDArray, alpha: NDArray) -> NDArray:
    """The density of Dirichlet(alpha) at points (point, 3), per unit of (p1, p2)."""
    return np.exp(np.log(p) @ (alpha - 1) + gammaln(alpha.sum()) - gammaln(alpha).sum())


def _triangle(ax: Any, alpha: NDArray, names: list[str]) -> None:
    p = simplex_points()
    density = dirichlet_density(p, alpha)
    at = p @ _CORNERS
    top = float(np.quantile(density, 0.999))
    levels = np.linspace(0.0, max(top, 1e-12), 13) if np.ptp(density) > 1e-9 else 1
    if isinstance(levels, int):  # flat: one tint, no contours
        ax.tripcolor(*at.T, density, cmap="Blues", vmin=0.0, vmax=4 * top)
    else:
        ax.tricontourf(*at.T, density, levels=levels, cmap="Blues", extend="max")
    ax.plot(*_CORNERS[[0, 1, 2, 0]].T, color=style.DARK, linewidth=1.2)
    mean = alpha / alpha.sum() @ _CORNERS
    ax.plot(
        *mean, marker="+", markersize=11, markeredgewidth=1.8, color=style.PALETTE[1], label="mean", linestyle="none"
    )
    if (alpha > 1).all():
        mode = (alpha - 1) / (alpha.sum() - 3) @ _CORNERS
        ax.plot(*mode, marker="o", markersize=6, color=style.PALETTE[1], label="mode (MAP)", linestyle="none")
    for corner, name, va in zip(_CORNERS, names, ("top", "top", "bottom"), strict=True):
        ax.annotate(name, corner, (0, -5 if va == "top" else 5), textcoords="offset points", ha="center", va=va)
    ax.set(aspect="equal", xlim=(-0.1, 1.1), ylim=(-0.1, 0.97))
    ax.set_axis_off()
    style.add_legend(ax)


def parse_beta(prior: Any) -> tuple[float, float]:
    """The two numbers of a Beta prior, however it is given."""
    if isinstance(prior, str | Prior):
        known = resolve_prior(prior)
        if isinstance(known, Beta):
            a, b = np.ravel(known.a), np.ravel(known.b)
            if len(a) == len(b) == 1:
                return a.item(), b.item()
            raise InputError("this Beta has a pair of numbers a feature; pass one pair")
        pair = parse_dirichlet(known, 2)
    else:
        pair = parse_dirichlet(prior, 2)
    return float(pair[0]), float(pair[1])


def parse_dirichlet(prior: Any, n: int) -> NDArray:
    """The ``n`` numbers of a Dirichlet prior, however it is given."""
    known = resolve_prior(prior) if isinstance(prior, str | Prior) else Dirichlet(prior)
    if isinstance(known, Jeffreys | Uniform):
        return np.full(n, 0.5 if isinstance(known, Jeffreys) else 1.0)
    if not isinstance(known, Dirichlet):
        raise InputError(f"{known!r} is no prior of probabilities; pass a Beta, a Dirichlet, or their numbers")
    alpha = np.ravel(known.alpha)
    if len(alpha) not in (1, n):
        raise InputError(f"{known!r} is of {len(alpha)} probabilities, and this picture of {n}")
    return np.full(n, alpha[0]) if len(alpha) == 1 else alpha.astype(float)


def _check_counts(counts: Any, n: int) -> list[float]:
    given = np.asarray(counts, float)
    if given.shape != (n,) or not (given >= 0).all() or not np.isfinite(given).all():
        raise InputError(f"counts: {counts!r}; pass {n} numbers that are not negative")
    return given.tolist()
