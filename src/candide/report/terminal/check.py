"""What may be wrong with a table, on a terminal."""

from candide import formatting
from candide.report.summary import CheckSummary
from candide.report.terminal.layout import (
    MAX_TABLE_ROWS,
    HangingParagraphs,
    Parts,
    escape,
    make_panel,
    render_notes,
    render_parts,
)


@render_parts.register
def _(found: CheckSummary) -> Parts:
    """Every finding beside its sort, the remedy below it."""
    many = formatting.format_count(found.rows), formatting.format_count(found.columns, "column")
    what = formatting.format_count(len(found.findings), "finding") if found.findings else "nothing found"
    shown: Parts = [make_panel(escape(f"{' and '.join(many)} of {found.data}: {what}"), "candide check")]
    if found.findings:
        rows = []
        for one in found.findings[:MAX_TABLE_ROWS]:
            remedy = f"\n[dim]{escape(one.remedy)}[/dim]" if one.remedy else ""
            rows.append((f"[yellow]{one.code}[/yellow]", escape(one.text) + remedy))
        shown.append(HangingParagraphs(rows))
    if len(found.findings) > MAX_TABLE_ROWS:
        shown.append(f"[dim]and {len(found.findings) - MAX_TABLE_ROWS:,} more; --json has them all[/dim]")
    return [*shown, *render_notes(found.notes)]
