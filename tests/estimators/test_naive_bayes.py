"""NaiveBayes on arrays and frames: mixed columns, priors, algebra, sampling, and clear errors."""

import pickle
import warnings
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import norm, poisson
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import candide as cd
from candide.errors import CandideError, InputError, MergeError, NotCountedError
from candide.estimators.sklearn_contract import takes_settings
from candide.events import Categorical, Exponential, Gaussian, Poisson
from candide.model.settings import Settings
from candide.priors import Dirichlet, Jeffreys


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170 + 5 * y, 6.0),
            "visits": rng.poisson(1 + 2 * y),
            "colour": np.array(["red", "green", "blue"])[np.where(rng.random(n) < 0.5, y, rng.integers(0, 3, n))],
            "wait": rng.exponential(1 + y),
        }
    )
    frame.loc[rng.random(n) < 0.1, "height"] = np.nan
    return frame, np.array(["a", "b", "c"])[y]


EVENTS = {"visits": Poisson(), "wait": "exponential"}


def test_the_joint_score_is_the_sum_of_its_columns():
    """By hand from maximum likelihood: Gaussian + Poisson + frequency, with a missing value left out."""
    X = {"h": [1.0, 2.0, 4.0, 5.0], "n": [1, 2, 5, 4], "c": ["u", "u", "v", "u"]}
    model = cd.NaiveBayes(events={"n": "poisson"}, estimate="mle").fit(X, [0, 0, 1, 1])
    joint = model.predict_joint_log_proba({"h": [3.0, None], "n": [3, 3], "c": ["u", "u"]})
    by_hand = [
        np.log(0.5) + norm.logpdf(3, 1.5, 0.5) + poisson.logpmf(3, 1.5) + np.log(1.0),
        np.log(0.5) + norm.logpdf(3, 4.5, 0.5) + poisson.logpmf(3, 4.5) + np.log(0.5),
    ]
    np.testing.assert_allclose(joint[0], by_hand, rtol=1e-12)
    np.testing.assert_allclose(joint[1], by_hand - norm.logpdf(3, [1.5, 4.5], 0.5), rtol=1e-12)


def test_log_density_is_the_log_sum_of_the_joint():
    X, y = mixed()
    model = cd.NaiveBayes(EVENTS).fit(X, y)
    np.testing.assert_allclose(
        model.log_density(X), np.logaddexp.reduce(model.predict_joint_log_proba(X), axis=1), rtol=1e-12
    )
    strange = X.iloc[:1].assign(height=400.0, wait=90.0)
    assert model.log_density(strange)[0] < model.log_density(X).min()


def test_sampling_and_fitting_again_recovers_the_model():
    X, y = mixed(3000)
    model = cd.NaiveBayes(EVENTS).fit(X, y)
    drawn, labels = model.sample(60_000, random_state=1)
    again = cd.NaiveBayes(EVENTS).fit(drawn, labels)
    np.testing.assert_allclose(again.counts_.class_weight / 60_000, model.counts_.class_weight / 3000, atol=0.02)
    np.testing.assert_allclose(again.predict_proba(X), model.predict_proba(X), atol=0.1)
    same, _ = model.sample(5, random_state=3), model.sample(5, random_state=3)
    assert same[1].tolist() == model.sample(5, random_state=3)[1].tolist()


def test_with_prior_equals_fitting_under_that_prior():
    X, y = mixed()
    model = cd.NaiveBayes(EVENTS).fit(X, y)
    changes = {"class_prior": "uniform", "estimate": "mean"}
    again = cd.NaiveBayes(EVENTS, **changes).fit(X, y)
    np.testing.assert_allclose(model.with_prior(**changes).predict_proba(X), again.predict_proba(X), rtol=1e-12)
    jeffreys = model.with_prior({"categorical": Jeffreys()}, estimate="mean")
    direct = cd.NaiveBayes({**EVENTS, "colour": Categorical(prior=Dirichlet(0.5))}, estimate="mean").fit(X, y)
    np.testing.assert_allclose(jeffreys.predict_proba(X), direct.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("prior", "shares"),
    [
        ("uniform", [1 / 3] * 3),
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ({"c": 0.5, "a": 0.2, "b": 0.3}, [0.2, 0.3, 0.5]),
        ("empirical", [4 / 7, 2 / 7, 1 / 7]),
        (Dirichlet(2.0), [6 / 13, 4 / 13, 3 / 13]),
    ],
)
def test_class_priors(prior, shares):
    model = cd.NaiveBayes(class_prior=prior, estimate="mean").fit(np.arange(7.0)[:, None], list("aaaabbc"))
    np.testing.assert_allclose(np.exp(model.fitted_.model.log_prior), shares)
    np.testing.assert_allclose(model.predict_proba([[np.nan]])[0], shares)


def test_models_add_and_subtract():
    X, y = mixed(400)
    parts = [cd.NaiveBayes(EVENTS).partial_fit(X[i::4], y[i::4]) for i in range(4)]
    whole = cd.NaiveBayes(EVENTS).fit(X, y)
    np.testing.assert_allclose(sum(parts).predict_proba(X), whole.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose((sum(parts) - parts[3]).predict_proba(X), sum(parts[:3]).predict_proba(X), rtol=1e-9)
    with pytest.raises(NotCountedError):
        parts[0] - whole
    with pytest.raises(MergeError, match=r"gaussian|Gaussian"):
        whole + cd.NaiveBayes({**EVENTS, "height": Exponential()}).fit(X, y)
    with pytest.raises(MergeError, match=r"different columns.*wait"):
        whole + cd.NaiveBayes({"visits": "poisson"}).fit(X.drop(columns="wait"), y)


def test_new_classes_and_levels_in_partial_fit():
    model = cd.NaiveBayes().partial_fit({"c": ["u"] * 3}, ["b"] * 3)
    assert model.predict({"c": ["u"]}).tolist() == ["b"]
    model.partial_fit({"c": ["v"] * 4}, ["a"] * 4)
    assert model.classes_.tolist() == ["a", "b"]
    assert model.predict({"c": ["u", "v"]}).tolist() == ["b", "a"]


def test_scikit_learns_tools():
    X, y = mixed(200)
    assert cross_val_score(cd.NaiveBayes(EVENTS), X, y, cv=4).mean() > 0.5
    search = GridSearchCV(
        cd.NaiveBayes(EVENTS), {"estimate": ["map", "predictive"], "class_prior": ["uniform", "empirical"]}, cv=3
    )
    assert set(search.fit(X, y).best_params_) == {"estimate", "class_prior"}
    model = cd.NaiveBayes(EVENTS).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def test_a_sparse_matrix_is_counts():
    X = sp.random_array((50, 30), density=0.2, rng=np.random.default_rng(0)) * 10
    y = np.arange(50) % 3
    for events in ("auto", "bernoulli", "poisson", "complement"):
        a = cd.NaiveBayes(events, estimate="mean").fit(sp.csr_array(X), y)
        b = cd.NaiveBayes("multinomial" if events == "auto" else events, estimate="mean").fit(X.toarray(), y)
        np.testing.assert_allclose(a.predict_proba(sp.csc_array(X)), b.predict_proba(X.toarray()), rtol=1e-9)


def test_columns_may_come_in_another_order_and_more_may_come():
    X, y = mixed()
    model = cd.NaiveBayes(EVENTS).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X[X.columns[::-1]].assign(more=1)), model.predict_proba(X))


def test_an_identifier_is_left_out_with_a_note():
    X, y = mixed()
    with pytest.warns(UserWarning, match="column 'key' is left out: whole numbers that step by one"):
        model = cd.NaiveBayes(EVENTS).fit(X.assign(key=np.arange(len(X))), y)
    assert "key" not in model.counts_.plan.columns
    np.testing.assert_array_equal(model.predict_proba(X), cd.NaiveBayes(EVENTS).fit(X, y).predict_proba(X))


BAD = {
    "infinite": (lambda X, y: (X.assign(height=np.inf), y), r"column 'height' \(row 0\): infinity"),
    "text for a number": (lambda X, y: (X.assign(wait="soon"), y), r"column 'wait' \(row 0\): 'soon' is not a number"),
    "negative count": (lambda X, y: (X.assign(visits=-1), y), r"column 'visits'.*-1"),
    "wrong length": (lambda X, y: (X, y[:-1]), "300 rows in X, 299 labels in y"),
    "no rows": (lambda X, y: (X[:0], y[:0]), r"0 sample\(s\)"),
    "one class": (lambda X, y: (X, ["a"] * len(y)), "one class only, 'a'"),
    "missing label": (lambda X, y: (X, [None, *y[1:]]), "row 0: Input y contains NaN: a label is missing"),
    "3-D": (lambda X, y: (np.zeros((3, 2, 2)), y[:3]), "3-D array"),
    "unknown type": (lambda X, y: (3, y), "cannot read rows from int"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_changes_nothing(case):
    X, y = mixed()
    model = cd.NaiveBayes(EVENTS).fit(X, y)
    before = model.predict_proba(X)
    bad, message = BAD[case]
    verbs = [model.fit] if case == "one class" else [model.fit, model.partial_fit]
    for verb in verbs:
        with pytest.raises(CandideError, match=message) as caught:
            verb(*bad(X, y))
        assert isinstance(caught.value, ValueError)
        np.testing.assert_array_equal(model.predict_proba(X), before)


@pytest.mark.parametrize(("weight", "message"), [(-1.0, "-1"), (np.nan, "nan"), (np.inf, "inf")])
def test_bad_weights(weight, message):
    X, y = mixed()
    with pytest.raises(CandideError, match=f"sample_weight: {message}") as caught:
        cd.NaiveBayes(EVENTS).fit(X, y, sample_weight=[weight] + [1.0] * (len(y) - 1))
    assert caught.value.row == 0
    np.testing.assert_equal(caught.value.value, weight)
    assert "0 to leave a row out" in caught.value.remedy


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"events": "gausian"}, "unknown event 'gausian'; did you mean 'gaussian'"),
        ({"events": {"hight": "gaussian"}}, "unknown column in events 'hight'; did you mean 'height'"),
        ({"estimate": "meen"}, "unknown estimate 'meen'; did you mean 'mean'"),
        (
            {"class_prior": "unform"},
            "unknown class prior 'unform'; did you mean 'uniform'. Known: empirical, uniform, d",
        ),
        ({"class_prior": {"a": 0.5, "b": 0.2, "cc": 0.3}}, "unknown class in class_prior 'cc'"),
        ({"class_prior": {"a": 0.5, "b": 0.5}}, "no proportion of 'c'; give every class a proportion"),
        ({"class_prior": [0.5, 0.5]}, "2 proportions for 3 classes"),
        ({"class_prior": [0.5, 0.5, 0.5]}, "sum to 1"),
        ({"param_priors": {"poison": "gamma"}}, "unknown event in param_priors 'poison'; did you mean 'poisson'"),
        ({"param_priors": {"categorical": "gamma"}}, "takes the priors PooledDirichlet, Dirichlet, Jeffreys, Uniform"),
        ({"events": Gaussian()}, r"column 'colour' \(row 0\): '(blue|red|green)'"),
    ],
)
def test_bad_settings(params, message):
    X, y = mixed()
    with pytest.raises(CandideError, match=message):
        cd.NaiveBayes(**({"events": EVENTS} | params)).fit(X, y)


@pytest.mark.parametrize(
    ("events", "row"),
    [
        ("multinomial", [100, 100]),
        ("complement", [100, 100]),
        ("poisson", [0, 8]),
        ("exponential", [3.5, 0]),
        ("gaussian", [9, 9]),
        ("bernoulli", [0, 1]),
        ("categorical", [1, 1]),
        (Gaussian(covariance="full"), [2, 4]),
    ],
)
def test_rows_that_were_never_counted_cannot_be_taken_away(events, row, tmp_path):
    X, y = [[1, 4], [2, 3], [3, 2], [4, 1]], [0, 0, 1, 1]
    model = cd.NaiveBayes(events).fit(X, y)
    model.save(tmp_path / "m")
    for whole in (model, cd.load(tmp_path / "m")):
        before = whole.predict_proba(X)
        with pytest.raises(NotCountedError, match="class 0"):
            whole.forget([row], [0])
        with pytest.raises(NotCountedError, match="class 0") as error:
            whole - cd.NaiveBayes(events).partial_fit([row], [0])
        assert error.value.column in (0, 1)
        np.testing.assert_array_equal(whole.predict_proba(X), before)
        for i in (2, 0, 3, 1):
            whole.forget(X[i : i + 1], y[i : i + 1])
        assert whole.counts_.n_rows == 0


def test_a_column_of_arrays_is_left_out_with_a_note():
    X = pd.DataFrame({"a": [1.0, 2.0, 8.0, 9.0], "v": [np.arange(3.0) + i for i in range(4)]})
    with pytest.warns(UserWarning, match="column 'v' is left out: lists, structures"):
        model = cd.NaiveBayes().fit(X, [0, 0, 1, 1])
    assert model.fitted_.plan.columns == ("a",)
    with pytest.raises(CandideError, match="'v'"):
        cd.NaiveBayes({"v": "gaussian"}).fit(X, [0, 0, 1, 1])


def test_a_column_that_never_held_a_value_is_drawn_as_missing():
    X = {"a": [1.0, 2.0, 8.0, 9.0], "b": [None] * 4}
    drawn, _ = cd.NaiveBayes({"b": "categorical"}).fit(X, [0, 0, 1, 1]).sample(5, random_state=0)
    assert np.isnan(drawn["b"]).all()
    assert np.isfinite(drawn["a"]).all()
    array, _ = cd.NaiveBayes({1: "categorical"}).fit([[1.0, np.nan], [2.0, np.nan]], [0, 1]).sample(3, random_state=0)
    assert np.isnan(array[:, 1]).all()


@pytest.mark.parametrize("other", [3, 0, "a", None, [1]])
def test_only_models_add(other):
    model = cd.NaiveBayes().fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(TypeError, match="unsupported operand"):
        model + other
    with pytest.raises(TypeError, match="unsupported operand"):
        model - other
    if other != 0:  # with which sum() starts
        with pytest.raises(TypeError):
            other + model
    assert sum([model, model]).counts_.n_rows == 4


@pytest.mark.parametrize("events", ["complement", {("a", "b"): "complement"}])
def test_complement_has_no_density(events):
    X = {"a": [3, 2, 0, 1], "b": [0, 1, 4, 2], "c": [1.5, 2.5, 8.0, 9.5]}
    y = ["x", "x", "y", "y"]
    X = X if isinstance(events, dict) else {name: X[name] for name in "ab"}
    model = cd.NaiveBayes(events).fit(X, y)
    with pytest.raises(CandideError, match="NaiveBayes has no density: the scores of complement are not log-prob"):
        model.log_density(X)
    scored = model.predict_table(X).to_pydict()
    assert scored["log_density"] == [None] * 4
    np.testing.assert_allclose(scored["p_x"], model.predict_proba(X)[:, 0])
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_fractions_declared_as_counts_are_noted():
    X, y = {"rate": [1.0, 1.4, 3.0, None], "n": [1, 2, 3, 4]}, [0, 0, 1, 1]
    events = {"rate": "poisson", "n": "poisson"}
    message = r"column 'rate': 1\.4 is not a whole number, and poisson is for counts"
    with pytest.warns(UserWarning, match=message) as caught:
        cd.NaiveBayes(events).fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=r"'rate': 1\.4"):
        cd.NaiveBayes(events).partial_fit(X, y)
    with pytest.warns(UserWarning, match=r"'rate': 1\.4"):
        cd.fit({**X, "y": y}, "y", events=events)
    with pytest.warns(UserWarning, match=r"column 1: 0\.5"):
        cd.NaiveBayes("poisson").fit(sp.csr_array([[1.0, 0.5], [2.0, 0.0]]), [0, 1])


def test_weights_do_not_make_fractional_counts(recwarn):
    X, y = {"n": [1, 2, 3.0, None]}, [0, 0, 1, 1]
    cd.NaiveBayes("poisson").fit(X, y, sample_weight=[0.5, 0.1, 2.5, 1.0])
    cd.fit({**X, "y": y, "w": [0.5, 0.1, 2.5, 1.0]}, "y", events={"n": "poisson"}, weight="w")
    cd.NaiveBayes("multinomial").fit([[0.5, 1.0], [1.5, 2.0]], [0, 1])
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]


def test_an_announced_class_may_get_its_rows_later():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.repeat([0, 1], 20)
    whole = cd.GaussianBayes("full", estimate="mle").fit(X, y)
    parts = cd.GaussianBayes("full", estimate="mle").partial_fit(X[:20], y[:20], classes=[0, 1])
    np.testing.assert_allclose(parts.partial_fit(X[20:], y[20:]).predict_proba(X), whole.predict_proba(X), rtol=1e-9)


def test_contributions_add_up_to_the_log_odds():
    X = {"age": [25, 32, 47, 51, 60], "job": ["cook", "cook", "smith", None, "pilot"]}
    model = cd.NaiveBayes().fit(X, ["no", "no", "yes", "yes", "no"])
    log_p = model.predict_log_proba(X)
    for row, decision in enumerate(model.explain(X)):
        first, second = np.argsort(-log_p[row])
        assert decision.prediction == model.classes_[first]
        assert decision.log_odds == pytest.approx(log_p[row, first] - log_p[row, second], abs=1e-9)
    with pytest.warns(UserWarning, match="lacks 'job': taken as missing in every row"):
        [decision] = model.explain({"age": [25]})
    assert decision.log_odds == pytest.approx(model.explain({"age": [25], "job": [None]})[0].log_odds)


def test_a_document_is_explained():
    model = cd.TextNB().fit(["free prize", "see you"], ["spam", "ham"])
    [decision] = model.explain(["free free you"])
    assert (decision.prediction, decision.contributions[0].value) == ("spam", "free free you")


@pytest.mark.parametrize("kind", [object, str])
def test_a_word_among_numbers_is_pointed_out(kind):
    ages = [*range(20, 60), "old"] * 2
    X, y = pd.DataFrame({"age": pd.Series(ages, dtype=object).astype(kind)}), np.arange(82) % 2
    with pytest.warns(UserWarning, match="'age' is read as text because of 'old'"):
        cd.NaiveBayes().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cd.NaiveBayes({"age": "categorical"}).fit(X, y)
        cd.NaiveBayes().fit({"code": ["A1", "B2", "7", "8"] * 10}, np.arange(40) % 2)  # codes, some of them numbers


def test_a_negative_value_in_a_sparse_matrix_names_counts():
    X = sp.csr_matrix(np.array([[1.0, -2.0], [3.0, 4.0], [0.0, 1.0]]))
    with pytest.raises(
        InputError, match=r"sparse matrix, whose columns are counts; pass values >= 0, or X\.toarray\(\)"
    ):
        cd.NaiveBayes().fit(X, [0, 1, 0])


def test_every_setting_is_a_parameter():
    defaults = {field.name: field.default for field in fields(Settings)}
    assert {name: cd.NaiveBayes().get_params()[name] for name in defaults} == defaults


def test_a_new_field_of_settings_is_a_parameter():
    @dataclass(frozen=True)
    class WiderSettings(Settings):
        patience: int = 3

    class Wider(cd.NaiveBayes):
        @takes_settings(WiderSettings, estimate="mle")
        def __init__(self, events="auto", **settings): ...

    model = clone(Wider("gaussian", patience=5))
    assert (model.events, model.patience, model.estimate) == ("gaussian", 5, "mle")
    assert repr(model) == "Wider(events='gaussian', patience=5)"
    with pytest.raises(TypeError, match="patients"):
        Wider(patients=5)
