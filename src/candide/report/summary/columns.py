"""Summarize classes and columns.

Of each column: its counts, its importance, its distribution given the class, and its total effect.

>>> from candide.demo import garden
>>> fitted = FittedModel(garden())
>>> columns = summarize_counted_columns(fitted)
>>> [(c.column, c.missing, {k: round(v, 1) for k, v in c.statistics.items()}) for c in columns][:1]
[('height_cm', 0.0, {'mean': 41.7, 'sd': 16.2})]
>>> effect = summarize_effects(Effects(fitted))[0]
>>> effect.column, effect.n_terms, effect.sentence
('leaf_mm', 1, 'Raises the log-odds of lavender most at 71.35 (+40.35), lowers them most at 4.429 (-4.37).')
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.explain import columns as explained
from candide.explain.axes import TermAxis
from candide.explain.effects import Effects
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart
from candide.report.records import INTERNAL, Column, TableSection

_LOCATION_PARAMETERS = ("loc", "scale")  # of Student's t, which the mean and the deviation stand for
_MAX_CLASS_COLUMNS = 8  # classes side by side; more stand one below another where that is shorter


@dataclass(frozen=True)
class ClassSummary:
    """A class, its proportion of the rows and, where counts are kept, their weight."""

    label: Any
    proportion: float
    weight: float | None = None
    intercept: float | None = None  # of a weighted model, in log-odds


CLASS_TABLE = (
    Column("class", "label", formatting.format_label),
    Column("rows", "weight", formatting.format_weight),
    Column("proportion", "proportion", ".1%"),
    Column("intercept", "intercept", "+.3f"),
)


def summarize_classes(fitted: FittedModel) -> tuple[ClassSummary, ...]:
    """Return the classes with their proportions; their weights too where counts are kept."""
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
    """Return what a column looks like over all classes: how many levels or words, or its mean and deviation."""
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


COLUMN_TABLE = (
    Column("column", lambda c: formatting.format_column(c.column) if not c.group else f"  {c.column}"),
    Column("event model", lambda c: "" if c.group else c.event or "not used", is_text=True),
    Column("values", _format_statistics, is_text=True),
    Column("missing", "missing", ".1%"),
    Column("importance", lambda c: None if c.group or c.importance is None else round(c.importance, 3) + 0.0, ".3f"),
)


def column_rows(columns: Sequence[ColumnSummary]) -> Iterator[ColumnSummary]:
    """Yield columns with a row before each group that is modelled together."""
    groups = set[tuple[Name, ...]]()
    for column in columns:
        if column.group and column.group not in groups:
            groups.add(column.group)
            yield replace(column, column=column.group, group=(), missing=None)  # type: ignore[arg-type]
        yield column


def conditional_table(column: ColumnSummary, labels: Sequence[Any]) -> TableSection:
    """Return a table of one column given the class."""
    title, hint = str(column.column), f"{column.event}, {column.conditional_title}"
    if not column.conditionals:
        return TableSection(title, [Column("", "")], [], hint=f"{hint}: empty")
    values = {name: v for name, v in column.conditionals.items() if name not in column.hidden_conditionals}
    names = [formatting.format_label(label) for label in labels]
    cells = [[formatting.format_parameter(name, v, column.is_date) for v in row] for name, row in values.items()]
    if len(names) > _MAX_CLASS_COLUMNS >= len(values):
        rows = [[label, *(row[c] for row in cells)] for c, label in enumerate(names)]
        return TableSection.from_cells(title, ["", *values], rows, hint=hint)
    return TableSection.from_cells(
        title, ["", *names], [[name, *row] for name, row in zip(values, cells, strict=True)], hint=hint
    )


def summarize_counted_columns(
    fitted: FittedModel, column_types: Mapping[Name, str] | None = None
) -> list[ColumnSummary]:
    """Return every counted column, in the order of the counts; none where counts are not kept."""
    if not fitted.has_counts:
        return []
    counts, importances = fitted.resolved_counts, fitted.column_evidence or {}
    total, columns = max(float(counts.class_weight.sum()), 1e-300), []
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        if part.is_joint_term:
            continue
        pooled: Any = tally.pool()
        for j, name in enumerate(part.columns):
            weight = float(pooled.n[0, j])
            column = ColumnSummary(
                name,
                part.event.name,
                (column_types or {}).get(name),
                importances.get(name),
                weight,
                max(1.0 - weight / total, 0.0),
                _pooled_statistics(part, pooled, j) if weight else {},
                _level_names(part, j),
                is_date=name in fitted.dates,
                group=part.columns if part.event.is_joint else (),
            )
            columns.append(column)
    return columns


def summarize_conditionals(fitted: FittedModel, max_levels: int) -> list[ColumnSummary]:
    """Return every column that was counted, or that the model uses: the latter with its values given the class."""
    columns, importances = {c.column: c for c in summarize_counted_columns(fitted)}, fitted.column_evidence or {}
    for found in explained.iterate_conditionals(fitted, max_levels):
        name = found.column
        counted = columns.get(name) or ColumnSummary(
            name, found.event, importance=importances.get(name), is_date=name in fitted.dates
        )
        rows, hidden = _with_moments(dict(zip(found.row_names, found.values, strict=True)))
        values = {row: tuple(v.tolist()) for row, v in rows.items()}
        columns[name] = replace(counted, conditionals=values, hidden_conditionals=hidden)
    return list(columns.values())


def sort_by_importance(columns: Iterable[ColumnSummary]) -> list[ColumnSummary]:
    """Return columns by importance; those whose importance is not known come last."""
    return sorted(columns, key=lambda c: np.inf if c.importance is None else -c.importance)


def column_notes(columns: Sequence[ColumnSummary]) -> list[str]:
    """Return a note on each empty column, and on integers with few values that are read as categories."""
    empty = [column.column for column in columns if column.weight == 0]
    notes = [f"column {name!r} is empty: no row has a value, so it is not used" for name in empty]
    codes = [column.column for column in columns if column.kind == "whole" and column.levels]
    if codes:
        names, verb = formatting.format_columns(codes, 5), "has" if len(codes) == 1 else "have"
        notes.append(
            f"{names} {verb} few different whole numbers and {'is' if len(codes) == 1 else 'are'} read as categories, "
            f"which fit the class better; to choose, name an event model: --event {codes[0]}=gaussian (events={{...}})"
        )
    return notes


def _level_names(part: PlanPart, j: int) -> tuple[str, ...]:
    """Return the levels of a column; the cells of a grid are not levels."""
    return part.encodings[j].level_names() if part.block_kind == "codes" and part.encodings[j].is_read_as_text else ()


def _pooled_statistics(part: PlanPart, pooled: Any, j: int) -> dict[str, float]:
    if part.block_kind == "codes" and not part.encodings[j].is_read_as_text:
        return {"cell": int(part.encodings[j].n_levels or 0)}
    return pooled.summarize_feature(j)


def _with_moments(rows: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Add the mean and deviation of Student's t before its parameters, and name the parameters they stand for.

    They are those of the distribution, not of the rows, so what is shown is what scores a row.
    """
    log = "log_" if "log_df" in rows else ""
    if f"{log}loc" not in rows:
        return rows, ()
    df, mean, scale = (rows[f"{log}{name}"] for name in ("df", "loc", "scale"))
    deviation = scale * np.sqrt(np.where(df > 2, df / np.where(df > 2, df - 2, 1), np.inf))
    return {f"{log}mean": mean, f"{log}sd": deviation, **rows}, tuple(log + name for name in _LOCATION_PARAMETERS)


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
    c, proportions = default_class(fitted.class_proportions), fitted.class_proportions
    for found in effects.column_effects:
        axis = found.axis
        summary = EffectSummary(found.column, found.n_terms, found.importance, describe_extremes(fitted, axis, c))
        if axis.contributions is not None:
            labels = enumerate(map(str, fitted.labels.values))
            by_class = {label: tuple(axis.contrast(proportions, k).ravel().tolist()) for k, label in labels}
            values = axis.names[0] if axis.names else tuple(np.asarray(axis.positions).tolist())
            high, low = (f"{value:+.2f} at {at}" for at, value in find_extremes(fitted, axis, c))
            summary = replace(summary, highest=high, lowest=low, values=values, effects=by_class)
        summaries.append(summary)
    return tuple(summaries)


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
    seen = np.where(is_seen & np.isfinite(contrast), contrast, 0.0)
    places = (np.unravel_index(int(at), seen.shape) for at in (seen.argmax(), seen.argmin()))
    return [(_position(axis, at), float(seen[at])) for at in places]


def _position(axis: TermAxis, at: tuple[Any, ...]) -> str:
    if axis.names:
        return " and ".join(formatting.format_value(names[i]) for names, i in zip(axis.names, at, strict=True))
    assert axis.positions is not None
    return formatting.format_number(float(axis.positions[at[0]]))
