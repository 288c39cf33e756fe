"""Curves that everybody knows, for the class that a page speaks of: ROC, precision-recall, lift, calibration.

>>> [title for title, *_ in CURVE_TITLES.values()]
['ROC', 'Precision and recall', 'Lift', 'Calibration']
"""

from typing import Any

import numpy as np
from markupsafe import Markup

from candide.report.html import svg
from candide.report.html.data import script_json
from candide.report.summary.page import PageSummary
from candide.report.summary.scores import CurveSummary

CURVE_TITLES = {  # by the names of their summaries: a title, and what is seen
    "roc": ("ROC", "rows of the class that are found, upwards, against others that are taken for it, across"),
    "precision_recall": (
        "Precision and recall",
        "of what is taken for it how much is right, upwards; how much is found",
    ),
    "lift": ("Lift", "how many times as many of the class as by chance, among so large a share of the rows"),
    "calibration": ("Calibration", "what came true, upwards, against what was stated; on the dotted line it is honest"),
}
_DRAWN_POINTS, _DATA_POINTS = 100, 40  # points of a curve that is drawn, and of one in the data of a page


def curve_figures(page: PageSummary) -> list[tuple[str, str, Markup]]:
    """Title, meaning and picture of each curve of the class that pictures are of at first."""
    if page.assessment is None or not page.model.classes:
        return []
    label = page.model.classes[page.default_class].label
    mine = {one.name: one for one in page.assessment.scores.curves if one.label == label}
    return [
        (*told, _draw_curve(mine[name], f"{told[0]} of {label}")) for name, told in CURVE_TITLES.items() if name in mine
    ]


def _draw_curve(one: CurveSummary, label: str) -> Markup:
    at = np.unique(np.linspace(0, len(one.x) - 1, _DRAWN_POINTS).astype(int))
    x, y = np.array(one.x)[at], np.array(one.y)[at]
    if one.weight is not None:
        return svg.draw_dots(x, y, np.array(one.weight), label)
    top = max(float(np.nanmax(y, initial=0.0)), 1.0) if one.name == "lift" else 1.0
    return svg.draw_line(x, y, label, diagonal=one.name == "roc", top=top)


def curve_points(page: PageSummary, max_bytes: int) -> list[list[Any] | None]:
    """The points of classes, in few letters: x and y in thousandths, and where they are apart their weight.

    The class that pictures are of at first comes first, then those of most rows, as far as the room goes in bytes; None
    of the others.
    """
    if page.assessment is None or len(page.model.classes) <= 2:  # of two classes the page has all there is
        return []
    found = page.assessment.scores
    by_class: dict[Any, list[Any]] = {}
    for one in found.curves:
        if one.name in CURVE_TITLES:
            by_class.setdefault(one.label, []).append(_points(one))
    rows = np.array(found.confusion).sum(axis=1)
    rows[page.default_class] = np.inf
    out: list[list[Any] | None] = [None] * len(found.labels)
    for c in np.argsort(-rows, kind="stable").tolist():
        points = by_class.get(found.labels[c])
        max_bytes -= len(script_json(points))
        if points and max_bytes >= 0:
            out[c] = points
    return out


def _points(one: CurveSummary) -> list[list[int]]:
    at = np.unique(np.linspace(0, len(one.x) - 1, _DATA_POINTS).astype(int)).tolist()
    some = [i for i in at if one.x[i] == one.x[i] and one.y[i] == one.y[i]]
    most = max(one.weight, default=1.0) if one.weight is not None else 1.0
    out = [[round(1000 * values[i]) for i in some] for values in (one.x, one.y)]
    return out if one.weight is None else [*out, [round(100 * one.weight[i] / (most or 1.0)) for i in some]]
