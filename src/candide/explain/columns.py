"""Explain: what a model knows of each column, from the tallies alone, with no second look at the data.

>>> from candide.demo import garden
>>> soil = next(given for given in iterate_conditionals(FittedModel(garden())) if given.column == "scented")
>>> soil.row_names, soil.values.shape
(['yes', 'no'], (2, 3))
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.data.table import Name
from candide.encoding.tokens import format_key
from candide.explain.words import top_words
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart


@dataclass(frozen=True)
class ConditionalTable:
    """One column given the class: the names of its rows, and a value for every (row, class)."""

    column: Name
    event: str
    row_names: list[str]
    values: Floats  # (rows, classes)


def iterate_conditionals(fitted: FittedModel, max_levels: int = 12) -> Iterator[ConditionalTable]:
    """What every column looks like in each class: level probabilities, or means and deviations."""
    shares = np.exp(fitted.model.log_prior)
    counted: Any = fitted.selected_counts.tallies if fitted.has_counts else [None] * len(fitted.plan.parts)
    laws = [law.base_and_weights[0] for law in fitted.model.distributions]
    for part, law, tally in zip(fitted.plan.parts, laws, counted, strict=True):
        for j, column in enumerate(() if part.is_joint_term else part.columns):
            if part.block_kind == "documents" and tally is not None:  # counts say which terms tell, as weights do not
                rows, values = _top_word_shares(fitted, part, law, tally, max_levels)
            else:
                levels = _level_names(part, j, column in fitted.dates)
                often = _level_frequencies(part, law, tally, j, shares)
                rows, values = law.describe(j, part.columns, levels, often, max_levels)
            yield ConditionalTable(column, part.event.name, rows, values)


def _level_names(part: PlanPart, j: int, dates: bool) -> tuple[Any, ...]:
    if part.block_kind != "codes":
        return ()
    return part.levels[j].values if part.encodings[j].is_read_as_text else part.encodings[j].level_names(dates)


def _level_frequencies(
    part: PlanPart, distribution: Any, tally: Any, j: int, class_proportions: Floats
) -> Floats | None:
    """(level,) how often each level of a column is met: as counted, or else as the model has it."""
    if part.block_kind != "codes":
        return None
    if tally is not None:
        return tally.pool().select_features(np.array([j])).counts[0]
    levels = distribution.offsets[j], distribution.offsets[j + 1]
    return distribution.parameters()["probability"][:, slice(*levels)].T @ class_proportions


def _top_word_shares(
    fitted: FittedModel, part: PlanPart, distribution: Any, tally: Any, limit: int
) -> tuple[list[str], Floats]:
    """The shares in each class of the terms that speak most for each class: the law's, or else those counted."""
    each = max(1, limit // max(1, len(fitted.labels)))
    best = {t.word: None for label in fitted.labels.values for t in top_words(fitted, part.columns[0], label, each)}
    place = {
        format_key(distribution.cells.key(i), distribution.tokens): i
        for i in range(0 if distribution.tokens.bits else distribution.cells.n_tokens)
    }
    if best.keys() <= place.keys():
        p = distribution.token_probabilities(np.array([place[term] for term in best], np.intp))
        if p is not None:
            return list(best), p
    counts = np.array([tally.class_counts(term)[0] for term in best]).reshape(-1, len(fitted.labels))
    return list(best), counts / np.maximum(tally.length[:, 0], 1e-300)
