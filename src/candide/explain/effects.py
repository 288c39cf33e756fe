"""Total effects: what a value of a column contributes over all terms that the column is in, on average over the rows.

The weight of a column's own term alone does not show what the column does: where an interaction or a discriminant has
its effect too, the own term may have a negative weight, which corrects the others. A joint term is therefore split into
a part for each of its columns and a remainder: the parts are the additive fit to its cells, weighted by the rows in
each, or, of a term without cells, to rows that its distribution expects. The total effect of a column is its own term
and its parts of all joint terms.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.data.table import Name
from candide.distributions import Distribution
from candide.errors import InputError
from candide.explain import terms as of_terms
from candide.explain.terms import Term, TermAxis, TermList, build_axis, build_term_cells, list_terms
from candide.model.fitted import FittedModel
from candide.numerics import mean_class_difference

# Quantiles between which the parts of a term without cells are linear; with many columns, the first and last only.
_KNOT_QUANTILES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
_MAX_KNOTS = 512  # of all columns together
_MAX_COLUMNS = 1000  # of a term without cells that is split
_RIDGE = 0.002  # of the fit, per row: correlated columns divide their contribution
_MAX_ITERATIONS = 100  # of the additive fit to cells
_IMPOSSIBLE_LOG_ODDS = 50.0  # an impossible cell counts as this


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """The total effect of a column along its values."""

    column: Name
    axis: TermAxis  # with total effects in place of those of the own term
    n_terms: int  # that the column is in
    importance: float | None  # mean over the rows, as the importance of a term


class Effects:
    def __init__(self, fitted: FittedModel, terms: TermList | None = None):
        self.fitted, self.terms = fitted, list_terms(fitted) if terms is None else terms
        self._column_terms = {term.columns[0]: term for term in self.terms if len(term.columns) == 1}
        self._joint_terms = dict[Name, list[Term]]()
        for term in self.terms:
            for name in term.columns if len(term.columns) > 1 else ():
                self._joint_terms.setdefault(name, []).append(term)
        self._parts = dict[tuple[int, int], list[Any]]()

    @cached_property
    def column_effects(self) -> list[ColumnEffect]:
        """Every column with values to draw, the most important first."""
        names = dict.fromkeys([*self._column_terms, *(term.column for term in self.terms.inactive)])
        effects = [effect for name in names if (effect := self.for_column(name)) is not None]
        return sorted(effects, key=lambda effect: np.inf if effect.importance is None else -effect.importance)

    def for_column(self, name: Name) -> ColumnEffect | None:
        """Return the total effect of a column; None where no term that it is in has values to draw."""
        own, joint = self._column_terms.get(name), self._joint_terms.get(name, [])
        axis, n_terms = self._own_axis(name), len(joint) + (own is not None)
        if axis is None:
            return None
        if axis.contributions is None or not joint:
            return ColumnEffect(name, axis, n_terms, None if own is None else own.importance)
        values, places, proportions = self._values(name, axis)
        total = axis.contributions.copy()
        np.add.at(total, places, proportions[:, None] * self.shift(name, values))
        total -= np.nan_to_num(total @ self.fitted.class_proportions)[:, None]
        frequencies = axis.frequencies
        if axis.shape == "curve" and axis.histogram is not None and axis.positions is not None:
            edges, bars = axis.histogram
            frequencies = np.interp(axis.positions, (edges[1:] + edges[:-1]) / 2, bars)
            frequencies = frequencies / max(float(frequencies.sum()), 1e-300)
        importance = None
        if frequencies is not None and len(frequencies) == len(total):
            differences = mean_class_difference(_clip(total), self.fitted.class_proportions)
            importance = float(frequencies @ differences)
        return ColumnEffect(name, replace(axis, contributions=total), n_terms, importance)

    def without_axis(self, name: Name) -> float | None:
        """Return the importance of a column without values to draw: how far the log-odds move if it is missing.

        That is the mean over rows that the joint terms expect; None where there are none.
        """
        changes = dict[int, Floats]()  # by the number of rows
        for term in self._joint_terms.get(name, []):
            rows, part = self._expected_rows(term), self.fitted.plan.parts[term.part_index]
            if rows is None or self._has_cells(term):
                continue
            at = part.columns.index(name)
            first = sum(encoding.width for encoding in part.encodings[:at])
            missing = rows.copy()
            missing[:, first : first + part.encodings[at].width] = 0.0  # as a score, the mean of the column
            change = np.nan_to_num(self._contributions(term, rows) - self._contributions(term, missing))
            changes[len(rows)] = changes.get(len(rows), 0.0) + _clip(change)
        if not changes:
            return None
        p = self.fitted.class_proportions
        return sum(float(mean_class_difference(_clip(change), p).mean()) for change in changes.values())

    def shift(self, name: Name, values: Any) -> Floats:
        """(value, class) Return what all joint terms add to values of a column."""
        total = np.zeros((len(values), len(self.fitted.labels)))
        for term in self._joint_terms.get(name, []):
            part = self.fitted.plan.parts[term.part_index]
            at = part.columns.index(name)
            codes = np.asarray(part.encodings[at].apply(values))
            if self._has_cells(term):
                effect = self._split(term)[term.columns.index(name)]
                is_known = (codes >= 0) & (codes < len(effect))
                total[is_known] += effect[codes[is_known]]
            elif (by_code := self._distribution(term).base_and_weights[0].column_effects(at)) is not None:
                codes = np.where(codes < len(by_code) - 1, codes, -1)  # unseen levels are as missing ones
                total += by_code[codes + 1, :, term.feature_index] * term.weight
            elif parts := self._split(term):
                first = sum(encoding.width for encoding in part.encodings[:at])
                for x, (knots, heights) in zip(codes.reshape(len(values), -1).T, parts[first:], strict=False):
                    is_known = ~np.isnan(x.astype(float))
                    total[is_known] += _hat_basis(x[is_known].astype(float), knots) @ heights
        return total

    def _distribution(self, term: Term) -> Distribution:
        return self.fitted.model.distributions[term.part_index]

    def _has_cells(self, term: Term) -> bool:
        return self._distribution(term).level_scores() is not None

    def _contributions(self, term: Term, rows: Floats) -> Floats:
        prototypes = self.fitted.plan.parts[term.part_index].prototypes
        block = rows if prototypes is None else prototypes.read(rows)
        return self.fitted.model.distributions[term.part_index].contributions(block)[:, :, term.feature_index]

    def _own_axis(self, name: Name) -> TermAxis | None:
        """Return the axis of a column's own term; where it has none, that of a joint term, without an effect yet."""
        if name in self._column_terms:
            return build_axis(self.fitted, self._column_terms[name])
        term = next(filter(self._has_cells, self._joint_terms.get(name, [])), None)
        if term is None:
            return None
        part, cells = self.fitted.plan.parts[term.part_index], build_term_cells(self.fitted, term)
        at, frequencies = term.columns.index(name), cells.frequencies
        if frequencies is not None:
            frequencies = frequencies.sum(axis=tuple(i for i in range(frequencies.ndim) if i != at))
        grid: Any = part.encodings[part.columns.index(name)]
        edges = None if grid.is_read_as_text or not grid.edges else np.array(grid.edges)
        zero = np.zeros((len(cells.names[at]), len(self.fitted.labels)))
        single, shape = replace(term, title=str(name), columns=(name,)), "levels" if edges is None else "steps"
        return TermAxis(single, shape, (cells.names[at],), zero, frequencies, edges)

    def _values(self, name: Name, axis: TermAxis) -> tuple[Any, Codes, Floats]:
        """Return values of a column, the place of each on an axis, and its proportion of the rows at that place."""
        assert axis.contributions is not None
        n = len(axis.contributions)
        if axis.shape == "curve":
            return axis.positions, np.arange(n), np.ones(n)
        i, feature = axis.term.part_index, axis.term.feature_index
        part = self.fitted.plan.parts[i]
        encoding: Any = part.encodings[part.columns.index(name)]
        if encoding.is_read_as_text:
            return list(encoding.labels.values[:n]), np.arange(n), np.ones(n)
        scores: Any = self.fitted.model.distributions[i].level_scores()
        bins = np.arange(n) if part.is_joint_term else scores.for_feature(feature)[1]
        counts = np.ones(len(bins))
        if self.fitted.has_counts and not part.is_joint_term:
            tally: Any = self.fitted.selected_counts.tallies[i]
            counts = tally.counts[:, slice(*scores.offsets[feature : feature + 2])].sum(axis=0) + 1e-9
        return encoding.decode(np.arange(len(bins))), bins, counts / np.bincount(bins, counts)[bins]

    def _split(self, term: Term) -> list[Any]:
        """Return the part of each column of a joint term, computed once."""
        key = term.part_index, term.feature_index
        if key not in self._parts:
            if self._has_cells(term):
                cells: Any = build_term_cells(self.fitted, term)
                weight = np.ones(cells.contributions.shape[:-1]) if cells.frequencies is None else cells.frequencies
                self._parts[key] = additive_parts(np.nan_to_num(_clip(cells.contributions)), weight)
            else:
                self._parts[key] = self._fit_rows(term)
        return self._parts[key]

    def _fit_rows(self, term: Term) -> list[tuple[Floats, Floats]]:
        """Fit a term without cells additively: knots and (knot, class) of each number; none without rows."""
        rows = self._expected_rows(term)
        if rows is None:
            return []
        is_few = rows.shape[1] * len(_KNOT_QUANTILES) <= _MAX_KNOTS
        quantiles = _KNOT_QUANTILES if is_few else (_KNOT_QUANTILES[0], _KNOT_QUANTILES[-1])
        knots = [np.unique(np.quantile(x, quantiles)) for x in rows.T]
        bases = [_hat_basis(x, of_column) for x, of_column in zip(rows.T, knots, strict=True)]
        target, design = np.nan_to_num(_clip(self._contributions(term, rows))), np.hstack(bases)
        design, target = design - design.mean(axis=0), target - target.mean(axis=0)
        gram = design.T @ design + _RIDGE * len(rows) * np.eye(design.shape[1])
        heights = np.split(np.linalg.solve(gram, design.T @ target), np.cumsum(list(map(len, knots)))[:-1])
        parts = zip(knots, bases, heights, strict=True)
        return [(of_column, height - (basis @ height).mean(axis=0)) for of_column, basis, height in parts]

    def _expected_rows(self, term: Term) -> Floats | None:
        """Return encoded rows of a term's columns that a distribution expects; None where it cannot be sampled.

        A prototype term takes the rows of another term of the same columns.
        """
        part, proportions = self.fitted.plan.parts[term.part_index], tuple(self.fitted.class_proportions.tolist())
        width = sum(encoding.width for encoding in part.encodings)
        for other, distribution in zip(self.fitted.plan.parts, self.fitted.model.distributions, strict=True):
            is_same = other.encodings == part.encodings and other.columns == part.columns
            if width > _MAX_COLUMNS or not is_same or other.prototypes is not None:
                continue
            try:
                rows = of_terms.expected_rows(distribution, proportions)
            except (InputError, ValueError):  # a distribution that cannot be sampled
                continue
            rows = rows[np.isfinite(rows).all(axis=1)]
            if rows.shape[1] == width and len(rows):
                return rows
        return None


def _clip(log_odds: Floats) -> Floats:
    return np.clip(log_odds, -_IMPOSSIBLE_LOG_ODDS, _IMPOSSIBLE_LOG_ODDS)


def additive_parts(table: Floats, weight: Floats) -> list[Floats]:
    """(level, class) Return the additive fit to a table (level of each column ..., class): centred parts by column."""
    if not weight.sum() > 0:
        weight = np.ones_like(weight)
    axes, w = range(weight.ndim), weight[..., None] / weight.sum()
    rest = table - (w * table).sum(axis=tuple(axes), keepdims=True)
    parts = [np.zeros((weight.shape[a], table.shape[-1])) for a in axes]
    for _ in range(_MAX_ITERATIONS):
        largest = 0.0
        for a in axes:
            others = tuple(i for i in axes if i != a)
            mass = w.sum(axis=others, keepdims=True)
            step = (w * rest).sum(axis=others, keepdims=True) / np.where(mass > 0, mass, np.inf)
            parts[a] += step.reshape(parts[a].shape)
            rest = rest - step
            largest = max(largest, float(np.abs(step).max(initial=0.0)))
        if largest < 1e-9:
            break
    return parts


def _hat_basis(x: Floats, knots: Floats) -> Floats:
    """(value, knot) Return the basis of functions that are linear between knots and constant beyond the ends."""
    if len(knots) < 2:
        return np.ones((len(x), len(knots)))
    return np.stack([np.interp(x, knots, unit) for unit in np.eye(len(knots))], axis=1)
