"""Column types: the kind of values each column holds, inferred from its type and its first values.

==============  ===================================================================================
kind            when
==============  ===================================================================================
number          a numeric type, or objects that are all numbers
date            dates and times (days since 1970), times of day and durations (days)
whole           named columns of 3 to 20 different whole numbers, each in five rows or more on average
category        text, booleans, other objects; numbers that are all 0 or 1, or behind a dictionary;
                columns without a type and without values
count           the columns of a sparse matrix
text            named columns of 10 or more different texts, of four words or more on average, each in
                fewer than three rows on average
identifier      named columns of 20 or more values, all different: text of fewer than four words, or
                whole numbers that step by one or are named ``id`` or ``..._id``; left out
nested          lists, structures, bytes; left out
==============  ===================================================================================

The event model of each kind is chosen in :mod:`candide.model.plan`, or by the user. Words are separated by white space;
in scripts without it, a fixed number of letters counts as a word.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data import arrow_columns as arrow
from candide.data.equal_rows import hash_rows
from candide.data.notes import Note
from candide.data.table import LIMITS, Name, Table
from candide.data.text_formats import MIN_PROSE_WORDS, mean_words, non_missing_words, parse_plain_number

_EVENTS = {"text": "text", "category": "categorical"}  # by which a user declares a kind
_PLURALS = {"text": "text", "category": "categories"}
_MIN_DISTINCT_ROWS = 50  # distinct rows, all equally frequent, before they are taken for copies
_ID_NAME = re.compile(r"(^|.*[_\W])id$", re.IGNORECASE)
_MIN_ID_VALUES = 20  # values before "all different" means anything
_MAX_CODES = 20  # different whole numbers that may be codes
_MIN_ROWS_PER_CODE = 5  # on average
_QUICK_CHECK_VALUES = 512  # values that mostly show whether there are more
_MIN_DISTINCT_NUMBERS = 10  # different numbers before a word among them is unusual
_MIN_DISTINCT_TEXTS = 10  # different texts before they are prose: answers to a question may be sentences, but are fewer
_MIN_ROWS_PER_TEXT_LEVEL = 3  # on average, at which texts are levels: a message may occur twice
_CERTAIN_ROWS_PER_LEVEL = 10  # on average, at which texts are certainly levels
_NESTED_REASON = "lists, structures and bytes cannot be modelled"
_NESTED = list | dict | set | bytes | np.ndarray


@dataclass(frozen=True)
class ColumnSchema:
    """A column's kind, and the reason where it is left out, an unusual category, or might be of another kind."""

    name: Name
    kind: str
    reason: str = ""
    alternative: str = ""  # another possible kind

    @property
    def is_left_out(self) -> bool:
        """Whether it is not modelled unless the user declares an event model."""
        return self.kind in ("identifier", "nested")

    @property
    def remedy(self) -> str:
        if not self.alternative:
            return ""
        option = f"--event {self.name}={_EVENTS[self.alternative]} (events={{...}})"
        return f"pass {option} if it holds {_PLURALS[self.alternative]}"

    @property
    def note(self) -> Note:
        code = "left-out" if self.is_left_out else "text-or-category" if self.alternative else "odd-category"
        what = "left out" if self.is_left_out else f"taken for {_PLURALS[self.kind]}"
        return Note(code, f"column {self.name!r} is {what}: {self.reason}", self.name, self.remedy)


def infer_columns(table: Table) -> list[ColumnSchema]:
    if table.is_sparse:
        return [ColumnSchema(name, "count") for name in table.names]
    if isinstance(table.source, np.ndarray) and table.source.dtype.kind in "fiub":
        head = table.source[: LIMITS.head_rows(len(table.names))]
        binary = _binary_or_absent(head).all(axis=0)
        return [infer_column(n, head[:, n]) if binary[n] else ColumnSchema(n, "number") for n in range(len(binary))]
    heads = {name: table.head(name, LIMITS.head_rows(len(table.names))) for name in table.names}
    columns = {name: infer_column(name, values) for name, values in heads.items()}
    return list(infer_without_copies(columns, heads).values())


def infer_without_copies(columns: dict[Any, ColumnSchema], heads: Mapping[Any, Any]) -> dict[Any, ColumnSchema]:
    """The types of columns by one copy of each row, where all rows are equally frequent.

    Only text is affected: a text that occurs three times because its row does is not a category. A single column does
    not show whether its rows are copies.
    """
    n_rows = len(next(iter(heads.values()), ()))
    categories = [name for name, column in columns.items() if column.kind == "category"]
    if n_rows < 2 * _MIN_DISTINCT_ROWS or len(heads) < 2 or not categories:
        return columns
    _, group, count = np.unique(hash_rows(heads, n_rows), return_inverse=True, return_counts=True)
    times = int(np.gcd.reduce(count))
    if times == 1 or len(count) < _MIN_DISTINCT_ROWS:
        return columns
    order = np.argsort(group, kind="stable")
    place = np.arange(n_rows) - np.searchsorted(group[order], group[order])
    rows = np.sort(order[place < count[group[order]] // times])
    once = {name: infer_column(name, heads[name].take(rows)) for name in categories}
    return columns | {name: column for name, column in once.items() if column.kind == "text"}


def early_decision_note(name: Name, n_rows: int, later_values: Sequence[Any]) -> Note:
    """The note on a column that is a category because its first rows hold only 0 and 1, unlike later ones."""
    n, examples = formatting.format_count(len(later_values), "other number"), formatting.format_list(later_values, 3)
    text = f"column {name!r} is taken for categories, as it holds 0 and 1 alone in the first {n_rows:,} rows; "
    text += f"later rows have {n}, such as {examples}"
    remedy = f"pass --event {name}=gaussian (events={{...}}) if they are quantities"
    return Note("decided-early", text, name, remedy)


def later_number_notes(table: Table, names: Collection[Name]) -> list[Note]:
    """The same notes on columns of a table in memory."""
    n_head, notes = LIMITS.head_rows(len(table.names)), list[Note]()
    if table.n_rows <= n_head or table.is_sparse:
        return notes
    for name in names:
        column = table.column(name)
        if arrow.is_arrow(column) or column.dtype.kind not in "fiu" or not _binary_or_absent(column[:n_head]).all():
            continue
        rest = column[n_head:]
        if len(others := np.unique(rest[~_binary_or_absent(rest)])):
            notes.append(early_decision_note(name, n_head, others.tolist()))
    return notes


def infer_column(name: Name, values: Any) -> ColumnSchema:
    """The type of one column, from its first values: an ndarray or an Arrow array."""
    if arrow.is_arrow(values):
        return _infer_arrow(name, values)
    kind = values.dtype.kind
    if kind in "mM":
        return ColumnSchema(name, "date")
    if kind in "US":
        texts = np.char.decode(values, "utf-8", "replace") if kind == "S" else values
        return _infer_text(name, list(dict.fromkeys(texts.tolist())), len(values))
    if kind not in "fiuO":
        return ColumnSchema(name, "category")
    if kind == "O":
        present = [v for v in values.tolist() if not arrow.is_absent(v)]
        if not present:
            return ColumnSchema(name, "category")  # which takes any later values
        if all(isinstance(v, str) for v in present):
            return _infer_text(name, list(dict.fromkeys(present)), len(present))
        others = [v for v in present if not isinstance(v, bool | np.bool_)]  # booleans among numbers are 0 and 1
        if not (others and all(not isinstance(v, str | _NESTED) and _is_number(v) for v in others)):
            arrow.check_values(name, present)
            nested = any(isinstance(v, _NESTED) for v in present)
            return ColumnSchema(name, "nested", _NESTED_REASON) if nested else _infer_category(name, present)
        values = np.array(present, float)
    return _infer_numbers(name, values)


def _infer_numbers(name: Name, values: NDArray) -> ColumnSchema:
    present = values[values == values]
    if len(present) and _binary_or_absent(present).all():
        return ColumnSchema(name, "category")
    if isinstance(name, str) and len(present) >= _MIN_ID_VALUES and (present == np.floor(present)).all():
        if _steps_by_one(present):
            return ColumnSchema(name, "identifier", "whole numbers that step by one")
        if _ID_NAME.match(name) and len(np.unique(present)) == len(present):
            return ColumnSchema(name, "identifier", "all different, and named as an identifier")
        max_codes = min(_MAX_CODES, len(present) // _MIN_ROWS_PER_CODE)
        is_few = len(np.unique(present[:_QUICK_CHECK_VALUES])) <= _MAX_CODES
        if is_few and 3 <= len(np.unique(present)) <= max_codes:
            return ColumnSchema(name, "whole")
    return ColumnSchema(name, "number")


def _steps_by_one(numbers: NDArray) -> bool:
    with np.errstate(over="ignore"):  # a step may be too large for a float
        return bool((np.diff(numbers) == 1).all())


def is_certain(column: ColumnSchema, values: Any) -> bool:
    """Whether a column stays of this kind, whatever numbers or dates follow its first values."""
    if column.kind == "date":
        return True
    if column.kind != "number" or arrow.is_arrow(values) or values.dtype.kind not in "fiu":
        return False
    present = values[values == values]
    if _binary_or_absent(present).all():
        return False
    if not isinstance(column.name, str) or (present != np.floor(present)).any():
        return True
    n_distinct = len(np.unique(present))
    may_be_id = (_ID_NAME.match(column.name) and n_distinct == len(present)) or _steps_by_one(present)
    return n_distinct > _MAX_CODES and not may_be_id


def _infer_arrow(name: Name, values: Any) -> ColumnSchema:
    import pyarrow as pa

    kind = arrow.value_type(values.type)
    if pa.types.is_temporal(kind):
        return ColumnSchema(name, "date")
    if arrow.is_string(kind):
        present = values.drop_null()
        return _infer_text(name, present.unique().to_pylist(), len(present))
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return ColumnSchema(name, "nested", _NESTED_REASON)
    if pa.types.is_dictionary(values.type) or not _is_numeric(kind):
        return ColumnSchema(name, "category")
    is_whole = pa.types.is_integer(kind)  # as floats, large ones would seem equal
    return _infer_numbers(name, arrow.arrow_numbers(values.drop_null()) if is_whole else arrow.arrow_floats(values))


def is_coded_number(arrow_type: Any) -> bool:
    """Whether an Arrow type is a dictionary of numbers, which declares them to be categories."""
    import pyarrow as pa

    return pa.types.is_dictionary(arrow_type) and _is_numeric(arrow_type.value_type)


def _is_numeric(arrow_type: Any) -> bool:
    import pyarrow as pa

    return any(is_type(arrow_type) for is_type in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _infer_text(name: Name, distinct: list[Any], rows: int) -> ColumnSchema:
    n = len(distinct)
    if not isinstance(name, str) or n * _CERTAIN_ROWS_PER_LEVEL <= rows:  # most columns are decided here
        return _infer_category(name, distinct)
    words = mean_words(distinct)
    if words < MIN_PROSE_WORDS:
        if n == rows >= _MIN_ID_VALUES:
            return ColumnSchema(name, "identifier", "every value is different", "text" if words >= 2 else "")
        return _infer_category(name, distinct)
    reason = f"{n:,} different values in {rows:,} rows, of {words:.3g} words on average"
    is_mostly_different = n * _MIN_ROWS_PER_TEXT_LEVEL > rows
    if n >= _MIN_DISTINCT_TEXTS and is_mostly_different:
        return ColumnSchema(name, "text", reason, "category") if 2 * n <= rows else ColumnSchema(name, "text")
    is_either = n >= _MIN_DISTINCT_TEXTS or (is_mostly_different and n > 1)
    return ColumnSchema(name, "category", reason, "text") if is_either else _infer_category(name, distinct)


def _infer_category(name: Name, values: list[Any]) -> ColumnSchema:
    """A category, with a reason if its values are numbers with a few words among them."""
    try:
        distinct = list(dict.fromkeys(values))
    except TypeError:  # values that cannot be levels: an error when they are counted
        distinct = []
    words = [v for v in distinct if not _is_number(v)]
    odd, numbers = non_missing_words(words), len(distinct) - len(words)
    if not (0 < len(odd) <= numbers / 4 and numbers >= _MIN_DISTINCT_NUMBERS):
        return ColumnSchema(name, "category")
    return ColumnSchema(name, "category", f"its values are numbers, but for {', '.join(map(repr, odd[:3]))}")


def _is_number(value: Any) -> bool:
    try:
        parse_plain_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):  # a whole number may be too long for a float
        return False
    return True


def _binary_or_absent(x: NDArray) -> Any:
    return (x == 0) | (x == 1) | (x != x)
