"""A model as a person sees it: after a fit, and whenever it is shown; and the same as facts."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from candide import wording
from candide.explain.features import feature_scores
from candide.model.census import Census
from candide.model.fitted import Fitted
from candide.report import given
from candide.report.layout import MOST, Sheet, notes, panel, say
from candide.report.scored import confusion, metrics, remarks, score_facts
from candide.rows.table import Name


def show_fit(
    learned: Any,
    validation: Any,
    data: str,
    output: str | None,
    learning: Sequence[str] = (),
    reading: Sequence[str] = (),
) -> None:
    """The summary after a fit, from classes to the next command, with the options given for learning and reading."""
    fitted = learned.fitted
    census = fitted.census
    parts: list[RenderableType] = [
        panel(
            f"{wording.plural(census.n_rows)} counted, {len(census.labels)} classes of {escape(repr(fitted.target))}, "
            f"{wording.plural(len(census.plan.columns), 'column')} modelled{_of_them(fitted)}",
            "candide fit",
        ),
        classes(fitted),
        columns(census, learned.columns, given.strengths(fitted)),
        *notes([*learned.notes, *_empty(census)]),
    ]
    if validation:
        folds, share = validation.folds, shares(fitted)
        parts += [metrics(folds, f"Cross-validated, {len(folds)} folds", share), *notes(remarks(folds, share))]
        parts.append(confusion(validation.total, census.labels))
    again = ["evaluate", data, "--target", fitted.target, "--folds", "10", *learning, *reading]
    steps = [["fit", data, "--target", fitted.target, *learning, *reading, "-o", "model.candide"]]
    if output:
        steps = [["predict", output, "NEW_DATA", *reading, "-o", "scored.parquet"]]
        steps += [["explain", output, "NEW_DATA", *reading, "--row", "1"], ["show", output]]
    say(*parts, _next(steps if validation else [*steps, again]))


def fit_facts(learned: Any, validation: Any, output: str | None) -> dict[str, Any]:
    fitted = learned.fitted
    census = fitted.census
    kinds = {column.name: column.kind for column in learned.columns}
    facts = {
        "rows": census.n_rows,
        "target": fitted.target,
        "classes": _by_class(fitted),
        "columns": [
            {"column": n, "kind": kinds.get(n), "event": part.event.name}
            for part in census.plan.parts
            for n in part.columns
        ],
        "strengths": given.strengths(fitted),
        "notes": [*learned.notes, *_empty(census)],
        "output": output,
    }
    scored = {"cross_validation": score_facts(validation.folds, census.labels, shares(fitted))} if validation else {}
    return facts | scored


def show_model(fitted: Fitted, levels: int) -> None:
    """Classes, columns by strength, and every column given the class."""
    rows = fitted.rows
    strength = given.strengths(fitted)
    parts: list[RenderableType] = [
        panel(
            f"{'no counts kept' if rows is None else f'{wording.plural(rows)} counted'}; "
            f"{f'predicts {escape(repr(fitted.target))}; ' if fitted.target is not None else ''}"
            f"estimate: {fitted.settings.estimate}; class prior: {escape(str(fitted.settings.class_prior))}",
            "candide show",
        ),
        classes(fitted),
    ]
    if fitted.has_counts:
        parts += [columns(fitted.census, (), strength), *notes(_empty(fitted.census)), scores(fitted)]
    elif fitted.strengths is not None:
        told = [[escape(str(name)), f"{nats:.3f}"] for name, nats in strength.items()]
        parts.append(Sheet("Columns, strongest first", "column", "nats per row", rows=told))
    shown = given.givens(fitted, levels, strength)
    parts += [given.sheet(one, fitted.labels) for one in shown[:MOST]]
    if len(shown) > MOST:
        parts.append(f"[dim]and {len(shown) - MOST} more columns; --json has them all[/dim]")
    say(*parts)


def model_facts(fitted: Fitted, levels: int) -> dict[str, Any]:
    strength = given.strengths(fitted)
    facts = {
        "rows": fitted.rows,
        "classes": _by_class(fitted),
        "strengths": strength,
        "target": fitted.target,
        "estimate": fitted.settings.estimate,
        "select": fitted.settings.select,
        "provenance": dict(fitted.provenance),
        "columns": [
            {"column": g.column, "event": g.event, "given": dict(zip(g.rows, g.values.tolist(), strict=True))}
            for g in given.givens(fitted, levels, strength)
        ],
    }
    if fitted.has_counts:
        facts |= {"scores": [vars(score) for score in feature_scores(fitted)], "notes": _empty(fitted.census)}
    return facts


def show_demo(run: Any) -> None:
    """The demo's story, from table to verdict."""
    fitted, scored = run.learned.fitted, [run.scores]
    census = fitted.census
    story = (
        f"{census.n_rows:,} plants were drawn from a made-up garden, one value in twenty lost, and counted once.\n"
        f"The model was then asked about {run.scores.n:,.0f} plants it had not seen."
    )
    say(
        panel(story, "candide demo"),
        classes(fitted),
        columns(census, (), given.strengths(fitted)),
        metrics(scored, "On plants it has not seen", shares(fitted)),
        confusion(run.scores, census.labels),
    )


def shares(fitted: Fitted) -> np.ndarray:
    """The share of each class among the rows counted; where no counts are kept, in the class prior."""
    return fitted.shares


def _by_class(fitted: Fitted) -> dict[str, float]:
    return {str(label): float(p) for label, p in zip(fitted.labels.values, shares(fitted), strict=True)}


def classes(fitted: Fitted) -> Sheet:
    """The classes, their weights where these are kept, and their shares."""
    rows = [[escape(label), f"{share:6.1%}"] for label, share in _by_class(fitted).items()]
    if not fitted.has_counts:
        return Sheet("Classes", "class", "share", rows=rows)
    weights = (f"{weight:,.10g}" for weight in fitted.census.class_weight)
    rows = [[label, weight, share] for (label, share), weight in zip(rows, weights, strict=True)]
    return Sheet("Classes", "class", "weight", "share", rows=rows)


def columns(census: Census, looked: Sequence[Any], strength: Mapping[Name, float]) -> Sheet:
    """The columns by strength, with their event models and what was seen of each; then those left out."""
    rows = []
    for part, tally in zip(census.plan.parts, census.tallies, strict=True):
        pooled: Any = tally.pool()
        for j, name in enumerate(part.columns):
            missing = 1 - pooled.n[0, j] / max(census.class_weight.sum(), 1e-300)
            told = f"{round(strength[name], 3) + 0.0:.3f}" if name in strength else ""
            cells = [escape(str(name)), part.event.name, escape(_seen(part, pooled, j)), f"{max(missing, 0):.1%}", told]
            rows.append((-strength.get(name, 0.0), cells))
    rows.sort(key=lambda row: row[0])
    used = set(census.plan.columns)
    out = [[escape(str(column.name)), "left out", column.kind, "", ""] for column in looked if column.name not in used]
    shown = [cells for _, cells in rows[:MOST]] + [[f"[dim]{cell}[/dim]" for cell in cells] for cells in out]
    return Sheet(
        "Columns, strongest first",
        *("column", "event model", "seen as", "missing", "nats per row"),
        text=["event model", "seen as"],
        rows=shown[:MOST],
        more=len(rows) + len(out) - min(len(shown), MOST),
    )


def scores(fitted: Fitted) -> Sheet:
    """How much each column tells of the class, three ways."""
    found = feature_scores(fitted)
    some = f"; {sum(score.chosen for score in found):,} of {len(found):,} chosen" if fitted.settings.select else ""
    rows = []
    for score in found:
        told = [(score.evidence, ".2f"), (score.per_row, ".3f"), (score.information, ".3f")]
        test = "" if score.statistic is None else f"{score.test} = {score.statistic:.2f}"
        p = "" if score.p_value is None else f"{score.p_value:.3g}"
        numbers = ["" if nats is None else f"{nats:{form}}" for nats, form in told]
        row = [escape(wording.column(score.column)), score.event, *numbers, test, p]
        rows.append([*row, *(["yes" if score.chosen else ""] if some else [])])
    heads = ["column", "event", "evidence", "per row", "information", "test", "p", *(["chosen"] if some else [])]
    title = f"How much each column tells of the class{some} [dim](evidence and information in nats)[/dim]"
    return Sheet(title, *heads, text=["event"], spare=["event", "per row", "test"], rows=rows)


def _of_them(fitted: Any) -> str:
    return f", {len(fitted.plan.columns)} of them chosen" if fitted.settings.select else ""


def _empty(census: Census) -> list[str]:
    """A word on every column in which no row has a value."""
    pairs = zip(census.plan.parts, census.tallies, strict=True)
    found = [name for part, tally in pairs for name in _without_values(part, tally)]
    return [f"column {name!r} is empty: no row has a value, so it tells nothing" for name in found]


def _without_values(part: Any, tally: Any) -> list[Name]:
    n = tally.pool().n[0]
    return [name for j, name in enumerate(part.columns) if n[j] == 0]


def _seen(part: Any, pooled: Any, j: int) -> str:
    if pooled.n[0, j] == 0:
        return "empty"
    if part.has_levels:
        names = [str(v) for v in part.levels[j].values]
        short = ", ".join(n if len(n) <= 20 else n[:17] + "..." for n in names[:3])
        return f"{wording.plural(len(names), 'level')}: {short}{', ...' if len(names) > 3 else ''}"
    n = pooled.n[0, j]
    if part.event.kind in ("moments", "comoments"):
        return f"mean {wording.number(pooled.mean[0, j])}, sd {wording.number((pooled.m2[0, j] / n) ** 0.5)}"
    if part.event.kind == "terms":
        return f"{pooled.n_terms:,} terms"
    if part.event.kind == "sums":
        return f"mean {wording.number(pooled.total[0, j] / n)}"
    return f"{n:,.10g} values"


def _next(steps: Sequence[Sequence[str]]) -> Text:
    """Commands to go on with, ready to be copied."""
    return Text.assemble(("Next\n", "bold"), "\n".join(f"  candide {shlex.join(step)}" for step in steps))
