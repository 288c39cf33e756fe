"""CSV: the form of a file, found out once, so that no later query has to guess it again.

>>> import tempfile, pathlib, duckdb
>>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
>>> _ = path.write_text("age;job\\n30;cook\\n41;smith\\n")
>>> form = detect_csv(duckdb.connect(), (str(path),), CsvHints())
>>> form.names, form.delimiter, form.header
(('age', 'job'), ';', True)
"""

import csv
import io
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from types import MappingProxyType
from typing import IO, Any

import duckdb

from candide import formatting
from candide.data.notes import Note
from candide.data.text_formats import PLAIN_FORMAT, TextFormat
from candide.engines.duckdb.duckdb_errors import INVALID_MARK
from candide.engines.duckdb.encodings import matching_files, open_bytes
from candide.engines.sql.text import quote_identifier, quote_text, quote_texts, quote_tuple
from candide.errors import InputError, SourceError

_SNIFF_LINES = 4096  # enough to know the form by: types are looked at elsewhere
_MAJORITY_SHARE = 0.5  # of the lines have as many fields, where one is odd
_SPAN = r"\s*[-+]?\d+ days?(,? [-+]?\d+:\d{2}(:\d{2}(\.\d+)?)?)?\s*|\s*[-+]?\d+:\d{2}(:\d{2}(\.\d+)?)?\s*"
_EMPTY_MAPPING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class CsvHints:
    """What a person says of a CSV."""

    delimiter: str | None = None
    header: bool | None = None
    na: tuple[str, ...] = ()
    quote: str = '"'  # encloses fields; empty: no field is enclosed

    def __post_init__(self) -> None:
        if len(self.quote) > 1 or self.quote == self.delimiter or self.quote in ("\n", "\r"):
            remedy = "pass one character other than the delimiter, or an empty text if no field is enclosed"
            raise InputError(f"quote is {self.quote!r}", value=self.quote, remedy=remedy)

    def sql_options(self) -> list[str]:
        """What is the same for guessing and for reading."""
        return [f"nullstr = {quote_texts(('', *self.na))}"] if self.na else []


def castable_sql(name: str, text_format: TextFormat) -> str:
    """SQL for a column in the spelling that a cast reads; what is not spelled in this way is left so that none does.

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
    line_ending: str = ""  # what ends its lines, where the sniffer would take what stands within a name for it
    partitions: frozenset[str] = frozenset()  # of the names, those that come from the folders: year=2024/rows.csv
    parts: tuple[
        "CsvOptions", ...
    ] = ()  # of several files, those that are written alike; each may have its own columns
    categories: frozenset[str] = frozenset()  # columns that are said to be such
    text_columns: frozenset[str] = frozenset()  # columns that are said to be text: whole numbers among them are codes
    repeats: bool = False  # whether its header stands among the rows again; such rows are left out

    def select_sql(
        self,
        types: Mapping[str, str],
        text_formats: Mapping[str, TextFormat] = _EMPTY_MAPPING,
        original_names: Mapping[str, str] = _EMPTY_MAPPING,
    ) -> str:
        """What to select from; columns without a type are text.

        ``written`` has other names for some columns: under these they come once more, word for word.
        """
        absent = {name: f"CASE WHEN {quote_identifier(name)} NOT IN {quote_tuple(self.hints.na)} THEN {quote_identifier(name)} END"
                  for name in (self.names if original_names and self.hints.na else ())}  # fmt: skip
        odd = {name for name, how in text_formats.items() if how != PLAIN_FORMAT}
        odd |= {name for name, kind in types.items() if kind == "INTERVAL"}
        repeats = any(part.repeats for part in self.parts or (self,))
        as_text = {*self.names} if repeats else odd | absent.keys() | original_names.keys()
        table = self._table_sql({name: kind for name, kind in types.items() if name not in as_text}, not original_names)
        return typed_table_sql(
            table, {n: kind for n, kind in types.items() if n in as_text}, text_formats, original_names, absent
        )

    def _table_sql(self, types: Mapping[str, str], with_na: bool = True) -> str:
        """A table function call, or a union of some."""
        if self.parts:
            each = (f"SELECT * FROM {part._table_sql(types, with_na)}" for part in self.parts)
            return f"({' UNION ALL BY NAME '.join(each)})"
        form = [
            "auto_detect = false",
            f"columns = {_type_pairs_sql({n: types.get(n, 'VARCHAR') for n in self.names if n not in self.partitions})}",
            f"delim = {quote_text(self.delimiter)}",
            f"header = {str(self.header).lower()}",
            f"quote = {quote_text(self.quote)}",
            f"escape = {quote_text(self.escape)}",
            f"skip = {self.skip}",
            *([f"new_line = {quote_text(self.line_ending)}"] if self.line_ending else []),
        ]
        if self.partitions:
            kinds = _type_pairs_sql({n: types.get(n, "VARCHAR") for n in self.names if n in self.partitions})
            form += ["hive_partitioning = true", "hive_types_autocast = false", f"hive_types = {kinds}"]
        hints = self.hints if with_na else replace(self.hints, na=())
        table = f"read_csv({quote_texts(self.files)}, {', '.join(form + hints.sql_options())})"
        if not self.repeats:
            return table
        names = [name for name in self.names if name not in self.partitions]
        return f"(SELECT * FROM {table} WHERE {is_not_header(names)})"


def is_not_header(names: Iterable[str]) -> str:
    """A condition that is true of rows other than those in which every column holds its own name."""
    own = " AND ".join(f"{quote_identifier(name)} = {quote_text(name)}" for name in names)
    return f"({own}) IS NOT TRUE"


def typed_table_sql(
    table: str,
    types: Mapping[str, str],
    text_formats: Mapping[str, TextFormat],
    original_names: Mapping[str, str] = _EMPTY_MAPPING,
    missing_sql: Mapping[str, str] = _EMPTY_MAPPING,
) -> str:
    """A table some of whose columns of text are read in other types, after what is absent; the rest is as in a form."""
    plainly = {name: castable_sql(name, how) for name, how in text_formats.items() if how != PLAIN_FORMAT}
    copies = [f"{quote_identifier(name)} AS {quote_identifier(other)}" for name, other in original_names.items()]
    spans = [name for name, kind in types.items() if kind == "INTERVAL"]
    plainly |= {name: _durations(plainly.get(name, quote_identifier(name))) for name in spans}
    casts = {name: f"CAST({quote_identifier(name)} AS {kind})" for name, kind in types.items()}
    for one, more in ((missing_sql, copies), (plainly, []), (casts, [])):  # apart, so that an error names the column
        table = replace_columns_sql(table, one, more)
    return table


def _durations(text: str) -> str:
    """SQL for text that is a duration or a time of day, and for other text so that no cast reads it.

    DuckDB takes a number for so many seconds.
    """
    return f"CASE WHEN regexp_full_match({text}, {quote_text(_SPAN)}) THEN {text} ELSE {text} || {quote_text(INVALID_MARK)} END"


def replace_columns_sql(table: str, columns: Mapping[str, str], extra_columns: Sequence[str] = ()) -> str:
    """A table with some columns put in another way, and more of them."""
    if not columns and not extra_columns:
        return table
    by = ", ".join(f"{sql} AS {quote_identifier(name)}" for name, sql in columns.items())
    return f"(SELECT {', '.join([f'* REPLACE ({by})' if by else '*', *extra_columns])} FROM {table})"


def _type_pairs_sql(types: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{quote_text(name)}: {quote_text(kind)}" for name, kind in types.items()) + "}"


def detect_csv(con: Any, files: tuple[str, ...], hints: CsvHints) -> CsvOptions:
    """Find out the form of a CSV, or of several: how the first is written, and the columns of each."""
    each = [path for file in files for path in matching_files(file)]
    form = _detect_file(con, each[0] if each else files[0], hints)
    if not any(form.names):
        raise SourceError("empty", source=form.files[0])
    if len(each) < 2:
        return form if files == tuple(each) else _with_partitions(form)
    known = replace(hints, delimiter=form.delimiter, header=form.header)
    others = (_detect_file(con, path, known) for path in each[1:] if os.path.getsize(path))
    alike = groupby((form, *others), key=lambda one: replace(one, files=("",), hints=hints))
    parts = tuple(_with_partitions(replace(one, files=tuple(f.files[0] for f in same))) for one, same in alike)
    if len(parts) == 1:
        return parts[0]
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    met: dict[str, str] = {}  # names that differ in case only are one to SQL
    names = tuple(met.setdefault(name.lower(), name) for name in names if name.lower() not in met)
    return replace(form, names=names, parts=parts, files=tuple(each))


def _with_partitions(form: CsvOptions) -> CsvOptions:
    """The form with the columns that the folders of its files name, where there are several files."""
    named = re.findall(r"([^/\\]+)=[^/\\]*[/\\]", form.files[0])
    more = tuple(name for name in dict.fromkeys(named) if name.lower() not in map(str.lower, form.names))
    return replace(form, names=form.names + more, partitions=frozenset(more))


def lines_above_header(form: CsvOptions) -> list[bytes]:
    """The lines above the header, and the one that follows."""
    with io.BufferedReader(open_bytes(form.files[0])) as file:  # type: ignore[type-var]
        return [file.readline() for _ in range(form.skip + 1)]


def unify_line_endings(form: CsvOptions, new_path: Callable[[], str]) -> CsvOptions:
    """A form of which all lines end as its header does; those above it often come from another hand.

    Where they end otherwise, the file is written again at a new path. The lines keep their numbers.
    """
    if form.parts:
        return replace(form, parts=tuple(unify_line_endings(part, new_path) for part in form.parts))
    if not form.skip:
        return form
    return replace(
        form, files=tuple(_rewrite_line_endings(replace(form, files=(path,)), new_path) for path in form.files)
    )


def _rewrite_line_endings(form: CsvOptions, new_path: Callable[[], str]) -> str:
    *head, header = lines_above_header(form)
    end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
    even = [line.rstrip(b"\r\n") + end for line in head]
    if even == head:
        return form.files[0]
    where = new_path()
    with io.BufferedReader(open_bytes(form.files[0])) as file, open(where, "wb") as out:  # type: ignore[type-var]
        for _ in head:
            file.readline()
        out.writelines(even)
        shutil.copyfileobj(file, out, 1 << 20)
    return where


def _detect_file(con: Any, path: str, hints: CsvHints) -> CsvOptions:
    options = [
        "all_varchar = true",
        f"sample_size = {_SNIFF_LINES}",
        f"quote = {quote_text(hints.quote)}",
        *hints.sql_options(),
    ]
    if hints.delimiter is not None:
        options.append(f"delim = {quote_text(hints.delimiter)}")
    if hints.header is not None:
        options.append(f"header = {str(hints.header).lower()}")
    query = "SELECT Delimiter, Escape, SkipRows, HasHeader, Columns FROM sniff_csv"
    try:
        [row] = con.sql(f"{query}({quote_text(path)}, {', '.join(options)})").fetchall()
    except duckdb.InvalidInputException as error:
        if "sniffing" not in str(error):
            raise
        return _detect_by_lines(path, hints)
    delimiter, escape, skip, header, columns = row
    names = tuple(column["name"] for column in columns)
    if len(names) == 1 and hints.delimiter is None:  # as if nothing parted fields, where one line has too many or few
        ours = _detect_by_lines(path, hints)
        if len(ours.names) > 1:
            return ours
    escape = escape if escape == "\\" and hints.quote else hints.quote  # a doubled quote, unless backslashes are seen
    form = CsvOptions((path,), hints, names, delimiter, hints.quote, escape, bool(header), int(skip))
    if skip or (not header and hints.header is None):  # a line that is longer than the others may have cost the header
        ours = _detect_by_lines(path, replace(hints, delimiter=delimiter))
        return form if len(ours.names) == len(names) and ours.header == form.header else ours
    return form


def renamed_column_notes(form: CsvOptions) -> list[Note]:
    """A remark on each column of the first file that has another name than is written there, as it stands twice."""
    if not form.header:
        return []
    first = form.files[0]
    with open_bytes(first) as file, _open_text(file) as text:
        lines = islice(text, form.skip, form.skip + _SNIFF_LINES)
        try:
            written: list[str] = next(
                (row for row in _reader(lines, form.delimiter, form.quote, form.escape) if row), []
            )
        except csv.Error as error:
            what, line = f"the names of the columns cannot be read: {error}", form.skip + 1
            raise SourceError(what, source=first, line=line, remedy="mend the line") from None
    return duplicate_name_notes(written, form.names)


def duplicate_name_notes(written_names: Sequence[str], names: Sequence[str]) -> list[Note]:
    """A remark on every column that goes by another name than is written, as one before it has that name.

    >>> [str(remark) for remark in duplicate_name_notes(["size", "kind", "size"], ["size", "kind", "size_1"])]
    ["two columns are named 'size': column 3 goes by 'size_1'; rename one of them"]
    """
    met, told = set[str](), list[Note]()
    for i, (old, new) in enumerate(zip(written_names, names, strict=False), start=1):
        if old.strip() and old.strip().lower() in met and old.strip() != new:
            text = f"two columns are named {old.strip()!r}: column {i} goes by {new!r}"
            told.append(Note("column-renamed", text, new, "rename one of them"))
        met.add(old.strip().lower())
    return told


def _detect_by_lines(path: str, hints: CsvHints) -> CsvOptions:
    """The form that most lines of a CSV have; reading it says which have not."""
    with open_bytes(path) as file, _open_text(file) as text:
        lines = list(islice(text, _SNIFF_LINES))
    delimiter, width, most = hints.delimiter or ",", 1, 0.0
    for one in (hints.delimiter,) if hints.delimiter else ",;\t|":
        widths = Counter(len(row) for _, row in _records(lines, one, hints.quote) if row)
        n, times = widths.most_common(1)[0] if widths else (1, 0)
        if n > 1 and times > most and times >= _MAJORITY_SHARE * widths.total():
            delimiter, width, most = one, n, times
    before: tuple[int, list[str]] = 0, []
    for at, row in _records(lines, delimiter, hints.quote):
        if width == len(row):
            break
        before = (at, row) if row else before
    else:
        at, row = 0, before[1]
    header = not any(map(_is_number, row)) if hints.header is None else hints.header
    found = lambda: [row for _, row in _records(lines, delimiter, hints.quote) if len(row) == width]  # noqa: E731
    if _is_header(before[1], header, hints.header, found):
        what = f"{formatting.format_count(len(before[1]), 'name')} where the rows have {formatting.format_count(len(row), 'field')}"
        remedy = "mend the line, or delete it if it is a title"
        raise SourceError(what, source=path, line=before[0] + 1, value=len(before[1]), remedy=remedy)
    names = tuple(distinct_names(row) if header else distinct_names([""] * len(row)))
    ends = ""
    if any("\n" in name for name in row):  # a name of two lines, as sheets write it
        records = _records(lines, delimiter, hints.quote)
        last = next((start for start, _ in records if start > at), len(lines)) - 1
        ends = r"\r\n" if lines[last].endswith("\r\n") else r"\n"
    return CsvOptions(
        (path,), hints, names, delimiter, hints.quote, hints.quote, header=header, skip=at, line_ending=ends
    )


def _is_header(line: Sequence[str], header: bool, asked: bool | None, rows: Callable[[], list[list[str]]]) -> bool:
    """Whether a line above the rows is their header, with names too many or too few, and not a title.

    It is one where the first row was taken for names, though a value of it is met again in its column.
    """
    if asked is not None or not line:
        return bool(asked and line)  # the names stand in the first line, as was said
    if len(line) < 2 or any(map(_is_number, line)):
        return False
    if not header:
        return True
    first, *others = rows()
    return any(row != first and any(a == b != "" for a, b in zip(first, row, strict=True)) for row in others)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names that SQL tells apart; what has none is numbered.

    >>> distinct_names(["size", "", "Size"])
    ['size', 'column1', 'Size_1']
    """
    met: dict[str, int] = {}
    out = []
    for i, name in enumerate(names):
        name = name or f"column{i}"
        n = met[name.lower()] = met.get(name.lower(), -1) + 1
        out.append(f"{name}_{n}" if n else name)
    return out


def _open_text(file: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")


def _reader(lines: Iterable[str], delimiter: str, quote: str, escape: str, *, strict: bool = True) -> Any:
    """Python's reader of a CSV; a strict one raises csv.Error where a quote is out of place."""
    how: Any = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    how |= {} if escape == quote else {"escapechar": escape, "doublequote": False}
    return csv.reader(lines, delimiter=delimiter, strict=strict, **how)


def _records(lines: Iterable[str], delimiter: str, quote: str = '"') -> Iterator[tuple[int, list[str]]]:
    """Every record with the number of lines before it."""
    reader, before = _reader(lines, delimiter, quote, quote, strict=False), 0
    try:
        for row in reader:
            yield before, row
            before = reader.line_num
    except csv.Error:  # NUL, or a field without an end: the rest is left to be told when it is read
        return


def _is_number(text: str) -> bool:
    return text.strip().lstrip("+-")[:1].isdigit()
