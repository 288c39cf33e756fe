"""Targets: what cannot be the classes of a classifier, by one rule for every entry point.

>>> try:
...     check_number_of_classes(2331, 3000, "price")
... except InputError as error:
...     print(error.column, error.value, error.remedy)
price 2331 name another target, or bin it
"""

from candide.errors import InputError

MOST_CLASSES = 1000  # different labels among the rows that are looked at
_REMEDY = "name another target, or bin it"


def check_number_of_classes(
    n: int, n_rows: int, column: str | None = None, *, most: int = MOST_CLASSES, remedy: str = _REMEDY
) -> None:
    """Refuse labels of which the first rows have too many different ones to be classes."""
    if n > most:
        what = f"{n:,} different values in the first {n_rows:,} rows: an identifier or a quantity, not a class"
        raise InputError(what if column else f"y: {what}", column=column, value=n, remedy=remedy)
