"""Features: how much each column tells of the class, from the tallies alone, and the choice of the best ones.

Three measures stand side by side. *Evidence*: the log marginal likelihood of the column with a distribution for each
class, over that with one for all: what knowing the class saves in describing the column after the extra parameters
are paid for. Below zero the column is better described without the class; per row it is said to be the entropy of the
classes at most, for there is no more to tell. *Information*: how much the column lowers the uncertainty about the
class, as the counts have it, which is never negative. And the classical *test*.

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
from candide.model.counts import ModelCounts
from candide.model.feature_selection import choose_columns, class_entropy, evidence_gain, scoring_units, total_weight
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_MAX_PRINTED = 20  # scores printed before "and more"


@dataclass(frozen=True)
class FeatureScore:
    """What one column, or a group of columns modelled together, tells of the class. None where there is no measure."""

    column: Name | tuple[Name, ...]
    event: str
    evidence: float | None  # nats: the log of the Bayes factor for "depends on the class"
    evidence_per_row: float | None  # the same divided by the weight of the rows; at most the entropy of the classes
    information: float | None  # nats
    test: str  # "t" | "F" | "chi2" | "G" | ""
    statistic: float | None
    p_value: float | None
    is_selected: bool = True  # whether the model uses it

    def table_cells(self) -> list[str]:
        """Column, event model, evidence, the same per row, information, test and p-value, for a person."""
        figures = [(self.evidence, ".2f"), (self.evidence_per_row, ".3f"), (self.information, ".3f")]
        test = "" if self.statistic is None else f"{self.test} = {self.statistic:.2f}"
        p = "" if self.p_value is None else f"{self.p_value:.3g}" if self.p_value else "< 1e-300"
        nats = ["" if value is None else f"{value:{form}}" for value, form in figures]
        return [formatting.format_column(self.column), self.event, *nats, test, p]


@dataclass(frozen=True)
class FeatureScores(Sequence[FeatureScore]):
    """The scores of all columns, strongest first. Prints as a table; ``to_dict`` makes any data frame."""

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
        """The score of one column."""
        for score in self.scores:
            if score.column == column:
                return score
        raise unknown_name_error("column", column, [score.column for score in self.scores])

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of values: ``pandas.DataFrame(scores.to_dict())``, or the same of polars or pyarrow."""
        names = list(FeatureScore.__dataclass_fields__)
        return {name: [getattr(score, name) for score in self.scores] for name in names}

    def __str__(self) -> str:
        some = not all(score.is_selected for score in self.scores)
        heads = ["column", "event", "evidence", "per row", "information", "test", "p", *(["chosen"] if some else [])]
        rows = [
            heads,
            *(
                [*s.table_cells(), *(["yes" if s.is_selected else ""] if some else [])]
                for s in self.scores[:_MAX_PRINTED]
            ),
        ]
        more = [f"... and {len(self.scores) - _MAX_PRINTED:,} more"] if len(self.scores) > _MAX_PRINTED else []
        return "\n".join([*formatting.align_columns(rows, n_text_columns=2), *more])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        some = self.scores[:_MAX_PRINTED]
        heads = ["column", "event", "evidence", "per row", "information", "test", "p"]
        more = f"... and {len(self.scores) - _MAX_PRINTED:,} more" if len(self.scores) > _MAX_PRINTED else ""
        nats = [one.information if one.evidence_per_row is None else one.evidence_per_row for one in some]
        rows = [heads, *(one.table_cells() for one in some)]
        return formatting.render_html_table(
            "How much each column tells", rows, 2, [max(v or 0.0, 0.0) for v in nats], more
        )


def score_features(counts: ModelCounts, priors: Any = None, select: int | str | None = None) -> FeatureScores:
    """Every column's score, strongest first; ``select`` marks those that it chooses."""
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
        """Nats a row: the evidence, or where there is none the information."""
        known = one.information if one.evidence is None else one.evidence / rows
        return -np.inf if known is None else known

    return FeatureScores(tuple(sorted(found, key=strength, reverse=True)))


def score_model_features(fitted: FittedModel) -> FeatureScores:
    """The scores of all columns that a model counted, chosen or not."""
    return score_features(fitted.resolved_counts, fitted.settings.param_priors, fitted.settings.select)


def _measures(part: PlanPart, tally: Any, n_units: int) -> list[tuple[float | None, str, float | None, float | None]]:
    """Information, name of the test, statistic and p-value of each unit."""
    if n_units < len(part.columns):
        return [(None, "", None, None)] * n_units
    information, test = part.event.information(tally), part.event.association_test(tally)
    nats = [None] * n_units if information is None else information.tolist()
    if test is None:
        return [(one, "", None, None) for one in nats]
    pairs = zip(nats, test.statistic.tolist(), test.p_value.tolist(), strict=True)
    return [(one, test.name, *((None, None) if t != t else (t, p))) for one, t, p in pairs]
