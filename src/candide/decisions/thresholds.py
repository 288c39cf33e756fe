"""Select a threshold on rows that the model was not trained on; read costs from a file."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from candide import formatting
from candide.data.labels import Labels
from candide.errors import InputError, unknown_name_error
from candide.metrics.auc import LogOddsBins
from candide.metrics.curves import Threshold, cumulative_weights, find_threshold, log_odds_from_keys, make_threshold
from candide.metrics.scores import Scores
from candide.model.policy import Policy


@dataclass(frozen=True)
class ThresholdChoice:
    """A policy with a threshold, and its metrics on rows that it was not selected on."""

    policy: Policy
    expected_metrics: Threshold  # each fold under the threshold that the others would have selected


def select_threshold(
    folds: Sequence[Scores],
    labels: Labels,
    *,
    positive: Any = None,
    precision: float | None = None,
    recall: float | None = None,
) -> ThresholdChoice:
    """The threshold that reaches a precision with the most rows, or a recall with the fewest, on scores of folds."""
    for name, value in (("at_precision", precision), ("at_recall", recall)):
        if value is not None and not 0 < value <= 1:
            remedy = "pass a number above 0, at most 1"
            raise InputError(f"{name}: not a valid proportion: {value}", value=value, remedy=remedy)
    if (precision is None) == (recall is None):
        raise InputError("a threshold reaches a precision or a recall", remedy="pass at_precision or at_recall")
    c, aim = _positive_code(labels, positive), {"precision": precision, "recall": recall}
    odds = find_threshold(_pool_bins(folds, c), **aim)
    if np.isnan(odds) or np.isposinf(odds):
        metric, value = ("precision", precision) if recall is None else ("recall", recall)
        remedy = "ask for less, or see the table of thresholds: candide evaluate"
        raise InputError(f"no threshold gives {labels.values[c]!r} a {metric} of {value:g}", value=value, remedy=remedy)
    threshold = float(1 / (1 + np.exp(-odds))) if odds > -700 else 0.0
    policy = Policy(threshold=threshold, positive=labels.values[c], log_odds=odds)
    sums = np.zeros(4)  # rows of the class and of others, selected and in all
    for i, fold in enumerate(folds):
        odds = find_threshold(_pool_bins([*folds[:i], *folds[i + 1 :]] or [fold], c), **aim)
        bins = fold.ranks.class_curve(c)
        own, other, _ = cumulative_weights(bins)
        known = log_odds_from_keys(bins.start)
        at = len(known) - int(np.searchsorted(known, np.inf if np.isnan(odds) else odds))
        sums += [own[at], other[at], own[-1], other[-1]]
    return ThresholdChoice(policy, make_threshold(labels.values[c], threshold, *sums.tolist()))


def _pool_bins(folds: Sequence[Scores], c: int) -> LogOddsBins:
    return reduce(add, [fold.ranks for fold in folds]).class_curve(c)


def _positive_code(labels: Labels, positive: Any) -> int:
    if positive is None:
        if len(labels) == 2:
            return 1
        what = f"a threshold is of one class, and there are {len(labels)}"
        raise InputError(what, value=list(labels.values), remedy="name it: positive=... (--positive)")
    code = labels.find_code(positive)
    if code is None:
        raise unknown_name_error("class in positive", positive, labels.values)
    return code


def read_costs(path: str | os.PathLike) -> dict[tuple[Any, Any], float]:
    """Read the costs of a CSV file by (true class, predicted class).

    It has the columns true, predicted, cost, or is a table with true classes down and predicted ones across.
    """
    name = os.fspath(path)
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(cell.strip() for cell in row)]
    remedy = "pass a CSV with the columns true, predicted, cost, or with true classes down and predicted ones across"
    if len(rows) < 2:
        raise InputError(f"{name} holds no costs", value=name, remedy=remedy)
    header, body = rows[0], rows[1:]
    for i, row in enumerate(body, start=2):
        if len(row) != len(header):
            what = f"{name}, line {i}: {formatting.format_count(len(row), 'cell')}, but {len(header)} in the header"
            raise InputError(what, row=i, remedy=remedy)
    if [title.lower() for title in header] == ["true", "predicted", "cost"]:
        cells = [(row[0], row[1], row[2]) for row in body]
    else:
        cells = [(row[0], title, cell) for row in body for title, cell in zip(header[1:], row[1:], strict=True)]
    costs = dict[tuple[Any, Any], float]()
    for true, predicted, cell in cells:
        if (true, predicted) in costs:
            what = f"{name}: the cost of predicting {predicted!r} for {true!r} is given twice"
            raise InputError(what, value=(true, predicted), remedy="give each pair one cost")
        try:
            costs[true, predicted] = float(cell)
        except ValueError:
            what = f"{name}: not a valid cost of predicting {predicted!r} for {true!r}: {cell!r}"
            raise InputError(what, value=cell, remedy="write a number") from None
    return costs
