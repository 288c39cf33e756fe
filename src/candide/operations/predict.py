"""Predicting: a source scored in a stream, Arrow batches in, Arrow batches out, never the whole table.

A scored table has the input columns asked for, then ``prediction``, ``p_<class>`` for every class, and ``log_density``.
A column the model knows and the source lacks is missing in every row; other columns are passed by.

>>> from candide.operations.fit import fit_model
>>> rows = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None], "buys": ["no", "no", "yes", "yes"]}
>>> predict(fit_model(rows, "buys").fitted, {"age": [30], "job": ["cook"]}).to_pylist()[0]["prediction"]
'no'
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
from candide.engines.reading import ReadOptions
from candide.engines.scoring import prepare_to_score, score_batch
from candide.errors import InputError, unknown_name_error
from candide.kernels import threads
from candide.model.fitted import FittedModel
from candide.model.input_columns import UnseenValues
from candide.model.policy import PolicyLike
from candide.store import outputs
from candide.store.models import ModelLike, load_fitted, make_read_options
from candide.store.scored_files import is_scored_file

MAX_PROBABILITIES = 1 << 25  # probabilities in a batch of the scored table


def predict(
    model: ModelLike,
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
    """Score a source in a stream: into a file (the number of rows comes back), or into an Arrow table.

    ``keep`` names input columns to pass through, word for word and type for type; ``"all"`` keeps all. A file is not
    written over one that is read, nor over one that holds no predictions, but by ``force``. ``policy`` decides in the
    place of the model's own; the prediction of a row that it leaves open is missing. ``intervals`` is a level, such as
    0.95: between which values each probability lies, for all that the counts leave open.
    """
    outputs.check_destination(out, model, data, ours=is_scored_file, force=force)
    fitted = load_fitted(model).with_policy(policy)
    with open_source(data, make_read_options(fitted, reading)) as source, watch(source, "scoring"):
        prepare_to_score(source, fitted.plan, fitted)
        names = check_kept_columns(source, keep)
        unseen_values, interval_models = UnseenValues(fitted.plan), IntervalModels.from_model(fitted, intervals)
        scoring = partial(TableScorer.from_model, fitted, names, interval_models=interval_models)
        found: Any = source.engine.scored_table(source, fitted.plan, names, scoring) if out is None else None
        if found is None:
            found = write_scored(source, *score_table(source, fitted, names, unseen_values, interval_models), out)
    issue_warnings(unseen_values.notes())
    return found


def check_kept_columns(source: Source, keep: str | Sequence[str]) -> list[str]:
    """Columns to keep, which the source must have."""
    names = [keep] if isinstance(keep, str) else list(keep)
    names = list(source.columns) if names == ["all"] else names
    for name in names:
        if name not in source.columns:
            raise unknown_name_error("column to keep", name, source.columns)
    return names


def write_scored(source: Source, schema: Any, batches: Iterator[Any], out: str | os.PathLike | None) -> Any:
    """The scored table of a source: in a file, and the number of rows comes back, or in Arrow."""
    if out is None:
        import pyarrow as pa

        return pa.Table.from_batches(batches, schema)
    from candide.engines.duckdb.write import write_batches

    if source.encoding is not None:
        text = f"{out} is written in UTF-8; {source.name} is in {source.encoding}"
        issue_warnings([Note("written-utf-8", text)], stacklevel=3)
    return write_batches(schema, batches, Path(out))


@dataclass(frozen=True, eq=False)
class IntervalModels:
    """Models drawn from the posterior, and how many of them are to lie between two values."""

    models: list[Any]
    level: float

    @classmethod
    def from_model(cls, fitted: FittedModel, level: float | None) -> "IntervalModels | None":
        if level is None:
            return None
        from candide.model import posterior_draws

        posterior_draws.check_level(level)
        return cls(posterior_draws.draw_models(fitted), level)

    def interval_columns(self, fitted: FittedModel, batch: Any) -> list[Any]:
        """Class by class the lower and the upper end, of every row."""
        from candide.engines.batches import make_blocks
        from candide.model.posterior_draws import probability_intervals

        few = split_batches([batch], len(fitted.labels) * len(self.models))
        ends = np.concatenate(
            [probability_intervals(self.models, make_blocks(fitted.plan, piece), self.level) for piece in few]
        )
        return [ends[:, c, side] for c in range(len(fitted.labels)) for side in (0, 1)]


def score_table(
    source: Source,
    fitted: FittedModel,
    keep: Sequence[str],
    unseen_values: UnseenValues,
    interval_models: IntervalModels | None = None,
) -> tuple[Any, Iterator[Any]]:
    """The schema and the batches of the scored table; ``strangers`` takes note of values never met."""
    written = source.original_columns(keep)
    scan = source.engine.score(source, fitted.plan, [name for name, _ in written])
    kinds = [choose_arrow_type(scan.schema.field(f"k{i}").type, kind) for i, (_, kind) in enumerate(written)]
    scoring = TableScorer.from_model(fitted, keep, kinds, interval_models=interval_models)
    pieced = split_batches(scan.batches, len(fitted.labels), MAX_PROBABILITIES)
    return scoring.schema, threads.map_ahead(partial(scoring, unseen_values=unseen_values), pieced)


def check_distinct(names: Sequence[str]) -> Sequence[str]:
    """The names of the columns of a scored table; an error where two are the same."""
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        what, remedy = f"the scored table would have two columns {twice!r}", "keep other columns, or rename it"
        raise InputError(what, value=twice, remedy=remedy)
    return names


@dataclass(frozen=True, eq=False)
class TableScorer:
    """What makes of a batch of rows one of the scored table; it goes to the rows where they lie elsewhere."""

    fitted: FittedModel
    keep: Sequence[str]
    schema: Any  # of the scored table, in Arrow
    interval_models: IntervalModels | None = None

    @classmethod
    def from_model(
        cls,
        fitted: FittedModel,
        keep: Sequence[str],
        kinds: Sequence[Any],
        interval_models: IntervalModels | None = None,
    ) -> "TableScorer":
        """``kinds`` are the Arrow types of the columns that are kept."""
        import pyarrow as pa

        labels = fitted.labels
        ends = [] if interval_models is None else [f"p_{v}_{end}" for v in labels.values for end in ("low", "high")]
        names = check_distinct([*keep, "prediction", *(f"p_{v}" for v in labels.values), *ends, "log_density"])
        kinds = [*kinds, pa.array(labels.array.tolist()).type, *[pa.float64()] * (len(labels) + len(ends) + 1)]
        return cls(fitted, keep, pa.schema(list(zip(names, kinds, strict=True))), interval_models)

    def __call__(self, batch: Any, unseen_values: UnseenValues | None = None) -> Any:
        """``strangers`` takes note of values never met."""
        import pyarrow as pa

        fitted, n, k = self.fitted, batch.num_rows, len(self.fitted.labels)
        unseen_values = UnseenValues(fitted.plan) if unseen_values is None else unseen_values
        rule, values = fitted.decision_rule, pa.array(fitted.labels.array.tolist())
        has_density = all(law.has_density for law in fitted.model.distributions)
        p, winner, density = np.empty((k, n)), np.empty(n, np.intp), np.empty(n)
        start = 0
        for piece in split_batches([batch], k):
            some = slice(start, start := start + piece.num_rows)
            log_posterior, density[some] = score_batch(fitted, piece, unseen_values)
            winner[some] = log_posterior.argmax(axis=1) if rule is None else rule(log_posterior)
            np.exp(log_posterior.T, out=p[:, some])
        kept = [cast_column(batch.column(f"k{i}"), self.schema.field(i).type) for i in range(len(self.keep))]
        last = pa.array(density) if has_density else pa.nulls(n, pa.float64())
        flat = pa.array(p.ravel())  # a slice of it is made far quicker than an array, and there may be 100,000 classes
        given = values.take(pa.array(winner, mask=winner < 0))
        sides = (
            []
            if self.interval_models is None
            else [pa.array(end) for end in self.interval_models.interval_columns(fitted, batch)]
        )
        columns = [*kept, given, *(flat.slice(c * n, n) for c in range(k)), *sides, last]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
