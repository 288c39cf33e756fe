"""The linear and the quadratic form say what the model says, and are the textbook's and scikit-learn's numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse
from sklearn import naive_bayes as peers

import candide as cd
from candide.errors import InputError
from candide.events import Exponential, Gaussian, LogNormal, Multinomial, Poisson

SHARED = Gaussian(covariance="tied-diagonal")


NUMBERS = ("gaussian", "lognormal", "poisson", "exponential")


def odds(model, X):
    """log p(second | x) - log p(first | x), or log p(class | x) of several classes, centred over the classes."""
    log_p = model.predict_log_proba(X)
    return log_p[:, 1] - log_p[:, 0] if log_p.shape[1] == 2 else log_p - log_p.mean(axis=1, keepdims=True)


def centred(score):
    return score if score.ndim == 1 else score - score.mean(axis=1, keepdims=True)


def agrees(form, model, X, atol=1e-9):
    np.testing.assert_allclose(centred(form.decision_function(X)), odds(model, X), atol=atol, rtol=1e-9)
    joint = np.sort(model.predict_log_proba(X), axis=1)
    clear = ~(joint[:, -1] - joint[:, -2] < 1e-9)  # a tie hangs on the last bit
    np.testing.assert_array_equal(form.classify(X)[clear], model.predict(X)[clear])


def mixed(seed, n_classes, n=60, absent=0.2):
    """A table of every kind of column, with absent values and levels that only later rows have."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    columns = {
        "height": rng.normal(y, 1.0),
        "size": rng.lognormal(0.3 * y),
        "visits": rng.poisson(1.0 + y).astype(float),
        "wait": rng.exponential(1.0 + y),
        "soil": rng.choice(["clay", "sand", "peat"], n).astype(object),
        "wet": rng.normal(y - 1.0),
    }
    for values in columns.values():
        values[rng.random(n) < absent] = None if values.dtype == object else np.nan
    return columns, y


EVENTS = {
    "height": SHARED,
    "size": LogNormal(covariance="tied-diagonal"),
    "visits": "poisson",
    "wait": "exponential",
    "soil": "categorical",
    "wet": "bernoulli",
}


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 4), how=st.sampled_from(["map", "mean"]))
def test_the_linear_form_decides_as_the_model_of_a_mixed_table(seed, n_classes, how):
    X, y = mixed(seed, n_classes)
    # the mode under the usual prior gives what was never met probability 0, which has no weight
    estimate = {"categorical": "mean", "bernoulli": "mean", **dict.fromkeys(NUMBERS, how)}
    model = cd.NaiveBayes(EVENTS, estimate=estimate).fit(X, y)
    form = model.linear()
    new, _ = mixed(seed + 1, n_classes)
    new["soil"][:3] = ["chalk", "loam", "sand"]  # two of them never counted
    agrees(form, model, new)
    assert form.coef.shape == (1 if n_classes == 2 else n_classes, len(form.names))
    assert form.intercept.shape == (len(form.coef),)


def test_inputs_are_named():
    X, y = mixed(0, 2)
    form = cd.NaiveBayes(EVENTS, estimate="mean").fit(X, y).linear()
    assert set(form.names) == {
        "height", "log(size)", "visits", "wait", "soil=clay", "soil=peat", "soil=sand", "soil=<unseen>", "wet>0"
    }  # fmt: skip
    assert cd.NaiveBayes(SHARED, estimate="mean").fit([[1.0], [2.0], [4.0], [5.0]], [0, 0, 1, 1]).linear().names == (
        "x0",
    )


def test_design_times_weights_plus_bias_is_the_decision_where_nothing_is_absent():
    X, y = mixed(3, 2, absent=0.0)
    model = cd.NaiveBayes(EVENTS, estimate="mean").fit(X, y)
    form = model.linear()
    design = form.design(X)
    assert isinstance(design, np.ndarray)
    np.testing.assert_allclose(design @ form.coef[0] + form.intercept[0], odds(model, X), atol=1e-9)
    soil = [form.names.index(f"soil={level}") for level in ("clay", "peat", "sand")]
    np.testing.assert_array_equal(np.array(["clay", "peat", "sand"])[design[:, soil].argmax(1)], X["soil"])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.integers(1, 6), shift=st.sampled_from([0.0, 1e3, 1e6]))
def test_shared_variances_give_the_textbook_weights(seed, d, shift):
    """w = (mu1 - mu0) / sigma^2 and b = -w . (mu0 + mu1) / 2 + log prior odds."""
    rng = np.random.default_rng(seed)
    y = np.arange(24) % 3 // 2
    X = rng.normal(size=(24, d)) + y[:, None] + shift
    model = cd.NaiveBayes(SHARED, estimate="mle").fit(X, y)
    mean = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
    variance = ((X - mean[y]) ** 2).mean(axis=0)
    w = (mean[1] - mean[0]) / variance
    form = model.linear()
    np.testing.assert_allclose(form.coef[0], w, rtol=1e-6)
    np.testing.assert_allclose(form.intercept[0], -w @ (mean[0] + mean[1]) / 2 + np.log(8 / 16), rtol=1e-6)
    np.testing.assert_array_equal((X @ form.coef[0] + form.intercept[0] > 0).astype(int), model.predict(X))


def test_a_fixed_variance_is_the_nearest_mean():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)) + 2 * (np.arange(40) % 2)[:, None], np.arange(40) % 2
    model = cd.NaiveBayes(Gaussian(covariance="fixed", fixed=1.0), estimate="mle").fit(X, y)
    mean = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
    np.testing.assert_allclose(model.linear().coef[0], mean[1] - mean[0], rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_words_give_scikit_learns_weights(n_classes, sparse):
    rng = np.random.default_rng(1)
    X, y = rng.poisson(1.0, (30, 7)), np.arange(30) % n_classes
    rows = csr_array(X) if sparse else X
    for mine, peer in ((cd.MultinomialNB(), peers.MultinomialNB()), (cd.ComplementNB(), peers.ComplementNB())):
        form, theirs = mine.fit(rows, y).linear(), peer.fit(X, y).feature_log_prob_
        expected = theirs[1:] - theirs[:1] if n_classes == 2 else theirs
        np.testing.assert_allclose(form.coef, expected, rtol=1e-10)
        agrees(form, mine, rows)
        assert issparse(form.design(rows)) == sparse


@pytest.mark.parametrize("sparse", [False, True])
def test_yes_and_no_give_scikit_learns_weights(sparse):
    rng = np.random.default_rng(2)
    X, y = (rng.random((50, 5)) < 0.4).astype(float), np.arange(50) % 2
    rows = csr_array(X) if sparse else X
    model, peer = cd.BernoulliNB().fit(rows, y), peers.BernoulliNB().fit(X, y)
    yes, no = peer.feature_log_prob_, np.log1p(-np.exp(peer.feature_log_prob_))
    form = model.linear()
    np.testing.assert_allclose(form.coef[0], (yes - no)[1] - (yes - no)[0], rtol=1e-9)
    np.testing.assert_allclose(form.intercept[0], (peer.class_log_prior_ + no.sum(1)) @ [-1, 1], rtol=1e-9)
    agrees(form, model, rows)


def test_shares_as_they_are_and_categories_by_number():
    rng = np.random.default_rng(3)
    X, y = rng.random((30, 4)), np.arange(30) % 3
    agrees((shares := cd.BernoulliNB(binarize=None).fit(X, y)).linear(), shares, X)
    codes = rng.integers(0, 4, (60, 2))
    model = cd.CategoricalNB().fit(codes[:50], np.arange(50) % 2)
    agrees(model.linear(), model, np.vstack([codes, [[9, 0]]]))
    assert model.linear().names[:2] == ("x0=0", "x0=1")


def test_a_scorer_and_a_loaded_model_have_the_same_form(tmp_path):
    X, y = mixed(5, 2)
    model = cd.NaiveBayes(EVENTS, estimate="mean").fit(X, y)
    for detail in ("tally", "score"):
        model.save(tmp_path / "m.candide", detail=detail)
        loaded = cd.load(tmp_path / "m.candide")
        np.testing.assert_allclose(loaded.linear().coef, model.linear().coef, rtol=1e-12)
        np.testing.assert_allclose(
            loaded.linear().decision_function(X), model.linear().decision_function(X), rtol=1e-10
        )


@pytest.mark.parametrize("settings_of", [{}, {"sublinear": True}, {"idf": True}, {"model": "bernoulli"}, {"bits": 12}])
@pytest.mark.parametrize("labels", [["spam", "ham", "spam", "ham"], ["a", "b", "c", "a"]])
def test_terms_of_documents(settings_of, labels):
    documents = ["free prize call now", "see you at five you", "free call free call", None]
    model = cd.TextNB(**settings_of, weights=None).fit(documents, labels)
    form = model.linear()
    new = ["free free prize and more", "you you see", "", None]
    agrees(form, model, new)
    assert issparse(form.design(new))
    if "bits" not in settings_of:
        assert "prize" in form.names


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(2, 3))
def test_the_quadratic_form_of_unequal_variances(seed, n_classes):
    X, y = mixed(seed, n_classes)
    model = cd.NaiveBayes({**EVENTS, "height": Gaussian(), "size": LogNormal()}, estimate="mean").fit(X, y)
    form = model.quadratic()
    agrees(form, model, X)
    z = np.random.default_rng(seed).normal(size=len(form.names))
    by_hand = np.einsum("i,kij,j->k", z, form.matrices, z)
    np.testing.assert_allclose(by_hand, (z * z) @ form.quadratic_coef.T, rtol=1e-9)
    variance = model.fitted_.model.distributions[0].variance
    if n_classes == 2:
        at = form.names.index("height")
        assert form.quadratic_coef[0, at] == pytest.approx(-0.5 * (1 / variance[1, 0] - 1 / variance[0, 0]), rel=1e-10)


def test_columns_modelled_together():
    rng = np.random.default_rng(4)
    y = np.arange(80) % 2
    X = rng.multivariate_normal([0, 0, 0], [[1, 0.7, 0], [0.7, 1, 0], [0, 0, 1]], 80) + y[:, None]
    table = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    tied = cd.NaiveBayes({("a", "b"): Gaussian(covariance="tied"), "c": SHARED}, estimate="mle").fit(table, y)
    agrees(tied.linear(), tied, table)
    within = sum(np.cov(X[y == c, :2].T, bias=True) / 2 for c in (0, 1))
    expected = np.linalg.solve(within, X[y == 1, :2].mean(0) - X[y == 0, :2].mean(0))
    at = [tied.linear().names.index(name) for name in ("a", "b")]
    np.testing.assert_allclose(tied.linear().coef[0, at], expected, rtol=1e-9)
    full = cd.NaiveBayes({("a", "b"): Gaussian(covariance="full"), "c": SHARED}, estimate="mle").fit(table, y)
    form = full.quadratic()
    agrees(form, full, table)
    Z = form.design(table)
    by_hand = np.einsum("ri,ij,rj->r", Z, form.matrices[0], Z) + Z @ form.coef[0] + form.intercept[0]
    np.testing.assert_allclose(by_hand, odds(full, table), atol=1e-9)
    with pytest.raises(InputError, match=r"not linear in the columns 'a', 'b'.*covariance='tied'"):
        full.linear()


@pytest.mark.parametrize(
    ("events", "estimate", "said"),
    [
        (Gaussian(), "predictive", r"columns 'a', 'b' \(gaussian\).*Student's t; use estimate='mean'"),
        (Gaussian(), "mean", r"variances of the classes differ; use Gaussian\(covariance='tied-diagonal'\)"),
        (Multinomial(), "predictive", "repeats count less; use estimate='mean'"),
        (Poisson(), "predictive", "not linear in the value; use estimate='mean'"),
        (Exponential(), "predictive", "not linear in the value; use estimate='mean'"),
    ],
)
def test_where_the_score_is_not_linear_the_error_names_columns_and_remedy(events, estimate, said):
    X, y = {"a": [1.0, 2, 5, 9], "b": [3.0, 1, 1, 2]}, [0, 0, 1, 1]
    with pytest.raises(InputError, match=said):
        cd.NaiveBayes(events, estimate=estimate).fit(X, y).linear()


def test_a_probability_of_zero_has_no_weight():
    X = {"soil": ["clay", "clay", "sand", "clay"]}
    with pytest.raises(InputError, match=r"'soil=sand' has probability 0 or 1 in class 'a'.*estimate='mean'"):
        cd.NaiveBayes(estimate="mle").fit(X, ["a", "a", "b", "b"]).linear()


def test_one_class_has_no_boundary_and_an_announced_one_never_wins():
    with pytest.raises(InputError, match="one class only"):
        cd.NaiveBayes(SHARED, estimate="mean").partial_fit([[1.0], [2.0]], ["a", "a"]).linear()
    model = cd.NaiveBayes(SHARED, estimate="mean").partial_fit([[1.0], [2.0], [4.0]], ["a", "a", "b"], classes=["c"])
    np.testing.assert_array_equal(model.linear().classify([[1.0], [9.0]]), model.predict([[1.0], [9.0]]))


@pytest.mark.parametrize("labels", [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]], ids=["two", "three"])
@pytest.mark.parametrize(
    "event",
    [cd.events.LogNormal(covariance="tied-diagonal"), cd.events.LogNormal(covariance="tied"), Poisson(), Exponential()],
    ids=lambda e: f"{e.name} {getattr(e, 'covariance', '')}",
)
def test_a_row_that_no_class_can_have_is_left_with_the_class_prior(event, labels):
    """However strongly its other column speaks."""
    columns = {("a",): event} if getattr(event, "joint", False) else {"a": event}
    X = {"a": [1.0, 2, 3, 5, 7, 9], "b": [0.0, 1, 2, 3, 8, 9]}
    model = cd.NaiveBayes({**columns, "b": SHARED}, estimate="mean").fit(X, labels)
    asked = {"a": [-1.0, -2.0, np.nan, 2.0, 8.0], "b": [9.0, np.nan, 9.0, 9.0, -3.0]}
    agrees(model.linear(), model, asked)
    agrees(model.quadratic(), model, asked)
    want = np.log(np.bincount(labels) / 6)
    want = want[1:] - want[:1] if len(want) == 2 else want
    np.testing.assert_allclose(model.linear().decision_function(asked)[0], want if len(want) > 1 else want[0])


def test_a_custom_event_model_may_give_its_natural_form():
    class Laplaceless(cd.events.EventModel):
        kind = "sums"

        def parameters(self, tally, prior, how):
            return {"rate": (tally.n + 1) / (tally.total + 1)}

        def log_density(self, x, rate):
            return np.log(rate) - rate * x

        def natural(self, rate):
            return -rate, np.log(rate)

    X, y = np.random.default_rng(0).exponential(size=(20, 3)), np.arange(20) % 2
    model = cd.NaiveBayes(Laplaceless()).fit(X, y)
    agrees(model.linear(), model, X)
