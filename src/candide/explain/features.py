"""Feature scores: how strongly each column is associated with the class, from the tallies alone.

Three measures: *evidence* is the log Bayes factor of one distribution per class against one for all classes; below zero
the column is better described without the class. Per row it is capped at the entropy of the classes. *Information* is
the mutual information of the column and the class in the counts, which is never negative. The third is the classical
*test*.

>>> from candide.demo import garden
>>> print(score_features(garden())[:3])
column     event     evidence  per row  information           test          p
leaf_mm    gaussian    362.87    1.099        0.815     F = 985.22  8.08e-132
height_cm  gaussian    215.36    0.718        0.615     F = 496.09    2.1e-95
flowers    poisson     146.12    0.487        0.346  chi2 = 288.24   2.57e-63
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from candide import formatting
from candide.data.table import Name
from candide.errors import unknown_name_error
from candide.formatting import Column
from candide.model.counts import ModelCounts
from candide.model.feature_selection import choose_columns, class_entropy, evidence_gain, scoring_units, total_weight
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_MAX_PRINTED = 20  # scores printed before "and more"


@dataclass(frozen=True)
class FeatureScore:
    """Association of a column, or of columns modelled together, with the class. Undefined measures are None."""

    column: Name | tuple[Name, ...]
    event: str
    evidence: float | None  # the log Bayes factor of "depends on the class"
    evidence_per_row: float | None  # per unit of row weight, at most the entropy of the classes
    information: float | None  # nats
    test: str  # "t" | "F" | "chi2" | "G" | ""
    statistic: float | None
    p_value: float | None
    is_selected: bool = True  # whether the model uses it


def _format_p_value(p: float) -> str:
    return f"{p:.3g}" if p else "< 1e-300"


FEATURE_TABLE = (
    Column("column", "column", formatting.format_column),
    Column("event", "event", is_text=True, is_optional=True),
    Column("evidence", "evidence", ".2f"),
    Column("per row", "evidence_per_row", ".3f", is_optional=True),
    Column("information", "information", ".3f"),
    Column("test", lambda s: None if s.statistic is None else f"{s.test} = {s.statistic:.2f}", is_optional=True),
    Column("p", "p_value", _format_p_value),
    Column("", lambda s: "" if s.is_selected else "not selected"),
)


@dataclass(frozen=True)
class FeatureScores(Sequence[FeatureScore]):
    """The scores of all columns, the strongest first. Prints as a table; ``to_dict`` makes any data frame."""

    scores: tuple[FeatureScore, ...]

    def __len__(self) -> int:
        return len(self.scores)

    def __iter__(self) -> Iterator[FeatureScore]:
        return iter(self.scores)

    @overload
    def __getitem__(self, at: int) -> FeatureScore: ...
    @overload
    def __getitem__(self, at: slice) -> "FeatureScores": ...
    def __getitem__(self, at: int | slice) -> "FeatureScore | FeatureScores":
        return FeatureScores(self.scores[at]) if isinstance(at, slice) else self.scores[at]

    def for_column(self, column: Name | tuple[Name, ...]) -> FeatureScore:
        """Return the score of one column."""
        for score in self.scores:
            if score.column == column:
                return score
        raise unknown_name_error("column", column, [score.column for score in self.scores])

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns of values: ``pandas.DataFrame(scores.to_dict())``, or the same of polars or pyarrow."""
        names = list(FeatureScore.__dataclass_fields__)
        return {name: [getattr(score, name) for score in self.scores] for name in names}

    def __str__(self) -> str:
        return "\n".join(formatting.table_lines(FEATURE_TABLE, self.scores, _MAX_PRINTED))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        first = self.scores[:_MAX_PRINTED]
        columns, rows = formatting.table_rows(FEATURE_TABLE, first)
        more = f"... and {len(self.scores) - _MAX_PRINTED:,} more" if len(self.scores) > _MAX_PRINTED else ""
        bars = [s.information if s.evidence_per_row is None else s.evidence_per_row for s in first]
        cells = [[column.heading for column in columns], *rows]
        return formatting.render_html_table(
            "Association with the class", cells, 2, [max(v or 0.0, 0.0) for v in bars], more
        )


def score_features(counts: ModelCounts, priors: Any = None, select: int | str | None = None) -> FeatureScores:
    """Return the score of every column, the strongest first; ``select`` marks the columns it selects."""
    used = set(choose_columns(counts, select, priors))
    rows, most, found = total_weight(counts), class_entropy(counts), list[FeatureScore]()
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        if part.is_joint_term:
            continue
        nats, each = evidence_gain(part, tally, priors), scoring_units(part)
        evidence = [None] * len(each) if nats is None else nats.tolist()
        for unit, one, measures in zip(each, evidence, _measures(part, tally, len(each)), strict=True):
            is_used = (unit[0] if isinstance(unit, tuple) else unit) in used
            per_row = None if one is None else min(one / rows, most)
            found.append(FeatureScore(unit, part.event.name, one, per_row, *measures, is_used))

    def strength(one: FeatureScore) -> float:
        """Return the evidence per row, or where there is none the information."""
        known = one.information if one.evidence is None else one.evidence / rows
        return -np.inf if known is None else known

    return FeatureScores(tuple(sorted(found, key=strength, reverse=True)))


def score_model_features(fitted: FittedModel) -> FeatureScores:
    """Return the scores of all columns that a model counted, selected or not."""
    return score_features(fitted.resolved_counts, fitted.settings.param_priors, fitted.settings.select)


def _measures(part: PlanPart, tally: Any, n_units: int) -> list[tuple[float | None, str, float | None, float | None]]:
    """Return information, name of the test, statistic and p-value of each unit."""
    if n_units < len(part.columns):
        return [(None, "", None, None)] * n_units
    information, test = part.event.information(tally), part.event.association_test(tally)
    nats = [None] * n_units if information is None else information.tolist()
    if test is None:
        return [(one, "", None, None) for one in nats]
    pairs = zip(nats, test.statistic.tolist(), test.p_value.tolist(), strict=True)
    return [(one, test.name, *((None, None) if t != t else (t, p))) for one, t, p in pairs]
