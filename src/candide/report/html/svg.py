"""Pictures for a page, as SVG: small ones of a voice, and lines of curves. Colours are those of the page's style.

>>> str(draw_bars([1.0, -0.5]))[:60]
'<svg class="spark" viewBox="0 0 150 40" role="img" aria-labe'
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from candide.data.blocks import Floats

THUMBNAIL_WIDTH, THUMBNAIL_HEIGHT = 150, 40  # of a small picture
CURVE_SIZE = 240  # of a curve
_MOST_BARS = 40
_MOST_CELLS = 24  # along either side of a heat map
_COLOUR_STEPS = 6  # shades of either colour

Rectangle = tuple[float, float, float, float]  # left, top, width, height


def draw_bars(contributions: Sequence[float] | Floats, label: str = "") -> Markup:
    """Levels in their order: above the line what speaks for the class, below what speaks against it."""
    some = _finite(contributions)[:_MOST_BARS]
    top, base = _scale(some)
    step = THUMBNAIL_WIDTH / max(len(some), 1)
    width = max(step * 0.72, 0.8)
    boxes: dict[str, list[Rectangle]] = {"for": [], "against": []}
    for i, v in enumerate(some.tolist()):
        boxes[_sign_class(v)].append(
            (i * step + (step - width) / 2, min(base, base - v * top), width, max(abs(v * top), 0.4))
        )
    return _svg(
        [_line(0, base, THUMBNAIL_WIDTH, base, "zero"), *(_rectangles(kind, own) for kind, own in boxes.items())], label
    )


def draw_steps(
    edges: Floats, contributions: Floats, low: float, high: float, counts: Floats | None = None, label: str = ""
) -> Markup:
    """A number of each stretch between edges, over how often its values are met."""
    inside = [low, *(e for e in edges.tolist() if low < e < high), high]
    at = np.searchsorted(edges, (np.array(inside[:-1]) + inside[1:]) / 2)
    x = np.repeat(inside, 2)[1:-1]
    return draw_curve(x, np.repeat(_finite(contributions)[at], 2), counts, label)


def draw_curve(x: Floats, contributions: Floats, counts: Floats | None = None, label: str = "") -> Markup:
    """A line, over how often its values are met."""
    contributions = _finite(contributions)
    top, base = _scale(contributions)
    across = (x - x[0]) / max(x[-1] - x[0], 1e-300) * THUMBNAIL_WIDTH
    points = " ".join(
        f"{_format_number(a)},{_format_number(base - v * top)}"
        for a, v in zip(across.tolist(), contributions.tolist(), strict=True)
    )
    line = f'<polyline class="line" points="{points}"/>'
    return _svg([*_histogram(counts), _line(0, base, THUMBNAIL_WIDTH, base, "zero"), line], label)


def draw_heatmap(contributions: Floats, is_seen: Any = None, label: str = "") -> Markup:
    """A table of cells: the deeper the colour, the more it says."""
    some = _finite(contributions)[:_MOST_CELLS, :_MOST_CELLS]
    there = np.ones(some.shape, bool) if is_seen is None else np.asarray(is_seen)[:_MOST_CELLS, :_MOST_CELLS]
    most = float(np.abs(some[there]).max(initial=0.0)) or 1.0
    w, h = THUMBNAIL_WIDTH / some.shape[0], THUMBNAIL_HEIGHT / some.shape[1]
    boxes: dict[tuple[str, int], list[Rectangle]] = {}
    for (i, j), v in np.ndenumerate(some):
        if there[i, j] and (depth := round(_COLOUR_STEPS * min(abs(v) / most, 1.0))):
            boxes.setdefault((_sign_class(v), depth), []).append((i * w, THUMBNAIL_HEIGHT - (j + 1) * h, w, h))
    parts = [_rectangles(kind, own, depth / _COLOUR_STEPS) for (kind, depth), own in sorted(boxes.items())]
    return _svg([f'<rect class="frame" width="{THUMBNAIL_WIDTH}" height="{THUMBNAIL_HEIGHT}"/>', *parts], label)


def draw_line(x: Floats, y: Floats, label: str, diagonal: bool = False, top: float = 1.0) -> Markup:
    """A curve in a square from 0 to 1 across and from 0 to ``top`` upwards."""
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    points = " ".join(
        f"{_format_number(a * CURVE_SIZE)},{_format_number(CURVE_SIZE - b / top * CURVE_SIZE)}"
        for a, b in pairs
        if a == a and b == b
    )
    parts = [f'<rect class="frame" width="{CURVE_SIZE}" height="{CURVE_SIZE}"/>']
    parts += [_line(0, CURVE_SIZE * k / 4, CURVE_SIZE, CURVE_SIZE * k / 4, "grid") for k in (1, 2, 3)]
    parts += [_line(0, CURVE_SIZE, CURVE_SIZE, 0, "zero")] if diagonal else []
    parts.append(f'<polyline class="line" points="{points}"/>')
    return _svg([*parts, *_axis_ends(top)], label, "curve", CURVE_SIZE, CURVE_SIZE)


def draw_dots(x: Floats, y: Floats, weight: Floats, label: str) -> Markup:
    """Points in a square, the larger the more rows they stand for, against the diagonal."""
    most = float(weight.max(initial=0.0)) or 1.0
    parts = [
        f'<rect class="frame" width="{CURVE_SIZE}" height="{CURVE_SIZE}"/>',
        _line(0, CURVE_SIZE, CURVE_SIZE, 0, "zero"),
    ]
    parts += [
        f'<circle class="dot" cx="{a * CURVE_SIZE:.1f}" cy="{CURVE_SIZE - b * CURVE_SIZE:.1f}" '
        f'r="{3 + 7 * (n / most) ** 0.5:.1f}"/>'
        for a, b, n in zip(x.tolist(), y.tolist(), weight.tolist(), strict=True)
    ]
    return _svg([*parts, *_axis_ends(1.0)], label, "curve", CURVE_SIZE, CURVE_SIZE)


def _axis_ends(top: float) -> list[str]:
    """The ends of both axes, in figures."""
    end = CURVE_SIZE + 14
    across = [f'<text y="{end}">0</text>', f'<text x="{CURVE_SIZE}" y="{end}" text-anchor="end">1</text>']
    return [f'<text class="top" x="-5" y="9" text-anchor="end">{top:.3g}</text>', *across]


def _scale(contributions: Floats) -> tuple[float, float]:
    """Pixels a nat, and where 0 lies, so that all of it and 0 is seen."""
    high, low = max(float(contributions.max(initial=0.0)), 0.0), min(float(contributions.min(initial=0.0)), 0.0)
    top = (THUMBNAIL_HEIGHT - 4) / max(high - low, 1e-9)
    return top, 2 + high * top


def _finite(contributions: Sequence[float] | Floats) -> Floats:
    """Numbers that can be drawn: what is impossible is drawn as far as the farthest of the others."""
    some = np.asarray(contributions, float)
    far = float(np.abs(some[np.isfinite(some)]).max(initial=1.0))
    return np.nan_to_num(some, nan=0.0, posinf=far, neginf=-far)


def _histogram(counts: Floats | None) -> list[str]:
    if counts is None or not counts.max(initial=0.0):
        return []
    tall = np.sqrt(counts / counts.max()) * THUMBNAIL_HEIGHT  # roots, for a few values often have nearly all rows
    w = THUMBNAIL_WIDTH / len(counts)
    return [_rectangles("hist", [(i * w, THUMBNAIL_HEIGHT - h, w, h) for i, h in enumerate(tall.tolist()) if h >= 0.3])]


def _sign_class(value: float) -> str:
    return "for" if value > 0 else "against"


def _rectangles(kind: str, boxes: Sequence[Rectangle], depth: float | None = None) -> str:
    """Boxes of one colour as one path."""
    shade = "" if depth is None else f' fill-opacity="{depth:g}"'
    path = "".join(
        f"M{_format_number(x)} {_format_number(y)}h{_format_number(w)}v{_format_number(h)}h{_format_number(-w)}z"
        for x, y, w, h in boxes
    )
    return f'<path class="{kind}"{shade} d="{path}"/>' if path else ""


def _format_number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:.1f}" x2="{x2:g}" y2="{y2:.1f}"/>'


def _svg(
    parts: Sequence[str], label: str, kind: str = "spark", wide: int = THUMBNAIL_WIDTH, high: int = THUMBNAIL_HEIGHT
) -> Markup:
    head = f'<svg class="{kind}" viewBox="0 0 {wide} {high}" role="img" aria-label="{escape(label)}">'
    return Markup(head + "".join(parts) + "</svg>")
