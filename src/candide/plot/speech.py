"""One voice of a model: the bins of a column, or a heat map of a pair, by what they say for a class.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> ax = voice(Fitted(garden()), "soil", towards="thyme")
>>> ax.get_xlabel(), [tick.get_text() for tick in ax.get_xticklabels()]
('soil', ['chalk', 'clay', 'sand'])
>>> ax.figure.clear()
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError
from candide.explain.cells import Cells, cells
from candide.explain.effects import Effects
from candide.explain.voices import Voice, voices
from candide.plot import lettering, style
from candide.plot.drawable import Drawable

_MOST = 24  # levels along an axis: the most frequent
_WRITTEN = 120  # cells that have their number written in them
_PAPER = "#f7f7f7"  # 0
_AGAINST = "#555555"  # where there are several other classes


def voice(model: Any, name: Any = None, *, towards: Any = None, ax: Any = None) -> Any:
    """What a voice says for a class against the others, in nats: above 0 it speaks for the class.

    ``name`` is a column, a pair of columns, or a title such as "age x job"; by default the strongest voice that can be
    drawn. A column is drawn by its levels or bins, over the share of the rows that each holds, with its total effect
    over all terms that it is in; a pair as a heat map, in
    which combinations that no row had are pale. ``towards`` is the class; of two classes by default the second. Against
    several classes it is the mean of them, by their shares.

    >>> import numpy as np
    >>> import candide as cd
    >>> rng = np.random.default_rng(0)
    >>> X = {"valve": rng.choice(["open", "shut"], 400), "pump": rng.choice(["on", "off"], 400)}
    >>> y = np.where((X["valve"] == "open") == (X["pump"] == "on"), "safe", "risk")
    >>> ax = voice(cd.BayesClassifier().fit(X, y), ("valve", "pump"))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('valve', 'pump')
    >>> ax.figure.clear()
    """
    drawable = Drawable.of(model)
    return draw(drawable, chosen(drawable, name), towards, ax)


def chosen(drawable: Drawable, name: Any = None) -> Voice:
    """The voice of a name; the strongest that can be drawn where there is none."""
    known = voices(drawable.fitted)
    if name is None:
        for one in known:
            if len(one.columns) <= 2 and one.answers:
                return one
        raise InputError("no column and no pair of this model has levels, bins or cells", remedy="draw its densities")
    if isinstance(name, str) and name in [one.title for one in known]:
        return known[name]
    several = not isinstance(name, str | int)
    columns = tuple(drawable.known(one) for one in (name if several else [name]))
    silent = {one.column: one.why for one in known.silent}
    if len(columns) == 1 and columns[0] in silent:
        raise InputError(f"it has no voice of its own: {silent[columns[0]]}", column=columns[0], value=columns[0])
    return known[columns]


def draw(drawable: Drawable, one: Voice, towards: Any = None, ax: Any = None) -> Any:
    """Draw one voice."""
    if len(one.columns) > 2 or not one.answers:
        several = len(one.columns) > 2 and one.answers
        why = "three columns need three axes" if several else "it has no levels, bins or cells"
        show = f"see its cells: candide show MODEL --column '{one.title}'"
        remedy = show if several else "draw its densities, or regions of two columns"
        raise InputError(f"cannot be drawn: {why}", column=one.title, value=one.title, remedy=remedy)
    c = class_of(drawable, towards)
    found, total = cells(drawable.fitted, one), None
    if len(one.columns) == 1 and (total := Effects(drawable.fitted).of(one.columns[0])) and total.axis.nats is not None:
        found = Cells(total.axis.names, total.axis.nats, total.axis.often)
    found = _most_frequent(found)
    share = float(drawable.fitted.shares[c])
    said = found.nats[..., c] / max(1.0 - share, 1e-300)  # against the mean of the others
    names = lettering.shorts(drawable.labels, 16)
    against = names[1 - c] if len(names) == 2 else "all others"
    title = f"nats for {names[c]} against {against}"
    title += f", over {total.terms} terms" if total is not None and total.terms > 1 else ""
    if len(one.columns) == 1:
        return _column(drawable, one, found, said, c, title, ax)
    return _pair(drawable, one, found, said, c, title, ax)


def class_of(drawable: Drawable, towards: Any) -> int:
    """The class that is spoken for."""
    if len(drawable.labels) < 2:
        raise InputError("the model knows one class only: there is nothing to speak for", value=drawable.labels)
    if towards is None and len(drawable.labels) > 2:
        names = ", ".join(map(str, drawable.labels[:20]))
        what = f"a voice is drawn for one class against the others, and the model has {len(drawable.labels)}: {names}"
        raise InputError(what, remedy="name one: towards=..., or --class NAME")
    return 1 if towards is None else drawable.label(towards)


def _most_frequent(found: Cells) -> Cells:
    """Of very many levels the most frequent, in their order."""
    names, nats, often = list(found.names), found.nats, found.often
    for axis, own in enumerate(found.names):
        if len(own) > _MOST:
            others = tuple(i for i in range(len(names)) if i != axis)
            weight = np.zeros(len(own)) if often is None else often.sum(axis=others)
            keep = np.sort(np.argsort(-weight, kind="stable")[:_MOST])
            names[axis], nats = tuple(own[i] for i in keep), nats.take(keep, axis)
            often = None if often is None else often.take(keep, axis)
    return Cells(tuple(names), nats, often)


def _colours(drawable: Drawable, c: int) -> Any:
    """From the other class over paper to this one."""
    from matplotlib.colors import LinearSegmentedColormap

    other = style.colour(1 - c) if len(drawable.labels) == 2 else _AGAINST
    return LinearSegmentedColormap.from_list("towards", [other, _PAPER, style.colour(c)])


def _limit(said: NDArray, often: NDArray | None) -> float:
    """The end of the scale: the most that is said of cells that rows are in."""
    sizes = np.abs(said[np.isfinite(said) & (True if often is None else often > 0)])
    return float(sizes.max(initial=0.0)) or 1.0


def _column(drawable: Drawable, one: Voice, found: Cells, said: NDArray, c: int, title: str, ax: Any) -> Any:
    names, at = found.names[0], np.arange(len(said))
    ax = style.axes(ax, size=(float(np.clip(2.0 + 0.45 * len(names), 5.6, 12.0)), 4.2))
    limit = _limit(said, found.often)
    tones = _colours(drawable, c)(0.5 + 0.5 * np.clip(said / limit, -1, 1))
    bars = ax.bar(
        at, np.clip(said, -2 * limit, 2 * limit), 0.5, color=tones, edgecolor=style.DARK, linewidth=0.6, zorder=3
    )
    ax.bar_label(bars, [f"{v:+.2f}" for v in said], fontsize=8, padding=2, zorder=4)
    ax.axhline(0.0, color=style.DARK, linewidth=0.8, zorder=2)
    ax.margins(y=0.16)
    lettering.name_ticks(ax, "x", names, 20)
    style.tidy(ax, one.title, title)
    ax.grid(False, axis="x")
    if found.often is not None:
        _shares(ax, at, found.often)
    return ax


def _shares(ax: Any, at: NDArray, often: NDArray) -> None:
    """Behind the bars the share of the rows that each bin holds, on an axis of its own."""
    behind = ax.twinx()
    behind.bar(at, often, 0.92, color=style.PALE, alpha=0.6)
    behind.set_ylim(0, max(1.15 * float(often.max(initial=0.0)), 1e-9))
    behind.set_ylabel("share of the rows", color="#777777")
    behind.tick_params(axis="y", colors="#777777")
    for side in ("top", "left"):
        behind.spines[side].set_visible(False)
    behind.spines["right"].set_color(style.PALE)
    ax.set_zorder(behind.get_zorder() + 1)
    ax.patch.set_visible(False)


def _pair(drawable: Drawable, one: Voice, found: Cells, said: NDArray, c: int, title: str, ax: Any) -> Any:
    across, down = found.names
    size = (float(np.clip(3.2 + 0.5 * len(across), 5.4, 13.0)), float(np.clip(1.8 + 0.34 * len(down), 3.6, 11.0)))
    ax = style.axes(ax, size=size)
    limit = _limit(said, found.often)
    met = np.ones(said.shape, bool) if found.often is None else found.often > 0
    image = ax.imshow(
        np.ma.masked_where(~met, said).T,
        cmap=_colours(drawable, c),
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        origin="lower",
    )
    ax.set_facecolor("#e9e9e9")
    if said.size <= _WRITTEN:
        for (i, j), value in np.ndenumerate(said):
            if met[i, j]:
                tone = "white" if abs(value) > 0.6 * limit else style.DARK
                ax.text(i, j, f"{value:+.2f}", ha="center", va="center", fontsize=8, color=tone)
    lettering.name_ticks(ax, "x", across, 20)
    lettering.name_ticks(ax, "y", down, 20)
    style.tidy(ax, *map(str, one.columns), grid=False)
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
