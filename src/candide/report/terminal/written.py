"""Files that a command wrote, and what an installation runs on, on a terminal."""

from rich.text import Text

from candide import formatting
from candide.report.doctor import Installation
from candide.report.summary import (
    ExportSummary,
    PageSummary,
    PlotSummary,
    ReportSummary,
    ScoredFileSummary,
    ServerStateSummary,
)
from candide.report.terminal.layout import Parts, escape, render_notes, render_parts


@render_parts.register
def _(found: ScoredFileSummary) -> Parts:
    return [escape(f"{formatting.format_count(found.rows)} scored into {found.output}")]


@render_parts.register
def _(found: ServerStateSummary) -> Parts:
    return [escape(f"{found.state}: a model of {formatting.format_count(found.rows)}, kept in {found.output}")]


@render_parts.register
def _(found: PlotSummary) -> Parts:
    text = f"{found.plot_name} of {found.model} drawn into {found.output}"
    return [escape(text), *render_notes([] if found.note is None else [found.note])]


@render_parts.register
def _(found: PageSummary) -> Parts:
    told = () if found.assessment is None else found.assessment.sentences
    return [
        escape(found.title),
        *map(escape, told),
        *render_notes([f"{one.section}: {one.reason}" for one in found.missing_sections]),
    ]


@render_parts.register
def _(found: ReportSummary) -> Parts:
    text = f"report of {found.model} written into {found.output} ({found.size_bytes / 1000:,.0f} kB)"
    return [escape(text), *render_notes(found.missing_sections)]


@render_parts.register
def _(found: ExportSummary) -> Parts:
    return [
        escape(f"{found.model} exported into {found.output}, {found.description} of {found.size_bytes / 1000:,.0f} kB")
    ]


@render_parts.register
def _(found: Installation) -> Parts:
    width = max(map(len, found.findings))
    return [Text("\n".join(f"{name:{width}} {value}" for name, value in found.findings.items()))]
