"""The columns given the class, strongest first, in an analyst's words: mean and deviation come first."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from rich.markup import escape

from candide import wording
from candide.explain import columns
from candide.explain.columns import ColumnSummary
from candide.model.fitted import Fitted
from candide.report.layout import Sheet
from candide.rows.labels import Labels
from candide.rows.table import Name

_LOCATED = ("loc", "scale")  # parameters of Student's t that the mean and the deviation stand for


def strengths(fitted: Fitted) -> dict[Name, float]:
    """How much each column tells, in nats per row, strongest first: under the model's own priors."""
    return fitted.strengths or {}


def givens(fitted: Fitted, levels: int, strength: Mapping[Name, float]) -> list[ColumnSummary]:
    """Every column given the class, strongest first; a column modelled by Student's t with its mean and deviation."""
    place = {name: (i, j) for i, part in enumerate(fitted.plan.parts) for j, name in enumerate(part.columns)}
    found = [_with_moments(fitted, given, *place[given.column]) for given in columns.conditionals(fitted, levels)]
    return sorted(found, key=lambda given: -strength.get(given.column, -np.inf))


def _with_moments(fitted: Fitted, given: ColumnSummary, i: int, j: int) -> ColumnSummary:
    before = "log_" if "log_df" in given.rows else ""
    if f"{before}loc" not in given.rows:
        return given
    values = dict(zip(given.rows, given.values, strict=True))
    if fitted.has_counts:  # of the values counted
        tally: Any = fitted.chosen.tallies[i]
        n = np.maximum(tally.n[:, j], 1e-300)
        mean, deviation = tally.mean[:, j], np.sqrt(tally.m2[:, j] / n)
    else:  # of the distribution
        df, loc, scale = (values[f"{before}{name}"] for name in ("df", "loc", "scale"))
        mean, deviation = loc, scale * np.sqrt(np.where(df > 2, df / np.where(df > 2, df - 2, 1), np.inf))
    first = {f"{before}mean": mean, f"{before}sd": deviation}
    return replace(given, rows=[*first, *given.rows], values=np.array([*first.values(), *given.values]))


def sheet(given: ColumnSummary, labels: Labels) -> Sheet:
    """One column given the class, as a table."""
    title = f"{escape(str(given.column))} [dim]{given.event}, given the class[/dim]"
    if not len(given.values) or not given.values.shape[-1]:
        return Sheet(f"{title} [dim]: empty[/dim]", "")
    rows = [
        [escape(name), *(wording.number(v) for v in row)]
        for name, row in zip(given.rows, given.values, strict=True)
        if name.removeprefix("log_") not in _LOCATED
    ]
    return Sheet(title, "", *(escape(str(v)) for v in labels.values), rows=rows)
