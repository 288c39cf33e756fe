"""Scorer: a model ready to score the rows of requests, and the names in a response.

Most requests hold one row, and most of its values were seen before. Encoded values are cached, so that a row becomes
blocks by lookups; in a table each distinct text is encoded once. The plan puts the encoded columns together
(:meth:`PlanPart.join_columns`), so that the result is the same as for a table in memory.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Block, Codes, Floats
from candide.data.labels import is_arrow
from candide.data.notes import Note
from candide.data.table import Name, Table, to_numbers
from candide.engines.scoring import score_blocks
from candide.errors import InputError
from candide.model.fitted import FittedModel
from candide.model.input_columns import UnseenValues, compare_columns
from candide.model.plan import Plan
from candide.store.input_schema import InputSchema

_MAX_CACHED = 4096  # values of a column
_MAX_CACHED_LENGTH = 100  # characters of a value
EncodedValues = tuple[Any, ...]  # a value, or a column of values, as each part that uses the column encodes it


@dataclass(frozen=True)
class ScoredColumns:
    """Scored rows by column, with the column names of ``candide predict``."""

    names: list[str]
    columns: list[list[Any]]  # labels as they are, numbers, or None
    labels: list[Any]  # of all classes


class Scorer:
    """One model, ready to score. It never changes: another model has another scorer."""

    def __init__(self, fitted: FittedModel):
        self.fitted = fitted
        if not len(fitted.labels):
            raise InputError("this model has no rows left, and so no class", remedy="count rows into it")
        self.model, self.decision_rule, self.reader = fitted.model, fitted.decision_rule, RowReader(fitted)
        self.labels = fitted.labels.array.tolist()
        self.classes = [f"p_{label}" for label in self.labels]
        self.names = ["prediction", *self.classes, "log_density"]
        _check_distinct(self.classes, "classes", "responses")
        self._has_density = all(distribution.has_density for distribution in self.model.distributions)
        self._column_names = frozenset(self.reader.names)
        self._level_counts = _level_counts(self.reader.plan)

    def score_row(self, row: Mapping[str, Any]) -> tuple[dict[str, Any], list[Note]]:
        blocks = self.reader.read_row(row)
        has_unseen = any((blocks[i][0] >= sizes).any() for i, sizes in self._level_counts.items())
        is_plain = not has_unseen and row.keys() == self._column_names
        notes = [] if is_plain else self.reader.notes(row.keys(), blocks)
        log_posterior, density = score_blocks(self.reader.plan, self.model, blocks)
        code = int(self._decide(log_posterior)[0])
        values = [self.labels[code] if code >= 0 else None, *np.exp(log_posterior[0]).tolist()]
        values.append(float(density[0]) if self._has_density else None)
        return dict(zip(self.names, values, strict=True)), notes

    def score_columns(self, columns: Mapping[str, Any], n_rows: int) -> tuple[ScoredColumns, list[Note]]:
        if not n_rows:
            return ScoredColumns(self.names, [[] for _ in self.names], self.labels), []
        blocks = self.reader.read_columns(columns, n_rows)
        notes = self.reader.notes(columns.keys(), blocks)
        log_posterior, density = score_blocks(self.reader.plan, self.model, blocks)
        labels = [*self.labels, None]
        predictions = [labels[code] for code in self._decide(log_posterior).tolist()]
        densities: list[Any] = density.tolist() if self._has_density else [None] * len(density)
        scored = [predictions, *np.exp(log_posterior.T).tolist(), densities]
        return ScoredColumns(self.names, scored, self.labels), notes

    def _decide(self, log_posterior: Floats) -> Codes:
        return log_posterior.argmax(axis=1) if self.decision_rule is None else self.decision_rule(log_posterior)

    @cached_property
    def typical_values(self) -> dict[Any, Any]:
        from candide.explain.columns import find_typical_values

        return find_typical_values(self.fitted)

    @cached_property
    def input_schema(self) -> InputSchema:
        return InputSchema.from_model(self.fitted)

    @cached_property
    def report_page(self) -> bytes:
        from candide.report.build import build_report

        return build_report(self.fitted).text.encode()

    @cached_property
    def model_summary(self) -> bytes:
        """The output of ``candide show --json``."""
        from candide.report import records, summary

        return records.dump_json(summary.summarize_model(self.fitted)).encode()


def _level_counts(plan: Plan) -> dict[int, NDArray]:
    """Return by part the number of levels of each column that is read as text; each column in one part only."""
    checked: set[Any] = set()
    counts = {}
    for i, part in enumerate(plan.parts):
        is_new = [e.is_read_as_text and (name, e) not in checked for name, e in part.coded_columns]
        if any(is_new):
            unlimited = np.iinfo(np.int32).max
            sizes = [len(levels) if new else unlimited for new, levels in zip(is_new, part.levels, strict=True)]
            counts[i] = np.array(sizes)
            checked.update(part.coded_columns)
    return counts


def _check_distinct(names: list[str], what: str, where: str) -> None:
    """Reject classes or columns with the same text: one would replace the other in JSON objects."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"two {what} are both named {twice!r} in {where}", value=twice, remedy="rename one of them")


def check_names(fitted: FittedModel) -> None:
    """Reject a model with names that cannot be sent: not valid Unicode, or columns with the same text."""
    columns = list(map(str, fitted.plan.columns))
    _check_distinct(columns, "columns", "requests")
    texts: list[tuple[str, dict[str, str]]] = [(text, {}) for text in [*columns, *map(str, fitted.labels.values)]]
    for part in fitted.plan.parts:
        for name, encoding in zip(part.columns, part.encodings, strict=False):
            levels = encoding.labels.values if encoding.value_kind == "level" else ()  # type: ignore[attr-defined]
            texts += [(str(level), {"column": str(name)}) for level in levels]
    for text, location in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            what = f"{text!r} is not valid Unicode text and cannot be sent"
            raise InputError(what, value=text, remedy="rename it, and fit the model again", **location) from None


class RowReader:
    """Reads rows for a model. What it caches depends on the plan alone, and it may serve several threads.

    If a value cannot be read, the table is read instead, and its error names the row.
    """

    def __init__(self, fitted: FittedModel):
        self.fitted, self.plan = fitted, fitted.plan
        self._columns = [_CachedColumn(fitted, name) for name in self.plan.columns]
        self.names = [column.key for column in self._columns]
        self._has_documents = any(part.block_kind == "documents" for part in self.plan.parts)

    def read_row(self, row: Mapping[str, Any]) -> list[Block]:
        """Return the blocks of one row; a column that it lacks is missing."""
        encoded: list[list[Any]] = [[None] * len(part.columns) for part in self.plan.parts]
        try:
            for column in self._columns:
                for (i, j), value in zip(column.places, column.encode_value(row.get(column.key)), strict=True):
                    encoded[i][j] = value
        except InputError:
            return self.plan.blocks(self.read_table({name: [value] for name, value in row.items()}, 1))
        return self._blocks(encoded, {k: [v] for k, v in row.items()} if self._has_documents else row, 1)

    def read_columns(self, columns: Mapping[str, Any], n_rows: int) -> list[Block]:
        """Return the blocks of a table; a column that it lacks is missing in every row."""
        encoded: list[list[Any]] = [[None] * len(part.columns) for part in self.plan.parts]
        try:
            for column in self._columns:
                values = column.find_values(columns, n_rows)
                for (i, j), piece in zip(column.places, column.encode_values(values), strict=True):
                    encoded[i][j] = piece
        except InputError:
            return self.plan.blocks(self.read_table(columns, n_rows))
        return self._blocks(encoded, columns, n_rows)

    def _blocks(self, encoded: list[list[Any]], columns: Mapping[str, Any], n_rows: int) -> list[Block]:
        blocks = []
        for part, pieces in zip(self.plan.parts, encoded, strict=True):
            if part.block_kind == "documents":
                texts = {name: _values_or_missing(columns.get(str(name)), n_rows, True) for name in part.columns}
                blocks.append(part.block(self.fitted.parse_table(Table.from_data(texts))))
            else:
                blocks.append(part.join_columns(pieces, n_rows))
        return blocks

    def read_table(self, columns: Mapping[str, Any], n_rows: int) -> Table:
        """Return the columns of the plan, parsed as the training rows were."""
        values = {column.name: column.find_values(columns, n_rows) for column in self._columns}
        return self.fitted.parse_table(Table.from_data(values))

    def notes(self, names: Collection[str], blocks: list[Block]) -> list[Note]:
        """Return the warnings on the columns of rows (an error if all are absent) and on unseen values."""
        notes = compare_columns("the request", names, self.plan.columns, [self.fitted.target], name_all=True)
        unseen = UnseenValues(self.plan)
        unseen.observe(blocks)
        return [*notes, *unseen.notes()]


def _values_or_missing(values: Any, n_rows: int, is_text: bool) -> Any:
    if values is not None:
        return values
    return np.full(n_rows, None, object) if is_text else np.full(n_rows, np.nan)


class _CachedColumn:
    """A column, the parts of the plan that use it, and a cache of encoded values."""

    def __init__(self, fitted: FittedModel, name: Name):
        self.name, self.key, self._fitted = name, str(name), fitted
        parts = [(i, part) for i, part in enumerate(fitted.plan.parts) if name in part.columns]
        self.is_text = any(part.block_kind == "documents" for _, part in parts)
        self.places = [(i, part.columns.index(name)) for i, part in parts if part.block_kind != "documents"]
        encodings = [fitted.plan.parts[i].encodings[j] for i, j in self.places]
        self._is_number = not any(encoding.is_read_as_text for encoding in encodings)
        is_plain = [fitted.plan.parts[i].block_kind == "numbers" for i, _ in self.places]
        used = [None if plain else encoding for plain, encoding in zip(is_plain, encodings, strict=True)]
        self._encodings = list(dict.fromkeys(used))  # each applied once, however many parts use it
        self._encoding_of_place = [self._encodings.index(encoding) for encoding in used]
        self._cache: dict[Any, EncodedValues] = {}

    def find_values(self, columns: Mapping[str, Any], n_rows: int) -> Any:
        """Return the column of a request, with bytes as text; documents decode bytes themselves."""
        values = _values_or_missing(columns.get(self.key), n_rows, self.is_text)
        if self.is_text or not is_arrow(values):
            return values
        import pyarrow as pa

        value_type = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if "binary" not in str(value_type):
            return values
        try:
            return values.cast(value_type).cast(pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            what = f"values of the type {values.type} are not valid UTF-8"
            raise InputError(what, column=self.key, value=str(values.type), remedy="send text") from None

    def encode_value(self, value: Any) -> EncodedValues:
        key = value if type(value) is str or value is None else (type(value), value)  # 1, 1.0 and True differ
        cached = self._cache.get(key)
        return self._encode_and_cache([key], [np.nan if value is None else value])[key] if cached is None else cached

    def encode_values(self, column: Any) -> EncodedValues:
        factored = _factorize(column) if self.places else None
        if factored is None:
            return self._encode(column)
        distinct, codes = factored
        cached = self._cache
        if new := [value for value in distinct if value not in cached]:
            cached = {**cached, **self._encode_and_cache(new, new)}
        by_place = zip(*map(cached.__getitem__, distinct), strict=True)
        return tuple(np.take(np.array(pieces).T, codes, axis=1).T for pieces in by_place)

    def _encode_and_cache(self, keys: list[Any], values: list[Any]) -> dict[Any, EncodedValues]:
        """Return the encoded values by their keys, and cache all but long text."""
        by_place = [list(np.reshape(piece, (len(keys), -1))) for piece in self._encode(values)]
        encoded: dict[Any, EncodedValues] = {key: tuple(p[i] for p in by_place) for i, key in enumerate(keys)}
        short = {k: pieces for k, pieces in encoded.items() if type(k) is not str or len(k) <= _MAX_CACHED_LENGTH}
        if len(self._cache) + len(short) > _MAX_CACHED:
            self._cache = {}
        self._cache.update(islice(short.items(), _MAX_CACHED))
        return encoded

    def _encode(self, column: Any) -> EncodedValues:
        if not self.places:
            return ()
        values = self._fitted.parse_table(Table.from_data({self.name: column})).column(self.name)
        values = to_numbers(values, self.name) if self._is_number else values
        encoded = [values if encoding is None else encoding.read(values) for encoding in self._encodings]
        return tuple(encoded[i] for i in self._encoding_of_place)


def _factorize(column: Any) -> tuple[list[Any], NDArray] | None:
    """Return distinct texts and the code of each row; None if the column is not text, or most values are distinct."""
    if isinstance(column, list) and set(map(type, column)) <= {str, type(None)}:
        index = {value: i for i, value in enumerate(dict.fromkeys(column))}
        if 2 * len(index) > len(column):
            return None
        return list(index), np.fromiter(map(index.__getitem__, column), np.intp, len(column))
    if not is_arrow(column) or "string" not in str(column.type):
        return None
    encoded = column.combine_chunks().dictionary_encode()
    if 2 * len(encoded.dictionary) > len(column):
        return None
    distinct = [*encoded.dictionary.to_pylist(), None]
    return distinct, encoded.indices.fill_null(len(distinct) - 1).to_numpy()
