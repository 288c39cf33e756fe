"""Monitoring: data checks of a table, and drift of new rows from those a model was fitted on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from candide import formatting
from candide.data.notes import Note
from candide.data.table import Name
from candide.monitoring.data_checks import CheckResult
from candide.monitoring.drift import DENSITY_QUANTILES, ColumnDrift, Drift, PredictionSummary
from candide.report import records
from candide.report.records import Column, Paragraph, Section, Summary, notes, paragraph, section, table

_LARGE_INDEX, _MODERATE_INDEX = 0.25, 0.1  # customary limits of a population stability index


def _findings(check: "CheckSummary", findings: Sequence[Note]) -> Iterator[Section]:
    first = findings[: records.MAX_TABLE_ROWS]
    yield records.LabelledParagraphs([(note.code, note.text, note.remedy) for note in first])
    if more := len(findings) - len(first):
        yield Paragraph(f"and {more:,} more; --json lists all", "dim")


@dataclass(frozen=True, repr=False)
class CheckSummary(Summary):
    """A table that was checked, and the findings, the most serious first."""

    data: str
    target: str
    rows: int
    columns: int
    findings: tuple[Note, ...] = field(metadata=section(_findings))
    notes: tuple[str, ...] = field(metadata=notes())

    frame = "candide check"

    @property
    def headline(self) -> str:
        findings = formatting.format_count(len(self.findings), "finding") if self.findings else "no findings"
        columns = formatting.format_count(self.columns, "column")
        return f"{formatting.format_count(self.rows)} and {columns} of {self.data}: {findings}"


def summarize_check(data: str, target: str, result: CheckResult) -> CheckSummary:
    texts, n_rows = tuple(map(str, result.notes)), result.counts.n_rows
    return CheckSummary(data, target, n_rows, len(result.columns), tuple(result.findings), texts)


def describe_change(column: ColumnDrift) -> str:
    """Return how a column changed: the proportion of a level, the mean, the proportion that is missing."""
    values = dict(column.values)
    missing = values.pop("missing", (0.0, 0.0))
    if column.most_changed_level is not None:
        before, after = map(formatting.format_percent, values["share"])
        return f"{column.most_changed_level}: {before} -> {after}"
    number = formatting.format_number
    texts = [f"{name} {number(before)} -> {number(after)}" for name, (before, after) in values.items()]
    if abs(missing[0] - missing[1]) > 0.001:
        texts.append(f"missing {formatting.format_percent(missing[0])} -> {formatting.format_percent(missing[1])}")
    return "; ".join(texts)


def _drift_title(drift: "DriftSummary") -> str:
    before = "unknown" if drift.rows[0] is None else f"{drift.rows[0]:,}"
    return f"Columns, {formatting.format_count(drift.rows[1])} against {before} in training"


def _predictions(drift: "DriftSummary", after: PredictionSummary) -> Iterator[Section]:
    before = drift.before
    text = f"Expected accuracy {formatting.format_percent(after.expected_accuracy)} on these rows"
    if before is not None and before.expected_accuracy == before.expected_accuracy:
        text += f", {formatting.format_percent(before.expected_accuracy)} on those before"
    yield Paragraph(f"{text}, if the model is calibrated.")
    if after.density_quantiles and before is not None:
        rows = "rows drawn from the model" if drift.is_sampled else "the rows before"
        yield Paragraph(
            f"Mean log p(x) {after.mean_density:.2f}, {before.mean_density:.2f} for {rows}; "
            f"{formatting.format_percent(after.unlikely_share)} of these rows are less likely than all but 1% of those."
        )


@dataclass(frozen=True, repr=False)
class DriftSummary(Summary):
    """Columns by the evidence that they drifted, and the model's predictions before and after."""

    rows: tuple[int | None, int]
    conclusion: str = field(metadata=paragraph(style="bold"))
    columns: tuple[ColumnDrift, ...] = field(
        metadata=table(
            _drift_title,
            Column("column", "column"),
            Column("change", describe_change, is_text=True),
            Column("stability index", "stability_index", ".4f"),
            Column("p", "adjusted_p_value", lambda p: "< 0.0001" if p < 1e-4 else f"{p:.4f}"),
            Column("test", "test", is_text=True, is_optional=True),
            caption="p: probability of a change this large in any column by chance, adjusted for the number of columns",
        )
    )
    drifted_columns: tuple[Name, ...]  # beyond chance
    before: PredictionSummary | None
    after: PredictionSummary = field(metadata=section(_predictions))
    is_sampled: bool  # whether the rows before were drawn from the model
    quantiles: tuple[float, ...]  # of log p(x), in before and after
    skipped_columns: tuple[Name, ...]
    notes: tuple[str, ...] = field(default=(), metadata=notes())


def summarize_drift(drift: Drift) -> DriftSummary:
    drifted = sorted(drift.drifted_columns, key=lambda column: -column.stability_index)
    conclusion = "No column has drifted beyond chance."
    if drifted:
        names, verb = formatting.format_list([c.column for c in drifted], 4), "has" if len(drifted) == 1 else "have"
        index = drifted[0].stability_index
        size = "strongly" if index >= _LARGE_INDEX else "moderately" if index >= _MODERATE_INDEX else "slightly"
        conclusion = f"{names} {verb} drifted {size}."
    start, texts = "no earlier rows were given (candide drift --before)", list[str]()
    if drift.is_before_drawn and drift.summary_before is not None and drift.summary_after.density_quantiles:
        texts.append(
            f"{start}, so log p(x) is compared with rows drawn from the model; real rows are less likely than those "
            "where columns depend on each other, even without drift"
        )
    elif drift.is_before_drawn:
        texts.append(f"{start}, and the model cannot be sampled: log p(x) is not compared")
    if skipped := drift.skipped_columns:
        verb = "is" if len(skipped) == 1 else "are"
        texts.append(f"{formatting.format_list(skipped)} {verb} not compared: drift of text is not tested")
    return DriftSummary(
        drift.n_rows,
        conclusion,
        tuple(drift.columns),
        tuple(column.column for column in drift.drifted_columns),
        drift.summary_before,
        drift.summary_after,
        drift.is_before_drawn,
        DENSITY_QUANTILES,
        tuple(skipped),
        tuple(texts),
    )
