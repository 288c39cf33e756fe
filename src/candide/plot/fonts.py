"""Fonts for letters that the chosen one lacks, such as Chinese: one is looked for among those of the machine.

>>> from matplotlib.figure import Figure
>>> figure = Figure()
>>> ax = figure.add_subplot(xlabel="length")
>>> render_figure(figure, format="png")[1:4]
b'PNG'
"""

import io
import re
import warnings
from typing import Any

from candide.data.notes import Note, issue_warnings

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
