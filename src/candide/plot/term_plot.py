"""One term of a model: the bins of a column, or a heat map of a pair, by their contribution to the log-odds of a class.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> ax = term(FittedModel(garden()), "soil", positive="thyme")
>>> ax.get_xlabel(), [tick.get_text() for tick in ax.get_xticklabels()]
('soil', ['chalk', 'clay', 'sand'])
>>> ax.figure.clear()
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.explain.axes import TermCells, build_term_cells
from candide.explain.effects import Effects
from candide.explain.terms import Term, list_terms
from candide.plot import axis_text, style
from candide.plot.drawable import Drawable

_MAX_LEVELS = 24  # levels along an axis: the most frequent
_MAX_LABELLED_CELLS = 120  # cells that have their number written in them
_BACKGROUND = "#f7f7f7"  # 0
_NEGATIVE_COLOUR = "#555555"  # where there are several other classes


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
    >>> ax.figure.clear()
    """
    drawable = Drawable.from_model(model)
    return draw_term(drawable, find_term(drawable, title), positive, ax)


def find_term(drawable: Drawable, name: Any = None) -> Term:
    """Return the term of a name; without a name the most important that can be drawn."""
    known = list_terms(drawable.fitted)
    if name is None:
        for one in known:
            if len(one.columns) <= 2 and one.n_cells:
                return one
        raise InputError("no column and no pair of this model has levels, bins or cells", remedy="draw its densities")
    if isinstance(name, str) and name in [one.title for one in known]:
        return known[name]
    several = not isinstance(name, str | int)
    columns = tuple(drawable.resolve_column(one) for one in (name if several else [name]))
    inactive = {one.column: one.reason for one in known.inactive}
    if len(columns) == 1 and columns[0] in inactive:
        raise InputError(f"it has no term of its own: {inactive[columns[0]]}", column=columns[0], value=columns[0])
    return known[columns]


def draw_term(drawable: Drawable, model_term: Term, positive: Any = None, ax: Any = None) -> Any:
    """Draw one term."""
    if len(model_term.columns) > 2 or not model_term.n_cells:
        several = len(model_term.columns) > 2 and model_term.n_cells
        why = "three columns need three axes" if several else "it has no levels, bins or cells"
        show = f"see its cells: candide show MODEL --column '{model_term.title}'"
        remedy = show if several else "draw its densities, or regions of two columns"
        raise InputError(f"cannot be drawn: {why}", column=model_term.title, value=model_term.title, remedy=remedy)
    c = positive_class_of(drawable, positive)
    found, total = build_term_cells(drawable.fitted, model_term), None
    if (
        len(model_term.columns) == 1
        and (total := Effects(drawable.fitted).for_column(model_term.columns[0]))
        and total.axis.contributions is not None
    ):
        found = TermCells(total.axis.names, total.axis.contributions, total.axis.frequencies)
    found = _keep_frequent_levels(found)
    share = float(drawable.fitted.class_proportions[c])
    said = found.contributions[..., c] / max(1.0 - share, 1e-300)  # against the mean of the others
    names = axis_text.shorten_names(drawable.labels, 16)
    against = names[1 - c] if len(names) == 2 else "all others"
    title = f"log-odds of {names[c]} against {against}"
    title += f", over {total.n_terms} terms" if total is not None and total.n_terms > 1 else ""
    if len(model_term.columns) == 1:
        return _column(drawable, model_term, found, said, c, title, ax)
    return _pair(drawable, model_term, found, said, c, title, ax)


def positive_class_of(drawable: Drawable, positive: Any) -> int:
    """Return the class whose log-odds are drawn."""
    if len(drawable.labels) < 2:
        raise InputError("the model has one class only", value=drawable.labels)
    if positive is None and len(drawable.labels) > 2:
        names = ", ".join(map(str, drawable.labels[:20]))
        what = f"a term is drawn for one class against the others, and the model has {len(drawable.labels)}: {names}"
        raise InputError(what, remedy="name one: positive=..., or --class NAME")
    return 1 if positive is None else drawable.class_code(positive)


def _keep_frequent_levels(found: TermCells) -> TermCells:
    """Of very many levels the most frequent, in their order."""
    names, nats, often = list(found.names), found.contributions, found.frequencies
    for axis, own in enumerate(found.names):
        if len(own) > _MAX_LEVELS:
            others = tuple(i for i in range(len(names)) if i != axis)
            weight = np.zeros(len(own)) if often is None else often.sum(axis=others)
            keep = np.sort(np.argsort(-weight, kind="stable")[:_MAX_LEVELS])
            names[axis], nats = tuple(own[i] for i in keep), nats.take(keep, axis)
            often = None if often is None else often.take(keep, axis)
    return TermCells(tuple(names), nats, often)


def _colours(drawable: Drawable, c: int) -> Any:
    """From the other class over paper to this one."""
    from matplotlib.colors import LinearSegmentedColormap

    other = style.colour(1 - c) if len(drawable.labels) == 2 else _NEGATIVE_COLOUR
    return LinearSegmentedColormap.from_list("towards", [other, _BACKGROUND, style.colour(c)])


def _limit(contributions: NDArray, frequencies: NDArray | None) -> float:
    """The end of the scale: the most that is said of cells that rows are in."""
    sizes = np.abs(contributions[np.isfinite(contributions) & (True if frequencies is None else frequencies > 0)])
    return float(sizes.max(initial=0.0)) or 1.0


def _column(
    drawable: Drawable, one: Term, found: TermCells, contributions: NDArray, c: int, title: str, ax: Any
) -> Any:
    names, at = found.names[0], np.arange(len(contributions))
    ax = style.get_axes(ax, size=(float(np.clip(2.0 + 0.45 * len(names), 5.6, 12.0)), 4.2))
    limit = _limit(contributions, found.frequencies)
    tones = _colours(drawable, c)(0.5 + 0.5 * np.clip(contributions / limit, -1, 1))
    bars = ax.bar(
        at,
        np.clip(contributions, -2 * limit, 2 * limit),
        0.5,
        color=tones,
        edgecolor=style.DARK,
        linewidth=0.6,
        zorder=3,
    )
    ax.bar_label(bars, [f"{v:+.2f}" for v in contributions], fontsize=8, padding=2, zorder=4)
    ax.axhline(0.0, color=style.DARK, linewidth=0.8, zorder=2)
    ax.margins(y=0.16)
    axis_text.label_ticks(ax, "x", names, 20)
    style.format_axes(ax, one.title, title)
    ax.grid(False, axis="x")
    if found.frequencies is not None:
        _draw_frequencies(ax, at, found.frequencies)
    return ax


def _draw_frequencies(ax: Any, at: NDArray, frequencies: NDArray) -> None:
    """Behind the bars the share of the rows that each bin holds, on an axis of its own."""
    behind = ax.twinx()
    behind.bar(at, frequencies, 0.92, color=style.LIGHT, alpha=0.6)
    behind.set_ylim(0, max(1.15 * float(frequencies.max(initial=0.0)), 1e-9))
    behind.set_ylabel("share of the rows", color="#777777")
    behind.tick_params(axis="y", colors="#777777")
    for side in ("top", "left"):
        behind.spines[side].set_visible(False)
    behind.spines["right"].set_color(style.LIGHT)
    ax.set_zorder(behind.get_zorder() + 1)
    ax.patch.set_visible(False)


def _pair(drawable: Drawable, one: Term, found: TermCells, contributions: NDArray, c: int, title: str, ax: Any) -> Any:
    across, down = found.names
    size = (float(np.clip(3.2 + 0.5 * len(across), 5.4, 13.0)), float(np.clip(1.8 + 0.34 * len(down), 3.6, 11.0)))
    ax = style.get_axes(ax, size=size)
    limit = _limit(contributions, found.frequencies)
    met = np.ones(contributions.shape, bool) if found.frequencies is None else found.frequencies > 0
    image = ax.imshow(
        np.ma.masked_where(~met, contributions).T,
        cmap=_colours(drawable, c),
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        origin="lower",
    )
    ax.set_facecolor("#e9e9e9")
    if contributions.size <= _MAX_LABELLED_CELLS:
        for (i, j), value in np.ndenumerate(contributions):
            if met[i, j]:
                tone = "white" if abs(value) > 0.6 * limit else style.DARK
                ax.text(i, j, f"{value:+.2f}", ha="center", va="center", fontsize=8, color=tone)
    axis_text.label_ticks(ax, "x", across, 20)
    axis_text.label_ticks(ax, "y", down, 20)
    style.format_axes(ax, *map(str, one.columns), grid=False)
    ax.set_xticks(np.arange(len(across) - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(len(down) - 1) + 0.5, minor=True)
    ax.grid(True, which="minor", color="white", linewidth=0.8)
    ax.tick_params(which="minor", length=0)
    if not met.all():
        ax.set_title("grey: no row has this combination", fontsize="small", loc="right", color="#777777")
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.03)
    bar.set_label(title)
    bar.outline.set_visible(False)
    return ax
