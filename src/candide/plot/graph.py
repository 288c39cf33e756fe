"""The graphical model: the class, an arrow to every feature, and the table of each given the class.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> [soil] = node_tables(Drawable.from_model(FittedModel(garden())), ["soil"])
>>> soil.row_names, soil.values.round(2)[0].tolist()
(['chalk', 'sand', 'clay'], [0.54, 0.3, 0.4])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.table import Name
from candide.errors import InputError
from candide.explain.columns import iterate_conditionals
from candide.plot import axis_text, style
from candide.plot.data import strongest_columns
from candide.plot.drawable import Drawable

_MOST_FEATURES = 6
_MOST_CLASSES = 4
_MOST_ROWS = 6
_LINE_HEIGHT = 0.21  # inches of a line of a table
_NODE_HEIGHT = 0.4  # and of a node
_ARROW_HEIGHT = 0.95  # and between the class and the features


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The table of one node: names of its rows, and a number for every (row, class)."""

    name: Name
    title: str  # of its values
    row_names: list[str]
    values: NDArray


def node_tables(drawable: Drawable, names: Sequence[Name]) -> list[NodeTable]:
    """Features given the class."""
    found = {}
    for one in iterate_conditionals(drawable.fitted, _MOST_ROWS):
        if one.column in names:
            values = np.asarray(one.values, float).reshape(len(one.row_names), len(drawable.labels))
            title = one.event if drawable.part_of(one.column)[1].block_kind == "numbers" else "p(x | class)"
            found[one.column] = NodeTable(one.column, title, one.row_names, values)
    return [found.get(name) or NodeTable(name, "", [], np.empty((0, len(drawable.labels)))) for name in names]


def network(model: Any, *, features: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """The class above, the features below, an arrow from the class to each, and their conditional tables.

    Neighbours that are modelled together, by a covariance matrix, are joined by a line.

    Without ``features`` it draws all of up to six, else the six that tell most of the class, and says how many more
    there are.

    >>> from candide.demo import garden
    >>> from candide.model.fitted import FittedModel
    >>> model = FittedModel(garden())
    >>> ax = network(model, features=["soil", "scented"])
    >>> "soil" in {text.get_text() for text in ax.texts}
    True
    >>> ax.figure.clear()
    """
    drawable = Drawable.from_model(model)
    tables = node_tables(drawable, _select_features(drawable, features))
    shown = min(len(drawable.labels), _MOST_CLASSES)
    more = len(drawable.labels) - shown
    one = 1.35 + 0.6 * (shown + bool(more))  # inches of a feature
    wide = max(one * len(tables), one + 3.0)
    top = max(_NODE_HEIGHT, _LINE_HEIGHT * (shown + bool(more) + 1))
    low = _LINE_HEIGHT * (1 + max(len(box.row_names) for box in tables))
    high = low + _NODE_HEIGHT + _ARROW_HEIGHT + _NODE_HEIGHT / 2 + top + 0.1
    ax = style.get_axes(ax, size=(wide, high + 0.2))
    ax.set(xlim=(0, wide), ylim=(0, high))
    ax.set_axis_off()
    level, root = low + _NODE_HEIGHT / 2 + 0.08, low + _NODE_HEIGHT + _ARROW_HEIGHT + _NODE_HEIGHT / 2
    places = (np.arange(len(tables)) + 0.5) * wide / len(tables)
    for x in places:
        look = {"arrowstyle": "-|>", "color": style.DARK, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (x, level + _NODE_HEIGHT / 2), (wide / 2, root), arrowprops=look, zorder=1)
    _draw_links(ax, drawable, [box.name for box in tables], places, level)
    target = getattr(drawable.fitted, "target", None) or "class"
    _draw_node(ax, wide / 2, root, axis_text.shorten(target, 16), "#ffffff")
    beside = wide / 2 + 0.45 + 0.04 * len(axis_text.shorten(target, 16))
    _draw_class_table(ax, drawable, shown, (beside, root + 0.03, 1.9, top))
    names = axis_text.shorten_names([axis_text.column_title(box.name) for box in tables], 18)
    for x, name, box in zip(places, names, tables, strict=True):
        _draw_node(ax, x, level, name, "#eaf2f8")
        _draw_node_table(ax, box, drawable.labels[:shown], more, x - one / 2 + 0.1, one - 0.2, low)
    if left := len(drawable.columns) - len(tables):
        others = f"and {formatting.format_count(left, 'more feature')}"
        ax.text(0.1, root, others, ha="left", va="center", fontsize=9, style="italic", color="#555555")
    return ax


def _select_features(drawable: Drawable, features: Sequence[Any] | None) -> list[Name]:
    if features is not None:
        chosen = [features] if isinstance(features, str | int) else list(features)
        if not chosen:
            raise InputError("features: name at least one")
        return list(dict.fromkeys(drawable.resolve_column(f) for f in chosen))
    if len(drawable.columns) <= _MOST_FEATURES:
        return list(drawable.columns)
    return strongest_columns(drawable)[:_MOST_FEATURES]


def _draw_links(ax: Any, drawable: Drawable, names: list[Name], places: NDArray, level: float) -> None:
    """A line between neighbours that are modelled together: given the class they still depend on each other."""
    for a, b in pairwise(range(len(names))):
        i, j = (drawable.column_places[names[k]][0] for k in (a, b))
        params = drawable.fitted.model.distributions[i].parameters()
        if i == j and any(p.ndim == 3 for p in params.values()):  # correlations
            look = {"arrowstyle": "-", "color": style.DARK, "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", (places[b], level), (places[a], level), arrowprops=look, zorder=1)


def _draw_node(ax: Any, x: float, y: float, name: str, fill: str) -> None:
    box = {"boxstyle": "round,pad=0.5,rounding_size=1.0", "facecolor": fill, "edgecolor": style.DARK, "linewidth": 1.2}
    ax.text(x, y, name, ha="center", va="center", fontsize=10, bbox=box, zorder=3)


def _draw_class_table(ax: Any, drawable: Drawable, shown: int, place: tuple[float, float, float, float]) -> None:
    rows = [["", "p(class)"]]
    names = axis_text.shorten_names(drawable.labels[:shown], 16)
    rows += [[name, _format_number(p)] for name, p in zip(names, drawable.class_proportions, strict=False)]
    if more := len(drawable.labels) - shown:
        rows.append([f"{more} more", _format_number(drawable.class_proportions[shown:].sum())])
    _draw_cells(ax, rows, place)


def _draw_node_table(
    ax: Any, box: NodeTable, classes: Sequence[Any], more: int, x: float, width: float, top: float
) -> None:
    rows = [[box.title, *axis_text.shorten_names(classes, 9), *(["…"] if more else [])]]
    names = axis_text.shorten_names([name.replace("correlation with", "corr.") for name in box.row_names], 15)
    for name, values in zip(names, box.values, strict=True):
        rows.append(
            [
                name,
                *map(_format_number, values[: len(classes)]),
                *(["…"] if more else []),
            ]
        )
    height = _LINE_HEIGHT * len(rows)
    _draw_cells(ax, rows, (x, top - height, width, height))


def _format_number(value: float) -> str:
    """A number in few signs."""
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _draw_cells(ax: Any, rows: list[list[str]], place: tuple[float, float, float, float]) -> None:
    """A table of text; ``place`` is left, bottom, width and height in the units of the axes."""
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
