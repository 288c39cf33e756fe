"""What is counted can be written, and what is written can be read: one bound for all of it, checked beforehand."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.client import ask

import candide as cd
from candide import store
from candide.cli.group import cli
from candide.encoding import Identity
from candide.errors import CandideError, InputError, SumTooLargeError
from candide.serve import app
from candide.tally import CoMoments, LevelTally, Moments, Sums, TallySpec
from candide.tally.base import MAX_SUM

TOO_LARGE = {"gaussian": 1e151, "poisson": 1e299, "exponential": 1e301, "multinomial": 1e301, "negativebinomial": 1e301}


def rows(n=40):
    return {"x": np.arange(1.0, n + 1), "y": np.array(["a", "b"] * (n // 2))}


def write(path, columns):
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize(("event", "value"), TOO_LARGE.items())
def test_update_refuses_what_it_could_not_read_again(event, value, tmp_path):
    path = tmp_path / "m.candide"
    cd.fit(rows(), "y", events={"x": event}, model="naive").save(path)
    before = path.read_bytes()
    new = write(tmp_path / "new.csv", {"x": [3, value], "y": ["a", "b"]})
    found = CliRunner().invoke(cli, ["update", str(path), new])
    assert isinstance(found.exception, SumTooLargeError)
    assert found.exception.column == "x"
    assert path.read_bytes() == before


@pytest.mark.parametrize(("event", "value"), TOO_LARGE.items())
def test_fit_names_column_row_and_value(event, value):
    data = rows()
    data["x"][7] = value
    with pytest.raises(SumTooLargeError) as caught:
        cd.NaiveBayes(event).fit({"x": data["x"]}, data["y"])
    assert (caught.value.column, caught.value.row, caught.value.value) == ("x", 7, value)
    with pytest.raises(SumTooLargeError) as caught:
        cd.fit(data, "y", events={"x": event}, model="naive")
    assert caught.value.column == "x"


def test_merging_and_scaling_stop_at_the_bound(tmp_path):
    y = ["a", "b"]
    one = cd.NaiveBayes("gaussian").fit({"z": [1.0, 2.0], "x": [9e149, 1.0]}, y)
    with pytest.raises(SumTooLargeError) as caught:
        one + one
    assert caught.value.column == "x"
    with pytest.raises(SumTooLargeError):
        one.fitted_.scale(2.0)
    with pytest.raises(SumTooLargeError):
        cd.NaiveBayes("gaussian").fit({"x": [1e80, 1.0]}, y, sample_weight=[1e149, 1.0])
    with pytest.raises(SumTooLargeError):
        cd.NaiveBayes("gaussian").fit({"x": [1.0, 1.0]}, y, sample_weight=[1e151, 1.0])
    one.save(tmp_path / "m")
    assert np.isfinite(cd.load(tmp_path / "m").predict_proba({"z": [1.0], "x": [5.0]})).all()


@pytest.mark.parametrize("model", [cd.GaussianNB(), cd.GaussianBayes("full"), cd.GaussianBayes("tied")])
def test_estimators_of_numbers_name_the_column(model):
    x = np.random.default_rng(0).normal(size=(40, 3))
    x[5, 2] = 1e151
    with pytest.raises(InputError) as caught:
        model.fit(x, np.arange(40) % 2)
    assert (caught.value.column, caught.value.row) == (2, 5)


TALLIES = {
    Moments: lambda big: Moments(np.array([[1.0, 1.0]]), np.array([[0.0, 0.0]]), np.array([[1.0, big]])),
    CoMoments: lambda big: CoMoments(np.array([[2.0]]), np.zeros((1, 2)), np.array([[[1.0, 0.0], [0.0, big]]])),
    Sums: lambda big: Sums(np.ones((1, 2)), np.array([[1.0, big]]), np.zeros((1, 2)), True),
    LevelTally: lambda big: LevelTally(np.array([[1.0, big]]), np.array([0, 1, 2])),
}


@pytest.mark.parametrize("kind", TALLIES)
def test_every_tally_knows_the_bound(kind):
    assert TALLIES[kind](0.99 * MAX_SUM).find_too_large() is None
    for big in (1.01 * MAX_SUM, np.inf, np.nan):
        assert TALLIES[kind](big).find_too_large() == (0, 1)


def test_squares_of_a_mean_count_too():
    one = Moments.from_rows(
        np.array([[1e151]]), np.array([0]), n_classes=1, spec=TallySpec.from_encoding("moments", Identity(), 1)
    )
    assert one.m2[0, 0] == 0.0
    assert one.find_too_large() == (0, 0)


def test_a_served_model_answers_for_nothing_that_it_cannot_read_again(tmp_path):
    base = replace(cd.fit(rows(), "y", model="naive", events={"x": "gaussian"}).fitted_, target="y")
    path = tmp_path / "state.db"
    served = app(base, journal_path=path)
    assert ask(served, "/learn?key=good", {"x": 3.0, "y": "a"}).status == 200
    answer = ask(served, "/learn?key=bad", {"x": 1e151, "y": "a"})
    assert answer.status == 422
    assert answer.json["column"] == "x"
    assert ask(served, "/learn?key=most", {"x": 9e149, "y": "a"}).status == 200
    assert ask(served, "/learn?key=more", {"x": 9e149, "y": "a"}).status == 422  # the two together are too large
    assert ask(served, "/forget?of=most", b"", media="").status == 200
    assert ask(served, "/learn?key=also", {"x": 4.0, "y": "b"}).status == 200
    kept = served.scorer.fitted.counts.n_rows
    served.close()
    again = app(base, journal_path=path)
    assert again.scorer.fitted.counts.n_rows == kept == 42
    assert ask(again, "/predict", [{"x": 3.0}]).status == 200
    again.close()


def test_a_journal_with_rows_too_large_to_count_is_read_without_them(tmp_path, monkeypatch):
    """A release that did not check its rows may have written some: the others are not lost."""
    from candide.model.counts import ModelCounts
    from candide.serve.learner import Learner

    base = replace(cd.fit(rows(), "y", model="naive", events={"x": "gaussian"}).fitted_, target="y")
    path = tmp_path / "state.db"
    with monkeypatch.context() as unchecked:
        unchecked.setattr(Moments, "find_too_large", lambda self: None)
        unchecked.setattr(ModelCounts, "check_range", lambda self: self)
        unchecked.setattr(Learner, "_write_snapshot", lambda self: None)
        served = app(base, journal_path=path)
        for i, x in enumerate([1.0, 2.0, 1e151, 3.0]):
            assert ask(served, f"/learn?key=k{i}", {"x": x, "y": "a"}).status == 200
        served.close()
    with pytest.warns(UserWarning, match="'k2' are too large to count"):
        again = app(base, journal_path=path)
    assert again.scorer.fitted.counts.n_rows == 43
    assert ask(again, "/forget?of=k3", b"", media="").json["rows"] == 1
    again.close()
    once_more = app(base, journal_path=path)
    assert once_more.scorer.fitted.counts.n_rows == 42
    once_more.close()


NUMBERS = [0.0, -0.0, 5e-324, 1e-300, 1e-160, 0.1, 1.0, 3.0, 1e8, 1e16, 1e75, 1e149, 9.9e149, 1.1e150, 1e154, 1e155]
NUMBERS += [1e299, 9e299, 1e301, 1.7e308, None]
WEIGHTS = [0.0, 5e-324, 1e-300, 0.5, 1.0, 1e100, 9e149, 2e150, 1e300]
WORDS = ["", "a", "b b", "\n", "é\ud800", "1", "01", "None", None]
EVENTS = ["gaussian", "lognormal", "exponential", "poisson", "multinomial", "complement", "negativebinomial", "binned"]
STEPS = ["more", "scale", "merge", "forget", "prior", "policy"]


def changed(model, step, table, y):
    """One change of a model, as users make them."""
    match step:
        case "more":
            return model.partial_fit(table, y)
        case "scale":
            return model.scale(1e149)
        case "merge":
            return model + model
        case "forget":
            return model.forget({name: column[:2] for name, column in table.items()}, y[:2])
        case "prior":
            return model.with_prior(class_prior={"a": 1.0, "b": 0.0})
        case _:
            return model.with_policy(threshold=1 - 1e-16, positive="b", class_prior={"a": 1e-300, "b": 1.0})


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_written_is_read(tmp_path_factory, data):
    n = data.draw(st.integers(2, 6))
    events = {name: data.draw(st.sampled_from(EVENTS)) for name in ("x", "z")} | {"w": "categorical"}
    draw = {"x": NUMBERS, "z": NUMBERS, "w": WORDS}
    table = {name: [data.draw(st.sampled_from(some)) for _ in range(n)] for name, some in draw.items()}
    y = ["a", "b", *(data.draw(st.sampled_from("ab")) for _ in range(n - 2))]
    weight = data.draw(st.one_of(st.none(), st.lists(st.sampled_from(WEIGHTS), min_size=n, max_size=n)))
    path = tmp_path_factory.mktemp("range") / "m.candide"
    try:
        with np.errstate(all="ignore"):
            model = cd.NaiveBayes(events).fit(table, y, sample_weight=weight)
    except CandideError:
        return
    model.save(path)
    for step in data.draw(st.lists(st.sampled_from(STEPS), max_size=3)):
        try:
            with np.errstate(all="ignore"):
                model = changed(model, step, table, y)
        except CandideError:
            break
        if set(model.classes_) != {"a", "b"}:  # a policy may name a class that was forgotten, which saving refuses
            break
        model.save(path, force=True)
    again = store.load(path)
    for detail in ("score", "explain"):
        try:
            model.save(path, detail=detail, force=True)
        except CandideError:
            continue
        store.load(path)
    assert again.labels.values == ("a", "b")


def test_a_file_that_could_not_be_read_never_takes_the_place_of_another(tmp_path, monkeypatch):
    path = tmp_path / "m.candide"
    model = cd.NaiveBayes("gaussian").fit({"x": [1.0, 2.0, 3.0]}, ["a", "b", "a"])
    model.save(path)
    before = path.read_bytes()
    broken = replace(model.fitted_, target="x" * (1 << 20))
    with pytest.raises(InputError, match="bytes"):
        store.save(broken, path)
    census = model.fitted_.counts
    wrong = replace(census, class_weight=np.array([-1.0, 2.0]))
    with pytest.raises(InputError, match="negative weight"):
        store.save(replace(model.fitted_, stored_counts=wrong), path)
    with pytest.raises(InputError, match="negative weight"):
        store.dumps(wrong)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.candide"]
    assert json.dumps(store.load(path).labels.values) == '["a", "b"]'
