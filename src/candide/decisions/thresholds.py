"""Deciding: a threshold chosen on rows that the model had not met, and costs read from a file.

>>> kinds = ["b" if i % 10 + i % 3 > 7 else "a" for i in range(300)]
>>> rows = {"size": [float(i % 10) for i in range(300)], "kind": kinds}
>>> from candide.validation.cross_validation import cross_validate
>>> folds = cross_validate(rows, "kind", folds=3, model="naive").folds
>>> found = select_threshold(folds, Labels(("a", "b")), recall=0.9)
>>> found.policy.positive, 0 < found.policy.threshold < 1, found.expected_metrics.recall > 0.8
('b', True, True)
"""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from candide import formatting
from candide.data import value_matching
from candide.data.labels import Labels
from candide.errors import InputError, unknown_name_error
from candide.metrics.auc import LogOddsBins, Ranks
from candide.metrics.curves import Threshold, cumulative_weights, find_threshold, log_odds_from_keys, make_threshold
from candide.metrics.scores import Scores
from candide.model.policy import Policy

__all__ = ["Labels", "ThresholdChoice", "read_costs", "select_threshold"]


@dataclass(frozen=True)
class ThresholdChoice:
    """A policy with a threshold, and what it comes to on rows that have not chosen it."""

    policy: Policy
    expected_metrics: Threshold  # each fold under the threshold that the others would have chosen


def select_threshold(
    folds: Sequence[Scores],
    labels: Labels,
    *,
    positive: Any = None,
    precision: float | None = None,
    recall: float | None = None,
) -> ThresholdChoice:
    """The threshold that reaches a precision with the most rows, or a recall with the fewest, on scores of folds.

    What is expected of it is told without the favour of choosing: each fold is judged by the threshold of the others.
    """
    for name, value in (("at_precision", precision), ("at_recall", recall)):
        if value is not None and not 0 < value <= 1:
            raise InputError(f"{name}: {value} is no share", value=value, remedy="pass a number above 0, at most 1")
    if (precision is None) == (recall is None):
        raise InputError("one threshold reaches one aim", remedy="pass at_precision or at_recall")
    c = _positive_code(labels, positive)
    aim = {"precision": precision, "recall": recall}
    odds = find_threshold(_pool_bins([fold.ranks for fold in folds], c), **aim)
    if np.isnan(odds) or np.isposinf(odds):
        best = precision if recall is None else recall
        what = f"no threshold gives {labels.values[c]!r} a {'precision' if recall is None else 'recall'} of {best:g}"
        raise InputError(what, value=best, remedy="ask for less, or look at the table of thresholds: candide evaluate")
    policy = Policy(threshold=_to_probability(odds), positive=labels.values[c], log_odds=odds)
    return ThresholdChoice(policy, _expected_metrics(folds, c, labels, policy, aim))


def _expected_metrics(
    folds: Sequence[Scores], c: int, labels: Labels, policy: Policy, aim: dict[str, Any]
) -> Threshold:
    sums = np.zeros(4)  # of the class taken, of others taken, of the class, of others
    for i, fold in enumerate(folds):
        rest = [one.ranks for j, one in enumerate(folds) if j != i] or [fold.ranks]
        odds = find_threshold(_pool_bins(rest, c), **aim)
        cells = fold.ranks.class_curve(c)
        own, other, _ = cumulative_weights(cells)
        at = len(cells.start) - int(
            np.searchsorted(log_odds_from_keys(cells.start), np.inf if np.isnan(odds) else odds)
        )
        sums += [own[at], other[at], own[-1], other[-1]]
    return make_threshold(labels.values[c], policy.threshold or 0.0, *sums.tolist())


def _pool_bins(parts: Sequence[Ranks], c: int) -> LogOddsBins:
    return reduce(add, parts).class_curve(c)


def _to_probability(odds: float) -> float:
    return float(1 / (1 + np.exp(-odds))) if odds > -700 else 0.0


def _positive_code(labels: Labels, positive: Any) -> int:
    if positive is None:
        if len(labels) == 2:
            return 1
        what = f"a threshold is of one class, and there are {len(labels)}"
        raise InputError(what, value=list(labels.values), remedy="name it: positive=... (--positive)")
    code = value_matching.find_code(positive, labels)
    if code is None:
        raise unknown_name_error("class in positive", positive, labels.values)
    return code


def read_costs(path: str | os.PathLike) -> dict[tuple[Any, Any], float]:
    """Costs of a CSV: columns true, predicted, cost; or a table with true classes down and predicted ones across.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "costs.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("true,no,yes\\nno,0,1\\nyes,5,0\\n")
    >>> read_costs(path)
    {('no', 'no'): 0.0, ('no', 'yes'): 1.0, ('yes', 'no'): 5.0, ('yes', 'yes'): 0.0}
    """
    name = os.fspath(path)
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if any(cell.strip() for cell in row)]
    remedy = "pass a CSV with the columns true, predicted, cost, or with true classes down and predicted ones across"
    if len(rows) < 2:
        raise InputError(f"{name} holds no costs", value=name, remedy=remedy)
    heads, body = rows[0], rows[1:]
    for i, row in enumerate(body, start=2):
        if len(row) != len(heads):
            raise InputError(
                f"{name}, line {i}: {formatting.format_count(len(row), 'cell')}, and {len(heads)} above",
                row=i,
                remedy=remedy,
            )
    if [head.lower() for head in heads] == ["true", "predicted", "cost"]:
        cells = [(row[0], row[1], row[2]) for row in body]
    else:
        cells = [(row[0], head, cell) for row in body for head, cell in zip(heads[1:], row[1:], strict=True)]
    found = dict[tuple[Any, Any], float]()
    for true, given, cell in cells:
        if (true, given) in found:
            what = f"{name}: what it costs that {true!r} is taken for {given!r} is said twice"
            raise InputError(what, value=(true, given), remedy="say it once")
        found[true, given] = _parse_cost(name, true, given, cell)
    return found


def _parse_cost(name: str, true: str, given: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        what = f"{name}: {cell!r} is no cost of {true!r} taken for {given!r}"
        raise InputError(what, value=cell, remedy="write a number") from None
