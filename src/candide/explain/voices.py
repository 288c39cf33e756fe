"""Voices: who speaks in a weighted model, how much each counts, and how far it moves a row. From the counts alone.

The *strength* of a voice is how much it says for one class against another, in nats: the mean over the rows counted,
and over two different classes drawn by their shares, of its weighted term in the one less that in the other, whatever
the sign. Of two classes it is the mean size of the contribution that :mod:`candide.explain.rows` shows of a row. A row
in which a value is missing counts as 0. Of levels, bins and cells the counts tell how many rows are in each; of other
laws the rows are those that the law itself expects, drawn with a fixed seed. A column whose values tell nothing of the
class, left with one bin, has no voice of its own: ``silent`` says so.

>>> from candide.demo import garden
>>> plain = voices(Fitted(garden()))
>>> plain["scented"].weight, round(plain["scented"].strength, 2), plain[0].title
(1.0, 0.25, 'leaf_mm')
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from candide import wording
from candide.distributions import Distribution
from candide.errors import InputError, unknown
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.table import Name

_SHOWN = 20  # voices printed before "and more"
_DRAWN = 1000  # rows, where a law has no levels to count
_SETS = {2: "pair", 3: "triple"}


@dataclass(frozen=True)
class Voice:
    """A column, or columns that speak together: its weight, and how much it says. None where that is not known."""

    title: str
    columns: tuple[Name, ...]
    kind: str  # "column", "pair", "triple", or the event model of columns together
    weight: float
    strength: float | None  # nats
    answers: int | None = None  # the bins, levels or cells that it tells apart; None where it has none
    part: int = 0  # the part of the plan whose law speaks
    feature: int = 0  # of that law


@dataclass(frozen=True)
class Silent:
    """A column without a voice of its own, and why; how many other voices it is heard in."""

    column: Name
    why: str
    heard_in: int


@dataclass(frozen=True)
class Voices(Sequence[Voice]):
    """All voices, strongest first. Prints as a table; ``to_dict`` makes any data frame."""

    voices: tuple[Voice, ...]
    silent: tuple[Silent, ...] = ()
    rows: int | None = None  # that the weights were learned from; None: not kept, or no weights were

    def __len__(self) -> int:
        return len(self.voices)

    def __iter__(self) -> Iterator[Voice]:
        return iter(self.voices)

    @overload
    def __getitem__(self, at: int | str | tuple[Name, ...]) -> Voice: ...
    @overload
    def __getitem__(self, at: slice) -> "Voices": ...
    def __getitem__(self, at: int | str | tuple[Name, ...] | slice) -> "Voice | Voices":
        """By place, by title ("age x job"), or by columns in any order."""
        if isinstance(at, slice):
            return Voices(self.voices[at], self.silent, self.rows)
        if isinstance(at, int):
            return self.voices[at]
        wanted = set(at) if isinstance(at, tuple) else None
        for one in self.voices:
            if one.title == at or (wanted and len(at) == len(one.columns) and set(one.columns) == wanted):
                return one
        raise unknown("voice", " x ".join(map(str, at)) if wanted else at, [one.title for one in self.voices])

    def of(self, names: Collection[Name]) -> "Voices":
        """The voices of some columns, or of these titles."""
        some = tuple(one for one in self.voices if one.title in names or not set(one.columns).isdisjoint(names))
        return Voices(some, tuple(one for one in self.silent if one.column in names), self.rows)

    def printed_kind(self, one: Voice) -> str:
        """The kind of a voice as it is printed: of a column that is in other voices too it is the own term alone."""
        return "own term" if one.kind == "column" and one.columns[0] in self._in_others else one.kind

    @cached_property
    def _in_others(self) -> frozenset[Name]:
        return frozenset(name for one in self.voices if len(one.columns) > 1 for name in one.columns)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of values: ``pandas.DataFrame(voices.to_dict())``, or the same of polars or pyarrow."""
        names = ("title", "columns", "kind", "weight", "strength", "answers")
        return {name: [getattr(one, name) for one in self.voices] for name in names}

    def _table(self) -> list[list[str]]:
        rows = [
            [one.title, self.printed_kind(one), f"{one.weight:.2f}", said(one.strength)] for one in self.voices[:_SHOWN]
        ]
        return [["voice", "kind", "weight", "nats"], *rows]

    def __str__(self) -> str:
        rows = self._table()
        more = [f"... and {len(self.voices) - _SHOWN:,} more"] if len(self.voices) > _SHOWN else []
        silent = (f"{one.column}: no voice, {one.why}" for one in self.silent[:_SHOWN])
        return "\n".join([*wording.aligned(rows, words=2), *more, *silent])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        some = self.voices[:_SHOWN]
        more = [f"... and {len(self.voices) - _SHOWN:,} more"] if len(self.voices) > _SHOWN else []
        silent = [f"{wording.plural(len(self.silent), 'column')} without a voice"] if self.silent else []
        return wording.framed(
            "Voices", self._table(), 2, [one.strength or 0.0 for one in some], "; ".join([*more, *silent])
        )


def said(nats: float | None) -> str:
    """A strength for a person."""
    return "" if nats is None else f"{nats:.3f}"


def voices(fitted: Fitted) -> Voices:
    """The voices of a model, strongest first; of an unweighted one too, where every column counts once."""
    parts, laws = fitted.plan.parts, fitted.model.distributions
    tallies: Any = fitted.chosen.tallies if fitted.has_counts else [None] * len(parts)
    rows = float(fitted.chosen.class_weight.sum()) if fitted.has_counts else 0.0
    shares, found, silent = fitted.shares, list[Voice](), dict[Name, str]()
    for i, (part, law, tally) in enumerate(zip(parts, laws, tallies, strict=True)):
        columns, weight = part.event.voices(part.columns), law.unweighted[1].tolist()
        titles = part.event.titles(part.columns, part.encodings)
        strength, answers = _strengths(law, tally, shares, rows), _answers(law)
        for j, (names, title) in enumerate(zip(columns, titles, strict=True)):
            if not part.beside and (why := _no_voice(part, j, answers[j], weight[j])):
                silent[names[0]] = why
                continue
            found.append(Voice(title, names, _kind(part, names), weight[j], strength[j], answers[j], i, j))
    order = sorted(found, key=lambda one: np.inf if one.strength is None else -one.strength)
    heard = [name for one in found for name in one.columns]
    gone = tuple(Silent(name, why, heard.count(name)) for name, why in silent.items())
    return Voices(tuple(order), gone, None if fitted.voices is None else fitted.voices.rows)


def _kind(part: Part, names: tuple[Name, ...]) -> str:
    if not part.beside:
        return "column"
    return part.event.name if part.event.joint else _SETS.get(len(names), f"set of {len(names)}")


def _answers(law: Distribution) -> list[int | None]:
    """How many bins, levels or cells each feature of a law tells apart."""
    known = law.answers()
    if known is None:
        return [None] * law.n_features
    return [int(known.of(j)[1].max(initial=-1)) + 1 for j in range(law.n_features)]


def _no_voice(part: Part, j: int, answers: int | None, weight: float) -> str:
    """Why a column says nothing; nothing where it has something to say."""
    if answers is None or answers > 1:
        return "" if weight else "it tells rows that are left out worse than the class shares do"
    if not part.encodings[j].n_levels:
        return "no row has a value"
    return "one bin: alone it tells nothing of the class" if part.encodings[j].n_levels != 1 else "it holds one value"


def _strengths(law: Distribution, tally: Any, shares: Floats, rows: float) -> list[float | None]:
    """(feature,) how much each feature says for one class against another, in the mean of all rows."""
    if law.n_classes < 2 or not shares.any():
        return [0.0] * law.n_features
    known = law.answers()
    if known is None:
        return _by_drawing(law, tally, shares, rows)
    if tally is not None:
        often = tally.counts.sum(axis=0) / max(rows, 1e-300)
    elif (p := law.unweighted[0].parameters().get("probability")) is not None:
        often = shares @ p
    else:
        return [None] * law.n_features
    each = ((often[slice(*known.offsets[j : j + 2])], known.of(j)[0]) for j in range(law.n_features))
    return [float(own @ apart(table, shares)) for own, table in each]


def _by_drawing(law: Distribution, tally: Any, shares: Floats, rows: float) -> list[float | None]:
    """By rows that the law expects, as many of them without a value as there were."""
    rng = np.random.default_rng(0)
    try:
        terms = law.terms(law.typical(rng.choice(len(shares), _DRAWN, p=shares), rng))
    except InputError:  # a law that cannot draw
        return [None] * law.n_features
    there = np.ones(law.n_features) if tally is None or not rows else tally.n.sum(axis=0) / rows
    present = np.broadcast_to(there[: law.n_features], law.n_features).tolist()
    return [share * float(apart(terms[:, :, j], shares).mean()) for j, share in enumerate(present)]


def apart(said: Floats, shares: Floats) -> Floats:
    """(row,) the mean distance between what two different classes, drawn by their shares, hear; ``said`` (row, class).

    >>> apart(np.array([[0.0, 3.0], [1.0, 1.0]]), np.array([0.9, 0.1])).tolist()
    [3.0, 0.0]
    """
    order = np.argsort(said, axis=1)
    ascending, below = np.take_along_axis(said, order, 1), np.cumsum(shares[order], axis=1)[:, :-1]
    low, high = ascending[:, :-1], ascending[:, 1:]
    with np.errstate(invalid="ignore"):
        gaps = np.where(low == high, 0.0, high - low)
    return 2 * (gaps * below * (1 - below)).sum(axis=1) / max(1.0 - float(shares @ shares), 1e-300)
