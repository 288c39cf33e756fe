"""Bernoulli, Categorical, Multinomial, Complement: textbook numbers, scikit-learn's numbers, zeros without NaN."""

import numpy as np
import pytest
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, MultinomialNB

import candide as cd
from candide.data.blocks import Csr
from candide.encoding import LevelEncoding as Codes
from candide.errors import CellError, InputError
from candide.events import ESTIMATES, Bernoulli, Categorical, Complement, Multinomial
from candide.priors import Beta, Dirichlet
from candide.tally import TALLIES, LevelTally, Sums


def count(event, X, y, sizes=(), n_classes=2):
    spec = event.spec(len(X[0]), tuple(map(Codes.from_size, sizes)))
    return TALLIES[event.kind].from_rows(np.asarray(X), np.asarray(y, np.intp), n_classes=n_classes, spec=spec)


def sparse(X):
    row, column = np.nonzero(X)
    return Csr(X[row, column], column.astype(np.int32), np.searchsorted(row, np.arange(len(X) + 1)), X.shape[1])


def coin(no, yes):
    return LevelTally(np.array([[no, yes]], float), np.array([0, 2], np.intp))


@pytest.mark.parametrize(("no", "yes"), [(0, 0), (3, 7), (0, 5), (2.5, 0.25)])
def test_beta_10_10_adds_nine_and_nine_to_a_map_estimate(no, yes):
    p = {
        how: Bernoulli().estimate(coin(no, yes), Beta(10, 10), how).parameters()["probability"].item()
        for how in ESTIMATES
    }
    assert p["map"] == pytest.approx((9 + yes) / (18 + no + yes), rel=1e-15)
    assert p["mean"] == p["predictive"] == pytest.approx((10 + yes) / (20 + no + yes), rel=1e-15)


def test_thumbtack():
    """Three up, two down: MLE 3/5; under Beta(2, 1) the posterior is Beta(5, 3), with mode 4/6 and mean 5/8."""
    p = [Bernoulli().estimate(coin(2, 3), Beta(2, 1), how).parameters()["probability"].item() for how in ESTIMATES]
    np.testing.assert_allclose(p, [3 / 5, 4 / 6, 5 / 8, 5 / 8], rtol=1e-15)


def test_play_tennis_with_laplace():
    """P(sunny | play) = 4/5 from 3 of 3 days, P(sunny | not) = 1/3 from 0 of 1; (count + 1) / (n + 2)."""
    outlook, humidity = [0, 0, 0, 1], [0, 1, 0, 0]  # sunny, rainy; high, normal
    X, play = np.column_stack([outlook, humidity]), [1, 1, 1, 0]
    fit = Categorical().estimate(count(Categorical(), X, play, (2, 2)), Dirichlet(1), "mean")
    p = np.exp(fit.contributions(np.array([[0, 0]])))[0]  # (class, feature)
    np.testing.assert_allclose(p, [[1 / 3, 2 / 3], [4 / 5, 3 / 5]], rtol=1e-15)


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0])
def test_dirichlet_smoothing_is_count_plus_a_over_n_plus_levels_a(a):
    tally = count(Categorical(), [[0], [0], [2], [1]], [0, 0, 0, 1], (4,))
    table = np.exp(Categorical().estimate(tally, Dirichlet(a), "mean").log_prob(np.arange(5)[:, None]))
    counts = np.array([[2, 0], [0, 1], [1, 0], [0, 0], [0, 0]])  # the last: a level never seen
    np.testing.assert_allclose(table, (counts + a) / (np.array([3, 1]) + 4 * a), rtol=1e-14)


def test_a_word_never_seen_in_a_class_kills_the_mle_and_not_the_map():
    """A unicorn in an article: real news never had one."""
    X, y = [[1, 0], [1, 0], [1, 1]], [0, 0, 1]
    article = np.array([[1.0, 1.0]])
    for event, prior in [(Bernoulli(), Beta(2, 2)), (Multinomial(), Dirichlet(2))]:
        tally = count(event, np.array(X, float), y)
        assert event.estimate(tally, how="mle").log_prob(article)[0, 0] == -np.inf
        assert np.isfinite(event.estimate(tally, prior, "map").log_prob(article)).all()


def test_the_uniform_prior_makes_map_the_mle():
    tally = count(Categorical(), [[0], [1], [1], [0]], [0, 0, 0, 1], (2,))
    levels = np.arange(2)[:, None]
    a, b = (Categorical().estimate(tally, "uniform", how).log_prob(levels) for how in ("mle", "map"))
    assert (a == b).all()


def test_an_unseen_level_contributes_nothing_without_prior_mass():
    tally = count(Categorical(), [[0], [1]], [0, 1], (2,))
    for prior, how in [(None, "mle"), (Dirichlet(1), "map"), ("jeffreys", "map"), (Dirichlet(0), "mean")]:
        assert Categorical().estimate(tally, prior, how).log_prob(np.array([[2]])).tolist() == [[0.0, 0.0]]
    share = Categorical().estimate(tally, Dirichlet(3), "map").log_prob(np.array([[2]]))
    np.testing.assert_allclose(np.exp(share), 2 / 5)


def test_a_mode_on_the_border_is_the_border():
    """Jeffreys, counts 0 and 3: the density of Beta(1/2, 7/2) grows without bound towards 0."""
    p = Bernoulli().estimate(coin(3, 0), "jeffreys", "map").parameters()["probability"]
    assert p.item() == 0.0


@pytest.mark.parametrize("how", ESTIMATES)
def test_a_class_without_values_is_uniform_under_every_estimate(how):
    tally = count(Categorical(), [[0, -1], [2, -1]], [0, 0], (3, 4))
    fit = Categorical().estimate(tally, Dirichlet(1), how)
    np.testing.assert_allclose(np.exp(fit.log_prob(np.array([[1, -1], [-1, 3]])))[:, 1], [1 / 3, 1 / 4])


def test_a_prior_per_level_is_held_to_the_number_of_levels():
    tally = count(Categorical(), [[0, 0], [1, 2]], [0, 1], (2, 3))
    with pytest.raises(InputError, match="column 1 has 3 levels"):
        Categorical().estimate(tally, Dirichlet([1, 2]))
    with pytest.raises(InputError, match="2 columns, and 3 values of alpha"):
        Multinomial().estimate(count(Multinomial(), [[1.0, 2.0]], [0]), Dirichlet([1, 2, 3]))
    with pytest.raises(InputError, match="3 values in the Beta prior for 1 column"):
        Bernoulli().estimate(coin(1, 1), Beta([1, 2, 3], 1))


@pytest.fixture(scope="module")
def words():
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(1.0, 1.0, (3, 6))[np.arange(40) % 3]).astype(float), np.arange(40) % 3


@pytest.mark.parametrize("alpha", [0.3, 1.0, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])
def test_posterior_means_are_scikit_learns_smoothing(words, alpha):
    X, y = words
    prior = Dirichlet(alpha)
    ours = Multinomial().estimate(count(Multinomial(), X, y, n_classes=3), prior, "mean")
    np.testing.assert_allclose(ours.weights.T, MultinomialNB(alpha=alpha).fit(X, y).feature_log_prob_, rtol=1e-12)
    bernoulli = Bernoulli().estimate(count(Bernoulli(), X, y, n_classes=3), Beta(alpha, alpha), "mean")
    theirs = [BernoulliNB(alpha=a).fit(X, y).feature_log_prob_[:, j] for j, a in enumerate(np.broadcast_to(alpha, 6))]
    np.testing.assert_allclose(bernoulli.log_yes.T, theirs, rtol=1e-12)
    for norm in (False, True):
        event = Complement(norm=norm)
        theirs = ComplementNB(alpha=alpha, norm=norm).fit(X, y)
        tally = count(event, X, y, n_classes=3)
        for how in ("mean", "predictive"):
            np.testing.assert_allclose(
                event.estimate(tally, prior, how).weights.T, theirs.feature_log_prob_, rtol=1e-12
            )


def test_scikit_learns_alpha_is_the_map_of_alpha_plus_one(words):
    X, y = words
    codes = np.minimum(X, 2).astype(np.intp)
    tally = count(Categorical(), codes, y, (3,) * 6, n_classes=3)
    theirs = CategoricalNB(alpha=0.7, min_categories=3).fit(codes, y)
    for prior, how in [(Dirichlet(0.7), "mean"), (Dirichlet(1.7), "map")]:
        table = Categorical().estimate(tally, prior, how).table
        np.testing.assert_allclose(table.T, np.concatenate(theirs.feature_log_prob_, axis=1), rtol=1e-12)


@pytest.mark.parametrize("pack", [np.asarray, sparse], ids=["dense", "sparse"])
def test_certain_features_give_zeros_and_no_nan(pack):
    """Always yes in class 0, always no in class 1, both in class 2."""
    X = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    fit = Bernoulli().estimate(count(Bernoulli(), X, [0, 0, 1, 1, 2, 2], n_classes=3), how="mle")
    query = np.array([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]])
    with np.errstate(all="raise"):
        found = fit.log_prob(pack(query))
    np.testing.assert_allclose(np.exp(found), [[0.5, 0, 0.25], [0, 0.5, 0.25], [0, 0.5, 0.25]], rtol=1e-15)


@pytest.mark.parametrize("pack", [np.asarray, sparse], ids=["dense", "sparse"])
def test_a_word_without_probability_matters_only_where_it_occurs(pack):
    X = np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    fit = Multinomial().estimate(
        count(Multinomial(), X, [0, 1, 2], n_classes=3), how="mle"
    )  # class 1 has no word: uniform
    with np.errstate(all="raise"):
        found = np.exp(fit.log_prob(pack(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))))
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3, 1 / 2], [0, 1 / 9, 0], [1, 1, 1]], rtol=1e-15)


def test_bernoulli_and_multinomial_disagree_because_of_an_absent_word():
    """Class 0 always says "the"; a document without it speaks against class 0 only where absence counts."""
    X, y = np.array([[1.0, 1.0], [1.0, 2.0], [0.0, 2.0], [1.0, 1.0]]), [0, 0, 1, 1]
    document = np.array([[0.0, 2.0]])
    odds = [
        event.estimate(count(event, X, y), how="mean").log_prob(document) @ [1, -1]
        for event in (Bernoulli(), Multinomial())
    ]
    assert odds[0] < odds[1] < 0


def test_complement_refuses_infinite_weights_and_what_only_generative_models_do():
    tally = count(Complement(), [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], [0, 1])
    with pytest.raises(InputError, match="class 1, column 1: the word occurs in no other class"):
        Complement().estimate(tally, how="mle")
    with pytest.raises(InputError, match="no marginal likelihood"):
        Complement().evidence(tally)
    with pytest.raises(InputError, match="cannot sample"):
        Complement().estimate(tally).sample(np.array([0]), np.random.default_rng(0))
    silent = count(Complement(), [[1.0, 2.0, 0.0], [1.0, 1.0, 0.0]], [0, 1])
    assert (Complement().estimate(silent, how="mle").weights[2] == 0).all()


def test_improper_priors_have_no_evidence_and_empty_classes_no_predictive_under_them():
    with pytest.raises(InputError, match="improper"):
        Bernoulli().evidence(coin(1, 2), Beta(0, 1))
    tally = count(Multinomial(), [[1.0, 2.0]], [0])
    for call in (Multinomial().evidence, Multinomial().estimate):
        with pytest.raises(InputError):
            call(tally, Dirichlet(0))


@pytest.mark.parametrize("pack", [np.asarray, sparse], ids=["dense", "sparse"])
def test_the_predictive_of_documents_with_many_or_fractional_counts(pack):
    """Word by word: the next word's probability is (alpha + count so far) / (A + words so far)."""
    tally = count(Multinomial(), [[3.0, 0.0, 1.0], [0.0, 2.0, 5.0]], [0, 1])
    fit = Multinomial().estimate(tally, Dirichlet(0), "predictive")  # alpha is the counts: class 0 never says word 1
    document = [0] * 7 + [2] * 4 + [1]
    so_far, expected = tally.total.copy(), np.zeros((12, 2))
    for i, word in enumerate(document):
        with np.errstate(divide="ignore"):
            expected[i] = np.log(so_far[:, word] / so_far.sum(axis=1))
        so_far[:, word] += 1
    bags = np.array([[7.0, 0.0, 4.0], [7.0, 1.0, 4.0]])
    found = fit.log_prob(pack(bags))
    assert found[0, 0] == pytest.approx(expected[:11, 0].sum(), rel=1e-13)
    assert (found[0, 1], found[1, 0]) == (-np.inf, -np.inf)
    near = (
        Multinomial()
        .estimate(tally, Dirichlet(1))
        .log_prob(pack(np.array([[2.5 - 1e-9, 0.0, 1.0], [2.5 + 1e-9, 0.0, 1.0]])))
    )
    np.testing.assert_allclose(near[0], near[1], rtol=1e-7)


def test_a_threshold_below_zero_needs_dense_rows():
    X = np.array([[1.0, -2.0], [0.0, 3.0]])
    fit = Bernoulli(threshold=-1.0).estimate(count(Bernoulli(threshold=-1.0), X, [0, 1]))
    with pytest.raises(InputError, match="threshold -1 < 0"):
        fit.log_prob(sparse(X))


@pytest.mark.parametrize("threshold", [-3.0, 0.0, 0.5, 1.0, 1e17])
def test_samples_lie_on_the_right_side_of_the_threshold(threshold):
    event = Bernoulli(threshold=threshold)
    sure = event.estimate(LevelTally(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 2], np.intp)), how="mle")
    X = sure.sample(np.array([0, 1, 0, 1]), np.random.default_rng(0))
    assert (threshold < X).ravel().tolist() == [False, True, False, True]


def test_a_hundred_thousand_words_do_not_underflow():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.5, (4, 100_000)).astype(float)
    for event in (Multinomial(), Complement(), Bernoulli()):
        assert np.isfinite(event.estimate(count(event, X, [0, 1, 0, 1])).log_prob(X)).all()


def test_fractions_are_linear_and_counted_as_sums():
    event = Bernoulli(threshold=None)
    rng = np.random.default_rng(8)
    X, y = rng.random((30, 3)).round(3), np.arange(30) % 2
    X[3, 1] = np.nan
    tally = Sums.from_rows(X, y, n_classes=2, spec=event.spec(3))
    fit = event.estimate(tally, Beta(2, 1), "mean")
    p = (np.array([np.nansum(X[y == c], axis=0) for c in (0, 1)]) + 2) / (tally.n + 3)
    np.testing.assert_allclose(fit.parameters()["probability"], p, rtol=1e-12)
    expected = X[:, None, :] * np.log(p) + (1 - X[:, None, :]) * np.log1p(-p)
    np.testing.assert_allclose(fit.contributions(X), np.nan_to_num(expected), rtol=1e-12)
    np.testing.assert_allclose(fit.log_prob(X), np.nansum(expected, axis=2), rtol=1e-12)
    assert fit.add_log_prob(X, np.zeros((30, 2))) == 1
    assert event.support.high == 1
    assert set(np.unique(fit.sample(y, rng))) <= {0.0, 1.0}
    assert event.association_test(tally).name == "chi2"
    assert (event.information(tally) >= 0).all()


@pytest.mark.parametrize("how", ["mle", "mean"])
def test_whole_fractions_equal_a_threshold(how):
    rng = np.random.default_rng(9)
    X, y = (rng.random((40, 4)) < [0.0, 0.3, 0.7, 1.0]).astype(float), np.arange(40) % 2
    parted, shares = Bernoulli(threshold=0.5), Bernoulli(threshold=None)
    a = parted.estimate(LevelTally.from_rows(X, y, n_classes=2, spec=parted.spec(4)), how=how)
    b = shares.estimate(Sums.from_rows(X, y, n_classes=2, spec=shares.spec(4)), how=how)
    query = np.vstack([X, 1 - X])
    np.testing.assert_allclose(b.log_prob(query), a.log_prob(query), rtol=1e-12)
    np.testing.assert_allclose(b.contributions(query), a.contributions(query), rtol=1e-12)
    np.testing.assert_allclose(
        b.scale_tables(np.full(4, 0.5)).log_prob(X), a.scale_tables(np.full(4, 0.5)).log_prob(X), rtol=1e-12
    )


def test_fractions_above_one_are_refused():
    event = Bernoulli(threshold=None)
    tally = Sums.from_rows(np.array([[0.5, 3.0], [0.1, 0.2]]), np.array([0, 1]), n_classes=2, spec=event.spec(2))
    with pytest.raises(CellError) as error:
        event.estimate(tally)
    assert (error.value.class_code, error.value.feature) == (0, 1)


def test_under_mle_an_unseen_level_is_impossible_and_contributes_nothing(tmp_path):
    rows = {"sky": ["sun", "sun", "rain", "rain"], "wind": ["no", "no", "yes", "no"]}
    model = cd.NaiveBayes("categorical", estimate="mle").fit(rows, ["out", "out", "in", "in"])
    new = {"sky": ["snow", "snow", "sun", None], "wind": ["yes", "no", "gale", "no"]}
    model.save(tmp_path / "m.candide", detail="score")
    for one in (model, cd.load(tmp_path / "m.candide")):
        assert one.log_density(new)[:3].tolist() == [-np.inf] * 3
        assert one.predict_table(new)["log_density"].to_pylist()[:3] == [-np.inf] * 3
        np.testing.assert_allclose(one.log_density(new)[3], np.log(0.75))  # an absent value is none
        # what was seen of the row decides: in, then p(no | in) = 1/2 against p(no | out) = 1, then out
        np.testing.assert_allclose(one.predict_proba(new)[:3], [[1, 0], [1 / 3, 2 / 3], [0, 1]], atol=1e-12)
        assert np.isfinite(one.log_density(rows)).all()
    [decision] = model.explain({"sky": ["snow"], "wind": ["no"]})
    assert sum(part.log_odds for part in decision.contributions) == pytest.approx(np.log(2))
