"""Decisions: why a row was given its class, as contributions of terms to the log-odds.

The contribution of a column is log p(value | class) minus the same for the runner-up: above zero it counts for the
predicted class. A missing value contributes 0, except that a discriminant reads it as the mean of its column. With the
class prior the contributions add up to the log-odds.

>>> from candide.demo import garden
>>> plant = {"height_cm": [51.0], "leaf_mm": [45.0], "flowers": [None], "soil": ["clay"], "scented": ["no"]}
>>> [decision] = explain_table(FittedModel(garden()), plant)
>>> print(decision)
sage, p = 0.945, against lavender, p = 0.055
column         value  log-odds
scented           no     +1.53
soil            clay     +1.43
leaf_mm           45     -0.07
height_cm         51     -0.05
flowers      missing     +0.00
class prior              +0.00
"""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from candide import formatting
from candide.data.blocks import Block, Codes, Floats, slice_rows
from candide.data.labels import is_absent, is_arrow
from candide.data.table import Name, Table
from candide.distributions.base import Distribution, to_dense
from candide.encoding.tokens import Tokens
from candide.errors import InputError, unknown_name_error
from candide.explain.axes import bin_labels
from candide.explain.words import DocumentWord, HighlightedText, highlight_document, score_document_words
from candide.model.fitted import FittedModel
from candide.model.model import Model
from candide.model.plan import PlanPart

_CHANGED = 64  # columns of a discriminant, at most, for each of which it is scored once more
_MAX_BLOCK_VALUES = 1 << 22  # (row, class, feature) terms at a time
EXPLANATION_UNITS = ("term", "column")
_MAX_LINES, _MAX_WORDS, _MAX_ROWS = 20, 5, 10  # columns, words of a document, and rows, in print


@dataclass(frozen=True)
class Contribution:
    """What a column, or a group of columns modelled together, says: its value (None: missing), and nats."""

    column: Name | tuple[Name, ...]
    value: Any
    log_odds: float
    is_seen: bool = True  # False: a level that was never counted
    words: tuple[DocumentWord, ...] = ()  # of a document its known terms, strongest first
    term: str = ""  # what columns that speak together are called, such as "age x job"
    cells: tuple[str | None, ...] = ()  # of each value the bin or cell that it is counted in, where it has one
    nearest_prototype: int | None = (
        None  # of values compared with typical rows, the number of the one that they are most like
    )
    tokens: Tokens | None = None  # of a document: how it was divided into terms
    changes: tuple[float, ...] = ()  # of a discriminant, by how much it would change if a column were missing

    @property
    def title(self) -> str:
        """What speaks, for a person."""
        return self.term or formatting.format_column(self.column)

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns that it is of."""
        return self.column if isinstance(self.column, tuple) else (self.column,)

    @property
    def remainder(self) -> float:
        """What of a document its known terms do not say: its length, and terms that it does not have."""
        return self.log_odds - sum(word.log_odds for word in self.words)

    @property
    def highlights(self) -> tuple[HighlightedText, ...]:
        """Of a document its pieces, each with what it says; together they say what the known terms do."""
        return (
            highlight_document(self.value, self.words, self.tokens)
            if self.tokens and isinstance(self.value, str)
            else ()
        )

    @property
    def display_value(self) -> str:
        """The value for a person."""
        text = (
            formatting.format_value(self.value)
            if self.nearest_prototype is None
            else f"nearest prototype {self.nearest_prototype}"
        )
        if any(self.cells):
            values = self.value if isinstance(self.column, tuple) else (self.value,)
            each = zip(values, self.cells, strict=True)
            text = ", ".join(formatting.format_value(v) + (f" ({cell})" if cell else "") for v, cell in each)
        return text + ("" if self.is_seen else " (never seen)")

    def add(self, other: "Contribution") -> "Contribution":
        """What the same column says in two ways: alone, and its share of what it says together with others."""
        known, cells = self.is_seen and other.is_seen, self.cells or other.cells
        document = self if self.words else other
        said = replace(self, words=document.words, tokens=document.tokens)
        return replace(said, log_odds=self.log_odds + other.log_odds, is_seen=known, cells=cells)

    def word_rows(self, limit: int = _MAX_WORDS) -> Iterator[tuple[str, str, float]]:
        """Yield the strongest words of a document, how often each occurs, and its log-odds; then the rest."""
        for word in self.words[:limit]:
            yield f"  {word.word}", formatting.format_count(word.count, "time"), word.log_odds
        rest = self.log_odds - sum(word.log_odds for word in self.words[:limit])
        if self.words and abs(rest) > 5e-3:
            yield "  all else in it", "", rest

    def to_dict(self) -> dict[str, Any]:
        """Return the contribution as values for a program; without what it does not have."""
        shown = {name: getattr(self, name) for name in ("column", "value", "log_odds", "is_seen")}
        shown |= {name: v for name in ("term", "cells", "nearest_prototype") if (v := getattr(self, name))}
        return {**shown, "words": [asdict(word) for word in self.words]} if self.words else shown


@dataclass(frozen=True, repr=False)
class Decision:
    """The class predicted for a row, the runner-up, and what speaks for the one against the other, strongest first."""

    prediction: Any
    probability: float
    runner_up: Any
    runner_up_probability: float
    class_prior: float  # nats, those of the bias of a weighted model among them
    contributions: tuple[Contribution, ...]
    has_intercept: bool = False
    calibration: float = 0.0  # nats by which a curve bends the sum of the others at last
    decided_class: Any = (
        None  # what the policy decides, where that is another class; None too where the row is left open
    )
    policy_reason: str = ""  # why, in words; empty where the most probable class is given

    @property
    def decision_note(self) -> str:
        """What the policy decides, where it is not the most probable class; else empty.

        >>> replace(
        ...     Decision("no", 0.7, "yes", 0.3, 0.0, ()), decided_class="yes", policy_reason="least expected cost"
        ... ).decision_note
        'decides yes: least expected cost; most probable: no'
        """
        if not self.policy_reason:
            return ""
        what = "left open" if self.decided_class is None else f"decides {self.decided_class}"
        return f"{what}: {self.policy_reason}; most probable: {self.prediction}"

    @property
    def log_odds(self) -> float:
        """What all of it comes to: the log of the odds of the class over the runner-up."""
        odds = self.class_prior + sum(one.log_odds for one in self.contributions) + self.calibration
        return odds if odds == odds else self.class_prior  # a row impossible under both is left with the prior

    @property
    def prior_title(self) -> str:
        """What the class prior is called."""
        return "class prior and intercept" if self.has_intercept else "class prior"

    @property
    def row_heading(self) -> str:
        """What speaks: columns, or voices where some are of columns together."""
        return "term" if any(one.term for one in self.contributions) else "column"

    def by_column(self) -> "Decision":
        """The same with what columns contribute together divided among them; it comes to the same log-odds.

        Of an interaction each column has an equal share: if one value is missing, the term is inactive. Of a
        discriminant or a prototype term a column has an equal share, plus how much more than the mean of its columns
        the contribution would change if its value were missing. A missing value has no share, unless all are missing.
        """
        found: dict[Name, Contribution] = {}
        for one in self.contributions:
            several = isinstance(one.column, tuple)
            values = one.value if several and one.value is not None else (one.value,) * len(one.columns)
            there = [not is_absent(value) for value in values]
            share = one.log_odds / (sum(there) or len(there))
            more = _above_mean(one.changes or (0.0,) * len(there), there)
            for name, value, speaks, above in zip(one.columns, values, there, more, strict=True):
                nats = share + above if speaks or not any(there) else 0.0
                part = replace(one, column=name, value=value, log_odds=nats, term="", cells=(), nearest_prototype=None)
                part = part if several else replace(part, cells=one.cells)
                known = found.get(name)
                found[name] = part if known is None else known.add(part)
        order = sorted(found.values(), key=lambda one: -abs(one.log_odds))
        return replace(self, contributions=tuple(order))

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as values for a program."""
        names = ("prediction", "probability", "runner_up", "runner_up_probability", "log_odds", "class_prior")
        shown = {name: getattr(self, name) for name in (*names, *(("calibration",) if self.calibration else ()))}
        return {**shown, "contributions": [one.to_dict() for one in self.contributions]}

    def rows(self, limit: int, digits: int = 2) -> list[tuple[str, str, float]]:
        """Return title, value and log-odds of the strongest contributions, of the rest, the prior and calibration."""
        rest = self.contributions[limit:]
        return [
            *((one.title, one.display_value, one.log_odds) for one in self.contributions[:limit]),
            *([(f"and {len(rest):,} more", "", sum(one.log_odds for one in rest))] if rest else []),
            (self.prior_title, "", self.class_prior),
            *([("calibration", "", self.calibration)] if self.calibration else []),
        ]

    def __str__(self) -> str:
        words = {one.title: list(one.word_rows()) for one in self.contributions}
        cells = [row for first in self.rows(_MAX_LINES) for row in (first, *words.get(first[0], ()))]
        rows = [(title, value, formatting.format_log_odds(v, 2)) for title, value, v in cells]
        first = f"{self.prediction}, p {formatting.format_probability(self.probability, 3)}, against {self.runner_up}"
        second = formatting.format_probability(self.runner_up_probability, 3)
        note = [self.decision_note] if self.decision_note else []
        lines = formatting.align_columns([(self.row_heading, "value", "log-odds"), *rows])
        return "\n".join([*note, f"{first}, p {second}", *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = self.rows(_MAX_LINES)
        rows = [[title, value, formatting.format_log_odds(v, 2)] for title, value, v in shown]
        title = f"{self.prediction}, p {formatting.format_probability(self.probability, 3)}"
        title = f"{self.decision_note}; {title}" if self.decision_note else title
        note = f"against {self.runner_up}, p {formatting.format_probability(self.runner_up_probability, 3)}"
        bars = [v if v == v else 0.0 for *_, v in shown]
        return formatting.render_html_table(title, [[self.row_heading, "value", "log-odds"], *rows], 2, bars, note)


class Decisions(list[Decision]):
    """Decisions of rows, in order: a list that a notebook shows one below another, the first of many."""

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self) - _MAX_ROWS:,} more rows</p>" if len(self) > _MAX_ROWS else ""
        return "<br>".join(one._repr_html_() for one in self[:_MAX_ROWS]) + more


def explain_table(fitted: FittedModel, rows: Any, display_table: Any = None, by: str = "term") -> "Decisions":
    """Why each of some rows in memory is given its class; ``shown`` has the values to show, where these are encoded.

    ``by`` is "term", or "column" to have what columns say together shared out to them.
    """
    if by not in EXPLANATION_UNITS:
        raise unknown_name_error("by", by, EXPLANATION_UNITS)
    table = Table.from_data(rows)
    values_of = table if display_table is None else Table.from_data(display_table)
    if fitted.model.n_classes < 2:
        [label] = fitted.labels.values
        raise InputError(f"the model knows one class only, {label!r}: there is nothing to decide", value=label)
    if table.n_rows == 0:
        return Decisions()
    log_posterior = fitted.apply(Model.log_posterior, table)  # names the column of a value that cannot be used
    order = np.argsort(-log_posterior, axis=1, kind="stable")[:, :2]
    parts = zip(fitted.plan.parts, fitted.model.distributions, fitted.plan.blocks(table), strict=True)
    each = []
    for part, law, block in parts:
        found_in = list(_contributions(part, law, block, values_of, order, fitted.dates))
        each.append(_with_changes(found_in, part, law, table, block, order) if by == "column" else found_in)
    p, prior, values = np.exp(log_posterior), fitted.model.log_prior, fitted.labels.values
    decisions, weighted = Decisions(), fitted.term_weights is not None
    given = None if fitted.decision_rule is None else fitted.decision_rule(log_posterior).tolist()
    for row, (first, second) in enumerate(order.tolist()):
        contributions = sorted((r for part in each for r in part[row]), key=lambda one: -abs(one.log_odds))
        odds = (p[row, first], p[row, second], _difference(prior[first], prior[second]))
        one, other, at_first = map(float, odds)
        found = Decision(values[first], one, values[second], other, at_first, tuple(contributions), weighted)
        if fitted.model.calibrator is not None:
            stated = float(_difference(log_posterior[row, first], log_posterior[row, second]))
            found = replace(found, calibration=stated - found.log_odds)
        if given is not None and given[row] != first:
            label = None if given[row] < 0 else values[given[row]]
            why = fitted.policy.explain_decision(given[row], log_posterior[row, first])  # type: ignore[union-attr]
            found = replace(found, decided_class=label, policy_reason=why)
        decisions.append(found if by == "term" else found.by_column())
    return decisions


def _contributions(
    part: PlanPart, distribution: Distribution, block: Any, table: Table, order: Codes, dates: Collection[Name]
) -> Iterator[list[Contribution]]:
    """Row by row what the columns of a part say; a column of several parts speaks in each."""
    whole = part.event.is_joint and not part.is_joint_term  # a law of all its columns
    units = [part.columns] if whole else part.event.term_names(part.columns)
    titles = list(part.event.term_titles(part.columns, part.encodings))
    if not part.is_joint_term and titles == [*map(str, part.columns)]:
        titles = [""] * len(units)
    at = {name: j for j, name in enumerate(part.columns)}
    values = [_display_values(part, block, table, j, dates) for j in range(len(part.columns))]
    cells = [bin_labels(part, distribution, j, dates) for j in range(len(part.columns))]
    like = [None] * len(order) if part.prototypes is None else (part.prototypes.nearest_prototype(block) + 1).tolist()
    documents: Any = distribution.base_and_weights[0] if part.block_kind == "documents" else None
    tokens = documents and documents.tokens
    step = max(1, _MAX_BLOCK_VALUES // (distribution.n_classes * max(1, len(units))))
    for start in range(0, len(order), step):
        some = slice(start, start + step)
        nats = _log_odds(distribution.contributions(slice_rows(block, some)), order[some], whole)
        for row, said in enumerate(nats.tolist(), start):
            unmet = {part.columns[j] for j, levels in enumerate(part.levels) if block[row, j] == len(levels)}
            words = score_document_words(distribution, block[row : row + 1], *order[row].tolist()) if tokens else ()
            found = []
            for unit, title, one in zip(units, titles, said, strict=True):
                seen = [values[at[name]][row] for name in unit]
                inside = tuple(_cell(cells[at[name]], block, row, at[name]) for name in unit)
                alone = len(unit) == 1 and not whole
                column, value = (unit[0], seen[0]) if alone else (unit, _joint_value(seen))
                known = unmet.isdisjoint(unit)
                inside = inside if any(inside) else ()
                found.append(Contribution(column, value, one, known, words, title, inside, like[row], tokens))
            yield found


def _with_changes(
    found: list[list[Contribution]], part: PlanPart, law: Distribution, table: Table, block: Any, order: Codes
) -> list[list[Contribution]]:
    """The same for a discriminant or a prototype term, with how much each column changes it."""
    if not part.is_joint_term or law.level_scores() is not None or not 1 < len(part.columns) <= _CHANGED:
        return found
    now, changes = _log_odds(law.contributions(block), order, False), []
    held = {name: table.column(name) for name in part.columns}
    for name in part.columns:
        gone = {**held, name: np.full(table.n_rows, None, object)}
        without = part.block(Table(part.columns, table.n_rows, gone))
        changes.append(now - _log_odds(law.contributions(without), order, False))
    by_row = np.nan_to_num(np.stack(changes, axis=-1))  # (row, unit, column)
    return [
        [replace(one, changes=tuple(own.tolist())) for one, own in zip(row, each, strict=True)]
        for row, each in zip(found, by_row, strict=True)
    ]


def _above_mean(changes: tuple[float, ...], there: list[bool]) -> list[float]:
    """How much each change is above the mean of those of the values that are there."""
    mean = sum(change for change, is_there in zip(changes, there, strict=True) if is_there) / (sum(there) or 1)
    return [change - mean if is_there else 0.0 for change, is_there in zip(changes, there, strict=True)]


def _cell(names: tuple[str, ...] | None, block: Any, row: int, j: int) -> str | None:
    return names[block[row, j]] if names is not None and 0 <= block[row, j] < len(names) else None


def _joint_value(values: list[Any]) -> tuple[Any, ...] | None:
    """The values of columns that speak together; None where all are absent."""
    return None if all(value is None for value in values) else tuple(values)


def _log_odds(contributions: Floats, order: Codes, is_group: bool) -> Floats:
    """(row, feature) what speaks for the first class against the second, of (row, class, feature) terms."""
    if is_group:
        contributions = contributions.sum(axis=2, keepdims=True)
    every = np.arange(len(contributions))
    return _difference(contributions[every, order[:, 0]], contributions[every, order[:, 1]])


def _difference(a: Any, b: Any) -> Any:
    with np.errstate(invalid="ignore"):  # what is impossible under both speaks for neither
        return np.where(np.isneginf(a) & np.isneginf(b), 0.0, np.subtract(a, b))


def _display_values(part: PlanPart, block: Block, table: Table, j: int, dates: Collection[Name]) -> list[Any]:
    """The values of a column as they were given, None where absent."""
    name = part.columns[j]
    if part.block_kind == "documents":
        documents = table.documents(name)
        return [documents.text(row, "replace") for row in range(len(documents))]
    if table.is_sparse:
        return to_dense(block)[:, j].tolist()
    column = table.column(name)
    if not is_arrow(column) and column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.kind}8[us]")  # of which Python makes dates
    values = column.to_pylist() if is_arrow(column) else column.tolist()
    if name in dates:  # a date, or the days since 1970 that an engine makes of it
        values = [
            formatting.date_from_days(value) if isinstance(value, int | float) and value == value else value
            for value in values
        ]
    return [None if is_absent(value) else value for value in values]
