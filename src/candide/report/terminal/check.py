"""What may be wrong with a table, on a terminal."""

from candide import wording
from candide.report.summary import CheckSummary
from candide.report.terminal.layout import MOST, Hanging, Parts, escape, notes, panel, parts


@parts.register
def _(found: CheckSummary) -> Parts:
    """Every finding beside its sort, the remedy below it."""
    many = wording.plural(found.rows), wording.plural(found.columns, "column")
    what = wording.plural(len(found.findings), "finding") if found.findings else "nothing found"
    shown: Parts = [panel(escape(f"{' and '.join(many)} of {found.data}: {what}"), "candide check")]
    if found.findings:
        rows = []
        for one in found.findings[:MOST]:
            remedy = f"\n[dim]{escape(one.remedy)}[/dim]" if one.remedy else ""
            rows.append((f"[yellow]{one.code}[/yellow]", escape(one.text) + remedy))
        shown.append(Hanging(rows))
    if len(found.findings) > MOST:
        shown.append(f"[dim]and {len(found.findings) - MOST:,} more; --json has them all[/dim]")
    return [*shown, *notes(found.notes)]
