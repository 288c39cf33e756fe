"""Convert text files to UTF-8, plain or compressed, as DuckDB reads them.

The user may declare any encoding that Python knows. Otherwise the byte order mark decides, or the bytes: they are
UTF-8, or UTF-16 without a mark; else cp1252 (Western European) is assumed, with a note, unless the bytes exclude it.
Files that were joined may mix UTF-8 and cp1252, so this is decided line by line, and the note names the lines. A file
in another encoding is rewritten in UTF-8, a piece at a time, so memory does not grow with it.

>>> (
...     guess_encoding(["größe".encode()]),
...     guess_encoding(["größe".encode("utf-16")]),
...     guess_encoding(["größe".encode("cp1252")]),
... )
(None, EncodingGuess(name='utf-16', is_certain=True), EncodingGuess(name='cp1252', is_certain=False))
"""

import bz2
import codecs
import glob
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from candide.data.notes import Note
from candide.engines.reading import ReadOptions
from candide.errors import InputError, SourceError

_PIECE_BYTES = 1 << 20  # bytes read at a time
_FIRST_LINE_BYTES = 1 << 16  # bytes in which the first line ends
_MAX_PIECES = 64  # of a file that is longer, so many pieces are looked at, from its beginning to its end
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NOT_WESTERN = frozenset(b"\x81\x8d\x8f\x90\x9d")  # bytes that mean nothing in cp1252
_UNKNOWN_TO_DUCKDB: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".xz": lzma.open}
_COMPRESSED_SUFFIXES = {".gz", ".zst", *_UNKNOWN_TO_DUCKDB}
_NAMED = 3  # lines in a remark
_LONGEST = 1 << 26  # bytes of a line, beyond which it is cut: memory must not grow with the file
_REMEDY = "pass the encoding, such as --encoding {} (encoding={!r})"


@dataclass(frozen=True)
class EncodingGuess:
    """An encoding, and whether the file itself says that it is this."""

    name: str
    is_certain: bool = True


@dataclass
class Utf8Files:
    """Files that DuckDB can read, notes on them, and the encoding of the first that was not UTF-8."""

    files: tuple[str, ...]
    notes: list[Note] = field(default_factory=list)
    encoding: str | None = None


def convert_to_utf8(files: tuple[str, ...], reading: ReadOptions, name: str, folder: Callable[[], Path]) -> Utf8Files:
    """Text files (paths, or a glob) that can be read in UTF-8; those that cannot are spooled into the folder."""
    declared = None if reading.encoding is None else _canonical_encoding(reading.encoding)
    out = Utf8Files(files)
    each = [path for file in files for path in matching_files(file)]
    if declared == "utf-8" and reading.errors == "strict" and not any(map(_is_unreadable, each)):
        return out
    root = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in each]) if each else ""
    spooled: dict[str, str] = {}
    for path in each:
        shown = path if len(each) > 1 else name
        found = EncodingGuess(declared) if declared else _guess_file(path, shown)
        if found is None and not _is_unreadable(path):
            continue
        where = folder() / os.path.relpath(os.path.abspath(path), root)  # beside the folders of a divided table
        mixed = MixedDecoder(reading.errors) if found == _WESTERN else None
        spooled[path] = _write_utf8(path, str(where), found.name if found else "utf-8-sig", reading.errors, mixed)
        if found is not None:
            if mixed is None or not mixed.utf8.n:
                out.encoding = out.encoding or found.name
            out.notes += [] if declared or found.is_certain else [_encoding_note(shown, found.name, mixed)]
    if spooled:
        out.files = tuple(spooled.get(path, path) for path in each)
    return out


def guess_encoding(pieces: Iterable[bytes], name: str = "the data") -> EncodingGuess | None:
    """The encoding of a text in some pieces, the first its beginning; None where it is UTF-8.

    Only lines that are not UTF-8 tell whether they may be cp1252.
    """
    decoder, high, first = codecs.getincrementaldecoder("utf-8"), bytearray(), True
    for piece in pieces:
        if first:
            first = False
            wide = next(
                (encoding for mark, encoding in _BYTE_ORDER_MARKS if piece.startswith(mark) and encoding != "utf-8"),
                None,
            )
            if wide:
                return EncodingGuess(wide)
            if wide := _guess_utf16(piece):
                return EncodingGuess(wide, is_certain=False)
        if piece.isascii():
            continue
        piece = re.sub(rb"^[\x80-\xbf]{1,3}", b"", piece)  # it may begin within a letter
        try:
            decoder().decode(piece)
        except UnicodeDecodeError:
            lines = [line for line in piece.split(b"\n") if not _is_utf8(line)]
            high += b" ".join(run for line in lines for run in re.findall(rb"[\x80-\xff]+", line)) + b" "
    runs = bytes(high).split()
    if not runs:
        return None
    long = sum(len(run) for run in runs if len(run) > 2)
    if _NOT_WESTERN & set(high) or long > sum(map(len, runs)) / 2:  # other scripts have them letter by letter
        what = "its bytes are not UTF-8, and do not look like cp1252 (Western European)"
        raise SourceError(what, source=name, remedy=_REMEDY.format("shift_jis", "shift_jis"))
    return _WESTERN


def _guess_file(path: str, name: str) -> EncodingGuess | None:
    """The encoding of a file by some of it; where it cannot be guessed, an error that names a line."""
    try:
        return guess_encoding(_sample_pieces(path), name)
    except SourceError as error:
        with open_bytes(path) as file:
            line = next((n for n, line in enumerate(file, 1) if not _is_utf8(line)), None)
        raise SourceError(error.problem, source=name, line=line, remedy=error.remedy) from None


def _is_utf8(line: bytes) -> bool:
    """Whether a line, which may end within a letter, is UTF-8."""
    if line.isascii():
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(line)
    except UnicodeDecodeError:
        return False
    return True


class MixedDecoder:
    """Decode text line by line: as UTF-8 where a line is that, else as cp1252. Lines of both are counted.

    >>> mixed = MixedDecoder()
    >>> mixed.decode("größe\\nmüll\\n".encode()) + mixed.decode("grün".encode("cp1252"), final=True)
    'größe\\nmüll\\ngrün'
    >>> mixed.utf8.first, mixed.western.first
    ([1, 2], [3])
    """

    def __init__(self, errors: str = "strict") -> None:
        self.utf8, self.western = LineNumbers(), LineNumbers()  # of lines with letters beyond ASCII
        self.line = 0  # that was decoded last
        self._rest, self._errors = b"", errors

    def decode(self, piece: bytes, final: bool = False) -> str:
        """The text of all lines that have ended."""
        if piece.startswith(codecs.BOM_UTF8) and not self.line and not self._rest:
            piece = piece.removeprefix(codecs.BOM_UTF8)
        held = self._rest + piece
        end = len(held) if final else held.rfind(b"\n") + 1
        if not end and len(held) > _LONGEST:
            end = len(re.sub(rb"[\x80-\xff]+\Z", b"", held))  # not within a letter
        held, self._rest = held[:end], held[end:]
        if held.isascii():
            self.line += held.count(b"\n")
            return held.decode("ascii")
        return "".join(map(self._decode_line, re.findall(rb"[^\n]*\n|[^\n]+", held)))

    def _decode_line(self, line: bytes) -> str:
        self.line += 1
        if line.isascii():
            return line.decode("ascii")
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            self.western.add(self.line)
            return line.decode("cp1252", self._errors)
        self.utf8.add(self.line)
        return text


@dataclass
class LineNumbers:
    """How many lines there are of a kind, and the numbers of the first."""

    n: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        """Count a line."""
        self.n += 1
        if len(self.first) < _NAMED:
            self.first.append(line)

    def __str__(self) -> str:
        """The lines in words.

        >>> str(LineNumbers(1, [7])), str(LineNumbers(9, [3, 4, 8]))
        ('line 7', 'lines 3, 4, 8 and 6 more')
        """
        more = f" and {self.n - len(self.first):,} more" if self.n > len(self.first) else ""
        return f"line{'' if self.n == 1 else 's'} {', '.join(map(str, self.first))}{more}"


def _guess_utf16(piece: bytes) -> str | None:
    """UTF-16 by its NUL bytes: every other byte, in text that is Latin for the most part."""
    head = piece[:4096]
    n = len(head) // 2
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if n and head[start::2].count(0) > 0.7 * n and head[1 - start :: 2].count(0) == 0:
            return encoding
    return None


_WESTERN = EncodingGuess("cp1252", is_certain=False)
_ALL_WESTERN = "save all lines in UTF-8; to read every line as cp1252, pass --encoding cp1252 (encoding='cp1252')"


def _encoding_note(name: str, encoding: str, mixed: MixedDecoder | None = None) -> Note:
    if mixed is not None and mixed.utf8.n:
        few = mixed.western.n <= mixed.utf8.n
        read = f"{mixed.western} as cp1252, the others" if few else f"{mixed.utf8} as UTF-8, the others"
        text = f"{name} mixes encodings: {read} as {'UTF-8' if few else 'cp1252'}"
        return Note("encoding", text, remedy=_ALL_WESTERN)
    text = f"{name} is not UTF-8: its bytes look like {encoding}, and are read as that"
    return Note("encoding", text, remedy=f"where letters are wrong {_REMEDY.format('cp1250', 'cp1250')}")


def _canonical_encoding(name: str) -> str:
    """An encoding by its usual name."""
    try:
        found = codecs.lookup(name)
        "".encode(found.name)  # there are codecs of bytes, too
    except LookupError:
        remedy = "pass a name that Python knows, such as utf-8, cp1252, latin-1, utf-16 or shift_jis"
        raise InputError(f"unknown encoding {name!r}", value=name, remedy=remedy) from None
    return "utf-8" if found.name in ("utf-8", "ascii", "utf-8-sig") else found.name


def matching_files(file: str) -> list[str]:
    """The files of a path, or of a glob."""
    return sorted(glob.glob(file, recursive=True)) if glob.has_magic(file) else [file]


def _is_unreadable(path: str) -> bool:
    """Whether DuckDB cannot read it: it does not unpack it, or finds no end of a name after the mark of UTF-8."""
    if _file_suffix(path) in _UNKNOWN_TO_DUCKDB:
        return True
    try:
        with open_bytes(path) as file:
            return (
                file.read(3) == codecs.BOM_UTF8
                and file.read(_FIRST_LINE_BYTES).partition(b"\n")[0].count(b'"') % 2 == 1
            )
    except (OSError, EOFError, lzma.LZMAError):  # reported when it is read
        return False


def _file_suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def open_bytes(path: str) -> IO[bytes]:
    """The bytes of a file, unpacked."""
    ending = _file_suffix(path)
    if ending in _UNKNOWN_TO_DUCKDB:
        return _UNKNOWN_TO_DUCKDB[ending](path)
    if ending in (".gz", ".zst"):
        import pyarrow as pa

        return pa.input_stream(path, compression={".gz": "gzip", ".zst": "zstd"}[ending], buffer_size=_PIECE_BYTES)
    return open(path, "rb")


def read_whole_text(path: str, reading: ReadOptions) -> tuple[str, list[Note]]:
    """The text of a file that is read at once, or of standard input, and notes on its encoding."""
    name = "standard input" if path == "-" else path
    try:
        with open_bytes(path) if path != "-" else open(sys.stdin.fileno(), "rb", closefd=False) as file:
            held = file.read()
    except FileNotFoundError:
        raise SourceError("no such file", source=name) from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise SourceError(str(error), source=name) from None
    found = (
        EncodingGuess(_canonical_encoding(reading.encoding))
        if reading.encoding
        else guess_encoding([held], name) or EncodingGuess("utf-8")
    )
    mixed = MixedDecoder(reading.errors) if found == _WESTERN else None
    try:
        text = held.decode(found.name, reading.errors) if mixed is None else mixed.decode(held, final=True)
    except UnicodeError as error:
        remedy = "pass another --encoding (encoding=...)"
        raise SourceError(f"{error}, read as {found.name}", source=name, remedy=remedy) from None
    return text, [] if found.is_certain else [_encoding_note(name, found.name, mixed)]


def _sample_pieces(path: str) -> Iterator[bytes]:
    """Pieces of a file: all of one that is short, or packed; of a long one some, evenly from beginning to end."""
    size = os.path.getsize(path)
    try:
        with open_bytes(path) as file:
            apart = (
                _PIECE_BYTES if _file_suffix(path) in _COMPRESSED_SUFFIXES else max(_PIECE_BYTES, size // _MAX_PIECES)
            )
            for i in range(_MAX_PIECES):
                if apart > _PIECE_BYTES:
                    file.seek(i * apart)
                if not (piece := file.read(_PIECE_BYTES)):
                    return
                yield piece
    except (OSError, EOFError, lzma.LZMAError):  # reported when it is read
        return


def _write_utf8(path: str, to: str, encoding: str, errors: str, mixed: MixedDecoder | None = None) -> str:
    """Write a text file in UTF-8, unpacked; with ``mixed`` line by line."""
    to = to.removesuffix(Path(to).suffix) if _file_suffix(to) in _COMPRESSED_SUFFIXES else to
    os.makedirs(os.path.dirname(to), exist_ok=True)
    decoder: Any = mixed or codecs.getincrementaldecoder(encoding)(errors)
    lines = 1
    try:
        with open_bytes(path) as file, open(to, "w", encoding="utf-8", newline="") as out:
            while piece := file.read(_PIECE_BYTES):
                text = decoder.decode(piece)
                lines += text.count("\n")
                out.write(text)
            out.write(decoder.decode(b"", final=True))
    except UnicodeError as error:
        reason = getattr(error, "reason", str(error))
        raise SourceError(
            f"{reason}, read as {encoding}",
            source=path,
            line=lines + getattr(error, "object", b"")[: getattr(error, "start", 0)].count(b"\n")
            if mixed is None
            else mixed.line,
            remedy="pass another --encoding (encoding=...), or --errors replace",
        ) from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise SourceError(str(error), source=path) from None
    return to
