"""Decisions: why a row was given its class. Log-odds add up, so each column has its say in nats.

What a column says is log p(value | class) less the same of the runner-up: above zero it speaks for the class predicted,
below for the other. A missing value says nothing. With what the class prior says they add up to the log-odds.

>>> from candide.demo import garden
>>> plant = {"height_cm": [51.0], "leaf_mm": [45.0], "flowers": [None], "soil": ["clay"], "scented": ["no"]}
>>> [decision] = explain(Fitted(garden()), plant)
>>> print(decision)
sage, p = 0.944, against lavender, p = 0.056
column         value   nats
scented           no  +1.53
soil            clay  +1.43
leaf_mm         45.0  -0.08
height_cm       51.0  -0.05
flowers      missing  +0.00
class prior           +0.00
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from candide import wording
from candide.distributions.base import Distribution, dense
from candide.errors import InputError
from candide.explain.terms import DocumentTerm, terms_of
from candide.model.fitted import Fitted
from candide.model.model import Model
from candide.model.plan import Part
from candide.rows.blocks import Block, Codes, Floats, rows_of
from candide.rows.labels import is_absent, is_arrow
from candide.rows.table import Name, Table

_VALUES = 1 << 22  # (row, class, feature) terms at a time
_LINES, _WORDS = 20, 5  # columns, and words of a document, in print


@dataclass(frozen=True)
class Contribution:
    """What a column, or a group of columns modelled together, says: its value (None: missing), and nats."""

    column: Name | tuple[Name, ...]
    value: Any
    nats: float
    known: bool = True  # False: a level that was never counted
    words: tuple[DocumentTerm, ...] = ()  # of a document its known terms, strongest first

    @property
    def rest(self) -> float:
        """What of a document its known terms do not say: its length, and terms that it does not have."""
        return self.nats - sum(word.weight for word in self.words)

    @property
    def shown(self) -> str:
        """The value for a person."""
        return wording.value(self.value) + ("" if self.known else " (never seen)")

    def lines(self) -> Iterator[tuple[str, str, str]]:
        """Column, value and nats in words; of a document, its strongest terms below."""
        yield wording.column(self.column), self.shown, f"{self.nats:+.2f}"
        for word in self.words[:_WORDS]:
            yield f"  {word.term}", wording.plural(word.count, "time"), f"{word.weight:+.2f}"
        left = self.nats - sum(word.weight for word in self.words[:_WORDS])
        if self.words and abs(left) > 5e-3:
            yield "  all else in it", "", f"{left:+.2f}"


@dataclass(frozen=True)
class Decision:
    """The class predicted for a row, the runner-up, and what speaks for the one against the other, strongest first."""

    prediction: Any
    probability: float
    runner_up: Any
    runner_up_probability: float
    class_prior: float  # nats
    contributions: tuple[Contribution, ...]

    @property
    def log_odds(self) -> float:
        """What all of it comes to: the log of the odds of the class over the runner-up."""
        odds = self.class_prior + sum(one.nats for one in self.contributions)
        return odds if odds == odds else self.class_prior  # a row impossible under both is left with the prior

    def __str__(self) -> str:
        shown, more = self.contributions[:_LINES], self.contributions[_LINES:]
        cells = [cell for one in shown for cell in one.lines()]
        if more:
            cells.append((f"and {len(more):,} more", "", f"{sum(one.nats for one in more):+.2f}"))
        rows = [("column", "value", "nats"), *cells, ("class prior", "", f"{self.class_prior:+.2f}")]
        a, b, c = (max(map(len, column)) for column in zip(*rows, strict=True))
        first = f"{self.prediction}, p {wording.probability(self.probability, 3)}, against {self.runner_up}"
        lines = [f"{name:{a}}  {value:>{b}}  {nats:>{c}}" for name, value, nats in rows]
        return "\n".join([f"{first}, p {wording.probability(self.runner_up_probability, 3)}", *lines])


def explain(fitted: Fitted, rows: Any, shown: Any = None) -> list[Decision]:
    """Why each of some rows in memory is given its class; ``shown`` has the values to show, where these are encoded."""
    table = Table.of(rows)
    values_of = table if shown is None else Table.of(shown)
    if fitted.model.n_classes < 2:
        [label] = fitted.labels.values
        raise InputError(f"the model knows one class only, {label!r}: there is nothing to decide", value=label)
    if table.n_rows == 0:
        return []
    log_posterior = fitted.apply(Model.log_posterior, table)  # names the column of a value that cannot be used
    order = np.argsort(-log_posterior, axis=1, kind="stable")[:, :2]
    parts = zip(fitted.plan.parts, fitted.model.distributions, fitted.plan.blocks(table), strict=True)
    each = [list(_contributions(part, law, block, values_of, order, fitted.dates)) for part, law, block in parts]
    p, prior, values = np.exp(log_posterior), fitted.model.log_prior, fitted.labels.values
    decisions = []
    for row, (first, second) in enumerate(order.tolist()):
        contributions = sorted((r for part in each for r in part[row]), key=lambda one: -abs(one.nats))
        odds = (p[row, first], p[row, second], _difference(prior[first], prior[second]))
        one, other, at_first = map(float, odds)
        decisions.append(Decision(values[first], one, values[second], other, at_first, tuple(contributions)))
    return decisions


def _contributions(
    part: Part, law: Distribution, block: Any, table: Table, order: Codes, dates: Collection[Name]
) -> Iterator[list[Contribution]]:
    """Row by row what the columns of a part say; a column of several parts speaks in each."""
    units = [part.columns] if part.event.joint else part.event.voices(part.columns)
    names = [unit if len(unit) > 1 or part.event.joint else unit[0] for unit in units]
    at = {name: j for j, name in enumerate(part.columns)}
    values = [_values(part, block, table, j, dates) for j in range(len(part.columns))]
    step = max(1, _VALUES // (law.n_classes * max(1, len(part.columns))))
    for start in range(0, len(order), step):
        some = slice(start, start + step)
        nats = _nats(law.terms(rows_of(block, some)), order[some], part.event.joint)
        for row, cells in enumerate(nats.tolist(), start):
            seen = [[values[at[name]][row] for name in unit] for unit in units]
            shown = [v[0] if not isinstance(n, tuple) else _together(v) for n, v in zip(names, seen, strict=True)]
            unmet = {part.columns[j] for j, levels in enumerate(part.levels) if block[row, j] == len(levels)}
            words = terms_of(law, block[row : row + 1], *order[row].tolist()) if part.holds == "documents" else ()
            each = zip(names, shown, cells, units, strict=True)
            yield [Contribution(n, v, cell, unmet.isdisjoint(unit), words) for n, v, cell, unit in each]


def _together(values: list[Any]) -> tuple[Any, ...] | None:
    """The values of columns that speak together; None where all are absent."""
    return None if all(value is None for value in values) else tuple(values)


def _nats(terms: Floats, order: Codes, is_group: bool) -> Floats:
    """(row, feature) what speaks for the first class against the second, of (row, class, feature) terms."""
    if is_group:
        terms = terms.sum(axis=2, keepdims=True)
    every = np.arange(len(terms))
    return _difference(terms[every, order[:, 0]], terms[every, order[:, 1]])


def _difference(a: Any, b: Any) -> Any:
    with np.errstate(invalid="ignore"):  # what is impossible under both speaks for neither
        return np.where(np.isneginf(a) & np.isneginf(b), 0.0, np.subtract(a, b))


def _values(part: Part, block: Block, table: Table, j: int, dates: Collection[Name]) -> list[Any]:
    """The values of a column as they were given, None where absent."""
    name = part.columns[j]
    if part.holds == "documents":
        documents = table.documents(name)
        return [documents.text(row, "replace") for row in range(len(documents))]
    if table.is_sparse:
        return dense(block)[:, j].tolist()
    column = table.column(name)
    if not is_arrow(column) and column.dtype.kind in "mM":
        column = column.astype(f"{column.dtype.kind}8[us]")  # of which Python makes dates
    values = column.to_pylist() if is_arrow(column) else column.tolist()
    if name in dates:  # a date, or the days since 1970 that an engine makes of it
        values = [
            wording.date(value) if isinstance(value, int | float) and value == value else value for value in values
        ]
    return [None if is_absent(value) else value for value in values]
