"""The container: a JSON header and named arrays in one file, laid out as safetensors is, so that its tools open it.

    8 bytes   length of the header, little-endian
    header    JSON: where each array lies, and under ``__metadata__`` Candide's own header as text
    arrays    float64 first, then int64, int32 and bytes, each sorted by name; at the end two checksums (CRC-32)

It is written and read by hand: the layout is this simple, importing one more library would cost more than loading
a small model, and a file from a stranger is checked here, field by field, before anything is made of it.

>>> file = b"".join(bytes(piece) for piece in pack_container({"format": 1}, {"n": np.array([1.0, 2.0])}))
>>> header, arrays = unpack_container(memoryview(file), verify=True)
>>> header, arrays["n"].tolist()
({'format': 1}, [1.0, 2.0])
>>> unpack_container(memoryview(file[:-3]), verify=True)
Traceback (most recent call last):
    ...
candide.errors.ModelFileError: array 'checksum' does not lie where its shape says, or not within the file
"""

import json
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, ModelFileError

LARGEST_HEADER = 1 << 20  # bytes: small, because JSON may take fifty times its length once it is read
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
}
_CHECKSUM_KEY = "checksum"
_HEADER_START = b'"__metadata__":{"candide":'


def pack_container(header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> list[Any]:
    """The pieces of a file, one after another. The same header and arrays give the same bytes on any machine."""
    entries: dict[str, Any] = {"__metadata__": {"candide": _json(header)}}
    pieces, at = [], 0
    for code, dtype in _DTYPES.items():
        for name in sorted(n for n, a in arrays.items() if a.dtype.newbyteorder("=") == dtype.newbyteorder("=")):
            array = np.ascontiguousarray(arrays[name], dtype)
            entries[name] = {"data_offsets": [at, at + array.nbytes], "dtype": code, "shape": list(array.shape)}
            pieces.append(array.reshape(-1).view(np.uint8).data)
            at += array.nbytes
    if len(entries) != len(arrays) + 1:
        raise InputError("a model file keeps arrays of float64, int64, int32 and bytes only")
    entries[_CHECKSUM_KEY] = {"data_offsets": [at, at + 8], "dtype": "U8", "shape": [8]}
    text = _json(entries).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers lie at multiples of eight
    if len(text) > LARGEST_HEADER:
        raise InputError(
            f"the model's settings take {len(text):,} bytes; a model file has room for {LARGEST_HEADER:,}; "
            "use fewer different event models, or shares for fewer classes"
        )
    head = len(text).to_bytes(8, "little") + text
    data = 0
    for piece in pieces:
        data = zlib.crc32(piece, data)
    return [head, *pieces, zlib.crc32(head).to_bytes(4, "little") + data.to_bytes(4, "little")]


def is_model_file(path: str | os.PathLike) -> bool:
    """Whether a file begins as a model file does: with a header in which Candide has its own."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        return size <= LARGEST_HEADER and _HEADER_START in file.read(size)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=True, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        raise InputError("a setting of this model is not a finite number, and cannot be kept in a file") from None


def unpack_container(file: memoryview, *, verify: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Header and arrays of a file; the arrays are views. ``verify`` reads all of it for the checksum."""
    size = int.from_bytes(file[:8], "little")
    if len(file) < 16 or size > min(LARGEST_HEADER, len(file) - 16):
        raise ModelFileError("not a whole Candide model file")
    entries = parse_json(bytes(file[8 : 8 + size]))
    data = file[8 + size :]
    notes = entries.pop("__metadata__", None)
    if not isinstance(notes, dict) or not isinstance(notes.get("candide"), str):
        raise ModelFileError("not a Candide model file: its header has no word of it")
    arrays = _views(entries, data)
    seal = arrays.pop(_CHECKSUM_KEY, None)
    if (
        seal is None
        or seal.shape != (8,)
        or seal.dtype != np.uint8
        or entries[_CHECKSUM_KEY]["data_offsets"][1] != len(data)
    ):
        raise ModelFileError("the file has no checksum at its end")
    if zlib.crc32(file[: 8 + size]) != int.from_bytes(seal[:4].tobytes(), "little"):
        raise ModelFileError("the header does not agree with its checksum: the file is damaged")
    if verify and zlib.crc32(data[:-8]) != int.from_bytes(seal[4:].tobytes(), "little"):
        raise ModelFileError("the arrays do not agree with their checksum: the file is damaged")
    return parse_json(notes["candide"].encode("utf-8", "surrogatepass")), arrays


def parse_json(text: bytes) -> dict[str, Any]:
    """A JSON object in which no name stands twice and every number is finite."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"its header is not JSON ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise ModelFileError("its header is not a JSON object")
    return value


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ModelFileError("a name stands twice in its header")
    return out


def _reject_constant(name: str) -> None:
    raise ModelFileError(f"{name} in its header is no finite number")


def _views(entries: dict[str, Any], data: memoryview) -> dict[str, NDArray]:
    """The arrays as views; they must follow one another and fill the file."""
    out, at = {}, 0
    for name, entry in sorted(entries.items(), key=_array_span):
        check_fields(entry, f"array {name!r}", {"data_offsets": list, "dtype": str, "shape": list})
        shape, offsets = entry["shape"], entry["data_offsets"]
        if entry["dtype"] not in _DTYPES or len(shape) > 2 or not all(is_count(v) for v in shape + offsets):
            raise ModelFileError(f"array {name!r} is of no type or shape known here")
        dtype, n = _DTYPES[entry["dtype"]], 1
        for length in shape:
            n *= length
        if offsets != [at, at + n * dtype.itemsize] or offsets[1] > len(data):
            raise ModelFileError(f"array {name!r} does not lie where its shape says, or not within the file")
        array = np.frombuffer(data[at : offsets[1]], dtype).reshape(shape)
        out[name] = array.astype(dtype.newbyteorder("="), copy=False)
        at = offsets[1]
    if at != len(data):
        raise ModelFileError("the arrays do not fill the file")
    return out


def _array_span(item: tuple[str, Any]) -> tuple[int, int]:
    """Where an array begins and ends, of an entry nobody has checked."""
    offsets = item[1].get("data_offsets") if isinstance(item[1], dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(is_count(v) for v in offsets):
        return -1, -1
    return offsets[0], offsets[1]


def is_count(value: Any) -> bool:
    """Whether a value is a whole number that can be a size or a place in a file."""
    return type(value) is int and 0 <= value < 1 << 53


def check_fields(value: Any, where: str, types: Mapping[str, Any]) -> dict[str, Any]:
    """``value``, which must be an object with exactly these fields, each of its type."""
    if not isinstance(value, dict) or value.keys() != types.keys():
        raise ModelFileError(f"{where}: an object with the fields {sorted(types)} is expected")
    for name, kind in types.items():
        if not isinstance(value[name], kind) or (isinstance(value[name], bool) and kind not in (bool, object)):
            raise ModelFileError(f"{where}: the field {name!r} is of the wrong type")
    return value
