"""Documents: a column of texts as a block of rows, read from Arrow's buffers or Python's strings without a copy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.arrow_columns import arrow_indices, is_absent, is_arrow
from candide.errors import InputError, InputTypeError
from candide.kernels import text as kernel


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents as Python objects, or as Arrow's bytes and where each document starts in them."""

    objects: list[Any] | None
    letters: NDArray[np.uint8] | None = None
    starts: NDArray | None = None
    present: NDArray[np.bool_] | None = None
    first_row: int = 0  # the number of the first row, for messages

    @classmethod
    def from_column(cls, column: Any) -> "Documents":
        """Read a list, an array, a series or an Arrow array of documents; None and NaN are absent."""
        if isinstance(column, cls):
            return column
        is_iterable = hasattr(column, "__len__") or isinstance(column, Iterable)
        if isinstance(column, str | bytes | Mapping) or not is_iterable:
            what = f"a single {type(column).__name__} where documents are expected"
            raise InputTypeError(what, remedy="pass a list of them")
        if hasattr(column, "to_arrow"):
            column = column.to_arrow()
        if is_arrow(column):
            return _from_arrow(column)
        if hasattr(column, "to_numpy"):
            column = column.to_numpy()
        if isinstance(column, np.ndarray):
            if column.ndim != 1 and (column.ndim != 2 or column.shape[1] != 1):
                what = f"an array of {column.ndim} dimensions where documents are expected"
                raise InputError(what, remedy="pass one document per row")
            column = column.reshape(-1).tolist()
        return cls(list(column))

    def __len__(self) -> int:
        return len(self.objects) if self.objects is not None else len(self.starts) - 1  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 1

    @property
    def width(self) -> int:
        """The approximate bytes of a document."""
        if self.starts is not None:
            return int(self.starts[-1] - self.starts[0]) // max(1, len(self))
        sample = (self.objects or [])[:: max(1, len(self) // 256)]
        return sum(len(text) for text in sample if hasattr(text, "__len__")) // max(1, len(sample))

    def __getitem__(self, rows: slice) -> "Documents":
        start, stop, _ = rows.indices(len(self))
        first = self.first_row + start
        if self.objects is not None:
            return Documents(self.objects[start:stop], first_row=first)
        present = None if self.present is None else self.present[start:stop]
        return Documents(None, self.letters, self.starts[start : stop + 1], present, first)  # type: ignore[index]

    def take(self, rows: NDArray) -> "Documents":
        if self.objects is not None:
            return Documents([self.objects[row] for row in rows.tolist()])
        import pyarrow as pa

        buffers = [None, pa.py_buffer(np.asarray(self.starts, np.int64)), pa.py_buffer(self.letters)]
        column = pa.Array.from_buffers(pa.large_binary(), len(self), buffers).take(arrow_indices(rows))
        return replace(_from_arrow(column), present=None if self.present is None else self.present[rows])

    @cached_property
    def is_tokenized(self) -> bool:
        """Whether a document is a sequence of words rather than text."""
        return any(isinstance(text, list | tuple | np.ndarray) for text in self.objects or ())

    def absent_mask(self) -> NDArray[np.bool_]:
        if self.objects is not None:
            return np.fromiter((_is_missing(text) for text in self.objects), bool, len(self))
        return np.zeros(len(self), bool) if self.present is None else ~self.present

    def text(self, row: int, errors: str) -> Any:
        """One document as a string (or as the sequence that it is); None where absent."""
        if self.objects is None:
            if self.present is not None and not self.present[row]:
                return None
            value: Any = self.letters[self.starts[row] : self.starts[row + 1]].tobytes()  # type: ignore[index]
        else:
            value = self.objects[row]
        if isinstance(value, bytes):
            try:
                return value.decode("utf-8", errors)
            except UnicodeDecodeError as error:
                what = f"byte 0x{value[error.start]:02x} at position {error.start} is not valid UTF-8"
                remedy = "pass errors='replace' or errors='ignore', or decode it"
                raise InputError(what, row=self.first_row + row, value=value, remedy=remedy) from None
        if isinstance(value, str | list | tuple | np.ndarray):
            return value
        if _is_missing(value):
            return None
        what, remedy = f"{value!r} is not a document", "pass text, or a list of words"
        raise InputTypeError(what, row=self.first_row + row, value=value, remedy=remedy)

    def kernel_views(self, lowercase: bool, errors: str) -> tuple[NDArray, NDArray, NDArray, list[Any]]:
        """Addresses, lengths and kinds for the compiled loops, and what must live as long as they are used."""
        assert kernel.compiled is not None
        if self.objects is not None:
            *view, odd = kernel.compiled.gather(self.objects, 0, len(self))
            for row in odd:
                self.text(row, errors)  # an absent value passes, anything else is an error
        else:
            assert self.letters is not None and self.starts is not None  # noqa: PT018
            start = self.starts[:-1].astype(np.int64, copy=False)
            kind = np.full(len(self), 8, np.uint8) if self.present is None else self.present.astype(np.uint8) * 8
            size = self.starts[1:].astype(np.int64, copy=False) - start
            view = [start.astype(np.uint64) + np.uint64(self.letters.ctypes.data), size, kind]
        bad = kernel.compiled.unsound(*view, kernel.character_table(lowercase))
        repaired = [self.text(row, errors) for row in bad.tolist()]
        repaired = [text.lower() for text in repaired] if lowercase else repaired
        for values, new in zip(view, kernel.compiled.gather(repaired, 0, len(repaired)), strict=False):
            values[bad] = new
        return view[0], view[1], view[2], [self, repaired]


def _is_missing(value: Any) -> bool:
    return not isinstance(value, str | bytes | list | tuple | np.ndarray) and is_absent(value)


def _from_arrow(column: Any) -> Documents:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_string_view(kind) or (hasattr(column, "nbytes") and column.nbytes >> 31):
        column = column.cast(pa.large_string())
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Documents(column.to_pylist())
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    if not (wide or pa.types.is_string(kind) or pa.types.is_binary(kind)):
        raise InputTypeError(f"a column of {kind} cannot hold documents", remedy="pass text")
    _, offsets, data = column.buffers()
    n, at = len(column), column.offset
    starts = np.zeros(1, np.int64) if offsets is None else np.frombuffer(offsets, np.int64 if wide else np.int32)
    starts = starts[at : at + n + 1] if len(starts) > n + at else np.zeros(n + 1, np.int64)
    letters = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    present = None if not column.null_count else column.is_valid().to_numpy(zero_copy_only=False)
    return Documents(None, letters, starts, present)
