"""GaussianBayes against scikit-learn's discriminant analyses, and what it adds: merging, missing values, groups."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.covariance import OAS
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

import candide as cd
from candide.errors import InputError, MergeError, NotCountedError
from candide.events import Gaussian

LDA, QDA = LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
COVARIANCES = ("full", "tied", "diagonal", "tied-diagonal", "spherical", "fixed")
TOGETHER = ("full", "tied")


def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def correlated(n=400, p=3, k=3, seed=0):
    """Classes with covariances of their own."""
    rng = np.random.default_rng(seed)
    roots, y = rng.normal(size=(k, p, p)), rng.integers(0, k, n)
    return np.einsum("nij,nj->ni", roots[y], rng.normal(size=(n, p))) + rng.normal(size=(k, p))[y], y


PEERS = {
    "full": ({"covariance": "full"}, QDA()),
    "full-number": ({"covariance": "full", "shrinkage": 0.3}, QDA(solver="eigen", shrinkage=0.3)),
    "full-auto": ({"covariance": "full", "shrinkage": "ledoit-wolf"}, QDA(solver="eigen", shrinkage="auto")),
    "full-oas": ({"covariance": "full", "shrinkage": "oas"}, QDA(solver="eigen", covariance_estimator=OAS())),
    "tied": ({"covariance": "tied"}, LDA()),
    "tied-lsqr": ({"covariance": "tied"}, LDA(solver="lsqr")),
    "tied-number": ({"covariance": "tied", "shrinkage": 0.3}, LDA(solver="lsqr", shrinkage=0.3)),
    "tied-auto": ({"covariance": "tied", "shrinkage": "ledoit-wolf"}, LDA(solver="lsqr", shrinkage="auto")),
    "tied-oas": ({"covariance": "tied", "shrinkage": "oas"}, LDA(solver="lsqr", covariance_estimator=OAS())),
    "diagonal": ({"covariance": "diagonal"}, GaussianNB(var_smoothing=0)),
}


@pytest.mark.parametrize("data", [iris, wine, correlated], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", PEERS)
def test_mle_equals_scikit_learn(name, data):
    X, y = data()
    settings, peer = PEERS[name]
    mine, peer = cd.GaussianBayes(**settings, estimate="mle").fit(X, y), clone(peer).fit(X, y)
    query = np.vstack([X, np.random.default_rng(1).normal(X.mean(axis=0), 2 * X.std(axis=0), (100, X.shape[1]))])
    np.testing.assert_array_equal(mine.predict(query), peer.predict(query))
    np.testing.assert_allclose(mine.predict_proba(query), peer.predict_proba(query), rtol=0, atol=1e-8)


def test_a_given_class_prior_is_scikit_learns_priors():
    X, y = iris()
    shares = [0.6, 0.3, 0.1]
    mine = cd.GaussianBayes(estimate="mle", class_prior=shares).fit(X, y)
    np.testing.assert_allclose(mine.predict_proba(X), QDA(priors=shares).fit(X, y).predict_proba(X), rtol=0, atol=1e-8)


@pytest.mark.parametrize("shrinkage", [None, "ledoit-wolf", "oas"])
@pytest.mark.parametrize("covariance", TOGETHER)
def test_weights_are_repeated_rows(covariance, shrinkage):
    X, y = correlated(120)
    weight = np.random.default_rng(2).integers(0, 4, 120)
    weighed = cd.GaussianBayes(covariance, shrinkage).fit(X, y, sample_weight=weight)
    repeated = cd.GaussianBayes(covariance, shrinkage).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighed.predict_log_proba(X), repeated.predict_log_proba(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shrinkage", [None, 0.2, "ledoit-wolf"])
@pytest.mark.parametrize("covariance", TOGETHER)
def test_partial_fit_adding_and_taking_away_equal_fit(covariance, shrinkage):
    X, y = wine()
    whole = cd.GaussianBayes(covariance, shrinkage).fit(X, y)
    parts = cd.GaussianBayes(covariance, shrinkage)
    for rows in np.array_split(np.arange(len(y)), 7):  # the first part has one class only
        parts.partial_fit(X[rows], y[rows])
    want = whole.predict_log_proba(X)
    np.testing.assert_allclose(parts.predict_log_proba(X), want, rtol=1e-10, atol=1e-10)
    halves = [cd.GaussianBayes(covariance, shrinkage).fit(X[i::2], y[i::2]) for i in (0, 1)]
    np.testing.assert_allclose(sum(halves).predict_log_proba(X), want, rtol=1e-10, atol=1e-10)
    rest = (halves[0] + halves[1]) - halves[1]
    np.testing.assert_allclose(rest.predict_log_proba(X), halves[0].predict_log_proba(X), rtol=1e-7, atol=1e-7)
    forgotten = sum(halves).forget(X[::2], y[::2])
    np.testing.assert_allclose(forgotten.predict_log_proba(X), halves[1].predict_log_proba(X), rtol=1e-7, atol=1e-7)


def test_rows_that_were_never_counted_cannot_be_taken_away():
    X, y = iris()
    with pytest.raises(NotCountedError, match="column"):
        cd.GaussianBayes().fit(X, y).forget(X[:5] + 100.0, y[:5])


def test_fourth_moments_do_not_merge_with_none():
    X, y = iris()
    with pytest.raises(MergeError, match="both with the same events"):
        cd.GaussianBayes().fit(X, y) + cd.GaussianBayes(shrinkage="ledoit-wolf").fit(X, y)


@pytest.mark.parametrize("covariance", TOGETHER)
def test_what_is_missing_is_integrated_out(covariance):
    X, y = iris()
    holes = X.copy()
    holes[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    model = cd.GaussianBayes(covariance, estimate="mle").fit(X, y)
    law = model.fitted_.model.distributions[0]
    joint = np.zeros((len(X), 3))
    for i, x in enumerate(holes):
        at = np.flatnonzero(~np.isnan(x))
        for c in range(3) if len(at) else ():
            matrix = law.covariance[c if covariance == "full" else 0][np.ix_(at, at)]
            joint[i, c] = stats.multivariate_normal.logpdf(x[at], law.loc[c, at], matrix)
    want = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)  # the classes of iris are alike in number
    np.testing.assert_allclose(model.predict_proba(holes), want, rtol=1e-9, atol=1e-12)


def test_a_row_with_a_hole_is_left_out_of_the_counts_and_the_class_still_counts_it():
    X, y = iris()
    holes = X.copy()
    holes[::3, 1] = np.nan
    kept = ~np.isnan(holes).any(axis=1)
    shares = dict.fromkeys(np.unique(y), 1 / 3)
    some, all_rows = cd.GaussianBayes(class_prior=shares).fit(X[kept], y[kept]), cd.GaussianBayes().fit(holes, y)
    np.testing.assert_allclose(all_rows.predict_log_proba(X), some.predict_log_proba(X), rtol=1e-10)
    assert all_rows.counts_.class_weight.tolist() == [50, 50, 50]


def test_log_density_is_the_mixture_and_sampling_is_undone_by_fitting():
    X, y = correlated(600, 2, 2)
    model = cd.GaussianBayes(estimate="mle").fit(X, y)
    law = model.fitted_.model.distributions[0]
    want = sum(np.mean(y == c) * stats.multivariate_normal.pdf(X, law.loc[c], law.covariance[c]) for c in range(2))
    np.testing.assert_allclose(model.log_density(X), np.log(want), rtol=1e-10)
    again = cd.GaussianBayes(estimate="mle").fit(*model.sample(100_000, random_state=0)).fitted_.model.distributions[0]
    np.testing.assert_allclose(again.covariance, law.covariance, rtol=0.05, atol=0.03 * np.abs(law.covariance).max())


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
def test_files_keep_everything(covariance, detail, tmp_path):
    X, y = iris()
    model = cd.GaussianBayes(covariance, fixed=0.3).fit(X, y)
    model.save(tmp_path / "m.candide", detail=detail)
    again = cd.load(tmp_path / "m.candide")
    np.testing.assert_array_equal(again.predict_log_proba(X), model.predict_log_proba(X))
    assert type(again) is cd.GaussianBayes
    assert again.get_params() == model.get_params()
    if detail == "tally":
        both = again + model
        np.testing.assert_allclose(both.counts_.tallies[0].n, 2 * model.counts_.tallies[0].n)


def test_other_priors_need_no_second_pass():
    X, y = iris()
    model = cd.GaussianBayes().fit(X, y)
    mle = model.with_prior(estimate="mle")
    np.testing.assert_allclose(mle.predict_proba(X), QDA().fit(X, y).predict_proba(X), rtol=0, atol=1e-8)
    broad = model.with_prior(
        cd.priors.NormalInverseWishart(df=1000.0)
    )  # so strong that the classes have one covariance
    spread = broad.fitted_.model.distributions[0].scale
    np.testing.assert_allclose(spread[0], spread[1], rtol=0.2, atol=0.05)


# The order that theory says ------------------------------------------------------------------------------------------


def accuracy(covariance, train, test):
    return cd.GaussianBayes(covariance).fit(*train).score(*test)


def drawn(covariances, gap, n, p, rng):
    roots, y = np.linalg.cholesky(covariances), rng.integers(0, 2, n)
    return np.einsum("nij,nj->ni", roots[y], rng.normal(size=(n, p))) + gap * y[:, None], y


def test_full_wins_on_classes_that_are_correlated_in_their_own_ways():
    rng = np.random.default_rng(0)
    way = np.array([[[1.0, 0.8], [0.8, 1.0]], [[1.0, -0.8], [-0.8, 1.0]]])
    train, test = (drawn(way, 0.5, 2000, 2, rng) for _ in range(2))
    full, tied, diagonal = (accuracy(c, train, test) for c in ("full", "tied", "diagonal"))
    assert full > 0.8 > max(tied, diagonal) + 0.1


def test_tied_wins_on_equal_ellipses():
    """Few rows for a covariance each, enough for one: over twenty draws tied is best, on average and mostly."""
    p, wins, found = 8, 0, []
    root = np.random.default_rng(1).normal(size=(p, p))
    same = np.repeat((root @ root.T + 0.5 * np.eye(p))[None], 2, axis=0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        train, test = drawn(same, 0.7, 60, p, rng), drawn(same, 0.7, 2000, p, rng)
        found.append([accuracy(c, train, test) for c in ("tied", "full", "diagonal")])
        wins += found[-1][0] == max(found[-1])
    means = np.mean(found, axis=0)
    assert means[0] > means[1:].max() + 0.03
    assert wins >= 17


def test_diagonal_wins_with_few_rows():
    """Ten rows a class in twelve independent columns: a covariance matrix is more than they can tell."""
    p, found = 12, []
    variances = np.stack([np.eye(p), 4.0 * np.eye(p)])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        train, test = drawn(variances, 0.5, 20, p, rng), drawn(variances, 0.5, 2000, p, rng)
        if min(np.bincount(train[1], minlength=2)) > 1:
            found.append([accuracy(c, train, test) for c in ("diagonal", "full", "tied")])
    means = np.mean(found, axis=0)
    assert means[0] > means[1:].max() + 0.05


@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "tied-diagonal"])
def test_to_rescale_a_column_changes_no_prediction(covariance):
    X, y = iris()
    units = np.array([1e-4, 1.0, 1e5, 3.0])
    plain, other = cd.GaussianBayes(covariance).fit(X, y), cd.GaussianBayes(covariance).fit(X * units, y)
    np.testing.assert_allclose(other.predict_log_proba(X * units), plain.predict_log_proba(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("covariance", TOGETHER)
def test_more_columns_than_rows_and_constant_ones_are_no_trouble(covariance):
    rng = np.random.default_rng(4)
    y = np.arange(12) % 3
    X = np.column_stack([rng.normal(size=(12, 30)) + 3 * y[:, None], np.ones(12)])
    model = cd.GaussianBayes(covariance).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert np.isfinite(model.log_density(X)).all()
    assert model.score(X, y) == 1.0


def test_cross_validation_by_scikit_learn():
    X, y = iris()
    assert cross_val_score(cd.GaussianBayes(), X, y, cv=5).mean() > 0.96


# A group of columns in naive Bayes -----------------------------------------------------------------------------------


def flowers():
    X, y = iris()
    names = ("sepal_length", "sepal_width", "petal_length", "petal_width")
    colour = np.array(["blue", "white", None, "pink"], object)[np.random.default_rng(5).integers(0, 4, len(y))]
    return {**dict(zip(names, X.T, strict=True)), "colour": colour}, y


PETAL = ("petal_length", "petal_width")


def test_a_group_is_modelled_together_and_apart_from_the_rest():
    X, y = flowers()
    both = cd.NaiveBayes({PETAL: Gaussian(covariance="full")}).fit(X, y)
    assert sorted(part.columns for part in both.counts_.plan.parts) == [
        ("colour",), PETAL, ("sepal_length", "sepal_width")
    ]  # fmt: skip
    petals = cd.GaussianBayes().fit({name: X[name] for name in PETAL}, y)
    others = cd.NaiveBayes().fit({name: X[name] for name in X if name not in PETAL}, y)
    want = petals.predict_joint_log_proba({n: X[n] for n in PETAL}) + others.predict_joint_log_proba(X) - np.log(1 / 3)
    np.testing.assert_allclose(both.predict_joint_log_proba(X), want, rtol=1e-11)


def test_groups_by_position_in_an_array():
    X, y = iris()
    one = cd.NaiveBayes({(2, 3): Gaussian(covariance="full"), 0: "lognormal"}).fit(X, y)
    assert [(p.event.name, p.columns) for p in one.counts_.plan.parts] == [
        ("lognormal", (0,)), ("gaussian", (1,)), ("gaussian", (2, 3))
    ]  # fmt: skip
    rows, labels = one.sample(7, random_state=0)
    assert rows.shape == (7, 4)
    assert set(labels) <= set(y)


def test_the_order_of_the_names_in_a_group_does_not_matter():
    X, y = flowers()
    models = [cd.NaiveBayes({group: "gaussian-full"}).fit(X, y) for group in (PETAL, PETAL[::-1])]
    assert (models[0] + models[1]).counts_.n_rows == 300


def test_groups_of_one_event_model_stay_apart():
    X, y = iris()
    two = cd.NaiveBayes({(0, 1): "gaussian-full", (2, 3): "gaussian-full"}).fit(X, y)
    assert [p.columns for p in two.counts_.plan.parts] == [(0, 1), (2, 3)]
    alone = cd.NaiveBayes({0: "gaussian-full", 1: "gaussian-full", 2: "gaussian", 3: "gaussian"}).fit(X, y)
    plain = cd.NaiveBayes("gaussian").fit(X, y)
    np.testing.assert_allclose(alone.predict_log_proba(X), plain.predict_log_proba(X), rtol=1e-10, atol=1e-12)


def test_a_group_is_kept_by_files_merges_partial_fit_and_unlearning(tmp_path):
    X, y = flowers()
    first, second = ({n: c[rows] for n, c in X.items()} for rows in (slice(0, 90), slice(90, 150)))
    events = {PETAL: Gaussian(covariance="full", shrinkage="ledoit-wolf")}
    whole = cd.NaiveBayes(events).fit(X, y)
    for name, rows, labels in (("a", first, y[:90]), ("b", second, y[90:])):
        cd.NaiveBayes(events).partial_fit(rows, labels).save(tmp_path / name)
    merged = cd.load(tmp_path / "a") + cd.load(tmp_path / "b")
    np.testing.assert_allclose(merged.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    merged.forget(second, y[90:])
    assert merged.counts_.n_rows == 90
    again = clone(cd.load(tmp_path / "a")).fit(X, y)  # its events name the group
    np.testing.assert_allclose(again.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ({("petal_length", "colour"): "gaussian-full"}, r"column 'colour' .* is not a number.*modelled jointly \("),
        ({("petal_length", "petal_with"): "gaussian-full"}, "unknown column in events 'petal_with'; did you mean"),
        ({PETAL: "gaussian-full", "petal_width": "gaussian"}, "column 'petal_width': in two entries of events"),
        ({PETAL: "gaussian-full", ("petal_width", "colour"): "gaussian-tied"}, "'petal_width': in two entries"),
        ({("petal_width", "petal_width"): "gaussian-full"}, "'petal_width': in two entries"),
        ({PETAL: "categorical"}, r"categorical models each column by itself; .*Gaussian\(covariance='full'\)"),
        ({(): "gaussian-full"}, "a group of gaussian has no columns"),
        ({PETAL: "gaussian-ful"}, "unknown covariance 'ful'; did you mean 'full'"),
    ],
)
def test_groups_that_cannot_be_are_refused(events, why):
    X, y = flowers()
    with pytest.raises(InputError, match=why):
        cd.NaiveBayes(events).fit(X, y)


def test_settings_are_checked_when_fitting():
    X, y = iris()
    with pytest.raises(InputError, match="did you mean 'tied'"):
        cd.GaussianBayes("tie").fit(X, y)
    with pytest.raises(InputError, match=r"0\.\.1"):
        cd.GaussianBayes(shrinkage=2).fit(X, y)
    with pytest.raises(InputError, match=r"class 'versicolor': .*singular; use estimate='predictive'") as caught:
        cd.GaussianBayes(estimate="mle").fit(np.where((y == "versicolor")[:, None] & [0, 0, 0, 1] == 1, 1.0, X), y)
    assert caught.value.column == 3


def test_linear_and_quadratic_forms_predict_as_the_model():
    X, y = iris()
    tied, full = (cd.GaussianBayes(c, estimate="mle").fit(X, y) for c in TOGETHER[::-1])
    np.testing.assert_array_equal(tied.linear().classify(X), tied.predict(X))
    np.testing.assert_array_equal(full.quadratic().classify(X), full.predict(X))
    for form, model in ((tied.linear(), tied), (full.quadratic(), full)):
        gap = form.decision_function(X) - model.predict_joint_log_proba(X)
        np.testing.assert_allclose(gap, gap[:, :1] + np.zeros(3), atol=1e-8)
    with pytest.raises(InputError, match="covariance='tied'"):
        full.linear()


def test_the_threads_of_blas_are_as_many_afterwards_as_before():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    def limits():
        return sorted((lib["filepath"], lib["num_threads"]) for lib in threadpool_info() if lib["user_api"] == "blas")

    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(4000, 60)), np.arange(4000) % 5
    model = cd.GaussianBayes().fit(X, y)
    want, before = model.predict_log_proba(X), limits()
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(model.predict_log_proba, [X] * 12):
            np.testing.assert_allclose(found, want, rtol=1e-12)
    assert limits() == before
