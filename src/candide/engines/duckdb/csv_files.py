"""CSV files: detect delimiter, quotes, header and names once, and build the SQL that reads the file."""

import codecs
import csv
import io
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby, islice
from typing import IO, Any

import duckdb
import pyarrow.compute as pc

from candide.data.notes import Note
from candide.data.text_formats import PLAIN_FORMAT, TextFormat
from candide.engines.duckdb.character_encodings import LineNumbers, matching_files, open_bytes
from candide.engines.duckdb.formats import typed_table_sql
from candide.engines.duckdb.number_formats import is_string
from candide.engines.reading import ReadOptions
from candide.engines.sql.dialect import quote_identifier, quote_text, quote_texts, quote_tuple
from candide.errors import InputError, SourceError
from candide.formatting import format_count, format_list

_SNIFF_LINES = 4096  # enough to know how the file is written; types are inferred elsewhere
_MAJORITY = 0.5  # proportion of lines that have the same number of fields
_HEADER_SEARCH_BYTES = 1 << 26  # bytes of a file in which its header is searched for again
_REPEAT_REMEDY = "delete what is not a row"


@dataclass(frozen=True)
class CsvOptions:
    """How a CSV is written, and the names of its columns."""

    files: tuple[str, ...]
    na: tuple[str, ...]
    names: tuple[str, ...]
    delimiter: str = ","
    quote: str = '"'  # encloses fields; empty: no field is enclosed
    escape: str = '"'
    header: bool = True
    skip: int = 0
    line_ending: str = ""  # given where a name holds a line break, which the sniffer would take for it
    partitions: frozenset[str] = frozenset()  # names that come from folders: year=2024/rows.csv
    parts: tuple["CsvOptions", ...] = ()  # groups of files written in the same way; each may have its own columns
    categories: frozenset[str] = frozenset()  # columns declared to be categories
    text_columns: frozenset[str] = frozenset()  # columns declared to be text: whole numbers in them are codes
    has_repeated_header: bool = False  # rows that repeat the header are left out

    def select_sql(
        self,
        types: Mapping[str, str],
        text_formats: Mapping[str, TextFormat] = {},
        original_names: Mapping[str, str] = {},
    ) -> str:
        """What to select from; columns without a type are text.

        ``original_names`` has second names for columns, under which they come once more as they are written.
        """
        na, quoted = quote_tuple(self.na), {name: quote_identifier(name) for name in self.names}
        masked = self.names if original_names and self.na else ()
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
        pairs = {name: f"{quote_text(name)}: {quote_text(types.get(name, 'VARCHAR'))}" for name in self.names}
        names = [name for name in self.names if name not in self.partitions]
        options = [
            "auto_detect = false",
            f"columns = {{{', '.join(pairs[name] for name in names)}}}",
            f"delim = {quote_text(self.delimiter)}",
            f"header = {str(self.header).lower()}",
            f"quote = {quote_text(self.quote)}",
            f"escape = {quote_text(self.escape)}",
            f"skip = {self.skip}",
            *([f"new_line = {quote_text(self.line_ending)}"] if self.line_ending else []),
            *(_na_options(self.na) if with_na else []),
        ]
        if self.partitions:
            hive = ", ".join(pairs[name] for name in self.names if name in self.partitions)
            options += ["hive_partitioning = true", "hive_types_autocast = false", f"hive_types = {{{hive}}}"]
        table = f"read_csv({quote_texts(self.files)}, {', '.join(options)})"
        return f"(SELECT * FROM {table} WHERE {is_not_header(names)})" if self.has_repeated_header else table

    def lines_above_header(self) -> list[bytes]:
        """The lines above the header of the first file, and the one that follows."""
        with io.BufferedReader(open_bytes(self.files[0])) as file:  # type: ignore[type-var]
            return [file.readline() for _ in range(self.skip + 1)]


def _na_options(na: Sequence[str]) -> list[str]:
    return [f"nullstr = {quote_texts(('', *na))}"] if na else []


def is_not_header(names: Iterable[str]) -> str:
    """A condition that is false for rows in which every column holds its own name."""
    repeated = " AND ".join(f"{quote_identifier(name)} = {quote_text(name)}" for name in names)
    return f"({repeated}) IS NOT TRUE"


# Detection


def open_csv(
    con: Any, files: tuple[str, ...], reading: ReadOptions, name: str, new_path: Callable[[], str]
) -> tuple[CsvOptions, list[Note]]:
    """Find how CSV files are written, and notes on their headers; ``new_path`` makes a temporary file."""
    quote = reading.quote
    if len(quote) > 1 or quote == reading.delimiter or quote in ("\n", "\r"):
        remedy = "pass one character other than the delimiter, or an empty text if no field is enclosed"
        raise InputError(f"quote is {quote!r}", value=quote, remedy=remedy)
    options = _detect_files(con, files, reading)
    notes = _renamed_column_notes(options)
    parts = []
    for part in options.parts or (options,):
        if part.skip:
            notes += _preamble_notes(part.lines_above_header()[:-1])
            part = replace(
                part, files=tuple(_unify_line_endings(replace(part, files=(f,)), new_path) for f in part.files)
            )
        part, repeats = _without_repeats(part, "" if options.parts else name)
        parts.append(part)
        notes += repeats
    return replace(options, parts=tuple(parts)) if options.parts else parts[0], notes


def _detect_files(con: Any, files: tuple[str, ...], reading: ReadOptions) -> CsvOptions:
    """How the first of the files is written, and the columns of each."""
    paths = [path for file in files for path in matching_files(file)]
    options = _detect_file(con, paths[0] if paths else files[0], reading)
    if not any(options.names):
        raise SourceError("empty", source=options.files[0])
    if len(paths) < 2:
        return options if files == tuple(paths) else _with_partitions(options)
    known = replace(reading, delimiter=options.delimiter, header=options.header)
    others = (_detect_file(con, path, known) for path in paths[1:] if os.path.getsize(path))
    groups = groupby((options, *others), key=lambda each: replace(each, files=("",)))
    parts = tuple(_with_partitions(replace(key, files=tuple(f.files[0] for f in same))) for key, same in groups)
    if len(parts) == 1:
        return parts[0]
    names: dict[str, str] = {}
    for name in (name for part in parts for name in part.names):
        names.setdefault(name.lower(), name)  # SQL ignores case
    return replace(options, names=tuple(names.values()), parts=parts, files=tuple(paths))


def _with_partitions(options: CsvOptions) -> CsvOptions:
    """With the columns that the folders of the files name: year=2024/rows.csv."""
    folders = re.findall(r"([^/\\]+)=[^/\\]*[/\\]", options.files[0])
    names = tuple(name for name in dict.fromkeys(folders) if name.lower() not in map(str.lower, options.names))
    return replace(options, names=options.names + names, partitions=frozenset(names))


def _detect_file(con: Any, path: str, reading: ReadOptions) -> CsvOptions:
    quote, na = reading.quote, reading.na_values
    arguments = ["all_varchar = true", f"sample_size = {_SNIFF_LINES}", f"quote = {quote_text(quote)}"]
    arguments += _na_options(na)
    if reading.delimiter is not None:
        arguments.append(f"delim = {quote_text(reading.delimiter)}")
    if reading.header is not None:
        arguments.append(f"header = {str(reading.header).lower()}")
    query = "SELECT Delimiter, Escape, SkipRows, HasHeader, Columns FROM sniff_csv"
    try:
        [row] = con.sql(f"{query}({quote_text(path)}, {', '.join(arguments)})").fetchall()
    except duckdb.InvalidInputException as error:
        if "sniffing" not in str(error):
            raise
        return _detect_by_lines(path, reading)
    delimiter, escape, skip, header, columns = row
    names = tuple(column["name"] for column in columns)
    if len(names) == 1 and reading.delimiter is None:  # the sniffer gives up where a line has too many or few fields
        by_lines = _detect_by_lines(path, reading)
        if len(by_lines.names) > 1:
            return by_lines
    escape = escape if escape == "\\" and quote else quote  # a doubled quote, unless backslashes are seen
    options = CsvOptions((path,), na, names, delimiter, quote, escape, bool(header), int(skip))
    if skip or (not header and reading.header is None):  # a line longer than the others may have cost the header
        by_lines = _detect_by_lines(path, replace(reading, delimiter=delimiter))
        if len(by_lines.names) != len(names) or by_lines.header != options.header:
            return by_lines
    return options


def _detect_by_lines(path: str, reading: ReadOptions) -> CsvOptions:
    """The options that most lines of a CSV agree with; reading it reports those that do not."""
    quote, declared = reading.quote, reading.header
    with open_bytes(path) as file, _open_text(file) as text:
        lines = list(islice(text, _SNIFF_LINES))
    delimiter, width, most = reading.delimiter or ",", 1, 0.0
    for candidate in (reading.delimiter,) if reading.delimiter else ",;\t|":
        widths = Counter(len(row) for _, row in _records(lines, candidate, quote) if row)
        n, times = widths.most_common(1)[0] if widths else (1, 0)
        if n > 1 and times > most and times >= _MAJORITY * widths.total():
            delimiter, width, most = candidate, n, times
    records = list(_records(lines, delimiter, quote))
    line_above, above = 0, list[str]()  # the last line that is not empty and has another number of fields
    for at, row in records:
        if width == len(row):
            break
        line_above, above = (at, row) if row else (line_above, above)
    else:
        at, row, above = 0, records[0][1] if records else [], []
    header = not any(map(_is_number, row)) if declared is None else declared
    if _is_header(above, header, declared, [fields for _, fields in records if len(fields) == width]):
        what = f"{format_count(len(above), 'name')} where the rows have {format_count(len(row), 'field')}"
        remedy = "fix the line, or delete it if it is a title"
        raise SourceError(what, source=path, line=line_above + 1, value=len(above), remedy=remedy)
    names = tuple(distinct_names(row if header else [""] * len(row)))
    line_ending = ""
    if any("\n" in name for name in row):  # a name of two lines, as sheets write it
        last = next((start for start, _ in records if start > at), len(lines)) - 1
        line_ending = r"\r\n" if lines[last].endswith("\r\n") else r"\n"
    return CsvOptions((path,), reading.na_values, names, delimiter, quote, quote, header, at, line_ending)


def _is_header(line: Sequence[str], header: bool, declared: bool | None, rows: list[list[str]]) -> bool:
    """Whether a line above the rows is their header, with too many or too few names, and not a title.

    It is one where the first row was taken for names, though a value of it occurs again in its column.
    """
    if declared is not None or not line:
        return bool(declared and line)
    if len(line) < 2 or any(map(_is_number, line)):
        return False
    if not header:
        return True
    first, *others = rows
    return any(row != first and any(a == b != "" for a, b in zip(first, row, strict=True)) for row in others)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names that are distinct to SQL, which ignores case; columns without a name are numbered."""
    n_seen = Counter[str]()
    out = []
    for i, name in enumerate(names):
        name = name or f"column{i}"
        n = n_seen[name.lower()]
        n_seen[name.lower()] += 1
        out.append(f"{name}_{n}" if n else name)
    return out


def _open_text(file: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")


def _reader(lines: Iterable[str], delimiter: str, quote: str, escape: str, *, strict: bool = True) -> Any:
    """Python's CSV reader; a strict one raises csv.Error where a quote is out of place."""
    quoting: Any = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    quoting |= {} if escape == quote else {"escapechar": escape, "doublequote": False}
    return csv.reader(lines, delimiter=delimiter, strict=strict, **quoting)


def _records(lines: Iterable[str], delimiter: str, quote: str) -> Iterator[tuple[int, list[str]]]:
    """Every record with the number of lines before it."""
    reader, before = _reader(lines, delimiter, quote, quote, strict=False), 0
    try:
        for row in reader:
            yield before, row
            before = reader.line_num
    except csv.Error:  # NUL, or a field without an end: reported when all rows are read
        return


def _is_number(text: str) -> bool:
    return text.strip().lstrip("+-")[:1].isdigit()


# Names of columns, lines above the header, and rows that repeat it


def _renamed_column_notes(options: CsvOptions) -> list[Note]:
    """A note on each column of the first file whose name was changed because it occurs twice."""
    if not options.header:
        return []
    first = options.files[0]
    with open_bytes(first) as file, _open_text(file) as text:
        lines = islice(text, options.skip, options.skip + _SNIFF_LINES)
        try:
            reader = _reader(lines, options.delimiter, options.quote, options.escape)
            written: list[str] = next((row for row in reader if row), [])
        except csv.Error as error:
            what, line = f"the names of the columns cannot be read: {error}", options.skip + 1
            raise SourceError(what, source=first, line=line, remedy="fix the line") from None
    return duplicate_name_notes(written, options.names)


def duplicate_name_notes(written_names: Sequence[str], names: Sequence[str]) -> list[Note]:
    """A note on every column that is renamed because a column before it has the same name."""
    seen, notes = set[str](), list[Note]()
    for i, (old, new) in enumerate(zip(map(str.strip, written_names), names, strict=False), start=1):
        if old and old.lower() in seen and old != new:
            text = f"two columns are named {old!r}: column {i} goes by {new!r}"
            notes.append(Note("column-renamed", text, new, "rename one of them"))
        seen.add(old.lower())
    return notes


def _preamble_notes(lines: list[bytes]) -> list[Note]:
    texts = [line.decode("utf-8-sig", "replace").strip() for line in lines]
    if not (texts := [text for text in texts if text.strip(",;\t ")]):
        return []
    text = f"{format_count(len(texts), 'line')} above the header {'is' if len(texts) == 1 else 'are'} left out: "
    return [Note("lines-above", text + format_list([text[:40] for text in texts], 3))]


def _unify_line_endings(options: CsvOptions, new_path: Callable[[], str]) -> str:
    """A file whose lines above the header end as the header does: a copy where they do not."""
    *head, header = options.lines_above_header()
    end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
    even = [line.rstrip(b"\r\n") + end for line in head]
    if even == head:
        return options.files[0]
    where = new_path()
    with io.BufferedReader(open_bytes(options.files[0])) as file, open(where, "wb") as out:  # type: ignore[type-var]
        for _ in head:
            file.readline()
        out.writelines(even)
        shutil.copyfileobj(file, out, 1 << 20)
    return where


def named_rows(head: Any) -> list[Note]:
    """A note on rows of an Arrow table of text in which every column holds its own name."""
    names = head.column_names
    if len(names) < 2 or not all(is_string(head, name) for name in names):
        return []
    is_name = [pc.fill_null(pc.equal(head.column(name), name), False) for name in names]
    rows = pc.indices_nonzero(reduce(pc.and_, is_name)).to_pylist()
    if not rows:
        return []
    text = f"row {rows[0]:,} repeats the names of the columns and is left out"
    if len(rows) > 1:
        n = format_count(len(rows))
        text = f"{n} repeat the names of the columns and are left out, the first is row {rows[0]:,}"
    return [Note("repeated-header", text, None, _REPEAT_REMEDY, tuple(names))]


def _without_repeats(options: CsvOptions, name: str) -> tuple[CsvOptions, list[Note]]:
    """Options that leave out rows which repeat the header, as in files that were joined; and notes on their lines."""
    if not options.header or len(options.names) < 2:
        return options, []
    notes = []
    for path in options.files:
        lines = LineNumbers(_repeats_of_header(replace(options, files=(path,))))
        if lines.n:
            verbs = ("repeats", "is") if lines.n == 1 else ("repeat", "are")
            where = name if name and len(options.files) == 1 else path
            text = f"{where}: {lines} {verbs[0]} the header and {verbs[1]} left out"
            names = tuple(name for name in options.names if name not in options.partitions)
            notes.append(Note("repeated-header", text, None, _REPEAT_REMEDY, names))
    return replace(options, has_repeated_header=bool(notes)), notes


def _repeats_of_header(options: CsvOptions) -> Iterator[int]:
    """The numbers of the lines that repeat the header, among the first bytes of a file."""
    header = options.lines_above_header()[-1].removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
    if not header or (options.quote and header.count(options.quote.encode()) % 2):  # names of two lines
        return
    before, n_bytes, rest = 0, 0, b""  # lines before the piece
    with open_bytes(options.files[0]) as file:
        while n_bytes < _HEADER_SEARCH_BYTES and (piece := file.read(1 << 20) or (rest and b"\n")):
            n_bytes += len(piece)
            lines, _, rest = (rest + piece).rpartition(b"\n")
            lines, at = b"\n" + lines + b"\n", 0
            while (at := lines.find(b"\n" + header, at)) >= 0:
                line = before + lines.count(b"\n", 0, at) + 1
                if lines.startswith((b"\n", b"\r\n"), at + 1 + len(header)) and line > options.skip + 1:
                    yield line
                at += 1
            before += lines.count(b"\n") - 1
