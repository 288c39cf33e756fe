"""Priors are values: named, compared, checked on construction."""

import numpy as np
import pytest

from candide.errors import InputError, InputTypeError
from candide.events import EVENTS, Bernoulli, EventModel, Gaussian, event_of
from candide.priors import PRIORS, AddedVariance, Beta, Dirichlet, Gamma, Jeffreys, NormalInverseGamma, prior_of
from candide.tally import Levels


def test_every_name_makes_its_prior():
    assert {name: prior_of(name) for name in PRIORS} == {name: prior() for name, prior in PRIORS.items()}
    assert prior_of(None) is None
    with pytest.raises(InputError, match="unknown prior 'dirichlt'; did you mean 'dirichlet'"):
        prior_of("dirichlt")


def test_priors_compare_and_hash_by_value():
    assert Dirichlet(np.array([1.0, 2.0])) == Dirichlet((1, 2)) == Dirichlet([1, 2])
    assert len({Beta(1, 2), Beta(1.0, 2.0), Beta(2, 1)}) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Beta(-1, 1), "Beta: a must be >= 0"),
        (lambda: Beta(1, float("nan")), "Beta: b must be >= 0 and finite, got nan"),
        (lambda: Dirichlet([1, 2, -3]), "Dirichlet: alpha must be >= 0 and finite, got -3"),
        (lambda: Dirichlet(np.inf), "Dirichlet: alpha"),
        (lambda: Dirichlet([[1.0]]), "flat sequence"),
        (lambda: Gamma(shape=-1), "Gamma: shape"),
        (lambda: NormalInverseGamma(kappa=-1), "NormalInverseGamma: kappa must be >= 0"),
        (lambda: NormalInverseGamma(a=0), "NormalInverseGamma: a must be > 0"),
        (lambda: NormalInverseGamma(a=1.0), "a must be > 1 where b is None"),
        (lambda: NormalInverseGamma(mean=np.nan), "NormalInverseGamma: mean must be finite"),
        (lambda: AddedVariance(-1e-9), "AddedVariance: fraction"),
    ],
)
def test_parameters_are_checked_on_construction(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_what_is_no_number_is_a_type_error_too():
    with pytest.raises(InputTypeError, match="Beta: a must be a number, got 'x'"):
        Beta("x")


def test_events_are_found_by_name_class_and_instance():
    for name, event in EVENTS.items():
        assert event.name == name
        assert event_of(name) == event_of(event) == event()
    assert event_of(Gaussian(covariance="tied-diagonal")).covariance == "tied-diagonal"
    for wrong in ("gausian", 3):
        with pytest.raises(InputError, match="unknown event"):
            event_of(wrong)


def test_an_event_models_own_prior_may_be_named_and_is_overruled_by_the_call():
    tally = Levels(np.array([[1.0, 2.0]]), np.array([0, 2], np.intp))  # one no, two yes
    event = Bernoulli(prior="jeffreys")
    p = [event.estimate(tally, prior).parameters()["probability"].item() for prior in (None, Jeffreys(), Beta(2, 3))]
    np.testing.assert_allclose(p, [2.5 / 4, 2.5 / 4, 4 / 8], rtol=1e-15)


def test_an_own_event_model_is_told_what_it_lacks():
    class Half(EventModel):
        kind = "sum"

    with pytest.raises(InputError, match="'sum'; did you mean 'sums'"):
        Half().spec(1)
    with pytest.raises(NotImplementedError, match="Half: give parameters"):
        Half().estimate(None)
    with pytest.raises(InputError, match="Half event model has no marginal likelihood"):
        Half().evidence(None)
