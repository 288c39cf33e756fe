"""The published laws find the mistakes that break them."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from candide.engines.base import Folds
from candide.engines.batch import Scan
from candide.engines.memory import Arrays, TableSource
from candide.rows.table import Table
from candide.testing import check_engine

# And for engines ------------------------------------------------------------------------------------------------------


class Loses(TableSource):
    """Its last batch never comes."""

    def batches(self, columns, size, folds=None):
        found = list(super().batches(columns, size, folds))
        return iter(found[:-1] if len(found) > 1 else found)


class Redeals(TableSource):
    """It deals the rows to other folds when they are read again."""

    times = 0

    def batches(self, columns, size, folds=None):
        self.times += folds is not None
        return super().batches(columns, size, folds and Folds(folds.n, folds.seed + self.times))


def _rounded(batch):
    columns = [pc.round(c, 1) if pa.types.is_floating(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


class Clips(TableSource):
    """It has no infinities."""

    def batches(self, columns, size, folds=None):
        for batch in super().batches(columns, size, folds):
            clipped = [pc.if_else(pc.is_inf(c), 0.0, c) if pa.types.is_floating(c.type) else c for c in batch.columns]
            yield pa.RecordBatch.from_arrays(clipped, batch.schema.names)


class Careless(Arrays):
    """The array engine, with a source that has a mistake."""

    name = "careless"

    def __init__(self, source):
        self.source = source

    def open(self, data, reading=None):
        return self.source(Table.of(data), self)


class Rounds(Arrays):
    """It scores numbers of a few digits."""

    name = "careless"

    def score(self, *args, **kwargs):
        scan = super().score(*args, **kwargs)
        return Scan(scan.schema, map(_rounded, scan.batches))


class Unweighted(Arrays):
    """It counts numbers itself, and forgets their weights."""

    name, counts = "careless", frozenset({"moments"})

    def count(self, rows, prepared):
        from candide.engines.count import count

        return count(replace(rows, source=Arrays().open(rows.source.table), weight=None), prepared)


ENGINE_MISTAKES = {
    "Loses": (Careless(Loses), "batches hold every row once"),
    "Unweighted": (Unweighted(), "it counts what the array engine counts"),
    "Redeals": (Careless(Redeals), "folds are those of the batches"),
    "Rounds": (Rounds(), "it scores as the array engine does"),
    "Clips": (Careless(Clips), "an infinity, and a target that is not there, are refused"),
}


@pytest.mark.parametrize("name", ENGINE_MISTAKES)
def test_a_law_of_engines_finds_its_mistake(name):
    engine, law = ENGINE_MISTAKES[name]
    with pytest.raises(AssertionError, match=f"careless: {law}.*: fails on "):
        check_engine(engine)
