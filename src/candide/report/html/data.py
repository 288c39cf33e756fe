"""Data for a page's script: what voices say, in few letters, strongest first and no more than there is room for.

>>> script_json({"a": "</script><b>"})
'{"a":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e"}'
"""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.report.summary.page import PageSummary, VoiceSummary

_HIDDEN = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_LONG = 60  # letters of a level
_FEW = 8  # numbers of a list that is no trouble as text
_NAMES = ("NaN", "Infinity", "-Infinity")  # numbers that JSON lacks
_FAR = 99.0  # nats beyond which what is said is drawn alike


def script_json(value: Any) -> str:
    """JSON that can stand in a script of a page: nothing in it ends the script."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter, code in _HIDDEN.items():
        text = text.replace(letter, code)
    return text


def packed(scorer: str, parameters: Any) -> str:
    """A script and its parameters in few letters: deflated, and five letters for four bytes that mean nothing in HTML.

    Numbers lie apart from the names, one after another or, if that packs better, all first bytes of them before all
    second ones. Before the letters stand the sizes, deflated, of the script and of the names, and how many bytes of a
    number lie apart.

    >>> text = packed("let x = 1;", {"a": [0.5] * 9})
    >>> *sizes, letters = text.split(" ")
    >>> raw = zlib.decompress(base64.b85decode(letters.translate(str.maketrans(",.:", "<>&")))[: int(sizes[0])])
    >>> raw[:28], len(raw), sizes[1:]
    (b'let x = 1;{"a":{"$":[0,9]}}\\x00', 99, ['10', '17', '1'])
    """
    lists: list[NDArray] = []
    names = script_json(_apart(parameters, lists)).encode()
    numbers, script = np.concatenate([np.empty(0), *lists]).astype("<f8").view(np.uint8), scorer.encode()
    ways = {apart: numbers.reshape(-1, apart).T.tobytes() for apart in (8, 1)}
    apart, raw = min(
        ((apart, zlib.compress(script + names + way, 9)) for apart, way in ways.items()), key=lambda one: len(one[1])
    )
    letters = base64.b85encode(raw + bytes(-len(raw) % 4)).decode().translate(str.maketrans("<>&", ",.:"))
    return f"{len(raw)} {len(script)} {len(names)} {apart} {letters}"


def _apart(value: Any, lists: list[NDArray]) -> Any:
    """The same with long lists of numbers put into others, and in their place where they start there and end."""
    if isinstance(value, dict):  # what is typed by people stays as they typed it
        return {key: one if key in ("levels", "classes") else _apart(one, lists) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) < _FEW or not all(isinstance(one, float | int) or one in _NAMES for one in value):
        return [_apart(one, lists) for one in value]
    if not any(isinstance(one, float) for one in value):  # whole numbers
        return value
    start = sum(map(len, lists))
    lists.append(np.array(value, float))
    return {"$": [start, start + len(value)]}


def confusions(page: PageSummary, room: int) -> tuple[list[int | float], int]:
    """True class, class given and rows of each confusion, most rows first, as far as the room goes; how many more."""
    if page.verdict is None:
        return [], 0
    wrong = np.array(page.verdict.scores.confusion)
    np.fill_diagonal(wrong, 0.0)
    true, given = np.nonzero(wrong)
    order = np.argsort(-wrong[true, given], kind="stable").tolist()
    out, left = list[int | float](), 0
    for at in order:
        one = [int(true[at]), int(given[at]), _short(wrong[true[at], given[at]])]
        room -= len(script_json(one))
        left += room < 0
        out += one if room >= 0 else []
    return out, left


def listed(some: Sequence[VoiceSummary]) -> list[Any]:
    """What a list shows of voices: title, label, strength and the sentence."""
    return [[one.title, one.label, float(f"{one.strength or 0.0:.3g}"), one.sentence] for one in some]


def case(page: PageSummary) -> dict[str, Any]:
    """What a page needs to show a case: voices by their names, strongest first, class shares, and a typical row."""
    alone = [one for one in page.voices if len(one.columns) == 1]
    whole = {
        str(one.columns[0]) for one in alone if one.at and one.shape == "steps" and all(v == int(v) for v in one.at)
    }
    typical = {str(one.columns[0]): one.typical for one in alone if one.typical is not None}
    rounded = {name: round(v) if name in whole else _short(v) for name, v in typical.items() if isinstance(v, float)}
    names = [[one.title, *(map(str, one.columns) if len(one.columns) > 1 else ())] for one in page.voices]
    by = {} if page.policy is None else {"policy": page.policy}
    totals = {str(one.columns[0]): _total(page, one) for one in alone if one.n_terms > 1 and one.said}
    return {
        **by,
        "totals": totals,
        "titles": names,
        "shares": page.shares,
        "whole": sorted(whole),
        "typical": typical | rounded,
    }


def _total(page: PageSummary, one: VoiceSummary) -> dict[str, Any]:
    """The total effect of a column by its values: hundredths of a nat of each level, step or point of a curve."""
    said = [_wholes(values, 100) for values in (one.said[1:] if len(page.shares) == 2 else one.said)]
    return {"s": one.shape, "v": said, **({"x": list(map(_short, one.at))} if one.at else {})}


def voices(page: PageSummary, room: int) -> tuple[list[Any], int]:
    """What the strongest voices say, as far as the room goes in bytes, and how many are left out; None of the weaker.

    A voice that is too large leaves room for smaller ones behind it.
    """
    out, left = list[Any](), 0
    for one in page.voices:
        least = 2 * sum(
            map(len, one.said)
        )  # a letter and a comma each: what cannot have room is not written out to see
        found = None if least > 2 * room else _voice(page, one)
        size = least if found is None else len(script_json(found).encode())
        if one.shape and size > room:
            found, left = None, left + 1
        elif found is not None:
            room -= size
        out.append(found)
    return out, left


def _voice(page: PageSummary, one: VoiceSummary) -> dict[str, Any] | None:
    """A voice by its shape; None where there is nothing to draw."""
    if not one.shape:
        return None
    known: dict[str, Any] = {"s": one.shape}
    if one.terms:
        known["t"] = [[[term[:_LONG], _whole(odds, 100)] for term, odds in some] for some in one.terms]
        return known
    known["v"] = [
        _wholes(said, 100) for said in (one.said[1:] if len(page.shares) == 2 else one.said)
    ]  # one tells both
    if one.at:
        known["x"] = list(map(_short, one.at))
    else:
        known["n"] = [[wording.shortened(name, _LONG) for name in names] for names in one.names]
        known |= {"o": _wholes(one.often, 1e4)} if one.often else {}
    if one.bars[0]:
        known["b"] = [_short(one.bars[0][0]), _short(one.bars[0][-1]), _wholes(one.bars[1], 1e4)]
    return known


def _short(value: float) -> float:
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _wholes(values: Sequence[float], times: float) -> list[int]:
    near = np.nan_to_num(np.clip(np.array(values), -_FAR, _FAR))
    return np.rint(near * times).astype(int).tolist()


def _whole(value: float, times: float) -> int:
    return _wholes([value], times)[0]
