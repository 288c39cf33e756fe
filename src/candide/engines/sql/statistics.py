"""Statistics: what each tally kind asks of SQL, and how the answers become the tally.

Written once as sqlglot expressions; a :class:`Dialect` spells what databases spell differently. A statistic knows tally
kinds and encodings, never event models.

>>> from candide.events import Gaussian
>>> from candide.engines.sql.dialects.duckdb import DuckDBDialect
>>> part, age = Part(Gaussian(), ("age",)), Column("age", "DOUBLE", DuckDBDialect(), alias="f0")
>>> {key: e.sql("duckdb") for key, e in OfMoments().ask(part, [age], age.dialect).items()}
{'f0_n': 'COUNT(f0)', 'f0_mean': 'FAVG(f0)', 'f0_variance': 'VAR_POP(f0)'}
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from sqlglot import exp

from candide.encode import Coded
from candide.engines.sql.column import Column
from candide.engines.sql.dialect import Dialect, Expr, number
from candide.errors import InputError
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.labels import Labels
from candide.tally import Levels, Moments, Spec, Sums, Tally
from candide.tally.base import ratio

Answers = Mapping[str, Sequence[Any]]  # key of an expression -> its value in each group (class, fold)


class Statistic(Protocol):
    """The SQL side of a tally kind."""

    def ask(self, part: Part, columns: Sequence[Column], dialect: Dialect) -> dict[str, Expr]:
        """What to select of each group, by a key of its own."""
        ...

    def build(self, part: Part, columns: Sequence[Column], answers: Answers) -> Tally:
        """The tally, a row a group."""
        ...

    def far(self, tally: Any, j: int, middle: float) -> Floats | None:
        """The mean of a column in each group, where the middle lies so far from it that digits were lost."""
        return None


class OfMoments(Statistic):
    """Weight, mean and variance; else, and with weights, sums around a value near the middle."""

    def ask(self, part: Part, columns: Sequence[Column], dialect: Dialect) -> dict[str, Expr]:
        out: dict[str, Expr] = {}
        for column in columns:
            x, at = _tallied(column, part.spec), column.alias
            out[f"{at}_n"] = column.present(x)
            mean, variance = dialect.mean(x), dialect.variance(x)
            if column.weight is None and not column.around and mean is not None and variance is not None:
                out |= {f"{at}_mean": mean, f"{at}_variance": variance}
            else:
                gap = exp.Paren(this=exp.Sub(this=x, expression=column.middle))
                square = exp.Mul(this=gap, expression=gap.copy())
                out |= {f"{at}_gap": column.total(gap), f"{at}_square": column.total(square)}
                out[f"{at}_middle"] = exp.Min(this=column.middle)
            out |= _low(part, column)
        return out

    def build(self, part: Part, columns: Sequence[Column], answers: Answers) -> Moments:
        each = []
        for column in columns:
            at = column.alias
            _check_low(part, column, answers)
            n = _numbers(answers[f"{at}_n"])
            if f"{at}_mean" in answers:
                each.append((n, _numbers(answers[f"{at}_mean"]), _numbers(answers[f"{at}_variance"]) * n))
                continue
            gap = ratio(_numbers(answers[f"{at}_gap"]), n)
            mean = np.where(n > 0, _numbers(answers[f"{at}_middle"]) + gap, 0.0)
            with np.errstate(invalid="ignore"):  # of an infinity, which is refused by its mean
                each.append((n, mean, np.maximum(_numbers(answers[f"{at}_square"]) - n * gap * gap, 0.0)))
        return Moments(*(np.stack(state, axis=1) for state in zip(*each, strict=True)))

    def far(self, tally: Moments, j: int, middle: float) -> Floats | None:
        lost = (tally.mean[:, j] - middle) ** 2 * tally.n[:, j] > 1e5 * tally.m2[:, j]
        return tally.mean[:, j] if lost.any() else None


class OfSums(Statistic):
    """Weight and total, the smallest value, and the sum of log x! where it is kept."""

    def ask(self, part: Part, columns: Sequence[Column], dialect: Dialect) -> dict[str, Expr]:
        out: dict[str, Expr] = {}
        for column in columns:
            x, at = _tallied(column, part.spec), column.alias
            out |= {f"{at}_n": column.present(x), f"{at}_total": column.total(x), **_low(part, column)}
            if "log_factorial" in part.spec.keep:  # a negative value is an error later
                whole = exp.Add(this=dialect.greatest(column.x, 0), expression=number(1))
                out[f"{at}_log_factorial"] = column.total(dialect.log_gamma(whole))
        return out

    def build(self, part: Part, columns: Sequence[Column], answers: Answers) -> Sums:
        for column in columns:
            _check_low(part, column, answers)
        n, total = (_stacked(columns, key, answers) for key in ("n", "total"))
        kept = "log_factorial" in part.spec.keep
        base = _stacked(columns, "log_factorial", answers) if kept else np.zeros(n.shape)
        return Sums(n, total, base, part.spec.amounts)


class OfThreshold(Statistic):
    """Weight present, and weight above the threshold."""

    def ask(self, part: Part, columns: Sequence[Column], dialect: Dialect) -> dict[str, Expr]:
        out: dict[str, Expr] = {}
        for column in columns:
            above = exp.GT(this=column.x, expression=number(part.spec.threshold))
            counted = exp.Case(ifs=[exp.If(this=above, true=number(1))])
            out |= {f"{column.alias}_n": column.present(column.x), f"{column.alias}_above": column.present(counted)}
        return out

    def build(self, part: Part, columns: Sequence[Column], answers: Answers) -> Levels:
        n, above = (_stacked(columns, key, answers) for key in ("n", "above"))
        counts = np.stack([n - above, above], axis=2).reshape(len(n), -1)
        return Levels(counts, np.arange(0, 2 * len(columns) + 1, 2, dtype=np.intp))


class OfLevels(Statistic):
    """A histogram of the values: a mapping from level to weight, by the database or from a query of its own."""

    def ask(self, part: Part, columns: Sequence[Column], dialect: Dialect) -> dict[str, Expr]:
        return {levels_key(column): dialect.histogram(column.x) for column in columns}

    def build(self, part: Part, columns: Sequence[Column], answers: Answers) -> Levels:
        out = Levels.empty(len(answers[levels_key(columns[0])]), part.spec)
        for j, (column, encoding) in enumerate(zip(columns, part.encodings, strict=True)):
            for g, met in enumerate(answers[levels_key(column)]):
                if met:
                    found = list(met) if column.is_level else Coded(np.array(list(met), np.int32))
                    np.add.at(out.counts[g], out.offsets[j] + encoding.apply(found), list(met.values()))
        return out


def levels_key(column: Column) -> str:
    """Where the levels of a column are found among the answers."""
    return f"{column.alias}_levels"


def levels_met(column: Column, answers: Answers) -> Labels:
    """The levels of a column in all groups."""
    return Labels.of([level for met in answers[levels_key(column)] for level in (met or ())])


_STATISTICS: dict[str, Statistic] = {"moments": OfMoments(), "sums": OfSums(), "levels": OfLevels()}


def statistic(part: Part) -> Statistic:
    """The statistic of a part's tally kind."""
    return OfThreshold() if part.spec.threshold is not None else _STATISTICS[part.spec.kind]


KINDS = frozenset(_STATISTICS)  # tally kinds that SQL says


def _tallied(column: Column, spec: Spec) -> Expr:
    """What is tallied: the value, or its logarithm; that of a number <= 0 is an error found in the minimum."""
    return spec.encodings[0].sql(column.x, column.dialect)


def _low(part: Part, column: Column) -> dict[str, Expr]:
    """The smallest value, where some are too small."""
    return {f"{column.alias}_low": exp.Min(this=column.x)} if part.encodings[0].bounded else {}


def _check_low(part: Part, column: Column, answers: Answers) -> None:
    lows = [low for low in answers.get(f"{column.alias}_low", ()) if low is not None]
    encoding = part.encodings[0]
    if lows and encoding.outside(np.array(min(lows))):
        raise InputError(
            f"{min(lows):g} cannot come from {part.event.name}, which needs {encoding.needs}",
            column=column.name,
            value=min(lows),
            remedy=f"pass --event {column.name}=gaussian (events={{...}}), say",
        )


def _stacked(columns: Sequence[Column], key: str, answers: Answers) -> Floats:
    return np.stack([_numbers(answers[f"{column.alias}_{key}"]) for column in columns], axis=1)


def _numbers(values: Sequence[Any]) -> Floats:
    return np.array([0.0 if value is None else value for value in values], np.float64)
