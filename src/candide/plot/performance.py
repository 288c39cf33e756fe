"""Performance on labelled rows: calibration, the confusion matrix, and the discriminant with its errors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.labels import Labels
from candide.errors import InputError, unknown_name_error
from candide.metrics import curves as scoring
from candide.plot import style
from candide.plot.drawable import Drawable

_MAX_NUMBERED_CLASSES = 20  # of a confusion matrix with all numbers; up to twice as many, with those above 0
_INFINITE_MARGIN = 1.08  # an infinite discriminant is drawn this far beyond the largest finite one
_MAX_BARS = 2000
_MAX_STRIP_ROWS = 2000  # of more rows, points would hide each other
_BINS = 60
_ERROR = "error"
DISCRIMINANT = "a discriminant is between two classes"  # why a class is to be named
# Beyond the first, the axis is logarithmic outside the second, so that small discriminants stay apart.
_SYMLOG_FROM, _LINEAR_RANGE = 60.0, 10.0


def calibration(
    model_or_probabilities: Any, X: Any, y: Any, *, ax: Any = None, bins: int = 10, positive: Any = None
) -> Any:
    """Draw the observed frequency against the predicted probability, in bins of equal width.

    With two classes it is the probability of the second, or of ``positive``; with more, without ``positive``, that of
    the most probable class. Instead of a model, probabilities may be given with ``X=None``: of the positive class
    (rows,), or of all classes in their order (rows, classes).

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = calibration(FittedModel(garden()), *garden_rows(200, seed=0))
    >>> len(ax.lines) > 0
    True
    """
    if not isinstance(bins, int | np.integer) or bins < 1:
        raise InputError(f"bins: {bins!r}; pass a whole number of 1 or more")
    if X is None:
        p, truth, name = _check_probabilities(model_or_probabilities, y, positive)
    else:
        drawable = Drawable.from_model(model_or_probabilities)
        posterior = drawable.fitted.posterior(drawable.read_table(X))
        c = None if positive is None else drawable.class_code(positive)
        p, truth = scoring.predicted_and_observed(posterior, drawable.label_codes(y, len(posterior)), c)
        name = assessed_class_name(drawable.labels, c)
    return draw_calibration(p, truth, name, bins, ax)


def assessed_class_name(labels: Any, c: int | None) -> str:
    """Return the name of the class whose probability is assessed; empty for the most probable."""
    c = scoring.assessed_class(len(labels), c)
    return "" if c is None else str(labels[c])


def _check_probabilities(probabilities: Any, y: Any, positive: Any) -> tuple[NDArray, NDArray, str]:
    try:
        p = np.asarray(probabilities, np.float64)
    except (TypeError, ValueError):
        raise InputError("X=None goes with probabilities, not with a model; pass the rows to score it on") from None
    labels = Labels.from_values(y)
    codes, k = np.asarray(labels.encode(y)), len(labels)
    if p.ndim not in (1, 2) or len(p) != len(codes):
        n = formatting.format_count(len(codes), "label")
        raise InputError(f"probabilities of shape {p.shape} and {n}; pass one row of them per label")
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError("probabilities must lie between 0 and 1")
    if positive is not None and positive not in labels.values:
        raise unknown_name_error("class", positive, labels.values)
    c = None if positive is None else labels.values.index(positive)
    if p.ndim == 1:
        if k > 2 and c is None:
            raise InputError(f"one probability per row, and {k} classes in y; name its class: positive=...")
        c = k - 1 if c is None else c
        return p, codes == c, str(labels.values[c])
    if p.shape[1] != k:
        raise InputError(f"probabilities of {p.shape[1]} classes, and {k} classes in y; pass the model instead")
    return *scoring.predicted_and_observed(p, codes, c), assessed_class_name(labels.values, c)


def draw_calibration(p: NDArray, truth: NDArray, class_name: str, bins: int, ax: Any = None) -> Any:
    """Draw predicted probabilities against outcomes; ``class_name`` is empty for the most probable class."""
    if not len(p):
        raise InputError("no row has a class; calibration is drawn of rows whose class is known")
    curve, width = scoring.Calibration.from_probabilities(p, truth, bins), 1.0 / bins
    ax = style.get_axes(ax)
    middle = curve.edges[curve.bin_index] + width / 2
    ax.bar(middle, curve.row_fraction, width * 0.92, color=style.LIGHT, label="proportion of rows", zorder=1)
    style.add_reference(ax, "perfectly calibrated")
    low, high = curve.confidence_limits()
    ax.errorbar(
        curve.mean_predicted, curve.observed_frequency, color=style.colour(0), marker="o", markersize=5,
        yerr=[curve.observed_frequency - low, high - curve.observed_frequency],
        linewidth=1.5, elinewidth=0.9, capsize=2, label="observed, 95% interval", zorder=3,
    )  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    name = style.shorten(class_name, 20) if class_name else "most probable class"
    style.format_axes(ax, f"predicted p({name} | x)", f"observed frequency of {name}" if class_name else "accuracy")
    return style.add_legend(ax)


def confusion(model: Any, X: Any, y: Any, *, ax: Any = None, normalise: bool = False) -> Any:
    """Draw the confusion matrix: true classes down, predicted classes across.

    The shade is the proportion of the true class; the numbers are rows, or with ``normalise`` these proportions.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = confusion(FittedModel(garden()), *garden_rows(200, seed=0))
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['lavender', 'sage', 'thyme']
    """
    drawable = Drawable.from_model(model)
    table, labels = drawable.read_table(X), drawable.fitted.labels
    codes = drawable.label_codes(y, table.n_rows)
    predicted = np.asarray(labels.encode(drawable.fitted.classify(table)))
    matrix = scoring.confusion_matrix(codes, predicted, len(labels))
    return draw_confusion(matrix, labels.values, ax=ax, normalise=normalise)


def draw_confusion(matrix: NDArray, labels: Any, *, ax: Any = None, normalise: bool = False) -> Any:
    k = len(labels)
    side = float(np.clip(2.4 + 0.4 * k, 3.6, 12.0))
    ax = style.get_axes(ax, size=(side + 1.2, side))
    total = matrix.sum(axis=1, keepdims=True)
    proportions = matrix / np.where(total > 0, total, 1)
    image = ax.imshow(proportions, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for axis in "xy":
        style.label_ticks(ax, axis, labels, 16)
    for (i, j), value in np.ndenumerate(proportions if normalise else matrix):
        if k <= _MAX_NUMBERED_CLASSES or (value and k <= 2 * _MAX_NUMBERED_CLASSES):
            text = f"{value:.2f}".lstrip("0") if normalise and 0 < value < 1 else f"{value:,.10g}"
            size = float(np.clip(11 - 0.2 * k - 0.5 * max(0, len(text) - 4), 6, 10))
            colour = "white" if proportions[i, j] > 0.55 else style.DARK if value else "#a0a0a0"
            ax.text(j, i, text, ha="center", va="center", fontsize=size, color=colour)
    style.format_axes(ax, "predicted class", "true class", grid=False)
    style.separate_cells(ax, k, k)
    style.add_colorbar(ax, image, "proportion of the true class", fraction=0.05, pad=0.03)
    return ax


def discriminant(model: Any, X: Any, y: Any, *, ax: Any = None, kind: str | None = None, positive: Any = None) -> Any:
    """Draw the discriminant log p(1 | x) / p(0 | x) of every row by true class, the errors marked in black.

    ``kind`` is "strip", a point per row; "histogram", each class with its own scale; or "bars", sorted. By default it
    is a strip of up to 2000 rows, and a histogram of more. ``positive`` is the class above 0, by default the second of
    two; it may also be one of many, against all others together.

    >>> import candide as cd
    >>> X, y = [[1.0], [2.0], [8.0], [9.0]], ["low", "low", "top", "top"]
    >>> ax = discriminant(cd.NaiveBayes().fit(X, y), X, y)
    >>> ax.get_title(loc="left")
    '0 errors in 4'
    """
    drawable = Drawable.from_model(model)
    c, joint = drawable.positive_class(positive, DISCRIMINANT), drawable.joint_log_likelihood(X)
    codes = drawable.label_codes(y, len(joint))
    return draw_discriminant(drawable.labels, c, scoring.log_odds_of_class(joint, c), codes, ax=ax, kind=kind)


def draw_discriminant(
    labels: Any, c: int, odds: NDArray, codes: NDArray, *, ax: Any = None, kind: str | None = None
) -> Any:
    """Draw discriminants of labelled rows; rows without a class are left out."""
    if kind is not None and kind not in _KINDS:
        raise unknown_name_error("kind", kind, _KINDS)
    odds, codes = odds[codes >= 0], codes[codes >= 0]
    if not len(odds):
        raise InputError("no row has a class; the discriminant is drawn of rows whose class is known")
    limit = _INFINITE_MARGIN * float(np.abs(odds[np.isfinite(odds)]).max(initial=0.0)) or 1.0
    is_wrong, is_symlog = (odds > 0) != (codes == c), limit > _SYMLOG_FROM
    kind = kind or ("strip" if len(odds) <= _MAX_STRIP_ROWS else "histogram")
    is_bars = kind == "bars"
    ax = style.get_axes(ax, size=(7.0, 4.0) if is_bars else (7.0, min(3.0 + 0.1 * len(labels), 11.0)))
    if is_symlog:
        from matplotlib.ticker import FuncFormatter, NullLocator

        axis = ax.yaxis if is_bars else ax.xaxis
        set_scale = ax.set_yscale if is_bars else ax.set_xscale
        set_scale("symlog", linthresh=_LINEAR_RANGE, linscale=1.0)
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
        axis.set_minor_locator(NullLocator())
    _KINDS[kind](ax, labels, codes, np.clip(odds, -limit, limit), is_wrong)
    names = style.shorten_names(labels, 16)
    other = names[1 - c] if len(names) == 2 else f"not {names[c]}"
    title = f"log p({names[c]} | x) / p({other} | x)"
    title += f"\n(logarithmic beyond ±{_LINEAR_RANGE:g})" if is_symlog else ""
    style.format_axes(ax, *(("test cases, sorted", title) if is_bars else (title, "true class")))
    errors = f"{formatting.format_count(int(is_wrong.sum()), 'error')} in {len(odds)}"
    errors += "; the farthest are infinite" if np.isinf(odds).any() else ""
    ax.set_title(errors, fontsize="medium", loc="left")
    handles = ax.get_legend_handles_labels()[0]
    if len(labels) > (style.MAX_COLOURS if is_bars else style.MAX_LEGEND_CLASSES):  # rows are labelled in place
        handles = [handle for handle in handles if handle.get_label() == _ERROR]
    return style.add_legend(ax, sorted(handles, key=lambda handle: handle.get_label() == _ERROR))


def _draw_strip(ax: Any, labels: Any, codes: NDArray, odds: NDArray, is_wrong: NDArray) -> None:
    """Draw a row for each class; points are spread up and down so that they do not hide each other."""
    spread, is_many = np.empty(len(odds)), len(odds) > _MAX_STRIP_ROWS
    how: dict[str, Any] = {"s": float(np.clip(4000 / len(odds), 6, 30)), "linewidths": 0.3, "zorder": 2}
    how |= {"alpha": 0.3, "edgecolors": "none"} if is_many else {"alpha": 0.85, "edgecolors": style.DARK}
    for i, label in enumerate(style.shorten_names(labels)):
        rows = np.flatnonzero(codes == i)
        if len(rows):
            order = rows[np.argsort(odds[rows], kind="stable")]
            spread[order] = (np.arange(len(order)) * 0.618034) % 1.0 * 0.56 - 0.28  # the golden ratio: even, no pattern
            at = odds[rows], i + spread[rows]
            ax.scatter(*at, color=style.colour(i), marker=style.marker(i), label=label, **how)
    _mark_errors(ax, odds[is_wrong], codes[is_wrong] + spread[is_wrong], 70)
    _label_rows(ax, labels)


def _draw_histogram(ax: Any, labels: Any, codes: NDArray, odds: NDArray, is_wrong: NDArray) -> None:
    """Draw a row for each class: bins of equal width on the axis, one of which ends at 0."""
    scale = ax.xaxis.get_transform()
    at = scale.transform(odds)
    step = float(np.ptp(at)) / _BINS or 1.0
    bins = step * np.arange(np.floor(at.min() / step), np.floor(at.max() / step) + 2)
    at, edges = np.clip(at, bins[0], bins[-1]), scale.inverted().transform(bins)
    how = {"x": edges[:-1], "width": np.diff(edges), "align": "edge", "zorder": 2}
    error_label: str | None = _ERROR  # once in the legend
    for i, label in enumerate(style.shorten_names(labels)):
        right, wrong = (np.histogram(at[(codes == i) & (is_wrong == w)], bins)[0] for w in (False, True))
        unit = -0.8 / max((right + wrong).max(), 1)  # the axis points down
        ax.bar(height=unit * right, bottom=i + 0.4, color=style.colour(i), label=label, **how)
        if wrong.any():
            ax.bar(height=unit * wrong, bottom=i + 0.4 + unit * right, color="black", label=error_label, **how)
            error_label = None
    _label_rows(ax, labels)


def _label_rows(ax: Any, labels: Any) -> None:
    ax.axvline(0.0, color=style.DARK, linewidth=1.0, zorder=1)
    ax.set_ylim(len(labels) - 0.5, -0.5)
    style.label_ticks(ax, "y", labels, 16)


def _mark_errors(ax: Any, x: NDArray, y: NDArray, max_size: float) -> None:
    """Draw a cross for each error, smaller where there are more."""
    if len(x):
        size = float(np.clip(10_000 / len(x), 6, max_size))
        width = 1.6 if size > 20 else 0.6
        ax.scatter(x, y, s=size, label=_ERROR, marker="x", color="black", linewidths=width, zorder=3)


def _draw_bars(ax: Any, labels: Any, codes: NDArray, odds: NDArray, is_wrong: NDArray) -> None:
    order = np.argsort(odds, kind="stable")
    if len(order) > _MAX_BARS:  # a part of them, with every error
        is_kept = np.zeros(len(order), bool)
        is_kept[np.linspace(0, len(order) - 1, _MAX_BARS).astype(int)] = True
        order = order[is_kept | is_wrong[order]]
    at, width = np.arange(len(order)), 0.9 if len(order) <= 80 else 1.0  # thin gaps between many bars would flicker
    for i, label in enumerate(style.shorten_names(labels)):
        rows = codes[order] == i
        if rows.any():
            ax.bar(at[rows], odds[order][rows], width, color=style.colour(i), label=label, zorder=2)
    wrong = is_wrong[order]
    _mark_errors(ax, at[wrong], odds[order][wrong], 45)
    ax.axhline(0.0, color=style.DARK, linewidth=1.0, zorder=1)
    ax.set_xlim(-1, len(order))


_KINDS = {"strip": _draw_strip, "histogram": _draw_histogram, "bars": _draw_bars}
