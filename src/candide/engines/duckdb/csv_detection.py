"""How a CSV file is written, found once, so that no later query has to guess it again.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
>>> _ = path.write_text("age;job\\n30;cook\\n41;smith\\n")
>>> options = detect_csv(duckdb.connect(), (str(path),), CsvHints())
>>> options.names, options.delimiter, options.header
(('age', 'job'), ';', True)
"""

import codecs
import csv
import io
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby, islice
from typing import IO, Any

import duckdb
import pyarrow.compute as pc

from candide import formatting
from candide.data.notes import Note
from candide.engines.duckdb import type_inference
from candide.engines.duckdb.csv_options import CsvHints, CsvOptions
from candide.engines.duckdb.encodings import LineNumbers, matching_files, open_bytes
from candide.engines.sql.text import quote_text
from candide.errors import SourceError

_SNIFF_LINES = 4096  # enough to know how the file is written; types are inferred elsewhere
_MAJORITY = 0.5  # proportion of lines that have the same number of fields
_HEADER_SEARCH_BYTES = 1 << 26  # bytes of a file in which its header is searched for again
_REPEAT_REMEDY = "delete what is not a row"


def detect_csv(con: Any, files: tuple[str, ...], hints: CsvHints) -> CsvOptions:
    """Find how the first of the files is written, and the columns of each."""
    paths = [path for file in files for path in matching_files(file)]
    options = _detect_file(con, paths[0] if paths else files[0], hints)
    if not any(options.names):
        raise SourceError("empty", source=options.files[0])
    if len(paths) < 2:
        return options if files == tuple(paths) else _with_partitions(options)
    known = replace(hints, delimiter=options.delimiter, header=options.header)
    others = (_detect_file(con, path, known) for path in paths[1:] if os.path.getsize(path))
    groups = groupby((options, *others), key=lambda each: replace(each, files=("",), hints=hints))
    parts = tuple(_with_partitions(replace(key, files=tuple(f.files[0] for f in same))) for key, same in groups)
    if len(parts) == 1:
        return parts[0]
    names = tuple(dict.fromkeys(name for part in parts for name in part.names))
    distinct = {name.lower(): name for name in reversed(names)}  # to SQL, names that differ in case only are equal
    names = tuple(name for name in names if distinct[name.lower()] == name)
    return replace(options, names=names, parts=parts, files=tuple(paths))


def _with_partitions(options: CsvOptions) -> CsvOptions:
    """With the columns that the folders of the files name: year=2024/rows.csv."""
    named = re.findall(r"([^/\\]+)=[^/\\]*[/\\]", options.files[0])
    more = tuple(name for name in dict.fromkeys(named) if name.lower() not in map(str.lower, options.names))
    return replace(options, names=options.names + more, partitions=frozenset(more))


def lines_above_header(options: CsvOptions) -> list[bytes]:
    """The lines above the header, and the one that follows."""
    with io.BufferedReader(open_bytes(options.files[0])) as file:  # type: ignore[type-var]
        return [file.readline() for _ in range(options.skip + 1)]


def unify_line_endings(options: CsvOptions, new_path: Callable[[], str]) -> CsvOptions:
    """Have the lines above the header end as the header does, by a copy of the file where they do not."""
    if options.parts:
        return replace(options, parts=tuple(unify_line_endings(part, new_path) for part in options.parts))
    if not options.skip:
        return options
    single = (replace(options, files=(path,)) for path in options.files)
    return replace(options, files=tuple(_rewrite_line_endings(each, new_path) for each in single))


def _rewrite_line_endings(options: CsvOptions, new_path: Callable[[], str]) -> str:
    *head, header = lines_above_header(options)
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


def _detect_file(con: Any, path: str, hints: CsvHints) -> CsvOptions:
    arguments = ["all_varchar = true", f"sample_size = {_SNIFF_LINES}", f"quote = {quote_text(hints.quote)}"]
    arguments += hints.sql_options()
    if hints.delimiter is not None:
        arguments.append(f"delim = {quote_text(hints.delimiter)}")
    if hints.header is not None:
        arguments.append(f"header = {str(hints.header).lower()}")
    query = "SELECT Delimiter, Escape, SkipRows, HasHeader, Columns FROM sniff_csv"
    try:
        [row] = con.sql(f"{query}({quote_text(path)}, {', '.join(arguments)})").fetchall()
    except duckdb.InvalidInputException as error:
        if "sniffing" not in str(error):
            raise
        return _detect_by_lines(path, hints)
    delimiter, escape, skip, header, columns = row
    names = tuple(column["name"] for column in columns)
    if (
        len(names) == 1 and hints.delimiter is None
    ):  # the sniffer gives up where one line has too many or too few fields
        ours = _detect_by_lines(path, hints)
        if len(ours.names) > 1:
            return ours
    escape = escape if escape == "\\" and hints.quote else hints.quote  # a doubled quote, unless backslashes are seen
    options = CsvOptions((path,), hints, names, delimiter, hints.quote, escape, bool(header), int(skip))
    if skip or (not header and hints.header is None):  # a line that is longer than the others may have cost the header
        ours = _detect_by_lines(path, replace(hints, delimiter=delimiter))
        return options if len(ours.names) == len(names) and ours.header == options.header else ours
    return options


def renamed_column_notes(options: CsvOptions) -> list[Note]:
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
    """A note on every column that is renamed because a column before it has the same name.

    >>> [str(note) for note in duplicate_name_notes(["size", "kind", "size"], ["size", "kind", "size_1"])]
    ["two columns are named 'size': column 3 goes by 'size_1'; rename one of them"]
    """
    seen, notes = set[str](), list[Note]()
    for i, (old, new) in enumerate(zip(written_names, names, strict=False), start=1):
        if old.strip() and old.strip().lower() in seen and old.strip() != new:
            text = f"two columns are named {old.strip()!r}: column {i} goes by {new!r}"
            notes.append(Note("column-renamed", text, new, "rename one of them"))
        seen.add(old.strip().lower())
    return notes


def _detect_by_lines(path: str, hints: CsvHints) -> CsvOptions:
    """The options that most lines of a CSV agree with; reading it reports those that do not."""
    with open_bytes(path) as file, _open_text(file) as text:
        lines = list(islice(text, _SNIFF_LINES))
    delimiter, width, most = hints.delimiter or ",", 1, 0.0
    for candidate in (hints.delimiter,) if hints.delimiter else ",;\t|":
        widths = Counter(len(row) for _, row in _records(lines, candidate, hints.quote) if row)
        n, times = widths.most_common(1)[0] if widths else (1, 0)
        if n > 1 and times > most and times >= _MAJORITY * widths.total():
            delimiter, width, most = candidate, n, times
    before: tuple[int, list[str]] = 0, []
    for at, row in _records(lines, delimiter, hints.quote):
        if width == len(row):
            break
        before = (at, row) if row else before
    else:
        at, row = 0, before[1]
    header = not any(map(_is_number, row)) if hints.header is None else hints.header
    rows = lambda: [row for _, row in _records(lines, delimiter, hints.quote) if len(row) == width]  # noqa: E731
    if _is_header(before[1], header, hints.header, rows):
        n_fields = formatting.format_count(len(row), "field")
        what = f"{formatting.format_count(len(before[1]), 'name')} where the rows have {n_fields}"
        remedy = "fix the line, or delete it if it is a title"
        raise SourceError(what, source=path, line=before[0] + 1, value=len(before[1]), remedy=remedy)
    names = tuple(distinct_names(row) if header else distinct_names([""] * len(row)))
    ends = ""
    if any("\n" in name for name in row):  # a name of two lines, as sheets write it
        records = _records(lines, delimiter, hints.quote)
        last = next((start for start, _ in records if start > at), len(lines)) - 1
        ends = r"\r\n" if lines[last].endswith("\r\n") else r"\n"
    quote = hints.quote
    return CsvOptions((path,), hints, names, delimiter, quote, quote, header=header, skip=at, line_ending=ends)


def _is_header(line: Sequence[str], header: bool, declared: bool | None, rows: Callable[[], list[list[str]]]) -> bool:
    """Whether a line above the rows is their header, with too many or too few names, and not a title.

    It is one where the first row was taken for names, though a value of it occurs again in its column.
    """
    if declared is not None or not line:
        return bool(declared and line)
    if len(line) < 2 or any(map(_is_number, line)):
        return False
    if not header:
        return True
    first, *others = rows()
    return any(row != first and any(a == b != "" for a, b in zip(first, row, strict=True)) for row in others)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Names that are distinct to SQL, which ignores case; columns without a name are numbered.

    >>> distinct_names(["size", "", "Size"])
    ['size', 'column1', 'Size_1']
    """
    n_seen: dict[str, int] = {}
    out = []
    for i, name in enumerate(names):
        name = name or f"column{i}"
        n = n_seen[name.lower()] = n_seen.get(name.lower(), -1) + 1
        out.append(f"{name}_{n}" if n else name)
    return out


def _open_text(file: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")


def _reader(lines: Iterable[str], delimiter: str, quote: str, escape: str, *, strict: bool = True) -> Any:
    """Python's CSV reader; a strict one raises csv.Error where a quote is out of place."""
    quoting: Any = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    quoting |= {} if escape == quote else {"escapechar": escape, "doublequote": False}
    return csv.reader(lines, delimiter=delimiter, strict=strict, **quoting)


def _records(lines: Iterable[str], delimiter: str, quote: str = '"') -> Iterator[tuple[int, list[str]]]:
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


def named_rows(head: Any) -> list[Note]:
    """A note on rows of an Arrow table of text in which every column holds its own name."""
    names = head.column_names
    if len(names) < 2 or not all(type_inference.is_string(head, name) for name in names):
        return []
    is_own = [pc.fill_null(pc.equal(head.column(name), name), False) for name in names]
    rows = pc.indices_nonzero(reduce(pc.and_, is_own)).to_pylist()
    if not rows:
        return []
    text = f"row {rows[0]:,} repeats the names of the columns and is left out"
    if len(rows) > 1:
        n = formatting.format_count(len(rows))
        text = f"{n} repeat the names of the columns and are left out, the first is row {rows[0]:,}"
    return [Note("repeated-header", text, None, _REPEAT_REMEDY, tuple(names))]


def without_repeats(options: CsvOptions, name: str) -> tuple[CsvOptions, list[Note]]:
    """Options that leave out rows which repeat the header, as in files that were joined; and notes on their lines."""
    if options.parts:
        each = [without_repeats(part, "") for part in options.parts]
        return replace(options, parts=tuple(part for part, _ in each)), [note for _, notes in each for note in notes]
    if not options.header or len(options.names) < 2:
        return options, []
    notes = []
    for path in options.files:
        lines = LineNumbers()
        for line in _repeats_of_header(replace(options, files=(path,))):
            lines.add(line)
        if lines.n:
            verbs = ("repeats", "is") if lines.n == 1 else ("repeat", "are")
            where = name if name and len(options.files) == 1 else path
            text = f"{where}: {lines} {verbs[0]} the header and {verbs[1]} left out"
            names = tuple(name for name in options.names if name not in options.partitions)
            notes.append(Note("repeated-header", text, None, _REPEAT_REMEDY, names))
    return replace(options, has_repeated_header=bool(notes)), notes


def _repeats_of_header(options: CsvOptions) -> Iterator[int]:
    """The numbers of the lines that repeat the header, among the first bytes of a file."""
    header = lines_above_header(options)[-1].removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
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
