"""How a CSV file is written, and the SQL that reads it with its types, number formats and date formats.

>>> options = CsvOptions(("a.csv",), CsvHints(), ("day",))
>>> options.select_sql({"day": "DATE"}).partition(", delim")[0]
"read_csv(['a.csv'], auto_detect = false, columns = {'day': 'DATE'}"
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from candide.data.text_formats import PLAIN_FORMAT, TextFormat
from candide.engines.duckdb.duckdb_errors import INVALID_MARK
from candide.engines.sql.text import quote_identifier, quote_text, quote_texts, quote_tuple
from candide.errors import InputError

_SNIFF_LINES = 4096  # enough to know the form by: types are looked at elsewhere
_MAJORITY_SHARE = 0.5  # of the lines have as many fields, where one is odd
_SPAN = r"\s*[-+]?\d+ days?(,? [-+]?\d+:\d{2}(:\d{2}(\.\d+)?)?)?\s*|\s*[-+]?\d+:\d{2}(:\d{2}(\.\d+)?)?\s*"
_EMPTY_MAPPING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class CsvHints:
    """How a CSV file is written, as far as the user declares it."""

    delimiter: str | None = None
    header: bool | None = None
    na: tuple[str, ...] = ()
    quote: str = '"'  # encloses fields; empty: no field is enclosed

    def __post_init__(self) -> None:
        if len(self.quote) > 1 or self.quote == self.delimiter or self.quote in ("\n", "\r"):
            remedy = "pass one character other than the delimiter, or an empty text if no field is enclosed"
            raise InputError(f"quote is {self.quote!r}", value=self.quote, remedy=remedy)

    def sql_options(self) -> list[str]:
        """Options of DuckDB that hold for sniffing and for reading."""
        return [f"nullstr = {quote_texts(('', *self.na))}"] if self.na else []


def castable_sql(name: str, text_format: TextFormat) -> str:
    """SQL for a column in the format that a cast reads; text in another format is marked so that no cast reads it.

    >>> print(castable_sql("x", TextFormat(date="%d.%m.%Y")))
    COALESCE(try_strptime(trim("x"), '%d.%m.%Y'), CAST("x" AS TIMESTAMP))
    """
    value = quote_identifier(name)
    if text_format.date:
        out = f"COALESCE(try_strptime(trim({value}), {quote_text(text_format.date)}), CAST({value} AS TIMESTAMP))"
    elif not text_format.is_plain:
        bare = value
        for old, new in text_format.replacements.items():
            bare = f"replace({bare}, {quote_text(old)}, {quote_text(new)})"
        bare = f"{bare} || 'e-2'" if text_format.unit == "%" else bare
        fits = f"regexp_full_match({value}, {quote_text(text_format.pattern)})"
        out = f"CASE WHEN {fits} THEN {bare} ELSE {value} || {quote_text(INVALID_MARK)} END"
    else:
        out = value
    if not text_format.missing:
        return out
    return f"CASE WHEN lower(trim({value})) IN {quote_tuple(text_format.missing)} THEN NULL ELSE {out} END"


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV is written, and the names of its columns."""

    files: tuple[str, ...]
    hints: CsvHints
    names: tuple[str, ...]
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    skip: int = 0
    line_ending: str = ""  # given where a name holds a line break, which the sniffer would take for it
    partitions: frozenset[str] = frozenset()  # names that come from folders: year=2024/rows.csv
    parts: tuple["CsvOptions", ...] = ()  # groups of files that are written alike; each may have its own columns
    categories: frozenset[str] = frozenset()  # columns declared to be categories
    text_columns: frozenset[str] = frozenset()  # columns declared to be text: whole numbers in them are codes
    has_repeated_header: bool = False  # rows that repeat the header are left out

    def select_sql(
        self,
        types: Mapping[str, str],
        text_formats: Mapping[str, TextFormat] = _EMPTY_MAPPING,
        original_names: Mapping[str, str] = _EMPTY_MAPPING,
    ) -> str:
        """What to select from; columns without a type are text.

        ``original_names`` has second names for columns, under which they come once more as they are written.
        """
        na, quoted = quote_tuple(self.hints.na), {name: quote_identifier(name) for name in self.names}
        masked = self.names if original_names and self.hints.na else ()
        absent = {name: f"CASE WHEN {quoted[name]} NOT IN {na} THEN {quoted[name]} END" for name in masked}
        odd = {name for name, text_format in text_formats.items() if text_format != PLAIN_FORMAT}
        odd |= {name for name, kind in types.items() if kind == "INTERVAL"}
        has_repeats = any(part.has_repeated_header for part in self.parts or (self,))
        as_text = {*self.names} if has_repeats else odd | absent.keys() | original_names.keys()
        table = self._table_sql({name: kind for name, kind in types.items() if name not in as_text}, not original_names)
        cast = {name: kind for name, kind in types.items() if name in as_text}
        return typed_table_sql(table, cast, text_formats, original_names, absent)

    def _table_sql(self, types: Mapping[str, str], with_na: bool = True) -> str:
        """A call of a table function, or a union of several."""
        if self.parts:
            each = (f"SELECT * FROM {part._table_sql(types, with_na)}" for part in self.parts)
            return f"({' UNION ALL BY NAME '.join(each)})"
        kinds = {name: types.get(name, "VARCHAR") for name in self.names}
        options = [
            "auto_detect = false",
            f"columns = {_type_pairs_sql({n: kind for n, kind in kinds.items() if n not in self.partitions})}",
            f"delim = {quote_text(self.delimiter)}",
            f"header = {str(self.header).lower()}",
            f"quote = {quote_text(self.quote)}",
            f"escape = {quote_text(self.escape)}",
            f"skip = {self.skip}",
            *([f"new_line = {quote_text(self.line_ending)}"] if self.line_ending else []),
        ]
        if self.partitions:
            hive = _type_pairs_sql({n: kind for n, kind in kinds.items() if n in self.partitions})
            options += ["hive_partitioning = true", "hive_types_autocast = false", f"hive_types = {hive}"]
        hints = self.hints if with_na else replace(self.hints, na=())
        table = f"read_csv({quote_texts(self.files)}, {', '.join(options + hints.sql_options())})"
        if not self.has_repeated_header:
            return table
        names = [name for name in self.names if name not in self.partitions]
        return f"(SELECT * FROM {table} WHERE {is_not_header(names)})"


def is_not_header(names: Iterable[str]) -> str:
    """A condition that is false for rows in which every column holds its own name."""
    own = " AND ".join(f"{quote_identifier(name)} = {quote_text(name)}" for name in names)
    return f"({own}) IS NOT TRUE"


def typed_table_sql(
    table: str,
    types: Mapping[str, str],
    text_formats: Mapping[str, TextFormat],
    original_names: Mapping[str, str] = _EMPTY_MAPPING,
    missing_sql: Mapping[str, str] = _EMPTY_MAPPING,
) -> str:
    """A table with columns of text read in other types; ``missing_sql`` replaces columns before that."""
    castable = {name: castable_sql(name, fmt) for name, fmt in text_formats.items() if fmt != PLAIN_FORMAT}
    copies = [f"{quote_identifier(name)} AS {quote_identifier(other)}" for name, other in original_names.items()]
    spans = [name for name, kind in types.items() if kind == "INTERVAL"]
    castable |= {name: _duration_sql(castable.get(name, quote_identifier(name))) for name in spans}
    casts = {name: f"CAST({quote_identifier(name)} AS {kind})" for name, kind in types.items()}
    table = replace_columns_sql(table, missing_sql, copies)  # one by one, so that an error names the column
    return replace_columns_sql(replace_columns_sql(table, castable), casts)


def _duration_sql(text: str) -> str:
    """SQL for a duration or a time of day; other text is marked so that no cast reads it: a number would be seconds."""
    fits = f"regexp_full_match({text}, {quote_text(_SPAN)})"
    return f"CASE WHEN {fits} THEN {text} ELSE {text} || {quote_text(INVALID_MARK)} END"


def replace_columns_sql(table: str, columns: Mapping[str, str], extra_columns: Sequence[str] = ()) -> str:
    """A table with expressions in the place of columns, and with extra columns."""
    if not columns and not extra_columns:
        return table
    by = ", ".join(f"{sql} AS {quote_identifier(name)}" for name, sql in columns.items())
    return f"(SELECT {', '.join([f'* REPLACE ({by})' if by else '*', *extra_columns])} FROM {table})"


def _type_pairs_sql(types: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote_text(name)}: {quote_text(kind)}" for name, kind in types.items()) + "}"
