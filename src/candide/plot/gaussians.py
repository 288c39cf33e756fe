"""Gaussian classes as ellipses: where the density of a class falls to the height it has 1, 2, ... deviations out.

>>> ellipse = Ellipse.from_covariance(np.array([0.0, 0.0]), np.array([[2.0, 0.0], [0.0, 0.5]]))
>>> [round(float(v), 4) for v in ellipse.half_axes], ellipse.angle % 180
([1.4142, 0.7071], 0.0)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.table import Name
from candide.errors import InputError
from candide.plot import axis_text, style
from candide.plot.drawable import Drawable, refuse_labels_without_rows
from candide.plot.planes import label_axes


@dataclass(frozen=True, eq=False)
class Ellipse:
    """One deviation around a mean: half axes are the roots of the covariance's eigenvalues, the longest first."""

    centre: NDArray  # (2,)
    half_axes: NDArray  # (2,)
    angle: float  # of the longest, in degrees

    @classmethod
    def from_covariance(cls, centre: NDArray, covariance: NDArray) -> "Ellipse":
        values, vectors = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
        return cls(centre, np.sqrt(np.maximum(values[::-1], 0.0)), float(angle))


def ellipses(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    features: Sequence[Any] | None = None,
    ax: Any = None,
    levels: Sequence[float] = (1, 2),
) -> Any:
    """Each class as ellipses of so many standard deviations over two Gaussian features, with the points of ``X``.

    Under a predictive, which is Student's t, the deviation is that of the t, or where it has none its scale.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> model = FittedModel(garden())
    >>> ax = ellipses(model, features=("height_cm", "leaf_mm"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('height_cm', 'leaf_mm')
    >>> ax.figure.clear()
    """
    refuse_labels_without_rows(X, y)
    drawable = Drawable.from_model(model)
    names = drawable.resolve_column_pair(features)
    if not len(levels) or not all(np.isfinite(level) and level > 0 for level in levels):
        raise InputError(f"levels: {list(levels)}; pass numbers of deviations above 0, such as (1, 2)")
    means, covariances = class_moments(drawable, names)
    ax = style.get_axes(ax)
    drawn = []
    if X is not None:
        a, b = (drawable.column_values(X, name) for name in names)
        drawn = style.draw_points(ax, a, b, None if y is None else drawable.label_codes(y, len(a)), drawable.labels)
    for c in range(len(drawable.labels)):
        _draw(ax, Ellipse.from_covariance(means[c], covariances[c]), c, levels)
    if len(drawable.labels) > style.MAX_LEGEND_CLASSES:
        _label_means(ax, axis_text.shorten_names(drawable.labels, 14), means)
    ax.autoscale_view()
    if ax.get_legend() is None:  # else they are drawn over another picture of the same classes
        style.add_legend(ax, style.class_handles(drawable.labels, points=len(drawn) > 1))
    label_axes(ax, drawable, names, X)
    return style.format_axes(ax, *names)


def _draw(ax: Any, one: Ellipse, c: int, levels: Sequence[float]) -> None:
    from matplotlib.patches import Ellipse as Patch
    from matplotlib.patheffects import withStroke

    for level in sorted(levels):
        width, height = 2 * level * one.half_axes
        look = {"edgecolor": style.colour(c), "linestyle": style.line_style(c), "linewidth": 1.6, "zorder": 3.5}
        halo = [withStroke(linewidth=3.2, foreground="white")]  # over points of its own colour it stays visible
        ax.add_patch(Patch(tuple(one.centre), width, height, angle=one.angle, fill=False, path_effects=halo, **look))
    ax.plot(*one.centre, marker="+", color=style.DARK, markersize=8, markeredgewidth=1.5, zorder=4)


def _label_means(ax: Any, names: Sequence[str], centres: NDArray) -> None:
    """The name of each class beside its mean, where they are more than a legend tells apart."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    for name, at in zip(names, centres, strict=True):
        ax.annotate(
            name, at, (4, 4), textcoords="offset points", fontsize=8 if len(names) <= style.MAX_COLOURS else 5.5,
            path_effects=halo, zorder=5,
        )  # fmt: skip


def class_moments(drawable: Drawable, names: tuple[Name, Name]) -> tuple[NDArray, NDArray]:
    """Means (class, 2) and covariances (class, 2, 2) of two Gaussian features."""
    of = [_gaussian(drawable, name) for name in names]
    mean = np.column_stack([centre for centre, _ in of])
    sd = np.column_stack([deviation for _, deviation in of])
    correlation = np.tile(np.eye(2), (len(mean), 1, 1))
    (i, a), (j, b) = (drawable.column_places[name] for name in names)
    together = drawable.fitted.model.distributions[i].parameters().get("correlation")
    if i == j and together is not None:
        correlation[:, 0, 1] = correlation[:, 1, 0] = together[:, a, b]
    return mean, correlation * sd[:, :, None] * sd[:, None, :]


def _gaussian(drawable: Drawable, name: Name) -> tuple[NDArray, NDArray]:
    """(class,) mean and deviation of a Gaussian feature."""
    part, law, j = drawable.part_of(name)
    if not is_gaussian(drawable, name):
        raise InputError(
            f"it is {part.event.name or type(part.event).__name__}, and ellipses are of Gaussian columns",
            column=name,
            remedy="draw its regions or densities",
        )
    params = law.parameters()
    if "sd" in params:
        return params["mean"][:, j], params["sd"][:, j]
    return params["loc"][:, j], params["scale"][:, j] * _inflation(params["df"][:, j])


def is_gaussian(drawable: Drawable, name: Name) -> bool:
    """Whether a column's law is a normal or a t: with a place, a size, and values on all the line."""
    return drawable.part_of(name)[1].is_on_real_line


def _inflation(df: NDArray) -> NDArray:
    """Deviation of Student's t over its scale; 1 where it has none."""
    return np.sqrt(np.where(df > 2, df / np.where(df > 2, df - 2, 1.0), 1.0))
