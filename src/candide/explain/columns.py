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

from candide.explain.terms import text_part, top_terms
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.labels import Labels
from candide.rows.table import Name

_FEW = 8  # columns modelled together whose correlations are told


@dataclass(frozen=True)
class ColumnSummary:
    """One column given the class: the names of its rows, and a value for every (row, class)."""

    column: Name
    event: str
    rows: list[str]
    values: np.ndarray  # (rows, classes)


def conditionals(fitted: Fitted, most_levels: int = 12) -> Iterator[ColumnSummary]:
    """What every column looks like in each class: level probabilities, or means and deviations."""
    shares = np.exp(fitted.model.log_prior)
    for i, (part, distribution) in enumerate(zip(fitted.plan.parts, fitted.model.distributions, strict=True)):
        params = {name: np.asarray(p) for name, p in distribution.parameters().items()}
        for j, column in enumerate(part.columns):
            if part.has_documents:
                yield _given_terms(fitted, part, column, most_levels)
            elif part.has_levels:
                a, b = distribution.offsets[j : j + 2]  # type: ignore[attr-defined]
                probability = np.exp(distribution.table[a:b])  # type: ignore[attr-defined]
                counts = fitted.chosen.tallies[i].counts if fitted.has_counts else None  # type: ignore[attr-defined]
                often = probability @ shares if counts is None else counts[:, a:b].sum(axis=0)
                yield ColumnSummary(column, part.event.name, *_levels(part.levels[j], probability, often, most_levels))
            else:
                shown = {n: p for n, p in params.items() if p.shape == (fitted.model.n_classes, len(part.columns))}
                rows, values = list(shown), [p[:, j] for p in shown.values()]
                if "correlation" in params and len(part.columns) <= _FEW:
                    others = [i for i in range(len(part.columns)) if i != j]
                    rows += [f"correlation with {part.columns[i]}" for i in others]
                    values += [params["correlation"][:, j, i] for i in others]
                yield ColumnSummary(column, part.event.name, rows, np.array(values))


def _given_terms(fitted: Fitted, part: Part, column: Name, most: int) -> ColumnSummary:
    """The shares in each class of the terms that speak most for each class."""
    each = max(1, most // max(1, len(fitted.labels)))
    if not fitted.has_counts:
        return ColumnSummary(
            column, part.event.name, *_heaviest(fitted.model.distributions[text_part(fitted, column)[0]], each)
        )
    best = {t.term: None for label in fitted.labels.values for t in top_terms(fitted, column, label, each)}
    tally: Any = fitted.chosen.tallies[text_part(fitted, column)[0]]
    counts = np.array([tally.table(term)[0] for term in best]).reshape(-1, len(fitted.labels))
    return ColumnSummary(column, part.event.name, list(best), counts / np.maximum(tally.length[:, 0], 1e-300))


def _heaviest(law: Any, each: int) -> tuple[list[str], np.ndarray]:
    """Without counts: of each class the terms that weigh most beside the next class, as the shares they stand for."""
    if getattr(law, "mean_length", 0) == 0 or law.tokens.bits:  # hashed, or weights that are no shares
        return [], np.empty((0, law.n_classes))
    n = len(law.cells.starts) - 1
    weight = law.weights(np.arange(n), np.ones(n))  # (term, class)
    best: dict[int, None] = {}
    for c in range(law.n_classes if n else 0):
        others = np.delete(weight, c, axis=1).max(axis=1, initial=-np.inf)
        best |= dict.fromkeys(np.argsort(others - weight[:, c], kind="stable")[:each].tolist())
    return law.cells.names(np.array(list(best), np.intp)), np.exp(weight[list(best)])


def _levels(levels: Labels, probability: np.ndarray, often: np.ndarray, most: int) -> tuple[list[str], np.ndarray]:
    """The most frequent levels, and the rest as one."""
    order = np.argsort(-often, kind="stable")[:most]
    rows = [str(levels.values[i]) for i in order]
    values = probability[order]
    if len(often) > most:
        rest = np.setdiff1d(np.arange(len(often)), order)
        rows, values = [*rows, f"{len(rest)} other levels"], np.vstack([values, probability[rest].sum(axis=0)])
    return rows, values
