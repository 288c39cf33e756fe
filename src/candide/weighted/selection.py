"""Select the terms of a weighted model from a sample of the rows.

Every column has a term. The kinds of joint terms (:mod:`candide.weighted.terms`) propose theirs: discriminants and a
prototype term of the numbers, a discriminant of numbers and categories, pairs and triples of columns. The result is a
plan that any engine can count.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.data.column_types import ColumnSchema, infer_columns
from candide.data.labels import Labels
from candide.data.sample import Sample
from candide.data.table import Name, Table
from candide.distributions.base import to_dense
from candide.distributions.token_weights import TokenWeights
from candide.encoding import Encoding, Grid, LevelEncoding
from candide.encoding.scores import Indicators, NormalScore, Prototypes
from candide.engines import arrays
from candide.events import resolve_event
from candide.events.categorical import Binned
from candide.events.text import DEFAULT_TEXT
from candide.model.counts import ModelCounts
from candide.model.model import TermWeights
from candide.model.plan import Plan, PlanPart, expand_wildcard, is_single_event, named_events, plan_columns
from candide.model.settings import LIMITS, Settings
from candide.tally import Tally
from candide.tally.base import sum_class_weights
from candide.weighted import learning
from candide.weighted.held_out_tokens import HeldOutTokens
from candide.weighted.terms.base import (
    TERMS,
    UNSEEN_ROWS_Z,
    JointTerm,
    is_term_needed,
    score_moments,
    score_test,
    z_score,
)
from candide.weighted.terms.interaction_scores import MARGIN_ROWS


def select_terms(
    sample: Sample,
    *,
    settings: Settings | None = None,
    terms: str = "all",
    encodings: "LearnedEncodings | None" = None,
    growth_rows: Sample | None = None,
    seed: int = 0,
) -> tuple[Plan, TermWeights]:
    """The plan of all terms, and their weights by a sample whose equal rows are pooled.

    ``terms``: "columns" alone, with "interactions", "all" kinds but decision tables, or these too ("tables").
    ``encodings`` may have been learned before, from more rows; levels are always those of the sample. Decision tables
    are grown on ``growth_rows``, more rows than those of the sample, if they are given.
    """
    encodings = LearnedEncodings.from_sample(sample) if encodings is None else encodings
    growth_rows = sample if growth_rows is None else growth_rows
    selector = TermSelector(sample, settings or Settings(), encodings, growth_rows, seed)
    for _ in selector.grow([kind for name, kind in TERMS.items() if is_kind_selected(name, terms)]):
        while not selector.accept_weights(learning.learn_non_text_weights(*selector.learning_problem())):
            pass  # without the terms that were dropped
    counts, y, weight, contributions, _, learned = selector.learning_problem()
    weights, n = learning.shrink_to_prior(counts, y, weight, contributions, learned), sample.n_rows
    return selector.plan, replace(weights, copies=sample.class_copies, n_learned_rows=n, n_counted_rows=n)


def is_kind_selected(name: str, terms: str) -> bool:
    """Whether a kind of joint term is among the ``terms`` of the settings."""
    if name == "decision_tables":
        return terms == "tables"
    return terms in ("all", "tables") or (terms == "interactions" and name == "interaction")


def plan_column_terms(columns: Sequence[ColumnSchema], events: Any = "auto") -> Plan:
    """The plan of the columns alone: numbers are binned and tokens weighted, unless ``events`` names another model.

    Integers whose event model the counts would decide (``whole``) are binned too.
    """

    def binned_if_open(event: Any) -> Any:
        return Binned() if resolve_event(event).max_levels is not None else event

    if is_single_event(events):
        return plan_columns(columns, binned_if_open(events))
    names = [column.name for column in columns]
    requested = expand_wildcard(events, names) if isinstance(events, Mapping) else {}
    requested = {key: binned_if_open(event) for key, event in requested.items()}
    named = set(named_events(requested))
    defaults = {kind: Binned() for kind in ("number", "whole", "date")} | {"text": DEFAULT_TEXT}
    inferred = {c.name: defaults[c.kind] for c in columns if c.kind in defaults and c.name not in named}
    return plan_columns(columns, {**inferred, **requested})


@dataclass(frozen=True, eq=False)
class LearnedEncodings:
    """The encodings of columns in all kinds of terms, each learned once from a sample, without labels."""

    table: Table
    weight: Floats | None  # (row,)
    plan: Plan  # of the columns alone
    cache: dict[Any, Any] = field(default_factory=dict)
    is_part: bool = False  # whether the source has more rows than these, and so perhaps more levels
    n_draws: float | None = None  # independent rows; None: all are

    @classmethod
    def from_sample(
        cls, sample: Sample, events: Any = "auto", columns: Sequence[ColumnSchema] | None = None
    ) -> "LearnedEncodings":
        columns, weight = infer_columns(sample.table) if columns is None else columns, sample.frequency
        n_draws = None if sample.weight is None else float(sample.weight.sum())
        plan = plan_column_terms(columns, events).with_levels(sample.table, weight)
        return cls(sample.table, weight, plan, is_part=sample.is_part, n_draws=n_draws)

    def has_open_levels(self, name: Name) -> bool:
        """Whether new rows will keep adding levels to a column: too many rows have a level that no other row has."""
        return self.is_part and self._cached("open", name, 0, _singleton_proportion) > LIMITS.max_singletons

    def normal_score(self, name: Name) -> NormalScore:
        return self._cached("scores", name, 0, lambda column: NormalScore().learn(column, self.weight))

    def indicators(self, name: Name) -> Indicators:
        limit, weight = LIMITS.max_column_indicators, self.weight
        return self._cached("indicators", name, limit, lambda column: Indicators.from_column(column, limit, weight))

    def with_prototypes(self, part: PlanPart) -> PlanPart:
        """A part of scores that compares rows with prototypes."""
        if part.columns not in self.cache:
            scores = to_dense(part.block(self.table))
            self.cache[part.columns] = Prototypes.from_scores(scores, LIMITS.n_prototypes)
        return replace(part, prototypes=self.cache[part.columns])

    def grid(self, name: Name, order: int) -> Grid:
        """The cells of a number in sets of so many columns: the more rows there are, the more cells."""
        # As many as give each cell of a set the rows that its margins count for, so that its own counts matter.
        n_rows = self.n_draws if self.n_draws is not None else self.table.n_rows
        n = int(np.clip((n_rows / MARGIN_ROWS) ** (1 / order), *LIMITS.grid_cells))
        return self._cached("cells", name, n, lambda column: Grid(cells=n).learn(column, self.weight))

    def table_grid(self, name: Name) -> Grid:
        """The cells of a number in decision tables."""
        n_rows = self.n_draws if self.n_draws is not None else self.table.n_rows
        n = int(np.clip(n_rows / LIMITS.rows_per_table_cell, *LIMITS.table_cells))
        return self._cached("table", name, n, lambda column: Grid(cells=n).learn(column, self.weight))

    def common_levels(self, name: Name) -> LevelEncoding:
        limit, weight = LIMITS.max_table_levels, self.weight
        return self._cached("common", name, limit, lambda c: LevelEncoding.most_frequent(c, limit, weight))

    def _cached(self, what: str, name: Name, size: int, learn: Callable[[Any], Any]) -> Any:
        if (what, name, size) not in self.cache:
            self.cache[what, name, size] = learn(self.table.column(name))
        return self.cache[what, name, size]


class TermSelector:
    """A plan that grows, with the contributions of its terms and their weights so far."""

    def __init__(
        self, sample: Sample, settings: Settings, encodings: LearnedEncodings, growth_rows: Sample, seed: int = 0
    ):
        self.growth_rows, self.seed = growth_rows, seed
        self.sample, self.settings, self.encodings = sample, settings, encodings
        self.table, self.y, self.weight = sample.table, sample.y, sample.weight
        self.labels = sample.labels
        self.class_weight = sum_class_weights(self.y, self.weight, len(self.labels))
        self.learning_weight = self._rows([]).learning_weight(self.class_weight)
        self.parts: list[PlanPart] = []
        self.tallies: list[Tally] = []
        self.contributions: list[NDArray] = []  # of each part, (row, class, term)
        self.tokens: dict[int, HeldOutTokens] = {}  # of the parts with token weights, by their index
        self.token_weights: tuple[TokenWeights | None, ...] = ()  # of the first parts
        self.term_weights: TermWeights | None = None
        self._tested: tuple[PlanPart, tuple[Tally, NDArray]] | None = None  # the last one, as scored

    # For the kinds of terms

    @cached_property
    def normal_scores(self) -> list[tuple[Name, Encoding]]:
        """The numeric columns with more than one bin, as normal scores."""
        return [(name, self.encodings.normal_score(name)) for name, _ in self._columns(is_text=False)]

    @cached_property
    def indicators(self) -> list[tuple[Name, Encoding]]:
        every = [(name, self.encodings.indicators(name)) for name, _ in self._columns(is_text=True)]
        return [(name, encoding) for name, encoding in every if encoding.width]

    @property
    def can_join_numbers(self) -> bool:
        """Whether there are several numbers, not too many, and rows enough to determine their covariance."""
        return 2 <= len(self.normal_scores) <= min(LIMITS.max_discriminant_numbers, self.table.n_rows - 1)

    def cell_encodings(self, order: int) -> dict[Name, Encoding]:
        """The encoding of each column in sets of so many columns; columns with open levels are left out."""
        levels, numbers = dict(self._columns(is_text=True)), dict(self._columns(is_text=False))
        out: dict[Name, Encoding] = {}
        for name in self.table.names:
            if name in levels and not self.encodings.has_open_levels(name):
                out[name] = levels[name]
            elif name in numbers:
                out[name] = self.encodings.grid(name, order)
        return out

    def strongest_columns(self, names: list[Name]) -> list[Name]:
        """The columns that predict the class best on their own, where there are very many."""
        if len(names) <= LIMITS.max_paired_columns:
            return names
        proportions = self.class_weight / max(1e-300, float(self.class_weight.sum()))
        posterior = np.broadcast_to(proportions, (len(self.y), len(proportions)))
        z: dict[Name, float] = {}
        for part, contributions in zip(self.parts, self.contributions, strict=True):
            if part.event.has_density:
                scores = score_test(contributions, self.y, posterior, self.weight)
                columns = [names[0] for names in part.event.term_names(part.columns)]
                z |= dict(zip(columns, scores.tolist(), strict=True))
        best = set(sorted(names, key=lambda name: -z.get(name, 0.0))[: LIMITS.max_paired_columns])
        return [name for name in names if name in best]

    def table_encodings(self) -> dict[Name, Encoding]:
        """The encoding of each column in decision tables: numbers in more cells than in sets, the commonest levels."""
        numbers, out = dict(self._columns(is_text=False)), dict[Name, Encoding]()
        levels = dict(self._columns(is_text=True))
        for name in self.strongest_columns([name for name in self.table.names if name in numbers or name in levels]):
            out[name] = self.encodings.table_grid(name) if name in numbers else self.encodings.common_levels(name)
        return out

    def improves(self, part: PlanPart) -> bool:
        """Whether the terms of a part, added up, significantly raise the likelihood of rows that they have not seen."""
        self._tested = part, self._score_part(part)
        _, contributions = self._tested[1]
        total = contributions.sum(axis=2, keepdims=True)
        return bool(z_score(*score_moments(total, self.y, self.posterior, self.weight))[0] > UNSEEN_ROWS_Z)

    def is_needed(self, part: PlanPart) -> bool:
        self._tested = part, self._score_part(part)
        _, contributions = self._tested[1]
        degrees = (len(self.labels) - 1.0) * sum(encoding.width for encoding in part.encodings)
        return is_term_needed(contributions, degrees, self.y, self.posterior, self.weight)

    # How the plan grows

    def grow(self, kinds: Sequence[type[JointTerm]]) -> Iterator[None]:
        """Add parts step by step; after each step the weights of all terms so far are to be learned."""
        self._add_parts(*self.encodings.plan.with_levels(self.table).parts)
        for kind in kinds:
            self._add_parts(*kind.initial_parts(self))
        self._learn_token_weights()
        yield
        for part in (part for kind in kinds for part in kind.tested_parts(self)):
            self._add_parts(part)
            yield
        if 0 < len(self.tokens) < len(self.parts):  # once more, given all other terms
            self._learn_token_weights()
            yield

    def learning_problem(self) -> tuple[Any, ...]:
        """The arguments of ``learn_non_text_weights``: all terms so far."""
        tokens = (*self.token_weights, *(None for _ in self.contributions[len(self.token_weights) :]))
        return self._counts(), self.y, self.learning_weight, self.contributions, tokens, self.term_weights

    def accept_weights(self, term_weights: TermWeights) -> bool:
        """Take these weights, and drop tested terms with a negative weight; whether there are none.

        Each was selected because it helps. Once it no longer does, its leave-one-out contribution counts against the
        class of every row, whose cell has a row less; a negative weight would turn that into evidence.
        """
        self.term_weights = term_weights
        kept = [
            part.event.kept_terms(weight) if isinstance(part.event, JointTerm) else np.arange(len(weight))
            for part, weight in zip(self.parts, term_weights.weight, strict=True)
        ]
        if [*map(len, kept)] == [*map(len, term_weights.weight)]:
            self.posterior = learning.weighted_posterior(self._counts(), term_weights, self.contributions)
            return True
        weight = tuple(w[own] for w, own in zip(term_weights.weight, kept, strict=True))
        # Without a whole group the weights are learned anew.
        self.term_weights = replace(term_weights, weight=weight) if all(map(len, kept)) else None
        for i in reversed(range(len(self.parts))):
            event = self.parts[i].event
            if not len(kept[i]):
                del self.parts[i], self.tallies[i], self.contributions[i]
            elif len(kept[i]) < len(term_weights.weight[i]):
                self.parts[i] = replace(self.parts[i], event=event.select_terms(kept[i]))  # type: ignore[attr-defined]
                self.tallies[i] = self.tallies[i].select_features(kept[i])
                self.contributions[i] = self.contributions[i].take(kept[i], axis=2)
        return False

    @property
    def plan(self) -> Plan:
        used = {name for part in self.parts for name in part.columns}
        return Plan(tuple(name for name in self.table.names if name in used), tuple(self.parts))

    def _learn_token_weights(self) -> None:
        """Learn the weights of tokens, given the contributions of the other terms so far."""
        if learning.has_several_classes(self.y):
            self.token_weights = learning.update_token_weights(
                self._counts(), self.weight, self.contributions, self.tokens, self.term_weights
            )

    def _add_parts(self, *parts: PlanPart) -> None:
        for part in parts:
            is_tested = self._tested is not None and self._tested[0] is part
            tally, contributions = self._tested[1] if is_tested else self._score_part(part)  # type: ignore[index]
            self.parts.append(part)
            self.tallies.append(tally)
            self.contributions.append(contributions)

    def _score_part(self, part: PlanPart) -> tuple[Tally, NDArray]:
        """The tally of a part, and (row, class, term) its contributions to the rows."""
        block = part.block(self.table)
        tally = arrays.tally_block(part, block, self.y, self.weight, len(self.labels))
        counts, rows = self._counts([part], [tally]), self._rows([block])
        [contributions] = learning.row_contributions(counts, self.settings, rows)
        for tokens in learning.collect_tokens(counts, self.settings, rows).values():
            self.tokens[len(self.parts)] = tokens
        return tally, contributions

    def _columns(self, *, is_text: bool) -> list[tuple[Name, Encoding]]:
        """The columns counted as levels of text, or in the cells of a grid; not those with a single value."""
        return [
            (name, encoding)
            for part in self.parts
            if part.block_kind == "codes" and part.event.has_density
            for name, encoding in zip(part.columns, part.encodings, strict=True)
            if encoding.is_read_as_text is is_text and (encoding.n_levels or 0) > 1
        ]

    def _rows(self, blocks: list[Any]) -> learning.TrainingRows:
        return replace(learning.TrainingRows.from_sample(self.sample, Plan((), ())), blocks=blocks)

    def _counts(self, parts: Sequence[PlanPart] | None = None, tallies: Sequence[Tally] | None = None) -> ModelCounts:
        parts, tallies = parts or self.parts, tallies or self.tallies
        plan = Plan(tuple(dict.fromkeys(name for part in parts for name in part.columns)), tuple(parts))
        return ModelCounts(plan, self.labels, self.class_weight, tuple(tallies), self.table.n_rows)


def _singleton_proportion(column: Any) -> float:
    """The proportion of the rows whose level no other row has."""
    labels = Labels.from_values(column)
    codes = labels.encode(column)
    return float((np.bincount(codes[codes >= 0], minlength=1) == 1).sum()) / max(1, len(codes))
