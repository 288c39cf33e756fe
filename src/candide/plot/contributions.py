"""Contributions to the log-odds of a class: one term by its bins or cells, and a nomogram of all columns.

A line of a nomogram shows the total effect of its column: over all terms that the column is in, on average over the
rows. The sum over the values of a row is the log-odds of the class, up to its prior and intercept and the remainder of
joint terms; with two classes the last line turns the sum into a probability.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.table import Name
from candide.errors import InputError
from candide.explain.effects import ColumnEffect, Effects
from candide.explain.terms import Term, TermAxis, build_term_cells, list_terms
from candide.plot import style
from candide.plot.drawable import Drawable

_MAX_LEVELS = 24  # levels along an axis of a term: the most frequent
_MAX_LABELLED_CELLS = 120  # cells with their number written in them
_MAX_LINES, _MAX_LINE_LEVELS = 12, 14  # columns of a nomogram where none is named, and levels of each
_LINE_HEIGHT = 0.62  # inches
_FONT_SIZE = 7.5  # points of the names of values
_TRACKS = (0.17, -0.17, 0.33, -0.33)  # places of names above and below their line
_CENTRAL_PART = 0.6  # of the range of a number that is drawn: about two deviations
_MAX_LOG_ODDS = 10.0  # odds of 22,000 to 1; larger contributions are outside the axes, or all others would be a point
_PROBABILITY_TICKS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def term(model: Any, title: Any = None, *, positive: Any = None, ax: Any = None) -> Any:
    """Draw the contribution of a term to the log-odds of a class against the others.

    ``title`` is a column, a pair of columns, or a title such as "age x job"; by default the most important term that
    can be drawn. A column is drawn by its levels or bins, over the proportion of the rows in each, with its total
    effect over all terms that include it; a pair as a heat map, in which combinations without rows are pale.
    ``positive`` is the class, by default the second of two; with more classes it is compared with the mean of the
    others, weighted by their proportions.

    >>> import numpy as np
    >>> import candide as cd
    >>> rng = np.random.default_rng(0)
    >>> X = {"valve": rng.choice(["open", "shut"], 400), "pump": rng.choice(["on", "off"], 400)}
    >>> y = np.where((X["valve"] == "open") == (X["pump"] == "on"), "safe", "risk")
    >>> ax = term(cd.BayesClassifier().fit(X, y), ("valve", "pump"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('valve', 'pump')
    """
    drawable = Drawable.from_model(model)
    return draw_term(drawable, find_term(drawable, title), positive, ax)


def find_term(drawable: Drawable, name: Any = None) -> Term:
    """Return the term of a name; without a name the most important that can be drawn."""
    terms = list_terms(drawable.fitted)
    if name is None:
        for candidate in terms:
            if len(candidate.columns) <= 2 and candidate.n_cells:
                return candidate
        raise InputError("no column and no pair of this model has levels, bins or cells", remedy="draw its densities")
    if isinstance(name, str) and name in [candidate.title for candidate in terms]:
        return terms[name]
    columns = tuple(drawable.resolve_columns(name))
    reasons = {inactive.column: inactive.reason for inactive in terms.inactive}
    if len(columns) == 1 and columns[0] in reasons:
        raise InputError(f"it has no term of its own: {reasons[columns[0]]}", column=columns[0], value=columns[0])
    return terms[columns]


def draw_term(drawable: Drawable, model_term: Term, positive: Any = None, ax: Any = None) -> Any:
    n, title = len(model_term.columns), model_term.title
    if n > 2 and model_term.n_cells:
        remedy = f"see its cells: candide show MODEL --column '{title}'"
        raise InputError("cannot be drawn: three columns need three axes", column=title, value=title, remedy=remedy)
    if not model_term.n_cells:
        remedy = "draw its densities, or regions of two columns"
        raise InputError("cannot be drawn: it has no levels, bins or cells", column=title, value=title, remedy=remedy)
    c, fitted, label = drawable.positive_class(positive), drawable.fitted, ""
    cells = build_term_cells(fitted, model_term)
    total = Effects(fitted).for_column(model_term.columns[0]) if n == 1 else None
    if total is not None:
        label = f", over {total.n_terms} terms" if total.n_terms > 1 else ""
        cells = cells if total.axis.contributions is None else total.axis
    names, values, frequencies = list(cells.names), cells.contributions, cells.frequencies
    assert values is not None
    for axis, levels in enumerate(cells.names):
        if len(levels) > _MAX_LEVELS:
            others = tuple(i for i in range(len(names)) if i != axis)
            weight = np.zeros(len(levels)) if frequencies is None else frequencies.sum(axis=others)
            keep = np.sort(np.argsort(-weight, kind="stable")[:_MAX_LEVELS])
            names[axis], values = tuple(levels[i] for i in keep), values.take(keep, axis)
            frequencies = None if frequencies is None else frequencies.take(keep, axis)
    cells = replace(cells, names=tuple(names), contributions=values, frequencies=frequencies)
    contrast, (first, second) = cells.contrast(fitted.class_proportions, c), _class_names(drawable, c, 16)
    draw = _draw_column if n == 1 else _draw_pair
    return draw(drawable, cells, contrast, c, f"log-odds of {first} against {second}{label}", ax)


def _class_names(drawable: Drawable, c: int, max_length: int) -> tuple[str, str]:
    names = style.shorten_names(drawable.labels, max_length)
    return names[c], names[1 - c] if len(names) == 2 else "all others"


def _scale(drawable: Drawable, cells: TermAxis, contrast: NDArray, c: int) -> tuple[Any, float, NDArray]:
    """Return colours from the other class to this one, the end of their scale, and which cells have rows."""
    other = style.colour(1 - c) if len(drawable.labels) == 2 else "#555555"
    is_seen = np.ones(contrast.shape, bool) if cells.frequencies is None else cells.frequencies > 0
    limit = float(np.abs(contrast[np.isfinite(contrast) & is_seen]).max(initial=0.0)) or 1.0
    return style.colormap(other, "#f7f7f7", style.colour(c)), limit, is_seen


def _draw_column(drawable: Drawable, cells: TermAxis, contrast: NDArray, c: int, title: str, ax: Any) -> Any:
    names, at = cells.names[0], np.arange(len(contrast))
    ax = style.get_axes(ax, size=(float(np.clip(2.0 + 0.45 * len(names), 5.6, 12.0)), 4.2))
    colours, limit, _ = _scale(drawable, cells, contrast, c)
    how = {"color": colours(0.5 + 0.5 * np.clip(contrast / limit, -1, 1)), "edgecolor": style.DARK, "linewidth": 0.6}
    bars = ax.bar(at, np.clip(contrast, -2 * limit, 2 * limit), 0.5, zorder=3, **how)
    ax.bar_label(bars, [f"{v:+.2f}" for v in contrast], fontsize=8, padding=2, zorder=4)
    ax.axhline(0.0, color=style.DARK, linewidth=0.8, zorder=2)
    ax.margins(y=0.16)
    style.label_ticks(ax, "x", names, 20)
    style.format_axes(ax, cells.term.title, title, grid="y")
    if cells.frequencies is not None:
        behind = ax.twinx()
        behind.bar(at, cells.frequencies, 0.92, color=style.LIGHT, alpha=0.6)
        behind.set_ylim(0, max(1.15 * float(cells.frequencies.max(initial=0.0)), 1e-9))
        behind.set_ylabel("proportion of rows", color=style.GREY)
        behind.tick_params(axis="y", colors=style.GREY)
        for side in ("top", "left"):
            behind.spines[side].set_visible(False)
        behind.spines["right"].set_color(style.LIGHT)
        ax.set_zorder(behind.get_zorder() + 1)
        ax.patch.set_visible(False)
    return ax


def _draw_pair(drawable: Drawable, cells: TermAxis, contrast: NDArray, c: int, title: str, ax: Any) -> Any:
    across, down = map(len, cells.names)
    size = float(np.clip(3.2 + 0.5 * across, 5.4, 13.0)), float(np.clip(1.8 + 0.34 * down, 3.6, 11.0))
    ax = style.get_axes(ax, size=size)
    colours, limit, is_seen = _scale(drawable, cells, contrast, c)
    how = {"cmap": colours, "vmin": -limit, "vmax": limit, "aspect": "auto", "origin": "lower"}
    image = ax.imshow(np.ma.masked_where(~is_seen, contrast).T, **how)
    ax.set_facecolor("#e9e9e9")
    for (i, j), value in np.ndenumerate(contrast) if contrast.size <= _MAX_LABELLED_CELLS else ():
        if is_seen[i, j]:
            colour = "white" if abs(value) > 0.6 * limit else style.DARK
            ax.text(i, j, f"{value:+.2f}", ha="center", va="center", fontsize=8, color=colour)
    for axis, names in zip("xy", cells.names, strict=True):
        style.label_ticks(ax, axis, names, 20)
    style.format_axes(ax, *map(str, cells.term.columns), grid=False)
    style.separate_cells(ax, across, down)
    if not is_seen.all():
        ax.set_title("grey: no row has this combination", fontsize="small", loc="right", color=style.GREY)
    style.add_colorbar(ax, image, title, fraction=0.05, pad=0.03)
    return ax


@dataclass(frozen=True, eq=False)
class NomogramLine:
    """The line of one column: values, and the contribution of each to the class against the others."""

    name: Name
    values: tuple[str, ...]
    log_odds: NDArray  # (value,)
    frequencies: NDArray | None = None  # (value,) the proportion of the rows
    heights: NDArray | None = None  # (value,) from 0 to 1: a number has a curve, which may turn back
    curve_points: NDArray | None = None  # (point, 2) log-odds and height of the whole curve


def nomogram(model: Any, *, positive: Any = None, features: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Draw the contribution of each value of each column to the log-odds of a class; add up those of a row.

    ``positive`` is the class, by default the second of two. The dot of a level or bin is larger where more rows have
    it; a number without bins is a curve. Each column has its total effect, with its part of joint terms; the remainder
    of these, and text, are not shown: the title counts them. A missing value contributes 0. Without ``features`` it
    draws the twelve most important columns.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> ax = nomogram(FittedModel(garden()), positive="thyme")
    >>> [tick.get_text() for tick in ax.get_yticklabels()][:2]
    ['leaf_mm', 'height_cm']
    """
    drawable = Drawable.from_model(model)
    c = drawable.positive_class(positive)
    chosen = None if features is None else [drawable.resolve_column(f) for f in features]
    return draw_nomogram(drawable, c, nomogram_lines(drawable, c, chosen), ax)


def nomogram_lines(drawable: Drawable, c: int, features: Sequence[Name] | None = None) -> list[NomogramLine]:
    """Return the lines of the most important columns, or of those that are named."""
    effects = Effects(drawable.fitted)
    by_name = {
        effect.column: effect
        for effect in effects.column_effects
        if effect.axis.names or (effect.axis.shape != "words" and effect.column in drawable.number_columns)
    }
    if not by_name and features is None:
        raise InputError("no column of this model can stand on a line", remedy="draw its densities")
    for name in features or ():
        if name not in by_name:
            raise InputError("it has no line of its own", column=name, value=name, remedy="draw its densities")
    lines = list[NomogramLine]()
    for name in list(by_name)[:_MAX_LINES] if features is None else features:
        axis = by_name[name].axis
        if not axis.names:
            lines.append(_number_line(drawable, by_name[name], effects, c))
            continue
        log_odds, frequencies = _class_contrast(drawable, axis.contributions, c), axis.frequencies
        keep = np.arange(len(log_odds))
        if frequencies is not None:
            if len(keep) > _MAX_LINE_LEVELS:
                keep = np.sort(np.argsort(-frequencies, kind="stable")[:_MAX_LINE_LEVELS])
            frequencies = frequencies[keep]
        lines.append(NomogramLine(name, tuple(axis.names[0][i] for i in keep), log_odds[keep], frequencies))
    return lines


def _number_line(drawable: Drawable, effect: ColumnEffect, effects: Effects, c: int) -> NomogramLine:
    from matplotlib.ticker import MaxNLocator

    name = effect.column
    low, high = drawable.plot_range(name)
    middle, half = (low + high) / 2, _CENTRAL_PART * (high - low) / 2
    low, high = middle - half, middle + half
    ticks = np.array([v for v in MaxNLocator(6).tick_values(low, high) if low <= v <= high])
    x = np.union1d(np.linspace(low, high, 200), ticks)
    contributions = effect.axis.term.weight * drawable.log_density([name], x[:, None]) + effects.shift(name, x)
    log_odds = _class_contrast(drawable, contributions, c)
    curve, heights = np.column_stack([log_odds, (x - low) / (high - low)]), (ticks - low) / (high - low)
    at_ticks = log_odds[np.searchsorted(x, ticks)]
    return NomogramLine(name, tuple(f"{v:g}" for v in ticks), at_ticks, heights=heights, curve_points=curve)


def _class_contrast(drawable: Drawable, contributions: Any, c: int) -> NDArray:
    """Return contributions to a class, less the mean over the others by their proportions."""
    p = np.asarray(drawable.fitted.class_proportions, float)
    others = np.flatnonzero((np.arange(len(p)) != c) & (p > 0))
    with np.errstate(invalid="ignore"):  # an impossible value is not drawn
        return contributions[..., c] - contributions[..., others] @ (p[others] / p[others].sum())


def draw_nomogram(drawable: Drawable, c: int, lines: Sequence[NomogramLine], ax: Any = None) -> Any:
    """Draw lines and, with two classes, the probability that a sum means."""
    is_binary = len(drawable.labels) == 2
    n = len(lines) + is_binary
    ax = style.get_axes(ax, size=(9.0, 1.3 + _LINE_HEIGHT * n))
    seen = [
        line.log_odds[np.isfinite(line.log_odds) & (True if line.frequencies is None else line.frequencies > 0)]
        for line in lines
    ]
    sums = np.empty(0)  # of contributions, at each tick of the probability
    if is_binary:
        prior, p = drawable.fitted.model.log_prior, np.array(_PROBABILITY_TICKS)
        sums = np.log(p / (1 - p)) - float(prior[c] - prior[1 - c])
    values = np.clip(np.concatenate([*seen, sums[1:-1], [-1.0, 1.0]]), -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    margin = 0.06 * float(np.ptp(values))
    low, high = float(values.min()) - margin, float(values.max()) + margin
    ax.set(xlim=(low, high), ylim=(n - 0.4, -0.6))
    ax.axvline(0.0, color=style.DARK, linewidth=0.9, zorder=1)
    inches = float(ax.get_position().width * ax.figure.get_size_inches()[0])
    for row, line in enumerate(lines):
        _draw_line(ax, row, line, c, (high - low) / max(inches, 1.0))
    names = style.shorten_names([style.column_title(line.name) for line in lines], 24)
    label, other = _class_names(drawable, c, 20)
    if is_binary:
        last = len(lines)
        ax.plot([low, high], [last, last], color=style.DARK, linewidth=1.0)
        for x, tick in zip(sums, _PROBABILITY_TICKS, strict=True):
            if low <= x <= high:
                ax.plot([x], [last], marker="|", markersize=8, color=style.DARK, zorder=3)
                ax.text(x, last - 0.12, f"{tick:g}", ha="center", va="bottom", fontsize=_FONT_SIZE)
        names.append(f"sum: p({style.shorten(label, 14)})")
    ax.set_yticks(range(n), names)
    ax.tick_params(axis="y", length=0)
    style.format_axes(ax, f"log-odds of {label} against {other}; a missing value: 0", "", grid="x")
    ax.spines["left"].set_visible(False)
    shown = {line.name for line in lines}
    kinds = Counter(t.kind for t in list_terms(drawable.fitted) if len(t.columns) > 1 or t.columns[0] not in shown)
    if kinds:
        text = ", ".join(formatting.format_count(count, kind) for kind, count in kinds.items())
        ax.set_title(f"not shown: remainder of {text}", fontsize="small", loc="right", color=style.GREY)
    return ax


def _draw_line(ax: Any, row: int, line: NomogramLine, c: int, inch: float) -> None:
    """Draw one line with its values; ``inch`` is the log-odds of an inch."""
    at = row + (np.zeros(len(line.log_odds)) if line.heights is None else 0.5 * (line.heights - 0.5))
    if line.curve_points is None:
        finite = line.log_odds[np.isfinite(line.log_odds)]
        ends = [finite.min(initial=0.0), finite.max(initial=0.0)]
        ax.plot(ends, [row, row], color=style.LIGHT, linewidth=2, zorder=1)
    else:
        x, height = line.curve_points.T
        ax.plot(x, row + 0.5 * (height - 0.5), color=style.colour(c), linewidth=1.6, zorder=2)
    size = 26.0 if line.frequencies is None else 12 + 150 * np.sqrt(line.frequencies)
    colours = [style.colour(c) if v > 0 else style.GREY for v in line.log_odds]
    ax.scatter(line.log_odds, at, s=size, color=colours, alpha=0.8, edgecolors="white", linewidths=0.6, zorder=3)
    ends_of_track, (low, high) = dict.fromkeys(_TRACKS, -np.inf), ax.get_xlim()
    for i in np.argsort(line.log_odds, kind="stable"):  # a name that would hide another is left out
        text, x = style.shorten(line.values[i], 16), line.log_odds[i]
        half = 0.5 * inch * (len(text) + 1) * 0.0083 * _FONT_SIZE
        free = [track for track, end in ends_of_track.items() if x - half >= end]
        if free and low <= x <= high:
            ends_of_track[free[0]] = x + half
            gap, side = (0.06, "bottom") if free[0] > 0 else (-0.06, "top")
            ax.text(x, at[i] - free[0] + gap, text, fontsize=_FONT_SIZE, ha="center", va=side)
