"""Bootstrap over folds: how far a metric would be off on other folds, by drawing whole folds from those scored.

Rows of a fold have their model in common, and where a column says the fold whatever else it stands for, such as a
patient: they are not so many independent rows. A fold that is drawn twice counts twice, with all of its rows.

>>> from candide.metrics.scores import Scores
>>> folds = [
...     Scores.from_log_posterior(np.log([[0.8, 0.2]] * 4), np.array(y))
...     for y in ([0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0])
... ]
>>> fold_metrics(folds, np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]]))["accuracy"].round(4).tolist()
[0.75, 0.6667]
"""

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from candide.errors import InputError, unknown_name_error
from candide.metrics import formulas
from candide.metrics.auc import Ranks
from candide.metrics.bootstrap import MAX_CURVES, MAX_ROWS, N_DRAWS, compute_metrics
from candide.metrics.details import metric_intervals
from candide.metrics.formulas import ClassCounts, Floats
from candide.metrics.scores import Scores

RESAMPLING_UNITS = ("rows", "folds")
MIN_FOLDS = 5  # of fewer folds there are not 100 different drawings (4 have 35), and an end of 95 % is the last of them


def resampled_intervals(
    folds: Sequence[Scores], level: float = 0.95, *, by: str = "rows", draws: int = N_DRAWS, seed: int = 0
) -> dict[str, tuple[float, float]]:
    """Between which values each metric of all rows would lie on other rows, or on other folds."""
    if by not in RESAMPLING_UNITS:
        raise unknown_name_error("way to draw", by, RESAMPLING_UNITS)
    if by == "folds":
        return _fold_intervals(folds, level, draws, seed)
    return reduce(add, folds).intervals(level, draws=draws, seed=seed)


def _fold_intervals(folds: Sequence[Scores], level: float, draws: int, seed: int) -> dict[str, tuple[float, float]]:
    """Drawings of n folds have (n - 1) / n of the variance that n other folds have, which is made good."""
    n = len(folds)
    if n < 2:
        remedy = "cross-validate, or draw rows: by='rows' (--intervals-by rows)"
        raise InputError("one fold: there are no others to draw", value=n, remedy=remedy)
    w = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), draws).astype(float)
    with np.errstate(invalid="ignore"):  # a row that was impossible costs without end
        drawn, own = fold_metrics(folds, w), fold_metrics(folds, np.ones((1, n)))
        off = {name: (values - own[name]) * np.sqrt(n / (n - 1)) for name, values in drawn.items()}
    return metric_intervals(reduce(add, folds), off, level)


def fold_metrics(folds: Sequence[Scores], w: Floats) -> dict[str, Floats]:
    """(drawing,) each metric where folds have the weights (drawing, fold)."""
    counts = ClassCounts(*(w @ np.stack(each) for each in zip(*(one.class_counts for one in folds), strict=True)))
    n, loss, square = (
        w @ np.array(each) for each in zip(*((f.n, f.sum_neg_log, f.sum_squared_error) for f in folds), strict=True)
    )
    return compute_metrics(counts, n, loss, square, *_curves([one.ranks for one in folds], w))


def _curves(folds: Sequence[Ranks], w: Floats) -> tuple[Floats, Floats, Floats]:
    """(curve, drawing) areas, average precisions, and the weight of the class."""
    total, found = reduce(add, folds), list[tuple[Floats, Floats, Floats]]()
    for c in range(total.n_curves if total.n_curves <= MAX_CURVES else 0):
        common = total.curve(c).join_bins(MAX_ROWS)
        each = [one.curve(c).weights_within(common) for one in folds]
        other, own = (w @ np.stack(weights) for weights in zip(*each, strict=True))
        found.append((formulas.roc_area(other, own), formulas.average_precision(other, own), own.sum(axis=-1)))
    areas, precisions, own = np.array(found).reshape(-1, 3, len(w)).transpose(1, 0, 2)
    return areas, precisions, own
