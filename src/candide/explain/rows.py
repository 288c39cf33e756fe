"""Explain the predictions of rows, in memory or of a source: the contribution of each term to the log-odds."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from candide import formatting
from candide.data.blocks import Block, Codes, Floats, slice_rows
from candide.data.labels import is_absent, is_arrow
from candide.data.table import Name, Table
from candide.data.text_columns import days_to_temporal
from candide.distributions.base import Distribution, to_dense
from candide.engines.base import open_source
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import prepare_to_score
from candide.errors import InputError, unknown_name_error
from candide.explain.decisions import EXPLANATION_UNITS, Contribution, Decision, Decisions
from candide.explain.terms import bin_labels
from candide.explain.words import score_document_words
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.model.plan import PlanPart

_MAX_CHANGES = 64  # columns of a discriminant, at most, without each of which it is scored once more
_MAX_BLOCK_VALUES = 1 << 22  # (row, class, feature) contributions at a time


class ExplainedRow(NamedTuple):
    """A row by its number, its label (None where unknown), and the explanation of its prediction."""

    row: int
    label: Any
    decision: Decision


def explain_rows(
    fitted: FittedModel,
    data: Any,
    rows: Sequence[int | tuple[int, int]] = (1,),
    *,
    by: str = "term",
    reading: ReadOptions | None = None,
) -> Iterator[ExplainedRow]:
    """Explain rows of a source, as :func:`candide.explain_rows` documents."""
    import pyarrow as pa

    ranges = [selected if isinstance(selected, tuple) else (selected, selected) for selected in rows]
    for selected, (first, last) in zip(rows, ranges, strict=True):
        if not 1 <= first <= last:
            remedy = "rows are counted from 1, and a range goes up"
            raise InputError(f"rows: {selected} is not a valid row or range", value=selected, remedy=remedy)
    names, levels = list[Name](), dict[Name, Any]()
    for part in fitted.plan.parts:
        names += part.columns
        for name, encoding, known in zip(part.columns, part.encodings, part.levels, strict=False):
            levels |= {name: known} if encoding.is_read_as_text else {}  # grid cells are not levels
    with open_source(data, make_read_options(fitted, reading)) as source:
        prepare_to_score(source, fitted.plan, fitted)
        label = [str(fitted.target)] if fitted.target in source.columns else []
        raw = [name for name in names if not source.is_untyped and str(name) in source.columns]  # a CSV has only text
        for first, last in ranges:
            n = last - first + 1
            scan = source.engine.score(source, fitted.plan, [*label, *map(str, raw)], codes=False, span=(first - 1, n))
            arrow = pa.Table.from_batches(scan.batches, scan.schema).combine_chunks()
            if arrow.num_rows < n:
                total = sum(batch.num_rows for batch in source.batches(list(source.columns)[:1], 1 << 17))
                what = f"{source.name} has {formatting.format_count(total)}, counted from 1"
                raise InputError(what, row=first + arrow.num_rows)
            table = dict(zip(names, arrow.columns, strict=False))
            table |= {name: known.match_column(table[name]) for name, known in levels.items()}
            shown = table | dict(zip(raw, arrow.columns[len(names) + len(label) :], strict=True))
            labels = arrow.column("k0").to_pylist() if label else [None] * arrow.num_rows
            temporal = {name: kind for name, kind in fitted.temporal.items() if name in table}
            table |= {name: days_to_temporal(table[name].to_numpy(), kind) for name, kind in temporal.items()}
            yield from map(ExplainedRow, range(first, last + 1), labels, explain_table(fitted, table, shown, by))


def explain_table(fitted: FittedModel, rows: Any, display_table: Any = None, by: str = "term") -> "Decisions":
    """Explain rows in memory; ``display_table`` has the values to show, where those of ``rows`` are encoded.

    ``by="column"`` divides the contribution of a joint term among its columns.
    """
    if by not in EXPLANATION_UNITS:
        raise unknown_name_error("by", by, EXPLANATION_UNITS)
    table = Table.from_data(rows)
    shown = table if display_table is None else Table.from_data(display_table)
    if fitted.model.n_classes < 2:
        [label] = fitted.labels.values
        raise InputError(f"the model has one class only, {label!r}: there is nothing to decide", value=label)
    if table.n_rows == 0:
        return Decisions()
    log_posterior = fitted.apply(Model.log_posterior, table)  # names the column of a value that cannot be used
    order = np.argsort(-log_posterior, axis=1, kind="stable")[:, :2]
    by_part = []
    for part, distribution, block in zip(
        fitted.plan.parts, fitted.model.distributions, fitted.plan.blocks(table), strict=True
    ):
        by_row = list(_contributions(part, distribution, block, shown, order, fitted.dates))
        by_part.append(_with_changes(by_row, part, distribution, table, block, order) if by == "column" else by_row)
    p, prior, labels = np.exp(log_posterior), fitted.model.log_prior, fitted.labels.values
    intercepts = _difference(prior[order[:, 0]], prior[order[:, 1]]).tolist()
    decided = None if fitted.decision_rule is None else fitted.decision_rule(log_posterior).tolist()
    decisions = Decisions()
    for row, (first, second) in enumerate(order.tolist()):
        contributions = sorted((c for part in by_part for c in part[row]), key=lambda c: -abs(c.log_odds))
        decision = Decision(
            labels[first],
            float(p[row, first]),
            labels[second],
            float(p[row, second]),
            intercepts[row],
            tuple(contributions),
            has_intercept=fitted.term_weights is not None,
        )
        if fitted.model.calibrator is not None:
            log_odds = float(_difference(log_posterior[row, first], log_posterior[row, second]))
            decision = replace(decision, calibration=log_odds - decision.log_odds)
        if decided is not None and decided[row] != first:
            label = None if decided[row] < 0 else labels[decided[row]]
            why = fitted.policy.explain_decision(decided[row], log_posterior[row, first])  # type: ignore[union-attr]
            decision = replace(decision, decided_class=label, policy_reason=why)
        decisions.append(decision if by == "term" else decision.by_column())
    return decisions


def _contributions(
    part: PlanPart, distribution: Distribution, block: Any, table: Table, order: Codes, dates: Collection[Name]
) -> Iterator[list[Contribution]]:
    is_group = part.event.is_joint and not part.is_joint_term  # one distribution of all its columns
    units = [part.columns] if is_group else part.event.term_names(part.columns)
    titles = list(part.event.term_titles(part.columns, part.encodings))
    if not part.is_joint_term and titles == [*map(str, part.columns)]:
        titles = [""] * len(units)
    positions = [[part.columns.index(name) for name in unit] for unit in units]
    values = [_display_values(part, block, table, j, dates) for j in range(len(part.columns))]
    bins = [_bins(bin_labels(part, distribution, j, dates), block, j) for j in range(len(part.columns))]
    n_levels = [*map(len, part.levels)]
    unseen_levels = defaultdict(set)
    for row, j in np.argwhere(block == n_levels).tolist() if n_levels else ():
        unseen_levels[row].add(j)
    n_rows, prototypes = len(order), part.prototypes
    nearest = [None] * n_rows if prototypes is None else (prototypes.nearest_prototype(block) + 1).tolist()
    documents: Any = distribution.base_and_weights[0] if part.block_kind == "documents" else None
    tokens = documents and documents.tokens
    step = max(1, _MAX_BLOCK_VALUES // (distribution.n_classes * max(1, len(units))))
    for start in range(0, n_rows, step):
        batch = slice(start, start + step)
        log_odds = _log_odds(distribution.contributions(slice_rows(block, batch)), order[batch], is_group)
        for row, by_unit in enumerate(log_odds.tolist(), start):
            unseen = unseen_levels.get(row, set())
            words = score_document_words(distribution, block[row : row + 1], *order[row].tolist()) if tokens else ()
            contributions = []
            for unit, at, title, value in zip(units, positions, titles, by_unit, strict=True):
                cells = tuple(bins[j][row] for j in at)
                shown: Any = tuple(values[j][row] for j in at)
                is_single, is_missing = len(unit) == 1 and not is_group, all(v is None for v in shown)
                column, shown = (unit[0], shown[0]) if is_single else (unit, None if is_missing else shown)
                cells, is_seen = cells if any(cells) else (), unseen.isdisjoint(at)
                contributions.append(
                    Contribution(column, shown, value, is_seen, words, title, cells, nearest[row], tokens)
                )
            yield contributions


def _with_changes(
    rows: list[list[Contribution]], part: PlanPart, distribution: Distribution, table: Table, block: Any, order: Codes
) -> list[list[Contribution]]:
    """Add to the contributions of a joint term without cells how much each column changes it."""
    base, weight = distribution.base_and_weights
    if (by_column := base.column_contributions(block)) is not None:
        pairs = zip(by_column, order, strict=True)
        by_row = [(_difference(known[:, a], known[:, b]) * weight).T for known, (a, b) in pairs]  # each (unit, column)
        return _replace_changes(rows, by_row)
    if not part.is_joint_term or distribution.level_scores() is not None or not 1 < len(part.columns) <= _MAX_CHANGES:
        return rows
    log_odds, changes = _log_odds(distribution.contributions(block), order, False), []
    columns = {name: table.column(name) for name in part.columns}
    for name in part.columns:
        missing = {**columns, name: np.full(table.n_rows, None, object)}
        without = part.block(Table(part.columns, table.n_rows, missing))
        changes.append(log_odds - _log_odds(distribution.contributions(without), order, False))
    return _replace_changes(rows, np.nan_to_num(np.stack(changes, axis=-1)))  # (row, unit, column)


def _replace_changes(rows: list[list[Contribution]], by_row: Iterable[Floats]) -> list[list[Contribution]]:
    return [
        [replace(c, changes=tuple(change.tolist())) for c, change in zip(row, of_row, strict=True)]
        for row, of_row in zip(rows, by_row, strict=True)
    ]


def _bins(names: tuple[str, ...] | None, block: Any, j: int) -> list[str | None]:
    """The bin of each row in a column; None where it has none."""
    if names is None:
        return [None] * block.shape[0]
    return [names[code] if 0 <= code < len(names) else None for code in block[:, j].tolist()]


def _log_odds(contributions: Floats, order: Codes, is_group: bool) -> Floats:
    """(row, feature) Return the log-odds of the first class against the second, of (row, class, feature)."""
    if is_group:
        contributions = contributions.sum(axis=2, keepdims=True)
    rows = np.arange(len(contributions))
    return _difference(contributions[rows, order[:, 0]], contributions[rows, order[:, 1]])


def _difference(a: Any, b: Any) -> Any:
    with np.errstate(invalid="ignore"):  # what is impossible under both counts for neither
        return np.where(np.isneginf(a) & np.isneginf(b), 0.0, np.subtract(a, b))


def _display_values(part: PlanPart, block: Block, table: Table, j: int, dates: Collection[Name]) -> list[Any]:
    """Return the values of a column as they were given, None where missing."""
    name = part.columns[j]
    if part.block_kind == "documents":
        documents = table.documents(name)
        return [documents.text(row, "replace") for row in range(len(documents))]
    if table.is_sparse:
        return to_dense(block)[:, j].tolist()
    column = table.column(name)
    if not is_arrow(column) and column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.kind}8[us]")  # which Python turns into dates
    values = column.to_pylist() if is_arrow(column) else column.tolist()
    if name in dates:  # a date, or the days since 1970 that an engine makes of it
        is_days = [isinstance(value, int | float) and value == value for value in values]
        values = [formatting.date_from_days(v) if days else v for v, days in zip(values, is_days, strict=True)]
    return [None if is_absent(value) else value for value in values]
