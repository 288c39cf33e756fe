"""Decisions against brute force, through every door, and what is no policy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import candide as cd
from candide import store
from candide.data.labels import Labels
from candide.demo import garden_rows
from candide.errors import InputError, ModelFileError
from candide.model.policy import Policy
from candide.report import summary

PLANTS, HERBS = garden_rows(300, seed=0)
TABLE = {**PLANTS, "herb": HERBS}
COSTS = {("sage", "thyme"): 9.0, ("thyme", "lavender"): 4.0, ("lavender", "lavender"): -0.5}


@pytest.fixture(scope="module", params=["naive", "bayes"])
def model(request):
    return cd.fit(TABLE, "herb", model=request.param)


def posteriors(draw, k, n):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.dirichlet(np.full(k, 0.5), n) + 1e-9, rng


@given(st.data(), st.integers(2, 5))
@settings(deadline=None, max_examples=100)
def test_least_cost_is_that_of_brute_force(data, k):
    p, rng = posteriors(data.draw, k, 30)
    p /= p.sum(axis=1, keepdims=True)
    labels, costs = Labels(tuple(range(k))), rng.normal(2.0, 2.0, (k, k))
    by_name = {(i, j): float(costs[i, j]) for i in range(k) for j in range(k)}
    abstain_cost = data.draw(st.sampled_from([None, 0.5, 1.5]))
    found = Policy(costs=by_name, abstain_cost=abstain_cost).make_rule(labels)(np.log(p))
    for row, c in zip(p, found.tolist(), strict=True):
        expected = [sum(row[i] * costs[i, j] for i in range(k)) for j in range(k)]
        if abstain_cost is not None and min(expected) > abstain_cost:
            assert c == -1
        else:
            assert expected[c] == pytest.approx(min(expected), abs=1e-12)


@given(st.data(), st.integers(2, 4))
@settings(deadline=None, max_examples=100)
def test_thresholds_and_doubt(data, k):
    p, _ = posteriors(data.draw, k, 30)
    p /= p.sum(axis=1, keepdims=True)
    labels, at = Labels(tuple("abcd"[:k])), data.draw(st.floats(0.01, 0.99))
    taken = Policy(threshold=at, positive="a").make_rule(labels)(np.log(p))
    clear = np.abs(p[:, 0] - at) > 1e-9
    assert (taken[clear] == np.where(p[:, 0] >= at, 0, 1 + p[:, 1:].argmax(axis=1))[clear]).all()
    open_ = Policy(abstain_below=at).make_rule(labels)(np.log(p)) < 0
    clear = np.abs(p.max(axis=1) - at) > 1e-9
    assert (open_[clear] == (p.max(axis=1) < at)[clear]).all()


def test_doubt_and_the_cost_of_abstaining_are_one_rule():
    """Chow (1970): with costs of 0 and 1 to leave rows open at a cost of c is to abstain below 1 - c."""
    p = np.log(np.random.default_rng(0).dirichlet(np.ones(3), 200))
    labels = Labels(("a", "b", "c"))
    assert (Policy(abstain_cost=0.3).make_rule(labels)(p) == Policy(abstain_below=0.7).make_rule(labels)(p)).all()


def test_ends_of_a_threshold():
    p, labels = np.log([[0.999, 0.001], [0.001, 0.999]]), Labels(("no", "yes"))
    assert Policy(threshold=0.0).make_rule(labels)(p).tolist() == [1, 1]
    assert Policy(threshold=1.0).make_rule(labels)(p).tolist() == [0, 0]


def test_every_entry_point_decides_the_same(model, tmp_path):
    deciding = model.with_policy(costs=COSTS, abstain_below=0.6)
    wanted = deciding.predict(PLANTS)
    by_hand = Policy(costs=COSTS, abstain_below=0.6).make_rule(model.fitted_.labels)(model.predict_log_proba(PLANTS))
    assert wanted.tolist() == [None if c < 0 else model.classes_[c] for c in by_hand]
    assert (wanted != model.predict(PLANTS)).any()
    assert (
        model.predict_table(PLANTS, policy={"costs": COSTS, "abstain_below": 0.6})["prediction"].to_pylist()
        == wanted.tolist()
    )
    assert deciding.predict_table(PLANTS)["prediction"].to_pylist() == wanted.tolist()
    deciding.save(tmp_path / "m.candide")
    again = cd.load(tmp_path / "m.candide")
    assert again.predict(PLANTS).tolist() == wanted.tolist()
    assert again.predict_proba(PLANTS) == pytest.approx(model.predict_proba(PLANTS), abs=1e-15)
    store.save(deciding.fitted_, tmp_path / "s.candide", detail="score")
    assert store.load(tmp_path / "s.candide").classify(PLANTS).tolist() == wanted.tolist()
    scores = cd.evaluate(deciding, TABLE, "herb")
    right = [a == b for a, b in zip(wanted, HERBS, strict=True) if a is not None]
    assert scores.accuracy == pytest.approx(np.mean(right))
    assert scores.coverage == pytest.approx(len(right) / 300)
    cost = sum(COSTS.get((b, a), float(a != b)) for a, b in zip(wanted, HERBS, strict=True) if a is not None)
    assert isinstance(scores.sum_cost, float)
    assert scores.sum_cost == pytest.approx(cost)


def test_a_model_for_other_shares(model, tmp_path):
    """p(class | x) times the ratio of the shares, whatever the model."""
    there = {"lavender": 0.1, "sage": 0.7, "thyme": 0.2}
    moved, p = model.with_policy(class_prior=there), model.predict_proba(PLANTS)
    wanted = p * (np.array([0.1, 0.7, 0.2]) / model.fitted_.base_proportions)
    wanted /= wanted.sum(axis=1, keepdims=True)
    assert moved.predict_proba(PLANTS) == pytest.approx(wanted, abs=1e-12)
    assert np.exp(moved.predict_log_proba(PLANTS)) == pytest.approx(wanted, abs=1e-12)
    assert moved.predict(PLANTS).tolist() == model.classes_[wanted.argmax(axis=1)].tolist()
    table = moved.predict_table(PLANTS)
    assert np.array(table["p_sage"]) == pytest.approx(wanted[:, 1], abs=1e-12)
    for detail in ("tally", "score"):
        store.save(moved.fitted_, tmp_path / "m.candide", detail=detail, force=True)
        again = store.load(tmp_path / "m.candide")
        assert again.posterior(PLANTS) == pytest.approx(wanted, abs=1e-12)
        back = again.with_policy({"class_prior": "empirical"})
        assert back.posterior(PLANTS) == pytest.approx(p, abs=1e-12)
    for one in moved.explain({name: values[:20] for name, values in PLANTS.items()}):
        odds = one.class_prior + one.calibration + sum(c.log_odds for c in one.contributions)
        assert odds == pytest.approx(one.log_odds, abs=1e-9)


@pytest.mark.parametrize("calibration", ["logistic", "isotonic"])
def test_a_calibrated_model_for_other_shares(calibration, tmp_path):
    model = cd.fit(TABLE, "herb", calibration=calibration)
    p = model.predict_proba(PLANTS)
    wanted = p * (np.array([0.1, 0.7, 0.2]) / model.fitted_.base_proportions)
    wanted /= wanted.sum(axis=1, keepdims=True)
    moved = model.with_policy(class_prior={"lavender": 0.1, "sage": 0.7, "thyme": 0.2})
    assert moved.predict_proba(PLANTS) == pytest.approx(wanted, abs=1e-12)
    moved.save(tmp_path / "m.candide")
    assert cd.load(tmp_path / "m.candide").predict_proba(PLANTS) == pytest.approx(wanted, abs=1e-12)


def test_the_naive_model_for_other_shares_is_that_of_another_class_prior():
    model = cd.fit(TABLE, "herb", model="naive")
    there = {"lavender": 0.1, "sage": 0.7, "thyme": 0.2}
    one, other = model.with_policy(class_prior=there), model.with_prior(class_prior=there)
    assert one.predict_proba(PLANTS) == pytest.approx(other.predict_proba(PLANTS), abs=1e-12)
    assert one.log_density(PLANTS) == pytest.approx(other.log_density(PLANTS), rel=1e-12)


def test_a_later_policy_decides_and_keeps_the_shares():
    first = Policy(costs={("a", "b"): 3}, class_prior={"a": 0.5, "b": 0.5})
    both = Policy(threshold=0.3).with_defaults(first)
    assert (both.costs, both.threshold, both.class_prior) == (None, 0.3, {"a": 0.5, "b": 0.5})
    both = Policy(class_prior="uniform").with_defaults(first)
    assert (both.costs, both.class_prior) == ({("a", "b"): 3}, "uniform")


def test_a_policy_stays_when_rows_are_counted(model):
    deciding = model.with_policy(costs=COSTS)
    again = cd.update_model(deciding.fitted_, TABLE).fitted
    assert again.policy.costs == COSTS
    assert (deciding + deciding).fitted_.policy.costs == COSTS


def test_labels_that_are_numbers_may_be_written():
    X, y = {"x": [1.0, 2.0, 8.0, 9.0]}, [0, 0, 1, 1]
    model = cd.NaiveBayes().fit(X, y)
    assert model.with_policy(costs={("1", "0"): 1e9}).predict(X).tolist() == [1, 1, 1, 1]
    assert model.with_policy(threshold=0.0, positive="0").predict(X).tolist() == [0, 0, 0, 0]


WRONG = [
    ({"threshold": 1.2}, 1.2, "0 to 1"),
    ({"threshold": float("nan")}, None, "0 to 1"),
    ({"abstain_below": -0.1}, -0.1, "0 to 1"),
    ({"abstain_cost": float("inf")}, None, "finite"),
    ({"abstain_cost": -0.5}, -0.5, ">= 0"),
    ({"costs": {("sage", "thyme"): float("nan")}}, None, "finite"),
    ({"costs": {("sage", "mint"): 2}}, "mint", ""),
    ({"costs": {"sage": 2}}, "sage", "pass"),
    ({"costs": {("sage", "thyme"): 2}, "threshold": 0.5}, 0.5, "one of them"),
    ({"threshold": 0.5}, 0.5, "positive"),
    ({"threshold": 0.5, "positive": "mint"}, "mint", ""),
    ({"class_prior": {"sage": 0.5, "thyme": 0.3, "lavender": 0.3}}, None, "divide"),
    ({"class_prior": {"sage": 0.5, "thyme": 0.5}}, ["lavender"], "every class"),
    ({"class_prior": {"sage": 1.5, "thyme": -0.5, "lavender": 0.0}}, -0.5, "0 to 1"),
    ({"class_prior": {"mint": 1.0}}, "mint", ""),
    ({"class_prior": "even"}, "even", ""),
    ({"treshold": 0.5}, "treshold", ""),
    ({"class_prior": [0.5, 0.3, 0.2]}, [0.5, 0.3, 0.2], "uniform"),
    ({"costs": "costs.csv"}, "costs.csv", "the cost of predicting"),
    ({"costs": np.eye(3)}, None, "the cost of predicting"),
]


@pytest.mark.parametrize(("fields", "value", "remedy"), WRONG)
def test_what_is_not_a_policy_is_refused(fields, value, remedy):
    model = cd.fit(TABLE, "herb", model="naive")
    with pytest.raises(InputError) as error:
        model.with_policy(fields)
    assert value is None or error.value.value == value
    assert remedy in (error.value.remedy or "")


def test_an_error_shows_names_as_they_are_written():
    model = cd.fit(TABLE, "herb", model="naive")
    for fields in ({"costs": {(np.str_("sage"), np.str_("thyme")): np.inf}}, {"costs": {("sage", np.str_("mint")): 1}},
                   {"threshold": 0.5, "positive": np.str_("mint")}):  # fmt: skip
        with pytest.raises(InputError) as error:
            model.with_policy(fields)
        assert "np.str_" not in str(error.value)
    assert "np." not in repr(Policy(costs={(np.str_("sage"), np.str_("thyme")): np.float64(2)}))
    many = Labels(tuple(f"class{i}" for i in range(40)))
    with pytest.raises(InputError, match="and 24 more"):
        Policy(threshold=0.5, positive="mint").make_rule(many)


def test_an_explanation_says_what_the_policy_decides():
    model = cd.fit(TABLE, "herb", model="naive")
    X = {name: values for name, values in TABLE.items() if name != "herb"}
    deciding = model.with_policy(costs={("thyme", "sage"): 300, ("thyme", "lavender"): 300})
    likely, given = model.predict(X).tolist(), deciding.predict(X).tolist()
    found = deciding.explain(X)
    assert [one.prediction for one in found] == likely
    assert [one.decided_class if one.policy_reason else one.prediction for one in found] == given
    [first, *_] = [one for one, a, b in zip(found, likely, given, strict=True) if a != b]
    assert str(first).startswith(f"decides thyme: least expected cost; most probable: {first.prediction}\n")
    assert "decides thyme: least expected cost" in first._repr_html_()
    assert "more rows" in found._repr_html_()
    assert "decides: least expected cost" in deciding._repr_html_()
    assert "decides: least expected cost" in str(summary.summarize_model(deciding))
    assert "decides" not in str(summary.summarize_model(model))
    [left, *_] = model.with_policy(abstain_below=1.0).explain(X, by="column")
    assert left.decision_note == f"abstains: largest probability below 1; most probable: {left.prediction}"


def test_a_row_left_open_says_by_what():
    model = cd.fit(TABLE, "herb", model="naive")
    X = {name: values for name, values in TABLE.items() if name != "herb"}
    for fields, why in (
        ({"threshold": 0.05, "positive": "sage", "abstain_below": 0.9}, "largest probability below 0.9"),
        ({"costs": COSTS, "abstain_below": 0.9}, "largest probability below 0.9"),
        ({"costs": COSTS, "abstain_cost": 0.2}, "every class costs more than 0.2"),
        ({"abstain_cost": 0.2, "abstain_below": 0.0}, "every class costs more than 0.2"),
    ):
        found = model.with_policy(fields).explain(X)
        assert {one.policy_reason for one in found if one.policy_reason and one.decided_class is None} == {why}


@pytest.mark.parametrize("fields", [{"costs": {(1, 0): 5, ("1", "0"): 2}}, {"class_prior": {0: 0.5, 1: 0.5, "1": 0.5}}])
def test_what_is_set_twice_is_refused(fields):
    model = cd.fit({"x": [0.0, 1.0, 2.0, 3.0], "y": [0, 0, 1, 1]}, "y", model="naive")
    with pytest.raises(InputError, match=r"1'.* given twice"):
        model.with_policy(fields)


def test_a_file_with_a_broken_policy(tmp_path, monkeypatch):
    from candide.store import values

    fitted = cd.fit(TABLE, "herb", model="naive").with_policy(costs=COSTS).fitted_
    real = values.pack_policy
    shares = {"sequence": [1.0, 1.0, 1.0]}
    for broken in (
        {"threshold": 7.0},
        {"threshold": "x"},
        {"positive": 9},
        {"costs": {"sequence": [1.0]}},
        {"class_prior": shares},
        {"luck": 1.0},
    ):
        monkeypatch.setattr(values, "pack_policy", lambda *a, broken=broken: {**real(*a), **broken})
        with pytest.raises(InputError, match="read again"):
            store.save(fitted, tmp_path / "m.candide", force=True)
        with monkeypatch.context() as unchecked:  # as another program may write it
            unchecked.setattr(store.file, "_check_readable", lambda name: None)
            store.save(fitted, tmp_path / "m.candide", force=True)
        with pytest.raises(ModelFileError):
            store.load(tmp_path / "m.candide")
