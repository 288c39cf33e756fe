"""Cells: what a voice says of each level, bin or combination of them, for each class, and how many rows are there.

>>> from candide.demo import garden
>>> from candide.explain.terms import list_terms
>>> fitted = FittedModel(garden())
>>> scented = build_term_cells(fitted, list_terms(fitted)["scented"])
>>> scented.names, scented.contributions.round(1).tolist()[1], scented.frequencies.round(2).tolist()
((('no', 'yes'),), [0.1, -0.1, 0.0], [0.13, 0.87])
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.data.table import Name
from candide.distributions import Distribution
from candide.encoding.grid import join_cell_names
from candide.errors import InputError
from candide.explain.terms import Term
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart


@dataclass(frozen=True, eq=False)
class TermCells:
    """A table with an axis for each column of a voice."""

    names: tuple[tuple[str, ...], ...]  # of each column its levels, bins or cells
    contributions: Floats  # (level of each column ..., class) for the class, less the mean over classes by their shares
    frequencies: Floats | None  # (level of each column ...) the share of the rows; None where no counts are kept

    def strongest(self, limit: int) -> list[tuple[str, Floats]]:
        """The combinations that say most, and what they say for each class."""
        flat = self.contributions.reshape(-1, self.contributions.shape[-1])
        order = np.argsort(-np.ptp(flat, axis=1), kind="stable")[:limit]
        at = np.stack(np.unravel_index(order, self.contributions.shape[:-1]), axis=1).tolist()
        named = [", ".join(names[i] for names, i in zip(self.names, one, strict=True)) for one in at]
        return list(zip(named, flat[order], strict=True))


def build_term_cells(fitted: FittedModel, term: Term) -> TermCells:
    """What a voice says of each of its cells; an error where it has none, being of numbers as they are."""
    part, law = fitted.plan.parts[term.part_index], fitted.model.distributions[term.part_index]
    tally: Any = fitted.selected_counts.tallies[term.part_index] if fitted.has_counts else None
    known = law.level_scores()
    if known is None:
        what, remedy = "it has no levels, bins or cells", "name a column, a pair or a triple"
        raise InputError(what, column=term.title, value=term.title, remedy=remedy)
    table, bins = known.for_feature(term.feature_index)
    own = slice(*known.offsets[term.feature_index : term.feature_index + 2])
    rows = max(float(fitted.selected_counts.class_weight.sum()), 1e-300) if fitted.has_counts else 1.0
    often = None if tally is None else tally.counts[:, own].sum(axis=0) / rows
    at = [part.columns.index(name) for name in term.columns]
    names: tuple[tuple[str, ...], ...]
    if not part.is_joint_term:
        names = (_bin_spans(part, at[0], bins, fitted.dates),)
        first = np.searchsorted(bins, np.arange(bins.max(initial=-1) + 1))
        table, often = table[first], None if often is None else np.bincount(bins, often)
    else:
        names = tuple(part.encodings[j].level_names(part.columns[j] in fitted.dates) for j in at)
    with np.errstate(invalid="ignore"):
        nats = table - np.nan_to_num(table @ fitted.class_proportions)[:, None]
    shape = tuple(map(len, names))
    return TermCells(names, nats.reshape(*shape, -1), None if often is None else often.reshape(shape))


def bin_labels(
    part: PlanPart, distribution: Distribution, j: int, dates: Collection[Name] = ()
) -> tuple[str, ...] | None:
    """The bin or cell that each code of a column of numbers is in; None where that says nothing more."""
    if part.block_kind != "codes" or part.encodings[j].is_read_as_text:
        return None
    known = None if part.is_joint_term else distribution.level_scores()
    bins = np.arange(part.encodings[j].n_levels or 0) if known is None else known.for_feature(j)[1]
    named = _bin_spans(part, j, bins, dates)
    return tuple(named[b] for b in bins.tolist()) if len(named) > 1 else None


def level_names(part: PlanPart, distribution: Distribution, j: int, dates: Collection[Name] = ()) -> tuple[str, ...]:
    """The levels of a column, or its bins."""
    known = distribution.level_scores()
    if part.encodings[j].is_read_as_text or known is None:
        return part.encodings[j].level_names()
    return _bin_spans(part, j, known.for_feature(j)[1], dates)


def _bin_spans(part: PlanPart, j: int, bins: Codes, dates: Collection[Name]) -> tuple[str, ...]:
    """The names of bins by those of their cells, which they hold in order."""
    names = part.encodings[j].level_names(part.columns[j] in dates)
    numbers = np.arange(bins.max(initial=-1) + 1)
    first, last = np.searchsorted(bins, numbers), np.searchsorted(bins, numbers, side="right") - 1
    return tuple(join_cell_names(names[a], names[b]) for a, b in zip(first.tolist(), last.tolist(), strict=True))
