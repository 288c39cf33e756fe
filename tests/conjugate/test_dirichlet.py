"""Tables drawn round the pooled shares: noise has no evidence, whatever its levels; rare ones have the usual share."""

import numpy as np
import pytest
from scipy import integrate, stats

import candide as cd
from candide.conjugate.dirichlet import log_odds, pooled_log_prob
from candide.events import Categorical
from candide.priors import Dirichlet, PooledDirichlet
from candide.tally import LevelTally


def counted(x, y, n_classes=2):
    """The tally of one column of levels."""
    x = np.unique(x, return_inverse=True)[1]
    counts = np.zeros((n_classes, x.max() + 1))
    np.add.at(counts, (y, x), 1.0)
    return LevelTally(counts, np.array([0, counts.shape[1]]))


@pytest.mark.parametrize("levels", [2, 3, 20, 200, 1500, 5000])
@pytest.mark.parametrize("classes", [2, 20])
@pytest.mark.parametrize("power", [0.0, 1.5])
@pytest.mark.parametrize("n", [50, 2000])
def test_noise_has_no_evidence_on_average(levels, classes, power, n):
    rng, p = np.random.default_rng(levels), 1.0 / np.arange(1, levels + 1) ** power
    draws = [
        log_odds(counted(rng.choice(levels, n, p=p / p.sum()), rng.integers(0, classes, n), classes), 1.0).item()
        for _ in range(20)
    ]
    assert np.mean(draws) <= 0


def test_signal_is_stronger_than_noise_of_many_levels():
    """2,000 rows: a column of 1,500 random levels against one that is right in two rows of three."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    rows = {
        "noise": rng.integers(0, 1500, 2000).astype(str).astype(object),
        "signal": np.where(rng.random(2000) < 0.64, y, 1 - y).astype(str).astype(object),
    }
    model = cd.NaiveBayes("categorical", select="evidence").fit(rows, y)
    scores = {score.column: score.evidence_per_row for score in model.feature_scores()}
    assert scores["noise"] <= 0 < scores["signal"]
    assert model.fitted_.plan.columns == ("signal",)


def test_random_names_do_not_spoil_a_model():
    """100,000 rows, most of whose names occur once or twice: a model with them is as right as one without."""
    rng = np.random.default_rng(1)
    y = (rng.random(100_000) < 0.3).astype(int)
    rows = {
        "name": np.char.add("u", rng.integers(0, 60_000, len(y)).astype(str)).astype(object),
        "signal": np.where(rng.random(len(y)) < 0.7, y, 1 - y).astype(str).astype(object),
    }
    train, test = slice(0, 80_000), slice(80_000, None)
    of = lambda names, part: {name: rows[name][part] for name in names}  # noqa: E731
    both = cd.NaiveBayes("categorical").fit(of(["name", "signal"], train), y[train])
    alone = cd.NaiveBayes("categorical").fit(of(["signal"], train), y[train])
    got, best = both.score(of(["name", "signal"], test), y[test]), alone.score(of(["signal"], test), y[test])
    assert got >= best - 0.002
    assert got >= max(y[test].mean(), 1 - y[test].mean())  # always the commoner class
    laplace = cd.NaiveBayes(Categorical(prior=Dirichlet(1.0))).fit(of(["name", "signal"], train), y[train])
    p = [model.predict_log_proba(of(["name", "signal"], test)) for model in (both, laplace)]
    losses = [-one[np.arange(len(one)), y[test]].mean() for one in p]
    assert losses[0] < losses[1]


def test_evidence_is_the_average_over_concentrations():
    """Two levels: the odds at a concentration are a ratio of beta integrals; the prior mass is as the module says."""
    counts = np.array([[3.0, 5.0], [6.0, 1.0]])
    rows, q = 17.0, np.array([10.0, 7.0]) / 17.0

    def odds(s):
        beta = stats.beta(s * q[0], s * q[1]).pdf
        classes = [integrate.quad(lambda p, n=n: beta(p) * p ** n[0] * (1 - p) ** n[1], 0, 1)[0] for n in counts]
        return np.prod(classes) / np.prod(q ** counts.sum(axis=0))

    s = rows * 4.0 * np.exp(-np.arange(20.0))
    used = s > 0.05  # the others have next to no mass, and integrals that are hard to take
    mass = (s / (1 + s)) / (s / (1 + s)).sum()
    want = 0.5 + 0.5 * sum(m * odds(one) for m, one in zip(mass[used], s[used], strict=True))
    assert log_odds(LevelTally(counts, np.array([0, 2])), 1.0).item() == pytest.approx(np.log(want), abs=0.01)


def test_rare_levels_have_the_usual_share():
    """Names of a few rows each, beside a class that has the common one more often."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 3000)
    x = np.where(rng.random(3000) < 0.5, 0, rng.integers(1, 600, 3000))
    tally = counted(x, y)
    p = np.exp(pooled_log_prob(tally, 1.0)[0])
    assert p.sum(axis=1) == pytest.approx(1.0)
    far = np.abs(np.log(p[0] / p[1]))[1:]
    laplace = Categorical().estimate(tally, Dirichlet(1.0)).parameters()["probability"]
    assert far.max() < 0.2
    assert np.abs(np.log(laplace[0] / laplace[1]))[1:].max() > 1.5
    unseen = np.exp(Categorical().estimate(tally).unseen[0])
    assert unseen == pytest.approx(1.0 / (3000 + tally.counts.shape[1]), rel=0.1)  # one imaginary row of all


def test_where_classes_differ_the_counts_decide():
    counts = np.array([[900.0, 100.0], [100.0, 900.0]])
    p = np.exp(pooled_log_prob(LevelTally(counts, np.array([0, 2])), 1.0)[0])
    assert p == pytest.approx(counts / 1000, abs=5e-3)


def test_columns_and_equal_cells_do_not_matter_to_each_other():
    """Many levels are counted by their kinds: the same as of each column alone, level by level."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 9000)
    one, two = counted(rng.integers(0, 4000, 9000), y, 3), counted((y + rng.integers(0, 2, 9000)) % 3, y, 3)
    both = LevelTally(np.hstack([one.counts, two.counts]), np.r_[one.offsets, one.offsets[-1] + two.offsets[1:]])
    np.testing.assert_allclose(log_odds(both, 0.5), [log_odds(one, 0.5)[0], log_odds(two, 0.5)[0]], rtol=1e-9)
    np.testing.assert_allclose(
        pooled_log_prob(both, 0.5)[0], np.hstack([pooled_log_prob(t, 0.5)[0] for t in (one, two)]), rtol=1e-9
    )
    few = np.array([[3.0, 1.0, 0.0], [0.0, 2.5, 0.5]])  # copies of a few levels, and weights that are no whole numbers
    many = LevelTally(np.tile(few, 2000), np.array([0, 6000]))
    by_hand = log_odds(LevelTally(few, np.array([0, 3])), 1.0)
    assert log_odds(many, 1.0).shape == by_hand.shape
    assert np.isfinite(log_odds(many, 1.0)).all()


def test_the_prior_is_refused_where_it_means_nothing():
    with pytest.raises(cd.errors.InputError) as caught:
        PooledDirichlet(0.0)
    assert caught.value.value == 0.0
