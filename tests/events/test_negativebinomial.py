"""NegativeBinomial: over-dispersed counts by moments, through every door that a family has."""

import json

import numpy as np
import pytest
from scipy import stats
from tests.cli.typed import output as run

import candide as cd
from candide import plot
from candide.errors import InputError
from candide.events import NegativeBinomial, Poisson
from candide.priors import Beta, Gamma, Uniform
from candide.tally import Moments, Sums

MEAN, DISPERSION = np.array([4.0, 15.0]), np.array([0.5, 2.0])


def drawn(n, seed=0):
    """Counts of two classes, n rows each."""
    shape = 1 / DISPERSION
    rng, y = np.random.default_rng(seed), np.repeat([0, 1], n)
    return rng.negative_binomial(shape[y], shape[y] / (shape[y] + MEAN[y])).astype(float)[:, None], y


def count(X, y, n_classes=2, weight=None):
    return Moments.from_rows(X, y, weight, n_classes=n_classes, spec=NegativeBinomial().spec(X.shape[1]))


def oracle(mean, dispersion):
    """As SciPy has it."""
    return stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))


def test_scores_are_scipys():
    X, y = drawn(200)
    fit = NegativeBinomial().estimate(count(X, y), how="mle")
    for c in (0, 1):
        x = X[y == c, 0]
        dispersion = (x.var(ddof=1) - x.mean()) / x.mean() ** 2
        np.testing.assert_allclose(fit.log_prob(X)[:, c], oracle(x.mean(), dispersion).logpmf(X[:, 0]), rtol=1e-9)


def test_classes_share_dispersion_by_their_rows():
    X, y = drawn(12, seed=3)
    tally = count(X, y)
    mean, rows = tally.mean[:, 0], tally.n[:, 0] - 1
    raw = (tally.m2[:, 0] / rows - mean) / mean**2
    common = (raw * rows * mean**2).sum() / (rows * mean**2).sum()
    for sharing in (0.0, 10.0, 1e12):
        fit = NegativeBinomial(sharing=sharing).estimate(tally, Gamma(rate=1e-9), "mean")
        expected = (rows * raw + sharing * common) / (rows + sharing)
        np.testing.assert_allclose(1 / fit.shape[:, 0], expected, rtol=1e-7)
        np.testing.assert_allclose(fit.mean()[:, 0], mean, rtol=1e-7)


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive"])
def test_fitting_undoes_sampling(how):
    X, y = drawn(40_000, seed=1)
    fit = NegativeBinomial().estimate(count(X, y), how=how)
    np.testing.assert_allclose(fit.mean()[:, 0], MEAN, rtol=0.05)
    np.testing.assert_allclose(1 / fit.shape[:, 0], DISPERSION, rtol=0.08)
    again = NegativeBinomial().estimate(count(fit.sample(y, np.random.default_rng(2)), y), how=how)
    np.testing.assert_allclose(again.mean()[:, 0], MEAN, rtol=0.05)


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive"])
def test_without_dispersion_it_is_poisson(how):
    X = np.array([[2.0], [3.0], [2.0], [3.0], [6.0], [7.0], [7.0], [6.0]])
    y = np.repeat([0, 1], 4)
    fit, poisson = NegativeBinomial(), Poisson()
    sums = Sums.from_rows(X, y, n_classes=2, spec=poisson.spec(1))
    query = np.arange(20.0)[:, None]
    expected = poisson.estimate(sums, how=how).log_prob(query)
    np.testing.assert_allclose(fit.estimate(count(X, y), how=how).log_prob(query), expected, rtol=1e-6)


def test_the_predictive_has_the_variance_that_an_uncertain_mean_adds():
    X, y = drawn(5, seed=4)
    tally = count(X, y)
    plain, wide = (NegativeBinomial().estimate(tally, how=how) for how in ("mean", "predictive"))
    np.testing.assert_allclose(wide.mean(), plain.mean(), rtol=1e-12)
    variance = [fit.mean() + fit.mean() ** 2 / fit.shape for fit in (plain, wide)]
    uncertain = variance[0] / (tally.n + 1)
    np.testing.assert_allclose(variance[1], variance[0] + uncertain * (1 + 1 / plain.shape), rtol=1e-9)


@pytest.mark.parametrize("how", ["mle", "map", "mean", "predictive"])
def test_a_class_of_zeros_and_one_row_have_a_distribution(how):
    X, y = np.array([[0.0], [0.0], [0.0], [5.0]]), np.array([0, 0, 0, 1])
    fit = NegativeBinomial().estimate(count(X, y), how=how)
    assert np.isfinite(fit.log_prob(X[:1])[0, 0])
    assert np.exp(fit.log_prob(np.arange(3000.0)[:, None])).sum(axis=0) == pytest.approx([1, 1], abs=1e-3)


def test_unsupported_requests_are_errors():
    X, y = drawn(20)
    event, tally = NegativeBinomial(), count(X, y)
    with pytest.raises(InputError, match="no marginal likelihood"):
        event.evidence(tally)
    for bad in (-1.0, np.inf, np.nan):
        with pytest.raises(InputError) as error:
            NegativeBinomial(sharing=bad)
        assert error.value.remedy
    with pytest.raises(InputError):
        event.estimate(tally, Beta())
    with pytest.raises(InputError):
        event.estimate(count(X, y, n_classes=3), how="mle")
    with pytest.raises(InputError):
        event.estimate(count(X, y, n_classes=3), Uniform(), "mean")


def test_information_is_that_of_the_mixture():
    X, y = drawn(300, seed=5)
    tally = count(X, y)
    fit = NegativeBinomial().estimate(tally, how="mean")
    p = np.exp(fit.log_prob(np.arange(2_000.0)[:, None])) / 2
    expected = np.nansum(p * np.log(p / p.sum(axis=1, keepdims=True) * 2))
    assert NegativeBinomial().information(tally)[0] == pytest.approx(expected, rel=1e-6)
    assert NegativeBinomial().association_test(tally).name == "t"


def test_negative_counts_are_refused():
    with pytest.raises(InputError) as error:
        cd.NaiveBayes({"visits": "negativebinomial"}).fit({"visits": [1.0, -2.0, 3.0]}, ["a", "a", "b"])
    assert "-2" in str(error.value)


@pytest.fixture
def csv(tmp_path):
    X, y = drawn(150, seed=6)
    rows = [f"{v:.0f},{['new', 'regular'][c]}" for v, c in zip(X[:, 0], y, strict=True)]
    path = tmp_path / "visits.csv"
    path.write_text("visits,kind\n" + "\n".join([*rows, ",new"]) + "\n")
    return path


def test_through_the_command_line(csv, tmp_path):
    model, other = tmp_path / "m.candide", tmp_path / "p.candide"
    run("fit", "--model=naive", csv, "--target", "kind", "--event", "visits=negativebinomial", "-o", model)
    run(
        "fit",
        "--model=naive",
        csv,
        "--target",
        "kind",
        "--event",
        "visits=negativebinomial",
        "--estimate",
        "mean",
        "-o",
        other,
    )
    assert "negativebinomial" in run("show", model)
    scored = json.loads(run("evaluate", model, csv, "--json"))
    assert scored["metrics"]["accuracy"]["value"] > 0.6
    assert run("diff", model, other)
    assert run("explain", model, csv)
    run("predict", model, csv, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().count("\n") == 302
    run("plot", model, csv, "-o", tmp_path / "d.png")
    assert (tmp_path / "d.png").stat().st_size > 1000


def test_the_database_counts_what_arrays_count(csv):
    X, y = drawn(150, seed=6)
    event = {"visits": NegativeBinomial(sharing=4.0)}
    of_file = cd.fit(csv, target="kind", events=event, model="naive")
    of_arrays = cd.NaiveBayes(event).fit({"visits": X[:, 0]}, np.array(["new", "regular"])[y])
    ask = {"visits": [0, 3, 40]}
    np.testing.assert_allclose(of_file.predict_proba(ask), of_arrays.predict_proba(ask), rtol=1e-2)
    a, b = (model.counts_.tallies[0] for model in (of_file, of_arrays))
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-12)
    np.testing.assert_allclose(a.m2, b.m2, rtol=1e-10)


@pytest.mark.parametrize("detail", ["tally", "explain", "score"])
@pytest.mark.parametrize("how", ["mean", "predictive"])
def test_saved_loaded_drawn_sampled_and_scored(tmp_path, how, detail):
    X, y = drawn(100, seed=7)
    table = {"visits": X[:, 0], "other": X[::-1, 0] + 0.5}
    model = cd.NaiveBayes({"visits": NegativeBinomial(sharing=3.0)}, estimate=how).fit(table, y)
    model.save(tmp_path / "m.candide", detail=detail)
    loaded = cd.load(tmp_path / "m.candide")
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    ax = plot.densities(loaded, table, y, feature="visits")
    assert "p(x | class)" in ax.get_ylabel()
    ax.figure.clear()
    sampled = model.sample(50, random_state=0)
    assert sampled is not None
    if detail == "tally":
        score = loaded.feature_scores().for_column("visits")
        assert (score.test, score.evidence) == ("t", None)
        assert score.information > 0.05


def test_a_class_without_rows_has_no_event_by_map_however_the_rest_was_rounded():
    X, y = np.array([[2.0], [0.0], [5.0]]), np.zeros(3, int)
    tally = count(X, y)
    held = NegativeBinomial().held_out_contributions(tally, None, "map", X, y)
    for i in range(3):
        rest = np.arange(3) != i
        want = NegativeBinomial().estimate(count(X[rest], y[rest]), None, "map").contributions(X[[i]])
        np.testing.assert_allclose(held[[i]], want, rtol=1e-9)
