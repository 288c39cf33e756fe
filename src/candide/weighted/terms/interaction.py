"""Interactions: how the class depends on sets of columns, beyond what their single columns (or pairs) show.

The term of a pair is log p(i, j | c) - log p(i | c) - log p(j | c), the correction of naive Bayes, with

    p(i, j | c) = (n_cij + m p_i p_j) / (n_c + m)

so that a frequent combination follows its counts, and in a small class all terms are near 0. A combination that a
large class never has counts against it: log(m / (n_c + m)). The term of a triple is what it adds to its pairs, shrunk
towards these. Missing and unseen values contribute 0.

Sets are selected by the score test on rows left out of the counts: a table without interactions passes with a
probability of ``FAMILYWISE_ERROR_RATE``; otherwise Benjamini and Hochberg's rule limits the proportion of false ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Codes, Floats, to_dense
from candide.data.table import Name
from candide.encoding import Encoding
from candide.errors import InputError
from candide.kernels import threads
from candide.model.plan import PlanPart
from candide.model.settings import LIMITS
from candide.tally import CellTally, TallySpec
from candide.tally.levels import CellLayout
from candide.weighted.terms.base import (
    JointTerm,
    benjamini_hochberg,
    make_part,
    score_moments,
    score_test_p_value,
    z_score,
)

if TYPE_CHECKING:
    from candide.distributions import Distribution
    from candide.weighted.selection import TermSelector

FAMILYWISE_ERROR_RATE = 0.01  # probability of selecting any set where no columns interact
FALSE_DISCOVERY_RATE = 0.1  # expected proportion of selected sets that are due to chance
_DEGREES_FACTOR = 4.0  # logarithms of small counts spread wider than a chi-square with (cells - 1) degrees of freedom
_MAX_CELL_NUMBER = (1 << 31) - 1  # cells of a set are numbered in four bytes
_KIND_NAMES = {2: "pair", 3: "triple"}

ColumnSets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Interaction(JointTerm):
    """Sets of the same number of columns, by their positions in the block."""

    name: ClassVar[str] = "interaction"
    kind: ClassVar[str] = "cells"

    sets: ColumnSets = ()

    def __post_init__(self) -> None:
        orders = {len(columns) for columns in self.sets}
        if len(orders) > 1 or any(n < 2 for n in orders) or any(len(set(s)) < len(s) for s in self.sets):
            what, remedy = "sets of columns of different sizes, or of fewer than two", "pass such as ((0, 1), (0, 2))"
            raise InputError(what, value=self.sets, remedy=remedy)

    def spec(self, n_features: int, encodings: Sequence[Encoding] = ()) -> TallySpec:
        """Sets of unknown columns, and of more cells than can be numbered, are an error."""
        sizes = [encoding.n_levels or 0 for encoding in encodings]
        for columns in self.sets if encodings else ():
            if not all(isinstance(j, int) and 0 <= j < len(sizes) for j in columns):
                raise InputError(f"a set of columns of which there are {len(sizes)}", value=columns)
            if prod(sizes[j] for j in columns) > _MAX_CELL_NUMBER:
                remedy = "leave out a column with very many levels"
                raise InputError(f"a set of more than {_MAX_CELL_NUMBER:,} cells", value=columns, remedy=remedy)
        return TallySpec(self.kind, tuple(encodings) or (self.encoding,) * n_features, self.extra_sums, self.sets)

    def term_names(self, columns: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
        return tuple(tuple(columns[j] for j in positions) for positions in self.sets)

    def term_kind(self, columns: Sequence[Name]) -> str:
        return _KIND_NAMES.get(len(columns), f"set of {len(columns)}")

    def kept_terms(self, weight: Floats) -> Codes:
        return np.flatnonzero(weight >= 0)

    def n_candidates(self, columns: Sequence[Name], n_columns: int) -> int:
        """Every set of as many columns: all of them, or those grown from pairs, were tested."""
        return comb(n_columns, len(self.sets[0])) if self.sets else 0

    def select_terms(self, kept: Codes) -> Self:
        return replace(self, sets=tuple(self.sets[j] for j in kept))

    def union_key(self, columns: tuple[Name, ...]) -> Any:
        """Interactions of as many columns are one part."""
        return len(self.sets[0]) if self.sets else (self, columns)

    @classmethod
    def unite_parts(cls, a: PlanPart, b: PlanPart) -> PlanPart:
        encodings = dict(zip(a.columns, a.encodings, strict=True))
        for name, encoding in zip(b.columns, b.encodings, strict=True):
            encodings[name] = encodings[name].union(encoding)[0] if name in encodings else encoding
        place = {name: j for j, name in enumerate(encodings)}
        terms = dict.fromkeys(names for part in (a, b) for names in part.event.term_names(part.columns))
        return make_part(cls(tuple(tuple(place[name] for name in names) for names in terms)), [*encodings.items()])

    @classmethod
    def select_part(cls, part: PlanPart, united: PlanPart, tally: Any) -> tuple[PlanPart, Any]:
        place = {names: i for i, names in enumerate(united.event.term_names(united.columns))}
        chosen = [place[names] for names in part.event.term_names(part.columns)]
        event = cls(tuple(united.spec.sets[i] for i in chosen))
        return PlanPart(event, united.columns, united.encodings), tally.select_features(np.array(chosen, np.intp))

    @classmethod
    def distribution_class(cls) -> "type[Distribution]":
        from candide.weighted.terms.interaction_scores import InteractionScores

        return InteractionScores

    def _estimate(self, tally: CellTally, prior: Any, how: str) -> "Distribution":
        from candide.weighted.terms.interaction_scores import InteractionScores, log_ratio

        return InteractionScores(np.ascontiguousarray(log_ratio(tally).T), tally.layout)

    def held_out_contributions(
        self, tally: CellTally, prior: Any, how: str, block: Any, y: Codes, weight: Any = None, out: Any = None
    ) -> NDArray:
        from candide.weighted.terms.interaction_scores import held_out_ratios, log_ratio

        return held_out_ratios(tally, log_ratio(tally), to_dense(block), y, weight, out)

    @classmethod
    def tested_parts(cls, selector: "TermSelector") -> Iterable[PlanPart]:
        """Pairs, then triples that grow from the strongest pairs."""
        if (part := cls._select_sets(selector, 2)) is not None:
            yield part
            pairs = selector.parts[-1]  # some may have been dropped, or all
            if pairs.spec.sets and (part := cls._select_sets(selector, 3, pairs)) is not None:
                yield part

    @classmethod
    def _select_sets(cls, selector: "TermSelector", order: int, pairs: PlanPart | None = None) -> PlanPart | None:
        encodings = selector.cell_encodings(order)
        names = selector.strongest_columns([n for n, encoding in encodings.items() if (encoding.n_levels or 0) > 1])
        n = len(names)
        sets: Sequence[tuple[int, ...]] = list(combinations(range(n), 2))
        if pairs is not None:
            seeds = [[names.index(name) for name in pair] for pair in pairs.event.term_names(pairs.columns)]
            seeds = seeds[: LIMITS.max_seed_pairs]
            sets = sorted({tuple(sorted({*pair, j})) for pair in seeds for j in range(n) if j not in pair})
        if not sets:
            return None
        whole = make_part(cls((sets[0],)), [(name, encodings[name]) for name in names])
        codes, sample = to_dense(whole.block(selector.table)), selector.sample
        rows = CodedRows(codes, whole.spec.sizes, sample.y, selector.posterior, sample.weight, sample.left_out_weight)
        max_sets = dict(LIMITS.max_sets)[order]
        selected = select_interactions(sets, rows, max_sets=max_sets, interactions_known=order > 2)
        if not selected:
            return None
        used = sorted({j for columns in selected for j in columns})
        event = cls(tuple(tuple(used.index(j) for j in columns) for columns in selected))
        return make_part(event, [(names[j], encodings[names[j]]) for j in used])


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows to test sets of columns on."""

    codes: Codes  # (row, column)
    sizes: tuple[int, ...]  # levels of each column
    y: Codes
    posterior: Floats  # (row, class) so far
    weight: Floats | None = None
    left_out_weight: Floats | None = None  # what leaving a row out takes from the counts; None: its weight

    @property
    def removed_weight(self) -> Floats | None:
        return self.weight if self.left_out_weight is None else self.left_out_weight


def select_interactions(
    sets: Sequence[tuple[int, ...]], rows: CodedRows, *, max_sets: int, interactions_known: bool = False
) -> ColumnSets:
    """The sets that pass the score test, strongest first; ``interactions_known`` skips the test for any at all."""
    k, n_rows = rows.posterior.shape[1], float(len(rows.y) if rows.weight is None else rows.weight.sum())
    shapes = np.array([[rows.sizes[j] for j in columns] for columns in sets], float)
    # With more cells than rows most cells are empty: such a term would only show that its class has one row less.
    tested = np.flatnonzero(shapes.prod(axis=1) <= min(LIMITS.max_set_cells / k, n_rows))
    if not len(tested):
        return ()
    candidates, degrees = np.array(sets)[tested], _DEGREES_FACTOR * (shapes[tested] - 1.0).prod(axis=1) * (k - 1)
    z = score_sets(candidates, rows)
    p_value, order = score_test_p_value(z, degrees), np.argsort(-z, kind="stable")
    order = order[p_value[order] <= benjamini_hochberg(p_value, FALSE_DISCOVERY_RATE, len(sets))][: 2 * max_sets]
    p_value = score_test_p_value(_exact_z_scores(candidates[order], rows), degrees[order])
    if not interactions_known and benjamini_hochberg(p_value, FAMILYWISE_ERROR_RATE, len(sets)) < 0:
        return ()
    passed = order[p_value <= benjamini_hochberg(p_value, FALSE_DISCOVERY_RATE, len(sets))]
    return tuple(tuple(map(int, columns)) for columns in candidates[passed][:max_sets])


def score_sets(sets: Codes, rows: CodedRows) -> Floats:
    """(set,) z of adding the term of each set (set, position), by the expected variance: a quick screening."""
    from candide.weighted.terms.interaction_scores import LOG_COST, MARGIN_ROWS, UNIFORM_ROWS

    arrays = rows.codes, rows.y, rows.weight, rows.removed_weight, rows.posterior
    sizes = np.array(rows.sizes)

    def work(chunk: slice) -> tuple[Floats, Floats]:
        return kernels.score_cells(*arrays, sets[chunk], sizes, MARGIN_ROWS, UNIFORM_ROWS)

    moments = threads.map_rows(work, len(sets), cost=len(rows.y) * (LOG_COST + rows.posterior.shape[1]))
    slope, information = np.concatenate(moments, axis=1)
    return slope / np.sqrt(np.maximum(information, 1e-9))


def _exact_z_scores(sets: Codes, rows: CodedRows) -> Floats:
    """(set,) z of each set, by the larger of the expected and the observed variance."""
    from candide.weighted.terms.interaction_scores import held_out_ratios, log_ratio

    k, z = rows.posterior.shape[1], [np.zeros(0)]
    step = max(1, LIMITS.contributions_at_once // max(1, rows.posterior.size))
    for start in range(0, len(sets), step):
        chunk = sets[start : start + step]
        counts = kernels.cell_counts(rows.codes, rows.y, rows.weight, k, chunk, np.array(rows.sizes))
        tally = CellTally(counts, CellLayout(tuple(map(tuple, chunk.tolist())), rows.sizes))
        contributions = held_out_ratios(tally, log_ratio(tally), rows.codes, rows.y, rows.removed_weight)
        z.append(z_score(*score_moments(contributions, rows.y, rows.posterior, rows.weight)))
    return np.concatenate(z)
