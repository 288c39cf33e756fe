"""The how-to page on own event models: its code runs, and the model it makes is right."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

from candide.errors import InputError
from candide.events import ESTIMATES, resolve_event
from candide.priors import Gamma
from candide.tally import Sums

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-event-model.md"


@pytest.fixture(scope="module")
def page():
    names: dict = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)
    return names


def test_the_page_separates_the_classes(page):
    odds = page["log_prob"] @ [1.0, -1.0]
    assert odds[0] > 0 > odds[1]
    assert page["new"].shape == (2, 1)


def test_the_tally_is_of_the_transformed_values(page):
    x, y = page["X"][:, 0], page["y"]
    expected = [np.nansum(x[y == c] ** 1.5) for c in range(2)]
    np.testing.assert_allclose(page["tally"].total[:, 0], expected)
    assert page["tally"].n[:, 0].tolist() == [3.0, 2.0]


def test_densities_equal_scipys(page):
    event, x = page["event"], np.array([[0.1], [1.0], [7.0]])
    fit = event.estimate(page["tally"], how="mle")
    rate = fit.parameters()["rate"]
    expected = stats.weibull_min.logpdf(x, event.k, scale=rate[:, 0] ** (-1 / event.k))
    np.testing.assert_allclose(fit.log_prob(x), expected, rtol=1e-12)
    for how in ESTIMATES:
        mass = integrate.quad(
            lambda v, how=how: np.exp(event.estimate(page["tally"], how=how).log_prob(np.array([[v]]))[0, 0]), 0, np.inf
        )
        assert mass[0] == pytest.approx(1.0, abs=1e-7)


def test_the_predictive_is_the_average_over_the_posterior(page):
    event, x, new = page["event"], page["X"][:3, 0], 1.7

    def weight(rate, *more):
        return np.prod(stats.weibull_min.pdf([*x, *more], 1.5, scale=rate ** (-1 / 1.5))) * stats.gamma.pdf(rate, 1)

    expected = integrate.quad(weight, 0, 40, (new,), epsrel=1e-10)[0] / integrate.quad(weight, 0, 40, epsrel=1e-10)[0]
    found = event.estimate(page["tally"], Gamma(1, 1)).log_prob(np.array([[new]]))[0, 0]
    assert np.exp(found) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("how", ESTIMATES)
def test_fitting_undoes_sampling(page, how):
    fit, event = page["event"].estimate(page["tally"], how=how), page["event"]
    y = np.repeat([0, 1], 20_000)
    X = fit.sample(y, np.random.default_rng(1))
    median = [np.median(X[y == c]) for c in range(2)]
    for c in range(2):
        below = integrate.quad(lambda v, c=c: np.exp(fit.log_prob(np.array([[v]]))[0, c]), 0, median[c])[0]
        assert below == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(20_000))
    if how == "mle":
        again = event.estimate(Sums.from_rows(X, y, n_classes=2, spec=event.spec(1)), how="mle")
        np.testing.assert_allclose(again.parameters()["rate"], fit.parameters()["rate"], rtol=0.04)


def test_it_is_an_event_model_like_any_other(page):
    assert resolve_event(page["Weibull"]).name == "weibull"
    encoding = page["event"].spec(1)  # the shape is in it, the prior is not
    assert encoding == page["Weibull"](k=1.5, prior=Gamma(9, 9)).spec(1) != page["Weibull"](k=2.0).spec(1)
    with pytest.raises(InputError, match="weibull event model has no marginal likelihood"):
        page["event"].evidence(page["tally"])
