"""Score a source into a table, in a stream: Arrow batches in, Arrow batches out, never the whole table.

A scored table has the input columns to keep, then ``prediction``, ``p_<class>`` for every class, and ``log_density``.
A column of the model that the source lacks is missing in every row; other columns of the source are ignored.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from candide.data.notes import Note, issue_warnings
from candide.engines.base import Source, Watch, no_progress, open_source
from candide.engines.batches import cast_column, choose_arrow_type, split_batches
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scored_files import is_scored_file
from candide.engines.scoring import prepare_to_score, score_batch
from candide.errors import InputError, unknown_name_error
from candide.files import check_output
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.model.input_columns import UnseenValues
from candide.model.policy import PolicyLike

_MAX_PROBABILITIES = 1 << 25  # probabilities in a batch of the scored table


def predict_table(
    fitted: FittedModel,
    data: Any,
    *,
    out: str | os.PathLike | None = None,
    keep: str | Sequence[str] = (),
    force: bool = False,
    policy: PolicyLike = None,
    intervals: float | None = None,
    reading: ReadOptions | None = None,
    watch: Watch = no_progress,
) -> Any:
    """Score a source into a file, and return the number of rows; without ``out``, return an Arrow table.

    ``keep`` names input columns to pass through unchanged; ``"all"`` keeps all. ``policy`` replaces the model's own;
    the prediction is missing where it abstains. ``intervals`` is a level such as 0.95 for credible intervals.
    """
    check_output(out, data, is_own_file=is_scored_file, force=force)
    fitted = fitted.with_policy(policy)
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        prepare_to_score(source, fitted.plan, fitted)
        names = _check_kept_columns(source, keep)
        unseen_values, interval_models = UnseenValues(fitted.plan), _IntervalModels.from_model(fitted, intervals)
        make_scorer = partial(TableScorer.from_model, fitted, names, interval_models=interval_models)
        scored: Any = source.engine.scored_table(source, fitted.plan, names, make_scorer) if out is None else None
        if scored is None:
            scored = _write_scored(source, *_score_table(source, fitted, names, unseen_values, interval_models), out)
    issue_warnings(unseen_values.notes())
    return scored


def _check_kept_columns(source: Source, keep: str | Sequence[str]) -> list[str]:
    names = [keep] if isinstance(keep, str) else list(keep)
    names = list(source.columns) if names == ["all"] else names
    for name in names:
        if name not in source.columns:
            raise unknown_name_error("column to keep", name, source.columns)
    return names


def _write_scored(source: Source, schema: Any, batches: Iterator[Any], out: str | os.PathLike | None) -> Any:
    """The scored table as a file, with the number of rows returned, or in Arrow."""
    if out is None:
        import pyarrow as pa

        return pa.Table.from_batches(batches, schema)
    from candide.engines.duckdb.write import write_batches

    if source.encoding is not None:
        text = f"{out} is written in UTF-8; {source.name} is in {source.encoding}"
        issue_warnings([Note("written-utf-8", text)], stacklevel=3)
    return write_batches(schema, batches, Path(out))


@dataclass(frozen=True, eq=False)
class _IntervalModels:
    """Models drawn from the posterior, and the level of the credible intervals."""

    models: list[Any]
    level: float

    @classmethod
    def from_model(cls, fitted: FittedModel, level: float | None) -> "_IntervalModels | None":
        if level is None:
            return None
        from candide.model import posterior_draws

        posterior_draws.check_level(level)
        return cls(posterior_draws.draw_models(fitted), level)

    def interval_columns(self, fitted: FittedModel, batch: Any) -> list[Any]:
        """The lower and the upper end for each class, of every row."""
        from candide.engines.batches import make_blocks
        from candide.model.posterior_draws import probability_intervals

        pieces = split_batches([batch], len(fitted.labels) * len(self.models))
        ends = np.concatenate(
            [probability_intervals(self.models, make_blocks(fitted.plan, piece), self.level) for piece in pieces]
        )
        return [ends[:, c, side] for c in range(len(fitted.labels)) for side in (0, 1)]


def _score_table(
    source: Source,
    fitted: FittedModel,
    keep: Sequence[str],
    unseen_values: UnseenValues,
    interval_models: _IntervalModels | None,
) -> tuple[Any, Iterator[Any]]:
    """The schema and the batches of the scored table; ``unseen_values`` collects unseen values."""
    written = source.original_columns(keep)
    scan = source.engine.score(source, fitted.plan, [name for name, _ in written])
    types = [choose_arrow_type(scan.schema.field(f"k{i}").type, kind) for i, (_, kind) in enumerate(written)]
    scorer = TableScorer.from_model(fitted, keep, types, interval_models=interval_models)
    pieces = split_batches(scan.batches, len(fitted.labels), _MAX_PROBABILITIES)
    return scorer.schema, threads.map_ahead(partial(scorer, unseen_values=unseen_values), pieces)


@dataclass(frozen=True, eq=False)
class TableScorer:
    """Turns a batch of rows into a batch of the scored table; engines send it to where the rows are."""

    fitted: FittedModel
    keep: Sequence[str]
    schema: Any  # of the scored table, in Arrow
    interval_models: _IntervalModels | None = None

    @classmethod
    def from_model(
        cls,
        fitted: FittedModel,
        keep: Sequence[str],
        types: Sequence[Any],
        interval_models: _IntervalModels | None = None,
    ) -> "TableScorer":
        """``types`` are the Arrow types of the columns to keep."""
        import pyarrow as pa

        labels = fitted.labels
        ends = [] if interval_models is None else [f"p_{v}_{end}" for v in labels.values for end in ("low", "high")]
        names = [*keep, "prediction", *(f"p_{v}" for v in labels.values), *ends, "log_density"]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            what, remedy = f"the scored table would have two columns {twice!r}", "keep other columns, or rename it"
            raise InputError(what, value=twice, remedy=remedy)
        types = [*types, pa.array(labels.array.tolist()).type, *[pa.float64()] * (len(labels) + len(ends) + 1)]
        return cls(fitted, keep, pa.schema(list(zip(names, types, strict=True))), interval_models)

    def __call__(self, batch: Any, unseen_values: UnseenValues | None = None) -> Any:
        """``unseen_values`` collects unseen values."""
        import pyarrow as pa

        fitted, n, k = self.fitted, batch.num_rows, len(self.fitted.labels)
        unseen_values = UnseenValues(fitted.plan) if unseen_values is None else unseen_values
        rule, values = fitted.decision_rule, pa.array(fitted.labels.array.tolist())
        has_density = all(distribution.has_density for distribution in fitted.model.distributions)
        p, winner, density = np.empty((k, n)), np.empty(n, np.intp), np.empty(n)
        start = 0
        for piece in split_batches([batch], k):
            rows = slice(start, start := start + piece.num_rows)
            log_posterior, density[rows] = score_batch(fitted, piece, unseen_values)
            winner[rows] = log_posterior.argmax(axis=1) if rule is None else rule(log_posterior)
            np.exp(log_posterior.T, out=p[:, rows])
        kept = [cast_column(batch.column(f"k{i}"), self.schema.field(i).type) for i in range(len(self.keep))]
        last = pa.array(density) if has_density else pa.nulls(n, pa.float64())
        flat = pa.array(p.ravel())  # slices of it are far quicker to make than arrays, and there may be 100,000 classes
        predicted = values.take(pa.array(winner, mask=winner < 0))
        intervals = [] if self.interval_models is None else self.interval_models.interval_columns(fitted, batch)
        columns = [kept, [predicted], (flat.slice(c * n, n) for c in range(k)), map(pa.array, intervals), [last]]
        return pa.RecordBatch.from_arrays([column for group in columns for column in group], schema=self.schema)
