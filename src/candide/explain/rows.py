"""Decisions: why a row was given its class. Log-odds add up, so each column has its say in nats.

What a column says is log p(value | class) less the same of the runner-up: above zero it speaks for the class predicted,
below for the other. A missing value says nothing, but a discriminant reads it as the mean of its column. With what the
class prior says they add up to the log-odds.

>>> from candide.demo import garden
>>> plant = {"height_cm": [51.0], "leaf_mm": [45.0], "flowers": [None], "soil": ["clay"], "scented": ["no"]}
>>> [decision] = explain(Fitted(garden()), plant)
>>> print(decision)
sage, p = 0.944, against lavender, p = 0.056
column         value   nats
scented           no  +1.53
soil            clay  +1.43
leaf_mm           45  -0.08
height_cm         51  -0.05
flowers      missing  +0.00
class prior           +0.00
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from candide import wording
from candide.distributions.base import Distribution, dense
from candide.encode.tokens import Tokens
from candide.errors import InputError, unknown
from candide.explain.cells import places
from candide.explain.marks import Mark, marks
from candide.explain.terms import DocumentTerm, terms_of
from candide.model.fitted import Fitted
from candide.model.model import Model
from candide.model.plan import Part
from candide.rows.blocks import Block, Codes, Floats, rows_of
from candide.rows.labels import is_absent, is_arrow
from candide.rows.table import Name, Table

_CHANGED = 64  # columns of a discriminant, at most, for each of which it is scored once more
_VALUES = 1 << 22  # (row, class, feature) terms at a time
BY = ("voice", "column")
_LINES, _WORDS, _SHOWN = 20, 5, 10  # columns, words of a document, and rows, in print


@dataclass(frozen=True)
class Contribution:
    """What a column, or a group of columns modelled together, says: its value (None: missing), and nats."""

    column: Name | tuple[Name, ...]
    value: Any
    nats: float
    known: bool = True  # False: a level that was never counted
    words: tuple[DocumentTerm, ...] = ()  # of a document its known terms, strongest first
    voice: str = ""  # what columns that speak together are called, such as "age x job"
    cells: tuple[str | None, ...] = ()  # of each value the bin or cell that it is counted in, where it has one
    like: int | None = None  # of values compared with typical rows, the number of the one that they are most like
    tokens: Tokens | None = None  # of a document: how it was divided into terms
    changes: tuple[float, ...] = ()  # of a discriminant, by how much it would change if a column were missing

    @property
    def title(self) -> str:
        """What speaks, for a person."""
        return self.voice or wording.column(self.column)

    @property
    def columns(self) -> tuple[Name, ...]:
        """The columns that it is of."""
        return self.column if isinstance(self.column, tuple) else (self.column,)

    @property
    def rest(self) -> float:
        """What of a document its known terms do not say: its length, and terms that it does not have."""
        return self.nats - sum(word.weight for word in self.words)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Of a document its pieces, each with what it says; together they say what the known terms do."""
        return marks(self.value, self.words, self.tokens) if self.tokens and isinstance(self.value, str) else ()

    @property
    def shown(self) -> str:
        """The value for a person."""
        text = wording.value(self.value) if self.like is None else f"most like typical row {self.like}"
        if any(self.cells):
            values = self.value if isinstance(self.column, tuple) else (self.value,)
            each = zip(values, self.cells, strict=True)
            text = ", ".join(wording.value(v) + (f" ({cell})" if cell else "") for v, cell in each)
        return text + ("" if self.known else " (never seen)")

    def plus(self, other: "Contribution") -> "Contribution":
        """What the same column says in two ways: alone, and its share of what it says together with others."""
        known, cells = self.known and other.known, self.cells or other.cells
        document = self if self.words else other
        said = replace(self, words=document.words, tokens=document.tokens)
        return replace(said, nats=self.nats + other.nats, known=known, cells=cells)

    def lines(self) -> Iterator[tuple[str, str, str]]:
        """Column, value and nats in words; of a document, its strongest terms below."""
        yield self.title, self.shown, wording.nats(self.nats, 2)
        for word in self.words[:_WORDS]:
            yield f"  {word.term}", wording.plural(word.count, "time"), wording.nats(word.weight, 2)
        left = self.nats - sum(word.weight for word in self.words[:_WORDS])
        if self.words and abs(left) > 5e-3:
            yield "  all else in it", "", wording.nats(left, 2)


@dataclass(frozen=True, repr=False)
class Decision:
    """The class predicted for a row, the runner-up, and what speaks for the one against the other, strongest first."""

    prediction: Any
    probability: float
    runner_up: Any
    runner_up_probability: float
    class_prior: float  # nats, those of the bias of a weighted model among them
    contributions: tuple[Contribution, ...]
    has_bias: bool = False
    calibration: float = 0.0  # nats by which a curve bends the sum of the others at last
    given: Any = None  # what the policy decides, where that is another class; None too where the row is left open
    policy: str = ""  # why, in words; empty where the most probable class is given

    @property
    def decided(self) -> str:
        """What the policy decides, where it is not the most probable class; else empty.

        >>> replace(Decision("no", 0.7, "yes", 0.3, 0.0, ()), given="yes", policy="least expected cost").decided
        'decides yes: least expected cost; most probable: no'
        """
        if not self.policy:
            return ""
        what = "left open" if self.given is None else f"decides {self.given}"
        return f"{what}: {self.policy}; most probable: {self.prediction}"

    @property
    def log_odds(self) -> float:
        """What all of it comes to: the log of the odds of the class over the runner-up."""
        odds = self.class_prior + sum(one.nats for one in self.contributions) + self.calibration
        return odds if odds == odds else self.class_prior  # a row impossible under both is left with the prior

    @property
    def prior_title(self) -> str:
        """What the class prior is called."""
        return "class prior and bias" if self.has_bias else "class prior"

    @property
    def heading(self) -> str:
        """What speaks: columns, or voices where some are of columns together."""
        return "voice" if any(one.voice for one in self.contributions) else "column"

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
            share = one.nats / (sum(there) or len(there))
            more = _above_mean(one.changes or (0.0,) * len(there), there)
            for name, value, speaks, above in zip(one.columns, values, there, more, strict=True):
                nats = share + above if speaks or not any(there) else 0.0
                part = replace(one, column=name, value=value, nats=nats, voice="", cells=(), like=None)
                part = part if several else replace(part, cells=one.cells)
                known = found.get(name)
                found[name] = part if known is None else known.plus(part)
        order = sorted(found.values(), key=lambda one: -abs(one.nats))
        return replace(self, contributions=tuple(order))

    def __str__(self) -> str:
        shown, more = self.contributions[:_LINES], self.contributions[_LINES:]
        cells = [cell for one in shown for cell in one.lines()]
        if more:
            cells.append((f"and {len(more):,} more", "", wording.nats(sum(one.nats for one in more), 2)))
        rows = [(self.heading, "value", "nats"), *cells, (self.prior_title, "", wording.nats(self.class_prior, 2))]
        rows += [("calibration", "", wording.nats(self.calibration, 2))] if self.calibration else []
        first = f"{self.prediction}, p {wording.probability(self.probability, 3)}, against {self.runner_up}"
        second = wording.probability(self.runner_up_probability, 3)
        decided = [self.decided] if self.decided else []
        return "\n".join([*decided, f"{first}, p {second}", *wording.aligned(rows)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown, left = self.contributions[:_LINES], sum(one.nats for one in self.contributions[_LINES:])
        said = [(one.title, one.shown, one.nats) for one in shown]
        said += [(f"and {len(self.contributions) - _LINES:,} more", "", left)] if self.contributions[_LINES:] else []
        said.append((self.prior_title, "", self.class_prior))
        said += [("calibration", "", self.calibration)] if self.calibration else []
        rows = [[self.heading, "value", "nats"], *([name, value, wording.nats(v, 2)] for name, value, v in said)]
        title = f"{self.prediction}, p {wording.probability(self.probability, 3)}"
        note = f"against {self.runner_up}, p {wording.probability(self.runner_up_probability, 3)}"
        title = f"{self.decided}; {title}" if self.decided else title
        return wording.framed(title, rows, 2, [v if v == v else 0.0 for *_, v in said], note)


class Decisions(list[Decision]):
    """Decisions of rows, in order: a list that a notebook shows one below another, the first of many."""

    def _repr_html_(self) -> str:
        more = f"<p>and {len(self) - _SHOWN:,} more rows</p>" if len(self) > _SHOWN else ""
        return "<br>".join(one._repr_html_() for one in self[:_SHOWN]) + more


def explain(fitted: Fitted, rows: Any, shown: Any = None, by: str = "voice") -> "Decisions":
    """Why each of some rows in memory is given its class; ``shown`` has the values to show, where these are encoded.

    ``by`` is "voice", or "column" to have what columns say together shared out to them.
    """
    if by not in BY:
        raise unknown("by", by, BY)
    table = Table.of(rows)
    values_of = table if shown is None else Table.of(shown)
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
    decisions, weighted = Decisions(), fitted.voices is not None
    given = None if fitted.rule is None else fitted.rule(log_posterior).tolist()
    for row, (first, second) in enumerate(order.tolist()):
        contributions = sorted((r for part in each for r in part[row]), key=lambda one: -abs(one.nats))
        odds = (p[row, first], p[row, second], _difference(prior[first], prior[second]))
        one, other, at_first = map(float, odds)
        found = Decision(values[first], one, values[second], other, at_first, tuple(contributions), weighted)
        if fitted.model.curve is not None:
            stated = float(_difference(log_posterior[row, first], log_posterior[row, second]))
            found = replace(found, calibration=stated - found.log_odds)
        if given is not None and given[row] != first:
            label = None if given[row] < 0 else values[given[row]]
            why = fitted.policy.why(given[row], log_posterior[row, first])  # type: ignore[union-attr]
            found = replace(found, given=label, policy=why)
        decisions.append(found if by == "voice" else found.by_column())
    return decisions


def _contributions(
    part: Part, law: Distribution, block: Any, table: Table, order: Codes, dates: Collection[Name]
) -> Iterator[list[Contribution]]:
    """Row by row what the columns of a part say; a column of several parts speaks in each."""
    whole = part.event.joint and not part.beside  # a law of all its columns
    units = [part.columns] if whole else part.event.voices(part.columns)
    titles = list(part.event.titles(part.columns, part.encodings))
    if not part.beside and titles == [*map(str, part.columns)]:
        titles = [""] * len(units)
    at = {name: j for j, name in enumerate(part.columns)}
    values = [_values(part, block, table, j, dates) for j in range(len(part.columns))]
    cells = [places(part, law, j, dates) for j in range(len(part.columns))]
    like = [None] * len(order) if part.together is None else (part.together.nearest(block) + 1).tolist()
    documents: Any = law.unweighted[0] if part.holds == "documents" else None
    tokens = documents and documents.tokens
    step = max(1, _VALUES // (law.n_classes * max(1, len(units))))
    for start in range(0, len(order), step):
        some = slice(start, start + step)
        nats = _nats(law.terms(rows_of(block, some)), order[some], whole)
        for row, said in enumerate(nats.tolist(), start):
            unmet = {part.columns[j] for j, levels in enumerate(part.levels) if block[row, j] == len(levels)}
            words = terms_of(law, block[row : row + 1], *order[row].tolist()) if tokens else ()
            found = []
            for unit, title, one in zip(units, titles, said, strict=True):
                seen = [values[at[name]][row] for name in unit]
                inside = tuple(_cell(cells[at[name]], block, row, at[name]) for name in unit)
                alone = len(unit) == 1 and not whole
                column, value = (unit[0], seen[0]) if alone else (unit, _together(seen))
                known = unmet.isdisjoint(unit)
                inside = inside if any(inside) else ()
                found.append(Contribution(column, value, one, known, words, title, inside, like[row], tokens))
            yield found


def _with_changes(
    found: list[list[Contribution]], part: Part, law: Distribution, table: Table, block: Any, order: Codes
) -> list[list[Contribution]]:
    """The same for a discriminant or a prototype term, with how much each column changes it."""
    if not part.beside or law.answers() is not None or not 1 < len(part.columns) <= _CHANGED:
        return found
    now, changes = _nats(law.terms(block), order, False), []
    held = {name: table.column(name) for name in part.columns}
    for name in part.columns:
        gone = {**held, name: np.full(table.n_rows, None, object)}
        without = part.block(Table(part.columns, table.n_rows, gone))
        changes.append(now - _nats(law.terms(without), order, False))
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
