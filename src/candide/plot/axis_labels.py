"""Lettering: names that fit where they stand, and that stay apart when they are cut.

>>> shorten("a very long name of a class", 12)
'a very long…'
>>> shorten_names(["price of a cup of tea", "price of a cup of rum", "milk"], 12)
['price…f tea', 'price…f rum', 'milk']
>>> wrap_name("the share of all who answered that they were content", 30)
'the share of all who answered\\nthat they were content'
"""

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from candide import formatting

_CHARACTER_WIDTH = 0.0083  # inches that a letter takes along its line, a point of its size
_LINE_HEIGHT = 0.0166  # and across
_FONT_SIZES = (10.0, 8.0, 6.5)  # points of letters: the largest that has room


def shorten(text: object, max_length: int = 24) -> str:
    """Text that fits a legend or a tick."""
    text = _printable(text)
    return text if len(text) <= max_length else text[: max_length - 1].rstrip() + "…"


def shorten_names(names: Sequence[object], max_length: int = 24) -> list[str]:
    """Names that stand together: where their beginnings are the same they are cut in the middle, at last numbered."""
    plain = [_printable(name) for name in names]
    half = (max_length - 1) // 2
    cuts = (
        lambda i: shorten(plain[i], max_length),
        lambda i: plain[i][: max_length - 1 - half].rstrip() + "…" + plain[i][-half:].lstrip().lstrip("\\"),
        lambda i: f"{shorten(plain[i], max_length - 5)} {i + 1}",
    )
    shown = [cuts[0](i) for i in range(len(plain))]
    for cut in cuts[1:]:
        often = Counter(shown)
        shown = [cut(i) if often[text] > 1 and len(plain[i]) > max_length else text for i, text in enumerate(shown)]
    return shown


def _printable(text: object) -> str:
    text = formatting.make_printable(str(text))  # letters that are none would break a file of pictures
    text = "\n".join(" ".join(line.split()) for line in text.splitlines())
    return re.sub(r"(?<!\\)\$", r"\\$", text)  # once, however often it is passed through


def column_title(name: object, max_length: int = 60) -> str:
    """The name of a column, or of one that has only a number."""
    return shorten(f"feature {name}" if isinstance(name, int) else name, max_length)


def wrap_name(name: object, width: int) -> str:
    """The name of an axis, on two lines where it is long."""
    text = column_title(name, 2 * width - 4)
    return text if len(text) <= width or "\n" in text else "\n".join(textwrap.wrap(text, width)[:2])


def label_ticks(ax: Any, axis: str, names: Sequence[object], max_length: int = 18) -> None:
    """A name at each whole number of an axis: smaller or leaning where there is little room, and of very many some."""
    shown, at = shorten_names(names, max_length), np.arange(len(names))
    room = _axis_inches(ax, axis) / max(len(shown), 1)
    wide = max((len(text) for text in shown), default=0) + 1
    flat = axis == "y" or wide * _CHARACTER_WIDTH * _FONT_SIZES[0] <= room
    size = next((s for s in _FONT_SIZES if _LINE_HEIGHT * s <= room), _FONT_SIZES[-1])
    step = max(1, int(np.ceil(_LINE_HEIGHT * _FONT_SIZES[-1] / room - 1e-9)))
    set_ticks = ax.set_xticks if axis == "x" else ax.set_yticks
    set_ticks(at[::step], shown[::step], fontsize=None if size == _FONT_SIZES[0] else size)
    if not flat:
        ax.tick_params(axis="x", rotation=45 if size == _FONT_SIZES[0] else 90)
        for text in ax.get_xticklabels() if size == _FONT_SIZES[0] else ():
            text.set(ha="right", rotation_mode="anchor")


def _axis_inches(ax: Any, axis: str) -> float:
    """About how long an axis is."""
    wide, high = ax.figure.get_size_inches()
    place = ax.get_position()
    return float(place.width * wide if axis == "x" else place.height * high)
