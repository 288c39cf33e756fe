"""Intervals of P(class | x): they hold the truth as often as they say, and are refused where there is no posterior."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.datasets import load_iris

import candide as cd
from candide.errors import InputError
from candide.events import Categorical
from candide.fit_source import fit_model
from candide.model.posterior_draws import draw_models
from candide.model.settings import Settings
from candide.tally import LevelTally

SOILS = np.array(["clay", "sand", "chalk"])
SHARES = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
RATES = np.array([2.0, 3.5])


def rows(n, rng):
    """Rows whose columns are independent given the class, and P(yes | x) of each."""
    y = (rng.random(n) < 0.4).astype(int)
    soil = np.array([rng.choice(3, p=SHARES[c]) for c in y], int)
    size, visits = rng.normal(1.2 * y, 1.0 + 0.3 * y), rng.poisson(RATES[y])
    joint = np.stack(
        [
            np.log([0.6, 0.4][c])
            + stats.norm.logpdf(size, 1.2 * c, 1.0 + 0.3 * c)
            + stats.poisson.logpmf(visits, RATES[c])
            + np.log(SHARES[c][soil])
            for c in (0, 1)
        ],
        axis=1,
    )
    p = np.exp(joint[:, 1] - np.logaddexp.reduce(joint, axis=1))
    return {"size": size, "visits": visits, "soil": SOILS[soil]}, np.array(["no", "yes"])[y], p


@pytest.mark.all_cases
@pytest.mark.parametrize("n", [100, 400])
def test_intervals_hold_the_truth_at_their_nominal_rate(n):
    rng, held, total = np.random.default_rng(n), 0, 0
    events = {"visits": "poisson", "size": "gaussian", "soil": "categorical"}
    for i in range(200):
        X, y, _ = rows(n, rng)
        model = cd.NaiveBayes(events).fit(X, y)
        new, _, p = rows(15, rng)
        low, high = model.predict_interval(new, 0.9, draws=60, random_state=i)[:, 1].T
        held += ((low <= p) & (p <= high)).sum()
        total += len(p)
    assert held / total == pytest.approx(0.9, abs=0.03)


WORDS = np.array([[0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])


def documents(n, rng):
    """Words of documents of eight, and P(1 | x) of each."""
    y = np.arange(n) % 2
    x = np.array([rng.multinomial(8, WORDS[c]) for c in y], float)
    return x, y, expit(x @ np.log(WORDS[1] / WORDS[0]))


def test_intervals_of_documents_hold_the_truth_at_their_nominal_rate():
    rng, held, total = np.random.default_rng(0), 0, 0
    for i in range(200):
        X, y, _ = documents(60, rng)
        new, _, p = documents(15, rng)
        model = cd.NaiveBayes("multinomial", class_prior="uniform").fit(X, y)
        low, high = model.predict_interval(new, 0.9, draws=60, random_state=i)[:, 1].T
        held += ((low <= p) & (p <= high)).sum()
        total += len(p)
    assert held / total == pytest.approx(0.9, abs=0.03)


def test_variances_that_are_shared_are_drawn_once():
    rng, y = np.random.default_rng(8), np.arange(40) % 2
    X = rng.normal(0.8 * y[:, None], 1.0 + 0.5 * y[:, None], (40, 3))
    X[:, 1] = 3.0  # does not vary, and shares with no other column
    each = {
        how: [model.distributions[0] for model in draw_models(fitted, 400)]
        for how in ("tied-diagonal", "spherical")
        for fitted in [cd.NaiveBayes(f"gaussian-{how}", param_priors="jeffreys").fit(X, y).fitted_]
    }
    tied, ball = (np.array([one.variance for one in laws]) for laws in each.values())
    assert (tied[:, 0] == tied[:, 1]).all()
    assert (ball[:, :, 0] == ball[:, :, 2]).all()
    assert (ball[:, 0, 1] == ball[:, 1, 1]).all()
    means = np.array([X[y == c].mean(axis=0) for c in (0, 1)])
    scatter = np.array([((X[y == c] - means[c]) ** 2).sum(axis=0) for c in (0, 1)])
    free = stats.chi2(38)  # values less means: of a column in two classes, of two columns in a class
    assert stats.kstest(scatter[:, 0].sum() / tied[:, 0, 0], free.cdf).pvalue > 0.01
    assert stats.kstest(scatter[1, [0, 2]].sum() / ball[:, 1, 0], free.cdf).pvalue > 0.01
    for laws, variance in zip(each.values(), (tied, ball), strict=True):
        off = (np.array([one.loc for one in laws]) - means) / np.sqrt(variance / 20)
        assert stats.kstest(off[:, 1, [0, 2]].ravel(), "norm").pvalue > 0.01


@pytest.mark.parametrize("settings", [{}, {"param_priors": "jeffreys"}, {"estimate": "mle"}, {"estimate": "map"}])
def test_predictions_lie_inside_their_intervals(settings):
    X, y = load_iris(return_X_y=True)
    simulated, labels, _ = rows(100, np.random.default_rng(9))
    for values, classes in ((X, y), (simulated, labels)):
        model = cd.NaiveBayes(**settings).fit(values, classes)
        p, (low, high) = model.predict_proba(values), np.moveaxis(model.predict_interval(values), -1, 0)
        assert ((low <= p) & (p <= high)).all()
        drawn = draw_probabilities(model, values)
        assert (drawn.min(axis=0) - 1e-9 <= p).all()
        assert (p <= drawn.max(axis=0) + 1e-9).all()


def draw_probabilities(model, X):
    blocks = model.fitted_.plan.blocks(model._read_again(X, model.fitted_.plan))
    return np.array([drawn.posterior(blocks) for drawn in draw_models(model.fitted_)])


def test_intervals_follow_a_strong_prior():
    X, y, _ = rows(60, np.random.default_rng(10))
    priors = {"categorical": cd.priors.Dirichlet(200), "gaussian": cd.priors.NormalInverseGamma(kappa=200)}
    model = cd.NaiveBayes({"visits": "gaussian"}, param_priors=priors, class_prior=cd.priors.Dirichlet(500)).fit(X, y)
    low, high = np.quantile(draw_probabilities(model, X), [0.025, 0.975], axis=0)
    p = model.predict_proba(X)
    assert ((low <= p) & (p <= high)).all()


def test_mean_of_drawn_level_probabilities_is_the_estimate():
    tally = LevelTally(np.array([[1.0, 3.0, 0.0], [12.0, 9.0, 2.0]]), np.array([0, 3]))
    draw, rng = Categorical().posterior_sampler(tally), np.random.default_rng(11)
    mean = np.mean([draw(rng).parameters()["probability"] for _ in range(5000)], axis=0)
    assert mean == pytest.approx(Categorical().estimate(tally).parameters()["probability"], abs=0.01)


def test_intervals_narrow_as_rows_grow():
    wide = []
    for n in (100, 1600):
        X, y, _ = rows(n, np.random.default_rng(0))
        model = cd.NaiveBayes({"visits": "poisson"}).fit(X, y)
        new, _, _ = rows(50, np.random.default_rng(1))
        found = model.predict_interval(new)
        assert ((found[..., 0] <= model.predict_proba(new)) & (model.predict_proba(new) <= found[..., 1])).mean() > 0.95
        wide.append((found[..., 1] - found[..., 0]).mean())
    assert wide[1] == pytest.approx(wide[0] / 4, rel=0.35)


def test_the_mean_of_draws_is_near_the_estimate():
    X, y, _ = rows(500, np.random.default_rng(2))
    model = cd.NaiveBayes({"visits": "poisson"}).fit(X, y)
    mean = draw_probabilities(model, X).mean(axis=0)
    off = np.abs(mean - model.predict_proba(X))  # whose prior draws the classes together a little
    assert off.mean() < 0.01
    assert off.max() < 0.05


def test_every_family_that_can_draws():
    rng = np.random.default_rng(3)
    y = np.arange(300) % 2
    X = {"a": rng.lognormal(y, 1.0), "b": rng.exponential(1.0 + y), "c": (rng.random(300) < 0.3 + 0.3 * y) * 1.0}
    model = cd.NaiveBayes({"a": "lognormal", "b": "exponential", "c": "bernoulli"}).fit(X, y)
    found, p = model.predict_interval(X), model.predict_proba(X)
    assert ((found[..., 0] < p) & (p < found[..., 1])).mean() > 0.95


def test_tables_have_them_too(tmp_path):
    X, y, _ = rows(200, np.random.default_rng(4))
    model = cd.NaiveBayes({"visits": "poisson"}).fit(X, y)
    table = model.predict_table(X, intervals=0.9)
    assert table.column_names[1:] == [
        "p_no",
        "p_yes",
        "p_no_low",
        "p_no_high",
        "p_yes_low",
        "p_yes_high",
        "log_density",
    ]
    wanted = model.predict_interval(X, 0.9)
    assert np.array(table["p_yes_low"]) == pytest.approx(wanted[:, 1, 0], abs=1e-12)
    assert np.array(table["p_yes_high"]) == pytest.approx(wanted[:, 1, 1], abs=1e-12)
    model.predict_table(X, tmp_path / "out.csv", intervals=0.9)
    model.predict_table(X, tmp_path / "out.csv")  # it is known as a scored table


def test_shares_that_are_given_are_not_drawn():
    X, y, _ = rows(200, np.random.default_rng(5))
    model = cd.NaiveBayes({"visits": "poisson"}).fit(X, y)
    there = {"no": 0.9, "yes": 0.1}
    for moved in (model.with_policy(class_prior=there), model.with_prior(class_prior=there)):
        assert all(one.log_prior == pytest.approx(np.log([0.9, 0.1])) for one in draw_models(moved.fitted_, 3))
    assert len({tuple(one.log_prior) for one in draw_models(model.fitted_, 3)}) == 3


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
def test_a_level_that_is_none(level):
    X, y, _ = rows(50, np.random.default_rng(6))
    with pytest.raises(InputError) as error:
        cd.NaiveBayes({"visits": "poisson"}).fit(X, y).predict_interval(X, level)
    assert "0.95" in error.value.remedy


def test_where_there_is_no_posterior_an_error_says_why():
    X, y, _ = rows(200, np.random.default_rng(7))
    with pytest.raises(InputError, match="weighted") as error:
        cd.fit({**X, "y": y}, "y").predict_interval(X)
    assert "naive" in error.value.remedy
    with pytest.raises(InputError, match="weighted"):
        cd.predict_table(cd.fit({**X, "y": y}, "y"), X, intervals=0.9)
    with pytest.raises(InputError, match="posterior") as error:
        cd.NaiveBayes({"size": "binned"}).fit(X, y).predict_interval(X)
    assert error.value.column == "size"
    fitted = fit_model({**X, "y": y}, "y", settings=Settings(), model="naive").fitted
    with pytest.raises(InputError, match="has no counts"):
        cd.predict_table(fitted.without_counts(), X, intervals=0.9)


@pytest.mark.parametrize("level", ["x", 0, 1.5, None])
def test_what_is_not_a_level(level):
    X = {"x": [1.0, 2.0, 4.0, 4.5]}
    with pytest.raises(InputError) as error:
        cd.NaiveBayes().fit(X, [0, 0, 1, 1]).predict_interval(X, level)
    assert error.value.value == level
