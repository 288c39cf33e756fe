"""A picture by name, from a model alone or with a source of rows, and into a file: what the command line draws.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> figure, facts = picture(Fitted(garden()), Wish("ellipses", features=("height_cm", "leaf_mm")))
>>> facts
{'what': 'ellipses', 'features': ['height_cm', 'leaf_mm'], 'rows': None}
"""

import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.errors import InputError, unknown
from candide.files import write_whole
from candide.plot import odds, quality
from candide.plot import style as ink
from candide.plot.choice import strongest, two_strongest
from candide.plot.drawable import Subject
from candide.plot.gaussians import ellipses
from candide.plot.graph import network
from candide.plot.images import class_means, near_square
from candide.plot.planes import posterior_surface, regions
from candide.plot.rows import Rows
from candide.plot.univariate import densities

FORMATS = ("png", "svg", "pdf")
_PANELS = 6  # densities drawn where no feature is named
Drawn = tuple[Any, dict[str, Any]]  # axes, and what was drawn


@dataclass(frozen=True)
class Wish:
    """What to draw."""

    what: str
    features: tuple[Any, ...] = ()
    classes: tuple[Any, ...] = ()
    shape: tuple[int, ...] | None = None
    kind: str | None = None  # "strip" | "histogram" | "bars" of a discriminant, "surface" | "contour" of a surface
    bins: int = 10
    normalise: bool = False


def picture(model: Any, wish: Wish, rows: Rows | None = None) -> tuple[Any, dict[str, Any]]:
    """The figure, and what it shows."""
    if wish.what not in PICTURES:
        raise unknown("picture", wish.what, PICTURES)
    ink.need()
    if rows is None and wish.what in _OF_ROWS:
        raise InputError(f"{wish.what}: this is drawn from rows whose class is known; pass DATA after the model")
    with ink.apart():
        axes, facts = PICTURES[wish.what](Subject.of(model), wish, rows)
    figure = (axes[0] if isinstance(axes, list) else axes).figure
    return figure, {"what": wish.what, **facts}


def write(figure: Any, path: str | os.PathLike, dpi: int = 150) -> str:
    """Write a figure whole or not at all, in the format that the name's ending says; returns the format."""
    ending = format_of(path)
    buffer = io.BytesIO()
    dates = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[ending]
    with ink.need().rc_context({"svg.hashsalt": "candide"}):  # the same picture is the same file
        figure.savefig(buffer, format=ending, dpi=dpi, metadata=dates)
    write_whole(path, [buffer.getvalue()])
    return ending


def format_of(path: str | os.PathLike) -> str:
    """The format that a file name asks for."""
    ending = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    if ending not in FORMATS:
        raise unknown("format of a picture", ending, FORMATS)
    return ending


def _densities(subject: Subject, wish: Wish, rows: Rows | None) -> Drawn:
    names = [subject.known(f) for f in wish.features]
    if not names:
        names = strongest(subject)[:_PANELS] or list(subject.columns[:1])
    X, y, n = _read(subject, rows, [name for name in names if not subject.part(name)[0].has_documents])
    axes = ink.many_axes(len(names), 2, (5.4, 3.2)) if len(names) > 1 else [ink.axes()]
    for ax, name in zip(axes, names, strict=True):
        densities(subject, X, y, feature=name, ax=ax)
    if len(axes) > 1:
        ink.one_legend(axes, subject.labels)
    return axes, {"features": names, "rows": n}


def _read(subject: Subject, rows: Rows | None, names: Any) -> tuple[Any, Any, int | None]:
    """Columns, labels and the number of rows."""
    if rows is None or not names:  # of text, rows say nothing that is drawn
        return None, None, None
    X, codes = rows.columns(subject, names)
    y = None if codes is None else [None if c < 0 else subject.labels[c] for c in codes.tolist()]
    return X, y, len(next(iter(X.values())))


def _plane(draw: Callable, event: str | None = None) -> Callable[..., Drawn]:
    def drawn(subject: Subject, wish: Wish, rows: Rows | None) -> Drawn:
        told: dict[str, str] = {}
        if wish.features or len(subject.columns) <= 2:
            names = subject.two(wish.features or None)
        else:
            names, told["note"] = two_strongest(subject, event)
        X, y, n = _read(subject, rows, names)
        return draw(subject, wish, names, X, y), {"features": list(names), "rows": n, **told}

    return drawn


def _regions(subject: Subject, wish: Wish, names: Any, X: Any, y: Any) -> Any:
    return regions(subject, X, y, features=names)


def _ellipses(subject: Subject, wish: Wish, names: Any, X: Any, y: Any) -> Any:
    return ellipses(subject, X, y, features=names)


def _surface(subject: Subject, wish: Wish, names: Any, X: Any, y: Any) -> Any:
    alone = len(wish.classes) == 1
    return posterior_surface(
        subject, X, features=names, classes=wish.classes or None, difference=not alone, kind=wish.kind or "surface"
    )


def _means(subject: Subject, wish: Wish, rows: Rows | None) -> Drawn:
    if wish.shape is None:
        n = len(subject.columns)
        raise InputError(
            f"means: this picture is for images, whose columns are pixels; if the {n} columns of this model are, say "
            f"their rows and columns: --shape {near_square(n)}; else draw densities, regions, ellipses or network"
        )
    return class_means(subject, wish.shape, classes=wish.classes or None), {"shape": list(wish.shape)}


def _network(subject: Subject, wish: Wish, rows: Rows | None) -> Drawn:
    return network(subject, features=wish.features or None), {"features": list(wish.features) or None}


def _discriminant(subject: Subject, wish: Wish, rows: Rows) -> Drawn:
    c = odds.one_class(subject, _positive(wish))
    batches = [(odds.log_odds(log_p, c), codes) for log_p, codes in rows.posteriors(subject)]
    values, codes = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
    ax = odds.draw(subject.labels, c, values, codes, kind=wish.kind)
    wrong = int(((values > 0) != (codes == c)).sum())
    return ax, {"rows": len(codes), "positive": subject.labels[c], "errors": wrong}


def _calibration(subject: Subject, wish: Wish, rows: Rows) -> Drawn:
    positive = _positive(wish)
    c = None if positive is None else subject.label(positive)
    parts = [quality.stated(np.exp(log_p), codes, subject.labels, c) for log_p, codes in rows.posteriors(subject)]
    p, truth = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return quality.draw_calibration(p, truth, parts[0][2], wish.bins), {"rows": len(p), "bins": wish.bins}


def _confusion(subject: Subject, wish: Wish, rows: Rows) -> Drawn:
    k = len(subject.labels)
    matrix = np.zeros((k, k), np.int64)
    for log_p, codes in rows.posteriors(subject):
        matrix += np.bincount(codes * k + log_p.argmax(axis=1), minlength=k * k).reshape(k, k)
    facts = {"rows": int(matrix.sum()), "confusion": matrix.tolist()}
    return quality.draw_confusion(matrix, subject.labels, normalise=wish.normalise), facts


def _positive(wish: Wish) -> Any:
    if len(wish.classes) > 1:
        raise InputError(f"{wish.what}: name one class, not {len(wish.classes)}")
    return wish.classes[0] if wish.classes else None


PICTURES: dict[str, Callable[..., Drawn]] = {
    "densities": _densities,
    "regions": _plane(_regions),
    "surface": _plane(_surface),
    "ellipses": _plane(_ellipses, "gaussian"),
    "means": _means,
    "discriminant": _discriminant,
    "calibration": _calibration,
    "confusion": _confusion,
    "network": _network,
}
_OF_ROWS = ("discriminant", "calibration", "confusion")
