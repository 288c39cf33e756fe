"""Scores of discriminants: SciPy's densities, scikit-learn's linear discriminant, and rows left out one by one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t

from candide.encoding import Identity
from candide.tally import CoMoments, TallySpec
from candide.weighted.terms import discriminant_scores as discriminant
from candide.weighted.terms.discriminant_scores import (
    CovarianceCentre,
    estimate,
    held_out_contributions,
    quadratic_contribution,
)


def tallied(z, y, weight=None, k=3):
    return CoMoments.from_rows(
        z, y, weight, n_classes=k, spec=TallySpec.from_encoding("comoments", Identity(), z.shape[1])
    )


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [30, 25, 15])
    return rng.normal(size=(70, 4)) + y[:, None] * np.array([1.0, 0.0, -0.5, 0.2]), y


def test_the_linear_discriminant_is_that_of_scikit_learn(rows):
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 30_000)
    z = rng.normal(size=(30_000, 4)) + y[:, None] * np.array([1.0, 0.0, -0.5, 0.2])
    scores = estimate(tallied(z, y), quadratic=False, towards_diagonal=0.1)
    peer = LinearDiscriminantAnalysis(priors=[1 / 3] * 3).fit(z, y)
    mine = scores.log_prob(z[:100]) * np.sqrt(4)  # terms have the scale of one column
    theirs = peer.decision_function(z[:100])
    np.testing.assert_allclose(mine - mine[:, :1], theirs - theirs[:, :1], atol=0.01)


def test_the_quadratic_discriminant_is_a_t_density(rows):
    z, y = rows
    tally = tallied(z, y)
    scores = estimate(tally, quadratic=True, towards_diagonal=0.1)
    p, spreads = 4, scores.class_covariances
    for c in range(3):
        df = spreads.df[c] - p + 1
        scale = np.linalg.inv(spreads.root[c].T @ spreads.root[c]) * (scores.rows[c] + 1) / (scores.rows[c] * df)
        want = multivariate_t(scores.means[c], scale, df).logpdf(z)
        far = ((z - scores.means[c]) @ spreads.root[c].T) ** 2
        got = quadratic_contribution(far.sum(axis=1), scores.rows[c], spreads.log_det[c], spreads.df[c], p) * np.sqrt(p)
        np.testing.assert_allclose(got - got[0], want - want[0], atol=1e-9)


def test_an_outlier_excludes_no_class_with_more_certainty_than_its_rows_support(rows):
    z, y = rows
    scores = estimate(tallied(z * 1e-3, y), quadratic=True, towards_diagonal=0.1)
    for far in (np.full((1, 4), 1.0), np.array([[50.0, -50.0, 0.0, 0.0]])):
        terms = scores.contributions(far)[0]
        assert np.isfinite(terms).all()
        best = terms.max(axis=0)
        any_class = best + np.log(scores.rows[terms.argmax(axis=0)] / scores.rows.sum())  # at least
        assert (terms > any_class - np.log(scores.rows + 1)[:, None] - 1e-9).all()
    near = scores.contributions(z * 1e-3)[np.arange(len(y)), y].mean(axis=0)
    assert (near > scores.contributions(z * 1e-3).mean(axis=(0, 1))).all()  # and it still tells


def test_a_left_out_row(rows, monkeypatch):
    """As fitting without it, where what all rows determine together is held."""
    z, y = rows
    z, y = np.vstack([z, [[5.0, 5.0, 5.0, 5.0]]]), np.append(y, 3)  # a class of one row
    w = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    tally = tallied(z, y, w, k=4)
    centre = CovarianceCentre.from_tally(tally, 0.1)
    of_centre = discriminant._choose_centre_weight(tally, centre, discriminant._ClassMeans.from_tally(tally, centre))
    monkeypatch.setattr(discriminant, "_choose_centre_weight", lambda *_: of_centre)
    got = held_out_contributions(tally, z, y, w, quadratic=True, towards_diagonal=0.1)
    within = tally.scatter.sum(axis=0)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        rest = tallied(z[others], y[others], w[others], k=4)
        less = centre.matrix - centre.row_weight * (within - rest.scatter.sum(axis=0))
        scores = estimate(rest, quadratic=True, towards_diagonal=0.1, centre=replace(centre, matrix=less))
        np.testing.assert_allclose(got[i], scores.contributions(z[i : i + 1])[0], atol=1e-9)


def test_dependent_columns_give_finite_scores(rows):
    z, y = rows
    scores = estimate(tallied(np.hstack([z, z, z[:, :1] * 0]), y), quadratic=True, towards_diagonal=0.1)
    assert np.isfinite(scores.log_prob(np.hstack([z, z, z[:, :1] * 0]))).all()


def test_a_column_that_is_constant_within_classes_is_not_certain():
    """As of an indicator of a level that one class alone has: its spread is drawn to one."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [60, 60, 1])
    z = rng.normal(size=(121, 3))
    z[:, 2] = np.where(y == 2, 10.0, -0.1)
    scores = estimate(tallied(z, y), quadratic=False, towards_diagonal=1.0)
    assert np.ptp(scores.log_prob(np.array([[0.0, 0.0, 10.0]]))) < 5_000  # with a spread of nothing 1e8
    assert CovarianceCentre.from_tally(tallied(z, y), 1.0).matrix[2, 2] == pytest.approx(3 / 121, rel=1e-9)
