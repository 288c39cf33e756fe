"""The container: a JSON header and named arrays in one file, in the layout of safetensors, so that its tools open it.

    8 bytes   length of the header, little-endian
    header    JSON: the place of each array, and under ``__metadata__`` the header of Candide as text
    arrays    float64 first, then int64, int32 and bytes, each sorted by name; at the end two checksums (CRC-32)

Reading checks every field, so that a file from an untrusted source can be opened. It is written by hand because another
library would take longer to import than a small model takes to load.

>>> file = b"".join(bytes(piece) for piece in pack_container({"format": 1}, {"n": np.array([1.0, 2.0])}))
>>> header, arrays = unpack_container(memoryview(file), verify=True)
>>> header, arrays["n"].tolist()
({'format': 1}, [1.0, 2.0])
"""

import json
import os
import zlib
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.errors import InputError, ModelFileError

LARGEST_HEADER = 1 << 20  # bytes: parsed JSON may take fifty times its length
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
}
_CHECKSUM_KEY = "checksum"
_HEADER_START = b'"__metadata__":{"candide":'


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


def unpack_container(file: memoryview, *, verify: bool) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Return the header and the arrays, which are views. ``verify`` reads all of them for the checksum."""
    size = int.from_bytes(file[:8], "little")
    if len(file) < 16 or size > min(LARGEST_HEADER, len(file) - 16):
        raise ModelFileError("not a complete Candide model file")
    entries = parse_json(bytes(file[8 : 8 + size]))
    data = file[8 + size :]
    metadata = entries.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not isinstance(metadata.get("candide"), str):
        raise ModelFileError("not a Candide model file: its header does not name Candide")
    arrays = _views(entries, data)
    checksums = arrays.pop(_CHECKSUM_KEY, None)
    is_valid = checksums is not None and checksums.shape == (8,) and checksums.dtype == np.uint8
    if checksums is None or not is_valid or entries[_CHECKSUM_KEY]["data_offsets"][1] != len(data):
        raise ModelFileError("the file has no checksum at its end")
    if zlib.crc32(file[: 8 + size]) != int.from_bytes(checksums[:4].tobytes(), "little"):
        raise ModelFileError("the checksum of the header is wrong: the file is damaged")
    if verify and zlib.crc32(data[:-8]) != int.from_bytes(checksums[4:].tobytes(), "little"):
        raise ModelFileError("the checksum of the arrays is wrong: the file is damaged")
    return parse_json(metadata["candide"].encode("utf-8", "surrogatepass")), arrays


def parse_json(text: bytes) -> dict[str, Any]:
    """Return a JSON object without repeated names and with finite numbers only."""
    try:
        value = json.loads(text.decode(), object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"its header is not valid JSON ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise ModelFileError("its header is not a JSON object")
    return value


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ModelFileError("a name is repeated in its header")
    return value


def _reject_constant(name: str) -> None:
    raise ModelFileError(f"{name} in its header is not a finite number")


def _views(entries: dict[str, Any], data: memoryview) -> dict[str, NDArray]:
    """Return the arrays as views; they must follow one another and fill the file."""
    arrays, at = {}, 0
    for name, entry in sorted(entries.items(), key=_array_span):
        check_fields(entry, f"array {name!r}", {"data_offsets": list, "dtype": str, "shape": list})
        shape, offsets = entry["shape"], entry["data_offsets"]
        if entry["dtype"] not in _DTYPES or len(shape) > 2 or not all(is_count(v) for v in shape + offsets):
            raise ModelFileError(f"array {name!r} has an unknown type or shape")
        dtype = _DTYPES[entry["dtype"]]
        if offsets != [at, at + prod(shape) * dtype.itemsize] or offsets[1] > len(data):
            raise ModelFileError(f"the offsets of array {name!r} do not match its shape or the file")
        array = np.frombuffer(data[at : offsets[1]], dtype).reshape(shape)
        arrays[name] = array.astype(dtype.newbyteorder("="), copy=False)
        at = offsets[1]
    if at != len(data):
        raise ModelFileError("the arrays do not fill the file")
    return arrays


def _array_span(item: tuple[str, Any]) -> tuple[int, int]:
    """Return the offsets of an unchecked entry."""
    offsets = item[1].get("data_offsets") if isinstance(item[1], dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(is_count(v) for v in offsets):
        return -1, -1
    return offsets[0], offsets[1]


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
