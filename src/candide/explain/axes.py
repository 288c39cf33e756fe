"""Axes: what a voice says along its values, in the form in which it can be drawn.

Levels and combinations of levels have a number each; a column of numbers has a curve, over how often its values are
met; a column of text has its strongest words. What columns say together without cells is told in words alone.

>>> from candide.demo import garden
>>> from candide.explain.voices import voices
>>> fitted = Fitted(garden())
>>> leaf, scented = (axis(fitted, voices(fitted)[name]) for name in ("leaf_mm", "scented"))
>>> leaf.shape, leaf.at.shape, leaf.nats.shape, scented.shape, scented.names
('curve', (49,), (49, 3), 'levels', (('no', 'yes'),))
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions import Distribution
from candide.encode.grid import Grid
from candide.errors import InputError
from candide.explain.cells import cells
from candide.explain.terms import TopTerm, top_terms
from candide.explain.voices import Voice
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.blocks import Floats

_POINTS = 49  # of a curve of a law that has no steps
_BARS = 32  # of a histogram
_DRAWN = 2000  # rows that a law expects, where no cells were counted
_TAIL = 0.004  # of the rows at either end, which lie beyond what is drawn
_TERMS = 12  # words for each class


@dataclass(frozen=True, eq=False)
class Axis:
    """One voice along its values.

    ``nats`` are for each class less the mean over classes by their shares.
    """

    voice: Voice
    shape: str  # "levels" | "steps" | "curve" | "table" | "terms" | "" where it cannot be drawn
    names: tuple[tuple[str, ...], ...] = ()  # of each column its levels, bins or cells
    nats: Floats | None = None  # (level of each column ..., class), or (point, class)
    often: Floats | None = None  # (level of each column ...) the share of the rows; None where it is not known
    at: Floats | None = None  # the points of a curve, or the edges between steps
    bars: tuple[Floats, Floats] | None = None  # of numbers: the edges of bars, and the share of the rows in each
    terms: tuple[tuple[TopTerm, ...], ...] = ()  # for each class
    typical: str | float | None = None  # the most frequent level, or the median of numbers; None where it is not known

    def against(self, shares: Floats, c: int) -> Floats:
        """(level of each column ...) or (point,) what it says for a class against the mean of the others."""
        assert self.nats is not None
        return self.nats[..., c] / max(1.0 - float(shares[c]), 1e-300)


def axis(fitted: Fitted, voice: Voice) -> Axis:
    """What a voice says along its values."""
    part, law = fitted.plan.parts[voice.part], fitted.model.distributions[voice.part]
    if part.holds == "documents":
        return _of_terms(fitted, voice)
    if law.answers() is not None:
        return _of_cells(fitted, part, law, voice)
    if len(voice.columns) > 1 or part.event.joint or part.holds != "numbers":
        return Axis(voice, "")
    return _of_numbers(fitted, law, voice)


def _of_terms(fitted: Fitted, voice: Voice) -> Axis:
    if not fitted.has_counts:
        return Axis(voice, "")
    found = tuple(tuple(top_terms(fitted, voice.columns[0], label, _TERMS)) for label in fitted.labels.values)
    return Axis(voice, "terms", terms=found)


def _of_cells(fitted: Fitted, part: Part, law: Distribution, voice: Voice) -> Axis:
    found = cells(fitted, voice)
    if len(voice.columns) > 1:
        return Axis(voice, "table", found.names, found.nats, found.often)
    grid: Any = part.encodings[part.columns.index(voice.columns[0])]
    if grid.as_written or not grid.edges:
        often = None if found.often is None else found.names[0][int(found.often.argmax())]
        return Axis(voice, "levels", found.names, found.nats, found.often, typical=often)
    known = law.answers()
    assert known is not None
    edges = np.array(grid.coarsen(known.of(voice.feature)[1]).edges)
    counts, middle = None, None
    if fitted.has_counts:
        tally: Any = fitted.chosen.tallies[voice.part]
        counts = tally.counts[:, slice(*known.offsets[voice.feature : voice.feature + 2])].sum(axis=0)
        half = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
        middle = value_in_cell(fitted, voice.columns[0], grid, min(half, len(counts) - 1))
    return Axis(voice, "steps", found.names, found.nats, found.often, edges, _bars(grid, counts), typical=middle)


def value_in_cell(fitted: Fitted, name: Any, grid: Grid, cell: int) -> float:
    """A value in a cell that was met, where any encoding of the column keeps some: a grid knows its edges alone."""
    every = (part.encodings[part.columns.index(name)].met() for part in fitted.plan.parts if name in part.columns)
    met = np.array(next(filter(None, every), ()))
    there = met[np.searchsorted(grid.edges or (), met) == cell]
    return float(there[len(there) // 2] if len(there) else grid.decode(np.array([cell]))[0])


def _bars(grid: Grid, counts: Floats | None) -> tuple[Floats, Floats] | None:
    """The cells of a grid in bars of equal width, but for what lies far out; what is in a cell lies evenly in it."""
    edges = np.array(grid.edges)
    if counts is None or not counts.sum():
        low, high = edges[0], edges[-1]
        margin = 0.05 * (high - low) or max(abs(low), 1.0) * 0.05
        return (np.array([low - margin, high + margin]), np.ones(1)) if np.isfinite(margin) else None
    widths = np.diff(edges) if len(edges) > 1 else np.array([max(abs(edges[0]), 1.0) * 0.05])
    walls = np.concatenate([[edges[0] - widths[0]], edges, [edges[-1] + widths[-1]]])  # as wide as what is beside them
    below = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
    low, high = np.interp([_TAIL, 1 - _TAIL], below, walls)
    low, high = (walls[0], walls[-1]) if high - low < 1e-3 * (walls[-1] - walls[0]) else (low, high)
    if not np.isfinite(high - low) or high <= low:
        return None
    at = np.linspace(low, high, _BARS + 1)
    return at, np.diff(np.interp(at, walls, below))


@lru_cache(maxsize=1)
def expected_rows(law: Distribution, shares: tuple[float, ...]) -> NDArray:
    """Rows as a law expects them, of all its columns: they are asked for one after another."""
    rng, p = np.random.default_rng(0), np.array(shares)
    return np.asarray(law.typical(rng.choice(len(p), _DRAWN, p=p / p.sum()), rng), np.float64)


def _of_numbers(fitted: Fitted, law: Distribution, voice: Voice) -> Axis:
    """A curve over the values that the law expects."""
    shares = fitted.shares
    try:
        drawn = expected_rows(law, tuple(shares.tolist()))[:, voice.feature]
    except (InputError, ValueError):  # a law that cannot draw, or no rows left
        return Axis(voice, "")
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn) or np.ptp(drawn) == 0:
        return Axis(voice, "")
    low, high = np.quantile(drawn, [_TAIL, 1 - _TAIL])
    at = np.linspace(low, high, _POINTS)
    block = np.full((_POINTS, law.n_features), np.nan)
    block[:, voice.feature] = at
    said = law.terms(block)[:, :, voice.feature]
    with np.errstate(invalid="ignore"):
        nats = said - np.nan_to_num(said @ shares)[:, None]
    bars, edges = np.histogram(drawn, _BARS, (low, high))
    middle = float(np.median(drawn))
    return Axis(voice, "curve", nats=nats, at=at, bars=(edges, bars / len(drawn)), typical=middle)
