"""Plots by name, from a model alone or with a source of rows, and into a file: what the command line draws."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.data.table import Name
from candide.data.text_columns import days_to_temporal
from candide.engines.base import Source, Watch, no_progress, open_source
from candide.engines.batches import iterate_columns
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import SkippedRows, TrueClasses, prepare_to_score, score_labelled
from candide.errors import InputError, unknown_name_error
from candide.files import check_output, write_atomically
from candide.metrics.curves import confusion_matrix, log_odds_of_class, predicted_and_observed
from candide.metrics.scores import Scores
from candide.model.fitted import FittedModel
from candide.model.plan import Plan
from candide.plot import contributions, performance, style, threshold_curves
from candide.plot.drawable import Drawable
from candide.plot.features import class_means, densities, figure_height, suggest_shape
from candide.plot.graph import network
from candide.plot.planes import ellipses, is_gaussian, posterior_surface, regions


class ImageFormat(NamedTuple):
    """The metadata of an image file, without a date, and the bytes that mark it as Candide's."""

    metadata: dict[str, str | None]
    marker: bytes


IMAGE_FORMATS = {
    "png": ImageFormat({"Software": "Candide"}, b"Software\0Candide"),
    "svg": ImageFormat({"Creator": "Candide", "Date": None}, b"<dc:title>Candide</dc:title>"),
    "pdf": ImageFormat({"Creator": "Candide", "CreationDate": None}, b"/Creator (Candide)"),
}
_MAX_PANELS = 6  # densities drawn where no feature is named
_THRESHOLD_METRICS = ("accuracy", "auc", "average_precision")
DrawnPlot = tuple[Any, dict[str, Any]]  # axes, and what was drawn


@dataclass(frozen=True)
class PlotSpec:
    plot_name: str
    features: tuple[Any, ...] = ()
    classes: tuple[Any, ...] = ()
    shape: tuple[int, ...] | None = None
    kind: str | None = None  # "strip" | "histogram" | "bars" of a discriminant, "surface" | "contour" of a surface
    bins: int = 10
    normalise: bool = False

    @property
    def positive(self) -> Any:
        if len(self.classes) > 1:
            raise InputError(f"{self.plot_name}: name one class, not {len(self.classes)}")
        return self.classes[0] if self.classes else None


@dataclass(frozen=True)
class PlotRows:
    """A source, the column of the labels, and how it is read."""

    data: Any
    target: str | None = None
    reading: ReadOptions | None = None
    progress: Watch = no_progress

    @contextmanager
    def _open(self, fitted: FittedModel, action: str) -> Iterator[Source]:
        with open_source(self.data, make_read_options(fitted, self.reading)) as source, self.progress(source, action):
            yield source

    def columns(self, fitted: FittedModel, features: Sequence[Name]) -> tuple[dict[Name, Any], NDArray | None]:
        """Return columns of all rows, and class codes, -1 where missing; None where there is no column of labels.

        A warning counts the rows without a class, or with one that the model does not have.
        """
        with self._open(fitted, "reading") as source:
            target = self.target or fitted.target
            if self.target is not None and self.target not in source.columns:
                raise unknown_name_error("target", self.target, source.columns)
            return _read_columns(source, fitted, features, target if target in source.columns else None)

    def posteriors(self, fitted: FittedModel) -> Iterator[tuple[NDArray, NDArray]]:
        """Yield log p(class | x), (row, class), and class codes, in batches, of the rows that have a known class."""
        with self._open(fitted, "scoring") as source:
            target: Any = self.target or fitted.target
            if target is None:
                raise InputError("the model has no target column; name the column of labels: --target COL")
            if target not in source.columns:
                raise unknown_name_error("target", target, source.columns)
            scored = score_labelled(source, fitted, target, lambda log_posterior, y, _: (log_posterior, y))
            yield from scored.results
        scored.skipped_rows.warn(target, stacklevel=3)


def _read_columns(
    source: Source, fitted: FittedModel, features: Sequence[Name], target: str | None
) -> tuple[dict[Name, Any], NDArray | None]:
    import pyarrow as pa

    for name in features:
        if str(name) not in source.columns:
            raise unknown_name_error(f"column in {source.name}:", str(name), source.columns)
    parts = []
    for part in fitted.plan.parts:
        at = [j for j, name in enumerate(() if part.is_joint_term else part.columns) if name in features]
        if at:
            selected = part.select_features(at)
            parts.append(replace(part, columns=selected.columns, encodings=selected.encodings))
    plan = Plan(tuple(features), tuple(parts))
    prepare_to_score(source, plan, fitted, target)
    scan = source.engine.score(source, plan, [target] if target else [], codes=False)
    table = pa.Table.from_batches(scan.batches, scan.schema).combine_chunks()
    columns: dict[Name, Any] = {}
    for i, (part, j) in enumerate(iterate_columns(plan)):
        name, column = part.columns[j], table.column(i).combine_chunks()
        if part.block_kind != "codes" or not part.encodings[j].is_read_as_text:
            column = column.to_numpy(zero_copy_only=False)
            if kind := source.temporal_kind(str(name)):
                column = days_to_temporal(column, kind)
        columns[name] = column
    if target is None:
        return columns, None
    truth, skipped = TrueClasses.from_column(fitted.labels, table.column("k0")), SkippedRows(fitted.labels)
    skipped.add(truth)
    skipped.warn(target, stacklevel=3)
    return columns, np.where(truth.is_known, truth.codes, -1)


def draw_plot(model: Any, spec: PlotSpec, rows: PlotRows | None = None) -> tuple[Any, dict[str, Any]]:
    """Return the figure, and what it shows."""
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
    """Write a figure completely or not at all, in the format of the file's ending, and return the format.

    A file that is not a picture of Candide is overwritten only with ``force``.
    """
    ending = image_format(path)
    check_output(path, is_own_file=is_candide_image, force=force)
    with style.import_matplotlib().rc_context({"svg.hashsalt": "candide"}):  # the same picture is the same file
        image = style.render_figure(figure, format=ending, dpi=dpi, metadata=IMAGE_FORMATS[ending].metadata)
    write_atomically(path, [image])
    return ending


def image_format(path: str | os.PathLike) -> str:
    ending = os.path.splitext(os.fspath(path))[1].lstrip(".").lower()
    if ending not in IMAGE_FORMATS:
        raise unknown_name_error("format of a picture", ending, IMAGE_FORMATS)
    return ending


def is_candide_image(path: str) -> bool:
    with open(path, "rb") as file:
        return IMAGE_FORMATS[image_format(path)].marker in file.read()


def _densities(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    names = [drawable.resolve_column(f) for f in spec.features]
    names = names or drawable.strongest_columns[:_MAX_PANELS] or list(drawable.columns[:1])
    X, y, n = _read(drawable, rows, [name for name in names if drawable.part_of(name)[1].block_kind != "documents"])
    is_few = len(drawable.labels) <= style.MAX_LEGEND_CLASSES
    size = (5.4, 3.2) if is_few else (5.4, figure_height(len(drawable.labels)))
    axes = style.make_axes(len(names), 2, size) if len(names) > 1 else [style.get_axes()]
    for ax, name in zip(axes, names, strict=True):
        densities(drawable, X, y, feature=name, ax=ax)
    if len(axes) > 1 and is_few:
        style.share_legend(axes, drawable.labels)
    return axes, {"features": names, "rows": n}


def _read(drawable: Drawable, rows: PlotRows | None, names: Any) -> tuple[Any, Any, int | None]:
    if rows is None or not names:
        return None, None, None
    X, codes = rows.columns(drawable.fitted, names)
    y = None if codes is None else [None if c < 0 else drawable.labels[c] for c in codes.tolist()]
    return X, y, len(next(iter(X.values())))


def _plane(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    note: dict[str, str] = {}
    if spec.features or len(drawable.columns) <= 2:
        names = drawable.resolve_column_pair(spec.features or None)
    elif spec.plot_name == "ellipses":
        names, note["note"] = drawable.two_strongest_columns(is_gaussian, "gaussian columns")
    else:
        names, note["note"] = drawable.two_strongest_columns(lambda *_: True, "columns of numbers")
    X, y, n = _read(drawable, rows, names)
    if spec.plot_name == "surface":
        how: Any = {"classes": spec.classes or None, "kind": spec.kind or "surface"}
        ax = posterior_surface(drawable, X, features=names, difference=len(spec.classes) != 1, **how)
    else:
        ax = (regions if spec.plot_name == "regions" else ellipses)(drawable, X, y, features=names)
    return ax, {"features": list(names), "rows": n, **note}


def _means(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    if spec.shape is None:
        n = len(drawable.columns)
        raise InputError(
            f"means: this picture is for images, whose columns are pixels; if the {n} columns of this model are, pass "
            f"their rows and columns: --shape {suggest_shape(n)}; or draw densities, regions, ellipses or network"
        )
    return class_means(drawable, spec.shape, classes=spec.classes or None), {"shape": list(spec.shape)}


def _network(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    return network(drawable, features=spec.features or None), {"features": list(spec.features) or None}


def _term(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    name: Any = spec.features[0] if len(spec.features) == 1 else spec.features or None
    term = contributions.find_term(drawable, name)
    facts = {"term": term.title, "features": list(term.columns), "weight": term.weight, "rows": None}
    return contributions.draw_term(drawable, term, spec.positive), facts


def _nomogram(drawable: Drawable, spec: PlotSpec, rows: PlotRows | None) -> DrawnPlot:
    c = drawable.positive_class(spec.positive)
    names = [drawable.resolve_column(f) for f in spec.features]
    lines = contributions.nomogram_lines(drawable, c, names or None)
    facts = {"features": [line.name for line in lines], "positive": drawable.labels[c], "rows": None}
    return contributions.draw_nomogram(drawable, c, lines), facts


def _concatenate(pairs: Iterator[tuple[NDArray, NDArray]]) -> tuple[NDArray, NDArray]:
    first, second = zip(*pairs, strict=True)
    return np.concatenate(first), np.concatenate(second)


def _discriminant(drawable: Drawable, spec: PlotSpec, rows: PlotRows) -> DrawnPlot:
    c, posteriors = drawable.positive_class(spec.positive, performance.DISCRIMINANT), rows.posteriors(drawable.fitted)
    odds, codes = _concatenate((log_odds_of_class(log_p, c), codes) for log_p, codes in posteriors)
    ax = performance.draw_discriminant(drawable.labels, c, odds, codes, kind=spec.kind)
    errors = int(((odds > 0) != (codes == c)).sum())
    return ax, {"rows": len(codes), "positive": drawable.labels[c], "errors": errors}


def _calibration(drawable: Drawable, spec: PlotSpec, rows: PlotRows) -> DrawnPlot:
    c, posteriors = None, rows.posteriors(drawable.fitted)
    if spec.positive is not None:
        c = drawable.class_code(spec.positive)
    p, truth = _concatenate(predicted_and_observed(np.exp(log_p), codes, c) for log_p, codes in posteriors)
    ax = performance.draw_calibration(p, truth, performance.assessed_class_name(drawable.labels, c), spec.bins)
    return ax, {"rows": len(p), "bins": spec.bins}


def _confusion(drawable: Drawable, spec: PlotSpec, rows: PlotRows) -> DrawnPlot:
    k, posteriors = len(drawable.labels), rows.posteriors(drawable.fitted)
    matrices = (confusion_matrix(codes, log_p.argmax(axis=1), k) for log_p, codes in posteriors)
    matrix = sum(matrices, start=np.zeros((k, k), np.intp))
    facts = {"rows": int(matrix.sum()), "confusion": matrix.tolist()}
    return performance.draw_confusion(matrix, drawable.labels, normalise=spec.normalise), facts


def _threshold_curve(draw: Callable, drawable: Drawable, spec: PlotSpec, rows: PlotRows) -> DrawnPlot:
    posteriors = rows.posteriors(drawable.fitted)
    parts = [Scores.from_log_posterior(log_p, codes) for log_p, codes in posteriors if len(codes)]
    if not parts:
        raise InputError(f"no row has a class; {spec.plot_name} is drawn of rows whose class is known")
    scores = reduce(add, parts)
    metrics = {name: value for name, value in scores.metrics().items() if name in _THRESHOLD_METRICS}
    how = {} if spec.plot_name == "coverage" else {"positive": spec.positive}
    return draw(drawable, scores, **how), {"rows": int(scores.n), **metrics}


_PLOTS_OF_ROWS: dict[str, Callable[..., DrawnPlot]] = {
    "discriminant": _discriminant,
    "calibration": _calibration,
    "confusion": _confusion,
    "roc": partial(_threshold_curve, threshold_curves.roc),
    "pr": partial(_threshold_curve, threshold_curves.precision_recall),
    "lift": partial(_threshold_curve, threshold_curves.lift),
    "coverage": partial(_threshold_curve, threshold_curves.coverage),
    "thresholds": partial(_threshold_curve, threshold_curves.thresholds),
}
PLOTS: dict[str, Callable[..., DrawnPlot]] = {
    "densities": _densities,
    "regions": _plane,
    "surface": _plane,
    "ellipses": _plane,
    "means": _means,
    **_PLOTS_OF_ROWS,
    "network": _network,
    "term": _term,
    "nomogram": _nomogram,
}
