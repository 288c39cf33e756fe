"""Drift: whether new, unlabelled rows are like those that a model was fitted to.

One pass counts the new rows as the model counted its own, and scores them.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.sample import RowSampler
from candide.data.table import Name
from candide.engines.base import Watch, no_progress, open_source
from candide.engines.batches import make_blocks, split_batches
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import prepare_to_score, score_blocks
from candide.errors import InputError
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart
from candide.monitoring import drift_tests

_MAX_DENSITY_ROWS = 1 << 16  # sampled rows whose log p(x) is kept
_MAX_UNSEEN_LEVELS = 1 << 18  # counted one by one in each column; rows of others count as levels of one row
_MAX_NUMBERS = 1 << 22  # values kept for their tails
_N_DRAWN_ROWS = 10_000  # drawn from the model if there are no training rows
DENSITY_QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_UNLIKELY_FRACTION = 0.01  # of the rows before are called unlikely


@dataclass(frozen=True)
class ColumnDrift:
    """How far the distribution of a column moved, and how likely that is by chance."""

    column: Name
    event: str
    stability_index: float  # population stability index
    p_value: float
    adjusted_p_value: float  # for the number of columns (Holm)
    test: str
    values: dict[str, drift_tests.Pair]  # before and after: share, mean, sd, missing, as far as both have them
    most_changed_level: Any = None


@dataclass(frozen=True)
class PredictionSummary:
    """What a model predicts for rows: its confidence, the classes, and how likely the rows are."""

    n_rows: int
    expected_accuracy: float  # mean probability of the most probable class: the accuracy, if the model is calibrated
    class_proportions: dict[Any, float]  # mean probability of each class
    density_quantiles: tuple[float, ...]  # of log p(x); empty if the model has no density
    mean_density: float
    unlikely_share: float  # proportion of rows less likely than all but 1% of those before


@dataclass(frozen=True)
class Drift:
    """The columns, those that surely changed first, and the predictions before and after."""

    n_rows: tuple[int | None, int]
    columns: list[ColumnDrift]
    summary_before: PredictionSummary | None  # of training rows, or of rows drawn from the model, if possible
    summary_after: PredictionSummary
    is_before_drawn: bool  # whether the rows before were drawn from the model
    skipped_columns: list[Name]  # without a test

    @property
    def drifted_columns(self) -> list[ColumnDrift]:
        """The columns that changed by more than chance: 1 in 100 such lists names one that has not."""
        return [column for column in self.columns if column.adjusted_p_value < 0.01]


def detect_drift(
    fitted: FittedModel,
    data: Any,
    *,
    before: Any = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> Drift:
    """Compare new rows with a model, as :func:`candide.detect_drift` documents.

    For a weighted model, log p(x) is that of its unweighted distributions.
    """
    fitted.counts  # noqa: B018  raises if there are no counts to compare with
    detector = _DriftDetector(fitted)
    after = detector.scan(data, reading, watch)
    old = detector.draw_rows() if before is None else detector.scan(before, reading, watch).rows
    has_density = detector.has_density
    limit = float(np.quantile(old.density, _UNLIKELY_FRACTION)) if old is not None and has_density else np.nan
    sampled = [after.rows.numbers] if before is None or old is None else [old.numbers, after.rows.numbers]
    columns, skipped = detector.compare(after, sampled)
    summaries = (None if rows is None else rows.summarize(fitted, limit, has_density) for rows in (old, after.rows))
    summary_before, summary_after = summaries
    assert summary_after is not None
    n_rows = fitted.counts.n_rows, after.rows.n_rows
    return Drift(n_rows, columns, summary_before, summary_after, before is None, skipped)


@dataclass(frozen=True, eq=False)
class _ScoredRows:
    n_rows: int
    confidence_sum: float
    class_sums: Floats
    density: Floats  # of sampled rows
    numbers: list[Floats]  # of sampled rows, the tail values of each part

    def __add__(self, later: "_ScoredRows") -> "_ScoredRows":
        """The sums of both; values are sampled apart."""
        sums = self.confidence_sum + later.confidence_sum, self.class_sums + later.class_sums
        return _ScoredRows(self.n_rows + later.n_rows, *sums, self.density[:0], [])

    def summarize(self, fitted: FittedModel, limit: float, has_density: bool) -> PredictionSummary:
        proportions = dict(zip(fitted.labels.values, (self.class_sums / self.n_rows).tolist(), strict=True))
        quantiles, mean, unlikely = tuple[float, ...](), np.nan, np.nan
        if has_density:
            quantiles = tuple(np.quantile(self.density, DENSITY_QUANTILES, method="nearest").tolist())
            mean, unlikely = float(self.density.mean()), float((self.density < limit).mean())
        accuracy = self.confidence_sum / self.n_rows
        return PredictionSummary(self.n_rows, accuracy, proportions, quantiles, mean, unlikely)


class _UnseenLevelCounts:
    """Rows of each unseen level of each column, and the rows of levels beyond the bound."""

    def __init__(self) -> None:
        self.levels = defaultdict[Name, dict[Any, float]](dict)
        self.other_rows = defaultdict[Name, float](float)

    def __iadd__(self, later: "_UnseenLevelCounts") -> "_UnseenLevelCounts":
        for name, rows in later.levels.items():
            self.add(name, rows)
        for name, n in later.other_rows.items():
            self.other_rows[name] += n
        return self

    def add(self, name: Name, rows: dict[Any, float]) -> None:
        levels = self.levels[name]
        for value, n in rows.items():
            if value in levels or len(levels) < _MAX_UNSEEN_LEVELS:
                levels[value] = levels.get(value, 0.0) + n
            else:
                self.other_rows[name] += n

    def of_column(self, name: Name) -> drift_tests.UnseenLevels:
        return drift_tests.UnseenLevels(np.array(list(self.levels[name].values()), float), self.other_rows[name])


@dataclass
class _Scan:
    """Rows counted as one class, their unseen levels, and their scores."""

    tallies: list[Any]  # None of a part of documents
    unseen: _UnseenLevelCounts
    rows: _ScoredRows

    def __iadd__(self, later: "_Scan") -> "_Scan":
        self.tallies = [None if a is None else a + b for a, b in zip(self.tallies, later.tallies, strict=True)]
        self.unseen += later.unseen
        self.rows += later.rows
        return self


class _DriftDetector:
    """A model, and those of its parts that are the distributions of columns."""

    def __init__(self, fitted: FittedModel):
        self.fitted, self.generative_model = fitted, fitted.generative_model
        plan, self.part_indices = fitted.plan.select_density_parts()
        self.parts = plan.parts
        self.tallies = [fitted.selected_counts.tallies[i] for i in self.part_indices]
        has_densities = [part.event.has_density for part in self.generative_model.plan.parts]
        self.has_density = bool(self.part_indices) and all(has_densities)

    def scan(self, data: Any, reading: ReadOptions | None, watch: Watch) -> _Scan:
        fitted, total = self.fitted, None
        level_columns = {
            str(name)
            for part in self.parts
            if part.block_kind == "codes"
            for name, encoding in zip(part.columns, part.encodings, strict=True)
            if encoding.is_read_as_text
        }
        n_columns = sum(len(part.columns) for part in self.parts)
        max_values = min(_MAX_DENSITY_ROWS, _MAX_NUMBERS // max(n_columns, 1))
        density, numbers = RowSampler(_MAX_DENSITY_ROWS), [RowSampler(max_values) for _ in self.parts]
        with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
            prepare_to_score(source, fitted.plan, fitted)
            keep = [name for name in source.columns if name in level_columns]
            batches = split_batches(source.engine.score(source, fitted.plan, keep).batches, len(fitted.labels))
            for part in threads.map_ahead(partial(self._scan_batch, keep), batches):
                density.add(part.rows.density)
                for sampler, values in zip(numbers, part.rows.numbers, strict=True):
                    sampler.add(values)
                if total is None:
                    total = part
                else:
                    total += part
        if total is None or not density.n:
            raise InputError("there are no rows to compare", value=0, remedy="pass new rows")
        total.rows = replace(total.rows, density=density.rows, numbers=[sampler.rows for sampler in numbers])
        return total

    def _scan_batch(self, keep: list[str], batch: Any) -> _Scan:
        values = {name: batch.column(f"k{i}") for i, name in enumerate(keep)}
        blocks = make_blocks(self.fitted.plan, batch.select(range(batch.num_columns - len(keep))))
        y, unseen = np.zeros(batch.num_rows, np.intp), _UnseenLevelCounts()
        tallies, numbers = list[Any](), list[Floats]()
        for i, part, old in zip(self.part_indices, self.parts, self.tallies, strict=True):
            block, spec = _mask_unseen(blocks[i], part, values, unseen), part.spec
            is_text = part.block_kind == "documents"
            tallies.append(None if is_text else type(old).from_rows(block, y, n_classes=1, spec=spec))
            numbers.append(drift_tests.collect_tail_values(old, block, spec))
        log_posterior, density = score_blocks(self.fitted.plan, self.fitted.model, blocks)
        if self.generative_model is not self.fitted and self.has_density:
            density = self._density([blocks[i] for i in self.part_indices])
        p = np.exp(log_posterior)
        scored = _ScoredRows(len(p), float(p.max(axis=1).sum()), p.sum(axis=0), density, numbers)
        return _Scan(tallies, unseen, scored)

    def _density(self, blocks: list[Any]) -> Floats:
        return score_blocks(self.generative_model.plan, self.generative_model.model, blocks)[1]

    def draw_rows(self) -> _ScoredRows | None:
        """Rows drawn from the model, with their density; None if it cannot draw any."""
        if not self.has_density or any(part.block_kind == "documents" for part in self.parts):
            return None
        blocks, _ = self.generative_model.model.sample(_N_DRAWN_ROWS, np.random.default_rng(0))
        density = self._density([np.asfortranarray(block) for block in blocks])
        return _ScoredRows(_N_DRAWN_ROWS, np.nan, _N_DRAWN_ROWS * self.fitted.base_proportions, density, [])

    def compare(self, new: _Scan, sampled: list[list[Floats]]) -> tuple[list[ColumnDrift], list[Name]]:
        """The drift of each column, and the columns without a test."""
        tests, skipped = list[tuple[PlanPart, int, drift_tests.DriftTest, Any]](), list[Name]()
        rows = float(self.fitted.counts.class_weight.sum()), float(new.rows.n_rows)
        for i, (part, old, tally) in enumerate(zip(self.parts, self.tallies, new.tallies, strict=True)):
            of_part, encodings = None, part.encodings
            if tally is not None:
                _, a, b, encodings = part.event.prepare_comparison(old.pool(), tally, part.encodings)
                unseen = [new.unseen.of_column(name) for name in part.columns]
                of_part = drift_tests.compare_columns(a, b, rows, unseen, [side[i] for side in sampled])
            if of_part is None:
                skipped += part.columns
            else:
                tests += [(part, j, test, encodings) for j, test in enumerate(of_part)]
        adjusted = drift_tests.adjust_p_values([test.p_value for _, _, test, _ in tests])
        columns = []
        for (part, j, test, encodings), p in zip(tests, adjusted, strict=True):
            name, level = part.columns[j], self._level(part, j, test.level_index, encodings)
            figures = test.stability_index, test.p_value, p, test.test_name, test.values
            columns.append(ColumnDrift(name, part.event.name, *figures, level))
        return sorted(columns, key=lambda column: (column.adjusted_p_value, -column.stability_index)), skipped

    def _level(self, part: PlanPart, j: int, index: int | None, encodings: Any) -> Any:
        if index is None:
            return None
        if index in (drift_tests.MISSING, drift_tests.UNSEEN):
            return "missing" if index == drift_tests.MISSING else "unseen"
        if encodings[j].is_read_as_text:
            return part.levels[j].values[index]
        return encodings[j].level_names(part.columns[j] in self.fitted.dates)[index]


def _mask_unseen(block: Any, part: PlanPart, values: dict[str, Any], unseen: _UnseenLevelCounts) -> Any:
    """A block of rows in which unseen levels are missing; they are counted in ``unseen``."""
    if part.block_kind != "codes":
        return block
    codes = np.asarray(block)
    is_unseen = codes >= np.array([encoding.n_levels or 0 for encoding in part.encodings])
    if not is_unseen.any():
        return block
    for j in np.flatnonzero(is_unseen.any(axis=0)).tolist():
        name, rows = part.columns[j], np.flatnonzero(is_unseen[:, j])
        column = values.get(str(name), codes[:, j]).take(rows)
        labels = Labels.from_values(column)
        counts = np.bincount(labels.encode(column), minlength=len(labels)).tolist()
        unseen.add(name, dict(zip(labels.values, counts, strict=True)))
    return np.asfortranarray(np.where(is_unseen, -1, codes))
