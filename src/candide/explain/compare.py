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

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.distributions import Density, LevelTable, LogScale, Normal, Switch, TermWeights
from candide.errors import InputError
from candide.events import Complement, Multinomial
from candide.kernels import text as kernel
from candide.model.census import Census, align
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.documents import shown
from candide.rows.table import Name
from candide.tally import Terms
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


@dataclass(frozen=True)
class _Cells:
    """(class, feature) divergences of a part and the parameters behind them, and per level where it has levels."""

    moved: Floats
    values: dict[str, tuple[Floats, Floats]]
    levels: tuple[Floats, Floats] | None = None  # (class, all levels) probabilities


def compare(a: Fitted, b: Fitted, most: int = 1000) -> Comparison:
    """What moved from model ``a`` to model ``b``; at most so many columns and levels of each."""
    before, after = align(a.census, b.census)
    columns: list[ColumnMove] = []
    levels: list[LevelMove] = []
    left_out: list[Name] = []
    labels = before.labels.values
    for i, part in enumerate(before.plan.parts):
        tallies = before.tallies[i], after.tallies[i]
        if part.has_documents:
            moves = _text_moves(part, labels, *tallies, most)  # type: ignore[arg-type]
            columns, levels = columns + moves[0], levels + moves[1]
            continue
        together = _group_moves(part, labels, *tallies) if part.is_group else None
        if together is not None:
            columns += together
            continue
        cells = None if part.is_group else _cells(part, *tallies)
        if cells is None:
            left_out += part.columns
            continue
        weight = _joint(tallies[0].n, tallies[1].n)  # type: ignore[attr-defined]
        surprise = _times(cells.moved, weight)
        for c, j in _top(surprise, most):
            values = {k: (float(x[c, j]), float(y[c, j])) for k, (x, y) in cells.values.items()}
            columns.append(
                ColumnMove(
                    part.columns[j], labels[c], part.event.name, float(cells.moved[c, j]), float(surprise[c, j]), values
                )
            )
        if part.has_levels and cells.levels is not None:
            levels += _level_moves(part, labels, cells.levels, tallies, weight, most)
    columns.sort(key=lambda m: -m.surprise)
    levels.sort(key=lambda m: -m.surprise)
    classes = _class_moves(before, after)
    return Comparison((before.n_rows, after.n_rows), classes, columns[:most], levels[:most], left_out)


def _class_moves(before: Census, after: Census) -> list[ClassMove]:
    weights = before.class_weight, after.class_weight
    p, q = (w / max(w.sum(), 1e-300) for w in weights)
    moved = _terms(*((w + 0.5) / (w.sum() + 0.5 * len(w)) for w in weights))
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


def _level_moves(
    part: Part, labels: Any, p: tuple[Floats, Floats], tallies: Any, weight: Floats, most: int
) -> list[LevelMove]:
    offsets = tallies[0].offsets
    feature = np.repeat(np.arange(len(part.columns)), np.diff(offsets))
    moved = _terms(*p)
    surprise = _times(moved, weight[:, feature])
    seen = tallies[0].counts.sum(axis=0), tallies[1].counts.sum(axis=0)
    found = []
    for c, at in _top(surprise, most):
        j = feature[at]
        level, status = part.levels[j].values[at - offsets[j]], _status(seen[0][at], seen[1][at])
        p_before, p_after, by, shock = (float(array[c, at]) for array in (*p, moved, surprise))
        found.append(LevelMove(part.columns[j], labels[c], level, p_before, p_after, by, shock, status))
    return found


def _text_moves(part: Part, labels: Any, a: Terms, b: Terms, most: int) -> tuple[list[ColumnMove], list[LevelMove]]:
    """How the terms of a column of text moved: their shares of a class's terms, or of its documents."""
    event: Any = part.event
    a, b = event.weighed(a).tally, event.weighed(b).tally
    places, new = kernel.unite(a.letters, a.starts, b.letters, b.starts)
    n_terms = a.n_terms + len(new)
    words = a.word, places[b.word]
    seen = [np.bincount(w, t.documents, n_terms) for w, t in zip(words, (a, b), strict=True)]
    columns, levels = [], []
    for c, label in enumerate(labels):
        mine = [slice(t.classes[c], t.classes[c + 1]) for t in (a, b)]
        met = np.union1d(*(w[cells] for w, cells in zip(words, mine, strict=True)))
        p, q, weight = _shares(event, c, (a, b), words, mine, met, n_terms)
        moved = _terms(p, q)
        if event.model == "bernoulli":
            moved += _terms(1.0 - p, 1.0 - q)
        total = float(moved[:-1].sum() + moved[-1] * (n_terms - len(met)))  # the last is that of a term met in neither
        surprise = _times(moved[None, :-1], weight)
        lengths = tuple(float(ratio(t.length, t.n)[c, 0]) for t in (a, b))
        values = {"terms a document": (lengths[0], lengths[1])}
        if total * weight > 1e-9:
            columns.append(ColumnMove(part.columns[0], label, event.name, total, float(total * weight), values))
        for _, at in _top(surprise, most):
            i = int(met[at])
            key = a.key(i) if i < a.n_terms else b.key(int(new[i - a.n_terms]))
            before, after, by, shock = (float(v) for v in (p[at], q[at], moved[at], surprise[0, at]))
            term, status = shown(key, event.tokens), _status(seen[0][i], seen[1][i])
            levels.append(LevelMove(part.columns[0], label, term, before, after, by, shock, status))
    return columns, levels


def _shares(
    event: Any, c: int, tallies: Any, words: Any, mine: Any, met: NDArray, n_terms: int
) -> tuple[Floats, Floats, Floats]:
    """Before and after, the shares of the terms met in a class and, last, of one that was not; and their weight."""
    shares, sizes = [], []
    for tally, word, cells in zip(tallies, words, mine, strict=True):
        count = np.zeros(len(met) + 1)
        present = event.model == "bernoulli"
        count[np.searchsorted(met, word[cells])] = (tally.documents if present else tally.total)[cells]
        sizes.append(tally.n[c, 0] if present else count.sum())
        shares.append((count + event.smallest) / (sizes[-1] + event.smallest * (2 if present else n_terms)))
    return shares[0], shares[1], np.asarray(_joint(*sizes))


def _group_moves(part: Part, labels: Any, a: Any, b: Any) -> list[ColumnMove] | None:
    """How columns modelled together moved, as one; None where an estimate cannot be had."""
    try:
        x, y = (part.event.estimate(tally, None, "map").parameters() for tally in (a, b))
    except InputError:
        return None
    weight, found = _joint(a.weight[:, 0], b.weight[:, 0]), []
    for c, label in enumerate(labels):
        moved = _normals_together(*(x[name][c] for name in x), *(y[name][c] for name in x))
        if moved * weight[c] > 1e-9:
            values = _told_of_group(part, *({name: p[name][c] for name in p} for p in (x, y)))
            surprise = float(moved * weight[c])
            found.append(ColumnMove(part.columns, label, part.event.name, moved, surprise, values))
    return found


def _normals_together(m: Floats, s: Floats, r: Floats, n: Floats, t: Floats, q: Floats) -> float:
    """The symmetric divergence of two normals of several columns: means, deviations and correlations of each."""
    between, ratio_ = (m - n) / s, t / s  # in the units of the first
    other = q * ratio_[:, None] * ratio_
    twice = sum(
        np.trace(np.linalg.solve(a, b)) + between @ np.linalg.solve(a, between) for a, b in ((r, other), (other, r))
    )
    return max(0.0, float(0.5 * twice - len(m)))


def _told_of_group(part: Part, x: dict[str, Floats], y: dict[str, Floats]) -> dict[str, Pair]:
    """The mean, the deviation and the correlation that moved most."""
    by_mean, by_sd = np.abs(x["mean"] - y["mean"]) / np.minimum(x["sd"], y["sd"]), np.abs(np.log(x["sd"] / y["sd"]))
    i, j, names = int(by_mean.argmax()), int(by_sd.argmax()), part.columns
    k, m = np.unravel_index(np.abs(x["correlation"] - y["correlation"]).argmax(), x["correlation"].shape)
    return {
        f"mean {names[i]}": (float(x["mean"][i]), float(y["mean"][i])),
        f"sd {names[j]}": (float(x["sd"][j]), float(y["sd"][j])),
        f"correlation {names[k]}, {names[m]}": (float(x["correlation"][k, m]), float(y["correlation"][k, m])),
    }


def _cells(part: Part, a: Any, b: Any) -> _Cells | None:
    """The divergence of every column in every class; None where an estimate cannot be had."""
    event = Multinomial(prior=part.event.prior) if isinstance(part.event, Complement) else part.event
    try:
        x, y = (event.estimate(tally, None, "mean") for tally in (a, b))
    except InputError:
        return None
    if isinstance(x, LogScale) and isinstance(y, LogScale):  # a divergence does not change with the scale
        x, y = x.base, y.base
    if isinstance(x, Normal) and isinstance(y, Normal):
        values = {"mean": (x.mean, y.mean), "sd": (np.sqrt(x.variance), np.sqrt(y.variance))}
        return _Cells(_normals(x, y), values)
    if isinstance(x, Density) and isinstance(y, Density) and x.params.keys() == y.params.keys() == {"rate"}:
        return _Cells(_rates(event.name, x.params["rate"], y.params["rate"]), _means(a, b))
    if isinstance(x, LevelTable) and isinstance(y, LevelTable):
        p, q = np.exp(x.table.T), np.exp(y.table.T)
        return _Cells(a.per_feature(_terms(p, q)), {}, (p, q))
    if isinstance(x, Switch) and isinstance(y, Switch):
        yes, no = (np.exp(x.log_yes), np.exp(y.log_yes)), (np.exp(x.log_no), np.exp(y.log_no))
        return _Cells(_terms(*yes) + _terms(*no), {"probability": yes})
    if isinstance(x, TermWeights) and isinstance(y, TermWeights):
        p, q = np.exp(x.weights.T), np.exp(y.weights.T)
        return _Cells(_terms(p, q), {"probability": (p, q)})
    return None


def _normals(x: Normal, y: Normal) -> Floats:
    """Kullback and Leibler (1951), both ways: the logs cancel."""
    gap = (x.mean - y.mean) ** 2
    return 0.5 * ((x.variance + gap) / y.variance + (y.variance + gap) / x.variance) - 1.0


def _rates(event: str, x: Floats, y: Floats) -> Floats:
    return x / y + y / x - 2.0 if event == "exponential" else _terms(x, y)


def _means(a: Any, b: Any) -> dict[str, tuple[Floats, Floats]]:
    return {"mean": (ratio(a.total, a.n), ratio(b.total, b.n))}


def _terms(p: Floats, q: Floats) -> Floats:
    """(p - q) log(p / q): what each level, word or rate adds to the symmetric divergence; 0 where they are equal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p == q, 0.0, (p - q) * (np.log(p) - np.log(q)))


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
