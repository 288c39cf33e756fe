"""A model comes back from its file as it went in, bit for bit, and the same model makes the same file."""

import datetime as dt
import json
import os
import pickle
import stat
import subprocess
import sys
from itertools import combinations

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model_cases import MODELS, labels_of, mixed, numbers

import candide as cd
from candide import store
from candide.data.labels import Labels
from candide.data.table import Table
from candide.demo import garden
from candide.encoding.indicators import Indicators
from candide.encoding.normal_score import NormalScore
from candide.errors import InputError, ModelFileError
from candide.events import EVENTS, Categorical
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.priors import PRIORS
from candide.store.strings import StringPool, StringReader
from candide.store.values import unpack_value
from candide.tally import LevelTally
from candide.weighted.terms.discriminant import Discriminant


def answers(model, X):
    has_density = all(part.event.has_density for part in model.fitted_.plan.parts)
    return model.predict_proba(X), model.predict_log_proba(X), *([model.log_density(X)] if has_density else [])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("detail", store.DETAILS)
def test_predictions_are_bit_equal_after_loading(name, detail, tmp_path):
    model, X = MODELS[name]
    model.save(tmp_path / "m.candide", detail=detail)
    again = cd.load(tmp_path / "m.candide")
    assert type(again) is type(model)
    for mine, theirs in zip(answers(model, X), answers(again, X), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert [type(v) for v in again.classes_.tolist()] == [type(v) for v in model.classes_.tolist()]


def test_the_cases_cover_every_event_and_prior():
    assert {part.event.name for model, _ in MODELS.values() for part in model.fitted_.counts.plan.parts} >= set(EVENTS)
    used = {type(p) for model, _ in MODELS.values() for p in [getattr(model, "param_priors", None)]} | {
        type(part.event.prior) for model, _ in MODELS.values() for part in model.fitted_.counts.plan.parts
    }
    assert set(PRIORS.values()) <= used


@pytest.mark.parametrize("name", MODELS)
def test_counts_settings_and_names_come_back(name, tmp_path):
    model, _ = MODELS[name]
    model.save(tmp_path / "m.candide")
    mine, theirs = model.fitted_, store.load(tmp_path / "m.candide")
    assert isinstance(theirs, FittedModel)
    assert theirs.plan == mine.plan
    assert theirs.labels == mine.labels
    assert theirs.counts.n_rows == mine.counts.n_rows
    assert [type(v) for v in theirs.labels.values] == [type(v) for v in mine.labels.values]
    for a, b in zip(mine.counts.tallies, theirs.counts.tallies, strict=True):
        for field, array in a.arrays().items():
            np.testing.assert_array_equal(array, b.arrays()[field])


@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_gives_the_same_bytes(name, tmp_path):
    model, _ = MODELS[name]
    one, two = tmp_path / "one.candide", tmp_path / "two.candide"
    model.save(one)
    cd.load(one).save(two)
    assert one.read_bytes() == two.read_bytes()


def test_bytes_do_not_depend_on_layout_hash_seed_or_locale(tmp_path):
    census = garden()
    tallies = tuple(
        type(t).from_arrays({k: np.asfortranarray(a) for k, a in t.arrays().items()}, part.spec)
        for t, part in zip(census.tallies, census.plan.parts, strict=True)
    )
    swapped = ModelCounts(census.plan, census.labels, census.class_weight.astype(">f8"), tallies, census.n_rows)
    store.save(FittedModel(census), tmp_path / "a")
    store.save(FittedModel(swapped), tmp_path / "b")
    script = (
        "import sys; from candide import store; from candide.model.fitted import FittedModel; "
        "from candide.demo import garden; "
        "store.save(FittedModel(garden()), sys.argv[1])"
    )
    for i, locale in enumerate(("C", "tr_TR.UTF-8")):
        env = os.environ | {"PYTHONHASHSEED": str(i), "LC_ALL": locale}
        subprocess.run([sys.executable, "-c", script, tmp_path / f"c{i}"], env=env, check=True)
    assert len({(tmp_path / n).read_bytes() for n in ("a", "b", "c0", "c1")}) == 1


def test_the_file_is_laid_out_as_safetensors_is(tmp_path):
    """Read by hand: the length of a header, the header as JSON, and arrays without gaps."""
    model, _ = MODELS["mixed-odd"]
    model.save(tmp_path / "m.candide")
    content = (tmp_path / "m.candide").read_bytes()
    size = int.from_bytes(content[:8], "little")
    entries, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    notes = entries.pop("__metadata__")
    assert all(isinstance(text, str) for item in notes.items() for text in item)
    assert json.loads(notes["candide"])["format"] == store.FORMAT
    ends = sorted(entry["data_offsets"] for entry in entries.values())
    assert [start for start, _ in ends] == [0, *(stop for _, stop in ends[:-1])]
    assert ends[-1][1] == len(data)
    assert {entry["dtype"] for entry in entries.values()} <= {"F64", "I64", "I32", "U8"}
    start, stop = entries["class_weight"]["data_offsets"]
    np.testing.assert_array_equal(np.frombuffer(data[start:stop], "<f8"), model.counts_.class_weight)
    assert set(entries) > {"text", "text.ends", "class_weight", "0.columns"}


@given(st.lists(st.lists(st.one_of(st.text(), st.text(st.sampled_from("a\né")), st.integers(), st.booleans(),
                                   st.floats(allow_nan=False)))))  # fmt: skip
def test_any_values_come_back_from_the_pool(lists):
    pool = StringPool()
    sizes = [pool.add(tuple(values)) for values in lists]
    if not sum(sizes):
        return
    reader = StringReader(pool.arrays())
    for values, size in zip(lists, sizes, strict=True):
        back = reader.take(size)
        assert list(back) == values
        assert list(map(type, back)) == list(map(type, values))
    reader.check_all_used()


@given(st.sets(st.text(min_size=0, max_size=8), min_size=1, max_size=20))
def test_any_levels_come_back_from_a_file(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("levels") / "m.candide"
    levels = Labels.from_values(list(words))
    plan = Plan(("w",), (PlanPart(Categorical(), ("w",)).with_labels((levels,)),))
    counts = np.arange(2.0 * len(levels)).reshape(2, -1)
    tally = LevelTally(counts, np.array([0, len(levels)]))
    store.save(FittedModel(ModelCounts(plan, Labels(("a", "b")), np.ones(2), (tally,), 2)), path)
    assert store.load(path).plan.parts[0].levels == (levels,)


def test_what_cannot_be_kept_is_said(tmp_path):
    import fractions

    from candide.events import Gaussian

    class Mine(Gaussian):
        pass

    X, y = numbers(), labels_of("str")
    with pytest.raises(InputError, match="pickle the model"):
        cd.NaiveBayes(Mine()).fit(X, y).save(tmp_path / "m")
    parts = [fractions.Fraction(1 + i % 2, 3) for i in range(len(y))]
    with pytest.raises(InputError, match="is a Fraction; a model file holds text, numbers, booleans, dates and times"):
        cd.NaiveBayes("categorical").fit({"part": parts}, y).save(tmp_path / "m")
    with pytest.raises(InputError, match="detail"):
        cd.NaiveBayes().fit(X, y).save(tmp_path / "m", detail="tallies")
    with pytest.raises(InputError, match="provenance"):
        cd.NaiveBayes().fit(X, y).save(tmp_path / "m", provenance={"rows": 3})
    assert not list(tmp_path.iterdir())


def test_levels_that_are_times_and_durations_are_kept(tmp_path):
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


def test_levels_that_are_dates_are_kept(tmp_path):
    import datetime

    X = {"day": [datetime.date(2020, 1, 1 + i % 3) for i in range(60)]}
    model = cd.NaiveBayes("categorical").fit(X, labels_of("datetime"))
    model.save(tmp_path / "m")
    again = cd.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.fitted_.plan.parts[0].levels[0].values == tuple(datetime.date(2020, 1, 1 + i) for i in range(3))
    assert (again + model).counts_.n_rows == 120


def test_provenance_and_target_are_kept_through_loading_and_merging(tmp_path):
    path = tmp_path / "m.candide"
    rows = {name: column for name, column in mixed().items() if name in ("age", "job", "zip")}
    model = cd.fit({**rows, "y": labels_of("str")}, "y")
    model.save(path, provenance={"date": "2026-01-31", "source": "shop ☂"})
    again = cd.load(path)
    again = (again + again).partial_fit(rows, labels_of("str"))
    again.save(path)
    loaded = store.load(path)
    assert loaded.provenance == {"date": "2026-01-31", "source": "shop ☂"}
    assert loaded.target == "y"


def test_pickle_and_joblib_still_work(tmp_path):
    model, X = MODELS["mixed-str"]
    model.save(tmp_path / "m.candide")
    joblib.dump(cd.load(tmp_path / "m.candide"), tmp_path / "m.joblib")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m.joblib")):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_large_file_is_mapped_not_read(tmp_path):
    path = tmp_path / "m.candide"
    model, X = MODELS["mixed-str"]
    model.save(path)
    mapped = store.load(path, read_whole=100)
    base = mapped.counts.class_weight
    while isinstance(base, np.ndarray):
        base = base.base
    assert type(base.obj).__name__ == "mmap"
    np.testing.assert_array_equal(cd.NaiveBayes.from_fitted(mapped).predict_proba(X), model.predict_proba(X))
    damaged = bytearray(path.read_bytes())
    damaged[-12] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="checksum"):
        store.load(path, verify=True)


def test_a_model_without_counts_says_so(tmp_path):
    path = tmp_path / "m.candide"
    model, X = MODELS["mixed-str"]
    model.save(path, detail="score")
    scorer = cd.load(path)
    for attempt in (
        lambda: scorer + model,
        lambda: model + scorer,
        lambda: scorer - model,
        lambda: scorer.scale(0.5),
        lambda: scorer.partial_fit(X, labels_of("str")),
        lambda: scorer.with_prior("jeffreys"),
        lambda: scorer.save(path, detail="tally"),
    ):
        with pytest.raises(InputError, match="has no counts"):
            attempt()


def test_score_files_hold_no_counts_and_explain_files_tell_strengths(tmp_path):
    from candide.model.feature_selection import rank_columns_by_evidence

    census = garden()
    store.save(FittedModel(census), tmp_path / "s", detail="score")
    store.save(FittedModel(census), tmp_path / "e", detail="explain")
    score, explain = store.load(tmp_path / "s"), store.load(tmp_path / "e")
    assert not score.has_counts
    assert (score.n_rows, score.column_evidence) == (None, None)
    assert (explain.n_rows, list(explain.column_evidence.items())) == (300, rank_columns_by_evidence(census))
    store.save(explain, tmp_path / "e2")
    assert (tmp_path / "e2").read_bytes() == (tmp_path / "e").read_bytes()
    content = (tmp_path / "s").read_bytes()
    assert np.array([100.0]).tobytes() not in content  # how many of each herb there were
    table = Table.from_data(
        {"height_cm": [21.0], "leaf_mm": [8.0], "flowers": [14], "soil": ["sand"], "scented": ["yes"]}
    )
    assert score.classify(table).tolist() == ["thyme"]


def test_the_mode_of_a_file_is_kept_and_a_link_still_points_to_it(tmp_path):
    real, link = tmp_path / "real.candide", tmp_path / "link.candide"
    store.save(FittedModel(garden()), real)
    plain = tmp_path / "plain"
    plain.touch()
    assert stat.S_IMODE(real.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    real.chmod(0o640)
    link.symlink_to(real)
    store.update_file(link, lambda fitted: fitted + fitted)
    assert link.is_symlink()
    assert store.load(real).counts.n_rows == 600
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.candide", "plain", "real.candide"]


def test_loading_imports_no_heavy_library(tmp_path):
    store.save(FittedModel(garden()), tmp_path / "m.candide")
    code = f"import sys; from candide import store; store.load({str(tmp_path / 'm.candide')!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    heavy = {
        "scipy",
        "sklearn",
        "pyarrow",
        "duckdb",
        "sqlglot",
        "rich",
        "pandas",
        "tempfile",
        "concurrent",
    }
    assert not loaded & heavy
    assert "numpy.random" not in done.stdout.split()


@pytest.mark.parametrize("name", MODELS)
def test_what_is_dumped_is_loaded(name):
    """Executors ship what they counted, and it adds."""
    fitted = MODELS[name][0].fitted_
    census = store.loads(store.dumps(fitted.counts))
    assert isinstance(census, ModelCounts)
    assert census.plan == fitted.counts.plan
    assert (census + fitted.counts).n_rows == 2 * fitted.counts.n_rows
    for detail in store.DETAILS:
        again = store.loads(store.dumps(fitted, detail=detail))
        for mine, theirs in zip(fitted.model.distributions, again.model.distributions, strict=True):
            assert type(mine) is type(theirs)
        np.testing.assert_array_equal(again.model.log_prior, fitted.model.log_prior)


def test_a_census_in_a_file_is_a_model_of_the_usual_settings(tmp_path):
    (tmp_path / "m").write_bytes(store.dumps(garden()))
    assert store.load(tmp_path / "m").settings == FittedModel(garden()).settings


def test_a_dictionary_of_parameters_comes_back():
    from candide.events import Gaussian
    from candide.store import values

    given = {"events": {("a", "b"): Gaussian(covariance="full"), 3: "poisson"}, "alpha": 0.5, "names": ("x", None)}
    arrays = {}
    assert values.unpack_value(json.loads(json.dumps(values.pack_value(given, arrays))), arrays) == given
    with pytest.raises(ModelFileError, match="a name that is neither"):
        values.unpack_value({"pairs": [[{"pairs": []}, 1]]}, {})


def gridded():
    """A census in which one category is a grid of numbers, and another has its levels."""
    from candide.encoding import Grid
    from candide.encoding import LevelEncoding as Kinds
    from candide.engines import arrays

    rows = Table.from_data({"age": np.arange(40.0), "job": ["cook", "smith"] * 20})
    encodings = Grid((10.0, 20.0, 30.5), cells=9), Kinds().learn(["cook", "smith"])
    plan = Plan(("age", "job"), (PlanPart(Categorical(), ("age", "job"), encodings),))
    return arrays.count_table(rows, ["a"] * 15 + ["b"] * 25, plan=plan), rows


@pytest.mark.parametrize("order", [2, 3])
def test_many_sets_of_columns_are_kept(order):
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


def test_grids_are_kept():
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
def test_an_encoding_that_does_not_fit_is_refused(change):
    from candide.store import container

    header, arrays = container.unpack_container(memoryview(store.dumps(gridded()[0])), verify=True)
    header["parts"][0]["encodings"][0]["settings"] = change
    with pytest.raises(ModelFileError):
        store.loads(b"".join(bytes(piece) for piece in container.pack_container(header, arrays)))


def test_encodings_that_are_not_the_event_models_own_are_kept():
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
def test_levels_that_are_times_are_kept_in_every_encoding(levels, tmp_path):
    """Also in a discriminant, whose levels stand among the settings of its encodings."""
    X = {"when": np.array(levels * 30, object), "x": numbers()[:, 0]}
    encodings = Indicators.from_column(X["when"], 9), NormalScore().learn(X["x"])
    parts = (PlanPart(Categorical(), ("when",)), PlanPart(Discriminant(quadratic=False), ("when", "x"), encodings))
    plan = Plan(("when", "x"), parts).with_levels(Table.from_data(X))
    model = cd.BayesClassifier(like=plan).fit(X, labels_of("str"))
    model.save(tmp_path / "m.candide")
    assert (cd.load(tmp_path / "m.candide").predict_proba(X) == model.predict_proba(X)).all()


@pytest.mark.parametrize("packed", [["date", "2024-02-30"], ["time"], ["str", "x"], ["date", 5], "2024-02-29"])
def test_a_time_in_a_file_is_checked(packed):
    with pytest.raises(ModelFileError):
        unpack_value({"time": packed}, {})
