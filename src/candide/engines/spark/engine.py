"""The Spark engine: its own SQL counts moments, sums and levels of rows that are only read; the array engine counts on
every executor whatever else there is, and the counts are added.

Rows that a plan would have to make twice, by a join say, are counted in one pass by the array engine, and so are those
that may be others the second time.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from candide.engines.base import Counted, Engine, Prepared, Rows, Scored, Source, Work
from candide.engines.reading import Reading
from candide.engines.spark.source import SparkSource
from candide.engines.sql import count as sql
from candide.engines.sql.statistics import KINDS
from candide.model.plan import Part, Plan

T = TypeVar("T")


class Spark(Engine):
    """A data frame, or ``spark://master::table``."""

    name = "spark"
    counts = KINDS
    most_columns = 100  # Spark compiles no wider query
    most_parts: int = 100  # results of partitions that are added on the driver: more would take longer than to count
    added_at_once: int = 32  # and on an executor, where they are more

    def open(self, data: Any, reading: Reading | None = None) -> SparkSource:
        return SparkSource.open(data, reading or Reading(), self)

    def own(self, plan: Plan, rows: Rows) -> list[Part]:
        """None where rows are dealt into folds on executors."""
        source = rows.source
        assert isinstance(source, SparkSource)
        if (rows.folds and rows.folds.key is None) or not source.answers(rows.target, rows.weight):
            return []
        return [part for part in super().own(plan, rows) if source.says(part)]

    def count(self, rows: Rows, prepared: Prepared) -> Counted:
        return sql.count(rows, prepared)

    def gather(self, rows: Rows, plan: Plan, work: Work[T], *, codes: bool = False) -> T:
        assert isinstance(rows.source, SparkSource)
        return rows.source.gather(plan, rows.keep, work, rows.folds)

    def table(self, source: Source, plan: Plan, keep: Sequence[str], scoring: Callable[[Sequence[Any]], Scored]) -> Any:
        """A data frame, unless its session ends with the source."""
        assert isinstance(source, SparkSource)
        return None if source.owned else source.scored(plan, keep, scoring)
