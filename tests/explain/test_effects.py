"""Total effects of columns: the direction that the data show, where the own term of a column has a negative weight."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import candide as cd
from candide import plot
from candide.cli import cli
from candide.explain.effects import Effects, additive_parts
from candide.explain.terms import list_terms
from candide.plot.contributions import nomogram_lines
from candide.plot.drawable import Drawable
from candide.report import build, summary
from candide.report.html import charts


def rows(n=2000):
    """Two numbers that move together, both of which raise the odds, one of them with a third."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    z, w = x + 0.3 * rng.normal(size=n), rng.normal(size=n)
    yes = rng.random(n) < 1 / (1 + np.exp(-(x + 0.5 * z + x * w)))
    return {"x": x, "z": z, "w": w, "y": np.where(yes, "yes", "no")}


@pytest.fixture(scope="module")
def model():
    found = cd.fit(rows(), "y")
    own = {one.title: one.weight for one in list_terms(found.fitted_) if one.kind == "own term"}
    assert own["x"] < 0 or own["z"] < 0  # what the tests are about
    return found


@pytest.mark.parametrize("name", ["x", "z"])
def test_a_column_that_raises_the_odds_is_shown_to_raise_them(model, name):
    table = rows()
    odds = [np.mean(table["y"][part] == "yes") for part in np.array_split(np.argsort(table[name]), 4)]
    assert (np.diff(odds) > 0).all()
    effect = Effects(model.fitted_).for_column(name)
    assert effect.n_terms > 1
    assert (np.diff(effect.axis.contrast(model.fitted_.class_proportions, 1)) > 0).all()
    [line] = nomogram_lines(Drawable.from_model(model), 1, [name])
    assert (np.diff(line.log_odds) > 0).all()
    heights = [bar.get_height() for bar in plot.term(model, name).patches]
    assert (np.diff(heights) > 0).all()


def test_the_model_is_shown_with_total_effects(model):
    found = summary.summarize_model(model)
    text = str(found)
    for one in (effect for effect in found.effects if effect.column != "w"):  # which has joint terms only
        assert (np.diff(one.effects["yes"]) > 0).all()
        assert f"Raises the log-odds of yes most at {one.values[-1]}" in one.sentence
        assert one.highest in text
    told = {one["column"]: one for one in found.to_dict()["effects"]}
    assert set(told) == {"x", "z", "w"}
    assert json.dumps(found.to_dict())
    for text in (str(found), str(list_terms(model.fitted_)), model._repr_html_()):
        lines = [line for line in text.splitlines() if "-0." in line and line.startswith(("x ", "z "))]
        assert all("own term" in line for line in lines)  # never as if it were the column's


def test_terms_are_found_by_the_kind_that_is_printed(model):
    terms = list_terms(model.fitted_)
    printed = [line for line in str(terms).splitlines() if "  own term  " in line]
    assert printed
    assert len(printed) == terms.to_dict()["kind"].count("own term") == sum(t.kind == "own term" for t in terms)


def test_the_page_has_total_effects(model):
    page = build.build_report(model, rows(), "y").page
    alone = {one.title: one for one in page.terms if one.kind == "column"}
    for name in ("x", "z"):
        assert (np.diff(alone[name].contributions[1]) > 0).all()
        assert "weight" not in alone[name].label
        total = charts.whatif_data(page)["totals"][name]
        assert np.array(total["v"][0]) / 100 == pytest.approx(alone[name].contributions[1], abs=0.006)


def test_the_command_shows_them(model, tmp_path):
    model.save(tmp_path / "m.candide")
    shown = CliRunner().invoke(cli, ["show", str(tmp_path / "m.candide")], catch_exceptions=False).output
    assert "Total effects of columns" in shown


def test_the_parts_of_an_additive_table_are_all_of_it():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(4, 2)), rng.normal(size=(3, 2)), rng.normal(size=(5, 2))
    table = a[:, None, None] + b[None, :, None] + c[None, None, :]
    weight = rng.random((4, 3, 5)) * (rng.random((4, 3, 5)) < 0.8)
    parts = additive_parts(table, weight)
    back = parts[0][:, None, None] + parts[1][None, :, None] + parts[2][None, None, :]
    off = (table - back)[weight > 0]
    assert np.ptp(off, axis=0) == pytest.approx(0.0, abs=1e-6)


def test_a_pair_is_split_between_its_columns():
    rng = np.random.default_rng(1)
    a, b = rng.choice(list("pq"), 3000), rng.choice(list("uv"), 3000)
    odds = np.where(a == "q", 1.0, -1.0) + np.where((a == "q") & (b == "v"), 2.0, 0.0)
    y = np.where(rng.random(3000) < 1 / (1 + np.exp(-odds)), "yes", "no")
    fitted = cd.BayesClassifier().fit({"a": a, "b": b}, y).fitted_
    found = {one.column: one.axis.contrast(fitted.class_proportions, 1) for one in Effects(fitted).column_effects}
    assert np.diff(found["a"])[0] == pytest.approx(3.0, abs=0.5)  # 2 where b is u, 4 where it is v
    assert np.diff(found["b"])[0] == pytest.approx(1.0, abs=0.5)  # 0 where a is p, 2 where it is q


def test_without_joint_terms_it_is_the_own_term():
    table = rows(300)
    fitted = cd.fit(table, "y", model="naive", events="gaussian").fitted_
    effects = Effects(fitted)
    assert [one.n_terms for one in effects.column_effects] == [1, 1, 1]
    assert not effects.shift("x", [0.0, 1.0]).any()
    assert [one.importance for one in effects.column_effects] == [one.importance for one in list_terms(fitted)]


@pytest.fixture(scope="module")
def present_in_one_class():
    """A model of a column that has values in one class only, which tell nothing by themselves."""
    rng = np.random.default_rng(0)
    y = rng.random(3000) < 0.3
    late = np.where(y & (rng.random(3000) < 0.4), rng.normal(5, 1, 3000), np.nan)
    X = {"a": rng.normal(1.0 * y), "b": rng.normal(0.8 * y), "late": late}
    return cd.BayesClassifier().fit(X, np.where(y, "yes", "no"))


def test_a_column_that_acts_through_a_discriminant_alone_has_an_importance(present_in_one_class):
    fitted = present_in_one_class.fitted_
    assert "late" in [one.column for one in list_terms(fitted).inactive]
    shown = {one.column: one.importance for one in summary.summarize_model(fitted).columns}
    assert shown["late"] == Effects(fitted).without_axis("late") > shown["a"]
    effects = {effect.column: effect.importance for effect in summary.summarize_model(fitted).effects}
    assert list(effects.items()) == list(shown.items())  # in the same order


def test_a_discriminant_is_divided_by_what_each_column_changes(present_in_one_class):
    rows = {"a": [0.0, 0.0], "b": [0.0, 0.0], "late": [5.0, None]}
    joint = present_in_one_class.explain(rows)
    for decision, whole in zip(present_in_one_class.explain(rows, by="column"), joint, strict=True):
        assert decision.log_odds == pytest.approx(whole.log_odds)
    by_column = present_in_one_class.explain(rows, by="column")
    present, missing = ({one.column: one.log_odds for one in decision.contributions} for decision in by_column)
    assert present["late"] > 5 > max(abs(present["a"]), abs(present["b"]))
    assert missing["late"] == 0.0
