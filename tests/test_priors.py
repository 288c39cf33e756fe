"""Priors are values: named, compared, checked on construction."""

import numpy as np
import pytest

from candide.errors import InputError, InputTypeError, UnknownNameError
from candide.events import EVENTS, Bernoulli, EventModel, Gaussian, resolve_event
from candide.priors import PRIORS, AddedVariance, Beta, Dirichlet, Gamma, Jeffreys, NormalInverseGamma, resolve_prior
from candide.tally import LevelTally


def test_every_name_makes_its_prior():
    assert {name: resolve_prior(name) for name in PRIORS} == {name: prior() for name, prior in PRIORS.items()}
    assert resolve_prior(None) is None
    with pytest.raises(UnknownNameError, match="unknown prior 'dirichlt'; did you mean 'dirichlet'"):
        resolve_prior("dirichlt")


def test_priors_compare_and_hash_by_value():
    assert Dirichlet(np.array([1.0, 2.0])) == Dirichlet((1, 2)) == Dirichlet([1, 2])
    assert len({Beta(1, 2), Beta(1.0, 2.0), Beta(2, 1)}) == 2


@pytest.mark.parametrize(
    ("make", "parameter", "value"),
    [
        (lambda: Beta(-1, 1), "Beta: a", -1),
        (lambda: Beta(1, np.inf), "Beta: b", np.inf),
        (lambda: Dirichlet([1, 2, -3]), "Dirichlet: alpha", -3),
        (lambda: Dirichlet(np.inf), "Dirichlet: alpha", np.inf),
        (lambda: Dirichlet([[1.0]]), "Dirichlet: alpha", [[1.0]]),
        (lambda: Gamma(shape=-1), "Gamma: shape", -1),
        (lambda: NormalInverseGamma(kappa=-1), "NormalInverseGamma: kappa", -1),
        (lambda: NormalInverseGamma(a=0), "NormalInverseGamma: a", 0),
        (lambda: NormalInverseGamma(a=1.0), "NormalInverseGamma: a", 1),
        (lambda: NormalInverseGamma(mean=-np.inf), "NormalInverseGamma: mean", -np.inf),
        (lambda: AddedVariance(-1e-9), "AddedVariance: fraction", -1e-9),
    ],
)
def test_parameters_are_checked_on_construction(make, parameter, value):
    with pytest.raises(InputError) as error:
        make()
    assert error.value.value == value
    assert error.value.remedy
    assert error.value.problem.startswith(f"{parameter} ")


def test_what_is_not_a_number_is_refused():
    with pytest.raises(InputTypeError) as error:
        Beta("x")
    assert str(error.value) == "Beta: a is 'x'; pass a number"
    with pytest.raises(InputError) as error:
        Beta(np.nan)
    assert np.isnan(error.value.value)


def test_events_are_found_by_name_class_and_instance():
    for name, event in EVENTS.items():
        assert event.name == name
        assert resolve_event(name) == resolve_event(event) == event()
    assert resolve_event(Gaussian(covariance="tied-diagonal")).covariance == "tied-diagonal"
    for wrong in ("gausian", 3):
        with pytest.raises(UnknownNameError) as error:
            resolve_event(wrong)
        assert error.value.value == wrong


def test_an_event_models_own_prior_may_be_named_and_is_overruled_by_the_call():
    tally = LevelTally(np.array([[1.0, 2.0]]), np.array([0, 2], np.intp))  # one no, two yes
    event = Bernoulli(prior="jeffreys")
    p = [event.estimate(tally, prior).parameters()["probability"].item() for prior in (None, Jeffreys(), Beta(2, 3))]
    np.testing.assert_allclose(p, [2.5 / 4, 2.5 / 4, 4 / 8], rtol=1e-15)


def test_an_incomplete_event_model_is_an_error():
    class Half(EventModel):
        kind = "sum"

    with pytest.raises(UnknownNameError) as error:
        Half().spec(1)
    assert error.value.value == "sum"
    with pytest.raises(NotImplementedError, match="Half: give parameters"):
        Half().estimate(None)
    with pytest.raises(InputError, match="Half"):
        Half().evidence(None)
