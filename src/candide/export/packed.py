"""Packed: parameters as JSON, each long list of numbers as the base64 of its doubles where that is shorter.

Doubles in base64 take eleven letters each, as decimals up to twenty; either way not a bit is lost. The text can stand
in a script of a web page: it has no ``<``, ``>`` or ``&``, and nothing beyond ASCII.

>>> as_json({"x": [1.0, 0.5], "y": [i / 3 for i in range(8)]})[:40]
'{"x":[1,0.5],"y":"AAAAAAAAAABVVVVVVVXVP1'
>>> as_json({"name": "</script>"})
'{"name":"\\\\u003c/script\\\\u003e"}'
"""

import base64
import json
import struct
from typing import Any

_LONG = 8  # numbers from which on a list may be packed: shorter ones are read by people
_VALUES = ("classes", "levels")  # lists of values, which a scorer looks up: numbers among them stay as they are written
_WHOLE = 1 << 53  # up to here a whole number is the same in any spelling


def as_json(parameters: Any) -> str:
    """Parameters as text: compact, and safe within a script of a page."""
    text = json.dumps(_packed(parameters), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _packed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: [_packed(each) for each in one] if key in _VALUES else _packed(one) for key, one in value.items()}
    if isinstance(value, list):
        plain = [_packed(one) for one in value]
        return _shorter(value, plain) if any(isinstance(one, float) for one in value) else plain
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE and str(value) != "-0.0":
        return int(value)
    return value


def _shorter(values: list[Any], plain: list[Any]) -> Any:
    """A list of numbers, some perhaps as names of what is not finite, in the shorter of both spellings."""
    if len(values) < _LONG or not all(isinstance(one, float | int) or one in _NAMES for one in values):
        return plain
    doubles = struct.pack(f"<{len(values)}d", *map(float, values))
    packed = base64.b64encode(doubles).decode()
    return packed if len(packed) < len(json.dumps(plain, separators=(",", ":"))) else plain


_NAMES = {"NaN", "Infinity", "-Infinity"}
