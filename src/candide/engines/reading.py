"""Reading: how a source is read, as far as the rows do not say it themselves.

One record. Every function that opens a source takes it, and the options of the command line are its fields.

>>> ReadOptions(na="?").na_values, ReadOptions(na=("?", "n/a")).na_values
(('?',), ('?', 'n/a'))
"""

from dataclasses import dataclass, replace
from typing import Any

from candide.model.settings import setting


@dataclass(frozen=True)
class ReadOptions:
    """How a source is read."""

    na: str | tuple[str, ...] = setting(
        (), "Text, or a number, that means a missing value (repeatable).", metavar="TEXT", repeated=True
    )
    delimiter: str | None = setting(None, "What separates the fields of a CSV; found out if not given.", metavar="CHAR")
    header: bool | None = setting(None, "Whether a CSV names its columns in its first line.", parse=bool)
    quote: str = setting('"', 'What encloses the fields of a CSV; "" if nothing does.', metavar="CHAR")
    encoding: str | None = setting(
        None, "Of text that is not UTF-8: cp1252, utf-16, shift_jis or any other that Python knows.", metavar="NAME"
    )
    errors: str = setting(
        "strict",
        "What is done with bytes that are not of the encoding: strict, replace or ignore.",
        choices=("strict", "replace", "ignore"),
    )
    table: str | None = setting(
        None, "Which table of a database, or sheet of a workbook; FILE::NAME says the same.", metavar="NAME"
    )
    decimal: str | None = setting(
        None, "What stands before decimals in a CSV, where its columns do not tell (1.234).", choices=(".", ",")
    )
    day_first: bool | None = setting(
        None, "Whether 03/04/2024 is in April, where the dates of a CSV do not tell.", parse=bool
    )
    memory_limit: str | None = setting(None, "Most memory the reader may use, such as 2GB.", metavar="SIZE")
    threads: int | None = setting(None, "How many threads the reader may use.", parse=int, least=1)

    @property
    def na_values(self) -> tuple[str, ...]:
        """The texts that mean a missing value."""
        return tuple(map(str, self.na if isinstance(self.na, list | tuple) else (self.na,)))


def make_read_options(model: Any, reading: ReadOptions | None) -> ReadOptions:
    """How a source is read for a model: as given, with the model's own missing values where none are given."""
    reading = reading or ReadOptions()
    return reading if reading.na_values or not model.na else replace(reading, na=model.na)
