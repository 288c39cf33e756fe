"""Predicting: a source scored in a stream, Arrow batches in, Arrow batches out, never the whole table.

A scored table has the input columns asked for, then ``prediction``, ``p_<class>`` for every class, and ``log_density``.
A column the model knows and the source lacks is missing in every row; other columns are passed by.

>>> from candide.tasks.learn import learn
>>> rows = {"age": [25, 32, 47, 51], "job": ["cook", "cook", "smith", None], "buys": ["no", "no", "yes", "yes"]}
>>> predict(learn(rows, "buys").fitted, {"age": [30], "job": ["cook"]}).to_pylist()[0]["prediction"]
'no'
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from candide.engines.base import Source, Watch, open_source, silent
from candide.engines.batch import arrow_type, as_type, pieces
from candide.engines.reading import Reading
from candide.errors import InputError, unknown
from candide.kernels import threads
from candide.model.fitted import Fitted
from candide.model.policy import PolicyLike
from candide.model.strangers import Strangers
from candide.rows.remarks import Remark, warn
from candide.tasks import outputs
from candide.tasks.models import Model, fitted_of, reading_of
from candide.tasks.scored_files import is_scored
from candide.tasks.scoring import prepare_to_score, scored

MOST = 1 << 25  # probabilities in a batch of the scored table


def predict(
    model: Model,
    data: Any,
    *,
    out: str | os.PathLike | None = None,
    keep: str | Sequence[str] = (),
    force: bool = False,
    policy: PolicyLike = None,
    intervals: float | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Any:
    """Score a source in a stream: into a file (the number of rows comes back), or into an Arrow table.

    ``keep`` names input columns to pass through, word for word and type for type; ``"all"`` keeps all. A file is not
    written over one that is read, nor over one that holds no predictions, but by ``force``. ``policy`` decides in the
    place of the model's own; the prediction of a row that it leaves open is missing. ``intervals`` is a level, such as
    0.95: between which values each probability lies, for all that the counts leave open.
    """
    outputs.check(out, model, data, ours=is_scored, force=force)
    fitted = fitted_of(model).with_policy(policy)
    with open_source(data, reading_of(fitted, reading)) as source, watch(source, "scoring"):
        prepare_to_score(source, fitted.plan, fitted)
        names = kept_columns(source, keep)
        strangers, between = Strangers(fitted.plan), Between.of(fitted, intervals)
        scoring = partial(Scoring.of, fitted, names, between=between)
        found: Any = source.engine.table(source, fitted.plan, names, scoring) if out is None else None
        if found is None:
            found = put(source, *scored_table(source, fitted, names, strangers, between), out)
    warn(strangers.remarks())
    return found


def kept_columns(source: Source, keep: str | Sequence[str]) -> list[str]:
    """Columns to keep, which the source must have."""
    names = [keep] if isinstance(keep, str) else list(keep)
    names = list(source.columns) if names == ["all"] else names
    for name in names:
        if name not in source.columns:
            raise unknown("column to keep", name, source.columns)
    return names


def put(source: Source, schema: Any, batches: Iterator[Any], out: str | os.PathLike | None) -> Any:
    """The scored table of a source: in a file, and the number of rows comes back, or in Arrow."""
    if out is None:
        import pyarrow as pa

        return pa.Table.from_batches(batches, schema)
    from candide.engines.duckdb.write import write

    if source.encoding is not None:
        text = f"{out} is written in UTF-8; {source.name} is in {source.encoding}"
        warn([Remark("written-utf-8", text)], stacklevel=3)
    return write(schema, batches, Path(out))


@dataclass(frozen=True, eq=False)
class Between:
    """Models drawn from the posterior, and how many of them are to lie between two values."""

    models: list[Any]
    level: float

    @classmethod
    def of(cls, fitted: Fitted, level: float | None) -> "Between | None":
        if level is None:
            return None
        from candide.model import draws

        draws.check_level(level)
        return cls(draws.draws(fitted), level)

    def columns(self, fitted: Fitted, batch: Any) -> list[Any]:
        """Class by class the lower and the upper end, of every row."""
        from candide.engines.batch import blocks
        from candide.model.draws import intervals

        few = pieces([batch], len(fitted.labels) * len(self.models))
        ends = np.concatenate([intervals(self.models, blocks(fitted.plan, piece), self.level) for piece in few])
        return [ends[:, c, side] for c in range(len(fitted.labels)) for side in (0, 1)]


def scored_table(
    source: Source, fitted: Fitted, keep: Sequence[str], strangers: Strangers, between: Between | None = None
) -> tuple[Any, Iterator[Any]]:
    """The schema and the batches of the scored table; ``strangers`` takes note of values never met."""
    written = source.as_written(keep)
    scan = source.engine.score(source, fitted.plan, [name for name, _ in written])
    kinds = [arrow_type(scan.schema.field(f"k{i}").type, kind) for i, (_, kind) in enumerate(written)]
    scoring = Scoring.of(fitted, keep, kinds, between=between)
    pieced = pieces(scan.batches, len(fitted.labels), MOST)
    return scoring.schema, threads.ahead(partial(scoring, strangers=strangers), pieced)


def distinct(names: Sequence[str]) -> Sequence[str]:
    """The names of the columns of a scored table; an error where two are the same."""
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        what, remedy = f"the scored table would have two columns {twice!r}", "keep other columns, or rename it"
        raise InputError(what, value=twice, remedy=remedy)
    return names


@dataclass(frozen=True, eq=False)
class Scoring:
    """What makes of a batch of rows one of the scored table; it goes to the rows where they lie elsewhere."""

    fitted: Fitted
    keep: Sequence[str]
    schema: Any  # of the scored table, in Arrow
    between: Between | None = None

    @classmethod
    def of(cls, fitted: Fitted, keep: Sequence[str], kinds: Sequence[Any], between: Between | None = None) -> "Scoring":
        """``kinds`` are the Arrow types of the columns that are kept."""
        import pyarrow as pa

        labels = fitted.labels
        ends = [] if between is None else [f"p_{v}_{end}" for v in labels.values for end in ("low", "high")]
        names = distinct([*keep, "prediction", *(f"p_{v}" for v in labels.values), *ends, "log_density"])
        kinds = [*kinds, pa.array(labels.array.tolist()).type, *[pa.float64()] * (len(labels) + len(ends) + 1)]
        return cls(fitted, keep, pa.schema(list(zip(names, kinds, strict=True))), between)

    def __call__(self, batch: Any, strangers: Strangers | None = None) -> Any:
        """``strangers`` takes note of values never met."""
        import pyarrow as pa

        fitted, n, k = self.fitted, batch.num_rows, len(self.fitted.labels)
        strangers = Strangers(fitted.plan) if strangers is None else strangers
        rule, values = fitted.rule, pa.array(fitted.labels.array.tolist())
        has_density = all(law.has_density for law in fitted.model.distributions)
        p, winner, density = np.empty((k, n)), np.empty(n, np.intp), np.empty(n)
        start = 0
        for piece in pieces([batch], k):
            some = slice(start, start := start + piece.num_rows)
            log_posterior, density[some] = scored(fitted, piece, strangers)
            winner[some] = log_posterior.argmax(axis=1) if rule is None else rule(log_posterior)
            np.exp(log_posterior.T, out=p[:, some])
        kept = [as_type(batch.column(f"k{i}"), self.schema.field(i).type) for i in range(len(self.keep))]
        last = pa.array(density) if has_density else pa.nulls(n, pa.float64())
        flat = pa.array(p.ravel())  # a slice of it is made far quicker than an array, and there may be 100,000 classes
        given = values.take(pa.array(winner, mask=winner < 0))
        sides = [] if self.between is None else [pa.array(end) for end in self.between.columns(fitted, batch)]
        columns = [*kept, given, *(flat.slice(c * n, n) for c in range(k)), *sides, last]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
