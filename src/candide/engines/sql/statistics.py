"""Aggregates: what each tally kind asks of SQL, and how the answers become the tally.

Written once as sqlglot expressions, so that a dialect is a word. An aggregate knows tally kinds, never event models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlglot import exp

from candide.errors import InputError, InputTypeError
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.labels import Labels
from candide.tally import Levels, Moments, Spec, Sums

Rows = Sequence[Sequence[Any]]  # one a group (class, fold); the cells of one column's aggregates

_LOGS = {"log": exp.Ln}


@dataclass(frozen=True)
class Column:
    """A column as SQL sees it: its name in the source and its type, and what it is called once it has been read.

    ``read`` is projected once, in a subquery; every aggregate then works on the plain name ``alias``.
    """

    name: str
    type: str
    alias: str = ""
    is_level: bool = False
    weight: str | None = None  # the alias of the weight
    nan: bool = True  # whether a number may be NaN
    near: float | Mapping[Any, float] = 0.0  # a value near the middle, or one for each label, for weighted sums

    @property
    def x(self) -> exp.Expression:
        return exp.column(self.alias)

    @property
    def middle(self) -> exp.Expression:
        if not isinstance(self.near, Mapping):
            return exp.Literal.number(repr(self.near))
        cases = [exp.If(this=exp.convert(label), true=exp.Literal.number(repr(v))) for label, v in self.near.items()]
        return exp.Case(this=exp.column("y"), ifs=cases, default=exp.Literal.number("0.0"))

    @property
    def read(self) -> exp.Expression:
        """The value as aggregates want it: NaN, which they would count, is missing."""
        if not self._is_float or not (self.nan or self.is_level):
            return self.value
        nan = exp.Anonymous(this="isnan", expressions=[exp.column(self.name, quoted=True)])
        return exp.Case(ifs=[exp.If(this=exp.Not(this=nan), true=self.value)])

    @property
    def value(self) -> exp.Expression:
        """The value as the model wants it: a level, or a double; times and dates are days."""
        raw, kind = exp.column(self.name, quoted=True), self.type.upper()
        if self.is_level and not self._is_float:
            plain = kind in ("VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP") or "INT" in kind
            return raw if plain else exp.cast(raw, "DOUBLE" if kind.startswith("DECIMAL") else "TEXT")
        if kind in ("DATE", "INTERVAL") or kind.startswith("TIME"):
            seconds = exp.Anonymous(this="epoch", expressions=[raw])
            return exp.Div(this=seconds, expression=exp.Literal.number("86400.0"))
        return _double(raw)

    @property
    def _is_float(self) -> bool:
        return self.type.upper() in ("DOUBLE", "FLOAT", "REAL")


def _double(value: exp.Expression) -> Any:
    return exp.cast(value, "DOUBLE")


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _total(value: exp.Expression, column: Column) -> exp.Expression:
    """The (weighted) sum of a value, with compensated summation."""
    if column.weight is None:
        return _call("fsum", value)
    return _call("fsum", exp.Mul(this=exp.column(column.weight), expression=exp.Paren(this=value)))


def _weight_present(value: exp.Expression, column: Column) -> exp.Expression:
    """The weight of the rows where a value is present."""
    if column.weight is None:
        return exp.Count(this=value)
    present = exp.Not(this=exp.Is(this=value, expression=exp.Null()))
    return exp.Filter(this=_call("fsum", exp.column(column.weight)), expression=exp.Where(this=present))


class OfMoments:
    """Weight, mean and variance; with weights, sums around a value near the middle."""

    @staticmethod
    def ask(column: Column, spec: Spec) -> list[exp.Expression]:
        x = _transformed(column, spec)
        low = [exp.Min(this=column.x)] if spec.transform else []
        if column.weight is None:
            return [exp.Count(this=x), _call("favg", x), exp.VariancePop(this=x), *low]
        gap = exp.Paren(this=exp.Sub(this=x, expression=column.middle))
        square = exp.Mul(this=gap, expression=gap.copy())
        middle = exp.Min(this=column.middle)
        return [_weight_present(x, column), _total(gap, column), _total(square, column), middle, *low]

    @staticmethod
    def build(part: Part, columns: Sequence[Column], cells: Sequence[Rows]) -> Moments:
        n, mean, m2 = (np.zeros((len(cells[0]), len(columns))) for _ in range(3))
        for j, (column, rows) in enumerate(zip(columns, cells, strict=True)):
            _check_low(part, column, rows, -1)
            first = _numbers(rows, 0), _numbers(rows, 1), _numbers(rows, 2)
            n[:, j] = first[0]
            if column.weight is None:
                mean[:, j], m2[:, j] = first[1], first[2] * first[0]
            else:
                gap = np.divide(first[1], first[0], out=np.zeros(len(rows)), where=first[0] > 0)
                mean[:, j] = np.where(first[0] > 0, _numbers(rows, 3) + gap, 0.0)
                m2[:, j] = np.maximum(first[2] - first[0] * gap * gap, 0.0)
        return Moments(n, mean, m2)


class OfSums:
    """Weight and total, the smallest value, and the sum of log x! where it is asked for."""

    @staticmethod
    def ask(column: Column, spec: Spec) -> list[exp.Expression]:
        x = _transformed(column, spec)
        asked = [_weight_present(x, column), _total(x, column), exp.Min(this=column.x)]
        if spec.log_factorial:
            whole = exp.Greatest(
                this=column.x, expressions=[exp.Literal.number("0")]
            )  # a negative value is an error later
            asked.append(_total(_call("lgamma", exp.Add(this=whole, expression=exp.Literal.number("1"))), column))
        return asked

    @staticmethod
    def build(part: Part, columns: Sequence[Column], cells: Sequence[Rows]) -> Sums:
        n, total, log_factorial = (np.zeros((len(cells[0]), len(columns))) for _ in range(3))
        for j, (column, rows) in enumerate(zip(columns, cells, strict=True)):
            _check_low(part, column, rows, 2)
            n[:, j], total[:, j] = _numbers(rows, 0), _numbers(rows, 1)
            if part.spec.log_factorial:
                log_factorial[:, j] = _numbers(rows, 3)
        return Sums(n, total, log_factorial)


class OfThreshold:
    """Weight present, and weight above the threshold."""

    @staticmethod
    def ask(column: Column, spec: Spec) -> list[exp.Expression]:
        above = exp.Case(
            ifs=[
                exp.If(
                    this=exp.GT(this=column.x, expression=exp.Literal.number(repr(spec.threshold))),
                    true=exp.Literal.number("1"),
                )
            ]
        )
        return [_weight_present(column.x, column), _weight_present(above, column)]

    @staticmethod
    def build(part: Part, columns: Sequence[Column], cells: Sequence[Rows]) -> Levels:
        pairs = [np.stack([_numbers(rows, 0) - _numbers(rows, 1), _numbers(rows, 1)], axis=1) for rows in cells]
        return Levels(np.concatenate(pairs, axis=1), np.arange(0, 2 * len(columns) + 1, 2, dtype=np.intp))


class OfLevels:
    """A histogram of the values: a mapping from level to count."""

    @staticmethod
    def ask(column: Column, spec: Spec) -> list[exp.Expression]:
        return [_call("histogram", column.x)]

    @staticmethod
    def found(rows: Rows) -> Labels:
        return Labels.of([key for row in rows for key in (row[0] or ())])

    @staticmethod
    def build(part: Part, columns: Sequence[Column], cells: Sequence[Rows]) -> Levels:
        sizes = [len(levels) for levels in part.levels]
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.intp)]).astype(np.intp)
        counts = np.zeros((len(cells[0]), offsets[-1]))
        for j, rows in enumerate(cells):
            for g, row in enumerate(rows):
                if row[0]:
                    at = offsets[j] + part.levels[j].encode(list(row[0]))
                    counts[g, at] = list(row[0].values())
        return Levels(counts, offsets)


def asker(part: Part) -> Any:
    """The aggregates of a part's tally kind."""
    if callable(part.spec.transform):
        raise InputTypeError(f"{part.event} tallies a Python function of the values, which SQL cannot say")
    if part.spec.kind == "levels":
        return OfLevels if part.has_levels else OfThreshold
    return {"moments": OfMoments, "sums": OfSums}[part.spec.kind]


def _transformed(column: Column, spec: Spec) -> exp.Expression:
    if spec.transform is None:
        return column.x
    positive = exp.GT(this=column.x, expression=exp.Literal.number("0"))  # ln of less is an error found in the minimum
    return exp.Case(ifs=[exp.If(this=positive, true=_LOGS[str(spec.transform)](this=column.x))])


def _check_low(part: Part, column: Column, rows: Rows, at: int) -> None:
    if not (part.spec.nonnegative or part.spec.transform):
        return
    lows = [row[at] for row in rows if row[at] is not None]
    if lows and (min(lows) < 0 or (part.spec.transform and min(lows) <= 0)):
        need = "> 0" if part.spec.transform else ">= 0"
        raise InputError(
            f"column {column.name!r}: {min(lows):g} cannot come from {part.event.name}, which needs values {need}; "
            f"pass --event {column.name}=gaussian (events={{...}}), say"
        )


def _numbers(rows: Rows, at: int) -> Floats:
    return np.array([0.0 if row[at] is None else row[at] for row in rows], np.float64)
