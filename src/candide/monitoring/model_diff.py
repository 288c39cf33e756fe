"""Model differences: what changed between two models, by how much, and how surprising that is. From the tallies alone.

A change is measured by the symmetric Kullback-Leibler divergence of the two distributions, KL(a, b) + KL(b, a): 0 where
nothing changed, whatever the units. Few rows change easily, so the surprise is that divergence times
n_a n_b / (2 (n_a + n_b)): about the log-likelihood ratio of "they differ" to "they are the same".

>>> from candide.demo import garden
>>> herbs, dry = FittedModel(garden()), garden()
>>> dry.tallies[2].counts[2, :3] = [80, 5, 15]  # thyme is found on chalk now, no longer on sand
>>> comparison = diff_models(herbs, FittedModel(dry))
>>> [(m.column, m.label, round(m.divergence, 2), round(m.surprise)) for m in comparison.columns[:1]]
[('soil', 'thyme', 0.75, 19)]
>>> [(m.level, round(m.before, 2), round(m.after, 2)) for m in comparison.levels[:2]]
[('sand', 0.54, 0.16), ('chalk', 0.4, 0.79)]
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.blocks import Floats
from candide.data.table import Name
from candide.distributions import Distribution
from candide.distributions.base import symmetric_divergence as contribution
from candide.encoding.tokens import format_key
from candide.errors import InputError
from candide.model.counts import ModelCounts, align_counts
from candide.model.fitted import FittedModel
from candide.model.plan import PlanPart
from candide.store.models import ModelLike, load_fitted
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
    """Return what changed between two models or model files: classes, columns and levels, ``limit`` of each."""
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
    columns: list[ColumnChange] = []
    levels: list[LevelChange] = []
    skipped: list[Name] = []
    for part, *tallies in zip(before.plan.parts, before.tallies, after.tallies, strict=True):
        if part.is_joint_term:  # its columns are compared by their own distributions
            continue
        try:
            pair = _PartPair.from_tallies(part, before.labels.values, before_model.dates, *tallies)
        except InputError:  # without an estimate, or a divergence
            skipped += part.columns
            continue
        columns += pair.columns(limit)
        levels += pair.levels(limit)
    columns.sort(key=lambda m: -m.surprise)
    levels.sort(key=lambda m: -m.surprise)
    classes = _class_changes(before, after)
    return ModelComparison(
        (before.n_rows, after.n_rows), classes, columns[:limit], levels[:limit], skipped, before_model.dates
    )


@dataclass(frozen=True)
class _PartPair:
    """One part before and after: its distributions, their divergence, and the weight of the evidence."""

    part: PlanPart
    labels: tuple[Any, ...]
    tallies: tuple[Any, Any]
    distributions: tuple[Distribution, Distribution]
    divergence: Floats  # (class, unit) a unit is a column, or a group of columns
    weight: Floats  # (class, unit)
    dates: Collection[Name]

    @classmethod
    def from_tallies(
        cls, part: PlanPart, labels: tuple[Any, ...], dates: Collection[Name], a: Any, b: Any
    ) -> "_PartPair":
        event, a, b, encodings = part.event.prepare_comparison(a, b, part.encodings)
        part = replace(part, encodings=encodings)
        x, y = (event.estimate(tally, None, "map" if part.event.is_joint else "mean") for tally in (a, b))
        moved = x.divergence(y)
        weight = _joint_weight(event.sample_size(a), event.sample_size(b))[:, : moved.shape[1]]
        if part.event.is_joint:  # its columns change as one
            moved, weight = moved.sum(axis=1, keepdims=True), weight[:, :1]
        return cls(part, labels, (a, b), (x, y), moved, weight, dates)

    def columns(self, most: int) -> list[ColumnChange]:
        surprise = _surprise(self.divergence, self.weight)
        names, event = [self.part.columns] if self.part.event.is_joint else self.part.columns, self.part.event.name
        return [
            ColumnChange(
                names[j], self.labels[c], event, float(self.divergence[c, j]), float(surprise[c, j]), self._values(c, j)
            )
            for c, j in _top_cells(surprise, most)
        ]

    def levels(self, most: int) -> list[LevelChange]:
        found = []
        x, y = self.distributions
        for c, (label, pair) in enumerate(zip(self.labels, x.level_pairs(y), strict=False)):
            surprise = _surprise(pair.divergence, self.weight[c, pair.feature])
            for _, i in _top_cells(surprise[None, :], most):
                j, place = int(pair.feature[i]), int(pair.level[i])
                level = self._level(j, place) if pair.token_key is None else format_key(pair.token_key(place), x.tokens)  # type: ignore[attr-defined]
                known = (
                    self._level_counts(j, place) if pair.is_seen is None else (pair.is_seen[0][i], pair.is_seen[1][i])
                )
                p, q, by, surprises = (float(v[i]) for v in (pair.before, pair.after, pair.divergence, surprise))
                found.append(LevelChange(self.part.columns[j], label, level, p, q, by, surprises, _status(*known)))
        return found

    def _level(self, j: int, place: int) -> Any:
        encoding = self.part.encodings[j]
        if encoding.is_read_as_text:
            return self.part.levels[j].values[place]
        return encoding.level_names(self.part.columns[j] in self.dates)[place]

    def _level_counts(self, j: int, place: int) -> tuple[float, float]:
        """Return how often a level was counted before and after, in all classes."""
        a, b = (tally.counts[:, tally.offsets[j] + place].sum() for tally in self.tallies)
        return a, b

    def _values(self, c: int, j: int) -> dict[str, Pair]:
        """Return the parameters of a column within a class, before and after."""
        if self.part.block_kind == "documents":
            a, b = (float(divide_or_zero(tally.length, tally.n)[c, 0]) for tally in self.tallies)
            return {"words per document": (a, b)}
        x, y = (distribution.parameters() for distribution in self.distributions)
        if self.part.event.is_joint:
            return _group_values(self.part.columns, *({name: p[name][c] for name in p} for p in (x, y)))
        shape = self.divergence.shape
        return {name: (float(x[name][c, j]), float(y[name][c, j])) for name in x if x[name].shape == shape}


def _class_changes(before: ModelCounts, after: ModelCounts) -> list[ClassChange]:
    weights = before.class_weight, after.class_weight
    p, q = (w / max(w.sum(), 1e-300) for w in weights)
    moved = contribution(*((w + 0.5) / (w.sum() + 0.5 * len(w)) for w in weights))
    joint = _joint_weight(weights[0].sum(), weights[1].sum())
    found = [
        ClassChange(
            label,
            float(p[c]),
            float(q[c]),
            float(moved[c]),
            float(moved[c] * joint),
            _status(weights[0][c], weights[1][c]),
        )
        for c, label in enumerate(before.labels.values)
        if moved[c] > 0 or p[c] != q[c]
    ]
    return sorted(found, key=lambda m: -m.surprise)


def _group_values(names: tuple[Name, ...], x: dict[str, Floats], y: dict[str, Floats]) -> dict[str, Pair]:
    """Return the mean, the deviation and the correlation that changed most."""
    by_mean, by_sd = np.abs(x["mean"] - y["mean"]) / np.minimum(x["sd"], y["sd"]), np.abs(np.log(x["sd"] / y["sd"]))
    i, j = int(by_mean.argmax()), int(by_sd.argmax())
    found = {
        f"mean {names[i]}": (float(x["mean"][i]), float(y["mean"][i])),
        f"sd {names[j]}": (float(x["sd"][j]), float(y["sd"][j])),
    }
    if "correlation" in x:
        r, s = x["correlation"], y["correlation"]
        k, m = np.unravel_index(np.abs(r - s).argmax(), r.shape)
        found[f"correlation {names[k]}, {names[m]}"] = (float(r[k, m]), float(s[k, m]))
    return found


def _joint_weight(n: Any, m: Any) -> Any:
    return 0.5 * divide_or_zero(np.asarray(n) * np.asarray(m), np.asarray(n) + np.asarray(m))


def _surprise(moved: Floats, weight: Floats) -> Floats:
    return np.where(weight > 0, moved * np.where(weight > 0, weight, 1.0), 0.0)


def _top_cells(surprise: Floats, limit: int) -> list[tuple[int, int]]:
    """The cells of the largest surprises above rounding, largest first."""
    flat = surprise.ravel()
    some = np.flatnonzero(flat > 1e-9)
    if len(some) > limit:
        some = some[np.argpartition(-flat[some], limit)[:limit]]
    order: NDArray[np.intp] = some[np.argsort(-flat[some], kind="stable")]
    return [(int(i) // surprise.shape[1], int(i) % surprise.shape[1]) for i in order]


def _status(before: float, after: float) -> str:
    return "new" if before == 0 and after > 0 else "gone" if after == 0 and before > 0 else ""
