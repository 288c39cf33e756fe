"""Style of all plots: palette, axes, legends, and text that fits. matplotlib's own settings are not changed."""

import io
import math
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import numpy as np

from candide import formatting
from candide.data.notes import Note, issue_warnings
from candide.errors import MissingLibraryError

# Okabe and Ito (2008), the strongest first; grey stands for black, which is left to boundaries and errors.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#7f7f7f")
# Nine markers, five lines and eight colours: no combination is repeated before the fortieth class.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LINE_STYLES: tuple[Any, ...] = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1, 1, 1)))
DARK, GREY, LIGHT = "#222222", "#777777", "#d0d0d0"
_SHADES = (0.0, -0.45, 0.5, -0.7)  # of the first eight classes, the second, ...: towards black, towards white
MAX_COLOURS = len(PALETTE) * len(_SHADES)  # classes with different colours
MAX_LEGEND_CLASSES = len(PALETTE)  # classes whose colours are easy to distinguish; more are labelled in place
MAX_POINTS = 5000
_LEGEND_ROWS, _LEGEND_LINE = 14, 0.2  # lines of a legend, and inches of each
_CHARACTER_WIDTH, _LINE_HEIGHT = 0.0083, 0.0166  # inches of a character, for each point of the font size
_FONT_SIZES = (10.0, 8.0, 6.5)  # points; the largest that fits is used
_PLACEHOLDER_FONT = "Last Resort"  # a font that has a box for every character
_MISSING_GLYPH = re.compile(r"Glyph (\d+) .*missing from")


def colour(i: int) -> str:
    base, shade = PALETTE[i % len(PALETTE)], _SHADES[i // len(PALETTE) % len(_SHADES)]
    target, parts = 255 if shade > 0 else 0, [int(base[k : k + 2], 16) for k in (1, 3, 5)]
    return "#" + "".join(f"{round(p + (target - p) * abs(shade)):02x}" for p in parts)


def marker(i: int) -> str:
    return MARKERS[i % len(MARKERS)]


def line_style(i: int) -> Any:
    return LINE_STYLES[i % len(LINE_STYLES)]


def outline(width: float) -> list[Any]:
    """Return a white outline, which keeps lines and text visible over others."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground="white")]


def colormap(*colours: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("classes", colours)


def import_matplotlib() -> Any:
    """Import matplotlib, or raise an error with the command that installs it."""
    try:
        import matplotlib
    except ImportError:
        problem = "pictures need matplotlib, which is not installed: pip install 'candide[plot]'"
        raise MissingLibraryError(problem) from None
    return matplotlib


_WITHOUT_PYPLOT: ContextVar[bool] = ContextVar("without_pyplot", default=False)


@contextmanager
def without_pyplot() -> Iterator[None]:
    """Make new figures without pyplot: no window, no backend, nothing to close."""
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
    import_matplotlib()
    return _figure(size).add_subplot(projection=projection) if ax is None else ax


def make_axes(n: int, across: int, size: tuple[float, float]) -> list[Any]:
    """Return ``n`` axes on a new figure, ``across`` in a row, each of a size in inches."""
    across = min(n, across)
    down = math.ceil(n / across)
    figure = _figure((size[0] * across, size[1] * down))
    return [figure.add_subplot(down, across, i + 1) for i in range(n)]


def format_axes(ax: Any, x: object = "", y: object = "", *, grid: bool | str = True) -> Any:
    """Label the axes, remove two sides of the frame, and draw a pale grid: both ways, or of "x" or "y" alone."""
    ax.set_xlabel(wrap_name(x, 52))
    ax.set_ylabel(wrap_name(y, 34))
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if grid:
        ax.grid(True, color=LIGHT, linewidth=0.5, alpha=0.7)
        ax.set_axisbelow(True)
        if grid is not True:
            ax.grid(False, axis="x" if grid == "y" else "y")
    return ax


def add_reference(ax: Any, label: str, y: float | None = None) -> None:
    how = {"color": DARK, "linewidth": 1.0, "linestyle": ":", "label": label, "zorder": 1}
    ax.plot([0, 1], [0, 1], **how) if y is None else ax.axhline(y, **how)


def add_colorbar(ax: Any, image: Any, label: str, **how: Any) -> None:
    bar = ax.figure.colorbar(image, ax=ax, **how)
    bar.set_label(label)
    bar.outline.set_visible(False)


def separate_cells(ax: Any, across: int, down: int) -> None:
    ax.set_xticks(np.arange(across - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(down - 1) + 0.5, minor=True)
    ax.grid(True, which="minor", color="white", linewidth=0.8)
    ax.tick_params(which="minor", length=0)


def add_legend(ax: Any, handles: Sequence[Any] | None = None) -> Any:
    """Add a legend beside the axes; panels with the same legend have it once, beside the one drawn last."""
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    if not handles:
        return ax
    entries = _legend_entries(handles, [handle.get_label() for handle in handles])
    for other in ax.figure.axes:
        legend = None if other is ax else other.get_legend()
        if legend is not None:
            names = [text.get_text() for text in legend.get_texts()]
            if _legend_entries(legend.legend_handles, names) == entries:
                legend.remove()
    ax.legend(
        handles=list(handles), loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0, frameon=False,
        fontsize="small", alignment="left", ncols=math.ceil(len(handles) / _LEGEND_ROWS),
    )  # fmt: skip
    return ax


def _legend_entries(handles: Sequence[Any], names: Sequence[str]) -> list[tuple[bool, str]]:
    """Return the entries of a legend: whether it shows a marker, and the name."""
    has_marker = [getattr(handle, "get_marker", str)() not in ("", "None") for handle in handles]
    return list(zip(has_marker, names, strict=True))


def share_legend(axes: Sequence[Any], labels: Sequence[Any]) -> None:
    """Replace the legends of all panels by one: the classes, then other entries."""
    names, has_lines = shorten_names(labels), any(ax.lines for ax in axes)
    handles = class_handles(labels, points=False, patches=not has_lines)
    others = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    handles += [handle for name, handle in others.items() if name not in names]
    for ax in axes:
        if ax.get_legend():
            ax.get_legend().remove()
    figure = axes[0].figure
    columns = math.ceil(len(handles) * _LEGEND_LINE / figure.get_figheight())
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize="small", ncols=columns)


def format_ticks(axis: Any, *, date: bool = False) -> None:
    """Set a few ticks with short labels: 40k for 40000; dates where numbers are days since 1970."""
    from matplotlib import dates, ticker

    if isinstance(axis.get_major_formatter(), dates.ConciseDateFormatter):
        return  # set by a plot on the same axes
    if date:
        locator = dates.AutoDateLocator(minticks=3, maxticks=6)
        axis.set_major_locator(locator)
        axis.set_major_formatter(dates.ConciseDateFormatter(locator))
        return
    low, high = sorted(axis.get_view_interval())
    largest = max(-low, high)
    plain = ticker.ScalarFormatter(useMathText=True)
    plain.set_powerlimits((-3, 5))
    axis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    is_large = largest >= 1e4 and high - low > largest / 50
    axis.set_major_formatter(ticker.EngFormatter(sep="") if is_large else plain)


def class_handles(labels: Sequence[Any], *, points: bool, patches: bool = False) -> list[Any]:
    """Return the legend entries of classes: markers, patches or lines; none where colours are repeated."""
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
    """Draw a scatter for every class that has points; of very many points a sample."""
    keep = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(keep) > MAX_POINTS:
        keep = np.sort(np.random.default_rng(0).choice(keep, MAX_POINTS, replace=False))
    size = float(np.clip(4000 / max(len(keep), 1), 6, 28))
    how = {"s": size, "edgecolors": DARK if size > 10 else "none", "linewidths": 0.4, "zorder": 3}
    if codes is None:
        return [ax.scatter(x[keep], y[keep], c="#555555", alpha=0.8, **how)]
    drawn = []
    for i, name in enumerate(shorten_names(labels)):
        mine = keep[codes[keep] == i]
        if len(mine):
            drawn.append(ax.scatter(x[mine], y[mine], color=colour(i), marker=marker(i), label=name, alpha=0.9, **how))
    return drawn


def shorten(text: object, max_length: int = 24) -> str:
    text = _printable(text)
    return text if len(text) <= max_length else text[: max_length - 1].rstrip() + "…"


def shorten_names(names: Sequence[object], max_length: int = 24) -> list[str]:
    """Shorten names at the end; those that would be equal in the middle, or else they are numbered."""
    plain, half = [_printable(name) for name in names], (max_length - 1) // 2
    cuts = (
        lambda i: plain[i][: max_length - 1 - half].rstrip() + "…" + plain[i][-half:].lstrip().lstrip("\\"),
        lambda i: f"{shorten(plain[i], max_length - 5)} {i + 1}",
    )
    shown = [shorten(name, max_length) for name in plain]
    for cut in cuts:
        counts = Counter(shown)
        shown = [cut(i) if counts[text] > 1 and len(plain[i]) > max_length else text for i, text in enumerate(shown)]
    return shown


def _printable(text: object) -> str:
    text = formatting.make_printable(str(text))  # invalid characters would break the file of a plot
    text = "\n".join(" ".join(line.split()) for line in text.splitlines())
    return re.sub(r"(?<!\\)\$", r"\\$", text)  # once, however often it is passed through


def column_title(name: object, max_length: int = 60) -> str:
    """Return the name of a column, also of one that has only a number."""
    return shorten(f"feature {name}" if isinstance(name, int) else name, max_length)


def wrap_name(name: object, width: int) -> str:
    text = column_title(name, 2 * width - 4)
    return text if len(text) <= width or "\n" in text else "\n".join(textwrap.wrap(text, width)[:2])


def label_ticks(ax: Any, axis: str, names: Sequence[object], max_length: int = 18) -> None:
    """Label each whole number of an axis: smaller or rotated where space is short, and of very many only some."""
    shown, place = shorten_names(names, max_length), ax.get_position()
    wide, high = ax.figure.get_size_inches()
    space = float(place.width * wide if axis == "x" else place.height * high) / max(len(shown), 1)  # inches
    width = (max(map(len, shown), default=0) + 1) * _CHARACTER_WIDTH * _FONT_SIZES[0]
    size = next((s for s in _FONT_SIZES if _LINE_HEIGHT * s <= space), _FONT_SIZES[-1])
    is_largest = size == _FONT_SIZES[0]
    step = max(1, int(np.ceil(_LINE_HEIGHT * _FONT_SIZES[-1] / space - 1e-9)))
    set_ticks = ax.set_xticks if axis == "x" else ax.set_yticks
    set_ticks(np.arange(len(names))[::step], shown[::step], fontsize=None if is_largest else size)
    if axis == "x" and width > space:
        ax.tick_params(axis="x", rotation=45 if is_largest else 90)
        for text in ax.get_xticklabels() if is_largest else ():
            text.set(ha="right", rotation_mode="anchor")


def render_figure(figure: Any, **save_options: Any) -> bytes:
    """Return a figure as the bytes of a file, with other fonts where its own lack characters, or else a warning."""
    image, lacking = _save_figure(figure, save_options)
    if lacking and (fonts := find_fonts(lacking)):
        from matplotlib.text import Text

        for text in figure.findobj(Text):
            if lacking & set(text.get_text()):
                text.set_fontfamily([*text.get_fontfamily(), *fonts])
        image, lacking = _save_figure(figure, save_options)
    if lacking:
        problem = f"no font of this machine has the letters {''.join(sorted(lacking)[:8])}: boxes stand for them"
        remedy = "install one, such as Noto Sans CJK for Chinese, Japanese and Korean"
        issue_warnings([Note("font-missing", problem, remedy=remedy)], stacklevel=3)
    return image


def _save_figure(figure: Any, how: dict[str, Any]) -> tuple[bytes, set[str]]:
    out, lacking = io.BytesIO(), set()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(out, **how)
    for warning in caught:
        if glyph := _MISSING_GLYPH.match(str(warning.message)):
            lacking.add(chr(int(glyph[1])))
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return out.getvalue(), lacking


def find_fonts(characters: set[str]) -> list[str]:
    """Return fonts that together have the characters, the one with the most first."""
    from matplotlib import font_manager

    left, fonts = set(map(ord, characters)), list[str]()
    files = {f.name: f.fname for f in font_manager.fontManager.ttflist if not f.name.startswith(_PLACEHOLDER_FONT)}
    has = dict[str, set[int]]()
    for name, path in sorted(files.items()):
        with suppress(OSError, RuntimeError):  # a file that is not a font any more
            has[name] = left & set(font_manager.get_font(path).get_charmap())
    while left and has:
        best = max(has, key=lambda name: len(has[name] & left))
        if not has[best] & left:
            break
        fonts.append(best)
        left -= has.pop(best)
    return fonts
