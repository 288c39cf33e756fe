"""Data for the script of a report page: contributions of terms, curves and confusions, as compact numbers.

>>> script_json({"a": "</script><b>"})
'{"a":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e"}'
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from candide import formatting
from candide.report.html import svg
from candide.report.summary.page import PageSummary, TermSummary
from candide.report.summary.scores import CurveSummary

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_MAX_LEVEL_LENGTH = 60  # characters of a level
_MAX_LOG_ODDS = 99.0  # larger contributions are drawn as this
_DRAWN_POINTS, _DATA_POINTS = 100, 40  # points of a curve that is drawn, and of one in the data of a page
CURVES = {  # by the names of their summaries: title and description
    "roc": ("ROC", "true positive rate (up) against false positive rate (across)"),
    "precision_recall": ("Precision and recall", "precision (up) against recall (across)"),
    "lift": ("Lift", "how much more frequent the class is than on average, in the most probable part of the rows"),
    "calibration": ("Calibration", "observed frequency (up) against predicted probability; ideal on the dotted line"),
}


def script_json(value: Any) -> str:
    """Return JSON that can stand in a script of a page: nothing in it ends the script."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, code in _ESCAPES.items():
        text = text.replace(character, code)
    return text


def confusion_data(page: PageSummary, max_bytes: int) -> tuple[list[int | float], int]:
    """Return true class, predicted class and rows of each confusion, most rows first, and how many do not fit."""
    if page.assessment is None:
        return [], 0
    wrong = np.array(page.assessment.scores.confusion)
    np.fill_diagonal(wrong, 0.0)
    true, predicted = np.nonzero(wrong)
    numbers, n_left = list[int | float](), 0
    for i in np.argsort(-wrong[true, predicted], kind="stable").tolist():
        entry = [int(true[i]), int(predicted[i]), _round_number(wrong[true[i], predicted[i]])]
        max_bytes -= len(script_json(entry))
        n_left += max_bytes < 0
        numbers += entry if max_bytes >= 0 else []
    return numbers, n_left


def term_rows(terms: Sequence[TermSummary]) -> list[Any]:
    """Return title, label, importance and sentence of terms, for a list."""
    return [[term.title, term.label, float(f"{term.importance or 0.0:.3g}"), term.sentence] for term in terms]


def whatif_data(page: PageSummary) -> dict[str, Any]:
    """Return the data for scoring a row: terms by importance, class proportions, total effects, a typical row."""
    single = {str(term.columns[0]): term for term in page.terms if len(term.columns) == 1}
    whole = {
        name
        for name, term in single.items()
        if term.positions and term.shape == "steps" and all(v == int(v) for v in term.positions)
    }
    typical = {name: term.typical_value for name, term in single.items() if term.typical_value is not None}
    rounded = {
        name: round(v) if name in whole else _round_number(v) for name, v in typical.items() if isinstance(v, float)
    }
    effects = {n: _contributions(page, term) for n, term in single.items() if term.n_terms > 1 and term.contributions}
    return {
        **({} if page.policy is None else {"policy": page.policy}),
        "totals": effects,
        "titles": [[t.title, *(map(str, t.columns) if len(t.columns) > 1 else ())] for t in page.terms],
        "proportions": page.class_proportions,
        "whole": sorted(whole),
        "typical": typical | rounded,
    }


def term_data(page: PageSummary, max_bytes: int) -> tuple[list[Any], int]:
    """Return the contributions of terms as far as they fit, None for the others, and how many do not fit.

    After a term that is too large, smaller ones may still fit.
    """
    entries, n_left = list[Any](), 0
    for term in page.terms:
        least = 2 * sum(map(len, term.contributions))  # a digit and a comma each
        entry = None if not term.shape or least > 2 * max_bytes else _term_entry(page, term)
        size = least if entry is None else len(script_json(entry).encode())
        if term.shape and size > max_bytes:
            entry, n_left = None, n_left + 1
        elif entry is not None:
            max_bytes -= size
        entries.append(entry)
    return entries, n_left


def _term_entry(page: PageSummary, term: TermSummary) -> dict[str, Any]:
    """Return the contributions of a term: shape (s), values (v), positions (x), names (n), frequencies (o), etc."""
    if term.top_words:
        words = [
            [[word[:_MAX_LEVEL_LENGTH], *_scaled_integers([odds], 100)] for word, odds in of_class]
            for of_class in term.top_words
        ]
        return {"s": term.shape, "t": words}
    entry = _contributions(page, term)
    if not term.positions:
        entry["n"] = [[formatting.truncate(name, _MAX_LEVEL_LENGTH) for name in names] for names in term.names]
        entry |= {"o": _scaled_integers(term.frequencies, 1e4)} if term.frequencies else {}
    edges, bars = term.histogram
    return {**entry, "b": [*map(_round_number, (edges[0], edges[-1])), _scaled_integers(bars, 1e4)]} if edges else entry


def _contributions(page: PageSummary, term: TermSummary) -> dict[str, Any]:
    """Return hundredths of the log-odds at each level, step or point; of two classes one list serves both."""
    classes = term.contributions[1:] if len(page.class_proportions) == 2 else term.contributions
    entry: dict[str, Any] = {"s": term.shape, "v": [_scaled_integers(values, 100) for values in classes]}
    return {**entry, "x": list(map(_round_number, term.positions))} if term.positions else entry


def _round_number(value: float) -> float:
    short = float(f"{value:.5g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _scaled_integers(values: Sequence[float], factor: float) -> list[int]:
    near = np.nan_to_num(np.clip(np.array(values), -_MAX_LOG_ODDS, _MAX_LOG_ODDS))
    return np.rint(near * factor).astype(int).tolist()


def curve_figures(page: PageSummary) -> list[tuple[str, str, Markup]]:
    """Return title, description and chart of each curve of the default class."""
    if page.assessment is None or not page.model.classes:
        return []
    label = page.model.classes[page.default_class].label
    curves = {curve.name: curve for curve in page.assessment.scores.curves if curve.label == label}
    return [
        (title, description, _draw_curve(curves[name], f"{title} of {label}"))
        for name, (title, description) in CURVES.items()
        if name in curves
    ]


def _draw_curve(curve: CurveSummary, label: str) -> Markup:
    at = np.unique(np.linspace(0, len(curve.x) - 1, _DRAWN_POINTS).astype(int))
    x, y = np.array(curve.x)[at], np.array(curve.y)[at]
    if curve.weight is not None:
        return svg.draw_dots(x, y, np.array(curve.weight), label)
    top = max(float(np.nanmax(y, initial=0.0)), 1.0) if curve.name == "lift" else 1.0
    return svg.draw_line(x, y, label, diagonal=curve.name == "roc", top=top)


def curve_data(page: PageSummary, max_bytes: int) -> list[list[Any] | None]:
    """Return the points of the curves of each class, in thousandths, as far as they fit; None for the other classes.

    The default class comes first, then those with the most rows. With two classes the page has all curves already.
    """
    if page.assessment is None or len(page.model.classes) <= 2:
        return []
    scores, by_class = page.assessment.scores, dict[Any, list[Any]]()
    for curve in scores.curves:
        if curve.name in CURVES:
            by_class.setdefault(curve.label, []).append(_curve_points(curve))
    rows = np.array(scores.confusion).sum(axis=1)
    rows[page.default_class] = np.inf
    entries: list[list[Any] | None] = [None] * len(scores.labels)
    for c in np.argsort(-rows, kind="stable").tolist():
        points = by_class.get(scores.labels[c])
        max_bytes -= len(script_json(points))
        if points and max_bytes >= 0:
            entries[c] = points
    return entries


def _curve_points(curve: CurveSummary) -> list[list[int]]:
    at = np.unique(np.linspace(0, len(curve.x) - 1, _DATA_POINTS).astype(int)).tolist()
    finite = [i for i in at if curve.x[i] == curve.x[i] and curve.y[i] == curve.y[i]]
    points = [[round(1000 * values[i]) for i in finite] for values in (curve.x, curve.y)]
    if curve.weight is None:
        return points
    largest = max(curve.weight, default=1.0) or 1.0
    return [*points, [round(100 * curve.weight[i] / largest) for i in finite]]
