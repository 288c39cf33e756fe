"""Explain: what a model knows of each column, from the tallies alone, with no second look at the data.

>>> from candide.demo import garden
>>> soil = next(given for given in conditionals(Fitted(garden())) if given.column == "scented")
>>> soil.rows, soil.values.shape
(['yes', 'no'], (2, 3))
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.encode.tokens import shown
from candide.explain.terms import top_terms
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.table import Name


@dataclass(frozen=True)
class ColumnSummary:
    """One column given the class: the names of its rows, and a value for every (row, class)."""

    column: Name
    event: str
    rows: list[str]
    values: Floats  # (rows, classes)


def conditionals(fitted: Fitted, most_levels: int = 12) -> Iterator[ColumnSummary]:
    """What every column looks like in each class: level probabilities, or means and deviations."""
    shares = np.exp(fitted.model.log_prior)
    counted: Any = fitted.chosen.tallies if fitted.has_counts else [None] * len(fitted.plan.parts)
    laws = [law.unweighted[0] for law in fitted.model.distributions]
    for part, law, tally in zip(fitted.plan.parts, laws, counted, strict=True):
        for j, column in enumerate(() if part.beside else part.columns):
            if part.holds == "documents" and tally is not None:  # counts say which terms tell, as weights do not
                rows, values = _terms(fitted, part, law, tally, most_levels)
            else:
                levels = _level_names(part, j, column in fitted.dates)
                often = _frequency(part, law, tally, j, shares)
                rows, values = law.describe(j, part.columns, levels, often, most_levels)
            yield ColumnSummary(column, part.event.name, rows, values)


def _level_names(part: Part, j: int, dates: bool) -> tuple[Any, ...]:
    if part.holds != "codes":
        return ()
    return part.levels[j].values if part.encodings[j].as_written else part.encodings[j].names(dates)


def _frequency(part: Part, law: Any, tally: Any, j: int, shares: Floats) -> Floats | None:
    """(level,) how often each level of a column is met: as counted, or else as the model has it."""
    if part.holds != "codes":
        return None
    if tally is not None:
        return tally.pool().only(np.array([j])).counts[0]
    levels = law.offsets[j], law.offsets[j + 1]
    return law.parameters()["probability"][:, slice(*levels)].T @ shares


def _terms(fitted: Fitted, part: Part, law: Any, tally: Any, most: int) -> tuple[list[str], Floats]:
    """The shares in each class of the terms that speak most for each class: the law's, or else those counted."""
    each = max(1, most // max(1, len(fitted.labels)))
    best = {t.term: None for label in fitted.labels.values for t in top_terms(fitted, part.columns[0], label, each)}
    place = {shown(law.cells.key(i), law.tokens): i for i in range(0 if law.tokens.bits else law.cells.n_terms)}
    if best.keys() <= place.keys():
        p = law.shares(np.array([place[term] for term in best], np.intp))
        if p is not None:
            return list(best), p
    counts = np.array([tally.table(term)[0] for term in best]).reshape(-1, len(fitted.labels))
    return list(best), counts / np.maximum(tally.length[:, 0], 1e-300)
