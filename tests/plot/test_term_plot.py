"""Voices of a weighted model drawn: what is in the picture is what the model says of a row."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import candide as cd
from candide import plot
from candide.cli import cli
from candide.errors import InputError
from candide.explain.effects import Effects
from candide.explain.terms import list_terms
from candide.plot.data import PlotRows
from candide.plot.drawable import Drawable
from candide.plot.picture import PLOTS, PlotSpec, draw_plot


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


def test_a_pair_is_a_heat_map_of_what_is_said_of_rows(model):
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
