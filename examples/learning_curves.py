"""Learning curves: the error on rows not seen, of several classifiers, as the number of training rows grows.

Ng and Jordan (2001) asked when a generative classifier beats a discriminative one. Each draw shuffles the rows, keeps a
third of them for testing, and trains every classifier on the first m of the rest, for growing m: within a draw all
classifiers see the same rows, so their difference is not blurred by the luck of the draw. A row of each class comes
first, because a discriminative classifier cannot be trained on one class.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Perceptron
from threadpoolctl import threadpool_limits

from candide.data.column_types import infer_columns
from candide.data.labels import Labels
from candide.data.table import Name, Table
from candide.errors import InputError
from candide.estimators.argument_checks import checked_labels
from candide.estimators.naive_bayes import NaiveBayes
from candide.model.plan import PlanPart, make_plan
from candide.plot import style

_BAYES_NAME = re.compile(r"bayes|nb\b|nb\(", re.IGNORECASE)
_TEST_FRACTION = 1 / 3
_BAND_PERCENTILES = (10, 90)  # percentiles of the draws


@dataclass(frozen=True, eq=False)
class LearningCurves:
    """Error rates of classifiers by number of training rows: the mean over draws, and a band of 80 % of them.

    >>> errors = np.array([[[0.3, 0.2], [0.2, 0.2]], [[0.5, 0.4], [0.1, 0.1]]])
    >>> curves = LearningCurves(np.array([10, 40]), ("naive Bayes", "logistic regression"), errors)
    >>> print(curves)
      rows          naive Bayes  logistic regression
        10  0.250 (0.210-0.290)  0.450 (0.410-0.490)
        40  0.200 (0.200-0.200)  0.100 (0.100-0.100)
    >>> curves.mean.shape == curves.low.shape == curves.high.shape == (2, 2)
    True
    """

    sizes: NDArray[np.intp]  # (sizes,)
    names: tuple[str, ...]
    errors: NDArray[np.float64]  # (name, size, draw)

    @property
    def mean(self) -> NDArray[np.float64]:
        """(name, size) mean error over the draws."""
        return self.errors.mean(axis=2)

    @property
    def low(self) -> NDArray[np.float64]:
        """(name, size) error that one draw in ten stays below."""
        return np.percentile(self.errors, _BAND_PERCENTILES[0], axis=2)

    @property
    def high(self) -> NDArray[np.float64]:
        """(name, size) error that one draw in ten exceeds."""
        return np.percentile(self.errors, _BAND_PERCENTILES[1], axis=2)

    def crossings(self, confidence: float = 2.0) -> dict[str, float | None]:
        """For each other classifier the number of rows from which on it is ahead of the first, None if it never is.

        0 means ahead from the start. Between two sizes the mean errors are joined by straight lines in log m. To be
        ahead is to have the smaller mean error at the largest size, by ``sure`` standard errors of the difference
        within draws.

        >>> errors = np.array([[[0.3], [0.2], [0.2]], [[0.5], [0.2], [0.1]]])
        >>> curves = LearningCurves(np.array([10, 20, 40]), ("naive Bayes", "logistic regression"), errors)
        >>> {name: round(rows) for name, rows in curves.crossings().items()}
        {'logistic regression': 20}
        """
        return {name: self._crossing(i, confidence) for i, name in enumerate(self.names) if i}

    def _crossing(self, other: int, confidence: float) -> float | None:
        gap = self.errors[other] - self.errors[0]  # (size, draw) positive where the first leads
        mean, draws = gap.mean(axis=1), gap.shape[1]
        noise = gap[-1].std(ddof=1) / np.sqrt(draws) if draws > 1 else 0.0
        if not mean[-1] < -confidence * noise:
            return None
        behind = np.flatnonzero(mean >= 0)
        if not len(behind):
            return 0.0
        i = int(behind[-1])
        share = mean[i] / (mean[i] - mean[i + 1])
        return float(np.exp(np.log(self.sizes[i]) * (1 - share) + np.log(self.sizes[i + 1]) * share))

    def describe_comparison(self, other: str, confidence: float = 2.0) -> str:
        """How the first classifier does against another: "stays ahead", "ahead, then behind from 40", "even", ...

        >>> errors = np.array([[[0.3], [0.2], [0.2]], [[0.5], [0.2], [0.1]]])
        >>> LearningCurves(np.array([10, 20, 40]), ("naive Bayes", "other"), errors).describe_comparison("other")
        'ahead, then behind from 20'
        """
        i = self.names.index(other)
        gap = self.errors[i] - self.errors[0]
        mean, noise = gap.mean(axis=1), gap.std(axis=1, ddof=1) / np.sqrt(gap.shape[1]) if gap.shape[1] > 1 else 0.0
        ahead, behind = mean > confidence * noise, mean < -confidence * noise
        crossing = self._crossing(i, confidence)
        if crossing is not None:
            before = "ahead" if ahead.any() else "even"
            return f"{before}, then behind from {crossing:.0f}" if crossing else "behind throughout"
        if ahead[-1]:
            return "ahead at the end, behind before" if behind.any() else "stays ahead"
        return "ahead, then even" if ahead.any() else "even at the end" if behind.any() else "even"

    def __str__(self) -> str:
        """A table: one line a size, mean error and band of each classifier."""
        width = max(len(name) for name in (*self.names, "0.000 (0.000-0.000)"))
        lines = ["  rows  " + "  ".join(f"{name:>{width}}" for name in self.names)]
        for j, size in enumerate(self.sizes):
            cells = zip(self.mean[:, j], self.low[:, j], self.high[:, j], strict=True)
            lines.append(f"{size:6,}  " + "  ".join(f"{f'{m:.3f} ({a:.3f}-{b:.3f})':>{width}}" for m, a, b in cells))
        return "\n".join(lines)


def learning_curves(
    X: Any,
    y: Any,
    *,
    models: Mapping[str, Any] | None = None,
    sizes: Sequence[int] | None = None,
    draws: int = 20,
    random_state: int = 0,
) -> LearningCurves:
    """Train classifiers on more and more rows, several times over, and test each on rows kept back.

    Parameters
    ----------
    X, y : a table of numbers and categories in any form that :class:`NaiveBayes` takes, and the labels
    models : classifiers by name; None for naive Bayes, logistic regression and the perceptron. A :class:`NaiveBayes`
        sees the columns; any other sees them encoded: numbers standardised by the training rows, categories one-hot,
        missing values as the mean, or as none of the levels
    sizes : numbers of training rows; None for ten from about 10 to all that are left, evenly in their logarithm
    draws : how many times the rows are shuffled
    random_state : seed of the shuffling

    Examples
    --------
    >>> from candide.demo import garden_rows
    >>> curves = learning_curves(*garden_rows(600, seed=0), sizes=[15, 60, 240], draws=5)
    >>> curves.names, curves.mean.shape
    (('naive Bayes', 'logistic regression', 'perceptron'), (3, 3))
    >>> bool((curves.mean[0] <= curves.mean[2]).all())  # these rows follow naive Bayes' own story
    True
    """
    table = Table.from_data(X)
    labels = Labels.from_values(checked_labels(y, table.n_rows))
    codes = labels.encode(checked_labels(y, table.n_rows))
    if len(labels) < 2:
        raise InputError("learning curves need two classes or more; y has one")
    if draws < 1:
        raise InputError(f"draws must be at least 1, got {draws}")
    n_test = round(table.n_rows * _TEST_FRACTION)
    chosen = _checked_sizes(sizes, table.n_rows - n_test, len(labels))
    rows = _EncodedTable.from_table(table)
    ready = {name: rows.with_events(model) for name, model in (models or default_models()).items()}
    errors = np.empty((len(ready), len(chosen), draws))
    with threadpool_limits(1):  # of BLAS: on matrices this small its threads cost more than they bring
        for draw in range(draws):
            order = np.random.default_rng([random_state, draw]).permutation(table.n_rows)
            test, pool = order[:n_test], _each_class_first(order[n_test:], codes)
            for j, size in enumerate(chosen):
                errors[:, j, draw] = [_error(model, rows, codes, pool[:size], test) for model in ready.values()]
    return LearningCurves(np.array(chosen), tuple(ready), errors)


def _error(model: Any, rows: "_EncodedTable", codes: NDArray, train: NDArray, test: NDArray) -> float:
    """The share of the test rows that a model fitted on the training rows gets wrong."""
    view = rows.columns if isinstance(model, NaiveBayes) else rows.encode
    seen, asked = view(train, test)
    return float(np.mean(clone(model).fit(seen, codes[train]).predict(asked) != codes[test]))


def default_models() -> dict[str, Any]:
    """The three that Ng and Jordan, and every lecture, compare."""
    return {
        "naive Bayes": NaiveBayes(),
        "logistic regression": LogisticRegression(max_iter=2000),
        "perceptron": Perceptron(random_state=0),
    }


@dataclass(frozen=True, eq=False)
class _EncodedTable:
    """A table of numbers and level codes, both as floats, NaN where absent."""

    names: tuple[Name, ...]
    values: NDArray[np.float64]  # (row, column)
    levels: NDArray[np.intp]  # (column,) how many; 0 for numbers
    events: dict[Name, Any]

    @classmethod
    def from_table(cls, table: Table) -> "_EncodedTable":
        plan = make_plan(table, "auto", infer_columns(table))
        columns, sizes, events = {}, {}, {}
        for part in plan.parts:
            if part.block_kind == "documents":
                raise InputError(f"column {part.columns[0]!r} is text; learning curves take numbers and categories")
            for name in part.columns:
                encoding = part.event.encoding.learn(table.column(name))
                values = np.asarray(PlanPart(part.event, (name,), (encoding,)).block(table), float)[:, 0]
                columns[name] = values if encoding.n_levels is None else np.where(values < 0, np.nan, values)
                sizes[name], events[name] = encoding.n_levels or 0, part.event
        return cls(tuple(columns), np.column_stack(list(columns.values())), np.array(list(sizes.values())), events)

    def with_events(self, model: Any) -> Any:
        """The model; a naive Bayes that infers its columns gets those that the whole table shows."""
        if not isinstance(model, NaiveBayes) or not (isinstance(model.events, Mapping) or model.events == "auto"):
            return model
        named = model.events if isinstance(model.events, Mapping) else {}
        return clone(model).set_params(events={**self.events, **named})

    def columns(self, *parts: NDArray[np.intp]) -> list[dict[Name, NDArray]]:
        """Some rows by column."""
        return [dict(zip(self.names, self.values[part].T, strict=True)) for part in parts]

    def encode(self, train: NDArray[np.intp], test: NDArray[np.intp]) -> list[NDArray]:
        """Some rows as a matrix for models of numbers, by the means and deviations of the training rows."""
        numbers = self.values[:, self.levels == 0]
        seen = numbers[train]
        present = ~np.isnan(seen)
        n = np.maximum(present.sum(axis=0), 1)
        mean = np.where(present, seen, 0.0).sum(axis=0) / n
        spread = np.sqrt(np.where(present, (seen - mean) ** 2, 0.0).sum(axis=0) / n)
        scaled = np.nan_to_num((numbers - mean) / np.where(spread > 0, spread, 1.0))
        ones = [self.values[:, j, None] == np.arange(k) for j, k in enumerate(self.levels) if k]
        whole = np.hstack([scaled, *ones]).astype(float)
        return [whole[train], whole[test]]


def _checked_sizes(sizes: Sequence[int] | None, most: int, n_classes: int) -> list[int]:
    least = max(10, 2 * n_classes)
    if sizes is None:
        if most < least:
            raise InputError(f"too few rows are left for training, {most}; at least {least} are needed")
        return np.unique(np.geomspace(least, most, 10).round().astype(int)).tolist()
    chosen = sorted({int(size) for size in sizes})
    if not chosen or chosen[0] < n_classes or chosen[-1] > most:
        raise InputError(f"sizes must lie between {n_classes}, the classes, and {most}, the rows left; got {sizes}")
    return chosen


def _each_class_first(pool: NDArray[np.intp], codes: NDArray[np.intp]) -> NDArray[np.intp]:
    """The rows with the first of each class in front."""
    first = np.sort(np.unique(codes[pool], return_index=True)[1])
    return np.concatenate([pool[first], np.delete(pool, first)])


def plot_learning_curves(curves: Any, *, ax: Any = None) -> Any:
    """Mean and spread against the number of training rows: solid for naive Bayes, dashed for all else.

    >>> errors = np.array([[[0.3, 0.2], [0.2, 0.2]], [[0.5, 0.4], [0.1, 0.1]]])
    >>> ax = plot_learning_curves(LearningCurves(np.array([10, 40]), ("naive Bayes", "logistic regression"), errors))
    >>> [line.get_linestyle() for line in ax.lines[:2]]
    ['-', '--']
    >>> ax.figure.clear()
    """
    sizes = np.asarray(curves.sizes, float)
    mean, low, high = (np.asarray(getattr(curves, name), float) for name in ("mean", "low", "high"))
    shape = (len(curves.names), len(sizes))
    if not mean.shape == low.shape == high.shape == shape:
        raise InputError(f"mean, low and high must have a row a name and a column a size, {shape}; not {mean.shape}")
    ax = style.get_axes(ax)
    shown = style.shorten_names(curves.names, 30)
    for i, name in enumerate(curves.names):
        bayes = bool(_BAYES_NAME.search(str(name)))
        look: dict[str, Any] = {
            "color": style.colour(i),
            "linestyle": "-" if bayes else "--",
            "marker": style.marker(i),
        }
        ax.fill_between(sizes, low[i], high[i], color=style.colour(i), alpha=0.15, linewidth=0, zorder=1)
        ax.plot(sizes, mean[i], label=shown[i], markersize=4, linewidth=1.7, zorder=3, **look)
    if len(sizes) > 1 and sizes.min() > 0 and sizes.max() / sizes.min() >= 8:
        ax.set_xscale("log")
        _plain_ticks(ax, sizes)
    style.format_axes(ax, "training rows", str(getattr(curves, "metric", "error")).replace("_", " "))
    style.add_legend(ax)
    return ax


def _plain_ticks(ax: Any, sizes: NDArray) -> None:
    """Numbers of rows as people write them, a few of those measured."""
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    chosen, last = [], 0.0
    for size in np.unique(sizes):
        if size >= 1.7 * last:
            chosen.append(size)
            last = size
    ax.set_xticks(chosen)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
