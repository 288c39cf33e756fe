"""Rows on their way to a model: columns by name, or one row by itself, made into the blocks that it scores.

Most requests are of one row, and most of its values were met before. What the encodings make of a value is kept, so
that a row becomes blocks by looking it up. Of many rows each distinct text is read once. What comes out is what a
table of the rows would give, and where a value cannot be read that table says so.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> reader = RowReader(FittedModel(garden()))
>>> plant = {"height_cm": 21.0, "leaf_mm": 8, "flowers": 14, "soil": None, "scented": "yes", "by": "Ada"}
>>> alone, table = reader.read_row(plant), reader.read_columns({name: [value] for name, value in plant.items()}, 1)
>>> [block.tolist() for block in alone] == [block.tolist() for block in table]
True
"""

from collections.abc import Collection, Mapping
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block
from candide.data.labels import is_arrow
from candide.data.notes import Note
from candide.data.table import Name, Table, to_numbers
from candide.errors import InputError
from candide.model.fitted import FittedModel
from candide.model.input_columns import compare_columns
from candide.model.unseen_values import UnseenValues

_MAX_CACHED = 4096  # values of a column of which is kept what they are encoded as
_MAX_CACHED_LENGTH = 100  # letters of such a value
_TEXT_TYPES = {str, type(None)}
Pieces = tuple[Any, ...]  # what each place where a column is used makes of a value, or of a column of them


class RowReader:
    """Reads rows as a model wants them. What it keeps depends on the plan alone, and it may serve many threads."""

    def __init__(self, fitted: FittedModel):
        self.fitted, self.plan = fitted, fitted.plan
        self._columns = [_CachedColumn(fitted, name) for name in self.plan.columns]
        self.names = [column.key for column in self._columns]
        self._makers = [_BLOCK_BUILDERS.get(part.block_kind) for part in self.plan.parts]

    def read_row(self, row: Mapping[str, Any]) -> list[Block]:
        """The blocks of one row, by its values; a column that it lacks is missing."""
        places: list[list[Any]] = [[None] * len(part.columns) for part in self.plan.parts]
        try:
            for column in self._columns:
                for (i, j), piece in zip(column.places, column.read_value(row.get(column.key)), strict=True):
                    places[i][j] = piece
        except InputError:
            return self._read_blocks({name: [value] for name, value in row.items()}, 1)
        return self._blocks(places, {name: [value] for name, value in row.items()} if self._has_text else row, 1)

    def read_columns(self, columns: Mapping[str, Any], n_rows: int) -> list[Block]:
        """The blocks of a table, by its columns; one that it lacks is missing in every row."""
        places: list[list[Any]] = [[None] * len(part.columns) for part in self.plan.parts]
        try:
            for column in self._columns:
                held = column.find_values(columns, n_rows)
                for (i, j), piece in zip(column.places, column.read_values(held), strict=True):
                    places[i][j] = piece
        except InputError:
            return self._read_blocks(columns, n_rows)
        return self._blocks(places, columns, n_rows)

    def _blocks(self, places: list[list[Any]], columns: Mapping[str, Any], n_rows: int) -> list[Block]:
        blocks = []
        for part, maker, pieces in zip(self.plan.parts, self._makers, places, strict=True):
            if maker is None:
                some = {name: _values_or_missing(columns.get(str(name)), n_rows, True) for name in part.columns}
                blocks.append(part.block(self.fitted.parse_table(Table.from_data(some))))
            else:
                block = maker(pieces, n_rows)
                blocks.append(block if part.prototypes is None else part.prototypes.read(block))
        return blocks

    def _read_blocks(self, columns: Mapping[str, Any], n_rows: int) -> list[Block]:
        return self.plan.blocks(self.read_table(columns, n_rows))

    @property
    def _has_text(self) -> bool:
        return None in self._makers

    def read_table(self, columns: Mapping[str, Any], n_rows: int) -> Table:
        """The columns of the plan, read as the model's own rows were."""
        held = {c.name: c.find_values(columns, n_rows) for c in self._columns}
        return self.fitted.parse_table(Table.from_data(held))

    def notes(self, names: Collection[str], blocks: list[Block]) -> list[Note]:
        """Return the warnings on rows: on their columns (an error if all are absent), and on unseen values."""
        notes = compare_columns("the request", names, self.plan.columns, [self.fitted.target], name_all=True)
        strangers = UnseenValues(self.plan)
        strangers.observe(blocks)
        return [*notes, *strangers.notes()]


def _values_or_missing(values: Any, n_rows: int, is_text: bool) -> Any:
    if values is not None:
        return values
    return np.full(n_rows, None, object) if is_text else np.full(n_rows, np.nan)


class _CachedColumn:
    """A column, where in the plan it is used, and what was made of values met before."""

    def __init__(self, fitted: FittedModel, name: Name):
        self.name, self.key, self._fitted = name, str(name), fitted
        used = [(i, part) for i, part in enumerate(fitted.plan.parts) if name in part.columns]
        self.is_text = any(part.block_kind == "documents" for _, part in used)
        self.places = [(i, part.columns.index(name)) for i, part in used if part.block_kind in _BLOCK_BUILDERS]
        encodings = [fitted.plan.parts[i].encodings[j] for i, j in self.places]
        self._is_number = not any(encoding.is_read_as_text for encoding in encodings)
        made = [
            None if fitted.plan.parts[i].block_kind == "numbers" else e
            for (i, _), e in zip(self.places, encodings, strict=True)
        ]
        self._encodings = list(dict.fromkeys(made))  # places that read it in the same way are served at once
        self._serves = [self._encodings.index(way) for way in made]
        self._cache: dict[Any, Pieces] = {}

    def find_values(self, columns: Mapping[str, Any], n_rows: int) -> Any:
        """The column among those of a request; bytes are text, of which documents say themselves how they are read."""
        values = _values_or_missing(columns.get(self.key), n_rows, self.is_text)
        return values if self.is_text or not is_arrow(values) else _decode_bytes(values, self.key)

    def read_value(self, value: Any) -> Pieces:
        """What is made of one value."""
        key = value if type(value) is str or value is None else (type(value), value)  # 1 is not True, nor 1.0
        found = self._cache.get(key)
        return self._read_and_cache([key], [np.nan if value is None else value])[key] if found is None else found

    def read_values(self, column: Any) -> Pieces:
        """What is made of a column of them."""
        factored = _factorize(column) if self.places else None
        if factored is None:
            return self._read(column)
        distinct, place = factored
        kept = self._cache
        if new := [value for value in distinct if value not in kept]:
            kept = {**kept, **self._read_and_cache(new, new)}
        each = zip(*map(kept.__getitem__, distinct), strict=True)
        return tuple(np.take(np.array(pieces).T, place, axis=1).T for pieces in each)

    def _read_and_cache(self, keys: list[Any], values: list[Any]) -> dict[Any, Pieces]:
        """What is made of some values, each by itself, by their keys; kept for the next time, but for long text."""
        each = [list(np.reshape(piece, (len(keys), -1))) for piece in self._read(values)]
        found: dict[Any, Pieces] = {key: tuple(one[i] for one in each) for i, key in enumerate(keys)}
        short = {key: pieces for key, pieces in found.items() if type(key) is not str or len(key) <= _MAX_CACHED_LENGTH}
        if len(self._cache) + len(short) > _MAX_CACHED:
            self._cache = {}
        self._cache.update(islice(short.items(), _MAX_CACHED))
        return found

    def _read(self, column: Any) -> Pieces:
        if not self.places:
            return ()
        table = self._fitted.parse_table(Table.from_data({self.name: column}))
        read = to_numbers(table.column(self.name), self.name) if self._is_number else table.column(self.name)
        made = [read if way is None else way.read(read) for way in self._encodings]
        return tuple(made[i] for i in self._serves)


def _decode_bytes(column: Any, name: str) -> Any:
    """An Arrow column whose bytes, if it holds such, are read as UTF-8."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if "binary" not in str(kind):
        return column
    try:
        return column.cast(kind).cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        what = f"its values are of the type {column.type}, and some are no UTF-8"
        raise InputError(what, column=name, value=str(column.type), remedy="send text") from None


def _factorize(column: Any) -> tuple[list[Any], NDArray] | None:
    """Distinct texts and the place of each row's among them; None where it is no text, or most are distinct."""
    if isinstance(column, list) and set(map(type, column)) <= _TEXT_TYPES:
        codes = dict.fromkeys(column)
        if 2 * len(codes) > len(column):
            return None
        codes = {value: i for i, value in enumerate(codes)}
        return list(codes), np.fromiter(map(codes.__getitem__, column), np.intp, len(column))
    if not is_arrow(column) or "string" not in str(column.type):
        return None
    coded = column.combine_chunks().dictionary_encode()
    if 2 * len(coded.dictionary) > len(column):
        return None
    distinct = [*coded.dictionary.to_pylist(), None]
    return distinct, coded.indices.fill_null(len(distinct) - 1).to_numpy()


def _codes(pieces: list[Any], n_rows: int) -> NDArray:
    return _side_by_side(pieces, n_rows, np.int32)


def _numbers(pieces: list[Any], n_rows: int) -> NDArray:
    return _side_by_side(pieces, n_rows, np.float64)


def _scores(pieces: list[NDArray], n_rows: int) -> NDArray:
    if n_rows == 1:
        return np.concatenate(pieces, axis=None)[None]
    ends = np.cumsum([0, *(piece.size // n_rows for piece in pieces)])
    out = np.empty((n_rows, ends[-1]), order="F")
    for piece, start, stop in zip(pieces, ends[:-1], ends[1:], strict=True):
        out[:, start:stop] = piece.reshape(n_rows, stop - start)
    return out


def _side_by_side(pieces: list[Any], n_rows: int, kind: Any) -> NDArray:
    if n_rows == 1:
        return np.concatenate(pieces).astype(kind, copy=False)[None]
    out = np.empty((n_rows, len(pieces)), kind, order="F")
    for j, piece in enumerate(pieces):
        out[:, j] = np.ravel(piece)
    return out


_BLOCK_BUILDERS: dict[str, Any] = {"codes": _codes, "numbers": _numbers, "scores": _scores}  # documents are read whole
