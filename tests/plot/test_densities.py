"""Curves of priors, and the graphical model."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

import candide as cd
from candide import plot
from candide.demo import garden
from candide.model.fitted import FittedModel
from candide.plot.densities import dirichlet_density, simplex_points
from candide.priors import Beta, Dirichlet


@pytest.mark.parametrize(("prior", "a", "b"), [(Beta(2, 3), 2, 3), ((2, 3), 2, 3), ("uniform", 1, 1), (10, 10, 10)])
def test_beta_curves_integrate_to_one_and_peak_at_the_mode(prior, a, b):
    ax = plot.posterior_curve(prior, (7, 4))
    before, after = ax.lines[:2]
    for line, (p, q) in ((before, (a, b)), (after, (a + 7, b + 4))):
        x, y = line.get_xydata().T
        np.testing.assert_allclose(y, stats.beta(p, q).pdf(x), rtol=1e-9, atol=1e-12)
        assert trapezoid(y, x) == pytest.approx(1, abs=1e-4)
    x, y = after.get_xydata().T
    mode = (a + 7 - 1) / (a + b + 11 - 2)
    assert x[y.argmax()] == pytest.approx(mode, abs=1e-3)
    marks = [line.get_xdata()[0] for line in ax.lines[2:]]
    assert marks == pytest.approx([(a + 7) / (a + b + 11), mode])
    assert f"Beta({a + 7}, {b + 4})" in after.get_label()


def test_a_prior_alone_with_no_mode_and_no_end():
    ax = plot.posterior_curve("jeffreys")
    assert len(ax.lines) == 2  # the curve and its mean
    assert np.isfinite(ax.get_ylim()[1])


@pytest.mark.parametrize("alpha", [(2.0, 3.0, 4.0), (1.0, 1.0, 1.0), (6.0, 1.5, 2.0)])
def test_the_dirichlet_density_is_scipys_and_integrates_to_one(alpha):
    p = simplex_points(200)
    assert p.sum(axis=1) == pytest.approx(1)
    density = dirichlet_density(p, np.array(alpha))
    np.testing.assert_allclose(density[::97], [stats.dirichlet(alpha).pdf(q) for q in p[::97]], rtol=1e-9)
    assert density.mean() / 2 == pytest.approx(1, abs=5e-3)  # the triangle of (p1, p2) has area 1/2


def test_the_triangle_marks_mean_and_mode():
    ax = plot.dirichlet(Dirichlet(2), (5, 3, 1), names=["a", "b", "c"])
    alpha = np.array([7, 5, 3])
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    found = {line.get_label(): line.get_xydata()[0] for line in ax.lines if not line.get_label().startswith("_")}
    np.testing.assert_allclose(found["mean"], alpha / 15 @ corners)
    np.testing.assert_allclose(found["mode (MAP)"], (alpha - 1) / 12 @ corners)
    assert ax.get_title() == "posterior: Dirichlet(7, 5, 3)"
    assert {t.get_text() for t in ax.texts} == {"a", "b", "c"}
    assert "mode (MAP)" not in [line.get_label() for line in plot.dirichlet().lines]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: plot.posterior_curve((1, 2, 3)), "of 3 probabilities, and this picture of 2"),
        (lambda: plot.posterior_curve((1, 0)), "improper"),
        (lambda: plot.posterior_curve((1, 1), (1, -1)), "pass 2 numbers"),
        (lambda: plot.posterior_curve("gamma"), "not a prior of probabilities"),
        (lambda: plot.posterior_curve("bta"), "did you mean 'beta'"),
        (lambda: plot.dirichlet((1, 2)), "of 2 probabilities, and this picture of 3"),
        (lambda: plot.dirichlet(1, (1, 2)), "pass 3 numbers"),
        (lambda: plot.dirichlet(1, names=["a"]), "three corners"),
    ],
)
def test_bad_priors_and_counts(call, told):
    with pytest.raises(cd.errors.InputError, match=told):
        call()


def cells(table):
    return {place: cell.get_text().get_text() for place, cell in table.get_celld().items()}


def test_the_network_has_an_arrow_and_a_table_a_feature():
    model = FittedModel(garden()).with_settings(estimate="mle")
    ax = plot.network(model)
    arrows = [t for t in ax.texts if getattr(t, "arrow_patch", None) is not None]
    assert len(arrows) == 5
    nodes = [t.get_text() for t in ax.texts if t.get_text()]
    assert nodes == ["class", "height_cm", "leaf_mm", "flowers", "soil", "scented"]
    shares, height, *_, soil, _ = (cells(table) for table in ax.tables)
    assert shares[1, 0] == "lavender"
    assert float(shares[1, 1]) == pytest.approx(1 / 3, abs=1e-3)
    assert [height[1, j] for j in range(4)] == ["mean", "55", "48", "22"]
    assert [soil[0, j] for j in range(1, 4)] == ["lavender", "sage", "thyme"]
    sand = next(i for i in range(1, 4) if soil[i, 0] == "sand")
    assert [float(soil[sand, j]) for j in (1, 2, 3)] == pytest.approx([0.35, 0.25, 0.55])


def test_a_large_model_shows_its_strongest_features_and_says_how_many_more():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 600)
    X = {f"v{j}": rng.normal(size=600) + (y if j == 7 else 0) for j in range(10)}
    ax = plot.network(cd.NaiveBayes().fit(X, y))
    texts = [t.get_text() for t in ax.texts if t.get_text()]
    assert "v7" in texts
    assert "and 4 more features" in texts
    assert cells(ax.tables[0])[5, 0] == "2 more"
    named = plot.network(cd.NaiveBayes().fit(X, y), features=["v1"])
    assert len(named.tables) == 2


def test_the_network_of_drop_ins():
    model = cd.CategoricalNB().fit([[0, 1], [1, 2], [1, 0]], ["a", "b", "b"])
    ax = plot.network(model)
    table = cells(ax.tables[1])
    column = {table[i, 0]: float(table[i, 2]) for i in (1, 2)}
    assert column == pytest.approx({"0": 1 / 4, "1": 3 / 4})


def test_features_modelled_together_are_joined():
    from candide.events import Gaussian

    rng = np.random.default_rng(0)
    X = {name: rng.normal(size=80) for name in "abc"}
    model = cd.NaiveBayes({("a", "b"): Gaussian(covariance="full")}).fit(X, np.repeat([0, 1], 40))
    ax = plot.network(model)
    at = {t.get_text(): t.get_position()[0] for t in ax.texts if t.get_text()}
    lines = [t for t in ax.texts if getattr(t, "arrow_patch", None) is not None and t.xyann[1] == t.xy[1]]
    assert [(t.xyann[0], t.xy[0]) for t in lines] == [(at["a"], at["b"])]  # and none to c
    assert "corr. b" in cells(plot.network(model, features=["a"]).tables[1]).values()
