"""Targets: what cannot be the classes of a classifier, by one rule for every entry point.

>>> try:
...     check_number_of_classes(2331, 3000, "price")
... except InputError as error:
...     print(error.column, error.value, error.remedy)
price 2331 name another target, or bin it
>>> [is_missing_label(value) for value in (None, float("nan"), "", " ", "no", 0)]
[True, True, True, True, False, False]
"""

from typing import Any

from candide.data.labels import is_absent
from candide.errors import InputError

MAX_CLASSES = 1000  # different labels among the rows that are looked at
_REMEDY = "name another target, or bin it"


def check_number_of_classes(
    n: int, n_rows: int, column: str | None = None, *, max_classes: int = MAX_CLASSES, remedy: str = _REMEDY
) -> None:
    """Refuse labels of which the first rows have too many different ones to be classes."""
    if n > max_classes:
        what = f"{n:,} different values in the first {n_rows:,} rows: an identifier or a quantity, not a class"
        raise InputError(what if column else f"y: {what}", column=column, value=n, remedy=remedy)


def is_missing_label(value: Any) -> bool:
    """Whether a label of a row in a table is missing: absent, or text that is empty or blank."""
    return is_absent(value) or (isinstance(value, str) and not value.strip())


def has_label(column: Any) -> Any:
    """Find the rows of an Arrow column whose label is not missing, by the rule of :func:`is_missing_label`.

    >>> import pyarrow as pa
    >>> has_label(pa.array(["yes", "", None, " "])).to_pylist()
    [True, False, False, False]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    present = pc.invert(column.is_null(nan_is_null=True))
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return present
    length = pc.utf8_length(pc.utf8_trim_whitespace(column.cast(pa.large_string())))
    return pc.and_kleene(present, length.cast(pa.bool_()))  # compared with a Python value, Arrow would import pandas
