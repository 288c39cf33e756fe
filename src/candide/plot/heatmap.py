"""Many classes: a row a class, shaded by how probable each value is in it. Colours tell few classes apart, places many.

>>> from candide.plot import style
>>> ax = style.get_axes()
>>> draw_level_heatmap(ax, ["a", "b"], ["low", "high"], np.array([[0.2, 0.7], [0.8, 0.3]]), "p(level | class)")
>>> ax.images[0].get_array().tolist()
[[0.2, 0.8], [0.7, 0.3]]
>>> ax.figure.clear()
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.plot import axis_labels

_ROW_HEIGHT = 0.13  # inches of a class
_COLORMAP = "Blues"


def figure_height(n_classes: int) -> float:
    """Inches that such a picture should have."""
    return float(np.clip(1.0 + _ROW_HEIGHT * n_classes, 3.2, 7.0))


def draw_level_heatmap(ax: Any, labels: Sequence[Any], names: Sequence[str], p: NDArray, colorbar_label: str) -> None:
    """Levels or bins across: ``p`` is (level, class)."""
    image = ax.imshow(p.T, cmap=_COLORMAP, vmin=0.0, aspect="auto", interpolation="nearest")
    axis_labels.label_ticks(ax, "x", names)
    _finish(ax, image, labels, colorbar_label)


def draw_number_heatmap(
    ax: Any, labels: Sequence[Any], x: NDArray, density: NDArray, top: float, colorbar_label: str
) -> None:
    """Numbers across: ``density`` is (number, class), and all of ``top`` and above is the darkest."""
    places = np.arange(len(labels))
    image = ax.pcolormesh(x, places, density.T, cmap=_COLORMAP, vmin=0.0, vmax=top, shading="nearest", rasterized=True)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(len(labels) - 0.5, -0.5)
    _finish(ax, image, labels, colorbar_label)


def _finish(ax: Any, image: Any, labels: Sequence[Any], colorbar_label: str) -> None:
    axis_labels.label_ticks(ax, "y", labels)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label(colorbar_label)
    bar.outline.set_visible(False)
