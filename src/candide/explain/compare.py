"""Compare: what moved between two models, by how much, and how surprising that is. From the tallies alone.

A move is measured by the symmetric Kullback-Leibler divergence of the two distributions, KL(a, b) + KL(b, a), in nats:
0 where nothing moved, whatever the units. Few rows move easily, so the surprise is that divergence times
n_a n_b / (2 (n_a + n_b)): about the log-likelihood ratio of "they differ" to "they are the same".

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> herbs = Fitted(garden())
>>> dry = garden()
>>> dry.tallies[2].counts[2, :3] = [80, 5, 15]  # thyme is found on chalk now, no longer on sand
>>> [(m.column, m.label, round(m.moved, 2), round(m.surprise)) for m in compare(herbs, Fitted(dry)).columns[:1]]
[('soil', 'thyme', 0.75, 19)]
>>> [(m.level, round(m.before, 2), round(m.after, 2)) for m in compare(herbs, Fitted(dry)).levels[:2]]
[('sand', 0.54, 0.16), ('chalk', 0.4, 0.79)]
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions import Distribution
from candide.distributions.base import moved as contribution
from candide.encode.tokens import shown
from candide.errors import InputError
from candide.model.census import Census, align
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.table import Name
from candide.tally.base import ratio

Pair = tuple[float, float]  # before, after


@dataclass(frozen=True)
class ClassMove:
    """A class whose share of the rows moved."""

    label: Any
    before: float
    after: float
    moved: float
    surprise: float
    status: str = ""  # "new", "gone", or neither


@dataclass(frozen=True)
class ColumnMove:
    """A column, or columns modelled together, whose distribution within a class moved; what tells how."""

    column: Name | tuple[Name, ...]
    label: Any
    event: str
    moved: float
    surprise: float
    values: dict[str, Pair] = field(default_factory=dict)


@dataclass(frozen=True)
class LevelMove:
    """A level whose probability within a class moved."""

    column: Name
    label: Any
    level: Any
    before: float
    after: float
    moved: float
    surprise: float
    status: str = ""


@dataclass(frozen=True)
class Comparison:
    """All that moved, most surprising first."""

    rows: tuple[int, int]
    classes: list[ClassMove]
    columns: list[ColumnMove]
    levels: list[LevelMove]
    left_out: list[Name] = field(default_factory=list)  # columns whose family gives no divergence here
    dates: frozenset[str] = frozenset()  # columns whose numbers are days since 1970


def compare(a: Fitted, b: Fitted, most: int = 1000) -> Comparison:
    """What moved from model ``a`` to model ``b``; at most so many columns and levels of each."""
    before, after = align(a.census, b.census)
    columns: list[ColumnMove] = []
    levels: list[LevelMove] = []
    left_out: list[Name] = []
    for part, *tallies in zip(before.plan.parts, before.tallies, after.tallies, strict=True):
        if part.beside:  # its columns are compared by their own laws
            continue
        try:
            pair = _Pair.of(part, before.labels.values, a.dates, *tallies)
        except InputError:  # an estimate cannot be had, or its law has no divergence
            left_out += part.columns
            continue
        columns += pair.columns(most)
        levels += pair.levels(most)
    columns.sort(key=lambda m: -m.surprise)
    levels.sort(key=lambda m: -m.surprise)
    classes = _class_moves(before, after)
    return Comparison((before.n_rows, after.n_rows), classes, columns[:most], levels[:most], left_out, a.dates)


@dataclass(frozen=True)
class _Pair:
    """One part before and after: its laws, how far they are apart, and how much evidence there is for it."""

    part: Part
    labels: tuple[Any, ...]
    tallies: tuple[Any, Any]
    laws: tuple[Distribution, Distribution]
    moved: Floats  # (class, unit) a unit is a column, or a group of columns
    weight: Floats  # (class, unit)
    dates: Collection[Name]

    @classmethod
    def of(cls, part: Part, labels: tuple[Any, ...], dates: Collection[Name], a: Any, b: Any) -> "_Pair":
        event, a, b, encodings = part.event.compared(a, b, part.encodings)
        part = replace(part, encodings=encodings)
        x, y = (event.estimate(tally, None, "map" if part.event.joint else "mean") for tally in (a, b))
        moved = x.divergence(y)
        weight = _joint(event.sample_size(a), event.sample_size(b))[:, : moved.shape[1]]
        if part.event.joint:  # its columns move as one
            moved, weight = moved.sum(axis=1, keepdims=True), weight[:, :1]
        return cls(part, labels, (a, b), (x, y), moved, weight, dates)

    def columns(self, most: int) -> list[ColumnMove]:
        surprise = _times(self.moved, self.weight)
        names, event = [self.part.columns] if self.part.event.joint else self.part.columns, self.part.event.name
        return [
            ColumnMove(
                names[j], self.labels[c], event, float(self.moved[c, j]), float(surprise[c, j]), self._values(c, j)
            )
            for c, j in _top(surprise, most)
        ]

    def levels(self, most: int) -> list[LevelMove]:
        found = []
        x, y = self.laws
        for c, (label, pair) in enumerate(zip(self.labels, x.level_pairs(y), strict=False)):
            surprise = _times(pair.moved, self.weight[c, pair.feature])
            for _, i in _top(surprise[None, :], most):
                j, place = int(pair.feature[i]), int(pair.place[i])
                level = self._level(j, place) if pair.key is None else shown(pair.key(place), x.tokens)  # type: ignore[attr-defined]
                known = self._met(j, place) if pair.known is None else (pair.known[0][i], pair.known[1][i])
                p, q, by, shock = (float(v[i]) for v in (pair.before, pair.after, pair.moved, surprise))
                found.append(LevelMove(self.part.columns[j], label, level, p, q, by, shock, _status(*known)))
        return found

    def _level(self, j: int, place: int) -> Any:
        encoding = self.part.encodings[j]
        if encoding.as_written:
            return self.part.levels[j].values[place]
        return encoding.names(self.part.columns[j] in self.dates)[place]

    def _met(self, j: int, place: int) -> tuple[float, float]:
        """How often a level was counted before and after, in all classes together."""
        a, b = (tally.counts[:, tally.offsets[j] + place].sum() for tally in self.tallies)
        return a, b

    def _values(self, c: int, j: int) -> dict[str, Pair]:
        """The numbers that tell how a column moved within a class."""
        if self.part.holds == "documents":
            a, b = (float(ratio(tally.length, tally.n)[c, 0]) for tally in self.tallies)
            return {"terms a document": (a, b)}
        x, y = (law.parameters() for law in self.laws)
        if self.part.event.joint:
            return _of_group(self.part.columns, *({name: p[name][c] for name in p} for p in (x, y)))
        shape = self.moved.shape
        return {name: (float(x[name][c, j]), float(y[name][c, j])) for name in x if x[name].shape == shape}


def _class_moves(before: Census, after: Census) -> list[ClassMove]:
    weights = before.class_weight, after.class_weight
    p, q = (w / max(w.sum(), 1e-300) for w in weights)
    moved = contribution(*((w + 0.5) / (w.sum() + 0.5 * len(w)) for w in weights))
    joint = _joint(weights[0].sum(), weights[1].sum())
    found = [
        ClassMove(
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


def _of_group(names: tuple[Name, ...], x: dict[str, Floats], y: dict[str, Floats]) -> dict[str, Pair]:
    """The mean, the deviation and the correlation that moved most."""
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


def _joint(n: Any, m: Any) -> Any:
    return 0.5 * ratio(np.asarray(n) * np.asarray(m), np.asarray(n) + np.asarray(m))


def _times(moved: Floats, weight: Floats) -> Floats:
    return np.where(weight > 0, moved * np.where(weight > 0, weight, 1.0), 0.0)


def _top(surprise: Floats, most: int) -> list[tuple[int, int]]:
    """The cells of the largest surprises above rounding, largest first."""
    flat = surprise.ravel()
    some = np.flatnonzero(flat > 1e-9)
    if len(some) > most:
        some = some[np.argpartition(-flat[some], most)[:most]]
    order: NDArray[np.intp] = some[np.argsort(-flat[some], kind="stable")]
    return [(int(i) // surprise.shape[1], int(i) % surprise.shape[1]) for i in order]


def _status(before: float, after: float) -> str:
    return "new" if before == 0 and after > 0 else "gone" if after == 0 and before > 0 else ""
