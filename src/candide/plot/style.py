"""Ink: the palette, the axes and the legend that all pictures share. Nothing of matplotlib's own settings is changed.

>>> colour(0), colour(1), colour(8) != colour(0)
('#0072b2', '#d55e00', True)
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from candide.errors import MissingLibraryError
from candide.plot.axis_text import shorten_names, wrap_name

# Okabe and Ito (2008), the strongest first; grey stands for black, which is left to boundaries and errors.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#7f7f7f")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")  # nine, and five lines: with eight colours no pair comes
LINE_STYLES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    (0, (1, 1)),
    (0, (5, 1, 1, 1, 1, 1)),
)  # again before the fortieth class
DARK = "#222222"
LIGHT = "#d0d0d0"
_SHADES = (0.0, -0.45, 0.5, -0.7)  # of the second eight classes, the third, ...: towards black, towards white
MAX_COLOURS = len(PALETTE) * len(_SHADES)  # classes that have a colour each
MAX_LEGEND_CLASSES = len(PALETTE)  # classes that colours tell apart at a glance; more are named where they are
_LEGEND_ROWS = 14
_LEGEND_LINE = 0.2  # inches of a line of a legend
MAX_POINTS = 5000


def colour(i: int) -> str:
    """The colour of the i-th class."""
    base = PALETTE[i % len(PALETTE)]
    shade = _SHADES[i // len(PALETTE) % len(_SHADES)]
    target = 255 if shade > 0 else 0
    parts = [int(base[k : k + 2], 16) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(p + (target - p) * abs(shade)):02x}" for p in parts)


def marker(i: int) -> str:
    return MARKERS[i % len(MARKERS)]


def line_style(i: int) -> Any:
    return LINE_STYLES[i % len(LINE_STYLES)]


def import_matplotlib() -> Any:
    """matplotlib, or an error that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise MissingLibraryError(
            "pictures need matplotlib, which is not installed: pip install 'candide[plot]'"
        ) from None
    return matplotlib


_WITHOUT_PYPLOT: ContextVar[bool] = ContextVar("apart", default=False)


@contextmanager
def without_pyplot() -> Iterator[None]:
    """Within it, new figures are not pyplot's: no window, no backend, nothing to close."""
    token = _WITHOUT_PYPLOT.set(True)
    try:
        yield
    finally:
        _WITHOUT_PYPLOT.reset(token)


def _figure(size: tuple[float, float]) -> Any:
    import_matplotlib()
    if _WITHOUT_PYPLOT.get():
        from matplotlib.figure import Figure

        return Figure(figsize=size, layout="constrained")
    import matplotlib.pyplot as plt

    return plt.figure(figsize=size, layout="constrained")


def get_axes(ax: Any = None, *, size: tuple[float, float] = (6.4, 4.4), projection: str | None = None) -> Any:
    """The axes given, or those of a new figure."""
    import_matplotlib()
    return _figure(size).add_subplot(projection=projection) if ax is None else ax


def make_axes(n: int, across: int, size: tuple[float, float]) -> list[Any]:
    """``n`` axes on a new figure, ``across`` in a row, each of a size in inches."""
    across = min(n, across)
    down = math.ceil(n / across)
    figure = _figure((size[0] * across, size[1] * down))
    return [figure.add_subplot(down, across, i + 1) for i in range(n)]


def format_axes(ax: Any, x: object = "", y: object = "", *, grid: bool = True) -> Any:
    """Names of the axes, no frame on two sides, a pale grid behind the data."""
    ax.set_xlabel(wrap_name(x, 52))
    ax.set_ylabel(wrap_name(y, 34))
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if grid:
        ax.grid(True, color=LIGHT, linewidth=0.5, alpha=0.7)
        ax.set_axisbelow(True)
    return ax


def add_legend(ax: Any, handles: Sequence[Any] | None = None, *, title: str | None = None) -> Any:
    """A legend beside the axes, where it hides nothing; panels that would have the same one share it.

    It stands beside the panel that was drawn last, which as a rule is the rightmost.
    """
    if handles is None:
        handles = ax.get_legend_handles_labels()[0]
    if not handles:
        return None
    for other in ax.figure.axes:
        theirs = None if other is ax else other.get_legend()
        if theirs is None:
            continue
        names = [text.get_text() for text in theirs.get_texts()]
        if _legend_entries(theirs.legend_handles, names) == _legend_entries(handles, [h.get_label() for h in handles]):
            theirs.remove()
    return ax.legend(
        handles=list(handles),
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.02, 1.0),
        borderaxespad=0.0,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        alignment="left",
        ncols=math.ceil(len(handles) / _LEGEND_ROWS),
    )


def _legend_entries(handles: Sequence[Any], names: Sequence[str]) -> list[tuple[str, str]]:
    """What is told by a legend: kinds and names of its entries."""
    kinds = ["points" if getattr(h, "get_marker", str)() not in ("", "None") else "" for h in handles]
    return list(zip(kinds, names, strict=True))


def share_legend(axes: Sequence[Any], labels: Sequence[Any]) -> None:
    """One legend beside all panels of a figure, instead of one beside each: the classes, then what else is told."""
    handles = class_handles(labels, points=False, patches=not any(ax.lines for ax in axes))
    known = set(shorten_names(labels))
    others = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    handles += [handle for name, handle in others.items() if name not in known]
    for ax in axes:
        if ax.get_legend():
            ax.get_legend().remove()
    figure = axes[0].figure
    columns = math.ceil(len(handles) * _LEGEND_LINE / figure.get_figheight())
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize="small", ncols=columns)


def format_ticks(axis: Any, *, date: bool = False) -> None:
    """A few ticks with short labels: 40k for 40000; and dates where numbers are days since 1970."""
    from matplotlib import dates, ticker

    if isinstance(axis.get_major_formatter(), dates.ConciseDateFormatter):
        return  # as a picture below this one has found
    if date:
        locator = dates.AutoDateLocator(minticks=3, maxticks=6)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        return
    low, high = sorted(axis.get_view_interval())
    far = max(-low, high)
    plain = ticker.ScalarFormatter(useMathText=True)
    plain.set_powerlimits((-3, 5))
    axis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(ticker.EngFormatter(sep="") if far >= 1e4 and high - low > far / 50 else plain)


def class_handles(labels: Sequence[Any], *, points: bool, patches: bool = False) -> list[Any]:
    """What a legend shows of each class: its marker, or a patch of its colour; nothing where colours come again."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if len(labels) > MAX_COLOURS:
        return []
    if patches:
        return [Patch(facecolor=colour(i), label=name) for i, name in enumerate(shorten_names(labels))]
    return [
        Line2D(
            [], [], linestyle="none" if points else line_style(i), color=colour(i), label=name,
            marker=marker(i) if points else "", markeredgecolor=DARK, markeredgewidth=0.4,
        )
        for i, name in enumerate(shorten_names(labels))
    ]  # fmt: skip


def draw_points(ax: Any, x: Any, y: Any, codes: Any, labels: Sequence[Any]) -> list[Any]:
    """A scatter for every class that has points; at most some thousands of points are drawn."""
    keep = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(keep) > MAX_POINTS:
        keep = np.sort(np.random.default_rng(0).choice(keep, MAX_POINTS, replace=False))
    size = float(np.clip(4000 / max(len(keep), 1), 6, 28))
    edge = {"edgecolors": DARK if size > 10 else "none", "linewidths": 0.4, "zorder": 3}
    if codes is None:
        return [ax.scatter(x[keep], y[keep], s=size, c="#555555", alpha=0.8, **edge)]
    drawn = []
    for i, name in enumerate(shorten_names(labels)):
        mine = keep[codes[keep] == i]
        if len(mine):
            look = {"s": size, "color": colour(i), "marker": marker(i), "label": name, "alpha": 0.9}
            drawn.append(ax.scatter(x[mine], y[mine], **look, **edge))
    return drawn
