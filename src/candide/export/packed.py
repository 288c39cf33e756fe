"""Packed: parameters as JSON, each long list of numbers as the base64 of its doubles where that is shorter.

Doubles in base64 take eleven letters each, as decimals up to twenty; either way not a bit is lost. The text can stand
in a script of a web page: it has no ``<``, ``>`` or ``&``, and nothing beyond ASCII.

>>> pack_json({"x": [1.0, 0.5], "y": [i / 3 for i in range(8)]})[:40]
'{"x":[1,0.5],"y":"AAAAAAAAAABVVVVVVVXVP1'
>>> pack_json({"name": "</script>"})
'{"name":"\\\\u003c/script\\\\u003e"}'
"""

import base64
import json
import struct
from typing import Any

_MIN_PACKED_LENGTH = 8  # numbers from which on a list may be packed: shorter ones are read by people
_UNPACKED_KEYS = (
    "classes",
    "levels",
)  # lists of values, which a scorer looks up: numbers among them stay as they are written
_MAX_EXACT_INTEGER = 1 << 53  # up to here a whole number is the same in any spelling


def pack_json(parameters: Any) -> str:
    """Parameters as text: compact, and safe within a script of a page."""
    text = json.dumps(_pack(parameters), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _pack(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: [_pack(each) for each in one] if key in _UNPACKED_KEYS else _pack(one) for key, one in value.items()
        }
    if isinstance(value, list):
        plain = [_pack(one) for one in value]
        return _shorter_encoding(value, plain) if any(isinstance(one, float) for one in value) else plain
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_EXACT_INTEGER and str(value) != "-0.0":
        return int(value)
    return value


def _shorter_encoding(values: list[Any], plain: list[Any]) -> Any:
    """A list of numbers, some perhaps as names of what is not finite, in the shorter of both spellings."""
    if len(values) < _MIN_PACKED_LENGTH or not all(
        isinstance(one, float | int) or one in _NON_FINITE_NAMES for one in values
    ):
        return plain
    doubles = struct.pack(f"<{len(values)}d", *map(float, values))
    packed = base64.b64encode(doubles).decode()
    return packed if len(packed) < len(json.dumps(plain, separators=(",", ":"))) else plain


_NON_FINITE_NAMES = {"NaN", "Infinity", "-Infinity"}
