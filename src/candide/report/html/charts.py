"""Charts of a report page: small SVG pictures, and the numbers from which its script draws others.

Colours are those of the page's style.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from candide import formatting
from candide.data.blocks import Floats
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
_WIDTH, _HEIGHT, _CURVE_SIZE = 150, 40, 240  # of a thumbnail, and of a curve
_MAX_BARS, _MAX_CELLS = 40, 24  # of a bar chart, and along either side of a heat map
_COLOUR_STEPS = 6  # shades of either colour

Rectangle = tuple[float, float, float, float]  # left, top, width, height


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
    return [[term.title, term.label, float(f"{term.importance or 0.0:.3g}"), term.sentence] for term in terms]


def whatif_data(page: PageSummary) -> dict[str, Any]:
    """Return the data for scoring a row: terms by importance, class proportions, total effects, a typical row."""
    whole, typical, totals = list[str](), dict[str, Any](), dict[str, Any]()
    for name, term in {str(term.columns[0]): term for term in page.terms if len(term.columns) == 1}.items():
        is_whole = term.shape == "steps" and bool(term.positions) and all(v == int(v) for v in term.positions)
        whole += [name] if is_whole else []
        value: Any = term.typical_value
        if isinstance(value, float):
            value = round(value) if is_whole else _round_number(value)
        typical |= {} if value is None else {name: value}
        totals |= {name: _contributions(page, term)} if term.n_terms > 1 and term.contributions else {}
    return {
        **({} if page.policy is None else {"policy": page.policy}),
        "totals": totals,
        "titles": [[t.title, *(map(str, t.columns) if len(t.columns) > 1 else ())] for t in page.terms],
        "proportions": page.class_proportions,
        "whole": sorted(whole),
        "typical": typical,
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
    """Draw a curve in a square from 0 to 1, or up to the largest lift; points with weights are dots of their size."""
    at = np.unique(np.linspace(0, len(curve.x) - 1, _DRAWN_POINTS).astype(int))
    x, y = np.array(curve.x)[at].tolist(), np.array(curve.y)[at].tolist()
    size, end, top = _CURVE_SIZE, _CURVE_SIZE + 14, 1.0
    diagonal = [_line(0, size, size, 0, "zero")]
    if curve.weight is not None:
        largest, parts = max(curve.weight, default=0.0) or 1.0, diagonal
        for a, b, n in zip(x, y, curve.weight, strict=True):
            radius = 3 + 7 * (n / largest) ** 0.5
            parts.append(f'<circle class="dot" cx="{a * size:.1f}" cy="{size - b * size:.1f}" r="{radius:.1f}"/>')
    else:
        top = max(float(np.nanmax(y, initial=0.0)), 1.0) if curve.name == "lift" else 1.0
        parts = [_line(0, size * k / 4, size, size * k / 4, "grid") for k in (1, 2, 3)]
        parts += diagonal if curve.name == "roc" else []
        pairs = zip(x, y, strict=True)
        parts.append(_polyline((a * size, size - b / top * size) for a, b in pairs if a == a and b == b))
    frame = f'<rect class="frame" width="{size}" height="{size}"/>'
    ends = f'<text class="top" x="-5" y="9" text-anchor="end">{top:.3g}</text><text y="{end}">0</text>'
    ends += f'<text x="{size}" y="{end}" text-anchor="end">1</text>'
    return _svg([frame, *parts, ends], label, "curve", size, size)


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


def draw_bars(contributions: Sequence[float] | Floats, label: str = "") -> Markup:
    """Draw levels in their order: above the line those that raise the log-odds of the class."""
    values = _finite(contributions)[:_MAX_BARS]
    unit, zero = _scale(values)
    step = _WIDTH / max(len(values), 1)
    width = max(step * 0.72, 0.8)
    boxes: dict[str, list[Rectangle]] = {"for": [], "against": []}
    for i, v in enumerate(values.tolist()):
        top, height = min(zero, zero - v * unit), max(abs(v * unit), 0.4)
        boxes[_sign_class(v)].append((i * step + (step - width) / 2, top, width, height))
    return _svg([_line(0, zero, _WIDTH, zero, "zero"), *(_rectangles(kind, b) for kind, b in boxes.items())], label)


def draw_steps(
    edges: Floats, contributions: Floats, low: float, high: float, counts: Floats | None = None, label: str = ""
) -> Markup:
    inside = [low, *(e for e in edges.tolist() if low < e < high), high]
    at = np.searchsorted(edges, (np.array(inside[:-1]) + inside[1:]) / 2)
    return draw_curve(np.repeat(inside, 2)[1:-1], np.repeat(_finite(contributions)[at], 2), counts, label)


def draw_curve(x: Floats, contributions: Floats, counts: Floats | None = None, label: str = "") -> Markup:
    values = _finite(contributions)
    unit, zero = _scale(values)
    across = (x - x[0]) / max(x[-1] - x[0], 1e-300) * _WIDTH
    line = _polyline(zip(across.tolist(), (zero - values * unit).tolist(), strict=True))
    return _svg([*_histogram(counts), _line(0, zero, _WIDTH, zero, "zero"), line], label)


def draw_heatmap(contributions: Floats, is_seen: Any = None, label: str = "") -> Markup:
    """Draw a table of cells: the deeper the colour, the larger the contribution."""
    values = _finite(contributions)[:_MAX_CELLS, :_MAX_CELLS]
    seen = np.ones(values.shape, bool) if is_seen is None else np.asarray(is_seen)[:_MAX_CELLS, :_MAX_CELLS]
    largest = float(np.abs(values[seen]).max(initial=0.0)) or 1.0
    w, h = _WIDTH / values.shape[0], _HEIGHT / values.shape[1]
    boxes: dict[tuple[str, int], list[Rectangle]] = {}
    for (i, j), v in np.ndenumerate(values):
        if seen[i, j] and (depth := round(_COLOUR_STEPS * min(abs(v) / largest, 1.0))):
            boxes.setdefault((_sign_class(v), depth), []).append((i * w, _HEIGHT - (j + 1) * h, w, h))
    parts = [_rectangles(kind, cells, depth / _COLOUR_STEPS) for (kind, depth), cells in sorted(boxes.items())]
    return _svg([f'<rect class="frame" width="{_WIDTH}" height="{_HEIGHT}"/>', *parts], label)


def _scale(contributions: Floats) -> tuple[float, float]:
    """Return the pixels of one unit of log-odds, and where 0 lies, so that everything fits."""
    high, low = max(float(contributions.max(initial=0.0)), 0.0), min(float(contributions.min(initial=0.0)), 0.0)
    unit = (_HEIGHT - 4) / max(high - low, 1e-9)
    return unit, 2 + high * unit


def _finite(contributions: Sequence[float] | Floats) -> Floats:
    """Return finite numbers: an infinite one is drawn as the largest of the others."""
    values = np.asarray(contributions, float)
    largest = float(np.abs(values[np.isfinite(values)]).max(initial=1.0))
    return np.nan_to_num(values, nan=0.0, posinf=largest, neginf=-largest)


def _histogram(counts: Floats | None) -> list[str]:
    if counts is None or not counts.max(initial=0.0):
        return []
    heights = np.sqrt(counts / counts.max()) * _HEIGHT  # roots, for a few values often have nearly all rows
    w = _WIDTH / len(counts)
    return [_rectangles("hist", [(i * w, _HEIGHT - h, w, h) for i, h in enumerate(heights.tolist()) if h >= 0.3])]


def _sign_class(value: float) -> str:
    return "for" if value > 0 else "against"


def _rectangles(kind: str, boxes: Sequence[Rectangle], depth: float | None = None) -> str:
    opacity, n = "" if depth is None else f' fill-opacity="{depth:g}"', _format_number
    path = "".join(f"M{n(x)} {n(y)}h{n(w)}v{n(h)}h{n(-w)}z" for x, y, w, h in boxes)
    return f'<path class="{kind}"{opacity} d="{path}"/>' if path else ""


def _polyline(points: Iterable[tuple[float, float]]) -> str:
    text = " ".join(f"{_format_number(x)},{_format_number(y)}" for x, y in points)
    return f'<polyline class="line" points="{text}"/>'


def _format_number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:.1f}" x2="{x2:g}" y2="{y2:.1f}"/>'


def _svg(parts: Sequence[str], label: str, kind: str = "spark", wide: int = _WIDTH, high: int = _HEIGHT) -> Markup:
    head = f'<svg class="{kind}" viewBox="0 0 {wide} {high}" role="img" aria-label="{escape(label)}">'
    return Markup(head + "".join(parts) + "</svg>")
