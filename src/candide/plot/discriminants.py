"""The discriminant: log p(1 | x) / p(0 | x) of test cases, with the errors marked. Its sign is the decision.

>>> ax = draw(["no", "yes"], 1, np.array([-2.0, 1.0, 3.0]), np.array([0, 0, 1]))
>>> ax.get_title(loc="left")
'1 error in 3'
>>> ax.figure.clear()
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, unknown_name_error
from candide.metrics.calibration import log_odds
from candide.plot import axis_text, style
from candide.plot.drawable import Drawable

_INFINITE_MARGIN = 1.08  # an infinite discriminant is drawn this much beyond the farthest finite one
_MOST_BARS = 2000
_MANY_ROWS = 2000  # rows; of more, points would hide each other
_BINS = 60
_ERROR = "error"
_SYMLOG_FROM, _LINEAR_RANGE = (
    60.0,
    10.0,
)  # beyond the first the axis is logarithmic outside the second, so that close cases stay apart


def discriminant(model: Any, X: Any, y: Any, *, ax: Any = None, kind: str | None = None, positive: Any = None) -> Any:
    """The discriminant of every row by true class, the errors marked in black.

    ``kind`` is "strip", a point a row; "histogram", each class to its own height; or "bars", sorted. By default it is a
    strip of up to 2000 rows, and a histogram of more.

    ``positive`` is the class above 0: by default the second of two. Named, it may also be one of many, against all
    others together.

    >>> import candide as cd
    >>> X, y = [[1.0], [2.0], [8.0], [9.0]], ["low", "low", "top", "top"]
    >>> ax = discriminant(cd.NaiveBayes().fit(X, y), X, y)
    >>> bool(ax.get_xlabel())
    True
    >>> ax.figure.clear()
    """
    drawable = Drawable.from_model(model)
    c = positive_class(drawable, positive)
    joint = drawable.joint_log_likelihood(X)
    return draw(drawable.labels, c, log_odds(joint, c), drawable.label_codes(y, len(joint)), ax=ax, kind=kind)


def positive_class(drawable: Drawable, positive: Any) -> int:
    """The class above 0."""
    if positive is not None and len(drawable.labels) > 1:
        return drawable.class_code(positive)
    if len(drawable.labels) != 2:
        names = ", ".join(map(str, drawable.labels[:20]))
        raise InputError(
            f"a discriminant is between two classes, and the model has {len(drawable.labels)}: {names}; name one to "
            "set it against the others: positive=..., or --class NAME"
        )
    return 1


def draw(labels: Any, c: int, odds: NDArray, codes: NDArray, *, ax: Any = None, kind: str | None = None) -> Any:
    """Draw discriminants of rows whose classes are known; rows without a class are left out."""
    if kind is not None and kind not in _KINDS:
        raise unknown_name_error("kind", kind, _KINDS)
    odds, codes = odds[codes >= 0], codes[codes >= 0]
    if not len(odds):
        raise InputError("no row has a class; the discriminant is drawn of rows whose class is known")
    finite = np.abs(odds[np.isfinite(odds)])
    far = _INFINITE_MARGIN * float(finite.max(initial=0.0)) or 1.0
    shown = np.clip(odds, -far, far)
    wrong = (odds > 0) != (codes == c)
    kind = kind or ("strip" if len(odds) <= _MANY_ROWS else "histogram")
    ax = style.get_axes(ax, size=(7.0, 4.0) if kind == "bars" else (7.0, min(3.0 + 0.1 * len(labels), 11.0)))
    if far > _SYMLOG_FROM:
        _use_symlog(ax, "y" if kind == "bars" else "x")
    _KINDS[kind](ax, labels, codes, shown, wrong)
    names = axis_text.shorten_names(labels, 16)
    against = names[1 - c] if len(names) == 2 else f"not {names[c]}"
    title = f"log p({names[c]} | x) / p({against} | x)"
    title += f"\n(logarithmic beyond ±{_LINEAR_RANGE:g})" if far > _SYMLOG_FROM else ""
    style.format_axes(ax, *(("test cases, sorted", title) if kind == "bars" else (title, "true class")))
    errors = f"{wrong.sum()} error{'' if wrong.sum() == 1 else 's'} in {len(odds)}"
    errors += "; the farthest are infinite" if np.isinf(odds).any() else ""
    ax.set_title(errors, fontsize="medium", loc="left")
    handles = ax.get_legend_handles_labels()[0]
    if len(labels) > (
        style.MAX_COLOURS if kind == "bars" else style.MAX_LEGEND_CLASSES
    ):  # rows are named where they are
        handles = [h for h in handles if h.get_label() == _ERROR]
    style.add_legend(ax, sorted(handles, key=lambda h: h.get_label() == _ERROR))
    return ax


def _use_symlog(ax: Any, axis: str) -> None:
    """An axis that is linear near 0 and logarithmic far out, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    getattr(ax, f"set_{axis}scale")("symlog", linthresh=_LINEAR_RANGE, linscale=1.0)
    line = getattr(ax, f"{axis}axis")
    line.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    line.set_minor_locator(NullLocator())


def _strip(ax: Any, labels: Any, codes: NDArray, odds: NDArray, wrong: NDArray) -> None:
    """A row a class; points are spread up and down by a fixed pattern so that they do not hide each other."""
    spread = np.empty(len(odds))
    for i, label in enumerate(axis_text.shorten_names(labels)):
        mine = np.flatnonzero(codes == i)
        if not len(mine):
            continue
        order = mine[np.argsort(odds[mine], kind="stable")]
        spread[order] = (np.arange(len(order)) * 0.618034) % 1.0 * 0.56 - 0.28  # the golden ratio: even, no pattern
        look = {"color": style.colour(i), "marker": style.marker(i), "edgecolors": style.DARK, "linewidths": 0.3}
        look |= {"alpha": 0.3, "edgecolors": "none"} if len(odds) > _MANY_ROWS else {"alpha": 0.85}
        size = float(np.clip(4000 / len(odds), 6, 30))
        ax.scatter(odds[mine], i + spread[mine], s=size, label=label, zorder=2, **look)
    _mark_errors(ax, odds[wrong], codes[wrong] + spread[wrong], 70)
    _label_rows(ax, labels)


def _histogram(ax: Any, labels: Any, codes: NDArray, odds: NDArray, wrong: NDArray) -> None:
    """A row a class: how many cases lie where, on bins as wide as each other on the axis; one of them ends at 0."""
    scale = ax.xaxis.get_transform()
    at = scale.transform(odds)
    step = float(np.ptp(at)) / _BINS or 1.0
    bins = step * np.arange(np.floor(at.min() / step), np.floor(at.max() / step) + 2)
    at, edges = np.clip(at, bins[0], bins[-1]), scale.inverted().transform(bins)
    place = {"x": edges[:-1], "width": np.diff(edges), "align": "edge", "zorder": 2}
    errors: str | None = _ERROR  # named once in the legend
    for i, label in enumerate(axis_text.shorten_names(labels)):
        right, missed = (np.histogram(at[(codes == i) & (wrong == bad)], bins)[0] for bad in (False, True))
        unit = -0.8 / max((right + missed).max(), 1)  # the axis points down
        ax.bar(height=unit * right, bottom=i + 0.4, color=style.colour(i), label=label, **place)
        if missed.any():
            ax.bar(height=unit * missed, bottom=i + 0.4 + unit * right, color="black", label=errors, **place)
            errors = None
    _label_rows(ax, labels)


def _label_rows(ax: Any, labels: Any) -> None:
    ax.axvline(0.0, color=style.DARK, linewidth=1.0, zorder=1)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    axis_text.label_ticks(ax, "y", labels, 16)


def _mark_errors(ax: Any, x: NDArray, y: NDArray, most: float) -> None:
    """A cross an error, the smaller the more there are."""
    if len(x):
        size = float(np.clip(10_000 / len(x), 6, most))
        look = {"marker": "x", "color": "black", "linewidths": 1.6 if size > 20 else 0.6, "zorder": 3}
        ax.scatter(x, y, s=size, label=_ERROR, **look)


def _bars(ax: Any, labels: Any, codes: NDArray, odds: NDArray, wrong: NDArray) -> None:
    order = np.argsort(odds, kind="stable")
    if len(order) > _MOST_BARS:  # every so many, but every error
        keep = np.zeros(len(order), bool)
        keep[np.linspace(0, len(order) - 1, _MOST_BARS).astype(int)] = True
        order = order[keep | wrong[order]]
    place = np.arange(len(order))
    for i, label in enumerate(axis_text.shorten_names(labels)):
        mine = codes[order] == i
        if mine.any():
            wide = 0.9 if len(order) <= 80 else 1.0  # thin gaps between many bars would flicker
            ax.bar(place[mine], odds[order][mine], wide, color=style.colour(i), label=label, zorder=2)
    missed = wrong[order]
    _mark_errors(ax, place[missed], odds[order][missed], 45)
    ax.axhline(0.0, color=style.DARK, linewidth=1.0, zorder=1)
    ax.set_xlim(-1, len(order))
    ax.grid(False, axis="x")


_KINDS = {"strip": _strip, "histogram": _histogram, "bars": _bars}
