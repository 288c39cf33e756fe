"""Text on axes: names that fit, that still differ after they are cut, and fonts for characters that the default lacks.

>>> shorten("a very long name of a class", 12)
'a very long…'
>>> shorten_names(["price of a cup of tea", "price of a cup of rum", "milk"], 12)
['price…f tea', 'price…f rum', 'milk']
>>> wrap_name("the share of all who answered that they were content", 30)
'the share of all who answered\\nthat they were content'
"""

import io
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from candide import formatting
from candide.data.notes import Note, issue_warnings

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


_PLACEHOLDER_FONT = "Last Resort"  # a font of boxes alone, which has every letter
_MISSING = re.compile(r"Glyph (\d+) .*missing from")


def render_figure(figure: Any, **save_options: Any) -> bytes:
    """A figure as the bytes of a file, in letters of other fonts where its own has none; what no font has is told."""
    image, lacking = _save_figure(figure, save_options)
    if lacking and (found := find_fonts(lacking)):
        _add_fallback_fonts(figure, found, lacking)
        image, lacking = _save_figure(figure, save_options)
    if lacking:
        what = f"no font of this machine has the letters {''.join(sorted(lacking)[:8])}: boxes stand for them"
        remedy = "install one, such as Noto Sans CJK for Chinese, Japanese and Korean"
        issue_warnings([Note("font-missing", what, remedy=remedy)], stacklevel=3)
    return image


def _save_figure(figure: Any, how: dict[str, Any]) -> tuple[bytes, set[str]]:
    """The file, and the letters that are boxes in it."""
    out, lacking = io.BytesIO(), set()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure.savefig(out, **how)
    for one in told:
        if glyph := _MISSING.match(str(one.message)):
            lacking.add(chr(int(glyph[1])))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    return out.getvalue(), lacking


def find_fonts(characters: set[str]) -> list[str]:
    """Names of fonts that have the letters between them, of those that have any the one with the most first."""
    from matplotlib import font_manager

    left, found = {ord(letter) for letter in characters}, []
    known = {
        one.name: one.fname for one in font_manager.fontManager.ttflist if not one.name.startswith(_PLACEHOLDER_FONT)
    }
    has = {name: left & _font_characters(path) for name, path in sorted(known.items())}
    while left and has:
        best = max(has, key=lambda name: len(has[name] & left))
        if not has[best] & left:
            break
        found.append(best)
        left -= has.pop(best)
    return found


def _font_characters(path: str) -> set[int]:
    from matplotlib import font_manager

    try:
        return set(font_manager.get_font(path).get_charmap())
    except (OSError, RuntimeError):  # a file that is no font any more
        return set()


def _add_fallback_fonts(figure: Any, fonts: list[str], letters: set[str]) -> None:
    """Let the texts that have such letters fall back on fonts."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if letters & set(text.get_text()):
            text.set_fontfamily([*text.get_fontfamily(), *fonts])
