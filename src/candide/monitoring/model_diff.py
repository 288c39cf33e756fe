"""Differences between two models, by how much, and how surprising, from their tallies alone.

A change is measured by the symmetric Kullback-Leibler divergence of the two distributions, KL(a, b) + KL(b, a). Few
rows change easily, so the surprise is that divergence times n_a n_b / (2 (n_a + n_b)): about the log-likelihood ratio
of "they differ" to "they are the same".
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from candide.data.blocks import Floats
from candide.data.table import Name
from candide.distributions.base import symmetric_divergence
from candide.encoding.tokens import format_key
from candide.errors import InputError
from candide.model.counts import ModelCounts, align_counts
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart
from candide.store.file import ModelLike, load_fitted
from candide.tally.base import divide_or_zero

Pair = tuple[float, float]  # before, after


@dataclass(frozen=True)
class ClassChange:
    """A class whose proportion of the rows changed."""

    label: Any
    before: float
    after: float
    divergence: float
    surprise: float
    status: str = ""  # "new", "gone", or neither


@dataclass(frozen=True)
class ColumnChange:
    """A column, or columns modelled together, whose distribution within a class changed, with its parameters."""

    column: Name | tuple[Name, ...]
    label: Any
    event: str
    divergence: float
    surprise: float
    values: dict[str, Pair] = field(default_factory=dict)


@dataclass(frozen=True)
class LevelChange:
    """A level whose probability within a class changed."""

    column: Name
    label: Any
    level: Any
    before: float
    after: float
    divergence: float
    surprise: float
    status: str = ""


@dataclass(frozen=True)
class ModelComparison:
    """All changes, the most surprising first."""

    rows: tuple[int, int]
    classes: list[ClassChange]
    columns: list[ColumnChange]
    levels: list[LevelChange]
    skipped_columns: list[Name] = field(default_factory=list)  # columns whose family gives no divergence here
    dates: frozenset[str] = frozenset()  # columns whose numbers are days since 1970


def diff_models(before: ModelLike, after: ModelLike, limit: int = 12) -> ModelComparison:
    """Compare two models or model files, as :func:`candide.diff_models` documents."""
    fitted = load_fitted(before), load_fitted(after)
    try:
        return compare_models(*fitted, limit)
    except InputError as error:
        if not (isinstance(before, str) and isinstance(after, str)):
            raise
        raise InputError(f"{before} and {after}: {error.problem}", remedy=error.remedy or "") from None


def compare_models(before_model: FittedModel, after_model: FittedModel, limit: int = 1000) -> ModelComparison:
    """Return what changed from one model to the other; at most ``limit`` columns and levels."""
    before, after = align_counts(before_model.counts, after_model.counts)
    columns, levels, skipped = list[ColumnChange](), list[LevelChange](), list[Name]()
    for part, *tallies in zip(before.plan.parts, before.tallies, after.tallies, strict=True):
        if part.is_joint_term:  # its columns are compared by their own distributions
            continue
        try:
            pair = _PartPair(part, before.labels.values, before_model.dates, *tallies)
        except InputError:  # without an estimate, or a divergence
            skipped += part.columns
            continue
        columns += pair.column_changes(limit)
        levels += pair.level_changes(limit)
    columns.sort(key=lambda change: -change.surprise)
    levels.sort(key=lambda change: -change.surprise)
    rows, classes = (before.n_rows, after.n_rows), _class_changes(before, after)
    return ModelComparison(rows, classes, columns[:limit], levels[:limit], skipped, before_model.dates)


class _PartPair:
    """One part before and after: its distributions, their divergence, and the weight of the evidence."""

    def __init__(self, part: PlanPart, labels: tuple[Any, ...], dates: Collection[Name], a: Any, b: Any):
        event, a, b, encodings = part.event.prepare_comparison(a, b, part.encodings)
        self.part, self.labels, self.dates = replace(part, encodings=encodings), labels, dates
        x, y = (event.estimate(tally, None, "map" if part.event.is_joint else "mean") for tally in (a, b))
        moved = x.divergence(y)
        weight = _joint_weight(event.sample_size(a), event.sample_size(b))[:, : moved.shape[1]]
        if part.event.is_joint:  # its columns change as one
            moved, weight = moved.sum(axis=1, keepdims=True), weight[:, :1]
        self.tallies, self.distributions = (a, b), (x, y)
        self.divergence, self.weight = moved, weight  # (class, unit) a unit is a column, or a group of columns

    def column_changes(self, limit: int) -> list[ColumnChange]:
        surprise, event = _surprise(self.divergence, self.weight), self.part.event
        names = [self.part.columns] if event.is_joint else self.part.columns
        changes = []
        for c, j in _top_cells(surprise, limit):
            figures = float(self.divergence[c, j]), float(surprise[c, j]), self._values(c, j)
            changes.append(ColumnChange(names[j], self.labels[c], event.name, *figures))
        return changes

    def level_changes(self, limit: int) -> list[LevelChange]:
        changes = []
        x, y = self.distributions
        for c, (label, pair) in enumerate(zip(self.labels, x.level_pairs(y), strict=False)):
            surprise = _surprise(pair.divergence, self.weight[c, pair.feature])
            figures = pair.before, pair.after, pair.divergence, surprise
            for _, i in _top_cells(surprise[None, :], limit):
                j, place = int(pair.feature[i]), int(pair.level[i])
                encoding = self.part.encodings[j]
                if pair.token_key is not None:
                    level = format_key(pair.token_key(place), x.tokens)  # type: ignore[attr-defined]
                elif encoding.is_read_as_text:
                    level = self.part.levels[j].values[place]
                else:
                    level = encoding.level_names(self.part.columns[j] in self.dates)[place]
                if pair.is_seen is None:  # in all classes
                    counts = [tally.counts[:, tally.offsets[j] + place].sum() for tally in self.tallies]
                else:
                    counts = [seen[i] for seen in pair.is_seen]
                p, q, divergence, surprise_i = (float(values[i]) for values in figures)
                status = _status(*counts)
                changes.append(LevelChange(self.part.columns[j], label, level, p, q, divergence, surprise_i, status))
        return changes

    def _values(self, c: int, j: int) -> dict[str, Pair]:
        """The parameters of a column within a class; of a group the mean, sd and correlation that changed most."""
        if self.part.block_kind == "documents":
            a, b = (float(divide_or_zero(tally.length, tally.n)[c, 0]) for tally in self.tallies)
            return {"words per document": (a, b)}
        x, y = (distribution.parameters() for distribution in self.distributions)
        if not self.part.event.is_joint:
            shape = self.divergence.shape
            return {name: (float(x[name][c, j]), float(y[name][c, j])) for name in x if x[name].shape == shape}
        x, y = ({name: p[name][c] for name in p} for p in (x, y))
        by_mean, by_sd = np.abs(x["mean"] - y["mean"]) / np.minimum(x["sd"], y["sd"]), np.abs(np.log(x["sd"] / y["sd"]))
        names, values = self.part.columns, {}
        for name, i in (("mean", int(by_mean.argmax())), ("sd", int(by_sd.argmax()))):
            values[f"{name} {names[i]}"] = float(x[name][i]), float(y[name][i])
        if "correlation" in x:
            r, s = x["correlation"], y["correlation"]
            k, m = np.unravel_index(np.abs(r - s).argmax(), r.shape)
            values[f"correlation {names[k]}, {names[m]}"] = float(r[k, m]), float(s[k, m])
        return values


def _class_changes(before: ModelCounts, after: ModelCounts) -> list[ClassChange]:
    weights = before.class_weight, after.class_weight
    p, q = (w / max(w.sum(), 1e-300) for w in weights)
    moved = symmetric_divergence(*((w + 0.5) / (w.sum() + 0.5 * len(w)) for w in weights))
    surprise = moved * _joint_weight(weights[0].sum(), weights[1].sum())
    changes = []
    for c, label in enumerate(before.labels.values):
        if moved[c] > 0 or p[c] != q[c]:
            status = _status(*(w[c] for w in weights))
            changes.append(ClassChange(label, float(p[c]), float(q[c]), float(moved[c]), float(surprise[c]), status))
    return sorted(changes, key=lambda change: -change.surprise)


def _joint_weight(n: Any, m: Any) -> Any:
    return 0.5 * divide_or_zero(np.asarray(n) * np.asarray(m), np.asarray(n) + np.asarray(m))


def _surprise(moved: Floats, weight: Floats) -> Floats:
    return np.where(weight > 0, moved * np.where(weight > 0, weight, 1.0), 0.0)


def _top_cells(surprise: Floats, limit: int) -> list[tuple[int, int]]:
    """The cells of the largest surprises above rounding, largest first."""
    flat = surprise.ravel()
    cells = np.flatnonzero(flat > 1e-9)
    if len(cells) > limit:
        cells = cells[np.argpartition(-flat[cells], limit)[:limit]]
    order = cells[np.argsort(-flat[cells], kind="stable")].tolist()
    return [divmod(cell, surprise.shape[1]) for cell in order]


def _status(before: float, after: float) -> str:
    return "new" if before == 0 and after > 0 else "gone" if after == 0 and before > 0 else ""
