"""Counting a source: what its engine says itself, and the rest from its batches by the array engine.

Documents, columns modelled together and a user's own transform are such a rest, and all columns of a table so wide that
a query of them is slow to plan. Both are one census a fold.

>>> from candide.engines.base import open_source
>>> from candide.engines.prepare import prepare
>>> rows = {"note": ["free prize for you now", "see you at five then"] * 12, "age": [8.0, 30.5] * 12, "y": [1, 0] * 12}
>>> with open_source(rows) as source:
...     [census] = count(Rows(source, "y"), prepare(source, "y", {"note": "text"})).censuses
>>> [type(tally).__name__ for tally in census.tallies]
['Terms', 'Moments']
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from candide.encode import Levels, Move
from candide.engines import arrays
from candide.engines.base import Counted, Folds, Prepared, Rows
from candide.engines.batch import places
from candide.errors import InputError
from candide.kernels import threads
from candide.model.census import Census, join
from candide.model.plan import Part, Plan
from candide.rows.arrow import arrow_numbers
from candide.rows.labels import Labels
from candide.rows.matching import read_levels
from candide.rows.table import Table
from candide.rows.targets import has_label
from candide.tally.spread import scale_of

_LOOK = 1 << 10  # rows, where none were looked at before


def count(rows: Rows, prepared: Prepared) -> Counted:
    """One census a fold (one in all without folds)."""
    counted = _count(rows, prepared)
    if not rows.source.untyped:
        return counted
    labels = Labels.of([label for census in counted.censuses for label in census.labels.values])
    meant = read_levels(list(labels.values))
    return replace(counted, censuses=[census.relabelled(meant) for census in counted.censuses])


def _count(rows: Rows, prepared: Prepared) -> Counted:
    engine, plan = rows.source.engine, prepared.plan
    own = engine.own(plan, rows)
    itself, rest = _plan_of(plan, own), _plan_of(plan, [part for part in plan.parts if part not in own])
    if set(itself.columns) <= set(rest.columns):  # all of them are read anyway
        itself, rest = _plan_of(plan, []), plan
    if not rest.parts:
        return _exactly(rows, prepared, engine.count(rows, prepared))
    rows.source.passes = 2 if itself.parts else 1
    read = _from_batches(rows, replace(prepared, plan=rest))
    if not itself.parts:
        return read
    mine = replace(prepared, plan=itself)
    asked = _exactly(rows, mine, engine.count(rows, mine))
    joined = [join(a, b, plan) for a, b in zip(asked.censuses, read.censuses, strict=True)]
    return Counted(joined, read.unlabelled)


def _exactly(rows: Rows, prepared: Prepared, counted: Counted) -> Counted:
    """What an engine sums in doubles, with columns that spread too far for that summed again, exactly, from batches."""
    head, far = None, list[tuple[int, list[int]]]()
    for i, part in enumerate(prepared.plan.parts):
        tallies = [census.tallies[i] for census in counted.censuses]
        if tallies[0].can_be_far:
            head = _look(rows, prepared) if head is None else head
            scale = _scale(part, head)
            columns = sorted({int(j) for tally in tallies for j in tally.far(scale)})
            far += [(i, columns)] if columns else []
    if not far:
        return counted
    plan = _plan_of(prepared.plan, [prepared.plan.parts[i].only(columns) for i, columns in far])
    rows.source.passes += 1
    again = _from_batches(rows, replace(prepared, plan=plan))
    pairs = zip(counted.censuses, again.censuses, strict=True)
    return replace(counted, censuses=[_mended(census, exact, far) for census, exact in pairs])


def _look(rows: Rows, prepared: Prepared) -> Table:
    """Some rows of the plan's columns."""
    head = rows.source.head(_LOOK) if prepared.head is None else prepared.head
    return Table.of(head.select([str(name) for name in prepared.plan.columns]))


def _scale(part: Part, head: Table) -> NDArray[np.float64]:
    """How fine the values of each column are; where the head does not say it in numbers, none is far."""
    try:
        block = part.spec.tallied(np.asarray(part.block(head), np.float64))
    except InputError:
        return np.full(len(part.columns), np.inf)
    return scale_of(block, len(block))


def _mended(census: Census, exact: Census, places: list[tuple[int, list[int]]]) -> Census:
    """A census in which some columns of some parts are as another has counted them."""
    classes = np.array([census.labels.index[label] for label in exact.labels.values], np.intp)
    tallies: list[Any] = list(census.tallies)
    for (i, columns), tally in zip(places, exact.tallies, strict=True):
        moved = tally.remap(classes, len(census.labels))
        for at, j in enumerate(columns):
            tallies[i] = tallies[i].with_feature(j, moved, at)
    return replace(census, tallies=tuple(tallies))


def _plan_of(plan: Plan, parts: list[Part]) -> Plan:
    """The plan of some of the parts."""
    used = {name for part in parts for name in part.columns}
    return Plan(tuple(name for name in plan.columns if name in used), tuple(parts))


def _each_once(plan: Plan) -> Plan:
    """A plan that reads every column once, though it may serve several parts."""
    parts, met = list[Part](), set[Any]()
    for part in plan.parts:
        new = [j for j, name in enumerate(part.columns) if name not in met]
        met |= set(part.columns)
        if new:
            columns = tuple(part.columns[j] for j in new)
            parts.append(replace(part, columns=columns, encodings=tuple(part.encodings[j] for j in new)))
    return Plan(plan.columns, tuple(parts))


def _from_batches(rows: Rows, prepared: Prepared) -> Counted:
    """All parts of a plan by the array engine."""
    once = _each_once(prepared.plan)
    names = [part.columns[j] for part, j in places(once)]
    counting = Counting(prepared.plan, names, rows.weight, rows.folds)
    censuses, unlabelled = rows.source.engine.gather(rows, once, counting)
    some = next((census for census in censuses if census), None)
    if some is None:
        raise InputError(f"no row of {rows.source.name} has a label", column=rows.target)
    return Counted(_read_spelled([census or _emptied(some) for census in censuses], prepared.spelled), unlabelled)


def _emptied(census: Census) -> Census:
    """The census of no rows: by a key no row may be in some fold."""
    tallies = tuple(tally.scale(0.0) for tally in census.tallies)
    return replace(census, class_weight=np.zeros(len(census.labels)), tallies=tallies, n_rows=0)


class Counts(NamedTuple):
    """What some rows make: a census a fold, None where there is no row of it, and the rows without a label."""

    censuses: list[Census | None]
    unlabelled: int


@dataclass(frozen=True)
class Counting:
    """Batches are counted on threads, and their censuses added in order."""

    plan: Plan
    names: list[Any]  # of the columns of a batch
    weight: str | None = None
    folds: Folds | None = None

    def __call__(self, batches: Iterable[Any], first: int = 0) -> Counts:
        return self._sum(threads.ahead(self._batch, batches))

    def add(self, parts: Sequence[Counts]) -> Counts:
        return self._sum(parts)

    def _sum(self, parts: Iterable[Counts]) -> Counts:
        totals, unlabelled = [_Total() for _ in range(self.folds.n if self.folds else 1)], 0
        for censuses, missing in parts:
            unlabelled += missing
            for total, census in zip(totals, censuses, strict=True):
                if census is not None:
                    total.add(census)
        return Counts([total.census() if total.runs else None for total in totals], unlabelled)

    def _batch(self, batch: Any) -> Counts:
        import pyarrow as pa
        import pyarrow.compute as pc

        out: list[Census | None] = []
        there = has_label(batch.column("k0"))
        known = batch.filter(there) if pc.any(pc.invert(there)).as_py() else batch
        for f in range(self.folds.n if self.folds else 1):
            some = known.filter(pc.equal(known.column("fold"), f)) if self.folds else known
            if not some.num_rows:
                out.append(None)
                continue
            table = Table.of(dict(zip(self.names, some.columns, strict=False)))
            w = weights(self.weight, some.column("k1")) if self.weight else None
            y = pa.chunked_array([some.column("k0")])
            out.append(arrays.count(table, y, w, plan=self.plan.with_levels(table)))
        return Counts(out, batch.num_rows - known.num_rows)


class _Total:
    """A sum of many censuses, each added to one of about as many: very many levels are united a few times only."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, Census]] = []  # of how many each is the sum

    def add(self, census: Census) -> None:
        n = 1
        while self.runs and self.runs[-1][0] == n:
            census, n = self.runs.pop()[1] + census, 2 * n
        self.runs.append((n, census))

    def census(self) -> Census:
        return reduce(lambda later, run: run[1] + later, self.runs[-2::-1], self.runs[-1][1])


def _read_spelled(censuses: list[Census], spelled: list[str]) -> list[Census]:
    """Levels that were counted as text become what they stand for, in all folds alike."""
    plan = reduce(lambda a, b: a.union(b)[0], (census.plan for census in censuses))
    meant = [
        [read_levels(list(e.labels.values)) if isinstance(e, Levels) else {} for e in part.encodings]
        if part.holds == "codes" and not set(map(str, part.columns)).isdisjoint(spelled)
        else []
        for part in plan.parts
    ]
    return [_with_levels(census, meant) for census in censuses] if any(meant) else censuses


def _with_levels(census: Census, meant: list[list[dict]]) -> Census:
    counted = []
    for part, tally, values in zip(census.plan.parts, census.tallies, meant, strict=True):
        if values:
            read = [_read(e, v) for e, v in zip(part.encodings, values, strict=True)]
            part = replace(part, encodings=tuple(encoding for encoding, _ in read))
            everyone = np.arange(len(census.labels))
            tally = tally.remap(everyone, len(everyone), [move for _, move in read])
        counted.append((part, tally))
    parts, tallies = zip(*counted, strict=True)
    return replace(census, plan=Plan(census.plan.columns, parts), tallies=tallies)


def _read(encoding: Any, meant: dict[Any, Any]) -> tuple[Any, Move]:
    """An encoding with its levels read, and where they go."""
    if not meant:
        return encoding, Move(np.arange(encoding.n_levels), encoding.n_levels)
    values = [meant[level] for level in encoding.labels.values]
    labels = Labels.of(values)
    return replace(encoding, labels=labels), Move(labels.encode(values), len(labels))


def weights(name: str, column: Any) -> NDArray[np.float64]:
    """Row weights of an Arrow column: numbers >= 0."""
    import pyarrow as pa

    try:
        w = arrow_numbers(column.cast(pa.float64()))
    except pa.ArrowInvalid as error:
        raise InputError(f"weights must be numbers >= 0; {error}", column=name) from None
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        met = None if np.isnan(w[bad[0]]) else float(w[bad[0]])
        text = "a weight is missing, infinite or negative; weights must be numbers >= 0"
        raise InputError(text, column=name, value=met)
    return w
