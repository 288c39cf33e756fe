"""Composing: which voices a classifier has, from a look at some of the rows.

Every column has a voice. Numbers together have three, a linear and a quadratic discriminant and one by the typical rows
that a row resembles; numbers beside levels have one, where it says more than the columns do. Pairs of columns are heard
where they pass the score test of :mod:`candide.model.admission`, and then triples that grow from the strongest pairs.
The plan that comes out says how all of it is counted, from any source.

>>> rng = np.random.default_rng(0)
>>> a, b = rng.integers(0, 2, (2, 400))
>>> table = Table.from_data(
...     {"a": np.array(["no", "yes"])[a], "b": np.array(["low", "high"])[b], "c": rng.normal(size=400)}
... )
>>> plan, _ = select_terms(Sample.from_table(table, a ^ b, Labels((0, 1))).pool_rows())
>>> [part.event.term_names(part.columns) for part in plan.parts if not part.event.has_density]
[(('a', 'b'),)]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.conjugate.held_out_tokens import HeldOutTokens
from candide.conjugate.interaction import MARGIN_ROWS
from candide.data.blocks import Codes, Floats
from candide.data.column_types import ColumnSchema, infer_columns
from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Name, Table
from candide.distributions.base import to_dense
from candide.distributions.token_weights import TokenWeights
from candide.encoding import Encoding, Grid
from candide.encoding.indicators import Indicators
from candide.encoding.normal_score import NormalScore
from candide.encoding.prototypes import Prototypes
from candide.engines import arrays
from candide.events import EventModel, resolve_event
from candide.events.binned import Binned
from candide.events.discriminant import Discriminant
from candide.events.interaction import Interaction
from candide.events.prototype import PrototypeTerm
from candide.events.text import DEFAULT_TEXT
from candide.model import term_weights
from candide.model.admission import is_term_needed, score_test, select_interactions
from candide.model.counts import ModelCounts
from candide.model.plan import Plan, PlanPart, expand_wildcard, is_single_event, named_events, plan_columns
from candide.model.settings import Settings
from candide.model.shrinkage import shrink_to_prior
from candide.model.training_rows import TrainingRows
from candide.tally import Tally
from candide.tally.base import sum_class_weights

MAX_SETS = {2: 200, 3: 100}  # sets of two and of three columns
_MAX_SEED_PAIRS = 60  # pairs from which triples grow
_MAX_PAIRED_COLUMNS = 200  # that are tried in pairs: more of them make too many pairs
_CELL_RANGE = 8, 16  # of a number in a set, at least and at most
_MAX_UNIQUE_SHARE = 0.01  # the share of rows with a level of their own beyond which there is no end of levels
_MAX_DISCRIMINANT_NUMBERS = 300  # in a discriminant, at most
_MAX_INDICATORS = 60, 400  # of a column, and of all, at most
_N_PROTOTYPES = 64  # rows with which others are compared, at most


def select_terms(
    sample: Sample,
    *,
    settings: Settings | None = None,
    interactions: bool = True,
    encodings: "LearnedEncodings | None" = None,
) -> tuple[Plan, term_weights.TermWeights]:
    """The plan of all voices, and their weights by rows whose equal ones are pooled.

    ``encodings`` of more rows than these, where they were learned before: only levels are still those of the rows.
    """
    encodings = LearnedEncodings.from_sample(sample) if encodings is None else encodings
    table = sample.table
    composer = _TermSelector(sample, settings or Settings(), encodings)
    composer.add_parts(*encodings.plan.with_levels(table).parts)
    numbers, levels = composer.term_columns(numbers=True), composer.term_columns(numbers=False)
    scores = [(name, encodings.normal_score(name)) for name in numbers]
    if 2 <= len(numbers) <= min(_MAX_DISCRIMINANT_NUMBERS, table.n_rows - 1):  # of fewer rows no covariance can be told
        composer.add_parts(
            _make_part(Discriminant(), scores), encodings.prototype_part(_make_part(PrototypeTerm(), scores))
        )
    composer.learn_token_weights()
    composer.learn_weights()
    marks = [(name, encodings.indicators(name)) for name in levels]
    beside = scores + [(name, mark) for name, mark in marks if mark.width]
    if len(beside) > len(scores) and 2 <= sum(one.width for _, one in beside) <= min(
        _MAX_INDICATORS[1], table.n_rows - 1
    ):
        composer.add_if_needed(_make_part(Discriminant(quadratic=False, towards_diagonal=1.0), beside))
    if interactions:
        pairs = composer.add_interactions(2, None)
        composer.add_interactions(3, pairs)
    if 0 < len(composer.tokens) < len(composer.parts):  # once more, now that all others have spoken
        composer.learn_token_weights()
        composer.learn_weights()
    found = composer.shrunk()
    return composer.plan, replace(
        found, copies=sample.class_copies, n_learned_rows=sample.n_rows, n_counted_rows=sample.n_rows
    )


def plan_column_terms(columns: Sequence[ColumnSchema], events: Any = "auto") -> Plan:
    """The plan of the columns alone: numbers are binned, where no other event model is asked for, and words heard.

    Whole numbers for which the counts would decide what they are need no decision: they are binned too.
    """
    if is_single_event(events):
        return plan_columns(columns, Binned() if resolve_event(events).max_levels is not None else events)
    names = [column.name for column in columns]
    asked = expand_wildcard(events, names) if isinstance(events, Mapping) else {}
    asked = {key: Binned() if resolve_event(event).max_levels is not None else event for key, event in asked.items()}
    named = set(named_events(asked))
    usual = {kind: Binned() for kind in ("number", "whole", "date")} | {"text": DEFAULT_TEXT}
    inferred = {c.name: usual[c.kind] for c in columns if c.kind in usual and c.name not in named}
    return plan_columns(columns, {**inferred, **asked})


@dataclass(frozen=True, eq=False)
class LearnedEncodings:
    """How columns become codes and scores, each learned once from some rows: no label is looked at."""

    table: Table
    weight: Floats | None  # (row,)
    plan: Plan  # of the columns alone
    cache: dict[tuple[str, Name, int], Any] = field(default_factory=dict)
    is_part: bool = False  # whether there are more rows than these, and so perhaps more levels
    prototypes: dict[tuple[Name, ...], Prototypes] = field(default_factory=dict)
    n_draws: float | None = None  # independent rows; None: as many as there are

    @classmethod
    def from_sample(
        cls, sample: Sample, events: Any = "auto", columns: Sequence[ColumnSchema] | None = None
    ) -> "LearnedEncodings":
        """Learned from rows whose equal ones are pooled."""
        looked, weight = infer_columns(sample.table) if columns is None else columns, sample.frequency
        draws = None if sample.weight is None else float(sample.weight.sum())
        plan = plan_column_terms(looked, events).with_levels(sample.table, weight)
        return cls(sample.table, weight, plan, is_part=sample.is_part, n_draws=draws)

    def has_open_levels(self, name: Name) -> bool:
        """Whether rows to come will bring ever more levels of a column, one in a hundred of them: as many are alone."""
        return self.is_part and self._cached("open", name, 0, _unique_share) > _MAX_UNIQUE_SHARE

    def normal_score(self, name: Name) -> NormalScore:
        """A number by its rank."""
        return self._cached("scores", name, 0, lambda column: NormalScore().learn(column, self.weight))

    def indicators(self, name: Name) -> Indicators:
        """Numbers for the levels of a column."""
        most = _MAX_INDICATORS[0]
        return self._cached("indicators", name, most, lambda column: Indicators.from_column(column, most, self.weight))

    def prototype_part(self, part: PlanPart) -> PlanPart:
        """A part of scores as a comparison with typical rows."""
        if part.columns not in self.prototypes:
            self.prototypes[part.columns] = Prototypes.from_scores(to_dense(part.block(self.table)), _N_PROTOTYPES)
        return replace(part, prototypes=self.prototypes[part.columns])

    def grid(self, name: Name, order: int) -> Grid:
        """The cells of a number in sets of so many columns: the more rows there are, the more of them."""
        # As many as leave a cell of such a set the rows that its margins weigh in it, so that it can say its own.
        n = int(np.clip((self.n_rows / MARGIN_ROWS) ** (1 / order), *_CELL_RANGE))
        return self._cached("cells", name, n, lambda column: Grid(cells=n).learn(column, self.weight))

    @property
    def n_rows(self) -> float:
        """How many rows there are to learn from, copies of one being one."""
        return self.n_draws if self.n_draws is not None else self.table.n_rows

    def _cached(self, what: str, name: Name, size: int, learn: Callable[[Any], Any]) -> Any:
        if (what, name, size) not in self.cache:
            self.cache[what, name, size] = learn(self.table.column(name))
        return self.cache[what, name, size]


class _TermSelector:
    """A plan that grows, with what its voices say of the rows so far."""

    def __init__(self, sample: Sample, settings: Settings, encodings: LearnedEncodings):
        self.sample, self.settings, self.encodings = sample, settings, encodings
        self.table, self.y, self.weight = sample.table, sample.y, sample.weight
        self.labels = Labels(tuple(range(int(self.y.max(initial=0)) + 1)))
        self.class_weight = sum_class_weights(self.y, self.weight, len(self.labels))
        self.learning_weight = TrainingRows.from_sample(sample, Plan((), ())).learning_weight(self.class_weight)
        self.parts: list[PlanPart] = []
        self.tallies: list[Tally] = []
        self.terms: list[NDArray] = []  # of each part, (row, class, voice)
        self.tokens: dict[int, HeldOutTokens] = {}  # what the words of documents say, of the parts that have any
        self.token_weights: tuple[TokenWeights | None, ...] = ()  # of the first parts, their weights
        self.term_weights: term_weights.TermWeights | None = None  # their weights

    @property
    def plan(self) -> Plan:
        used = {name for part in self.parts for name in part.columns}
        return Plan(tuple(name for name in self.table.names if name in used), tuple(self.parts))

    def term_columns(self, *, numbers: bool) -> list[Name]:
        """The columns that are counted in the cells of a grid, or as levels; those that hold one value say nothing."""
        return [
            name
            for part in self.parts
            if part.block_kind == "codes" and part.event.has_density
            for name, encoding in zip(part.columns, part.encodings, strict=True)
            if encoding.is_read_as_text is not numbers and (encoding.n_levels or 0) > 1
        ]

    def make_counts(self, parts: Sequence[PlanPart], tallies: Sequence[Tally]) -> ModelCounts:
        plan = Plan(tuple(dict.fromkeys(name for part in parts for name in part.columns)), tuple(parts))
        return ModelCounts(plan, self.labels, self.class_weight, tuple(tallies), self.table.n_rows)

    def score_part(self, part: PlanPart) -> tuple[Tally, NDArray]:
        """A part's counts, and (row, class, voice) what it says of the rows."""
        block = part.block(self.table)
        tally = arrays.tally_block(part, block, self.y, self.weight, len(self.labels))
        census, rows = (
            self.make_counts([part], [tally]),
            replace(TrainingRows.from_sample(self.sample, Plan((), ())), blocks=[block]),
        )
        [terms] = term_weights.training_contributions(census, self.settings, rows)
        self.tokens |= {
            len(self.parts): said for said in term_weights.collect_tokens(census, self.settings, rows).values()
        }
        return tally, terms

    def add_parts(self, *parts: PlanPart) -> None:
        for part in parts:
            self._append(part, *self.score_part(part))

    def learn_token_weights(self) -> None:
        """Learn the weights of words, given what the other voices say so far."""
        if term_weights.has_several_classes(self.y):
            census = self.make_counts(self.parts, self.tallies)
            self.token_weights = term_weights.update_token_weights(
                census, self.weight, self.terms, self.tokens, self.term_weights
            )

    def _append(self, part: PlanPart, tally: Tally, terms: NDArray) -> None:
        self.parts.append(part)
        self.tallies.append(tally)
        self.terms.append(terms)

    def learn_weights(self) -> None:
        """Learn the weights of all voices so far, and let go of the sets that are given one below 0.

        Each was admitted for what it says. One that no longer says anything speaks against the class of every row that
        is left out of it, for its cell then has a row less; a large weight below 0 would make an answer of that.
        """
        while True:
            census = self.make_counts(self.parts, self.tallies)
            words = (*self.token_weights, *(None for _ in self.terms[len(self.token_weights) :]))
            self.term_weights = term_weights.learn_non_text_weights(
                census, self.y, self.learning_weight, self.terms, words, self.term_weights
            )
            heard = [
                np.flatnonzero(weight >= 0) if part.spec.sets else np.arange(len(weight))
                for part, weight in zip(self.parts, self.term_weights.weight, strict=True)
            ]
            if [*map(len, heard)] == [*map(len, self.term_weights.weight)]:
                self.posterior = term_weights.weighted_posterior(census, self.term_weights, self.terms)
                return
            self._select_sets(heard)

    def shrunk(self) -> term_weights.TermWeights:
        """The weights, shrunk towards the class prior as far as their gain may be due to chance."""
        assert self.term_weights is not None
        census = self.make_counts(self.parts, self.tallies)
        return shrink_to_prior(census, self.y, self.learning_weight, self.terms, self.term_weights)

    def _select_sets(self, heard: Sequence[Codes]) -> None:
        """Keep some of the sets of each part."""
        assert self.term_weights is not None
        weight = tuple(w[kept] for w, kept in zip(self.term_weights.weight, heard, strict=True))
        self.term_weights = (
            replace(self.term_weights, weight=weight) if all(map(len, heard)) else None
        )  # without a group, anew
        for i in reversed(range(len(self.parts))):
            sets, kept = self.parts[i].spec.sets, heard[i]
            if not sets:
                continue
            if not len(kept):
                del self.parts[i], self.tallies[i], self.terms[i]
            else:
                self.parts[i] = replace(self.parts[i], event=Interaction(tuple(sets[j] for j in kept)))
                self.tallies[i] = self.tallies[i].select_features(kept)
                self.terms[i] = self.terms[i].take(kept, axis=2)

    def add_if_needed(self, part: PlanPart) -> None:
        """Add a part with one voice, where that passes the score test."""
        tally, terms = self.score_part(part)
        degrees = (len(self.labels) - 1.0) * sum(encoding.width for encoding in part.encodings)
        if is_term_needed(terms, degrees, self.y, self.posterior, self.weight):
            self._append(part, tally, terms)
            self.learn_weights()

    def add_interactions(self, order: int, grown: PlanPart | None) -> PlanPart | None:
        """Add the sets of columns that are admitted, as one part; ``grown`` has those that they grow from."""
        levels = [name for name in self.term_columns(numbers=False) if not self.encodings.has_open_levels(name)]
        chosen = [*self.term_columns(numbers=True), *levels]
        chosen = [name for name in self.table.names if name in set(chosen)]
        encodings = {name: self._cells(name, order) for name in chosen}
        chosen = self._strongest([name for name in chosen if (encodings[name].n_levels or 0) > 1])
        at = {name: j for j, name in enumerate(chosen)}
        if order == 2:
            sets: list[tuple[int, ...]] = list(combinations(range(len(chosen)), 2))
        elif grown is None:
            return None
        else:
            seeds = [tuple(at[n] for n in one) for one in grown.event.term_names(grown.columns)[:_MAX_SEED_PAIRS]]
            sets = sorted({tuple(sorted({*one, j})) for one in seeds for j in range(len(chosen)) if j not in one})
        if not sets:
            return None
        whole = _make_part(Interaction((sets[0],)), [(name, encodings[name]) for name in chosen])
        codes, sizes = to_dense(whole.block(self.table)), whole.spec.sizes
        rows = self.y, self.posterior, self.weight, self.sample.left_out_weight
        admitted = select_interactions(
            sets, codes, sizes, *rows, max_sets=MAX_SETS[order], interactions_known=order > 2
        )
        if not admitted:
            return None
        used = sorted({j for one in admitted for j in one})
        place = {j: i for i, j in enumerate(used)}
        event = Interaction(tuple(tuple(place[j] for j in one) for one in admitted))
        self.add_parts(_make_part(event, [(chosen[j], encodings[chosen[j]]) for j in used]))
        self.learn_weights()
        return self.parts[-1] if self.parts[-1].spec.sets else None

    def _cells(self, name: Name, order: int) -> Encoding:
        for part in self.parts:
            if part.event.has_density and name in part.columns:
                own = part.encodings[part.columns.index(name)]
                return own if own.is_read_as_text else self.encodings.grid(name, order)
        raise KeyError(name)

    def _strongest(self, names: list[Name]) -> list[Name]:
        """The columns that tell most by themselves, where they are very many."""
        if len(names) <= _MAX_PAIRED_COLUMNS:
            return names
        shares = self.class_weight / max(1e-300, float(self.class_weight.sum()))
        z: dict[Name, float] = {}
        for part, terms in zip(self.parts, self.terms, strict=True):
            if part.event.has_density:
                even = np.broadcast_to(shares, (len(self.y), len(shares)))
                found = score_test(terms, self.y, even, self.weight)
                z |= {one[0]: score for one, score in zip(part.event.term_names(part.columns), found, strict=True)}
        best = set(sorted(names, key=lambda name: -z.get(name, 0.0))[:_MAX_PAIRED_COLUMNS])
        return [name for name in names if name in best]


def _unique_share(column: Any) -> float:
    """The share of the rows whose level no other row has."""
    known = Labels.from_values(column)
    codes = known.encode(column)
    return float((np.bincount(codes[codes >= 0], minlength=1) == 1).sum()) / max(1, len(codes))


def _make_part(event: EventModel, columns: Sequence[tuple[Name, Encoding]]) -> PlanPart:
    names, encodings = zip(*columns, strict=True)
    return PlanPart(event, names, encodings)
