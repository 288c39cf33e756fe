"""The graphical model: the class, an arrow to every feature, and the table of each given the class."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from candide import formatting
from candide.data.table import Name
from candide.errors import InputError
from candide.explain.columns import iterate_conditionals
from candide.plot import style
from candide.plot.drawable import Drawable

_MAX_FEATURES, _MAX_CLASSES, _MAX_ROWS = 6, 4, 6
_LINE_HEIGHT, _NODE_HEIGHT, _ARROW_HEIGHT = 0.21, 0.4, 0.95  # inches


def network(model: Any, *, features: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Draw the class above, the features below, an arrow from the class to each, and their conditional tables.

    Neighbours that are modelled together, by a covariance matrix, are joined by a line. Without ``features`` it draws
    up to six, those most strongly associated with the class, and the number of all others.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> ax = network(FittedModel(garden()), features=["soil", "scented"])
    >>> "soil" in {text.get_text() for text in ax.texts}
    True
    """
    drawable = Drawable.from_model(model)
    n_classes = min(len(drawable.labels), _MAX_CLASSES)
    tables = _feature_tables(drawable, features, n_classes)
    more = len(drawable.labels) - n_classes
    n_lines, width = n_classes + bool(more), 1.35 + 0.6 * (n_classes + bool(more))  # inches of a feature
    wide, top = max(width * len(tables), width + 3.0), max(_NODE_HEIGHT, _LINE_HEIGHT * (n_lines + 1))
    low = _LINE_HEIGHT * max(map(len, tables.values()))
    level, root = low + _NODE_HEIGHT / 2 + 0.08, low + _NODE_HEIGHT + _ARROW_HEIGHT + _NODE_HEIGHT / 2
    high = root + top + 0.1
    ax = style.get_axes(ax, size=(wide, high + 0.2))
    ax.set(xlim=(0, wide), ylim=(0, high))
    ax.set_axis_off()
    places = (np.arange(len(tables)) + 0.5) * wide / len(tables)
    for x in places:
        _draw_arrow(ax, (x, level + _NODE_HEIGHT / 2), (wide / 2, root), "-|>")
    for (a, first), (b, second) in pairwise(zip(places, tables, strict=True)):
        i, j = (drawable.column_places[name][0] for name in (first, second))
        params = drawable.fitted.model.distributions[i].parameters()
        if i == j and any(p.ndim == 3 for p in params.values()):  # correlated given the class
            _draw_arrow(ax, (b, level), (a, level), "-")
    target = style.shorten(drawable.fitted.target or "class", 16)
    _draw_node(ax, wide / 2, root, target, "#ffffff")
    beside = wide / 2 + 0.45 + 0.04 * len(target)
    _draw_cells(ax, _class_rows(drawable, n_classes), (beside, root + 0.03, 1.9, top))
    names = style.shorten_names([style.column_title(name) for name in tables], 18)
    for x, name, rows in zip(places, names, tables.values(), strict=True):
        _draw_node(ax, x, level, name, "#eaf2f8")
        height = _LINE_HEIGHT * len(rows)
        _draw_cells(ax, rows, (x - width / 2 + 0.1, low - height, width - 0.2, height))
    if left := len(drawable.columns) - len(tables):
        others = f"and {formatting.format_count(left, 'more feature')}"
        ax.text(0.1, root, others, ha="left", va="center", fontsize=9, style="italic", color="#555555")
    return ax


def _feature_tables(drawable: Drawable, features: Sequence[Any] | None, n_classes: int) -> dict[Name, list[list[str]]]:
    """Return the cells of the table of each feature, by default of up to six: a heading, then values by class."""
    names = list(drawable.columns)
    if features is not None:
        if not isinstance(features, str | int) and not list(features):
            raise InputError("features: name at least one")
        names = drawable.resolve_columns(features)
    elif len(names) > _MAX_FEATURES:
        names = drawable.strongest_columns[:_MAX_FEATURES]
    classes = style.shorten_names(drawable.labels[:n_classes], 9)
    more = ["…"] if len(drawable.labels) > n_classes else []
    tables = {name: [["", *classes, *more]] for name in names}
    for given in iterate_conditionals(drawable.fitted, _MAX_ROWS):
        if given.column in tables:
            is_number = drawable.part_of(given.column)[1].block_kind == "numbers"
            heading = [given.event if is_number else "p(x | class)", *classes, *more]
            row_names = style.shorten_names([name.replace("correlation with", "corr.") for name in given.row_names], 15)
            values = np.asarray(given.values, float).reshape(len(row_names), len(drawable.labels))[:, :n_classes]
            rows = zip(row_names, values, strict=True)
            tables[given.column] = [heading, *([name, *map(_format_number, row), *more] for name, row in rows)]
    return tables


def _draw_arrow(ax: Any, end: tuple[float, float], start: tuple[float, float], kind: str) -> None:
    how = {"arrowstyle": kind, "color": style.DARK, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=how, zorder=1)


def _draw_node(ax: Any, x: float, y: float, name: str, fill: str) -> None:
    box = {"boxstyle": "round,pad=0.5,rounding_size=1.0", "facecolor": fill, "edgecolor": style.DARK, "linewidth": 1.2}
    ax.text(x, y, name, ha="center", va="center", fontsize=10, bbox=box, zorder=3)


def _class_rows(drawable: Drawable, n_classes: int) -> list[list[str]]:
    names, p = style.shorten_names(drawable.labels[:n_classes], 16), drawable.class_proportions
    rows = [["", "p(class)"], *([name, _format_number(v)] for name, v in zip(names, p, strict=False))]
    more = len(drawable.labels) - n_classes
    return [*rows, [f"{more} more", _format_number(p[n_classes:].sum())]] if more else rows


def _format_number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"


def _draw_cells(ax: Any, rows: list[list[str]], place: tuple[float, float, float, float]) -> None:
    """Draw a table of text; ``place`` is left, bottom, width and height in the units of the axes."""
    from matplotlib.transforms import Bbox

    wide, high = ax.get_xlim()[1], ax.get_ylim()[1]
    box = Bbox.from_bounds(place[0] / wide, place[1] / high, place[2] / wide, place[3] / high)
    widths = [1.7, *[1.0] * (len(rows[0]) - 1)]
    table = ax.table(cellText=rows, bbox=box, cellLoc="right", edges="horizontal", colWidths=widths)
    table.auto_set_font_size(False)
    table.set_fontsize(7.5)
    for (row, column), cell in table.get_celld().items():
        cell.set(edgecolor=style.LIGHT, linewidth=0.6)
        cell.PAD = 0.04
        if column == 0:
            cell.set_text_props(ha="left")
            cell._loc = "left"
        if row == 0:
            cell.get_text().set_color("#555555")
