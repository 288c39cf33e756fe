"""Schema: what kind of thing each column holds, read from its type and one cheap look at its first values.

==============  ===================================================================  ===================
kind            when                                                                 default event model
==============  ===================================================================  ===================
number          a numeric type, or objects that are all numbers                      gaussian
date            dates and times: days since 1970; times of day and durations: days   gaussian
whole           named columns of 3 to 20 different whole numbers, each in five rows    gaussian or categorical,
                or more on average; both are counted                                 whichever tells more
category        text, booleans, other objects; numbers that are all 0 or 1; columns  categorical
                of no type that hold nothing; numbers behind a dictionary
count           a sparse matrix                                                      multinomial
identifier      named columns of 20 or more values, all different: text of fewer     left out
                than four words, or whole numbers that step by one or are named
                ``id`` or ``..._id``
text            named columns of 10 or more different texts, of four words or more   text
                on average, each in fewer than three rows on average
nested          lists, structures, bytes                                             left out
==============  ===================================================================  ===================

The look is at the first 20,480 rows, or fewer where columns are very many. Every choice can be overridden: an event
model asked for by name is used. Where text might as well be a category, or a category or an identifier text, a column
says so. Words are what stands between white space; where a script has none, so many letters are taken for a word.

>>> from candide.rows.table import Table
>>> {c.name: c.kind for c in inspect(Table.of({"age": [30, 41], "job": ["cook", "smith"], "smokes": [0, 1]}))}
{'age': 'number', 'job': 'category', 'smokes': 'category'}
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide import wording
from candide.rows.arrow import arrow_floats, arrow_numbers
from candide.rows.labels import is_absent, is_arrow
from candide.rows.records import check_values
from candide.rows.remarks import Remark
from candide.rows.row_hash import hash_rows
from candide.rows.spelling import plain_number, strayed
from candide.rows.table import Name, Table

LOOK = 20_480  # rows of the look
_VALUES, _FEWEST_ROWS = 1 << 23, 1 << 11  # values of the look, and its rows, where there are very many columns
EVENT_OF_KIND = {
    "number": "gaussian",
    "whole": "whole",
    "date": "gaussian",
    "category": "categorical",
    "count": "multinomial",
    "text": "text",
}
_FEWEST_DISTINCT = 50  # different rows that are all there equally often before they are copies
_MEANT = {"text": "text", "categorical": "categories"}
_ID_NAME = re.compile(r"(^|.*[_\W])id$", re.IGNORECASE)
_FEWEST = 20  # values before "all different" means anything
_FEW_WHOLE = 20  # different whole numbers that may be codes
_ROWS_EACH = 5  # rows of each of them, on average
_GLANCE = 512  # values that tell most of the time that there are more
_MANY = 10  # different numbers before a word among them is odd
_WORDS = 4  # words on average before text is prose: names and most categories have fewer
_TEXTS = 10  # different texts before they are prose: the answers to a question may be sentences, but are fewer
_PROSE_EACH = 3  # rows of each text on average at which they are levels: a message may be there twice
_EITHER_EACH = 10  # rows of each on average at which there is no doubt of that
# Chinese and Japanese have words of some two letters. Those of Thai, Lao, Burmese and Khmer have some four, marks
# among them; twice as many are asked for, so that a name and a family name are not four words.
_HAN, _THAI = "\u3001-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uffef\U00020000-\U0003ffff", "\u0e00-\u109f\u1780-\u17ff"
_WORD = re.compile(f"[{_HAN}]{{1,2}}|[{_THAI}]{{1,8}}|[^\\s{_HAN}{_THAI}]+")
_NESTED = list | dict | set | bytes | np.ndarray


@dataclass(frozen=True)
class Column:
    """A column's kind, with a word on why where it is left out, a strange category, or might be another kind.

    >>> Column("title", "identifier", "every value is different", "text").remark.text
    "column 'title' is left out: every value is different"
    """

    name: Name
    kind: str
    why: str = ""
    perhaps: str = ""  # the name of the event model of what it may be instead

    @property
    def event(self) -> str | None:
        """The name of the default event model; None where the column is left out."""
        return EVENT_OF_KIND.get(self.kind)

    @property
    def remedy(self) -> str:
        """How to have it counted as what it may be instead."""
        meant = _MEANT.get(self.perhaps)
        return f"pass --event {self.name}={self.perhaps} (events={{...}}) if it holds {meant}" if meant else ""

    @property
    def remark(self) -> Remark:
        """Why it is of this kind, for a person."""
        taken = _MEANT.get(self.event or "")
        code = "left-out" if taken is None else "text-or-category" if self.perhaps else "odd-category"
        what = "left out" if taken is None else f"taken for {taken}"
        return Remark(code, f"column {self.name!r} is {what}: {self.why}", self.name, self.remedy)


def rows_of_look(n_columns: int) -> int:
    """How many rows of so many columns are looked at.

    >>> rows_of_look(10), rows_of_look(10_000)
    (20480, 2048)
    """
    return max(_FEWEST_ROWS, min(LOOK, _VALUES // n_columns))


def inspect(table: Table) -> list[Column]:
    """Look at every column of a table."""
    if table.is_sparse:
        return [Column(name, "count") for name in table.names]
    if isinstance(table.source, np.ndarray) and table.source.dtype.kind in "fiub":
        head = table.source[: rows_of_look(len(table.names))]
        maybe = _binary_or_absent(head).all(axis=0)
        return [look(n, head[:, n]) if maybe[n] else Column(n, "number") for n in range(len(maybe))]
    heads = {name: table.head(name, rows_of_look(len(table.names))) for name in table.names}
    columns = {name: look(name, values) for name, values in heads.items()}
    return list(look_without_copies(columns, heads).values())


def look_without_copies(columns: dict[Any, Column], heads: Mapping[Any, Any]) -> dict[Any, Column]:
    """The kinds of columns by one copy of each row, where every row of the look is there equally often.

    Only text is affected: a text that is there three times, as its row is there three times, is not a category. A
    single column does not show whether its rows are copies.

    >>> texts = np.array([f"note {i} on this and that" for i in range(60)] * 3, object)
    >>> heads = {"note": texts, "size": np.tile(np.arange(60) / 7, 3)}
    >>> columns = {name: look(name, values) for name, values in heads.items()}
    >>> columns["note"].kind, look_without_copies(columns, heads)["note"].kind
    ('category', 'text')
    """
    n_rows = len(next(iter(heads.values()), ()))
    categories = [name for name, column in columns.items() if column.kind == "category"]
    if n_rows < 2 * _FEWEST_DISTINCT or len(heads) < 2 or not categories:
        return columns
    _, group, often = np.unique(hash_rows(heads, n_rows), return_inverse=True, return_counts=True)
    times = int(np.gcd.reduce(often))
    if times == 1 or len(often) < _FEWEST_DISTINCT:
        return columns
    order = np.argsort(group, kind="stable")
    place = np.arange(n_rows) - np.searchsorted(group[order], group[order])
    rows = np.sort(order[place < often[group[order]] // times])
    once = {name: look(name, heads[name].take(rows)) for name in categories}
    return columns | {name: column for name, column in once.items() if column.kind == "text"}


def decided_early(name: Name, n_rows: int, others: Sequence[Any]) -> Remark:
    """The note on a column that is a category by its first rows, which hold 0 and 1 alone; ``others`` come later."""
    text = (
        f"column {name!r} is taken for categories, as it holds 0 and 1 alone in the first {n_rows:,} rows; "
        f"later rows have {wording.plural(len(others), 'other number')}, such as {wording.listing(others, 3)}"
    )
    remedy = f"pass --event {name}=gaussian (events={{...}}) if they are quantities"
    return Remark("decided-early", text, name, remedy)


def later_numbers(table: Table, names: Collection[Name]) -> list[Remark]:
    """The same notes on columns of a table in memory that are categories by the rows looked at.

    >>> rows = Table.of({"x": np.repeat([0, 1, 7], 15_000)})
    >>> [remark.column for remark in later_numbers(rows, ["x"])]
    ['x']
    """
    most, found = rows_of_look(max(1, len(table.names))), list[Remark]()
    if table.n_rows <= most or table.is_sparse:
        return found
    for name in names:
        column = table.column(name)
        if is_arrow(column) or column.dtype.kind not in "fiu" or not _binary_or_absent(column[:most]).all():
            continue
        rest = column[most:]
        if len(others := np.unique(rest[~_binary_or_absent(rest)])):
            found.append(decided_early(name, most, others.tolist()))
    return found


def look(name: Name, values: Any) -> Column:
    """The kind of one column, from its first values: an ndarray or an Arrow array."""
    if is_arrow(values):
        return _look_arrow(name, values)
    if values.dtype.kind in "mM":
        return Column(name, "date")
    if values.dtype.kind not in "fiuO":
        return _look_text(name, *_different(values)) if values.dtype.kind in "US" else Column(name, "category")
    if values.dtype.kind == "O":
        present = [v for v in values.tolist() if not is_absent(v)]
        if not present:
            return Column(name, "category")  # of which nothing is known, and which takes whatever comes
        if all(isinstance(v, str) for v in present):
            return _look_text(name, list(dict.fromkeys(present)), len(present))
        others = [v for v in present if not isinstance(v, bool | np.bool_)]  # booleans among numbers are 0 and 1
        if not (others and all(map(_is_number, others))):
            check_values(name, present)
            nested = any(isinstance(v, _NESTED) for v in present)
            return _nested(name) if nested else _category(name, present)
        values = np.array(present, float)
    return _look_numbers(name, values)


def _look_numbers(name: Name, values: NDArray) -> Column:
    if _binary_or_absent(values).all() and (values == values).any():
        return Column(name, "category")
    present = values[values == values]
    if isinstance(name, str) and len(present) >= _FEWEST and (present == np.floor(present)).all():
        with np.errstate(over="ignore"):  # a step may be too large for a float
            steps = np.diff(present)
        if (steps == 1).all():
            return Column(name, "identifier", "whole numbers that step by one")
        if _ID_NAME.match(name) and len(np.unique(present)) == len(present):
            return Column(name, "identifier", "all different, and named as an identifier")
        if len(np.unique(present[:_GLANCE])) <= _FEW_WHOLE:
            different = len(np.unique(present))
            if 3 <= different <= min(_FEW_WHOLE, len(present) // _ROWS_EACH):
                return Column(name, "whole")
    return Column(name, "number")


def is_certain(column: Column, values: Any) -> bool:
    """Whether a column stays of this kind, whatever numbers, or dates, come after these first values of it.

    >>> [is_certain(look("a", x), x) for x in (np.array([0.5, 1.0]), np.array([1.0, 2.0]), np.array([0.0, 1.0]))]
    [True, False, False]
    """
    if column.kind == "date":
        return True
    if column.kind != "number" or is_arrow(values) or values.dtype.kind not in "fiu":
        return False
    present = values[values == values]
    if _binary_or_absent(present).all() or not isinstance(column.name, str):
        return not _binary_or_absent(present).all()
    if (present != np.floor(present)).any():
        return True
    different = len(np.unique(present))
    is_perhaps_id = bool(_ID_NAME.match(column.name)) and different == len(present)
    with np.errstate(over="ignore"):
        return different > _FEW_WHOLE and not is_perhaps_id and not (np.diff(present) == 1).all()


def _look_arrow(name: Name, values: Any) -> Column:
    import pyarrow as pa

    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_temporal(kind):
        return Column(name, "date")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        present = values.drop_null()
        return _look_text(name, present.unique().to_pylist(), len(present))
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _nested(name)
    if is_coded_number(values.type):
        return Column(name, "category")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        whole = pa.types.is_integer(kind)  # looked at as they are: as floats, large ones would seem equal
        return _look_numbers(name, arrow_numbers(values.drop_null()) if whole else arrow_floats(values))
    return Column(name, "category")


def is_coded_number(kind: Any) -> bool:
    """Whether an Arrow type is that of numbers behind a dictionary: somebody declared them to be categories."""
    import pyarrow as pa

    if not pa.types.is_dictionary(kind):
        return False
    of = kind.value_type
    return bool(pa.types.is_integer(of) or pa.types.is_floating(of) or pa.types.is_decimal(of))


def _look_text(name: Name, distinct: list[Any], rows: int) -> Column:
    """Text, categories or an identifier, by the different values of so many rows."""
    n = len(distinct)
    if not isinstance(name, str) or n * _EITHER_EACH <= rows:  # most columns are decided here
        return _category(name, distinct)
    words = _mean_words(distinct)
    if words >= _WORDS:
        return _look_prose(name, distinct, rows, words)
    if n == rows >= _FEWEST:
        return Column(name, "identifier", "every value is different", "text" if words >= 2 else "")
    return _category(name, distinct)


def _different(values: NDArray) -> tuple[list[str], int]:
    """The different values of an array of text or of bytes, and how many rows it has."""
    text = np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values
    return list(dict.fromkeys(text.tolist())), len(values)


def is_prose(values: Collection[Any]) -> bool:
    """Whether values are texts with as many words as prose has.

    >>> is_prose(["see you at five", "the train is late again"]), is_prose(["red", "dark red"])
    (True, False)
    """
    texts = [value for value in values if isinstance(value, str)]
    return 2 * len(texts) > len(values) and _mean_words(texts) >= _WORDS


def _mean_words(texts: Collection[str]) -> float:
    return sum(len(_WORD.findall(text)) for text in texts) / max(1, len(texts))


def _look_prose(name: Name, distinct: list[Any], rows: int, words: float) -> Column:
    """Text or categories, where values have as many words as prose has."""
    n, why = len(distinct), f"{len(distinct):,} different values in {rows:,} rows, of {words:.3g} words on average"
    is_mostly_different = n * _PROSE_EACH > rows
    if n >= _TEXTS and is_mostly_different:
        return Column(name, "text", why, "categorical") if 2 * n <= rows else Column(name, "text")
    is_either = n >= _TEXTS or (is_mostly_different and n > 1)
    return Column(name, "category", why, "text") if is_either else _category(name, distinct)


def _category(name: Name, values: list[Any]) -> Column:
    """A category, with a word where it looks like numbers among which a few words have strayed."""
    try:
        distinct = list(dict.fromkeys(values))
    except TypeError:  # no level can be this, as will be said when it is counted
        distinct = []
    words = [v for v in distinct if not _spells_number(v)]
    odd, numbers = strayed(words), len(distinct) - len(words)
    if not (0 < len(odd) <= numbers / 4 and numbers >= _MANY):
        return Column(name, "category")
    return Column(name, "category", f"its values are numbers, but for {', '.join(map(repr, odd[:3]))}")


def _spells_number(value: Any) -> bool:
    try:
        plain_number(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):  # a whole number may be too long for a float
        return False
    return True


def _nested(name: Name) -> Column:
    return Column(name, "nested", "lists, structures and bytes cannot be modelled")


def _binary_or_absent(x: NDArray) -> Any:
    return (x == 0) | (x == 1) | (x != x)


def _is_number(value: Any) -> bool:
    return not isinstance(value, str | bool | np.bool_ | _NESTED) and _spells_number(value)
