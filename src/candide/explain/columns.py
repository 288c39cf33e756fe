"""Columns of a model, from its counts: given the class, association with it, typical values, prototypes.

Three measures of association: *evidence* is the log Bayes factor of one distribution per class against one for all
classes; below zero the column is better described without the class. Per row it is capped at the entropy of the
classes. *Information* is the mutual information of the column and the class in the counts, which is never negative.
The third is the classical *test*.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, overload

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.encoding.tokens import format_key
from candide.errors import unknown_name_error
from candide.explain.terms import cell_counts, expected_values, median_cell_value
from candide.explain.words import top_words
from candide.formatting import Column
from candide.model.counts import ModelCounts
from candide.model.feature_selection import choose_columns, class_entropy, evidence_gain, scoring_units, total_weight
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_MAX_PRINTED = 20  # scores printed before "and more"


@dataclass(frozen=True)
class ConditionalTable:
    """One column given the class: the names of its rows, and a value for every (row, class)."""

    column: Name
    event: str
    row_names: list[str]
    values: Floats  # (rows, classes)


def iterate_conditionals(fitted: FittedModel, max_levels: int = 12) -> Iterator[ConditionalTable]:
    """Yield every column given the class: level probabilities, means and deviations, or proportions of words."""
    class_prior, parts = np.exp(fitted.model.log_prior), fitted.plan.parts
    tallies: Any = fitted.selected_counts.tallies if fitted.has_counts else [None] * len(parts)
    for part, weighted, tally in zip(parts, fitted.model.distributions, tallies, strict=True):
        distribution: Any = weighted.base_and_weights[0]
        for j, column in enumerate(() if part.is_joint_term else part.columns):
            if part.block_kind == "documents" and tally is not None:  # only counts tell which words matter
                rows, values = _top_word_proportions(fitted, part, distribution, tally, max_levels)
            else:
                names, frequencies = tuple[Any, ...](), None
                if part.block_kind == "codes":
                    encoding = part.encodings[j]
                    is_text = encoding.is_read_as_text
                    names = part.levels[j].values if is_text else encoding.level_names(column in fitted.dates)
                    if tally is None:
                        levels = slice(*distribution.offsets[j : j + 2])
                        frequencies = distribution.parameters()["probability"][:, levels].T @ class_prior
                    else:
                        frequencies = tally.pool().select_features(np.array([j])).counts[0]
                rows, values = distribution.describe(j, part.columns, names, frequencies, max_levels)
            yield ConditionalTable(column, part.event.name, rows, values)


def _top_word_proportions(
    fitted: FittedModel, part: PlanPart, distribution: Any, tally: Any, limit: int
) -> tuple[list[str], Floats]:
    """Return the top words of each class and their proportions in each: of the distribution, or else as counted."""
    n_words = max(1, limit // max(1, len(fitted.labels)))
    top = (top_words(fitted, part.columns[0], label, n_words) for label in fitted.labels.values)
    words = list(dict.fromkeys(word.word for of_class in top for word in of_class))
    n_tokens = 0 if distribution.tokens.bits else distribution.cells.n_tokens
    places = {format_key(distribution.cells.key(i), distribution.tokens): i for i in range(n_tokens)}
    if places.keys() >= set(words):
        p = distribution.token_probabilities(np.array([places[word] for word in words], np.intp))
        if p is not None:
            return words, p
    counts = np.array([tally.class_counts(word)[0] for word in words]).reshape(-1, len(fitted.labels))
    return words, counts / np.maximum(tally.length[:, 0], 1e-300)


@dataclass(frozen=True)
class FeatureScore:
    """Association of a column, or of columns modelled together, with the class. Undefined measures are None."""

    column: Name | tuple[Name, ...]
    event: str
    evidence: float | None  # the log Bayes factor of "depends on the class"
    evidence_per_row: float | None  # per unit of row weight, at most the entropy of the classes
    information: float | None
    test: str  # "t" | "F" | "chi2" | "G" | ""
    statistic: float | None
    p_value: float | None
    is_selected: bool = True  # whether the model uses it


FEATURE_TABLE = (
    Column("column", "column", formatting.format_column),
    Column("event", "event", is_text=True, is_optional=True),
    Column("evidence", "evidence", ".2f"),
    Column("per row", "evidence_per_row", ".3f", is_optional=True),
    Column("information", "information", ".3f"),
    Column("test", lambda s: None if s.statistic is None else f"{s.test} = {s.statistic:.2f}", is_optional=True),
    Column("p", "p_value", lambda p: f"{p:.3g}" if p else "< 1e-300"),
    Column("", lambda s: "" if s.is_selected else "not selected"),
)


@dataclass(frozen=True)
class FeatureScores(Sequence[FeatureScore]):
    """The scores of all columns, the strongest first. Prints as a table; ``to_dict`` makes any data frame."""

    scores: tuple[FeatureScore, ...]

    def __len__(self) -> int:
        return len(self.scores)

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
        return {field.name: [getattr(score, field.name) for score in self.scores] for field in fields(FeatureScore)}

    def __str__(self) -> str:
        return "\n".join(formatting.table_lines(FEATURE_TABLE, self.scores, _MAX_PRINTED))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        first = self.scores[:_MAX_PRINTED]
        columns, rows = formatting.table_rows(FEATURE_TABLE, first)
        more = f"... and {len(self.scores) - _MAX_PRINTED:,} more" if len(self.scores) > _MAX_PRINTED else ""
        values = (s.information if s.evidence_per_row is None else s.evidence_per_row for s in first)
        cells, bars = [[column.heading for column in columns], *rows], [max(value or 0.0, 0.0) for value in values]
        return formatting.render_html_table("Association with the class", cells, 2, bars, more)


def score_features(counts: ModelCounts, priors: Any = None, select: int | str | None = None) -> FeatureScores:
    """Return the score of every column, the strongest first; ``select`` marks the columns it selects."""
    used = set(choose_columns(counts, select, priors))
    n_rows, entropy, scores = total_weight(counts), class_entropy(counts), list[FeatureScore]()
    for part, tally in zip(counts.plan.parts, counts.tallies, strict=True):
        if part.is_joint_term:
            continue
        gain, units = evidence_gain(part, tally, priors), scoring_units(part)
        evidence = [None] * len(units) if gain is None else gain.tolist()
        for unit, value, measures in zip(units, evidence, _measures(part, tally, len(units)), strict=True):
            is_used = (unit[0] if isinstance(unit, tuple) else unit) in used
            per_row = None if value is None else min(value / n_rows, entropy)
            scores.append(FeatureScore(unit, part.event.name, value, per_row, *measures, is_used))

    def strength(score: FeatureScore) -> float:
        value = score.information if score.evidence is None else score.evidence / n_rows
        return -np.inf if value is None else value

    return FeatureScores(tuple(sorted(scores, key=strength, reverse=True)))


def score_model_features(fitted: FittedModel) -> FeatureScores:
    return score_features(fitted.resolved_counts, fitted.settings.param_priors, fitted.settings.select)


def _measures(part: PlanPart, tally: Any, n_units: int) -> list[tuple[float | None, str, float | None, float | None]]:
    """Return information, name of the test, statistic and p-value of each unit."""
    if n_units < len(part.columns):
        return [(None, "", None, None)] * n_units
    information, test = part.event.information(tally), part.event.association_test(tally)
    values = [None] * n_units if information is None else information.tolist()
    if test is None:
        return [(value, "", None, None) for value in values]
    rows = zip(values, test.statistic.tolist(), test.p_value.tolist(), strict=True)
    return [(value, test.name, *((None, None) if t != t else (t, p))) for value, t, p in rows]


def find_typical_values(fitted: FittedModel) -> dict[Name, Any]:
    """Return a value for each column of which one is known; text has none, nor have levels without counts."""
    typical: dict[Name, Any] = {}
    for i, (part, distribution) in enumerate(zip(fitted.plan.parts, fitted.model.distributions, strict=True)):
        if not part.event.has_density or part.block_kind == "documents":
            continue
        has_levels = distribution.level_scores() is not None
        for j, (name, encoding) in enumerate(zip(part.columns, part.encodings, strict=True)):
            if not has_levels:
                drawn = expected_values(fitted, distribution, j) if part.block_kind == "numbers" else ()
                if len(drawn):
                    typical.setdefault(name, float(np.median(drawn)))
            elif (counts := cell_counts(fitted, i, j)) is not None and counts.any():
                if encoding.is_read_as_text:
                    values = encoding.labels.values  # type: ignore[attr-defined]
                    value = values[int(counts[: len(values)].argmax())]
                else:
                    value = median_cell_value(fitted, name, encoding, counts)  # type: ignore[arg-type]
                if value is not None:
                    typical.setdefault(name, value)
    return typical


def prototype_rows(fitted: FittedModel) -> dict[Any, list[Any]]:
    """Return the prototypes in the units of the columns, as columns of values; empty without a prototype term."""
    for part, distribution in zip(fitted.plan.parts, fitted.model.distributions, strict=True):
        if part.prototypes is None:
            continue
        prototypes, ends = part.prototypes.prototypes, np.cumsum([0, *(e.width for e in part.encodings)])
        scores = distribution.contributions(part.prototypes.read(prototypes))[:, :, 0]
        ascending = np.sort(scores, axis=1)
        columns: dict[Any, list[Any]] = {"prototype": list(range(1, len(prototypes) + 1))}
        for name, encoding, start in zip(part.columns, part.encodings, ends, strict=False):
            columns[name] = encoding.decode(prototypes[:, start]).tolist()
        columns["predicted_class"] = [fitted.labels.values[c] for c in scores.argmax(axis=1)]
        margin = ascending[:, -1] - ascending[:, -2] if scores.shape[1] > 1 else np.zeros(len(scores))
        return {**columns, "log_odds": margin.tolist()}
    return {}
