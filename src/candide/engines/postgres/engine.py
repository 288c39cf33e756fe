"""The PostgreSQL engine: the server counts moments, sums and levels; what it cannot say is counted from a stream.

Moments are one query grouped by class, levels another by grouping sets. Text, columns modelled together and pairs, of
which there are too many for grouping sets, are read in one pass, and so are the rows of folds.
"""

from typing import Any

from candide.engines.base import CountResult, Engine, LabelledSource, PreparedSource
from candide.engines.postgres.source import PostgresSource
from candide.engines.reading import ReadOptions
from candide.engines.sql import count as sql
from candide.engines.sql.statistics import SQL_TALLY_KINDS
from candide.model.plan import Plan, PlanPart


class Postgres(Engine):
    """Says moments, sums and levels itself."""

    name = "postgres"
    tally_kinds = SQL_TALLY_KINDS
    max_levels = 31  # GROUPING takes no more columns

    def open(self, data: Any, reading: ReadOptions | None = None) -> PostgresSource:
        return PostgresSource(data, reading or ReadOptions(), self)

    def countable_parts(self, plan: Plan, rows: LabelledSource) -> list[PlanPart]:
        """None where rows are dealt out here, or are in a file; numbers that text spells are read here."""
        source = rows.source
        assert isinstance(source, PostgresSource)
        if source.is_local or (rows.folds and rows.folds.key_column is None):
            return []
        text = {name for name, kind in source.columns.items() if kind == "VARCHAR"}
        parts = super().countable_parts(plan, rows)
        return [
            part for part in parts if part.event.encoding.is_read_as_text or text.isdisjoint(map(str, part.columns))
        ]

    def count(self, rows: LabelledSource, prepared: PreparedSource) -> CountResult:
        return sql.count_by_query(rows, prepared)
