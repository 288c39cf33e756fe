"""Many classes: a row a class, shaded by how probable each value is in it. Colours tell few classes apart, places many.

>>> from candide.plot import style
>>> ax = style.axes()
>>> levels(ax, ["a", "b"], ["low", "high"], np.array([[0.2, 0.7], [0.8, 0.3]]), "p(level | class)")
>>> ax.images[0].get_array().tolist()
[[0.2, 0.8], [0.7, 0.3]]
>>> ax.figure.clear()
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.plot import lettering

_ROW = 0.13  # inches of a class
_SHADES = "Blues"


def height(n_classes: int) -> float:
    """Inches that such a picture should have."""
    return float(np.clip(1.0 + _ROW * n_classes, 3.2, 7.0))


def levels(ax: Any, labels: Sequence[Any], names: Sequence[str], p: NDArray, said: str) -> None:
    """Levels or bins across: ``p`` is (level, class)."""
    image = ax.imshow(p.T, cmap=_SHADES, vmin=0.0, aspect="auto", interpolation="nearest")
    lettering.name_ticks(ax, "x", names)
    _finish(ax, image, labels, said)


def numbers(ax: Any, labels: Sequence[Any], x: NDArray, density: NDArray, top: float, said: str) -> None:
    """Numbers across: ``density`` is (number, class), and all of ``top`` and above is the darkest."""
    places = np.arange(len(labels))
    image = ax.pcolormesh(x, places, density.T, cmap=_SHADES, vmin=0.0, vmax=top, shading="nearest", rasterized=True)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(len(labels) - 0.5, -0.5)
    _finish(ax, image, labels, said)


def _finish(ax: Any, image: Any, labels: Sequence[Any], said: str) -> None:
    lettering.name_ticks(ax, "y", labels)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.02)
    bar.set_label(said)
    bar.outline.set_visible(False)
