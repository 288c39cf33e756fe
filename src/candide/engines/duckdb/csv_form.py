"""CSV: the form of a file, found out once, so that no later query has to guess it again.

>>> import tempfile, pathlib, duckdb
>>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
>>> _ = path.write_text("age;job\\n30;cook\\n41;smith\\n")
>>> form = form_of(duckdb.connect(), (str(path),), CsvHints())
>>> form.names, form.delimiter, form.header
(('age', 'job'), ';', True)
"""

import csv
import glob
import io
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import IO, Any

import duckdb

from candide.engines.duckdb.duckdb_errors import NOT_SO
from candide.engines.duckdb.encodings import opened
from candide.engines.sql.text import identifier, literal, literals, tuple_of
from candide.errors import SourceError
from candide.rows.remarks import Remark
from candide.rows.spelling import PLAIN, Spelling

_LINES = 4096  # enough to know the form by: types are looked at elsewhere
_MOST = 0.5  # of the lines have as many fields, where one is odd
_NONE = ("(empty)", "\x00", "")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class CsvHints:
    """What a person says of a CSV."""

    delimiter: str | None = None
    header: bool | None = None
    na: tuple[str, ...] = ()

    def options(self) -> list[str]:
        """What is the same for guessing and for reading."""
        return [f"nullstr = {literals(('', *self.na))}"] if self.na else []


def mended(name: str, how: Spelling) -> str:
    """SQL for a column in the spelling that a cast reads; what is not spelled in this way is left so that none does.

    >>> print(mended("x", Spelling(date="%d.%m.%Y")))
    COALESCE(try_strptime(trim("x"), '%d.%m.%Y'), CAST("x" AS TIMESTAMP))
    """
    value = identifier(name)
    if how.date:
        out = f"COALESCE(try_strptime(trim({value}), {literal(how.date)}), CAST({value} AS TIMESTAMP))"
    elif not how.is_plain:
        bare = value
        for old, new in how.put.items():
            bare = f"replace({bare}, {literal(old)}, {literal(new)})"
        bare = f"{bare} || 'e-2'" if how.unit == "%" else bare
        fits = f"regexp_full_match({value}, {literal(how.pattern)})"
        out = f"CASE WHEN {fits} THEN {bare} ELSE {value} || {literal(NOT_SO)} END"
    else:
        out = value
    if not how.missing:
        return out
    return f"CASE WHEN lower(trim({value})) IN {tuple_of(how.missing)} THEN NULL ELSE {out} END"


@dataclass(frozen=True)
class CsvForm:
    """How a CSV is written, and the names of its columns."""

    files: tuple[str, ...]  # paths, or a glob
    hints: CsvHints
    names: tuple[str, ...]
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    header: bool = True
    skip: int = 0
    ends: str = ""  # what ends its lines, where the sniffer would take what stands within a name for it
    partitions: frozenset[str] = frozenset()  # of the names, those that come from the folders: year=2024/rows.csv
    categories: frozenset[str] = frozenset()  # columns that are said to be such
    texts: frozenset[str] = frozenset()  # columns that are said to be text: whole numbers among them are codes

    @property
    def is_divided(self) -> bool:
        """Whether it is several files, which may order their columns differently."""
        return len(self.files) > 1 or glob.has_magic(self.files[0])

    def reader(
        self,
        types: Mapping[str, str],
        spelled: Mapping[str, Spelling] = _NOTHING,
        written: Mapping[str, str] = _NOTHING,
    ) -> str:
        """What to select from; columns without a type are text.

        ``written`` has other names for some columns: under these they come once more, word for word.
        """
        absent = {name: f"CASE WHEN {identifier(name)} NOT IN {tuple_of(self.hints.na)} THEN {identifier(name)} END"
                  for name in (self.names if written and self.hints.na else ())}  # fmt: skip
        odd = {name for name, how in spelled.items() if how != PLAIN}
        as_text = odd | absent.keys() | written.keys()
        table = self._table({name: kind for name, kind in types.items() if name not in as_text}, not written)
        return read_text(table, {n: kind for n, kind in types.items() if n in as_text}, spelled, written, absent)

    def _table(self, types: Mapping[str, str], with_na: bool = True) -> str:
        """A table function call."""
        pairs = _pairs({n: types.get(n, "VARCHAR") for n in self.names if n not in self.partitions})
        form = [f"delim = {literal(self.delimiter)}", f"header = {str(self.header).lower()}"]
        if self.is_divided:
            form += [f"types = {pairs}", "union_by_name = true", "hive_types_autocast = false"]
            if self.partitions:
                form.append(f"hive_types = {_pairs({n: types.get(n, 'VARCHAR') for n in self.partitions})}")
        else:
            form += [
                "auto_detect = false",
                f"columns = {pairs}",
                f"quote = {literal(self.quote)}",
                f"escape = {literal(self.escape)}",
                f"skip = {self.skip}",
                *([f"new_line = {literal(self.ends)}"] if self.ends else []),
            ]
        hints = self.hints if with_na else replace(self.hints, na=())
        return f"read_csv({literals(self.files)}, {', '.join(form + hints.options())})"


def read_text(
    table: str,
    types: Mapping[str, str],
    spelled: Mapping[str, Spelling],
    written: Mapping[str, str] = _NOTHING,
    absent: Mapping[str, str] = _NOTHING,
) -> str:
    """A table some of whose columns of text are read in other types, after what is absent; the rest is as in a form."""
    plainly = {name: mended(name, how) for name, how in spelled.items() if how != PLAIN}
    copies = [f"{identifier(name)} AS {identifier(other)}" for name, other in written.items()]
    casts = {name: f"CAST({identifier(name)} AS {kind})" for name, kind in types.items()}
    for one, more in ((absent, copies), (plainly, []), (casts, [])):  # apart, so that an error names the column
        table = replaced(table, one, more)
    return table


def replaced(table: str, columns: Mapping[str, str], more: Sequence[str] = ()) -> str:
    """A table with some columns put in another way, and more of them."""
    if not columns and not more:
        return table
    by = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in columns.items())
    return f"(SELECT {', '.join([f'* REPLACE ({by})' if by else '*', *more])} FROM {table})"


def _pairs(types: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items()) + "}"


def form_of(con: Any, files: tuple[str, ...], hints: CsvHints) -> CsvForm:
    """Find out the form of a CSV, or of several: of the first from its beginning, and the columns of all."""
    form = _form_of_first(con, files, hints)
    if not any(form.names):
        raise SourceError("empty", where=_first(files))
    if not form.is_divided:
        return form
    names = tuple(row[0] for row in con.sql(f"DESCRIBE SELECT * FROM {form.reader({})}").fetchall())
    named = re.findall(r"([^/\\]+)=[^/\\]*[/\\]", _first(files))
    return replace(form, names=names, partitions=frozenset(names) & frozenset(named) - frozenset(form.names))


def above(form: CsvForm) -> list[bytes]:
    """The lines above the header, and the one that follows."""
    with io.BufferedReader(opened(form.files[0])) as file:  # type: ignore[type-var]
        return [file.readline() for _ in range(form.skip + 1)]


def evened(form: CsvForm, path: Callable[[], str]) -> CsvForm:
    """A form of which all lines end as its header does; those above it often come from another hand.

    Where they end otherwise, the file is written again at the path. The lines keep their numbers.
    """
    *head, header = above(form)
    end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
    even = [line.rstrip(b"\r\n") + end for line in head]
    if even == head:
        return form
    where = path()
    with io.BufferedReader(opened(form.files[0])) as file, open(where, "wb") as out:  # type: ignore[type-var]
        for _ in head:
            file.readline()
        out.writelines(even)
        shutil.copyfileobj(file, out, 1 << 20)
    return replace(form, files=(where,))


def _first(files: tuple[str, ...]) -> str:
    if len(files) == 1 and glob.has_magic(files[0]):
        return next(iter(sorted(glob.glob(files[0], recursive=True))), files[0])
    return files[0]


def _form_of_first(con: Any, files: tuple[str, ...], hints: CsvHints) -> CsvForm:
    options = ["all_varchar = true", f"sample_size = {_LINES}", *hints.options()]
    if hints.delimiter is not None:
        options.append(f"delim = {literal(hints.delimiter)}")
    if hints.header is not None:
        options.append(f"header = {str(hints.header).lower()}")
    first = _first(files)
    query = "SELECT Delimiter, Quote, Escape, SkipRows, HasHeader, Columns FROM sniff_csv"
    try:
        [row] = con.sql(f"{query}({literal(first)}, {', '.join(options)})").fetchall()
    except duckdb.InvalidInputException as error:
        if "sniffing" not in str(error):
            raise
        return _by_lines(first, files, hints)
    delimiter, quote, escape, skip, header, columns = row
    names = tuple(column["name"] for column in columns)
    if len(names) == 1 and hints.delimiter is None:  # as if nothing parted fields, where one line has too many or few
        ours = _by_lines(first, files, hints)
        if len(ours.names) > 1:
            return ours
    quote = '"' if quote in _NONE else quote  # none in the beginning does not mean none at all
    escape = quote if escape in _NONE else escape
    form = CsvForm(files, hints, names, delimiter, quote, escape, bool(header), int(skip))
    if (skip or not header) and hints.header is None:  # a line that is longer than the others may have cost the header
        ours = _by_lines(first, files, replace(hints, delimiter=delimiter))
        return form if len(ours.names) == len(names) and ours.header == form.header else ours
    return form


def renamed(form: CsvForm) -> list[Remark]:
    """A remark on each column of the first file that has another name than is written there, as it stands twice."""
    if not form.header:
        return []
    with opened(_first(form.files)) as file, _text(file) as text:
        lines = islice(text, form.skip, form.skip + _LINES)
        written = next((row for _, row in _records(lines, form.delimiter) if row), [])
    return named_twice(written, form.names)


def named_twice(written: Sequence[str], names: Sequence[str]) -> list[Remark]:
    """A remark on every column that goes by another name than is written, as one before it has that name.

    >>> [str(remark) for remark in named_twice(["size", "kind", "size"], ["size", "kind", "size_1"])]
    ["two columns are named 'size': column 3 goes by 'size_1'; rename one of them"]
    """
    met, told = set[str](), list[Remark]()
    for i, (old, new) in enumerate(zip(written, names, strict=False), start=1):
        if old.strip() and old.strip().lower() in met and old.strip() != new:
            text = f"two columns are named {old.strip()!r}: column {i} goes by {new!r}"
            told.append(Remark("column-renamed", text, new, "rename one of them"))
        met.add(old.strip().lower())
    return told


def _by_lines(first: str, files: tuple[str, ...], hints: CsvHints) -> CsvForm:
    """The form that most lines of a CSV have; reading it says which have not."""
    with opened(first) as file, _text(file) as text:
        lines = list(islice(text, _LINES))
    delimiter, width, most = hints.delimiter or ",", 1, 0.0
    for one in (hints.delimiter,) if hints.delimiter else ",;\t|":
        widths = Counter(len(row) for _, row in _records(lines, one) if row)
        n, times = widths.most_common(1)[0] if widths else (1, 0)
        if n > 1 and times > most and times >= _MOST * widths.total():
            delimiter, width, most = one, n, times
    before: tuple[int, list[str]] = 0, []
    for at, row in _records(lines, delimiter):
        if width == len(row):
            break
        before = (at, row) if row else before
    else:
        at, row = 0, before[1]
    header = not any(map(_is_number, row)) if hints.header is None else hints.header
    if not header and hints.header is None and len(before[1]) > 1 and not any(map(_is_number, before[1])):
        what = f"{len(before[1])} names where the rows have {len(row)} fields"
        raise SourceError(what, where=first, line=before[0] + 1, value=len(before[1]), remedy="mend the line")
    names = tuple(distinct(row) if header else distinct([""] * len(row)))
    ends = ""
    if any("\n" in name for name in row):  # a name of two lines, as sheets write it
        last = next((start for start, _ in _records(lines, delimiter) if start > at), len(lines)) - 1
        ends = r"\r\n" if lines[last].endswith("\r\n") else r"\n"
    return CsvForm(files, hints, names, delimiter, header=header, skip=at, ends=ends)


def distinct(names: Sequence[str]) -> list[str]:
    """Names that SQL tells apart; what has none is numbered.

    >>> distinct(["size", "", "Size"])
    ['size', 'column1', 'Size_1']
    """
    met: dict[str, int] = {}
    out = []
    for i, name in enumerate(names):
        name = name or f"column{i}"
        n = met[name.lower()] = met.get(name.lower(), -1) + 1
        out.append(f"{name}_{n}" if n else name)
    return out


def _text(file: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")


def _records(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Every record with the number of lines before it."""
    reader, before = csv.reader(lines, delimiter=delimiter), 0
    try:
        for row in reader:
            yield before, row
            before = reader.line_num
    except csv.Error:  # NUL, or a field without an end: the rest is left to be told when it is read
        return


def _is_number(text: str) -> bool:
    return text.strip().lstrip("+-")[:1].isdigit()
