"""Reports: what a model and its scores look like to a person, and the same as plain facts for a program. No maths."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from candide import explain, features
from candide.census import Census
from candide.fitted import Fitted, Scorer
from candide.labels import Labels
from candide.scores import Scores, spread
from candide.table import Table as Rows
from candide.table import spoken

_MEANING = {
    "accuracy": "rows whose most probable class is right",
    "balanced_accuracy": "the same, every class counting alike",
    "log_loss": "mean surprise at the truth, in nats; lower is better",
    "brier": "mean squared error of the probabilities; lower is better",
    "auc": "chance that a row of a class ranks above a row of another",
    "calibration_error": "how far stated confidence is from what came true",
}
_MOST = 40  # columns, classes or levels in a table for the eye


def say(*parts: RenderableType) -> None:
    """Print parts one under another, a line between."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
    console.print()
    for part in parts:
        console.print(part)
        console.print()


def show_fit(learned: Any, validation: Any, data: str, output: str | None) -> None:
    """The summary after a fit, from classes to the next command."""
    census = learned.fitted.census
    parts: list[RenderableType] = [
        _panel(
            f"{census.n_rows:,} rows counted, {len(census.labels)} classes of {learned.fitted.target!r}, "
            f"{len(census.plan.columns)} columns modelled{_of_them(learned.fitted)}",
            "candide fit",
        ),
        classes(census),
        columns(census, learned.columns),
    ]
    if learned.notes:
        parts.append("\n".join(f"[yellow]note[/yellow]  {escape(note)}" for note in learned.notes))
    if validation:
        parts += [
            metrics(validation.folds, f"Cross-validated, {len(validation.folds)} folds"),
            confusion(validation.total, census.labels),
        ]
    parts.append(_next(data, learned.fitted.target, output, validation is not None))
    say(*parts)


def fit_facts(learned: Any, validation: Any, output: str | None) -> dict[str, Any]:
    census = learned.fitted.census
    kinds = {column.name: column.kind for column in learned.columns}
    facts = {
        "rows": census.n_rows,
        "target": learned.fitted.target,
        "classes": _shares(census),
        "columns": [
            {"column": n, "kind": kinds.get(n), "event": part.event.name}
            for part in census.plan.parts
            for n in part.columns
        ],
        "strengths": dict(features.strengths(census)),
        "notes": learned.notes,
        "output": output,
    }
    return facts | ({"cross_validation": score_facts(validation.folds, census.labels)} if validation else {})


def show_scores(folds: Sequence[Scores], labels: Labels) -> None:
    """Metrics with their spread, and the confusion matrix."""
    total = sum(folds[1:], folds[0])
    title = (
        f"Cross-validated, {len(folds)} folds, {total.n:,.10g} rows"
        if len(folds) > 1
        else f"Scored on {total.n:,.10g} rows"
    )
    say(metrics(folds, title), confusion(total, labels))


def score_facts(folds: Sequence[Scores], labels: Labels) -> dict[str, Any]:
    total = sum(folds[1:], folds[0])
    facts: dict[str, Any] = {"rows": total.n, "folds": len(folds)}
    facts |= {name: {"mean": mean, "sd": sd} for name, (mean, sd) in spread(list(folds)).items()}
    return facts | {"classes": list(labels.values), "confusion": total.confusion.tolist()}


def show_model(fitted: Fitted | Scorer, levels: int) -> None:
    """Classes, columns by strength, and every column given the class."""
    rows = fitted.rows if isinstance(fitted, Scorer) else fitted.census.n_rows
    parts: list[RenderableType] = [
        _panel(
            f"{'no counts kept' if rows is None else f'{rows:,} rows counted'}; "
            f"{f'predicts {escape(repr(fitted.target))}; ' if fitted.target is not None else ''}"
            f"estimate: {fitted.settings.estimate}; class prior: {escape(str(fitted.settings.class_prior))}",
            "candide show",
        ),
    ]
    parts += (
        _without_counts(fitted)
        if isinstance(fitted, Scorer)
        else [classes(fitted.census), columns(fitted.census, ()), scores(fitted)]
    )
    shown = list(explain.conditionals(fitted, levels))
    parts += [_given(given, fitted.labels) for given in shown[:_MOST]]
    if len(shown) > _MOST:
        parts.append(f"[dim]and {len(shown) - _MOST} more columns; --json has them all[/dim]")
    say(*parts)


def _of_them(fitted: Any) -> str:
    return f", {len(fitted.plan.columns)} of them chosen" if fitted.settings.select else ""


def _without_counts(fitted: Scorer) -> list[RenderableType]:
    """What a model without its counts can say of its classes, and of its columns if it was told."""
    table = _table("Classes", "class", "share")
    for label, share in list(_model_shares(fitted).items())[:_MOST]:
        table.add_row(escape(label), f"{share:6.1%}")
    if fitted.strengths is None:
        return [table]
    told = _table("Columns, strongest first", "column", "nats per row")
    for name, strength in fitted.strengths[:_MOST]:
        told.add_row(escape(str(name)), f"{strength:.3f}")
    return [table, told]


def _model_shares(fitted: Scorer) -> dict[str, float]:
    return {str(v): float(p) for v, p in zip(fitted.labels.values, np.exp(fitted.model.log_prior), strict=True)}


def model_facts(fitted: Fitted | Scorer, levels: int) -> dict[str, Any]:
    if isinstance(fitted, Scorer):
        told = dict(fitted.strengths or ())
        counted: dict[str, Any] = {"rows": fitted.rows, "classes": _model_shares(fitted), "strengths": told}
    else:
        census = fitted.census
        counted = {
            "rows": census.n_rows,
            "classes": _shares(census),
            "strengths": dict(features.strengths(census)),
            "scores": [vars(score) for score in fitted.feature_scores()],
        }
    return {
        **counted,
        "target": fitted.target,
        "estimate": fitted.settings.estimate,
        "select": fitted.settings.select,
        "provenance": dict(fitted.provenance),
        "columns": [
            {"column": g.column, "event": g.event, "given": dict(zip(g.rows, g.values.tolist(), strict=True))}
            for g in explain.conditionals(fitted, levels)
        ],
    }


def show_rows(table: Any, as_json: bool) -> None:
    """Scored rows: JSON lines, a table for the eye on a terminal, CSV in a pipe."""
    if as_json:
        for row in table.to_pylist():
            print(json.dumps(row, default=str))
    elif sys.stdout.isatty():
        head = table.slice(0, 20).to_pylist()
        shown = _table(
            f"{table.num_rows:,} rows" + (", the first 20" if table.num_rows > 20 else ""), *table.column_names
        )
        for row in head:
            shown.add_row(*(f"{v:.4f}" if isinstance(v, float) else escape(str(v)) for v in row.values()))
        say(shown)
    else:
        import pyarrow.csv

        pyarrow.csv.write_csv(table, sys.stdout.buffer)


def text_facts(fitted: Any, text: str) -> dict[str, Any]:
    """What a model makes of one document, and the words that decided."""
    column = explain.text_part(fitted)[1].columns[0]
    rows = {name: [text if name == column else None] for name in fitted.plan.columns}
    p = fitted.posterior(Rows.of(rows))[0]
    words = [{"term": w.term, "count": w.count, "weight": w.weight} for w in explain.witnesses(fitted, text)]
    shares = {str(label): float(share) for label, share in zip(fitted.labels.values, p, strict=True)}
    return {"prediction": fitted.labels.values[int(p.argmax())], "probabilities": shares, "words": words}


def show_text(facts: dict[str, Any]) -> None:
    """The class of one document, the probabilities, and the words that decided."""
    table = _table("Probabilities", "class", "probability")
    for label, p in sorted(facts["probabilities"].items(), key=lambda pair: -pair[1])[:_MOST]:
        table.add_row(escape(label), f"{p:.4f}")
    words = _table("Words that decided", "term", "count", "log-odds")
    for word in facts["words"]:
        words.add_row(escape(word["term"]), f"{word['count']:g}", f"{word['weight']:+.3f}")
    say(_panel(escape(str(facts["prediction"])), "candide predict"), table, words)


def show_demo(run: Any) -> None:
    """The demo's story, from table to verdict."""
    census = run.learned.fitted.census
    story = (
        f"{census.n_rows:,} plants were drawn from a made-up garden, one value in twenty lost, and counted once.\n"
        f"The model was then asked about {run.scores.n:,.0f} plants it had not seen."
    )
    say(
        _panel(story, "candide demo"),
        classes(census),
        columns(census, ()),
        metrics([run.scores], "On plants it has not seen"),
        confusion(run.scores, census.labels),
    )


def show_changes(found: Any) -> None:
    """What moved between two models, most surprising first."""
    parts: list[RenderableType] = [_panel(f"{found.rows[0]:,} rows before, {found.rows[1]:,} after", "candide diff")]
    moves: list[tuple[str, Any, Any]] = [
        ("Classes", found.classes, lambda m: [str(m.label), _way(m.before, m.after, m.status, ".1%")]),
        ("Columns", found.columns, lambda m: [f"{spoken(m.column)}, {m.label}", _ways(m.values)]),
        ("Levels", found.levels, lambda m: [f"{m.column} = {m.level}, {m.label}", _way(m.before, m.after, m.status)]),
    ]
    for title, some, tell in moves:
        table = _table(f"{title} that moved, most surprising first", title.lower(), "how", "moved", "surprise")
        for move in some[:_MOST]:
            table.add_row(*map(escape, tell(move)), f"{move.moved:.3g}", f"{move.surprise:.3g}")
        parts.append(table if some else f"[dim]{title}: nothing moved[/dim]")
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


def classes(census: Census) -> Table:
    """The classes and their shares."""
    table = _table("Classes", "class", "weight", "share")
    shares = _shares(census)
    for label, weight in list(zip(census.labels.values, census.class_weight, strict=True))[:_MOST]:
        table.add_row(escape(str(label)), f"{weight:,.10g}", f"{shares[str(label)]:6.1%}")
    if len(census.labels) > _MOST:
        table.add_row(f"[dim]and {len(census.labels) - _MOST} more[/dim]")
    return table


def columns(census: Census, looked: Sequence[Any]) -> Table:
    """The columns by strength, with their event models and what was seen of each; then those left out."""
    table = _table("Columns, strongest first", "column", "event model", "seen as", "missing", "nats per row")
    strength = dict(features.strengths(census))
    rows = []
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        pooled = tally.pool()
        for j, name in enumerate(part.columns):
            missing = 1 - pooled.n[0, j] / max(census.class_weight.sum(), 1e-300)  # type: ignore[attr-defined]
            told = f"{round(strength[name], 3) + 0.0:.3f}" if name in strength else ""
            rows.append(
                (
                    -strength.get(name, 0.0),
                    [
                        escape(str(name)),
                        part.event.name,
                        escape(_seen(part, pooled, j)),
                        f"{max(missing, 0):.1%}",
                        told,
                    ],
                )
            )
    rows.sort(key=lambda row: row[0])
    for _, row in rows[:_MOST]:
        table.add_row(*row)
    if len(rows) > _MOST:
        table.add_row(f"[dim]and {len(rows) - _MOST} more[/dim]")
    used = set(census.plan.columns)
    for column in looked:
        if column.name not in used:
            table.add_row(
                f"[dim]{escape(str(column.name))}[/dim]", "[dim]left out[/dim]", f"[dim]{column.kind}[/dim]", "", ""
            )
    return table


def scores(fitted: Fitted) -> Text:
    """How much each column tells of the class, three ways."""
    found = fitted.feature_scores()
    some = f"; {sum(score.chosen for score in found):,} of {len(found):,} chosen" if fitted.settings.select else ""
    title = f"How much each column tells of the class{some} (evidence and information in nats)\n"
    return Text.assemble((title, "bold"), str(found), no_wrap=True)


def metrics(folds: Sequence[Scores], title: str) -> Table:
    """Every metric, its spread over folds, and its meaning."""
    several = len(folds) > 1
    table = _table(title, "metric", "value", *(["± sd"] if several else []), "meaning")
    for name, (mean, sd) in spread(list(folds)).items():
        table.add_row(
            name.replace("_", " "), f"{mean:.4f}", *([f"{sd:.4f}"] if several else []), f"[dim]{_MEANING[name]}[/dim]"
        )
    return table


def confusion(scores: Scores, labels: Labels) -> RenderableType:
    """True classes down, predicted classes across."""
    if len(labels) > 12:
        return f"[dim]The confusion matrix of {len(labels)} classes is in --json.[/dim]"
    table = _table("Confusion", "true \\ predicted", *(escape(str(v)) for v in labels.values))
    for label, row in zip(labels.values, scores.confusion, strict=True):
        table.add_row(escape(str(label)), *(f"{v:,.10g}" for v in row))
    return table


def _given(given: explain.Given, labels: Labels) -> Table:
    title = f"{escape(str(given.column))} [dim]{given.event}, given the class[/dim]"
    table = _table(title, "", *(escape(str(v)) for v in labels.values[:12]))
    for name, row in zip(given.rows, given.values, strict=True):
        table.add_row(escape(name), *(f"{v:.4g}" for v in row[:12]))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="cyan",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for i, heading in enumerate(headings):
        number = i > 0 and heading not in ("event model", "seen as", "meaning", "how")
        table.add_column(
            heading,
            justify="right" if number else "left",
            no_wrap=heading not in ("meaning", "seen as", "how"),
            overflow="ellipsis",
            min_width=max(len(heading), 6) if number else None,
        )
    return table


def _panel(text: str, title: str) -> Panel:
    return Panel(text, title=title, title_align="left", expand=False)


def _shares(census: Census) -> dict[str, float]:
    total = census.class_weight.sum()
    return {str(label): float(w / total) for label, w in zip(census.labels.values, census.class_weight, strict=True)}


def _seen(part: Any, pooled: Any, j: int) -> str:
    if part.has_levels:
        names = [str(v) for v in part.levels[j].values]
        short = ", ".join(n if len(n) <= 20 else n[:17] + "..." for n in names[:3])
        return f"{len(names)} levels: {short}{', ...' if len(names) > 3 else ''}"
    n = max(pooled.n[0, j], 1e-300)
    if part.event.kind in ("moments", "comoments"):
        return f"mean {pooled.mean[0, j]:.4g}, sd {(pooled.m2[0, j] / n) ** 0.5:.4g}"
    if part.event.kind == "terms":
        return f"{pooled.n_terms:,} terms"
    if part.event.kind == "sums":
        return f"mean {pooled.total[0, j] / n:.4g}"
    return f"{n:,.10g} values"


def _next(data: str, target: str, output: str | None, validated: bool) -> str:
    if output:
        steps = [f"candide predict {output} NEW_DATA -o scored.parquet", f"candide show {output}"]
    else:
        steps = [f"candide fit {data} --target {target} -o model.candide"]
    if not validated:
        steps.append(f"candide evaluate {data} --target {target} --folds 10")
    return "[bold]Next[/bold]\n" + "\n".join(f"  {escape(step)}" for step in steps)
