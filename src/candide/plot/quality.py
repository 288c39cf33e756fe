"""How far probabilities can be trusted, and which classes are taken for which.

>>> ax = draw_confusion(np.array([[3, 1], [0, 4]]), ["a", "b"])
>>> ax.get_xlabel(), ax.get_ylabel()
('predicted class', 'true class')
>>> ax.figure.clear()
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.labels import Labels
from candide.errors import InputError, unknown_name_error
from candide.metrics import calibration as scoring
from candide.plot import axis_text, style
from candide.plot.drawable import Drawable

_MAX_NUMBERED_CLASSES = 20  # classes up to which a confusion matrix shows all numbers, and twice as many those above 0


def calibration(
    model_or_probabilities: Any, X: Any, y: Any, *, ax: Any = None, bins: int = 10, positive: Any = None
) -> Any:
    """Stated probability against how often it came true, in bins of equal width; on the diagonal the model is honest.

    Of two classes it is the probability of the second, or of ``positive``; of more, without ``positive``, that of the
    most probable class, and how often that is the true one. Instead of a model, probabilities may be given with
    ``X=None``: of the positive class (rows,), or of all classes in their order (rows, classes).

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> model, (plants, herb) = FittedModel(garden()), garden_rows(200, seed=0)
    >>> ax = calibration(model, plants, herb)
    >>> len(ax.lines) > 0
    True
    >>> ax.figure.clear()
    """
    if not isinstance(bins, int | np.integer) or bins < 1:
        raise InputError(f"bins: {bins!r}; pass a whole number of 1 or more")
    if X is None:
        p, truth, what = _check_probabilities(model_or_probabilities, y, positive)
    else:
        drawable = Drawable.from_model(model_or_probabilities)
        posterior = drawable.fitted.posterior(drawable.read_table(X))
        c = None if positive is None else drawable.class_code(positive)
        p, truth = scoring.predicted_and_observed(posterior, drawable.label_codes(y, len(posterior)), c)
        what = calibrated_class_name(drawable.labels, c)
    return draw_calibration(p, truth, what, bins, ax)


def calibrated_class_name(labels: Any, c: int | None) -> str:
    """The name of the class whose probability is judged; empty for the most probable."""
    c = scoring.assessed_class(len(labels), c)
    return "" if c is None else str(labels[c])


def _check_probabilities(probabilities: Any, y: Any, positive: Any) -> tuple[NDArray, NDArray, str]:
    try:
        p = np.asarray(probabilities, np.float64)
    except (TypeError, ValueError):
        raise InputError("X=None goes with probabilities, not with a model; pass the rows to judge it on") from None
    labels = Labels.from_values(y)
    codes = np.asarray(labels.encode(y))
    if p.ndim not in (1, 2) or len(p) != len(codes):
        raise InputError(
            f"probabilities of shape {p.shape} and {formatting.format_count(len(codes), 'label')}; "
            "pass one row of them a label"
        )
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError("probabilities must lie between 0 and 1")
    if positive is not None and positive not in labels.values:
        raise unknown_name_error("class", positive, labels.values)
    if p.ndim == 1:
        truth = codes == (len(labels) - 1 if positive is None else labels.values.index(positive))
        if len(labels) > 2 and positive is None:
            raise InputError(f"one probability a row, and {len(labels)} classes in y; say whose it is: positive=...")
        return p, truth, str(labels.values[-1] if positive is None else positive)
    if p.shape[1] != len(labels):
        raise InputError(
            f"probabilities of {p.shape[1]} classes, and {len(labels)} classes in y; pass the model instead"
        )
    c = None if positive is None else labels.values.index(positive)
    return *scoring.predicted_and_observed(p, codes, c), calibrated_class_name(labels.values, c)


def draw_calibration(p: NDArray, truth: NDArray, class_name: str, bins: int, ax: Any = None) -> Any:
    """Draw stated probabilities against what came true; ``what`` names the class, or is empty for the winner's."""
    if not len(p):
        raise InputError("no row has a class; calibration is judged on rows whose class is known")
    curve = scoring.Calibration.from_probabilities(p, truth, bins)
    ax = style.get_axes(ax)
    width = 1.0 / bins
    middle = curve.edges[curve.bin_index] + width / 2
    ax.bar(middle, curve.row_fraction, width * 0.92, color=style.LIGHT, label="share of the rows", zorder=1)
    ax.plot([0, 1], [0, 1], color=style.DARK, linewidth=1.0, linestyle=":", label="honest", zorder=2)
    low, high = curve.confidence_limits()
    reach = [curve.observed_frequency - low, high - curve.observed_frequency]
    ax.errorbar(
        curve.mean_predicted, curve.observed_frequency, yerr=reach, color=style.colour(0), marker="o", markersize=5,
        linewidth=1.5, elinewidth=0.9, capsize=2, label="observed, 95 % limits", zorder=3,
    )  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    name = axis_text.shorten(class_name, 20)
    x = f"stated p({name} | x)" if class_name else "stated p(most probable class | x)"
    style.format_axes(ax, x, f"share that is {name}" if class_name else "share that is right")
    style.add_legend(ax)
    return ax


def confusion(model: Any, X: Any, y: Any, *, ax: Any = None, normalise: bool = False) -> Any:
    """True classes down, predicted classes across; the shade is the share of the true class, as is the number where
    ``normalise``, else it is the number of rows.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> model, (plants, herb) = FittedModel(garden()), garden_rows(200, seed=0)
    >>> ax = confusion(model, plants, herb)
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['lavender', 'sage', 'thyme']
    >>> ax.figure.clear()
    """
    drawable = Drawable.from_model(model)
    codes = drawable.label_codes(y, drawable.read_table(X).n_rows)
    predicted = np.asarray(drawable.fitted.labels.encode(drawable.fitted.classify(drawable.read_table(X))))
    matrix = scoring.confusion_matrix(codes, predicted, len(drawable.labels))
    return draw_confusion(matrix, drawable.labels, ax=ax, normalise=normalise)


def draw_confusion(matrix: NDArray, labels: Any, *, ax: Any = None, normalise: bool = False) -> Any:
    """Draw a confusion matrix (true class, predicted class)."""
    k = len(labels)
    side = float(np.clip(2.4 + 0.4 * k, 3.6, 12.0))
    ax = style.get_axes(ax, size=(side + 1.2, side))
    total = matrix.sum(axis=1, keepdims=True)
    share = matrix / np.where(total > 0, total, 1)
    image = ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axis_text.label_ticks(ax, "x", labels, 16)
    axis_text.label_ticks(ax, "y", labels, 16)
    for (i, j), value in np.ndenumerate(share if normalise else matrix):
        if k <= _MAX_NUMBERED_CLASSES or (value and k <= 2 * _MAX_NUMBERED_CLASSES):
            _write_cell(ax, i, j, value, float(share[i, j]), normalise, k)
    style.format_axes(ax, "predicted class", "true class", grid=False)
    ax.set_xticks(np.arange(k - 1) + 0.5, minor=True)
    ax.set_yticks(np.arange(k - 1) + 0.5, minor=True)
    ax.grid(True, which="minor", color="white", linewidth=0.8)
    ax.tick_params(which="minor", length=0)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.03)
    bar.set_label("share of the true class")
    bar.outline.set_visible(False)
    return ax


def _write_cell(ax: Any, i: int, j: int, value: float, share: float, normalise: bool, k: int) -> None:
    text = f"{value:.2f}".lstrip("0") if normalise and 0 < value < 1 else f"{value:,.10g}"
    size = float(np.clip(11 - 0.2 * k - 0.5 * max(0, len(text) - 4), 6, 10))
    tone = "white" if share > 0.55 else style.DARK if value else "#a0a0a0"
    ax.text(j, i, text, ha="center", va="center", fontsize=size, color=tone)
