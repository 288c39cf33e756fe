"""Interactions: how the class depends on sets of columns, beyond what their single columns (or pairs) show.

The term of a pair is log p(i, j | c) - log p(i | c) - log p(j | c), the correction of naive Bayes, with

    p(i, j | c) = (n_cij + m p_i p_j) / (n_c + m)

so that a frequent combination follows its counts, and in a small class all terms are near 0. A combination that a
large class never shows counts against it: log(m / (n_c + m)). The term of a triple is what it adds to its pairs, shrunk
towards these. Missing and unseen values contribute 0.

Sets are selected by the score test of :mod:`candide.weighted.score_test` on rows left out of the counts: a table
without interactions passes with a probability of ``FAMILYWISE_ERROR_RATE``; where there are interactions, Benjamini
and Hochberg's rule keeps the share of false ones below ``FALSE_DISCOVERY_RATE``.

>>> agree, differ = [[8.0, 1.0], [1.0, 8.0]], [[4.0, 5.0], [5.0, 4.0]]  # in class 0 the two columns agree
>>> tally = CellTally(np.array([agree, differ]).reshape(2, 4), CellLayout(((0, 1),), (2, 2)))
>>> Interaction(((0, 1),)).estimate(tally).table.T.round(2).tolist()
[[0.41, -0.69, -0.69, 0.41], [-0.07, 0.07, 0.07, -0.07]]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import comb, prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data.blocks import Block, Codes, Floats, to_dense
from candide.data.table import Name
from candide.distributions.arrays import FINITE, ArraySource, DistributionShape, read_array
from candide.distributions.base import Distribution, LevelScores, multiply_contributions
from candide.encoding import Encoding
from candide.errors import InputError
from candide.kernels import threads
from candide.model.plan import PlanPart
from candide.tally import CellTally, TallySpec
from candide.tally.cells import CellLayout
from candide.weighted.limits import LIMITS
from candide.weighted.score_test import benjamini_hochberg, score_moments, score_test_p_value, z_score
from candide.weighted.terms.base import JointTerm, make_part

if TYPE_CHECKING:
    from candide.distributions.score_form import ScoreForm
    from candide.weighted.selection import TermSelector

MARGIN_ROWS = 10.0  # m: rows that the product of the margins counts for in a cell
_UNIFORM_ROWS = 1.0  # rows that the uniform distribution counts for in a margin
FAMILYWISE_ERROR_RATE = 0.01  # probability of selecting any set where no columns interact
FALSE_DISCOVERY_RATE = 0.1  # expected share of selected sets that are due to chance
_DEGREES_FACTOR = 4.0  # logarithms of small counts spread wider than a chi-square with (cells - 1) degrees of freedom
_LOG_COST = 8  # of a logarithm, in multiplications
_MAX_CELL_NUMBER = (1 << 31) - 1  # cells of a set are numbered in four bytes
_KIND_NAMES = {2: "pair", 3: "triple"}

ColumnSets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class InteractionScores(Distribution):
    """A table of the contribution of every combination of levels, for sets of columns."""

    table: Floats  # (cells of all sets, class)
    layout: CellLayout

    name: ClassVar[str] = "interaction"
    block_kind = "codes"
    has_density = False
    nonlinear_reason: ClassVar[str] = "it is an interaction of columns; use NaiveBayes"
    min_batch_rows: ClassVar[int] = 512

    @property
    def n_classes(self) -> int:
        return self.table.shape[1]

    @property
    def n_features(self) -> int:
        return len(self.layout.sets)

    @cached_property
    def _padded(self) -> Floats:
        return kernels.pad_columns(self.table)

    @cached_property
    def _sets(self) -> Any:
        return kernels.Sets(*self.layout.arrays)

    def add_log_prob(self, block: Block, out: Floats) -> int:
        return kernels.add_cells(to_dense(block), self._sets, self._padded, out)

    def _contributions(self, x: NDArray) -> Floats:
        place = self.layout.locate_rows(x)
        known = (place >= 0) & (place < np.diff(self.layout.offsets))
        cell = np.where(known, self.layout.offsets[:-1] + place, 0)
        return np.where(known[:, None, :], self.table[cell].transpose(0, 2, 1), 0.0)

    def scale_tables(self, weight: Floats) -> "InteractionScores":
        by_cell = np.repeat(weight, np.diff(self.layout.offsets))[:, None]
        return InteractionScores(multiply_contributions(self.table, by_cell), self.layout)

    def sample(self, y: Codes, rng: "np.random.Generator") -> NDArray:
        self._refuse("has no density to sample from", "sample from the distributions of the columns")

    def level_scores(self) -> LevelScores:
        return LevelScores.from_table(self.table, self.layout.offsets)

    def parameters(self) -> dict[str, NDArray]:
        """The contribution of each cell (class, cells), ragged over sets by ``offsets``."""
        return {"log_ratio": self.table.T, "offsets": self.layout.offsets}

    def describe(
        self,
        j: int,
        columns: Sequence[Any] = (),
        levels: Sequence[str] = (),
        level_weights: Any = None,
        max_rows: int = 12,
    ) -> tuple[list[str], Floats]:
        """The cells whose contributions differ most between classes."""
        own = slice(*self.layout.offsets[j : j + 2])
        table = self.table[own]
        order = np.argsort(-np.ptp(table, axis=1), kind="stable")[:max_rows]
        names = [" & ".join(map(str, self.layout.levels[:, own][:, i].tolist())) for i in order]
        return names, table[order]

    def form(self) -> "ScoreForm":
        from candide.distributions.score_form import UnavailableForm

        return UnavailableForm("columns speak together; use NaiveBayes")

    def to_export_dict(self) -> dict[str, Any]:
        """Cells that a class never shows share one value: that value once, and a mask of the other cells."""
        columns, sizes = self.layout.arrays
        held = {"rule": "cells", "order": self.layout.order, "sets": columns, "sizes": sizes}
        own = np.split(self.table, self.layout.offsets[1:-1])
        usual = np.array([[_most_frequent(values) for values in cells.T] for cells in own])
        odd = self.table != np.repeat(usual, np.diff(self.layout.offsets), axis=0)
        return {**held, "usual": usual, "odd": np.packbits(odd, bitorder="little").tobytes(), "table": self.table[odd]}

    def arrays(self) -> dict[str, NDArray]:
        """The sets follow from the plan, and are not kept."""
        return {"table": self.table}

    @classmethod
    def from_arrays(cls, arrays: ArraySource, shape: DistributionShape, base: Distribution | None = None) -> Self:
        layout = CellLayout(shape.sets, shape.sizes)
        return cls(read_array(arrays, "table", (layout.n_cells, shape.n_classes), FINITE), layout)


def _most_frequent(values: Floats) -> float:
    distinct, n = np.unique(values, return_counts=True)
    return float(distinct[n.argmax()]) if len(distinct) else 0.0


@dataclass(frozen=True)
class Interaction(JointTerm):
    """Sets of the same number of columns, by their positions in the block."""

    name: ClassVar[str] = "interaction"
    kind: ClassVar[str] = "cells"
    distribution: ClassVar[type[Distribution]] = InteractionScores
    drops_negative: ClassVar[bool] = True

    sets: ColumnSets = ()

    def __post_init__(self) -> None:
        orders = {len(columns) for columns in self.sets}
        if len(orders) > 1 or any(n < 2 for n in orders) or any(len(set(s)) < len(s) for s in self.sets):
            what, remedy = "sets of columns of different sizes, or of fewer than two", "pass such as ((0, 1), (0, 2))"
            raise InputError(what, value=self.sets, remedy=remedy)

    def spec(self, n_features: int, encodings: Sequence[Encoding] = ()) -> TallySpec:
        if encodings:
            self._check(tuple(encoding.n_levels or 0 for encoding in encodings))
        return TallySpec(self.kind, tuple(encodings) or (self.encoding,) * n_features, self.extra_sums, self.sets)

    def _check(self, sizes: tuple[int, ...]) -> None:
        """Refuse sets of unknown columns, and of more cells than can be numbered."""
        for columns in self.sets:
            if not all(isinstance(j, int) and 0 <= j < len(sizes) for j in columns):
                raise InputError(f"a set of columns of which there are {len(sizes)}", value=columns)
            if prod(sizes[j] for j in columns) > _MAX_CELL_NUMBER:
                remedy = "leave out a column with very many levels"
                raise InputError(f"a set of more than {_MAX_CELL_NUMBER:,} cells", value=columns, remedy=remedy)

    def term_names(self, columns: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
        return tuple(tuple(columns[j] for j in positions) for positions in self.sets)

    def term_kind(self, columns: Sequence[Name]) -> str:
        return _KIND_NAMES.get(len(columns), f"set of {len(columns)}")

    def n_candidates(self, columns: Sequence[Name], n_columns: int) -> int:
        """Every set of as many columns: all of them, or those grown from pairs, were tested."""
        return comb(n_columns, len(self.sets[0])) if self.sets else 0

    def select_terms(self, kept: Codes) -> Self:
        return replace(self, sets=tuple(self.sets[j] for j in kept))

    def _estimate(self, tally: CellTally, prior: Any, how: str) -> InteractionScores:
        return InteractionScores(np.ascontiguousarray(log_ratio(tally).T), tally.layout)

    def held_out_contributions(
        self,
        tally: CellTally,
        prior: Any,
        how: str,
        block: Block,
        y: Codes,
        weight: Floats | None = None,
        out: NDArray | None = None,
    ) -> NDArray:
        return held_out_ratios(tally, log_ratio(tally), to_dense(block), y, weight, out)

    # Selection

    @classmethod
    def add_tested(cls, selector: "TermSelector") -> None:
        """Add pairs, then triples that grow from the strongest pairs."""
        if selector.interactions and (pairs := cls._add_sets(selector, 2)) is not None:
            cls._add_sets(selector, 3, pairs)

    @classmethod
    def _add_sets(cls, selector: "TermSelector", order: int, pairs: PlanPart | None = None) -> PlanPart | None:
        encodings = selector.cell_encodings(order)
        names = selector.strongest_columns([n for n, encoding in encodings.items() if (encoding.n_levels or 0) > 1])
        at, n = {name: j for j, name in enumerate(names)}, len(names)
        sets: Sequence[tuple[int, ...]] = list(combinations(range(n), 2))
        if pairs is not None:
            grown = [[at[name] for name in pair] for pair in pairs.event.term_names(pairs.columns)]
            grown = grown[: LIMITS.max_seed_pairs]
            sets = sorted({tuple(sorted({*pair, j})) for pair in grown for j in range(n) if j not in pair})
        if not sets:
            return None
        whole = make_part(cls((sets[0],)), [(name, encodings[name]) for name in names])
        selected = select_interactions(
            sets, to_dense(whole.block(selector.table)), whole.spec.sizes, selector.y, selector.posterior,
            selector.weight, selector.sample.left_out_weight,
            max_sets=dict(LIMITS.max_sets)[order], interactions_known=order > 2,
        )  # fmt: skip
        if not selected:
            return None
        used = sorted({j for columns in selected for j in columns})
        place = {j: i for i, j in enumerate(used)}
        event = cls(tuple(tuple(place[j] for j in columns) for columns in selected))
        selector.add_parts(make_part(event, [(names[j], encodings[names[j]]) for j in used]))
        selector.learn_weights()
        return selector.parts[-1] if selector.parts[-1].spec.sets else None


def log_ratio(tally: CellTally) -> Floats:
    """(class, cell) the contribution of every cell."""
    layout, out = tally.layout, np.empty_like(tally.counts)

    def work(sets: slice) -> None:
        columns, sizes = layout.arrays
        cells = slice(layout.offsets[sets.start], layout.offsets[sets.stop])
        out[:, cells] = kernels.cell_terms(tally.counts[:, cells], columns[sets], sizes, MARGIN_ROWS, _UNIFORM_ROWS)

    threads.map_rows(work, len(layout.sets), cost=_LOG_COST * tally.counts.size // max(1, len(layout.sets)))
    return out


def held_out_ratios(
    tally: CellTally, table: Floats, codes: NDArray, y: Codes, weight: Floats | None, out: NDArray | None = None
) -> NDArray:
    """(row, class, set) contributions, each row left out of its cell and margins; ``table`` is that of the tally."""
    layout, (columns, sizes) = tally.layout, tally.layout.arrays
    n, k = len(codes), len(tally.counts)
    out = np.empty((n, k, len(columns))) if out is None else out
    own_class, others = np.empty((len(columns), n)), np.ascontiguousarray(table.T)
    unseen = np.zeros((len(columns), k))

    def leave_out(sets: slice) -> None:
        counts = tally.counts[:, layout.offsets[sets.start] : layout.offsets[sets.stop]]
        cells = kernels.held_out_cells(counts, codes, y, weight, columns[sets], sizes, MARGIN_ROWS, _UNIFORM_ROWS)
        own_class[sets] = cells.T

    def collect(rows: slice) -> None:
        kernels.take_cells(codes[rows], columns, sizes, others, unseen, y[rows], own_class.T[rows], out[rows])

    threads.map_rows(leave_out, len(columns), cost=_LOG_COST * n)
    threads.map_rows(collect, n, cost=k * len(columns))
    return out


def select_interactions(
    sets: Sequence[tuple[int, ...]],
    codes: Codes,
    sizes: tuple[int, ...],
    y: Codes,
    posterior: Floats,
    weight: Floats | None = None,
    left_out_weight: Floats | None = None,
    *,
    max_sets: int,
    interactions_known: bool = False,
) -> ColumnSets:
    """The sets that pass the score test, strongest first; ``codes`` (row, column), ``posterior`` (row, class) so far.

    ``left_out_weight`` is what leaving a row out takes from the counts, where that is not its weight.
    ``interactions_known`` skips the test that any columns interact.

    >>> rng = np.random.default_rng(0)
    >>> x, p = rng.integers(0, 2, (400, 4)), np.full((400, 2), 0.5)
    >>> select_interactions(((0, 1), (0, 2), (1, 2)), x, (2, 2, 2, 2), x[:, 1] ^ x[:, 2], p, max_sets=9)
    ((1, 2),)
    """
    k, n_rows = posterior.shape[1], float(len(y) if weight is None else weight.sum())
    shapes = np.array([[sizes[j] for j in columns] for columns in sets], float)
    # With more cells than rows most cells are empty: such a term would only show that its class has one row less.
    tested = np.flatnonzero(shapes.prod(axis=1) <= min(LIMITS.max_set_cells / k, n_rows))
    if not len(tested):
        return ()
    candidates, degrees = np.array(sets)[tested], _DEGREES_FACTOR * (shapes[tested] - 1.0).prod(axis=1) * (k - 1)
    z = score_sets(candidates, codes, np.array(sizes), y, posterior, weight, left_out_weight)
    p_value, order = score_test_p_value(z, degrees), np.argsort(-z, kind="stable")
    order = order[p_value[order] <= benjamini_hochberg(p_value, FALSE_DISCOVERY_RATE, len(sets))][: 2 * max_sets]
    z = _exact_z_scores(candidates[order], codes, sizes, y, posterior, weight, left_out_weight)
    p_value = score_test_p_value(z, degrees[order])
    if not interactions_known and benjamini_hochberg(p_value, FAMILYWISE_ERROR_RATE, len(sets)) < 0:
        return ()
    passed = order[p_value <= benjamini_hochberg(p_value, FALSE_DISCOVERY_RATE, len(sets))]
    return tuple(tuple(map(int, columns)) for columns in candidates[passed][:max_sets])


def score_sets(
    sets: Codes,
    codes: NDArray,
    sizes: Codes,
    y: Codes,
    posterior: Floats,
    weight: Floats | None = None,
    left_out_weight: Floats | None = None,
) -> Floats:
    """(set,) z of adding the term of each set (set, position), by the expected variance: a quick screening."""
    rows = y, weight, weight if left_out_weight is None else left_out_weight, posterior

    def work(chunk: slice) -> tuple[Floats, Floats]:
        return kernels.score_cells(codes, *rows, sets[chunk], sizes, MARGIN_ROWS, _UNIFORM_ROWS)

    moments = threads.map_rows(work, len(sets), cost=len(y) * (_LOG_COST + posterior.shape[1]))
    slope, information = np.concatenate(moments, axis=1)
    return slope / np.sqrt(np.maximum(information, 1e-9))


def _exact_z_scores(
    sets: Codes,
    codes: Codes,
    sizes: tuple[int, ...],
    y: Codes,
    posterior: Floats,
    weight: Floats | None,
    left_out_weight: Floats | None,
) -> Floats:
    """(set,) z of each set, by the larger of the expected and the observed variance."""
    k, z = posterior.shape[1], [np.zeros(0)]
    step = max(1, LIMITS.contributions_at_once // max(1, posterior.size))
    for start in range(0, len(sets), step):
        chunk = sets[start : start + step]
        counts = kernels.cell_counts(codes, y, weight, k, chunk, np.array(sizes))
        tally = CellTally(counts, CellLayout(tuple(map(tuple, chunk.tolist())), sizes))
        removed = weight if left_out_weight is None else left_out_weight
        contributions = held_out_ratios(tally, log_ratio(tally), codes, y, removed)
        z.append(z_score(*score_moments(contributions, y, posterior, weight)))
    return np.concatenate(z)
