"""Statistics: which SQL aggregates give each tally kind, and how their answers become the tally.

A statistic knows tally kinds and encodings, never event models.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from sqlglot import exp

from candide.data.blocks import Floats
from candide.data.labels import Labels
from candide.data.table import EncodedColumn
from candide.engines.sql.dialect import Dialect, Expr, SourceColumn, call_function, number_literal
from candide.errors import InputError
from candide.model.plan import PlanPart
from candide.tally import LevelTally, Moments, Sums, Tally, TallySpec
from candide.tally.base import divide_or_zero

Answers = Mapping[str, Sequence[Any]]  # key of an expression -> its value in each group (class, fold)


class Statistic(Protocol):
    """The SQL side of a tally kind."""

    def select_expressions(self, part: PlanPart, columns: Sequence[SourceColumn], dialect: Dialect) -> dict[str, Expr]:
        """What to select of each group, by a key of its own."""

    def build_tally(self, part: PlanPart, columns: Sequence[SourceColumn], answers: Answers) -> Tally:
        """The tally, a row a group."""

    def distant_means(self, tally: Any, j: int, middle: float) -> Floats | None:
        """The mean of a column in each group, where the middle lies so far from it that digits were lost."""
        return None


class MomentStatistic(Statistic):
    """Weight, mean and variance; else, and with weights, sums around a value near the middle."""

    def select_expressions(self, part: PlanPart, columns: Sequence[SourceColumn], dialect: Dialect) -> dict[str, Expr]:
        out: dict[str, Expr] = {}
        for column in columns:
            x, at = _tallied_value(column, part.spec), column.alias
            out[f"{at}_n"] = column.present_weight(x)
            mean = dialect.call_if_present(dialect.mean_function, x)
            variance = dialect.call_if_present(dialect.variance_function, x)
            if column.weight is None and not column.has_centered_sums and mean is not None and variance is not None:
                out |= {f"{at}_mean": mean, f"{at}_variance": variance}
            else:
                gap = exp.Paren(this=exp.Sub(this=x, expression=column.middle))
                out |= {f"{at}_gap": column.weighted_sum(gap), f"{at}_square": column.weighted_sum(gap * gap)}
                out[f"{at}_middle"] = exp.Min(this=column.middle)
            out |= _minimum(part, column)
        return out

    def build_tally(self, part: PlanPart, columns: Sequence[SourceColumn], answers: Answers) -> Moments:
        each = []
        for column in columns:
            _check_minimum(part, column, answers)
            n = _read_answers(column, "n", answers)
            if f"{column.alias}_mean" in answers:
                variance = _read_answers(column, "variance", answers)
                each.append((n, _read_answers(column, "mean", answers), variance * n))
                continue
            gap = divide_or_zero(_read_answers(column, "gap", answers), n)
            mean = np.where(n > 0, _read_answers(column, "middle", answers) + gap, 0.0)
            with np.errstate(invalid="ignore"):  # of an infinity, which is rejected by its mean
                each.append((n, mean, np.maximum(_read_answers(column, "square", answers) - n * gap * gap, 0.0)))
        return Moments(*(np.stack(state, axis=1) for state in zip(*each, strict=True)))

    def distant_means(self, tally: Moments, j: int, middle: float) -> Floats | None:
        lost = (tally.mean[:, j] - middle) ** 2 * tally.n[:, j] > 1e5 * tally.m2[:, j]
        return tally.mean[:, j] if lost.any() else None


class SumStatistic(Statistic):
    """Weight and total, the smallest value, and the sum of log x! if the tally has it."""

    def select_expressions(self, part: PlanPart, columns: Sequence[SourceColumn], dialect: Dialect) -> dict[str, Expr]:
        out: dict[str, Expr] = {}
        for column in columns:
            x, at = _tallied_value(column, part.spec), column.alias
            out |= {f"{at}_n": column.present_weight(x), f"{at}_total": column.weighted_sum(x)}
            out |= _minimum(part, column)
            if "log_factorial" in part.spec.extra_sums:  # a negative value is an error later
                whole = exp.Add(this=dialect.greatest(column.x, 0), expression=number_literal(1))
                out[f"{at}_log_factorial"] = column.weighted_sum(dialect.log_gamma(whole))
        return out

    def build_tally(self, part: PlanPart, columns: Sequence[SourceColumn], answers: Answers) -> Sums:
        for column in columns:
            _check_minimum(part, column, answers)
        n, total = (_stack_answers(columns, key, answers) for key in ("n", "total"))
        has_base = "log_factorial" in part.spec.extra_sums
        base = _stack_answers(columns, "log_factorial", answers) if has_base else np.zeros(n.shape)
        return Sums(n, total, base, part.spec.is_non_negative)


class ThresholdStatistic(Statistic):
    """Weight present, and weight above the threshold."""

    def select_expressions(self, part: PlanPart, columns: Sequence[SourceColumn], dialect: Dialect) -> dict[str, Expr]:
        out: dict[str, Expr] = {}
        for column in columns:
            is_above = exp.GT(this=column.x, expression=number_literal(part.spec.threshold))
            above = exp.Case(ifs=[exp.If(this=is_above, true=number_literal(1))])
            out[f"{column.alias}_n"] = column.present_weight(column.x)
            out[f"{column.alias}_above"] = column.present_weight(above)
        return out

    def build_tally(self, part: PlanPart, columns: Sequence[SourceColumn], answers: Answers) -> LevelTally:
        n, above = (_stack_answers(columns, key, answers) for key in ("n", "above"))
        counts = np.stack([n - above, above], axis=2).reshape(len(n), -1)
        return LevelTally(counts, np.arange(0, 2 * len(columns) + 1, 2, dtype=np.intp))


class LevelStatistic(Statistic):
    """A mapping from level to weight, by the database's histogram or from a separate query."""

    def select_expressions(self, part: PlanPart, columns: Sequence[SourceColumn], dialect: Dialect) -> dict[str, Expr]:
        return {levels_key(column): call_function(dialect.histogram_function, column.x) for column in columns}

    def build_tally(self, part: PlanPart, columns: Sequence[SourceColumn], answers: Answers) -> LevelTally:
        out = LevelTally.empty(len(answers[levels_key(columns[0])]), part.spec)
        for j, (column, encoding) in enumerate(zip(columns, part.encodings, strict=True)):
            for g, weights in enumerate(answers[levels_key(column)]):
                if weights:
                    levels = list(weights) if column.is_level else EncodedColumn(np.array(list(weights), np.int32))
                    np.add.at(out.counts[g], out.offsets[j] + encoding.apply(levels), list(weights.values()))
        return out


def levels_key(column: SourceColumn) -> str:
    return f"{column.alias}_levels"


def seen_levels(column: SourceColumn, answers: Answers) -> Labels:
    return Labels.from_values([level for weights in answers[levels_key(column)] for level in (weights or ())])


_STATISTICS: dict[str, Statistic] = {"moments": MomentStatistic(), "sums": SumStatistic(), "levels": LevelStatistic()}


def get_statistic(part: PlanPart) -> Statistic:
    return ThresholdStatistic() if part.spec.threshold is not None else _STATISTICS[part.spec.kind]


SQL_TALLY_KINDS = frozenset(_STATISTICS)  # tally kinds that SQL can count


def _tallied_value(column: SourceColumn, spec: TallySpec) -> Expr:
    """The value, or its logarithm; a number <= 0 that has none is found by the minimum."""
    return spec.encodings[0].sql(column.x, column.dialect)


def _minimum(part: PlanPart, column: SourceColumn) -> dict[str, Expr]:
    return {f"{column.alias}_low": exp.Min(this=column.x)} if part.encodings[0].has_bounds else {}


def _check_minimum(part: PlanPart, column: SourceColumn, answers: Answers) -> None:
    lows = [low for low in answers.get(f"{column.alias}_low", ()) if low is not None]
    encoding = part.encodings[0]
    if lows and encoding.invalid_mask(np.array(min(lows))):
        raise InputError(
            f"{min(lows):g} cannot come from {part.event.name}, which needs {encoding.requirement}",
            column=column.name,
            value=min(lows),
            remedy=f"pass --event {column.name}=gaussian (events={{...}}), for example",
        )


def _stack_answers(columns: Sequence[SourceColumn], key: str, answers: Answers) -> Floats:
    return np.stack([_read_answers(column, key, answers) for column in columns], axis=1)


def _read_answers(column: SourceColumn, key: str, answers: Answers) -> Floats:
    return np.array([0.0 if value is None else value for value in answers[f"{column.alias}_{key}"]], np.float64)
