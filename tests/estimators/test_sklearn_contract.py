"""scikit-learn's contract without its base class: its tools work on every estimator here."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import check_is_fitted

import candide as cd
from candide.errors import InputError, InputTypeError, MergeError, NotCountedError

RNG = np.random.default_rng(0)
Y = np.array(["a", "b", "c"])[RNG.integers(0, 3, 90)]
X = RNG.poisson(1.0 + 2 * (Y[:, None] == np.array(["a", "b", "c", "a"]))).astype(float)
FRAME = pd.DataFrame(X, columns=list("pqrs"))
GRIDS = {
    "NaiveBayes": {"events": ["poisson", "gaussian"]},
    "GaussianBayes": {"covariance": ["tied", "full"]},
    "GaussianNB": {"var_smoothing": [1e-9, 1e-3]},
    "BernoulliNB": {"alpha": [0.1, 1.0]},
    "MultinomialNB": {"alpha": [0.1, 1.0]},
    "ComplementNB": {"norm": [False, True]},
    "CategoricalNB": {"alpha": [0.1, 1.0], "min_categories": [20]},
}
NAMES = list(GRIDS)
DROP_INS = NAMES[2:]


def make(name, **params):
    return getattr(cd, name)(**({"min_categories": 20} if name == "CategoricalNB" else {}), **params)


@pytest.mark.parametrize("name", NAMES)
def test_scikit_learns_tools_work(name):
    model = make(name)
    assert is_classifier(model)
    assert cross_val_score(model, X, Y, cv=3).mean() > 0.4
    search = GridSearchCV(model, GRIDS[name], cv=3).fit(X, Y)
    assert set(search.best_params_) == set(GRIDS[name])
    scaled = [] if name == "CategoricalNB" else [MinMaxScaler()]
    pipeline = make_pipeline(*scaled, make(name)).set_output(transform="pandas")
    assert pipeline.fit(FRAME, Y).score(FRAME, Y) > 0.4
    assert name in repr(pipeline)
    assert clone(pipeline).get_params().keys() == pipeline.get_params().keys()
    columns = ColumnTransformer([("same", "passthrough", ["p", "q"])], remainder="drop")
    assert len(make_pipeline(columns, make(name)).fit(FRAME, Y).predict(FRAME)) == len(Y)


@pytest.mark.parametrize("name", NAMES)
def test_clones_pickles_and_fitted(name):
    model = make(name)
    with pytest.raises(NotFittedError, match=name):
        check_is_fitted(model)
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
        model.predict(X)
    check_is_fitted(model.fit(X, Y))
    fresh = clone(model)
    assert type(fresh) is type(model)
    assert not hasattr(fresh, "fitted_")
    assert fresh.get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(InputError, match="Invalid parameter 'wings'") as caught:
        model.set_params(wings=2)
    assert caught.value.value == "wings"


@pytest.mark.parametrize("name", NAMES)
def test_shown_in_a_notebook(name):
    model = make(name)
    assert name in model._repr_html_()
    assert set(model._repr_mimebundle_()) == {"text/plain", "text/html"}
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


def test_only_changed_parameters_are_printed():
    assert repr(cd.NaiveBayes()) == "NaiveBayes()"
    assert repr(cd.MultinomialNB(alpha=0.5, fit_prior=True)) == "MultinomialNB(alpha=0.5)"
    assert len(repr(cd.MultinomialNB(class_prior=list(range(5000))))) < 400


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("frame", [FRAME, pl.DataFrame({name: FRAME[name].to_numpy() for name in FRAME})])
def test_a_frame_at_fit_and_an_array_at_predict_go_by_position(name, frame):
    by_name, by_place = make(name).fit(frame, Y), make(name).fit(X, Y)
    assert by_name.feature_names_in_.tolist() == list("pqrs")
    assert not hasattr(by_place, "feature_names_in_")
    with pytest.warns(UserWarning, match=f"X does not have valid feature names, but {name} was fitted with"):
        found = by_name.predict_proba(X)
    np.testing.assert_allclose(found, by_place.predict_proba(X))
    with pytest.warns(UserWarning, match=f"X has feature names, but {name} was fitted without"):
        np.testing.assert_allclose(by_place.predict_proba(frame), found)
    with (
        pytest.raises(InputError, match=f"X has 3 features, but {name} is expecting 4 features"),
        pytest.warns(UserWarning, match="valid feature names"),
    ):
        by_name.predict(X[:, :3])


def test_by_position_through_every_verb(tmp_path):
    mixed = FRAME.assign(kind=Y, key=np.arange(90))
    rows = mixed.to_numpy(object)
    with pytest.warns(UserWarning, match="'key' is left out"):
        model = cd.NaiveBayes().fit(mixed, Y)
    with pytest.warns(UserWarning, match="valid feature names") as caught:
        np.testing.assert_array_equal(model.predict_proba(rows), model.predict_proba(mixed))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="valid feature names"):
        assert {one.column for one in model.explain(rows[:1])[0].contributions} == {*"pqrs", "kind"}
    with pytest.warns(UserWarning, match="valid feature names"):
        assert model.forget(rows[:10], Y[:10]).counts_.n_rows == 80
    model.save(tmp_path / "m")
    with pytest.raises(InputError) as error:  # a file does not keep the names of columns left out
        cd.load(tmp_path / "m").predict(rows)
    assert error.value.column == "p"


def test_names_of_text_and_others_together_are_refused():
    odd = FRAME.rename(columns={"q": 7})
    for name in ("NaiveBayes", "GaussianNB"):
        with pytest.raises(InputTypeError, match="string names"):
            make(name).fit(odd, Y)
    numbered = FRAME.set_axis([10, 20, 30, 40], axis=1)
    model = cd.NaiveBayes("poisson").fit(numbered, Y)
    np.testing.assert_array_equal(model.predict(X), model.predict(numbered))


@pytest.mark.parametrize("name", DROP_INS)
def test_drop_ins_add_subtract_and_forget(name):
    whole = make(name).fit(X, Y)
    one, two = (make(name).partial_fit(X[i::2], Y[i::2], classes=["a", "b", "c"]) for i in (0, 1))
    np.testing.assert_allclose((one + two).predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(sum([one, two]).class_count_, whole.class_count_)
    np.testing.assert_allclose((whole - two).predict_proba(X), one.predict_proba(X), rtol=1e-6)
    np.testing.assert_allclose(whole.scale(0.5).class_count_, whole.class_count_ / 2)
    np.testing.assert_allclose(
        make(name).fit(X, Y).forget(X[1::2], Y[1::2]).predict_proba(X), one.predict_proba(X), rtol=1e-6
    )
    with pytest.raises(NotCountedError):
        one - whole
    with pytest.raises(TypeError, match="unsupported operand"):
        whole + cd.NaiveBayes().fit(X, Y)
    with pytest.raises(MergeError):
        whole + make(name).fit(X[:, :2], Y)


@pytest.mark.parametrize("name", DROP_INS)
def test_drop_ins_explain_sample_and_score_tables(name, tmp_path):
    model = make(name).fit(FRAME, Y)
    log_p = model.predict_log_proba(FRAME)
    for row, decision in enumerate(model.explain(FRAME[:5])):
        first, second = np.argsort(-log_p[row])[:2]
        assert decision.prediction == model.classes_[first]
        assert decision.log_odds == pytest.approx(log_p[row, first] - log_p[row, second], abs=1e-9)
    broken = FRAME.copy()
    broken.loc[3, "q"] = np.nan
    with pytest.raises(InputError, match="NaN"):
        model.explain(broken)
    assert {score.column for score in model.feature_scores()} == set("pqrs")
    scored = model.predict_table(FRAME)
    np.testing.assert_array_equal(scored["prediction"].to_pylist(), model.predict(FRAME))
    np.testing.assert_allclose(scored["p_b"].to_numpy(), model.predict_proba(FRAME)[:, 1], rtol=1e-9)
    if name == "ComplementNB":
        with pytest.raises(InputError, match="no density"):
            model.log_density(FRAME)
        with pytest.raises(InputError, match="cannot sample"):
            model.sample(3)
    else:
        drawn, labels = make(name).fit(X, Y).sample(500, random_state=0)
        assert drawn.shape == (500, 4)
        assert make(name).fit(drawn, labels).score(X, Y) > 0.4
    model.save(tmp_path / "m", detail="score")
    again = cd.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_log_proba(FRAME), log_p)
    with pytest.raises(InputError, match="has no counts"):
        _ = again.class_count_


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("GaussianNB", {"var_smoothing": 0.1, "priors": [0.2, 0.3, 0.5]}),
        ("BernoulliNB", {"alpha": 0.1, "fit_prior": False}),
        ("MultinomialNB", {"alpha": [0.1, 1.0, 2.0, 3.0]}),
        ("ComplementNB", {"norm": True}),
        ("CategoricalNB", {"alpha": 3.0}),
    ],
)
def test_drop_ins_under_other_parameters(name, params):
    again = make(name).fit(X, Y).with_prior(**params)
    np.testing.assert_array_equal(again.predict_proba(X), make(name, **params).fit(X, Y).predict_proba(X))


@pytest.mark.parametrize(
    ("name", "params"), [("BernoulliNB", {"binarize": 2.0}), ("CategoricalNB", {"min_categories": 30})]
)
def test_what_is_counted_cannot_be_chosen_again(name, params):
    with pytest.raises(InputError, match="changes what is counted") as caught:
        make(name).fit(X, Y).with_prior(**params)
    assert caught.value.remedy == "fit again"
    assert caught.value.value == next(iter(params.values()))


def test_priors_that_do_not_sum_to_one_are_treated_as_in_scikit_learn():
    from sklearn.naive_bayes import BernoulliNB, ComplementNB

    for ours, theirs in ((cd.BernoulliNB, BernoulliNB), (cd.ComplementNB, ComplementNB)):
        for y, given in ((Y, [1.0, 2.0, 5.0]), (Y, [0.0, 2.0, 2.0]), (np.zeros(90), [0.3])):
            with np.errstate(divide="ignore"):
                a, b = (kind(class_prior=given).fit(X, y) for kind in (ours, theirs))
                np.testing.assert_allclose(a.class_log_prior_, b.class_log_prior_)
                np.testing.assert_allclose(a.predict_joint_log_proba(X), b.predict_joint_log_proba(X))


def test_a_class_of_weight_zero_may_get_rows_later():
    X, y = np.array([[1.0], [2.0], [3.0], [4.0], [6.0], [9.0]]), list("aabbcc")
    model = cd.GaussianBayes("diagonal", estimate="mle").fit(X, y, sample_weight=[1, 1, 0, 0, 1, 1])
    assert model.classes_.tolist() == ["a", "b", "c"]
    whole = cd.GaussianBayes("diagonal", estimate="mle").fit(X, y)
    np.testing.assert_allclose(model.partial_fit(X[2:4], y[2:4]).predict_proba(X), whole.predict_proba(X), rtol=1e-12)


def test_labels_in_the_place_of_a_path_are_a_clear_error():
    X, y = pd.DataFrame({"age": [25, 32, 47, 51]}), pd.Series(["no", "no", "yes", "yes"])
    with pytest.raises(InputTypeError, match=r"path of an output file, got Series; .*target='label'"):
        cd.NaiveBayes().fit(X, y).report(X, y)
