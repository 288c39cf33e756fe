"""Rows in order of the probability of a class: what is found, and what is found wrongly, from the surest row down.

Each picture is of a model with rows whose classes are known, or of a cross-validation, which has scored its own.

>>> import candide as cd
>>> X, y = {"x": [1.0, 2.0, 2.5, 8.0, 9.0, 2.2]}, ["low", "low", "low", "top", "top", "top"]
>>> ax = roc(cd.NaiveBayes().fit(X, y), X, y)
>>> ax.get_xlabel(), ax.get_ylabel(), [text.get_text() for text in ax.get_legend().get_texts()]
('false positive rate', 'true positive rate', ['top: AUC 0.889', 'by chance'])
>>> ax.figure.clear()
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from candide.errors import InputError
from candide.metrics import curves as lines
from candide.metrics.scores import Scores
from candide.model.model import Model
from candide.plot import axis_text, style
from candide.plot.drawable import Drawable
from candide.validation.cross_validation import Validation

_MAX_POINTS = 2000  # of a line, more than an eye can tell
_GREY = "#b8b8b8"
_COVERAGE_MARKS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)  # thresholds that are marked where they fall
_MIN_ROWS = 20  # rows that are decided at least, where a share is drawn: of fewer it jumps


def roc(model: Any, X: Any = None, y: Any = None, *, ax: Any = None, positive: Any = None) -> Any:
    """How many rows of a class are found against how many of others are taken with them, at every threshold.

    Of two classes it is that of the second, or of ``positive``; of more a line a class against the others. Of more than
    eight classes those that are hardest to tell have a colour and a name, and the others are grey.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = roc(FittedModel(garden()), *garden_rows(200, seed=0))
    >>> [text.get_text() for text in ax.get_legend().get_texts()][:1]
    ['lavender: AUC 0.995']
    >>> ax.figure.clear()
    """
    return draw_roc(*score_rows(model, X, y), positive, ax)


def precision_recall(model: Any, X: Any = None, y: Any = None, *, ax: Any = None, positive: Any = None) -> Any:
    """How much of what is taken is right against how much of the class is found; classes as in ``roc``.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = precision_recall(FittedModel(garden()), *garden_rows(200, seed=0), positive="sage")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('recall', 'precision')
    >>> ax.figure.clear()
    """
    return draw_precision_recall(*score_rows(model, X, y), positive, ax)


def lift(model: Any, X: Any = None, y: Any = None, *, ax: Any = None, positive: Any = None) -> Any:
    """How many times as many rows of a class there are among the most probable rows as among all; as in ``roc``.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = lift(FittedModel(garden()), *garden_rows(200, seed=0), positive="sage")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('share of rows', 'lift')
    >>> ax.figure.clear()
    """
    return draw_lift(*score_rows(model, X, y), positive, ax)


def coverage(model: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """How many of the rows that are decided are right, if only the surest are; marks say how sure they are at least.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = coverage(FittedModel(garden()), *garden_rows(200, seed=0))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('fraction of rows decided', 'accuracy')
    >>> ax.figure.clear()
    """
    return draw_coverage(*score_rows(model, X, y), None, ax)


def thresholds(model: Any, X: Any = None, y: Any = None, *, ax: Any = None, positive: Any = None) -> Any:
    """What comes of taking the rows whose probability of a class is at least so high: precision, recall, F1, how many.

    >>> from candide.demo import garden, garden_rows
    >>> from candide.model.fitted import FittedModel
    >>> ax = thresholds(FittedModel(garden()), *garden_rows(200, seed=0), positive="sage")
    >>> ax.get_xlabel(), [line.get_label() for line in ax.lines]
    ('take rows from p(sage | x) on', ['precision', 'recall', 'F1', 'share of rows taken'])
    >>> ax.figure.clear()
    """
    return draw_thresholds(*score_rows(model, X, y), positive, ax)


def score_rows(model: Any, X: Any, y: Any) -> tuple[Drawable, Scores]:
    """A model, and the scores of rows or of a cross-validation."""
    if isinstance(model, Validation):
        if X is not None or y is not None:
            raise InputError("a cross-validation has scored its own rows", remedy="pass it alone, or a model with rows")
        return Drawable.from_model(model.fit_result.fitted), model.total
    drawable = Drawable.from_model(model)
    if X is None or y is None:
        raise InputError("this is drawn from rows whose class is known", remedy="pass X and y, or a cross-validation")
    posterior = drawable.fitted.apply(Model.log_posterior, drawable.read_table(X))
    codes = drawable.label_codes(y, len(posterior))
    known = codes >= 0
    if not known.any():
        raise InputError("no row has a class; this is drawn of rows whose class is known")
    return drawable, Scores.from_log_posterior(posterior[known], codes[known])


# Of scores


def draw_roc(drawable: Drawable, scores: Scores, positive: Any = None, ax: Any = None) -> Any:
    """Draw ROC curves."""
    ax = style.get_axes(ax, size=(6.4, 4.8))
    _draw_class_curves(ax, drawable, scores, positive, lines.roc_curve, "auc", "AUC")
    ax.plot([0, 1], [0, 1], color=style.DARK, linewidth=1.0, linestyle=":", label="by chance", zorder=1)
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    return _finish_axes(ax, "false positive rate", "true positive rate")


def draw_precision_recall(drawable: Drawable, scores: Scores, positive: Any = None, ax: Any = None) -> Any:
    """Draw precision against recall."""
    ax = style.get_axes(ax, size=(6.4, 4.8))
    shown = _draw_class_curves(
        ax, drawable, scores, positive, lines.precision_recall_curve, "average_precision", "PR-AUC"
    )
    if len(shown) == 1:
        share = scores.class_weights[shown[0]] / scores.class_weights.sum()
        ax.axhline(share, color=style.DARK, linewidth=1.0, linestyle=":", label="by chance", zorder=1)
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02))
    return _finish_axes(ax, "recall", "precision")


def draw_lift(drawable: Drawable, scores: Scores, positive: Any = None, ax: Any = None) -> Any:
    """Draw lift."""
    ax = style.get_axes(ax)
    _draw_class_curves(ax, drawable, scores, positive, lines.lift_curve, "lift", "of a tenth")
    ax.axhline(1.0, color=style.DARK, linewidth=1.0, linestyle=":", label="by chance", zorder=1)
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)
    return _finish_axes(ax, "share of rows", "lift")


def draw_coverage(drawable: Drawable, scores: Scores, positive: Any = None, ax: Any = None) -> Any:
    """Draw accuracy against coverage."""
    ax = style.get_axes(ax)
    line = scores.coverage_curve()
    keep = line.x * scores.class_weights.sum() >= min(_MIN_ROWS, scores.class_weights.sum())
    x, y, sure = line.x[keep], line.y[keep], line.threshold[keep]
    ax.plot(x, y, color=style.colour(0), linewidth=1.8, zorder=3, label="right among the decided")
    marked = ""
    for p in _COVERAGE_MARKS:
        at = int(np.searchsorted(-sure, -p, side="right")) - 1  # the last row that is so sure
        if at >= 0 and sure[-1] < p:
            marked = "decided from so sure on"
            ax.plot(x[at], y[at], "o", color=style.colour(1), markersize=5, zorder=4)
            ax.annotate(f"{p:g}", (x[at], y[at]), (4, 5), textcoords="offset points", fontsize=8, zorder=4)
    if marked:
        ax.plot([], [], "o", color=style.colour(1), markersize=5, label=marked)
    ax.axhline(float(y[-1]), color=style.DARK, linewidth=1.0, linestyle=":", label="all decided", zorder=1)
    ax.set_xlim(0, 1.01)
    ax.margins(y=0.12)
    return _finish_axes(ax, *line.axes)


def draw_thresholds(drawable: Drawable, scores: Scores, positive: Any = None, ax: Any = None) -> Any:
    """Draw what a threshold does."""
    labels, c = drawable.labels, _class_codes(drawable, positive)
    if len(c) > 1:
        names = ", ".join(map(str, labels[:20]))
        what = f"a threshold is on the probability of one class, and the model has {len(labels)}: {names}"
        raise InputError(what, remedy="name one: positive=..., or --class NAME")
    cells = scores.ranks.class_curve(c[0])
    own, other, at = lines.cumulative_weights(cells)
    own, other, at = own[:0:-1], other[:0:-1], at[:0:-1]  # the lowest threshold first
    taken = own + other
    ax = style.get_axes(ax)
    shares = {
        "precision": own / np.maximum(taken, 1e-300),
        "recall": own / max(own[0], 1e-300),
        "F1": 2 * own / (taken + own[0]),
        "share of rows taken": taken / taken[0],
    }
    some = np.unique(np.linspace(0, len(at) - 1, _MAX_POINTS).astype(int))
    for i, (name, value) in enumerate(shares.items()):
        look = {"color": style.colour(i), "linestyle": style.line_style(i), "linewidth": 1.7}
        ax.plot(np.append(0.0, at[some]), np.append(value[:1], value[some]), drawstyle="steps-pre", label=name, **look)
    ax.set(xlim=(0, 1), ylim=(-0.01, 1.02))
    return _finish_axes(ax, f"take rows from p({axis_text.shorten_names(labels, 20)[c[0]]} | x) on", "")


def _draw_class_curves(
    ax: Any, drawable: Drawable, scores: Scores, positive: Any, curve: Callable, metric: str, legend_format: str
) -> list[int]:
    """A line a class with what it comes to in its name; of many classes the hardest are named. Returns the classes."""
    codes = _class_codes(drawable, positive)
    names, values = (
        axis_text.shorten_names(drawable.labels),
        {c: getattr(one, metric) for c, one in _scores_by_class(scores, codes)},
    )
    named = sorted(codes, key=lambda c: (np.nan_to_num(values[c], nan=np.inf), c))[: style.MAX_LEGEND_CLASSES]
    for c in codes:
        line = curve(scores.ranks.class_curve(c)).thin(_MAX_POINTS)
        look: dict[str, Any] = {"color": _GREY, "linewidth": 0.8, "zorder": 2}
        if len(codes) == 1:
            look = {
                "color": style.colour(c),
                "linewidth": 1.9,
                "zorder": 3,
                "label": f"{names[c]}: {legend_format} {values[c]:.3f}",
            }
        elif c in named:
            i = c if len(codes) <= style.MAX_LEGEND_CLASSES else named.index(c)
            label = f"{names[c]}: {legend_format} {values[c]:.3f}"
            look = {
                "color": style.colour(i),
                "linestyle": style.line_style(i),
                "linewidth": 1.6,
                "zorder": 3,
                "label": label,
            }
        ax.plot(line.x, line.y, **look)
    if len(codes) > len(named):
        ax.plot([], [], color=_GREY, linewidth=0.8, label=f"{len(codes) - len(named)} more, easier to tell")
    return codes


def _scores_by_class(scores: Scores, codes: Sequence[int]) -> list[tuple[int, Any]]:
    every = scores.class_scores()
    return [(c, every[c]) for c in codes]


def _class_codes(drawable: Drawable, positive: Any) -> list[int]:
    """The classes that have a line."""
    k = len(drawable.labels)
    if k < 2:
        raise InputError("the model knows one class only: there is nothing to tell apart", value=drawable.labels)
    if positive is not None:
        return [drawable.class_code(positive)]
    return [1] if k == 2 else list(range(k))


def _finish_axes(ax: Any, x: str, y: str) -> Any:
    style.format_axes(ax, x, y)
    style.add_legend(ax)
    return ax
