"""Remarks: what a person should know of the data, though it is no error. A note in a report, a warning in Python.

>>> remark = Remark("label-missing", "2 rows have no value of 'y' and were left out", column="y")
>>> str(remark), remark.code, remark.column
("2 rows have no value of 'y' and were left out", 'label-missing', 'y')
>>> str(Remark("text", "column 'age' is read as text because of 'old'", "age", "mend it or pass --na 'old'"))
"column 'age' is read as text because of 'old'; mend it or pass --na 'old'"
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from candide.rows.table import Name


@dataclass(frozen=True)
class Remark:
    """One thing to know: a code for machines, a sentence, the column it is about, and what may be done."""

    code: str
    text: str
    column: Name | None = None
    remedy: str = ""
    columns: tuple[Name, ...] = ()  # all that it is about, where they may be several

    def __str__(self) -> str:
        return f"{self.text}; {self.remedy}" if self.remedy else self.text


class RemarkWarning(UserWarning):
    """A remark, where it is told by a warning; ``remark`` has its parts."""

    def __init__(self, remark: Remark):
        super().__init__(str(remark))
        self.remark = remark


def warn(remarks: Iterable[Remark], stacklevel: int = 2) -> None:
    """Tell remarks by warnings, at the line of whoever called the caller."""
    for remark in remarks:
        warnings.warn(RemarkWarning(remark), stacklevel=stacklevel + 1)


def left_out(n: int, why: str, column: Name) -> list[Remark]:
    """A remark on rows that have something, or lack it, and were left out."""
    if not n:
        return []
    verbs = ("has", "was") if n == 1 else ("have", "were")
    text = f"{n:,} row{'' if n == 1 else 's'} {verbs[0]} {why} and {verbs[1]} left out"
    return [Remark("label-missing", text, column)]
