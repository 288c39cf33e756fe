"""The container: a JSON header, named arrays and a pool of strings in one file with the layout of safetensors.

    8 bytes   length of the header, little-endian
    header    JSON: the place of each array, and under ``__metadata__`` the header of Candide as text
    arrays    float64 first, then int64, int32 and bytes, each sorted by name; at the end two checksums (CRC-32)

Reading checks every field, so that a file from an untrusted source can be opened. The format is written without a
library because importing one would take longer than loading a small model.
"""

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import chain, pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.text_formats import format_plain_value, parse_duration
from candide.errors import InputError, ModelFileError
from candide.tally.base import is_too_large

LARGEST_HEADER = 1 << 20  # bytes: parsed JSON may take fifty times its length
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
}
_CHECKSUM_KEY = "checksum"
_HEADER_START = b'"__metadata__":{"candide":'
_NONNEGATIVE_ARRAYS = ("n", "m2", "weight", "counts", "class_weight", "noise")

Arrays = dict[str, NDArray]


def pack_container(header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> list[Any]:
    """Return the pieces of a file. The same header and arrays give the same bytes on any machine."""
    entries: dict[str, Any] = {"__metadata__": {"candide": _json(header)}}
    pieces, at = [], 0
    for code, dtype in _DTYPES.items():
        for name in sorted(n for n, a in arrays.items() if a.dtype.newbyteorder("=") == dtype.newbyteorder("=")):
            array = np.ascontiguousarray(arrays[name], dtype)
            entries[name] = {"data_offsets": [at, at + array.nbytes], "dtype": code, "shape": list(array.shape)}
            pieces.append(array.reshape(-1).view(np.uint8).data)
            at += array.nbytes
    if len(entries) != len(arrays) + 1:
        raise InputError("a model file holds arrays of float64, int64, int32 and bytes only")
    entries[_CHECKSUM_KEY] = {"data_offsets": [at, at + 8], "dtype": "U8", "shape": [8]}
    text = _json(entries).encode()
    text += b" " * (-len(text) % 8)  # so that numbers are aligned
    if len(text) > LARGEST_HEADER:
        what = f"the model's settings take {len(text):,} bytes; a model file holds at most {LARGEST_HEADER:,}"
        raise InputError(what, remedy="use fewer different event models, or a class prior for fewer classes")
    head = len(text).to_bytes(8, "little") + text
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return [head, *pieces, zlib.crc32(head).to_bytes(4, "little") + checksum.to_bytes(4, "little")]


def is_model_file(path: str | os.PathLike) -> bool:
    """Whether a file starts with the header of a model file."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return size <= LARGEST_HEADER and _HEADER_START in file.read(size)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=True, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise InputError("a setting of this model is not a finite number, and cannot be saved") from None


def unpack_container(file: memoryview, *, verify: bool) -> tuple[dict[str, Any], Arrays]:
    """Return the header and the arrays, which are views. ``verify`` reads all of them for the checksum."""
    size = int.from_bytes(file[:8], "little")
    if len(file) < 16 or size > min(LARGEST_HEADER, len(file) - 16):
        raise ModelFileError("not a complete Candide model file")
    entries, data = parse_json(bytes(file[8 : 8 + size])), file[8 + size :]
    metadata = entries.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("candide"), str):
        raise ModelFileError("not a Candide model file: its header does not name Candide")
    arrays = _views(entries, data)
    checksums = arrays.pop(_CHECKSUM_KEY, np.empty(0))
    is_valid = checksums.shape == (8,) and checksums.dtype == np.uint8
    if not is_valid or entries[_CHECKSUM_KEY]["data_offsets"][1] != len(data):
        raise ModelFileError("the file has no checksum at its end")
    if zlib.crc32(file[: 8 + size]) != int.from_bytes(checksums[:4].tobytes(), "little"):
        raise ModelFileError("the checksum of the header is wrong: the file is damaged")
    if verify and zlib.crc32(data[:-8]) != int.from_bytes(checksums[4:].tobytes(), "little"):
        raise ModelFileError("the checksum of the arrays is wrong: the file is damaged")
    return parse_json(metadata["candide"].encode("utf-8", "surrogatepass")), arrays


def parse_json(text: bytes) -> dict[str, Any]:
    """Return a JSON object without repeated names and with finite numbers only."""

    def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(members := dict(pairs)) < len(pairs):
            raise ModelFileError("a name is repeated in its header")
        return members

    def reject_constant(name: str) -> None:
        raise ModelFileError(f"{name} in its header is not a finite number")

    try:
        value = json.loads(text.decode(), object_pairs_hook=make_object, parse_constant=reject_constant)
    except ModelFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its header is not valid JSON ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise ModelFileError("its header is not a JSON object")
    return value


def _views(entries: dict[str, Any], data: memoryview) -> Arrays:
    """Return the arrays as views; they must follow one another and fill the file."""
    for name, entry in entries.items():
        check_fields(entry, f"array {name!r}", {"data_offsets": list, "dtype": str, "shape": list})
        sizes = entry["shape"] + entry["data_offsets"]
        if entry["dtype"] not in _DTYPES or len(entry["shape"]) > 2 or not all(map(is_count, sizes)):
            raise ModelFileError(f"array {name!r} has an unknown type or shape")
    arrays, at = {}, 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape, offsets = _DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        if offsets != [at, at + prod(shape) * dtype.itemsize] or offsets[1] > len(data):
            raise ModelFileError(f"the offsets of array {name!r} do not match its shape or the file")
        array = np.frombuffer(data[at : offsets[1]], dtype).reshape(shape)
        arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
        at = offsets[1]
    if at != len(data):
        raise ModelFileError("the arrays do not fill the file")
    return arrays


def is_count(value: Any) -> bool:
    """Whether a value is a whole number that can be a size or an offset."""
    return type(value) is int and 0 <= value < 1 << 53


def check_fields(value: Any, where: str, types: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Any:
    """Return ``value``, which must be an object with these fields, each of its type."""
    if optional and isinstance(value, dict):
        types = {**types, **{name: kind for name, kind in optional.items() if name in value}}
    if not isinstance(value, dict) or value.keys() != types.keys():
        raise ModelFileError(f"{where}: expected an object with the fields {sorted(types)}")
    for name, kind in types.items():
        if not isinstance(value[name], kind) or (isinstance(value[name], bool) and kind not in (bool, object)):
            raise ModelFileError(f"{where}: the field {name!r} has the wrong type")
    return value


class TrackedArrays:
    """The arrays of a file, and which of them have been used."""

    def __init__(self, arrays: Arrays, is_verified: bool) -> None:
        self._arrays, self._unused, self.is_verified = arrays, set(arrays), is_verified

    def get(self, name: str) -> NDArray | None:
        self._unused.discard(name)
        return self._arrays.get(name)

    def has(self, name: str) -> bool:
        return name in self._arrays

    def integers(self, name: str, length: int | None = None) -> list[int]:
        array = self.get(name)
        if array is None or array.ndim != 1 or array.dtype != np.int64 or length not in (None, len(array)):
            raise ModelFileError(f"array {name!r} is not a list of whole numbers of the right length")
        return array.tolist()

    def indices(self, name: str, n: int) -> list[int]:
        """Return ascending indices below n; none if the array is absent."""
        indices = self.integers(name) if name in self._arrays else []
        if any(a >= b for a, b in pairwise(indices)) or (indices and not 0 <= indices[0] <= indices[-1] < n):
            raise ModelFileError(f"array {name!r} is not a list of ascending indices below {n}")
        return indices

    def floats(self, name: str, shape: tuple[int, ...]) -> NDArray:
        """Return finite numbers of a shape, broadcast along axes on which they are stored once."""
        array = self.get(name)
        if array is None or array.dtype != np.float64 or array.ndim != len(shape):
            raise ModelFileError(f"array {name!r} of {len(shape)} axes is missing")
        if any(a != b and (a != 1 or len(shape) == 1) for a, b in zip(array.shape, shape, strict=True)):
            raise ModelFileError(f"array {name!r} has the shape {array.shape}, not {shape}")
        if self.is_verified and is_too_large(array):
            raise ModelFileError(f"array {name!r} holds a number that is not finite, or too large to be added")
        if self.is_verified and name.rpartition(".")[2] in _NONNEGATIVE_ARRAYS and array.min(initial=0.0) < 0:
            raise ModelFileError(f"array {name!r} holds a negative weight")
        return array if array.shape == shape else np.broadcast_to(array, shape)

    def check_all_used(self) -> None:
        if self._unused:
            raise ModelFileError(f"unexpected array {min(self._unused)!r}")


class PrefixedArrays:
    def __init__(self, arrays: Any, prefix: str) -> None:
        self._arrays, self._prefix = arrays, prefix

    def get(self, name: str, /) -> NDArray | None:
        return self._arrays.get(f"{self._prefix}.{name}")


def drop_repeats(array: NDArray) -> NDArray:
    """Return an array without repetitions along an axis, compared bit by bit."""
    bits = array.view(np.int64)
    for axis in (0, 1):
        if array.shape[axis] < 2:
            continue
        first, second = (bits[:, :1], bits[:, 1:2]) if axis else (bits[:1], bits[1:2])
        if bits.strides[axis] == 0 or ((first == second).all() and (bits == first).all()):
            bits = first
    return np.ascontiguousarray(bits).view(np.float64)


# Strings: all names, labels and levels are in one UTF-8 buffer, with the end and the type of each. A newline follows
# each, so that most buffers are split at once: to read 200,000 words as JSON would take longer than all their counts.

_TYPES: tuple[type, ...] = (str, int, float, bool, date, datetime, time, timedelta)  # by their number in a file
_BOOL, _DATE, _DURATION = 3, 4, 7  # from _DATE on, values are written as in ISO 8601, except durations
_NEWLINE = 10
_BATCH_VALUES = 1 << 16  # values read at a time
_MAX_NUMBER_LENGTH = 4300  # digits that Python parses


class StringPool:
    """Collects values in the order in which they will be read."""

    def __init__(self) -> None:
        self._size = 0
        self._data: list[bytes] = []
        self._ends, self._kinds = [np.empty(0, np.int64)], [np.empty(0, np.uint8)]

    def add(self, values: Sequence[Any]) -> int:
        texts, kinds = values, np.zeros(len(values), np.uint8)
        try:
            lines = "\n".join(texts)
        except TypeError:
            kinds = np.array([_type_number(value) for value in values], np.uint8)
            texts = [_format_value(value, kind) for value, kind in zip(values, kinds.tolist(), strict=True)]
            lines = "\n".join(texts)
        if len(values):
            data = f"{lines}\n".encode("utf-8", "surrogatepass")
            ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _NEWLINE)
            if len(ends) != len(values):  # a value contains a newline
                ends = np.cumsum([len(text.encode("utf-8", "surrogatepass")) + 1 for text in texts]) - 1
            self._data.append(data)
            self._ends.append(ends + self._size)
            self._kinds.append(kinds)
            self._size += len(data)
        return len(values)

    def arrays(self) -> Arrays:
        text = np.frombuffer(b"".join(self._data), np.uint8)
        return {"text": text, "text.ends": np.concatenate(self._ends), "text.kinds": np.concatenate(self._kinds)}


class StringReader:
    def __init__(self, arrays: TrackedArrays | Arrays) -> None:
        text, ends, kinds = (arrays.get(name) for name in ("text", "text.ends", "text.kinds"))
        if text is None or ends is None or kinds is None:
            raise ModelFileError("the names and labels are missing")
        self._bytes, self._ends, self._kinds, self._position = text, ends, kinds, 0
        has_shapes = text.ndim == ends.ndim == kinds.ndim == 1 and len(ends) == len(kinds)
        has_types = (text.dtype, ends.dtype, kinds.dtype) == (np.uint8, np.int64, np.uint8)
        if not has_shapes or not has_types or (int(ends[-1]) + 1 if len(ends) else 0) != len(text):
            raise ModelFileError("the names and labels do not fill their buffer")
        if not len(ends):  # numbered columns, and no class left
            return
        if ends[0] < 0 or (ends[1:] <= ends[:-1]).any() or (text[ends] != _NEWLINE).any():
            raise ModelFileError("the ends of names and labels are not in order")
        if kinds.max() >= len(_TYPES):
            raise ModelFileError("a name or label has an unknown type")

    def take(self, n: int) -> tuple[Any, ...]:
        start, stop = self._position, self._position + n
        if stop > len(self._ends):
            raise ModelFileError("there are fewer names and labels than its header declares")
        batches = (self._read_batch(at, min(at + _BATCH_VALUES, stop)) for at in range(start, stop, _BATCH_VALUES))
        values = tuple(chain.from_iterable(batches))
        self._position = stop
        return values

    def check_all_used(self) -> None:
        if self._position != len(self._ends):
            raise ModelFileError("there are more names and labels than its header declares")

    def _read_batch(self, start: int, stop: int) -> Iterable[Any]:
        first = int(self._ends[start - 1]) + 1 if start else 0
        data = self._bytes[first : self._ends[stop - 1]]
        try:
            text = data.tobytes().decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ModelFileError("a name or label is not UTF-8") from None
        texts = text.split("\n")
        if len(texts) != stop - start:  # a value contains a newline
            ends = self._ends[start:stop] - first
            if len(text) < len(data):  # from byte offsets to character offsets
                ends = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])[ends]
            texts = [text[a + 1 : b] for a, b in pairwise([-1, *ends.tolist()])]
        kinds = self._kinds[start:stop]
        return map(_parse_value, texts, kinds.tolist()) if kinds.any() else texts


def pack_time(value: date | time | timedelta) -> list[str]:
    """Return a date, a time or a duration as the name of its type and its text."""
    kind = _type_number(value)
    return [_TYPES[kind].__name__, _format_value(value, kind)]


def unpack_time(packed: Any) -> Any:
    """Return what :func:`pack_time` was given."""
    names = [kind.__name__ for kind in _TYPES[_DATE:]]
    if not isinstance(packed, list) or len(packed) != 2 or packed[0] not in names or not isinstance(packed[1], str):
        raise ModelFileError("expected a date or time as the name of its type and its text")
    return _parse_value(packed[1], _DATE + names.index(packed[0]))


def _type_number(value: Any) -> int:
    if type(value) not in _TYPES or value != value:
        what = f"{value!r} is a {type(value).__name__}; a model file holds text, numbers, booleans, dates and times"
        raise InputError(what, value=value, remedy="pass such values as text")
    return _TYPES.index(type(value))


def _format_value(value: Any, kind: int) -> str:
    if kind == _DURATION:
        return format_plain_value(value)
    return value if kind == 0 else value.isoformat() if kind >= _DATE else repr(value)


def _parse_value(text: str, kind: int) -> Any:
    if kind == 0:
        return text
    if kind == _BOOL and text in ("True", "False"):
        return text == "True"
    if kind != _BOOL and len(text) <= _MAX_NUMBER_LENGTH:
        try:
            parse = parse_duration if kind == _DURATION else getattr(_TYPES[kind], "fromisoformat", _TYPES[kind])
            value = parse(text)
        except ValueError:
            value = np.nan
        if type(value) is _TYPES[kind] and value == value and _format_value(value, kind) == text:
            return value
    raise ModelFileError(f"{text[:40]!r} is not a {_TYPES[kind].__name__}")
