"""Identity: numbers as they are.

>>> Identity().apply(["1.5", None]).tolist(), Identity(least=0.0).needs
([1.5, nan], 'values >= 0')
"""

from dataclasses import dataclass
from typing import Any

from candide.encode.base import Encoding
from candide.rows.labels import as_column
from candide.rows.table import numbers_of


class Numbers(Encoding):
    """An encoding whose block holds numbers, where they lie."""

    def _read(self, column: Any) -> Any:
        return numbers_of(as_column(column))


@dataclass(frozen=True)
class Identity(Numbers):
    """Numbers, dates as days; with ``least`` a smaller value is an error: of amounts and counts, one below 0."""

    least: float | None = None

    def sql(self, x: Any, dialect: Any) -> Any:
        return x
