"""What is forgotten leaves no trace: the model, and its file, are those that never saw the rows."""

import numpy as np
import pytest
from tests.tables import table

import candide as cd
from candide import store
from candide.errors import InputError, NotCountedError
from candide.fit_source import fit_model
from candide.report import summary

EVENTS = {"note": "text", "code": "categorical"}


def days(seed, secret=()):
    """Rows of whole numbers, so that sums are exact; ``secret`` is a class, a level and a word that nobody else has."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 40)
    rows = {
        "size": (y * 3 + rng.integers(0, 4, 40)).astype(float).tolist(),
        "job": [("cook", "smith", "tailor")[v] for v in rng.integers(0, 3, 40)],
        "code": rng.integers(0, 5, 40).tolist(),
        "note": [f"some word{v} in here" for v in rng.integers(0, 9, 40)],
        "y": [("no", "yes")[v] for v in y],
    }
    for name, value in secret:
        rows[name][0] = value
    return rows


SECRETS = [(), [("y", "perhaps")], [("job", "spy"), ("note", "whisper it softly"), ("code", 77)]]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("class_prior", ["empirical", "uniform"])
def test_either_part_is_left_of_the_whole_byte_for_byte(secret, class_prior, tmp_path):
    settings = cd.model.settings.Settings(class_prior=class_prior)
    fit = lambda rows: fit_model(rows, "y", events=EVENTS, settings=settings, model="naive").fitted  # noqa: E731
    a, b = days(1), days(2, secret)
    path = tmp_path / "m.candide"
    store.save(fit(a), path)
    alone = path.read_bytes()
    cd.update_model(path, b)
    assert b"perhaps" not in alone
    assert b"spy" not in alone
    both = path.read_bytes()
    cd.forget_rows(path, b)
    assert path.read_bytes() == alone
    path.write_bytes(both)
    cd.forget_rows(path, a)
    assert path.read_bytes() == store.dumps(fit(b))
    path.write_bytes(both)
    assert store.dumps(cd.slide_window(path, b, a).fitted) == store.dumps(fit(b) + fit(b))


def test_a_forgotten_class_is_never_predicted():
    rows = days(1)
    X, y = {name: rows[name] for name in rows if name != "y"}, rows["y"]
    for model in (cd.NaiveBayes(EVENTS, class_prior="uniform"), cd.NaiveBayes(EVENTS)):
        model.fit(X, y).partial_fit({name: X[name][:2] for name in X}, ["perhaps"] * 2)
        assert model.forget({name: X[name][:2] for name in X}, ["perhaps"] * 2).classes_.tolist() == ["no", "yes"]
        np.testing.assert_array_equal(model.predict_proba(X), model.fit(X, y).predict_proba(X))


def test_a_class_that_was_announced_stays():
    X, y = np.array([[1.0], [2.0], [8.0]]), ["a", "a", "b"]
    for kind in (cd.NaiveBayes, cd.GaussianNB):
        model = kind().partial_fit(X, y, classes=["a", "b"]).forget(X[2:], y[2:])
        assert model.classes_.tolist() == ["a", "b"]
        assert kind().fit(X, y).forget(X[2:], y[2:]).classes_.tolist() == ["a"]
    kept = cd.NaiveBayes(class_prior={"a": 0.5, "b": 0.5}).fit(X, y).forget(X[2:], y[2:])
    assert kept.classes_.tolist() == ["a", "b"]


def test_what_was_declared_is_declared_in_the_file(tmp_path):
    X, y, path = [[0, 2], [1, 0], [4, 1]], ["a", "a", "b"], tmp_path / "m.candide"
    model = cd.CategoricalNB(min_categories=[3, 1]).partial_fit(X, y, classes=["a", "b", "c"])
    model.save(path)
    left = cd.load(path).forget([[4, 1], [0, 2]], ["b", "a"])
    assert left.classes_.tolist() == ["a", "b", "c"]
    assert left.n_categories_.tolist() == [3, 1]  # 3 were declared, of the other column none above 0 is left
    alone = cd.CategoricalNB(min_categories=[3, 1]).partial_fit([[1, 0]], ["a"], classes=["a", "b", "c"])
    np.testing.assert_array_equal(left.predict_proba([[0, 0], [2, 3]]), alone.predict_proba([[0, 0], [2, 3]]))


def test_nothing_is_left_of_everything(tmp_path):
    rows, path = days(1), tmp_path / "m.candide"
    store.save(fit_model(rows, "y", events=EVENTS, model="naive").fitted, path)
    change = cd.forget_rows(path, rows)
    assert [remark.code for remark in change.notes] == ["no-rows"]
    assert summary.summarize_model(path).classes == ()
    for word in (b"yes", b"cook", b"word1"):
        assert word not in path.read_bytes()
    with pytest.raises(InputError) as caught:
        cd.load(path).predict({name: rows[name] for name in rows if name != "y"})
    assert caught.value.remedy
    again = cd.update_model(path, rows).fitted
    assert store.dumps(again) == store.dumps(fit_model(rows, "y", events=EVENTS, model="naive").fitted)


def test_a_country_of_one_row_is_forgotten_on_adult(tmp_path):
    import pyarrow.parquet as pq

    rows = pq.read_table(table("adult_train.parquet"))
    a, b = rows.slice(0, 8000), rows.slice(8000)
    alone, whole = fit_model(a, "class", model="naive").fitted, fit_model(rows, "class", model="naive").fitted
    left = cd.forget_rows(whole, b).fitted
    some = rows.slice(0, 500).drop_columns(["class"])
    np.testing.assert_allclose(left.posterior(some), alone.posterior(some), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [cd.NaiveBayes, cd.BayesClassifier])
@pytest.mark.parametrize("column", ["amount", "items", "country"])
def test_more_missing_values_than_were_counted_cannot_be_removed(make, column):
    rng = np.random.default_rng(0)
    X = {"amount": rng.gamma(2.0, 30.0, 200), "items": rng.poisson(3, 200), "country": rng.choice(["AT", "CH"], 200)}
    X = {name: values.astype(object) for name, values in X.items()}
    y = rng.choice(["late", "on time"], 200)
    rows = {name: [values[0]] for name, values in X.items()} | {column: [None]}
    model = make({"items": "poisson"} if make is cd.NaiveBayes else "auto").fit(X, y)
    with pytest.raises(NotCountedError, match="missing") as caught:
        model.forget(rows, y[:1])
    assert caught.value.column == column
    X[column][0] = None
    model = make({"items": "poisson"} if make is cd.NaiveBayes else "auto").fit(X, y)
    assert model.forget(rows, y[:1]).counts_.n_rows == 199
