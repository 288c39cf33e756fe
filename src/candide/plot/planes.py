"""Pictures over two features: decision regions with their boundaries, and the posterior as a surface.

Features that are not drawn are absent, so that the picture is that of the two alone: under naive Bayes an absent value
adds nothing.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> plane = PosteriorGrid.from_model(
...     Drawable.from_model(FittedModel(garden())), ("height_cm", "leaf_mm"), resolution=50
... )
>>> plane.joint.shape, plane.posterior.sum(axis=2).round(6).min()
((50, 50, 3), np.float64(1.0))
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.table import Name
from candide.errors import InputError, unknown_name_error
from candide.plot import axis_text, style
from candide.plot.drawable import Drawable, refuse_labels_without_rows


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
        """The grid over the rows given, or else over where the classes have their mass."""
        if not isinstance(resolution, int | np.integer) or resolution < 2:
            raise InputError(f"resolution: {resolution!r}; pass a whole number of 2 or more")
        a, b = drawable.resolve_column_pair(features)
        x, y = (np.linspace(*drawable.plot_range(name, X), int(resolution)) for name in (a, b))
        grid = np.column_stack([np.tile(x, len(y)), np.repeat(y, len(x))])
        joint = drawable.joint_score((a, b), grid)
        # Impossible everywhere: the class prior decides, as in predictions.
        joint[np.isneginf(joint).all(axis=1)] = drawable.fitted.model.log_prior
        joint -= joint.max(axis=1, keepdims=True)
        return cls((a, b), x, y, np.maximum(joint, -1e6).reshape(len(y), len(x), -1))

    @property
    def posterior(self) -> NDArray:
        """p(class | a, b), (row, column, class)."""
        p = np.exp(self.joint)
        return p / p.sum(axis=2, keepdims=True)

    def margin(self, c: int) -> NDArray:
        """How far class c is ahead of the best of the others, (row, column): 0 on its boundary."""
        others = np.delete(self.joint, c, axis=2).max(axis=2)
        return self.joint[:, :, c] - others

    @property
    def extent(self) -> tuple[float, float, float, float]:
        """Of an image whose pixels have their centres on the grid."""
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
    """Which class is most probable where, and the boundaries between, over two features.

    The points of ``X`` are drawn on top, coloured by ``y``. With ``proba`` a region is the paler the less certain
    its class. The image holds class codes; its boundaries are where two log-posteriors are equal.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> model = FittedModel(garden())
    >>> ax = regions(model, features=("height_cm", "leaf_mm"), resolution=20)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('height_cm', 'leaf_mm')
    >>> ax.figure.clear()
    """
    refuse_labels_without_rows(X, y)
    drawable = Drawable.from_model(model)
    plane = PosteriorGrid.from_model(drawable, features, X, resolution)
    ax = style.get_axes(ax)
    _paint_regions(ax, plane, proba)
    _boundaries(ax, plane)
    drawn = _draw_points(ax, drawable, plane.names, X, y)
    shown = style.class_handles(drawable.labels, points=len(drawn) > 1, patches=len(drawn) <= 1)
    if len(drawable.labels) > style.MAX_LEGEND_CLASSES:
        _label_regions(ax, plane, drawable.labels)
    style.add_legend(ax, shown)
    ax.set(xlim=(plane.x[0], plane.x[-1]), ylim=(plane.y[0], plane.y[-1]))
    label_axes(ax, drawable, plane.names, X)
    return style.format_axes(ax, *plane.names, grid=False)


def label_axes(ax: Any, drawable: Drawable, names: tuple[Name, Name], X: Any) -> None:
    """The ticks of two features."""
    for axis, date in zip((ax.xaxis, ax.yaxis), drawable.are_dates(X, names), strict=True):
        style.format_ticks(axis, date=date)


def _paint_regions(ax: Any, plane: PosteriorGrid, proba: bool) -> None:
    from matplotlib.colors import ListedColormap

    k = plane.joint.shape[2]
    codes = plane.joint.argmax(axis=2)
    strength: Any = 0.32
    if proba and k > 1:
        winner = plane.posterior.max(axis=2)
        strength = 0.05 + 0.32 * np.clip((winner - 1 / k) / (1 - 1 / k), 0, 1)
    ax.imshow(
        codes, origin="lower", extent=plane.extent, aspect="auto", interpolation="nearest", alpha=strength,
        cmap=ListedColormap([style.colour(i) for i in range(k)]), vmin=-0.5, vmax=k - 0.5, zorder=0,
    )  # fmt: skip


def _boundaries(ax: Any, plane: PosteriorGrid) -> None:
    """One line where two classes meet; of more, the edge of each class's region."""
    k = plane.joint.shape[2]
    for c in range(1, k) if k <= 2 else range(k):
        margin = plane.margin(c)
        if margin.min() < 0 < margin.max():
            ax.contour(plane.x, plane.y, margin, levels=[0.0], colors=[style.DARK], linewidths=1.3, zorder=2)


def _label_regions(ax: Any, plane: PosteriorGrid, labels: Sequence[Any]) -> None:
    """The name of each class where it is most ahead."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground="white")]
    codes = plane.joint.argmax(axis=2)
    size = 8 if len(labels) <= style.MAX_COLOURS else 5.5
    for c, label in enumerate(axis_text.shorten_names(labels, 14)):
        mine = np.argwhere(codes == c)
        if len(mine) < 0.002 * codes.size:
            continue
        row, column = mine[np.abs(mine - np.median(mine, axis=0)).sum(axis=1).argmin()]
        at = (plane.x[column], plane.y[row])
        ax.annotate(label, at, ha="center", va="center", fontsize=size, path_effects=halo, zorder=4)


def _draw_points(ax: Any, drawable: Drawable, names: tuple[Name, Name], X: Any, y: Any) -> list[Any]:
    if X is None:
        return []
    a, b = (drawable.column_values(X, name) for name in names)
    codes = None if y is None else drawable.label_codes(y, len(a))
    return style.draw_points(ax, a, b, codes, drawable.labels)


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
    """p(a | x) - p(b | x) over two features, or p(a | x) alone, as a surface or as filled contours.

    ``classes`` is the pair (a, b); of a model of two classes it is by default the second and the first. The decision
    boundary of the pair, where the difference is 0, is drawn in black; under a surface it lies on the floor.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> model = FittedModel(garden())
    >>> ax = posterior_surface(model, features=("height_cm", "leaf_mm"), classes=("sage", "thyme"), kind="contour")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('height_cm', 'leaf_mm')
    >>> ax.figure.clear()
    """
    if kind not in ("surface", "contour"):
        raise unknown_name_error("kind", kind, ("surface", "contour"))
    drawable = Drawable.from_model(model)
    a, b = _class_pair(drawable, classes, difference)
    plane = PosteriorGrid.from_model(drawable, features, X, 200 if kind == "contour" else 150)
    p = plane.posterior
    z = p[:, :, a] - p[:, :, b] if b is not None else p[:, :, a]
    names = axis_text.shorten_names(drawable.labels, 16)
    title = f"p({names[a]} | x)" if b is None else f"p({names[a]} | x) - p({names[b]} | x)"
    ax = style.get_axes(ax, size=(6.8, 5.2), projection="3d" if kind == "surface" else None)
    (_surface if kind == "surface" else _contours)(ax, plane, z, a, b, title)
    label_axes(ax, drawable, plane.names, X)
    return ax


def _class_pair(drawable: Drawable, classes: Any, difference: bool) -> tuple[int, int | None]:
    if classes is None:
        if difference and len(drawable.labels) != 2:
            names = ", ".join(map(str, drawable.labels[:20]))
            raise InputError(
                f"the difference of two posteriors needs two classes, and the model has {len(drawable.labels)}: "
                f"{names}; name two: classes=(a, b), or --class A --class B"
            )
        return min(1, len(drawable.labels) - 1), 0 if difference else None
    chosen = [classes] if isinstance(classes, str) or not hasattr(classes, "__len__") else list(classes)
    if difference and len(chosen) != 2:
        raise InputError(f"the difference of two posteriors needs two classes, and {len(chosen)} were named")
    codes = [drawable.class_code(value) for value in chosen]
    if difference and codes[0] == codes[1]:
        raise InputError(f"the difference of the posterior of {chosen[0]!r} and itself is 0; name two classes")
    return codes[0], codes[1] if difference else None


def _colours(a: int, b: int | None) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    other = "#f4f4f4" if b is None else style.colour(b)
    stops = [other, style.colour(a)] if b is None else [other, "#f4f4f4", style.colour(a)]
    return LinearSegmentedColormap.from_list("classes", stops)


def _surface(ax: Any, plane: PosteriorGrid, z: NDArray, a: int, b: int | None, title: str) -> None:
    if not hasattr(ax, "plot_surface"):
        raise InputError('a surface needs axes with projection="3d"; make such axes, or pass kind="contour"')
    low = -1.0 if b is not None else 0.0
    grid = np.meshgrid(plane.x, plane.y)
    ax.plot_surface(
        *grid, z, cmap=_colours(a, b), vmin=low, vmax=1.0, rcount=100, ccount=100, linewidth=0.1,
        edgecolor="#00000020", antialiased=True,
    )  # fmt: skip
    level = 0.0 if b is not None else 0.5
    if z.min() < level < z.max():
        ax.contour(*grid, z, levels=[level], colors=[style.DARK], linewidths=1.6, zdir="z", offset=low)
    ax.set(
        xlabel=axis_text.wrap_name(plane.names[0], 18),
        ylabel=axis_text.wrap_name(plane.names[1], 18),
        zlim=(low, 1.0),
    )
    ax.set_title(title, fontsize="medium")
    ax.view_init(elev=32, azim=-125)
    ax.tick_params(labelsize=8)


def _contours(ax: Any, plane: PosteriorGrid, z: NDArray, a: int, b: int | None, title: str) -> None:
    low = -1.0 if b is not None else 0.0
    levels = np.linspace(low, 1.0, 21 if b is not None else 11)
    filled = ax.contourf(plane.x, plane.y, z, levels=levels, cmap=_colours(a, b), vmin=low, vmax=1.0)
    level = 0.0 if b is not None else 0.5
    if z.min() < level < z.max():
        ax.contour(plane.x, plane.y, z, levels=[level], colors=[style.DARK], linewidths=1.3)
    bar = ax.figure.colorbar(filled, ax=ax, ticks=np.linspace(low, 1.0, 5))
    bar.set_label(title)
    bar.outline.set_visible(False)
    style.format_axes(ax, *plane.names, grid=False)
