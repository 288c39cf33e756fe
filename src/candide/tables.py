"""Tables: the main job. A source and the column to learn in, a model out; one pass, memory that does not grow.

>>> data = {"age": [25, 32, 47, 51, 8, 62], "job": ["cook", "cook", "smith", None, "smith", "smith"],
...         "buys": ["no", "no", "yes", "yes", "yes", "yes"]}
>>> learned = learn(data, "buys")
>>> learned.fitted.census.labels.values, [(c.name, c.event) for c in learned.columns]
(('no', 'yes'), [('age', 'gaussian'), ('job', 'categorical')])
>>> predict(learned.fitted, {"age": [30], "job": ["cook"]}).to_pylist()[0]["prediction"]
'no'
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candide.census import Census
from candide.engines import arrays, duckdb, scoring
from candide.engines.looks import csv_type, describe_target
from candide.engines.sources import Reading, Source
from candide.errors import InputError, unknown
from candide.evaluate import Scores
from candide.events import event_of
from candide.fitted import Fitted, Settings
from candide.labels import Labels
from candide.model import Model
from candide.plan import Part, Plan, plan_of
from candide.progress import Watch, silent
from candide.schema import LOOK, Column, look
from candide.table import Table


@dataclass(frozen=True)
class Learned:
    """A fitted model, what was made of each column, and remarks a person should see."""

    fitted: Fitted
    columns: list[Column]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Validation:
    """Cross-validation: the scores of each fold on rows it was not trained on, and the model of all rows."""

    folds: list[Scores]
    learned: Learned

    @property
    def total(self) -> Scores:
        """All rows, each scored by the model that had not seen it."""
        return reduce(add, self.folds)


@dataclass(frozen=True)
class _Prepared:
    """A source that has been looked at: the plan, and what the engine should know before it counts."""

    plan: Plan
    columns: list[Column]
    many: list[str]
    near: dict[str, float]
    spelled: list[str]
    notes: list[str]


def learn(
    data: Any,
    target: str,
    *,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    settings: Settings | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Learned:
    """Fit a model to any source in one pass."""
    with Source.open(data, reading) as source:
        prepared = _prepare(source, target, events, drop, weight)
        with watch(source, "counting"):
            [census] = _count(source, target, prepared, weight)
        notes = prepared.notes + _unlabelled(source, target, census.n_rows)
    fitted = Fitted(_checked(census, target), settings or Settings(), target)
    fitted.model  # noqa: B018  an estimate that cannot be had is an error now, not at the first prediction
    return Learned(fitted, prepared.columns, notes)


def cross_validate(
    data: Any,
    target: str,
    *,
    folds: int = 10,
    seed: int = 0,
    events: Any = "auto",
    drop: Sequence[str] = (),
    weight: str | None = None,
    settings: Settings | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Validation:
    """Cross-validate without refitting: count the folds apart in one pass, score them in another.

    The training census of a fold is the sum of the others.
    """
    if folds < 2:
        raise InputError(f"folds: {folds}; cross-validation needs at least 2")
    settings = settings or Settings()
    with Source.open(data, reading) as source:
        prepared = _prepare(source, target, events, drop, weight)
        with watch(source, "counting"):
            parts = _count(source, target, prepared, weight, folds=folds, seed=seed)
        whole = _checked(reduce(add, parts), target)
        if whole.n_rows < folds:
            raise InputError(f"{whole.n_rows} rows cannot be divided into {folds} folds")
        models = [Fitted(census, settings).model for census in _others(parts)]
        with watch(source, "scoring"):
            scores = _score_folds(source, target, whole, models, weight, seed)
        notes = prepared.notes + _unlabelled(source, target, whole.n_rows)
    return Validation(scores, Learned(Fitted(whole, settings, target), prepared.columns, notes))


def predict(
    fitted: Fitted,
    data: Any,
    *,
    out: str | os.PathLike | None = None,
    keep: Sequence[str] = (),
    reading: Reading | None = None,
    watch: Watch = silent,
) -> pa.Table | int:
    """Score a source in a stream: into a file (the number of rows comes back), or into an Arrow table."""
    census = fitted.census
    with Source.open(data, reading) as source, watch(source, "scoring"):
        keep = list(source.columns) if list(keep) == ["all"] else keep
        schema, batches = scoring.scored(source, census.plan, census.labels, fitted.model, keep)
        if out is None:
            return pa.Table.from_batches(batches, schema)
        return _write(schema, batches, Path(out))


def evaluate(
    fitted: Fitted,
    data: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Scores:
    """Score a model on a source whose labels are known."""
    name = target or fitted.target
    with Source.open(data, reading) as source, watch(source, "scoring"):
        if name not in source.columns:
            raise unknown("target", name, source.columns)
        labels, plan = fitted.census.labels, fitted.census.plan
        query = scoring.query(source, plan, keep=[name, *([weight] if weight else [])])
        scores = [
            Scores.of(log_posterior[known], codes[known], w if w is None else w[known])
            for batch in source.batches(query, scoring.BATCH)
            for log_posterior, codes, known, w in [_truth(fitted.model, plan, labels, batch, weight)]
            if known.any()
        ]
    if not scores:
        raise InputError(f"column {name!r}: no row of {source.name} has a label the model knows, {list(labels.values)}")
    return reduce(add, scores)


def _truth(
    model: Model, plan: Plan, labels: Labels, batch: pa.RecordBatch, weight: str | None
) -> tuple[NDArray, NDArray, NDArray, NDArray | None]:
    log_posterior, _ = scoring.posterior(plan, model, batch)
    codes = _label_codes(labels, batch.column("k0"))
    w = batch.column("k1").cast(pa.float64()).to_numpy(zero_copy_only=False) if weight else None
    return log_posterior, codes, (codes >= 0) & (codes < len(labels)), w


def _label_codes(labels: Labels, column: pa.Array) -> NDArray[np.intp]:
    if pa.types.is_string(column.type) and not any(isinstance(v, str) for v in labels.values):
        spelled = {str(v): v for v in labels.values}
        return labels.encode([spelled.get(v, v) for v in column.to_pylist()])
    if not pa.types.is_string(column.type) and all(isinstance(v, str) for v in labels.values):
        column = column.cast(pa.string())
    return labels.encode(column)


def _prepare(source: Source, target: str, events: Any, drop: Sequence[str], weight: str | None) -> _Prepared:
    for what, name in [
        ("target", target),
        *(("column to drop", d) for d in drop),
        *([("weight", weight)] if weight else []),
    ]:
        if name not in source.columns:
            raise unknown(what, name, source.columns)
    head = source.arrow(f"SELECT * FROM source LIMIT {LOOK}")
    if head.num_rows == 0:
        raise InputError(f"{source.name} has no rows")
    asked = {n: event_of(e) for n, e in events.items()} if isinstance(events, Mapping) else {}
    if source.csv:
        head = _typed(source, head, target, [n for n, event in asked.items() if Part(event, (n,)).has_levels])
    values = dict(zip(head.column_names, head.columns, strict=True))
    notes = describe_target(target, values[target])
    columns = [look(n, column) for n, column in values.items() if n not in {target, weight, *drop}]
    notes += [f"column {c.name!r} is left out: {c.why}" for c in columns if c.event is None and c.name not in asked]
    plan = plan_of(columns, events)
    spelled = [str(n) for part in plan.parts if part.has_levels for n in part.columns] if source.csv else []
    return _Prepared(plan, list(columns), *_hints(plan, head, weight), spelled, notes)


def _typed(source: Source, head: pa.Table, target: str, categories: Sequence[str]) -> pa.Table:
    """Give the columns of a CSV their types, and look again."""
    types = {
        name: csv_type(head.column(i), is_label=name == target, is_category=name in categories)
        for i, name in enumerate(head.column_names)
    }
    source.typed(types)
    return source.read_as(head, types)


def _hints(plan: Plan, head: pa.Table, weight: str | None) -> tuple[list[str], dict[str, float]]:
    """Columns with very many levels, and a value near the middle of each weighted number."""
    many, near = [], {}
    table = Table.of(head)
    for part in plan.parts:
        for name in part.columns:
            if part.has_levels:
                if len(Labels.of(table.column(name))) > duckdb.MANY_LEVELS:
                    many.append(str(name))
            elif weight is not None and part.spec.kind == "moments":
                values = part.spec.transformed(np.asarray(table.numbers((name,)), float))
                near[str(name)] = float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
    return many, near


def _count(
    source: Source, target: str, prepared: _Prepared, weight: str | None, folds: int = 0, seed: int = 0
) -> list[Census]:
    if any(callable(part.spec.transform) for part in prepared.plan.parts):
        return _count_batches(source, target, prepared.plan, weight, folds, seed)
    return duckdb.count(
        source,
        target,
        plan=prepared.plan,
        weight=weight,
        folds=folds,
        seed=seed,
        many=prepared.many,
        near=prepared.near,
        spelled=prepared.spelled,
    )


def _count_batches(source: Source, target: str, plan: Plan, weight: str | None, folds: int, seed: int) -> list[Census]:
    """What SQL cannot say, a user's own event model, is counted from Arrow batches by the array engine."""
    query = duckdb.rows_query(duckdb.Rows(source, target, weight, folds, seed), plan)
    censuses: list[Census | None] = [None] * max(1, folds)
    for batch in source.batches(query, scoring.BATCH):
        rows = pa.table([*batch.columns], names=["candide y", "candide fold", *batch.schema.names[2:]])
        for fold in range(max(1, folds)):
            mine = rows.filter(pc.equal(rows["candide fold"], fold)) if folds else rows
            mine = mine.filter(pc.is_valid(mine["candide y"]))
            if mine.num_rows:
                table = Table.of(mine.select(list(range(3 if weight else 2, mine.num_columns))))
                w = mine.column(2).to_numpy() if weight else None
                census = arrays.count(table, mine["candide y"], w, plan=plan.grown(table))
                before = censuses[fold]
                censuses[fold] = census if before is None else before + census
    found = [c for c in censuses if c is not None]
    if len(found) < max(1, folds):
        raise InputError(f"column {target!r}: too few rows of {source.name} have a label")
    return found


def _others(parts: list[Census]) -> Iterator[Census]:
    """For every fold the sum of the other folds."""
    for fold in range(len(parts)):
        yield reduce(add, parts[:fold] + parts[fold + 1 :])


def _score_folds(
    source: Source, target: str, whole: Census, models: list[Model], weight: str | None, seed: int
) -> list[Scores]:
    plan, labels, folds = whole.plan, whole.labels, len(models)
    scores: list[Scores | None] = [None] * folds
    query = duckdb.score_query(duckdb.Rows(source, target, weight, folds, seed), plan)
    for batch in source.batches(query, scoring.BATCH):
        fold = batch.column("candide_fold").to_numpy()
        for f in np.unique(fold):
            mine = batch.filter(pa.array(fold == f))
            log_posterior, codes, known, w = _truth(models[f], plan, labels, mine, weight)
            if known.any():
                more = Scores.of(log_posterior[known], codes[known], w if w is None else w[known])
                before = scores[f]
                scores[f] = more if before is None else before + more
    return [s for s in scores if s is not None]


def _checked(census: Census, target: str) -> Census:
    if len(census.labels) < 2:
        raise InputError(
            f"column {target!r} has one class only, {census.labels.values[0]!r}; a classifier needs at least two"
        )
    return census


def _unlabelled(source: Source, target: str, counted: int) -> list[str]:
    del source, target, counted
    return []


@contextmanager
def _whole_file(path: Path) -> Iterator[Path]:
    """A temporary name beside the wished one, given up for it at the end, or removed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


_COPY = {
    ".parquet": "FORMAT parquet",
    ".pq": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}


def _write(schema: pa.Schema, batches: Iterator[pa.RecordBatch], path: Path) -> int:
    """Write batches to a file by the ending of its name: whole, or not at all."""
    from candide.engines.writing import copy

    if path.suffix not in _COPY:
        raise unknown("ending of the output", path.suffix, _COPY)
    with _whole_file(path) as temporary:
        return copy(schema, batches, temporary, _COPY[path.suffix])
