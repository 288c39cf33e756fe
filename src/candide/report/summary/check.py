"""What may be wrong with a table, as a record."""

from dataclasses import dataclass

from candide.report.record import Summary
from candide.rows.remarks import Remark
from candide.tasks.check import Checked


@dataclass(frozen=True, repr=False)
class CheckSummary(Summary):
    """A table that was checked, and what was found in it, gravest first."""

    data: str
    target: str
    rows: int
    columns: int
    findings: tuple[Remark, ...]
    notes: tuple[str, ...]


def of_check(data: str, target: str, found: Checked) -> CheckSummary:
    """The summary of a check of some data."""
    notes = tuple(map(str, found.remarks))
    return CheckSummary(data, target, found.census.n_rows, len(found.columns), tuple(found.findings), notes)
