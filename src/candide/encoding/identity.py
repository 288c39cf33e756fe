"""Identity: numbers as they are.

>>> Identity().apply(["1.5", None]).tolist(), Identity(least=0.0).requirement
([1.5, nan], 'values >= 0')
"""

from dataclasses import dataclass
from typing import Any

from candide.data.labels import as_column
from candide.data.table import to_numbers
from candide.encoding.base import Encoding


class NumericEncoding(Encoding):
    """An encoding whose block holds numbers, where they lie."""

    def _read(self, column: Any) -> Any:
        return to_numbers(as_column(column))


@dataclass(frozen=True)
class Identity(NumericEncoding):
    """Numbers, dates as days; with ``least`` a smaller value is an error: of amounts and counts, one below 0."""

    least: float | None = None

    def sql(self, x: Any, dialect: Any) -> Any:
        return x
