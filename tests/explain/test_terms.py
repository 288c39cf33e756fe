"""Who speaks in a weighted model: through every door the voices add up, and are named and ordered for a person."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.cli.typed import output as run

import candide as cd
from candide.errors import InputError
from candide.explain.terms import build_term_cells, list_terms
from candide.report import summary


def rows(n, seed=0):
    """Columns that tell alone, only together, and not at all; gaps, a constant, and dates."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, n))
    yes = (a ^ b) != (rng.random(n) < 0.3)
    x = rng.normal(yes).round(3)
    x[rng.random(n) < 0.3] = np.nan
    day = np.datetime64("2024-01-01") + (rng.integers(0, 200, n) + 90 * yes).astype("m8[D]")
    y = np.where(yes, "yes", "no")
    frame = pd.DataFrame({"x": x, "noise": rng.normal(size=n).round(3), "valve": np.array(["open", "shut"])[a]})
    frame["pump"], frame["day"], frame["same"] = np.array(["on", "off"])[b], day, "s"
    return frame, y


@pytest.fixture(scope="module")
def model():
    return cd.BayesClassifier().fit(*rows(1500))


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("voices")
    model.save(path / "m.candide")
    model.save(path / "score.candide", detail="score")
    asked = rows(12, seed=2)[0]
    asked.to_csv(path / "x.csv", index=False)
    asked.to_parquet(path / "x.parquet")
    return path


@pytest.mark.parametrize("by", ["term", "column"])
@pytest.mark.parametrize("door", ["array", "parquet", "csv", "command", "score"])
def test_all_contributions_add_up_to_the_log_odds(model, folder, door, by):
    asked = rows(12, seed=2)[0]
    p = np.sort(model.predict_proba(asked), axis=1)
    if door == "array":
        found = [
            (d.class_prior, d.log_odds, {c.title: c.log_odds for c in d.contributions})
            for d in model.explain(asked, by)
        ]
    elif door in ("csv", "parquet"):
        each = [one.decision for one in cd.explain_rows(model, folder / f"x.{door}", [(1, 12)], by=by)]
        found = [(d.class_prior, d.log_odds, {c.title: c.log_odds for c in d.contributions}) for d in each]
    else:
        file = "m.candide" if door == "command" else "score.candide"
        lines = run("explain", folder / file, folder / "x.parquet", "--rows", "1-12", "--by", by, "--json").splitlines()
        each = [json.loads(line) for line in lines]
        found = [
            (d["class_prior"], d["log_odds"], {c.get("term", c["column"]): c["log_odds"] for c in d["contributions"]})
            for d in each
        ]
    np.testing.assert_allclose([odds for _, odds, _ in found], np.log(p[:, -1] / p[:, -2]), atol=1e-9)
    for prior, odds, said in found:
        assert prior + sum(said.values()) == pytest.approx(odds, abs=1e-9)
    assert ("valve x pump" in found[0][2]) == (by == "term")
    if by == "column":
        assert set(found[0][2]) == set(asked)


@pytest.mark.parametrize("door", ["csv", "parquet"])
def test_values_of_a_source_are_numbers_and_dates(model, folder, door):
    [one] = cd.explain_rows(model, folder / f"x.{door}", [1], by="column")
    value = {c.column: c.value for c in one.decision.contributions}
    asked = rows(12, seed=2)[0].iloc[0]
    assert value["noise"] == asked["noise"]
    assert str(value["day"])[:10] == str(asked["day"])[:10]


def test_a_share_of_a_pair_goes_to_each_of_its_columns(model):
    asked = rows(1, seed=2)[0]
    [whole], [shared] = model.explain(asked), model.explain(asked, by="column")
    want = sum(c.log_odds / len(c.columns) for c in whole.contributions if "pump" in c.columns)
    assert next(c.log_odds for c in shared.contributions if c.column == "pump") == pytest.approx(want)
    with pytest.raises(InputError) as error:
        model.explain(asked, by="row")
    assert error.value.value == "row"


def test_numbers_come_with_their_bins(model, folder):
    asked = pd.DataFrame(
        {"x": [9.0], "noise": [0.0], "valve": ["open"], "pump": ["off"], "day": ["2024-11-11"], "same": "s"}
    )
    asked["day"] = pd.to_datetime(asked["day"])
    [decision] = model.explain(asked)
    shown = {one.title: one.display_value for one in decision.contributions}
    assert shown["x"].startswith("9 (> ")
    assert shown["noise"] == "0"  # one bin says nothing
    assert shown["valve x pump"] == "open, off"
    assert "(> 2024-" in shown["day"]
    text = str(decision).splitlines()
    assert repr([decision]) == f"[{decision}]"  # what a notebook shows
    assert text[1].split() == ["term", "value", "log-odds"]
    assert any(line.startswith("linear discriminant of 3 numbers") for line in text)


def test_importance_is_the_mean_absolute_contribution_of_counted_rows(model):
    X, _ = rows(1500)
    each = pd.DataFrame([{c.title: abs(c.log_odds) for c in decision.contributions} for decision in model.explain(X)])
    found = list_terms(model.fitted_)
    told = {one.title: one.importance for one in found}
    counted = [one.title for one in found if one.n_cells]
    assert {"valve x pump", "x", "day"} <= set(counted)
    for title in counted:
        assert told[title] == pytest.approx(each[title].mean(), abs=1e-9), title
    drawn = set(told) - set(counted)
    assert len(drawn) == 3
    for title in drawn:  # the rows are those that the law expects
        assert told[title] == pytest.approx(each[title].mean(), rel=0.5), title
    assert list(told.values()) == sorted(told.values(), reverse=True)


def test_of_many_classes_a_strength_is_the_mean_over_two_that_differ():
    rng = np.random.default_rng(0)
    y = rng.choice(4, 400, p=[0.1, 0.2, 0.3, 0.4])
    level = (y + rng.integers(0, 2, 400)).astype(str)
    model = cd.BayesClassifier(terms="columns").fit({"level": level}, y)
    terms = model.fitted_.model.distributions[0].contributions(
        model.fitted_.plan.parts[0].block(model._read({"level": level}))
    )
    p = np.bincount(y) / 400
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    want = sum(p[i] * p[j] * np.abs(terms[:, i, 0] - terms[:, j, 0]).mean() for i, j in pairs)
    [voice] = list_terms(model.fitted_)
    assert voice.importance == pytest.approx(want / sum(p[i] * p[j] for i, j in pairs))


def test_columns_without_a_term_have_a_reason(model):
    silent = {one.column: one for one in list_terms(model.fitted_).inactive}
    assert set(silent) == {"noise", "same"}
    assert silent["noise"].n_joint_terms == 3  # the two discriminants, and resemblance
    assert silent["same"].n_joint_terms == 0
    assert silent["noise"].reason != silent["same"].reason


def test_cells_of_a_pair_are_centred_and_counted(model):
    known = list_terms(model.fitted_)
    found = build_term_cells(model.fitted_, known["pump", "valve"])
    assert found.names == (("open", "shut"), ("off", "on"))
    assert found.frequencies.sum() == pytest.approx(1.0)
    yes = found.contributions[:, :, 1] - found.contributions[:, :, 0]
    assert (np.sign(yes) == [[1, -1], [-1, 1]]).all()  # a ^ b is "yes"
    np.testing.assert_allclose(found.contributions @ model.fitted_.class_proportions, 0.0, atol=1e-12)
    with pytest.raises(InputError):
        build_term_cells(model.fitted_, next(one for one in known if one.kind == "discriminant"))
    with pytest.raises(InputError):
        known["valve", "noise"]


def test_show_lists_all_terms(model, folder, monkeypatch):
    facts = json.loads(run("show", folder / "m.candide", "--json"))
    known = list_terms(model.fitted_)
    assert [one["title"] for one in facts["terms"]] == [one.title for one in known]
    assert [one["weight"] for one in facts["terms"]] == [one.weight for one in known]
    assert facts["training_rows"] == 1500
    assert [one["intercept"] for one in facts["classes"]] == model.fitted_.term_weights.bias.tolist()
    assert [one["column"] for one in facts["columns"]] == [one.column for one in summary.summarize_model(model).columns]
    assert sorted(one["column"] for one in facts["columns"]) == sorted(rows(1)[0])
    monkeypatch.setenv("COLUMNS", "60")
    text = run("show", folder / "m.candide")
    assert max(map(len, text.splitlines())) <= 60
    assert "valve x pump" in text
    assert "weights learned on 1,500 of 1,500 rows" in text


def test_show_of_a_column_and_of_a_pair(model, folder):
    facts = json.loads(run("show", folder / "m.candide", "--column", "day", "--column", "valve x pump", "--json"))
    day, pair = facts["columns"]
    np.testing.assert_allclose(np.sum(list(day["conditionals"].values()), axis=0), 1.0)
    assert next(iter(day["conditionals"])).startswith("<= 2024-")
    assert set(pair["conditionals"]) == {"open, on", "open, off", "shut, on", "shut, off"}
    assert all({"day", "valve", "pump"} & set(one["columns"]) for one in facts["terms"])


def test_without_counts_the_event_models_and_the_class_prior_are_known(model, folder):
    again, asked = cd.load(folder / "score.candide"), rows(12, seed=2)[0]
    np.testing.assert_allclose(again.log_density(asked), model.log_density(asked))
    assert set(again.sample(5, random_state=0)[0]) == set(asked)
    np.testing.assert_allclose(
        again.fitted_.class_proportions, model.fitted_.class_proportions, atol=1e-3
    )  # but for the prior of the shares
    [decision] = again.explain(asked[:1])
    assert "class prior and intercept" in str(decision)


def test_without_counts_weights_are_known_and_strengths_of_columns(model, folder):
    kept = {one.title: one for one in list_terms(cd.load(folder / "score.candide").fitted_)}
    for one in list_terms(model.fitted_):
        assert kept[one.title].weight == one.weight
    assert kept["valve x pump"].importance is None
    assert kept["x"].importance > 0
    assert "valve x pump" in run("show", folder / "score.candide")


def test_an_unweighted_model_has_terms_of_weight_one():
    X, y = rows(300)
    found = list_terms(cd.NaiveBayes().fit(X[["x", "valve"]], y).fitted_)
    assert {(one.title, one.weight) for one in found} == {("x", 1.0), ("valve", 1.0)}
    assert found.training_rows is None


@pytest.mark.parametrize("n", [5, 300])
def test_many_terms_stay_readable(n, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = {f"a column with a rather long name {i}": rng.normal(y, 2.0) for i in range(n)}
    monkeypatch.setenv("COLUMNS", "80")
    text = str(summary.summarize_model(cd.BayesClassifier(terms="columns").fit(X, y)))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    at = next(i for i, line in enumerate(lines) if line.startswith("Terms by importance"))
    assert lines[at:].index("") < 50


@pytest.mark.parametrize("how", ["multinomial", "bernoulli", "polya"])
def test_text_contributes_by_its_tokens(how):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    notes = [
        "free prize call" if v != flip else "see you later" for v, flip in zip(y, rng.random(200) < 0.2, strict=True)
    ]
    X = {"note": notes, "x": rng.normal(y)}
    model = cd.BayesClassifier({"note": cd.events.Text(model=how)}).fit(X, y)
    [decision] = model.explain({"note": ["free prize"], "x": [0.0]})
    one = next(one for one in decision.contributions if one.column == "note")
    assert {word.word for word in one.words} == {"free", "prize"}
    assert one.log_odds == pytest.approx(sum(word.log_odds for word in one.words) + one.remainder)
    if how == "multinomial":
        assert one.remainder == pytest.approx(0.0, abs=1e-9)
    assert "free" in str(summary.summarize_model(model))


def test_joint_columns_have_no_linear_form(model):
    with pytest.raises(InputError) as error:
        model.linear()
    assert "NaiveBayes" in error.value.remedy


def test_a_calibrated_sum_reports_its_calibration():
    X, y = rows(600)
    asked = rows(12, seed=2)[0]
    model = cd.BayesClassifier(terms="columns", calibration="isotonic").fit(X, y)
    p = np.sort(model.predict_proba(asked), axis=1)
    for by in ("term", "column"):
        decisions = model.explain(asked, by=by)
        np.testing.assert_allclose([one.log_odds for one in decisions], np.log(p[:, 1] / p[:, 0]), atol=1e-9)
        assert any(one.calibration for one in decisions)
    bent = next(one for one in decisions if one.calibration)
    assert "calibration" in str(bent)
    assert summary.DecisionSummary(1, None, bent).to_dict()["calibration"] == bent.calibration


def test_a_missing_value_has_no_part_of_a_joint_contribution(model):
    asked = rows(40, seed=5)[0].assign(x=np.nan)
    for decision in model.explain(asked, by="column"):
        assert next(one.log_odds for one in decision.contributions if one.column == "x") == 0
