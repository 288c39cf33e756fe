"""Rows of a source for a picture: the few columns it shows, or the posteriors of all, read in a stream.

>>> from candide.demo import garden
>>> from candide.model.fitted import Fitted
>>> data = {"height_cm": [20.0, 50.0], "herb": ["thyme", None]}
>>> columns, codes = Rows(data, "herb").columns(Drawable.of(Fitted(garden())), ["height_cm"])
>>> columns["height_cm"].tolist(), codes.tolist()
([20.0, 50.0], [2, -1])
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.engines.base import Watch, silent
from candide.engines.duckdb import score as scoring
from candide.engines.duckdb.source import Source
from candide.engines.reading import Reading
from candide.errors import InputError, unknown
from candide.model.plan import Plan
from candide.plot.drawable import Drawable
from candide.rows.labels import Labels
from candide.rows.table import Name


@dataclass(frozen=True)
class Rows:
    """A source, the column of the labels, and how it is read."""

    data: Any
    target: str | None = None
    reading: Reading | None = None
    watch: Watch = silent

    def columns(self, drawable: Drawable, features: Sequence[Name]) -> tuple[dict[Name, Any], NDArray | None]:
        """Some columns of all rows, and the class codes, -1 where absent; None where the labels are not there."""
        plan = _only(drawable.fitted.plan, features)
        with Source.open(self.data, self.reading) as source, self.watch(source, "reading"):
            for name in features:
                if str(name) not in source.columns:
                    raise unknown(f"column in {source.name}:", str(name), source.columns)
            scoring.prepare_to_score(source, plan)
            target = self._target(drawable, source, needed=False)
            keep = [] if target is None else [target]
            table = source.arrow(scoring.query(source, plan, keep=keep, codes=False))
        found = [name for part in plan.parts for name in part.columns]
        columns = {name: table.column(f"f{i}").combine_chunks() for i, name in enumerate(found)}
        levels = {name for part in plan.parts if part.has_levels for name in part.columns}
        read = {n: c if n in levels else c.to_numpy(zero_copy_only=False) for n, c in columns.items()}
        kinds = {name: source.columns[str(name)].upper() for name in read if name not in levels}
        read |= {n: _dates(read[n]) for n, kind in kinds.items() if kind.startswith(("DATE", "TIMESTAMP"))}
        return read, codes_of(drawable.fitted.labels, table.column("k0"), source.name) if keep else None

    def posteriors(self, drawable: Drawable) -> Iterator[tuple[NDArray, NDArray]]:
        """log p(class | x), (row, class), and class codes, batch by batch, of the rows that have a class."""
        plan, labels = drawable.fitted.plan, drawable.fitted.labels
        with Source.open(self.data, self.reading) as source, self.watch(source, "scoring"):
            scoring.prepare_to_score(source, plan)
            query = scoring.query(source, plan, keep=[self._target(drawable, source, needed=True)])
            for batch in source.batches(query, scoring.batch_size(plan)):
                codes = codes_of(labels, batch.column("k0"), source.name)
                log_posterior, _ = scoring.posterior(plan, drawable.fitted.model, batch)
                yield log_posterior[codes >= 0], codes[codes >= 0]

    def _target(self, drawable: Drawable, source: Source, *, needed: bool) -> Any:
        name = self.target or drawable.fitted.target
        if name in source.columns:
            return name
        if needed and name is None:
            raise InputError("the model does not say which column it learned; name the column of labels: --target COL")
        if needed or self.target is not None:
            raise unknown("target", name, source.columns)
        return None


def _dates(days: NDArray) -> NDArray:
    """Days since 1970 as times, none where they are absent."""
    out, there = np.full(len(days), "NaT", "datetime64[us]"), np.isfinite(days)
    out[there] = np.rint(days[there] * 86_400e6).astype(np.int64).astype("datetime64[us]")
    return out


def codes_of(labels: Labels, column: Any, where: str) -> NDArray[np.intp]:
    """Class codes of an Arrow column; text that spells a class that is none is that class."""
    codes = np.array(labels.encode(column))
    strange = np.flatnonzero(codes == len(labels))
    if len(strange):
        spelled = {str(value): code for code, value in enumerate(labels.values)}
        values = column.take(strange).to_pylist()
        for i, value in zip(strange, values, strict=True):
            if str(value) not in spelled:
                raise unknown(f"class in {where}:", value, labels.values[:40])
            codes[i] = spelled[str(value)]
    return codes


def _only(plan: Plan, features: Sequence[Name]) -> Plan:
    parts = []
    for part in plan.parts:
        mine = [j for j, name in enumerate(part.columns) if name in features]
        if mine:
            columns = tuple(part.columns[j] for j in mine)
            parts.append(replace(part, columns=columns, levels=tuple(part.levels[j] for j in mine if part.levels)))
    return Plan(tuple(features), tuple(parts))
