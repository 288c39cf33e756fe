"""What may be wrong with a table, as a record."""

from dataclasses import dataclass

from candide.data.notes import Note
from candide.monitoring.data_checks import CheckResult
from candide.report.records import Summary


@dataclass(frozen=True, repr=False)
class CheckSummary(Summary):
    """A table that was checked, and what was found in it, gravest first."""

    data: str
    target: str
    rows: int
    columns: int
    findings: tuple[Note, ...]
    notes: tuple[str, ...]


def summarize_check(data: str, target: str, found: CheckResult) -> CheckSummary:
    """The summary of a check of some data."""
    notes = tuple(map(str, found.notes))
    return CheckSummary(data, target, found.counts.n_rows, len(found.columns), tuple(found.findings), notes)
