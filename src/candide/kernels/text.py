"""The text kernels, compiled where they could be built: selected as the others are, by ``CANDIDE_KERNELS``.

The tables of characters come from Python itself, so that a compiled word is a word of ``re`` and a compiled lower
case is that of ``str.lower``, whatever version of Unicode this Python knows.
"""

import importlib
import re
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.kernels import text_reference as reference

_CODE, WORD, SPACE, SPECIAL = 0x1FFFFF, 1 << 24, 1 << 25, 1 << 26  # as in _text.pyx
_N_TABLED = 0x40000  # above it no character has another case, is a word character, or is white space


def _load() -> ModuleType | None:
    if kernels.NAME == "numpy":
        return None
    try:
        return importlib.import_module("candide.kernels._text")
    except ImportError:
        return None


def __getattr__(name: str) -> Any:
    """``compiled`` (None where it is not), ``NAME``, ``Words``, ``unite``, ``sum_cells``: loaded at first use."""
    if name not in ("compiled", "NAME", "Words", "unite", "sum_cells"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    loops = _load()
    chosen = loops or reference
    found: dict[str, Any] = {"compiled": loops, "NAME": "compiled" if loops else "python"}
    found |= {each: getattr(chosen, each) for each in ("Words", "unite", "sum_cells")}
    globals().update(found)
    return found[name]


@cache
def character_table(lowercase: bool) -> NDArray[np.uint32]:
    """Of every character that may have any: its lower case, whether that is a word character, what else it is."""
    codes = np.arange(_N_TABLED, dtype=np.uint32)
    text = codes.tobytes().decode("utf-32-le", "surrogatepass")
    word, info = np.zeros(len(codes), bool), codes.copy()
    for run in re.finditer(r"\w+", text):
        word[run.start() : run.end()] = True
    special = []
    if lowercase:
        cased = [(c, low) for c, low in enumerate(map(str.lower, text)) if low != text[c]]
        special = [c for c, low in cased if len(low) > 1 or f"a{text[c]}".lower() != f"a{low}"]
        for c, low in cased:
            info[c] = ord(low[0])
    info |= word[info] * np.uint32(WORD)
    for run in re.finditer(r"\s+", text):
        info[run.start() : run.end()] |= np.uint32(SPACE)
    info[special] |= np.uint32(SPECIAL)
    return info


@cache
def ascii_fold_table(lowercase: bool) -> NDArray[np.uint8]:
    """Of every byte: its lower case if it is an ASCII word character, 0 if it is another, 1 if it is not ASCII."""
    info = character_table(lowercase)[:128]
    out = np.ones(256, np.uint8)
    out[:128] = np.where(info & WORD, info & _CODE, 0)
    return out
