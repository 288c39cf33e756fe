"""The Spark engine: its own SQL counts moments, sums and levels of rows that are only read; the array engine counts on
every executor whatever else there is, and the counts are added.

Rows that a plan would have to make twice, by a join say, are counted in one pass by the array engine, and so are those
that may be others the second time.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from candide.engines.base import BatchScorer, CountResult, Engine, LabelledSource, PreparedSource, Source, Work
from candide.engines.reading import ReadOptions
from candide.engines.spark.source import SparkSource
from candide.engines.sql import count as sql
from candide.engines.sql.statistics import SQL_TALLY_KINDS
from candide.model.plan import Plan, PlanPart

T = TypeVar("T")


class Spark(Engine):
    """A data frame, or ``spark://master::table``."""

    name = "spark"
    tally_kinds = SQL_TALLY_KINDS
    max_columns = 100  # Spark compiles no wider query
    max_partitions: int = (
        100  # results of partitions that are added on the driver: more would take longer than to count
    )
    add_group_size: int = 32  # and on an executor, where they are more

    def open(self, data: Any, reading: ReadOptions | None = None) -> SparkSource:
        return SparkSource.open(data, reading or ReadOptions(), self)

    def countable_parts(self, plan: Plan, rows: LabelledSource) -> list[PlanPart]:
        """None where rows are dealt into folds on executors."""
        source = rows.source
        assert isinstance(source, SparkSource)
        if (rows.folds and rows.folds.key_column is None) or not source.can_answer(rows.target, rows.weight):
            return []
        return [part for part in super().countable_parts(plan, rows) if source.can_count(part)]

    def count(self, rows: LabelledSource, prepared: PreparedSource) -> CountResult:
        return sql.count_by_query(rows, prepared)

    def gather(self, rows: LabelledSource, plan: Plan, work: Work[T], *, codes: bool = False) -> T:
        assert isinstance(rows.source, SparkSource)
        return rows.source.gather(plan, rows.extra_columns, work, rows.folds)

    def scored_table(
        self, source: Source, plan: Plan, keep: Sequence[str], scoring: Callable[[Sequence[Any]], BatchScorer]
    ) -> Any:
        """A data frame, unless its session ends with the source."""
        assert isinstance(source, SparkSource)
        return None if source.owns_session else source.score_rows(plan, keep, scoring)
