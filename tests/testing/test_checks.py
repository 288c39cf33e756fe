"""The published checks hold for every tally, and each finds the mistake that breaks it."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from candide.data.table import Table
from candide.distributions import Density
from candide.encoding import Grid, Log
from candide.encoding.tokens import Tokens
from candide.engines.arrays import Arrays, TableSource
from candide.engines.batches import Scan
from candide.errors import NotCountedError
from candide.events import EventModel, Support
from candide.priors import Gamma
from candide.tally import TALLIES, LevelTally, Sums
from candide.testing import check_engine, check_event, check_tally
from candide.testing.engines import ENGINE_CHECKS, LARGE_CHECKS, EngineTrial
from candide.testing.events import EVENT_CHECKS
from candide.testing.tallies import TALLY_CHECKS


@pytest.mark.parametrize("name", sorted(set(TALLIES) - {"cells"}))  # its features are sets: tests/tally/test_cells.py
def test_every_tally_passes_the_checks(name):
    check_tally(name)


ENCODINGS = {
    "logs": ("moments", Log(), ()),
    "logs together": ("comoments", Log(), ()),
    "fourth moments": ("comoments", None, {"fourth"}),
    "above a threshold": ("levels", Grid((0.5,)), ()),
    "hashed terms": ("token_counts", Tokens(bits=3), ()),
    "pairs of words": ("token_counts", Tokens(ngrams=(1, 2)), ()),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding_passes_the_checks(name):
    kind, encoding, keep = ENCODINGS[name]
    check_tally(kind, encoding, keep)


# An event model with nothing wrong, and one mistake after another ----------------------------------------------------


@dataclass(frozen=True)
class Waiting(EventModel):
    """Times until something happens: exponential, with a Gamma prior on the rate."""

    prior: Gamma = Gamma(2.0, 1.0)

    name: ClassVar[str] = "waiting"
    kind: ClassVar[str] = "sums"
    support: ClassVar[Support | None] = Support(low=0.0)

    def parameters(self, tally, prior, how):
        if how == "mle":
            return {"rate": tally.n / tally.total}
        return {"rate": (prior.shape + tally.n - (how == "map")) / (prior.rate + tally.total)}

    def log_density(self, x, rate):
        return np.log(rate) - rate * x

    def draw(self, rng, rate):
        return rng.exponential(1 / rate)


class Unnormalised(Waiting):
    def log_density(self, x, rate):
        return -rate * x


class DrawsWider(Waiting):
    def draw(self, rng, rate):
        return 1.2 * rng.exponential(1 / rate)


class DrawsAfresh(Waiting):
    def draw(self, rng, rate):
        return np.random.default_rng().exponential(1 / rate)


class Moody(Waiting):
    def parameters(self, tally, prior, how):
        return {"rate": super().parameters(tally, prior, how)["rate"] * np.random.default_rng().uniform(0.5, 1.5)}


class Overwrites(Waiting):
    def parameters(self, tally, prior, how):
        tally.total[:] += 1e-12 * (tally.total > 0)
        return super().parameters(tally, prior, how)


class Underflows(Waiting):
    def log_density(self, x, rate):
        with np.errstate(divide="ignore"):
            return np.log(rate * np.exp(-rate * x))


class OtherTerms(Density):
    def _contributions(self, x):
        return super()._contributions(x) * 1.001

    def add_log_prob(self, block, out):
        out += super()._contributions(np.asarray(block, float)).sum(axis=2)
        return int(np.isnan(block).sum())


class Explains(Waiting):
    def _estimate(self, tally, prior, how):
        fit = super()._estimate(tally, prior, how)
        return OtherTerms(fit.log_density, fit.params, fit.draw)


class SeesAbsence(Density):
    def _contributions(self, x):
        return np.where(np.isnan(x)[:, None, :], -1.0, super()._contributions(x))


class Penalises(Waiting):
    def _estimate(self, tally, prior, how):
        fit = super()._estimate(tally, prior, how)
        return SeesAbsence(fit.log_density, fit.params, fit.draw)


class Remembers(Waiting):
    def held_out_contributions(self, tally, prior, how, block, y, weight=None):
        return self.estimate(tally, prior, how).contributions(block)


class Optimist(Waiting):
    def _evidence(self, tally, prior):
        return tally.total * 0.0 - 1.0


class ForgetsZeros(Density):
    def _add_stored(self, block, out):
        self.__dict__["_log_density_at_zero"] = np.zeros(self._shape)
        return super()._add_stored(block, out)


class Sparse(Waiting):
    accepts_sparse = True

    def _estimate(self, tally, prior, how):
        fit = super()._estimate(tally, prior, how)
        return ForgetsZeros(fit.log_density, fit.params, fit.draw)


class NeverItself(Waiting):
    __hash__ = Waiting.__hash__

    def __eq__(self, other):
        return self is other


MISTAKES = {
    Unnormalised: "a density has mass one",
    DrawsWider: "fitting undoes sampling",
    DrawsAfresh: "fitting undoes sampling",
    Moody: "chunks add up to the whole",
    Overwrites: "estimating leaves the tally as it is",
    Underflows: "scores are finite",
    Explains: "contributions add up to log_prob",
    Penalises: "an absent value adds nothing",
    Remembers: "held-out contributions",
    Optimist: "evidence is the product",
    Sparse: "sparse rows are counted and scored as dense ones",
    NeverItself: "saved or pickled, it is the same",
}


def test_a_custom_event_model_passes_the_checks():
    check_event(Waiting())
    check_event(Waiting, lambda rng, y: rng.exponential(1.0 + y))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__)
def test_a_check_of_event_models_finds_its_mistake(mistake):
    with pytest.raises(AssertionError, match=rf"waiting: {MISTAKES[mistake]}.*: fails on "):
        check_event(mistake(), prior=Gamma(1.5, 0.4))


# The same for tallies -------------------------------------------------------------------------------------------------


class NotEmpty(Sums):
    @classmethod
    def empty(cls, n_classes, spec):
        return replace(super().empty(n_classes, spec), n=np.ones((n_classes, spec.n_features)))


class FirstCounts(Sums):
    def __add__(self, other):
        return replace(super().__add__(other), total=self.total + other.total * (1 - 1e-6 * (self.n > 0)))


class SubtractsHalf(Sums):
    def __sub__(self, part):
        left = super().__sub__(part)
        return replace(left, total=left.total + 1e-3 * part.total)


class Borrows(Sums):
    def __sub__(self, part):
        try:
            return super().__sub__(part)
        except NotCountedError:
            return self


class IgnoresWeights(Sums):
    @classmethod
    def from_rows(cls, block, y, weight=None, *, n_classes, spec):
        return super().from_rows(
            block, y, None if weight is None else (weight > 0) * 1.0, n_classes=n_classes, spec=spec
        )


class NeverScales(Sums):
    def scale(self, factor):
        return self


class PoolsFirst(Sums):
    def pool(self):
        return self.select_classes(np.array([0]))


class StaysPut(Sums):
    def remap(self, classes, n_classes, moves=()):
        return super().remap(np.sort(classes), n_classes, moves)


class LevelsStay(LevelTally):
    def remap(self, classes, n_classes, moves=()):
        moved = super().remap(classes, n_classes, moves)
        return replace(moved, counts=moved.counts[:, ::-1]) if moves else moved


class OtherColumns(Sums):
    def select_features(self, features):
        return super().select_features(np.sort(features))


class Leaks(Sums):
    def arrays(self):
        return {"n": self.n, "total": self.total * 0.5}


class Shares(Sums):
    def pool(self):
        pooled = super().pool()
        self.total[:] = 0.0
        return pooled


class AnyShape(Sums):
    def __add__(self, other):
        return super().__add__(other) if self.n.shape == other.n.shape else self


TALLY_MISTAKES = {
    NotEmpty: "the empty tally is the identity",
    FirstCounts: "addition commutes",
    SubtractsHalf: "subtraction undoes addition",
    Borrows: "removing what was never counted is an error",
    IgnoresWeights: "a weight of k is k copies",
    NeverScales: "scaling a tally is scaling its weights",
    PoolsFirst: "pooling is counting all rows as one class",
    StaysPut: "moving classes follows a union of labels",
    LevelsStay: "moving levels follows a union of encodings",
    OtherColumns: "some of the columns",
    Leaks: "arrays hold the whole state",
    Shares: "no operation changes its operands",
    AnyShape: "tallies of other numbers of classes do not add",
}


@pytest.mark.parametrize("mistake", TALLY_MISTAKES, ids=lambda m: m.__name__)
def test_a_check_of_tallies_finds_its_mistake(mistake):
    with pytest.raises(AssertionError, match=rf"{mistake.__name__}: {TALLY_MISTAKES[mistake]}.*: fails on "):
        check_tally(mistake)


# And for engines ------------------------------------------------------------------------------------------------------


class Loses(TableSource):
    """Its last batch never comes."""

    def batches(self, columns, size, folds=None):
        found = list(super().batches(columns, size, folds))
        return iter(found[:-1] if len(found) > 1 else found)


class Shortens(TableSource):
    """The second half of a batch never comes."""

    def batches(self, columns, size, folds=None):
        return (batch.slice(0, len(batch) // 2) for batch in super().batches(columns, size, folds))


class Redeals(TableSource):
    """It deals the rows to other folds when they are read again."""

    times = 0

    def batches(self, columns, size, folds=None):
        self.times += folds is not None
        return super().batches(columns, size, folds and folds._replace(seed=folds.seed + self.times, by=None))


class Salts(TableSource):
    """It has a hash of its own."""

    def batches(self, columns, size, folds=None):
        return super().batches(columns, size, folds and (folds._replace(seed=0) if folds.key_column else folds))


class Turns(TableSource):
    """Its rows come from the other end every second time."""

    times = 0

    def batches(self, columns, size, folds=None):
        self.times += 1
        found = list(super().batches(columns, size, folds))
        turned = [batch.take(pa.array(np.arange(len(batch))[::-1])) for batch in found[::-1]]
        return iter(found if self.times % 2 else turned)


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
        return self.source(Table.from_data(data), self)


class Rounds(Arrays):
    """It scores numbers of a few digits."""

    name = "careless"

    def score(self, *args, codes=True, **how):
        scan = super().score(*args, codes=codes, **how)
        return Scan(scan.schema, map(_rounded, scan.batches) if codes else scan.batches)  # but it counts them right


class Unweighted(Arrays):
    """It counts numbers itself, and forgets their weights."""

    name, tally_kinds = "careless", frozenset({"moments"})

    def count(self, rows, prepared):
        from candide.engines.counting import count_source

        return count_source(replace(rows, source=Arrays().open(rows.source.table), weight=None), prepared)


ENGINE_MISTAKES = {
    "Loses": (Careless(Loses), "batches hold every row once"),
    "Unweighted": (Unweighted(), "it counts what the array engine counts"),
    "Redeals": (Careless(Redeals), "folds are those of the batches"),
    "Salts": (Careless(Salts), "folds by a key follow its hash"),
    "Turns": (Careless(Turns), "a sample holds rows that have a label and a weight"),
    "Rounds": (Rounds(), "it scores as the array engine does"),
    "Clips": (Careless(Clips), "an infinity, and a target that is not there, are refused"),
}


@pytest.mark.parametrize("name", ENGINE_MISTAKES)
def test_a_check_of_engines_finds_its_mistake(name):
    engine, check = ENGINE_MISTAKES[name]
    with pytest.raises(AssertionError, match=f"careless: {check}.*: fails on "):
        check_engine(engine)


@pytest.mark.parametrize("check", LARGE_CHECKS)
def test_a_larger_table_finds_a_mistake(check):
    with pytest.raises(AssertionError):
        check(EngineTrial(Careless(Shortens), lambda table: table, *LARGE_CHECKS[check](0)))


@pytest.mark.parametrize(
    ("checks", "mistakes"),
    [
        (EVENT_CHECKS, MISTAKES.values()),
        (TALLY_CHECKS, TALLY_MISTAKES.values()),
        (ENGINE_CHECKS, [check for _, check in ENGINE_MISTAKES.values()]),
    ],
    ids=["events", "tallies", "engines"],
)
def test_every_check_has_its_mistake(checks, mistakes):
    stated = {check.__doc__.partition(".")[0].lower() for check in checks}
    found = {text for text in stated for mistake in mistakes if text.startswith(mistake.lower())}
    of_tallies = {"subtracting gives back", "a weight is so many copies, and none is none"}  # a mistake of theirs
    of_kernels = {"the number of threads does not matter"}
    assert stated - found <= of_tallies | of_kernels
