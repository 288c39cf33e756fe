"""Documents: a column of texts as a block of rows, read where it lies, in Arrow's buffers or in Python's strings.

>>> documents = Documents.from_column(["Free prize", None, ""])
>>> len(documents), documents.absent_mask().tolist(), documents.text(0, "strict")
(3, [False, True, False], 'Free prize')
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.labels import is_absent, is_arrow
from candide.errors import InputError, InputTypeError
from candide.kernels import text as kernel

_COPY_DOCUMENTS = 1 << 10  # documents copied at a time


@dataclass(frozen=True, eq=False)
class Documents:
    """Rows of one column of documents: Python objects, or Arrow's bytes and where each document starts in them."""

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
        if isinstance(column, str | bytes | Mapping) or not (
            hasattr(column, "__len__") or isinstance(column, Iterable)
        ):
            what = f"a single {type(column).__name__} where documents are expected"
            raise InputTypeError(what, remedy="pass a list of them")
        if hasattr(column, "to_arrow"):
            column = column.to_arrow()
        if is_arrow(column):
            return _from_arrow(column)
        if hasattr(column, "to_numpy"):
            column = column.to_numpy()
        if isinstance(column, np.ndarray):
            if column.ndim == 2 and column.shape[1] == 1:
                column = column[:, 0]
            if column.ndim != 1:
                what = f"an array of {column.ndim} dimensions where documents are expected"
                raise InputError(what, remedy="pass one document a row")
        return cls(column.tolist() if isinstance(column, np.ndarray) else list(column))

    def __len__(self) -> int:
        return len(self.objects) if self.objects is not None else len(self.starts) - 1  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), 1

    @property
    def width(self) -> int:
        """Bytes of a document, about: what the work for a row grows with."""
        if self.starts is not None:
            return int(self.starts[-1] - self.starts[0]) // max(1, len(self))
        some = (self.objects or [])[:: max(1, len(self) // 256)]
        return sum(len(text) for text in some if hasattr(text, "__len__")) // max(1, len(some))

    def __getitem__(self, rows: slice) -> "Documents":
        start, stop, _ = rows.indices(len(self))
        first = self.first_row + start
        if self.objects is not None:
            return Documents(self.objects[start:stop], first_row=first)
        present = None if self.present is None else self.present[start:stop]
        return Documents(None, self.letters, self.starts[start : stop + 1], present, first)  # type: ignore[index]

    def take(self, rows: NDArray) -> "Documents":
        """Some of the documents, by their places."""
        if self.objects is not None:
            return Documents([self.objects[row] for row in rows.tolist()])
        assert self.letters is not None
        assert self.starts is not None
        sizes = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        letters, first = np.empty(starts[-1], np.uint8), self.starts[:-1][rows]
        for i in range(0, len(rows), _COPY_DOCUMENTS):  # the place of every byte takes eight
            mine = slice(i, min(i + _COPY_DOCUMENTS, len(rows)))
            start, end = starts[mine.start], starts[mine.stop]
            at = np.repeat(first[mine] - starts[mine], sizes[mine])
            letters[start:end] = self.letters[np.arange(start, end) + at]
        return Documents(None, letters, starts, None if self.present is None else self.present[rows])

    @cached_property
    def is_tokenized(self) -> bool:
        """Whether a document is a sequence of words rather than text."""
        return any(isinstance(text, list | tuple | np.ndarray) for text in self.objects or ())

    def absent_mask(self) -> NDArray[np.bool_]:
        """Which rows hold no document."""
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
                raise InputError(
                    f"byte 0x{value[error.start]:02x} at position {error.start} is no UTF-8",
                    row=self.first_row + row,
                    value=value,
                    remedy="pass errors='replace' or errors='ignore', or decode it",
                ) from None
        if isinstance(value, str | list | tuple | np.ndarray):
            return value
        if _is_missing(value):
            return None
        raise InputTypeError(
            f"{value!r} is not a document",
            row=self.first_row + row,
            value=value,
            remedy="pass text, or a list of words",
        )

    def kernel_views(self, lowercase: bool, errors: str) -> tuple[NDArray, NDArray, NDArray, list[Any]]:
        """Addresses, lengths and kinds for the compiled loops, and what must live as long as they are used."""
        assert kernel.compiled is not None
        if self.objects is not None:
            *view, odd = kernel.compiled.gather(self.objects, 0, len(self))
            for row in odd:
                self.text(row, errors)  # an absent value passes, anything else is an error
        else:
            assert self.letters is not None
            assert self.starts is not None
            start = self.starts[:-1].astype(np.int64, copy=False)
            kind = np.full(len(self), 8, np.uint8) if self.present is None else self.present.astype(np.uint8) * 8
            size = self.starts[1:].astype(np.int64, copy=False) - start
            view = [start.astype(np.uint64) + np.uint64(self.letters.ctypes.data), size, kind]
        bad = kernel.compiled.unsound(*view, kernel.character_table(lowercase))
        repaired = [self.text(row, errors) for row in bad.tolist()]
        repaired = [text.lower() for text in repaired] if lowercase else repaired
        for mine, new in zip(view, kernel.compiled.gather(repaired, 0, len(repaired)), strict=False):
            mine[bad] = new
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
        raise InputTypeError(f"a column of {kind} holds no documents", remedy="pass text")
    _, where, data = column.buffers()
    n, at = len(column), column.offset
    starts = np.zeros(1, np.int64) if where is None else np.frombuffer(where, np.int64 if wide else np.int32)
    starts = starts[at : at + n + 1] if len(starts) > n + at else np.zeros(n + 1, np.int64)
    letters = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    present = None if not column.null_count else column.is_valid().to_numpy(zero_copy_only=False)
    return Documents(None, letters, starts, present)
