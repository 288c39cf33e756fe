"""The Spark engine: the array engine counts on every executor the rows that lie there, and the counts are added."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from candide.engines.base import Engine, Rows, Scored, Source, Work
from candide.engines.reading import Reading
from candide.engines.spark.source import SparkSource
from candide.model.plan import Plan

T = TypeVar("T")


class Spark(Engine):
    """A data frame, or ``spark://master::table``."""

    name = "spark"
    counts: frozenset[str] = frozenset()
    most_parts: int = 100  # results of partitions that are added on the driver: more would take longer than to count
    added_at_once: int = 32  # and on an executor, where they are more

    def open(self, data: Any, reading: Reading | None = None) -> SparkSource:
        return SparkSource.open(data, reading or Reading(), self)

    def gather(self, rows: Rows, plan: Plan, work: Work[T]) -> T:
        assert isinstance(rows.source, SparkSource)
        return rows.source.gather(plan, rows.keep, work, rows.folds)

    def table(self, source: Source, plan: Plan, keep: Sequence[str], scoring: Callable[[Sequence[Any]], Scored]) -> Any:
        """A data frame, unless its session ends with the source."""
        assert isinstance(source, SparkSource)
        return None if source.owned else source.scored(plan, keep, scoring)
