"""What moved between two models, for a person and as facts."""

from typing import Any

from rich.console import RenderableType
from rich.markup import escape

from candide import wording
from candide.report.layout import Sheet, panel, say


def show_changes(found: Any) -> None:
    """What moved between two models, most surprising first."""
    parts: list[RenderableType] = [
        panel(f"{wording.plural(found.rows[0])} before, {found.rows[1]:,} after", "candide diff")
    ]
    moves: list[tuple[str, Any, Any]] = [
        ("Classes", found.classes, lambda m: [str(m.label), _way(m.before, m.after, m.status, ".1%")]),
        ("Columns", found.columns, lambda m: [f"{wording.column(m.column)}, {m.label}", _ways(m.values)]),
        ("Levels", found.levels, lambda m: [f"{m.column} = {m.level}, {m.label}", _way(m.before, m.after, m.status)]),
    ]
    for title, some, tell in moves:
        rows = [[*map(escape, tell(move)), f"{move.moved:.3g}", f"{move.surprise:.3g}"] for move in some]
        heads = (title.lower(), "how", "moved", "surprise")
        sheet = Sheet(f"{title} that moved, most surprising first", *heads, text=["how"], rows=rows)
        parts.append(sheet if some else f"[dim]{title}: nothing moved[/dim]")
    if found.left_out:
        parts.append(f"[dim]not compared: {escape(', '.join(map(str, found.left_out)))}[/dim]")
    say(*parts, "[dim]moved: divergence in nats; surprise: in nats of evidence that it is no accident[/dim]")


def change_facts(found: Any) -> dict[str, Any]:
    facts = {name: [vars(move) for move in getattr(found, name)] for name in ("classes", "columns", "levels")}
    return {"rows": list(found.rows), **facts, "left_out": found.left_out}


def _way(before: float, after: float, status: str, form: str = ".3g") -> str:
    return f"{before:{form}} -> {after:{form}}" + (f" ({status})" if status else "")


def _ways(values: dict[str, tuple[float, float]]) -> str:
    return "; ".join(f"{name} {_way(*pair, '')}" for name, pair in values.items())
