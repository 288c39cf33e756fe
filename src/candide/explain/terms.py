"""Terms of a model: weights, importance, and contributions along their values. From the counts alone.

The *importance* of a term is its mean absolute contribution to the log-odds: the mean over the rows counted, and over
two different classes drawn by their proportions, of the difference of its weighted score between the two. A missing
value counts as 0. For levels, bins and cells the counts give the number of rows in each; for other distributions the
rows are drawn from the distribution with a fixed seed. A column whose values are not associated with the class, and so
left with one bin, has no term of its own: it is listed in ``inactive``.

Along its values, a term of levels or combinations of levels has a contribution for each; a numeric column has a curve
over a histogram of its values; a text column has its strongest words.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from candide import formatting
from candide.data.blocks import Codes, Floats
from candide.data.table import Name
from candide.distributions import Distribution
from candide.encoding.codes import Grid, join_cell_names
from candide.errors import InputError, unknown_name_error
from candide.explain.words import TopWord, top_words
from candide.formatting import Column
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart
from candide.numerics import mean_class_difference

_MAX_PRINTED = 20  # terms printed before "and more"
_SAMPLE_ROWS = 1000  # rows drawn from a distribution without levels to count
_CURVE_POINTS = 49  # of a distribution without steps
_HISTOGRAM_BARS = 32
_AXIS_SAMPLE_ROWS = 2000  # rows drawn from a distribution, where no cells were counted
_TAIL = 0.004  # proportion of the rows at either end that is not drawn
_TOP_WORDS = 12  # of each class


@dataclass(frozen=True)
class Term:
    """An additive part of the score: a column, or several columns together. None where a figure is not known."""

    title: str
    columns: tuple[Name, ...]
    kind: str  # "column", "own term" (of a column in joint terms too), "pair", "triple", or an event model
    weight: float
    importance: float | None  # mean absolute contribution to the log-odds
    n_cells: int | None = None  # the bins, levels or cells that it distinguishes; None where it has none
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
    Column("kind", "kind", is_text=True, is_optional=True),
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
        return replace(self, terms=terms, inactive=tuple(t for t in self.inactive if t.column in names))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns of values: ``pandas.DataFrame(terms.to_dict())``, or the same of polars or pyarrow."""
        names = ("title", "columns", "kind", "weight", "importance", "n_cells")
        return {name: [getattr(term, name) for term in self.terms] for name in names}

    def __str__(self) -> str:
        inactive = (f"{term.column}: not used on its own, {term}" for term in self.inactive[:_MAX_PRINTED])
        return "\n".join([*formatting.table_lines(TERM_TABLE, self.terms, _MAX_PRINTED), *inactive])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        inactive, n_more = formatting.format_count(len(self.inactive), "column"), len(self.terms) - _MAX_PRINTED
        notes = [f"... and {n_more:,} more"] if n_more > 0 else []
        notes += [f"{inactive} not used on its own"] if self.inactive else []
        return self.to_html("Terms", _MAX_PRINTED, "; ".join(notes))

    def to_html(self, title: str, limit: int, note: str) -> str:
        columns, rows = formatting.table_rows(TERM_TABLE, self.terms[:limit])
        bars = [term.importance or 0.0 for term in self.terms[:limit]]
        return formatting.render_html_table(title, [[c.heading for c in columns], *rows], 2, bars, note)


def count_kinds(terms: Iterable[Term]) -> dict[str, int]:
    """Return how many terms there are of each kind, those of single columns first."""
    terms = sorted(terms, key=lambda term: len(term.columns))
    return dict(Counter("column" if term.kind == "own term" else term.kind for term in terms))


def describe_kinds(counts: Mapping[str, int]) -> str:
    """Return the same as text: 14 column terms, 5 pair terms, 1 prototype term, 3 discriminants."""
    names = {kind: kind if kind == "discriminant" else f"{kind} term" for kind in counts}
    return ", ".join(formatting.format_count(n, names[kind]) for kind, n in counts.items())


def list_terms(fitted: FittedModel) -> TermList:
    """Return the terms of a model, the most important first; in an unweighted one every column has weight 1."""
    parts, distributions = fitted.plan.parts, fitted.model.distributions
    tallies: Any = fitted.selected_counts.tallies if fitted.has_counts else [None] * len(parts)
    rows = float(fitted.selected_counts.class_weight.sum()) if fitted.has_counts else 0.0
    terms, reasons = list[Term](), dict[Name, str]()
    for i, (part, distribution, tally) in enumerate(zip(parts, distributions, tallies, strict=True)):
        scores = distribution.level_scores()
        columns, weight = part.event.term_names(part.columns), distribution.base_and_weights[1].tolist()
        titles = part.event.term_titles(part.columns, part.encodings)
        importance = _importances(distribution, tally, fitted.class_proportions, rows)
        for j, (names, title) in enumerate(zip(columns, titles, strict=True)):
            n_cells = None if scores is None else int(scores.for_feature(j)[1].max(initial=-1)) + 1
            if not part.is_joint_term and (reason := _inactive_reason(part, j, n_cells, weight[j])):
                reasons[names[0]] = reason
                continue
            kind = part.event.term_kind(names)
            terms.append(Term(title, names, kind, weight[j], importance[j], n_cells, i, j))
    joint = Counter(name for term in terms if len(term.columns) > 1 for name in term.columns)
    terms.sort(key=lambda term: np.inf if term.importance is None else -term.importance)
    terms = [replace(t, kind="own term") if t.kind == "column" and joint[t.columns[0]] else t for t in terms]
    used = Counter(name for term in terms for name in term.columns)
    inactive = tuple(InactiveTerm(name, reason, used[name]) for name, reason in reasons.items())
    weights = fitted.term_weights
    return TermList(tuple(terms), inactive, None if weights is None else weights.n_learned_rows)


def _inactive_reason(part: PlanPart, j: int, n_cells: int | None, weight: float) -> str:
    """Return why a column has no term of its own; an empty text where it has one."""
    if n_cells is None or n_cells > 1:
        return "" if weight else "it predicts held-out rows worse than the class prior"
    if not part.encodings[j].n_levels:
        return "no row has a value"
    return "no association with the class by itself" if part.encodings[j].n_levels != 1 else "it has one value only"


def _importances(distribution: Distribution, tally: Any, class_proportions: Floats, rows: float) -> list[float | None]:
    features, unknown = range(distribution.n_features), [None] * distribution.n_features
    if distribution.n_classes < 2 or not class_proportions.any():
        return [0.0 for _ in features]
    base, weight = distribution.base_and_weights
    if (known := base.feature_importances()) is not None:
        return (known * np.abs(weight)).tolist()
    scores = distribution.level_scores()
    if scores is None:  # over rows drawn from the distribution, with as many missing values as were counted
        rng = np.random.default_rng(0)
        try:
            classes = rng.choice(len(class_proportions), _SAMPLE_ROWS, p=class_proportions)
            drawn = distribution.contributions(distribution.sample_block(classes, rng))
        except InputError:  # a distribution that cannot be sampled
            return [*unknown]
        present = np.ones(len(features)) if tally is None or not rows else tally.n.sum(axis=0) / rows
        present = np.broadcast_to(present[: len(features)], len(features))
        means = [float(mean_class_difference(drawn[:, :, j], class_proportions).mean()) for j in features]
        return [part * mean for part, mean in zip(present.tolist(), means, strict=True)]
    if tally is not None:
        frequency = tally.counts.sum(axis=0) / max(rows, 1e-300)
    elif (p := distribution.base_and_weights[0].parameters().get("probability")) is not None:
        frequency = class_proportions @ p
    else:
        return [*unknown]
    cells = ((frequency[slice(*scores.offsets[j : j + 2])], scores.for_feature(j)[0]) for j in features)
    return [float(rows_in @ mean_class_difference(table, class_proportions)) for rows_in, table in cells]


@dataclass(frozen=True, eq=False)
class TermAxis:
    """One term along its values. Contributions are for each class, less the mean over classes by their proportions."""

    term: Term
    shape: str  # "levels" | "steps" | "curve" | "table" | "words" | "" where it cannot be drawn
    names: tuple[tuple[str, ...], ...] = ()  # the levels, bins or cells of each column
    contributions: Floats | None = None  # (level of each column ..., class), or (point, class)
    frequencies: Floats | None = None  # (level of each column ...) the proportion of rows; None where it is not known
    positions: Floats | None = None  # the points of a curve, or the edges between steps
    histogram: tuple[Floats, Floats] | None = None  # of numbers: edges of bars, and the proportion of rows in each
    top_words: tuple[tuple[TopWord, ...], ...] = ()  # of each class
    typical_value: str | float | None = None  # the most frequent level, or the median of numbers

    def contrast(self, class_proportions: Floats, class_index: int) -> Floats:
        """(level of each column ...) or (point,) Return the contribution to a class against the mean of the others."""
        assert self.contributions is not None
        return self.contributions[..., class_index] / max(1.0 - float(class_proportions[class_index]), 1e-300)

    def strongest(self, limit: int) -> list[tuple[str, Floats]]:
        """Return the cells with the largest contributions, and these for each class."""
        assert self.contributions is not None
        flat = self.contributions.reshape(-1, self.contributions.shape[-1])
        order = np.argsort(-np.ptp(flat, axis=1), kind="stable")[:limit]
        cells = np.stack(np.unravel_index(order, self.contributions.shape[:-1]), axis=1).tolist()
        titles = [", ".join(names[i] for names, i in zip(self.names, cell, strict=True)) for cell in cells]
        return list(zip(titles, flat[order], strict=True))


def build_term_cells(fitted: FittedModel, term: Term) -> TermAxis:
    """Return a term as a table with an axis for each of its columns; an error where it has no cells."""
    part, scores = fitted.plan.parts[term.part_index], fitted.model.distributions[term.part_index].level_scores()
    if scores is None:
        problem, remedy = "it has no levels, bins or cells", "name a column, a pair or a triple"
        raise InputError(problem, column=term.title, value=term.title, remedy=remedy)
    table, bins = scores.for_feature(term.feature_index)
    counts: Any = cell_counts(fitted, term.part_index, term.feature_index)
    if counts is not None:
        counts = counts / max(float(fitted.selected_counts.class_weight.sum()), 1e-300)
    at = [part.columns.index(name) for name in term.columns]
    names: tuple[tuple[str, ...], ...]
    if part.is_joint_term:
        names = tuple(part.encodings[j].level_names(part.columns[j] in fitted.dates) for j in at)
    else:
        names = (_bin_spans(part, at[0], bins, fitted.dates),)
        table = table[np.searchsorted(bins, np.arange(bins.max(initial=-1) + 1))]
        counts = None if counts is None else np.bincount(bins, counts)
    shape = tuple(map(len, names))
    frequencies = None if counts is None else counts.reshape(shape)
    return TermAxis(term, "table", names, _center(table, fitted).reshape(*shape, -1), frequencies)


def cell_counts(fitted: FittedModel, part_index: int, feature: int) -> Floats | None:
    """(cell,) Return the rows in each cell of a feature; None where no counts are kept."""
    if not fitted.has_counts:
        return None
    scores, tally = fitted.model.distributions[part_index].level_scores(), fitted.selected_counts.tallies[part_index]
    return tally.counts[:, slice(*scores.offsets[feature : feature + 2])].sum(axis=0)  # type: ignore[attr-defined, union-attr]


def _center(contributions: Floats, fitted: FittedModel) -> Floats:
    with np.errstate(invalid="ignore"):
        return contributions - np.nan_to_num(contributions @ fitted.class_proportions)[:, None]


def bin_labels(
    part: PlanPart, distribution: Distribution, j: int, dates: Collection[Name] = ()
) -> tuple[str, ...] | None:
    """Return the bin or cell of each code of a numeric column; None where there are no different ones."""
    if part.block_kind != "codes" or part.encodings[j].is_read_as_text:
        return None
    scores = None if part.is_joint_term else distribution.level_scores()
    bins = np.arange(part.encodings[j].n_levels or 0) if scores is None else scores.for_feature(j)[1]
    names = _bin_spans(part, j, bins, dates)
    return tuple(names[b] for b in bins.tolist()) if len(names) > 1 else None


def level_names(part: PlanPart, distribution: Distribution, j: int, dates: Collection[Name] = ()) -> tuple[str, ...]:
    scores = distribution.level_scores()
    if part.encodings[j].is_read_as_text or scores is None:
        return part.encodings[j].level_names()
    return _bin_spans(part, j, scores.for_feature(j)[1], dates)


def _bin_spans(part: PlanPart, j: int, bins: Codes, dates: Collection[Name]) -> tuple[str, ...]:
    """Return the names of bins, from those of the first and last cell in each."""
    names = part.encodings[j].level_names(part.columns[j] in dates)
    numbers = np.arange(bins.max(initial=-1) + 1)
    first, last = np.searchsorted(bins, numbers), np.searchsorted(bins, numbers, side="right") - 1
    return tuple(join_cell_names(names[a], names[b]) for a, b in zip(first.tolist(), last.tolist(), strict=True))


def build_axis(fitted: FittedModel, term: Term) -> TermAxis:
    part, distribution = fitted.plan.parts[term.part_index], fitted.model.distributions[term.part_index]
    if part.block_kind == "documents" and fitted.has_counts:
        words = (top_words(fitted, term.columns[0], label, _TOP_WORDS) for label in fitted.labels.values)
        return TermAxis(term, "words", top_words=tuple(map(tuple, words)))
    scores = None if part.block_kind == "documents" else distribution.level_scores()
    if scores is None:
        is_number = part.block_kind == "numbers" and len(term.columns) == 1 and not part.event.is_joint
        return _number_axis(fitted, distribution, term) if is_number else TermAxis(term, "")
    axis = build_term_cells(fitted, term)
    if len(term.columns) > 1:
        return axis
    grid: Any = part.encodings[part.columns.index(term.columns[0])]
    if grid.is_read_as_text or not grid.edges:
        mode = None if axis.frequencies is None else axis.names[0][int(axis.frequencies.argmax())]
        return replace(axis, shape="levels", typical_value=mode)
    edges = grid.coarsen(scores.for_feature(term.feature_index)[1]).edges
    counts = cell_counts(fitted, term.part_index, term.feature_index)
    median = None if counts is None else median_cell_value(fitted, term.columns[0], grid, counts)
    histogram = _histogram(grid, counts)
    return replace(axis, shape="steps", positions=np.array(edges), histogram=histogram, typical_value=median)


def median_cell_value(fitted: FittedModel, name: Name, grid: Grid, counts: Floats) -> float:
    """Return a seen value in the median cell, where any encoding of the column keeps some; else one by the edges."""
    cell = min(int(np.searchsorted(np.cumsum(counts), counts.sum() / 2)), len(counts) - 1)
    parts = [part for part in fitted.plan.parts if name in part.columns]
    by_part = (part.encodings[part.columns.index(name)].seen_values() for part in parts)
    seen = np.array(next(filter(None, by_part), ()))
    inside = seen[np.searchsorted(grid.edges or (), seen) == cell]
    return float(inside[len(inside) // 2] if len(inside) else grid.decode(np.array([cell]))[0])


def _histogram(grid: Grid, counts: Floats | None) -> tuple[Floats, Floats] | None:
    """Return the cells of a grid as bars of equal width, without the tails; rows lie evenly in their cell."""
    edges = np.array(grid.edges)
    if counts is None or not counts.sum():
        low, high = edges[0], edges[-1]
        margin = 0.05 * (high - low) or max(abs(low), 1.0) * 0.05
        return (np.array([low - margin, high + margin]), np.ones(1)) if np.isfinite(margin) else None
    widths = np.diff(edges) if len(edges) > 1 else np.array([max(abs(edges[0]), 1.0) * 0.05])
    walls = np.concatenate([[edges[0] - widths[0]], edges, [edges[-1] + widths[-1]]])  # outer cells as wide as the next
    below = np.concatenate([[0.0], np.cumsum(counts) / counts.sum()])
    low, high = np.interp([_TAIL, 1 - _TAIL], below, walls)
    low, high = (walls[0], walls[-1]) if high - low < 1e-3 * (walls[-1] - walls[0]) else (low, high)
    if not np.isfinite(high - low) or high <= low:
        return None
    at = np.linspace(low, high, _HISTOGRAM_BARS + 1)
    return at, np.diff(np.interp(at, walls, below))


@lru_cache(maxsize=1)  # the columns of one distribution are asked for one after another
def expected_rows(distribution: Distribution, class_proportions: tuple[float, ...]) -> NDArray:
    """Return rows of all columns of a distribution, drawn from it with a fixed seed."""
    rng, p = np.random.default_rng(0), np.array(class_proportions)
    return np.asarray(distribution.sample_block(rng.choice(len(p), _AXIS_SAMPLE_ROWS, p=p / p.sum()), rng), np.float64)


def expected_values(fitted: FittedModel, distribution: Distribution, j: int) -> Floats:
    """Return finite values of a column drawn from a distribution; none where it cannot be sampled."""
    try:
        drawn = expected_rows(distribution, tuple(fitted.class_proportions.tolist()))[:, j]
    except (InputError, ValueError):  # a distribution that cannot be sampled, or no rows left
        return np.empty(0)
    return drawn[np.isfinite(drawn)]


def _number_axis(fitted: FittedModel, distribution: Distribution, term: Term) -> TermAxis:
    drawn = expected_values(fitted, distribution, term.feature_index)
    if not len(drawn) or np.ptp(drawn) == 0:
        return TermAxis(term, "")
    low, high = np.quantile(drawn, [_TAIL, 1 - _TAIL])
    at, block = np.linspace(low, high, _CURVE_POINTS), np.full((_CURVE_POINTS, distribution.n_features), np.nan)
    block[:, term.feature_index] = at
    contributions = _center(distribution.contributions(block)[:, :, term.feature_index], fitted)
    bars, edges = np.histogram(drawn, _HISTOGRAM_BARS, (low, high))
    histogram, median = (edges, bars / len(drawn)), float(np.median(drawn))
    return TermAxis(term, "curve", (), contributions, None, at, histogram, typical_value=median)
