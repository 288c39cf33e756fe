"""Explain rows of a source by their numbers.

>>> from candide.demo import garden, garden_rows
>>> from candide.model.fitted import FittedModel
>>> plants, herbs = garden_rows(9, seed=0)
>>> [(row.row, row.decision.prediction) for row in explain_rows(FittedModel(garden()), plants, [2, (7, 8)])]
[(2, 'lavender'), (7, 'sage'), (8, 'thyme')]
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from candide import formatting
from candide.data.temporal import in_time
from candide.data.value_matching import rewrite_as_known
from candide.engines.base import Source, open_source
from candide.engines.reading import ReadOptions, make_read_options
from candide.engines.scoring import prepare_to_score
from candide.errors import InputError
from candide.explain.decisions import Decision, explain_table
from candide.model.fitted import FittedModel


class ExplainedRow(NamedTuple):
    """A row by its number, its label (None where unknown), and the explanation of its prediction."""

    row: int
    label: Any
    decision: Decision


def explain_rows(
    fitted: FittedModel,
    data: Any,
    rows: Sequence[int | tuple[int, int]] = (1,),
    *,
    by: str = "term",
    reading: ReadOptions | None = None,
) -> Iterator[ExplainedRow]:
    """Explain the predictions of rows, and ranges of rows, counted from 1.

    ``by="column"`` divides the contribution of a joint term among its columns.
    """
    names = [name for part in fitted.plan.parts for name in part.columns]
    each = [
        triple for part in fitted.plan.parts for triple in zip(part.columns, part.encodings, part.levels, strict=False)
    ]
    levels = {name: known for name, encoding, known in each if encoding.is_read_as_text}  # grid cells are not levels
    with open_source(data, make_read_options(fitted, reading)) as source:
        prepare_to_score(source, fitted.plan, fitted)
        label = [str(fitted.target)] if fitted.target in source.columns else []
        raw = [name for name in names if not source.is_untyped and str(name) in source.columns]  # a CSV has only text
        for selected in rows:
            first, last = selected if isinstance(selected, tuple) else (selected, selected)
            arrow = _read_range(source, fitted, [*label, *map(str, raw)], first, last)
            table = dict(zip(names, arrow.columns, strict=False))
            table |= {name: rewrite_as_known(table[name], known) for name, known in levels.items()}
            shown = table | dict(zip(raw, arrow.columns[len(names) + len(label) :], strict=True))
            labels = arrow.column("k0").to_pylist() if label else [None] * arrow.num_rows
            days = {name: table[name].to_numpy() for name in table if name in fitted.temporal}
            typed = {name: in_time(column, fitted.temporal[name]) for name, column in days.items()}
            decisions = explain_table(fitted, table | typed, shown, by)
            yield from map(ExplainedRow, range(first, last + 1), labels, decisions)


def _read_range(source: Source, fitted: FittedModel, keep: list[str], first: int, last: int) -> Any:
    """A range of rows as one Arrow table."""
    import pyarrow as pa

    scan = source.engine.score(source, fitted.plan, keep, codes=False, span=(first - 1, last - first + 1))
    rows = pa.Table.from_batches(scan.batches, scan.schema).combine_chunks()
    if rows.num_rows < last - first + 1:
        n = sum(batch.num_rows for batch in source.batches(list(source.columns)[:1], 1 << 17))
        raise InputError(f"{source.name} has {formatting.format_count(n)}, counted from 1", row=first + rows.num_rows)
    return rows
