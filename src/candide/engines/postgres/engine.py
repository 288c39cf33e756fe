"""The PostgreSQL engine: the server counts moments, sums and levels; what it cannot say is counted from a stream.

Moments are one query grouped by class, levels another by grouping sets. Text, columns modelled together and pairs, of
which there are too many for grouping sets, are read in one pass, and so are the rows of folds.
"""

from typing import Any

from candide.engines.base import Counted, Engine, Prepared, Rows
from candide.engines.postgres.source import PostgresSource
from candide.engines.reading import Reading
from candide.engines.sql import count as sql
from candide.engines.sql.statistics import KINDS
from candide.model.plan import Part, Plan


class Postgres(Engine):
    """Says moments, sums and levels itself."""

    name = "postgres"
    counts = KINDS
    most_levels = 31  # GROUPING takes no more columns

    def open(self, data: Any, reading: Reading | None = None) -> PostgresSource:
        return PostgresSource(data, reading or Reading(), self)

    def own(self, plan: Plan, rows: Rows) -> list[Part]:
        """None where rows are dealt out here, or are in a file; numbers that text spells are read here."""
        source = rows.source
        assert isinstance(source, PostgresSource)
        if source.is_local or (rows.folds and rows.folds.key is None):
            return []
        text = {name for name, kind in source.columns.items() if kind == "VARCHAR"}
        parts = super().own(plan, rows)
        return [part for part in parts if part.event.encoding.as_written or text.isdisjoint(map(str, part.columns))]

    def count(self, rows: Rows, prepared: Prepared) -> Counted:
        return sql.count(rows, prepared)
