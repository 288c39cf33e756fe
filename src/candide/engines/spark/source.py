"""Spark sources: a data frame, or the address of one, whose rows stay on the cluster.

Internally its columns have names without dots, quotes or capitals, which Spark would interpret; queries use the
original names, in quotes.
"""

import io
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cached_property, partial
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa

from candide.data.text_formats import parse_plain_numbers
from candide.engines.base import Folds, HeadAndNotes, LabelledSource, MakeScorer, Source, Work
from candide.engines.batches import BATCH_ROWS, batch_size
from candide.engines.reading import ReadOptions
from candide.engines.spark import executors
from candide.engines.spark.executors import RESULT_SCHEMA
from candide.engines.spark.session import find_shuffle, has_clock, is_only_read, open_frame, translate_errors
from candide.engines.sql.dialects.spark import SparkDialect
from candide.engines.sql.source import SqlEngine, SqlSource
from candide.engines.table_formats import unread_text
from candide.errors import InputError, InputTypeError, SourceError
from candide.model.plan import Plan, PlanPart

T = TypeVar("T")
_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_CASE_SETTING = "spark.sql.caseSensitive"
_SUBSTITUTE_SETTING = "spark.sql.variable.substitute"  # replaces ``${name}``, in the name of a column too
_MAX_FIELDS_SETTING = "spark.sql.debug.maxToStringFields"
_TITLE = re.compile("^== (.+) Plan ==\n", re.MULTILINE)
_INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")
_EXACT_TYPES = (*_INTEGER_TYPES, "double", "decimal", "boolean")
_NUMBER_TYPES = (*_EXACT_TYPES, "float")  # types that queries count, without their digits
_LEVEL_TYPES = (*_EXACT_TYPES, "string", "date")  # Java does not always find the shortest decimal of a 32-bit float
_TIME_TYPES = ("date", "timestamp", "timestamp_ntz")


class SparkSource(SqlSource):
    """An open data frame, in queries a temporary view."""

    dialect = SparkDialect()
    needs_middle = True  # faster than Spark's variance, and Spark's mean loses digits far from zero

    def __init__(self, frame: Any, name: str, engine: "Spark", reading: ReadOptions, owned: bool = False):
        self.name, self.owns_session = name, owned
        self.engine: Spark = engine
        names = list(frame.columns)
        if twice := [name for name in names if names.count(name) > 1]:
            remedy = "rename or drop one of them"
            raise SourceError(f"two columns are named {twice[0]!r}", source=name, value=twice[0], remedy=remedy)
        self.columns = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        if not names:
            raise InputError(f"{name} has no columns")
        _check_types(frame)
        self._at = {name: f"c{i}" for i, name in enumerate(names)}
        self.frame = _mask_missing(frame.toDF(*self._at.values()), reading.na_values)
        self._fold_assignment: dict[Folds, executors.FoldAssignment] = {}
        self._view: str | None = None

    @classmethod
    def open(cls, data: Any, reading: ReadOptions, engine: "Spark") -> "SparkSource":
        if not isinstance(data, str):
            with translate_errors("the data frame"):
                return cls(data, "the data frame", engine, reading)
        frame, started = open_frame(data, reading)
        try:
            return cls(frame, data, engine, reading, started)
        except BaseException:
            if started:
                frame.sparkSession.stop()
            raise

    def close(self) -> None:
        """Stop a session that was started for this source; in any other, leave nothing behind."""
        if self.owns_session:
            self.frame.sparkSession.stop()
        elif self._view is not None:
            with suppress(Exception):  # a stopped session has removed it
                self.frame.sparkSession.catalog.dropTempView(self._view)

    def head(self, n: int) -> Any:
        with translate_errors(self.name):
            return self.frame.limit(n).toArrow().rename_columns(list(self.columns))

    def read_head(self, n: int, target: str, as_text: Sequence[str], as_numbers: Sequence[str] = ()) -> HeadAndNotes:
        head, kept = self.head(n), {target, *as_text, *as_numbers}
        names = [name for name, kind in self.columns.items() if kind == "string" and name not in kept]
        return head, unread_text(head, names, "double", "`")

    def batches(self, columns: Sequence[str], size: int, folds: Folds | None = None) -> Iterator[Any]:
        assignment = None if folds is None else self._assign_folds(folds)
        read = self._columns_to_read(columns, assignment)
        chosen = list(range(len(columns))) + ([len(read)] if folds else [])
        names = [*columns, *(["fold"] if folds else [])]
        with translate_errors(self.name), self._session_settings(**{_BATCH_SETTING: BATCH_ROWS}):
            sent = self._select(read).mapInArrow(partial(executors.send_rows, read, assignment), RESULT_SCHEMA)
            rows = sent.toLocalIterator(prefetchPartitions=True)
        while (row := self._next(rows)) is not None:
            [whole] = pa.ipc.open_stream(row.data)
            self.rows_read += whole.num_rows
            batch = pa.RecordBatch.from_arrays([whole.column(i) for i in chosen], names)
            yield from (batch.slice(start, size) for start in range(0, len(batch), size))

    def _next(self, rows: Iterator[Any]) -> Any:
        with translate_errors(self.name):
            return next(rows, None)

    # Queries

    @property
    def view(self) -> str:  # type: ignore[override]
        if self._view is None:
            self._view = f"candide_{uuid4().hex}"
            with translate_errors(self.name):
                self.frame.toDF(*self.columns).createTempView(self._view)
        return self._view

    def fetch_rows(self, sql: str) -> list[tuple]:
        settings = {_CASE_SETTING: "true", _SUBSTITUTE_SETTING: "false"}
        with translate_errors(self.name), self._session_settings(**settings):
            table = self.frame.sparkSession.sql(sql).toArrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def can_answer(self, target: str, weight: str | None) -> bool:
        """Whether queries count these rows as well as one pass over them, and know their classes and weights."""
        has_types = self._has_type(target, _LEVEL_TYPES) and (weight is None or self._has_type(weight, _NUMBER_TYPES))
        return self._is_stable and has_types

    def can_count(self, part: PlanPart) -> bool:
        """Whether queries read the columns of a part as the array engine does."""
        kinds = _LEVEL_TYPES if part.event.encoding.is_read_as_text else (*_NUMBER_TYPES, *_TIME_TYPES)
        return all(self._has_type(str(name), kinds) for name in part.columns)

    def _has_type(self, name: str, kinds: Sequence[str]) -> bool:
        return self.columns[name].partition("(")[0] in kinds

    # Work on executors

    def gather(self, plan: Plan, keep: Sequence[str], work: Work[T], folds: Folds | None = None) -> T:
        assignment = None if folds is None else self._assign_folds(folds)
        read = self._columns_to_read([*map(str, plan.columns), *keep], assignment)
        reads = executors.BatchLayout(tuple(read), plan, tuple(keep), folds, assignment)
        with translate_errors(self.name), self._session_settings(**{_BATCH_SETTING: batch_size(plan)}):
            results = self._select(read).mapInArrow(partial(executors.work_on_rows, reads, work), RESULT_SCHEMA)
            rows = self._add_partitions(results, work).collect()
        rows.sort(key=lambda row: row.part)
        for row in rows:
            if row.error is not None:
                raise pickle.loads(row.error)
        self.rows_read += sum(row.n for row in rows)
        parts = [pickle.loads(row.data) for row in rows if row.data is not None]
        if not parts:
            raise InputError(f"{self.name} has no rows")
        return work.combine(parts)

    def score_rows(self, plan: Plan, keep: Sequence[str], scoring: MakeScorer) -> Any:
        """The data frame of scored rows, which are scored when it is read."""
        from pyspark.sql.pandas.types import from_arrow_type
        from pyspark.sql.types import StructField, StructType

        read = self._columns_to_read([*map(str, plan.columns), *keep], None)
        fields = self._select([*keep, *read]).schema.fields[: len(keep)]
        scored = scoring([_arrow_type(field) for field in fields])
        types = [field.dataType for field in fields]
        types += [from_arrow_type(field.type) for field in list(scored.schema)[len(keep) :]]
        schema = StructType([StructField(n, kind) for n, kind in zip(scored.schema.names, types, strict=True)])
        reads = executors.BatchLayout(tuple(read), plan, tuple(keep))
        return self._select(read).mapInArrow(partial(executors.score_rows, reads, scored), schema)

    def _add_partitions(self, results: Any, work: Work) -> Any:
        """Results of very many partitions, with consecutive ones added up on executors."""
        if self._partitions <= self.engine.max_partitions:
            return results
        from pyspark.sql.functions import floor

        n = self.engine.add_group_size
        groups = results.repartition(-(-self._partitions // n), floor(results.part / n))
        return groups.mapInArrow(partial(executors.add_results, work, n), RESULT_SCHEMA)

    @cached_property
    def _partitions(self) -> int:
        """The number of partitions, at most, without computing what the data frame has to shuffle."""
        session = self.frame.sparkSession
        if find_shuffle(self._plan) or not hasattr(session, "_jsparkSession"):  # a client alone does not know
            return int(session.conf.get("spark.sql.shuffle.partitions"))
        return self.frame.rdd.getNumPartitions()

    @cached_property
    def _plans(self) -> dict[str, str]:
        """The plans of the data frame by name, such as Physical."""
        output, settings = io.StringIO(), {_MAX_FIELDS_SETTING: 1 << 20}
        with translate_errors(self.name), self._session_settings(**settings), redirect_stdout(output):
            self.frame.explain(extended=True)
        _, *titles_and_plans = _TITLE.split(output.getvalue())
        return dict(zip(titles_and_plans[::2], titles_and_plans[1::2], strict=True))

    @property
    def _plan(self) -> str:
        return self._plans["Physical"]

    @cached_property
    def _is_stable(self) -> bool:
        """Whether rows are only read, and are the same again."""
        if not is_only_read(self._plan) or has_clock(self._plans["Analyzed Logical"]):
            return False
        if not hasattr(self.frame, "_jdf"):  # a client alone cannot ask
            return True
        return bool(self.frame._jdf.queryExecution().optimizedPlan().deterministic())

    @property
    def has_order(self) -> bool:  # type: ignore[override]
        return find_shuffle(self._plan) is None

    def _assign_folds(self, folds: Folds) -> executors.FoldAssignment:
        """How rows are divided into folds: without a key, by a pass over their labels."""
        if folds.key_column is not None:
            return executors.KeyFolds(folds.key_column, folds.n, folds.seed)
        if folds not in self._fold_assignment:
            by = folds.label_column or next(iter(self.columns))
            class_counts = self.gather(Plan((), ()), [by], executors.ClassCounting())
            counts = [class_counts.get(part, {}) for part in range(max(class_counts) + 1)]
            self._fold_assignment[folds] = executors.StratifiedFolds(by, folds.n, folds.seed, counts)
        return self._fold_assignment[folds]

    def _columns_to_read(self, names: Sequence[str], assignment: executors.FoldAssignment | None) -> list[str]:
        """The columns to read, with the one that folds are assigned by; at least one."""
        by = [] if assignment is None else [assignment.column]
        return [name for name in dict.fromkeys([*names, *by]) if name in self.columns] or [next(iter(self.columns))]

    def _select(self, columns: Sequence[str]) -> Any:
        return self.frame.select([self._at[name] for name in columns])

    @contextmanager
    def _session_settings(self, **settings: object) -> Iterator[None]:
        conf = self.frame.sparkSession.conf
        before = {name: conf.get(name) for name in settings}
        try:
            for name, value in settings.items():
                conf.set(name, str(value))
            yield
        finally:
            for name, value in before.items():
                conf.set(name, value)


def _arrow_type(field: Any) -> Any:
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(field.dataType, timezone="UTC")


def _check_types(frame: Any) -> None:
    """Reject a column whose values cannot be sent from the cluster."""
    for field in frame.schema.fields:
        try:
            _arrow_type(field)
        except Exception:
            what = f"its values are of the type {field.dataType.simpleString()}, which cannot be read"
            raise InputTypeError(what, column=field.name, remedy="drop the column, or cast it to text") from None


def _mask_missing(frame: Any, missing: Sequence[str]) -> Any:
    if missing:
        frame = frame.replace(list(missing), None)
    numbers = parse_plain_numbers(missing)
    return frame.replace([float(number) for number in numbers], None) if numbers else frame


class Spark(SqlEngine):
    """A data frame, or ``spark://master::table``."""

    name = "spark"
    max_columns = 100  # Spark compiles no wider query
    max_partitions: int = 100  # whose results are added on the driver: adding more takes longer than counting
    add_group_size: int = 32  # and on an executor, where there are more

    def open(self, data: Any, reading: ReadOptions | None = None) -> SparkSource:
        return SparkSource.open(data, reading or ReadOptions(), self)

    def countable_parts(self, plan: Plan, rows: LabelledSource) -> list[PlanPart]:
        """None where rows are assigned to folds on executors."""
        source = rows.source
        assert isinstance(source, SparkSource)
        if (rows.folds and rows.folds.key_column is None) or not source.can_answer(rows.target, rows.weight):
            return []
        return [part for part in super().countable_parts(plan, rows) if source.can_count(part)]

    def gather(self, rows: LabelledSource, plan: Plan, work: Work[T], *, codes: bool = False) -> T:
        assert isinstance(rows.source, SparkSource)
        return rows.source.gather(plan, rows.extra_columns, work, rows.folds)

    def scored_table(self, source: Source, plan: Plan, keep: Sequence[str], scoring: MakeScorer) -> Any:
        """A data frame, unless its session ends with the source."""
        assert isinstance(source, SparkSource)
        return None if source.owns_session else source.score_rows(plan, keep, scoring)
