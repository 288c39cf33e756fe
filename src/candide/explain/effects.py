"""Total effects: what a value of a column contributes over all terms that the column is in, on average over the rows.

The weight of a column's own term alone does not show what the column does: where an interaction or a discriminant has
its effect too, the own term may have a negative weight, which corrects the others. A joint term is therefore split into
a part for each of its columns and a remainder: the parts are the additive fit to its cells, weighted by the rows in
each, or, of a term without cells, to rows that its distribution expects. The total effect of a column is its own term
and its parts of all joint terms.

>>> from candide.demo import garden
>>> soil = Effects(FittedModel(garden())).for_column("soil")
>>> soil.axis.names, soil.n_terms, soil.axis.contributions.shape
((('chalk', 'clay', 'sand'),), 1, (3, 3))
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from candide.data.blocks import Codes, Floats
from candide.data.table import Name
from candide.errors import InputError
from candide.explain.axes import TermAxis, build_axis, build_term_cells, expected_rows
from candide.explain.terms import Term, TermList, list_terms, mean_class_difference
from candide.model.fitted import FittedModel

_KNOT_QUANTILES = (
    0.01,
    0.1,
    0.25,
    0.5,
    0.75,
    0.9,
    0.99,
)  # quantiles between which parts of a term without cells are straight
_MAX_KNOT_HEIGHTS = 512  # heights of knots that are fitted, where columns are many; each has two
_MAX_COLUMNS = 1000  # of a term without cells that is split, as numbers; more are not
_RIDGE = 0.002  # of the fit, per row: columns that move together share what they contribute
_MAX_ITERATIONS = 100  # of the additive fit to cells
_IMPOSSIBLE_LOG_ODDS = 50.0  # log-odds; an impossible cell counts as this


@dataclass(frozen=True, eq=False)
class ColumnEffect:
    """The total effect of a column along its values."""

    column: Name
    axis: TermAxis  # with total effects in place of those of the own term
    n_terms: int  # that the column is in
    importance: float | None  # mean over the rows, as the strength of a term


class Effects:
    """The total effects of the columns of a model."""

    def __init__(self, fitted: FittedModel, terms: TermList | None = None):
        self.fitted, self.terms = fitted, list_terms(fitted) if terms is None else terms
        self._column_terms = {one.columns[0]: one for one in self.terms if len(one.columns) == 1}
        self._joint_terms = dict[Name, list[Term]]()
        for one in self.terms:
            for name in one.columns if len(one.columns) > 1 else ():
                self._joint_terms.setdefault(name, []).append(one)
        self._cells, self._rows = dict[str, list[Floats]](), dict[str, list[tuple[Floats, Floats]]]()

    @cached_property
    def column_effects(self) -> list[ColumnEffect]:
        """Every column with values to draw, the most important first."""
        names = dict.fromkeys([*self._column_terms, *(one.column for one in self.terms.inactive)])
        found = [effect for name in names if (effect := self.for_column(name)) is not None]
        return sorted(found, key=lambda one: np.inf if one.importance is None else -one.importance)

    def for_column(self, name: Name) -> ColumnEffect | None:
        """The total effect of a column; None where no term that it is in has values to draw."""
        own, joint = self._column_terms.get(name), self._joint_terms.get(name, [])
        base, terms = self._base(name, own, joint), len(joint) + (own is not None)
        if base is None:
            return None
        if base.contributions is None or not joint:
            return ColumnEffect(name, base, terms, None if own is None else own.importance)
        values, of, share = self._values(name, base)
        total = base.contributions.copy()
        np.add.at(total, of, share[:, None] * self.shift(name, values))
        shifted = replace(base, contributions=total - np.nan_to_num(total @ self.fitted.class_proportions)[:, None])
        return ColumnEffect(name, shifted, terms, self._importance(shifted))

    def without_axis(self, name: Name) -> float | None:
        """The importance of a column that has no values to draw: how far the log-odds move if its value is missing.

        That is the mean over rows that the joint terms expect; None where there are none.
        """
        moved = dict[int, Floats]()
        for one in self._joint_terms.get(name, []):
            rows, part = self._expected_rows(one), self.fitted.plan.parts[one.part_index]
            if rows is None or self.fitted.model.distributions[one.part_index].level_scores() is not None:
                continue
            at = part.columns.index(name)
            first = sum(encoding.width for encoding in part.encodings[:at])
            missing = rows.copy()
            missing[:, first : first + part.encodings[at].width] = 0.0  # as a score, the mean of the column
            law, together = self.fitted.model.distributions[one.part_index], part.prototypes
            read = (lambda x: x) if together is None else together.read
            with_it, without = (law.contributions(read(block))[:, :, one.feature_index] for block in (rows, missing))
            change = np.clip(np.nan_to_num(with_it - without), -_IMPOSSIBLE_LOG_ODDS, _IMPOSSIBLE_LOG_ODDS)
            moved[len(rows)] = moved.get(len(rows), 0.0) + change
        if not moved:
            return None
        return sum(
            float(
                mean_class_difference(
                    np.clip(x, -_IMPOSSIBLE_LOG_ODDS, _IMPOSSIBLE_LOG_ODDS), self.fitted.class_proportions
                ).mean()
            )
            for x in moved.values()
        )

    def shift(self, name: Name, values: Any) -> Floats:
        """(value, class) what all joint terms add to values of a column."""
        out = np.zeros((len(values), len(self.fitted.labels)))
        for one in self._joint_terms.get(name, []):
            part = self.fitted.plan.parts[one.part_index]
            codes = np.asarray(part.encodings[part.columns.index(name)].apply(values))
            if self.fitted.model.distributions[one.part_index].level_scores() is not None:
                effect = self._cell_parts(one)[one.columns.index(name)]
                known = (codes >= 0) & (codes < len(effect))
                out[known] += effect[codes[known]]
            elif len(parts := self._row_parts(one)):
                first = sum(encoding.width for encoding in part.encodings[: part.columns.index(name)])
                for x, (knots, heights) in zip(codes.reshape(len(values), -1).T, parts[first:], strict=False):
                    known = ~np.isnan(x.astype(float))
                    out[known] += _hat_basis(x[known].astype(float), knots) @ heights
        return out

    def _base(self, name: Name, own: Term | None, joint: Sequence[Term]) -> TermAxis | None:
        """The axis of a column's own term, or that of a joint term, without an effect yet, where it has none."""
        if own is not None:
            return build_axis(self.fitted, own)
        for one in joint:
            part = self.fitted.plan.parts[one.part_index]
            if self.fitted.model.distributions[one.part_index].level_scores() is not None:
                found, at = build_term_cells(self.fitted, one), one.columns.index(name)
                often = None
                if found.frequencies is not None:
                    often = found.frequencies.sum(axis=tuple(i for i in range(found.frequencies.ndim) if i != at))
                grid: Any = part.encodings[part.columns.index(name)]
                edges = None if grid.is_read_as_text or not grid.edges else np.array(grid.edges)
                nats = np.zeros((len(found.names[at]), len(self.fitted.labels)))
                alone = replace(one, title=str(name), columns=(name,))
                shape = "levels" if edges is None else "steps"
                return TermAxis(alone, shape, (found.names[at],), nats, often, edges)
        return None

    def _values(self, name: Name, base: TermAxis) -> tuple[Any, Codes, Floats]:
        """Values of a column, the place of each on an axis, and which share of that place it has."""
        assert base.contributions is not None
        n = len(base.contributions)
        if base.shape == "curve":
            return base.positions, np.arange(n), np.ones(n)
        part, feature = self.fitted.plan.parts[base.term.part_index], base.term.feature_index
        encoding: Any = part.encodings[part.columns.index(name)]
        if encoding.is_read_as_text:
            return list(encoding.labels.values[:n]), np.arange(n), np.ones(n)
        answers: Any = self.fitted.model.distributions[base.term.part_index].level_scores()
        bins = np.arange(n) if part.is_joint_term else answers.for_feature(feature)[1]
        often = np.ones(len(bins))
        if self.fitted.has_counts and not part.is_joint_term:
            tally: Any = self.fitted.selected_counts.tallies[base.term.part_index]
            often = tally.counts[:, slice(*answers.offsets[feature : feature + 2])].sum(axis=0) + 1e-9
        return encoding.decode(np.arange(len(bins))), bins, often / np.bincount(bins, often)[bins]

    def _importance(self, one: TermAxis) -> float | None:
        assert one.contributions is not None
        often = one.frequencies
        if one.shape == "curve" and one.histogram is not None and one.positions is not None:
            edges, share = one.histogram
            often = np.interp(one.positions, (edges[1:] + edges[:-1]) / 2, share)
            often = often / max(float(often.sum()), 1e-300)
        if often is None or len(often) != len(one.contributions):
            return None
        return float(
            often
            @ mean_class_difference(
                np.clip(one.contributions, -_IMPOSSIBLE_LOG_ODDS, _IMPOSSIBLE_LOG_ODDS), self.fitted.class_proportions
            )
        )

    def _cell_parts(self, joint: Term) -> list[Floats]:
        key = f"{joint.part_index} {joint.feature_index}"
        if key not in self._cells:
            found = build_term_cells(self.fitted, joint)
            often = np.ones(found.contributions.shape[:-1]) if found.frequencies is None else found.frequencies
            self._cells[key] = additive_parts(
                np.nan_to_num(np.clip(found.contributions, -_IMPOSSIBLE_LOG_ODDS, _IMPOSSIBLE_LOG_ODDS)), often
            )
        return self._cells[key]

    def _row_parts(self, joint: Term) -> list[tuple[Floats, Floats]]:
        key = f"{joint.part_index} {joint.feature_index}"
        if key not in self._rows:
            self._rows[key] = self._fit_rows(joint)
        return self._rows[key]

    def _fit_rows(self, joint: Term) -> list[tuple[Floats, Floats]]:
        """The additive fit to a term without cells: of each number knots, and (knot, class); none where it has none."""
        rows = self._expected_rows(joint)
        if rows is None:
            return []
        law, together = (
            self.fitted.model.distributions[joint.part_index],
            self.fitted.plan.parts[joint.part_index].prototypes,
        )
        n = rows.shape[1]
        at = (
            _KNOT_QUANTILES
            if n * len(_KNOT_QUANTILES) <= _MAX_KNOT_HEIGHTS
            else _KNOT_QUANTILES[:: len(_KNOT_QUANTILES) - 1]
        )
        knots = [np.unique(np.quantile(x, at)) for x in rows.T]
        bases = [_hat_basis(x, own) for x, own in zip(rows.T, knots, strict=True)]
        block = rows if together is None else together.read(rows)
        terms = np.nan_to_num(
            np.clip(law.contributions(block)[:, :, joint.feature_index], -_IMPOSSIBLE_LOG_ODDS, _IMPOSSIBLE_LOG_ODDS)
        )
        design = np.hstack(bases)
        design, target = design - design.mean(axis=0), terms - terms.mean(axis=0)
        gram = design.T @ design + _RIDGE * len(rows) * np.eye(design.shape[1])
        heights = np.split(np.linalg.solve(gram, design.T @ target), np.cumsum([len(own) for own in knots])[:-1])
        each = zip(knots, bases, heights, strict=True)
        return [(own, height - (basis @ height).mean(axis=0)) for own, basis, height in each]

    def _expected_rows(self, joint: Term) -> Floats | None:
        """Rows of a term's columns, encoded as these are, that a distribution expects; None where none can be had.

        A term that reads what was made of its columns takes the rows of another of the same columns.
        """
        part, parts = self.fitted.plan.parts[joint.part_index], self.fitted.plan.parts
        width = sum(encoding.width for encoding in part.encodings)
        same = [i for i, one in enumerate(parts) if one.encodings == part.encodings and one.columns == part.columns]
        for i in same if width <= _MAX_COLUMNS else ():
            if parts[i].prototypes is None:
                try:
                    rows = expected_rows(
                        self.fitted.model.distributions[i], tuple(self.fitted.class_proportions.tolist())
                    )
                except (InputError, ValueError):  # a distribution that cannot draw
                    continue
                rows = rows[np.isfinite(rows).all(axis=1)]
                if rows.shape[1] == width and len(rows):
                    return rows
        return None


def additive_parts(table: Floats, weight: Floats) -> list[Floats]:
    """(level, class) the additive fit to a table (level of each column ..., class), a part a column, each of mean 0.

    >>> table = np.array([[0.0, 3.0], [1.0, 4.0]])[..., None]
    >>> [part.ravel().tolist() for part in additive_parts(table, np.ones((2, 2)))]
    [[-0.5, 0.5], [-1.5, 1.5]]
    """
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
    """(value, knot) how much each knot has of a value between two of them; beyond the ends all is the end's."""
    if len(knots) < 2:
        return np.ones((len(x), len(knots)))
    return np.stack([np.interp(x, knots, unit) for unit in np.eye(len(knots))], axis=1)
