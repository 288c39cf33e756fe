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

from candide.errors import InputError, unknown
from candide.fitted import Fitted, Scorer
from candide.labels import Labels
from candide.plan import Part
from candide.table import Name
from candide.text import Documents, shown

_FEW = 8  # columns modelled together whose correlations are told


@dataclass(frozen=True)
class Given:
    """One column given the class: the names of its rows, and a value for every (row, class)."""

    column: Name
    event: str
    rows: list[str]
    values: np.ndarray  # (rows, classes)


def conditionals(fitted: Fitted | Scorer, most_levels: int = 12) -> Iterator[Given]:
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
                counts = fitted.chosen.tallies[i].counts if isinstance(fitted, Fitted) else None  # type: ignore[attr-defined]
                often = probability @ shares if counts is None else counts[:, a:b].sum(axis=0)
                yield Given(column, part.event.name, *_levels(part.levels[j], probability, often, most_levels))
            else:
                shown = {n: p for n, p in params.items() if p.shape == (fitted.model.n_classes, len(part.columns))}
                rows, values = list(shown), [p[:, j] for p in shown.values()]
                if "correlation" in params and len(part.columns) <= _FEW:
                    others = [i for i in range(len(part.columns)) if i != j]
                    rows += [f"correlation with {part.columns[i]}" for i in others]
                    values += [params["correlation"][:, j, i] for i in others]
                yield Given(column, part.event.name, rows, np.array(values))


def _given_terms(fitted: Fitted | Scorer, part: Part, column: Name, most: int) -> Given:
    """The shares in each class of the terms that speak most for each class."""
    each = max(1, most // max(1, len(fitted.labels)))
    if not isinstance(fitted, Fitted):
        return Given(
            column, part.event.name, *_heaviest(fitted.model.distributions[text_part(fitted, column)[0]], each)
        )
    best = {t.term: None for label in fitted.labels.values for t in top_terms(fitted, column, label, each)}
    tally: Any = fitted.chosen.tallies[text_part(fitted, column)[0]]
    counts = np.array([tally.table(term)[0] for term in best]).reshape(-1, len(fitted.labels))
    return Given(column, part.event.name, list(best), counts / np.maximum(tally.length[:, 0], 1e-300))


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


@dataclass(frozen=True)
class TopTerm:
    """A term that speaks for a class: log-odds against all other classes, and how often it occurs in both."""

    term: str
    log_odds: float
    count: float
    others: float


def top_terms(fitted: Fitted, column: Name | None, label: Any, n: int = 10) -> list[TopTerm]:
    """The terms of a column of text that speak most for a class; of equals the more frequent, then by name."""
    i, part = text_part(fitted, column)
    if label not in fitted.labels.values:
        raise unknown("class", label, fitted.labels.values)
    event, c = part.event, fitted.labels.values.index(label)
    odds, tally = event.log_odds(fitted.chosen.tallies[i], c)  # type: ignore[attr-defined]
    mine = tally.class_of_cell == c
    count = np.bincount(tally.word[mine], tally.total[mine], tally.n_terms)
    others = tally.pool().total - count
    names, tokens = tally.keys(), event.tokens  # type: ignore[attr-defined]
    best = np.flatnonzero(odds >= np.sort(odds)[-n:][0]) if 0 < n < len(odds) else np.arange(len(odds))
    order = sorted(best.tolist(), key=lambda i: (-odds[i], -count[i], names[i]))[: max(n, 0)]
    terms = [shown(names[i], tokens) for i in order]
    rows = zip(terms, odds[order].tolist(), count[order].tolist(), others[order].tolist(), strict=True)
    return [TopTerm(*row) for row in rows]


@dataclass(frozen=True)
class Witness:
    """A term of a document: how often it occurs, and its log-odds for the class predicted over the next likely one."""

    term: str
    count: float
    weight: float


def witnesses(fitted: Fitted | Scorer, text: str, column: Name | None = None, n: int = 10) -> list[Witness]:
    """The terms of a document that decided, strongest first, whichever of the two classes they speak for."""
    i, part = text_part(fitted, column)
    law: Any = fitted.model.distributions[i]
    documents = Documents.of([text])
    if fitted.model.n_classes < 2:
        return []  # where there is one class only, nothing was decided
    score = law.log_prob(documents)[0] + fitted.model.log_prior
    first, second = np.argsort(-score, kind="stable")[:2]
    times, place, _ = law.rows(documents)
    weight = law.weights(place, times)
    gain = weight[:, first] - weight[:, second]
    order = np.argsort(-np.abs(gain), kind="stable")[:n]
    keys = law.cells.names(place[order]) if not part.event.tokens.bits else ["hashed"] * len(order)  # type: ignore[attr-defined]
    return [Witness(*row) for row in zip(keys, times[order].tolist(), gain[order].tolist(), strict=True)]


def text_part(fitted: Fitted | Scorer, column: Name | None = None) -> tuple[int, Part]:
    """The part of a column of text; of the only one where none is named."""
    found = {part.columns[0]: (i, part) for i, part in enumerate(fitted.plan.parts) if part.has_documents}
    if column is None and len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise InputError(f"this model has no column of text; it was fitted on {list(fitted.plan.columns)}")
    if column not in found:
        raise unknown("column of text", column, found)
    return found[column]
