"""Numbers in bins: any shape, found from the counts, and found anew when counts are added."""

import numpy as np
import pandas as pd
import pytest

import candide as cd
from candide.errors import InputError
from candide.events import Binned
from candide.priors import Beta, Dirichlet
from candide.testing import check_event
from candide.validation.cross_validation import cross_validate


def humps(n, seed=0):
    """A column whose middle is one class, and both ends the other."""
    x = np.random.default_rng(seed).normal(size=n)
    return {"x": x, "noise": np.random.default_rng(seed + 1).normal(size=n)}, np.where(np.abs(x) < 0.7, "in", "out")


@pytest.mark.parametrize("prior", [None, Dirichlet(0.5)])
def test_the_published_laws(prior):
    check_event(Binned(prior), prior=Dirichlet(0.7))


def test_bins_are_cut_where_the_classes_change():
    X, y = humps(4000)
    model = cd.NaiveBayes({"x": "binned", "noise": "binned"}).fit(X, y)
    asked, truth = humps(1000, seed=2)
    assert (model.predict(asked) == truth).mean() > 0.98
    [law] = model.fitted_.model.distributions
    rows, _ = law.describe(0, levels=model.fitted_.plan.parts[0].encodings[0].level_names())
    edges = [float(name.split()[-1]) for name in (rows[0], rows[-1])]
    assert edges == pytest.approx([-0.7, 0.7], abs=0.02)
    assert law.describe(1, levels=model.fitted_.plan.parts[0].encodings[1].level_names())[0] == [
        "any"
    ]  # it tells nothing


def test_a_column_that_tells_nothing_has_no_information():
    X, y = humps(300)
    model = cd.NaiveBayes({"x": "binned", "noise": "binned"}).fit(X, y)
    [part], [tally] = model.fitted_.plan.parts, model.counts_.tallies
    assert part.event.information(tally)[0] > 0.3
    assert part.event.information(tally)[1] == 0.0  # of its 255 cells it would be large, by chance


def test_a_sum_finds_its_bins_anew():
    X, y = humps(400)
    some = {name: column[:3] for name, column in X.items()}
    whole = cd.NaiveBayes({"x": "binned", "noise": "binned"}).fit(X, y)
    few = cd.NaiveBayes({"x": "binned", "noise": "binned"}).fit(X, y).partial_fit(some, y[:3]) - whole
    assert not few.fitted_.model.distributions[0].bins.any()  # three rows pay for no cut
    again = few + (whole - few)
    np.testing.assert_allclose(again.predict_proba(X), whole.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("prior", [Beta(), Dirichlet((1.0, 2.0))], ids=["of two", "of several values"])
def test_a_prior_that_does_not_fit_is_refused(prior):
    with pytest.raises(InputError):
        cd.NaiveBayes({"x": Binned(prior)}).fit({"x": [1.0, 2.0, 3.0]}, ["a", "b", "b"])


def test_every_door_draws_the_same_grid(tmp_path):
    X, y = humps(500)
    frame = pd.DataFrame({**X, "y": y})
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_parquet(tmp_path / "x.parquet")
    want = cd.NaiveBayes({"x": "binned"}).fit(X, y).predict_proba(X)
    for door in (frame, tmp_path / "x.csv", tmp_path / "x.parquet"):
        found = cd.fit(door, "y", events={"x": "binned"}, model="naive")
        np.testing.assert_allclose(found.predict_proba(X), want, atol=1e-9)
    folds = cross_validate(str(tmp_path / "x.csv"), "y", events={"x": "binned"}, model="naive", folds=3)
    assert folds.total.accuracy > 0.95
