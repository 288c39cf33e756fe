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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from candide.engines import arrays
from candide.engines.base import Watch, silent
from candide.engines.duckdb import count as duckdb
from candide.engines.duckdb import score as scoring
from candide.engines.duckdb.count import Counted
from candide.engines.duckdb.match_types import prepare_like, recoded
from candide.engines.duckdb.prepare import Prepared, prepare
from candide.engines.duckdb.source import Source
from candide.engines.duckdb.write import write
from candide.engines.reading import Reading
from candide.errors import InputError, unknown
from candide.kernels import threads
from candide.model.census import Census, join
from candide.model.fitted import Fitted
from candide.model.plan import Part, Plan
from candide.model.settings import Settings
from candide.rows.kinds import Column
from candide.rows.labels import Labels
from candide.rows.table import Table
from candide.tasks.scores import Scores, spread


@dataclass(frozen=True)
class Learned:
    """A fitted model, what was made of each column, and remarks a person should see."""

    fitted: Fitted
    columns: list[Column]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Validation:
    """Cross-validation: the scores of each fold on rows it was not trained on, and the model of all rows.

    >>> from candide.demo import rows
    >>> plants, herb = rows(300, seed=0)
    >>> validation = cross_validate({**plants, "herb": herb}, "herb", folds=5)
    >>> len(validation.folds), validation.total.n
    (5, 300.0)
    """

    folds: list[Scores]
    learned: Learned

    @property
    def total(self) -> Scores:
        """All rows, each scored by the model that had not seen it."""
        return reduce(add, self.folds)

    def __str__(self) -> str:
        title = f"{len(self.folds)} folds of {self.learned.fitted.census.n_rows:,} rows"
        lines = [f"{title}   mean      sd"]
        lines += [f"{name:{len(title)}} {mean:.4f}  {sd:.4f}" for name, (mean, sd) in spread(self.folds).items()]
        return "\n".join(lines)

    __repr__ = __str__


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
        prepared = prepare(source, target, events, drop, weight)
        with watch(source, "counting"):
            counted = _count(source, target, prepared, weight)
    [census] = counted.censuses
    notes = prepared.notes + _unlabelled(target, counted)
    fitted = Fitted(_checked(census, target), settings or Settings(), target)
    fitted.model  # noqa: B018  an estimate that cannot be had is an error now, not at the first prediction
    return Learned(fitted, prepared.columns, notes)


def count_like(
    fitted: Fitted,
    data: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Census:
    """Count a source as a model was counted, so that the census can be added to the model's, or taken from it."""
    known, name = fitted.census, _target(fitted, target)
    with Source.open(data, reading) as source:
        prepared = prepare_like(source, known, name, weight)
        with watch(source, "counting"):
            [census] = _count(source, name, prepared, weight).censuses
    return recoded(census, known.plan, known.labels)


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

    >>> rows = {"size": [float(i % 10) for i in range(200)], "kind": ["a" if i % 10 < 5 else "b" for i in range(200)]}
    >>> cross_validate(rows, "kind", folds=10).total.accuracy
    1.0
    """
    if folds < 2:
        raise InputError(f"folds: {folds}; cross-validation needs at least 2")
    settings = settings or Settings()
    with Source.open(data, reading) as source:
        source.materialise()  # a row is counted in the fold in which it is scored
        prepared = prepare(source, target, events, drop, weight)
        with watch(source, "counting"):
            counted = _count(source, target, prepared, weight, folds=folds, seed=seed)
        parts = counted.censuses
        whole = _checked(reduce(add, parts), target)
        if whole.n_rows < folds:
            raise InputError(f"{whole.n_rows} rows cannot be divided into {folds} folds")
        trained = [Fitted(census, settings) for census in _others(parts)]  # each chooses its columns for itself
        with watch(source, "scoring"):
            scores = _score_folds(source, target, whole, trained, weight, seed)
    notes = prepared.notes + _unlabelled(target, counted)
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
    with Source.open(data, reading) as source, watch(source, "scoring"):
        scoring.prepare_to_score(source, fitted.plan)
        keep = list(source.columns) if list(keep) == ["all"] else keep
        schema, batches = scoring.scored(source, fitted.plan, fitted.labels, fitted.model, keep)
        if out is None:
            return pa.Table.from_batches(batches, schema)
        return write(schema, batches, Path(out))


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
    name = _target(fitted, target)
    with Source.open(data, reading) as source, watch(source, "scoring"):
        for what, column in (("target", name), ("weight", weight)):
            if column is not None and column not in source.columns:
                raise unknown(what, column, source.columns)
        labels, plan = fitted.labels, fitted.plan
        scoring.prepare_to_score(source, plan)
        query = scoring.query(source, plan, keep=[name, *([weight] if weight else [])])

        def score(batch: pa.RecordBatch) -> Scores | None:
            codes, known, w = _truth(labels, batch, weight)
            log_posterior, _ = scoring.posterior(plan, fitted.model, batch)
            return Scores.of(log_posterior[known], codes[known], w if w is None else w[known]) if known.any() else None

        batches = source.batches(query, scoring.batch_size(plan))
        scores = [part for part in threads.ahead(score, batches) if part is not None]
    if not scores:
        raise InputError(f"column {name!r}: no row of {source.name} has a label the model knows, {list(labels.values)}")
    return reduce(add, scores)


def _target(fitted: Fitted, target: str | None) -> str:
    name = target or fitted.target
    if name is None:
        raise InputError("the model does not say which column it learned; name it with --target (target=...)")
    return name


def _truth(labels: Labels, batch: pa.RecordBatch, weight: str | None) -> tuple[NDArray, NDArray, NDArray | None]:
    """Class codes, whether the model knows them, and weights, of the rows of a batch."""
    codes = _label_codes(labels, batch.column("k0"))
    w = None if weight is None else _weights(weight, batch.column("k1"))
    return codes, (codes >= 0) & (codes < len(labels)), w


def _weights(name: str, column: pa.Array) -> NDArray:
    try:
        w = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise InputError(f"column {name!r}: weights must be numbers >= 0; {error}") from None
    if not (np.isfinite(w) & (w >= 0)).all():
        raise InputError(f"column {name!r}: a weight is missing, infinite or negative; weights must be numbers >= 0")
    return w


def _label_codes(labels: Labels, column: pa.Array) -> NDArray[np.intp]:
    if pa.types.is_string(column.type) and not any(isinstance(v, str) for v in labels.values):
        spelled = {str(v): v for v in labels.values}
        return labels.encode([spelled.get(v, v) for v in column.to_pylist()])
    if not pa.types.is_string(column.type) and all(isinstance(v, str) for v in labels.values):
        column = column.cast(pa.string())
    return labels.encode(column)


def _count(
    source: Source, target: str, prepared: Prepared, weight: str | None, folds: int = 0, seed: int = 0
) -> Counted:
    if any(callable(part.spec.transform) for part in prepared.plan.parts):
        return _count_batches(source, target, prepared.plan, weight, folds, seed)
    if any(map(_in_batches, prepared.plan.parts)):
        return _count_both(source, target, prepared, weight, folds, seed)
    counted = duckdb.count(duckdb.Rows(source, target, weight, folds, seed), prepared)
    if weight is not None and (nearer := duckdb.nearer(counted, prepared)):
        counted = duckdb.count(duckdb.Rows(source, target, weight, folds, seed), replace(prepared, near=nearer))
    return counted


def _count_both(source: Source, target: str, prepared: Prepared, weight: str | None, folds: int, seed: int) -> Counted:
    """Documents, columns modelled together and very many numbers are counted from Arrow batches, the others by a query.

    The two are one census a fold.
    """
    in_batches, others = (_only(prepared.plan, wanted) for wanted in (True, False))
    read = _count_batches(source, target, in_batches, weight, folds, seed)
    if not others.parts:
        return read
    asked = _count(source, target, replace(prepared, plan=others), weight, folds, seed)
    joined = [join(a, b, prepared.plan) for a, b in zip(asked.censuses, read.censuses, strict=True)]
    return Counted(joined, read.unlabelled)


def _in_batches(part: Part) -> bool:
    """Whether a part is counted from rows: a query cannot say it, or takes longer to plan than the rows to count."""
    return part.in_batches or (len(part.columns) > duckdb.WIDE and not part.has_levels)


def _only(plan: Plan, in_batches: bool) -> Plan:
    parts = tuple(part for part in plan.parts if _in_batches(part) == in_batches)
    used = {name for part in parts for name in part.columns}
    return Plan(tuple(name for name in plan.columns if name in used), parts)


def _count_batches(source: Source, target: str, plan: Plan, weight: str | None, folds: int, seed: int) -> Counted:
    """What SQL cannot say, such as a user's own event model, is counted from Arrow batches by the array engine."""
    query = duckdb.rows_query(duckdb.Rows(source, target, weight, folds, seed), plan)
    censuses: list[Census | None] = [None] * max(1, folds)
    unlabelled = 0
    for batch in source.batches(query, scoring.batch_size(plan)):
        rows = pa.table([*batch.columns], names=["candide y", "candide fold", *batch.schema.names[2:]])
        for fold in range(max(1, folds)):
            mine = rows.filter(pc.equal(rows["candide fold"], fold)) if folds else rows
            labelled = mine.filter(pc.is_valid(mine["candide y"]))
            unlabelled += mine.num_rows - labelled.num_rows
            mine = labelled
            if mine.num_rows:
                table = Table.of(mine.select(list(range(3 if weight else 2, mine.num_columns))))
                w = mine.column(2).to_numpy() if weight else None
                census = arrays.count(table, mine["candide y"], w, plan=plan.with_levels(table))
                before = censuses[fold]
                censuses[fold] = census if before is None else before + census
    found = [c for c in censuses if c is not None]
    if len(found) < max(1, folds):
        raise InputError(f"column {target!r}: too few rows of {source.name} have a label")
    return Counted(found, unlabelled)


def _others(parts: list[Census]) -> Iterator[Census]:
    """For every fold the sum of the other folds."""
    for fold in range(len(parts)):
        yield reduce(add, parts[:fold] + parts[fold + 1 :])


def _score_folds(
    source: Source, target: str, whole: Census, trained: list[Fitted], weight: str | None, seed: int
) -> list[Scores]:
    models, chosen = [fitted.model for fitted in trained], [fitted.plan for fitted in trained]
    labels, folds, used = whole.labels, len(models), {name for plan in chosen for name in plan.columns}
    plan = whole.plan if len(used) == len(whole.plan.columns) else whole.select(used).plan
    scores: list[Scores | None] = [None] * folds
    query = duckdb.score_query(duckdb.Rows(source, target, weight, folds, seed), plan)

    def score(batch: pa.RecordBatch) -> list[tuple[int, Scores]]:
        fold = batch.column("candide_fold").to_numpy()
        codes, known, w = _truth(labels, batch, weight)
        out = []
        for f, rows, log_posterior in scoring.posterior_by_fold(plan, models, chosen, fold, batch):
            if not known[rows].all():
                rows, log_posterior = rows[known[rows]], log_posterior[known[rows]]
            if len(rows):
                out.append((f, Scores.of(log_posterior, codes[rows], w if w is None else w[rows])))
        return out

    for more in threads.ahead(score, source.batches(query, scoring.batch_size(plan))):
        for f, part in more:
            before = scores[f]
            scores[f] = part if before is None else before + part
    return [s for s in scores if s is not None]


def _checked(census: Census, target: str) -> Census:
    if len(census.labels) < 2:
        raise InputError(
            f"column {target!r} has one class only, {census.labels.values[0]!r}; a classifier needs at least two"
        )
    return census


def _unlabelled(target: str, counted: Counted) -> list[str]:
    if not counted.unlabelled:
        return []
    return [f"{counted.unlabelled:,} rows have no value of {target!r} and were left out"]
