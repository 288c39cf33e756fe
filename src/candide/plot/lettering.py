"""Lettering: names that fit where they stand, and that stay apart when they are cut.

>>> short("a very long name of a class", 12)
'a very long…'
>>> shorts(["price of a cup of tea", "price of a cup of rum", "milk"], 12)
['price…f tea', 'price…f rum', 'milk']
>>> wrapped("the share of all who answered that they were content", 30)
'the share of all who answered\\nthat they were content'
"""

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from candide import wording

_LETTER = 0.0083  # inches that a letter takes along its line, a point of its size
_LINE = 0.0166  # and across
_SIZES = (10.0, 8.0, 6.5)  # points of letters: the largest that has room


def short(text: object, most: int = 24) -> str:
    """Text that fits a legend or a tick."""
    text = _plain(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def shorts(names: Sequence[object], most: int = 24) -> list[str]:
    """Names that stand together: where their beginnings are the same they are cut in the middle, at last numbered."""
    plain = [_plain(name) for name in names]
    half = (most - 1) // 2
    cuts = (
        lambda i: short(plain[i], most),
        lambda i: plain[i][: most - 1 - half].rstrip() + "…" + plain[i][-half:].lstrip().lstrip("\\"),
        lambda i: f"{short(plain[i], most - 5)} {i + 1}",
    )
    shown = [cuts[0](i) for i in range(len(plain))]
    for cut in cuts[1:]:
        often = Counter(shown)
        shown = [cut(i) if often[text] > 1 and len(plain[i]) > most else text for i, text in enumerate(shown)]
    return shown


def _plain(text: object) -> str:
    text = wording.printable(str(text))  # letters that are none would break a file of pictures
    text = "\n".join(" ".join(line.split()) for line in text.splitlines())
    return re.sub(r"(?<!\\)\$", r"\\$", text)  # once, however often it is passed through


def title(name: object, most: int = 60) -> str:
    """The name of a column, or of one that has only a number."""
    return short(f"feature {name}" if isinstance(name, int) else name, most)


def wrapped(name: object, width: int) -> str:
    """The name of an axis, on two lines where it is long."""
    text = title(name, 2 * width - 4)
    return text if len(text) <= width or "\n" in text else "\n".join(textwrap.wrap(text, width)[:2])


def name_ticks(ax: Any, axis: str, names: Sequence[object], most: int = 18) -> None:
    """A name at each whole number of an axis: smaller or leaning where there is little room, and of very many some."""
    shown, at = shorts(names, most), np.arange(len(names))
    room = _inches(ax, axis) / max(len(shown), 1)
    wide = max((len(text) for text in shown), default=0) + 1
    flat = axis == "y" or wide * _LETTER * _SIZES[0] <= room
    size = next((s for s in _SIZES if _LINE * s <= room), _SIZES[-1])
    step = max(1, int(np.ceil(_LINE * _SIZES[-1] / room - 1e-9)))
    set_ticks = ax.set_xticks if axis == "x" else ax.set_yticks
    set_ticks(at[::step], shown[::step], fontsize=None if size == _SIZES[0] else size)
    if not flat:
        ax.tick_params(axis="x", rotation=45 if size == _SIZES[0] else 90)
        for text in ax.get_xticklabels() if size == _SIZES[0] else ():
            text.set(ha="right", rotation_mode="anchor")


def _inches(ax: Any, axis: str) -> float:
    """About how long an axis is."""
    wide, high = ax.figure.get_size_inches()
    place = ax.get_position()
    return float(place.width * wide if axis == "x" else place.height * high)
