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

from candide import formatting
from candide.report.summary.page import PageSummary, TermSummary

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_MAX_LEVEL_LENGTH = 60  # letters of a level
_MIN_PACKED_LENGTH = 8  # numbers of a list that is no trouble as text
_NON_FINITE_NAMES = ("NaN", "Infinity", "-Infinity")  # numbers that JSON lacks
_MAX_LOG_ODDS = 99.0  # nats beyond which what is said is drawn alike


def script_json(value: Any) -> str:
    """JSON that can stand in a script of a page: nothing in it ends the script."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter, code in _ESCAPES.items():
        text = text.replace(letter, code)
    return text


def pack_script(scorer: str, parameters: Any) -> str:
    """A script and its parameters in few letters: deflated, and five letters for four bytes that mean nothing in HTML.

    Numbers lie apart from the names, one after another or, if that packs better, all first bytes of them before all
    second ones. Before the letters stand the sizes, deflated, of the script and of the names, and how many bytes of a
    number lie apart.

    >>> text = pack_script("let x = 1;", {"a": [0.5] * 9})
    >>> *sizes, letters = text.split(" ")
    >>> raw = zlib.decompress(base64.b85decode(letters.translate(str.maketrans(",.:", "<>&")))[: int(sizes[0])])
    >>> raw[:28], len(raw), sizes[1:]
    (b'let x = 1;{"a":{"$":[0,9]}}\\x00', 99, ['10', '17', '1'])
    """
    lists: list[NDArray] = []
    names = script_json(_extract_numbers(parameters, lists)).encode()
    numbers, script = np.concatenate([np.empty(0), *lists]).astype("<f8").view(np.uint8), scorer.encode()
    ways = {apart: numbers.reshape(-1, apart).T.tobytes() for apart in (8, 1)}
    apart, raw = min(
        ((apart, zlib.compress(script + names + way, 9)) for apart, way in ways.items()), key=lambda one: len(one[1])
    )
    letters = base64.b85encode(raw + bytes(-len(raw) % 4)).decode().translate(str.maketrans("<>&", ",.:"))
    return f"{len(raw)} {len(script)} {len(names)} {apart} {letters}"


def _extract_numbers(value: Any, lists: list[NDArray]) -> Any:
    """The same with long lists of numbers put into others, and in their place where they start there and end."""
    if isinstance(value, dict):  # what is typed by people stays as they typed it
        return {
            key: one if key in ("levels", "classes") else _extract_numbers(one, lists) for key, one in value.items()
        }
    if not isinstance(value, list):
        return value
    if len(value) < _MIN_PACKED_LENGTH or not all(
        isinstance(one, float | int) or one in _NON_FINITE_NAMES for one in value
    ):
        return [_extract_numbers(one, lists) for one in value]
    if not any(isinstance(one, float) for one in value):  # whole numbers
        return value
    start = sum(map(len, lists))
    lists.append(np.array(value, float))
    return {"$": [start, start + len(value)]}


def confusion_data(page: PageSummary, max_bytes: int) -> tuple[list[int | float], int]:
    """True class, class given and rows of each confusion, most rows first, as far as the room goes; how many more."""
    if page.assessment is None:
        return [], 0
    wrong = np.array(page.assessment.scores.confusion)
    np.fill_diagonal(wrong, 0.0)
    true, given = np.nonzero(wrong)
    order = np.argsort(-wrong[true, given], kind="stable").tolist()
    out, left = list[int | float](), 0
    for at in order:
        one = [int(true[at]), int(given[at]), _round_number(wrong[true[at], given[at]])]
        max_bytes -= len(script_json(one))
        left += max_bytes < 0
        out += one if max_bytes >= 0 else []
    return out, left


def term_rows(terms: Sequence[TermSummary]) -> list[Any]:
    """What a list shows of voices: title, label, strength and the sentence."""
    return [[one.title, one.label, float(f"{one.importance or 0.0:.3g}"), one.sentence] for one in terms]


def case_data(page: PageSummary) -> dict[str, Any]:
    """What a page needs to show a case: voices by their names, strongest first, class shares, and a typical row."""
    alone = [one for one in page.terms if len(one.columns) == 1]
    whole = {
        str(one.columns[0])
        for one in alone
        if one.positions and one.shape == "steps" and all(v == int(v) for v in one.positions)
    }
    typical = {str(one.columns[0]): one.typical_value for one in alone if one.typical_value is not None}
    rounded = {
        name: round(v) if name in whole else _round_number(v) for name, v in typical.items() if isinstance(v, float)
    }
    names = [[one.title, *(map(str, one.columns) if len(one.columns) > 1 else ())] for one in page.terms]
    by = {} if page.policy is None else {"policy": page.policy}
    totals = {str(one.columns[0]): _effect_data(page, one) for one in alone if one.n_terms > 1 and one.contributions}
    return {
        **by,
        "totals": totals,
        "titles": names,
        "shares": page.class_proportions,
        "whole": sorted(whole),
        "typical": typical | rounded,
    }


def _effect_data(page: PageSummary, one: TermSummary) -> dict[str, Any]:
    """The total effect of a column by its values: hundredths of a nat of each level, step or point of a curve."""
    said = [
        _scaled_integers(values, 100)
        for values in (one.contributions[1:] if len(page.class_proportions) == 2 else one.contributions)
    ]
    return {"s": one.shape, "v": said, **({"x": list(map(_round_number, one.positions))} if one.positions else {})}


def term_data(page: PageSummary, max_bytes: int) -> tuple[list[Any], int]:
    """What the strongest voices say, as far as the room goes in bytes, and how many are left out; None of the weaker.

    A voice that is too large leaves room for smaller ones behind it.
    """
    out, left = list[Any](), 0
    for one in page.terms:
        least = 2 * sum(
            map(len, one.contributions)
        )  # a letter and a comma each: what cannot have room is not written out to see
        found = None if least > 2 * max_bytes else _one_term_data(page, one)
        size = least if found is None else len(script_json(found).encode())
        if one.shape and size > max_bytes:
            found, left = None, left + 1
        elif found is not None:
            max_bytes -= size
        out.append(found)
    return out, left


def _one_term_data(page: PageSummary, term_summary: TermSummary) -> dict[str, Any] | None:
    """A voice by its shape; None where there is nothing to draw."""
    if not term_summary.shape:
        return None
    known: dict[str, Any] = {"s": term_summary.shape}
    if term_summary.top_words:
        known["t"] = [
            [[term[:_MAX_LEVEL_LENGTH], _scaled_integer(odds, 100)] for term, odds in some]
            for some in term_summary.top_words
        ]
        return known
    known["v"] = [
        _scaled_integers(said, 100)
        for said in (term_summary.contributions[1:] if len(page.class_proportions) == 2 else term_summary.contributions)
    ]  # one tells both
    if term_summary.positions:
        known["x"] = list(map(_round_number, term_summary.positions))
    else:
        known["n"] = [[formatting.truncate(name, _MAX_LEVEL_LENGTH) for name in names] for names in term_summary.names]
        known |= {"o": _scaled_integers(term_summary.frequencies, 1e4)} if term_summary.frequencies else {}
    if term_summary.histogram[0]:
        known["b"] = [
            _round_number(term_summary.histogram[0][0]),
            _round_number(term_summary.histogram[0][-1]),
            _scaled_integers(term_summary.histogram[1], 1e4),
        ]
    return known


def _round_number(value: float) -> float:
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _scaled_integers(values: Sequence[float], factor: float) -> list[int]:
    near = np.nan_to_num(np.clip(np.array(values), -_MAX_LOG_ODDS, _MAX_LOG_ODDS))
    return np.rint(near * factor).astype(int).tolist()


def _scaled_integer(value: float, times: float) -> int:
    return _scaled_integers([value], times)[0]
