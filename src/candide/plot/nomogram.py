"""A nomogram: a line a column, on which each value stands where what it says for a class is, in nats.

A line has the total effect of its column: over all terms that the column is in, on average over the rows. Reading the
values of a row off the lines and adding them up gives the log-odds of the class, but for what the class has of its own,
and for what is left of joint terms; of two classes the last line turns the sum into a probability.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> [soil] = nomogram_lines(Drawable.from_model(FittedModel(garden())), 2, ["soil"])
>>> soil.name, soil.values, soil.log_odds.round(2).tolist()
('soil', ('chalk', 'clay', 'sand'), [-0.02, -1.32, 0.6])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.table import Name
from candide.errors import InputError
from candide.explain.effects import ColumnEffect, Effects
from candide.explain.terms import list_terms
from candide.plot import axis_text, style
from candide.plot.drawable import Drawable
from candide.plot.term_plot import positive_class_of

_MAX_LINES = 12  # columns that are drawn where none is named
_MAX_LEVELS = 14  # of a column, the most frequent
_LINE_HEIGHT = 0.62  # inches of a line
_FONT_SIZE = 7.5  # points of the names of values
_TRACKS = (0.17, -0.17, 0.33, -0.33)  # where names may stand, above and below their line
_CENTRAL_SHARE = 0.6  # of where classes have their mass, what is drawn of a number: about two deviations
_MAX_LOG_ODDS = 10.0  # nats, odds of 22,000 to 1: what says more leaves the picture, or all else would be a point
_PROBABILITY_TICKS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class NomogramLine:
    """The line of one column: some of its values, and what each says for the class against the others."""

    name: Name
    values: tuple[str, ...]
    log_odds: NDArray  # (value,)
    frequencies: NDArray | None = None  # (value,) the share of the rows
    heights: NDArray | None = None  # (value,) how far each stands along the line of a number, which may turn back
    curve_points: NDArray | None = None  # (point, 2) nats, and how far along, of the whole of it


def nomogram(model: Any, *, positive: Any = None, features: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """What each value of each column says for a class: add up what stands above the values of a row.

    ``towards`` is the class; of two by default the second. Of a level or a bin the dot is the larger the more rows have
    it; a number as it is, is a curve. Each column has its total effect, its part of interactions and other joint terms
    among it; what is left of these, and text, has no place on a line: the title counts them. A missing value says
    nothing, 0. Without ``features`` it draws the twelve strongest.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> ax = nomogram(FittedModel(garden()), positive="thyme")
    >>> [tick.get_text() for tick in ax.get_yticklabels()][:2]
    ['leaf_mm', 'height_cm']
    >>> ax.figure.clear()
    """
    drawable = Drawable.from_model(model)
    c = positive_class_of(drawable, positive)
    chosen = None if features is None else [drawable.resolve_column(f) for f in features]
    return draw(drawable, c, nomogram_lines(drawable, c, chosen), ax)


def nomogram_lines(drawable: Drawable, c: int, features: Sequence[Name] | None = None) -> list[NomogramLine]:
    """The lines of columns, the strongest first, or of those that are named."""
    effects = Effects(drawable.fitted)
    own = {one.column: one for one in effects.column_effects}
    if features is None:
        names = [name for name in own if _can_draw(drawable, own[name])][:_MAX_LINES]
        if not names:
            raise InputError("no column of this model can stand on a line", remedy="draw its densities")
    else:
        names = list(features)
        for name in names:
            if name not in own or not _can_draw(drawable, own[name]):
                raise InputError("it has no line of its own", column=name, value=name, remedy="draw its densities")
    return [
        _level_line(drawable, own[name], c) if own[name].axis.names else _number_line(drawable, own[name], effects, c)
        for name in names
    ]


def _can_draw(drawable: Drawable, one: ColumnEffect) -> bool:
    return bool(one.axis.names) or (one.axis.shape != "words" and one.column in drawable.number_columns)


def _level_line(drawable: Drawable, one: ColumnEffect, c: int) -> NomogramLine:
    found = one.axis
    assert found.contributions is not None
    said = _class_contrast(drawable, found.contributions, c)
    keep = np.arange(len(said))
    if len(keep) > _MAX_LEVELS and found.frequencies is not None:
        keep = np.sort(np.argsort(-found.frequencies, kind="stable")[:_MAX_LEVELS])
    often = None if found.frequencies is None else found.frequencies[keep]
    return NomogramLine(one.column, tuple(found.names[0][i] for i in keep), said[keep], often)


def _number_line(drawable: Drawable, one: ColumnEffect, effects: Effects, c: int) -> NomogramLine:
    from matplotlib.ticker import MaxNLocator

    name = one.column
    low, high = drawable.plot_range(name)
    middle, half = (low + high) / 2, _CENTRAL_SHARE * (high - low) / 2
    low, high = middle - half, middle + half
    ticks = np.array([v for v in MaxNLocator(6).tick_values(low, high) if low <= v <= high])
    x = np.union1d(np.linspace(low, high, 200), ticks)
    own = one.axis.term.weight * drawable.log_density([name], x[:, None])
    said = _class_contrast(drawable, own + effects.shift(name, x), c)
    path = np.column_stack([said, (x - low) / (high - low)])
    along = (ticks - low) / (high - low)
    return NomogramLine(
        name, tuple(f"{v:g}" for v in ticks), said[np.searchsorted(x, ticks)], heights=along, curve_points=path
    )


def _class_contrast(drawable: Drawable, contributions: NDArray, c: int) -> NDArray:
    """For a class, less the mean over the others by their shares."""
    shares = np.asarray(drawable.fitted.class_proportions, float)
    others = np.flatnonzero((np.arange(len(shares)) != c) & (shares > 0))
    with np.errstate(invalid="ignore"):  # an impossible value has no place
        return contributions[..., c] - contributions[..., others] @ (shares[others] / shares[others].sum())


def draw(drawable: Drawable, c: int, lines: Sequence[NomogramLine], ax: Any = None) -> Any:
    """Draw lines, and of two classes the probability that a sum means."""
    two = len(drawable.labels) == 2
    high = len(lines) + two
    ax = style.get_axes(ax, size=(9.0, 1.3 + _LINE_HEIGHT * high))
    low, top = _axis_limits(lines, _probability_sums(drawable, c)[[1, -2]] if two else np.empty(0))
    ax.set(xlim=(low, top), ylim=(high - 0.4, -0.6))
    ax.axvline(0.0, color=style.DARK, linewidth=0.9, zorder=1)
    for row, one in enumerate(lines):
        _draw_line(ax, row, one, c, (top - low) / max(_inches(ax), 1.0))
    names = axis_text.shorten_names([axis_text.column_title(one.name) for one in lines], 24)
    label = axis_text.shorten_names(drawable.labels, 20)[c]
    if two:
        _draw_probability_line(ax, drawable, c, len(lines))
        names.append(f"sum: p({axis_text.shorten(label, 14)})")
    ax.set_yticks(range(high), names)
    ax.tick_params(axis="y", length=0)
    others = axis_text.shorten_names(drawable.labels, 20)[1 - c] if two else "all others"
    style.format_axes(ax, f"log-odds of {label} against {others}; a missing value: 0", "")
    ax.spines["left"].set_visible(False)
    ax.grid(False, axis="y")
    if left := _describe_undrawn(drawable, lines):
        ax.set_title(f"not on a line: what is left of {left}", fontsize="small", loc="right", color="#777777")
    return ax


def _axis_limits(lines: Sequence[NomogramLine], ends: NDArray) -> tuple[float, float]:
    """From where to where the axis goes: over the values that some rows have, and the ends of the last line."""
    met = [
        one.log_odds[np.isfinite(one.log_odds) & (True if one.frequencies is None else one.frequencies > 0)]
        for one in lines
    ]
    every = np.clip(np.concatenate([*met, ends, [-1.0, 1.0]]), -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    margin = 0.06 * float(np.ptp(every))
    return float(every.min()) - margin, float(every.max()) + margin


def _inches(ax: Any) -> float:
    return float(ax.get_position().width * ax.figure.get_size_inches()[0])


def _draw_line(ax: Any, row: int, one: NomogramLine, c: int, unit: float) -> None:
    """One line with its values; ``unit`` is how many log-odds an inch is."""
    at = row + (np.zeros(len(one.log_odds)) if one.heights is None else 0.5 * (one.heights - 0.5))
    ends = one.log_odds[np.isfinite(one.log_odds)]
    if one.curve_points is None:
        ax.plot([ends.min(initial=0.0), ends.max(initial=0.0)], [row, row], color=style.LIGHT, linewidth=2, zorder=1)
    else:
        ax.plot(
            one.curve_points[:, 0],
            row + 0.5 * (one.curve_points[:, 1] - 0.5),
            color=style.colour(c),
            linewidth=1.6,
            zorder=2,
        )
    size = 26.0 if one.frequencies is None else 12 + 150 * np.sqrt(one.frequencies)
    tones = [style.colour(c) if v > 0 else "#777777" for v in one.log_odds]
    ax.scatter(one.log_odds, at, s=size, color=tones, alpha=0.8, edgecolors="white", linewidths=0.6, zorder=3)
    _label_values(ax, one, at, unit)


def _label_values(ax: Any, one: NomogramLine, at: NDArray, unit: float) -> None:
    """Names above or below their values; one that would hide another is left out."""
    ends, (low, high) = dict.fromkeys(_TRACKS, -np.inf), ax.get_xlim()
    for i in np.argsort(one.log_odds, kind="stable"):
        text = axis_text.shorten(one.values[i], 16)
        half = 0.5 * unit * (len(text) + 1) * 0.0083 * _FONT_SIZE
        free = [track for track, end in ends.items() if one.log_odds[i] - half >= end]
        if free and low <= one.log_odds[i] <= high:
            ends[free[0]] = one.log_odds[i] + half
            place = {"ha": "center", "va": "bottom" if free[0] > 0 else "top"}
            ax.text(
                one.log_odds[i], at[i] - free[0] + (0.06 if free[0] > 0 else -0.06), text, fontsize=_FONT_SIZE, **place
            )


def _draw_probability_line(ax: Any, drawable: Drawable, c: int, row: int) -> None:
    """The line on which a sum is a probability: what the class has of its own is part of it."""
    low, high = ax.get_xlim()
    ax.plot([low, high], [row, row], color=style.DARK, linewidth=1.0)
    for x, share in zip(_probability_sums(drawable, c), _PROBABILITY_TICKS, strict=True):
        if low <= x <= high:
            ax.plot([x], [row], marker="|", markersize=8, color=style.DARK, zorder=3)
            ax.text(x, row - 0.12, f"{share:g}", ha="center", va="bottom", fontsize=_FONT_SIZE)


def _probability_sums(drawable: Drawable, c: int) -> NDArray:
    """What lines must come to for each of the probabilities that are shown, of two classes."""
    prior, p = drawable.fitted.model.log_prior, np.array(_PROBABILITY_TICKS)
    return np.log(p / (1 - p)) - float(prior[c] - prior[1 - c])


def _describe_undrawn(drawable: Drawable, lines: Sequence[NomogramLine]) -> str:
    """How many terms of each kind are not drawn."""
    shown = {one.name for one in lines}
    kinds: dict[str, int] = {}
    for one in list_terms(drawable.fitted):
        if len(one.columns) > 1 or one.columns[0] not in shown:
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
    return ", ".join(formatting.format_count(n, kind) for kind, n in kinds.items())
