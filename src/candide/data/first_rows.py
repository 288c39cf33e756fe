"""First rows: the start of a stream of rows, kept until no further row can change the kind of a column.

The kind of a column that nobody declared is decided by its first rows. Where these come in chunks, a decision on the
first chunk would depend on its size. So the rows are kept until there are as many as one look at a table takes
(``rows_of_look``), or until the kind of every column is certain. Most columns of numbers are certain at once: a
fraction makes a column a number for good. Columns of text are not: a later row may decide how numbers and dates are
written, or that they are words. So their formats are decided again with every chunk, as kinds are.

>>> rows = FirstRows.from_chunk(Table.from_data({"n": [0, 1, 1]}), np.array(["a", "b", "b"]), None, ["n"])
>>> more = rows.append(Table.from_data({"n": [7, 1]}), np.array(["a", "b"]), None)
>>> [column.kind for column in rows.columns], [column.kind for column in more.columns], more.table.numbers(("n",)).T
(['category'], ['number'], array([[0, 1, 1, 7, 1]]))
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Floats
from candide.data.column_types import ColumnSchema, infer_column, is_certain
from candide.data.labels import as_column, is_absent, is_arrow
from candide.data.limits import LIMITS
from candide.data.notes import Note
from candide.data.table import Name, Table
from candide.data.text_formats import TextFormat
from candide.data.text_values import has_declared_levels, is_text

_MAX_PIECES = 32  # chunks that are kept apart, before they are joined into one
_MIN_ROWS_PER_LEVEL = 10  # rows of each text on average from which on a column is a category if no new text comes


class Formats(Protocol):
    """How columns of text write numbers, dates and times."""

    @property
    def text_formats(self) -> Mapping[str, TextFormat]:
        """The formats, by the name of the column."""

    @property
    def dates(self) -> frozenset[Name]:
        """The columns that hold dates."""

    @property
    def times(self) -> frozenset[Name]:
        """The columns that hold times of day or durations."""

    def parse_table(self, table: Table) -> Table:
        """The same rows with numbers, dates and times in the place of text."""


FindFormats = Callable[[Table], Formats]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some rows: their columns, labels and weights."""

    columns: Mapping[Name, Any]
    y: NDArray
    weight: Floats | None

    @classmethod
    def from_table(cls, table: Table, names: Collection[Name], y: NDArray, weight: Floats | None) -> Self:
        """A copy of some columns: the caller may write into the arrays afterwards."""
        columns = {name: _copy_column(table, name) for name in names}
        return cls(columns, y.copy(), None if weight is None else weight.copy())


@dataclass(frozen=True, eq=False)
class FirstRows:
    """The first rows of a stream, the kinds of their columns, and what may still change these. It is not modified."""

    columns: tuple[ColumnSchema, ...]
    n_rows: int
    undecided: Mapping[Name, "_Values | None"]  # the values so far, where the kind stays if no other value comes
    formats: Formats | None = field(default=None, repr=False)  # None: no column may hold numbers or dates as text
    _pieces: tuple[_Piece, ...] = field(default=(), repr=False)
    _typed: Mapping[Name, NDArray] = field(default_factory=dict, repr=False)  # the numbers and dates read from text
    _declared: tuple[Name, ...] = ()  # columns of declared kind, whose text may write numbers or dates

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
        """The first chunk.

        ``names`` are the columns whose kind nobody declared, ``declared`` those that are declared to be numbers.
        """
        most = LIMITS.head_rows(len(table.names))
        declared = tuple(name for name in declared if _may_hold_text(table.head(name, most)))
        has_text = declared or any(_may_hold_text(table.head(name, 1)) for name in names)
        formats = find_formats(table) if find_formats and has_text else None
        typed = _read_text(formats, table)
        heads = {name: typed[name] if name in typed else table.head(name, most) for name in names}
        columns = tuple(infer_column(name, head[:most]) for name, head in heads.items())
        undecided: dict[Name, _Values | None] = {}
        if table.n_rows < most:
            undecided = _find_undecided(columns, heads, {*typed, *declared})
        if not undecided:
            return cls(columns, table.n_rows, {}, formats)
        pieces = (_Piece.from_table(table, table.names, y, weight),)
        return cls(columns, table.n_rows, undecided, formats, pieces, typed, declared)

    def __reduce__(self) -> tuple[Any, ...]:
        """Rows are not pickled with a model: its kinds of columns are then those so far."""
        return type(self), (self.columns, self.n_rows, dict.fromkeys(self.undecided))

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    @property
    def has_rows(self) -> bool:
        """Whether the rows are at hand, so that a kind may be decided again."""
        return bool(self._pieces)

    def without_rows(self) -> Self:
        """The same kinds, decided for good."""
        return replace(self, _pieces=(), _typed={})

    def has_changed_schema(self, later: "FirstRows") -> bool:
        """Whether a column is of another kind, or of another format, once more rows are there."""
        kinds = [column.kind for column in self.columns] != [column.kind for column in later.columns]
        return kinds or self._formatted != later._formatted

    @property
    def _formatted(self) -> tuple[Mapping[str, TextFormat], frozenset[Name], frozenset[Name]]:
        formats = self.formats
        return (
            ({}, frozenset(), frozenset()) if formats is None else (formats.text_formats, formats.dates, formats.times)
        )

    def notes(self) -> list[Note]:
        """A note where kinds are decided for good on few rows: the rows went when the model was pickled or changed."""
        if self.has_rows or not self.undecided:
            return []
        names = formatting.format_columns(list(self.undecided), 5)
        text = f"{names}: what they hold was decided on the first {formatting.format_count(self.n_rows)}, and stays so"
        return [Note("decided-early", text, columns=tuple(self.undecided), remedy="name their event models in events")]

    def append(self, table: Table, y: NDArray, weight: Floats | None, find_formats: FindFormats | None = None) -> Self:
        """These rows and more, with the kinds and formats of all of them."""
        there, n_rows = set(table.names), self.n_rows + table.n_rows
        names = [name for name in self._pieces[0].columns if name in there]  # one that was left out may be gone
        most = LIMITS.head_rows(len(self._pieces[0].columns))
        pieces = (*self._pieces, _Piece.from_table(table, names, y, weight))
        if len(pieces) > _MAX_PIECES:
            pieces = (_join_pieces(pieces, names),)
        rows = replace(self, n_rows=n_rows, _pieces=pieces)._with_formats(table, find_formats)
        changed = {
            name for name, known in self.undecided.items() if name in there and _may_change_kind(known, table, name)
        }
        changed |= {name for name in self._typed.keys() ^ rows._typed.keys() if name in there}
        seen = {name: rows._head(name, most) for name in changed.difference(self._declared)}
        columns = tuple(infer_column(one.name, seen[one.name]) if one.name in seen else one for one in self.columns)
        undecided = {name: known for name, known in self.undecided.items() if name in there and name not in seen}
        undecided |= _find_undecided([one for one in columns if one.name in seen], seen, rows._typed)
        return replace(rows, columns=columns, undecided=undecided)._settle_if_full(most)

    def _with_formats(self, last_rows: Table, find_formats: FindFormats | None) -> Self:
        """The same rows with the formats of all of them; ``last_rows`` were added last."""
        names = list(self._pieces[-1].columns)
        has_text = any(_may_hold_text(piece.columns[name]) for piece in self._pieces for name in names)
        if find_formats is None or not has_text:
            return self
        formats = find_formats(self.table)
        before = self._formatted[0]
        same = [
            name
            for name in self._typed
            if before.get(str(name)) == formats.text_formats.get(str(name))
            and (self._typed[name].dtype.kind == "M") == (name in formats.dates)
            and (self._typed[name].dtype.kind == "m") == (name in formats.times)
        ]
        last = _read_text(formats, last_rows)
        typed = {name: np.concatenate([self._typed[name], last[name]]) for name in same if name in last}
        others = {
            name: _join_columns([piece.columns[name] for piece in self._pieces]) for name in names if name not in typed
        }
        return replace(self, formats=formats, _typed=typed | _read_text(formats, Table.from_data(others)))

    def _head(self, name: Name, most: int) -> Any:
        """The first values of a column, in the place of text the numbers and dates that it writes."""
        whole = (
            self._typed[name] if name in self._typed else _join_columns([piece.columns[name] for piece in self._pieces])
        )
        return whole[:most]

    def _settle_if_full(self, most: int) -> Self:
        """Make decisions final once there are enough rows."""
        return replace(self, undecided={}) if self.n_rows >= most else self

    @property
    def table(self) -> Table:
        """All rows."""
        return Table.from_data(dict(self._joined_piece.columns))

    @property
    def y(self) -> NDArray:
        """Their labels."""
        return self._joined_piece.y

    @property
    def weight(self) -> Floats | None:
        """Their weights; None where every row counts once."""
        return self._joined_piece.weight

    @property
    def _joined_piece(self) -> _Piece:
        return _join_pieces(self._pieces, list(self._pieces[-1].columns))


@dataclass(frozen=True)
class _Values:
    """The different values of a column, and their type."""

    kind: str
    values: frozenset[Any]

    @classmethod
    def from_column(cls, column: Any) -> "_Values | None":
        """None where they cannot be compared."""
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


def _read_text(formats: Formats | None, table: Table) -> dict[Name, NDArray]:
    """The columns that write numbers and dates as text, as numbers and dates."""
    if formats is None or not formats.text_formats:
        return {}
    typed = formats.parse_table(table)
    return {name: typed.column(name) for name in table.names if str(name) in formats.text_formats}


def _find_undecided(
    columns: Sequence[ColumnSchema], heads: Mapping[Name, Any], texts: Collection[Name]
) -> dict[Name, _Values | None]:
    """The columns whose kind further rows may change; with their values, where only a new value may.

    Any row may change the format of ``texts``.
    """
    found: dict[Name, _Values | None] = dict.fromkeys(texts)
    for column in columns:
        values = heads[column.name]
        if column.name in found or is_certain(column, values):
            continue
        known = _Values.from_column(values) if column.kind in ("whole", "category") and not column.reason else None
        stays = (
            known is not None
            and bool(known.values)
            and (known.kind in ("number", "b") or _is_stable_category(known, values))
        )
        found[column.name] = known if stays else None
    return found


def _is_stable_category(known: _Values, column: Any) -> bool:
    """Whether a column keeps its kind as long as no new value comes: text must repeat often enough."""
    if not known.values or known.kind in ("number", "b"):
        return bool(known.values)
    absent = column.null_count if is_arrow(column) else sum(map(is_absent, column.tolist()))
    return len(known.values) * _MIN_ROWS_PER_LEVEL <= len(column) - absent


def _may_change_kind(known: _Values | None, table: Table, name: Name) -> bool:
    """Whether rows may change the kind of a column."""
    more = None if known is None else _Values.from_column(table.column(name))
    return known is None or more is None or more.kind != known.kind or not more.values <= known.values


def _may_hold_text(column: Any) -> bool:
    """Whether values are text, or missing, so that text may follow."""
    return is_text(column) or (is_arrow(column) and str(column.type) == "null")


def _copy_column(table: Table, name: Name) -> Any:
    """A copy of a column; text is coded only where it is declared to be categories."""
    column = table.column(name)
    if not is_arrow(column):
        return np.array(column)
    own = table.source[name] if isinstance(table.source, Mapping) else None
    is_coded = str(column.type).startswith("dictionary") and is_text(column)
    return column.cast(column.type.value_type) if is_coded and not has_declared_levels(own) else column


def _join_pieces(pieces: Sequence[_Piece], names: Sequence[Name]) -> _Piece:
    """Pieces as one, with these columns."""
    columns = {name: _join_columns([piece.columns[name] for piece in pieces]) for name in names}
    y = _join_columns([piece.y for piece in pieces])
    if all(piece.weight is None for piece in pieces):
        return _Piece(columns, y, None)
    weight = [np.ones(len(piece.y)) if piece.weight is None else piece.weight for piece in pieces]
    return _Piece(columns, y, np.concatenate(weight))


def _join_columns(columns: Sequence[Any]) -> Any:
    """One column of several: in their type if they share one or have numbers and booleans, else as objects."""
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
    values = [value for column in columns for value in (column.to_pylist() if is_arrow(column) else column.tolist())]
    return as_column(values)
