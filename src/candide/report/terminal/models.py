"""A model, and what a fit made of a source, on a terminal."""

from collections import Counter
from collections.abc import Sequence

from candide import formatting
from candide.explain.features import FeatureScore
from candide.explain.terms import InactiveTerm, TermList, format_importance
from candide.report.summary import ClassSummary, ColumnSummary, DemoSummary, FitSummary, ModelSummary
from candide.report.summary.effects import EffectSummary
from candide.report.terminal.layout import (
    MAX_TABLE_ROWS,
    CommandList,
    HangingParagraphs,
    Parts,
    TextTable,
    escape,
    make_panel,
    render_notes,
    render_parts,
)
from candide.report.terminal.scores import confusion_parts, cross_validation_parts, held_out_parts, metric_table

_PROVENANCE_FIELDS = "source fitted_rows date version options"  # the order in which a reader asks for them
_MAX_CLASS_COLUMNS = 8  # classes side by side, where they may as well stand one below another


@render_parts.register
def _(found: FitSummary) -> Parts:
    """From classes to the next commands."""
    chosen = "" if found.n_selected is None else f", {found.n_selected} of them chosen"
    text = (
        f"{formatting.format_count(found.rows)} counted, "
        f"{formatting.format_count(len(found.classes), 'class', 'classes')} of {escape(repr(found.target))}, "
        f"{formatting.format_count(len(found.columns), 'column')} modelled{chosen}"
    )
    shown: Parts = [
        make_panel(text, "candide fit"),
        class_table(found.classes),
        column_table(found.strongest_columns, found.skipped_columns),
    ]
    shown += [describe_figures(found.classes), *render_notes(found.notes)]
    if found.held_out is not None:
        shown += held_out_parts(found.held_out)
    if found.validation is not None:
        shown += cross_validation_parts(found.validation)
    if found.next_commands:
        shown.append(CommandList("Next", found.next_commands))
    return shown


@render_parts.register
def _(found: ModelSummary) -> Parts:
    """Classes, columns by strength, and every column given the class."""
    counted = "no counts kept" if found.rows is None else f"{formatting.format_count(found.rows)} counted"
    target = "" if found.target is None else f"predicts {escape(repr(found.target))}; "
    text = f"{counted}; {target}estimate: {found.estimate}; class prior: {escape(found.class_prior)}"
    if found.policy:
        text += f"\ndecides: {escape(found.policy)}"
    if found.weights_note is not None:
        text += f"\n{found.weights_note}"
    if found.provenance:
        order = sorted(found.provenance.items(), key=lambda pair: _PROVENANCE_FIELDS.find(pair[0]))
        known = [f"{name.replace('_', ' ')}: {formatting.truncate(value, 60)}" for name, value in order if value]
        then = found.provenance.get("fitted_rows")
        known += ["changed since"] if found.rows is not None and then not in (None, str(found.rows)) else []
        text += f"\n[dim]{escape('; '.join(known))}[/dim]"
    shown: Parts = [make_panel(text, "candide show"), class_table(found.classes)]
    if found.is_filtered:  # somebody asked for some columns or classes, and has seen the rest
        given_class = [conditional_table(one, found.classes) for one in found.columns]
        return shown + given_class + effect_table(found.effects) + term_table(found.terms)
    shown += effect_table(found.effects) + term_table(found.terms)
    if found.counted_columns is not None:
        shown += [column_table(found.counted_columns), *render_notes(found.notes)]
    elif found.importances:
        rows = [[escape(str(name)), f"{nats:.3f}"] for name, nats in found.importances.items()]
        shown.append(TextTable("Columns, strongest first", "column", "nats per row", rows=rows))
    if found.scores is not None:
        shown.append(feature_score_table(found.scores, found.n_selected))
    shown += [conditional_table(one, found.classes) for one in found.columns[:MAX_TABLE_ROWS]]
    if len(found.columns) > MAX_TABLE_ROWS:
        shown.append(
            f"[dim]and {formatting.format_count(len(found.columns) - MAX_TABLE_ROWS, 'more column')}; --json has them all[/dim]"
        )
    return shown


@render_parts.register
def _(found: DemoSummary) -> Parts:
    story = (
        f"{found.training_rows:,} plants were drawn from a made-up garden, one value in twenty lost, and counted once.\n"
        f"The model was then asked about {found.scores.rows:,.0f} plants it had not seen."
    )
    return [
        make_panel(story, "candide demo"),
        class_table(found.classes),
        column_table(found.strongest_columns),
        describe_figures(found.classes),
        metric_table(found.scores, "On plants it has not seen"),
        confusion_parts(found.scores),
    ]


def class_table(some: Sequence[ClassSummary]) -> TextTable:
    """The classes, their weights where these are kept, and their shares."""
    with_weights, with_bias = (any(getattr(one, name) is not None for one in some) for name in ("weight", "intercept"))
    heads = ["class", *(["counted"] if with_weights else []), "share", *(["bias"] if with_bias else [])]
    rows = [
        [
            escape(formatting.format_label(one.label)),
            *([formatting.format_weight(one.weight or 0.0)] if with_weights else []),
            f"{one.proportion:6.1%}",
            *([f"{one.intercept:+.3f}"] if with_bias else []),
        ]
        for one in some
    ]
    return TextTable("Classes", *heads, rows=rows)


def describe_figures(some: Sequence[ClassSummary]) -> str:
    """What the figures of classes and columns are: of a weighted model, or of one in which columns count once."""
    if any(one.intercept is not None for one in some):
        return (
            "[dim]nats per row: how far a column moves the log-odds of two classes, over all voices that it is in; "
            "bias: nats that a class has beside its share[/dim]"
        )
    return "[dim]nats per row: evidence that a column depends on the class; at 0 or below it tells nothing[/dim]"


def effect_table(effects: Sequence[EffectSummary]) -> Parts:
    """The total effect of each column, where some column is in several terms."""
    if all(one.n_terms < 2 for one in effects):
        return []
    rows = [
        [escape(str(one.column)), str(one.n_terms), format_importance(one.importance), escape(one.sentence)]
        for one in effects[:MAX_TABLE_ROWS]
    ]
    title = "Total effects of columns [dim](over all voices that a column is in)[/dim]"
    return [
        TextTable(title, "column", "voices", "nats", "how", text_columns=["how"], required_columns=["nats"], rows=rows)
    ]


def term_table(terms: TermList | None) -> Parts:
    """The voices of a weighted model with their weights, and the columns that have none."""
    if terms is None:
        return []
    kinds = Counter(one.kind for one in terms)
    kinds_met = ", ".join(formatting.format_count(n, kind) for kind, n in kinds.items())
    title = f"Voices, strongest first [dim]({kinds_met})[/dim]"
    rows = [
        [
            escape(one.title),
            terms.display_kind(one),
            "" if one.n_cells is None else f"{one.n_cells:,}",
            f"{one.weight:.3f}",
            format_importance(one.importance),
        ]
        for one in terms
    ]
    heads = ("voice", "kind", "cells", "weight", "nats")
    shown: Parts = [
        TextTable(
            title,
            *heads,
            text_columns=["kind"],
            optional_columns=["cells", "kind"],
            required_columns=["weight"],
            rows=rows,
        )
    ]
    shown.append(
        "[dim]weight: of a column 1 is as much as in naive Bayes; "
        "nats: how far a voice moves the log-odds of two classes, in the mean of the rows[/dim]"
    )
    if any(terms.display_kind(one) == "own term" for one in terms):
        shown.append(
            "[dim]own term: what a column contributes beside the other voices that it is in; "
            "a negative weight corrects these. Its total effect is above.[/dim]"
        )
    silent = [(escape(str(one.column)), escape(_inactive_note(one))) for one in terms.inactive[:MAX_TABLE_ROWS]]
    if more := len(terms.inactive) - len(silent):
        silent.append(("", f"and {formatting.format_count(more, 'more column')} without a voice"))
    return [*shown, HangingParagraphs([("[bold]No voice of its own[/bold]", ""), *silent])] if silent else shown


def _inactive_note(inactive_term: InactiveTerm) -> str:
    return inactive_term.reason + (
        f"; heard in {formatting.format_count(inactive_term.n_joint_terms, 'other voice')}"
        if inactive_term.n_joint_terms
        else ""
    )


def column_table(counted: Sequence[ColumnSummary], left_out: Sequence[ColumnSummary] = ()) -> TextTable:
    """The columns with their event models and what was seen of each; then those left out."""
    rows, groups = list[list[str]](), set[tuple]()
    for one in counted[:MAX_TABLE_ROWS]:
        if one.group and one.group not in groups:
            groups.add(one.group)
            figure = _column_figures(one)[1]
            rows.append([escape(formatting.format_column(one.group)), str(one.event), "modelled together", "", figure])
        name, (missing, figure) = escape(str(one.column)), _column_figures(one)
        cells = [f"  {name}", "", escape(_format_statistics(one)), missing, ""]
        rows.append(cells if one.group else [name, str(one.event), cells[2], missing, figure])
    for one in left_out:
        cells = [escape(str(one.column)), "left out", str(one.kind), "", ""]
        rows.append([f"[dim]{cell}[/dim]" for cell in cells])
    return TextTable(
        "Columns, strongest first",
        *("column", "event model", "seen as", "missing", "nats per row"),
        text_columns=["event model", "seen as"],
        rows=rows[:MAX_TABLE_ROWS],
        more=len(counted) + len(left_out) + len(groups) - min(len(rows), MAX_TABLE_ROWS),
    )


def _column_figures(one: ColumnSummary) -> list[str]:
    missing = "" if one.missing is None else f"{one.missing:.1%}"
    return [missing, "" if one.importance is None else f"{round(one.importance, 3) + 0.0:.3f}"]


def _format_statistics(one: ColumnSummary) -> str:
    """What a column looks like over all classes: how many levels or terms, or its mean and deviation."""
    if one.weight == 0:
        return "empty"
    text = ", ".join(
        formatting.format_count(value, name)
        if isinstance(value, int)
        else f"{name} {formatting.format_parameter(name, value, one.is_date)}"
        for name, value in one.statistics.items()
    )
    names = ", ".join(formatting.truncate(name, 20) for name in one.levels[:3])
    return f"{text}: {names}{', ...' if len(one.levels) > 3 else ''}" if names else text


def feature_score_table(scores: Sequence[FeatureScore], n_selected: int | None) -> TextTable:
    """How much each column tells of the class, three ways; and which are chosen, where not all are."""
    rows, with_choice = [], n_selected is not None
    for one in scores:
        rows.append([*map(escape, one.table_cells()), *(["yes" if one.is_selected else ""] if with_choice else [])])
    heads = ["column", "event", "evidence", "per row", "information", "test", "p", *(["chosen"] if with_choice else [])]
    some = f"; {n_selected:,} of {len(scores):,} chosen" if with_choice else ""
    title = f"How much each column tells of the class{some} [dim](evidence and information in nats)[/dim]"
    return TextTable(title, *heads, text_columns=["event"], optional_columns=["event", "per row", "test"], rows=rows)


def conditional_table(column: ColumnSummary, labels: Sequence[ClassSummary]) -> TextTable:
    """One column given the class, as a table."""
    title = f"{escape(str(column.column))} [dim]{column.event}, {column.conditional_title}[/dim]"
    if not column.conditionals:
        return TextTable(f"{title} [dim]: empty[/dim]", "")
    given = {name: values for name, values in column.conditionals.items() if name not in column.hidden_conditionals}
    names = [escape(formatting.format_label(each.label)) for each in labels]
    if (
        len(names) > _MAX_CLASS_COLUMNS and len(given) <= _MAX_CLASS_COLUMNS
    ):  # classes down, where these are many and all else is short
        rows = [
            [label, *(formatting.format_parameter(name, values[c], column.is_date) for name, values in given.items())]
            for c, label in enumerate(names)
        ]
        return TextTable(title, "", *map(escape, given), rows=rows)
    rows = [
        [escape(name), *(formatting.format_parameter(name, value, column.is_date) for value in values)]
        for name, values in given.items()
    ]
    return TextTable(title, "", *names, rows=rows)
