"""Composing: which voices a classifier has, from a look at some of the rows.

Every column has a voice. Numbers together have three, a linear and a quadratic discriminant and one by the typical rows
that a row resembles; numbers beside levels have one, where it says more than the columns do. Pairs of columns are heard
where they pass the score test of :mod:`candide.model.admission`, and then triples that grow from the strongest pairs.
The plan that comes out says how all of it is counted, from any source.

>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> table = Table.of({"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b], "c": rng.normal(size=400)})
>>> plan, _ = compose(Look.of(table, a ^ b, Labels((0, 1))).pooled())
>>> [part.event.voices(part.columns) for part in plan.parts if not part.event.has_density]
[(('a', 'b'),)]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.conjugate.interaction import TOWARDS
from candide.conjugate.words import Words
from candide.distributions.base import dense
from candide.distributions.word_weights import WordWeights
from candide.encode import Encoding, Grid
from candide.encode.indicators import Indicators
from candide.encode.likeness import Likeness
from candide.encode.normal_score import NormalScore
from candide.engines import arrays
from candide.events import EventModel, event_of
from candide.events.binned import Binned
from candide.events.discriminant import Discriminant
from candide.events.interaction import Interaction
from candide.events.resemblance import Resemblance
from candide.events.text import HEARD
from candide.model import voices
from candide.model.admission import admit, is_needed, score_test
from candide.model.census import Census
from candide.model.plan import Part, Plan, for_each, is_one, named_events, plan_of
from candide.model.settings import Settings
from candide.model.shrinkage import shrink_to_prior
from candide.rows.blocks import Codes, Floats
from candide.rows.kinds import Column, inspect
from candide.rows.labels import Labels
from candide.rows.table import Name, Table
from candide.tally import Tally
from candide.tally.base import class_weights
from candide.tasks.look import Look

MOST = {2: 200, 3: 100}  # sets of two and of three columns
_GROWN = 60  # pairs from which triples grow
_COLUMNS = 200  # that are tried in pairs: more of them make too many pairs
_CELLS = 8, 16  # of a number in a set, at least and at most
_ALONE = 0.01  # the share of rows with a level of their own beyond which there is no end of levels
_NUMBERS = 300  # in a discriminant, at most
_INDICATORS = 60, 400  # of a column, and of all, at most
_TYPICAL = 64  # rows with which others are compared, at most


def compose(
    seen: Look,
    *,
    settings: Settings | None = None,
    sets: bool = True,
    encodings: "Encodings | None" = None,
) -> tuple[Plan, voices.Voices]:
    """The plan of all voices, and their weights by rows whose equal ones are pooled.

    ``encodings`` of more rows than these, where they were learned before: only levels are still those of the rows.
    """
    encodings = Encodings.of(seen) if encodings is None else encodings
    table = seen.table
    composer = _Composer(seen, settings or Settings(), encodings)
    composer.add(*encodings.plan.with_levels(table).parts)
    numbers, levels = composer.columns(numbers=True), composer.columns(numbers=False)
    scores = [(name, encodings.scores(name)) for name in numbers]
    if 2 <= len(numbers) <= min(_NUMBERS, table.n_rows - 1):  # of fewer rows no covariance can be told
        composer.add(_part(Discriminant(), scores), encodings.resemblance(_part(Resemblance(), scores)))
    composer.hear()
    composer.listen()
    marks = [(name, encodings.indicators(name)) for name in levels]
    beside = scores + [(name, mark) for name, mark in marks if mark.width]
    if len(beside) > len(scores) and 2 <= sum(one.width for _, one in beside) <= min(_INDICATORS[1], table.n_rows - 1):
        composer.consider(_part(Discriminant(quadratic=False, towards_diagonal=1.0), beside))
    if sets:
        pairs = composer.grow(2, None)
        composer.grow(3, pairs)
    if 0 < len(composer.texts) < len(composer.parts):  # once more, now that all others have spoken
        composer.hear()
        composer.listen()
    found = composer.shrunk()
    return composer.plan, replace(found, copies=seen.class_copies, rows=seen.n_rows, counted=seen.n_rows)


def columns_plan(columns: Sequence[Column], events: Any = "auto") -> Plan:
    """The plan of the columns alone: numbers are binned, where no other event model is asked for, and words heard.

    Whole numbers for which the counts would decide what they are need no decision: they are binned too.
    """
    if is_one(events):
        return plan_of(columns, Binned() if event_of(events).most is not None else events)
    names = [column.name for column in columns]
    asked = for_each(events, names) if isinstance(events, Mapping) else {}
    asked = {key: Binned() if event_of(event).most is not None else event for key, event in asked.items()}
    named = set(named_events(asked))
    usual = {kind: Binned() for kind in ("number", "whole", "date")} | {"text": HEARD}
    inferred = {c.name: usual[c.kind] for c in columns if c.kind in usual and c.name not in named}
    return plan_of(columns, {**inferred, **asked})


@dataclass(frozen=True, eq=False)
class Encodings:
    """How columns become codes and scores, each learned once from some rows: no label is looked at."""

    table: Table
    weight: Floats | None  # (row,)
    plan: Plan  # of the columns alone
    known: dict[tuple[str, Name, int], Any] = field(default_factory=dict)
    is_part: bool = False  # whether there are more rows than these, and so perhaps more levels
    alike: dict[tuple[Name, ...], Likeness] = field(default_factory=dict)
    draws: float | None = None  # independent rows; None: as many as there are

    @classmethod
    def of(cls, seen: Look, events: Any = "auto", columns: Sequence[Column] | None = None) -> "Encodings":
        """Learned from rows whose equal ones are pooled."""
        looked, weight = inspect(seen.table) if columns is None else columns, seen.frequency
        draws = None if seen.weight is None else float(seen.weight.sum())
        plan = columns_plan(looked, events).with_levels(seen.table, weight)
        return cls(seen.table, weight, plan, is_part=seen.is_part, draws=draws)

    def is_open(self, name: Name) -> bool:
        """Whether rows to come will bring ever more levels of a column, one in a hundred of them: as many are alone."""
        return self.is_part and self._once("open", name, 0, _alone) > _ALONE

    def scores(self, name: Name) -> NormalScore:
        """A number by its rank."""
        return self._once("scores", name, 0, lambda column: NormalScore().learn(column, self.weight))

    def indicators(self, name: Name) -> Indicators:
        """Numbers for the levels of a column."""
        most = _INDICATORS[0]
        return self._once("indicators", name, most, lambda column: Indicators.of(column, most, self.weight))

    def resemblance(self, part: Part) -> Part:
        """A part of scores as a comparison with typical rows."""
        if part.columns not in self.alike:
            self.alike[part.columns] = Likeness.of(dense(part.block(self.table)), _TYPICAL)
        return replace(part, together=self.alike[part.columns])

    def cells(self, name: Name, order: int) -> Grid:
        """The cells of a number in sets of so many columns: the more rows there are, the more of them."""
        # As many as leave a cell of such a set the rows that its margins weigh in it, so that it can say its own.
        n = int(np.clip((self.n_rows / TOWARDS) ** (1 / order), *_CELLS))
        return self._once("cells", name, n, lambda column: Grid(cells=n).learn(column, self.weight))

    @property
    def n_rows(self) -> float:
        """How many rows there are to learn from, copies of one being one."""
        return self.draws if self.draws is not None else self.table.n_rows

    def _once(self, what: str, name: Name, size: int, learn: Callable[[Any], Any]) -> Any:
        if (what, name, size) not in self.known:
            self.known[what, name, size] = learn(self.table.column(name))
        return self.known[what, name, size]


class _Composer:
    """A plan that grows, with what its voices say of the rows so far."""

    def __init__(self, seen: Look, settings: Settings, encodings: Encodings):
        self.seen, self.settings, self.encodings = seen, settings, encodings
        self.table, self.y, self.weight = seen.table, seen.y, seen.weight
        self.labels = Labels(tuple(range(int(self.y.max(initial=0)) + 1)))
        self.class_weight = class_weights(self.y, self.weight, len(self.labels))
        self.teaching = seen.training_rows(Plan((), ())).teaching(self.class_weight)
        self.parts: list[Part] = []
        self.tallies: list[Tally] = []
        self.terms: list[NDArray] = []  # of each part, (row, class, voice)
        self.texts: dict[int, Words] = {}  # what the words of documents say, of the parts that have any
        self.words: tuple[WordWeights | None, ...] = ()  # of the first parts, their weights
        self.found: voices.Voices | None = None  # their weights

    @property
    def plan(self) -> Plan:
        used = {name for part in self.parts for name in part.columns}
        return Plan(tuple(name for name in self.table.names if name in used), tuple(self.parts))

    def columns(self, *, numbers: bool) -> list[Name]:
        """The columns that are counted in the cells of a grid, or as levels; those that hold one value say nothing."""
        return [
            name
            for part in self.parts
            if part.holds == "codes" and part.event.has_density
            for name, encoding in zip(part.columns, part.encodings, strict=True)
            if encoding.as_written is not numbers and (encoding.n_levels or 0) > 1
        ]

    def census(self, parts: Sequence[Part], tallies: Sequence[Tally]) -> Census:
        plan = Plan(tuple(dict.fromkeys(name for part in parts for name in part.columns)), tuple(parts))
        return Census(plan, self.labels, self.class_weight, tuple(tallies), self.table.n_rows)

    def say(self, part: Part) -> tuple[Tally, NDArray]:
        """A part's counts, and (row, class, voice) what it says of the rows."""
        block = part.block(self.table)
        tally = arrays.tally(part, block, self.y, self.weight, len(self.labels))
        census, rows = self.census([part], [tally]), replace(self.seen.training_rows(Plan((), ())), blocks=[block])
        [terms] = voices.terms_of(census, self.settings, rows)
        self.texts |= {len(self.parts): said for said in voices.spoken(census, self.settings, rows).values()}
        return tally, terms

    def add(self, *parts: Part) -> None:
        for part in parts:
            self._keep(part, *self.say(part))

    def hear(self) -> None:
        """Learn the weights of words, given what the other voices say so far."""
        if voices.teaches(self.y):
            census = self.census(self.parts, self.tallies)
            self.words = voices.hear(census, self.weight, self.terms, self.texts, self.found)

    def _keep(self, part: Part, tally: Tally, terms: NDArray) -> None:
        self.parts.append(part)
        self.tallies.append(tally)
        self.terms.append(terms)

    def listen(self) -> None:
        """Learn the weights of all voices so far, and let go of the sets that are given one below 0.

        Each was admitted for what it says. One that no longer says anything speaks against the class of every row that
        is left out of it, for its cell then has a row less; a large weight below 0 would make an answer of that.
        """
        while True:
            census = self.census(self.parts, self.tallies)
            words = (*self.words, *(None for _ in self.terms[len(self.words) :]))
            self.found = voices.balance(census, self.y, self.teaching, self.terms, words, self.found)
            heard = [
                np.flatnonzero(weight >= 0) if part.spec.sets else np.arange(len(weight))
                for part, weight in zip(self.parts, self.found.weight, strict=True)
            ]
            if [*map(len, heard)] == [*map(len, self.found.weight)]:
                self.posterior = voices.posterior(census, self.found, self.terms)
                return
            self._only(heard)

    def shrunk(self) -> voices.Voices:
        """The weights, shrunk towards the class prior as far as their gain may be due to chance."""
        assert self.found is not None
        census = self.census(self.parts, self.tallies)
        return shrink_to_prior(census, self.y, self.teaching, self.terms, self.found)

    def _only(self, heard: Sequence[Codes]) -> None:
        """Keep some of the sets of each part."""
        assert self.found is not None
        weight = tuple(w[kept] for w, kept in zip(self.found.weight, heard, strict=True))
        self.found = replace(self.found, weight=weight) if all(map(len, heard)) else None  # without a group, anew
        for i in reversed(range(len(self.parts))):
            sets, kept = self.parts[i].spec.sets, heard[i]
            if not sets:
                continue
            if not len(kept):
                del self.parts[i], self.tallies[i], self.terms[i]
            else:
                self.parts[i] = replace(self.parts[i], event=Interaction(tuple(sets[j] for j in kept)))
                self.tallies[i] = self.tallies[i].only(kept)
                self.terms[i] = self.terms[i].take(kept, axis=2)

    def consider(self, part: Part) -> None:
        """Add a part with one voice, where that passes the score test."""
        tally, terms = self.say(part)
        degrees = (len(self.labels) - 1.0) * sum(encoding.width for encoding in part.encodings)
        if is_needed(terms, degrees, self.y, self.posterior, self.weight):
            self._keep(part, tally, terms)
            self.listen()

    def grow(self, order: int, grown: Part | None) -> Part | None:
        """Add the sets of columns that are admitted, as one part; ``grown`` has those that they grow from."""
        levels = [name for name in self.columns(numbers=False) if not self.encodings.is_open(name)]
        chosen = [*self.columns(numbers=True), *levels]
        chosen = [name for name in self.table.names if name in set(chosen)]
        encodings = {name: self._cells(name, order) for name in chosen}
        chosen = self._strongest([name for name in chosen if (encodings[name].n_levels or 0) > 1])
        at = {name: j for j, name in enumerate(chosen)}
        if order == 2:
            sets: list[tuple[int, ...]] = list(combinations(range(len(chosen)), 2))
        elif grown is None:
            return None
        else:
            seeds = [tuple(at[n] for n in one) for one in grown.event.voices(grown.columns)[:_GROWN]]
            sets = sorted({tuple(sorted({*one, j})) for one in seeds for j in range(len(chosen)) if j not in one})
        if not sets:
            return None
        whole = _part(Interaction((sets[0],)), [(name, encodings[name]) for name in chosen])
        codes, sizes = dense(whole.block(self.table)), whole.spec.sizes
        rows = self.y, self.posterior, self.weight, self.seen.left_out
        admitted = admit(sets, codes, sizes, *rows, most=MOST[order], established=order > 2)
        if not admitted:
            return None
        used = sorted({j for one in admitted for j in one})
        place = {j: i for i, j in enumerate(used)}
        event = Interaction(tuple(tuple(place[j] for j in one) for one in admitted))
        self.add(_part(event, [(chosen[j], encodings[chosen[j]]) for j in used]))
        self.listen()
        return self.parts[-1] if self.parts[-1].spec.sets else None

    def _cells(self, name: Name, order: int) -> Encoding:
        for part in self.parts:
            if part.event.has_density and name in part.columns:
                own = part.encodings[part.columns.index(name)]
                return own if own.as_written else self.encodings.cells(name, order)
        raise KeyError(name)

    def _strongest(self, names: list[Name]) -> list[Name]:
        """The columns that tell most by themselves, where they are very many."""
        if len(names) <= _COLUMNS:
            return names
        shares = self.class_weight / max(1e-300, float(self.class_weight.sum()))
        z: dict[Name, float] = {}
        for part, terms in zip(self.parts, self.terms, strict=True):
            if part.event.has_density:
                even = np.broadcast_to(shares, (len(self.y), len(shares)))
                found = score_test(terms, self.y, even, self.weight)
                z |= {one[0]: score for one, score in zip(part.event.voices(part.columns), found, strict=True)}
        best = set(sorted(names, key=lambda name: -z.get(name, 0.0))[:_COLUMNS])
        return [name for name in names if name in best]


def _alone(column: Any) -> float:
    """The share of the rows whose level no other row has."""
    known = Labels.of(column)
    codes = known.encode(column)
    return float((np.bincount(codes[codes >= 0], minlength=1) == 1).sum()) / max(1, len(codes))


def _part(event: EventModel, columns: Sequence[tuple[Name, Encoding]]) -> Part:
    names, encodings = zip(*columns, strict=True)
    return Part(event, names, encodings)
