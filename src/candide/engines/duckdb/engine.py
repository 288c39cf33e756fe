"""The DuckDB engine: files, frames, queries and tables, counted by one aggregate query and scored in a stream.

>>> engine = DuckDB()
>>> with engine.open({"age": [30, 41], "job": ["cook", None]}) as source:
...     source.columns
{'age': 'BIGINT', 'job': 'VARCHAR'}
"""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from candide.data.labels import Labels
from candide.engines.base import CountResult, Engine, Folds, LabelledSource, PreparedSource, Source
from candide.engines.batches import Scan, batch_size, iterate_columns
from candide.engines.duckdb.source import DuckDBSource
from candide.engines.reading import ReadOptions
from candide.engines.sql import count as sql
from candide.engines.sql.dialect import Expr
from candide.engines.sql.source import SourceColumn, fold_column, select_sql
from candide.engines.sql.statistics import SQL_TALLY_KINDS
from candide.model.plan import Plan, PlanPart

_MAX_LEVELS_PER_COLUMN = (
    1 << 8
)  # levels of a column that a query spells: to read one costs as much as to look up a thousand rows
_MAX_LEVELS = 1 << 11  # and of all columns


class DuckDB(Engine):
    """Says moments, sums and levels itself."""

    name = "duckdb"
    tally_kinds = SQL_TALLY_KINDS

    def open(self, data: Any, reading: ReadOptions | None = None) -> DuckDBSource:
        return DuckDBSource.open(data, reading or ReadOptions(), self)

    def count(self, rows: LabelledSource, prepared: PreparedSource) -> CountResult:
        return sql.count_by_query(rows, prepared)

    def score(
        self,
        source: Source,
        plan: Plan,
        keep: Sequence[str] = (),
        *,
        folds: Folds | None = None,
        codes: bool = True,
        span: tuple[int, int] | None = None,
    ) -> Scan:
        assert isinstance(source, DuckDBSource)
        chosen, limit = [], _MAX_LEVELS if codes else 0
        for i, (part, j) in enumerate(iterate_columns(plan)):
            value = _column_value(source, part, j)
            by_level = part.block_kind == "codes" and part.encodings[j].is_read_as_text
            known = part.levels[j] if by_level else Labels(())
            kind = source.columns.get(str(part.columns[j]), "")
            if not codes and kind == "VARCHAR":
                value = exp.column(str(part.columns[j]), quoted=True)
            if kind.startswith(("VARCHAR", "ENUM")) and _can_inline_levels(known, limit):
                limit -= len(known)
                chosen.append(exp.alias_(source.dialect.level_code(value, known), f"code{i}"))
            else:
                chosen.append(exp.alias_(value, f"f{i}"))
        chosen += [exp.alias_(exp.column(name, quoted=True), f"k{i}") for i, name in enumerate(keep)]
        query = select_sql(source, [*chosen, *fold_column(folds)], folds)
        some = "" if span is None else f" LIMIT {span[1]} OFFSET {span[0]}"
        return source.scan(query + some, batch_size(plan))


def _column_value(source: DuckDBSource, part: PlanPart, j: int) -> Expr:
    """A column as the model wants it; null where the source lacks it."""
    name = str(part.columns[j])
    kind = source.columns.get(name)
    if kind is None:
        return exp.cast(exp.Null(), "TEXT" if part.encodings[j].is_read_as_text else "DOUBLE")
    is_level = part.block_kind != "documents" and part.encodings[j].is_read_as_text
    column = SourceColumn(name, kind, source.dialect, is_level=is_level)
    if part.block_kind == "documents":
        return column.raw if kind.upper() in ("VARCHAR", "BLOB") else exp.cast(column.raw, "TEXT")
    return column.aggregate_value if is_level else column.value


def _can_inline_levels(levels: Labels, limit: int) -> bool:
    """Whether all levels are text, and few and plain enough for a query."""
    if not 0 < len(levels) <= min(limit, _MAX_LEVELS_PER_COLUMN):
        return False
    if not all(isinstance(v, str) and "\0" not in v for v in levels.values):
        return False
    try:
        "".join(levels.values).encode()
    except UnicodeEncodeError:  # half of a character
        return False
    return True
