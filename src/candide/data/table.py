"""Table: one view of rows in memory: an array, a sparse matrix, a data frame, a mapping of columns.

A column is known by its name in a data frame and by its position in an array. ``LIMITS`` bounds how many rows are read.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from candide import kernels
from candide.data import arrow_columns as arrow
from candide.data.blocks import Csr, select_columns
from candide.data.labels import as_column, intervals_to_durations
from candide.data.text_formats import MISSING_MARKERS, parse_plain_number
from candide.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from candide.data.documents import Documents

Name = str | int
DAY = 86_400e6  # microseconds: as a number, a date is days since 1970
_MIN_SHARED_ROWS = 4  # rows per object at which each object is read once
_REMEDY = "pass an array, a sparse matrix, a data frame, a mapping of columns or a list of dictionaries"


@dataclass(frozen=True)
class SampleLimits:
    """How many rows of a source are read before and while a model is fitted: every bound, with its reason."""

    rows: int = 20_000  # of a sample: term weights and column types hardly change with more
    wide_rows: int = 2_000  # of a sample of very many columns; as many show the scale of numbers, or score a class
    checked_rows: int = 4_096  # that a fit searches for problems: more would take longer than a small fit
    audited_rows: int = 50_000  # that a data check reads in a pass of its own: it searches for rare faults
    values: int = 1 << 23  # in the first rows, from which column types are inferred
    documents: int = 100_000  # rows for token weights: tokens are very many,
    text_bytes: int = 1 << 25  # with so many bytes in all: about eight million tokens, which take 300 MB
    searched_rows: int = 4_000_000  # among which those of rare classes are searched for
    extra_terms: int = 200  # terms besides the columns: interactions and discriminants
    token_groups: int = 24  # and groups of tokens
    contributions: int = 60_000_000  # row x class x term: fewer rows where these are many,
    memory_contributions: int = 240_000_000  # but ``wide_rows``, unless even these would have so many: about 1 GB
    row_weight: float = 1e200  # of a row: products of row weights stay finite

    def head_rows(self, n_columns: int) -> int:
        """How many first rows column types are inferred from: fewer where columns are very many."""
        return max(self.wide_rows, min(self.rows, self.values // max(1, n_columns)))

    def n_rows(self, rows: int, n_classes: int, n_columns: int, n_extra_terms: int | None = None) -> int:
        """The size of a sample: fewer than ``rows`` where classes and columns are many."""
        extra = self.extra_terms if n_extra_terms is None else n_extra_terms
        per_row = max(1, n_classes * (n_columns + extra))
        least = min(self.wide_rows, self.memory_contributions // per_row)
        return min(rows, max(self.contributions // per_row, least, 1))


LIMITS = SampleLimits()


@lru_cache(4)
def positional_names(n: int) -> tuple[Name, ...]:
    """The names of columns that have none: their positions. Cached, because there may be very many."""
    return tuple(range(n))


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """A column that an engine has encoded already: the code of each row."""

    codes: NDArray

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows in memory, read by column or as a block of numbers."""

    names: tuple[Name, ...]
    n_rows: int
    source: Any  # ndarray (rows, columns) | Csr | {name: column}
    _converted: dict[Name, Any] = field(default_factory=dict, init=False, repr=False)  # columns converted so far

    @classmethod
    def from_data(cls, data: Any) -> "Table":
        """Read an array, a sparse matrix, a data frame, a mapping of columns or a list of dictionaries."""
        if isinstance(data, cls):
            return data
        if arrow.is_record_list(data):
            data = arrow.columns_from_records(data)
        if isinstance(data, np.ndarray):
            return cls._from_array(data)
        if hasattr(data, "tocsr"):
            return cls._from_sparse(data)
        if isinstance(data, Mapping):
            return cls._from_columns({name: _column_from_values(values, name) for name, values in data.items()})
        if hasattr(type(data), "columns") or hasattr(data, "__arrow_c_stream__"):
            return cls._from_frame(data)
        if (isinstance(data, Sequence) and not isinstance(data, str | bytes)) or hasattr(data, "__array__"):
            try:
                array = np.asarray(data)
            except ValueError as error:
                raise InputError(f"the rows differ in length or depth: {error}") from None
            is_mixed = array.dtype.kind in "US" and array.ndim == 2  # numpy turned numbers beside text into text
            return cls._from_array(np.array(data, dtype=object) if is_mixed else array)
        path = "; a file is read by cd.fit, and scored by predict_table" if isinstance(data, str | os.PathLike) else ""
        raise InputTypeError(f"cannot read rows from {type(data).__name__}", remedy=_REMEDY + path)

    @classmethod
    def _from_array(cls, array: NDArray) -> "Table":
        if array.dtype.kind == "c":
            raise InputTypeError("Complex data not supported; pass real numbers, such as the parts or the modulus")
        array = as_column(array)
        if array.dtype.kind not in "fiubOUS":
            raise InputTypeError(f"cannot use an array of {array.dtype}", remedy="pass numbers, text or objects")
        if array.ndim != 2:
            remedy = "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row"
            raise InputError(f"expected a 2-D array (rows, columns), got {array.ndim}-D array instead. {remedy}")
        return cls(positional_names(array.shape[1]), array.shape[0], _to_plain_array(array))

    @classmethod
    def _from_sparse(cls, matrix: Any) -> "Table":
        rows = matrix.tocsr()
        if rows.ndim != 2:
            raise InputError(f"expected a sparse matrix of 2 dimensions, got {rows.ndim}", remedy="reshape it")
        if rows.dtype.kind not in "fiub":
            raise InputTypeError(f"cannot use a sparse matrix of {rows.dtype}", remedy="pass numbers")
        if not rows.has_canonical_format:  # x > threshold and log x! are of whole values, not of their parts
            rows = rows.copy()
            rows.sum_duplicates()
        data = _to_plain_array(rows.data)
        return cls(positional_names(rows.shape[1]), rows.shape[0], Csr(data, rows.indices, rows.indptr, rows.shape[1]))

    @classmethod
    def _from_columns(cls, columns: dict[Name, Any]) -> "Table":
        for name, column in columns.items():
            native = column.to_native() if hasattr(column, "to_native") else column
            arrow.check_column(name, getattr(native, "dtype", None))
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"columns differ in length: {lengths}", value=lengths)
        return cls(tuple(columns), next(iter(lengths.values()), 0), columns)

    @classmethod
    def _from_frame(cls, data: Any) -> "Table":
        names = list(getattr(data, "column_names", ())) if arrow.is_arrow(data) else []
        if names and len(set(names)) == len(names):
            return cls._from_columns(dict(zip(names, data.columns, strict=True)))
        import narwhals as nw

        try:
            frame = nw.from_native(data, eager_only=True)
        except nw.exceptions.DuplicateError as error:
            text = " ".join(str(error).split())
            raise InputError(f"two columns have the same name ({text})", remedy="rename one of them") from None
        except TypeError:
            import pyarrow as pa

            try:
                frame = nw.from_native(pa.table(data), eager_only=True)
            except (TypeError, ValueError):  # a lazy frame, a series
                hint = "(of a lazy frame, its collect(); of a series, its to_frame())"
                raise InputTypeError(f"cannot read rows from {type(data).__name__}; {_REMEDY} {hint}") from None
        names = list(frame.columns)
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise InputError(f"two columns have the same name, {twice!r}", value=twice, remedy="rename one of them")
        table = cls._from_columns(dict(zip(names, frame.iter_columns(), strict=True)))
        return table if names else cls((), len(frame), {})

    def rename_columns(self, names: tuple[Name, ...]) -> "Table":
        """The same columns under other names, in the same order."""
        if isinstance(self.source, Csr):
            return Table(names, self.n_rows, self.source)
        columns = self.source.T if isinstance(self.source, np.ndarray) else self.source.values()
        return Table(names, self.n_rows, dict(zip(names, columns, strict=True)))

    @property
    def dates(self) -> frozenset[str]:
        """The columns of dates, with times or without."""
        return self._temporal_names("date")

    @property
    def times(self) -> frozenset[str]:
        """The columns of times of day or durations."""
        return self._temporal_names("time")

    def _temporal_names(self, kind: str) -> frozenset[str]:
        columns = self.source.items() if isinstance(self.source, dict) else ()
        is_kind = arrow.is_temporal_kind
        return frozenset(name for name, column in columns if isinstance(name, str) and is_kind(column, kind))

    @property
    def is_sparse(self) -> bool:
        return isinstance(self.source, Csr)

    def numbers(self, names: tuple[Name, ...]) -> NDArray | Csr:
        """A block of numbers, NaN where absent: a view of the data where possible, never a wider copy."""
        if isinstance(self.source, Csr):
            return self.source if names == self.names else select_columns(self.source, names)
        if isinstance(self.source, np.ndarray) and self.source.dtype.kind in "fiub":
            return self.source if names == self.names else self.source[:, np.array(names, np.intp)]
        if not names:
            return np.empty((self.n_rows, 0))
        return _stack_columns([to_numbers(self.column(name), name) for name in names])

    def column(self, name: Name) -> Any:
        """One column: an ndarray, or an Arrow array where it is text, dates or booleans with gaps."""
        if isinstance(self.source, np.ndarray):
            column = self.source[:, self.names.index(name)]
            return arrow.to_typed_column(column) if column.dtype.kind == "O" else column
        if isinstance(self.source, Csr):
            raise InputTypeError("a sparse matrix cannot hold categories; pass a dense array or a data frame")
        if name not in self._converted:
            self._converted[name] = _convert_column(self.source[name])
        column = self._converted[name]
        if arrow.is_arrow(column):
            arrow.check_not_nested(column, name)
        return column

    def head(self, name: Name, n_rows: int) -> Any:
        """The first values of a column; no others are converted."""
        if name in self._converted or not isinstance(self.source, Mapping):
            return self.column(name)[:n_rows]
        return _convert_column(self.source[name][:n_rows])

    def documents_or_column(self, name: Name) -> Any:
        from candide.data.documents import Documents

        column = self.source[name] if isinstance(self.source, dict) else None
        return column if isinstance(column, Documents) else self.column(name)

    def documents(self, name: Name) -> "Documents":
        from candide.data.documents import Documents

        if isinstance(self.source, Csr):
            raise InputTypeError("a sparse matrix cannot hold documents; pass a list, or a data frame")
        column = self.source[:, self.names.index(name)] if isinstance(self.source, np.ndarray) else self.source[name]
        return Documents.from_column(column.to_native() if hasattr(column, "to_native") else column)


def _to_plain_array(array: NDArray) -> NDArray:
    """The array as the kernels read it: in this machine's byte order, masked values as NaN."""
    if isinstance(array, np.ma.MaskedArray):
        kind = np.result_type(array.dtype, np.float32) if array.dtype.kind in "fiub" else np.dtype(object)
        return np.ma.filled(array.astype(kind), np.nan)
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float32 if array.dtype.itemsize < 4 else np.float64)
    return np.asarray(array, array.dtype.newbyteorder("="))


def _column_from_values(values: Any, name: Name) -> Any:
    """A column of a mapping: an ndarray or an Arrow array."""
    if isinstance(values, EncodedColumn):
        return values
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        remedy = "pass a sequence of values, one per row"
        raise InputTypeError(f"a single {type(values).__name__}", column=name, remedy=remedy)
    if isinstance(values, list | tuple) and not isinstance(next((v for v in values if v is not None), None), str):
        try:  # numpy would copy text with every value as wide as the longest
            array = np.asarray(values)
        except (ValueError, OverflowError):  # values that are themselves sequences
            return as_column(values)
        return array if array.ndim == 1 and array.dtype.kind in "fiub" else as_column(values)
    column = as_column(values)
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(f"{column.ndim} dimensions", column=name, remedy="pass one value per row")
    return column


def _convert_column(column: Any) -> Any:
    """An ndarray of numbers (NaN where null) or objects, or an Arrow array, or an encoded column."""
    if isinstance(column, EncodedColumn):
        return column
    if isinstance(column, np.ndarray):
        return arrow.to_typed_column(column) if column.dtype.kind == "O" else _to_plain_array(column)
    if arrow.is_arrow(column):
        return _from_arrow(column)
    native = column.to_native()
    if arrow.is_sparse_type(getattr(native, "dtype", None)):
        return _convert_column(np.asarray(native))
    if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind in "fiubO":
        array = native.to_numpy()
        return _from_objects(array) if array.dtype.kind == "O" else _to_plain_array(array)
    gaps = column.dtype.is_integer() and column.null_count()  # as floats, wide ones would be rounded
    if column.dtype.is_numeric() and not column.dtype.is_decimal() and not gaps:
        return _to_plain_array(column.to_numpy())
    return _from_arrow(column.to_arrow())


def _from_objects(column: NDArray) -> Any:
    """Objects as Arrow reads them; an object that several rows share is read once."""
    import pyarrow as pa

    shared = kernels.distinct(column, len(column) // _MIN_SHARED_ROWS)
    first, place = (slice(None), None) if shared is None else shared
    try:
        values = _from_arrow(pa.array(column[first], from_pandas=True))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):  # objects of several types
        return arrow.to_typed_column(column)
    return values if place is None else values.take(place)


def _from_arrow(column: Any) -> Any:
    import pyarrow as pa

    column = arrow.to_plain_type(column)
    kind = column.type
    if pa.types.is_integer(kind) and column.null_count and _has_inexact_integers(column):
        return column
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or (pa.types.is_boolean(kind) and not column.null_count):
        return arrow.arrow_numbers(column)
    if pa.types.is_decimal(kind) and not kind.scale:
        return column if _has_inexact_integers(column) else _from_arrow(column.cast(pa.float64()))
    if pa.types.is_decimal(kind):  # by its text, because Arrow's cast is off by a bit
        return _from_arrow(column.cast(pa.string()).cast(pa.float64()))
    is_plain = pa.types.is_dictionary(kind) or pa.types.is_null(kind) or pa.types.is_interval(kind)
    return column if is_plain or arrow.is_nested(kind) else column.dictionary_encode()  # hashed once, read often


def _has_inexact_integers(column: Any) -> bool:
    """Whether an Arrow column has a whole number that is not exact as a float."""
    import pyarrow.compute as pc

    return any(end is not None and abs(end) > 1 << 53 for end in pc.min_max(column).as_py().values())


def to_numbers(column: Any, name: Name | None = None) -> NDArray:
    """An ndarray or Arrow array as numbers, NaN where absent; dates and times are days."""
    if arrow.is_arrow(column):
        column = _from_arrow_numbers(column)
    if column.dtype.kind in "fiub":
        return column
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(f"{column.dtype.kind}8[us]").astype(np.int64) / DAY)
    values = column.tolist()
    with suppress(TypeError, ValueError, OverflowError):
        if not any(isinstance(value, str) for value in values):
            return column.astype(np.float64)  # None becomes NaN
    parsed: dict[str, float] = {}  # many texts are equal
    return np.array([_parse_number(value, name, row, parsed) for row, value in enumerate(values)], np.float64)


def is_temporal(column: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_temporal(arrow.value_type(column.type))


def _from_arrow_numbers(column: Any) -> NDArray:
    """An Arrow column as an ndarray: numbers, objects, dates, durations or times since midnight (NaT where null)."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return arrow.arrow_floats(column)
    plain = column.cast(arrow.value_type(kind))
    if not is_temporal(plain):
        return as_column(plain.to_pylist())
    if pa.types.is_interval(plain.type):
        plain = intervals_to_durations(plain)
    if pa.types.is_time(plain.type):
        plain = plain.cast(pa.time64("us")).cast(pa.int64()).cast(pa.duration("us"))
    return plain.to_numpy(zero_copy_only=False) if isinstance(plain, pa.Array) else plain.to_numpy()


def _parse_number(value: Any, name: Name | None, row: int, parsed: dict[str, float]) -> float:
    try:
        if isinstance(value, str):
            if value not in parsed:
                parsed[value] = np.nan if value.strip().lower() in MISSING_MARKERS else parse_plain_number(value)
            return parsed[value]
        return np.nan if arrow.is_absent(value) else float(value)
    except (TypeError, ValueError, OverflowError):  # a whole number may be too long for a float
        remedy = "send null (None) where it is missing; to use text, fit the column as categorical"
        raise InputError(f"{value!r} is not a number", column=name, row=row, value=value, remedy=remedy) from None


def _stack_columns(columns: list[NDArray]) -> NDArray:
    """Columns as one block: a view if they are evenly spaced in one array, as in a data frame, else a copy."""
    first = columns[0]
    if len(columns) == 1:
        return first[:, None]
    at = [c.__array_interface__["data"][0] for c in columns]
    even = first.base is not None and all(c.base is first.base for c in columns) and len(set(np.diff(at).tolist())) == 1
    if even and len({(c.dtype, c.strides) for c in columns}) == 1:
        shape, strides = (len(first), len(columns)), (*first.strides, at[1] - at[0])
        return np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)
    out = np.empty((len(first), len(columns)), np.result_type(*columns), order="F")
    for j, column in enumerate(columns):
        out[:, j] = column
    return out
