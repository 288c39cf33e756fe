"""Data for plots: the columns of a source that a plot shows, its predictions, and which columns to draw.

>>> from candide.demo import garden
>>> from candide.model.fitted import FittedModel
>>> data = {"height_cm": [20.0, 50.0], "herb": ["thyme", None]}
>>> drawable = Drawable.from_model(FittedModel(garden()))
>>> columns, codes = PlotRows(data, "herb").columns(drawable, ["height_cm"])
>>> columns["height_cm"].tolist(), codes.tolist()
([20.0, 50.0], [2, -1])
>>> strongest_columns(drawable)[:3]
['leaf_mm', 'height_cm', 'flowers']
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candide.data.table import Name
from candide.data.temporal import in_time
from candide.engines.base import Source, Watch, no_progress, open_source
from candide.engines.batches import iterate_columns
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import SkippedRows, TrueClasses, prepare_to_score, score_labelled
from candide.errors import InputError, unknown_name_error
from candide.explain.terms import list_terms
from candide.model.feature_selection import rank_columns_by_evidence
from candide.model.fitted import FittedModel
from candide.model.plan import Plan
from candide.plot.drawable import Drawable


@dataclass(frozen=True)
class PlotRows:
    """A source, the column of the labels, and how it is read."""

    data: Any
    target: str | None = None
    reading: ReadOptions | None = None
    progress: Watch = no_progress

    def columns(self, drawable: Drawable, features: Sequence[Name]) -> tuple[dict[Name, Any], NDArray | None]:
        """Some columns of all rows, and the class codes, -1 where absent; None where the labels are not there."""
        with (
            open_source(self.data, make_read_options(drawable.fitted, self.reading)) as source,
            self.progress(source, "reading"),
        ):
            target = self._label_column(drawable, source, needed=False)
            return read_columns(source, drawable.fitted, features, target)

    def posteriors(self, drawable: Drawable) -> Iterator[tuple[NDArray, NDArray]]:
        """log p(class | x), (row, class), and class codes, batch by batch, of the rows that have a known class."""
        with (
            open_source(self.data, make_read_options(drawable.fitted, self.reading)) as source,
            self.progress(source, "scoring"),
        ):
            target = self._label_column(drawable, source, needed=True)
            found = score_labelled(source, drawable.fitted, target, lambda log_posterior, y, _: (log_posterior, y))
            yield from found.results
        found.skipped_rows.warn(target, stacklevel=3)

    def _label_column(self, drawable: Drawable, source: Source, *, needed: bool) -> Any:
        name = self.target or drawable.fitted.target
        if name in source.columns:
            return name
        if needed and name is None:
            raise InputError("the model does not say which column it learned; name the column of labels: --target COL")
        if needed or self.target is not None:
            raise unknown_name_error("target", name, source.columns)
        return None


def strongest_columns(drawable: Drawable) -> list[Name]:
    """The columns of which a value was counted, by their evidence; in their own order where it is not known."""
    names = dict.fromkeys([*(name for name, _ in _columns_by_evidence(drawable)), *drawable.columns])
    return [name for name in names if name in drawable.seen_columns]


def two_strongest_columns(
    drawable: Drawable, is_usable: Callable[[Drawable, Name], bool], kind: str
) -> tuple[tuple[Name, Name], str]:
    """The two columns of numbers of some ``kind`` that tell most of the class, and a note that says so."""
    numbers = set(drawable.number_columns)
    usable = [n for n in strongest_columns(drawable) if n in numbers and is_usable(drawable, n)]
    if len(usable) < 2:
        found = f"one, {usable[0]!r}" if usable else "none"
        raise InputError(f"this picture is of two {kind}, and the model has {found}; draw its densities")
    a, b = usable[:2]
    why = "which tell most of the class" if _columns_by_evidence(drawable) else "the first"
    note = f"drawn over {a!r} and {b!r}, {why} of {len(usable)} {kind}; name others: --feature A --feature B"
    return (a, b), note


def _columns_by_evidence(drawable: Drawable) -> Any:
    """Columns with their evidence, the strongest first; nothing where neither counts nor a file tell it.

    Of a weighted model they come by the strength of their voices.
    """
    if drawable.fitted.term_weights is not None:
        return [(one.columns[0], one.importance) for one in list_terms(drawable.fitted) if len(one.columns) == 1]
    if drawable.counts is not None:
        return rank_columns_by_evidence(drawable.counts)
    return getattr(drawable.fitted, "strengths", None) or ()


def read_columns(
    source: Source, fitted: FittedModel, features: Sequence[Name], target: str | None = None
) -> tuple[dict[Name, Any], NDArray | None]:
    """Columns of all rows, and class codes, -1 where there is none; None where no target is given.

    A warning says how many rows have no class, or one that the model does not know.
    """
    import pyarrow as pa

    plan = _select_features(fitted.plan, features)
    for name in features:
        if str(name) not in source.columns:
            raise unknown_name_error(f"column in {source.name}:", str(name), source.columns)
    prepare_to_score(source, plan, fitted, target)
    scan = source.engine.score(source, plan, [target] if target else [], codes=False)
    table = pa.Table.from_batches(scan.batches, scan.schema).combine_chunks()
    read: dict[Name, Any] = {}
    for i, (part, j) in enumerate(iterate_columns(plan)):
        name, column = part.columns[j], table.column(i).combine_chunks()
        if part.block_kind == "codes" and part.encodings[j].is_read_as_text:
            read[name] = column
            continue
        read[name] = column.to_numpy(zero_copy_only=False)
        if kind := source.temporal_kind(str(name)):
            read[name] = in_time(read[name], kind)
    if target is None:
        return read, None
    truth, left_out = TrueClasses.from_column(fitted.labels, table.column("k0")), SkippedRows(fitted.labels)
    left_out.add(truth)
    left_out.warn(target, stacklevel=3)
    return read, np.where(truth.is_known, truth.codes, -1)


def _select_features(plan: Plan, features: Sequence[Name]) -> Plan:
    parts = []
    for part in plan.parts:
        mine = [j for j, name in enumerate(() if part.is_joint_term else part.columns) if name in features]
        if mine:
            some = part.select_features(mine)
            parts.append(replace(part, columns=some.columns, encodings=some.encodings))
    return Plan(tuple(features), tuple(parts))
