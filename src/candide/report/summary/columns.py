"""Classes and columns of a model: counts, importance, distribution given the class, and total effect."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.explain.columns import iterate_conditionals
from candide.explain.effects import Effects
from candide.explain.terms import TermAxis
from candide.model.fitted import FittedModel
from candide.report.records import INTERNAL, Column, TableSection, table

_MAX_CLASS_COLUMNS = 8  # classes side by side; more stand one below another where that is shorter

_WEIGHTED_CAPTION = (
    "importance: mean absolute change of the log-odds, over all terms of a column; "
    "intercept: added to the log prior of each class"
)
_NAIVE_CAPTION = "importance: log evidence per row that the column depends on the class; 0 or less means no association"


@dataclass(frozen=True)
class ClassSummary:
    """A class, its proportion of the rows and, where counts are kept, their weight."""

    label: Any
    proportion: float
    weight: float | None = None
    intercept: float | None = None  # of a weighted model, in log-odds


CLASSES = table(
    "Classes",
    Column("class", "label", formatting.format_label),
    Column("rows", "weight", formatting.format_weight),
    Column("proportion", "proportion", ".1%"),
    Column("intercept", "intercept", "+.3f"),
)


def summarize_classes(fitted: FittedModel) -> tuple[ClassSummary, ...]:
    labels, proportions = fitted.labels.values, fitted.class_proportions.tolist()
    weights = fitted.counts.class_weight.tolist() if fitted.has_counts else [None] * len(labels)
    intercepts = [None] * len(labels) if fitted.term_weights is None else fitted.term_weights.bias.tolist()
    return tuple(map(ClassSummary, labels, proportions, weights, intercepts))


@dataclass(frozen=True)
class ColumnSummary:
    """One column. What is not known, because no counts are kept, is None or empty."""

    column: Name
    event: str | None  # None: the column is not used
    kind: str | None = None  # the type in the source: number, category, text, ...
    importance: float | None = None
    weight: float | None = None  # of the rows with a value
    missing: float | None = None  # the proportion of rows without one
    statistics: Mapping[str, float] = field(default_factory=dict)  # over all classes; an integer is a count
    levels: tuple[str, ...] = ()
    conditionals: Mapping[str, tuple[float, ...]] | None = None  # a value for each class; None: not used by the model
    is_date: bool = False  # whether its numbers are days since 1970
    group: tuple[Name, ...] = ()  # the columns it is modelled together with, with one importance for all
    hidden_conditionals: tuple[str, ...] = field(default=(), metadata=INTERNAL)
    conditional_title: str = field(default="given the class", metadata=INTERNAL)


def _format_statistics(column: ColumnSummary) -> str:
    """Return the number of levels or words of a column over all classes, or its mean and deviation."""
    if column.event is None or column.weight == 0:
        return str(column.kind) if column.event is None else "empty"
    if isinstance(column.column, tuple):
        return "modelled together"
    text = ", ".join(
        formatting.format_count(value, name)
        if isinstance(value, int)
        else f"{name} {formatting.format_parameter(name, value, column.is_date)}"
        for name, value in column.statistics.items()
    )
    names = ", ".join(formatting.truncate(name, 20) for name in column.levels[:3])
    return f"{text}: {names}{', ...' if len(column.levels) > 3 else ''}" if names else text


def _column_rows(columns: Sequence[ColumnSummary]) -> Iterator[ColumnSummary]:
    """Yield columns with a row before each group that is modelled together."""
    groups = set[tuple[Name, ...]]()
    for column in columns:
        if column.group and column.group not in groups:
            groups.add(column.group)
            yield replace(column, column=column.group, group=(), missing=None)  # type: ignore[arg-type]
        yield column


COLUMNS = table(
    "Columns by importance",
    Column("column", lambda c: formatting.format_column(c.column) if not c.group else f"  {c.column}"),
    Column("event model", lambda c: "" if c.group else c.event or "not used", is_text=True),
    Column("values", _format_statistics, is_text=True),
    Column("missing", "missing", ".1%"),
    Column("importance", lambda c: None if c.group or c.importance is None else round(c.importance, 3) + 0.0, ".3f"),
    rows=_column_rows,
    caption=lambda record: (
        _WEIGHTED_CAPTION if any(c.intercept is not None for c in record.classes) else _NAIVE_CAPTION
    ),
)


def conditional_table(column: ColumnSummary, labels: Sequence[Any]) -> TableSection:
    title, hint = str(column.column), f"{column.event}, {column.conditional_title}"
    if not column.conditionals:
        return TableSection(title, [Column("", "")], [], hint=f"{hint}: empty")
    values = {name: v for name, v in column.conditionals.items() if name not in column.hidden_conditionals}
    across, down = [formatting.format_label(label) for label in labels], list(values)
    cells = [[formatting.format_parameter(name, v, column.is_date) for v in row] for name, row in values.items()]
    if len(across) > _MAX_CLASS_COLUMNS >= len(down):
        across, down, cells = down, across, [list(row) for row in zip(*cells, strict=True)]
    rows = [[name, *row] for name, row in zip(down, cells, strict=True)]
    return TableSection.from_cells(title, ["", *across], rows, hint)


def summarize_counted_columns(
    fitted: FittedModel, column_types: Mapping[Name, str] | None = None
) -> list[ColumnSummary]:
    """Return every counted column, in the order of the counts; none where counts are not kept."""
    if not fitted.has_counts:
        return []
    counts, importances = fitted.resolved_counts, fitted.column_evidence or {}
    total, columns = max(float(counts.class_weight.sum()), 1e-300), []
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        pooled: Any = None if part.is_joint_term else tally.pool()
        for j, name in enumerate(() if part.is_joint_term else part.columns):
            weight, encoding = float(pooled.n[0, j]), part.encodings[j]
            is_coded, statistics = part.block_kind == "codes", dict[str, float]()
            if weight and is_coded and not encoding.is_read_as_text:
                statistics = {"cell": int(encoding.n_levels or 0)}  # of a grid
            elif weight:
                statistics = pooled.summarize_feature(j)
            columns.append(
                ColumnSummary(
                    name,
                    part.event.name,
                    (column_types or {}).get(name),
                    importances.get(name),
                    weight,
                    max(1.0 - weight / total, 0.0),
                    statistics,
                    encoding.level_names() if is_coded and encoding.is_read_as_text else (),
                    is_date=name in fitted.dates,
                    group=part.columns if part.event.is_joint else (),
                )
            )
    return columns


def summarize_conditionals(fitted: FittedModel, max_levels: int) -> list[ColumnSummary]:
    """Return every column that was counted or that the model uses; the latter with its values given the class."""
    columns, importances = {c.column: c for c in summarize_counted_columns(fitted)}, fitted.column_evidence or {}
    for given in iterate_conditionals(fitted, max_levels):
        name = given.column
        counted = columns.get(name) or ColumnSummary(
            name, given.event, importance=importances.get(name), is_date=name in fitted.dates
        )
        rows, hidden = dict(zip(given.row_names, given.values, strict=True)), tuple[str, ...]()
        log = "log_" if "log_df" in rows else ""
        if f"{log}loc" in rows:
            # Student's t is shown by the mean and deviation of the distribution, which scores a row, not of the rows.
            df, mean, scale = (rows[f"{log}{name}"] for name in ("df", "loc", "scale"))
            deviation = scale * np.sqrt(np.where(df > 2, df / np.where(df > 2, df - 2, 1), np.inf))
            rows, hidden = {f"{log}mean": mean, f"{log}sd": deviation, **rows}, (f"{log}loc", f"{log}scale")
        values = {row: tuple(v.tolist()) for row, v in rows.items()}
        columns[name] = replace(counted, conditionals=values, hidden_conditionals=hidden)
    return list(columns.values())


def sort_by_importance(columns: Iterable[Any]) -> list[Any]:
    """Return columns by importance; those whose importance is not known come last."""
    return sorted(columns, key=lambda c: np.inf if c.importance is None else -c.importance)


def sort_columns(columns: Sequence[ColumnSummary], effects: Effects | None) -> tuple[ColumnSummary, ...]:
    if effects is not None:
        importances = {effect.column: effect.importance for effect in effects.column_effects}
        importances |= _importances_without_axis(effects)
        columns = [replace(c, importance=importances.get(c.column)) for c in columns]
    return tuple(sort_by_importance(columns))


def _importances_without_axis(effects: Effects) -> dict[Name, float]:
    """Return the importance of each column that is in no term along its own values."""
    along_values = {effect.column for effect in effects.column_effects}
    names = (term.column for term in effects.terms.inactive)
    return {name: effects.without_axis(name) or 0.0 for name in names if name not in along_values}


def importances(columns: Sequence[ColumnSummary]) -> dict[Name, float]:
    return {column.column: column.importance for column in columns if column.importance is not None}


def column_notes(columns: Sequence[ColumnSummary]) -> list[str]:
    """Return a note on each empty column, and on integers with few values that are read as categories."""
    empty = [column.column for column in columns if column.weight == 0]
    notes = [f"column {name!r} is empty: no row has a value, so it is not used" for name in empty]
    codes = [column.column for column in columns if column.kind == "whole" and column.levels]
    if codes:
        has, are = ("has", "is") if len(codes) == 1 else ("have", "are")
        notes.append(
            f"{formatting.format_columns(codes, 5)} {has} few different whole numbers and {are} read as categories, "
            f"which fit the class better; to choose, name an event model: --event {codes[0]}=gaussian (events={{...}})"
        )
    return notes


@dataclass(frozen=True)
class EffectSummary:
    """What a column contributes over all terms that it is in."""

    column: Name
    n_terms: int
    importance: float | None  # mean over the rows
    sentence: str
    highest: str = ""  # the largest effect on the log-odds of the default class, and where
    lowest: str = ""
    values: tuple[str | float, ...] = ()  # levels, bins or points of a curve
    effects: Mapping[str, tuple[float, ...]] | None = None  # by class, against the mean of the others, at each value


EFFECT_TABLE = (
    Column("column", "column"),
    Column("terms", "n_terms"),
    Column("importance", "importance", ".3f", is_required=True),
    Column("highest", "highest", is_text=True),
    Column("lowest", "lowest", is_text=True),
)


def summarize_effects(effects: Effects) -> tuple[EffectSummary, ...]:
    """Return the total effect of every column, the most important first."""
    fitted, summaries = effects.fitted, list[EffectSummary]()
    proportions, labels = fitted.class_proportions, list(map(str, fitted.labels.values))
    c = default_class(proportions)
    for effect in effects.column_effects:
        axis = effect.axis
        summary = EffectSummary(effect.column, effect.n_terms, effect.importance, describe_extremes(fitted, axis, c))
        if axis.contributions is not None:
            by_class = {label: tuple(axis.contrast(proportions, k).ravel().tolist()) for k, label in enumerate(labels)}
            values = axis.names[0] if axis.names else tuple(np.asarray(axis.positions).tolist())
            high, low = (f"{value:+.2f} at {at}" for at, value in find_extremes(fitted, axis, c))
            summary = replace(summary, highest=high, lowest=low, values=values, effects=by_class)
        summaries.append(summary)
    n_terms = {term.column: term.n_joint_terms for term in effects.terms.inactive}
    without_axis = _importances_without_axis(effects).items()
    summaries += [EffectSummary(name, n_terms[name], value, "") for name, value in without_axis if n_terms[name]]
    return tuple(sort_by_importance(summaries))


def default_class(class_proportions: Floats) -> int:
    """Return the class whose effects are shown first: the second of two, otherwise the most frequent."""
    return 1 if len(class_proportions) == 2 else int(np.argmax(class_proportions)) if len(class_proportions) else 0


def describe_extremes(fitted: FittedModel, axis: TermAxis, class_index: int) -> str:
    """Return where a term or a column raises the log-odds of a class most, and where it lowers them most."""
    label = formatting.format_value(fitted.labels.values[class_index])
    if axis.top_words:
        words = ", ".join(w.word for w in axis.top_words[class_index][:8])
        return f"Words that raise the log-odds of {label} most: {words}."
    if axis.contributions is None:
        columns = formatting.format_list([str(name) for name in axis.term.columns], 6)
        return f"A joint term of {columns}, without cells to draw." if len(axis.term.columns) > 1 else ""
    high, low = find_extremes(fitted, axis, class_index)
    up = f"raises the log-odds of {label} most at {high[0]} ({high[1]:+.2f})" if high[1] > 0 else ""
    what = "them" if up else f"the log-odds of {label}"
    down = f"lowers {what} most at {low[0]} ({low[1]:+.2f})" if low[1] < 0 else ""
    text = ", ".join(filter(None, (up, down)))
    return f"{text[0].upper()}{text[1:]}." if text else ""


def find_extremes(fitted: FittedModel, axis: TermAxis, class_index: int) -> list[tuple[str, float]]:
    """Return the values with the highest and the lowest contribution to a class, among those that were seen."""
    contrast = axis.contrast(fitted.class_proportions, class_index)
    is_seen = np.ones(contrast.shape, bool) if axis.frequencies is None else axis.frequencies > 0
    seen, extremes = np.where(is_seen & np.isfinite(contrast), contrast, 0.0), list[tuple[str, float]]()
    for at in (np.unravel_index(int(i), seen.shape) for i in (seen.argmax(), seen.argmin())):
        names = [formatting.format_value(names[i]) for names, i in zip(axis.names, at, strict=False)]
        place = " and ".join(names) if names else formatting.format_number(float(axis.positions[at[0]]))  # type: ignore[index]
        extremes.append((place, float(seen[at])))
    return extremes
