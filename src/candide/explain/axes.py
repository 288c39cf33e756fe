"""Values of a term: its contribution at each level, bin, cell or point, in the form in which it can be drawn.

Levels and combinations of levels have a value each; a numeric column has a curve over a histogram of its values; a text
column has its strongest words.

>>> from candide.demo import garden
>>> from candide.explain.terms import list_terms
>>> fitted = FittedModel(garden())
>>> leaf, scented = (build_axis(fitted, list_terms(fitted)[name]) for name in ("leaf_mm", "scented"))
>>> leaf.shape, leaf.positions.shape, leaf.contributions.shape, scented.shape, scented.names
('curve', (49,), (49, 3), 'levels', (('no', 'yes'),))
>>> cells = build_term_cells(fitted, list_terms(fitted)["scented"])
>>> cells.contributions.round(1).tolist()[1], cells.frequencies.round(2).tolist()
([0.1, -0.1, 0.0], [0.13, 0.87])
>>> find_typical_values(fitted)["soil"]
'chalk'
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Codes, Floats
from candide.data.table import Name
from candide.distributions import Distribution
from candide.encoding.grid import Grid, join_cell_names
from candide.errors import InputError
from candide.explain.terms import Term
from candide.explain.words import TopWord, top_words
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


_CURVE_POINTS = 49  # of a curve of a law that has no steps
_HISTOGRAM_BARS = 32  # of a histogram
_SAMPLE_ROWS = 2000  # rows that a law expects, where no cells were counted
_TAIL_SHARE = 0.004  # of the rows at either end, which lie beyond what is drawn
_TOP_WORDS = 12  # words for each class


@dataclass(frozen=True, eq=False)
class TermAxis:
    """One voice along its values.

    ``nats`` are for each class less the mean over classes by their shares.
    """

    term: Term
    shape: str  # "levels" | "steps" | "curve" | "table" | "words" | "" where it cannot be drawn
    names: tuple[tuple[str, ...], ...] = ()  # of each column its levels, bins or cells
    contributions: Floats | None = None  # (level of each column ..., class), or (point, class)
    frequencies: Floats | None = None  # (level of each column ...) the share of the rows; None where it is not known
    positions: Floats | None = None  # the points of a curve, or the edges between steps
    histogram: tuple[Floats, Floats] | None = None  # of numbers: the edges of bars, and the share of the rows in each
    top_words: tuple[tuple[TopWord, ...], ...] = ()  # for each class
    typical_value: str | float | None = (
        None  # the most frequent level, or the median of numbers; None where it is not known
    )

    def contrast(self, class_proportions: Floats, class_index: int) -> Floats:
        """(level of each column ...) or (point,) what it says for a class against the mean of the others."""
        assert self.contributions is not None
        return self.contributions[..., class_index] / max(1.0 - float(class_proportions[class_index]), 1e-300)


def build_axis(fitted: FittedModel, term: Term) -> TermAxis:
    """What a voice says along its values."""
    part, law = fitted.plan.parts[term.part_index], fitted.model.distributions[term.part_index]
    if part.block_kind == "documents":
        return _word_axis(fitted, term)
    if law.level_scores() is not None:
        return _cell_axis(fitted, part, law, term)
    if len(term.columns) > 1 or part.event.is_joint or part.block_kind != "numbers":
        return TermAxis(term, "")
    return _number_axis(fitted, law, term)


def _word_axis(fitted: FittedModel, term: Term) -> TermAxis:
    if not fitted.has_counts:
        return TermAxis(term, "")
    found = tuple(tuple(top_words(fitted, term.columns[0], label, _TOP_WORDS)) for label in fitted.labels.values)
    return TermAxis(term, "words", top_words=found)


def _cell_axis(fitted: FittedModel, part: PlanPart, distribution: Distribution, term: Term) -> TermAxis:
    found = build_term_cells(fitted, term)
    if len(term.columns) > 1:
        return TermAxis(term, "table", found.names, found.contributions, found.frequencies)
    grid: Any = part.encodings[part.columns.index(term.columns[0])]
    if grid.is_read_as_text or not grid.edges:
        often = None if found.frequencies is None else found.names[0][int(found.frequencies.argmax())]
        return TermAxis(term, "levels", found.names, found.contributions, found.frequencies, typical_value=often)
    known = distribution.level_scores()
    assert known is not None
    edges = np.array(grid.coarsen(known.for_feature(term.feature_index)[1]).edges)
    counts, middle = None, None
    if fitted.has_counts:
        tally: Any = fitted.selected_counts.tallies[term.part_index]
        counts = tally.counts[:, slice(*known.offsets[term.feature_index : term.feature_index + 2])].sum(axis=0)
        half = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
        middle = value_in_cell(fitted, term.columns[0], grid, min(half, len(counts) - 1))
    return TermAxis(
        term,
        "steps",
        found.names,
        found.contributions,
        found.frequencies,
        edges,
        _histogram(grid, counts),
        typical_value=middle,
    )


def value_in_cell(fitted: FittedModel, name: Any, grid: Grid, cell: int) -> float:
    """A value in a cell that was met, where any encoding of the column keeps some: a grid knows its edges alone."""
    every = (
        part.encodings[part.columns.index(name)].seen_values() for part in fitted.plan.parts if name in part.columns
    )
    met = np.array(next(filter(None, every), ()))
    there = met[np.searchsorted(grid.edges or (), met) == cell]
    return float(there[len(there) // 2] if len(there) else grid.decode(np.array([cell]))[0])


def _histogram(grid: Grid, counts: Floats | None) -> tuple[Floats, Floats] | None:
    """The cells of a grid in bars of equal width, but for what lies far out; what is in a cell lies evenly in it."""
    edges = np.array(grid.edges)
    if counts is None or not counts.sum():
        low, high = edges[0], edges[-1]
        margin = 0.05 * (high - low) or max(abs(low), 1.0) * 0.05
        return (np.array([low - margin, high + margin]), np.ones(1)) if np.isfinite(margin) else None
    widths = np.diff(edges) if len(edges) > 1 else np.array([max(abs(edges[0]), 1.0) * 0.05])
    walls = np.concatenate([[edges[0] - widths[0]], edges, [edges[-1] + widths[-1]]])  # as wide as what is beside them
    below = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
    low, high = np.interp([_TAIL_SHARE, 1 - _TAIL_SHARE], below, walls)
    low, high = (walls[0], walls[-1]) if high - low < 1e-3 * (walls[-1] - walls[0]) else (low, high)
    if not np.isfinite(high - low) or high <= low:
        return None
    at = np.linspace(low, high, _HISTOGRAM_BARS + 1)
    return at, np.diff(np.interp(at, walls, below))


@lru_cache(maxsize=1)
def expected_rows(distribution: Distribution, class_proportions: tuple[float, ...]) -> NDArray:
    """Rows as a law expects them, of all its columns: they are asked for one after another."""
    rng, p = np.random.default_rng(0), np.array(class_proportions)
    return np.asarray(distribution.sample_block(rng.choice(len(p), _SAMPLE_ROWS, p=p / p.sum()), rng), np.float64)


def _number_axis(fitted: FittedModel, distribution: Distribution, term: Term) -> TermAxis:
    """A curve over the values that the law expects."""
    shares = fitted.class_proportions
    try:
        drawn = expected_rows(distribution, tuple(shares.tolist()))[:, term.feature_index]
    except (InputError, ValueError):  # a law that cannot draw, or no rows left
        return TermAxis(term, "")
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn) or np.ptp(drawn) == 0:
        return TermAxis(term, "")
    low, high = np.quantile(drawn, [_TAIL_SHARE, 1 - _TAIL_SHARE])
    at = np.linspace(low, high, _CURVE_POINTS)
    block = np.full((_CURVE_POINTS, distribution.n_features), np.nan)
    block[:, term.feature_index] = at
    said = distribution.contributions(block)[:, :, term.feature_index]
    with np.errstate(invalid="ignore"):
        nats = said - np.nan_to_num(said @ shares)[:, None]
    bars, edges = np.histogram(drawn, _HISTOGRAM_BARS, (low, high))
    middle = float(np.median(drawn))
    return TermAxis(
        term, "curve", contributions=nats, positions=at, histogram=(edges, bars / len(drawn)), typical_value=middle
    )


def find_typical_values(fitted: FittedModel) -> dict[Name, Any]:
    """Return a value for each column of which one is known; text has none, nor have levels without counts."""
    out: dict[Name, Any] = {}
    for i, part in enumerate(fitted.plan.parts):
        if part.event.has_density and part.block_kind != "documents":
            for j, name in enumerate(part.columns):
                value = _typical_value(fitted, i, j)
                if value is not None:
                    out.setdefault(name, value)
    return out


def _typical_value(fitted: FittedModel, i: int, j: int) -> Any:
    part, law = fitted.plan.parts[i], fitted.model.distributions[i]
    known, encoding = law.level_scores(), part.encodings[j]
    if known is None:
        return _median(fitted, i, j) if part.block_kind == "numbers" else None
    if not fitted.has_counts:
        return None
    tally: Any = fitted.selected_counts.tallies[i]
    counts = tally.counts[:, slice(*known.offsets[j : j + 2])].sum(axis=0)
    if not counts.any():
        return None
    if encoding.is_read_as_text:
        values = encoding.labels.values  # type: ignore[attr-defined]
        return values[int(counts[: len(values)].argmax())]
    cell = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
    return value_in_cell(fitted, part.columns[j], encoding, min(cell, len(counts) - 1))  # type: ignore[arg-type]


def _median(fitted: FittedModel, i: int, j: int) -> float | None:
    """Return the median of the numbers that a distribution expects."""
    try:
        drawn = expected_rows(fitted.model.distributions[i], tuple(fitted.class_proportions.tolist()))[:, j]
    except (InputError, ValueError):  # a distribution that cannot draw, or no rows left
        return None
    drawn = drawn[np.isfinite(drawn)]
    return float(np.median(drawn)) if len(drawn) else None
