"""Features given the class: the densities or probabilities of one, and the means of all as an image."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.table import Name
from candide.errors import InputError
from candide.explain.columns import iterate_conditionals
from candide.explain.words import top_words
from candide.plot import style
from candide.plot.drawable import Drawable, check_labels

_CURVE_POINTS = 600
_MAX_LEVELS = 14
_MAX_COUNTS = 60  # whole numbers drawn one by one; more are drawn as a curve
_MAX_BINS = 30
_MAX_WORDS, _MAX_WORDS_MANY_CLASSES = 16, 24
_OBSERVED, _ALL_ROWS = "proportion in the data", "all rows"
_BAR_GROUP = 0.84  # width of the bars of one level
_IMAGES_PER_ROW = 5


def densities(model: Any, X: Any = None, y: Any = None, *, feature: Any = None, ax: Any = None) -> Any:
    """Draw p(feature | class) for every class; with rows, over the histogram of each class.

    Numbers are drawn as densities, and so are their histograms; counts as probabilities of each number; categories and
    binned numbers as bars, with a mark at the proportion in the data; text as the words that raise the log-odds of each
    class most. With more than eight classes each class is a row, darker where a value is more probable. Without
    ``feature`` it draws the column with the strongest association with the class. If no row has a value below 0,
    nothing is drawn there.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> ax = densities(FittedModel(garden()), feature="height_cm")
    >>> ax.get_xlabel()
    'height_cm'
    """
    check_labels(X, y)
    drawable = Drawable.from_model(model)
    name = (drawable.strongest_columns or drawable.columns)[0] if feature is None else drawable.resolve_column(feature)
    part, distribution, j = drawable.part_of(name)
    if name not in drawable.seen_columns:
        raise InputError(f"column {name!r} was missing in every row counted: there is nothing to draw; name another")
    ax = style.get_axes(ax)
    if distribution.block_kind == "documents":
        _draw_words(ax, drawable, name)
    elif distribution.block_kind == "codes":
        _draw_levels(ax, drawable, name, X, y)
    elif part.event.outcome:
        (what, *_), (value, *_) = distribution.describe(j)
        k = len(drawable.labels)
        bars = ax.bar(np.arange(k), value, 0.7, color=[style.colour(c) for c in range(k)], zorder=2)
        style.label_ticks(ax, "x", drawable.labels)
        if k <= 2 * style.MAX_LEGEND_CLASSES:
            ax.bar_label(bars, fmt="%.3g", fontsize=8)
        style.format_axes(ax, name, f"{what} of {part.event.outcome} given the class", grid="y")
    else:
        _draw_numbers(ax, drawable, name, X, y)
    is_few = len(drawable.labels) <= style.MAX_LEGEND_CLASSES  # more are labelled in place
    handles = ax.get_legend_handles_labels()[0] if is_few else []
    return style.add_legend(ax, sorted(handles, key=lambda h: h.get_label() in (_OBSERVED, _ALL_ROWS)))


def _draw_numbers(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> None:
    model_range = low, high = drawable.plot_range(name)
    if X is not None:
        data_low, data_high = drawable.plot_range(name, X)
        low, high = min(low, data_low), max(high, data_high)
        values = drawable.column_values(X, name)
        values = values[np.isfinite(values)]
        low = max(low, 0.0) if len(values) and values.min() >= 0 else low
    is_discrete = _is_integer(drawable, name) and high - low <= _MAX_COUNTS
    # Fine where the classes are as well: a row far away must not make steps that miss their peaks.
    near = np.clip(np.linspace(*model_range, _CURVE_POINTS), low, high)
    fine = np.union1d(np.linspace(low, high, _CURVE_POINTS), near)
    x = np.arange(max(0, round(low)), round(high) + 1.0) if is_discrete else fine
    density = np.exp(drawable.log_density([name], x[:, None]))
    title, is_date = "p(x | class)" if is_discrete else "density, p(x | class)", drawable.are_dates(X, [name])[0]
    if len(drawable.labels) > style.MAX_LEGEND_CLASSES:
        how = {"vmax": _axis_top(density, 0.0), "shading": "nearest", "rasterized": True}
        image = ax.pcolormesh(x, np.arange(len(drawable.labels)), density.T, cmap="Blues", vmin=0.0, **how)
        ax.set(xlim=(x[0], x[-1]), ylim=(len(drawable.labels) - 0.5, -0.5))
        _finish_heatmap(ax, image, drawable.labels, name, title)
        style.format_ticks(ax.xaxis, date=is_date)
        return
    tallest, ends = (0.0, (x[0], x[-1])) if X is None else _draw_histograms(ax, drawable, name, X, y)
    for c, label in enumerate(style.shorten_names(drawable.labels)):
        how = {"marker": style.marker(c), "markersize": 4, "linewidth": 1.0} if is_discrete else {"linewidth": 1.8}
        ax.plot(x, density[:, c], label=label, zorder=3, color=style.colour(c), linestyle=style.line_style(c), **how)
    ax.set_ylim(0, _axis_top(density, tallest))
    ax.set_xlim(min(x[0], ends[0]), max(x[-1], ends[1]))
    style.format_axes(ax, name, title)
    style.format_ticks(ax.xaxis, date=is_date)
    style.format_ticks(ax.yaxis)


def _is_integer(drawable: Drawable, name: Name) -> bool:
    support = drawable.part_of(name)[0].event.support
    return support is not None and support.is_integer


def _axis_top(density: NDArray, tallest: float) -> float:
    """Return the top of the axis, at which one spike does not flatten all other curves."""
    peaks = np.sort(density.max(axis=0))
    top = peaks[-1] if len(peaks) < 2 or peaks[-1] <= 12 * peaks[-2] else 4 * peaks[-2]
    return 1.06 * float(max(top, min(tallest, 2 * top))) or 1.0


def _draw_histograms(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> tuple[float, tuple[float, float]]:
    """Draw the histogram of each class, or of all rows; return the tallest bar and the range of the bars."""
    x = drawable.column_values(X, name)
    codes, is_present, tallest = None if y is None else drawable.label_codes(y, len(x)), np.isfinite(x), 0.0
    if not is_present.any():
        return 0.0, (np.inf, -np.inf)
    edges, alpha = _histogram_edges(x[is_present], _is_integer(drawable, name)), 0.28
    groups: list[Any] = [(is_present, "#555555", _ALL_ROWS)]
    if codes is not None:
        groups = [(is_present & (codes == c), style.colour(c), None) for c in range(len(drawable.labels))]
    for rows, colour, label in groups:
        if rows.any():
            heights, _, _ = ax.hist(x[rows], edges, density=True, color=colour, alpha=alpha, zorder=1, label=label)
            tallest = max(tallest, float(heights.max()))
    return tallest, (edges[0], edges[-1])


def _histogram_edges(x: NDArray, is_integer: bool) -> NDArray:
    """Return bins of equal width, fewer for few rows; on a lattice, such as multiples of 0.1, of as many values."""
    n_bins, values = int(np.clip(1.8 * np.sqrt(len(x)), 8, _MAX_BINS)), np.unique(x)
    step = float(np.diff(values).min()) if 1 < len(values) <= max(len(x) / 2, 2) else 0.0
    places = (values - values[0]) / step if step else values
    if not step or places[-1] > 1e6 or np.abs(places - np.round(places)).max() > 1e-4:
        return np.histogram_bin_edges(x, n_bins)
    n = round(places[-1]) + 1
    each = 1 if is_integer and n <= _MAX_COUNTS else max(1, int(np.ceil(n / n_bins)))
    return values[0] + step * (each * np.arange(int(np.ceil(n / each)) + 1) - 0.5)


def shown_level_probabilities(drawable: Drawable, name: Name) -> tuple[list[str], NDArray]:
    """Return levels and their probabilities (level, class): the most probable in their order, the rest as one."""
    names, p = drawable.levels(name) or [], drawable.level_probabilities(name)
    if len(names) <= _MAX_LEVELS:
        return names, p
    order = np.argsort(-(p @ drawable.class_proportions), kind="stable")
    best, rest = np.sort(order[: _MAX_LEVELS - 1]), order[_MAX_LEVELS - 1 :]
    others = "1 other" if len(rest) == 1 else f"{len(rest)} others"
    return [*(names[i] for i in best), others], np.vstack([p[best], p[rest].sum(axis=0)])


def _draw_levels(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> None:
    names, p = shown_level_probabilities(drawable, name)
    title, k = "p(bin | class)" if drawable.is_binned(name) else "p(level | class)", len(drawable.labels)
    if k > style.MAX_LEGEND_CLASSES:
        image = ax.imshow(p.T, cmap="Blues", vmin=0.0, aspect="auto", interpolation="nearest")
        style.label_ticks(ax, "x", names)
        _finish_heatmap(ax, image, drawable.labels, name, title)
        return
    width = _BAR_GROUP / k
    for c, label in enumerate(style.shorten_names(drawable.labels)):
        at = np.arange(len(names)) - _BAR_GROUP / 2 + width * (c + 0.5)
        ax.bar(at, p[:, c], width * 0.94, color=style.colour(c), label=label, zorder=2)
    style.label_ticks(ax, "x", names)
    ax.set_ylim(0, min(1.0, 1.08 * float(p.max())) if p.size else 1.0)
    style.format_axes(ax, name, title, grid="y")
    if X is None or y is None:
        return
    part, _, j = drawable.part_of(name)
    codes = drawable.level_codes(name, np.asarray(part.encodings[j].apply(drawable.read_table(X).column(name))))
    levels, places = drawable.levels(name) or [], {text: i for i, text in enumerate(names)}
    proportions = level_proportions(codes, drawable.label_codes(y, len(codes)), len(levels), k)
    shown = [i for i, text in enumerate(levels) if text in places]
    for c in range(k):
        heights = proportions[shown, c]
        if not np.isnan(heights).any():
            x = np.array([places[levels[i]] for i in shown]) - _BAR_GROUP / 2 + width * (c + 0.5)
            how = {"label": _OBSERVED if c == 0 else None, "color": style.DARK, "linewidth": 2, "zorder": 3}
            marks = ax.hlines(heights, x - width / 2.4, x + width / 2.4, **how)
            marks.set_path_effects(style.outline(4))
            ax.set_ylim(0, max(ax.get_ylim()[1], min(1.05, 1.08 * max(heights))))


def level_proportions(codes: NDArray, y: NDArray, n_levels: int, n_classes: int) -> NDArray:
    """(level, class) Return the proportion of each level among the values of a class; NaN without any."""
    is_known = (codes >= 0) & (y >= 0)
    cells = np.minimum(codes[is_known], n_levels) * n_classes + y[is_known]  # unseen levels count as others
    table = np.bincount(cells, minlength=(n_levels + 1) * n_classes).reshape(n_levels + 1, n_classes)
    with np.errstate(invalid="ignore"):
        return (table / table.sum(axis=0))[:n_levels]


def figure_height(n_classes: int) -> float:
    return float(np.clip(1.0 + 0.13 * n_classes, 3.2, 7.0))


def _finish_heatmap(ax: Any, image: Any, labels: Sequence[Any], name: Name, title: str) -> None:
    style.label_ticks(ax, "y", labels)
    style.add_colorbar(ax, image, title, fraction=0.05, pad=0.02)
    style.format_axes(ax, name, grid=False)


def _draw_words(ax: Any, drawable: Drawable, column: Name) -> None:
    """Draw words by their log-odds, class by class: against all others, or without counts against the runner-up."""
    fitted, k, classes = drawable.fitted, len(drawable.labels), style.shorten_names(drawable.labels)
    if fitted.has_counts:
        with np.errstate(divide="ignore"):  # the odds of a class without words
            tops = [top_words(fitted, column, label, max(1, _MAX_WORDS // k)) for label in drawable.labels]
        words = [(c, word.word, word.log_odds) for c, top in enumerate(tops) for word in top if word.log_odds > 0]
    else:
        table = next(table for table in iterate_conditionals(fitted, _MAX_WORDS) if table.column == column)
        p = np.maximum(table.values, 1e-300)  # (word, class)
        first = p.argmax(axis=1)
        second = np.where(np.arange(k) == first[:, None], 1e-300, p).max(axis=1, initial=1e-300)
        odds = np.log(p.max(axis=1, initial=1e-300) / second)
        words = list(zip(first.tolist(), table.row_names, odds.tolist(), strict=True))
    strongest = sorted(words, key=lambda word: -word[2])[:_MAX_WORDS_MANY_CLASSES]
    words = sorted(words if len(strongest) == len(words) else strongest, key=lambda word: word[0])
    size = 8 if len(words) <= _MAX_WORDS else 6.5
    for c, label in enumerate(classes):
        bars = [(at, odds) for at, (word_class, _, odds) in enumerate(words) if word_class == c]
        if bars:
            ax.barh(*zip(*bars, strict=True), 0.8, color=style.colour(c), label=label, zorder=2)
    if not words:
        ax.text(0.5, 0.5, "no word distinguishes the classes", ha="center", transform=ax.transAxes)
    ax.set_yticks(range(len(words)), style.shorten_names([word for _, word, _ in words], 20), fontsize=size)
    for at, (c, _, _) in enumerate(words if len(classes) > style.MAX_LEGEND_CLASSES else ()):
        ax.annotate(classes[c], (1.01, at), xycoords=ax.get_yaxis_transform(), va="center", fontsize=size)
    ax.invert_yaxis()
    style.format_axes(ax, f"{style.column_title(column, 30)}: log-odds of a word for its class", grid="x")


def class_means(model: Any, shape: Sequence[int], *, classes: Any = None, axes: Any = None) -> list[Any]:
    """Draw the mean of each class, or the probability that a pixel is on, as an image of ``shape`` (rows, columns).

    All images have the same scale. Returns the axes, one for each class.

    >>> import candide as cd
    >>> model = cd.NaiveBayes("bernoulli").fit([[0, 1, 1, 0], [1, 0, 0, 1]], ["rising", "falling"])
    >>> [ax.get_title() for ax in class_means(model, (2, 2))]
    ['falling', 'rising']
    """
    drawable = Drawable.from_model(model)
    try:
        sides = [int(side) for side in shape]
    except (TypeError, ValueError):
        sides = []
    n_pixels = len(drawable.columns)
    if len(sides) != 2 or min(sides) <= 0 or sides[0] * sides[1] != n_pixels:
        text = "x".join(map(str, sides)) if sides else repr(shape)
        raise InputError(
            f"shape {text}: the model has {n_pixels} columns, one per pixel; pass rows and columns whose product is "
            f"{n_pixels}, such as {suggest_shape(n_pixels)}"
        )
    codes = list(range(len(drawable.labels))) if classes is None else drawable.class_codes(classes)
    means, n = class_averages(drawable)[codes], len(codes)
    if axes is None:
        axes = style.make_axes(n, max(_IMAGES_PER_ROW, math.isqrt(n)), (1.5, 1.7))
    axes = np.ravel(axes).tolist()
    if len(axes) < n:
        n_axes = formatting.format_count(len(axes), "axis", "axes")
        raise InputError(f"{formatting.format_count(n, 'class', 'classes')} and {n_axes}; pass as many axes as classes")
    how = {"cmap": "Greys", "vmin": float(np.nanmin(means)), "vmax": float(np.nanmax(means))}
    names = style.shorten_names(drawable.labels, 16)
    for ax, c, mean in zip(axes, codes, means, strict=False):
        ax.imshow(mean.reshape(sides), interpolation="nearest", **how)
        ax.set_title(names[c], fontsize="medium")
        ax.set(xticks=[], yticks=[])
        for side in ax.spines.values():
            side.set_color(style.LIGHT)
    return axes[:n]


def suggest_shape(n: int) -> str:
    rows = next(a for a in range(math.isqrt(n), 0, -1) if n % a == 0)
    return f"{rows}x{n // rows}"


def class_averages(drawable: Drawable) -> NDArray:
    means = np.empty((len(drawable.labels), len(drawable.columns)))
    for part, weighted in zip(drawable.fitted.plan.parts, drawable.fitted.model.distributions, strict=True):
        if part.is_joint_term:
            continue
        distribution, values = weighted.base_and_weights[0], []
        columns = zip(part.encodings, part.columns, strict=True)
        for encoding, name in columns if distribution.block_kind == "codes" else ():
            try:
                values.append(np.asarray(encoding.decode(np.arange(encoding.n_levels or 0)), np.float64))
            except (TypeError, ValueError):
                raise InputError("its levels are not numbers, so it has no class means", column=name) from None
        try:
            mean = distribution.mean(*([values] if values else ()))
        except InputError:
            mean = np.full((distribution.n_classes, distribution.n_features), np.nan)
        if not np.isfinite(mean).all():
            problem = f"it is {part.event.name or type(part.event).__name__}, of which no mean is known"
            remedy = "draw its densities, or use estimate='mean'"
            raise InputError(problem, column=part.columns[0], remedy=remedy)
        means[:, [drawable.columns.index(name) for name in part.columns]] = mean
    return means
