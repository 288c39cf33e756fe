"""Drift: whether new rows are like those that a model has learned from, without a label of theirs.

In one pass the new rows are counted as the model counted its own, and scored: which columns' laws moved, how likely the
rows are under the model, and how often it expects to be right on them.

>>> import candide as cd
>>> from candide.demo import garden_rows
>>> plants, herb = garden_rows(600, seed=0)
>>> model = cd.fit({**plants, "herb": herb}, "herb", model="naive").fitted_
>>> later, _ = garden_rows(400, seed=1)
>>> found = detect_drift(model, {**later, "soil": ["sand"] * 400})
>>> [(one.column, one.adjusted_p_value < 0.001) for one in found.columns][:1], found.n_rows
([('soil', True)], (600, 400))
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.sampling import RowSampler
from candide.data.table import Name
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.batches import make_blocks, split_batches
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import prepare_to_score, score_blocks
from candide.errors import InputError
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart
from candide.monitoring.drift_tests import (
    MISSING,
    UNSEEN,
    Pair,
    UnseenLevels,
    adjust_p_values,
    collect_tail_values,
    compare_columns,
)

_MAX_DENSITY_ROWS = 1 << 16  # rows of which log p(x) is kept, by lot
_MAX_UNSEEN_LEVELS = (
    1 << 18
)  # unseen levels counted one by one; of a column with more, further ones count as one row each
_MAX_NUMBERS = 1 << 22  # numbers kept of them, to see what tails they have
_N_DRAWN_ROWS = 10_000  # rows drawn from the model where those that it learned from are not at hand
DENSITY_QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_UNLIKELY_SHARE = 0.01  # share of the rows before that lie below what is called unlikely


@dataclass(frozen=True)
class ColumnDrift:
    """How the law of a column moved: by how much, how unlikely that is by chance, and what tells how."""

    column: Name
    event: str
    stability_index: float  # nats: the population stability index
    p_value: float
    adjusted_p_value: float  # for the number of columns (Holm)
    test: str
    values: dict[str, Pair]  # before and after: share, mean, sd, missing; those that both have
    most_changed_level: Any = None  # whose share moved most


@dataclass(frozen=True)
class PredictionSummary:
    """What a model says of some rows: how sure it is, which classes, how likely they are."""

    n_rows: int
    expected_accuracy: float  # mean probability of the most probable class: right as often, if it is calibrated
    class_proportions: dict[Any, float]  # mean probability of each class
    density_quantiles: tuple[float, ...]  # quantiles of log p(x); none where the model has no density
    mean_density: float
    unlikely_share: float  # share of rows below the first hundredth of those before


@dataclass(frozen=True)
class Drift:
    """What moved, most surely first, and what the model says of the rows before and after."""

    n_rows: tuple[int | None, int]
    columns: list[ColumnDrift]
    summary_before: PredictionSummary | None  # of rows before, or drawn from the model; None where neither can be had
    summary_after: PredictionSummary
    is_before_drawn: bool  # whether those before were drawn from the model
    skipped_columns: list[Name]  # columns whose counts cannot tell

    @property
    def drifted_columns(self) -> list[ColumnDrift]:
        """The columns that have moved by more than chance: one in a hundred such lists names one that has not."""
        return [one for one in self.columns if one.adjusted_p_value < 0.01]


def detect_drift(
    fitted: FittedModel,
    data: Any,
    *,
    before: Any = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> Drift:
    """What has moved in new rows since a model was fitted; ``before`` are rows that it has learned from, if at hand.

    Without them log p(x) is compared with rows drawn from the model, which are likelier than real ones where columns
    depend on each other. A model that weighs its columns has no density: log p(x) is that of its columns' own laws.
    """
    fitted.counts  # noqa: B018  without counts there is nothing to compare with: an error says so
    walk = _DriftScan(fitted)
    tallies, unseen, after = walk.scan(data, reading, watch)
    old = walk.scan(before, reading, watch)[2] if before is not None else walk.draw_rows()
    limit = float(np.quantile(old.density, _UNLIKELY_SHARE)) if old is not None and walk.has_density else float("nan")
    seen = [after.numbers] if before is None or old is None else [old.numbers, after.numbers]
    columns, left_out = walk.compare(tallies, unseen, after.n_rows, seen)
    said = None if old is None else old.summarize(fitted, limit, walk.has_density)
    rows = fitted.counts.n_rows, after.n_rows
    return Drift(rows, columns, said, after.summarize(fitted, limit, walk.has_density), before is None, left_out)


@dataclass(frozen=True, eq=False)
class _ScoredRows:
    """Rows by what a model says of them."""

    n_rows: int
    confidence_sum: float  # sums
    class_proportions: Floats
    density: Floats  # of some rows
    numbers: list[Floats]  # of some rows, what was tallied of each part; of no width where it has no tails

    def summarize(self, fitted: FittedModel, limit: float, has_density: bool) -> PredictionSummary:
        shares = dict(zip(fitted.labels.values, (self.class_proportions / self.n_rows).tolist(), strict=True))
        if not has_density:
            return PredictionSummary(
                self.n_rows, self.confidence_sum / self.n_rows, shares, (), float("nan"), float("nan")
            )
        quantiles = tuple(np.quantile(self.density, DENSITY_QUANTILES, method="nearest").tolist())
        unlikely = float((self.density < limit).mean())
        return PredictionSummary(
            self.n_rows, self.confidence_sum / self.n_rows, shares, quantiles, float(self.density.mean()), unlikely
        )


class _UnseenLevelCounts:
    """How many rows each unseen level of each column has, and how many those beyond the bound have."""

    def __init__(self) -> None:
        self.levels, self.other_rows = dict[Name, dict[Any, float]](), dict[Name, float]()

    def count_column(self, name: Name, column: Any) -> None:
        """Add the rows of a column, all of unseen levels."""
        labels = Labels.from_values(column)
        rows = np.bincount(labels.encode(column), minlength=len(labels)).tolist()
        self._add(name, dict(zip(labels.values, rows, strict=True)))

    def add(self, other: "_UnseenLevelCounts") -> "_UnseenLevelCounts":
        """Add the rows of a later piece."""
        for name, rows in other.levels.items():
            self._add(name, rows)
        for name, n in other.other_rows.items():
            self.other_rows[name] = self.other_rows.get(name, 0.0) + n
        return self

    def _add(self, name: Name, rows: dict[Any, float]) -> None:
        levels = self.levels.setdefault(name, {})
        for value, n in rows.items():
            if value in levels or len(levels) < _MAX_UNSEEN_LEVELS:
                levels[value] = levels.get(value, 0.0) + n
            else:
                self.other_rows[name] = self.other_rows.get(name, 0.0) + n

    def unseen_levels(self, name: Name) -> UnseenLevels:
        """The unseen levels of a column."""
        return UnseenLevels(np.array(list(self.levels.get(name, {}).values()), float), self.other_rows.get(name, 0.0))


class _DriftScan:
    """A model, and which of its parts are the laws of columns."""

    def __init__(self, fitted: FittedModel):
        self.fitted, self.generative_model = fitted, fitted.generative_model
        plan, self.part_indices = fitted.plan.select_density_parts()
        self.parts: Sequence[PlanPart] = plan.parts
        self.old = [fitted.selected_counts.tallies[i] for i in self.part_indices]
        self.with_levels = [
            str(name)
            for part in self.parts
            if part.block_kind == "codes"
            for name, encoding in zip(part.columns, part.encodings, strict=True)
            if encoding.is_read_as_text
        ]
        self.max_values = min(_MAX_DENSITY_ROWS, _MAX_NUMBERS // max(sum(len(part.columns) for part in self.parts), 1))
        self.has_density = bool(self.part_indices) and all(
            part.event.has_density for part in self.generative_model.plan.parts
        )

    def scan(
        self, data: Any, reading: ReadOptions | None, watch: Watch
    ) -> tuple[list[Any], _UnseenLevelCounts, _ScoredRows]:
        """New rows counted as one class, their unseen levels, and what the model predicts of the rows."""
        fitted = self.fitted
        with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "looking"):
            prepare_to_score(source, fitted.plan, fitted)
            kept = [name for name in self.with_levels if name in source.columns]
            scan = source.engine.score(source, fitted.plan, kept)
            found = list[Any]()
            density, numbers = RowSampler(_MAX_DENSITY_ROWS), [RowSampler(self.max_values) for _ in self.parts]
            for piece in threads.map_ahead(
                partial(self._scan_batch, kept), split_batches(scan.batches, len(fitted.labels))
            ):
                density.add(piece[2].density)
                for some, values in zip(numbers, piece[2].numbers, strict=True):
                    some.add(values)
                found = [piece if not found else _add_optional(found[0], piece)]
        if not density.n:
            raise InputError("there are no rows to look at", value=0, remedy="pass new rows")
        tallies, unseen, one = found[0]
        return (
            tallies,
            unseen,
            _ScoredRows(
                one.n_rows, one.confidence_sum, one.class_proportions, density.rows, [some.rows for some in numbers]
            ),
        )

    def _scan_batch(self, kept: list[str], batch: Any) -> tuple[list[Any], _UnseenLevelCounts, _ScoredRows]:
        written = {name: batch.column(f"k{i}") for i, name in enumerate(kept)}
        rows = make_blocks(self.fitted.plan, batch.select(range(batch.num_columns - len(kept))))
        y, tallies, unseen = np.zeros(batch.num_rows, np.intp), list[Any](), _UnseenLevelCounts()
        numbers = list[Floats]()
        for i, part, old in zip(self.part_indices, self.parts, self.old, strict=True):
            block = _mask_unseen(rows[i], part, written, unseen)
            tallies.append(
                None if part.block_kind == "documents" else type(old).from_rows(block, y, n_classes=1, spec=part.spec)
            )
            numbers.append(collect_tail_values(old, block, part.spec))
        return tallies, unseen, self._score_rows(rows, numbers)

    def _score_rows(self, rows: list[Any], numbers: list[Floats]) -> _ScoredRows:
        log_posterior, density = score_blocks(self.fitted.plan, self.fitted.model, rows)
        if self.generative_model is not self.fitted and self.has_density:
            some = [rows[i] for i in self.part_indices]
            density = score_blocks(self.generative_model.plan, self.generative_model.model, some)[1]
        p = np.exp(log_posterior)
        return _ScoredRows(len(p), float(p.max(axis=1).sum()), p.sum(axis=0), density, numbers)

    def draw_rows(self) -> _ScoredRows | None:
        """Rows that the model makes itself, and how likely they are; None where it cannot. They say nothing else."""
        if not self.has_density or any(part.block_kind == "documents" for part in self.parts):
            return None
        rows, _ = self.generative_model.model.sample(_N_DRAWN_ROWS, np.random.default_rng(0))
        made = [np.asfortranarray(block) for block in rows]
        density = score_blocks(self.generative_model.plan, self.generative_model.model, made)[1]
        return _ScoredRows(_N_DRAWN_ROWS, float("nan"), _N_DRAWN_ROWS * self.fitted.base_proportions, density, [])

    def compare(
        self, tallies: list[Any], unseen: _UnseenLevelCounts, n: int, seen: list[list[Floats]]
    ) -> tuple[list[ColumnDrift], list[Name]]:
        found, left_out = list[tuple[PlanPart, int, Any, Any]](), list[Name]()
        rows = float(self.fitted.counts.class_weight.sum()), float(n)
        for i, (part, old, new) in enumerate(zip(self.parts, self.old, tallies, strict=True)):
            if new is None:
                left_out += part.columns
                continue
            _, a, b, encodings = part.event.prepare_comparison(old.pool(), new, part.encodings)
            each = compare_columns(
                a, b, rows, [unseen.unseen_levels(name) for name in part.columns], [side[i] for side in seen]
            )
            if each is None:
                left_out += part.columns
                continue
            found += [(part, j, move, encodings) for j, move in enumerate(each)]
        adjusted = adjust_p_values([move.p_value for _, _, move, _ in found])
        dates = self.fitted.dates
        columns = [
            ColumnDrift(
                part.columns[j], part.event.name, move.stability_index, move.p_value, p, move.test_name, move.values,
                _level_at(part, j, move.level_index, encodings, part.columns[j] in dates),
            )
            for (part, j, move, encodings), p in zip(found, adjusted, strict=True)
        ]  # fmt: skip
        return sorted(columns, key=lambda one: (one.adjusted_p_value, -one.stability_index)), left_out


def _add_optional(a: Any, b: Any) -> Any:
    tallies = [None if x is None else x + y for x, y in zip(a[0], b[0], strict=True)]
    one, other = a[2], b[2]
    return (
        tallies,
        a[1].add(b[1]),
        _ScoredRows(
            one.n_rows + other.n_rows,
            one.confidence_sum + other.confidence_sum,
            one.class_proportions + other.class_proportions,
            one.density[:0],
            [],
        ),
    )


def _mask_unseen(block: Any, part: PlanPart, written: dict[str, Any], unseen: _UnseenLevelCounts) -> Any:
    """A block of rows in which unseen levels are absent; these are counted in ``unseen``."""
    if part.block_kind != "codes":
        return block
    codes = np.asarray(block)
    sizes = np.array([encoding.n_levels or 0 for encoding in part.encodings])
    odd = codes >= sizes
    if not odd.any():
        return block
    for j in np.flatnonzero(odd.any(axis=0)).tolist():
        name, rows = part.columns[j], np.flatnonzero(odd[:, j])
        unseen.count_column(name, written.get(str(name), codes[:, j]).take(rows))
    return np.asfortranarray(np.where(odd, -1, codes))


def _level_at(part: PlanPart, j: int, at: int | None, encodings: Any, is_date: bool) -> Any:
    if at is None:
        return None
    if at in (MISSING, UNSEEN):
        return "missing" if at == MISSING else "never met"
    encoding = encodings[j]
    return part.levels[j].values[at] if encoding.is_read_as_text else encoding.level_names(is_date)[at]
