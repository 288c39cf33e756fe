"""A picture by name, from a model alone or with a source of rows, and into a file: what the command line draws.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> figure, facts = picture(Fitted(garden()), PictureSpec("ellipses", features=("height_cm", "leaf_mm")))
>>> facts
{'what': 'ellipses', 'features': ['height_cm', 'leaf_mm'], 'rows': None}
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from candide.errors import InputError, unknown
from candide.files import check_output, write_whole
from candide.plot import fonts, heat, odds, quality, ranked, speech, style
from candide.plot.choice import strongest, two_strongest
from candide.plot.drawable import Drawable
from candide.plot.gaussians import ellipses, is_gaussian
from candide.plot.graph import network
from candide.plot.images import class_means, near_square
from candide.plot.nomogram import draw as draw_nomogram
from candide.plot.nomogram import scales
from candide.plot.planes import posterior_surface, regions
from candide.plot.rows import Rows
from candide.plot.univariate import densities
from candide.tasks.calibration import confusion, log_odds, stated
from candide.tasks.scores import Scores


class Format(NamedTuple):
    """What is noted in a picture, no date among it, and by which bytes it is known again as Candide's."""

    metadata: dict[str, str | None]
    mark: bytes


FORMATS = {
    "png": Format({"Software": "Candide"}, b"Software\0Candide"),
    "svg": Format({"Creator": "Candide", "Date": None}, b"<dc:title>Candide</dc:title>"),
    "pdf": Format({"Creator": "Candide", "CreationDate": None}, b"/Creator (Candide)"),
}
_PANELS = 6  # densities drawn where no feature is named
Drawn = tuple[Any, dict[str, Any]]  # axes, and what was drawn


@dataclass(frozen=True)
class PictureSpec:
    """What to draw."""

    what: str
    features: tuple[Any, ...] = ()
    classes: tuple[Any, ...] = ()
    shape: tuple[int, ...] | None = None
    kind: str | None = None  # "strip" | "histogram" | "bars" of a discriminant, "surface" | "contour" of a surface
    bins: int = 10
    normalise: bool = False


def picture(model: Any, spec: PictureSpec, rows: Rows | None = None) -> tuple[Any, dict[str, Any]]:
    """The figure, and what it shows."""
    if spec.what not in PICTURES:
        raise unknown("picture", spec.what, PICTURES)
    style.need()
    if rows is None and spec.what in _OF_ROWS:
        raise InputError(f"{spec.what}: this is drawn from rows whose class is known; pass DATA after the model")
    with style.apart():
        axes, facts = PICTURES[spec.what](Drawable.of(model), spec, rows)
    figure = (axes[0] if isinstance(axes, list) else axes).figure
    return figure, {"what": spec.what, **facts}


def write(figure: Any, path: str | os.PathLike, dpi: int = 150, *, force: bool = False) -> str:
    """Write a figure whole or not at all, in the format that the name's ending says; returns the format.

    A file that is no picture of Candide's is written over by ``force`` only.
    """
    ending = format_of(path)
    check_output(path, ours=is_drawn, force=force)
    with style.need().rc_context({"svg.hashsalt": "candide"}):  # the same picture is the same file
        image = fonts.rendered(figure, format=ending, dpi=dpi, metadata=FORMATS[ending].metadata)
    write_whole(path, [image])
    return ending


def format_of(path: str | os.PathLike) -> str:
    """The format that a file name asks for."""
    ending = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    if ending not in FORMATS:
        raise unknown("format of a picture", ending, FORMATS)
    return ending


def is_drawn(path: str) -> bool:
    """Whether a file is a picture that Candide made, by the name of its maker in it."""
    with open(path, "rb") as file:
        return FORMATS[format_of(path)].mark in file.read()


def _densities(drawable: Drawable, spec: PictureSpec, rows: Rows | None) -> Drawn:
    names = [drawable.known(f) for f in spec.features]
    if not names:
        names = strongest(drawable)[:_PANELS] or list(drawable.columns[:1])
    X, y, n = _read(drawable, rows, [name for name in names if drawable.part(name)[1].reads != "documents"])
    few = len(drawable.labels) <= style.FEW
    size = (5.4, 3.2) if few else (5.4, heat.height(len(drawable.labels)))
    axes = style.many_axes(len(names), 2, size) if len(names) > 1 else [style.axes()]
    for ax, name in zip(axes, names, strict=True):
        densities(drawable, X, y, feature=name, ax=ax)
    if len(axes) > 1 and few:
        style.one_legend(axes, drawable.labels)
    return axes, {"features": names, "rows": n}


def _read(drawable: Drawable, rows: Rows | None, names: Any) -> tuple[Any, Any, int | None]:
    """Columns, labels and the number of rows."""
    if rows is None or not names:  # of text, rows say nothing that is drawn
        return None, None, None
    X, codes = rows.columns(drawable, names)
    y = None if codes is None else [None if c < 0 else drawable.labels[c] for c in codes.tolist()]
    return X, y, len(next(iter(X.values())))


def _plane(
    draw: Callable, is_usable: Callable[..., bool] = lambda *_: True, kind: str = "columns of numbers"
) -> Callable[..., Drawn]:
    def drawn(drawable: Drawable, spec: PictureSpec, rows: Rows | None) -> Drawn:
        note: dict[str, str] = {}
        if spec.features or len(drawable.columns) <= 2:
            names = drawable.two(spec.features or None)
        else:
            names, note["note"] = two_strongest(drawable, is_usable, kind)
        X, y, n = _read(drawable, rows, names)
        return draw(drawable, spec, names, X, y), {"features": list(names), "rows": n, **note}

    return drawn


def _regions(drawable: Drawable, spec: PictureSpec, names: Any, X: Any, y: Any) -> Any:
    return regions(drawable, X, y, features=names)


def _ellipses(drawable: Drawable, spec: PictureSpec, names: Any, X: Any, y: Any) -> Any:
    return ellipses(drawable, X, y, features=names)


def _surface(drawable: Drawable, spec: PictureSpec, names: Any, X: Any, y: Any) -> Any:
    alone = len(spec.classes) == 1
    return posterior_surface(
        drawable, X, features=names, classes=spec.classes or None, difference=not alone, kind=spec.kind or "surface"
    )


def _means(drawable: Drawable, spec: PictureSpec, rows: Rows | None) -> Drawn:
    if spec.shape is None:
        n = len(drawable.columns)
        raise InputError(
            f"means: this picture is for images, whose columns are pixels; if the {n} columns of this model are, say "
            f"their rows and columns: --shape {near_square(n)}; else draw densities, regions, ellipses or network"
        )
    return class_means(drawable, spec.shape, classes=spec.classes or None), {"shape": list(spec.shape)}


def _network(drawable: Drawable, spec: PictureSpec, rows: Rows | None) -> Drawn:
    return network(drawable, features=spec.features or None), {"features": list(spec.features) or None}


def _voice(drawable: Drawable, spec: PictureSpec, rows: Rows | None) -> Drawn:
    named: Any = spec.features[0] if len(spec.features) == 1 else spec.features or None
    one = speech.chosen(drawable, named)
    ax = speech.draw(drawable, one, _positive(spec))
    return ax, {"voice": one.title, "features": list(one.columns), "weight": one.weight, "rows": None}


def _nomogram(drawable: Drawable, spec: PictureSpec, rows: Rows | None) -> Drawn:
    c = speech.class_of(drawable, _positive(spec))
    lines = scales(drawable, c, [drawable.known(f) for f in spec.features] or None)
    facts = {"features": [one.name for one in lines], "positive": drawable.labels[c], "rows": None}
    return draw_nomogram(drawable, c, lines), facts


def _discriminant(drawable: Drawable, spec: PictureSpec, rows: Rows) -> Drawn:
    c = odds.one_class(drawable, _positive(spec))
    batches = [(log_odds(log_p, c), codes) for log_p, codes in rows.posteriors(drawable)]
    values, codes = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
    ax = odds.draw(drawable.labels, c, values, codes, kind=spec.kind)
    wrong = int(((values > 0) != (codes == c)).sum())
    return ax, {"rows": len(codes), "positive": drawable.labels[c], "errors": wrong}


def _calibration(drawable: Drawable, spec: PictureSpec, rows: Rows) -> Drawn:
    positive = _positive(spec)
    c = None if positive is None else drawable.label(positive)
    parts = [stated(np.exp(log_p), codes, c) for log_p, codes in rows.posteriors(drawable)]
    p, truth = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    ax = quality.draw_calibration(p, truth, quality.class_judged(drawable.labels, c), spec.bins)
    return ax, {"rows": len(p), "bins": spec.bins}


def _confusion(drawable: Drawable, spec: PictureSpec, rows: Rows) -> Drawn:
    k = len(drawable.labels)
    parts = [confusion(codes, log_p.argmax(axis=1), k) for log_p, codes in rows.posteriors(drawable)]
    matrix = sum(parts, start=np.zeros((k, k), np.intp))
    facts = {"rows": int(matrix.sum()), "confusion": matrix.tolist()}
    return quality.draw_confusion(matrix, drawable.labels, normalise=spec.normalise), facts


def _ranked(draw: Callable) -> Callable[..., Drawn]:
    def drawn(drawable: Drawable, spec: PictureSpec, rows: Rows) -> Drawn:
        parts = [Scores.of(log_p, codes) for log_p, codes in rows.posteriors(drawable) if len(codes)]
        if not parts:
            raise InputError(f"no row has a class; {spec.what} is drawn of rows whose class is known")
        scores = reduce(add, parts)
        found = {name: value for name, value in scores.metrics().items() if name in _RANKED}
        return draw(drawable, scores, _positive(spec)), {"rows": int(scores.n), **found}

    return drawn


def _positive(spec: PictureSpec) -> Any:
    if len(spec.classes) > 1:
        raise InputError(f"{spec.what}: name one class, not {len(spec.classes)}")
    return spec.classes[0] if spec.classes else None


PICTURES: dict[str, Callable[..., Drawn]] = {
    "densities": _densities,
    "regions": _plane(_regions),
    "surface": _plane(_surface),
    "ellipses": _plane(_ellipses, is_gaussian, "gaussian columns"),
    "means": _means,
    "discriminant": _discriminant,
    "calibration": _calibration,
    "confusion": _confusion,
    "roc": _ranked(ranked.draw_roc),
    "pr": _ranked(ranked.draw_precision_recall),
    "lift": _ranked(ranked.draw_lift),
    "coverage": _ranked(ranked.draw_coverage),
    "thresholds": _ranked(ranked.draw_thresholds),
    "network": _network,
    "voice": _voice,
    "nomogram": _nomogram,
}
_OF_ROWS = ("discriminant", "calibration", "confusion", "roc", "pr", "lift", "coverage", "thresholds")
_RANKED = ("accuracy", "auc", "average_precision")
