"""Voices: who speaks in a weighted model, how much each counts, and how far it moves a row. From the counts alone.

The *strength* of a voice is how much it says for one class against another, in nats: the mean over the rows counted,
and over two different classes drawn by their shares, of its weighted term in the one less that in the other, whatever
the sign. Of two classes it is the mean size of the contribution that :mod:`candide.explain.decisions` shows of a row. A
row in which a value is missing counts as 0. Of levels, bins and cells the counts tell how many rows are in each; of
other
laws the rows are those that the law itself expects, drawn with a fixed seed. A column whose values tell nothing of the
class, left with one bin, has no voice of its own: ``silent`` says so.

>>> from candide.demo import garden
>>> plain = list_terms(FittedModel(garden()))
>>> plain["scented"].weight, round(plain["scented"].importance, 2), plain[0].title
(1.0, 0.25, 'leaf_mm')
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.distributions import Distribution
from candide.errors import InputError, unknown_name_error
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_MAX_PRINTED = 20  # voices printed before "and more"
_SAMPLE_ROWS = 1000  # rows, where a law has no levels to count


@dataclass(frozen=True)
class Term:
    """A column, or columns that speak together: its weight, and how much it says. None where that is not known."""

    title: str
    columns: tuple[Name, ...]
    kind: str  # "column", "pair", "triple", or the event model of columns together
    weight: float
    importance: float | None  # nats
    n_cells: int | None = None  # the bins, levels or cells that it tells apart; None where it has none
    part_index: int = 0  # the part of the plan whose law speaks
    feature_index: int = 0  # of that law


@dataclass(frozen=True)
class InactiveTerm:
    """A column without a voice of its own, and why; how many other voices it is heard in."""

    column: Name
    reason: str
    n_joint_terms: int


@dataclass(frozen=True)
class TermList(Sequence[Term]):
    """All voices, strongest first. Prints as a table; ``to_dict`` makes any data frame."""

    terms: tuple[Term, ...]
    inactive: tuple[InactiveTerm, ...] = ()
    training_rows: int | None = None  # that the weights were learned from; None: not kept, or no weights were

    def __len__(self) -> int:
        return len(self.terms)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    @overload
    def __getitem__(self, at: int | str | tuple[Name, ...]) -> Term: ...
    @overload
    def __getitem__(self, at: slice) -> "TermList": ...
    def __getitem__(self, at: int | str | tuple[Name, ...] | slice) -> "Term | TermList":
        """By place, by title ("age x job"), or by columns in any order."""
        if isinstance(at, slice):
            return TermList(self.terms[at], self.inactive, self.training_rows)
        if isinstance(at, int):
            return self.terms[at]
        wanted = set(at) if isinstance(at, tuple) else None
        for one in self.terms:
            if one.title == at or (wanted and len(at) == len(one.columns) and set(one.columns) == wanted):
                return one
        raise unknown_name_error("voice", " x ".join(map(str, at)) if wanted else at, [one.title for one in self.terms])

    def select(self, names: Collection[Name]) -> "TermList":
        """The voices of some columns, or of these titles."""
        some = tuple(one for one in self.terms if one.title in names or not set(one.columns).isdisjoint(names))
        return TermList(some, tuple(one for one in self.inactive if one.column in names), self.training_rows)

    def display_kind(self, one: Term) -> str:
        """The kind of a voice as it is printed: of a column that is in other voices too it is the own term alone."""
        return "own term" if one.kind == "column" and one.columns[0] in self._joint_columns else one.kind

    @cached_property
    def _joint_columns(self) -> frozenset[Name]:
        return frozenset(name for one in self.terms if len(one.columns) > 1 for name in one.columns)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of values: ``pandas.DataFrame(voices.to_dict())``, or the same of polars or pyarrow."""
        names = ("title", "columns", "kind", "weight", "strength", "answers")
        return {name: [getattr(one, name) for one in self.terms] for name in names}

    def _table(self) -> list[list[str]]:
        rows = [
            [one.title, self.display_kind(one), f"{one.weight:.2f}", format_importance(one.importance)]
            for one in self.terms[:_MAX_PRINTED]
        ]
        return [["voice", "kind", "weight", "nats"], *rows]

    def __str__(self) -> str:
        rows = self._table()
        more = [f"... and {len(self.terms) - _MAX_PRINTED:,} more"] if len(self.terms) > _MAX_PRINTED else []
        silent = (f"{one.column}: no voice, {one.reason}" for one in self.inactive[:_MAX_PRINTED])
        return "\n".join([*formatting.align_columns(rows, n_text_columns=2), *more, *silent])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        some = self.terms[:_MAX_PRINTED]
        more = [f"... and {len(self.terms) - _MAX_PRINTED:,} more"] if len(self.terms) > _MAX_PRINTED else []
        silent = [f"{formatting.format_count(len(self.inactive), 'column')} without a voice"] if self.inactive else []
        return formatting.render_html_table(
            "Voices", self._table(), 2, [one.importance or 0.0 for one in some], "; ".join([*more, *silent])
        )


def format_importance(importance: float | None) -> str:
    """A strength for a person."""
    return "" if importance is None else f"{importance:.3f}"


def list_terms(fitted: FittedModel) -> TermList:
    """The voices of a model, strongest first; of an unweighted one too, where every column counts once."""
    parts, laws = fitted.plan.parts, fitted.model.distributions
    tallies: Any = fitted.selected_counts.tallies if fitted.has_counts else [None] * len(parts)
    rows = float(fitted.selected_counts.class_weight.sum()) if fitted.has_counts else 0.0
    shares, found, silent = fitted.class_proportions, list[Term](), dict[Name, str]()
    for i, (part, law, tally) in enumerate(zip(parts, laws, tallies, strict=True)):
        columns, weight = part.event.term_names(part.columns), law.base_and_weights[1].tolist()
        titles = part.event.term_titles(part.columns, part.encodings)
        strength, answers = _importances(law, tally, shares, rows), _cell_counts(law)
        for j, (names, title) in enumerate(zip(columns, titles, strict=True)):
            if not part.is_joint_term and (why := _inactive_reason(part, j, answers[j], weight[j])):
                silent[names[0]] = why
                continue
            found.append(Term(title, names, part.event.term_kind(names), weight[j], strength[j], answers[j], i, j))
    order = sorted(found, key=lambda one: np.inf if one.importance is None else -one.importance)
    heard = [name for one in found for name in one.columns]
    gone = tuple(InactiveTerm(name, why, heard.count(name)) for name, why in silent.items())
    return TermList(tuple(order), gone, None if fitted.term_weights is None else fitted.term_weights.n_learned_rows)


def _cell_counts(distribution: Distribution) -> list[int | None]:
    """How many bins, levels or cells each feature of a law tells apart."""
    known = distribution.level_scores()
    if known is None:
        return [None] * distribution.n_features
    return [int(known.for_feature(j)[1].max(initial=-1)) + 1 for j in range(distribution.n_features)]


def _inactive_reason(part: PlanPart, j: int, answers: int | None, weight: float) -> str:
    """Why a column says nothing; nothing where it has something to say."""
    if answers is None or answers > 1:
        return "" if weight else "it tells rows that are left out worse than the class shares do"
    if not part.encodings[j].n_levels:
        return "no row has a value"
    return "one bin: alone it tells nothing of the class" if part.encodings[j].n_levels != 1 else "it holds one value"


def _importances(distribution: Distribution, tally: Any, class_proportions: Floats, rows: float) -> list[float | None]:
    """(feature,) how much each feature says for one class against another, in the mean of all rows."""
    if distribution.n_classes < 2 or not class_proportions.any():
        return [0.0] * distribution.n_features
    known = distribution.level_scores()
    if known is None:
        return _sampled_importances(distribution, tally, class_proportions, rows)
    if tally is not None:
        often = tally.counts.sum(axis=0) / max(rows, 1e-300)
    elif (p := distribution.base_and_weights[0].parameters().get("probability")) is not None:
        often = class_proportions @ p
    else:
        return [None] * distribution.n_features
    each = ((often[slice(*known.offsets[j : j + 2])], known.for_feature(j)[0]) for j in range(distribution.n_features))
    return [float(own @ mean_class_difference(table, class_proportions)) for own, table in each]


def _sampled_importances(
    distribution: Distribution, tally: Any, class_proportions: Floats, rows: float
) -> list[float | None]:
    """By rows that the law expects, as many of them without a value as there were."""
    rng = np.random.default_rng(0)
    try:
        terms = distribution.contributions(
            distribution.sample_block(rng.choice(len(class_proportions), _SAMPLE_ROWS, p=class_proportions), rng)
        )
    except InputError:  # a law that cannot draw
        return [None] * distribution.n_features
    there = np.ones(distribution.n_features) if tally is None or not rows else tally.n.sum(axis=0) / rows
    present = np.broadcast_to(there[: distribution.n_features], distribution.n_features).tolist()
    return [
        share * float(mean_class_difference(terms[:, :, j], class_proportions).mean())
        for j, share in enumerate(present)
    ]


def mean_class_difference(contributions: Floats, class_proportions: Floats) -> Floats:
    """(row,) the mean distance between what two different classes, drawn by their shares, hear; ``said`` (row, class).

    >>> mean_class_difference(np.array([[0.0, 3.0], [1.0, 1.0]]), np.array([0.9, 0.1])).tolist()
    [3.0, 0.0]
    """
    order = np.argsort(contributions, axis=1)
    ascending, below = np.take_along_axis(contributions, order, 1), np.cumsum(class_proportions[order], axis=1)[:, :-1]
    low, high = ascending[:, :-1], ascending[:, 1:]
    with np.errstate(invalid="ignore"):
        gaps = np.where(low == high, 0.0, high - low)
    return (
        2 * (gaps * below * (1 - below)).sum(axis=1) / max(1.0 - float(class_proportions @ class_proportions), 1e-300)
    )
