"""Densities, ellipses and images show each class as the model has it."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.optimize import brentq
from sklearn.datasets import load_digits, load_iris

import candide as cd
from candide import plot
from candide.demo import garden, garden_rows
from candide.model.fitted import FittedModel


def curves(ax):
    return {line.get_label(): line.get_xydata() for line in ax.lines}


@pytest.mark.parametrize("feature", ["height_cm", "leaf_mm"])
def test_densities_integrate_to_one_and_are_those_of_scipy(feature):
    model = FittedModel(garden()).with_settings(estimate="mle")
    found = curves(plot.densities(model, feature=feature))
    laws = {"height_cm": {"lavender": (55, 8), "sage": (48, 9), "thyme": (22, 6)}}
    for label, xy in found.items():
        assert trapezoid(xy[:, 1], xy[:, 0]) == pytest.approx(1, abs=2e-3)
        if feature in laws:
            np.testing.assert_allclose(xy[:, 1], stats.norm(*laws[feature][label]).pdf(xy[:, 0]), rtol=1e-9)


def test_two_gaussians_cross_at_the_roots_of_the_quadratic():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 500), rng.normal(3, 2, 500)])[:, None]
    y = np.repeat([0, 1], 500)
    model = cd.NaiveBayes("gaussian", estimate="mle").fit(x, y)
    a, b = curves(plot.densities(model, x, y, feature=0)).values()
    gap = a[:, 1] - b[:, 1]
    crossing = a[np.flatnonzero((gap[:-1] > 0) & (gap[1:] <= 0)), 0]
    (m0, s0), (m1, s1) = ((x[y == c].mean(), x[y == c].std()) for c in (0, 1))
    square = [1 / s1**2 - 1 / s0**2, 2 * (m0 / s0**2 - m1 / s1**2), m1**2 / s1**2 - m0**2 / s0**2 + 2 * np.log(s1 / s0)]
    root = [r for r in np.roots(square) if m0 < r < m1]
    np.testing.assert_allclose(crossing, root, atol=a[1, 0] - a[0, 0])
    # and p(1 | x) is even there, for as many rows of both
    assert brentq(lambda v: model.predict_proba([[v]])[0, 1] - 0.5, m0, m1) == pytest.approx(root[0])


def test_histograms_are_of_the_rows_and_integrate_to_one():
    iris = load_iris()
    model = cd.GaussianNB().fit(iris.data, iris.target)
    ax = plot.densities(model, iris.data, iris.target, feature=2)
    assert len(ax.containers) == 3
    for c, bars in enumerate(ax.containers):
        area = sum(b.get_width() * b.get_height() for b in bars)
        assert area == pytest.approx(1)
        left = min(b.get_x() for b in bars if b.get_height())
        assert left <= iris.data[iris.target == c, 2].min() + 1e-9
        assert max(b.get_height() for b in bars) <= ax.get_ylim()[1]  # none is cut


def test_whole_numbers_have_bins_of_as_many_numbers_each():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 200, 4000).astype(float)[:, None]
    ax = plot.densities(cd.NaiveBayes().fit(x, x[:, 0] > 100), x, x[:, 0] > 100, feature=0)
    edges = np.array([b.get_x() for b in ax.containers[0]])
    assert set(np.diff(edges)) == {7.0}
    assert edges[0] == -0.5


def test_counts_are_drawn_as_probabilities_of_whole_numbers():
    model = FittedModel(garden()).with_settings(estimate="mle")
    found = curves(plot.densities(model, *garden_rows(200, 0), feature="flowers"))
    np.testing.assert_allclose(found["sage"][:, 1], stats.poisson(7).pmf(found["sage"][:, 0]))
    assert set(found["sage"][:, 0] % 1) == {0.0}


def test_levels_are_bars_with_the_share_in_the_data():
    table, y = garden_rows(500, 0)
    model = cd.NaiveBayes(estimate="mle").fit(table, y)
    ax = plot.densities(model, table, y, feature="soil")
    sage = [b.get_height() for b in ax.containers[1]]
    soil = np.array([v for v, c in zip(table["soil"], y, strict=True) if c == "sage" and v is not None])
    want = [np.mean(soil == level) for level in ("chalk", "clay", "sand")]
    np.testing.assert_allclose(sage, want)
    ticks = ax.collections[1].get_segments()
    np.testing.assert_allclose([t[0, 1] for t in ticks], want)
    assert [t.get_text() for t in ax.get_legend().get_texts()][-1] == "proportion in the data"


def test_many_levels_become_a_few_and_others():
    rng = np.random.default_rng(0)
    level = np.array([f"level {i}" for i in rng.zipf(1.5, 3000).clip(0, 40)])
    model = cd.NaiveBayes().fit({"v": level}, rng.integers(0, 2, 3000))
    ax = plot.densities(model, feature="v")
    names = [t.get_text() for t in ax.get_xticklabels()]
    assert len(names) == 14
    assert names[-1].endswith("others")
    assert sum(b.get_height() for b in ax.containers[0]) == pytest.approx(1)


def test_a_yes_or_no_feature_is_a_bar_a_class():
    digits = load_digits()
    model = cd.BernoulliNB(binarize=7.5).fit(digits.data, digits.target)
    ax = plot.densities(model, feature=20)
    np.testing.assert_allclose([b.get_height() for b in ax.containers[0]], np.exp(model.feature_log_prob_[:, 20]))


@pytest.mark.parametrize("levels", [(1, 2), (0.5,)])
def test_ellipses_have_the_deviations_as_half_axes(levels):
    iris = load_iris()
    model = cd.GaussianNB(var_smoothing=0).fit(iris.data, iris.target)
    ax = plot.ellipses(model, iris.data, iris.target, features=(0, 1), levels=levels)
    assert len(ax.patches) == 3 * len(levels)
    for i, patch in enumerate(ax.patches):
        x = iris.data[iris.target == i // len(levels), :2]
        want = levels[i % len(levels)] * np.sort(np.sqrt(np.linalg.eigvalsh(np.diag(x.var(axis=0)))))[::-1]
        np.testing.assert_allclose([patch.width / 2, patch.height / 2], want, rtol=1e-7)
        np.testing.assert_allclose(patch.center, x.mean(axis=0))


def test_the_ellipse_of_a_predictive_is_that_of_its_deviation():
    iris = load_iris()
    model = cd.NaiveBayes().fit(iris.data[:, :2], iris.target)
    patch = plot.ellipses(model, levels=(1,)).patches[0]
    law = model.fitted_.model.distributions[0]
    want = sorted(stats.t(law.df[0], law.loc[0], law.scale[0]).std(), reverse=True)
    np.testing.assert_allclose([patch.width / 2, patch.height / 2], want)


def test_class_means_are_the_means_of_the_rows():
    digits = load_digits()
    model = cd.GaussianNB().fit(digits.data, digits.target)
    axes = plot.class_means(model, (8, 8))
    assert [ax.get_title() for ax in axes] == list("0123456789")
    for c, ax in enumerate(axes):
        np.testing.assert_allclose(ax.images[0].get_array(), digits.images[digits.target == c].mean(axis=0))
    assert len({ax.images[0].get_clim() for ax in axes}) == 1


def test_on_probabilities_and_numbered_categories_are_images_too():
    digits = load_digits()
    ink = (digits.data > 7).astype(float)
    bernoulli = cd.BernoulliNB().fit(ink, digits.target)
    [ax] = plot.class_means(bernoulli, (8, 8), classes=3)
    np.testing.assert_allclose(ax.images[0].get_array().ravel(), np.exp(bernoulli.feature_log_prob_[3]))
    mixed = cd.NaiveBayes(estimate="mle").fit(ink, digits.target)  # columns of 0 and 1 are categories
    [ax] = plot.class_means(mixed, (8, 8), classes=[3])
    np.testing.assert_allclose(ax.images[0].get_array().ravel(), ink[digits.target == 3].mean(axis=0), atol=1e-12)


def test_shares_of_a_yes_are_drawn_as_their_probability():
    X = np.random.default_rng(0).random((60, 4))
    y = np.repeat([0, 1], 30)
    model = cd.BernoulliNB(binarize=None).fit(X, y)
    yes = np.exp(model.feature_log_prob_)
    axes = plot.class_means(model, (2, 2))
    np.testing.assert_allclose([ax.images[0].get_array().ravel() for ax in axes], yes)
    bars = plot.densities(model, feature=1).containers[0]
    np.testing.assert_allclose([b.get_height() for b in bars], yes[:, 1])
