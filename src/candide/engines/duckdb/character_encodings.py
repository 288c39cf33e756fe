"""Convert text files, plain or compressed, to UTF-8, which DuckDB reads.

The user may declare any encoding that Python knows. Otherwise the byte order mark decides, or the bytes: they are
UTF-8, or UTF-16 without a mark; else cp1252 (Western European) is assumed, with a note, unless the bytes exclude it.
Files that were joined may mix UTF-8 and cp1252, so this is decided line by line, and the note names the lines. A file
in another encoding is rewritten in UTF-8, a piece at a time, so memory does not grow with it.
"""

import bz2
import codecs
import glob
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from candide.data.notes import Note
from candide.engines.reading import ReadOptions
from candide.errors import InputError, SourceError

_PIECE_BYTES = 1 << 20  # bytes read at a time
_FIRST_LINE_BYTES = 1 << 16  # bytes in which the first line ends
_MAX_PIECES = 64  # of a longer file so many pieces are sampled, from its beginning to its end
_MAX_LINE_BYTES = 1 << 26  # a longer line is cut: memory must not grow with the file
_N_SHOWN = 3  # lines in a note
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_NOT_WESTERN = frozenset(b"\x81\x8d\x8f\x90\x9d")  # bytes that mean nothing in cp1252
_UNKNOWN_TO_DUCKDB: dict[str, Callable[..., Any]] = {".bz2": bz2.open, ".xz": lzma.open}
_ARROW_COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
COMPRESSED_SUFFIXES = (*_ARROW_COMPRESSION, *_UNKNOWN_TO_DUCKDB)
_READ_ERRORS = (OSError, EOFError, lzma.LZMAError)
_REMEDY = "pass the encoding, such as --encoding {0} (encoding='{0}')"
_ALL_WESTERN = "save all lines in UTF-8; to read every line as cp1252, pass --encoding cp1252 (encoding='cp1252')"


class EncodingGuess(NamedTuple):
    """An encoding, and whether the file itself declares it."""

    name: str
    is_certain: bool = True


_WESTERN = EncodingGuess("cp1252", is_certain=False)


class Utf8Files(NamedTuple):
    """Files that DuckDB can read, notes on them, and the encoding of the first that was not UTF-8."""

    files: tuple[str, ...]
    notes: list[Note]
    encoding: str | None = None


def convert_to_utf8(files: tuple[str, ...], reading: ReadOptions, name: str, folder: Callable[[], Path]) -> Utf8Files:
    """Text files (paths, or a glob) in UTF-8; those that are not are rewritten into the folder."""
    declared = None if reading.encoding is None else EncodingGuess(_canonical_encoding(reading.encoding))
    paths = [path for file in files for path in matching_files(file)]
    if declared and declared.name == "utf-8" and reading.errors == "strict" and not any(map(_is_unreadable, paths)):
        return Utf8Files(files, [])
    root = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths]) if paths else ""
    rewritten, notes, encoding = dict[str, str](), list[Note](), None
    for path in paths:
        shown = path if len(paths) > 1 else name
        guess = declared or _guess_file(path, shown)
        if guess is None and not _is_unreadable(path):
            continue
        where = folder() / os.path.relpath(os.path.abspath(path), root)  # in the same folders: year=2024/rows.csv
        mixed = MixedDecoder(reading.errors) if guess == _WESTERN else None
        rewritten[path] = _write_utf8(path, str(where), guess.name if guess else "utf-8-sig", reading.errors, mixed)
        if guess is not None:
            if mixed is None or not mixed.utf8.n:
                encoding = encoding or guess.name
            notes += [] if guess.is_certain else [_encoding_note(shown, guess.name, mixed)]
    return Utf8Files(tuple(rewritten.get(path, path) for path in paths) if rewritten else files, notes, encoding)


def guess_encoding(pieces: Iterable[bytes], name: str = "the data") -> EncodingGuess | None:
    """The encoding of a text in some pieces, the first its beginning; None for UTF-8.

    Only the lines that are not UTF-8 show whether they may be cp1252.
    """
    high = bytearray()
    for i, piece in enumerate(pieces):
        if i == 0:
            if mark := next((mark for mark in _BYTE_ORDER_MARKS if piece.startswith(mark)), None):
                return EncodingGuess(_BYTE_ORDER_MARKS[mark])
            first = piece[:4096]
            n = len(first) // 2
            for start, wide in ((1, "utf-16-le"), (0, "utf-16-be")):  # Latin text has NUL in every other byte
                if n and first[start::2].count(0) > 0.7 * n and first[1 - start :: 2].count(0) == 0:
                    return EncodingGuess(wide, is_certain=False)
        piece = re.sub(rb"^[\x80-\xbf]{1,3}", b"", piece)  # it may begin within a letter
        if not _is_utf8(piece):
            lines = [line for line in piece.split(b"\n") if not _is_utf8(line)]
            high += b" ".join(run for line in lines for run in re.findall(rb"[\x80-\xff]+", line)) + b" "
    runs = bytes(high).split()
    if not runs:
        return None
    long = sum(len(run) for run in runs if len(run) > 2)
    if _NOT_WESTERN & set(high) or long > sum(map(len, runs)) / 2:  # other scripts have them letter by letter
        what = "its bytes are not UTF-8, and do not look like cp1252 (Western European)"
        raise SourceError(what, source=name, remedy=_REMEDY.format("shift_jis"))
    return _WESTERN


def _guess_file(path: str, name: str) -> EncodingGuess | None:
    """The encoding of a file by pieces of it; where it cannot be guessed, an error that names a line."""
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


class LineNumbers:
    def __init__(self, lines: Iterable[int] = ()):
        self.n, self.first = 0, list[int]()
        for line in lines:
            self.add(line)

    def add(self, line: int) -> None:
        self.n += 1
        if len(self.first) < _N_SHOWN:
            self.first.append(line)

    def __str__(self) -> str:
        rest = f" and {self.n - len(self.first):,} more" if self.n > len(self.first) else ""
        return f"line{'' if self.n == 1 else 's'} {', '.join(map(str, self.first))}{rest}"


class MixedDecoder:
    """Decode text line by line: as UTF-8 where a line is that, else as cp1252. Lines of both are counted."""

    def __init__(self, errors: str = "strict") -> None:
        self.utf8, self.western = LineNumbers(), LineNumbers()  # of lines with letters beyond ASCII
        self.line = 0  # that was decoded last
        self._rest, self._errors = b"", errors

    def decode(self, piece: bytes, final: bool = False) -> str:
        """The text of all lines that have ended."""
        if not self.line and not self._rest:
            piece = piece.removeprefix(codecs.BOM_UTF8)
        held = self._rest + piece
        end = len(held) if final else held.rfind(b"\n") + 1
        if not end and len(held) > _MAX_LINE_BYTES:
            end = len(re.sub(rb"[\x80-\xff]+\Z", b"", held))  # not within a letter
        held, self._rest = held[:end], held[end:]
        if held.isascii():
            self.line += held.count(b"\n")
            return held.decode("ascii")
        texts = []
        for line in re.findall(rb"[^\n]*\n|[^\n]+", held):
            self.line += 1
            try:
                texts.append(line.decode("utf-8"))
                if not line.isascii():
                    self.utf8.add(self.line)
            except UnicodeDecodeError:
                self.western.add(self.line)
                texts.append(line.decode("cp1252", self._errors))
        return "".join(texts)


def _encoding_note(name: str, encoding: str, mixed: MixedDecoder | None = None) -> Note:
    if mixed is not None and mixed.utf8.n:
        few, most = (mixed.western, "cp1252"), (mixed.utf8, "UTF-8")
        if mixed.western.n > mixed.utf8.n:
            few, most = most, few
        text = f"{name} mixes encodings: {few[0]} as {few[1]}, the others as {most[1]}"
        return Note("encoding", text, remedy=_ALL_WESTERN)
    text = f"{name} is not UTF-8: its bytes look like {encoding}, and are read as that"
    return Note("encoding", text, remedy=f"where letters are wrong {_REMEDY.format('cp1250')}")


def _canonical_encoding(name: str) -> str:
    try:
        codec = codecs.lookup(name)
        "".encode(codec.name)  # some codecs are of bytes
    except LookupError:
        remedy = "pass a name that Python knows, such as utf-8, cp1252, latin-1, utf-16 or shift_jis"
        raise InputError(f"unknown encoding {name!r}", value=name, remedy=remedy) from None
    return "utf-8" if codec.name in ("utf-8", "ascii", "utf-8-sig") else codec.name


def matching_files(file: str) -> list[str]:
    return sorted(glob.glob(file, recursive=True)) if glob.has_magic(file) else [file]


def _file_suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _is_unreadable(path: str) -> bool:
    """Whether DuckDB cannot read it: it does not unpack it, or finds no end of a name after the mark of UTF-8."""
    if _file_suffix(path) in _UNKNOWN_TO_DUCKDB:
        return True
    try:
        with open_bytes(path) as file:
            has_mark = file.read(3) == codecs.BOM_UTF8
            return has_mark and file.read(_FIRST_LINE_BYTES).partition(b"\n")[0].count(b'"') % 2 == 1
    except _READ_ERRORS:  # reported when it is read
        return False


def open_bytes(path: str) -> IO[bytes]:
    suffix = _file_suffix(path)
    if suffix in _ARROW_COMPRESSION:
        import pyarrow as pa

        return pa.input_stream(path, compression=_ARROW_COMPRESSION[suffix], buffer_size=_PIECE_BYTES)
    return _UNKNOWN_TO_DUCKDB[suffix](path) if suffix in _UNKNOWN_TO_DUCKDB else open(path, "rb")


def read_whole_text(path: str, reading: ReadOptions) -> tuple[str, list[Note]]:
    """The text of a file, or of standard input, read at once, and notes on its encoding."""
    name = "standard input" if path == "-" else path
    try:
        with open_bytes(path) if path != "-" else open(sys.stdin.fileno(), "rb", closefd=False) as file:
            held = file.read()
    except FileNotFoundError:
        raise SourceError("no such file", source=name) from None
    except _READ_ERRORS as error:
        raise SourceError(str(error), source=name) from None
    if reading.encoding:
        guess = EncodingGuess(_canonical_encoding(reading.encoding))
    else:
        guess = guess_encoding([held], name) or EncodingGuess("utf-8")
    mixed = MixedDecoder(reading.errors) if guess == _WESTERN else None
    try:
        text = held.decode(guess.name, reading.errors) if mixed is None else mixed.decode(held, final=True)
    except UnicodeError as error:
        remedy = "pass another --encoding (encoding=...)"
        raise SourceError(f"{error}, read as {guess.name}", source=name, remedy=remedy) from None
    return text, [] if guess.is_certain else [_encoding_note(name, guess.name, mixed)]


def _sample_pieces(path: str) -> Iterator[bytes]:
    """Pieces of a file, evenly from beginning to end; the first pieces of a compressed file."""
    apart = max(_PIECE_BYTES, os.path.getsize(path) // _MAX_PIECES)
    is_compressed = _file_suffix(path) in COMPRESSED_SUFFIXES
    try:
        with open_bytes(path) as file:
            for i in range(_MAX_PIECES):
                if apart > _PIECE_BYTES and not is_compressed:
                    file.seek(i * apart)
                if not (piece := file.read(_PIECE_BYTES)):
                    return
                yield piece
    except _READ_ERRORS:  # reported when it is read
        return


def _write_utf8(path: str, to: str, encoding: str, errors: str, mixed: MixedDecoder | None = None) -> str:
    """Write a text file in UTF-8, unpacked; with ``mixed`` line by line."""
    to = to.removesuffix(Path(to).suffix) if _file_suffix(to) in COMPRESSED_SUFFIXES else to
    os.makedirs(os.path.dirname(to), exist_ok=True)
    decoder: Any = mixed or codecs.getincrementaldecoder(encoding)(errors)
    line = 1
    try:
        with open_bytes(path) as file, open(to, "w", encoding="utf-8", newline="") as out:
            while piece := file.read(_PIECE_BYTES):
                text = decoder.decode(piece)
                line += text.count("\n")
                out.write(text)
            out.write(decoder.decode(b"", final=True))
    except UnicodeError as error:
        line += getattr(error, "object", b"")[: getattr(error, "start", 0)].count(b"\n")
        raise SourceError(
            f"{getattr(error, 'reason', str(error))}, read as {encoding}",
            source=path,
            line=line if mixed is None else mixed.line,
            remedy="pass another --encoding (encoding=...), or --errors replace",
        ) from None
    except _READ_ERRORS as error:
        raise SourceError(str(error), source=path) from None
    return to
