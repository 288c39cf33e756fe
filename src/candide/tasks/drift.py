"""Drift: whether new rows are like those that a model has learned from, without a label of theirs.

In one pass the new rows are counted as the model counted its own, and scored: which columns' laws moved, how likely the
rows are under the model, and how often it expects to be right on them.

>>> from candide.demo import rows
>>> from candide.tasks.learn import learn
>>> plants, herb = rows(600, seed=0)
>>> model = learn({**plants, "herb": herb}, "herb", model="naive").fitted
>>> later, _ = rows(400, seed=1)
>>> found = drift(model, {**later, "soil": ["sand"] * 400})
>>> [(one.column, one.adjusted < 0.001) for one in found.columns][:1], found.rows
([('soil', True)], (600, 400))
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from candide.engines.base import Watch, open_source, silent
from candide.engines.batch import blocks, pieces
from candide.engines.reading import Reading
from candide.errors import InputError
from candide.explain.drift import MISSING, STRANGE, Pair, UnseenLevels, at_hand, holm, moves
from candide.kernels import threads
from candide.model.fitted import Fitted
from candide.model.plan import Part
from candide.rows.blocks import Floats
from candide.rows.labels import Labels
from candide.rows.lots import Some
from candide.rows.table import Name
from candide.tasks.models import Model, fitted_of, reading_of
from candide.tasks.scoring import prepare_to_score, scored_blocks

_KEPT = 1 << 16  # rows of which log p(x) is kept, by lot
_LEVELS = 1 << 18  # unseen levels counted one by one; of a column with more, further ones count as one row each
_VALUES = 1 << 22  # numbers kept of them, to see what tails they have
_DRAWN = 10_000  # rows drawn from the model where those that it learned from are not at hand
QUANTILES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_RARE = 0.01  # share of the rows before that lie below what is called unlikely


@dataclass(frozen=True)
class ColumnDrift:
    """How the law of a column moved: by how much, how unlikely that is by chance, and what tells how."""

    column: Name
    event: str
    moved: float  # nats: the population stability index
    p: float
    adjusted: float  # for the number of columns (Holm)
    test: str
    values: dict[str, Pair]  # before and after: share, mean, sd, missing; those that both have
    level: Any = None  # whose share moved most


@dataclass(frozen=True)
class Said:
    """What a model says of some rows: how sure it is, which classes, how likely they are."""

    rows: int
    expected_accuracy: float  # mean probability of the most probable class: right as often, if it is calibrated
    shares: dict[Any, float]  # mean probability of each class
    density: tuple[float, ...]  # quantiles of log p(x); none where the model has no density
    mean_density: float
    unlikely: float  # share of rows below the first hundredth of those before


@dataclass(frozen=True)
class Drift:
    """What moved, most surely first, and what the model says of the rows before and after."""

    rows: tuple[int | None, int]
    columns: list[ColumnDrift]
    before: Said | None  # of rows before, or drawn from the model; None where neither can be had
    after: Said
    drawn: bool  # whether those before were drawn from the model
    left_out: list[Name]  # columns whose counts cannot tell

    @property
    def moved(self) -> list[ColumnDrift]:
        """The columns that have moved by more than chance: one in a hundred such lists names one that has not."""
        return [one for one in self.columns if one.adjusted < 0.01]


def drift(
    model: Model,
    data: Any,
    *,
    before: Any = None,
    reading: Reading | None = None,
    watch: Watch = silent,
) -> Drift:
    """What has moved in new rows since a model was fitted; ``before`` are rows that it has learned from, if at hand.

    Without them log p(x) is compared with rows drawn from the model, which are likelier than real ones where columns
    depend on each other. A model that weighs its columns has no density: log p(x) is that of its columns' own laws.
    """
    fitted = fitted_of(model)
    fitted.census  # noqa: B018  without counts there is nothing to compare with: an error says so
    walk = _Walk(fitted)
    tallies, unseen, after = walk.scan(data, reading, watch)
    old = walk.scan(before, reading, watch)[2] if before is not None else walk.drawn()
    limit = float(np.quantile(old.density, _RARE)) if old is not None and walk.has_density else float("nan")
    seen = [after.numbers] if before is None or old is None else [old.numbers, after.numbers]
    columns, left_out = walk.compare(tallies, unseen, after.n, seen)
    said = None if old is None else old.said(fitted, limit, walk.has_density)
    rows = fitted.census.n_rows, after.n
    return Drift(rows, columns, said, after.said(fitted, limit, walk.has_density), before is None, left_out)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Rows by what a model says of them."""

    n: int
    sure: float  # sums
    shares: Floats
    density: Floats  # of some rows
    numbers: list[Floats]  # of some rows, what was tallied of each part; of no width where it has no tails

    def said(self, fitted: Fitted, limit: float, has_density: bool) -> Said:
        shares = dict(zip(fitted.labels.values, (self.shares / self.n).tolist(), strict=True))
        if not has_density:
            return Said(self.n, self.sure / self.n, shares, (), float("nan"), float("nan"))
        quantiles = tuple(np.quantile(self.density, QUANTILES, method="nearest").tolist())
        unlikely = float((self.density < limit).mean())
        return Said(self.n, self.sure / self.n, shares, quantiles, float(self.density.mean()), unlikely)


class _Unseen:
    """How many rows each unseen level of each column has, and how many those beyond the bound have."""

    def __init__(self) -> None:
        self.levels, self.others = dict[Name, dict[Any, float]](), dict[Name, float]()

    def count(self, name: Name, column: Any) -> None:
        """Add the rows of a column, all of unseen levels."""
        labels = Labels.of(column)
        rows = np.bincount(labels.encode(column), minlength=len(labels)).tolist()
        self._add(name, dict(zip(labels.values, rows, strict=True)))

    def add(self, other: "_Unseen") -> "_Unseen":
        """Add the rows of a later piece."""
        for name, rows in other.levels.items():
            self._add(name, rows)
        for name, n in other.others.items():
            self.others[name] = self.others.get(name, 0.0) + n
        return self

    def _add(self, name: Name, rows: dict[Any, float]) -> None:
        levels = self.levels.setdefault(name, {})
        for value, n in rows.items():
            if value in levels or len(levels) < _LEVELS:
                levels[value] = levels.get(value, 0.0) + n
            else:
                self.others[name] = self.others.get(name, 0.0) + n

    def of(self, name: Name) -> UnseenLevels:
        """The unseen levels of a column."""
        return UnseenLevels(np.array(list(self.levels.get(name, {}).values()), float), self.others.get(name, 0.0))


class _Walk:
    """A model, and which of its parts are the laws of columns."""

    def __init__(self, fitted: Fitted):
        self.fitted, self.story = fitted, fitted.story
        plan, self.at = fitted.plan.of_columns()
        self.parts: Sequence[Part] = plan.parts
        self.old = [fitted.chosen.tallies[i] for i in self.at]
        self.with_levels = [
            str(name)
            for part in self.parts
            if part.holds == "codes"
            for name, encoding in zip(part.columns, part.encodings, strict=True)
            if encoding.as_written
        ]
        self.most = min(_KEPT, _VALUES // max(sum(len(part.columns) for part in self.parts), 1))
        self.has_density = bool(self.at) and all(part.event.has_density for part in self.story.plan.parts)

    def scan(self, data: Any, reading: Reading | None, watch: Watch) -> tuple[list[Any], _Unseen, _Scored]:
        """New rows counted as one class, their unseen levels, and what the model predicts of the rows."""
        fitted = self.fitted
        with open_source(data, reading_of(fitted, reading)) as source, watch(source, "looking"):
            prepare_to_score(source, fitted.plan, fitted)
            kept = [name for name in self.with_levels if name in source.columns]
            scan = source.engine.score(source, fitted.plan, kept)
            found = list[Any]()
            density, numbers = Some(_KEPT), [Some(self.most) for _ in self.parts]
            for piece in threads.ahead(partial(self._one, kept), pieces(scan.batches, len(fitted.labels))):
                density.add(piece[2].density)
                for some, values in zip(numbers, piece[2].numbers, strict=True):
                    some.add(values)
                found = [piece if not found else _added(found[0], piece)]
        if not density.n:
            raise InputError("there are no rows to look at", value=0, remedy="pass new rows")
        tallies, unseen, one = found[0]
        return tallies, unseen, _Scored(one.n, one.sure, one.shares, density.rows, [some.rows for some in numbers])

    def _one(self, kept: list[str], batch: Any) -> tuple[list[Any], _Unseen, _Scored]:
        written = {name: batch.column(f"k{i}") for i, name in enumerate(kept)}
        rows = blocks(self.fitted.plan, batch.select(range(batch.num_columns - len(kept))))
        y, tallies, unseen = np.zeros(batch.num_rows, np.intp), list[Any](), _Unseen()
        numbers = list[Floats]()
        for i, part, old in zip(self.at, self.parts, self.old, strict=True):
            block = _seen_only(rows[i], part, written, unseen)
            tallies.append(None if part.holds == "documents" else type(old).of(block, y, n_classes=1, spec=part.spec))
            numbers.append(at_hand(old, block, part.spec))
        return tallies, unseen, self._scored(rows, numbers)

    def _scored(self, rows: list[Any], numbers: list[Floats]) -> _Scored:
        log_posterior, density = scored_blocks(self.fitted.plan, self.fitted.model, rows)
        if self.story is not self.fitted and self.has_density:
            some = [rows[i] for i in self.at]
            density = scored_blocks(self.story.plan, self.story.model, some)[1]
        p = np.exp(log_posterior)
        return _Scored(len(p), float(p.max(axis=1).sum()), p.sum(axis=0), density, numbers)

    def drawn(self) -> _Scored | None:
        """Rows that the model makes itself, and how likely they are; None where it cannot. They say nothing else."""
        if not self.has_density or any(part.holds == "documents" for part in self.parts):
            return None
        rows, _ = self.story.model.sample(_DRAWN, np.random.default_rng(0))
        made = [np.asfortranarray(block) for block in rows]
        density = scored_blocks(self.story.plan, self.story.model, made)[1]
        return _Scored(_DRAWN, float("nan"), _DRAWN * self.fitted.base, density, [])

    def compare(
        self, tallies: list[Any], unseen: _Unseen, n: int, seen: list[list[Floats]]
    ) -> tuple[list[ColumnDrift], list[Name]]:
        found, left_out = list[tuple[Part, int, Any, Any]](), list[Name]()
        rows = float(self.fitted.census.class_weight.sum()), float(n)
        for i, (part, old, new) in enumerate(zip(self.parts, self.old, tallies, strict=True)):
            if new is None:
                left_out += part.columns
                continue
            _, a, b, encodings = part.event.compared(old.pool(), new, part.encodings)
            each = moves(a, b, rows, [unseen.of(name) for name in part.columns], [side[i] for side in seen])
            if each is None:
                left_out += part.columns
                continue
            found += [(part, j, move, encodings) for j, move in enumerate(each)]
        adjusted = holm([move.p for _, _, move, _ in found])
        dates = self.fitted.dates
        columns = [
            ColumnDrift(
                part.columns[j], part.event.name, move.moved, move.p, p, move.test, move.values,
                _level(part, j, move.at, encodings, part.columns[j] in dates),
            )
            for (part, j, move, encodings), p in zip(found, adjusted, strict=True)
        ]  # fmt: skip
        return sorted(columns, key=lambda one: (one.adjusted, -one.moved)), left_out


def _added(a: Any, b: Any) -> Any:
    tallies = [None if x is None else x + y for x, y in zip(a[0], b[0], strict=True)]
    one, other = a[2], b[2]
    return (
        tallies,
        a[1].add(b[1]),
        _Scored(one.n + other.n, one.sure + other.sure, one.shares + other.shares, one.density[:0], []),
    )


def _seen_only(block: Any, part: Part, written: dict[str, Any], unseen: _Unseen) -> Any:
    """A block of rows in which unseen levels are absent; these are counted in ``unseen``."""
    if part.holds != "codes":
        return block
    codes = np.asarray(block)
    sizes = np.array([encoding.n_levels or 0 for encoding in part.encodings])
    odd = codes >= sizes
    if not odd.any():
        return block
    for j in np.flatnonzero(odd.any(axis=0)).tolist():
        name, rows = part.columns[j], np.flatnonzero(odd[:, j])
        unseen.count(name, written.get(str(name), codes[:, j]).take(rows))
    return np.asfortranarray(np.where(odd, -1, codes))


def _level(part: Part, j: int, at: int | None, encodings: Any, is_date: bool) -> Any:
    if at is None:
        return None
    if at in (MISSING, STRANGE):
        return "missing" if at == MISSING else "never met"
    encoding = encodings[j]
    return part.levels[j].values[at] if encoding.as_written else encoding.names(is_date)[at]
