"""A model, and what a fit made of a source, on a terminal."""

from collections import Counter
from collections.abc import Sequence

from candide import wording
from candide.explain.features import FeatureScore
from candide.explain.voices import Silent, Voices, said
from candide.report.summary import ClassSummary, ColumnSummary, DemoSummary, FitSummary, ModelSummary
from candide.report.summary.effects import EffectSummary
from candide.report.terminal.layout import MOST, Commands, Hanging, Parts, Sheet, escape, notes, panel, parts
from candide.report.terminal.scores import confusion, cross_validated, metrics, trusted

_ORIGIN = "source fitted_rows date version options"  # the order in which a reader asks for them
_ACROSS = 8  # classes side by side, where they may as well stand one below another


@parts.register
def _(found: FitSummary) -> Parts:
    """From classes to the next commands."""
    chosen = "" if found.chosen is None else f", {found.chosen} of them chosen"
    text = (
        f"{wording.plural(found.rows)} counted, "
        f"{wording.plural(len(found.classes), 'class', 'classes')} of {escape(repr(found.target))}, "
        f"{wording.plural(len(found.columns), 'column')} modelled{chosen}"
    )
    shown: Parts = [panel(text, "candide fit"), classes(found.classes), columns(found.strongest, found.left_out)]
    shown += [legend(found.classes), *notes(found.notes)]
    if found.trust is not None:
        shown += trusted(found.trust)
    if found.validation is not None:
        shown += cross_validated(found.validation)
    if found.commands:
        shown.append(Commands("Next", found.commands))
    return shown


@parts.register
def _(found: ModelSummary) -> Parts:
    """Classes, columns by strength, and every column given the class."""
    counted = "no counts kept" if found.rows is None else f"{wording.plural(found.rows)} counted"
    target = "" if found.target is None else f"predicts {escape(repr(found.target))}; "
    text = f"{counted}; {target}estimate: {found.estimate}; class prior: {escape(found.class_prior)}"
    if found.policy:
        text += f"\ndecides: {escape(found.policy)}"
    if found.weights is not None:
        text += f"\n{found.weights}"
    if found.provenance:
        order = sorted(found.provenance.items(), key=lambda pair: _ORIGIN.find(pair[0]))
        known = [f"{name.replace('_', ' ')}: {wording.shortened(value, 60)}" for name, value in order if value]
        then = found.provenance.get("fitted_rows")
        known += ["changed since"] if found.rows is not None and then not in (None, str(found.rows)) else []
        text += f"\n[dim]{escape('; '.join(known))}[/dim]"
    shown: Parts = [panel(text, "candide show"), classes(found.classes)]
    if found.narrowed:  # somebody asked for some columns or classes, and has seen the rest
        given_class = [given(one, found.classes) for one in found.columns]
        return shown + given_class + effect_table(found.effects) + voice_table(found.voices)
    shown += effect_table(found.effects) + voice_table(found.voices)
    if found.counted is not None:
        shown += [columns(found.counted), *notes(found.notes)]
    elif found.strengths:
        rows = [[escape(str(name)), f"{nats:.3f}"] for name, nats in found.strengths.items()]
        shown.append(Sheet("Columns, strongest first", "column", "nats per row", rows=rows))
    if found.scores is not None:
        shown.append(feature_scores(found.scores, found.chosen))
    shown += [given(one, found.classes) for one in found.columns[:MOST]]
    if len(found.columns) > MOST:
        shown.append(f"[dim]and {wording.plural(len(found.columns) - MOST, 'more column')}; --json has them all[/dim]")
    return shown


@parts.register
def _(found: DemoSummary) -> Parts:
    story = (
        f"{found.trained_on:,} plants were drawn from a made-up garden, one value in twenty lost, and counted once.\n"
        f"The model was then asked about {found.scores.rows:,.0f} plants it had not seen."
    )
    return [
        panel(story, "candide demo"),
        classes(found.classes),
        columns(found.strongest),
        legend(found.classes),
        metrics(found.scores, "On plants it has not seen"),
        confusion(found.scores),
    ]


def classes(some: Sequence[ClassSummary]) -> Sheet:
    """The classes, their weights where these are kept, and their shares."""
    with_weights, with_bias = (any(getattr(one, name) is not None for one in some) for name in ("weight", "bias"))
    heads = ["class", *(["counted"] if with_weights else []), "share", *(["bias"] if with_bias else [])]
    rows = [
        [
            escape(wording.label(one.label)),
            *([wording.weight(one.weight or 0.0)] if with_weights else []),
            f"{one.share:6.1%}",
            *([f"{one.bias:+.3f}"] if with_bias else []),
        ]
        for one in some
    ]
    return Sheet("Classes", *heads, rows=rows)


def legend(some: Sequence[ClassSummary]) -> str:
    """What the figures of classes and columns are: of a weighted model, or of one in which columns count once."""
    if any(one.bias is not None for one in some):
        return (
            "[dim]nats per row: how far a column moves the log-odds of two classes, over all voices that it is in; "
            "bias: nats that a class has beside its share[/dim]"
        )
    return "[dim]nats per row: evidence that a column depends on the class; at 0 or below it tells nothing[/dim]"


def effect_table(effects: Sequence[EffectSummary]) -> Parts:
    """The total effect of each column, where some column is in several terms."""
    if all(one.terms < 2 for one in effects):
        return []
    rows = [
        [escape(str(one.column)), str(one.terms), said(one.importance), escape(one.sentence)] for one in effects[:MOST]
    ]
    title = "Total effects of columns [dim](over all voices that a column is in)[/dim]"
    return [Sheet(title, "column", "voices", "nats", "how", text=["how"], vital=["nats"], rows=rows)]


def voice_table(voices: Voices | None) -> Parts:
    """The voices of a weighted model with their weights, and the columns that have none."""
    if voices is None:
        return []
    kinds = Counter(one.kind for one in voices)
    kinds_met = ", ".join(wording.plural(n, kind) for kind, n in kinds.items())
    title = f"Voices, strongest first [dim]({kinds_met})[/dim]"
    rows = [
        [
            escape(one.title),
            voices.printed_kind(one),
            "" if one.answers is None else f"{one.answers:,}",
            f"{one.weight:.3f}",
            said(one.strength),
        ]
        for one in voices
    ]
    heads = ("voice", "kind", "cells", "weight", "nats")
    shown: Parts = [Sheet(title, *heads, text=["kind"], spare=["cells", "kind"], vital=["weight"], rows=rows)]
    shown.append(
        "[dim]weight: of a column 1 is as much as in naive Bayes; "
        "nats: how far a voice moves the log-odds of two classes, in the mean of the rows[/dim]"
    )
    if any(voices.printed_kind(one) == "own term" for one in voices):
        shown.append(
            "[dim]own term: what a column contributes beside the other voices that it is in; "
            "a negative weight corrects these. Its total effect is above.[/dim]"
        )
    silent = [(escape(str(one.column)), escape(_silence(one))) for one in voices.silent[:MOST]]
    if more := len(voices.silent) - len(silent):
        silent.append(("", f"and {wording.plural(more, 'more column')} without a voice"))
    return [*shown, Hanging([("[bold]No voice of its own[/bold]", ""), *silent])] if silent else shown


def _silence(one: Silent) -> str:
    return one.why + (f"; heard in {wording.plural(one.heard_in, 'other voice')}" if one.heard_in else "")


def columns(counted: Sequence[ColumnSummary], left_out: Sequence[ColumnSummary] = ()) -> Sheet:
    """The columns with their event models and what was seen of each; then those left out."""
    rows, groups = list[list[str]](), set[tuple]()
    for one in counted[:MOST]:
        if one.group and one.group not in groups:
            groups.add(one.group)
            figure = _figures(one)[1]
            rows.append([escape(wording.column(one.group)), str(one.event), "modelled together", "", figure])
        name, (missing, figure) = escape(str(one.column)), _figures(one)
        cells = [f"  {name}", "", escape(_seen(one)), missing, ""]
        rows.append(cells if one.group else [name, str(one.event), cells[2], missing, figure])
    for one in left_out:
        cells = [escape(str(one.column)), "left out", str(one.kind), "", ""]
        rows.append([f"[dim]{cell}[/dim]" for cell in cells])
    return Sheet(
        "Columns, strongest first",
        *("column", "event model", "seen as", "missing", "nats per row"),
        text=["event model", "seen as"],
        rows=rows[:MOST],
        more=len(counted) + len(left_out) + len(groups) - min(len(rows), MOST),
    )


def _figures(one: ColumnSummary) -> list[str]:
    missing = "" if one.missing is None else f"{one.missing:.1%}"
    return [missing, "" if one.strength is None else f"{round(one.strength, 3) + 0.0:.3f}"]


def _seen(one: ColumnSummary) -> str:
    """What a column looks like over all classes: how many levels or terms, or its mean and deviation."""
    if one.weight == 0:
        return "empty"
    text = ", ".join(
        wording.plural(value, name) if isinstance(value, int) else f"{name} {wording.figure(name, value, one.is_date)}"
        for name, value in one.seen.items()
    )
    names = ", ".join(wording.shortened(name, 20) for name in one.levels[:3])
    return f"{text}: {names}{', ...' if len(one.levels) > 3 else ''}" if names else text


def feature_scores(scores: Sequence[FeatureScore], chosen: int | None) -> Sheet:
    """How much each column tells of the class, three ways; and which are chosen, where not all are."""
    rows, with_choice = [], chosen is not None
    for one in scores:
        rows.append([*map(escape, one.cells()), *(["yes" if one.chosen else ""] if with_choice else [])])
    heads = ["column", "event", "evidence", "per row", "information", "test", "p", *(["chosen"] if with_choice else [])]
    some = f"; {chosen:,} of {len(scores):,} chosen" if with_choice else ""
    title = f"How much each column tells of the class{some} [dim](evidence and information in nats)[/dim]"
    return Sheet(title, *heads, text=["event"], spare=["event", "per row", "test"], rows=rows)


def given(one: ColumnSummary, labels: Sequence[ClassSummary]) -> Sheet:
    """One column given the class, as a table."""
    title = f"{escape(str(one.column))} [dim]{one.event}, {one.what}[/dim]"
    if not one.given:
        return Sheet(f"{title} [dim]: empty[/dim]", "")
    given = {name: values for name, values in one.given.items() if name not in one.less}
    names = [escape(wording.label(each.label)) for each in labels]
    if len(names) > _ACROSS and len(given) <= _ACROSS:  # classes down, where these are many and all else is short
        rows = [
            [label, *(wording.figure(name, values[c], one.is_date) for name, values in given.items())]
            for c, label in enumerate(names)
        ]
        return Sheet(title, "", *map(escape, given), rows=rows)
    rows = [
        [escape(name), *(wording.figure(name, value, one.is_date) for value in values)]
        for name, values in given.items()
    ]
    return Sheet(title, "", *names, rows=rows)
