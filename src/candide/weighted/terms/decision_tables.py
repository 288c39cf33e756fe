"""Decision tables: cells of up to eight yes/no questions, grown in chains that are each blind to a quarter of the rows.

They follow rules of many columns, which pairs and triples do not (:mod:`candide.weighted.terms.table_growth`). The
tables of a chain are terms in segments of 8, 16, 32, ... tables; rows are scored by the mean of the chains, and the
weight of a segment is learned from what the chains predict for rows that they are blind to.

Questions and values are learned from a sample, and stay as they are when rows are added or forgotten.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import ArrayValue, Codes, Floats, to_dense
from candide.data.table import Name
from candide.encoding import Encoding
from candide.errors import InputError
from candide.model.plan import PlanPart
from candide.numerics import mean_class_difference
from candide.tally import CellTally, TallySpec
from candide.weighted.terms import table_growth as growth
from candide.weighted.terms.base import JointTerm, make_part

if TYPE_CHECKING:
    from candide.distributions import Distribution
    from candide.weighted.selection import TermSelector

MAX_LEVELS = 255  # of a column: with the missing value, a byte
_MAX_TABLES = 128  # of a chain
_IMPORTANCE_ROWS = 2000


def _check_array(name: str, value: ArrayValue, dtype: Any, shape: tuple[int, ...], is_valid: Any = None) -> None:
    if (
        value.array.dtype != dtype
        or value.array.shape != shape
        or not (is_valid is None or is_valid(value.array).all())
    ):
        what = f"{name} of decision tables: expected {np.dtype(dtype)} numbers of shape {shape}"
        raise InputError(what, value=value, remedy="fit the model again")


@dataclass(frozen=True)
class DecisionTables(JointTerm):
    """The tables of all chains, and the values of their cells by class."""

    name: ClassVar[str] = "decision_tables"
    kind: ClassVar[str] = "cells"

    n_tables: int = 0  # of each chain
    classes: tuple[str | int | float | bool, ...] = ()
    keys: tuple[int, ...] = ()  # of the columns: with the codes of a row they determine its quarter
    columns: ArrayValue = ArrayValue(np.zeros((0, growth.MAX_QUESTIONS), np.int32))  # (table, question), -1: none
    sides: ArrayValue = ArrayValue(np.zeros((0, 32), np.uint8))  # (table and question, bits of the codes)
    importances: tuple[float, ...] = ()  # (segment,) mean absolute contribution to the log-odds of training rows
    cell_rows: ArrayValue = ArrayValue(np.zeros((0, growth.N_CELLS), np.float32))  # (table, cell) training rows
    values: ArrayValue = ArrayValue(np.zeros((0, 0), np.float32))  # (cell with rows, class)

    def __post_init__(self) -> None:
        n, depth, k = len(self.columns.array), growth.MAX_QUESTIONS, len(self.classes)
        _check_array("columns", self.columns, np.int32, (n, depth), lambda a: a >= -1)
        _check_array("sides", self.sides, np.uint8, (n * depth, 32))
        _check_array("cell_rows", self.cell_rows, np.float32, (n, growth.N_CELLS), lambda a: (a >= 0) & np.isfinite(a))
        n_filled = int(np.count_nonzero(self.cell_rows.array))
        _check_array("values", self.values, np.float32, (n_filled, k), np.isfinite)
        used = self.columns.array >= 0
        if len(self.importances) not in (0, len(self.bounds)):
            raise InputError(f"{len(self.importances)} importances of {len(self.bounds)} terms")
        if n % max(1, self.n_tables) or (n > 0) != (self.n_tables > 0) or (used[:, 1:] & ~used[:, :-1]).any():
            raise InputError("expected chains of as many decision tables each, with their questions first")
        if (self.cell_rows.array[np.arange(growth.N_CELLS) >= 1 << used.sum(axis=1)[:, None]] != 0).any():
            raise InputError("a decision table has rows in a cell that its questions do not have")

    @classmethod
    def from_grown(cls, grown: growth.GrownTables, classes: Sequence[Any], keys: Codes) -> "DecisionTables":
        n, depth = len(grown.tables), growth.MAX_QUESTIONS
        columns, sides = np.full((n, depth), -1, np.int32), np.zeros((n, depth, 256), np.uint8)
        rows, values = np.zeros((n, growth.N_CELLS), np.float32), np.zeros((n, growth.N_CELLS, len(classes)))
        for i, table in enumerate(grown.tables):
            used = len(table.columns)
            columns[i, :used], sides[i, :used] = table.columns, table.sides
            rows[i] = table.observed.sum(axis=1)
            own = rows[i] > 0
            mean = rows[i, own] @ table.values[own] / max(float(rows[i].sum()), 1e-300)
            values[i, own] = table.values[own] - mean
        return cls(
            grown.n_tables,
            tuple(classes),
            tuple(keys.tolist()),
            ArrayValue(columns),
            ArrayValue(np.packbits(sides.reshape(n * depth, 256), axis=1)),
            cell_rows=ArrayValue(rows),
            values=ArrayValue(values[rows > 0].astype(np.float32)),
        )

    @property
    def n_chains(self) -> int:
        return len(self.columns.array) // max(1, self.n_tables)

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """The tables of each chain in each segment."""
        return growth.segment_bounds(self.n_tables)

    def spec(self, n_features: int, encodings: Sequence[Encoding] = ()) -> TallySpec:
        """Questions of unknown columns, and columns of more codes than a byte holds, are an error."""
        n = len(encodings)
        if encodings and self.n_tables and (len(self.keys) != n or self.columns.array.max(initial=-1) >= n):
            raise InputError(f"decision tables of {len(self.keys)} columns where there are {n}")
        if any((encoding.n_levels or 0) > MAX_LEVELS for encoding in encodings):
            raise InputError(f"a column of decision tables has more than {MAX_LEVELS} levels")
        return TallySpec(self.kind, tuple(encodings) or (self.encoding,) * n_features, self.extra_sums)

    def term_names(self, columns: Sequence[Name]) -> tuple[tuple[Name, ...], ...]:
        return (tuple(columns),) * len(self.bounds)

    def term_titles(self, columns: Sequence[Name], encodings: Sequence[Encoding] = ()) -> tuple[str, ...]:
        return tuple(f"decision tables {a + 1} to {b}" for a, b in self.bounds)

    def term_kind(self, columns: Sequence[Name]) -> str:
        return "decision tables"

    def kept_terms(self, weight: Floats) -> Codes:
        return np.arange(len(weight) if weight.sum() > 0 else 0)

    def n_candidates(self, columns: Sequence[Name], n_columns: int) -> int:
        return len(self.bounds)

    def match_classes(self, labels: Any) -> "DecisionTables":
        if self.classes == labels.values:
            return self
        values = np.zeros((len(self.values.array), len(labels)), np.float32)
        for c, label in enumerate(self.classes):
            if (code := labels.find_code(label)) is not None:
                values[:, code] = self.values.array[:, c]
        return replace(self, classes=labels.values, values=ArrayValue(values))

    def rename_classes(self, names: Mapping[Any, Any]) -> "DecisionTables":
        return replace(self, classes=tuple(names.get(label, label) for label in self.classes))

    @classmethod
    def distribution_class(cls) -> "type[Distribution]":
        from candide.weighted.terms.table_scores import TableScores

        return TableScores

    def _estimate(self, tally: CellTally, prior: Any, how: str) -> "Distribution":
        return self.distribution(tally.layout.sizes)

    def distribution(self, sizes: Sequence[int]) -> Any:
        """The scores of blocks whose columns have so many levels."""
        from candide.weighted.terms.table_scores import TableScores

        n, depth, k = len(self.columns.array), growth.MAX_QUESTIONS, self.values.array.shape[1]
        values = np.zeros((n, growth.N_CELLS, k), np.float32)
        values[self.cell_rows.array > 0] = self.values.array
        sides = np.unpackbits(self.sides.array, axis=1).reshape(n, depth, 256)
        arrays = self.columns.array, sides, self.cell_rows.array, values
        return TableScores(*arrays, self.n_tables, tuple(sizes), np.array(self.importances))

    def held_out_contributions(
        self, tally: CellTally, prior: Any, how: str, block: Any, y: Codes, weight: Any = None, out: Any = None
    ) -> NDArray:
        """(row, class, segment) by the chains that are blind to the quarter of each row."""
        codes, scores = to_dense(block), self.distribution(tally.layout.sizes)
        out = np.empty((len(codes), scores.n_classes, scores.n_features)) if out is None else out
        quarters = growth.assign_quarters(growth.byte_codes(codes, tally.layout.sizes), np.array(self.keys))
        for quarter in range(growth.N_QUARTERS):
            own = np.flatnonzero(quarters == quarter)
            chains = np.arange(self.n_chains) % growth.N_QUARTERS == quarter
            out[own] = scores.contributions_of_chains(codes[own], chains)
        return out

    @classmethod
    def tested_parts(cls, selector: "TermSelector") -> Iterable[PlanPart]:
        """The tables, if what they predict for rows that they are blind to improves on the terms so far."""
        part = cls._grow(selector)
        if part is not None and selector.improves(part):
            yield part

    @classmethod
    def _grow(cls, selector: "TermSelector") -> PlanPart | None:
        encodings = selector.table_encodings()
        if len(encodings) < 2:  # the tables of one column would only repeat its term
            return None
        names = list(encodings)
        sizes = [encoding.n_levels or 0 for encoding in encodings.values()]
        sample = selector.growth_rows
        whole = make_part(cls(), [*encodings.items()])
        keys = growth.column_keys(names)
        is_level = [encoding.is_read_as_text for encoding in encodings.values()]
        rows = growth.ByteRows.from_block(to_dense(whole.block(sample.table)), sizes, is_level, keys)
        proportions = np.bincount(sample.y, sample.weight, len(selector.labels))
        log_prior = np.log((proportions + 0.5) / (proportions.sum() + 0.5 * len(proportions)))
        grown = growth.grow_tables(rows, sample.y, sample.weight, log_prior, _MAX_TABLES, selector.seed)
        if not grown.n_tables:
            return None
        event = cls.from_grown(grown, selector.labels.values, keys)
        few = to_dense(whole.block(selector.table))[:_IMPORTANCE_ROWS]
        contributions = event.distribution(sizes).contributions(few)
        p = proportions / proportions.sum()
        importances = [float(mean_class_difference(c, p).mean()) for c in np.moveaxis(contributions, 2, 0)]
        return replace(whole, event=replace(event, importances=tuple(importances)))
