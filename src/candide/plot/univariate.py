"""One feature given the class: densities over histograms, or bars for levels and counts.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> levels, p = shown_level_probabilities(Drawable.from_model(FittedModel(garden())), "soil")
>>> levels, p.sum(axis=0).round(6).tolist()
(['chalk', 'clay', 'sand'], [1.0, 1.0, 1.0])
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from candide.data.blocks import Floats
from candide.data.table import Name
from candide.errors import InputError
from candide.explain.columns import iterate_conditionals
from candide.explain.words import top_words
from candide.plot import axis_text, style
from candide.plot.data import strongest_columns
from candide.plot.drawable import Drawable, refuse_labels_without_rows

_CURVE_POINTS = 600  # points of a curve
_MOST_LEVELS = 14
_MOST_COUNTS = 60  # whole numbers drawn one by one; more are drawn as a curve
_BINS = 30
_DATA_LABEL = "share in the data"


def densities(model: Any, X: Any = None, y: Any = None, *, feature: Any = None, ax: Any = None) -> Any:
    """p(feature | class) for every class; behind it, where rows are given, the histogram of each class.

    Numbers are drawn as densities that integrate to 1, and so are their histograms; whole counts as probabilities at
    each number; categories, and numbers that are counted in bins, as bars, with a tick at the share of each in the
    data; text as the terms that speak most for each class. Of more than eight classes it is a row a class, the darker
    the more probable a value is. Without ``feature`` it is the column that tells most of the class. Where no row has a
    value below 0, nothing is drawn there.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> model = FittedModel(garden())
    >>> ax = densities(model, feature="height_cm")
    >>> ax.get_xlabel()
    'height_cm'
    >>> ax.figure.clear()
    """
    refuse_labels_without_rows(X, y)
    drawable = Drawable.from_model(model)
    name = (strongest_columns(drawable) or drawable.columns)[0] if feature is None else drawable.resolve_column(feature)
    part, law, j = drawable.part_of(name)
    if name not in drawable.seen_columns:
        raise InputError(f"column {name!r} was missing in every row counted: there is nothing to draw; name another")
    ax = style.get_axes(ax)
    if law.block_kind == "documents":
        draw_words(ax, drawable, name)
    elif law.block_kind == "codes":
        _levels(ax, drawable, name, X, y)
    elif part.event.outcome:
        _draw_probabilities(ax, drawable, name, j)
    else:
        _numbers(ax, drawable, name, X, y)
    handles = (
        ax.get_legend_handles_labels()[0] if len(drawable.labels) <= style.MAX_LEGEND_CLASSES else []
    )  # more are named in place
    style.add_legend(ax, sorted(handles, key=lambda h: h.get_label() in (_DATA_LABEL, "all rows")))
    return ax


def _numbers(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> None:
    low, high = _plot_range(drawable, name, X)
    whole = _is_integer(drawable, name) and high - low <= _MOST_COUNTS
    # Fine where the classes are as well: a row far away must not make steps that miss their peaks.
    fine = np.union1d(
        np.linspace(low, high, _CURVE_POINTS),
        np.clip(np.linspace(*drawable.plot_range(name), _CURVE_POINTS), low, high),
    )
    x = np.arange(max(0, round(low)), round(high) + 1.0) if whole else fine
    density = np.exp(drawable.log_density([name], x[:, None]))
    said = "p(x | class)" if whole else "density, p(x | class)"
    if len(drawable.labels) > style.MAX_LEGEND_CLASSES:
        draw_number_heatmap(ax, drawable.labels, x, density, _axis_top(density, 0.0), said)
        style.format_axes(ax, name, grid=False)
        style.format_ticks(ax.xaxis, date=drawable.are_dates(X, [name])[0])
        return
    tallest, ends = (0.0, (x[0], x[-1])) if X is None else _histograms(ax, drawable, name, X, y)
    for c, label in enumerate(axis_text.shorten_names(drawable.labels)):
        look: dict[str, Any] = {"color": style.colour(c), "linestyle": style.line_style(c), "linewidth": 1.8}
        if whole:
            look |= {"marker": style.marker(c), "markersize": 4, "linewidth": 1.0}
        ax.plot(x, density[:, c], label=label, zorder=3, **look)
    ax.set_ylim(0, _axis_top(density, tallest))
    ax.set_xlim(min(x[0], ends[0]), max(x[-1], ends[1]))
    style.format_axes(ax, name, said)
    style.format_ticks(ax.xaxis, date=drawable.are_dates(X, [name])[0])
    style.format_ticks(ax.yaxis)


def _is_integer(drawable: Drawable, name: Name) -> bool:
    support = drawable.part_of(name)[0].event.support
    return support is not None and support.is_integer


def _plot_range(drawable: Drawable, name: Name, X: Any) -> tuple[float, float]:
    """The data and the classes: a density is not cut where its own class has mass, but at 0 where all values are."""
    low, high = drawable.plot_range(name)
    if X is not None:
        of_data = drawable.plot_range(name, X)
        low, high = min(low, of_data[0]), max(high, of_data[1])
        x = drawable.column_values(X, name)
        x = x[np.isfinite(x)]
        if len(x) and x.min() >= 0:
            low = max(low, 0.0)
    return low, high


def _axis_top(density: NDArray, tallest: float) -> float:
    """Room for the curves and the histograms; one that is a spike does not flatten all others."""
    peaks = np.sort(density.max(axis=0))
    top = peaks[-1] if len(peaks) < 2 or peaks[-1] <= 12 * peaks[-2] else 4 * peaks[-2]
    return 1.06 * float(max(top, min(tallest, 2 * top))) or 1.0


def _histograms(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> tuple[float, tuple[float, float]]:
    """The histogram of each class, or of all rows where classes are unknown.

    Returns the height of the tallest bar, and where the bars begin and end.
    """
    x = drawable.column_values(X, name)
    codes = None if y is None else drawable.label_codes(y, len(x))
    present = np.isfinite(x)
    if not present.any():
        return 0.0, (np.inf, -np.inf)
    edges = _histogram_edges(x[present], _is_integer(drawable, name))
    groups: list[Any] = [(present, None)]
    if codes is not None:
        groups = [(present & (codes == c), c) for c in range(len(drawable.labels))]
    tallest = 0.0
    for mine, c in groups:
        if mine.any():
            tone = "#555555" if c is None else style.colour(c)
            label = "all rows" if c is None else None
            heights, _, _ = ax.hist(x[mine], edges, density=True, color=tone, alpha=0.28, zorder=1, label=label)
            tallest = max(tallest, float(heights.max()))
    return tallest, (edges[0], edges[-1])


def _histogram_edges(x: NDArray, one_by_one: bool) -> NDArray:
    """Bins of equal width, fewer for few rows; of numbers on a lattice, as measured to 0.1, each holds as many."""
    most = int(np.clip(1.8 * np.sqrt(len(x)), 8, _BINS))
    values = np.unique(x)
    step = float(np.diff(values).min()) if 1 < len(values) <= max(len(x) / 2, 2) else 0.0
    places = (values - values[0]) / step if step else values
    if not step or places[-1] > 1e6 or np.abs(places - np.round(places)).max() > 1e-4:
        return np.histogram_bin_edges(x, most)
    n = round(places[-1]) + 1
    each = 1 if one_by_one and n <= _MOST_COUNTS else max(1, int(np.ceil(n / most)))
    return values[0] + step * (each * np.arange(int(np.ceil(n / each)) + 1) - 0.5)


def shown_level_probabilities(drawable: Drawable, name: Name, limit: int = _MOST_LEVELS) -> tuple[list[str], NDArray]:
    """The names of a column's levels and their probabilities (level, class): the most probable, and the rest as one."""
    return select_most_probable(
        drawable.levels(name) or [], drawable.level_probabilities(name), drawable.class_proportions, limit
    )


def _levels(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> None:
    names, p = shown_level_probabilities(drawable, name)
    said = "p(bin | class)" if drawable.is_binned(name) else "p(level | class)"
    if len(drawable.labels) > style.MAX_LEGEND_CLASSES:
        draw_level_heatmap(ax, drawable.labels, names, p, said)
        style.format_axes(ax, name, grid=False)
        return
    _bars(ax, drawable, names, p)
    if X is not None and y is not None:
        _mark_observed_shares(ax, drawable, name, X, y, names)
    style.format_axes(ax, name, said)
    ax.grid(False, axis="x")


def _bars(ax: Any, drawable: Drawable, names: list[str], p: NDArray) -> None:
    """Groups of bars; they lie down where names are long or many."""
    k = len(drawable.labels)
    wide = 0.84 / k
    for c, label in enumerate(axis_text.shorten_names(drawable.labels)):
        at = np.arange(len(names)) - 0.42 + wide * (c + 0.5)
        ax.bar(at, p[:, c], wide * 0.94, color=style.colour(c), label=label, zorder=2)
    axis_text.label_ticks(ax, "x", names)
    ax.set_ylim(0, min(1.0, 1.08 * float(p.max())) if p.size else 1.0)


def _mark_observed_shares(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any, names: list[str]) -> None:
    """A black tick at the share that each level has in the rows of a class."""
    from matplotlib.patheffects import withStroke

    part, _, j = drawable.part_of(name)
    codes = drawable.level_codes(name, np.asarray(part.encodings[j].apply(drawable.read_table(X).column(name))))
    levels, k = drawable.levels(name) or [], len(drawable.labels)
    share = observed_level_shares(codes, drawable.label_codes(y, len(codes)), len(levels), k)
    place = {text: i for i, text in enumerate(names)}
    shown = [i for i, text in enumerate(levels) if text in place]
    wide = 0.84 / k
    for c in range(k):
        heights = share[shown, c]
        if np.isnan(heights).any():
            continue
        x = np.array([place[levels[i]] for i in shown]) - 0.42 + wide * (c + 0.5)
        label = _DATA_LABEL if c == 0 else None
        ticks = ax.hlines(heights, x - wide / 2.4, x + wide / 2.4, label=label, color=style.DARK, linewidth=2, zorder=3)
        ticks.set_path_effects([withStroke(linewidth=4, foreground="white")])
        ax.set_ylim(0, max(ax.get_ylim()[1], min(1.05, 1.08 * max(heights))))


def _draw_probabilities(ax: Any, drawable: Drawable, name: Name, j: int) -> None:
    """A feature that is on or off, or a word: one probability a class."""
    part, law, _ = drawable.part_of(name)
    (what, *_), (value, *_) = law.describe(j)
    k = len(drawable.labels)
    bars = ax.bar(np.arange(k), value, 0.7, color=[style.colour(c) for c in range(k)], zorder=2)
    axis_text.label_ticks(ax, "x", drawable.labels)
    if k <= 2 * style.MAX_LEGEND_CLASSES:
        ax.bar_label(bars, fmt="%.3g", fontsize=8)
    style.format_axes(ax, name, f"{what} of {part.event.outcome} given the class")
    ax.grid(False, axis="x")


_ROW_HEIGHT = 0.13  # inches of a class
_COLORMAP = "Blues"


def figure_height(n_classes: int) -> float:
    """Inches that such a picture should have."""
    return float(np.clip(1.0 + _ROW_HEIGHT * n_classes, 3.2, 7.0))


def draw_level_heatmap(ax: Any, labels: Sequence[Any], names: Sequence[str], p: NDArray, colorbar_label: str) -> None:
    """Levels or bins across: ``p`` is (level, class)."""
    image = ax.imshow(p.T, cmap=_COLORMAP, vmin=0.0, aspect="auto", interpolation="nearest")
    axis_text.label_ticks(ax, "x", names)
    _finish(ax, image, labels, colorbar_label)


def draw_number_heatmap(
    ax: Any, labels: Sequence[Any], x: NDArray, density: NDArray, top: float, colorbar_label: str
) -> None:
    """Numbers across: ``density`` is (number, class), and all of ``top`` and above is the darkest."""
    places = np.arange(len(labels))
    image = ax.pcolormesh(x, places, density.T, cmap=_COLORMAP, vmin=0.0, vmax=top, shading="nearest", rasterized=True)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(len(labels) - 0.5, -0.5)
    _finish(ax, image, labels, colorbar_label)


def _finish(ax: Any, image: Any, labels: Sequence[Any], colorbar_label: str) -> None:
    axis_text.label_ticks(ax, "y", labels)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label(colorbar_label)
    bar.outline.set_visible(False)


_MAX_WORDS = 16  # terms, where that is one a class at least
_MAX_WORDS_MANY_CLASSES = 24  # and where classes are many


def class_words(drawable: Drawable, column: Name, limit: int = _MAX_WORDS) -> list[tuple[int, str, float]]:
    """(class, term, log-odds for it), class by class: against all others, or without counts against the next class."""
    asked, k = drawable.fitted, len(drawable.labels)
    if asked.has_counts:
        with np.errstate(divide="ignore"):  # the odds of no terms at all
            tops = [top_words(asked, column, label, max(1, limit // k)) for label in drawable.labels]
        found = [(c, one.word, one.log_odds) for c, top in enumerate(tops) for one in top if one.log_odds > 0]
    else:
        given = next(one for one in iterate_conditionals(asked, limit) if one.column == column)
        shares = np.maximum(given.values, 1e-300)  # (term, class)
        first = shares.argmax(axis=1)
        beside = np.where(np.arange(k) == first[:, None], 1e-300, shares).max(axis=1, initial=1e-300)
        odds = np.log(shares.max(axis=1, initial=1e-300) / beside)
        found = sorted(zip(first.tolist(), given.row_names, odds.tolist(), strict=True), key=lambda one: one[0])
    strong = sorted(found, key=lambda one: -one[2])[: max(_MAX_WORDS_MANY_CLASSES, limit)]
    return found if len(strong) == len(found) else sorted(strong, key=lambda one: one[0])


def draw_words(ax: Any, drawable: Drawable, column: Name) -> None:
    """A bar a term, in the colour of the class it speaks for."""
    found = class_words(drawable, column)
    classes = axis_text.shorten_names(drawable.labels)
    for c, label in enumerate(classes):
        mine = [(at, odds) for at, (owner, _, odds) in enumerate(found) if owner == c]
        if mine:
            ax.barh(*zip(*mine, strict=True), 0.8, color=style.colour(c), label=label, zorder=2)
    if not found:
        ax.text(0.5, 0.5, "no named term tells the classes apart", ha="center", transform=ax.transAxes)
    ax.set_yticks(range(len(found)), axis_text.shorten_names([term for _, term, _ in found], 20), fontsize=_size(found))
    for at, (owner, _, _) in enumerate(
        found if len(classes) > style.MAX_LEGEND_CLASSES else ()
    ):  # more than a legend tells apart
        place = {"xycoords": ax.get_yaxis_transform(), "va": "center", "fontsize": _size(found)}
        ax.annotate(classes[owner], (1.01, at), **place)
    ax.invert_yaxis()
    style.format_axes(ax, f"{axis_text.column_title(column, 30)}: log-odds of a term for its class")
    ax.grid(False, axis="y")


def _size(found: list[Any]) -> float:
    return 8 if len(found) <= _MAX_WORDS else 6.5


def select_most_probable(
    names: Sequence[str], p: Floats, class_proportions: ArrayLike, limit: int
) -> tuple[list[str], Floats]:
    """The levels that are most probable over all classes, in their order, and the rest as one: names, (level, class).

    ``p`` is the probability of each level in each class, ``shares`` are those of the classes.
    """
    if len(names) <= limit:
        return list(names), p
    order = np.argsort(-(p @ np.asarray(class_proportions)), kind="stable")
    best, rest = np.sort(order[: limit - 1]), order[limit - 1 :]
    return [*(names[i] for i in best), "1 other" if len(rest) == 1 else f"{len(rest)} others"], np.vstack(
        [p[best], p[rest].sum(axis=0)]
    )


def observed_level_shares(codes: NDArray, y: NDArray, n_levels: int, n_classes: int) -> Floats:
    """(level, class) the share of each level among the values present, as counted; NaN in a class without any.

    >>> observed_level_shares(np.array([0, 1, 1, -1]), np.array([0, 0, 1, 1]), n_levels=2, n_classes=3).tolist()
    [[0.5, 0.0, nan], [0.5, 1.0, nan]]
    """
    there = (codes >= 0) & (y >= 0)
    place = np.minimum(codes[there], n_levels) * n_classes + y[there]  # levels never met in training count as others
    table = np.bincount(place, minlength=(n_levels + 1) * n_classes).reshape(n_levels + 1, n_classes)
    with np.errstate(invalid="ignore"):
        return (table / table.sum(axis=0))[:n_levels]
