"""A picture by name, from a model alone or with a source of rows, and into a file: what the command line draws.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> figure, facts = draw_plot(FittedModel(garden()), PlotSpec("ellipses", features=("height_cm", "leaf_mm")))
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

from candide.errors import InputError, unknown_name_error
from candide.files import check_output, write_atomically
from candide.metrics.calibration import confusion_matrix, log_odds, predicted_and_observed
from candide.metrics.scores import Scores
from candide.plot import axis_text, discriminants, quality, style, term_plot, threshold_curves
from candide.plot.data import PlotRows, strongest_columns, two_strongest_columns
from candide.plot.drawable import Drawable
from candide.plot.gaussians import ellipses, is_gaussian
from candide.plot.graph import network
from candide.plot.images import class_means, suggest_shape
from candide.plot.nomogram import draw as draw_nomogram
from candide.plot.nomogram import nomogram_lines
from candide.plot.planes import posterior_surface, regions
from candide.plot.univariate import densities, figure_height


class ImageFormat(NamedTuple):
    """What is noted in a picture, no date among it, and by which bytes it is known again as Candide's."""

    metadata: dict[str, str | None]
    marker: bytes


IMAGE_FORMATS = {
    "png": ImageFormat({"Software": "Candide"}, b"Software\0Candide"),
    "svg": ImageFormat({"Creator": "Candide", "Date": None}, b"<dc:title>Candide</dc:title>"),
    "pdf": ImageFormat({"Creator": "Candide", "CreationDate": None}, b"/Creator (Candide)"),
}
_MAX_PANELS = 6  # densities drawn where no feature is named
DrawnPlot = tuple[Any, dict[str, Any]]  # axes, and what was drawn


@dataclass(frozen=True)
class PlotSpec:
    """What to draw."""

    plot_name: str
    features: tuple[Any, ...] = ()
    classes: tuple[Any, ...] = ()
    shape: tuple[int, ...] | None = None
    kind: str | None = None  # "strip" | "histogram" | "bars" of a discriminant, "surface" | "contour" of a surface
    bins: int = 10
    normalise: bool = False


def draw_plot(model: Any, spec: PlotSpec, rows: PlotRows | None = None) -> tuple[Any, dict[str, Any]]:
    """The figure, and what it shows."""
    if spec.plot_name not in PLOTS:
        raise unknown_name_error("picture", spec.plot_name, PLOTS)
    style.import_matplotlib()
    if rows is None and spec.plot_name in _PLOTS_OF_ROWS:
        raise InputError(f"{spec.plot_name}: this is drawn from rows whose class is known; pass DATA after the model")
    with style.without_pyplot():
        axes, facts = PLOTS[spec.plot_name](Drawable.from_model(model), spec, rows)
    figure = (axes[0] if isinstance(axes, list) else axes).figure
    return figure, {"what": spec.plot_name, **facts}


def write_figure(figure: Any, path: str | os.PathLike, dpi: int = 150, *, force: bool = False) -> str:
    """Write a figure whole or not at all, in the format that the name's ending says; returns the format.

    A file that is no picture of Candide's is written over by ``force`` only.
    """
    ending = image_format(path)
    check_output(path, is_own_file=is_candide_image, force=force)
    with style.import_matplotlib().rc_context({"svg.hashsalt": "candide"}):  # the same picture is the same file
        image = axis_text.render_figure(figure, format=ending, dpi=dpi, metadata=IMAGE_FORMATS[ending].metadata)
    write_atomically(path, [image])
    return ending


def image_format(path: str | os.PathLike) -> str:
    """The format that a file name asks for."""
    ending = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    if ending not in IMAGE_FORMATS:
        raise unknown_name_error("format of a picture", ending, IMAGE_FORMATS)
    return ending


def is_candide_image(path: str) -> bool:
    """Whether a file is a picture that Candide made, by the name of its maker in it."""
    with open(path, "rb") as file:
        return IMAGE_FORMATS[image_format(path)].marker in file.read()


def _densities(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    names = [drawable.resolve_column(f) for f in spec.features]
    if not names:
        names = strongest_columns(drawable)[:_MAX_PANELS] or list(drawable.columns[:1])
    X, y, n = _read(drawable, rows, [name for name in names if drawable.part_of(name)[1].block_kind != "documents"])
    few = len(drawable.labels) <= style.MAX_LEGEND_CLASSES
    size = (5.4, 3.2) if few else (5.4, figure_height(len(drawable.labels)))
    axes = style.make_axes(len(names), 2, size) if len(names) > 1 else [style.get_axes()]
    for ax, name in zip(axes, names, strict=True):
        densities(drawable, X, y, feature=name, ax=ax)
    if len(axes) > 1 and few:
        style.share_legend(axes, drawable.labels)
    return axes, {"features": names, "rows": n}


def _read(drawable: Drawable, rows: PlotRows | None, names: Any) -> tuple[Any, Any, int | None]:
    """Columns, labels and the number of rows."""
    if rows is None or not names:  # of text, rows say nothing that is drawn
        return None, None, None
    X, codes = rows.columns(drawable, names)
    y = None if codes is None else [None if c < 0 else drawable.labels[c] for c in codes.tolist()]
    return X, y, len(next(iter(X.values())))


def _draw_plane(
    draw: Callable, is_usable: Callable[..., bool] = lambda *_: True, kind: str = "columns of numbers"
) -> Callable[..., DrawnPlot]:
    def drawn(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
        note: dict[str, str] = {}
        if spec.features or len(drawable.columns) <= 2:
            names = drawable.resolve_column_pair(spec.features or None)
        else:
            names, note["note"] = two_strongest_columns(drawable, is_usable, kind)
        X, y, n = _read(drawable, rows, names)
        return draw(drawable, spec, names, X, y), {"features": list(names), "rows": n, **note}

    return drawn


def _regions(drawable: Drawable, spec: PlotSpec, names: Any, X: Any, y: Any) -> Any:
    return regions(drawable, X, y, features=names)


def _ellipses(drawable: Drawable, spec: PlotSpec, names: Any, X: Any, y: Any) -> Any:
    return ellipses(drawable, X, y, features=names)


def _surface(drawable: Drawable, spec: PlotSpec, names: Any, X: Any, y: Any) -> Any:
    alone = len(spec.classes) == 1
    return posterior_surface(
        drawable, X, features=names, classes=spec.classes or None, difference=not alone, kind=spec.kind or "surface"
    )


def _means(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    if spec.shape is None:
        n = len(drawable.columns)
        raise InputError(
            f"means: this picture is for images, whose columns are pixels; if the {n} columns of this model are, say "
            f"their rows and columns: --shape {suggest_shape(n)}; else draw densities, regions, ellipses or network"
        )
    return class_means(drawable, spec.shape, classes=spec.classes or None), {"shape": list(spec.shape)}


def _network(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    return network(drawable, features=spec.features or None), {"features": list(spec.features) or None}


def _term(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    named: Any = spec.features[0] if len(spec.features) == 1 else spec.features or None
    one = term_plot.find_term(drawable, named)
    ax = term_plot.draw_term(drawable, one, _positive(spec))
    return ax, {"term": one.title, "features": list(one.columns), "weight": one.weight, "rows": None}


def _nomogram(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    c = term_plot.positive_class_of(drawable, _positive(spec))
    lines = nomogram_lines(drawable, c, [drawable.resolve_column(f) for f in spec.features] or None)
    facts = {"features": [one.name for one in lines], "positive": drawable.labels[c], "rows": None}
    return draw_nomogram(drawable, c, lines), facts


def _discriminant(drawable: Drawable, spec: PlotSpec, rows: PlotRows) -> DrawnPlot:
    c = discriminants.positive_class(drawable, _positive(spec))
    batches = [(log_odds(log_p, c), codes) for log_p, codes in rows.posteriors(drawable)]
    values, codes = (np.concatenate([batch[i] for batch in batches]) for i in (0, 1))
    ax = discriminants.draw(drawable.labels, c, values, codes, kind=spec.kind)
    wrong = int(((values > 0) != (codes == c)).sum())
    return ax, {"rows": len(codes), "positive": drawable.labels[c], "errors": wrong}


def _calibration(drawable: Drawable, spec: PlotSpec, rows: PlotRows) -> DrawnPlot:
    positive = _positive(spec)
    c = None if positive is None else drawable.class_code(positive)
    parts = [predicted_and_observed(np.exp(log_p), codes, c) for log_p, codes in rows.posteriors(drawable)]
    p, truth = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    ax = quality.draw_calibration(p, truth, quality.calibrated_class_name(drawable.labels, c), spec.bins)
    return ax, {"rows": len(p), "bins": spec.bins}


def _confusion(drawable: Drawable, spec: PlotSpec, rows: PlotRows) -> DrawnPlot:
    k = len(drawable.labels)
    parts = [confusion_matrix(codes, log_p.argmax(axis=1), k) for log_p, codes in rows.posteriors(drawable)]
    matrix = sum(parts, start=np.zeros((k, k), np.intp))
    facts = {"rows": int(matrix.sum()), "confusion": matrix.tolist()}
    return quality.draw_confusion(matrix, drawable.labels, normalise=spec.normalise), facts


def _draw_threshold_curve(draw: Callable) -> Callable[..., DrawnPlot]:
    def drawn(drawable: Drawable, spec: PlotSpec, rows: PlotRows) -> DrawnPlot:
        parts = [Scores.from_log_posterior(log_p, codes) for log_p, codes in rows.posteriors(drawable) if len(codes)]
        if not parts:
            raise InputError(f"no row has a class; {spec.plot_name} is drawn of rows whose class is known")
        scores = reduce(add, parts)
        found = {name: value for name, value in scores.metrics().items() if name in _THRESHOLD_METRICS}
        return draw(drawable, scores, _positive(spec)), {"rows": int(scores.n), **found}

    return drawn


def _positive(spec: PlotSpec) -> Any:
    if len(spec.classes) > 1:
        raise InputError(f"{spec.plot_name}: name one class, not {len(spec.classes)}")
    return spec.classes[0] if spec.classes else None


PLOTS: dict[str, Callable[..., DrawnPlot]] = {
    "densities": _densities,
    "regions": _draw_plane(_regions),
    "surface": _draw_plane(_surface),
    "ellipses": _draw_plane(_ellipses, is_gaussian, "gaussian columns"),
    "means": _means,
    "discriminant": _discriminant,
    "calibration": _calibration,
    "confusion": _confusion,
    "roc": _draw_threshold_curve(threshold_curves.draw_roc),
    "pr": _draw_threshold_curve(threshold_curves.draw_precision_recall),
    "lift": _draw_threshold_curve(threshold_curves.draw_lift),
    "coverage": _draw_threshold_curve(threshold_curves.draw_coverage),
    "thresholds": _draw_threshold_curve(threshold_curves.draw_thresholds),
    "network": _network,
    "term": _term,
    "nomogram": _nomogram,
}
_PLOTS_OF_ROWS = ("discriminant", "calibration", "confusion", "roc", "pr", "lift", "coverage", "thresholds")
_THRESHOLD_METRICS = ("accuracy", "auc", "average_precision")
