"""Terms and nomograms show the contributions that the model has."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import candide as cd
from candide import plot
from candide.cli import cli
from candide.demo import garden_rows
from candide.errors import InputError
from candide.explain.effects import Effects
from candide.explain.terms import list_terms
from candide.plot.contributions import nomogram_lines
from candide.plot.drawable import Drawable
from candide.plot.picture import PLOTS, PlotRows, PlotSpec, draw_plot


def rows(n, seed=0, k=2):
    rng = np.random.default_rng(seed)
    a, b, c = rng.integers(0, 2, (3, n))
    yes = (a ^ b) != (rng.random(n) < 0.2)
    y = np.where(yes, "yes", "no").astype(object)
    if k == 3:
        y[rng.random(n) < 0.2] = "maybe"
    X = {"x": rng.normal(yes), "z": rng.normal(size=n), "valve": np.array(["open", "shut"])[a]}
    return pd.DataFrame({**X, "pump": np.array(["on", "off"])[b], "lamp": np.array(["u", "v"])[c]}), y


@pytest.fixture(scope="module")
def model():
    return cd.BayesClassifier().fit(*rows(1200))


def said(decision, title, towards):
    nats = next(one.log_odds for one in decision.contributions if one.title == title)
    return nats if decision.prediction == towards else -nats


def test_a_pair_is_a_heat_map_of_contributions(model):
    X, _ = rows(60, seed=1)
    ax = plot.term(model, ("pump", "valve"), positive="no")
    image = ax.images[0]
    across, down = ([tick.get_text() for tick in ticks] for ticks in (ax.get_xticklabels(), ax.get_yticklabels()))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("valve", "pump")
    assert (across, down) == (["open", "shut"], ["off", "on"])
    for (_, row), decision in zip(X.iterrows(), model.explain(X), strict=True):
        drawn = image.get_array()[down.index(row["pump"]), across.index(row["valve"])]
        assert drawn == pytest.approx(said(decision, "valve x pump", "no"))
    low, high = image.get_clim()
    assert low == -high  # the colours are even about 0
    assert high == pytest.approx(np.abs(image.get_array()).max())


def test_a_column_is_drawn_by_its_bins(model):
    ax = plot.term(model, "x")
    known = Drawable.from_model(model)
    names = known.levels("x")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [
        name[:19] + "…" if len(name) > 20 else name for name in names
    ]
    heights = [bar.get_height() for bar in ax.patches]
    total = Effects(model.fitted_).for_column("x").axis
    assert heights == pytest.approx(total.contrast(model.fitted_.class_proportions, 1).tolist())
    assert (np.diff(heights) > 0).all()  # the larger x, the more often yes
    [shares] = [other for other in ax.figure.axes if other is not ax]
    assert sum(bar.get_height() for bar in shares.patches) == pytest.approx(1.0)


def test_of_three_classes_it_is_one_against_the_mean_of_the_others():
    model = cd.BayesClassifier().fit(*rows(1200, k=3))
    with pytest.raises(InputError) as error:
        plot.term(model, "x")
    assert "--class" in error.value.remedy
    ax = plot.term(model, "x", positive="maybe")
    table, p = Effects(model.fitted_).for_column("x").axis.contributions, model.fitted_.class_proportions
    want = table[:, 0] - table[:, 1:] @ p[1:] / p[1:].sum()
    assert model.classes_.tolist()[0] == "maybe"
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], want)


def test_combinations_that_no_row_had_are_pale():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, (2, 900))
    b = np.where((a == 2) & (b == 2), 0, b)
    model = cd.BayesClassifier().fit({"a": np.array(list("uvw"))[a], "b": np.array(list("rst"))[b]}, (a + b) % 2)
    mask = np.ma.getmaskarray(plot.term(model, "a x b").images[0].get_array())
    assert mask.sum() == 1
    assert mask[2, 2]


def test_what_cannot_be_drawn_says_what_can(model):
    linear = next(one.title for one in list_terms(model.fitted_) if one.kind == "discriminant")
    for name in (linear, "z", ("x", "lamp"), "nothing"):
        with pytest.raises(InputError):
            plot.term(model, name)
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 2, (3, 4000))
    y = (a ^ b ^ c) ^ (rng.random(4000) < 0.1) ^ (a & b)
    three = cd.BayesClassifier().fit({"a": a, "b": b, "c": c}, y)
    with pytest.raises(InputError) as error:
        plot.term(three, "a x b x c")
    assert "a x b x c" in error.value.remedy


def test_without_a_name_it_is_the_strongest_that_can_be_drawn(model, tmp_path):
    model.save(tmp_path / "m.candide")
    args = ["plot", str(tmp_path / "m.candide"), "-o", str(tmp_path / "v.png"), "--what", "term", "--json"]
    facts = json.loads(CliRunner().invoke(cli, args).output)
    assert facts["term"] == next(one.title for one in list_terms(model.fitted_) if one.n_cells)
    pair = json.loads(CliRunner().invoke(cli, [*args, "-f", "valve", "-f", "pump"]).output)
    assert (pair["term"], pair["features"]) == ("valve x pump", ["valve", "pump"])
    assert pair["weight"] == list_terms(model.fitted_)["valve x pump"].weight


@pytest.mark.parametrize("what", sorted(set(PLOTS) - {"ellipses", "means"}))
@pytest.mark.parametrize("detail", ["tally", "score"])
def test_every_other_picture_of_a_weighted_model(model, what, detail, tmp_path):
    model.save(tmp_path / "m.candide", detail=detail)
    X, y = rows(80, seed=1)
    source = PlotRows(X.assign(y=y), "y")
    spec = PlotSpec(what, features=("x", "z") if what in ("regions", "surface") else ())
    figure, _ = draw_plot(cd.load(tmp_path / "m.candide"), spec, source)
    assert figure.axes


def test_regions_are_those_of_the_model_where_all_else_is_missing(model):
    from candide.plot.planes import PosteriorGrid

    plane = PosteriorGrid.from_model(Drawable.from_model(model), ("x", "z"), resolution=7)
    x, z = np.meshgrid(plane.x, plane.y)
    asked = pd.DataFrame({"x": x.ravel(), "z": z.ravel(), "valve": None, "pump": None, "lamp": None})
    np.testing.assert_allclose(plane.posterior.reshape(-1, 2), model.predict_proba(asked), atol=1e-12)


def table(n=600):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = {
        "size": y + rng.normal(0, 1, n),
        "soil": np.where(rng.random(n) < 0.6, np.array(["clay", "sand"])[y], "chalk"),
        "seen": rng.choice(["no", "yes"], n),
    }
    return X, np.array(["low", "tall"])[y]


def shown(ax):
    """Where names stand, by row of the picture and text."""
    return {(round(t.get_position()[1]), t.get_text()): t.get_position()[0] for t in ax.texts}


def test_of_two_classes_the_values_of_a_row_add_up_to_its_log_odds():
    X, y = table()
    model = cd.NaiveBayes().fit(X, y)
    lines = {one.name: one for one in nomogram_lines(Drawable.from_model(model), 1)}
    size, soil, seen = lines["size"], lines["soil"], lines["seen"]
    prior = model.fitted_.model.log_prior
    for i, value in enumerate(size.values):
        for level, nats in zip(soil.values, soil.log_odds, strict=True):
            total = (
                size.log_odds[i]
                + nats
                + dict(zip(seen.values, seen.log_odds, strict=True))["yes"]
                + prior[1]
                - prior[0]
            )
            row = {"size": [float(value)], "soil": [level], "seen": ["yes"]}
            low, tall = model.predict_log_proba(row)[0]
            assert total == pytest.approx(tall - low, abs=1e-9)


def test_of_a_weighted_model_a_line_is_the_explained_contribution():
    X, y = table()
    model = cd.BayesClassifier().fit(X, y)
    [soil] = nomogram_lines(Drawable.from_model(model), 1, ["soil"])
    for level, nats in zip(soil.values, soil.log_odds, strict=True):
        why = model.explain({"size": [0.5], "soil": [level], "seen": ["yes"]})[0]
        [said] = [one.log_odds for one in why.contributions if one.title == "soil"]
        assert said == pytest.approx(nats if why.prediction == "tall" else -nats, abs=1e-9)


def test_the_last_line_turns_a_sum_into_a_probability():
    X, y = table()
    model = cd.NaiveBayes().fit(X, y)
    ax = plot.nomogram(model)
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[-1] == "sum: p(tall)"
    prior = model.fitted_.model.log_prior
    found = shown(ax)
    for p in ("0.1", "0.5", "0.9"):
        at = found[len(names) - 1, p]
        odds = at + prior[1] - prior[0]
        assert 1 / (1 + np.exp(-odds)) == pytest.approx(float(p))


def test_of_more_classes_it_is_one_against_the_mean_of_the_others_and_has_no_last_line():
    plants, herb = garden_rows(500, seed=0)
    model = cd.NaiveBayes(estimate="mle").fit(plants, herb)
    ax = plot.nomogram(model, positive="sage", features=["soil"])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["soil"]
    law = {c: plants["soil"][herb == c] for c in sorted(set(herb))}
    share = {c: np.mean(herb == c) for c in law}
    logs = {c: np.log(np.mean([v == "clay" for v in law[c] if v is not None])) for c in law}
    others = share["lavender"] * logs["lavender"] + share["thyme"] * logs["thyme"]
    assert shown(ax)[0, "clay"] == pytest.approx(logs["sage"] - others / (share["lavender"] + share["thyme"]), abs=1e-6)


def test_what_has_no_line_is_reported():
    rng = np.random.default_rng(0)
    X = {"valve": rng.choice(["open", "shut"], 400), "pump": rng.choice(["on", "off"], 400)}
    y = np.where((X["valve"] == "open") == (X["pump"] == "on"), "safe", "risk")
    X["heat"] = (y == "safe") + rng.normal(0, 1, 400)
    ax = plot.nomogram(cd.BayesClassifier().fit(X, y))
    assert re.search(r"not shown: remainder of \d pairs?", ax.get_title(loc="right"))


@pytest.mark.parametrize(
    "how",
    [
        {"features": ["nobody"], "positive": "sage"},
        {"positive": "nobody"},
        {},  # of three classes, one has to be named
    ],
)
def test_refused(how):
    plants, herb = garden_rows(200, seed=0)
    with pytest.raises(cd.errors.InputError):
        plot.nomogram(cd.NaiveBayes().fit(plants, herb), **how)


def test_a_model_of_text_alone_has_none():
    model = cd.TextNB().fit(["free prize", "see you", "free call", "you see"], ["spam", "ham", "spam", "ham"])
    with pytest.raises(cd.errors.InputError) as error:
        plot.nomogram(model)
    assert "densities" in error.value.remedy


def test_a_column_with_huge_contributions_does_not_flatten_the_others():
    X, y = table()
    X["gain"] = np.where(y == "tall", 1000.0 * np.abs(X["size"]), 0.001 * X["size"])
    ax = plot.nomogram(cd.NaiveBayes("gaussian").fit({k: v for k, v in X.items() if k in ("gain", "size")}, y))
    assert max(np.abs(ax.get_xlim())) < 12


def test_the_command_line_draws_it_too():
    X, y = table()
    figure, facts = draw_plot(cd.NaiveBayes().fit(X, y), PlotSpec("nomogram", classes=("low",)))
    assert facts["positive"] == "low"
    assert "log-odds of low against tall" in figure.axes[0].get_xlabel()
