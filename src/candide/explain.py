"""Explain: what a model knows of each column, from the tallies alone, with no second look at the data.

>>> from candide.demo import garden
>>> [(name, round(value, 2)) for name, value in strengths(garden())[:2]]
[('leaf_mm', 1.15), ('height_cm', 0.72)]
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.census import Census
from candide.errors import InputError
from candide.fitted import Fitted
from candide.labels import Labels
from candide.table import Name


def strengths(census: Census) -> list[tuple[Name, float]]:
    """The columns by how much they tell of the class, strongest first.

    The figure is the log evidence for "this column depends on the class" over "it does not", in nats per row: what
    knowing the class saves in describing the column, after paying for the extra parameters. Below zero the column
    is better described without the class.
    """
    rows = max(float(census.class_weight.sum()), 1e-300)
    found = []
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        try:
            gain = part.event.evidence(tally).sum(axis=0) - part.event.evidence(tally.pool())[0]
        except InputError:  # an event model or a prior without a marginal likelihood has no say here
            continue
        found += [(name, float(g) / rows) for name, g in zip(part.columns, gain, strict=True)]
    return sorted(found, key=lambda pair: -pair[1])


@dataclass(frozen=True)
class Given:
    """One column given the class: the names of its rows, and a value for every (row, class)."""

    column: Name
    event: str
    rows: list[str]
    values: np.ndarray  # (rows, classes)


def conditionals(fitted: Fitted, most_levels: int = 12) -> Iterator[Given]:
    """What every column looks like in each class: level probabilities, or means and deviations."""
    parts = zip(fitted.census.plan.parts, fitted.census.tallies, fitted.model.distributions, strict=True)
    for part, tally, distribution in parts:
        params = {name: np.asarray(p) for name, p in distribution.parameters().items()}
        for j, column in enumerate(part.columns):
            if part.has_levels:
                yield Given(column, part.event.name, *_levels(part.levels[j], tally, distribution, j, most_levels))
            else:
                shown = {n: p for n, p in params.items() if p.shape == (fitted.model.n_classes, len(part.columns))}
                yield Given(column, part.event.name, list(shown), np.array([p[:, j] for p in shown.values()]))


def _levels(levels: Labels, tally: Any, distribution: Any, j: int, most: int) -> tuple[list[str], np.ndarray]:
    a, b = tally.offsets[j], tally.offsets[j + 1]
    order = np.argsort(-tally.counts[:, a:b].sum(axis=0), kind="stable")[:most]
    probability = np.exp(distribution.table[a:b])  # (levels, classes)
    rows = [str(levels.values[i]) for i in order]
    values = probability[order]
    if b - a > most:
        rest = np.setdiff1d(np.arange(b - a), order)
        rows, values = [*rows, f"{len(rest)} other levels"], np.vstack([values, probability[rest].sum(axis=0)])
    return rows, values
