"""A model comes back from its file as it went in, bit for bit, and the same model makes the same file."""

import json
import os
import pickle
import stat
import subprocess
import sys

import joblib
import numpy as np
import pytest
from tests.model_cases import MODELS, labels_of, mixed

import candide as cd
from candide import store
from candide.data.table import Table
from candide.demo import garden
from candide.errors import InputError, ModelFileError
from candide.events import EVENTS, Categorical
from candide.model.counts import ModelCounts
from candide.model.fitted import FittedModel
from candide.model.plan import Plan, PlanPart
from candide.priors import PRIORS
from candide.store.file import make_provenance


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


def test_a_model_without_counts_raises_errors(tmp_path):
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


def test_score_files_hold_no_counts_and_explain_files_hold_evidence(tmp_path):
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


def test_counts_in_a_file_are_a_model_with_default_settings(tmp_path):
    (tmp_path / "m").write_bytes(store.dumps(garden()))
    assert store.load(tmp_path / "m").settings == FittedModel(garden()).settings


def gridded():
    """A census in which one category is a grid of numbers, and another has its levels."""
    from candide.encoding import Grid
    from candide.encoding import LevelEncoding as Kinds
    from candide.engines import arrays

    rows = Table.from_data({"age": np.arange(40.0), "job": ["cook", "smith"] * 20})
    encodings = Grid((10.0, 20.0, 30.5), cells=9), Kinds().learn(["cook", "smith"])
    plan = Plan(("age", "job"), (PlanPart(Categorical(), ("age", "job"), encodings),))
    return arrays.count_table(rows, ["a"] * 15 + ["b"] * 25, plan=plan), rows


def test_provenance_names_the_source_and_the_date():
    made = make_provenance("rows.csv", 12, ["--drop", "id"], now=0.0)
    assert (made["source"], made["date"], made["options"]) == ("rows.csv", "1970-01-01T00:00:00Z", "--drop id")
    assert make_provenance("-", 12)["source"] == "standard input"
