"""One feature given the class: densities over histograms, or bars for levels and counts.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> levels, p = level_shares(Drawable.of(Fitted(garden())), "soil")
>>> levels, p.sum(axis=0).round(6).tolist()
(['chalk', 'clay', 'sand'], [1.0, 1.0, 1.0])
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.explain.levels import most_probable, observed
from candide.plot import heat, lettering, style, words
from candide.plot.choice import strongest
from candide.plot.drawable import Drawable, refuse_lone_labels
from candide.rows.table import Name

_FINE = 600  # points of a curve
_MOST_LEVELS = 14
_MOST_COUNTS = 60  # whole numbers drawn one by one; more are drawn as a curve
_BINS = 30
_DATA = "share in the data"


def densities(model: Any, X: Any = None, y: Any = None, *, feature: Any = None, ax: Any = None) -> Any:
    """p(feature | class) for every class; behind it, where rows are given, the histogram of each class.

    Numbers are drawn as densities that integrate to 1, and so are their histograms; whole counts as probabilities at
    each number; categories, and numbers that are counted in bins, as bars, with a tick at the share of each in the
    data; text as the terms that speak most for each class. Of more than eight classes it is a row a class, the darker
    the more probable a value is. Without ``feature`` it is the column that tells most of the class. Where no row has a
    value below 0, nothing is drawn there.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import Fitted
    >>> model = Fitted(garden())
    >>> ax = densities(model, feature="height_cm")
    >>> ax.get_xlabel()
    'height_cm'
    >>> ax.figure.clear()
    """
    refuse_lone_labels(X, y)
    drawable = Drawable.of(model)
    name = (strongest(drawable) or drawable.columns)[0] if feature is None else drawable.known(feature)
    part, law, j = drawable.part(name)
    if name not in drawable.seen:
        raise InputError(f"column {name!r} was missing in every row counted: there is nothing to draw; name another")
    ax = style.axes(ax)
    if law.reads == "documents":
        words.draw(ax, drawable, name)
    elif law.reads == "codes":
        _levels(ax, drawable, name, X, y)
    elif part.event.outcome:
        _shares(ax, drawable, name, j)
    else:
        _numbers(ax, drawable, name, X, y)
    handles = ax.get_legend_handles_labels()[0] if len(drawable.labels) <= style.FEW else []  # more are named in place
    style.legend(ax, sorted(handles, key=lambda h: h.get_label() in (_DATA, "all rows")))
    return ax


def _numbers(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> None:
    low, high = _span(drawable, name, X)
    whole = _is_whole(drawable, name) and high - low <= _MOST_COUNTS
    # Fine where the classes are as well: a row far away must not make steps that miss their peaks.
    fine = np.union1d(np.linspace(low, high, _FINE), np.clip(np.linspace(*drawable.span(name), _FINE), low, high))
    x = np.arange(max(0, round(low)), round(high) + 1.0) if whole else fine
    density = np.exp(drawable.log_density([name], x[:, None]))
    said = "p(x | class)" if whole else "density, p(x | class)"
    if len(drawable.labels) > style.FEW:
        heat.numbers(ax, drawable.labels, x, density, _top(density, 0.0), said)
        style.tidy(ax, name, grid=False)
        style.ticks(ax.xaxis, date=drawable.dates(X, [name])[0])
        return
    tallest, ends = (0.0, (x[0], x[-1])) if X is None else _histograms(ax, drawable, name, X, y)
    for c, label in enumerate(lettering.shorts(drawable.labels)):
        look: dict[str, Any] = {"color": style.colour(c), "linestyle": style.line(c), "linewidth": 1.8}
        if whole:
            look |= {"marker": style.marker(c), "markersize": 4, "linewidth": 1.0}
        ax.plot(x, density[:, c], label=label, zorder=3, **look)
    ax.set_ylim(0, _top(density, tallest))
    ax.set_xlim(min(x[0], ends[0]), max(x[-1], ends[1]))
    style.tidy(ax, name, said)
    style.ticks(ax.xaxis, date=drawable.dates(X, [name])[0])
    style.ticks(ax.yaxis)


def _is_whole(drawable: Drawable, name: Name) -> bool:
    support = drawable.part(name)[0].event.support
    return support is not None and support.whole


def _span(drawable: Drawable, name: Name, X: Any) -> tuple[float, float]:
    """The data and the classes: a density is not cut where its own class has mass, but at 0 where all values are."""
    low, high = drawable.span(name)
    if X is not None:
        of_data = drawable.span(name, X)
        low, high = min(low, of_data[0]), max(high, of_data[1])
        x = drawable.values(X, name)
        x = x[np.isfinite(x)]
        if len(x) and x.min() >= 0:
            low = max(low, 0.0)
    return low, high


def _top(density: NDArray, tallest: float) -> float:
    """Room for the curves and the histograms; one that is a spike does not flatten all others."""
    peaks = np.sort(density.max(axis=0))
    top = peaks[-1] if len(peaks) < 2 or peaks[-1] <= 12 * peaks[-2] else 4 * peaks[-2]
    return 1.06 * float(max(top, min(tallest, 2 * top))) or 1.0


def _histograms(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> tuple[float, tuple[float, float]]:
    """The histogram of each class, or of all rows where classes are unknown.

    Returns the height of the tallest bar, and where the bars begin and end.
    """
    x = drawable.values(X, name)
    codes = None if y is None else drawable.codes(y, len(x))
    present = np.isfinite(x)
    if not present.any():
        return 0.0, (np.inf, -np.inf)
    edges = _edges(x[present], _is_whole(drawable, name))
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


def _edges(x: NDArray, one_by_one: bool) -> NDArray:
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


def level_shares(drawable: Drawable, name: Name, most: int = _MOST_LEVELS) -> tuple[list[str], NDArray]:
    """The names of a column's levels and their probabilities (level, class): the most probable, and the rest as one."""
    return most_probable(drawable.levels(name) or [], drawable.level_shares(name), drawable.shares, most)


def _levels(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any) -> None:
    names, p = level_shares(drawable, name)
    said = "p(bin | class)" if drawable.is_binned(name) else "p(level | class)"
    if len(drawable.labels) > style.FEW:
        heat.levels(ax, drawable.labels, names, p, said)
        style.tidy(ax, name, grid=False)
        return
    _bars(ax, drawable, names, p)
    if X is not None and y is not None:
        _seen(ax, drawable, name, X, y, names)
    style.tidy(ax, name, said)
    ax.grid(False, axis="x")


def _bars(ax: Any, drawable: Drawable, names: list[str], p: NDArray) -> None:
    """Groups of bars; they lie down where names are long or many."""
    k = len(drawable.labels)
    wide = 0.84 / k
    for c, label in enumerate(lettering.shorts(drawable.labels)):
        at = np.arange(len(names)) - 0.42 + wide * (c + 0.5)
        ax.bar(at, p[:, c], wide * 0.94, color=style.colour(c), label=label, zorder=2)
    lettering.name_ticks(ax, "x", names)
    ax.set_ylim(0, min(1.0, 1.08 * float(p.max())) if p.size else 1.0)


def _seen(ax: Any, drawable: Drawable, name: Name, X: Any, y: Any, names: list[str]) -> None:
    """A black tick at the share that each level has in the rows of a class."""
    from matplotlib.patheffects import withStroke

    part, _, j = drawable.part(name)
    codes = drawable.level_codes(name, np.asarray(part.encodings[j].apply(drawable.table(X).column(name))))
    levels, k = drawable.levels(name) or [], len(drawable.labels)
    share = observed(codes, drawable.codes(y, len(codes)), len(levels), k)
    place = {text: i for i, text in enumerate(names)}
    shown = [i for i, text in enumerate(levels) if text in place]
    wide = 0.84 / k
    for c in range(k):
        heights = share[shown, c]
        if np.isnan(heights).any():
            continue
        x = np.array([place[levels[i]] for i in shown]) - 0.42 + wide * (c + 0.5)
        label = _DATA if c == 0 else None
        ticks = ax.hlines(heights, x - wide / 2.4, x + wide / 2.4, label=label, color=style.DARK, linewidth=2, zorder=3)
        ticks.set_path_effects([withStroke(linewidth=4, foreground="white")])
        ax.set_ylim(0, max(ax.get_ylim()[1], min(1.05, 1.08 * max(heights))))


def _shares(ax: Any, drawable: Drawable, name: Name, j: int) -> None:
    """A feature that is on or off, or a word: one probability a class."""
    part, law, _ = drawable.part(name)
    (what, *_), (value, *_) = law.describe(j)
    k = len(drawable.labels)
    bars = ax.bar(np.arange(k), value, 0.7, color=[style.colour(c) for c in range(k)], zorder=2)
    lettering.name_ticks(ax, "x", drawable.labels)
    if k <= 2 * style.FEW:
        ax.bar_label(bars, fmt="%.3g", fontsize=8)
    style.tidy(ax, name, f"{what} of {part.event.outcome} given the class")
    ax.grid(False, axis="x")
