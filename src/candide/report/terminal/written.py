"""Files that a command wrote, and what an installation runs on, on a terminal."""

from rich.text import Text

from candide import wording
from candide.report.doctor import Installation
from candide.report.summary import PictureSummary, WrittenSummary
from candide.report.terminal.layout import Parts, escape, notes, parts


@parts.register
def _(found: WrittenSummary) -> Parts:
    return [escape(f"{wording.plural(found.rows)} scored into {found.output}")]


@parts.register
def _(found: PictureSummary) -> Parts:
    text = f"{found.what} of {found.model} drawn into {found.output}"
    return [escape(text), *notes([] if found.note is None else [found.note])]


@parts.register
def _(found: Installation) -> Parts:
    width = max(map(len, found.findings))
    return [Text("\n".join(f"{name:{width}} {value}" for name, value in found.findings.items()))]
