"""Regions, boundaries and surfaces are where the model puts them."""

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_iris

import candide as cd
from candide import plot
from candide.demo import garden
from candide.events import Gaussian
from candide.model.fitted import FittedModel


def boundary(ax):
    """The points of every contour line drawn."""
    lines = [c for c in ax.collections if type(c).__name__ == "QuadContourSet" and not c.filled]
    return np.vstack([path.vertices for line in lines for path in line.get_paths() if len(path.vertices)])


def two_clouds(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal((0, 0), (1, 2), (n, 2)), rng.normal((3, 1), (1.5, 0.7), (n, 2))])
    return X, np.repeat(["a", "b"], n)


def test_a_shared_variance_gives_the_line_of_the_textbook():
    X, y = two_clouds()
    model = cd.NaiveBayes(Gaussian(covariance="tied-diagonal"), estimate="mle").fit(X, y)
    at = boundary(plot.regions(model, X, y))
    mean = np.array([X[y == c].mean(axis=0) for c in "ab"])
    variance = np.mean([X[y == c].var(axis=0) for c in "ab"], axis=0)  # as many of each class
    w = (mean[1] - mean[0]) / variance
    bias = -0.5 * ((mean[1] ** 2 - mean[0] ** 2) / variance).sum()
    assert len(at) > 50
    np.testing.assert_allclose(at @ w + bias, 0, atol=1e-9)


def test_unequal_variances_give_the_conic_of_the_textbook():
    X, y = two_clouds()
    model = cd.NaiveBayes("gaussian", estimate="mle").fit(X, y)
    at = boundary(plot.regions(model, X, y, resolution=400))
    f = sum(
        sign * stats.norm.logpdf(at, X[y == c].mean(axis=0), X[y == c].std(axis=0)).sum(axis=1)
        for c, sign in (("a", 1), ("b", -1))
    )
    assert np.abs(f).max() < 1e-3  # lines are straight between grid points
    assert np.ptp(np.polyfit(at[:, 0], at[:, 1], 1) @ [at[:, 0], np.ones(len(at))] - at[:, 1]) > 0.1  # and not a line


@pytest.mark.parametrize("proba", [True, False])
def test_the_picture_is_what_predict_gives(proba):
    iris = load_iris(as_frame=True)
    two = ["petal length (cm)", "petal width (cm)"]
    model = cd.NaiveBayes().fit(iris.data[two], iris.target_names[iris.target])
    ax = plot.regions(model, iris.data, iris.target_names[iris.target], features=two, resolution=60, proba=proba)
    [image] = ax.images
    codes = image.get_array()
    left, right, bottom, top = image.get_extent()
    x = left + (np.arange(60) + 0.5) * (right - left) / 60
    y = bottom + (np.arange(60) + 0.5) * (top - bottom) / 60
    for i, j in [(0, 0), (10, 50), (30, 30), (59, 59), (45, 20)]:
        assert model.classes_[codes[i, j]] == model.predict({two[0]: [x[j]], two[1]: [y[i]]})[0]


def test_other_features_are_absent_not_average():
    model = FittedModel(garden())
    ax = plot.regions(model, features=("height_cm", "leaf_mm"), resolution=30)
    codes = ax.images[0].get_array()
    left, right, bottom, top = ax.images[0].get_extent()
    x, y = left + 12.5 * (right - left) / 30, bottom + 20.5 * (top - bottom) / 30
    row = {"height_cm": [x], "leaf_mm": [y], "flowers": [None], "soil": [None], "scented": [None]}
    assert cd.NaiveBayes.from_fitted(model).predict(row)[0] == model.labels.values[codes[20, 12]]


def test_points_are_drawn_class_by_class_in_the_colour_of_their_region():
    iris = load_iris()
    model = cd.GaussianNB().fit(iris.data[:, :2], iris.target)
    ax = plot.regions(model, iris.data[:, :2], iris.target)
    scatters = [c for c in ax.collections if type(c).__name__ == "PathCollection"]
    assert [len(s.get_offsets()) for s in scatters] == [50, 50, 50]
    shade = ax.images[0].get_cmap()(np.arange(3))[:, :3]
    np.testing.assert_allclose([s.get_facecolor()[0, :3] for s in scatters], shade, atol=1e-6)
    np.testing.assert_allclose(scatters[1].get_offsets(), iris.data[iris.target == 1, :2])
    assert len(ax.get_legend().get_texts()) == 3
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "feature 1")


def test_rows_with_gaps_and_many_rows_are_drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 2))
    X[::7, 0] = np.nan
    y = rng.integers(0, 2, 12_000)
    ax = plot.regions(cd.NaiveBayes().fit(X, y), X, y, resolution=20)
    drawn = np.vstack([c.get_offsets() for c in ax.collections if type(c).__name__ == "PathCollection"])
    assert len(drawn) == 5000
    assert np.isfinite(drawn).all()


def test_twenty_six_classes_are_named_in_their_regions():
    rng = np.random.default_rng(0)
    letters = np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    centre = np.stack(np.meshgrid(np.arange(6), np.arange(5)), -1).reshape(-1, 2)[:26] * 4.0
    X = np.repeat(centre, 30, axis=0) + rng.normal(size=(780, 2))
    ax = plot.regions(cd.NaiveBayes().fit(X, np.repeat(letters, 30)), X, np.repeat(letters, 30))
    named = {t.get_text(): t.get_position() for t in ax.texts}
    assert set(named) == set(letters)
    for letter, at in zip(letters, centre, strict=True):
        assert np.abs(np.array(named[letter]) - at).max() < 3.5
    from candide.plot import style

    looks = {(style.colour(i), style.marker(i)) for i in range(40)}
    assert len(looks) == 40
    assert len({style.colour(i) for i in range(26)}) == 26


@pytest.mark.parametrize("kind", ["surface", "contour"])
def test_the_surface_is_the_difference_of_the_posteriors(kind):
    X, y = two_clouds()
    model = cd.NaiveBayes("gaussian", estimate="mle").fit(X, y)
    ax = plot.posterior_surface(model, X, kind=kind)
    told = ax.get_title() if kind == "surface" else ax.figure.axes[1].get_ylabel()
    assert told == "p(b | x) - p(a | x)"
    if kind == "surface":
        [surface] = [c for c in ax.collections if type(c).__name__ == "Poly3DCollection"]
        corner = np.array([np.mean(q, axis=0) for q in surface._faces[::997]])
        p = model.predict_proba(corner[:, :2])
        np.testing.assert_allclose(corner[:, 2], p[:, 1] - p[:, 0], atol=0.01)
        assert np.ptp(corner[:, 2]) > 1.5
    else:
        at = boundary(ax)
        p = model.predict_proba(at)
        np.testing.assert_allclose(p[:, 0], p[:, 1], atol=0.01)


def test_one_posterior_alone():
    iris = load_iris()
    model = cd.GaussianNB().fit(iris.data[:, 2:], iris.target)
    ax = plot.posterior_surface(model, iris.data[:, 2:], classes=[1], difference=False, kind="contour")
    at = boundary(ax)
    np.testing.assert_allclose(model.predict_proba(at)[:, 1], 0.5, atol=0.02)


def test_axes_given_are_axes_returned():
    import matplotlib.pyplot as plt

    X, y = two_clouds()
    model = cd.NaiveBayes().fit(X, y)
    _, ax = plt.subplots()
    assert plot.regions(model, X, y, ax=ax, resolution=20) is ax
    before = dict(plt.rcParams)
    plot.regions(model, resolution=20)
    assert dict(plt.rcParams) == before


def test_full_covariance_regions_and_ellipses_follow_the_correlation():
    rng = np.random.default_rng(3)
    X = np.vstack([rng.multivariate_normal([0, 0], [[2, 1.5], [1.5, 2]], 300), rng.normal((2, -2), 0.7, (300, 2))])
    y = np.repeat(["leaning", "round"], 300)
    model = cd.NaiveBayes({(0, 1): Gaussian(covariance="full")}, estimate="mle").fit(X, y)
    at = boundary(plot.regions(model, X, y, resolution=300))
    f = sum(
        sign * stats.multivariate_normal(X[y == c].mean(axis=0), np.cov(X[y == c].T, ddof=0)).logpdf(at)
        for c, sign in (("leaning", 1), ("round", -1))
    )
    assert np.abs(f).max() < 5e-3
    one = plot.ellipses(model, X, y, levels=(1,)).patches[0]
    values, vectors = np.linalg.eigh(np.cov(X[y == "leaning"].T, ddof=0))
    np.testing.assert_allclose([one.width / 2, one.height / 2], np.sqrt(values[::-1]), rtol=1e-9)
    along = np.array([np.cos(np.radians(one.angle)), np.sin(np.radians(one.angle))])
    assert abs(along @ vectors[:, 1]) == pytest.approx(1)


def test_panels_share_a_legend_and_pictures_that_differ_do_not():
    import matplotlib.pyplot as plt

    X, y = two_clouds()
    model = cd.NaiveBayes().fit(X, y)
    _, (a, b, c) = plt.subplots(1, 3)
    plot.regions(model, X, y, ax=a, resolution=20)
    plot.regions(model, X, y, ax=b, resolution=20)
    assert a.get_legend() is None
    plot.densities(model, X, y, feature=0, ax=c)
    assert [t.get_text() for t in b.get_legend().get_texts()] == ["a", "b"]
    assert [t.get_text() for t in c.get_legend().get_texts()] == ["a", "b"]


def test_a_class_has_one_colour_in_all_pictures_of_its_model():
    from matplotlib.colors import to_hex

    X, y = two_clouds()
    model = cd.NaiveBayes("gaussian").fit(X, y)
    found = [
        [to_hex(c.get_facecolor()[0]) for c in plot.ellipses(model, X, y).collections],
        [to_hex(p.get_edgecolor()) for p in plot.ellipses(model, levels=(1,)).patches],
        [line.get_color() for line in plot.densities(model, feature=0).lines],
        [to_hex(c.get_facecolor()[0]) for c in plot.discriminant(model, X, y).collections[:2]],
        [to_hex(bars[0].get_facecolor()) for bars in plot.discriminant(model, X, y, kind="bars").containers],
    ]
    assert {tuple(colours) for colours in found} == {("#0072b2", "#d55e00")}


def test_a_picture_of_counts_and_waiting_times_starts_at_zero():
    rng = np.random.default_rng(0)
    X = {"n": rng.poisson(3, 200), "t": rng.exponential(2, 200), "m": rng.lognormal(0, 1, 200)}
    model = cd.NaiveBayes({"n": "poisson", "t": "exponential", "m": "lognormal"}).fit(X, rng.integers(0, 2, 200))
    for rows in (None, X):
        ax = plot.regions(model, rows, features=("n", "t"), resolution=20)
        assert (ax.get_xlim()[0], ax.get_ylim()[0]) == (0, 0)
        assert 0 < plot.regions(model, rows, features=("m", "t"), resolution=20).get_xlim()[0] < 1e-3


def test_gaussian_bayes_parts_the_plane_as_scikit_learns_discriminants_do():
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

    X, y = two_clouds()
    X = X @ np.array([[1.0, 0.6], [0.0, 1.0]])
    qda = QuadraticDiscriminantAnalysis().fit(X, y)
    at = boundary(plot.regions(cd.GaussianBayes("full", estimate="mle", param_priors="unbiased").fit(X, y), X, y))
    assert np.abs(qda.decision_function(at)).max() < 0.01
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    at = boundary(plot.regions(cd.GaussianBayes("tied", estimate="mle").fit(X, y), X, y))
    assert np.abs(lda.decision_function(at)).max() < 1e-8  # a line


def test_two_of_several_correlated_features_are_their_marginal():
    rng = np.random.default_rng(5)
    root = rng.normal(size=(2, 4, 4))
    X = np.vstack([rng.normal(size=(300, 4)) @ root[c] + c for c in (0, 1)])
    y = np.repeat([0, 1], 300)
    model = cd.GaussianBayes("full", estimate="mle").fit(X, y)
    at = boundary(plot.regions(model, X, y, features=(0, 2), resolution=300))
    two = X[:, [0, 2]]
    a, b = (stats.multivariate_normal(two[y == c].mean(axis=0), np.cov(two[y == c].T, ddof=0)) for c in (0, 1))
    assert np.abs(a.logpdf(at) - b.logpdf(at)).max() < 5e-3
    for c, patch in enumerate(plot.ellipses(model, features=(0, 2), levels=(1,)).patches):
        values = np.linalg.eigvalsh(np.cov(two[y == c].T, ddof=0))
        np.testing.assert_allclose([patch.height / 2, patch.width / 2], np.sqrt(values))


@pytest.mark.parametrize("estimate", ["mle", "predictive"])
def test_the_ellipse_of_a_multivariate_t_is_that_of_its_covariance(estimate):
    X, y = two_clouds(30)
    model = cd.GaussianBayes("full", estimate=estimate).fit(X, y)
    law = model.fitted_.model.distributions[0]
    matrix = law.covariance[0] if estimate == "mle" else law.scale[0] * law.factor[0] * law.df[0] / (law.df[0] - 2)
    patch = plot.ellipses(model, levels=(2,)).patches[0]
    np.testing.assert_allclose([patch.height / 4, patch.width / 4], np.sqrt(np.linalg.eigvalsh(matrix)))


def test_sparse_rows_are_points_as_dense_ones_are():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X, y = rng.poisson(1.0, (60, 4)).astype(float), rng.integers(0, 2, 60)
    model = cd.MultinomialNB().fit(X, y)
    for rows in (X, sp.csr_matrix(X)):
        ax = plot.regions(model, rows, y, features=(1, 3), resolution=20)
        scatters = [c for c in ax.collections if type(c).__name__ == "PathCollection"]
        for c, scatter in enumerate(scatters):
            np.testing.assert_allclose(scatter.get_offsets(), X[y == c][:, [1, 3]])
