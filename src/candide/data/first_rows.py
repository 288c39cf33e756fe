"""The first rows of a stream, kept until no further row can change the type of a column.

Types of columns are inferred from the first rows. If these come in chunks, a decision on the first chunk would depend
on its size. So the rows are kept until there are as many as are read of a table, or until the type of every column is
certain. Most columns of numbers are certain once a value has a fraction. Columns of text are not: a later row may
decide how numbers and dates are written, or that they are words.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.arrow_columns import is_absent, is_arrow
from candide.data.blocks import Floats
from candide.data.column_types import ColumnSchema, infer_column, is_certain
from candide.data.labels import as_column
from candide.data.notes import Note
from candide.data.table import LIMITS, Name, Table
from candide.data.text_columns import has_declared_levels, is_text

_MAX_PIECES = 32  # chunks that are kept apart before they are joined
_MIN_ROWS_PER_LEVEL = 10  # on average, at which a column of text stays a category unless a new text comes

FindFormats = Callable[[Table], Any]  # an object with text_formats, dates, times and parse_table(table)


@dataclass(frozen=True, eq=False)
class _Piece:
    columns: Mapping[Name, Any]
    y: NDArray
    weight: Floats | None

    @classmethod
    def from_table(cls, table: Table, names: Collection[Name], y: NDArray, weight: Floats | None) -> Self:
        """A copy, because the caller may write into the arrays afterwards.

        Text is coded only if it is declared to be categories.
        """
        columns = {}
        for name in names:
            column = table.column(name)
            source = table.source[name] if isinstance(table.source, Mapping) else None
            if not is_arrow(column):
                column = np.array(column)
            elif str(column.type).startswith("dictionary") and is_text(column) and not has_declared_levels(source):
                column = column.cast(column.type.value_type)
            columns[name] = column
        return cls(columns, y.copy(), None if weight is None else weight.copy())


@dataclass(frozen=True, eq=False)
class FirstRows:
    """The first rows of a stream, the types of their columns, and what may still change these."""

    columns: tuple[ColumnSchema, ...]
    n_rows: int
    undecided: Mapping[Name, "_Values | None"]  # with the values so far, if only a new value can change the type
    formats: Any = field(default=None, repr=False)  # None: no column may hold numbers or dates as text
    _pieces: tuple[_Piece, ...] = field(default=(), repr=False)
    _typed: Mapping[Name, NDArray] = field(default_factory=dict, repr=False)  # the numbers and dates read from text
    _declared: tuple[Name, ...] = ()  # columns declared to be numbers, whose text may write numbers or dates

    @classmethod
    def from_chunk(
        cls,
        table: Table,
        y: NDArray,
        weight: Floats | None,
        names: Collection[Name],
        find_formats: FindFormats | None = None,
        declared: Collection[Name] = (),
    ) -> Self:
        """The first chunk: ``names`` are the columns of undeclared type, ``declared`` those declared to be numbers."""
        most = LIMITS.head_rows(len(table.names))
        declared = tuple(name for name in declared if _may_hold_text(table.head(name, most)))
        has_text = declared or any(_may_hold_text(table.head(name, 1)) for name in names)
        formats = find_formats(table) if find_formats and has_text else None
        typed = _read_text(formats, table)
        heads = {name: typed[name] if name in typed else table.head(name, most) for name in names}
        columns = tuple(infer_column(name, head[:most]) for name, head in heads.items())
        undecided = _find_undecided(columns, heads, {*typed, *declared}) if table.n_rows < most else {}
        if not undecided:
            return cls(columns, table.n_rows, {}, formats)
        pieces = (_Piece.from_table(table, table.names, y, weight),)
        return cls(columns, table.n_rows, undecided, formats, pieces, typed, declared)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rows are not pickled with a model: the types of columns are then final."""
        return type(self), (self.columns, self.n_rows, dict.fromkeys(self.undecided))

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    @property
    def has_rows(self) -> bool:
        return bool(self._pieces)

    def without_rows(self) -> Self:
        """The same types, which are final."""
        return replace(self, _pieces=(), _typed={})

    def has_changed_schema(self, later: "FirstRows") -> bool:
        """Whether a column has another type or format with more rows."""
        kinds, later_kinds = ([column.kind for column in rows.columns] for rows in (self, later))
        return kinds != later_kinds or _format_key(self.formats) != _format_key(later.formats)

    def notes(self) -> list[Note]:
        """A note if types are final after few rows: the rows went when the model was pickled or changed."""
        if self.has_rows or not self.undecided:
            return []
        names = formatting.format_columns(list(self.undecided), 5)
        text = f"{names}: what they hold was decided on the first {formatting.format_count(self.n_rows)}, and stays so"
        return [Note("decided-early", text, columns=tuple(self.undecided), remedy="name their event models in events")]

    def append(self, table: Table, y: NDArray, weight: Floats | None, find_formats: FindFormats | None = None) -> Self:
        first, n_rows, present = self._pieces[0].columns, self.n_rows + table.n_rows, set(table.names)
        names = [name for name in first if name in present]  # a column that is left out may be gone
        most = LIMITS.head_rows(len(first))
        pieces = (*self._pieces, _Piece.from_table(table, names, y, weight))
        if len(pieces) > _MAX_PIECES:
            pieces = (_join_pieces(pieces, names),)
        rows = replace(self, n_rows=n_rows, _pieces=pieces)._with_formats(table, find_formats)
        undecided = {name: known for name, known in self.undecided.items() if name in present}
        changed = {name for name, known in undecided.items() if _may_change_type(known, table.column(name))}
        changed |= (self._typed.keys() ^ rows._typed.keys()) & present
        changed -= set(self._declared)
        heads = {n: (rows._typed[n] if n in rows._typed else rows._column(n))[:most] for n in changed}
        columns = tuple(infer_column(c.name, heads[c.name]) if c.name in heads else c for c in self.columns)
        undecided = {name: known for name, known in undecided.items() if name not in heads}
        undecided |= _find_undecided([column for column in columns if column.name in heads], heads, rows._typed)
        return replace(rows, columns=columns, undecided=undecided if n_rows < most else {})

    def _with_formats(self, last_rows: Table, find_formats: FindFormats | None) -> Self:
        """The same rows with the formats of all of them; ``last_rows`` were added last."""
        names = list(self._pieces[-1].columns)
        has_text = any(_may_hold_text(piece.columns[name]) for piece in self._pieces for name in names)
        if find_formats is None or not has_text:
            return self
        formats = find_formats(self.join()[0])
        before = {} if self.formats is None else self.formats.text_formats
        last = _read_text(formats, last_rows)
        typed = {}
        for name, values in self._typed.items():
            kind = "M" if name in formats.dates else "m" if name in formats.times else ""
            is_same_kind = kind == (values.dtype.kind if values.dtype.kind in "mM" else "")
            if name in last and is_same_kind and before.get(str(name)) == formats.text_formats.get(str(name)):
                typed[name] = np.concatenate([values, last[name]])
        others = {name: self._column(name) for name in names if name not in typed}
        return replace(self, formats=formats, _typed=typed | _read_text(formats, Table.from_data(others)))

    def _column(self, name: Name) -> Any:
        return _join_columns([piece.columns[name] for piece in self._pieces])

    def join(self) -> tuple[Table, NDArray, Floats | None]:
        """The rows as one table, with labels and weights."""
        rows = _join_pieces(self._pieces, list(self._pieces[-1].columns))
        return Table.from_data(rows.columns), rows.y, rows.weight


@dataclass(frozen=True)
class _Values:
    kind: str
    values: frozenset[Any]

    @classmethod
    def from_column(cls, column: Any) -> "_Values | None":
        """None if they cannot be compared."""
        if is_arrow(column):
            kind = getattr(column.type, "value_type", column.type)
            return cls(str(kind), frozenset(column.unique().to_pylist()) - {None})
        if column.dtype.kind != "O":
            return cls(_type_name(column), frozenset(np.unique(column[column == column]).tolist()))
        try:
            return cls("O", frozenset(value for value in column.tolist() if not is_absent(value)))
        except TypeError:
            return None


def _type_name(column: NDArray) -> str:
    return "number" if column.dtype.kind in "fiu" else column.dtype.kind


def _format_key(formats: Any) -> tuple[Any, ...]:
    return ({}, frozenset(), frozenset()) if formats is None else (formats.text_formats, formats.dates, formats.times)


def _read_text(formats: Any, table: Table) -> dict[Name, NDArray]:
    """The columns that write numbers and dates as text, as numbers and dates."""
    if formats is None or not formats.text_formats:
        return {}
    typed = formats.parse_table(table)
    return {name: typed.column(name) for name in table.names if str(name) in formats.text_formats}


def _find_undecided(
    columns: Sequence[ColumnSchema], heads: Mapping[Name, Any], texts: Collection[Name]
) -> dict[Name, _Values | None]:
    """The columns whose type further rows may change, with their values if only a new value may.

    Any row may change the format of ``texts``.
    """
    out: dict[Name, _Values | None] = dict.fromkeys(texts)
    for column in columns:
        values = heads[column.name]
        if column.name in out or is_certain(column, values):
            continue
        known = _Values.from_column(values) if column.kind in ("whole", "category") and not column.reason else None
        out[column.name] = known if known is not None and _is_stable(known, values) else None
    return out


def _is_stable(known: _Values, column: Any) -> bool:
    """Whether a column keeps its type as long as no new value comes: text must repeat often enough."""
    if not known.values or known.kind in ("number", "b"):
        return bool(known.values)
    n_absent = column.null_count if is_arrow(column) else sum(map(is_absent, column.tolist()))
    return len(known.values) * _MIN_ROWS_PER_LEVEL <= len(column) - n_absent


def _may_change_type(known: _Values | None, column: Any) -> bool:
    new = None if known is None else _Values.from_column(column)
    return known is None or new is None or new.kind != known.kind or not new.values <= known.values


def _may_hold_text(column: Any) -> bool:
    """Whether values are text, or missing, so that text may follow."""
    return is_text(column) or (is_arrow(column) and str(column.type) == "null")


def _join_pieces(pieces: Sequence[_Piece], names: Sequence[Name]) -> _Piece:
    columns = {name: _join_columns([piece.columns[name] for piece in pieces]) for name in names}
    y = _join_columns([piece.y for piece in pieces])
    if all(piece.weight is None for piece in pieces):
        return _Piece(columns, y, None)
    weight = [np.ones(len(piece.y)) if piece.weight is None else piece.weight for piece in pieces]
    return _Piece(columns, y, np.concatenate(weight))


def _join_columns(columns: Sequence[Any]) -> Any:
    """Several columns as one: in their type if they share one or have numbers and booleans, else as objects."""
    if len(columns) == 1:
        return columns[0]
    if all(is_arrow(column) for column in columns):
        import pyarrow as pa

        chunks = [chunk for column in columns for chunk in getattr(column, "chunks", [column])]
        if len({chunk.type for chunk in chunks}) == 1:
            return pa.chunked_array(chunks).unify_dictionaries().combine_chunks()
    elif not any(is_arrow(column) for column in columns):
        kinds = {_type_name(column) for column in columns}
        if len(kinds) == 1 or kinds == {"b", "number"}:  # booleans among numbers are 0 and 1, as in one array
            return np.concatenate(columns)
    return as_column([v for c in columns for v in (c.to_pylist() if is_arrow(c) else c.tolist())])
