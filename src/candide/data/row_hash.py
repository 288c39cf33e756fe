"""Hash the contents of rows, so that a sample depends on what rows hold and not on the order in which they come.

A column is hashed by its values, whatever type holds them: whole numbers, floats and text that spells a plain number
have the same hash. Columns are added up, each multiplied by a number made of its name, so their order does not matter.

>>> table = {"age": np.array([30.0, 41.0, 30.0]), "job": np.array(["cook", "smith", "cook"], object)}
>>> first, second, third = hash_rows(table, 3).tolist()
>>> first == third, first == second
(True, False)
>>> bool((hash_rows({"code": np.array([7, 12])}, 2) == hash_rows({"code": np.array(["7", "12"])}, 2)).all())
True
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_indices, arrow_numbers, as_arrow
from candide.data.blocks import Codes
from candide.data.documents import Documents
from candide.data.labels import is_arrow
from candide.data.table import is_temporal, to_numbers

Hashes = NDArray[np.uint64]

_FIRST, _SECOND, _BASE = (np.uint64(odd) for odd in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93))
_MISSING = np.uint64(0x9E3779B97F4A7C15)
_ROWS = 1 << 14  # hashed at a time, so that they stay in the cache
_BYTES = 1 << 22  # of text hashed at a time
_EXACT = 1 << 53  # whole numbers below are exact as floats
_PLAIN = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$"  # text of a number


def hash_rows(columns: Mapping[Any, Any], n_rows: int) -> Hashes:
    """(row,) one number of all columns, the same for equal rows."""
    total = np.zeros(n_rows, np.uint64)
    with np.errstate(over="ignore"):
        for name, column in columns.items():
            salt = np.uint64(int.from_bytes(blake2b(str(name).encode("utf-8", "replace"), digest_size=8).digest()) | 1)
            values = hash_column(column)
            values *= salt
            total += values
    return mix(total)


def mix(numbers: Hashes, seed: int = 0) -> Hashes:
    """Scatter numbers over all of 64 bits; the same for the same seed."""
    with np.errstate(over="ignore"):
        x = numbers + np.uint64(seed % (1 << 32) + 1) * _MISSING
        x ^= x >> np.uint64(30)
        x *= _FIRST
        x ^= x >> np.uint64(27)
        x *= _SECOND
        x ^= x >> np.uint64(31)
        return x


def hash_row_numbers(rows: Codes, seed: int = 0) -> NDArray[np.uint64]:
    """A random number for each row number, by SplitMix64: the same for the same seed."""
    with np.errstate(over="ignore"):  # whole numbers modulo 2^64
        x = rows.astype(np.uint64) + np.uint64(1) + np.uint64(seed % (1 << 32)) * _MISSING
        x *= _MISSING
        x = (x ^ (x >> np.uint64(30))) * _FIRST
        x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


def hash_column(column: Any) -> Hashes:
    """(row,) a number for each value, the same for equal ones."""
    if isinstance(column, Documents):
        return np.array([_hash_object(column.text(row, "surrogateescape")) for row in range(len(column))], np.uint64)
    if hasattr(column, "codes"):  # encoded by an engine
        return _hash_numbers(column.codes)
    if not is_arrow(column):
        if column.dtype.kind in "fiubmM":
            return _hash_numbers(column if column.dtype.kind in "fiub" else to_numbers(column))
        try:
            column = as_arrow(column)
        except Exception:  # objects that Arrow has no type for
            return np.array([_hash_object(value) for value in column.tolist()], np.uint64)
    return _hash_arrow(column)


def _hash_object(value: Any) -> int:
    text = value if isinstance(value, str) else "" if value is None else repr(value)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _hash_arrow(column: Any) -> Hashes:
    import pyarrow as pa

    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = column.type
    if pa.types.is_null(kind):
        return np.full(len(column), _MISSING)
    if is_temporal(column):
        return _hash_numbers(to_numbers(column))
    if pa.types.is_floating(kind) or pa.types.is_boolean(kind) or (pa.types.is_integer(kind) and not column.null_count):
        return _hash_numbers(arrow_numbers(column))
    if not pa.types.is_dictionary(kind):
        column = column.dictionary_encode()
    values = column.dictionary
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        try:
            values = values.cast(pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = pa.array([repr(value) for value in values.to_pylist()], pa.large_string())
    hashes = np.append(_hash_text(values.cast(pa.large_string())), _MISSING)
    codes = column.indices.fill_null(len(values)) if column.indices.null_count else column.indices
    return hashes[arrow_numbers(codes)]


def _hash_numbers(values: NDArray) -> Hashes:
    out = np.empty(len(values), np.uint64)
    wide = values.dtype.kind in "iu" and values.dtype.itemsize > 4 and len(values) and _is_wide(values)
    with np.errstate(over="ignore"):
        for start in range(0, len(values), _ROWS):
            some = values[start : start + _ROWS]
            if wide:
                x = some.astype(np.uint64)
            else:
                numbers = some.astype(np.float64) + 0.0  # one zero
                x = numbers.view(np.uint64)
                x[np.isnan(numbers)] = _MISSING
            x ^= x >> np.uint64(32)
            x *= _FIRST
            x ^= x >> np.uint64(29)
            out[start : start + _ROWS] = x
    return out


def _is_wide(values: NDArray) -> bool:
    return bool(int(values.max()) >= _EXACT or int(values.min()) <= -_EXACT)


def _hash_text(values: Any) -> Hashes:
    """Numbers by what they are, other text by a polynomial of its bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n = len(values)
    if not n:
        return np.empty(0, np.uint64)
    _, where, data = values.buffers()
    starts = np.frombuffer(where, np.int64)[values.offset : values.offset + n + 1]
    letters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    out = np.empty(n, np.uint64)
    size = np.diff(starts)
    stops = np.searchsorted(starts, np.arange(starts[0] + _BYTES, starts[-1] + _BYTES, _BYTES), side="right") - 1
    edge = 0
    for stop in [*stops.tolist(), n]:
        stop = min(n, max(stop, edge + 1))
        if stop > edge:
            out[edge:stop] = _polynomials(letters, starts[edge : stop + 1], size[edge:stop])
            edge = stop
    first = letters[np.minimum(starts[:-1], max(0, len(letters) - 1))] if len(letters) else np.zeros(n, np.uint8)
    perhaps = np.flatnonzero((size > 0) & (size < 40) & (((first >= 48) & (first <= 57)) | (first == 45)))
    if len(perhaps):
        numeric = perhaps[arrow_numbers(pc.match_substring_regex(values.take(arrow_indices(perhaps)), _PLAIN))]
        out[numeric] = _hash_numbers(arrow_numbers(values.take(arrow_indices(numeric)).cast(pa.float64())))
    if values.null_count:
        out[arrow_numbers(values.is_null())] = _MISSING
    return out


def _polynomials(letters: NDArray, starts: NDArray, size: NDArray) -> Hashes:
    out = np.zeros(len(size), np.uint64)
    there = np.flatnonzero(size)
    with np.errstate(over="ignore"):
        if len(there):
            powers = np.cumprod(np.full(int(size.max()), _BASE), dtype=np.uint64)
            first = starts[:-1][there] - starts[0]
            place = np.arange(int(starts[-1] - starts[0])) - np.repeat(first, size[there])
            terms = (letters[starts[0] : starts[-1]].astype(np.uint64) + np.uint64(1)) * powers[place]
            out[there] = np.add.reduceat(terms, first)
        return mix(out + size.astype(np.uint64))
