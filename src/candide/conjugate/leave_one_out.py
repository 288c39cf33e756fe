"""Leave-one-out: the tally without each of some rows, all at once.

Only the row's own class changes. The result has an axis of rows before those of classes and features, and an estimate
that carries leading axes along gives one distribution a row.

>>> from candide.tally import Sums
>>> whole = Sums(n=np.array([[2.0], [1.0]]), total=np.array([[5.0], [7.0]]), log_factorial=np.zeros((2, 1)))
>>> rows = Sums(n=np.ones((2, 1)), total=np.array([[3.0], [7.0]]), log_factorial=np.zeros((2, 1)))
>>> tally_without_each(whole, rows, np.array([0, 1])).total[:, :, 0].tolist()  # without 3 in class 0, 7 in class 1
[[2.0, 7.0], [5.0, 0.0]]
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.errors import CellError, NotCountedError
from candide.tally import Tally

T = TypeVar("T", bound=Tally)  # a dataclass of arrays whose first axis is the classes


def own_class_without_row(tally: T, rows: T, y: Codes) -> T:
    """The tally of each row's class without the row; ``rows`` is the tally of each row as a class of its own."""
    try:
        return tally.select_classes(y).subtract_approximately(rows)
    except NotCountedError as error:
        raise NotCountedError(error.reason, row=error.cell and error.cell[0]) from None


def tally_without_each(tally: T, rows: T, y: Codes) -> T:
    """The tally of all classes without each row, (row, class, ...)."""
    left = own_class_without_row(tally, rows, y)
    held = {name: a for name in tally.state if (a := getattr(tally, name)) is not None}
    among = {name: replace_own_class(a, getattr(left, name), y) for name, a in held.items()}
    return replace(tally, **among)  # type: ignore[type-var]


def replace_own_class(classes: Floats, own_values: Floats, y: Codes) -> Floats:
    """(row, class, ...) values of all classes, with that of each row's class replaced by its own."""
    out = np.repeat(classes[None], len(y), axis=0)
    out[np.arange(len(y)), y] = own_values
    return out


@contextmanager
def name_rows_in_errors(numbers: "Sequence[int] | Codes") -> Iterator[None]:
    """Give errors about one of some rows the number of that row."""
    try:
        yield
    except (CellError, NotCountedError) as error:
        row = int(numbers[error.row or 0])
        if isinstance(error, CellError):
            raise CellError(error.class_code, error.feature, error.reason, row=row) from None
        raise NotCountedError(error.reason, row=row) from None
