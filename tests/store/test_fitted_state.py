"""Plans, counts, distributions and term weights in files, also damaged ones."""

import datetime as dt
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model_cases import MODELS, labels_of, numbers
from tests.store.forged_files import forge, put, set_field

import candide as cd
from candide import BayesClassifier, store
from candide.data.labels import Labels
from candide.data.table import Table
from candide.encoding.scores import Indicators, NormalScore
from candide.errors import InputError, ModelFileError
from candide.events import Categorical
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.store import container
from candide.tally import LevelTally
from candide.weighted.terms.discriminant import Discriminant


def gridded():
    """A census in which one category is a grid of numbers, and another has its levels."""
    from candide.encoding import Grid
    from candide.encoding import LevelEncoding as Kinds
    from candide.engines import arrays

    rows = Table.from_data({"age": np.arange(40.0), "job": ["cook", "smith"] * 20})
    encodings = Grid((10.0, 20.0, 30.5), cells=9), Kinds().learn(["cook", "smith"])
    plan = Plan(("age", "job"), (PlanPart(Categorical(), ("age", "job"), encodings),))
    return arrays.count_table(rows, ["a"] * 15 + ["b"] * 25, plan=plan), rows


@given(st.sets(st.text(min_size=0, max_size=8), min_size=1, max_size=20))
def test_any_levels_come_back_from_a_file(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("levels") / "m.candide"
    levels = Labels.from_values(list(words))
    plan = Plan(("w",), (PlanPart(Categorical(), ("w",)).with_labels((levels,)),))
    counts = np.arange(2.0 * len(levels)).reshape(2, -1)
    tally = LevelTally(counts, np.array([0, len(levels)]))
    store.save(FittedModel(ModelCounts(plan, Labels(("a", "b")), np.ones(2), (tally,), 2)), path)
    assert store.load(path).plan.parts[0].levels == (levels,)


def test_levels_that_are_times_and_durations(tmp_path):
    import datetime

    X = {
        "hour": [datetime.time(1 + i % 3, 30, 0, i % 2) for i in range(60)],
        "length": [datetime.timedelta(i % 3 - 1, 5, 7) for i in range(60)],
    }
    model = cd.NaiveBayes("categorical").fit(X, labels_of("str"))
    model.save(tmp_path / "m")
    again = cd.load(tmp_path / "m")
    assert [part.levels for part in again.fitted_.plan.parts] == [part.levels for part in model.fitted_.plan.parts]
    assert again.predict_proba(X).tolist() == model.predict_proba(X).tolist()


def test_levels_that_are_dates(tmp_path):
    import datetime

    X = {"day": [datetime.date(2020, 1, 1 + i % 3) for i in range(60)]}
    model = cd.NaiveBayes("categorical").fit(X, labels_of("datetime"))
    model.save(tmp_path / "m")
    again = cd.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.fitted_.plan.parts[0].levels[0].values == tuple(datetime.date(2020, 1, 1 + i) for i in range(3))
    assert (again + model).counts_.n_rows == 120


@pytest.mark.parametrize("order", [2, 3])
def test_many_sets_of_columns(order):
    from candide.encoding import LevelEncoding as Kinds
    from candide.engines import arrays
    from candide.weighted.terms.interaction import Interaction

    sets = tuple(combinations(range(9), order))  # more than a sequence of numbers may have to be kept in the header
    rows = Table.from_data(np.random.default_rng(0).integers(0, 2, (60, 9)))
    part = PlanPart(Interaction(sets), rows.names, tuple(Kinds.from_size(2) for _ in rows.names))
    census = arrays.count_table(rows, ["a", "b"] * 30, plan=Plan(rows.names, (part,)))
    again = store.loads(store.dumps(census))
    assert again.plan == census.plan
    np.testing.assert_array_equal(FittedModel(again).posterior(rows), FittedModel(census).posterior(rows))


def test_grids():
    census, rows = gridded()
    fitted = FittedModel(census)
    for detail in store.DETAILS:
        again = store.loads(store.dumps(fitted, detail=detail))
        assert again.plan == census.plan
        np.testing.assert_array_equal(again.posterior(rows), fitted.posterior(rows))
    assert (store.loads(store.dumps(census)) + census).n_rows == 80


@pytest.mark.parametrize(
    "change",
    [
        {"edges": None, "cells": 9, "raw": True},
        {"edges": {"sequence": [3.0, 1.0]}, "cells": 9, "raw": False},
        {"edges": {"sequence": ["x"]}, "cells": 9, "raw": False},
        {"edges": {"sequence": [1.0]}, "cells": 9, "raw": True},
        {"edges": {"sequence": [1.0]}, "cells": 9},
        {"edges": {"sequence": [1.0]}, "cells": 9, "raw": False},
    ],
)
def test_an_encoding_that_does_not_fit_is_rejected(change):

    header, arrays = container.unpack_container(memoryview(store.dumps(gridded()[0])), verify=True)
    header["parts"][0]["encodings"][0]["settings"] = change
    with pytest.raises(ModelFileError):
        store.loads(b"".join(bytes(piece) for piece in container.pack_container(header, arrays)))


def test_encodings_that_are_not_the_event_models_own():
    from candide.encoding import Log
    from candide.engines import arrays
    from candide.events import Gaussian

    rows = Table.from_data({"pay": np.exp(np.arange(20.0) / 5)})
    plan = Plan(("pay",), (PlanPart(Gaussian(), ("pay",), (Log(),)),))
    census = arrays.count_table(rows, ["a", "b"] * 10, plan=plan)
    assert store.loads(store.dumps(census)).plan == plan


@pytest.mark.parametrize(
    "levels",
    [
        [dt.date(2024, 2, 29), dt.date(1, 1, 1)],
        [dt.datetime(2024, 2, 29, 12, 30, 0, 5), dt.datetime(2024, 3, 1)],
        [dt.time(12, 30), dt.time(23, 59, 59, 7)],
        [dt.timedelta(days=-1, seconds=3), dt.timedelta(hours=30)],
    ],
    ids=lambda levels: type(levels[0]).__name__,
)
def test_levels_that_are_times_in_every_encoding(levels, tmp_path):
    """Also in a discriminant, whose levels stand among the settings of its encodings."""
    X = {"when": np.array(levels * 30, object), "x": numbers()[:, 0]}
    encodings = Indicators.from_column(X["when"], 9), NormalScore().learn(X["x"])
    parts = (PlanPart(Categorical(), ("when",)), PlanPart(Discriminant(quadratic=False), ("when", "x"), encodings))
    plan = Plan(("when", "x"), parts).with_levels(Table.from_data(X))
    model = cd.BayesClassifier(like=plan).fit(X, labels_of("str"))
    model.save(tmp_path / "m.candide")
    assert (cd.load(tmp_path / "m.candide").predict_proba(X) == model.predict_proba(X)).all()


@pytest.fixture(scope="module")
def calibrated():
    like, X = MODELS["voices"]
    return BayesClassifier(like=like, calibration="isotonic").fit(X, labels_of("str"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (set_field(-1, "terms", "learned_rows"), "learned from -1 rows"),
        (set_field(1, "terms", "wings"), "an object with the fields"),
        (lambda h, a: h["terms"].pop("removed_rows"), "an object with the fields"),
        (lambda h, a: a.pop("terms.bias"), "'terms.bias' of 1 axes is missing"),
        (put("terms.weights", 0, np.nan), "not finite"),
        (put("terms.strength", 0, 0.0), "not above 0"),
        (set_field({"sequence": [{"sequence": [0, 9]}]}, "parts", 4, "event", "settings", "sets"), "a set of columns"),
        (set_field(263, "parts", 0, "event", "settings", "cells"), "263 cells"),
    ],
)
def test_invalid_term_weights_are_rejected(change, complaint, tmp_path):
    path = tmp_path / "m.candide"
    MODELS["voices"][0].save(path)
    forge(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        store.load(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (put("0.base.bins", 0, 1), "in order"),
        (put("0.base.bins", -1, 2**62), "in order"),
        (put("0.base.table", (0, 0), 1e308), "logs of probabilities"),
        (put("2.base.root", (slice(None), 0), 0.0), "singular"),
        (put("2.base.roots", (0, slice(None)), 0.0), "singular"),
        (put("2.base.means", (0, 0), 1e308), "up to 1e70"),
        (put("2.base.df", 0, 0.5), "numbers > 1"),
        (put("2.base.rows", 0, 1e308), "up to 1e150"),
        (put("log_prior", slice(None), -np.inf), "log_prior"),
    ],
)
def test_invalid_distributions_of_terms_are_rejected(change, complaint, tmp_path):
    """Of those that would answer, and then take all memory or end in another's error where they are explained."""
    path = tmp_path / "m.candide"
    MODELS["voices"][0].save(path, detail="score")
    forge(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        store.load(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (put("calibrator.sizes", 0, 0), "not above 0"),
        (put("calibrator.sizes", 0, 10**6), "shape"),
        (lambda h, a: a.update({"calibrator.sizes": np.array([1])}), "calibrator.sizes"),
        (put("calibrator.frequencies", 0, 1.0), "not rising"),
        (put("calibrator.frequencies", 0, -0.1), "not rising"),
        (put("calibrator.log_odds", 0, 1e6), "not rising"),
        (put("calibrator.log_odds", 0, np.nan), "not finite"),
        (lambda h, a: a.pop("calibrator.log_odds"), "'calibrator.log_odds' of 1 axes is missing"),
    ],
)
@pytest.mark.parametrize("detail", ["tally", "score"])
def test_an_invalid_calibrator_is_rejected(change, complaint, detail, tmp_path, calibrated):
    path = tmp_path / "m.candide"
    calibrated.save(path, detail=detail)
    forge(path, change)
    with pytest.raises(ModelFileError, match=complaint):
        store.load(path)


def test_products_of_no_rows_are_rejected_when_they_are_used(tmp_path):
    path = tmp_path / "m.candide"
    MODELS["voices"][0].save(path)
    forge(path, lambda h, a: a["2.scatter"].__imul__(-1.0))
    with pytest.raises(InputError):
        _ = store.load(path).model
