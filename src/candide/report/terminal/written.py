"""Files that a command wrote, and what an installation runs on, on a terminal."""

from rich.text import Text

from candide import wording
from candide.report.doctor import Installation
from candide.report.summary import (
    ExportSummary,
    PageSummary,
    PictureSummary,
    ReportSummary,
    StateSummary,
    WrittenSummary,
)
from candide.report.terminal.layout import Parts, escape, notes, parts


@parts.register
def _(found: WrittenSummary) -> Parts:
    return [escape(f"{wording.plural(found.rows)} scored into {found.output}")]


@parts.register
def _(found: StateSummary) -> Parts:
    return [escape(f"{found.state}: a model of {wording.plural(found.rows)}, kept in {found.output}")]


@parts.register
def _(found: PictureSummary) -> Parts:
    text = f"{found.what} of {found.model} drawn into {found.output}"
    return [escape(text), *notes([] if found.note is None else [found.note])]


@parts.register
def _(found: PageSummary) -> Parts:
    told = () if found.verdict is None else found.verdict.sentences
    return [escape(found.title), *map(escape, told), *notes([f"{one.what}: {one.why}" for one in found.gaps])]


@parts.register
def _(found: ReportSummary) -> Parts:
    text = f"report of {found.model} written into {found.output} ({found.bytes / 1000:,.0f} kB)"
    return [escape(text), *notes(found.gaps)]


@parts.register
def _(found: ExportSummary) -> Parts:
    return [escape(f"{found.model} exported into {found.output}, {found.what} of {found.bytes / 1000:,.0f} kB")]


@parts.register
def _(found: Installation) -> Parts:
    width = max(map(len, found.findings))
    return [Text("\n".join(f"{name:{width}} {value}" for name, value in found.findings.items()))]
