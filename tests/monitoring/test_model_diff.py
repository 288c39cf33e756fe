"""What moved between two models, against divergences computed elsewhere."""

import numpy as np
import pytest
from scipy import integrate, special, stats

import candide as cd
from candide.errors import InputError
from candide.events import Categorical, Exponential, Gaussian, LogNormal, Poisson
from candide.monitoring.model_diff import compare_models
from candide.priors import Dirichlet


def fit(event, x, y, **settings):
    return cd.NaiveBayes(event, **settings).fit({"x": x}, y).fitted_


def both_ways(p, q, low, high):
    """KL(p, q) + KL(q, p) by quadrature."""

    def integrand(t):
        return (np.exp(p(t)) - np.exp(q(t))) * (p(t) - q(t))

    return integrate.quad(integrand, low, high, limit=500)[0]


def _lognormal(normal):
    return stats.lognorm(normal.variance[0, 0] ** 0.5, 0, np.exp(normal.loc[0, 0])).logpdf


@pytest.fixture
def two():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 100)
    return rng.gamma(4.0, 1.0, 200), rng.gamma(6.0, 1.5, 200), y


@pytest.mark.parametrize(
    ("event", "law", "low", "high"),
    [
        (Gaussian(), lambda d: stats.norm(d.loc[0, 0], np.sqrt(d.variance[0, 0])).logpdf, -30, 60),
        (LogNormal(), lambda d: _lognormal(d.base), 1e-9, 2e3),
        (Exponential(), lambda d: stats.expon(0, 1 / d.rate[0, 0]).logpdf, 0, 1e3),
    ],
    ids=["gaussian", "lognormal", "exponential"],
)  # fmt: skip
def test_moves_of_numbers_are_divergences(two, event, law, low, high):
    before, after = fit(event, two[0], two[2]), fit(event, two[1], two[2])
    laws = [law(event.estimate(f.counts.tallies[0], None, "mean")) for f in (before, after)]
    [move] = [m for m in compare_models(before, after).columns if m.label == "a"]
    assert move.divergence == pytest.approx(both_ways(*laws, low, high), rel=1e-6)
    assert move.surprise == pytest.approx(move.divergence * 25, rel=1e-12)  # 100 * 100 / (2 * 200)


def test_moves_of_counts_are_divergences():
    y = np.repeat(["a", "b"], 100)
    rng = np.random.default_rng(1)
    before, after = (fit(Poisson(), rng.poisson(rate, 200), y) for rate in (3.0, 5.0))
    rates = [Poisson().estimate(f.counts.tallies[0], None, "mean").rate[0, 0] for f in (before, after)]
    p, q = (stats.poisson(rate).pmf(np.arange(200)) for rate in rates)
    [move] = [m for m in compare_models(before, after).columns if m.label == "a"]
    assert move.divergence == pytest.approx(special.rel_entr(p, q).sum() + special.rel_entr(q, p).sum(), rel=1e-9)


def test_moves_of_levels_are_divergences_and_add_up():
    y = ["a"] * 10 + ["b"] * 10
    laplace = Categorical(prior="dirichlet")
    before = fit(laplace, list("xxxxxyyyzz") + list("xyzxyzxyzx"), y)
    after = fit(laplace, list("xyyyyyyyww") + list("xyzxyzxyzx"), y)
    found = compare_models(before, after)
    p, q = (np.array(c) + 1.0 for c in ([0, 5, 3, 2], [2, 1, 7, 0]))  # w, x, y, z; Laplace's rule
    p, q = p / p.sum(), q / q.sum()
    expected = special.rel_entr(p, q).sum() + special.rel_entr(q, p).sum()
    assert (found.columns[0].column, found.columns[0].label) == ("x", "a")
    assert found.columns[0].divergence == pytest.approx(expected)
    mine = [m for m in found.levels if m.label == "a"]
    assert sum(m.divergence for m in mine) == pytest.approx(expected)
    assert {m.level: m.status for m in mine} == {"w": "new", "x": "", "y": "", "z": ""}
    assert mine == sorted(mine, key=lambda m: -m.surprise)
    w = next(m for m in mine if m.level == "w")
    assert (w.before, w.after) == pytest.approx((1 / 14, 3 / 14))


@pytest.mark.parametrize("event", ["bernoulli", "multinomial", "complement"])
def test_other_families_move_where_the_rows_moved(event):
    rng = np.random.default_rng(2)
    X, y = rng.poisson(1.0, (200, 3)).astype(float), np.repeat(["a", "b"], 100)
    Z = X.copy()
    Z[:100, 1] += 3
    moved = compare_models(*(cd.NaiveBayes(event).fit(x, y).fitted_ for x in (X, Z))).columns
    assert (moved[0].column, moved[0].label) == (1, "a")
    assert all(m.label == "a" for m in moved)


def test_nothing_moves_between_a_model_and_itself(two):
    model = fit("gaussian", two[0], two[2])
    found = compare_models(model, model)
    assert (found.classes, found.columns, found.levels) == ([], [], [])


def test_few_rows_surprise_less_than_many(two):
    before, after, y = two
    few = slice(80, 120)
    small = compare_models(fit("gaussian", before[few], y[few]), fit("gaussian", after[few], y[few])).columns[0]
    large = compare_models(fit("gaussian", before, y), fit("gaussian", after, y)).columns[0]
    assert large.surprise > 3 * small.surprise


def test_classes_that_come_and_go():
    x = np.arange(30.0)
    before = fit("gaussian", x, ["a"] * 10 + ["b"] * 20)
    after = fit("gaussian", x, ["c"] * 10 + ["b"] * 20)
    found = {m.label: (m.status, m.before, m.after) for m in compare_models(before, after).classes}
    assert found["a"] == ("gone", pytest.approx(1 / 3), 0)
    assert found["c"] == ("new", 0, pytest.approx(1 / 3))


def test_a_prior_without_smoothing_gives_infinite_moves_not_nan():
    y = ["a", "a", "b", "b"]
    before = fit("categorical", ["x", "x", "x", "y"], y, param_priors=Dirichlet(0.0))
    after = fit("categorical", ["x", "y", "x", "y"], y, param_priors=Dirichlet(0.0))
    assert not any(np.isnan(m.divergence) for m in compare_models(before, after).columns)


def documents(rng, shares, n):
    """Documents of twenty words out of as many as there are shares."""
    words = np.array([f"word{i:02}" for i in range(len(shares))])
    return [" ".join(rng.choice(words, 20, p=shares)) for _ in range(n)]


@pytest.mark.parametrize("settings", [{}, {"bits": 20}, {"model": "polya"}, {"model": "complement"}])
def test_moves_of_words_are_divergences(settings):
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(30))
    texts = [documents(rng, p, 50) + documents(rng, shares[0], 50) for p in shares]
    texts[1][0] += " unheard"
    y = np.repeat(["a", "b"], 50)
    before, after = (cd.TextNB(**settings, weights=None).fit(t, y).fitted_ for t in texts)
    found = compare_models(before, after)
    vocabulary = sorted({w for text in texts for t in text for w in t.split()})
    counts = [np.array([sum(t.split().count(w) for t in text[:50]) for w in vocabulary]) for text in texts]
    p, q = ((n + 1.0) / (n + 1.0).sum() for n in counts)
    [move] = [m for m in found.columns if m.label == "a"]
    assert move.divergence == pytest.approx(special.rel_entr(p, q).sum() + special.rel_entr(q, p).sum(), rel=1e-9)
    n, m = (c.sum() for c in counts)
    assert move.surprise == pytest.approx(move.divergence * n * m / (2 * (n + m)), rel=1e-9)
    assert move.values == {"words per document": (20.0, pytest.approx(20.02))}
    moves = [m for m in found.levels if m.label == "a"]
    assert sum(m.divergence for m in moves) == pytest.approx(move.divergence, rel=1e-9)
    assert [m.surprise for m in moves] == sorted((m.surprise for m in moves), reverse=True)
    if not settings.get("bits"):
        assert {m.level: m.after for m in moves} == {
            w: pytest.approx(x) for w, x, same in zip(vocabulary, q, p == q, strict=True) if not same
        }
        told = [{w for t in text for w in t.split()} for text in texts]
        assert {m.level for m in moves if m.status == "new"} == {m.level for m in moves} & (told[1] - told[0])
        assert {m.level for m in moves if m.status == "gone"} == {m.level for m in moves} & (told[0] - told[1])


def test_moves_of_present_words_are_divergences_of_their_switches():
    y = np.repeat(["a", "b"], 30)
    texts = [["tea time"] * 10 + ["tea"] * 20 + ["milk"] * 30, ["tea"] * 30 + ["milk"] * 30]
    before, after = (cd.TextNB("bernoulli").fit(t, y).fitted_ for t in texts)
    [move] = [m for m in compare_models(before, after).levels if m.label == "a"]
    p, q = 11 / 32, 1 / 32
    want = (p - q) * np.log(p / q) + (q - p) * np.log((1 - p) / (1 - q))
    assert (move.level, move.status) == ("time", "gone")
    assert (move.before, move.after, move.divergence) == pytest.approx((p, q, want))
    assert move.surprise == pytest.approx(want * 30 * 30 / 120)


def test_a_table_with_text_leaves_nothing_out():
    y, rng = np.repeat(["a", "b"], 30), np.random.default_rng(0)
    both = [{"x": rng.normal(size=60), "t": documents(rng, rng.dirichlet(np.ones(9)), 60)} for _ in range(2)]
    found = compare_models(*(cd.NaiveBayes({"t": cd.events.Text()}).fit(X, y).fitted_ for X in both))
    assert {m.column for m in found.columns} == {"x", "t"}
    assert not found.skipped_columns


def test_models_of_other_columns_cannot_be_compared(two):
    other = cd.NaiveBayes("gaussian").fit({"z": two[0]}, two[2]).fitted_
    with pytest.raises(InputError, match="different columns"):
        compare_models(fit("gaussian", two[0], two[2]), other)


def in_groups(rng, shift=0.0, stretch=1.0, n=80):
    X = rng.multivariate_normal([shift, 0.0, 5.0], stretch * np.array([[1, 0.6, 0], [0.6, 2, 0.1], [0, 0.1, 1]]), n)
    columns = dict(zip("abc", X.T, strict=True))
    events = {("a", "b"): Gaussian(covariance="full")}
    return cd.NaiveBayes(events).fit(columns, np.repeat(["p", "q"], n // 2)).fitted_


def test_columns_modelled_together_move_as_one():
    rng = np.random.default_rng(4)
    before, after = in_groups(rng), in_groups(rng, shift=3.0, stretch=1.5)
    found = compare_models(before, after)
    assert not found.skipped_columns
    [move] = [m for m in found.columns if m.column == ("a", "b") and m.label == "q"]
    laws = [f.plan.parts[0].event.estimate(f.counts.tallies[0], None, "map") for f in (before, after)]
    assert before.plan.parts[0].columns == ("a", "b")
    p, q = (stats.multivariate_normal(d.loc[1], d.covariance[1]) for d in laws)
    draws = [law.rvs(400_000, random_state=5) for law in (p, q)]
    want = [(one.logpdf(x) - other.logpdf(x)).mean() for one, other, x in ((p, q, draws[0]), (q, p, draws[1]))]
    assert move.divergence == pytest.approx(sum(want), rel=0.01)  # by drawing
    assert move.surprise == pytest.approx(move.divergence * 10, rel=1e-12)  # 40 * 40 / (2 * 80)
    assert move.values["mean a"] == pytest.approx((laws[0].loc[1, 0], laws[1].loc[1, 0]))
    assert {name.split()[0] for name in move.values} == {"mean", "sd", "correlation"}
    assert compare_models(before, before).columns == []


def test_a_group_without_an_estimate_is_left_out():
    rng = np.random.default_rng(6)
    event = Gaussian(covariance="full", prior=cd.priors.AddedVariance(0.0))
    model = cd.NaiveBayes({("a", "b"): event}, estimate="mle")
    both = [model.fit({"a": a, "b": b}, np.repeat(["p", "q"], 10)).fitted_ for a, b in rng.normal(size=(2, 2, 20))]
    assert compare_models(*both).skipped_columns == ["a", "b"]


def test_columns_that_share_a_variance_move_as_one():
    rng = np.random.default_rng(8)
    event = Gaussian(covariance="spherical")
    fits = [
        cd.NaiveBayes({("a", "b"): event}).fit({"a": a, "b": b + shift}, np.repeat(["p", "q"], 30)).fitted_
        for shift, (a, b) in zip((0.0, 2.0), rng.normal(size=(2, 2, 60)), strict=True)
    ]
    found = compare_models(*fits)
    assert {m.column for m in found.columns} == {("a", "b")}
    laws = [event.estimate(f.counts.tallies[0], None, "map") for f in fits]
    want = laws[0].divergence(laws[1]).sum(axis=1)
    assert {m.label: m.divergence for m in found.columns} == pytest.approx(dict(zip("pq", want, strict=True)))
    assert "mean b" in found.columns[0].values


def test_numbers_in_bins_are_compared_in_few_cells_and_chance_is_not_drift():
    rng = np.random.default_rng(0)
    day = np.datetime64("2024-01-01") + np.sort(rng.integers(0, 300, 1000)).astype("m8[D]")
    y = rng.integers(0, 2, 1000)
    first = cd.BayesClassifier().fit({"x": rng.normal(size=1000), "day": rng.permutation(day)}, y)
    like = lambda x, days: cd.BayesClassifier(like=first).fit({"x": x, "day": days}, y)  # noqa: E731
    same = compare_models(first.fitted_, like(rng.normal(size=1000), rng.permutation(day)).fitted_)
    assert max(one.surprise for one in same.columns) < 12  # nine degrees of freedom
    late = compare_models(first.fitted_, like(rng.normal(size=1000), rng.permutation(day)[y * 0] + 250).fitted_)
    assert late.columns[0].column == "day"
    assert late.columns[0].surprise > 100
    assert {one.level[:4] for one in late.levels if one.column == "day"} <= {"<= 2", "2024", "> 20"}
    assert len({one.level for one in late.levels if one.column == "day"}) <= 10
