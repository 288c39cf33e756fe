"""Explaining rows of a source by their numbers: why each is given its class.

>>> from candide.demo import garden, garden_rows
>>> from candide.model.fitted import FittedModel
>>> plants, herbs = garden_rows(9, seed=0)
>>> [(one.row, one.decision.prediction) for one in explain_rows(FittedModel(garden()), plants, [2, (7, 8)])]
[(2, 'lavender'), (7, 'sage'), (8, 'thyme')]
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from candide import formatting
from candide.data.temporal import in_time
from candide.data.value_matching import rewrite_as_known
from candide.engines.base import Source, open_source
from candide.engines.reading import ReadOptions
from candide.engines.scoring import prepare_to_score
from candide.errors import InputError
from candide.store.models import ModelLike, load_fitted, make_read_options

if TYPE_CHECKING:
    from candide.explain.decisions import Decision


class ExplainedRow(NamedTuple):
    """A row by its number, its label (None where there is none), and why it is given its class."""

    row: int
    label: Any
    decision: "Decision"


def explain_rows(
    model: ModelLike,
    data: Any,
    rows: Sequence[int | tuple[int, int]] = (1,),
    reading: ReadOptions | None = None,
    by: str = "term",
) -> Iterator[ExplainedRow]:
    """Why rows of a source are given their class: rows, and ranges of rows, counted from 1.

    ``by="column"`` divides among columns what they say together.
    """
    from candide.explain import decisions as in_memory  # here: other tasks need none of it

    fitted = load_fitted(model)
    names = [name for part in fitted.plan.parts for name in part.columns]
    own = [each for part in fitted.plan.parts for each in zip(part.columns, part.encodings, part.levels, strict=False)]
    levels = {name: known for name, encoding, known in own if encoding.is_read_as_text}  # cells of a grid are no levels
    with open_source(data, make_read_options(fitted, reading)) as source:
        prepare_to_score(source, fitted.plan, fitted)
        label = [str(fitted.target)] if fitted.target in source.columns else []
        raw = [name for name in names if not source.is_untyped and str(name) in source.columns]  # a CSV has only text
        for one in rows:
            first, last = one if isinstance(one, tuple) else (one, one)
            found = _read_range(source, fitted, [*label, *map(str, raw)], first, last)
            table = dict(zip(names, found.columns, strict=False))
            table |= {name: rewrite_as_known(table[name], known) for name, known in levels.items()}
            shown = table | dict(zip(raw, found.columns[len(names) + len(label) :], strict=True))
            labels = found.column("k0").to_pylist() if label else [None] * found.num_rows
            days = {name: table[name].to_numpy() for name in table if name in fitted.temporal}
            typed = {name: in_time(column, fitted.temporal[name]) for name, column in days.items()}
            decisions = in_memory.explain_table(fitted, table | typed, shown, by)
            yield from map(ExplainedRow, range(first, last + 1), labels, decisions)


def _read_range(source: Source, fitted: Any, keep: list[str], first: int, last: int) -> Any:
    """A range of rows as one Arrow table."""
    import pyarrow as pa

    scan = source.engine.score(source, fitted.plan, keep, codes=False, span=(first - 1, last - first + 1))
    found = pa.Table.from_batches(scan.batches, scan.schema).combine_chunks()
    if found.num_rows < last - first + 1:
        n = sum(batch.num_rows for batch in source.batches(list(source.columns)[:1], 1 << 17))
        raise InputError(f"{source.name} has {formatting.format_count(n)}, counted from 1", row=first + found.num_rows)
    return found
