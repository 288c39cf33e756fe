"""Terms of a weighted model: their weights, and how much each moves the score of a row. From the counts alone.

The *importance* of a term is its mean absolute contribution to the log-odds: the mean over the rows counted, and over
two different classes drawn by their proportions, of the difference of its weighted score between the two. A missing
value counts as 0. For levels, bins and cells the counts give the number of rows in each; for other distributions the
rows are drawn from the distribution with a fixed seed. A column whose values are not associated with the class, and so
left with one bin, has no term of its own: it is listed in ``inactive``.

>>> from candide.demo import garden
>>> plain = list_terms(FittedModel(garden()))
>>> plain["scented"].weight, round(plain["scented"].importance, 2), plain[0].title
(1.0, 0.25, 'leaf_mm')
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, overload

import numpy as np

from candide import formatting
from candide.data.blocks import Floats
from candide.data.table import Name
from candide.distributions import Distribution
from candide.errors import InputError, unknown_name_error
from candide.formatting import Column
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart

_MAX_PRINTED = 20  # terms printed before "and more"
_SAMPLE_ROWS = 1000  # rows drawn from a distribution without levels to count


@dataclass(frozen=True)
class Term:
    """An additive part of the score: a column, or several columns together. None where a figure is not known."""

    title: str
    columns: tuple[Name, ...]
    kind: str  # "column", "pair", "triple", or the event model of several columns
    weight: float
    importance: float | None  # mean absolute contribution to the log-odds
    n_cells: int | None = None  # the bins, levels or cells that it distinguishes; None where it has none
    is_own_term: bool = False  # whether it is of a column that is in joint terms too
    part_index: int = field(default=0, metadata={"internal": True})  # the part of the plan
    feature_index: int = field(default=0, metadata={"internal": True})  # the feature of its distribution


@dataclass(frozen=True)
class InactiveTerm:
    """A column without a term of its own, and why; how many joint terms it is in."""

    column: Name
    reason: str
    n_joint_terms: int

    def __str__(self) -> str:
        joint = formatting.format_count(self.n_joint_terms, "joint term")
        return f"{self.reason}; used in {joint}" if self.n_joint_terms else self.reason


TERM_TABLE = (
    Column("term", "title"),
    Column("kind", lambda term: "own term" if term.is_own_term else term.kind, is_text=True, is_optional=True),
    Column("cells", "n_cells", ",", is_optional=True),
    Column("weight", "weight", ".3f", is_required=True),
    Column("importance", "importance", ".3f"),
)


@dataclass(frozen=True)
class TermList(Sequence[Term]):
    """All terms, the most important first. Prints as a table; ``to_dict`` makes any data frame."""

    terms: tuple[Term, ...]
    inactive: tuple[InactiveTerm, ...] = ()
    training_rows: int | None = None  # that the weights were learned from; None: not kept, or there are no weights

    def __len__(self) -> int:
        return len(self.terms)

    def __iter__(self) -> Iterator[Term]:
        return iter(self.terms)

    @overload
    def __getitem__(self, at: int | str | tuple[Name, ...]) -> Term: ...
    @overload
    def __getitem__(self, at: slice) -> "TermList": ...
    def __getitem__(self, at: int | str | tuple[Name, ...] | slice) -> "Term | TermList":
        """Return a term by position, by title ("age x job"), or by columns in any order."""
        if isinstance(at, slice):
            return replace(self, terms=self.terms[at])
        if isinstance(at, int):
            return self.terms[at]
        columns = set(at) if isinstance(at, tuple) else None
        for term in self.terms:
            if term.title == at or (columns and len(at) == len(term.columns) and set(term.columns) == columns):
                return term
        title = " x ".join(map(str, at)) if columns else at
        raise unknown_name_error("term", title, [term.title for term in self.terms])

    def select(self, names: Collection[Name]) -> "TermList":
        """Return the terms of some columns, or with these titles."""
        terms = tuple(t for t in self.terms if t.title in names or not set(t.columns).isdisjoint(names))
        return replace(self, terms=terms, inactive=tuple(one for one in self.inactive if one.column in names))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns of values: ``pandas.DataFrame(terms.to_dict())``, or the same of polars or pyarrow."""
        names = ("title", "columns", "kind", "weight", "importance", "n_cells")
        return {name: [getattr(term, name) for term in self.terms] for name in names}

    def __str__(self) -> str:
        inactive = (f"{one.column}: not used on its own, {one}" for one in self.inactive[:_MAX_PRINTED])
        return "\n".join([*formatting.table_lines(TERM_TABLE, self.terms, _MAX_PRINTED), *inactive])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        inactive = (
            [f"{formatting.format_count(len(self.inactive), 'column')} not used on its own"] if self.inactive else []
        )
        more = [f"... and {len(self.terms) - _MAX_PRINTED:,} more"] if len(self.terms) > _MAX_PRINTED else []
        return self.to_html("Terms", _MAX_PRINTED, "; ".join([*more, *inactive]))

    def to_html(self, title: str, limit: int, note: str) -> str:
        """Return the first terms as a table for a notebook."""
        columns, rows = formatting.table_rows(TERM_TABLE, self.terms[:limit])
        bars = [term.importance or 0.0 for term in self.terms[:limit]]
        return formatting.render_html_table(title, [[c.heading for c in columns], *rows], 2, bars, note)


def count_term_kinds(terms: Iterable[Term]) -> dict[str, int]:
    """Return how many terms there are of each kind, those of single columns first."""
    return dict(Counter(term.kind for term in sorted(terms, key=lambda term: len(term.columns))))


def describe_term_counts(counts: Mapping[str, int]) -> str:
    """Return how many terms there are of each kind, in words.

    >>> describe_term_counts({"column": 14, "pair": 5, "prototype": 1, "discriminant": 3})
    '14 column terms, 5 pair terms, 1 prototype term, 3 discriminants'
    """
    names = {kind: kind if kind == "discriminant" else f"{kind} term" for kind in counts}
    return ", ".join(formatting.format_count(n, names[kind]) for kind, n in counts.items())


def list_terms(fitted: FittedModel) -> TermList:
    """Return the terms of a model, the most important first; of an unweighted one every column has weight 1."""
    parts, distributions = fitted.plan.parts, fitted.model.distributions
    tallies: Any = fitted.selected_counts.tallies if fitted.has_counts else [None] * len(parts)
    rows = float(fitted.selected_counts.class_weight.sum()) if fitted.has_counts else 0.0
    proportions, terms, inactive = fitted.class_proportions, list[Term](), dict[Name, str]()
    for i, (part, distribution, tally) in enumerate(zip(parts, distributions, tallies, strict=True)):
        columns, weight = part.event.term_names(part.columns), distribution.base_and_weights[1].tolist()
        titles = part.event.term_titles(part.columns, part.encodings)
        importance, cells = _importances(distribution, tally, proportions, rows), _cell_counts(distribution)
        for j, (names, title) in enumerate(zip(columns, titles, strict=True)):
            if not part.is_joint_term and (reason := _inactive_reason(part, j, cells[j], weight[j])):
                inactive[names[0]] = reason
                continue
            kind = part.event.term_kind(names)
            terms.append(Term(title, names, kind, weight[j], importance[j], cells[j], False, i, j))
    joint = Counter(name for term in terms if len(term.columns) > 1 for name in term.columns)
    order = sorted(terms, key=lambda term: np.inf if term.importance is None else -term.importance)
    order = [replace(t, is_own_term=True) if t.kind == "column" and joint[t.columns[0]] else t for t in order]
    used = Counter(name for term in terms for name in term.columns)
    without = tuple(InactiveTerm(name, reason, used[name]) for name, reason in inactive.items())
    return TermList(tuple(order), without, None if fitted.term_weights is None else fitted.term_weights.n_learned_rows)


def _cell_counts(distribution: Distribution) -> list[int | None]:
    """(feature,) Return how many bins, levels or cells each feature distinguishes."""
    known = distribution.level_scores()
    if known is None:
        return [None] * distribution.n_features
    return [int(known.for_feature(j)[1].max(initial=-1)) + 1 for j in range(distribution.n_features)]


def _inactive_reason(part: PlanPart, j: int, n_cells: int | None, weight: float) -> str:
    """Return why a column has no term of its own; an empty text where it has one."""
    if n_cells is None or n_cells > 1:
        return "" if weight else "it predicts held-out rows worse than the class prior"
    if not part.encodings[j].n_levels:
        return "no row has a value"
    return "no association with the class by itself" if part.encodings[j].n_levels != 1 else "it has one value only"


def _importances(distribution: Distribution, tally: Any, class_proportions: Floats, rows: float) -> list[float | None]:
    """(feature,) Return the mean absolute contribution of each feature over all rows."""
    if distribution.n_classes < 2 or not class_proportions.any():
        return [0.0] * distribution.n_features
    known = distribution.level_scores()
    if known is None:
        return _sampled_importances(distribution, tally, class_proportions, rows)
    if tally is not None:
        frequency = tally.counts.sum(axis=0) / max(rows, 1e-300)
    elif (p := distribution.base_and_weights[0].parameters().get("probability")) is not None:
        frequency = class_proportions @ p
    else:
        return [None] * distribution.n_features
    cells = (
        (frequency[slice(*known.offsets[j : j + 2])], known.for_feature(j)[0]) for j in range(distribution.n_features)
    )
    return [float(own @ mean_class_difference(table, class_proportions)) for own, table in cells]


def _sampled_importances(
    distribution: Distribution, tally: Any, class_proportions: Floats, rows: float
) -> list[float | None]:
    """(feature,) Return the same over rows drawn from the distribution, with as many missing values as were counted."""
    rng = np.random.default_rng(0)
    try:
        terms = distribution.contributions(
            distribution.sample_block(rng.choice(len(class_proportions), _SAMPLE_ROWS, p=class_proportions), rng)
        )
    except InputError:  # a distribution that cannot be sampled
        return [None] * distribution.n_features
    there = np.ones(distribution.n_features) if tally is None or not rows else tally.n.sum(axis=0) / rows
    present = np.broadcast_to(there[: distribution.n_features], distribution.n_features).tolist()
    return [
        share * float(mean_class_difference(terms[:, :, j], class_proportions).mean())
        for j, share in enumerate(present)
    ]


def mean_class_difference(contributions: Floats, class_proportions: Floats) -> Floats:
    """(row,) Return the mean difference between the contributions to two classes drawn by their proportions.

    >>> mean_class_difference(np.array([[0.0, 3.0], [1.0, 1.0]]), np.array([0.9, 0.1])).round(9).tolist()
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


def prototype_rows(fitted: FittedModel) -> dict[Any, list[Any]]:
    """Columns of values, in the units of the table; none where nothing is compared."""
    for part, law in zip(fitted.plan.parts, fitted.model.distributions, strict=True):
        if part.prototypes is None:
            continue
        typical, ends = part.prototypes.prototypes, np.cumsum([0, *(one.width for one in part.encodings)])
        terms = law.contributions(part.prototypes.read(typical))[:, :, 0]
        order = np.sort(terms, axis=1)
        out: dict[Any, list[Any]] = {"typical_row": list(range(1, len(typical) + 1))}
        for name, encoding, (start, _) in zip(part.columns, part.encodings, pairwise(ends), strict=True):
            out[name] = encoding.decode(typical[:, start]).tolist()
        out["speaks_for"] = [fitted.labels.values[c] for c in terms.argmax(axis=1)]
        out["nats"] = (order[:, -1] - order[:, -2]).tolist() if order.shape[1] > 1 else [0.0] * len(order)
        return out
    return {}
