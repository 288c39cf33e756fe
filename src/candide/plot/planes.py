"""Plots over two features: decision regions, the posterior as a surface, and Gaussian classes as ellipses.

All other features are missing, so the plot is that of the two alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.table import Name
from candide.errors import InputError, unknown_name_error
from candide.plot import style
from candide.plot.drawable import Drawable, check_labels


@dataclass(frozen=True, eq=False)
class PosteriorGrid:
    """log p(a, b, class) on a grid of two features."""

    names: tuple[Name, Name]
    x: NDArray  # (columns,)
    y: NDArray  # (rows,)
    joint: NDArray  # (row, column, class), finite

    @classmethod
    def from_model(
        cls, drawable: Drawable, features: Sequence[Any] | None, X: Any = None, resolution: int = 200
    ) -> "PosteriorGrid":
        """Build the grid over the rows, or without rows over where the classes have their mass."""
        if not isinstance(resolution, int | np.integer) or resolution < 2:
            raise InputError(f"resolution: {resolution!r}; pass a whole number of 2 or more")
        names = drawable.resolve_column_pair(features)
        x, y = (np.linspace(*drawable.plot_range(name, X), int(resolution)) for name in names)
        joint = drawable.joint_score(names, np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))]))
        # Impossible under every class: the class prior decides, as in predictions.
        joint[np.isneginf(joint).all(axis=1)] = drawable.fitted.model.log_prior
        joint -= joint.max(axis=1, keepdims=True)
        return cls(names, x, y, np.maximum(joint, -1e6).reshape(len(y), len(x), -1))

    @property
    def posterior(self) -> NDArray:
        """(row, column, class) p(class | a, b)."""
        p = np.exp(self.joint)
        return p / p.sum(axis=2, keepdims=True)

    def margin(self, c: int) -> NDArray:
        """(row, column) Return how far class c is ahead of the best of the others: 0 on its boundary."""
        return self.joint[:, :, c] - np.delete(self.joint, c, axis=2).max(axis=2)

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """The extent of an image whose pixels have their centres on the grid."""
        dx, dy = (self.x[1] - self.x[0]) / 2, (self.y[1] - self.y[0]) / 2
        return (self.x[0] - dx, self.x[-1] + dx, self.y[0] - dy, self.y[-1] + dy)


def regions(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    features: Sequence[Any] | None = None,
    ax: Any = None,
    resolution: int = 200,
    proba: bool = True,
) -> Any:
    """Draw the most probable class over two features, and the boundaries between classes.

    The points of ``X`` are drawn on top, coloured by ``y``. With ``proba`` a region is paler where its class is less
    certain. The image holds class codes; its boundaries are where two log-posteriors are equal.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> ax = regions(FittedModel(garden()), features=("height_cm", "leaf_mm"), resolution=20)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('height_cm', 'leaf_mm')
    """
    check_labels(X, y)
    drawable = Drawable.from_model(model)
    plane, labels = PosteriorGrid.from_model(drawable, features, X, resolution), drawable.labels
    ax = style.get_axes(ax)
    _paint_regions(ax, plane, proba)
    k = len(labels)
    for c in range(1, k) if k <= 2 else range(k):  # of two classes one boundary, of more the edge of each region
        margin = plane.margin(c)
        if margin.min() < 0 < margin.max():
            ax.contour(plane.x, plane.y, margin, levels=[0.0], colors=[style.DARK], linewidths=1.3, zorder=2)
    drawn = _draw_points(ax, drawable, plane.names, X, y)
    if k > style.MAX_LEGEND_CLASSES:
        codes, how = plane.joint.argmax(axis=2), {"path_effects": style.outline(2.5), "fontsize": _label_size(labels)}
        for c, label in enumerate(style.shorten_names(labels, 14)):
            cells = np.argwhere(codes == c)
            if len(cells) >= 0.002 * codes.size:
                row, column = cells[np.abs(cells - np.median(cells, axis=0)).sum(axis=1).argmin()]
                ax.annotate(label, (plane.x[column], plane.y[row]), ha="center", va="center", zorder=4, **how)
    style.add_legend(ax, style.class_handles(labels, points=len(drawn) > 1, patches=len(drawn) <= 1))
    ax.set(xlim=(plane.x[0], plane.x[-1]), ylim=(plane.y[0], plane.y[-1]))
    _format_ticks(ax, drawable, plane.names, X)
    return style.format_axes(ax, *plane.names, grid=False)


def _format_ticks(ax: Any, drawable: Drawable, names: tuple[Name, Name], X: Any) -> None:
    for axis, date in zip((ax.xaxis, ax.yaxis), drawable.are_dates(X, names), strict=True):
        style.format_ticks(axis, date=date)


def _paint_regions(ax: Any, plane: PosteriorGrid, proba: bool) -> None:
    from matplotlib.colors import ListedColormap

    k, alpha = plane.joint.shape[2], 0.32
    if proba and k > 1:
        alpha = 0.05 + 0.32 * np.clip((plane.posterior.max(axis=2) - 1 / k) / (1 - 1 / k), 0, 1)
    ax.imshow(
        plane.joint.argmax(axis=2), origin="lower", extent=plane.extent, aspect="auto", interpolation="nearest",
        alpha=alpha, cmap=ListedColormap([style.colour(i) for i in range(k)]), vmin=-0.5, vmax=k - 0.5, zorder=0,
    )  # fmt: skip


def _label_size(labels: Sequence[Any]) -> float:
    return 8 if len(labels) <= style.MAX_COLOURS else 5.5


def _draw_points(ax: Any, drawable: Drawable, names: tuple[Name, Name], X: Any, y: Any) -> list[Any]:
    if X is None:
        return []
    a, b = (drawable.column_values(X, name) for name in names)
    return style.draw_points(ax, a, b, None if y is None else drawable.label_codes(y, len(a)), drawable.labels)


def posterior_surface(
    model: Any,
    X: Any = None,
    *,
    features: Sequence[Any] | None = None,
    classes: Any = None,
    difference: bool = True,
    ax: Any = None,
    kind: str = "surface",
) -> Any:
    """Draw p(a | x) - p(b | x) over two features, or p(a | x) alone, as a surface or as filled contours.

    ``classes`` is the pair (a, b); by default the second and the first of two. The decision boundary of the pair,
    where the difference is 0, is drawn in black; under a surface it lies on the bottom plane.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> model = FittedModel(garden())
    >>> ax = posterior_surface(model, features=("height_cm", "leaf_mm"), classes=("sage", "thyme"), kind="contour")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('height_cm', 'leaf_mm')
    """
    if kind not in ("surface", "contour"):
        raise unknown_name_error("kind", kind, ("surface", "contour"))
    drawable = Drawable.from_model(model)
    a, b = _class_pair(drawable, classes, difference)
    plane = PosteriorGrid.from_model(drawable, features, X, 200 if kind == "contour" else 150)
    z, names = plane.posterior[:, :, a], style.shorten_names(drawable.labels, 16)
    title, low, level, colours = f"p({names[a]} | x)", 0.0, 0.5, ["#f4f4f4", style.colour(a)]
    if b is not None:
        z, title = z - plane.posterior[:, :, b], f"{title} - p({names[b]} | x)"
        low, level, colours = -1.0, 0.0, [style.colour(b), *colours]
    ax = style.get_axes(ax, size=(6.8, 5.2), projection="3d" if kind == "surface" else None)
    how = {"cmap": style.colormap(*colours), "vmin": low, "vmax": 1.0}
    levels = [level] if z.min() < level < z.max() else []
    if kind == "surface":
        if not hasattr(ax, "plot_surface"):
            raise InputError('a surface needs axes with projection="3d"; make such axes, or pass kind="contour"')
        grid = np.meshgrid(plane.x, plane.y)
        fine = {"rcount": 100, "ccount": 100, "linewidth": 0.1, "edgecolor": "#00000020", "antialiased": True}
        ax.plot_surface(*grid, z, **fine, **how)
        if levels:
            ax.contour(*grid, z, levels=levels, colors=[style.DARK], linewidths=1.6, zdir="z", offset=low)
        across, away = (style.wrap_name(name, 18) for name in plane.names)
        ax.set(xlabel=across, ylabel=away, zlim=(low, 1.0))
        ax.view_init(elev=32, azim=-125)
        ax.tick_params(labelsize=8)
        ax.set_title(title, fontsize="medium")
    else:
        filled = ax.contourf(plane.x, plane.y, z, levels=np.linspace(low, 1.0, 11 if b is None else 21), **how)
        if levels:
            ax.contour(plane.x, plane.y, z, levels=levels, colors=[style.DARK], linewidths=1.3)
        style.add_colorbar(ax, filled, title, ticks=np.linspace(low, 1.0, 5))
        style.format_axes(ax, *plane.names, grid=False)
    _format_ticks(ax, drawable, plane.names, X)
    return ax


def _class_pair(drawable: Drawable, classes: Any, difference: bool) -> tuple[int, int | None]:
    k = len(drawable.labels)
    if classes is None:
        if difference and k != 2:
            names = ", ".join(map(str, drawable.labels[:20]))
            raise InputError(
                f"the difference of two posteriors needs two classes, and the model has {k}: {names}; name two: "
                "classes=(a, b), or --class A --class B"
            )
        return min(1, k - 1), 0 if difference else None
    codes = drawable.class_codes(classes)
    if difference and len(codes) != 2:
        raise InputError(f"the difference of two posteriors needs two classes, and {len(codes)} were named")
    if difference and codes[0] == codes[1]:
        label = drawable.labels[codes[0]]
        raise InputError(f"the difference of the posterior of {label!r} and itself is 0; name two classes")
    return codes[0], codes[1] if difference else None


def ellipses(
    model: Any, X: Any = None, y: Any = None, *, features: Any = None, ax: Any = None, levels: Sequence[float] = (1, 2)
) -> Any:
    """Draw each class as ellipses of so many standard deviations over two Gaussian features, with the points of ``X``.

    For a predictive distribution, which is Student's t, the deviation is that of the t, or where it has none its scale.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> ax = ellipses(FittedModel(garden()), features=("height_cm", "leaf_mm"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('height_cm', 'leaf_mm')
    """
    check_labels(X, y)
    drawable = Drawable.from_model(model)
    names, labels = drawable.resolve_column_pair(features), drawable.labels
    if not len(levels) or not all(np.isfinite(level) and level > 0 for level in levels):
        raise InputError(f"levels: {list(levels)}; pass numbers of deviations above 0, such as (1, 2)")
    means, covariances = class_moments(drawable, names)
    ax = style.get_axes(ax)
    drawn = _draw_points(ax, drawable, names, X, y)
    for c in range(len(labels)):
        _draw_ellipses(ax, means[c], covariances[c], c, levels)
    if len(labels) > style.MAX_LEGEND_CLASSES:
        how = {"textcoords": "offset points", "fontsize": _label_size(labels), "path_effects": style.outline(2.5)}
        for label, mean in zip(style.shorten_names(labels, 14), means, strict=True):
            ax.annotate(label, mean, (4, 4), zorder=5, **how)
    ax.autoscale_view()
    if ax.get_legend() is None:  # otherwise they are drawn over another plot of the same classes
        style.add_legend(ax, style.class_handles(labels, points=len(drawn) > 1))
    _format_ticks(ax, drawable, names, X)
    return style.format_axes(ax, *names)


def _draw_ellipses(ax: Any, mean: NDArray, covariance: NDArray, c: int, levels: Sequence[float]) -> None:
    """Draw the ellipses of a class: half axes are the roots of the eigenvalues of its covariance."""
    from matplotlib.patches import Ellipse

    values, vectors = np.linalg.eigh(covariance)
    half_axes, angle = np.sqrt(np.maximum(values[::-1], 0.0)), np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    how = {"edgecolor": style.colour(c), "linestyle": style.line_style(c), "linewidth": 1.6, "zorder": 3.5}
    for level in sorted(levels):
        width, height = 2 * level * half_axes
        outline = style.outline(3.2)
        ax.add_patch(Ellipse(tuple(mean), width, height, angle=angle, fill=False, path_effects=outline, **how))
    ax.plot(*mean, marker="+", color=style.DARK, markersize=8, markeredgewidth=1.5, zorder=4)


def class_moments(drawable: Drawable, names: tuple[Name, Name]) -> tuple[NDArray, NDArray]:
    mean, sd = (np.column_stack(columns) for columns in zip(*(_moments(drawable, n) for n in names), strict=True))
    correlation = np.tile(np.eye(2), (len(mean), 1, 1))
    (i, a), (j, b) = (drawable.column_places[name] for name in names)
    joint = drawable.fitted.model.distributions[i].parameters().get("correlation")
    if i == j and joint is not None:
        correlation[:, 0, 1] = correlation[:, 1, 0] = joint[:, a, b]
    return mean, correlation * sd[:, :, None] * sd[:, None, :]


def _moments(drawable: Drawable, name: Name) -> tuple[NDArray, NDArray]:
    part, distribution, j = drawable.part_of(name)
    if not is_gaussian(drawable, name):
        problem = f"it is {part.event.name or type(part.event).__name__}, and ellipses are of Gaussian columns"
        raise InputError(problem, column=name, remedy="draw its regions or densities")
    params = {key: values[:, j] for key, values in distribution.parameters().items() if values.ndim == 2}
    if "sd" in params:
        return params["mean"], params["sd"]
    df = params["df"]  # the deviation of Student's t over its scale; 1 where it has none
    return params["loc"], params["scale"] * np.sqrt(np.where(df > 2, df / np.where(df > 2, df - 2, 1.0), 1.0))


def is_gaussian(drawable: Drawable, name: Name) -> bool:
    return drawable.part_of(name)[1].is_on_real_line
