"""Curves over all thresholds, of a model with labelled rows or of a cross-validation, which has scored its own."""

from typing import Any

import numpy as np

from candide.errors import InputError
from candide.metrics import curves
from candide.metrics.scores import Scores
from candide.model.model import Model
from candide.plot import style
from candide.plot.drawable import Drawable
from candide.validation.cross_validation import Validation

_MAX_POINTS = 2000  # of a line
_GREY = "#b8b8b8"
_COVERAGE_MARKS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)  # thresholds that are marked
_MIN_ROWS = 20  # decided rows of a point; the accuracy of fewer varies too much


def roc(model: Any, X: Any = None, y: Any = None, *, ax: Any = None, positive: Any = None) -> Any:
    """Draw the true positive rate against the false positive rate, at every threshold.

    With two classes it is that of the second, or of ``positive``; with more, a line for each class against the others.
    With more than eight classes those with the lowest areas have a colour and a name, and the others are grey.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = roc(FittedModel(garden()), *garden_rows(200, seed=0))
    >>> [text.get_text() for text in ax.get_legend().get_texts()][:1]
    ['lavender: AUC 0.995']
    """
    drawable, scores = _score_rows(model, X, y)
    ax = style.get_axes(ax, size=(6.4, 4.8))
    _draw_class_curves(ax, drawable, scores, positive, "roc", "auc", "AUC")
    style.add_reference(ax, "by chance")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    return _finish(ax, "false positive rate", "true positive rate")


def precision_recall(model: Any, X: Any = None, y: Any = None, *, ax: Any = None, positive: Any = None) -> Any:
    """Draw precision against recall, at every threshold; classes as in ``roc``.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = precision_recall(FittedModel(garden()), *garden_rows(200, seed=0), positive="sage")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('recall', 'precision')
    """
    drawable, scores = _score_rows(model, X, y)
    ax = style.get_axes(ax, size=(6.4, 4.8))
    how = "precision_recall", "average_precision", "PR-AUC"
    shown = _draw_class_curves(ax, drawable, scores, positive, *how)
    if len(shown) == 1:
        style.add_reference(ax, "by chance", scores.class_weights[shown[0]] / scores.class_weights.sum())
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02))
    return _finish(ax, "recall", "precision")


def lift(model: Any, X: Any = None, y: Any = None, *, ax: Any = None, positive: Any = None) -> Any:
    """Draw how much more frequent a class is among the rows where it is most probable than among all; as in ``roc``.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = lift(FittedModel(garden()), *garden_rows(200, seed=0), positive="sage")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('proportion of rows', 'lift')
    """
    drawable, scores = _score_rows(model, X, y)
    ax = style.get_axes(ax)
    _draw_class_curves(ax, drawable, scores, positive, "lift", "lift", "lift at 10%")
    style.add_reference(ax, "by chance", 1.0)
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)
    return _finish(ax, "proportion of rows", "lift")


def coverage(model: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """Draw the accuracy if only the most certain rows are decided; marks are the lowest probability decided.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = coverage(FittedModel(garden()), *garden_rows(200, seed=0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('fraction of rows decided', 'accuracy')
    """
    _, scores = _score_rows(model, X, y)
    ax, curve, n = style.get_axes(ax), scores.coverage_curve(), scores.class_weights.sum()
    is_kept = curve.x * n >= min(_MIN_ROWS, n)
    x, y, p = curve.x[is_kept], curve.y[is_kept], curve.threshold[is_kept]
    ax.plot(x, y, color=style.colour(0), linewidth=1.8, zorder=3, label="accuracy of decided rows")
    how, is_marked = {"color": style.colour(1), "markersize": 5}, False
    for threshold in _COVERAGE_MARKS:
        at = int(np.searchsorted(-p, -threshold, side="right")) - 1  # the last row that is decided
        if at >= 0 and p[-1] < threshold:
            is_marked = True
            ax.plot(x[at], y[at], "o", zorder=4, **how)
            ax.annotate(f"{threshold:g}", (x[at], y[at]), (4, 5), textcoords="offset points", fontsize=8, zorder=4)
    if is_marked:
        ax.plot([], [], "o", label="lowest probability decided", **how)
    style.add_reference(ax, "all rows decided", float(y[-1]))
    ax.set_xlim(0, 1.01)
    ax.margins(y=0.12)
    return _finish(ax, *curve.axes)


def thresholds(model: Any, X: Any = None, y: Any = None, *, ax: Any = None, positive: Any = None) -> Any:
    """Draw precision, recall, F1 and the proportion of rows predicted, by the threshold of a class.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = thresholds(FittedModel(garden()), *garden_rows(200, seed=0), positive="sage")
    >>> ax.get_xlabel(), [line.get_label() for line in ax.lines]
    ('threshold of p(sage | x)', ['precision', 'recall', 'F1', 'proportion of rows predicted'])
    """
    drawable, scores = _score_rows(model, X, y)
    c = drawable.positive_class(positive)
    true, false, at = (values[:0:-1] for values in curves.cumulative_weights(scores.ranks.class_curve(c)))
    predicted = true + false  # the lowest threshold first
    ax = style.get_axes(ax)
    metrics = {
        "precision": true / np.maximum(predicted, 1e-300),
        "recall": true / max(true[0], 1e-300),
        "F1": 2 * true / (predicted + true[0]),
        "proportion of rows predicted": predicted / predicted[0],
    }
    points = np.unique(np.linspace(0, len(at) - 1, _MAX_POINTS).astype(int))
    x = np.append(0.0, at[points])
    for i, (name, values) in enumerate(metrics.items()):
        how = {"color": style.colour(i), "linestyle": style.line_style(i), "linewidth": 1.7, "label": name}
        ax.plot(x, np.append(values[:1], values[points]), drawstyle="steps-pre", **how)
    ax.set(xlim=(0, 1), ylim=(-0.01, 1.02))
    return _finish(ax, f"threshold of p({style.shorten_names(drawable.labels, 20)[c]} | x)", "")


def _score_rows(model: Any, X: Any, y: Any) -> tuple[Drawable, Scores]:
    """Return a model, and the scores of rows, which may be given in their place, or of a cross-validation."""
    if isinstance(X, Scores):
        return Drawable.from_model(model), X
    if isinstance(model, Validation):
        if X is not None or y is not None:
            raise InputError("a cross-validation has scored its own rows", remedy="pass it alone, or a model with rows")
        return Drawable.from_model(model.fit_result.fitted), model.total
    drawable = Drawable.from_model(model)
    if X is None or y is None:
        raise InputError("this is drawn from rows whose class is known", remedy="pass X and y, or a cross-validation")
    posterior = drawable.fitted.apply(Model.log_posterior, drawable.read_table(X))
    codes = drawable.label_codes(y, len(posterior))
    is_known = codes >= 0
    if not is_known.any():
        raise InputError("no row has a class; this is drawn of rows whose class is known")
    return drawable, Scores.from_log_posterior(posterior[is_known], codes[is_known])


def _draw_class_curves(
    ax: Any, drawable: Drawable, scores: Scores, positive: Any, curve: str, metric: str, title: str
) -> list[int]:
    """Draw a line for each class and return the classes; of many classes those with the lowest metric are named."""
    k = len(drawable.labels)
    if k < 2:
        raise InputError("the model has one class only: there is nothing to distinguish", value=drawable.labels)
    codes = [drawable.class_code(positive)] if positive is not None else [1] if k == 2 else list(range(k))
    names, values = style.shorten_names(drawable.labels), [getattr(s, metric) for s in scores.class_scores()]
    order = sorted(codes, key=lambda c: (np.nan_to_num(values[c], nan=np.inf), c))
    named, is_few = order[: style.MAX_LEGEND_CLASSES], len(codes) <= style.MAX_LEGEND_CLASSES
    for c in codes:
        how: dict[str, Any] = {"color": _GREY, "linewidth": 0.8, "zorder": 2}
        if c in named:
            i = c if is_few else named.index(c)
            how = {"color": style.colour(i), "linewidth": 1.6, "linestyle": style.line_style(i), "zorder": 3}
            how |= {"linewidth": 1.9, "linestyle": "-"} if len(codes) == 1 else {}
            how["label"] = f"{names[c]}: {title} {values[c]:.3f}"
        line = curves.class_curves(scores.ranks.class_curve(c))[curve].thin(_MAX_POINTS)
        ax.plot(line.x, line.y, **how)
    if len(codes) > len(named):
        ax.plot([], [], color=_GREY, linewidth=0.8, label=f"{len(codes) - len(named)} more, with higher values")
    return codes


def _finish(ax: Any, x: str, y: str) -> Any:
    return style.add_legend(style.format_axes(ax, x, y))
