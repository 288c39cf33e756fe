"""Cells: what a voice says of each level, bin or combination of them, for each class, and how many rows are there.

>>> from candide.demo import garden
>>> from candide.explain.voices import voices
>>> fitted = Fitted(garden())
>>> scented = cells(fitted, voices(fitted)["scented"])
>>> scented.names, scented.nats.round(1).tolist()[1], scented.often.round(2).tolist()
((('no', 'yes'),), [0.1, -0.1, 0.0], [0.13, 0.87])
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide.distributions import Distribution
from candide.encode.grid import span
from candide.errors import InputError
from candide.explain.voices import Voice
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.blocks import Codes, Floats
from candide.rows.table import Name


@dataclass(frozen=True, eq=False)
class Cells:
    """A table with an axis for each column of a voice."""

    names: tuple[tuple[str, ...], ...]  # of each column its levels, bins or cells
    nats: Floats  # (level of each column ..., class) for the class, less the mean over classes by their shares
    often: Floats | None  # (level of each column ...) the share of the rows; None where no counts are kept

    def strongest(self, most: int) -> list[tuple[str, Floats]]:
        """The combinations that say most, and what they say for each class."""
        flat = self.nats.reshape(-1, self.nats.shape[-1])
        order = np.argsort(-np.ptp(flat, axis=1), kind="stable")[:most]
        at = np.stack(np.unravel_index(order, self.nats.shape[:-1]), axis=1).tolist()
        named = [", ".join(names[i] for names, i in zip(self.names, one, strict=True)) for one in at]
        return list(zip(named, flat[order], strict=True))


def cells(fitted: Fitted, voice: Voice) -> Cells:
    """What a voice says of each of its cells; an error where it has none, being of numbers as they are."""
    part, law = fitted.plan.parts[voice.part], fitted.model.distributions[voice.part]
    tally: Any = fitted.chosen.tallies[voice.part] if fitted.has_counts else None
    known = law.answers()
    if known is None:
        what, remedy = "it has no levels, bins or cells", "name a column, a pair or a triple"
        raise InputError(what, column=voice.title, value=voice.title, remedy=remedy)
    table, bins = known.of(voice.feature)
    own = slice(*known.offsets[voice.feature : voice.feature + 2])
    rows = max(float(fitted.chosen.class_weight.sum()), 1e-300) if fitted.has_counts else 1.0
    often = None if tally is None else tally.counts[:, own].sum(axis=0) / rows
    at = [part.columns.index(name) for name in voice.columns]
    names: tuple[tuple[str, ...], ...]
    if not part.beside:
        names = (_spans(part, at[0], bins, fitted.dates),)
        first = np.searchsorted(bins, np.arange(bins.max(initial=-1) + 1))
        table, often = table[first], None if often is None else np.bincount(bins, often)
    else:
        names = tuple(part.encodings[j].names(part.columns[j] in fitted.dates) for j in at)
    with np.errstate(invalid="ignore"):
        nats = table - np.nan_to_num(table @ fitted.shares)[:, None]
    shape = tuple(map(len, names))
    return Cells(names, nats.reshape(*shape, -1), None if often is None else often.reshape(shape))


def places(part: Part, law: Distribution, j: int, dates: Collection[Name] = ()) -> tuple[str, ...] | None:
    """The bin or cell that each code of a column of numbers is in; None where that says nothing more."""
    if part.holds != "codes" or part.encodings[j].as_written:
        return None
    known = None if part.beside else law.answers()
    bins = np.arange(part.encodings[j].n_levels or 0) if known is None else known.of(j)[1]
    named = _spans(part, j, bins, dates)
    return tuple(named[b] for b in bins.tolist()) if len(named) > 1 else None


def level_names(part: Part, law: Distribution, j: int, dates: Collection[Name] = ()) -> tuple[str, ...]:
    """The levels of a column, or its bins."""
    known = law.answers()
    if part.encodings[j].as_written or known is None:
        return part.encodings[j].names()
    return _spans(part, j, known.of(j)[1], dates)


def _spans(part: Part, j: int, bins: Codes, dates: Collection[Name]) -> tuple[str, ...]:
    """The names of bins by those of their cells, which they hold in order."""
    names = part.encodings[j].names(part.columns[j] in dates)
    numbers = np.arange(bins.max(initial=-1) + 1)
    first, last = np.searchsorted(bins, numbers), np.searchsorted(bins, numbers, side="right") - 1
    return tuple(span(names[a], names[b]) for a, b in zip(first.tolist(), last.tolist(), strict=True))
